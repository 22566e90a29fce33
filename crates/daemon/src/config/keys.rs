//! The schema of the configuration: one row for each key. The reader knows keys from it, and `sinnet help config` tells them.

/// A key of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The table in which it stands, as messages call it.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What values it takes, with an example.
    pub value: &'static str,
    /// What holds where the file says nothing; empty where the key must be there.
    pub default: &'static str,
    /// What it does.
    pub says: &'static str,
}

const fn key(
    table: &'static str,
    name: &'static str,
    value: &'static str,
    default: &'static str,
    says: &'static str,
) -> Key {
    Key { table, name, value, default, says }
}

const FILE: &str = "the file";
const RATE: &str = "a rate, \"8Mbit/s\"";
const DELAY: &str = "a time, \"30ms\"";
const FLAG: &str = "true or false";

/// All keys, table by table.
pub const KEYS: &[Key] = &[
    key(
        FILE,
        "identity",
        "a file, \"a.pem\"",
        "",
        "The host identity, as `sinnet keygen` wrote it; relative to this file.",
    ),
    key(FILE, "name", "a name, \"a.hip\"", "none", "This host's own name."),
    key(
        FILE,
        "lsi_range",
        "\"198.18.0.0/15\", /8 to /24",
        "\"198.18.0.0/15\"",
        "Where LSIs come from: addresses that this host does not use otherwise.",
    ),
    key(FILE, "lsi", "an address, \"198.18.0.1\"", "follows from the HIT", "This host's own LSI."),
    key(
        FILE,
        "control",
        "a file, \"/run/sinnet/a.sock\"",
        "\"/run/sinnet/sinnet0.sock\"",
        "The control socket; --control wins.",
    ),
    key(FILE, "control_group", "a group, \"sinnet\"", "the group of `user`", "Whose members may ask for the status."),
    key(FILE, "control_everyone", FLAG, "false", "Whether every user of this machine may ask for the status."),
    key(FILE, "user", "a user, \"sinnet\"", "\"sinnet\", if there is one", "Who to become once all is set up."),
    key(FILE, "metrics", "address and port, \"127.0.0.1:9480\"", "none", "Where /metrics is answered, for Prometheus."),
    key(FILE, "metrics_exposed", FLAG, "false", "Whether `metrics` may be another than a loopback address."),
    key(
        FILE,
        "congestion",
        "a rule's name, \"lia\", or \"configured-rates\"",
        "\"mhip\"",
        "How the windows of paths grow and shrink; with \"configured-rates\" nothing is measured, and packets are paced at the paths' rates.",
    ),
    key(
        FILE,
        "path",
        "tables",
        "each interface that is up, without the loopback and [interfaces]",
        "This host's access links.",
    ),
    key(FILE, "interfaces", "a table", "as its keys", "Which interfaces are access links, where there is no [[path]]."),
    key(FILE, "peer", "tables", "none", "The hosts that may be talked to."),
    key(FILE, "tun", "a table", "as its keys", "The device through which programs reach identities."),
    key(FILE, "esp", "a table", "as its keys", "How packets are protected, and travel."),
    key(FILE, "hip", "a table", "as its keys", "How associations are made."),
    key(FILE, "dns", "a table", "as its keys", "Names of peers."),
    key("[[path]]", "name", "a name, \"dsl\"", "", "What the access link is called."),
    key(
        "[[path]]",
        "address",
        "an address, \"192.0.2.10\"",
        "the first of `interface`",
        "Its address; this or `interface` must be there.",
    ),
    key(
        "[[path]]",
        "interface",
        "a name, \"eth0\"",
        "the one that has `address`",
        "Its network interface, to which packets are bound.",
    ),
    key(
        "[[path]]",
        "rate",
        RATE,
        "measured",
        "The most to send; needed where the peer is a plain HIP host, and for \"configured-rates\".",
    ),
    key("[[path]]", "delay", DELAY, "\"25ms\"", "One way; of use in the same cases."),
    key("[[path]]", "mtu", "bytes from 1280 to 65535, 1500", "the interface's", "The largest IP packet."),
    key("[[path]]", "backup", FLAG, "false", "Whether it carries data only where no other path works."),
    key(
        "[interfaces]",
        "ignore",
        "names, [\"docker*\"]",
        "bridges of containers, and other overlays' tunnels",
        "These are no access links; * at the end is any rest.",
    ),
    key("[interfaces]", "backup", "names, [\"wwan*\"]", "none", "These carry data only where no other path works."),
    key("[[peer]]", "name", "a name, \"b.hip\"", "", "What programs call the peer."),
    key("[[peer]]", "hit", "a HIT, \"2001:20::1\"", "", "Its identity, as `sinnet keygen` printed it there."),
    key("[[peer]]", "lsi", "an address, \"198.18.0.2\"", "follows from the HIT", "Its LSI."),
    key(
        "[[peer]]",
        "locators",
        "[\"198.51.100.7\", { address = \"203.0.113.7\", rate = \"4Mbit/s\" }]",
        "",
        "Its addresses, at least one.",
    ),
    key(
        "[[peer]]",
        "routes",
        "[{ from = \"dsl\", to = \"198.51.100.7\" }]",
        "locators are paired automatically",
        "Which of our paths goes to which of its addresses.",
    ),
    key("a locator", "address", "an address, \"203.0.113.7\"", "", "An address of the peer."),
    key("a locator", "rate", RATE, "ours", "What the peer's link carries there, where it is less than ours."),
    key("a locator", "delay", DELAY, "ours", "One way, where it is more than ours."),
    key("a route", "from", "the name of a [[path]], \"dsl\"", "", "Our end."),
    key("a route", "to", "one of the peer's locators, \"198.51.100.7\"", "", "The peer's end."),
    key("a route", "rate", RATE, "the path's", "What the route carries."),
    key("a route", "delay", DELAY, "the path's", "One way."),
    key("[tun]", "name", "up to 15 letters and digits, \"sinnet0\"", "\"sinnet0\"", "The device's name."),
    key(
        "[tun]",
        "forward",
        FLAG,
        "false",
        "Whether this host may forward packets of others into and out of the device.",
    ),
    key(
        "[tun]",
        "firewall",
        FLAG,
        "true",
        "Whether a packet filter keeps strangers from speaking for identities; without it another filter has to.",
    ),
    key(
        "[esp]",
        "suites",
        "\"aes-128-gcm-16\", \"aes-256-cbc-hmac-sha-256\", \"aes-128-cbc-hmac-sha-256\"",
        "all of them",
        "Suites in order of preference.",
    ),
    key(
        "[esp]",
        "encapsulation",
        "\"udp\" or \"native\"",
        "\"udp\"",
        "In UDP on port 10500 (RFC 5770), or as IP protocols 139 and 50.",
    ),
    key(
        "[esp]",
        "rekey_packets",
        "a whole number from 10000 to 1073741824",
        "1073741824",
        "A path gets new keys after so many packets sent.",
    ),
    key("[esp]", "rekey", "a time from \"10s\" to \"168h\"", "\"1h\"", "Or after so much time."),
    key(
        "[hip]",
        "groups",
        "\"p-384\", \"p-256\", \"modp-3072\", \"modp-1536\"",
        "[\"p-384\", \"p-256\"]",
        "Diffie-Hellman groups in order of preference.",
    ),
    key(
        "[hip]",
        "puzzle",
        "a whole number from 0 to 22",
        "10",
        "The difficulty K of the puzzles that we set; it rises with the load (RFC 7401 §4.1.2).",
    ),
    key("[dns]", "enabled", FLAG, "true", "Whether names of peers are answered for on the LSI, port 53."),
];

/// The names of the keys of a table.
pub(super) fn of(table: &str) -> impl Iterator<Item = &'static str> + Clone {
    KEYS.iter().filter(move |key| key.table == table).map(|key| key.name)
}
