//! All integration tests in one program, so that they are linked once and wait side by side.

mod connection;
mod mhip_properties;
mod mhip_vectors;
mod mptcp;
mod response;
mod scripts;
mod sctp;
