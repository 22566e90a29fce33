//! `loss` of a link: independent, or with memory.

use link::LossConfig;
use text::Diagnostic;
use text::reader::{self, Reader};
use text::toml::{Entry, Node, Value};

use crate::schema::Table;

/// Reads the `loss` of a link.
pub(crate) fn loss(node: &Node) -> Result<LossConfig, Diagnostic> {
    if !matches!(node.value, Value::Table(_)) {
        return reader::probability(node).map(independent);
    }
    let table = Reader::new(Table::Loss.what(), node)?;
    let of_rate = ["rate", "correlation", "burst"].iter().find_map(|key| table.optional(key));
    if of_rate.is_some() {
        return by_rate(&table);
    }
    let to_bad = table.need("to_bad", "to_bad = 0.01", reader::probability)?;
    let to_good = table.need("to_good", "to_good = 0.25", reader::probability)?;
    let loss_good = table.read("loss_good", reader::probability)?.unwrap_or(0.0);
    let loss_bad = table.read("loss_bad", reader::probability)?.unwrap_or(1.0);
    Ok(LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad })
}

fn independent(p: f64) -> LossConfig {
    if p == 0.0 { LossConfig::None } else { LossConfig::Random(p) }
}

/// A chain of lost and not lost with this stationary rate: where c is the correlation of neighbours, a packet after a lost one is
/// lost with rate + c (1 − rate), another with rate (1 − c). netem's "correlation" loses fewer than its rate.
fn by_rate(table: &Reader<'_>) -> Result<LossConfig, Diagnostic> {
    let rate = table.need("rate", "rate = 0.01", reader::probability)?;
    let correlation = table.read("correlation", reader::probability)?;
    let burst = table.optional("burst").map(|entry| Ok((entry, mean_burst(entry, rate)?))).transpose()?;
    if let Some(entry) = ["to_bad", "to_good", "loss_good", "loss_bad"].iter().find_map(|key| table.optional(key)) {
        let help = "either `rate` with `correlation` or `burst`, or `to_bad` and `to_good`".to_owned();
        return Err(entry.key_place.error(format!("`rate` says what `{}` is", entry.key), Some(help)));
    }
    let correlation = match (correlation, burst) {
        (Some(_), Some((entry, _))) => {
            return Err(entry
                .key_place
                .error("`correlation` says how long bursts are", Some("leave one of the two out".into())));
        }
        (Some(1.0), None) => {
            let message = "with a correlation of 1 all packets are lost or none";
            return Err(table.place().error(message, Some("correlation = 0.9".into())));
        }
        (correlation, None) => correlation.unwrap_or(0.0),
        // 1/burst is the chance that the next one is not lost, (1 − rate)(1 − c).
        (None, Some((_, burst))) => 1.0 - 1.0 / (burst * (1.0 - rate)),
    };
    if correlation == 0.0 || rate == 0.0 || rate == 1.0 {
        return Ok(independent(rate));
    }
    let (to_bad, to_good) = (rate * (1.0 - correlation), (1.0 - rate) * (1.0 - correlation));
    Ok(LossConfig::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 })
}

/// Bursts are one packet at least, and without gaps between them more would be lost than `rate`.
fn mean_burst(entry: &Entry, rate: f64) -> Result<f64, Diagnostic> {
    let burst = match entry.node.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => f64::NAN,
    };
    let least = (rate / (1.0 - rate)).max(1.0);
    if burst.is_finite() && burst >= least {
        return Ok(burst);
    }
    let message = format!("a burst is at least {least} packets here, not {}", reader::shown(&entry.node));
    Err(entry.node.place.error(message, Some("for example burst = 4".to_owned())))
}
