//! The base exchange: I1, R1, I2, R2 (RFC 7401 §4.1, §6.6 to §6.10, RFC 7402 §5).

use clock::Instant;
use rand_core::CryptoRng;
use wire::hip::{Builder, DiffieHellman, EspInfo, HostId, Packet, PacketKind, Parameter, Solution, kind};
use wire::{Hit, Spi};

use crate::association::{Association, Candidate, I1Sent, I2Sent, Phase, Retry};
use crate::cipher::HipCipher;
use crate::config::HostConfig;
use crate::dh::{EphemeralSecret, Group};
use crate::esp::{EspKeys, EspSuite, InboundSa, OutboundSa};
use crate::event::Event;
use crate::feedback;
use crate::host::{Host, Refusal, i1, routes};
use crate::identity::PublicIdentity;
use crate::keymat::{EspKeyPair, Keymat};
use crate::notice::Notice;
use crate::puzzle;
use crate::route::Route;
use crate::session::{Session, host_id, sign, verify};

/// How often one I2 is sent before a fresh R1 is asked for.
const I2_TRIES: u32 = 6;

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
        let record = self.peers.get(&peer).ok_or(Refusal::Unexpected)?;
        // RFC 7401 §4.4.3, table 3: of two I1s that cross, the host with the smaller HIT drops the other's and waits for
        // the R1 to its own.
        if matches!(record.phase, Phase::I1Sent(_)) && self.identity.hit() < peer {
            return Err(Refusal::Unexpected);
        }
        let groups = packet.dh_group_list().ok_or(Refusal::Malformed)?;
        self.r1s.refresh(now, &self.identity, &self.config, rng);
        let r1 = self.r1s.r1(peer, record.epoch, route, groups).ok_or(Refusal::Group)?;
        self.out.send(route, r1);
        Ok(())
    }

    /// RFC 7401 §6.8: checks the R1, solves its puzzle, and sends the I2.
    pub(crate) fn on_r1(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let puzzle = packet.puzzle().ok_or(Refusal::Malformed)?;
        let tries_before = match &record.phase {
            Phase::I1Sent(sent) => sent.retry.tries,
            // A second I2 with other keys could overtake the first, and the two hosts would end up with different ones.
            // The I2 that is out is tried for long before a new R1 is asked for.
            Phase::I2Sent(_) => return Err(Refusal::Replayed),
            _ => return Err(Refusal::Unexpected),
        };
        let counter = packet.r1_counter().copied().unwrap_or(record.r1_counter);
        if counter < record.r1_counter {
            return Err(Refusal::Replayed);
        }
        let peer_host_id = packet.host_id().ok_or(Refusal::Malformed)?;
        let identity = identity_of(peer_host_id, peer)?;
        let signature = packet.hip_signature_2().ok_or(Refusal::Malformed)?;
        self.out.meter.verification();
        verify(&identity, &packet.covered_by_signature_2().ok_or(Refusal::Malformed)?, signature)?;
        // From here on the R1 is the Responder's own, except for what its signature leaves out.

        let public = packet.diffie_hellman().ok_or(Refusal::Malformed)?;
        let choice = match choose(&self.config, packet, public, puzzle.difficulty) {
            Choice::Use(choice) => choice,
            Choice::Downgraded => return Err(Refusal::Downgraded),
            Choice::Impossible(refusal, why) => {
                self.out.fail(record, format!("{peer}: {why}"));
                return Err(refusal);
            }
        };
        let rhash = identity.rhash();
        if puzzle.i.len() != rhash.len() {
            return Err(Refusal::Malformed);
        }
        // 2^K tries on average; e^-16 of all puzzles take more than 16 times that.
        let tries = 16 << puzzle.difficulty;
        let j = puzzle::solve(rhash, &puzzle.i, hit, peer, puzzle.difficulty, tries, rng).ok_or(Refusal::Puzzle)?;
        self.out.meter.agreement();
        self.out.meter.agreement();
        let secret = EphemeralSecret::generate(choice.group, rng);
        let shared = secret.agree(&public.public).map_err(|_| Refusal::DiffieHellman)?;
        let keymat = Keymat::new(rhash, &shared, &puzzle.i, &j, &hit, &peer);
        let keys = keymat.hip_keys(choice.cipher, &hit, &peer).map_err(|_| Refusal::Malformed)?;
        let esp_index = keymat.first_esp_index(choice.cipher);
        let meter = self.out.meter.clone();
        let session =
            Session { rhash, keys, keymat, keymat_next: esp_index, suite: choice.suite, peer: identity, meter };

        let feedback = self.config.feedback && feedback::is_offered(packet);
        let spi_in = self.out.new_spi(rng);
        let solution = Solution { difficulty: puzzle.difficulty, opaque: puzzle.opaque, i: puzzle.i.clone(), j };
        let own = DiffieHellman { group: choice.group.number(), public: secret.public_value() };
        let mut builder = Builder::new(PacketKind::I2, hit, peer)
            .push(&Parameter::EspInfo(EspInfo { keymat_index: esp_index, old_spi: Spi(0), new_spi: spi_in }))
            .push_some(packet.r1_counter().map(|&counter| Parameter::R1Counter(counter)).as_ref())
            .push(&Parameter::Solution(solution))
            .push(&Parameter::DiffieHellman(own))
            .push(&Parameter::HipCipher(vec![choice.cipher.number()]))
            .push(&Parameter::HostId(host_id(self.identity.public())));
        for parameter in packet.parameters() {
            if let Parameter::EchoRequestSigned(echo) = parameter {
                builder = builder.push(&Parameter::EchoResponseSigned(echo.clone()));
            }
        }
        builder = builder
            .push(&Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]))
            .push(&Parameter::EspTransform(vec![choice.suite.number()]))
            .push_some(feedback.then(feedback::offer).as_ref());
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
        record.r1_counter = counter;
        let locators = packet.locator_set().into_iter().flatten().map(|locator| unmapped(locator.address)).collect();
        self.out.send(route, i2.clone());
        record.phase = Phase::I2Sent(Box::new(I2Sent {
            route,
            packet: i2,
            session,
            host_id: peer_host_id.clone(),
            esp_index,
            spi_in,
            locators,
            feedback,
            retry: Retry::new(now, &self.config),
            tries_before,
        }));
        Ok(())
    }

    /// RFC 7401 §6.9: the cheap checks first, then the keys, then the proof of identity; an association and an R2.
    pub(crate) fn on_i2(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        self.r1s.refresh(now, &self.identity, &self.config, rng);
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let rhash = self.identity.public().rhash();
        let digest = rhash.digest(&[&packet.covered_by_signature().ok_or(Refusal::Malformed)?]);
        if let Phase::Up(up) = &record.phase
            && let Some((i2, r2)) = &up.r2
            && *i2 == digest
        {
            self.out.send_again(route, r2);
            return Err(Refusal::Replayed);
        }
        let solution = packet.solution().ok_or(Refusal::Malformed)?;
        if !self.r1s.solved(now, peer, record.epoch, route, solution) {
            return Err(Refusal::Puzzle);
        }
        // RFC 7401 §4.4.3, table 4: of two I2s that cross, that to the host with the greater HIT counts.
        if matches!(record.phase, Phase::I2Sent(_)) && hit < peer {
            return Err(Refusal::Unexpected);
        }

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
        let peer_host_id = match (packet.host_id(), packet.encrypted()) {
            (Some(host_id), _) => host_id.clone(),
            (None, Some(encrypted)) => decrypted(cipher, &keys.theirs.encryption, encrypted)?,
            (None, None) => return Err(Refusal::Malformed),
        };
        let identity = identity_of(&peer_host_id, peer)?;
        let first_index = keymat.first_esp_index(cipher);
        let meter = self.out.meter.clone();
        let mut session = Session { rhash, keys, keymat, keymat_next: first_index, suite, peer: identity, meter };
        session.check(packet)?;

        let esp = packet.esp_info().filter(|esp| esp.old_spi.0 == 0 && esp.new_spi.0 > 255);
        let esp = esp.ok_or(Refusal::Syntax)?;
        let keys = session.draw_esp(esp.keymat_index, hit).ok_or(Refusal::Syntax)?;
        let spi_in = self.out.new_spi(rng);
        let builder = Builder::new(PacketKind::R2, hit, peer).push(&Parameter::EspInfo(EspInfo {
            keymat_index: esp.keymat_index,
            old_spi: Spi(0),
            new_spi: spi_in,
        }));
        let Ok(r2) = session.seal_r2(builder, &self.identity, rng) else {
            self.out.spis.remove(&spi_in);
            return Err(Refusal::Malformed);
        };

        self.out.end(record, "the peer has begun anew");
        self.out.send(route, r2.clone());
        let mut up = Association::new(session, false);
        up.r2 = Some((digest, r2));
        // The I2 solves a puzzle that was sent to this very route: the peer receives there.
        let feedback = self.config.feedback && feedback::is_offered(packet);
        let news = News { peer, feedback, route };
        self.begin(news, up, keys, esp.new_spi, spi_in);
        Ok(())
    }

    /// RFC 7401 §6.10.
    pub(crate) fn on_r2(&mut self, now: Instant, rng: &mut dyn CryptoRng, packet: &Packet<'_>) -> Result<(), Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let Phase::I2Sent(sent) = &record.phase else { return Err(Refusal::Unexpected) };
        sent.session.check_r2(packet, &sent.host_id)?;
        let esp = packet
            .esp_info()
            .filter(|esp| esp.old_spi.0 == 0 && esp.new_spi.0 > 255 && esp.keymat_index == sent.esp_index);
        let esp = *esp.ok_or(Refusal::Malformed)?;
        let Phase::I2Sent(sent) = std::mem::replace(&mut record.phase, Phase::Unassociated) else {
            return Err(Refusal::Unexpected);
        };
        let mut sent = *sent;
        let keys = sent.session.draw_esp(sent.esp_index, hit).ok_or(Refusal::Malformed)?;
        let mut up = Association::new(sent.session, true);
        up.candidates = routes(&self.config, &record.peer, &sent.locators)
            .into_iter()
            .map(|route| Candidate { route, failures: 0, not_before: now, stale: false })
            .collect();
        let news = News { peer, feedback: sent.feedback, route: sent.route };
        if !self.config.backups.is_empty() {
            up.announce();
        }
        self.begin(news, up, keys, esp.new_spi, sent.spi_in);
        self.open_paths(now, rng, peer);
        Ok(())
    }

    /// Sends I1 or I2 again, or gives up.
    pub(crate) fn retry_exchange(&mut self, now: Instant, peer: Hit) {
        let hit = self.identity.hit();
        let Some(record) = self.peers.get_mut(&peer) else { return };
        match &mut record.phase {
            Phase::I1Sent(sent) if sent.retry.at <= now => {
                if sent.retry.tries >= self.config.max_tries {
                    let reason = match record.notice {
                        Some(notice) => format!("{peer} {}; our identity is {hit}", Notice(notice)),
                        None => format!("{peer} does not answer; is it up, and are its locators right?"),
                    };
                    return self.out.fail(record, reason);
                }
                let route = sent.routes.get(sent.retry.tries as usize % sent.routes.len().max(1)).copied();
                sent.retry.again(now, &self.config);
                if let Some(route) = route {
                    self.out.send_again(route, &i1(&self.config, hit, peer));
                }
            }
            Phase::I2Sent(sent) if sent.retry.at <= now => {
                if sent.tries_before + sent.retry.tries >= self.config.max_tries {
                    let reason = format!("{peer} does not accept our identity {hit}; does it have us among its peers?");
                    return self.out.fail(record, reason);
                }
                if sent.retry.tries < I2_TRIES {
                    sent.retry.again(now, &self.config);
                    return self.out.send_again(sent.route, &sent.packet);
                }
                // The puzzle may have grown too old at the Responder: a fresh R1 is needed.
                let tries = sent.tries_before + sent.retry.tries;
                let (spi_in, first) = (sent.spi_in, sent.route);
                let mut routes = routes(&self.config, &record.peer, &[]);
                routes.sort_by_key(|route| *route != first);
                self.out.spis.remove(&spi_in);
                self.out.send_again(first, &i1(&self.config, hit, peer));
                let retry = Retry { tries, ..Retry::new(now, &self.config) };
                record.phase = Phase::I1Sent(I1Sent { routes, retry });
            }
            _ => {}
        }
    }

    /// The association is there: its first path, and the news.
    fn begin(&mut self, news: News, mut up: Association, keys: EspKeyPair, spi_out: Spi, spi_in: Spi) {
        let News { peer, feedback, route } = news;
        let path = up.add_path(route, spi_in, spi_out, true);
        let (outbound, inbound) = security_associations(up.session.suite, keys.outbound, spi_out, keys.inbound, spi_in);
        self.out.counters.established += 1;
        self.out.events.push_back(Event::Established { peer, feedback });
        self.out.events.push_back(Event::PathUp { peer, path, route, outbound, inbound, verified: true });
        if let Some(record) = self.peers.get_mut(&peer) {
            record.epoch += 1;
            record.phase = Phase::Up(Box::new(up));
        }
    }
}

/// A new association.
struct News {
    peer: Hit,
    feedback: bool,
    route: Route,
}

/// The pair of a path.
pub(crate) fn security_associations(
    suite: EspSuite,
    outbound: EspKeys,
    spi_out: Spi,
    inbound: EspKeys,
    spi_in: Spi,
) -> (OutboundSa, InboundSa) {
    (OutboundSa::new(suite, spi_out, outbound), InboundSa::new(suite, spi_in, inbound))
}

/// What is used with a Responder.
struct Chosen {
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
    let suite = config.esp_suites.iter().find(|suite| suites.contains(&suite.number()));
    let Some(&suite) = suite.filter(|_| formats.is_empty() || formats.contains(&kind::ESP_TRANSFORM)) else {
        return Choice::Impossible(Refusal::Suite, "has no ESP suite that we have".into());
    };
    if difficulty > HostConfig::MAX_DIFFICULTY {
        let why = format!("sets a puzzle of difficulty {difficulty}, which would take too long");
        return Choice::Impossible(Refusal::TooHard, why);
    }
    Choice::Use(Chosen { group, cipher, suite })
}

/// The identity in a HOST_ID, which has to be the one that the HIT is the hash of.
pub(crate) fn identity_of(host_id: &HostId, hit: Hit) -> Result<PublicIdentity, Refusal> {
    let identity = PublicIdentity::from_wire(host_id.algorithm, &host_id.identity).map_err(|_| Refusal::Signature)?;
    if identity.hit() == hit { Ok(identity) } else { Err(Refusal::Signature) }
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

/// An address of LOCATOR_SET as sockets know it.
pub(crate) fn unmapped(address: std::net::Ipv6Addr) -> std::net::IpAddr {
    address.to_canonical()
}
