//! Labels: with one in its packets a flow may have headers in short (see [`wire::short`]).
//!
//! Who receives much of a flow assigns a label to it, and announces to the sender what that stands for:
//!
//! ```text
//! kind 7 (1) | labels (1) | zero (2) | clock (4) | label …
//! label: number (2) | protocol (1) | timestamps (1): 0 none, 1 in halves, 2 whole | source port (2) | destination port (2)
//!     | window (2) | acknowledgment number (4) | TSval (4) | TSecr (4)
//! ```
//!
//! Timestamps go in halves at first, and whole once a clock has shown to be too quick for that.
//! `clock` is the receiver's in microseconds, as in reports. The sender uses a label for [`GOOD_FOR`], and the receiver assigns it to
//! another flow only [`LIFE`] after the announcement. A network may keep an announcement for longer than that: then its clock is far
//! behind that of the newest report, and the label is not taken.

use crate::numbers::SHORTEST;
use clock::{Duration, Instant};
use multipath::FlowId;
use std::collections::BTreeMap;
use wire::ip::protocol;
use wire::short::{Acknowledges, Short, Template, Timestamps};

/// The kind of message by which labels are announced: the first byte after the ESP header.
pub(crate) const KIND: u8 = 7;
/// Labels that there are.
pub(crate) const LABELS: u16 = 1024;
/// How long a sender uses a label.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// How long a receiver assigns a label to no other flow.
const LIFE: Duration = Duration::from_secs(180);
/// A label that was announced so long before the newest report comes too late.
const LATE: Duration = Duration::from_secs(10);
/// After that long without a report, any clock is new: it goes round after 71 minutes.
const FORGET_CLOCK: Duration = Duration::from_secs(600);
/// So many whole headers of a flow, and it is assigned a label, ...
const WHOLE: u8 = 8;
/// ... so long after the one before; twice as long each time that one was not used, up to [`GOOD_FOR`].
const PAUSE: Duration = Duration::from_secs(1);
/// A clock that takes no longer for 2¹⁵ ticks is too quick for halves.
const QUICK: Duration = Duration::from_secs(10);
/// Labels in one message, at most.
const MOST: usize = 32;
/// Bytes before the labels in a message, and of each.
const HEAD: usize = 8;
const RECORD: usize = 22;

/// When a flow that comes is assigned a label.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidate {
    /// Whole headers since the last label, at most [`WHOLE`].
    whole: u8,
    pause: Duration,
    /// Not before then.
    not_before: Instant,
    /// When the packet came for which it was assigned the last one, and that packet's TSval.
    last: Option<(Instant, u32)>,
    /// Timestamps go whole.
    has_quick_clock: bool,
}

/// The labels that this host has assigned to flows that it receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assigned {
    labels: BTreeMap<u16, (Template, Instant)>,
    /// The next of those that take more bytes than the [`SHORTEST`].
    next: u16,
    /// Those that the sender has not heard of.
    unannounced: Vec<u16>,
}

/// The labels that the peer has announced, of flows that this host sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announced {
    labels: BTreeMap<FlowId, Label>,
    /// The newest of the peer's clock, and when it came.
    clock: Option<(u32, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Label {
    number: u16,
    template: Template,
    until: Instant,
}

/// The flow of a template, as its sender knows it.
fn leaving(template: &Template) -> FlowId {
    FlowId { protocol: template.protocol, local: template.source, remote: template.destination }
}

/// The flow of a template, as its receiver knows it.
pub(crate) fn arriving(template: &Template) -> FlowId {
    FlowId { protocol: template.protocol, local: template.destination, remote: template.source }
}

fn micros(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}

impl Assigned {
    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        self.labels.len() * 2 * size_of::<(u16, Template, Instant)>()
    }

    /// What a label stands for, if it was assigned.
    pub(crate) fn template(&self, number: u16) -> Option<Template> {
        self.labels.get(&number).map(|(template, _)| *template)
    }

    /// The clock has jumped, that of the sender has not: labels begin anew.
    pub(crate) fn on_clock_jump(&mut self, now: Instant) {
        self.labels.values_mut().for_each(|(_, at)| *at = now);
    }

    /// A packet of a flow came, with the header in short or not: the flow may be assigned a label.
    pub(crate) fn came(
        &mut self,
        now: Instant,
        candidate: &mut Candidate,
        is_short: bool,
        template: impl Fn() -> Option<Template>,
    ) {
        if is_short {
            (candidate.whole, candidate.pause) = (0, Duration::ZERO);
            return;
        }
        if candidate.whole < WHOLE {
            candidate.whole += 1;
            return;
        }
        if now < candidate.not_before {
            return;
        }
        let Some(mut template) = template() else { return };
        if let Timestamps::Near(value, _) = template.timestamps {
            let is_far = |before: u32| value.wrapping_sub(before) >= 1 << 15;
            let before = candidate.last.replace((now, value));
            candidate.has_quick_clock |= before.is_some_and(|(at, before)| now - at < QUICK && is_far(before));
            if candidate.has_quick_clock {
                template.timestamps = Timestamps::Whole;
            }
        }
        let is_free = |number: &u16| self.labels.get(number).is_none_or(|(_, at)| now - *at >= LIFE);
        let shortest = (0..SHORTEST).find(is_free);
        let Some(number) = shortest.or(Some(SHORTEST + self.next).filter(is_free)) else { return };
        if self.unannounced.len() >= usize::from(LABELS) {
            return;
        }
        self.labels.insert(number, (template, now));
        if shortest.is_none() {
            self.next = (self.next + 1) % (LABELS - SHORTEST);
        }
        self.unannounced.push(number);
        candidate.pause = (candidate.pause * 2).clamp(PAUSE, GOOD_FOR);
        (candidate.whole, candidate.not_before) = (0, now + candidate.pause);
    }

    /// What the sender is to hear.
    pub(crate) fn poll_message(&mut self, now: Instant) -> Option<Vec<u8>> {
        let unannounced: Vec<u16> = self.unannounced.drain(..self.unannounced.len().min(MOST)).collect();
        if unannounced.is_empty() {
            return None;
        }
        let mut message = Vec::with_capacity(HEAD + unannounced.len() * RECORD);
        message.extend_from_slice(&[KIND, unannounced.len() as u8, 0, 0]);
        message.extend_from_slice(&micros(now).to_be_bytes());
        for number in unannounced {
            let Some((template, at)) = self.labels.get_mut(&number) else { continue };
            *at = now;
            let (timestamps, value, echo) = match template.timestamps {
                Timestamps::None => (0, 0, 0),
                Timestamps::Near(value, echo) => (1, value, echo),
                Timestamps::Whole => (2, 0, 0),
            };
            message.extend_from_slice(&number.to_be_bytes());
            message.extend_from_slice(&[template.protocol, timestamps]);
            message.extend_from_slice([template.source, template.destination].map(u16::to_be_bytes).as_flattened());
            message.extend_from_slice(&template.acknowledges.window.to_be_bytes());
            message.extend_from_slice(&template.acknowledges.number.to_be_bytes());
            message.extend_from_slice([value, echo].map(u32::to_be_bytes).as_flattened());
        }
        Some(message)
    }
}

impl Announced {
    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        self.labels.len() * 2 * size_of::<(FlowId, Label)>()
    }

    /// A report came: the peer's clock was so then.
    pub(crate) fn on_clock(&mut self, now: Instant, clock: u32) {
        let is_newer = self
            .clock
            .is_none_or(|(newest, at)| clock.wrapping_sub(newest).cast_signed() > 0 || now - at > FORGET_CLOCK);
        if is_newer {
            self.clock = Some((clock, now));
        }
    }

    /// Takes a message; only of flows that `is_sent` says are this host's. False where it is none.
    pub(crate) fn take(&mut self, now: Instant, message: &[u8], is_sent: impl Fn(FlowId) -> bool) -> bool {
        let Some((&[KIND, count, 0, 0, a, b, c, d], records)) = message.split_first_chunk::<HEAD>() else {
            return false;
        };
        let (records, rest) = records.as_chunks::<RECORD>();
        if records.len() != usize::from(count) || records.len() > MOST || !rest.is_empty() {
            return false;
        }
        let clock = u32::from_be_bytes([a, b, c, d]);
        let behind = self.clock.map_or(0, |(newest, _)| newest.wrapping_sub(clock).cast_signed());
        if i64::from(behind) > LATE.as_micros() as i64 {
            return true;
        }
        for record in records {
            let [n0, n1, protocol, timestamps, s0, s1, d0, d1, w0, w1, a0, a1, a2, a3, v0, v1, v2, v3, e0, e1, e2, e3] =
                *record;
            let timestamps = match timestamps {
                0 => Timestamps::None,
                1 => Timestamps::Near(u32::from_be_bytes([v0, v1, v2, v3]), u32::from_be_bytes([e0, e1, e2, e3])),
                2 => Timestamps::Whole,
                _ => continue,
            };
            let number = u16::from_be_bytes([n0, n1]);
            let template = Template {
                protocol,
                source: u16::from_be_bytes([s0, s1]),
                destination: u16::from_be_bytes([d0, d1]),
                acknowledges: Acknowledges {
                    window: u16::from_be_bytes([w0, w1]),
                    number: u32::from_be_bytes([a0, a1, a2, a3]),
                },
                timestamps,
            };
            let flow = leaving(&template);
            let is_known = matches!(protocol, protocol::TCP | protocol::UDP) && number < LABELS;
            if !is_known || !is_sent(flow) {
                continue;
            }
            if self.labels.len() >= usize::from(LABELS) {
                self.labels.retain(|_, label| label.until > now);
            }
            if self.labels.len() < usize::from(LABELS) {
                self.labels.insert(flow, Label { number, template, until: now + GOOD_FOR });
            }
        }
        true
    }

    /// The label of a flow and the header of its next packet in short, where it has one and that can be.
    pub(crate) fn shorten(&mut self, now: Instant, flow: FlowId, packet: &[u8]) -> Option<(u16, Short)> {
        let label = self.labels.get(&flow)?;
        if now >= label.until {
            self.labels.remove(&flow);
            return None;
        }
        Some((label.number, label.template.shorten(packet)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::tcp;

    const FLOW: FlowId = FlowId { protocol: protocol::UDP, local: 7, remote: 9 };
    const DATAGRAM: [u8; 12] = [0, 7, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4];

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1000 + seconds)
    }

    /// Has as many whole headers come as a label takes.
    fn give(assigned: &mut Assigned, candidate: &mut Candidate, now: Instant) -> Option<Vec<u8>> {
        for _ in 0..=WHOLE {
            assigned.came(now, candidate, false, || Template::of(protocol::UDP, &DATAGRAM));
        }
        assigned.poll_message(now)
    }

    #[test]
    fn a_label_is_told_used_and_ends_at_the_sender() {
        let (mut assigned, mut announced, mut candidate) =
            (Assigned::default(), Announced::default(), Candidate::default());
        let message = give(&mut assigned, &mut candidate, at(0)).unwrap();
        assert_eq!(assigned.poll_message(at(0)), None);
        assert!(announced.take(at(1), &message, |flow| flow == FLOW));
        let (number, short) = announced.shorten(at(60), FLOW, &DATAGRAM).unwrap();
        assert_eq!((number, short.whole()), (0, 8));
        assert_eq!(assigned.template(number), Template::of(protocol::UDP, &DATAGRAM));
        assert!(announced.shorten(at(61), FLOW, &DATAGRAM).is_none());
    }

    /// What the simulator takes headers in short for is what they are.
    #[test]
    fn headers_are_as_short_as_simulated_ones() {
        let with_timestamps = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
        let segment = |options, ack| {
            let any = std::net::Ipv6Addr::LOCALHOST.into();
            let mut segment = Vec::new();
            tcp::Header { options, ack, ..tcp::Header::default() }.emit(any, any, b"data", &mut segment).unwrap();
            (protocol::TCP, segment)
        };
        let headers = |ack| [segment(&with_timestamps, ack), segment(&[], ack), (protocol::UDP, DATAGRAM.to_vec())];
        for ack in [0, 1] {
            for ((protocol, packet), (_, first)) in headers(ack).into_iter().zip(headers(0)) {
                let short = Template::of(protocol, &first).unwrap().shorten(&packet).unwrap();
                let saved = short.whole() - short.bytes().len();
                assert_eq!(saved, multipath::left_out(short.whole(), ack == 0));
            }
        }
    }

    /// RFC 7323 §5.4: most clocks tick each millisecond. For one that ticks each microsecond the second label has whole timestamps.
    #[test]
    fn a_quick_clock_has_whole_timestamps() {
        for (ticks, is_quick) in [(1_000, false), (1_000_000, true)] {
            let (mut assigned, mut candidate) = (Assigned::default(), Candidate::default());
            let mut templates = Vec::new();
            for second in 0..12 {
                let value = second as u32 * ticks;
                let timestamps = Timestamps::Near(value, 0);
                let acknowledges = Acknowledges::default();
                let template =
                    || Some(Template { protocol: protocol::TCP, source: 1, destination: 2, acknowledges, timestamps });
                (0..=WHOLE).for_each(|_| assigned.came(at(second), &mut candidate, false, template));
                if let Some(message) = assigned.poll_message(at(second)) {
                    let number = u16::from_be_bytes([message[HEAD], message[HEAD + 1]]);
                    templates.push(assigned.template(number).unwrap().timestamps);
                }
            }
            let is_whole: Vec<bool> = templates.iter().map(|stamps| *stamps == Timestamps::Whole).collect();
            assert_eq!(is_whole, [false, is_quick, is_quick, is_quick], "{ticks}");
        }
    }

    /// A peer that uses no labels hears of them ever more seldom; once it has used one, of the next at once.
    #[test]
    fn who_does_not_use_labels_is_told_seldom() {
        let (mut assigned, mut candidate) = (Assigned::default(), Candidate::default());
        let announced = (0..600).filter(|second| give(&mut assigned, &mut candidate, at(*second)).is_some()).count();
        assert!((10..20).contains(&announced), "{announced}");
        assigned.came(at(600), &mut candidate, true, || None);
        assert!(give(&mut assigned, &mut candidate, at(663)).is_some());
        assert!(give(&mut assigned, &mut candidate, at(665)).is_some());
    }

    /// However many flows there are: a label is assigned to one of them at a time.
    #[test]
    fn a_label_in_use_is_not_given_again() {
        let mut assigned = Assigned::default();
        let flows = 2 * usize::from(LABELS);
        let announced = (0..flows).filter(|_| give(&mut assigned, &mut Candidate::default(), at(0)).is_some()).count();
        assert_eq!(announced, usize::from(LABELS));
        assert!(give(&mut assigned, &mut Candidate::default(), at(179)).is_none());
        assert!(give(&mut assigned, &mut Candidate::default(), at(180)).is_some());
        assigned.on_clock_jump(at(4000));
        assert!(give(&mut assigned, &mut Candidate::default(), at(4100)).is_none());
    }

    /// A label is the sender's from when it hears of it, however long ago it was assigned.
    #[test]
    fn an_announcement_that_waits_keeps_the_label_in_use() {
        let mut assigned = Assigned::default();
        for _ in 0..LABELS {
            let mut candidate = Candidate::default();
            for _ in 0..=WHOLE {
                assigned.came(at(0), &mut candidate, false, || Template::of(protocol::UDP, &DATAGRAM));
            }
        }
        while assigned.poll_message(at(170)).is_some() {}
        assert!(give(&mut assigned, &mut Candidate::default(), at(200)).is_none());
        assert!(give(&mut assigned, &mut Candidate::default(), at(350)).is_some());
    }

    #[test]
    fn what_a_network_has_kept_is_not_taken() {
        let (mut assigned, mut announced) = (Assigned::default(), Announced::default());
        let message = give(&mut assigned, &mut Candidate::default(), at(0)).unwrap();
        announced.on_clock(at(200), micros(at(200)));
        assert!(announced.take(at(200), &message, |_| true));
        assert!(announced.shorten(at(200), FLOW, &DATAGRAM).is_none());
    }

    #[test]
    fn what_is_no_label_or_of_no_flow_is_not_taken() {
        let (mut assigned, mut announced) = (Assigned::default(), Announced::default());
        let message = give(&mut assigned, &mut Candidate::default(), at(0)).unwrap();
        assert!(announced.take(at(0), &message, |_| false) && announced.labels.is_empty());
        for cut in 0..message.len() {
            assert!(!announced.take(at(0), &message[..cut], |_| true));
        }
        for (place, value) in [(HEAD, 4), (HEAD + 2, 58), (HEAD + 3, 3)] {
            let mut wrong = message.clone();
            wrong[place] = value;
            assert!(announced.take(at(0), &wrong, |_| true) && announced.labels.is_empty());
        }
        let mut many = Vec::new();
        for port in 0..3000_u16 {
            let [a, b] = port.to_be_bytes();
            many.clone_from(&message);
            many[HEAD + 4..HEAD + 6].copy_from_slice(&[a, b]);
            assert!(announced.take(at(0), &many, |_| true));
        }
        assert_eq!(announced.labels.len(), usize::from(LABELS));
    }
}
