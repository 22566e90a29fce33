//! Stores as a whole: what one holds, and several made one.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use crate::files::{StoreError, directory, write_whole};
use crate::store::{
    Header, Record, SUMMARIES, StoredFile, difference, digest_of, directories, parse, refuse_others, write_json,
};

/// What a store holds.
#[derive(Clone, Debug, Serialize)]
pub struct Contents {
    /// The scenario's name.
    pub scenario: String,
    /// The version that wrote it last.
    pub version: String,
    /// Finished runs of that program.
    pub runs: usize,
    /// Finished runs of other builds.
    pub of_other_programs: usize,
    /// Runs of which a file is gone; they count as missing.
    pub incomplete: usize,
    /// Bytes of series and captures.
    pub bytes: u64,
    /// The tables over all runs are there.
    pub has_summary: bool,
}

/// Looks at the store in `root`. Files are not read again to see whether they are as they were written; [`merge`] does.
///
/// # Errors
/// Where there is no store, or one that cannot be read.
pub fn contents(root: &Path) -> Result<Contents, StoreError> {
    let header = Header::read(root)?.ok_or_else(|| no_store(root))?;
    let mut contents = Contents {
        scenario: header.scenario,
        version: header.version,
        runs: 0,
        of_other_programs: 0,
        incomplete: 0,
        bytes: 0,
        has_summary: SUMMARIES.iter().all(|name| root.join(format!("{name}.parquet")).exists()),
    };
    for path in records(root)? {
        let record = record(&path)?;
        let sizes =
            record.files.iter().map(|file| Ok(fs::metadata(place(root, &path, file)?).ok().map(|data| data.len())));
        let Some(sizes) = sizes.collect::<Result<Option<Vec<u64>>, StoreError>>()? else {
            contents.incomplete += 1;
            continue;
        };
        contents.bytes += sizes.iter().sum::<u64>();
        if record.program == header.program {
            contents.runs += 1;
        } else {
            contents.of_other_programs += 1;
        }
    }
    Ok(contents)
}

/// What [`merge`] has done.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Merged {
    /// Runs that are new in the store.
    pub added: usize,
    /// Runs that it had.
    pub there: usize,
}

/// Copies all runs of the stores `from` into that in `into`, which is made where it is not there. Each file is compared with
/// what the run wrote. Stopped in between, it can be called again. The tables over all runs are taken away, since they are
/// of fewer runs then.
///
/// # Errors
/// Stores of other scenarios, settings or programs; a file that is not what its run wrote; two results of one run.
pub fn merge(into: &Path, from: &[PathBuf]) -> Result<Merged, StoreError> {
    let mut merged = Merged::default();
    for source in from {
        let header = Header::read(source)?.ok_or_else(|| no_store(source))?;
        match Header::read(into)? {
            Some(own) => same(into, &own, source, &header)?,
            None => begin(into, source, &header)?,
        }
        for path in records(source)? {
            if copy_run(into, source, &path)? {
                merged.added += 1;
            } else {
                merged.there += 1;
            }
        }
    }
    if merged.added > 0 {
        for name in SUMMARIES {
            let path = into.join(format!("{name}.parquet"));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::write(&path, error));
                }
                _ => {}
            }
        }
    }
    Ok(merged)
}

/// A new store of the same campaign.
fn begin(into: &Path, source: &Path, header: &Header) -> Result<(), StoreError> {
    directory(into)?;
    refuse_others(into)?;
    let text = source.join("scenario.toml");
    let bytes = fs::read(&text).map_err(|error| StoreError::broken(&text, error.to_string()))?;
    write_whole(&into.join("scenario.toml"), |file| std::io::Write::write_all(file, &bytes))?;
    directories(into)?;
    write_json(&into.join("campaign.json"), header)
}

/// Refuses to mix what is not one campaign of one program.
fn same(into: &Path, own: &Header, source: &Path, other: &Header) -> Result<(), StoreError> {
    let differs = if own.scenario != other.scenario {
        Some(format!("the scenario {:?}, not {:?}", other.scenario, own.scenario))
    } else if own.program != other.program {
        Some(format!("another build of the program (version {}, not {})", other.version, own.version))
    } else {
        difference(&other.settings, &own.settings).map(|difference| format!("other settings: {difference}"))
    };
    match differs {
        Some(what) => {
            Err(StoreError::foreign(source, format!("holds {what}. It cannot be merged into {}", into.display())))
        }
        None => Ok(()),
    }
}

/// Copies one run, its record last; false if the store has it.
fn copy_run(into: &Path, source: &Path, path: &Path) -> Result<bool, StoreError> {
    let bytes = fs::read(path).map_err(|error| StoreError::broken(path, error.to_string()))?;
    let record: Record = parse(path, &bytes)?;
    let target = into.join("runs").join(path.file_name().unwrap_or_default());
    match fs::read(&target) {
        Ok(own) if own == bytes => return Ok(false),
        Ok(_) => {
            let what = format!("the same run has another result in {}", path.display());
            return Err(StoreError::broken(&target, what));
        }
        Err(_) => {}
    }
    for file in &record.files {
        let (from, to) = (place(source, path, file)?, place(into, path, file)?);
        match digest_of(&from) {
            Ok(digest) if digest == file.sha256 => {}
            Ok(_) => return Err(StoreError::broken(&from, "it is not what the run wrote")),
            Err(error) => return Err(StoreError::broken(&from, error.to_string())),
        }
        to.parent().map(directory).transpose()?;
        write_whole(&to, |out| std::io::copy(&mut fs::File::open(&from)?, out).map(drop))?;
    }
    write_whole(&target, |out| std::io::Write::write_all(out, &bytes))?;
    Ok(true)
}

/// Where a run's file is, which its record names; nowhere else than in the store.
fn place(root: &Path, record: &Path, file: &StoredFile) -> Result<PathBuf, StoreError> {
    let path = Path::new(&file.path);
    if path.components().all(|component| matches!(component, Component::Normal(_))) {
        Ok(root.join(path))
    } else {
        Err(StoreError::broken(record, format!("{:?} is no file of a store", file.path)))
    }
}

fn record(path: &Path) -> Result<Record, StoreError> {
    parse(path, &fs::read(path).map_err(|error| StoreError::broken(path, error.to_string()))?)
}

/// The records of finished runs, by name.
fn records(root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let runs = root.join("runs");
    let failed = |error: std::io::Error| StoreError::broken(&runs, error.to_string());
    let mut paths = Vec::new();
    for entry in fs::read_dir(&runs).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // What another program is writing now has a hidden name.
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn no_store(root: &Path) -> StoreError {
    StoreError::foreign(root, "holds no campaign: `sinnet sim SCENARIO.toml --out DIR` makes one")
}
