//! NOTIFY (RFC 7401 §5.2.19, §5.3.6, §6.15): a host that refuses a packet may say why.
//!
//! A notice is sent where its cause is authentic or has cost its sender something: about an R1 whose signature is right, and
//! about an I2 that solves a puzzle. To a stranger's I1 RFC 7401 §4.1.5 has no NOTIFY, which is five times as long; a Sinnet's
//! that is padded gets one, since it is longer than the answer. Notices about parameters that are not known can be asked for by
//! anybody. So notices are few, whatever comes in: a burst, then one a second; and none is ever sent about a NOTIFY. Who
//! hears one notes it, and nothing is decided by it.

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use std::fmt;
use wire::Hit;
use wire::hip::{Builder, Notification, Packet, PacketKind, Parameter};

use crate::asking::is_padded;
use crate::association::Phase;
use crate::budget::Class;
use crate::event::Event;
use crate::exchange::identity_of;
use crate::host::{Host, Refusal};
use crate::route::Route;
use crate::session::{host_id, sign, verify};
use crate::update::Turn;

/// So many notices may be sent at once.
const BURST: u32 = 4;
/// And one more for each such time.
const INTERVAL: Duration = Duration::from_secs(1);

const UNSUPPORTED_CRITICAL_PARAMETER_TYPE: u16 = 1;
const INVALID_SYNTAX: u16 = 7;
const NO_DH_PROPOSAL_CHOSEN: u16 = 14;
const INVALID_DH_CHOSEN: u16 = 15;
const NO_HIP_PROPOSAL_CHOSEN: u16 = 16;
const INVALID_HIP_CIPHER_CHOSEN: u16 = 17;
const NO_ESP_PROPOSAL_CHOSEN: u16 = 18;
const INVALID_ESP_TRANSFORM_CHOSEN: u16 = 19;
const AUTHENTICATION_FAILED: u16 = 24;
const HIP_MAC_FAILED: u16 = 28;
const BLOCKED_BY_POLICY: u16 = 42;
const LOCATOR_TYPE_UNSUPPORTED: u16 = 46;

/// How many notices may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    left: u32,
    /// When it was the last time that one more was allowed.
    since: Instant,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { left: BURST, since: Instant::ZERO }
    }
}

impl Allowance {
    fn take(&mut self, now: Instant) -> bool {
        let earned = now.saturating_since(self.since).as_nanos() / INTERVAL.as_nanos();
        if earned > 0 {
            self.left = self.left.saturating_add(u32::try_from(earned).unwrap_or(u32::MAX)).min(BURST);
            self.since = now;
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

impl Host {
    /// Says why a packet was refused, if that is to be said.
    pub(crate) fn explain(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
        refusal: Refusal,
    ) {
        use PacketKind::{I1, I2, R1};
        let message = match (packet.kind(), refusal) {
            (I1, Refusal::Stranger) if is_padded(packet) => BLOCKED_BY_POLICY,
            (R1, Refusal::TooHard) => BLOCKED_BY_POLICY,
            (R1, Refusal::Group) => NO_DH_PROPOSAL_CHOSEN,
            (R1, Refusal::Cipher) => NO_HIP_PROPOSAL_CHOSEN,
            (R1, Refusal::Suite) => NO_ESP_PROPOSAL_CHOSEN,
            (I2, Refusal::Group) | (R1 | I2, Refusal::DiffieHellman) => INVALID_DH_CHOSEN,
            (I2, Refusal::Cipher) => INVALID_HIP_CIPHER_CHOSEN,
            (I2, Refusal::Suite) => INVALID_ESP_TRANSFORM_CHOSEN,
            (I2, Refusal::Mac) => HIP_MAC_FAILED,
            (I2, Refusal::Signature) => AUTHENTICATION_FAILED,
            (I2, Refusal::Syntax) => INVALID_SYNTAX,
            _ => return,
        };
        self.notify(now, rng, route, packet.sender(), message, Vec::new());
    }

    /// Says that a parameter would have to be understood.
    pub(crate) fn explain_critical(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
        parameter: u16,
    ) {
        if packet.kind() != PacketKind::Notify {
            let data = parameter.to_be_bytes().to_vec();
            self.notify(now, rng, route, packet.sender(), UNSUPPORTED_CRITICAL_PARAMETER_TYPE, data);
        }
    }

    fn notify(&mut self, now: Instant, rng: &mut dyn CryptoRng, route: Route, peer: Hit, message: u16, data: Vec<u8>) {
        let Self { out, identity, config, .. } = self;
        Turn { out, identity, config, rng, now, peer, route, tells_mapped: false, permission: None }
            .notify(message, data);
    }

    /// RFC 7401 §6.15: a notice is an event for the log, by its number, and changes nothing, since anybody may have replayed it.
    /// It has no HIP_MAC (RFC 7401 §5.3.6), so its signature has to be checked for anybody who sends one: a few a second.
    pub(crate) fn on_notify(&mut self, now: Instant, route: Route, packet: &Packet<'_>) -> Result<(), Refusal> {
        let sender = packet.sender();
        let record = self.peers.get_mut(&sender).ok_or(Refusal::Unexpected)?;
        let covered = packet.covered_by_signature().ok_or(Refusal::Malformed)?;
        let signature = packet.hip_signature().ok_or(Refusal::Signature)?;
        if !matches!(record.phase, Phase::I1Sent(_) | Phase::Solving(_) | Phase::I2Sent(_) | Phase::Up(_)) {
            return Err(Refusal::Unexpected);
        }
        self.out.affords(now, &self.config, Class::Notify, route, false)?;
        self.out.meter.verification();
        match &record.phase {
            Phase::I2Sent(sent) => verify(&sent.session.peer, &covered, signature)?,
            Phase::Up(up) => verify(&up.session.peer, &covered, signature)?,
            // The answer to an I1, of a host that has not told its identity yet.
            Phase::I1Sent(_) | Phase::Solving(_) => {
                let told = packet.host_id().ok_or(Refusal::Unexpected)?;
                verify(&identity_of(told, sender)?, &covered, signature)?;
            }
            _ => return Err(Refusal::Unexpected),
        }
        let message = packet.notification().ok_or(Refusal::Malformed)?.message;
        record.notice = Some(message);
        self.out.events.push_back(Event::Notified { peer: sender, message });
        Ok(())
    }
}

impl Turn<'_> {
    /// RFC 8046 §5.3: says which of an authentic packet's preferred locators are of a type that is not known.
    pub(crate) fn explain_locators(&mut self, packet: &Packet<'_>) {
        let data = packet.unsupported_locators();
        if !data.is_empty() {
            self.notify(LOCATOR_TYPE_UNSUPPORTED, data);
        }
    }

    fn notify(&mut self, message: u16, data: Vec<u8>) {
        if !self.out.notices.take(self.now) {
            return;
        }
        if self.out.affords(self.now, self.config, Class::Reply, self.route, false).is_err() {
            return;
        }
        let builder = Builder::new(PacketKind::Notify, self.identity.hit(), self.peer)
            .push(&Parameter::HostId(host_id(self.identity.public())))
            .push(&Parameter::Notification(Notification { message, data }));
        self.out.meter.signature();
        // A host whose identity fits an R1 has room for a few bytes more.
        if let Ok(packet) = sign(builder, self.identity, self.rng).finish() {
            self.out.counters.notices_out += 1;
            self.out.send(self.route, packet);
        }
    }
}

/// The message of a NOTIFICATION (RFC 7401 §5.2.19); `Display` is what the one who sent it says, as a sentence without
/// subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice(pub u16);

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            UNSUPPORTED_CRITICAL_PARAMETER_TYPE => "does not know a parameter that it would have to understand",
            INVALID_SYNTAX => "cannot read our packet",
            NO_DH_PROPOSAL_CHOSEN => "has none of our Diffie-Hellman groups",
            INVALID_DH_CHOSEN => "does not take our Diffie-Hellman value",
            NO_HIP_PROPOSAL_CHOSEN => "has none of our HIP ciphers",
            INVALID_HIP_CIPHER_CHOSEN => "does not take the HIP cipher we chose",
            NO_ESP_PROPOSAL_CHOSEN => "has none of our ESP suites",
            INVALID_ESP_TRANSFORM_CHOSEN => "does not take the ESP suite we chose",
            AUTHENTICATION_FAILED => "takes our signature for wrong",
            HIP_MAC_FAILED => "takes our HIP_MAC for wrong",
            LOCATOR_TYPE_UNSUPPORTED => "does not know a type of our locators",
            BLOCKED_BY_POLICY => "does not have our identity among its peers, or finds our puzzle too hard",
            number => return write!(f, "has sent notice {number} of RFC 7401"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_a_second() {
        let mut allowance = Allowance::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let taken = (0..10_000).filter(|millis| allowance.take(at(*millis))).count();
        assert_eq!(taken, BURST as usize + 9);
        // A long silence allows no more than a burst.
        let taken = (0..100).filter(|_| allowance.take(at(1_000_000))).count();
        assert_eq!(taken, BURST as usize);
    }
}
