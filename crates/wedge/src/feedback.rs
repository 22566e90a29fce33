//! Reports, there and back.

use crate::labels;
use crate::peer::PeerState;
use crate::report;
use crate::wedge::Wedge;
use clock::Instant;
use hip::feedback::NEXT_HEADER;
use multipath::{InvalidReport, ReportingPath};
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::Spi;

impl Wedge {
    /// Takes a message that came inside ESP on a path.
    pub(crate) fn inbound_feedback(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        index: usize,
        id: PathId,
        message: &[u8],
    ) {
        let Some(peer) = self.peers.get_mut(index).filter(|peer| peer.gives_feedback()) else {
            self.counters.bad_payload += 1;
            return;
        };
        if message.first() == Some(&labels::KIND) {
            let PeerState { announced, flows, .. } = peer;
            let is_one = announced.take(now, message, |flow| flows.knows(flow));
            return self.counters.bad_feedback += u64::from(!is_one);
        }
        let Some(records) = report::parse(message) else {
            self.counters.bad_feedback += 1;
            return;
        };
        self.counters.feedback_in += 1;
        let mut seen: Vec<Spi> = Vec::with_capacity(records.len());
        for (spi, report) in &records {
            // One record counts for each path: each costs a look at what is in flight.
            if seen.contains(spi) {
                self.counters.bad_feedback += 1;
                continue;
            }
            seen.push(*spi);
            peer.announced.on_clock(now, report.arrival);
            match peer.on_report(now, id, (*spi, report), &mut self.counters) {
                Ok(()) => {}
                Err(InvalidReport::Impossible) => self.counters.bad_feedback += 1,
                Err(InvalidReport::Invented) => return self.end_with_inventor(now, rng, index),
            }
        }
    }

    /// The peer acknowledges what it cannot have received: with such reports it could have us send any amount to
    /// anybody (RFC 9000 §21.4). It loses the association.
    fn end_with_inventor(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get(index) else { return };
        self.counters.invented_acknowledgments += 1;
        self.host.abandon(peer.config.hit, "it acknowledged packets that were never sent");
        self.drive_host(now, rng);
    }

    /// Sends the reports that are due.
    pub(crate) fn report(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get_mut(index).filter(|peer| peer.gives_feedback()) else { return };
        let active: Vec<ReportingPath> = peer.paths.iter().map(|path| peer.reporting(path)).collect();
        let retired: Vec<PathId> = peer.retired.iter().map(|path| path.id).collect();
        while let Some((on, reports)) = peer.reporter.poll_report(now, &active, &retired) {
            let spi = |id: PathId| {
                peer.paths.iter().chain(&peer.retired).find(|path| path.id == id).map(|path| path.inbound.spi())
            };
            let records: Vec<_> = reports.into_iter().filter_map(|(id, report)| Some((spi(id)?, report))).collect();
            let mut message = Vec::with_capacity(64 * records.len());
            report::emit(&records, &mut message);
            self.counters.feedback_out += 1;
            if peer.send_control(now, on, (NEXT_HEADER, &message), false, rng, &mut self.transmit).is_err() {
                self.counters.exhausted += 1;
            }
        }
    }

    /// Announces the labels that were assigned to flows of the peer.
    fn announce_labels(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let Some(on) = peer.paths.iter().find(|path| path.answers()).map(|path| path.id) else { return };
        while let Some(message) = peer.assigned.poll_message(now) {
            if peer.send_control(now, on, (NEXT_HEADER, &message), false, rng, &mut self.transmit).is_err() {
                self.counters.exhausted += 1;
            }
        }
    }

    /// Looks after the paths of a peer that gives feedback.
    pub(crate) fn watch(&mut self, now: Instant, index: usize) {
        if let Some(peer) = self.peers.get_mut(index) {
            peer.watch(now, &mut self.counters, &mut self.events);
        }
    }

    /// After a batch of packets, for the peers that it was about: what windows allow now, and the reports that are due.
    pub(crate) fn settle(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        while let Some(index) = self.touched.pop_first() {
            if let Some(peer) = self.peers.get_mut(index) {
                peer.transmit(now, rng, &mut self.counters, &mut self.transmit);
            }
            self.report(now, rng, index);
            self.announce_labels(now, rng, index);
            self.rearm(index, None);
        }
        self.note_control();
    }
}
