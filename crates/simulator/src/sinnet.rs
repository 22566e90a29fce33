//! From what a scenario file says about Sinnet as it ships to flows and the associations in which they travel.

use std::collections::BTreeMap;
use std::sync::Arc;

use clock::Duration;
use congestion::Host;
use scenario::{Association, FlowSpec, Inside, NodeIndex, Rates, Scenario};
use scheduler::Needs;
use text::Diagnostic;
use transport::{EchoConfig, FlowConfig, TcpConfig};

use crate::Outside;
use crate::association::{AssociationConfig, IP_HEADER};
use crate::from_scenario::{data, set_details, set_window, udp};
use crate::plan::{Plan, PlannedAssociation, PlannedPath};
use crate::rules;

/// Bytes of a whole packet of UDP where the file says nothing: what every path of IPv6 carries (RFC 8200 §5).
const UDP_PACKET: u32 = 1280;
/// The header of UDP, in bytes.
const UDP_HEADER: u32 = 8;
/// From one echo request to the next.
const PING: Duration = Duration::from_millis(50);
/// What follows the inner header has at least so much room, as the daemon wants it.
const LEAST_ROOM: usize = 100;
/// More paths than this between two hosts are a slip of the pen.
const MOST_PATHS: usize = 64;

/// The associations so far, by what their flows have in common, with the first of these.
#[derive(Default)]
pub(crate) struct Associations {
    known: BTreeMap<Vec<Vec<NodeIndex>>, (u32, usize)>,
}

impl Associations {
    /// The association of a flow of this name, added to the plan if it is not there.
    ///
    /// # Errors
    /// Points at what is not as in the flows before, of the same association, or does not fit.
    pub(crate) fn of(
        &mut self,
        (scenario, index, flow): (&Scenario, usize, &FlowSpec),
        (name, paths): (&str, &[PlannedPath]),
        plan: &mut Plan,
        outside: &dyn Outside,
    ) -> Result<u32, Diagnostic> {
        let own = flow.sinnet.association == Association::Own;
        if let Some((known, first)) = self.known.get(&flow.paths).filter(|_| !own) {
            let other = scenario.flows.get(*first).unwrap_or(flow);
            let (both, usual) = ([flow, other], AssociationConfig::default());
            let differs = [
                ("packet_size", flow.sinnet.inside == Inside::Tcp && mtu(flow) != mtu(other)),
                ("scheduler", differ(both.map(|flow| flow.scheduler.as_deref().unwrap_or(usual.scheduler.name())))),
                ("path_congestion", differ(both.map(|flow| path_congestion(flow).unwrap_or(usual.rule.name())))),
                ("rates", differ(both.map(|flow| flow.sinnet.rates))),
            ];
            let Some((key, _)) = differs.into_iter().find(|(_, differs)| *differs) else { return Ok(*known) };
            let message = format!("\"{}\", of the same association, says otherwise", other.name);
            let help = format!("give all flows of the association the same `{key}`, or association = \"own\"");
            return Err(scenario.error_in_flow(index, key, message, Some(help)));
        }
        let mut config = config(scenario, index, flow, outside)?;
        // What the search for it finds, which is not simulated.
        let links = paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
        let mtus = links.filter_map(|link| plan.links.get(*link as usize)?.config.mtu);
        config.mtu = mtus.filter_map(|mtu| u16::try_from(mtu).ok()).fold(config.mtu, u16::min);
        let has_rate = |links: &[u32]| {
            let mut links = links.iter().filter_map(|link| plan.links.get(*link as usize));
            links.any(|link| link.config.rate.is_some())
        };
        if config.rates_configured && !paths.iter().all(|path| has_rate(&path.forward) && has_rate(&path.reverse)) {
            let message = "a path without a rate cannot be configured by one".to_owned();
            let help = "give a link of each path a `rate`, or write rates = \"measured\"".to_owned();
            return Err(scenario.error_in_flow(index, "rates", message, Some(help)));
        }
        plan.associations.push(PlannedAssociation { name: name.to_owned(), paths: paths.to_vec(), config });
        let number = (plan.associations.len() - 1) as u32;
        if !own {
            self.known.insert(flow.paths.clone(), (number, index));
        }
        Ok(number)
    }
}

fn differ<T: PartialEq>([one, other]: [T; 2]) -> bool {
    one != other
}

/// The name of the rule of the paths' windows, where the flow says one.
fn path_congestion(flow: &FlowSpec) -> Option<&str> {
    flow.sinnet.path_congestion.as_deref()
}

/// The largest packet on paths.
fn mtu(flow: &FlowSpec) -> u16 {
    match flow.sinnet.inside {
        Inside::Tcp => u16::try_from(flow.wire_size()).unwrap_or(u16::MAX),
        _ => AssociationConfig::default().mtu,
    }
}

/// What the hosts of flow number `index` are configured with.
fn config(
    scenario: &Scenario,
    index: usize,
    flow: &FlowSpec,
    outside: &dyn Outside,
) -> Result<AssociationConfig, Diagnostic> {
    let usual = AssociationConfig::default();
    let rates_configured = flow.sinnet.rates == Rates::Configured;
    let has = if rates_configured { Needs::OF_CONFIGURED_RATES } else { Needs::ALL };
    let scheduler = match &flow.scheduler {
        Some(name) => rules::scheduler(scenario, (index, name), has, outside)?,
        None => usual.scheduler,
    };
    let rule = match path_congestion(flow) {
        Some(_) if rates_configured => {
            let message = "paths of configured rates have no windows".to_owned();
            let help = Some("leave it out, or write rates = \"measured\"".to_owned());
            return Err(scenario.error_in_flow(index, "path_congestion", message, help));
        }
        Some(name) => rules::rule_of((scenario, index, "path_congestion"), name, Host::Tunnel, outside)?,
        None => usual.rule,
    };
    Ok(AssociationConfig { mtu: mtu(flow), rule, scheduler, rates_configured })
}

/// What flow number `index` does inside.
///
/// # Errors
/// Points at what does not fit.
pub(crate) fn traffic(
    scenario: &Scenario,
    index: usize,
    flow: &FlowSpec,
    outside: &dyn Outside,
) -> Result<FlowConfig, Diagnostic> {
    let refuse = |key: &str, message: String, help: &str| {
        Err(scenario.error_in_flow(index, key, message, Some(help.to_owned())))
    };
    if flow.paths.len() > MOST_PATHS {
        return refuse("paths", "so many paths are not simulated".into(), "at most 64");
    }
    let config = config(scenario, index, flow, outside)?;
    let room = config.inner_room();
    if room < LEAST_ROOM {
        let message = format!("packets of {} bytes leave no room for one of TCP inside", flow.wire_size());
        return refuse("packet_size", message, "packet_size = 1500");
    }
    let largest = room as u32 + IP_HEADER;
    match flow.sinnet.inside {
        Inside::Tcp => {
            let written = flow.congestion.as_deref().unwrap_or("cubic");
            let rule = rules::rule(scenario, index, written, Host::Tcp, outside)?;
            Ok(FlowConfig::Tcp(Arc::new(tcp(flow, config.tcp_inside(rule)))))
        }
        Inside::Udp => {
            let size = flow.packet_size.unwrap_or(UDP_PACKET);
            if size > largest {
                let message = format!("a packet of {size} bytes does not fit into those of the paths");
                return refuse("packet_size", message, &format!("at most {largest}"));
            }
            Ok(FlowConfig::Udp(udp(scenario, index, flow, size, IP_HEADER + UDP_HEADER)?))
        }
        Inside::Ping => Ok(FlowConfig::Echo(EchoConfig::ping(PING, IP_HEADER))),
    }
}

/// The TCP of a program, with what the flow says of it.
fn tcp(flow: &FlowSpec, mut tcp: TcpConfig) -> TcpConfig {
    set_window(&mut tcp, flow);
    set_details(&mut tcp, &flow.tcp);
    tcp.data = data(flow, tcp.mss());
    tcp
}
