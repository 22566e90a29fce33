//! Makes a plan that fails smaller: delta debugging (Zeller and Hildebrandt 2002) over its events and flows.

use crate::plan::Plan;
use crate::property::Property;
use crate::run::run;

/// The smallest plan that was found in which the same property does not hold, after at most `most` runs. `stop` ends the
/// search early; what was found so far is kept.
pub fn shrink(plan: &Plan, property: Property, most: usize, mut stop: impl FnMut(usize, &Plan) -> bool) -> Plan {
    let mut best = plan.clone();
    let mut runs = 0;
    let mut try_one = |candidate: Plan, best: &mut Plan| -> Option<bool> {
        runs += 1;
        if runs > most || stop(runs, best) {
            return None;
        }
        let fails = run(&candidate).finding.is_some_and(|finding| finding.property == property);
        if fails {
            *best = candidate;
        }
        Some(fails)
    };
    let _ = try_one(Plan { epilogue: Vec::new(), ..best.clone() }, &mut best);
    let lists: [fn(&mut Plan, usize, usize); 2] = [
        |plan, from, to| _ = plan.events.drain(from..to.min(plan.events.len())),
        |plan, from, to| _ = plan.flows.drain(from..to.min(plan.flows.len())),
    ];
    for (list, cut) in lists.into_iter().enumerate() {
        let length = |plan: &Plan| if list == 0 { plan.events.len() } else { plan.flows.len() };
        let mut part = length(&best).div_ceil(2);
        while part > 0 {
            let mut from = 0;
            while from < length(&best) {
                let mut candidate = best.clone();
                cut(&mut candidate, from, from + part);
                match try_one(candidate, &mut best) {
                    None => return best,
                    Some(true) => {}
                    Some(false) => from += part,
                }
            }
            part = if part == 1 { 0 } else { part.div_ceil(2) };
        }
    }
    best
}
