//! What a [`crate::Host`] tells its owner: packets to send, events, deadlines, counters.

use clock::Duration;
use scheduler::PathId;
use serde::{Deserialize, Serialize};
use wire::Hit;

use crate::esp::{InboundSa, OutboundSa};
use crate::feedback::Features;
use crate::refused::Refused;
use crate::route::Route;

/// A HIP packet to send. Inside UDP the four zero bytes before it are still missing (RFC 5770 §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// From where to where.
    pub route: Route,
    /// The packet.
    pub bytes: Vec<u8>,
}

/// What happened to an association.
#[derive(Debug)]
pub enum Event {
    /// The peer has proved its identity; its first path follows.
    Established {
        /// The peer.
        peer: Hit,
        /// What both hosts can do, where both want feedback about the paths ([`crate::feedback`]).
        feedback: Option<Features>,
    },
    /// A path has its pair of security associations. Packets may arrive from now on; packets may be sent once it is
    /// verified.
    PathUp {
        /// The peer.
        peer: Hit,
        /// The path's number, never used again in the association.
        path: PathId,
        /// Its locators.
        route: Route,
        /// Seals what goes out on this path.
        outbound: OutboundSa,
        /// Opens what comes in on this path.
        inbound: InboundSa,
        /// The peer is known to receive at the remote locator. Where this is false [`Event::PathVerified`] follows; a
        /// valid ESP packet on the path proves it as well, since its SPI was told to that locator only (RFC 8046 §5.4).
        verified: bool,
    },
    /// The peer is now known to receive at the path's remote locator.
    PathVerified {
        /// The peer.
        peer: Hit,
        /// The path.
        path: PathId,
    },
    /// A path leads elsewhere from now on: the peer is known to be there, or this host has another locator. Its security
    /// associations stay (RFC 8046 §3.2.1).
    PathMoved {
        /// The peer.
        peer: Hit,
        /// The path.
        path: PathId,
        /// Its locators now.
        route: Route,
    },
    /// The peer wants data on a path only where no other works, or does no longer mind.
    PathBackup {
        /// The peer.
        peer: Hit,
        /// The path.
        path: PathId,
        /// Only where no other works.
        backup: bool,
    },
    /// A path is gone; its security associations are to be forgotten.
    PathDown {
        /// The peer.
        peer: Hit,
        /// The path.
        path: PathId,
    },
    /// Somebody says that the peer does not know the SPI of a path any more, as after a restart. Nothing vouches for
    /// that, so it is only a reason to ask the peer: where no heartbeat is answered within a second,
    /// [`crate::Host::abandon`] and [`crate::Host::connect`]. At most once a second.
    Doubted {
        /// The peer.
        peer: Hit,
        /// The path.
        path: PathId,
    },
    /// The association has ended, and all its paths with it.
    Closed {
        /// The peer.
        peer: Hit,
        /// A sentence.
        reason: String,
    },
    /// The peer has signed a NOTIFY.
    Notified {
        /// The peer.
        peer: Hit,
        /// Its number (RFC 7401 §5.2.19): below 16384 an error.
        message: u16,
    },
    /// Packets are refused. Told at most once a minute for each reason; [`crate::Counters`] has the numbers.
    Refused {
        /// Why.
        what: Refused,
        /// Where the first of them came in.
        route: Route,
        /// Who it says it is from. Nothing proves that.
        peer: Option<Hit>,
    },
    /// A peer has not answered for some seconds; the base exchange goes on. Told once in each.
    Unanswered {
        /// The peer.
        peer: Hit,
        /// The pairs of locators that are tried in turn.
        routes: Vec<Route>,
    },
    /// A further path is being opened.
    Opening {
        /// The peer.
        peer: Hit,
        /// Its locators.
        route: Route,
    },
    /// A rendezvous server lets itself be asked for us (RFC 8003).
    Registered {
        /// The server.
        peer: Hit,
        /// For so long; it is renewed before.
        lifetime: Duration,
    },
    /// A rendezvous server refuses to. It is asked again after some minutes.
    RegistrationRefused {
        /// The server.
        peer: Hit,
        /// The failure type of RFC 8003 §4.4: 0, we may not; 1, there is no such service; 2, there is no room.
        reason: u8,
    },
    /// Somebody has answered [`crate::Host::inquire`], and has this identity.
    Discovered {
        /// Its HIT. The R1 is signed with its identity.
        hit: Hit,
        /// Where it was asked.
        route: Route,
    },
    /// A host that nobody has configured has proved an identity that may come ([`crate::Guests`]); its association follows. It is
    /// told again in each.
    Admitted {
        /// The guest.
        peer: Hit,
    },
    /// A guest is forgotten, after its association has ended.
    Departed {
        /// The guest.
        peer: Hit,
    },
    /// The base exchange did not come to an end.
    Failed {
        /// The peer.
        peer: Hit,
        /// A sentence with, where there is one, a remedy.
        reason: String,
    },
}

/// Why [`crate::Host::handle_timeout`] wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKind {
    /// A packet has not been answered.
    Retransmission,
    /// The puzzle of an R1 is being solved.
    Puzzle,
    /// A path is to be tried again.
    PathRetry,
    /// A state has lasted long enough.
    Expiry,
    /// Keys have been used for long enough.
    Rekey,
    /// A registration is to be made, or made again.
    Registration,
}

crate::counters! {
/// What happened, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Counters {
    /// HIP packets handed in.
    pub packets_in: u64,
    /// HIP packets handed out.
    pub packets_out: u64,
    /// Of those, sent again.
    pub retransmissions: u64,
    /// No HIP packet: lengths, order, shape of a parameter.
    pub malformed: u64,
    /// The checksum was wrong.
    pub bad_checksum: u64,
    /// For another HIT than ours.
    pub not_for_us: u64,
    /// From a host that is not among the peers.
    pub unknown_peer: u64,
    /// A packet that the state of the association has no use for.
    pub unexpected: u64,
    /// A critical parameter that we do not know.
    pub unknown_critical: u64,
    /// A puzzle solution that is wrong or too old.
    pub bad_puzzle: u64,
    /// A HIP_MAC that is wrong.
    pub bad_mac: u64,
    /// A signature that is wrong, or a Host Identity that does not belong to its HIT.
    pub bad_signature: u64,
    /// A Diffie-Hellman value that is not one.
    pub bad_diffie_hellman: u64,
    /// A packet that was accepted before.
    pub replayed: u64,
    /// UPDATEs that a peer sends faster than its share of public-key operations allows.
    pub over_share: u64,
    /// UPDATEs of a peer that crossed ours, and had to give way.
    pub crossed: u64,
    /// Paths that we wanted to open or renew, and that the peer refused.
    pub refused_by_peer: u64,
    /// Base exchanges begun while the association goes on, because its keys are old or run out.
    pub rekeys_by_exchange: u64,
    /// Paths that a peer opened although there are as many as there may be.
    pub too_many: u64,
    /// Hints that we do not know an SPI, sent to whoever used it.
    pub hints_out: u64,
    /// Hints that a peer does not know an SPI, which fitted one of our paths.
    pub hints_in: u64,
    /// No algorithm that both hosts have.
    pub no_common_algorithm: u64,
    /// R1s from where no I1 went.
    pub wrong_route: u64,
    /// Packets that would have cost more than is left to strangers ([`crate::budget`]).
    pub over_budget: u64,
    /// Packets passed on to hosts that are registered here, and from them.
    pub relayed: u64,
    /// ESP packets passed on for clients.
    pub carried: u64,
    /// Of ESP packets to be passed on, those that were more than the relay carries.
    pub not_carried: u64,
    /// Addresses where no host can be, or where this one is, that somebody has named: candidates, and places to relay to.
    pub bad_places: u64,
    /// Connectivity checks sent to peers that may be behind NATs.
    pub checks_out: u64,
    /// Registrations granted to peers, also those that are renewed.
    pub registrations: u64,
    /// Registrations refused to peers.
    pub registrations_refused: u64,
    /// Of the packets handed out, NOTIFYs that say why something was refused.
    pub notices_out: u64,
    /// Base exchanges that succeeded.
    pub established: u64,
    /// Base exchanges that failed.
    pub failed: u64,
}
}
