//! Room for a distant path in a window that was made for a near one.
//!
//! A TCP that models its path (BBR) has no more in flight than twice what its rate brings in the least round trip that it has seen, and
//! paces itself by what was delivered. On a near path it fills no queue, so nothing of it waits here, and its window ends long before a
//! packet of a distant path is acknowledged: it would stay on a near path of 20 Mbit/s beside a distant one of 200. But what is
//! acknowledged at once beyond its rate it adds to its window, up to what the rate brings in 100 ms, and believes for five to ten rounds,
//! because receivers and links collect packets (`bbr_ack_aggregation_cwnd` of Linux' `tcp_bbr.c`; draft-ietf-ccwg-bbr §5.5.9).
//!
//! So such a flow is stretched: what would wait on the near paths goes on the distant one, and every five round trips acknowledgments are
//! held, and let go together ([`crate::Bunches`]). A program that has no more by that, or as much in a pause, is left alone.

use crate::equal::RoundTrips;
use clock::{Duration, Instant};

/// The longest time that acknowledgments are held: BBR takes no more for a burst, and timers of TCPs are longer (RFC 6298 (2.4): 1 s;
/// Linux: 200 ms).
const LONGEST: Duration = Duration::from_millis(100);
/// They are held for what a window of two of the least round trips is short of this many of the distant path's: it is to grow.
const WANTED: f64 = 1.25;
/// From one time to the next, in round trips of the distant path: as long as BBR remembers a burst at the least.
const ROUNDS: u64 = 5;
/// After so long it is seen whether the flow has so many times what the nearer paths carry of what it had.
const JUDGED: Duration = Duration::from_secs(3);
const GAIN: f64 = 1.1;
/// ... and after so long whether it has less than this part of that.
const SEEN: Duration = Duration::from_millis(1_200);
const LOSS: f64 = 0.9;
/// After this time, or at once if it neither grows nor falls, there is a pause of at most so long, and another after four times as long,
/// each time: a flow needs to be stretched if it falls to less than this part then.
const TESTED: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_secs(4);
const NEEDED: f64 = 0.9;
/// One falls that has less than this part of what it had in the period before, and grows where that had less than this part of it.
const STEADY: f64 = 0.95;
/// One that is stretched for nothing is left alone for so long, and twice as long each time, up to so many times.
const REST: Duration = Duration::from_secs(20);
const DOUBLINGS: u32 = 4;

/// A path that is not seen for so long cannot be reached any more.
const FORGOTTEN: Duration = Duration::from_secs(1);
/// What was held is heard of so much later, at the latest.
const HEARD: Duration = Duration::from_millis(5);

/// A path is worth it that carries so many times what the flow loses while it is silent, and besides this part of what nearer ones carry.
const WORTH: (f64, f64) = (2.0, 0.05);

/// A distant path, as it is without queues, to a flow that may be stretched for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spare {
    /// The least round trip of all paths.
    pub rtt: Duration,
    /// From sending a packet on this path until it may be acknowledged, on the nearest.
    pub round: Duration,
    /// What the nearer paths are known to deliver, and this one, in bit/s.
    pub rate: u64,
    pub carries: u64,
    /// They have queues, and this one has room.
    pub is_wanted: bool,
}

impl Spare {
    /// What the nearer paths deliver until a packet of this one may be acknowledged, in bytes.
    pub(crate) fn needed(&self) -> f64 {
        self.rate as f64 / 8.0 * self.round.as_secs_f64()
    }

    /// By how much a window of two of the least round trips ends before a packet of this path may be acknowledged.
    fn short(&self) -> Duration {
        self.round.saturating_sub(self.rtt * 2)
    }

    /// For how long acknowledgments are held for it.
    fn hold(&self) -> Duration {
        self.round.mul_f64(WANTED).saturating_sub(self.rtt * 2).min(LONGEST)
    }

    /// Whether a flow is to be stretched for it: its window is too small, and it carries more than that costs.
    pub(crate) fn is_worth(&self) -> bool {
        let (short, every) = (self.short(), (self.round * ROUNDS).as_secs_f64().max(1e-3));
        let (costs, gain) = (short.as_secs_f64() / every, self.carries as f64 / self.rate.max(1) as f64);
        self.hold() > Duration::ZERO && short <= LONGEST && self.rate > 0 && gain >= costs * WORTH.0 + WORTH.1
    }
}

/// A flow that is stretched.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    /// What the flow had before, what of that the nearer paths carry, and the least that it has had in a period since, in bytes per second.
    had: f64,
    near: f64,
    least: f64,
    began: Instant,
    /// When it was judged last, and the most that it has had in a period since.
    judged_at: Instant,
    most: f64,
    /// The longest round trip of the paths that were wanted ever: bunches are so many of it apart.
    round: Duration,
    /// For how long acknowledgments are held.
    hold: Duration,
    held_until: Instant,
    /// When a path was wanted last.
    wanted_at: Instant,
    /// When the next pause is, and how long after it another.
    test_at: Instant,
    interval: Duration,
    /// Since when there is a pause, and the most that the flow has had in a period of it.
    paused: Option<(Instant, f64)>,
    /// It has fallen in one.
    is_needed: bool,
    /// What it is to have if it has ended because it had as much in a pause, in bytes per second; zero otherwise.
    enough: f64,
    /// The longest round trip of the distant paths that can be reached now, and when one as long was seen last.
    round_trip: (Duration, Instant),
    round_trips: RoundTrips,
}

impl Stretch {
    /// One that begins now for a path, of a flow that had `rate` bytes per second lately.
    pub(crate) fn new(now: Instant, rate: f64, path: &Spare) -> Self {
        let mut stretch = Self {
            had: rate,
            near: rate.min(path.rate as f64 / 8.0),
            least: f64::INFINITY,
            began: now,
            judged_at: now,
            most: 0.0,
            round: Duration::ZERO,
            hold: Duration::ZERO,
            held_until: Instant::ZERO,
            wanted_at: now,
            test_at: now + TESTED,
            interval: TESTED * 4,
            paused: None,
            is_needed: false,
            enough: 0.0,
            round_trip: (Duration::ZERO, now),
            round_trips: RoundTrips::default(),
        };
        stretch.reaches(now, path);
        stretch.wants(now, path);
        stretch
    }

    /// A path is wanted that is worth it.
    pub(crate) fn wants(&mut self, now: Instant, path: &Spare) {
        self.wanted_at = now;
        self.round = self.round.max(path.round);
        self.hold = self.hold.max(path.hold());
    }

    /// A path that is worth it can be reached.
    pub(crate) fn reaches(&mut self, now: Instant, path: &Spare) {
        let (round, since) = self.round_trip;
        if path.round >= round || now - since > FORGOTTEN {
            self.round_trip = (path.round, now);
        }
    }

    /// The program has sent `len` bytes of new data then, up to this number.
    pub(crate) fn sent(&mut self, end: u32, len: u32, at: Instant) {
        self.round_trips.sent(end, len, at);
    }

    /// Until when an acknowledgment of all up to `ack` is held that has come now: until the distant path's would have come, or until a bunch
    /// is let go. There are no bunches where they may not be: a window that leaves something waiting is large enough.
    pub(crate) fn holds(&mut self, now: Instant, ack: u32, may: bool) -> Option<Instant> {
        let is_held = now < self.held_until + HEARD;
        let (round, since) = self.round_trip;
        let equal = self.round_trips.acknowledged(now, ack, round, is_held).filter(|_| now - since <= FORGOTTEN);
        // A program that looks for the least round trip in a pause is to see the distant path's, too.
        equal.max(if self.paused.is_some() { None } else { self.bunches(now, may) })
    }

    /// Until when what comes now is held together with what follows. Nothing is where no path has been wanted for a while.
    fn bunches(&mut self, now: Instant, may: bool) -> Option<Instant> {
        if now < self.held_until {
            return Some(self.held_until);
        }
        let every = self.round * ROUNDS;
        if !may || now < self.held_until + every || now - self.wanted_at >= every {
            return None;
        }
        self.held_until = now + self.hold;
        Some(self.held_until)
    }

    /// Whether it is worth going on, where that is to be judged now: the flow has had so many bytes per second in the last period,
    /// and in the one before.
    pub(crate) fn judge(&mut self, now: Instant, [rate, previous]: [f64; 2]) -> Option<bool> {
        if let Some((since, most)) = &mut self.paused {
            *most = most.max(rate);
            let enough = *most * NEEDED;
            let is_needed = rate < enough || self.round_trips.are_equal();
            if !is_needed && now - *since < PAUSE {
                return None;
            }
            (self.most, self.is_needed) = (0.0, is_needed);
            self.enough = if is_needed { 0.0 } else { enough };
            // It has to get there again.
            (self.paused, self.judged_at) = (None, now + JUDGED * 2);
            (self.test_at, self.interval) = (now + self.interval, self.interval * 4);
            return Some(is_needed);
        }
        if now - self.began >= SEEN {
            if self.least == f64::INFINITY && rate < self.near * LOSS {
                return Some(false);
            }
            self.least = self.least.min(rate);
        }
        self.most = self.most.max(rate);
        if now < self.judged_at + JUDGED {
            return None;
        }
        // BBR drains its paths now and then, and has less for a moment.
        let most = std::mem::take(&mut self.most);
        let changes = most >= self.had * GAIN || rate >= self.least * GAIN || rate < previous * STEADY;
        // One that grows may still get there.
        let is_worth = most >= self.near * GAIN || previous < rate * STEADY && rate >= self.near;
        self.judged_at = now;
        // One that neither grows nor falls may have as much without.
        if is_worth && !self.round_trips.are_equal() && (now >= self.test_at || !changes && !self.is_needed) {
            self.paused = Some((now, rate));
        }
        Some(is_worth)
    }

    /// Whether there is a pause.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// What a flow is to have that is left alone because it had as much in a pause, in bytes per second; zero after any other end.
    pub(crate) fn enough(&self) -> f64 {
        self.enough
    }

    /// Bytes of memory that it takes besides.
    pub(crate) fn memory(&self) -> usize {
        self.round_trips.memory()
    }

    /// Whether nothing was sent for long.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now - self.judged_at > JUDGED * 2
    }
}

/// How long a flow that was stretched for nothing so many times in turn is left alone.
pub(crate) fn rest(failed: u32) -> Duration {
    REST * (1 << failed.min(DOUBLINGS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    /// Paths of these one-way delays in ms and rates in Mbit/s, the second one wanted.
    fn spare((near, far): (u64, u64), (rate, carries): (u64, u64)) -> Spare {
        Spare {
            rtt: ms(2 * near),
            round: ms(near + far),
            rate: rate * 1_000_000,
            carries: carries * 1_000_000,
            is_wanted: true,
        }
    }

    /// A window of four times the near delay is short of what the far path needs by far − 3·near, a fifth of which is lost per round.
    #[test]
    fn a_path_is_worth_it_that_a_burst_reaches_and_that_carries_more_than_that_costs() {
        for (delays, rates, is_worth) in [
            ((5, 40), (20, 200), true),
            ((20, 120), (50, 50), true),
            ((20, 320), (50, 50), false),
            ((20, 43), (50, 50), false),
            ((20, 45), (50, 50), true),
            ((10, 30), (300, 30), true),
            ((10, 30), (300, 12), false),
            ((10, 120), (300, 100), true),
            ((10, 120), (300, 60), false),
            ((10, 120), (0, 60), false),
        ] {
            assert_eq!(spare(delays, rates).is_worth(), is_worth, "{delays:?} {rates:?}");
        }
    }

    #[test]
    fn acknowledgments_are_held_for_what_the_window_is_short_of_and_seldom() {
        let path = spare((5, 40), (20, 200));
        let mut stretch = Stretch::new(at(1000), 2.5e6, &path);
        // Five quarters of 45 ms, less 20.
        let until = at(1000) + Duration::from_micros(36_250);
        assert_eq!([1000, 1010, 1036].map(|now| stretch.holds(at(now), 0, true)), [Some(until); 3]);
        let every: Vec<u64> = (1037..1500)
            .filter(|now| {
                stretch.wants(at(*now), &path);
                stretch.holds(at(*now), 0, true).is_some()
            })
            .collect();
        assert_eq!((every.first(), every.len()), (Some(&1262), 37), "{every:?}");
        // However short it is, timers of programs are longer.
        let mut far = Stretch::new(at(1000), 2.5e6, &spare((10, 120), (50, 50)));
        assert_eq!(far.holds(at(1000), 0, true), Some(at(1100)));
    }

    #[test]
    fn nothing_is_held_of_what_waits_or_does_not_want_the_path() {
        let new = || Stretch::new(at(1000), 2.5e6, &spare((5, 40), (20, 200)));
        assert_eq!((new().holds(at(1100), 0, false), new().holds(at(1100), 0, true).is_some()), (None, true));
        assert_eq!((new().holds(at(1224), 0, true).is_some(), new().holds(at(1225), 0, true)), (true, None));
    }

    #[test]
    fn what_has_no_more_after_a_while_rests_ever_longer() {
        let new = || Stretch::new(at(1000), 2.5e6, &spare((5, 40), (20, 200)));
        let mut stretch = new();
        assert_eq!((stretch.judge(at(2199), [0.0; 2]), stretch.judge(at(2200), [2.2e6; 2])), (None, Some(false)));
        let mut stretch = new();
        assert_eq!((stretch.judge(at(2200), [2.3e6; 2]), stretch.judge(at(3999), [2.3e6; 2])), (None, None));
        assert_eq!((stretch.judge(at(4000), [2.76e6; 2]), stretch.judge(at(4001), [0.0; 2])), (Some(true), None));
        assert_eq!(stretch.judge(at(7000), [2.74e6; 2]), Some(false));
        assert_eq!([0, 1, 4, 9].map(rest), [20, 40, 320, 320].map(Duration::from_secs));
    }

    /// One of 60 Mbit/s beside a near path of 20, as a BBR has after its start.
    #[test]
    fn what_has_no_more_than_before_is_paused_at_once() {
        for (first, is_paused) in [(7.2e6, true), (6.6e6, false)] {
            let mut stretch = Stretch::new(at(1000), 7.5e6, &spare((5, 40), (20, 200)));
            assert_eq!((stretch.judge(at(2200), [first; 2]), stretch.judge(at(4000), [7.4e6; 2])), (None, Some(true)));
            assert_eq!(stretch.is_paused(), is_paused);
            let mut falls = Stretch::new(at(1000), 7.5e6, &spare((5, 40), (20, 200)));
            assert_eq!((falls.judge(at(4000), [6.9e6, 7.4e6]), falls.is_paused()), (Some(true), false));
        }
        for (without, is_needed) in [(6.6e6, true), (7.4e6, false)] {
            let mut stretch = Stretch::new(at(1000), 7.5e6, &spare((5, 40), (20, 200)));
            assert_eq!((stretch.judge(at(2200), [7.3e6; 2]), stretch.judge(at(3000), [7.4e6; 2])), (None, None));
            assert_eq!((stretch.judge(at(4000), [7e6; 2]), stretch.is_paused()), (Some(true), true));
            assert_eq!(
                (stretch.judge(at(5000), [7.4e6; 2]), stretch.judge(at(8000), [without; 2])),
                (None, Some(is_needed))
            );
            if is_needed {
                assert_eq!(
                    (stretch.judge(at(17_000), [7e6; 2]), stretch.is_paused()),
                    (Some(true), false),
                    "once is enough"
                );
            }
        }
    }

    /// It stops, and has four packets outstanding for 200 ms, as `bbr_update_min_rtt` of Linux' `tcp_bbr.c` has it.
    #[test]
    fn a_program_that_looks_in_a_pause_sees_the_distant_path_and_ends_it() {
        let mut stretch = Stretch::new(at(1000), 2.5e6, &spare((5, 40), (20, 200)));
        assert_eq!(
            (stretch.judge(at(20_999), [4e6; 2]), stretch.judge(at(24_000), [3.5e6; 2])),
            (Some(true), Some(true))
        );
        assert!(stretch.is_paused());
        let mut hears = |now, sent: u32, acked: u32| {
            stretch.reaches(at(now), &spare((5, 40), (20, 200)));
            if sent > 0 {
                stretch.sent(sent * 1000, 1000, at(now - 10));
            }
            stretch.holds(at(now), acked * 1000, true).is_some()
        };
        assert!((24_011..24_040).zip(31..60).all(|(now, sent)| !hears(now, sent, sent - 30)));
        assert!((24_036..24_062).zip(31..).all(|(now, acked)| hears(now, 0, acked)), "it has stopped");
        let looks = (24_070..24_270).step_by(10).zip(60..).filter(|(now, sent)| hears(*now, *sent, sent - 3));
        assert!(looks.count() > 15);
        assert_eq!((stretch.judge(at(24_500), [4e6; 2]), stretch.is_paused()), (Some(true), false));
    }

    #[test]
    fn what_has_as_much_without_is_not_stretched() {
        let path = spare((5, 40), (20, 200));
        for (without, is_needed) in [(3.5e6, true), (3.7e6, false)] {
            let mut stretch = Stretch::new(at(1000), 2.5e6, &path);
            assert_eq!((stretch.judge(at(20_999), [4e6; 2]), stretch.is_paused()), (Some(true), false));
            assert_eq!((stretch.judge(at(24_000), [3.5e6; 2]), stretch.is_paused()), (Some(true), true));
            stretch.wants(at(24_100), &path);
            assert_eq!((stretch.holds(at(24_100), 0, true), stretch.judge(at(25_000), [4e6; 2])), (None, None));
            let early = stretch.judge(at(26_000), [without; 2]);
            assert_eq!((early, stretch.is_paused()), (is_needed.then_some(true), !is_needed));
            if !is_needed {
                assert_eq!(
                    (stretch.judge(at(27_999), [without; 2]), stretch.judge(at(28_000), [without; 2])),
                    (None, Some(false))
                );
                continue;
            }
            stretch.wants(at(26_001), &path);
            assert!(stretch.holds(at(26_002), 0, true).is_some());
            // It has time to get there again, and is tested no sooner than after four times as long.
            assert_eq!((stretch.judge(at(34_999), [0.0; 2]), stretch.judge(at(35_000), [4e6; 2])), (None, Some(true)));
            assert_eq!((stretch.judge(at(105_999), [4e6; 2]), stretch.is_paused()), (Some(true), false));
            assert_eq!((stretch.judge(at(109_000), [4e6; 2]), stretch.is_paused()), (Some(true), true));
        }
    }
}
