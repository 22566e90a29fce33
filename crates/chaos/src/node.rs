//! A host of the world: a wedge with a clock of its own, a disk, and a plug that can be pulled.

use crate::network::Interface;
use crate::plan::{HostPlan, Plan};
use crate::traffic::Names;
use clock::{Duration, Instant, Rng};
use hip::esp::EspSuite;
use hip::identity::{Algorithm, HostIdentity};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::SocketAddr;
use wedge::{LocalPath, PeerConfig, Wedge, WedgeConfig};
use wire::Hit;

/// Seconds since 1970 when a world begins.
const EPOCH: u64 = 1_800_000_000;

/// A host.
pub(crate) struct Node {
    pub(crate) plan: HostPlan,
    pub(crate) interfaces: Vec<Interface>,
    /// Nothing where the process does not run.
    pub(crate) wedge: Option<Wedge>,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) time: Time,
    /// It sleeps until then.
    pub(crate) asleep: Option<Instant>,
    /// When its associations and exchanges were closed last.
    pub(crate) closed: Instant,
    /// The next deadline in the world's time, as of the last call.
    pub(crate) deadline: Instant,
    /// Times that the process began.
    pub(crate) boots: u64,
    /// How much its wall clock is behind, in seconds.
    pub(crate) back_s: u64,
    pub(crate) timers: u64,
}

/// The clock of a process: it shows zero when the process begins, goes a little wrong, and may jump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    began: Instant,
    drift_ppm: i64,
    ahead: i64,
}

impl Time {
    fn new(began: Instant, drift_ppm: i32) -> Self {
        Self { began, drift_ppm: i64::from(drift_ppm), ahead: 0 }
    }

    /// What it shows at a time of the world.
    pub(crate) fn shows(&self, at: Instant) -> Instant {
        let since = i128::from(at.saturating_since(self.began).as_nanos());
        let own = since + since * i128::from(self.drift_ppm) / 1_000_000 + i128::from(self.ahead);
        Instant::from_nanos(u64::try_from(own.max(0)).unwrap_or(u64::MAX))
    }

    /// The time of the world when it shows `own`, or a nanosecond later.
    pub(crate) fn when(&self, own: Instant) -> Instant {
        if own == Instant::FAR_FUTURE {
            return own;
        }
        let since = i128::from(own.as_nanos()) - i128::from(self.ahead);
        let world = since.max(0) * 1_000_000 / (1_000_000 + i128::from(self.drift_ppm));
        let mut at = Instant::from_nanos(u64::try_from(world).unwrap_or(u64::MAX)) + (self.began - Instant::ZERO);
        while self.shows(at) < own {
            at += Duration::from_nanos(1);
        }
        at
    }

    /// Stands still from one time of the world to another.
    pub(crate) fn pause(&mut self, from: Instant, until: Instant) {
        let shown = (self.shows(until) - self.shows(from)).as_nanos();
        self.ahead = self.ahead.saturating_sub(i64::try_from(shown).unwrap_or(i64::MAX));
    }

    /// Goes ahead, or falls behind the world, by milliseconds.
    pub(crate) fn jump(&mut self, ms: i64) {
        self.ahead = self.ahead.saturating_add(ms.saturating_mul(1_000_000));
    }
}

/// The identity of host `number`, the same in every world.
fn identity(number: usize) -> Option<HostIdentity> {
    let mut rng = ChaCha20Rng::seed_from_u64(0x5177_0000 + number as u64);
    HostIdentity::generate(Algorithm::EcdsaP256, &mut rng).ok()
}

/// The HITs of the first `count` hosts.
pub(crate) fn hits(count: usize) -> Vec<Hit> {
    static HITS: std::sync::OnceLock<Vec<Hit>> = std::sync::OnceLock::new();
    let all = HITS.get_or_init(|| (0..64).filter_map(|number| Some(identity(number)?.hit())).collect());
    all.iter().take(count).copied().collect()
}

impl Node {
    /// Host `number`, powered off.
    pub(crate) fn new(number: usize, plan: &HostPlan, rng: &mut Rng) -> Self {
        let interfaces = plan.interfaces.iter().enumerate();
        Self {
            interfaces: interfaces.map(|(at, access)| Interface::new(number, at, access, plan.native, rng)).collect(),
            wedge: None,
            rng: ChaCha20Rng::seed_from_u64(rng.next_u64()),
            time: Time::new(Instant::ZERO, plan.drift_ppm),
            asleep: None,
            closed: Instant::ZERO,
            deadline: Instant::FAR_FUTURE,
            boots: 0,
            back_s: 0,
            timers: 0,
            plan: plan.clone(),
        }
    }

    /// Starts the process. `locators` tells where peers are configured to be.
    ///
    /// # Errors
    /// A sentence, where the plan makes no host.
    pub(crate) fn boot(
        &mut self,
        now: Instant,
        number: usize,
        plan: &Plan,
        names: &Names,
        locators: &[Vec<SocketAddr>],
    ) -> Result<(), String> {
        self.time = Time::new(now, self.plan.drift_ppm);
        self.boots += 1;
        let config = self.config(now, number)?;
        let identity = identity(number).ok_or("no identity")?;
        let mut wedge = Wedge::new(identity, config, &mut self.rng).map_err(|error| error.to_string())?;
        for &(a, b) in &plan.pairs {
            let other = if a == number { b } else { a };
            if a != number && b != number || a == b {
                continue;
            }
            let hit = *names.hits.get(other).ok_or("no such host")?;
            let known = locators.get(other).cloned().unwrap_or_default();
            wedge.add_peer(peer(other, hit, known));
        }
        let idle = hits(64).into_iter().skip(32).cycle().take(self.plan.idle_peers as usize);
        for (at, mut hit) in idle.enumerate() {
            // Nobody's key belongs to it.
            hit.0[8..12].copy_from_slice(&(at as u32).to_be_bytes());
            wedge.add_peer(peer(1_000 + at, hit, Vec::new()));
        }
        self.wedge = Some(wedge);
        Ok(())
    }

    fn config(&self, now: Instant, number: usize) -> Result<WedgeConfig, String> {
        let suites = EspSuite::ALL;
        let best = suites.get(usize::from(self.plan.suite) % suites.len()).copied();
        let wall = EPOCH + now.as_nanos() / 1_000_000_000;
        let paths = (0..self.interfaces.len()).filter_map(|at| self.path(at));
        let mut config = WedgeConfig::new(Names::lsi(number), paths.collect());
        config.hip.puzzle_difficulty = self.plan.puzzle;
        config.hip.groups = vec![hip::dh::Group::P256];
        config.hip.esp_suites =
            best.into_iter().chain(suites.iter().copied().filter(|suite| Some(*suite) != best)).collect();
        // Two starts in one second would be one generation.
        config.hip.first_generation = wall.saturating_sub(self.back_s) + self.boots;
        config.hip.r1_lifetime = Duration::from_millis(self.plan.r1_lifetime_ms.max(1_000));
        config.hip.feedback = self.plan.feedback;
        config.congestion = self.plan.congestion.parse().map_err(|_| format!("no rule {}", self.plan.congestion))?;
        config.keylog = true;
        config.renew_at = if self.plan.renew_at == 0 { WedgeConfig::RENEW_AT } else { self.plan.renew_at };
        Ok(config)
    }

    /// An access link as the host is told of it.
    pub(crate) fn path(&self, number: usize) -> Option<LocalPath> {
        let interface = self.interfaces.get(number).filter(|interface| interface.plugged)?;
        let access = self.plan.interfaces.get(number)?;
        let mut path = LocalPath::new(format!("link{number}"), interface.address);
        (path.delay, path.backup) = (Duration::from_micros(access.delay_us * 2), access.backup);
        Some(path)
    }

    /// Where it can be reached from outside without having spoken first.
    pub(crate) fn locators(&self) -> Vec<SocketAddr> {
        let open = self.interfaces.iter().filter(|interface| interface.plugged && !interface.is_translated());
        open.map(|interface| interface.address).collect()
    }

    /// Remembers when it wants to be called.
    pub(crate) fn note_deadline(&mut self) {
        let own = self.wedge.as_ref().and_then(|wedge| wedge.poll_timeout()).map_or(Instant::FAR_FUTURE, |(at, _)| at);
        self.deadline = self.time.when(own);
    }

    /// Whether it runs and is awake.
    pub(crate) fn is_awake(&self) -> bool {
        self.wedge.is_some() && self.asleep.is_none()
    }
}

/// A peer as a host is configured with it.
pub(crate) fn peer(number: usize, hit: Hit, locators: Vec<SocketAddr>) -> PeerConfig {
    PeerConfig::new(format!("h{number}"), hit, Names::lsi(number), locators)
}
