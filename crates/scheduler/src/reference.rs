//! What the reference tells of each scheduler: how it chooses, and where that comes from.

use crate::Scheduler;

/// A scheduler in formulas.
///
/// Of a path, `RTT` is the smoothed round-trip time, `σ` its variation, `D` the one-way delay, `B` the rate, `w` the window in packets;
/// `S` is the size of the packet. A path is open if it may take a packet now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The name of the scheduler.
    pub name: &'static str,
    /// The path that it chooses.
    pub choice: &'static str,
    /// Paper or draft, or whose rule it is.
    pub source: &'static str,
}

impl Scheduler {
    /// The scheduler in formulas.
    pub fn reference(&self) -> Option<&'static Reference> {
        REFERENCE.iter().find(|reference| reference.name == self.name())
    }
}

/// All schedulers, in the order of [`Scheduler::NAMES`].
pub const REFERENCE: &[Reference] = &[
    Reference {
        name: "lowest-rtt",
        choice: "the open path of least RTT",
        source: "Raiciu and others, NSDI 2012; Linux mptcp_sched.c",
    },
    Reference { name: "round-robin", choice: "the next open path, one packet each", source: "Linux mptcp_rr.c" },
    Reference {
        name: "weighted",
        choice: "each open path gains B; the richest sends and pays ΣB",
        source: "smooth weighted round robin, as nginx has it",
    },
    Reference {
        name: "redundant",
        choice: "every packet on every path, each at its own pace; the first copy as lowest-rtt",
        source: "Linux mptcp_redundant.c",
    },
    Reference {
        name: "fastest-path-first",
        choice: "the least max(t_free, now) + D + 8S/B, where t_free is when the path has sent what it was given",
        source: "Gurtov and Polishchuk, BROADNETS 2009, §IV-C; Chebrolu and others, Wireless Networks 11, 2005 (EDPF)",
    },
    Reference {
        name: "blest",
        choice: "as lowest-rtt, but waits for the fastest path f rather than use s where λ·MSS·(w_f + (r−1)/2)·r is more than the window \
                 leaves beside s, r = RTT_s/RTT_f",
        source: "Ferlin and others, IFIP Networking 2016; Linux mptcp_blest.c",
    },
    Reference {
        name: "ecf",
        choice: "as lowest-rtt, but waits for f rather than use s if (1 + k/w_f)·RTT_f < (1 + β·waiting)·(RTT_s + δ) and k/w_s·RTT_s ≥ \
                 2·RTT_f + δ; k packets to send, δ = max(σ_f, σ_s), β = 0.25",
        source: "Lim and others, CoNEXT 2017; Linux mptcp_ecf.c",
    },
    Reference {
        name: "sttf",
        choice: "the least time to deliver what waits for the path and one packet more, in rounds of RTT in which w grows; also on a \
                 path that is not open",
        source: "Hurtig and others, IEEE/ACM ToN 27(1), 2019",
    },
    Reference {
        name: "otias",
        choice: "the least (⌊wait/w⌋ + ½)·RTT, wait = max(0, queued + in flight − w); also on a path that is not open",
        source: "Yang, Wang and Amer, WAINA 2014",
    },
    Reference {
        name: "daps",
        choice: "in a period T = max D each path has w places at each multiple of its D; packets take places in order \
                 of arrival",
        source: "Kuhn and others, IEEE ICC 2014",
    },
    Reference {
        name: "cheapest-path-first",
        choice: "the first open path, in the order of their numbers",
        source: "draft-ietf-tsvwg-multipath-dccp",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheduler_is_in_the_reference() {
        let names: Vec<&str> = REFERENCE.iter().map(|reference| reference.name).collect();
        assert_eq!(names, Scheduler::NAMES);
        assert!(Scheduler::default().reference().is_some_and(|reference| reference.choice.contains("8S/B")));
    }
}
