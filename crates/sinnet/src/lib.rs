//! Multipath HIP hosts and a network laboratory, to build on.
//!
//! Several network paths become one connection: hosts prove their identities to each other, encrypt, and spread the packets
//! of even one TCP connection over all their access links. Nothing here does I/O or reads a clock: time and random numbers
//! are arguments, so what runs between real interfaces runs in virtual time as well, and one seed replays a run.
//!
//! | to | begin with | example |
//! |---|---|---|
//! | embed a whole host | [`wedge::Wedge`] | `examples/two_hosts.rs` |
//! | use the key exchange and the associations alone (RFC 7401, RFC 7402, RFC 8046) | [`hip::Host`] | [`hip`] |
//! | simulate TCP, UDP, MPTCP, CMT-SCTP and multipath HIP | [`simulate`], [`scenario`] | `examples/simulate.rs` |
//! | send over several paths, whatever you carry | [`multipath::Sender`] | |
//! | read and write HIP, ESP, IP, TCP and UDP headers | [`wire`] | |
//!
//! The program `sinnet` (package `sinnet-cli`) is these rooms with sockets and a TUN device.
//!
//! ```
//! let download = r#"
//! name = "a download"
//! duration = "5s"
//! [[link]]
//! between = ["client", "server"]
//! rate = "10Mbit/s"
//! delay = "10ms"
//! queue = "50p"
//! [[flow]]
//! protocol = "tcp"
//! from = "server"
//! to = "client"
//! "#;
//! let result = sinnet::simulate(download, 1)?;
//! assert!(result.flows[0].goodput_mbps > 8.0);
//! # Ok::<(), sinnet::Diagnostic>(())
//! ```
//!
//! # Versions
//!
//! All packages of Sinnet have one version. What is public here changes as Cargo's rules for semantic versions say, and the
//! oldest supported compiler is the `rust-version` of the packages.

pub use clock::{Duration, Instant};
pub use text::Diagnostic;
#[doc(no_inline)]
pub use {
    clock, congestion, hip, link, multipath, queue, rand_core, recovery, scenario, scheduler, simulator, text,
    transport, wedge, wire,
};

/// Runs a scenario, as in the files of `scenarios/`, once with this seed.
///
/// The same text and seed give the same result on every machine.
///
/// # Errors
/// What is wrong in the text, with its line and column, or what the simulator does not do.
pub fn simulate(text: &str, seed: u64) -> Result<simulator::RunResult, Diagnostic> {
    let scenario = scenario::Document::parse(text, "scenario")?.scenario()?;
    simulator::run(&scenario, seed, &simulator::RunOptions::default())
}
