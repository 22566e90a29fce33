//! From what a scenario file says to a [`Plan`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use clock::{Duration, Streams};
use congestion::{Host, InitialWindow, WindowRule as _};
use link::{LinkConfig, LossConfig, Processing, QueueConfig};
use scenario::schema::Engine;
use scenario::{Amount, Directed, FlowSpec, Moment, NodeIndex, Protocol, Scenario, TcpSpec, UndoSpec};
use text::{Diagnostic, alternatives, did_you_mean};
use transport::mhip::PathConfig;
use transport::{FlowConfig, Pauses, Recovery, TcpConfig, TimerConfig, UdpConfig, UndoBy};

use crate::Outside;
use crate::mhip;
use crate::plan::{Plan, PlannedFlow, PlannedPath};
use crate::rules;
use crate::sinnet::Associations;

/// The profile of `vectors/ns2`.
const NS2: &str = "ns2";
/// TCP as Linux has it, on hosts as they are in the lab.
const LINUX: &str = "linux";

/// ns-2's `overhead_` in the runs of several flows of `vectors/ns2`: without it, flows through a drop-tail queue lock
/// into phases, and who wins is an accident of delays and rounding. A lone flow goes without.
const NS2_JITTER: Duration = Duration::from_millis(2);

/// The rate of a link that has none, in bit/s: a full packet takes less than a nanosecond.
const UNLIMITED: u64 = 1 << 60;

/// The shortest queue on the way takes at least so many times the jitter to drain, because to a queue of a few packets
/// the bursts of more would cost throughput.
const NS2_DRAIN: u64 = 32;

/// The plan of `scenario` in the run with `seed`, which draws the start and stop times that are given as a range.
///
/// # Errors
/// What the simulator cannot do, where the file asks for it.
pub fn plan(scenario: &Scenario, seed: u64) -> Result<Plan, Diagnostic> {
    plan_with(scenario, seed, &())
}

/// As [`plan`], where flows may also name what is `outside`.
///
/// # Errors
/// What the simulator cannot do, where the file asks for it.
pub fn plan_with(scenario: &Scenario, seed: u64, outside: &dyn Outside) -> Result<Plan, Diagnostic> {
    scenario.check_for(Engine::Sim)?;
    let streams = Streams::new(seed);
    let mut plan = Plan::new(scenario.duration);
    plan.warm_up = scenario.warm_up;
    plan.processing = scenario.processing;
    let ns2 = |flow: &FlowSpec| flow.profile.as_deref() == Some(NS2);
    let is_shipped = |flow: &FlowSpec| flow.protocol == Protocol::Sinnet;
    // What ships beside what is in ns-2 meets the links that are there.
    let ns2 = scenario.flows.iter().any(ns2) && scenario.flows.iter().all(|flow| ns2(flow) || is_shipped(flow));
    let several = scenario.flows.iter().map(|flow| u64::from(flow.count)).sum::<u64>() > 1;
    let mut links = BTreeMap::new();
    let mut associations = Associations::default();
    let mut ns2_losses = 0;
    for Directed { name, from, to, mut config, .. } in scenario.directed() {
        if ns2 {
            as_in_ns2(&mut config, &mut ns2_losses, seed);
        }
        links.insert((from, to), plan.link(name, config));
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        let mut paths = Vec::new();
        for path in &flow.paths {
            let reverse = way_back(flow, path, &links).or((flow.protocol == Protocol::Udp).then(Vec::new));
            let Some(reverse) = reverse else {
                let message = format!("\"{}\" needs a way back for its acknowledgments", flow.protocol.name());
                let help = "between = [\"a\", \"b\"] is a link in both directions".to_owned();
                return Err(scenario.error_in_flow(index, "protocol", message, Some(help)));
            };
            paths.push(PlannedPath { forward: along(path, &links).unwrap_or_default(), reverse });
        }
        let jitter = |size| (ns2 && several && flow.tcp.send_jitter.is_none()).then(|| ns2_jitter(&paths, &plan, size));
        let traffic = match flow.protocol {
            Protocol::Tcp => {
                let mut tcp = tcp(scenario, index, flow, outside)?;
                tcp.send_jitter = jitter(tcp.packet_size).unwrap_or(tcp.send_jitter);
                FlowConfig::Tcp(Arc::new(tcp))
            }
            Protocol::Mhip => {
                let mut mhip = mhip::mhip(scenario, index, flow, &paths, &plan)?;
                mhip.tcp.send_jitter = jitter(mhip.tcp.packet_size).unwrap_or(mhip.tcp.send_jitter);
                FlowConfig::Mhip(Arc::new(mhip))
            }
            Protocol::Sctp | Protocol::CmtSctp => FlowConfig::Sctp(Arc::new(crate::sctp::sctp(scenario, index, flow)?)),
            Protocol::Mptcp => {
                let mut mptcp = crate::mptcp::mptcp((scenario, index, flow), &paths, &plan, outside)?;
                if let Some(jitter) = jitter(mptcp.tcp.packet_size) {
                    Arc::make_mut(&mut mptcp.tcp).send_jitter = jitter;
                }
                FlowConfig::Mptcp(Arc::new(mptcp))
            }
            Protocol::Udp => FlowConfig::Udp(udp(scenario, index, flow, flow.wire_size(), 28)?),
            Protocol::Sinnet => crate::sinnet::traffic(scenario, index, flow, outside)?,
            other => {
                let message = format!("protocol \"{}\" is not simulated yet", other.name());
                return Err(scenario.error_in_flow(index, "protocol", message, Some("protocol = \"tcp\"".into())));
            }
        };
        for number in 1..=flow.count {
            let name = if flow.count > 1 { format!("{}.{number}", flow.name) } else { flow.name.clone() };
            // A stream of its own for each flow: another flow more or less does not move it. Who starts with another flow has
            // that one's stream.
            let leader = flow.start_with.and_then(|leader| scenario.flows.get(leader));
            let timed = leader.map_or(&name, |leader| &leader.name);
            let mut rng = streams.stream(&format!("times of flow {timed}"));
            let mut draw = |moment: Moment| moment.draw(&mut rng);
            let association = match is_shipped(flow) {
                true => Some(associations.of((scenario, index, flow), (&name, &paths), &mut plan, outside)?),
                false => None,
            };
            plan.flows.push(PlannedFlow {
                paths: paths.clone(),
                start: draw(flow.start),
                stop: flow.stop.map(&mut draw),
                traffic: traffic.clone(),
                association,
                // What the file says of hosts is of all of them.
                processing: scenario.processing != Processing::Usual || flow.profile.as_deref() == Some(LINUX),
                name,
            });
        }
    }
    Ok(plan)
}

/// The options of flow number `index`.
pub(crate) fn tcp(
    scenario: &Scenario,
    index: usize,
    flow: &FlowSpec,
    outside: &dyn Outside,
) -> Result<TcpConfig, Diagnostic> {
    let refuse = |key: &str, message: String, help| Err(scenario.error_in_flow(index, key, message, help));
    let profile = profile(flow);
    let usual = match profile {
        Some(NS2) => "newreno",
        Some(LINUX) => "cubic",
        _ => "sack",
    };
    let name = flow.congestion.as_deref().unwrap_or(usual);
    let rule = rules::rule(scenario, index, name, Host::Tcp, outside)?;
    let recovery = recovery(name);
    if profile == Some(NS2) && rule.kind().reads_rate {
        let message = format!(
            "\"{name}\" sets window and pace from samples of the rate of delivery, which the TCP of ns-2 does not take"
        );
        return refuse("congestion", message, Some("profile = \"linux\"".into()));
    }
    let mut tcp = match profile {
        None => TcpConfig { recovery, ..TcpConfig::default() },
        Some(NS2) => TcpConfig::ns2(recovery),
        Some(LINUX) if flow.protocol == Protocol::Tcp => TcpConfig::linux(rule.clone(), flow.wire_size(), 20),
        Some(LINUX) => {
            let message = format!("\"{}\" has no profile \"linux\"", flow.protocol.name());
            return refuse("profile", message, Some("profile = \"ns2\", or leave it out".into()));
        }
        Some(other) => {
            let help = Some(format!("profile = \"{NS2}\" or \"{LINUX}\""));
            return refuse("profile", format!("no profile is called \"{other}\""), help);
        }
    };
    tcp.rule = rule;
    tcp.packet_size = flow.packet_size.unwrap_or(tcp.packet_size);
    tcp.header_size = flow.tcp.header_size.unwrap_or(tcp.header_size);
    if tcp.packet_size <= tcp.header_size {
        let message = format!(
            "a packet of {} bytes has no room beside its {} bytes of headers",
            tcp.packet_size, tcp.header_size
        );
        return refuse("packet_size", message, Some("packet_size = 1500".into()));
    }
    set_window(&mut tcp, flow);
    if profile == Some(NS2) {
        // Its first threshold is the receiver's window.
        tcp.engine.initial_ssthresh = f64::from(tcp.receiver_window) * f64::from(tcp.mss());
    }
    set_details(&mut tcp, &flow.tcp);
    tcp.data = data(flow, tcp.mss());
    Ok(tcp)
}

/// What a receiver can hold, if the file says it.
pub(crate) fn set_window(tcp: &mut TcpConfig, flow: &FlowSpec) {
    let clamp = |packets: u64| u32::try_from(packets.max(1)).unwrap_or(u32::MAX);
    tcp.receiver_window = match flow.receiver_window {
        Some(Amount::Packets(window)) => clamp(window),
        Some(Amount::Bytes(window)) => clamp(window / u64::from(tcp.mss())),
        Some(Amount::Unlimited) => u32::MAX,
        None => tcp.receiver_window,
    };
}

/// The bytes that a flow has to send, where full packets have `payload`; unlimited if `None`.
pub(crate) fn data(flow: &FlowSpec, payload: u32) -> Option<u64> {
    match flow.amount {
        Some(Amount::Packets(amount)) => Some(amount.saturating_mul(u64::from(payload))),
        Some(Amount::Bytes(amount)) => Some(amount),
        Some(Amount::Unlimited) | None => None,
    }
}

/// How losses are repaired by the TCP that a congestion control is named after; by selective acknowledgments with any other.
fn recovery(name: &str) -> Recovery {
    match name {
        "reno" => Recovery::Reno,
        "newreno" | "vegas" => Recovery::NewReno,
        _ => Recovery::Sack,
    }
}

/// The papers on mHIP have it in ns-2.
fn profile(flow: &FlowSpec) -> Option<&str> {
    flow.profile.as_deref().or((flow.protocol == Protocol::Mhip).then_some(NS2))
}

/// What the base exchange would tell of a path: its slowest link, and the delay of a full packet without its
/// transmission there.
pub(crate) fn path_config(path: &PlannedPath, plan: &Plan, tcp: &TcpConfig) -> PathConfig {
    let along = |links: &[u32], bytes: u32| {
        let links = links.iter().filter_map(|link| plan.links.get(*link as usize));
        let mut rate = UNLIMITED;
        let mut delay = Duration::ZERO;
        for link in links {
            let here = link.config.rate.unwrap_or(UNLIMITED);
            delay += link.config.delay + Duration::of_transmission(bytes.into(), here);
            rate = rate.min(here);
        }
        (delay, rate)
    };
    let (delay, rate) = along(&path.forward, tcp.packet_size);
    let (back, _) = along(&path.reverse, tcp.header_size);
    PathConfig { delay: delay - Duration::of_transmission(tcp.packet_size.into(), rate), back, rate }
}

/// The keys that seldom differ from the profile's.
pub(crate) fn set_details(tcp: &mut TcpConfig, spec: &TcpSpec) {
    tcp.delayed_ack = spec.delayed_ack.unwrap_or(tcp.delayed_ack);
    let packets = match spec.initial_window {
        Some(Amount::Packets(packets)) => Some(packets),
        Some(Amount::Bytes(bytes)) => Some(bytes / u64::from(tcp.mss())),
        Some(Amount::Unlimited) | None => None,
    };
    if let Some(packets) = packets {
        tcp.engine.initial_window = InitialWindow::Packets(u32::try_from(packets.max(1)).unwrap_or(u32::MAX));
    }
    tcp.ecn = spec.ecn.unwrap_or(tcp.ecn);
    tcp.timestamps = spec.timestamps.unwrap_or(tcp.timestamps);
    tcp.undo = match spec.undo {
        None => tcp.undo,
        Some(UndoSpec::Never) => UndoBy::Never,
        Some(UndoSpec::Eifel) => UndoBy::Eifel,
        Some(UndoSpec::Dsack) => UndoBy::DuplicateReports,
    };
    if let Some(min_rto) = spec.min_rto {
        match &mut tcp.timer {
            TimerConfig::Fine(config) | TimerConfig::Coarse(config) => config.min_rto = min_rto,
        }
    }
    tcp.send_jitter = spec.send_jitter.unwrap_or(tcp.send_jitter);
}

/// The options of flow number `index`, a UDP source of packets of so many bytes, of which some are headers.
pub(crate) fn udp(
    scenario: &Scenario,
    index: usize,
    flow: &FlowSpec,
    packet_size: u32,
    header_size: u32,
) -> Result<UdpConfig, Diagnostic> {
    let Some(rate) = flow.rate else {
        let help = Some("rate = \"1Mbit/s\"".to_owned());
        return Err(scenario.error_in_flow(index, "protocol", "a UDP source needs a rate", help));
    };
    if packet_size <= header_size {
        let message = format!("a packet of {packet_size} bytes has no room beside its {header_size} bytes of headers");
        return Err(scenario.error_in_flow(index, "packet_size", message, Some("packet_size = 1500".into())));
    }
    let data = data(flow, packet_size - header_size);
    let pauses = flow.on_off.map(|times| Pauses { on: times.on, off: times.off, exponential: times.exponential });
    Ok(UdpConfig { rate, packet_size, header_size, pauses, data })
}

/// What a link is to flows that all have the profile "ns2": a drop-tail queue of q packets refuses one when q − 1 wait,
/// as `drop-tail.cc` does, and random losses are those of `ErrorModel` with the run's seed, packet by packet.
fn as_in_ns2(config: &mut LinkConfig, losses: &mut u64, seed: u64) {
    if let QueueConfig::Packets(limit) = &mut config.queue {
        *limit = limit.saturating_sub(1);
    }
    if let LossConfig::Random(rate) = config.loss {
        // Further lossy links get seeds of their own.
        config.loss = LossConfig::Ns2 { rate, seed: seed.wrapping_add(*losses * 1_000_003) };
        *losses += 1;
    }
}

/// The random waiting time of packets of `bytes` bytes over the links of `paths`.
fn ns2_jitter(paths: &[PlannedPath], plan: &Plan, bytes: u32) -> Duration {
    let configs = paths
        .iter()
        .flat_map(|path| &path.forward)
        .filter_map(|link| plan.links.get(*link as usize))
        .map(|link| &link.config);
    let drains = configs.filter_map(|config| match config.queue {
        QueueConfig::Packets(limit) => {
            Some(Duration::of_transmission(u64::from(limit) * u64::from(bytes), config.rate?))
        }
        QueueConfig::Bytes(limit) => Some(Duration::of_transmission(limit, config.rate?)),
        _ => None,
    });
    drains.min().map_or(NS2_JITTER, |drain| NS2_JITTER.min(drain / NS2_DRAIN))
}

/// The nearest of `names` to a word that is none of them, or all of them.
pub(crate) fn suggestion<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    did_you_mean(word, names.clone()).unwrap_or_else(|| format!("there is {}", alternatives(names)))
}

type Links = BTreeMap<(NodeIndex, NodeIndex), u32>;

/// The links along `path`, if all of them exist.
fn along(path: &[NodeIndex], links: &Links) -> Option<Vec<u32>> {
    path.windows(2).map(|hop| links.get(&(*hop.first()?, *hop.last()?)).copied()).collect()
}

/// `path` backwards where its links lead back too, else the way of fewest links.
fn way_back(flow: &FlowSpec, path: &[NodeIndex], links: &Links) -> Option<Vec<u32>> {
    let path: Vec<NodeIndex> = path.iter().rev().copied().collect();
    along(&path, links).or_else(|| {
        let mut came_from = BTreeMap::from([(flow.to, flow.to)]);
        let mut next = VecDeque::from([flow.to]);
        while let Some(node) = next.pop_front() {
            for &(_, to) in links.range((node, 0)..=(node, usize::MAX)).map(|(ends, _)| ends) {
                if let Entry::Vacant(unknown) = came_from.entry(to) {
                    unknown.insert(node);
                    next.push_back(to);
                }
            }
        }
        let mut path = vec![flow.from];
        while let Some(&last) = path.last().filter(|last| **last != flow.to) {
            path.push(*came_from.get(&last)?);
        }
        path.reverse();
        along(&path, links)
    })
}
