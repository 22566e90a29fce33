//! Sinnet on the hosts of a laboratory: identities, configurations, daemons.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use daemon::keys::Algorithm;

use scheduler::Scheduler;

use crate::error::Step;
use crate::interrupt::pause;
use crate::plan::Plan;
use crate::site::Site;
use crate::{LabError, Program, Running};

/// The identities of the two hosts of a flow. They stay the same over all runs of a scenario.
pub(crate) struct Identities {
    ends: [Identity; 2],
}

struct Identity {
    key: PathBuf,
    hit: String,
}

/// The two daemons of a flow.
pub(crate) struct Daemons {
    ends: [Daemon; 2],
}

struct Daemon {
    control: PathBuf,
    log: PathBuf,
    program: Running,
}

/// Where things are.
#[derive(Clone, Copy)]
pub(crate) struct Files<'a> {
    /// The program `sinnet`.
    pub(crate) executable: &'a Path,
    /// The directory of what is of use only now.
    pub(crate) scratch: &'a Path,
    /// The directory of configurations and logs.
    pub(crate) logs: &'a Path,
    /// The file that both daemons write their keys to.
    pub(crate) keylog: Option<&'a Path>,
}

/// The daemons' TUN device, as they call it themselves.
const DEVICE: &str = "sinnet0";
/// How long the daemons may take to be there, in seconds.
const PATIENCE: u64 = 15;

impl Identities {
    /// The identity of the client as an address.
    pub(crate) fn client(&self) -> Result<Ipv6Addr, LabError> {
        let invalid = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        self.ends[1].hit.parse().map_err(invalid).step("reading a host identity")
    }

    /// New identities for the server and the client of `plan`.
    pub(crate) fn generate(directory: &Path) -> Result<Self, LabError> {
        let make = |name: &str| {
            let key = directory.join(format!("{name}.pem"));
            let hit = daemon::keys::generate(&key, Algorithm::EcdsaP384, true).map_err(|error| LabError::Program {
                program: "making a host identity".into(),
                message: error.to_string(),
            })?;
            Ok::<_, LabError>(Identity { key, hit: hit.to_string() })
        };
        Ok(Self { ends: [make("server")?, make("client")?] })
    }
}

impl Daemons {
    /// Starts the daemons for the paths of `plan` whose numbers are in `paths`, and gives both hosts the names.
    pub(crate) fn start(
        plan: &Plan,
        site: &Site,
        identities: &Identities,
        paths: &[usize],
        files: &Files<'_>,
    ) -> Result<Self, LabError> {
        let Files { executable, scratch, logs, keylog } = *files;
        let start = |end: usize| {
            let (name, host) = (end_name(end), site.host(host_of(plan, end))?);
            let file = logs.join(format!("{name}.toml"));
            fs::write(&file, configuration(plan, identities, paths, end)).step("writing a daemon's configuration")?;
            let control = scratch.join(format!("{name}.sock"));
            let log = logs.join(format!("{name}.log"));
            let arguments = ["up".into(), "-c".into(), text(&file), "--control".into(), text(&control)];
            let keylog = keylog.map(|keylog| ["--esp-keylog".to_owned(), text(keylog)]);
            let program =
                Program::new(text(executable)).args(arguments).args(keylog.into_iter().flatten()).log_to(&log);
            host.resolve_names_at(IpAddr::V4(lsi(end)), scratch)?;
            Ok::<_, LabError>(Daemon { control, log, program: host.spawn(&program)? })
        };
        let mut daemons = Self { ends: [start(0)?, start(1)?] };
        daemons.wait("the Sinnet daemons were not ready", |status| status.ready)?;
        // The server's kernel takes the congestion control from the route to the client, which says more than that.
        let server = site.host(plan.flow().from)?;
        let shown = Program::new("ip").args(["-6", "route", "show", "dev", DEVICE, "proto", "static"]);
        let routes = server.output(&shown)?;
        let congestion = &plan.flow().congestion;
        let chosen = |route| format!("-6 route replace {route} dev {DEVICE} proto static congctl {congestion}");
        server.ip(&routes.lines().map(chosen).collect::<Vec<_>>())?;
        Ok(daemons)
    }

    /// Waits until both ends use `count` paths.
    pub(crate) fn wait_for_paths(&mut self, count: usize) -> Result<(), LabError> {
        self.wait(&format!("the two hosts did not agree on {count} paths"), |status| {
            let paths = status.host.peers.first().into_iter().flat_map(|peer| &peer.paths);
            paths.filter(|path| path.alive).count() >= count
        })
    }

    /// What both daemons tell about themselves now, for the files that stay.
    pub(crate) fn save_status(&self, directory: &Path) {
        for (end, daemon) in self.ends.iter().enumerate() {
            let status = daemon::control::status(&daemon.control).ok();
            if let Some(text) = status.and_then(|status| serde_json::to_string_pretty(&status).ok()) {
                // For a person who wants to look deeper; the result does not depend on it.
                let _ = fs::write(directory.join(format!("{}.status.json", end_name(end))), text + "\n");
            }
        }
    }

    fn wait(&mut self, what: &str, holds: impl Fn(&daemon::status::Status) -> bool) -> Result<(), LabError> {
        let step = std::time::Duration::from_millis(20);
        for daemon in &mut self.ends {
            let mut turns = PATIENCE * 50;
            while !daemon::control::status(&daemon.control).is_ok_and(|status| holds(&status)) {
                if daemon.program.has_ended().step("waiting for a daemon")? {
                    let message = format!("it ended: {}", last_lines(&daemon.log));
                    return Err(LabError::Program { program: "sinnet up".into(), message });
                }
                turns -= 1;
                if turns == 0 {
                    let what = format!("{what} (the daemon says: {}),", last_lines(&daemon.log));
                    return Err(LabError::Timeout { what, seconds: PATIENCE });
                }
                pause(step)?;
            }
        }
        Ok(())
    }
}

/// The name under which programs of the client find the server.
pub(crate) fn server_name(plan: &Plan) -> String {
    host_name(plan, 0)
}

fn end_name(end: usize) -> &'static str {
    if end == 0 { "server" } else { "client" }
}

fn host_of(plan: &Plan, end: usize) -> usize {
    if end == 0 { plan.flow().from } else { plan.flow().to }
}

fn host_name(plan: &Plan, end: usize) -> String {
    let name = plan.topology.hosts.get(host_of(plan, end)).map_or("host", String::as_str);
    format!("{}.hip", name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"))
}

/// In the daemon's own default range.
fn lsi(end: usize) -> Ipv4Addr {
    if end == 0 { Ipv4Addr::new(198, 18, 0, 2) } else { Ipv4Addr::new(198, 18, 0, 1) }
}

/// The configuration of the daemon at one end: 0 is the server.
fn configuration(plan: &Plan, identities: &Identities, paths: &[usize], end: usize) -> String {
    let [own, peer] = if end == 0 { [0, 1] } else { [1, 0] };
    let mut text = String::new();
    let mut locators = Vec::new();
    let mut routes = Vec::new();
    let identity = |end: usize| identities.ends.get(end);
    // Writing to a string does not fail.
    let _ =
        writeln!(text, "identity = {}", quoted(&identity(own).map_or_else(String::new, |own| self::text(&own.key))));
    let _ = writeln!(text, "name = {}\nlsi = \"{}\"", quoted(&host_name(plan, own)), lsi(own));
    if plan.flow().rates_configured {
        text.push_str("congestion = \"configured-rates\"\n");
    }
    if let Some(rule) = &plan.flow().path_congestion {
        let _ = writeln!(text, "congestion = {}", quoted(rule));
    }
    if plan.flow().scheduler != Scheduler::default().name() {
        let _ = writeln!(text, "scheduler = \"{}\"", plan.flow().scheduler);
    }
    let mut named: Vec<(usize, String)> = Vec::new();
    for (number, path) in plan.paths().iter().enumerate().filter(|(number, _)| paths.contains(number)) {
        let [from, to] = path.ends;
        let [local, remote] = if end == 0 { [from, to] } else { [to, from] };
        let out = if end == 0 { &path.there } else { &path.back };
        let rate = plan.told_rate(out).map(|rate| format!("rate = \"{rate}bit/s\""));
        let delay = format!("delay = \"{}us\"", plan.delay(out).as_micros());
        let name = match named.iter().find(|(attachment, _)| *attachment == local) {
            Some((_, name)) => name.clone(),
            None => {
                let name = format!("path{}", number + 1);
                let device = plan.topology.attachments.get(local).map_or("", |attachment| attachment.device.as_str());
                let address = plan.topology.address(local);
                let _ =
                    write!(text, "\n[[path]]\nname = \"{name}\"\naddress = \"{address}\"\ninterface = \"{device}\"\n");
                rate.iter().chain([&delay]).for_each(|line| {
                    let _ = writeln!(text, "{line}");
                });
                named.push((local, name.clone()));
                name
            }
        };
        let remote = plan.topology.address(remote);
        if !locators.contains(&format!("\"{remote}\"")) {
            locators.push(format!("\"{remote}\""));
        }
        let known: Vec<&str> = rate.iter().chain([&delay]).map(String::as_str).collect();
        routes.push(format!("{{ from = \"{name}\", to = \"{remote}\", {} }}", known.join(", ")));
    }
    let hit = identity(peer).map_or("", |peer| peer.hit.as_str());
    let _ = write!(
        text,
        "\n[[peer]]\nname = {}\nhit = \"{hit}\"\nlsi = \"{}\"\n",
        quoted(&host_name(plan, peer)),
        lsi(peer)
    );
    let _ = write!(text, "locators = [{}]\nroutes = [{}]\n", locators.join(", "), routes.join(", "));
    text
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn quoted(text: &str) -> String {
    // TOML's basic strings are JSON's, but for escapes that do not occur in names and paths.
    serde_json::Value::from(text).to_string()
}

fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}
