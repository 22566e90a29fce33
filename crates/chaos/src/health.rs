//! How things stand between hosts when the network is good.

use crate::traffic::Stream;
use crate::world::{Task, World, number};
use clock::Instant;
use std::collections::BTreeSet;
use wedge::PeerStatus;

/// Between two probes when the network is good, in milliseconds.
const PROBE_MS: u64 = 100;

impl World {
    /// From now on probes are many.
    pub(crate) fn calm_probes(&mut self) {
        let probes = self.flows..self.flows + 2 * self.plan.pairs.len();
        for number in probes {
            let Some(stream) = self.streams.get_mut(number) else { continue };
            // With many hosts there are many pairs.
            stream.plan.interval_us = (PROBE_MS * 1_000).max(self.plan.pairs.len() as u64 * 2_000);
            stream.due = self.now;
            self.schedule(self.now, Task::Stream(number));
        }
    }

    /// The probes between hosts to which something is promised.
    pub(crate) fn probes(&self) -> impl Iterator<Item = &Stream> {
        let all = self.streams.iter().skip(self.flows).take(2 * self.plan.pairs.len());
        all.filter(|stream| self.is_promised(stream.plan.from, stream.plan.to))
    }

    fn is_promised(&self, a: usize, b: usize) -> bool {
        let hostile = |host: usize| self.plan.hosts.get(host).is_some_and(|plan| plan.hostile);
        let reachable = |host: usize| self.nodes.get(host).is_some_and(|node| !node.locators().is_empty());
        !hostile(a) && !hostile(b) && (reachable(a) || reachable(b))
    }

    /// A pair between which no probe sent at `since` or later has arrived.
    pub(crate) fn silent_pair(&self, since: Instant) -> Option<(usize, usize)> {
        let silent = self.probes().find(|probe| probe.heard_since(since).is_none());
        silent.map(|probe| (probe.plan.from, probe.plan.to))
    }

    /// The TCPs of the plan.
    pub(crate) fn tcp(&self) -> impl Iterator<Item = &Stream> {
        let flows = self.streams.iter().take(self.flows);
        flows.filter(|stream| stream.plan.tcp && self.is_promised(stream.plan.from, stream.plan.to))
    }

    /// What a host tells of a peer.
    pub(crate) fn peer_status(&self, host: usize, peer: usize) -> Option<PeerStatus> {
        let node = self.nodes.get(host)?;
        let status = node.wedge.as_ref()?.status(node.time.shows(self.now));
        status.peers.into_iter().find(|status| number(&status.name) == Some(peer))
    }

    /// A pair that has fewer living paths than the larger set of locators.
    pub(crate) fn missing_path(&self) -> Option<(usize, usize)> {
        let pairs = self.plan.pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        let mut judged = pairs.filter(|&(a, b)| self.is_promised(a, b) && !self.is_translated(a, b));
        judged.find(|&(a, b)| {
            let count = |host: usize| self.nodes[host].interfaces.iter().filter(|other| other.plugged).count();
            let wanted = count(a).max(count(b));
            let alive = self.peer_status(a, b).map_or(0, |peer| peer.paths.iter().filter(|path| path.alive).count());
            alive < wanted
        })
    }

    fn is_translated(&self, a: usize, b: usize) -> bool {
        [a, b].iter().any(|host| self.nodes[*host].interfaces.iter().any(|interface| interface.is_translated()))
    }

    /// A pair whose ends do not have the same living paths.
    pub(crate) fn disagreement(&self) -> Option<(usize, usize)> {
        let judged = |&&(a, b): &&(usize, usize)| self.is_promised(a, b) && !self.is_translated(a, b);
        let ends = |host, peer, swap: bool| -> BTreeSet<(String, String)> {
            let paths = self.peer_status(host, peer).map(|peer| peer.paths).unwrap_or_default();
            let alive = paths.into_iter().filter(|path| path.alive);
            alive.map(|path| if swap { (path.remote, path.local) } else { (path.local, path.remote) }).collect()
        };
        self.plan.pairs.iter().filter(judged).find(|&&(a, b)| ends(a, b, false) != ends(b, a, true)).copied()
    }

    /// For a person: both sides of a pair.
    pub(crate) fn told_of(&self, pair: Option<(usize, usize)>) -> String {
        let Some((a, b)) = pair else { return String::new() };
        let side = |host, peer| {
            let Some(status) = self.peer_status(host, peer) else { return format!("host {host} does not run") };
            let path = |path: &wedge::PathStatus| {
                let word = if path.alive { "alive" } else { "dead" };
                format!("{}→{} {word} {}/{}", path.local, path.remote, path.packets_out, path.packets_in)
            };
            let paths: Vec<String> = status.paths.iter().map(path).collect();
            let control = self.nodes[host].wedge.as_ref().map(|wedge| wedge.status(self.now).control);
            let control = serde_json::to_value(control).unwrap_or_default();
            let counted = control.as_object().into_iter().flatten().filter(|(_, count)| **count != 0);
            let counted: Vec<String> = counted.map(|(name, count)| format!("{name} {count}")).collect();
            format!("host {host}: {} [{}] ({})", status.state, paths.join(", "), counted.join(", "))
        };
        format!("{}; {}", side(a, b), side(b, a))
    }
}
