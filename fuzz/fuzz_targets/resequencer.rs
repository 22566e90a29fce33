//! The resequencer alone, with any numbers, roles and times: every packet comes out exactly once, what waits is within the
//! capacity, and deadlines move on.
#![no_main]

use arbitrary::Arbitrary;
use clock::{Duration, Instant};
use libfuzzer_sys::fuzz_target;
use recovery::{Position, Resequencer, Role};
use sinnet_fuzz::grammar::Near;

#[derive(Arbitrary, Debug)]
enum Action {
    Offer { path: u8, sequence: Near, length: u16, role: u8, bytes: u16, hold: u16, alive: u8 },
    Wait(u16),
    Repair(u16),
    Flush,
}

const CAPACITY: usize = 20_000;

fuzz_target!(|input: (u32, Vec<Action>)| {
    let (mut beside, actions) = input;
    let mut resequencer = Resequencer::new(CAPACITY);
    let mut now = Instant::ZERO + Duration::from_secs(1);
    let mut out = Vec::new();
    let mut offered = 0u32;
    for action in actions.into_iter().take(1000) {
        match action {
            Action::Offer { path, sequence, length, role, bytes, hold, alive } => {
                let sequence = sequence.of(beside);
                let role = match role % 8 {
                    0 => Role::Start,
                    1 => Role::Early(beside),
                    2 => Role::Unordered,
                    _ => Role::InSequence,
                };
                let position = Position { path: u16::from(path % 4), sequence, length: length.into(), role };
                let alive: Vec<u16> = (0..4).filter(|path| alive >> path & 1 == 1).collect();
                let hold = Duration::from_millis(hold.into());
                resequencer.offer(now, position, offered, usize::from(bytes), hold, &alive, &mut out);
                offered += 1;
                beside = sequence.wrapping_add(length.into());
            }
            Action::Wait(time) => now += Duration::from_micros(u64::from(time) * 100),
            Action::Repair(time) => resequencer.set_repair(Duration::from_millis(time.into())),
            Action::Flush => resequencer.flush(&mut out),
        }
        resequencer.handle_timeout(now, &mut out);
        assert!(resequencer.poll_timeout().is_none_or(|at| at > now));
        // One packet may be larger than the capacity.
        assert!(resequencer.bytes() <= CAPACITY || resequencer.held() <= 1, "{} bytes", resequencer.bytes());
        assert_eq!(resequencer.held() + out.len(), offered as usize);
    }
    now += Duration::from_secs(300);
    resequencer.handle_timeout(now, &mut out);
    assert_eq!(resequencer.held(), 0, "a packet waits for ever");
    out.sort_unstable();
    assert!(out.into_iter().eq(0..offered));
});
