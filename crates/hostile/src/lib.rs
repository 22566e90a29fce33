//! Attacks on real daemons in network namespaces, one after the other, and what each of them does to a good association.
//!
//! A and B are good; X sits on their Ethernet, forges what it likes, and is their default router. Nothing here is part of the
//! program that ships. It needs root, or the right to make user namespaces.

mod clear;
mod clockwork;
mod flood;
mod floods;
mod forge;
mod ground;
mod load;
mod report;
mod restart;
mod shots;
mod soak;
mod tap;
mod third;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Parser;

pub use load::Service;
pub use report::{Outcome, Row};

/// Why something could not be done: a sentence.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) told: &'static str,
    pub(crate) run: fn(&Options) -> Result<Row, Failure>,
}

/// Attack real daemons, and print what it does to a good association.
#[derive(Clone, Debug, Parser)]
#[command(name = "hostile")]
pub struct Options {
    /// The program to attack.
    #[arg(long, default_value = "target/release/sinnet")]
    pub sinnet: PathBuf,
    /// Only these attacks; by default all but the soak.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print the attacks there are, and do nothing.
    #[arg(long)]
    list: bool,
    /// Print a line of JSON for each attack instead of a table.
    #[arg(long)]
    json: bool,
    /// How long each measurement takes, without the attack and under it.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Forged packets a second.
    #[arg(long, default_value_t = 50_000)]
    pub rate: u64,
    /// How long the soak takes.
    #[arg(long, default_value_t = 30.0)]
    pub minutes: f64,
    /// How often daemons are killed in one attack.
    #[arg(long, default_value_t = 20)]
    pub restarts: u32,
    /// How soon, in seconds, a transfer has to go on after a daemon was started again.
    #[arg(long, default_value_t = 2.0)]
    pub patience: f64,
    /// Append each result to this file, and leave out what it has already.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Default for Options {
    /// As the command line without arguments.
    fn default() -> Self {
        Self::parse_from(["hostile"])
    }
}

/// All attacks.
fn attacks() -> Vec<&'static Attack> {
    floods::FLOODS
        .iter()
        .chain(&clear::CLEAR)
        .chain(&shots::SHOTS)
        .chain(&third::THIRD)
        .chain(&restart::RESTARTS)
        .chain(&soak::SOAKS)
        .collect()
}

/// Attacks that are run by name only.
const LONG: [&str; 1] = ["soak"];

/// Does what the command line asks for, and says whether everything held.
///
/// # Errors
/// Where nothing can be attacked at all, or somebody wants an end.
pub fn run(options: &Options) -> Result<bool, Failure> {
    if options.list {
        for attack in attacks() {
            print(&format!("{:<16} {}", attack.name, attack.told));
        }
        return Ok(true);
    }
    if let Some(wrong) = options.only.iter().find(|name| !attacks().iter().any(|attack| attack.name == **name)) {
        return Err(format!("there is no attack '{wrong}'; --list shows all").into());
    }
    lab::become_root()?;
    clockwork::listen()?;
    let sinnet = options.sinnet.canonicalize().map_err(|error| format!("{}: {error}", options.sinnet.display()))?;
    let options = &Options { sinnet, ..options.clone() };
    let done = options.out.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let mut rows = Vec::new();
    for attack in attacks() {
        let wanted = if options.only.is_empty() {
            !LONG.contains(&attack.name)
        } else {
            options.only.iter().any(|name| name == attack.name)
        };
        if !wanted || done.contains(&format!("{{\"attack\":\"{}\"", attack.name)) {
            continue;
        }
        tell(&format!("{}: {}", attack.name, attack.told));
        let row = one(attack, options);
        clockwork::pause(std::time::Duration::ZERO)?;
        let line = serde_json::to_string(&row)?;
        if let Some(file) = &options.out {
            writeln!(fs::File::options().append(true).create(true).open(file)?, "{line}")?;
        }
        if options.json {
            print(&line);
        }
        rows.push(row);
    }
    if !options.json {
        print(report::table(&rows).trim_end());
    }
    Ok(rows.iter().all(|row| matches!(row.outcome, Outcome::Held)))
}

/// Runs one attack by its name. The process has to have the right to make namespaces already.
///
/// # Errors
/// Where there is none of that name.
pub fn attack(name: &str, options: &Options) -> Result<Row, Failure> {
    let known = attacks().into_iter().find(|attack| attack.name == name);
    Ok(one(known.ok_or_else(|| format!("there is no attack '{name}'"))?, options))
}

/// What fails in an attack is a row, too.
fn one(attack: &Attack, options: &Options) -> Row {
    (attack.run)(options).unwrap_or_else(|error| {
        let outcome = Outcome::NotTried(error.to_string());
        Row { attack: attack.name.to_owned(), outcome, ..Row::default() }
    })
}

#[expect(clippy::print_stdout, reason = "a table is the result")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "what happens now is not the result")]
fn tell(text: &str) {
    eprintln!("{text}");
}
