//! The schema for people: as text for a terminal, and as the reference documentation.

use std::fmt::Write as _;

use super::{Engine, Key, Table, Variants, keys};

/// The keys called `name`, of any table; "flow.rate" is that of flows only.
pub fn find(name: &str) -> Vec<&'static Key> {
    let (table, name) = name.rsplit_once('.').map_or((None, name), |(table, name)| (Some(table), name));
    let fits = |key: &&Key| table.is_none_or(|table| label(key.table) == table) && key.name == name;
    keys().filter(fits).collect()
}

/// What tables are called in `sinnet help scenario TABLE.KEY`.
fn label(table: Table) -> String {
    format!("{table:?}").to_lowercase()
}

/// All keys with a line for each.
pub fn list() -> String {
    let mut text = String::new();
    for table in Table::ALL {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(text, "{}", table.title());
        for key in table.keys() {
            let _ = writeln!(text, "  {:16} {}", key.name, key.says);
        }
        text.push('\n');
    }
    text + "`sinnet help scenario KEY` tells more of one; where several tables have it, `flow.KEY` is that of flows."
}

/// All there is to tell of a key.
pub fn help(key: &Key) -> String {
    let mut text = format!("{} in {}\n\n{}\n\n", key.name, key.table.title(), key.says);
    let _ = writeln!(text, "{:22}{}", "value", key.value.in_words());
    let _ = writeln!(text, "{:22}{}", "default", default(key));
    if !key.example.is_empty() {
        let _ = writeln!(text, "{:22}{} = {}", "example", key.name, key.example);
    }
    for engine in Engine::ALL {
        let _ = writeln!(text, "{:22}{}", engine.command(), of(key, engine));
    }
    text
}

fn default(key: &Key) -> &'static str {
    if key.is_required() { "none: it must be there" } else { key.default }
}

/// On what an engine honours a key.
fn of(key: &Key, engine: Engine) -> String {
    match key.honoured_by(Some(engine)) {
        Variants::NONE => "not honoured: an error there".to_owned(),
        set if set == all(key.table, engine) => "all".to_owned(),
        set => set.names().join(", "),
    }
}

/// All variants that a table has in an engine.
fn all(table: Table, engine: Engine) -> Variants {
    match (table, engine) {
        (Table::Flow, Engine::Sim) => Variants::OF_SIM,
        (Table::Flow, Engine::LabVirtual) => Variants::OF_VIRTUAL_LAB,
        (Table::Flow, Engine::Lab) => Variants::OF_LAB,
        _ => Variants::ALL,
    }
}

const HEAD: &str = "# Scenario files

A scenario file is TOML. This page is made from the schema by `sinnet help scenario --markdown`; `sinnet help scenario KEY` tells
of one key in a terminal, and `sinnet help scenario --json-schema` is for editors.

A key that an engine does not honour is an error there, with its line and what would be right. The last three columns say on what
each engine honours it: `sim` is `sinnet sim` (and `fairness`, `papers`), `virtual` is `sinnet lab --virtual`, `lab` is `sinnet lab`.
";

/// The reference documentation, `docs/scenarios.md`.
pub fn markdown() -> String {
    let mut text = HEAD.to_owned();
    for table in Table::ALL {
        let _ = write!(text, "\n## {}\n\n", heading(table));
        text.push_str(
            "| key | value | default | what it does | sim | virtual | lab |\n|---|---|---|---|---|---|---|\n",
        );
        for key in table.keys() {
            let default = if key.is_required() { "required" } else { key.default };
            let says = match key.example {
                "" => key.says.to_owned(),
                example => format!("{} Example: `{} = {example}`", key.says, key.name),
            };
            let cell = |engine| match key.honoured_by(Some(engine)) {
                Variants::NONE => "no".to_owned(),
                _ => of(key, engine),
            };
            let [sim, virtual_lab, lab] = Engine::ALL.map(cell);
            let value = key.value.in_words();
            let _ = writeln!(text, "| `{}` | {value} | {default} | {says} | {sim} | {virtual_lab} | {lab} |", key.name);
        }
    }
    text
}

fn heading(table: Table) -> String {
    match table {
        Table::Scenario => "The top of the file".to_owned(),
        table => format!("`{}`", table.title()),
    }
}
