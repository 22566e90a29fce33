//! When a packet would arrive on each path, and which path is the fastest (ALGORITHMS §6.1).

use std::collections::VecDeque;

use clock::{Duration, Instant};
use scheduler::{Decision, FastestPathFirst, PacketMeta, PathId, PathScheduler, PathView};

use super::config::PathConfig;

/// The expected delay of a path is at most so many times that of the base exchange (M3).
const SLOWEST: u64 = 4;

/// The expected delivery times of a flow's paths.
#[derive(Clone, Debug)]
pub(crate) struct Forecast {
    fpf: FastestPathFirst,
    views: Vec<PathView>,
    known: Vec<Known>,
}

/// What is expected of a packet when it departs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// When it has left the bottleneck, if nobody else uses it.
    pub leaves: Instant,
    /// When it arrives.
    pub arrives: Instant,
}

#[derive(Clone, Debug)]
struct Known {
    /// The delay of the base exchange; what lies above it in the estimate is other people's queue.
    base: Duration,
    back: Duration,
    /// The least round-trip time, by the base exchange or since.
    round_trip: Duration,
    /// What departed and was not answered, in order.
    departed: VecDeque<(Instant, Expected)>,
}

impl Forecast {
    /// `bytes` is a full packet.
    pub(crate) fn new(paths: &[PathConfig], bytes: u32) -> Self {
        let view = |(index, path): (usize, &PathConfig)| PathView {
            id: PathId(u16::try_from(index).unwrap_or(u16::MAX)),
            open: true,
            delay: path.delay,
            rate: path.rate.max(1),
            ..PathView::default()
        };
        let known = |path: &PathConfig| Known {
            base: path.delay,
            back: path.back,
            round_trip: path.delay + path.back + Duration::of_transmission(u64::from(bytes), path.rate.max(1)),
            departed: VecDeque::new(),
        };
        Self {
            fpf: FastestPathFirst::default(),
            views: paths.iter().enumerate().map(view).collect(),
            known: paths.iter().map(known).collect(),
        }
    }

    /// The path of those `eligible` on which `bytes` arrive earliest.
    #[inline]
    pub(crate) fn choose(&mut self, now: Instant, bytes: u32, eligible: impl Fn(usize) -> bool) -> Option<usize> {
        for (index, view) in self.views.iter_mut().enumerate() {
            view.open = eligible(index);
        }
        match self.fpf.select(&PacketMeta { len: bytes as usize, ..PacketMeta::default() }, &self.views, now) {
            Decision::Send(path) => Some(usize::from(path.0)),
            _ => None,
        }
    }

    /// As [`Forecast::choose`], with `probed` as if it were as idle as the base exchange had it: so a probe comes in order
    /// if its path is not congested any more (paper 1, §IV-F).
    pub(crate) fn choose_or_probe(
        &mut self,
        now: Instant,
        bytes: u32,
        probed: usize,
        eligible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let base = self.known.get(probed).map(|known| known.base)?;
        let estimate = std::mem::replace(&mut self.views.get_mut(probed)?.delay, base);
        let path = self.choose(now, bytes, |path| path == probed || eligible(path));
        self.views.get_mut(probed)?.delay = estimate;
        path
    }

    /// `bytes` depart on `path`: returns when they are expected to leave its bottleneck, and when to arrive.
    #[inline]
    pub(crate) fn depart(&mut self, path: usize, now: Instant, bytes: u32) -> Expected {
        let (Some(view), Some(known)) = (self.views.get_mut(path), self.known.get_mut(path)) else {
            return Expected { leaves: now, arrives: now };
        };
        view.free_at = view.free_at.max(now) + Duration::of_transmission(u64::from(bytes), view.rate);
        let expected = Expected { leaves: view.free_at, arrives: view.free_at + view.delay };
        known.departed.push_back((now, expected));
        expected
    }

    /// As [`Forecast::depart`], of a heartbeat, whose answer does not come to [`Forecast::answered`].
    pub(crate) fn depart_aside(&mut self, path: usize, now: Instant, bytes: u32) -> Expected {
        let Some(view) = self.views.get_mut(path) else { return Expected { leaves: now, arrives: now } };
        view.free_at = view.free_at.max(now) + Duration::of_transmission(u64::from(bytes), view.rate);
        Expected { leaves: view.free_at, arrives: view.free_at + view.delay }
    }

    /// What is `expected`, if nobody else uses the path: what a probe has to keep.
    pub(crate) fn as_idle(&self, path: usize, expected: Expected) -> Expected {
        let base = self.known.get(path).map_or(Duration::ZERO, |known| known.base);
        Expected { arrives: expected.leaves + base, ..expected }
    }

    /// What departed on `path` at `sent` is answered: returns what was expected of it, once. A path keeps its packets in
    /// order, so what departed before and was not answered will not be.
    #[inline]
    pub(crate) fn answered(&mut self, path: usize, sent: Instant) -> Option<Expected> {
        let departed = &mut self.known.get_mut(path)?.departed;
        while departed.front().is_some_and(|(departure, _)| *departure < sent) {
            departed.pop_front();
        }
        let is_it = departed.front().is_some_and(|(departure, _)| *departure == sent);
        if is_it { departed.pop_front().map(|(_, expected)| expected) } else { None }
    }

    /// What was `expected` is answered at `now`: how much later it arrived, in seconds. The way back is taken to be as long
    /// as the base exchange had it (M2): what delays packets is ahead of them.
    #[inline]
    pub(crate) fn excess(&self, path: usize, expected: Expected, now: Instant) -> f64 {
        let Some(known) = self.known.get(path) else { return 0.0 };
        (now.as_nanos().cast_signed() - (expected.arrives + known.back).as_nanos().cast_signed()) as f64 / 1e9
    }

    /// Takes `gain` of the delay that an answer at `now` tells of into the path's (M3).
    #[inline]
    pub(crate) fn correct(&mut self, path: usize, expected: Expected, now: Instant, gain: f64) {
        let (Some(view), Some(known)) = (self.views.get_mut(path), self.known.get(path)) else { return };
        let observed = (now - (expected.leaves + known.back)).max(known.base).min(known.base * SLOWEST);
        view.delay = view.delay.mul_f64(1.0 - gain) + observed.mul_f64(gain);
    }

    /// A round-trip sample of a path.
    #[inline]
    pub(crate) fn sample(&mut self, path: usize, rtt: Duration) {
        if let Some(known) = self.known.get_mut(path) {
            known.round_trip = known.round_trip.min(rtt);
        }
    }

    /// Of what was given to a path no more than `packets` of `bytes` can wait still: expectations drift from the truth
    /// after losses.
    #[inline]
    pub(crate) fn at_most(&mut self, path: usize, now: Instant, packets: u64, bytes: u32) {
        if let Some(view) = self.views.get_mut(path) {
            let all = Duration::of_transmission(packets * u64::from(bytes), view.rate);
            view.free_at = view.free_at.min(now + all);
        }
    }

    /// The path is idle.
    pub(crate) fn restart(&mut self, path: usize, now: Instant) {
        if let Some(view) = self.views.get_mut(path) {
            view.free_at = view.free_at.min(now);
        }
    }

    /// The least round-trip time of a path.
    pub(crate) fn round_trip(&self, path: usize) -> Duration {
        self.known.get(path).map_or(Duration::ZERO, |known| known.round_trip)
    }

    /// The least round-trip time of all paths.
    pub(crate) fn least_round_trip(&self) -> Duration {
        self.known.iter().map(|known| known.round_trip).min().unwrap_or_default()
    }

    /// The transmission time of `bytes` at the path's bottleneck, in seconds.
    pub(crate) fn transmission(&self, path: usize, bytes: u32) -> f64 {
        let rate = self.views.get(path).map_or(1, |view| view.rate);
        Duration::of_transmission(u64::from(bytes), rate).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_follows_errors_within_bounds() {
        let delay = Duration::from_millis(60);
        let path = PathConfig { delay, back: delay, rate: 8_000_000 };
        let mut forecast = Forecast::new(&[path], 1250);
        let first = forecast.depart(0, Instant::ZERO, 1250);
        let second = forecast.depart(0, Instant::ZERO, 1250);
        assert_eq!(first.arrives.as_nanos(), 61_250_000);
        // 40 ms of somebody else's queue: answered at 61.25 + 60 + 40 ms.
        let now = first.arrives + Duration::from_millis(100);
        assert!((forecast.excess(0, first, now) - 0.04).abs() < 1e-12);
        forecast.correct(0, first, now, 0.25);
        assert_eq!(forecast.views[0].delay, Duration::from_millis(70));
        // The next one has met the same queue: its news is 40 ms again, however much of that is known by now.
        forecast.correct(0, second, second.arrives + Duration::from_millis(100), 0.25);
        assert_eq!(forecast.views[0].delay.as_micros(), 77_500);
        for late in [0, 9_000] {
            (0..200).for_each(|_| forecast.correct(0, first, first.arrives + Duration::from_millis(60 + late), 0.25));
            let bound = Duration::from_millis(if late == 0 { 60 } else { 240 });
            assert!((forecast.views[0].delay.as_secs_f64() - bound.as_secs_f64()).abs() < 1e-6);
        }
    }

    #[test]
    fn an_answer_finds_what_was_expected_once() {
        let delay = Duration::from_millis(60);
        let mut forecast = Forecast::new(&[PathConfig { delay, back: delay, rate: 8_000_000 }], 1250);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let expected: Vec<Expected> = (1..=3).map(|ms| forecast.depart(0, at(ms), 1250)).collect();
        assert_eq!(forecast.answered(0, at(2)), Some(expected[1]));
        assert_eq!(forecast.answered(0, at(2)), None);
        assert_eq!(forecast.answered(0, at(1)), None, "what was passed is forgotten");
        assert_eq!(forecast.answered(0, at(3)), Some(expected[2]));
    }
}
