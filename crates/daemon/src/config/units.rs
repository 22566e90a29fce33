//! Numbers as people write them, within the bounds that the configuration has.

use std::ops::RangeInclusive;

use clock::Duration;
use text::units::{self, Unit, Wrong};

/// Bits per second from text like `8Mbit/s`; at most a terabit, which is beyond every link.
///
/// # Errors
/// A sentence that says what a rate looks like.
pub(super) fn parse_rate(text: &str) -> Result<u64, String> {
    let rate = told(text, "rate", &units::RATES, "8Mbit/s", units::rate(text))?;
    within(text, rate, 1..=1_000_000_000_000, "a rate is between 1bit/s and 1Tbit/s")
}

/// A length of time from text like `30ms`.
///
/// # Errors
/// A sentence that says what a delay looks like.
pub(super) fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = told(text, "delay", &units::TIMES, "30ms", units::time(text))?;
    within(text, delay, Duration::ZERO..=Duration::from_secs(3600), "a delay is between 0s and 1h")
}

/// How long keys are used, from text like `1h`; at most a week.
///
/// # Errors
/// A sentence that says what is possible.
pub(super) fn parse_lifetime(text: &str) -> Result<Duration, String> {
    let time = told(text, "time", &units::TIMES, "1h", units::time(text))?;
    // A renewal that came to nothing is tried again after 20 s at the earliest; more often than that nobody is helped.
    within(text, time, Duration::from_secs(10)..=Duration::from_secs(604_800), "keys are renewed every 10s to 168h")
}

/// What is wrong, in a sentence that names the units.
fn told<T>(text: &str, what: &str, units: &[Unit], example: &str, read: Result<T, Wrong>) -> Result<T, String> {
    read.map_err(|wrong| match wrong {
        Wrong::Form => {
            format!("\"{text}\" is no {what}: write a number and {}, as in \"{example}\"", units::names(units))
        }
        Wrong::Negative => format!("\"{text}\" is below zero"),
        Wrong::TooLarge => format!("\"{text}\" is more than can be counted"),
    })
}

fn within<T: PartialOrd>(text: &str, value: T, bounds: RangeInclusive<T>, sentence: &str) -> Result<T, String> {
    if bounds.contains(&value) { Ok(value) } else { Err(format!("\"{text}\": {sentence}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (text, rate) in [
            ("8Mbit/s", 8_000_000),
            ("2.5 Gbit/s", 2_500_000_000),
            ("64kbit/s", 64_000),
            ("1bit/s", 1),
            (" 0.5Mbit/s ", 500_000),
            ("1Tbit/s", 1_000_000_000_000),
            ("8Mbps", 8_000_000),
        ] {
            assert_eq!(parse_rate(text), Ok(rate), "{text}");
        }
        for text in [
            "",
            "8",
            "Mbit/s",
            "8MBit/s",
            "-8Mbit/s",
            "8Mbit",
            "0Mbit/s",
            "9999Gbit/s",
            "1.2.3Mbit/s",
            "8M bit/s",
            "1e9bit/s",
        ] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn delays() {
        for (text, delay) in [
            ("30ms", Duration::from_millis(30)),
            ("1.5 s", Duration::from_millis(1500)),
            ("250us", Duration::from_micros(250)),
            ("0s", Duration::ZERO),
            ("1h", Duration::from_secs(3600)),
            ("1min", Duration::from_secs(60)),
        ] {
            assert_eq!(parse_delay(text), Ok(delay), "{text}");
        }
        for text in ["", "30", "ms", "30 m", "-1ms", "2h", "9999s", "NaNs"] {
            assert!(parse_delay(text).is_err(), "{text}");
        }
    }
}
