//! Controllers and schedulers that are Python classes, behind the seams of `congestion` and `scheduler`.
//!
//! Each flow of each run has an object of its own. What one raises, or returns that is no window, is kept; the run is given up
//! at the simulator's next look, a few milliseconds of virtual time later, and until then nothing more is asked of Python.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::campaign::{Plugged, Plugins};
use clock::{Duration, Instant, Rng};
use congestion::{Acked, Backoff, Cause, Group, Kind, Round as EngineRound, RoundDecision, Rule, WindowRule};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use scheduler::{Decision, Needs, PacketMeta, PathId, PathScheduler, PathView as View, Scheduler};
use simulator::Outside;

use crate::errors::ControllerError;

/// One path of a flow, as a controller sees it.
#[pyclass(frozen, get_all, module = "sinnet")]
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Its index in the flow, from 0.
    index: usize,
    /// The congestion window, in bytes.
    window: f64,
    /// The slow-start threshold, in bytes; infinite before the first loss.
    threshold: f64,
    /// The payload of a full packet, in bytes.
    mss: f64,
    /// What is outstanding, in bytes.
    flight: f64,
    /// The smoothed round-trip time, in seconds; `None` without a sample.
    srtt_s: Option<f64>,
    /// The least round-trip time so far, in seconds; `None` without a sample.
    min_rtt_s: Option<f64>,
    /// Whether what was outstanding at the last reduction is not all acknowledged yet.
    in_recovery: bool,
    /// Whether it is used.
    open: bool,
}

/// Data were acknowledged, and the window may grow.
#[pyclass(frozen, get_all, module = "sinnet")]
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    /// Virtual time, in seconds.
    time_s: f64,
    /// The index of the path in the flow, from 0.
    path: usize,
    /// The congestion window, in bytes.
    window: f64,
    /// The slow-start threshold, in bytes; infinite before the first loss.
    threshold: f64,
    /// The payload of a full packet, in bytes.
    mss: f64,
    /// What is outstanding, in bytes.
    flight: f64,
    /// The smoothed round-trip time, in seconds; `None` without a sample.
    srtt_s: Option<f64>,
    /// The least round-trip time so far, in seconds; `None` without a sample.
    min_rtt_s: Option<f64>,
    /// Newly acknowledged, in bytes; in slow start at most a packet (RFC 3465).
    bytes: f64,
    /// Whether the window is below the threshold.
    slow_start: bool,
    /// All paths of the flow, this one included.
    paths: Vec<Path>,
}

/// A sign of congestion.
#[pyclass(frozen, get_all, module = "sinnet")]
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// Virtual time, in seconds.
    time_s: f64,
    /// The index of the path in the flow, from 0.
    path: usize,
    /// The congestion window, in bytes.
    window: f64,
    /// The slow-start threshold, in bytes; infinite before the first loss.
    threshold: f64,
    /// The payload of a full packet, in bytes.
    mss: f64,
    /// What is outstanding, in bytes.
    flight: f64,
    /// The smoothed round-trip time, in seconds; `None` without a sample.
    srtt_s: Option<f64>,
    /// The least round-trip time so far, in seconds; `None` without a sample.
    min_rtt_s: Option<f64>,
    /// "loss", "ecn", "delay" or "timeout".
    cause: &'static str,
    /// All paths of the flow, this one included.
    paths: Vec<Path>,
}

/// A round trip ended.
#[pyclass(frozen, get_all, module = "sinnet")]
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Virtual time, in seconds.
    time_s: f64,
    /// The index of the path in the flow, from 0.
    path: usize,
    /// The congestion window, in bytes.
    window: f64,
    /// The slow-start threshold, in bytes; infinite before the first loss.
    threshold: f64,
    /// The payload of a full packet, in bytes.
    mss: f64,
    /// What is outstanding, in bytes.
    flight: f64,
    /// The smoothed round-trip time, in seconds; `None` without a sample.
    srtt_s: Option<f64>,
    /// The least round-trip time so far, in seconds; `None` without a sample.
    min_rtt_s: Option<f64>,
    /// The least round-trip time of the round, in seconds; `None` without a sample.
    round_min_rtt_s: Option<f64>,
    /// The greatest one.
    round_max_rtt_s: Option<f64>,
    /// Their mean.
    round_mean_rtt_s: Option<f64>,
    /// Whether the path is in slow start at its end.
    slow_start: bool,
    /// Whether the window was the limit at its end; otherwise no larger one is taken.
    full: bool,
    /// All paths of the flow, this one included.
    paths: Vec<Path>,
}

/// What a controller returns where a number of bytes does not say it all.
#[pyclass(frozen, get_all, module = "sinnet")]
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The window, in bytes.
    bytes: f64,
    /// The rate in bit/s, with headers, above which nothing leaves; `None` for any.
    pacing: Option<f64>,
    /// The slow-start threshold, in bytes; `None` leaves it as it is.
    threshold: Option<f64>,
}

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (bytes, *, pacing=None, threshold=None))]
    fn new(bytes: f64, pacing: Option<f64>, threshold: Option<f64>) -> Self {
        Self { bytes, pacing, threshold }
    }

    fn __repr__(&self) -> String {
        let Self { bytes, pacing, threshold } = self;
        let told = |value: &Option<f64>| value.map_or_else(|| "None".to_owned(), |value| value.to_string());
        format!("Window({bytes}, pacing={}, threshold={})", told(pacing), told(threshold))
    }
}

/// One path, as a scheduler sees it.
#[pyclass(frozen, get_all, module = "sinnet")]
#[derive(Clone, Debug)]
pub(crate) struct PathView {
    /// What `select` returns to choose it.
    index: u16,
    /// Whether it takes a packet now.
    open: bool,
    /// Propagation one way, in seconds.
    delay_s: f64,
    /// The rate of its bottleneck, in bit/s; 0 if it is not known.
    rate: u64,
    /// When its pace allows the next packet, in seconds of virtual time.
    free_at_s: f64,
    /// The smoothed round-trip time, in seconds; `None` without a sample.
    srtt_s: Option<f64>,
    /// The variation of the round-trip time, in seconds.
    rttvar_s: f64,
    /// The congestion window, in packets.
    window: u64,
    /// What is outstanding, in packets.
    flight: u64,
    /// Packets that wait for this path alone.
    queued: u64,
}

/// A packet that needs a path.
#[pyclass(frozen, get_all, module = "sinnet")]
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Virtual time, in seconds.
    time_s: f64,
    /// Its length, in bytes.
    bytes: usize,
    /// Packets that have no path yet, this one included.
    unscheduled: u64,
    /// Packets of this length that the receiver still has room for; `None` where nothing limits it.
    receiver_window: Option<u64>,
}

/// The first failure of a run.
#[derive(Default)]
struct Failure {
    has: AtomicBool,
    first: Mutex<Option<(Instant, String, PyErr)>>,
}

impl Failure {
    fn note(&self, py: Python<'_>, at: Instant, error: PyErr) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            let traceback = error.traceback(py).and_then(|traceback| traceback.format().ok()).unwrap_or_default();
            *first = Some((at, format!("{error}\n{traceback}"), error));
        }
        self.has.store(true, Ordering::Release);
    }

    fn is_there(&self) -> bool {
        self.has.load(Ordering::Acquire)
    }
}

/// A class of a plugin and what it says of itself.
struct Class {
    name: &'static str,
    class: Py<PyType>,
    kind: Kind,
    needs: Needs,
    is_scheduler: bool,
}

/// Classes by the names that a scenario has for them.
pub(crate) struct PythonPlugins {
    classes: BTreeMap<String, Arc<Class>>,
    /// That of the run under way: there is one at a time.
    failure: Mutex<Arc<Failure>>,
}

impl PythonPlugins {
    pub(crate) fn new(classes: &Bound<'_, PyDict>) -> PyResult<Arc<Self>> {
        let mut known = BTreeMap::new();
        for (name, class) in classes {
            let name: String = name.extract()?;
            let class = class.cast_into::<PyType>()?;
            let flag = |attribute: &str| match class.getattr_opt(attribute)? {
                Some(value) => value.is_truthy(),
                None => Ok(false),
            };
            let kind = Kind { couples: flag("couples")?, reads_delay: flag("reads_delay")?, ..Kind::default() };
            let needs = Needs { arrivals: flag("needs_arrivals")?, windows: true, ..Needs::NOTHING };
            let is_scheduler = class.hasattr("select")?;
            let class = Class { name: forever(&name), class: class.unbind(), kind, needs, is_scheduler };
            known.insert(name, Arc::new(class));
        }
        Ok(Arc::new(Self { classes: known, failure: Mutex::default() }))
    }

    /// What the last run has raised, as one exception.
    pub(crate) fn raised(&self, py: Python<'_>, seed: u64, at: Duration, message: String) -> PyErr {
        let failure = Arc::clone(&self.failure.lock().unwrap_or_else(PoisonError::into_inner));
        let first = failure.first.lock().unwrap_or_else(PoisonError::into_inner);
        let cause = first.as_ref().map(|(_, _, error)| error.clone_ref(py));
        let raised = ControllerError::new_err(message);
        raised.set_cause(py, cause);
        let value = raised.value(py);
        match value.setattr("seed", seed).and_then(|()| value.setattr("time_s", at.as_secs_f64())) {
            Ok(()) => raised,
            Err(other) => other,
        }
    }
}

/// Names of rules live as long as the program. There are as many as there are classes, each once.
fn forever(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = name.to_owned().leak();
    names.insert(name);
    name
}

impl Plugins for PythonPlugins {
    fn begin(&self, _seed: u64) -> Box<dyn Plugged> {
        let failure = Arc::new(Failure::default());
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&failure);
        Box::new(OneRun { classes: self.classes.clone(), failure })
    }

    /// With the GIL held from one call of Python to the next: a thread that is made known to Python for each call anew spends more
    /// time on that than in the calls.
    fn around(&self, run: &mut dyn FnMut()) {
        Python::attach(|_| run());
    }
}

struct OneRun {
    classes: BTreeMap<String, Arc<Class>>,
    failure: Arc<Failure>,
}

impl OneRun {
    fn find(&self, name: &str, is_scheduler: bool) -> Option<(&'static str, Owner)> {
        let class = self.classes.get(name).filter(|class| class.is_scheduler == is_scheduler)?;
        Some((class.name, Owner { class: Arc::clone(class), failure: Arc::clone(&self.failure) }))
    }
}

impl Outside for OneRun {
    fn rule(&self, name: &str) -> Option<Rule> {
        let (name, owner) = self.find(name, false)?;
        Some(Rule::custom(name, PythonRule { owner, object: None, pace: Vec::new(), random: None }))
    }

    fn scheduler(&self, name: &str) -> Option<Scheduler> {
        let (name, owner) = self.find(name, true)?;
        Some(Scheduler::custom(name, PythonScheduler { owner, object: None }))
    }
}

impl Plugged for OneRun {
    fn failure(&self) -> Option<(Instant, String)> {
        // Asked every few milliseconds of virtual time: other threads of Python may go on here.
        Python::attach(|py| py.detach(|| ()));
        if !self.failure.is_there() {
            return None;
        }
        let first = self.failure.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref().map(|(at, what, _)| (*at, what.clone()))
    }
}

/// Where objects come from, and where failures go.
#[derive(Clone)]
struct Owner {
    class: Arc<Class>,
    failure: Arc<Failure>,
}

impl Owner {
    /// A copy of an object for the copy of its flow.
    fn copy(&self, object: &Option<Py<PyAny>>) -> Option<Py<PyAny>> {
        let object = object.as_ref()?;
        Python::attach(|py| {
            let copied = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (object,)));
            copied.map(Bound::unbind).map_err(|error| self.failure.note(py, Instant::ZERO, error)).ok()
        })
    }
}

/// A controller in Python as a rule of the engine.
struct PythonRule {
    owner: Owner,
    /// Made when the flow has its first path.
    object: Option<Py<PyAny>>,
    /// Per path, in bit/s.
    pace: Vec<Option<u64>>,
    random: Option<u64>,
}

impl Clone for PythonRule {
    fn clone(&self) -> Self {
        let object = self.owner.copy(&self.object);
        Self { owner: self.owner.clone(), object, pace: self.pace.clone(), random: self.random }
    }
}

impl fmt::Debug for PythonRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.owner.class.name)
    }
}

/// What a controller answered.
struct Answer {
    window: f64,
    pacing: Option<f64>,
    threshold: Option<f64>,
}

impl Answer {
    fn of(method: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let answer = match value.cast::<Window>() {
            Ok(window) => {
                let Window { bytes, pacing, threshold } = *window.get();
                Self { window: bytes, pacing, threshold }
            }
            Err(_) => {
                let Ok(window) = value.extract::<f64>() else {
                    let message = format!("{method} returned {}: a window in bytes is a number", value.repr()?);
                    return Err(PyTypeError::new_err(message));
                };
                Self { window, pacing: None, threshold: None }
            }
        };
        let numbers = [("window", Some(answer.window)), ("pacing", answer.pacing), ("threshold", answer.threshold)];
        for (what, number) in numbers {
            if let Some(number) = number.filter(|number| !number.is_finite() || *number <= 0.0) {
                return Err(PyValueError::new_err(format!(
                    "{method} returned a {what} of {number}: it has to be finite and above 0"
                )));
            }
        }
        Ok(answer)
    }
}

fn seconds(time: Duration) -> Option<f64> {
    (!time.is_zero() && time != Duration::MAX).then(|| time.as_secs_f64())
}

fn paths(group: Group<'_>) -> Vec<Path> {
    let paths = group.paths.iter().enumerate().map(|(index, path)| Path {
        index,
        window: path.cwnd,
        threshold: path.ssthresh,
        mss: path.mss,
        flight: path.flight,
        srtt_s: seconds(path.srtt),
        min_rtt_s: seconds(path.base_rtt),
        in_recovery: path.in_recovery,
        open: path.open,
    });
    paths.collect()
}

impl PythonRule {
    /// Asks the method `name` of the object; `None` once something has failed.
    fn ask<T>(
        &mut self,
        at: Instant,
        name: impl FnOnce(Python<'_>) -> &Bound<'_, pyo3::types::PyString>,
        event: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if self.owner.failure.is_there() {
            return None;
        }
        let object = self.object.as_ref()?;
        Python::attach(|py| {
            let asked = event(py).and_then(|event| object.bind(py).call_method1(name(py), (event,)));
            asked.and_then(|answer| read(&answer)).map_err(|error| self.owner.failure.note(py, at, error)).ok()
        })
    }

    fn set_pace(&mut self, path: usize, answer: &Answer) {
        if let Some(slot) = self.pace.get_mut(path) {
            // `as` saturates: a rate beyond all is none.
            *slot = answer.pacing.map(|pace| pace.ceil() as u64);
        }
    }

    fn on_ack(&mut self, index: usize, group: Group<'_>, acked: f64, slow_start: bool) -> f64 {
        let path = group.path(index);
        let ack = Ack {
            time_s: (group.now - Instant::ZERO).as_secs_f64(),
            path: index,
            window: path.cwnd,
            threshold: path.ssthresh,
            mss: path.mss,
            flight: path.flight,
            srtt_s: seconds(path.srtt),
            min_rtt_s: seconds(path.base_rtt),
            bytes: acked,
            slow_start,
            paths: paths(group),
        };
        let answer = self.ask(
            group.now,
            |py| intern!(py, "on_ack"),
            |py| Ok(Bound::new(py, ack)?.into_any()),
            |answer| Answer::of("on_ack", answer),
        );
        let Some(answer) = answer else { return 0.0 };
        self.set_pace(index, &answer);
        answer.window - path.cwnd
    }
}

impl WindowRule for PythonRule {
    fn kind(&self) -> Kind {
        self.owner.class.kind
    }

    fn path_added(&mut self, _path: usize) {
        self.pace.push(None);
        if self.object.is_some() || self.owner.failure.is_there() {
            return;
        }
        let Self { owner, random, .. } = self;
        self.object = Python::attach(|py| {
            let made = owner.class.class.bind(py).call0().and_then(|object| {
                let generator = py.import("random")?.getattr("Random")?.call1((random.unwrap_or(0),))?;
                object.setattr("random", generator)?;
                Ok(object.unbind())
            });
            made.map_err(|error| owner.failure.note(py, Instant::ZERO, error)).ok()
        });
    }

    fn seed(&mut self, mut rng: Rng) {
        let seed = rng.next_u64();
        self.random = Some(seed);
        let Some(object) = &self.object else { return };
        Python::attach(|py| {
            let seeded = object.bind(py).getattr("random").and_then(|random| random.call_method1("seed", (seed,)));
            if let Err(error) = seeded {
                self.owner.failure.note(py, Instant::ZERO, error);
            }
        });
    }

    fn slow_start(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.on_ack(path, group, acked, true)
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.on_ack(path, group, acked, false)
    }

    fn decrease(&mut self, index: usize, group: Group<'_>, cause: Cause) -> Backoff {
        let path = group.path(index);
        // RFC 5681 §3.1: two packets are the least threshold.
        let floor = 2.0 * path.mss;
        let loss = Loss {
            time_s: (group.now - Instant::ZERO).as_secs_f64(),
            path: index,
            window: path.cwnd,
            threshold: path.ssthresh,
            mss: path.mss,
            flight: path.flight,
            srtt_s: seconds(path.srtt),
            min_rtt_s: seconds(path.base_rtt),
            cause: match cause {
                Cause::Loss => "loss",
                Cause::Ecn => "ecn",
                Cause::Delay => "delay",
                Cause::Timeout => "timeout",
            },
            paths: paths(group),
        };
        let answer = self.ask(
            group.now,
            |py| intern!(py, "on_loss"),
            |py| Ok(Bound::new(py, loss)?.into_any()),
            |answer| Answer::of("on_loss", answer),
        );
        let Some(answer) = answer else { return Backoff::to(path.flight / 2.0, floor) };
        self.set_pace(index, &answer);
        Backoff::to(answer.window, floor)
    }

    fn on_round(&mut self, index: usize, group: Group<'_>, round: &EngineRound) -> RoundDecision {
        let path = group.path(index);
        let event = Round {
            time_s: (group.now - Instant::ZERO).as_secs_f64(),
            path: index,
            window: path.cwnd,
            threshold: path.ssthresh,
            mss: path.mss,
            flight: path.flight,
            srtt_s: seconds(path.srtt),
            min_rtt_s: seconds(path.base_rtt),
            round_min_rtt_s: seconds(round.min_rtt),
            round_max_rtt_s: seconds(round.max_rtt),
            round_mean_rtt_s: round.mean_rtt(),
            slow_start: round.slow_start,
            full: round.full,
            paths: paths(group),
        };
        let answer = self.ask(
            group.now,
            |py| intern!(py, "on_round"),
            |py| Ok(Bound::new(py, event)?.into_any()),
            |answer| if answer.is_none() { Ok(None) } else { Answer::of("on_round", answer).map(Some) },
        );
        let Some(Some(answer)) = answer else { return RoundDecision::default() };
        self.set_pace(index, &answer);
        RoundDecision::set(Some(answer.window), answer.threshold)
    }

    fn pace(&self, path: usize) -> Option<u64> {
        self.pace.get(path).copied().flatten()
    }

    fn acknowledged(&mut self, _path: usize, _group: Group<'_>, _acked: &Acked) -> bool {
        false
    }
}

/// A scheduler in Python.
struct PythonScheduler {
    owner: Owner,
    object: Option<Py<PyAny>>,
}

impl Clone for PythonScheduler {
    fn clone(&self) -> Self {
        Self { owner: self.owner.clone(), object: self.owner.copy(&self.object) }
    }
}

impl fmt::Debug for PythonScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.owner.class.name)
    }
}

impl PythonScheduler {
    fn ask(&mut self, py: Python<'_>, packet: Packet, views: &[View]) -> PyResult<Decision> {
        if self.object.is_none() {
            self.object = Some(self.owner.class.class.bind(py).call0()?.unbind());
        }
        let Some(object) = &self.object else { return Ok(Decision::Blocked) };
        let time = |at: Instant| (at - Instant::ZERO).as_secs_f64();
        let paths: Vec<PathView> = views
            .iter()
            .map(|view| PathView {
                index: view.id.0,
                open: view.open,
                delay_s: view.delay.as_secs_f64(),
                rate: view.rate,
                free_at_s: time(view.free_at),
                srtt_s: seconds(view.srtt),
                rttvar_s: view.rttvar.as_secs_f64(),
                window: view.cwnd,
                flight: view.in_flight,
                queued: view.queued,
            })
            .collect();
        let answer = object.bind(py).call_method1(intern!(py, "select"), (packet, paths))?;
        if answer.is_none() {
            return Ok(Decision::Wait);
        }
        let Ok(index) = answer.extract::<u16>() else {
            return Err(PyTypeError::new_err(format!(
                "select returned {}: a path is its index, or None to wait",
                answer.repr()?
            )));
        };
        match views.iter().find(|view| view.id == PathId(index)) {
            Some(view) if view.open => Ok(Decision::Send(view.id)),
            Some(_) => Err(PyValueError::new_err(format!("select returned {index}: this path is not open"))),
            None => Err(PyValueError::new_err(format!("select returned {index}: there is no such path"))),
        }
    }
}

impl PathScheduler for PythonScheduler {
    fn select(&mut self, packet: &PacketMeta, paths: &[View], now: Instant) -> Decision {
        if !self.owner.failure.is_there() {
            let shown = Packet {
                time_s: (now - Instant::ZERO).as_secs_f64(),
                bytes: packet.len,
                unscheduled: packet.unscheduled,
                receiver_window: (packet.window != u64::MAX).then_some(packet.window),
            };
            let decided = Python::attach(|py| {
                self.ask(py, shown, paths).map_err(|error| self.owner.failure.note(py, now, error)).ok()
            });
            if let Some(decision) = decided {
                return decision;
            }
        }
        // The run is given up soon; until then it goes on somehow.
        paths.iter().find(|path| path.open).map_or(Decision::Blocked, |path| Decision::Send(path.id))
    }

    fn needs(&self) -> Needs {
        self.owner.class.needs
    }
}
