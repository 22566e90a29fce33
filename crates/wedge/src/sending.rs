//! Between the bytes of packets and the sender that decides about them: packets are handed to it, what it lets leave is sealed,
//! and what the peer says of that is handed back.

use crate::path::Path;
use crate::payload::Payload;
use crate::peer::PeerState;
use crate::status::{Counters, Measured, SendBufferStatus};
use crate::{Transmit, WedgeEvent};
use clock::{Duration, Instant, Rng};
use congestion::{Rule, WindowRule as _};
use hip::esp::Exhausted;
use hip::feedback::Features;
use multipath::{
    Acknowledgment, Copies, Dispatch, Ecn, Enqueued, Feedback, FlowId, InvalidReport, PathEvent, Report, ReportingPath,
    UNKNOWN_RATE,
};
use rand_core::CryptoRng;
use scheduler::PathId;
use std::collections::VecDeque;
use wire::Spi;

impl PeerState {
    /// The base exchange has ended.
    pub(crate) fn begin(&mut self, now: Instant, features: Option<Features>, learns: bool, mut rule: Rule) {
        let feedback = match (features.is_some(), learns) {
            (true, _) => Feedback::Reports,
            (false, true) => Feedback::Snooping,
            (false, false) => Feedback::None,
        };
        // Rules that draw do so in each association otherwise, and the same in a run that is repeated.
        let [.., a, b, c, d, e, f, g, h] = self.config.hit.address().octets();
        rule.seed(Rng::from_seed(u64::from_be_bytes([a, b, c, d, e, f, g, h]) ^ now.as_nanos()));
        self.since = Some(now);
        self.used_at = now;
        self.sender.restart(feedback, rule);
        self.copies = Copies::default();
        let features = features.unwrap_or_default();
        (self.takes_labels, self.short_numbers) = (features.short_headers, features.short_numbers);
        (self.assigned, self.announced) = Default::default();
        self.share_memory();
    }

    /// Flows and sender hold no more than the peer's share.
    pub(crate) fn share_memory(&mut self) {
        self.flows.allow(self.share.flows());
        self.sender.set_memory(self.share.of_sender());
    }

    /// Tells the sender what its paths are like now.
    pub(crate) fn sync(&mut self) {
        for path in &self.paths {
            self.sender.set_path(path.id, path.state(self.reporter.heard_at(path.id)));
        }
    }

    /// A path comes up.
    pub(crate) fn add_path(&mut self, now: Instant, path: Path) {
        let rate = path.parameters.rate.unwrap_or(UNKNOWN_RATE);
        self.sender.add_path(now, path.id, path.state(Instant::ZERO), rate);
        self.paths.push(path);
        self.bar_paths();
    }

    /// The smoothed round-trip time of a path, by reports or by heartbeats.
    pub(crate) fn srtt(&self, path: &Path) -> Option<Duration> {
        self.sender.srtt(path.id).or(path.heartbeat.rtt().srtt())
    }

    /// Takes a program's packet: it leaves, or waits for its turn.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        ecn: Ecn,
        mut payload: Payload,
        counters: &mut Counters,
        out: &mut Vec<Transmit>,
    ) {
        self.sync();
        let mut meta = payload.meta(ecn, &mut self.connections);
        payload.shorten(now, &mut meta, &mut self.announced);
        let policy = payload.policy;
        let enqueued = self.sender.enqueue_under(now, meta, payload, policy);
        match enqueued {
            Enqueued::Full => counters.queue_full += 1,
            Enqueued::NoPath if self.is_reachable() => counters.queue_full += 1,
            Enqueued::NoPath => counters.no_association += 1,
            Enqueued::Taken => self.traffic(now),
        }
        if enqueued != Enqueued::Full {
            self.silent_since.get_or_insert(now);
        }
        while let Some(dispatch) = self.sender.poll_urgent(now) {
            self.leave(now, dispatch, rng, counters, out);
        }
        self.count(counters);
    }

    /// Sends what windows and paces allow.
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        counters: &mut Counters,
        out: &mut Vec<Transmit>,
    ) {
        self.sync();
        while let Some(dispatch) = self.sender.poll_transmit(now) {
            self.leave(now, dispatch, rng, counters, out);
        }
        self.count(counters);
    }

    fn leave(
        &mut self,
        now: Instant,
        mut dispatch: Dispatch<Payload>,
        rng: &mut dyn CryptoRng,
        counters: &mut Counters,
        out: &mut Vec<Transmit>,
    ) {
        let skips = self.gives_feedback();
        let Some(path) = self.paths.iter_mut().find(|path| path.id == dispatch.path) else { return };
        let (numbers, inner) = ((dispatch.packet.number, dispatch.packet.copy), dispatch.packet.mark());
        // RFC 6040 §4.1, of the packet as it came: a mark of the send buffer's own is no congestion of the path, and stays inside
        // where the peer sees what is there.
        let ecn = if skips { dispatch.packet.meta.ecn } else { inner };
        let sealed = dispatch.packet.payload.sealed(numbers, inner, self.short_numbers);
        let Ok(left) = path.seal((sealed.next_header, sealed.parts(), ecn), skips, rng, out) else {
            counters.exhausted += 1;
            return;
        };
        counters.shortened += u64::from(dispatch.packet.payload.is_short());
        dispatch.packet.wire = left.wire;
        path.mtu.on_sent(left.number, dispatch.packet.wire);
        counters.oversized += u64::from(path.mtu.plpmtu().is_some_and(|most| dispatch.packet.wire > most.into()));
        self.sender.set_path(path.id, path.state(self.reporter.heard_at(path.id)));
        if let Some(skipped) = left.skipped {
            self.sender.on_skipped(now, path.id, skipped);
        }
        self.sender.on_sent(now, dispatch, left.number);
    }

    /// Seals and hands out a message of our own, which waits for nothing. Nothing is in flight of a report: nobody waits for it.
    pub(crate) fn send_control(
        &mut self,
        now: Instant,
        id: PathId,
        (next_header, message): (u8, &[u8]),
        is_in_flight: bool,
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) -> Result<(), Exhausted> {
        let skips = self.gives_feedback();
        let mut all = self.paths.iter_mut().chain(&mut self.successors).chain(&mut self.retired);
        let Some(path) = all.find(|path| path.id == id) else { return Ok(()) };
        let left = path.seal((next_header, [message, &[]], Ecn::NotEct), skips, rng, out)?;
        if let Some(skipped) = left.skipped {
            self.sender.on_skipped(now, id, skipped);
        }
        self.sender.on_control_sent(now, id, left.number, left.wire, is_in_flight);
        Ok(())
    }

    /// A path as reports see it.
    pub(crate) fn reporting(&self, path: &Path) -> ReportingPath {
        let least = path.heartbeat.rtt().min();
        ReportingPath { id: path.id, is_verified: path.verified, srtt: self.srtt(path), least }
    }

    /// Takes a report of the peer's on the path of this SPI, which came on the path of number `came_on`.
    pub(crate) fn on_report(
        &mut self,
        now: Instant,
        came_on: PathId,
        (spi, report): (Spi, &Report),
        counters: &mut Counters,
    ) -> Result<(), InvalidReport> {
        let mut known = self.paths.iter().chain(&self.retired);
        let Some(id) = known.find(|path| path.outbound.spi() == spi).map(|path| path.id) else {
            // A path that is gone here already, or never was.
            counters.unknown_feedback += 1;
            return Ok(());
        };
        self.sender.on_report(now, id, id == came_on, report)?;
        if let Some(path) = self.path_mut(id) {
            path.mtu.on_report(now, report);
        }
        self.refresh(now);
        self.count(counters);
        Ok(())
    }

    /// A segment of the peer's TCP came.
    pub(crate) fn on_acknowledgment(
        &mut self,
        now: Instant,
        flow: FlowId,
        heard: &Acknowledgment<'_>,
        counters: &mut Counters,
    ) {
        if self.sender.on_acknowledgment(now, flow, heard) {
            self.refresh(now);
            self.count(counters);
        }
    }

    /// Losses by age, and paths that are silent.
    pub(crate) fn watch(&mut self, now: Instant, counters: &mut Counters, events: &mut VecDeque<WedgeEvent>) {
        self.sync();
        for event in self.sender.handle_timeout(now) {
            match event {
                PathEvent::Probe(id) => {
                    if let Some(path) = self.path_mut(id) {
                        path.heartbeat.hurry(now);
                    }
                }
                PathEvent::Dead(id) => {
                    if let Some(path) = self.path_mut(id) {
                        path.heartbeat.kill(now);
                        let (name, route) = (path.name.clone(), path.route);
                        events.push_back(WedgeEvent::PathDead {
                            peer: self.config.name.clone(),
                            path: id,
                            name,
                            route,
                        });
                    }
                    self.on_path_dead(now, id);
                }
            }
        }
        self.count(counters);
    }

    /// A path has died: what it had in flight goes on the others.
    pub(crate) fn on_path_dead(&mut self, now: Instant, id: PathId) {
        self.sender.on_path_dead(now, id);
        self.refresh(now);
    }

    /// A heartbeat was answered.
    pub(crate) fn on_heartbeat(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.iter().find(|path| path.id == id) else { return };
        self.sender.on_heartbeat(now, id, path.heartbeat.rtt());
    }

    /// Adds up what the sender has counted.
    pub(crate) fn count(&mut self, counters: &mut Counters) {
        let counted = self.sender.take_counts();
        counters.repaired += counted.retransmitted;
        counters.given_up += counted.given_up;
        counters.rescheduled += counted.rescheduled;
        counters.timeouts += counted.timeouts;
        counters.queue_full += counted.queue_full;
    }

    /// What is known of a path by reports.
    pub(crate) fn measured(&self, id: PathId) -> Option<Measured> {
        let path = self.sender.path_statistics(id)?;
        Some(Measured {
            delivery_rate: path.delivery_rate,
            cwnd: path.cwnd as u64,
            ssthresh: path.ssthresh.is_finite().then_some(path.ssthresh as u64),
            in_flight: path.in_flight,
            remembered: path.remembered,
            sharers: path.sharers,
            rests: path.rests,
            rttvar_ms: path.rttvar.map(|rttvar| rttvar.as_secs_f64() * 1e3),
            delivered: path.counts.delivered,
            lost: path.counts.lost,
            spurious: path.counts.spurious,
            reordered: path.counts.reordered,
            ce: path.counts.ce,
        })
    }

    /// What waits.
    pub(crate) fn buffer_status(&self) -> SendBufferStatus {
        let buffer = self.sender.buffer_status();
        SendBufferStatus {
            packets: buffer.packets,
            bytes: buffer.bytes,
            delay_ms: buffer.sojourn.as_secs_f64() * 1e3,
            dropped: buffer.dropped,
            marked: buffer.marked,
            paths_bind: buffer.paths_bind,
        }
    }
}
