//! The log tells what happened once, not once a packet: of each kind so many lines a minute, and then how many there were
//! that it did not tell. The counters have them all.

use std::collections::BTreeMap;

use clock::{Duration, Instant};

/// For so long a kind of line that was told often enough is only counted.
const MINUTE: Duration = Duration::from_secs(60);
/// Kinds remembered; where there are more, those beyond are one.
const MOST_KINDS: usize = 256;

/// What the log has told lately.
#[derive(Debug, Default)]
pub(crate) struct Told {
    kinds: BTreeMap<String, Kind>,
}

#[derive(Debug)]
struct Kind {
    since: Instant,
    told: u32,
    hidden: u64,
}

impl Told {
    /// Whether a line of this kind may be told now, of which `most` may be in a minute: if so, how many have not been told
    /// since the last one that was.
    pub(crate) fn may(&mut self, now: Instant, kind: &str, most: u32) -> Option<u64> {
        self.kinds.retain(|_, kind| kind.hidden > 0 || now.saturating_since(kind.since) < MINUTE);
        let name = if self.kinds.len() < MOST_KINDS || self.kinds.contains_key(kind) { kind } else { "" };
        let kind = self.kinds.entry(name.to_owned()).or_insert(Kind { since: now, told: 0, hidden: 0 });
        if now.saturating_since(kind.since) >= MINUTE {
            (kind.since, kind.told) = (now, 0);
        }
        if kind.told >= most {
            kind.hidden = kind.hidden.saturating_add(1);
            return None;
        }
        kind.told += 1;
        Some(std::mem::take(&mut kind.hidden))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn once_a_minute_with_the_number_of_the_others() {
        let mut told = Told::default();
        assert_eq!(told.may(at(0), "a", 1), Some(0));
        assert!((0..1000).all(|_| told.may(at(59), "a", 1).is_none()));
        assert_eq!(told.may(at(59), "b", 1), Some(0), "another kind");
        assert_eq!(told.may(at(60), "a", 1), Some(1000));
        assert_eq!(told.may(at(61), "a", 1), None);
        assert_eq!((0..5).filter(|_| told.may(at(61), "c", 3).is_some()).count(), 3);
    }

    #[test]
    fn kinds_without_number_cost_nothing() {
        let mut told = Told::default();
        let lines = (0..10_000).filter(|number| told.may(at(0), &number.to_string(), 1).is_some()).count();
        assert!(lines <= MOST_KINDS + 1 && told.kinds.len() <= MOST_KINDS + 1, "{lines} lines");
        // After a minute what nobody asks for any more is forgotten.
        told.may(at(100), "new", 1);
        assert!(told.kinds.len() <= 2);
    }
}
