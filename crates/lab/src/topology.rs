//! From links and flows to hosts, devices, addresses and routes.
//!
//! The ends of flows are hosts: namespaces with one device per access link. Everything between is links of the emulator.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// A link between two nodes, by its place in the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) between: [String; 2],
}

/// One device of a host: where an access link begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// The host, as an index into [`Topology::hosts`].
    pub(crate) host: usize,
    /// The device's name.
    pub(crate) device: String,
    /// Its address.
    pub(crate) address: IpAddr,
}

/// One direction of a link: the link, and whether it is crossed from the first of its nodes to the second.
pub(crate) type Hop = (usize, bool);

/// One path between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPlan {
    /// The two ends, as indices into [`Topology::attachments`].
    pub(crate) ends: [usize; 2],
    /// The hops from the first end to the second.
    pub(crate) hops: Vec<Hop>,
}

/// What the laboratory builds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) hosts: Vec<String>,
    pub(crate) attachments: Vec<Attachment>,
    /// The paths of each flow.
    pub(crate) flows: Vec<Vec<PathPlan>>,
}

impl Topology {
    /// Plans for `flows`, each a list of paths, each a list of node names.
    ///
    /// # Errors
    /// A sentence about the first path that cannot be built.
    pub(crate) fn plan(wires: &[Wire], flows: &[Vec<Vec<String>>]) -> Result<Self, String> {
        let mut topology = Self::default();
        let mut joined: BTreeMap<[usize; 2], Vec<Hop>> = BTreeMap::new();
        for paths in flows {
            let mut planned = Vec::new();
            for path in paths {
                let plan = topology.path(wires, path)?;
                let text = path.join(" – ");
                if let Some(other) = joined.insert(plan.ends, plan.hops.clone())
                    && other != plan.hops
                {
                    return Err(format!(
                        "the path {text} shares its first and its last link with another path, so packets of the two look alike in the laboratory: \
                         give one of its ends an access link of its own"
                    ));
                }
                planned.push(plan);
            }
            topology.flows.push(planned);
        }
        Ok(topology)
    }

    /// The devices of one host.
    pub(crate) fn attachments_of(&self, host: usize) -> impl Iterator<Item = (usize, &Attachment)> {
        self.attachments.iter().enumerate().filter(move |(_, attachment)| attachment.host == host)
    }

    /// The address at one end of a path.
    pub(crate) fn address(&self, attachment: usize) -> IpAddr {
        self.attachments.get(attachment).map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |attachment| attachment.address)
    }

    fn path(&mut self, wires: &[Wire], path: &[String]) -> Result<PathPlan, String> {
        let text = path.join(" – ");
        let hops = path
            .windows(2)
            .map(|pair| match pair {
                [from, to] => hop(wires, from, to).ok_or_else(|| format!("the path {text} goes from {from} to {to}, but there is no link between them")),
                _ => Err(format!("the path {text} is too short")),
            })
            .collect::<Result<Vec<Hop>, String>>()?;
        let ([first, ..], [first_hop, ..], Some(last), Some(last_hop)) = (path, hops.as_slice(), path.last(), hops.last()) else {
            return Err(format!("the path {text} needs two nodes at least"));
        };
        let ends = [self.attach(first, first_hop.0)?, self.attach(last, last_hop.0)?];
        Ok(PathPlan { ends, hops })
    }

    fn attach(&mut self, name: &str, link: usize) -> Result<usize, String> {
        let host = self.hosts.iter().position(|host| host == name).unwrap_or_else(|| {
            self.hosts.push(name.to_owned());
            self.hosts.len() - 1
        });
        let too_many = |_| format!("the laboratory has room for 250 hosts and links; {name} is beyond that");
        // 10.host.link.1: an address that tells where it is.
        let address = Ipv4Addr::new(10, u8::try_from(host + 1).map_err(too_many)?, u8::try_from(link + 1).map_err(too_many)?, 1);
        let address = IpAddr::V4(address);
        if let Some(known) = self.attachments.iter().position(|attachment| attachment.address == address) {
            return Ok(known);
        }
        self.attachments.push(Attachment { host, device: format!("link{}", link + 1), address });
        Ok(self.attachments.len() - 1)
    }
}

fn hop(wires: &[Wire], from: &str, to: &str) -> Option<Hop> {
    wires.iter().enumerate().find_map(|(index, wire)| match &wire.between {
        [a, b] if a == from && b == to => Some((index, true)),
        [a, b] if a == to && b == from => Some((index, false)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wires(pairs: &[(&str, &str)]) -> Vec<Wire> {
        pairs.iter().map(|(a, b)| Wire { between: [(*a).to_owned(), (*b).to_owned()] }).collect()
    }

    fn path(nodes: &str) -> Vec<String> {
        nodes.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn two_paths_have_two_devices_at_each_end() {
        let wires = wires(&[("a", "r1"), ("a", "r2"), ("r1", "b"), ("r2", "b")]);
        let topology = Topology::plan(&wires, &[vec![path("b r1 a"), path("b r2 a")]]).expect("a plan");
        assert_eq!(topology.hosts, ["b", "a"]);
        assert_eq!(topology.attachments.len(), 4);
        let [flow] = topology.flows.as_slice() else { panic!("one flow") };
        assert_eq!(flow[0].hops, [(2, false), (0, false)]);
        assert_eq!(flow[1].hops, [(3, false), (1, false)]);
        assert_eq!(topology.address(flow[0].ends[0]).to_string(), "10.1.3.1");
        assert_eq!(topology.attachments_of(0).count(), 2);
    }

    #[test]
    fn one_access_link_may_lead_to_several_of_the_peer() {
        let wires = wires(&[("b", "x"), ("x", "r1"), ("x", "r2"), ("r1", "a"), ("r2", "a")]);
        let topology = Topology::plan(&wires, &[vec![path("b x r1 a"), path("b x r2 a")]]).expect("a plan");
        assert_eq!(topology.attachments.len(), 3);
    }

    #[test]
    fn what_cannot_be_built_is_told() {
        let wires = wires(&[("a", "x"), ("x", "r1"), ("x", "r2"), ("r1", "y"), ("r2", "y"), ("y", "b")]);
        let missing = Topology::plan(&wires, &[vec![path("a r1 b")]]).expect_err("no link");
        assert!(missing.contains("no link between them"), "{missing}");
        let alike = Topology::plan(&wires, &[vec![path("a x r1 y b"), path("a x r2 y b")]]).expect_err("ambiguous");
        assert!(alike.contains("shares its first and its last link"), "{alike}");
        assert!(Topology::plan(&wires, &[vec![path("a")]]).is_err());
    }
}
