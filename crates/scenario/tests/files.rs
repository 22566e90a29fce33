//! Scenario files: those that are right, and what is said about those that are not.

use clock::{Duration, Instant};
use link::{ChangeKind, LossConfig, QueueConfig};
use proptest::prelude::*;
use scenario::{Amount, Document, Inside, Limit, Moment, Protocol, QueueSpec, parse};
use text::Diagnostic;

const GOOD: &str = r#"
name = "one TCP connection over two paths"
duration = "20s"
seed = 7
[[link]]
between = ["a", "r1"]
rate = "8Mbit/s"
delay = "30ms"
queue = "1.5bdp"
[[link.change]]
at = "10s"
rate = "1Mbit/s"
delay = "40ms"
[[link.change]]
at = "5s"
down = true
[[link]]
between = ["r1", "b"]
[[link]]
from = "a"
to = "r2"
rate = "512kbit/s"
delay = "10ms"
queue = "100ms"
loss = "1%"
[[link]]
from = "r2"
to = "a"
rate = "4Mbit/s"
delay = "20ms"
queue = "64kB"
loss = { to_bad = 0.01, to_good = 0.5 }
[[link]]
between = ["r2", "b"]
[[flow]]
name = "download"
from = "b"
to = "a"
protocol = "mptcp"
paths = [["b", "r1", "a"], ["b", "r2", "a"]]
scheduler = "fastest-path-first"
packet_size = 1000
receiver_window = "100p"
amount = "10MB"
start = ["0s", "1s"]
[[flow]]
from = "a"
to = "b"
protocol = "udp"
rate = "100kbit/s"
on_off = { on = "1s", off = "500ms", times = "exponential" }
count = 3
start = "2s"
stop = "9s"
"#;

fn error(text: &str) -> Diagnostic {
    parse(text, "x.toml").expect_err("this must be refused")
}

/// `GOOD` with one piece replaced.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn a_whole_file_is_read() {
    let s = parse(GOOD, "good.toml").unwrap();
    assert_eq!(
        (s.name.as_str(), s.duration, s.seed),
        ("one TCP connection over two paths", Duration::from_secs(20), 7)
    );
    assert_eq!(s.nodes, ["a", "r1", "b", "r2"]);
    assert_eq!(s.links[0].queue, QueueSpec::DropTail(Limit::Bdp(1.5)));
    let changes: Vec<_> = s.links[0].changes.iter().map(|c| (c.at.as_secs_f64(), c.what)).collect();
    let delay = ChangeKind::Delay(Duration::from_millis(40));
    assert_eq!(changes, [(5.0, ChangeKind::Down), (10.0, ChangeKind::Rate(Some(1_000_000))), (10.0, delay)]);
    assert_eq!(s.links[2].loss, LossConfig::Random(0.01));
    let burst = LossConfig::GilbertElliott { to_bad: 0.01, to_good: 0.5, loss_good: 0.0, loss_bad: 1.0 };
    assert_eq!(s.links[3].loss, burst);
    let download = &s.flows[0];
    assert_eq!((download.protocol, &download.paths), (Protocol::Mptcp, &vec![vec![2, 1, 0], vec![2, 3, 0]]));
    assert_eq!(
        (download.amount, download.receiver_window),
        (Some(Amount::Bytes(10_000_000)), Some(Amount::Packets(100)))
    );
    assert_eq!(download.start, Moment::Between(Instant::ZERO, Instant::from_nanos(1_000_000_000)));
    let udp = &s.flows[1];
    assert_eq!((udp.name.as_str(), udp.count, udp.rate), ("flow2", 3, Some(100_000)));
    assert!(udp.on_off.is_some_and(|on_off| on_off.exponential));
}

#[test]
fn queues_are_resolved_for_each_direction() {
    let s = parse(GOOD, "good.toml").unwrap();
    let directed = s.directed();
    let names: Vec<_> = directed.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["a-r1", "r1-a", "r1-b", "b-r1", "a-r2", "r2-a", "r2-b", "b-r2"]);
    // 1.5 times 8 Mbit/s over 60 ms in packets of 1000 bytes: 90.
    assert_eq!(directed[0].config.queue, QueueConfig::Packets(90));
    assert_eq!(directed[1].config.queue, QueueConfig::Packets(90));
    assert_eq!(directed[2].config.queue, QueueConfig::Unlimited);
    // 512 kbit/s for 100 ms.
    assert_eq!(directed[4].config.queue, QueueConfig::Bytes(6400));
    assert_eq!(directed[5].config.queue, QueueConfig::Bytes(64_000));
    // There 20 ms, back 10 ms.
    assert_eq!(s.path_round_trip(&s.flows[0].paths[1]), Duration::from_millis(30));
    // The shortest way from a to b: two links either way, r2's has less delay.
    assert_eq!(s.flows[1].paths, [vec![0, 3, 2]]);
}

#[test]
fn red_and_codel_are_resolved_to_packets() {
    let red = "{ kind = \"red\", min = \"0.5bdp\", max = \"1.5bdp\" }";
    let s = parse(&with("\"1.5bdp\"", red), "x").unwrap();
    let QueueConfig::Red(config) = s.directed()[0].config.queue else { panic!("RED") };
    // 8 Mbit/s over 60 ms are 60 packets of 1000 bytes; Floyd's 0.1 and 0.002 by default.
    assert_eq!((config.min, config.max, config.probability, config.weight), (30.0, 90.0, 0.1, 0.002));
    assert_eq!((config.packet_bytes, config.gentle, config.ecn), (1000, false, false));
    let s = parse(&with("\"1.5bdp\"", "{ kind = \"codel\", target = \"10ms\", ecn = true }"), "x").unwrap();
    let QueueConfig::CoDel(config) = s.directed()[0].config.queue else { panic!("CoDel") };
    assert_eq!(
        (config.target, config.interval, config.ecn),
        (Duration::from_millis(10), Duration::from_millis(100), true)
    );
}

#[test]
fn what_travels_inside_is_tcp_unless_it_says_otherwise() {
    let flow = |keys: &str| {
        let text =
            "name = \"n\"\nduration = \"1s\"\n[[link]]\nbetween = [\"a\", \"b\"]\n[[flow]]\nfrom = \"a\"\nto = \"b\"\n";
        parse(&format!("{text}{keys}"), "x").map(|mut s| s.flows.remove(0)).map_err(|error| error.to_string())
    };
    assert_eq!(flow("protocol = \"sinnet\"").unwrap().sinnet.inside, Inside::Tcp);
    assert_eq!(flow("protocol = \"sinnet\"\ninside = \"ping\"").unwrap().sinnet.inside, Inside::Ping);
    let call = flow("protocol = \"sinnet\"\ninside = \"udp\"\nrate = \"1Mbit/s\"").unwrap();
    assert_eq!((call.sinnet.inside, call.rate), (Inside::Udp, Some(1_000_000)));
    assert!(flow("protocol = \"sinnet\"\ninside = \"udp\"").unwrap_err().contains("needs its `rate`"));
    assert!(
        flow("protocol = \"sinnet\"\nrate = \"1Mbit/s\"")
            .unwrap_err()
            .contains("`rate` is not for \"sinnet\" with TCP inside")
    );
    assert!(flow("protocol = \"tcp\"\ninside = \"udp\"\nrate = \"1Mbit/s\"").is_err());
}

#[test]
fn the_files_of_the_repository_are_right() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut read = 0;
    for folder in ["lab", "lab/bench", "sim", "papers"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let document = Document::load(&text, &path.display().to_string(), &mut scenario::read_beside);
            for point in document.and_then(|document| document.points()).unwrap_or_else(|e| panic!("{e}")) {
                point.document.scenario().unwrap_or_else(|e| panic!("{e}"));
                read += 1;
            }
        }
    }
    assert!(read >= 6);
}

#[test]
fn the_three_scenarios_of_the_demonstration_have_their_rates_and_round_trips() {
    for (file, rates, millis) in [
        (include_str!("../../../scenarios/lab/two-paths.toml"), vec![8, 4], 60),
        (include_str!("../../../scenarios/lab/three-paths.toml"), vec![2, 4, 5], 20),
        (include_str!("../../../scenarios/lab/cut.toml"), vec![8, 4], 60),
    ] {
        let s = parse(file, "demo").unwrap();
        assert_eq!(s.flows[0].paths.len(), rates.len());
        for (path, rate) in s.flows[0].paths.iter().zip(rates) {
            assert_eq!(s.path_round_trip(path), Duration::from_millis(millis));
            let hops = path.windows(2).map(|hop| {
                s.links.iter().find(|l| [l.from, l.to] == [hop[1], hop[0]] || [l.from, l.to] == [hop[0], hop[1]])
            });
            assert_eq!(hops.filter_map(|link| link.unwrap().rate).min(), Some(rate * 1_000_000));
        }
    }
}

/// Line and column of the bar in `mark`, which otherwise stands in the text exactly once.
fn spot(text: &str, mark: &str) -> (usize, usize) {
    let plain = mark.replace('|', "");
    if plain.is_empty() {
        return (1, 1); // the file as a whole
    }
    assert_eq!(text.matches(&plain).count(), 1, "{mark}");
    let at = text.find(&plain).unwrap() + mark.find('|').unwrap();
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    (text[..at].split('\n').count(), at - line_start + 1)
}

/// What is wrong, the place that is shown, and a piece of the message and of the help.
#[test]
fn errors_say_where_and_what_would_be_right() {
    let cases = [
        (with("delay = \"30ms\"", "dealy = \"30ms\""), "\n|dealy", "no key `dealy`", "did you mean `delay`?"),
        (with("seed = 7", "speed = 7"), "\n|speed", "no key `speed`", "seed"),
        (with("\"8Mbit/s\"", "\"0Mbit/s\""), "|\"0Mbit", "rate of zero", "down = true"),
        (with("\"8Mbit/s\"", "8"), "rate = |8\n", "a rate is needed here, not a number", "\"8Mbit/s\""),
        (with("\"8Mbit/s\"", "\"8MB\""), "|\"8MB\"", "\"8MB\" is not a rate", "Mbit/s"),
        (with("\"30ms\"", "\"-30ms\""), "|\"-30ms", "below zero", ""),
        (with("\"1.5bdp\"", "\"a lot\""), "|\"a lot", "not a length of a queue", "1.5bdp"),
        (with("\"1.5bdp\"", "{ kind = \"rde\" }"), "|\"rde", "\"rde\" is not known", "did you mean \"red\"?"),
        (with("\"1.5bdp\"", "{ kind = \"red\", min = \"90p\", max = \"30p\" }"), "|{ kind", "`min` below `max`", ""),
        (
            with("\"1.5bdp\"", "{ kind = \"codel\", taget = \"5ms\" }"),
            "\"codel\", |taget",
            "no key `taget`",
            "did you mean `target`?",
        ),
        (with("\"1.5bdp\"", "{ kind = \"codel\", target = \"0s\" }"), "target = |\"0s\"", "a time above 0", ""),
        (with("rate = \"512kbit/s\"\n", ""), "|queue = \"100ms", "without a `rate`", "leave `queue` out"),
        (with("\"1%\"", "1.5"), "|1.5\n", "1.5 is no probability", "0.01"),
        (with("[\"a\", \"r1\"]", "[\"a\", \"a\"]"), "|[\"a\", \"a\"]", "from \"a\" to itself", "different"),
        (
            with("[\"r1\", \"b\"]", "[\"r1\", \"a\"]"),
            "|[[link]]\nbetween = [\"r1\", \"a\"]",
            "there is a link from \"r1\" to \"a\" already",
            "put another node",
        ),
        (
            with("[\"b\", \"r1\", \"a\"]", "[\"b\", \"r1\", \"r2\", \"a\"]"),
            "\"r1\", |\"r2\", \"a\"]",
            "no link leads from \"r1\" to \"r2\"",
            "a or b",
        ),
        (
            with("[\"b\", \"r1\", \"a\"]", "[\"b\", \"r3\", \"a\"]"),
            "|\"r3",
            "no link leads to a node \"r3\"",
            "did you mean",
        ),
        (
            with("[\"b\", \"r1\", \"a\"]", "[\"b\", \"r1\", \"b\", \"r2\", \"a\"]"),
            "\"r1\", |\"b\", \"r2\"",
            "comes to \"b\" twice",
            "",
        ),
        (
            with("[\"b\", \"r1\", \"a\"]", "[\"a\", \"r1\", \"b\"]"),
            "[|\"a\", \"r1\", \"b\"]",
            "begins where its flow starts",
            "\"b\"",
        ),
        (with("[\"b\", \"r1\", \"a\"]", "[\"b\", \"r1\"]"), "|\"r1\"], [", "ends where its flow leads", "\"a\""),
        (with("\"mptcp\"", "\"mtpcp\""), "|\"mtpcp", "\"mtpcp\" is not known", "did you mean \"mptcp\"?"),
        (
            with("\"mptcp\"", "\"tcp\"").replace("scheduler = ", "congestion = "),
            "|[[\"b\"",
            "\"tcp\" uses one path",
            "mptcp",
        ),
        (with("count = 3", "count = 1000000000"), "|1000000000", "too large", "1000000"),
        (with("count = 3", "count = 0"), "count = |0\n", "too small", ""),
        (with("count = 3", "count = 1000000"), "|1000000\n", "1000001 flows in sum", ""),
        (with("stop = \"9s\"", "stop = \"1s\""), "stop = |\"1s\"", "stops before", ""),
        (with("rate = \"100kbit/s\"\n", ""), "|[[flow]]\nfrom", "needs its `rate`", "1Mbit/s"),
        (with("name = \"one", "nam = \"one"), "|nam = \"one", "no key `nam`", "did you mean `name`?"),
        (with("name = \"one TCP connection over two paths\"\n", ""), "", "needs `name`", ""),
        (with("\"20s\"", "\"0s\""), "|\"0s\"\nseed", "no time", ""),
        (with("down = true", ""), "|[[link.change]]\nat = \"5s\"", "nothing changes", ""),
        (with("seed = 7", "seed = "), "seed = |\n", "not TOML", ""),
        (with("seed = 7", "extends = \"base.toml\""), "|\"base.toml", "cannot extend \"base.toml\"", ""),
    ];
    for (text, place, message, help) in cases {
        let error = error(&text);
        assert_eq!((error.line(), error.column()), spot(&text, place), "{error}");
        assert!(error.message().contains(message), "{error}");
        assert!(error.help().unwrap_or_default().contains(help), "{error}");
    }
}

#[test]
fn acknowledgments_need_a_way_back() {
    let text = GOOD.replace("from = \"a\"\nto = \"r2\"", "from = \"a\"\nto = \"r9\"");
    let error = error(&text);
    assert!(error.message().contains("no link leads from \"a\" to \"r2\""), "{error}");
}

#[test]
fn a_file_extends_another() {
    let over = "extends = \"good.toml\"\nduration = \"5s\"\n[[link]]\nbetween = [\"a\", \"r1\"]\nrate = \"1Mbit/s\"\n\
                [[flow]]\nname = \"download\"\ncongestion = \"cubic\"\n[[flow]]\nname = \"new\"\nfrom = \"a\"\nto = \"b\"\nprotocol = \"tcp\"\n";
    let mut read = |base: &str, _: &str| {
        assert_eq!(base, "good.toml");
        Ok((base.to_owned(), GOOD.to_owned()))
    };
    let s = Document::load(over, "over.toml", &mut read).unwrap().scenario().unwrap();
    assert_eq!((s.duration, s.seed), (Duration::from_secs(5), 7));
    assert_eq!((s.links[0].rate, s.links[0].delay), (Some(1_000_000), Duration::from_millis(30)));
    assert_eq!((s.links.len(), s.flows.len()), (5, 3));
    assert_eq!(
        (s.flows[0].congestion.as_deref(), s.flows[0].scheduler.as_deref()),
        (Some("cubic"), Some("fastest-path-first"))
    );

    // An error in the base is shown in the base.
    let bad = GOOD.replace("\"64kB\"", "\"64kX\"");
    let error = Document::load(over, "over.toml", &mut |_, _| Ok(("base.toml".into(), bad.clone())))
        .unwrap()
        .scenario()
        .unwrap_err();
    assert_eq!((error.source_name(), error.line()), ("base.toml", spot(&bad, "|\"64kX\"").0));

    let circle = Document::load(over, "over.toml", &mut |_, _| Ok(("over.toml".into(), over.into()))).unwrap_err();
    assert!(circle.message().contains("without end"), "{circle}");
}

#[test]
fn keys_are_set_from_outside() {
    let mut document = Document::parse(GOOD, "good.toml").unwrap();
    for assignment in
        ["link.a-r1.rate=2Mbit/s", "link.*.loss=0", "flow.download.congestion = cubic", "flow.2.count=5", "seed=9"]
    {
        document.set(assignment).unwrap();
    }
    let s = document.scenario().unwrap();
    assert_eq!((s.links[0].rate, s.seed, s.flows[1].count), (Some(2_000_000), 9, 5));
    assert!(s.links.iter().all(|link| link.loss == LossConfig::None));
    assert_eq!(s.flows[0].congestion.as_deref(), Some("cubic"));

    // Several at once, as the two links of one path.
    document.set("flow.1,download.packet_size=700").unwrap();
    assert_eq!(document.scenario().unwrap().flows[0].packet_size, Some(700));
    assert!(document.set("link.a-r1,a-r7.rate=1Mbit/s").is_err());

    let error = document.set("link.a-r7.rate=1Mbit/s").unwrap_err();
    assert!(error.help().unwrap_or_default().contains("link.a-r1"), "{error}");
    document.set("link.a-r1.rate=fast").unwrap();
    let error = document.scenario().unwrap_err();
    assert_eq!((error.source_name(), error.column()), ("--set", 16), "{error}");
    assert!(document.set("duration").is_err() && document.set("flow=1").is_err());
}

#[test]
fn flows_start_together() {
    let mut document = Document::parse(&GOOD.replace("start = \"2s\"", ""), "good.toml").unwrap();
    document.set("flow.1.start=[\"0s\", \"1s\"]").unwrap();
    let first = document.scenario().unwrap().flows[0].name.clone();
    let mut both = document.clone();
    both.set(&format!("flow.2.start_with={first}")).unwrap();
    let s = both.scenario().unwrap();
    assert_eq!((s.flows[1].start_with, s.flows[1].start), (Some(0), s.flows[0].start));
    for (assignment, told) in [
        ("flow.2.start_with=nobody".to_owned(), "no flow is called"),
        (format!("flow.1.start_with={first}"), "no start of its own"),
    ] {
        let mut wrong = document.clone();
        wrong.set(&assignment).unwrap();
        let error = wrong.scenario().unwrap_err();
        assert!(error.message().contains(told), "{error}");
    }
    both.set("flow.2.start=1s").unwrap();
    assert!(both.scenario().unwrap_err().message().contains("exclude each other"));
}

#[test]
fn a_sweep_is_every_combination() {
    let text = format!(
        "{GOOD}\n[sweep]\n\"link.a-r1.rate\" = [\"1Mbit/s\", \"2Mbit/s\"]\nflow.download.packet_size = [500, 1000, 1500]\n"
    );
    let document = Document::parse(&text, "sweep.toml").unwrap();
    assert!(document.scenario().is_err());
    let points = document.points().unwrap();
    let got: Vec<_> = points
        .iter()
        .map(|point| {
            let s = point.document.scenario().unwrap();
            (s.links[0].rate.unwrap() / 1_000_000, s.flows[0].packet_size.unwrap())
        })
        .collect();
    assert_eq!(got, [(1, 500), (1, 1000), (1, 1500), (2, 500), (2, 1000), (2, 1500)]);
    assert_eq!(points[0].values[1], ("flow.download.packet_size".to_owned(), "500".to_owned()));

    // Tables are called by what is in them: points of one name are one point of a campaign.
    let queues = "\"link.a-r1.queue\" = [\"9p\", { kind = \"codel\" }, { limit = \"9p\", kind = \"codel\" }]";
    let points = Document::parse(&format!("{GOOD}\n[sweep]\n{queues}\n"), "sweep.toml").unwrap().points().unwrap();
    let names: Vec<&str> = points.iter().map(|point| point.values[0].1.as_str()).collect();
    assert_eq!(names, ["\"9p\"", "{ kind = \"codel\" }", "{ kind = \"codel\", limit = \"9p\" }"]);

    for (sweep, message) in [
        ("\"link.x.rate\" = [\"1Mbit/s\"]", "no link \"x\""),
        ("seed = 1", "goes over a list"),
        ("\"flow.download\" = [1]", "which of its keys"),
    ] {
        let text = format!("{GOOD}\n[sweep]\n{sweep}\n");
        let error = Document::parse(&text, "sweep.toml").unwrap().points().unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
    let many = format!("seed = {:?}", (0..400).collect::<Vec<_>>());
    let text =
        format!("{GOOD}\n[sweep]\n{many}\n\"flow.download.packet_size\" = {:?}\n", (100..400).collect::<Vec<_>>());
    assert!(Document::parse(&text, "sweep.toml").unwrap().points().is_err());
}

proptest! {
    #[test]
    fn any_damage_to_a_file_is_read_or_refused(at in 0usize..1200, length in 0usize..12, new in "[a-z0-9=\"\\[\\]{}.,\n -]{0,6}") {
        let mut text = GOOD.to_owned();
        let start = at.min(text.len());
        let end = (start + length).min(text.len());
        text.replace_range(start..end, &new);
        if let Ok(scenario) = parse(&text, "x") {
            prop_assert!(scenario.directed().len() >= scenario.links.len());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        let _ = parse(&text, "x");
        let _ = Document::parse(GOOD, "x").unwrap().set(&text);
    }
}
