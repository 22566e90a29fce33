//! How far flows reach: which paths are too far away for a flow.
//!
//! A receiver puts the packets of a flow in order, so one on a distant path holds up all that were sent after it. While it is on
//! its way, the program sends what its window allows beyond it, and no more. Of a window of `W` bytes and a path whose packets are
//! acknowledged after `T`, the flow gets `W/T` over all paths together; where the faster paths alone carry more than that, it
//! is slower with the distant path than without. What `W` is, programs tell by what they do: one that has nothing more to send
//! until the oldest packet of the distant path has arrived had no more window. (The papers of BLEST, Ferlin and others 2016, and
//! ECF, Lim and others 2017, compare the same quantities for the one window that Multipath TCP has.)
//!
//! And what is left of a flow can be so little that the faster paths will have delivered it before the distant one delivers
//! a packet. Nobody knows what a program will still send; it is taken to be about as much as it has sent.

use crate::packet::{Class, FlowId, Meta};
use crate::stretch::{self, Spare, Stretch};
use clock::{Duration, Instant};
use std::collections::BTreeMap;

/// Flows that are known; if there are more, all begin anew.
const FLOWS: usize = 4096;
/// Paths that differ by less one-way are alike.
pub(crate) const NEAR: Duration = Duration::from_millis(10);
/// Of what the faster paths carry, so much has to be outstanding before a distant one is used: rates are known as well as that.
const ENOUGH: f64 = 0.9;
/// One that is in use was too far away where a window was less than this part of it: windows are smaller at times.
const SHORT: f64 = 0.75;
/// ... or where the faster paths would carry less by more than this part of what it carries.
const RISKED: f64 = 0.5;
/// A packet has to cost less than this many bytes of others: it is worth no more than what it carries.
const WORTH: f64 = 1_000.0;
/// A lost packet is found out after a round trip, for reports so much later, and sent again.
const REPAIR: Duration = Duration::from_millis(15);
/// A path that is later by no more than this, with the queues of now and without any, is tried without knowing whether the
/// program has a window for it: to find out costs no more.
const TRIED: Duration = Duration::from_millis(150);
/// A distant path is in use for so many of its rounds after a packet.
const IN_USE: u64 = 2;
/// A program that has no more than this part left of what it was allowed, or so many bytes, has no more because of us.
const LEFT_OVER: (f64, f64) = (0.2, 6_000.0);
/// How long a program's window is taken to be what it was.
const REMEMBERED: Duration = Duration::from_secs(20);
/// Times what the faster paths carry until the distant one has delivered a packet: a flow that has sent so much will go on.
const LASTING: u64 = 3;
/// A receiver that offers so many times what it did then may have been what the window ended at: Linux begins with 64 kB and makes it more
/// as data come.
const GROWN: f64 = 1.5;
/// A path with a queue of this stays busy until it is known that it needs more.
const LONG: Duration = Duration::from_millis(20);
/// A program that always had more in so many rounds of the distant path has a larger window than it had before.
const ENDED: u64 = 4;
/// The least silence of a program that means something.
const SILENCE: Duration = Duration::from_millis(5);
/// The silence has ended because of a packet if it is as old as its path makes it, from this part of that on, ...
const EARLIEST: f64 = 0.8;
/// ... up to this multiple and so much more.
const LATEST: (f64, Duration) = (1.5, Duration::from_millis(20));
/// Packets that waited for longer are put in order, whatever they are; of others than TCPs what waited less is a call's, ...
const UNORDERED: Duration = Duration::from_millis(5);
/// ... but not where the flow waited for longer within this time and has sent so many bytes in such a time.
const METERED: (Duration, u64) = (Duration::from_secs(1), 500_000);
/// QUIC takes for lost what three later packets have overtaken (RFC 9002 §6.1.1), so its data are put in order, from packets of so
/// many bytes on ...
const LARGE: usize = 600;
/// ... until so many smaller ones have followed: who sends only those acknowledges, and an acknowledgment waits for none.
const SMALL: u32 = 8;
/// How much of a flow waits is seen in this time.
const LATELY: Duration = Duration::from_millis(200);
/// A flow grows that has so many times what it had in the period before.
const GROWS: f64 = 1.1;
/// Flows that are stretched at a time.
const STRETCHED: usize = 16;

/// The flows of an association.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    flows: BTreeMap<FlowId, Flow>,
    stretched: BTreeMap<FlowId, Stretch>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Bytes that have left the send buffer, and when the last of them did.
    sent: u64,
    left_at: Instant,
    /// What its program had outstanding when it had no more window, and when that was.
    window: Option<Window>,
    silence: Option<Silence>,
    /// When it had nothing more for a near path with room last, and what it had outstanding then: its window, if that was the limit.
    behind: (u64, Instant),
    /// What its receiver offers, in bytes; zero where that is not known.
    offered: u64,
    /// Bytes that it was allowed to have waiting when it heard of that last, and what it has sent since; where it is told.
    allowed: Option<(i64, u64)>,
    /// When a packet of it went on a distant path last.
    distant_at: Option<Instant>,
    /// What it had sent when the present period began, and when that was.
    period: (u64, Instant),
    /// It has sent much in this or the last period.
    is_bulk: bool,
    /// Bytes per second in the last period, and in the one before.
    rates: [f64; 2],
    waited_at: Option<Instant>,
    waiting: Waiting,
    /// Of QUIC: small packets since the last large one.
    quic: Option<u32>,
    /// How often in turn it was stretched for nothing, and until when it is left alone.
    failed: u32,
    rests_until: Instant,
    /// ... while it has so many bytes per second.
    rests_from: f64,
}

impl Flow {
    /// Whether it was not allowed to send more: it may have a larger window.
    fn is_held_back(&self) -> bool {
        self.allowed.is_some_and(|(room, sent)| room as f64 - sent as f64 <= LEFT_OVER.1.max(room as f64 * LEFT_OVER.0))
    }

    fn has_quic_data(&self) -> bool {
        self.quic.is_some_and(|small| small < SMALL)
    }
}

/// How much of a flow waits for paths: of one whose window is larger than theirs most does.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Bytes that have left since then, and those of them that had waited.
    since: Instant,
    left: u64,
    waited: u64,
    /// What was found last.
    is_most: bool,
}

impl Waiting {
    fn left(&mut self, now: Instant, bytes: u64, has_waited: bool) {
        if now - self.since > LATELY {
            *self = Self { since: now, left: 0, waited: 0, is_most: self.waited * 2 > self.left };
        }
        self.left += bytes;
        self.waited += if has_waited { bytes } else { 0 };
    }
}

/// A program sends nothing, while a packet of it is on a distant path.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// When that packet was sent.
    since: Instant,
    /// After what time it will be acknowledged.
    round: Duration,
    /// Bytes sent since then, the packet included.
    behind: u64,
    /// What the receiver offered then.
    offered: u64,
}

/// A program's window, as it was seen.
#[derive(Clone, Copy, Debug)]
struct Window {
    bytes: u64,
    seen_at: Instant,
    /// What the receiver offered then.
    offered: u64,
}

impl Flow {
    /// The window that was seen, as long as it may still be that.
    fn known_window(&self, now: Instant) -> Option<u64> {
        let still =
            |window: &Window| now - window.seen_at < REMEMBERED && self.offered as f64 <= window.offered as f64 * GROWN;
        self.window.filter(still).map(|window| window.bytes)
    }
}

/// A path that is later than others, as a flow sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distant {
    /// By how much it is later than the fastest, one-way.
    pub late: Duration,
    /// By how much it would be later, were there no queues, and how long a packet waits in its own.
    pub farther: Duration,
    pub queue: Duration,
    /// From sending a packet on it until it may be acknowledged, on the fastest.
    pub round: Duration,
    /// What the faster paths are known to deliver, in bit/s.
    pub rate: u64,
    /// What they may be sent, which while nothing is known of them is a guess.
    pub pace: u64,
    /// What this one is known to carry, in bit/s; as much as they while nobody knows.
    pub carries: u64,
    /// Bytes that programs have waiting and in flight; and what of it is known to be the flow's.
    pub outstanding: u64,
    pub own: u64,
    /// What they will have delivered all that waits in, as far as that can be said.
    pub drained: Duration,
    /// Which part of its packets its link loses, as far as that is known.
    pub loss: f64,
    /// By how much its packets come behind later ones: a loss is found out so much later.
    pub lateness: Duration,
}

impl Distant {
    /// What the faster paths deliver until a packet of this one may be acknowledged, in bytes.
    fn needed(&self, rate: u64) -> u64 {
        (rate as f64 / 8.0 * self.round.as_secs_f64()) as u64
    }

    /// What the faster paths do not deliver because of a packet of this one, in bytes in the mean: where it is lost, all wait until it
    /// has come again, and of a window of so many bytes the rest is less than they deliver in that time.
    fn costs(&self, window: u64) -> f64 {
        // What waits before the faster paths' links is sent meanwhile, as long as it takes the packet that is sent again to pass it.
        let repaired =
            (self.rate as f64 / 8.0 * (self.round + self.late + self.lateness + REPAIR).as_secs_f64()) as u64;
        self.loss * repaired.saturating_sub(window) as f64
    }

    /// Whether its losses cost a flow more than it carries whose window was seen to be so large. It is no smaller than what is outstanding.
    fn is_too_lossy(&self, window: u64) -> bool {
        self.costs(window.max(self.own)) >= WORTH
    }

    /// Whether a flow has more with it than without whose window was seen to be so large.
    fn is_worth(&self, window: u64) -> bool {
        let part = self.carries as f64 / self.rate.max(1) as f64;
        let short = (1.0 - RISKED * part).max(SHORT);
        window.max(self.own) as f64 >= self.needed(self.rate) as f64 * short && !self.is_too_lossy(window)
    }

    /// What a flow has to have sent before it is taken to go on, in bytes.
    fn lasting(&self) -> u64 {
        self.needed(if self.rate > 0 { self.rate } else { self.pace }).saturating_mul(LASTING)
    }

    /// What has to wait for the faster paths lest they have nothing to send while this one's first packet is on its way, in bytes.
    pub(crate) fn bridge(&self) -> f64 {
        self.rate as f64 / 8.0 * self.late.as_secs_f64()
    }
}

/// What is to be known of a packet that leaves the send buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// Bytes of its flow before it.
    pub place: u64,
    /// It is TCP's or QUIC's, or one of many that have to wait, and is to be put in order by the receiver.
    pub in_order: bool,
}

impl Reach {
    /// A packet of a flow leaves the send buffer, in which it has waited for so long.
    pub(crate) fn left(&mut self, now: Instant, meta: &Meta, flow: FlowId, wire: usize, waited: Duration) -> Left {
        if self.flows.len() >= FLOWS && !self.flows.contains_key(&flow) {
            self.flows.clear();
            self.stretched.clear();
        }
        let mut stretch = self.stretched.get_mut(&flow);
        if let Some((stretch, segment)) = stretch.as_mut().zip(meta.segment())
            && segment.len > 0
            && !segment.is_retransmission
        {
            stretch.sent(segment.seq.wrapping_add(segment.len), segment.len, now - waited);
        }
        let is_stretched = stretch.is_some();
        let flow = self.flows.entry(flow).or_insert_with(|| Flow { period: (0, now), ..Flow::default() });
        if let Some(silence) = flow.silence.take().filter(|_| !is_stretched) {
            let age = now - silence.since;
            if age >= silence.round.mul_f64(EARLIEST) && age <= silence.round.mul_f64(LATEST.0) + LATEST.1 {
                flow.window = Some(Window { bytes: silence.behind, seen_at: now, offered: silence.offered });
            }
        }
        let place = flow.sent;
        flow.sent += wire as u64;
        flow.left_at = now;
        if let Some((_, since)) = &mut flow.allowed {
            *since += wire as u64;
        }
        let (before, since) = flow.period;
        let is_much = flow.sent - before >= METERED.1;
        if now - since > METERED.0 {
            flow.rates = [(flow.sent - before) as f64 / (now - since).as_secs_f64(), flow.rates[0]];
            (flow.period, flow.is_bulk) = ((flow.sent, now), is_much);
        }
        flow.is_bulk |= is_much;
        let waits = waited > UNORDERED;
        flow.waiting.left(now, wire as u64, waits);
        if waits {
            flow.waited_at = Some(now);
        }
        let has_waited = flow.waited_at.is_some_and(|at| now - at < METERED.0);
        if let Some(small) = &mut flow.quic {
            *small = if wire >= LARGE { 0 } else { small.saturating_add(1) };
        } else if meta.class == Class::Quic {
            flow.quic = Some(if wire >= LARGE { 0 } else { SMALL });
        }
        let in_order = meta.is_tcp() || flow.has_quic_data();
        Left { place, in_order: in_order || waits || has_waited && flow.is_bulk }
    }

    /// Whether a flow is QUIC's and its data go from here: what comes of it is small then, and acknowledges them.
    pub(crate) fn has_quic_data(&self, flow: FlowId) -> bool {
        self.flows.get(&flow).is_some_and(Flow::has_quic_data)
    }

    /// The receiver of a flow offers so many bytes.
    pub(crate) fn offers(&mut self, flow: FlowId, bytes: u64) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.offered = bytes;
        }
    }

    /// A program is told that it may have so many bytes waiting more.
    pub(crate) fn allows(&mut self, flow: FlowId, room: i64) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.allowed = Some((room, 0));
        }
    }

    /// Whether the window of a flow has been clamped.
    pub(crate) fn is_clamped(&self, flow: FlowId) -> bool {
        self.flows.get(&flow).is_some_and(|flow| flow.allowed.is_some())
    }

    /// A packet of a flow goes on a distant path.
    pub(crate) fn goes_far(&mut self, now: Instant, flow: FlowId) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.distant_at = Some(now);
        }
    }

    /// Nothing of a flow waits although a near path has room, and the oldest of its packets on a distant path was sent from that place on.
    pub(crate) fn has_no_more(&mut self, now: Instant, flow: FlowId, place: u64) {
        if let Some(flow) = self.flows.get_mut(&flow).filter(|flow| !flow.is_held_back()) {
            flow.behind = (flow.sent.saturating_sub(place), now);
        }
    }

    /// Nothing of a flow waits, and the oldest of its packets that are on a distant path was sent then, from that place on.
    pub(crate) fn silent(&mut self, now: Instant, flow: FlowId, (sent_at, place): (Instant, u64), round: Duration) {
        let Some(flow) = self.flows.get_mut(&flow).filter(|flow| !flow.is_held_back()) else { return };
        let is_known = flow.silence.is_some_and(|silence| silence.since <= sent_at);
        if !is_known && now - flow.left_at >= SILENCE {
            let (behind, offered) = (flow.sent.saturating_sub(place), flow.offered);
            flow.silence = Some(Silence { since: sent_at, round, behind, offered });
        }
    }

    /// Whether a flow is stretched for a distant path. That begins where the path is worth it, with a bulk flow of TCP, whose acknowledgments
    /// can be told, whose window was seen to be too small or which waits for nothing although the nearer paths have a queue.
    pub(crate) fn stretches(&mut self, now: Instant, id: FlowId, path: &Spare) -> bool {
        let Some(flow) = self.flows.get_mut(&id).filter(|flow| flow.is_bulk && id.is_tcp()) else {
            return false;
        };
        if let Some(stretch) = self.stretched.get_mut(&id) {
            match stretch.judge(now, flow.rates) {
                Some(false) => {
                    (flow.rests_until, flow.rests_from) = (now + stretch::rest(flow.failed), stretch.enough());
                    flow.failed += 1;
                    self.stretched.remove(&id);
                    return false;
                }
                Some(true) => flow.failed = 0,
                None => {}
            }
            if path.is_worth() {
                stretch.reaches(now, path);
                if path.is_wanted {
                    stretch.wants(now, path);
                }
            }
            return !stretch.is_paused();
        }
        let [rate, before] = flow.rates;
        // One that grows by itself needs no help.
        let grows = before > 0.0 && rate > before * GROWS;
        let rests = now < flow.rests_until && rate >= flow.rests_from;
        if rests || rate == 0.0 || grows || !path.is_worth() {
            return false;
        }
        let is_short = flow.known_window(now).is_some_and(|window| (window as f64) < path.needed());
        if !is_short && (flow.waiting.is_most || !path.is_wanted) {
            return false;
        }
        if self.stretched.len() >= STRETCHED {
            self.stretched.retain(|_, stretch| !stretch.is_over(now));
        }
        if self.stretched.len() >= STRETCHED {
            return false;
        }
        (flow.window, flow.period, flow.rates) = (None, (flow.sent, now), [0.0; 2]);
        self.stretched.insert(id, Stretch::new(now, rate, path));
        true
    }

    /// Until when an acknowledgment of all of a flow up to `ack` is held that has come now.
    pub(crate) fn holds(&mut self, now: Instant, flow: FlowId, ack: u32) -> Option<Instant> {
        let stretch = self.stretched.get_mut(&flow)?;
        stretch.holds(now, ack, !self.flows.get(&flow)?.waiting.is_most)
    }

    /// Whether a path is too far away for the next packet of a flow.
    pub(crate) fn is_too_far(&self, now: Instant, flow: FlowId, path: &Distant) -> bool {
        let Some(known) = self.flows.get(&flow) else { return path.drained < path.late };
        if known.sent < path.lasting() {
            return path.drained < path.late;
        }
        if let Some(window) = known.known_window(now) {
            return !path.is_worth(window);
        }
        let is_in_use = known.distant_at.is_some_and(|at| now - at < path.round * IN_USE);
        !is_in_use
            && path.late.max(path.farther) > TRIED
            && (path.outstanding as f64) < path.needed(path.rate.max(path.pace)) as f64 * ENOUGH
    }

    /// Whether the next packet of a flow is kept from a path by the path's own queue, which is so long that the flow's window ends before
    /// all paths have what they carry. The path loses nothing by it while it has a queue.
    pub(crate) fn is_kept_by_queue(&self, now: Instant, id: FlowId, path: &Distant) -> bool {
        let Some(flow) = self.flows.get(&id).filter(|_| path.queue > LONG) else { return false };
        // The window of a TCP that waits for nothing follows from what it gets, as BBR's.
        let is_given = !id.is_tcp() || flow.waiting.is_most;
        let (window, seen_at) = flow.behind;
        let is_known = is_given && window > 0 && now - seen_at < path.round * ENDED;
        is_known && window < path.needed(path.rate.saturating_add(path.carries))
    }

    /// Whether a path that is no later than others costs a flow more than it carries: by what it loses, or because only the queues on
    /// the others make it no later, and a window that they hold is too small for more.
    pub(crate) fn costs_more(&self, now: Instant, flow: FlowId, path: &Distant) -> bool {
        let window = self.flows.get(&flow).and_then(|flow| flow.known_window(now));
        let costs = |window| if path.farther > NEAR { !path.is_worth(window) } else { path.is_too_lossy(window) };
        window.is_some_and(costs)
    }

    /// Whether a flow will use a distant path if it has enough waiting.
    pub(crate) fn wants(&self, now: Instant, flow: FlowId, path: &Distant) -> bool {
        let Some(known) = self.flows.get(&flow) else { return false };
        known.sent >= path.lasting() && known.known_window(now).is_none_or(|window| path.is_worth(window))
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let stretched = self.stretched.len() * 2 * (size_of::<FlowId>() + size_of::<Stretch>())
            + self.stretched.values().map(Stretch::memory).sum::<usize>();
        self.flows.len() * 2 * (size_of::<FlowId>() + size_of::<Flow>()) + stretched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId { protocol: 6, local: 80, remote: 4000 };
    const CALL: FlowId = FlowId { protocol: 17, local: 80, remote: 4000 };

    fn meta(flow: FlowId) -> Meta {
        crate::packet::datagram((), Some(flow), 0).meta
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// 300 ms later than a path of 50 Mbit/s and 20 ms, which carries 2,125,000 bytes until a packet is acknowledged.
    fn distant(drained: u64, outstanding: u64) -> Distant {
        let (ms, rate) = (Duration::from_millis, 50_000_000);
        Distant {
            late: ms(300),
            farther: ms(300),
            queue: Duration::ZERO,
            round: ms(340),
            rate,
            pace: rate,
            carries: rate,
            outstanding,
            own: 0,
            drained: ms(drained),
            loss: 0.0,
            lateness: Duration::ZERO,
        }
    }

    /// A flow that has sent 10 MB, and then so much from a packet on a distant path on, which left at 0 ms.
    fn after(window: usize) -> (Reach, u64) {
        let mut reach = Reach::default();
        reach.left(at(0), &meta(FLOW), FLOW, 10_000_000, Duration::ZERO);
        reach.left(at(0), &meta(FLOW), FLOW, window, Duration::ZERO);
        (reach, 10_000_000)
    }

    #[test]
    fn a_window_that_ends_before_the_packet_arrives_is_too_small() {
        let round = Duration::from_millis(340);
        for (window, resumes, is_too_far) in
            [(1_400_000, 340, true), (4_000_000, 340, false), (1_400_000, 200, false), (1_400_000, 900, false)]
        {
            let (mut reach, place) = after(window);
            reach.silent(at(4), FLOW, (at(0), place), round);
            reach.silent(at(100), FLOW, (at(0), place), round);
            reach.left(at(resumes), &meta(FLOW), FLOW, 1500, Duration::ZERO);
            let is = |now| reach.is_too_far(at(now), FLOW, &distant(1000, 3_000_000));
            assert_eq!((is(resumes), is(resumes + 30_000)), (is_too_far, false), "{window} {resumes}");
        }
    }

    /// Of packets on a link that loses one in 200, each costs the 200th part of what the faster paths do not deliver while a lost one
    /// is repaired: 6.25 MB/s for 655 ms are 4.09 MB.
    #[test]
    fn a_window_that_ends_before_a_lost_packet_is_repaired_is_too_small() {
        for (loss, window, is_too_far) in
            [(0.0, 3_000_000, false), (0.005, 3_000_000, true), (0.0005, 3_000_000, false), (0.005, 4_000_000, false)]
        {
            let (mut reach, place) = after(window);
            reach.silent(at(100), FLOW, (at(0), place), Duration::from_millis(340));
            reach.left(at(340), &meta(FLOW), FLOW, 1500, Duration::ZERO);
            let path = Distant { loss, ..distant(1000, 3_000_000) };
            assert_eq!(reach.is_too_far(at(341), FLOW, &path), is_too_far, "{loss} {window}");
            assert_eq!(reach.wants(at(341), FLOW, &path), !is_too_far, "{loss} {window}");
        }
    }

    /// As above with what packets of it come late, 100 ms here: 6.25 MB/s for 755 ms are 4.72 MB. A path that is no later than others is
    /// left for its losses alone.
    #[test]
    fn a_path_whose_losses_are_found_out_late_is_too_lossy_for_a_small_window() {
        let (mut reach, place) = after(4_300_000);
        let late = Distant { loss: 0.005, lateness: Duration::from_millis(100), ..distant(1000, 3_000_000) };
        assert!(!reach.costs_more(at(0), FLOW, &late), "nothing is known of the window");
        reach.silent(at(100), FLOW, (at(0), place), Duration::from_millis(340));
        reach.left(at(340), &meta(FLOW), FLOW, 1500, Duration::ZERO);
        let is = |path: &Distant| (reach.is_too_far(at(341), FLOW, path), reach.costs_more(at(341), FLOW, path));
        assert_eq!(is(&late), (true, true));
        assert_eq!(is(&Distant { own: 4_600_000, ..late }), (false, false));
        assert_eq!(is(&Distant { lateness: Duration::ZERO, ..late }), (false, false));
        assert_eq!(is(&Distant { loss: 0.0005, ..late }), (false, false));
    }

    /// 75 ms more make it no later than a near path whose queue takes 70 of them: 6.25 MB/s for 160 ms are 1,000,000 bytes. Where it would
    /// be no later without queues either, only what is lost counts.
    #[test]
    fn a_path_that_is_near_by_the_queues_of_others_is_left_for_a_small_window() {
        let (mut reach, place) = after(700_000);
        let ms = Duration::from_millis;
        reach.silent(at(100), FLOW, (at(0), place), ms(160));
        reach.left(at(160), &meta(FLOW), FLOW, 1500, Duration::ZERO);
        let near = Distant { late: ms(5), farther: ms(75), round: ms(160), ..distant(1000, 3_000_000) };
        let is = |path: &Distant| reach.costs_more(at(161), FLOW, path);
        assert_eq!(
            (is(&near), is(&Distant { own: 800_000, ..near }), is(&Distant { farther: ms(5), ..near })),
            (true, false, false)
        );
    }

    /// Near but for a queue of 100 ms, and it carries 10 Mbit/s: until a packet of it is acknowledged, after 140 ms, both deliver 1.05 MB.
    #[test]
    fn a_long_queue_gets_no_more_where_it_takes_the_window_of_nearer_paths() {
        let ms = Duration::from_millis;
        let path = |queue| {
            let (carries, round) = (10_000_000, ms(40 + queue));
            Distant { late: ms(queue), farther: ms(0), queue: ms(queue), round, carries, ..distant(1000, 0) }
        };
        // One that has sent so much after a packet of the path, and waited so long for that.
        let sent = |flow, window, waited| {
            let mut reach = Reach::default();
            for bytes in [1_000_000, window, 0] {
                reach.left(at(if bytes > 0 { 0 } else { 300 }), &meta(flow), flow, bytes, ms(waited));
            }
            reach
        };
        let kept = |flow, (window, waited), (now, queue)| {
            let mut reach = sent(flow, window, waited);
            reach.has_no_more(at(300), flow, 1_000_000);
            reach.is_kept_by_queue(at(now), flow, &path(queue))
        };
        assert!(kept(CALL, (1_040_000, 0), (301, 100)) && !kept(CALL, (1_060_000, 0), (301, 100)));
        assert!(!kept(CALL, (1_040_000, 0), (301, 95)), "it is large enough for less of a queue");
        assert!(kept(CALL, (200_000, 0), (301, 21)) && !kept(CALL, (200_000, 0), (301, 20)), "that is none");
        assert!(kept(CALL, (1_040_000, 0), (859, 100)) && !kept(CALL, (1_040_000, 0), (860, 100)), "it has had more");
        assert!(kept(FLOW, (1_040_000, 6), (301, 100)) && !kept(FLOW, (1_040_000, 0), (301, 100)), "as BBR");
        let mut reach = sent(CALL, 1_040_000, 0);
        assert!(!reach.is_kept_by_queue(at(301), CALL, &path(100)), "it has always had more");
        reach.allows(CALL, 5_000);
        reach.has_no_more(at(300), CALL, 1_000_000);
        assert!(!reach.is_kept_by_queue(at(301), CALL, &path(100)), "it was not allowed more");
    }

    /// 1.8 MB are 0.85 of what the faster path carries until a packet is acknowledged, 7.6 of 50 Mbit/s less.
    #[test]
    fn a_path_that_carries_little_has_to_cost_little() {
        let (mut reach, place) = after(1_800_000);
        reach.silent(at(100), FLOW, (at(0), place), Duration::from_millis(340));
        reach.left(at(340), &meta(FLOW), FLOW, 1500, Duration::ZERO);
        for (carries, is_too_far) in [(2_000_000, true), (14_000_000, true), (17_000_000, false), (90_000_000, false)] {
            let path = Distant { carries, ..distant(1000, 1_000_000) };
            assert_eq!(reach.is_too_far(at(341), FLOW, &path), is_too_far, "{carries}");
        }
        // With as much outstanding as the faster path takes it costs nothing.
        let path = Distant { carries: 2_000_000, own: 2_125_000, ..distant(1000, 3_000_000) };
        assert!(!reach.is_too_far(at(341), FLOW, &path));
    }

    #[test]
    fn a_window_that_has_grown_is_known_by_what_is_outstanding() {
        let (mut reach, place) = after(1_400_000);
        reach.silent(at(100), FLOW, (at(0), place), Duration::from_millis(340));
        reach.left(at(340), &meta(FLOW), FLOW, 1500, Duration::ZERO);
        // Whether or not it is told how much it may have waiting.
        reach.allows(FLOW, 10_000_000);
        // SHORT of 2,125,000 bytes.
        for (own, is_too_far) in [(1_590_000, true), (1_600_000, false)] {
            let path = Distant { own, ..distant(1000, 3_000_000) };
            assert_eq!(reach.is_too_far(at(341), FLOW, &path), is_too_far, "{own}");
            assert_eq!(reach.wants(at(341), FLOW, &path), !is_too_far, "{own}");
        }
    }

    #[test]
    fn a_program_that_was_not_allowed_more_may_have_a_larger_window() {
        for (room, is_too_far) in [(1_000_000, false), (10_000_000, true)] {
            let mut reach = after(0).0;
            reach.allows(FLOW, room);
            reach.left(at(0), &meta(FLOW), FLOW, 1_000_000, Duration::ZERO);
            reach.silent(at(100), FLOW, (at(0), 10_000_000), Duration::from_millis(340));
            reach.left(at(340), &meta(FLOW), FLOW, 1500, Duration::ZERO);
            assert_eq!(reach.is_too_far(at(340), FLOW, &distant(1000, 3_000_000)), is_too_far, "{room}");
        }
    }

    /// Whose receiver makes its window larger as data come, as Linux does, had a smaller one when the silence began.
    #[test]
    fn a_window_that_ended_at_what_the_receiver_offered_is_forgotten_when_that_grows() {
        for (grows_to, is_too_far) in [(131_072, true), (190_000, true), (200_000, false), (8_000_000, false)] {
            let (mut reach, place) = after(100_000);
            reach.offers(FLOW, 131_072);
            reach.silent(at(100), FLOW, (at(0), place), Duration::from_millis(340));
            // The acknowledgment that ends the silence may offer more.
            reach.offers(FLOW, grows_to);
            reach.left(at(340), &meta(FLOW), FLOW, 1500, Duration::ZERO);
            assert_eq!(reach.is_too_far(at(341), FLOW, &distant(1000, 3_000_000)), is_too_far, "{grows_to}");
            assert_eq!(reach.wants(at(341), FLOW, &distant(1000, 3_000_000)), !is_too_far, "{grows_to}");
        }
    }

    #[test]
    fn a_distant_path_is_used_when_enough_is_outstanding_and_as_long_as_it_is_in_use() {
        let mut reach = after(0).0;
        let is = |reach: &Reach, now, outstanding| reach.is_too_far(at(now), FLOW, &distant(1000, outstanding));
        assert!(is(&reach, 1, 1_800_000) && !is(&reach, 1, 2_000_000));
        reach.goes_far(at(1), FLOW);
        assert!(!is(&reach, 600, 0) && is(&reach, 700, 0));
        // One that is not much farther is tried.
        let ms = Duration::from_millis;
        let near = Distant { late: ms(100), farther: ms(100), round: ms(140), ..distant(1000, 0) };
        assert!(!reach.is_too_far(at(700), FLOW, &near));
        // One that is as late because of a queue on the near one is not: that costs as much as ever.
        assert!(reach.is_too_far(at(700), FLOW, &Distant { late: ms(100), ..distant(1000, 0) }));
        // Nor is one that has a long queue itself.
        assert!(reach.is_too_far(at(700), FLOW, &Distant { farther: ms(100), ..distant(1000, 0) }));
    }

    #[test]
    fn what_the_faster_paths_have_delivered_before_does_not_go_there() {
        let mut reach = Reach::default();
        reach.left(at(0), &meta(FLOW), FLOW, 100_000, Duration::ZERO);
        assert!(reach.is_too_far(at(1), FLOW, &distant(299, 3_000_000)));
        assert!(!reach.is_too_far(at(1), FLOW, &distant(301, 3_000_000)));
        reach.left(at(2), &meta(FLOW), FLOW, 8_500_000, Duration::ZERO);
        assert!(!reach.is_too_far(at(3), FLOW, &distant(0, 3_000_000)), "one that has sent so much goes on");
    }

    /// RFC 9002 §6.1.1: three packets that overtake one make it a loss. So the data of QUIC are in order from its first packet on,
    /// whether they wait or not, and its acknowledgments are not: the next tells all that one told.
    #[test]
    fn data_of_quic_are_put_in_order_and_its_acknowledgments_are_not() {
        let (mut reach, begins) = (Reach::default(), Meta { class: Class::Quic, ..meta(CALL) });
        let mut sent = |now, meta: &Meta, wire| reach.left(at(now), meta, CALL, wire, Duration::ZERO).in_order;
        assert!(sent(0, &begins, 1280) && (1..9).all(|now| sent(now, &meta(CALL), 1400)));
        assert!((9..16).all(|now| sent(now, &meta(CALL), 90)), "the end of what it had to send");
        assert!((16..99).all(|now| !sent(now, &meta(CALL), 90)), "it acknowledges");
        assert!(sent(99, &meta(CALL), 1400));
    }

    #[test]
    fn what_sends_much_and_waits_is_put_in_order_and_a_call_is_not() {
        let (mut reach, ms) = (Reach::default(), Duration::from_millis);
        let mut bulk = |now, waited| reach.left(at(now), &meta(FLOW), FLOW, 1250, ms(waited)).in_order;
        let before: Vec<bool> = (0..600).map(|now| bulk(now, if now % 100 == 0 { 6 } else { 0 })).collect();
        assert!(before[0] && !before[1] && before[399..].iter().all(|in_order| *in_order));
        assert!((600..1500).all(|now| bulk(now, 0)), "it has waited within a second");
        assert!(!bulk(1501, 0));
        let mut call = |now, waited| reach.left(at(now), &meta(CALL), CALL, 200, ms(waited)).in_order;
        assert!((0..5000).step_by(20).all(|now| call(now, 6) && !call(now + 10, 0)));
    }

    /// 40 Mbit/s over a near path of 50 and 40 ms, whose window is 80 ms; another of 50 Mbit/s is acknowledged after 140 ms.
    fn spare() -> Spare {
        let ms = Duration::from_millis;
        Spare { rtt: ms(40), round: ms(140), rate: 50_000_000, carries: 50_000_000, is_wanted: true }
    }

    /// A flow that sends 5 kB each ms from 0 to `until` ms.
    fn sending(flow: FlowId, until: u64, waited: Duration) -> Reach {
        let mut reach = Reach::default();
        (0..until).for_each(|now| {
            reach.left(at(now), &meta(flow), flow, 5_000, waited);
        });
        reach
    }

    #[test]
    fn a_bulk_tcp_that_waits_for_nothing_is_stretched_where_near_paths_have_queues() {
        let stretches =
            |flow, until, waited, path: &Spare| sending(flow, until, waited).stretches(at(until), flow, path);
        let (none, waits) = (Duration::ZERO, Duration::from_millis(6));
        assert!(stretches(FLOW, 2500, none, &spare()));
        assert!(!stretches(CALL, 2500, none, &spare()), "its acknowledgments cannot be told");
        assert!(!stretches(FLOW, 900, none, &spare()), "nobody knows what it has");
        assert!(!stretches(FLOW, 2500, waits, &spare()), "its window is larger than the paths'");
        assert!(!stretches(FLOW, 2500, none, &Spare { is_wanted: false, ..spare() }));
        assert!(!stretches(FLOW, 2500, none, &Spare { carries: 1_000_000, ..spare() }));
        // Whose window was seen to be too small need not fill a queue.
        for (window, is_stretched) in [(500_000, true), (900_000, false)] {
            let (mut reach, round) = (sending(FLOW, 2500, none), Duration::from_millis(140));
            reach.silent(at(2505), FLOW, (at(2365), 12_500_000 - window), round);
            reach.left(at(2506), &meta(FLOW), FLOW, 1500, none);
            let path = Spare { is_wanted: false, ..spare() };
            assert_eq!(reach.stretches(at(2507), FLOW, &path), is_stretched, "{window}");
        }
    }

    #[test]
    fn what_is_stretched_uses_a_distant_path_and_is_left_alone_if_it_has_no_more_by_that() {
        let far = Distant { late: Duration::from_millis(100), ..distant(1000, 0) };
        let far = Distant { farther: Duration::from_millis(100), round: Duration::from_millis(140), ..far };
        for (bytes, goes_on) in [(7_000, true), (5_200, false)] {
            let mut reach = sending(FLOW, 2500, Duration::ZERO);
            assert!(reach.holds(at(2500), FLOW, 0).is_none() && reach.stretches(at(2500), FLOW, &spare()));
            let held = at(2500) + Duration::from_millis(95);
            assert_eq!((reach.holds(at(2500), FLOW, 0), reach.holds(at(2500), CALL, 0)), (Some(held), None));
            for now in 2500..5600 {
                reach.left(at(now), &meta(FLOW), FLOW, bytes, Duration::ZERO);
                // That its window ends while acknowledgments are held tells nothing.
                reach.silent(at(now), FLOW, (at(now - 140), 0), Duration::from_millis(140));
                assert!(!reach.is_too_far(at(now), FLOW, &far));
            }
            let is_stretched = reach.stretches(at(5600), FLOW, &spare());
            assert_eq!((is_stretched, reach.holds(at(5600), FLOW, 0).is_some()), (goes_on, goes_on), "{bytes}");
            if !goes_on {
                (5600..25_600).step_by(100).for_each(|now| {
                    reach.left(at(now), &meta(FLOW), FLOW, 600_000, Duration::ZERO);
                    assert!(!reach.stretches(at(now), FLOW, &spare()), "{now}");
                });
                assert!(reach.stretches(at(25_600), FLOW, &spare()), "tried again");
            }
        }
    }

    /// One that grows by itself is left alone; others have to get more than the near paths carry.
    #[test]
    fn it_is_judged_by_what_near_paths_carry() {
        // Bytes each millisecond in the first second, in the next, and stretched; the near path carries 6,250.
        for (first, second, stretched, begins, goes_on) in [
            (5_000, 6_000, 0, false, false),
            (9_000, 8_000, 7_200, true, true),
            (9_000, 8_000, 6_500, true, false),
            (4_000, 4_000, 4_300, true, false),
            (4_000, 4_000, 4_500, true, true),
        ] {
            let mut reach = Reach::default();
            let send = |reach: &mut Reach, from, to, bytes| {
                (from..to).for_each(|now| {
                    reach.left(at(now), &meta(FLOW), FLOW, bytes, Duration::ZERO);
                });
            };
            send(&mut reach, 0, 1002, first);
            send(&mut reach, 1002, 2004, second);
            assert_eq!(reach.stretches(at(2004), FLOW, &spare()), begins, "{first} {second}");
            send(&mut reach, 2004, 5010, stretched);
            let holds = |reach: &mut Reach| {
                reach.stretches(at(5010), FLOW, &spare());
                reach.stretched.contains_key(&FLOW)
            };
            assert_eq!(holds(&mut reach), goes_on, "{first} {second} {stretched}");
        }
    }

    /// One that has as much in a pause is left alone while it has nine tenths of that.
    #[test]
    fn what_has_less_after_a_pause_than_in_it_is_stretched_again() {
        for (later, again) in [(7_100, true), (7_300, false)] {
            let mut reach = Reach::default();
            let mut asked = |from, to, bytes| {
                (from..to).for_each(|now| {
                    reach.left(at(now), &meta(FLOW), FLOW, bytes, Duration::ZERO);
                });
                (reach.stretches(at(to), FLOW, &spare()), reach.stretched.contains_key(&FLOW))
            };
            assert_eq!(asked(0, 2004, 8_000), (true, true));
            assert_eq!(asked(2004, 5010, 8_000), (false, true), "paused");
            assert_eq!(asked(5010, 9020, 8_000), (false, false), "ended");
            assert_eq!(asked(9020, 12_030, later), (again, again), "{later}");
        }
    }
}
