//! Fairness lines and planes (Becke and others, ICC 2012, §V and figure 2): the allocations that a notion calls fair,
//! whether or not they use all there is.

use crate::{Allocation, Network, NetworkError, Notion};

/// A linear condition `Σ a_k B_k = 0` on the rates of routes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    /// `a_k`, by route.
    pub normal: Vec<f64>,
}

impl Plane {
    /// By how much an allocation misses the plane: 0 on it; above zero, the first party has more than its share.
    pub fn distance(&self, subflows: &[f64]) -> f64 {
        self.normal.iter().zip(subflows).map(|(factor, rate)| factor * rate).sum()
    }
}

/// The conditions of `notion` on `network`: for each pair that competes, equal shares. Pairs are sub-flows, or flows, that
/// have a link in common; for the network-centric notion, flows with a link in common in their totals. A proportionally
/// fair allocation is not on a plane, so there are none.
pub fn planes(network: &Network, owners: &[usize], notion: Notion) -> Result<Vec<Plane>, NetworkError> {
    network.check_owners(owners)?;
    let routes = network.routes();
    let mut planes: Vec<Plane> = Vec::new();
    let mut add = |normal: Vec<f64>| {
        if !planes.iter().any(|plane| plane.normal == normal) {
            planes.push(Plane { normal });
        }
    };
    for link in 0..network.capacities().len() {
        let here: Vec<usize> = (0..routes.len()).filter(|route| routes[*route].contains(&link)).collect();
        for (at, first) in here.iter().enumerate() {
            for second in here.get(at + 1..).unwrap_or_default() {
                let (one, other) = (owners[*first], owners[*second]);
                let party = |route: usize| match notion {
                    Notion::LinkSubflow => f64::from(u8::from(route == *first)) - f64::from(u8::from(route == *second)),
                    Notion::LinkFlow if !here.contains(&route) => 0.0,
                    _ => f64::from(u8::from(owners[route] == one)) - f64::from(u8::from(owners[route] == other)),
                };
                if notion != Notion::Proportional && (one != other || notion == Notion::LinkSubflow) {
                    add((0..routes.len()).map(party).collect());
                }
            }
        }
    }
    Ok(planes)
}

/// What `notion` expects while something varies: the allocation for each of `values`, of the network that `at` makes of it
/// (figure 2c: rates over ρ(α)).
///
/// # Errors
/// What [`Notion::allocate`] finds wrong with one of the networks.
pub fn line(
    notion: Notion,
    values: &[f64],
    at: impl Fn(f64) -> Result<(Network, Vec<usize>), NetworkError>,
) -> Result<Vec<(f64, Allocation)>, NetworkError> {
    let point = |value: &f64| {
        let (network, owners) = at(*value)?;
        Ok((*value, notion.allocate(&network, &owners, &vec![None; owners.len()])?))
    };
    values.iter().map(point).collect()
}

/// Evaluation scenario 1: two flows of one path share the link α.
pub fn scenario_1(alpha: f64) -> Result<(Network, Vec<usize>), NetworkError> {
    Ok((Network::new(&[alpha], &[vec![0], vec![0]])?, vec![0, 1]))
}

/// Evaluation scenario 2: flow 0 with two sub-flows and flow 1 share the link α.
pub fn scenario_2(alpha: f64) -> Result<(Network, Vec<usize>), NetworkError> {
    Ok((Network::new(&[alpha], &[vec![0], vec![0], vec![0]])?, vec![0, 0, 1]))
}

/// Evaluation scenario 3: sub-flow 0 of flow 0 is alone on α, its sub-flow 1 shares β with flow 1.
pub fn scenario_3(alpha: f64, beta: f64) -> Result<(Network, Vec<usize>), NetworkError> {
    Ok((Network::new(&[alpha, beta], &[vec![0], vec![1], vec![1]])?, vec![0, 0, 1]))
}
