//! From what a scenario file says about SCTP to its options.

use congestion::{Family, Host, InitialWindow, WindowRule as _};
use scenario::{Amount, CucSpec, FlowSpec, Protocol, RtxSpec, Scenario};
use text::Diagnostic;
use transport::sctp::{CwndUpdate, Retransmission, SctpConfig, Splitting};

use crate::rules;

/// The options of flow number `index`.
pub(crate) fn sctp(scenario: &Scenario, index: usize, flow: &FlowSpec) -> Result<SctpConfig, Diagnostic> {
    let refuse = |key: &str, message: String, help: &str| {
        Err(scenario.error_in_flow(index, key, message, (!help.is_empty()).then(|| help.to_owned())))
    };
    let paths = flow.paths.len();
    let concurrent = flow.protocol == Protocol::CmtSctp;
    if paths > 64 {
        return refuse("paths", "so many paths are not simulated".into(), "at most 64");
    }
    if flow.scheduler.as_deref().is_some_and(|name| name != "round-robin") {
        let message = "SCTP takes the next path that has room".to_owned();
        return refuse("scheduler", message, "scheduler = \"round-robin\"");
    }
    if let Some(profile) = &flow.profile {
        return refuse("profile", format!("SCTP has no profile \"{profile}\""), "leave it out");
    }
    let usual = if concurrent && paths > 1 { "rp-mp-v2" } else { "reno-sp" };
    let host = Host::Sctp { paths: if concurrent { paths } else { 1 } };
    let rule = rules::rule(scenario, index, flow.congestion.as_deref().unwrap_or(usual), host, &())?;
    let mut config =
        if concurrent { SctpConfig::cmt(paths, rule) } else { SctpConfig { rule, ..SctpConfig::plain(paths) } };
    let kind = config.rule.kind();
    config.packet_size = flow.packet_size.unwrap_or(config.packet_size);
    if config.packet_size <= config.header_size {
        let (size, headers) = (config.packet_size, config.header_size);
        let message = format!("a packet of {size} bytes has no room beside its {headers} bytes of headers");
        return refuse("packet_size", message, "packet_size = 1500");
    }
    let payload = u64::from(config.payload());
    let bytes = |amount: Amount| match amount {
        Amount::Packets(packets) => packets.saturating_mul(payload),
        Amount::Bytes(bytes) => bytes,
        Amount::Unlimited => u64::MAX / 4,
    };
    config.receive_buffer = flow.receiver_window.map_or(config.receive_buffer, bytes);
    let spec = &flow.sctp;
    config.send_buffer = spec.send_buffer.map_or(config.send_buffer, bytes);
    if config.receive_buffer < payload {
        return refuse("receiver_window", "the receiver has no room for one message".into(), "at least one packet");
    }
    config.splitting = match spec.splitting {
        None => config.splitting,
        Some((false, false)) => Splitting::None,
        Some((true, false)) => Splitting::Sender,
        Some((false, true)) => Splitting::Receiver,
        Some((true, true)) => Splitting::Both,
    };
    let share = config.send_buffer / if config.splitting.sender() { paths.max(1) as u64 } else { 1 };
    if share < payload {
        let message = "the sender's buffer has no room for one message on each path".to_owned();
        return refuse("send_buffer", message, "at least one packet for each path");
    }
    config.ordered = spec.ordered.unwrap_or(config.ordered);
    config.nr_sack = spec.nr_sack.unwrap_or(config.nr_sack);
    config.split_fast_retransmit = spec.sfr.unwrap_or(config.split_fast_retransmit);
    config.delayed_ack_for_cmt = spec.dac.unwrap_or(config.delayed_ack_for_cmt);
    config.strict_windows = spec.strict_windows.unwrap_or(config.strict_windows);
    config.cwnd_update = match spec.cuc {
        None => config.cwnd_update,
        Some(CucSpec::Cumulative) => CwndUpdate::Cumulative,
        Some(CucSpec::V1) => CwndUpdate::PathV1,
        Some(CucSpec::V2) => CwndUpdate::PathV2,
    };
    config.retransmission = match spec.rtx {
        None => config.retransmission,
        Some(RtxSpec::Same) => Retransmission::Same,
        Some(RtxSpec::Cwnd) => Retransmission::Cwnd,
        Some(RtxSpec::Ssthresh) => Retransmission::Ssthresh,
        Some(RtxSpec::Fpf) => Retransmission::FastestPathFirst,
    };
    config.path_max_retrans = spec.path_max_retrans.unwrap_or(config.path_max_retrans);
    config.heartbeat = spec.heartbeat.unwrap_or(config.heartbeat);
    config.max_burst = spec.max_burst.unwrap_or(config.max_burst);
    config.delayed_ack = flow.tcp.delayed_ack.unwrap_or(config.delayed_ack);
    config.timer.min_rto = flow.tcp.min_rto.unwrap_or(config.timer.min_rto);
    // The association has one first window where its paths are coupled.
    let first = match flow.tcp.initial_window {
        Some(window) => InitialWindow::Packets(u32::try_from((bytes(window) / payload).max(1)).unwrap_or(u32::MAX)),
        None if kind.family == Family::Sctp && kind.couples => InitialWindow::Shared(paths as u32),
        None => InitialWindow::Rfc3390,
    };
    config.engine = congestion::EngineConfig::sctp(first, config.receive_buffer);
    config.data = flow.amount.map(bytes);
    Ok(config)
}
