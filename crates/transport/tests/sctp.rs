//! SCTP over networks that lose, delay, reorder and break as they like: all data arrive, once, and every run ends; the
//! check vectors of the rules of CMT; and plain SCTP as the case of one path.

use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use congestion::Rule;
use proptest::prelude::*;
use testkit::{Fate, Outcome};
use transport::sctp::{Buffers, CwndUpdate, News, Retransmission, SctpConfig, Splitting, missing_reports};
use transport::{Flags, FlowConfig};

/// Runs until all data are acknowledged, or for a hundred virtual hours.
fn associate(config: SctpConfig, fate: &mut Fate<'_>) -> Outcome {
    testkit::connect(&FlowConfig::Sctp(Arc::new(config)), Duration::from_secs(360_000), fate)
}

fn rule(name: &str) -> Rule {
    name.parse().unwrap()
}

fn options() -> impl Strategy<Value = SctpConfig> {
    let rules = prop::sample::select(vec!["reno-sp", "reno-mp", "rp1", "rp2", "lia-byte", "lia", "olia", "balia"]);
    let updates = prop::sample::select(vec![CwndUpdate::Cumulative, CwndUpdate::PathV1, CwndUpdate::PathV2]);
    let splitting =
        prop::sample::select(vec![Splitting::None, Splitting::Sender, Splitting::Receiver, Splitting::Both]);
    let policies = prop::sample::select(vec![
        Retransmission::Same,
        Retransmission::Cwnd,
        Retransmission::Ssthresh,
        Retransmission::FastestPathFirst,
    ]);
    let switches = prop::array::uniform6(any::<bool>());
    (rules, updates, splitting, policies, switches, 1usize..4, 1u64..400, 4u64..300, 4u64..300).prop_map(
        |(name, cwnd_update, splitting, retransmission, switches, paths, packets, send, receive)| {
            let [concurrent, split, dac, nr_sack, ordered, delayed] = switches;
            SctpConfig {
                concurrent,
                split_fast_retransmit: split,
                delayed_ack_for_cmt: dac,
                nr_sack,
                ordered,
                delayed_ack: delayed.then_some(Duration::from_millis(200)),
                cwnd_update,
                splitting,
                retransmission,
                send_buffer: send * 1500,
                receive_buffer: receive * 1500,
                data: Some(packets * 1452),
                ..SctpConfig::cmt(paths, rule(name))
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// The oracle is the application: so many messages were to be sent, and so many arrived.
    #[test]
    fn all_data_arrive_over_any_network(
        config in options(),
        loss in prop::array::uniform3(0.0..0.4_f64),
        delay in prop::array::uniform3(1u64..400),
        spread in 0u64..100,
        broken in prop::option::of((0u8..3, 0u64..5_000)),
        seed in any::<u64>(),
    ) {
        let (paths, packets) = (config.paths, config.data.unwrap().div_ceil(1452));
        let mut random = Rng::from_seed(seed);
        // One path breaks for good some time, unless it is the only one.
        let broken = broken.filter(|(path, _)| paths > 1 && usize::from(*path) < paths);
        let outcome = associate(config, &mut |now, packet| {
            let path = usize::from(packet.path);
            let gone = broken.is_some_and(|(dead, at)| {
                packet.path == dead && now >= Instant::ZERO + Duration::from_millis(at)
            });
            let arrives = !gone && !random.chance(loss[path]);
            arrives.then(|| Duration::from_millis(delay[path] + random.below(spread + 1)))
        });
        prop_assert!(outcome.finished.is_some(), "stuck at {} packets", outcome.receiver.delivered());
        prop_assert_eq!(outcome.receiver.delivered(), packets);
        let (sent, arrived) = (outcome.sender.counters(), outcome.receiver.statistics());
        prop_assert!(arrived.packets <= sent.sent);
        prop_assert_eq!(sent.sent - sent.retransmissions, packets);
        prop_assert!(arrived.duplicates <= sent.retransmissions);
        let new: u64 = outcome.receiver.paths().iter().map(|path| path.new).sum();
        prop_assert_eq!(new, packets);
        prop_assert_eq!(outcome.sender.state().2, 0, "nothing is outstanding at the end");
    }

    /// On one path the rules of CMT say what RFC 9260 says: with DAC off, which delays SACKs that SCTP sends at once,
    /// and CUC in its first version, every packet leaves at the same instant.
    #[test]
    fn with_one_path_cmt_is_sctp(
        loss in 0.0..0.2_f64,
        spread in 0u64..30,
        packets in 1u64..300,
        retransmission in prop::sample::select(vec![
            Retransmission::Same, Retransmission::Cwnd, Retransmission::Ssthresh, Retransmission::FastestPathFirst,
        ]),
        seed in any::<u64>(),
    ) {
        let run = |config: SctpConfig| {
            let (mut random, mut sent) = (Rng::from_seed(seed), Vec::new());
            let config = SctpConfig { data: Some(packets * 1452), ..config };
            let outcome = associate(config, &mut |now, packet| {
                if !packet.flags.has(Flags::ACK) {
                    sent.push((now, packet.position, packet.path));
                }
                (!random.chance(loss)).then(|| Duration::from_millis(40 + random.below(spread + 1)))
            });
            (sent, outcome.finished)
        };
        let plain = run(SctpConfig::plain(1));
        let cmt = run(SctpConfig {
            cwnd_update: CwndUpdate::PathV1,
            delayed_ack_for_cmt: false,
            nr_sack: false,
            ordered: true,
            retransmission,
            ..SctpConfig::cmt(1, rule("reno-mp"))
        });
        prop_assert_eq!(plain, cmt);
    }
}

fn vector(id: &str) -> (serde_json::Value, serde_json::Value) {
    let all: serde_json::Value =
        serde_json::from_str(include_str!("../../../vectors/algorithms/vectors.json")).unwrap();
    let vector = all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id).unwrap();
    (vector["input"].clone(), vector["output"].clone())
}

#[test]
fn sfr_1() {
    let (input, output) = vector("sfr.1");
    let on = |path: &serde_json::Value| {
        let tsns = input["newly_acked"].as_array().unwrap().iter().filter(|pair| pair[1] == *path);
        let tsns: Vec<u64> = tsns.map(|pair| pair[0].as_u64().unwrap()).collect();
        Some(News { lowest: *tsns.iter().min()?, highest: *tsns.iter().max()? })
    };
    for missing in input["missing"].as_array().unwrap() {
        let tsn = missing[0].as_u64().unwrap();
        let reports = missing_reports(tsn, on(&missing[1]), true, false, 2);
        assert_eq!(u64::from(reports), output["missing_increment"][tsn.to_string()].as_u64().unwrap(), "TSN {tsn}");
    }
}

#[test]
fn dac_1() {
    let (input, output) = vector("dac.1");
    let expected = output["missing_increment"].as_array().unwrap();
    for (case, expected) in input["args"].as_array().unwrap().iter().zip(expected) {
        let number = |index: usize| case[index].as_u64().unwrap();
        let news = News { lowest: number(0), highest: number(1) };
        let reports = missing_reports(number(2), Some(news), case[3].as_bool().unwrap(), true, number(4) as u8);
        assert_eq!(u64::from(reports), expected.as_u64().unwrap(), "{case}");
    }
}

#[test]
fn bufsplit_1() {
    let (input, output) = vector("bufsplit.1");
    let number = |key: &str| input[key].as_u64().unwrap();
    let outstanding_all = number("total_outstanding");
    let buffers = Buffers {
        send: number("send_buffer"),
        advertised: number("arwnd"),
        queued: number("queued_on_path"),
        outstanding: number("outstanding_on_path"),
        outstanding_all,
        mtu: number("mtu"),
        paths: number("paths"),
    };
    assert_eq!(buffers.sender_allows(), output["sender_ok"].as_bool().unwrap());
    assert_eq!(buffers.receiver_allows(), output["receiver_ok"].as_bool().unwrap());
    assert!(buffers.allow(Splitting::Sender) && !buffers.allow(Splitting::Both));
}
