//! The experiments of the papers.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use ::campaign::Origin;
use ::papers::{Laboratory, Published, Row, Settings};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::campaign::Watcher;
use crate::errors::{SinnetError, papers as raised};

/// Identifier and title of every experiment.
#[pyfunction]
#[pyo3(name = "papers_list")]
pub(crate) fn list() -> Vec<(&'static str, &'static str)> {
    ::papers::all().map(|experiment| (experiment.id, experiment.title)).collect()
}

/// Runs experiments; the rows as JSON.
#[pyfunction]
#[pyo3(name = "papers_run")]
pub(crate) fn run(
    py: Python<'_>,
    ids: Vec<String>,
    seeds: NonZeroU32,
    out: PathBuf,
    threads: NonZeroUsize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let experiments = ::papers::find(&ids).map_err(|error| raised(py, &error))?;
    let laboratory = Laboratory::prepare(&experiments, seeds).map_err(|error| raised(py, &error))?;
    let settings = Settings { seeds, threads, out, origin: Origin::here() };
    let stop = AtomicBool::new(false);
    let mut watcher = Watcher::new(progress);
    let results = py.detach(|| {
        laboratory
            .run(&settings, &stop, |progress| watcher.look(&stop, progress.fraction, progress.finished, progress.runs))
            .map_err(Box::new)
    });
    watcher.end()?;
    let results = results.map_err(|error| raised(py, &error))?;
    if stop.load(Ordering::Relaxed) {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    let published: BTreeMap<String, Published> = ::papers::published()
        .map_err(|error| raised(py, &error))?
        .into_iter()
        .map(|published| (published.id.clone(), published))
        .collect();
    let rows: Vec<Row> = experiments
        .iter()
        .flat_map(|experiment| ::papers::evaluate(experiment, published.get(experiment.id), &results).0)
        .collect();
    serde_json::to_string(&rows).map_err(|error| SinnetError::new_err(error.to_string()))
}
