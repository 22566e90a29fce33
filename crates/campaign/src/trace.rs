//! Looks on while a run goes, and writes down what every link delivers.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clock::Instant;
use transport::{Flags, Packet};

use crate::files::{StoreError, directory};
use crate::pcap::{Capture, CapturedPacket, Segment, Transport};
use crate::sctp_wire::Chunk;

/// What the headers of a flow's packets need to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowEnds {
    /// Number of the sending node.
    pub(crate) from: u32,
    /// Number of the receiving node.
    pub(crate) to: u32,
    /// Payload of a full packet in bytes; `None` for UDP.
    pub(crate) mss: Option<u32>,
    /// Receiver window in bytes.
    pub(crate) window: u64,
    /// It is SCTP.
    pub(crate) sctp: bool,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct TracedLink {
    /// The link's name in the scenario: both directions share a file.
    pub(crate) link: String,
    /// The direction's name.
    pub(crate) direction: String,
}

/// The captures of one run, in a hidden directory until they are complete.
pub(crate) struct Tracer {
    unfinished: tempfile::TempDir,
    files: Vec<Capture<BufWriter<File>>>,
    names: Vec<String>,
    /// File and interface of each directed link of the simulation.
    places: Vec<(usize, u32)>,
    flows: Vec<FlowEnds>,
    /// Per flow and file: whether the SYN was answered already.
    answered: Vec<bool>,
    error: Option<io::Error>,
}

impl Tracer {
    /// Begins a file per link in a directory beside `target`. `links` are the directed links in the order of the result.
    pub(crate) fn new(target: &Path, links: &[TracedLink], flows: Vec<FlowEnds>) -> Result<Self, StoreError> {
        let parent = target.parent().unwrap_or_else(|| Path::new("."));
        let failed = |error| StoreError::write(target, error);
        let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(parent).map_err(failed)?;
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        let mut places = Vec::new();
        for link in links {
            let name = file_name(&link.link);
            let known = groups.iter().position(|(group, _)| *group == name);
            let place = known.unwrap_or_else(|| {
                groups.push((name, Vec::new()));
                groups.len() - 1
            });
            if let Some((_, interfaces)) = groups.get_mut(place) {
                places.push((place, interfaces.len() as u32));
                interfaces.push(&link.direction);
            }
        }
        let mut files = Vec::new();
        for (name, interfaces) in &groups {
            let file = File::create(unfinished.path().join(name)).map_err(failed)?;
            files.push(Capture::new(BufWriter::new(file), interfaces).map_err(failed)?);
        }
        let answered = vec![false; flows.len() * files.len()];
        let names = groups.into_iter().map(|(name, _)| name).collect();
        Ok(Self { unfinished, files, names, places, flows, answered, error: None })
    }

    /// Gives the captures their name, and tells where they are.
    pub(crate) fn finish(self, target: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let failed = |error| StoreError::write(target, error);
        if let Some(error) = self.error {
            return Err(failed(error));
        }
        for file in self.files {
            let mut writer = file.into_inner();
            writer.flush().and_then(|()| writer.get_ref().sync_all()).map_err(failed)?;
        }
        if target.exists() {
            fs::remove_dir_all(target).map_err(failed)?;
        }
        if let Some(parent) = target.parent() {
            directory(parent)?;
        }
        fs::rename(self.unfinished.path(), target).map_err(failed)?;
        // Nothing is left at the old place to be removed.
        let _ = self.unfinished.keep();
        Ok(self.names.iter().map(|name| target.join(name)).collect())
    }

    /// Writes down that `link` delivered `packet`, with these selective blocks.
    pub(crate) fn delivered(&mut self, now: Instant, link: u32, packet: &Packet, blocks: &[(u32, u32)]) {
        if self.error.is_none() {
            self.error = self.record(now, link, packet, blocks).err();
        }
    }

    fn record(&mut self, now: Instant, link: u32, packet: &Packet, blocks: &[(u32, u32)]) -> io::Result<()> {
        let Some(&(place, interface)) = self.places.get(link as usize) else { return Ok(()) };
        let Some(&ends) = self.flows.get(packet.flow as usize) else { return Ok(()) };
        let is_ack = packet.flags.has(Flags::ACK);
        let mut sack = [(0, 0); MOST_BLOCKS];
        let transport = match ends.mss {
            None => Transport::Udp,
            Some(mss) if ends.sctp => Transport::Sctp(chunk(packet, mss, ends.window, blocks)),
            Some(mss) => {
                for (slot, &(left, right)) in sack.iter_mut().zip(blocks) {
                    *slot = (byte(left, mss), byte(right, mss));
                }
                let sack = sack.get(..blocks.len().min(MOST_BLOCKS)).unwrap_or_default();
                let answered = self.answered.get_mut(packet.flow as usize * self.files.len() + place);
                let header = segment(packet, mss, answered);
                Transport::Tcp(Segment { window: ends.window, sack, ..header })
            }
        };
        let (from, to) = if is_ack { (ends.to, ends.from) } else { (ends.from, ends.to) };
        let ecn = match (packet.flags.has(Flags::MARKED), packet.flags.has(Flags::ECN_CAPABLE)) {
            (true, _) => 3,
            (false, true) => 2,
            (false, false) => 0,
        };
        let captured =
            CapturedPacket { from, to, flow: packet.flow, forward: !is_ack, bytes: packet.bytes, ecn, transport };
        self.files.get_mut(place).map_or(Ok(()), |file| file.record(interface, now, &captured))
    }
}

/// Most blocks that a header has room for.
const MOST_BLOCKS: usize = 4;

/// The sequence number at which the packet at `position` begins. Position 0 is the SYN with number 0; position n, the n-th
/// packet of data, begins at byte 1 + (n − 1)·mss. Positions are cut to 32 bits, so the number is right modulo 2³², which is
/// all that a header holds.
fn byte(position: u32, mss: u32) -> u64 {
    position.checked_sub(1).map_or(0, |n| u64::from(n.wrapping_mul(mss).wrapping_add(1)))
}

/// The TCP header of a packet, still without window and selective blocks.
fn segment(packet: &Packet, mss: u32, answered: Option<&mut bool>) -> Segment<'static> {
    let empty = Segment { seq: 1, ack: None, window: 0, sack: &[], syn: false, fin: false, ece: false, cwr: false };
    if packet.flags.has(Flags::ACK) {
        // The first answer to the SYN is the peer's own SYN; later ones that still wait for the first data are not.
        let syn = answered.is_some_and(|answered| packet.position == 1 && !std::mem::replace(answered, true));
        let ece = packet.flags.has(Flags::ECHO);
        return Segment { seq: u64::from(!syn), ack: Some(byte(packet.position, mss)), ece, syn, ..empty };
    }
    if packet.position == 0 {
        return Segment { seq: 0, syn: true, ..empty };
    }
    Segment { seq: byte(packet.position, mss), ack: Some(1), cwr: packet.flags.has(Flags::REDUCED), ..empty }
}

/// The chunk of a packet of SCTP.
fn chunk<'a>(packet: &Packet, payload: u32, window: u64, gaps: &'a [(u32, u32)]) -> Chunk<'a> {
    /// IPv4 header, common header, and the chunk of a heartbeat.
    const HEARTBEAT: u32 = 20 + 12 + 44;
    let heartbeat = packet.bytes == HEARTBEAT && gaps.is_empty();
    match packet.flags.has(Flags::ACK) {
        false if packet.position == 0 && heartbeat => Chunk::Heartbeat,
        false => Chunk::Data { tsn: packet.position, payload: payload.min(u32::from(u16::MAX) - 16) as u16 },
        true if heartbeat => Chunk::HeartbeatAck,
        true => Chunk::Sack {
            next: packet.position,
            window: window.min(u32::MAX.into()) as u32,
            gaps,
            non_renegable: packet.bytes as usize == 20 + 12 + 20 + 4 * gaps.len(),
        },
    }
}

/// A name that every file system takes.
fn file_name(link: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.+ ".contains(c) { c } else { '_' };
    let name: String = link.chars().map(plain).take(100).collect();
    format!("{}.pcapng", name.trim_start_matches('.'))
}
