//! From what a scenario file says about MPTCP to its options.

use congestion::{Family, Host, SlowStartTest, WindowRule as _};
use scenario::{FlowSpec, Scenario};
use scheduler::Needs;
use text::Diagnostic;
use transport::mptcp::MptcpConfig;

use crate::Outside;
use crate::from_scenario::{path_config, tcp};
use crate::plan::{Plan, PlannedPath};
use crate::rules;

/// The options of flow number `index`.
pub(crate) fn mptcp(
    (scenario, index, flow): (&Scenario, usize, &FlowSpec),
    paths: &[PlannedPath],
    plan: &Plan,
    outside: &dyn Outside,
) -> Result<MptcpConfig, Diagnostic> {
    let refuse =
        |key: &str, message: String, help: String| Err(scenario.error_in_flow(index, key, message, Some(help)));
    if paths.len() > MptcpConfig::MOST_PATHS {
        let help = format!("at most {}", MptcpConfig::MOST_PATHS);
        return refuse("paths", "so many subflows are not simulated".into(), help);
    }
    let mut tcp = tcp(scenario, index, &FlowSpec { congestion: None, ..flow.clone() }, outside)?;
    let usual = if paths.len() > 1 { "lia" } else { "newreno" };
    let written = flow.congestion.as_deref().unwrap_or(usual);
    tcp.rule = rules::rule(scenario, index, written, Host::Mptcp { paths: paths.len() }, outside)?;
    if tcp.rule.kind().family == Family::Sctp {
        tcp.engine.slow_start_test = SlowStartTest::BelowOrEqual; // ALGORITHMS §13 A5.
    }
    let paths = paths.iter().map(|path| path_config(path, plan, &tcp)).collect();
    let mut config = MptcpConfig::new(tcp, paths);
    if let Some(name) = &flow.scheduler {
        config.scheduler = rules::scheduler(scenario, (index, name), Needs::ALL, outside)?;
    }
    config.opportunistic = flow.mptcp.opportunistic.unwrap_or(config.opportunistic);
    Ok(config)
}
