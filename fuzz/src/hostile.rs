//! A peer with keys of its own that says what it likes: HIP packets with right MACs and signatures, ESP packets that open.
//! It is made of the public parts of `hip` and `wire`, so that no door has to be left open in the host it attacks.

use crate::grammar::{Edit, Told, edited};
use aes_gcm::aead::array::Array;
use aes_gcm::aead::{AeadInOut, inout::InOutBuf};
use aes_gcm::{Aes128Gcm, KeyInit};
use hip::cipher::HipCipher;
use hip::dh::{EphemeralSecret, Group};
use hip::esp::{EspKeys, EspSuite};
use hip::identity::{Algorithm, HostIdentity};
use hip::keymat::{HipKeys, Keymat};
use hip::rhash::Rhash;
use hip::{Route, feedback, puzzle};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use wire::hip::{
    Builder, DiffieHellman, EspInfo, HostId, Packet, PacketKind, Parameter, Puzzle, Signature, Solution, kind,
    set_puzzle, set_receiver,
};
use wire::{Hit, Spi};

/// What a base exchange agrees on.
struct Session {
    rhash: Rhash,
    keys: HipKeys,
    keymat: Keymat,
    suite: EspSuite,
    /// #I and #J.
    puzzle: (Vec<u8>, Vec<u8>),
}

/// Seals ESP packets (AES-GCM, RFC 4106) with sequence numbers that are its owner's to choose.
pub struct Sealer {
    spi: Spi,
    cipher: Aes128Gcm,
    salt: [u8; 4],
    /// The last number.
    pub sequence: u32,
    iv: u64,
}

impl Sealer {
    fn new(spi: Spi, keys: &EspKeys) -> Option<Self> {
        let (key, salt) = keys.encryption.split_last_chunk::<4>()?;
        Some(Self { spi, cipher: Aes128Gcm::new_from_slice(key).ok()?, salt: *salt, sequence: 0, iv: 0 })
    }

    fn seal(&mut self, next_header: u8, payload: &[u8]) -> Option<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        self.iv += 1;
        let mut packet = [self.spi.0.to_be_bytes(), self.sequence.to_be_bytes()].concat();
        packet.extend(self.iv.to_be_bytes());
        packet.extend_from_slice(payload);
        let padding = (4 - (payload.len() + 2) % 4) % 4;
        packet.extend((1..=padding as u8).chain([padding as u8, next_header]));
        let nonce: [u8; 12] = [&self.salt[..], &self.iv.to_be_bytes()].concat().try_into().ok()?;
        let (head, text) = packet.split_at_mut(16);
        let tag = self.cipher.encrypt_inout_detached(&Array(nonce), &head[..8], InOutBuf::from(text)).ok()?;
        packet.extend_from_slice(&tag);
        Some(packet)
    }

    fn open(&self, packet: &[u8]) -> Option<(u8, Vec<u8>)> {
        let (head, rest) = packet.split_first_chunk::<16>()?;
        let (text, tag) = rest.split_last_chunk::<16>()?;
        let nonce: [u8; 12] = [&self.salt[..], &head[8..]].concat().try_into().ok()?;
        let mut text = text.to_vec();
        self.cipher
            .decrypt_inout_detached(&Array(nonce), &head[..8], InOutBuf::from(&mut text[..]), &Array(*tag))
            .ok()?;
        let [padding, next_header] = *text.last_chunk::<2>()?;
        text.truncate(text.len().checked_sub(2 + usize::from(padding))?);
        Some((next_header, text))
    }
}

/// The peer.
pub struct Hostile {
    identity: HostIdentity,
    victim: Hit,
    rng: ChaCha20Rng,
    secret: EphemeralSecret,
    session: Option<Session>,
    /// As Initiator, from R1 to R2.
    pending: Option<Session>,
    /// Seals what goes to the victim, by the victim's SPI; with the route on which it was told.
    pub outbound: BTreeMap<Spi, (Route, Sealer)>,
    /// Opens what comes from the victim, by our SPI.
    inbound: BTreeMap<Spi, Sealer>,
    /// Our newest SPI.
    spi: Spi,
    /// What edits refer to.
    pub told: Told,
    /// The last packets of the victim, oldest first: kind, route from here to there, bytes.
    pub heard: VecDeque<(PacketKind, Route, Vec<u8>)>,
    /// Every packet said, to be said again.
    pub said: VecDeque<Vec<u8>>,
}

impl Hostile {
    /// The identity of a hostile peer: the same one each time.
    pub fn identity(seed: u64) -> HostIdentity {
        HostIdentity::generate(Algorithm::EcdsaP256, &mut ChaCha20Rng::seed_from_u64(seed)).expect("a key")
    }

    /// A peer of `victim`.
    pub fn new(victim: Hit) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(77);
        let identity = Self::identity(2);
        let secret = EphemeralSecret::generate(Group::P256, &mut rng);
        let told = Told {
            seq: 1,
            public: (Group::P256.number(), secret.public_value()),
            host_id: Some(host_id(&identity)),
            rhash_len: identity.public().rhash().len(),
            ..Told::default()
        };
        Self {
            identity,
            victim,
            rng,
            secret,
            session: None,
            pending: None,
            outbound: BTreeMap::new(),
            inbound: BTreeMap::new(),
            spi: Spi(0x1000),
            told,
            heard: VecDeque::new(),
            said: VecDeque::new(),
        }
    }

    /// This peer's HIT.
    pub fn hit(&self) -> Hit {
        self.identity.hit()
    }

    /// Keys are agreed.
    pub fn is_up(&self) -> bool {
        self.session.is_some()
    }

    fn new_spi(&mut self) -> Spi {
        self.spi = Spi(self.spi.0.wrapping_add(1));
        self.told.spis.push(self.spi);
        self.spi
    }

    /// An I1, with what makes it as long as an R1 where that is asked for.
    pub fn i1(&mut self, edits: &[Edit]) -> Vec<u8> {
        let parameters = vec![
            Parameter::DhGroupList(vec![Group::P256.number()]),
            Parameter::Unknown { kind: 0xa000, contents: vec![0; 600] },
        ];
        self.build(PacketKind::I1, parameters, edits).finish().unwrap_or_default()
    }

    /// An R1 that the victim takes, if nothing is edited.
    pub fn r1(&mut self, edits: &[Edit]) -> Vec<u8> {
        let rhash = self.identity.public().rhash();
        let parameters = vec![
            Parameter::R1Counter(1),
            Parameter::Puzzle(Puzzle { difficulty: 0, lifetime: 37, opaque: 0, i: vec![0; rhash.len()] }),
            Parameter::DhGroupList(vec![Group::P256.number()]),
            Parameter::DiffieHellman(self.public()),
            Parameter::HipCipher(vec![HipCipher::Aes128Cbc.number()]),
            Parameter::HostId(host_id(&self.identity)),
            Parameter::HitSuiteList(vec![rhash.suite() << 4]),
            Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]),
            Parameter::EspTransform(vec![EspSuite::Aes128Gcm16.number()]),
            offer(),
        ];
        let parameters = edited(parameters, edits, &self.told);
        let mut builder = Builder::new(PacketKind::R1, self.hit(), Hit::NULL);
        for parameter in parameters.iter().filter(|parameter| parameter.kind() < kind::HIP_SIGNATURE_2) {
            // What the signature leaves out is zero while it is signed.
            let parameter = match parameter {
                Parameter::Puzzle(puzzle) => {
                    Parameter::Puzzle(Puzzle { opaque: 0, i: vec![0; puzzle.i.len()], ..puzzle.clone() })
                }
                other => other.clone(),
            };
            builder = builder.push(&parameter);
        }
        let signature = self.signature(&builder.covered());
        builder = builder.push(&Parameter::HipSignature2(signature));
        for parameter in parameters.iter().filter(|parameter| parameter.kind() > kind::HIP_SIGNATURE) {
            builder = builder.push(parameter);
        }
        let mut bytes = builder.finish().unwrap_or_default();
        set_receiver(&mut bytes, self.victim);
        set_puzzle(&mut bytes, 7, &vec![9; rhash.len()]);
        self.remember(bytes)
    }

    /// The I2 to an R1 of the victim.
    pub fn i2(&mut self, r1: &[u8], edits: &[Edit]) -> Option<Vec<u8>> {
        let r1 = Packet::parse(r1).ok()?;
        let (puzzle, theirs) = (r1.puzzle()?.clone(), r1.diffie_hellman()?.clone());
        let rhash = Rhash::of_hit(&self.victim)?;
        let tries = 1 << 20;
        let j = puzzle::solve(rhash, &puzzle.i, self.hit(), self.victim, puzzle.difficulty, tries, &mut self.rng)?;
        let shared = self.secret.agree(&theirs.public).ok()?;
        let keymat = Keymat::new(rhash, &shared, &puzzle.i, &j, &self.hit(), &self.victim);
        let (cipher, suite) = (HipCipher::Aes128Cbc, EspSuite::Aes128Gcm16);
        let keys = keymat.hip_keys(cipher, &self.hit(), &self.victim).ok()?;
        let index = keymat.first_esp_index(cipher);
        self.told.keymat = index;
        let numbers = (puzzle.i.clone(), j.clone());
        let solution = Solution { difficulty: puzzle.difficulty, opaque: puzzle.opaque, i: puzzle.i, j };
        let mut parameters = vec![
            Parameter::EspInfo(EspInfo { keymat_index: index, old_spi: Spi(0), new_spi: self.new_spi() }),
            Parameter::Solution(solution),
            Parameter::DiffieHellman(self.public()),
            Parameter::HipCipher(vec![cipher.number()]),
            Parameter::HostId(host_id(&self.identity)),
            Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]),
            Parameter::EspTransform(vec![suite.number()]),
            offer(),
        ];
        parameters.extend(r1.r1_counter().map(|&counter| Parameter::R1Counter(counter)));
        parameters.extend(r1.parameters().filter_map(|parameter| match parameter {
            Parameter::EchoRequestSigned(echo) => Some(Parameter::EchoResponseSigned(echo.clone())),
            Parameter::EchoRequestUnsigned(echo) => Some(Parameter::EchoResponseUnsigned(echo.clone())),
            _ => None,
        }));
        self.pending = Some(Session { rhash, keys, keymat, suite, puzzle: numbers });
        let session = self.pending.take()?;
        let bytes = self.sealed(&session, PacketKind::I2, parameters, edits);
        self.pending = Some(session);
        Some(bytes)
    }

    /// The R2 to an I2 of the victim. The session begins.
    pub fn r2(&mut self, i2: &[u8], edits: &[Edit]) -> Option<Vec<u8>> {
        let i2 = Packet::parse(i2).ok()?;
        let (solution, theirs) = (i2.solution()?, i2.diffie_hellman()?);
        let rhash = self.identity.public().rhash();
        let cipher = HipCipher::from_number(*i2.hip_cipher()?.first()?)?;
        let suite = EspSuite::from_number(*i2.esp_transform()?.first()?)?;
        let shared = self.secret.agree(&theirs.public).ok()?;
        let keymat = Keymat::new(rhash, &shared, &solution.i, &solution.j, &self.hit(), &self.victim);
        let keys = keymat.hip_keys(cipher, &self.hit(), &self.victim).ok()?;
        let index = i2.esp_info()?.keymat_index;
        self.told.keymat = index;
        let puzzle = (solution.i.clone(), solution.j.clone());
        let session = Session { rhash, keys, keymat, suite, puzzle };
        let esp = EspInfo { keymat_index: index, old_spi: Spi(0), new_spi: self.new_spi() };
        let parameters = edited(vec![Parameter::EspInfo(esp)], edits, &self.told);
        let mut builder = Builder::new(PacketKind::R2, self.hit(), self.victim);
        for parameter in parameters.iter().filter(|parameter| parameter.kind() < kind::HIP_MAC_2) {
            builder = builder.push(parameter);
        }
        let covered = builder.covered_with(&Parameter::HostId(host_id(&self.identity)));
        let mac = session.rhash.hmac(&session.keys.ours.integrity, &[&covered]);
        builder = builder.push(&Parameter::HipMac2(mac));
        let signature = self.signature(&builder.covered());
        let bytes = builder.push(&Parameter::HipSignature(signature)).finish().unwrap_or_default();
        self.session = Some(session);
        Some(self.remember(bytes))
    }

    /// A packet of the session, with what an honest one of its kind would hold after the edits. Nothing before the session.
    pub fn say(&mut self, kind: PacketKind, parameters: Vec<Parameter>, edits: &[Edit]) -> Option<Vec<u8>> {
        let session = self.session.take()?;
        let bytes = self.sealed(&session, kind, parameters, edits);
        self.session = Some(session);
        Some(bytes)
    }

    /// The UPDATE that opens a path, or with `old` renews it; with a Diffie-Hellman exchange of its own or without.
    pub fn opening(&mut self, old: Spi, fresh: bool) -> Vec<Parameter> {
        let new_spi = self.new_spi();
        self.told.seq = self.told.seq.wrapping_add(1);
        let keymat_index = if fresh { 0 } else { self.told.keymat };
        let mut parameters = vec![
            Parameter::EspInfo(EspInfo { keymat_index, old_spi: old, new_spi }),
            Parameter::Seq(self.told.seq),
            Parameter::EchoRequestSigned(vec![5; 16]),
        ];
        parameters.extend(fresh.then(|| Parameter::DiffieHellman(self.public())));
        parameters
    }

    /// The honest answer to an UPDATE.
    pub fn answer(&mut self, update: &[u8]) -> Option<Vec<Parameter>> {
        let update = Packet::parse(update).ok()?;
        let mut parameters = Vec::new();
        if let Some(&seq) = update.seq() {
            parameters.push(Parameter::Ack(vec![seq]));
            if let Some(esp) = update.esp_info().filter(|_| update.ack().is_none()) {
                let fresh = update.diffie_hellman().is_some();
                parameters.extend(self.opening(Spi(0), fresh));
                if let Some(Parameter::EspInfo(ours)) =
                    parameters.iter_mut().find(|parameter| matches!(parameter, Parameter::EspInfo(_)))
                {
                    ours.keymat_index = if fresh { 0 } else { esp.keymat_index.max(self.told.keymat) };
                }
            }
        }
        parameters.extend(update.parameters().filter_map(|parameter| match parameter {
            Parameter::EchoRequestSigned(echo) => Some(Parameter::EchoResponseSigned(echo.clone())),
            _ => None,
        }));
        Some(parameters)
    }

    /// Takes a HIP packet of the victim. `route` leads from here to there.
    pub fn hear(&mut self, route: Route, bytes: Vec<u8>) {
        let Ok(packet) = Packet::parse(&bytes) else { panic!("the host sends what is no HIP packet: {bytes:?}") };
        if let Some(&seq) = packet.seq() {
            self.told.theirs = seq;
        }
        if let Some(echo) = packet.echo_request_signed() {
            self.told.echo = echo.clone();
        }
        if packet.kind() == PacketKind::R2
            && let Some(session) = self.pending.take()
        {
            self.session = Some(session);
        }
        if let Some(esp) = packet.esp_info().copied() {
            self.told.spis.push(esp.new_spi);
            let renewed = packet.diffie_hellman().filter(|_| packet.kind() == PacketKind::Update);
            self.learn(route, esp, renewed.map(|theirs| theirs.public.as_slice()));
        }
        let kind = packet.kind();
        self.heard.push_back((kind, route, bytes));
        if self.heard.len() > 16 {
            self.heard.pop_front();
        }
    }

    /// The victim receives at an SPI: the keys of it, of the base exchange or of a Diffie-Hellman exchange of their own.
    fn learn(&mut self, route: Route, esp: EspInfo, renewed: Option<&[u8]>) {
        let Some(session) = &self.session else { return };
        let (ours, theirs) = (self.identity.hit(), self.victim);
        let shared = renewed.and_then(|public| self.secret.agree(public).ok());
        let (i, j) = &session.puzzle;
        let new = shared.map(|shared| Keymat::new(session.rhash, &shared, i, j, &ours, &theirs));
        let keymat = new.as_ref().unwrap_or(&session.keymat);
        let Ok((keys, next)) = keymat.esp_keys(session.suite, esp.keymat_index, &ours, &theirs) else { return };
        self.told.keymat = self.told.keymat.max(next);
        if let Some(sealer) = Sealer::new(esp.new_spi, &keys.outbound) {
            self.outbound.entry(esp.new_spi).or_insert((route, sealer));
        }
        if let Some(opener) = Sealer::new(self.spi, &keys.inbound) {
            self.inbound.insert(self.spi, opener);
        }
    }

    /// After the R2 that we sent: the victim's SPI of its I2.
    pub fn learn_from_i2(&mut self, route: Route, i2: &[u8]) {
        if let Some(esp) = Packet::parse(i2).ok().and_then(|packet| packet.esp_info().copied()) {
            self.learn(route, esp, None);
        }
    }

    /// An ESP packet on one of the paths, and the route on which it goes.
    pub fn esp(&mut self, path: u8, next_header: u8, payload: &[u8]) -> Option<(Route, Vec<u8>)> {
        let count = self.outbound.len();
        let (route, sa) = self.outbound.values_mut().nth(usize::from(path) % count.max(1))?;
        Some((*route, sa.seal(next_header, payload)?))
    }

    /// The next ESP packet on a path has the number after this one.
    pub fn jump(&mut self, path: u8, sequence: u32) {
        let count = self.outbound.len();
        if let Some((_, sa)) = self.outbound.values_mut().nth(usize::from(path) % count.max(1)) {
            sa.sequence = sequence;
        }
    }

    /// Opens an ESP packet of the victim.
    pub fn open(&mut self, bytes: &[u8]) -> Option<(u8, Vec<u8>)> {
        let spi = Spi(u32::from_be_bytes(*bytes.first_chunk::<4>()?));
        self.inbound.get(&spi)?.open(bytes)
    }

    /// Any number.
    pub fn random(&mut self) -> u32 {
        self.rng.next_u32()
    }

    fn build(&mut self, kind: PacketKind, parameters: Vec<Parameter>, edits: &[Edit]) -> Builder {
        let mut builder = Builder::new(kind, self.hit(), self.victim);
        for parameter in edited(parameters, edits, &self.told) {
            builder = builder.push(&parameter);
        }
        builder
    }

    fn sealed(&mut self, session: &Session, packet: PacketKind, parameters: Vec<Parameter>, edits: &[Edit]) -> Vec<u8> {
        let parameters = edited(parameters, edits, &self.told);
        let mut builder = Builder::new(packet, self.hit(), self.victim);
        for parameter in parameters.iter().filter(|parameter| parameter.kind() < kind::HIP_MAC) {
            builder = builder.push(parameter);
        }
        let mac = session.rhash.hmac(&session.keys.ours.integrity, &[&builder.covered()]);
        builder = builder.push(&Parameter::HipMac(mac));
        let signature = self.signature(&builder.covered());
        builder = builder.push(&Parameter::HipSignature(signature));
        for parameter in parameters.iter().filter(|parameter| parameter.kind() > kind::HIP_SIGNATURE) {
            builder = builder.push(parameter);
        }
        let bytes = builder.finish().unwrap_or_default();
        self.remember(bytes)
    }

    fn remember(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        self.said.push_back(bytes.clone());
        if self.said.len() > 32 {
            self.said.pop_front();
        }
        bytes
    }

    fn signature(&mut self, covered: &[u8]) -> Signature {
        let bytes = self.identity.sign(&mut self.rng, covered);
        Signature { algorithm: self.identity.public().signature_algorithm(), bytes }
    }

    fn public(&self) -> DiffieHellman {
        DiffieHellman { group: self.secret.group().number(), public: self.secret.public_value() }
    }
}

/// That we give feedback about paths.
fn offer() -> Parameter {
    Parameter::Unknown { kind: feedback::PARAMETER, contents: vec![1, 0, 0, 0] }
}

fn host_id(identity: &HostIdentity) -> HostId {
    let public = identity.public();
    HostId {
        algorithm: public.algorithm_number(),
        identity: public.encoded().to_vec(),
        domain_type: 0,
        domain: Vec::new(),
    }
}
