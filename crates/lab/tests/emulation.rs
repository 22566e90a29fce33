//! The emulator between real kernels. The oracles are the kernels' own clocks and programs, and arithmetic over rates and delays.
//!
//! Precision depends on what else the machine does, so bounds are generous here; `cargo test -p sinnet-lab --test emulation -- precision` prints
//! what was measured.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test in real time that prints what it measured"
)]

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clock::Streams;
use emulator::{Emulator, Network, Port, Recording, Summary};
use lab::{LabError, Namespace, Program};
use link::{LinkConfig, QueueConfig};

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 1, 1));
const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 1, 2));

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Test = (&'static str, fn() -> Outcome);

fn main() -> ExitCode {
    if let Err(error @ LabError::Forbidden { .. }) = lab::become_root() {
        testkit::skip(&error.to_string());
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let tests: &[Test] = &[
        ("delay_is_the_sum_of_the_links", delay_is_the_sum_of_the_links),
        ("rate_is_the_slowest_link", rate_is_the_slowest_link),
        ("packets_are_conserved", packets_are_conserved),
        ("capture_is_readable", capture_is_readable),
        ("precision_idle", || precision(0)),
        ("precision_at_200_mbit", || precision(200_000_000)),
        ("programs_die_with_their_host", programs_die_with_their_host),
    ];
    let mut failed = false;
    for (name, test) in tests {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        match test() {
            Ok(()) => println!("test {name} ... ok"),
            Err(error) => {
                println!("test {name} ... FAILED: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Datagrams of a constant rate from one host to the other, until it is stopped.
struct Load {
    begin: Instant,
    ends: Arc<AtomicBool>,
    sender: JoinHandle<std::io::Result<()>>,
    receiver: JoinHandle<u64>,
}

impl Load {
    const PORT: u16 = 5001;
    const DATAGRAM: usize = 1400;

    /// Begins to send `rate` bit/s of payload.
    fn start(pair: &Pair, rate: u64) -> Result<Self, Box<dyn std::error::Error>> {
        let sink = pair.b.run(|| UdpSocket::bind((B, Self::PORT)))??;
        sink.set_read_timeout(Some(Duration::from_millis(500)))?;
        let source = pair.a.run(|| UdpSocket::bind((A, 0)))??;
        let (begin, ends) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let ended = Arc::clone(&ends);
        let sender = std::thread::spawn(move || {
            let mut sent = 0;
            while !ended.load(Ordering::Relaxed) {
                let due = begin.elapsed().as_secs_f64() * rate as f64 / 8.0;
                while sent as f64 <= due {
                    sent += source.send_to(&[0; Self::DATAGRAM], (B, Self::PORT))?;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        let receiver = std::thread::spawn(move || {
            let (mut bytes, mut buffer) = (0, [0; 2000]);
            while let Ok(length) = sink.recv(&mut buffer) {
                bytes += length as u64;
            }
            bytes
        });
        Ok(Self { begin, ends, sender, receiver })
    }

    /// Ends it; how many bit/s have arrived.
    fn stop(self) -> Result<f64, Box<dyn std::error::Error>> {
        self.ends.store(true, Ordering::Relaxed);
        let took = self.begin.elapsed();
        self.sender.join().map_err(|_| "the sender panicked")??;
        let bytes = self.receiver.join().map_err(|_| "the receiver panicked")?;
        Ok(bytes as f64 * 8.0 / took.as_secs_f64())
    }
}

/// Two hosts with a route in each direction.
struct Pair {
    emulator: Emulator,
    a: Namespace,
    b: Namespace,
}

fn link(rate: Option<u64>, delay_ms: u64, queue: QueueConfig) -> LinkConfig {
    LinkConfig { rate, delay: clock::Duration::from_millis(delay_ms), queue, ..LinkConfig::default() }
}

impl Pair {
    fn new(links: impl Fn() -> Vec<LinkConfig>, capture: Option<&Path>) -> Result<Self, Box<dyn std::error::Error>> {
        let mut network = Network::new();
        let streams = Streams::new(1);
        let mut routes = Vec::new();
        for (from, to, port) in [(A, B, 1), (B, A, 0)] {
            let hops = links().into_iter().map(|config| network.add_link(config, streams.stream("link"))).collect();
            routes.push(network.add_route(from, to, hops, port));
        }
        let (a, b) = (Namespace::create("a")?, Namespace::create("b")?);
        let mut ports = Vec::new();
        for (host, own, other) in [(&a, A, B), (&b, B, A)] {
            ports.push(host.run(move || Port::open("up0", own, 1500))??);
            host.ip(&[format!("route add {other}/32 dev up0 src {own}")])?;
        }
        let recordings: Vec<Recording> =
            capture.map(|file| Recording { routes, file: file.to_owned() }).into_iter().collect();
        Ok(Self { emulator: Emulator::start(network, ports, &recordings)?, a, b })
    }

    fn finish(self) -> std::io::Result<Summary> {
        self.emulator.stop()
    }
}

fn check(holds: bool, message: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(message().into()) }
}

/// Round trips of `ping`, in milliseconds.
fn ping(host: &Namespace, to: IpAddr, count: u32) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let text =
        host.output(&Program::new("ping").args(["-n", "-i", "0.01", "-c", &count.to_string(), &to.to_string()]))?;
    let times = text.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok());
    Ok(times.collect())
}

fn delay_is_the_sum_of_the_links() -> Outcome {
    let pair = Pair::new(|| vec![link(None, 10, QueueConfig::Unlimited), link(None, 5, QueueConfig::Unlimited)], None)?;
    let times = ping(&pair.a, B, 50)?;
    let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
    pair.finish()?;
    check(times.len() == 50, || format!("{} of 50 echoes", times.len()))?;
    // Never earlier than the links allow; how much later depends on the machine.
    check((30.0..40.0).contains(&fastest), || format!("a round trip over 2 * (10 + 5) ms took {fastest} ms"))
}

fn rate_is_the_slowest_link() -> Outcome {
    let pair = Pair::new(
        || {
            vec![
                link(Some(50_000_000), 1, QueueConfig::Unlimited),
                link(Some(8_000_000), 1, QueueConfig::Bytes(100_000)),
            ]
        },
        None,
    )?;
    let received = pair.b.run(|| UdpSocket::bind((B, 5000)))??;
    received.set_read_timeout(Some(Duration::from_millis(300)))?;
    let sender = pair.a.run(|| UdpSocket::bind((A, 0)))??;
    // 60 packets of 1028 bytes fit the queue: they leave it at 8 Mbit/s, 1.028 ms apart.
    for _ in 0..60 {
        sender.send_to(&[0; 1000], (B, 5000))?;
    }
    let mut times = Vec::new();
    let mut buffer = [0; 2000];
    while received.recv(&mut buffer).is_ok() {
        times.push(Instant::now());
    }
    pair.finish()?;
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Err("nothing arrived".into()) };
    let took = last.duration_since(*first).as_secs_f64() * 1e3;
    let expected = 59.0 * 1.028;
    check(times.len() == 60, || format!("{} of 60 packets", times.len()))?;
    // The receiver may be woken late, the first time or the last.
    check((took - expected).abs() < 30.0, || format!("60 packets took {took} ms instead of {expected} ms"))
}

fn packets_are_conserved() -> Outcome {
    // A queue of ten packets behind a slow link: most of a burst is dropped, and every packet is accounted for.
    let pair = Pair::new(|| vec![link(Some(10_000_000), 1, QueueConfig::Packets(10))], None)?;
    let receiver = pair.b.run(|| UdpSocket::bind((B, 5000)))??;
    receiver.set_read_timeout(Some(Duration::from_millis(300)))?;
    let sender = pair.a.run(|| UdpSocket::bind((A, 0)))??;
    for _ in 0..200 {
        sender.send_to(&[0; 1000], (B, 5000))?;
    }
    let mut arrived = 0;
    while receiver.recv(&mut [0; 2000]).is_ok() {
        arrived += 1;
    }
    let summary = pair.finish()?;
    let counts = summary.counts;
    check(counts.received == counts.delivered + counts.dropped + counts.unroutable, || format!("{counts:?}"))?;
    check(counts.delivered == arrived && summary.refused == 0, || format!("{arrived} arrived of {counts:?}"))?;
    check(counts.dropped > 100, || format!("a queue of ten packets dropped only {}", counts.dropped))
}

fn capture_is_readable() -> Outcome {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("path.pcap");
    let pair = Pair::new(|| vec![link(None, 1, QueueConfig::Unlimited)], Some(&file))?;
    ping(&pair.a, B, 5)?;
    pair.finish()?;
    let Ok(tshark) = std::process::Command::new("tshark")
        .arg("-r")
        .arg(&file)
        .args(["-Y", "icmp", "-T", "fields", "-e", "ip.src", "-e", "icmp.type"])
        .output()
    else {
        println!("(tshark is not installed: the capture was not read back)");
        return Ok(());
    };
    let text = String::from_utf8_lossy(&tshark.stdout);
    // On a busy machine requests leave before the answers to earlier ones have come: only how many there are is certain.
    let mut read: Vec<&str> = text.lines().collect();
    read.sort_unstable();
    let expected = [vec![format!("{A}\t8"); 5], vec![format!("{B}\t0"); 5]].concat();
    check(read == expected, || format!("tshark reads '{text}'"))
}

fn precision(load: u64) -> Outcome {
    let pair = Pair::new(|| vec![link(Some(1_000_000_000), 30, QueueConfig::Unlimited)], None)?;
    let receiver = pair.b.run(|| UdpSocket::bind((B, 5000)))??;
    receiver.set_read_timeout(Some(Duration::from_millis(500)))?;
    let sender = pair.a.run(|| UdpSocket::bind((A, 0)))??;
    let beside = (load > 0).then(|| Load::start(&pair, load)).transpose()?;
    let origin = Instant::now();
    let probes = 1000;
    let listener = std::thread::spawn(move || {
        let mut delays = Vec::new();
        let mut buffer = [0; 100];
        while let Ok(8) = receiver.recv(&mut buffer) {
            let arrived = u64::try_from(origin.elapsed().as_nanos()).unwrap_or(0);
            let sent = u64::from_ne_bytes(buffer.first_chunk().copied().unwrap_or_default());
            delays.push((arrived - sent) as f64 / 1e6);
        }
        delays
    });
    for _ in 0..probes {
        std::thread::sleep(Duration::from_millis(3));
        let now = u64::try_from(origin.elapsed().as_nanos())?;
        sender.send_to(&now.to_ne_bytes(), (B, 5000))?;
    }
    let mut delays = listener.join().map_err(|_| "the listener panicked")?;
    let carried = beside.map_or(Ok(0.0), Load::stop)?;
    let summary = pair.finish()?;
    delays.sort_by(f64::total_cmp);
    let at = |share: f64| delays.get(((delays.len() - 1) as f64 * share) as usize).copied().unwrap_or(f64::NAN);
    println!(
        "  30 ms, {:.0} Mbit/s beside: probes between programs {:.3} ms median, {:.3} ms 99 %, {:.3} ms worst of {}; \
         the emulator itself late by {:.0} us median, {:.0} us 99 %, {:.0} us 99.9 %, {:.0} us worst of {} packets; real-time priority: {}; {:?}",
        carried / 1e6,
        at(0.5),
        at(0.99),
        at(1.0),
        delays.len(),
        summary.lateness.quantile(0.5) / 1e3,
        summary.lateness.quantile(0.99) / 1e3,
        summary.lateness.quantile(0.999) / 1e3,
        summary.lateness.max() as f64 / 1e3,
        summary.lateness.samples(),
        summary.real_time_priority,
        summary.counts,
    );
    check(delays.len() == probes, || format!("{} of {probes} probes arrived", delays.len()))?;
    check(carried >= 0.9 * load as f64, || format!("only {carried} bit/s were beside"))?;
    check(at(0.0) >= 30.0, || format!("a packet was early: {} ms", at(0.0)))?;
    check(at(0.5) < 50.0, || format!("half of the packets were later than {} ms", at(0.5)))
}

fn programs_die_with_their_host() -> Outcome {
    let host = Namespace::create("a")?;
    let mut child = host.spawn(&Program::new("sleep").args(["600"]))?;
    // Until the program has asked the kernel to be killed with its parent, only our handle would end it.
    std::thread::sleep(Duration::from_millis(300));
    drop(host);
    for _ in 0..100 {
        if child.has_ended()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err("a program outlived its host".into())
}
