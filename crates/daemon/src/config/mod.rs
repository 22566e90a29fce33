//! The configuration file: a TOML document, read strictly. An unknown key is an error, because a misspelt one would
//! otherwise silently do nothing. Every error points at its line and column and says what would be right.
//!
//! ```toml
//! identity = "a.pem"
//!
//! [[peer]]
//! name = "b.hip"
//! hit = "2001:20::1"
//! locators = ["198.51.100.7"]
//! ```
//!
//! [`KEYS`] has a row for each key; `sinnet help config` and the JSON schema are made from it.

mod accept;
mod dns;
mod identities;
mod keys;
mod lsis;
mod policies;
mod sections;
mod units;

use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clock::Duration;
use hip::dh::Group;
use hip::esp::EspSuite;
use hip::identity::{HostIdentity, PublicIdentity};
use scheduler::Scheduler;
use text::Diagnostic;
use text::reader::At;
use text::toml::Place;
use wire::{Hit, Lsi};

use crate::senders::Senders;

pub use accept::AcceptConfig;
pub use identities::IdentityConfig;
pub use keys::{KEYS, Key, Type, json_schema};
pub use lsis::LsiRange;
pub use policies::PolicyConfig;
pub(crate) use sections::UNKNOWN_DELAY;

/// A configuration that makes sense in itself; whether its addresses are this host's is seen when the daemon starts.
#[derive(Clone, Debug)]
pub struct Config {
    /// This host's own name, if it has one.
    pub name: Option<String>,
    /// What this host is beside its first identity.
    pub identities: Vec<IdentityConfig>,
    /// Where LSIs come from.
    pub lsi_range: LsiRange,
    /// This host's own LSI, if it is not to follow from the HIT.
    pub lsi: Option<Lsi>,
    /// Where the control socket shall be.
    pub control: Option<PathBuf>,
    /// The group whose members may ask for the status.
    pub control_group: Option<String>,
    /// Every user of this machine may ask for the status.
    pub control_everyone: bool,
    /// The user to become once all is set up.
    pub user: Option<String>,
    /// Where metrics shall be told.
    pub metrics: Option<SocketAddr>,
    /// How much is sent towards peers that are Sinnet too.
    pub congestion: Congestion,
    /// Which path a packet takes.
    pub scheduler: Scheduler,
    /// The TUN device's name.
    pub device: String,
    /// Whether others' packets may be forwarded into and out of it.
    pub forward: bool,
    /// Whether a packet filter keeps cleartext from speaking for identities.
    pub firewall: bool,
    /// The access links; where there are none, they are found.
    pub paths: Vec<PathConfig>,
    /// How they are found.
    pub interfaces: InterfacesConfig,
    /// The hosts that may be talked to.
    pub peers: Vec<PeerConfig>,
    /// Those of them whose HITs are not known yet; it is the null one here.
    pub unknown: Vec<PeerConfig>,
    /// The file of HITs that were found out; relative to the configuration file.
    pub known_hits: PathBuf,
    /// This host is a rendezvous server.
    pub rendezvous: Option<RendezvousConfig>,
    /// Who may come that is no peer.
    pub accept: Option<AcceptConfig>,
    /// The LSIs of guests, once the daemon has set them aside.
    pub guest_pool: Vec<Lsi>,
    /// What is to hold for some flows.
    pub policies: Vec<PolicyConfig>,
    /// Whom they tell apart, once the daemon has looked for them.
    pub(crate) senders: Senders,
    /// ESP suites in order of preference.
    pub esp_suites: Vec<EspSuite>,
    /// How packets travel.
    pub encapsulation: Encapsulation,
    /// This host's UDP port.
    pub port: u16,
    /// A path gets new keys after so many packets sent.
    pub rekey_packets: u32,
    /// Or after so much time, from 10 s to a week.
    pub rekey_interval: Duration,
    /// Diffie-Hellman groups in order of preference.
    pub groups: Vec<Group>,
    /// The difficulty K of the puzzles we set (RFC 7401 §4.1.2).
    pub puzzle_difficulty: u8,
    /// Whether our public key is encrypted where we begin.
    pub encrypt_identity: bool,
    /// Whether and how names are answered for.
    pub dns: DnsConfig,
    identity: At<PathBuf>,
}

/// One access link of this host.
#[derive(Clone, Debug)]
pub struct PathConfig {
    /// What to call it.
    pub name: String,
    /// Its address; where absent, the first one of `interface`.
    pub address: Option<IpAddr>,
    /// Its network interface; where absent, the one that has `address`, and packets are not bound to it.
    pub interface: Option<String>,
    /// The most to send out of this host, in bit/s, if there is a limit. What a link carries is measured where the peer
    /// is Sinnet too, and is this where it is not, or with [`Congestion::ConfiguredRates`].
    pub rate: Option<u64>,
    /// One way; of use where the peer is not Sinnet.
    pub delay: Duration,
    /// The largest IP packet, in bytes, where it is less than the interface's.
    pub mtu: Option<u16>,
    /// It carries data only where no other path works.
    pub backup: bool,
    /// For errors of a path that are only seen on this machine.
    pub(crate) place: Place,
}

/// What usually leads to containers and virtual machines of this host, or through another overlay: no access link, and its
/// addresses are nothing to tell peers.
pub const INSIDE: [&str; 27] = [
    "docker*",
    "br-*",
    "podman*",
    "cni*",
    "cali*",
    "cilium*",
    "flannel*",
    "kube*",
    "virbr*",
    "vnet*",
    "lxcbr*",
    "lxdbr*",
    "incusbr*",
    "veth*",
    "vmnet*",
    "vboxnet*",
    "dummy*",
    "tun*",
    "tap*",
    "wg*",
    "tailscale*",
    "zt*",
    "nebula*",
    "ipsec*",
    "utun*",
    "gre*",
    "sit*",
];

/// Which interfaces are access links, where no path is configured.
#[derive(Clone, Debug)]
pub struct InterfacesConfig {
    /// These are none.
    pub ignore: Vec<String>,
    /// These carry data only where no other path works.
    pub backup: Vec<String>,
    /// The largest IP packet on all of them, in bytes, where it is less than the interface's.
    pub mtu: Option<u16>,
}

impl Default for InterfacesConfig {
    fn default() -> Self {
        Self { ignore: INSIDE.map(str::to_owned).to_vec(), backup: Vec::new(), mtu: None }
    }
}

impl InterfacesConfig {
    /// Whether a list has the name, or one with a star that it begins with.
    pub(crate) fn lists(list: &[String], name: &str) -> bool {
        list.iter().any(|item| match item.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => item == name,
        })
    }
}

/// How much is sent on a path.
#[derive(Clone, Debug)]
pub enum Congestion {
    /// As much as a window allows that this rule lets grow and shrink by what the peer reports.
    Measured(congestion::Rule),
    /// As much as its configured rate; every path has one. Nothing is measured.
    ConfiguredRates,
}

/// Names.
#[derive(Clone, Debug)]
pub struct DnsConfig {
    /// Whether names are answered for.
    pub enabled: bool,
    /// Whom to ask for others.
    pub upstream: Vec<SocketAddr>,
    /// Which HIP records count.
    pub hip_records: HipRecords,
    /// Whether servers on other hosts are believed that a record is signed.
    pub trusted: bool,
    /// The most peers at a time that are known by HIP records.
    pub peers: u16,
    /// How the host's own resolver is made to ask us.
    pub resolver: HostResolver,
}

/// How the host's own resolver is made to ask us as long as we run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostResolver {
    /// Not at all.
    Leave,
    /// By `resolvectl`, where systemd-resolved answers.
    SystemdResolved,
    /// `/etc/resolv.conf` is replaced.
    ResolvConf,
}

impl Default for DnsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            upstream: Vec::new(),
            hip_records: HipRecords::Signed,
            trusted: false,
            peers: 64,
            resolver: HostResolver::Leave,
        }
    }
}

impl DnsConfig {
    /// How many peers may be known by HIP records.
    pub(crate) fn room(&self) -> usize {
        let asks = self.enabled && !self.upstream.is_empty() && self.hip_records != HipRecords::Off;
        if asks { self.peers.into() } else { 0 }
    }
}

/// Which HIP records (RFC 8005) make a name a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HipRecords {
    /// None is asked for.
    Off,
    /// Those that are signed, by the word of a server that is believed.
    Signed,
    /// All whose HIT is that of their key.
    Any,
}

/// A rendezvous server (RFC 8004).
#[derive(Clone, Debug)]
pub struct RendezvousConfig {
    /// The names of the peers that may register; where absent, all.
    pub clients: Option<Vec<String>>,
    /// The most registrations at a time.
    pub most: u16,
    /// All that clients and others have to say to each other until they have met is passed on, too (RFC 9028).
    pub relay: bool,
    /// And so much data of those that do not meet, bit/s of all together; 0 is none.
    pub data: u64,
}

impl Default for RendezvousConfig {
    /// For all peers, without a relay.
    fn default() -> Self {
        Self { clients: None, most: 10_000, relay: false, data: 0 }
    }
}

/// A host that may be talked to.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Its name, for people and for the DNS.
    pub name: String,
    /// Its identity.
    pub hit: Hit,
    /// Its LSI, if it is not to follow from the HIT.
    pub lsi: Option<Lsi>,
    /// Its addresses; without one only the peer can begin.
    pub locators: Vec<LocatorConfig>,
    /// Which of our paths goes to which of its addresses; empty for automatic pairing.
    pub routes: Vec<RouteConfig>,
    /// Rendezvous servers that know where it is.
    pub via: Vec<LocatorConfig>,
    /// It is a rendezvous server, and this host registers there.
    pub register: bool,
    /// The file of its public key, where its HIT follows from that.
    pub identity: Option<PathBuf>,
    /// Its HIT is what the first who answers at its addresses has.
    pub opportunistic: bool,
    /// Which identity of ours speaks with it: 0 is the first, then those of [`Config::identities`].
    pub speaks_as: usize,
    name_place: Place,
    hit_place: Place,
}

impl PeerConfig {
    /// The same with the HIT that was found out.
    #[must_use]
    pub(crate) fn of(&self, hit: Hit) -> Self {
        Self { hit, ..self.clone() }
    }
}

/// An address of a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocatorConfig {
    /// The address.
    pub address: IpAddr,
    /// The UDP port, where it is not the usual one.
    pub port: Option<u16>,
    /// What the peer's link there carries, in bit/s, where it is less than ours.
    pub rate: Option<u64>,
    /// One way, where it is more than ours.
    pub delay: Option<Duration>,
}

/// A pair of locators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouteConfig {
    /// Index into [`Config::paths`].
    pub from: usize,
    /// An address of the peer.
    pub to: IpAddr,
    /// Along this route, in bit/s.
    pub rate: Option<u64>,
    /// Along this route, one way.
    pub delay: Option<Duration>,
}

/// How HIP and ESP travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// In UDP, through every NAT and firewall that lets UDP pass (RFC 5770), and ESP as IP protocol 50 where that arrives.
    Auto,
    /// In UDP.
    Udp,
    /// As IP protocols 139 and 50.
    Native,
}

/// Reads a configuration from `text`; `name` is what to call the file in messages.
///
/// # Errors
/// Points at the first thing that is wrong and says what would be right.
pub fn parse(text: &str, name: &str) -> Result<Config, Diagnostic> {
    sections::read(&text::toml::parse(name, text)?)
}

impl Config {
    /// Reads the host identity. A relative path is relative to the configuration file, which is in `directory`.
    ///
    /// # Errors
    /// Points at the `identity` of the configuration where the key file cannot be read or is no key.
    pub fn read_identity(&self, directory: &Path) -> Result<HostIdentity, Diagnostic> {
        read_identity(directory, &self.identity)
    }

    /// Reads the public keys of those peers that are known by them. A relative path is relative to `directory`.
    ///
    /// # Errors
    /// Points at the `identity` of the peer.
    pub(crate) fn read_peer_identities(&mut self, directory: &Path) -> Result<(), Diagnostic> {
        let (files, unknown) = std::mem::take(&mut self.unknown).into_iter().partition(|peer| peer.identity.is_some());
        self.unknown = unknown;
        let files: Vec<PeerConfig> = files;
        for peer in files {
            let path = directory.join(peer.identity.as_deref().unwrap_or(Path::new("")));
            let shown = path.display();
            let error = |message, help: String| Err(peer.hit_place.error(message, Some(help)));
            let make = "its host makes it: `openssl pkey -pubout -in b.pem -out b.pub`, of the file that `sinnet keygen` wrote";
            let pem = match read_text(&path) {
                Ok(pem) => pem,
                Err(failure) => {
                    let message = format!("the public key {shown} of \"{}\" cannot be read: {failure}", peer.name);
                    return error(message, make.to_owned());
                }
            };
            let hit = match PublicIdentity::from_pem(&pem) {
                Ok(identity) => identity.hit(),
                Err(failure) => {
                    return error(
                        format!("{shown} is not the public key of \"{}\": {failure}", peer.name),
                        make.to_owned(),
                    );
                }
            };
            if let Some(other) = self.peers.iter().find(|other| other.hit == hit) {
                let message = format!("the peers \"{}\" and \"{}\" have one HIT, {hit}", other.name, peer.name);
                return error(message, "a HIT is one host: put all its locators into one [[peer]]".to_owned());
            }
            self.peers.push(peer.of(hit));
        }
        Ok(())
    }

    /// Refuses this host as a peer of its own.
    ///
    /// # Errors
    /// Points at the peer's HIT.
    pub(crate) fn check_peers(&self, own: Hit) -> Result<(), Diagnostic> {
        let others = self.identities.iter().map(|other| (other.hit, format!(" \"{}\"", other.name)));
        let mut ours = std::iter::once((own, String::new())).chain(others).filter(|(hit, _)| *hit != Hit::NULL);
        let is = |hit: Hit| self.peers.iter().find(|peer| peer.hit == hit);
        let Some((peer, which)) = ours.find_map(|(hit, which)| Some((is(hit)?, which))) else { return Ok(()) };
        let message = format!("\"{}\" has the HIT of this host's own identity{which}", peer.name);
        let help = "it is what `sinnet keygen` printed on the peer's machine".to_owned();
        Err(peer.hit_place.error(message, Some(help)))
    }

    /// What is right but may not be meant: sentences.
    pub(crate) fn remarks(&self) -> Vec<String> {
        /// Names that nobody has in the public DNS, by RFC 6761, 6762, 8375 or habit.
        const OURS: [&str; 10] =
            ["hip", "internal", "home.arpa", "lan", "local", "localdomain", "test", "example", "invalid", "localhost"];
        let is_ours =
            |name: &str| !name.contains('.') || OURS.iter().any(|own| name.to_ascii_lowercase().ends_with(own));
        let public = self.peers.iter().filter(|peer| !is_ours(&peer.name)).map(|peer| {
            let message = format!("programs of this host that ask for \"{}\" are led to this peer", peer.name);
            let help = "if somebody else has that name in the DNS, take another, such as \"b.hip\"";
            peer.name_place.error(message, Some(help.to_owned())).to_string()
        });
        public.collect()
    }

    /// The LSIs of guests, each in turn.
    pub(crate) fn guest_lsis(&self, own: Lsi, peers: &[Lsi]) -> Vec<Lsi> {
        let most = self.accept.as_ref().map_or(0, |accept| accept.most);
        // From the last third of the range on, one after the other.
        self.unused_lsis(own, peers, (0..most).map(|number| 0x0001_8000 | u32::from(number)))
    }

    /// This host's LSI and those of the peers, in order: the configured ones, and for the others what follows from the HIT.
    pub fn assign_lsis(&self, own: Hit) -> (Lsi, Vec<Lsi>) {
        let configured = self.lsi.into_iter().chain(self.peers.iter().filter_map(|peer| peer.lsi));
        let mut taken: Vec<Lsi> = configured.chain(self.other_lsis()).collect();
        let mut assign = |configured: Option<Lsi>, hit: &Hit| {
            configured.unwrap_or_else(|| {
                let lsi = self.lsi_range.free(hit, &taken);
                taken.push(lsi);
                lsi
            })
        };
        let own = assign(self.lsi, &own);
        (own, self.peers.iter().map(|peer| assign(peer.lsi, &peer.hit)).collect())
    }

    /// LSIs for peers that come while we run: they get their routes at the start, when there is a right to.
    pub(crate) fn reserve_lsis(&self, own: Lsi, peers: &[Lsi]) -> Vec<Lsi> {
        // From the end of the range on, where few others are by chance.
        let last = u32::MAX - 1;
        self.unused_lsis(own, peers, (0..u32::try_from(self.dns.room()).unwrap_or(0)).map(|number| last - number))
    }

    /// An LSI that nobody has for each of these places, which are the last 32 bits of a HIT.
    fn unused_lsis(&self, own: Lsi, peers: &[Lsi], places: impl Iterator<Item = u32>) -> Vec<Lsi> {
        let mut taken: Vec<Lsi> = peers.iter().copied().chain([own]).chain(self.other_lsis()).collect();
        let unused = |place: u32| {
            let mut hit = Hit::NULL;
            hit.0[12..].copy_from_slice(&place.to_be_bytes());
            let lsi = self.lsi_range.free(&hit, &taken);
            taken.push(lsi);
            lsi
        };
        places.map(unused).collect()
    }
}

/// Reads a host identity from a file.
fn read_identity(directory: &Path, file: &At<PathBuf>) -> Result<HostIdentity, Diagnostic> {
    let path = directory.join(&file.value);
    let shown = path.display();
    let error = |message: String, help: String| file.place.error(message, Some(help));
    let (mode, pem) = read_key(&path).map_err(|failure| {
        let help = match failure.kind() {
            std::io::ErrorKind::NotFound => format!("`sinnet keygen --out {shown}` makes one"),
            std::io::ErrorKind::PermissionDenied => "start as the user who owns it, or as root".to_owned(),
            _ => "it must be a PEM file that `sinnet keygen` wrote".to_owned(),
        };
        error(format!("the host identity {shown} cannot be read: {failure}"), help)
    })?;
    // As ssh does: a key that others read is no proof of who this host is, and one that they write even less.
    if mode & 0o027 != 0 {
        let message = format!("other users of this machine can read or change the host identity {shown}");
        return Err(error(message, format!("`chmod 600 {shown}`; if they may have read it, make a new one")));
    }
    HostIdentity::from_pem(&pem).map_err(|failure| {
        error(
            format!("{shown} is no host identity: {failure}"),
            "it must be a PEM file with a private key; `sinnet keygen --out FILE` makes one".to_owned(),
        )
    })
}

/// A public key has less than this; a file that has more is none.
const LONGEST_PUBLIC: u64 = 16_384;

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST_PUBLIC).read_to_string(&mut text)?;
    Ok(text)
}

/// A key file's mode and text.
fn read_key(path: &Path) -> std::io::Result<(u32, zeroize::Zeroizing<String>)> {
    let mut file = std::fs::File::open(path)?;
    let mode = file.metadata()?.permissions().mode();
    let mut text = zeroize::Zeroizing::new(String::new());
    file.read_to_string(&mut text)?;
    Ok((mode, text))
}

#[cfg(test)]
mod tests;
