//! Feedback that is forged, replayed or impossible, a peer that gives none any more, paths that carry nothing, clocks that
//! jump: counted, bounded, recovered from.

use crate::common::liar::{Liar, get, set, word};
use crate::common::stream::{Receiver, Sender};
use crate::common::{Spec, World, ms};
use clock::Instant;
use std::collections::BTreeMap;
use wedge::{Counters, Datagram, WedgeEvent};

const SEGMENT: usize = 1380;

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

const SPECS: [(u64, u64); 2] = [(8_000_000, 30), (4_000_000, 30)];

/// A download from a to b, whose reports may be changed.
struct Download {
    world: World,
    sender: Sender,
    receiver: Receiver,
}

impl Download {
    fn new() -> Self {
        let specs = SPECS.map(|(rate, delay)| Spec::new(rate, ms(delay)));
        let mut world = World::configured(&specs, 10500, |config| {
            config.paths.iter_mut().for_each(|path| path.rate = None);
            config.keylog = true;
        });
        world.liar = Some(Liar::new(1));
        let (a, b) = (world.hit(0), world.hit(1));
        Self { sender: Sender::new(a, b, SEGMENT), receiver: Receiver::new(b, a, SEGMENT), world }
    }

    fn run(&mut self, until: u64) {
        self.world.run(at(until), &mut [&mut self.sender, &mut self.receiver]);
    }

    fn lie(&mut self, lie: impl FnMut(&mut Vec<u8>) -> bool + 'static) {
        self.world.liar.as_mut().unwrap().lie = Some(Box::new(lie));
    }

    fn honest(&mut self) {
        self.world.liar.as_mut().unwrap().lie = None;
    }

    fn lies(&self) -> u64 {
        self.world.liar.as_ref().unwrap().lies
    }

    fn counters(&self) -> Counters {
        *self.world.hosts[0].counters()
    }

    /// Of what both paths carry, what arrived between two times.
    fn share(&self, from: u64, to: u64) -> f64 {
        let carried = SPECS.iter().map(|(rate, _)| *rate as f64).sum::<f64>() * SEGMENT as f64 / 1480.0;
        self.receiver.goodput(at(from), at(to)) / carried
    }

    fn deaths(&self) -> usize {
        let died = |event: &&WedgeEvent| matches!(event, WedgeEvent::PathDead { .. });
        self.world.events[0].iter().filter(died).count()
    }
}

type Change = fn(&mut Vec<u8>);

/// What lies cannot do: nothing of a record that makes no sense is taken, and each is counted once.
#[test]
fn records_that_make_no_sense_are_counted_and_not_taken() {
    let lies: [(&str, Change); 8] = [
        ("never sent", |report| {
            let highest = get(report, word::HIGHEST);
            set(report, word::HIGHEST, highest + 100_000);
        }),
        ("the largest number", |report| set(report, word::HIGHEST, u32::MAX)),
        ("number zero", |report| set(report, word::HIGHEST, 0)),
        ("from the future", |report| set(report, word::DELAY, u32::MAX)),
        ("more packets than were sent", |report| set(report, word::PACKETS, u32::MAX)),
        // 36 bytes of a record lie before its first range's length.
        ("a range of all numbers", |report| report[38..40].fill(0xff)),
        ("a range of none", |report| report[38..40].fill(0)),
        ("more ranges than there are", |report| report[36] = 255),
    ];
    for (name, change) in lies {
        let mut download = Download::new();
        download.run(4_000);
        assert_eq!(download.counters().bad_feedback, 0);
        let (before, window) = (download.counters(), window(&download));
        let mut left = 50;
        download.lie(move |report| {
            // Only about one path, and only for some time.
            let lies = left > 0 && report[1] == 1;
            if lies {
                left -= 1;
                change(report);
            }
            lies
        });
        download.run(8_000);
        assert_eq!(download.lies(), 50, "{name}");
        let bad = download.counters().bad_feedback - before.bad_feedback;
        // A range that reaches below the first number makes no report; the others are records.
        let reachable = name == "a range of all numbers";
        assert!(bad == 50 || reachable && bad <= 50, "{name}: {bad}");
        assert!(download.share(5_000, 8_000) > 0.8, "{name}: {}", download.share(5_000, 8_000));
        assert!(windows_are_sane(&download, window), "{name}");
    }
}

fn window(download: &Download) -> u64 {
    let paths = download.world.hosts[0].status(download.world.now).peers.remove(0).paths;
    paths.iter().filter_map(|path| path.measured).map(|measured| measured.cwnd).sum()
}

/// Not more than three times what it was.
fn windows_are_sane(download: &Download, before: u64) -> bool {
    window(download) <= 3 * before + 100_000
}

#[test]
fn reports_about_paths_that_are_not_are_counted() {
    let mut download = Download::new();
    download.run(4_000);
    let mut left = 20;
    download.lie(move |report| {
        let lies = left > 0 && report[1] == 1;
        if lies {
            left -= 1;
            set(report, word::SPI, 0x0bad_0bad);
        }
        lies
    });
    download.run(8_000);
    assert_eq!((download.lies(), download.counters().unknown_feedback), (20, 20));
    assert_eq!(download.counters().bad_feedback, 0);
    assert!(download.share(5_000, 8_000) > 0.8);
}

/// A datagram that comes again is refused by ESP; a report that is told again, in a packet of its own, acknowledges nothing
/// twice.
#[test]
fn replays_change_nothing() {
    let mut download = Download::new();
    download.run(3_000);
    download.world.record = Some(Vec::new());
    download.run(4_000);
    let record = download.world.record.take().unwrap();
    let before = download.counters();
    let mut replayed = 0;
    for (_, transmit) in record.iter().filter(|(from, _)| *from == 1) {
        let route = hip::Route { local: transmit.route.remote, remote: transmit.route.local };
        let datagram = Datagram { route, protocol: transmit.protocol, payload: &transmit.bytes, ecn: transmit.ecn };
        let World { hosts, rngs, now, .. } = &mut download.world;
        hosts[0].handle_network(*now, &mut rngs[0], &[datagram]);
        replayed += 1;
    }
    let after = download.counters();
    // All of a second's but for those of the last tenth, which may be under way.
    assert!(replayed > 100 && after.replayed - before.replayed >= replayed * 9 / 10, "{replayed}");
    download.run(5_000);
    assert!(download.share(4_500, 5_000) > 0.8);
    // The same words again.
    let mut stale: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut left = 100;
    download.lie(move |report| {
        let old = stale.entry(get(report, word::SPI)).or_insert_with(|| report.clone());
        let lies = left > 0 && old != report;
        if lies {
            left -= 1;
            report.clone_from(old);
        }
        lies
    });
    download.run(15_000);
    assert_eq!(download.lies(), 100);
    assert_eq!(download.counters().bad_feedback, 0);
    let paths = download.world.hosts[0].status(download.world.now).peers.remove(0).paths;
    for path in paths {
        let measured = path.measured.unwrap();
        assert!(measured.delivered <= path.packets_out, "{path:?}");
    }
    assert!(download.share(10_000, 15_000) > 0.8, "{}", download.share(10_000, 15_000));
}

/// CE that no network has set costs what CE costs: a reduction in a round trip.
#[test]
fn a_peer_that_cries_congestion_only_slows_itself() {
    let mut download = Download::new();
    download.run(4_000);
    download.lie(|report| {
        let packets = get(report, word::PACKETS);
        set(report, word::CE, packets);
        true
    });
    download.run(8_000);
    let paths = download.world.hosts[0].status(download.world.now).peers.remove(0).paths;
    for path in &paths {
        let measured = path.measured.unwrap();
        assert!(measured.ce > 0 && measured.ce <= measured.delivered, "{path:?}");
        assert!(measured.cwnd >= 1_500, "{path:?}");
    }
    assert!(download.share(6_000, 8_000) < 0.7);
    download.honest();
    download.run(30_000);
    assert!(download.share(25_000, 30_000) > 0.8, "{}", download.share(25_000, 30_000));
}

/// All others keep what they have: heartbeats say that the paths are there, so something is still sent, little, and
/// everything comes back with the reports.
#[test]
fn a_peer_that_stops_feeding_back_is_still_reached() {
    let mut download = Download::new();
    download.run(4_000);
    download.lie(|report| {
        report.truncate(4);
        report[1] = 0;
        true
    });
    let count = |download: &Download| download.counters().network_out;
    download.run(6_000);
    let before = count(&download);
    download.run(14_000);
    let rate = (count(&download) - before) as f64 / 8.0;
    // A first window per path and attempt, and heartbeats.
    assert!(rate < 400.0, "{rate} packets a second");
    assert!(download.share(6_000, 14_000) > 0.005, "{}", download.share(6_000, 14_000));
    assert_eq!(download.counters().bad_feedback, 0);
    download.honest();
    download.run(30_000);
    assert!(download.share(18_000, 30_000) > 0.8, "{}", download.share(18_000, 30_000));
}

/// Nothing is carried any more: what is sent into that becomes little, and it ends when that ends.
#[test]
fn all_paths_at_rate_zero_are_only_probed_and_come_back() {
    let mut download = Download::new();
    download.run(4_000);
    let all = |download: &mut Download, up: bool| {
        let now = download.world.now;
        download.world.links.iter_mut().flatten().for_each(|link| link.set_up(now, up));
    };
    all(&mut download, false);
    download.run(6_000);
    let before = download.counters().network_out;
    download.run(12_000);
    let rate = (download.counters().network_out - before) as f64 / 6.0;
    // Two heartbeats a second on each of two paths, and as many tries.
    assert!(rate <= 40.0, "{rate} packets a second into nothing");
    let status = download.world.hosts[0].status(download.world.now).peers.remove(0);
    assert!(status.paths.iter().all(|path| !path.alive));
    all(&mut download, true);
    download.run(20_000);
    assert!(download.share(15_000, 20_000) > 0.8, "{}", download.share(15_000, 20_000));
}

/// A machine that slept has measured nothing and lost nothing but what arrived meanwhile.
#[test]
fn a_clock_that_jumps_is_noticed_and_measures_nothing() {
    for side in 0..2 {
        for jump in [2_000, 60_000, 3_600_000] {
            let mut download = Download::new();
            download.run(4_000);
            let deaths = download.deaths();
            download.world.ahead[side] = ms(jump);
            download.run(4_500);
            let counters = download.world.hosts[side].counters();
            assert_eq!(counters.clock_jumps, 1, "{side} {jump}");
            download.run(8_000);
            let paths = download.world.hosts[side].status(download.world.now).peers.remove(0).paths;
            assert!(paths.iter().all(|path| path.alive && path.srtt_ms.unwrap() < 400.0), "{paths:?}");
            assert_eq!(download.deaths(), deaths, "{side} {jump}");
            let share = download.share(5_000, 8_000);
            assert!(share > 0.8, "{side} {jump}: {share}");
        }
    }
}

/// RFC 9000 §21.4: who acknowledges what it cannot have received loses the association before it has had much by it, and who
/// tells the truth never does.
#[test]
fn a_peer_that_invents_acknowledgments_loses_the_association() {
    let mut download = Download::new();
    download.run(3_000);
    assert_eq!(download.counters().invented_acknowledgments, 0);
    let before =
        download.world.hosts[0].status(at(3_000)).peers[0].paths.iter().map(|path| path.packets_out).sum::<u64>();
    download.lie(|report| {
        let highest = get(report, word::HIGHEST);
        if highest < 2 {
            return false;
        }
        // One record, one range: all up to the highest has arrived.
        report.truncate(4 + 8 * 4);
        report[1] = 1;
        report.extend([1, 0]);
        report.extend((highest.min(60_000) as u16).to_be_bytes());
        true
    });
    let ended = |events: &[WedgeEvent]| {
        events.iter().any(|event| matches!(event, WedgeEvent::Closed { reason, .. } if reason.contains("never sent")))
    };
    let mut until = 3_000;
    while !ended(&download.world.events[0]) && until < 13_000 {
        until += 10;
        download.run(until);
    }
    assert!(ended(&download.world.events[0]), "{:?}", download.counters());
    assert_eq!(download.counters().invented_acknowledgments, 1);
    // One number in 256 is skipped, and thousands were sent before: the first report that covers one shows it.
    let status = download.world.hosts[0].status(at(until));
    let after = status.peers[0].paths.iter().map(|path| path.packets_out).sum::<u64>();
    assert!(after.saturating_sub(before) < 2_000 && until < 3_500, "{until} ms, {after} packets after {before}");
}
