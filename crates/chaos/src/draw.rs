//! Plans are drawn from seeds. Each seed has a random half of the kinds of faults (swarm testing: Groce et al. 2012), so
//! that what one kind hides another seed shows.

use crate::plan::{Access, Attack, Block, Event, Fault, Flow, Forgery, HostPlan, LinkFault, Nat, Plan, Source, Way};
use clock::Rng;

/// Which plans are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Two hosts.
    Two,
    /// So many hosts, 3 to 32.
    Hosts(usize),
    /// Three to eight hosts, by the seed.
    Many,
    /// Two hosts for a virtual day or week, with flapping and dead links.
    Long,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Outage,
    Change,
    Weather,
    Firewall,
    Restart,
    Close,
    Clock,
    Suspend,
    Readdress,
    Rebind,
    Plug,
    Burst,
    Flap,
    Forge,
    Replay,
    Corrupt,
    Hostile,
}

const KINDS: [Kind; 17] = [
    Kind::Outage,
    Kind::Change,
    Kind::Weather,
    Kind::Firewall,
    Kind::Restart,
    Kind::Close,
    Kind::Clock,
    Kind::Suspend,
    Kind::Readdress,
    Kind::Rebind,
    Kind::Plug,
    Kind::Burst,
    Kind::Flap,
    Kind::Forge,
    Kind::Replay,
    Kind::Corrupt,
    Kind::Hostile,
];

/// The plan of a seed.
pub fn draw(seed: u64, shape: Shape) -> Plan {
    let mut rng = Rng::from_seed(seed);
    let count = match shape {
        Shape::Two | Shape::Long => 2,
        Shape::Hosts(count) => count.clamp(2, 32),
        Shape::Many => 3 + rng.below(6) as usize,
    };
    let mut kinds: Vec<Kind> = KINDS.into_iter().filter(|_| rng.chance(0.5)).collect();
    if shape == Shape::Long {
        kinds.retain(|kind| matches!(kind, Kind::Outage | Kind::Flap | Kind::Suspend | Kind::Readdress | Kind::Rebind));
    }
    // Some have attacks alone, so that all that goes wrong is theirs.
    let quiet = shape != Shape::Long && rng.chance(0.15);
    if quiet {
        kinds = vec![Kind::Burst, Kind::Forge, Kind::Replay, Kind::Corrupt];
        kinds.extend((count > 2).then_some(Kind::Hostile));
    }
    // One in three hosts at most is hostile, and the first is not.
    let hostile = if kinds.contains(&Kind::Hostile) { if count == 2 { 1 } else { (count - 1) / 3 } } else { 0 };
    let translated = kinds.contains(&Kind::Rebind).then(|| count - 1);
    let hosts: Vec<HostPlan> = (0..count)
        .map(|host| {
            let lies = (1..=hostile).contains(&host);
            self::host(&mut rng, count, translated == Some(host) && !lies, lies, hostile > 0)
        })
        .collect();
    let hosts = hosts.into_iter().map(|host| if quiet { without_loss(host) } else { host }).collect::<Vec<_>>();
    let star = count > 2 && rng.chance(0.3);
    let pairs: Vec<(usize, usize)> =
        (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).filter(|(a, _)| !star || *a == 0).collect();
    let (probe_ms, calm_ms) = match shape {
        Shape::Long => (20_000, [86_400_000, 604_800_000][usize::from(seed % 8 == 7)]),
        _ => {
            ([100, 300, 1_000, 4_000][rng.below(4) as usize] * if count > 2 { 3 } else { 1 }, duration(&mut rng, count))
        }
    };
    let mut plan = Plan {
        seed,
        flows: flows(&mut rng, &pairs, count, calm_ms),
        hosts,
        pairs,
        probe_ms,
        calm_ms,
        events: Vec::new(),
        epilogue: Vec::new(),
    };
    events(&mut rng, &mut plan, &kinds, shape);
    plan.epilogue = epilogue(&mut rng, &plan);
    plan
}

fn without_loss(mut host: HostPlan) -> HostPlan {
    host.interfaces.iter_mut().for_each(|access| access.loss = 0.0);
    host
}

/// Most storms are short: they cost less, and what needs long to go wrong has some that are long.
fn duration(rng: &mut Rng, count: usize) -> u64 {
    match rng.below(10) {
        0..=6 => 2_000 + rng.below(8_000),
        7 | 8 => 10_000 + rng.below(30_000),
        _ => 40_000 + rng.below(if count == 2 { 300_000 } else { 60_000 }),
    }
}

fn host(rng: &mut Rng, count: usize, translated: bool, hostile: bool, sealed: bool) -> HostPlan {
    let links = if count == 2 { 1 + rng.below(3) } else { 1 + rng.below(2) };
    let native = !translated && rng.chance(0.0);
    let rate = |rng: &mut Rng| (3e5 * 100f64.powf(rng.unit())) as u64;
    let interfaces = (0..links).map(|_| Access {
        rate: rate(rng),
        delay_us: (150_000.0 * rng.unit() * rng.unit()) as u64,
        queue: 8 + rng.below(100) as u32,
        loss: if rng.chance(0.3) { 0.1 * rng.unit() * rng.unit() } else { 0.0 },
        nat: translated
            .then(|| Nat { timeout_ms: [20_000, 60_000, 300_000][rng.below(3) as usize], symmetric: rng.chance(0.3) }),
        backup: rng.chance(0.1),
    });
    HostPlan {
        interfaces: interfaces.collect(),
        native,
        feedback: rng.chance(0.85),
        congestion: ["sinnet", "lia", "olia", "balia", "cubic"][rng.below(5) as usize].into(),
        puzzle: rng.below(4) as u8,
        // A hostile peer of ours can seal with the first suite.
        suite: if sealed { 0 } else { rng.below(3) as u8 },
        r1_lifetime_ms: [2_000, 20_000, 120_000][rng.below(3) as usize],
        drift_ppm: rng.below(400) as i32 - 200,
        renew_at: if rng.chance(0.4) { 60 + rng.below(400) as u32 } else { 0 },
        idle_peers: if rng.chance(0.02) { 300 } else { 0 },
        hostile,
    }
}

fn flows(rng: &mut Rng, pairs: &[(usize, usize)], count: usize, calm_ms: u64) -> Vec<Flow> {
    let most = if count == 2 { 3 } else { count as u64 };
    (0..rng.below(most + 1))
        .filter_map(|_| {
            let (a, b) = *pairs.get(rng.below(pairs.len() as u64) as usize)?;
            let (from, to) = if rng.chance(0.5) { (a, b) } else { (b, a) };
            let tcp = rng.chance(0.4);
            Some(Flow {
                from,
                to,
                tcp,
                six: tcp || rng.chance(0.7),
                interval_us: (2_000.0 * 100f64.powf(rng.unit())) as u64,
                bytes: 20 + rng.below(1_200) as u16,
                start_ms: rng.below(calm_ms.min(20_000)),
                packets: 20 + rng.below(if tcp { 400 } else { 150 }) as u32,
            })
        })
        .collect()
}

fn events(rng: &mut Rng, plan: &mut Plan, kinds: &[Kind], shape: Shape) {
    if kinds.is_empty() {
        return;
    }
    let pause = match shape {
        Shape::Long => 200_000,
        _ => 200 + rng.below(3_000),
    };
    let mut at = 300 + rng.below(2_000);
    let mut found = Vec::new();
    while at < plan.calm_ms && found.len() < 4_000 {
        let kind = kinds[rng.below(kinds.len() as u64) as usize];
        self::faults(rng, plan, kind, at, &mut found);
        at += 20 + rng.below(2 * pause);
    }
    if shape == Shape::Long && plan.hosts.iter().any(|host| host.interfaces.len() > 1) {
        // A locator that is dead for most of the time.
        let host = usize::from(plan.hosts[1].interfaces.len() > 1);
        let down = Fault::Link { host, interface: 1, way: Way::Both, what: LinkFault::Down };
        found.retain(|event| !matches!(event.fault, Fault::Link { host: h, interface: 1, .. } if h == host));
        found.push(Event { at: 60_000, fault: down });
    }
    found.retain(|event| event.at < plan.calm_ms);
    found.sort_by_key(|event| event.at);
    plan.events = found;
}

/// What happens at a time, and what ends it later.
fn faults(rng: &mut Rng, plan: &Plan, kind: Kind, at: u64, found: &mut Vec<Event>) {
    let count = plan.hosts.len() as u64;
    let host = rng.below(count) as usize;
    let other = (host + 1 + rng.below(count - 1) as usize) % plan.hosts.len();
    let interface = rng.below(plan.hosts[host].interfaces.len() as u64) as usize;
    let way = [Way::Both, Way::Both, Way::Out, Way::In][rng.below(4) as usize];
    let left = plan.calm_ms.saturating_sub(at);
    let mut push = |after: u64, fault: Fault| found.push(Event { at: at + after, fault });
    let link = |what| Fault::Link { host, interface, way, what };
    match kind {
        Kind::Outage => {
            push(0, link(LinkFault::Down));
            push(50 + rng.below(20_000), link(LinkFault::Up));
        }
        Kind::Change => push(
            0,
            link(match rng.below(3) {
                0 => LinkFault::Loss(0.3 * rng.unit() * rng.unit()),
                1 => LinkFault::Delay(rng.below(300_000)),
                _ => LinkFault::Rate((1e5 * 200f64.powf(rng.unit())) as u64),
            }),
        ),
        Kind::Weather => push(
            0,
            Fault::Weather {
                twice: 0.1 * rng.unit(),
                late: 0.2 * rng.unit() * rng.unit(),
                late_ms: 1 + rng.below(400),
            },
        ),
        Kind::Firewall => {
            let block =
                [Block::Hip, Block::Esp, Block::Updates, Block::LongerThan(600 + rng.below(800) as u16), Block::All];
            let block = block[rng.below(5) as usize];
            let after = 100 + rng.below(15_000);
            let both = rng.chance(0.5);
            for (from, to) in [(host, other), (other, host)].into_iter().take(1 + usize::from(both)) {
                push(0, Fault::Firewall { from, to, block });
                push(after, Fault::Firewall { from, to, block: Block::Nothing });
            }
        }
        Kind::Restart => {
            let back_s = if rng.chance(0.2) { 3_600 } else { 0 };
            push(0, Fault::Restart { host, down_ms: rng.below(5_000).min(left.saturating_sub(10)), back_s });
        }
        Kind::Close => {
            push(0, Fault::Close { host });
            if rng.chance(0.3) {
                push(rng.below(200), Fault::Close { host: other });
            }
        }
        Kind::Clock => push(0, Fault::Jump { host, ms: [300, 5_000, 3_600_000][rng.below(3) as usize] }),
        Kind::Suspend => {
            let ms = [200, 3_000, 40_000][rng.below(3) as usize];
            push(0, Fault::Suspend { host, ms: ms.min(left.saturating_sub(10)), clock_goes_on: rng.chance(0.5) });
        }
        Kind::Readdress => {
            push(0, Fault::Readdress { host, interface });
            if rng.chance(0.3) {
                push(rng.below(200), Fault::Readdress { host: other, interface: 0 });
            }
        }
        Kind::Rebind => push(0, Fault::Rebind { host: plan.hosts.len() - 1, interface: 0 }),
        Kind::Plug => {
            push(0, Fault::Unplug { host, interface });
            push(20 + rng.below(10_000), Fault::Plug { host, interface });
        }
        Kind::Burst => {
            let bytes = 50 + rng.below(1_200) as u16;
            push(0, Fault::Burst { from: host, to: other, packets: 20 + rng.below(150) as u32, bytes });
        }
        Kind::Flap => (0..2 + rng.below(8)).for_each(|flap| {
            push(flap * 900, link(LinkFault::Down));
            push(flap * 900 + 50 + rng.below(800), link(LinkFault::Up));
        }),
        Kind::Forge | Kind::Replay | Kind::Corrupt => push(0, Fault::Attack(stranger(rng, kind, host, other))),
        Kind::Hostile => {
            let victims: Vec<usize> = (0..plan.hosts.len()).filter(|host| !plan.hosts[*host].hostile).collect();
            let victim = victims[rng.below(victims.len() as u64) as usize];
            hostile(rng, 1, victim, &mut push);
        }
    }
}

fn stranger(rng: &mut Rng, kind: Kind, host: usize, other: usize) -> Attack {
    let source = if rng.chance(0.5) { Source::Claimed } else { Source::Bystander(1 + rng.below(200) as u8) };
    match kind {
        Kind::Replay => Attack::Replay {
            pick: rng.next_u64() as u32,
            to: rng.chance(0.2).then_some(host),
            source,
            count: 1 + rng.below(20) as u32,
        },
        Kind::Corrupt => Attack::Corrupt { from: host, to: other, packets: 1 + rng.below(10) as u32 },
        _ => {
            let what = match rng.below(10) {
                0 => Forgery::Noise,
                1 | 2 => Forgery::Esp,
                3 => Forgery::I1,
                _ => Forgery::Hip(rng.below(8) as u8),
            };
            let (count, interval_us) = [(1, 0), (10, 1_000), (300, 200)][rng.below(3) as usize];
            Attack::Forge { to: host, claims: other, what, source, count, interval_us }
        }
    }
}

fn hostile(rng: &mut Rng, host: usize, victim: usize, push: &mut impl FnMut(u64, Fault)) {
    let attack = match rng.below(6) {
        0 => {
            // It asks for something to be sent to it, and then says that it is elsewhere.
            push(300, Fault::Burst { from: victim, to: host, packets: 200, bytes: 1_200 });
            push(900, Fault::Burst { from: victim, to: host, packets: 200, bytes: 1_200 });
            Attack::StealAddress { host, bystander: 1 + rng.below(200) as u8 }
        }
        1 => Attack::Optimistic {
            host,
            victim,
            reports: 1 + rng.below(60) as u32,
            interval_us: 1_000 + rng.below(20_000),
        },
        2 | 3 => Attack::Gibberish { host, victim, reports: 1 + rng.below(40) as u32 },
        4 => {
            let number = [u32::MAX, u32::MAX - 1, u32::MAX - 1_024, 1 << 31][rng.below(4) as usize];
            Attack::Sequence { host, victim, number }
        }
        _ => Attack::Hoard { host, victim, flows: 1 + rng.below(6) as u16, packets: 20, refresh_ms: 300, times: 8 },
    };
    push(0, Fault::Attack(attack));
}

/// What happens in the good network after the storm.
fn epilogue(rng: &mut Rng, plan: &Plan) -> Vec<Fault> {
    let host = rng.below(plan.hosts.len() as u64) as usize;
    let last = plan.hosts.len() - 1;
    let translated = plan.hosts[last].interfaces.iter().any(|access| access.nat.is_some());
    match rng.below(6) {
        0 | 1 => vec![Fault::Restart { host, down_ms: rng.below(2_000), back_s: 0 }],
        2 if translated => vec![Fault::Rebind { host: last, interface: 0 }],
        2 | 3 => vec![Fault::Readdress { host, interface: 0 }],
        4 => vec![Fault::Close { host }],
        5 if plan.hosts.iter().any(|host| host.renew_at > 0) => vec![Fault::Wait { ms: 15_000 }],
        _ => Vec::new(),
    }
}
