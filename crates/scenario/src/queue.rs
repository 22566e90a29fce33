//! The queue of a link: what it is, and with which parameters. Its disciplines are those of [`link::QueueConfig`].

use std::sync::LazyLock;

use link::{QueueConfig, QueueSetting};
use text::{Diagnostic, alternatives};

use crate::schema::{Key, Table, Type, Variant, Variants};
use crate::spec::{Limit, QueueSpec};
use text::reader::{self, Reader};
use text::toml::{Entry, Node, Value};
use text::units::{self, Wrong};

/// The rows of queues with a discipline, made from the registry.
pub(crate) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let kinds = Type::Words(|| QueueConfig::NAMES.to_vec());
    let kind = Key::new(Table::Queue, "kind", kinds, "", "How it manages its length.");
    let mut rows = vec![kind.example("\"codel\"").everywhere()];
    let mut defaults: Vec<Vec<(String, &'static str)>> = vec![Vec::new()];
    for (kind, name) in (0..).zip(QueueConfig::NAMES) {
        let Some(mut config) = QueueConfig::named(name) else { continue };
        for key in config.keys() {
            let Some(setting) = config.setting(key.name) else { continue };
            let (value, default, example) = row(&setting);
            let at = rows.iter().position(|row| row.name == key.name).unwrap_or_else(|| {
                rows.push(Key::new(Table::Queue, key.name, value, "", key.doc).example(example));
                defaults.push(Vec::new());
                rows.len() - 1
            });
            let of = rows[at].honoured[0].or(Variants::of(Variant::Queue(kind)));
            rows[at] = rows[at].sim(of).lab(of);
            if !key.is_required {
                defaults[at].push((default, *name));
            }
        }
    }
    for (row, defaults) in rows.iter_mut().zip(&defaults) {
        row.default = in_words(defaults).leak();
    }
    rows
});

/// What a parameter takes, its default as files write it, and another value.
fn row(setting: &QueueSetting<'_>) -> (Type, String, &'static str) {
    match setting {
        QueueSetting::Time(value) => (Type::Time, format!("\"{value}\""), "\"10ms\""),
        QueueSetting::Probability(value) => (Type::Probability, value.to_string(), "0.05"),
        QueueSetting::Number(value) => (Type::Number, value.to_string(), "1.5"),
        QueueSetting::Count(value) => (Type::Whole(1, MOST.into()), value.to_string(), "300"),
        QueueSetting::Switch(value) => (Type::Boolean, value.to_string(), if **value { "false" } else { "true" }),
        QueueSetting::Average(value) => (Type::Length, format!("\"{value}p\""), "\"30p\""),
        QueueSetting::Limit(value) if **value == u32::MAX => (Type::Length, "none".to_owned(), "\"90p\""),
        QueueSetting::Limit(value) => (Type::Length, format!("\"{value}p\""), "\"90p\""),
    }
}

/// The default of a key that several kinds of queue have, with the kinds where it differs.
fn in_words(defaults: &[(String, &'static str)]) -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (default, kind) in defaults {
        match groups.iter_mut().find(|(other, _)| other == default) {
            Some((_, kinds)) => kinds.push(format!("\"{kind}\"")),
            None => groups.push((default, vec![format!("\"{kind}\"")])),
        }
    }
    match &groups[..] {
        [] => String::new(),
        [(default, _)] => (*default).to_owned(),
        _ => groups
            .iter()
            .map(|(default, kinds)| format!("{default} of {}", kinds.join(", ")))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// The most queues of flows, and bytes of a turn.
const MOST: u32 = 1 << 16;

fn help() -> String {
    let names = alternatives(QueueConfig::NAMES.iter().copied());
    format!("\"50p\", \"64kB\", \"100ms\", \"1.5bdp\", \"unlimited\", or a table whose `kind` is {names}")
}

/// Reads the `queue` of a link.
pub(crate) fn queue(node: &Node) -> Result<QueueSpec, Diagnostic> {
    match &node.value {
        Value::String(text) if text == "unlimited" => Ok(QueueSpec::Unlimited),
        Value::String(_) => limit(node).map(QueueSpec::DropTail),
        Value::Table(_) => managed(node),
        other => Err(reader::expected("a queue", other, node, &help())),
    }
}

fn limit(node: &Node) -> Result<Limit, Diagnostic> {
    reader::quantity(node, "a length of a queue", &help(), |text| {
        // What is no number of packets may be one of bytes, and so on; what is, but wrong, is told as that.
        let or = |wrong, other: Result<Limit, Wrong>| if wrong == Wrong::Form { other } else { Err(wrong) };
        let packets = units::packets(text).map(Limit::Packets);
        let bytes = |wrong| or(wrong, units::bytes(text).map(Limit::Bytes));
        let time = |wrong| or(wrong, units::time(text).map(Limit::Time));
        let bdp = |wrong| or(wrong, units::bdp(text).map(Limit::Bdp));
        packets.or_else(bytes).or_else(time).or_else(bdp)
    })
}

/// A queue with a discipline that manages its length.
fn managed(node: &Node) -> Result<QueueSpec, Diagnostic> {
    let table = Reader::new(Table::Queue.what(), node)?;
    let kind = &table.required("kind", "kind = \"codel\"")?.node;
    let names: Vec<_> = QueueConfig::NAMES.iter().map(|name| (*name, *name)).collect();
    let mut config = QueueConfig::named(reader::word(kind, &names)?).unwrap_or_default();
    let mut limits: Vec<(&'static str, Limit)> = Vec::new();
    for key in config.keys() {
        let entry = match key.is_required {
            true => Some(table.required(key.name, &format!("{} = \"30p\"", key.name))?),
            false => table.optional(key.name),
        };
        if let (Some(entry), Some(setting)) = (entry, config.setting(key.name)) {
            limits.extend(read(entry, setting)?.map(|limit| (key.name, limit)));
        }
    }
    let of = |name| limits.iter().find(|(key, _)| *key == name).map(|(_, limit)| *limit);
    for key in config.keys() {
        if let Some(upper) = key.below
            && !of(key.name).zip(of(upper)).is_some_and(|(low, high)| below(low, high))
        {
            let message = format!("the queue needs `{}` below `{upper}`, in the same unit", key.name);
            return Err(node.place.error(message, None));
        }
    }
    Ok(QueueSpec::Managed { config, limits })
}

/// Reads a parameter. A number of packets depends on rate and round trip, and is returned.
fn read(entry: &Entry, setting: QueueSetting<'_>) -> Result<Option<Limit>, Diagnostic> {
    let node = &entry.node;
    match setting {
        QueueSetting::Time(value) => {
            *value = reader::time(node)?;
            if value.is_zero() {
                return Err(node.place.error(format!("`{}` is a time above 0", entry.key), None));
            }
        }
        QueueSetting::Probability(value) => *value = reader::probability(node)?,
        QueueSetting::Number(value) => *value = number(entry)?,
        QueueSetting::Count(value) => *value = reader::whole(node, 1, MOST)?,
        QueueSetting::Switch(value) => *value = reader::boolean(node)?,
        QueueSetting::Limit(_) | QueueSetting::Average(_) => return limit(node).map(Some),
    }
    Ok(None)
}

/// A number above 0.
fn number(entry: &Entry) -> Result<f64, Diagnostic> {
    let number = match entry.node.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => f64::NAN,
    };
    if number > 0.0 && number.is_finite() {
        return Ok(number);
    }
    let message = format!("`{}` is a number above 0, not {}", entry.key, reader::shown(&entry.node));
    Err(entry.node.place.error(message, Some("for example 2".into())))
}

fn below(a: Limit, b: Limit) -> bool {
    match (a, b) {
        (Limit::Packets(a), Limit::Packets(b)) => a < b,
        (Limit::Bytes(a), Limit::Bytes(b)) => a < b,
        (Limit::Time(a), Limit::Time(b)) => a < b,
        (Limit::Bdp(a), Limit::Bdp(b)) => a < b,
        _ => false,
    }
}
