//! What strangers may make this host do: public-key operations for packets that nobody has authenticated yet, and answers
//! that are much longer than what asked for them.
//!
//! Each class of packets has token buckets of its own, so that one kind cannot starve another: one bucket for all sources
//! together, and one for each source prefix (IPv4 /24, IPv6 /56), so that one network cannot starve the others. In a base
//! exchange the configured locators of peers have buckets to themselves instead: strangers elsewhere cannot empty those,
//! however many addresses they have, nor can a neighbour in the same network that does not receive at such an address. So
//! what a host does for strangers is bounded by the common bucket and one bucket for each configured locator.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use clock::Instant;

use crate::rate::Bucket;
pub use crate::rate::Rate;

/// So many prefixes are remembered per class; more only come where `total` is very large.
const PREFIXES: usize = 1024;

/// The limits of one class of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// For all sources together.
    pub total: Rate,
    /// For each source prefix.
    pub prefix: Rate,
}

/// The limits of all classes. With P-384 the defaults are a few per cent of a core, all classes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// I1s: each costs a MAC and an answer.
    pub i1: Limit,
    /// I2s that solve a puzzle: each costs an agreement, a verification and a signature, about 2 ms with P-384.
    pub i2: Limit,
    /// I2s with a solution that was used before by an I2 that failed.
    pub i2_again: Limit,
    /// R1s that show that their sender has received our I1: each costs a verification, about 1 ms with P-384.
    pub r1: Limit,
    /// R1s that do not show it, as those of hosts other than Sinnet.
    pub r1_bare: Limit,
    /// Packets other than I1 that a relay passes on: each costs a MAC.
    pub relayed: Limit,
    /// NOTIFYs: each costs a verification. The source may be forged, so there are few.
    pub notify: Limit,
    /// Answers to packets whose source may be forged, where they are more than three times as long; and signed notices.
    pub replies: Limit,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            i1: Limit { total: Rate::new(2_000, 2_000), prefix: Rate::new(100, 100) },
            i2: Limit { total: Rate::new(10, 20), prefix: Rate::new(4, 8) },
            i2_again: Limit { total: Rate::new(2, 4), prefix: Rate::new(1, 2) },
            r1: Limit { total: Rate::new(20, 40), prefix: Rate::new(4, 8) },
            r1_bare: Limit { total: Rate::new(10, 20), prefix: Rate::new(4, 4) },
            relayed: Limit { total: Rate::new(2_000, 2_000), prefix: Rate::new(200, 200) },
            notify: Limit { total: Rate::new(4, 8), prefix: Rate::new(2, 4) },
            replies: Limit { total: Rate::new(20, 40), prefix: Rate::new(4, 8) },
        }
    }
}

/// A class of packets or answers with limits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    I1,
    I2,
    I2Again,
    R1,
    R1Bare,
    Relayed,
    Notify,
    Reply,
}

impl Class {
    fn limit(self, limits: &Limits) -> Limit {
        match self {
            Self::I1 => limits.i1,
            Self::I2 => limits.i2,
            Self::I2Again => limits.i2_again,
            Self::R1 => limits.r1,
            Self::R1Bare => limits.r1_bare,
            Self::Relayed => limits.relayed,
            Self::Notify => limits.notify,
            Self::Reply => limits.replies,
        }
    }

    /// Where a peer is expected, only its own bucket counts.
    fn has_reserve(self) -> bool {
        matches!(self, Self::I1 | Self::I2 | Self::R1 | Self::Reply)
    }
}

/// What is left to strangers.
#[derive(Default)]
pub(crate) struct Budget {
    classes: BTreeMap<Class, State>,
}

#[derive(Default)]
struct State {
    total: Bucket,
    prefixes: BTreeMap<Prefix, Bucket>,
}

impl Budget {
    /// Takes one operation of a class for a packet from `source`. `known`: a configured peer is expected there.
    pub(crate) fn take(&mut self, now: Instant, limits: &Limits, class: Class, source: IpAddr, known: bool) -> bool {
        let limit = class.limit(limits);
        let state = self.classes.entry(class).or_default();
        let free = known && class.has_reserve();
        // The common bucket comes first: a flood from invented sources does not even fill the table.
        if !free && !state.total.has(now, limit.total) {
            return false;
        }
        let prefix = if free { Prefix::Host(source.to_canonical()) } else { Prefix::of(source) };
        let mut bucket = state.prefixes.get(&prefix).copied().unwrap_or_default();
        if !bucket.take(now, limit.prefix) {
            return false;
        }
        if !free {
            state.total.take(now, limit.total);
        }
        state.make_room(now);
        state.prefixes.insert(prefix, bucket);
        true
    }
}

impl State {
    /// Forgets prefixes that have everything left, and if that is not enough the one that was quiet for longest.
    fn make_room(&mut self, now: Instant) {
        if self.prefixes.len() < PREFIXES {
            return;
        }
        self.prefixes.retain(|_, bucket| !bucket.is_full(now));
        while self.prefixes.len() >= PREFIXES {
            let oldest = self.prefixes.iter().min_by_key(|(prefix, bucket)| (bucket.since, **prefix));
            let Some(prefix) = oldest.map(|(prefix, _)| *prefix) else { return };
            self.prefixes.remove(&prefix);
        }
    }
}

/// A peer's own address, or a network: the smallest that a single stranger commonly has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Prefix {
    /// A configured locator.
    Host(IpAddr),
    /// The upper 24 bits.
    V4(u32),
    /// The upper 56 bits.
    V6(u64),
}

impl Prefix {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits() >> 8),
            IpAddr::V6(address) => Self::V6((Ipv6Addr::to_bits(address) >> 72) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use clock::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn v4(third: u8, last: u8) -> IpAddr {
        IpAddr::from([192, 0, third, last])
    }

    /// A token bucket's own bound: burst + rate · time.
    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let limits = Limits::default();
        let Limit { total, prefix } = limits.i2;
        let mut budget = Budget::default();
        let one = (0..10_000).filter(|now| budget.take(at(*now), &limits, Class::I2, v4(0, 1), false)).count();
        assert!(one.abs_diff((prefix.burst + 10 * prefix.per_second) as usize) <= 1, "{one}");
        let mut budget = Budget::default();
        let all = (0..10_000_u64).filter(|now| {
            let source = v4((*now % 256) as u8, 1);
            budget.take(at(*now), &limits, Class::I2, source, false)
        });
        let all = all.count();
        assert!(all.abs_diff((total.burst + 10 * total.per_second) as usize) <= 1, "{all}");
    }

    #[test]
    fn neither_a_network_nor_a_class_starves_another() {
        let limits = Limits::default();
        let mut budget = Budget::default();
        // One network that asks for all there is leaves room for another.
        (0..100_000).for_each(|now| _ = budget.take(at(now / 50), &limits, Class::I2, v4(0, now as u8), false));
        assert!(budget.take(at(2_000), &limits, Class::I2, v4(1, 1), false));
        // All networks together leave room for where a peer is expected, and for other classes.
        (0..100_000_u64).for_each(|now| {
            let source = IpAddr::from([10, (now / 256) as u8, now as u8, 1]);
            _ = budget.take(at(2_000 + now / 50), &limits, Class::I2, source, false);
        });
        assert!(!budget.take(at(3_999), &limits, Class::I2, v4(7, 1), false));
        assert!(budget.take(at(3_999), &limits, Class::I2, v4(7, 1), true));
        assert!(budget.take(at(3_999), &limits, Class::Notify, v4(7, 1), false));
        assert!(budget.classes.values().all(|state| state.prefixes.len() <= PREFIXES));
    }

    #[test]
    fn the_table_of_prefixes_is_bounded() {
        let rate = Rate::new(1_000_000, 1_000_000);
        let limits = Limits { i2: Limit { total: rate, prefix: Rate::new(1, 1) }, ..Limits::default() };
        let mut budget = Budget::default();
        let source = |number: u32| IpAddr::from(((0x2001_0db8_u128 << 96) | u128::from(number) << 72).to_be_bytes());
        for number in 0..3 * PREFIXES as u32 {
            assert!(budget.take(Instant::ZERO, &limits, Class::I2, source(number), false));
            assert!(!budget.take(Instant::ZERO, &limits, Class::I2, source(number), false));
        }
        assert_eq!(budget.classes[&Class::I2].prefixes.len(), PREFIXES);
        // All have earned their token again: the next one needs no more room than itself.
        assert!(budget.take(Instant::ZERO + SECOND, &limits, Class::I2, source(9), false));
        assert!(budget.classes[&Class::I2].prefixes.len() <= PREFIXES);
    }

    #[test]
    fn prefixes_are_24_and_56_bits() {
        let same = |a: &str, b: &str| Prefix::of(a.parse().unwrap()) == Prefix::of(b.parse().unwrap());
        assert!(same("192.0.2.1", "192.0.2.255") && !same("192.0.2.1", "192.0.3.1"));
        assert!(same("2001:db8:0:ff::1", "2001:db8::2") && !same("2001:db8:0:100::1", "2001:db8::1"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.9"));
    }
}
