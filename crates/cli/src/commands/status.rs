//! `sinnet status`: what a running daemon does.

use std::fmt::Write as _;
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
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let status = daemon::control::status(&arguments.control).map_err(|error| Failure::failed(error.to_string()))?;
    if arguments.json {
        return output::result(&format!("{status:#}"));
    }
    output::result(table(&status).trim_end())
}

/// The state as a table for people; what is not there is left out.
fn table(status: &Value) -> String {
    let mut text = String::new();
    let line = format!("{}  LSI {}  on {}", text_of(status, "hit"), text_of(status, "lsi"), text_of(status, "device"));
    // Writing to a String does not fail.
    let _ = writeln!(text, "{line}");
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
    }
    let trouble = trouble(status);
    if !trouble.is_empty() {
        let _ = writeln!(text, "\nnot carried: {}", trouble.join(", "));
    }
    text
}

fn path(path: &Value) -> Vec<String> {
    let name = match text_of(path, "name") {
        "" => path["id"].to_string(),
        name => name.to_owned(),
    };
    let state = if path["alive"].as_bool() == Some(true) { "up" } else { "no answer" };
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

/// Counters of packets that went nowhere, where there are any.
fn trouble(status: &Value) -> Vec<String> {
    const NAMES: [(&str, &str); 12] = [
        ("no_peer", "to unknown HITs or LSIs"),
        ("too_big", "too big"),
        ("waiting_full", "too many before the association"),
        ("no_association", "without an association"),
        ("queue_full", "more than the paths carry"),
        ("no_path", "without a path that answers"),
        ("malformed", "malformed"),
        ("unknown_spi", "with an unknown SPI"),
        ("replayed", "received before"),
        ("bad_icv", "forged or damaged"),
        ("bad_padding", "with wrong padding"),
        ("bad_payload", "with content that is no packet"),
    ];
    let counters = &status["counters"];
    let mut told: Vec<String> = NAMES
        .iter()
        .filter_map(|(key, words)| {
            counters[*key].as_u64().filter(|count| *count > 0).map(|count| format!("{count} {words}"))
        })
        .collect();
    if let Some(unsent) = status["unsent"].as_u64().filter(|count| *count > 0) {
        told.push(format!("{unsent} refused by the kernel"));
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
            "counters": {"no_path": 3, "bad_icv": 0},
            "peers": [
                {"name": "b.hip", "hit": "2001:22::b", "lsi": "1.0.0.2", "state": "ESTABLISHED", "paths": [
                    {"id": 0, "name": "dsl", "local": "192.0.2.1", "remote": "192.0.2.2", "alive": true, "srtt_ms": 60.04,
                     "bytes_out": 999, "bytes_in": 12_345_678},
                ]},
                {"name": "c.hip", "hit": "2001:22::c", "lsi": "1.0.0.3", "state": "UNASSOCIATED", "paths": []},
            ],
        });
        let expected = "\
2001:22::a  LSI 1.0.0.1  on sinnet0

b.hip  established
  2001:22::b  LSI 1.0.0.2
  path  from       to         state  round trip  sent   received
  dsl   192.0.2.1  192.0.2.2  up     60.0 ms     999 B  12.3 MB

c.hip  unassociated
  2001:22::c  LSI 1.0.0.3

not carried: 3 without a path that answers
";
        assert_eq!(table(&status), expected);
    }
}
