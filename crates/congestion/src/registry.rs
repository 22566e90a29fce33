//! The names of the rules. A new rule is its file, and a line in the list below.

use std::str::FromStr;

use crate::group::Group;
use crate::rule::{Backoff, Cause, Round, RoundDecision, WindowRule};
use crate::{Cubic, NewReno, Vegas};

/// One line a rule: its name in scenario files, its variant and type.
macro_rules! registry {
    ($($name:literal => $rule:ident, $about:literal;)*) => {
        /// Any rule. An enumeration rather than a trait object: the choice costs a predictable jump, and rules stay
        /// plain values inside their controllers.
        #[derive(Clone, Debug)]
        pub enum Rule {
            $(#[doc = $about] $rule($rule),)*
        }

        impl Rule {
            /// The names of all rules, as scenario files write them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The rule's name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$rule(_) => $name,)* }
            }
        }

        impl FromStr for Rule {
            type Err = UnknownRule;

            fn from_str(name: &str) -> Result<Self, UnknownRule> {
                match name {
                    $($name => Ok(Self::$rule($rule::default())),)*
                    _ => Err(UnknownRule { name: name.to_owned() }),
                }
            }
        }

        impl WindowRule for Rule {
            fn path_added(&mut self, path: usize) {
                match self { $(Self::$rule(rule) => rule.path_added(path),)* }
            }
            fn slow_start(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
                match self { $(Self::$rule(rule) => rule.slow_start(path, group, acked),)* }
            }
            fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
                match self { $(Self::$rule(rule) => rule.increase(path, group, acked),)* }
            }
            fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
                match self { $(Self::$rule(rule) => rule.decrease(path, group, cause),)* }
            }
            fn on_round(&mut self, path: usize, group: Group<'_>, round: &Round) -> RoundDecision {
                match self { $(Self::$rule(rule) => rule.on_round(path, group, round),)* }
            }
            fn limited(&mut self, path: usize, group: Group<'_>) {
                match self { $(Self::$rule(rule) => rule.limited(path, group),)* }
            }
            fn undone(&mut self, path: usize, group: Group<'_>) {
                match self { $(Self::$rule(rule) => rule.undone(path, group),)* }
            }
        }
    };
}

registry! {
    "newreno" => NewReno, "RFC 5681: one packet more a round trip, half after a loss.";
    "cubic" => Cubic, "RFC 9438: a cubic function of time.";
    "vegas" => Vegas, "Brakmo and Peterson 1995: by the round-trip time.";
}

/// A name that no rule has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no congestion control is called {name:?}; there are {}", Rule::NAMES.join(", "))]
pub struct UnknownRule {
    /// The name asked for.
    pub name: String,
}
