//! The socket of the name responder. It answers programs of this machine only: what a host calls its peers is its own
//! affair.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use wire::Lsi;

use crate::dns::Names;

/// Queries answered before the packets have their turn again.
const BATCH: usize = 16;
/// A longer question is no question of a resolver.
const LONGEST: usize = 4096;

/// Answers for `Names` on this host's LSI.
#[derive(Debug)]
pub struct Responder {
    socket: UdpSocket,
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
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, own: address.ip(), names })
    }

    /// Answers what has been asked.
    pub fn turn(&self) {
        let mut query = [0; LONGEST];
        for _ in 0..BATCH {
            let (length, asker) = match self.socket.recv_from(&mut query) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if asker.ip() != self.own && !asker.ip().is_loopback() {
                continue;
            }
            if let Some(answer) = self.names.answer(query.get(..length).unwrap_or_default()) {
                // A resolver asks again.
                let _ = self.socket.send_to(&answer, asker);
            }
        }
    }
}

impl AsFd for Responder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::{Message, Query};
    use hickory_proto::rr::rdata::A;
    use hickory_proto::rr::{Name, RData, RecordType};
    use wire::Hit;

    #[test]
    fn a_program_of_this_machine_is_answered() {
        let mut names = Names::default();
        names.add("b.hip", Hit::default(), Lsi([1, 2, 3, 4])).expect("a name");
        let responder = Responder::listen_on("127.0.0.1:0".parse().expect("an address"), names).expect("binds");
        let program = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let mut query = Message::query();
        query.add_query(Query::query(Name::from_ascii("b.hip.").expect("a name"), RecordType::A));
        let address = responder.socket.local_addr().expect("bound");
        program.send_to(&query.to_vec().expect("a query"), address).expect("sends");
        responder.turn();
        let mut answer = [0; 512];
        program.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a time");
        let length = program.recv(&mut answer).expect("an answer");
        let answer = Message::from_vec(&answer[..length]).expect("well-formed");
        assert_eq!(answer.answers[0].data, RData::A(A::new(1, 2, 3, 4)));
    }
}
