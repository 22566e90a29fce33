//! Links held against closed forms, bounds, and a second implementation that keeps no state but the textbook
//! recursion.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use link::{
    Change, ChangeKind, CoDelConfig, DropReason, Ecn, JitterConfig, Link, LinkConfig, LossConfig, Processing,
    ProcessingJitter, QueueConfig, RedConfig, Schedule, Trace, TraceError,
};
use proptest::prelude::*;

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

fn link<P>(config: LinkConfig) -> Link<P> {
    Link::new(config, Rng::from_seed(1))
}

/// Polls at every event until the link is empty; the arrivals in order.
fn drain<P>(link: &mut Link<P>) -> Vec<(Instant, P)> {
    let mut arrivals = Vec::new();
    while let Some(now) = link.next_event() {
        while let Some(packet) = link.poll(now) {
            arrivals.push((now, packet));
        }
        assert!(link.next_event().is_none_or(|next| next > now), "the next event is later than now");
    }
    arrivals
}

#[test]
fn a_packet_of_1500_bytes_at_1_mbit_per_s_takes_12_ms_and_the_delay() {
    let mut link = link(LinkConfig { rate: Some(1_000_000), delay: Duration::from_millis(30), ..Default::default() });
    for packet in 0..3 {
        link.offer(Instant::ZERO, packet, 1500).unwrap();
    }
    assert_eq!(drain(&mut link), [(at(42_000), 0), (at(54_000), 1), (at(66_000), 2)]);
}

#[test]
fn an_infinitely_fast_link_only_delays() {
    let mut link =
        link(LinkConfig { delay: Duration::from_millis(5), queue: QueueConfig::Packets(0), ..Default::default() });
    for packet in 0..3 {
        link.offer(Instant::ZERO, packet, 1500).unwrap();
    }
    assert_eq!(drain(&mut link), [(at(5000), 0), (at(5000), 1), (at(5000), 2)]);
}

/// What is carried at once is what would have come out at the same instant, whatever changes meanwhile: the oracle is a link that is
/// asked in two steps.
#[test]
fn what_a_link_carries_at_once_would_have_arrived_at_once() {
    let mut rng = Rng::from_seed(7);
    let new = || link(LinkConfig { queue: QueueConfig::Packets(2), ..Default::default() });
    let (mut quick, mut slow) = (new(), new());
    let mut carried = 0;
    for packet in 0..20_000_u32 {
        let now = at(u64::from(packet) / 3);
        let what = match rng.below(40) {
            0 => Some(ChangeKind::Down),
            1 | 2 => Some(ChangeKind::Up),
            3 => Some(ChangeKind::Delay(Duration::from_nanos(rng.below(3000)))),
            4..6 => Some(ChangeKind::Delay(Duration::ZERO)),
            6 => Some(ChangeKind::Loss(LossConfig::Random(0.3))),
            7..9 => Some(ChangeKind::Loss(LossConfig::None)),
            9 => Some(ChangeKind::Rate(Some(1_000_000_000))),
            10..12 => Some(ChangeKind::Rate(None)),
            _ => None,
        };
        for link in [&mut quick, &mut slow] {
            what.iter().for_each(|what| link.change(now, *what));
        }
        if quick.carry_at_once(now, 1500) {
            carried += 1;
            assert_eq!((slow.offer(now, packet, 1500), slow.poll(now)), (Ok(()), Some(packet)));
        } else {
            assert_eq!(quick.offer(now, packet, 1500), slow.offer(now, packet, 1500));
        }
        while rng.below(20) > 0 && slow.next_event().is_some_and(|next| next <= now) {
            assert_eq!(quick.poll(now), slow.poll(now));
        }
        assert_eq!((quick.statistics(), quick.next_event()), (slow.statistics(), slow.next_event()));
    }
    assert!(carried > 1000, "{carried}");
}

#[test]
fn the_limit_counts_what_waits_and_not_what_is_sent() {
    for (queue, fits) in [
        (QueueConfig::Packets(3), 4),
        (QueueConfig::Bytes(3000), 4),
        (QueueConfig::Bytes(2999), 3),
        (QueueConfig::Packets(0), 1),
    ] {
        let mut link = link(LinkConfig { rate: Some(8_000), queue, ..Default::default() });
        let accepted = (0..10).filter(|packet| link.offer(Instant::ZERO, *packet, 1000).is_ok()).count();
        assert_eq!(accepted, fits, "{queue:?}");
        assert_eq!(link.statistics().dropped_full.packets, 10 - fits as u64);
    }
}

#[test]
fn a_new_rate_counts_from_the_next_packet_on() {
    let changes = vec![Change { at: at(500_000), what: ChangeKind::Rate(Some(16_000)) }];
    let mut link = link(LinkConfig { rate: Some(8_000), changes, ..Default::default() });
    for packet in 0..3 {
        link.offer(Instant::ZERO, packet, 1000).unwrap(); // 1 s at 8 kbit/s, 0.5 s at 16 kbit/s
    }
    assert_eq!(drain(&mut link), [(at(1_000_000), 0), (at(1_500_000), 1), (at(2_000_000), 2)]);
}

#[test]
fn a_shorter_delay_does_not_change_the_order() {
    let changes = vec![Change { at: at(1_500_000), what: ChangeKind::Delay(Duration::from_millis(10)) }];
    let mut link = link(LinkConfig { rate: Some(8_000), delay: Duration::from_secs(5), changes, ..Default::default() });
    for packet in 0..3 {
        link.offer(Instant::ZERO, packet, 1000).unwrap();
    }
    // Sent at 1, 2 and 3 s; the first arrives at 6 s, the others would at 2.01 and 3.01 s.
    assert_eq!(drain(&mut link), [(at(6_000_000), 0), (at(6_000_000), 1), (at(6_000_000), 2)]);
}

#[test]
fn a_change_that_brings_an_arrival_forward_is_an_event() {
    let changes = vec![Change { at: at(500_000), what: ChangeKind::Delay(Duration::ZERO) }];
    let mut link = link(LinkConfig { rate: Some(8_000), delay: Duration::from_secs(5), changes, ..Default::default() });
    link.offer(Instant::ZERO, (), 1000).unwrap();
    assert_eq!(link.next_event(), Some(at(500_000)));
    assert_eq!(drain(&mut link), [(at(1_000_000), ())]);
}

#[test]
fn an_outage_loses_what_waits_and_what_comes_and_keeps_what_is_on_its_way() {
    let changes =
        vec![Change { at: at(1_500_000), what: ChangeKind::Down }, Change { at: at(3_000_000), what: ChangeKind::Up }];
    let config = LinkConfig { rate: Some(8_000), delay: Duration::from_secs(1), changes, ..Default::default() };
    let mut link = link(config).keeping_discarded();
    for packet in 0..3 {
        link.offer(Instant::ZERO, packet, 1000).unwrap();
    }
    assert_eq!(drain(&mut link), [(at(2_000_000), 0)]);
    let refused = link.offer(at(2_999_999), 3, 1000).unwrap_err();
    assert_eq!((refused.packet, refused.reason), (3, DropReason::Outage));
    link.offer(at(3_000_000), 4, 1000).unwrap();
    assert_eq!(drain(&mut link), [(at(5_000_000), 4)]);
    let discarded: Vec<_> = std::iter::from_fn(|| link.poll_discarded(at(9_000_000)))
        .map(|dropped| (dropped.packet, dropped.reason))
        .collect();
    assert_eq!(discarded, [(1, DropReason::Outage), (2, DropReason::Outage)]);
    assert_eq!(link.statistics().dropped_outage.packets, 3);
}

/// Five standard deviations of a binomial share.
fn bound(p: f64, n: f64) -> f64 {
    5.0 * (p * (1.0 - p) / n).sqrt()
}

#[test]
fn random_loss_has_its_rate_and_no_memory() {
    let p = 0.1;
    let n = 100_000u64;
    let mut link = link(LinkConfig { loss: LossConfig::Random(p), ..Default::default() });
    let mut lost = Vec::new();
    for packet in 0..n {
        link.offer(Instant::ZERO, packet, 1).unwrap();
        lost.push(link.poll(Instant::ZERO).is_none());
    }
    let share = |hits: usize, of: usize| hits as f64 / of as f64;
    let all = lost.iter().filter(|lost| **lost).count();
    assert!((share(all, lost.len()) - p).abs() < bound(p, n as f64));
    // After a loss, loss is as likely as ever.
    let after: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
    assert!((share(after.iter().filter(|lost| **lost).count(), after.len()) - p).abs() < bound(p, after.len() as f64));
}

#[test]
fn gilbert_elliott_has_its_stationary_rate_and_its_mean_burst() {
    let loss = LossConfig::GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    let mut link = link(LinkConfig { loss, ..Default::default() });
    let n = 400_000;
    let (mut losses, mut bursts, mut before) = (0u32, 0u32, false);
    for _ in 0..n {
        link.offer(Instant::ZERO, (), 1).unwrap();
        let lost = link.poll(Instant::ZERO).is_none();
        losses += u32::from(lost);
        bursts += u32::from(lost && !before);
        before = lost;
    }
    // Stationary: 0.01 / (0.01 + 0.25); mean burst: 1 / 0.25. Bursts are about 15,000, geometric with deviation
    // sqrt(0.75)/0.25 = 3.5, so five standard errors are 0.14.
    let rate = f64::from(losses) / f64::from(n);
    assert!((rate / (0.01 / 0.26) - 1.0).abs() < 0.05, "{rate}");
    let burst = f64::from(losses) / f64::from(bursts);
    assert!((burst - 4.0).abs() < 0.15, "{burst}");
}

#[test]
fn poisson_arrivals_wait_as_pollaczek_and_khinchine_say() {
    // M/D/1 at load 0.8: mean wait = load / (2 (1 - load)) service times = 2.
    let load = 0.8;
    let service = Duration::from_millis(1);
    let mut link = link(LinkConfig { rate: Some(8_000_000), ..Default::default() });
    let mut rng = Rng::from_seed(3);
    let (mut now, mut offered, mut waits, n) = (Instant::ZERO, Vec::new(), 0.0, 400_000);
    for packet in 0..n {
        now += service.mul_f64(-(1.0 - rng.unit()).ln() / load);
        while let Some(event) = link.next_event().filter(|event| *event <= now) {
            while let Some(packet) = link.poll(event) {
                let offer: Instant = offered[packet];
                waits += (event - offer).as_secs_f64() - service.as_secs_f64();
            }
        }
        offered.push(now);
        link.offer(now, packet, 1000).unwrap();
    }
    let mean = waits / f64::from(n as u32) / service.as_secs_f64();
    assert!((mean - 2.0).abs() < 0.1, "{mean}");
}

/// The textbook recursion for a FIFO link with a limit in packets: departure = max(arrival, last departure) + service.
fn textbook(rate: u64, delay: Duration, limit: usize, offers: &[(u64, u32)]) -> Vec<Option<Instant>> {
    let mut departures: Vec<Instant> = Vec::new();
    offers
        .iter()
        .map(|&(time, bytes)| {
            let now = at(time);
            // Inside are those that depart later than now; the first of them is being sent.
            let inside = departures.iter().filter(|departure| **departure > now).count();
            if inside > limit {
                return None;
            }
            let start = departures.last().copied().unwrap_or(now).max(now);
            departures.push(start + Duration::of_transmission(bytes.into(), rate));
            departures.last().map(|departure| *departure + delay)
        })
        .collect()
}

proptest! {
    #[test]
    fn equals_the_textbook_recursion(
        rate in 1_000u64..10_000_000, delay in 0u64..100_000, limit in 0u32..8, greedy: bool,
        gaps in proptest::collection::vec((0u64..20_000, 40u32..1600), 1..80),
    ) {
        let mut time = 0;
        let offers: Vec<(u64, u32)> = gaps.iter().map(|&(gap, bytes)| { time += gap; (time, bytes) }).collect();
        let delay = Duration::from_micros(delay);
        let mut link = link(LinkConfig { rate: Some(rate), delay, queue: QueueConfig::Packets(limit), ..Default::default() });
        let mut arrivals = vec![None; offers.len()];
        for (index, &(time, bytes)) in offers.iter().enumerate() {
            // With and without being looked at at each event: it must make no difference.
            while let Some(event) = link.next_event().filter(|event| greedy && *event <= at(time)) {
                while let Some(packet) = link.poll(event) { arrivals[packet] = Some(event); }
            }
            let _ = link.offer(at(time), index, bytes);
        }
        for (arrival, packet) in drain(&mut link) { arrivals[packet] = Some(arrival); }
        prop_assert_eq!(arrivals, textbook(rate, delay, limit as usize, &offers));
    }

    #[test]
    fn nothing_is_made_or_vanishes_and_order_stays(
        seed: u64, limit in 0u64..6000, kind in 0u8..3, p in 0.0..0.5f64,
        changes in proptest::collection::vec((0u64..3_000_000, 0u8..5, 1u64..1_000_000), 0..12),
        gaps in proptest::collection::vec((0u64..60_000, 40u32..1600), 1..80),
    ) {
        let changes = changes.into_iter().map(|(time, kind, value)| Change { at: at(time), what: match kind {
            0 => ChangeKind::Rate(Some(value)),
            1 => ChangeKind::Delay(Duration::from_micros(value)),
            2 => ChangeKind::Loss(LossConfig::Random(p)),
            3 => ChangeKind::Down,
            _ => ChangeKind::Up,
        }}).collect();
        let queue = match kind {
            0 => QueueConfig::Bytes(limit),
            1 => QueueConfig::CoDel(CoDelConfig { limit: 20, ..CODEL }),
            _ => QueueConfig::Red(RedConfig { min: 1.0, max: 3.0, limit: 9, probability: 0.1, weight: 0.1, gentle: false, ecn: false, packet_bytes: 800 }),
        };
        let config = LinkConfig { rate: Some(1_000_000), delay: Duration::from_millis(20), queue, changes, ..Default::default() };
        let mut link = Link::new(config, Rng::from_seed(seed)).keeping_discarded();
        let (mut time, mut last, mut delivered, mut refused) = (0, None, 0, 0);
        let check = |link: &Link<usize>, delivered: u64| {
            let statistics = link.statistics();
            assert_eq!(statistics.offered.packets, statistics.delivered.packets + statistics.dropped().packets + link.inside() as u64);
            assert_eq!(statistics.delivered.packets, delivered);
        };
        for (index, (gap, bytes)) in gaps.into_iter().enumerate() {
            time += gap;
            if link.offer(at(time), index, bytes).is_err() { refused += 1; }
            while let Some(packet) = link.poll(at(time)) { assert!(last.is_none_or(|last| last < packet)); last = Some(packet); delivered += 1; }
            check(&link, delivered);
        }
        for (_, packet) in drain(&mut link) { assert!(last.is_none_or(|last| last < packet)); last = Some(packet); delivered += 1; }
        check(&link, delivered);
        prop_assert_eq!(link.inside(), 0);
        let discarded = std::iter::from_fn(|| link.poll_discarded(Instant::FAR_FUTURE)).count() as u64;
        prop_assert_eq!(link.statistics().dropped().packets, refused + discarded);
    }
}

#[test]
fn an_overloaded_link_carries_its_rate_whatever_the_packet_sizes() {
    let mut link = link(LinkConfig { rate: Some(8_000_000), queue: QueueConfig::Packets(50), ..Default::default() });
    let mut rng = Rng::from_seed(5);
    for micros in 0..1_000_000u64 {
        if micros % 500 == 0 {
            let _ = link.offer(at(micros), (), 40 + rng.below(1460) as u32);
        }
        while link.poll(at(micros)).is_some() {}
    }
    // 1 s at 8 Mbit/s is 1 MB, up to one packet that is still being sent and one rounding a packet.
    let sent = link.statistics().sent;
    assert!((998_000..=1_000_000).contains(&sent.bytes), "{sent:?}");
    let busy = link.statistics().busy.as_secs_f64();
    assert!((busy - sent.bytes as f64 * 8.0 / 8e6).abs() < 1e-5);
}

const CODEL: CoDelConfig =
    CoDelConfig { target: Duration::from_millis(5), interval: Duration::from_millis(100), limit: u32::MAX, ecn: false };

/// Twice the link's rate of 8 Mbit/s in packets of 1000 bytes for two seconds; the instants of early drops or marks.
fn overload(queue: QueueConfig, capable: bool) -> (Link<u64>, Vec<Instant>) {
    let mut link = link(LinkConfig { rate: Some(8_000_000), queue, ..Default::default() }).keeping_discarded();
    let mut moments = Vec::new();
    for half in 0..4000u64 {
        let now = at(half * 500);
        let before = link.statistics().marked.packets;
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let _ = link.offer_of(now, half, 1000, 0, ecn);
        while link.poll_discarded(now).is_some() {
            moments.push(now);
        }
        while let Some((_, _)) = link.poll_ecn(now) {}
        for _ in before..link.statistics().marked.packets {
            moments.push(now);
        }
    }
    (link, moments)
}

#[test]
fn codel_drops_by_its_control_law_under_overload_and_marks_where_it_may() {
    let (link, drops) = overload(QueueConfig::CoDel(CODEL), false);
    // Half of each packet's time is added to the wait, so 5 ms are exceeded after 10 ms, and the first drop comes an
    // interval later; then gaps of interval / sqrt(n), each up to the next departure (1 ms) later.
    assert!((drops[0].as_secs_f64() - 0.111).abs() < 0.003, "{}", drops[0]);
    let mut due = drops[0].as_secs_f64();
    for (n, drop) in drops.iter().enumerate().skip(1).take(60) {
        due += 0.1 / (n as f64).sqrt();
        assert!((drop.as_secs_f64() - due).abs() < 0.003, "{n}: {drop} and {due}");
    }
    assert_eq!(link.statistics().dropped_early.packets, drops.len() as u64);

    let (marking, marks) = overload(QueueConfig::CoDel(CoDelConfig { ecn: true, ..CODEL }), true);
    assert_eq!(marking.statistics().dropped().packets, 0);
    assert_eq!(marks[..20], drops[..20]);
}

#[test]
fn codel_leaves_a_queue_below_its_target_alone() {
    let mut link = link(LinkConfig { rate: Some(8_000_000), queue: QueueConfig::CoDel(CODEL), ..Default::default() });
    for milli in 0..2000 {
        // Bursts of 4 packets every 4 ms: full load, at most 3 ms of waiting.
        for packet in 0..if milli % 4 == 0 { 4 } else { 0 } {
            link.offer(at(milli * 1000), packet, 1000).unwrap();
        }
        while link.poll(at(milli * 1000)).is_some() {}
    }
    assert_eq!(link.statistics().dropped().packets, 0);
}

#[test]
fn red_settles_where_its_drops_balance_an_overload() {
    let red = RedConfig {
        min: 30.0,
        max: 90.0,
        limit: 1000,
        probability: 0.1,
        weight: 0.002,
        gentle: true,
        ecn: false,
        packet_bytes: 1000,
    };
    // Twice the rate: every second packet has to go. Gaps are uniform on 1 to 1/pb - 1, so pb = 1/4, and in the gentle
    // part 0.1 + 0.9 (average - 90) / 90 = 1/4 at 105 packets.
    let (mut link, _) = overload(QueueConfig::Red(red), false);
    let (mut sum, mut n) = (0.0, 0);
    for half in 4000..40_000u64 {
        let _ = link.offer(at(half * 500), half, 1000);
        while link.poll(at(half * 500)).is_some() {}
        if half > 10_000 {
            sum += f64::from(link.waiting_packets());
            n += 1;
        }
    }
    let mean = sum / f64::from(n);
    assert!((97.0..113.0).contains(&mean), "{mean}");
    assert_eq!(link.statistics().dropped_full.packets, 0);

    let (marking, _) = overload(QueueConfig::Red(RedConfig { ecn: true, limit: 80, ..red }), true);
    assert!(marking.statistics().marked.packets > 0 && marking.statistics().dropped_full.packets > 0);
    assert_eq!(marking.statistics().dropped_early.packets, 0);
}

proptest! {
    /// Each packet leaves when its host is done with it and with those before it, whatever other hosts do.
    #[test]
    fn hosts_take_their_time_for_each_packet_and_keep_the_order(
        packets in prop::collection::vec((0..300u64, 0..3usize, 0..200u64), 1..50),
    ) {
        let mut processing = ProcessingJitter::default();
        let (mut now, mut left, mut expected) = (0, Vec::new(), Vec::new());
        let mut done = [0; 3];
        for (number, &(pause, host, time)) in packets.iter().enumerate() {
            now += pause;
            left.extend(std::iter::from_fn(|| processing.poll(at(now))));
            prop_assert!(processing.next_event().is_none_or(|next| next > at(now)));
            processing.put(at(now), host, Duration::from_micros(time), number);
            done[host] = done[host].max(now + time);
            expected.push((at(done[host]), number));
        }
        left.extend(std::iter::from_fn(|| processing.poll(Instant::FAR_FUTURE)));
        expected.sort();
        prop_assert_eq!(left, expected);
    }
}

/// The delays of `n` packets of one byte each, offered one after the other so far apart that none waits or is overtaken.
fn delays(jitter: JitterConfig, n: u64) -> Vec<f64> {
    let config = LinkConfig { delay: Duration::from_millis(20), jitter, ..Default::default() };
    let mut link = link(config);
    let delay = |packet: u64| {
        let now = at(packet * 1_000_000);
        link.offer(now, (), 1).unwrap();
        drain(&mut link)[0].0.saturating_since(now).as_secs_f64() * 1e3
    };
    (0..n).map(delay).collect()
}

fn mean_and_deviation(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    (mean, (samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt())
}

/// Against the closed forms of the distributions, within five standard errors of 20,000 packets.
#[test]
fn jitter_has_the_mean_and_the_deviation_of_its_distribution() {
    let ms = |ms: u64| Duration::from_millis(ms);
    let samples: Arc<[Duration]> = [0, 0, 0, 12].map(ms).into();
    // Uniform from 0 to 4 ms with probability 1/2, and from 4 to 20.
    let quantiles: Arc<[(f64, Duration)]> = [(0.0, ms(0)), (0.5, ms(4)), (1.0, ms(20))].into();
    // E = (2 + 12) / 2, E² = (16/3 + (400 + 80 + 16)/3) / 2.
    let of_quantiles = (27.0, (256.0 / 3.0_f64 - 49.0).sqrt());
    for (jitter, (mean, deviation), range) in [
        (JitterConfig::Uniform(ms(20)), (20.0, 20.0 / 3.0_f64.sqrt()), 0.0..=40.0),
        (JitterConfig::Uniform(ms(5)), (20.0, 5.0 / 3.0_f64.sqrt()), 15.0..=25.0),
        (JitterConfig::Normal(ms(3)), (20.0, 3.0), 0.0..=40.0),
        (JitterConfig::Samples(samples), (23.0, 27.0_f64.sqrt()), 20.0..=32.0),
        (JitterConfig::Quantiles(quantiles), of_quantiles, 20.0..=40.0),
        (JitterConfig::None, (20.0, 0.0), 20.0..=20.0),
    ] {
        let delays = delays(jitter.clone(), 20_000);
        let (got_mean, got_deviation) = mean_and_deviation(&delays);
        let error = 5.0 * deviation / 20_000.0_f64.sqrt();
        assert!((got_mean - mean).abs() <= error + 1e-9, "{jitter:?}: {got_mean}");
        // The deviation of a deviation is at most as large for these, whose fourth moments are small.
        assert!((got_deviation - deviation).abs() <= error + 1e-9, "{jitter:?}: {got_deviation}");
        assert!(delays.iter().all(|delay| range.contains(delay)), "{jitter:?}");
    }
}

/// A packet of one millisecond each 10, delays of 20 ± 20 ms: the chance that one arrives before the one sent 10 ms earlier is
/// that of a triangular difference on ± 40 ms to be below −10, (30/40)² / 2.
#[test]
fn packets_overtake_as_often_as_their_delays_say() {
    let config = LinkConfig {
        delay: Duration::from_millis(20),
        jitter: JitterConfig::Uniform(Duration::from_millis(20)),
        reorder: true,
        ..Default::default()
    };
    let (mut link, mut arrivals) = (link(config), vec![Instant::ZERO; 40_000]);
    for packet in 0..40_000 {
        let now = at(packet as u64 * 10_000);
        while let Some(next) = link.next_event().filter(|next| *next <= now) {
            while let Some(packet) = link.poll(next) {
                arrivals[packet] = next;
            }
        }
        link.offer(now, packet, 1).unwrap();
    }
    for (now, packet) in drain(&mut link) {
        arrivals[packet] = now;
    }
    let overtaken = arrivals.windows(2).filter(|pair| pair[1] < pair[0]).count() as f64 / 39_999.0;
    assert!((overtaken - 0.28125).abs() < bound(0.28125, 39_999.0), "{overtaken}");
}

/// Whether a link may change the order or not, jitter takes nothing from the stream that decides about losses.
#[test]
fn jitter_leaves_losses_as_they_were() {
    let lost = |jitter| {
        let mut link = link(LinkConfig {
            delay: Duration::from_millis(9),
            jitter,
            loss: LossConfig::Random(0.3),
            ..Default::default()
        });
        (0..1000).for_each(|packet| link.offer(at(packet), packet, 100).unwrap());
        let arrived: BTreeSet<u64> = drain(&mut link).into_iter().map(|(_, packet)| packet).collect();
        arrived
    };
    let without = lost(JitterConfig::None);
    assert!((600..800).contains(&without.len()));
    assert_eq!(lost(JitterConfig::Uniform(Duration::from_millis(9))), without);
    assert_eq!(lost(JitterConfig::Normal(Duration::from_millis(9))), without);
}

proptest! {
    /// Each packet arrives within its delay ± the jitter, in order where the link keeps it, and at the instant that the link
    /// names, whether it is looked at at each event or only when packets are offered.
    #[test]
    fn order_stays_unless_it_may_change(
        seed: u64, reorder: bool, rate in 10_000u64..10_000_000, jitter in 0u64..50_000, limit in 0u32..9,
        gaps in prop::collection::vec((0u64..20_000, 40u32..1600), 1..60),
    ) {
        let delay = Duration::from_millis(50);
        let jitter = Duration::from_micros(jitter);
        let config = LinkConfig {
            rate: Some(rate), delay, jitter: JitterConfig::Uniform(jitter), reorder, queue: QueueConfig::Packets(limit),
            ..Default::default()
        };
        let run = |greedy: bool| {
            let mut link = Link::new(config.clone(), Rng::from_seed(seed));
            let (mut time, mut arrivals) = (0, Vec::new());
            for (packet, &(gap, bytes)) in gaps.iter().enumerate() {
                time += gap;
                while let Some(next) = link.next_event().filter(|next| greedy && *next <= at(time)) {
                    while let Some(packet) = link.poll(next) { arrivals.push((next, packet)); }
                    assert!(link.next_event().is_none_or(|later| later > next));
                }
                let _ = link.offer(at(time), packet, bytes);
            }
            (if greedy { drain(&mut link) } else { Vec::new() }, arrivals, link)
        };
        let (rest, mut arrivals, link) = run(true);
        arrivals.extend(rest);
        prop_assert_eq!(link.inside(), 0);
        prop_assert!(arrivals.is_sorted_by_key(|(now, _)| *now));
        if !reorder {
            prop_assert!(arrivals.is_sorted_by_key(|(_, packet)| *packet));
        }
        let offers: Vec<(u64, u32)> = gaps.iter().scan(0, |time, &(gap, bytes)| { *time += gap; Some((*time, bytes)) }).collect();
        // Without jitter: the bounds of each packet.
        let plain = textbook(rate, delay, limit as usize, &offers);
        let mut latest = Instant::ZERO;
        let mut seen = vec![None; offers.len()];
        for (now, packet) in arrivals { seen[packet] = Some(now); }
        for (arrival, plain) in seen.iter().zip(plain) {
            prop_assert_eq!(arrival.is_some(), plain.is_some());
            let (Some(arrival), Some(plain)) = (*arrival, plain) else { continue };
            latest = latest.max(plain + jitter);
            prop_assert!(arrival + jitter >= plain && arrival <= latest);
            prop_assert!(!reorder || arrival <= plain + jitter);
        }
        // What nobody looked at meanwhile has arrived all the same, and earlier than the end.
        let (.., mut other) = run(false);
        let lazy: BTreeSet<usize> = std::iter::from_fn(|| other.poll(Instant::FAR_FUTURE)).collect();
        prop_assert_eq!(lazy, (0..seen.len()).filter(|packet| seen[*packet].is_some()).collect());
    }
}

/// Mahimahi's `packetshell` in a few lines: at each opportunity 1500 bytes of what waits, of parts of packets too, pass.
fn mahimahi(trace: &[u32], offers: &[(u64, u32)], until: u64) -> Vec<(Instant, usize)> {
    let (mut arrivals, mut waiting, mut next) = (Vec::new(), VecDeque::new(), 0);
    let period = u64::from(*trace.last().unwrap());
    let times = (0..).flat_map(|round| trace.iter().map(move |time| round * period + u64::from(*time)));
    for time in times.take_while(|time| *time <= until) {
        while next < offers.len() && offers[next].0 <= time * 1000 {
            waiting.push_back((next, offers[next].1));
            next += 1;
        }
        let mut left = 1500;
        while let Some((packet, rest)) = waiting.front_mut().filter(|_| left > 0) {
            let now = left.min(*rest);
            left -= now;
            *rest -= now;
            if *rest == 0 {
                arrivals.push((at(time * 1000), *packet));
                waiting.pop_front();
            }
        }
    }
    arrivals
}

#[test]
fn a_backlog_uses_exactly_the_opportunities() {
    let times = [0, 0, 3, 10, 10, 10, 4000];
    let trace = Some(Trace::new(&times).unwrap());
    let mut link = link(LinkConfig { trace, delay: Duration::from_millis(7), ..Default::default() });
    for packet in 0..21 {
        link.offer(Instant::ZERO, packet, 1500).unwrap();
    }
    let expected = (0..3u64).flat_map(|round| times.map(|time| at((round * 4000 + u64::from(time) + 7) * 1000)));
    assert_eq!(drain(&mut link), expected.zip(0..).collect::<Vec<_>>());
    assert_eq!(Trace::new(&times).unwrap().mean_rate(), 7 * 12_000 / 4);
    assert_eq!(Trace::new(&times).unwrap().longest_hole(), (Duration::from_millis(3990), 6));
}

#[test]
fn what_is_no_trace_is_refused() {
    assert_eq!(Trace::new(&[]), Err(TraceError::Empty));
    assert_eq!(Trace::new(&[0, 0]), Err(TraceError::NoTime));
    assert_eq!(Trace::new(&[1, 5, 4, 9]), Err(TraceError::NotAscending(2)));
    assert_eq!(Trace::new(&[3_600_000]).map(|trace| trace.mean_rate()), Ok(3));
}

proptest! {
    /// Packets of any size at any time; at an instant with opportunities what comes then is too late for those that were used.
    #[test]
    fn a_trace_is_mahimahis(
        gaps in prop::collection::vec(0u32..40, 1..30),
        sends in prop::collection::vec((1u64..60_000, 40u32..4000), 1..60),
        greedy: bool,
    ) {
        let mut time = 0;
        let mut times: Vec<u32> = gaps.iter().map(|gap| { time += gap; time }).collect();
        times.push(time + 1);
        // Off the whole milliseconds, so that nothing comes at the instant of an opportunity.
        let mut time = 0;
        let offers: Vec<(u64, u32)> = sends.iter().map(|&(gap, bytes)| { time += gap; (time / 1000 * 1000 + 1 + time % 999, bytes) }).collect();
        let mut link = link(LinkConfig { trace: Some(Trace::new(&times).unwrap()), ..Default::default() });
        let mut arrivals = Vec::new();
        for (packet, &(time, bytes)) in offers.iter().enumerate() {
            while let Some(next) = link.next_event().filter(|next| greedy && *next <= at(time)) {
                while let Some(packet) = link.poll(next) { arrivals.push((next, packet)); }
            }
            link.offer(at(time), packet, bytes).unwrap();
        }
        let rest = drain(&mut link);
        if greedy {
            arrivals.extend(rest);
            let last = arrivals.last().unwrap().0.as_nanos() / 1_000_000;
            prop_assert_eq!(arrivals, mahimahi(&times, &offers, last));
        }
        prop_assert_eq!(link.inside(), 0);
    }
}

#[test]
fn a_rate_of_zero_is_waited_for() {
    let hour = 3_600_000_000;
    let changes = vec![
        Change { at: at(500_000), what: ChangeKind::Rate(Some(0)) },
        Change { at: at(hour), what: ChangeKind::Rate(Some(16_000)) },
    ];
    for reorder in [false, true] {
        let config = LinkConfig { rate: Some(8_000), changes: changes.clone(), reorder, ..Default::default() };
        let mut link = link(config);
        for packet in 0..2 {
            link.offer(Instant::ZERO, packet, 1000).unwrap();
        }
        // The one being sent ends at the old rate.
        assert_eq!(link.next_event(), Some(at(500_000)));
        assert_eq!(link.poll(at(1_000_000)), Some(0));
        assert_eq!((link.next_event(), link.rate()), (Some(at(hour)), Some(0)));
        link.offer(at(2_000_000), 2, 1000).unwrap();
        assert_eq!(drain(&mut link), [(at(hour + 500_000), 1), (at(hour + 1_000_000), 2)]);
    }
    // Without end, until somebody changes it.
    let mut link = link(LinkConfig { rate: Some(8_000), changes: changes[..1].to_vec(), ..Default::default() });
    link.offer(at(600_000), (), 1000).unwrap();
    assert_eq!((link.next_event(), link.inside()), (None, 1));
    link.set_rate(at(hour), Some(8_000));
    assert_eq!(drain(&mut link), [(at(hour + 1_000_000), ())]);
}

/// The rate and the delay of every millisecond of ten minutes.
fn course(schedule: Schedule, seed: u64) -> Vec<(u64, u64)> {
    let delay = Duration::from_millis(20);
    let config = LinkConfig { rate: Some(1_000_000), delay, schedule: Some(schedule), ..Default::default() };
    let mut link = Link::<()>::new(config, Rng::from_seed(seed));
    let see = |milli: u64| {
        link.observe(at(milli * 1000));
        (link.rate().unwrap(), link.delay().as_nanos())
    };
    (0..600_000).map(see).collect()
}

#[test]
fn satellites_hand_over_every_15_seconds() {
    let course = course(Schedule::Starlink, 5);
    let pauses: Vec<usize> =
        (1..course.len()).filter(|milli| course[*milli].0 == 0 && course[milli - 1].0 > 0).collect();
    assert_eq!(pauses.len(), 40);
    assert!(pauses.windows(2).all(|pair| pair[1] - pair[0] == 15_000), "{pauses:?}");
    for pause in pauses {
        let length = course[pause..].iter().take_while(|(rate, _)| *rate == 0).count();
        assert!((20..=151).contains(&length), "{length}");
    }
    assert!(course.iter().all(|(rate, delay)| (*rate == 0 || (600_000..=1_000_000).contains(rate))
        && (20_000_000..=35_000_000).contains(delay)));
}

#[test]
fn mobile_rates_walk_about_that_of_the_link() {
    let runs: Vec<_> = (1..=10).map(|seed| course(Schedule::Lte, seed)).collect();
    assert_ne!(runs[0], runs[1]);
    let rates: Vec<f64> = runs.iter().flatten().map(|(rate, _)| *rate as f64).collect();
    let sent: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 0.0).map(f64::ln).collect();
    // About ten minutes of ten links, of which some seconds at a time belong together: a twentieth either way.
    let (mean, deviation) = mean_and_deviation(&sent);
    assert!((mean - 1e6_f64.ln()).abs() < 0.05 && (deviation - 0.35).abs() < 0.05, "{mean} {deviation}");
    let paused = 1.0 - sent.len() as f64 / rates.len() as f64;
    assert!((0.005..0.02).contains(&paused), "{paused}");
}

/// Against the bounds and means of what is drawn; a packet takes 1.5 ms at 8 Mbit/s.
#[test]
fn hosts_take_the_times_that_they_are_to_take() {
    let packet = 1.5;
    for (processing, rate, longest, mean) in [
        (Processing::Usual, 8_000_000, 1.0, 0.5),
        (Processing::Usual, 80_000_000, 0.15, 0.075),
        (Processing::Packet, 8_000_000, packet, packet / 2.0),
        (Processing::Packet, 800_000, 10.0 * packet, 5.0 * packet),
        (Processing::Wander, 8_000_000, 9.0 * packet, 4.5 * packet),
        (Processing::AtMost(Duration::from_millis(4)), 8_000_000, 4.0, 2.0),
        (Processing::AtMost(Duration::ZERO), 8_000_000, 0.0, 0.0),
    ] {
        let (mut times, mut rng) = (processing.on_route(rate), Rng::from_seed(1));
        // A packet each 100 ms: about 2000 draws of what wanders.
        let drawn: Vec<f64> =
            (0..20_000).map(|packet| times.draw(at(packet * 100_000), &mut rng).as_secs_f64() * 1e3).collect();
        assert!(drawn.iter().all(|time| *time <= longest), "{processing:?}");
        let (got, _) = mean_and_deviation(&drawn);
        assert!((got - mean).abs() <= 0.05 * mean, "{processing:?}: {got}");
    }
}
