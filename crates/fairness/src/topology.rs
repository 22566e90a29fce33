//! Networks as M. Becke and others define them (ICC 2012, §III-A): locators, nodes, links with bandwidths, paths.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Network, NetworkError};

/// More loop-free paths than this between two nodes are not enumerated.
pub const MOST_PATHS: usize = 100_000;
/// Nor is the search for them continued after so many steps.
const MOST_STEPS: usize = 5_000_000;

/// `Γ = (Ψ, N, L, ρ)`, definition III.1: nodes are sets of locators, links lead from locator to locator.
#[derive(Clone, Debug)]
pub struct Topology {
    locators: Vec<String>,
    nodes: BTreeMap<String, BTreeSet<usize>>,
    /// From, to, and the bandwidth; in the order in which they were given.
    links: Vec<(usize, usize, f64)>,
    leads: BTreeMap<usize, Vec<usize>>,
}

/// A sequence of locators, each linked to the next (definition III.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    locators: Vec<usize>,
    links: Vec<usize>,
}

/// Why something is no network, or no path in it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// Two nodes have a locator in common.
    #[error("the locator {locator:?} belongs to {first:?} and to {second:?}; a locator is of one node only")]
    SharedLocator {
        /// The locator.
        locator: String,
        /// A node that has it.
        first: String,
        /// Another node that has it.
        second: String,
    },
    /// Two nodes have one name.
    #[error("two nodes are called {name:?}")]
    SameName {
        /// The name.
        name: String,
    },
    /// A link begins or ends at a locator that no node has.
    #[error("a link names the locator {locator:?}, which no node has")]
    UnknownLocator {
        /// The locator.
        locator: String,
    },
    /// There is no such node.
    #[error("there is no node {name:?}")]
    UnknownNode {
        /// The name.
        name: String,
    },
    /// A bandwidth is negative or not a number.
    #[error("the link from {from:?} to {to:?} has a bandwidth of {bandwidth}; it must be at least zero")]
    Bandwidth {
        /// Where it begins.
        from: String,
        /// Where it ends.
        to: String,
        /// The bandwidth given.
        bandwidth: f64,
    },
    /// Two links lead from one locator to another.
    #[error("two links lead from {from:?} to {to:?}; links are pairs of locators, so there is one at most")]
    SameLink {
        /// Where they begin.
        from: String,
        /// Where they end.
        to: String,
    },
    /// More paths than anybody wants.
    #[error("more than {MOST_PATHS} loop-free paths lead from {from:?} to {to:?}")]
    TooManyPaths {
        /// The first node.
        from: String,
        /// The last node.
        to: String,
    },
    /// Two locators of a path are not linked.
    #[error("no link leads from {from:?} to {to:?}")]
    NoLink {
        /// A locator of the path.
        from: String,
        /// The next one.
        to: String,
    },
    /// What is no network of links and routes.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

struct Search<'a> {
    last: &'a BTreeSet<usize>,
    ahead: BTreeSet<usize>,
    visited: BTreeSet<usize>,
    found: Vec<Path>,
    steps: usize,
}

impl Search<'_> {
    fn exhausted(&self) -> bool {
        self.found.len() > MOST_PATHS || self.steps > MOST_STEPS
    }
}

impl Topology {
    /// A network of `nodes`, each a name and its locators, and directed `links` with bandwidths in a unit of the caller's
    /// choice; infinite ones are allowed.
    ///
    /// # Errors
    /// A locator that two nodes have ("uniqueness of locators"), a link between locators that no node has, two links
    /// between the same locators, a bandwidth below zero.
    pub fn new<S: AsRef<str>>(nodes: &[(S, Vec<S>)], links: &[(S, S, f64)]) -> Result<Self, TopologyError> {
        let mut names: Vec<String> = Vec::new();
        let mut number: BTreeMap<String, usize> = BTreeMap::new();
        let mut holders: BTreeMap<String, String> = BTreeMap::new();
        let mut sets = BTreeMap::new();
        for (name, locators) in nodes {
            let name = name.as_ref().to_owned();
            let mut set = BTreeSet::new();
            for locator in locators {
                let locator = locator.as_ref().to_owned();
                if let Some(first) = holders.get(&locator).filter(|holder| **holder != name) {
                    return Err(TopologyError::SharedLocator { locator, first: first.clone(), second: name });
                }
                holders.insert(locator.clone(), name.clone());
                set.insert(*number.entry(locator.clone()).or_insert_with(|| {
                    names.push(locator);
                    names.len() - 1
                }));
            }
            if sets.insert(name.clone(), set).is_some() {
                return Err(TopologyError::SameName { name });
            }
        }
        let mut topology = Self { locators: names, nodes: sets, links: Vec::new(), leads: BTreeMap::new() };
        let mut seen = BTreeSet::new();
        for (from, to, bandwidth) in links {
            let (from, to, bandwidth) = (from.as_ref(), to.as_ref(), *bandwidth);
            let find = |locator: &str| {
                number
                    .get(locator)
                    .copied()
                    .ok_or_else(|| TopologyError::UnknownLocator { locator: locator.to_owned() })
            };
            let ends = (find(from)?, find(to)?);
            let (from, to) = (from.to_owned(), to.to_owned());
            if bandwidth.is_nan() || bandwidth < 0.0 {
                return Err(TopologyError::Bandwidth { from, to, bandwidth });
            }
            if !seen.insert(ends) {
                return Err(TopologyError::SameLink { from, to });
            }
            topology.leads.entry(ends.0).or_default().push(topology.links.len());
            topology.links.push((ends.0, ends.1, bandwidth));
        }
        Ok(topology)
    }

    fn node(&self, name: &str) -> Result<&BTreeSet<usize>, TopologyError> {
        self.nodes.get(name).ok_or_else(|| TopologyError::UnknownNode { name: name.to_owned() })
    }

    /// All loop-free paths from node `from` to node `to` (definition III.2 without repeated locators), by length, then by
    /// locators in the order in which nodes named them. A path ends where it first reaches `to`, and leaves `from` at once.
    ///
    /// # Errors
    /// A node that does not exist; more than [`MOST_PATHS`] paths.
    pub fn paths(&self, from: &str, to: &str) -> Result<Vec<Path>, TopologyError> {
        let (first, last) = (self.node(from)?, self.node(to)?);
        let mut search =
            Search { last, ahead: self.leading_to(last), visited: first.clone(), found: Vec::new(), steps: 0 };
        for &start in first {
            let mut path = Path { locators: vec![start], links: Vec::new() };
            if last.contains(&start) {
                search.found.push(path);
                continue;
            }
            self.extend(&mut path, &mut search);
            if search.exhausted() {
                return Err(TopologyError::TooManyPaths { from: from.to_owned(), to: to.to_owned() });
            }
        }
        let mut found = search.found;
        found.sort_by(|a, b| (a.locators.len(), &a.locators).cmp(&(b.locators.len(), &b.locators)));
        Ok(found)
    }

    /// The locators from which links lead to one of `last`.
    fn leading_to(&self, last: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut known = last.clone();
        loop {
            let before = known.len();
            known.extend(
                self.links.iter().filter(|link| known.contains(&link.1)).map(|link| link.0).collect::<Vec<_>>(),
            );
            if known.len() == before {
                return known;
            }
        }
    }

    fn extend(&self, path: &mut Path, search: &mut Search<'_>) {
        let here = path.locators.last().copied().unwrap_or_default();
        for &link in self.leads.get(&here).map_or(&[][..], Vec::as_slice) {
            let next = self.links[link].1;
            search.steps += 1;
            if search.exhausted() || search.visited.contains(&next) || !search.ahead.contains(&next) {
                continue;
            }
            path.locators.push(next);
            path.links.push(link);
            if search.last.contains(&next) {
                search.found.push(path.clone());
            } else {
                search.visited.insert(next);
                self.extend(path, search);
                search.visited.remove(&next);
            }
            path.locators.pop();
            path.links.pop();
        }
    }

    /// The path along `locators`, each given by name.
    ///
    /// # Errors
    /// A locator that no node has, or two in a row without a link.
    pub fn path<S: AsRef<str>>(&self, locators: &[S]) -> Result<Path, TopologyError> {
        let find = |name: &str| {
            let unknown = || TopologyError::UnknownLocator { locator: name.to_owned() };
            self.locators.iter().position(|locator| locator == name).ok_or_else(unknown)
        };
        let locators = locators.iter().map(|name| find(name.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let mut links = Vec::new();
        for ends in locators.windows(2) {
            let leads = |link: &&usize| self.links[**link].1 == ends[1];
            let link = self.leads.get(&ends[0]).and_then(|leaving| leaving.iter().find(leads));
            links.push(*link.ok_or_else(|| TopologyError::NoLink {
                from: self.locators[ends[0]].clone(),
                to: self.locators[ends[1]].clone(),
            })?);
        }
        Ok(Path { locators, links })
    }

    /// The names of a path's locators.
    pub fn names(&self, path: &Path) -> Vec<&str> {
        path.locators.iter().map(|locator| self.locators[*locator].as_str()).collect()
    }

    /// `ρ̂(P)`, the bandwidth of a path: that of its slowest link; infinite where it has none.
    pub fn bandwidth(&self, path: &Path) -> f64 {
        path.links.iter().map(|link| self.links[*link].2).fold(f64::INFINITY, f64::min)
    }

    /// The bandwidths that homogeneous network-centric fairness divides (§IV-C): the sum over `paths`.
    pub fn total(&self, paths: &[Path]) -> f64 {
        paths.iter().map(|path| self.bandwidth(path)).sum()
    }

    /// Links and routes for allocations, and the flow of each route: `flows[f]` is the paths of flow f, its sub-flows in
    /// this order. Links without a limit do not matter and are left out.
    ///
    /// # Errors
    /// A path that nothing limits.
    pub fn network(&self, flows: &[Vec<Path>]) -> Result<(Network, Vec<usize>), TopologyError> {
        let mut number = BTreeMap::new();
        let mut capacities = Vec::new();
        for (link, (_, _, bandwidth)) in self.links.iter().enumerate().filter(|(_, link)| link.2.is_finite()) {
            number.insert(link, capacities.len());
            capacities.push(*bandwidth);
        }
        let mut routes = Vec::new();
        let mut owners = Vec::new();
        for (flow, paths) in flows.iter().enumerate() {
            for path in paths {
                routes.push(path.links.iter().filter_map(|link| number.get(link).copied()).collect());
                owners.push(flow);
            }
        }
        Ok((Network::new(&capacities, &routes)?, owners))
    }

    /// The names of the links of [`Topology::network`] in its order: the locators at both ends.
    pub fn limited_links(&self) -> Vec<(&str, &str)> {
        let limited = self.links.iter().filter(|link| link.2.is_finite());
        limited.map(|(from, to, _)| (self.locators[*from].as_str(), self.locators[*to].as_str())).collect()
    }
}
