//! Which identity a name has (RFC 8005 §4.2): its HIP record is asked for, then its addresses and those of its rendezvous servers.

use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use rand_core::CryptoRng;
use wire::{Hit, Lsi};

use super::chain;
use super::record::{self, HipRecord, RecordError};
use super::resolver::{Found, News, Resolver};
use super::upstream::Transport;
use crate::config::HipRecords;

/// Names that are looked up at a time.
const MOST_LOOKUPS: usize = 64;
/// Rendezvous servers of a record whose addresses are asked for, addresses of a host, and of all its rendezvous servers.
const MOST_SERVERS: usize = 4;
const MOST_LOCATORS: usize = 8;
const MOST_VIA: usize = 8;
/// Once the program's own answer is there, a server that says nothing about HIP records is not waited for any longer; nor one
/// that says nothing about addresses.
const HURRY: Duration = Duration::from_millis(1_500);
/// So long a record, or that there is none, is believed.
const LEAST_TTL: u32 = 10;
const MOST_TTL: u32 = 3_600;
const MOST_NEGATIVE_TTL: u32 = 300;
/// After an answer that was none.
const PAUSE: Duration = Duration::from_secs(30);
/// What may be in a datagram without being cut (DNS flag day 2020).
const PAYLOAD: u16 = 1_232;

/// How far the look-up of a name is.
#[derive(Debug)]
pub(super) enum Lookup {
    /// The record is asked for.
    Record { exchange: u64, until: Option<Instant> },
    /// The addresses are asked for.
    Places { found: Found, exchanges: Vec<u64>, until: Instant },
    /// What was found has been told.
    Told,
}

/// Why something was asked.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The HIP record of a name.
    Record(Name),
    /// The addresses of a name, or of a rendezvous server of it.
    Place { of: Name, asked: Name, kind: RecordType },
}

impl Lookup {
    pub(super) fn until(&self) -> Option<Instant> {
        match self {
            Self::Record { until, .. } => *until,
            Self::Places { until, .. } => Some(*until),
            Self::Told => None,
        }
    }

    pub(super) fn hurry(&mut self, now: Instant) {
        if let Self::Record { until, .. } = self {
            *until = Some(until.map_or(now + HURRY, |until| until.min(now + HURRY)));
        }
    }
}

impl Resolver {
    /// Begins to look a name up; false where too much is under way.
    pub(super) fn look_up(&mut self, now: Instant, random: &mut dyn CryptoRng, name: &Name) -> bool {
        if self.lookups.contains_key(name) {
            return true;
        }
        if self.lookups.len() >= MOST_LOOKUPS {
            return false;
        }
        let Some(exchange) = self.inquire(now, random, name, record::TYPE) else { return false };
        self.purposes.insert(exchange, Purpose::Record(name.clone()));
        self.lookups.insert(name.clone(), Lookup::Record { exchange, until: None });
        true
    }

    /// A question of our own: with AD and DO, so that the server says whether the answer is signed (RFC 6840 §5.7).
    fn inquire(&mut self, now: Instant, random: &mut dyn CryptoRng, name: &Name, kind: RecordType) -> Option<u64> {
        let mut message = Message::new(0, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.metadata.authentic_data = true;
        message.add_query(Query::query(name.clone(), kind));
        let mut edns = Edns::new();
        edns.set_max_payload(PAYLOAD).set_dnssec_ok(true);
        message.set_edns(edns);
        self.upstreams.ask(now, random, message.to_vec().ok()?, Transport::Udp, true)
    }

    /// A server has said what it was asked for, or all were silent.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        random: &mut dyn CryptoRng,
        purpose: Purpose,
        answer: Option<(SocketAddr, Vec<u8>)>,
    ) {
        match purpose {
            Purpose::Record(name) => {
                if let Some((found, servers)) = self.judge(now, &name, answer) {
                    self.locate(now, random, found, servers);
                }
            }
            Purpose::Place { of, asked, kind } => {
                let addresses = answer.map(|(_, answer)| self.addresses(&answer, &asked, kind)).unwrap_or_default();
                self.placed(now, &of, asked == of, addresses);
            }
        }
    }

    /// The identity that an answer proves a name to have, and the names of its rendezvous servers.
    fn judge(
        &mut self,
        now: Instant,
        name: &Name,
        answer: Option<(SocketAddr, Vec<u8>)>,
    ) -> Option<(Found, Vec<Name>)> {
        let Some((server, answer)) = answer else {
            self.has_none(now, name, now + PAUSE);
            return None;
        };
        let Ok(message) = Message::from_vec(&answer) else {
            self.counters.malformed += 1;
            self.unused(now, name, "the answer to the question for it cannot be read".to_owned(), PAUSE);
            return None;
        };
        let Ok((records, ttl)) = chain::records(&message.answers, name, record::TYPE) else {
            self.counters.loops += 1;
            self.unused(now, name, "its aliases go round".to_owned(), PAUSE);
            return None;
        };
        if records.is_empty() {
            let seconds = negative_ttl(&message);
            self.has_none(now, name, now + seconds);
            return None;
        }
        let ttl = Duration::from_secs(ttl.clamp(LEAST_TTL, MOST_TTL).into());
        let (mut good, mut wrong) = (None, None);
        for data in records {
            let RData::Unknown { rdata, .. } = data else { continue };
            let record = HipRecord::parse(&rdata.anything).and_then(|record| record.identity().map(|_| record));
            match record {
                Ok(record) => good = good.or(Some(record)),
                Err(error) => {
                    self.count(&error);
                    wrong = wrong.or(Some(error));
                }
            }
        }
        let signed = message.metadata.authentic_data && self.believes(server);
        let Some(record) = good else {
            let why = wrong.map_or_else(|| "it has no data".to_owned(), |wrong| wrong.to_string());
            self.unused(now, name, why, ttl);
            return None;
        };
        if !signed && self.settings.hip_records == HipRecords::Signed {
            self.counters.unsigned += 1;
            let why = format!("{server} does not say that it is signed, or is not believed");
            self.unused(now, name, why, ttl);
            return None;
        }
        let found = Found { name: name.clone(), hit: record.hit, locators: Vec::new(), via: Vec::new(), signed, ttl };
        Some((found, record.servers))
    }

    fn count(&mut self, error: &RecordError) {
        let counters = &mut self.counters;
        *match error {
            RecordError::Malformed(_) | RecordError::BadKey(_) => &mut counters.malformed,
            RecordError::UnknownAlgorithm(_) => &mut counters.unknown_algorithm,
            RecordError::WrongHit { .. } => &mut counters.forged,
        } += 1;
    }

    /// Whether a server's word that an answer is signed counts (RFC 4035 §4.9.3, RFC 6840 §5.8): it has to be on this host,
    /// or the way to it has to be safe.
    fn believes(&self, server: SocketAddr) -> bool {
        self.settings.trusted || server.ip().is_loopback()
    }

    /// A record does not count, and the name is resolved as if there were none.
    fn unused(&mut self, now: Instant, name: &Name, why: String, pause: Duration) {
        self.news.push_back(News::Unused(name.clone(), why));
        self.has_none(now, name, now + pause);
    }

    /// Asks where an identity is.
    fn locate(&mut self, now: Instant, random: &mut dyn CryptoRng, found: Found, servers: Vec<Name>) {
        let of = found.name.clone();
        let mut exchanges = Vec::new();
        for asked in std::iter::once(of.clone()).chain(servers.into_iter().take(MOST_SERVERS)) {
            for kind in [RecordType::A, RecordType::AAAA] {
                let Some(exchange) = self.inquire(now, random, &asked, kind) else { continue };
                self.purposes.insert(exchange, Purpose::Place { of: of.clone(), asked: asked.clone(), kind });
                exchanges.push(exchange);
            }
        }
        let none = exchanges.is_empty();
        self.lookups.insert(of.clone(), Lookup::Places { found, exchanges, until: now + HURRY });
        if none {
            self.end_places(now, &of);
        }
    }

    fn addresses(&mut self, answer: &[u8], asked: &Name, kind: RecordType) -> Vec<IpAddr> {
        let Ok(message) = Message::from_vec(answer) else {
            self.counters.malformed += 1;
            return Vec::new();
        };
        match chain::records(&message.answers, asked, kind) {
            Ok((records, _)) => records.into_iter().filter_map(RData::ip_addr).collect(),
            Err(_) => {
                self.counters.loops += 1;
                Vec::new()
            }
        }
    }

    /// Addresses of a host, or of one of its rendezvous servers, are there.
    fn placed(&mut self, now: Instant, of: &Name, own: bool, addresses: Vec<IpAddr>) {
        let lsi_range = self.settings.lsi_range;
        let purposes = &self.purposes;
        let Some(Lookup::Places { found, exchanges, .. }) = self.lookups.get_mut(of) else { return };
        let (list, most) = if own { (&mut found.locators, MOST_LOCATORS) } else { (&mut found.via, MOST_VIA) };
        for address in addresses {
            let is_place = is_place(address) && !matches!(address, IpAddr::V4(v4) if lsi_range.has(Lsi::from(v4)));
            if is_place && list.len() < most && !list.contains(&address) {
                list.push(address);
            }
        }
        exchanges.retain(|exchange| purposes.contains_key(exchange));
        if exchanges.is_empty() {
            self.end_places(now, of);
        }
    }

    /// What has been found until now is all.
    fn end_places(&mut self, now: Instant, of: &Name) {
        let Some(Lookup::Places { found, exchanges, .. }) = self.lookups.remove(of) else { return };
        for exchange in exchanges {
            self.upstreams.forget(exchange);
            self.purposes.remove(&exchange);
        }
        if found.locators.is_empty() && found.via.is_empty() {
            self.counters.placeless += 1;
            return self.unused(now, of, "it has neither an address nor a rendezvous server".to_owned(), PAUSE);
        }
        self.lookups.insert(of.clone(), Lookup::Told);
        self.news.push_back(News::Found(found));
    }

    /// Ends the look-ups that have taken long enough.
    pub(super) fn end_lookups(&mut self, now: Instant) {
        let due = |lookup: &Lookup| lookup.until().is_some_and(|until| until <= now);
        let due: Vec<Name> =
            self.lookups.iter().filter(|(_, lookup)| due(lookup)).map(|(name, _)| name.clone()).collect();
        for name in due {
            match self.lookups.get(&name) {
                Some(Lookup::Record { exchange, .. }) => {
                    let exchange = *exchange;
                    self.upstreams.forget(exchange);
                    self.purposes.remove(&exchange);
                    self.has_none(now, &name, now + PAUSE);
                }
                Some(Lookup::Places { .. }) => self.end_places(now, &name),
                _ => {}
            }
        }
    }
}

/// Where a host may be. What is this host's own, nobody's or everybody's is no place, and an identity is none.
fn is_place(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_broadcast() && !v4.is_multicast() && !v4.is_loopback() && v4.octets()[0] != 0,
        IpAddr::V6(v6) => {
            let ours = v6.is_loopback() || v6.is_unspecified() || v6.is_multicast();
            // A link-local address without its link leads nowhere (RFC 4007 §6).
            !ours && !v6.is_unicast_link_local() && v6.to_ipv4_mapped().is_none() && !Hit::from(v6).is_orchid()
        }
    }
}

/// For how long there is no record (RFC 2308 §5).
fn negative_ttl(message: &Message) -> Duration {
    let of = message.authorities.iter().find_map(|record| match &record.data {
        RData::SOA(soa) => Some(soa.minimum.min(record.ttl)),
        _ => None,
    });
    Duration::from_secs(of.unwrap_or(LEAST_TTL).clamp(LEAST_TTL, MOST_NEGATIVE_TTL).into())
}
