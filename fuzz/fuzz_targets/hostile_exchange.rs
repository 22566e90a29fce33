//! A peer whose signature is right says anything in I1, R1, I2 and R2: no panic, deadlines move on, and what is agreed on
//! without an edit works.
#![no_main]

use arbitrary::Arbitrary;
use clock::Duration;
use libfuzzer_sys::fuzz_target;
use sinnet_fuzz::grammar::{Edit, Part};
use sinnet_fuzz::victim::Victim;

#[derive(Arbitrary, Debug)]
struct Exchange {
    peer_begins: bool,
    edits: [Vec<Edit>; 4],
    /// Milliseconds afterwards.
    wait: u16,
}

fuzz_target!(|input: Vec<Exchange>| {
    let mut victim = Victim::new();
    for Exchange { peer_begins, edits, wait } in input.into_iter().take(4) {
        // A puzzle costs who solves it what it costs: no more than 2^12 hashes here.
        let hard = |edit: &Edit| {
            let (Edit::Replace(part) | Edit::Insert(part)) = edit else { return false };
            matches!(part, Part::Puzzle { difficulty: 13.., .. })
        };
        let mut edits = edits;
        edits.iter_mut().for_each(|edits| edits.retain(|edit| !hard(edit)));
        let [i1, r1, i2, r2] = &edits;
        victim.exchange(peer_begins, [i1, r1, i2, r2]);
        victim.wait(Duration::from_millis(wait.into()));
        victim.check();
    }
});
