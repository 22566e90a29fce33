//! The main job, shown: one TCP connection over several paths, three times.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::error::Step;
use crate::progress::Progress;
use crate::report::Report;
use crate::run::{Hosts, Options, run};
use crate::{LabError, wireshark};

/// The share of the sum of the single paths that all together must reach.
const WANTED: f64 = 0.9;

/// The scenarios, with the names of their directories.
const SCENARIOS: [(&str, &str); 3] = [
    ("two-paths", include_str!("../scenarios/two-paths.toml")),
    ("three-paths", include_str!("../scenarios/three-paths.toml")),
    ("cut", include_str!("../scenarios/cut.toml")),
];

/// What the demonstration showed. It serialises as the summary for scripts; its `Display` is the table for people.
#[derive(Debug, Serialize)]
pub struct Demo {
    /// Whether it ran in virtual time.
    #[serde(rename = "virtual")]
    pub virtual_time: bool,
    /// The scenarios that ran to their end.
    pub scenarios: Vec<Report>,
    /// What kept the others from it: name and sentence.
    pub failures: Vec<(String, String)>,
    #[serde(skip)]
    directory: PathBuf,
}

/// Runs the demonstration; `options.directory` gets captures, key logs and `summary.json`. One scenario that fails does not keep the others from running.
///
/// # Errors
/// When nothing can be run at all or the summary cannot be written.
pub fn demo(options: &Options, progress: &mut Progress) -> Result<Demo, LabError> {
    let directory = options.directory.clone().unwrap_or_else(|| PathBuf::from("target/demo"));
    fs::create_dir_all(&directory).step(format!("making the directory {}", directory.display()))?;
    let mut demo = Demo {
        virtual_time: options.hosts != Hosts::Real,
        scenarios: Vec::new(),
        failures: Vec::new(),
        directory: directory.clone(),
    };
    for (name, text) in SCENARIOS {
        let options = Options { directory: Some(directory.join(name)), ..options.clone() };
        let scenario = scenario::parse(text, &format!("scenarios/lab/{name}.toml")).map_err(LabError::from);
        match scenario.and_then(|scenario| run(&scenario, &options, progress)) {
            Ok(report) => demo.scenarios.push(report),
            Err(error @ (LabError::Forbidden { .. } | LabError::MissingProgram { .. } | LabError::Interrupted)) => {
                return Err(error);
            }
            Err(error) => {
                progress.say(&format!("  {error}"));
                demo.failures.push((name.to_owned(), error.to_string()));
            }
        }
    }
    let summary = serde_json::to_string_pretty(&demo).map_err(std::io::Error::other).step("writing the summary")?;
    fs::write(directory.join("summary.json"), summary + "\n").step("writing the summary")?;
    Ok(demo)
}

impl Demo {
    /// Whether everything held: every file identical, every transfer complete, and where the paths were there all the time, at least
    /// 90 % of their sum.
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.scenarios.iter().all(passed)
    }

    /// Where the summary for scripts is.
    pub fn summary(&self) -> PathBuf {
        self.directory.join("summary.json")
    }
}

fn passed(report: &Report) -> bool {
    report.sha256_equal && (report.disturbed || report.ratio.is_none_or(|ratio| ratio >= WANTED))
}

impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", table(&self.scenarios))?;
        let late = self.scenarios.iter().map(|report| report.emulator_late_p99_us).max().unwrap_or(0);
        writeln!(
            f,
            "(goodput in Mbit/s: the file's bytes over the time from its first to its last, the same way for one path and for all;"
        )?;
        match self.virtual_time {
            true => writeln!(
                f,
                "in virtual time: real HIP, ESP and TCP packets over the emulator's links, but simulated TCPs and no kernels;\n\
                 the file is a pattern drawn from the seed)"
            )?,
            false => writeln!(
                f,
                "the emulator handed 99 of 100 packets over within {:.2} ms of their instant, in the worst run)",
                late as f64 / 1e3
            )?,
        }
        for (name, failure) in &self.failures {
            writeln!(f, "{name}: {failure}")?;
        }
        if let Some(report) = self.scenarios.first() {
            writeln!(f, "\n{}", wireshark::advice(report))?;
        }
        writeln!(f, "For scripts: {}", self.summary().display())?;
        match self.passed() {
            true => write!(
                f,
                "All of it holds: at least {:.0} % of the sum, every file identical, and the cut survived.",
                WANTED * 100.0
            ),
            false => write!(f, "Not all of it holds; the table marks what does not with '!'."),
        }
    }
}

/// The results as tables for people: of flows that competed, what each got; of the others, what the paths together gave.
pub fn table(reports: &[Report]) -> String {
    let (competitions, transfers): (Vec<&Report>, Vec<&Report>) =
        reports.iter().partition(|report| report.flows.len() > 1);
    let mut text = String::new();
    if !transfers.is_empty() {
        let mut rows =
            vec![["scenario", "each path alone", "sum", "together", "ratio", "SHA-256", ""].map(str::to_owned)];
        rows.extend(transfers.into_iter().map(transfer_row));
        text.push_str(&aligned(&rows));
    }
    for report in competitions {
        let mut rows = vec![[report.name.as_str(), "protocol", "TCP", "goodput", "longest stall"].map(str::to_owned)];
        rows.extend(report.flows.iter().map(|flow| {
            [
                flow.name.clone(),
                flow.protocol.to_owned(),
                flow.congestion.clone(),
                format!("{:.2} Mbit/s", flow.mbps),
                format!("{:.0} ms", flow.longest_stall_ms),
            ]
        }));
        text.push_str(&aligned(&rows));
        let factor = |name: &str, factor: Option<f64>| factor.map(|factor| format!("{name} {factor:.3}"));
        let factors = [factor("FF", report.ff), factor("FF on the shared paths", report.ff_shared)];
        let factors: Vec<String> = factors.into_iter().flatten().collect();
        text.push_str(&format!(
            "{}{}what arrived {}\n",
            factors.join(", "),
            if factors.is_empty() { "" } else { "; " },
            if report.sha256_equal { "is as it was sent" } else { "is DIFFERENT from what was sent" }
        ));
    }
    text
}

fn transfer_row(report: &Report) -> [String; 7] {
    let singles: Vec<String> = report.single_mbps.iter().map(|rate| format!("{rate:.2}")).collect();
    [
        report.name.clone(),
        singles.join(" + "),
        format!("{:.2}", report.sum_mbps),
        format!("{:.2} Mbit/s", report.together_mbps),
        report.ratio.map_or_else(String::new, |ratio| format!("{:.1} %", ratio * 100.0)),
        if report.sha256_equal { "equal" } else { "DIFFERENT" }.to_owned(),
        if passed(report) { "" } else { "!" }.to_owned(),
    ]
}

fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: Vec<usize> = (0..N)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
