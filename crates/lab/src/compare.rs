//! One scenario between two kinds of hosts, side by side: real, virtual, simulated.

use std::fmt;
use std::path::Path;

use scenario::Scenario;
use serde::Serialize;

use crate::LabError;
use crate::progress::Progress;
use crate::report::Report;
use crate::run::{Hosts, Options, run};

/// Goodput may deviate by this part of what the second side gave.
const GOODPUT: f64 = 0.1;
/// A friendliness factor may deviate by so much.
const FRIENDLINESS: f64 = 0.15;

/// What a scenario gave between two kinds of hosts. It serialises for scripts; its `Display` is the table for people.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The scenario's name.
    pub name: String,
    /// What is compared with what: "real", "virtual" or "sim".
    pub sides: [&'static str; 2],
    /// The means over all runs.
    pub rows: Vec<Row>,
    /// Whether every row agrees.
    pub agree: bool,
    /// All of what each side gave, run by run.
    pub reports: [Vec<Report>; 2],
}

/// One number from both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    pub what: String,
    /// What each side gave.
    pub values: [f64; 2],
    /// The first less the second: a part of the second for goodput, the difference for factors and times.
    pub deviation: f64,
    /// Whether that is within the bound; absent where there is none.
    pub agrees: Option<bool>,
    #[serde(skip)]
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Mbit/s, compared by part.
    Goodput,
    /// A ratio, only told.
    Ratio,
    /// Compared by difference.
    Friendliness,
    /// Milliseconds, only told: what a kernel adds to a stall depends on the machine.
    Time,
}

/// Runs `scenario` between the hosts of one side, then of the other, so many times each (once at least) with seeds that follow each
/// other. Captures and logs go to a directory for each run in `options.directory`.
///
/// What flows that compete get of a full queue scatters from run to run, in all: means of several tell more.
///
/// # Errors
/// As [`run`].
pub fn compare(
    scenario: &Scenario,
    sides: [Hosts; 2],
    runs: u32,
    options: &Options,
    progress: &mut Progress,
) -> Result<Comparison, LabError> {
    let mut several = |hosts: Hosts| {
        progress.say(&format!("{}:", hosts.name()));
        let each = (0..runs.max(1)).map(|number| {
            let name = if number == 0 { hosts.name().to_owned() } else { format!("{}-{}", hosts.name(), number + 1) };
            let directory = options.directory.as_deref().map(|directory: &Path| directory.join(name));
            let mut scenario = scenario.clone();
            scenario.seed = scenario.seed.wrapping_add(number.into());
            run(&scenario, &Options { hosts, directory, ..options.clone() }, progress)
        });
        each.collect::<Result<Vec<_>, _>>()
    };
    let [one, other] = sides;
    Ok(Comparison::new(sides, [several(one)?, several(other)?]))
}

impl Comparison {
    fn new(sides: [Hosts; 2], reports: [Vec<Report>; 2]) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        let [one, other] = &reports;
        for (run, both) in one.iter().zip(other).enumerate() {
            // Every run has the same rows.
            for (place, row) in rows_of([both.0, both.1]).into_iter().enumerate() {
                match rows.get_mut(place) {
                    Some(mean) => *mean = mean.with(run, &row),
                    None => rows.push(row),
                }
            }
        }
        Self {
            name: one.first().map_or_else(String::new, |report| report.name.clone()),
            sides: sides.map(Hosts::name),
            agree: rows.iter().all(|row| row.agrees != Some(false)),
            rows,
            reports,
        }
    }
}

/// What is compared of one run of both.
fn rows_of(both: [&Report; 2]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |kind, what: String, values: [Option<f64>; 2]| {
        if let [Some(one), Some(other)] = values {
            rows.push(Row::new(kind, what, [one, other]));
        }
    };
    let [first, second] = both;
    for (path, (one, other)) in first.single_mbps.iter().zip(&second.single_mbps).enumerate() {
        row(Kind::Goodput, format!("path {} alone", path + 1), [Some(*one), Some(*other)]);
    }
    for (one, other) in first.flows.iter().zip(&second.flows) {
        let what = match first.flows.len() {
            1 => "together".to_owned(),
            _ => format!("{}, {} with {}", one.name, one.protocol, other.congestion),
        };
        row(Kind::Goodput, what, [Some(one.mbps), Some(other.mbps)]);
    }
    row(Kind::Ratio, "ratio to the sum".to_owned(), both.map(|report| report.ratio));
    row(Kind::Friendliness, "FF".to_owned(), both.map(|report| report.ff));
    row(Kind::Friendliness, "FF, shared paths".to_owned(), both.map(|report| report.ff_shared));
    row(Kind::Time, "longest stall, ms".to_owned(), both.map(|report| Some(report.longest_stall_ms)));
    rows
}

impl Row {
    fn new(kind: Kind, what: String, values: [f64; 2]) -> Self {
        let [one, other] = values;
        let deviation = match kind {
            Kind::Goodput => one / other - 1.0,
            Kind::Ratio | Kind::Friendliness | Kind::Time => one - other,
        };
        let agrees = match kind {
            Kind::Goodput => Some(deviation.abs() <= GOODPUT),
            Kind::Friendliness => Some(deviation.abs() <= FRIENDLINESS),
            Kind::Ratio | Kind::Time => None,
        };
        Self { what, values, deviation, agrees, kind }
    }

    /// The mean of what so many runs gave, and of one more.
    fn with(&self, runs: usize, other: &Self) -> Self {
        let mean = |sum: f64, one: f64| sum + (one - sum) / (runs + 1) as f64;
        let [[a, b], [c, d]] = [self.values, other.values];
        Self::new(self.kind, self.what.clone(), [mean(a, c), mean(b, d)])
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reports[0].len() {
            1 => writeln!(f, "{}", self.name)?,
            runs => writeln!(f, "{}, mean of {runs} runs", self.name)?,
        }
        let width = self.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        let [one, other] = self.sides;
        writeln!(f, "{:width$}  {one:>9}  {other:>9}  {:>9}", "", "deviation")?;
        for row in &self.rows {
            let deviation = match row.kind {
                Kind::Goodput => format!("{:+.1} %", row.deviation * 100.0),
                Kind::Ratio | Kind::Friendliness => format!("{:+.3}", row.deviation),
                Kind::Time => format!("{:+.0}", row.deviation),
            };
            let digits = match row.kind {
                Kind::Goodput => 2,
                Kind::Ratio | Kind::Friendliness => 3,
                Kind::Time => 0,
            };
            let mark = if row.agrees == Some(false) { "  !" } else { "" };
            let [one, other] = row.values;
            writeln!(f, "{:width$}  {one:>9.digits$}  {other:>9.digits$}  {deviation:>9}{mark}", row.what)?;
        }
        match self.agree {
            true => write!(
                f,
                "They agree: goodput in Mbit/s within {:.0} %, friendliness within {FRIENDLINESS}.",
                GOODPUT * 100.0
            ),
            false => write!(
                f,
                "They do not agree where '!' is: goodput within {:.0} %, friendliness within {FRIENDLINESS}.",
                GOODPUT * 100.0
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_parts_for_goodput_and_differences_for_friendliness() {
        let agrees = |kind, one, other| Row::new(kind, String::new(), [one, other]).agrees;
        assert_eq!(agrees(Kind::Goodput, 10.9, 10.0), Some(true));
        assert_eq!(agrees(Kind::Goodput, 8.9, 10.0), Some(false));
        assert_eq!(agrees(Kind::Goodput, 1.0, 0.0), Some(false));
        assert_eq!(agrees(Kind::Friendliness, 1.1, 1.0), Some(true));
        assert_eq!(agrees(Kind::Friendliness, 0.8, 1.0), Some(false));
        assert_eq!(agrees(Kind::Time, 0.8, 1.0), None);
    }

    #[test]
    fn of_several_runs_the_means_are_judged() {
        let row = |one, other| Row::new(Kind::Friendliness, String::new(), [one, other]);
        let both = row(1.3, 1.0).with(1, &row(0.8, 1.0));
        assert_eq!((both.agrees, both.values), (Some(true), [1.05, 1.0]));
        assert_eq!(both.with(2, &row(2.4, 1.0)), row(1.5, 1.0));
    }
}
