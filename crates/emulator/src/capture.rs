//! Captures: what a path delivered, as a pcap file that Wireshark opens.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use clock::Instant;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

/// A pcap file with nanosecond timestamps; each packet begins with its IPv4 or IPv6 header (link type 101, `LINKTYPE_RAW`).
pub struct Capture {
    writer: PcapWriter<BufWriter<File>>,
    /// The wall clock at the emulator's instant zero.
    epoch: Duration,
}

impl Capture {
    /// Creates or replaces the file. `epoch` is the time of day at the emulator's instant zero.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, epoch: SystemTime) -> io::Result<Self> {
        let header = PcapHeader {
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(BufWriter::new(File::create(path)?), header).map_err(plain)?;
        let epoch = epoch.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Self { writer, epoch })
    }

    /// Notes that `packet`, an IP packet, was delivered at `at`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record(&mut self, at: Instant, packet: &[u8]) -> io::Result<()> {
        let timestamp = self.epoch + Duration::from_nanos(at.as_nanos());
        let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        self.writer.write_packet(&PcapPacket::new(timestamp, length, packet)).map(drop).map_err(plain)
    }

    /// Writes what is still in memory to the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.writer.into_writer().flush()
    }
}

fn plain(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
