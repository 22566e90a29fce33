//! A host made by hand from the parts of the RFCs: it says what it is told to, and whoever tests looks at what comes back.

use std::net::SocketAddr;

use clock::{Duration, Instant};
use hip::cipher::HipCipher;
use hip::dh::{EphemeralSecret, Group};
use hip::esp::{EspSuite, InboundSa, OutboundSa};
use hip::identity::HostIdentity;
use hip::keymat::{HipKeys, Keymat};
use hip::rhash::Rhash;
use hip::{Peer, Route, puzzle};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wire::hip::{Builder, DiffieHellman, EspInfo, HostId, Packet, PacketKind, Parameter, Signature, Solution, kind};
use wire::{Hit, Spi};

use super::{Side, addresses, config, identities};

/// The suite of its associations.
const SUITE: EspSuite = EspSuite::Aes128CbcHmacSha256;

/// An Initiator by hand, and the host that it talks to.
pub struct Hand {
    pub now: Instant,
    pub side: Side,
    pub identity: HostIdentity,
    pub rng: ChaCha20Rng,
    /// As the host sees it.
    pub route: Route,
    pub rhash: Rhash,
    pub keys: Option<HipKeys>,
    pub keymat: Option<Keymat>,
    /// Where unused KEYMAT begins.
    pub index: u16,
    /// What this end receives at, and what the host does.
    pub spi: Spi,
    pub theirs: Spi,
    /// All that the host has said, with the route as it sees it.
    pub said: Vec<(Route, Vec<u8>)>,
    /// The length of the I2.
    pub i2_len: usize,
}

pub fn locator(text: &str) -> SocketAddr {
    addresses(&[text], 10500)[0]
}

impl Hand {
    /// Not associated yet. `change` is made to the host's view of this peer.
    pub fn new(change: impl FnOnce(&mut hip::HostConfig, &mut Peer)) -> Self {
        let [own, theirs] = identities();
        let route = Route { local: locator("10.1.0.2"), remote: locator("10.1.0.1") };
        let mut configuration = config(&[route.local]);
        let mut peer = Peer::new(own.hit(), vec![route.remote]);
        change(&mut configuration, &mut peer);
        let rhash = theirs.public().rhash();
        let mut side = Side::new(theirs, configuration, 7);
        side.host.add_peer(Instant::ZERO, peer);
        Self {
            now: Instant::ZERO,
            side,
            identity: own,
            rng: ChaCha20Rng::seed_from_u64(8),
            route,
            rhash,
            keys: None,
            keymat: None,
            index: 0,
            spi: Spi(0x1000),
            theirs: Spi(0),
            said: Vec::new(),
            i2_len: 0,
        }
    }

    /// Associated.
    pub fn associated() -> Self {
        let mut hand = Self::new(|_, _| {});
        hand.exchange(&[]);
        hand
    }

    pub fn hit(&self) -> Hit {
        self.side.host.hit()
    }

    /// Gives the host a packet; what it says to it.
    pub fn give(&mut self, route: Route, bytes: &[u8]) -> Vec<(Route, Vec<u8>)> {
        self.side.host.handle_packet(self.now, &mut self.side.rng, route, bytes);
        self.heard()
    }

    fn heard(&mut self) -> Vec<(Route, Vec<u8>)> {
        self.side.take_events();
        let mut said = Vec::new();
        while let Some(control) = self.side.host.poll_transmit() {
            said.push((control.route, control.bytes));
        }
        self.said.extend(said.iter().cloned());
        said
    }

    /// Lets time pass.
    pub fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some((at, _)) = self.side.host.poll_timeout().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            self.side.host.handle_timeout(self.now, &mut self.side.rng);
            self.heard();
        }
        self.now = until;
    }

    fn host_id(&self) -> HostId {
        let public = self.identity.public();
        HostId {
            algorithm: public.algorithm_number(),
            identity: public.encoded().to_vec(),
            domain_type: 0,
            domain: Vec::new(),
        }
    }

    fn signed(&mut self, builder: Builder) -> Vec<u8> {
        let bytes = self.identity.sign(&mut self.rng, &builder.covered());
        let algorithm = self.identity.public().signature_algorithm();
        builder.push(&Parameter::HipSignature(Signature { algorithm, bytes })).finish().unwrap()
    }

    /// HIP_MAC and signature behind what is said.
    pub fn sealed(&mut self, kind: PacketKind, mut parameters: Vec<Parameter>) -> Vec<u8> {
        parameters.sort_by_key(Parameter::kind);
        let builder = parameters.iter().fold(Builder::new(kind, self.identity.hit(), self.hit()), Builder::push);
        let keys = self.keys.as_ref().unwrap();
        let mac = self.rhash.hmac(&keys.ours.integrity, &[&builder.covered()]);
        self.signed(builder.push(&Parameter::HipMac(mac)))
    }

    pub fn i1(&self, receiver: Hit) -> Vec<u8> {
        let groups = Parameter::DhGroupList(vec![Group::P256.number()]);
        Builder::new(PacketKind::I1, self.identity.hit(), receiver).push(&groups).finish().unwrap()
    }

    /// A base exchange, in which the I2 has these parameters, too. The R2.
    pub fn exchange(&mut self, more: &[Parameter]) -> Vec<u8> {
        let (own, theirs, route) = (self.identity.hit(), self.hit(), self.route);
        let r1 = self.give(route, &self.i1(theirs)).remove(0).1;
        let r1 = Packet::parse(&r1).unwrap();
        let puzzle = r1.puzzle().unwrap().clone();
        let j = puzzle::solve(self.rhash, &puzzle.i, own, theirs, puzzle.difficulty, 1 << 20, &mut self.rng).unwrap();
        let secret = EphemeralSecret::generate(Group::P256, &mut self.rng);
        let kij = secret.agree(&r1.diffie_hellman().unwrap().public).unwrap();
        let keymat = Keymat::new(self.rhash, &kij, &puzzle.i, &j, &own, &theirs);
        let cipher = HipCipher::Aes128Cbc;
        self.keys = Some(keymat.hip_keys(cipher, &own, &theirs).unwrap());
        self.index = keymat.first_esp_index(cipher);
        let public = DiffieHellman { group: Group::P256.number(), public: secret.public_value() };
        let mut parameters = vec![
            self.esp_info(Spi(0), self.spi),
            Parameter::Solution(Solution { difficulty: puzzle.difficulty, opaque: puzzle.opaque, i: puzzle.i, j }),
            Parameter::DiffieHellman(public),
            Parameter::HipCipher(vec![cipher.number()]),
            Parameter::HostId(self.host_id()),
            Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]),
            Parameter::EspTransform(vec![SUITE.number()]),
        ];
        parameters.extend(r1.r1_counter().map(|counter| Parameter::R1Counter(*counter)));
        parameters.extend_from_slice(more);
        let i2 = self.sealed(PacketKind::I2, parameters);
        self.i2_len = i2.len();
        let r2 = self.give(route, &i2).remove(0).1;
        let packet = Packet::parse(&r2).unwrap();
        self.theirs = packet.esp_info().unwrap().new_spi;
        let (_, next) = keymat.esp_keys(SUITE, self.index, &own, &theirs).unwrap();
        self.index = next;
        self.keymat = Some(keymat);
        r2
    }

    /// An ESP_INFO whose keys begin where unused KEYMAT does.
    pub fn esp_info(&self, old_spi: Spi, new_spi: Spi) -> Parameter {
        Parameter::EspInfo(EspInfo { keymat_index: self.index, old_spi, new_spi })
    }

    /// Says an UPDATE from where this host is; what comes back, wherever to.
    pub fn update(&mut self, parameters: Vec<Parameter>) -> Vec<(Route, Vec<u8>)> {
        let packet = self.sealed(PacketKind::Update, parameters);
        self.give(self.route, &packet)
    }

    /// The next pair of security associations of KEYMAT, as this end has them.
    pub fn next_pair(&mut self, ours: Spi, theirs: Spi) -> (OutboundSa, InboundSa) {
        let keymat = self.keymat.as_ref().unwrap();
        let (keys, next) = keymat.esp_keys(SUITE, self.index, &self.identity.hit(), &self.side.host.hit()).unwrap();
        self.index = next;
        (OutboundSa::new(SUITE, theirs, &keys.outbound), InboundSa::new(SUITE, ours, &keys.inbound))
    }
}
