//! A peer with keys says anything in UPDATE, NOTIFY, CLOSE and CLOSE_ACK, as Initiator or Responder, with a whole host on
//! top: no panic, deadlines move on, paths and memory are bounded, and it says nothing to addresses nobody ever named.
#![no_main]

use arbitrary::Arbitrary;
use clock::Duration;
use libfuzzer_sys::fuzz_target;
use sinnet_fuzz::grammar::Edit;
use sinnet_fuzz::victim::{Victim, route};
use wire::Spi;
use wire::hip::{PacketKind, Parameter};

#[derive(Arbitrary, Debug)]
enum Action {
    /// An UPDATE that opens a path or renews one.
    Open { route: u8, renew: Option<u8>, fresh: bool, edits: Vec<Edit> },
    /// The answer to the last UPDATE.
    Answer { route: u8, edits: Vec<Edit> },
    /// A packet of any kind.
    Say { kind: u8, route: u8, edits: Vec<Edit> },
    /// One that was said before, from elsewhere.
    Again { which: u8, route: u8 },
    /// ESP, which proves a path.
    Esp { path: u8 },
    /// The host has something to send.
    Program,
    /// Milliseconds.
    Wait(u16),
    /// The peer stops or begins to answer heartbeats.
    Silence,
}

fuzz_target!(|input: (bool, Vec<Action>)| {
    let (peer_begins, actions) = input;
    let mut victim = Victim::established(peer_begins);
    for action in actions.into_iter().take(48) {
        match action {
            Action::Open { route: from, renew, fresh, edits } => {
                let told = &victim.peer.told;
                let old = renew.and_then(|index| told.spis.get(usize::from(index) % told.spis.len().max(1)).copied());
                let parameters = victim.peer.opening(old.unwrap_or(Spi(0)), fresh);
                if let Some(bytes) = victim.peer.say(PacketKind::Update, parameters, &edits) {
                    victim.hip(route(from), &bytes);
                }
            }
            Action::Answer { route: from, edits } => {
                let Some(update) = victim.last(PacketKind::Update) else { continue };
                let Some(parameters) = victim.peer.answer(&update) else { continue };
                if let Some(bytes) = victim.peer.say(PacketKind::Update, parameters, &edits) {
                    victim.hip(route(from), &bytes);
                }
            }
            Action::Say { kind, route: from, edits } => {
                let echo = victim.peer.told.echo.clone();
                let (kind, parameters) = match kind % 6 {
                    0 => (PacketKind::Update, vec![]),
                    1 => (PacketKind::Close, vec![Parameter::EchoRequestSigned(vec![1])]),
                    2 => (PacketKind::CloseAck, vec![Parameter::EchoResponseSigned(echo)]),
                    3 => (PacketKind::Notify, vec![]),
                    4 => (PacketKind::R2, vec![]),
                    _ => (PacketKind::I2, vec![]),
                };
                if let Some(bytes) = victim.peer.say(kind, parameters, &edits) {
                    victim.hip(route(from), &bytes);
                }
            }
            Action::Again { which, route: from } => {
                let said = &victim.peer.said;
                if let Some(bytes) = said.get(usize::from(which) % said.len().max(1)).cloned() {
                    victim.hip(route(from), &bytes);
                }
            }
            Action::Esp { path } => drop(victim.esp(path, 59, &[])),
            Action::Program => {
                let [host, peer] = victim.hits();
                victim.program(&sinnet_fuzz::packets::udp_v6(host, peer, (7, 9), &[0; 1000]));
            }
            Action::Wait(time) => victim.wait(Duration::from_millis(time.into())),
            Action::Silence => victim.alive = !victim.alive,
        }
        victim.check();
    }
    victim.wait(Duration::from_secs(40));
});
