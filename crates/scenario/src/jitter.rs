//! `jitter` of a link: by how much the delay of a packet differs from the link's.

use clock::Duration;
use link::JitterConfig;
use text::Diagnostic;
use text::reader::{self, Reader};
use text::toml::{Node, Place, Value};

use crate::files::lines;
use crate::schema::Table;

const HELP: &str = "\"5ms\", { uniform = \"5ms\" }, { normal = \"5ms\" } or { file = \"delays.txt\" }";
const FILE_HELP: &str = "a delay in ms on each line, or a probability and the delay that is not exceeded with it";

/// Reads the `jitter` of a link whose delay is `delay`, and never less.
pub(crate) fn jitter(node: &Node, delay: Duration) -> Result<JitterConfig, Diagnostic> {
    match &node.value {
        Value::String(_) => Ok(JitterConfig::Uniform(at_most(node, delay)?)),
        Value::Table(_) => {
            let table = Reader::new(Table::Jitter.what(), node)?;
            let kinds = ["uniform", "normal", "file"].map(|key| table.optional(key));
            let one = || Some(HELP.to_owned());
            match kinds {
                [Some(entry), None, None] => Ok(JitterConfig::Uniform(at_most(&entry.node, delay)?)),
                [None, Some(entry), None] => Ok(JitterConfig::Normal(at_most(&entry.node, delay)?)),
                [None, None, Some(entry)] => distribution(&entry.node),
                [None, None, None] => Err(node.place.error("a jitter needs its distribution", one())),
                [first, second, file] => {
                    // What is not understood is told before what is too much.
                    for entry in [first, second].into_iter().flatten() {
                        reader::time(&entry.node)?;
                    }
                    file.map(|entry| distribution(&entry.node)).transpose()?;
                    Err(node.place.error("a jitter has one distribution", one()))
                }
            }
        }
        other => Err(reader::expected("a jitter", other, node, HELP)),
    }
}

/// A time that is no longer than the delay.
fn at_most(node: &Node, delay: Duration) -> Result<Duration, Diagnostic> {
    let jitter = reader::time(node)?;
    if jitter <= delay {
        return Ok(jitter);
    }
    let message =
        format!("a jitter of {jitter} is more than the delay of {delay}: packets would arrive before they are sent");
    Err(node.place.error(message, Some("a shorter `jitter`, or a longer `delay`".to_owned())))
}

/// Samples or quantiles, in milliseconds.
fn distribution(node: &Node) -> Result<JitterConfig, Diagnostic> {
    let text = reader::text(node, "\"delays.txt\"")?;
    let wrong = |place: &Place, message: String| Err(place.error(message, Some(FILE_HELP.to_owned())));
    let (mut samples, mut table): (Vec<Duration>, Vec<(f64, Duration)>) = (Vec::new(), Vec::new());
    for (place, line) in lines(node, text) {
        let numbers: Vec<&str> = line.split([' ', '\t', ',', ';']).filter(|number| !number.is_empty()).collect();
        let numbers: Option<Vec<f64>> = numbers.iter().map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some([.., delay]) if !(0.0..=3.6e6).contains(delay) => {
                return wrong(&place, format!("{delay} ms is no delay from 0 to an hour"));
            }
            Some([delay]) if table.is_empty() => samples.push(milliseconds(*delay)),
            Some([probability, delay]) if samples.is_empty() => {
                let delay = milliseconds(*delay);
                let (before, shorter) = table.last().copied().unwrap_or((-1.0, Duration::ZERO));
                if !(0.0..=1.0).contains(probability) || *probability <= before || delay < shorter {
                    return wrong(&place, "probabilities ascend from 0 to 1, and the delays with them".to_owned());
                }
                table.push((*probability, delay));
            }
            _ => return wrong(&place, format!("\"{line}\" is not understood here")),
        }
    }
    match (samples.is_empty(), table.is_empty()) {
        (false, _) => Ok(JitterConfig::Samples(samples.into())),
        (_, false) => Ok(JitterConfig::Quantiles(table.into())),
        _ => wrong(&node.place, "there is no delay in this file".to_owned()),
    }
}

fn milliseconds(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1e3)
}
