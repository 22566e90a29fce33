//! What each fault of a plan does.

use crate::node::{Node, peer};
use crate::plan::{Block, Fault};
use crate::traffic::Stream;
use crate::world::{Task, World};
use clock::{Duration, Instant};

impl World {
    /// Something happens.
    pub(crate) fn happen(&mut self, fault: &Fault) {
        let (now, at_ms) = (self.now, self.at_ms());
        if let Some(story) = &mut self.story {
            story.push(format!("{at_ms:>9} {fault:?}"));
        }
        match *fault {
            Fault::Link { host, interface, way, what } => {
                if let Some(interface) = self.nodes.get_mut(host).and_then(|node| node.interfaces.get_mut(interface)) {
                    interface.change(now, way, what);
                }
            }
            Fault::Weather { twice, late, late_ms } => self.weather = (twice, late, late_ms),
            Fault::Firewall { from, to, block } => {
                self.disturb(from);
                _ = self.firewalls.insert((from, to), block);
            }
            Fault::Restart { host, down_ms, back_s } => self.kill(host, down_ms, back_s),
            Fault::Close { host } => self.close(host),
            Fault::Jump { host, ms } => {
                self.disturb(host);
                if let Some(node) = self.nodes.get_mut(host) {
                    node.time.jump(ms as i64);
                    node.note_deadline();
                }
            }
            Fault::Suspend { host, ms, clock_goes_on } => self.suspend(host, ms, clock_goes_on),
            Fault::Readdress { host, interface } => self.readdress(host, interface),
            Fault::Rebind { host, interface } => {
                if let Some(interface) = self.nodes.get_mut(host).and_then(|node| node.interfaces.get_mut(interface)) {
                    interface.rebind();
                }
            }
            Fault::Unplug { host, interface } => self.plug(host, interface, false),
            Fault::Plug { host, interface } => self.plug(host, interface, true),
            Fault::Burst { from, to, packets, bytes } => self.burst(from, to, packets, bytes),
            Fault::Wait { .. } => {}
            Fault::Attack(attack) => self.begin_attack(attack),
        }
    }

    /// The network is as good as it gets, and everybody is there.
    pub(crate) fn heal(&mut self) {
        let now = self.now;
        self.calm = true;
        self.tap.judge_renewals(now);
        self.weather = (0.0, 0.0, 0);
        self.firewalls.clear();
        self.attacker.stop();
        for host in 0..self.nodes.len() {
            self.nodes[host].interfaces.iter_mut().for_each(|interface| interface.heal(now));
            for interface in 0..self.nodes[host].interfaces.len() {
                self.plug(host, interface, true);
            }
        }
        self.tell_locators();
    }

    /// Everybody is told where everybody is, as a name server does.
    fn tell_locators(&mut self) {
        self.locators = self.nodes.iter().map(Node::locators).collect();
        for &(a, b) in &self.plan.pairs {
            for (host, other) in [(a, b), (b, a)] {
                let (Some(node), Some(hit)) = (self.nodes.get_mut(host), self.names.hits.get(other)) else { continue };
                let known = self.locators.get(other).cloned().unwrap_or_default();
                if let Some(wedge) = &mut node.wedge {
                    wedge.add_peer(peer(other, *hit, known));
                }
            }
        }
        (0..self.nodes.len()).for_each(|host| self.touch(host));
    }

    /// Associations of a host may end now for a reason of their own.
    pub(crate) fn disturb(&mut self, host: usize) {
        if let Some(at) = self.disturbed.get_mut(host) {
            *at = self.now + Duration::from_nanos(1);
        }
    }

    fn kill(&mut self, host: usize, down_ms: u64, back_s: u64) {
        self.disturb(host);
        let Some(node) = self.nodes.get_mut(host).filter(|node| node.wedge.is_some()) else { return };
        node.wedge = None;
        node.asleep = None;
        node.deadline = Instant::FAR_FUTURE;
        node.back_s = back_s;
        self.schedule(self.now + Duration::from_millis(down_ms), Task::Boot(host));
    }

    fn close(&mut self, host: usize) {
        self.disturb(host);
        let Some(node) = self.nodes.get_mut(host).filter(|node| node.is_awake()) else { return };
        node.closed = self.now;
        let own = node.time.shows(self.now);
        if let Some(wedge) = &mut node.wedge {
            wedge.close_all(own, &mut node.rng);
        }
        self.touch(host);
    }

    fn suspend(&mut self, host: usize, ms: u64, clock_goes_on: bool) {
        self.disturb(host);
        let until = self.now + Duration::from_millis(ms);
        let Some(node) = self.nodes.get_mut(host).filter(|node| node.is_awake()) else { return };
        node.asleep = Some(until);
        if !clock_goes_on {
            node.time.pause(self.now, until);
        }
        self.schedule(until, Task::Wake(host));
        self.attacker.hoard_sleeps(host, &self.tap, Duration::from_millis(ms));
    }

    fn readdress(&mut self, host: usize, number: usize) {
        let now = self.now;
        self.disturb(host);
        let Some(node) = self.nodes.get_mut(host).filter(|node| node.is_awake()) else { return };
        let Some(interface) = node.interfaces.get_mut(number).filter(|interface| interface.plugged) else { return };
        let old = interface.address.ip();
        interface.readdress(host, number);
        let own = node.time.shows(now);
        let path = node.path(number);
        if let (Some(wedge), Some(path)) = (&mut node.wedge, path) {
            wedge.remove_path(own, &mut node.rng, old);
            // Its address is new, and its MTU that of the others.
            let _ = wedge.add_path(own, &mut node.rng, path);
        }
        self.touch(host);
        self.note_addresses();
        if self.calm {
            self.tell_locators();
        }
    }

    fn plug(&mut self, host: usize, number: usize, plugged: bool) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(host) else { return };
        let others = node.interfaces.iter().enumerate().any(|(at, other)| at != number && other.plugged);
        let Some(interface) = node.interfaces.get_mut(number).filter(|interface| interface.plugged != plugged) else {
            return;
        };
        // The last one stays: a host without any address is not the wedge's business.
        if !plugged && !others {
            return;
        }
        interface.plugged = plugged;
        let address = interface.address.ip();
        let own = node.time.shows(now);
        let path = node.path(number);
        if let Some(wedge) = &mut node.wedge {
            match path {
                Some(path) => _ = wedge.add_path(own, &mut node.rng, path),
                None => wedge.remove_path(own, &mut node.rng, address),
            }
        }
        self.disturb(host);
        self.touch(host);
        self.note_addresses();
    }

    fn burst(&mut self, from: usize, to: usize, packets: u32, bytes: u16) {
        let plan = crate::plan::Flow {
            from,
            to,
            tcp: false,
            six: true,
            interval_us: 100,
            bytes,
            start_ms: self.at_ms(),
            packets: packets.min(2_000),
        };
        if from == to || from.max(to) >= self.nodes.len() {
            return;
        }
        let number = self.streams.len();
        self.streams.push(Stream::new(number, plan));
        self.schedule(self.now, Task::Stream(number));
    }

    /// What a firewall does between two hosts.
    pub(crate) fn blocked(&self, from: usize, to: usize) -> bool {
        self.firewalls.get(&(from, to)).is_some_and(|block| *block != Block::Nothing)
    }
}
