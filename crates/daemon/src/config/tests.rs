use super::*;

/// A file in which everything is right; the tests break it, one line at a time.
const GOOD: &str = r#"identity = "a.pem"
name = "a.hip"

[[path]]
name = "dsl"
address = "192.0.2.10"
rate = "8Mbit/s"
delay = "30ms"

[[path]]
name = "lte"
interface = "wwan0"
rate = "4Mbit/s"
delay = "25.5ms"
mtu = 1420

[[peer]]
name = "b.hip"
hit = "2001:22:0:1::b"
locators = ["198.51.100.7", { address = "203.0.113.7", rate = "4Mbit/s", delay = "20ms" }]
routes = [{ from = "lte", to = "203.0.113.7", delay = "1ms" }]

[[peer]]
name = "c.hip"
hit = "2001:22:0:1::c"
lsi = "198.18.0.12"
locators = ["2001:db8::c"]

[tun]
name = "sinnet1"
[esp]
suites = ["aes-128-cbc-hmac-sha-256"]
encapsulation = "native"
rekey_packets = 20000
rekey = "90min"
[hip]
groups = ["p-384", "p-256"]
puzzle = 10
[dns]
enabled = false
"#;

#[test]
fn a_file_says_everything() {
    let config = parse(GOOD, "a.toml").expect("right");
    assert_eq!(config.name.as_deref(), Some("a.hip"));
    assert_eq!((&*config.device, config.forward, config.firewall), ("sinnet1", false, true));
    let open = GOOD.replace("name = \"sinnet1\"", "forward = true\nfirewall = false");
    let open = parse(&open, "a.toml").expect("right");
    assert_eq!((&*open.device, open.forward, open.firewall), ("sinnet0", true, false));
    assert_eq!(config.esp_suites, [EspSuite::Aes128CbcHmacSha256]);
    assert_eq!(config.encapsulation, Encapsulation::Native);
    assert_eq!((config.rekey_packets, config.rekey_interval), (20_000, Duration::from_secs(5_400)));
    assert_eq!(config.groups, [Group::P384, Group::P256]);
    assert_eq!((config.puzzle_difficulty, config.dns.enabled), (10, false));
    let [dsl, lte] = config.paths.as_slice() else { panic!("two paths") };
    assert_eq!((dsl.address, dsl.interface.as_deref()), (Some("192.0.2.10".parse().expect("an address")), None));
    assert_eq!((dsl.rate, dsl.delay, dsl.mtu), (Some(8_000_000), Duration::from_millis(30), None));
    assert_eq!((lte.address, lte.interface.as_deref(), lte.mtu), (None, Some("wwan0"), Some(1420)));
    let [b, c] = config.peers.as_slice() else { panic!("two peers") };
    assert_eq!(b.hit, "2001:22:0:1::b".parse().expect("a HIT"));
    assert_eq!(b.locators[1].rate, Some(4_000_000));
    assert_eq!((b.routes[0].from, b.routes[0].delay), (1, Some(Duration::from_millis(1))));
    assert_eq!(c.lsi, Some(Lsi([198, 18, 0, 12])));
}

#[test]
fn who_may_ask_and_who_to_become_are_said_in_words() {
    let config = parse(GOOD, "a.toml").expect("right");
    assert_eq!((config.user, config.control_group, config.control_everyone), (None, None, false));
    let text = format!("user = \"hip\"\ncontrol_group = \"adm\"\ncontrol_everyone = true\n{GOOD}");
    let config = parse(&text, "a.toml").expect("right");
    assert_eq!((config.user.as_deref(), config.control_group.as_deref()), (Some("hip"), Some("adm")));
    assert!(config.control_everyone);
    let error = parse(&text.replace("= true", "= \"yes\""), "a.toml").expect_err("no flag");
    assert_eq!((error.line(), error.column()), (3, 20), "{error}");
}

#[test]
fn little_is_enough() {
    let text =
        "identity = \"a.pem\"\n[[path]]\nname = \"x\"\ninterface = \"eth0\"\nrate = \"1Gbit/s\"\ndelay = \"0ms\"\n";
    let config = parse(text, "a.toml").expect("right");
    assert!(!config.paths[0].backup);
    assert_eq!(config.encapsulation, Encapsulation::Auto);
    assert_eq!(config.esp_suites, hip::HostConfig::default().esp_suites);
    assert_eq!(config.rekey_interval, Duration::from_secs(3_600));
    assert!(
        config.dns.enabled && config.dns.upstream.is_empty() && config.peers.is_empty() && config.device == "sinnet0"
    );
}

#[test]
fn without_paths_they_are_found() {
    let text = "identity = \"a.pem\"\n[interfaces]\nignore = [\"docker*\"]\nbackup = [\"wwan0\"]\nmtu = 1430\n";
    let config = parse(text, "a.toml").expect("right");
    let InterfacesConfig { ignore, backup, mtu } = &config.interfaces;
    assert!(config.paths.is_empty() && ignore == &["docker*"] && backup == &["wwan0"] && *mtu == Some(1430));
    let lists = |name| (InterfacesConfig::lists(ignore, name), InterfacesConfig::lists(backup, name));
    assert_eq!(
        ["docker0", "dock", "wwan0", "wwan01"].map(lists),
        [(true, false), (false, false), (false, true), (false, false)]
    );
    let error = parse("identity = \"a.pem\"\ncongestion = \"configured-rates\"\n", "a.toml").expect_err("no rates");
    assert_eq!((error.line(), error.column()), (2, 14), "{error}");
}

#[test]
fn metrics_are_for_this_machine_unless_it_is_said_that_they_are_for_others() {
    let read = |text: &str| parse(&format!("identity = \"a.pem\"\n{text}\n"), "a.toml");
    for local in ["127.0.0.1:9480", "[::1]:9480"] {
        let config = read(&format!("metrics = {local:?}")).expect("right");
        assert_eq!(config.metrics, local.parse().ok());
    }
    assert_eq!(read("").expect("right").metrics, None);
    for exposed in ["0.0.0.0:9480", "[::]:9480", "192.0.2.1:9480"] {
        let error = read(&format!("metrics = {exposed:?}")).expect_err("exposed");
        assert_eq!((error.line(), error.column()), (2, 11), "{error}");
        assert!(error.help().unwrap_or_default().contains("metrics_exposed = true"), "{error}");
        assert!(read(&format!("metrics = {exposed:?}\nmetrics_exposed = true")).expect("meant").metrics.is_some());
    }
    assert!(read("metrics = \"9480\"").expect_err("no address").message().contains("no address with a port"));
}

type Wrong = (&'static str, &'static str, (usize, usize), &'static str, &'static str);

/// Each row: what to replace in the good file by what, where the error must point, and words of the message and the help.
/// Lines and columns are counted by hand in the text above.
const WRONG: &[Wrong] = &[
    // Missing keys: the table's beginning, or the file's.
    ("identity = \"a.pem\"\n", "", (1, 1), "the file needs `identity`", "sinnet keygen --out a.pem"),
    (
        "identity = \"a.pem\"",
        "identity = \"a.pem\"\ncongestion = \"rneo\"",
        (2, 14),
        "no congestion control of multipath HIP is called \"rneo\"",
        "\"lia\"",
    ),
    // Rules that do not fit a tunnel: SCTP counts whole bytes. And a tunable that the rule has not.
    (
        "identity = \"a.pem\"",
        "identity = \"a.pem\"\ncongestion = \"reno-sp\"",
        (2, 14),
        "\"reno-sp\", which is SCTP's",
        "newreno, cubic",
    ),
    (
        "identity = \"a.pem\"",
        "identity = \"a.pem\"\ncongestion = \"rp-mp-v2\"",
        (2, 14),
        "\"rp2\", which is SCTP's",
        "lia",
    ),
    (
        "identity = \"a.pem\"",
        "identity = \"a.pem\"\ncongestion = \"cubic:c=1\"",
        (2, 14),
        "\"cubic\" cannot be set to \"c=1\"",
        "cubic",
    ),
    (
        "identity = \"a.pem\"",
        "identity = \"a.pem\"\nscheduler = \"fastest\"",
        (2, 13),
        "no scheduler is called \"fastest\"",
        "there are lowest-rtt, round-robin, weighted, redundant, ",
    ),
    // What decides by windows, where there are none.
    (
        "identity = \"a.pem\"",
        "identity = \"a.pem\"\ncongestion = \"configured-rates\"\nscheduler = \"blest\"",
        (3, 13),
        "\"blest\" needs windows, which there are not here",
        "with congestion = \"configured-rates\" there are lowest-rtt, round-robin, weighted, fastest-path-first or ",
    ),
    (
        "name = \"a.hip\"\n\n[[path]]\nname = \"dsl\"\naddress = \"192.0.2.10\"\nrate = \"8Mbit/s\"\n",
        "congestion = \"configured-rates\"\n\n[[path]]\nname = \"dsl\"\naddress = \"192.0.2.10\"\n",
        (2, 14),
        "has no rate to be configured by",
        "give every [[path]] a rate",
    ),
    ("address = \"192.0.2.10\"\n", "", (4, 1), "[[path]] needs `address`", "interface = \"eth0\""),
    ("hit = \"2001:22:0:1::b\"\n", "", (17, 1), "[[peer]] needs `hit`", "sinnet keygen"),
    // Unknown keys, with the nearest known one.
    ("rate = \"8Mbit/s\"", "rat = \"8Mbit/s\"", (7, 1), "[[path]] has no key `rat`", "did you mean `rate`?"),
    ("identity =", "identty =", (1, 1), "the file has no key `identty`", "did you mean `identity`?"),
    ("[hip]", "[xyz]", (36, 2), "the file has no key `xyz`", "its keys are identity, name, "),
    ("puzzle = 10", "pzzle = 10", (38, 1), "[hip] has no key `pzzle`", "did you mean `puzzle`?"),
    (
        "rate = \"4Mbit/s\", delay",
        "raet = \"4Mbit/s\", delay",
        (20, 56),
        "a locator has no key `raet`",
        "did you mean `rate`?",
    ),
    // Two of what there may be one of.
    (
        "interface = \"wwan0\"",
        "address = \"192.0.2.10\"",
        (12, 11),
        "\"dsl\" and \"lte\" have one address",
        "access link of its own",
    ),
    (
        "address = \"192.0.2.10\"",
        "interface = \"wwan0\"",
        (12, 13),
        "\"dsl\" and \"lte\" are on one interface",
        "access link of its own",
    ),
    ("name = \"lte\"", "name = \"dsl\"", (11, 8), "two paths are called \"dsl\"", "name of its own"),
    ("name = \"c.hip\"", "name = \"B.hip\"", (24, 8), "two hosts are called \"B.hip\"", "name of its own"),
    ("name = \"c.hip\"", "name = \"a.hip\"", (24, 8), "two hosts are called \"a.hip\"", "name of its own"),
    (
        "hit = \"2001:22:0:1::c\"",
        "hit = \"2001:22:0:1::b\"",
        (25, 7),
        "\"b.hip\" and \"c.hip\" have one HIT",
        "one [[peer]]",
    ),
    (
        "name = \"a.hip\"",
        "name = \"a.hip\"\nlsi = \"198.18.0.12\"",
        (27, 7),
        "two hosts have the LSI 198.18.0.12",
        "leave `lsi` out",
    ),
    ("[\"198.51.100.7\",", "[\"203.0.113.7\",", (20, 28), "has the address 203.0.113.7 twice", "once"),
    ("[tun]", "[interfaces]\nbackup = [\"lte\"]\n[tun]", (29, 1), "is for files without [[path]]", "leave out"),
    (
        "mtu = 1420",
        "backup = \"yes\"",
        (15, 10),
        "true or false is needed here, not a string",
        "without quotation marks",
    ),
    // Values that are none.
    ("2001:22:0:1::b", "2001:db8::b", (19, 7), "an IPv6 address but no HIT", "2001:20::/28"),
    ("2001:22:0:1::b", "hello", (19, 7), "\"hello\" is no HIT", "2001:20::/28"),
    ("8Mbit/s", "8Mb", (7, 8), "\"8Mb\" is not a rate", "\"8Mbit/s\", with bit/s, kbit/s, "),
    ("8Mbit/s", "0bit/s", (7, 8), "\"0bit/s\" is too small", "between 1bit/s and 1Tbit/s"),
    ("30ms", "30", (8, 9), "\"30\" is not a time", "\"30ms\", with ns, us, ms, s, min or h"),
    ("30ms", "2h", (8, 9), "\"2h\" is too large", "between 0s and 1h"),
    ("\"30ms\"", "30", (8, 9), "a time is needed here, not a number", "\"30ms\""),
    ("192.0.2.10", "192.0.2.300", (6, 11), "\"192.0.2.300\" is no IP address", "192.0.2.10"),
    ("192.0.2.10", "0.0.0.0", (6, 11), "no address of a host", "192.0.2.10"),
    ("\"native\"", "\"udp\"\nport = 0", (34, 8), "0 is too small", "port = 4500"),
    ("\"native\"", "\"native\"\nport = 4500", (34, 8), "the native protocols have no ports", "port = 4500"),
    (
        "[\"198.51.100.7\",",
        "[\"198.51.100.7:4500\",",
        (20, 13),
        "the native protocols of [esp] have no ports",
        "192.0.2.10",
    ),
    ("[\"198.51.100.7\",", "[\"198.51.100.7:0\",", (20, 13), "no port that packets could go to", ":4500"),
    ("[\"198.51.100.7\",", "[\"127.0.0.1\",", (20, 13), "127.0.0.1 is this host itself", "192.0.2.10"),
    ("[\"198.51.100.7\",", "[\"198.18.3.4\",", (20, 13), "198.18.3.4 is an identity", "192.0.2.10"),
    ("\"203.0.113.7\", rate", "\"2001:22::7\", rate", (20, 41), "2001:22::7 is an identity", "192.0.2.10"),
    ("1420", "500", (15, 7), "500 is too small", "576"),
    ("1420", "\"big\"", (15, 7), "a whole number is needed here, not a string", "576"),
    ("198.18.0.12", "10.0.0.12", (26, 7), "10.0.0.12 is no LSI", "1.0.0.0/8"),
    ("198.18.0.12", "198.18.0.0", (26, 7), "198.18.0.0 is no LSI", "lsi_range"),
    ("sinnet1", "a name that is too long", (30, 8), "cannot be the name of an interface", "15"),
    ("\"native\"", "\"tcp\"", (33, 17), "\"tcp\" is not known", "auto, udp or native"),
    ("[\"p-384\", \"p-256\"]", "[\"p-384\", \"p-384\"]", (37, 20), "\"p-384\" is there twice", "once"),
    ("[\"p-384\", \"p-256\"]", "[]", (37, 10), "nothing is chosen here", "p-256"),
    ("[\"aes-128-cbc-hmac-sha-256\"]", "[\"rot13\"]", (32, 11), "\"rot13\" is not known", "aes-128-gcm-16"),
    ("= 20000", "= 9999", (34, 17), "9999 is too small", "1073741824"),
    ("90min", "9s", (35, 9), "\"9s\" is too small", "every 10s to 168h, as in rekey = \"1h\""),
    ("90min", "8d", (35, 9), "\"8d\" is not a time", "with ns, us, ms, s, min or h"),
    ("90min", "169h", (35, 9), "\"169h\" is too large", "every 10s to 168h, as in rekey = \"1h\""),
    ("puzzle = 10", "puzzle = 60", (38, 10), "60 is too large", "22"),
    (
        "enabled = false",
        "enabled = \"no\"",
        (40, 11),
        "true or false is needed here, not a string",
        "without quotation marks",
    ),
    ("[[path]]\nname = \"dsl\"", "[path]\nname = \"dsl\"", (10, 3), "", ""),
    ("[\"2001:db8::c\"]", "[]", (27, 12), "has no address", "locators = ["),
    ("[\"2001:db8::c\"]", "\"2001:db8::c\"", (27, 12), "a list is needed here, not a string", "locators = ["),
    // What does not fit together.
    ("from = \"lte\"", "from = \"dls\"", (21, 20), "there is no path \"dls\"", "did you mean \"dsl\"?"),
    (
        "to = \"203.0.113.7\", delay",
        "to = \"203.0.113.9\", delay",
        (21, 32),
        "is no locator of this peer",
        "`locators`",
    ),
    (
        "interface = \"wwan0\"",
        "address = \"192.0.2.11\"",
        (27, 13),
        "no [[path]] of this host has an IPv6 address",
        "2001:db8::c",
    ),
    // No TOML at all.
    ("rate = \"8Mbit/s\"", "rate = 8Mbit/s", (7, 8), "must be quoted", ""),
    ("name = \"lte\"", "name = \"lte", (11, 12), "", ""),
];

#[test]
fn each_error_points_at_its_place_and_says_what_would_be_right() {
    let mut failures = Vec::new();
    for (old, new, (line, column), message, help) in WRONG {
        assert!(GOOD.contains(old), "{old}");
        let error = parse(&GOOD.replacen(old, new, 1), "a.toml").expect_err(new);
        let told = error.message().contains(message)
            && error.help().unwrap_or_default().contains(help)
            && error.to_string().starts_with(&format!("a.toml:{line}:{column}: "));
        if !told {
            failures.push(format!("expected {line}:{column}, {message}, {help}; got\n{error}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn a_peer_may_have_no_locators_and_a_locator_a_port() {
    let without = GOOD.replace("locators = [\"2001:db8::c\"]\n", "");
    assert!(parse(&without, "a.toml").expect("the peer begins").peers[1].locators.is_empty());
    let ports = GOOD
        .replace("\"native\"", "\"udp\"\nport = 4500")
        .replace("[\"198.51.100.7\"", "[\"198.51.100.7:4501\"")
        .replace("\"2001:db8::c\"", "\"[2001:db8::c]:4502\"");
    let config = parse(&ports, "a.toml").expect("right");
    let places = config.peers.iter().flat_map(|peer| &peer.locators).map(|locator| (locator.address, locator.port));
    let expected = [("198.51.100.7", Some(4501)), ("203.0.113.7", None), ("2001:db8::c", Some(4502))];
    let expected = expected.map(|(address, port)| (address.parse().expect("an address"), port));
    assert_eq!(places.collect::<Vec<_>>(), expected);
    assert_eq!(config.port, 4500);
    assert_eq!(parse(GOOD, "a.toml").expect("right").port, 10500);
}

#[test]
fn this_host_is_no_peer_of_its_own() {
    let config = parse(GOOD, "a.toml").expect("right");
    assert!(config.check_peers("2001:22:0:1::a".parse().expect("a HIT")).is_ok());
    let error = config.check_peers("2001:22:0:1::c".parse().expect("a HIT")).expect_err("c");
    assert_eq!((error.line(), error.column()), (25, 7), "{error}");
}

#[test]
fn a_key_file_that_cannot_be_read_points_at_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = parse(GOOD, "a.toml").expect("right");
    let error = config.read_identity(directory.path()).expect_err("no file");
    assert_eq!((error.line(), error.column()), (1, 12), "{error}");
    assert!(error.help().unwrap_or_default().contains("sinnet keygen --out"), "{error}");
    let key = directory.path().join("a.pem");
    std::fs::write(&key, "nonsense").expect("writes");
    let allow = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("permissions");
    // What others can read or change is not used, and the remedy is told.
    for mode in [0o644, 0o604, 0o602, 0o620, 0o666] {
        allow(mode);
        let error = config.read_identity(directory.path()).expect_err("not private");
        assert_eq!((error.line(), error.column()), (1, 12), "{error}");
        assert!(error.help().unwrap_or_default().contains("chmod 600"), "{error}");
    }
    allow(0o640);
    let error = config.read_identity(directory.path()).expect_err("no key");
    assert_eq!((error.line(), error.column()), (1, 12), "{error}");
    assert!(error.message().contains("is no host identity"), "{error}");
}

#[test]
fn lsis_follow_from_hits_and_are_all_different() {
    let config = parse(GOOD, "a.toml").expect("right");
    let (own, peers) = config.assign_lsis("2001:22::a".parse().expect("a HIT"));
    assert_eq!((own, peers.as_slice()), (Lsi([198, 18, 0, 10]), &[Lsi([198, 18, 0, 11]), Lsi([198, 18, 0, 12])][..]));
    // This host's HIT would give the LSI that is configured for c, and then the one of its neighbour.
    let (own, peers) = config.assign_lsis("2001:22::b:0:0:c".parse().expect("a HIT"));
    assert_eq!((own, peers.as_slice()), (Lsi([198, 18, 0, 13]), &[Lsi([198, 18, 0, 11]), Lsi([198, 18, 0, 12])][..]));
    // Never the network's own address.
    let (own, _) = config.assign_lsis("2001:22::".parse().expect("a HIT"));
    assert_eq!(own, Lsi([198, 18, 0, 1]));
}

#[test]
fn lsis_come_from_another_range_where_that_is_said() {
    let text = GOOD.replace("lsi = \"198.18.0.12\"", "lsi = \"1.0.0.12\"");
    assert!(parse(&text, "a.toml").expect_err("not in the range").message().contains("198.18.0.0/15"));
    let config = parse(&format!("lsi_range = \"1.0.0.0/8\"\n{text}"), "a.toml").expect("right");
    let (own, peers) = config.assign_lsis("2001:22::a".parse().expect("a HIT"));
    assert_eq!((own, peers.as_slice()), (Lsi([1, 0, 0, 10]), &[Lsi([1, 0, 0, 11]), Lsi([1, 0, 0, 12])][..]));
}

/// A key that is in the table of keys and that nobody reads would be accepted and ignored. No key takes a date.
#[test]
fn every_key_is_read() {
    let text = |table: &str, key: &str| {
        let of = |name: &str, usual: &str| {
            let kept = usual.lines().filter(|line| table != name || line.split(" =").next() != Some(key));
            let own = (table == name).then(|| format!("{key} = 1979-05-27"));
            kept.map(str::to_owned).chain(own).collect::<Vec<_>>().join("\n")
        };
        let inline = |name: &str, usual: &str| format!("{{ {} }}", of(name, usual).replace('\n', ", "));
        let file = of("the file", "identity = \"a.pem\"");
        let path = match table {
            "[interfaces]" => String::new(),
            _ => format!("[[path]]\n{}\n", of("[[path]]", "name = \"dsl\"\ninterface = \"eth0\"")),
        };
        let locators = format!("locators = [{}]", inline("a locator", "address = \"192.0.2.7\""));
        let routes = inline("a route", "from = \"dsl\"\nto = \"192.0.2.7\"");
        let routes = if table == "[interfaces]" { String::new() } else { format!("routes = [{routes}]") };
        let peer = format!("name = \"b.hip\"\nhit = \"2001:22:0:1::b\"\n{locators}\n{routes}");
        let peer = of("[[peer]]", &peer);
        let rest = [
            ("[interfaces]", ""),
            ("[[other_identity]]", "name = \"work.hip\"\nidentity = \"work.pem\""),
            ("[tun]", ""),
            ("[esp]", ""),
            ("[hip]", ""),
            ("[dns]", ""),
            ("[rendezvous]", ""),
            ("[accept]", "anybody = true"),
            ("[[group]]", "name = \"offices\"\npeers = [\"b.hip\"]"),
            ("[[policy]]", "priority = \"bulk\""),
        ]
        .map(|(name, usual)| match table {
            table if table == name => format!("{name}\n{}\n", of(name, usual)),
            _ => String::new(),
        });
        // A table at the top and its header are not both there.
        let path = if table == "the file" && key == "path" { String::new() } else { path };
        let routes = if path.is_empty() { peer.replace(&routes, "") } else { peer };
        let peer = if table == "the file" && key == "peer" { String::new() } else { format!("[[peer]]\n{routes}\n") };
        format!("{file}\n{path}{peer}{}", rest.concat())
    };
    let schema = json_schema();
    let validator = jsonschema::draft202012::new(&schema).expect("a JSON schema");
    for key in KEYS {
        let text = text(key.table, key.name);
        let error = parse(&text, "a.toml").expect_err(key.name);
        assert!(error.to_string().contains("1979-05-27"), "{} of {}: {error}\n{text}", key.name, key.table);
        assert!(!validator.is_valid(&json(&text)), "{} of {} in the JSON schema", key.name, key.table);
    }
    assert!(KEYS.len() > 45);
}

/// A file as a validator of JSON schemas sees it.
fn json(text: &str) -> serde_json::Value {
    serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("JSON")
}

/// By a validator that is not ours: what the reader takes is right, and what it refuses by itself is wrong.
#[test]
fn the_json_schema_says_what_the_reader_says() {
    let schema = json_schema();
    let validator = jsonschema::draft202012::new(&schema).expect("a JSON schema");
    let errors: Vec<String> = validator.iter_errors(&json(GOOD)).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let (mut taken, mut refused) = (0, 0);
    for (from, to) in [
        ("name = \"a.hip\"", "congestion = \"cubic\""),
        ("name = \"a.hip\"", "congestion = \"configured-rates\""),
        ("name = \"a.hip\"", "congestion = \"cubik\""),
        ("name = \"a.hip\"", "congestion = \"rp2\""),
        ("name = \"a.hip\"", "nmae = \"a.hip\""),
        ("name = \"a.hip\"", "control_everyone = 1"),
        ("name = \"a.hip\"", "[interfaces]\nignore = [\"docker*\"]"),
        ("identity = \"a.pem\"\n", ""),
        ("\"8Mbit/s\"", "\"8MB\""),
        ("\"8Mbit/s\"", "8"),
        ("\"8Mbit/s\"", "\" 2.5 Gbps \""),
        ("mtu = 1420", "mtu = 575"),
        ("interface = \"wwan0\"", "backup = true"),
        ("interface = \"wwan0\"", "interface = \"wwan0\"\nbackup = \"yes\""),
        ("[\"2001:db8::c\"]", "[]"),
        ("[\"2001:db8::c\"]", "\"2001:db8::c\""),
        ("address = \"203.0.113.7\", rate", "rate"),
        ("from = \"lte\", ", ""),
        ("[\"aes-128-cbc-hmac-sha-256\"]", "[]"),
        ("[\"aes-128-cbc-hmac-sha-256\"]", "[\"des\"]"),
        ("[\"p-384\", \"p-256\"]", "[\"p-384\", \"p-384\"]"),
        ("encapsulation = \"native\"", "encapsulation = \"tcp\""),
        ("puzzle = 10", "puzzle = 23"),
        ("puzzle = 10", "puzzle = 22"),
        ("rekey = \"90min\"", "rekey = 90"),
        ("rekey_packets = 20000", "rekey_packets = 9999"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let (read, valid) = (parse(&text, "a.toml"), validator.is_valid(&json(&text)));
        assert_eq!(valid, read.is_ok(), "{to}: {:?}", read.err().map(|error| error.to_string()));
        if valid { taken += 1 } else { refused += 1 }
    }
    assert_eq!((taken, refused), (4, 22));
}

/// RFC 8004 and RFC 7401 §4.1.8 in the file.
#[test]
fn peers_by_a_server_and_without_a_hit() {
    let text = r#"identity = "a.pem"
known_hits = "hits"
[rendezvous]
clients = ["c.hip"]
most = 7
[[peer]]
name = "b.hip"
hit = "2001:22::b"
locators = ["192.0.2.2:4500"]
register = true
[[peer]]
name = "c.hip"
hit = "2001:22::c"
via = ["192.0.2.2:4500", "2001:db8::2"]
[[peer]]
name = "d.hip"
opportunistic = true
locators = ["192.0.2.4"]
"#;
    let config = parse(text, "a.toml").expect("right");
    let [b, c] = config.peers.as_slice() else { panic!("two with a HIT") };
    let [d] = config.unknown.as_slice() else { panic!("one without") };
    assert_eq!((b.register, c.register, c.via.len(), c.via[0].port), (true, false, 2, Some(4500)));
    assert_eq!((d.name.as_str(), d.hit, d.opportunistic), ("d.hip", wire::Hit::NULL, true));
    assert_eq!(config.known_hits, PathBuf::from("hits"));
    let rendezvous = config.rendezvous.expect("a server");
    assert_eq!((rendezvous.clients, rendezvous.most), (Some(vec!["c.hip".to_owned()]), 7));
    assert!(!rendezvous.relay);
    let relay = text.replacen("most = 7", "relay = true", 1);
    let config = parse(&relay, "a.toml").expect("right");
    assert!(config.rendezvous.is_some_and(|rendezvous| rendezvous.relay && rendezvous.most == 10_000));
    let data = relay.replacen("relay = true", "relay = true\ndata = \"20 Mbit/s\"", 1);
    assert!(parse(&data, "a.toml").is_ok_and(|config| config.rendezvous.is_some_and(|of| of.data == 20_000_000)));
    let error = parse(&data.replacen("20 Mbit/s", "20 Gbit/s", 1), "a.toml").expect_err("more than is counted");
    assert!(error.line() == 6 && error.to_string().contains("1 Gbit/s"), "{error}");
    let native = relay.replace(":4500", "") + "[esp]\nencapsulation = \"native\"\n";
    let error = parse(&native, "a.toml").expect_err("natively");
    assert!(error.line() == 5 && error.to_string().contains("inside UDP only"), "{error}");
    for (right, wrong, line, says) in [
        (r#"clients = ["c.hip"]"#, r#"clients = ["e.hip"]"#, 4, "there is no peer"),
        ("most = 7", "most = 0", 5, "0"),
        ("locators = [\"192.0.2.2:4500\"]\n", "", 9, "no address"),
        (r#"via = ["192.0.2.2:4500", "#, r#"via = ["224.0.0.1", "#, 14, "no address of a host"),
        ("opportunistic = true", "opportunistic = false", 15, "hit"),
        ("opportunistic = true", "hit = \"2001:22::d\"\nopportunistic = true", 18, "there already"),
        ("opportunistic = true\nlocators = [\"192.0.2.4\"]", "opportunistic = true", 17, "asked who it is"),
    ] {
        let error = parse(&text.replacen(right, wrong, 1), "a.toml").expect_err(wrong);
        assert_eq!(error.line(), line, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}
