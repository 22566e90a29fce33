//! The Responder's half of the base exchange: I1 and I2 (RFC 7401 §6.7, §6.9).

use clock::Instant;
use rand_core::CryptoRng;
use wire::hip::{Builder, EspInfo, HostId, Packet, PacketKind, Parameter, Solution, append, kind};

use crate::asking;
use crate::association::{Answered, Association, Phase};
use crate::budget::Class;
use crate::cipher::HipCipher;
use crate::esp::EspSuite;
use crate::exchange::{Beginning, identity_of};
use crate::feedback::{self, Features};
use crate::host::{Host, Refusal};
use crate::keymat::Keymat;
use crate::locators;
use crate::registration::Decision;
use crate::rendezvous::Relayed;
use crate::route::Route;
use crate::session::{Session, check_mac};
use crate::update::Turn;

/// An answer to an I1, whose source may be forged, is at most so many times as long as the I1, or comes out of a budget.
/// RFC 9000 §8.1 has the same number.
const AMPLIFICATION: usize = 3;

impl Host {
    /// RFC 7401 §6.7: an R1 for whoever asks, and no state.
    pub(crate) fn on_i1(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let peer = packet.sender();
        let relayed = self.relayed(now, route, packet)?;
        let route = relayed.as_ref().map_or(route, |relayed| relayed.route);
        let record = self.peers.get(&peer).filter(|record| record.peer.may_begin).ok_or(Refusal::Unexpected)?;
        // RFC 7401 §4.4.3, table 3: of two I1s that cross, the host with the smaller HIT drops the other's and waits for
        // the R1 to its own. Ours does not cross one from an address that it was not sent to: behind a NAT, for example, it
        // may never get there, and both would wait.
        let crosses = match record.phase {
            Phase::I1Sent(_) => record.peer.is_expected_at(route.remote.ip()),
            Phase::Solving(_) => true,
            _ => false,
        };
        if crosses && self.identity.hit() < peer {
            return Err(Refusal::Unexpected);
        }
        let groups = packet.dh_group_list().ok_or(Refusal::Malformed)?;
        let (known, epoch) = (record.peer.is_expected_at(route.remote.ip()), record.epoch);
        self.out.affords(now, &self.config, Class::I1, route, known)?;
        self.r1s.prepare(now, &self.identity, &self.config, groups, rng);
        let r1 = self.r1s.r1(&self.config, peer, epoch, route, groups).ok_or(Refusal::Group)?;
        let mut r1 = asking::echo(r1, packet);
        if let Some(Relayed { server, .. }) = relayed {
            // An R1 without room for it is still an R1.
            _ = append(&mut r1, &Parameter::ViaRvs(vec![server]));
        }
        if r1.len() > AMPLIFICATION * packet.bytes().len() {
            self.out.affords(now, &self.config, Class::Reply, route, known)?;
        }
        self.out.send(route, r1);
        Ok(())
    }

    /// RFC 7401 §6.9: at most a MAC and a hash before the Initiator has shown that it receives where it says and has worked
    /// for it; then what the budget has room for.
    pub(crate) fn on_i2(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        self.r1s.refresh(now, &self.identity, &self.config, rng);
        let record = self.peers.get_mut(&peer).filter(|record| record.peer.may_begin).ok_or(Refusal::Unexpected)?;
        let mac = packet.hip_mac().ok_or(Refusal::Mac)?;
        if let Phase::Up(up) = &record.phase
            && let Some(answered) = &up.r2
            && answered.route == route
            && answered.mac == *mac
        {
            self.out.send_again(route, &answered.r2);
            return Err(Refusal::Replayed);
        }
        // RFC 7401 §4.4.3, table 4: of two I2s that cross, that to the host with the greater HIT counts. It may have taken
        // ours although we have not heard so, and already ask for another R1.
        if record.phase.asked().is_some_and(|asked| asked.answered) && hit < peer {
            return Err(Refusal::Unexpected);
        }
        let solution = packet.solution().ok_or(Refusal::Malformed)?;
        if !self.r1s.solved(now, peer, record.epoch, route, solution) {
            return Err(Refusal::Puzzle);
        }
        // Once more with the same solution comes who was not heard because somebody has changed its packet on the way, and
        // who wants to make us work for nothing: from a smaller budget.
        let again = self.r1s.is_used(now, peer, solution);
        let class = if again { Class::I2Again } else { Class::I2 };
        let known = record.peer.is_expected_at(route.remote.ip());
        let taken = self.out.affords(now, &self.config, class, route, known).and_then(|()| {
            self.r1s.use_up(now, peer, solution);
            self.answer_i2(now, rng, route, packet, solution)
        });
        if taken.is_err() && !again {
            self.r1s.strain(now);
        }
        self.finish_i2(now, rng, route, packet, taken?);
        self.r1s.spend(solution.opaque);
        self.open_paths(now, rng, peer);
        Ok(())
    }

    /// The keys, then the proof of identity, then the R2.
    fn answer_i2(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
        solution: &Solution,
    ) -> Result<Answer, Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        let rhash = self.identity.public().rhash();
        let public = packet.diffie_hellman().ok_or(Refusal::Malformed)?;
        let secret = self.r1s.secret(now, solution.opaque, public.group).ok_or(Refusal::Group)?;
        let cipher = only(packet.hip_cipher(), &self.config.ciphers, HipCipher::from_number, Refusal::Cipher)?;
        let suite = only(packet.esp_transform(), &self.config.esp_suites, EspSuite::from_number, Refusal::Suite)?;
        if !packet.transport_format_list().is_none_or(|list| list.contains(&kind::ESP_TRANSFORM)) {
            return Err(Refusal::Suite);
        }
        self.out.meter.agreement();
        let shared = secret.agree(&public.public).map_err(|_| Refusal::DiffieHellman)?;
        let keymat = Keymat::new(rhash, &shared, &solution.i, &solution.j, &hit, &peer);
        let keys = keymat.hip_keys(cipher, &hit, &peer).map_err(|_| Refusal::Malformed)?;
        // RFC 7401 §5.2.12: HIP_MAC covers ENCRYPTED as it is on the wire, so nothing is decrypted before it is right.
        check_mac(rhash, &keys, packet, &self.out.meter)?;
        let peer_host_id = match (packet.host_id(), packet.encrypted()) {
            (Some(host_id), _) => host_id.clone(),
            (None, Some(encrypted)) => decrypted(cipher, &keys.theirs.encryption, encrypted)?,
            (None, None) => return Err(Refusal::Malformed),
        };
        let identity = identity_of(&peer_host_id, peer)?;
        let keymat_next = keymat.first_esp_index(cipher);
        let feedback = feedback::agreed(&self.config, packet);
        let suite = suite.between(feedback);
        let (group, meter) = (secret.group(), self.out.meter.clone());
        let mut session = Session { rhash, keys, keymat, keymat_next, group, suite, peer: identity, meter };
        session.check_signature(packet)?;

        let esp = packet.esp_info().filter(|esp| esp.old_spi.0 == 0 && esp.new_spi.0 > 255);
        let esp = *esp.ok_or(Refusal::Syntax)?;
        let keys = session.draw_esp(esp.keymat_index, hit).ok_or(Refusal::Syntax)?;
        let spi_in = self.out.new_spi(rng);
        let own = EspInfo { keymat_index: esp.keymat_index, old_spi: wire::Spi(0), new_spi: spi_in };
        if self.out.is_relayed() && feedback.is_none() {
            // Without our connectivity checks there would be no way for data.
            self.out.spis.remove(&spi_in);
            return Err(Refusal::Unexpected);
        }
        // LOCATOR_SET is critical, so it is not for a host that may not know it (RFC 7401 §5.2.2); a Sinnet does.
        let locators = Some(locators::announced(&self.config)).filter(|set| feedback.is_some() && set.len() > 1);
        let others = packet.reg_request().map_or(0, |_| self.registrations_but(peer, now));
        let record = self.peers.get(&peer).ok_or(Refusal::Unexpected)?;
        let decision = record.decide(&self.config, packet, route, others, now);
        let mut builder = Builder::new(PacketKind::R2, hit, peer)
            .push(&Parameter::EspInfo(own))
            .push_some(locators.map(Parameter::LocatorSet).as_ref());
        for parameter in decision.iter().flat_map(|decision| &decision.answer) {
            builder = builder.push(parameter);
        }
        let Ok(r2) = session.seal_r2(builder, &self.identity, rng) else {
            self.out.spis.remove(&spi_in);
            return Err(Refusal::Malformed);
        };
        self.out.send(route, r2.clone());
        Ok(Answer { session, keys, feedback, spi_out: esp.new_spi, spi_in, r2, decision })
    }

    /// The association is there.
    fn finish_i2(&mut self, now: Instant, rng: &mut dyn CryptoRng, route: Route, packet: &Packet<'_>, answer: Answer) {
        let peer = packet.sender();
        let Answer { session, keys, feedback, spi_out, spi_in, r2, decision } = answer;
        if let Some(record) = self.peers.get_mut(&peer) {
            self.out.end(record, "the peer has begun anew");
        }
        let mut up = Association::new(session, false);
        up.r2 = packet.hip_mac().map(|mac| Answered { route, mac: mac.clone(), r2 });
        // The I2 solves a puzzle that was sent to this very route: the peer receives there.
        let relayed = self.out.is_relayed();
        self.begin(Beginning { now, peer, feedback, route, relayed }, up, keys, spi_out, spi_in);
        if let (Some(record), Some(decision)) = (self.peers.get_mut(&peer), &decision) {
            record.note(&mut self.out, decision);
        }
        let Self { out, identity, config, peers, .. } = self;
        if let Some(record) = peers.get_mut(&peer)
            && let Phase::Up(up) = &mut record.phase
        {
            // The I2 may say where else the peer is.
            Turn { out, identity, config, rng, now, peer, route, tells_mapped: false, permission: None }.meet(
                up,
                &record.peer,
                packet,
            );
        }
    }
}

/// What an I2 that was taken leads to.
struct Answer {
    session: Session,
    keys: crate::keymat::EspKeyPair,
    feedback: Option<Features>,
    spi_out: wire::Spi,
    spi_in: wire::Spi,
    r2: Vec<u8>,
    /// What the R2 says about a registration.
    decision: Option<Decision>,
}

/// The one number that the Initiator has chosen, which has to be among ours.
fn only<T: Copy + PartialEq>(
    chosen: Option<&Vec<u16>>,
    ours: &[T],
    from_number: impl Fn(u16) -> Option<T>,
    refusal: Refusal,
) -> Result<T, Refusal> {
    match chosen.map(Vec::as_slice) {
        Some(&[number]) => from_number(number).filter(|one| ours.contains(one)).ok_or(refusal),
        _ => Err(Refusal::Malformed),
    }
}

/// The HOST_ID inside ENCRYPTED (RFC 7401 §5.2.18).
fn decrypted(cipher: HipCipher, key: &[u8], encrypted: &[u8]) -> Result<HostId, Refusal> {
    let plain = cipher.decrypt(key, encrypted).map_err(|_| Refusal::Mac)?;
    let head = plain.first_chunk::<4>().ok_or(Refusal::Mac)?;
    let number = u16::from_be_bytes([head[0], head[1]]);
    let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let contents = plain.get(4..4 + len).ok_or(Refusal::Mac)?;
    match Parameter::parse(number, contents) {
        Ok(Parameter::HostId(host_id)) => Ok(host_id),
        _ => Err(Refusal::Mac),
    }
}
