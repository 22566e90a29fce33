//! What a campaign found: per run, and per point of the sweep over the seeds, as JSON.

use fairness::statistics::Estimate;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use simulator::{FlowResult, LinkResult, RunResult};

use crate::metrics::{FLOW, LINK, Metric, TOTAL};

/// All that a campaign found. Serialises to the JSON of `sinnet sim --json`.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// Version of the program.
    pub version: String,
    /// The points of the sweep, in its order; one without parameters if there is no sweep.
    pub points: Vec<PointReport>,
    /// True if runs are missing because the campaign was stopped.
    pub stopped: bool,
}

/// One point of the sweep.
#[derive(Clone, Debug)]
pub struct PointReport {
    /// Keys and values of the sweep that make the point, as written.
    pub parameters: Vec<(String, String)>,
    /// The flows of the scenario: a name, and how many alike (`count = N`).
    pub groups: Vec<FlowGroup>,
    /// The finished runs in the order of their seeds, without their time series.
    pub runs: Vec<RunResult>,
}

/// A `[[flow]]` of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowGroup {
    /// Its name.
    pub name: String,
    /// How many flows it stands for.
    pub count: usize,
}

impl PointReport {
    /// The estimate of a number over the runs; NaN (nothing measured) in any run leaves that run out.
    pub(crate) fn estimate(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.runs.iter().filter_map(value).filter(|value| !value.is_nan()).collect();
        Estimate::of(&values)
    }

    fn summary(&self) -> Value {
        let flows = self.each("name", |run| &run.flows, |flow| &flow.name, FLOW);
        let links = self.each("name", |run| &run.links, |link| &link.name, LINK);
        let mut summary = Map::new();
        if !self.parameters.is_empty() {
            summary.insert("parameters".into(), parameters(&self.parameters));
        }
        summary.insert("runs".into(), self.runs.len().into());
        summary.insert("total".into(), estimates(TOTAL, |metric| self.estimate(|run| Some(metric(run)))).into());
        summary.insert("flows".into(), flows);
        summary.insert("links".into(), links);
        summary.into()
    }

    /// One object per flow or link of the first run, with the estimates of all its metrics.
    fn each<T>(
        &self,
        key: &str,
        items: fn(&RunResult) -> &Vec<T>,
        name: fn(&T) -> &String,
        metrics: &[Metric<T>],
    ) -> Value {
        let first = self.runs.first().map(items).map_or(&[][..], Vec::as_slice);
        let objects = first.iter().enumerate().map(|(index, item)| {
            let mut object = Map::new();
            object.insert(key.into(), name(item).clone().into());
            object.extend(estimates(metrics, |metric| self.estimate(|run| items(run).get(index).map(metric))));
            Value::from(object)
        });
        objects.collect()
    }
}

/// `{"name": {"mean", "sd", "ci95"}, ..}`; what was not measured in any run is null, and so are spread and interval of a
/// single run. `ci95` is half the width of the interval.
fn estimates<T>(metrics: &[Metric<T>], estimate: impl Fn(fn(&T) -> f64) -> Option<Estimate>) -> Map<String, Value> {
    let object = |(name, metric): &Metric<T>| {
        let value = estimate(*metric).map(|estimate| {
            let mut object = Map::new();
            object.insert("mean".into(), estimate.mean.into());
            object.insert("sd".into(), estimate.sd.into());
            object.insert("ci95".into(), estimate.half_width.into());
            object
        });
        ((*name).to_owned(), value.into())
    };
    metrics.iter().map(object).collect()
}

fn parameters(parameters: &[(String, String)]) -> Value {
    parameters.iter().map(|(key, value)| (key.clone(), typed(value))).collect::<Map<_, _>>().into()
}

/// A number as a number, anything else as text.
fn typed(value: &str) -> Value {
    value.parse::<f64>().ok().and_then(|_| serde_json::from_str(value).ok()).unwrap_or_else(|| value.into())
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            scenario: &'a str,
            version: &'a str,
            runs: Vec<Run<'a>>,
            summary: Value,
            stopped: bool,
        }
        let runs = self
            .points
            .iter()
            .flat_map(|point| point.runs.iter().map(|run| Run::new(&point.parameters, run)))
            .collect();
        let mut summaries: Vec<Value> = self.points.iter().map(PointReport::summary).collect();
        // Without a sweep there is one summary; with one, a list.
        let swept = self.points.iter().any(|point| !point.parameters.is_empty());
        let summary = if swept { summaries.into() } else { summaries.pop().unwrap_or_default() };
        Document { scenario: &self.scenario, version: &self.version, runs, summary, stopped: self.stopped }
            .serialize(serializer)
    }
}

/// One run in the JSON: its result without the time series.
#[derive(Serialize)]
struct Run<'a> {
    #[serde(skip_serializing_if = "Value::is_null")]
    parameters: Value,
    seed: u64,
    virtual_s: f64,
    cpu_s: f64,
    packets: u64,
    events: u64,
    /// In hexadecimal: more digits than many readers of JSON keep of a number.
    digest: String,
    flows: &'a [FlowResult],
    links: &'a [LinkResult],
}

impl<'a> Run<'a> {
    fn new(swept: &[(String, String)], run: &'a RunResult) -> Self {
        Self {
            parameters: if swept.is_empty() { Value::Null } else { parameters(swept) },
            seed: run.seed,
            virtual_s: run.virtual_s,
            cpu_s: run.cpu_s,
            packets: run.packets,
            events: run.events,
            digest: format!("{:016x}", run.digest),
            flows: &run.flows,
            links: &run.links,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, goodput_mbps: f64) -> RunResult {
        let flow = FlowResult { name: "f".into(), goodput_mbps, ..FlowResult::default() };
        let link = LinkResult { name: "a-b>".into(), utilisation: 0.5, ..LinkResult::default() };
        RunResult { seed, digest: u64::MAX, flows: vec![flow], links: vec![link], ..RunResult::default() }
    }

    fn report(parameters: &[(&str, &str)], runs: Vec<RunResult>) -> Value {
        let parameters = parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let point = PointReport { parameters, groups: vec![], runs };
        let report = Report { scenario: "s".into(), version: "1".into(), points: vec![point], stopped: false };
        serde_json::to_value(report).unwrap()
    }

    #[test]
    fn the_document_has_the_promised_shape() {
        let json = report(&[], vec![run(1, 1.0), run(2, 3.0)]);
        assert_eq!(json["scenario"], "s");
        assert_eq!(json["version"], "1");
        assert_eq!(json["runs"][1]["seed"], 2);
        assert_eq!(json["runs"][1]["flows"][0]["name"], "f");
        assert_eq!(json["runs"][1]["flows"][0]["goodput_mbps"], 3.0);
        assert_eq!(json["runs"][1]["links"][0]["utilisation"], 0.5);
        assert_eq!(json["runs"][0]["digest"], "ffffffffffffffff");
        assert!(json["runs"][0].get("series").is_none() && json["runs"][0].get("parameters").is_none());
        let goodput = &json["summary"]["flows"][0]["goodput_mbps"];
        assert_eq!(goodput["mean"], 2.0);
        // Two values 1 and 3: sd = √2, t(0.975, 1) = 12.7062, half width = t·√2/√2.
        assert!((goodput["ci95"].as_f64().unwrap() - 12.7062047).abs() < 1e-6);
        assert!(json["summary"]["flows"][0]["rtt_p95_ms"].is_null(), "nothing was measured");
    }

    #[test]
    fn one_run_has_no_interval() {
        let json = report(&[], vec![run(1, 1.0)]);
        assert_eq!(json["summary"]["total"]["goodput_mbps"]["mean"], 1.0);
        assert!(json["summary"]["total"]["goodput_mbps"]["ci95"].is_null());
    }

    #[test]
    fn a_sweep_gives_a_list_of_summaries() {
        let json = report(&[("link.0.loss", "0.01"), ("flow.f.congestion", "cubic")], vec![run(1, 1.0)]);
        assert_eq!(json["summary"][0]["parameters"]["link.0.loss"], 0.01);
        assert_eq!(json["runs"][0]["parameters"]["flow.f.congestion"], "cubic");
    }
}
