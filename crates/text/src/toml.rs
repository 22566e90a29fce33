//! TOML as a tree in which every key and value knows where it stands, in which file.

use std::ops::Range;
use std::sync::Arc;

use ::toml::de::{DeTable, DeValue};

use crate::Diagnostic;

/// A text and what it is called.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// What messages call it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// Somewhere in a text.
#[derive(Clone, Debug)]
pub struct Place {
    /// Which text.
    pub source: Arc<Source>,
    /// Which bytes of it.
    pub span: Range<usize>,
}

impl Place {
    /// Other bytes of the same text.
    #[must_use]
    pub fn at(&self, span: Range<usize>) -> Self {
        Self { source: Arc::clone(&self.source), span }
    }

    /// An error here; the help says what would be right.
    pub fn error(&self, message: impl Into<String>, help: Option<String>) -> Diagnostic {
        Diagnostic::new(&self.source.name, &self.source.text, self.span.clone(), message, help)
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
}

/// What TOML knows; dates have no use here and are kept as "another kind".
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    String(String),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// A date or a time of day.
    Date,
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// Keys and values in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_place: Place,
    /// The value, and where it stands.
    pub node: Node,
}

impl Table {
    /// The entry of `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// As [`Table::get`], to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    /// Takes the entry of `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// Puts an entry in the place of the one with its key, or at the end.
    pub fn put(&mut self, new: Entry) {
        match self.get_mut(&new.key) {
            Some(entry) => *entry = new,
            None => self.entries.push(new),
        }
    }

    /// The text of a string entry.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.node.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl Value {
    /// The kind of value in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Date => "a date",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Reads TOML; `name` is what to call the text in messages.
///
/// # Errors
/// Where it is not TOML.
pub fn parse(name: &str, text: &str) -> Result<Node, Diagnostic> {
    let source = Arc::new(Source { name: name.to_owned(), text: text.to_owned() });
    match DeTable::parse(text) {
        Ok(table) => {
            // What is missing from a text is missing at its start.
            let place = Place { source: Arc::clone(&source), span: 0..0 };
            Ok(Node { value: Value::Table(convert_table(table.get_ref(), &source)?), place })
        }
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            Err(Diagnostic::new(name, text, span, sentence(error.message()), None))
        }
    }
}

fn convert_table(table: &DeTable<'_>, source: &Arc<Source>) -> Result<Table, Diagnostic> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table.iter() {
        let key_place = Place { source: Arc::clone(source), span: key.span() };
        let node = convert(value.get_ref(), value.span(), source)?;
        entries.push(Entry { key: key.get_ref().to_string(), key_place, node });
    }
    // The map is sorted by name; people and merging go by the order of the file.
    entries.sort_by_key(|entry| entry.key_place.span.start);
    Ok(Table { entries })
}

fn convert(value: &DeValue<'_>, span: Range<usize>, source: &Arc<Source>) -> Result<Node, Diagnostic> {
    let place = Place { source: Arc::clone(source), span };
    let value = match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::Integer)
            .map_err(|_| place.error("this number is too large", None))?,
        DeValue::Float(number) => {
            number.as_str().parse().map(Value::Float).map_err(|_| place.error("this is not a number", None))?
        }
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(array) => {
            let nodes = array.iter().map(|value| convert(value.get_ref(), value.span(), source));
            Value::Array(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Table(convert_table(table, source)?),
    };
    Ok(Node { value, place })
}

fn sentence(message: &str) -> String {
    format!("not TOML: {}", message.lines().collect::<Vec<_>>().join(", "))
}
