//! DAPS, delay-aware packet scheduling (N. Kuhn, E. Lochin, A. Mifdaoui, G. Sarwar, O. Mehani, R. Boreli, *DAPS:
//! intelligent delay-aware packet scheduling for multipath transport*, ICC 2014), in the form of slots.
//!
//! A period is the greatest one-way delay T. In it, path i offers `w_i` places that arrive at each multiple of its delay
//! `D_i`, `T/D_i` of them; packets take the places in the order of arrival. So a slow path is given, now, what belongs
//! far behind what the fast one still has to send. The paper's period is the least common multiple of the delays, which
//! for measured ones means nothing.

use super::sttf::on;
use crate::{Decision, Needs, PacketMeta, PathId, PathScheduler, PathView, Reference};
use clock::{Duration, Instant};

pub(super) const REFERENCE: Reference = Reference {
    name: "daps",
    choice: "in a period T = max D each path has w places at each multiple of its D; packets take places in order \
           of arrival",
    source: "Kuhn and others, IEEE ICC 2014",
};

/// Most rounds of one path in a period.
const MOST_ROUNDS: u64 = 1000;

/// The scheduler, with what is left of its period.
#[derive(Clone, Debug, Default)]
pub struct Daps {
    /// Places, the first last: the time of arrival, the path, and how many.
    places: Vec<(Duration, PathId, u64)>,
    /// What the paths were like when the period was laid out.
    seen: Vec<(PathId, Duration, u64)>,
}

impl Daps {
    fn lay_out(&mut self, paths: &[PathView]) {
        self.seen.clear();
        self.seen.extend(paths.iter().map(|path| (path.id, delay(path), path.cwnd)));
        self.places.clear();
        let period = self.seen.iter().map(|(_, delay, _)| *delay).max().unwrap_or_default();
        for (id, delay, cwnd) in &self.seen {
            let nanos = delay.as_nanos().max(1);
            let rounds = ((period.as_nanos() + nanos / 2) / nanos).clamp(1, MOST_ROUNDS);
            self.places.extend((1..=rounds).map(|round| (*delay * round, *id, (*cwnd).max(1))));
        }
        self.places.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Whether a path came or went, or is another by a quarter.
    fn has_changed(&self, paths: &[PathView]) -> bool {
        let differs = |now: u64, then: u64| now.abs_diff(then) > then / 4;
        self.seen.len() != paths.len()
            || self.seen.iter().zip(paths).any(|((id, then, cwnd), path)| {
                *id != path.id || differs(delay(path).as_nanos(), then.as_nanos()) || differs(path.cwnd, *cwnd)
            })
    }
}

impl PathScheduler for Daps {
    fn select(&mut self, _packet: &PacketMeta, paths: &[PathView], _now: Instant) -> Decision {
        if paths.is_empty() {
            return Decision::Blocked;
        }
        if self.places.is_empty() || self.has_changed(paths) {
            self.lay_out(paths);
        }
        let Some((_, id, count)) = self.places.last_mut() else { return Decision::Blocked };
        let id = *id;
        *count -= 1;
        if *count == 0 {
            self.places.pop();
        }
        paths.iter().find(|path| path.id == id).map_or(Decision::Blocked, on)
    }

    fn needs(&self) -> Needs {
        Needs { windows: true, queues: true, ..Needs::NOTHING }
    }
}

/// The one-way delay, or half the round trip where it is not known.
fn delay(path: &PathView) -> Duration {
    if path.srtt.is_zero() { path.delay } else { path.srtt / 2 }
}
