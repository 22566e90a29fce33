//! Whether the packets of a path wait in a queue, as far as round trips tell.
//!
//! A queue makes all round trips longer, and those that follow each other alike. What differs from packet to packet is jitter, and no
//! queue. Where a link lets nobody overtake, what is behind a late packet is late, too: then successive round trips are alike for
//! another reason, and their mean is far above the least. But jitter is always there, and a queue that makes a link drop is longer than
//! it is otherwise: so a mean that is not much above the usual one, where now and then a packet meets hardly a delay, is no queue
//! either. Where packets overtake each other that test is not needed, and would let a queue grow with what is usual.

use clock::{Duration, Instant};

use crate::group::Path;

/// Delays up to a twelfth of the least round trip within these bounds are no queue: hosts, and a sender's own pairs.
const NO_QUEUE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_micros(3_500));
/// Where delays differ from packet to packet, their least and their mean are no queue up to so many such differences: of two
/// independent directions that draw from a range the mean is 2.2, and the least of ten 1. Those of a queue are alike, for packets
/// stand in it one behind the other.
const SCATTERED: (u64, u64) = (2, 3);
/// Packets that leave in the time by which delays differ, at the least, where that is not the queue's doing.
pub(crate) const COARSE: f64 = 1.5;
/// The same where the usual mean is no queue: in one of RED or PIE, which drop at any length of it, delays beside others differ by one
/// or two packets.
const STEADY_COARSE: f64 = 2.5;
/// The mean delay is the usual one up to so many times that, ...
const USUAL: f64 = 1.5;
/// ... and up to so many differences from packet to packet, ...
const STEADY_SCATTERED: u64 = 8;
/// Halves of a round trip of which the usual mean is the mean.
const HALVES: f64 = 64.0;
/// ... where a packet has met no delay of more differences than so many, ...
const HARDLY: u64 = 4;
/// ... within so many halves of a round trip, at most twice as many.
const STRETCH: u32 = 16;
/// Round trips that are looked at, at the least.
const SAMPLES: u64 = 4;
/// A path has paused where nothing has arrived for so long, for a quarter of a round trip, and for so many times as long as usually, ...
const PAUSE: Duration = Duration::from_millis(20);
/// See [`PAUSE`].
const UNUSUAL: u64 = 4;
/// ... and the next round trip is longer than the one before by so many tenths of that. In a queue both are.
const PAUSED: u64 = 9;
/// The least round trip after a pause is that of so long.
const AFTER_PAUSE: Duration = Duration::from_secs(1);

/// Samples of which a smoothed time is the mean, about; the mean of all that there are until then.
const SMOOTHED: u64 = 16;

fn smoothed(before: Duration, sample: Duration, samples: u64) -> Duration {
    let parts = samples.clamp(1, SMOOTHED);
    (before * (parts - 1) + sample) / parts
}

/// By how much round trips differ from the ones before, smoothed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scatter {
    mean: Duration,
    differences: u64,
    last: Option<Duration>,
}

impl Scatter {
    pub(crate) fn on_rtt(&mut self, rtt: Duration) {
        if let Some(last) = self.last.replace(rtt) {
            self.differences += 1;
            self.mean = smoothed(self.mean, last.max(rtt) - last.min(rtt), self.differences);
        }
    }

    pub(crate) fn mean(&self) -> Duration {
        self.mean
    }
}

/// Round trips of some time.
#[derive(Clone, Copy, Debug)]
struct Half {
    least: Duration,
    sum: Duration,
    samples: u64,
}

impl Default for Half {
    fn default() -> Self {
        Self { least: Duration::MAX, sum: Duration::ZERO, samples: 0 }
    }
}

/// What is usual on a path.
#[derive(Clone, Copy, Debug)]
struct Usual {
    /// The mean round trip in seconds, and of how many halves of one, at most [`HALVES`].
    mean: f64,
    halves: f64,
    /// By how much successive round trips differ, in seconds, over the same time.
    scatter: f64,
    /// The least round trip of this stretch, and of the one before.
    least: [Duration; 2],
    /// Halves in this stretch.
    stretch: u32,
}

impl Usual {
    fn after(before: Option<Self>, half: &Half, scatter: Duration) -> Self {
        let mean = (half.sum / half.samples.max(1)).as_secs_f64();
        let scatter = scatter.as_secs_f64();
        let Some(mut usual) = before else {
            return Self { mean, halves: 1.0, scatter, least: [half.least; 2], stretch: 1 };
        };
        usual.halves = (usual.halves + 1.0).min(HALVES);
        usual.mean += (mean - usual.mean) / usual.halves;
        usual.scatter += (scatter - usual.scatter) / usual.halves;
        usual.least[0] = usual.least[0].min(half.least);
        usual.stretch += 1;
        if usual.stretch >= STRETCH {
            (usual.least, usual.stretch) = ([half.least, usual.least[0]], 0);
        }
        usual
    }
}

/// What is known of the round trips of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    /// This half of a round trip, and the one before.
    halves: [Half; 2],
    since: Instant,
    last_at: Instant,
    /// The time between two samples, smoothed.
    spacing: Duration,
    scatter: Scatter,
    usual: Option<Usual>,
    are_quiet: bool,
    /// The round trips are of packets that left before the last reduction.
    are_stale: bool,
    /// The least round trip since the path paused last, as a link through the air does when it is handed over: it may be longer then.
    base: Option<Duration>,
    /// The path has paused: the least round trip since, and until when it is looked for.
    paused: Option<(Duration, Instant)>,
    /// The largest window in bytes that was seen without a queue: in a round trip the link carries as much.
    carried: f64,
}

impl Delays {
    /// A round trip was measured; `path` is as before it.
    pub(crate) fn on_rtt(&mut self, rtt: Duration, path: &Path, is_reordered: bool, now: Instant) {
        self.look_for_pause(rtt, path, now);
        self.scatter.on_rtt(rtt);
        if !path.in_recovery && std::mem::take(&mut self.are_stale) {
            // What waited then tells nothing of the window now.
            (self.halves, self.since) = (Default::default(), now);
        }
        self.are_stale = path.in_recovery;
        if now.saturating_since(self.since) >= path.srtt / 2 && self.halves[0].samples >= SAMPLES {
            self.usual = Some(Usual::after(self.usual, &self.halves[0], self.scatter.mean()));
            self.halves = [Half::default(), self.halves[0]];
            self.since = now;
        }
        let half = &mut self.halves[0];
        half.least = half.least.min(rtt);
        half.sum += rtt;
        half.samples += 1;
        self.are_quiet = self.show_no_queue(path, 1, is_reordered);
        if self.are_quiet {
            self.carried = self.carried.max(path.cwnd);
        }
    }

    /// The path was silent, and answers again: it may be longer now.
    pub(crate) fn revived(&self) -> Self {
        Self { scatter: Scatter { last: None, ..self.scatter }, carried: self.carried, ..Self::default() }
    }

    fn look_for_pause(&mut self, rtt: Duration, path: &Path, now: Instant) {
        let base = self.base.map_or(path.base_rtt.min(rtt), |base| base.min(rtt));
        self.base = Some(base);
        let before = std::mem::replace(&mut self.last_at, now);
        let gap = if self.last().is_some() { now.saturating_since(before) } else { Duration::ZERO };
        let is_long = gap > PAUSE.max(path.srtt / 4).max(self.spacing * UNUSUAL);
        self.spacing = smoothed(self.spacing, gap, SMOOTHED);
        if is_long && self.last().is_some_and(|last| rtt > last + gap * PAUSED / 10) {
            self.paused = Some((Duration::MAX, now + AFTER_PAUSE));
        }
        if let Some((least, until)) = &mut self.paused {
            *least = (*least).min(rtt);
            if now >= *until {
                self.base = Some(*least);
                self.paused = None;
            }
        }
    }

    /// Whether the last round trips met no queue.
    pub(crate) fn are_quiet(&self) -> bool {
        self.are_quiet
    }

    /// The last round trip.
    pub(crate) fn last(&self) -> Option<Duration> {
        self.scatter.last
    }

    /// Whether there are enough of them to tell.
    pub(crate) fn are_known(&self) -> bool {
        self.samples() >= SAMPLES
    }

    fn samples(&self) -> u64 {
        self.halves.iter().map(|half| half.samples).sum()
    }

    /// Whether delays are no more than so many times those that are no queue. Packets that overtake each other (`is_reordered`) stand in
    /// none.
    pub(crate) fn show_no_queue(&self, path: &Path, times: u64, is_reordered: bool) -> bool {
        if !self.are_known() {
            return self.are_quiet;
        }
        let [a, b] = self.halves;
        let (least, mean) = (a.least.min(b.least), (a.sum + b.sum) / self.samples());
        let base = self.base.unwrap_or(path.base_rtt).min(least);
        let floor = (base / 12).clamp(NO_QUEUE.0, NO_QUEUE.1);
        // Where few packets are under way, the queue itself differs by a packet from one to the next.
        let in_a_round_trip = path.cwnd.max(self.carried) / path.mss;
        let scatter = self.scatter.mean();
        let differs = scatter.as_secs_f64() * in_a_round_trip / path.srtt.as_secs_f64().max(1e-6);
        let scatter = if differs > COARSE || is_reordered { scatter } else { Duration::ZERO };
        let is_below = |delay: Duration, most: Duration| delay <= floor.max(most) * times;
        if is_below(least - base, scatter * SCATTERED.0) && is_below(mean - base, scatter * SCATTERED.1) {
            return true;
        }
        let Some(usual) = self.usual.filter(|_| differs > STEADY_COARSE && !is_reordered) else { return false };
        let [a, b] = usual.least.map(|least| least.saturating_sub(base));
        let scatter = scatter.max(Duration::from_secs_f64(usual.scatter));
        let most = Duration::from_secs_f64(usual.mean).saturating_sub(base).mul_f64(USUAL);
        a.min(b) <= floor.max(scatter * HARDLY) && is_below(mean - base, most.min(scatter * STEADY_SCATTERED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of a path of 60 ms with twenty packets after these round trips, each so long after the one before, in milliseconds.
    fn after(samples: impl IntoIterator<Item = (u64, u64)>) -> Delays {
        with(20.0, samples)
    }

    /// The same with so many packets.
    fn with(packets: f64, samples: impl IntoIterator<Item = (u64, u64)>) -> Delays {
        let (srtt, window) = (Duration::from_millis(60), packets * 1_500.0);
        let mut path = Path { srtt, ..Path::new(window, window, 1_500.0) };
        // A host that has been up for long.
        let (mut delays, mut now) = (Delays::default(), Instant::ZERO + Duration::from_secs(100_000));
        for (wait, rtt) in samples {
            now += Duration::from_millis(wait);
            let rtt = Duration::from_millis(rtt);
            path.base_rtt = path.base_rtt.min(rtt);
            delays.on_rtt(rtt, &path, false, now);
        }
        delays
    }

    /// From the second sample on; smoothed from zero it would be 4 ms after the fourth.
    #[test]
    fn the_first_differences_count_in_full() {
        let mut scatter = Scatter::default();
        for rtt in [60, 80, 60, 80] {
            scatter.on_rtt(Duration::from_millis(rtt));
        }
        assert_eq!(scatter.mean(), Duration::from_millis(20));
    }

    #[test]
    fn a_longer_link_after_a_pause_has_no_queue() {
        let before = || std::iter::repeat_n((5, 60), 20);
        let longer = || std::iter::repeat_n((5, 72), 300);
        assert!(after(before()).are_quiet());
        assert!(after(before().chain([(100, 160)]).chain(longer())).are_quiet());
        assert!(!after(before().chain(longer())).are_quiet(), "without a pause");
    }

    /// Where the order is kept and many packets are under way, hardly one meets no delay: of a least round trip that is four differences
    /// above the least ever nothing waits in a queue, of one that is further above something does.
    #[test]
    fn jitter_that_keeps_the_order_rarely_shows_the_least_delay() {
        for (least, is_quiet) in [(80, true), (100, false)] {
            let jitter = (0..300).map(|count| (5, least + count % 2 * 8));
            assert_eq!(after(std::iter::once((5, 60)).chain(jitter)).are_quiet(), is_quiet, "{least}");
        }
    }

    /// Jitter is less for a moment, while the delay is what it usually is: nothing waits in a queue.
    #[test]
    fn a_calm_moment_of_jitter_is_no_queue() {
        let jitter = (0..300).map(|count| (5, 80 + count % 2 * 8));
        let calm = std::iter::repeat_n((5, 84), 24);
        assert!(with(200.0, std::iter::once((5, 60)).chain(jitter).chain(calm)).are_quiet());
    }

    /// What others fill is no pause, however seldom a packet of ours meets it.
    #[test]
    fn seldom_a_packet_in_a_queue_is_no_pause() {
        let queue = std::iter::repeat_n((40, 110), 60);
        assert!(!after(std::iter::repeat_n((40, 60), 20).chain(queue)).are_quiet());
    }
}
