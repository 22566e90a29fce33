//! Labels: with one in its packets a flow may have headers in short (see [`wire::short`]).
//!
//! Who receives much of a flow gives it a label, and tells the sender for what it stands:
//!
//! ```text
//! kind 7 (1) | labels (1) | zero (2) | clock (4) | label …
//! label: number (2) | protocol (1) | timestamps (1): 0 none, 1 in halves, 2 whole | source port (2) | destination port (2) | TSval (4) | TSecr (4)
//! ```
//!
//! Timestamps go in halves at first, and whole once a clock has shown to be too quick for that.
//! `clock` is the receiver's in microseconds, as in reports. The sender uses a label for [`GOOD_FOR`], and the receiver gives it to
//! another flow only [`LIFE`] after it has told it. A network may keep what is told for longer than that: then the clock is far behind
//! that of the newest report, and the label is not taken.

use clock::{Duration, Instant};
use multipath::FlowId;
use std::collections::BTreeMap;
use wire::ip::protocol;
use wire::short::{Short, Template, Timestamps};

/// The kind of message by which labels are told: the first byte after the ESP header.
pub(crate) const KIND: u8 = 7;
/// Labels that there are.
pub(crate) const LABELS: u16 = 1024;
/// How long a sender uses a label.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// How long a receiver gives a label to no other flow.
const LIFE: Duration = Duration::from_secs(180);
/// A label that was told so long before the newest report comes too late.
const LATE: Duration = Duration::from_secs(10);
/// After that long without a report, any clock is new: it goes round after 71 minutes.
const FORGET_CLOCK: Duration = Duration::from_secs(600);
/// So many whole headers of a flow that could have been short, and it is given a label, ...
const WHOLE: u8 = 8;
/// ... so long after the one before; twice as long each time that one was not used, up to [`GOOD_FOR`].
const PAUSE: Duration = Duration::from_secs(1);
/// A clock that takes no longer for 2¹⁵ ticks is too quick for halves.
const QUICK: Duration = Duration::from_secs(10);
/// Labels in one message, at most.
const MOST: usize = 32;
/// Bytes before the labels in a message, and of each.
const HEAD: usize = 8;
const RECORD: usize = 16;

/// When a flow that comes is given a label.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish {
    /// Headers that could have been short since the last label, at most [`WHOLE`].
    whole: u8,
    pause: Duration,
    /// Not before then.
    not_before: Instant,
    /// When the last packet came to which it was given one, and that packet's TSval.
    last: Option<(Instant, u32)>,
    /// Timestamps go whole.
    has_quick_clock: bool,
}

/// The labels that this host has given to flows that it receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    labels: BTreeMap<u16, (Template, Instant)>,
    next: u16,
    /// Those that the sender has not been told.
    untold: Vec<u16>,
}

/// The labels that this host was told, of flows that it sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
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

/// The flow of a template, as its receiver knows it.
pub(crate) fn arriving(template: &Template) -> FlowId {
    FlowId { protocol: template.protocol, local: template.destination, remote: template.source }
}

fn micros(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}

impl Given {
    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        self.labels.len() * 2 * size_of::<(u16, Template, Instant)>()
    }

    /// What a label stands for, if it was given.
    pub(crate) fn template(&self, number: u16) -> Option<Template> {
        self.labels.get(&number).map(|(template, _)| *template)
    }

    /// The clock has jumped, that of the sender has not: labels begin anew.
    pub(crate) fn on_clock_jump(&mut self, now: Instant) {
        self.labels.values_mut().for_each(|(_, at)| *at = now);
    }

    /// A packet of a flow came, with the header in short or not: the flow may be given a label.
    pub(crate) fn came(
        &mut self,
        now: Instant,
        wish: &mut Wish,
        is_short: bool,
        template: impl Fn() -> Option<Template>,
    ) {
        if is_short {
            (wish.whole, wish.pause) = (0, Duration::ZERO);
            return;
        }
        if wish.whole < WHOLE {
            // The most frequent case by far where a sender uses none.
            wish.whole += 1;
            return;
        }
        if now < wish.not_before {
            return;
        }
        let Some(mut template) = template() else { return };
        if let Timestamps::Near(value, _) = template.timestamps {
            let is_far = |before: u32| value.wrapping_sub(before) >= 1 << 15;
            let before = wish.last.replace((now, value));
            wish.has_quick_clock |= before.is_some_and(|(at, before)| now - at < QUICK && is_far(before));
            if wish.has_quick_clock {
                template.timestamps = Timestamps::Whole;
            }
        }
        let number = self.next;
        if self.labels.get(&number).is_some_and(|(_, at)| now - *at < LIFE) {
            // All are in use.
            return;
        }
        self.labels.insert(number, (template, now));
        self.next = (number + 1) % LABELS;
        self.untold.push(number);
        wish.pause = (wish.pause * 2).clamp(PAUSE, GOOD_FOR);
        (wish.whole, wish.not_before) = (0, now + wish.pause);
    }

    /// What the sender is to be told.
    pub(crate) fn poll_message(&mut self, now: Instant) -> Option<Vec<u8>> {
        let untold: Vec<u16> = self.untold.drain(..self.untold.len().min(MOST)).collect();
        if untold.is_empty() {
            return None;
        }
        let mut message = Vec::with_capacity(HEAD + untold.len() * RECORD);
        message.extend_from_slice(&[KIND, untold.len() as u8, 0, 0]);
        message.extend_from_slice(&micros(now).to_be_bytes());
        for number in untold {
            let Some((template, _)) = self.labels.get(&number) else { continue };
            let (timestamps, value, echo) = match template.timestamps {
                Timestamps::None => (0, 0, 0),
                Timestamps::Near(value, echo) => (1, value, echo),
                Timestamps::Whole => (2, 0, 0),
            };
            message.extend_from_slice(&number.to_be_bytes());
            message.extend_from_slice(&[template.protocol, timestamps]);
            message.extend_from_slice([template.source, template.destination].map(u16::to_be_bytes).as_flattened());
            message.extend_from_slice([value, echo].map(u32::to_be_bytes).as_flattened());
        }
        Some(message)
    }
}

impl Told {
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
            let [n0, n1, protocol, timestamps, s0, s1, d0, d1, v0, v1, v2, v3, e0, e1, e2, e3] = *record;
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
                timestamps,
            };
            let flow = FlowId { protocol, local: template.source, remote: template.destination };
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
    fn give(given: &mut Given, wish: &mut Wish, now: Instant) -> Option<Vec<u8>> {
        for _ in 0..=WHOLE {
            given.came(now, wish, false, || Template::of(protocol::UDP, &DATAGRAM));
        }
        given.poll_message(now)
    }

    #[test]
    fn a_label_is_told_used_and_ends_at_the_sender() {
        let (mut given, mut told, mut wish) = (Given::default(), Told::default(), Wish::default());
        let message = give(&mut given, &mut wish, at(0)).unwrap();
        assert_eq!(given.poll_message(at(0)), None);
        assert!(told.take(at(1), &message, |flow| flow == FLOW));
        let (number, short) = told.shorten(at(60), FLOW, &DATAGRAM).unwrap();
        assert_eq!((number, short.whole()), (0, 8));
        assert_eq!(given.template(number), Template::of(protocol::UDP, &DATAGRAM));
        assert!(told.shorten(at(61), FLOW, &DATAGRAM).is_none());
    }

    /// What the simulator takes headers in short for is what they are.
    #[test]
    fn headers_are_as_short_as_simulated_ones() {
        let with_timestamps = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
        let segment = |options| {
            let any = std::net::Ipv6Addr::LOCALHOST.into();
            let mut segment = Vec::new();
            tcp::Header { options, ..tcp::Header::default() }.emit(any, any, b"data", &mut segment).unwrap();
            (protocol::TCP, segment)
        };
        for (protocol, packet) in [segment(&with_timestamps), segment(&[]), (protocol::UDP, DATAGRAM.to_vec())] {
            let short = Template::of(protocol, &packet).unwrap().shorten(&packet).unwrap();
            assert_eq!(short.whole() - short.bytes().len(), multipath::left_out(short.whole()));
        }
    }

    /// RFC 7323 §5.4: most clocks tick each millisecond. One that ticks each microsecond is told whole timestamps at the second try.
    #[test]
    fn a_quick_clock_has_whole_timestamps() {
        for (ticks, is_quick) in [(1_000, false), (1_000_000, true)] {
            let (mut given, mut wish) = (Given::default(), Wish::default());
            let mut templates = Vec::new();
            for second in 0..12 {
                let value = second as u32 * ticks;
                let timestamps = Timestamps::Near(value, 0);
                let template = || Some(Template { protocol: protocol::TCP, source: 1, destination: 2, timestamps });
                (0..=WHOLE).for_each(|_| given.came(at(second), &mut wish, false, template));
                templates
                    .extend(given.poll_message(at(second)).map(|_| given.template(given.next - 1).unwrap().timestamps));
            }
            let is_whole: Vec<bool> = templates.iter().map(|stamps| *stamps == Timestamps::Whole).collect();
            assert_eq!(is_whole, [false, is_quick, is_quick, is_quick], "{ticks}");
        }
    }

    /// A peer that uses none is told ever more seldom; once it has used one it is told the next at once.
    #[test]
    fn who_does_not_use_labels_is_told_seldom() {
        let (mut given, mut wish) = (Given::default(), Wish::default());
        let told = (0..600).filter(|second| give(&mut given, &mut wish, at(*second)).is_some()).count();
        assert!((10..20).contains(&told), "{told}");
        given.came(at(600), &mut wish, true, || None);
        assert!(give(&mut given, &mut wish, at(663)).is_some());
        assert!(give(&mut given, &mut wish, at(665)).is_some());
    }

    /// However many flows there are: a label is given to one of them at a time.
    #[test]
    fn a_label_in_use_is_not_given_again() {
        let mut given = Given::default();
        let flows = 2 * usize::from(LABELS);
        let told = (0..flows).filter(|_| give(&mut given, &mut Wish::default(), at(0)).is_some()).count();
        assert_eq!(told, usize::from(LABELS));
        assert!(give(&mut given, &mut Wish::default(), at(179)).is_none());
        assert!(give(&mut given, &mut Wish::default(), at(180)).is_some());
        given.on_clock_jump(at(4000));
        assert!(give(&mut given, &mut Wish::default(), at(4100)).is_none());
    }

    #[test]
    fn what_a_network_has_kept_is_not_taken() {
        let (mut given, mut told) = (Given::default(), Told::default());
        let message = give(&mut given, &mut Wish::default(), at(0)).unwrap();
        told.on_clock(at(200), micros(at(200)));
        assert!(told.take(at(200), &message, |_| true));
        assert!(told.shorten(at(200), FLOW, &DATAGRAM).is_none());
    }

    #[test]
    fn what_is_no_label_or_of_no_flow_is_not_taken() {
        let (mut given, mut told) = (Given::default(), Told::default());
        let message = give(&mut given, &mut Wish::default(), at(0)).unwrap();
        assert!(told.take(at(0), &message, |_| false) && told.labels.is_empty());
        for cut in 0..message.len() {
            assert!(!told.take(at(0), &message[..cut], |_| true));
        }
        for (place, value) in [(HEAD, 4), (HEAD + 2, 58), (HEAD + 3, 3)] {
            let mut wrong = message.clone();
            wrong[place] = value;
            assert!(told.take(at(0), &wrong, |_| true) && told.labels.is_empty());
        }
        let mut many = Vec::new();
        for port in 0..3000_u16 {
            let [a, b] = port.to_be_bytes();
            many.clone_from(&message);
            many[HEAD + 4..HEAD + 6].copy_from_slice(&[a, b]);
            assert!(told.take(at(0), &many, |_| true));
        }
        assert_eq!(told.labels.len(), usize::from(LABELS));
    }
}
