//! `sinnet help`: of a command, of the keys of scenario files and of the configuration, of algorithms and of results.

use std::fmt::Write as _;

use clap::CommandFactory as _;
use daemon::config::KEYS;
use scenario::schema;

use super::{Failure, reference};
use crate::output;

/// Tell about a command; with `help scenario` and `help config` about the keys of scenario files and of the configuration, with
/// `help algorithms` and `help results` about congestion rules, schedulers and queues, and about the numbers of results.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A command, "scenario", "config", "algorithms" or "results".
    topic: Option<String>,
    /// A key, such as queue, flow.rate or congestion; an algorithm; a number of a result.
    key: Option<String>,
    /// Of scenario files or the configuration: the JSON schema, for editors.
    #[arg(long, conflicts_with = "key")]
    json_schema: bool,
    /// The reference documentation of the whole topic, in Markdown.
    #[arg(long, conflicts_with_all = ["key", "json_schema"])]
    markdown: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.topic.as_deref() {
        Some("scenario") => of_scenarios(arguments),
        Some("config") if arguments.json_schema => output::json(&daemon::config::json_schema()),
        Some("config") if arguments.markdown => output::result(configuration_in_markdown().trim_end()),
        Some("config") => of_configuration(arguments.key.as_deref()),
        Some(topic @ ("algorithms" | "results")) if !arguments.json_schema => of_reference(topic, arguments),
        _ if arguments.json_schema || arguments.markdown || arguments.key.is_some() => Err(Failure::input(
            "keys, --json-schema and --markdown are of `sinnet help scenario` and `sinnet help config`; names and --markdown also of \
             `sinnet help algorithms` and `sinnet help results`",
        )),
        topic => of_command(topic),
    }
}

fn of_scenarios(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.json_schema {
        return output::json(&schema::json_schema());
    }
    if arguments.markdown {
        return output::result(schema::markdown().trim_end());
    }
    let Some(name) = &arguments.key else { return output::result(&schema::list()) };
    let found: Vec<String> = schema::find(name).into_iter().map(schema::help).collect();
    if found.is_empty() {
        return Err(unknown("key", name, "scenario", schema::keys().map(|key| key.name)));
    }
    output::result(found.join("\n").trim_end())
}

fn of_configuration(name: Option<&str>) -> Result<(), Failure> {
    let mut told = String::new();
    let mut table = "";
    for key in KEYS.iter().filter(|key| name.is_none_or(|name| name == key.name)) {
        // Writing to a string does not fail.
        if name.is_some() {
            let default = if key.default.is_empty() { "none: it must be there" } else { key.default };
            let _ = writeln!(told, "{} in {}\n\n{}\n", key.name, key.table, key.says);
            let _ = writeln!(told, "{:10}{}\n{:10}{default}\n", "value", key.value.in_words(), "default");
            continue;
        }
        if key.table != table {
            table = key.table;
            let _ = writeln!(told, "{table}");
        }
        let _ = writeln!(told, "  {:16} {}", key.name, key.says);
    }
    match name {
        Some(name) if told.is_empty() => Err(unknown("key", name, "config", KEYS.iter().map(|key| key.name))),
        _ => output::result(told.trim_end()),
    }
}

/// As `docs/configuration.md` has it.
fn configuration_in_markdown() -> String {
    let mut text = "# Configuration\n\nThe file of `sinnet up` is TOML. This page is made by `sinnet help config --markdown`; `sinnet help \
                    config KEY` tells of one key in a\nterminal, and `sinnet check FILE` whether a file is right.\n"
        .to_owned();
    let mut table = "";
    for key in KEYS {
        if key.table != table {
            table = key.table;
            let _ = writeln!(text, "\n## {table}\n\n| key | value | default | what it does |\n|---|---|---|---|");
        }
        let default = if key.default.is_empty() { "required" } else { key.default };
        // Writing to a string does not fail.
        let _ = writeln!(text, "| `{}` | {} | {default} | {} |", key.name, key.value.in_words(), key.says);
    }
    text
}

fn of_reference(topic: &str, arguments: &Arguments) -> Result<(), Failure> {
    let (is_algorithm, name) = (topic == "algorithms", arguments.key.as_deref());
    let told = match (is_algorithm, arguments.markdown) {
        (true, true) => Some(reference::algorithms_in_markdown()),
        (true, false) => reference::algorithms(name),
        (false, true) => Some(reference::results_in_markdown()),
        (false, false) => reference::results(name),
    };
    match told {
        Some(told) => output::result(told.trim_end()),
        None if is_algorithm => {
            Err(unknown("algorithm", name.unwrap_or_default(), topic, reference::names().into_iter()))
        }
        None => Err(unknown("number of a result", name.unwrap_or_default(), topic, reference::columns())),
    }
}

/// There is nothing of that name.
fn unknown<'a>(what: &str, name: &str, topic: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let help = match text::nearest(name, names) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("`sinnet help {topic}` lists them all"),
    };
    Failure::input(format!("no {what} is called {name}: {help}"))
}

fn of_command(topic: Option<&str>) -> Result<(), Failure> {
    let mut program = crate::Arguments::command();
    program.build();
    let Some(topic) = topic else { return output::result(program.render_long_help().to_string().trim_end()) };
    match program.find_subcommand_mut(topic) {
        Some(command) => output::result(command.render_long_help().to_string().trim_end()),
        None => Err(Failure::input(format!(
            "there is no command {topic}: `sinnet help` lists them, `sinnet help scenario` and `sinnet help config` the keys, \
             `sinnet help algorithms` the rules, `sinnet help results` the numbers"
        ))),
    }
}
