//! New keys for a path under traffic: a path of the same route comes up, takes over, and the old one goes, but not at once.
//!
//! What was sent on the old security associations is still in flight when the new ones are there. So the old path goes on
//! receiving, and hearing of what it had sent, for a while; and the new one begins where the old one was: with its window,
//! its round-trip time, its pace and its queue. It takes over when the association side gives the old one up, or when the
//! first packet has come on it: before that the peer may not have its keys.

use crate::path::Path;
use crate::peer::PeerState;
use crate::status::Counters;
use clock::{Duration, Instant};
use multipath::UNKNOWN_RATE;
use scheduler::PathId;

/// An old path receives for so long.
const RECEIVES_FOR: Duration = Duration::from_secs(2);
/// What was in flight on it is sent again if nothing was heard for two round trips and this.
const LATE: Duration = Duration::from_millis(50);
/// Most old paths of a peer.
const MOST: usize = 32;

/// When an old path ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retirement {
    /// What is in flight until then is lost.
    pub lost_at: Instant,
    /// It receives until then.
    pub until: Instant,
}

impl PeerState {
    /// The path of this number, also one that waits to take over, or has been taken over.
    pub(crate) fn any_path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.iter_mut().chain(&mut self.successors).chain(&mut self.retired).find(|path| path.id == id)
    }

    /// The path of this number, also one that waits to take over.
    pub(crate) fn coming_path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.iter_mut().chain(&mut self.successors).find(|path| path.id == id)
    }

    /// The path that carries what this one did: another, where its keys have been renewed. What still comes on old keys tells
    /// where the peer is, too.
    pub(crate) fn in_use(&self, id: PathId) -> PathId {
        let old = self.retired.iter().find(|path| path.id == id);
        let next = old.and_then(|old| self.paths.iter().find(|path| path.route == old.route));
        next.map_or(id, |path| path.id)
    }

    /// The path that a new one of this route is to take over from.
    pub(crate) fn predecessor(&self, route: hip::Route) -> Option<PathId> {
        self.paths.iter().find(|path| path.route == route).map(|path| path.id)
    }

    /// Whether another path is to take over from this one.
    pub(crate) fn has_successor(&self, id: PathId) -> bool {
        self.successors.iter().any(|path| path.predecessor == Some(id))
    }

    /// A path comes up that takes over from another.
    pub(crate) fn prepare(&mut self, mut path: Path, old: PathId, now: Instant) {
        path.predecessor = Some(old);
        self.sender.add_successor(
            now,
            path.id,
            path.state(Instant::ZERO),
            path.parameters.rate.unwrap_or(UNKNOWN_RATE),
            old,
        );
        self.successors.push(path);
        self.bar_paths();
    }

    /// Gives the place of a path to its successor, if it has one. Whether it had.
    pub(crate) fn succeed(&mut self, now: Instant, old: PathId, counters: &mut Counters) -> bool {
        let Some(at) = self.paths.iter().position(|path| path.id == old) else { return false };
        let Some(next) = self.successors.iter().position(|path| path.predecessor == Some(old)) else { return false };
        let mut new = self.successors.remove(next);
        let Some(place) = self.paths.get_mut(at) else { return false };
        new.predecessor = None;
        new.verified |= place.verified;
        (new.backup, new.peers_backup, new.standby) = (place.backup, place.peers_backup, place.standby);
        new.heartbeat = place.heartbeat.clone();
        new.heartbeat.slept(now);
        (new.mtu, new.told_mtu) = (place.mtu.clone(), place.told_mtu);
        new.mtu.renewed(now);
        let heard = new.credit.heard;
        new.credit = place.credit;
        new.credit.heard = new.credit.heard.saturating_add(heard);
        let srtt = self.sender.srtt(old).or(place.heartbeat.rtt().srtt());
        let late = srtt.unwrap_or(place.parameters.delay * 2) * 2 + LATE;
        self.sender.succeed(now, old, new.id);
        let mut gone = std::mem::replace(place, new);
        gone.retirement = Some(Retirement { lost_at: now + late, until: now + RECEIVES_FOR.max(late) });
        if self.retired.len() >= MOST {
            let oldest = self.retired.remove(0);
            self.sender.rescue_retired(now, oldest.id);
            self.sender.forget_path(oldest.id);
            self.reporter.forget_path(oldest.id);
            self.forgotten.push(oldest.inbound.spi());
        }
        self.retired.push(gone);
        self.count(counters);
        // A path whose keys were renewed twice since.
        for path in &mut self.successors {
            if path.predecessor == Some(old) {
                path.predecessor = self.paths.get(at).map(|path| path.id);
            }
        }
        self.refresh(now);
        true
    }

    /// When an old path has to be looked at.
    pub(crate) fn retirement_deadline(&self) -> Option<Instant> {
        // What an old path has received is reported on another: without one the report waits for a path, not for a time.
        let can_report = self.paths.iter().any(|path| path.verified);
        let due = |path: &Path| {
            let under_way = self.sender.in_flight(path.id) > 0;
            let at = path.retirement?;
            let losses = self.sender.poll_retired(path.id);
            let report = self.reporter.poll_timeout(path.id).filter(|_| can_report);
            let end = if under_way { at.lost_at.min(at.until) } else { at.until };
            [losses, report, Some(end)].into_iter().flatten().min()
        };
        self.retired.iter().filter_map(due).min()
    }

    /// Lets old paths go whose time has come.
    pub(crate) fn let_retired_go(&mut self, now: Instant, counters: &mut Counters) {
        let mut retired = std::mem::take(&mut self.retired);
        for path in &mut retired {
            let Some(at) = path.retirement else { continue };
            if at.lost_at <= now || at.until <= now {
                self.sender.rescue_retired(now, path.id);
            } else {
                self.sender.handle_retired(now, path.id);
            }
            if at.until <= now {
                self.sender.forget_path(path.id);
                self.reporter.forget_path(path.id);
                self.forgotten.push(path.inbound.spi());
            }
        }
        let before = retired.len();
        retired.retain(|path| path.retirement.is_some_and(|at| at.until > now));
        let is_changed = retired.len() != before;
        self.retired = retired;
        self.count(counters);
        if is_changed {
            self.refresh(now);
        }
    }
}
