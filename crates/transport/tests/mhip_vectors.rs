//! The check vectors `mark.*`, `mhip.dup`, `mhip2.1` and `rbuf.*`, computed by an independent program
//! (`vectors/algorithms`). Those of FPF, New Reno, SACK and of the growth of windows are tested where these are: in
//! `scheduler`, `congestion` and `recovery`; `mhip.bdp` with the reference experiment, in `simulator`; `mhip.ff` in `fairness`.

use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use serde_json::Value;
use transport::mhip::{
    Attribution, Generation, Growth, Marking, MhipConfig, MhipSender, PathConfig, ReceiveBuffer, Stored, Windows,
};
use transport::{Blocks, Flags, NO_BLOCKS, Packet};

fn vector(id: &str) -> (Value, Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/algorithms/vectors.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let vector = all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id).unwrap().clone();
    (vector["input"].clone(), vector["output"].clone())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn close(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0), "{ours} is not {theirs}");
}

const RTT: Duration = Duration::from_millis(120);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn mark_1() {
    let (input, output) = vector("mark.1");
    let marking = Marking { part_of_round_trip: 0.25, transmissions: 3.0 };
    let number = |key: &str| input[key].as_f64().unwrap();
    let limit = marking.noticeable(number("base_rtt"), number("S") * 8.0 / number("B"));
    close(limit, 0.03);
    for (observed, congested) in numbers(&input["observed"]).into_iter().zip(output["congested"].as_array().unwrap()) {
        assert_eq!(observed - number("expected_rtt") > limit, congested.as_bool().unwrap());
    }
}

#[test]
fn mhip2_1() {
    let (input, output) = vector("mhip2.1");
    let (cwnd, ssthresh) = (numbers(&input["w"]), numbers(&input["ssthresh"]));
    let pairs: Vec<_> = cwnd.into_iter().zip(ssthresh).collect();
    let mut windows = Windows::new(&pairs, Growth::PerPath, false);
    let addr = Duration::from_secs_f64(input["addr"].as_f64().unwrap());
    let trace = output["trace"].as_array().unwrap();
    let check = |windows: &Windows, step: usize| {
        // The last three entries: windows, thresholds, both sums.
        let [.., cwnd, ssthresh, sums] = trace[step].as_array().unwrap().as_slice() else { panic!() };
        for path in 0..2 {
            close(windows.cwnd(path), numbers(cwnd)[path]);
            close(windows.ssthresh(path), numbers(ssthresh)[path]);
        }
        close(windows.total(), numbers(sums)[0]);
        close(windows.total_ssthresh(), numbers(sums)[1]);
    };
    windows.on_acknowledged(0, RTT, at(0));
    check(&windows, 0);
    windows.on_acknowledged(1, RTT, at(0));
    check(&windows, 1);
    windows.on_missing(0, 1000, at(0) + addr, at(0));
    check(&windows, 2);
    assert_eq!(windows.on_arrived(1000, at(50)), Some(0));
    check(&windows, 3);
    windows.on_missing(1, 1001, at(100) + addr, at(100));
    assert_eq!(windows.on_arrived(1001, at(300)), None);
    check(&windows, 4);
}

#[test]
fn a_reduction_is_taken_back_only_if_nothing_was_missing() {
    let mut windows = Windows::new(&[(40.0, 10.0), (20.0, 10.0)], Growth::PerPath, false);
    windows.on_missing(0, 7, at(100), at(0));
    windows.on_also_missing(0, 9);
    assert_eq!(windows.on_arrived(7, at(50)), None); // 9 may still be lost.
    assert_eq!(windows.cwnd(0), 20.0);
    assert_eq!(windows.on_arrived(9, at(60)), Some(0));
    assert_eq!((windows.cwnd(0), windows.ssthresh(0)), (40.0, 10.0f64.max(20.0)));
    assert_eq!(windows.on_arrived(9, at(60)), None);
}

#[test]
fn rbuf_1() {
    let (input, output) = vector("rbuf.1");
    let mut buffer = ReceiveBuffer::new(input["capacity_pkt"].as_u64().unwrap());
    assert_eq!(buffer.receive(0), Stored::Delivered(1)); // The vector counts from 1.
    let arrivals = input["arrivals"].as_array().unwrap();
    let events = output["events_seq_action_cumack_occupancy"].as_array().unwrap();
    for (arrival, event) in arrivals.iter().zip(events) {
        let action = match buffer.receive(arrival.as_u64().unwrap()) {
            Stored::Delivered(_) => "deliver",
            Stored::Waits => "store",
            Stored::Full => "drop_full",
            Stored::Duplicate => "dup",
        };
        assert_eq!(event[1], action);
        assert_eq!((buffer.next(), buffer.held()), (event[2].as_u64().unwrap(), event[3].as_u64().unwrap()));
    }
}

fn acknowledge(sender: &mut MhipSender, now: Instant, packets: &[Packet]) {
    for packet in packets {
        let ack = Packet { position: packet.position + 1, flags: Flags::ACK, blocks: NO_BLOCKS, ..*packet };
        sender.handle_input(now, &ack, &Blocks::default());
    }
}

/// The acknowledgments of the vector, made of what a sender sent on paths A (0) and B (1).
#[test]
fn mhip_dup() {
    let (input, output) = vector("mhip.dup");
    let expected = [
        (Attribution::AnyPath, output["fires_at_dupack_any"].as_u64().unwrap()),
        (Attribution::SamePath, output["fires_at_dupack_same_path"].as_u64().unwrap()),
    ];
    for (attribution, fires) in expected {
        let delay = Duration::from_millis(60);
        let path = PathConfig { delay, back: delay, rate: 8_000_000 };
        let mut config = MhipConfig::new(Generation::Final, vec![path; 2]);
        config.attribution = attribution;
        config.dupthresh = input["dupthresh"].as_u64().unwrap() as u32;
        let mut sender = MhipSender::new(&Arc::new(config), Rng::from_seed(1));
        let mut now = Instant::ZERO;
        let (mut sent, mut acknowledged) = (Vec::new(), 0);
        sender.start(now);
        // Round trips without loss, until enough is under way on both paths.
        loop {
            while let Some(packet) = sender.poll_transmit(now) {
                sent.push(packet);
            }
            if sent.len() - acknowledged >= 30 {
                break;
            }
            now += delay * 2;
            acknowledge(&mut sender, now, &sent[acknowledged..]);
            acknowledged = sent.len();
        }
        // The hole is the first one outstanding on A; all before it arrive.
        let hole = sent[acknowledged..].iter().position(|packet| packet.path == 0).unwrap() + acknowledged;
        now += delay * 2;
        acknowledge(&mut sender, now, &sent[acknowledged..hole]);
        let missing = sent[hole].position;
        let mut later = sent.split_off(hole + 1);
        let mut fired = None;
        for (number, path) in (1..).zip(input["trigger_paths"].as_array().unwrap()) {
            let path = u8::from(path == "B");
            let trigger = later.remove(later.iter().position(|packet| packet.path == path).unwrap());
            let position = trigger.position;
            let blocks = Blocks::new(1, [(position, position + 1), (0, 0), (0, 0)]).with_trigger(Some(position));
            sender.handle_input(now, &Packet { position: missing, flags: Flags::ACK, ..trigger }, &blocks);
            while let Some(packet) = sender.poll_transmit(now) {
                if packet.position == missing {
                    assert!(packet.flags.has(Flags::RETRANSMISSION));
                    fired.get_or_insert(number);
                }
            }
        }
        assert_eq!(fired, Some(fires), "{attribution:?}");
    }
}
