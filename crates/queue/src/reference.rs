//! What the reference tells of each discipline: when it drops or marks, and where that comes from.

/// A discipline in formulas. `q` is what waits, `t` the time that a packet has waited; parameters are called as in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The name in files; "drop-tail" of a queue that is only a length.
    pub name: &'static str,
    /// What it does.
    pub rule: &'static str,
    /// Paper or RFC, with the section.
    pub source: &'static str,
}

/// Drop-tail, and the others in the order of [`QueueConfig::NAMES`](crate::QueueConfig::NAMES).
pub const REFERENCE: &[Reference] = &[
    Reference {
        name: "drop-tail",
        rule: "one queue in order of arrival; what comes to a full one is dropped. The packet that is being sent does \
               not count",
        source: "ns-2 drop-tail.cc, whose queue-limit is one more",
    },
    Reference {
        name: "red",
        rule: "at arrival, avg = (1−weight)·avg + weight·q: drops or marks with p/(1 − count·p), p = probability·(avg−min)/(max−min), \
               all from max on; if gentle, p rises from probability to 1 between max and 2·max",
        source: "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd 2000",
    },
    Reference {
        name: "codel",
        rule: "at departure, once t ≥ target for an interval: drops or marks, again after interval/√count, until t < \
               target",
        source: "RFC 8289 §4 and §5",
    },
    Reference {
        name: "fq_codel",
        rule: "a queue for each flow by a hash, deficit round robin of quantum bytes, new flows first, codel in each; what does not fit is \
               taken from the longest",
        source: "RFC 8290 §4",
    },
    Reference {
        name: "pie",
        rule: "at arrival, drops or marks with a probability that every 15 ms gains 0.125·(t−target) + 1.25·(t−t_before), t in s, scaled down \
               while it is small",
        source: "RFC 8033 §4 and §5",
    },
    Reference {
        name: "dualpi2",
        rule: "p' gains alpha·(t−target) + beta·(t−t_before) per period; classic packets are dropped with p'², L4S packets marked with the \
               larger of coupling·p' and a ramp over the wait in their own queue",
        source: "RFC 9332 §2 and appendix A",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueConfig;

    #[test]
    fn every_discipline_is_in_the_reference() {
        let names: Vec<&str> = REFERENCE.iter().map(|reference| reference.name).collect();
        assert_eq!((names[0], &names[1..]), ("drop-tail", QueueConfig::NAMES));
    }
}
