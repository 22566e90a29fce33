//! What a running daemon tells about itself.

use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::learned::LearnedName;
use crate::privileges::Confined;

/// The answer of the control socket to the question for the status; `sinnet status --json` prints it. What another version
/// does not tell is as in [`Status::default`], and what only another version tells is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Status {
    /// True once everything is set up; there is no answer before.
    pub ready: bool,
    /// The version of the daemon.
    pub version: String,
    /// How long ago it was started, in seconds.
    pub uptime_s: f64,
    /// The name of the TUN device.
    pub device: String,
    /// What happened at the edges to the kernel, to programs and to people.
    pub daemon: Counters,
    /// Names that lead to peers by their HIP records.
    pub learned: Vec<LearnedName>,
    /// The privileges that were given up.
    pub confined: Confined,
    /// The host: its identity, its peers with their paths, and counters of packets, beside the keys above.
    #[serde(flatten)]
    pub host: wedge::Status,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed is what is read, and a daemon of another version is understood.
    #[test]
    fn it_survives_the_socket() {
        let mut status = Status { ready: true, device: "sinnet0".to_owned(), ..Status::default() };
        status.daemon.unsent = 3;
        status.confined.capabilities.push("net_raw".to_owned());
        status.host.hit = "2001:22::a".to_owned();
        status.host.counters.no_peer = u64::MAX;
        let paths = serde_json::json!([{ "name": "dsl", "srtt_ms": 41.25, "measured": { "cwnd": 9 } }]);
        let peers = serde_json::json!([{ "name": "b.hip", "send_buffer": { "bytes": 7 }, "paths": paths }]);
        status.host.peers = serde_json::from_value(peers).unwrap();
        assert_eq!(status.host.peers[0].paths[0].measured.map(|measured| measured.cwnd), Some(9));
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
        let other =
            r#"{"ready":true,"hit":"2001:22::b","peers":[{"name":"c","new":1}],"counters":{"new":2},"more":[]}"#;
        let other: Status = serde_json::from_str(other).unwrap();
        assert_eq!(
            (other.ready, other.host.hit.as_str(), other.host.peers[0].name.as_str()),
            (true, "2001:22::b", "c")
        );
    }
}
