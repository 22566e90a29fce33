//! Policies for programs: what a person wants of flows, told by their protocol, port, destination or mark. The first that fits
//! counts; what is sent back is the business of the peer's own policies. (Paper S1, §II-B, has them below the programs, for
//! programs that know nothing of paths.)

use crate::flows::flow_of;
use crate::peer::PeerState;
use multipath::{FlowPolicy, PolicyId, Priority};
use std::ops::RangeInclusive;
use std::sync::Arc;
use wire::Hit;
use wire::ip::protocol;

/// What holds for some flows: begin with [`Policy::new`], which fits all and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The IP protocol; 58 for ICMP of both families.
    pub protocol: Option<u8>,
    /// Ports, of either end; none for any.
    pub ports: Vec<RangeInclusive<u16>>,
    /// The peers; `None` for all.
    pub peers: Option<Vec<Hit>>,
    /// The DSCPs of the packets, 0 to 63 (RFC 2474), as this host has marked them for us; `None` for any. They do not leave the
    /// host. 0 says that nothing is known: then what the flow was marked with before counts.
    pub marks: Option<Vec<u8>>,
    /// The names of the paths that the flows take, or with a star at the end what they begin with; none for any.
    pub paths: Vec<String>,
    /// Where none of these paths works the packets wait for one, and are dropped when they have waited too long; otherwise they
    /// take the others.
    pub strict: bool,
    /// Who goes first.
    pub priority: Priority,
    /// Whether the flows may pass at all.
    pub through: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy {
    /// The most policies a host can have.
    pub const MOST: usize = PolicyId::MOST;

    /// All flows of all peers, as without a policy.
    pub fn new() -> Self {
        Self {
            protocol: None,
            ports: Vec::new(),
            peers: None,
            marks: None,
            paths: Vec::new(),
            strict: false,
            priority: Priority::Normal,
            through: true,
        }
    }

    fn concerns(&self, peer: Hit) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.contains(&peer))
    }

    fn bars(&self, path: &str) -> bool {
        let is = |name: &String| match name.strip_suffix('*') {
            Some(beginning) => path.starts_with(beginning),
            None => path == name,
        };
        !self.paths.is_empty() && !self.paths.iter().any(is)
    }

    fn fits(&self, packet: &Outgoing<'_>) -> bool {
        let flow = || flow_of(packet.protocol, packet.payload, true);
        let has = |port: u16| self.ports.iter().any(|ports| ports.contains(&port));
        self.marks.as_ref().is_none_or(|marks| marks.contains(&packet.dscp))
            && self.protocol.is_none_or(|protocol| protocol == packet.protocol)
            && (self.ports.is_empty()
                || has_ports(packet.protocol) && flow().is_some_and(|flow| has(flow.local) || has(flow.remote)))
    }
}

fn has_ports(number: u8) -> bool {
    [protocol::TCP, protocol::UDP, protocol::SCTP].contains(&number)
}

/// A program's packet, as far as policies tell packets apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    pub protocol: u8,
    pub dscp: u8,
    /// What follows the IP header.
    pub payload: &'a [u8],
}

/// Policies as they are for one peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerPolicies {
    all: Arc<[Policy]>,
    /// Those that are about this peer, in order.
    applying: Vec<PolicyId>,
}

impl PeerPolicies {
    pub(crate) fn new(all: &Arc<[Policy]>, peer: Hit) -> Self {
        let all: Arc<[Policy]> = all.clone();
        let numbered = (0u8..).map(PolicyId).zip(all.iter()).take(PolicyId::MOST);
        let applying = numbered.filter(|(_, policy)| policy.concerns(peer)).map(|(id, _)| id).collect();
        Self { all, applying }
    }

    fn applying(&self) -> impl Iterator<Item = (PolicyId, &Policy)> {
        self.applying.iter().filter_map(|id| Some((*id, self.all.get(usize::from(id.0))?)))
    }

    /// The policy that holds for a packet, and whether it may pass.
    pub(crate) fn find(&self, packet: &Outgoing<'_>) -> (Option<PolicyId>, bool) {
        let found = self.applying().find(|(_, policy)| policy.fits(packet));
        found.map_or((None, true), |(id, policy)| (Some(id), policy.through))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.applying.is_empty()
    }

    /// Whether marks make a difference.
    pub(crate) fn read_marks(&self) -> bool {
        self.applying().any(|(_, policy)| policy.marks.is_some())
    }
}

impl PeerState {
    /// Policies that hold from now on.
    pub(crate) fn set_policies(&mut self, all: &Arc<[Policy]>) {
        self.policies = PeerPolicies::new(all, self.config.hit);
        let treatments = |policy: &Policy| FlowPolicy { priority: policy.priority, strict: policy.strict };
        // None where none applies, so that packets are not asked for theirs.
        let all: Vec<_> = if self.policies.is_empty() { Vec::new() } else { all.iter().map(treatments).collect() };
        self.sender.set_policies(all);
        self.bar_paths();
    }

    /// Tells the sender which paths are closed to which policies.
    pub(crate) fn bar_paths(&mut self) {
        if self.policies.is_empty() {
            return;
        }
        for path in self.paths.iter().chain(&self.successors) {
            let barred = self.policies.applying().filter(|(_, policy)| policy.bars(&path.name));
            self.sender.bar(path.id, barred.map(|(id, _)| id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8, ports: [u16; 2]) -> Vec<u8> {
        let [a, b] = ports.map(u16::to_be_bytes);
        [&a[..], &b, &[protocol; 16]].concat()
    }

    fn found(policies: &[Policy], protocol: u8, ports: [u16; 2], dscp: u8) -> (Option<u8>, bool) {
        let payload = packet(protocol, ports);
        let known = PeerPolicies::new(&policies.into(), Hit([7; 16]));
        let (id, passes) = known.find(&Outgoing { protocol, dscp, payload: &payload });
        (id.map(|id| id.0), passes)
    }

    #[test]
    fn the_first_that_fits_counts() {
        let ports = Policy { ports: vec![5060..=5070, 22..=22], protocol: Some(17), ..Policy::new() };
        let other = Policy { peers: Some(vec![Hit([8; 16])]), ..Policy::new() };
        let marked = Policy { marks: Some(vec![7, 33]), through: false, ..Policy::new() };
        let nobody = Policy { marks: Some(Vec::new()), through: false, ..Policy::new() };
        let icmp = Policy { protocol: Some(58), ..Policy::new() };
        let all = [nobody, other, ports, marked, icmp];
        for (protocol, ends, dscp, expected) in [
            (17, [5065, 4000], 0, (Some(2), true)),
            (17, [4000, 22], 33, (Some(2), true)),
            (17, [4000, 5071], 0, (None, true)),
            (6, [4000, 22], 0, (None, true)),
            (6, [4000, 22], 33, (Some(3), false)),
            (6, [4000, 22], 34, (None, true)),
            // What is in the place of ports there are none.
            (58, [22, 22], 0, (Some(4), true)),
            (50, [22, 22], 0, (None, true)),
        ] {
            assert_eq!(found(&all, protocol, ends, dscp), expected, "{protocol} {ends:?} {dscp}");
        }
        assert_eq!(found(&[], 17, [1, 2], 0), (None, true));
    }

    #[test]
    fn paths_are_named_or_begin_alike() {
        let policy = Policy { paths: vec!["dsl".to_owned(), "wwan*".to_owned()], ..Policy::new() };
        let open: Vec<_> = ["dsl", "dsl2", "wwan0", "wwan0/6", "wlan0"].map(|path| !policy.bars(path)).into();
        assert_eq!(open, [true, false, true, true, false]);
        assert!(!Policy::new().bars("any"));
    }
}
