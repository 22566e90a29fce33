//! A random network, and the scenario in which two compete in it.

use std::fmt::Write as _;

use clock::{Rng, Streams};
use scenario::Document;
use text::Diagnostic;

use super::{Measurement, Sender};
use crate::draw::logarithmic;

/// Mbit/s of a path's slowest link, evenly on a scale of logarithms.
const RATES: (f64, f64) = (3.0, 30.0);
/// ms one way of it, likewise.
const DELAYS: (f64, f64) = (6.0, 60.0);
/// In bandwidth-delay products, likewise; packets at least.
const QUEUES: (f64, f64) = (0.2, 5.0);
const LEAST_QUEUE: f64 = 5.0;
/// ms one way from each sender to the bottleneck, evenly.
const EXTRA: (f64, f64) = (0.0, 5.0);
/// The same of every path but the first, where paths into one bottleneck are unequal.
const UNEQUAL: (f64, f64) = (0.0, 40.0);
/// Of a packet.
const BITS: f64 = 12_000.0;
/// What the part of the networks with each queue discipline is.
const DISCIPLINES: [(Discipline, f64); 5] = [
    (Discipline::DropTail, 0.6),
    (Discipline::Red, 0.1),
    (Discipline::Codel, 0.1),
    (Discipline::FqCodel, 0.1),
    (Discipline::Pie, 0.1),
];

/// How a queue manages its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    DropTail,
    Red,
    Codel,
    FqCodel,
    Pie,
}

impl Discipline {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Red => "red",
            Self::Codel => "codel",
            Self::FqCodel => "fq_codel",
            Self::Pie => "pie",
        }
    }
}

/// What the paths share with the one that competes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The first path its bottleneck; the others have their own.
    First,
    /// All of them, one bottleneck.
    All,
}

impl Shared {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::First => "the first path",
            Self::All => "all paths",
        }
    }
}

/// One bottleneck.
#[derive(Clone, Copy, Debug)]
struct Bottleneck {
    /// kbit/s.
    rate: f64,
    /// ms one way.
    delay: f64,
    /// In bandwidth-delay products; the limit of a discipline other than drop-tail is five of them.
    queue: f64,
}

/// One network.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) number: u64,
    pub(super) shared: Shared,
    pub(super) discipline: Discipline,
    /// One, or one for each path.
    bottlenecks: Vec<Bottleneck>,
    /// ms one way from the sender into the bottleneck on each path, and of the competitor.
    extra: Vec<f64>,
    competitor: f64,
}

impl Network {
    /// The network of this number, always the same for the same seed.
    pub(super) fn draw(seed: u64, number: u64) -> Self {
        let mut rng = Streams::new(seed).stream(&format!("network {number}"));
        let paths = 2 + rng.below(2) as usize;
        let shared = if number.is_multiple_of(2) { Shared::All } else { Shared::First };
        let mut part = rng.unit();
        let chosen = DISCIPLINES.iter().find(|(_, share)| {
            part -= share;
            part < 0.0
        });
        let discipline = chosen.map_or(Discipline::DropTail, |(discipline, _)| *discipline);
        let count = if shared == Shared::All { 1 } else { paths };
        let bottlenecks = (0..count).map(|_| Bottleneck::draw(&mut rng)).collect();
        let others = if shared == Shared::All && rng.chance(0.5) { UNEQUAL } else { EXTRA };
        let mut extra = |range: (f64, f64)| rng.range(range.0, range.1);
        let extra_of_paths = (0..paths).map(|path| extra(if path == 0 { EXTRA } else { others })).collect();
        Self { number, shared, discipline, bottlenecks, extra: extra_of_paths, competitor: extra(EXTRA) }
    }

    /// The first bottleneck in a line: Mbit/s, ms there and back, and what may wait.
    pub(super) fn describe(&self) -> String {
        let Some(first) = self.bottlenecks.first() else { return String::new() };
        let queue = match self.discipline {
            Discipline::DropTail => format!("{:.2} BDP", first.queue),
            managed => managed.name().to_owned(),
        };
        format!("{:.1} Mbit/s, {:.0} ms, {queue}, {} paths", first.rate / 1e3, 2.0 * first.delay, self.extra.len())
    }

    /// The scenario in which `tested` and some of `beside` compete in it.
    ///
    /// # Errors
    /// A sender that the simulator does not have.
    pub(super) fn scenario(
        &self,
        measurement: &Measurement,
        (tested, inside): (&Sender, Option<&str>),
        beside: &Sender,
    ) -> Result<Document, Diagnostic> {
        self.document(measurement, (tested, tested.keys(inside)), (beside, beside.keys(None)))
    }

    /// The same for the laboratory, where the program inside is none of a scenario's.
    ///
    /// # Errors
    /// As those of `scenario`.
    pub(super) fn in_laboratory(
        &self,
        measurement: &Measurement,
        tested: &Sender,
        beside: &Sender,
    ) -> Result<Document, Diagnostic> {
        self.document(measurement, (tested, tested.laboratory_keys()), (beside, beside.laboratory_keys()))
    }

    fn document(
        &self,
        measurement: &Measurement,
        tested: (&Sender, String),
        beside: (&Sender, String),
    ) -> Result<Document, Diagnostic> {
        let mut text = String::new();
        let seed = self.number;
        let warm_up = measurement.warm_up.as_secs_f64();
        let all = warm_up + measurement.measured.as_secs_f64();
        let _ = writeln!(
            text,
            "name = \"random network\"\nduration = \"{all:.0}s\"\nwarm_up = \"{warm_up:.0}s\"\nseed = {seed}\nprocessing = \"{}\"",
            measurement.processing.replace(['"', '\\', '\n'], "?")
        );
        self.links(&mut text);
        self.flow(&mut text, ("tested", "b", "a"), tested, 1);
        self.flow(&mut text, ("beside", "c", "d"), beside, measurement.rivals);
        Document::parse(&text, "random network")
    }

    /// b to s over the node bN on path N, from s to r over the bottleneck, from there to a over aN; c and d likewise.
    fn links(&self, text: &mut String) {
        let mut link = |from: &str, to: &str, rest: &str| {
            let _ = writeln!(text, "[[link]]\nbetween = [\"{from}\", \"{to}\"]\n{rest}");
        };
        for (index, bottleneck) in self.bottlenecks.iter().enumerate() {
            let rest = format!(
                "rate = \"{:.0}kbit/s\"\ndelay = \"{:.0}us\"\nqueue = {}",
                bottleneck.rate,
                bottleneck.delay * 1e3,
                bottleneck.queue(self.discipline)
            );
            link(&format!("s{index}"), &format!("r{index}"), &rest);
        }
        for (path, extra) in self.extra.iter().enumerate() {
            let bottleneck = path.min(self.bottlenecks.len().saturating_sub(1));
            // The competitor has a way of its own into each bottleneck, of which it uses the first unless it has several paths.
            let ways = [("b", "a", *extra), ("c", "d", if path == 0 { self.competitor } else { *extra })];
            for (from, to, extra) in ways {
                link(from, &format!("{from}{path}"), &format!("delay = \"{:.0}us\"", extra * 1e3));
                link(&format!("{from}{path}"), &format!("s{bottleneck}"), "delay = \"0ms\"");
                link(&format!("r{bottleneck}"), &format!("{to}{path}"), "delay = \"0ms\"");
                link(&format!("{to}{path}"), to, "delay = \"0ms\"");
            }
        }
    }

    fn flow(
        &self,
        text: &mut String,
        (name, from, to): (&str, &str, &str),
        (sender, keys): (&Sender, String),
        count: u32,
    ) {
        let paths = if sender.is_multipath() { self.extra.len() } else { 1 };
        let path = |path: usize| {
            let bottleneck = path.min(self.bottlenecks.len().saturating_sub(1));
            format!("[\"{from}\", \"{from}{path}\", \"s{bottleneck}\", \"r{bottleneck}\", \"{to}{path}\", \"{to}\"]")
        };
        let paths = (0..paths).map(path).collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "[[flow]]\nname = \"{name}\"\ncount = {count}\nfrom = \"{from}\"\nto = \"{to}\"\npaths = [{paths}]\nstart = [\"0s\", \"1s\"]\n{keys}"
        );
    }
}

impl Bottleneck {
    fn draw(rng: &mut Rng) -> Self {
        let (rate, delay) = (logarithmic(rng, RATES) * 1e3, logarithmic(rng, DELAYS));
        Self { rate, delay, queue: logarithmic(rng, QUEUES) }
    }

    /// In whole packets, so that it does not depend on who competes.
    fn queue(&self, discipline: Discipline) -> String {
        let bdp = self.rate * 2.0 * self.delay / BITS;
        let packets = |times: f64| (times * bdp).round().max(LEAST_QUEUE);
        let limit = packets(QUEUES.1);
        match discipline {
            Discipline::DropTail => format!("\"{:.0}p\"", packets(self.queue)),
            // S. Floyd's advice: from five packets, to three times as many; here a quarter of what is under way.
            Discipline::Red => {
                let least = packets(0.25);
                let most = 3.0 * least;
                format!(
                    "{{ kind = \"red\", min = \"{least:.0}p\", max = \"{most:.0}p\", limit = \"{:.0}p\", gentle = true }}",
                    limit.max(3.0 * most)
                )
            }
            managed => format!("{{ kind = \"{}\", limit = \"{:.0}p\" }}", managed.name(), limit.max(100.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_as_described_and_the_same_again() {
        let networks: Vec<Network> = (1..=1000).map(|number| Network::draw(7, number)).collect();
        let share =
            |what: &dyn Fn(&Network) -> bool| networks.iter().filter(|network| what(network)).count() as f64 / 1e3;
        assert_eq!(share(&|network| network.shared == Shared::All), 0.5);
        for (discipline, part) in DISCIPLINES {
            let drawn = share(&|network| network.discipline == discipline);
            // Four standard deviations of a proportion.
            assert!((drawn - part).abs() < 4.0 * (part * (1.0 - part) / 1e3).sqrt(), "{discipline:?}: {drawn}");
        }
        for network in &networks {
            assert!((2..=3).contains(&network.extra.len()));
            assert_eq!(network.bottlenecks.len(), if network.shared == Shared::All { 1 } else { network.extra.len() });
            for Bottleneck { rate, delay, queue } in &network.bottlenecks {
                assert!((3e3..=30e3).contains(rate) && (6.0..=60.0).contains(delay) && (0.2..=5.0).contains(queue));
            }
        }
        let again = Network::draw(7, 3);
        assert_eq!(format!("{again:?}"), format!("{:?}", networks[2]));
        assert_ne!(format!("{again:?}"), format!("{:?}", Network::draw(8, 3)));
    }
}
