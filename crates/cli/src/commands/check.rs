//! `sinnet check`: whether a file is right, without doing what it says.

use std::path::{Path, PathBuf};

use campaign::{Campaign, Seeds};
use scenario::Document;
use scenario::schema::Engine;
use text::toml::Value;

use super::up;
use super::{Failure, lab};
use crate::output;

/// Say whether a configuration of `sinnet up`, or a scenario, is right. Nothing is started, and no rights are needed.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file.
    file: PathBuf,
}

pub(crate) fn run(Arguments { file }: &Arguments) -> Result<(), Failure> {
    let shown = file.display();
    if is_scenario(file) {
        return output::result(&format!("{shown} is right: {}", of_scenario(file)?));
    }
    let checked = daemon::check(file).map_err(up::failure)?;
    let remarks = checked.remarks.iter().map(|remark| format!("\n{remark}"));
    output::result(&format!("{shown} is right: {}{}", checked.summary, remarks.collect::<String>()))
}

/// Scenarios have keys that no configuration has. A file that is no TOML is refused by the command's reader.
fn is_scenario(file: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(file) else { return false };
    let root = text::toml::parse(&file.to_string_lossy(), &text).map(|root| root.value);
    matches!(root, Ok(Value::Table(table)) if ["link", "flow", "duration", "extends", "sweep"].iter().any(|key| table.get(key).is_some()))
}

/// Which commands run it, and why others do not.
fn of_scenario(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::input(error.to_string()))?;
    let document = Document::load(&text, &file.to_string_lossy(), &mut scenario::read_beside);
    let points = document.and_then(|document| document.points()).map_err(|error| Failure::input(error.to_string()))?;
    let (mut commands, mut refusals) = (Vec::new(), Vec::new());
    match Campaign::load(file, &[], Seeds::default()) {
        Ok(campaign) if campaign.runs() == 1 => commands.push(format!("`{}`", Engine::Sim.command())),
        Ok(campaign) => commands.push(format!("`{}`, {} scenarios of a sweep", Engine::Sim.command(), campaign.runs())),
        Err(error) => {
            // Where it honours every key, what it refuses is wrong elsewhere, too.
            let scenarios = points.iter().map(|point| point.document.scenario());
            if scenarios.flatten().all(|scenario| scenario.check_for(Engine::Sim).is_ok()) {
                return Err(Failure::input(error.to_string()));
            }
            refusals.push((Engine::Sim, error.to_string()));
        }
    }
    if points.len() == 1 {
        for engine in [Engine::LabVirtual, Engine::Lab] {
            let refusal = lab::read(file, &[])
                .and_then(|scenario| scenario.check_for(engine).map_err(|error| Failure::input(error.to_string())));
            match refusal {
                Ok(()) => commands.push(format!("`{}`", engine.command())),
                Err(failure) => refusals.push((engine, failure.message)),
            }
        }
    }
    if commands.is_empty() {
        let first = refusals.into_iter().next().map(|(_, why)| why).unwrap_or_default();
        return Err(Failure::input(first));
    }
    let why = |(engine, why): &(Engine, String)| {
        format!("\nnot for `{}`: {}", engine.command(), why.lines().next().unwrap_or_default())
    };
    Ok(format!("{}{}", commands.join(" and "), refusals.iter().map(why).collect::<String>()))
}
