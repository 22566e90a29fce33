//! Delay-based AIMD of the Hamilton Institute: Ł. Budzisz, R. Stanojević, R. Shorten and F. Baker, *A strategy for fair
//! coexistence of loss and delay-based congestion control algorithms*, IEEE Communications Letters 13(7), 2009; IEEE/ACM
//! ToN 19(6), 2011. Reno, which also halves its window with a probability that depends on the queueing delay. The
//! probability rises up to `threshold` and falls again towards the longest queue ever seen: who shares a full queue with
//! others that only heed losses does as they do. ALGORITHMS §3.6.

use clock::Rng;

use crate::engine::Acked;
use crate::group::Group;
use crate::reference::{FRACTION, RENO, Reference, SECONDS, Tunable, tunable};
use crate::rule::{Backoff, Cause, Kind, WindowRule};
use crate::tunable::{BadTunable, number};

pub(super) const HAMILTON: &str =
    "36-delay-based-aimd-hamilton-hd-budzisz-stanojević-shorten-baker-2009-ton-2011-freebsd-cc_hdc-c";

pub(super) const TUNABLES: [Tunable; 3] = [
    tunable("lowest", SECONDS, "0.005", "Queueing delay up to which nothing is cut."),
    tunable("threshold", SECONDS, "0.02", "Queueing delay of the highest probability."),
    tunable("highest_probability", FRACTION, "0.05", "That probability, per acknowledgment."),
];

pub(super) const REFERENCE: Reference = Reference {
    name: "hd",
    increase: RENO,
    decrease: "F/2, also at an acknowledgment with probability p·(q−lowest)/(threshold−lowest), q = RTT−base, above the threshold \
               p·(top−base−q)/(top−base−threshold)",
    source: "Budzisz and others, IEEE Communications Letters 13(7), 2009; IEEE/ACM ToN 19(6), 2011",
    section: ("3.6", HAMILTON),
    tunables: &TUNABLES,
};

/// Delay-based AIMD. A cut by delay is granted once a window of data, as one by an ECN mark.
#[derive(Clone, Debug)]
pub struct Hd {
    /// Up to this queueing delay nothing happens; in seconds.
    pub lowest: f64,
    /// The queueing delay with the highest probability, in seconds.
    pub threshold: f64,
    /// The highest probability, per acknowledgment.
    pub highest_probability: f64,
    rng: Rng,
}

impl Default for Hd {
    fn default() -> Self {
        Self { lowest: 0.005, threshold: 0.02, highest_probability: 0.05, rng: Rng::from_seed(0) }
    }
}

impl Hd {
    /// The probability to cut at a queueing delay, when the longest ever was `longest`; in seconds.
    pub fn probability(&self, delay: f64, longest: f64) -> f64 {
        let relative = if delay <= self.lowest {
            0.0
        } else if delay < self.threshold {
            (delay - self.lowest) / (self.threshold - self.lowest)
        } else if delay < longest {
            (longest - delay) / (longest - self.threshold)
        } else {
            // The longest queue so far is a full one, except where that is the threshold itself.
            f64::from(u8::from(delay == self.threshold))
        };
        self.highest_probability * relative
    }
}

impl WindowRule for Hd {
    fn kind(&self) -> Kind {
        Kind { reads_delay: true, ..Kind::default() }
    }

    fn seed(&mut self, rng: Rng) {
        self.rng = rng;
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        const SECONDS: &str = "a time in seconds from 0 to 10";
        match name {
            "lowest" => self.lowest = number(value, 0.0, 10.0, SECONDS)?,
            "threshold" => self.threshold = number(value, 0.0, 10.0, SECONDS)?,
            "highest_probability" => self.highest_probability = number(value, 0.0, 1.0, "a number from 0 to 1")?,
            _ => return Err(BadTunable::Unknown { known: &["lowest", "threshold", "highest_probability"] }),
        }
        Ok(())
    }

    fn acknowledged(&mut self, path: usize, group: Group<'_>, acked: &Acked) -> bool {
        let (path, Some(rtt)) = (group.path(path), acked.rtt) else {
            return false;
        };
        let base = path.base_rtt.as_secs_f64();
        let probability = self.probability(rtt.as_secs_f64() - base, path.top_rtt.as_secs_f64() - base);
        probability > 0.0 && self.rng.chance(probability)
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        group.path(path).reno(acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        let path = group.path(path);
        Backoff::to(path.flight / 2.0, 2.0 * path.mss)
    }
}
