//! The order of the packets of all flows: those that came early wait for those before them, and what has waited leaves as its receiver
//! can take it.

use crate::copies::CopiesOfFlow;
use crate::order::Number;
use crate::packet::FlowId;
use crate::release::Release;
use crate::sender::{LONGEST_REPAIR, Reordering};
use clock::Instant;
use recovery::{Position, Resequencer, ResequencerStatistics};
use std::collections::{BTreeMap, BTreeSet};

/// What waits for others fits in here, per flow, in bytes.
const CAPACITY: usize = 8 << 20;

/// The order of all flows of a peer.
#[derive(Debug)]
pub struct Resequencing<P> {
    flows: BTreeMap<FlowId, Flow<P>>,
    /// When a flow wants to be called.
    deadlines: BTreeSet<(Instant, FlowId)>,
    /// Bytes that wait.
    bytes: usize,
    /// Of flows that are forgotten.
    past: ResequencerStatistics,
    /// What is in order, on its way from one place to the next.
    ready: Vec<(P, usize)>,
}

/// The packets of a flow with their bytes: those that wait for others, and those that are in order.
#[derive(Debug)]
struct Flow<P> {
    resequencer: Resequencer<(P, usize)>,
    copies: CopiesOfFlow,
    release: Release<P>,
    /// All that is in order leaves at once: the receiver of a TCP offers the room that there is for all that was sent.
    has_room: bool,
}

impl<P> Flow<P> {
    fn new(id: FlowId) -> Self {
        Self {
            resequencer: Resequencer::bounded(CAPACITY, LONGEST_REPAIR),
            copies: CopiesOfFlow::default(),
            release: Release::default(),
            has_room: id.is_tcp(),
        }
    }

    /// Takes what is in order.
    fn let_go(&mut self, now: Instant, ready: &mut Vec<(P, usize)>, leaves: impl FnMut(P)) {
        if self.has_room {
            ready.drain(..).map(|(packet, _)| packet).for_each(leaves);
        } else {
            self.release.extend(ready.drain(..));
            self.release.let_go(now, leaves);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.resequencer.poll_timeout(), self.release.poll_timeout()].into_iter().flatten().min()
    }

    fn bytes(&self) -> usize {
        self.resequencer.bytes() + self.release.bytes()
    }
}

impl<P> Default for Resequencing<P> {
    fn default() -> Self {
        Self {
            flows: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            bytes: 0,
            past: ResequencerStatistics::default(),
            ready: Vec::new(),
        }
    }
}

impl<P> Resequencing<P> {
    /// Whether the packet of this number is the first; otherwise it is not to be offered.
    pub fn is_first(&mut self, flow: FlowId, number: Number) -> bool {
        self.flows.entry(flow).or_insert_with(|| Flow::new(flow)).copies.is_first(number)
    }

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
        let id = flow;
        let flow = self.flows.entry(id).or_insert_with(|| Flow::new(id));
        let (due, held) = (flow.poll_timeout(), flow.bytes());
        flow.resequencer.set_repair(reordering.repair);
        let item = (packet, bytes);
        flow.resequencer.offer(now, position, item, bytes, reordering.hold, &reordering.alive, &mut self.ready);
        if !flow.has_room {
            flow.release.came(now, bytes);
        }
        flow.let_go(now, &mut self.ready, |packet| out.push(packet));
        let (after, holds) = (flow.poll_timeout(), flow.bytes());
        self.bytes = (self.bytes + holds).saturating_sub(held);
        self.rearm(id, due, after);
    }

    /// Appends to `out` what has waited long enough, and whose it is.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(FlowId, P)>) {
        while let Some((due, _)) = self.deadlines.first().filter(|(due, _)| *due <= now).copied() {
            self.first_due(due, out, |flow, ready, out| {
                flow.resequencer.handle_timeout(now, ready);
                flow.let_go(now, ready, |packet| out.push(packet));
            });
        }
    }

    /// Gives up what would be given up soonest, for want of memory: it is delivered out of order. Whether that was a hole;
    /// `None` where nothing waits.
    pub fn relieve(&mut self, out: &mut Vec<(FlowId, P)>) -> Option<bool> {
        let (due, _) = *self.deadlines.first()?;
        let mut is_hole = false;
        self.first_due(due, out, |flow, ready, out| {
            if flow.release.packets() == 0 {
                is_hole = flow.resequencer.relieve(ready);
            }
            flow.release.clear(|packet| out.push(packet));
            out.extend(ready.drain(..).map(|(packet, _)| packet));
        });
        Some(is_hole)
    }

    /// When something has waited long enough.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// A flow is forgotten. Nothing of it may wait.
    pub fn forget(&mut self, flow: FlowId) {
        if let Some(flow) = self.flows.remove(&flow) {
            add(&mut self.past, flow.resequencer.statistics());
            self.bytes = self.bytes.saturating_sub(flow.bytes());
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.flows.values().map(|flow| flow.resequencer.held() + flow.release.packets()).sum()
    }

    /// What the resequencers of all flows, also those gone, have done.
    pub fn statistics(&self) -> ResequencerStatistics {
        let mut sum = self.past;
        self.flows.values().for_each(|flow| add(&mut sum, flow.resequencer.statistics()));
        sum
    }

    /// Lets the flow whose deadline is the first do something.
    fn first_due(
        &mut self,
        due: Instant,
        out: &mut Vec<(FlowId, P)>,
        act: impl FnOnce(&mut Flow<P>, &mut Vec<(P, usize)>, &mut Vec<P>),
    ) {
        let Some((_, id)) = self.deadlines.first().copied() else { return };
        let Some(flow) = self.flows.get_mut(&id) else {
            self.deadlines.remove(&(due, id));
            return;
        };
        let (mut leaving, held) = (Vec::new(), flow.bytes());
        act(flow, &mut self.ready, &mut leaving);
        let (after, holds) = (flow.poll_timeout(), flow.bytes());
        self.bytes = self.bytes.saturating_sub(held - holds);
        out.extend(leaving.into_iter().map(|packet| (id, packet)));
        self.rearm(id, Some(due), after);
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
                let flow = FlowId { protocol: [6, 17, 6][usize::from(port)], local: port, remote: 1 };
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
                resequencing.offer(now, flow, position, (packet, 9000), &reordering, &mut ready);
                out.extend(ready.into_iter().map(|packet| (flow, packet)));
                came += 1;
                prop_assert_eq!(resequencing.bytes(), 9000 * resequencing.packets());
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
