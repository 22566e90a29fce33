//! From the state of a run to its [`RunResult`].

use clock::{Duration, Histogram, Instant};
use link::LinkStatistics;
use transport::mhip::{PathArrivals, PathStatus};

use crate::result::{
    Distribution, FlowResult, FlowSample, LinkResult, LinkSample, PathResult, PathSample, RunResult, Sample,
};
use crate::simulation::{FlowSlot, LinkInfo, LinkSlot, PathSlot, ReceiverSlot, SenderSlot, Simulation, path_states};

/// The result of a run that has ended.
pub(crate) fn report(simulation: &mut Simulation) -> RunResult {
    let end = simulation.end;
    for slot in &mut simulation.links {
        slot.link.observe(end);
    }
    let links: Vec<LinkResult> = simulation
        .links
        .iter()
        .zip(&simulation.link_infos)
        .map(|(slot, info)| link(slot, info, end - simulation.warm_up))
        .collect();
    let flows = simulation.flows.iter().zip(&simulation.senders).zip(&simulation.receivers);
    let flows = flows.map(|((slot, sender), receiver)| {
        let known = simulation.stations.path_states(end, slot.inside);
        flow(slot, sender, receiver, &known.unwrap_or_else(|| path_states(sender, receiver)), end)
    });
    RunResult {
        seed: simulation.seed,
        virtual_s: end.as_secs_f64(),
        cpu_s: 0.0,
        packets: links.iter().map(|link| link.delivered).sum(),
        events: simulation.events,
        digest: simulation.digest,
        flows: flows.collect(),
        links,
        series: std::mem::take(&mut simulation.series),
    }
}

/// The state of a run under way.
pub(crate) fn sample(simulation: &Simulation, only: Option<&[usize]>) -> Sample {
    let one = |index: usize| {
        let both = simulation.senders.get(index).zip(simulation.receivers.get(index));
        both.zip(simulation.flows.get(index))
    };
    let indices = only.map_or_else(|| (0..simulation.flows.len()).collect(), <[usize]>::to_vec);
    Sample {
        time_s: simulation.now.as_secs_f64(),
        flows: indices
            .into_iter()
            .filter_map(one)
            .map(|((sender, receiver), flow)| {
                let (cwnd, ssthresh, flight, srtt) = sender.sender.state();
                FlowSample {
                    cwnd,
                    ssthresh,
                    flight,
                    srtt_ms: srtt.as_secs_f64() * 1e3,
                    delivered_bytes: payload(flow, receiver.receiver.delivered()),
                    retransmissions: sender.sender.counters().retransmissions,
                    arrived_bytes: receiver.receiver.statistics().bytes,
                    paths: path_samples(
                        &simulation
                            .stations
                            .path_states(simulation.now, flow.inside)
                            .unwrap_or_else(|| path_states(sender, receiver)),
                    ),
                }
            })
            .collect(),
        links: simulation
            .links
            .iter()
            .map(|slot| LinkSample {
                queue: u64::from(slot.link.waiting_packets()),
                delivered_bytes: slot.link.statistics().delivered.bytes,
                drops: slot.link.statistics().dropped().packets,
            })
            .collect(),
    }
}

fn path_samples(paths: &[(PathStatus, PathArrivals)]) -> Vec<PathSample> {
    let sample = |(path, arrivals): &(PathStatus, PathArrivals)| PathSample {
        cwnd: path.cwnd,
        ssthresh: path.ssthresh,
        flight: path.flight,
        srtt_ms: path.srtt.as_secs_f64() * 1e3,
        open: path.open,
        arrived_bytes: arrivals.bytes,
        sent: path.counters.sent,
    };
    paths.iter().map(sample).collect()
}

fn paths(slot: &FlowSlot, known: &[(PathStatus, PathArrivals)], seconds: f64) -> Vec<PathResult> {
    let per_second = |value: f64| if seconds > 0.0 { value / seconds } else { 0.0 };
    let mbps = |bytes: u64| per_second(bytes as f64 * 8.0 / 1e6);
    let payload = slot.payload;
    let result = |((path, arrivals), slot): (&(PathStatus, PathArrivals), &PathSlot)| {
        let (sent, sent_before) = (&path.counters, &slot.before.sender);
        let before = &slot.before.receiver;
        let delivered = arrivals.new - before.new;
        PathResult {
            goodput_mbps: mbps(delivered * u64::from(payload)),
            throughput_mbps: mbps(arrivals.bytes - before.bytes),
            delivered,
            sent: sent.sent - sent_before.sent,
            retransmissions: sent.retransmissions - sent_before.retransmissions,
            losses: slot.losses - slot.before.losses,
            reductions: sent.reductions - sent_before.reductions,
            undone: sent.undone - sent_before.undone,
            reordered: arrivals.reordered - before.reordered,
            refused: arrivals.refused - before.refused,
            closings: sent.closings - sent_before.closings,
            probes: sent.probes - sent_before.probes,
            mean_cwnd: per_second(sent.cwnd_seconds - sent_before.cwnd_seconds),
            srtt_ms: path.srtt.as_secs_f64() * 1e3,
        }
    };
    known.iter().zip(&slot.paths).map(result).collect()
}

/// The payload of so many packets in order: of the last one only what there was to send.
fn payload(flow: &FlowSlot, packets: u64) -> u64 {
    let bytes = packets * u64::from(flow.payload);
    flow.data.map_or(bytes, |data| bytes.min(data))
}

fn flow(
    slot: &FlowSlot,
    sender: &SenderSlot,
    receiver: &ReceiverSlot,
    known: &[(PathStatus, PathArrivals)],
    end: Instant,
) -> FlowResult {
    let ended = slot.finished.unwrap_or(end);
    let seconds = (ended - slot.from).as_secs_f64();
    let mbps = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 };
    let (sent, arrived, before) = (sender.sender.counters(), receiver.receiver.statistics(), &slot.before);
    let delivered = receiver.receiver.delivered();
    let bytes = payload(slot, delivered) - payload(slot, before.delivered);
    let delivered = delivered - before.delivered;
    FlowResult {
        name: slot.name.clone(),
        goodput_mbps: mbps(bytes),
        goodput_wire_mbps: mbps(bytes + delivered * u64::from(slot.headers)),
        throughput_mbps: mbps(arrived.bytes - before.receiver.bytes),
        start_s: slot.start.as_secs_f64(),
        end_s: ended.as_secs_f64(),
        completed: slot.finished.is_some(),
        delivered,
        sent: sent.sent - before.sender.sent,
        retransmissions: sent.retransmissions - before.sender.retransmissions,
        losses: slot.losses - before.losses,
        timeouts: sent.timeouts - before.sender.timeouts,
        reductions: sent.reductions - before.sender.reductions,
        reordered: arrived.reordered - before.receiver.reordered,
        duplicates: arrived.duplicates - before.receiver.duplicates,
        marked: arrived.marked - before.receiver.marked,
        rtt: sender.sender.rtt().map_or_else(Distribution::default, |rtt| distribution(rtt, 1e-6)),
        mean_cwnd: if ended > slot.from { sender.sender.mean_cwnd(ended) } else { 0.0 },
        undone: sent.undone - before.sender.undone,
        most_held: receiver.receiver.most_held(),
        paths: paths(slot, known, seconds),
    }
}

fn link(slot: &LinkSlot, info: &LinkInfo, time: Duration) -> LinkResult {
    let (now, before) = (slot.link.statistics(), &info.before);
    let seconds = time.as_secs_f64();
    let lost = |statistics: &LinkStatistics| {
        let [loss, outage, too_big] =
            [&statistics.dropped_loss, &statistics.dropped_outage, &statistics.dropped_too_big];
        loss.packets + outage.packets + too_big.packets
    };
    let refused = |statistics: &LinkStatistics| statistics.dropped_full.packets + statistics.dropped_early.packets;
    LinkResult {
        name: info.name.clone(),
        utilisation: if seconds > 0.0 { (now.busy - before.busy).as_secs_f64() / seconds } else { 0.0 },
        offered: now.offered.packets - before.offered.packets,
        delivered: now.delivered.packets - before.delivered.packets,
        delivered_bytes: now.delivered.bytes - before.delivered.bytes,
        queue_drops: refused(now) - refused(before),
        link_losses: lost(now) - lost(before),
        marked: now.marked.packets - before.marked.packets,
        queue: distribution(&info.queue, 1.0),
    }
}

fn distribution(histogram: &Histogram, unit: f64) -> Distribution {
    Distribution {
        samples: histogram.samples(),
        min: histogram.min() as f64 * unit,
        mean: histogram.mean() * unit,
        p50: histogram.quantile(0.5) * unit,
        p95: histogram.quantile(0.95) * unit,
        p99: histogram.quantile(0.99) * unit,
        max: histogram.max() as f64 * unit,
    }
}
