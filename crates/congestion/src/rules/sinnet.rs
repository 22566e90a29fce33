//! The usual rule of a tunnel's paths: CUBIC, and Reno where that would have more, where not every loss is congestion's. Which are, is
//! told by whoever runs the rule ([`Kind::bears_random_loss`]).

use crate::group::Group;
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, Family, Kind, WindowRule};
use crate::rules::Cubic;

pub(super) const REFERENCE: Reference = Reference {
    name: "sinnet",
    increase: "as cubic on each path; 3(1 − β)/(1 + β)/w per packet where Reno has more, 1/w from the window before the loss on",
    decrease: "βw on the path of the loss, at least 2: β = 0.7 where cubic is on its curve or the queue not full, else the lowest RTT by \
               the highest, from 0.5 to 0.7; w of a loss that is the link's own: no queue, and no less at a smaller window; w/2 of one that may be",
    source: "RFC 9438; `CoupledController` tells losses apart",
    section: ("6.7", "67-losses-of-the-links-own-sinnet-o"),
    tunables: &[],
};

/// CUBIC for links with losses of their own.
#[derive(Clone, Debug)]
pub struct Sinnet {
    cubic: Cubic,
}

impl Default for Sinnet {
    fn default() -> Self {
        Self { cubic: Cubic::or_reno() }
    }
}

impl WindowRule for Sinnet {
    fn kind(&self) -> Kind {
        Kind { bears_random_loss: true, family: Family::Tunnel, ..Kind::default() }
    }

    fn path_added(&mut self, path: usize) {
        self.cubic.path_added(path);
    }

    fn path_changed(&mut self, path: usize) {
        self.cubic.path_changed(path);
    }

    fn unit_changed(&mut self, path: usize, ratio: f64) {
        self.cubic.unit_changed(path, ratio);
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.cubic.increase(path, group, acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        self.cubic.decrease(path, group, cause)
    }

    fn limited(&mut self, path: usize, group: Group<'_>, acked: f64) {
        self.cubic.limited(path, group, acked);
    }

    fn borne(&mut self, path: usize, group: Group<'_>) {
        self.cubic.borne(path, group);
    }

    fn undone(&mut self, path: usize, group: Group<'_>) {
        self.cubic.undone(path, group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Acked, Congestion, Controller, EngineConfig};
    use clock::{Duration, Instant};

    const MSS: f64 = 1_500.0;

    /// A path that loses one packet whenever its window is `full`, round trip by round trip. A window that is larger than `holds` waits
    /// in its queue.
    struct Link {
        control: Controller<Sinnet>,
        now: Instant,
        next: u64,
        rtt: Duration,
        holds: f64,
    }

    impl Link {
        fn new(window: f64, rtt: Duration) -> Self {
            let mut control = Controller::new(Sinnet::default(), EngineConfig::default());
            let path = control.add_path(MSS as u32);
            control.set_cwnd(path, window * MSS);
            control.set_ssthresh(path, window * MSS);
            Self { control, now: Instant::ZERO + Duration::from_secs(1), next: 1, rtt, holds: f64::INFINITY }
        }

        fn window(&self) -> f64 {
            self.control.cwnd(0) / MSS
        }

        /// All that fits the window leaves, and is acknowledged; every `idle`th acknowledgment finds the window not full.
        fn round(&mut self, idle: Option<u64>) {
            let (first, packets) = (self.next, self.window() as u64);
            self.next += packets;
            let took = self.rtt.mul_f64((self.window() / self.holds).max(1.0));
            for number in first..self.next {
                self.now += took.mul_f64(1.0 / packets as f64);
                let is_full = idle.is_none_or(|idle| number % idle != 0);
                let flight = if is_full { self.control.cwnd(0) as u64 } else { 0 };
                let (rtt, srtt) = (Some(took), took);
                let acked = Acked { bytes: MSS as u64, flight, upto: number, next: self.next, rtt, srtt };
                self.control.on_ack(0, &acked, self.now);
            }
        }

        fn lose(&mut self) {
            let event = Congestion { cause: Cause::Loss, flight: self.control.cwnd(0), next: self.next };
            assert!(self.control.on_congestion(0, &event, self.now));
            self.round(None); // the recovery
        }

        /// What a loss at a window of `full` packets leaves of it, and the seconds until an eighth of what it took is missing, in the third
        /// saw-tooth.
        fn tooth(&mut self, full: f64, idle: Option<u64>) -> (f64, f64) {
            let mut outcome = (1.0, 0.0);
            for _ in 0..3 {
                // At a smaller window than the last time it would make room for others (RFC 9438 §4.7).
                let full = self.window().max(full);
                self.lose();
                let (window, since) = (self.window(), self.now);
                let mut seconds = None;
                for _ in 0..10_000 {
                    self.round(idle);
                    if self.window() >= full - (full - window) / 8.0 {
                        seconds.get_or_insert(self.now.saturating_since(since).as_secs_f64());
                    }
                    if self.window() > 1.001 * full {
                        break;
                    }
                }
                outcome = (window / full, seconds.unwrap());
            }
            outcome
        }
    }

    /// RFC 9438 §4.3 and §4.2: where a path is short, what a loss took comes back as fast as a Reno's half would bring as much in the mean,
    /// and what is left fills the link, unless that is less than half or more than 0.7; where it is long, an eighth is missing after half
    /// of K = (0.3·w/0.4)^(1/3) seconds.
    #[test]
    fn a_short_path_is_a_renos_and_a_long_one_a_cubics() {
        let short = [(20.0, 20), (60.0, 10), (300.0, 5)];
        for ((full, milliseconds), queue) in
            short.iter().flat_map(|path| [3.0, 1.0, 0.6, 0.2].map(|queue| (*path, queue)))
        {
            let (rtt, holds) = (Duration::from_millis(milliseconds), full / (1.0 + queue));
            let (part, seconds) = Link { holds, ..Link::new(full, rtt) }.tooth(full, None);
            let theory = (holds / full).clamp(0.5, 0.7);
            assert!((part - theory).abs() < 0.05, "{full}, {queue}: {part} where it is {theory}");
            // From part·full on by so much in a round trip, which is longer by what waits.
            let (grows, mut window, mut reno) = (3.0 * (1.0 - theory) / (1.0 + theory), theory * full, 0.0);
            while window < full - full * (1.0 - theory) / 8.0 {
                reno += rtt.as_secs_f64() * (window / holds).max(1.0);
                window += grows;
            }
            // The window is looked at once in a round trip.
            let most = 0.15 * reno + rtt.as_secs_f64() * (full / holds);
            assert!((seconds - reno).abs() < most, "{full}, {queue}: {seconds} s where it is {reno}");
        }
        for (full, milliseconds) in [(100.0, 100), (400.0, 60), (800.0, 200)] {
            let (part, seconds) = Link::new(full, Duration::from_millis(milliseconds)).tooth(full, None);
            assert!((part - 0.7).abs() < 0.05, "{full}: {part}");
            let half = (0.3 * full / 0.4_f64).cbrt() / 2.0;
            assert!((seconds / half - 1.0).abs() < 0.15, "{full}: {seconds} s where it is {half}");
        }
    }

    /// RFC 9438 §4.6: a queue that has been longer, and that somebody keeps short, is left to a CUBIC.
    #[test]
    fn a_loss_at_a_queue_that_is_not_full_leaves_what_cubic_leaves() {
        let rtt = Duration::from_millis(20);
        for (longest, expected) in [(1.8, 1.0 / 1.8), (2.1, 0.7), (5.0, 0.7)] {
            let mut link = Link { holds: 20.0, ..Link::new(20.0, rtt) };
            // There is no queue, then the longest, and then one of half a round trip.
            for window in [20.0, 20.0 * longest, 30.0] {
                link.control.set_cwnd(0, window * MSS);
                link.round(Some(1));
            }
            let event = Congestion { cause: Cause::Loss, flight: link.control.cwnd(0), next: link.next };
            assert!(link.control.on_congestion(0, &event, link.now));
            let part = link.window() / 30.0;
            assert!((part - expected).abs() < 0.02, "{longest}: {part}");
        }
    }

    /// RFC 9438 §5.8 leaves out time in which the window is not used. Where now and then a report finds it not full, it is.
    #[test]
    fn a_window_that_is_nearly_always_full_grows_along_the_curve() {
        let of = |idle| Link::new(400.0, Duration::from_millis(60)).tooth(400.0, idle);
        let ((part, seconds), (_, always)) = (of(Some(3)), of(None));
        assert!((part - 0.7).abs() < 0.05 && seconds < 1.15 * always, "{part}, {seconds} and {always} s");
    }

    /// A link that loses packets of its own, none of which is answered: beyond the plateau the window grows by a packet in a round trip,
    /// not ever faster.
    #[test]
    fn losses_that_are_borne_do_not_let_the_curve_run_away() {
        let mut link = Link::new(100.0, Duration::from_millis(100));
        for round in 1..=200 {
            link.control.borne(0, (0.0, 0.0), link.now);
            link.round(None);
            let reno = 100.0 + f64::from(round);
            assert!((link.window() / reno - 1.0).abs() < 0.02, "{} where a Reno has {reno}", link.window());
        }
    }

    /// What is known of one path says nothing of the one that takes its place.
    #[test]
    fn a_path_that_begins_anew_has_no_plateau() {
        let mut link = Link::new(800.0, Duration::from_millis(200));
        link.tooth(800.0, None);
        link.control.restart(0);
        link.control.set_ssthresh(0, 10.0 * MSS);
        for _ in 0..5 {
            link.round(None);
        }
        assert!(link.window() < 16.0, "{}", link.window());
    }
}
