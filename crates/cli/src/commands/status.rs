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

/// Rates are those over this time, in milliseconds, where nobody watches.
const GLANCE: u64 = 400;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut before = None;
    if !arguments.json {
        before = Some(ask(arguments)?);
        pause(GLANCE);
    }
    loop {
        let status = ask(arguments)?;
        if !show(arguments, &status, before.as_ref())? || !arguments.watch {
            return Ok(());
        }
        before = Some(status);
        pause(1000);
    }
}

fn ask(arguments: &Arguments) -> Result<Status, Failure> {
    daemon::control::status(&arguments.control).map_err(|error| Failure::failed(error.to_string()))
}

#[expect(clippy::disallowed_methods, reason = "who watches, watches in real time")]
fn pause(milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
}

/// Shows it once, with the rates since another time, and says whether there is still a reader.
fn show(arguments: &Arguments, status: &Status, before: Option<&Status>) -> Result<bool, Failure> {
    match (arguments.json, arguments.watch) {
        (true, false) => output::watched(&format!("{:#}", json!(status))),
        // One line for each second.
        (true, true) => output::watched(&json!(status).to_string()),
        (false, false) => output::watched(table(status, before).trim_end()),
        // Each over the last on a terminal, one after the other in a file.
        (false, true) if std::io::stdout().is_terminal() => {
            output::watched(&format!("\x1b[H\x1b[2J{}", table(status, before).trim_end()))
        }
        (false, true) => output::watched(&table(status, before)),
    }
}

/// The state as a table for people; what is not there is left out.
fn table(status: &Status, before: Option<&Status>) -> String {
    let (mut text, host) = (String::new(), &status.host);
    // Writing to a String does not fail.
    let _ = write!(text, "{}  LSI {}  on {}", host.hit, host.lsi, status.device);
    if !status.version.is_empty() {
        let _ = write!(text, "  version {}, up {}", status.version, age(status.uptime_s));
    }
    text.push('\n');
    for one in host.identities.iter().skip(1) {
        let anonymous = if one.anonymous { "  anonymous" } else { "" };
        let _ = writeln!(text, "{}  LSI {}  {}{anonymous}", one.hit, one.lsi, one.name);
    }
    if status.confined != Confined::default() {
        let _ = writeln!(text, "confined: {}", status.confined);
    }
    for peer in &host.peers {
        let since = peer.age_s.map(|since| format!(" for {}", age(since))).unwrap_or_default();
        let _ = writeln!(text, "\n{}  {}{since}", peer.name, state(&peer.state));
        let ours = host.identities.iter().skip(1).find(|one| one.hit == peer.identity);
        let ours = ours.map(|one| format!("  knows us as {}", one.name)).unwrap_or_default();
        let _ = writeln!(text, "  {}  LSI {}{ours}", peer.hit, peer.lsi);
        if peer.paths.is_empty() {
            continue;
        }
        let mut rows = vec![
            ["path", "from", "to", "state", "round trip", "sends", "receives", "sent", "received"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let earlier = before.and_then(|before| before.host.peers.iter().find(|other| other.hit == peer.hit));
        let passed = before.map(|before| status.uptime_s - before.uptime_s);
        let flows: Vec<_> = peer.paths.iter().map(|path| Flow::of(path, earlier, passed)).collect();
        rows.extend(peer.paths.iter().zip(&flows).map(|(one, flow)| path(one, flow)));
        if flows.len() > 1 {
            rows.push(Flow::sum(&flows).row("all", ["", "", "", ""]));
        }
        columns(&mut text, &rows);
        measured(&mut text, peer);
    }
    learned(&mut text, status);
    counted(&mut text, &json!(status));
    text
}

/// The names that lead to peers by their HIP records.
fn learned(text: &mut String, status: &Status) {
    let rows: Vec<Vec<String>> = status
        .learned
        .iter()
        .map(|one| {
            let signed = if one.signed { "signed" } else { "not signed" };
            let holds = if one.holds_s > 0 { format!("for {}", age(one.holds_s as f64)) } else { "ended".to_owned() };
            vec![one.name.clone(), one.hit.clone(), format!("LSI {}", one.lsi), signed.to_owned(), holds]
        })
        .collect();
    if !rows.is_empty() {
        text.push_str("\nnames with HIP records:\n");
        columns(text, &rows);
    }
}

/// What reports of the peer say about its paths, and what waits for them.
fn measured(text: &mut String, peer: &PeerStatus) {
    let titles = ["path", "delivers", "window", "in flight", "lost", "reordered", "marked", "MTU"];
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
            match (path.mtu, &*path.mtu_state) {
                (0, _) => "-".to_owned(),
                (mtu, "base" | "search" | "error") => format!("{mtu} (searching)"),
                (mtu, _) => mtu.to_string(),
            },
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
        "  {}: {} wait to be sent, the last one {:.1} ms; {} packets dropped, {} marked; for {:.0} % of the time there \
         was more to send than the paths took",
        peer.congestion.as_deref().unwrap_or_default(),
        bytes(buffer.bytes as u64),
        buffer.delay_ms,
        buffer.dropped,
        buffer.marked,
        buffer.paths_bind * 100.0,
    );
}

fn name(path: &PathStatus) -> String {
    if path.name.is_empty() { path.id.to_string() } else { path.name.clone() }
}

/// What a path carries: bits per second where they are known, and bytes in all.
#[derive(Clone, Copy)]
struct Flow {
    sends: Option<f64>,
    receives: Option<f64>,
    sent: u64,
    received: u64,
}

impl Flow {
    /// The rates follow from what the same path had carried `passed` seconds before.
    fn of(path: &PathStatus, earlier: Option<&PeerStatus>, passed: Option<f64>) -> Self {
        let then = earlier.and_then(|peer| peer.paths.iter().find(|other| other.id == path.id));
        let rate = |count: fn(&PathStatus) -> u64| {
            // An association that began anew counts from zero.
            let gained = count(path).checked_sub(count(then?))?;
            passed.filter(|passed| *passed > 0.0).map(|passed| gained as f64 * 8.0 / passed)
        };
        let (sends, receives) = (rate(|path| path.bytes_out), rate(|path| path.bytes_in));
        Self { sends, receives, sent: path.bytes_out, received: path.bytes_in }
    }

    fn sum(all: &[Self]) -> Self {
        let rate =
            |of: fn(&Self) -> Option<f64>| all.iter().map(of).collect::<Option<Vec<_>>>().map(|some| some.iter().sum());
        let (sent, received) = (all.iter().map(|one| one.sent).sum(), all.iter().map(|one| one.received).sum());
        Self { sends: rate(|one| one.sends), receives: rate(|one| one.receives), sent, received }
    }

    fn row(&self, name: &str, [from, to, state, round_trip]: [&str; 4]) -> Vec<String> {
        let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{:.2} Mbit/s", rate / 1e6));
        let words = [name, from, to, state, round_trip].map(str::to_owned);
        let numbers = [rate(self.sends), rate(self.receives), bytes(self.sent), bytes(self.received)];
        words.into_iter().chain(numbers).collect()
    }
}

/// What the states of RFC 7401 §4.4 mean.
fn state(name: &str) -> String {
    let meaning = match name {
        "UNASSOCIATED" => "not connected: a program's first packet begins",
        "I1-SENT" => "connecting: no answer yet",
        "I2-SENT" => "connecting: has answered, and has not accepted us yet",
        "CLOSING" | "CLOSED" => "closing",
        "E-FAILED" => "not reached: a program's next packet tries again",
        other => return other.to_lowercase(),
    };
    format!("{meaning} ({})", name.to_lowercase())
}

/// A length of time in its two largest units.
fn age(seconds: f64) -> String {
    let seconds = seconds as u64;
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, m, s) => format!("{m} min {s} s"),
        (0, h, m, _) => format!("{h} h {m} min"),
        (d, h, ..) => format!("{d} d {h} h"),
    }
}

fn path(path: &PathStatus, flow: &Flow) -> Vec<String> {
    let rests = path.measured.is_some_and(|measured| measured.rests);
    let state = match (path.alive, path.standby, path.backup) {
        (false, ..) => "no answer",
        (true, true, _) => "stands by",
        (true, false, _) if rests => "up, rests",
        (true, false, true) => "up, backup",
        (true, false, false) => "up",
    };
    let native = if path.alive && path.sheds_udp { ", native ESP" } else { "" };
    let state = format!("{state}{native}");
    let round_trip = path.srtt_ms.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    flow.row(&name(path), [&path.local, &path.remote, &state, &round_trip])
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
    fn a_path_that_rests_is_up() {
        for (rests, state) in [(true, "up, rests"), (false, "up")] {
            let one = serde_json::json!({"name": "dsl", "alive": true, "measured": {"rests": rests}});
            let one: PathStatus = serde_json::from_value(one).expect("a path");
            assert_eq!(path(&one, &Flow::of(&one, None, None))[3], state);
        }
    }

    #[test]
    fn a_path_without_udp_says_so() {
        for (sheds_udp, state) in [(true, "up, native ESP"), (false, "up")] {
            let one = serde_json::json!({"name": "dsl", "alive": true, "sheds_udp": sheds_udp});
            let one: PathStatus = serde_json::from_value(one).expect("a path");
            assert_eq!(path(&one, &Flow::of(&one, None, None))[3], state);
        }
    }

    #[test]
    fn the_table_says_what_matters_and_nothing_about_what_is_not() {
        let status = serde_json::json!({
            "hit": "2001:22::a", "lsi": "198.18.0.1", "device": "sinnet0", "version": "0.1.0", "uptime_s": 7262.5,
            "counters": {"no_association": 3, "bad_icv": 0},
            "peers": [
                {"name": "b.hip", "hit": "2001:22::b", "lsi": "198.18.0.2", "state": "ESTABLISHED", "age_s": 61.5, "paths": [
                    {"id": 0, "name": "dsl", "local": "192.0.2.1", "remote": "192.0.2.2", "alive": true, "srtt_ms": 60.04,
                     "bytes_out": 999, "bytes_in": 12_345_678, "mtu": 1400, "mtu_state": "complete", "measured": {"delivery_rate": 7_950_000, "cwnd": 90_000,
                     "in_flight": 1500, "lost": 1, "delivered": 999, "reordered": 0, "ce": 2}},
                    {"id": 1, "name": "lte", "local": "192.0.2.3", "remote": "192.0.2.2", "alive": true, "backup": true,
                     "standby": true, "bytes_out": 1, "bytes_in": 1000},
                ], "congestion": "mhip", "send_buffer": {"bytes": 3000, "delay_ms": 2.04, "dropped": 7, "marked": 4, "paths_bind": 0.5}},
                {"name": "c.hip", "hit": "2001:22::c", "lsi": "198.18.0.3", "state": "UNASSOCIATED", "paths": []},
            ],
            "learned": [
                {"name": "c.example", "hit": "2001:22::c", "lsi": "198.18.0.3", "signed": true, "holds_s": 61},
                {"name": "d.example", "hit": "2001:22::d", "lsi": "198.18.0.4"},
            ],
        });
        let status: Status = serde_json::from_value(status).expect("a status");
        let before = serde_json::json!({"uptime_s": 7260.5, "peers": [{"hit": "2001:22::b", "paths": [
            {"id": 0, "bytes_out": 999, "bytes_in": 9_845_678}, {"id": 1, "bytes_out": 1, "bytes_in": 1000},
        ]}]});
        let before: Status = serde_json::from_value(before).expect("a status");
        let expected = "\
2001:22::a  LSI 198.18.0.1  on sinnet0  version 0.1.0, up 2 h 1 min

b.hip  established for 1 min 1 s
  2001:22::b  LSI 198.18.0.2
  path  from       to         state      round trip  sends        receives      sent    received
  dsl   192.0.2.1  192.0.2.2  up         60.0 ms     0.00 Mbit/s  10.00 Mbit/s  999 B   12.3 MB
  lte   192.0.2.3  192.0.2.2  stands by  -           0.00 Mbit/s  0.00 Mbit/s   1 B     1.0 kB
  all                                                0.00 Mbit/s  10.00 Mbit/s  1.0 kB  12.3 MB
  path  delivers     window   in flight  lost    reordered  marked  MTU
  dsl   7.95 Mbit/s  90.0 kB  1.5 kB     0.10 %  0          2       1400
  mhip: 3.0 kB wait to be sent, the last one 2.0 ms; 7 packets dropped, 4 marked; for 50 % of the time there was more to send than the paths took

c.hip  not connected: a program's first packet begins (unassociated)
  2001:22::c  LSI 198.18.0.3

names with HIP records:
  c.example  2001:22::c  LSI 198.18.0.3  signed      for 1 min 1 s
  d.example  2001:22::d  LSI 198.18.0.4  not signed  ended

counted of packets:
3             no_association  Dropped: the base exchange failed, or the association ended.
";
        assert_eq!(table(&status, Some(&before)), expected);
    }

    #[test]
    fn of_several_identities_each_is_told_and_which_one_a_peer_knows() {
        let status = serde_json::json!({
            "hit": "2001:22::a", "lsi": "198.18.0.1", "device": "sinnet0",
            "identities": [
                {"name": "a.hip", "hit": "2001:22::a", "lsi": "198.18.0.1"},
                {"name": "work.hip", "hit": "2001:22::b", "lsi": "198.18.0.2"},
                {"name": "ghost.hip", "hit": "2001:22::c", "lsi": "198.18.0.3", "anonymous": true},
            ],
            "peers": [
                {"name": "d.hip", "hit": "2001:22::d", "lsi": "198.18.0.4", "state": "CLOSED", "identity": "2001:22::a"},
                {"name": "e.hip", "hit": "2001:22::e", "lsi": "198.18.0.5", "state": "CLOSED", "identity": "2001:22::c"},
            ],
        });
        let status: Status = serde_json::from_value(status).expect("a status");
        let expected = "\
2001:22::a  LSI 198.18.0.1  on sinnet0
2001:22::b  LSI 198.18.0.2  work.hip
2001:22::c  LSI 198.18.0.3  ghost.hip  anonymous

d.hip  closing (closed)
  2001:22::d  LSI 198.18.0.4

e.hip  closing (closed)
  2001:22::e  LSI 198.18.0.5  knows us as ghost.hip
";
        assert_eq!(table(&status, None), expected);
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
        let text = table(&status, None);
        // The names are those that are serialised, which `daemon` tests; here they come with their sentences.
        for (name, meaning) in SETS.iter().flat_map(|one| one.meanings) {
            assert!(!meaning.is_empty());
            let told =
                |line: &str| line.starts_with("5  ") && line.contains(&format!(" {name} ")) && line.ends_with(meaning);
            assert!(text.lines().any(told), "{name} in\n{text}");
        }
    }
}
