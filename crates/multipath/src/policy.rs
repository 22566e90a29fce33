//! What a person wants of some flows: which paths they take, and whether they go before others or after them.
//!
//! A path is asked for each policy of which packets wait, one after the other, so that a flow whose paths have no room keeps
//! nobody else from leaving on others. Without policies nothing of that happens.

use crate::packet::QueuedPacket;
use crate::path::SenderPath;
use crate::sender::{Dispatch, Sender};
use crate::transmit::Round;
use clock::Instant;
use scheduler::{PathId, PathScheduler as _};

/// Which policy holds for a packet: its place in [`Sender::set_policies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyId(pub u8);

impl PolicyId {
    /// The most policies there can be.
    pub const MOST: usize = 63;

    fn bit(policy: Option<Self>) -> u64 {
        1 << policy.map_or(0, |PolicyId(id)| u32::from(id) + 1).min(63)
    }
}

/// Who goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Before all that waits.
    Urgent,
    /// In turn with the others.
    #[default]
    Normal,
    /// After all that waits, but for a twentieth of what leaves, which keeps connections alive.
    Bulk,
}

/// What holds for the packets of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowPolicy {
    /// Who goes first.
    pub priority: Priority,
    /// Where none of its paths works its packets wait, and are dropped in the end; otherwise they take the others.
    pub strict: bool,
}

/// The policies of an association, and how far a round has come with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    known: Vec<FlowPolicy>,
    /// That of the packet which is next.
    current: Option<PolicyId>,
    /// Those whose paths have no room in this round.
    blocked: u64,
}

impl Policies {
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn of(&self, policy: Option<PolicyId>) -> FlowPolicy {
        let known = policy.and_then(|PolicyId(id)| self.known.get(usize::from(id)));
        known.copied().unwrap_or_default()
    }

    pub(crate) fn current(&self) -> Option<PolicyId> {
        self.current
    }
}

/// Of the paths, those that packets of one policy may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    bit: u64,
    /// Whether its paths are named, so that it takes a backup that is among them.
    is_named: bool,
    /// Whether any of them works.
    pub(crate) any_usable: bool,
}

impl Allowed {
    pub(crate) fn has<P>(&self, path: &SenderPath<P>) -> bool {
        path.barred & self.bit == 0
    }

    /// Whether packets may go on a path now; as [`crate::PathState::may_carry`], among those that are allowed.
    pub(crate) fn may_carry<P>(&self, path: &SenderPath<P>) -> bool {
        let named = self.is_named && path.state.answers();
        self.has(path) && (named || path.state.may_carry(self.any_usable))
    }
}

impl<P> Sender<P> {
    /// What holds from now on for packets that are handed over under a [`PolicyId`]; at most [`PolicyId::MOST`].
    pub fn set_policies(&mut self, mut policies: Vec<FlowPolicy>) {
        policies.truncate(PolicyId::MOST);
        self.policies = Policies { known: policies, ..Policies::default() };
    }

    /// A path is not among those of these policies.
    pub fn bar(&mut self, id: PathId, policies: impl IntoIterator<Item = PolicyId>) {
        let barred = policies.into_iter().fold(0, |all, policy| all | PolicyId::bit(Some(policy)));
        if let Some(path) = self.any_path_mut(id) {
            path.barred = barred;
        }
    }

    /// The paths that packets of a policy may take.
    pub(crate) fn allowed(&self, policy: Option<PolicyId>) -> Allowed {
        let (bit, strict) = (PolicyId::bit(policy), self.policies.of(policy).strict);
        let is_named = self.paths.iter().any(|path| path.barred & bit != 0);
        let works = |path: &&SenderPath<P>| path.barred & bit == 0 && path.state.answers();
        if is_named && (strict || self.paths.iter().any(|path| works(&path))) {
            return Allowed { bit, is_named, any_usable: self.paths.iter().any(|path| works(&path)) };
        }
        Allowed { bit: 0, is_named: false, any_usable: self.any_usable() }
    }

    /// Brings a packet to the front whose policy is not blocked; false where none waits.
    fn prepare(&mut self) -> bool {
        let blocked = self.policies.blocked;
        let is_free = |policy: Option<PolicyId>| PolicyId::bit(policy) & blocked == 0;
        self.again_at = self.again.iter().position(|packet| is_free(packet.policy)).unwrap_or(usize::MAX);
        if let Some(packet) = self.again.get(self.again_at) {
            self.policies.current = packet.policy;
            return true;
        }
        let Some(policy) = self.buffer.prepare(is_free) else { return false };
        self.policies.current = policy;
        true
    }

    /// After a packet was taken: the next one, of whatever policy.
    pub(crate) fn prepare_next(&mut self) -> bool {
        self.policies.is_empty() || self.prepare()
    }

    /// What was lost and is sent before what waits, unless its paths have no room.
    pub(crate) fn next_again(&self) -> Option<&QueuedPacket<P>> {
        self.again.get(self.again_at)
    }

    pub(crate) fn take_again(&mut self) -> Option<QueuedPacket<P>> {
        let packet = if self.again_at == 0 { self.again.pop_front() } else { self.again.remove(self.again_at) };
        self.again_bytes -= packet.as_ref().map_or(0, |packet| packet.wire);
        packet
    }
}

impl<P: Clone> Sender<P> {
    /// The next packet that windows and paces allow, of those policies first that come first.
    pub(crate) fn next_by_policy(&mut self, now: Instant, round: Round) -> Option<Dispatch<P>> {
        self.policies.blocked = 0;
        let (mut wake_at, mut found) = (self.wake_at.take(), None);
        if !self.scheduler.needs().arrivals {
            // What waits for one path alone has been let there already.
            self.policies.current = None;
            found = self.poll_assigned(now);
        }
        while found.is_none() && self.prepare() {
            found = self.next_of(now, self.round.unwrap_or(round));
            wake_at = [wake_at, self.wake_at.take()].into_iter().flatten().min();
            self.policies.blocked |= PolicyId::bit(self.policies.current);
        }
        self.again_at = 0;
        self.wake_at = wake_at;
        found
    }
}
