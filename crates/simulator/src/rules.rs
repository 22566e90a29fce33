//! The rule that a flow asks for, if its host can run it.

use congestion::{Host, Rule, Unfit};
use scenario::Scenario;
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
            (Unfit::Tunable(_), _) => {
                let name = written.split(':').next().unwrap_or(written);
                format!("congestion = \"{name}\"")
            }
            _ => suggestion(written, host.rules().into_iter()),
        };
        scenario.error_in_flow(index, "congestion", unfit.to_string(), Some(help))
    })
}
