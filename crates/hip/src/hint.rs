//! A peer that has started again knows nothing of the SPIs that are still sent to it. It says so, and who hears it asks.
//!
//! A host that gets ESP with an SPI that it does not know does one of two things. Where the packet comes from a locator of
//! a peer it has no association with, it begins a base exchange. Where it comes from elsewhere, as from a client behind
//! a NAT, it does not know who speaks, and sends a hint back: a NOTIFY from its own HIT to no HIT, with the SPI. It is no
//! longer than the packet was, and there are few a second.
//!
//! Nothing vouches for a hint, so nothing follows from it but a question: whoever gets one that names the SPI of one of its
//! paths, on that path's route, reports [`Event::Doubted`], and the heartbeats of the path decide. RFC 7401 and RFC 7402
//! have no such notice (RFC 7402 §5.4 leaves it to ICMP, which does not come through a NAT inside UDP); the number is one
//! of those for private use (RFC 7401 §5.2.19).

use clock::Instant;
use rand_core::CryptoRng;
use wire::hip::{Builder, Notification, Packet, PacketKind, Parameter};
use wire::{Hit, Spi};

use crate::association::Phase;
use crate::event::Event;
use crate::host::{Host, Refusal};
use crate::rate::{Bucket, Rate};
use crate::route::Route;

/// NOTIFICATION "the SPI is not known": the number of IKE's INVALID_SPI (RFC 7296 §3.10.1), 11, among HIP's for private use.
const INVALID_SPI: u16 = 8192 + 11;
/// Hints that are sent.
const HINTS: Rate = Rate::new(10, 8);
/// Base exchanges that unknown SPIs begin. One peer's is begun once, for then it is under way.
const CALLS: Rate = Rate::new(4, 8);
/// A peer's hints that are believed enough to ask its paths.
const DOUBTS: Rate = Rate::new(1, 1);

/// How much may still be done about unknown SPIs.
#[derive(Default)]
pub(crate) struct Hints {
    hints: Bucket,
    calls: Bucket,
}

impl Host {
    /// Tells that an ESP packet of `len` bytes (SPI to ICV) has come in on `route` with an SPI that nobody knows. Begins a
    /// base exchange with the peer that is configured there, or answers with a hint; both so rarely that it can be called
    /// for every such packet.
    pub fn unknown_spi(&mut self, now: Instant, rng: &mut dyn CryptoRng, route: Route, spi: Spi, len: usize) {
        let address = route.remote.ip();
        let lives_there = |locators: &[std::net::SocketAddr]| locators.iter().any(|locator| locator.ip() == address);
        let at_home = self.peers.values().find(|record| lives_there(&record.peer.locators));
        if let Some(record) = at_home {
            let peer = record.peer.hit;
            let idle = matches!(record.phase, Phase::Unassociated | Phase::Failed | Phase::Closed(_));
            if idle && self.out.hints.calls.take(now, CALLS) {
                // Without a route there is nothing to be done.
                let _ = self.connect(now, rng, peer);
            }
            return;
        }
        if self.identity.is_anonymous() {
            // It would be told to anybody.
            return;
        }
        let builder = Builder::new(PacketKind::Notify, self.hit(), Hit::NULL)
            .push(&Parameter::Notification(Notification { message: INVALID_SPI, data: spi.0.to_be_bytes().to_vec() }));
        let Ok(packet) = builder.finish() else { return };
        // Inside UDP four zero bytes come before a HIP packet (RFC 5770 §4.1).
        let sent = packet.len() + if route.in_udp() { 4 } else { 0 };
        if sent <= len && self.out.hints.hints.take(now, HINTS) {
            self.out.counters.hints_out += 1;
            self.out.send(route, packet);
        }
    }

    /// Somebody says that an SPI is not known to the peer.
    pub(crate) fn on_hint(&mut self, now: Instant, route: Route, packet: &Packet<'_>) -> Result<(), Refusal> {
        let peer = packet.sender();
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Stranger)?;
        let Phase::Up(up) = &mut record.phase else { return Err(Refusal::Unexpected) };
        let told = packet.notification().filter(|notification| notification.message == INVALID_SPI);
        let spi = told.and_then(|notification| notification.data.first_chunk::<4>()).ok_or(Refusal::Malformed)?;
        let spi = Spi(u32::from_be_bytes(*spi));
        let path = up.paths.iter().find(|path| path.spi_out == spi && path.route == route);
        let path = path.ok_or(Refusal::Unexpected)?.id;
        self.out.counters.hints_in += 1;
        if up.doubted.take(now, DOUBTS) {
            self.out.events.push_back(Event::Doubted { peer, path });
        }
        Ok(())
    }
}

/// Whether a packet is a hint: a NOTIFY for nobody.
pub(crate) fn is_hint(packet: &Packet<'_>) -> bool {
    packet.kind() == PacketKind::Notify && packet.receiver() == Hit::NULL
}
