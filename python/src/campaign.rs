//! Campaigns and what they found.

use std::collections::BTreeMap;
use std::fs::File;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::campaign::{CampaignError, FairnessReport, Options, Origin, Seeds, Tables};
use clock::Duration;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::Document;

use crate::errors::{SinnetError, campaign as raised, scenario as wrong};
use crate::plugins::PythonPlugins;
use crate::tables::{Batch, Table};

/// A scenario over seeds and the points of its sweep, checked and ready to be run.
#[pyclass(frozen, module = "sinnet._sinnet")]
pub(crate) struct Campaign {
    inner: ::campaign::Campaign,
    plugins: Option<Arc<PythonPlugins>>,
}

/// Looks at a campaign's progress on the thread that waits for it: shows it, and hears Ctrl-C.
pub(crate) struct Watcher {
    progress: Option<Py<PyAny>>,
    error: Option<PyErr>,
}

impl Watcher {
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Self {
        Self { progress, error: None }
    }

    pub(crate) fn look(&mut self, stop: &AtomicBool, fraction: f64, finished: usize, runs: usize) {
        if self.error.is_some() {
            return;
        }
        let heard = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) => progress.call1(py, (fraction, finished, runs)).map(drop),
                None => Ok(()),
            }
        });
        if let Err(error) = heard {
            self.error = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn end(&mut self) -> PyResult<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}

#[pymethods]
impl Campaign {
    #[new]
    fn new(
        py: Python<'_>,
        text: &str,
        name: &str,
        assignments: Vec<String>,
        seeds: (Option<u64>, Option<NonZeroU32>),
        plugins: &Bound<'_, PyDict>,
        places: Option<Vec<usize>>,
    ) -> PyResult<Self> {
        let seeds = Seeds { first: seeds.0, count: seeds.1 };
        let plugins = if plugins.is_empty() { None } else { Some(PythonPlugins::new(plugins)?) };
        let inner = match &plugins {
            None => ::campaign::Campaign::parse(text, name, &assignments, seeds),
            Some(plugins) => {
                let plugins: Arc<dyn ::campaign::Plugins> = Arc::<PythonPlugins>::clone(plugins);
                ::campaign::Campaign::parse_with(text, name, &assignments, seeds, plugins)
            }
        };
        let mut inner = inner.map_err(|error| raised(py, &error))?;
        if let Some(places) = places {
            let places: std::collections::BTreeSet<usize> = places.into_iter().collect();
            inner = inner.part(|place| places.contains(&place));
        }
        Ok(Self { inner, plugins })
    }

    #[getter]
    fn runs(&self) -> usize {
        self.inner.runs()
    }

    #[getter]
    fn remark(&self) -> Option<String> {
        self.inner.remark()
    }

    /// What the files of each run are called.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.names(&Origin::here())
    }

    /// The places of the runs that are not in a store.
    fn missing(&self, py: Python<'_>, out: PathBuf, interval_ns: Option<u64>) -> PyResult<Vec<usize>> {
        let options = options(NonZeroUsize::MIN, Some(out), interval_ns, false);
        let missing = py.detach(|| self.inner.missing(&options).map(|all| all.iter().map(|run| run.place).collect()));
        missing.map_err(|error| raised(py, &error))
    }

    fn run(
        &self,
        py: Python<'_>,
        threads: NonZeroUsize,
        out: Option<PathBuf>,
        interval_ns: Option<u64>,
        pcap: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Report> {
        // Python runs on one thread at a time: more of them would only wait for each other.
        let threads = if self.plugins.is_some() { NonZeroUsize::MIN } else { threads };
        let in_memory = out.is_none();
        let options = options(threads, out, interval_ns, pcap);
        let stop = AtomicBool::new(false);
        let kept = Mutex::new(BTreeMap::new());
        let keep = |place: usize, series: &::campaign::Series| {
            if in_memory {
                let batches = [&series.flows, &series.paths, &series.links].map(Batch::of);
                kept.lock().unwrap_or_else(PoisonError::into_inner).insert(place, batches);
            }
        };
        let mut watcher = Watcher::new(progress);
        let report = py.detach(|| {
            self.inner.run_and_keep(&options, &stop, keep, |progress| {
                watcher.look(&stop, progress.fraction, progress.finished, progress.runs);
            })
        });
        watcher.end()?;
        let report = report.map_err(|error| match (&error, &self.plugins) {
            (CampaignError::Plugin { seed, at, .. }, Some(plugins)) => {
                plugins.raised(py, *seed, *at, error.to_string())
            }
            _ => raised(py, &error),
        })?;
        if report.stopped {
            return Err(PyKeyboardInterrupt::new_err(()));
        }
        let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Report { inner: report, series: kept.into_values().collect() })
    }

    /// What each notion of fairness expects beside what `report` measured: text and JSON.
    fn fairness(&self, py: Python<'_>, report: &Report) -> PyResult<(String, String)> {
        let expectations = self.inner.expectations().map_err(|error| raised(py, &error))?;
        let fairness = FairnessReport::new(expectations, &report.inner);
        Ok((fairness.to_string(), fairness.to_json().to_string()))
    }
}

fn options(threads: NonZeroUsize, out: Option<PathBuf>, interval_ns: Option<u64>, pcap: bool) -> Options {
    Options { threads, out, interval: interval_ns.map(Duration::from_nanos), pcap, origin: Origin::here() }
}

/// What a campaign found.
#[pyclass(frozen, module = "sinnet._sinnet")]
pub(crate) struct Report {
    inner: ::campaign::Report,
    /// Of each run: flows, paths, links.
    series: Vec<[Batch; 3]>,
}

#[pymethods]
impl Report {
    /// As `sinnet sim --json` prints it.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.inner)).map_err(|error| SinnetError::new_err(error.to_string()))
    }

    /// As `sinnet sim` prints it.
    fn text(&self) -> String {
        self.inner.to_string()
    }

    /// A row per run, per run and flow, per run, flow and path, per run and link.
    fn tables(&self) -> PyResult<(Table, Table, Table, Table)> {
        let Tables { runs, flows, paths, links } = self.inner.tables();
        Ok((Table::single(&runs)?, Table::single(&flows)?, Table::single(&paths)?, Table::single(&links)?))
    }

    /// Means with 95 % intervals.
    fn summary(&self) -> PyResult<Table> {
        Table::single(&self.inner.summary())
    }

    /// The same as Parquet files.
    fn write(&self, py: Python<'_>, files: (PathBuf, PathBuf, PathBuf)) -> PyResult<()> {
        let Origin { version, program } = Origin::here();
        let notes = [("sinnet.version", version.as_str()), ("sinnet.program", program.as_str())];
        let Tables { runs, flows, links, .. } = self.inner.tables();
        let files = [(runs, files.0), (flows, files.1), (links, files.2)];
        py.detach(|| {
            files.iter().try_for_each(|(table, path)| {
                let failed = |error: std::io::Error| PyOSError::new_err(format!("{}: {error}", path.display()));
                let file = File::create(path).map_err(failed)?;
                table.write(file, &notes).map_err(failed)
            })
        })
    }

    /// The time series that were kept in memory: 0 flows, 1 paths, 2 links.
    fn series(&self, kind: usize) -> PyResult<Table> {
        let batches: Vec<Batch> = self.series.iter().filter_map(|run| run.get(kind).cloned()).collect();
        Table::of(&batches)
    }

    /// The digests of all runs, in their order.
    #[getter]
    fn digests(&self) -> Vec<String> {
        self.inner.points.iter().flat_map(|point| &point.runs).map(|run| format!("{:016x}", run.digest)).collect()
    }
}

/// Parquet files of a store as one table.
#[pyfunction]
pub(crate) fn table_of_files(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Table> {
    let batches = py.detach(|| {
        let read = |path: &PathBuf| {
            let table = File::open(path).and_then(::campaign::Table::read);
            table
                .map(|table| Batch::of(&table))
                .map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
        };
        paths.iter().map(read).collect::<PyResult<Vec<_>>>()
    })?;
    Table::of(&batches)
}

/// JSON as TOML: a whole document, or one value as an assignment has it.
#[pyfunction]
pub(crate) fn to_toml(json: &str, whole: bool) -> PyResult<String> {
    let failed = |error: String| SinnetError::new_err(format!("TOML has nothing for it: {error}"));
    if whole {
        let value: toml::Table = serde_json::from_str(json).map_err(|error| failed(error.to_string()))?;
        toml::to_string(&value).map_err(|error| failed(error.to_string()))
    } else {
        let value: toml::Value = serde_json::from_str(json).map_err(|error| failed(error.to_string()))?;
        Ok(value.to_string())
    }
}

/// A scenario file with what it extends and the assignments worked in, as TOML.
#[pyfunction]
pub(crate) fn assigned(py: Python<'_>, text: &str, name: &str, assignments: Vec<String>) -> PyResult<String> {
    Ok(document(py, text, name, &assignments)?.to_toml())
}

/// The keys that are swept.
#[pyfunction]
pub(crate) fn swept(py: Python<'_>, text: &str, name: &str, assignments: Vec<String>) -> PyResult<Vec<String>> {
    Ok(document(py, text, name, &assignments)?.swept())
}

/// A time as scenarios write it, such as "100ms", in nanoseconds.
#[pyfunction]
pub(crate) fn nanoseconds(written: &str) -> Option<u64> {
    scenario::time(written).map(Duration::as_nanos)
}

/// Mean, standard deviation and half of the 95 % interval.
#[pyfunction]
pub(crate) fn estimate(values: Vec<f64>) -> Option<(f64, Option<f64>, Option<f64>)> {
    let estimate = fairness::statistics::Estimate::of(&values)?;
    Some((estimate.mean, estimate.sd, estimate.half_width))
}

fn document(py: Python<'_>, text: &str, name: &str, assignments: &[String]) -> PyResult<Document> {
    let mut document = Document::load(text, name, &mut scenario::read_beside).map_err(|error| wrong(py, &error))?;
    for assignment in assignments {
        document.set(assignment).map_err(|error| wrong(py, &error))?;
    }
    Ok(document)
}
