//! What happened in the daemon itself, counted: beside `wedge::Counters` and `hip::Counters` for packets.

use serde::{Deserialize, Serialize};

use crate::dns::resolver::ResolverCounters;
use crate::dns::upstream::UpstreamCounters;
use crate::visitors::Tally;

hip::counters! {
    /// What happened at the edges to the kernel, to programs and to people.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct Counters {
        /// Packets that the kernel did not take.
        pub unsent: u64,
        /// Packets of programs, or trains of them, that could not be read.
        pub unread: u64,
        /// Batches of packets to programs that the kernel did not take whole.
        pub undelivered: u64,
        /// Connections to the control socket that made room for others.
        pub control_evicted: u64,
        /// Connections to the control socket that took too long.
        pub control_expired: u64,
        /// Connections to the metrics that made room for others.
        pub metrics_evicted: u64,
        /// Connections to the metrics that took too long.
        pub metrics_expired: u64,
        /// Connections to the name responder that made room for others.
        pub names_evicted: u64,
        /// Connections to the name responder that took too long.
        pub names_expired: u64,
        /// Questions for names that were asked of other name servers, each attempt once.
        pub names_asked: u64,
        /// Times that a name server was silent or could not be reached.
        pub names_silent: u64,
        /// Messages that came as answers of name servers and were none: from elsewhere, or with another number or question.
        pub names_unmatched: u64,
        /// Questions for names that were refused because too many were under way.
        pub names_overload: u64,
        /// Aliases of names that went round.
        pub names_loops: u64,
        /// HIP records that led programs to a peer.
        pub hip_records: u64,
        /// HIP records that told the HIT of another key.
        pub hip_records_forged: u64,
        /// HIP records that were cut off or had no key, and answers that could not be read.
        pub hip_records_malformed: u64,
        /// HIP records with a key of an algorithm that Sinnet does not have.
        pub hip_records_unknown: u64,
        /// HIP records that were not signed, where they have to be.
        pub hip_records_unsigned: u64,
        /// HIP records of hosts with no address and no rendezvous server.
        pub hip_records_placeless: u64,
        /// HIP records that found all places for peers in use.
        pub hip_records_no_room: u64,
        /// Times that the kernel had no file descriptor or memory for a connection to any of them.
        pub not_accepted: u64,
    }
}

/// One set of counters.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// Its key in the status.
    pub key: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Each counter's name and what it counts.
    pub meanings: &'static [(&'static str, &'static str)],
}

/// All sets of counters.
pub const SETS: [Set; 3] = [
    Set { key: "counters", title: "packets", meanings: wedge::Counters::MEANINGS },
    Set { key: "control", title: "HIP packets", meanings: hip::Counters::MEANINGS },
    Set { key: "daemon", title: "the daemon", meanings: Counters::MEANINGS },
];

impl Counters {
    pub(crate) fn names(&mut self, (resolver, upstream): (ResolverCounters, UpstreamCounters), no_room: u64) {
        self.names_asked = upstream.asked;
        self.names_silent = upstream.silent;
        self.names_unmatched = upstream.unmatched;
        self.names_overload = resolver.overload;
        self.names_loops = resolver.loops;
        self.hip_records = resolver.found;
        self.hip_records_forged = resolver.forged;
        self.hip_records_malformed = resolver.malformed;
        self.hip_records_unknown = resolver.unknown_algorithm;
        self.hip_records_unsigned = resolver.unsigned;
        self.hip_records_placeless = resolver.placeless;
        self.hip_records_no_room = no_room;
    }

    pub(crate) fn visitors(&mut self, control: Tally, metrics: Tally, names: Tally) {
        (self.control_evicted, self.control_expired) = (control.evicted, control.expired);
        (self.metrics_evicted, self.metrics_expired) = (metrics.evicted, metrics.expired);
        (self.names_evicted, self.names_expired) = (names.evicted, names.expired);
        self.not_accepted = [control, metrics, names].iter().map(|tally| tally.not_accepted).sum();
    }
}
