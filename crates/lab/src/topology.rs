//! From links and flows to hosts, devices, addresses and routes.
//!
//! The ends of flows are hosts: namespaces with one device per access link. Everything between is links of the emulator.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// One direction of a link, by the names of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// One device of a host: where an access link begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// The host, as an index into [`Topology::hosts`].
    pub(crate) host: usize,
    /// The node at the other end of the access link.
    pub(crate) next: String,
    /// The device's name.
    pub(crate) device: String,
    /// Its address.
    pub(crate) address: IpAddr,
}

/// One path between two hosts, and its way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPlan {
    /// The two ends, as indices into [`Topology::attachments`].
    pub(crate) ends: [usize; 2],
    /// The links from the first end to the second, as indices into the wires.
    pub(crate) there: Vec<usize>,
    /// The links back.
    pub(crate) back: Vec<usize>,
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
    /// The first flow with a path that cannot be built, and a sentence about it.
    pub(crate) fn plan(wires: &[Wire], flows: &[Vec<Vec<String>>]) -> Result<Self, (usize, String)> {
        let mut topology = Self::default();
        let mut joined: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
        for (flow, paths) in flows.iter().enumerate() {
            let mut planned = Vec::new();
            for path in paths {
                let plan = topology.path(wires, path).map_err(|message| (flow, message))?;
                let text = path.join(" – ");
                let [from, to] = plan.ends;
                for (ends, way) in [([from, to], &plan.there), ([to, from], &plan.back)] {
                    if joined.insert(ends, way.clone()).is_some_and(|other| other != *way) {
                        let message = format!(
                            "the path {text} shares its first and its last link with another path, so packets of the two look alike in the laboratory: \
                             give one of its ends an access link of its own"
                        );
                        return Err((flow, message));
                    }
                }
                planned.push(plan);
            }
            topology.flows.push(planned);
        }
        Ok(topology)
    }

    /// The paths that differ, in the order of the flows; those that several flows use stand here once.
    pub(crate) fn distinct_paths(&self) -> Vec<&PathPlan> {
        let mut distinct: Vec<&PathPlan> = Vec::new();
        for path in self.flows.iter().flatten() {
            let [from, to] = path.ends;
            if !distinct.iter().any(|known| known.ends == [from, to] || known.ends == [to, from]) {
                distinct.push(path);
            }
        }
        distinct
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
        let back: Vec<String> = path.iter().rev().cloned().collect();
        let [hops_there, hops_back] = [hops(wires, path)?, hops(wires, &back)?];
        let ([first, second, ..], [last, before, ..]) = (path, back.as_slice()) else {
            return Err(format!("the path {text} needs two nodes at least"));
        };
        let ends = [self.attach(first, second)?, self.attach(last, before)?];
        Ok(PathPlan { ends, there: hops_there, back: hops_back })
    }

    /// The device of host `name` on its link to `next`.
    fn attach(&mut self, name: &str, next: &str) -> Result<usize, String> {
        let host = self.hosts.iter().position(|host| host == name).unwrap_or_else(|| {
            self.hosts.push(name.to_owned());
            self.hosts.len() - 1
        });
        if let Some(known) = self.attachments.iter().position(|known| known.host == host && known.next == next) {
            return Ok(known);
        }
        let number = self.attachments_of(host).count() + 1;
        let too_many = |_| format!("the laboratory has room for 255 hosts with 255 links each; {name} is beyond that");
        // 10.host.link.1: an address that tells where it is.
        let address =
            Ipv4Addr::new(10, u8::try_from(host + 1).map_err(too_many)?, u8::try_from(number).map_err(too_many)?, 1);
        let (device, next) = (format!("link{number}"), next.to_owned());
        self.attachments.push(Attachment { host, next, device, address: address.into() });
        Ok(self.attachments.len() - 1)
    }
}

/// The wires of a path.
fn hops(wires: &[Wire], path: &[String]) -> Result<Vec<usize>, String> {
    let hop = |from: &String, to: &String| {
        let found = wires.iter().position(|wire| wire.from == *from && wire.to == *to);
        found.ok_or_else(|| format!("there is no link from {from} to {to}, which a path or its way back needs"))
    };
    path.iter().zip(path.iter().skip(1)).map(|(from, to)| hop(from, to)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wires(pairs: &[(&str, &str)]) -> Vec<Wire> {
        let wire = |from: &str, to: &str| Wire { from: from.to_owned(), to: to.to_owned() };
        pairs.iter().flat_map(|(a, b)| [wire(a, b), wire(b, a)]).collect()
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
        // Wires are numbered there and back: a-r1 0, r1-a 1, a-r2 2, r2-a 3, r1-b 4, b-r1 5, r2-b 6, b-r2 7.
        assert_eq!((flow[0].there.as_slice(), flow[0].back.as_slice()), ([5, 1].as_slice(), [0, 4].as_slice()));
        assert_eq!((flow[1].there.as_slice(), flow[1].back.as_slice()), ([7, 3].as_slice(), [2, 6].as_slice()));
        assert_eq!(topology.address(flow[0].ends[0]).to_string(), "10.1.1.1");
        assert_eq!(topology.address(flow[1].ends[1]).to_string(), "10.2.2.1");
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
        assert_eq!(missing.0, 0);
        assert!(missing.1.contains("no link from a to r1"), "{}", missing.1);
        let alike = Topology::plan(&wires, &[vec![path("a x r1 y b"), path("a x r2 y b")]]).expect_err("ambiguous");
        assert!(alike.1.contains("shares its first and its last link"), "{}", alike.1);
        let two = Topology::plan(&wires, &[vec![path("a x r1 y b")], vec![path("b y r1 x a")]]).expect("one way");
        assert_eq!(two.distinct_paths().len(), 1);
        assert!(Topology::plan(&wires, &[vec![path("a")]]).is_err());
    }
}
