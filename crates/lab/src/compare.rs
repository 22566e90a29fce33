//! One scenario in virtual and in real time, side by side.

use std::fmt;
use std::path::Path;

use scenario::Scenario;
use serde::Serialize;

use crate::LabError;
use crate::progress::Progress;
use crate::report::Report;
use crate::run::{Options, run};

/// Goodput may deviate by this part of what was measured in real time.
const GOODPUT: f64 = 0.1;
/// A friendliness factor may deviate by so much.
const FRIENDLINESS: f64 = 0.15;

/// What a scenario gave in virtual and in real time. It serialises for scripts; its `Display` is the table for people.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The scenario's name.
    pub name: String,
    /// What is compared: the means over all runs.
    pub rows: Vec<Row>,
    /// Whether every row agrees.
    pub agree: bool,
    /// All of what virtual time gave, run by run.
    #[serde(rename = "virtual")]
    pub virtual_time: Vec<Report>,
    /// All of what real time gave.
    pub real: Vec<Report>,
}

/// One number from both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    pub what: String,
    /// In virtual time.
    #[serde(rename = "virtual")]
    pub virtual_time: f64,
    /// In real time.
    pub real: f64,
    /// Virtual less real: a part of the real number for goodput, the difference for factors and times.
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

/// Runs `scenario` in virtual time, then in real time, so many times each (once at least) with seeds that follow each other.
/// Captures and logs go to a directory for each run in `options.directory`.
///
/// What flows that compete get of a full queue scatters from run to run, in both: means of several tell more.
///
/// # Errors
/// As [`run`].
pub fn compare(
    scenario: &Scenario,
    runs: u32,
    options: &Options,
    progress: &mut Progress,
) -> Result<Comparison, LabError> {
    let mut several = |virtual_time, name: &str| {
        progress.say(&format!("in {name} time:"));
        let each = (0..runs.max(1)).map(|number| {
            let name = if number == 0 { name.to_owned() } else { format!("{name}-{}", number + 1) };
            let directory = options.directory.as_deref().map(|directory: &Path| directory.join(name));
            let mut scenario = scenario.clone();
            scenario.seed = scenario.seed.wrapping_add(number.into());
            run(&scenario, &Options { virtual_time, directory, ..options.clone() }, progress)
        });
        each.collect::<Result<Vec<_>, _>>()
    };
    Ok(Comparison::new(several(true, "virtual")?, several(false, "real")?))
}

impl Comparison {
    fn new(virtual_time: Vec<Report>, real: Vec<Report>) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        for (run, both) in virtual_time.iter().zip(&real).enumerate() {
            // Every run has the same rows.
            for (place, row) in rows_of(both).into_iter().enumerate() {
                match rows.get_mut(place) {
                    Some(mean) => *mean = mean.with(run, &row),
                    None => rows.push(row),
                }
            }
        }
        Self {
            name: real.first().map_or_else(String::new, |report| report.name.clone()),
            agree: rows.iter().all(|row| row.agrees != Some(false)),
            rows,
            virtual_time,
            real,
        }
    }
}

/// What is compared of one run in both.
fn rows_of((virtual_time, real): (&Report, &Report)) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |kind, what: String, [one, other]: [Option<f64>; 2]| {
        if let (Some(one), Some(other)) = (one, other) {
            rows.push(Row::new(kind, what, one, other));
        }
    };
    for (path, (one, other)) in virtual_time.single_mbps.iter().zip(&real.single_mbps).enumerate() {
        row(Kind::Goodput, format!("path {} alone", path + 1), [Some(*one), Some(*other)]);
    }
    for (one, other) in virtual_time.flows.iter().zip(&real.flows) {
        let what = match virtual_time.flows.len() {
            1 => "together".to_owned(),
            _ => format!("{}, {} with {}", one.name, one.protocol, other.congestion),
        };
        row(Kind::Goodput, what, [Some(one.mbps), Some(other.mbps)]);
    }
    let both = [virtual_time, real];
    row(Kind::Ratio, "ratio to the sum".to_owned(), both.map(|report| report.ratio));
    row(Kind::Friendliness, "FF".to_owned(), both.map(|report| report.ff));
    row(Kind::Friendliness, "FF, shared paths".to_owned(), both.map(|report| report.ff_shared));
    row(Kind::Time, "longest stall, ms".to_owned(), both.map(|report| Some(report.longest_stall_ms)));
    rows
}

impl Row {
    fn new(kind: Kind, what: String, virtual_time: f64, real: f64) -> Self {
        let deviation = match kind {
            Kind::Goodput => virtual_time / real - 1.0,
            Kind::Ratio | Kind::Friendliness | Kind::Time => virtual_time - real,
        };
        let agrees = match kind {
            Kind::Goodput => Some(deviation.abs() <= GOODPUT),
            Kind::Friendliness => Some(deviation.abs() <= FRIENDLINESS),
            Kind::Ratio | Kind::Time => None,
        };
        Self { what, virtual_time, real, deviation, agrees, kind }
    }

    /// The mean of what so many runs gave, and of one more.
    fn with(&self, runs: usize, other: &Self) -> Self {
        let mean = |sum: f64, one: f64| sum + (one - sum) / (runs + 1) as f64;
        let (virtual_time, real) = (mean(self.virtual_time, other.virtual_time), mean(self.real, other.real));
        Self::new(self.kind, self.what.clone(), virtual_time, real)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.real.len() {
            1 => writeln!(f, "{}", self.name)?,
            runs => writeln!(f, "{}, mean of {runs} runs", self.name)?,
        }
        let width = self.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        writeln!(f, "{:width$}  {:>9}  {:>9}  {:>9}", "", "virtual", "real", "deviation")?;
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
            let (one, other) = (row.virtual_time, row.real);
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
        let agrees = |kind, one, other| Row::new(kind, String::new(), one, other).agrees;
        assert_eq!(agrees(Kind::Goodput, 10.9, 10.0), Some(true));
        assert_eq!(agrees(Kind::Goodput, 8.9, 10.0), Some(false));
        assert_eq!(agrees(Kind::Goodput, 1.0, 0.0), Some(false));
        assert_eq!(agrees(Kind::Friendliness, 1.1, 1.0), Some(true));
        assert_eq!(agrees(Kind::Friendliness, 0.8, 1.0), Some(false));
        assert_eq!(agrees(Kind::Time, 0.8, 1.0), None);
    }

    #[test]
    fn of_several_runs_the_means_are_judged() {
        let row = |one, other| Row::new(Kind::Friendliness, String::new(), one, other);
        let both = row(1.3, 1.0).with(1, &row(0.8, 1.0));
        assert_eq!((both.agrees, both.virtual_time, both.real), (Some(true), 1.05, 1.0));
        assert_eq!(both.with(2, &row(2.4, 1.0)), row(1.5, 1.0));
    }
}
