//! From what a scenario file says about Sinnet as it ships to flows and the associations in which they travel.

use std::collections::BTreeMap;
use std::sync::Arc;

use clock::Duration;
use congestion::Host;
use scenario::{Association, FlowSpec, Inside, NodeIndex, Scenario};
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

/// The associations so far, by what their flows have in common.
#[derive(Default)]
pub(crate) struct Associations {
    known: BTreeMap<Vec<Vec<NodeIndex>>, u32>,
}

impl Associations {
    /// The association of a flow of this name, added to the plan if it is not there.
    ///
    /// # Errors
    /// Points at a size of packets that is not that of the association.
    pub(crate) fn of(
        &mut self,
        (scenario, index, flow): (&Scenario, usize, &FlowSpec),
        name: &str,
        paths: &[PlannedPath],
        plan: &mut Plan,
    ) -> Result<u32, Diagnostic> {
        let mtu = mtu(flow);
        let own = flow.sinnet.association == Association::Own;
        if let Some(known) = self.known.get(&flow.paths).filter(|_| !own) {
            let has = plan.associations.get(*known as usize).map_or(mtu, |association| association.config.mtu);
            if has != mtu && flow.sinnet.inside == Inside::Tcp {
                let message = format!("the packets of its association have {has} bytes at most");
                let help =
                    "give all flows of the association the same `packet_size`, or association = \"own\"".to_owned();
                return Err(scenario.error_in_flow(index, "packet_size", message, Some(help)));
            }
            return Ok(*known);
        }
        plan.associations.push(PlannedAssociation {
            name: name.to_owned(),
            paths: paths.to_vec(),
            config: AssociationConfig { mtu, ..AssociationConfig::default() },
        });
        let number = (plan.associations.len() - 1) as u32;
        if !own {
            self.known.insert(flow.paths.clone(), number);
        }
        Ok(number)
    }
}

/// The largest packet on paths.
fn mtu(flow: &FlowSpec) -> u16 {
    match flow.sinnet.inside {
        Inside::Tcp => u16::try_from(flow.wire_size()).unwrap_or(u16::MAX),
        _ => AssociationConfig::default().mtu,
    }
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
    let room = multipath::inner_room(mtu(flow));
    if room < LEAST_ROOM {
        let message = format!("packets of {} bytes leave no room for one of TCP inside", flow.wire_size());
        return refuse("packet_size", message, "packet_size = 1500");
    }
    let largest = room as u32 + IP_HEADER;
    match flow.sinnet.inside {
        Inside::Tcp => {
            let written = flow.congestion.as_deref().unwrap_or("cubic");
            let rule = rules::rule(scenario, index, written, Host::Tcp, outside)?;
            let config = AssociationConfig { mtu: mtu(flow), ..AssociationConfig::default() };
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
