//! The base exchange: I1, R1, I2, R2 (RFC 7401 §4.1, §6.6 to §6.10, RFC 7402 §5). Here is the Initiator's half, and the
//! beginning of an association; `responder` has the other.

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::hip::{Builder, DiffieHellman, EspInfo, HostId, Packet, PacketKind, Parameter, Solution, kind};
use wire::{Hit, Spi};

use crate::association::{Association, Candidate, I1Sent, I2Sent, Path, PeerRecord, Phase, Retry, Solving};
use crate::budget::Class;
use crate::checks::Checks;
use crate::cipher::HipCipher;
use crate::config::{HostConfig, Peer};
use crate::dh::{EphemeralSecret, Group};
use crate::esp::{EspSuite, InboundSa, OutboundSa};
use crate::event::Event;
use crate::feedback::{self, Features};
use crate::host::{Host, Refusal, is_place, routes, ways};
use crate::identity::PublicIdentity;
use crate::keymat::{EspKeyPair, Keymat};
use crate::notice::Notice;
use crate::puzzle::Solver;
use crate::registration;
use crate::route::Route;
use crate::session::{Session, host_id, sign, verify};

/// How often one I2 is sent before a fresh R1 is asked for, should the Responder not know its puzzle any more.
const I2_TRIES: u32 = 2;
/// The I1 that goes out after three seconds without an answer: a person may want to know by then.
const WORTH_TELLING: u32 = 3;
/// A locator for data alone (RFC 8046 §4).
const DATA_ONLY: u8 = 2;
/// Hashes in one go at a puzzle: about 1 ms.
const SLICE: u64 = 256;
/// Between two goes, so that everything else has its turn.
const PAUSE: Duration = Duration::from_millis(1);

impl Host {
    /// RFC 7401 §6.8: whether this is an R1 to answer now, to keep, or none of ours.
    pub(crate) fn on_r1(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let record = self.peers.get_mut(&packet.sender()).ok_or(Refusal::Unexpected)?;
        let waiting = matches!(record.phase, Phase::I1Sent(_));
        let is_fresh = matches!(&record.phase, Phase::I2Sent(sent) if sent.retry.tries == 1);
        let asked = record.phase.asked().ok_or(Refusal::Unexpected)?;
        let echoed = asked.is_echoed(packet);
        // Who answers from elsewhere shows that it has our I1, or says which server has passed it on (RFC 8004 §4.3.3). Else
        // somebody else may answer until the next I1.
        if !asked.on(route) && !echoed && !asked.went_by(packet) {
            asked.stray = Some(Box::new((route, packet.bytes().to_vec())));
            return Err(Refusal::Elsewhere);
        }
        // A second I2 with other keys could overtake the first, and the two hosts would end up with different ones. So the
        // other R1s wait until the first I2 was not answered; but one that shows our cookie shows that the first, which did
        // not, was not the peer's or is as good. That waits, too, while the first I2 may still be answered: two I1s that were
        // held up together get two R1s.
        if !waiting && (asked.echoed || !echoed || is_fresh) {
            asked.keep(route, packet, echoed);
            return Err(Refusal::Replayed);
        }
        self.consider(now, rng, route, packet)
    }

    /// Checks an R1, and begins to solve its puzzle.
    fn consider(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let asked = record.phase.asked().ok_or(Refusal::Unexpected)?;
        let echoed = asked.is_echoed(packet);
        let puzzle = packet.puzzle().ok_or(Refusal::Malformed)?;
        let peer_host_id = packet.host_id().ok_or(Refusal::Malformed)?;
        let signature = packet.hip_signature_2().ok_or(Refusal::Malformed)?;
        let public = packet.diffie_hellman().ok_or(Refusal::Malformed)?;
        let class = if echoed || asked.expects_plain() { Class::R1 } else { Class::R1Bare };
        self.out.affords(now, &self.config, class, route, true)?;
        self.out.meter.verification();
        let identity = identity_of(peer_host_id, peer)?;
        verify(&identity, &packet.covered_by_signature_2().ok_or(Refusal::Malformed)?, signature)?;
        // From here on the R1 is the Responder's own, except for what its signature leaves out.

        let counter = packet.r1_counter().copied().unwrap_or(record.r1_counter);
        if counter < record.r1_counter && !asked.believes_lower() {
            return Err(Refusal::WentBack);
        }
        // RFC 7401 §6.8, step 6.
        let own = self.identity.public().rhash().suite() << 4;
        if packet.hit_suite_list().is_some_and(|suites| !suites.contains(&own)) {
            self.out.fail(record, format!("{peer} takes no identities of the kind of ours, {hit}"));
            return Err(Refusal::Cipher);
        }
        let choice = match choose(&self.config, packet, public, puzzle.difficulty) {
            Choice::Use(choice) => choice,
            Choice::Downgraded => return Err(Refusal::Downgraded),
            Choice::Impossible(refusal, why) => {
                self.out.fail(record, format!("{peer}: {why}"));
                return Err(refusal);
            }
        };
        if puzzle.i.len() != identity.rhash().len() {
            return Err(Refusal::Malformed);
        }
        asked.answer(&puzzle.i, echoed);
        let (asked, tries_before) = (asked.clone(), record.phase.tries());
        self.out.end_phase(record, "");
        record.r1_counter = record.r1_counter.max(counter);
        let solver = Solver::new(identity.rhash(), &puzzle.i, hit, peer, puzzle.difficulty, rng);
        // 2^K tries on average; e^-16 of all puzzles take more than 16 times that.
        let left = 16 << puzzle.difficulty;
        let r1 = packet.bytes().to_vec();
        let work = Solving { route, r1, identity, choice, counter, solver, left, at: now, asked, tries_before };
        record.phase = Phase::Solving(Box::new(work));
        self.solve(now, rng, peer)
    }

    /// One go at one of the puzzles whose turn it is. The others wait, so that this takes no longer for many.
    pub(crate) fn solve_puzzles(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        let mut next = None;
        for (&peer, record) in &mut self.peers {
            if let Phase::Solving(work) = &mut record.phase
                && work.at <= now
            {
                work.at = now + PAUSE;
                next = next.or(Some((peer, work.route)));
            }
        }
        if let Some((peer, route)) = next
            && let Err(refusal) = self.solve(now, rng, peer)
        {
            self.out.refuse(now, refusal, route, Some(peer));
        }
    }

    fn solve(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) -> Result<(), Refusal> {
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let Phase::Solving(work) = &mut record.phase else { return Err(Refusal::Unexpected) };
        let tries = SLICE.min(work.left);
        let before = work.solver.tried();
        let found = work.solver.solve(tries);
        self.out.meter.hashes(work.solver.tried() - before);
        work.left -= tries;
        work.at = now + PAUSE;
        if found.is_none() && work.left > 0 {
            return Ok(());
        }
        let Phase::Solving(work) = std::mem::replace(&mut record.phase, Phase::Unassociated) else {
            return Err(Refusal::Unexpected);
        };
        let (asked, tries) = (work.asked.clone(), work.tries_before);
        let sent = found.ok_or(Refusal::Puzzle).and_then(|j| self.i2(now, rng, peer, *work, j));
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        match sent {
            Ok(mut sent) => {
                sent.asked.answered = true;
                self.out.send(sent.way(0), sent.packet.clone());
                record.phase = Phase::I2Sent(Box::new(sent));
                Ok(())
            }
            Err(refusal) => {
                // Another I1 asks for another R1.
                let retry = Retry { tries, ..Retry::new(now, &self.config) };
                let routes = ways(&self.config, &record.peer);
                record.phase = Phase::I1Sent(I1Sent { routes, retry, asked, i2: None });
                Err(refusal)
            }
        }
    }

    /// The keys that follow from an R1 and solution `j`, and our Diffie-Hellman value for the I2.
    fn agree(
        &self,
        rng: &mut dyn CryptoRng,
        peer: Hit,
        r1: &Packet<'_>,
        identity: PublicIdentity,
        choice: Chosen,
        j: &[u8],
    ) -> Result<(Session, DiffieHellman), Refusal> {
        let (hit, rhash) = (self.identity.hit(), identity.rhash());
        let puzzle = r1.puzzle().ok_or(Refusal::Malformed)?;
        let public = r1.diffie_hellman().ok_or(Refusal::Malformed)?;
        // Once for the key pair, once for the secret.
        self.out.meter.agreement();
        self.out.meter.agreement();
        let secret = EphemeralSecret::generate(choice.group, rng);
        let shared = secret.agree(&public.public).map_err(|_| Refusal::DiffieHellman)?;
        let keymat = Keymat::new(rhash, &shared, &puzzle.i, j, &hit, &peer);
        let keys = keymat.hip_keys(choice.cipher, &hit, &peer).map_err(|_| Refusal::Malformed)?;
        let keymat_next = keymat.first_esp_index(choice.cipher);
        let meter = self.out.meter.clone();
        let suite = choice.suite.between(feedback::agreed(&self.config, r1));
        let group = choice.group;
        let session = Session { rhash, keys, keymat, keymat_next, group, suite, peer: identity, meter };
        Ok((session, DiffieHellman { group: choice.group.number(), public: secret.public_value() }))
    }

    /// The I2 with solution `j`, and what has to be remembered of it (RFC 7401 §5.3.3).
    fn i2(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        peer: Hit,
        work: Solving,
        j: Vec<u8>,
    ) -> Result<I2Sent, Refusal> {
        let hit = self.identity.hit();
        let Solving { route, r1, identity, choice, counter, asked, tries_before, .. } = work;
        let packet = Packet::parse(&r1).map_err(|_| Refusal::Malformed)?;
        let puzzle = packet.puzzle().ok_or(Refusal::Malformed)?;
        let peer_host_id = packet.host_id().ok_or(Refusal::Malformed)?.clone();
        let (session, own) = self.agree(rng, peer, &packet, identity, choice, &j)?;
        let (rhash, esp_index) = (session.rhash, session.keymat_next);
        let feedback = feedback::agreed(&self.config, &packet);
        let registers = self.peers.get(&peer).is_some_and(|record| record.peer.registers);
        let request = registration::request(packet.reg_info().filter(|_| registers), route);
        let spi_in = self.out.new_spi(rng);
        let solution = Solution { difficulty: puzzle.difficulty, opaque: puzzle.opaque, i: puzzle.i.clone(), j };
        let mut builder = Builder::new(PacketKind::I2, hit, peer)
            .anonymous(self.identity.is_anonymous())
            .push(&Parameter::EspInfo(EspInfo { keymat_index: esp_index, old_spi: Spi(0), new_spi: spi_in }))
            .push_some(packet.r1_counter().map(|&counter| Parameter::R1Counter(counter)).as_ref())
            .push(&Parameter::Solution(solution))
            .push(&Parameter::DiffieHellman(own))
            .push(&Parameter::HipCipher(vec![choice.cipher.number()]))
            .push(&self.own_host_id(rng, &session, choice.cipher))
            .push_some(request.as_ref());
        for parameter in packet.parameters() {
            if let Parameter::EchoRequestSigned(echo) = parameter {
                builder = builder.push(&Parameter::EchoResponseSigned(echo.clone()));
            }
        }
        builder = builder
            .push(&Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]))
            .push(&Parameter::EspTransform(vec![choice.suite.number()]))
            .push_some(feedback.map(feedback::offer).as_ref());
        self.out.meter.mac();
        self.out.meter.signature();
        let mac = rhash.hmac(&session.keys.ours.integrity, &[&builder.covered()]);
        let mut builder = sign(builder.push(&Parameter::HipMac(mac)), &self.identity, rng);
        for parameter in packet.parameters() {
            if let Parameter::EchoRequestUnsigned(echo) = parameter {
                builder = builder.push(&Parameter::EchoResponseUnsigned(echo.clone()));
            }
        }
        let Ok(i2) = builder.finish() else {
            self.out.spis.remove(&spi_in);
            return Err(Refusal::Malformed);
        };
        let locators = packet.locator_set().into_iter().flatten().map(|locator| unmapped(locator.address)).collect();
        // The longer the exchange takes, the longer a round trip may be.
        let wait = (self.config.retransmission * (1 << (tries_before / 4).min(6))).min(self.config.max_retransmission);
        let known = self.peers.get(&peer);
        Ok(I2Sent {
            route,
            preferred: known.and_then(|record| preferred(&record.peer, route, &packet)),
            packet: i2,
            session,
            host_id: peer_host_id,
            esp_index,
            spi_in,
            locators,
            feedback,
            counter,
            asked,
            retry: Retry { at: now + wait, tries: 1, wait },
            tries_before,
        })
    }

    /// Who we are, as the I2 tells it: for the Responder's eyes only where that is configured (RFC 7401 §5.2.18, §5.3.3).
    fn own_host_id(&self, rng: &mut dyn CryptoRng, session: &Session, cipher: HipCipher) -> Parameter {
        let plain = Parameter::HostId(host_id(self.identity.public()));
        if !self.config.encrypts_identity {
            return plain;
        }
        let mut bytes = Vec::new();
        plain.emit(&mut bytes);
        Parameter::Encrypted(cipher.encrypt(&session.keys.ours.encryption, rng, &bytes))
    }

    /// RFC 7401 §6.10.
    pub(crate) fn on_r2(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let sent = record.phase.i2().ok_or(Refusal::Unexpected)?;
        sent.session.check_r2(packet, &sent.host_id)?;
        let esp = packet
            .esp_info()
            .filter(|esp| esp.old_spi.0 == 0 && esp.new_spi.0 > 255 && esp.keymat_index == sent.esp_index);
        let esp = *esp.ok_or(Refusal::Malformed)?;
        let (Phase::I2Sent(sent) | Phase::I1Sent(I1Sent { i2: Some(sent), .. })) =
            std::mem::replace(&mut record.phase, Phase::Unassociated)
        else {
            return Err(Refusal::Unexpected);
        };
        let mut sent = *sent;
        // Where the I2 went to two places, the answer tells which of them is one.
        let route = if sent.preferred == Some(route) { route } else { sent.route };
        if let Some(set) = packet.locator_set() {
            sent.locators = set.iter().map(|locator| unmapped(locator.address)).collect();
        }
        // Only now may a counter that went back replace the higher one: an R1 can be replayed, an R2 cannot.
        record.r1_counter = sent.counter;
        let keys = sent.session.draw_esp(sent.esp_index, hit).ok_or(Refusal::Malformed)?;
        let mut up = Association::new(sent.session, true);
        up.candidates = routes(&self.config, &record.peer, &sent.locators)
            .into_iter()
            .map(|route| Candidate::new(route, now))
            .collect();
        if !sent.locators.is_empty() {
            // Where it says that it is comes before where it is configured.
            up.review_remotes(&record.peer.locators, &sent.locators, now, self.config.path_retry);
        }
        if let Some(set) = packet.locator_set() {
            up.note_lifetimes(&mut self.out, peer, set, now);
        }
        let relayed = record.peer.is_relayed(route);
        if relayed && sent.feedback.is_none() {
            self.out.spis.remove(&sent.spi_in);
            self.out.fail(record, format!("{peer} is no Sinnet, and so cannot be met behind a relay"));
            return Err(Refusal::Unexpected);
        }
        let beginning = Beginning { now, peer, feedback: sent.feedback, route, relayed };
        if !self.config.backups.is_empty() {
            up.announce();
        }
        self.begin(beginning, up, keys, esp.new_spi, sent.spi_in);
        if let Some(record) = self.peers.get_mut(&peer) {
            record.enrolled(&mut self.out, now, packet);
            if let Some(seen) = packet.reg_from().filter(|_| record.peer.registers) {
                self.note_mapped(now, route.local, seen);
            }
        }
        self.open_paths(now, rng, peer);
        self.keep_checking(now, rng, peer);
        Ok(())
    }

    /// Sends I1 or I2 again, answers another R1, or gives up.
    pub(crate) fn retry_exchange(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let hit = self.identity.hit();
        let Some(record) = self.peers.get_mut(&peer) else { return };
        match &mut record.phase {
            Phase::I1Sent(sent) if sent.retry.at <= now => {
                if sent.retry.tries >= self.config.max_tries {
                    let reason = no_answer(record, hit, peer);
                    return self.out.fail(record, reason);
                }
                let route = next_way(sent, record.standby.as_deref());
                let stray = sent.asked.stray.take();
                sent.retry.again(now, &self.config);
                if sent.retry.tries == WORTH_TELLING {
                    self.out.events.push_back(Event::Unanswered { peer, routes: sent.routes.clone() });
                }
                if let Some(route) = route {
                    self.out.send_again(route, &sent.asked.i1(&self.config, &self.identity, peer, route));
                }
                if let Some((route, r1)) = stray.map(|stray| *stray) {
                    self.answer_another(now, rng, peer, route, &r1);
                }
            }
            Phase::I2Sent(sent) if sent.retry.at <= now => {
                let tries = sent.tries_before + sent.retry.tries;
                if tries >= self.config.max_tries {
                    let reason = format!("{peer} does not accept our identity {hit}; does it have us among its peers?");
                    return self.out.fail(record, reason);
                }
                if let Some((route, r1)) = sent.asked.next() {
                    return self.answer_another(now, rng, peer, route, &r1);
                }
                // Where several R1s came, one more I1 tells sooner which is the peer's than the I2 again.
                let most = if sent.asked.contested { 1 } else { I2_TRIES };
                if sent.retry.tries < most {
                    let way = sent.way(sent.retry.tries);
                    sent.retry.again(now, &self.config);
                    return self.out.send_again(way, &sent.packet);
                }
                // The puzzle may have grown too old at the Responder: a fresh R1 is needed.
                let first = sent.route;
                let mut asked = sent.asked.clone();
                asked.contested = false;
                let mut routes = ways(&self.config, &record.peer);
                routes.sort_by_key(|route| *route != first);
                self.out.send_again(first, &asked.i1(&self.config, &self.identity, peer, first));
                let retry = Retry { tries, ..Retry::new(now, &self.config) };
                if let Phase::I2Sent(sent) = std::mem::replace(&mut record.phase, Phase::Unassociated) {
                    record.phase = Phase::I1Sent(I1Sent { routes, retry, asked, i2: Some(sent) });
                }
            }
            _ => {}
        }
    }

    /// The I2 was not answered, but another R1 has come, too.
    fn answer_another(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit, route: Route, r1: &[u8]) {
        let Ok(packet) = Packet::parse(r1) else { return };
        if let Err(refusal) = self.consider(now, rng, route, &packet) {
            self.out.refuse(now, refusal, route, Some(peer));
            // The I2 that is out still counts; its next try, or the next R1, is soon.
            if let Some(Phase::I2Sent(sent)) = self.peers.get_mut(&peer).map(|record| &mut record.phase)
                && sent.retry.at <= now
            {
                sent.retry.at = now + PAUSE;
            }
        }
    }

    /// The association is established: its first path, and the event.
    pub(crate) fn begin(
        &mut self,
        beginning: Beginning,
        mut up: Association,
        keys: EspKeyPair,
        spi_out: Spi,
        spi_in: Spi,
    ) {
        let Beginning { now, peer, feedback, route, relayed } = beginning;
        up.keyed(now, &self.config, feedback.is_some());
        if relayed {
            return self.meet_by_relay(beginning, up, spi_in);
        }
        let renew_at = up.renewal_time(now, &self.config);
        let path = Path {
            id: PathId(0),
            route,
            spi_in,
            spi_out,
            backup: false,
            deprecated: false,
            spare: false,
            verified: true,
            renew_at,
            refused_until: Instant::ZERO,
            stranded: false,
        };
        let path = up.add_path(path);
        let (outbound, inbound) = security_associations(up.session.suite, keys, (spi_in, spi_out), self.config.keylog);
        self.establish(beginning, up);
        self.out.events.push_back(Event::PathUp { peer, path, route, outbound, inbound, verified: true });
    }

    /// The same at a relay, which carries no data: the first path is still to be found.
    fn meet_by_relay(&mut self, beginning: Beginning, mut up: Association, spi_in: Spi) {
        let Beginning { now, route, .. } = beginning;
        self.out.spis.remove(&spi_in);
        // The Responder's would overtake the R2.
        let patience = if up.initiator { Duration::ZERO } else { self.config.retransmission / 4 };
        up.relay = Some(route);
        up.checks = Some(Box::new(Checks::new(now, patience)));
        up.note_paths(now, &self.config);
        // What was configured is to be checked like everything else.
        up.candidates.clear();
        self.establish(beginning, up);
    }

    fn establish(&mut self, beginning: Beginning, up: Association) {
        let Beginning { now, peer, feedback, .. } = beginning;
        self.out.counters.established += 1;
        if let Some(old) = self.peers.get_mut(&peer).and_then(|record| record.standby.take()) {
            self.out.end_association(peer, &old, "it has been replaced by one with new keys");
        }
        if self.peers.get(&peer).is_some_and(|record| record.is_guest) {
            self.out.events.push_back(Event::Admitted { peer });
        }
        self.out.events.push_back(Event::Established { peer, feedback });
        if let Some(record) = self.peers.get_mut(&peer) {
            record.epoch += 1;
            record.is_sinnet = feedback.is_some();
            record.enrol(now, &self.config);
            record.phase = Phase::Up(Box::new(up));
        }
    }
}

impl I2Sent {
    /// Where the I2 goes, sent so many times before: to the R1's preferred locator (RFC 8047 §4.2.8), and as that may be
    /// where we cannot get, then to where the R1 came from.
    fn way(&self, tries: u32) -> Route {
        self.preferred.filter(|_| tries.is_multiple_of(2)).unwrap_or(self.route)
    }
}

/// The way to the locator that an R1 prefers, if it is not that on which the R1 came.
fn preferred(peer: &Peer, route: Route, r1: &Packet<'_>) -> Option<Route> {
    let set = r1.locator_set()?;
    let address = unmapped(set.iter().find(|locator| locator.preferred && locator.traffic != DATA_ONLY)?.address);
    let fits = address.is_ipv4() == route.local.is_ipv4() && address != route.remote.ip() && is_place(address, peer);
    // Where the user has said which ways to take, no other is taken.
    let remote = (address, route.remote.port()).into();
    (fits && peer.routes.is_empty()).then_some(Route { remote, ..route })
}

/// A new association.
#[derive(Clone, Copy)]
pub(crate) struct Beginning {
    pub(crate) now: Instant,
    pub(crate) peer: Hit,
    pub(crate) feedback: Option<Features>,
    pub(crate) route: Route,
    /// The two have met at a relay.
    pub(crate) relayed: bool,
}

/// The route of the next I1. While an association goes on, every other I1 takes one of its paths: the peer is behind one of
/// them where it is there at all, and routes from the configuration may lead nowhere.
fn next_way(sent: &I1Sent, standby: Option<&Association>) -> Option<Route> {
    let paths: Vec<Route> = standby.iter().flat_map(|up| &up.paths).map(|path| path.route).collect();
    let others: Vec<Route> = sent.routes.iter().filter(|route| !paths.contains(route)).copied().collect();
    let tries = sent.retry.tries as usize;
    let (ways, turn) = match (paths.is_empty(), others.is_empty()) {
        (false, false) if tries.is_multiple_of(2) => (paths, tries / 2),
        (false, false) => (others, tries / 2),
        (false, true) => (paths, tries),
        (true, _) => (others, tries),
    };
    ways.get(turn % ways.len().max(1)).copied()
}

/// Why an exchange in which no R1 was taken has failed.
fn no_answer(record: &mut PeerRecord, hit: Hit, peer: Hit) -> String {
    let went_back = record.phase.asked().is_some_and(|asked| asked.lower > 0);
    match record.notice {
        _ if went_back => format!(
            "{peer} answers with an R1 counter lower than before; its clock may have been set back, or somebody replays its \
             answers"
        ),
        Some(notice) => format!("{peer} {}; our identity is {hit}", Notice(notice)),
        None => format!("{peer} does not answer; is it up, and are its locators right?"),
    }
}

/// The pair of a path. The keys themselves stay only where the user wants to have them.
pub(crate) fn security_associations(
    suite: EspSuite,
    keys: EspKeyPair,
    (spi_in, spi_out): (Spi, Spi),
    keylog: bool,
) -> (OutboundSa, InboundSa) {
    let outbound = OutboundSa::new(suite, spi_out, &keys.outbound);
    let inbound = InboundSa::new(suite, spi_in, &keys.inbound);
    if keylog { (outbound.logged(keys.outbound), inbound.logged(keys.inbound)) } else { (outbound, inbound) }
}

/// What is used with a Responder.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    group: Group,
    cipher: HipCipher,
    suite: EspSuite,
}

enum Choice {
    Use(Chosen),
    /// The group is not the one that both would have chosen: somebody has changed our I1.
    Downgraded,
    Impossible(Refusal, String),
}

fn choose(config: &HostConfig, r1: &Packet<'_>, public: &DiffieHellman, difficulty: u8) -> Choice {
    // RFC 7401 §6.8: the Responder's best group among ours, or else there is none.
    let groups = r1.dh_group_list().map_or(&[][..], Vec::as_slice);
    let ours = |number: u8| config.groups.iter().copied().find(|group| group.number() == number);
    let Some(group) = groups.iter().find_map(|&number| ours(number)) else {
        return Choice::Impossible(Refusal::Group, "has no Diffie-Hellman group that we have".into());
    };
    if group.number() != public.group {
        return Choice::Downgraded;
    }
    let ciphers = r1.hip_cipher().map_or(&[][..], Vec::as_slice);
    let Some(&cipher) = config.ciphers.iter().find(|cipher| ciphers.contains(&cipher.number())) else {
        return Choice::Impossible(Refusal::Cipher, "has no HIP cipher that we have".into());
    };
    let formats = r1.transport_format_list().map_or(&[][..], Vec::as_slice);
    let suites = r1.esp_transform().map_or(&[][..], Vec::as_slice);
    let ours =
        if feedback::offered(r1).is_some() { config.esp_suites.clone() } else { clear_first(&config.esp_suites) };
    let suite = ours.iter().find(|suite| suites.contains(&suite.number()));
    let Some(&suite) = suite.filter(|_| formats.is_empty() || formats.contains(&kind::ESP_TRANSFORM)) else {
        return Choice::Impossible(Refusal::Suite, "has no ESP suite that we have".into());
    };
    if difficulty > config.max_difficulty {
        let why = format!("sets a puzzle of difficulty {difficulty}, which would take too long");
        return Choice::Impossible(Refusal::TooHard, why);
    }
    Choice::Use(Chosen { group, cipher, suite })
}

/// In the order for hosts other than Sinnet: suites of which RFC 7402 does not say how long the key is come last, since a host
/// that has another length in mind would have an association without data.
pub(crate) fn clear_first(suites: &[EspSuite]) -> Vec<EspSuite> {
    let mut suites = suites.to_vec();
    suites.sort_by_key(|suite| !suite.has_one_key_length());
    suites
}

/// The identity in a HOST_ID, which has to be the one that the HIT is the hash of.
pub(crate) fn identity_of(host_id: &HostId, hit: Hit) -> Result<PublicIdentity, Refusal> {
    let identity = PublicIdentity::from_wire(host_id.algorithm, &host_id.identity).map_err(|_| Refusal::Signature)?;
    if identity.hit() == hit { Ok(identity) } else { Err(Refusal::Signature) }
}

/// An address of LOCATOR_SET as sockets know it.
pub(crate) fn unmapped(address: std::net::Ipv6Addr) -> std::net::IpAddr {
    address.to_canonical()
}
