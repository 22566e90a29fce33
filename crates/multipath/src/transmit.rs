//! Which packet leaves next, and on which path: a round in which the windows and the paces of all paths are asked again for
//! each packet, until nothing waits or nothing may leave.

use crate::packet::{FlowId, QueuedPacket};
use crate::path::SenderPath;
use crate::reach::{Distant, NEAR, Reach};
use crate::send_buffer::Limits;
use crate::sender::{Dispatch, Feedback, Sender, Treatment};
use crate::stretch::Spare;
use crate::windows::{Windows, in_flight};
use clock::{Duration, Instant};
use queue::Ecn;
use scheduler::{Decision, PacketMeta, PathId, PathScheduler, PathView};

/// One in so many bytes may be a copy of what is sent again, ...
const COPIED: usize = 100;
/// ... and after a while without copies so many bytes at once: two packets. The first that is missing holds up all others.
const COPIES: usize = 3_000;
/// What may be in flight on a path that does not answer, in bytes, where no path does.
const TRY: f64 = 3_000.0;
/// With no more than this waiting, a packet rather waits for the fastest path than takes a slower one.
const PATIENT_BYTES: usize = 3_100;
/// ... nor longer than this.
const PATIENT_TIME: Duration = Duration::from_millis(2);
/// What a thin flow may send beyond a window that is full, in bytes.
const SPARE: f64 = 3_000.0;
/// A path whose round-trip time is longer by this is another one for a thin flow.
const FARTHER: Duration = Duration::from_millis(20);
/// A queue of less than this is none, nor is one of less than an eighth of the least round trip.
const QUEUE: Duration = Duration::from_millis(1);
/// How long a packet that may be sent is held at most, so that it leaves back to back with the next.
const PAIR: Duration = Duration::from_millis(4);
/// A path that was idle for so long begins anew.
const IDLE: Duration = Duration::from_secs(1);
/// The rate in bit/s of a path to a peer without reports where none is configured: the least pace of a snooped one.
pub const UNKNOWN_RATE: u64 = 1_000_000;

/// What holds for one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) limits: Limits,
    /// Bytes that may still be kept to be sent again.
    pub(crate) room: usize,
}

/// A usable path, as it is to know of whether another is too far away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    id: PathId,
    /// One-way, as it is now, and as it has been at the least.
    delay: Duration,
    least_delay: Duration,
    /// What it is known to have delivered lately, in bit/s; zero while nothing is.
    delivered: u64,
    /// What it may be sent, in bit/s, and from when on.
    rate: u64,
    free_at: Instant,
    /// It is in slow start, and will be sent twice as much a round trip later.
    doubles: bool,
    /// Its window has room.
    has_room: bool,
    in_flight: usize,
    /// It has something of a queue, where that is known, and how long packets wait in it.
    has_queue: bool,
    queue: Duration,
    /// Which part of its packets its link loses, as far as that is known.
    loss: f64,
    /// By how much its packets come behind later ones.
    lateness: Duration,
}

/// Which of the two loops was the limit, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Binding {
    /// The windows of the paths: packets waited.
    paths: Duration,
    /// The programs: nothing waited.
    programs: Duration,
    since: Option<(Instant, bool)>,
}

impl Binding {
    fn note(&mut self, now: Instant, waits: bool) {
        if let Some((since, waited)) = self.since {
            *(if waited { &mut self.paths } else { &mut self.programs }) += now - since;
        }
        self.since = Some((now, waits));
    }

    /// The part of the time in which packets waited.
    pub(crate) fn of_paths(&self) -> f64 {
        let all = (self.paths + self.programs).as_secs_f64();
        if all > 0.0 { self.paths.as_secs_f64() / all } else { 0.0 }
    }
}

impl<P: Clone> Sender<P> {
    /// The next packet that windows and paces allow; asked until there is none.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Dispatch<P>> {
        if let Some(dispatch) = self.poll_urgent(now) {
            return Some(dispatch);
        }
        if !self.has_windows() {
            return None;
        }
        let round = match self.round {
            Some(round) => round,
            None => self.begin_round(now),
        };
        let dispatch = self.next_dispatch(now, round);
        if dispatch.is_none() {
            self.end_round(now);
        }
        dispatch
    }

    fn begin_round(&mut self, now: Instant) -> Round {
        self.reassign_stranded();
        self.overtake(now);
        let round = Round { limits: self.limits(now), room: self.memory.in_flight.saturating_sub(self.kept()) };
        self.wake_at = None;
        self.binding.note(now, self.waits());
        for control in self.paths.iter_mut().filter_map(|path| path.control.as_mut()) {
            if std::mem::take(&mut control.is_reported) {
                (control.busy, control.top_flight) = (false, 0);
            }
        }
        self.round = Some(round);
        round
    }

    fn end_round(&mut self, now: Instant) {
        self.round = None;
        self.look_for_silence(now);
        let waits = self.waits();
        if waits {
            self.wake_at = [self.wake_at, self.windows.unblocked_at(now)].into_iter().flatten().min();
        }
        for control in self.paths.iter_mut().filter_map(|path| path.control.as_mut()) {
            control.busy |= waits;
        }
        self.binding.note(now, waits);
        self.counts.queue_full += self.buffer.dropped() - self.dropped;
        self.dropped = self.buffer.dropped();
    }

    fn next_dispatch(&mut self, now: Instant, round: Round) -> Option<Dispatch<P>> {
        if !self.waits() {
            return None;
        }
        if self.policies.is_empty() { self.next_of(now, round) } else { self.next_by_policy(now, round) }
    }

    /// The next packet, of the policy whose turn it is.
    pub(crate) fn next_of(&mut self, now: Instant, round: Round) -> Option<Dispatch<P>> {
        if !self.scheduler.needs().arrivals {
            return self.schedule(now, round);
        }
        if round.room == 0 {
            return None;
        }
        self.look_at_paths(now);
        self.leave_out_distant(now);
        let path = self.choose_path(now)?;
        let packet = self.next_packet(now, &round.limits)?;
        self.round = Some(Round { room: round.room.saturating_sub(packet.len()), ..round });
        self.send_beside(now, path, &packet);
        self.windowed(now, path, packet)
    }

    /// A packet leaves within the window of a path.
    pub(crate) fn windowed(&mut self, now: Instant, path: PathId, packet: QueuedPacket<P>) -> Option<Dispatch<P>> {
        let place = if self.is_snooping() { self.snooping.place(now, &packet.meta) } else { None };
        let is_followed = place.is_some() || !self.is_snooping();
        self.path_mut(path)?.pacer.sent(packet.wire, now);
        self.copies = (self.copies + packet.wire / COPIED).min(COPIES);
        Some(Dispatch { path, packet, treatment: Treatment::Windowed { place, is_followed } })
    }

    /// A packet that others wait for was lost and is sent again on a path. If that path dies now, nobody knows for a round trip: so a copy
    /// goes on another one, beyond its window, unless it would come there later than what is sent a third time. No more than a hundredth
    /// is copied, and nothing where links lose at random. The peer knows copies by the number.
    fn send_beside(&mut self, now: Instant, path: PathId, packet: &QueuedPacket<P>) {
        let is_waited_for = packet.retransmissions > 0 && packet.number.is_some();
        if !is_waited_for || self.around.iter().any(|path| path.loss > 0.0) {
            return;
        }
        let Some(this) = self.around.iter().find(|around| around.id == path) else { return };
        let latest = this.delay + this.least_delay * 2;
        let others = self.around.iter().filter(|other| other.id != path && other.delay < latest);
        let Some(other) = others.min_by_key(|other| (other.delay, other.id)).map(|other| other.id) else { return };
        let Some(left) = self.copies.checked_sub(packet.wire) else { return };
        self.copies = left;
        if let Some(other) = self.path_mut(other) {
            other.pacer.sent(packet.wire, now);
        }
        self.ready.push_back(Dispatch { path: other, packet: packet.clone(), treatment: Treatment::Copy });
    }

    /// The paths as the scheduler sees them: to one that compares arrivals only those whose windows have room.
    pub(crate) fn look_at_paths(&mut self, now: Instant) {
        let allowed = self.allowed(self.policies.current());
        let (any_usable, is_snooping, next_wire) = (allowed.any_usable, self.is_snooping(), self.next_wire());
        let is_new = self.next_again().is_none();
        let compares_arrivals = self.scheduler.needs().arrivals;
        let looks_around = compares_arrivals && self.paths.len() > 1 && self.feedback == Feedback::Reports;
        let Self { paths, retired, views, around, flights, windows, .. } = self;
        views.clear();
        around.clear();
        flights.clear();
        let controls = paths.iter().chain(retired.iter()).filter_map(|path| path.control.as_ref());
        flights.extend(controls.map(|control| (control.slot, control.sent.in_flight())));
        for path in paths {
            let usable = allowed.may_carry(path) && path.state.allows(next_wire.unwrap_or(path.state.mtu.into()));
            let Some(control) = path.control.as_mut().filter(|_| usable) else { continue };
            let is_blocked = is_new && windows.is_blocked(control.slot, now);
            if is_blocked && compares_arrivals {
                continue;
            }
            if control.sent.in_flight() == 0 && now - control.last_sent > IDLE {
                control.last_sent = now;
                windows.idle(now, control.slot);
            }
            control.is_starting = windows.threshold(control.slot).is_infinite();
            let next = next_wire.unwrap_or(path.state.mtu.into());
            let is_full = match any_usable || is_snooping {
                true => windows.is_full(control.slot, next, flights),
                false => in_flight(flights, |slot| slot == control.slot) as f64 >= TRY,
            };
            // Losses are not repaired where nothing is reported: a path is not filled further while another has room.
            control.busy |= is_full && !is_snooping;
            let (delivered, in_flight) = (control.sent.full_rate(), control.sent.in_flight());
            let (least_rtt, lateness) = (control.sent.rtt().min(), control.sent.lateness());
            if is_full && compares_arrivals && !looks_around {
                continue;
            }
            let (base, queue) = control.queue().unwrap_or_default();
            let has_queue = queue > (base / 8).max(QUEUE);
            // Rates of links that change are not known well, and round trips have jitter: both have to tell how long packets wait.
            let srtt = control.sent.rtt().srtt().unwrap_or(base);
            let queue = queue.min(srtt.saturating_sub(base));
            let slot = control.slot;
            let view = path.view_under_window(windows, is_snooping);
            if looks_around {
                let PathView { id, delay, rate, free_at, cwnd, ssthresh, .. } = view;
                around.push(Around {
                    id,
                    delay,
                    least_delay: least_rtt.map_or(delay, |rtt| delay.min(rtt / 2)),
                    delivered,
                    rate,
                    free_at,
                    doubles: cwnd < ssthresh,
                    has_room: !is_full,
                    in_flight,
                    has_queue,
                    queue,
                    loss: windows.own_loss(slot),
                    lateness,
                });
            }
            if is_full && compares_arrivals {
                continue;
            }
            let is_open = compares_arrivals || !is_blocked && !is_full && view.free_at <= now;
            views.push(PathView { open: is_open, ..view });
        }
    }

    /// Bytes that have to be allowed for the next packet: its own, or where several wait, those of any (`None`).
    fn next_wire(&self) -> Option<usize> {
        match (self.next_again(), self.again.len() + self.buffer.packets()) {
            (Some(packet), _) => Some(packet.wire),
            (None, 1) => Some(self.buffer.bytes() + self.wire_of_number()),
            _ => None,
        }
    }

    /// The next packet does not see paths that are too far away for it. What was lost others wait for already: it goes there only
    /// if it takes the faster ones longer to send all of that.
    fn leave_out_distant(&mut self, now: Instant) {
        let Some(least) = self.around.iter().map(|path| path.delay).min() else { return };
        let least_empty = self.around.iter().map(|path| path.least_delay).min().unwrap_or(least);
        let is_new = self.next_again().is_none();
        let flow = if is_new { self.buffer.next_flow() } else { None };
        let waiting = if is_new { self.buffer.bytes() } else { self.again_bytes };
        let in_flight: usize = self.around.iter().map(|path| path.in_flight).sum();
        let outstanding = (in_flight + waiting) as u64;
        let own = if self.buffer.flows() == 1 { outstanding } else { 0 };
        let Self { views, around, reach, bridge, .. } = self;
        let is_stretched = flow.is_some_and(|flow| stretches(now, reach, flow, (around, least_empty)));
        views.retain(|view| {
            let late = view.delay.saturating_sub(least);
            let Some(this) = around.iter().find(|path| path.id == view.id) else { return true };
            let farther = this.least_delay.saturating_sub(least_empty);
            if late.max(farther) <= NEAR && this.loss == 0.0 {
                return true;
            }
            let faster = || around.iter().filter(|path| path.delay < view.delay && path.id != view.id);
            let Some(free_at) = faster().map(|path| path.free_at).min() else { return true };
            let pace: u64 = faster().map(|path| path.rate).fold(0, u64::saturating_add);
            let drained = if faster().any(|path| path.doubles) {
                // Of what is waiting a round trip takes so much, the next twice that.
                let first = (pace as f64 / 8.0 * 2.0 * least.as_secs_f64()) as usize;
                least * 2 * u64::from((1 + waiting / first.max(1)).ilog2() + 1)
            } else {
                Duration::of_transmission(waiting as u64, pace.max(1))
            };
            let drained = drained.min(Duration::of_transmission(waiting as u64, pace.max(1)));
            let drained = free_at.saturating_since(now) + drained;
            let rate = faster().map(|path| path.delivered).fold(0, u64::saturating_add);
            let Around { loss, lateness, queue, .. } = *this;
            // In slow start nobody knows what it carries.
            let carries = if this.doubles || this.delivered == 0 { pace } else { this.delivered };
            let round = view.delay + least;
            let distant =
                Distant { late, farther, queue, round, rate, pace, carries, outstanding, own, drained, loss, lateness };
            if late <= NEAR {
                return flow.is_none_or(|flow| !reach.costs_more(now, flow, &distant));
            }
            let Some(flow) = flow else {
                // The faster ones have room again after a round trip at the latest.
                let waits = if faster().any(|path| path.has_room) { Duration::ZERO } else { least * 2 };
                return is_new || drained.max(waits) >= late;
            };
            let rates_are_known = || around.iter().all(|path| !path.doubles);
            if reach.is_kept_by_queue(now, flow, &distant) && rates_are_known() {
                return false;
            }
            if reach.wants(now, flow, &distant) {
                *bridge = (distant.bridge(), now);
            }
            let may = !reach.is_too_far(now, flow, &distant);
            if may {
                reach.goes_far(now, flow);
            }
            may
        });
        // What would make a queue goes where there is none.
        let has_queue = |view: &PathView| around.iter().any(|path| path.id == view.id && path.has_queue);
        if is_stretched && !views.iter().all(has_queue) {
            views.retain(|view| !has_queue(view));
        }
    }

    /// Notes which programs have nothing to send while a packet of theirs is on a path that is later than another.
    fn look_for_silence(&mut self, now: Instant) {
        let Some(least) = self.around.iter().map(|path| path.delay).min() else { return };
        let Self { paths, around, reach, buffer, .. } = self;
        let has_room = around.iter().any(|path| path.has_room && path.delay <= least + NEAR);
        for Around { id, delay, .. } in around.iter().filter(|path| path.delay > least + NEAR) {
            let control = paths.iter().find(|path| path.id == *id).and_then(|path| path.control.as_ref());
            let Some((sent_at, packet)) = control.and_then(|control| control.sent.oldest()) else { continue };
            if let Some(flow) = packet.meta.flow.filter(|flow| packet.number.is_some() && !buffer.has(*flow)) {
                if has_room {
                    reach.has_no_more(now, flow, packet.place);
                }
                reach.silent(now, flow, (sent_at, packet.place), *delay + least);
            }
        }
    }

    /// The path of the next packet; where none is to take it yet, notes when one will.
    fn choose_path(&mut self, now: Instant) -> Option<PathId> {
        let is_new = self.next_again().is_none();
        if is_new
            && self.buffer.next_is_thin()
            && let Some(near) = self.nearest_path(now)
        {
            return Some(near);
        }
        let len = self.next_again().map_or(1500, |packet| packet.wire);
        let meta = PacketMeta { len, ..PacketMeta::default() };
        let Decision::Send(best) = self.scheduler.select(&meta, &self.views, now) else { return None };
        let is_late = |view: &PathView| view.free_at > now;
        if !self.views.iter().any(|view| view.id == best && is_late(view)) {
            return Some(best);
        }
        let waited = self.buffer.waits_since().is_some_and(|since| now - since > PATIENT_TIME);
        if is_new && !waited && self.buffer.bytes() <= PATIENT_BYTES {
            self.wake_at = self.views.iter().filter(|view| is_late(view)).map(|view| view.free_at).min();
            return None;
        }
        for view in &mut self.views {
            view.open = !is_late(view);
        }
        if let Decision::Send(ready) = self.scheduler.select(&meta, &self.views, now) {
            return Some(ready);
        }
        self.wake_at = self.next_pair(now);
        None
    }

    /// When the first of the paths that are ahead of their pace may send two packets back to back.
    pub(crate) fn next_pair(&self, now: Instant) -> Option<Instant> {
        // A peer that does not put in order is not to get more out of order.
        let most = if self.is_snooping() { Duration::ZERO } else { PAIR };
        let late = self.views.iter().filter(|view| view.free_at > now);
        late.map(|view| view.free_at + most.min(Duration::of_transmission(1500, view.rate))).min()
    }

    /// Where a thin flow's next packet goes: on the path of the shortest round trip, and on the same one while it is not much
    /// longer than another. Jumping between queues, which windows that open now here and now there would make it do, is jitter
    /// to a call; what little it sends finds room.
    fn nearest_path(&mut self, now: Instant) -> Option<PathId> {
        let (next_wire, allowed) = (self.next_wire(), self.allowed(self.policies.current()));
        let near = self.paths.iter().filter(|path| allowed.any_usable && allowed.may_carry(path)).filter_map(|path| {
            let control = path.control.as_ref()?;
            let has_room = (control.sent.in_flight() as f64) < self.windows.window(control.slot) + SPARE;
            let has_room = has_room && path.state.allows(next_wire.unwrap_or(path.state.mtu.into()));
            let has_room = has_room && !self.windows.is_blocked(control.slot, now);
            has_room.then_some((control.round_trip(path.srtt()?), path.id))
        });
        let (least, best) = near.clone().min()?;
        let kept = near.clone().find(|(srtt, id)| Some(*id) == self.nearest && *srtt < least + FARTHER);
        self.nearest = Some(kept.map_or(best, |(_, id)| id));
        self.nearest
    }

    /// Takes the next packet: what was lost before what waits. What has waited gets its number.
    pub(crate) fn next_packet(&mut self, now: Instant, limits: &Limits) -> Option<QueuedPacket<P>> {
        if let Some(packet) = self.take_again() {
            return Some(packet);
        }
        let mut packet = match self.policies.is_empty() {
            true => self.buffer.pop(now, limits)?,
            false => self.buffer.pop_prepared(now, limits)?,
        };
        self.moved = now;
        packet.order = self.taken;
        self.taken += 1;
        if self.is_snooping() {
            return Some(packet);
        }
        let (meta, wire, waited) = (&packet.meta, packet.wire, self.buffer.sojourn());
        let left = meta.flow.map(|flow| self.reach.left(now, meta, flow, wire, waited));
        packet.place = left.map_or(0, |left| left.place);
        let in_order = left.is_some_and(|left| left.in_order);
        // A whole header carries the flow's mark with a number; without one the peer takes the flow for one that has none.
        let has_number = in_order || packet.meta.ecn != Ecn::NotEct && !packet.meta.is_short;
        if let Some(flow) = packet.meta.flow.filter(|_| has_number) {
            packet.number = Some(self.numbers.next(flow));
            packet.wire = self.wire(packet.len());
        } else if !packet.meta.is_short {
            packet.meta.ecn = Ecn::NotEct;
        }
        Some(packet)
    }
}

/// Whether the flow of the next packet is stretched for one of these paths. They are compared as they are without queues: one that the flow
/// itself makes on a near path brings no other nearer. `least` is the least of their delays then.
fn stretches(now: Instant, reach: &mut Reach, flow: FlowId, (around, least): (&[Around], Duration)) -> bool {
    let is_distant = |path: &&Around| path.least_delay > least + NEAR && path.loss == 0.0;
    around.iter().filter(is_distant).fold(false, |is_stretched, this| {
        let nearer = || around.iter().filter(|path| path.least_delay < this.least_delay);
        let rate = nearer().map(|path| path.delivered).fold(0, u64::saturating_add);
        let path = Spare {
            rtt: least * 2,
            round: this.least_delay + least,
            rate,
            carries: if this.doubles || this.delivered == 0 { rate } else { this.delivered },
            is_wanted: nearer().all(|path| path.has_queue) && this.has_room,
        };
        reach.stretches(now, flow, &path) || is_stretched
    })
}

impl<P> SenderPath<P> {
    /// The path as the scheduler sees it, at the pace of its window.
    fn view_under_window(&mut self, windows: &Windows, is_snooping: bool) -> PathView {
        let Self { state, pacer, control, .. } = self;
        let Some(control) = control else { return PathView::default() };
        let (reported, heartbeat) = (control.sent.rtt().srtt(), state.srtt);
        // Snooped round trips contain what the peer's TCP waited for, and heartbeats are rare.
        let srtt = if is_snooping { [reported, heartbeat].into_iter().flatten().min() } else { reported.or(heartbeat) };
        let pace = windows.pace(control.slot, srtt, control.earliness());
        // What is not TCP shares the pace, and is not to be slowed by windows that know nothing of it.
        let pace = if is_snooping { pace.max(state.rate.unwrap_or(UNKNOWN_RATE)) } else { pace };
        pacer.set_rate(state.rate.map_or(pace, |cap| pace.min(crate::pacing::used(cap))));
        // What little was sent so far is no rate of the path's.
        let rate = control.sent.rate().max(pacer.rate());
        let delay = srtt.map_or(state.delay, |srtt| control.delay(srtt));
        let free_at = pacer.clear_at();
        let measured = self.measured(windows);
        PathView { open: true, delay, rate, free_at, srtt: srtt.unwrap_or(measured.srtt), ..measured }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::datagram;
    use crate::sent_packets::AckOutcome;
    use crate::{Feedback, Memory, PathState};
    use congestion::{Backoff, Cause, Group, Rule, WindowRule};
    use recovery::RttEstimator;

    /// A Reno that is silent for a retransmission timeout after a loss.
    #[derive(Clone, Debug)]
    struct Silent;

    impl WindowRule for Silent {
        fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
            group.path(path).reno(acked)
        }
        fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
            let path = group.path(path);
            Backoff { block: path.rto, ..Backoff::to(path.cwnd / 2.0, path.mss) }
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn syn(local: u16) -> crate::Meta {
        let segment = crate::Segment { len: 1, syn: true, has_timestamps: true, ..crate::Segment::default() };
        let flow = Some(crate::FlowId { protocol: 6, local, remote: 80 });
        crate::Meta {
            flow,
            len: 40,
            is_urgent: true,
            class: crate::Class::Tcp(segment),
            ecn: Ecn::NotEct,
            is_short: false,
        }
    }

    #[test]
    fn a_crowd_of_connections_opens_at_the_pace_of_the_path() {
        let mut sender = Sender::<u8>::new(Feedback::Reports, "mhip".parse().unwrap());
        sender.set_memory(Memory { send_buffer: 1 << 20, in_flight: 1 << 20 });
        let state =
            PathState { is_verified: true, is_alive: true, allowance: u64::MAX, mtu: 1500, ..PathState::default() };
        sender.add_path(at(0), PathId(0), state, 1_000_000);
        let rate = sender.paths[0].pacer.rate();
        let (mut at_once, mut bytes) = (0, 0);
        for local in 0..1000 {
            sender.enqueue(at(0), syn(local), 0);
            while let Some(dispatch) = sender.poll_urgent(at(0)) {
                (at_once, bytes) = (at_once + 1, bytes + dispatch.packet.wire);
            }
        }
        assert!(at_once > 1, "who comes first does not wait");
        // CROWDED at the path's pace, what a late timer may catch up with, and the last.
        let most = rate as f64 / 8.0 * 0.025 + 100.0;
        assert!(bytes as f64 <= most, "{bytes} bytes leave at once, {most} are the path's");
        assert_eq!(sender.buffer.packets(), 1000 - at_once, "the others wait, and none is lost");
        // The path has time again: a single one goes past what waits.
        sender.enqueue(at(60), syn(2000), 7);
        assert_eq!(sender.poll_urgent(at(60)).map(|dispatch| dispatch.packet.payload), Some(7));
    }

    /// What opens a connection leaves past all that waits, and comes again when the path has lost it: its TCP would wait a second.
    #[test]
    fn what_opens_a_connection_is_repaired() {
        let mut sender = Sender::<u8>::new(Feedback::Reports, "mhip".parse().unwrap());
        sender.set_memory(Memory { send_buffer: 1 << 20, in_flight: 1 << 20 });
        let state =
            PathState { is_verified: true, is_alive: true, allowance: u64::MAX, mtu: 1500, ..PathState::default() };
        sender.add_path(at(0), PathId(0), state, 10_000_000);
        let acknowledgment = |number: u8| {
            let mut meta = syn(number.into());
            meta.class = crate::Class::Tcp(crate::Segment { has_timestamps: true, ..crate::Segment::default() });
            meta
        };
        for number in 1..=6_u8 {
            let meta = if number == 1 { syn(1) } else { acknowledgment(number) };
            sender.enqueue(at(0), meta, number);
            let dispatch = sender.poll_urgent(at(0)).unwrap();
            sender.on_sent(at(0), dispatch, number.into());
        }
        let report =
            crate::Report { highest: 5, packets: 3, bytes: 120, ranges: vec![(3, 5)], ..crate::Report::default() };
        sender.on_report(at(60), PathId(0), true, &report).unwrap();
        let again: Vec<u8> = std::iter::from_fn(|| sender.poll_transmit(at(61))).map(|d| d.packet.payload).collect();
        assert_eq!(again, [1], "the SYN alone: other acknowledgments follow");
    }

    /// A path of 20 ms and one of 320 ms, and a flow.
    fn near_and_far() -> (Sender<u8>, Option<crate::FlowId>) {
        let mut sender = Sender::<u8>::new(Feedback::Reports, "mhip".parse().unwrap());
        sender.set_memory(Memory { send_buffer: 1 << 20, in_flight: 1 << 20 });
        for (id, delay) in [(0, 20), (1, 320)] {
            let delay = Duration::from_millis(delay);
            let state = PathState {
                is_verified: true,
                is_alive: true,
                allowance: u64::MAX,
                mtu: 1500,
                delay,
                ..PathState::default()
            };
            sender.add_path(at(0), PathId(id), state, UNKNOWN_RATE);
        }
        (sender, Some(crate::FlowId { protocol: 17, local: 1, remote: 2 }))
    }

    #[test]
    fn what_was_lost_waits_for_the_near_path_and_not_on_the_distant_one() {
        let (mut sender, flow) = near_and_far();
        (0..8).for_each(|_| {
            sender.enqueue(at(1000), datagram((), flow, 1400).meta, 0);
        });
        let mut sent = 0;
        while let Some(dispatch) = sender.poll_transmit(at(1000)) {
            assert_eq!(dispatch.path, PathId(0), "the rest is there before the distant path delivers anything");
            sent += 1;
            sender.on_sent(at(1000), dispatch, sent);
        }
        assert!(sender.buffer.packets() > 0);
        sender.rescue(vec![datagram(7, flow, 1400)]);
        assert!(sender.poll_transmit(at(1000)).is_none(), "it waits for the pace of the near path");
        let due = sender.poll_pacing().unwrap();
        assert!(due < at(1010));
        assert_eq!(
            sender.poll_transmit(due).map(|dispatch| (dispatch.path, dispatch.packet.payload)),
            Some((PathId(0), 7))
        );
    }

    /// 60 ms of queue have been measured, and the path has nothing to carry any more. Heartbeats that come back after a millisecond
    /// say that the queue is gone; what comes back after 60 ms says that it is there again.
    #[test]
    fn an_empty_path_is_as_near_as_heartbeats_say() {
        let (mut sender, flow) = near_and_far();
        let last = std::cell::Cell::new(0);
        let next = || last.replace(last.get() + 1) + 1;
        let answered = |sender: &mut Sender<u8>, sent, after: u64| {
            let number = next();
            sender.enqueue(at(sent), datagram((), flow, 1400).meta, 0);
            let dispatch = sender.poll_transmit(at(sent)).unwrap();
            assert_eq!(dispatch.path, PathId(0));
            sender.on_sent(at(sent), dispatch, number);
            if after > 0 {
                let report =
                    crate::Report { highest: number, packets: number, ranges: vec![(1, number)], ..Default::default() };
                sender.on_report(at(sent + after), PathId(0), true, &report).unwrap();
            }
        };
        let delay = |sender: &Sender<u8>| {
            let control = sender.paths[0].control.as_ref().unwrap();
            control.delay(control.sent.rtt().srtt().unwrap())
        };
        let ms = Duration::from_millis;
        let mut heartbeats = RttEstimator::default();
        let mut heartbeat = |sender: &mut Sender<u8>, now, after| {
            heartbeats.sample(ms(after));
            sender.on_heartbeat(at(now), PathId(0), &heartbeats);
        };
        answered(&mut sender, 0, 1);
        for round in 1..40 {
            answered(&mut sender, round * 100, 60);
        }
        assert!(delay(&sender) > ms(28));
        answered(&mut sender, 4000, 0);
        heartbeat(&mut sender, 4010, 1);
        assert!(delay(&sender) > ms(28), "something is on its way there");
        answered(&mut sender, 4020, 60);
        heartbeat(&mut sender, 4090, 45);
        assert!(delay(&sender) > ms(28), "so much is jitter");
        // The peer's heartbeat was answered a moment before, and neither has been reported when the answer comes.
        (0..2).for_each(|_| sender.on_control_sent(at(4099), PathId(0), next(), 88, true));
        // Delays are halves of round trips, in whole nanoseconds.
        let halfway = |before: Duration, rtt| (before * 2 + ms(rtt)) / 4;
        let is_close = |one: Duration, other: Duration| one.max(other) - one.min(other) <= Duration::from_nanos(2);
        for (at, below) in [(4100, 16), (4101, 9), (4102, 5)] {
            let before = delay(&sender);
            heartbeat(&mut sender, at, 1);
            assert!(is_close(delay(&sender), halfway(before, 1)) && delay(&sender) < ms(below), "{}", delay(&sender));
        }
        let before = delay(&sender);
        answered(&mut sender, 4110, 2);
        assert!(is_close(delay(&sender), halfway(before, 2)) && delay(&sender) < ms(3), "{}", delay(&sender));
        for round in 0..5 {
            answered(&mut sender, 4200 + round * 100, 60);
        }
        assert!(delay(&sender) > ms(25), "{}", delay(&sender));
    }

    /// 88 bytes in 40 ms are no rate of a path: at that one ten packets would take seconds.
    #[test]
    fn what_little_was_sent_is_no_forecast() {
        let (mut sender, flow) = near_and_far();
        sender.enqueue(at(0), syn(1), 0);
        let dispatch = sender.poll_urgent(at(0)).unwrap();
        assert_eq!(dispatch.path, PathId(0));
        sender.on_sent(at(0), dispatch, 1);
        (0..8).for_each(|_| {
            sender.enqueue(at(39), datagram((), flow, 1400).meta, 0);
        });
        let dispatch = sender.poll_transmit(at(39)).unwrap();
        sender.on_sent(at(39), dispatch, 2);
        assert!(sender.poll_transmit(at(39)).is_none_or(|dispatch| dispatch.path == PathId(0)));
        let report = crate::Report { highest: 1, packets: 1, ranges: vec![(1, 1)], ..crate::Report::default() };
        sender.on_report(at(40), PathId(0), true, &report).unwrap();
        let control = sender.paths[0].control.as_ref().unwrap();
        assert!(control.sent.rate() > 0 && control.forecast() < Duration::from_millis(30), "{:?}", control.forecast());
    }

    #[test]
    fn a_rule_that_blocks_a_path_is_obeyed() {
        let mut sender = Sender::<u8>::new(Feedback::Reports, Rule::custom("silent", Silent));
        sender.set_memory(Memory { send_buffer: 1 << 20, in_flight: 1 << 20 });
        let state =
            PathState { is_verified: true, is_alive: true, allowance: u64::MAX, mtu: 1500, ..PathState::default() };
        sender.add_path(at(0), PathId(0), state, 1_000_000);
        let mut rtt = RttEstimator::default();
        rtt.sample(Duration::from_millis(100)); // RFC 6298 §2.2: a timeout of 300 ms.
        let slot = sender.paths[0].control.as_ref().unwrap().slot;
        let outcome = AckOutcome::<u8> { lost: 1, flight: 15_000, ..AckOutcome::default() };
        sender.windows.report(at(1000), slot, &outcome, 10, &rtt, None);
        sender.enqueue(at(1000), datagram((), None, 1000).meta, 1);
        assert!(sender.poll_transmit(at(1000)).is_none());
        assert_eq!(sender.poll_pacing(), Some(at(1300)));
        assert!(sender.poll_transmit(at(1299)).is_none());
        assert_eq!(sender.poll_transmit(at(1300)).map(|dispatch| dispatch.packet.payload), Some(1));
        // What was lost does not wait.
        sender.windows.report(at(2000), slot, &outcome, 20, &rtt, None);
        sender.rescue(vec![datagram(2, None, 1000)]);
        assert_eq!(sender.poll_transmit(at(2001)).map(|dispatch| dispatch.packet.payload), Some(2));
    }
}
