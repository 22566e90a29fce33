//! What each number of the tables and of the JSON means: its unit, and what in the code makes it.

/// One number of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// The column of the tables; empty of what only the JSON has.
    pub name: &'static str,
    /// The field of the JSON; empty of what only tables have.
    pub json: &'static str,
    /// Its unit; empty of texts and plain counts.
    pub unit: &'static str,
    /// What it is, in Markdown.
    pub says: &'static str,
    /// What makes it: a field or a function, as `cargo doc` shows it.
    pub source: &'static str,
}

/// Columns that stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// The table, or what has them in common, in Markdown.
    pub title: &'static str,
    /// The objects of the JSON with the same numbers, in Markdown; empty where there are none.
    pub json: &'static str,
    /// What a row is, and what holds for all columns, in Markdown.
    pub says: &'static str,
    /// The columns in their order.
    pub columns: &'static [Column],
}

/// A column that the JSON calls by the same name.
const fn both(name: &'static str, unit: &'static str, says: &'static str, source: &'static str) -> Column {
    Column { name, json: name, unit, says, source }
}

/// A column of tables alone.
const fn table(name: &'static str, unit: &'static str, says: &'static str, source: &'static str) -> Column {
    Column { name, json: "", unit, says, source }
}

/// A field of the JSON alone.
const fn json(json: &'static str, unit: &'static str, says: &'static str, source: &'static str) -> Column {
    Column { name: "", json, unit, says, source }
}

const fn called(column: Column, json: &'static str) -> Column {
    Column { json, ..column }
}

const RTT: &str = "FlowResult::rtt";
const QUEUE: &str = "LinkResult::queue";

/// All of them.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Every table",
        json: "`runs[]`",
        says: "The first columns of each.",
        columns: &[
            table("run", "", "The seed, and a hash over scenario, seed and program.", "campaign::digest_of"),
            both("seed", "", "The run's.", "RunResult::seed"),
            called(
                table(
                    "link.s-d.delay",
                    "s, bit/s, bytes or packets",
                    "A swept key, under its own name: its value as a number where all values are numbers or quantities of one unit, \
                 otherwise as written. In the JSON as written.",
                    "campaign::Table",
                ),
                "parameters.link.s-d.delay",
            ),
        ],
    },
    Section {
        title: "`summary`",
        json: "`runs[]`, and `summary.total` from `goodput_mbps` on",
        says: "A row per run. Of all its flows together from `goodput_mbps` on.",
        columns: &[
            both("virtual_s", "s", "Virtual time that was simulated.", "RunResult::virtual_s"),
            json("cpu_s", "s", "Processor time that it took; 0 of a run that was stored before.", "RunResult::cpu_s"),
            both("packets", "packets", "Delivered by all links together.", "RunResult::packets"),
            both("events", "", "Steps of the simulator.", "RunResult::events"),
            both(
                "digest",
                "",
                "A hash over every delivery: when, where, what. Equal runs have equal ones, on every machine.",
                "RunResult::digest",
            ),
            both("goodput_mbps", "Mbit/s", "Sum over the flows.", "FlowResult::goodput_mbps"),
            both("throughput_mbps", "Mbit/s", "Sum over the flows.", "FlowResult::throughput_mbps"),
            both("jain", "0 to 1", "Jain's index of the goodputs x of n flows, (Σx)² / (n·Σx²).", "fairness::jain"),
            both("delivered", "packets", "Sum over the flows.", "FlowResult::delivered"),
            both("sent", "packets", "Sum over the flows.", "FlowResult::sent"),
            both("retransmissions", "packets", "Sum over the flows.", "FlowResult::retransmissions"),
            both("losses", "packets", "Sum over the flows.", "FlowResult::losses"),
            both("timeouts", "", "Sum over the flows.", "FlowResult::timeouts"),
            both("reordered", "packets", "Sum over the flows.", "FlowResult::reordered"),
        ],
    },
    Section {
        title: "`summary_flows`",
        json: "`runs[].flows[]` and `summary.flows[]`",
        says: "A row per run and flow; `sinnet sim --csv` prints the same. Counted from the warm-up to the end, of a flow that ends earlier \
               to its end; of a flow that starts later from its start.",
        columns: &[
            called(
                table("flow", "", "Its name; `f.1`, `f.2` where there are several alike.", "FlowResult::name"),
                "name",
            ),
            both(
                "goodput_mbps",
                "Mbit/s",
                "8·B / T, B the bytes that the application got, in order and once, without headers; T the time that is counted.",
                "FlowResult::goodput_mbps",
            ),
            both(
                "goodput_wire_mbps",
                "Mbit/s",
                "The same packets with their headers: what papers often call throughput.",
                "FlowResult::goodput_wire_mbps",
            ),
            both(
                "throughput_mbps",
                "Mbit/s",
                "All that arrived, with headers, repeated data included.",
                "FlowResult::throughput_mbps",
            ),
            both("start_s", "s", "When it began.", "FlowResult::start_s"),
            both("end_s", "s", "When all of its `amount` was acknowledged, or the run was over.", "FlowResult::end_s"),
            both(
                "completed",
                "0 or 1",
                "All of its `amount` was acknowledged; true or false in `runs[]`.",
                "FlowResult::completed",
            ),
            both("delivered", "packets", "In order at the receiver.", "FlowResult::delivered"),
            both("sent", "packets", "Data packets sent, retransmissions included.", "FlowResult::sent"),
            both("retransmissions", "packets", "Of these, those sent again.", "FlowResult::retransmissions"),
            both(
                "losses",
                "packets",
                "Data and acknowledgments that queues or links dropped; not what the sender took for lost.",
                "FlowResult::losses",
            ),
            both("timeouts", "", "Retransmission timers that ran out.", "FlowResult::timeouts"),
            both("reductions", "", "Reductions of the window.", "FlowResult::reductions"),
            both(
                "reordered",
                "packets",
                "Data that arrived after data sent later (RFC 4737), retransmissions not counted.",
                "FlowResult::reordered",
            ),
            both("duplicates", "packets", "Retransmissions of what had arrived before.", "FlowResult::duplicates"),
            both("marked", "packets", "Data that arrived with Congestion Experienced.", "FlowResult::marked"),
            called(table("rtt_mean_ms", "ms", "Mean of the samples of the round-trip time.", RTT), "rtt.mean"),
            called(table("rtt_min_ms", "ms", "The least.", RTT), "rtt.min"),
            called(table("rtt_p50_ms", "ms", "The median.", RTT), "rtt.p50"),
            called(table("rtt_p95_ms", "ms", "95 % are below.", RTT), "rtt.p95"),
            called(table("rtt_p99_ms", "ms", "99 % are below.", RTT), "rtt.p99"),
            called(table("rtt_max_ms", "ms", "The greatest.", RTT), "rtt.max"),
            json("rtt.samples", "", "How many there were; the columns are empty where there was none.", RTT),
            both(
                "mean_cwnd",
                "packets",
                "The congestion window, averaged over the time that the flow was active; of several paths their sum.",
                "FlowResult::mean_cwnd",
            ),
            json("undone", "", "Reductions that were taken back as needless.", "FlowResult::undone"),
            json(
                "most_held",
                "packets",
                "The most that the receiver held out of order at once, where that is counted (several paths).",
                "FlowResult::most_held",
            ),
            json("paths", "", "The paths, below; not of flows that have one by nature.", "FlowResult::paths"),
        ],
    },
    Section {
        title: "Paths of a flow",
        json: "`runs[].flows[].paths[]`",
        says: "An object per path, in the order of the scenario; counted as those of the flow.",
        columns: &[
            json(
                "goodput_mbps",
                "Mbit/s",
                "Data that arrived on it and had not arrived before, without headers.",
                "PathResult::goodput_mbps",
            ),
            json("throughput_mbps", "Mbit/s", "All that arrived on it, with headers.", "PathResult::throughput_mbps"),
            json("delivered", "packets", "That arrived on it and had not arrived before.", "PathResult::delivered"),
            json("sent", "packets", "Sent on it, retransmissions included.", "PathResult::sent"),
            json("retransmissions", "packets", "Of these, those sent again.", "PathResult::retransmissions"),
            json("losses", "packets", "Data that its queues and links dropped.", "PathResult::losses"),
            json(
                "reductions",
                "",
                "Reductions of its window; of \"mhip\" of generation 1, indications of congestion.",
                "PathResult::reductions",
            ),
            json("undone", "", "Of these, those taken back.", "PathResult::undone"),
            json(
                "reordered",
                "packets",
                "That arrived on it after one sent later on any path (RFC 4737).",
                "PathResult::reordered",
            ),
            json("refused", "packets", "That arrived and found no room at the receiver.", "PathResult::refused"),
            json("closings", "", "How often it was closed.", "PathResult::closings"),
            json("probes", "packets", "Probes of it while it was closed.", "PathResult::probes"),
            json(
                "mean_cwnd",
                "packets",
                "Its window over time; what is in flight where it has none.",
                "PathResult::mean_cwnd",
            ),
            json("srtt_ms", "ms", "Its smoothed round-trip time at the end.", "PathResult::srtt_ms"),
        ],
    },
    Section {
        title: "`summary_links`",
        json: "`runs[].links[]` and `summary.links[]`",
        says: "A row per run and direction of a link, counted from the warm-up to the end.",
        columns: &[
            called(table("link", "", "The direction: `s-d`, `d-s`.", "LinkResult::name"), "name"),
            both(
                "utilisation",
                "0 to 1",
                "Bits sent over bits that could have been sent; 0 without a rate.",
                "LinkResult::utilisation",
            ),
            both("offered", "packets", "That came to its queue.", "LinkResult::offered"),
            both("delivered", "packets", "That left it at the far end.", "LinkResult::delivered"),
            both("delivered_bytes", "bytes", "The same, with headers.", "LinkResult::delivered_bytes"),
            both(
                "queue_drops",
                "packets",
                "Dropped by the queue: it was full, or its discipline decided so.",
                "LinkResult::queue_drops",
            ),
            both("link_losses", "packets", "Lost on the link: random loss and outages.", "LinkResult::link_losses"),
            both("marked", "packets", "Marked by the queue instead of dropped.", "LinkResult::marked"),
            called(
                table("queue_mean", "packets", "What waits, sampled at equal times: the mean.", QUEUE),
                "queue.mean",
            ),
            called(table("queue_p50", "packets", "The median.", QUEUE), "queue.p50"),
            called(table("queue_p95", "packets", "95 % are below.", QUEUE), "queue.p95"),
            called(table("queue_p99", "packets", "99 % are below.", QUEUE), "queue.p99"),
            called(table("queue_max", "packets", "The greatest.", QUEUE), "queue.max"),
            json("queue.min", "packets", "The least.", QUEUE),
            json("queue.samples", "", "How many samples there were.", QUEUE),
        ],
    },
    Section {
        title: "`flows`",
        json: "",
        says: "A row per sample and flow. Counters are totals since the start, rates are of the interval before the \
               sample.",
        columns: &[
            table("time_s", "s", "When.", "Sample::time_s"),
            table("flow", "", "Its name.", "FlowResult::name"),
            table("goodput_mbps", "Mbit/s", "What the application got.", "FlowSample::delivered_bytes"),
            table(
                "delivered_bytes",
                "bytes",
                "In order at the receiver, without headers.",
                "FlowSample::delivered_bytes",
            ),
            table("retransmissions", "packets", "Sent again.", "FlowSample::retransmissions"),
        ],
    },
    Section {
        title: "`paths`",
        json: "",
        says: "A row per sample, flow and path: what congestion control knew.",
        columns: &[
            table("time_s", "s", "When.", "Sample::time_s"),
            table("flow", "", "Its name.", "FlowResult::name"),
            table("path", "", "The path's number, from 0.", "FlowSample::paths"),
            table(
                "cwnd_packets",
                "packets",
                "The congestion window; what is in flight where there is none.",
                "PathSample::cwnd",
            ),
            table(
                "ssthresh_packets",
                "packets",
                "The slow-start threshold; empty before there is one.",
                "PathSample::ssthresh",
            ),
            table("flight_packets", "packets", "In flight.", "PathSample::flight"),
            table(
                "srtt_ms",
                "ms",
                "The smoothed round-trip time; empty before the first sample.",
                "PathSample::srtt_ms",
            ),
            table(
                "throughput_mbps",
                "Mbit/s",
                "What arrived on the path, with headers; empty of flows of one path.",
                "PathSample::arrived_bytes",
            ),
        ],
    },
    Section {
        title: "`links`",
        json: "",
        says: "A row per sample and direction of a link.",
        columns: &[
            table("time_s", "s", "When.", "Sample::time_s"),
            table("link", "", "The direction.", "LinkResult::name"),
            table(
                "throughput_mbps",
                "Mbit/s",
                "What left it at the far end, with headers.",
                "LinkSample::delivered_bytes",
            ),
            table("queue_packets", "packets", "What waits.", "LinkSample::queue"),
            table("delivered_bytes", "bytes", "What left it, with headers.", "LinkSample::delivered_bytes"),
            table("drops", "packets", "Dropped, for whatever reason.", "LinkSample::drops"),
        ],
    },
    Section {
        title: "Means and intervals",
        json: "each number of `summary.total`, `summary.flows[]` and `summary.links[]`",
        says: "Over the runs of a point of the sweep; a run in which a number was not measured is left out of it. With a sweep `summary` is \
               a list with an object per point, and `parameters` says which.",
        columns: &[
            json("mean", "as the number", "The mean x̄ over the n runs.", "fairness::statistics::Estimate"),
            json("sd", "as the number", "s = √(Σ(x−x̄)²/(n−1)); null of one run.", "fairness::statistics::Estimate"),
            json(
                "ci95",
                "as the number",
                "Half the width of the 95 % interval of the mean, t·s/√n with Student's t of n−1 degrees of freedom.",
                "fairness::statistics::Estimate",
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use simulator::{FlowResult, LinkResult, PathResult, RunResult};

    use super::*;
    use crate::metrics::{FLOW, LINK, Label, TOTAL};
    use crate::series;

    fn section(title: &str) -> &'static Section {
        SECTIONS.iter().find(|section| section.title == title).unwrap()
    }

    fn names(title: &str) -> Vec<&'static str> {
        section(title).columns.iter().map(|column| column.name).filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn every_column_of_a_table_is_told_of() {
        assert_eq!(names("`summary`")[4..], TOTAL.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        assert_eq!(names("`summary_flows`")[1..], FLOW.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        assert_eq!(names("`summary_links`")[1..], LINK.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let (label, result) = (Label::default(), RunResult::default());
        for (title, table) in [
            ("`flows`", series::flows(&label, &result)),
            ("`paths`", series::paths(&label, &result)),
            ("`links`", series::links(&label, &result)),
        ] {
            let columns: Vec<&str> = table.columns().map(|(name, _)| name).collect();
            assert_eq!(columns[2..], names(title));
        }
    }

    /// The fields of an object, "rtt.mean" of those that are objects again.
    fn fields(value: &Value) -> Vec<String> {
        let of = |(name, value): (&String, &Value)| match value {
            Value::Object(inner) => inner.keys().map(|key| format!("{name}.{key}")).collect(),
            _ => vec![name.clone()],
        };
        let mut fields: Vec<String> = value.as_object().unwrap().iter().flat_map(of).collect();
        fields.sort();
        fields
    }

    #[test]
    fn every_field_of_the_json_is_told_of() {
        let flow = FlowResult { paths: vec![PathResult::default()], ..FlowResult::default() };
        for (title, value) in [
            ("`summary_flows`", json!(flow)),
            ("Paths of a flow", json!(PathResult::default())),
            ("`summary_links`", json!(LinkResult::default())),
        ] {
            let mut told: Vec<&str> =
                section(title).columns.iter().map(|column| column.json).filter(|json| !json.is_empty()).collect();
            told.sort_unstable();
            assert_eq!(told, fields(&value), "{title}");
        }
    }
}
