//! The schema of the configuration: one row for each key. The reader knows keys from it, `sinnet help config` tells them, and
//! the JSON schema for editors is made from it.

use serde_json::{Map, Value, json};
use text::units::{RATES, TIMES, pattern, spellings};

use super::dns::{HIP_RECORDS, RESOLVERS};
use super::policies::{PRIORITIES, PROTOCOLS};
use super::sections::{ENCAPSULATIONS, GROUPS, SUITES, congestions};

/// A key of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The table in which it stands, as messages call it.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What values it takes.
    pub value: Type,
    /// What holds where the file says nothing; empty where the key must be there.
    pub default: &'static str,
    /// What it does.
    pub says: &'static str,
}

/// The values that a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// A text: what it is, and an example.
    Text(&'static str, &'static str),
    /// A list of texts: what they are, and an example of one.
    Texts(&'static str, &'static str),
    /// True or false.
    Flag,
    /// Bits per second.
    Rate,
    /// A length of time, in words.
    Time(&'static str),
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// One of these names, with or without tunables behind a colon.
    Rule(fn() -> Vec<&'static str>),
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
    /// A list of at least one of these words.
    Words(fn() -> Vec<&'static str>),
    /// A table, by what messages call it.
    Table(&'static str),
    /// Any number of tables, each with a line of its own.
    Tables(&'static str),
    /// A list of tables: an example, and what messages call each.
    Listed(&'static str, &'static str),
    /// A list of at least one text or table, likewise.
    TextsOrTables(&'static str, &'static str),
}

use Type::{Flag, Listed, Rate, Rule, Table, Tables, Text, Texts, TextsOrTables, Time, Whole, Word, Words};

impl Type {
    /// In words, with an example.
    pub fn in_words(self) -> String {
        let quoted = |words: fn() -> Vec<&'static str>| {
            let words: Vec<String> = words().iter().map(|word| format!("\"{word}\"")).collect();
            words.join(", ")
        };
        match self {
            Text(what, example) => format!("{what}, \"{example}\""),
            Texts(what, example) => format!("{what}, [\"{example}\"]"),
            Flag => "true or false".to_owned(),
            Rate => "a rate, \"8Mbit/s\"".to_owned(),
            Time(words) => words.to_owned(),
            Whole(low, high) => format!("a whole number from {low} to {high}"),
            Rule(words) => format!("{}; of some with tunables, \"cdg:scale=2\"", quoted(words)),
            Word(words) => quoted(words),
            Words(words) => format!("a list of {}", quoted(words)),
            Table(_) => "a table".to_owned(),
            Tables(_) => "tables".to_owned(),
            Listed(example, _) | TextsOrTables(example, _) => example.to_owned(),
        }
    }

    fn json(self) -> Value {
        let reference = |table: &str| json!({ "$ref": format!("#/$defs/{}", plain(table)) });
        let quantity = |units| json!({ "type": "string", "pattern": pattern(units) });
        match self {
            Text(..) => json!({ "type": "string" }),
            Texts(..) => json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
            Flag => json!({ "type": "boolean" }),
            Rate => quantity(&spellings(&RATES)),
            Time(_) => quantity(&spellings(&TIMES)),
            Whole(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
            Rule(words) => json!({ "anyOf": [{ "enum": words() }, { "type": "string", "pattern": ":" }] }),
            Word(words) => json!({ "enum": words() }),
            Words(words) => {
                json!({ "type": "array", "items": { "enum": words() }, "minItems": 1, "uniqueItems": true })
            }
            Table(table) => reference(table),
            Tables(table) | Listed(_, table) => json!({ "type": "array", "items": reference(table) }),
            TextsOrTables(_, table) => {
                let item = json!({ "anyOf": [{ "type": "string" }, reference(table)] });
                json!({ "type": "array", "items": item, "minItems": 1 })
            }
        }
    }
}

const fn key(table: &'static str, name: &'static str, value: Type, default: &'static str, says: &'static str) -> Key {
    Key { table, name, value, default, says }
}

const FILE: &str = "the file";
const PATH: &str = "[[path]]";
const INTERFACES: &str = "[interfaces]";
const IDENTITY: &str = "[[other_identity]]";
const PEER: &str = "[[peer]]";
const LOCATOR: &str = "a locator";
const ROUTE: &str = "a route";
const TUN: &str = "[tun]";
const ESP: &str = "[esp]";
const HIP: &str = "[hip]";
const DNS: &str = "[dns]";
const RENDEZVOUS: &str = "[rendezvous]";
const ACCEPT: &str = "[accept]";
const GROUP: &str = "[[group]]";
const POLICY: &str = "[[policy]]";
/// All tables, as messages call them.
const TABLES: [&str; 15] =
    [FILE, IDENTITY, PATH, INTERFACES, PEER, LOCATOR, ROUTE, TUN, ESP, HIP, DNS, RENDEZVOUS, ACCEPT, GROUP, POLICY];

pub(super) fn names<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(name, _)| *name).collect()
}

/// All keys, table by table.
pub const KEYS: &[Key] = &[
    key(
        FILE,
        "identity",
        Text("a file", "a.pem"),
        "",
        "The host identity, as `sinnet keygen` wrote it; relative to this file.",
    ),
    key(FILE, "name", Text("a name", "a.hip"), "none", "This host's own name."),
    key(
        FILE,
        "other_identity",
        Tables(IDENTITY),
        "none",
        "What this host is beside its `identity`, up to seven (RFC 7401 §7), for peers that have an `as`; programs send to these from that. All others know `identity`: those of [accept] and of [dns], and `opportunistic` ones.",
    ),
    key(
        FILE,
        "lsi_range",
        Text("addresses, /8 to /24", "198.18.0.0/15"),
        "\"198.18.0.0/15\"",
        "Where LSIs come from: addresses that this host does not use otherwise.",
    ),
    key(FILE, "lsi", Text("an address", "198.18.0.1"), "follows from the HIT", "This host's own LSI."),
    key(
        FILE,
        "control",
        Text("a file", "/run/sinnet/a.sock"),
        "\"/run/sinnet/sinnet0.sock\"",
        "The control socket; --control wins.",
    ),
    key(
        FILE,
        "control_group",
        Text("a group", "sinnet"),
        "the group of `user`",
        "Whose members may ask for the status.",
    ),
    key(FILE, "control_everyone", Flag, "false", "Whether every user of this machine may ask for the status."),
    key(FILE, "user", Text("a user", "sinnet"), "\"sinnet\", if there is one", "Who to become once all is set up."),
    key(
        FILE,
        "metrics",
        Text("address and port", "127.0.0.1:9480"),
        "none",
        "Where /metrics is answered, for Prometheus.",
    ),
    key(FILE, "metrics_exposed", Flag, "false", "Whether `metrics` may be another than a loopback address."),
    key(
        FILE,
        "congestion",
        Rule(congestions),
        "\"sinnet\"",
        "How the windows of paths grow and shrink; with \"configured-rates\" nothing is measured, and packets are paced at the paths' rates.",
    ),
    key(
        FILE,
        "scheduler",
        Word(|| scheduler::Scheduler::NAMES.to_vec()),
        "\"fastest-path-first\"",
        "Which path a packet takes; with \"configured-rates\", one that needs neither windows nor copies.",
    ),
    key(
        FILE,
        "path",
        Tables(PATH),
        "each interface that is up, without the loopback and [interfaces]",
        "This host's access links.",
    ),
    key(
        FILE,
        "interfaces",
        Table(INTERFACES),
        "as its keys",
        "Which interfaces are access links, where there is no [[path]].",
    ),
    key(FILE, "peer", Tables(PEER), "none", "The hosts that may be talked to."),
    key(FILE, "tun", Table(TUN), "as its keys", "The device through which programs reach identities."),
    key(FILE, "esp", Table(ESP), "as its keys", "How packets are protected, and travel."),
    key(FILE, "hip", Table(HIP), "as its keys", "How associations are made."),
    key(FILE, "dns", Table(DNS), "as its keys", "Names of peers."),
    key(
        FILE,
        "rendezvous",
        Table(RENDEZVOUS),
        "none: this host is no such server",
        "This host is a rendezvous server (RFC 8004): it passes on to peers that register who asks for them here.",
    ),
    key(
        FILE,
        "accept",
        Table(ACCEPT),
        "none: who is no peer is refused",
        "Who may come that is no [[peer]] (RFC 7401 §7); such a guest begins, and is called by its HIT.",
    ),
    key(FILE, "group", Tables(GROUP), "none", "Names for several peers, for policies."),
    key(
        FILE,
        "policy",
        Tables(POLICY),
        "none",
        "What is to hold for some flows of this host's programs; of several the first that fits counts. What comes back is the peer's business.",
    ),
    key(
        FILE,
        "known_hits",
        Text("a file", "/var/lib/sinnet/known-hits"),
        "\"known-hits\"",
        "The HITs that were found out with `opportunistic`, a name and a HIT a line; relative to this file.",
    ),
    key(IDENTITY, "name", Text("a name", "work.hip"), "", "What `as` and programs call it."),
    key(
        IDENTITY,
        "identity",
        Text("a file", "work.pem"),
        "none, which needs `anonymous`",
        "Its key, as `sinnet keygen` wrote it; relative to this file.",
    ),
    key(
        IDENTITY,
        "anonymous",
        Flag,
        "false",
        "Instead of `identity`: it is made anew at each start and kept nowhere, tells its peers so (RFC 7401 §5.1.2), and answers nobody but whom it has asked. Peers have to let anybody come.",
    ),
    key(IDENTITY, "lsi", Text("an address", "198.18.0.3"), "follows from the HIT, or from its place here", "Its LSI."),
    key(PATH, "name", Text("a name", "dsl"), "", "What the access link is called."),
    key(
        PATH,
        "address",
        Text("an address", "192.0.2.10"),
        "the first of `interface`",
        "Its address; this or `interface` must be there.",
    ),
    key(
        PATH,
        "interface",
        Text("a name", "eth0"),
        "the one that has `address`",
        "Its network interface, to which packets are bound.",
    ),
    key(
        PATH,
        "rate",
        Rate,
        "measured",
        "The most to send; needed where the peer is a plain HIP host, and for \"configured-rates\".",
    ),
    key(PATH, "delay", Time("a time, \"30ms\""), "\"25ms\"", "One way; of use in the same cases."),
    key(
        PATH,
        "mtu",
        Whole(576, 65535),
        "the interface's",
        "The largest IP packet. What the network carries is found out, and to a Sinnet it need not be said.",
    ),
    key(PATH, "backup", Flag, "false", "Whether it carries data only where no other path works."),
    key(
        INTERFACES,
        "ignore",
        Texts("names", "docker*"),
        "bridges of containers, and other overlays' tunnels",
        "These are no access links; * at the end is any rest.",
    ),
    key(INTERFACES, "backup", Texts("names", "wwan*"), "none", "These carry data only where no other path works."),
    key(
        INTERFACES,
        "mtu",
        Whole(576, 65535),
        "each interface's own",
        "The largest IP packet on all of them. What the network carries is found out, and to a Sinnet it need not be said.",
    ),
    key(PEER, "name", Text("a name", "b.hip"), "", "What programs call the peer."),
    key(
        PEER,
        "hit",
        Text("a HIT", "2001:20::1"),
        "none, which needs `identity` or `opportunistic`",
        "Its identity, as `sinnet keygen` printed it there.",
    ),
    key(
        PEER,
        "identity",
        Text("a file", "b.pub"),
        "none",
        "Instead of `hit`: its public key in PEM, as `openssl pkey -pubout -in b.pem -out b.pub` makes it there; relative to this file.",
    ),
    key(
        PEER,
        "opportunistic",
        Flag,
        "false",
        "Instead of `hit`: whoever first answers at its addresses and proves an identity is the peer, for good. As with ssh, somebody else on the way may be first.",
    ),
    key(
        PEER,
        "register",
        Flag,
        "false",
        "Whether it is a rendezvous server, with which this host registers to be found through it.",
    ),
    key(
        PEER,
        "via",
        Texts("addresses, as in `locators`", "198.51.100.9"),
        "none",
        "Rendezvous servers that know where it is; it need have no `locators` then.",
    ),
    key(
        PEER,
        "as",
        Text("the `name` of an [[other_identity]]", "work.hip"),
        "the host's `identity`",
        "Which identity of ours it knows and speaks with.",
    ),
    key(PEER, "lsi", Text("an address", "198.18.0.2"), "follows from the HIT", "Its LSI."),
    key(
        PEER,
        "locators",
        TextsOrTables(
            "[\"198.51.100.7\", \"203.0.113.7:4500\", { address = \"2001:db8::7\", rate = \"4Mbit/s\" }]",
            LOCATOR,
        ),
        "none: only the peer can begin",
        "Its addresses, with the UDP port where that is not 10500.",
    ),
    key(
        PEER,
        "routes",
        Listed("[{ from = \"dsl\", to = \"198.51.100.7\" }]", ROUTE),
        "locators are paired automatically",
        "Which of our paths goes to which of its addresses.",
    ),
    key(
        LOCATOR,
        "address",
        Text("an address", "203.0.113.7:4500"),
        "",
        "An address of the peer, with the UDP port where that is not 10500.",
    ),
    key(LOCATOR, "rate", Rate, "ours", "What the peer's link carries there, where it is less than ours."),
    key(LOCATOR, "delay", Time("a time, \"30ms\""), "ours", "One way, where it is more than ours."),
    key(ROUTE, "from", Text("the name of a [[path]]", "dsl"), "", "Our end."),
    key(ROUTE, "to", Text("one of the peer's locators", "198.51.100.7"), "", "The peer's end."),
    key(ROUTE, "rate", Rate, "the path's", "What the route carries."),
    key(ROUTE, "delay", Time("a time, \"30ms\""), "the path's", "One way."),
    key(TUN, "name", Text("up to 15 letters and digits", "sinnet0"), "\"sinnet0\"", "The device's name."),
    key(TUN, "forward", Flag, "false", "Whether this host may forward packets of others into and out of the device."),
    key(
        TUN,
        "firewall",
        Flag,
        "true",
        "Whether a packet filter keeps strangers from speaking for identities; without it another filter has to.",
    ),
    key(
        ESP,
        "suites",
        Words(|| names(&SUITES)),
        "[\"aes-128-gcm-16\", \"aes-256-cbc-hmac-sha-256\", \"aes-128-cbc-hmac-sha-256\"]",
        "Suites in order of preference; \"null-hmac-sha-256\" encrypts nothing.",
    ),
    key(
        ESP,
        "encapsulation",
        Word(|| names(&ENCAPSULATIONS)),
        "\"auto\"",
        "In UDP (RFC 5770), or as IP protocols 139 and 50; with \"auto\" in UDP, and ESP to a Sinnet as protocol 50 where that arrives.",
    ),
    key(
        ESP,
        "port",
        Whole(1, 65535),
        "10500",
        "This host's UDP port; peers have to know another one: locators = [\"198.51.100.7:4500\"].",
    ),
    key(
        ESP,
        "rekey_packets",
        Whole(10_000, 1_073_741_824),
        "1073741824",
        "A path gets new keys after so many packets sent.",
    ),
    key(ESP, "rekey", Time("a time from \"10s\" to \"168h\""), "\"1h\"", "Or after so much time."),
    key(
        HIP,
        "groups",
        Words(|| names(&GROUPS)),
        "[\"p-384\", \"p-256\", \"p-521\", \"modp-3072\", \"modp-2048\", \"modp-1536\"]",
        "Diffie-Hellman groups in order of preference; every HIP host has \"modp-1536\".",
    ),
    key(
        HIP,
        "puzzle",
        Whole(0, 22),
        "10",
        "The difficulty K of the puzzles that we set; it rises with the load (RFC 7401 §4.1.2).",
    ),
    key(
        HIP,
        "encrypt_identity",
        Flag,
        "false",
        "Whether the public key of this host is for the peer's eyes only where it begins an association (RFC 7401 §5.2.18). Its HIT is in each HIP packet all the same, and not every other host can read it.",
    ),
    key(RENDEZVOUS, "clients", Texts("names of peers", "a.hip"), "all peers", "Who may register."),
    key(RENDEZVOUS, "most", Whole(1, 10_000), "10000", "The most registrations at a time."),
    key(
        RENDEZVOUS,
        "relay",
        Flag,
        "false; true in `sinnet relay`",
        "Pass on all HIP packets of clients until they have found a way past this host (RFC 9028), so that two hosts behind NATs meet.",
    ),
    key(
        RENDEZVOUS,
        "data",
        Rate,
        "none",
        "With `relay`: carry data, too, of clients that find no way past this host; of all together at most so much, up to 1 Gbit/s.",
    ),
    key(ACCEPT, "anybody", Flag, "false", "Whether anybody may come; this or `hits` must be there."),
    key(ACCEPT, "hits", Texts("HITs, or the beginnings of such", "2001:22:86f6::/48"), "none", "Those that may come."),
    key(ACCEPT, "most", Whole(1, 1000), "32", "The most guests at a time; each has an LSI of a pool of so many."),
    key(
        ACCEPT,
        "idle",
        Time("a time from \"10s\" to \"168h\""),
        "\"10min\"",
        "A guest with whom no program has exchanged a packet for so long has to go.",
    ),
    key(GROUP, "name", Text("a name", "offices"), "", "What policies call it."),
    key(GROUP, "peers", Texts("names of peers", "b.hip"), "", "Who belongs to it."),
    key(POLICY, "to", Texts("names of peers or groups", "offices"), "all peers", "Where the flows go."),
    key(POLICY, "protocol", Word(|| names(&PROTOCOLS)), "any", "Their protocol."),
    key(POLICY, "ports", Texts("ports, or ranges of them", "5060-5070"), "any", "Their ports, of either end."),
    key(
        POLICY,
        "user",
        Text("a user's name or number", "backup"),
        "any",
        "Whose they are: who has opened their sockets. One that is new here needs a restart.",
    ),
    key(
        POLICY,
        "cgroup",
        Text("a path below /sys/fs/cgroup", "backup.slice"),
        "any",
        "Where they come from: the cgroup (v2) in which their sockets were opened, or one inside it. One that is new here needs a restart.",
    ),
    key(
        POLICY,
        "paths",
        Texts("names of paths, or with * at the end what they begin with", "dsl"),
        "any",
        "Which paths they take, also those that are backups. Where none of these works they take the others, unless `strict`.",
    ),
    key(
        POLICY,
        "strict",
        Flag,
        "false",
        "Whether they rather wait for one of `paths`, and are dropped when they have waited too long.",
    ),
    key(
        POLICY,
        "priority",
        Word(|| names(&PRIORITIES)),
        "\"normal\"",
        "Whether they go before all that waits, or after it; what comes last has a twentieth of what leaves at least.",
    ),
    key(
        POLICY,
        "through",
        Flag,
        "true",
        "Whether they may pass at all; where not, programs are told that it is prohibited.",
    ),
    key(DNS, "enabled", Flag, "true", "Whether names of peers are answered for on the LSI, port 53."),
    key(
        DNS,
        "upstream",
        Texts("addresses, with the port where that is not 53", "127.0.0.1"),
        "none: other names are refused",
        "The name servers that are asked for all other names, in order of preference.",
    ),
    key(
        DNS,
        "hip_records",
        Word(|| names(&HIP_RECORDS)),
        "\"signed\"",
        "Which HIP records (RFC 8005) make a name a peer: those that DNSSEC has proven, all that are in themselves right, or none.",
    ),
    key(
        DNS,
        "trusted",
        Flag,
        "false",
        "Whether an `upstream` on another host is believed that a record is signed: nobody else may be on the way to it.",
    ),
    key(
        DNS,
        "resolver",
        Word(|| names(&RESOLVERS)),
        "\"leave\"",
        "How the host's resolver is made to ask Sinnet as long as it runs: not at all, by `resolvectl`, or by another /etc/resolv.conf; needs `upstream`, and root at the start.",
    ),
    key(
        DNS,
        "peers",
        Whole(1, 1024),
        "64",
        "The most peers at a time that are known by HIP records, each with an LSI.",
    ),
];

/// The JSON schema (draft 2020-12) of a configuration file, for editors.
pub fn json_schema() -> Value {
    let tables: Map<String, Value> = TABLES.iter().map(|table| (plain(table), object(table))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sinnet configuration",
        "$ref": format!("#/$defs/{}", plain(FILE)),
        "$defs": tables,
    })
}

/// What the schema calls a table: `[[path]]` is `path`.
fn plain(table: &str) -> String {
    let name = table.trim_matches(['[', ']']);
    name.trim_start_matches("a ").trim_start_matches("the ").to_owned()
}

fn object(table: &str) -> Value {
    let keys = || KEYS.iter().filter(|key| key.table == table);
    let property = |key: &Key| {
        let mut value = key.value.json();
        if let Value::Object(fields) = &mut value {
            fields.insert("description".to_owned(), json!(key.says));
        }
        (key.name.to_owned(), value)
    };
    let properties: Map<String, Value> = keys().map(property).collect();
    let required: Vec<&str> = keys().filter(|key| key.default.is_empty()).map(|key| key.name).collect();
    let mut object =
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    if let Value::Object(fields) = &mut object {
        match table {
            PATH => {
                let one = json!([{ "required": ["address"] }, { "required": ["interface"] }]);
                fields.insert("anyOf".to_owned(), one);
            }
            IDENTITY => {
                let one = json!([{ "required": ["identity"] }, { "required": ["anonymous"] }]);
                fields.insert("anyOf".to_owned(), one);
            }
            FILE => {
                fields.insert("not".to_owned(), json!({ "required": ["path", "interfaces"] }));
            }
            _ => {}
        }
    }
    object
}

/// The names of the keys of a table.
pub(super) fn of(table: &str) -> impl Iterator<Item = &'static str> + Clone {
    KEYS.iter().filter(move |key| key.table == table).map(|key| key.name)
}
