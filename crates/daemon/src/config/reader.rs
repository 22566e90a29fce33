//! Reads a TOML table key by key and remembers where everything stands, so that each error points at its line and column.

use std::ops::Range;
use std::str::FromStr;

use diagnostic::Diagnostic;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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
    pub(super) fn table<'a>(&'a self, known: &'static [&'static str]) -> Result<Section<'a>, Diagnostic> {
        let root = DeTable::parse(&self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            Diagnostic::new(&self.name, &self.text, span, error.message().trim().to_owned(), None)
        })?;
        // What is missing from the file itself is missing at its start.
        Section::new(self, 0..0, root.into_inner(), "the file", known)
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
    table: DeTable<'a>,
    what: &'static str,
}

impl<'a> Section<'a> {
    fn new(
        source: &'a Source,
        span: Range<usize>,
        table: DeTable<'a>,
        what: &'static str,
        known: &'static [&'static str],
    ) -> Result<Self, Diagnostic> {
        // Unknown keys first: a misspelt key would otherwise be told as a missing one.
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                return Err(source.error(&key.span(), format!("{what} has no key `{name}`"), suggestion(name, known)));
            }
        }
        Ok(Self { source, span, table, what })
    }

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
        let span = value.span();
        value.into_inner().as_bool().map(Some).ok_or_else(|| {
            self.source.error(
                &span,
                format!("`{key}` is not true or false"),
                format!("write {key} = true or {key} = false"),
            )
        })
    }

    /// A whole number at `key` that `T` can hold.
    pub(super) fn number<T: FromStr>(&mut self, key: &str, help: &str) -> Result<Option<At<T>>, Diagnostic> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let span = value.span();
        let parsed = match value.get_ref() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            _ => None,
        };
        let value = parsed.ok_or_else(|| self.source.error(&span, format!("`{key}` is no such number"), help))?;
        Ok(Some(At { value, span }))
    }

    /// A list at `key`; each item comes with its place.
    pub(super) fn list(&mut self, key: &str, help: &str) -> Result<Option<At<Vec<Item<'a>>>>, Diagnostic> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let span = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            return Err(self.source.error(&span, format!("`{key}` is not a list"), help));
        };
        let items = items.into_iter().map(|value| Item { source: self.source, value }).collect();
        Ok(Some(At { value: items, span }))
    }

    /// The table at `key`, such as `[esp]`.
    pub(super) fn section(
        &mut self,
        key: &str,
        what: &'static str,
        known: &'static [&'static str],
    ) -> Result<Option<Section<'a>>, Diagnostic> {
        self.take(key).map(|value| section(self.source, value, what, known)).transpose()
    }

    /// The tables at `key`, such as several `[[path]]`.
    pub(super) fn sections(
        &mut self,
        key: &'static str,
        what: &'static str,
        known: &'static [&'static str],
    ) -> Result<Vec<Section<'a>>, Diagnostic> {
        let help = format!("each begins with a line [[{key}]], with two brackets");
        let items = self.list(key, &help)?.map(|list| list.value).unwrap_or_default();
        items.into_iter().map(|item| section(self.source, item.value, what, known)).collect()
    }

    fn take(&mut self, key: &str) -> Option<Spanned<DeValue<'a>>> {
        self.table.remove(key)
    }

    fn as_text(&self, key: &str, value: Spanned<DeValue<'a>>) -> Result<At<String>, Diagnostic> {
        let span = value.span();
        match value.get_ref().as_str() {
            Some(text) => Ok(At { value: text.to_owned(), span }),
            None => Err(self.source.error(&span, format!("`{key}` is not a text"), "put it in quotation marks")),
        }
    }
}

/// An item of a list: a text or a table.
pub(super) struct Item<'a> {
    source: &'a Source,
    value: Spanned<DeValue<'a>>,
}

impl<'a> Item<'a> {
    /// Where it stands.
    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// The item's text, if it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        self.value.get_ref().as_str()
    }

    /// The item as a table.
    pub(super) fn section(self, what: &'static str, known: &'static [&'static str]) -> Result<Section<'a>, Diagnostic> {
        section(self.source, self.value, what, known)
    }
}

fn section<'a>(
    source: &'a Source,
    value: Spanned<DeValue<'a>>,
    what: &'static str,
    known: &'static [&'static str],
) -> Result<Section<'a>, Diagnostic> {
    let span = value.span();
    match value.into_inner() {
        DeValue::Table(table) => Section::new(source, span, table, what, known),
        other => Err(source.error(
            &span,
            format!("{what} is a table, not a {}", other.type_str()),
            format!("its keys are {}", listed(known)),
        )),
    }
}

/// The nearest known key, or all of them.
fn suggestion(name: &str, known: &[&str]) -> String {
    match diagnostic::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys here are {}", listed(known)),
    }
}

fn listed(known: &[&str]) -> String {
    known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}
