//! The sockets of the name responder: UDP, and TCP for resolvers that insist (RFC 7766). It answers programs of this machine
//! only: what a host calls its peers is its own affair.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use wire::Lsi;

use crate::dns::Names;

/// Queries answered before the packets have their turn again.
const BATCH: usize = 16;
/// A longer question is no question of a resolver.
const LONGEST: usize = 4096;
/// The newest connections; an older one that is still open by then is forgotten.
const MOST_CONNECTIONS: usize = 8;

/// Answers for `Names` on this host's LSI.
#[derive(Debug)]
pub struct Responder {
    datagrams: UdpSocket,
    listener: TcpListener,
    connections: Vec<Connection>,
    own: IpAddr,
    names: Names,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
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
        Ok(Self { datagrams, listener, connections: Vec::new(), own: address.ip(), names })
    }

    /// What to poll for reading.
    pub fn interests(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let connections = self.connections.iter().map(|connection| connection.stream.as_fd());
        [self.datagrams.as_fd(), self.listener.as_fd()].into_iter().chain(connections)
    }

    /// Answers what has been asked.
    pub fn turn(&mut self) {
        self.answer_datagrams();
        for _ in 0..BATCH {
            let Ok((stream, asker)) = self.listener.accept() else { break };
            if !self.is_local(asker) || stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.connections.len() >= MOST_CONNECTIONS {
                self.connections.remove(0);
            }
            self.connections.push(Connection { stream, received: Vec::new() });
        }
        self.connections.retain_mut(|connection| connection.turn(&self.names));
    }

    fn answer_datagrams(&self) {
        let mut query = [0; LONGEST];
        for _ in 0..BATCH {
            let (length, asker) = match self.datagrams.recv_from(&mut query) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if !self.is_local(asker) {
                continue;
            }
            if let Some(answer) = self.names.answer(query.get(..length).unwrap_or_default()) {
                // A resolver asks again.
                let _ = self.datagrams.send_to(&answer, asker);
            }
        }
    }

    fn is_local(&self, asker: SocketAddr) -> bool {
        asker.ip() == self.own || asker.ip().is_loopback()
    }
}

impl Connection {
    /// False once the other end has gone, talks nonsense or does not listen.
    fn turn(&mut self, names: &Names) -> bool {
        let mut chunk = [0; 512];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(length) => self.received.extend_from_slice(chunk.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
            // RFC 1035 §4.2.2: two bytes of length before each message.
            while let Some((length, rest)) = self.received.split_first_chunk() {
                let length = usize::from(u16::from_be_bytes(*length));
                if length > LONGEST {
                    return false;
                }
                let Some(query) = rest.get(..length) else { break };
                let Some(answer) = names.answer(query) else { return false };
                self.received.drain(..2 + length);
                let Ok(length) = u16::try_from(answer.len()) else { return false };
                // An answer is a few dozen bytes: a buffer without room for it belongs to someone who does not listen.
                if self.stream.write_all(&[&length.to_be_bytes(), answer.as_slice()].concat()).is_err() {
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::{Message, Query};
    use hickory_proto::rr::rdata::A;
    use hickory_proto::rr::{Name, RData, RecordType};
    use std::time::Duration;
    use wire::Hit;

    fn responder() -> (Responder, SocketAddr) {
        let mut names = Names::default();
        names.add("b.hip", Hit::default(), Lsi([1, 2, 3, 4])).expect("a name");
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
        responder.turn();
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
        responder.turn();
        program.write_all(second).expect("writes");
        for _ in 0..2 {
            // On loopback what is written is there.
            responder.turn();
            let mut length = [0; 2];
            program.read_exact(&mut length).expect("an answer");
            let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
            program.read_exact(&mut answer).expect("an answer");
            assert_answer(&answer);
        }
        drop(program);
        responder.turn();
        assert!(responder.connections.is_empty());
    }

    #[test]
    fn connections_that_say_nothing_do_not_add_up() {
        let (mut responder, address) = responder();
        let idle: Vec<_> = (0..3 * MOST_CONNECTIONS).map(|_| TcpStream::connect(address).expect("connects")).collect();
        responder.turn();
        responder.turn();
        assert_eq!(responder.connections.len(), MOST_CONNECTIONS);
        drop(idle);
    }
}
