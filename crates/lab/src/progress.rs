//! What a person sees while a laboratory runs: a bar on a terminal, lines elsewhere. All of it on standard error; results go elsewhere.

use std::io::{IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressStyle};

/// Shows what happens.
#[derive(Debug)]
pub struct Progress {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Silent,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// Shows nothing.
    pub fn silent() -> Self {
        Self { kind: Kind::Silent }
    }

    /// A bar if standard error is a terminal, otherwise a line per step.
    pub fn on_stderr() -> Self {
        let kind = if std::io::stderr().is_terminal() { Kind::Bar(ProgressBar::hidden()) } else { Kind::Lines };
        Self { kind }
    }

    /// A step without a measure.
    pub fn say(&mut self, text: &str) {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
        if !matches!(self.kind, Kind::Silent) {
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// A transfer of `total` bytes begins.
    pub(crate) fn begin(&mut self, name: &str, total: u64) {
        match &mut self.kind {
            Kind::Silent => {}
            Kind::Lines => self.say(&format!("  {name} …")),
            Kind::Bar(bar) => {
                let style =
                    ProgressStyle::with_template("  {msg:32} {bar:30} {bytes:>10} of {total_bytes:10} {bytes_per_sec}")
                        .unwrap_or_else(|_| ProgressStyle::default_bar());
                *bar = ProgressBar::new(total).with_style(style).with_message(name.to_owned());
            }
        }
    }

    /// So many bytes have arrived.
    pub(crate) fn at(&self, bytes: u64) {
        if let Kind::Bar(bar) = &self.kind {
            bar.set_position(bytes);
        }
    }

    /// The transfer has ended.
    pub(crate) fn end(&mut self, result: &str) {
        self.say(result);
    }
}
