//! Names of rules for several paths in scenario files: ours, and those of the papers.

use congestion::{Rule, UnknownRule};

use crate::from_scenario::MHIP;

/// What M. Becke and others call them (ICC 2012, §III-B), and how the registry does.
const OF_PAPERS: [(&str, &str); 2] = [("rp-mp-v1", "rp1"), ("rp-mp-v2", "rp2")];

/// The rule of a name with or without tunables, "rp-mp-v2:blocking=off", and the registry's name.
pub(crate) fn parse(written: &str) -> (&str, Result<Rule, UnknownRule>) {
    let (name, tunables) = written.split_at(written.find(':').unwrap_or(written.len()));
    let name = OF_PAPERS.iter().find(|(paper, _)| *paper == name).map_or(name, |(_, ours)| *ours);
    (name, format!("{name}{tunables}").parse())
}

/// `ours` and the names of the papers, without the rule that only mHIP runs.
pub(crate) fn known(ours: Vec<&'static str>) -> impl Iterator<Item = &'static str> + Clone {
    ours.into_iter().filter(|name| *name != MHIP).chain(OF_PAPERS.map(|(paper, _)| paper))
}
