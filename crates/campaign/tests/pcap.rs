//! Wireshark is the oracle: a link's file dissects as TCP without errors, and its own analysis finds what happened.

use std::fs::File;
use std::process::Command;

use campaign::{Capture, CapturedPacket, Chunk, Segment, Transport};
use clock::Instant;

const DATA: Segment<'static> =
    Segment { seq: 0, ack: Some(0), window: 40_000, sack: &[], syn: false, fin: false, ece: false, cwr: false };

fn tshark(file: &std::path::Path, arguments: &[&str]) -> Vec<String> {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"])
        .args(arguments)
        .output()
        .expect("tshark is needed (see `make need-test`)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Ten packets of 1250 bytes, the fourth lost and sent again; SACK in the acknowledgments.
fn exchange(capture: &mut Capture<File>) {
    let mut now = 0;
    let mut send = |from, to, bytes, transport: Transport<'_>| {
        now += 1_000_001;
        let forward = from == 0;
        let packet = CapturedPacket { from, to, flow: 3, forward, bytes, ecn: if forward { 2 } else { 0 }, transport };
        capture.record(u32::from(!forward), Instant::from_nanos(now), &packet).unwrap();
    };
    let payload = 1250 - 40;
    for number in (0..10).filter(|number| *number != 3) {
        send(0, 1, 1250, Transport::Tcp(Segment { seq: number * payload, ..DATA }));
        let highest = (number + 1) * payload;
        if number < 3 {
            send(1, 0, 40, Transport::Tcp(Segment { ack: Some(highest), ..DATA }));
        } else {
            let sack = [(4 * payload, highest)];
            send(1, 0, 52, Transport::Tcp(Segment { ack: Some(3 * payload), sack: &sack, ..DATA }));
        }
    }
    send(0, 1, 1250, Transport::Tcp(Segment { seq: 3 * payload, ..DATA }));
    send(1, 0, 40, Transport::Tcp(Segment { ack: Some(10 * payload), ..DATA }));
    send(0, 1, 500, Transport::Udp);
}

#[test]
fn wireshark_dissects_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a-b.pcapng");
    let mut capture = Capture::new(File::create(&path).unwrap(), &["a → b", "a ← b"]).unwrap();
    exchange(&mut capture);
    drop(capture);

    assert_eq!(tshark(&path, &["-Y", "tcp"]).len(), 20);
    assert_eq!(tshark(&path, &["-Y", "udp && udp.length == 480"]).len(), 1);
    let errors = "_ws.malformed || _ws.expert.severity >= \"Error\" || ip.checksum.status == \"Bad\"";
    assert_eq!(tshark(&path, &["-Y", errors]), Vec::<String>::new());
    // Wireshark computes the checksum where nothing is left out: in the acknowledgments.
    assert_eq!(tshark(&path, &["-Y", "tcp.checksum.status == \"Good\""]).len(), 10);
    assert_eq!(tshark(&path, &["-Y", "frame.len == 1250 && tcp.len == 1210 && ip.dsfield.ecn == 2"]).len(), 10);
    assert_eq!(tshark(&path, &["-Y", "tcp.options.sack"]).len(), 6);
    // Its analysis finds the one packet sent again, as the fast retransmission it was.
    assert_eq!(tshark(&path, &["-Y", "tcp.analysis.fast_retransmission"]).len(), 1);
    // Nanoseconds from the start of the run, and the link's name.
    let first = tshark(&path, &["-c", "1", "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.interface_name"]);
    assert!(first[0].contains("001000001") && first[0].ends_with("a → b"), "{first:?}");
}

/// The payload that is left out is zeros and counts in the checksum: with it put back, Wireshark agrees.
#[test]
fn checksums_cover_the_payload_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("short.pcapng");
    let mut capture = Capture::new(File::create(&path).unwrap(), &["a → b", "a ← b"]).unwrap();
    exchange(&mut capture);
    drop(capture);

    let mut reader = pcap_file::pcapng::PcapNgReader::new(File::open(&path).unwrap()).unwrap();
    let full = directory.path().join("full.pcapng");
    let mut writer = pcap_file::pcapng::PcapNgWriter::new(File::create(&full).unwrap()).unwrap();
    while let Some(block) = reader.next_block() {
        let mut block = block.unwrap().into_owned();
        if let pcap_file::pcapng::Block::EnhancedPacket(packet) = &mut block {
            packet.data.to_mut().resize(packet.original_len as usize, 0);
        }
        writer.write_block(&block).unwrap();
    }
    assert_eq!(tshark(&full, &["-Y", "tcp.checksum.status == \"Good\" || udp.checksum.status == \"Good\""]).len(), 21);
}

/// SCTP dissects without errors and with right checksums, and Wireshark reads TSNs and gaps as they were meant.
#[test]
fn sctp_reads_as_sctp() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sctp.pcapng");
    let mut capture = Capture::new(File::create(&path).unwrap(), &["a → b", "a ← b"]).unwrap();
    let gaps = [(5, 7), (9, 10)];
    let sack = |non_renegable| Chunk::Sack { next: 3, window: 5_000_000, gaps: &gaps, non_renegable };
    let chunks = [
        (76, Chunk::Heartbeat),
        (76, Chunk::HeartbeatAck),
        (1500, Chunk::Data { tsn: 2, payload: 1452 }),
        (1500, Chunk::Data { tsn: 6, payload: 1452 }),
        (56, sack(false)),
        (60, sack(true)),
    ];
    for (number, (bytes, chunk)) in (1..).zip(chunks) {
        let forward = !matches!(chunk, Chunk::HeartbeatAck | Chunk::Sack { .. });
        let (from, to) = if forward { (0, 1) } else { (1, 0) };
        let transport = Transport::Sctp(chunk);
        let packet = CapturedPacket { from, to, flow: 3, forward, bytes, ecn: 0, transport };
        capture.record(u32::from(!forward), Instant::from_nanos(number * 1_000_000), &packet).unwrap();
    }
    drop(capture);

    let errors = "_ws.malformed || _ws.expert.severity >= \"Error\" || ip.checksum.status == \"Bad\"";
    assert_eq!(tshark(&path, &["-Y", errors]), Vec::<String>::new());
    assert_eq!(tshark(&path, &["-Y", "sctp.data_tsn_raw == 2 || sctp.data_tsn_raw == 6"]).len(), 2);
    let checked = ["-o", "sctp.checksum:CRC 32c", "-Y", "sctp.checksum.status == \"Good\""];
    assert_eq!(tshark(&path, &checked).len(), 6);
    let fields = ["-Y", "sctp.sack_cumulative_tsn_ack_raw", "-T", "fields", "-e", "sctp.sack_gap_block_start"];
    let fields = [&fields[..], &["-e", "sctp.sack_gap_block_end"]].concat();
    // TSNs 5 and 6, and 9, beyond TSN 2.
    assert_eq!(tshark(&path, &fields), ["3,7\t4,7"]);
}
