//! What a host tells its peer about the paths on which it receives: reports, inside ESP.
//!
//! ```text
//! kind (1) | records (1) | zero (2) | record …
//! record: SPI (4) | highest (4) | delay (4) | arrival (4) | packets (4) | bytes (4) | CE (4) | RTT (4)
//!         | ranges (1) | zero (1) | length (2) | { gap (2) | length (2) } …
//! ```
//!
//! Numbers are in network byte order, times in microseconds; `packets`, `bytes` and `CE` count since the path began and
//! wrap around. Ranges go down from `highest`: so many received, then so many missing, then so many received, as in the
//! ACK frames of QUIC (RFC 9000 §19.3).

use clock::Duration;
use multipath::{RANGES, Report};
use wire::Spi;

/// The kind of message that a report is: the first byte after the ESP header.
pub(crate) const KIND: u8 = 1;
/// Most records in a report.
const RECORDS: usize = 16;
/// A report on a path, and the receiver's SPI of it.
pub(crate) type Record = (Spi, Report);

/// Appends a report to `out`; of more than sixteen records the first.
pub(crate) fn emit(records: &[Record], out: &mut Vec<u8>) {
    let records = records.get(..RECORDS).unwrap_or(records);
    out.extend_from_slice(&[KIND, records.len() as u8, 0, 0]);
    for (spi, record) in records {
        let words = [
            spi.0,
            record.highest,
            micros(record.delay),
            record.arrival,
            record.packets,
            record.bytes,
            record.ce,
            micros(record.rtt),
        ];
        words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        let start = out.len();
        out.extend_from_slice(&[0; 2]);
        let mut written = 0u8;
        let mut above = None;
        for (first, last) in record.ranges.iter().take(RANGES) {
            // 65536 packets in one range are more than any window; what is below need not be reported.
            let length = (last - first + 1).min(u32::from(u16::MAX));
            if let Some(above) = above {
                let Ok(gap) = u16::try_from(above - last - 1) else { break };
                out.extend_from_slice(&gap.to_be_bytes());
            }
            out.extend_from_slice(&(length as u16).to_be_bytes());
            written += 1;
            if length != last - first + 1 {
                break;
            }
            above = Some(*first);
        }
        if written == 0 {
            out.extend_from_slice(&[0; 2]);
        }
        if let Some(count) = out.get_mut(start) {
            *count = written;
        }
    }
}

/// Reads a report; `None` when it is none.
pub(crate) fn parse(message: &[u8]) -> Option<Vec<Record>> {
    let ([kind, count, _, _], mut rest) = message.split_first_chunk()?;
    if *kind != KIND || usize::from(*count) > RECORDS {
        return None;
    }
    let mut records = Vec::with_capacity(usize::from(*count));
    for _ in 0..*count {
        let mut word = || {
            let (word, after) = rest.split_first_chunk()?;
            rest = after;
            Some(u32::from_be_bytes(*word))
        };
        let (spi, highest, delay, arrival) = (word()?, word()?, word()?, word()?);
        let (packets, bytes, ce, rtt) = (word()?, word()?, word()?, word()?);
        let ([ranges, _, a, b], after) = rest.split_first_chunk()?;
        rest = after;
        let mut record = Report {
            highest,
            delay: Duration::from_micros(delay.into()),
            arrival,
            packets,
            bytes,
            ce,
            rtt: Duration::from_micros(rtt.into()),
            ranges: Vec::with_capacity(usize::from(*ranges).min(RANGES)),
        };
        let (mut last, mut length) = (highest, u16::from_be_bytes([*a, *b]));
        for index in 0..*ranges {
            if index > 0 {
                let ([a, b, c, d], after) = rest.split_first_chunk()?;
                rest = after;
                let gap = u32::from(u16::from_be_bytes([*a, *b]));
                let (below, _) = *record.ranges.last()?;
                // ESP numbers begin at 1 (RFC 4303 §2.2), so nothing reaches below; ranges that touch are one.
                last = below.checked_sub(1)?.checked_sub(gap).filter(|last| gap > 0 && *last > 0)?;
                length = u16::from_be_bytes([*c, *d]);
            }
            let first = last.checked_sub(u32::from(length).checked_sub(1)?).filter(|first| *first > 0)?;
            record.ranges.push((first, last));
        }
        records.push((Spi(spi), record));
    }
    rest.is_empty().then_some(records)
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos() / 1000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = Record> {
        let ranges = prop::collection::vec((1u32..1000, 1u32..1000), 0..RANGES);
        (any::<[u32; 8]>(), ranges).prop_map(|([spi, highest, delay, arrival, packets, bytes, ce, rtt], spans)| {
            // Numbers end at 2^32 - 1 (RFC 4303 §3.3.3), and that is no special one.
            let highest = if highest % 4 == 0 { u32::MAX } else { highest.max(100_000) };
            let mut last = highest;
            let ranges = spans
                .into_iter()
                .map(|(length, gap)| {
                    let range = (last - length + 1, last);
                    last = range.0 - gap - 1;
                    range
                })
                .collect();
            let [delay, rtt] = [delay, rtt].map(|us| Duration::from_micros(us.into()));
            (Spi(spi), Report { highest, delay, arrival, packets, bytes, ce, rtt, ranges })
        })
    }

    proptest! {
        #[test]
        fn parse_after_emit_is_the_identity(records in prop::collection::vec(record(), 0..RECORDS)) {
            let mut message = Vec::new();
            emit(&records, &mut message);
            prop_assert_eq!(message.len(), multipath::message_len(records.iter().map(|(_, report)| report)));
            prop_assert_eq!(parse(&message), Some(records));
        }

        #[test]
        fn whatever_is_read_is_in_order(message in prop::collection::vec(any::<u8>(), 0..200), head: bool) {
            let message = if head { [&[KIND, 1, 0, 0][..], &message].concat() } else { message };
            for (_, record) in parse(&message).unwrap_or_default() {
                prop_assert!(record.ranges.first().is_none_or(|(_, last)| *last == record.highest));
                prop_assert!(record.ranges.iter().all(|(first, last)| 0 < *first && first <= last));
                prop_assert!(record.ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
            }
        }
    }
}
