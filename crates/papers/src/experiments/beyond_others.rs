//! What the papers leave to future work: mHIP beside other transports than TCP, other proposals in its place, extreme networks,
//! and DAIMD beside itself.

use simulator::RunResult;

use super::IN_NO_PAPER;
use super::friendliness::factor;
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "beyond/others",
        title: "Beside others, and others in its place",
        setup: "The network of paper [3] with an SCTP in place of the competing TCP, with an MPTCP that has the same two paths as \
                mHIP, and with an MPTCP in place of mHIP.",
        cases: &["beyond-beside-sctp", "beyond-beside-mptcp", "beyond-in-place", "reference"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: others,
        figures: |_| Vec::new(),
    },
    Experiment {
        id: "beyond/extreme",
        title: "Extreme cases",
        setup: "The final generation in the network of paper [3] for 120 s; up to a tenth of all packets is lost at random on the \
                shared link, and its queue holds 5 packets or 72.",
        cases: &["beyond-extreme"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: extreme,
        figures: |_| Vec::new(),
    },
    Experiment {
        id: "beyond/daimd-twice",
        title: "DAIMD beside DAIMD",
        setup: "Two connections under DAIMD, or under LIA, on paths of 10 and 5 Mbit/s; 100 s after 20 s.",
        cases: &["beyond-daimd-twice"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: twice,
        figures: |_| Vec::new(),
    },
];

fn total(point: &PointView<'_>, flow: &str) -> Vec<f64> {
    point.flow(flow, |flow| flow.throughput_mbps)
}

fn others(results: &Results, out: &mut Evaluation) {
    let of = |case: &str| results.point(case);
    out.further("factor on Path1 beside TCP", "1", None, of("reference").and_then(|point| factor(&point)));
    out.further("factor on Path1 beside SCTP", "1", None, of("beyond-beside-sctp").and_then(|point| factor(&point)));
    let mptcp = of("beyond-beside-mptcp");
    let shares = mptcp.and_then(|point| Measured::ratio(&total(&point, "mhip"), &total(&point, "tcp")));
    out.further("total over that of an MPTCP on the same paths", "1", None, shares);
    let mhip = of("reference").map(|point| total(&point, "mhip"));
    out.further("total of mHIP", "", None, mhip.and_then(|values| Measured::of(&values)));
    for point in results.points("beyond-in-place") {
        let rule = point.value("congestion").unwrap_or("?");
        out.further(format!("factor on Path1 of MPTCP under {rule}"), "1", None, factor(&point));
        out.further(format!("total of MPTCP under {rule}"), "", None, Measured::of(&total(&point, "mhip")));
    }
}

fn extreme(results: &Results, out: &mut Evaluation) {
    for point in results.points("beyond-extreme") {
        let (loss, queue) = (point.value("loss").unwrap_or("?"), point.value("queue").unwrap_or("?"));
        let at = format!("loss {loss}, queue {queue}");
        out.further(format!("friendliness factor, {at}"), "1", None, factor(&point));
        out.further(format!("total throughput of mHIP, {at}"), "", None, Measured::of(&total(&point, "mhip")));
        let timeouts = Measured::of(&point.flow("mhip", |flow| flow.timeouts as f64));
        out.further(format!("timeouts of mHIP, {at}"), "1", None, timeouts);
    }
}

fn twice(results: &Results, out: &mut Evaluation) {
    for point in results.points("beyond-daimd-twice") {
        let rule = point.value("congestion").unwrap_or("?");
        // The smaller over the larger in each run: 1 is an equal share.
        let pair = |run: &RunResult| match run.flows.as_slice() {
            [a, b] => Some((a.throughput_mbps.min(b.throughput_mbps), a.throughput_mbps.max(b.throughput_mbps))),
            _ => None,
        };
        let ratios = point.values(|run| pair(run).map(|(less, more)| less / more));
        out.further(format!("smaller over larger share under {rule}"), "1", None, Measured::of(&ratios));
        let both = point.values(|run| pair(run).map(|(less, more)| less + more));
        out.further(format!("both together under {rule}"), "", None, Measured::of(&both));
        let lost = Measured::of(&point.link("sa-da", |link| link.queue_drops as f64));
        out.further(format!("packets dropped on path A under {rule}"), "packets", None, lost);
    }
}
