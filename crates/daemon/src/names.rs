//! The sockets of the name responder: UDP, and TCP for resolvers that insist (RFC 7766). It answers programs of this machine
//! only: what a host calls its peers is its own affair.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use clock::Instant;
use rustix::event::PollFlags;
use wire::Lsi;

use crate::dns::Names;
use crate::visitors::{Class, Limits, Step, Tally, Visitors};

/// Queries answered before the packets have their turn again.
const BATCH: usize = 16;
/// A longer question is no question of a resolver.
const LONGEST: usize = 4096;
/// A resolver may ask the next question before it has an answer.
const LIMITS: Limits = Limits { ordinary: 8, trusted: 0, question: 2 * LONGEST, answers: BATCH };

/// Answers for `Names` on this host's LSI.
#[derive(Debug)]
pub struct Responder {
    datagrams: UdpSocket,
    visitors: Visitors<TcpListener>,
    own: IpAddr,
    names: Names,
}

impl Responder {
    /// Listens on port 53 of `own`.
    ///
    /// # Errors
    /// Where the port is taken, or without `CAP_NET_BIND_SERVICE`.
    pub fn listen(own: Lsi, names: Names) -> io::Result<Self> {
        Self::listen_on(SocketAddr::new(own.address().into(), 53), names)
    }

    fn listen_on(address: SocketAddr, names: Names) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let datagrams = UdpSocket::bind(listener.local_addr()?)?;
        datagrams.set_nonblocking(true)?;
        Ok(Self { datagrams, visitors: Visitors::new(listener, LIMITS), own: address.ip(), names })
    }

    /// Answers for other names from now on.
    pub fn rename(&mut self, names: Names) {
        self.names = names;
    }

    /// What to poll for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        std::iter::once((self.datagrams.as_fd(), PollFlags::IN)).chain(self.visitors.interests())
    }

    /// When [`Responder::turn`] wants to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.visitors.poll_timeout()
    }

    /// What has happened to visitors.
    pub(crate) fn tally(&self) -> Tally {
        self.visitors.tally()
    }

    /// Answers what has been asked.
    pub fn turn(&mut self, now: Instant) {
        self.answer_datagrams();
        let (own, names) = (self.own, &self.names);
        self.visitors.turn(
            now,
            |stream| match stream.peer_addr() {
                Ok(asker) if is_local(own, asker) => Class::Ordinary,
                _ => Class::Unwanted,
            },
            |_, received| answer(names, received),
        );
    }

    fn answer_datagrams(&self) {
        let mut query = [0; LONGEST];
        for _ in 0..BATCH {
            let (length, asker) = match self.datagrams.recv_from(&mut query) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if !is_local(self.own, asker) {
                continue;
            }
            if let Some(answer) = self.names.answer(query.get(..length).unwrap_or_default()) {
                // A resolver asks again.
                let _ = self.datagrams.send_to(&answer, asker);
            }
        }
    }
}

fn is_local(own: IpAddr, asker: SocketAddr) -> bool {
    asker.ip() == own || asker.ip().is_loopback()
}

/// The answer to the first question of `received`, which is taken out of it.
fn answer(names: &Names, received: &mut Vec<u8>) -> Step {
    // RFC 1035 §4.2.2: two bytes of length before each message.
    let Some((length, rest)) = received.split_first_chunk() else { return Step::More };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > LONGEST {
        return Step::Leave;
    }
    let Some(query) = rest.get(..length) else { return Step::More };
    let Some(answer) = names.answer(query) else { return Step::Leave };
    received.drain(..2 + length);
    let Ok(length) = u16::try_from(answer.len()) else { return Step::Leave };
    Step::Answer([&length.to_be_bytes(), answer.as_slice()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::{Message, Query};
    use hickory_proto::rr::rdata::A;
    use hickory_proto::rr::{Name, RData, RecordType};
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Duration;
    use wire::Hit;

    fn responder() -> (Responder, SocketAddr) {
        let mut names = Names::default();
        names.add("b.hip", Hit::default(), Some(Lsi([1, 2, 3, 4]))).expect("a name");
        let responder = Responder::listen_on("127.0.0.1:0".parse().expect("an address"), names).expect("binds");
        let address = responder.datagrams.local_addr().expect("bound");
        (responder, address)
    }

    fn query() -> Vec<u8> {
        let mut query = Message::query();
        query.add_query(Query::query(Name::from_ascii("b.hip.").expect("a name"), RecordType::A));
        query.to_vec().expect("a query")
    }

    fn assert_answer(answer: &[u8]) {
        let answer = Message::from_vec(answer).expect("well-formed");
        assert_eq!(answer.answers[0].data, RData::A(A::new(1, 2, 3, 4)));
    }

    #[test]
    fn a_program_of_this_machine_is_answered() {
        let (mut responder, address) = responder();
        let program = UdpSocket::bind("127.0.0.1:0").expect("binds");
        program.send_to(&query(), address).expect("sends");
        responder.turn(Instant::ZERO);
        let mut answer = [0; 512];
        program.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        let length = program.recv(&mut answer).expect("an answer");
        assert_answer(&answer[..length]);
    }

    #[test]
    fn over_tcp_too_also_where_a_question_comes_in_pieces_and_the_next_at_once() {
        let (mut responder, address) = responder();
        let mut program = TcpStream::connect(address).expect("connects");
        program.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        let query = query();
        let length = u16::try_from(query.len()).expect("short").to_be_bytes();
        let twice = [&length[..], &query, &length, &query].concat();
        let (first, second) = twice.split_at(7);
        program.write_all(first).expect("writes");
        responder.turn(Instant::ZERO);
        program.write_all(second).expect("writes");
        for _ in 0..2 {
            // On loopback what is written is there.
            responder.turn(Instant::ZERO);
            let mut length = [0; 2];
            program.read_exact(&mut length).expect("an answer");
            let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
            program.read_exact(&mut answer).expect("an answer");
            assert_answer(&answer);
        }
        drop(program);
        responder.turn(Instant::ZERO);
        assert!(responder.visitors.len() == 0);
    }

    #[test]
    fn connections_that_say_nothing_do_not_add_up() {
        let (mut responder, address) = responder();
        let idle: Vec<_> = (0..3 * LIMITS.ordinary).map(|_| TcpStream::connect(address).expect("connects")).collect();
        responder.turn(Instant::ZERO);
        responder.turn(Instant::ZERO);
        assert_eq!(responder.visitors.len(), LIMITS.ordinary);
        drop(idle);
    }
}
