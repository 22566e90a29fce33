//! All integration tests in one program, so that they are linked once and wait side by side.

mod algorithms;
mod bbr;
mod closed_forms;
mod determinism;
mod mhip;
mod mptcp;
mod ns2;
mod outside;
mod phases;
mod schema;
mod sctp;
mod sinnet;
