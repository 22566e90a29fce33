//! Who is there? An I1 to no HIT, which whoever is at an address answers with its own (RFC 7401 §4.1.8, opportunistic mode).
//!
//! The R1 proves that its sender has the identity that it shows, and nothing else: anybody on the way may have answered, or
//! anybody at all who knows that we ask. So nothing begins here. Whoever asks gets [`Event::Discovered`], and takes the HIT for
//! the peer's once a base exchange with it has come to its end on that way, which shows that somebody is there who has it.

use std::net::SocketAddr;

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use wire::Hit;
use wire::hip::Packet;

use crate::asking::Asked;
use crate::association::Retry;
use crate::budget::Class;
use crate::config::Peer;
use crate::event::{Event, TimerKind};
use crate::exchange::identity_of;
use crate::host::{Host, Refusal, routes};
use crate::route::Route;
use crate::session::verify;

/// The longest pause between two I1s to nobody.
const SELDOM: Duration = Duration::from_secs(60);

/// I1s to whoever is at some locators.
pub(crate) struct Inquiry {
    locators: Vec<SocketAddr>,
    asked: Asked,
    retry: Retry,
}

impl Host {
    /// Asks who is at one of these locators, again and again until [`Host::stop_inquiry`]: at first after the usual pause for
    /// retransmissions, then up to once a minute. Each answer is an [`Event::Discovered`].
    pub fn inquire(&mut self, now: Instant, rng: &mut dyn CryptoRng, locators: Vec<SocketAddr>) {
        if !self.inquiries.iter().any(|inquiry| inquiry.locators == locators) {
            let retry = Retry { at: now, tries: 0, wait: self.config.retransmission };
            self.inquiries.push(Inquiry { locators, asked: Asked::new(rng, false), retry });
            self.retry_inquiries(now);
        }
    }

    /// Asks there no more.
    pub fn stop_inquiry(&mut self, locators: &[SocketAddr]) {
        self.inquiries.retain(|inquiry| inquiry.locators != locators);
    }

    pub(crate) fn inquiry_deadline(&self) -> Option<(Instant, TimerKind)> {
        let due = self.inquiries.iter().filter(|_| !self.leaving).map(|inquiry| inquiry.retry.at).min();
        due.map(|at| (at, TimerKind::Retransmission))
    }

    pub(crate) fn retry_inquiries(&mut self, now: Instant) {
        if self.leaving {
            return;
        }
        for inquiry in self.inquiries.iter_mut().filter(|inquiry| inquiry.retry.at <= now) {
            let nobody = Peer::new(Hit::NULL, inquiry.locators.clone());
            let ways = routes(&self.config, &nobody, &[]);
            if let Some(&route) = ways.get(inquiry.retry.tries as usize % ways.len().max(1)) {
                self.out.send(route, inquiry.asked.i1(&self.config, &self.identity, Hit::NULL, route));
            }
            inquiry.retry.tries = inquiry.retry.tries.saturating_add(1);
            inquiry.retry.at = now + inquiry.retry.wait;
            inquiry.retry.wait = (inquiry.retry.wait * 2).min(SELDOM);
        }
    }

    /// Whether an R1 answers an I1 to nobody, and none to its sender.
    pub(crate) fn is_inquired(&mut self, route: Route, sender: Hit) -> bool {
        let asked_itself = self.peers.get_mut(&sender).and_then(|record| record.phase.asked());
        self.inquiries.iter().any(|inquiry| inquiry.asked.on(route))
            && !asked_itself.is_some_and(|asked| asked.on(route))
    }

    pub(crate) fn on_inquired(&mut self, now: Instant, route: Route, packet: &Packet<'_>) -> Result<(), Refusal> {
        let hit = packet.sender();
        if packet.is_anonymous() {
            // RFC 7401 §5.1.2: it SHOULD NOT be stored, and whoever asks means to.
            return Err(Refusal::Stranger);
        }
        let host_id = packet.host_id().ok_or(Refusal::Malformed)?;
        let signature = packet.hip_signature_2().ok_or(Refusal::Malformed)?;
        let covered = packet.covered_by_signature_2().ok_or(Refusal::Malformed)?;
        self.out.affords(now, &self.config, Class::R1Bare, route, false)?;
        self.out.meter.verification();
        verify(&identity_of(host_id, hit)?, &covered, signature)?;
        self.out.events.push_back(Event::Discovered { hit, route });
        Ok(())
    }
}
