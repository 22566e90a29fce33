//! The order of the packets of all flows: those that came early wait for those before them.

use crate::packet::FlowId;
use crate::sender::{LONGEST_REPAIR, Reordering};
use clock::Instant;
use recovery::{Position, Resequencer, ResequencerStatistics};
use std::collections::{BTreeMap, BTreeSet};

/// What waits for others fits in here, per flow, in bytes.
const CAPACITY: usize = 8 << 20;

/// The resequencers of all flows of a peer.
#[derive(Debug)]
pub struct Resequencing<P> {
    flows: BTreeMap<FlowId, Resequencer<P>>,
    /// When the resequencer of a flow wants to be called.
    deadlines: BTreeSet<(Instant, FlowId)>,
    /// Bytes that wait.
    bytes: usize,
    /// Of flows that are forgotten.
    past: ResequencerStatistics,
}

impl<P> Default for Resequencing<P> {
    fn default() -> Self {
        Self { flows: BTreeMap::new(), deadlines: BTreeSet::new(), bytes: 0, past: ResequencerStatistics::default() }
    }
}

impl<P> Resequencing<P> {
    /// A packet of so many bytes came. Appends to `out` what is to be delivered now, in order.
    pub fn offer(
        &mut self,
        now: Instant,
        flow: FlowId,
        position: Position,
        (packet, bytes): (P, usize),
        reordering: &Reordering,
        out: &mut Vec<P>,
    ) {
        let resequencer = self.flows.entry(flow).or_insert_with(|| Resequencer::bounded(CAPACITY, LONGEST_REPAIR));
        resequencer.set_repair(reordering.repair);
        let (due, held) = (resequencer.poll_timeout(), resequencer.bytes());
        resequencer.offer(now, position, packet, bytes, reordering.hold, &reordering.alive, out);
        let (after, holds) = (resequencer.poll_timeout(), resequencer.bytes());
        self.bytes = (self.bytes + holds).saturating_sub(held);
        self.rearm(flow, due, after);
    }

    /// Appends to `out` what has waited long enough, and whose it is.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(FlowId, P)>) {
        while let Some((due, _)) = self.deadlines.first().filter(|(due, _)| *due <= now).copied() {
            self.first_due(due, out, |resequencer, ready| resequencer.handle_timeout(now, ready));
        }
    }

    /// Gives up what would be given up soonest, for want of memory: it is delivered out of order. Whether that was a hole;
    /// `None` where nothing waits.
    pub fn relieve(&mut self, out: &mut Vec<(FlowId, P)>) -> Option<bool> {
        let (due, _) = *self.deadlines.first()?;
        let mut is_hole = false;
        self.first_due(due, out, |resequencer, ready| is_hole = resequencer.relieve(ready));
        Some(is_hole)
    }

    /// When something has waited long enough.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// A flow is forgotten. Nothing of it may wait.
    pub fn forget(&mut self, flow: FlowId) {
        if let Some(resequencer) = self.flows.remove(&flow) {
            add(&mut self.past, resequencer.statistics());
            self.bytes = self.bytes.saturating_sub(resequencer.bytes());
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.flows.values().map(Resequencer::held).sum()
    }

    /// What the resequencers of all flows, also those gone, have done.
    pub fn statistics(&self) -> ResequencerStatistics {
        let mut sum = self.past;
        self.flows.values().for_each(|resequencer| add(&mut sum, resequencer.statistics()));
        sum
    }

    /// Lets the resequencer whose deadline is the first do something.
    fn first_due(
        &mut self,
        due: Instant,
        out: &mut Vec<(FlowId, P)>,
        act: impl FnOnce(&mut Resequencer<P>, &mut Vec<P>),
    ) {
        let Some((_, flow)) = self.deadlines.first().copied() else { return };
        let Some(resequencer) = self.flows.get_mut(&flow) else {
            self.deadlines.remove(&(due, flow));
            return;
        };
        let (mut ready, held) = (Vec::new(), resequencer.bytes());
        act(resequencer, &mut ready);
        let (after, holds) = (resequencer.poll_timeout(), resequencer.bytes());
        self.bytes = self.bytes.saturating_sub(held - holds);
        out.extend(ready.into_iter().map(|packet| (flow, packet)));
        self.rearm(flow, Some(due), after);
    }

    fn rearm(&mut self, flow: FlowId, before: Option<Instant>, after: Option<Instant>) {
        if before != after {
            if let Some(before) = before {
                self.deadlines.remove(&(before, flow));
            }
            if let Some(after) = after {
                self.deadlines.insert((after, flow));
            }
        }
    }
}

fn add(sum: &mut ResequencerStatistics, more: &ResequencerStatistics) {
    sum.held += more.held;
    sum.proven_losses += more.proven_losses;
    sum.expired += more.expired;
    sum.overflowed += more.overflowed;
    sum.late += more.late;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Numbers;
    use clock::Duration;
    use proptest::prelude::*;
    use scheduler::PathId;

    proptest! {
        /// However two paths mix, lose and delay the packets of several flows: each that came is delivered once, those of a flow
        /// in order unless one came after it was given up, and the books agree with what was put in and has come out.
        #[test]
        fn what_comes_is_delivered_once_and_counted(
            steps in prop::collection::vec((0u16..3, 0u16..2, 0u64..30, any::<bool>(), any::<bool>()), 1..200),
        ) {
            let reordering = Reordering { hold: Duration::from_millis(50), repair: Duration::ZERO, alive: vec![0, 1] };
            let (mut numbers, mut resequencing) = (Numbers::default(), Resequencing::default());
            let (mut late, mut out, mut came) = (Vec::new(), Vec::new(), 0);
            let mut now = Instant::ZERO;
            for (count, (port, path, pause, is_lost, is_late)) in (0..).zip(steps) {
                now += Duration::from_millis(pause);
                resequencing.handle_timeout(now, &mut out);
                prop_assert!(resequencing.poll_timeout().is_none_or(|at| at > now));
                let flow = FlowId { protocol: 6, local: port, remote: 1 };
                let packet = (flow, numbers.next(flow).position(PathId(path)), count);
                match (is_lost, is_late) {
                    (true, _) => continue,
                    (_, true) => late.push(packet),
                    _ => late.insert(0, packet),
                }
                if late.len() < 3 {
                    continue;
                }
                let (flow, position, packet) = late.remove(0);
                let mut ready = Vec::new();
                resequencing.offer(now, flow, position, (packet, 10), &reordering, &mut ready);
                out.extend(ready.into_iter().map(|packet| (flow, packet)));
                came += 1;
                prop_assert_eq!(resequencing.bytes(), 10 * resequencing.packets());
                prop_assert_eq!(out.len() + resequencing.packets(), came);
            }
            let mut before = resequencing.packets();
            while resequencing.relieve(&mut out).is_some() {
                prop_assert!(resequencing.packets() < before);
                before = resequencing.packets();
            }
            prop_assert_eq!((resequencing.bytes(), out.len()), (0, came));
            let late = resequencing.statistics().late;
            let overtaken = out.iter().enumerate().filter(|(at, (flow, packet))| {
                out.iter().take(*at).any(|(other, before)| other == flow && before > packet)
            });
            prop_assert!(overtaken.count() as u64 <= late);
            let mut packets: Vec<i32> = out.iter().map(|(_, packet)| *packet).collect();
            packets.sort_unstable();
            packets.dedup();
            prop_assert_eq!(packets.len(), came);
        }
    }
}
