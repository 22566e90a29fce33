//! Lexicographic max-min of the totals of flows over all ways to split them, by linear programs.
//!
//! The least total is made as large as possible, then the second least, and so on (the general network-centric notion of
//! `ALGORITHMS.md` §10). Each step is a linear program for the common level, and few more to find the flows that cannot
//! rise above it: those that can rise are found together, since the mean of ways in which single flows rise lets all of
//! them rise.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, Variable};

use crate::Network;
use crate::NetworkError;

/// What counts as more, where the largest capacity is 1: above the tolerance of the solver.
const MORE: f64 = 1e-6;

/// The rate of each route. Owners are checked by the caller.
pub(crate) fn solve(network: &Network, owners: &[usize], flows: usize) -> Result<Vec<f64>, NetworkError> {
    let largest = network.capacities.iter().fold(0.0_f64, |most, capacity| most.max(*capacity));
    if largest == 0.0 || owners.is_empty() {
        return Ok(vec![0.0; owners.len()]);
    }
    let polytope = Polytope {
        capacities: network.capacities.iter().map(|capacity| capacity / largest).collect(),
        routes: &network.routes,
    };
    // First the totals of flows,
    let members = |flow: usize| (0..owners.len()).filter(|route| owners[*route] == flow).collect::<Vec<_>>();
    let users: Vec<Vec<usize>> = (0..flows).map(members).filter(|routes| !routes.is_empty()).collect();
    let mut fixed = Vec::new();
    let totals = polytope.max_min(&users, &fixed)?;
    for (routes, total) in users.into_iter().zip(totals) {
        fixed.push(Fixed {
            terms: routes.into_iter().map(|route| (route, 1.0)).collect(),
            at_least: total,
            at_most: 1e30,
        });
    }
    // then the least load on links that several flows share,
    let shared: Vec<(usize, f64)> = (0..owners.len())
        .map(|route| {
            let others = |link: &&usize| {
                (0..owners.len()).any(|other| owners[other] != owners[route] && network.routes[other].contains(link))
            };
            (route, network.routes[route].iter().filter(others).count() as f64)
        })
        .filter(|(_, links)| *links > 0.0)
        .collect();
    if !shared.is_empty() {
        let load = polytope.least(&shared, &fixed)?;
        fixed.push(Fixed { terms: shared, at_least: 0.0, at_most: load + MORE * 1e-2 });
    }
    // then equal sub-flows, as far as that leaves a choice.
    let single: Vec<Vec<usize>> = (0..owners.len()).map(|route| vec![route]).collect();
    let rates = polytope.max_min(&single, &fixed)?;
    // What the solver's tolerance left is nothing.
    let clean = |rate: f64| if rate < MORE { 0.0 } else { rate };
    Ok(rates.into_iter().map(|rate| clean(rate) * largest).collect())
}

/// Rates of routes that the capacities allow, the largest capacity being 1.
struct Polytope<'a> {
    capacities: Vec<f64>,
    routes: &'a [Vec<usize>],
}

/// A sum of rates that is settled already.
struct Fixed {
    terms: Vec<(usize, f64)>,
    at_least: f64,
    at_most: f64,
}

impl Polytope<'_> {
    /// The lexicographic max-min of the sums over `users`, each a list of routes.
    fn max_min(&self, users: &[Vec<usize>], settled: &[Fixed]) -> Result<Vec<f64>, NetworkError> {
        let mut level: Vec<Option<f64>> = vec![None; users.len()];
        // Each step settles at least one user.
        for _ in 0..users.len() {
            let rising: Vec<usize> = (0..users.len()).filter(|user| level[*user].is_none()).collect();
            if rising.is_empty() {
                break;
            }
            let known = level.clone();
            let at_least = |user: usize, common: f64| known[user].unwrap_or(common);
            let common = self.common(users, &known, settled)?;
            let mut stuck = rising;
            loop {
                let gains = self.gains(users, &stuck, settled, |user| at_least(user, common))?;
                let before = stuck.len();
                stuck = stuck.into_iter().zip(gains).filter(|(_, gain)| *gain <= MORE).map(|(user, _)| user).collect();
                if stuck.len() == before || stuck.is_empty() {
                    break;
                }
            }
            if stuck.is_empty() {
                // Only rounding can say that all of them rise above the most they can have.
                stuck = (0..users.len()).filter(|user| level[*user].is_none()).collect();
            }
            for user in stuck {
                level[user] = Some(common);
            }
        }
        Ok(level.into_iter().map(|level| level.unwrap_or(0.0)).collect())
    }

    /// The most that all users without a level can have at once.
    fn common(&self, users: &[Vec<usize>], levels: &[Option<f64>], settled: &[Fixed]) -> Result<f64, NetworkError> {
        let mut program = Problem::new(OptimizationDirection::Maximize);
        let rates = self.variables(&mut program, settled, |_| 0.0);
        let common = program.add_var(1.0, (0.0, f64::INFINITY));
        for (routes, level) in users.iter().zip(levels) {
            let mut sum: Vec<(Variable, f64)> = routes.iter().map(|route| (rates[*route], 1.0)).collect();
            match level {
                Some(level) => program.add_constraint(&sum, ComparisonOp::Ge, *level),
                None => {
                    sum.push((common, -1.0));
                    program.add_constraint(&sum, ComparisonOp::Ge, 0.0);
                }
            }
        }
        Ok(run(&program)?.var_value(common).max(0.0))
    }

    /// By how much each of `stuck` rises above its level where they rise as much as they can together.
    fn gains(
        &self,
        users: &[Vec<usize>],
        stuck: &[usize],
        settled: &[Fixed],
        level: impl Fn(usize) -> f64,
    ) -> Result<Vec<f64>, NetworkError> {
        let mut program = Problem::new(OptimizationDirection::Maximize);
        let rates = self.variables(&mut program, settled, |_| 0.0);
        let gains: Vec<Variable> = stuck.iter().map(|_| program.add_var(1.0, (0.0, f64::INFINITY))).collect();
        for (user, routes) in users.iter().enumerate() {
            let mut sum: Vec<(Variable, f64)> = routes.iter().map(|route| (rates[*route], 1.0)).collect();
            if let Some(at) = stuck.iter().position(|stuck| *stuck == user) {
                sum.push((gains[at], -1.0));
            }
            program.add_constraint(&sum, ComparisonOp::Ge, level(user) - MORE * 1e-2);
        }
        let solution = run(&program)?;
        Ok(gains.into_iter().map(|gain| solution.var_value(gain)).collect())
    }

    /// The least value of a sum of rates.
    fn least(&self, terms: &[(usize, f64)], settled: &[Fixed]) -> Result<f64, NetworkError> {
        let mut program = Problem::new(OptimizationDirection::Minimize);
        let cost = |route: usize| terms.iter().find(|(at, _)| *at == route).map_or(0.0, |(_, cost)| *cost);
        self.variables(&mut program, settled, cost);
        Ok(run(&program)?.objective().max(0.0))
    }

    fn variables(&self, program: &mut Problem, settled: &[Fixed], cost: impl Fn(usize) -> f64) -> Vec<Variable> {
        let rates: Vec<Variable> =
            (0..self.routes.len()).map(|route| program.add_var(cost(route), (0.0, f64::INFINITY))).collect();
        for (link, capacity) in self.capacities.iter().enumerate() {
            let load: Vec<(Variable, f64)> = rates
                .iter()
                .zip(self.routes)
                .filter(|(_, route)| route.contains(&link))
                .map(|(rate, _)| (*rate, 1.0))
                .collect();
            if !load.is_empty() {
                program.add_constraint(&load, ComparisonOp::Le, *capacity);
            }
        }
        for Fixed { terms, at_least, at_most } in settled {
            let sum: Vec<(Variable, f64)> = terms.iter().map(|(route, factor)| (rates[*route], *factor)).collect();
            program.add_constraint(&sum, ComparisonOp::Ge, at_least - MORE * 1e-2);
            if *at_most < 1e29 {
                program.add_constraint(&sum, ComparisonOp::Le, *at_most);
            }
        }
        rates
    }
}

fn run(program: &Problem) -> Result<Solution, NetworkError> {
    program
        .solve()
        .map_err(|error| NetworkError::Solver { reason: error.to_string() })?
        .into_solution()
        .map_err(|_| NetworkError::Solver { reason: "it stopped early".to_owned() })
}
