//! The engine: phases, recovery epochs, rounds, floors and undo, for every rule.

use clock::{Duration, Instant, Rng};
use smallvec::SmallVec;

use crate::delivery::{LostPacket, RateSample};
use crate::group::{Group, Path};
use crate::math::ceil;
use crate::rule::{Cause, Round, WindowRule};
use crate::slow_start::{RoundTrip, Search, SlowStart};

/// How large the first window is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InitialWindow {
    /// RFC 3390: `min(4·MSS, max(2·MSS, 4380 bytes))`.
    Rfc3390,
    /// RFC 6928: `min(10·MSS, max(2·MSS, 14600 bytes))`.
    Rfc6928,
    /// So many packets.
    Packets(u32),
    /// Of CMT-SCTP with coupled paths: the association has one first window, divided by so many paths, and every path
    /// at least a packet.
    Shared(u32),
}

impl InitialWindow {
    /// The window in bytes for packets of `mss` bytes.
    pub fn bytes(self, mss: f64) -> f64 {
        match self {
            Self::Rfc3390 => (4.0 * mss).min((2.0 * mss).max(4380.0)),
            Self::Rfc6928 => (10.0 * mss).min((2.0 * mss).max(14600.0)),
            Self::Packets(packets) => f64::from(packets) * mss,
            Self::Shared(paths) => {
                let share = ceil(4.0 * mss / f64::from(paths.max(1)));
                share.min((2.0 * mss).max(4380.0)).max(mss)
            }
        }
    }
}

/// RFC 5681 §3.1 leaves open what a window equal to the threshold does (ALGORITHMS §13 A5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartTest {
    /// Slow start below the threshold only, as TCPs do.
    Below,
    /// Also at the threshold, as SCTP does (RFC 9260 §7.2.1).
    BelowOrEqual,
}

/// How a reduced window is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRounding {
    /// Window and threshold are the same real number, not below the rule's floor.
    Exact,
    /// As in ns-2: the threshold is a whole number of packets and has the floor, the window is neither.
    WholePacketThreshold,
}

/// What does not depend on the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineConfig {
    /// The first window.
    pub initial_window: InitialWindow,
    /// The first slow-start threshold in bytes.
    pub initial_ssthresh: f64,
    /// L of RFC 3465: most packets that one acknowledgment adds in slow start.
    pub byte_counting_limit: f64,
    /// Grow only when the window was the limit (RFC 5681 §4.1, RFC 7661). ns-2 grows always.
    pub window_limited_growth: bool,
    /// What a window equal to the threshold does.
    pub slow_start_test: SlowStartTest,
    /// How a reduced window is rounded.
    pub rounding: WindowRounding,
    /// How slow start ends where nothing is lost. Its owner tells of round trips with [`Controller::on_round_trip`].
    pub slow_start: SlowStart,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            initial_window: InitialWindow::Rfc6928,
            initial_ssthresh: f64::INFINITY,
            byte_counting_limit: 1.0,
            window_limited_growth: true,
            slow_start_test: SlowStartTest::Below,
            rounding: WindowRounding::Exact,
            slow_start: SlowStart::Standard,
        }
    }
}

/// Newly acknowledged data on a path. Sequence positions are any counter that grows with what is sent on the path
/// (bytes, packets or sequence numbers), the same in all calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acked {
    /// Newly acknowledged bytes.
    pub bytes: u64,
    /// Bytes outstanding on the path before this acknowledgment.
    pub flight: u64,
    /// Everything before this position is acknowledged.
    pub upto: u64,
    /// The next new data has this position.
    pub next: u64,
    /// A round-trip sample, if this acknowledgment gave one.
    pub rtt: Option<Duration>,
    /// The smoothed round-trip time; zero without a sample.
    pub srtt: Duration,
}

impl EngineConfig {
    /// As SCTP has it (RFC 9260 §7.2.1): the first threshold is the peer's receive window, slow start includes it. For
    /// the rules with windows in whole bytes: `reno-sp`, `reno-mp`, `rp1`, `rp2`, `lia-byte`. ALGORITHMS §13 A5.
    pub fn sctp(initial_window: InitialWindow, receiver_window: u64) -> Self {
        Self {
            initial_window,
            initial_ssthresh: receiver_window as f64,
            slow_start_test: SlowStartTest::BelowOrEqual,
            ..Self::default()
        }
    }

    fn in_slow_start(&self, path: &Path) -> bool {
        match self.slow_start_test {
            SlowStartTest::Below => path.cwnd < path.ssthresh,
            SlowStartTest::BelowOrEqual => path.cwnd <= path.ssthresh,
        }
    }
}

/// A sign of congestion on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Congestion {
    /// What kind of sign.
    pub cause: Cause,
    /// FlightSize in bytes (RFC 5681 §2).
    pub flight: f64,
    /// The next new data has this position: further signs are ignored until all before it is acknowledged.
    pub next: u64,
}

/// How a reduction that turned out wrong is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Window and threshold as before, or larger if they have grown since (RFC 3708, Linux).
    Restore,
    /// RFC 4015 §3.2: threshold as before, window `flight + min(acked, IW)`.
    Eifel {
        /// Bytes outstanding now.
        flight: u64,
        /// Bytes that the acknowledgment at hand covers.
        acked: u64,
    },
}

/// The congestion control of one association over all its paths.
#[derive(Clone, Debug)]
pub struct Controller<R> {
    rule: R,
    config: EngineConfig,
    paths: SmallVec<[Path; 1]>,
    phases: SmallVec<[Phase; 1]>,
}

/// What the engine alone needs to know of a path.
#[derive(Clone, Debug)]
struct Phase {
    /// All before this must be acknowledged before the next reduction.
    recover: u64,
    /// The round ends when something from here on is acknowledged.
    round_end: u64,
    round: Round,
    before: Option<Before>,
    /// The last round-trip sample; zero before the first.
    last_rtt: Duration,
    blocked_until: Instant,
    reductions: u64,
    undone: u64,
    early_reductions: u64,
    /// The next new data had this position when last heard of.
    next: u64,
    /// None where slow start ends with a loss only.
    search: Option<Box<Search>>,
    /// Up to this window in bytes it grows by no less than `by` of itself in a round trip; zero where it does not.
    probed: f64,
    by: f64,
}

/// What the last reduction took away, for undo.
#[derive(Clone, Copy, Debug)]
struct Before {
    cwnd: f64,
    ssthresh: f64,
    /// `pipe_prev` of RFC 4015 §3.2.
    pipe: f64,
}

const NO_SAMPLES: Round = Round {
    min_rtt: Duration::MAX,
    max_rtt: Duration::ZERO,
    sum_rtt: Duration::ZERO,
    samples: 0,
    slow_start: false,
    full: false,
};

impl<R: WindowRule> Controller<R> {
    /// A controller without paths.
    pub fn new(rule: R, config: EngineConfig) -> Self {
        Self { rule, config, paths: SmallVec::new(), phases: SmallVec::new() }
    }

    /// Adds a path for packets of at most `mss` bytes (at least 1) and returns its index.
    pub fn add_path(&mut self, mss: u32) -> usize {
        let mss = f64::from(mss.max(1));
        let cwnd = self.config.initial_window.bytes(mss).max(mss);
        self.paths.push(Path::new(cwnd, self.config.initial_ssthresh, mss));
        self.phases.push(Phase {
            recover: 0,
            round_end: 0,
            round: NO_SAMPLES,
            before: None,
            last_rtt: Duration::ZERO,
            blocked_until: Instant::ZERO,
            reductions: 0,
            undone: 0,
            early_reductions: 0,
            next: 0,
            search: self.config.slow_start.search(),
            probed: 0.0,
            by: 0.0,
        });
        let index = self.paths.len() - 1;
        self.rule.path_added(index);
        index
    }

    /// Closes a path or opens it again. A closed path is left out of coupled sums.
    pub fn set_open(&mut self, path: usize, open: bool) {
        self.paths[path].open = open;
    }

    /// Gives rules that draw their random stream.
    pub fn seed(&mut self, rng: Rng) {
        self.rule.seed(rng);
    }

    /// The route behind `path` changed: its round-trip times are void, its window stands.
    pub fn path_changed(&mut self, path: usize) {
        let state = &mut self.paths[path];
        (state.srtt, state.base_rtt) = (Duration::ZERO, Duration::MAX);
        (state.top_rtt, state.steady_rtt) = (Duration::ZERO, Duration::ZERO);
        let phase = &mut self.phases[path];
        (phase.round, phase.last_rtt) = (NO_SAMPLES, Duration::ZERO);
        (phase.search, phase.probed) = (self.config.slow_start.search(), 0.0);
        self.rule.path_changed(path);
    }

    /// `path` begins anew: nothing that was known of it holds any more, its window neither.
    pub fn restart(&mut self, path: usize) {
        self.path_changed(path);
        let state = &mut self.paths[path];
        state.in_recovery = false;
        state.cwnd = self.config.initial_window.bytes(state.mss).max(state.mss);
        state.ssthresh = self.config.initial_ssthresh;
    }

    /// How slow start ends on paths that are added or changed from now on.
    pub fn set_slow_start(&mut self, slow_start: SlowStart) {
        self.config.slow_start = slow_start;
    }

    /// Tells the retransmission timeout of `path`, which rules read that block a path; 1 s until then.
    pub fn set_rto(&mut self, path: usize, rto: Duration) {
        self.paths[path].rto = rto;
    }

    /// Until then no new data may go out on `path`; retransmissions may. [`Instant::ZERO`] for never.
    pub fn blocked_until(&self, path: usize) -> Instant {
        self.phases[path].blocked_until
    }

    /// How often the window of `path` was reduced so far, for whatever sign, and how often that was taken back.
    pub fn reductions(&self, path: usize) -> (u64, u64) {
        (self.phases[path].reductions, self.phases[path].undone)
    }

    /// The rate in bit/s above which nothing may go out on `path`; `None` for any.
    #[inline]
    pub fn pace(&self, path: usize) -> Option<u64> {
        self.rule.pace(path).filter(|rate| *rate > 0)
    }

    /// How often delays, not losses, have cut the window of `path` so far.
    pub fn early_reductions(&self, path: usize) -> u64 {
        self.phases[path].early_reductions
    }

    /// The window of the association in bytes: the sum over its open paths (the upper level of mHIP).
    pub fn association_window(&self) -> f64 {
        self.paths.iter().filter(|path| path.open).map(|path| path.cwnd).sum()
    }

    /// The slow-start threshold of the association in bytes: the sum over its open paths.
    pub fn association_ssthresh(&self) -> f64 {
        self.paths.iter().filter(|path| path.open).map(|path| path.ssthresh).sum()
    }

    /// The paths as rules see them.
    pub fn group(&self, now: Instant) -> Group<'_> {
        Group { paths: &self.paths, now }
    }

    /// The paths, for status and traces.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// The rule.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// The rule, for what its owner tells it besides.
    pub fn rule_mut(&mut self) -> &mut R {
        &mut self.rule
    }

    /// The congestion window of `path` in bytes.
    pub fn cwnd(&self, path: usize) -> f64 {
        self.paths[path].cwnd
    }

    /// The slow-start threshold of `path` in bytes.
    pub fn ssthresh(&self, path: usize) -> f64 {
        self.paths[path].ssthresh
    }

    /// True while `path` waits for what was outstanding at its last reduction.
    pub fn in_recovery(&self, path: usize) -> bool {
        self.paths[path].in_recovery
    }

    /// Sets the window of `path` in bytes (not below one packet), for what is not congestion: the start after a
    /// handshake, or a window validated from outside.
    pub fn set_cwnd(&mut self, path: usize, cwnd: f64) {
        let path = &mut self.paths[path];
        path.cwnd = cwnd.max(path.mss);
    }

    /// Sets the slow-start threshold of `path` in bytes (not below one packet), for what is known of the path beforehand.
    pub fn set_ssthresh(&mut self, path: usize, ssthresh: f64) {
        let path = &mut self.paths[path];
        path.ssthresh = ssthresh.max(path.mss);
    }

    /// A loss of `path` was the link's own: up to so many bytes the window grows by no less than this part of itself in a round trip,
    /// until it is reduced or a queue is found.
    pub(crate) fn borne(&mut self, path: usize, (upto, by): (f64, f64), now: Instant) {
        let phase = &mut self.phases[path];
        (phase.probed, phase.by) = (upto, by);
        self.rule.borne(path, Group { paths: &self.paths, now });
    }

    /// Whether a loss of `path` may be the link's own ([`Path::loss_is_doubtful`]).
    pub(crate) fn set_loss_doubtful(&mut self, path: usize, is_doubtful: bool) {
        self.paths[path].loss_is_doubtful = is_doubtful;
    }

    /// The rule counts the window of `path` in packets of `unit` bytes from now on ([`Path::unit`]).
    pub(crate) fn set_unit(&mut self, path: usize, unit: f64) {
        let state = &mut self.paths[path];
        let before = std::mem::replace(&mut state.unit, unit);
        if before != unit {
            self.rule.unit_changed(path, before / unit);
        }
    }

    /// A round trip was measured on `path`; called before [`Self::on_ack`] with the same acknowledgment. Slow start ends where
    /// [`EngineConfig::slow_start`] finds a queue in it.
    #[inline]
    pub fn on_round_trip(&mut self, path: usize, sample: &RoundTrip, now: Instant) {
        let (state, phase) = (&mut self.paths[path], &mut self.phases[path]);
        let Some(search) = &mut phase.search else { return };
        if state.cwnd >= state.ssthresh.max(phase.probed) {
            if let Some(ssthresh) = search.resumes(sample, is_full(state, state.flight)) {
                state.ssthresh = ssthresh.max(state.ssthresh);
            }
        } else if search.finds_queue(state.packets(), state.base_rtt.min(sample.rtt), sample, now) {
            search.ended(sample, state.ssthresh);
            state.ssthresh = state.ssthresh.min(state.cwnd);
            phase.probed = 0.0;
        }
    }

    /// The next new data on `path` had this position when last heard of.
    pub(crate) fn next(&self, path: usize) -> u64 {
        self.phases[path].next
    }

    /// Data were acknowledged on `path`.
    #[inline]
    pub fn on_ack(&mut self, path: usize, acked: &Acked, now: Instant) {
        let wish = self.measure(path, acked, now);
        let more = self.growth(path, acked, wish, now);
        let state = &mut self.paths[path];
        state.cwnd = (state.cwnd + more).max(state.mss);
    }

    /// One acknowledgment told of data on several paths: all grow by what the windows were before it.
    pub fn on_acks(&mut self, acked: &[(usize, Acked)], now: Instant) {
        let wishes: SmallVec<[bool; 4]> = acked.iter().map(|(path, acked)| self.measure(*path, acked, now)).collect();
        let more: SmallVec<[f64; 4]> =
            acked.iter().zip(wishes).map(|((path, acked), wish)| self.growth(*path, acked, wish, now)).collect();
        for ((path, _), more) in acked.iter().zip(more) {
            let state = &mut self.paths[*path];
            state.cwnd = (state.cwnd + more).max(state.mss);
        }
    }

    /// What an acknowledgment told of the rate of delivery on `path`, for rules that read it; after [`Self::on_ack`] and
    /// [`Self::on_congestion`] with the same. Returns whether what is sent now is less than the path carries because the rule wants
    /// it so.
    pub fn on_sample(&mut self, path: usize, sample: &RateSample, now: Instant) -> bool {
        let decision = self.rule.sampled(path, Group { paths: &self.paths, now }, sample);
        self.set_cwnd(path, decision.cwnd);
        decision.is_low
    }

    /// A packet of `path` was found lost, for rules that read rates; before [`Self::on_sample`] with the same acknowledgment.
    pub fn on_lost(&mut self, path: usize, packet: &LostPacket, now: Instant) {
        self.rule.lost(path, Group { paths: &self.paths, now }, packet);
    }

    /// A sign of congestion on `path`. Returns whether the window was reduced: a second sign in one window of data is
    /// not, except for a timeout, which always is.
    pub fn on_congestion(&mut self, path: usize, event: &Congestion, now: Instant) -> bool {
        let (state, phase) = (&mut self.paths[path], &mut self.phases[path]);
        let timeout = event.cause == Cause::Timeout;
        if state.in_recovery && !timeout {
            return false;
        }
        state.flight = event.flight;
        // Repeated timeouts keep the first token: what an undo restores is the state before the episode.
        if !(timeout && phase.before.is_some() && state.cwnd <= state.mss) {
            // RFC 4015 §3.2: pipe_prev is taken before the cut.
            let pipe = event.flight.max(state.ssthresh);
            phase.before = Some(Before { cwnd: state.cwnd, ssthresh: state.ssthresh, pipe });
        }
        phase.reductions += 1;
        phase.probed = 0.0;
        phase.search.iter_mut().for_each(|search| search.settle());
        phase.next = event.next;
        phase.recover = event.next;
        phase.round_end = event.next;
        phase.round = NO_SAMPLES;
        let backoff = self.rule.decrease(path, Group { paths: &self.paths, now }, event.cause);
        let state = &mut self.paths[path];
        match self.config.rounding {
            WindowRounding::Exact => {
                state.ssthresh = backoff.window.max(backoff.floor);
                state.cwnd = state.ssthresh.max(state.mss);
            }
            WindowRounding::WholePacketThreshold => {
                let packets = (backoff.window / state.mss).floor();
                state.ssthresh = (packets * state.mss).max(backoff.floor);
                state.cwnd = backoff.window.max(state.mss);
            }
        }
        if timeout {
            state.cwnd = state.mss; // RFC 5681 §3.1: the loss window.
        }
        state.in_recovery = !timeout;
        if !backoff.block.is_zero() {
            self.phases[path].blocked_until = now + backoff.block;
        }
        true
    }

    /// Ends recovery on `path` before its time, so that the acknowledgment at hand may open the window.
    pub fn end_recovery(&mut self, path: usize) {
        self.paths[path].in_recovery = false;
    }

    /// The last reduction of `path` was an error. Returns whether there was one to take back.
    pub fn on_spurious(&mut self, path: usize, undo: Undo, now: Instant) -> bool {
        let (state, phase) = (&mut self.paths[path], &mut self.phases[path]);
        let Some(before) = phase.before.take() else {
            return false;
        };
        match undo {
            Undo::Restore => {
                state.cwnd = state.cwnd.max(before.cwnd);
                state.ssthresh = state.ssthresh.max(before.ssthresh);
            }
            Undo::Eifel { flight, acked } => {
                let iw = self.config.initial_window.bytes(state.mss);
                state.cwnd = (flight as f64 + (acked as f64).min(iw)).max(state.mss);
                state.ssthresh = before.pipe;
            }
        }
        state.in_recovery = false;
        phase.blocked_until = Instant::ZERO;
        phase.undone += 1;
        self.rule.undone(path, Group { paths: &self.paths, now });
        true
    }

    /// Nothing was sent on `path` for longer than its retransmission timeout (RFC 5681 §4.1).
    pub fn on_idle(&mut self, path: usize, now: Instant) {
        let state = &mut self.paths[path];
        state.cwnd = state.cwnd.min(self.config.initial_window.bytes(state.mss)).max(state.mss);
        state.flight = 0.0;
        self.rule.limited(path, Group { paths: &self.paths, now }, 0.0);
    }

    /// Notes what an acknowledgment says of the path. True if the rule asks for a reduction.
    #[inline]
    fn measure(&mut self, path: usize, acked: &Acked, now: Instant) -> bool {
        let (state, Phase { round, last_rtt, next, .. }) = (&mut self.paths[path], &mut self.phases[path]);
        state.flight = acked.flight as f64;
        *next = acked.next;
        if let Some(rtt) = acked.rtt {
            state.srtt = acked.srtt;
            state.base_rtt = state.base_rtt.min(rtt);
            state.steady_rtt = std::mem::replace(last_rtt, rtt).min(rtt);
            state.top_rtt = state.top_rtt.max(state.steady_rtt);
            round.min_rtt = round.min_rtt.min(rtt);
            round.max_rtt = round.max_rtt.max(rtt);
            round.sum_rtt += rtt;
            round.samples += 1;
        }
        self.rule.acknowledged(path, Group { paths: &self.paths, now }, acked)
    }

    /// What the window of `path` gains by an acknowledgment, in bytes; ends recoveries and rounds.
    #[inline]
    fn growth(&mut self, path: usize, acked: &Acked, wish: bool, now: Instant) -> f64 {
        if wish {
            let event = Congestion { cause: Cause::Delay, flight: acked.flight as f64, next: acked.next };
            let reduced = self.on_congestion(path, &event, now);
            self.phases[path].early_reductions += u64::from(reduced);
        }
        // ALGORITHMS §1 rule 2: no growth before all that was outstanding at the reduction is acknowledged. The
        // acknowledgment that ends recovery opens nothing either.
        let (state, phase) = (&mut self.paths[path], &mut self.phases[path]);
        if state.in_recovery {
            if acked.upto >= phase.recover {
                state.in_recovery = false;
                phase.round_end = acked.next;
                phase.round = NO_SAMPLES;
            }
            return 0.0;
        }
        if acked.upto > phase.round_end {
            let slow_start = self.config.in_slow_start(state);
            let full = is_limited_by_window(state, &self.config);
            let round = Round { slow_start, full, ..std::mem::replace(&mut phase.round, NO_SAMPLES) };
            phase.round_end = acked.next;
            let decision = self.rule.on_round(path, Group { paths: &self.paths, now }, &round);
            self.phases[path].early_reductions += u64::from(decision.early);
            let state = &mut self.paths[path];
            if let Some(ssthresh) = decision.ssthresh {
                state.ssthresh = ssthresh;
            }
            if let Some(cwnd) = decision.cwnd
                && (cwnd < state.cwnd || full)
            {
                state.cwnd = cwnd.max(state.mss);
            }
        }
        let state = &self.paths[path];
        let bytes = acked.bytes as f64;
        let group = Group { paths: &self.paths, now };
        if !is_limited_by_window(state, &self.config) {
            self.rule.limited(path, group, bytes);
            0.0
        } else if self.config.in_slow_start(state) {
            // RFC 3465 §2.2.
            self.rule.slow_start(path, group, bytes.min(self.config.byte_counting_limit * state.mss))
        } else {
            let phase = &self.phases[path];
            let grown = self.rule.increase(path, group, bytes);
            // A coupled rule may take away.
            if state.cwnd < phase.probed { grown.max(bytes * phase.by) } else { grown }
        }
    }
}

/// ALGORITHMS §1 rule 1: the window is the limit if not one packet more would have fit.
#[inline]
fn is_limited_by_window(path: &Path, config: &EngineConfig) -> bool {
    !config.window_limited_growth || is_full(path, path.flight)
}

/// Whether the window has no room for one packet more while so many bytes are outstanding.
#[inline]
pub(crate) fn is_full(path: &Path, flight: f64) -> bool {
    flight + path.mss > path.cwnd
}
