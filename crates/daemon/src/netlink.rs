//! What the daemon asks of and tells the kernel about interfaces and routes, over rtnetlink (RFC 3549): a request and its
//! answer, blocking, for less than a millisecond. (The `rtnetlink` crate does the same, but brings a runtime for it.) A
//! [`Monitor`] says when it is worth asking again.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope, CacheInfo};
use netlink_packet_route::link::{
    AfSpecInet, AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoGeneve, InfoGre, InfoGre6, InfoIpTunnel,
    InfoVti, InfoVxlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// A network interface of this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The largest IP packet it carries, in bytes.
    pub mtu: u32,
    /// It is up.
    pub up: bool,
    /// It leads to this host only.
    pub loopback: bool,
    /// It has a carrier, as far as the kernel knows.
    pub running: bool,
    /// Its own addresses that can be sent from, in the kernel's order; none while it is down.
    pub addresses: Vec<IpAddr>,
    /// Those of them with a meaning beyond this link, without those that are about to end (RFC 4862 §5.5.4).
    pub global: Vec<IpAddr>,
    /// The two ends of the tunnel that it is, as far as the kernel knows them.
    pub tunnel: Vec<IpAddr>,
    /// Its own setting of IPv4's reverse-path filter: 0 is none, 1 is strict, 2 is loose (`rp_filter` in the kernel's ip-sysctl).
    pub reverse_path_filter: i32,
}

/// All interfaces, with their addresses.
///
/// # Errors
/// What the kernel says.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut netlink = Netlink::open()?;
    let mut interfaces = Vec::new();
    let mut down = Vec::new();
    netlink.request(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP, |answer| {
        let RouteNetlinkMessage::NewLink(link) = answer else { return };
        let flags = link.header.flags;
        let mut interface = Interface {
            index: link.header.index,
            name: String::new(),
            mtu: u32::MAX,
            up: flags.contains(LinkFlags::Up),
            loopback: flags.contains(LinkFlags::Loopback),
            running: flags.contains(LinkFlags::Running),
            addresses: Vec::new(),
            global: Vec::new(),
            tunnel: Vec::new(),
            reverse_path_filter: 0,
        };
        if !flags.contains(LinkFlags::Up) {
            down.push(interface.index);
        }
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name = name,
                LinkAttribute::Mtu(mtu) => interface.mtu = mtu,
                LinkAttribute::AfSpecUnspec(families) => {
                    interface.reverse_path_filter = reverse_path_filter(&families).unwrap_or_default();
                }
                LinkAttribute::LinkInfo(info) => {
                    interface.tunnel = info
                        .iter()
                        .flat_map(|info| if let LinkInfo::Data(data) = info { ends(data) } else { Vec::new() })
                        .collect();
                }
                _ => {}
            }
        }
        interfaces.push(interface);
    })?;
    netlink.request(RouteNetlinkMessage::GetAddress(AddressMessage::default()), NLM_F_DUMP, |answer| {
        let RouteNetlinkMessage::NewAddress(message) = answer else { return };
        // On a point-to-point link IFA_ADDRESS is the other end; IFA_LOCAL, where there is one, is ours.
        let local =
            message.attributes.iter().find_map(|a| if let AddressAttribute::Local(ip) = a { Some(*ip) } else { None });
        let address = message
            .attributes
            .iter()
            .find_map(|a| if let AddressAttribute::Address(ip) = a { Some(*ip) } else { None });
        let wide =
            |a: &AddressAttribute| if let AddressAttribute::Flags(flags) = a { Some(flags.bits()) } else { None };
        let flags = message.attributes.iter().find_map(wide).unwrap_or(message.header.flags.bits().into());
        let flags = AddressFlags::from_bits_retain(flags);
        // Others may have the address, too.
        let owner = interfaces.iter_mut().find(|interface| interface.index == message.header.index);
        let usable = !flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed);
        if let (Some(address), Some(owner)) = (local.or(address), owner.filter(|_| usable))
            && !down.contains(&owner.index)
        {
            owner.addresses.push(address);
            if message.header.scope == AddressScope::Universe && !flags.contains(AddressFlags::Deprecated) {
                owner.global.push(address);
            }
        }
    })?;
    Ok(interfaces)
}

fn reverse_path_filter(families: &[AfSpecUnspec]) -> Option<i32> {
    families.iter().find_map(|family| {
        let AfSpecUnspec::Inet(attributes) = family else { return None };
        attributes
            .iter()
            .find_map(|of| if let AfSpecInet::DevConf(settings) = of { Some(settings.rp_filter) } else { None })
    })
}

/// Between which addresses a tunnel leads.
fn ends(data: &InfoData) -> Vec<IpAddr> {
    fn of<T>(attributes: &[T], end: impl Fn(&T) -> Option<IpAddr>) -> Vec<IpAddr> {
        attributes.iter().filter_map(end).collect()
    }
    match data {
        InfoData::Vxlan(attributes) => of(attributes, |attribute| match attribute {
            InfoVxlan::Group(end) | InfoVxlan::Local(end) => Some((*end).into()),
            InfoVxlan::Group6(end) | InfoVxlan::Local6(end) => Some((*end).into()),
            _ => None,
        }),
        InfoData::Geneve(attributes) => of(attributes, |attribute| match attribute {
            InfoGeneve::Remote(end) | InfoGeneve::Local(end) => Some((*end).into()),
            InfoGeneve::Remote6(end) | InfoGeneve::Local6(end) => Some((*end).into()),
            _ => None,
        }),
        InfoData::IpTunnel(attributes) => of(attributes, |attribute| match attribute {
            InfoIpTunnel::Local(end) | InfoIpTunnel::Remote(end) => Some(*end),
            _ => None,
        }),
        InfoData::GreTun(attributes) | InfoData::GreTap(attributes) => of(attributes, |attribute| match attribute {
            InfoGre::Local(end) | InfoGre::Remote(end) => Some((*end).into()),
            _ => None,
        }),
        InfoData::GreTun6(attributes) | InfoData::GreTap6(attributes) => of(attributes, |attribute| match attribute {
            InfoGre6::Local(end) | InfoGre6::Remote(end) => Some((*end).into()),
            _ => None,
        }),
        InfoData::Vti(attributes) => of(attributes, |attribute| match attribute {
            InfoVti::Local(end) | InfoVti::Remote(end) => Some(*end),
            _ => None,
        }),
        _ => Vec::new(),
    }
}

/// Becomes readable when an interface or an address appears, disappears or changes.
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
}

impl Monitor {
    /// Begins to listen.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open() -> io::Result<Self> {
        // rtnetlink(7): links, and the addresses of both families.
        Self::of(&[1, 5, 9])
    }

    /// Begins to listen to changes of routes, too.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn with_routes() -> io::Result<Self> {
        // rtnetlink(7): as above, and the routes of both families.
        Self::of(&[1, 5, 9, 7, 11])
    }

    fn of(groups: &[u32]) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        for group in groups.iter().copied() {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Self { socket })
    }

    /// Whether something has changed since the last call. What it was is not read: asking for everything is cheap, and
    /// nothing is missed where the kernel had more to tell than there was room for.
    pub fn turn(&mut self) -> bool {
        let mut changed = false;
        loop {
            let mut message = Vec::with_capacity(64);
            match self.socket.recv_from(&mut message, 0) {
                Ok(_) => changed = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return changed,
                // ENOBUFS: news was lost.
                Err(_) => return true,
            }
        }
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Keeps interface `index` from making itself a link-local address: nobody on it would hear that address's multicast.
/// Has to happen before the interface is up.
///
/// # Errors
/// What the kernel says.
pub fn set_no_link_local_address(index: u32) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
    link.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![mode])])];
    Netlink::open()?.request(RouteNetlinkMessage::SetLink(link), NLM_F_ACK, |_| {})
}

/// Lets the kernel cut trains of more than `segments` segments before it gives them to interface `index`.
///
/// # Errors
/// What the kernel says.
pub fn set_longest_train(index: u32, segments: usize) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.attributes = vec![LinkAttribute::GsoMaxSegs(u32::try_from(segments).unwrap_or(u32::MAX))];
    Netlink::open()?.request(RouteNetlinkMessage::SetLink(link), NLM_F_ACK, |_| {})
}

/// Gives interface `index` the IPv4 address `local`, with the host `peer` at the other end if there is one. The kernel makes the
/// route to that host, with metric `KERNEL_METRIC`, and makes it again when the interface has been down.
///
/// # Errors
/// What the kernel says.
pub fn add_address(index: u32, local: Ipv4Addr, peer: Option<Ipv4Addr>) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = 32;
    message.header.index = index;
    message.header.scope = AddressScope::Universe;
    message.attributes = vec![
        AddressAttribute::Local(local.into()),
        AddressAttribute::Address(peer.unwrap_or(local).into()),
        AddressAttribute::RoutePriority(KERNEL_METRIC),
    ];
    Netlink::open()?.request(RouteNetlinkMessage::NewAddress(message), NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, |_| {})
}

/// Gives interface `index` one more IPv6 address, which no program gets as its source but where it or a route says so (deprecated,
/// RFC 6724 §5, rule 3). It needs no time to be looked for on the link.
///
/// # Errors
/// What the kernel says.
pub fn add_deprecated_address(index: u32, local: Ipv6Addr) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet6;
    message.header.prefix_len = 128;
    message.header.index = index;
    message.header.scope = AddressScope::Universe;
    let mut lifetimes = CacheInfo::default();
    (lifetimes.ifa_preferred, lifetimes.ifa_valid) = (0, u32::MAX);
    message.attributes = vec![
        AddressAttribute::Local(local.into()),
        AddressAttribute::Address(local.into()),
        AddressAttribute::CacheInfo(lifetimes),
        AddressAttribute::Flags(AddressFlags::Nodad),
    ];
    Netlink::open()?.request(RouteNetlinkMessage::NewAddress(message), NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, |_| {})
}

/// IP6_RT_PRIO_ADDRCONF, what the kernel gives to routes that it makes for addresses; ours of IPv4 have the same.
const KERNEL_METRIC: u32 = 256;
/// Better than the kernel's own.
const METRIC: u32 = 100;
/// Worse than any that leads somewhere.
const LAST_METRIC: u32 = 4_000_000;
/// Who made a route: HIP, by its protocol number. The kernel gives these numbers no meaning (rtnetlink(7)).
const PROTOCOL: RouteProtocol = RouteProtocol::Other(139);

/// Makes a route to `destination`/`prefix` over interface `index` that is better than the kernel's own, with the congestion
/// window in packets with which a TCP begins; and with a path MTU that is not the interface's, if there is one, so that TCP's MSS
/// follows from it; and with the address from which programs send that have chosen none, if it is said. It never replaces another's.
///
/// # Errors
/// What the kernel says.
pub fn add_route(
    index: u32,
    (destination, prefix): (IpAddr, u8),
    source: Option<IpAddr>,
    mtu: Option<u16>,
    first_window: u32,
) -> io::Result<()> {
    let mut route = route(destination, prefix, METRIC);
    route.header.kind = RouteType::Unicast;
    if destination.is_ipv4() {
        route.header.scope = RouteScope::Link;
    }
    let mut metrics = vec![RouteMetric::InitCwnd(first_window)];
    if let Some(mtu) = mtu {
        metrics.push(RouteMetric::Mtu(mtu.into()));
    }
    route.attributes.extend([RouteAttribute::Oif(index), RouteAttribute::Metrics(metrics)]);
    route.attributes.extend(source.map(|source| {
        RouteAttribute::PrefSource(match source {
            IpAddr::V4(source) => RouteAddress::Inet(source),
            IpAddr::V6(source) => RouteAddress::Inet6(source),
        })
    }));
    Netlink::open()?.request(RouteNetlinkMessage::NewRoute(route), NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, |_| {})
}

/// Makes `destination`/`prefix` unreachable wherever no other route leads there, for as long as this network namespace lives.
///
/// # Errors
/// What the kernel says.
pub fn make_unreachable(destination: IpAddr, prefix: u8) -> io::Result<()> {
    let mut route = route(destination, prefix, LAST_METRIC);
    route.header.kind = RouteType::Unreachable;
    Netlink::open()?.request(RouteNetlinkMessage::NewRoute(route), NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, |_| {})
}

/// Takes back what [`make_unreachable`] did, all of it; how many routes that were.
///
/// # Errors
/// What the kernel says.
pub fn remove_unreachable() -> io::Result<usize> {
    let mut netlink = Netlink::open()?;
    let mut ours = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut all = RouteMessage::default();
        all.header.address_family = family;
        netlink.request(RouteNetlinkMessage::GetRoute(all), NLM_F_DUMP, |answer| {
            if let RouteNetlinkMessage::NewRoute(route) = answer
                && (route.header.protocol, route.header.kind) == (PROTOCOL, RouteType::Unreachable)
            {
                ours.push(route);
            }
        })?;
    }
    let count = ours.len();
    for route in ours {
        netlink.request(RouteNetlinkMessage::DelRoute(route), NLM_F_ACK, |_| {})?;
    }
    Ok(count)
}

/// The route that a packet to an address takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The length of the prefix that decides; 0 is the default route.
    pub prefix: u8,
    /// Over which interface.
    pub interface: Option<u32>,
    /// The address is this host's own.
    pub local: bool,
}

/// Where a packet to `destination` would go; nothing where it is unreachable.
///
/// # Errors
/// What the kernel says otherwise.
pub fn route_to(destination: IpAddr) -> io::Result<Option<Way>> {
    route_from(None, destination)
}

/// Where a packet to `destination` would go that has a certain one of this host's addresses as its source, if it is said.
///
/// # Errors
/// As [`route_to`].
pub fn route_from(source: Option<Ipv4Addr>, destination: IpAddr) -> io::Result<Option<Way>> {
    const ESRCH: i32 = 3;
    let mut question = route(destination, if destination.is_ipv4() { 32 } else { 128 }, 0);
    question.header.flags = RouteFlags::FibMatch;
    question.attributes.retain(|attribute| matches!(attribute, RouteAttribute::Destination(_)));
    if let Some(source) = source {
        question.header.source_prefix_length = 32;
        question.attributes.push(RouteAttribute::Source(RouteAddress::Inet(source)));
    }
    let mut found = None;
    let result = Netlink::open()?.request(RouteNetlinkMessage::GetRoute(question), NLM_F_ACK, |answer| {
        if let RouteNetlinkMessage::NewRoute(route) = answer {
            let interface = route
                .attributes
                .iter()
                .find_map(|a| if let RouteAttribute::Oif(index) = a { Some(*index) } else { None });
            let leads = matches!(route.header.kind, RouteType::Unicast | RouteType::Local);
            let way = Way {
                prefix: route.header.destination_prefix_length,
                interface,
                local: route.header.kind == RouteType::Local,
            };
            found = leads.then_some(way);
        }
    });
    match result {
        Ok(()) => Ok(found),
        Err(error) if matches!(error.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            Ok(None)
        }
        Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A route of the main table that is ours.
fn route(destination: IpAddr, prefix: u8, metric: u32) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.destination_prefix_length = prefix;
    route.header.table = RouteHeader::RT_TABLE_MAIN;
    route.header.protocol = PROTOCOL;
    let destination = match destination {
        IpAddr::V4(destination) => {
            route.header.address_family = AddressFamily::Inet;
            RouteAddress::Inet(destination)
        }
        IpAddr::V6(destination) => {
            route.header.address_family = AddressFamily::Inet6;
            RouteAddress::Inet6(destination)
        }
    };
    route.attributes = vec![RouteAttribute::Destination(destination), RouteAttribute::Priority(metric)];
    route
}

struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends one request and hands over every message of its answer.
    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut each: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = datagram.as_slice();
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
                // Messages are aligned to four bytes (NLMSG_ALIGN).
                let length = (message.header.length as usize).next_multiple_of(4).max(4);
                rest = rest.get(length..).unwrap_or_default();
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return error.code.map_or(Ok(()), |_| Err(error.to_io())),
                    NetlinkPayload::InnerMessage(inner) => each(inner),
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there_with_the_mtu_that_sysfs_tells() {
        let interfaces = interfaces().expect("netlink works without privileges");
        let loopback = interfaces.iter().find(|interface| interface.name == "lo").expect("lo");
        let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("sysfs");
        assert_eq!(loopback.mtu.to_string(), mtu.trim());
        assert!(loopback.addresses.is_empty() || loopback.addresses.contains(&Ipv4Addr::LOCALHOST.into()));
    }
}
