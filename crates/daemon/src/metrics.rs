//! Metrics for Prometheus: what `sinnet status --json` tells, over just enough of HTTP/1.1 (RFC 9112): `GET /metrics`, one answer
//! per connection. In the OpenMetrics text format for who accepts that, as Prometheus does, and otherwise in Prometheus' own.
//!
//! The format comes from `prometheus-client`, the Prometheus project's own library. It is filled anew for each answer,
//! because the numbers live in the wedge, which knows nothing of metrics.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use clock::{Duration, Instant};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use rustix::event::PollFlags;
use serde::Serialize;
use serde_json::Value;
use wedge::{PathStatus, PeerStatus, Status};

use crate::counters::Counters;
use crate::visitors::{Class, Limits, Step, Tally, Visitors};

/// A request is a few lines.
const LONGEST_REQUEST: usize = 8192;
/// As many bytes as show that a request is longer.
const LIMITS: Limits = Limits { ordinary: 16, trusted: 0, question: 2 * LONGEST_REQUEST, answers: 1 };
/// A scrape may show figures that are this old.
const STALE: Duration = Duration::from_millis(100);
/// What OpenMetrics texts are called.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// And those of Prometheus' own format.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The daemon's end.
#[derive(Debug)]
pub struct Metrics {
    visitors: Visitors<TcpListener>,
    /// Only programs of this machine reach us.
    private: bool,
    /// What was told last.
    told: Option<(Instant, String)>,
}

impl Metrics {
    /// Listens at `address`.
    ///
    /// # Errors
    /// Where the port is taken.
    pub fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let visitors = Visitors::new(listener, LIMITS);
        Ok(Self { visitors, private: address.ip().is_loopback(), told: None })
    }

    /// What to poll for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.visitors.interests()
    }

    /// When [`Metrics::turn`] wants to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.visitors.poll_timeout()
    }

    /// What has happened to visitors.
    pub(crate) fn tally(&self) -> Tally {
        self.visitors.tally()
    }

    /// Accepts, reads and writes as far as that goes without waiting. `text` is asked for an answer, ten times a second at
    /// most.
    pub fn turn(&mut self, now: Instant, mut text: impl FnMut() -> String) {
        let (private, told) = (self.private, &mut self.told);
        let mut text = || {
            let recent = told.as_ref().filter(|(when, _)| now.saturating_since(*when) < STALE);
            let text = recent.map_or_else(&mut text, |(_, text)| text.clone());
            if recent.is_none() {
                *told = Some((now, text.clone()));
            }
            text
        };
        self.visitors.turn(
            now,
            |_| Class::Ordinary,
            |_, question| {
                if question.windows(4).any(|end| end == b"\r\n\r\n") {
                    Step::Last(respond(question, private, &mut text))
                } else if question.len() > LONGEST_REQUEST {
                    Step::Last(response("431 Request Header Fields Too Large", "text/plain", "too long\n", true))
                } else {
                    Step::More
                }
            },
        );
    }
}

/// The answer to a request whose header is complete.
fn respond(request: &[u8], private: bool, text: &mut impl FnMut() -> String) -> Vec<u8> {
    let request = String::from_utf8_lossy(request);
    let mut lines = request.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let of = |wanted: &'static str| fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
    // A page in a browser whose name was made to point here would come with that name (DNS rebinding).
    if private && of("host").any(|(_, host)| !is_here(host.trim())) {
        return response("421 Misdirected Request", "text/plain", "ask for localhost or 127.0.0.1\n", true);
    }
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let target = target.map(|target| target.split('?').next().unwrap_or_default());
    match (method, target, version) {
        (Some(method @ ("GET" | "HEAD")), Some("/metrics"), Some("HTTP/1.1" | "HTTP/1.0")) => {
            let open = of("accept").any(|(_, accepted)| accepted.contains("application/openmetrics-text"));
            match open {
                true => response("200 OK", OPEN_METRICS, &text(), method == "GET"),
                false => response("200 OK", PLAIN, &plain(&text()), method == "GET"),
            }
        }
        (Some(method @ ("GET" | "HEAD")), Some(_), Some("HTTP/1.1" | "HTTP/1.0")) => {
            response("404 Not Found", "text/plain", "the metrics are at /metrics\n", method == "GET")
        }
        (Some(_), Some(_), Some("HTTP/1.1" | "HTTP/1.0")) => {
            response("405 Method Not Allowed", "text/plain", "only GET and HEAD\n", true)
        }
        _ => response("400 Bad Request", "text/plain", "this is not HTTP/1.1\n", true),
    }
}

/// Whether a `Host` (RFC 9112 §3.2) is an address or the name of this machine for itself.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    address.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

fn response(status: &str, kind: &str, body: &str, with_body: bool) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    format!("{head}{}", if with_body { body } else { "" }).into_bytes()
}

/// OpenMetrics as Prometheus' older text format: there a family is called as its samples are, and no more than counters and
/// gauges of these are known.
fn plain(open: &str) -> String {
    let words =
        |line: &str| line.strip_prefix("# ").map(|rest| rest.splitn(3, ' ').map(str::to_owned).collect::<Vec<_>>());
    let kinds: BTreeMap<String, String> = open
        .lines()
        .filter_map(words)
        .filter_map(|words| match words.as_slice() {
            [kind, name, value] if kind == "TYPE" => Some((name.clone(), value.clone())),
            _ => None,
        })
        .collect();
    let mut text = String::new();
    for line in open.lines() {
        let told = match words(line).as_deref() {
            Some([what, name, rest]) if what == "HELP" || what == "TYPE" => {
                let (suffix, kind) = match kinds.get(name).map_or("", String::as_str) {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    kind => ("", kind),
                };
                format!("# {what} {name}{suffix} {}", if what == "TYPE" { kind } else { rest })
            }
            // UNIT and EOF.
            Some(_) => continue,
            None => line.to_owned(),
        };
        text += &told;
        text.push('\n');
    }
    text
}

/// What is exported of the process itself.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// The time of processors that it has used, in seconds.
    pub cpu: f64,
}

type Labels = Vec<(&'static str, String)>;
type Count = Family<Labels, Counter>;
type Measure = Family<Labels, Gauge<f64, AtomicU64>>;

/// The state as OpenMetrics text.
pub fn text(device: &str, daemon: &Counters, status: &Status, process: Process) -> String {
    let mut all = Registry::default();
    let of_process = all.sub_registry_with_prefix("process");
    let cpu = Counter::<f64, AtomicU64>::default();
    cpu.inc_by(process.cpu.max(0.0));
    of_process.register_with_unit("cpu", "Time of processors used", Unit::Seconds, cpu);
    let started = Gauge::<f64, AtomicU64>::default();
    started.set(process.started as f64);
    of_process.register_with_unit("start_time", "Start, since 1970", Unit::Seconds, started);
    let registry = all.sub_registry_with_prefix("sinnet");
    registry.register("build", "The program", Info::new(vec![("version", env!("CARGO_PKG_VERSION").to_owned())]));
    let Status { hit, lsi, peers, counters, control, .. } = status;
    let host = [("device", device.to_owned()), ("hit", hit.clone()), ("lsi", lsi.clone())];
    registry.register("host", "This host", Info::new(host.to_vec()));
    let refused = Counter::<u64, AtomicU64>::default();
    refused.inc_by(daemon.unsent);
    registry.register("unsent_packets", "Packets that the kernel did not take", refused);
    events(registry, "data_events", "What happened to packets, as `counters` of the status", counters);
    events(registry, "control_events", "What happened to HIP packets, as `control` of the status", control);
    events(registry, "daemon_events", "What happened in the daemon, as `daemon` of the status", daemon);
    associations(registry, peers);
    paths(registry, peers);
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = encode(&mut text, &all);
    text
}

/// Every number of a set of counters, under its name.
fn events(registry: &mut Registry, name: &str, help: &str, counters: &impl Serialize) {
    let family = Count::default();
    if let Ok(Value::Object(all)) = serde_json::to_value(counters) {
        for (event, count) in all {
            family.get_or_create(&vec![("event", event)]).inc_by(count.as_u64().unwrap_or(0));
        }
    }
    registry.register(name, help, family);
}

fn associations(registry: &mut Registry, peers: &[PeerStatus]) {
    let labels = |peer: &PeerStatus| vec![("peer", peer.name.clone())];
    let mut set = Set { registry, all: peers.iter().map(|peer| (labels(peer), peer)).collect() };
    set.measure("association_established", "Whether the association is up", None, |peer| {
        Some(f64::from(u8::from(peer.state == "ESTABLISHED")))
    });
    set.measure("association_age", "How long there has been an association", Some(Unit::Seconds), |peer| peer.age_s);
    set.measure("association_feedback", "Whether the peer gives feedback", None, |peer| {
        Some(f64::from(u8::from(peer.feedback)))
    });
    set.measure("flows", "Flows remembered", None, |peer| Some(peer.flows as f64));
    set.count("resequenced_packets", "Packets that had to wait for others before them", |peer| Some(peer.resequenced));
    set.count("proven_losses", "Holes given up because every path had delivered something younger", |peer| {
        Some(peer.proven_losses)
    });
    set.count("expired_holes", "Holes given up because others had waited long enough", |peer| Some(peer.expired_holes));
    let buffer = |peer: &PeerStatus| peer.send_buffer;
    set.measure("send_buffer_packets", "Packets that wait for the paths", None, |peer| {
        Some(buffer(peer)?.packets as f64)
    });
    set.measure("send_buffer", "Bytes that wait for the paths", Some(Unit::Bytes), |peer| {
        Some(buffer(peer)?.bytes as f64)
    });
    set.measure("send_buffer_delay", "How long the packet that left last had waited", Some(Unit::Seconds), |peer| {
        Some(buffer(peer)?.delay_ms / 1e3)
    });
    set.count(
        "send_buffer_dropped_packets",
        "Packets dropped because programs sent more than the paths carry",
        |peer| Some(buffer(peer)?.dropped),
    );
    set.count("send_buffer_marked_packets", "Packets marked because programs sent more than the paths carry", |peer| {
        Some(buffer(peer)?.marked)
    });
    let ratio = Some(Unit::Other("ratio".to_owned()));
    set.measure("paths_bind", "Of the time, the part in which the paths were the limit", ratio, |peer| {
        Some(buffer(peer)?.paths_bind)
    });
}

fn paths(registry: &mut Registry, peers: &[PeerStatus]) {
    let labels = |peer: &PeerStatus, path: &PathStatus| {
        vec![
            ("peer", peer.name.clone()),
            ("path", path.id.to_string()),
            ("name", path.name.clone()),
            ("local", path.local.clone()),
            ("remote", path.remote.clone()),
        ]
    };
    let all = peers.iter().flat_map(|peer| peer.paths.iter().map(move |path| (labels(peer, path), path)));
    let mut set = Set { registry, all: all.collect() };
    let flag = |flag: bool| Some(f64::from(u8::from(flag)));
    let (bytes, seconds) = (|| Some(Unit::Bytes), || Some(Unit::Seconds));
    set.measure("path_alive", "Whether the path answers", None, |path| flag(path.alive));
    set.measure("path_backup", "Whether it carries data only where no other works", None, |path| flag(path.backup));
    set.measure("path_standby", "Whether it is a backup and others work", None, |path| flag(path.standby));
    set.measure("path_native", "Whether ESP leaves without UDP", None, |path| flag(path.sheds_udp));
    set.measure("path_srtt", "Smoothed round-trip time", seconds(), |path| Some(path.srtt_ms? / 1e3));
    set.measure("path_queued", "Bytes that wait for the path", bytes(), |path| Some(path.queued as f64));
    set.count("path_sent_bytes", "Bytes of outer IP packets sent", |path| Some(path.bytes_out));
    set.count("path_received_bytes", "Bytes of outer IP packets received", |path| Some(path.bytes_in));
    set.count("path_sent_packets", "ESP packets sent", |path| Some(path.packets_out));
    set.count("path_received_packets", "ESP packets received and accepted", |path| Some(path.packets_in));
    set.measure("path_mtu", "The largest outer IP packet", bytes(), |path| Some(f64::from(path.mtu)));
    set.count("path_mtu_probes", "Probes of the path's MTU sent", |path| Some(path.mtu_probes));
    set.count("path_black_holes", "How often packets of a size that had passed did no longer", |path| {
        Some(path.black_holes)
    });
    let rate = Some(Unit::Other("bits_per_second".to_owned()));
    set.measure("path_delivery_rate", "What the path delivers", rate, |path| Some(path.measured?.delivery_rate as f64));
    set.measure("path_cwnd", "Congestion window", bytes(), |path| Some(path.measured?.cwnd as f64));
    set.measure("path_ssthresh", "Slow-start threshold", bytes(), |path| Some(path.measured?.ssthresh? as f64));
    set.measure("path_in_flight", "Bytes under way", bytes(), |path| Some(path.measured?.in_flight as f64));
    set.measure("path_rttvar", "Variation of the round-trip time", seconds(), |path| {
        Some(path.measured?.rttvar_ms? / 1e3)
    });
    set.count("path_delivered_packets", "Packets that arrived", |path| Some(path.measured?.delivered));
    set.count("path_lost_packets", "Packets that did not arrive", |path| Some(path.measured?.lost));
    set.count("path_spurious_packets", "Packets taken for lost that arrived", |path| Some(path.measured?.spurious));
    set.count("path_reordered_packets", "Packets that arrived after later ones", |path| Some(path.measured?.reordered));
    set.count("path_ce_packets", "Packets with Congestion Experienced", |path| Some(path.measured?.ce));
}

/// What there are several of, with the labels of each.
struct Set<'a, T> {
    registry: &'a mut Registry,
    all: Vec<(Labels, &'a T)>,
}

impl<T> Set<'_, T> {
    fn count(&mut self, name: &str, help: &str, value: impl Fn(&T) -> Option<u64>) {
        let family = Count::default();
        for (labels, item) in &self.all {
            if let Some(value) = value(item) {
                family.get_or_create(labels).inc_by(value);
            }
        }
        self.registry.register(name, help, family);
    }

    fn measure(&mut self, name: &str, help: &str, unit: Option<Unit>, value: impl Fn(&T) -> Option<f64>) {
        let family = Measure::default();
        for (labels, item) in &self.all {
            if let Some(value) = value(item) {
                family.get_or_create(labels).set(value);
            }
        }
        match unit {
            Some(unit) => self.registry.register_with_unit(name, help, unit, family),
            None => self.registry.register(name, help, family),
        }
    }
}

#[cfg(test)]
mod tests;
