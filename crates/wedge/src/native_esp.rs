//! ESP without UDP on a path that was opened inside UDP.
//!
//! UDP is there for NATs (RFC 9028) and takes eight bytes of every packet. Where nothing on the way needs it, ESP goes as IP
//! protocol 50 (RFC 7402). Each host tries that for what it sends itself: heartbeats as long as data leave without UDP, and are
//! answered as they came. Once three were, all that the host sends on the path goes so, heartbeats as well; and when those get no
//! answers, or the path is found dead, everything is in UDP again. The peer has nothing to agree to: it takes both from where the
//! path leads. A heartbeat in UDP now and then keeps NATs and firewalls from forgetting the path.
//!
//! Linux takes many packets at once only inside UDP (segmentation offload), so a path that carries much stays there.

use crate::path::Path;
use crate::peer::PeerState;
use crate::{Protocol, Transmit};
use clock::{Duration, Instant};
use hip::Route;
use rand_core::CryptoRng;
use scheduler::PathId;
use std::net::Ipv6Addr;
use wire::ip::protocol;

/// So many questions without UDP have to be answered before data leave so.
const ANSWERS: u8 = 3;
/// After so many that were not, none is asked for a while.
const MISSES: u8 = 3;
/// An answer may take so long, or four round trips.
const PATIENCE: Duration = Duration::from_secs(1);
/// Without UDP, heartbeats may go unanswered for so long, or three round trips: less than a path dies of.
const SILENCE: Duration = Duration::from_millis(300);
/// How long nothing is tried after a failure; twice as long after each further one, up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Between heartbeats in UDP while all else leaves without (RFC 8445 §11).
const KEEPALIVE: Duration = Duration::from_secs(15);
/// A path that carries more in both directions together, in bit/s, is in UDP: at 12,500 packets in a second the system calls for
/// single ones take 2 or 3 % of a processor.
const MOST: u64 = 150_000_000;

/// Whether a path's packets leave without UDP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeEsp {
    state: State,
    /// Nothing is tried earlier.
    not_before: Instant,
    pause: Duration,
    /// When its load was looked at last, and what the path had carried by then, in bytes.
    seen: (Instant, u64),
    /// How the next packet leaves, whatever the others do.
    next: Option<Protocol>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    InUdp,
    Asking { answered: u8, missed: u8, asked: Option<(u64, Instant)> },
    Used { since: Instant, kept_at: Instant },
}

/// What is known of a path when a heartbeat of it is due.
#[derive(Clone, Copy, Debug)]
struct Condition {
    /// Nothing speaks against packets without UDP.
    may: bool,
    /// For how long it has given no sign of life since it was asked for one.
    silent: Duration,
    srtt: Duration,
    /// Bytes in both directions so far.
    carried: u64,
}

impl Default for NativeEsp {
    fn default() -> Self {
        Self { state: State::InUdp, not_before: Instant::ZERO, pause: PAUSE, seen: (Instant::ZERO, 0), next: None }
    }
}

impl NativeEsp {
    /// Whether packets leave so.
    fn is_used(&self) -> bool {
        matches!(self.state, State::Used { .. })
    }

    /// Everything leaves in UDP from now on, for a while.
    pub(crate) fn give_up(&mut self, now: Instant) {
        let has_lasted = |since: Instant| now.saturating_since(since) > self.pause;
        if matches!(self.state, State::Used { since, .. } if has_lasted(since)) {
            self.pause = PAUSE;
        }
        self.state = State::InUdp;
        self.not_before = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// A heartbeat is due. Whether a question is to leave without UDP, in addition.
    fn turn(&mut self, now: Instant, condition: Condition) -> bool {
        let Condition { may, silent, srtt, carried } = condition;
        let (before, had) = std::mem::replace(&mut self.seen, (now, carried));
        let load = carried.saturating_sub(had) as f64 * 8.0 / now.saturating_since(before).as_secs_f64().max(1e-3);
        let is_busy = load > MOST as f64;
        match self.state {
            State::Used { .. } if !may => {
                self.give_up(now);
                false
            }
            _ if !may => {
                self.state = State::InUdp;
                false
            }
            State::InUdp if is_busy || now < self.not_before => false,
            State::InUdp => {
                self.state = State::Asking { answered: 0, missed: 0, asked: None };
                true
            }
            State::Asking { asked: Some((_, at)), .. } if now.saturating_since(at) < PATIENCE.max(srtt * 4) => false,
            State::Asking { asked: None, .. } => true,
            State::Asking { answered, missed, .. } => {
                self.state = State::Asking { answered, missed: missed + 1, asked: None };
                if missed + 1 == MISSES {
                    self.give_up(now);
                }
                missed + 1 < MISSES
            }
            State::Used { since, kept_at } => {
                if silent >= SILENCE.max(srtt * 3) {
                    self.give_up(now);
                } else if is_busy {
                    self.state = State::InUdp;
                    self.not_before = now + PAUSE;
                } else if now.saturating_since(kept_at) >= KEEPALIVE {
                    self.state = State::Used { since, kept_at: now };
                    self.next = Some(Protocol::Udp);
                }
                false
            }
        }
    }

    /// A question left.
    fn sent(&mut self, now: Instant, nonce: u64) {
        if let State::Asking { asked, .. } = &mut self.state {
            *asked = Some((nonce, now));
        }
    }

    /// An answer came. Whether it was to the question that had left last.
    fn answered(&mut self, now: Instant, nonce: u64) -> bool {
        let State::Asking { answered, asked, .. } = &mut self.state else { return false };
        if asked.is_none_or(|(sent, _)| sent != nonce) {
            return false;
        }
        (*answered, *asked) = (*answered + 1, None);
        if *answered == ANSWERS {
            self.state = State::Used { since: now, kept_at: now };
        }
        true
    }
}

impl Path {
    /// Whether its packets leave without UDP, though it was opened inside.
    pub(crate) fn sheds_udp(&self) -> bool {
        self.route.in_udp() && self.native.is_used()
    }

    /// The next packet leaves so, and only that.
    pub(crate) fn next_leaves(&mut self, protocol: Protocol) {
        self.native.next = Some(protocol);
    }

    /// How a packet leaves that is about to.
    pub(crate) fn leaves(&mut self) -> Protocol {
        let usual = if self.sheds_udp() { Protocol::Esp } else { Protocol::Udp };
        let protocol = self.native.next.take().unwrap_or(usual);
        if self.route.in_udp() { protocol } else { Protocol::Esp }
    }

    /// The route on which a packet came: without UDP there are no ports, and the path's are meant.
    pub(crate) fn route_of(&self, came: Route, protocol: Protocol) -> Route {
        let is_ours = (came.local, came.remote.ip()) == (self.route.local, self.route.remote.ip());
        if protocol == Protocol::Esp && is_ours { self.route } else { came }
    }
}

impl PeerState {
    /// A heartbeat of a path is due: looks whether ESP should go without UDP there. Whether to ask.
    pub(crate) fn look_at_native(&mut self, now: Instant, index: usize) -> bool {
        let is_sinnet = self.gives_feedback();
        let srtt = self.paths.get(index).and_then(|path| self.srtt(path));
        let Some(path) = self.paths.get_mut(index) else { return false };
        let is_in_use = path.answers() && !path.standby && path.credit.left() == u64::MAX;
        let condition = Condition {
            may: path.parameters.native_esp && path.route.in_udp() && is_sinnet && is_in_use,
            silent: path.heartbeat.silent_for(now),
            srtt: srtt.unwrap_or_default(),
            carried: path.traffic.bytes_out + path.traffic.bytes_in,
        };
        path.native.turn(now, condition)
    }

    /// Asks the peer for an answer without UDP on a path.
    pub(crate) fn ask_natively(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        (hits, id): ((Ipv6Addr, Ipv6Addr), PathId),
        out: &mut Vec<Transmit>,
    ) {
        let nonce = rng.next_u64();
        let Some(path) = self.path_mut(id) else { return };
        path.native.sent(now, nonce);
        let size = path.room_in(path.mtu.limit(), 0);
        let Some(message) = path.question(nonce, hits, size) else { return };
        path.next_leaves(Protocol::Esp);
        // Nothing is concluded from its loss: it is in no window. An SA that is used up is counted where data meet it.
        let _ = self.send_control(now, id, (protocol::ICMPV6, &message), false, rng, out);
    }

    /// An answer to a question without UDP came on a path. Whether it was one.
    pub(crate) fn native_answered(&mut self, now: Instant, id: PathId, nonce: u64) -> bool {
        self.path_mut(id).is_some_and(|path| path.native.answered(now, nonce))
    }
}
