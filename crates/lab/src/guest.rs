//! Programs that are no part of the laboratory: what one has to tell and to do, to download in place of the main flow's TCP.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use clock::Instant;
use multipath::Ecn;

use crate::Program;

/// One end of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one with the file.
    Server,
    /// The one that asks for it.
    Client,
}

/// A program that downloads over UDP, for [`run_with`](crate::run_with).
pub trait Guest {
    /// The name of what it sends by, as reports have it.
    fn congestion(&self) -> String;

    /// A download of so many bytes between two hosts in virtual time; the addresses are those of server and client. The same
    /// seed makes the same one.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    fn download(&self, ends: [SocketAddr; 2], bytes: u64, seed: u64) -> Result<Box<dyn Conversation>, String>;

    /// The program that serves a file between kernels. It makes the file `ready` once it answers, with what clients have to know.
    fn server(&self, file: &Path, port: u16, ready: &Path) -> Program;

    /// The program that fetches this file into `copy`. It writes what has arrived as it comes, and at the end prints the seconds from its
    /// start to the first byte and to the last.
    fn client(&self, from: &Served<'_>, copy: &Path, patience: Duration) -> Program;
}

/// Where a file is served between kernels.
#[derive(Clone, Copy, Debug)]
pub struct Served<'a> {
    /// A name or an address.
    pub host: &'a str,
    /// The port of UDP.
    pub port: u16,
    /// What the server tells its clients.
    pub ready: &'a Path,
}

/// A download in virtual time: both of its ends, without a socket and without a clock.
pub trait Conversation {
    /// A datagram has arrived at an end, with this mark.
    fn handle_datagram(&mut self, now: Instant, end: End, payload: &[u8], ecn: Ecn);

    /// Does what is due by now. The first call opens the connection.
    fn handle_timeout(&mut self, now: Instant);

    /// The next datagram with its mark, and the end that sends it.
    fn poll_transmit(&mut self, now: Instant) -> Option<(End, Vec<u8>, Ecn)>;

    /// When [`Conversation::handle_timeout`] is to be called; later than `now` after it was.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Bytes that the client's program got, in order.
    fn arrived(&self) -> u64;

    /// Whether these are all.
    fn is_complete(&self) -> bool;

    /// Whether they are those that the server's program sent.
    fn is_intact(&self) -> bool;
}
