//! The Responder's R1s: signed in advance, handed out without keeping state (RFC 7401 §4.1.1, §4.1.3, §6.7.1).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use wire::Hit;
use wire::hip::{
    Builder, DiffieHellman, PacketKind, Parameter, Puzzle, Signature, Solution, TooLong, kind, set_puzzle, set_receiver,
};
use zeroize::Zeroizing;

use crate::config::HostConfig;
use crate::costs::Meter;
use crate::dh::{EphemeralSecret, Group};
use crate::difficulty::Difficulty;
use crate::exchange::clear_first;
use crate::feedback::{self, Features};
use crate::identity::HostIdentity;
use crate::puzzle;
use crate::rate::{Bucket, Rate};
use crate::registration;
use crate::rhash::Rhash;
use crate::route::Route;
use crate::session::host_id;

/// So many generations before the present one are accepted, while they are not too old.
const KEPT: usize = 16;
/// How often Diffie-Hellman values that were used are replaced. R1_COUNTER is no faster than the clock it begins with.
const RENEWALS: Rate = Rate::new(1, 1);

/// The R1s of the present generation and of those before, whose puzzles are still accepted.
pub(crate) struct R1Pool {
    current: Generation,
    /// An Initiator has used a Diffie-Hellman value of the present generation.
    is_spent: bool,
    renewals: Bucket,
    /// The newest first.
    previous: VecDeque<Generation>,
    lifetime: Duration,
    difficulty: Difficulty,
    /// Solutions that have cost us an agreement: generation, Initiator, #I and #J.
    used: BTreeSet<Used>,
    /// The same in the order of their arrival.
    used_order: VecDeque<Used>,
    rhash: Rhash,
    hit: Hit,
    meter: Arc<Meter>,
}

type Used = (u64, Hit, Vec<u8>);

/// #I and #J.
fn i_and_j(solution: &Solution) -> Vec<u8> {
    [&solution.i[..], &solution.j].concat()
}

/// So many used solutions are remembered. The budget lets in about 10 a second, and a generation is good for 240 s.
const USED: usize = 4096;

struct Generation {
    number: u64,
    made_at: Instant,
    /// Turns an Initiator into its puzzle, so that the puzzle need not be remembered.
    secret: Zeroizing<[u8; 32]>,
    /// One for each group that was asked for.
    offers: Vec<Offer>,
}

struct Offer {
    group: Group,
    secret: EphemeralSecret,
    /// By difficulty: HIP_SIGNATURE_2 covers K (RFC 7401 §5.2.15), so each has its own signature.
    r1s: Vec<(u8, Vec<u8>)>,
}

impl R1Pool {
    pub(crate) fn new(
        identity: &HostIdentity,
        config: &HostConfig,
        meter: Arc<Meter>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, TooLong> {
        let bits = config.puzzle_difficulty;
        let made_at = Instant::ZERO;
        Ok(Self {
            current: Generation::new(identity, config, config.first_generation, bits, made_at, &meter, rng)?,
            is_spent: false,
            renewals: Bucket::default(),
            previous: VecDeque::new(),
            lifetime: config.r1_lifetime,
            difficulty: Difficulty::new(bits, config.max_difficulty),
            used: BTreeSet::new(),
            used_order: VecDeque::new(),
            rhash: identity.public().rhash(),
            hit: identity.hit(),
            meter,
        })
    }

    /// The number of the present generation, which R1_COUNTER tells (RFC 7401 §5.2.3).
    pub(crate) fn generation_number(&self) -> u64 {
        self.current.number
    }

    /// An I2 has solved its puzzle, and came to nothing.
    pub(crate) fn strain(&mut self, now: Instant) {
        self.difficulty.strain(now);
    }

    /// Begins a new generation where the present one is old, and signs R1s of another difficulty where the load wants one.
    pub(crate) fn refresh(
        &mut self,
        now: Instant,
        identity: &HostIdentity,
        config: &HostConfig,
        rng: &mut dyn CryptoRng,
    ) {
        self.difficulty.follow(now);
        let bits = self.difficulty.bits();
        if now.saturating_since(self.current.made_at) < self.lifetime {
            return self.current.sign(identity, config, bits, &self.meter, rng);
        }
        self.renew(now, identity, config, rng);
    }

    /// Sees to it that there is an R1 for an Initiator that offers `groups`. RFC 7401 §5.3.2: not with a value that another
    /// has used.
    pub(crate) fn prepare(
        &mut self,
        now: Instant,
        identity: &HostIdentity,
        config: &HostConfig,
        groups: &[u8],
        rng: &mut dyn CryptoRng,
    ) {
        self.refresh(now, identity, config, rng);
        if self.is_spent && self.renewals.take(now, RENEWALS) {
            self.renew(now, identity, config, rng);
        }
        if let Some(group) = group_for(config, groups) {
            self.current.add(identity, config, group, self.difficulty.bits(), &self.meter, rng);
        }
    }

    fn renew(&mut self, now: Instant, identity: &HostIdentity, config: &HostConfig, rng: &mut dyn CryptoRng) {
        let number = self.current.number.saturating_add(1);
        // The first generation was not too long for a packet, so this one is not.
        let Ok(next) = Generation::new(identity, config, number, self.difficulty.bits(), now, &self.meter, rng) else {
            return;
        };
        self.is_spent = false;
        self.previous.push_front(std::mem::replace(&mut self.current, next));
        let life = self.lifetime * 2;
        self.previous.retain(|generation| now.saturating_since(generation.made_at) < life);
        self.previous.truncate(KEPT);
        let oldest = self.previous.back().map_or(number, |generation| generation.number);
        self.used_order.retain(|(generation, ..)| *generation >= oldest);
        self.used.retain(|(generation, ..)| *generation >= oldest);
    }

    /// An Initiator has used the Diffie-Hellman value of an R1.
    pub(crate) fn spend(&mut self, opaque: u16) {
        self.is_spent |= self.current.number as u16 == opaque;
    }

    /// The R1 for an Initiator that offers `groups`: with our best group among them, or just our best.
    pub(crate) fn r1(
        &self,
        config: &HostConfig,
        initiator: Hit,
        epoch: u64,
        route: Route,
        groups: &[u8],
    ) -> Option<Vec<u8>> {
        let group = group_for(config, groups)?;
        let offer = self.current.offers.iter().find(|offer| offer.group == group)?;
        let bits = self.difficulty.bits();
        let mut r1 = offer.r1s.iter().find(|(k, _)| *k == bits).map(|(_, r1)| r1.clone())?;
        set_receiver(&mut r1, initiator);
        set_puzzle(&mut r1, self.current.number as u16, &self.puzzle(&self.current, bits, initiator, epoch, route));
        Some(r1)
    }

    /// Checks the solution that an Initiator sends back. At most one hash and one MAC.
    pub(crate) fn solved(&self, now: Instant, initiator: Hit, epoch: u64, route: Route, solution: &Solution) -> bool {
        let Some(generation) = self.generation(now, solution.opaque) else { return false };
        let bits = solution.difficulty;
        if !self.difficulty.accepts(now, bits) || solution.i != self.puzzle(generation, bits, initiator, epoch, route) {
            return false;
        }
        self.meter.hashes(1);
        puzzle::verify(self.rhash, &solution.i, &initiator, &self.hit, &solution.j, bits)
    }

    /// Whether a solution was used before (RFC 7401 §6.9, step 4).
    pub(crate) fn is_used(&self, now: Instant, initiator: Hit, solution: &Solution) -> bool {
        self.generation(now, solution.opaque)
            .is_some_and(|generation| self.used.contains(&(generation.number, initiator, i_and_j(solution))))
    }

    /// From now on the solution counts as used. No longer is one remembered than its generation is accepted.
    pub(crate) fn use_up(&mut self, now: Instant, initiator: Hit, solution: &Solution) {
        let Some(generation) = self.generation(now, solution.opaque) else { return };
        let used = (generation.number, initiator, i_and_j(solution));
        if self.used.insert(used.clone()) {
            self.used_order.push_back(used);
        }
        if self.used_order.len() > USED
            && let Some(oldest) = self.used_order.pop_front()
        {
            self.used.remove(&oldest);
        }
    }

    /// Our secret for `group` in the generation that `opaque` of the solution names.
    pub(crate) fn secret(&self, now: Instant, opaque: u16, group: u8) -> Option<&EphemeralSecret> {
        let offers = &self.generation(now, opaque)?.offers;
        offers.iter().find(|offer| offer.group.number() == group).map(|offer| &offer.secret)
    }

    fn generation(&self, now: Instant, opaque: u16) -> Option<&Generation> {
        std::iter::once(&self.current).chain(&self.previous).find(|generation| {
            generation.number as u16 == opaque && now.saturating_since(generation.made_at) < self.lifetime * 2
        })
    }

    /// #I of the puzzle of this Initiator at this place (RFC 7401 Appendix A), after so many associations with it. Another
    /// difficulty has another #I: nobody can say that a puzzle was easier than it was.
    fn puzzle(&self, generation: &Generation, bits: u8, initiator: Hit, epoch: u64, route: Route) -> Vec<u8> {
        let place = format!("{}|{}", route.local, route.remote);
        self.meter.mac();
        self.rhash.hmac(&generation.secret[..], &[&[bits], &initiator.0, &epoch.to_be_bytes(), place.as_bytes()])
    }
}

impl Generation {
    fn new(
        identity: &HostIdentity,
        config: &HostConfig,
        number: u64,
        bits: u8,
        now: Instant,
        meter: &Meter,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, TooLong> {
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut secret[..]);
        let mut offers = Vec::new();
        // Those of the others take long, and are made when one is asked for.
        let quick = config.groups.iter().enumerate().filter(|(index, group)| *index == 0 || group.is_quick());
        for (_, &group) in quick {
            offers.push(Offer::new(identity, config, number, group, bits, meter, rng)?);
        }
        Ok(Self { number, made_at: now, secret, offers })
    }

    /// Makes sure that there is an R1 with this group.
    fn add(
        &mut self,
        identity: &HostIdentity,
        config: &HostConfig,
        group: Group,
        bits: u8,
        meter: &Meter,
        rng: &mut dyn CryptoRng,
    ) {
        if self.offers.iter().any(|offer| offer.group == group) {
            return;
        }
        // Where it would be too long for a packet there is none.
        self.offers.extend(Offer::new(identity, config, self.number, group, bits, meter, rng));
    }

    /// Makes sure that there are R1s of this difficulty: at most one signature for each group and difficulty.
    fn sign(&mut self, identity: &HostIdentity, config: &HostConfig, bits: u8, meter: &Meter, rng: &mut dyn CryptoRng) {
        for offer in self.offers.iter_mut().filter(|offer| offer.r1s.iter().all(|(k, _)| *k != bits)) {
            meter.signature();
            // As long as the first one, which was not too long.
            if let Ok(r1) = r1(identity, config, self.number, bits, &offer.secret, rng) {
                offer.r1s.push((bits, r1));
            }
        }
    }
}

impl Offer {
    fn new(
        identity: &HostIdentity,
        config: &HostConfig,
        number: u64,
        group: Group,
        bits: u8,
        meter: &Meter,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, TooLong> {
        let secret = EphemeralSecret::generate(group, rng);
        meter.agreement();
        meter.signature();
        let r1 = r1(identity, config, number, bits, &secret, rng)?;
        Ok(Self { group, secret, r1s: vec![(bits, r1)] })
    }
}

/// RFC 7401 §6.7, step 4: the first of our groups that the Initiator has, or just our first.
fn group_for(config: &HostConfig, groups: &[u8]) -> Option<Group> {
    let common = config.groups.iter().find(|group| groups.contains(&group.number()));
    common.or(config.groups.first()).copied()
}

/// An R1 in which the receiver and the puzzle are still zero, as HIP_SIGNATURE_2 covers it.
fn r1(
    identity: &HostIdentity,
    config: &HostConfig,
    number: u64,
    bits: u8,
    secret: &EphemeralSecret,
    rng: &mut dyn CryptoRng,
) -> Result<Vec<u8>, TooLong> {
    let rhash = identity.public().rhash();
    let puzzle =
        Puzzle { difficulty: bits, lifetime: puzzle_lifetime(config.r1_lifetime), opaque: 0, i: vec![0; rhash.len()] };
    let public = DiffieHellman { group: secret.group().number(), public: secret.public_value() };
    let builder = Builder::new(PacketKind::R1, identity.hit(), Hit::NULL)
        .anonymous(identity.is_anonymous())
        .push(&Parameter::R1Counter(number))
        .push(&Parameter::Puzzle(puzzle))
        .push(&Parameter::DhGroupList(config.groups.iter().map(|group| group.number()).collect()))
        .push(&Parameter::DiffieHellman(public))
        .push(&Parameter::HipCipher(config.ciphers.iter().map(|cipher| cipher.number()).collect()))
        .push(&Parameter::HostId(host_id(identity.public())))
        .push(&Parameter::HitSuiteList(hit_suites(rhash)))
        .push_some(registration::offer(config).as_ref())
        .push(&Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]))
        .push(&Parameter::EspTransform(clear_first(&config.esp_suites).iter().map(|suite| suite.number()).collect()))
        .push_some(config.feedback.then(|| feedback::offer(Features::own(config.keylog))).as_ref());
    let bytes = identity.sign(rng, &builder.covered());
    let algorithm = identity.public().signature_algorithm();
    builder.push(&Parameter::HipSignature2(Signature { algorithm, bytes })).finish()
}

/// The suites of identities that this host takes, its own first; the number is in the four upper bits (RFC 7401 §5.2.10).
fn hit_suites(own: Rhash) -> Vec<u8> {
    let others = Rhash::ALL.into_iter().filter(|other| *other != own);
    std::iter::once(own).chain(others).map(|rhash| rhash.suite() << 4).collect()
}

/// The lifetime field for a puzzle that is good for about `lifetime`: 2^(field - 32) seconds (RFC 7401 §5.2.4).
fn puzzle_lifetime(lifetime: Duration) -> u8 {
    let seconds = (lifetime.as_nanos() / 1_000_000_000).max(1);
    32 + seconds.ilog2() as u8
}
