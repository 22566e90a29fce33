//! Rates and delays that go up and down by themselves, as on access links through the air.

use std::collections::VecDeque;

use clock::{Duration, Instant, Rng};

use crate::{Change, ChangeKind};

/// How a link changes by itself, from its start on and without end. Its parts are drawn anew for each link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Like a satellite network in low orbits, where another satellite takes over every 15 s (N. Mohan et al., *A Multifaceted
    /// Look at Starlink Performance*, WWW 2024): then the link pauses for 20 to 150 ms, and until the next time it has 60 to
    /// 100 % of its rate, and up to 15 ms more than its delay.
    Starlink,
    /// Like a mobile network: every 100 ms another rate, whose logarithm walks about that of the link's rate and returns to it
    /// in some seconds, from a tenth to one and a half times that; and pauses of 0.3 s on average, one in half a minute.
    Lte,
}

impl Schedule {
    /// All of them as files write them.
    pub const NAMES: [(&'static str, Self); 2] = [("lte", Self::Lte), ("starlink", Self::Starlink)];
}

const HANDOVER: Duration = Duration::from_secs(15);
const STEP: Duration = Duration::from_millis(100);
/// What is left after a step of how far the logarithm of the rate is from where it returns to.
const MEMORY: f64 = 0.97;
/// The standard deviation of that logarithm in the long run.
const SPREAD: f64 = 0.35;
const PAUSE_CHANCE: f64 = 1.0 / 300.0;
const MEAN_PAUSE: f64 = 0.3;

/// A schedule under way.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    schedule: Schedule,
    rng: Rng,
    rate: u64,
    delay: Duration,
    /// When something is drawn next.
    next: Instant,
    level: f64,
    /// What was drawn, in order of time; never empty.
    changes: VecDeque<Change>,
}

impl Course {
    pub(crate) fn new(schedule: Schedule, rate: u64, delay: Duration, rng: &Rng) -> Self {
        // "course": neither the stream of losses nor that of jitter.
        let mut rng = Rng::from_seed(rng.clone().next_u64() ^ 0x636f_7572_7365);
        let next = match schedule {
            Schedule::Starlink => Instant::ZERO + HANDOVER.mul_f64(rng.unit()),
            Schedule::Lte => Instant::ZERO,
        };
        let mut course = Self { schedule, rng, rate, delay, next, level: 0.0, changes: VecDeque::new() };
        course.draw();
        course
    }

    pub(crate) fn next_change(&self) -> Instant {
        self.changes.front().map_or(Instant::FAR_FUTURE, |change| change.at)
    }

    pub(crate) fn pop(&mut self) -> Option<Change> {
        let change = self.changes.pop_front();
        if self.changes.is_empty() {
            self.draw();
        }
        change
    }

    fn draw(&mut self) {
        match self.schedule {
            Schedule::Starlink => self.hand_over(),
            Schedule::Lte => self.step(),
        }
    }

    fn push(&mut self, at: Instant, what: ChangeKind) {
        self.changes.push_back(Change { at, what });
    }

    fn hand_over(&mut self) {
        let at = self.next;
        let back = at + Duration::from_secs_f64(self.rng.range(0.02, 0.15));
        let rate = (self.rate as f64 * self.rng.range(0.6, 1.0)) as u64;
        let delay = self.delay + Duration::from_secs_f64(self.rng.range(0.0, 0.015));
        self.push(at, ChangeKind::Rate(Some(0)));
        self.push(back, ChangeKind::Delay(delay));
        self.push(back, ChangeKind::Rate(Some(rate.max(1))));
        self.next = at + HANDOVER;
    }

    fn step(&mut self) {
        // The sum of twelve uniform numbers is near enough to a normal one.
        let normal = (0..12).map(|_| self.rng.unit()).sum::<f64>() - 6.0;
        self.level = MEMORY * self.level + SPREAD * (1.0 - MEMORY * MEMORY).sqrt() * normal;
        if self.rng.chance(PAUSE_CHANCE) {
            self.push(self.next, ChangeKind::Rate(Some(0)));
            self.next += Duration::from_secs_f64(-MEAN_PAUSE * (1.0 - self.rng.unit()).ln());
        }
        let rate = self.rate as f64 * self.level.exp().clamp(0.1, 1.5);
        self.push(self.next, ChangeKind::Rate(Some((rate as u64).max(1))));
        self.next += STEP;
    }
}
