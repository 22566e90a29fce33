//! CLOSE and CLOSE_ACK (RFC 7401 §5.3.7, §5.3.8, §6.13, §6.14).

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use wire::Hit;
use wire::hip::{Builder, Packet, PacketKind, Parameter};

use crate::association::{Closed, Closing, I1Sent, Phase, Retry, nonce};
use crate::event::Event;
use crate::host::{Host, Refusal};
use crate::rate::{Bucket, Rate};
use crate::route::Route;
use crate::session::Session;

/// So much sooner than other packets a CLOSE is sent again, since a host that goes does not wait for long.
const SOONER: u64 = 4;
/// How long a CLOSE that comes again is answered: the longest that the peer sends it, and what the network delays.
const LINGER: Duration = Duration::from_secs(30);
/// How often it is answered in that time: at once, and then after each such while.
const AGAIN: Rate = Rate::new(1, 4);

impl Host {
    /// Ends the association with a peer, and tells it.
    pub fn close(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let hit = self.identity.hit();
        let Some(record) = self.peers.get_mut(&peer) else { return };
        self.out.go_on(record);
        if !matches!(record.phase, Phase::Up(_)) {
            self.out.end(record, "closed");
            return;
        }
        let Phase::Up(up) = std::mem::replace(&mut record.phase, Phase::Unassociated) else { return };
        let nonce = nonce(rng);
        let builder = Builder::new(PacketKind::Close, hit, peer).push(&Parameter::EchoRequestSigned(nonce.clone()));
        let packet = up.session.seal(builder, &self.identity, rng);
        let mut routes: Vec<Route> = up.paths.iter().map(|path| path.route).collect();
        routes.extend(up.relay.filter(|_| routes.is_empty()));
        self.out.end_association(peer, &up, "closed");
        if let (Ok(packet), Some(&first)) = (packet, routes.first()) {
            self.out.send(first, packet.clone());
            let wait = self.config.retransmission / SOONER;
            let retry = Retry { at: now + wait, tries: 1, wait };
            record.phase = Phase::Closing(Box::new(Closing { session: up.session, routes, packet, nonce, retry }));
        }
        self.see_off(peer);
    }

    /// Ends all associations for good: none begins any more.
    pub fn leave(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        self.leaving = true;
        let peers: Vec<Hit> = self.peers.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.close(now, rng, peer));
    }

    /// Whether a CLOSE of ours is still to be answered, or sent again.
    pub fn is_closing(&self) -> bool {
        self.peers.values().any(|record| matches!(record.phase, Phase::Closing(_)))
    }

    pub(crate) fn on_close(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let echo = packet.echo_request_signed().ok_or(Refusal::Malformed)?;
        let session = match &mut record.phase {
            Phase::Up(up) => &up.session,
            // RFC 7401 §4.4.3, table 4: the R2 was lost, or is overtaken, and the peer has the keys.
            Phase::I2Sent(sent) | Phase::I1Sent(I1Sent { i2: Some(sent), .. }) => &sent.session,
            Phase::Closing(closing) => &closing.session,
            Phase::Closed(closed) => {
                // Anybody may have replayed it: no signature is checked or made for that, and nothing goes elsewhere.
                closed.session.check_mac(packet)?;
                if *echo == closed.echo && route == closed.route && closed.again.take(now, AGAIN) {
                    self.out.send_again(route, &closed.answer);
                }
                return Err(Refusal::Replayed);
            }
            _ => return Err(Refusal::Unexpected),
        };
        session.check(packet)?;
        let builder = Builder::new(PacketKind::CloseAck, hit, peer).push(&Parameter::EchoResponseSigned(echo.clone()));
        let answer = session.seal(builder, &self.identity, rng).map_err(|_| Refusal::Malformed)?;
        self.out.send(route, answer.clone());
        let echo = echo.clone();
        let closed = |session: Session| {
            let again = Bucket::default();
            Phase::Closed(Box::new(Closed { session, until: now + LINGER, echo, route, answer, again }))
        };
        record.phase = match std::mem::replace(&mut record.phase, Phase::Unassociated) {
            Phase::Up(up) => {
                self.out.end_association(peer, &up, "closed by the peer");
                closed(up.session)
            }
            Phase::Closing(closing) => closed(closing.session),
            Phase::I2Sent(sent) | Phase::I1Sent(I1Sent { i2: Some(sent), .. }) => {
                self.out.spis.remove(&sent.spi_in);
                if let Some(old) = record.standby.take() {
                    self.out.end_association(peer, &old, "closed by the peer");
                }
                self.out.counters.failed += 1;
                let reason = format!("{peer} has closed the association before it was there");
                self.out.events.push_back(Event::Failed { peer, reason });
                closed(sent.session)
            }
            other => other,
        };
        Ok(())
    }

    pub(crate) fn on_close_ack(&mut self, packet: &Packet<'_>) -> Result<(), Refusal> {
        let record = self.peers.get_mut(&packet.sender()).ok_or(Refusal::Unexpected)?;
        let Phase::Closing(closing) = &record.phase else { return Err(Refusal::Unexpected) };
        if packet.echo_response_signed() != Some(&closing.nonce) {
            return Err(Refusal::Replayed);
        }
        closing.session.check(packet)?;
        record.phase = Phase::Unassociated;
        Ok(())
    }

    /// Sends the CLOSE again, on one path after the other; forgets what has lasted long enough.
    pub(crate) fn retry_close(&mut self, now: Instant, peer: Hit) {
        let Some(record) = self.peers.get_mut(&peer) else { return };
        match &mut record.phase {
            Phase::Closing(closing) if closing.retry.at <= now => {
                let route = closing.routes.get(closing.retry.tries as usize % closing.routes.len().max(1)).copied();
                if closing.retry.tries >= 2 * self.config.max_update_tries {
                    record.phase = Phase::Unassociated;
                } else if let Some(route) = route {
                    closing.retry.again(now, &self.config);
                    self.out.send_again(route, &closing.packet);
                }
            }
            Phase::Closed(closed) if closed.until <= now => record.phase = Phase::Unassociated,
            _ => {}
        }
    }
}
