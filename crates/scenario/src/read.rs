//! From the tree to the plain data of a scenario, entry by entry.

use std::collections::BTreeMap;

use clock::{Duration, Instant};
use link::{Change, ChangeKind, Processing, Schedule, Trace};
use text::{Diagnostic, did_you_mean};

use crate::jitter::jitter;
use crate::queue::queue;
use crate::schema::Table;
use crate::sinnet::Inside;
use crate::spec::*;
use text::reader::{self, Reader};
use text::toml::{Node, Value};
use text::units::{self, Wrong};

/// More flows than this in one scenario are a slip of the pen.
pub(crate) const MOST_FLOWS: u64 = 1_000_000;

const NODE_HELP: &str = "a name of up to 32 letters, digits, '-', '_' or '.', such as \"r1\"";

/// The nodes of a scenario: those that links name.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) names: Vec<String>,
    index: BTreeMap<String, NodeIndex>,
}

impl Nodes {
    fn define(&mut self, node: &Node) -> Result<NodeIndex, Diagnostic> {
        let name = reader::text(node, "\"r1\"")?;
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 32 || !name.chars().all(good) {
            return Err(node.place.error(format!("\"{name}\" is no name for a node"), Some(NODE_HELP.into())));
        }
        if let Some(index) = self.index.get(name) {
            return Ok(*index);
        }
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), self.names.len() - 1);
        Ok(self.names.len() - 1)
    }

    pub(crate) fn find(&self, node: &Node) -> Result<NodeIndex, Diagnostic> {
        let name = reader::text(node, "\"r1\"")?;
        self.index.get(name).copied().ok_or_else(|| {
            let known = did_you_mean(name, self.names.iter().map(String::as_str));
            let help = known.unwrap_or_else(|| "nodes are those that a [[link]] names".to_owned());
            node.place.error(format!("no link leads to a node \"{name}\""), Some(help))
        })
    }
}

/// How long hosts take for a packet, by name.
pub(crate) const PROCESSING: [(&str, Processing); 3] =
    [("usual", Processing::Usual), ("auto", Processing::Packet), ("wander", Processing::Wander)];

/// Reads `processing`.
pub(crate) fn processing(node: &Node) -> Result<Processing, Diagnostic> {
    match &node.value {
        Value::String(written) if units::time(written).is_err() => reader::word(node, &PROCESSING),
        _ => reader::time(node).map(Processing::AtMost),
    }
}

/// Reads one `[[link]]`.
pub(crate) fn link(node: &Node, nodes: &mut Nodes, duration: Duration) -> Result<LinkSpec, Diagnostic> {
    let table = Reader::new(Table::Link.what(), node)?;
    let between = table.optional("between");
    let (from, to) = (table.optional("from"), table.optional("to"));
    let (from, to, duplex) = match (between, from, to) {
        (Some(between), None, None) => match &between.node.value {
            Value::Array(ends) if ends.len() == 2 => (nodes.define(&ends[0])?, nodes.define(&ends[1])?, true),
            _ => return Err(between.node.place.error("a link is between two nodes", Some(between_help()))),
        },
        (None, Some(from), Some(to)) => (nodes.define(&from.node)?, nodes.define(&to.node)?, false),
        (None, Some(one), None) | (None, None, Some(one)) => {
            return Err(one.key_place.error("a one-way link needs both `from` and `to`", Some(between_help())));
        }
        (Some(between), _, _) => {
            return Err(between
                .key_place
                .error("a link is either `between` two nodes, both ways, or `from` one `to` the other", None));
        }
        (None, None, None) => return Err(table.place().error("a link needs its two ends", Some(between_help()))),
    };
    if from == to {
        let place = between.or_else(|| table.optional("to")).map_or(table.place(), |entry| &entry.node.place);
        let help = "the two ends of a link are different nodes".to_owned();
        return Err(place.error(format!("a link from \"{}\" to itself", nodes.names[from]), Some(help)));
    }
    let name = match table.optional("name") {
        Some(entry) => reader::text(&entry.node, "\"dsl\"")?.to_owned(),
        None => format!("{}-{}", nodes.names[from], nodes.names[to]),
    };
    let rate = table.read("rate", optional_rate)?.flatten();
    let trace = table.read("trace", crate::trace::trace)?;
    let schedule = table.read("schedule", |node| reader::word(node, &Schedule::NAMES))?;
    check_rates(&table, rate)?;
    let (trace, remark) = trace.unzip();
    let mut remarks: Vec<String> = remark.flatten().into_iter().collect();
    let rate = rate.or_else(|| trace.as_ref().map(Trace::mean_rate));
    let delay = table.read("delay", reader::time)?.unwrap_or_default();
    let queue_entry = table.optional("queue");
    let queue = queue_entry.map(|entry| queue(&entry.node)).transpose()?.unwrap_or_default();
    let loss = table.read("loss", crate::loss::loss)?.unwrap_or_default();
    let mtu = table.read("mtu", mtu)?.flatten();
    let reorder = table.read("reorder", reader::boolean)?.unwrap_or(false);
    let mut changes = Vec::new();
    for node in table.tables("change")? {
        change(node, &mut changes, duration)?;
    }
    changes.sort_by_key(|change: &Change| change.at);
    remarks.extend(longest_pause(&changes, duration).map(|told| format!("{name}: {told}")));
    let has_rate =
        rate.is_some() || changes.iter().any(|change| matches!(change.what, ChangeKind::Rate(Some(rate)) if rate > 0));
    if let Some(entry) = queue_entry.filter(|_| queue != QueueSpec::Unlimited && !has_rate) {
        let help = "give the link a `rate`, or leave `queue` out".to_owned();
        return Err(entry.key_place.error("nothing ever waits for a link without a `rate`", Some(help)));
    }
    let delays =
        changes.iter().filter_map(|change| if let ChangeKind::Delay(delay) = change.what { Some(delay) } else { None });
    let shortest = delays.fold(delay, Duration::min);
    let jitter = table.read("jitter", |node| jitter(node, shortest))?.unwrap_or_default();
    Ok(LinkSpec {
        name,
        from,
        to,
        duplex,
        rate,
        trace,
        schedule,
        delay,
        jitter,
        reorder,
        queue,
        loss,
        mtu,
        changes,
        remarks,
    })
}

fn between_help() -> String {
    "between = [\"a\", \"r1\"] for both directions, from = \"a\" and to = \"r1\" for one".to_owned()
}

/// A trace and a schedule say what the rate is.
fn check_rates(table: &Reader<'_>, rate: Option<u64>) -> Result<(), Diagnostic> {
    let of_changes = table.tables("change")?.iter().filter_map(|node| match &node.value {
        Value::Table(change) => change.get("rate"),
        _ => None,
    });
    let rates = || table.optional("rate").into_iter().chain(of_changes);
    let (trace, schedule) = (table.optional("trace"), table.optional("schedule"));
    match (trace, schedule) {
        (Some(_), Some(schedule)) => {
            let help = "leave one of the two out".to_owned();
            Err(schedule.key_place.error("a link has a `trace` or a `schedule`", Some(help)))
        }
        (Some(_), None) => rates().next().map_or(Ok(()), |entry| {
            let help = "leave `rate` out".to_owned();
            Err(entry.key_place.error("the `trace` says when this link sends", Some(help)))
        }),
        (None, Some(schedule)) if rate.is_none() => {
            let help = "give the link a `rate`".to_owned();
            Err(schedule.key_place.error("a `schedule` makes a `rate` go up and down", Some(help)))
        }
        (None, Some(_)) => rates().nth(1).map_or(Ok(()), |entry| {
            let help = "leave one of the two out".to_owned();
            Err(entry.key_place.error("the `schedule` says what the rate is", Some(help)))
        }),
        (None, None) => Ok(()),
    }
}

/// So long without a rate is remarked on.
const LONG_PAUSE: Duration = Duration::from_secs(5);

/// The longest time in which a link has the rate zero, in a sentence.
fn longest_pause(changes: &[Change], duration: Duration) -> Option<String> {
    let rates = || {
        changes
            .iter()
            .filter_map(|change| if let ChangeKind::Rate(rate) = change.what { Some((change.at, rate)) } else { None })
    };
    let ends = rates().skip(1).map(|(at, _)| at).chain([Instant::ZERO + duration]);
    let pauses = rates().zip(ends).filter(|((_, rate), _)| *rate == Some(0));
    let (at, pause) =
        pauses.map(|((from, _), to)| (from, to.saturating_since(from))).max_by_key(|(_, pause)| *pause)?;
    let from = at.saturating_since(Instant::ZERO);
    (pause >= LONG_PAUSE).then(|| format!("nothing can be sent for {pause} from {from} on: what comes waits"))
}

/// The largest packet of a link, or that it takes any.
fn mtu(node: &Node) -> Result<Option<u32>, Diagnostic> {
    let help = "the largest packet in bytes, from 576, as in mtu = 1400, or mtu = \"unlimited\"";
    if matches!(&node.value, Value::String(text) if text == "unlimited") {
        return Ok(None);
    }
    reader::whole(node, 576, u32::from(u16::MAX)).map(Some).map_err(|error| error.with_help(help))
}

/// So often things change at most.
const MOST_CHANGES: usize = 1_000_000;
/// A lab's run may last so many times the duration.
const PATIENCE: u64 = 16;

fn change(node: &Node, changes: &mut Vec<Change>, duration: Duration) -> Result<(), Diagnostic> {
    let table = Reader::new(Table::Change.what(), node)?;
    let at = table.need("at", "at = \"10s\"", reader::instant)?;
    let before = changes.len();
    let mut push = |what| changes.push(Change { at, what });
    if let Some(entry) = table.optional("rate") {
        push(ChangeKind::Rate(rate_or_none(&entry.node)?));
    }
    if let Some(entry) = table.optional("delay") {
        push(ChangeKind::Delay(reader::time(&entry.node)?));
    }
    if let Some(entry) = table.optional("loss") {
        push(ChangeKind::Loss(crate::loss::loss(&entry.node)?));
    }
    if let Some(entry) = table.optional("mtu") {
        push(ChangeKind::Mtu(mtu(&entry.node)?));
    }
    let (down, up) = (table.optional("down"), table.optional("up"));
    if let (Some(_), Some(up)) = (down, up) {
        let help = "write two changes, each with its own `at`".to_owned();
        return Err(up.key_place.error("a link does not go down and up at the same time", Some(help)));
    }
    for (entry, down) in [(down, true), (up, false)] {
        if let Some(entry) = entry {
            let yes = reader::boolean(&entry.node)?;
            push(if yes == down { ChangeKind::Down } else { ChangeKind::Up });
        }
    }
    if changes.len() == before {
        let help = "one of rate, delay, loss, mtu, down = true, up = true".to_owned();
        return Err(node.place.error("nothing changes here", Some(help)));
    }
    let Some(entry) = table.optional("every") else { return Ok(()) };
    let every = reader::time(&entry.node)?;
    let once = changes.split_off(before);
    let end = Instant::ZERO + duration * PATIENCE;
    let mut from = at;
    while from <= end {
        if every.is_zero() || changes.len() + once.len() > MOST_CHANGES {
            let message = format!("so often, this is more than {MOST_CHANGES} changes");
            return Err(entry.node.place.error(message, Some("for example every = \"15s\"".to_owned())));
        }
        changes.extend(once.iter().map(|change| Change { at: from, ..*change }));
        from += every;
    }
    Ok(())
}

/// A rate to come, or "unlimited": zero lets everything wait.
fn rate_or_none(node: &Node) -> Result<Option<u64>, Diagnostic> {
    match &node.value {
        Value::String(text) if text == "unlimited" => Ok(None),
        _ => reader::rate(node).map(Some),
    }
}

/// A rate, or "unlimited".
fn optional_rate(node: &Node) -> Result<Option<u64>, Diagnostic> {
    match &node.value {
        Value::String(text) if text == "unlimited" => Ok(None),
        _ => rate(node).map(Some),
    }
}

fn rate(node: &Node) -> Result<u64, Diagnostic> {
    match reader::rate(node)? {
        0 => {
            let help = "an outage is `down = true` in a [[link.change]], a pause rate = \"0bit/s\" there; a rate is at least \"1bit/s\"".to_owned();
            Err(node.place.error("a rate of zero carries nothing", Some(help)))
        }
        rate => Ok(rate),
    }
}

/// Reads one `[[flow]]`; its paths may still be empty.
pub(crate) fn flow(node: &Node, number: usize, nodes: &Nodes) -> Result<FlowSpec, Diagnostic> {
    let table = Reader::new(Table::Flow.what(), node)?;
    let name = match table.optional("name") {
        Some(entry) => reader::text(&entry.node, "\"download\"")?.to_owned(),
        None => format!("flow{number}"),
    };
    let from = table.need("from", "from = \"b\"", |node| nodes.find(node))?;
    let to = table.required("to", "to = \"a\"")?;
    let to_place = &to.node.place;
    let to = nodes.find(&to.node)?;
    if from == to {
        return Err(to_place.error("a flow leads to another node than it starts from", None));
    }
    let protocol = table.need("protocol", "protocol = \"tcp\"", |node| reader::word(node, &Protocol::NAMES))?;
    let name_of = |key| table.read(key, |node| reader::text(node, "\"newreno\"").map(str::to_owned));
    let (congestion, profile, scheduler) = (name_of("congestion")?, name_of("profile")?, name_of("scheduler")?);
    let count = table.read("count", |node| reader::whole(node, 1, MOST_FLOWS))?.unwrap_or(1);
    let paths = table.read("paths", |node| paths(node, nodes))?.unwrap_or_default();
    let packet_size = table.read("packet_size", packet_size)?;
    let receiver_window = table.read("receiver_window", amount)?;
    let data = table.read("amount", amount)?;
    let start = table.read("start", moment)?.unwrap_or(Moment::At(Instant::ZERO));
    let stop = table.read("stop", |node| match moment(node)? {
        stop if earliest(stop) <= latest(start) => Err(node.place.error("the flow stops before it has started", None)),
        stop => Ok(stop),
    })?;
    let tcp = crate::tcp::tcp(&table, amount)?;
    let sinnet = crate::sinnet::sinnet(&table)?;
    let mhip = crate::mhip::mhip(&table, amount)?;
    let mptcp = crate::mptcp::mptcp(&table)?;
    let sctp = crate::sctp::sctp(&table, amount)?;
    let rate = table.read("rate", rate)?;
    let is_udp = protocol == Protocol::Udp || sinnet.inside == Inside::Udp;
    if is_udp && rate.is_none() {
        let help = "for example rate = \"1Mbit/s\"".to_owned();
        return Err(table.place().error("a UDP source needs its `rate`", Some(help)));
    }
    let on_off = table.read("on_off", on_off)?;
    Ok(FlowSpec {
        name,
        from,
        to,
        protocol,
        congestion,
        profile,
        scheduler,
        count: count as u32,
        paths,
        packet_size,
        receiver_window,
        amount: data.filter(|amount| *amount != Amount::Unlimited),
        start,
        start_with: None, // resolved when all flows are known
        stop,
        rate,
        on_off,
        tcp,
        sinnet,
        mhip,
        mptcp,
        sctp,
    })
}

fn paths(node: &Node, nodes: &Nodes) -> Result<Vec<Vec<NodeIndex>>, Diagnostic> {
    let help =
        || Some("a list of paths, each a list of nodes: [[\"b\", \"r1\", \"a\"], [\"b\", \"r2\", \"a\"]]".to_owned());
    let Value::Array(paths) = &node.value else {
        return Err(node.place.error(format!("paths are needed here, not {}", node.value.kind()), help()));
    };
    if paths.is_empty() {
        return Err(node.place.error("a flow without a path goes nowhere", help()));
    }
    let path = |path: &Node| match &path.value {
        Value::Array(hops) => hops.iter().map(|hop| nodes.find(hop)).collect(),
        other => Err(path.place.error(format!("a path is a list of nodes, not {}", other.kind()), help())),
    };
    paths.iter().map(path).collect()
}

fn packet_size(node: &Node) -> Result<u32, Diagnostic> {
    // 41 bytes: an IPv4 and a TCP header and one byte.
    let bytes = match &node.value {
        Value::String(_) => reader::quantity(node, "a size", "1250 or \"1250B\"", units::bytes)?,
        _ => reader::whole(node, 41, 65_535)?,
    };
    match u32::try_from(bytes) {
        Ok(bytes @ 41..=65_535) => Ok(bytes),
        _ => Err(node.place.error("a packet has 41 to 65535 bytes on the wire", None)),
    }
}

fn amount(node: &Node) -> Result<Amount, Diagnostic> {
    if matches!(&node.value, Value::String(text) if text == "unlimited") {
        return Ok(Amount::Unlimited);
    }
    let amount =
        reader::quantity(node, "an amount", "\"10MB\", \"100p\" or \"unlimited\"", |text| {
            match units::packets(text) {
                Ok(packets) => Ok(Amount::Packets(packets.into())),
                Err(Wrong::Form) => units::bytes(text).map(Amount::Bytes),
                Err(wrong) => Err(wrong),
            }
        })?;
    match amount {
        Amount::Packets(0) | Amount::Bytes(0) => Err(node.place.error("nothing is no amount", None)),
        amount => Ok(amount),
    }
}

fn moment(node: &Node) -> Result<Moment, Diagnostic> {
    match &node.value {
        Value::Array(range) => match range.as_slice() {
            [from, to] => {
                let (start, end) = (reader::instant(from)?, reader::instant(to)?);
                if start <= end {
                    Ok(Moment::Between(start, end))
                } else {
                    Err(node.place.error("the range ends before it starts", None))
                }
            }
            _ => Err(node.place.error("a range has two ends", Some("for example [\"0s\", \"1s\"]".to_owned()))),
        },
        _ => reader::instant(node).map(Moment::At),
    }
}

fn earliest(moment: Moment) -> Instant {
    match moment {
        Moment::At(at) | Moment::Between(at, _) => at,
    }
}

fn latest(moment: Moment) -> Instant {
    match moment {
        Moment::At(at) | Moment::Between(_, at) => at,
    }
}

/// Whether times of sending and pausing are drawn.
pub(crate) const TIMES: [(&str, bool); 2] = [("fixed", false), ("exponential", true)];

fn on_off(node: &Node) -> Result<OnOff, Diagnostic> {
    let table = Reader::new(Table::OnOff.what(), node)?;
    let on = table.need("on", "on = \"500ms\"", reader::time)?;
    let off = table.need("off", "off = \"500ms\"", reader::time)?;
    let exponential = table.read("times", |node| reader::word(node, &TIMES))?.unwrap_or(false);
    if on.is_zero() {
        return Err(node.place.error("a source that is never on sends nothing", None));
    }
    Ok(OnOff { on, off, exponential })
}
