//! What strangers may cost: floods of packets that each are right up to the check that costs most.

mod common;

use clock::Duration;
use common::{Pair, Side};
use hip::budget::{Limit, Limits, Rate};
use hip::{Costs, Refused, Route};
use wire::hip::{Builder, Notification, PacketKind, Parameter, Signature};

const SECOND: Duration = Duration::from_secs(1);

fn route(remote: &str) -> Route {
    Route { local: "10.1.0.2:10500".parse().unwrap(), remote: remote.parse().unwrap() }
}

/// Two hosts whose second one is limited as said.
fn pair(limits: Limits) -> Pair {
    let [a, b] = ["10.1.0.1", "10.1.0.2"].map(|address| common::config(&common::addresses(&[address], 10500)));
    Pair::new(common::identities(), [a, hip::HostConfig { limits, ..b }], 1)
}

/// As if there were no budget: what the attacks do then.
fn unlimited() -> Limits {
    let rate = Rate::new(1_000_000, 1_000_000);
    let all = Limit { total: rate, prefix: rate };
    Limits { i2: all, i2_again: all, r1: all, r1_bare: all, notify: all, replies: all }
}

/// Hands packets to the second host, 50,000 a second. What that cost.
fn flood(pair: &mut Pair, count: u32, mut packet: impl FnMut(u32) -> (Route, Vec<u8>)) -> Costs {
    let before = pair.sides[1].host.costs();
    for number in 0..count {
        pair.now += Duration::from_micros(20);
        let (route, bytes) = packet(number);
        let Side { host, rng, .. } = &mut pair.sides[1];
        host.handle_packet(pair.now, rng, route, &bytes);
        pair.collect(1, &mut |_, _| {});
    }
    pair.sides[1].host.costs().since(&before)
}

/// A NOTIFY in the name of the first host, with a signature that is none.
fn notify(pair: &Pair) -> Vec<u8> {
    Builder::new(PacketKind::Notify, pair.hit(0), pair.hit(1))
        .push(&Parameter::Notification(Notification { message: 24, data: Vec::new() }))
        .push(&Parameter::HipSignature(Signature { algorithm: 7, bytes: vec![1; 96] }))
        .finish()
        .unwrap()
}

#[test]
fn a_flood_of_notifies_costs_a_few_verifications() {
    for (limits, count, most) in [(Limits::default(), 100_000, 16), (unlimited(), 100, 100)] {
        let mut pair = pair(limits);
        pair.exchange(&mut |flying, fly| fly.push(flying));
        let forged = notify(&pair);
        // Two seconds, from as many networks as there are packets.
        let cost = flood(&mut pair, count, |number| {
            let remote = format!("{}.{}.{}.7:10500", 11 + number / 65536, number / 256 % 256, number % 256);
            (route(&remote), forged.clone())
        });
        let refused = pair.sides[1].host.counters().over_budget;
        assert!(cost.verifications <= most, "{cost:?}");
        assert_eq!(cost.verifications + refused, u64::from(count));
        assert_eq!((cost.hashes, cost.macs, cost.agreements, cost.signatures), (0, 0, 0, 0));
        assert_eq!(pair.sides[1].host.costs_of_strangers().verifications, cost.verifications);
        // Without a budget each one is verified: the state that this test is about.
        assert_eq!(count == 100, refused == 0);
        // The log hears of it once in a minute.
        let told = pair.sides[1].refused.iter().filter(|what| **what == Refused::OverBudget).count();
        assert_eq!(told, usize::from(refused > 0));
        pair.check_paths(1);
    }
}

#[test]
fn what_is_refused_is_told_once_a_minute() {
    let mut pair = pair(Limits::default());
    pair.exchange(&mut |flying, fly| fly.push(flying));
    let forged = notify(&pair);
    for _ in 0..10 {
        flood(&mut pair, 100, |_| (route("10.9.0.1:10500"), forged.clone()));
        pair.now += SECOND * 30;
    }
    let told = |what| pair.sides[1].refused.iter().filter(|told| **told == what).count();
    // Ten times in 300 s, every 30 s.
    assert_eq!((told(Refused::Signature), told(Refused::OverBudget)), (5, 5));
}
