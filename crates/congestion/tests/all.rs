//! All integration tests in one program, so that they are linked once and wait side by side.

mod common;
mod coupled_vectors;
mod coupling;
mod coverage;
mod delay_vectors;
mod fair_queue;
mod mhip_vectors;
mod properties;
mod random_loss;
mod vectors;
