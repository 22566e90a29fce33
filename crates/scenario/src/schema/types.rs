//! What values keys take: in words for people, and as JSON schema for editors.

use serde_json::{Value, json};

use super::Table;
use text::units::{RATES, SIZES, TIMES, spellings};

/// The values that a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// Any text.
    Text,
    /// True or false.
    Boolean,
    /// The one word that is not in quotation marks and means none: false.
    Off,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// From 0 to 1.
    Probability,
    /// Above 0.
    Number,
    /// Bits per second.
    Rate,
    /// A length of time, or a time after the start.
    Time,
    /// Two times, between which one is drawn in each run.
    Range,
    /// Full packets or bytes.
    Amount,
    /// The length of a queue.
    Length,
    /// Bytes of a packet.
    PacketSize,
    /// One of these words.
    Words(fn() -> Vec<&'static str>),
    /// A list of names.
    Names,
    /// A list of paths, each a list of nodes.
    Paths,
    /// One of these.
    Either(&'static [Type]),
    /// A table.
    Table(Table),
    /// A list of tables.
    Tables(Table),
    /// Keys of other tables, each with a list of values.
    Sweep,
}

/// The one word "unlimited".
pub(crate) const UNLIMITED: Type = Type::Words(|| vec!["unlimited"]);

/// The first words of pairs.
pub(crate) fn names<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(name, _)| *name).collect()
}

/// A number and one of the units.
fn quantity(units: &[&str]) -> Value {
    json!({ "type": "string", "pattern": text::units::pattern(units) })
}

impl Type {
    /// In words, with the units that are understood.
    pub fn in_words(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Off => "false".to_owned(),
            Self::Whole(low, high) if high >= i64::MAX as u64 => format!("whole number from {low}"),
            Self::Whole(low, high) => format!("whole number from {low} to {high}"),
            Self::Probability => "number from 0 to 1, or \"1%\"".to_owned(),
            Self::Number => "number above 0".to_owned(),
            Self::Rate => format!("rate: \"8Mbit/s\" ({})", text::units::names(&RATES)),
            Self::Time => format!("time: \"30ms\" ({})", text::units::names(&TIMES)),
            Self::Range => "range [\"0s\", \"1s\"], from which each run draws".to_owned(),
            Self::Amount => format!("\"100p\" (full packets) or \"10MB\" ({})", text::units::names(&SIZES)),
            Self::Length => {
                "\"50p\", \"64kB\", \"100ms\" at the link's rate, or \"1.5bdp\" (rate times round trip)".to_owned()
            }
            Self::PacketSize => "bytes from 41 to 65535: 1250 or \"1250B\"".to_owned(),
            Self::Words(words) => {
                let words: Vec<String> = words().iter().map(|word| format!("\"{word}\"")).collect();
                words.join(", ")
            }
            Self::Names => "list of names".to_owned(),
            Self::Paths => "list of paths, each a list of nodes".to_owned(),
            Self::Either(types) => {
                let types: Vec<String> = types.iter().map(|each| each.in_words()).collect();
                types.join("; or ")
            }
            Self::Table(table) => format!("table: {}", table.title()),
            Self::Tables(table) => format!("tables {}", table.title()),
            Self::Sweep => {
                "keys like \"link.a-r1.rate\" or \"flow.*.congestion\", each with a list of values".to_owned()
            }
        }
    }

    /// The tables that a value may be or have.
    pub(super) fn table(self) -> Option<Table> {
        match self {
            Self::Table(table) | Self::Tables(table) => Some(table),
            Self::Either(types) => types.iter().find_map(|each| each.table()),
            _ => None,
        }
    }

    /// As JSON schema.
    pub(super) fn json(self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Off => json!({ "const": false }),
            Self::Whole(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
            Self::Probability => {
                json!({ "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, quantity(&["%"])] })
            }
            Self::Number => json!({ "type": "number", "exclusiveMinimum": 0 }),
            Self::Rate => quantity(&spellings(&RATES)),
            Self::Time => quantity(&spellings(&TIMES)),
            Self::Range => {
                json!({ "type": "array", "items": quantity(&spellings(&TIMES)), "minItems": 2, "maxItems": 2 })
            }
            Self::Amount => quantity(&[&["p", "packets"], spellings(&SIZES).as_slice()].concat()),
            Self::Length => {
                let counts = ["p", "packets", "bdp", "BDP"];
                quantity(&[&counts[..], spellings(&SIZES).as_slice(), spellings(&TIMES).as_slice()].concat())
            }
            Self::PacketSize => {
                json!({ "anyOf": [{ "type": "integer", "minimum": 41, "maximum": 65535 }, quantity(&spellings(&SIZES))] })
            }
            Self::Words(words) => json!({ "enum": words() }),
            Self::Names => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
            Self::Paths => {
                let path = json!({ "type": "array", "items": { "type": "string" }, "minItems": 2 });
                json!({ "type": "array", "items": path, "minItems": 1 })
            }
            Self::Either(types) => json!({ "anyOf": types.iter().map(|each| each.json()).collect::<Vec<_>>() }),
            Self::Table(table) => json!({ "$ref": format!("#/$defs/{table:?}") }),
            Self::Tables(table) => json!({ "type": "array", "items": { "$ref": format!("#/$defs/{table:?}") } }),
            Self::Sweep => json!({ "$ref": "#/$defs/Sweep" }),
        }
    }
}
