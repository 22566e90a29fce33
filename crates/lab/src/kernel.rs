//! Settings of the hosts' kernels: congestion control, Multipath TCP.

use std::fs;
use std::io;
use std::path::Path;

use crate::LabError;
use crate::error::Step;
use crate::plan::{Plan, Protocol};
use crate::site::Site;

const CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const MPTCP: &str = "/proc/sys/net/mptcp/enabled";
/// More subflows than any scenario has paths.
const MOST_SUBFLOWS: u32 = 8;

/// Makes the kernels of the hosts as the plan's flows want them. By flow, the congestion control that its server's host has then.
pub(crate) fn prepare(plan: &Plan, site: &Site, paths: &[usize]) -> Result<Vec<String>, LabError> {
    let mut used = Vec::new();
    for flow in &plan.flows {
        let wanted = flow.congestion.clone();
        used.push(site.host(flow.from)?.run(move || choose(&wanted))?.step("choosing the congestion control")?);
        if flow.protocol == Protocol::Mptcp {
            several_paths(plan, site, paths)?;
        }
    }
    Ok(used)
}

/// Chooses the congestion control of the network namespace of the calling thread, and reads back which it is. A system that
/// forbids the choice keeps its own, and the result says which.
fn choose(wanted: &str) -> io::Result<String> {
    let available = fs::read_to_string(AVAILABLE)?;
    if !available.split_whitespace().any(|name| name == wanted) {
        let message = format!("the kernel has no '{wanted}', only {}", available.trim());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    // Where /proc/sys is closed the kernel's own remains.
    let _ = fs::write(CONTROL, wanted);
    Ok(fs::read_to_string(CONTROL)?.trim().to_owned())
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
