//! A sender and a receiver over a network that loses, delays and reorders as it likes: all data arrive, once.

use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use congestion::Rule;
use proptest::prelude::*;
use recovery::DupThresh;
use testkit::{Fate, Outcome};
use transport::{BlockPool, Details, Flags, FlowConfig, Packet, Recovery, TcpConfig, TcpReceiver, TcpSender, UndoBy};

/// Runs until all data are acknowledged, or for ten virtual hours.
fn connect(config: TcpConfig, fate: &mut Fate<'_>) -> Outcome {
    testkit::connect(&FlowConfig::Tcp(Arc::new(config)), Duration::from_secs(36_000), fate)
}

fn config(recovery: Recovery, details: Details, rule: &str) -> TcpConfig {
    let base = match details {
        Details::Rfc => TcpConfig { recovery, ..TcpConfig::default() },
        Details::Ns2 => TcpConfig::ns2(recovery),
    };
    TcpConfig { rule: rule.parse::<Rule>().unwrap(), ..base }
}

proptest! {
    /// The oracle is the application: so many bytes were to be sent, and so many arrived in order.
    #[test]
    fn all_data_arrive_over_any_network(
        recovery in prop::sample::select(vec![Recovery::Reno, Recovery::NewReno, Recovery::Sack]),
        details in prop::sample::select(vec![Details::Rfc, Details::Ns2]),
        rule in prop::sample::select(vec!["newreno", "cubic", "vegas"]),
        undo in prop::sample::select(vec![UndoBy::Never, UndoBy::Eifel, UndoBy::DuplicateReports]),
        dupthresh in prop::sample::select(vec![DupThresh::Fixed(3), DupThresh::Increment { now: 3 }, DupThresh::Careful]),
        delayed in any::<bool>(),
        rack in any::<bool>(),
        timestamps in any::<bool>(),
        jitter in 0u64..3,
        window in 1u32..200,
        data in 1u64..400_000,
        loss in 0.0..0.3_f64,
        spread in 0u64..40,
        seed in any::<u64>(),
    ) {
        let config = TcpConfig {
            undo,
            dupthresh,
            rack,
            delayed_ack: delayed.then_some(Duration::from_millis(40)),
            timestamps: timestamps || undo == UndoBy::Eifel,
            send_jitter: Duration::from_millis(jitter),
            receiver_window: window,
            data: Some(data),
            ..config(recovery, details, rule)
        };
        let mss = u64::from(config.mss());
        let mut random = Rng::from_seed(seed);
        let outcome = connect(config, &mut |_, _| {
            (!random.chance(loss)).then(|| Duration::from_millis(20 + random.below(spread + 1)))
        });
        prop_assert!(outcome.finished.is_some(), "stuck at {} packets", outcome.receiver.delivered());
        prop_assert_eq!(outcome.receiver.delivered(), data.div_ceil(mss));
        let (sent, arrived) = (outcome.sender.counters(), outcome.receiver.statistics());
        prop_assert!(arrived.packets <= sent.sent);
        prop_assert_eq!(sent.sent - sent.retransmissions, data.div_ceil(mss) + 1);
        prop_assert!(arrived.duplicates <= sent.retransmissions);
    }
}

/// For a second of its life the path takes half a second longer: the timer runs out though nothing is lost.
fn with_a_late_second(config: TcpConfig) -> Outcome {
    let outage = Duration::from_secs(2);
    connect(config, &mut |now, packet| {
        let since_start = now - Instant::ZERO;
        let late = since_start >= outage && since_start < outage + Duration::from_secs(1);
        let there = if late && !packet.flags.has(Flags::ACK) { 550 } else { 50 };
        Some(Duration::from_millis(there))
    })
}

#[test]
fn needless_reductions_are_taken_back() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let with = |undo| {
            let base = config(recovery, Details::Rfc, "newreno");
            with_a_late_second(TcpConfig { undo, data: Some(6_000_000), receiver_window: 40, ..base })
        };
        let never = with(UndoBy::Never);
        assert!(never.sender.counters().timeouts > 0 && never.sender.counters().undone == 0);
        for undo in [UndoBy::Eifel, UndoBy::DuplicateReports] {
            let outcome = with(undo);
            assert!(outcome.sender.counters().undone > 0, "{recovery:?} {undo:?}");
            assert!(outcome.sender.state().1 > never.sender.state().1, "{recovery:?} {undo:?}");
            assert!(outcome.finished <= never.finished, "{recovery:?} {undo:?}");
        }
    }
}

/// A retransmission is lost too, so the timer has to run out, while selective acknowledgments let new data out behind the
/// hole for a second. What they report has left the network: the threshold is half of what is in it, not of all that is not
/// acknowledged in order (RFC 5681 equation (4) with the pipe of RFC 6675 §4).
#[test]
fn a_lost_retransmission_does_not_raise_the_threshold() {
    let config = TcpConfig { data: Some(6_000_000), ..config(Recovery::Sack, Details::Rfc, "newreno") };
    let mut lost = 0;
    let outcome = connect(config, &mut |_, packet| {
        let gone = !packet.flags.has(Flags::ACK) && packet.position == 200 && lost < 2;
        lost += u32::from(gone);
        (!gone).then(|| Duration::from_millis(20))
    });
    let counters = outcome.sender.counters();
    assert_eq!((lost, counters.timeouts, counters.reductions), (2, 1, 2));
    // Less than 400 packets were in the network at the first loss, which left half of them.
    assert!(outcome.sender.state().1 <= 100.0, "{}", outcome.sender.state().1);
}

/// RFC 3168 §6.1: a mark halves the window once a round trip, and nothing is sent again.
#[test]
fn marks_reduce_the_window_without_loss() {
    let mut count = 0_u32;
    let marked = TcpConfig { ecn: true, data: Some(3_000_000), ..config(Recovery::Sack, Details::Rfc, "newreno") };
    let config = Arc::new(marked);
    let mut sender = TcpSender::new(Arc::clone(&config), Rng::from_seed(1));
    let mut receiver = TcpReceiver::new(&config);
    let mut pool = BlockPool::default();
    let (mut now, mut reduced) = (Instant::ZERO, 0);
    sender.start(now);
    while !sender.is_complete() {
        // A round trip at a time.
        let mut flight: Vec<Packet> = std::iter::from_fn(|| sender.poll_transmit(now)).collect();
        assert!(flight.iter().all(|packet| packet.flags.has(Flags::ECN_CAPABLE)));
        reduced += flight.iter().filter(|packet| packet.flags.has(Flags::REDUCED)).count();
        now += Duration::from_millis(50);
        for packet in &mut flight {
            count += 1;
            packet.flags = packet.flags.with_if(Flags::MARKED, count.is_multiple_of(100));
            receiver.handle_input(now, packet);
        }
        let acks: Vec<Packet> = std::iter::from_fn(|| receiver.poll_transmit(&mut pool)).collect();
        if acks.is_empty()
            && let Some(at) = receiver.poll_timeout()
        {
            now = at;
            receiver.handle_timeout(now);
        }
        now += Duration::from_millis(50);
        for ack in acks.into_iter().chain(receiver.poll_transmit(&mut pool)) {
            sender.handle_input(now, &ack, &[]);
        }
    }
    let counters = sender.counters();
    assert!(counters.reductions > 5 && counters.retransmissions == 0, "{counters:?}");
    // Each reduction is told to the receiver, but for one that is still to be.
    assert!(counters.reductions - reduced as u64 <= 1, "{counters:?} {reduced}");
}
