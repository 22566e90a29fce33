//! A run: faults, then calm and what has to follow, then one thing after the other and how long recovery takes.

use crate::inspect::Inspector;
use crate::plan::{Fault, Plan};
use crate::property::{Finding, Judge, Property, Tally};
use crate::traffic::Stream;
use crate::world::World;
use clock::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Packets get through so long after calm: a silent peer is given up after 15 s, and a base exchange's retransmissions
/// are 4 s apart.
const THROUGH: Duration = Duration::from_secs(30);
/// All paths are back: the longest pause between two tries of a path that failed is 128 s, and it is cut short where the
/// peer says where it is.
const PATHS: Duration = Duration::from_secs(150);
/// A TCP whose timer has backed off.
const STREAMS: Duration = Duration::from_secs(45);
/// After an address has changed.
const MOVED: Duration = Duration::from_secs(2);
/// After a restart.
const RESTARTED: Duration = Duration::from_secs(3);
/// Both ends know the same of their paths: a dead one is given up after some retransmissions.
const AGREED: Duration = Duration::from_secs(40);
/// And what the network itself takes.
const SLACK: Duration = Duration::from_millis(1_500);

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Of all packets that hosts sent.
    pub hash: u64,
    /// How many.
    pub packets: u64,
    /// Virtual time, in milliseconds.
    pub virtual_ms: u64,
    /// What was looked at.
    pub tally: Tally,
    /// What did not hold.
    pub finding: Option<Finding>,
}

thread_local! {
    /// Where this thread panicked last.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From now on panics print nothing; a finding tells where they were.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        PLACE.with(|known| known.replace(place));
    }));
}

/// How a host did with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Relation {
    from: usize,
    to: usize,
    heard: usize,
    ended: usize,
}

/// Runs a plan, and where nothing but attacks happens in it, once more with hosts that none of their packets reaches, to
/// see what they cost others. In both runs the packets take their room on links and in queues, and what was changed on the
/// way is lost: nothing that a host does could undo that. A panic is a finding.
pub fn run(plan: &Plan) -> Outcome {
    let (mut outcome, relations) = run_once(plan, false);
    if outcome.finding.is_some() || !plan.is_attack_only() {
        return outcome;
    }
    let (peace, undisturbed) = run_once(&plan.without_theft(), true);
    let mut judge = Judge { tally: outcome.tally, finding: None };
    for (with, without) in relations.iter().zip(&undisturbed).filter(|_| peace.finding.is_none()) {
        let enough = with.heard * 10 + 30 >= without.heard * 9;
        judge.check(plan.calm_ms, Property::I1, enough, || format!("{with:?} under attack, and {without:?} without"));
        let untouched = with.ended <= without.ended;
        judge
            .check(plan.calm_ms, Property::I2, untouched, || format!("{with:?} under attack, and {without:?} without"));
    }
    (outcome.tally, outcome.finding) = (judge.tally, judge.finding);
    outcome
}

/// Runs a plan, and tells what happened: faults, events of hosts, and packets of HIP.
pub fn story(plan: &Plan) -> Vec<String> {
    let told = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(plan).ok()?;
        run.world.story = Some(Vec::new());
        run.through();
        run.world.story
    }));
    told.ok().flatten().unwrap_or_default()
}

fn run_once(plan: &Plan, shielded: bool) -> (Outcome, Vec<Relation>) {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(plan)?;
        run.world.shielded = shielded;
        Ok::<_, String>(run.whole())
    }));
    let failed = |property, what| Outcome {
        hash: 0,
        packets: 0,
        virtual_ms: 0,
        tally: Tally::default(),
        finding: Some(Finding { property, at_ms: 0, what }),
    };
    match result {
        Ok(Ok(whole)) => whole,
        Ok(Err(sentence)) => (failed(Property::P1, format!("the plan makes no world: {sentence}")), Vec::new()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            (
                failed(
                    Property::P1,
                    format!("panicked at {}: {}", PLACE.with(RefCell::take), text.unwrap_or_default()),
                ),
                Vec::new(),
            )
        }
    }
}

/// Runs a plan twice, and compares.
pub fn run_twice(plan: &Plan) -> Outcome {
    let mut first = run(plan);
    let (second, _) = run_once(plan, false);
    first.tally.count(Property::D1);
    if first.finding.is_none() && first.hash != second.hash {
        let what =
            format!("{} packets of hash {:x}, then {} of {:x}", first.packets, first.hash, second.packets, second.hash);
        first.finding = Some(Finding { property: Property::D1, at_ms: first.virtual_ms, what });
    }
    first
}

impl World {
    /// How the hosts to which something is promised did with each other until `end`.
    fn relations(&self, end: Instant) -> Vec<Relation> {
        let relation = |probe: &Stream| {
            let (from, to) = (probe.plan.from, probe.plan.to);
            let heard = probe.times.iter().filter(|(_, heard)| heard.is_some_and(|at| at <= end)).count();
            Relation { from, to, heard, ended: self.ended.get(&(from, to)).copied().unwrap_or_default() }
        };
        self.probes().map(relation).collect()
    }
}

struct Run {
    world: World,
    inspector: Inspector,
    slice: Duration,
}

impl Run {
    fn new(plan: &Plan) -> Result<Self, String> {
        let slice = match (plan.calm_ms, plan.hosts.len()) {
            (3_600_000.., _) => Duration::from_secs(10),
            (_, 0..=2) => Duration::from_millis(250),
            _ => Duration::from_millis(1_000),
        };
        Ok(Self { world: World::new(plan)?, inspector: Inspector::default(), slice })
    }

    fn whole(mut self) -> (Outcome, Vec<Relation>) {
        let relations = self.through();
        let outcome = Outcome {
            hash: self.world.tap.hash,
            packets: self.world.tap.packets,
            virtual_ms: self.world.at_ms(),
            tally: self.world.judge.tally,
            finding: self.world.judge.finding,
        };
        (outcome, relations)
    }

    /// All phases; how hosts did with each other until it was calm.
    fn through(&mut self) -> Vec<Relation> {
        let calm = Instant::ZERO + Duration::from_millis(self.world.plan.calm_ms);
        self.go(calm);
        let relations = self.world.relations(calm);
        self.world.heal();
        self.world.calm_probes();
        self.recover(calm);
        for fault in self.world.plan.epilogue.clone() {
            if self.world.judge.finding.is_some() {
                break;
            }
            self.epilogue(&fault);
        }
        self.agree();
        self.world.judge.tally.count(Property::P1);
        relations
    }

    /// Goes on until `end`, and looks at everything every slice.
    fn go(&mut self, end: Instant) {
        while self.world.now < end && self.world.judge.finding.is_none() {
            let next = (self.world.now + self.slice).min(end);
            self.world.run(next);
            self.inspector.look(&mut self.world, self.slice);
        }
    }

    /// Goes on until something holds; false where it does not by `end`.
    fn wait(&mut self, end: Instant, mut holds: impl FnMut(&World) -> bool) -> bool {
        while self.world.judge.finding.is_none() {
            if holds(&self.world) {
                return true;
            }
            if self.world.now >= end {
                return false;
            }
            let next = self.world.now + Duration::from_millis(100);
            self.go(next.min(end));
        }
        true
    }

    fn check(&mut self, property: Property, holds: bool, what: impl FnOnce(&World) -> String) {
        let at = self.world.at_ms();
        let text = if holds { String::new() } else { what(&self.world) };
        self.world.judge.check(at, property, holds, || text);
    }

    fn recover(&mut self, calm: Instant) {
        let through = self.wait(calm + THROUGH, |world| world.silent_pair(calm).is_none());
        self.check(Property::L1, through, |world| {
            let pair = world.silent_pair(calm);
            format!("nothing gets through between {pair:?} since {calm:?}: {}", world.told_of(pair))
        });
        if self.world.plan.flows.iter().any(|flow| flow.tcp) {
            let progress = |world: &World| -> Vec<u32> { world.tcp().map(|stream| stream.progress()).collect() };
            let before = progress(&self.world);
            let goes_on = |world: &World| {
                world.tcp().zip(&before).all(|(stream, before)| stream.is_done() || stream.progress() > *before)
            };
            let goes = self.wait(calm + STREAMS, goes_on);
            self.check(Property::L6, goes, |world| format!("TCPs were at {before:?} and are at {:?}", progress(world)));
        }
        let whole = self.wait(calm + PATHS, |world| world.missing_path().is_none());
        self.check(Property::L2, whole, |world| {
            let pair = world.missing_path();
            format!("a path is missing between {pair:?}: {}", world.told_of(pair))
        });
    }

    fn agree(&mut self) {
        let end = self.world.now + AGREED;
        let agree = self.wait(end, |world| world.disagreement().is_none());
        self.check(Property::S5, agree, |world| {
            let pair = world.disagreement();
            format!("the ends do not have the same paths: {}", world.told_of(pair))
        });
    }

    /// Something happens in a good network; packets get through again soon.
    fn epilogue(&mut self, fault: &Fault) {
        let quiet = self.world.now + Duration::from_secs(3);
        self.go(quiet);
        self.world.happen(fault);
        let (property, after, most) = match *fault {
            Fault::Restart { down_ms, .. } => (Property::L5, Duration::from_millis(down_ms), RESTARTED),
            Fault::Wait { ms } => return self.go(self.world.now + Duration::from_millis(ms)),
            Fault::Suspend { ms, .. } => (Property::L1, Duration::from_millis(ms), THROUGH),
            Fault::Readdress { .. } | Fault::Rebind { .. } => (Property::L1, Duration::ZERO, MOVED),
            _ => (Property::L1, Duration::ZERO, THROUGH),
        };
        // A packet that was under way when it happened is none that got through after it.
        let since = self.world.now + after + Duration::from_millis(1);
        let through = self.wait(since + most + SLACK, |world| world.silent_pair(since).is_none());
        let text = format!("{fault:?}");
        self.check(property, through, |world| {
            let pair = world.silent_pair(since);
            format!("after {text} nothing gets through between {pair:?}: {}", world.told_of(pair))
        });
    }
}
