//! When a packet would arrive on each path, and which path is the fastest (ALGORITHMS §6.1).

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

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The delay of the base exchange; what lies above it in the estimate is other people's queue.
    base: Duration,
    back: Duration,
    /// The least round-trip time, by the base exchange or since.
    round_trip: Duration,
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

    /// `bytes` depart on `path`: returns when they are expected to arrive.
    #[inline]
    pub(crate) fn depart(&mut self, path: usize, now: Instant, bytes: u32) -> Instant {
        let Some(view) = self.views.get_mut(path) else { return now };
        view.free_at = view.free_at.max(now) + Duration::of_transmission(u64::from(bytes), view.rate);
        view.free_at + view.delay
    }

    /// An acknowledgment of what was expected to arrive at `eta` came at `now`: how much later than expected, in
    /// seconds. The way back is taken to be as long as the base exchange had it (M2): what delays packets is ahead.
    #[inline]
    pub(crate) fn excess(&self, path: usize, eta: Instant, now: Instant) -> f64 {
        let Some(known) = self.known.get(path) else { return 0.0 };
        (now.as_nanos().cast_signed() - (eta + known.back).as_nanos().cast_signed()) as f64 / 1e9
    }

    /// Takes `gain` of an excess into the path's delay (M3).
    #[inline]
    pub(crate) fn correct(&mut self, path: usize, excess: f64, gain: f64) {
        let (Some(view), Some(known)) = (self.views.get_mut(path), self.known.get(path)) else { return };
        let change = Duration::from_secs_f64(excess.abs() * gain);
        let delay = if excess < 0.0 { view.delay.saturating_sub(change) } else { view.delay + change };
        view.delay = delay.max(known.base).min(known.base * SLOWEST);
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
        let eta = forecast.depart(0, Instant::ZERO, 1250);
        assert_eq!(eta.as_nanos(), 61_250_000);
        // 40 ms of somebody else's queue: answered at 61.25 + 60 + 40 ms.
        let now = eta + Duration::from_millis(100);
        assert!((forecast.excess(0, eta, now) - 0.04).abs() < 1e-12);
        forecast.correct(0, 0.04, 0.25);
        let later = Instant::ZERO + Duration::from_secs(1);
        assert_eq!((forecast.depart(0, later, 1250) - later).as_nanos(), 71_250_000);
        forecast.correct(0, -9.0, 0.25);
        assert_eq!(forecast.views[0].delay, Duration::from_millis(60));
        forecast.correct(0, 9.0, 0.25);
        assert_eq!(forecast.views[0].delay, Duration::from_millis(240));
    }
}
