//! The report as tables for people: means over the seeds with their 95 % confidence intervals.

use std::fmt;

use fairness::jain;
use fairness::statistics::{Estimate, mean};
use simulator::{Distribution, FlowResult, LinkResult, RunResult};

use crate::report::{FlowGroup, PointReport, Report};

/// Rows of a table beyond which the rest is only counted.
const MOST_ROWS: usize = 60;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = || self.points.iter().flat_map(|point| &point.runs);
        let count = runs().count();
        let packets = runs().map(|run| run.packets).sum();
        // What was found finished took no time now.
        let timed = runs().filter(|run| run.cpu_s > 0.0);
        let (timed, cpu_s) = timed.fold((0, 0.0), |(packets, cpu), run| (packets + run.packets, cpu + run.cpu_s));
        writeln!(f, "{}", self.scenario)?;
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{count} run{plural}, {} packets", with_commas(packets))?;
        if cpu_s > 0.0 {
            let rate = with_commas((timed as f64 / cpu_s) as u64);
            write!(f, ", {} s of processor time, {rate} packets a second", significant(cpu_s, 3))?;
        }
        writeln!(f)?;
        if self.points.iter().any(|point| point.runs.len() > 1) {
            writeln!(f, "Means over the seeds ± half of their 95 % confidence interval.")?;
        }
        if count > 0 {
            write!(f, "\n{}\n{}", self.flows(), self.links())?;
        }
        Ok(())
    }
}

impl Report {
    fn flows(&self) -> Grid {
        let heads = ["flow", "goodput Mbit/s", "Jain", "retransmitted", "lost", "timeouts", "RTT ms", "p95", "cwnd"];
        let mut grid = self.grid(&heads);
        for point in &self.points {
            let mut first = 0;
            for group in &point.groups {
                let average = |value: fn(&FlowResult) -> f64| {
                    cell(point, |run| {
                        let values: Vec<f64> = members(run, first, group.count)
                            .iter()
                            .map(value)
                            .filter(|value| !value.is_nan())
                            .collect();
                        mean(&values)
                    })
                };
                let shares = cell(point, |run| {
                    let shares: Vec<f64> =
                        members(run, first, group.count).iter().map(|flow| flow.goodput_mbps).collect();
                    if group.count > 1 { jain(&shares) } else { None }
                });
                grid.row(
                    point,
                    [
                        name(group),
                        average(|flow| flow.goodput_mbps),
                        shares,
                        average(|flow| flow.retransmissions as f64),
                        average(|flow| flow.losses as f64),
                        average(|flow| flow.timeouts as f64),
                        average(|flow| measured(&flow.rtt, flow.rtt.mean)),
                        average(|flow| measured(&flow.rtt, flow.rtt.p95)),
                        average(|flow| flow.mean_cwnd),
                    ],
                );
                first += group.count;
            }
            if first > 1 {
                let sum =
                    |value: fn(&FlowResult) -> f64| cell(point, |run| Some(run.flows.iter().map(value).sum::<f64>()));
                let shares =
                    cell(point, |run| jain(&run.flows.iter().map(|flow| flow.goodput_mbps).collect::<Vec<_>>()));
                grid.row(
                    point,
                    [
                        "all together".to_owned(),
                        sum(|flow| flow.goodput_mbps),
                        shares,
                        sum(|flow| flow.retransmissions as f64),
                        sum(|flow| flow.losses as f64),
                        sum(|flow| flow.timeouts as f64),
                        String::new(),
                        String::new(),
                        String::new(),
                    ],
                );
            }
        }
        grid
    }

    fn links(&self) -> Grid {
        let mut grid =
            self.grid(&["link", "utilisation %", "dropped", "lost", "marked", "queue packets", "p95", "max"]);
        for point in &self.points {
            let links = point.runs.first().map_or(&[][..], |run| &run.links);
            for (index, link) in links.iter().enumerate() {
                let of = |value: fn(&LinkResult) -> f64| cell(point, |run| run.links.get(index).map(value));
                grid.row(
                    point,
                    [
                        link.name.clone(),
                        of(|link| link.utilisation * 100.0),
                        of(|link| link.queue_drops as f64),
                        of(|link| link.link_losses as f64),
                        of(|link| link.marked as f64),
                        of(|link| measured(&link.queue, link.queue.mean)),
                        of(|link| measured(&link.queue, link.queue.p95)),
                        of(|link| measured(&link.queue, link.queue.max)),
                    ],
                );
            }
        }
        grid
    }

    fn grid(&self, heads: &[&str]) -> Grid {
        let keys = self.points.first().map_or(&[][..], |point| &point.parameters);
        let heads = keys.iter().map(|(key, _)| key.as_str()).chain(heads.iter().copied());
        Grid { left: keys.len() + 1, rows: vec![heads.map(str::to_owned).collect()] }
    }
}

/// The `count` flows of a run from the one with number `first`.
fn members(run: &RunResult, first: usize, count: usize) -> &[FlowResult] {
    run.flows.get(first..(first + count).min(run.flows.len())).unwrap_or_default()
}

fn name(group: &FlowGroup) -> String {
    if group.count > 1 {
        format!("{}, each of {}", group.name, with_commas(group.count as u64))
    } else {
        group.name.clone()
    }
}

fn measured(distribution: &Distribution, value: f64) -> f64 {
    if distribution.samples > 0 { value } else { f64::NAN }
}

fn cell(point: &PointReport, value: impl Fn(&RunResult) -> Option<f64>) -> String {
    point.estimate(value).map_or_else(|| "-".to_owned(), |estimate| with_interval(&estimate))
}

/// Mean ± half width, the mean to the digits that the interval leaves it.
fn with_interval(estimate: &Estimate) -> String {
    match estimate.half_width {
        Some(half) if half > 0.0 => {
            let decimals = decimals(half, 2);
            let digits =
                if estimate.mean.abs() > half { decimals } else { decimals.max(self::decimals(estimate.mean, 2)) };
            format!("{:.digits$} ± {half:.decimals$}", estimate.mean)
        }
        _ => significant(estimate.mean, 4),
    }
}

/// `value` with about `digits` significant digits; whole numbers stay whole.
fn significant(value: f64, digits: i32) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let decimals = decimals(value, digits);
    format!("{value:.decimals$}")
}

/// Digits after the point that show `digits` significant ones; from 0 to 6.
fn decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let magnitude = value.abs().log10().floor() as i32;
    (digits - 1 - magnitude).clamp(0, 6) as usize
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Cells in columns: the first `left` ones flush left, numbers flush right. Columns without any value are left out.
struct Grid {
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn row<const N: usize>(&mut self, point: &PointReport, cells: [String; N]) {
        let values = point.parameters.iter().map(|(_, value)| value.clone());
        self.rows.push(values.chain(cells).collect());
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let shown = || self.rows.iter().take(MOST_ROWS + 1);
        let used: Vec<usize> = (0..columns)
            .filter(|&column| {
                column < self.left
                    || self.rows.iter().skip(1).any(|row| !matches!(cell(row, column).as_str(), "" | "-"))
            })
            .collect();
        let width = |column: usize| shown().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = used.iter().map(|&column| width(column)).collect();
        for row in shown() {
            let mut line = String::new();
            for (&column, &width) in used.iter().zip(&widths) {
                let cell = cell(row, column);
                let padded = if column < self.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
                line.push_str(&padded);
                line.push_str("   ");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        let hidden = self.rows.len().saturating_sub(MOST_ROWS + 1);
        if hidden > 0 {
            writeln!(f, "… and {} more rows (all with --json or --out)", with_commas(hidden as u64))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_for_people() {
        let interval = |mean, half| with_interval(&Estimate { n: 2, mean, sd: Some(half), half_width: Some(half) });
        assert_eq!(interval(7.654_321, 0.012_345), "7.654 ± 0.012");
        assert_eq!(interval(123_456.7, 234.6), "123457 ± 235");
        assert_eq!(interval(0.000_012, 0.5), "0.000012 ± 0.50");
        assert_eq!(significant(12.0, 4), "12");
        assert_eq!(significant(12.345_678, 4), "12.35");
        assert_eq!(significant(0.012_345_6, 3), "0.0123");
        assert_eq!(with_commas(1_234_567), "1,234,567");
        assert_eq!(with_commas(123), "123");
    }

    #[test]
    fn a_table_leaves_out_what_was_not_measured() {
        let runs = [1.0, 3.0].map(|goodput_mbps| {
            let flow = FlowResult { goodput_mbps, ..FlowResult::default() };
            let link = LinkResult { name: "a>b".into(), utilisation: 0.5, ..LinkResult::default() };
            RunResult { flows: vec![flow.clone(), flow], links: vec![link], packets: 1500, ..RunResult::default() }
        });
        let groups = vec![FlowGroup { name: "f".into(), count: 2 }];
        let point = PointReport { parameters: vec![("loss".into(), "0.01".into())], groups, runs: runs.into() };
        let report = Report { scenario: "two alike".into(), version: "1".into(), points: vec![point], stopped: false };
        let text = report.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["two alike", "2 runs, 3,000 packets"]);
        assert!(lines[4].starts_with("loss   flow") && !lines[4].contains("RTT"), "{text}");
        assert!(lines[5].starts_with("0.01   f, each of 2         2.0 ± 13      1"), "{text}");
        assert!(lines[6].starts_with("0.01   all together         4.0 ± 25      1"), "{text}");
        assert!(text.contains("a>b               50 "), "{text}");
    }
}
