//! A scenario as the laboratory sees it: what is built, what happens to it, and who talks to whom.

use clock::{Duration, Instant, Streams};
use congestion::{Host, Rule};
use link::{ChangeKind, LinkConfig, Processing};
use scenario::{Amount, FlowSpec, Inside, Rates, Scenario};
use scheduler::{Needs, Scheduler, UnfitScheduler};

use crate::LabError;
use crate::topology::{PathPlan, Topology, Wire};

/// One scenario, ready to be run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// How long each transfer may take, about; of flows that compete, how long they do.
    pub(crate) duration: Duration,
    /// Flows that compete are measured after this.
    pub(crate) warm_up: Duration,
    pub(crate) seed: u64,
    /// How long hosts take for a packet.
    pub(crate) processing: Processing,
    pub(crate) topology: Topology,
    /// What each wire of the topology does. Without changes.
    pub(crate) links: Vec<LinkConfig>,
    /// What changes after the start of the transfer over all paths.
    pub(crate) changes: Vec<PlannedChange>,
    /// The flows, in the order of [`Topology::flows`]. The first is the one that all is about.
    pub(crate) flows: Vec<FlowPlan>,
}

/// A change of a wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlannedChange {
    /// After the start of the transfer.
    pub(crate) after: Duration,
    /// The wire, by its place in [`Plan::links`].
    pub(crate) link: usize,
    /// What happens to it.
    pub(crate) what: ChangeKind,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowPlan {
    /// What it is called.
    pub(crate) name: String,
    /// The server, as an index into [`Topology::hosts`].
    pub(crate) from: usize,
    /// The client.
    pub(crate) to: usize,
    /// What carries it.
    pub(crate) protocol: Protocol,
    /// What is done over it.
    pub(crate) kind: Kind,
    /// The server's congestion control, as Linux calls it.
    pub(crate) congestion: String,
    /// Whether the hosts are told the rates of the links instead of measuring what paths carry.
    pub(crate) rates_configured: bool,
    /// The congestion control of the paths, where it is not the usual one.
    pub(crate) path_congestion: Option<String>,
    /// By what the hosts choose the path of a packet.
    pub(crate) scheduler: &'static str,
    /// The size of the file in bytes, where the scenario says it.
    pub(crate) size: Option<u64>,
    /// When it starts, where flows compete.
    pub(crate) start: Duration,
}

/// What is done over a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One download.
    Download,
    /// So many downloads of the flow's `size` at once, each over a connection of its own and to its end.
    ParallelDownloads(u32),
    /// UDP from the server to the client, like a call: an IP packet of so many bytes in each interval.
    ConstantBitRate { bytes: u32, interval: Duration },
    /// Echo requests of the server, and the client's answers.
    Ping { interval: Duration },
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TCP inside Sinnet, over all paths of the flow.
    Sinnet,
    /// TCP alone, over the only path of the flow.
    Tcp,
    /// The kernel's Multipath TCP (RFC 8684), over all paths of the flow.
    Mptcp,
}

impl Protocol {
    /// The name as scenario files write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sinnet => "sinnet",
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
        }
    }
}

/// The congestion control that Linux has unless somebody chooses another.
const USUAL: &str = "cubic";
/// What every path of IPv6 carries (RFC 8200 §5), in bytes: packets of a call that says nothing else.
const CALL: u32 = 1280;
/// A call's packet has the headers of IPv6 and UDP and a number of 8 bytes.
const SMALLEST_CALL: u32 = 56;
/// What a program takes to open one of many connections.
pub(crate) const OPENING: Duration = Duration::from_micros(100);
/// From one echo request to the next.
const PING: Duration = Duration::from_millis(50);
/// More flows than this between a handful of namespaces are a slip of the pen.
const MOST_FLOWS: usize = 64;

impl Plan {
    /// Plans for what a laboratory can do: downloads by `sinnet`, `tcp` and `mptcp`, calls and echo requests inside `sinnet`.
    ///
    /// # Errors
    /// Points at what in the scenario a laboratory cannot do.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, LabError> {
        let name = |node: usize| scenario.nodes.get(node).cloned().unwrap_or_default();
        let directed = scenario.directed();
        let wires: Vec<Wire> = directed.iter().map(|link| Wire { from: name(link.from), to: name(link.to) }).collect();
        let mut all = Vec::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let protocol = check(scenario, index, flow)?;
            let paths: Vec<Vec<String>> =
                flow.paths.iter().map(|path| path.iter().map(|node| name(*node)).collect()).collect();
            let kind = kind(flow);
            let alike = if matches!(kind, Kind::ParallelDownloads(_)) { 1 } else { flow.count };
            for number in 1..=alike {
                let name = if alike > 1 { format!("{}.{number}", flow.name) } else { flow.name.clone() };
                all.push((index, flow, (protocol, kind), name, paths.clone()));
            }
        }
        // The flow over several paths is what all is about, wherever it stands in the file; a download rather than others.
        all.sort_by_key(|(_, _, (protocol, kind), ..)| (*protocol == Protocol::Tcp, !kind.is_download()));
        let paths: Vec<_> = all.iter().map(|(.., paths)| paths.clone()).collect();
        let topology = Topology::plan(&wires, &paths).map_err(|(flow, message)| {
            scenario.error_in_flow(all.get(flow).map_or(0, |(index, ..)| *index), "paths", message, None)
        })?;
        let host = |node: usize| topology.hosts.iter().position(|host| *host == name(node)).unwrap_or_default();
        let (streams, usual) = (Streams::new(scenario.seed), wedge::WedgeConfig::default_congestion());
        let flows: Vec<FlowPlan> = all
            .iter()
            .map(|(_, flow, (protocol, kind), name, _)| FlowPlan {
                name: name.clone(),
                from: host(flow.from),
                to: host(flow.to),
                protocol: *protocol,
                kind: *kind,
                congestion: flow.congestion.clone().unwrap_or_else(|| USUAL.to_owned()),
                rates_configured: flow.sinnet.rates == Rates::Configured,
                path_congestion: flow.sinnet.path_congestion.clone().filter(|name| *name != usual.name()),
                // It was checked.
                scheduler: scheduler(flow).unwrap_or_default().name(),
                size: match flow.amount {
                    None | Some(Amount::Unlimited) => None,
                    Some(Amount::Bytes(bytes)) => Some(bytes),
                    Some(Amount::Packets(packets)) => Some(packets.saturating_mul(flow.wire_size().into())),
                },
                start: start(scenario, flow, name, &streams),
            })
            .collect();
        // Changes count from the start of the only flow; where flows compete, as the file has them.
        let zero = match flows.as_slice() {
            [only] => Instant::ZERO + only.start,
            _ => Instant::ZERO,
        };
        let changes = directed.iter().enumerate().flat_map(|(link, directed)| {
            directed.config.changes.iter().map(move |change| PlannedChange {
                after: change.at.saturating_since(zero),
                link,
                what: change.what,
            })
        });
        let plan = Self {
            name: scenario.name.clone(),
            duration: scenario.duration,
            warm_up: scenario.warm_up,
            seed: scenario.seed,
            processing: scenario.processing,
            changes: changes.collect(),
            links: directed.iter().map(|link| LinkConfig { changes: Vec::new(), ..link.config.clone() }).collect(),
            flows,
            topology,
        };
        plan.check_together(scenario, &all.iter().map(|(index, ..)| *index).collect::<Vec<_>>())?;
        Ok(plan)
    }

    /// The largest packet that all links take at the start, if that is less than `most`.
    pub(crate) fn least_mtu(&self, most: u16) -> u16 {
        let mtus = self.links.iter().filter_map(|link| u16::try_from(link.mtu?).ok());
        mtus.fold(most, u16::min)
    }

    /// The flow that all is about.
    pub(crate) fn flow(&self) -> &FlowPlan {
        &self.flows[0]
    }

    /// The paths of that flow, from the server to the client.
    pub(crate) fn paths(&self) -> &[PathPlan] {
        self.paths_of(0)
    }

    /// The paths of a flow.
    pub(crate) fn paths_of(&self, flow: usize) -> &[PathPlan] {
        self.topology.flows.get(flow).map_or(&[], Vec::as_slice)
    }

    /// Whether flows are measured over the same time and not to their end: several compete, or the only one has no end.
    pub(crate) fn competes(&self) -> bool {
        self.flows.len() > 1 || !self.flow().kind.is_download()
    }

    /// Whether what arrives between warm-up and end is measured, and not a file to its end: of flows that compete, and of a
    /// download with a warm-up.
    pub(crate) fn is_timed(&self) -> bool {
        self.competes() || !self.warm_up.is_zero()
    }

    /// How long a file may be under way: three times what it takes where its size is what links carry in the duration and its
    /// only path loses 5 % each way, which leaves a sixth of the rate (`scenarios/lab/bench/lossy-second.toml`, under TCP too).
    pub(crate) fn patience(&self) -> Duration {
        self.duration * 15 + Duration::from_secs(10)
    }

    /// The rate of one direction of a path: that of its slowest link, in bit/s. `None` without any limit.
    pub(crate) fn rate(&self, hops: &[usize]) -> Option<u64> {
        self.along(hops).filter_map(|link| link.rate).min()
    }

    /// The rate that the hosts of the main flow are told of one direction of a path, if they are told.
    pub(crate) fn told_rate(&self, hops: &[usize]) -> Option<u64> {
        self.rate(hops).filter(|_| self.flow().rates_configured)
    }

    /// The congestion control of the paths, where the main flow names one.
    pub(crate) fn path_rule(&self) -> Option<Rule> {
        // It was checked.
        self.flow().path_congestion.as_deref().and_then(|name| Host::Tunnel.rule(name).ok())
    }

    /// The propagation delay of one direction of a path.
    pub(crate) fn delay(&self, hops: &[usize]) -> Duration {
        Duration::from_nanos(self.along(hops).map(|link| link.delay.as_nanos()).sum())
    }

    fn along<'a>(&'a self, hops: &'a [usize]) -> impl Iterator<Item = &'a LinkConfig> {
        hops.iter().filter_map(|hop| self.links.get(*hop))
    }

    /// What flows ask for together; `places` has the place in the file of each.
    fn check_together(&self, scenario: &Scenario, places: &[usize]) -> Result<(), LabError> {
        let error = |flow: usize, key: &str, message: String, help: &str| {
            let place = places.get(flow).copied().unwrap_or(0);
            Err(scenario.error_in_flow(place, key, message, Some(help.to_owned())).into())
        };
        if self.flows.is_empty() || self.flows.len() > MOST_FLOWS {
            let help = "`sinnet sim` runs any number";
            return error(0, "name", format!("the laboratory runs 1 to {MOST_FLOWS} flows"), help);
        }
        if self.is_timed() && self.warm_up >= self.duration {
            return error(0, "name", "nothing is left to measure after the warm-up".to_owned(), "a longer `duration`");
        }
        let is_crowd = matches!(self.flow().kind, Kind::ParallelDownloads(_));
        if is_crowd && !self.warm_up.is_zero() {
            let message = "downloads of a size are measured from the first byte to the last";
            let help = "leave `warm_up` out, or `count` and `amount`".to_owned();
            return Err(scenario.error_at_top("warm_up", message, Some(help)).into());
        }
        let main = self.flow();
        for (index, flow) in self.flows.iter().enumerate() {
            if flow.protocol == Protocol::Sinnet && self.paths_of(index) != self.paths() {
                let message = format!("the laboratory has one association, that of \"{}\"", main.name);
                return error(index, "paths", message, "give all flows of \"sinnet\" the same ends and paths");
            }
            if flow.protocol == Protocol::Sinnet && flow.rates_configured != main.rates_configured {
                let message = format!("\"{}\", of the same association, says otherwise", main.name);
                return error(index, "rates", message, "give all flows of \"sinnet\" the same `rates`");
            }
            if flow.protocol == Protocol::Sinnet && flow.path_congestion != main.path_congestion {
                let message = format!("\"{}\", of the same association, says otherwise", main.name);
                return error(index, "path_congestion", message, "give all flows of \"sinnet\" the same");
            }
            if flow.protocol == Protocol::Sinnet && flow.scheduler != main.scheduler {
                let message = format!("\"{}\", of the same association, has \"{}\"", main.name, main.scheduler);
                return error(index, "scheduler", message, "give all flows of \"sinnet\" the same `scheduler`");
            }
            let ways = self.paths_of(index).iter().flat_map(|path| [&path.there, &path.back]);
            if flow.rates_configured && ways.clone().any(|way| self.rate(way).is_none()) {
                let message = "a path without a rate cannot be configured by one".to_owned();
                return error(
                    index,
                    "rates",
                    message,
                    "give a link of each path a `rate`, or write rates = \"measured\"",
                );
            }
            if self.is_timed() && flow.size.is_some() && !matches!(flow.kind, Kind::ParallelDownloads(_)) {
                let message = "what is measured for a time has more to fetch than it can".to_owned();
                return error(index, "amount", message, "leave `amount` out");
            }
            if matches!(flow.kind, Kind::ParallelDownloads(_)) && self.flows.len() > 1 {
                let message = format!("the downloads of \"{}\" are to come to their end", flow.name);
                return error(index, "count", message, "leave out the other flows, or `amount`");
            }
            let rival = |other: &&FlowPlan| {
                let both = [flow, other].iter().all(|flow| flow.kind.is_download());
                both && other.from == flow.from && other.congestion != flow.congestion
            };
            if let Some(other) = self.flows.iter().find(rival) {
                let message = format!("\"{}\" sends from the same host with \"{}\"", other.name, other.congestion);
                return error(index, "congestion", message, "give one of the two a host of its own");
            }
        }
        Ok(())
    }
}

/// What carries a flow, if the laboratory can do all that it asks for.
fn check(scenario: &Scenario, index: usize, flow: &FlowSpec) -> Result<Protocol, LabError> {
    let error = |key: &str, message: &str, help: &str| {
        Err(scenario.error_in_flow(index, key, message, Some(help.to_owned())).into())
    };
    if let Err(unfit) = scheduler(flow) {
        let whose = if flow.sinnet.rates == Rates::Configured { "with rates = \"configured\" " } else { "" };
        let near = match &unfit {
            UnfitScheduler::Unknown { name } => text::did_you_mean(name, Scheduler::NAMES.iter().copied()),
            _ => None,
        };
        let known = || format!("{whose}there are {}", text::alternatives(Scheduler::fitting_names(has(flow))));
        let help = near.unwrap_or_else(known);
        return error("scheduler", &unfit.to_string(), &help);
    }
    if let Some(name) = &flow.sinnet.path_congestion {
        if flow.sinnet.rates == Rates::Configured {
            let help = "leave it out, or write rates = \"measured\"";
            return error("path_congestion", "paths of configured rates have no windows", help);
        }
        if let Err(unfit) = Host::Tunnel.rule(name) {
            let rules = Host::Tunnel.rules();
            let known = || format!("there is {}", text::alternatives(rules.iter().copied()));
            let help = text::did_you_mean(name, rules.iter().copied()).unwrap_or_else(known);
            return error("path_congestion", &unfit.to_string(), &help);
        }
    }
    match kind(flow) {
        Kind::ParallelDownloads(_) if flow.protocol == scenario::Protocol::Mptcp => {
            return error("count", "many downloads to their end go by \"sinnet\" and \"tcp\"", "leave `amount` out");
        }
        Kind::ConstantBitRate { bytes, .. } if bytes < SMALLEST_CALL => {
            return error("packet_size", "headers and a number need 56 bytes", "for example packet_size = 200");
        }
        _ => {}
    }
    match flow.protocol {
        scenario::Protocol::Sinnet => Ok(Protocol::Sinnet),
        scenario::Protocol::Tcp => Ok(Protocol::Tcp),
        scenario::Protocol::Mptcp => Ok(Protocol::Mptcp),
        // The scenario was checked for the engine.
        _ => error("protocol", "the laboratory has no programs for this protocol", "protocol = \"sinnet\""),
    }
}

/// By what the hosts of a flow choose the path of a packet.
fn scheduler(flow: &FlowSpec) -> Result<Scheduler, UnfitScheduler> {
    flow.scheduler.as_deref().map_or_else(|| Ok(Scheduler::default()), |name| Scheduler::fitting(name, has(flow)))
}

/// What hosts have for a scheduler.
fn has(flow: &FlowSpec) -> Needs {
    match flow.sinnet.rates {
        Rates::Configured => Needs::OF_CONFIGURED_RATES,
        _ => Needs::ALL,
    }
}

/// When a flow starts, from zero. One that starts with another has that one's draw.
fn start(scenario: &Scenario, flow: &FlowSpec, name: &str, streams: &Streams) -> Duration {
    let leader = flow.start_with.and_then(|leader| scenario.flows.get(leader));
    let timed = leader.map_or(name, |leader| &leader.name);
    flow.start.draw(&mut streams.stream(&format!("times of flow {timed}"))).saturating_since(Instant::ZERO)
}

fn kind(flow: &FlowSpec) -> Kind {
    match flow.sinnet.inside {
        Inside::Tcp if flow.count > 1 && flow.amount.is_some() => Kind::ParallelDownloads(flow.count),
        Inside::Tcp => Kind::Download,
        Inside::Udp => {
            let bytes = flow.packet_size.unwrap_or(CALL);
            let interval = Duration::of_transmission(bytes.into(), flow.rate.unwrap_or(1).max(1));
            Kind::ConstantBitRate { bytes, interval }
        }
        Inside::Ping => Kind::Ping { interval: PING },
    }
}

impl Kind {
    /// Whether it fetches files, and comes to an end.
    pub(crate) fn is_download(self) -> bool {
        matches!(self, Self::Download | Self::ParallelDownloads(_))
    }

    /// Connections.
    pub(crate) fn connections(self) -> u32 {
        if let Self::ParallelDownloads(count) = self { count } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use scenario::Document;
    use scenario::schema::{Engine, Table, Variant};

    use super::*;

    const VARIANTS: [(Variant, &str); 5] = [
        (Variant::Tcp, "protocol = \"tcp\""),
        (Variant::Mptcp, "protocol = \"mptcp\""),
        (Variant::SinnetTcp, "protocol = \"sinnet\""),
        (Variant::SinnetUdp, "protocol = \"sinnet\"\ninside = \"udp\"\nrate = \"1Mbit/s\""),
        (Variant::SinnetPing, "protocol = \"sinnet\"\ninside = \"ping\""),
    ];

    /// A scenario with two access links, and one flow or, with a leader, two.
    fn plan(flow: &str, leader: bool, settings: &[&str]) -> Result<Plan, String> {
        let paths = "paths = [[\"b\", \"r1\", \"a\"], [\"b\", \"r2\", \"a\"]]";
        let paths = if flow.contains("\"tcp\"") { "paths = [[\"b\", \"r1\", \"a\"]]" } else { paths };
        let first = format!(
            "[[flow]]\nname = \"leader\"\nfrom = \"b\"\nto = \"a\"\n{flow}\n{paths}\nstart = [\"2s\", \"4s\"]\n"
        );
        let text = format!(
            "name = \"n\"\nduration = \"9s\"\n{}[[flow]]\nname = \"f\"\nfrom = \"b\"\nto = \"a\"\n{flow}\n{paths}\n{}",
            ["r1", "r2"].map(|router| format!("[[link]]\nbetween = [\"a\", \"{router}\"]\nrate = \"8Mbit/s\"\n[[link]]\nbetween = [\"{router}\", \"b\"]\n")).concat(),
            if leader { first.as_str() } else { "" },
        );
        let mut document = Document::parse(&text, "file.toml").map_err(|error| error.to_string())?;
        for setting in settings {
            document.set(setting).map_err(|error| error.to_string())?;
        }
        let scenario = document.scenario().map_err(|error| error.to_string())?;
        scenario.check_for(Engine::Lab).map_err(|error| error.to_string())?;
        Plan::new(&scenario).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_honoured_changes_what_is_planned() {
        let mut seen = 0;
        for key in Table::Flow.keys() {
            for (variant, flow) in VARIANTS {
                if !key.honoured_by(Some(Engine::Lab)).has(variant) {
                    continue;
                }
                let (value, leader) = match key.name {
                    // They say what the flow is, or lead elsewhere.
                    "from" | "to" | "paths" | "protocol" | "inside" => continue,
                    "name" => ("\"other\"", false),
                    "start_with" => ("\"leader\"", true),
                    _ => (key.example, false),
                };
                let setting = format!("flow.f.{}={value}", key.name);
                let [before, after] = [&[][..], &[setting.as_str()]]
                    .map(|settings| plan(flow, leader, settings).unwrap_or_else(|error| panic!("{setting}: {error}")));
                assert_ne!(format!("{before:?}"), format!("{after:?}"), "{setting} of {}", variant.name());
                seen += 1;
            }
        }
        assert!(seen > 25, "{seen}");
    }

    #[test]
    fn the_scenarios_of_the_repository_are_planned() {
        let mut seen = 0;
        for folder in ["lab", "lab/bench", "field"] {
            let folder = format!("{}/../../scenarios/{folder}", env!("CARGO_MANIFEST_DIR"));
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let scenario =
                    scenario::parse(&text, &path.to_string_lossy()).unwrap_or_else(|error| panic!("{error}"));
                for engine in [Engine::Lab, Engine::LabVirtual] {
                    scenario.check_for(engine).unwrap_or_else(|error| panic!("{error}"));
                }
                let plan = Plan::new(&scenario).unwrap_or_else(|error| panic!("{error}"));
                // What is shown, and measured beside others, is what hosts do unless configured otherwise.
                assert!(plan.flows.iter().all(|flow| !flow.rates_configured), "{}", path.display());
                seen += 1;
            }
        }
        assert_eq!(seen, 46);
    }

    #[test]
    fn who_starts_with_another_has_its_draw() {
        for seed in 1..20 {
            let settings = [&format!("seed={seed}"), "flow.f.start_with=leader"];
            let plan = plan(VARIANTS[2].1, true, &settings).unwrap();
            assert_eq!(plan.flows[0].start, plan.flows[1].start);
            assert!(plan.flows[0].start >= Duration::from_secs(2));
        }
    }

    #[test]
    fn what_would_be_ignored_is_told() {
        let told = |flow: usize, leader, settings: &[&str]| plan(VARIANTS[flow].1, leader, settings).unwrap_err();
        for (error, sentence) in [
            (told(2, false, &["warm_up=1s", "flow.f.amount=1MB"]), "more to fetch than it can"),
            (told(2, true, &["flow.f.amount=1MB"]), "more to fetch than it can"),
            (told(2, true, &["flow.f.rates=configured"]), "says otherwise"),
            (told(2, false, &["flow.f.rates=configured", "link.1.rate=unlimited"]), "without a rate"),
            (told(2, false, &["flow.f.scheduler=blets"]), "no scheduler is called \"blets\""),
            (told(2, false, &["flow.f.scheduler=blets"]), "did you mean \"blest\"?"),
            (told(2, false, &["flow.f.scheduler=quick"]), "there are lowest-rtt, round-robin, weighted, redundant, "),
            (told(2, false, &["flow.f.scheduler=blest", "flow.f.rates=configured"]), "\"blest\" needs windows"),
            (told(2, true, &["flow.f.path_congestion=lia"]), "says otherwise"),
            (told(2, false, &["flow.f.path_congestion=lai"]), "did you mean \"lia\"?"),
            (told(2, false, &["flow.f.path_congestion=lia", "flow.f.rates=configured"]), "have no windows"),
            (told(2, true, &["flow.f.scheduler=blest"]), "of the same association, has \"blest\""),
            (told(2, false, &["flow.f.stop=3s"]), "does not honour `stop` of \"sinnet\""),
            (told(0, false, &["flow.f.ecn=true"]), "`sinnet lab` does not honour `ecn`"),
            (told(0, false, &["flow.f.protocol=udp", "flow.f.rate=1Mbit/s"]), "`sinnet lab` has no \"udp\""),
        ] {
            assert!(error.contains(sentence), "{error}");
        }
    }
}
