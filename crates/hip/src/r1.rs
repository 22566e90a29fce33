//! The Responder's R1s: signed in advance, handed out without keeping state (RFC 7401 §4.1.1, §4.1.3, §6.7.1).

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use wire::Hit;
use wire::hip::{
    Builder, DiffieHellman, Locator, PacketKind, Parameter, Puzzle, Signature, Solution, TooLong, kind, set_puzzle,
    set_receiver,
};
use zeroize::Zeroizing;

use crate::config::HostConfig;
use crate::dh::{EphemeralSecret, Group};
use crate::identity::HostIdentity;
use crate::puzzle;
use crate::rhash::Rhash;
use crate::route::Route;
use crate::session::host_id;

/// The R1s of the present generation and of the one before, whose puzzles are still accepted.
pub(crate) struct R1Pool {
    current: Generation,
    /// What the present generation says of this host is no longer so.
    outdated: bool,
    previous: Option<Generation>,
    lifetime: Duration,
    difficulty: u8,
    rhash: Rhash,
    hit: Hit,
}

struct Generation {
    number: u64,
    made_at: Instant,
    /// Turns an Initiator into its puzzle, so that the puzzle need not be remembered.
    secret: Zeroizing<[u8; 32]>,
    /// One for each group, best first.
    offers: Vec<Offer>,
}

struct Offer {
    group: Group,
    secret: EphemeralSecret,
    r1: Vec<u8>,
}

impl R1Pool {
    pub(crate) fn new(identity: &HostIdentity, config: &HostConfig, rng: &mut dyn CryptoRng) -> Result<Self, TooLong> {
        Ok(Self {
            current: Generation::new(identity, config, config.first_generation, Instant::ZERO, rng)?,
            outdated: false,
            previous: None,
            lifetime: config.r1_lifetime,
            difficulty: config.puzzle_difficulty,
            rhash: identity.public().rhash(),
            hit: identity.hit(),
        })
    }

    /// The next R1 needs a new generation, with the locators as they are then.
    pub(crate) fn outdate(&mut self) {
        self.outdated = true;
    }

    /// Begins a new generation where the present one is old.
    pub(crate) fn refresh(
        &mut self,
        now: Instant,
        identity: &HostIdentity,
        config: &HostConfig,
        rng: &mut dyn CryptoRng,
    ) {
        if !self.outdated && now.saturating_since(self.current.made_at) < self.lifetime {
            return;
        }
        self.outdated = false;
        // The first generation was not too long for a packet, so this one is not.
        if let Ok(next) = Generation::new(identity, config, self.current.number + 1, now, rng) {
            self.previous = Some(std::mem::replace(&mut self.current, next));
        }
    }

    /// The R1 for an Initiator that offers `groups`: with our best group among them, or just our best.
    pub(crate) fn r1(&self, initiator: Hit, epoch: u64, route: Route, groups: &[u8]) -> Option<Vec<u8>> {
        let offers = &self.current.offers;
        let offer = offers.iter().find(|offer| groups.contains(&offer.group.number())).or(offers.first())?;
        let mut r1 = offer.r1.clone();
        set_receiver(&mut r1, initiator);
        set_puzzle(&mut r1, self.current.number as u16, &self.puzzle(&self.current, initiator, epoch, route));
        Some(r1)
    }

    /// Checks the solution that an Initiator sends back. At most one hash and one MAC.
    pub(crate) fn solved(&self, now: Instant, initiator: Hit, epoch: u64, route: Route, solution: &Solution) -> bool {
        let Some(generation) = self.generation(now, solution.opaque) else { return false };
        solution.difficulty == self.difficulty
            && solution.i == self.puzzle(generation, initiator, epoch, route)
            && puzzle::verify(self.rhash, &solution.i, &initiator, &self.hit, &solution.j, self.difficulty)
    }

    /// Our secret for `group` in the generation that `opaque` of the solution names.
    pub(crate) fn secret(&self, now: Instant, opaque: u16, group: u8) -> Option<&EphemeralSecret> {
        let offers = &self.generation(now, opaque)?.offers;
        offers.iter().find(|offer| offer.group.number() == group).map(|offer| &offer.secret)
    }

    fn generation(&self, now: Instant, opaque: u16) -> Option<&Generation> {
        [Some(&self.current), self.previous.as_ref()].into_iter().flatten().find(|generation| {
            generation.number as u16 == opaque && now.saturating_since(generation.made_at) < self.lifetime * 2
        })
    }

    /// #I of the puzzle of this Initiator at this place (RFC 7401 Appendix A), after so many associations with it.
    fn puzzle(&self, generation: &Generation, initiator: Hit, epoch: u64, route: Route) -> Vec<u8> {
        let place = format!("{}|{}", route.local, route.remote);
        self.rhash.hmac(&generation.secret[..], &[&initiator.0, &epoch.to_be_bytes(), place.as_bytes()])
    }
}

impl Generation {
    fn new(
        identity: &HostIdentity,
        config: &HostConfig,
        number: u64,
        now: Instant,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, TooLong> {
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut secret[..]);
        let mut offers = Vec::new();
        for &group in &config.groups {
            let secret = EphemeralSecret::generate(group, rng);
            let r1 = r1(identity, config, number, &secret, rng)?;
            offers.push(Offer { group, secret, r1 });
        }
        Ok(Self { number, made_at: now, secret, offers })
    }
}

/// An R1 in which the receiver and the puzzle are still zero, as HIP_SIGNATURE_2 covers it.
fn r1(
    identity: &HostIdentity,
    config: &HostConfig,
    number: u64,
    secret: &EphemeralSecret,
    rng: &mut dyn CryptoRng,
) -> Result<Vec<u8>, TooLong> {
    let rhash = identity.public().rhash();
    let puzzle = Puzzle {
        difficulty: config.puzzle_difficulty,
        lifetime: puzzle_lifetime(config.r1_lifetime),
        opaque: 0,
        i: vec![0; rhash.len()],
    };
    let public = DiffieHellman { group: secret.group().number(), public: secret.public_value() };
    let builder = Builder::new(PacketKind::R1, identity.hit(), Hit::NULL)
        .push(&Parameter::R1Counter(number))
        .push_some(locator_set(config).as_ref())
        .push(&Parameter::Puzzle(puzzle))
        .push(&Parameter::DhGroupList(config.groups.iter().map(|group| group.number()).collect()))
        .push(&Parameter::DiffieHellman(public))
        .push(&Parameter::HipCipher(config.ciphers.iter().map(|cipher| cipher.number()).collect()))
        .push(&Parameter::HostId(host_id(identity.public())))
        // RFC 7401 §5.2.10: the number of the suite in the four upper bits.
        .push(&Parameter::HitSuiteList(vec![rhash.suite() << 4]))
        .push(&Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]))
        .push(&Parameter::EspTransform(config.esp_suites.iter().map(|suite| suite.number()).collect()))
        .push_some(config.feedback.then(crate::feedback::offer).as_ref());
    let bytes = identity.sign(rng, &builder.covered());
    let algorithm = identity.public().signature_algorithm();
    builder.push(&Parameter::HipSignature2(Signature { algorithm, bytes })).finish()
}

/// Where else this host can be reached (RFC 8046 §4), if there is more than one place.
fn locator_set(config: &HostConfig) -> Option<Parameter> {
    if config.locators.len() < 2 {
        return None;
    }
    let locators = config.locators.iter().enumerate().map(|(index, locator)| Locator {
        traffic: 0,
        preferred: index == 0,
        lifetime: u32::MAX,
        spi: None,
        address: crate::host::mapped(locator.ip()),
    });
    Some(Parameter::LocatorSet(locators.collect()))
}

/// The lifetime field for a puzzle that is good for about `lifetime`: 2^(field - 32) seconds (RFC 7401 §5.2.4).
fn puzzle_lifetime(lifetime: Duration) -> u8 {
    let seconds = (lifetime.as_nanos() / 1_000_000_000).max(1);
    32 + seconds.ilog2() as u8
}
