//! What has to hold, by name; how often each was looked at where it could fail; and what was found.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A property of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Property {
    /// What is delivered was sent by that peer, to this host.
    S1,
    /// No key and nonce twice, no SPI twice.
    S2,
    /// No ESP packet is accepted twice.
    S3,
    /// Nothing goes to an address whose owner has not asked for it there.
    S4,
    /// Both ends of a path agree on keys, SPIs and routes.
    S5,
    /// An association begins by both hosts, and ends for a reason.
    S6,
    /// Nothing leaves in clear.
    S7,
    /// Packets get through soon after the network is good again.
    L1,
    /// All paths are there and alive soon after.
    L2,
    /// A renewal of keys ends, and no sequence number runs out.
    L3,
    /// Every state that is not final has a deadline, or a path.
    L4,
    /// After a restart packets get through at once.
    L5,
    /// TCP progresses.
    L6,
    /// What a peer makes a host hold is bounded, and not held for long.
    R1,
    /// Public-key operations for strangers are few.
    R2,
    /// No more than three bytes leave for one of a stranger.
    R3,
    /// Timers are few, and none is in the past.
    R4,
    /// Peers that are not there cost no timers.
    R5,
    /// A flood by strangers, or a hostile peer, costs others little.
    I1,
    /// What happens to one peer changes nothing for another.
    I2,
    /// The same plan gives the same packets.
    D1,
    /// Nothing panics.
    P1,
}

impl Property {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::S1,
        Self::S2,
        Self::S3,
        Self::S4,
        Self::S5,
        Self::S6,
        Self::S7,
        Self::L1,
        Self::L2,
        Self::L3,
        Self::L4,
        Self::L5,
        Self::L6,
        Self::R1,
        Self::R2,
        Self::R3,
        Self::R4,
        Self::R5,
        Self::I1,
        Self::I2,
        Self::D1,
        Self::P1,
    ];

    /// What it says.
    pub fn text(self) -> &'static str {
        match self {
            Self::S1 => "what is delivered was sent by that peer, to this host",
            Self::S2 => "no key, SPI or sequence number is used twice",
            Self::S3 => "no ESP packet is accepted twice",
            Self::S4 => "no data goes to an address that is not the peer's",
            Self::S5 => "both ends of a path agree on keys, SPIs and routes",
            Self::S6 => "an association begins by both hosts and ends for a reason",
            Self::S7 => "nothing leaves in clear",
            Self::L1 => "packets get through soon after the network is good again",
            Self::L2 => "all paths are there and alive soon after",
            Self::L3 => "a renewal of keys ends before the numbers do",
            Self::L4 => "every state that is not final has a deadline or a path",
            Self::L5 => "packets get through soon after a restart",
            Self::L6 => "TCP progresses",
            Self::R1 => "what a peer makes a host hold is bounded, in bytes and in time",
            Self::R2 => "public-key operations for strangers are few",
            Self::R3 => "at most three bytes leave for one of a stranger",
            Self::R4 => "timers are few and never in the past",
            Self::R5 => "peers that are not there cost no timers",
            Self::I1 => "a flood costs other peers little",
            Self::I2 => "what happens to one peer changes nothing for another",
            Self::D1 => "the same plan gives the same packets",
            Self::P1 => "nothing panics",
        }
    }
}

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|property| property.to_string() == text);
        named.ok_or_else(|| {
            format!("there is no property {text}; they are S1 to S7, L1 to L6, R1 to R5, I1, I2, D1, P1")
        })
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// How often each property was looked at in a state in which it could have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally([u64; Property::ALL.len()]);

impl Tally {
    /// Counts one look.
    pub(crate) fn count(&mut self, property: Property) {
        if let Some(count) = self.0.get_mut(property as usize) {
            *count += 1;
        }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// How often.
    pub fn of(&self, property: Property) -> u64 {
        self.0.get(property as usize).copied().unwrap_or_default()
    }
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which.
    pub property: Property,
    /// When, in milliseconds of the run.
    pub at_ms: u64,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { property, at_ms, what } = self;
        write!(f, "{property} ({}) after {}.{:03} s: {what}", property.text(), at_ms / 1_000, at_ms % 1_000)
    }
}

/// Properties of a run as it goes: counts, and the first that fails.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    pub(crate) tally: Tally,
    pub(crate) finding: Option<Finding>,
}

impl Judge {
    /// Looks at a property; `what` tells what was seen where it does not hold.
    pub(crate) fn check(&mut self, at_ms: u64, property: Property, holds: bool, what: impl FnOnce() -> String) {
        self.tally.count(property);
        if !holds && self.finding.is_none() {
            self.finding = Some(Finding { property, at_ms, what: what() });
        }
    }
}
