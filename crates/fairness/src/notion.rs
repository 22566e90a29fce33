//! The notions of fairness, and the allocation that each expects.
//!
//! The first three are those of M. Becke, T. Dreibholz, H. Adhari and E. P. Rathgeb, *On the fairness of transport protocols
//! in a multi-path environment*, IEEE ICC 2012, §IV; `ALGORITHMS.md` §10 extends them to any network.

use crate::{Network, NetworkError};

/// What a fair share is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notion {
    /// Each of m sub-flows on a link gets one m-th of it: today's Internet.
    LinkSubflow,
    /// Each of n flows on a link gets one n-th of it, whatever its sub-flows there.
    LinkFlow,
    /// Each flow gets as much as the others of the whole network, as far as its paths allow.
    NetworkFlow,
    /// The sum of the logarithms of the flows' rates is greatest (F. Kelly, 1997).
    Proportional,
}

/// Who gets what, in the unit of the capacities.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// The rate of each route (sub-flow).
    pub subflows: Vec<f64>,
    /// The total of each flow.
    pub flows: Vec<f64>,
}

impl Allocation {
    /// The rates of routes, summed by owner.
    pub fn of(subflows: Vec<f64>, owners: &[usize]) -> Self {
        let mut flows = vec![0.0; owners.iter().max().map_or(0, |most| most + 1)];
        for (owner, rate) in owners.iter().zip(&subflows) {
            flows[*owner] += rate;
        }
        Self { subflows, flows }
    }
}

impl Notion {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::LinkSubflow, Self::LinkFlow, Self::NetworkFlow, Self::Proportional];

    /// Its name, for files and columns.
    pub fn name(self) -> &'static str {
        match self {
            Self::LinkSubflow => "link-centric sub-flow",
            Self::LinkFlow => "link-centric flow",
            Self::NetworkFlow => "network-centric flow",
            Self::Proportional => "proportional",
        }
    }

    /// The allocation that the notion expects on `network`, where `owners[k]` is the flow of route k. Routes with a
    /// `fixed` rate, such as those of UDP sources, take it whatever the others do, and the others share the rest.
    ///
    /// # Errors
    /// Lists of the wrong length, a demand that a link cannot meet, a failure of the solver's arithmetic.
    pub fn allocate(
        self,
        network: &Network,
        owners: &[usize],
        fixed: &[Option<f64>],
    ) -> Result<Allocation, NetworkError> {
        network.check_owners(owners)?;
        let rest = network.without(fixed)?;
        let elastic: Vec<usize> = (0..owners.len()).filter(|route| fixed[*route].is_none()).collect();
        let routes: Vec<Vec<usize>> = elastic.iter().map(|route| network.routes()[*route].clone()).collect();
        let network = Network::new(rest.capacities(), &routes)?;
        // Flows that take part, numbered without holes.
        let mut flows: Vec<usize> = elastic.iter().map(|route| owners[*route]).collect();
        flows.sort_unstable();
        flows.dedup();
        let number = |flow: usize| flows.binary_search(&flow).unwrap_or_default();
        let own: Vec<usize> = elastic.iter().map(|route| number(owners[*route])).collect();
        let shares = match self {
            Self::LinkSubflow => network.max_min(&vec![1.0; routes.len()])?,
            Self::LinkFlow => network.max_min(&weights(&routes, &own))?,
            // With one route each there is nothing to split, and progressive filling gives the same at once.
            Self::NetworkFlow if flows.len() == own.len() => network.max_min(&vec![1.0; routes.len()])?,
            Self::NetworkFlow => network.max_min_totals(&own)?,
            Self::Proportional => network.proportional(&own, &vec![1.0; flows.len()])?,
        };
        let mut rates: Vec<f64> = fixed.iter().map(|rate| rate.unwrap_or(0.0)).collect();
        for (route, share) in elastic.into_iter().zip(shares) {
            rates[route] = share;
        }
        Ok(Allocation::of(rates, owners))
    }
}

/// The part of its flow's share that a route has where most routes of the flow meet.
fn weights(routes: &[Vec<usize>], owners: &[usize]) -> Vec<f64> {
    let siblings = |route: usize, link: usize| {
        routes.iter().zip(owners).filter(|(other, owner)| **owner == owners[route] && other.contains(&link)).count()
    };
    let least =
        |route: usize| routes[route].iter().map(|link| 1.0 / siblings(route, *link) as f64).fold(1.0_f64, f64::min);
    (0..routes.len()).map(least).collect()
}
