//! What the sender learns of packets that have left, and what it does about those that were lost.

use crate::packet::{FlowId, QueuedPacket};
use crate::report::Report;
use crate::sender::{Feedback, Sender};
use crate::sent_packets::InvalidReport;
use crate::snooping::{Acknowledgment, Delivered};
use clock::Instant;
use scheduler::PathId;

/// Tunnel retransmissions of a packet at most. With two, of a link that loses 5 % of its packets the TCP inside would hear of 0.0125 %,
/// which holds it to some 30 Mbit/s at 40 ms (M. Mathis and others, 1997).
pub(crate) const RETRANSMISSIONS: u8 = 3;
/// Where packets waited and a round trip delivers no less than one of so many parts of the window, the path was full: in slow
/// start the window is twice what was in flight, and reports are not evenly spaced.
const FULL: f64 = 4.0;
/// How many times a packet is taken from a path that died to another: paths that die and come back again and again must not send
/// the same packets for ever.
const RESCUES: u8 = 3;

impl<P> Sender<P> {
    /// The peer reports on a path; `own_way` if the report came back on that path, so that its round trip is the path's.
    ///
    /// # Errors
    /// [`InvalidReport`]; nothing of it was taken then.
    pub fn on_report(&mut self, now: Instant, id: PathId, own_way: bool, report: &Report) -> Result<(), InvalidReport> {
        let Some(path) = self.paths.iter_mut().chain(&mut self.retired).find(|path| path.id == id) else {
            return Ok(());
        };
        let Some(control) = &mut path.control else { return Ok(()) };
        let filled = self.windows.window(control.slot) / control.earliness() / FULL;
        control.sent.set_full(filled as u64, control.busy);
        let mut outcome = control.sent.on_report(now, report, own_way)?;
        if let Some(rtt) = outcome.rtt {
            control.measured(rtt);
        }
        let mut busy = None;
        if outcome.acked > 0 {
            (control.probed_at, control.is_tail_probed) = (None, false);
            (control.is_reported, control.is_revived) = (true, false);
            control.peak = control.top_flight.max(control.peak - control.peak / 32);
            // Of a window that is paced over a round trip less is in flight where reports are earlier. It is full all the same.
            busy = control.busy.then_some((control.top_flight as f64 * control.earliness()) as usize);
        }
        // Of packets that come and go in bursts few may be in flight when a loss is reported: it is no smaller window's loss.
        outcome.peak = control.peak as u64;
        outcome.early = 1.0 - 1.0 / control.earliness();
        let (next, rtt) = (control.sent.next_of_window(), control.sent.rtt());
        self.windows.report(now, control.slot, &outcome, next, rtt, busy);
        self.retransmit(outcome.retransmit);
        Ok(())
    }

    /// A segment of the peer's TCP came: without reports, what it acknowledges is what paths have delivered. Whether that was
    /// anything.
    pub fn on_acknowledgment(&mut self, now: Instant, flow: FlowId, heard: &Acknowledgment<'_>) -> bool {
        if self.feedback != Feedback::Snooping {
            return false;
        }
        let delivered = self.snooping.acknowledged(now, flow, heard);
        for Delivered { path, ranges, timed } in &delivered {
            let highest = ranges.first().map_or(0, |(_, last)| *last);
            let report = Report { highest, ranges: ranges.clone(), ..Report::default() };
            // Nothing of it is impossible: what was sent on a path is still known there, or is passed over.
            let _ = self.on_report(now, *path, *timed, &report);
        }
        !delivered.is_empty()
    }

    /// An acknowledgment without data, of all up to `ack`, has come of a flow, for its program: until when it is held, if it is
    /// ([`crate::Bunches`]).
    pub fn holds_acknowledgment(&mut self, now: Instant, flow: FlowId, ack: u32) -> Option<Instant> {
        self.reach.holds(now, flow, ack)
    }

    /// Queues lost packets to be sent again; the rest is left to the programs.
    pub(crate) fn retransmit(&mut self, packets: Vec<QueuedPacket<P>>) {
        if self.is_snooping() {
            // The TCP inside has seen the same acknowledgments, and does it itself.
            return;
        }
        for mut packet in packets {
            if packet.retransmissions < RETRANSMISSIONS {
                packet.retransmissions += 1;
                self.counts.retransmitted += 1;
                self.queue_again(packet);
            } else {
                self.counts.given_up += 1;
            }
        }
    }

    /// Queues what was in flight on a path that died, or waits on one whose rate has fallen.
    pub(crate) fn rescue(&mut self, packets: Vec<QueuedPacket<P>>) {
        for mut packet in packets {
            packet.rescues += 1;
            if packet.rescues <= RESCUES {
                self.counts.rescheduled += 1;
                self.queue_again(packet);
            } else {
                self.counts.given_up += 1;
            }
        }
    }

    /// Queues a packet to be sent again, the older the sooner: the peer's programs wait for it.
    pub(crate) fn queue_again(&mut self, packet: QueuedPacket<P>) {
        let at = self.again.partition_point(|other| other.order <= packet.order);
        self.again_bytes += packet.wire;
        self.again.insert(at, packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::datagram;

    #[test]
    fn what_left_first_is_sent_again_first() {
        let mut sender = Sender::new(Feedback::Reports, "mhip".parse().unwrap());
        for order in [4, 7, 1, 4, 9, 2] {
            sender.rescue(vec![QueuedPacket { order, ..datagram((), None, 1500) }]);
        }
        let left: Vec<u64> = sender.again.iter().map(|packet| packet.order).collect();
        assert_eq!(left, [1, 2, 4, 4, 7, 9]);
        assert_eq!((sender.again_bytes, sender.take_counts().rescheduled), (9_000, 6));
    }
}
