//! What a campaign found: per run, and per point of the sweep over the seeds, as JSON.

use fairness::statistics::Estimate;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use simulator::{FlowResult, LinkResult, RunResult};

use crate::metrics::{FLOW, LINK, Metric, TOTAL, numbers};

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

impl Report {
    /// A row per run and flow: the swept keys, the seed, the flow and its numbers, as in `summary_flows.parquet`. Comma-separated
    /// as in RFC 4180; what was not measured is empty.
    pub fn csv(&self) -> String {
        let keys: Vec<&str> = self
            .points
            .first()
            .map(|point| point.parameters.iter().map(|(key, _)| key.as_str()).collect())
            .unwrap_or_default();
        let swept: Vec<Option<Vec<f64>>> = (0..keys.len())
            .map(|index| {
                numbers(
                    self.points.iter().filter_map(|point| point.parameters.get(index)).map(|(_, value)| value.as_str()),
                )
            })
            .collect();
        let names = keys.iter().copied().chain(["seed", "flow"]).chain(FLOW.iter().map(|(name, _)| *name));
        let mut text = row(names.map(cell));
        for (number, point) in self.points.iter().enumerate() {
            let values = point.parameters.iter().zip(&swept).map(|((_, value), column)| {
                let number = column.as_ref().and_then(|column| column.get(number));
                number.map_or_else(|| cell(value), f64::to_string)
            });
            let values: Vec<String> = values.collect();
            for run in &point.runs {
                for flow in &run.flows {
                    let metrics = FLOW.iter().map(|(_, metric)| metric(flow));
                    let metrics = metrics.map(|value| if value.is_nan() { String::new() } else { value.to_string() });
                    let label = [run.seed.to_string(), cell(&flow.name)];
                    text += &row(values.iter().cloned().chain(label).chain(metrics));
                }
            }
        }
        text
    }
}

fn row(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\n"
}

/// RFC 4180 §2.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

impl PointReport {
    /// The estimate of a number over the runs; NaN (nothing measured) in any run leaves that run out.
    pub(crate) fn estimate(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.runs.iter().filter_map(value).filter(|value| !value.is_nan()).collect();
        Estimate::of(&values)
    }
}

/// Estimates over the runs of a point. Written out piece by piece: of ten thousand flows they are larger than the
/// simulation that they come from.
struct Summary<'a>(&'a PointReport);

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(point) = self;
        let mut map = serializer.serialize_map(None)?;
        if !point.parameters.is_empty() {
            map.serialize_entry("parameters", &parameters(&point.parameters))?;
        }
        map.serialize_entry("runs", &point.runs.len())?;
        map.serialize_entry("total", &Totals(point))?;
        let flows = Items { point, items: |run| &run.flows, name: |flow| &flow.name, metrics: FLOW };
        map.serialize_entry("flows", &flows)?;
        let links = Items { point, items: |run| &run.links, name: |link| &link.name, metrics: LINK };
        map.serialize_entry("links", &links)?;
        map.end()
    }
}

struct Totals<'a>(&'a PointReport);

impl Serialize for Totals<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(TOTAL.iter().map(|(name, metric)| (name, Ci(self.0.estimate(|run| Some(metric(run)))))))
    }
}

/// One object per flow or link of the first run, with the estimates of all its metrics.
struct Items<'a, T> {
    point: &'a PointReport,
    items: fn(&RunResult) -> &Vec<T>,
    name: fn(&T) -> &String,
    metrics: &'a [Metric<T>],
}

impl<T> Serialize for Items<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let first = self.point.runs.first().map_or(&[][..], |run| (self.items)(run));
        serializer.collect_seq(first.iter().enumerate().map(|(index, item)| Item { of: self, index, item }))
    }
}

struct Item<'a, T> {
    of: &'a Items<'a, T>,
    index: usize,
    item: &'a T,
}

impl<T> Serialize for Item<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { of, index, item } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", (of.name)(item))?;
        for (name, metric) in of.metrics {
            map.serialize_entry(name, &Ci(of.point.estimate(|run| (of.items)(run).get(*index).map(metric))))?;
        }
        map.end()
    }
}

/// `{"mean", "sd", "ci95"}`, the last half the width of the interval; null for what was not measured in any run, and so are
/// spread and interval of a single run.
struct Ci(Option<Estimate>);

impl Serialize for Ci {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(estimate) = &self.0 else { return serializer.serialize_none() };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("mean", &estimate.mean)?;
        map.serialize_entry("sd", &estimate.sd)?;
        map.serialize_entry("ci95", &estimate.half_width)?;
        map.end()
    }
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
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("scenario", &self.scenario)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("runs", &Runs(&self.points))?;
        // Without a sweep there is one summary; with one, a list.
        match self.points.as_slice() {
            [point] if point.parameters.is_empty() => map.serialize_entry("summary", &Summary(point))?,
            points => map.serialize_entry("summary", &points.iter().map(Summary).collect::<Vec<_>>())?,
        }
        map.serialize_entry("stopped", &self.stopped)?;
        map.end()
    }
}

struct Runs<'a>(&'a [PointReport]);

impl<'a> Serialize for Runs<'a> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_point = |point: &'a PointReport| point.runs.iter().map(|run| Run::new(&point.parameters, run));
        serializer.collect_seq(self.0.iter().flat_map(of_point))
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
    fn the_rows_are_comma_separated_and_numbers() {
        let parameters =
            vec![("link.s-d.delay".into(), "10ms".into()), ("flow.f.congestion".into(), "daimd:a=1,b=2".into())];
        let point = PointReport { parameters, groups: vec![], runs: vec![run(1, 1.5), run(2, 2.0)] };
        let report = Report { scenario: "s".into(), version: "1".into(), points: vec![point], stopped: false };
        let text = report.csv();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("link.s-d.delay,flow.f.congestion,seed,flow,goodput_mbps,"), "{}", lines[0]);
        assert!(lines[1].starts_with("0.01,\"daimd:a=1,b=2\",1,f,1.5,"), "{}", lines[1]);
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains(",,"), "no round trip was measured: {}", lines[1]);
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
