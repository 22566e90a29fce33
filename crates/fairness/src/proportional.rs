//! Proportional fairness (Kelly 1997) by an interior-point method.
//!
//! Maximises `Σ ω_F·log(Σ_k x_k) + (1/t)·[Σ_l log(c_l − load_l) + Σ_k log x_k]` by damped Newton steps for growing t
//! (Boyd and Vandenberghe, "Convex Optimization", §11.3). The function is self-concordant once t·ω ≥ 1, so a step of
//! 1/(1+λ) with the Newton decrement λ stays inside the feasible set and needs no line search (§9.6.4), hence no logarithm:
//! only + − × ÷ √, the same bits on every machine.

use crate::Network;

/// Newton steps in all; convergence takes some 100, so this only bounds the loop.
const MAX_STEPS: usize = 5_000;
/// The last barrier weight: the duality gap is (links + routes)/t.
const LAST_T: f64 = 1e12;

/// The proportionally fair rate of each route; owners and weights are checked by the caller.
pub(crate) fn solve(network: &Network, owners: &[usize], weights: &[f64]) -> Vec<f64> {
    let mut rates = vec![0.0; network.routes.len()];
    let alive: Vec<usize> = (0..network.routes.len())
        .filter(|&route| network.routes[route].iter().all(|&link| network.capacities[link] > 0.0))
        .collect();
    if alive.is_empty() {
        return rates;
    }
    let largest = network.capacities.iter().fold(0.0_f64, |most, &capacity| most.max(capacity));
    let heaviest = weights.iter().fold(0.0_f64, |most, &weight| most.max(weight));
    let lightest = weights.iter().fold(f64::INFINITY, |least, &weight| least.min(weight));
    let problem = Problem {
        capacities: network.capacities.iter().map(|capacity| capacity / largest).collect(),
        routes: alive.iter().map(|&route| network.routes[route].as_slice()).collect(),
        owners: alive.iter().map(|&route| owners[route]).collect(),
        weights: weights.iter().map(|weight| weight / heaviest).collect(),
    };
    let mut x = problem.start();
    let mut t = heaviest / lightest;
    let end = LAST_T.max(t);
    for _ in 0..MAX_STEPS {
        let Some((direction, decrement)) = problem.newton(&x, t) else { break };
        let step = 1.0 / (1.0 + decrement);
        let next: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
        if !problem.inside(&next) {
            break; // Only rounding can do that, at the very end of the precision.
        }
        x = next;
        if decrement < 1e-4 {
            if t >= end {
                break;
            }
            t = (t * 8.0).min(end);
        }
    }
    for (&route, rate) in alive.iter().zip(x) {
        rates[route] = rate * largest;
    }
    rates
}

struct Problem<'a> {
    capacities: Vec<f64>,
    routes: Vec<&'a [usize]>,
    owners: Vec<usize>,
    weights: Vec<f64>,
}

impl Problem<'_> {
    /// Half of an equal share on the tightest link of each route: strictly inside.
    fn start(&self) -> Vec<f64> {
        let mut users = vec![0.0; self.capacities.len()];
        for &link in self.routes.iter().copied().flatten() {
            users[link] += 1.0;
        }
        let share = |&link: &usize| 0.5 * self.capacities[link] / users[link];
        self.routes.iter().map(|route| route.iter().map(share).fold(f64::INFINITY, f64::min)).collect()
    }

    fn slack(&self, x: &[f64]) -> Vec<f64> {
        let mut slack = self.capacities.clone();
        for (route, rate) in self.routes.iter().zip(x) {
            for &link in *route {
                slack[link] -= rate;
            }
        }
        slack
    }

    fn inside(&self, x: &[f64]) -> bool {
        let crossed = |link: usize| self.routes.iter().any(|route| route.contains(&link));
        x.iter().all(|&rate| rate > 0.0)
            && self.slack(x).iter().enumerate().all(|(link, &slack)| slack > 0.0 || !crossed(link))
    }

    /// The Newton direction and decrement at `x`; `None` when the precision is exhausted.
    fn newton(&self, x: &[f64], t: f64) -> Option<(Vec<f64>, f64)> {
        let n = x.len();
        let slack = self.slack(x);
        let mut totals = vec![0.0; self.weights.len()];
        for (owner, rate) in self.owners.iter().zip(x) {
            totals[*owner] += rate;
        }
        let mut gradient = vec![0.0; n];
        let mut hessian = vec![0.0; n * n];
        for i in 0..n {
            let (owner, total) = (self.owners[i], totals[self.owners[i]]);
            let pressure: f64 = self.routes[i].iter().map(|&link| 1.0 / slack[link]).sum();
            gradient[i] = t * self.weights[owner] / total + 1.0 / x[i] - pressure;
            hessian[i * n + i] += 1.0 / (x[i] * x[i]);
            for j in 0..=i {
                if self.owners[j] == owner {
                    hessian[i * n + j] += t * self.weights[owner] / (total * total);
                }
                for &link in self.routes[i] {
                    if self.routes[j].contains(&link) {
                        hessian[i * n + j] += 1.0 / (slack[link] * slack[link]);
                    }
                }
            }
        }
        let direction = solve_symmetric(&mut hessian, &gradient)?;
        let decrement = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>();
        (decrement >= 0.0).then(|| (direction, decrement.sqrt()))
    }
}

/// Solves `A·x = b` for a positive definite A, given by its lower triangle, by Cholesky's decomposition.
fn solve_symmetric(a: &mut [f64], b: &[f64]) -> Option<Vec<f64>> {
    let n = b.len();
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let rest = a[i * n + j] - dot;
            if i == j {
                // Also false for NaN.
                if !(rest > 0.0 && rest.is_finite()) {
                    return None;
                }
                a[i * n + i] = rest.sqrt();
            } else {
                a[i * n + j] = rest / a[j * n + j];
            }
        }
    }
    let mut x = b.to_vec();
    for i in 0..n {
        let dot: f64 = (0..i).map(|k| a[i * n + k] * x[k]).sum();
        x[i] = (x[i] - dot) / a[i * n + i];
    }
    for i in (0..n).rev() {
        let dot: f64 = (i + 1..n).map(|k| a[k * n + i] * x[k]).sum();
        x[i] = (x[i] - dot) / a[i * n + i];
    }
    Some(x)
}
