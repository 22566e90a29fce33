//! What programs of this host send: any bytes, and TCP in both directions with fields near each other, so that snooping,
//! the send buffer and the window clamp have something to do. No panic, deadlines move on, memory is bounded, and only what
//! is between the host's own addresses and its peer's leaves.
#![no_main]

use arbitrary::Arbitrary;
use clock::Duration;
use libfuzzer_sys::fuzz_target;
use sinnet_fuzz::packets::Content;
use sinnet_fuzz::victim::{LSIS, Victim};
use std::net::IpAddr;

#[derive(Arbitrary, Debug)]
enum Action {
    /// To the peer.
    Packet {
        six: bool,
        content: Content,
        count: u16,
    },
    /// Any bytes.
    Raw(Vec<u8>),
    /// From others, to others.
    Stray {
        from: [u8; 16],
        to: [u8; 16],
        content: Content,
    },
    /// The peer's side of the connections.
    Peer {
        content: Content,
        count: u8,
    },
    /// Milliseconds.
    Wait(u16),
    Silence,
}

fuzz_target!(|input: (Option<bool>, Vec<Action>)| {
    let (begun, actions) = input;
    let mut victim = begun.map_or_else(Victim::new, Victim::established);
    let [host, peer] = victim.hits().map(|hit| IpAddr::from(hit.address()));
    let [own, theirs] = LSIS.map(|lsi| IpAddr::from(lsi.address()));
    for action in actions.into_iter().take(48) {
        match action {
            Action::Packet { six, content, count } => {
                let (from, to) = if six { (host, peer) } else { (own, theirs) };
                for round in 0..=u32::from(count % 4096) {
                    if !victim.program(&content.packet(from, to, round)) {
                        break;
                    }
                }
            }
            Action::Raw(bytes) => drop(victim.program(&bytes)),
            Action::Stray { from, to, content } => {
                let sent = victim.sent;
                victim.program(&content.packet(from.into(), to.into(), 0));
                assert!(victim.sent - sent < 5000, "a stray packet leaves");
            }
            Action::Peer { content, count } => {
                for round in 0..=u32::from(count) {
                    let (protocol, payload) = content.emit(peer, host, round);
                    victim.esp(0, protocol, &payload);
                }
            }
            Action::Wait(time) => victim.wait(Duration::from_millis(time.into())),
            Action::Silence => victim.alive = !victim.alive,
        }
        victim.check();
    }
    victim.wait(Duration::from_secs(20));
});
