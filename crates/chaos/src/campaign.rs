//! Seeds on all cores, and a file from which an interrupted campaign goes on.

use crate::draw::{Shape, draw};
use crate::property::{Finding, Property, Tally};
use crate::run::{run, run_twice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

/// Seeds that are written down together.
const BATCH: u64 = 16;
/// One seed in so many is run twice.
const TWICE: u64 = 16;

/// Which seeds, and how.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// What is drawn from them.
    pub shape: Shape,
    /// Threads.
    pub jobs: usize,
    /// It ends after so many findings.
    pub findings: usize,
    /// Only findings of this property count.
    pub property: Option<Property>,
}

/// What came of some seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// What was looked at.
    pub tally: Tally,
    /// By seed, what did not hold.
    pub findings: Vec<(u64, Finding)>,
    /// Packets sent.
    pub packets: u64,
    /// Virtual time, in milliseconds.
    pub virtual_ms: u64,
}

impl Batch {
    /// Adds another.
    fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.tally.add(&other.tally);
        self.findings.extend(other.findings.iter().cloned());
        self.packets += other.packets;
        self.virtual_ms += other.virtual_ms;
    }
}

/// Why a campaign could not be kept in a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file system refused.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// The file is of something else.
    #[error("{0}, line {1}: this is no batch of a campaign of the same kind; give another file, or remove it")]
    Foreign(String, usize),
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    shape: String,
    batch: Batch,
}

/// What is finished, in a file that only grows.
pub struct Journal {
    file: File,
    shape: String,
    /// First seeds of the batches that are in it.
    done: BTreeSet<u64>,
    total: Batch,
}

impl Journal {
    /// Opens or makes a file.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn open(path: &Path, job: &Job) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let io = |error| FileError::Io(name.clone(), error);
        let file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(io)?;
        let shape = format!("{:?}", job.shape);
        let (mut done, mut total) = (BTreeSet::new(), Batch::default());
        let lines: Vec<String> = BufReader::new(&file).lines().collect::<Result<_, _>>().map_err(io)?;
        let count = lines.len();
        for (number, line) in lines.iter().enumerate() {
            let parsed = serde_json::from_str::<Line>(line).ok().filter(|line| line.shape == shape);
            match parsed {
                Some(Line { batch, .. }) => {
                    let wanted = batch.first >= job.first && batch.first + batch.seeds <= job.first + job.seeds;
                    if wanted && done.insert(batch.first) {
                        total.add(&batch);
                    }
                }
                // The last line may have been cut by a power failure.
                None if number + 1 == count => {}
                None => return Err(FileError::Foreign(name, number + 1)),
            }
        }
        let mut journal = Self { file, shape, done, total };
        if lines.last().is_some_and(|line| serde_json::from_str::<Line>(line).is_err()) {
            journal.file.write_all(b"\n").map_err(|error| FileError::Io(name, error))?;
        }
        Ok(journal)
    }

    fn keep(&mut self, batch: &Batch) -> std::io::Result<()> {
        let line = Line { shape: self.shape.clone(), batch: batch.clone() };
        let text = serde_json::to_string(&line)?;
        writeln!(self.file, "{text}")
    }
}

/// Runs the seeds of a job that are not in the journal yet. `look` is told the total after each batch. `stop` ends it;
/// what is finished is kept.
///
/// # Errors
/// Where the journal cannot be written.
pub fn conduct(
    job: &Job,
    mut journal: Option<&mut Journal>,
    stop: &AtomicBool,
    mut look: impl FnMut(&Batch),
) -> std::io::Result<Batch> {
    let mut total = journal.as_ref().map(|journal| journal.total.clone()).unwrap_or_default();
    let done = journal.as_ref().map(|journal| journal.done.clone()).unwrap_or_default();
    look(&total);
    let next = AtomicU64::new(job.first);
    let end = job.first.saturating_add(job.seeds);
    let enough = AtomicBool::new(total.findings.len() >= job.findings);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..job.jobs.max(1) {
            let (sender, next, done, enough) = (sender.clone(), &next, &done, &enough);
            scope.spawn(move || {
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= end {
                        return;
                    }
                    if done.contains(&first) {
                        continue;
                    }
                    let ended = || stop.load(Ordering::Relaxed) || enough.load(Ordering::Relaxed);
                    let Some(batch) = self::batch(first, BATCH.min(end - first), job, &ended) else { return };
                    if sender.send(batch).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for batch in receiver {
            if let Some(journal) = &mut journal {
                journal.keep(&batch)?;
            }
            total.add(&batch);
            enough.fetch_or(total.findings.len() >= job.findings, Ordering::Relaxed);
            look(&total);
        }
        Ok(total)
    })
}

/// Some seeds, or nothing where it was ended before they were finished; what was found is told in any case.
fn batch(first: u64, seeds: u64, job: &Job, ended: &impl Fn() -> bool) -> Option<Batch> {
    let shape = job.shape;
    let mut batch = Batch { first, ..Batch::default() };
    for seed in first..first + seeds {
        if ended() {
            return None;
        }
        let plan = draw(seed, shape);
        let outcome = if seed % TWICE == 0 && shape != Shape::Long { run_twice(&plan) } else { run(&plan) };
        batch.seeds += 1;
        batch.tally.add(&outcome.tally);
        batch.packets += outcome.packets;
        batch.virtual_ms += outcome.virtual_ms;
        let counts = |finding: &Finding| job.property.is_none_or(|property| property == finding.property);
        batch.findings.extend(outcome.finding.filter(counts).map(|finding| (seed, finding)));
    }
    Some(batch)
}
