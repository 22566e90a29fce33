//! The directory of a campaign: what is finished stays, and a second start finds it.
//!
//! ```text
//! DIR/campaign.json      what made it: scenario, version, program
//! DIR/scenario.toml      the scenario that was run last, with what it extends and what --set says worked in
//! DIR/summary.parquet    a row per run                      (written at the end, of all runs of the last start)
//! DIR/summary_flows.parquet, DIR/summary_links.parquet      a row per run and flow, or run and link
//! DIR/flows/RUN.parquet, DIR/paths/…, DIR/links/…           the time series of a run
//! DIR/pcap/RUN/LINK.pcapng                                  what crossed each link
//! DIR/runs/RUN.json      the result of a run and the exact scenario; written last, so where it is, the run is complete
//! ```
//!
//! A column of a swept key has numbers where all its values are: times in seconds, rates in bit/s, amounts in bytes or packets.
//!
//! RUN is the seed and a hash over the resolved scenario, the seed and the program.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use parquet::file::reader::SerializedFileReader;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use simulator::RunResult;

use crate::execute::{Job, Series};
use crate::files::{StoreError, directory, write_whole};
use crate::table::Table;

const FORMAT: &str = "sinnet-campaign/1";
/// Directories of Parquet files, one file per run.
const SERIES: [&str; 3] = ["flows", "paths", "links"];
/// Parquet files with rows of all runs.
pub(crate) const SUMMARIES: [&str; 3] = ["summary", "summary_flows", "summary_links"];

/// What results come from: with another program or version, a run is another run.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Version for people, as in `--version`.
    pub version: String,
    /// Something that changes whenever the program does, such as a hash of its file.
    pub program: String,
}

impl Origin {
    /// This very program. Two programs are one where what decides results has the same sources: the command line's and the
    /// Python package's find each other's runs.
    pub fn here() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), program: env!("SINNET_PROGRAM").to_owned() }
    }

    /// What the files of a run are called.
    pub(crate) fn name(&self, scenario: &str, seed: u64) -> String {
        let mut hash = Sha256::new();
        for part in [&self.version, &self.program, scenario].map(str::as_bytes) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update(seed.to_be_bytes());
        let digest = hexadecimal(&hash.finalize());
        format!("seed{seed}-{}", digest.get(..16).unwrap_or_default())
    }
}

/// One run to be: everything that decides its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec<'a> {
    /// The scenario with base file, overrides and the point of the sweep worked in.
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    /// Nanoseconds between samples of the time series; `None` without them.
    pub(crate) interval: Option<u64>,
    pub(crate) pcap: bool,
}

#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
    origin: Origin,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) scenario: String,
    /// What is the same in all runs; empty where nothing is said about that.
    #[serde(default)]
    pub(crate) settings: String,
    pub(crate) version: String,
    pub(crate) program: String,
}

/// A finished run on disk.
#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) format: String,
    pub(crate) version: String,
    pub(crate) program: String,
    pub(crate) seed: u64,
    pub(crate) interval_ns: Option<u64>,
    pub(crate) pcap: bool,
    pub(crate) scenario: String,
    pub(crate) files: Vec<StoredFile>,
    pub(crate) result: RunResult,
}

/// A file that belongs to a run.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredFile {
    /// Relative to the campaign's directory.
    pub(crate) path: String,
    pub(crate) sha256: String,
}

impl Header {
    /// That of the store in `root`; `None` where there is none.
    pub(crate) fn read(root: &Path) -> Result<Option<Self>, StoreError> {
        let path = root.join("campaign.json");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::broken(&path, error.to_string())),
        };
        let header: Self = parse(&path, &bytes)?;
        if header.format != FORMAT {
            return Err(StoreError::broken(&path, format!("its format is {:?}, not {FORMAT:?}", header.format)));
        }
        Ok(Some(header))
    }

    /// Refuses to mix what cannot be read as one campaign.
    fn admit(&self, root: &Path, job: &Job<'_>, origin: &Origin) -> Result<(), StoreError> {
        if self.scenario != job.name {
            let what = format!(
                "holds the campaign of another scenario, {:?}; this one is {:?}. Take another directory",
                self.scenario, job.name
            );
            return Err(StoreError::foreign(root, what));
        }
        if let Some(difference) = difference(&self.settings, job.settings) {
            let what = format!(
                "holds runs with other settings, and time series of both would be mixed: {difference}. Take another \
                 directory, or sweep over what differs"
            );
            return Err(StoreError::foreign(root, what));
        }
        if job.is_part && self.program != origin.program {
            let what = format!(
                "holds runs of another build of the program (version {}; this is {}), and shards of one campaign come from one. \
                 Start all with the same, or take another directory",
                self.version, origin.version
            );
            return Err(StoreError::foreign(root, what));
        }
        Ok(())
    }
}

impl Store {
    /// Opens the campaign in `root`, or begins one there.
    pub(crate) fn open(root: &Path, job: &Job<'_>, origin: Origin) -> Result<Self, StoreError> {
        directory(root)?;
        if Self::existing(root, job, origin.clone())?.is_none() {
            refuse_others(root)?;
        }
        let store = Self { root: root.to_owned(), origin };
        // Whoever makes the tables over all runs reads all of them; a part has its own to look at.
        if !job.is_part {
            store.check_parquet()?;
        }
        let Origin { version, program } = store.origin.clone();
        let (format, scenario, settings) = (FORMAT.into(), job.name.into(), job.settings.into());
        write_json(&root.join("campaign.json"), &Header { format, scenario, settings, version, program })?;
        directories(root)?;
        write_whole(&root.join("scenario.toml"), |file| file.write_all(job.text.as_bytes()))?;
        Ok(store)
    }

    /// The campaign in `root`, if there is one; changes nothing.
    pub(crate) fn existing(root: &Path, job: &Job<'_>, origin: Origin) -> Result<Option<Self>, StoreError> {
        let Some(header) = Header::read(root)? else { return Ok(None) };
        header.admit(root, job, &origin)?;
        Ok(Some(Self { root: root.to_owned(), origin }))
    }

    /// The name of a run's files.
    pub(crate) fn name(&self, spec: &Spec<'_>) -> String {
        self.origin.name(spec.scenario, spec.seed)
    }

    /// The result of a finished run; `None` if it is missing, or lacks something that is asked for now.
    pub(crate) fn load(&self, spec: &Spec<'_>) -> Result<Option<RunResult>, StoreError> {
        let path = self.record_path(spec);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::broken(&path, error.to_string())),
        };
        let record: Record = parse(&path, &bytes)?;
        if record.scenario != spec.scenario || record.seed != spec.seed {
            return Err(StoreError::broken(&path, "it is the record of another run"));
        }
        if record.interval_ns != spec.interval || (spec.pcap && !record.pcap) {
            return Ok(None);
        }
        for file in &record.files {
            let path = self.root.join(&file.path);
            match digest_of(&path) {
                Ok(digest) if digest == file.sha256 => {}
                Ok(_) => return Err(StoreError::broken(&path, "it is not what the run wrote")),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(StoreError::broken(&path, error.to_string())),
            }
        }
        Ok(Some(record.result))
    }

    /// Stores a finished run: its series, the captures already in place in `captures`, last the record.
    pub(crate) fn save(
        &self,
        spec: &Spec<'_>,
        result: &RunResult,
        series: Option<&Series>,
        captures: &[PathBuf],
    ) -> Result<(), StoreError> {
        let name = self.name(spec);
        let mut files = Vec::new();
        let tables = series.map(|series| [&series.flows, &series.paths, &series.links]);
        for (kind, table) in SERIES.iter().zip(tables.into_iter().flatten()) {
            let path = self.root.join(kind).join(format!("{name}.parquet"));
            self.write_table(&path, table, spec.scenario)?;
            files.push(self.stored(&path)?);
        }
        for path in captures {
            files.push(self.stored(path)?);
        }
        // Whoever runs it again, on whatever machine, writes the same bytes.
        let result = RunResult { series: Vec::new(), cpu_s: 0.0, ..result.clone() };
        let Origin { version, program } = self.origin.clone();
        let record = Record {
            format: FORMAT.into(),
            version,
            program,
            seed: spec.seed,
            interval_ns: spec.interval,
            pcap: spec.pcap,
            scenario: spec.scenario.into(),
            files,
            result,
        };
        write_json(&self.record_path(spec), &record)
    }

    /// Writes the tables over all runs.
    pub(crate) fn summarise(&self, tables: [Table; 3], scenario: &str) -> Result<(), StoreError> {
        for (name, table) in SUMMARIES.iter().zip(tables) {
            self.write_table(&self.root.join(format!("{name}.parquet")), &table, scenario)?;
        }
        Ok(())
    }

    /// Where the captures of a run belong.
    pub(crate) fn captures(&self, spec: &Spec<'_>) -> PathBuf {
        self.root.join("pcap").join(self.name(spec))
    }

    fn record_path(&self, spec: &Spec<'_>) -> PathBuf {
        self.root.join("runs").join(format!("{}.json", self.name(spec)))
    }

    fn write_table(&self, path: &Path, table: &Table, scenario: &str) -> Result<(), StoreError> {
        let notes = [
            ("sinnet.version", self.origin.version.as_str()),
            ("sinnet.program", self.origin.program.as_str()),
            ("sinnet.scenario", scenario),
        ];
        write_whole(path, |file| table.write(file, &notes))
    }

    fn stored(&self, path: &Path) -> Result<StoredFile, StoreError> {
        let sha256 = digest_of(path).map_err(|error| StoreError::write(path, error))?;
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        Ok(StoredFile { path: relative.to_string_lossy().into_owned(), sha256 })
    }

    /// Every Parquet file must be readable, also those that no record names: whoever reads the directory reads them all.
    fn check_parquet(&self) -> Result<(), StoreError> {
        let mut paths: Vec<PathBuf> = SUMMARIES.iter().map(|name| self.root.join(format!("{name}.parquet"))).collect();
        for kind in SERIES {
            let directory = self.root.join(kind);
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(StoreError::broken(&directory, error.to_string())),
            };
            for entry in entries {
                let path = entry.map_err(|error| StoreError::broken(&directory, error.to_string()))?.path();
                if path.extension().is_some_and(|extension| extension == "parquet") {
                    paths.push(path);
                }
            }
        }
        paths.sort();
        for path in paths {
            match File::open(&path) {
                Ok(file) => {
                    SerializedFileReader::new(file).map_err(|error| {
                        StoreError::broken(&path, format!("it is not a whole Parquet file ({error})"))
                    })?;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::broken(&path, error.to_string())),
            }
        }
        Ok(())
    }
}

/// The first line in which settings differ; none where either says nothing.
pub(crate) fn difference(there: &str, here: &str) -> Option<String> {
    if there == here || there.is_empty() || here.is_empty() {
        return None;
    }
    let only = |one: &str, other: &str| {
        let line = one.lines().find(|line| !line.is_empty() && !other.lines().any(|known| known == *line));
        line.map_or_else(|| "nothing".to_owned(), |line| format!("`{line}`"))
    };
    Some(format!("{} there, {} here", only(there, here), only(here, there)))
}

/// Makes the directories for the files of runs.
pub(crate) fn directories(root: &Path) -> Result<(), StoreError> {
    SERIES.iter().chain(&["runs"]).try_for_each(|name| directory(&root.join(name)))
}

/// Refuses a directory in which there is something, but no campaign. Another shard may begin one at this moment.
pub(crate) fn refuse_others(root: &Path) -> Result<(), StoreError> {
    match visible(root)? {
        Some(entry) if Header::read(root)?.is_none() => {
            let entry = entry.to_string_lossy();
            let what = format!("is not empty ({entry} is in it) and holds no campaign. Take another directory");
            Err(StoreError::foreign(root, what))
        }
        _ => Ok(()),
    }
}

/// The first entry of `root` that is not hidden.
fn visible(root: &Path) -> Result<Option<std::ffi::OsString>, StoreError> {
    let failed = |error| StoreError::write(root, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if !name.as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names.into_iter().next())
}

pub(crate) fn parse<T: for<'a> Deserialize<'a>>(path: &Path, bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::broken(path, format!("it cannot be read: {error}")))
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    write_whole(path, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        file.write_all(b"\n")
    })
}

/// SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// When the file cannot be read.
pub fn digest_of(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = io::Read::read(&mut file, &mut buffer)?;
        match buffer.get(..count) {
            Some(bytes) if count > 0 => hash.update(bytes),
            _ => return Ok(hexadecimal(&hash.finalize())),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Values;

    const SPEC: Spec<'_> = Spec { scenario: "text", seed: 7, interval: Some(1), pcap: false };

    const JOB: Job<'_> = Job { name: "s", text: "text", settings: "duration = 1\n", points: &[], is_part: false };

    fn origin(program: &str) -> Origin {
        Origin { version: "1".into(), program: program.into() }
    }

    fn open(root: &Path, program: &str) -> Result<Store, StoreError> {
        Store::open(root, &JOB, origin(program))
    }

    fn table() -> Table {
        Table::new().with("x", Values::Float(vec![1.0, 2.0]))
    }

    fn saved(root: &Path) -> (Store, RunResult) {
        let store = open(root, "p").unwrap();
        // A number whose shortest decimal form must come back to the last bit.
        let result = RunResult { seed: 7, virtual_s: 0.1 + 0.2, digest: u64::MAX, ..RunResult::default() };
        let series = Series { flows: table(), paths: table(), links: table() };
        store.save(&SPEC, &result, Some(&series), &[]).unwrap();
        (store, result)
    }

    #[test]
    fn what_is_stored_is_found() {
        let root = tempfile::tempdir().unwrap();
        let (_, result) = saved(root.path());
        let store = open(root.path(), "p").unwrap();
        assert_eq!(store.load(&SPEC).unwrap(), Some(result));
        // Anything else that decides the result makes it another run; captures that are not there make it a missing one.
        for other in [
            Spec { seed: 8, ..SPEC },
            Spec { scenario: "text ", ..SPEC },
            Spec { interval: None, ..SPEC },
            Spec { pcap: true, ..SPEC },
        ] {
            assert_eq!(store.load(&other).unwrap(), None, "{other:?}");
        }
        assert_eq!(open(root.path(), "q").unwrap().load(&SPEC).unwrap(), None);
    }

    #[test]
    fn a_series_that_is_gone_makes_the_run_missing() {
        let root = tempfile::tempdir().unwrap();
        let (store, _) = saved(root.path());
        fs::remove_file(root.path().join(format!("flows/{}.parquet", store.name(&SPEC)))).unwrap();
        assert_eq!(store.load(&SPEC).unwrap(), None);
    }

    #[test]
    fn broken_files_are_named() {
        let root = tempfile::tempdir().unwrap();
        let (store, _) = saved(root.path());
        let path = root.path().join(format!("flows/{}.parquet", store.name(&SPEC)));
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let told = open(root.path(), "p").unwrap_err().to_string();
        assert!(told.contains("it is not a whole Parquet file") && told.contains(path.to_str().unwrap()), "{told}");

        // A changed byte in the middle leaves the file readable at its end, but it is not what was written.
        let mut changed = whole;
        changed[10] ^= 1;
        fs::write(&path, changed).unwrap();
        let told = open(root.path(), "p").unwrap().load(&SPEC).unwrap_err().to_string();
        assert!(told.contains("it is not what the run wrote"), "{told}");

        let record = root.path().join(format!("runs/{}.json", store.name(&SPEC)));
        fs::write(&record, "{").unwrap();
        assert!(store.load(&SPEC).unwrap_err().to_string().contains("it cannot be read"));
    }

    #[test]
    fn another_directory_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "").unwrap();
        let told = open(root.path(), "p").unwrap_err().to_string();
        assert!(told.contains("thesis.tex is in it"), "{told}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);

        let root = tempfile::tempdir().unwrap();
        open(root.path(), "p").unwrap();
        let told = |job: &Job<'_>, program| Store::open(root.path(), job, origin(program)).unwrap_err().to_string();
        let other = told(&Job { name: "other", ..JOB }, "p");
        assert!(other.contains("another scenario"), "{other}");
        // The time series of one directory are read as one.
        let other = told(&Job { settings: "duration = 2\n", ..JOB }, "p");
        assert!(other.contains("`duration = 1` there, `duration = 2` here"), "{other}");
        let other = told(&Job { is_part: true, ..JOB }, "q");
        assert!(other.contains("another build of the program"), "{other}");
    }
}
