//! Quantities as people write them: "8Mbit/s", "30ms", "64kB", "50p".

use clock::Duration;

/// A number and its unit: "1.5bdp" is (1.5, "bdp"). `None` for anything that does not begin with a plain decimal
/// number; a minus sign is read so that it can be refused with the right words.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.replace('_', "").parse().ok()?;
    Some((number, unit.trim_start()))
}

/// Why a quantity was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// No number, no unit, or an unknown one.
    Form,
    /// Below zero.
    Negative,
    /// Beyond what can be counted.
    TooLarge,
}

/// Bits per second from "8Mbit/s".
pub(crate) fn rate(text: &str) -> Result<u64, Wrong> {
    let (number, unit) = split(text).ok_or(Wrong::Form)?;
    let factor = match unit {
        "bit/s" | "bps" => 1.0,
        "kbit/s" | "kbps" => 1e3,
        "Mbit/s" | "Mbps" => 1e6,
        "Gbit/s" | "Gbps" => 1e9,
        "Tbit/s" | "Tbps" => 1e12,
        _ => return Err(Wrong::Form),
    };
    whole(number * factor)
}

/// A time from "30ms".
pub(crate) fn time(text: &str) -> Result<Duration, Wrong> {
    let (number, unit) = split(text).ok_or(Wrong::Form)?;
    let nanos = match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(Wrong::Form),
    };
    whole(number * nanos).map(Duration::from_nanos)
}

/// Bytes from "64kB".
pub(crate) fn bytes(text: &str) -> Result<u64, Wrong> {
    let (number, unit) = split(text).ok_or(Wrong::Form)?;
    let factor = match unit {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(Wrong::Form),
    };
    whole(number * factor)
}

/// Packets from "50p".
pub(crate) fn packets(text: &str) -> Result<u32, Wrong> {
    match split(text) {
        Some((number, "p" | "packets")) => u32::try_from(whole(number)?)
            .map_err(|_| Wrong::TooLarge)
            .and_then(|packets| if number.fract() == 0.0 { Ok(packets) } else { Err(Wrong::Form) }),
        _ => Err(Wrong::Form),
    }
}

/// A plain number with the unit "bdp".
pub(crate) fn bdp(text: &str) -> Result<f64, Wrong> {
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
        assert_eq!(rate("99999999999999Gbit/s"), Err(Wrong::TooLarge));
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
