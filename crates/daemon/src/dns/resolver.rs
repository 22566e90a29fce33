//! The resolver of this host's programs, without I/O. Configured names are answered for at once. Others are passed on to the
//! name servers of the configuration and back, as they are (RFC 5625); for addresses these are asked for a HIP record, too
//! (`lookup`), and where there is one, programs get HIT and LSI in the place of addresses.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use rand_core::CryptoRng;
use wire::{Hit, Lsi};

use super::lookup::{Lookup, Purpose};
use super::upstream::{Ask, Outcome, Transport, UpstreamCounters, Upstreams, opening};
use super::{Names, TTL};
use crate::config::{HipRecords, LsiRange};

/// Programs that wait for one answer, each of which has asked for it.
const MOST_ASKERS: usize = 32;
/// Names with a HIP record that are remembered, and names without.
const MOST_KNOWN: usize = 1024;
const MOST_PLAIN: usize = 4096;

/// Who has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    /// In a datagram from there.
    Datagram(SocketAddr),
    /// Over a connection from there.
    Stream(SocketAddr),
}

/// What the resolver is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name servers, the best first; without any, other names than the configured ones are refused.
    pub servers: Vec<SocketAddr>,
    /// Which HIP records count.
    pub hip_records: HipRecords,
    /// Whether what a server says of signatures is believed although it is on another host.
    pub trusted: bool,
    /// Which addresses are no places in the network.
    pub lsi_range: LsiRange,
}

/// A host that a HIP record tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name, in lower case.
    pub name: Name,
    /// Its identity: that of the record's key.
    pub hit: Hit,
    /// Its addresses; at least one here or there.
    pub locators: Vec<IpAddr>,
    /// Those of its rendezvous servers.
    pub via: Vec<IpAddr>,
    /// Whether a server that is believed has found the record to be signed.
    pub signed: bool,
    /// For how long that holds.
    pub ttl: Duration,
}

/// What somebody should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// There may be a new peer: [`Resolver::accept`] or [`Resolver::refuse`] has to follow.
    Found(Found),
    /// A record is of no use, and the name is resolved as if there were none; in a sentence.
    Unused(Name, String),
}

hip::counters! {
    /// What happened to questions.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct ResolverCounters {
        /// HIP records by which a name became a peer.
        pub found: u64,
        /// HIP records that tell the HIT of another key.
        pub forged: u64,
        /// HIP records that are cut off or have a key that is none, and answers that cannot be read.
        pub malformed: u64,
        /// HIP records with a key of an algorithm that we do not have.
        pub unknown_algorithm: u64,
        /// HIP records that nobody has signed, where they have to be.
        pub unsigned: u64,
        /// Aliases that go round.
        pub loops: u64,
        /// Names with a HIP record but without an address or a rendezvous server.
        pub placeless: u64,
        /// Questions that were refused because too many were under way.
        pub overload: u64,
    }
}

/// A name that leads to an identity.
#[derive(Clone, Copy, Debug)]
struct Known {
    hit: Hit,
    lsi: Option<Lsi>,
    until: Instant,
}

/// A question that is passed on.
#[derive(Debug)]
struct Pass {
    /// Without its number.
    body: Vec<u8>,
    transport: Transport,
    askers: Vec<(Asker, [u8; 2])>,
    /// The answer waits until it is known whether this name has a HIP record.
    held: Option<Name>,
    /// The answer that waits; nothing where no server gave one.
    answer: Option<Option<Vec<u8>>>,
}

/// The resolver.
#[derive(Debug)]
pub struct Resolver {
    names: Names,
    pub(super) settings: Settings,
    pub(super) upstreams: Upstreams,
    passes: BTreeMap<u64, Pass>,
    pub(super) purposes: BTreeMap<u64, Purpose>,
    pub(super) lookups: BTreeMap<Name, Lookup>,
    known: BTreeMap<Name, Known>,
    /// Names without a HIP record that counts, until then.
    plain: BTreeMap<Name, Instant>,
    answers: VecDeque<(Asker, Vec<u8>)>,
    pub(super) news: VecDeque<News>,
    pub(super) counters: ResolverCounters,
}

impl Resolver {
    /// Nothing has been asked yet.
    pub fn new(names: Names, settings: Settings) -> Self {
        Self {
            names,
            upstreams: Upstreams::new(settings.servers.clone()),
            settings,
            passes: BTreeMap::new(),
            purposes: BTreeMap::new(),
            lookups: BTreeMap::new(),
            known: BTreeMap::new(),
            plain: BTreeMap::new(),
            answers: VecDeque::new(),
            news: VecDeque::new(),
            counters: ResolverCounters::default(),
        }
    }

    /// Answers for other configured names from now on.
    pub fn rename(&mut self, names: Names) {
        self.names = names;
    }

    /// What was counted.
    pub fn counters(&self) -> (ResolverCounters, UpstreamCounters) {
        (self.counters, self.upstreams.counters())
    }

    /// A program asks.
    pub fn handle_question(&mut self, now: Instant, random: &mut dyn CryptoRng, asker: Asker, message: &[u8]) {
        let question = opening(message).filter(|(metadata, question)| {
            let passes = metadata.op_code == OpCode::Query && question.query_class() == DNSClass::IN;
            passes && metadata.message_type == MessageType::Query && !self.upstreams.servers().is_empty()
        });
        let Some((_, question)) = question else { return self.answer_here(asker, message) };
        let (name, kind) = (question.name().to_lowercase(), question.query_type());
        if self.names.has(&name) || matches!(kind, RecordType::AXFR | RecordType::IXFR) {
            return self.answer_here(asker, message);
        }
        if let Some(identity) = self.identity_of(&name) {
            return match self.known.iter().find(|(_, known)| known.is(identity)).map(|(name, _)| name.clone()) {
                Some(name) => self.answer_with(asker, message, Some(RData::PTR(PTR(name))), TTL),
                None => self.answer_here(asker, message),
            };
        }
        let mut held = None;
        if self.settings.hip_records != HipRecords::Off && is_of_addresses(kind) {
            if let Some(known) = self.known.get(&name).copied().filter(|known| known.until > now) {
                return self.answer_for(now, asker, message, &known);
            }
            if self.plain.get(&name).is_none_or(|until| *until <= now) {
                if !self.look_up(now, random, &name) {
                    return self.give_up(asker, message);
                }
                held = Some(name);
            }
        }
        self.pass(now, random, asker, message, held);
        self.settle(now, random);
    }

    /// A message has come to the socket of an attempt.
    pub fn handle_message(
        &mut self,
        now: Instant,
        random: &mut dyn CryptoRng,
        attempt: u64,
        from: SocketAddr,
        message: &[u8],
    ) {
        self.upstreams.handle_message(now, random, attempt, from, message);
        self.settle(now, random);
    }

    /// The socket of an attempt is of no use.
    pub fn fail(&mut self, now: Instant, random: &mut dyn CryptoRng, attempt: u64) {
        self.upstreams.fail(now, random, attempt);
        self.settle(now, random);
    }

    /// Does what is due. Afterwards the next deadline is later than `now`.
    pub fn handle_timeout(&mut self, now: Instant, random: &mut dyn CryptoRng) {
        self.upstreams.handle_timeout(now, random);
        self.settle(now, random);
        self.end_lookups(now);
    }

    /// When [`Resolver::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.lookups.values().filter_map(Lookup::until).chain(self.upstreams.poll_timeout()).min()
    }

    /// The next question to be sent to a server.
    pub fn poll_ask(&mut self) -> Option<Ask> {
        self.upstreams.poll_ask()
    }

    /// Whether the socket of an attempt is of use.
    pub fn is_open(&self, attempt: u64) -> bool {
        self.upstreams.is_open(attempt)
    }

    /// The next answer to a program.
    pub fn poll_answer(&mut self) -> Option<(Asker, Vec<u8>)> {
        self.answers.pop_front()
    }

    /// The next news.
    pub fn poll_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// What was found is a peer: programs get its HIT, and its LSI if that can be reached.
    pub fn accept(&mut self, now: Instant, found: &Found, lsi: Option<Lsi>) {
        self.counters.found += 1;
        let known = Known { hit: found.hit, lsi, until: now + found.ttl };
        if self.known.len() >= MOST_KNOWN {
            self.known.retain(|_, known| known.until > now);
            if self.known.len() >= MOST_KNOWN {
                self.known.pop_first();
            }
        }
        self.known.insert(found.name.clone(), known);
        self.lookups.remove(&found.name);
        self.release(now, &found.name, Some(known));
    }

    /// What was found cannot be a peer now.
    pub fn refuse(&mut self, now: Instant, name: &Name, until: Instant) {
        self.has_none(now, name, until);
    }

    /// An identity is no peer any more: its names are asked for again.
    pub fn forget(&mut self, hit: Hit) {
        self.known.retain(|_, known| known.hit != hit);
    }

    /// A name has no HIP record that counts.
    pub(super) fn has_none(&mut self, now: Instant, name: &Name, until: Instant) {
        if self.plain.len() >= MOST_PLAIN {
            self.plain.retain(|_, until| *until > now);
            if self.plain.len() >= MOST_PLAIN {
                self.plain.pop_first();
            }
        }
        self.plain.insert(name.clone(), until);
        self.known.remove(name);
        self.lookups.remove(name);
        self.release(now, name, None);
    }

    /// Whether an answer waits to be known as that of a name with or without a HIP record.
    fn release(&mut self, now: Instant, name: &Name, known: Option<Known>) {
        let held: Vec<u64> =
            self.passes.iter().filter(|(_, pass)| pass.held.as_ref() == Some(name)).map(|(key, _)| *key).collect();
        for exchange in held {
            if let Some(known) = known {
                self.upstreams.forget(exchange);
                let Some(pass) = self.passes.remove(&exchange) else { continue };
                for (asker, id) in &pass.askers {
                    self.answer_for(now, *asker, &[id, pass.body.as_slice()].concat(), &known);
                }
                continue;
            }
            let Some(pass) = self.passes.get_mut(&exchange) else { continue };
            pass.held = None;
            if let Some(answer) = pass.answer.take() {
                self.send(exchange, answer);
            }
        }
    }

    fn pass(&mut self, now: Instant, random: &mut dyn CryptoRng, asker: Asker, message: &[u8], held: Option<Name>) {
        let Some((id, body)) = message.split_first_chunk::<2>() else { return };
        let transport = match asker {
            Asker::Datagram(_) => Transport::Udp,
            Asker::Stream(_) => Transport::Tcp,
        };
        // One question is asked once (RFC 5452 §5), also where a server asks us what we ask it.
        let same = |pass: &&mut Pass| pass.transport == transport && pass.body == body;
        if let Some(pass) = self.passes.values_mut().find(same) {
            return match pass.askers.iter().position(|known| known.0 == asker && known.1 == *id) {
                Some(_) => {}
                None if pass.askers.len() < MOST_ASKERS => pass.askers.push((asker, *id)),
                None => self.give_up(asker, message),
            };
        }
        let Some(exchange) = self.upstreams.ask(now, random, message.to_vec(), transport, false) else {
            return self.give_up(asker, message);
        };
        let body = body.to_vec();
        self.passes.insert(exchange, Pass { body, transport, askers: vec![(asker, *id)], held, answer: None });
    }

    /// Takes what has come to an end.
    fn settle(&mut self, now: Instant, random: &mut dyn CryptoRng) {
        while let Some(Outcome { exchange, answer }) = self.upstreams.poll_outcome() {
            if let Some(purpose) = self.purposes.remove(&exchange) {
                self.heard(now, random, purpose, answer);
                continue;
            }
            let answer = answer.map(|(_, answer)| answer);
            let Some(pass) = self.passes.get_mut(&exchange) else { continue };
            match &pass.held {
                Some(name) => {
                    if let Some(lookup) = self.lookups.get_mut(name) {
                        lookup.hurry(now);
                    }
                    pass.answer = Some(answer);
                }
                None => self.send(exchange, answer),
            }
        }
    }

    /// Passes an answer back.
    fn send(&mut self, exchange: u64, answer: Option<Vec<u8>>) {
        let Some(pass) = self.passes.remove(&exchange) else { return };
        for (asker, id) in pass.askers {
            match &answer {
                Some(answer) => {
                    let rest = answer.get(2..).unwrap_or_default();
                    self.answers.push_back((asker, [&id[..], rest].concat()));
                }
                None => self.fail_for(asker, &[&id[..], &pass.body].concat()),
            }
        }
    }

    fn answer_here(&mut self, asker: Asker, message: &[u8]) {
        // A connection without an answer would wait for one: what is no question ends it.
        self.answers.push_back((asker, self.names.answer(message).unwrap_or_default()));
    }

    fn answer_for(&mut self, now: Instant, asker: Asker, message: &[u8], known: &Known) {
        let kind = opening(message).map(|(_, question)| question.query_type());
        let data = match kind {
            Some(RecordType::A) => known.lsi.map(|lsi| RData::A(A(lsi.address()))),
            Some(RecordType::AAAA) => Some(RData::AAAA(AAAA(known.hit.address()))),
            // HTTPS and SVCB would lead to addresses beside the identity.
            _ => None,
        };
        let left = known.until.saturating_since(now).as_nanos() / 1_000_000_000;
        self.answer_with(asker, message, data, TTL.min(u32::try_from(left).unwrap_or(TTL)));
    }

    fn answer_with(&mut self, asker: Asker, message: &[u8], data: Option<RData>, ttl: u32) {
        let Ok(query) = Message::from_vec(message) else { return self.give_up(asker, message) };
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        answer.metadata.recursion_desired = query.metadata.recursion_desired;
        answer.metadata.recursion_available = true;
        answer.add_queries(query.queries.iter().cloned());
        let name = query.queries.first().map(|question| question.name().clone());
        let record = name.zip(data).map(|(name, data)| Record::from_rdata(name, ttl, data));
        answer.add_answers(record);
        self.answers.push_back((asker, answer.to_vec().unwrap_or_default()));
    }

    fn give_up(&mut self, asker: Asker, message: &[u8]) {
        self.counters.overload += 1;
        self.fail_for(asker, message);
    }

    /// RFC 1035 §4.1.1: the server was unable to process the query.
    fn fail_for(&mut self, asker: Asker, message: &[u8]) {
        let answer = opening(message).and_then(|(metadata, question)| {
            let mut answer = Message::error_msg(metadata.id, metadata.op_code, ResponseCode::ServFail);
            answer.metadata.recursion_desired = metadata.recursion_desired;
            answer.metadata.recursion_available = true;
            answer.add_query(question);
            answer.to_vec().ok()
        });
        self.answers.push_back((asker, answer.unwrap_or_default()));
    }

    /// The HIT or LSI of a name of the reverse tree, which is nobody else's business.
    fn identity_of(&self, name: &Name) -> Option<IpAddr> {
        let network = name.parse_arpa_name().ok()?;
        let address = network.addr();
        let is_host = network.prefix_len() == network.max_prefix_len();
        (is_host && self.is_identity(address)).then_some(address)
    }

    fn is_identity(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.settings.lsi_range.has(Lsi::from(address)),
            IpAddr::V6(address) => Hit::from(address).is_orchid(),
        }
    }
}

impl Known {
    fn is(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.lsi == Some(Lsi::from(address)),
            IpAddr::V6(address) => self.hit == Hit::from(address),
        }
    }
}

/// Records that tell addresses: HTTPS and SVCB have hints of them (RFC 9460 §7.3).
fn is_of_addresses(kind: RecordType) -> bool {
    matches!(kind, RecordType::A | RecordType::AAAA | RecordType::HTTPS | RecordType::SVCB)
}

#[cfg(test)]
#[path = "resolver_tests.rs"]
mod tests;
