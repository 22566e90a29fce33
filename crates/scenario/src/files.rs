//! Files that a scenario names: their text takes the place of the name when the scenario is loaded, so that a document says
//! all that it depends on, and what is wrong with a line is told with file and line.

use std::sync::Arc;

use text::Diagnostic;
use text::toml::{Node, Place, Source, Value};

use crate::document::ReadBase;

/// Keys whose value names a file, at the end of a dotted key too.
const KEYS: [&str; 2] = ["file", "trace"];

/// Reads what the keys in `node` name.
pub(crate) fn inline(node: &mut Node, read: &mut ReadBase<'_>) -> Result<(), Diagnostic> {
    match &mut node.value {
        Value::Table(table) => {
            for entry in &mut table.entries {
                inline_at(&entry.key, &mut entry.node, read)?;
            }
            Ok(())
        }
        Value::Array(nodes) => nodes.iter_mut().try_for_each(|node| inline(node, read)),
        _ => Ok(()),
    }
}

/// As [`inline`], for the value of a key.
pub(crate) fn inline_at(key: &str, node: &mut Node, read: &mut ReadBase<'_>) -> Result<(), Diagnostic> {
    let names_file = key.rsplit('.').next().is_some_and(|last| KEYS.contains(&last));
    match &mut node.value {
        Value::String(name) if names_file && !is_text(name) => {
            let (name, mut text) = read(name, &node.place.source.name)
                .map_err(|why| node.place.error(format!("cannot read \"{name}\": {why}"), None))?;
            if !is_text(&text) {
                text.push('\n');
            }
            node.place = Place { span: 0..text.len(), source: Arc::new(Source { name, text: text.clone() }) };
            node.value = Value::String(text);
            Ok(())
        }
        // Values of a sweep.
        Value::Array(nodes) if names_file => nodes.iter_mut().try_for_each(|node| inline_at(key, node, read)),
        _ => inline(node, read),
    }
}

/// A text that was read has the end of a line, a name has none.
fn is_text(text: &str) -> bool {
    text.contains('\n')
}

/// The lines of a file of numbers, each with its place; without comments, which begin with `#`, and empty ones.
pub(crate) fn lines<'a>(node: &'a Node, text: &'a str) -> impl Iterator<Item = (Place, &'a str)> {
    // A document that was written anew has the text in a string, where lines have no place of their own.
    let is_file = node.place.source.text == text;
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let span = start..start + line.trim_end().len();
        start += line.len();
        let numbers = line.split('#').next().unwrap_or_default().trim();
        let place = if is_file { node.place.at(span) } else { node.place.clone() };
        (!numbers.is_empty()).then_some((place, numbers))
    })
}
