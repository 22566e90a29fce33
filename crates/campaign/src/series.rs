//! The time series of one run as tables: a row per sample and flow, path or link.

use simulator::{FlowSample, LinkSample, PathSample, RunResult, Sample};

use crate::metrics::Label;
use crate::table::{Table, Values};

/// Per flow: what the application got. Counters are totals since the start; rates are over the interval before the sample.
pub(crate) fn flows(label: &Label, result: &RunResult) -> Table {
    let names: Vec<&str> = result.flows.iter().map(|flow| flow.name.as_str()).collect();
    let rows = Rows::of(result, &names, |sample| &sample.flows);
    label
        .begin(Table::new())
        .with("time_s", rows.times())
        .with("flow", rows.names())
        .with("goodput_mbps", rows.rate(|flow: &FlowSample| flow.delivered_bytes))
        .with("delivered_bytes", rows.counts(|flow| flow.delivered_bytes))
        .with("retransmissions", rows.counts(|flow| flow.retransmissions))
}

/// Per path: what congestion control knew. A single-path flow has path 0.
pub(crate) fn paths(label: &Label, result: &RunResult) -> Table {
    let (mut times, mut names, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cwnd, mut ssthresh, mut flight, mut srtt) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut rates = Vec::new();
    let mut before: Option<&Sample> = None;
    for sample in &result.series {
        for (index, (flow, state)) in result.flows.iter().zip(&sample.flows).enumerate() {
            let whole = PathSample {
                cwnd: state.cwnd,
                ssthresh: state.ssthresh,
                flight: state.flight,
                srtt_ms: state.srtt_ms,
                ..PathSample::default()
            };
            let paths = if state.paths.is_empty() { std::slice::from_ref(&whole) } else { state.paths.as_slice() };
            for (number, path) in (0..).zip(paths) {
                times.push(sample.time_s);
                names.push(flow.name.clone());
                numbers.push(number);
                // Before the first loss ssthresh is infinite, before the first acknowledgment there is no round-trip
                // time: null. So is the ssthresh of what has none.
                let known = |value: f64, is_known: bool| if is_known { value } else { f64::NAN };
                cwnd.push(path.cwnd);
                ssthresh.push(known(path.ssthresh, path.ssthresh.is_finite() && path.ssthresh > 0.0));
                flight.push(path.flight);
                srtt.push(known(path.srtt_ms, path.srtt_ms > 0.0));
                // Of a flow of one path, its link tells.
                let earlier = before.and_then(|before| before.flows.get(index)?.paths.get(number as usize));
                let gained =
                    path.arrived_bytes.saturating_sub(earlier.map_or(0, |earlier| earlier.arrived_bytes)) as f64;
                let passed = sample.time_s - before.map_or(0.0, |before| before.time_s);
                rates.push(known(gained * 8e-6 / passed, passed > 0.0 && !state.paths.is_empty()));
            }
        }
        before = Some(sample);
    }
    label
        .begin(Table::new())
        .with("time_s", Values::Float(times))
        .with("flow", Values::Text(names))
        .with("path", Values::Count(numbers))
        .with("cwnd_packets", Values::Float(cwnd))
        .with("ssthresh_packets", Values::Float(ssthresh))
        .with("flight_packets", Values::Count(flight))
        .with("srtt_ms", Values::Float(srtt))
        .with("throughput_mbps", Values::Float(rates))
}

/// Per link and direction. Counters are totals since the start; rates are over the interval before the sample.
pub(crate) fn links(label: &Label, result: &RunResult) -> Table {
    let names: Vec<&str> = result.links.iter().map(|link| link.name.as_str()).collect();
    let rows = Rows::of(result, &names, |sample| &sample.links);
    label
        .begin(Table::new())
        .with("time_s", rows.times())
        .with("link", rows.names())
        .with("throughput_mbps", rows.rate(|link: &LinkSample| link.delivered_bytes))
        .with("queue_packets", rows.counts(|link| link.queue))
        .with("delivered_bytes", rows.counts(|link| link.delivered_bytes))
        .with("drops", rows.counts(|link| link.drops))
}

/// The samples of all flows or links, one after the other, a sample's in the order of the scenario.
struct Rows<'a, T> {
    names: &'a [&'a str],
    samples: Vec<(f64, &'a [T])>,
}

impl<'a, T> Rows<'a, T> {
    fn of(result: &'a RunResult, names: &'a [&'a str], part: impl Fn(&'a Sample) -> &'a Vec<T>) -> Self {
        let samples = result.series.iter().map(|sample| (sample.time_s, part(sample).as_slice())).collect();
        Self { names, samples }
    }

    fn times(&self) -> Values {
        Values::Float(self.each(|time, _| time))
    }

    fn names(&self) -> Values {
        let names = self.samples.iter().flat_map(|(_, part)| self.names.iter().take(part.len()));
        Values::Text(names.map(|name| (*name).to_owned()).collect())
    }

    fn counts(&self, value: impl Fn(&T) -> u64) -> Values {
        Values::Count(self.each(|_, item| value(item)))
    }

    fn each<V>(&self, value: impl Fn(f64, &T) -> V) -> Vec<V> {
        let value = &value;
        self.samples.iter().flat_map(|&(time, part)| part.iter().map(move |item| value(time, item))).collect()
    }

    /// Mbit/s of what a counter of bytes gained since the sample before (since the start, for the first).
    fn rate(&self, bytes: impl Fn(&T) -> u64) -> Values {
        let mut rates = Vec::new();
        let mut before: (f64, &[T]) = (0.0, &[]);
        for &(time, part) in &self.samples {
            for (index, item) in part.iter().enumerate() {
                let earlier = before.1.get(index).map_or(0, &bytes);
                let gained = bytes(item).saturating_sub(earlier) as f64;
                let passed = time - before.0;
                rates.push(if passed > 0.0 { gained * 8e-6 / passed } else { f64::NAN });
            }
            before = (time, part);
        }
        Values::Float(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::FlowResult;

    #[test]
    fn rates_are_differences_of_counters() {
        let sample = |time_s, bytes| Sample {
            time_s,
            flows: vec![FlowSample { delivered_bytes: bytes, ..FlowSample::default() }],
            links: vec![],
        };
        let result = RunResult {
            flows: vec![FlowResult { name: "f".into(), ..FlowResult::default() }],
            series: vec![sample(0.0, 0), sample(0.5, 62_500), sample(1.0, 62_500)],
            ..RunResult::default()
        };
        let rows = Rows::of(&result, &["f"], |sample| &sample.flows);
        let Values::Float(rates) = rows.rate(|flow| flow.delivered_bytes) else { panic!() };
        assert!(rates[0].is_nan());
        // 62,500 bytes in half a second are 1 Mbit/s.
        assert_eq!(&rates[1..], &[1.0, 0.0]);
        assert_eq!(flows(&Label::default(), &result).rows(), 3);
    }

    #[test]
    fn every_path_has_a_row_and_what_is_not_known_is_null() {
        let path = |cwnd| PathSample {
            cwnd,
            ssthresh: f64::INFINITY,
            flight: 3,
            arrived_bytes: 250_000,
            ..PathSample::default()
        };
        let single = FlowSample { cwnd: 4.0, ssthresh: 2.0, srtt_ms: 20.0, ..FlowSample::default() };
        let multi = FlowSample { paths: vec![path(5.0), path(6.0)], ..FlowSample::default() };
        let flow = |name: &str| FlowResult { name: name.into(), ..FlowResult::default() };
        let result = RunResult {
            flows: vec![flow("single"), flow("multi")],
            series: vec![Sample { time_s: 1.0, flows: vec![single, multi], links: vec![] }],
            ..RunResult::default()
        };
        let table = paths(&Label::default(), &result);
        let column = |name: &str| format!("{:?}", table.column(name));
        assert_eq!(column("flow"), r#"Some(Text(["single", "multi", "multi"]))"#);
        assert_eq!(column("path"), "Some(Count([0, 0, 1]))");
        assert_eq!(column("cwnd_packets"), "Some(Float([4.0, 5.0, 6.0]))");
        assert_eq!(column("ssthresh_packets"), "Some(Float([2.0, NaN, NaN]))");
        assert_eq!(column("srtt_ms"), "Some(Float([20.0, NaN, NaN]))");
        // 250,000 bytes in the first second.
        assert_eq!(column("throughput_mbps"), "Some(Float([NaN, 2.0, 2.0]))");
    }
}
