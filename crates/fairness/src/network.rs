//! Links with capacities, routes over them, and who owns which route.

use crate::{lexicographic, max_min, proportional};

/// Links with capacities and users with one or more routes over them: what an allocation is computed on.
///
/// Capacities and rates share one unit of the caller's choice.
#[derive(Clone, Debug)]
pub struct Network {
    pub(crate) capacities: Vec<f64>,
    /// Links of each route, without repetition.
    pub(crate) routes: Vec<Vec<usize>>,
}

/// Why a network, or a question about it, makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A capacity is negative, infinite or not a number.
    #[error("the capacity of link {link} is {capacity}; it must be a finite number of at least zero")]
    Capacity {
        /// Index of the link.
        link: usize,
        /// The capacity given.
        capacity: f64,
    },
    /// A route without links has no bound, so no fair share exists.
    #[error("route {route} crosses no link, so nothing limits it")]
    EmptyRoute {
        /// Index of the route.
        route: usize,
    },
    /// A route names a link that does not exist.
    #[error("route {route} names link {link}, but there are only {links} links")]
    UnknownLink {
        /// Index of the route.
        route: usize,
        /// The link it names.
        link: usize,
        /// Number of links.
        links: usize,
    },
    /// The list of weights or owners is not as long as it must be, or an owner does not exist.
    #[error("{what}: {found} given, {expected} expected")]
    Mismatch {
        /// Which list.
        what: &'static str,
        /// Its length, or the owner named.
        found: usize,
        /// The length expected, or the number of owners.
        expected: usize,
    },
    /// A weight is not a positive finite number.
    #[error("weight {index} is {weight}; weights are finite numbers above zero")]
    Weight {
        /// Index of the weight.
        index: usize,
        /// The weight given.
        weight: f64,
    },
    /// More is demanded of a link than it has.
    #[error("{demanded} is demanded of link {link}, which has {capacity}")]
    Infeasible {
        /// Index of the link.
        link: usize,
        /// What the routes with a fixed rate take together.
        demanded: f64,
        /// What there is.
        capacity: f64,
    },
    /// The linear program found no solution, though there is one: a failure of its arithmetic.
    #[error("the linear program of an allocation was not solved: {reason}")]
    Solver {
        /// What the solver says.
        reason: String,
    },
}

impl Network {
    /// A network of links with `capacities` and `routes`, each a list of link indices; a link named twice in a route
    /// counts once.
    ///
    /// # Errors
    /// A capacity that is negative or not finite, an empty route, a link that does not exist.
    pub fn new(capacities: &[f64], routes: &[Vec<usize>]) -> Result<Self, NetworkError> {
        for (link, &capacity) in capacities.iter().enumerate() {
            if !(capacity >= 0.0 && capacity.is_finite()) {
                return Err(NetworkError::Capacity { link, capacity });
            }
        }
        let links = capacities.len();
        let mut checked = Vec::with_capacity(routes.len());
        for (route, crossed) in routes.iter().enumerate() {
            if crossed.is_empty() {
                return Err(NetworkError::EmptyRoute { route });
            }
            if let Some(&link) = crossed.iter().find(|&&link| link >= links) {
                return Err(NetworkError::UnknownLink { route, link, links });
            }
            let mut crossed = crossed.clone();
            crossed.sort_unstable();
            crossed.dedup();
            checked.push(crossed);
        }
        Ok(Self { capacities: capacities.to_vec(), routes: checked })
    }

    /// The weighted max-min fair rate of each route: no rate can grow without taking from one that is, per weight, no
    /// larger. With sub-flows as users this is the link-centric sub-flow notion; with a weight of 1/(sub-flows of its flow
    /// on the link) the link-centric flow notion (`ALGORITHMS.md` §10).
    ///
    /// # Errors
    /// Weights of the wrong number or not positive.
    pub fn max_min(&self, weights: &[f64]) -> Result<Vec<f64>, NetworkError> {
        check_weights("weights", weights, self.routes.len())?;
        Ok(max_min::fill(self, weights))
    }

    /// Proportional fairness: the rate of each route that maximises `Σ ω_F·log(total of flow F)`, where `owners[k]` is the
    /// flow of route k and `weights[f]` is ω of flow f. Totals of flows are unique; the split of a flow over several routes
    /// need not be. A flow that only has routes over links of capacity zero gets zero.
    ///
    /// # Errors
    /// Owners or weights of the wrong number, an owner without a weight, a weight that is not positive.
    pub fn proportional(&self, owners: &[usize], weights: &[f64]) -> Result<Vec<f64>, NetworkError> {
        if owners.len() != self.routes.len() {
            return Err(NetworkError::Mismatch { what: "owners", found: owners.len(), expected: self.routes.len() });
        }
        check_weights("weights", weights, weights.len())?;
        if let Some(&owner) = owners.iter().find(|&&owner| owner >= weights.len()) {
            return Err(NetworkError::Mismatch { what: "owner", found: owner, expected: weights.len() });
        }
        Ok(proportional::solve(self, owners, weights))
    }
}

impl Network {
    /// Network-centric flow fairness for any network: the rates whose totals by flow are lexicographically max-min over
    /// all ways to use the routes. `owners[k]` is the flow of route k. Where totals leave a choice between the routes of a
    /// flow, links that several flows share carry as little as possible, and then routes are as equal as possible.
    ///
    /// # Errors
    /// Owners of the wrong number; a failure of the solver's arithmetic.
    pub fn max_min_totals(&self, owners: &[usize]) -> Result<Vec<f64>, NetworkError> {
        self.check_owners(owners)?;
        let flows = owners.iter().max().map_or(0, |most| most + 1);
        lexicographic::solve(self, owners, flows)
    }

    /// What is left to the others when route k takes `fixed[k]`, whatever the others do.
    ///
    /// # Errors
    /// A list of the wrong length; a rate that is negative or not finite; a link of which more is demanded than it has.
    pub fn without(&self, fixed: &[Option<f64>]) -> Result<Self, NetworkError> {
        let (found, expected) = (fixed.len(), self.routes.len());
        if found != expected {
            return Err(NetworkError::Mismatch { what: "fixed rates", found, expected });
        }
        let mut demanded = vec![0.0; self.capacities.len()];
        for (index, (route, rate)) in self.routes.iter().zip(fixed).enumerate() {
            let Some(rate) = *rate else { continue };
            if !(rate >= 0.0 && rate.is_finite()) {
                return Err(NetworkError::Weight { index, weight: rate });
            }
            for &link in route {
                demanded[link] += rate;
            }
        }
        let mut left = Vec::with_capacity(demanded.len());
        for (link, (&capacity, demanded)) in self.capacities.iter().zip(demanded).enumerate() {
            if demanded > capacity * (1.0 + 1e-9) {
                return Err(NetworkError::Infeasible { link, demanded, capacity });
            }
            left.push((capacity - demanded).max(0.0));
        }
        Ok(Self { capacities: left, routes: self.routes.clone() })
    }

    /// The capacities of the links.
    pub fn capacities(&self) -> &[f64] {
        &self.capacities
    }

    /// The links of each route, ascending.
    pub fn routes(&self) -> &[Vec<usize>] {
        &self.routes
    }

    pub(crate) fn check_owners(&self, owners: &[usize]) -> Result<(), NetworkError> {
        let (found, expected) = (owners.len(), self.routes.len());
        if found == expected { Ok(()) } else { Err(NetworkError::Mismatch { what: "owners", found, expected }) }
    }
}

fn check_weights(what: &'static str, weights: &[f64], expected: usize) -> Result<(), NetworkError> {
    if weights.len() != expected {
        return Err(NetworkError::Mismatch { what, found: weights.len(), expected });
    }
    match weights.iter().enumerate().find(|(_, weight)| !(**weight > 0.0 && weight.is_finite())) {
        Some((index, &weight)) => Err(NetworkError::Weight { index, weight }),
        None => Ok(()),
    }
}
