//! The battleground: hosts on one Ethernet, each a namespace without a name, and the daemons on two or three of them.
//! Everything ends with the process, however it ends.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hip::identity::HostIdentity;
use lab::{Namespace, Program, Running};
use serde_json::Value;
use tempfile::TempDir;
use wire::Hit;

use crate::Failure;
use crate::clockwork::{now, pause};

/// The hosts, in the order of the last byte of their addresses.
const HOSTS: [(&str, u8); 5] = [("A", 1), ("B", 2), ("M", 3), ("V", 9), ("X", 66)];

/// What can be different from one battleground to another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// Access links of A and of B: 1, or 2 on Ethernets of their own.
    pub(crate) second_link: bool,
    /// M runs a daemon too, and is A's peer.
    pub(crate) third_daemon: bool,
    /// A has a peer that is nowhere, by this HIT.
    pub(crate) absent_peer: Option<Hit>,
    /// B does not know where A is.
    pub(crate) client_only_knows: bool,
    /// More lines at the beginning of both configurations.
    pub(crate) settings: String,
}

/// Hosts on one Ethernet: A and B are good, X is not, and is the default router of all others.
pub(crate) struct Ground {
    // Daemons end before the hosts that they run on, and the hosts before the directory.
    daemons: BTreeMap<&'static str, Daemon>,
    hosts: BTreeMap<&'static str, Namespace>,
    pub(crate) switch: Namespace,
    pub(crate) directory: TempDir,
    plan: Plan,
    sinnet: PathBuf,
    pub(crate) hits: BTreeMap<&'static str, Hit>,
}

/// A daemon that runs.
pub(crate) struct Daemon {
    running: Running,
    pub(crate) pid: u32,
    control: PathBuf,
}

/// The address of a host on the first Ethernet.
pub(crate) fn address(host: &str) -> Ipv4Addr {
    let last = HOSTS.iter().find(|(name, _)| *name == host).map_or(250, |(_, last)| *last);
    Ipv4Addr::new(10, 77, 0, last)
}

impl Ground {
    /// Makes the hosts and their keys; no daemon yet.
    pub(crate) fn new(sinnet: &Path, plan: Plan) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("hostile-").tempdir()?;
        // A daemon that gives its rights up has to reach its files.
        fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let switch = Namespace::create("switch")?;
        let mut hosts = BTreeMap::new();
        for (name, _) in HOSTS {
            hosts.insert(name, Namespace::create(name)?);
        }
        let mut ground = Self {
            daemons: BTreeMap::new(),
            hosts,
            switch,
            directory,
            plan,
            sinnet: sinnet.to_owned(),
            hits: BTreeMap::new(),
        };
        ground.wire()?;
        for host in ["A", "B", "M"] {
            let file = ground.path(&format!("{host}.pem"));
            let made = Command::new(&ground.sinnet).args(["keygen", "--out"]).arg(&file).output()?;
            if !made.status.success() {
                return Err(String::from_utf8_lossy(&made.stderr).into());
            }
            let hit = ground.identity(host)?.hit();
            ground.hits.insert(host, hit);
        }
        Ok(ground)
    }

    /// The Ethernets and the cables to them.
    fn wire(&self) -> Result<(), Failure> {
        let bridges = if self.plan.second_link { 2 } else { 1 };
        for bridge in 0..bridges {
            self.switch.ip(&[format!("link add br{bridge} type bridge"), format!("link set br{bridge} up")])?;
        }
        for (name, last) in HOSTS {
            let links = if ["A", "B"].contains(&name) { bridges } else { 1 };
            let host = self.host(name)?;
            let place = host.run(|| fs::read_link("/proc/thread-self"))??;
            for link in 0..links {
                let end = format!("p{name}{link}");
                self.switch.ip(&[
                    format!("link add {end} type veth peer name eth{link} netns /proc/{}/ns/net", place.display()),
                    format!("link set {end} master br{link}"),
                    format!("link set {end} up"),
                ])?;
                host.ip(&[
                    format!("link set eth{link} up"),
                    format!("addr add 10.{}.0.{last}/24 dev eth{link}", 77 + link),
                    format!("addr add fd77:{link}::{last}/64 dev eth{link} nodad"),
                ])?;
            }
            if name != "X" {
                host.ip(&[
                    "route add default via 10.77.0.66".to_owned(),
                    "route add default via fd77:0::66".to_owned(),
                ])?;
            }
        }
        Ok(())
    }

    /// A host by its letter.
    pub(crate) fn host(&self, name: &str) -> Result<&Namespace, Failure> {
        self.hosts.get(name).ok_or_else(|| format!("there is no host {name}").into())
    }

    /// A file of this battleground.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The private key of a host.
    pub(crate) fn identity(&self, host: &str) -> Result<HostIdentity, Failure> {
        Ok(HostIdentity::from_pem(&fs::read_to_string(self.path(&format!("{host}.pem")))?)?)
    }

    /// The HIT of a host.
    pub(crate) fn hit(&self, host: &str) -> Result<Hit, Failure> {
        self.hits.get(host).copied().ok_or_else(|| format!("host {host} has no identity").into())
    }

    /// A host's HIT as an address.
    pub(crate) fn hit_address(&self, host: &str) -> Result<Ipv6Addr, Failure> {
        Ok(self.hit(host)?.address())
    }

    fn addresses(&self, host: &str) -> Vec<String> {
        let mut addresses = vec![address(host).to_string()];
        if self.plan.second_link && host != "M" {
            addresses.push(addresses.concat().replace("10.77", "10.78"));
        }
        addresses
    }

    fn configure(&self, host: &'static str) -> Result<PathBuf, Failure> {
        let mut text = format!(
            "identity = \"{host}.pem\"\nname = \"{}.hip\"\ncontrol = \"{}\"\n{}\n[dns]\nenabled = false\n",
            host.to_lowercase(),
            self.path(&format!("{host}.sock")).display(),
            self.plan.settings
        );
        for (number, address) in self.addresses(host).iter().enumerate() {
            text += &format!("[[path]]\nname = \"p{number}\"\naddress = \"{address}\"\n");
        }
        let peers: &[&str] = match (host, self.plan.third_daemon) {
            ("A", true) => &["B", "M"],
            ("A", false) => &["B"],
            _ => &["A"],
        };
        for &peer in peers {
            let unknown = self.plan.client_only_knows && host == "B";
            let locators = if unknown { "[\"10.77.0.200\"]".to_owned() } else { format!("{:?}", self.addresses(peer)) };
            let name = peer.to_lowercase();
            text += &format!("[[peer]]\nname = \"{name}.hip\"\nhit = \"{}\"\nlocators = {locators}\n", self.hit(peer)?);
        }
        if let Some(hit) = self.plan.absent_peer.filter(|_| host == "A") {
            text += &format!("[[peer]]\nname = \"c.hip\"\nhit = \"{hit}\"\nlocators = [\"10.77.0.99\"]\n");
        }
        let file = self.path(&format!("{host}.toml"));
        fs::write(&file, text)?;
        Ok(file)
    }

    /// Starts a host's daemon; it is ready when this returns.
    pub(crate) fn start(&mut self, host: &'static str) -> Result<(), Failure> {
        self.launch(host)?;
        for _ in 0..400 {
            if self.status(host).is_ok() {
                return Ok(());
            }
            if self.ended(host) {
                return Err(format!("the daemon of {host} ended: {}", self.log(host)).into());
            }
            pause(Duration::from_millis(25))?;
        }
        Err(format!("the daemon of {host} is not ready: {}", self.log(host)).into())
    }

    /// Starts a host's daemon and does not wait.
    pub(crate) fn launch(&mut self, host: &'static str) -> Result<(), Failure> {
        let file = self.configure(host)?;
        let program = Program::new(self.sinnet.to_string_lossy())
            .args(["up".to_owned(), "-c".to_owned(), file.to_string_lossy().into_owned()])
            .log_to(&self.path(&format!("{host}.log")));
        let running = self.host(host)?.spawn(&program)?;
        let pid = running.id().ok_or("a program without a number")?;
        let daemon = Daemon { running, pid, control: self.path(&format!("{host}.sock")) };
        self.daemons.insert(host, daemon);
        Ok(())
    }

    /// The daemons of A and B, and of M where it has one.
    pub(crate) fn start_all(&mut self) -> Result<(), Failure> {
        self.start("B")?;
        if self.plan.third_daemon {
            self.start("M")?;
        }
        self.start("A")
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, host: &str) {
        // What runs is killed when it is dropped.
        self.daemons.remove(host);
    }

    /// Whether a host's daemon has ended by itself.
    pub(crate) fn ended(&mut self, host: &str) -> bool {
        self.daemons.get_mut(host).is_none_or(|daemon| daemon.running.has_ended().unwrap_or(true))
    }

    /// What a host's daemon wrote.
    pub(crate) fn log(&self, host: &str) -> String {
        fs::read_to_string(self.path(&format!("{host}.log"))).unwrap_or_default()
    }

    /// What `sinnet status --json` tells.
    pub(crate) fn status(&self, host: &str) -> Result<Value, Failure> {
        let control = self.path(&format!("{host}.sock"));
        let told = Command::new("timeout")
            .arg("5")
            .arg(&self.sinnet)
            .args(["status", "--json", "--control"])
            .arg(control)
            .output()?;
        if !told.status.success() {
            return Err(String::from_utf8_lossy(&told.stderr).into());
        }
        Ok(serde_json::from_slice(&told.stdout)?)
    }

    /// Ends a host's daemon as a user does.
    pub(crate) fn down(&self, host: &str) -> Result<(), Failure> {
        Command::new("timeout")
            .arg("5")
            .arg(&self.sinnet)
            .args(["down", "--control"])
            .arg(self.path(&format!("{host}.sock")))
            .output()?;
        Ok(())
    }

    /// The control socket of a host's daemon, and its process.
    pub(crate) fn daemon(&self, host: &str) -> Result<(&Path, u32), Failure> {
        let daemon = self.daemons.get(host).ok_or_else(|| format!("no daemon runs on {host}"))?;
        Ok((&daemon.control, daemon.pid))
    }

    /// Memory in kB and processor time in seconds of a host's daemon.
    pub(crate) fn usage(&self, host: &str) -> Usage {
        self.daemons.get(host).map_or_else(Usage::default, |daemon| Usage::of(daemon.pid))
    }

    /// Waits until A has an association with B and `paths` paths; something is sent to bring it up.
    pub(crate) fn associate(&self, paths: usize) -> Result<(), Failure> {
        let begin = now();
        while begin.elapsed() < Duration::from_secs(15) {
            crate::load::nudge(self, "A", "B")?;
            pause(Duration::from_millis(200))?;
            let status = self.status("A")?;
            let up = status["peers"][0]["paths"].as_array().is_some_and(|list| {
                list.iter().filter(|path| path["alive"].as_bool().unwrap_or(false)).count() >= paths
            });
            if up {
                return Ok(());
            }
        }
        Err(format!("no association within 15 s\n{}\n{}", self.log("A"), self.log("B")).into())
    }
}

/// What a process takes of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Resident memory, kB.
    pub(crate) rss: u64,
    /// Processor time so far, seconds.
    pub(crate) seconds: f64,
    /// Open file descriptors.
    pub(crate) files: usize,
}

impl Usage {
    /// As proc(5) tells; zero for a process that is gone.
    pub(crate) fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let rss = rss.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // utime and stime are the 14th and 15th field, counted from before the name, which ends with a bracket.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        let files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        Self { rss, seconds: (ticks(11) + ticks(12)) / 100.0, files }
    }
}
