//! Quantities, within the bounds that the configuration has.

use std::ops::RangeInclusive;

use clock::Duration;
use text::toml::Node;
use text::{Diagnostic, reader};

/// Bits per second; at most a terabit, which is beyond every link.
pub(super) fn rate(node: &Node) -> Result<u64, Diagnostic> {
    within(node, reader::rate(node)?, 1..=1_000_000_000_000, "a rate is between 1bit/s and 1Tbit/s")
}

/// How long a packet is on its way.
pub(super) fn delay(node: &Node) -> Result<Duration, Diagnostic> {
    let bounds = Duration::ZERO..=Duration::from_secs(3600);
    within(node, reader::time(node)?, bounds, "a delay is one way, and between 0s and 1h")
}

/// How long keys are used. A renewal that came to nothing is tried again after 20 s at the earliest; more often than that
/// nobody is helped.
pub(super) fn lifetime(node: &Node) -> Result<Duration, Diagnostic> {
    let bounds = Duration::from_secs(10)..=Duration::from_secs(604_800);
    within(node, reader::time(node)?, bounds, "keys are renewed every 10s to 168h, as in rekey = \"1h\"")
}

/// How long a guest may be silent.
pub(super) fn idle(node: &Node) -> Result<Duration, Diagnostic> {
    let bounds = Duration::from_secs(10)..=Duration::from_secs(604_800);
    within(node, reader::time(node)?, bounds, "a guest may be silent for 10s to 168h, as in idle = \"10min\"")
}

fn within<T: PartialOrd>(node: &Node, value: T, bounds: RangeInclusive<T>, help: &str) -> Result<T, Diagnostic> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    let wrong = if value < *bounds.start() { "small" } else { "large" };
    Err(node.place.error(format!("{} is too {wrong}", reader::shown(node)), Some(help.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_within_themselves() {
        let is_right = |text: &str, is_right: fn(&Node) -> bool| {
            let file = text::toml::parse("a.toml", &format!("x = {text:?}")).expect("TOML");
            reader::Reader::new("a table", &file).expect("a table").read("x", |node| Ok(is_right(node)))
        };
        for (text, right) in [("1bit/s", true), ("1Tbit/s", true), ("0Mbit/s", false), ("1000.1Gbit/s", false)] {
            assert_eq!(is_right(text, |node| rate(node).is_ok()), Ok(Some(right)), "{text}");
        }
        for (text, right) in [("0s", true), ("1h", true), ("61min", false), ("-1ms", false)] {
            assert_eq!(is_right(text, |node| delay(node).is_ok()), Ok(Some(right)), "{text}");
        }
        for (text, right) in [("10s", true), ("168h", true), ("9.9s", false), ("169h", false)] {
            assert_eq!(is_right(text, |node| lifetime(node).is_ok()), Ok(Some(right)), "{text}");
        }
    }
}
