//! What a host knows about one peer: the state of RFC 7401 §4.4 and what belongs to each state.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use scheduler::PathId;
use wire::hip::{HostId, Locator, Packet};
use wire::{Hit, Spi};
use zeroize::Zeroizing;

use crate::asking::Asked;
use crate::checks::Checks;
use crate::config::{HostConfig, Peer};
use crate::dh::EphemeralSecret;
use crate::event::TimerKind;
use crate::exchange::Chosen;
use crate::feedback::Features;
use crate::identity::PublicIdentity;
use crate::puzzle::Solver;
use crate::rate::{Bucket, Rate};
use crate::registration::{Asking, Enrolment, Registered};
use crate::relay::Behind;
use crate::route::Route;
use crate::session::Session;

/// The states of RFC 7401 §4.4.1, as status tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of the RFC")]
pub enum State {
    Unassociated,
    I1Sent,
    I2Sent,
    R2Sent,
    Established,
    Closing,
    Closed,
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unassociated => "UNASSOCIATED",
            Self::I1Sent => "I1-SENT",
            Self::I2Sent => "I2-SENT",
            Self::R2Sent => "R2-SENT",
            Self::Established => "ESTABLISHED",
            Self::Closing => "CLOSING",
            Self::Closed => "CLOSED",
            Self::Failed => "E-FAILED",
        })
    }
}

/// The most paths of an association, whatever the peer opens: twice as many as hosts have been seen to have locators.
pub(crate) const MAX_PATHS: usize = 32;
/// The most paths that may wait for the peer's proof that it receives there.
pub(crate) const MAX_OFFERS: usize = 8;
/// The most pairs of locators that are remembered: eight of ours with eight of the peer's.
pub(crate) const MAX_CANDIDATES: usize = 64;
/// Answers that are remembered, to be given again.
const MAX_ANSWERS: usize = 8;
/// Packets of the peer that may cost a public-key operation. A path takes two of them.
pub(crate) const WORK: Rate = Rate::new(20, 64);
/// Before its owner has answered there, an address gets at most so many times the bytes that came from it (RFC 8046
/// §5.6; RFC 9000 §8.1).
pub(crate) const CREDIT: usize = 3;

/// A peer and how things stand with it.
pub(crate) struct PeerRecord {
    pub(crate) peer: Peer,
    /// The newest R1 generation that this peer has shown (RFC 7401 §4.1.4).
    pub(crate) r1_counter: u64,
    /// How many associations there have been. The puzzle depends on it, so an I2 that answers an R1 from before the
    /// present association is refused: one that was overtaken, or is replayed, cannot end it.
    pub(crate) epoch: u64,
    /// Whether the last association was one with a Sinnet.
    pub(crate) is_sinnet: bool,
    pub(crate) phase: Phase,
    /// The association that goes on while a base exchange makes the next one.
    pub(crate) standby: Option<Box<Association>>,
    /// The last notice of the peer in the exchange that is under way, to be told if that fails.
    pub(crate) notice: Option<u16>,
    /// Our registration there, and the peer's here.
    pub(crate) enrolment: Enrolment,
    pub(crate) registered: Option<Registered>,
    /// Its last packet that proved to be its own came by our relay.
    pub(crate) behind: Option<Behind>,
    /// Nobody has configured it ([`crate::Guests`]).
    pub(crate) is_guest: bool,
}

impl PeerRecord {
    /// Without an association.
    pub(crate) fn new(peer: Peer) -> Self {
        Self {
            r1_counter: 0,
            epoch: 0,
            is_sinnet: false,
            phase: Phase::Unassociated,
            standby: None,
            notice: None,
            enrolment: Enrolment::default(),
            registered: None,
            behind: None,
            is_guest: false,
            peer,
        }
    }
}

/// The state with what belongs to it.
pub(crate) enum Phase {
    Unassociated,
    I1Sent(I1Sent),
    /// Still I1-SENT for the RFC.
    Solving(Box<Solving>),
    I2Sent(Box<I2Sent>),
    /// R2-SENT and ESTABLISHED.
    Up(Box<Association>),
    Closing(Box<Closing>),
    Closed(Box<Closed>),
    Failed,
}

impl Phase {
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Unassociated => State::Unassociated,
            Self::I1Sent(_) | Self::Solving(_) => State::I1Sent,
            Self::I2Sent(_) => State::I2Sent,
            Self::Up(up) => up.state(),
            Self::Closing(_) => State::Closing,
            Self::Closed(_) => State::Closed,
            Self::Failed => State::Failed,
        }
    }

    pub(crate) fn deadline(&self) -> Option<(Instant, TimerKind)> {
        match self {
            Self::Unassociated | Self::Failed => None,
            Self::I1Sent(sent) => Some((sent.retry.at, TimerKind::Retransmission)),
            Self::Solving(work) => Some((work.at, TimerKind::Puzzle)),
            Self::I2Sent(sent) => Some((sent.retry.at, TimerKind::Retransmission)),
            Self::Up(up) => up.deadline(),
            Self::Closing(closing) => Some((closing.retry.at, TimerKind::Retransmission)),
            Self::Closed(closed) => Some((closed.until, TimerKind::Expiry)),
        }
    }

    /// What was asked in the exchange that is under way, if we have begun it.
    pub(crate) fn asked(&mut self) -> Option<&mut Asked> {
        match self {
            Self::I1Sent(sent) => Some(&mut sent.asked),
            Self::Solving(work) => Some(&mut work.asked),
            Self::I2Sent(sent) => Some(&mut sent.asked),
            _ => None,
        }
    }

    /// Where the R1 came from that is being answered.
    pub(crate) fn route(&self) -> Option<Route> {
        match self {
            Self::Solving(work) => Some(work.route),
            Self::I2Sent(sent) => Some(sent.route),
            _ => None,
        }
    }

    /// The I2 to which an R2 may come.
    pub(crate) fn i2(&self) -> Option<&I2Sent> {
        match self {
            Self::I1Sent(sent) => sent.i2.as_deref(),
            Self::I2Sent(sent) => Some(sent),
            _ => None,
        }
    }

    /// How many packets went out for it.
    pub(crate) fn tries(&self) -> u32 {
        match self {
            Self::I1Sent(sent) => sent.retry.tries,
            Self::Solving(work) => work.tries_before,
            Self::I2Sent(sent) => sent.tries_before.saturating_add(sent.retry.tries),
            _ => 0,
        }
    }
}

/// An I1 is out. It is tried on one route after the other, since nobody knows yet which of them works.
pub(crate) struct I1Sent {
    pub(crate) routes: Vec<Route>,
    pub(crate) retry: Retry,
    pub(crate) asked: Asked,
    /// An I2 that was not answered; an R2 to it that comes late still counts, until another R1 is taken.
    pub(crate) i2: Option<Box<I2Sent>>,
}

/// A signed R1 has come, and its puzzle is being solved.
pub(crate) struct Solving {
    pub(crate) route: Route,
    pub(crate) r1: Vec<u8>,
    pub(crate) identity: PublicIdentity,
    pub(crate) choice: Chosen,
    /// The R1's generation.
    pub(crate) counter: u64,
    pub(crate) solver: Solver,
    /// Hashes to try at most.
    pub(crate) left: u64,
    /// When it goes on.
    pub(crate) at: Instant,
    pub(crate) asked: Asked,
    /// How many packets went out for this exchange before.
    pub(crate) tries_before: u32,
}

/// An I2 is out.
pub(crate) struct I2Sent {
    /// Where the R1 came from.
    pub(crate) route: Route,
    /// Where its preferred locator is, if that is elsewhere.
    pub(crate) preferred: Option<Route>,
    pub(crate) packet: Vec<u8>,
    pub(crate) session: Session,
    /// The Responder's, as HIP_MAC_2 covers it.
    pub(crate) host_id: HostId,
    pub(crate) esp_index: u16,
    pub(crate) spi_in: Spi,
    /// The R1's generation.
    pub(crate) counter: u64,
    pub(crate) asked: Asked,
    /// What both hosts can do, where both want feedback.
    pub(crate) feedback: Option<Features>,
    /// Where the R1 says that the Responder is, too.
    pub(crate) locators: Vec<std::net::IpAddr>,
    pub(crate) retry: Retry,
    /// How many packets went out for this exchange before.
    pub(crate) tries_before: u32,
}

/// Keys are agreed.
pub(crate) struct Association {
    pub(crate) session: Session,
    pub(crate) initiator: bool,
    /// False in R2-SENT.
    pub(crate) confirmed: bool,
    pub(crate) paths: Vec<Path>,
    /// Each path has a Diffie-Hellman exchange of its own; or else the keys of all are drawn from one KEYMAT.
    pub(crate) renews: bool,
    /// When a base exchange is to give new keys; not where the association renews them itself.
    pub(crate) rekey_at: Instant,
    /// Of KEYMAT, so many bytes may be used.
    keymat_limit: u16,
    /// Since when there is no path, and until when there may be none.
    pub(crate) pathless: Option<(Instant, Instant)>,
    pub(crate) next_path: u16,
    /// Our next Update ID, of which the first is 0 (RFC 7401 §6.11), and the peer's last one.
    pub(crate) update_id: u32,
    pub(crate) peer_update_id: Option<u32>,
    /// Which of the 64 Update IDs up to that one have come: the lowest bit is its own.
    pub(crate) heard: u64,
    /// Answers to the peer's last UPDATEs, to be given again when those come again.
    pub(crate) answers: VecDeque<Answer>,
    /// The public-key operations that the peer may ask of us.
    pub(crate) work: Bucket,
    /// When the peer has last been doubted ([`crate::Event::Doubted`]).
    pub(crate) doubted: Bucket,
    /// The path that we are opening. One at a time: Update IDs have to arrive in order (RFC 7401 §6.12).
    pub(crate) opening: Option<Opening>,
    /// Our UPDATE for a registration is out.
    pub(crate) asking: Option<Asking>,
    /// Paths that are to get new keys.
    pub(crate) renewals: VecDeque<PathId>,
    /// Of these, one that was asked for before without an answer.
    pub(crate) asked: Option<(PathId, Retry)>,
    /// The peer is to be told our locators.
    pub(crate) announce: bool,
    /// The UPDATE that tells them is out.
    pub(crate) announcement: Option<Announcement>,
    /// The locators that the peer has announced last as all that it has, and under which Update ID.
    pub(crate) announced: Option<(u32, Vec<Locator>)>,
    /// Until when the peer's addresses are good, where that is not for ever (RFC 8046 §4).
    pub(crate) lifetimes: Vec<(IpAddr, Instant)>,
    /// Where the peer was on paths that are gone, the last first.
    pub(crate) former: Vec<SocketAddr>,
    /// Paths that the peer has opened and that wait for its echo.
    pub(crate) offers: Vec<Offer>,
    /// Paths that the peer says lead elsewhere now.
    pub(crate) moves: Vec<Move>,
    pub(crate) candidates: Vec<Candidate>,
    /// The way by a relay, where the association was made there.
    pub(crate) relay: Option<Route>,
    /// Which of the ways past it carry something; where there is one.
    pub(crate) checks: Option<Box<Checks>>,
    /// As Responder: the I2 that began this, and the R2 that answers it again.
    pub(crate) r2: Option<Answered>,
}

/// An I2 that was taken; who sends it again from there gets the R2 again.
pub(crate) struct Answered {
    pub(crate) route: Route,
    /// The I2's HIP_MAC, which tells it from all others without a hash.
    pub(crate) mac: Vec<u8>,
    pub(crate) r2: Vec<u8>,
}

/// A pair of ESP security associations.
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) route: Route,
    pub(crate) spi_in: Spi,
    pub(crate) spi_out: Spi,
    /// The peer wants data here only where no other path works.
    pub(crate) backup: bool,
    /// The peer's address is not good any more: its lifetime has ended, or the peer lists none (RFC 8046 §5.1, DEPRECATED).
    pub(crate) deprecated: bool,
    /// What was told of these two: data only where no other path works.
    pub(crate) spare: bool,
    /// The peer is known to receive at the remote locator.
    pub(crate) verified: bool,
    /// When it is to get new keys.
    pub(crate) renew_at: Instant,
    /// The peer has refused that; until then it is not asked again.
    pub(crate) refused_until: Instant,
    /// Our locator is gone, and the path waits for another.
    pub(crate) stranded: bool,
}

/// Our answer to an UPDATE. It belongs to the route that the UPDATE came on, and goes nowhere else.
pub(crate) struct Answer {
    /// The peer's Update ID.
    pub(crate) seq: u32,
    pub(crate) route: Route,
    pub(crate) packet: Vec<u8>,
}

/// Our UPDATE with all our locators is out, under one Update ID after the other.
pub(crate) struct Announcement {
    pub(crate) seqs: Vec<u32>,
    pub(crate) retry: Retry,
}

/// Our UPDATE for a new path is out.
pub(crate) struct Opening {
    pub(crate) route: Route,
    pub(crate) seq: u32,
    pub(crate) nonce: Vec<u8>,
    /// Our half of the Diffie-Hellman exchange; or where the keys are drawn from KEYMAT, the index offered.
    pub(crate) secret: Option<Box<EphemeralSecret>>,
    pub(crate) index: u16,
    pub(crate) spi_in: Spi,
    pub(crate) packet: Vec<u8>,
    pub(crate) retry: Retry,
    /// The path whose keys this one renews.
    pub(crate) replaces: Option<PathId>,
}

/// Our answer to the peer's UPDATE for a new path is out; its echo is awaited.
pub(crate) struct Offer {
    pub(crate) path: PathId,
    pub(crate) route: Route,
    pub(crate) seq: u32,
    pub(crate) nonce: Vec<u8>,
    pub(crate) packet: Vec<u8>,
    pub(crate) retry: Retry,
    /// The path whose keys this one renews.
    pub(crate) replaces: Option<PathId>,
    /// The peer's Update ID that this answers.
    pub(crate) asked: u32,
    /// Bytes that may still be sent to the route before the peer has answered on it ([`CREDIT`]).
    pub(crate) credit: usize,
    /// Our SPI has been told on other routes since, so a packet that has it proves nothing.
    pub(crate) exposed: bool,
}

/// The peer says that a path leads elsewhere now; its echo from there is awaited (RFC 8046 §5.4).
pub(crate) struct Move {
    pub(crate) path: PathId,
    pub(crate) route: Route,
    pub(crate) seq: u32,
    pub(crate) nonce: Vec<u8>,
    pub(crate) packet: Vec<u8>,
    pub(crate) retry: Retry,
    /// The peer's Update ID that said so.
    pub(crate) asked: u32,
    /// Bytes that may still be sent there ([`CREDIT`]).
    pub(crate) credit: usize,
}

/// A pair of locators that a path may use.
pub(crate) struct Candidate {
    pub(crate) route: Route,
    pub(crate) failures: u32,
    pub(crate) not_before: Instant,
    /// The peer no longer says that it is at the remote locator.
    pub(crate) stale: bool,
    /// The number of the peer's uplink, where that has been told: behind a NAT an address is no name for it.
    pub(crate) uplink: Option<u16>,
}

impl Candidate {
    pub(crate) fn new(route: Route, now: Instant) -> Self {
        Self { route, failures: 0, not_before: now, stale: false, uplink: None }
    }

    /// The peer's end of it.
    fn far(&self) -> Far {
        self.uplink.map_or(Far::At(self.route.remote), Far::Uplink)
    }
}

/// The peer's end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Far {
    At(SocketAddr),
    Uplink(u16),
}

/// Our CLOSE is out.
pub(crate) struct Closing {
    pub(crate) session: Session,
    pub(crate) routes: Vec<Route>,
    pub(crate) packet: Vec<u8>,
    pub(crate) nonce: Vec<u8>,
    pub(crate) retry: Retry,
}

/// The peer has closed; its CLOSE is answered for a while longer.
pub(crate) struct Closed {
    pub(crate) session: Session,
    pub(crate) until: Instant,
    /// The echo that the peer's CLOSE asked for, where it came from, and our answer.
    pub(crate) echo: Vec<u8>,
    pub(crate) route: Route,
    pub(crate) answer: Vec<u8>,
    /// How often it may be given again.
    pub(crate) again: Bucket,
}

/// A packet that is sent again until it is answered.
#[derive(Clone, Copy)]
pub(crate) struct Retry {
    pub(crate) at: Instant,
    pub(crate) tries: u32,
    pub(crate) wait: Duration,
}

impl Retry {
    pub(crate) fn new(now: Instant, config: &HostConfig) -> Self {
        Self { at: now + config.retransmission, tries: 1, wait: config.retransmission }
    }

    /// Counts another try, and backs off.
    pub(crate) fn again(&mut self, now: Instant, config: &HostConfig) {
        self.tries += 1;
        self.wait = (self.wait * 2).min(config.max_retransmission);
        self.at = now + self.wait;
    }
}

/// Whether one Update ID is behind another: they go round (RFC 7401 §6.11, §6.12).
pub(crate) fn is_later(seq: u32, last: u32) -> bool {
    seq.wrapping_sub(last).cast_signed() > 0
}

/// An Update ID beside those that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Later than all.
    Newest,
    /// Later ones have come before it.
    Overtaken,
    /// It has come, or is so old that nobody knows.
    Known,
}

/// Random bytes that the peer has to send back.
pub(crate) fn nonce(rng: &mut dyn rand_core::CryptoRng) -> Vec<u8> {
    let mut bytes = Zeroizing::new([0; 16]);
    rng.fill_bytes(&mut bytes[..]);
    bytes.to_vec()
}

impl Association {
    /// The ID of an UPDATE that goes out now.
    pub(crate) fn next_update_id(&mut self) -> u32 {
        let next = self.update_id.wrapping_add(1);
        std::mem::replace(&mut self.update_id, next)
    }

    /// How an Update ID of the peer stands to those that have come (RFC 7401 §6.12.1).
    pub(crate) fn order(&self, seq: u32) -> Order {
        let Some(last) = self.peer_update_id else { return Order::Newest };
        let behind = last.wrapping_sub(seq);
        match is_later(seq, last) {
            true => Order::Newest,
            false if behind < u64::BITS && self.heard & (1 << behind) == 0 => Order::Overtaken,
            false => Order::Known,
        }
    }

    /// Notes that it has come.
    pub(crate) fn note_update(&mut self, seq: u32) {
        let last = self.peer_update_id.unwrap_or(seq);
        if is_later(seq, last) || self.peer_update_id.is_none() {
            self.heard = self.heard.checked_shl(seq.wrapping_sub(last)).unwrap_or(0) | 1;
            self.peer_update_id = Some(seq);
        } else {
            self.heard |= 1_u64.checked_shl(last.wrapping_sub(seq)).unwrap_or(0);
        }
    }

    /// Whether what an UPDATE says that has come late does not hold any more: a later one has all locators, or has opened what
    /// this one wants to open.
    pub(crate) fn is_superseded(&self, packet: &Packet<'_>, seq: u32, route: Route) -> bool {
        let told =
            packet.locator_set().is_some() && self.announced.as_ref().is_some_and(|(last, _)| is_later(*last, seq));
        told || packet.esp_infos().any(|esp| {
            let replaced = self.paths.iter().find(|path| path.spi_out == esp.old_spi).map(|path| path.id);
            match esp.new_spi {
                Spi(0) => false,
                new if new == esp.old_spi => false,
                _ if esp.old_spi == Spi(0) => self.paths.iter().any(|path| path.route == route),
                _ => self.offers.iter().any(|offer| replaced.is_some() && offer.replaces == replaced),
            }
        })
    }

    pub(crate) fn new(session: Session, initiator: bool) -> Self {
        Self {
            session,
            initiator,
            confirmed: initiator,
            paths: Vec::new(),
            renews: false,
            rekey_at: Instant::ZERO,
            keymat_limit: u16::MAX,
            pathless: None,
            next_path: 0,
            update_id: 0,
            peer_update_id: None,
            heard: 0,
            answers: VecDeque::new(),
            work: Bucket::default(),
            doubted: Bucket::default(),
            opening: None,
            asking: None,
            announce: false,
            announcement: None,
            announced: None,
            lifetimes: Vec::new(),
            former: Vec::new(),
            renewals: VecDeque::new(),
            asked: None,
            offers: Vec::new(),
            moves: Vec::new(),
            candidates: Vec::new(),
            relay: None,
            checks: None,
            r2: None,
        }
    }

    pub(crate) fn state(&self) -> State {
        if self.confirmed { State::Established } else { State::R2Sent }
    }

    /// The keys have just been agreed. `renews`: the peer is one with which each path has an exchange of its own. Then
    /// nothing is drawn from this KEYMAT any more, and it need not be kept.
    pub(crate) fn keyed(&mut self, now: Instant, config: &HostConfig, renews: bool) {
        self.renews = renews;
        self.rekey_at = self.renewal_time(now, config);
        self.keymat_limit = config.keymat_limit.min(self.session.keymat.len());
        if renews {
            self.session.keymat.erase();
        }
    }

    /// When keys of now are to be renewed. The Initiator is the first to do it, so that the two do not cross.
    pub(crate) fn renewal_time(&self, now: Instant, config: &HostConfig) -> Instant {
        let extra = if self.initiator { Duration::ZERO } else { config.rekey_interval / 8 };
        now + config.rekey_interval + extra
    }

    /// Whether there are keys for another path.
    pub(crate) fn has_keys(&self) -> bool {
        let end = self.session.keymat_next.checked_add(self.session.pair_len());
        self.renews || end.is_some_and(|end| end <= self.keymat_limit)
    }

    /// Keys have been drawn from KEYMAT: where less than a fifth is left, it is time for new ones.
    pub(crate) fn drawn(&mut self, now: Instant) {
        let left = self.keymat_limit.saturating_sub(self.session.keymat_next);
        if !self.renews && left < self.keymat_limit / 5 {
            self.rekey_at = self.rekey_at.min(now);
        }
    }

    /// Notes whether there is a path: there has to be one again in time.
    pub(crate) fn note_paths(&mut self, now: Instant, config: &HostConfig) {
        if self.paths.iter().all(|path| path.stranded) {
            self.pathless.get_or_insert((now, now + config.pathless));
        } else {
            self.pathless = None;
        }
    }

    /// Adds a path under a number that no other has, and that none has had for 65,000 paths.
    pub(crate) fn add_path(&mut self, path: Path) -> PathId {
        let taken = |id: u16| self.paths.iter().any(|path| path.id == PathId(id));
        let mut number = self.next_path;
        while taken(number) {
            number = number.wrapping_add(1);
        }
        self.next_path = number.wrapping_add(1);
        let id = PathId(number);
        self.paths.push(Path { id, ..path });
        id
    }

    /// All SPIs at which packets of this association are received.
    pub(crate) fn spis(&self) -> impl Iterator<Item = Spi> {
        let opening = self.opening.iter().map(|opening| opening.spi_in);
        self.paths.iter().map(|path| path.spi_in).chain(opening)
    }

    /// Whether a path is being renewed, or waits for it.
    pub(crate) fn is_renewing(&self, path: PathId) -> bool {
        let is_under_way = self.opening.as_ref().is_some_and(|opening| opening.replaces == Some(path));
        is_under_way || self.renewals.contains(&path)
    }

    /// The next path to renew.
    pub(crate) fn next_renewal(&mut self) -> Option<&Path> {
        while let Some(id) = self.renewals.pop_front() {
            if let Some(index) = self.paths.iter().position(|path| path.id == id) {
                return self.paths.get(index);
            }
        }
        None
    }

    pub(crate) fn deadline(&self) -> Option<(Instant, TimerKind)> {
        let renewal = self.paths.iter().filter(|_| self.renews).map(|path| (path.renew_at, TimerKind::Rekey));
        let rekey = (!self.renews).then_some((self.rekey_at, TimerKind::Rekey));
        let pathless = self.pathless.map(|(_, until)| (until, TimerKind::Expiry));
        let keys = renewal.chain(rekey).chain(pathless);
        let opening = self.opening.as_ref().map(|opening| (opening.retry.at, TimerKind::Retransmission));
        let offers = self.offers.iter().map(|offer| (offer.retry.at, TimerKind::Retransmission));
        let telling = self.announcement.as_ref().map(|telling| (telling.retry.at, TimerKind::Retransmission));
        let retry = match (&self.opening, self.wants_path()) {
            (None, true) if telling.is_none() => {
                self.free_candidates().map(|(_, free)| (free.not_before, TimerKind::PathRetry)).min()
            }
            _ => None,
        };
        let moves = self.moves.iter().map(|there| (there.retry.at, TimerKind::Retransmission));
        let lifetimes = self.lifetimes.iter().map(|(_, until)| (*until, TimerKind::Expiry));
        let checks = self.checks.as_ref().and_then(|checks| checks.deadline());
        let lifetimes = lifetimes.chain(checks.map(|at| (at, TimerKind::Retransmission)));
        offers.chain(moves).chain(opening).chain(telling).chain(retry).chain(keys).chain(lifetimes).min()
    }

    /// As many paths as the host with more locators has locators, and one at each locator of either; where routes are
    /// configured, all of them.
    fn wants_path(&self) -> bool {
        let bare = || self.candidates.iter().any(|candidate| self.is_bare(candidate));
        self.initiator && self.has_keys() && (self.paths.len() < self.wanted() || bare())
    }

    /// It would be the first path at one of its locators.
    fn is_bare(&self, candidate: &Candidate) -> bool {
        let is_left = self.paths.iter().any(|path| path.route.local == candidate.route.local);
        let is_reached = || self.paths.iter().any(|path| self.far(path.route) == candidate.far());
        !is_left || !candidate.stale && !is_reached()
    }

    /// The peer's end of a path.
    fn far(&self, route: Route) -> Far {
        let known = self.candidates.iter().find(|candidate| candidate.route == route);
        known.map_or(Far::At(route.remote), Candidate::far)
    }

    /// A path that was opened because locators were missing, now that there are as many as are wanted: others leave from
    /// its one end and arrive at its other.
    pub(crate) fn needless_path(&self) -> Option<PathId> {
        let shared = |path: &&Path| {
            let others = || self.paths.iter().filter(|other| other.id != path.id);
            others().any(|other| other.route.local == path.route.local)
                && others().any(|other| self.far(other.route) == self.far(path.route))
        };
        (self.paths.len() > self.wanted()).then(|| self.paths.iter().find(shared).map(|path| path.id)).flatten()
    }

    fn wanted(&self) -> usize {
        let count = |pick: fn(&Candidate) -> Far| {
            let fresh = self.candidates.iter().filter(|candidate| !candidate.stale);
            let mut seen: Vec<_> = fresh.map(pick).collect();
            seen.sort();
            seen.dedup();
            seen.len()
        };
        count(|candidate| Far::At(candidate.route.local)).max(count(Candidate::far))
    }

    /// The candidates for the next path.
    pub(crate) fn free_candidates(&self) -> impl Iterator<Item = (usize, &Candidate)> {
        let enough = self.paths.len() >= self.wanted();
        let free = move |candidate: &Candidate| {
            let taken = |route: Route| {
                self.paths.iter().any(|path| path.route == route) || self.moves.iter().any(|there| there.route == route)
            };
            !taken(candidate.route) && (!enough || self.is_bare(candidate))
        };
        self.candidates.iter().enumerate().filter(move |(_, candidate)| free(candidate))
    }

    /// The candidate to open a path with now, if there is something to do: among those whose turn it is, one that has
    /// not failed, and the pair of locators that paths use least.
    pub(crate) fn due_candidate(&self, now: Instant) -> Option<usize> {
        if self.opening.is_some() || self.announcement.is_some() || !self.wants_path() {
            return None;
        }
        let users = |candidate: &Candidate| {
            let uses = |path: &Path| {
                usize::from(path.route.local == candidate.route.local)
                    + usize::from(self.far(path.route) == candidate.far())
            };
            self.paths.iter().map(uses).sum::<usize>()
        };
        self.free_candidates()
            .filter(|(_, candidate)| candidate.not_before <= now)
            .min_by_key(|(index, candidate)| (candidate.stale, candidate.failures, users(candidate), *index))
            .map(|(index, _)| index)
    }

    /// Remembers an answer to the peer's last UPDATE.
    pub(crate) fn remember(&mut self, answer: Answer) {
        self.answers.push_back(answer);
        if self.answers.len() > MAX_ANSWERS {
            self.answers.pop_front();
        }
    }

    /// Our SPIs are being told: those that wait for a proof prove nothing any more.
    pub(crate) fn expose_offers(&mut self) {
        self.offers.iter_mut().for_each(|offer| offer.exposed = true);
    }
}

/// A peer's own view, for status.
#[derive(Clone, Debug)]
pub struct AssociationView {
    /// The peer.
    pub peer: Hit,
    /// Where the association stands.
    pub state: State,
    /// The paths that are open.
    pub paths: Vec<(PathId, Route)>,
}
