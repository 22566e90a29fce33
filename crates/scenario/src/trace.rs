//! `trace` of a link: a file of Mahimahi, one time in milliseconds for each 1500 bytes that can be sent.

use clock::Duration;
use link::{Trace, TraceError};
use text::Diagnostic;
use text::reader;
use text::toml::{Node, Place};

use crate::files::lines;

/// So long without an opportunity is remarked on: the link lets everything wait.
const LONG_HOLE: Duration = Duration::from_secs(5);
const HELP: &str = "one time in whole milliseconds on each line, in ascending order: an opportunity to send 1500 bytes";

/// Reads the `trace` of a link, with what is right in it but may not be meant.
pub(crate) fn trace(node: &Node) -> Result<(Trace, Option<String>), Diagnostic> {
    let text = reader::text(node, "\"cell.trace\"")?;
    let error = |place: &Place, message: &str| Err(place.error(message, Some(HELP.to_owned())));
    let (mut times, mut places) = (Vec::new(), Vec::new());
    for (place, line) in lines(node, text) {
        match line.parse::<u32>() {
            Ok(time) => times.push(time),
            Err(_) => return error(&place, &format!("\"{line}\" is not a time in whole milliseconds")),
        }
        places.push(place);
    }
    let place = |line: usize| places.get(line).unwrap_or(&node.place);
    match Trace::new(&times) {
        Ok(trace) => {
            let (hole, line) = trace.longest_hole();
            let told =
                || place(line).error(format!("nothing can be sent for {hole} before this: what comes waits"), None);
            let remark = (hole >= LONG_HOLE).then(|| {
                let told = told();
                format!("{}:{}: {}", told.source_name(), told.line(), told.message())
            });
            Ok((trace, remark))
        }
        Err(TraceError::Empty) => error(&node.place, "this trace is empty"),
        Err(TraceError::NotAscending(line)) => {
            let before = line.checked_sub(1).and_then(|before| times.get(before)).copied().unwrap_or_default();
            let time = times.get(line).copied().unwrap_or_default();
            error(place(line), &format!("{time} comes after {before}: a trace is in ascending order"))
        }
        Err(TraceError::NoTime) => {
            error(place(times.len().saturating_sub(1)), "this trace lasts no time: all of it is at 0")
        }
    }
}
