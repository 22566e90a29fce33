//! How long simulations will take.

use scenario::{Protocol, Scenario};

/// Packets that links deliver in a run, at most: what the flows could send over each link, data and acknowledgments.
/// The work of a run goes with it.
pub fn packets(scenario: &Scenario) -> f64 {
    let directed = scenario.directed();
    let seconds = scenario.duration.as_secs_f64();
    let mut total = 0.0;
    for flow in &scenario.flows {
        let wire = f64::from(flow.wire_size()) * 8.0;
        for path in &flow.paths {
            let links = path.windows(2).filter_map(|hop| {
                let [from, to] = hop else { return None };
                directed.iter().find(|link| link.from == *from && link.to == *to)
            });
            let rates: Vec<u64> = links.filter_map(|link| link.config.rate).collect();
            let bottleneck = rates.iter().copied().chain(flow.rate).min().unwrap_or(1_000_000_000) as f64;
            let both_ways = if flow.protocol == Protocol::Udp { 1.0 } else { 2.0 };
            total += seconds * bottleneck / wire * (path.len().saturating_sub(1)) as f64 * both_ways;
        }
    }
    // Flows that share a link share its packets; a count of flows alike is one share, too.
    total.max(1.0)
}
