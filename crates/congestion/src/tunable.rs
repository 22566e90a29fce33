//! Tunables of rules, as text: `daimd:high=0.9,low=0.3`.

use std::str::FromStr;

/// Why a tunable could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTunable {
    /// The rule has no tunable of that name.
    #[error("there is no such tunable; {}", listed(.known))]
    Unknown {
        /// Those it has.
        known: &'static [&'static str],
    },
    /// The value is not one of the tunable's.
    #[error("its value must be {expected}")]
    Value {
        /// What would be right.
        expected: &'static str,
    },
}

fn listed(known: &[&str]) -> String {
    if known.is_empty() { "this rule has none".to_owned() } else { format!("there are {}", known.join(", ")) }
}

/// A number from `low` to `high`.
pub(crate) fn number(value: &str, low: f64, high: f64, expected: &'static str) -> Result<f64, BadTunable> {
    match f64::from_str(value) {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(BadTunable::Value { expected }),
    }
}

/// One of several words.
pub(crate) fn word<T: Copy>(value: &str, words: &[(&str, T)], expected: &'static str) -> Result<T, BadTunable> {
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|(_, meaning)| *meaning).ok_or(BadTunable::Value { expected })
}

/// `on` or `off`.
pub(crate) fn switch(value: &str) -> Result<bool, BadTunable> {
    word(value, &[("on", true), ("off", false)], "on or off")
}
