//! Quantities as people write them: "8Mbit/s", "30ms", "64kB", "50p".

use clock::Duration;

/// A number and its unit: "1.5bdp" is (1.5, "bdp"). `None` for anything that does not begin with a plain decimal
/// number; a minus sign is read so that it can be refused with the right words.
pub fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.replace('_', "").parse().ok()?;
    Some((number, unit.trim_start()))
}

/// Why a quantity was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// No number, no unit, or an unknown one.
    Form,
    /// Below zero.
    Negative,
    /// Beyond what can be counted.
    TooLarge,
}

/// A unit: what it is called, and how much one is.
pub type Unit = (&'static str, f64);

/// Units of rates, in bits per second.
pub const RATES: [Unit; 10] = [
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("Tbit/s", 1e12),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("Tbps", 1e12),
];

/// Units of time, in nanoseconds.
pub const TIMES: [Unit; 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
];

/// Units of amounts of data, in bytes.
pub const SIZES: [Unit; 8] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1024.0 * 1024.0),
    ("GiB", 1024.0 * 1024.0 * 1024.0),
];

/// The names of units for people: "ns, us, ms, s, min or h", without other spellings of the same.
pub fn names(units: &[Unit]) -> String {
    let first = |at: usize| units.iter().position(|(_, worth)| *worth == units[at].1) == Some(at);
    crate::alternatives((0..units.len()).filter(|at| first(*at)).map(|at| units[at].0))
}

/// The names of units, all spellings.
pub fn spellings(units: &[Unit]) -> Vec<&'static str> {
    units.iter().map(|(name, _)| *name).collect()
}

/// A regular expression (ECMA-262, as JSON schemas have them) of what [`split`] reads with one of these units.
pub fn pattern(units: &[&str]) -> String {
    format!("^ *[0-9][0-9_]*(\\.[0-9_]*)? *({}) *$", units.join("|"))
}

/// Bits per second from "8Mbit/s".
///
/// # Errors
/// What is wrong with any other text.
pub fn rate(text: &str) -> Result<u64, Wrong> {
    quantity(text, &RATES)
}

/// A time from "30ms".
///
/// # Errors
/// What is wrong with any other text.
pub fn time(text: &str) -> Result<Duration, Wrong> {
    quantity(text, &TIMES).map(Duration::from_nanos)
}

/// Bytes from "64kB".
///
/// # Errors
/// What is wrong with any other text.
pub fn bytes(text: &str) -> Result<u64, Wrong> {
    quantity(text, &SIZES)
}

/// A number and one of the units.
fn quantity(text: &str, units: &[Unit]) -> Result<u64, Wrong> {
    let (number, unit) = split(text).ok_or(Wrong::Form)?;
    let (_, worth) = units.iter().find(|(name, _)| *name == unit).ok_or(Wrong::Form)?;
    whole(number * worth)
}

/// Packets from "50p".
///
/// # Errors
/// What is wrong with any other text.
pub fn packets(text: &str) -> Result<u32, Wrong> {
    match split(text) {
        Some((number, "p" | "packets")) => u32::try_from(whole(number)?)
            .map_err(|_| Wrong::TooLarge)
            .and_then(|packets| if number.fract() == 0.0 { Ok(packets) } else { Err(Wrong::Form) }),
        _ => Err(Wrong::Form),
    }
}

/// A plain number with the unit "bdp".
///
/// # Errors
/// What is wrong with any other text.
pub fn bdp(text: &str) -> Result<f64, Wrong> {
    match split(text) {
        Some((number, "bdp" | "BDP")) if number < 0.0 => Err(Wrong::Negative),
        Some((number, "bdp" | "BDP")) if number <= 1e6 => Ok(number),
        Some((_, "bdp" | "BDP")) => Err(Wrong::TooLarge),
        _ => Err(Wrong::Form),
    }
}

fn whole(number: f64) -> Result<u64, Wrong> {
    if number < 0.0 {
        Err(Wrong::Negative)
    } else if number < 9.2e18 {
        Ok(number.round() as u64)
    } else {
        Err(Wrong::TooLarge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_as_people_write_them() {
        assert_eq!(rate("8Mbit/s"), Ok(8_000_000));
        assert_eq!(rate("1.5 Gbit/s"), Ok(1_500_000_000));
        assert_eq!(rate("8MB"), Err(Wrong::Form));
        assert_eq!(time("0.1s"), Ok(Duration::from_millis(100)));
        assert_eq!(time("-1ms"), Err(Wrong::Negative));
        assert_eq!(time("3"), Err(Wrong::Form));
        assert_eq!(bytes("64kB"), Ok(64_000));
        assert_eq!(bytes("1KiB"), Ok(1024));
        assert_eq!(packets("50p"), Ok(50));
        assert_eq!(packets("1.5p"), Err(Wrong::Form));
        assert_eq!(bdp("1.5bdp"), Ok(1.5));
        assert_eq!((rate("1Tbit/s"), rate("8Mbps")), (Ok(1_000_000_000_000), Ok(8_000_000)));
        assert_eq!((time("1h"), time("1.5 min")), (Ok(Duration::from_secs(3600)), Ok(Duration::from_secs(90))));
        assert_eq!(names(&TIMES), "ns, us, ms, s, min or h");
        assert_eq!(rate("99999999999999Gbit/s"), Err(Wrong::TooLarge));
        assert_eq!((rate(" 0.5Mbit/s "), rate("2.5 Gbit/s")), (Ok(500_000), Ok(2_500_000_000)));
        for text in ["", "8", "Mbit/s", "8MBit/s", "8Mbit", "1.2.3Mbit/s", "8M bit/s", "1e9bit/s", "NaNbit/s"] {
            assert_eq!(rate(text), Err(Wrong::Form), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            let _ = (rate(&text), time(&text), bytes(&text), packets(&text), bdp(&text));
        }

        #[test]
        fn whole_milliseconds_are_exact(millis in 0u64..10_000_000) {
            prop_assert_eq!(time(&format!("{millis}ms")), Ok(Duration::from_millis(millis)));
            prop_assert_eq!(time(&format!("{}.{:03}s", millis / 1000, millis % 1000)), Ok(Duration::from_millis(millis)));
        }
    }
}
