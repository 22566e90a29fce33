//! The sending side of one sequence of packets, without I/O: what may be sent now, the timer, round-trip samples and the
//! repair of losses (RFC 5681, 6298, 6582, 6675, 3042, 3168).
//!
//! Loss recovery is `recovery`'s, windows are `congestion`'s; this is what joins them. A TCP connection has one of these,
//! one of Multipath TCP has one a path, under one controller.

mod watching;

use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use congestion::{Acked, Cause, Congestion, Controller, InitialWindow, RoundTrip, Rule, Undo, WindowRule as _};
use recovery::{DupThresh, Duplicate, NewRenoRecovery, Partial, Progress};

use crate::config::{Details, Recovery, TcpConfig, UndoBy};
use crate::packet::{Flags, NO_BLOCKS, Packet, expand};
use crate::selective::{Next, Rack, Selective, Verdict};
use crate::timer::Timer;
pub(crate) use watching::Waiting;
use watching::Watch;

/// No packet waits to be sent again.
const NONE: u64 = u64::MAX;
/// As many packets as the window allows.
const ANY: u32 = u32::MAX;
/// From this pace on, in bit/s, two packets leave together, as Linux has it with BBR: half as many timers.
const PAIRS: u64 = 1_200_000;
/// RFC 6298 §5.7: the timer after the loss of a SYN.
const AFTER_SYN_LOSS: Duration = Duration::from_secs(3);

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Packets sent, the SYN and retransmissions too.
    pub sent: u64,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Reductions of the window.
    pub reductions: u64,
    /// Reductions that turned out needless and were taken back.
    pub undone: u64,
}

/// The sending side of one sequence of packets. The windows are its owner's, who passes them to every call.
#[derive(Clone, Debug)]
pub(crate) struct Subflow {
    /// Its number among the paths of the controller.
    index: usize,
    /// The first packet not acknowledged; the next to send; one beyond the highest ever sent.
    una: u64,
    next: u64,
    max: u64,
    retransmit_at: Instant,
    send_at: Instant,
    /// To be sent again at once, whatever the window.
    resend: u64,
    /// How many packets the event at hand may send, and by how many the window is exceeded for them (RFC 3042).
    budget: u32,
    limited: u32,
    /// The random waiting time is over for the event at hand.
    waited: bool,
    /// The rate that the rule allows, in bit/s, and when it allows the next packet.
    pace: Option<u64>,
    paced_until: Instant,
    /// By how much what leaves now may be ahead of that.
    ahead: Duration,
    reduced: bool,
    started: bool,
    mss: f64,
    /// The packet whose round trip is timed, and since when (RFC 6298 §3).
    timed: Option<(u64, Instant)>,
    /// For rules that read delays or rates.
    watch: Option<Box<Watch>>,
    timer: Timer,
    recovery: State,
    dupthresh: DupThresh,
    episode: Option<Episode>,
    /// Until then holes are late, not lost: the last that was taken for lost was not.
    tolerant: Instant,
    config: Arc<TcpConfig>,
    random: Option<Box<Rng>>,
    counters: SenderCounters,
    /// The integral of the window over time in byte-seconds, since the start to `accounted`.
    cwnd_seconds: f64,
    accounted: Instant,
}

/// What a subflow has to send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// This packet, now. Flow and hop are the caller's to set.
    Send(Packet),
    /// A packet that was never sent on this sequence: [`Subflow::emit_next`] sends it.
    New,
    /// Nothing.
    Nothing,
}

/// A reduction that may turn out needless.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// When the first retransmission of it was sent.
    since: Instant,
    /// Retransmissions of it that were not reported as duplicates.
    unreported: u64,
    /// No acknowledgment of new data came since.
    fresh: bool,
}

#[derive(Clone, Debug)]
enum State {
    Cumulative(NewRenoRecovery),
    Selective(Box<Selective>),
}

impl Subflow {
    /// One that has not started, on path `index` of its owner's controller. `random` is for [`TcpConfig::send_jitter`].
    pub(crate) fn new(index: usize, config: Arc<TcpConfig>, random: Rng) -> Self {
        let recovery = match config.recovery {
            Recovery::Reno => State::Cumulative(NewRenoRecovery::new(Partial::EndsRecovery)),
            Recovery::NewReno => State::Cumulative(NewRenoRecovery::new(Partial::NextHole)),
            Recovery::Sack => {
                let rack = match (config.rule.kind().reads_rate, config.rack) {
                    (true, _) => Rack::OfRates,
                    (false, true) => Rack::OfEchoes,
                    (false, false) => Rack::No,
                };
                State::Selective(Box::new(Selective::new(config.details, rack)))
            }
        };
        Self {
            index,
            una: 0,
            next: 0,
            max: 0,
            retransmit_at: Instant::FAR_FUTURE,
            send_at: Instant::FAR_FUTURE,
            resend: NONE,
            budget: 0,
            limited: 0,
            waited: false,
            pace: None,
            paced_until: Instant::ZERO,
            ahead: Duration::ZERO,
            reduced: false,
            started: false,
            mss: f64::from(config.mss()),
            timed: None,
            watch: Watch::of(config.rule.kind()),
            timer: Timer::new(config.timer),
            recovery,
            dupthresh: config.dupthresh,
            episode: None,
            tolerant: Instant::ZERO,
            random: (!config.send_jitter.is_zero()).then(|| Box::new(random)),
            config,
            counters: SenderCounters::default(),
            cwnd_seconds: 0.0,
            accounted: Instant::ZERO,
        }
    }

    /// A SYN goes out.
    pub(crate) fn start(&mut self, now: Instant) {
        self.started = true;
        self.accounted = now;
        self.budget = ANY;
    }

    /// Whether it has started.
    #[inline]
    pub(crate) fn is_started(&self) -> bool {
        self.started
    }

    /// The first packet not acknowledged; 0 before the SYN is.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The next packet to send, and one beyond the highest sent; they differ only when a timeout went back.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// One beyond the highest packet sent.
    #[inline]
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Packets outstanding.
    #[inline]
    pub(crate) fn flight(&self) -> u64 {
        self.max - self.una
    }

    /// The smoothed round-trip time; zero without a sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Duration {
        self.timer.srtt()
    }

    /// The variation of the round-trip time; zero without a sample.
    pub(crate) fn rttvar(&self) -> Duration {
        self.timer.rttvar()
    }

    /// Counters.
    #[inline]
    pub(crate) fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// The same until the last event.
    pub(crate) fn accounted_cwnd_seconds(&self) -> f64 {
        self.cwnd_seconds / self.mss
    }

    /// The integral of the window over time in packet-seconds, since the start.
    pub(crate) fn cwnd_seconds(&self, now: Instant, control: &Controller<Rule>) -> f64 {
        let rest = control.cwnd(self.index) * now.saturating_since(self.accounted).as_secs_f64();
        (self.cwnd_seconds + rest) / self.mss
    }

    /// An acknowledgment arrived. Returns whether it acknowledged anything new in order.
    #[inline]
    pub(crate) fn handle_input(
        &mut self,
        now: Instant,
        packet: &Packet,
        blocks: &[(u32, u32)],
        control: &mut Controller<Rule>,
    ) -> bool {
        let ack = expand(packet.position, self.una);
        if ack > self.max || !self.started {
            return false; // RFC 9293 §3.10.7.4: of what was never sent.
        }
        self.account(now, control);
        let advanced = ack > self.una;
        // BBR's model has no place for marks (of version 3, below 5 ms only, and if the route is configured so).
        if self.config.ecn && packet.flags.has(Flags::ECHO) && !self.reads_rate() {
            self.reduced |= self.reduce(Cause::Ecn, now, control);
        }
        self.limited = 0;
        if self.episode.is_some() {
            self.detect_needless(now, ack, packet, control);
        }
        if self.watch.is_some() && self.reads_rate() {
            self.sampled(now, ack, blocks, packet.time, control);
        } else {
            self.recover(now, ack, blocks, packet.time, control);
        }
        advanced
    }

    #[inline]
    fn recover(
        &mut self,
        now: Instant,
        ack: u64,
        blocks: &[(u32, u32)],
        echo: Instant,
        control: &mut Controller<Rule>,
    ) {
        match &mut self.recovery {
            State::Cumulative(_) => self.cumulative(now, ack, echo, control),
            State::Selective(_) => self.selective(now, ack, blocks, echo, control),
        }
    }

    /// Whether the last reduction was an error.
    #[cold]
    fn detect_needless(&mut self, now: Instant, ack: u64, packet: &Packet, control: &mut Controller<Rule>) {
        let Some(episode) = &mut self.episode else { return };
        let undo = match self.config.undo {
            UndoBy::Never => None,
            // RFC 3522 §3.2: the first acknowledgment of new data answers the original.
            UndoBy::Eifel => {
                let first = ack > self.una && std::mem::take(&mut episode.fresh);
                let mss = u64::from(self.config.mss());
                (first && packet.time < episode.since)
                    .then(|| Undo::Eifel { flight: (self.max - ack) * mss, acked: (ack - self.una) * mss })
            }
            // RFC 3708 §2: every retransmission was a duplicate.
            UndoBy::DuplicateReports => {
                if packet.flags.has(Flags::DUPLICATE) {
                    episode.unreported = episode.unreported.saturating_sub(1);
                }
                (packet.flags.has(Flags::DUPLICATE) && episode.unreported == 0).then_some(Undo::Restore)
            }
        };
        let Some(undo) = undo else { return };
        self.episode = None;
        control.on_spurious(self.index, undo, now);
        self.dupthresh.on_spurious();
        // RACK's window of reordering grows with needless retransmissions, from a quarter of the least round-trip time on
        // (RFC 8985 §6.2 step 4). A threshold in packets alone would find one hole after the other lost.
        self.tolerant = now + self.timer.min_rtt();
        match &mut self.recovery {
            State::Cumulative(recovery) => recovery.on_spurious(),
            State::Selective(recovery) => recovery.on_spurious(self.max),
        }
        self.next = self.max; // RFC 4015 §3.2 (DET): new data, not what is on its way.
        self.resend = NONE;
        self.counters.undone += 1;
    }

    /// RFC 6582, without selective acknowledgments.
    #[inline]
    fn cumulative(&mut self, now: Instant, ack: u64, echo: Instant, control: &mut Controller<Rule>) {
        let State::Cumulative(recovery) = &mut self.recovery else { return };
        let mss = u64::from(self.config.mss());
        let ns2 = self.config.details == Details::Ns2;
        if ack > self.una {
            match recovery.on_progress(ack, (ack - self.una) * mss, mss) {
                Progress::Ordinary => self.budget = ANY,
                Progress::Full => {
                    self.budget = ANY;
                    if ns2 {
                        control.end_recovery(self.index);
                    } else {
                        // RFC 6582 §3.2 step 3, full acknowledgments, (1): no burst into an empty pipe.
                        let flight = (self.max - ack).max(1) + 1;
                        let cwnd = control.ssthresh(self.index).min(flight as f64 * self.mss);
                        control.set_cwnd(self.index, cwnd);
                    }
                }
                Progress::Partial { deficit, restart_timer } => {
                    control.set_cwnd(self.index, control.cwnd(self.index) - deficit as f64);
                    self.budget = if ns2 { 2 } else { ANY };
                    self.advance(now, ack, echo, false, control);
                    if restart_timer {
                        self.restart_timer(now);
                    }
                    self.resend = ack;
                    return;
                }
            }
            self.advance(now, ack, echo, true, control);
            self.restart_timer(now);
            return;
        }
        if ack < self.una || self.max == self.una {
            return;
        }
        let threshold = self.dupthresh.threshold(self.max - self.una);
        match recovery.on_duplicate(self.una, self.max, threshold, mss) {
            Duplicate::LimitedTransmit => {
                self.limited = recovery.dupacks();
                self.budget = 1;
                self.waited = true;
            }
            Duplicate::FastRetransmit => {
                self.lose(now, threshold, control);
                self.budget = if ns2 { 2 } else { ANY };
            }
            Duplicate::Inflate | Duplicate::Nothing => self.budget = if ns2 { 2 } else { ANY },
        }
    }

    /// RFC 6675.
    fn selective(
        &mut self,
        now: Instant,
        ack: u64,
        blocks: &[(u32, u32)],
        echo: Instant,
        control: &mut Controller<Rule>,
    ) {
        let State::Selective(recovery) = &mut self.recovery else { return };
        let ns2 = self.config.details == Details::Ns2;
        let dupthresh = if now < self.tolerant { DupThresh::Fixed(u32::MAX) } else { self.dupthresh };
        let verdict = recovery.on_ack(ack, blocks, self.una, self.max, dupthresh);
        self.budget = ANY;
        match verdict {
            Verdict::Progress => {
                self.advance(now, ack, echo, true, control);
                self.restart_timer(now);
            }
            Verdict::Recovered | Verdict::Partial => {
                self.advance(now, ack, echo, false, control);
                if verdict == Verdict::Partial {
                    self.timer.end_back_off();
                }
                self.restart_timer(now);
            }
            Verdict::Loss => {
                let threshold = self.dupthresh.threshold(self.max - self.una);
                if ack > self.una {
                    self.advance(now, ack, echo, false, control);
                }
                self.lose(now, threshold, control);
                if ns2 {
                    self.budget = 0;
                }
            }
            Verdict::Duplicate(count) => {
                if ns2 {
                    self.limited = count;
                    self.budget = 1;
                    self.waited = true;
                }
            }
            Verdict::Nothing => {
                if ns2 && !recovery.in_recovery() {
                    self.budget = 0;
                }
            }
        }
        // RFC 8985 §6.2 step 4: in recovery there is no window of reordering as long as none was seen.
        let late = if self.counters.undone > 0 { self.timer.min_rtt() / 4 } else { Duration::ZERO };
        if let State::Selective(recovery) = &mut self.recovery {
            recovery.on_delivered(echo, late);
        }
    }

    /// Everything below `ack` is acknowledged, which is more than before; `opens` if the window may grow.
    #[inline]
    fn advance(&mut self, now: Instant, ack: u64, echo: Instant, opens: bool, control: &mut Controller<Rule>) {
        let acked = ack - self.una;
        let flight = self.max - self.una;
        let handshake = self.una == 0;
        let last_sent = match self.watch.as_deref_mut() {
            Some(Watch::Times(times)) => Some(times.acknowledged(acked)),
            _ => None,
        };
        self.una = ack;
        self.next = self.next.max(ack);
        let mut rtt = None;
        if self.config.timestamps {
            self.timer.sample(echo, now); // RFC 7323 §4.1.
            rtt = Some(now - echo);
        } else if let Some((position, sent)) = self.timed
            && ack > position
        {
            self.timed = None;
            if opens || self.config.details == Details::Rfc {
                self.timer.sample(sent, now);
                rtt = Some(now - sent);
            } else {
                self.timer.end_back_off();
            }
        }
        if handshake {
            control.set_cwnd(self.index, self.first_window());
            return;
        }
        if let Some(rtt) = rtt {
            control.on_round_trip(self.index, &RoundTrip { upto: ack, next: self.max, rtt }, now);
        }
        if let Some(last_sent) = last_sent {
            rtt = last_sent.map(|sent| now - sent);
        }
        let bytes = if self.config.details == Details::Ns2 { 1 } else { acked };
        let mss = u64::from(self.config.mss());
        let acked =
            Acked { bytes: bytes * mss, flight: flight * mss, upto: ack, next: self.max, rtt, srtt: self.timer.srtt() };
        control.on_ack(self.index, &acked, now);
    }

    fn first_window(&self) -> f64 {
        // RFC 5681 §3.1: one packet if the SYN was lost.
        let window =
            if self.counters.timeouts > 0 { InitialWindow::Packets(1) } else { self.config.engine.initial_window };
        window.bytes(self.mss)
    }

    /// A loss was found: the window falls, and the first missing packet goes out.
    fn lose(&mut self, now: Instant, threshold: u32, control: &mut Controller<Rule>) {
        // RFC 5681 §3.2 step 2: what limited transmit sent does not count.
        let extra = u64::from(threshold.saturating_sub(1)).min(2);
        self.reduce_by(Cause::Loss, now, extra, control);
        if !matches!(&self.recovery, State::Selective(recovery) if recovery.is_under_way()) {
            self.begin_episode(now);
            self.resend = self.una;
        }
        self.timed = None; // Karn: its acknowledgment would tell of a retransmission.
        self.arm_timer(now);
    }

    /// The first retransmission goes out at once, so its time is now. What is under way is one episode still.
    fn begin_episode(&mut self, now: Instant) {
        if self.config.undo != UndoBy::Never && self.una > 0 && !self.episode.is_some_and(|episode| episode.fresh) {
            self.episode = Some(Episode { since: now, unreported: 0, fresh: true });
        }
    }

    fn reduce(&mut self, cause: Cause, now: Instant, control: &mut Controller<Rule>) -> bool {
        self.reduce_by(cause, now, 0, control)
    }

    fn reduce_by(&mut self, cause: Cause, now: Instant, extra: u64, control: &mut Controller<Rule>) -> bool {
        control.set_rto(self.index, self.timer.rto());
        let flight = match self.config.details {
            Details::Rfc => {
                // What was selectively acknowledged has left the network (RFC 6675 §4 SetPipe). It is most of what is above
                // `una` if the timer runs out because a retransmission was lost.
                let left = match &self.recovery {
                    State::Selective(recovery) if cause == Cause::Timeout => recovery.sacked(),
                    _ => extra,
                };
                let outstanding = (self.max - self.una).saturating_sub(left).max(1) as f64 * self.mss;
                // Of what is behind the next hole much has arrived. A loss must not raise the window that let it leave.
                outstanding.min(control.cwnd(self.index))
            }
            // Its window, whether or not so much is outstanding.
            Details::Ns2 => control.cwnd(self.index).min(f64::from(self.config.receiver_window) * self.mss),
        };
        let reduced = control.on_congestion(self.index, &Congestion { cause, flight, next: self.max }, now);
        self.counters.reductions += u64::from(reduced);
        reduced
    }

    /// When the retransmission timer runs out; [`Instant::FAR_FUTURE`] if it does not run.
    #[inline]
    pub(crate) fn retransmission_deadline(&self) -> Instant {
        self.retransmit_at
    }

    /// When waiting data may be sent; [`Instant::FAR_FUTURE`] if none wait.
    #[inline]
    pub(crate) fn send_deadline(&self) -> Instant {
        self.send_at
    }

    /// Time has come to `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant, control: &mut Controller<Rule>) {
        self.account(now, control);
        if now >= self.send_at {
            self.send_at = Instant::FAR_FUTURE;
            self.waited = true;
            self.budget = ANY;
            self.limited = 0;
        }
        if now >= self.retransmit_at {
            self.time_out(now, control);
        }
    }

    /// RFC 6298 §5.4-5.7, RFC 5681 §3.1.
    fn time_out(&mut self, now: Instant, control: &mut Controller<Rule>) {
        self.counters.timeouts += 1;
        self.timer.back_off();
        self.timed = None;
        self.budget = ANY;
        self.limited = 0;
        let ns2 = self.config.details == Details::Ns2;
        if self.una > 0 || ns2 {
            self.reduce(Cause::Timeout, now, control);
        }
        self.begin_episode(now);
        match &mut self.recovery {
            State::Cumulative(recovery) => {
                recovery.on_timeout(self.max);
                self.next = self.una; // Go back: nothing is known of what lies above.
            }
            State::Selective(recovery) => {
                recovery.on_timeout(self.una, self.max);
                if ns2 {
                    self.next = self.una;
                }
            }
        }
        if let Some(Watch::Rates(rates)) = self.watch.as_deref_mut() {
            let mss = u64::from(self.config.mss());
            rates.lose_all(mss, |packet| control.on_lost(self.index, packet, now));
        }
        self.retransmit_at = now + self.timer.rto();
        if self.una == 0 && !ns2 {
            self.next = 0;
            self.retransmit_at = self.retransmit_at.max(now + AFTER_SYN_LOSS.min(self.timer.rto()));
        }
    }

    /// What to send now. `more` tells whether there are data that were never sent on this sequence, and may be.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant, more: bool, control: &Controller<Rule>) -> Step {
        self.pace = control.pace(self.index);
        if self.resend != NONE {
            let position = std::mem::replace(&mut self.resend, NONE);
            return Step::Send(self.emit(now, position));
        }
        if self.budget == 0 {
            self.waited = false;
            return Step::Nothing;
        }
        match self.choose(now, more, control) {
            Next::Nothing => {
                self.rest();
                Step::Nothing
            }
            Next::Again(position) => {
                self.budget -= 1;
                if let State::Selective(recovery) = &mut self.recovery {
                    recovery.on_sent(position, true, self.max);
                }
                Step::Send(self.emit(now, position))
            }
            // After going back, what follows was sent before.
            Next::New if self.next < self.max => Step::Send(self.emit_next(now)),
            Next::New => Step::New,
        }
    }

    /// The next packet in order, after [`Subflow::poll`] gave [`Step::New`].
    #[inline]
    pub(crate) fn emit_next(&mut self, now: Instant) -> Packet {
        self.budget = self.budget.saturating_sub(1);
        if let State::Selective(recovery) = &mut self.recovery {
            recovery.on_sent(self.next, false, self.max);
        }
        self.next += 1;
        self.emit(now, self.next - 1)
    }

    /// Nothing more is sent for the event at hand.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.budget = 0;
        self.waited = false;
    }

    /// An event elsewhere in the connection may allow more to be sent here.
    #[inline]
    pub(crate) fn wake(&mut self) {
        if self.started {
            self.budget = ANY;
        }
    }

    /// Whether the packet at `position` has arrived, though those before it have not.
    pub(crate) fn is_sacked(&self, position: u64) -> bool {
        match &self.recovery {
            State::Cumulative(_) => false,
            State::Selective(recovery) => recovery.is_sacked(position),
        }
    }

    #[inline]
    fn choose(&mut self, now: Instant, more: bool, control: &Controller<Rule>) -> Next {
        // Before the SYN is acknowledged nothing else is sent.
        let has_new = (more || self.next < self.max) && (self.una > 0 || self.next == 0);
        let cwnd = control.cwnd(self.index);
        match &mut self.recovery {
            State::Cumulative(recovery) => {
                let limit = cwnd + recovery.inflation() as f64 + f64::from(self.limited) * self.mss;
                if !has_new || (self.next - self.una + 1) as f64 * self.mss > limit || self.waits(now) {
                    return Next::Nothing;
                }
                Next::New
            }
            State::Selective(recovery) => {
                let limit = cwnd + f64::from(self.limited) * self.mss;
                let pipe = recovery.pipe(self.una, self.next, self.max);
                if (pipe + 1) as f64 * self.mss > limit {
                    if let Some(Watch::Rates(rates)) = self.watch.as_deref_mut() {
                        rates.on_window_limited(self.max);
                    }
                    return Next::Nothing;
                }
                let next =
                    recovery.next(self.una, self.max, has_new, self.limited > 0 && self.config.details == Details::Ns2);
                if next == Next::Nothing || self.waits(now) {
                    return Next::Nothing;
                }
                next
            }
        }
    }

    /// Whether what could be sent has to wait for its turn in the pace, or its random time.
    #[inline]
    fn waits(&mut self, now: Instant) -> bool {
        if self.pace.is_some() && self.paced_until > now + self.ahead {
            self.send_at = self.send_at.min(self.paced_until);
            return true;
        }
        let Some(random) = &mut self.random else { return false };
        if self.waited {
            return false;
        }
        if self.send_at == Instant::FAR_FUTURE {
            let most = self.config.send_jitter.as_nanos();
            // At least a nanosecond: a deadline lies after the event that sets it.
            self.send_at = now + Duration::from_nanos(1 + random.below(most));
        }
        true
    }

    #[inline]
    fn emit(&mut self, now: Instant, position: u64) -> Packet {
        let again = position < self.max;
        self.counters.sent += 1;
        if again && let State::Selective(recovery) = &mut self.recovery {
            recovery.on_resent(position, now);
        }
        if self.watch.is_some() {
            self.watch_sent(now, position);
        }
        if again {
            self.counters.retransmissions += 1;
            if let Some(episode) = &mut self.episode {
                episode.unreported += 1;
            }
        } else {
            self.max = position + 1;
            if self.timed.is_none() {
                self.timed = Some((position, now));
            }
        }
        // Where it can be repaired twice, a packet takes three round trips, which is longer than the timer often is: it counts from
        // the last transmission, as Linux has it (`tcp_xmit_retransmit_queue`).
        let counts_anew = again && position == self.una && self.finds_lost_retransmissions();
        if self.retransmit_at == Instant::FAR_FUTURE || counts_anew {
            self.arm_timer(now);
        }
        let config = &*self.config;
        let bytes = if position == 0 { config.header_size } else { config.packet_size };
        if let Some(rate) = self.pace {
            let reads_rate = self.reads_rate();
            let paced = if reads_rate { config.mss() } else { bytes };
            let transmission = Duration::of_transmission(paced.into(), rate);
            self.paced_until = self.paced_until.max(now) + transmission;
            self.ahead = if reads_rate && rate >= PAIRS { transmission } else { Duration::ZERO };
        }
        let flags = Flags::default()
            .with_if(Flags::RETRANSMISSION, again)
            .with_if(Flags::ECN_CAPABLE, config.ecn)
            .with_if(Flags::REDUCED, std::mem::take(&mut self.reduced));
        Packet { time: now, flow: 0, hop: 0, position: position as u32, blocks: NO_BLOCKS, bytes, flags, path: 0 }
    }

    fn finds_lost_retransmissions(&self) -> bool {
        self.reads_rate() || matches!(&self.recovery, State::Selective(recovery) if recovery.has_rack())
    }

    #[inline]
    fn arm_timer(&mut self, now: Instant) {
        self.retransmit_at = now + self.timer.rto();
    }

    /// RFC 6298 §5.2, §5.3.
    #[inline]
    fn restart_timer(&mut self, now: Instant) {
        if self.una < self.max {
            self.arm_timer(now);
        } else {
            self.retransmit_at = Instant::FAR_FUTURE;
        }
    }

    #[inline]
    fn account(&mut self, now: Instant, control: &Controller<Rule>) {
        self.cwnd_seconds += control.cwnd(self.index) * now.saturating_since(self.accounted).as_secs_f64();
        self.accounted = now;
    }
}
