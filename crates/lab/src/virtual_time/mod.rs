//! A laboratory in virtual time: the data plane of the daemon and the links of the emulator, to the byte, between simulated TCPs.
//!
//! What is real here: identities, the base exchange, security associations, every packet of ESP, HIP and TCP with its
//! checksums. What is not: kernels (TCP is `transport`'s), programs, sockets and the time that all of these take. The same seed gives the same packets.

mod connection;
mod guest;
mod hosts;
mod numbers;
mod pattern;
mod probe;
mod world;

use std::fs::File;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use clock::{Duration, Instant, Streams};
use congestion::{Host as Runs, InitialWindow, Rule};
use emulator::{Capture, LinkId};
use scenario::Scenario;
use transport::TcpConfig;
use wire::ip::{V4_HEADER, V6_HEADER};

use crate::error::Step;
use crate::guest::Guest;
use crate::interrupt::check;
use crate::measure::{Laboratory, Measured, Run, Transfer, file_size, pairs};
use crate::plan::{FlowPlan, OPENING, Plan, Protocol};
use crate::progress::Progress;
use crate::site::{MTU, capture_file};
use crate::watch::Watch;
use crate::wiring::Wiring;
use crate::{LabError, wireshark};
use connection::Connection;
use probe::{Probe, since_zero};
use world::{Host, Trace, World};

/// Names of congestion control as Linux has them, of which the laboratory has the rules; the first is the usual.
const CONGESTION: [&str; 5] = ["cubic", "reno", "vegas", "bbr", "bbr3"];
/// How long the hosts may take to agree on their paths.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often they are asked.
const ASK: Duration = Duration::from_millis(20);
/// Steps between two looks at what a person sees and wants.
const LOOK: u32 = 2000;

/// Hosts in virtual time, built anew for each run.
pub(crate) struct Virtual<'a> {
    plan: &'a Plan,
    rules: Vec<Rule>,
    directory: Option<&'a Path>,
    /// What downloads in place of the first flow's TCP.
    guest: Option<&'a dyn Guest>,
}

impl<'a> Virtual<'a> {
    /// With a directory for captures and key log, if they are to stay.
    ///
    /// # Errors
    /// Points at what in the scenario happens in real time only.
    pub(crate) fn new(
        plan: &'a Plan,
        scenario: &Scenario,
        directory: Option<&'a Path>,
        guest: Option<&'a dyn Guest>,
    ) -> Result<Self, LabError> {
        for (index, flow) in scenario.flows.iter().enumerate() {
            let refuse = |key: &str, message: String, help: String| {
                Err(scenario.error_in_flow(index, key, message, Some(help)).into())
            };
            let name = flow.congestion.as_deref().unwrap_or(CONGESTION[0]);
            if !CONGESTION.contains(&name) {
                let known = text::alternatives(CONGESTION);
                return refuse(
                    "congestion",
                    format!("\"{name}\" is not there in virtual time"),
                    format!("there is {known}"),
                );
            }
        }
        let rule = |name: &str| {
            Runs::Tcp
                .rule(name)
                .map_err(|unfit| LabError::Program { program: name.to_owned(), message: unfit.to_string() })
        };
        let rules = plan.flows.iter().map(|flow| rule(&flow.congestion)).collect::<Result<_, _>>()?;
        Ok(Self { plan, rules, directory, guest })
    }

    fn build(&self, run: &Run) -> Result<(World, Vec<LinkId>), LabError> {
        let plan = self.plan;
        let kept = self.directory.filter(|_| run.full);
        let Wiring { network, links, routes } =
            Wiring::new(&plan.topology, plan.links.clone(), plan.processing, plan.seed);
        let mut hosts: Vec<Host> = plan.topology.hosts.iter().map(|_| Host { wedge: None }).collect();
        let mut keylog: Option<Box<dyn std::io::Write>> = None;
        if plan.flow().protocol == Protocol::Sinnet {
            if let Some(directory) = kept {
                wireshark::prepare(directory)?;
                let file = File::create(wireshark::keylog_file(directory)).step("writing the key log")?;
                keylog = Some(Box::new(BufWriter::new(file)));
            }
            let [server, client] =
                hosts::pair(plan, &run.paths, Streams::new(plan.seed).stream("identities"), keylog.is_some())?;
            for (index, pair) in [(plan.flow().from, server), (plan.flow().to, client)] {
                if let Some(host) = hosts.get_mut(index) {
                    host.wedge = Some(pair);
                }
            }
        }
        let mut captures = Vec::new();
        for (index, pair) in routes.iter().enumerate() {
            if let Some(directory) = kept {
                let file = capture_file(directory, index);
                // Virtual time begins with that of computers.
                captures.push((*pair, Capture::create(&file, SystemTime::UNIX_EPOCH).step("writing a capture")?));
            }
        }
        let trace = self.directory.map(|directory| {
            let file = directory.join(format!("{}.jsonl", run.name));
            Ok::<_, LabError>(Trace::new(BufWriter::new(File::create(file).step("writing the trace")?)))
        });
        let world = World {
            now: Instant::ZERO,
            network,
            hosts,
            ports: plan.topology.attachments.iter().map(|attachment| attachment.host).collect(),
            connections: Vec::new(),
            guests: Vec::new(),
            probes: Vec::new(),
            captures,
            keylog,
            trace: trace.transpose()?,
        };
        Ok((world, links))
    }
}

impl Virtual<'_> {
    /// The addresses that server and client of a flow use.
    fn addresses(&self, flow: usize, run: &Run, world: &World) -> Option<[IpAddr; 2]> {
        let plan = self.plan.flows.get(flow)?;
        let hit = |host: usize| Some(IpAddr::V6(world.wedge(host)?.hit().address()));
        if plan.protocol == Protocol::Sinnet {
            return Some([hit(plan.from)?, hit(plan.to)?]);
        }
        let path = if flow == 0 { run.paths.first().copied().unwrap_or_default() } else { 0 };
        let path = self.plan.paths_of(flow).get(path)?;
        Some(path.ends.map(|attachment| self.plan.topology.address(attachment)))
    }

    /// The largest packet that the programs of a flow may send, in bytes.
    fn mtu(&self, flow: usize, world: &World) -> u16 {
        if self.plan.flows.get(flow).is_none_or(|flow| flow.protocol != Protocol::Sinnet) {
            return self.plan.least_mtu(MTU);
        }
        let tunnel = world.wedge(self.plan.flow().from).map_or(MTU, wedge::Wedge::tun_mtu);
        // A program here does not hear of the path's MTU later.
        let room = multipath::inner_room(self.plan.least_mtu(MTU)) + V6_HEADER;
        u16::try_from(room).map_or(tunnel, |room| room.min(tunnel))
    }

    /// The TCP of a flow.
    fn tcp(&self, flow: usize, world: &World, size: u64) -> TcpConfig {
        let sinnet = self.plan.flows.get(flow).is_some_and(|flow| flow.protocol == Protocol::Sinnet);
        let (mtu, ip) = (self.mtu(flow, world), if sinnet { V6_HEADER } else { V4_HEADER });
        let rule = self.rules.get(flow).cloned().unwrap_or(TcpConfig::default().rule);
        let mut config = TcpConfig { data: Some(size), ..TcpConfig::linux(rule, mtu.into(), ip as u32) };
        if sinnet {
            config.engine.initial_window = InitialWindow::Packets(wedge::FIRST_WINDOW);
        }
        config
    }

    /// Puts what the flows do into the world, from `zero` on.
    ///
    /// # Errors
    /// When a program that is no part of the laboratory does not start.
    fn populate(&self, world: &mut World, run: &Run, zero: Instant) -> Result<Vec<Part>, LabError> {
        let plan = self.plan;
        let streams = Streams::new(plan.seed);
        world.connections.clear();
        let mut parts = Vec::new();
        for (index, flow) in plan.flows.iter().enumerate() {
            let start = if plan.competes() { zero + flow.start } else { zero };
            let addresses = self.addresses(index, run, world).unwrap_or([IpAddr::V4(Ipv4Addr::UNSPECIFIED); 2]);
            let number = u16::try_from(index).unwrap_or(u16::MAX);
            let inside = if let [IpAddr::V6(from), IpAddr::V6(to)] = addresses { Some([from, to]) } else { None };
            if let Some(probe) = inside.and_then(|ends| Probe::new(number, flow.kind, ends, start)) {
                world.probes.push(probe);
                parts.push(Part::Probe(world.probes.len() - 1));
                continue;
            }
            if let Some(guest) = self.guest.filter(|_| index == 0) {
                let (ends, seed) = (guest::Download::ends(addresses), streams.stream("guest").next_u64());
                let conversation = guest
                    .download(ends, file_size(plan, index, run), seed)
                    .map_err(|message| LabError::Program { program: guest.congestion(), message })?;
                world.guests.push(guest::Download::new(ends, conversation, start, self.mtu(index, world)));
                parts.push(Part::Guest(world.guests.len() - 1));
                continue;
            }
            let first = world.connections.len();
            let config = self.tcp(index, world, file_size(plan, index, run));
            for copy in 0..flow.kind.connections() {
                let start = start + OPENING * copy.into();
                let number = u16::try_from(world.connections.len()).unwrap_or(u16::MAX);
                let copy = if copy == 0 { String::new() } else { format!(".{copy}") };
                let rng = streams.stream(&format!("flow {}{copy}", flow.name));
                world.connections.push(Connection::new(number, addresses, config.clone(), start, rng));
            }
            parts.push(Part::Connections(first..world.connections.len()));
        }
        Ok(parts)
    }

    /// By what a flow's download is sent.
    fn congestion(&self, flow: usize) -> String {
        let guest = self.guest.filter(|_| flow == 0).map(Guest::congestion);
        guest.unwrap_or_else(|| self.plan.flows.get(flow).map_or_else(String::new, |flow| flow.congestion.clone()))
    }

    /// The two hosts exchange a word, as the first connection does, until all paths are there.
    fn associate(&self, world: &mut World, run: &Run) -> Result<(), LabError> {
        let plan = self.plan.flow();
        let Some([server, client]) = self.addresses(0, run, world) else { return Ok(()) };
        let config = TcpConfig { data: Some(1), ..self.tcp(0, world, 1) };
        let rng = Streams::new(self.plan.seed).stream("first word");
        // The client begins, as it does when it asks for a file.
        world.connections = vec![Connection::new(u16::MAX, [client, server], config, world.now, rng)];
        let end = world.now + PATIENCE;
        let mut ask = world.now;
        let mut agreed = false;
        let (from, to, wanted) = (plan.from, plan.to, run.paths.len());
        world.run(end, |world| {
            if world.now < ask {
                return Ok(false);
            }
            ask = world.now + ASK;
            let alive = |host: usize| {
                let status = world.wedge(host).map(|wedge| wedge.status(world.now));
                let peers = status.iter().flat_map(|status| &status.peers);
                peers.flat_map(|peer| &peer.paths).filter(|path| path.alive).count()
            };
            agreed = alive(from) >= wanted && alive(to) >= wanted;
            Ok(agreed && world.connections.iter().all(Connection::is_complete))
        })?;
        match agreed {
            true => Ok(()),
            false => Err(LabError::Timeout {
                what: format!("the two hosts did not agree on {wanted} paths"),
                seconds: PATIENCE.as_nanos() / 1_000_000_000,
            }),
        }
    }
}

impl Laboratory for Virtual<'_> {
    fn measure(&mut self, run: &Run, progress: &mut Progress) -> Result<Measured, LabError> {
        let plan = self.plan;
        let (mut world, links) = self.build(run)?;
        if plan.flow().protocol == Protocol::Sinnet {
            self.associate(&mut world, run)?;
        }
        let zero = world.now;
        if run.full {
            for change in &plan.changes {
                if let Some(link) = links.get(change.link) {
                    world.network.schedule(zero + change.after, *link, change.what);
                }
            }
        }
        let parts = self.populate(&mut world, run, zero)?;
        progress.begin(&run.name, file_size(plan, 0, run));
        let mut steps = 0_u32;
        let mut look = |world: &World| {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(LOOK) {
                progress.at(world.arrived().next().unwrap_or(0));
                check()?;
            }
            Ok::<_, LabError>(())
        };

        if !plan.is_timed() {
            let patience = plan.patience();
            let before = delivered(&world);
            let mut watch = Watch::new(since_zero(zero), 0);
            world.run(zero + patience, |world| {
                look(world)?;
                watch.see(since_zero(world.now), world.arrived().sum());
                Ok(world.is_complete())
            })?;
            let patience = patience.as_nanos() / 1_000_000_000;
            let flows = plan.flows.iter().zip(&parts).enumerate().map(|(index, (flow, part))| {
                let transfer = to_the_end(flow, part, &world, patience)?;
                Ok::<_, LabError>(Transfer { congestion: self.congestion(index), ..transfer })
            });
            let mut flows = flows.collect::<Result<Vec<_>, _>>()?;
            flows.iter_mut().for_each(|transfer| transfer.stall = watch.stall(since_zero(world.now)));
            let path_bytes = difference(&delivered(&world), &before);
            let transits = pairs(world.network.transits());
            world.finish()?;
            return Ok(Measured { flows, path_bytes, transits, late_p99_us: 0 });
        }

        world.run(zero + plan.warm_up, |world| look(world).map(|()| false))?;
        let before = delivered(&world);
        let now = world.now;
        let begun: Vec<u64> = world.connections.iter().map(Connection::arrived).collect();
        let guests_begun: Vec<u64> = world.guests.iter().map(guest::Download::arrived).collect();
        world.restart_stalls();
        world.network.restart_transits();
        world.run(zero + plan.duration, |world| look(world).map(|()| false))?;
        let seconds = (plan.duration - plan.warm_up).as_secs_f64();
        let flows = parts.iter().enumerate().map(|(flow, part)| match part {
            Part::Guest(index) => {
                let guest = world.guests.get(*index)?;
                Some(Transfer {
                    sha256_equal: guest.is_identical(),
                    stall: since_zero(Instant::ZERO + guest.stall(world.now)),
                    congestion: self.congestion(flow),
                    ..transfer(guest.arrived() - guests_begun.get(*index)?, seconds)
                })
            }
            Part::Connections(range) => {
                let index = range.start;
                let connection = world.connections.get(index)?;
                let bytes = connection.arrived() - begun.get(index)?;
                Some(Transfer {
                    sha256_equal: connection.is_identical(),
                    stall: since_zero(Instant::ZERO + connection.stall(world.now)),
                    congestion: self.congestion(flow),
                    ..transfer(bytes, seconds)
                })
            }
            Part::Probe(index) => {
                let datagrams = world.probes.get(*index)?.datagrams();
                let [from, to] = [now, world.now].map(since_zero);
                Some(Transfer {
                    stall: datagrams.stall(from, to),
                    datagrams: Some(datagrams.report(from, to)),
                    ..transfer(datagrams.bytes_between(from, to), seconds)
                })
            }
        });
        let flows = flows.flatten().collect();
        let path_bytes = difference(&delivered(&world), &before);
        let transits = pairs(world.network.transits());
        world.finish()?;
        Ok(Measured { flows, path_bytes, transits, late_p99_us: 0 })
    }
}

/// What belongs to a flow.
enum Part {
    /// These of the world's connections.
    Connections(Range<usize>),
    /// This of the downloads by other programs.
    Guest(usize),
    /// This of the world's probes.
    Probe(usize),
}

/// A transfer of so many bytes in this time, of which nothing else is known.
fn transfer(bytes: u64, seconds: f64) -> Transfer {
    Transfer {
        mbps: bytes as f64 * 8.0 / seconds.max(f64::MIN_POSITIVE) / 1e6,
        bytes,
        seconds,
        sha256_equal: true,
        stall: std::time::Duration::ZERO,
        congestion: String::new(),
        complete: 0,
        datagrams: None,
    }
}

/// What the downloads of a flow gave. Of one that there is alone, nothing but all is good enough.
fn to_the_end(flow: &FlowPlan, part: &Part, world: &World, patience: u64) -> Result<Transfer, LabError> {
    if let Part::Guest(index) = part
        && let Some(guest) = world.guests.get(*index)
    {
        if !guest.is_complete() {
            let what = format!("{} bytes of {} arrived, not all", guest.arrived(), flow.name);
            return Err(LabError::Timeout { what, seconds: patience });
        }
        let sha256_equal = guest.is_identical();
        return Ok(Transfer { sha256_equal, complete: 1, ..transfer(guest.arrived(), guest.seconds()) });
    }
    let Part::Connections(range) = part else { return Ok(transfer(0, 0.0)) };
    let connections = world.connections.get(range.clone()).unwrap_or_default();
    if let [connection] = connections
        && !connection.is_complete()
    {
        let what = format!("{} bytes of {} arrived, not all", connection.arrived(), flow.name);
        return Err(LabError::Timeout { what, seconds: patience });
    }
    let first = connections.iter().filter_map(Connection::first).min();
    let last = connections.iter().map(Connection::last).max();
    let seconds = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    let whole = connections.iter().filter(|connection| connection.is_complete() && connection.is_identical());
    let complete = whole.count();
    Ok(Transfer {
        sha256_equal: complete == connections.len(),
        complete: u32::try_from(complete).unwrap_or(u32::MAX),
        ..transfer(connections.iter().map(Connection::arrived).sum(), seconds)
    })
}

/// Bytes that arrived so far from the server of each distinct path.
fn delivered(world: &World) -> Vec<u64> {
    // Routes come in pairs, there and back.
    world.network.delivered_bytes().step_by(2).collect()
}

fn difference(now: &[u64], before: &[u64]) -> Vec<u64> {
    now.iter().zip(before).map(|(now, before)| now - before).collect()
}
