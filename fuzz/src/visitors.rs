//! Clients of a listening socket who write in pieces, read slowly or never, and come and go.

use crate::memory::Watch;
use arbitrary::Arbitrary;
use clock::{Duration, Instant};
use std::io::{Read, Write};

/// What one of them does.
#[derive(Arbitrary, Debug)]
pub enum Action {
    /// Somebody comes.
    Connect,
    /// Any bytes.
    Say { who: u8, bytes: Vec<u8> },
    /// One of the questions that have an answer, so many times.
    Ask { who: u8, which: u8, times: u8 },
    /// Reads up to so many bytes.
    Read { who: u8, count: u16 },
    /// Leaves.
    Leave(u8),
    /// The daemon's turn comes, so many milliseconds later.
    Turn(u16),
}

/// A whole answer has so many bytes.
pub const ANSWER: usize = 1 << 16;
/// For 16 visitors: a question and an answer each, twice while they are made, and what was told last.
const BOUND: usize = 2 * 18 * (ANSWER + 8192);

/// Plays it out: `connect` makes a client whose operations do not wait, `turn` gives the service its turn.
pub fn play<S: Read + Write>(
    actions: Vec<Action>,
    questions: &[&[u8]],
    mut connect: impl FnMut() -> Option<S>,
    mut turn: impl FnMut(Instant),
) {
    let mut now = Instant::ZERO + Duration::from_secs(1);
    let mut clients: Vec<S> = Vec::new();
    let mut sink = vec![0; 1 << 16];
    let watch = Watch::new();
    for action in actions.into_iter().take(100) {
        let count = clients.len().max(1);
        match action {
            Action::Connect if clients.len() < 40 => clients.extend(connect()),
            Action::Connect => {}
            Action::Say { who, bytes } => {
                if let Some(client) = clients.get_mut(usize::from(who) % count) {
                    let _ = client.write(&bytes);
                }
            }
            Action::Ask { who, which, times } => {
                let question = questions[usize::from(which) % questions.len()];
                if let Some(client) = clients.get_mut(usize::from(who) % count) {
                    for _ in 0..times {
                        let _ = client.write(question);
                    }
                }
            }
            Action::Read { who, count: bytes } => {
                if let Some(client) = clients.get_mut(usize::from(who) % count) {
                    let _ = client.read(&mut sink[..usize::from(bytes)]);
                }
            }
            Action::Leave(who) if !clients.is_empty() => drop(clients.swap_remove(usize::from(who) % clients.len())),
            Action::Leave(_) => {}
            Action::Turn(time) => {
                now += Duration::from_millis(time.into());
                turn(now);
                watch.assert_below(BOUND, "a listening socket");
            }
        }
    }
    // Whatever they did, the next one is answered, also while they stay.
    let Some(mut last) = connect() else { return };
    let mut heard = 0;
    for round in 0..40 {
        now += Duration::from_millis(200);
        turn(now);
        if round == 0 {
            let _ = last.write(questions[0]);
        }
        heard += last.read(&mut sink).unwrap_or(0);
        if heard >= ANSWER {
            return;
        }
    }
    panic!("the last one hears {heard} bytes of an answer of {ANSWER}");
}
