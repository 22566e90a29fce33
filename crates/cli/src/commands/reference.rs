//! `sinnet help algorithms` and `sinnet help results`: what the registries and the tables say of themselves.

use std::fmt::Write as _;

use campaign::SECTIONS;
use congestion::{Host, Rule};
use scheduler::Scheduler;

/// Who offers which congestion rules, as the reference calls them.
const HOSTS: [(&str, Host); 5] = [
    ("`tcp`, and inside of `sinnet`", Host::Tcp),
    ("`mptcp`", Host::Mptcp { paths: 2 }),
    ("`sctp`", Host::Sctp { paths: 1 }),
    ("`cmt-sctp`", Host::Sctp { paths: 2 }),
    ("`sinnet up`, for its paths", Host::Tunnel),
];

/// The names of all algorithms with a line for each, or all there is to tell of `name`; none if there is none of that name.
pub(super) fn algorithms(name: Option<&str>) -> Option<String> {
    let mut text = String::new();
    // Writing to a string does not fail, here and below.
    let Some(name) = name else {
        for (title, rows) in tables() {
            let _ = writeln!(text, "{title}");
            for Row { name, about, .. } in rows {
                let _ = writeln!(text, "  {name:20} {about}");
            }
            text.push('\n');
        }
        return Some(text + "`sinnet help algorithms NAME` tells more of one.");
    };
    for (title, rows) in tables() {
        for row in rows.into_iter().filter(|row| row.name == name) {
            let _ = writeln!(text, "{name}, of {}\n\n{}\n", title.to_lowercase(), row.about);
            for (label, value) in &row.cells {
                let _ = writeln!(text, "{label:12}{}", value.replace('`', ""));
            }
            for tunable in row.tunables {
                let default = if tunable.default.is_empty() { "not set" } else { tunable.default };
                let _ =
                    writeln!(text, "{name}:{}={default}\n{:12}{} ({})", tunable.name, "", tunable.says, tunable.values);
            }
            text.push('\n');
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The names that [`algorithms`] knows.
pub(super) fn names() -> Vec<&'static str> {
    tables().into_iter().flat_map(|(_, rows)| rows).map(|row| row.name).collect()
}

/// One algorithm.
struct Row {
    name: &'static str,
    about: &'static str,
    cells: Vec<(&'static str, String)>,
    section: Option<(&'static str, &'static str)>,
    tunables: &'static [congestion::Tunable],
}

fn tables() -> [(&'static str, Vec<Row>); 3] {
    [("Congestion rules", rules()), ("Schedulers", schedulers()), ("Queues", queues())]
}

fn rules() -> Vec<Row> {
    let known = congestion::REFERENCE.iter().filter_map(|reference| {
        let rule: Rule = reference.name.parse().ok()?;
        let offered = HOSTS.iter().filter(|(_, host)| host.check(&rule).is_ok()).map(|(name, _)| *name);
        let cells = vec![
            ("gains", reference.increase.to_owned()),
            ("a loss", format!("leaves {}", reference.decrease)),
            ("offered by", offered.collect::<Vec<_>>().join(", ")),
            ("source", reference.source.to_owned()),
        ];
        let section = Some(reference.section);
        Some(Row { name: reference.name, about: rule.about(), cells, section, tunables: reference.tunables })
    });
    known.collect()
}

fn schedulers() -> Vec<Row> {
    let known = scheduler::REFERENCE.iter().filter_map(|reference| {
        let scheduler: Scheduler = reference.name.parse().ok()?;
        let cells = vec![("chooses", reference.choice.to_owned()), ("source", reference.source.to_owned())];
        Some(Row { name: reference.name, about: scheduler.about(), cells, section: None, tunables: &[] })
    });
    known.collect()
}

fn queues() -> Vec<Row> {
    let row = |reference: &queue::Reference| Row {
        name: reference.name,
        about: reference.rule,
        cells: vec![("source", reference.source.to_owned())],
        section: None,
        tunables: &[],
    };
    queue::REFERENCE.iter().map(row).collect()
}

const ALGORITHMS: &str = "# Rules, schedulers and queues

This page is made from the registries of the program by `sinnet help algorithms --markdown`; `sinnet help algorithms NAME` tells of one in
a terminal. [Algorithms](algorithms.md) has each in full, with what its sources leave open, and the check vectors that hold it.

## Congestion rules

`congestion = \"cubic\"` of a flow, or of the configuration for `sinnet up`, names one; what has tunables takes them after a colon:
`congestion = \"daimd:high=0.9,low=0.3\"`. `reno` and `sack` are other names of `newreno`, `rp-mp-v1` and `rp-mp-v2` of `rp1` and `rp2`.

In the formulas `w` is the window of the path in packets, `F` what is in flight on it, `RTT` its smoothed round-trip time, `base` and
`top` the lowest and the highest one of the connection, `s` the slow-start threshold, `Σ` a sum over the usable paths, `n` their
number. A window gains what is given in congestion avoidance; in slow start it gains a packet for each that is acknowledged, of `rp1`,
`rp2` and `lia-byte` its share of that. A loss leaves what is given, at least two packets (one with several paths that are coupled)
unless something else is said; a retransmission timeout leaves one, and that as the threshold.
";

const OFFERED: &str = "### Who offers them

What couples paths is offered where there are several, what reads delays where every packet has its round-trip time measured, what
reads the rate of delivery with TCP, which samples it, and what is written for another kind of host only there.
";

const SCHEDULERS: &str = "## Schedulers

`scheduler = \"blest\"` of a flow or of the configuration names one. Of a path, `RTT` is the smoothed round-trip time, `σ` its variation,
`D` the one-way delay, `B` the rate, `w` the window in packets; `S` is the size of the packet. A path is open if it may take a packet now.
";

const QUEUES: &str = "## Queues

`queue = \"100p\"` of a link is drop-tail, `queue = { kind = \"codel\" }` another. `q` is what waits, `t` the time that a packet has waited;
the other words are [their parameters](scenarios.md#queue-----of-a-link). With `ecn` a packet that understands marks is marked
where it would have been dropped early.
";

/// docs/rules.md.
pub(super) fn algorithms_in_markdown() -> String {
    let mut text = format!(
        "{ALGORITHMS}\n| rule | what it is | gains | a loss leaves | source, section here |\n|---|---|---|---|---|\n"
    );
    let rules = rules();
    for Row { name, about, cells, section, .. } in &rules {
        let [(_, gains), (_, leaves), _, (_, source)] = &cells[..] else { continue };
        let leaves = leaves.trim_start_matches("leaves ");
        let full = section.map_or_else(String::new, |(number, anchor)| format!("[{number}](algorithms.md#{anchor})"));
        let _ = writeln!(text, "| `{name}` | {about} | {gains} | {leaves} | {source}. {full} |");
    }
    let _ = write!(text, "\n{OFFERED}\n| who | rules |\n|---|---|\n");
    for (who, host) in HOSTS {
        let offered: Vec<String> = host.rules().into_iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "| {who} | {} |", offered.join(", "));
    }
    text += "\n### Tunables\n\n| rule | tunable | value | default | what it does |\n|---|---|---|---|---|\n";
    let mut told: Vec<(Vec<&str>, &congestion::Tunable)> = Vec::new();
    for row in &rules {
        for tunable in row.tunables {
            match told.iter_mut().find(|(_, known)| *known == tunable) {
                Some((names, _)) => names.push(row.name),
                None => told.push((vec![row.name], tunable)),
            }
        }
    }
    for (names, tunable) in told {
        let default = if tunable.default.is_empty() { "not set" } else { tunable.default };
        let (names, congestion::Tunable { name, values, says, .. }) = (names.join("`, `"), tunable);
        let _ = writeln!(text, "| `{names}` | `{name}` | {values} | {default} | {says} |");
    }
    let _ = write!(text, "\n{SCHEDULERS}\n| scheduler | what it is | chooses | source |\n|---|---|---|---|\n");
    for Row { name, about, cells, .. } in schedulers() {
        let [(_, chooses), (_, source)] = &cells[..] else { continue };
        let _ = writeln!(text, "| `{name}` | {about} | {chooses} | {source} |");
    }
    let _ = write!(text, "\n{QUEUES}\n| queue | what it does | source |\n|---|---|---|\n");
    for Row { name, about, cells, .. } in queues() {
        let [(_, source)] = &cells[..] else { continue };
        let _ = writeln!(text, "| `{name}` | {about} | {source} |");
    }
    text
}

/// The numbers of all results with a line for each, or those called `name`; none if there is none of that name.
pub(super) fn results(name: Option<&str>) -> Option<String> {
    let mut text = String::new();
    for section in SECTIONS {
        let columns =
            section.columns.iter().filter(|column| name.is_none_or(|name| name == column.name || name == column.json));
        let mut is_first = true;
        for column in columns {
            if std::mem::take(&mut is_first) {
                let json =
                    if section.json.is_empty() { String::new() } else { format!("; of --json {}", section.json) };
                let _ = writeln!(text, "{}", format!("{}{json}", section.title).replace('`', ""));
            }
            let unit = if column.unit.is_empty() { String::new() } else { format!(" [{}]", column.unit) };
            let _ = writeln!(text, "  {:20} {}{unit}", called(column), column.says.replace('`', ""));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The names that [`results`] knows.
pub(super) fn columns() -> impl Iterator<Item = &'static str> {
    SECTIONS.iter().flat_map(|section| section.columns).flat_map(|column| [column.name, column.json])
}

fn called(column: &campaign::Column) -> &'static str {
    if column.name.is_empty() { column.json } else { column.name }
}

const RESULTS: &str = "# Metrics

Every number that `sinnet sim` stores or prints, with its unit and with what makes it. This page is made from the tables of the program by
`sinnet help results --markdown`; `sinnet help results NAME` tells of one in a terminal. [Results](results.md) says where the files are.

The source is a field or function as `cargo doc` shows it: the fields are those of `crates/simulator/src/result.rs`, which
`crates/simulator/src/report.rs` fills.
";

/// docs/metrics.md.
pub(super) fn results_in_markdown() -> String {
    let mut text = RESULTS.to_owned();
    for section in SECTIONS {
        let _ = writeln!(text, "\n## {}\n\n{}", section.title, section.says);
        if !section.json.is_empty() {
            let _ = writeln!(text, "In the JSON: {}.", section.json);
        }
        text += "\n| column | in the JSON | unit | what it is | source |\n|---|---|---|---|---|\n";
        for column in section.columns {
            let code = |name: &str| if name.is_empty() { "–".to_owned() } else { format!("`{name}`") };
            let unit = if column.unit.is_empty() { "–" } else { column.unit };
            let (name, json) = (code(column.name), code(column.json));
            let _ = writeln!(text, "| {name} | {json} | {unit} | {} | `{}` |", column.says, column.source);
        }
    }
    text
}
