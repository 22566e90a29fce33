//! Reports, there and back.

use crate::report;
use crate::sent::{Absurd, Content};
use crate::wedge::Wedge;
use clock::Instant;
use hip::feedback::NEXT_HEADER;
use rand_core::CryptoRng;
use scheduler::PathId;

impl Wedge {
    /// Takes a message that came inside ESP on a path.
    pub(crate) fn inbound_feedback(&mut self, now: Instant, index: usize, id: PathId, message: &[u8]) {
        let Some(peer) = self.peers.get_mut(index).filter(|peer| peer.gives_feedback()) else {
            self.counters.bad_payload += 1;
            return;
        };
        let Some(records) = report::parse(message) else {
            self.counters.bad_feedback += 1;
            return;
        };
        self.counters.feedback_in += 1;
        for record in &records {
            if peer.record(now, id, record, &mut self.counters) == Err(Absurd) {
                self.counters.bad_feedback += 1;
            }
        }
    }

    /// Sends the reports that are due.
    pub(crate) fn report(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get_mut(index).filter(|peer| peer.gives_feedback()) else { return };
        for at in 0..peer.paths.len() {
            let due = |path: &crate::path::Path| {
                path.verified
                    && path.control.as_ref().and_then(|c| c.received.poll_timeout()).is_some_and(|due| due <= now)
            };
            if !peer.paths.get(at).is_some_and(due) {
                continue;
            }
            let mut records = Vec::with_capacity(peer.paths.len());
            for (other, path) in peer.paths.iter_mut().enumerate() {
                let rtt = path.srtt();
                let Some(control) = &mut path.control else { continue };
                if other == at {
                    records.insert(0, control.received.tell(now, rtt));
                } else {
                    records.extend(control.received.tell_elsewhere(now));
                }
            }
            let mut message = Vec::with_capacity(64 * records.len());
            report::emit(&records, &mut message);
            let Some(path) = peer.paths.get_mut(at) else { continue };
            self.counters.feedback_out += 1;
            if path.send_now(now, NEXT_HEADER, &message, Content::Report, rng, &mut self.transmit).is_err() {
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

    /// After a batch of packets: what windows allow now, and the reports that are due.
    pub(crate) fn settle(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        for index in 0..self.peers.len() {
            if let Some(peer) = self.peers.get_mut(index) {
                peer.pump(now, rng, &mut self.counters, &mut self.transmit);
            }
            self.report(now, rng, index);
        }
    }
}
