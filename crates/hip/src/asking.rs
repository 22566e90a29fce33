//! What an Initiator asks with: the I1, and what it remembers of having asked.
//!
//! The first I1 is that of RFC 7401 §5.3.1, with nothing but DH_GROUP_LIST. The R1 to it is many times as long, and goes to
//! whoever the I1 says it is from; so a Responder sends few of those, and in a flood none. The I1s that follow are padded
//! until the answer is at most three times as long, and need none of the few; so is the first one to a peer that was a Sinnet
//! before. The padding is a parameter of those for experiments (RFC 7401 §5.2.1: 32768 to 49151) with an even number:
//! hosts that do not know it skip it.
//!
//! Its first 16 bytes are random. A Sinnet Responder sends them back behind the signature of the R1, in an
//! ECHO_RESPONSE_UNSIGNED (RFC 7401 §5.2.23), which no host gets that did not ask. Who does not see our I1 cannot make such
//! an R1, not even with the signature of one that it has fetched for itself. R1s without it are still taken, from hosts other
//! than Sinnet; one with it takes their place.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use rand_core::CryptoRng;
use wire::Hit;
use wire::hip::{Builder, HEADER_LEN, Packet, PacketKind, Parameter, append};

use crate::config::HostConfig;
use crate::exchange::unmapped;
use crate::identity::HostIdentity;
use crate::route::Route;

/// SINNET_PADDING.
const PARAMETER: u16 = 0x9e60;
/// Bytes of the cookie.
const COOKIE: usize = 16;
/// So many other R1s are kept while one is being answered.
const OTHERS: usize = 4;
/// So many R1s with a counter that went back, each the answer to another I1, are needed to believe it.
const LOWER: u32 = 3;

/// The I1s of one exchange, and what came back.
#[derive(Clone, Default)]
pub(crate) struct Asked {
    cookie: [u8; COOKIE],
    /// The routes on which an I1 went out; an R1 is taken on no other.
    routes: Vec<Route>,
    /// I1s that went out.
    sent: u32,
    /// The first one is padded, too.
    padded: bool,
    /// An I1 went out without a cookie, and no R1 has been taken for its answer.
    plain: bool,
    /// #I of the R1 that is being answered.
    puzzle: Vec<u8>,
    /// That R1 has our cookie.
    pub(crate) echoed: bool,
    /// R1s that came beside it, those with our cookie first. Only their form is known to be right.
    others: VecDeque<(Route, Vec<u8>)>,
    /// The last R1 that came from elsewhere and shows nothing.
    pub(crate) stray: Option<Box<(Route, Vec<u8>)>>,
    /// An I2 went out.
    pub(crate) answered: bool,
    /// There was more than one R1, so somebody may be lying.
    pub(crate) contested: bool,
    /// Signed R1s whose counter was lower than one before.
    pub(crate) lower: u32,
    /// `sent` when the last of them came.
    lower_at: u32,
}

impl Asked {
    /// `padded`: the peer is known to be a Sinnet.
    pub(crate) fn new(rng: &mut dyn CryptoRng, padded: bool) -> Self {
        let mut asked = Self { padded, ..Self::default() };
        rng.fill_bytes(&mut asked.cookie);
        asked
    }

    /// An I1 to send on `route` (RFC 7401 §5.3.1).
    pub(crate) fn i1(&mut self, config: &HostConfig, own: &HostIdentity, peer: Hit, route: Route) -> Vec<u8> {
        self.sent = self.sent.saturating_add(1);
        if !self.routes.contains(&route) {
            self.routes.push(route);
        }
        let groups: Vec<u8> = config.groups.iter().map(|group| group.number()).collect();
        // Two headers of parameters, one of the packet, and the groups with their padding.
        let taken = HEADER_LEN + 4 + (groups.len() + 4).next_multiple_of(8);
        let room = usize::from(config.i1_length).saturating_sub(taken);
        let builder = Builder::new(PacketKind::I1, own.hit(), peer)
            .anonymous(own.is_anonymous())
            .push(&Parameter::DhGroupList(groups));
        let is_padded = room >= COOKIE && (self.padded || self.sent > 1);
        self.plain |= !is_padded;
        let padding = is_padded.then(|| {
            let mut contents = self.cookie.to_vec();
            contents.resize(room, 0);
            Parameter::Unknown { kind: PARAMETER, contents }
        });
        // A list of groups never is longer than a packet.
        builder.push_some(padding.as_ref()).finish().unwrap_or_default()
    }

    /// Whether an I1 went out on this route.
    pub(crate) fn on(&self, route: Route) -> bool {
        self.routes.contains(&route)
    }

    /// Whether an R1 names a server that our I1 went to.
    pub(crate) fn went_by(&self, r1: &Packet<'_>) -> bool {
        let asked =
            |server: &Ipv6Addr| self.routes.iter().any(|route| route.remote.ip().to_canonical() == unmapped(*server));
        r1.via_rvs().is_some_and(|servers| servers.iter().any(asked))
    }

    /// Whether an R1 has our cookie.
    pub(crate) fn is_echoed(&self, r1: &Packet<'_>) -> bool {
        r1.parameters()
            .any(|parameter| matches!(parameter, Parameter::EchoResponseUnsigned(echo) if *echo == self.cookie))
    }

    /// Whether an R1 without our cookie is the first that comes after an I1 without one. As with a cookie only one is.
    pub(crate) fn expects_plain(&mut self) -> bool {
        std::mem::take(&mut self.plain)
    }

    /// This R1 is the one that is answered.
    pub(crate) fn answer(&mut self, puzzle: &[u8], echoed: bool) {
        (self.puzzle, self.echoed) = (puzzle.to_vec(), echoed);
    }

    /// Keeps an R1 that came beside the one that is being answered, should that be the wrong one.
    pub(crate) fn keep(&mut self, route: Route, r1: &Packet<'_>, echoed: bool) {
        let same = |bytes: &[u8]| Packet::parse(bytes).is_ok_and(|other| other.puzzle() == r1.puzzle());
        if r1.puzzle().is_none_or(|puzzle| puzzle.i == self.puzzle) || self.others.iter().any(|(_, r1)| same(r1)) {
            return;
        }
        self.contested = true;
        if echoed {
            self.others.push_front((route, r1.bytes().to_vec()));
            self.others.truncate(OTHERS);
        } else if self.others.len() < OTHERS {
            self.others.push_back((route, r1.bytes().to_vec()));
        }
    }

    /// The next R1 to answer.
    pub(crate) fn next(&mut self) -> Option<(Route, Vec<u8>)> {
        self.others.pop_front()
    }

    /// A signed R1 has a lower counter than one before. True once that is to be believed: three I1s, which takes seconds,
    /// were answered so, and no R1 with the higher counter came. Whoever replays old R1s wins nothing but that we answer one
    /// where we would have waited: its puzzle is not the Responder's any more, R2 needs a fresh signature, and the higher
    /// counter is forgotten only when an R2 has come.
    pub(crate) fn believes_lower(&mut self) -> bool {
        if self.lower_at != self.sent {
            self.lower_at = self.sent;
            self.lower = self.lower.saturating_add(1);
        }
        self.lower >= LOWER
    }
}

/// Whether an I1 is one that Sinnet has made longer.
pub(crate) fn is_padded(i1: &Packet<'_>) -> bool {
    i1.parameters().any(|parameter| parameter.kind() == PARAMETER)
}

/// The R1 as an answer to this I1: with the cookie, if there is one.
pub(crate) fn echo(mut r1: Vec<u8>, i1: &Packet<'_>) -> Vec<u8> {
    let cookie = i1.parameters().find_map(|parameter| match parameter {
        Parameter::Unknown { kind: PARAMETER, contents } => contents.get(..COOKIE),
        _ => None,
    });
    if let Some(cookie) = cookie {
        // An R1 without room for it is still an R1.
        _ = append(&mut r1, &Parameter::EchoResponseUnsigned(cookie.to_vec()));
    }
    r1
}
