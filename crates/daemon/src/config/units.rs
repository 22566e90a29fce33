//! Numbers as people write them: "8Mbit/s", "30ms".

use clock::Duration;

/// Bits per second from text like `8Mbit/s`, `2.5 Gbit/s`, `64kbit/s`, `1000bit/s`. Prefixes are decimal.
///
/// # Errors
/// A sentence that says what a rate looks like.
pub(super) fn parse_rate(text: &str) -> Result<u64, String> {
    let usual =
        || format!("\"{text}\" is no rate: write a number and bit/s, kbit/s, Mbit/s or Gbit/s, as in \"8Mbit/s\"");
    let units = [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
    let rate = quantity(text, &units).ok_or_else(usual)?.round();
    // A terabit per second is beyond every link and far inside u64.
    if (1.0..=1e12).contains(&rate) {
        Ok(rate as u64)
    } else {
        Err(format!("\"{text}\": a rate is between 1bit/s and 1000Gbit/s"))
    }
}

/// A length of time from text like `30ms`, `1.5 s`, `250us`.
///
/// # Errors
/// A sentence that says what a delay looks like.
pub(super) fn parse_delay(text: &str) -> Result<Duration, String> {
    let usual = || format!("\"{text}\" is no delay: write a number and s, ms or us, as in \"30ms\"");
    let seconds = quantity(text, &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6)]).ok_or_else(usual)?;
    if (0.0..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("\"{text}\": a delay is between 0 and 3600s"))
    }
}

/// How long keys are used, from text like `1h`, `90min`, `30 s`; at most a week.
///
/// # Errors
/// A sentence that says what is possible.
pub(super) fn parse_lifetime(text: &str) -> Result<Duration, String> {
    let usual = || format!("\"{text}\" is no time: write a number and h, min or s, as in \"1h\"");
    let seconds = quantity(text, &[("h", 3600.0), ("min", 60.0), ("s", 1.0)]).ok_or_else(usual)?;
    // A renewal that came to nothing is tried again after 20 s at the earliest; more often than that nobody is helped.
    if (10.0..=604_800.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("\"{text}\": keys are renewed every 10s to 168h"))
    }
}

/// A number and one of the units, each with what it is worth.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let (_, worth) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    Some(number.parse::<f64>().ok()? * worth)
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
        ] {
            assert_eq!(parse_delay(text), Ok(delay), "{text}");
        }
        for text in ["", "30", "ms", "30 m", "-1ms", "2h", "9999s", "NaNs"] {
            assert!(parse_delay(text).is_err(), "{text}");
        }
    }
}
