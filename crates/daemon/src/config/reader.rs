//! Reads a TOML table key by key and remembers where everything stands, so that each error points at its line and column.

use std::ops::Range;

use text::Diagnostic;
use text::toml::{Node, Table, Value};

use super::keys;

/// A configuration file's text and what to call it in messages.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
}

impl Source {
    /// An error at `span`; the help says how to put it right.
    pub(super) fn error(&self, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Diagnostic::new(&self.name, &self.text, span.clone(), message, Some(help.into()))
    }

    /// The whole file as a table.
    pub(super) fn table(&self) -> Result<Section<'_>, Diagnostic> {
        let root = text::toml::parse(&self.name, &self.text)?;
        // What is missing from the file itself is missing at its start.
        section(self, Node { place: root.place.at(0..0), ..root }, "the file")
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// One table of the file, all of whose keys are known.
pub(super) struct Section<'a> {
    source: &'a Source,
    span: Range<usize>,
    table: Table,
    what: &'static str,
}

impl<'a> Section<'a> {
    pub(super) fn source(&self) -> &'a Source {
        self.source
    }

    /// Where the table begins.
    pub(super) fn span(&self) -> &Range<usize> {
        &self.span
    }

    /// The error of a key that must be there.
    pub(super) fn missing(&self, key: &str, help: &str) -> Diagnostic {
        self.source.error(&self.span, format!("{} lacks the key `{key}`", self.what), help)
    }

    /// The text at `key`.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<At<String>>, Diagnostic> {
        self.take(key).map(|value| self.as_text(key, value)).transpose()
    }

    /// The text at `key`, which must be there.
    pub(super) fn required_text(&mut self, key: &str, help: &str) -> Result<At<String>, Diagnostic> {
        self.text(key)?.ok_or_else(|| self.missing(key, help))
    }

    /// The text at `key` as something else; `parse` says in a sentence what is wrong.
    pub(super) fn parsed<T>(
        &mut self,
        key: &str,
        help: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<At<T>>, Diagnostic> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match parse(&text.value) {
            Ok(value) => Ok(Some(At { value, span: text.span })),
            Err(message) => Err(self.source.error(&text.span, message, help)),
        }
    }

    /// True or false at `key`.
    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, Diagnostic> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.value {
            Value::Boolean(value) => Ok(Some(value)),
            _ => Err(self.source.error(
                &value.place.span,
                format!("`{key}` is not true or false"),
                format!("write {key} = true or {key} = false"),
            )),
        }
    }

    /// A whole number at `key` that `T` can hold.
    pub(super) fn number<T: TryFrom<i64>>(&mut self, key: &str, help: &str) -> Result<Option<At<T>>, Diagnostic> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let span = value.place.span;
        let parsed = match value.value {
            Value::Integer(integer) => T::try_from(integer).ok(),
            _ => None,
        };
        let value = parsed.ok_or_else(|| self.source.error(&span, format!("`{key}` is no such number"), help))?;
        Ok(Some(At { value, span }))
    }

    /// A list at `key`; each item comes with its place.
    pub(super) fn list(&mut self, key: &str, help: &str) -> Result<Option<At<Vec<Item<'a>>>>, Diagnostic> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let span = value.place.span;
        let Value::Array(items) = value.value else {
            return Err(self.source.error(&span, format!("`{key}` is not a list"), help));
        };
        let items = items.into_iter().map(|node| Item { source: self.source, node }).collect();
        Ok(Some(At { value: items, span }))
    }

    /// The table at `key`, such as `[esp]`.
    pub(super) fn section(&mut self, key: &str, what: &'static str) -> Result<Option<Section<'a>>, Diagnostic> {
        self.take(key).map(|value| section(self.source, value, what)).transpose()
    }

    /// The tables at `key`, such as several `[[path]]`.
    pub(super) fn sections(&mut self, key: &'static str, what: &'static str) -> Result<Vec<Section<'a>>, Diagnostic> {
        let help = format!("each begins with a line [[{key}]], with two brackets");
        let items = self.list(key, &help)?.map(|list| list.value).unwrap_or_default();
        items.into_iter().map(|item| section(self.source, item.node, what)).collect()
    }

    fn take(&mut self, key: &str) -> Option<Node> {
        self.table.remove(key).map(|entry| entry.node)
    }

    fn as_text(&self, key: &str, node: Node) -> Result<At<String>, Diagnostic> {
        let span = node.place.span;
        match node.value {
            Value::String(value) => Ok(At { value, span }),
            _ => Err(self.source.error(&span, format!("`{key}` is not a text"), "put it in quotation marks")),
        }
    }
}

/// An item of a list: a text or a table.
pub(super) struct Item<'a> {
    source: &'a Source,
    node: Node,
}

impl<'a> Item<'a> {
    /// Where it stands.
    pub(super) fn span(&self) -> Range<usize> {
        self.node.place.span.clone()
    }

    /// The item's text, if it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.node.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The item as a table.
    pub(super) fn section(self, what: &'static str) -> Result<Section<'a>, Diagnostic> {
        section(self.source, self.node, what)
    }
}

fn section<'a>(source: &'a Source, node: Node, what: &'static str) -> Result<Section<'a>, Diagnostic> {
    let span = node.place.span;
    let Value::Table(table) = node.value else {
        let message = format!("{what} is a table, not {}", node.value.kind());
        return Err(source.error(&span, message, format!("its keys are {}", listed(what))));
    };
    // Unknown keys first: a misspelt key would otherwise be told as a missing one.
    for entry in &table.entries {
        let name = entry.key.as_str();
        if keys::of(what).all(|key| key != name) {
            let message = format!("{what} has no key `{name}`");
            return Err(source.error(&entry.key_place.span, message, suggestion(name, what)));
        }
    }
    Ok(Section { source, span, table, what })
}

/// The nearest key of a table, or all of them.
fn suggestion(name: &str, what: &str) -> String {
    match text::nearest(name, keys::of(what)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys here are {}", listed(what)),
    }
}

fn listed(what: &str) -> String {
    keys::of(what).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}
