//! Both ends of a download, without a socket: what quinn's state machines say to each other, and what the programs around them do.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant as Std};

use bytes::{Bytes, BytesMut};
use clock::Instant;
use lab::{Conversation, Ecn, End};
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, Event, StreamEvent, StreamId, Transmit,
};

use crate::Congestion;
use crate::tls::{self, NAME};

/// What quinn's own loop hands to the system at once.
const DATAGRAMS: usize = 10;
/// What the server's program writes at once, in bytes.
const BLOCK: usize = 64 * 1024;
/// What the file repeats: no part of a packet.
const PERIOD: u64 = 251;

/// A download.
pub(crate) struct Download {
    ends: [Side; 2],
    addresses: [SocketAddr; 2],
    /// Virtual time zero, on the clock that quinn's times are of.
    zero: Std,
    client: Option<quinn_proto::ClientConfig>,
    /// Bytes of the file, those that the server's program has written, and those that the client's has read.
    size: u64,
    written: u64,
    read: u64,
    is_intact: bool,
    is_complete: bool,
    block: Bytes,
    due: Option<Instant>,
}

/// An end.
struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    outgoing: VecDeque<(Vec<u8>, Ecn)>,
}

impl Download {
    /// Of a file of so many bytes; the addresses are those of server and client.
    pub(crate) fn new(
        congestion: Congestion,
        addresses: [SocketAddr; 2],
        size: u64,
        seed: u64,
    ) -> Result<Self, String> {
        let (server, certificate) = tls::server(congestion)?;
        let client = tls::client(congestion, certificate)?;
        let side = |end: u8, server| Side {
            endpoint: Endpoint::new(tls::endpoint(seed, end), server, true, None),
            connection: None,
            stream: None,
            outgoing: VecDeque::new(),
        };
        // Only differences count: any moment would do, and there is no other way to get one.
        #[expect(clippy::disallowed_methods, reason = "times of quinn are of the system's clock")]
        let zero = Std::now();
        let block: Vec<u8> = (0..BLOCK as u64 + PERIOD).map(|at| (at % PERIOD) as u8).collect();
        Ok(Self {
            ends: [side(0, Some(Arc::new(server))), side(1, None)],
            addresses,
            zero,
            client: Some(client),
            size,
            written: 0,
            read: 0,
            is_intact: true,
            is_complete: false,
            block: block.into(),
            due: Some(Instant::ZERO),
        })
    }

    fn time(&self, now: Instant) -> Std {
        self.zero + Duration::from_nanos(now.as_nanos())
    }

    /// Lets both ends and their programs do what they can, until nothing more comes of it.
    fn drive(&mut self, now: Instant) {
        let time = self.time(now);
        let mut due = None;
        for index in 0..2 {
            self.programs(index);
            let Some(side) = self.ends.get_mut(index) else { continue };
            side.transmit(time);
            due = [due, side.due()].into_iter().flatten().min();
        }
        let zero = self.zero;
        self.due = due.map(|due| Instant::from_nanos(due.saturating_duration_since(zero).as_nanos() as u64));
    }

    /// What the connection of an end tells its program, and what that does.
    fn programs(&mut self, index: usize) {
        let Some(side) = self.ends.get_mut(index) else { return };
        let Some((_, connection)) = &mut side.connection else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if index == 1 => {
                    side.stream = connection.streams().open(Dir::Bi);
                    if let Some(stream) = side.stream {
                        // A word fits any window.
                        let _ = connection.send_stream(stream).write(b"file");
                        let _ = connection.send_stream(stream).finish();
                    }
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    side.stream = side.stream.or(connection.streams().accept(Dir::Bi));
                }
                Event::ConnectionLost { .. } => self.is_intact = false,
                _ => {}
            }
        }
        let Some(stream) = side.stream else { return };
        if index == 0 {
            let mut sending = connection.send_stream(stream);
            while self.written < self.size {
                let start = (self.written % PERIOD) as usize;
                let length = usize::try_from(self.size - self.written).unwrap_or(BLOCK).min(BLOCK);
                let mut chunk = [self.block.slice(start..start + length)];
                match sending.write_chunks(&mut chunk) {
                    Ok(written) if written.bytes > 0 => self.written += written.bytes as u64,
                    _ => return,
                }
                if self.written == self.size {
                    let _ = sending.finish();
                }
            }
            return;
        }
        let mut receiving = connection.recv_stream(stream);
        let Ok(mut chunks) = receiving.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let start = (self.read % PERIOD) as usize;
                    let is_right = |(at, byte): (usize, &u8)| u64::from(*byte) == (start + at) as u64 % PERIOD;
                    self.is_intact &= chunk.bytes.iter().enumerate().all(is_right);
                    self.read += chunk.bytes.len() as u64;
                }
                Ok(None) => {
                    self.is_complete = self.read == self.size;
                    break;
                }
                Err(_) => break,
            }
        }
        // What follows from it is asked for in any case.
        let _ = chunks.finalize();
    }
}

impl Conversation for Download {
    fn handle_datagram(&mut self, now: Instant, end: End, payload: &[u8], ecn: Ecn) {
        let time = self.time(now);
        let index = if end == End::Server { 0 } else { 1 };
        let from = if end == End::Server { self.addresses[1] } else { self.addresses[0] };
        if let Some(side) = self.ends.get_mut(index) {
            side.receive(time, from, payload, ecn);
        }
        self.drive(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let time = self.time(now);
        if let Some(config) = self.client.take() {
            let [server, side] = [self.addresses[0], self.addresses[1]];
            debug_assert_ne!(server, side);
            let [_, client] = &mut self.ends;
            // It is refused only where the name or the configuration is none.
            client.connection = client.endpoint.connect(time, config, server, NAME).ok();
        }
        for side in &mut self.ends {
            if side.due().is_some_and(|due| due <= time)
                && let Some((_, connection)) = &mut side.connection
            {
                connection.handle_timeout(time);
            }
        }
        self.drive(now);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(End, Vec<u8>, Ecn)> {
        let [server, client] = &mut self.ends;
        let sent = server.outgoing.pop_front().map(|(payload, ecn)| (End::Server, payload, ecn));
        sent.or_else(|| client.outgoing.pop_front().map(|(payload, ecn)| (End::Client, payload, ecn)))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    fn arrived(&self) -> u64 {
        self.read
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn is_intact(&self) -> bool {
        self.is_intact
    }
}

impl Side {
    fn receive(&mut self, now: Std, from: SocketAddr, payload: &[u8], ecn: Ecn) {
        let mut buffer = Vec::new();
        let ecn = EcnCodepoint::from_bits(ecn.bits());
        match self.endpoint.handle(now, from, None, ecn, BytesMut::from(payload), &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self.endpoint.accept(incoming, now, &mut buffer, None).ok();
            }
            Some(DatagramEvent::Response(transmit)) => self.split(&transmit, &buffer),
            Some(DatagramEvent::NewConnection(_)) | None => {}
        }
    }

    /// Puts what the connection has to send among what leaves.
    fn transmit(&mut self, now: Std) {
        loop {
            let Some((handle, connection)) = &mut self.connection else { return };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            let mut buffer = Vec::new();
            let Some(transmit) = connection.poll_transmit(now, DATAGRAMS, &mut buffer) else { return };
            self.split(&transmit, &buffer);
        }
    }

    /// The datagrams of a train.
    fn split(&mut self, transmit: &Transmit, buffer: &[u8]) {
        let bytes = buffer.get(..transmit.size).unwrap_or_default();
        let length = transmit.segment_size.unwrap_or(transmit.size).max(1);
        let ecn = transmit.ecn.map_or(Ecn::NotEct, |ecn| Ecn::of(ecn as u8));
        self.outgoing.extend(bytes.chunks(length).map(|bytes| (bytes.to_vec(), ecn)));
    }

    fn due(&mut self) -> Option<Std> {
        self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
    }
}
