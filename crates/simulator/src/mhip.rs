//! From what a scenario file says about mHIP to its options.

use scenario::{Amount, DuplicatesSpec, FlowSpec, GrowthSpec, MarkingSpec, Scenario};
use text::Diagnostic;
use transport::mhip::{Attribution, Generation, Growth, Marking, MhipConfig};

use crate::from_scenario::{path_config, tcp};
use crate::plan::{Plan, PlannedPath};

/// The scheduler of the papers.
const FPF: &str = "fastest-path-first";

/// More paths than this between two hosts are a slip of the pen.
const MOST_PATHS: usize = 64;

/// The options of flow number `index`.
pub(crate) fn mhip(
    scenario: &Scenario,
    index: usize,
    flow: &FlowSpec,
    paths: &[PlannedPath],
    plan: &Plan,
) -> Result<MhipConfig, Diagnostic> {
    let refuse =
        |key: &str, message: &str, help: &str| Err(scenario.error_in_flow(index, key, message, Some(help.to_owned())));
    if flow.scheduler.as_deref().is_some_and(|name| name != FPF) {
        return refuse("scheduler", "mHIP is simulated with one scheduler", "scheduler = \"fastest-path-first\"");
    }
    if flow.paths.len() > MOST_PATHS {
        return refuse("paths", "so many paths are not simulated", "at most 64");
    }
    let generation = match flow.mhip.generation {
        Some(1) => Generation::Simple,
        Some(2) => Generation::TwoLevel,
        _ => Generation::Final,
    };
    let mut config = MhipConfig::new(generation, Vec::new());
    let window = config.tcp.receiver_window;
    config.tcp = tcp(scenario, index, flow, &())?;
    if flow.receiver_window.is_none() {
        config.tcp.receiver_window = window;
        config.tcp.engine.initial_ssthresh = f64::from(window) * f64::from(config.tcp.mss());
    }
    config.paths = paths.iter().map(|path| path_config(path, plan, &config.tcp)).collect();
    set(&mut config, flow);
    Ok(config)
}

/// What the flow says itself, in place of what its generation has.
fn set(config: &mut MhipConfig, flow: &FlowSpec) {
    let spec = &flow.mhip;
    match spec.marking {
        Some(MarkingSpec::Off) => *config = config.clone().without_marking(),
        Some(MarkingSpec::Late(part)) => {
            config.marking = config.marking.map(|marking| Marking { part_of_round_trip: part, ..marking });
        }
        Some(MarkingSpec::On) | None => {}
    }
    if let Some(growth) = spec.growth {
        config.growth = match growth {
            GrowthSpec::PerPath | GrowthSpec::PerBottleneck => Growth::PerPath,
            GrowthSpec::Coupled => Growth::Coupled,
            GrowthSpec::Lia => Growth::Lia,
        };
        config.per_bottleneck = growth == GrowthSpec::PerBottleneck;
    }
    config.attribution = match spec.duplicates {
        Some(DuplicatesSpec::AnyPath) => Attribution::AnyPath,
        Some(DuplicatesSpec::SamePath) => Attribution::SamePath,
        None => config.attribution,
    };
    config.receive_buffer = match spec.receive_buffer {
        Some(Amount::Packets(packets)) => Some(u32::try_from(packets).unwrap_or(u32::MAX)),
        Some(Amount::Bytes(bytes)) => Some(u32::try_from(bytes / u64::from(config.tcp.mss())).unwrap_or(u32::MAX)),
        Some(Amount::Unlimited) | None => None,
    };
    config.dupthresh = spec.dupthresh.unwrap_or(config.dupthresh);
    config.addr = spec.addr.unwrap_or(config.addr);
    config.heartbeat = spec.signalling.unwrap_or(config.heartbeat);
    config.probe_interval = spec.probe_interval.unwrap_or(config.probe_interval);
}
