//! Asking other name servers, without I/O: which server is asked next and how, and which answer counts.
//!
//! An answer counts where it comes from the server that was asked, to the port from which it was, with the random number of the
//! question and the question itself (RFC 5452 §9). Each attempt has a socket of its own, so its port is the kernel's random
//! choice; who guesses too often on one is met over TCP. Servers that fail or are silent make room for the next one.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use clock::{Duration, Instant};
use hickory_proto::op::{Header, MessageType, Metadata, Query, ResponseCode};
use hickory_proto::serialize::binary::{BinDecodable as _, BinDecoder};
use rand_core::CryptoRng;

/// A server that is silent for so long is joined by the next one; over TCP, which sends again by itself, for longer.
const UDP_PATIENCE: Duration = Duration::from_millis(900);
const TCP_PATIENCE: Duration = Duration::from_millis(2_500);
/// The whole question: less than the five seconds after which resolvers ask again (resolv.conf(5)).
const PATIENCE: Duration = Duration::from_millis(4_500);
/// Attempts of one question.
const MOST_ATTEMPTS: usize = 6;
/// Attempts of all questions together, each of which is a socket.
pub const MOST_SOCKETS: usize = 256;
/// So many wrong answers on one socket are somebody who guesses.
const MOST_WRONG: u32 = 8;

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In a datagram.
    Udp,
    /// Over a connection, with a length before the message (RFC 1035 §4.2.2).
    Tcp,
}

/// A question to be sent from a new socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Names the socket.
    pub attempt: u64,
    /// Whom to ask.
    pub server: SocketAddr,
    /// How.
    pub transport: Transport,
    /// The message, without TCP's length.
    pub message: Vec<u8>,
}

/// What has become of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Which question.
    pub exchange: u64,
    /// The answer, with the server that gave it; none where all were silent.
    pub answer: Option<(SocketAddr, Vec<u8>)>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamCounters {
    /// Questions asked of a server, each attempt once.
    pub asked: u64,
    /// Messages that answered no question of ours, and were not counted as answers.
    pub unmatched: u64,
    /// Times that a server was silent or could not be reached.
    pub silent: u64,
    /// Questions that were not asked because too many were under way.
    pub overload: u64,
}

#[derive(Debug)]
struct Exchange {
    /// With any number.
    message: Vec<u8>,
    question: Query,
    transport: Transport,
    /// An answer that was cut off is no answer: it is asked for again over TCP.
    whole: bool,
    /// The server that was asked first, and how many attempts there were.
    first: usize,
    tried: usize,
    /// Under way.
    attempts: Vec<u64>,
    /// When the next attempt begins, and when there is none any more.
    next: Instant,
    until: Instant,
    /// What a server has said that could not answer.
    failure: Option<(SocketAddr, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    exchange: u64,
    server: SocketAddr,
    transport: Transport,
    id: u16,
    wrong: u32,
}

/// The name servers, and what is asked of them.
#[derive(Debug, Default)]
pub struct Upstreams {
    servers: Vec<SocketAddr>,
    /// The one that answered last.
    best: usize,
    exchanges: BTreeMap<u64, Exchange>,
    attempts: BTreeMap<u64, Attempt>,
    count: u64,
    asks: VecDeque<Ask>,
    outcomes: VecDeque<Outcome>,
    counters: UpstreamCounters,
}

impl Upstreams {
    /// Nothing has been asked yet.
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers, ..Self::default() }
    }

    /// Who is asked.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// Asks others from now on.
    pub fn set_servers(&mut self, servers: Vec<SocketAddr>) {
        (self.servers, self.best) = (servers, 0);
    }

    /// What was counted.
    pub fn counters(&self) -> UpstreamCounters {
        self.counters
    }

    /// Begins to ask; an [`Outcome`] of that number follows. With `whole`, an answer that was cut off is asked for again over TCP.
    /// Nothing where too much is under way, or the message has not exactly one question.
    pub fn ask(
        &mut self,
        now: Instant,
        random: &mut dyn CryptoRng,
        message: Vec<u8>,
        transport: Transport,
        whole: bool,
    ) -> Option<u64> {
        let (_, question) = opening(&message)?;
        if self.servers.is_empty() || self.attempts.len() >= MOST_SOCKETS {
            self.counters.overload += 1;
            return None;
        }
        self.count += 1;
        let (exchange, first) = (self.count, self.best);
        let until = now + PATIENCE;
        let new = Exchange {
            message,
            question,
            transport,
            whole,
            first,
            tried: 0,
            attempts: Vec::new(),
            next: now,
            until,
            failure: None,
        };
        self.exchanges.insert(exchange, new);
        self.attempt(now, random, exchange, None);
        Some(exchange)
    }

    /// Asks no more; there is no outcome.
    pub fn forget(&mut self, exchange: u64) {
        if let Some(gone) = self.exchanges.remove(&exchange) {
            self.close(&gone.attempts);
        }
    }

    /// Whether the socket of an attempt is of use.
    pub fn is_open(&self, attempt: u64) -> bool {
        self.attempts.contains_key(&attempt)
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
        let Some(known) = self.attempts.get_mut(&attempt) else { return };
        let Attempt { exchange, server, transport, id, .. } = *known;
        let Some(asked) = self.exchanges.get_mut(&exchange) else { return };
        let metadata = (from == server).then(|| opening(message)).flatten().and_then(|(metadata, question)| {
            let is_answer = metadata.message_type == MessageType::Response && metadata.id == id;
            (is_answer && question == asked.question).then_some(metadata)
        });
        let Some(metadata) = metadata else {
            self.counters.unmatched += 1;
            known.wrong += 1;
            if transport == Transport::Tcp {
                self.fail(now, random, attempt);
            } else if known.wrong == MOST_WRONG {
                self.attempt(now, random, exchange, Some((server, Transport::Tcp)));
            }
            return;
        };
        if metadata.truncation && asked.whole && transport == Transport::Udp {
            asked.attempts.retain(|other| *other != attempt);
            self.attempts.remove(&attempt);
            return self.attempt(now, random, exchange, Some((server, Transport::Tcp)));
        }
        let code = metadata.response_code;
        if [ResponseCode::ServFail, ResponseCode::Refused, ResponseCode::NotImp, ResponseCode::FormErr].contains(&code)
        {
            asked.failure = Some((server, message.to_vec()));
            asked.attempts.retain(|other| *other != attempt);
            self.attempts.remove(&attempt);
            return self.attempt(now, random, exchange, None);
        }
        self.best = self.servers.iter().position(|other| *other == server).unwrap_or(self.best);
        self.finish(exchange, Some((server, message.to_vec())));
    }

    /// The socket of an attempt is of no use: nobody can be reached, or the other end has closed it.
    pub fn fail(&mut self, now: Instant, random: &mut dyn CryptoRng, attempt: u64) {
        let Some(known) = self.attempts.remove(&attempt) else { return };
        self.counters.silent += 1;
        if let Some(asked) = self.exchanges.get_mut(&known.exchange) {
            asked.attempts.retain(|other| *other != attempt);
            self.attempt(now, random, known.exchange, None);
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant, random: &mut dyn CryptoRng) {
        let due: Vec<u64> =
            self.exchanges.iter().filter(|(_, asked)| asked.due() <= now).map(|(key, _)| *key).collect();
        for exchange in due {
            let Some(asked) = self.exchanges.get_mut(&exchange) else { continue };
            if asked.until <= now {
                self.counters.silent += 1;
                let failure = asked.failure.take();
                self.finish(exchange, failure);
                continue;
            }
            self.counters.silent += 1;
            self.attempt(now, random, exchange, None);
        }
    }

    /// When [`Upstreams::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.exchanges.values().map(Exchange::due).min()
    }

    /// The next question to be sent.
    pub fn poll_ask(&mut self) -> Option<Ask> {
        self.asks.pop_front()
    }

    /// The next question that has come to an end.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Asks once more: there, or the next server. Where nothing is left to be tried, the question ends with the last attempt.
    fn attempt(
        &mut self,
        now: Instant,
        random: &mut dyn CryptoRng,
        exchange: u64,
        there: Option<(SocketAddr, Transport)>,
    ) {
        let Some(asked) = self.exchanges.get_mut(&exchange) else { return };
        let most = (2 * self.servers.len()).min(MOST_ATTEMPTS);
        let server = self.servers.get((asked.first + asked.tried) % self.servers.len().max(1));
        let next = server.map(|server| (*server, asked.transport));
        // What is asked over TCP after a datagram has told more is not another attempt.
        let chosen = there.or_else(|| next.filter(|_| asked.tried < most));
        let Some((server, transport)) = chosen.filter(|_| self.attempts.len() < MOST_SOCKETS) else {
            asked.next = asked.until;
            if asked.attempts.is_empty() {
                let failure = asked.failure.take();
                self.finish(exchange, failure);
            }
            return;
        };
        if there.is_none() {
            asked.tried += 1;
        }
        asked.next = now + if transport == Transport::Tcp { TCP_PATIENCE } else { UDP_PATIENCE };
        let [high, low, ..] = random.next_u32().to_be_bytes();
        let mut message = asked.message.clone();
        if let Some(id) = message.first_chunk_mut() {
            *id = [high, low];
        }
        self.count += 1;
        let (attempt, id) = (self.count, u16::from_be_bytes([high, low]));
        asked.attempts.push(attempt);
        self.attempts.insert(attempt, Attempt { exchange, server, transport, id, wrong: 0 });
        self.counters.asked += 1;
        self.asks.push_back(Ask { attempt, server, transport, message });
    }

    fn finish(&mut self, exchange: u64, answer: Option<(SocketAddr, Vec<u8>)>) {
        if let Some(gone) = self.exchanges.remove(&exchange) {
            self.close(&gone.attempts);
            self.outcomes.push_back(Outcome { exchange, answer });
        }
    }

    fn close(&mut self, attempts: &[u64]) {
        for attempt in attempts {
            self.attempts.remove(attempt);
        }
        self.asks.retain(|ask| !attempts.contains(&ask.attempt));
    }
}

impl Exchange {
    fn due(&self) -> Instant {
        self.next.min(self.until)
    }
}

/// What a message begins with: its header, and its one question. Nothing where it has another number of them, or is cut off.
pub(super) fn opening(message: &[u8]) -> Option<(Metadata, Query)> {
    let mut decoder = BinDecoder::new(message);
    let header = Header::read(&mut decoder).ok()?;
    if header.counts.queries != 1 {
        return None;
    }
    Some((header.metadata, Query::read(&mut decoder).ok()?))
}

#[cfg(test)]
#[path = "upstream_tests.rs"]
mod tests;
