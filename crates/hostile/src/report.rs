//! What an attack did, as a line of JSON and as a row of a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::load::Service;

/// Whether an attack did harm.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did not.
    #[default]
    Held,
    /// It did: a sentence.
    Harmed(String),
    /// It could not be tried, and why.
    NotTried(String),
}

impl Outcome {
    /// Harm, if there is any.
    pub(crate) fn of(harm: Vec<String>) -> Self {
        if harm.is_empty() { Self::Held } else { Self::Harmed(harm.join(", ")) }
    }
}

/// One attack.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Its name.
    pub attack: String,
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Forged packets a second, as measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_per_second: Option<f64>,
    /// Of the attacker, of one processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attacker_cpu: Option<f64>,
    /// Of the daemon, of one processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_cpu: Option<f64>,
    /// Resident memory of the daemon before and after, kB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_kb: Option<[u64; 2]>,
    /// Goodput under the attack, of that before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_percent: Option<f64>,
    /// What programs had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Service>,
    /// What programs had under it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<Service>,
    /// Counters of `sinnet status` that grew.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, i64>,
}

/// Counters that grow in quiet times too.
const USUAL: [&str; 10] = [
    "application_in",
    "application_out",
    "network_in",
    "network_out",
    "feedback_out",
    "feedback_in",
    "heartbeats_out",
    "heartbeats_in",
    "heartbeats_answered",
    "packets_in",
];

/// The counters that differ between two answers of `sinnet status --json`.
pub(crate) fn counted(before: &Value, after: &Value) -> BTreeMap<String, i64> {
    let mut grown = BTreeMap::new();
    for group in ["counters", "control"] {
        let Some(counters) = after[group].as_object() else { continue };
        for (name, value) in counters {
            let (was, is) = (before[group][name].as_i64().unwrap_or(0), value.as_i64().unwrap_or(0));
            if is != was && !USUAL.contains(&name.as_str()) {
                *grown.entry(name.clone()).or_insert(0) += is - was;
            }
        }
    }
    grown
}

/// The table of what was done.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "attack           packets/s attacker daemon  goodput kept   ping p50/p99/max ms   without it        memory MiB  outcome\n",
    );
    for row in rows {
        let number =
            |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"));
        let ping = |service: Option<Service>| {
            service.map_or_else(String::new, |s| format!("{:.1}/{:.1}/{:.0}", s.ping_p50, s.ping_p99, s.ping_max))
        };
        let memory = row.rss_kb.map_or_else(String::new, |[a, b]| format!("{}→{}", a >> 10, b >> 10));
        let outcome = match &row.outcome {
            Outcome::Held => "held".to_owned(),
            Outcome::Harmed(harm) => format!("HARMED: {harm}"),
            Outcome::NotTried(why) => format!("not tried: {why}"),
        };
        let goodput = row.under.map(|service| service.mbps);
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{:<16} {:>9} {:>6} % {:>5} % {:>8} {:>5} % {:>19}   {:<17} {:<11} {outcome}{}{}",
            row.attack,
            number(row.packets_per_second, 0),
            number(row.attacker_cpu, 0),
            number(row.daemon_cpu, 0),
            number(goodput, 1),
            number(row.kept_percent, 0),
            ping(row.under),
            ping(row.quiet),
            memory,
            if row.note.is_empty() { "" } else { "; " },
            row.note,
        );
    }
    text
}
