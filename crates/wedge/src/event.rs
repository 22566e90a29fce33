//! What a wedge tells its owner besides packets.

use clock::Duration;
use hip::{Notice, Route};
use scheduler::PathId;
use std::fmt;

/// Something a person may want to know; `Display` is a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WedgeEvent {
    /// The peer has proved its identity.
    Established {
        /// The peer's name.
        peer: String,
    },
    /// A path has its security associations.
    PathUp {
        /// The peer's name.
        peer: String,
        /// Its number.
        path: PathId,
        /// What the local side of it is called.
        name: String,
        /// Its locators.
        route: Route,
    },
    /// A path does not answer and is not used.
    PathDead {
        /// The peer's name.
        peer: String,
        /// Its number.
        path: PathId,
        /// What the local side of it is called.
        name: String,
        /// Its locators.
        route: Route,
    },
    /// A path answers again and is used.
    PathAlive {
        /// The peer's name.
        peer: String,
        /// Its number.
        path: PathId,
        /// What the local side of it is called.
        name: String,
        /// Its locators.
        route: Route,
    },
    /// The peer is somewhere else on a path, as behind a NAT that has given it another port.
    PathMoved {
        /// The peer's name.
        peer: String,
        /// Its number.
        path: PathId,
        /// What the local side of it is called.
        name: String,
        /// Its locators now.
        route: Route,
    },
    /// The largest packet that a path carries was found, and is not what was told before, nor what its interface takes.
    PathMtu {
        /// The peer's name.
        peer: String,
        /// Its number.
        path: PathId,
        /// What the local side of it is called.
        name: String,
        /// Its locators.
        route: Route,
        /// In bytes, with all headers.
        mtu: u16,
    },
    /// A path is gone for good.
    PathDown {
        /// The peer's name.
        peer: String,
        /// Its number.
        path: PathId,
    },
    /// The association has ended.
    Closed {
        /// The peer's name.
        peer: String,
        /// A sentence.
        reason: String,
    },
    /// The peer has sent a signed notice.
    Notified {
        /// The peer's name.
        peer: String,
        /// Its number (RFC 7401 §5.2.19); below 16384 an error.
        message: u16,
    },
    /// The base exchange failed.
    Failed {
        /// The peer's name.
        peer: String,
        /// A sentence.
        reason: String,
    },
    /// The peer has not answered for some seconds, and is asked again and again.
    Unanswered {
        /// The peer's name.
        peer: String,
        /// Where it is asked.
        places: Vec<std::net::SocketAddr>,
        /// Our identity, which the peer has to know.
        own: wire::Hit,
    },
    /// A further path is being opened.
    Opening {
        /// The peer's name.
        peer: String,
        /// Its locators.
        route: Route,
    },
    /// A rendezvous server serves this host from now on, for a time; it is renewed before that ends.
    Registered {
        /// The server's name.
        peer: String,
        /// For so long.
        lifetime: Duration,
    },
    /// A rendezvous server refuses to serve this host. It is asked again after some minutes.
    RegistrationRefused {
        /// The server's name.
        peer: String,
        /// The failure type of RFC 8003 §4.4.
        reason: u8,
    },
    /// A host that is no peer has proved an identity that may come, and is called by its HIT.
    Admitted {
        /// Its HIT.
        peer: String,
        /// Its LSI while it stays.
        lsi: wire::Lsi,
    },
    /// A guest is gone.
    Departed {
        /// Its HIT.
        peer: String,
    },
    /// Somebody has answered an inquiry ([`crate::Wedge::inquire`]).
    Discovered {
        /// The identity that it has.
        hit: wire::Hit,
        /// Where it was asked.
        route: Route,
    },
    /// HIP packets are refused; at most once a minute for each reason.
    Refused {
        /// The peer's name, or the HIT that the packets claim. Nothing proves either.
        peer: Option<String>,
        /// Where the first of them came in.
        route: Route,
        /// Why.
        what: hip::Refused,
    },
    /// A line of Wireshark's file `esp_sa`. It holds keys; only with [`crate::WedgeConfig::keylog`].
    KeyLog(String),
}

impl fmt::Display for WedgeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Established { peer } => write!(f, "{peer} has proved its identity"),
            Self::PathUp { peer, path, name, route } => write!(f, "{path} to {peer} is up: {name}, {route}"),
            Self::PathDead { peer, path, name, route } => {
                write!(f, "{path} to {peer} does not answer and is not used: {name}, {route}")
            }
            Self::PathAlive { peer, path, name, route } => {
                write!(f, "{path} to {peer} answers again: {name}, {route}")
            }
            Self::PathMoved { peer, path, name, route } => {
                write!(f, "{path} to {peer} leads somewhere else now: {name}, {route}")
            }
            Self::PathMtu { peer, path, name, route, mtu } => {
                write!(f, "{path} to {peer} carries packets of up to {mtu} bytes: {name}, {route}")
            }
            Self::PathDown { peer, path } => write!(f, "{path} to {peer} is gone"),
            Self::Closed { peer, reason } => write!(f, "the association with {peer} has ended: {reason}"),
            Self::Notified { peer, message } => write!(f, "{peer} {}", Notice(*message)),
            Self::Failed { peer, reason } => write!(f, "no association with {peer}: {reason}"),
            Self::Unanswered { peer, places, own } => {
                let places: Vec<String> = places.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "{peer} does not answer at {}, and is asked again: is it up, do firewalls on the way let this UDP port in, \
                     does it have {own} as a peer, and is its HIT the one that we have?",
                    places.join(", ")
                )
            }
            Self::Registered { peer, lifetime } => {
                write!(f, "{peer} passes on to us who asks it for us, for {:.0} s", lifetime.as_secs_f64())
            }
            Self::RegistrationRefused { peer, reason } => {
                let why = match reason {
                    0 => "we may not; does it have us among its clients?",
                    1 => "it has no such service",
                    2 => "it has no room for more",
                    _ => "it does not say why",
                };
                write!(f, "{peer} does not want to be our rendezvous server: {why}")
            }
            Self::Admitted { peer, lsi } => write!(f, "{peer} comes as a guest, and is {lsi} for IPv4"),
            Self::Departed { peer } => write!(f, "{peer} is no guest any more"),
            Self::Discovered { hit, route } => write!(f, "{} has the identity {hit}", route.remote.ip()),
            Self::Opening { peer, route } => write!(f, "trying a path to {peer}: {route}"),
            Self::Refused { peer: Some(peer), route, what } => {
                write!(f, "HIP packets from {} in the name of {peer} are refused: {what}", route.remote.ip())
            }
            Self::Refused { peer: None, route, what } => {
                write!(f, "HIP packets from {} are refused: {what}", route.remote.ip())
            }
            Self::KeyLog(line) => f.write_str(line),
        }
    }
}
