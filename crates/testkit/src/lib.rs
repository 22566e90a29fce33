//! What tests of several crates share; for development only.
//!
//! - [`World`]: hosts and what joins them, in virtual time;
//! - [`connect`]: both ends of a flow of the laboratory, joined by a network that the test decides about;
//! - [`IDENTITIES`]: keys of two hosts, so that tests need not make any;
//! - [`has`], [`skip`]: programs that are not installed everywhere.

mod flow;
mod tools;
mod world;

pub use flow::{Fate, Moment, Outcome, connect, connect_observed};
pub use tools::{has, skip};
pub use world::World;

/// The private keys of two recorded hosts, ECDSA on P-384, in PEM: making keys takes longer than the tests.
pub const IDENTITIES: [&str; 2] = [
    include_str!("../../../vectors/hip/capture-ecdsa-p384/a.pem"),
    include_str!("../../../vectors/hip/capture-ecdsa-p384/b.pem"),
];
