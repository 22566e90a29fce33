//! Reading a table key by key: what is missing, unknown or of the wrong kind is told with its place.

use std::fmt::Display;

use crate::toml::{Entry, Node, Place, Table, Value};
use crate::units::{self, Wrong};
use crate::{Diagnostic, alternatives, did_you_mean, nearest};
use clock::{Duration, Instant};

/// What was read, and where it stands, for what is only seen later.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// What was read.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

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

    /// As [`Reader::new`], where the table may have no keys but `known` ones.
    ///
    /// # Errors
    /// When it is no table, or has another key: a misspelt one would otherwise do nothing, or be told as a missing one.
    pub fn strict(
        what: &'static str,
        node: &'a Node,
        known: impl Iterator<Item = &'static str> + Clone,
    ) -> Result<Self, Diagnostic> {
        let reader = Self::new(what, node).map_err(|error| error.with_help(keys(known.clone())))?;
        match reader.table.entries.iter().find(|entry| known.clone().all(|key| key != entry.key)) {
            Some(entry) => Err(unknown(entry, what, known)),
            None => Ok(reader),
        }
    }

    /// Where the table stands.
    pub fn place(&self) -> &'a Place {
        self.place
    }

    /// The entry of `key`, if it is there.
    pub fn optional(&self, key: &str) -> Option<&'a Entry> {
        self.table.get(key)
    }

    /// The entry of `key`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn required(&self, key: &str, example: &str) -> Result<&'a Entry, Diagnostic> {
        self.optional(key).ok_or_else(|| {
            self.place.error(format!("{} needs `{key}`", self.what), Some(format!("for example {example}")))
        })
    }

    /// What `read` makes of the value of `key`, if it is there.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a Node) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.optional(key).map(|entry| read(&entry.node)).transpose()
    }

    /// What `read` makes of the value of `key`.
    ///
    /// # Errors
    /// When it is not there, and those of `read`.
    pub fn need<T>(
        &self,
        key: &str,
        example: &str,
        read: impl FnOnce(&'a Node) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        read(&self.required(key, example)?.node)
    }

    /// The elements of a list of tables; none when the key is not there.
    ///
    /// # Errors
    /// When the value is no list.
    pub fn tables(&self, key: &str) -> Result<&'a [Node], Diagnostic> {
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

/// The error of a key that the table called `what` does not know.
pub fn unknown(entry: &Entry, what: &str, known: impl Iterator<Item = &'static str> + Clone) -> Diagnostic {
    let near = nearest(&entry.key, known.clone()).map(|key| format!("did you mean `{key}`?"));
    let help = near.unwrap_or_else(|| keys(known));
    entry.key_place.error(format!("{what} has no key `{}`", entry.key), Some(help))
}

fn keys(known: impl Iterator<Item = &'static str>) -> String {
    format!("its keys are {}", known.collect::<Vec<_>>().join(", "))
}

/// As `read`, and remembers where the value stands.
pub fn at<'a, T>(
    read: impl FnOnce(&'a Node) -> Result<T, Diagnostic>,
) -> impl FnOnce(&'a Node) -> Result<At<T>, Diagnostic> {
    |node| Ok(At { value: read(node)?, place: node.place.clone() })
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

/// What `parse` makes of a string; it says in a sentence what is wrong.
///
/// # Errors
/// That sentence, or when the value is anything else.
pub fn parsed<T>(node: &Node, example: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, Diagnostic> {
    parse(text(node, example)?).map_err(|wrong| node.place.error(wrong, Some(format!("for example {example}"))))
}

/// The elements of a list.
///
/// # Errors
/// When the value is anything else.
pub fn list<'a>(node: &'a Node, example: &str) -> Result<&'a [Node], Diagnostic> {
    match &node.value {
        Value::Array(nodes) => Ok(nodes),
        other => Err(expected("a list", other, node, example)),
    }
}

/// True or false.
///
/// # Errors
/// When the value is anything else.
pub fn boolean(node: &Node) -> Result<bool, Diagnostic> {
    match &node.value {
        Value::Boolean(value) => Ok(*value),
        other => Err(expected("true or false", other, node, "true, without quotation marks")),
    }
}

/// A whole number in a range.
///
/// # Errors
/// When the value is anything else.
pub fn whole<T: Copy + Display + PartialOrd + TryFrom<i64>>(node: &Node, low: T, high: T) -> Result<T, Diagnostic> {
    let help = || Some(format!("a whole number from {low} to {high}"));
    let Value::Integer(number) = &node.value else {
        return Err(node.place.error(format!("a whole number is needed here, not {}", node.value.kind()), help()));
    };
    match T::try_from(*number).ok() {
        Some(value) if (low..=high).contains(&value) => Ok(value),
        value => {
            let is_small = value.map_or(*number < 0, |value| value < low);
            let wrong = if is_small { "small" } else { "large" };
            Err(node.place.error(format!("{number} is too {wrong}"), help()))
        }
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

/// A rate in bit/s.
///
/// # Errors
/// When the value is anything else.
pub fn rate(node: &Node) -> Result<u64, Diagnostic> {
    quantity(node, "a rate", &format!("\"8Mbit/s\", with {}", units::names(&units::RATES)), units::rate)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_told_whether_it_is_too_small_or_too_large_for_its_type_too() {
        let read = |number: i64| {
            let file = crate::toml::parse("a.toml", &format!("x = {number}")).unwrap();
            Reader::new("a table", &file).unwrap().need("x", "x = 7", |node| whole(node, 1, 200_u8))
        };
        assert_eq!((read(1), read(200)), (Ok(1), Ok(200)));
        for (number, wrong) in [(-1, "small"), (i64::MIN, "small"), (0, "small"), (201, "large"), (256, "large")] {
            assert_eq!(read(number).unwrap_err().message(), format!("{number} is too {wrong}"));
        }
    }

    #[test]
    fn a_misspelt_key_is_told_before_a_missing_one_and_a_value_remembers_its_place() {
        let file = crate::toml::parse("a.toml", "rat = \"8Mbit/s\"").unwrap();
        let error = Reader::strict("a link", &file, ["rate", "delay"].into_iter()).err().unwrap();
        assert_eq!((error.message(), error.help()), ("a link has no key `rat`", Some("did you mean `rate`?")));
        let link = Reader::strict("a link", &file, ["rat"].into_iter()).unwrap();
        let At { value, place } = link.need("rat", "", at(rate)).unwrap();
        assert_eq!((value, place.error("", None).column()), (8_000_000, 7));
        assert_eq!(link.need("rate", "rate = \"1bit/s\"", rate).unwrap_err().message(), "a link needs `rate`");
    }
}
