//! Flows with labels: most of their headers go in short, in both directions, and arrive as they were.

use crate::common;
use crate::common::stream::{Receiver, Sender};
use crate::common::{Mailbox, Spec, World, ms, udp_v6};
use clock::Instant;

const SEGMENT: usize = 1380;

fn at(ms: u64) -> Instant {
    Instant::ZERO + common::ms(ms)
}

/// A download that many packets of are lost, on two paths: what is sent again goes in short, too.
#[test]
fn a_download_goes_with_headers_in_short() {
    let specs = [Spec { loss: 0.02, ..Spec::new(8_000_000, ms(20)) }, Spec::new(4_000_000, ms(30))];
    let mut world = World::new(&specs);
    let (a, b) = (world.hit(0), world.hit(1));
    let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
    world.run(at(10_000), &mut [&mut sender, &mut receiver]);
    let goodput = receiver.goodput(at(2_000), at(10_000));
    assert!(goodput > 3e6, "{goodput}");
    for host in &world.hosts {
        let counters = host.counters();
        assert_eq!((counters.unknown_labels, counters.bad_feedback, counters.bad_payload), (0, 0, 0));
        let programs = counters.application_in + counters.repaired;
        // Acknowledgments with blocks go whole.
        assert!(counters.shortened * 10 > programs * 8, "{} of {programs}", counters.shortened);
    }
}

/// Packets of a call, one by one: each is delivered with the bytes that it had.
#[test]
fn what_arrives_is_what_was_sent() {
    let mut world = World::new(&[Spec::new(8_000_000, ms(20))]);
    let (a, b) = (world.hit(0), world.hit(1));
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    let mut sent = Vec::new();
    for number in 0..200_u8 {
        let packet = udp_v6(a, b, (4000, 7), &vec![number; usize::from(number)]);
        boxes[0].to_send.push(packet.clone());
        sent.push(packet);
        let [left, right] = &mut boxes;
        world.run(at(3_000 + 20 * u64::from(number)), &mut [left, right]);
    }
    let [left, right] = &mut boxes;
    world.run(at(8_000), &mut [left, right]);
    let received: Vec<Vec<u8>> = boxes[1].received.iter().map(|(_, packet)| packet.clone()).collect();
    assert!(received == sent, "{} of {}", received.len(), sent.len());
    assert!(world.hosts[0].counters().shortened > 150, "{}", world.hosts[0].counters().shortened);
}

/// The announcement of a label is lost at first: headers go whole, and there is another.
#[test]
fn a_label_that_is_lost_is_told_again() {
    for from in [200, 250, 300, 350, 400] {
        let mut world = World::new(&[Spec::new(8_000_000, ms(20))]);
        let (a, b) = (world.hit(0), world.hit(1));
        let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
        world.run(at(from), &mut [&mut sender, &mut receiver]);
        // All that the receiver says is lost for a while.
        world.links[0][1].set_up(at(from), false);
        world.run(at(from + 300), &mut [&mut sender, &mut receiver]);
        world.links[0][1].set_up(at(from + 300), true);
        world.run(at(8_000), &mut [&mut sender, &mut receiver]);
        assert!(world.hosts[0].counters().shortened > 2_000, "{from}: {}", world.hosts[0].counters().shortened);
        assert_eq!(world.hosts[1].counters().unknown_labels, 0);
    }
}

/// ESP's next headers from 148 on say that a numbered packet of TCP or UDP follows; a program's packet of such a protocol is none.
#[test]
fn packets_of_any_protocol_arrive_as_they_were() {
    let mut world = World::new(&[Spec::new(8_000_000, ms(20))]);
    let (a, b) = (world.hit(0), world.hit(1));
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    // Neither what is read as a HIP packet's or an extension header, nor ICMP, which has to be right.
    let protocols = (100..=254_u8).filter(|protocol| !matches!(protocol, 135 | 139 | 140));
    let packets = protocols
        .map(|protocol| wire::ip::packet(a.address().into(), b.address().into(), protocol, &[1, 2, 3, 4]).unwrap());
    let sent: Vec<Vec<u8>> = packets.collect();
    let [left, right] = &mut boxes;
    world.run(at(1_000), &mut [left, right]);
    for (number, packet) in (0..).zip(&sent) {
        boxes[0].to_send.push(packet.clone());
        let [left, right] = &mut boxes;
        world.run(at(1_000 + 20 * number), &mut [left, right]);
    }
    let [left, right] = &mut boxes;
    world.run(at(8_000), &mut [left, right]);
    let received: Vec<Vec<u8>> = boxes[1].received.iter().map(|(_, packet)| packet.clone()).collect();
    assert!(received == sent, "{} of {}", received.len(), sent.len());
}
