//! Connectivity checks (RFC 9028 §4.2, §4.6): two hosts that have met at a relay look for ways past it, through the NATs that
//! each may be behind.
//!
//! ```text
//! either                                                              other
//!   ── SEQ n, LOCATOR_SET of candidates ──────────────────────────────▶   by the relay, or on a path
//!   ◀──────────────────────────────────────────────────────── ACK n ──
//!   ── SEQ m, ECHO_REQUEST, CANDIDATE_PRIORITY ───────────────────────▶   from each of ours to each of the other's
//!   ◀──────────────────────── ACK m, ECHO_RESPONSE, MAPPED_ADDRESS ──   on that very way, which so is one
//! ```
//!
//! Both check at the same time, so each opens its NATs for the other's packets. A check from where none was expected makes a
//! pair of addresses as good as one that was told: behind a NAT with a mapping for each destination only the first packet shows
//! where it comes from. On the pairs that work the Initiator opens paths, as it does without NATs (`opening`), best spread over
//! the uplinks of the two: a number in each candidate's priority tells those of the peer apart, which addresses do not.
//!
//! RFC 9028 has candidates in I2 and R2, and nominates one pair for ESP. Here they are told once there are keys, since each pair
//! gets keys of its own. What a peer's candidates make us send is bounded: in number, in tries, and in how often they may be told.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use wire::Hit;
use wire::hip::{Builder, Packet, PacketKind, Parameter, TransportAddress};

use crate::association::{Association, Candidate, Phase, nonce};
use crate::config::{HostConfig, Peer};
use crate::host::{Host, Output, is_place};
use crate::rate::{Bucket, Rate};
use crate::relay::is_own;
use crate::route::Route;

/// Between two checks (RFC 9028 §4.4, RFC 8445 §14.2: no less than 5 ms).
const PACE: Duration = Duration::from_millis(20);
/// After a check that was not answered; then twice as long each time.
const WAIT: Duration = Duration::from_millis(250);
/// And never longer than twice doubled: the last check is given up after less than four seconds.
const DOUBLED: u32 = 2;
/// So often a pair is checked; and so often again where the peer's checks come from there.
const TRIES: u32 = 5;
/// So often our candidates are told.
const TELLINGS: u32 = 8;
/// The most candidates of a peer that are looked at, and pairs.
const MAX_THEIRS: usize = 16;
const MAX_PAIRS: usize = 32;
/// So long a peer is waited for that tells none.
const SILENCE: Duration = Duration::from_secs(8);
/// If nothing has worked for so long, data may go by the relay for now; and ways past it are looked for again.
const FALL_BACK: Duration = Duration::from_millis(1_500);
const AGAIN: Duration = Duration::from_secs(60);
/// How often the peer may have us check anew.
const ROUNDS: Rate = Rate::new(1, 8);
/// Kinds of candidates (RFC 9028 §5.7), and the preferences of RFC 8445 §5.1.2.2.
const HOST: (u8, u32) = (0, 126);
const SERVER_REFLEXIVE: (u8, u32) = (1, 100);
const PEER_REFLEXIVE: u32 = 110;
/// How long a candidate is good, seconds: they are told anew when they change.
const LIFETIME: u32 = 3_600;

/// Numbers of this host's uplinks. One that goes takes its number with it, so that a peer does not confuse it with the next.
#[derive(Default)]
pub(crate) struct Uplinks {
    numbers: BTreeMap<IpAddr, u16>,
    next: u16,
}

impl Uplinks {
    fn number(&mut self, address: IpAddr) -> u16 {
        let next = &mut self.next;
        *self.numbers.entry(address).or_insert_with(|| std::mem::replace(next, next.wrapping_add(1)))
    }

    fn retain(&mut self, config: &HostConfig) {
        self.numbers.retain(|address, _| config.locators.iter().any(|own| own.ip() == *address));
    }
}

/// RFC 8445 §5.1.2.1, with one component.
fn priority(preference: u32, uplink: u16) -> u32 {
    preference << 24 | u32::from(u16::MAX - uplink) << 8 | 255
}

/// The number of the uplink in a priority.
fn uplink(priority: u32) -> u16 {
    // The 16 bits in the middle.
    u16::MAX - (priority >> 8) as u16
}

/// The state of it, for one peer.
pub(crate) struct Checks {
    /// Our candidates are to be told.
    telling: Option<Telling>,
    /// The peer's, the best first, with the numbers of its uplinks.
    theirs: Vec<(SocketAddr, u16)>,
    pairs: Vec<Pair>,
    /// No check before.
    next: Instant,
    rounds: Bucket,
    /// The peer has told its candidates.
    heard: bool,
    /// When data goes by the relay, if it may; and when other ways are looked for again.
    fall_back: Option<Instant>,
    again: Option<Instant>,
    /// Until when it may tell them.
    patience: Option<Instant>,
}

/// Our UPDATE with our candidates.
struct Telling {
    seqs: Vec<u32>,
    at: Instant,
    tries: u32,
}

/// A pair of addresses.
struct Pair {
    route: Route,
    uplink: u16,
    nonce: Vec<u8>,
    /// The Update IDs of its checks.
    seqs: Vec<u32>,
    tries: u32,
    /// So often at most.
    limit: u32,
    /// When it is checked again, or known not to work.
    at: Instant,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Works,
    Failed,
}

impl Checks {
    /// `patience`: before our candidates are told.
    pub(crate) fn new(now: Instant, patience: Duration) -> Self {
        let telling = Some(Telling { seqs: Vec::new(), at: now + patience, tries: 0 });
        let (theirs, pairs) = Default::default();
        Self {
            telling,
            theirs,
            pairs,
            next: now,
            rounds: Bucket::default(),
            heard: false,
            fall_back: None,
            again: None,
            patience: Some(now + SILENCE),
        }
    }

    /// Our candidates have changed, or all is to be tried again.
    pub(crate) fn tell(&mut self, now: Instant) {
        self.telling = Some(Telling { seqs: Vec::new(), at: now, tries: 0 });
        self.patience = Some(now + SILENCE);
    }

    fn waiting(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.state == State::Waiting)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let checks = self.waiting().map(|pair| pair.at.max(self.next)).min();
        let telling = self.telling.as_ref().map(|telling| telling.at);
        checks.into_iter().chain(telling).chain(self.patience).chain(self.fall_back).chain(self.again).min()
    }

    /// Whether nothing more is to be expected.
    fn is_over(&self) -> bool {
        let expects = self.patience.is_some() || self.fall_back.is_some() || self.telling.is_some();
        !expects && self.waiting().next().is_none()
    }

    /// The route whose check is answered by this.
    pub(crate) fn answered(&self, acks: &[u32], route: Route, echoed: impl Fn(&Vec<u8>) -> bool) -> Option<Route> {
        let mut pairs = self.pairs.iter().filter(|pair| pair.route == route && pair.state != State::Works);
        let is_right = |pair: &&Pair| pair.seqs.iter().any(|seq| acks.contains(seq)) && echoed(&pair.nonce);
        pairs.find(is_right).map(|pair| pair.route)
    }

    /// Whether our candidates are acknowledged.
    pub(crate) fn is_heard(&self, acks: &[u32]) -> bool {
        self.telling.as_ref().is_some_and(|telling| telling.seqs.iter().any(|seq| acks.contains(seq)))
    }

    pub(crate) fn heard(&mut self) {
        self.telling = None;
    }

    /// Makes pairs of each of our locators with each of the peer's. Those that work stay, as far as they are `used`: a NAT may
    /// have forgotten the others.
    fn pair_up(&mut self, now: Instant, config: &HostConfig, used: &[Route]) {
        self.pairs.retain(|pair| pair.state != State::Failed && config.locators.contains(&pair.route.local));
        for pair in self.pairs.iter_mut().filter(|pair| pair.state == State::Works && !used.contains(&pair.route)) {
            (pair.state, pair.tries, pair.limit, pair.at) = (State::Waiting, 0, TRIES, now);
        }
        let all = self.theirs.clone();
        for (place, uplink) in all {
            for &local in config.locators.iter().filter(|local| fits(**local, place)) {
                self.pair(now, Route { local, remote: place }, uplink);
            }
        }
    }

    fn pair(&mut self, now: Instant, route: Route, uplink: u16) {
        if self.pairs.len() < MAX_PAIRS && !self.pairs.iter().any(|pair| pair.route == route) {
            let (nonce, seqs) = Default::default();
            self.pairs.push(Pair {
                route,
                uplink,
                nonce,
                seqs,
                tries: 0,
                limit: TRIES,
                at: now,
                state: State::Waiting,
            });
        }
    }
}

/// Whether packets can go from one to the other.
fn fits(local: SocketAddr, remote: SocketAddr) -> bool {
    local.is_ipv4() == remote.is_ipv4() && local.port() != 0
}

impl Association {
    /// A way to the peer is still being looked for.
    pub(crate) fn is_meeting(&self) -> bool {
        self.paths.is_empty() && self.checks.as_ref().is_some_and(|checks| !checks.is_over())
    }

    /// The routes of its paths.
    fn used(&self) -> Vec<Route> {
        self.paths.iter().map(|path| path.route).collect()
    }

    /// Looks for ways anew: our candidates have changed, or a path was lost. The peer does so, too, when it hears our candidates.
    pub(crate) fn meet_again(&mut self, now: Instant, config: &HostConfig) {
        let used = self.used();
        if let Some(checks) = &mut self.checks {
            checks.tell(now);
            checks.pair_up(now, config, &used);
        }
    }

    /// The peer has told its candidates.
    pub(crate) fn hear_candidates(
        &mut self,
        out: &mut Output,
        now: Instant,
        config: &HostConfig,
        known: &Peer,
        packet: &Packet<'_>,
    ) {
        let used = self.used();
        let (Some(told), Some(checks)) = (packet.candidates(), &mut self.checks) else { return };
        if !checks.rounds.take(now, ROUNDS) {
            out.counters.over_share += 1;
            return;
        }
        let mut sorted = told.clone();
        sorted.sort_by_key(|candidate| std::cmp::Reverse(candidate.priority));
        let mut theirs = Vec::new();
        for candidate in sorted {
            let place =
                candidate.place.in_udp().filter(|place| is_place(place.ip(), known) && !is_own(config, place.ip()));
            match place {
                Some(place) if theirs.len() < MAX_THEIRS => theirs.push((place, uplink(candidate.priority))),
                Some(_) => {}
                None => out.counters.bad_places += 1,
            }
        }
        if !checks.heard
            && let Some(telling) = &mut checks.telling
        {
            // The peer is there: it may hear ours at once.
            telling.at = telling.at.min(now);
        }
        if !checks.heard && self.initiator {
            checks.fall_back = Some(now + FALL_BACK);
        }
        (checks.heard, checks.patience) = (true, None);
        if checks.theirs != theirs || checks.waiting().next().is_none() {
            checks.theirs = theirs;
            checks.pair_up(now, config, &used);
        }
    }

    /// The peer has checked the way that a packet came: we do, too.
    pub(crate) fn hear_check(&mut self, now: Instant, config: &HostConfig, route: Route, packet: &Packet<'_>) {
        let (Some(&priority), Some(checks)) = (packet.candidate_priority(), &mut self.checks) else { return };
        if !route.in_udp() || self.relay == Some(route) || !config.locators.contains(&route.local) {
            return;
        }
        match checks.pairs.iter_mut().find(|pair| pair.route == route) {
            Some(pair) if pair.state == State::Works => {}
            // RFC 8445 §7.3.1.4: a triggered check.
            Some(pair) if pair.tries < 2 * TRIES => {
                pair.limit = pair.limit.max(pair.tries + 1);
                (pair.at, pair.state) = (now, State::Waiting);
            }
            Some(_) => {}
            None => checks.pair(now, route, uplink(priority)),
        }
    }

    /// A check was answered: a path may be opened there.
    pub(crate) fn works(&mut self, out: &mut Output, now: Instant, route: Route) {
        let pair = self.checks.as_mut().and_then(|checks| checks.pairs.iter_mut().find(|pair| pair.route == route));
        let Some(pair) = pair else { return };
        pair.state = State::Works;
        let uplink = Some(pair.uplink);
        if !self.initiator {
            return;
        }
        // No data goes by the relay any more, nor is about to.
        let relay = self.relay;
        self.candidates.retain(|candidate| Some(candidate.route) != relay);
        if let Some(opening) =
            self.opening.take_if(|opening| Some(opening.route) == relay && opening.replaces.is_none())
        {
            out.spis.remove(&opening.spi_in);
            // The peer may have it already.
            self.announce();
        }
        if let Some(known) = self.candidates.iter_mut().find(|candidate| candidate.route == route) {
            (known.failures, known.not_before, known.stale, known.uplink) = (0, now, false, uplink);
            return;
        }
        // One way between two uplinks is enough.
        let is_used = |route: Route| self.paths.iter().any(|path| path.route == route);
        let same = |other: &Candidate| other.route.local == route.local && other.uplink == uplink;
        if self.candidates.iter().any(|other| same(other) && (is_used(other.route) || other.failures == 0)) {
            return;
        }
        self.candidates.retain(|other| !same(other));
        self.candidates.push(Candidate { uplink, ..Candidate::new(route, now) });
    }
}

impl Host {
    /// Tells our candidates, and checks the next pair, if it is time.
    pub(crate) fn keep_checking(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        let Some(checks) = &mut up.checks else { return };
        for pair in checks.pairs.iter_mut().filter(|pair| pair.state == State::Waiting) {
            if pair.tries >= pair.limit && pair.at <= now {
                pair.state = State::Failed;
                up.candidates.retain(|candidate| candidate.route != pair.route);
            }
        }
        checks.patience.take_if(|until| *until <= now);
        let is_met = up.paths.iter().any(|path| Some(path.route) != up.relay);
        if checks.fall_back.take_if(|at| *at <= now || is_met).is_some() && !is_met {
            up.candidates.extend(up.relay.map(|relay| Candidate::new(relay, now)));
            checks.again = Some(now + AGAIN);
        }
        if checks.again.take_if(|at| *at <= now || is_met).is_some() && !is_met && !up.paths.is_empty() {
            checks.again = Some(now + AGAIN);
            up.meet_again(now, &self.config);
        }
        let Some(checks) = &mut up.checks else { return };
        checks.telling.take_if(|telling| telling.at <= now && telling.tries >= TELLINGS);
        if checks.telling.as_ref().is_some_and(|telling| telling.at <= now) {
            self.tell_candidates(now, rng, peer);
        }
        self.check(now, rng, peer);
        self.end_meeting(peer);
    }

    fn tell_candidates(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let own = self.own_candidates();
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        let (way, seq) = (up.signal_route(), up.next_update_id());
        let Some(telling) = up.checks.as_mut().and_then(|checks| checks.telling.as_mut()) else { return };
        telling.at = now + WAIT * (1 << telling.tries.min(4));
        telling.tries += 1;
        let Some(route) = way else { return };
        telling.seqs.push(seq);
        let builder = Builder::new(PacketKind::Update, self.identity.hit(), peer)
            .push(&Parameter::CandidateSet(own))
            .push(&Parameter::Seq(seq));
        if let Ok(packet) = up.session.seal(builder, &self.identity, rng) {
            self.out.send(route, packet);
        }
    }

    /// Where this host can be reached: at its locators, and where its servers see those.
    fn own_candidates(&mut self) -> Vec<wire::hip::Candidate> {
        self.uplinks.retain(&self.config);
        let mut all = Vec::new();
        for &local in self.config.locators.iter().filter(|local| local.port() != 0) {
            let uplink = self.uplinks.number(local.ip());
            let mut push = |place: SocketAddr, (kind, preference): (u8, u32)| {
                let priority = priority(preference, uplink);
                all.push(wire::hip::Candidate {
                    lifetime: LIFETIME,
                    place: TransportAddress::udp(place),
                    kind,
                    priority,
                });
            };
            push(local, HOST);
            if let Some(&mapped) = self.mapped.get(&local).filter(|mapped| **mapped != local) {
                push(mapped, SERVER_REFLEXIVE);
            }
        }
        all.truncate(MAX_THEIRS);
        all
    }

    fn check(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let hit = self.identity.hit();
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        let seq = up.update_id;
        let Some(checks) = up.checks.as_mut().filter(|checks| checks.next <= now) else { return };
        let due = checks.pairs.iter_mut().filter(|pair| pair.state == State::Waiting && pair.at <= now);
        let Some(pair) = due.min_by_key(|pair| pair.tries) else { return };
        if pair.nonce.is_empty() {
            pair.nonce = nonce(rng);
        }
        pair.at = now + WAIT * (1 << pair.tries.min(DOUBLED));
        pair.tries += 1;
        pair.seqs.push(seq);
        let (route, nonce) = (pair.route, pair.nonce.clone());
        checks.next = now + PACE;
        let priority = priority(PEER_REFLEXIVE, self.uplinks.number(route.local.ip()));
        up.next_update_id();
        let builder = Builder::new(PacketKind::Update, hit, peer)
            .push(&Parameter::Seq(seq))
            .push(&Parameter::EchoRequestSigned(nonce))
            .push(&Parameter::CandidatePriority(priority));
        if let Ok(packet) = up.session.seal(builder, &self.identity, rng) {
            self.out.counters.checks_out += 1;
            self.out.send(route, packet);
        }
    }

    /// Nothing has worked: whoever wants to talk to the peer hears it.
    fn end_meeting(&mut self, peer: Hit) {
        let Some(record) = self.peers.get_mut(&peer) else { return };
        let Phase::Up(up) = &record.phase else { return };
        let is_over = up.checks.as_ref().is_some_and(|checks| checks.is_over());
        let is_vain = up.opening.is_none() && up.candidates.iter().all(|candidate| candidate.failures > 0);
        if up.initiator && is_over && is_vain && up.paths.is_empty() {
            let reason = "no way past the relay was found, and it carries no data; a UDP port that one of the NATs forwards would do";
            self.out.end(record, reason);
        }
    }

    /// A server of ours has told where it sees one of our locators.
    pub(crate) fn note_mapped(&mut self, now: Instant, local: SocketAddr, seen: &TransportAddress) {
        let Some(seen) = seen.in_udp() else { return };
        let fits = seen.is_ipv4() == local.is_ipv4() && !seen.ip().is_unspecified() && !seen.ip().is_multicast();
        if !fits || !self.config.locators.contains(&local) || self.mapped.get(&local) == Some(&seen) {
            return;
        }
        self.mapped.retain(|known, _| self.config.locators.contains(known));
        self.mapped.insert(local, seen);
        self.tell_candidates_anew(now);
    }

    /// Our candidates have changed.
    pub(crate) fn tell_candidates_anew(&mut self, now: Instant) {
        for record in self.peers.values_mut() {
            if let Phase::Up(up) = &mut record.phase {
                up.meet_again(now, &self.config);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8445 §5.1.2.1: 2^24 · type + 2^8 · local + 256 − component.
    #[test]
    fn priorities_are_those_of_ice() {
        assert_eq!(priority(126, 0), (1 << 24) * 126 + (1 << 8) * 65_535 + 256 - 1);
        for number in [0, 1, 255, 256, u16::MAX] {
            assert_eq!(uplink(priority(HOST.1, number)), number);
            assert!(priority(HOST.1, number) > priority(SERVER_REFLEXIVE.1, 0));
        }
    }
}
