//! Why packets are refused, as an event for the log: once a minute for each reason, whatever comes in.

use std::collections::BTreeMap;
use std::fmt;

use clock::{Duration, Instant};
use wire::Hit;

use crate::event::Event;
use crate::host::Refusal;
use crate::route::Route;

/// Least time between two events of one reason.
const SILENCE: Duration = Duration::from_secs(60);

/// Why packets were refused. `Display` is the end of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// No HIP packet, or one whose parameters make no sense.
    Malformed,
    /// For another HIT than ours.
    NotForUs,
    /// From a host that is not among the peers.
    Stranger,
    /// A puzzle solution that is wrong, too old, or of another place.
    Puzzle,
    /// A HIP_MAC that is wrong.
    Mac,
    /// A signature that is wrong, or an identity that is not that of the HIT.
    Signature,
    /// A Diffie-Hellman value that is not one.
    DiffieHellman,
    /// No algorithm that both hosts have, or not the one that both would have chosen.
    Algorithm,
    /// An R1 from where no I1 went.
    Elsewhere,
    /// R1s of an older generation than one before.
    WentBack,
    /// More than strangers may cost ([`crate::budget`]).
    OverBudget,
    /// More than a peer may cost, or have at once.
    OverShare,
    /// They name an address where no host can be, or where this one is.
    BadPlace,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "they are no HIP packets, or make no sense",
            Self::NotForUs => "they are for another HIT than ours; does the sender have the right one?",
            Self::Stranger => "that identity is not among the peers",
            Self::Puzzle => "the puzzle is not solved, or is too old",
            Self::Mac => "the HIP_MAC is wrong",
            Self::Signature => "the signature is wrong, or the identity is another",
            Self::DiffieHellman => "the Diffie-Hellman value is none",
            Self::Algorithm => "no algorithm is common, or somebody has changed the offer",
            Self::Elsewhere => "they answer an I1 from where none went",
            Self::WentBack => "the R1 counter is lower than before: its clock was set back, or they are replayed",
            Self::OverBudget => "more come than strangers may cost; only some are looked at",
            Self::OverShare => "the peer asks for more than its share",
            Self::BadPlace => "they name an address where no other host can be",
        })
    }
}

impl Refused {
    /// Nothing where a refusal is a matter of course: packets arrive twice, or late.
    fn of(refusal: Refusal) -> Option<Self> {
        Some(match refusal {
            Refusal::Unexpected | Refusal::Replayed | Refusal::Crossed => return None,
            Refusal::Malformed | Refusal::Syntax => Self::Malformed,
            Refusal::NotForUs => Self::NotForUs,
            Refusal::Stranger => Self::Stranger,
            Refusal::Puzzle => Self::Puzzle,
            Refusal::Mac => Self::Mac,
            Refusal::Signature => Self::Signature,
            Refusal::DiffieHellman => Self::DiffieHellman,
            Refusal::Group | Refusal::Cipher | Refusal::Suite | Refusal::Downgraded | Refusal::TooHard => {
                Self::Algorithm
            }
            Refusal::Elsewhere => Self::Elsewhere,
            Refusal::WentBack => Self::WentBack,
            Refusal::OverBudget => Self::OverBudget,
            Refusal::Share | Refusal::TooMany => Self::OverShare,
            Refusal::BadPlace => Self::BadPlace,
        })
    }
}

/// When each reason was last an event.
#[derive(Default)]
pub(crate) struct RefusalLog(BTreeMap<Refused, Instant>);

impl RefusalLog {
    /// The event, if there was none for this reason lately.
    pub(crate) fn event(&mut self, now: Instant, refusal: Refusal, route: Route, peer: Option<Hit>) -> Option<Event> {
        let what = Refused::of(refusal)?;
        if self.0.get(&what).is_some_and(|last| now.saturating_since(*last) < SILENCE) {
            return None;
        }
        self.0.insert(what, now);
        Some(Event::Refused { what, route, peer })
    }
}
