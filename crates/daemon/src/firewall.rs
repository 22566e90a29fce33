//! The packet filter that makes identities mean something beside the tunnel, too: an nftables table of our own.
//!
//! Linux takes a packet for one of its addresses on any interface (the weak host model of RFC 1122 §3.3.4.2). So a stranger on
//! an access link could send cleartext from a peer's HIT to ours, and programs would take it for the peer; and packets to
//! identities would leave in clear whenever no route leads them into our device. The table drops both, also after a crash: it
//! stays until somebody removes it, and only what must not be on a wire anyway is touched by it.
//!
//! The table is put up in one transaction, before anything else of ours is, and a later start replaces it in one. Where the
//! kernel can (Linux 6.9), it belongs to us while we run, so that no `nft flush ruleset` of another program takes it away.
//!
//! Where policies are about users or cgroups it also marks what they send (see `senders`).
//!
//! It speaks netlink, by `netlink-bindings`, because ownership ends with the socket that asked for it: the program `nft` could
//! not hold it for us.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_bindings::nftables::{
    self, Chained, CmpOps, MetaKeys, Nfgenmsg, PayloadBase, PushExprListAttrs, Registers, TableFlags, VerdictCode,
};
use netlink_bindings::traits::{NetlinkChained as _, Pusher};
use netlink_packet_core::NetlinkBuffer;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use wire::{Hit, Lsi};

use crate::senders::{Ancestor, Marked};

/// Our tables are called so and as the device.
const PREFIX: &str = "sinnet-";
/// NFPROTO_INET: one table for both families.
const INET: u8 = 1;
/// NFNL_SUBSYS_NFTABLES
const SUBSYSTEM: u16 = 10;
/// The set of LSIs that are in use.
const LSIS: &std::ffi::CStr = c"lsis";
/// Elements of a set in one message, far below what an attribute's length can tell.
const ELEMENTS: usize = 1000;
/// NF_IP_PRI_RAW: before connection tracking and any address translation.
const PRIORITY: i32 = -300;
/// After the filters of others, which may mark packets, too (NF_IP_PRI_FILTER is 0, NF_IP_PRI_NAT_SRC 100).
const MARKING_PRIORITY: i32 = 200;

/// What the table must know.
#[derive(Clone, Debug)]
pub struct FirewallConfig<'a> {
    /// Our TUN device.
    pub device: &'a str,
    /// Our identities.
    pub hits: &'a [Hit],
    /// Our LSIs.
    pub lsis: &'a [Lsi],
    /// The LSIs of the peers.
    pub peers: &'a [Lsi],
    /// Whether packets of others may be forwarded into and out of the device.
    pub forward: bool,
    /// How to mark what programs send through the device; where there is none all keep what they say themselves.
    pub(crate) marked: &'a [Marked],
}

/// A table that stands. It outlives this value; dropping it only ends the ownership.
pub struct Firewall {
    socket: Socket,
    table: CString,
    /// Nobody else can remove the table.
    owned: bool,
}

impl Firewall {
    /// Puts up the table, in place of one of that name and of those in `stale`, all at once.
    ///
    /// # Errors
    /// What the kernel says: without `CAP_NET_ADMIN`, without nftables, or where the table belongs to a running daemon.
    pub fn install(config: &FirewallConfig<'_>, stale: &[String]) -> io::Result<Self> {
        // Linux before 6.9 knows no table that has an owner and outlives it.
        let ownership = TableFlags::Owner as u32 | TableFlags::Persist as u32;
        match Self::install_as(config, stale, Some(ownership)) {
            Err(error) if is_unknown(&error) => Self::install_as(config, stale, None),
            result => result,
        }
    }

    fn install_as(config: &FirewallConfig<'_>, stale: &[String], flags: Option<u32>) -> io::Result<Self> {
        /// NFNLGRP_NFTABLES
        const CHANGES: u32 = 7;
        let table = c_string(&format!("{PREFIX}{}", config.device))?;
        let mut batch = Batch::new(table);
        batch.remove_tables(stale)?;
        batch.table(flags);
        batch.lsis(config);
        let marking = if config.marked.is_empty() { &[][..] } else { &MARKING_CHAINS };
        for (chain, hook) in CHAINS {
            batch.chain(chain, hook, PRIORITY);
        }
        for (chain, hook) in marking {
            batch.chain(*chain, *hook, MARKING_PRIORITY);
        }
        for rule in rules(config).into_iter().chain(marking_rules(config)) {
            batch.rule(&rule);
        }
        let mut socket = open()?;
        let table = batch.commit(&mut socket)?;
        if flags.is_none() {
            socket.add_membership(CHANGES)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Self { socket, table, owned: flags.is_some() })
    }

    /// Reads what the kernel tells of changes; true once somebody has removed the table.
    pub fn is_gone(&mut self) -> bool {
        let mut gone = false;
        // What cannot be read (ENOBUFS) was lost; the routes keep packets in, too.
        while let Ok((datagram, _)) = self.socket.recv_from_full() {
            for message in messages(&datagram) {
                gone |= !self.owned && message.message_type() == DELETE_TABLE && self.is_named(message.payload());
            }
        }
        gone
    }

    fn is_named(&self, payload: &[u8]) -> bool {
        table_name(payload).is_some_and(|name| name.as_bytes() == self.table.as_bytes())
    }
}

impl AsFd for Firewall {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The devices for which tables of ours stand in this network namespace, of daemons that run or do not any more.
///
/// # Errors
/// What the kernel says.
pub fn devices() -> io::Result<Vec<String>> {
    let socket = open()?;
    let mut chain = Chained::new(1);
    chain.request().op_gettable_dump(&header());
    socket.send(chain.finalize().payload(), 0)?;
    let mut devices = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        for message in messages(&datagram) {
            match message.message_type() {
                DONE => return Ok(devices),
                ERROR => error_of(message.payload())?,
                _ => devices
                    .extend(table_name(message.payload()).and_then(|name| Some(name.strip_prefix(PREFIX)?.to_owned()))),
            }
        }
    }
}

/// Removes the tables of these devices, if they stand.
///
/// # Errors
/// What the kernel says; a table of a running daemon stays.
pub fn remove(devices: &[String]) -> io::Result<()> {
    if devices.is_empty() {
        return Ok(());
    }
    let mut batch = Batch::new(CString::default());
    batch.remove_tables(devices)?;
    batch.commit(&mut open()?).map(|_| ())
}

/// A hook of the kernel's (enum nf_inet_hooks) by the name of the chain that we hang there.
const CHAINS: [(Chain, u32); 3] = [(Chain::Arriving, 0), (Chain::Forwarded, 2), (Chain::Leaving, 4)];
/// Sockets can be asked for their cgroup where packets begin, and not where they leave (nft(8), `socket`).
const MARKING_CHAINS: [(Chain, u32); 2] = [(Chain::Begun, 3), (Chain::Others, 2)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chain {
    /// All that comes from any interface, before the route is chosen.
    Arriving,
    Forwarded,
    /// All that goes out to any interface, of programs or forwarded.
    Leaving,
    /// What programs of this host send, to be marked.
    Begun,
    /// What is forwarded and so of no program, to be marked.
    Others,
}

impl Chain {
    fn name(self) -> &'static std::ffi::CStr {
        match self {
            Self::Arriving => c"arriving",
            Self::Forwarded => c"forwarded",
            Self::Leaving => c"leaving",
            Self::Begun => c"begun",
            Self::Others => c"others",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Source,
    Destination,
}

/// What a packet must be like.
#[derive(Clone, Debug)]
enum Condition {
    /// From (or to) an interface of that name, or any other where `is` is false.
    Interface {
        key: MetaKeys,
        name: String,
        is: bool,
    },
    /// In 2001:20::/28 (RFC 7343 §2).
    AnyHit(End),
    Hit {
        end: End,
        hit: Hit,
        is: bool,
    },
    /// One of the LSIs in use, ours included.
    AnyLsi(End),
    Lsi {
        end: End,
        lsi: Lsi,
        is: bool,
    },
    Family(Family),
    /// From a socket that is somebody's, or this user's. The kernel's own, and those that have been closed, are nobody's.
    User(Option<u32>),
    /// From a socket in such a cgroup, or further inside.
    Cgroup(Ancestor),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Four,
    Six,
}

impl Family {
    /// NFPROTO_IPV4 and NFPROTO_IPV6.
    fn number(self) -> u8 {
        match self {
            Self::Four => 2,
            Self::Six => 10,
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Drop,
    /// The other rules of the chain are not for it.
    Pass,
    /// The same, with this DSCP.
    Mark(Family, u8),
}

/// A packet of which all this is true is dropped, or whatever it says.
#[derive(Clone, Debug)]
struct Rule {
    chain: Chain,
    conditions: Vec<Condition>,
    action: Action,
}

fn rules(config: &FirewallConfig<'_>) -> Vec<Rule> {
    use Condition::{AnyHit, AnyLsi, Interface};
    use End::{Destination, Source};
    let interface = |key: MetaKeys, name: &str, is: bool| Interface { key, name: name.to_owned(), is };
    let hits = |end, is| config.hits.iter().map(move |hit| Condition::Hit { end, hit: *hit, is });
    let lsis = |end, is| config.lsis.iter().map(move |lsi| Condition::Lsi { end, lsi: *lsi, is });
    let other = |key| vec![interface(key, config.device, false), interface(key, "lo", false)];
    let mut rules = Vec::new();
    let mut drop = |chain, mut conditions: Vec<Condition>, and: Vec<Condition>| {
        conditions.extend(and);
        rules.push(Rule { chain, conditions, action: Action::Drop });
    };

    // Nothing but the tunnel brings packets from identities. Packets to peers may come from others if they are to be forwarded.
    let from = || other(MetaKeys::Iifname);
    drop(Chain::Arriving, from(), vec![AnyHit(Source)]);
    drop(Chain::Arriving, from(), vec![AnyLsi(Source)]);
    let to_hits = if config.forward { hits(Destination, true).collect() } else { vec![AnyHit(Destination)] };
    let to_lsis = if config.forward { lsis(Destination, true).collect() } else { vec![AnyLsi(Destination)] };
    to_hits.into_iter().chain(to_lsis).for_each(|to: Condition| drop(Chain::Arriving, from(), vec![to]));
    // A program may send from any address (IPV6_FREEBIND), but to other programs of this host only from our own identities.
    let local = || vec![interface(MetaKeys::Iifname, "lo", true)];
    drop(Chain::Arriving, local(), std::iter::once(AnyHit(Source)).chain(hits(Source, false)).collect());
    drop(Chain::Arriving, local(), std::iter::once(AnyLsi(Source)).chain(lsis(Source, false)).collect());

    // Nothing but the tunnel takes packets to identities, or from ours. What peers send to others is forwarded only if it may.
    let to = || other(MetaKeys::Oifname);
    drop(Chain::Leaving, to(), vec![AnyHit(Destination)]);
    drop(Chain::Leaving, to(), vec![AnyLsi(Destination)]);
    let from_hits = if config.forward { hits(Source, true).collect() } else { vec![AnyHit(Source)] };
    let from_lsis = if config.forward { lsis(Source, true).collect() } else { vec![AnyLsi(Source)] };
    from_hits.into_iter().chain(from_lsis).for_each(|from: Condition| drop(Chain::Leaving, to(), vec![from]));

    if !config.forward {
        drop(Chain::Forwarded, vec![interface(MetaKeys::Iifname, config.device, true)], Vec::new());
        drop(Chain::Forwarded, vec![interface(MetaKeys::Oifname, config.device, true)], Vec::new());
    }
    rules
}

/// Each packet into the device gets one of our marks, so that no program has one that is not its own.
fn marking_rules(config: &FirewallConfig<'_>) -> Vec<Rule> {
    let mut rules = Vec::new();
    if config.marked.is_empty() {
        return rules;
    }
    let device = |is| Condition::Interface { key: MetaKeys::Oifname, name: config.device.to_owned(), is };
    for (chain, _) in MARKING_CHAINS {
        rules.push(Rule { chain, conditions: vec![device(false)], action: Action::Pass });
    }
    for family in [Family::Four, Family::Six] {
        for marked in config.marked {
            let mut conditions = vec![Condition::Family(family), Condition::User(marked.user)];
            conditions.extend(marked.cgroup.map(Condition::Cgroup));
            rules.push(Rule { chain: Chain::Begun, conditions, action: Action::Mark(family, marked.mark) });
        }
        for (chain, _) in MARKING_CHAINS {
            rules.push(Rule { chain, conditions: vec![Condition::Family(family)], action: Action::Mark(family, 0) });
        }
    }
    rules
}

/// Messages of one transaction.
struct Batch {
    chain: Chained<'static>,
    table: CString,
    /// The sequence number of the last message that is answered.
    last: u32,
}

impl Batch {
    fn new(table: CString) -> Self {
        let mut chain = Chained::new(0);
        chain.request().op_batch_begin_do(&batch_header());
        Self { chain, table, last: 0 }
    }

    /// Each table is made before, so that it is no error where there is none.
    fn remove_tables(&mut self, devices: &[String]) -> io::Result<()> {
        for device in devices {
            let name = c_string(&format!("{PREFIX}{device}"))?;
            self.replace(&name);
        }
        Ok(())
    }

    fn replace(&mut self, name: &std::ffi::CStr) {
        self.chain.request().set_create().op_newtable_do(&header()).encode().push_name(name);
        self.chain.request().op_deltable_do(&header()).encode().push_name(name);
        self.last += 2;
    }

    fn table(&mut self, flags: Option<u32>) {
        let name = self.table.clone();
        self.replace(&name);
        let mut request = self.chain.request().set_create().op_newtable_do(&header());
        let attributes = request.encode().push_name(&name);
        if let Some(flags) = flags {
            attributes.push_flags(flags);
        }
        self.last += 1;
    }

    fn lsis(&mut self, config: &FirewallConfig<'_>) {
        /// What `nft` calls ipv4_addr.
        const IPV4_ADDRESS: u32 = 7;
        self.chain
            .request()
            .set_create()
            .op_newset_do(&header())
            .encode()
            .push_table(&self.table)
            .push_name(LSIS)
            .push_flags(0)
            .push_key_type(IPV4_ADDRESS)
            .push_key_len(4)
            .push_id(1);
        self.last += 1;
        let all: Vec<Lsi> = config.lsis.iter().chain(config.peers).copied().collect();
        for some in all.chunks(ELEMENTS) {
            let mut request = self.chain.request().set_create().op_newsetelem_do(&header());
            let mut elements = request.encode().push_table(&self.table).push_set(LSIS).push_set_id(1).nested_elements();
            for lsi in some {
                elements = elements.nested_elem().nested_key().push_value(&lsi.0).end_nested().end_nested();
            }
            drop(elements);
            self.last += 1;
        }
    }

    fn chain(&mut self, chain: Chain, hook: u32, priority: i32) {
        self.chain
            .request()
            .set_create()
            .op_newchain_do(&header())
            .encode()
            .push_table(&self.table)
            .push_name(chain.name())
            .push_type(c"filter")
            .nested_hook()
            .push_num(hook)
            .push_priority(priority);
        self.last += 1;
    }

    fn rule(&mut self, rule: &Rule) {
        let mut request = self.chain.request().set_create().set_append().op_newrule_do(&header());
        let attributes = request.encode().push_table(&self.table).push_chain(rule.chain.name());
        let mut list = attributes.nested_expressions();
        for condition in &rule.conditions {
            list = expressions(list, condition);
        }
        list = list.nested_elem().nested_data_counter().end_nested().end_nested();
        if let Action::Mark(family, mark) = rule.action {
            list = marked_with(list, family, mark);
        }
        let verdict = if rule.action == Action::Drop { VerdictCode::Drop } else { VerdictCode::Accept };
        list.nested_elem()
            .nested_data_immediate()
            .push_dreg(Registers::RegVerdict as u32)
            .nested_data()
            .nested_verdict()
            .push_code(verdict as u32);
        self.last += 1;
    }

    /// All of it or nothing.
    fn commit(mut self, socket: &mut Socket) -> io::Result<CString> {
        self.chain.request().op_batch_end_do(&batch_header());
        socket.send(self.chain.finalize().payload(), 0)?;
        loop {
            let (datagram, _) = socket.recv_from_full()?;
            for message in messages(&datagram).filter(|message| message.message_type() == ERROR) {
                error_of(message.payload())?;
                if message.sequence_number() == self.last {
                    return Ok(self.table);
                }
            }
        }
    }
}

fn expressions<P: Pusher>(list: PushExprListAttrs<P>, condition: &Condition) -> PushExprListAttrs<P> {
    /// Where the two addresses are in their headers (RFC 791 §3.1, RFC 8200 §3).
    const V4: (Family, [u32; 2]) = (Family::Four, [12, 16]);
    const V6: (Family, [u32; 2]) = (Family::Six, [8, 24]);
    let of = |list, family: Family| equal(meta(list, MetaKeys::Nfproto), &[family.number()], true);
    let address = |list, (family, [source, destination]): (Family, [u32; 2]), end, length| {
        let list = of(list, family);
        payload(list, if end == End::Source { source } else { destination }, length)
    };
    match condition {
        Condition::Interface { key, name, is } => {
            // The kernel compares all of IFNAMSIZ.
            let mut whole = [0; 16];
            whole.iter_mut().zip(name.as_bytes()).for_each(|(to, from)| *to = *from);
            equal(meta(list, *key), &whole, *is)
        }
        Condition::AnyHit(end) => {
            let masked = masked(address(list, V6, *end, 4), &[0xff, 0xff, 0xff, 0xf0]);
            equal(masked, &[0x20, 0x01, 0x00, 0x20], true)
        }
        Condition::Hit { end, hit, is } => equal(address(list, V6, *end, 16), &hit.0, *is),
        Condition::AnyLsi(end) => lookup(address(list, V4, *end, 4)),
        Condition::Lsi { end, lsi, is } => equal(address(list, V4, *end, 4), &lsi.0, *is),
        Condition::Family(family) => of(list, *family),
        // Without a user there is nothing to compare, and the rule ends there.
        Condition::User(None) => meta(list, MetaKeys::Skuid),
        Condition::User(Some(user)) => equal(meta(list, MetaKeys::Skuid), &user.to_ne_bytes(), true),
        Condition::Cgroup(Ancestor { level, id }) => equal(socket_cgroup(list, *level), &id.to_ne_bytes(), true),
    }
}

fn meta<P: Pusher>(list: PushExprListAttrs<P>, key: MetaKeys) -> PushExprListAttrs<P> {
    let list = list.nested_elem().nested_data_meta();
    list.push_dreg(Registers::Reg1 as u32).push_key(key as u32).end_nested().end_nested()
}

fn payload<P: Pusher>(list: PushExprListAttrs<P>, offset: u32, length: u32) -> PushExprListAttrs<P> {
    let list = list.nested_elem().nested_data_payload().push_dreg(Registers::Reg1 as u32);
    list.push_base(PayloadBase::NetworkHeader as u32).push_offset(offset).push_len(length).end_nested().end_nested()
}

/// Another DSCP. In IPv4 it is the upper six bits of the second byte, in IPv6 six bits across the first two (RFC 2474 §3).
fn marked_with<P: Pusher>(list: PushExprListAttrs<P>, family: Family, mark: u8) -> PushExprListAttrs<P> {
    /// NFT_PAYLOAD_CSUM_INET, and where IPv4 has its checksum.
    const CHECKSUM: (u32, u32) = (1, 10);
    let (keep, set) = match family {
        Family::Four => (0xff03, u16::from(mark) << 2),
        Family::Six => (0xf03f_u16, u16::from(mark) << 6),
    };
    let list = replaced(payload(list, 0, 2), &keep.to_be_bytes(), &set.to_be_bytes());
    let write = list.nested_elem().nested_data_payload().push_sreg(Registers::Reg1 as u32);
    let mut write = write.push_base(PayloadBase::NetworkHeader as u32).push_offset(0).push_len(2);
    if family == Family::Four {
        write = write.push_csum_type(CHECKSUM.0).push_csum_offset(CHECKSUM.1);
    }
    write.end_nested().end_nested()
}

/// The cgroup of the packet's socket, or of those around it the one at this level. By hand, because the library does not know it.
fn socket_cgroup<P: Pusher>(list: PushExprListAttrs<P>, level: u32) -> PushExprListAttrs<P> {
    /// NFTA_SOCKET_KEY with NFT_SOCKET_CGROUPV2, NFTA_SOCKET_DREG, NFTA_SOCKET_LEVEL
    const KEY: (u16, u32) = (1, 3);
    const REGISTER: u16 = 2;
    const LEVEL: u16 = 3;
    let attributes = [KEY, (REGISTER, Registers::Reg1 as u32), (LEVEL, level)];
    by_hand(list, c"socket", &attributes.map(|(number, value)| (8, number, value.to_be_bytes().to_vec())))
}

/// One of the set. By hand, because the specification from which the library is generated has the attributes of `lookup` in
/// another order than the kernel's enum nft_lookup_attributes.
fn lookup<P: Pusher>(list: PushExprListAttrs<P>) -> PushExprListAttrs<P> {
    /// NFTA_LOOKUP_SET, NFTA_LOOKUP_SREG
    const SET: u16 = 1;
    const REGISTER: u16 = 2;
    let name = [LSIS.to_bytes_with_nul(), &[0; 3]].concat();
    by_hand(list, c"lookup", &[(9, SET, name), (8, REGISTER, (Registers::Reg1 as u32).to_be_bytes().to_vec())])
}

/// An expression of these attributes: length with four bytes of header and without padding, number, and value with padding.
fn by_hand<P: Pusher>(
    list: PushExprListAttrs<P>,
    name: &std::ffi::CStr,
    attributes: &[(u16, u16, Vec<u8>)],
) -> PushExprListAttrs<P> {
    /// NFTA_EXPR_DATA with NLA_F_NESTED
    const DATA: u16 = 2 | 0x8000;
    let mut element = list.nested_elem().push_name(name);
    let bytes = element.as_vec_mut();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let all = attributes.iter().fold(4, |all, (length, ..)| all + length.next_multiple_of(4));
    for (length, number, value) in std::iter::once(&(all, DATA, Vec::new())).chain(attributes) {
        bytes.extend(length.to_ne_bytes());
        bytes.extend(number.to_ne_bytes());
        bytes.extend(value);
    }
    element.end_nested()
}

fn masked<P: Pusher>(list: PushExprListAttrs<P>, mask: &[u8; 4]) -> PushExprListAttrs<P> {
    replaced(list, mask, &[0; 4])
}

/// Keeps these bits and adds those.
fn replaced<P: Pusher, const N: usize>(
    list: PushExprListAttrs<P>,
    keep: &[u8; N],
    set: &[u8; N],
) -> PushExprListAttrs<P> {
    let register = Registers::Reg1 as u32;
    // A header has few bytes.
    let list = list.nested_elem().nested_data_bitwise().push_sreg(register).push_dreg(register).push_len(N as u32);
    let list = list.nested_mask().push_value(keep).end_nested().nested_xor().push_value(set).end_nested();
    list.end_nested().end_nested()
}

fn equal<P: Pusher>(list: PushExprListAttrs<P>, value: &[u8], is: bool) -> PushExprListAttrs<P> {
    let operator = if is { CmpOps::Eq } else { CmpOps::Neq };
    let list = list.nested_elem().nested_data_cmp().push_sreg(Registers::Reg1 as u32).push_op(operator as u32);
    list.nested_data().push_value(value).end_nested().end_nested().end_nested()
}

/// NLMSG_ERROR, which is also the answer where there is none; NLMSG_DONE; NFT_MSG_DELTABLE of our subsystem.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;

fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

fn header() -> Nfgenmsg {
    Nfgenmsg { nfgen_family: INET, ..Nfgenmsg::default() }
}

fn batch_header() -> Nfgenmsg {
    let mut header = Nfgenmsg::default();
    header.set_res_id(SUBSYSTEM);
    header
}

/// The messages of a datagram, as far as it is whole.
fn messages(datagram: &[u8]) -> impl Iterator<Item = NetlinkBuffer<&[u8]>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(rest).ok()?;
        // Messages are aligned to four bytes (NLMSG_ALIGN).
        rest = rest.get((message.length() as usize).next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

fn error_of(payload: &[u8]) -> io::Result<()> {
    let code = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code.wrapping_neg())) }
}

fn table_name(payload: &[u8]) -> Option<String> {
    let (_, attributes) = nftables::OpNewtableDo::decode_request(payload);
    attributes.get_name().ok()?.to_str().ok().map(str::to_owned)
}

fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// What kernels say of flags that they do not know.
fn is_unknown(error: &io::Error) -> bool {
    const EINVAL: i32 = 22;
    const EOPNOTSUPP: i32 = 95;
    matches!(error.raw_os_error(), Some(EINVAL | EOPNOTSUPP))
}
