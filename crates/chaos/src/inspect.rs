//! What is looked at every slice, from outside: the status that a host tells.

use crate::property::Property;
use crate::world::{World, number};
use clock::{Duration, Instant};
use hip::PathId;
use std::collections::BTreeMap;
use wedge::{PeerStatus, WedgeEvent};

/// What a peer may make a host hold, in bytes.
const HELD: usize = 16 << 20;
/// A host that hears nothing delivers what it holds after so long.
const LONGEST_HOLD: Duration = Duration::from_millis(700);
/// A base exchange, a closing, or an association without a path ends after so long: twenty tries four seconds apart.
const LONGEST_STATE: Duration = Duration::from_secs(130);
/// A host may give up a peer after so long without a word from it.
const SILENCE: Duration = Duration::from_secs(5);
/// Public-key operations for strangers: so many at once, and so many a second. The budgets of all classes together.
const STRANGERS: (u64, u64) = (150, 80);
/// After a fault, associations may end because of it for so long: a state's longest time.
const AFTERMATH: Duration = LONGEST_STATE;

/// What is remembered from one slice to the next.
#[derive(Default)]
pub(crate) struct Inspector {
    /// By host and peer: the state that is not final, without a path, and since when.
    states: BTreeMap<(usize, usize), (String, Instant)>,
    /// By host: timers, packets, and packets of the network so far.
    counts: BTreeMap<usize, (u64, u64, u64)>,
    /// By host: since when nothing has come from the network.
    quiet: BTreeMap<usize, Instant>,
}

impl Inspector {
    /// Looks at all hosts.
    pub(crate) fn look(&mut self, world: &mut World, slice: Duration) {
        self.events(world);
        for host in 0..world.nodes.len() {
            let node = &world.nodes[host];
            let Some(wedge) = node.wedge.as_ref().filter(|_| node.asleep.is_none()) else {
                self.states.retain(|(of, _), _| *of != host);
                self.counts.remove(&host);
                self.quiet.remove(&host);
                continue;
            };
            let status = wedge.status(node.time.shows(world.now));
            let counters = status.counters;
            let packets =
                counters.network_in + counters.network_out + counters.application_in + counters.application_out;
            self.timers(world, host, packets, counters.network_in, slice);
            world.judge.check(world.at_ms(), Property::R4, counters.stuck_timers == 0, || {
                format!("host {host}: {} deadlines had passed when all was done", counters.stuck_timers)
            });
            for peer in &status.peers {
                let Some(other) = number(&peer.name).filter(|other| *other < world.nodes.len()) else { continue };
                self.state(world, host, other, peer);
                self.held(world, host, peer);
                accepted(world, host, other, peer);
            }
        }
    }

    fn timers(&mut self, world: &mut World, host: usize, packets: u64, network: u64, slice: Duration) {
        let (at, now) = (world.at_ms(), world.now);
        let timers = world.nodes[host].timers;
        let before = self.counts.insert(host, (timers, packets, network)).unwrap_or((timers, packets, 0));
        let (timers, packets) = (timers.saturating_sub(before.0), packets.saturating_sub(before.1));
        if network != before.2 {
            self.quiet.insert(host, now);
        }
        let peers = world.plan.pairs.iter().filter(|(a, b)| *a == host || *b == host).count() as u64;
        // Heartbeats, reports and retransmissions of each peer, and a timer or a few for a packet.
        let most = 60 + peers * (slice.as_millis() / 2 + 30) + 4 * packets;
        if world.plan.hosts[host].idle_peers > 0 {
            world.judge.check(at, Property::R5, timers <= most, || {
                format!("host {host}, with idle peers: {timers} timers for {packets} packets in {slice:?}")
            });
        }
        world.judge.check(at, Property::R4, timers <= most, || {
            format!("host {host}: {timers} timers for {packets} packets in {slice:?}")
        });
    }

    fn state(&mut self, world: &mut World, host: usize, other: usize, peer: &PeerStatus) {
        let (at, now) = (world.at_ms(), world.now);
        let passing = match peer.state.as_str() {
            "ESTABLISHED" | "R2-SENT" => peer.paths.is_empty(),
            "UNASSOCIATED" | "E-FAILED" => false,
            _ => true,
        };
        if !passing {
            self.states.remove(&(host, other));
            return;
        }
        let known = self.states.entry((host, other)).or_insert_with(|| (peer.state.clone(), now));
        if known.0 != peer.state {
            *known = (peer.state.clone(), now);
        }
        // Who closes ends an exchange, too, of which no event tells; the next packet of a program begins another.
        let since = known.1.max(world.nodes[host].closed);
        let node = &world.nodes[host];
        let deadline = node.wedge.as_ref().and_then(wedge::Wedge::poll_timeout);
        world.judge.check(at, Property::L4, deadline.is_some(), || {
            format!("host {host} is {} with host {other}, without a path, and waits for nothing", peer.state)
        });
        world.judge.check(at, Property::L4, now.saturating_since(since) <= LONGEST_STATE, || {
            format!("host {host} is {} with host {other} and without a path since {since:?}", peer.state)
        });
    }

    fn held(&mut self, world: &mut World, host: usize, peer: &PeerStatus) {
        if peer.held_packets == 0 {
            return;
        }
        let (at, now) = (world.at_ms(), world.now);
        world.judge.check(at, Property::R1, peer.held_bytes <= HELD, || {
            format!("host {host} holds {} bytes of {}", peer.held_bytes, peer.name)
        });
        let quiet = self.quiet.get(&host).copied().unwrap_or(now);
        world.judge.check(at, Property::R1, now.saturating_since(quiet) <= LONGEST_HOLD, || {
            format!(
                "host {host} holds {} packets of {}, and hears nothing since {quiet:?}",
                peer.held_packets, peer.name
            )
        });
    }

    /// Associations begin by both hosts, and end for a reason.
    fn events(&mut self, world: &mut World) {
        let at_ms = world.at_ms();
        for told in std::mem::take(&mut world.told) {
            let host = told.host;
            if let WedgeEvent::Failed { peer, .. } | WedgeEvent::Closed { peer, .. } = &told.event {
                // Whatever state there is now began after it.
                number(peer).map(|peer| self.states.remove(&(host, peer)));
            }
            match &told.event {
                WedgeEvent::Established { peer } => {
                    let Some(peer) = number(peer) else { continue };
                    let spoke = world.tap.exchanged.get(&(peer, host)).copied();
                    let recent = spoke.is_some_and(|spoke| told.at.saturating_since(spoke) <= AFTERMATH);
                    world.judge.check(at_ms, Property::S6, recent, || {
                        format!("host {host} is associated with host {peer}, who has sent no I2 or R2 since {spoke:?}")
                    });
                }
                WedgeEvent::Closed { peer, reason } => {
                    let Some(peer) = number(peer).filter(|peer| *peer < world.nodes.len()) else { continue };
                    // One that the peer begins anew takes the other's place: nobody loses anything.
                    if reason != "the peer has begun anew" {
                        *world.ended.entry((host, peer)).or_default() += 1;
                    }
                    if world.plan.hosts[peer].hostile {
                        continue;
                    }
                    let justified = world.may_end(told.at, host, peer);
                    world.judge.check(at_ms, Property::S6, justified, || {
                        format!("host {host} has ended its association with host {peer}: {reason}")
                    });
                }
                _ => {}
            }
        }
    }
}

impl World {
    /// A packet of a stranger, or one that was replayed or changed, has cost a host something.
    pub(crate) fn charge(&mut self, host: usize, cost: &hip::Costs) {
        let at = self.at_ms();
        if self.plan.hosts[host].hostile {
            return;
        }
        let (spent, since) = self.charged.entry(host).or_insert((0, self.now));
        *spent += cost.public_key();
        let most = STRANGERS.0 + STRANGERS.1 * (self.now - *since).as_millis() / 1_000;
        let spent = *spent;
        self.judge.check(at, Property::R2, spent <= most, || {
            format!("host {host} has done {spent} public-key operations for strangers")
        });
        // A hash and a MAC show whether a puzzle was solved.
        let cheap = cost.public_key() > 0 || cost.hashes <= 1 && cost.macs <= 1;
        self.judge.check(at, Property::R2, cheap, || format!("host {host} has done {cost:?} for a stranger's packet"));
    }

    /// Whether an association may have ended at that time: its peer was silent, something was done to one of the hosts, or
    /// there was another exchange.
    fn may_end(&self, at: Instant, host: usize, peer: usize) -> bool {
        let after = |since: Option<&Instant>, time: Duration| {
            since.is_some_and(|since| *since > Instant::ZERO && at.saturating_since(*since) <= time)
        };
        let heard = self.tap.heard.get(&(host, peer)).copied().unwrap_or_default();
        at.saturating_since(heard) >= SILENCE
            || after(self.disturbed.get(host), AFTERMATH)
            || after(self.disturbed.get(peer), AFTERMATH)
            || after(self.tap.exchanged.get(&(peer, host)), AFTERMATH)
            || self.blocked(host, peer)
            || self.blocked(peer, host)
    }
}

/// No more packets are accepted than the peer has sent under the SPI.
fn accepted(world: &mut World, host: usize, other: usize, peer: &PeerStatus) {
    let at = world.at_ms();
    for path in &peer.paths {
        let Some(spi) = world.tap.inbound.get(&(host, other, PathId(path.id))) else { continue };
        let Some(sa) = world.tap.sas.get(&(host, *spi)) else { continue };
        let (sent, taken) = (sa.packets, path.packets_in);
        if taken > 0 {
            world.judge.check(at, Property::S3, taken <= sent, || {
                format!("host {host} has accepted {taken} packets under SPI {spi:x}, and host {other} has sent {sent}")
            });
        }
    }
}
