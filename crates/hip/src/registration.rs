//! Registration (RFC 8003): a host asks another one for a service, and has it for a time. The services here are rendezvous
//! (RFC 8004), which `rendezvous` does, and inside UDP the control relay of RFC 9028, which `relay` does.
//!
//! ```text
//! requester                                       registrar
//!   ── I1 ────────────────────────────────────────────▶
//!   ◀──────────────────── R1: REG_INFO (shortest, longest lifetime, services) ──
//!   ── I2: REG_REQUEST (lifetime, services) ──────────▶
//!   ◀──────────────────── R2: REG_RESPONSE, or REG_FAILED ──
//!        …                 before the lifetime ends
//!   ── UPDATE: REG_REQUEST, SEQ ──────────────────────▶
//!   ◀──────────────────── UPDATE: REG_RESPONSE, ACK ──
//! ```
//!
//! A registration belongs to its association and ends with it. The requester sees to it that there is one, whether or not a
//! program has anything to say to the registrar.

use std::net::SocketAddr;

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use wire::Hit;
use wire::hip::{
    Builder, Packet, PacketKind, Parameter, RegFailed, RegInfo, Registration, TransportAddress, lifetime_seconds,
};

use crate::association::{Association, PeerRecord, Phase, Retry};
use crate::config::{HostConfig, Registrar};
use crate::event::{Event, TimerKind};
use crate::host::{Host, Output};
use crate::rate::Bucket;
use crate::route::Route;

/// The registration type of the rendezvous service (RFC 8004 §4.1).
pub(crate) const RENDEZVOUS: u8 = 1;
/// Of the control relay (RFC 9028 §5.9).
pub(crate) const RELAY_HIP: u8 = 2;
/// Of the data relay.
pub(crate) const RELAY_ESP: u8 = 3;
/// What is asked for: 304 s. The registrar sees no sooner that a host is gone, and asks no more of it.
const WANTED: u8 = 130;
/// After a registrar has refused, it is asked again.
const REFUSED: Duration = Duration::from_secs(300);
/// After it did not answer.
const SILENT: Duration = Duration::from_secs(15);
/// However long a registration is good, it is renewed once a day.
const LONGEST: Duration = Duration::from_secs(86_400);
/// Failure types (RFC 8003 §4.4, §4.5).
const NEEDS_CREDENTIALS: u8 = 0;
const NO_SUCH_SERVICE: u8 = 1;
const NO_ROOM: u8 = 2;

/// A set of services: a bit for each registration type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Services(u8);

impl Services {
    const KNOWN: [u8; 3] = [RENDEZVOUS, RELAY_HIP, RELAY_ESP];

    /// Those of these types that there are.
    fn of(types: &[u8]) -> Self {
        Self(Self::KNOWN.iter().filter(|service| types.contains(service)).fold(0, |all, service| all | 1 << service))
    }

    /// What a host wants of its server: inside UDP there may be a NAT before it, and natively no relay.
    fn wanted(in_udp: bool) -> Self {
        Self::of(if in_udp { &Self::KNOWN } else { &[RENDEZVOUS] })
    }

    /// What a registrar has.
    fn offered(config: &HostConfig) -> Self {
        match config.registrar {
            Some(registrar) if registrar.relay && registrar.data > 0 => Self::of(&Self::KNOWN),
            Some(registrar) if registrar.relay => Self::of(&[RENDEZVOUS, RELAY_HIP]),
            Some(_) => Self::of(&[RENDEZVOUS]),
            None => Self::default(),
        }
    }

    pub(crate) fn has(self, service: u8) -> bool {
        self.types().contains(&service)
    }

    fn types(self) -> Vec<u8> {
        Self::KNOWN.iter().copied().filter(|service| self.0 & 1 << service != 0).collect()
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Our registration with a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Enrolment {
    /// Until when it is good.
    pub(crate) until: Option<Instant>,
    /// What was granted.
    pub(crate) services: Services,
    /// When something is to be done about it.
    next: Instant,
}

/// A peer's registration with us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registered {
    until: Instant,
    /// In which of the associations with the peer.
    epoch: u64,
    services: Services,
    /// What was passed on to it, and from it.
    pub(crate) passed: Bucket,
}

/// Our REG_REQUEST is out.
pub(crate) struct Asking {
    pub(crate) seq: u32,
    packet: Vec<u8>,
    retry: Retry,
}

/// What a registrar says in its R1s.
pub(crate) fn offer(config: &HostConfig) -> Option<Parameter> {
    let Registrar { min, max, .. } = config.registrar?;
    Some(Parameter::RegInfo(RegInfo { min, max, types: Services::offered(config).types() }))
}

/// What to ask of a peer that offers this on `route`, if we want to register there.
pub(crate) fn request(offered: Option<&RegInfo>, route: Route) -> Option<Parameter> {
    let info = offered.filter(|info| info.min <= info.max)?;
    let services = Services::of(&info.types).and(Services::wanted(route.in_udp()));
    (!services.is_empty()).then(|| ask(WANTED.clamp(info.min, info.max), services))
}

fn ask(lifetime: u8, services: Services) -> Parameter {
    Parameter::RegRequest(Registration { lifetime, types: services.types() })
}

/// What becomes of a REG_REQUEST: the answer, and the registration, or that there is none any more.
pub(crate) struct Decision {
    pub(crate) answer: Vec<Parameter>,
    until: Option<Instant>,
    /// Those services that there are which the request was about.
    asked: Services,
}

impl PeerRecord {
    /// Answers a REG_REQUEST of this peer, which came in on `route`; `others`: registrations of other hosts. Nothing is noted yet.
    pub(crate) fn decide(
        &self,
        config: &HostConfig,
        packet: &Packet<'_>,
        route: Route,
        others: usize,
        now: Instant,
    ) -> Option<Decision> {
        let request = packet.reg_request()?;
        let asked = Services::of(&request.types).and(Services::offered(config));
        let mut decision = Decision { answer: Vec::new(), until: None, asked };
        let mut failed = Vec::new();
        if let Some(registrar) = config.registrar.filter(|_| !asked.is_empty()) {
            let refusal = match request.lifetime {
                // A host may always go.
                0 => None,
                _ if !self.peer.may_register => Some(NEEDS_CREDENTIALS),
                _ if others >= registrar.most => Some(NO_ROOM),
                _ => None,
            };
            let lifetime = if request.lifetime == 0 { 0 } else { request.lifetime.clamp(registrar.min, registrar.max) };
            match refusal {
                Some(reason) => failed.push(RegFailed { reason, types: asked.types() }),
                None => {
                    let granted = Registration { lifetime, types: asked.types() };
                    decision.answer.push(Parameter::RegResponse(granted));
                    let time = Duration::from_secs(lifetime_seconds(lifetime));
                    decision.until = (lifetime > 0).then(|| now + time);
                }
            }
        }
        let unknown: Vec<u8> = request.types.iter().copied().filter(|service| !asked.has(*service)).collect();
        if !unknown.is_empty() {
            failed.push(RegFailed { reason: NO_SUCH_SERVICE, types: unknown });
        }
        decision.answer.extend(failed.into_iter().map(Parameter::RegFailed));
        if decision.until.is_some() && asked.has(RELAY_HIP) && route.in_udp() {
            // RFC 9028 §4.1: where the client is, as we see it.
            decision.answer.push(Parameter::RegFrom(TransportAddress::udp(route.remote)));
        }
        Some(decision)
    }

    /// Notes what was decided, in the association that there is now.
    pub(crate) fn note(&mut self, out: &mut Output, decision: &Decision) {
        if decision.asked.is_empty() {
            return;
        }
        if decision.until.is_some() {
            out.counters.registrations += 1;
        } else {
            out.counters.registrations_refused +=
                u64::from(matches!(decision.answer.first(), Some(Parameter::RegFailed(_))));
        }
        let before = self.registered.filter(|registered| registered.epoch == self.epoch);
        let (services, passed) = before.map(|before| (before.services, before.passed)).unwrap_or_default();
        let epoch = self.epoch;
        self.registered = match decision.until {
            Some(until) => Some(Registered { until, epoch, services: services.or(decision.asked), passed }),
            None => before.map(|before| Registered { services: services.without(decision.asked), ..before }),
        };
        self.registered.take_if(|registered| registered.services.is_empty());
    }

    /// The same, if it is registered for this service.
    pub(crate) fn is_served(&self, now: Instant, service: u8) -> Option<&Association> {
        self.registered.filter(|registered| registered.services.has(service))?;
        self.registration(now)
    }

    /// The association of a peer that is registered here.
    pub(crate) fn registration(&self, now: Instant) -> Option<&Association> {
        let registered =
            self.registered.filter(|registered| registered.until > now && registered.epoch == self.epoch)?;
        match (&self.phase, &self.standby) {
            (Phase::Up(up), _) | (_, Some(up)) if registered.until > now => Some(up),
            _ => None,
        }
    }

    /// When our registration with this peer wants something done.
    pub(crate) fn enrolment_deadline(&self) -> Option<(Instant, TimerKind)> {
        let asking = match &self.phase {
            Phase::Up(up) => up.asking.as_ref().map(|asking| asking.retry.at),
            _ => None,
        };
        self.peer.registers.then(|| (asking.unwrap_or(self.enrolment.next), TimerKind::Registration))
    }

    /// There is a new association: whatever was registered in the one before is not.
    pub(crate) fn enrol(&mut self, now: Instant, config: &HostConfig) {
        self.enrolment = Enrolment { next: now + config.retransmission, ..Enrolment::default() };
    }

    /// Our request was acknowledged without a word about it: the peer does not know what that is, and is seldom asked again.
    pub(crate) fn unheard(&mut self, now: Instant) {
        self.enrolment = Enrolment { next: now + REFUSED, ..Enrolment::default() };
    }

    /// Takes what a registrar says about our request. Whether it said anything.
    pub(crate) fn enrolled(&mut self, out: &mut Output, now: Instant, packet: &Packet<'_>) -> bool {
        if !self.peer.registers {
            return false;
        }
        let peer = self.peer.hit;
        let granted = packet.reg_response().filter(|granted| !Services::of(&granted.types).is_empty());
        let services = granted.map_or_else(Services::default, |granted| Services::of(&granted.types));
        let time = granted.map_or(0, |granted| lifetime_seconds(granted.lifetime));
        if time > 0 {
            let time = Duration::from_secs(time);
            self.enrolment = Enrolment { until: Some(now + time), services, next: now + (time * 3 / 4).min(LONGEST) };
            out.events.push_back(Event::Registered { peer, lifetime: time });
            return true;
        }
        let refused = packet.parameters().find_map(|parameter| match parameter {
            Parameter::RegFailed(failed) if failed.types.contains(&RENDEZVOUS) => Some(failed.reason),
            _ => None,
        });
        // No time at all is no registration either.
        let refused = refused.or(granted.map(|_| NEEDS_CREDENTIALS));
        if let Some(reason) = refused {
            self.enrolment = Enrolment { next: now + REFUSED, ..Enrolment::default() };
            out.events.push_back(Event::RegistrationRefused { peer, reason });
        }
        refused.is_some()
    }
}

impl Association {
    /// Where the peer can be told something: on a path, or by the relay.
    pub(crate) fn signal_route(&self) -> Option<Route> {
        self.any_route().or(self.relay)
    }

    /// Where to send what is no path's matter.
    pub(crate) fn any_route(&self) -> Option<Route> {
        let usable = |path: &&crate::association::Path| !path.stranded;
        let verified = self.paths.iter().filter(usable).find(|path| path.verified && !path.deprecated);
        verified.or_else(|| self.paths.iter().find(usable)).map(|path| path.route)
    }
}

impl Host {
    /// Registrations of other peers than this one.
    pub(crate) fn registrations_but(&self, peer: Hit, now: Instant) -> usize {
        self.peers.iter().filter(|(hit, record)| **hit != peer && record.registration(now).is_some()).count()
    }

    /// The peers that are registered here, and where they are.
    pub fn registrations(&self, now: Instant) -> impl Iterator<Item = (Hit, SocketAddr)> {
        self.peers.iter().filter_map(move |(&hit, record)| Some((hit, record.registration(now)?.any_route()?.remote)))
    }

    /// Registers with a peer that is to serve us, in time.
    pub(crate) fn keep_registered(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let (hit, leaving) = (self.identity.hit(), self.leaving);
        let Some(record) = self.peers.get_mut(&peer).filter(|record| record.peer.registers) else { return };
        if record.enrolment_deadline().is_none_or(|(at, _)| at > now) {
            return;
        }
        // Whatever follows, it is not due any more.
        record.enrolment.next = now + self.config.retransmission;
        if record.enrolment.until.is_some_and(|until| until <= now) {
            record.enrolment.until = None;
        }
        let idle = matches!(record.phase, Phase::Unassociated | Phase::Failed | Phase::Closed(_));
        if let Phase::Up(up) = &mut record.phase {
            let Some(route) = up.any_route() else { return };
            if let Some(asking) = &mut up.asking {
                if asking.retry.tries >= self.config.max_update_tries {
                    up.asking = None;
                    record.enrolment.next = now + SILENT;
                    return;
                }
                asking.retry.again(now, &self.config);
                return self.out.send_again(route, &asking.packet);
            }
            let seq = up.next_update_id();
            let known = Some(record.enrolment.services).filter(|services| !services.is_empty());
            let services = known.unwrap_or_else(|| Services::wanted(route.in_udp()));
            let builder =
                Builder::new(PacketKind::Update, hit, peer).push(&Parameter::Seq(seq)).push(&ask(WANTED, services));
            let Ok(packet) = up.session.seal(builder, &self.identity, rng) else { return };
            self.out.send(route, packet.clone());
            up.asking = Some(Asking { seq, packet, retry: Retry::new(now, &self.config) });
        } else if idle && record.standby.is_none() && !leaving {
            record.enrolment = Enrolment { next: now + SILENT, ..Enrolment::default() };
            // Without a route there is nothing to be done.
            let _ = self.connect(now, rng, peer);
        }
    }
}
