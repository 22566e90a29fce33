//! One scenario between two kinds of hosts, side by side: real, virtual, simulated.

use std::fmt;
use std::path::Path;

use fairness::statistics::Estimate;
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
/// Where no number of runs is given, there are no more than this.
const MOST_RUNS: u32 = 10;

/// What a scenario gave between two kinds of hosts. It serialises for scripts; its `Display` is the table for people.
#[derive(Clone, Debug, Default, Serialize)]
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
    /// Half of the deviation's 95 % confidence interval; absent with one run.
    pub half_width: Option<f64>,
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

/// Runs `scenario` between the hosts of both sides by turns, so many times each (once at least), with seeds that follow each other.
/// `None` stops as soon as the means tell, and after ten runs in any case: what flows that compete get of a full queue scatters
/// from run to run, in all. Captures and logs go to a directory for each run in `options.directory`.
///
/// # Errors
/// As [`run`].
pub fn compare(
    scenario: &Scenario,
    sides: [Hosts; 2],
    runs: Option<u32>,
    options: &Options,
    progress: &mut Progress,
) -> Result<Comparison, LabError> {
    let mut comparison =
        Comparison { name: scenario.name.clone(), sides: sides.map(Hosts::name), ..Comparison::default() };
    for number in 0..runs.unwrap_or(MOST_RUNS).max(1) {
        if runs.is_none() && comparison.is_decided() {
            break;
        }
        let mut once = |hosts: Hosts| {
            let name = if number == 0 { hosts.name().to_owned() } else { format!("{}-{}", hosts.name(), number + 1) };
            progress.say(&format!("{}, run {}:", hosts.name(), number + 1));
            let directory = options.directory.as_deref().map(|directory: &Path| directory.join(name));
            let mut scenario = scenario.clone();
            scenario.seed = scenario.seed.wrapping_add(number.into());
            run(&scenario, &Options { hosts, directory, ..options.clone() }, progress)
        };
        let [one, other] = sides;
        comparison.add([once(one)?, once(other)?]);
    }
    Ok(comparison)
}

impl Comparison {
    /// One more run of both.
    fn add(&mut self, both: [Report; 2]) {
        for (reports, report) in self.reports.iter_mut().zip(both) {
            reports.push(report);
        }
        let [one, other] = &self.reports;
        let runs: Vec<Vec<Row>> = one.iter().zip(other).map(|(one, other)| rows_of([one, other])).collect();
        // Every run has the same rows.
        let rows = (0..runs[0].len()).map(|place| Row::mean_of(runs.iter().filter_map(|rows| rows.get(place))));
        self.rows = rows.flatten().collect();
        self.agree = self.rows.iter().all(|row| row.agrees != Some(false));
    }

    /// Whether more runs would hardly change what is said.
    fn is_decided(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(Row::is_decided)
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
        let agrees = kind.bound().map(|bound| deviation.abs() <= bound);
        Self { what, values, deviation, half_width: None, agrees, kind }
    }

    /// The mean of the same row of several runs, if there is one.
    fn mean_of<'a>(runs: impl Iterator<Item = &'a Self> + Clone) -> Option<Self> {
        let first = runs.clone().next()?;
        let side = |side: usize| Estimate::of(&runs.clone().map(|row| row.values[side]).collect::<Vec<_>>());
        let (one, other) = (side(0)?, side(1)?);
        let scale = if first.kind == Kind::Goodput { other.mean } else { 1.0 };
        let half_width = one.half_width.zip(other.half_width).map(|(one, other)| one.hypot(other) / scale);
        Some(Self { half_width, ..Self::new(first.kind, first.what.clone(), [one.mean, other.mean]) })
    }

    /// Whether the deviation is clearly on one side of its bound. One run tells of goodput that agrees, and of nothing else.
    fn is_decided(&self) -> bool {
        match (self.kind.bound(), self.half_width) {
            (None, _) => true,
            (Some(_), None) => self.kind == Kind::Goodput && self.agrees == Some(true),
            (Some(bound), Some(half_width)) => (self.deviation.abs() - bound).abs() >= half_width,
        }
    }
}

impl Kind {
    fn bound(self) -> Option<f64> {
        match self {
            Self::Goodput => Some(GOODPUT),
            Self::Friendliness => Some(FRIENDLINESS),
            Self::Ratio | Self::Time => None,
        }
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
            let (unit, scale, of_deviation, digits) = match row.kind {
                Kind::Goodput => (" %", 100.0, 1, 2),
                Kind::Ratio | Kind::Friendliness => ("", 1.0, 3, 3),
                Kind::Time => ("", 1.0, 0, 0),
            };
            let deviation = format!("{:+.of_deviation$}{unit}", row.deviation * scale);
            let [one, other] = row.values;
            write!(f, "{:width$}  {one:>9.digits$}  {other:>9.digits$}  {deviation:>9}", row.what)?;
            if let Some(half_width) = row.half_width {
                write!(f, " ± {:.of_deviation$}", half_width * scale)?;
            }
            writeln!(f, "{}", if row.agrees == Some(false) { "  !" } else { "" })?;
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
        let rows = |values: &[f64]| -> Vec<Row> {
            values.iter().map(|value| Row::new(Kind::Friendliness, String::new(), [*value, 1.0])).collect()
        };
        let mean = |values: &[f64]| Row::mean_of(rows(values).iter()).unwrap();
        let both = mean(&[1.3, 0.8]);
        assert_eq!((both.agrees, both.is_decided()), (Some(true), false));
        assert!((both.values[0] - 1.05).abs() < 1e-12 && both.values[1] == 1.0);
        // Student's t for two degrees of freedom is 4.303, the standard error of these three 0.1/√3.
        let three = mean(&[0.9, 1.0, 1.1]);
        assert!((three.half_width.unwrap() - 4.303 * 0.1 / 3f64.sqrt()).abs() < 1e-3, "{three:?}");
        assert!(!three.is_decided() && mean(&[0.99, 1.0, 1.01]).is_decided());
        assert!(mean(&[1.39, 1.4, 1.41]).is_decided(), "that they do not agree is known, too");
        assert!(!mean(&[1.0]).is_decided(), "one run tells nothing of friendliness");
    }
}
