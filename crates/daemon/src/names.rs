//! The sockets of the resolver: UDP, and TCP for programs that insist (RFC 7766), and towards other name servers one for each
//! question. It answers programs of this machine only: what a host calls its peers is its own affair.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use clock::Instant;
use rand_core::CryptoRng;
use rustix::event::PollFlags;
use wire::Lsi;

use crate::dns::resolver::{Asker, News, Resolver};
use crate::servers::Servers;
use crate::visitors::{Class, Limits, PATIENCE, Step, Tally, Visitors};

/// Queries answered before the packets have their turn again.
const BATCH: usize = 16;
/// A longer question is no question of a resolver.
const LONGEST: usize = 4096;
/// A resolver may ask the next question before it has an answer.
const LIMITS: Limits = Limits { ordinary: 8, trusted: 0, question: 2 * LONGEST, answers: BATCH };

/// Answers programs on this host's LSI.
#[derive(Debug)]
pub struct Responder {
    datagrams: UdpSocket,
    visitors: Visitors<TcpListener>,
    own: IpAddr,
    resolver: Resolver,
    servers: Servers,
    questions: Questions,
}

/// The questions that came over connections, one for each.
#[derive(Debug, Default)]
struct Questions {
    open: BTreeMap<SocketAddr, Question>,
    /// Answers to others that were there at the same time.
    late: Vec<(SocketAddr, Vec<u8>)>,
}

#[derive(Debug)]
struct Question {
    query: Vec<u8>,
    since: Instant,
    answer: Option<Vec<u8>>,
}

impl Responder {
    /// Listens on port 53 of `own`.
    ///
    /// # Errors
    /// Where the port is taken, or without `CAP_NET_BIND_SERVICE`.
    pub fn listen(own: Lsi, resolver: Resolver) -> io::Result<Self> {
        Self::listen_on(SocketAddr::new(own.address().into(), 53), resolver)
    }

    fn listen_on(address: SocketAddr, resolver: Resolver) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let datagrams = UdpSocket::bind(listener.local_addr()?)?;
        datagrams.set_nonblocking(true)?;
        let visitors = Visitors::new(listener, LIMITS);
        let (servers, questions) = (Servers::default(), Questions::default());
        Ok(Self { datagrams, visitors, own: address.ip(), resolver, servers, questions })
    }

    /// What is asked and answered.
    pub fn resolver(&mut self) -> &mut Resolver {
        &mut self.resolver
    }

    /// What to poll for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let programs = std::iter::once((self.datagrams.as_fd(), PollFlags::IN)).chain(self.visitors.interests());
        programs.chain(self.servers.interests())
    }

    /// When [`Responder::turn`] wants to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.visitors.poll_timeout().into_iter().chain(self.resolver.poll_timeout()).min()
    }

    /// What has happened to visitors.
    pub(crate) fn tally(&self) -> Tally {
        self.visitors.tally()
    }

    /// What has happened to questions.
    pub(crate) fn counters(&self) -> (crate::dns::resolver::ResolverCounters, crate::dns::upstream::UpstreamCounters) {
        self.resolver.counters()
    }

    /// Answers what has been asked and what servers have said; the news of it.
    pub fn turn(&mut self, now: Instant, random: &mut dyn CryptoRng) -> Vec<News> {
        self.servers.turn(now, random, &mut self.resolver);
        self.resolver.handle_timeout(now, random);
        self.take_datagrams(now, random);
        // Twice, so that who has asked is answered in the same turn where the answer is known.
        self.answer(now);
        self.take_streams(now, random);
        self.answer(now);
        self.servers.ask(now, random, &mut self.resolver);
        std::iter::from_fn(|| self.resolver.poll_news()).collect()
    }

    /// Sends the answers that there are.
    pub fn answer(&mut self, now: Instant) {
        self.questions.sort(&mut self.resolver);
        for (asker, answer) in self.questions.late.drain(..).filter(|(_, answer)| !answer.is_empty()) {
            // A resolver asks again where one is lost.
            let _ = self.datagrams.send_to(&answer, asker);
        }
        self.questions.open.retain(|_, question| now.saturating_since(question.since) < PATIENCE * 2);
    }

    /// Answers over connections what has been found out meanwhile.
    fn take_streams(&mut self, now: Instant, random: &mut dyn CryptoRng) {
        let (own, resolver, questions) = (self.own, &mut self.resolver, &mut self.questions);
        self.visitors.turn(
            now,
            |stream| match stream.peer_addr() {
                Ok(asker) if is_local(own, asker) => Class::Ordinary,
                _ => Class::Unwanted,
            },
            |stream, received| questions.take(now, random, resolver, stream, received),
        );
    }

    fn take_datagrams(&mut self, now: Instant, random: &mut dyn CryptoRng) {
        let mut query = [0; LONGEST];
        for _ in 0..BATCH {
            let (length, asker) = match self.datagrams.recv_from(&mut query) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if is_local(self.own, asker) {
                let query = query.get(..length).unwrap_or_default();
                self.resolver.handle_question(now, random, Asker::Datagram(asker), query);
            }
        }
    }
}

fn is_local(own: IpAddr, asker: SocketAddr) -> bool {
    asker.ip() == own || asker.ip().is_loopback()
}

impl Questions {
    /// What becomes of the first question of `received`, which is taken out of it with its answer.
    fn take(
        &mut self,
        now: Instant,
        random: &mut dyn CryptoRng,
        resolver: &mut Resolver,
        stream: &TcpStream,
        received: &mut Vec<u8>,
    ) -> Step {
        // RFC 1035 §4.2.2: two bytes of length before each message.
        let Some((length, rest)) = received.split_first_chunk() else { return Step::More };
        let length = usize::from(u16::from_be_bytes(*length));
        if length > LONGEST {
            return Step::Leave;
        }
        let Some(query) = rest.get(..length) else { return Step::More };
        let Ok(asker) = stream.peer_addr() else { return Step::Leave };
        if self.open.get(&asker).is_none_or(|known| known.query != query) {
            self.open.insert(asker, Question { query: query.to_vec(), since: now, answer: None });
            resolver.handle_question(now, random, Asker::Stream(asker), query);
            // What is known is answered at once, and so is the next question.
            self.sort(resolver);
        }
        let Some(answer) = self.open.get_mut(&asker).and_then(|question| question.answer.take()) else {
            return Step::Later;
        };
        self.open.remove(&asker);
        received.drain(..2 + length);
        match u16::try_from(answer.len()) {
            Ok(length @ 1..) => Step::Answer([&length.to_be_bytes()[..], answer.as_slice()].concat()),
            _ => Step::Leave,
        }
    }

    /// Takes the answers that there are, each to where it is waited for.
    fn sort(&mut self, resolver: &mut Resolver) {
        while let Some((asker, answer)) = resolver.poll_answer() {
            match asker {
                Asker::Datagram(asker) => self.late.push((asker, answer)),
                Asker::Stream(asker) => self.answer(asker, answer),
            }
        }
    }

    fn answer(&mut self, asker: SocketAddr, answer: Vec<u8>) {
        if let Some(question) = self.open.get_mut(&asker)
            && (answer.is_empty() || answer.get(..2) == question.query.get(..2))
        {
            question.answer = Some(answer);
        }
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
