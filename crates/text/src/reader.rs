//! Reading a table key by key: what is missing, unknown or of the wrong kind is told with its place.

use crate::toml::{Entry, Node, Place, Table, Value};
use crate::units::{self, Wrong};
use crate::{Diagnostic, alternatives, did_you_mean};
use clock::{Duration, Instant};

/// A table being read.
pub struct Reader<'a> {
    what: &'static str,
    place: &'a Place,
    table: &'a Table,
}

impl<'a> Reader<'a> {
    /// Reads `node` as a table that is called `what` in messages: "a link".
    ///
    /// # Errors
    /// When it is no table.
    pub fn new(what: &'static str, node: &'a Node) -> Result<Self, Diagnostic> {
        match &node.value {
            Value::Table(table) => Ok(Self { what, place: &node.place, table }),
            other => Err(node.place.error(format!("{what} is a table, not {}", other.kind()), None)),
        }
    }

    /// Where the table stands.
    pub fn place(&self) -> &'a Place {
        self.place
    }

    /// The entry of `key`, if it is there.
    pub fn optional(&mut self, key: &'static str) -> Option<&'a Entry> {
        self.table.get(key)
    }

    /// The entry of `key`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn required(&mut self, key: &'static str, example: &str) -> Result<&'a Entry, Diagnostic> {
        let (place, what) = (self.place, self.what);
        self.optional(key)
            .ok_or_else(|| place.error(format!("{what} needs `{key}`"), Some(format!("for example {example}"))))
    }

    /// The elements of a list of tables; none when the key is not there.
    ///
    /// # Errors
    /// When the value is no list.
    pub fn tables(&mut self, key: &'static str) -> Result<&'a [Node], Diagnostic> {
        match self.optional(key).map(|entry| &entry.node) {
            None => Ok(&[]),
            Some(Node { value: Value::Array(nodes), .. }) => Ok(nodes),
            Some(node) => Err(node.place.error(
                format!("`{key}` is a list of tables, not {}", node.value.kind()),
                Some(format!("write [[{key}]] with two brackets")),
            )),
        }
    }
}

/// The text of a string.
///
/// # Errors
/// When the value is anything else.
pub fn text<'a>(node: &'a Node, example: &str) -> Result<&'a str, Diagnostic> {
    match &node.value {
        Value::String(text) => Ok(text),
        other => Err(expected("a string", other, node, example)),
    }
}

/// True or false.
///
/// # Errors
/// When the value is anything else.
pub fn boolean(node: &Node) -> Result<bool, Diagnostic> {
    match &node.value {
        Value::Boolean(value) => Ok(*value),
        other => Err(expected("true or false", other, node, "true")),
    }
}

/// A whole number in a range.
///
/// # Errors
/// When the value is anything else.
pub fn whole(node: &Node, low: u64, high: u64) -> Result<u64, Diagnostic> {
    let help = || Some(format!("a whole number from {low} to {high}"));
    match &node.value {
        Value::Integer(number) => match u64::try_from(*number) {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            Ok(number) if number > high => Err(node.place.error(format!("{number} is too many"), help())),
            _ => Err(node.place.error(format!("{number} is too few"), help())),
        },
        other => Err(node.place.error(format!("a whole number is needed here, not {}", other.kind()), help())),
    }
}

/// A share from 0 to 1, as a number or in per cent.
///
/// # Errors
/// When the value is anything else.
pub fn probability(node: &Node) -> Result<f64, Diagnostic> {
    let value = match &node.value {
        Value::Float(number) => Some(*number),
        Value::Integer(number) => Some(*number as f64),
        Value::String(text) => match units::split(text) {
            Some((number, "%")) => Some(number / 100.0),
            _ => None,
        },
        _ => None,
    };
    let help = || Some("a number from 0 to 1 such as 0.01, or \"1%\"".to_owned());
    match value {
        Some(value) if (0.0..=1.0).contains(&value) => Ok(value),
        Some(value) => Err(node.place.error(format!("{value} is no probability"), help())),
        None => Err(node.place.error(format!("a probability is needed here, not {}", shown(node)), help())),
    }
}

/// A rate in bit/s, not zero.
///
/// # Errors
/// When the value is anything else.
pub fn rate(node: &Node) -> Result<u64, Diagnostic> {
    match quantity(node, "a rate", &format!("\"8Mbit/s\", with {}", units::names(&units::RATES)), units::rate)? {
        0 => Err(node.place.error(
            "a rate of zero carries nothing",
            Some("an outage is `down = true` in a [[link.change]]; a rate is at least \"1bit/s\"".to_owned()),
        )),
        rate => Ok(rate),
    }
}

/// A time.
///
/// # Errors
/// When the value is anything else.
pub fn time(node: &Node) -> Result<Duration, Diagnostic> {
    quantity(node, "a time", &format!("\"30ms\", with {}", units::names(&units::TIMES)), units::time)
}

/// A time after the start.
///
/// # Errors
/// When the value is anything else.
pub fn instant(node: &Node) -> Result<Instant, Diagnostic> {
    time(node).map(|time| Instant::ZERO + time)
}

/// A quantity written as a string with a unit.
///
/// # Errors
/// When the value is anything else.
pub fn quantity<T>(
    node: &Node,
    what: &str,
    example: &str,
    read: impl FnOnce(&str) -> Result<T, Wrong>,
) -> Result<T, Diagnostic> {
    let Value::String(written) = &node.value else {
        return Err(expected(what, &node.value, node, example));
    };
    read(written).map_err(|wrong| {
        let message = match wrong {
            Wrong::Form => format!("\"{written}\" is not {what}"),
            Wrong::Negative => format!("\"{written}\" is below zero"),
            Wrong::TooLarge => format!("\"{written}\" is more than can be counted"),
        };
        node.place.error(message, Some(format!("write it like {example}")))
    })
}

/// One of the given words.
///
/// # Errors
/// When the value is anything else.
pub fn word<T: Copy>(node: &Node, words: &[(&'static str, T)]) -> Result<T, Diagnostic> {
    let names = || words.iter().map(|(name, _)| *name);
    let written = text(node, &format!("\"{}\"", names().next().unwrap_or_default()))?;
    words.iter().find(|(name, _)| *name == written).map(|(_, value)| *value).ok_or_else(|| {
        let help = did_you_mean(written, names()).unwrap_or_else(|| format!("one of {}", alternatives(names())));
        node.place.error(format!("\"{written}\" is not known here"), Some(help))
    })
}

/// The value as it is to be shown in a message.
pub fn shown(node: &Node) -> String {
    match &node.value {
        Value::String(text) => format!("\"{text}\""),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        other => other.kind().to_owned(),
    }
}

/// "x is needed here, not y".
pub fn expected(what: &str, found: &Value, node: &Node, example: &str) -> Diagnostic {
    node.place.error(format!("{what} is needed here, not {}", found.kind()), Some(format!("for example {example}")))
}
