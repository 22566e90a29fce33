//! Errors in a text file, for people: where, what is wrong, what would be right.
//!
//! ```text
//! demo.toml:5:8: a rate of zero carries nothing
//!   |
//! 5 | rate = "0Mbit/s"
//!   |        ^^^^^^^^^
//!   = help: write down = true in a [[link.change]] for an outage
//! ```

use std::fmt;
use std::ops::Range;

/// One error in one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    source_name: String,
    line: usize,
    column: usize,
    excerpt: String,
    marked: usize,
    message: String,
    help: Option<String>,
}

impl Diagnostic {
    /// An error at the bytes `span` of `text`, which is called `source_name`. A span outside the text, or inside a
    /// character, points at the nearest place before it.
    pub fn new(
        source_name: &str,
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Self {
        let start = boundary(text, span.start);
        let before = text.get(..start).unwrap_or_default();
        let after = text.get(start..).unwrap_or_default();
        let head = before.rsplit('\n').next().unwrap_or_default();
        let tail = after.lines().next().unwrap_or_default();
        let end = boundary(text, span.end.max(start));
        // Only what is on the first line can be underlined, and at least one column is.
        let length = end.saturating_sub(start).min(tail.len());
        Self {
            source_name: source_name.to_owned(),
            line: before.matches('\n').count() + 1,
            column: head.chars().count() + 1,
            excerpt: format!("{head}{tail}"),
            marked: tail.get(..length).map_or(1, |marked| marked.chars().count()).max(1),
            message: message.into(),
            help,
        }
    }

    /// The same with another help.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// What is wrong, in a sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What would be right.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// What the text is called.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source_name, line, column, excerpt, marked, message, help } = self;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{source_name}:{line}:{column}: {message}")?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {}", printable(excerpt))?;
        // Tabs stay tabs, so that the caret stands below its character at any tab width.
        let before: String = excerpt.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "{margin} | {before}{}", "^".repeat(*marked))?;
        if let Some(help) = help {
            write!(f, "\n{margin} = help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

/// The candidate most like `word`, when one is close enough to be meant: fewer than a third of its letters, and at
/// least one, may differ.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The help for a misspelt name: which candidate may be meant, when one is like it.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean \"{candidate}\"?"))
}

/// "a", "a or b", "a, b or c".
pub fn alternatives<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// Levenshtein's distance with neighbouring letters swapped counted once (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or(0)
}

fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Control characters of a broken file do not reach a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shows_line_column_excerpt_and_help() {
        let text = "name = \"x\"\n\n[[link]]\nrate = \"0Mbit/s\" # slow\n";
        let start = text.find("\"0M").unwrap();
        let error = Diagnostic::new("a.toml", text, start..start + 9, "a rate of zero", Some("try more".into()));
        assert_eq!(
            error.to_string(),
            "a.toml:4:8: a rate of zero\n  |\n4 | rate = \"0Mbit/s\" # slow\n  |        ^^^^^^^^^\n  = help: try more"
        );
    }

    #[test]
    fn columns_are_characters_and_a_long_span_is_underlined_on_its_first_line() {
        let text = "ä = 1\nü = [\n1]\n";
        let start = text.find('[').unwrap();
        let error = Diagnostic::new("a", text, start..text.len(), "m", None);
        assert_eq!((error.line(), error.column()), (2, 5));
        assert!(error.to_string().ends_with("\n  |     ^"));
        let end = Diagnostic::new("a", text, text.len()..text.len(), "m", None);
        assert_eq!((end.line(), end.column()), (4, 1));
    }

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let keys = ["rate", "delay", "queue", "loss"];
        assert_eq!(nearest("dealy", keys), Some("delay"));
        assert_eq!(nearest("Queue", keys), Some("queue"));
        assert_eq!(nearest("bandwidth", keys), None);
        assert_eq!(alternatives(["a", "b", "c"]), "a, b or c");
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_can_be_shown(text in "\\PC{0,20}(\n\\PC{0,20}){0,3}", a in 0usize..100, b in 0usize..100) {
            let error = Diagnostic::new("x", &text, a..b, "m", None);
            prop_assert!(error.line() <= text.matches('\n').count() + 1);
            let _ = error.to_string();
        }
    }
}
