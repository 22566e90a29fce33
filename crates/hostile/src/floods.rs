//! Floods of forged packets beside a good association.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use hip::identity::{Algorithm, HostIdentity};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use wire::hip::PacketKind;

use crate::Failure;
use crate::clockwork::pause;
use crate::flood::{Flood, Flooded, Forge};
use crate::forge::{self, Solver};
use crate::ground::{Ground, Plan, address};
use crate::load::{Knock, Load, Service};
use crate::report::{Outcome, Row, counted};
use crate::tap::{Overheard, PORT, Tap};
use crate::{Attack, Options};

/// What a download through the good association is limited to, bit/s.
const RATE: u64 = 50_000_000;
/// How much may be lost of it, and added to the round trip, and to the daemon's memory (kB).
const KEPT: f64 = 0.9;
const ADDED_MS: f64 = 20.0;
const GROWN: u64 = 16 << 10;

/// The floods: name, what it is, how it is made.
pub(crate) const FLOODS: [Attack; 14] = [
    Attack { name: "i1", told: "I1 from the attacker's address", run: |options| flood(options, "i1") },
    Attack {
        name: "i1-spoofed",
        told: "I1 from all addresses of the world",
        run: |options| flood(options, "i1-spoofed"),
    },
    Attack { name: "i2-unsolved", told: "I2 with a wrong puzzle", run: |options| flood(options, "i2-unsolved") },
    Attack {
        name: "i2-solved",
        told: "I2 with one right puzzle and no signature",
        run: |options| flood(options, "i2-solved"),
    },
    Attack { name: "i2-fresh", told: "I2s each with a puzzle solved anew", run: |options| flood(options, "i2-fresh") },
    Attack { name: "r1", told: "R1 forged at a host that waits for one", run: |options| flood(options, "r1") },
    Attack { name: "notify", told: "NOTIFY forged", run: |options| flood(options, "notify") },
    Attack { name: "update", told: "UPDATE forged", run: |options| flood(options, "update") },
    Attack { name: "update-replayed", told: "UPDATE replayed", run: |options| flood(options, "update-replayed") },
    Attack { name: "close", told: "CLOSE forged", run: |options| flood(options, "close") },
    Attack {
        name: "close-replayed",
        told: "CLOSE of another peer replayed",
        run: |options| flood(options, "close-replayed"),
    },
    Attack { name: "esp", told: "ESP of a true SPI with garbage", run: |options| flood(options, "esp") },
    Attack { name: "esp-unknown", told: "ESP of an unknown SPI", run: |options| flood(options, "esp-unknown") },
    Attack { name: "garbage", told: "UDP with garbage", run: |options| flood(options, "garbage") },
];

fn victim() -> SocketAddrV4 {
    SocketAddrV4::new(address("A"), PORT)
}

fn attacker() -> SocketAddrV4 {
    SocketAddrV4::new(address("X"), PORT)
}

fn friend() -> SocketAddrV4 {
    SocketAddrV4::new(address("B"), PORT)
}

/// An address of a network for benchmarks (RFC 2544), another each time.
fn anywhere(number: u64) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(0xc612_0000 | (number.wrapping_mul(2_654_435_761) as u32 & 0x1_ffff)), PORT)
}

/// Sends always the same, but for a number in it.
fn same(from: SocketAddrV4, template: Vec<u8>) -> Forge {
    Box::new(move |number, out| {
        out.extend_from_slice(&template);
        forge::vary(out, number);
        (from, victim())
    })
}

/// Sends what was seen, word for word, in the name of a peer: from where it came, or from where B is.
fn replay(seen: Vec<&Overheard>) -> Result<Forge, Failure> {
    if seen.is_empty() {
        return Err("nothing was seen that could be replayed".into());
    }
    let seen: Vec<Overheard> = seen.into_iter().cloned().collect();
    Ok(Box::new(move |number, out| {
        // The list is not empty.
        let one = seen.get(number as usize % seen.len());
        out.extend_from_slice(one.map_or(&[], |one| &one.bytes));
        let there = one.map(|one| one.from).filter(|from| from.ip().octets()[1] == 77);
        (there.unwrap_or(friend()), victim())
    }))
}

/// One flood from its preparation to its row in the table.
fn flood(options: &Options, name: &'static str) -> Result<Row, Failure> {
    let absent = HostIdentity::generate(Algorithm::EcdsaP384, &mut ChaCha20Rng::seed_from_u64(5))?;
    let plan = Plan {
        second_link: name == "update-replayed",
        third_daemon: name == "close-replayed",
        absent_peer: (name == "r1").then(|| absent.hit()),
        ..Plan::default()
    };
    let mut ground = Ground::new(&options.sinnet, plan)?;
    let tap = Tap::start(&ground.switch, &[])?;
    ground.start_all()?;
    ground.associate(if name == "update-replayed" { 2 } else { 1 })?;
    let load = Load::start(&ground, RATE)?;
    pause(Duration::from_secs(2))?;
    let forge = prepare(&ground, name, tap, &absent)?;
    let quiet = measure(&load, options.seconds)?;
    // Somebody wants to talk to the absent peer all the time.
    let _knock = if name == "r1" { Some(Knock::start(ground.host("A")?, absent.hit().address())?) } else { None };
    let (before, began) = (ground.status("A")?, ground.usage("A"));
    let rate = if name == "i2-fresh" { 0 } else { options.rate };
    let running = Flood::start(ground.host("X")?, rate, forge)?;
    pause(Duration::from_millis(500))?;
    let middle = ground.usage("A");
    let under = measure(&load, options.seconds)?;
    let (flooded, ended) = (running.stop(), ground.usage("A"));
    pause(Duration::from_millis(500))?;
    let after = ground.status("A");
    let alive = after.is_ok();
    let counters = after.map(|after| counted(&before, &after)).unwrap_or_default();
    // One second more passes while echoes are waited for.
    let cpu = (ended.seconds - middle.seconds) * 100.0 / (options.seconds + 1.0);
    let grown = ended.rss.saturating_sub(began.rss);
    Ok(judge(name, quiet, under, flooded, Daemon { alive, cpu, rss: [began.rss, ended.rss], grown }, counters))
}

fn measure(load: &Load, seconds: f64) -> Result<Service, Failure> {
    let first = load.mark();
    pause(Duration::from_secs_f64(seconds))?;
    load.between(first, load.mark())
}

struct Daemon {
    alive: bool,
    cpu: f64,
    rss: [u64; 2],
    grown: u64,
}

fn judge(
    name: &str,
    quiet: Service,
    under: Service,
    flooded: Flooded,
    daemon: Daemon,
    counters: std::collections::BTreeMap<String, i64>,
) -> Row {
    let kept = under.mbps / quiet.mbps;
    let added = under.ping_p99 - quiet.ping_p99;
    let mut harm = Vec::new();
    if !daemon.alive {
        harm.push("the daemon does not answer".to_owned());
    }
    if kept < KEPT {
        harm.push(format!("{:.0} % of the goodput is gone", 100.0 * (1.0 - kept)));
    }
    if added > ADDED_MS {
        harm.push(format!("{added:.0} ms more of ping"));
    }
    if under.ping_lost > quiet.ping_lost + 5.0 {
        harm.push(format!("{:.0} % of echoes lost", under.ping_lost));
    }
    if daemon.grown > GROWN {
        harm.push(format!("{} MiB more memory", daemon.grown >> 10));
    }
    Row {
        attack: name.to_owned(),
        outcome: Outcome::of(harm),
        packets_per_second: Some(flooded.rate),
        attacker_cpu: Some(flooded.cpu),
        daemon_cpu: Some(daemon.cpu),
        rss_kb: Some(daemon.rss),
        kept_percent: Some(kept * 100.0),
        quiet: Some(quiet),
        under: Some(under),
        counters,
        ..Row::default()
    }
}

/// What is sent, after everything that has to be seen or asked for before.
fn prepare(ground: &Ground, name: &str, tap: Tap, absent: &HostIdentity) -> Result<Forge, Failure> {
    let (a, b) = (ground.hit("A")?, ground.hit("B")?);
    if name == "close-replayed" {
        crate::load::nudge(ground, "A", "M")?;
        pause(Duration::from_secs(2))?;
        ground.down("M")?;
        pause(Duration::from_secs(1))?;
    }
    let seen = tap.stop();
    Ok(match name {
        "i1" => same(attacker(), forge::i1(b, a)?),
        "i1-spoofed" => {
            let template = forge::i1(b, a)?;
            Box::new(move |number, out| {
                out.extend_from_slice(&template);
                (anywhere(number), victim())
            })
        }
        "i2-unsolved" | "i2-solved" | "i2-fresh" => solved(ground, name)?,
        "r1" => same(SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 99), PORT), forge::r1(absent, a)?),
        "notify" => same(friend(), forge::notify(b, a)?),
        "update" => same(friend(), forge::update(b, a)?),
        "close" => same(friend(), forge::close(b, a)?),
        "update-replayed" => replay(seen.of_kind(PacketKind::Update, a))?,
        "close-replayed" => replay(seen.of_kind(PacketKind::Close, a))?,
        "esp" => {
            let spis = seen.spis.get(&address("A")).and_then(|list| list.last().copied());
            let spi = spis.ok_or("no ESP was seen")?;
            Box::new(move |number, out| {
                forge::esp(spi, number, 200, out);
                (friend(), victim())
            })
        }
        "esp-unknown" => Box::new(|number, out| {
            forge::esp(0x5000_0000 | number as u32 & 0xff_ffff, number, 200, out);
            (friend(), victim())
        }),
        _ => Box::new(|number, out| {
            out.resize(60 + (number % 40) as usize, number as u8);
            (anywhere(number), victim())
        }),
    })
}

fn solved(ground: &Ground, name: &str) -> Result<Forge, Failure> {
    let a = ground.hit("A")?;
    let socket = ground.host("X")?.run(|| UdpSocket::bind(attacker()))??;
    let mut solver = Solver::new(ground.identity("B")?, a, socket, victim())?;
    let i2 = solver.i2(a).ok_or("the victim's R1 cannot be solved")?;
    Ok(match name {
        "i2-unsolved" => Box::new(move |number, out| {
            out.extend_from_slice(&i2);
            forge::spoil_solution(out, number);
            (attacker(), victim())
        }),
        "i2-solved" => same(attacker(), i2),
        _ => Box::new(move |_, out| {
            if solver.age() > Duration::from_secs(1) {
                // Without an answer the old one has to do.
                let _ = solver.fetch(a);
            }
            out.extend_from_slice(&solver.i2(a).unwrap_or_default());
            (attacker(), victim())
        }),
    })
}
