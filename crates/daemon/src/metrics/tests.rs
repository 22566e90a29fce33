//! The oracle is the grammar of OpenMetrics 1.0 (its ABNF and the rules on families), written down once more here.

use super::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use wedge::{Measured, SendBufferStatus};

const PROCESS: Process = Process { started: 1_700_000_000, cpu: 12.5 };

fn state() -> Status {
    let path = |id: u16, name: &str| {
        json!({
            "id": id, "name": name, "local": "192.0.2.1:10500", "remote": "[2001:db8::2]:10500", "alive": true,
            "backup": id == 1, "standby": id == 1, "srtt_ms": (id == 0).then_some(41.5), "bytes_out": u64::MAX, "bytes_in": 2,
            "packets_out": 3, "packets_in": 4, "queued": 5,
        })
    };
    let peer = json!({
        "name": "b.hip", "hit": "2001:22::b", "lsi": "198.18.0.2", "state": "ESTABLISHED", "feedback": true,
        "congestion": "mhip", "flows": 3, "resequenced": 9,
        "paths": [path(0, "eth0"), path(1, "a \"quoted\\name\"\nin two lines")],
    });
    let state = json!({
        "hit": "2001:22::a", "lsi": "198.18.0.1", "peers": [peer], "counters": { "no_peer": 12 },
        "control": { "established": 1 },
    });
    serde_json::from_value(state).expect("a status")
}

/// Samples by name and labels. Panics where the text is not OpenMetrics.
fn parse(text: &str) -> BTreeMap<(String, Vec<(String, String)>), f64> {
    let name_is_right = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || "_:".contains(c))
            && chars.all(|c| c.is_ascii_alphanumeric() || "_:".contains(c))
    };
    let body = text.strip_suffix("# EOF\n").expect("the end is told");
    let mut samples = BTreeMap::new();
    let mut types: BTreeMap<String, String> = BTreeMap::new();
    let mut family = String::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (what, name, value) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            assert!(name_is_right(name), "{line}");
            family = name.to_owned();
            match what {
                "TYPE" => {
                    assert!(["counter", "gauge", "info"].contains(&value), "{line}");
                    assert!(types.insert(name.to_owned(), value.to_owned()).is_none(), "twice: {line}");
                }
                "HELP" => assert!(!value.is_empty()),
                "UNIT" => assert!(name.ends_with(&format!("_{value}")), "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let end = line.find(['{', ' ']).unwrap();
        let (name, mut rest) = line.split_at(end);
        let suffix = name.strip_prefix(&family).unwrap_or_else(|| panic!("{line} is not of {family}"));
        let expected = match types[&family].as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        assert!(suffix == expected && name_is_right(name), "{line}");
        let mut labels = Vec::new();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            loop {
                let (key, after) = rest.split_once("=\"").unwrap();
                assert!(name_is_right(key), "{line}");
                let (mut value, mut chars) = (String::new(), after.char_indices());
                let closed = loop {
                    match chars.next().unwrap() {
                        (_, '\\') => value.push(match chars.next().unwrap().1 {
                            'n' => '\n',
                            c @ ('\\' | '"') => c,
                            other => panic!("\\{other} in {line}"),
                        }),
                        (at, '"') => break at,
                        (_, c) => value.push(c),
                    }
                };
                labels.push((key.to_owned(), value));
                rest = &after[closed + 1..];
                match rest.split_at(1) {
                    (",", after) => rest = after,
                    ("}", after) => {
                        rest = after;
                        break;
                    }
                    _ => panic!("{line}"),
                }
            }
        }
        let value: f64 = rest.strip_prefix(' ').unwrap().parse().unwrap();
        assert!(samples.insert((name.to_owned(), labels), value).is_none(), "twice: {line}");
    }
    samples
}

fn labels(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_text_is_open_metrics_and_says_what_the_status_says() {
    let mut state = state();
    let before = parse(&text("sinnet0", &Counters { unsent: 4, ..Counters::default() }, &state, PROCESS));
    assert!(!before.keys().any(|(name, _)| name.contains("cwnd")), "what is not known is not told");
    let mut buffer = SendBufferStatus::default();
    (buffer.packets, buffer.bytes, buffer.delay_ms, buffer.dropped, buffer.paths_bind) = (2, 3000, 2.5, 7, 0.25);
    let mut measured = Measured::default();
    (measured.delivery_rate, measured.cwnd, measured.in_flight) = (8_000_000, 90_000, 1500);
    (measured.delivered, measured.lost, measured.ce) = (100, 1, 2);
    state.peers[0].send_buffer = Some(buffer);
    state.peers[0].paths[0].measured = Some(measured);
    let samples = parse(&text("sinnet0", &Counters { unsent: 4, ..Counters::default() }, &state, PROCESS));
    let sample = |name: &str, list: &[(&str, &str)]| samples.get(&(name.to_owned(), labels(list))).copied();
    let peer = &[("peer", "b.hip")];
    let eth0 = &[
        ("peer", "b.hip"),
        ("path", "0"),
        ("name", "eth0"),
        ("local", "192.0.2.1:10500"),
        ("remote", "[2001:db8::2]:10500"),
    ];
    let host = &[("device", "sinnet0"), ("hit", "2001:22::a"), ("lsi", "198.18.0.1")];
    type Expected<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);
    let all: [Expected<'_>; 15] = [
        ("process_cpu_seconds_total", &[], 12.5),
        ("process_start_time_seconds", &[], 1.7e9),
        ("sinnet_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0),
        ("sinnet_host_info", host, 1.0),
        ("sinnet_unsent_packets_total", &[], 4.0),
        ("sinnet_data_events_total", &[("event", "no_peer")], 12.0),
        ("sinnet_control_events_total", &[("event", "established")], 1.0),
        ("sinnet_association_established", peer, 1.0),
        ("sinnet_send_buffer_bytes", peer, 3000.0),
        ("sinnet_send_buffer_delay_seconds", peer, 0.0025),
        ("sinnet_paths_bind_ratio", peer, 0.25),
        ("sinnet_path_srtt_seconds", eth0, 0.0415),
        ("sinnet_path_sent_bytes_total", eth0, u64::MAX as f64),
        ("sinnet_path_delivery_rate_bits_per_second", eth0, 8e6),
        ("sinnet_path_ce_packets_total", eth0, 2.0),
    ];
    for (name, labels, value) in all {
        assert_eq!(
            sample(name, labels),
            Some(value),
            "{name} in\n{}",
            text("sinnet0", &Counters { unsent: 4, ..Counters::default() }, &state, PROCESS)
        );
    }
    assert!(samples.keys().any(|(_, labels)| labels.iter().any(|(_, value)| value.contains("\"quoted\\name\"\nin"))));
    // Every counter has its event, with its value: what is serialised, and what the sets say there is.
    let daemon = Counters { unsent: 4, ..Counters::default() };
    let all = [
        ("data", serde_json::to_value(state.counters), wedge::Counters::MEANINGS),
        ("control", serde_json::to_value(state.control), hip::Counters::MEANINGS),
        ("daemon", serde_json::to_value(daemon), Counters::MEANINGS),
    ];
    for (set, counters, meanings) in all {
        let counters = counters.expect("JSON");
        let counters = counters.as_object().expect("a set");
        assert_eq!(counters.len(), meanings.len());
        for (name, count) in counters {
            let told = sample(&format!("sinnet_{set}_events_total"), &[("event", name)]);
            assert_eq!(told, count.as_f64(), "{set} {name}");
            assert!(meanings.iter().any(|(known, meaning)| known == name && meaning.len() > 10), "{name}");
        }
    }
}

/// One exchange with a server in this process; what comes back.
fn ask(request: &[u8]) -> String {
    let mut metrics = Metrics::listen("127.0.0.1:0".parse().expect("an address")).expect("listens");
    let mut stream = TcpStream::connect(metrics.visitors.listener().local_addr().expect("bound")).expect("connects");
    stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a time");
    stream.write_all(request).expect("writes");
    // Twice, as a poll would: once to accept and read, once more where the request had not come whole.
    for _ in 0..20 {
        metrics.turn(Instant::ZERO, || "x 1\n# EOF\n".to_owned());
        if metrics.visitors.len() == 0 {
            break;
        }
        std::thread::yield_now();
    }
    let mut answer = String::new();
    if metrics.visitors.len() != 0 {
        return answer;
    }
    BufReader::new(stream).read_to_string(&mut answer).expect("reads");
    answer
}

#[test]
fn it_speaks_as_much_http_as_it_takes() {
    let answer = ask(
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;q=0.5,*/*;q=0.1\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;"), "{answer}");
    assert!(answer.contains("\r\nContent-Length: 10\r\n") && answer.ends_with("\r\n\r\nx 1\n# EOF\n"), "{answer}");
    let plain = ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n");
    assert!(plain.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;"), "{plain}");
    assert!(plain.ends_with("\r\n\r\nx 1\n"), "{plain}");
    assert!(ask(b"HEAD /metrics HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
    assert!(ask(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(ask(b"\xff\x00\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(ask(&[b'x'; 9000]).starts_with("HTTP/1.1 431 "));
    assert_eq!(ask(b"GET /metrics"), "", "it waits for the rest");
}

#[test]
fn silent_visitors_keep_nobody_out() {
    let mut metrics = Metrics::listen("127.0.0.1:0".parse().expect("an address")).expect("listens");
    let address = metrics.visitors.listener().local_addr().expect("bound");
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(address).expect("connects")).collect();
    metrics.turn(Instant::ZERO, String::new);
    assert_eq!((silent.len(), metrics.visitors.len()), (100, LIMITS.ordinary));
}

#[test]
fn a_name_that_a_stranger_made_point_here_is_not_answered() {
    let ask = |host: &str| ask(format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\n{host}\r\n\r\n").as_bytes());
    for host in ["evil.example", "evil.example:9480", "127.0.0.1.evil.example", "localhost.evil.example", "[::1].e"] {
        assert!(ask(&format!("Host: {host}")).starts_with("HTTP/1.1 421 "), "{host}");
        assert!(ask(&format!("Host: localhost\r\nhOST:{host}")).starts_with("HTTP/1.1 421 "), "{host}");
    }
    for host in ["localhost", "LOCALHOST:9480", "127.0.0.1:9480", "[::1]:9480", "[::1]", "127.0.0.2"] {
        assert!(ask(&format!("Host: {host}")).starts_with("HTTP/1.1 200 "), "{host}");
    }
}

/// The rules of Prometheus' text format: a family's HELP and TYPE have the name of its samples, its types are five, and nothing
/// else stands behind a #.
#[test]
fn the_older_format_names_families_as_samples_and_has_the_same_numbers() {
    let open = text("sinnet0", &Counters { unsent: 4, ..Counters::default() }, &state(), PROCESS);
    let plain = plain(&open);
    let samples =
        |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(samples(&plain), samples(&open));
    let mut family = "";
    for line in plain.lines() {
        match line.strip_prefix("# ").map(|rest| rest.splitn(3, ' ').collect::<Vec<_>>()).as_deref() {
            Some(["HELP", name, _]) => family = name,
            Some(["TYPE", name, kind]) => {
                assert!(*name == family && ["counter", "gauge"].contains(kind), "{line}");
            }
            Some(_) => panic!("{line}"),
            None => assert_eq!(line.split(['{', ' ']).next(), Some(family), "{line}"),
        }
    }
    assert!(plain.contains("# TYPE sinnet_unsent_packets_total counter\n"));
    assert!(plain.contains("# TYPE sinnet_host_info gauge\n"));
}
