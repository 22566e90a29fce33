//! What a host and its peers are configured with.

use std::net::{IpAddr, SocketAddr};

use clock::Duration;
use wire::{Hit, Spi};

use crate::budget::Limits;
use crate::cipher::HipCipher;
use crate::dh::Group;
use crate::esp::EspSuite;
use crate::guests::Guests;
use crate::route::Route;

/// The configuration of a [`crate::Host`]: begin with [`HostConfig::new`] and set what is to be different.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostConfig {
    /// This host's locators, the best first. A path to a peer uses only locators of one address family.
    pub locators: Vec<SocketAddr>,
    /// Those of the locators where data is wanted only if no other works.
    pub backups: Vec<IpAddr>,
    /// ESP suites, the best first.
    pub esp_suites: Vec<EspSuite>,
    /// Diffie-Hellman groups, the best first. The last of the usual ones is what every host has (RFC 7401 §5.2.7), with some 90
    /// bits of strength; nobody can have it used who has a better one.
    pub groups: Vec<Group>,
    /// Ciphers of ENCRYPTED, the best first.
    pub ciphers: Vec<HipCipher>,
    /// K of the puzzles that Initiators have to solve: 2^K hashes on average, 0 to [`HostConfig::MAX_DIFFICULTY`].
    pub puzzle_difficulty: u8,
    /// The hardest puzzle, K in bits, that this host solves for others, and sets itself where many I2s come to nothing; at
    /// most [`HostConfig::MAX_DIFFICULTY`]. 2^16 hashes are about 0.2 s of a core.
    pub max_difficulty: u8,
    /// The length to which I1s are padded, bytes, so that an R1 is at most three times as long. 0: no padding.
    pub i1_length: u16,
    /// The first R1 generation. It has to grow from one start of the host to the next (RFC 7401 §5.2.3); seconds since
    /// 1970 do.
    pub first_generation: u64,
    /// How long one set of R1s, with its Diffie-Hellman keys, is handed out. It is accepted for as long again.
    pub r1_lifetime: Duration,
    /// When a packet that was not answered is sent again for the first time; then twice as long each time.
    pub retransmission: Duration,
    /// The longest that back-off waits.
    pub max_retransmission: Duration,
    /// How often an I1 or I2 is sent before the exchange has failed.
    pub max_tries: u32,
    /// How often a CLOSE, or an UPDATE that opens a path, is sent before that is given up.
    pub max_update_tries: u32,
    /// How long a path that could not be opened is left alone at first; then twice as long each time, up to 64 times.
    pub path_retry: Duration,
    /// What packets may cost that nobody has authenticated yet, in operations per second.
    pub limits: Limits,
    /// Offer feedback about the paths to peers that are Sinnet too ([`crate::feedback`]). With them each path has a
    /// Diffie-Hellman exchange of its own.
    pub feedback: bool,
    /// How long keys are used: then paths get new ones from a new Diffie-Hellman exchange, so that who takes a host's
    /// memory cannot read what was sent longer ago. With peers that are not Sinnet it is a whole base exchange.
    pub rekey_interval: Duration,
    /// Keep the keys of security associations, so that the user can have them for Wireshark.
    pub keylog: bool,
    /// How long an association may be without any path until it is forgotten; who wants to talk to the peer then begins
    /// anew.
    pub pathless: Duration,
    /// The most bytes of one KEYMAT that are used; 255 hashes is what there is. Less is for tests.
    pub keymat_limit: u16,
    /// As Initiator tell only the Responder, and not who is on the way, which public key this host has (RFC 7401 §5.2.18). The
    /// HIT is told in each packet all the same.
    pub encrypts_identity: bool,
    /// Who may come that is not configured; nobody, unless this says so.
    pub guests: Option<Guests>,
    /// Be a rendezvous server for the peers that may register ([`Peer::may_register`], RFC 8004).
    pub registrar: Option<Registrar>,
    /// The SPIs at which it receives are of this class: hosts that share an address have one each.
    pub spis: SpiClass,
}

/// Those SPIs that leave a remainder when they are divided by a number. By it hosts of several identities at one address
/// choose SPIs that none of the others has, and know whose one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpiClass {
    remainder: u32,
    of: u32,
}

impl Default for SpiClass {
    fn default() -> Self {
        Self::ALL
    }
}

impl SpiClass {
    /// All SPIs.
    pub const ALL: Self = Self { remainder: 0, of: 1 };

    /// One of `of` classes, from 1 to 256 of them; number 0 is the first.
    pub fn new(number: u8, of: u16) -> Self {
        let of = u32::from(of.clamp(1, 256));
        Self { remainder: u32::from(number) % of, of }
    }

    /// Whether an SPI belongs to it.
    pub fn has(self, spi: Spi) -> bool {
        spi.0 % self.of == self.remainder
    }
}

/// A rendezvous server's limits. Lifetimes are as on the wire, 2^((n - 64) / 8) seconds (RFC 8003 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registrar {
    /// The shortest lifetime of a registration that is granted.
    pub min: u8,
    /// The longest.
    pub max: u8,
    /// The most registrations at a time.
    pub most: usize,
    /// Be a control relay as well: pass on all HIP packets to and from clients inside UDP (RFC 9028 §4.5).
    pub relay: bool,
    /// And a data relay: pass on ESP packets of clients that have found no other way, so many bytes a second of all together
    /// (RFC 9028 §4.12). 0: none.
    pub data: u32,
}

impl Default for Registrar {
    /// 64 s to 4,096 s, 10,000 of them, and no relay.
    fn default() -> Self {
        Self { min: 112, max: 160, most: 10_000, relay: false, data: 0 }
    }
}

impl HostConfig {
    /// The greatest difficulty that can be configured, bits.
    pub const MAX_DIFFICULTY: u8 = 22;

    /// A host with these locators, the best first, and all else as usual.
    pub fn new(locators: Vec<SocketAddr>) -> Self {
        Self { locators, ..Self::default() }
    }
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            locators: Vec::new(),
            backups: Vec::new(),
            esp_suites: vec![EspSuite::Aes128Gcm16, EspSuite::Aes256CbcHmacSha256, EspSuite::Aes128CbcHmacSha256],
            groups: Group::ALL.to_vec(),
            ciphers: vec![HipCipher::Aes256Cbc, HipCipher::Aes128Cbc],
            puzzle_difficulty: 10,
            max_difficulty: 16,
            i1_length: 512,
            first_generation: 1,
            r1_lifetime: Duration::from_secs(120),
            retransmission: Duration::from_millis(1_000),
            max_retransmission: Duration::from_secs(4),
            max_tries: 20,
            max_update_tries: 4,
            path_retry: Duration::from_secs(2),
            limits: Limits::default(),
            feedback: true,
            rekey_interval: Duration::from_secs(3_600),
            keylog: false,
            pathless: Duration::from_secs(120),
            keymat_limit: u16::MAX,
            encrypts_identity: false,
            guests: None,
            registrar: None,
            spis: SpiClass::ALL,
        }
    }
}

/// A host that we talk to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Peer {
    /// Its identity.
    pub hit: Hit,
    /// Where it can be reached, the best first. Empty where it is always the peer that begins.
    pub locators: Vec<SocketAddr>,
    /// The pairs of locators to use, instead of those that would be chosen.
    pub routes: Vec<Route>,
    /// Rendezvous servers that know where it is: I1s go there, too (RFC 8004).
    pub via: Vec<SocketAddr>,
    /// It is a rendezvous server, and this host registers there.
    pub registers: bool,
    /// Whether it may begin a base exchange. Otherwise only this host does, which then goes to where the peer is said to be.
    pub may_begin: bool,
    /// It may register here, where this host is one ([`HostConfig::registrar`]).
    pub may_register: bool,
}

impl Peer {
    /// A peer that can be reached at these locators, the best first.
    pub fn new(hit: Hit, locators: Vec<SocketAddr>) -> Self {
        let (routes, via) = (Vec::new(), Vec::new());
        Self { hit, locators, routes, via, registers: false, may_begin: true, may_register: false }
    }

    /// Whether what comes on a route comes from a server that knows where the peer is, and not from itself.
    pub(crate) fn is_relayed(&self, route: Route) -> bool {
        self.via.contains(&route.remote) && !self.locators.contains(&route.remote)
    }

    /// Whether this address is one of the peer's configured locators.
    pub(crate) fn is_expected_at(&self, address: IpAddr) -> bool {
        let routes = self.routes.iter().map(|route| route.remote);
        let address = address.to_canonical();
        self.locators.iter().copied().chain(routes).any(|locator| locator.ip().to_canonical() == address)
    }
}
