//! The sockets towards other name servers: a new one for each attempt, so that the kernel chooses a random port, connected, so
//! that it takes nothing from elsewhere.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use clock::Instant;
use rand_core::CryptoRng;
use rustix::event::PollFlags;
use socket2::{Domain, Socket, Type};

use crate::dns::resolver::Resolver;
use crate::dns::upstream::{Ask, Transport};

/// Messages read from one socket before the others have their turn.
const BATCH: usize = 8;
/// The longest message there is.
const LONGEST: usize = 65_535;

#[derive(Debug)]
enum Channel {
    Datagrams(UdpSocket),
    Stream(Stream),
}

/// A connection, on which one question is asked.
#[derive(Debug)]
struct Stream {
    stream: TcpStream,
    unwritten: Vec<u8>,
    received: Vec<u8>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    channels: BTreeMap<u64, (SocketAddr, Channel)>,
}

impl Servers {
    /// What to poll for.
    pub(crate) fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.channels.values().map(|(_, channel)| match channel {
            Channel::Datagrams(socket) => (socket.as_fd(), PollFlags::IN),
            Channel::Stream(stream) if stream.unwritten.is_empty() => (stream.stream.as_fd(), PollFlags::IN),
            Channel::Stream(stream) => (stream.stream.as_fd(), PollFlags::OUT),
        })
    }

    /// Takes what servers have said, and asks what is to be asked.
    pub(crate) fn turn(&mut self, now: Instant, random: &mut dyn CryptoRng, resolver: &mut Resolver) {
        let attempts: Vec<u64> = self.channels.keys().copied().collect();
        for attempt in attempts {
            let Some((server, channel)) = self.channels.get_mut(&attempt) else { continue };
            let server = *server;
            for _ in 0..BATCH {
                match channel.read() {
                    Ok(Some(message)) => resolver.handle_message(now, random, attempt, server, &message),
                    Ok(None) => break,
                    Err(_) => {
                        resolver.fail(now, random, attempt);
                        break;
                    }
                }
            }
        }
        self.ask(now, random, resolver);
    }

    /// Asks what is to be asked, and closes what is of no use any more.
    pub(crate) fn ask(&mut self, now: Instant, random: &mut dyn CryptoRng, resolver: &mut Resolver) {
        self.channels.retain(|attempt, _| resolver.is_open(*attempt));
        while let Some(ask) = resolver.poll_ask() {
            match Channel::open(&ask) {
                Ok(channel) => drop(self.channels.insert(ask.attempt, (ask.server, channel))),
                Err(error) => {
                    tracing::debug!(%error, server = %ask.server, "asking a name server");
                    resolver.fail(now, random, ask.attempt);
                }
            }
        }
    }
}

impl Channel {
    fn open(ask: &Ask) -> io::Result<Self> {
        match ask.transport {
            Transport::Udp => {
                let any = match ask.server {
                    SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                    SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                };
                let socket = UdpSocket::bind(any)?;
                socket.set_nonblocking(true)?;
                socket.connect(ask.server)?;
                socket.send(&ask.message)?;
                Ok(Self::Datagrams(socket))
            }
            Transport::Tcp => {
                let socket = Socket::new(Domain::for_address(ask.server), Type::STREAM, None)?;
                socket.set_nonblocking(true)?;
                match socket.connect(&ask.server.into()) {
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
                    result => result?,
                }
                let length = u16::try_from(ask.message.len()).map_err(io::Error::other)?.to_be_bytes();
                let unwritten = [&length[..], &ask.message].concat();
                Ok(Self::Stream(Stream { stream: socket.into(), unwritten, received: Vec::new() }))
            }
        }
    }

    /// The next message, if there is one now.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Datagrams(socket) => {
                let mut message = vec![0; LONGEST];
                loop {
                    match socket.recv(&mut message) {
                        Ok(length) => {
                            message.truncate(length);
                            return Ok(Some(message));
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                        Err(error) => return Err(error),
                    }
                }
            }
            Self::Stream(stream) => stream.read(),
        }
    }
}

impl Stream {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        while !self.unwritten.is_empty() {
            match self.stream.write(&self.unwritten) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // ENOTCONN as long as there is no connection.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        let mut chunk = [0; 4096];
        loop {
            // RFC 1035 §4.2.2: two bytes of length before each message.
            if let Some((length, rest)) = self.received.split_first_chunk()
                && let Some(message) = rest.get(..usize::from(u16::from_be_bytes(*length)))
            {
                let message = message.to_vec();
                self.received.drain(..2 + message.len());
                return Ok(Some(message));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
