//! What the reference tells of each rule: its formulas, where they come from, and its tunables.
//!
//! One entry a rule. The tests below hold names, tunables and defaults to the rules themselves; that the rules compute what the
//! formulas say is the business of the check vectors.

use crate::rules::Rule;

/// A tunable of a rule, as in `daimd:high=0.9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tunable {
    /// Its name.
    pub name: &'static str,
    /// What it may be; as the error says that refuses anything else.
    pub values: &'static str,
    /// What it is unless set; empty where it then is as another rule has it.
    pub default: &'static str,
    /// What it does, in a sentence.
    pub says: &'static str,
}

/// A rule in formulas.
///
/// `w` is the window of the path in packets, `F` what is in flight on it, `RTT` its smoothed round-trip time, `base` and `top` the
/// lowest and the highest one of the connection, `s` the slow-start threshold, `Σ` a sum over the usable paths, `n` their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The name of the rule.
    pub name: &'static str,
    /// What the window gains in congestion avoidance.
    pub increase: &'static str,
    /// What a loss leaves of it.
    pub decrease: &'static str,
    /// Paper or RFC, with the section or equation.
    pub source: &'static str,
    /// The section of docs/algorithms.md that has all of it: its number, and its anchor.
    pub section: (&'static str, &'static str),
    /// What can be set.
    pub tunables: &'static [Tunable],
}

impl Rule {
    /// The rule in formulas; none of a rule from outside.
    pub fn reference(&self) -> Option<&'static Reference> {
        REFERENCE.iter().find(|reference| reference.name == self.name())
    }
}

const fn tunable(name: &'static str, values: &'static str, default: &'static str, says: &'static str) -> Tunable {
    Tunable { name, values, default, says }
}

const FRACTION: &str = "a number from 0 to 1";
const SECONDS: &str = "a time in seconds from 0 to 10";
const SWITCH: &str = "on or off";
const RENO: &str = "1/w per packet acknowledged";
const HALF: &str = "F/2";

const LAYER: [Tunable; 9] = [
    tunable("high", FRACTION, "0.8", "The window is cut when q reaches this."),
    tunable("low", FRACTION, "0.5", "The next cut is possible once q has been this or less."),
    tunable("delay_factor", FRACTION, "0.7", "The part of the window that such a cut leaves."),
    tunable(
        "loss_factor",
        FRACTION,
        "",
        "The part of what was in flight that a loss leaves; not set, the rule below decides.",
    ),
    tunable(
        "span",
        "a time in seconds from 0 to 60",
        "0.001",
        "A path on which top − base is less than this tells nothing.",
    ),
    tunable("statistic", "lowest, mean or highest", "lowest", "The round-trip time of a round that counts."),
    tunable("needs_loss", SWITCH, "on", "No cut before a first loss has shown what a full queue is."),
    tunable(
        "ageing",
        "a number of rounds from 0 to 1e9",
        "0",
        "top − base shrinks by one part in so many each round; 0 is never.",
    ),
    tunable(
        "hold",
        "a number of rounds from 0 to 1e9; 0 waits until the queue fell",
        "0",
        "Rounds after a cut without another.",
    ),
];

const RANKING: Tunable = tunable(
    "ranking",
    "l/rtt2 or l2/rtt",
    "l/rtt2",
    "How paths are ranked by the bytes ℓ between losses: ℓ/RTT², or ℓ²/RTT.",
);
const OLIA_LAYER: [Tunable; 10] = {
    let [a, b, c, d, e, f, g, h, i] = LAYER;
    [a, b, c, d, e, f, g, h, i, RANKING]
};

const HD: [Tunable; 3] = [
    tunable("lowest", SECONDS, "0.005", "Queueing delay up to which nothing is cut."),
    tunable("threshold", SECONDS, "0.02", "Queueing delay of the highest probability."),
    tunable("highest_probability", FRACTION, "0.05", "That probability, per acknowledgment."),
];
const CHD: [Tunable; 3] =
    [HD[0], HD[1], tunable("highest_probability", FRACTION, "0.5", "That probability, per round trip.")];

/// All rules, in the order of [`Rule::NAMES`].
pub const REFERENCE: &[Reference] = &[
    Reference {
        name: "newreno",
        increase: RENO,
        decrease: HALF,
        source: "RFC 5681 §3.1, equations 3 and 4",
        section: ("3.1", "31-reno--newreno-bytes-rfc-5681-31-r"),
        tunables: &[],
    },
    Reference {
        name: "cubic",
        increase: "(clamp(W(t+RTT), w, 1.5w) − w)/w per packet, W(t) = 0.4·(t−K)³ + W_max, K = ∛((W_max − w_epoch)/0.4); as Reno does \
                   where Reno has more; before the first loss 1/20 at least",
        decrease: "0.7·F",
        source: "RFC 9438 §4.1 to §4.8",
        section: ("3.3", "33-cubic-rfc-9438-4-r"),
        tunables: &[],
    },
    Reference {
        name: "vegas",
        increase: "once a round, diff = w·(RTT−base)/RTT: +1 if diff < 2, −1 if diff > 4",
        decrease: HALF,
        source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995",
        section: ("3.4", "34-tcp-vegas-brakmo--peterson-1995-linux-tcp_vegasc-c"),
        tunables: &[tunable(
            "divisor",
            "rtt or base",
            "rtt",
            "What RTT − base is divided by: the paper's, or that of Linux.",
        )],
    },
    Reference {
        name: "reno-sp",
        increase: "one packet once w packets are acknowledged (partial_bytes_acked)",
        decrease: "⌈w/2⌉, at least 4",
        source: "RFC 9260 §7.2.2 and §7.2.3; Becke and others, ICC 2012, §III-B1",
        section: ("3.2", "32-reno-sp-becke-et-al-iii-b1-rfc-4960-72-s"),
        tunables: &[],
    },
    Reference {
        name: "reno-mp",
        increase: "as reno-sp, on each path",
        decrease: "⌈w/2⌉, at least 4",
        source: "Becke and others, ICC 2012, §III-B2",
        section: ("4.1", "41-reno-mp-uncoupled-s-iii-b2"),
        tunables: &[],
    },
    Reference {
        name: "rp1",
        increase: "q packets once w are acknowledged, q = s/Σs",
        decrease: "w − Σw/2, at least 1",
        source: "Dreibholz and others, AINA 2010",
        section: ("4.2", "42-rp-mp-v1-dreibholz-et-al-aina-2010-inet-cccv_cmtrpv1-c"),
        tunables: &[],
    },
    Reference {
        name: "rp2",
        increase: "î packets once w are acknowledged, î = b/Σb, b = w/RTT",
        decrease: "w − ⌈d·w⌉, d = max(½, Σb/(2b)), at least 1",
        source: "Dreibholz and others, ConTEL 2011; Becke and others, ICC 2012, §III-B3",
        section: ("4.3", "43-rp-mp-v2-becke-iii-b3-dreibholz-et-al-contel-2011-inet-cccv_cmtrpv2-sc"),
        tunables: &[
            tunable(
                "blocking",
                SWITCH,
                "on",
                "After a loss that leaves less than a packet the path sends no new data for some time.",
            ),
            tunable("timeouts", "a number of timeouts from 0 to 1000", "1", "That time, in retransmission timeouts."),
        ],
    },
    Reference {
        name: "lia-byte",
        increase: "min(⌈α·w/Σw⌉, 1) packets once w are acknowledged, α as of lia, in bytes",
        decrease: "⌈w/2⌉, at least 1",
        source: "Becke and others, ICC 2012, §III-B4",
        section: ("4.4", "44-mptcp-lia-byte-form-becke-iii-b4-inet-cccv_cmt_lia-sc"),
        tunables: &[tunable("coupled_slow_start", SWITCH, "on", "Slow start is coupled, too.")],
    },
    Reference {
        name: "lia",
        increase: "min(α/Σw, 1/w) per packet, α = Σw · max(w/RTT²) / (Σ w/RTT)²",
        decrease: HALF,
        source: "RFC 6356 §3, equations 1 and 2",
        section: ("4.5", "45-lia-rfc-6356-34-r"),
        tunables: &[],
    },
    Reference {
        name: "olia",
        increase: "(w/RTT²)/(Σ w/RTT)² + ε/w per packet; ε > 0 on the best paths whose windows are not largest, < 0 on \
                   the largest",
        decrease: HALF,
        source: "Khalili and others, IEEE/ACM ToN 21(5), 2013; draft-khalili-mptcp-congestion-control-05 §2",
        section: (
            "4.6",
            "46-olia-khalili-et-al-ton-2013-draft-khalili-mptcp-congestion-control-05-2-kernel-mptcp_oliac-c",
        ),
        tunables: &[RANKING],
    },
    Reference {
        name: "balia",
        increase: "x/RTT/(Σx)² · (1+α)/2 · (4+α)/5 per packet, x = w/RTT, α = max(x)/x",
        decrease: "F·(1 − min(α, 1.5)/2)",
        source: "Peng and others, IEEE/ACM ToN 24(1), 2016; draft-walid-mptcp-congestion-control-04 §2",
        section: (
            "4.7",
            "47-balia-peng-walid-hwang-low-ton-2016-draft-walid-mptcp-congestion-control-04-2-kernel-mptcp_baliac-c",
        ),
        tunables: &[],
    },
    Reference {
        name: "wvegas",
        increase: "once a round, diff = ⌊w·(RTT−base)/RTT⌋: +1 if diff < α, −1 if diff > α, α = max(2, ⌊10·x/Σx⌋), x = \
                   w/RTT",
        decrease: HALF,
        source: "Cao, Xu and Fu, IEEE ICNP 2012; draft-xu-mptcp-congestion-control",
        section: ("4.8", "48-wvegas-cao-xu-fu-icnp-2012-draft-xu-mptcp-congestion-control-kernel-mptcp_wvegasc-c"),
        tunables: &[],
    },
    Reference {
        name: "daimd",
        increase: "as lia",
        decrease: "as lia; 0.7·w once q = (m−base)/(top−base) ≥ 0.8, m the least round-trip time of the round, not \
                   again before q ≤ 0.5; at least 2",
        source: "González and others, MELECON 2016; when delays tell of congestion is a reconstruction",
        section: ("5.2", "52-reconstruction-daimd-r-o--armed-threshold-on-normalised-queueing-delay"),
        tunables: &LAYER,
    },
    Reference {
        name: "daimd-olia",
        increase: "as olia",
        decrease: "as olia; by delay as daimd",
        source: "as daimd, over olia",
        section: ("5.2", "52-reconstruction-daimd-r-o--armed-threshold-on-normalised-queueing-delay"),
        tunables: &OLIA_LAYER,
    },
    Reference {
        name: "daimd-balia",
        increase: "as balia",
        decrease: "as balia; by delay as daimd",
        source: "as daimd, over balia",
        section: ("5.2", "52-reconstruction-daimd-r-o--armed-threshold-on-normalised-queueing-delay"),
        tunables: &LAYER,
    },
    Reference {
        name: "mhip",
        increase: "1/w per packet on each path",
        decrease: "w/2 on the path of the loss, at least 2",
        source: "Polishchuk and Gurtov, Improving TCP-friendliness for mHIP, 2010",
        section: ("6.3", "63-v2v3-two-level-control-so"),
        tunables: &[tunable(
            "growth",
            "per_path, coupled or lia",
            "per_path",
            "Each path as a Reno, all as one (1/Σw), or by RFC 6356.",
        )],
    },
    Reference {
        name: "cdg",
        increase: RENO,
        decrease: "F/2 of a loss at a full queue, otherwise w; once a round 0.7·w with probability 1 − exp(−g/G), g the mean gradient of \
                   the round-trip time over 8 rounds",
        source: "Hayes and Armitage, IFIP Networking 2011",
        section: ("3.5", "35-cdg-hayes--armitage-2011-freebsd-cc_cdgc-linux-tcp_cdgc-c"),
        tunables: &[tunable("scale", "a gradient in milliseconds a round from 0.001 to 1000", "3", "G.")],
    },
    Reference {
        name: "chd",
        increase: RENO,
        decrease: "F/2, and w at a queue below the threshold; once a round w/2 with the probability of hd",
        source: "Hayes and Armitage, IEEE LCN 2010",
        section: ("3.6", HAMILTON),
        tunables: &CHD,
    },
    Reference {
        name: "hd",
        increase: RENO,
        decrease: "F/2, also at an acknowledgment with probability p·(q−lowest)/(threshold−lowest), q = RTT−base, above the threshold \
                   p·(top−base−q)/(top−base−threshold)",
        source: "Budzisz and others, IEEE Communications Letters 13(7), 2009; IEEE/ACM ToN 19(6), 2011",
        section: ("3.6", HAMILTON),
        tunables: &HD,
    },
    Reference {
        name: "compound",
        increase: "1/w per packet; once a round, from w = 38 on, diff = w·(1−base/RTT): + w^¾/8 − 1 if diff < γ, − diff otherwise, in a \
                   second window d",
        decrease: "(w−d)/2 + max(0, w/2 − (w−d)/2)",
        source: "Tan and others, IEEE INFOCOM 2006; Microsoft TR-2005-86 §3.2 and §4.3",
        section: ("3.7", "37-compound-tcp-tan-song-zhang-sridharan-2006-tr-2005-86-a-linux-port-read-cr"),
        tunables: &[
            tunable("gamma", "a number of packets from 1 to 1e6", "30", "γ at the start."),
            tunable("tuning", SWITCH, "on", "γ follows what waited in the queue at a loss, from 5 to 30."),
        ],
    },
    Reference {
        name: "ewtcp",
        increase: "1/(w·√n) per packet",
        decrease: HALF,
        source: "Honda and others, PFLDNeT 2009; Wischik and others, NSDI 2011, §2.1",
        section: POINTS,
        tunables: &[],
    },
    Reference {
        name: "coupled",
        increase: "1/Σw per packet",
        decrease: "(w − Σw/2)·F/w, at least 1",
        source: "Kelly and Voice, ACM CCR 35(2), 2005; Wischik and others, NSDI 2011, §2.2",
        section: POINTS,
        tunables: &[],
    },
    Reference {
        name: "semicoupled",
        increase: "1/Σw per packet",
        decrease: HALF,
        source: "Wischik and others, NSDI 2011, §2.3",
        section: POINTS,
        tunables: &[],
    },
];

const POINTS: (&str, &str) = ("4.9", "49-reference-points");
const HAMILTON: &str =
    "36-delay-based-aimd-hamilton-hd-budzisz-stanojević-shorten-baker-2009-ton-2011-freebsd-cc_hdc-c";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::WindowRule as _;
    use crate::tunable::BadTunable;

    #[test]
    fn every_rule_is_in_the_reference() {
        let names: Vec<&str> = REFERENCE.iter().map(|reference| reference.name).collect();
        assert_eq!(names, Rule::NAMES);
    }

    /// The rule's own errors say which tunables it has, and what their values are.
    #[test]
    fn the_reference_has_the_tunables_that_the_rules_have() {
        for reference in REFERENCE {
            let rule: Rule = reference.name.parse().unwrap();
            let told: Vec<&str> = reference.tunables.iter().map(|tunable| tunable.name).collect();
            let Err(BadTunable::Unknown { known }) = rule.clone().tune("no such", "") else {
                panic!("{}", reference.name)
            };
            // A layer tells of its own only.
            assert_eq!(&told[..known.len()], known, "{}", reference.name);
            for tunable in reference.tunables {
                let error = rule.clone().tune(tunable.name, "no such").unwrap_err();
                assert_eq!(
                    error,
                    BadTunable::Value { expected: tunable.values },
                    "{} {}",
                    reference.name,
                    tunable.name
                );
                let mut set = rule.clone();
                if !tunable.default.is_empty() {
                    set.tune(tunable.name, tunable.default).unwrap();
                }
                assert_eq!(format!("{set:?}"), format!("{rule:?}"), "the default of {}", tunable.name);
            }
        }
    }
}
