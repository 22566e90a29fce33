//! What a peer sends inside ESP: packets of all protocols, numbered or not, heartbeats, reports, floods of each. No panic,
//! deadlines move on, memory stays within a peer's share, programs get no packet that is not from that peer to this host.
#![no_main]

use arbitrary::Arbitrary;
use clock::Duration;
use hip::feedback::NEXT_HEADER;
use libfuzzer_sys::fuzz_target;
use sinnet_fuzz::grammar::Near;
use sinnet_fuzz::packets::{Content, Record, report};
use sinnet_fuzz::victim::{LSIS, Victim};
use std::net::IpAddr;
use wire::ip::IpPacket;

#[derive(Arbitrary, Debug)]
enum Action {
    /// Packets of the peer: `count` times, with ports or numbers moving on.
    Inner {
        path: u8,
        number: Option<(u8, u16)>,
        content: Content,
        count: u16,
    },
    Report {
        path: u8,
        records: Vec<Record>,
        count: u8,
    },
    Raw {
        path: u8,
        next_header: u8,
        payload: Vec<u8>,
    },
    /// ESP sequence numbers go on behind this one.
    Jump {
        path: u8,
        to: Near,
    },
    /// Packets of the host's programs.
    Program {
        six: bool,
        content: Content,
        count: u8,
    },
    /// Milliseconds.
    Wait(u16),
    Silence,
}

fn inner(victim: &mut Victim, path: u8, number: Option<(u8, u16)>, content: &Content, round: u32) -> bool {
    let [host, peer] = victim.hits().map(|hit| IpAddr::from(hit.address()));
    let (protocol, payload) = content.emit(peer, host, round);
    match number {
        None => victim.esp(path, protocol, &payload),
        Some((kind, number)) => {
            let [a, b] = number.wrapping_add(round as u16).to_be_bytes();
            let what = [kind & 0x30 | 2 | kind & 1, protocol];
            // ESP's next header says what follows, or bytes before the number.
            let (next_header, what) =
                if kind & 0x80 == 0 { (NEXT_HEADER, &what[..]) } else { (148 + kind % 104, &[][..]) };
            victim.esp(path, next_header, &[what, &[a, b], &payload].concat())
        }
    }
}

fuzz_target!(|input: (bool, Vec<Action>)| {
    let (peer_begins, actions) = input;
    let mut victim = Victim::established(peer_begins);
    let [host, peer] = victim.hits().map(|hit| IpAddr::from(hit.address()));
    let [own, theirs] = LSIS.map(|lsi| IpAddr::from(lsi.address()));
    for action in actions.into_iter().take(48) {
        match action {
            Action::Inner { path, number, content, count } => {
                for round in 0..=u32::from(count % 2048) {
                    if !inner(&mut victim, path, number, &content, round) {
                        break;
                    }
                }
            }
            Action::Report { path, records, count } => {
                let known: Vec<_> = victim.peer.told.spis.clone();
                let message = report(&records, &known, 40);
                for _ in 0..=count {
                    victim.esp(path, NEXT_HEADER, &message);
                }
            }
            Action::Jump { path, to } => victim.peer.jump(path, to.of(u32::MAX - 2)),
            Action::Raw { path, next_header, payload } => drop(victim.esp(path, next_header, &payload)),
            Action::Program { six, content, count } => {
                let (from, to) = if six { (host, peer) } else { (own, theirs) };
                for round in 0..=u32::from(count) {
                    victim.program(&content.packet(from, to, round));
                }
            }
            Action::Wait(time) => victim.wait(Duration::from_millis(time.into())),
            Action::Silence => victim.alive = !victim.alive,
        }
        for packet in victim.delivered.drain(..) {
            let packet = IpPacket::parse(&packet).expect("programs get IP packets");
            let ends = (packet.src(), packet.dst());
            // An ICMP error about a packet of a program's own comes from this host or from the peer.
            let known = [host, own].contains(&ends.1) && [host, own, peer, theirs].contains(&ends.0);
            assert!(known, "a program gets a packet of {ends:?}");
        }
        victim.check();
    }
    victim.wait(Duration::from_secs(20));
});
