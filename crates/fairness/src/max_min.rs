//! Max-min fairness by progressive filling (Bertsekas and Gallager, "Data Networks", §6.5.2): all rates grow together, in
//! proportion to their weights, and those that cross a link that has become full stop.

use crate::Network;

/// The weighted max-min rates; weights are checked by the caller.
pub(crate) fn fill(network: &Network, weights: &[f64]) -> Vec<f64> {
    let mut rates = vec![0.0; network.routes.len()];
    let mut growing = vec![true; network.routes.len()];
    let mut left = network.capacities.clone();
    // Each round fills at least one link, so there are at most as many rounds as links.
    for _ in 0..network.capacities.len() {
        let mut demand = vec![0.0; left.len()];
        for ((route, weight), _) in network.routes.iter().zip(weights).zip(&growing).filter(|(_, growing)| **growing) {
            for &link in route {
                demand[link] += weight;
            }
        }
        let level = |link: usize| left[link] / demand[link];
        let Some(tightest) =
            (0..left.len()).filter(|&link| demand[link] > 0.0).min_by(|&a, &b| level(a).total_cmp(&level(b)))
        else {
            break;
        };
        let step = level(tightest);
        let full: Vec<bool> =
            (0..left.len()).map(|link| demand[link] > 0.0 && level(link) <= step * (1.0 + 1e-12)).collect();
        for (route, weight) in weights.iter().enumerate() {
            if growing[route] {
                rates[route] += weight * step;
                growing[route] = !network.routes[route].iter().any(|&link| full[link]);
            }
        }
        for link in 0..left.len() {
            left[link] = if full[link] { 0.0 } else { (left[link] - demand[link] * step).max(0.0) };
        }
    }
    rates
}
