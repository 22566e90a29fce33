//! Whether paths that carry something are alive: losses by age, silence, what happens to what was under way.

use crate::WedgeEvent;
use crate::braid::{Control, repair, rescue};
use crate::path::Path;
use crate::peer::PeerState;
use crate::status::Counters;
use clock::Instant;
use std::collections::VecDeque;

/// With so many packets under way, be they acknowledgments, silence needs no second question.
const UNDER_LOAD: usize = 4;

impl PeerState {
    /// Losses by age, and paths that are silent.
    pub(crate) fn watch(&mut self, now: Instant, counters: &mut Counters, events: &mut VecDeque<WedgeEvent>) {
        let Some(braid) = &mut self.braid else { return };
        let mut dead = Vec::new();
        for index in 0..self.paths.len() {
            let others = self.paths.iter().enumerate().filter(|(other, path)| *other != index && path.answers());
            // Whatever came from the peer could have brought what it knows of this path.
            let heard = |control: &Control| control.sent.progress_at().max(control.received.heard_at());
            let others: Vec<Instant> = others.filter_map(|(_, path)| Some(heard(path.control.as_ref()?))).collect();
            let Some(path) = self.paths.get_mut(index) else { continue };
            let Some(control) = &mut path.control else { continue };
            let news = control.sent.handle_timeout(now);
            if news.lost > 0 {
                let (next, srtt) = (control.sent.next_of_window(), control.sent.rtt().srtt());
                braid.windows.report(now, control.slot, &news, next, srtt, None);
                repair(braid, news.retransmit, counters);
            }
            let Some(since) = control.sent.silent_since() else {
                // Nobody waits for an answer any more. TCP inside may still acknowledge what it has kept.
                if braid.snoop.is_none() {
                    control.asked = None;
                }
                continue;
            };
            if control.life_deadline(&path.heartbeat) > now {
                continue;
            }
            let answered = others.iter().any(|at| *at > since);
            let loaded = control.sent.has_under_way(UNDER_LOAD) && control.sent.rtt().srtt().is_some();
            if control.asked.is_none() && !(answered && loaded) {
                control.asked = Some(now);
                path.heartbeat.hurry(now);
                continue;
            }
            // TCP acknowledges when it likes, or never: only a heartbeat without an answer shows that a path is dead.
            let snooped = braid.snoop.is_some();
            let answers = snooped && control.asked.is_some_and(|asked| path.heartbeat.answered_at() >= asked);
            if !others.is_empty() && path.heartbeat.is_alive() && !answers {
                dead.push(index);
                continue;
            }
            if !path.heartbeat.is_alive() && !snooped {
                control.asked = None;
                counters.given_up += control.sent.give_up(now).len() as u64;
                continue;
            }
            // RFC 6298 §5.4 to §5.6, for the only path there is.
            let (flight, next) = (control.sent.in_flight(), control.sent.next_of_window());
            counters.timeouts += 1;
            braid.windows.timeout(now, control.slot, flight, next);
            control.asked = None;
            let stranded = control.sent.give_up(now);
            repair(braid, stranded, counters);
        }
        for index in dead {
            let Some(path) = self.paths.get_mut(index) else { continue };
            path.heartbeat.kill(now);
            events.push_back(WedgeEvent::PathDead {
                peer: self.config.name.clone(),
                path: path.id,
                name: path.name.clone(),
                route: path.route,
            });
            self.path_died(now, index, counters);
        }
    }

    /// An old path's losses by age.
    pub(crate) fn lose_retired(&mut self, now: Instant, path: &mut Path, counters: &mut Counters) {
        if let (Some(control), Some(braid)) = (&mut path.control, &mut self.braid) {
            let news = control.sent.handle_timeout(now);
            repair(braid, news.retransmit, counters);
        }
    }

    /// Nothing more will be heard of what an old path has sent.
    pub(crate) fn rescue_retired(&mut self, now: Instant, path: &mut Path, counters: &mut Counters) {
        if let (Some(control), Some(braid)) = (&mut path.control, &mut self.braid) {
            rescue(braid, control.sent.give_up(now), counters);
        }
    }

    /// A path has died: what it had under way goes on the others.
    pub(crate) fn path_died(&mut self, now: Instant, index: usize, counters: &mut Counters) {
        if let (Some(path), Some(braid)) = (self.paths.get_mut(index), &mut self.braid)
            && let Some(control) = &mut path.control
        {
            control.asked = None;
            braid.windows.set_open(control.slot, false);
            let stranded = control.sent.give_up(now);
            rescue(braid, stranded, counters);
        }
        self.refresh();
    }

    /// A path is where it was not known to be: what was sent to where it was before is lost, and no sign of anything.
    pub(crate) fn forgive(&mut self, now: Instant, id: scheduler::PathId, counters: &mut Counters) {
        if let (Some(path), Some(braid)) = (self.paths.iter_mut().find(|path| path.id == id), &mut self.braid)
            && let Some(control) = &mut path.control
        {
            control.asked = None;
            control.sent.slept(now);
            rescue(braid, control.sent.give_up(now), counters);
            braid.windows.set_open_again(control.slot);
        }
    }

    /// A path is alive again.
    pub(crate) fn raise(&mut self, now: Instant, id: scheduler::PathId, counters: &mut Counters) {
        if let (Some(path), Some(braid)) = (self.paths.iter_mut().find(|path| path.id == id), &mut self.braid)
            && let Some(control) = &mut path.control
        {
            // What was tried meanwhile is no sign of its silence.
            control.asked = None;
            control.sent.slept(now);
            // Nor of what it does to packets now.
            rescue(braid, control.sent.give_up(now), counters);
            braid.windows.set_open(control.slot, true);
        }
    }

    /// A heartbeat was answered.
    pub(crate) fn beaten(&mut self, now: Instant, id: scheduler::PathId) {
        if let (Some(path), Some(braid)) = (self.paths.iter().find(|path| path.id == id), &mut self.braid)
            && let (Some(control), rtt) = (&path.control, path.heartbeat.rtt())
            && let (Some(latest), Some(least)) = (rtt.latest(), rtt.min())
        {
            braid.windows.queueing(now, control.slot, latest.saturating_sub(least));
        }
    }
}
