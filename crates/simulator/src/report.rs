//! From the state of a run to its [`RunResult`].

use clock::{Duration, Instant};
use transport::Histogram;

use crate::result::{Distribution, FlowResult, FlowSample, LinkResult, LinkSample, RunResult, Sample};
use crate::simulation::{FlowSlot, LinkSlot, ReceiverSlot, SenderSlot, Simulation};

/// The result of a run that has ended.
pub(crate) fn report(simulation: &mut Simulation) -> RunResult {
    let end = simulation.end;
    for slot in &mut simulation.links {
        slot.link.observe(end);
    }
    let links: Vec<LinkResult> = simulation.links.iter().map(|slot| link(slot, end - Instant::ZERO)).collect();
    let flows = simulation.flows.iter().zip(&simulation.senders).zip(&simulation.receivers);
    RunResult {
        seed: simulation.seed,
        virtual_s: end.as_secs_f64(),
        cpu_s: 0.0,
        packets: links.iter().map(|link| link.delivered).sum(),
        events: simulation.events,
        digest: simulation.digest,
        flows: flows.map(|((slot, sender), receiver)| flow(slot, sender, receiver, end)).collect(),
        links,
        series: std::mem::take(&mut simulation.series),
    }
}

/// The state of a run under way.
pub(crate) fn sample(simulation: &Simulation) -> Sample {
    let flows = simulation.senders.iter().zip(&simulation.receivers).zip(&simulation.flows);
    Sample {
        time_s: simulation.now.as_secs_f64(),
        flows: flows
            .map(|((sender, receiver), flow)| FlowSample {
                cwnd: sender.sender.cwnd(),
                ssthresh: sender.sender.ssthresh(),
                flight: sender.sender.flight(),
                srtt_ms: sender.sender.srtt().as_secs_f64() * 1e3,
                delivered_bytes: delivered_bytes(flow, receiver),
                retransmissions: sender.sender.statistics().retransmissions,
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

fn delivered_bytes(flow: &FlowSlot, receiver: &ReceiverSlot) -> u64 {
    let bytes = receiver.receiver.delivered() * u64::from(flow.mss);
    flow.data.map_or(bytes, |data| bytes.min(data))
}

fn flow(slot: &FlowSlot, sender: &SenderSlot, receiver: &ReceiverSlot, end: Instant) -> FlowResult {
    let ended = slot.finished.unwrap_or(end);
    let seconds = (ended - slot.start).as_secs_f64();
    let mbps = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 };
    let (out, arrived) = (sender.sender.statistics(), receiver.receiver.statistics());
    let delivered = receiver.receiver.delivered();
    let payload = delivered_bytes(slot, receiver);
    FlowResult {
        name: slot.name.clone(),
        goodput_mbps: mbps(payload),
        goodput_wire_mbps: mbps(payload + delivered * u64::from(slot.packet_size - slot.mss)),
        throughput_mbps: mbps(arrived.bytes),
        start_s: slot.start.as_secs_f64(),
        end_s: ended.as_secs_f64(),
        completed: slot.finished.is_some(),
        delivered,
        sent: out.sent,
        retransmissions: out.retransmissions,
        losses: slot.losses,
        timeouts: out.timeouts,
        reductions: out.reductions,
        reordered: arrived.reordered,
        duplicates: arrived.duplicates,
        marked: arrived.marked,
        rtt: distribution(&out.rtt, 1e-6),
        mean_cwnd: if ended > slot.start { sender.sender.mean_cwnd(slot.start, ended) } else { 0.0 },
    }
}

fn link(slot: &LinkSlot, time: Duration) -> LinkResult {
    let statistics = slot.link.statistics();
    let seconds = time.as_secs_f64();
    LinkResult {
        name: slot.name.clone(),
        utilisation: if seconds > 0.0 { statistics.busy.as_secs_f64() / seconds } else { 0.0 },
        offered: statistics.offered.packets,
        delivered: statistics.delivered.packets,
        delivered_bytes: statistics.delivered.bytes,
        queue_drops: statistics.dropped_full.packets,
        link_losses: statistics.dropped_loss.packets + statistics.dropped_outage.packets,
        marked: 0,
        queue: distribution(&slot.queue, 1.0),
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
