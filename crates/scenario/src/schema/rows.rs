//! The rows of everything that is no protocol's own.

use super::types::{Type, UNLIMITED, names};
use super::{Key, Table, Variants, flow};
use crate::spec::Protocol;

const ALL: Variants = Variants::ALL;
const RATE: Type = Type::Either(&[Type::Rate, UNLIMITED]);
const MTU: Type = Type::Either(&[Type::Whole(576, 65_535), UNLIMITED]);
const AMOUNT: Type = Type::Either(&[Type::Amount, UNLIMITED]);
const MOMENT: Type = Type::Either(&[Type::Time, Type::Range]);
const JITTER: Type = Type::Either(&[Type::Time, Type::Table(Table::Jitter)]);
const PROCESSING: Type = Type::Either(&[Type::Words(|| names(&crate::read::PROCESSING)), Type::Time]);
const LOSS: Type = Type::Either(&[Type::Probability, Type::Table(Table::Loss)]);
const QUEUE: Type = Type::Either(&[Type::Length, UNLIMITED, Type::Table(Table::Queue)]);

/// The top of the file.
pub(super) const TOP: &[Key] = &[
    top("name", Type::Text, "", "What the scenario is called in results.").example("\"two paths\"").everywhere(),
    top("duration", Type::Time, "", "How long it runs; of a single download in the lab, what its size follows from.")
        .example("\"20s\"")
        .everywhere(),
    top("warm_up", Type::Time, "\"0s\"", "What happens before this is not measured; in the lab, a single download is measured from then to the end of the duration, not from its first byte to its last.")
        .example("\"5s\"")
        .everywhere(),
    top("seed", Type::Whole(0, i64::MAX as u64), "1", "Everything random follows from it.").example("7").everywhere(),
    top("processing", PROCESSING, "\"usual\"", "The random times that hosts take for each packet they send: \"usual\" up to that of a full packet on the slowest link of the route, and 1 ms, of \"sinnet\", with profile \"linux\" and in the lab; of all flows, \"auto\" up to that of the packet however long, \"wander\" that and up to eight times as much, drawn anew about every second, so that at a drop-tail queue flows alike share alike; and a time up to that time.")
        .example("\"auto\"")
        .everywhere(),
    top("extends", Type::Text, "none", "A file beside this one, to whose keys those of this file are added, or which they replace; links and flows are matched by name.")
        .example("\"base.toml\"")
        .everywhere(),
    top("link", Type::Tables(Table::Link), "", "The links. Nodes are what links name; from one node to another there is one at most, since paths name nodes.")
        .everywhere(),
    top("flow", Type::Tables(Table::Flow), "none", "The flows.").everywhere(),
    top("node", Type::Tables(Table::Node), "each link a locator", "Locators of nodes, for `sinnet fairness`.").sim(ALL),
    top("sweep", Type::Sweep, "none", "All combinations of these values are run.").sim(ALL),
];

/// What flows of several protocols have.
pub(super) const FLOW: &[Key] = &[
    flow("name", Type::Text, "\"flow1\" and so on", "What the flow is called in results and in keys of a sweep.")
        .example("\"download\"")
        .everywhere(),
    flow("from", Type::Text, "", "The node that sends the data.").example("\"b\"").everywhere(),
    flow("to", Type::Text, "", "The node that receives them.").example("\"a\"").everywhere(),
    flow("protocol", Type::Words(|| names(&Protocol::NAMES)), "", "What it speaks.")
        .example("\"tcp\"")
        .sim(Variants::OF_SIM)
        .lab(Variants::OF_VIRTUAL_LAB)
        .real_lab(Variants::OF_LAB),
    flow("count", Type::Whole(1, crate::read::MOST_FLOWS), "1", "So many flows alike.")
        .example("3")
        .sim(Variants::OF_SIM)
        .lab(Variants::OF_VIRTUAL_LAB)
        .real_lab(Variants::OF_LAB),
    flow("paths", Type::Paths, "the path of fewest links, of several the one of least delay", "The nodes of each path.")
        .example("[[\"b\", \"r1\", \"a\"], [\"b\", \"r2\", \"a\"]]")
        .sim(Variants::OF_SIM)
        .lab(Variants::OF_VIRTUAL_LAB)
        .real_lab(Variants::OF_LAB),
    flow("congestion", Type::Text, "\"sack\"; with profile \"ns2\" \"newreno\"; with several paths \"lia\"; of \"cmt-sctp\" \"rp-mp-v2\", of \"sctp\" \"reno-sp\"; of \"sinnet\", with profile \"linux\" and in the lab \"cubic\"", "Congestion control by name; of \"sinnet\", that of the TCP inside.")
        .example("\"reno\"")
        .sim(Variants::TCP.or(Variants::SINNET_TCP).or(Variants::MHIP_1).or(Variants::MPTCP).or(Variants::SCTP))
        .lab(Variants::TCP.or(Variants::SINNET_TCP))
        .real_lab(Variants::TCP.or(Variants::SINNET_TCP).or(Variants::MPTCP)),
    flow("profile", Type::Words(|| vec!["ns2", "linux"]), "none; of \"mhip\" \"ns2\"", "A set of TCP settings, which the other keys override: those of the ns-2 runs, or, of \"tcp\", those of Linux on hosts as in the lab, which take a random time for each packet. Where all flows but those of \"sinnet\" have \"ns2\", links are as in ns-2, too.")
        .example("\"ns2\"")
        .sim(Variants::TCP.or(Variants::UDP).or(Variants::MHIP).or(Variants::MPTCP)),
    flow("scheduler", Type::Text, "\"fastest-path-first\"; of \"mptcp\" \"lowest-rtt\", of SCTP \"round-robin\"", "Which path a packet takes, by name; of \"mhip\" only \"fastest-path-first\", of SCTP only \"round-robin\".")
        .example("\"redundant\"")
        .sim(Variants::SINNET.or(Variants::MHIP).or(Variants::MPTCP).or(Variants::SCTP))
        .lab(Variants::SINNET),
    flow("packet_size", Type::PacketSize, "1500; with profile \"ns2\" 1250; of \"sinnet\" with UDP inside 1280", "Bytes of a full packet on the wire; of \"sinnet\" with UDP inside, of the packet inside.")
        .example("1000")
        .sim(Variants::OF_SIM.except(Variants::SINNET_PING))
        .lab(Variants::SINNET_UDP),
    flow("receiver_window", AMOUNT, "the protocol's own", "What the receiver can hold.")
        .example("\"30p\"")
        .sim(Variants::TCP.or(Variants::SINNET_TCP).or(Variants::MHIP).or(Variants::MPTCP).or(Variants::SCTP)),
    flow("amount", AMOUNT, "\"unlimited\"; of a single download in the lab what links carry in the duration", "How much data there is to send.")
        .example("\"10MB\"")
        .sim(Variants::OF_SIM.except(Variants::SINNET_PING))
        .lab(Variants::TCP.or(Variants::SINNET_TCP))
        .real_lab(Variants::TCP.or(Variants::SINNET_TCP).or(Variants::MPTCP)),
    flow("start", MOMENT, "\"0s\"", "When it starts.")
        .example("\"1s\"")
        .sim(Variants::OF_SIM)
        .lab(Variants::OF_VIRTUAL_LAB)
        .real_lab(Variants::OF_LAB),
    flow("start_with", Type::Text, "none", "The flow with which it starts, in place of `start`; one draw serves both.")
        .example("\"download\"")
        .sim(Variants::OF_SIM)
        .lab(Variants::OF_VIRTUAL_LAB)
        .real_lab(Variants::OF_LAB),
    flow("stop", MOMENT, "the end of the scenario", "When its application stops.").example("\"9s\"").sim(Variants::OF_SIM),
    flow("rate", Type::Rate, "", "The rate of a UDP source, with headers.")
        .example("\"2Mbit/s\"")
        .sim(Variants::UDP.or(Variants::SINNET_UDP))
        .lab(Variants::SINNET_UDP),
    flow("on_off", Type::Table(Table::OnOff), "no pauses", "A UDP source sends and pauses in turn.")
        .example("{ on = \"1s\", off = \"500ms\" }")
        .sim(Variants::UDP.or(Variants::SINNET_UDP)),
];

/// Links, what is in them, and the rest.
pub(super) const REST: &[Key] = &[
    link("between", Type::Names, "`from` and `to`", "The two ends of a link that is alike in both directions.")
        .example("[\"a\", \"r1\"]"),
    link("from", Type::Text, "`between`", "The sending end of a link in one direction.").example("\"a\""),
    link("to", Type::Text, "`between`", "Its receiving end.").example("\"r1\""),
    link("name", Type::Text, "\"a-r1\", after its ends", "What the link is called in results and in keys of a sweep.")
        .example("\"dsl\""),
    link("rate", RATE, "\"unlimited\"", "What it carries in each direction.").example("\"8Mbit/s\""),
    link("trace", Type::Text, "none", "A file of Mahimahi's beside this one, in place of `rate`: on each line the time in ms of an opportunity to send 1500 bytes; where it ends it begins anew."),
    link("schedule", Type::Words(|| names(&link::Schedule::NAMES)), "none", "How the link changes by itself: \"lte\" has another rate every 100 ms, about `rate`, and pauses at times; \"starlink\" has a pause every 15 s, then 60 to 100 % of `rate` and up to 15 ms more than `delay`.")
        .example("\"starlink\""),
    link("delay", Type::Time, "\"0s\"", "Propagation, one way.").example("\"30ms\""),
    link("jitter", JITTER, "none", "What is added to the delay of each packet, drawn anew for each: a time is uniform in ± that time, which is no longer than the delay.")
        .example("\"5ms\""),
    link("reorder", Type::Boolean, "false", "Whether packets whose delay is shorter overtake those before them, as with netem; otherwise they arrive no earlier than those, as on radio links that keep the order, and the mean delay grows.")
        .example("true"),
    link("queue", QUEUE, "\"unlimited\"", "What may wait; drop-tail unless a table says otherwise.")
        .example("\"1.5bdp\""),
    link("loss", LOSS, "0", "The probability that a packet is lost, or a loss with memory.").example("0.01"),
    link("mtu", MTU, "\"unlimited\"", "The largest packet in bytes; larger ones vanish, and nobody is told. In `sinnet sim` the hosts of \"sinnet\" know that of their paths from the start; in `sinnet lab` they find it out.")
        .example("1400"),
    link("change", Type::Tables(Table::Change), "none", "What changes during the run."),
    row(Table::Change, "at", Type::Time, "", "When.").example("\"10s\""),
    row(Table::Change, "every", Type::Time, "once", "Again and again, each time so much later.").example("\"15s\""),
    row(Table::Change, "rate", RATE, "as before", "The new rate; with 0 everything waits for another one.").example("\"1Mbit/s\""),
    row(Table::Change, "delay", Type::Time, "as before", "The new delay.").example("\"40ms\""),
    row(Table::Change, "loss", LOSS, "as before", "The new loss.").example("0.02"),
    row(Table::Change, "mtu", MTU, "as before", "The new largest packet.").example("1400"),
    row(Table::Change, "down", Type::Boolean, "as before", "True: nothing passes any more.").example("true"),
    row(Table::Change, "up", Type::Boolean, "as before", "True: packets pass again.").example("true"),
    row(Table::Jitter, "uniform", Type::Time, "none", "Uniform from this much less to this much more, no more than the delay.")
        .example("\"5ms\""),
    row(Table::Jitter, "normal", Type::Time, "none", "Normal with this standard deviation, no more than the delay; what would be below zero is zero.")
        .example("\"5ms\""),
    row(Table::Jitter, "file", Type::Text, "none", "Delays in ms from a file beside this one: one on each line, of which each is as likely, or lines of a probability and the delay that is not exceeded with it."),
    row(
        Table::Loss,
        "to_bad",
        Type::Probability,
        "`rate`",
        "From the good state to the bad one, for each packet (Gilbert-Elliott).",
    )
    .example("0.01"),
    row(Table::Loss, "to_good", Type::Probability, "`rate`", "And back.").example("0.25"),
    row(Table::Loss, "loss_good", Type::Probability, "0", "Loss in the good state.").example("0.001"),
    row(Table::Loss, "loss_bad", Type::Probability, "1", "Loss in the bad state.").example("0.5"),
    row(Table::Loss, "rate", Type::Probability, "`to_bad` and `to_good`", "The part of packets that are lost, with `correlation` or `burst`.")
        .example("0.01"),
    row(Table::Loss, "correlation", Type::Probability, "0", "The correlation of the losses of two packets, one sent after the other; below 1.")
        .example("0.25"),
    row(Table::Loss, "burst", Type::Number, "1/(1 − `rate`), as without memory", "How many packets are lost one after the other, on average.")
        .example("4"),
    row(Table::OnOff, "on", Type::Time, "", "Mean time of sending.").example("\"1s\"").sim(ALL).lab(Variants::NONE),
    row(Table::OnOff, "off", Type::Time, "", "Mean time of a pause.").example("\"500ms\"").sim(ALL).lab(Variants::NONE),
    row(
        Table::OnOff,
        "times",
        Type::Words(|| names(&crate::read::TIMES)),
        "\"fixed\"",
        "Whether each time is the mean, or drawn from an exponential distribution.",
    )
    .example("\"exponential\"")
    .lab(Variants::NONE),
    row(Table::Node, "name", Type::Text, "", "A node that a link names.").example("\"a\"").lab(Variants::NONE),
    row(Table::Node, "locators", Type::Names, "", "One for all links of the node, or one for each.")
        .example("[\"10.0.0.1\"]")
        .lab(Variants::NONE),
];

const fn top(name: &'static str, value: Type, default: &'static str, says: &'static str) -> Key {
    Key::new(Table::Scenario, name, value, default, says)
}

const fn link(name: &'static str, value: Type, default: &'static str, says: &'static str) -> Key {
    row(Table::Link, name, value, default, says)
}

/// A row that every engine honours.
const fn row(table: Table, name: &'static str, value: Type, default: &'static str, says: &'static str) -> Key {
    Key::new(table, name, value, default, says).everywhere()
}
