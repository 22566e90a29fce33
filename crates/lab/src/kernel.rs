//! Settings of the hosts' kernels: congestion control, Multipath TCP.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::Step;
use crate::plan::{Plan, Protocol};
use crate::site::Site;
use crate::{LabError, Namespace, Program};

const CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const MPTCP: &str = "/proc/sys/net/mptcp/enabled";
/// More subflows than any scenario has paths.
const MOST_SUBFLOWS: u32 = 8;

/// Makes the kernels of the hosts as the plan's flows want them.
pub(crate) fn prepare(plan: &Plan, site: &Site, paths: &[usize]) -> Result<(), LabError> {
    for flow in &plan.flows {
        let (wanted, host) = (flow.congestion.clone(), site.host(flow.from)?);
        host.run(move || choose(&wanted))?.step("choosing the congestion control")?;
        for route in site.routes_from(flow.from) {
            // What a namespace may not choose for itself, as the kernel sees it, a route of it may have.
            host.ip(&[format!("{} congctl {}", route.replace(" append ", " replace "), flow.congestion)])?;
        }
    }
    match plan.flow().protocol {
        Protocol::Mptcp => several_paths(plan, site, paths),
        Protocol::Sinnet | Protocol::Tcp => Ok(()),
    }
}

/// Chooses the congestion control of the network namespace of the calling thread, where that is allowed.
fn choose(wanted: &str) -> io::Result<()> {
    let available = fs::read_to_string(AVAILABLE)?;
    if !available.split_whitespace().any(|name| name == wanted) {
        let message = format!(
            "the kernel has no '{wanted}', only {}, also for the subflows of Multipath TCP; coupled ones run in `sinnet sim`",
            available.trim()
        );
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let _ = fs::write(CONTROL, wanted);
    Ok(())
}

/// The congestion control of the connections that a host serves from `port` now, as the kernel tells it of each; "unknown" without any.
pub(crate) fn used(host: &Namespace, port: u16) -> Result<String, LabError> {
    let available = fs::read_to_string(AVAILABLE).unwrap_or_default();
    let told =
        host.output(&Program::new("ss").args(["-tinH", "state", "established"]).args([format!("sport = :{port}")]))?;
    let mut names: Vec<&str> =
        told.split_whitespace().filter(|word| available.split_whitespace().any(|name| name == *word)).collect();
    names.sort_unstable();
    names.dedup();
    Ok(if names.is_empty() { "unknown".to_owned() } else { names.join(" and ") })
}

/// Multipath TCP over the paths with these numbers: the server tells of its other addresses, and the client's kernel opens a
/// subflow to each, over the device that its route names.
fn several_paths(plan: &Plan, site: &Site, paths: &[usize]) -> Result<(), LabError> {
    if !Path::new(MPTCP).exists() {
        let cause = io::Error::new(io::ErrorKind::Unsupported, "this kernel is built without it");
        return Err(LabError::Io { step: "switching Multipath TCP on".to_owned(), cause });
    }
    let (server, client) = (site.host(plan.flow().from)?, site.host(plan.flow().to)?);
    for host in [server, client] {
        host.run(|| fs::write(MPTCP, "1"))?.step("switching Multipath TCP on")?;
        let limits = format!("mptcp limits set subflow {MOST_SUBFLOWS} add_addr_accepted {MOST_SUBFLOWS}");
        host.ip(&[limits])?;
    }
    for path in paths.iter().skip(1).filter_map(|path| plan.paths().get(*path)) {
        let attachment = path.ends[0];
        let device = plan.topology.attachments.get(attachment).map_or("", |attachment| attachment.device.as_str());
        server.ip(&[format!("mptcp endpoint add {} dev {device} signal", plan.topology.address(attachment))])?;
    }
    Ok(())
}
