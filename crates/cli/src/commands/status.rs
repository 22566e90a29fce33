//! `sinnet status`: what a running daemon does.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use serde_json::Value;

use super::Failure;
use crate::output;

/// Show the associations, their paths and rates.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The control socket of the one that is meant.
    #[arg(long, value_name = "PATH", default_value = daemon::control::DEFAULT_PATH)]
    control: PathBuf,
    /// Print JSON, with all counters.
    #[arg(long)]
    json: bool,
    /// Show it again every second, until Ctrl-C or until nobody reads.
    #[arg(long)]
    watch: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    while show(arguments)? && arguments.watch {
        #[expect(clippy::disallowed_methods, reason = "who watches, watches in real time")]
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    Ok(())
}

/// Shows it once, and says whether there is still a reader.
fn show(arguments: &Arguments) -> Result<bool, Failure> {
    let status = daemon::control::status(&arguments.control).map_err(|error| Failure::failed(error.to_string()))?;
    match (arguments.json, arguments.watch) {
        (true, false) => output::watched(&format!("{status:#}")),
        // One line for each second.
        (true, true) => output::watched(&status.to_string()),
        (false, false) => output::watched(table(&status).trim_end()),
        // Each over the last on a terminal, one after the other in a file.
        (false, true) if std::io::stdout().is_terminal() => {
            output::watched(&format!("\x1b[H\x1b[2J{}", table(&status).trim_end()))
        }
        (false, true) => output::watched(&table(&status)),
    }
}

/// The state as a table for people; what is not there is left out.
fn table(status: &Value) -> String {
    let mut text = String::new();
    let line = format!("{}  LSI {}  on {}", text_of(status, "hit"), text_of(status, "lsi"), text_of(status, "device"));
    // Writing to a String does not fail.
    let _ = writeln!(text, "{line}");
    let confined = &status["confined"];
    if confined.is_object() {
        let _ = writeln!(text, "confined: {}", confinement(confined));
    }
    for peer in list(status, "peers") {
        let _ = writeln!(text, "\n{}  {}", text_of(peer, "name"), text_of(peer, "state").to_lowercase());
        let _ = writeln!(text, "  {}  LSI {}", text_of(peer, "hit"), text_of(peer, "lsi"));
        let paths = list(peer, "paths");
        if paths.is_empty() {
            continue;
        }
        let mut rows =
            vec![["path", "from", "to", "state", "round trip", "sent", "received"].map(str::to_owned).to_vec()];
        rows.extend(paths.iter().map(path));
        columns(&mut text, &rows);
        measured(&mut text, peer);
    }
    let trouble = trouble(status);
    if !trouble.is_empty() {
        let _ = writeln!(text, "\nnot carried: {}", trouble.join(", "));
    }
    text
}

/// What the daemon has given up, as it tells it in its log.
fn confinement(confined: &Value) -> String {
    let confined: Result<daemon::privileges::Confined, _> = serde_json::from_value(confined.clone());
    confined.map_or_else(|_| "as it says with --json".to_owned(), |confined| confined.to_string())
}

/// What reports of the peer say about its paths, and what waits for them.
fn measured(text: &mut String, peer: &Value) {
    let known: Vec<_> = list(peer, "paths").iter().filter(|path| path["measured"].is_object()).collect();
    if known.is_empty() {
        return;
    }
    let titles = ["path", "delivers", "window", "under way", "lost", "reordered", "marked"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(known.iter().map(|path| {
        let measured = &path["measured"];
        let sent = measured["delivered"].as_f64().unwrap_or(0.0) + measured["lost"].as_f64().unwrap_or(0.0);
        let lost = measured["lost"].as_f64().unwrap_or(0.0) * 100.0 / sent.max(1.0);
        vec![
            name(path),
            format!("{:.2} Mbit/s", measured["delivery_rate"].as_f64().unwrap_or(0.0) / 1e6),
            bytes(&measured["cwnd"]),
            bytes(&measured["in_flight"]),
            format!("{lost:.2} %"),
            measured["reordered"].to_string(),
            measured["ce"].to_string(),
        ]
    }));
    columns(text, &rows);
    let holding = &peer["holding"];
    let binding = holding["paths_bind"].as_f64().unwrap_or(0.0) * 100.0;
    let delay = holding["delay_ms"].as_f64().unwrap_or(0.0);
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "  {}: {} waiting, {delay:.1} ms, {} dropped; the paths were the limit {binding:.0} % of the time",
        text_of(peer, "congestion"),
        bytes(&holding["bytes"]),
        holding["dropped"],
    );
}

fn name(path: &Value) -> String {
    match text_of(path, "name") {
        "" => path["id"].to_string(),
        name => name.to_owned(),
    }
}

fn path(path: &Value) -> Vec<String> {
    let name = name(path);
    let is = |key: &str| path[key].as_bool() == Some(true);
    let state = match (is("alive"), is("standby"), is("backup")) {
        (false, ..) => "no answer",
        (true, true, _) => "stands by",
        (true, false, true) => "up, backup",
        (true, false, false) => "up",
    };
    let round_trip = path["srtt_ms"].as_f64().map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    let (sent, received) = (bytes(&path["bytes_out"]), bytes(&path["bytes_in"]));
    vec![
        name,
        text_of(path, "local").to_owned(),
        text_of(path, "remote").to_owned(),
        state.to_owned(),
        round_trip,
        sent,
        received,
    ]
}

/// Counters of packets that went nowhere, and what to call them.
const TROUBLE: [(&str, &str); 17] = [
    ("unreadable", "from programs that are no packets"),
    ("no_peer", "to unknown HITs or LSIs"),
    ("wrong_source", "from addresses that are not this host's"),
    ("too_big", "too big"),
    ("waiting_full", "too many before the association"),
    ("no_association", "without an association"),
    ("queue_full", "more than the paths carry"),
    ("exhausted", "beyond the numbers of a security association"),
    ("malformed", "malformed"),
    ("unknown_spi", "with an unknown SPI"),
    ("short_esp", "too short for ESP"),
    ("replayed", "received before"),
    ("bad_icv", "forged or damaged"),
    ("bad_padding", "with wrong padding"),
    ("bad_payload", "with content that is no packet"),
    ("wrongly_marked", "marked against the rules"),
    ("bad_feedback", "reports that make no sense"),
];

/// Counters of packets that went nowhere, where there are any.
fn trouble(status: &Value) -> Vec<String> {
    let counters = &status["counters"];
    let mut told: Vec<String> = TROUBLE
        .iter()
        .filter_map(|(key, words)| {
            counters[*key].as_u64().filter(|count| *count > 0).map(|count| format!("{count} {words}"))
        })
        .collect();
    let daemon = &status["daemon"];
    for (key, words) in [
        ("unsent", "refused by the kernel"),
        ("unread", "of programs that could not be read"),
        ("undelivered", "batches that the kernel did not take for programs"),
    ] {
        if let Some(count) = daemon[key].as_u64().filter(|count| *count > 0) {
            told.push(format!("{count} {words}"));
        }
    }
    told
}

fn columns(text: &mut String, rows: &[Vec<String>]) {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in rows {
        let cells: Vec<String> =
            row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column))).collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
}

fn bytes(value: &Value) -> String {
    let count = value.as_f64().unwrap_or(0.0);
    let (factor, unit) = match count {
        count if count >= 1e9 => (1e9, "GB"),
        count if count >= 1e6 => (1e6, "MB"),
        count if count >= 1e3 => (1e3, "kB"),
        _ => return format!("{count} B"),
    };
    format!("{:.1} {unit}", count / factor)
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_matters_and_nothing_about_what_is_not() {
        let status = serde_json::json!({
            "hit": "2001:22::a", "lsi": "1.0.0.1", "device": "sinnet0", "unsent": 0,
            "counters": {"no_association": 3, "bad_icv": 0},
            "peers": [
                {"name": "b.hip", "hit": "2001:22::b", "lsi": "1.0.0.2", "state": "ESTABLISHED", "paths": [
                    {"id": 0, "name": "dsl", "local": "192.0.2.1", "remote": "192.0.2.2", "alive": true, "srtt_ms": 60.04,
                     "bytes_out": 999, "bytes_in": 12_345_678, "measured": {"delivery_rate": 7_950_000, "cwnd": 90_000,
                     "in_flight": 1500, "lost": 1, "delivered": 999, "reordered": 0, "ce": 2}},
                ], "congestion": "mhip", "holding": {"bytes": 3000, "delay_ms": 2.04, "dropped": 7, "paths_bind": 0.5}},
                {"name": "c.hip", "hit": "2001:22::c", "lsi": "1.0.0.3", "state": "UNASSOCIATED", "paths": []},
            ],
        });
        let expected = "\
2001:22::a  LSI 1.0.0.1  on sinnet0

b.hip  established
  2001:22::b  LSI 1.0.0.2
  path  from       to         state  round trip  sent   received
  dsl   192.0.2.1  192.0.2.2  up     60.0 ms     999 B  12.3 MB
  path  delivers     window   under way  lost    reordered  marked
  dsl   7.95 Mbit/s  90.0 kB  1.5 kB     0.10 %  0          2
  mhip: 3.0 kB waiting, 2.0 ms, 7 dropped; the paths were the limit 50 % of the time

c.hip  unassociated
  2001:22::c  LSI 1.0.0.3

not carried: 3 without an association
";
        assert_eq!(table(&status), expected);
    }

    #[test]
    fn every_counter_that_is_told_exists() {
        let counters = serde_json::to_value(wedge::Counters::default()).expect("JSON");
        for (key, _) in TROUBLE {
            assert!(counters[key].is_u64(), "{key}");
        }
    }
}
