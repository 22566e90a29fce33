//! The rule and the scheduler that a flow asks for, if its host can run them.

use congestion::{Host, Rule, Unfit};
use scenario::Scenario;
use scheduler::{Needs, Scheduler, UnfitScheduler};
use text::{Diagnostic, alternatives};

use crate::Outside;
use crate::from_scenario::suggestion;

/// The rule that flow number `index` calls `written`.
pub(crate) fn rule(
    scenario: &Scenario,
    index: usize,
    written: &str,
    host: Host,
    outside: &dyn Outside,
) -> Result<Rule, Diagnostic> {
    rule_of((scenario, index, "congestion"), written, host, outside)
}

/// The rule that this key of flow number `index` calls `written`.
pub(crate) fn rule_of(
    (scenario, index, key): (&Scenario, usize, &str),
    written: &str,
    host: Host,
    outside: &dyn Outside,
) -> Result<Rule, Diagnostic> {
    let rule = match outside.rule(written) {
        Some(rule) => host.check(&rule).map(|()| rule),
        None => host.rule(written),
    };
    rule.map_err(|unfit| {
        let help = match (&unfit, host) {
            (Unfit::Couples { .. }, Host::Tcp) => "\"sack\", or protocol = \"mptcp\" with several `paths`".to_owned(),
            (Unfit::Couples { .. }, Host::Sctp { .. }) => {
                "\"reno-sp\", or protocol = \"cmt-sctp\" with several paths".to_owned()
            }
            (Unfit::Couples { .. }, _) => "\"newreno\", or several `paths`".to_owned(),
            (Unfit::ReadsDelay { .. }, _) => {
                format!("one that goes by losses: {}", alternatives(host.rules().into_iter()))
            }
            (Unfit::ReadsRate { .. }, _) => {
                format!("protocol = \"tcp\", or {}", alternatives(host.rules().into_iter()))
            }
            (Unfit::Tunable(_), _) => {
                let name = written.split(':').next().unwrap_or(written);
                format!("{key} = \"{name}\"")
            }
            _ => suggestion(written, host.rules().into_iter()),
        };
        scenario.error_in_flow(index, key, unfit.to_string(), Some(help))
    })
}

/// The scheduler that flow number `index` calls `written`, on a host that has so much for one.
pub(crate) fn scheduler(
    scenario: &Scenario,
    (index, written): (usize, &str),
    has: Needs,
    outside: &dyn Outside,
) -> Result<Scheduler, Diagnostic> {
    let scheduler = match outside.scheduler(written) {
        Some(scheduler) => scheduler.check(has),
        None => Scheduler::fitting(written, has),
    };
    scheduler.map_err(|unfit| {
        let help = match unfit {
            UnfitScheduler::Lacks { .. } => format!("there is {}", alternatives(Scheduler::fitting_names(has))),
            _ => suggestion(written, Scheduler::NAMES.iter().copied()),
        };
        scenario.error_in_flow(index, "scheduler", unfit.to_string(), Some(help))
    })
}
