//! `sinnet status`: what a running daemon does.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use daemon::counters::{SETS, Set};
use daemon::privileges::Confined;
use daemon::status::Status;
use serde_json::{Value, json};
use wedge::{PathStatus, PeerStatus};

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
        (true, false) => output::watched(&format!("{:#}", json!(status))),
        // One line for each second.
        (true, true) => output::watched(&json!(status).to_string()),
        (false, false) => output::watched(table(&status).trim_end()),
        // Each over the last on a terminal, one after the other in a file.
        (false, true) if std::io::stdout().is_terminal() => {
            output::watched(&format!("\x1b[H\x1b[2J{}", table(&status).trim_end()))
        }
        (false, true) => output::watched(&table(&status)),
    }
}

/// The state as a table for people; what is not there is left out.
fn table(status: &Status) -> String {
    let (mut text, host) = (String::new(), &status.host);
    // Writing to a String does not fail.
    let _ = writeln!(text, "{}  LSI {}  on {}", host.hit, host.lsi, status.device);
    if status.confined != Confined::default() {
        let _ = writeln!(text, "confined: {}", status.confined);
    }
    for peer in &host.peers {
        let _ = writeln!(text, "\n{}  {}", peer.name, peer.state.to_lowercase());
        let _ = writeln!(text, "  {}  LSI {}", peer.hit, peer.lsi);
        if peer.paths.is_empty() {
            continue;
        }
        let mut rows =
            vec![["path", "from", "to", "state", "round trip", "sent", "received"].map(str::to_owned).to_vec()];
        rows.extend(peer.paths.iter().map(path));
        columns(&mut text, &rows);
        measured(&mut text, peer);
    }
    counted(&mut text, &json!(status));
    text
}

/// What reports of the peer say about its paths, and what waits for them.
fn measured(text: &mut String, peer: &PeerStatus) {
    let titles = ["path", "delivers", "window", "in flight", "lost", "reordered", "marked"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(peer.paths.iter().filter_map(|path| {
        let measured = path.measured?;
        let lost = measured.lost as f64 * 100.0 / ((measured.delivered + measured.lost) as f64).max(1.0);
        Some(vec![
            name(path),
            format!("{:.2} Mbit/s", measured.delivery_rate as f64 / 1e6),
            bytes(measured.cwnd),
            bytes(measured.in_flight as u64),
            format!("{lost:.2} %"),
            measured.reordered.to_string(),
            measured.ce.to_string(),
        ])
    }));
    if rows.len() == 1 {
        return;
    }
    columns(text, &rows);
    let Some(buffer) = peer.send_buffer else { return };
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "  {}: {} waiting, {:.1} ms, {} dropped; the paths were the limit {:.0} % of the time",
        peer.congestion.as_deref().unwrap_or_default(),
        bytes(buffer.bytes as u64),
        buffer.delay_ms,
        buffer.dropped,
        buffer.paths_bind * 100.0,
    );
}

fn name(path: &PathStatus) -> String {
    if path.name.is_empty() { path.id.to_string() } else { path.name.clone() }
}

fn path(path: &PathStatus) -> Vec<String> {
    let state = match (path.alive, path.standby, path.backup) {
        (false, ..) => "no answer",
        (true, true, _) => "stands by",
        (true, false, true) => "up, backup",
        (true, false, false) => "up",
    };
    let round_trip = path.srtt_ms.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    vec![
        name(path),
        path.local.clone(),
        path.remote.clone(),
        state.to_owned(),
        round_trip,
        bytes(path.bytes_out),
        bytes(path.bytes_in),
    ]
}

/// Every counter that is not zero, with what it counts.
fn counted(text: &mut String, status: &Value) {
    for Set { key, title, meanings } in SETS {
        let counters = status[key].as_object().into_iter().flatten();
        let rows: Vec<_> = counters.filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0)).collect();
        let name = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (number, (counter, count)) in rows.into_iter().enumerate() {
            if number == 0 {
                let _ = writeln!(text, "\ncounted of {title}:");
            }
            let meaning = meanings.iter().find(|(known, _)| known == counter).map_or("", |(_, meaning)| *meaning);
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                "{}",
                format!("{count:<12}  {counter:<name$}  {meaning}", count = count.to_string()).trim_end()
            );
        }
    }
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

fn bytes(count: u64) -> String {
    let count = count as f64;
    let (factor, unit) = match count {
        count if count >= 1e9 => (1e9, "GB"),
        count if count >= 1e6 => (1e6, "MB"),
        count if count >= 1e3 => (1e3, "kB"),
        _ => return format!("{count} B"),
    };
    format!("{:.1} {unit}", count / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_matters_and_nothing_about_what_is_not() {
        let status = serde_json::json!({
            "hit": "2001:22::a", "lsi": "198.18.0.1", "device": "sinnet0",
            "counters": {"no_association": 3, "bad_icv": 0},
            "peers": [
                {"name": "b.hip", "hit": "2001:22::b", "lsi": "198.18.0.2", "state": "ESTABLISHED", "paths": [
                    {"id": 0, "name": "dsl", "local": "192.0.2.1", "remote": "192.0.2.2", "alive": true, "srtt_ms": 60.04,
                     "bytes_out": 999, "bytes_in": 12_345_678, "measured": {"delivery_rate": 7_950_000, "cwnd": 90_000,
                     "in_flight": 1500, "lost": 1, "delivered": 999, "reordered": 0, "ce": 2}},
                ], "congestion": "mhip", "send_buffer": {"bytes": 3000, "delay_ms": 2.04, "dropped": 7, "paths_bind": 0.5}},
                {"name": "c.hip", "hit": "2001:22::c", "lsi": "198.18.0.3", "state": "UNASSOCIATED", "paths": []},
            ],
        });
        let status: Status = serde_json::from_value(status).expect("a status");
        let expected = "\
2001:22::a  LSI 198.18.0.1  on sinnet0

b.hip  established
  2001:22::b  LSI 198.18.0.2
  path  from       to         state  round trip  sent   received
  dsl   192.0.2.1  192.0.2.2  up     60.0 ms     999 B  12.3 MB
  path  delivers     window   in flight  lost    reordered  marked
  dsl   7.95 Mbit/s  90.0 kB  1.5 kB     0.10 %  0          2
  mhip: 3.0 kB waiting, 2.0 ms, 7 dropped; the paths were the limit 50 % of the time

c.hip  unassociated
  2001:22::c  LSI 198.18.0.3

counted of packets:
3             no_association  Dropped: the base exchange failed, or the association ended.
";
        assert_eq!(table(&status), expected);
    }

    #[test]
    fn every_counter_is_told_with_what_it_counts() {
        let set = |meanings: &[(&str, &str)]| -> Value {
            meanings
                .iter()
                .map(|(name, _)| ((*name).to_owned(), Value::from(5)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let sets = SETS.iter().map(|one| (one.key.to_owned(), set(one.meanings)));
        let status: Status = serde_json::from_value(Value::Object(sets.collect())).expect("a status");
        let text = table(&status);
        // The names are those that are serialised, which `daemon` tests; here they come with their sentences.
        for (name, meaning) in SETS.iter().flat_map(|one| one.meanings) {
            assert!(!meaning.is_empty());
            let told =
                |line: &str| line.starts_with("5  ") && line.contains(&format!(" {name} ")) && line.ends_with(meaning);
            assert!(text.lines().any(told), "{name} in\n{text}");
        }
    }
}
