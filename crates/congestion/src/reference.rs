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

pub(crate) const fn tunable(
    name: &'static str,
    values: &'static str,
    default: &'static str,
    says: &'static str,
) -> Tunable {
    Tunable { name, values, default, says }
}

pub(crate) const FRACTION: &str = "a number from 0 to 1";
pub(crate) const SECONDS: &str = "a time in seconds from 0 to 10";
pub(crate) const SWITCH: &str = "on or off";
pub(crate) const RENO: &str = "1/w per packet acknowledged";
pub(crate) const HALF: &str = "F/2";
pub(crate) const POINTS: (&str, &str) = ("4.9", "49-reference-points");

/// All rules, in the order of [`Rule::NAMES`].
pub const REFERENCE: &[Reference] = crate::rules::REFERENCE;

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
