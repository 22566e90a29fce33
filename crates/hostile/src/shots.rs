//! Attacks that need few packets: by programs, by local users, and at the first contact.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::time::Duration;

use lab::Program;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, SockAddr, Socket, Type};
use wire::hip::{Packet, PacketKind};

use crate::clear::{associated, verdict};
use crate::clockwork::{now, pause};
use crate::flood::{Flood, ipv4_udp, raw_socket};
use crate::ground::{Ground, Plan, address};
use crate::report::Row;
use crate::tap::PORT;
use crate::{Attack, Failure, Options, forge, load};

/// The attacks.
pub(crate) const SHOTS: [Attack; 6] = [
    Attack { name: "small-segments", told: "TCP with a maximum segment of 500 bytes, both ways", run: small_segments },
    Attack { name: "large-mtu", told: "a device whose MTU somebody has made larger", run: large_mtu },
    Attack { name: "deaf-client", told: "a local user who asks and never reads", run: deaf_client },
    Attack { name: "silent-clients", told: "local users who connect and say nothing", run: silent_clients },
    Attack { name: "stolen-r1", told: "another host's R1 at a host that begins", run: stolen_r1 },
    Attack { name: "amplification", told: "bytes out for each byte of a stranger", run: amplification },
];

/// Bytes of a download through small segments.
const DOWNLOAD: usize = 20_000_000;

/// Downloads with small segments; how much arrived.
fn download(ground: &Ground, server: &str, client: &str, segment: u32) -> Result<usize, Failure> {
    let to = ground.hit_address(server)?;
    let listener = load::listen(ground.host(server)?, 7100)?;
    let sender = std::thread::spawn(move || {
        if let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.set_write_timeout(Some(Duration::from_secs(8)));
            // The client counts what came of it.
            let _ = stream.write_all(&vec![1; DOWNLOAD]);
        }
    });
    let mut stream: std::net::TcpStream = ground.host(client)?.run(move || {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
        socket.set_tcp_mss(segment)?;
        socket.connect_timeout(&SockAddr::from(SocketAddr::from((to, 7100))), Duration::from_secs(10))?;
        Ok::<_, std::io::Error>(socket.into())
    })??;
    stream.set_read_timeout(Some(Duration::from_secs(8)))?;
    let (mut got, mut buffer) = (0, vec![0; 1 << 16]);
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        got += length;
    }
    drop(stream);
    let _ = sender.join();
    Ok(got)
}

fn small_segments(options: &Options) -> Result<Row, Failure> {
    let mut ground = associated(options, Plan::default())?;
    let mut harm = Vec::new();
    for (server, client) in [("A", "B"), ("B", "A")] {
        for segment in [500, 100] {
            let got = download(&ground, server, client, segment).unwrap_or(0);
            if got < DOWNLOAD {
                harm.push(format!("{client} got {got} bytes of {DOWNLOAD} in segments of {segment}"));
            }
            for host in ["A", "B"] {
                if ground.ended(host) {
                    harm.push(format!("the daemon of {host} has ended"));
                    ground.start(host)?;
                    ground.associate(1)?;
                }
            }
        }
    }
    Ok(verdict("small-segments", harm, String::new()))
}

fn large_mtu(options: &Options) -> Result<Row, Failure> {
    let mut ground = associated(options, Plan::default())?;
    let device = ground.status("A")?["device"].as_str().unwrap_or("sinnet0").to_owned();
    ground.host("A")?.ip(&[format!("link set {device} mtu 9000")])?;
    let to = ground.hit_address("B")?;
    for length in [3000_usize, 8900] {
        let route =
            lab::Program::new("ip").args(["route", "replace", &format!("{to}/128"), "dev", &device, "mtu", "9000"]);
        // A daemon that has repaired its routes may not allow it.
        let _ = ground.host("A")?.output(&route);
        ground.host("A")?.run(move || {
            let _ = UdpSocket::bind("[::]:0").and_then(|socket| socket.send_to(&vec![1; length], (to, 9)));
        })?;
        pause(Duration::from_millis(300))?;
    }
    let mut harm = Vec::new();
    if ground.ended("A") {
        harm.push(format!("the daemon has ended: {}", ground.log("A").lines().last().unwrap_or_default()));
    } else if !load::reaches(&ground, "A", "B", Duration::from_secs(5))? {
        harm.push("nothing passes any more".to_owned());
    }
    Ok(verdict("large-mtu", harm, String::new()))
}

/// Runs a Python program as a user without rights, where we may become one; it has the control socket as `sys.argv[1]`.
fn as_nobody(ground: &Ground, program: &str) -> Result<lab::Running, Failure> {
    let (control, _) = ground.daemon("A")?;
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let probe = Program::new("setpriv").args(nobody).args(["true"]);
    let rights: &[&str] = if ground.host("A")?.output(&probe).is_ok() { &nobody } else { &[] };
    // The system's own, which every user may run.
    let python = ["/usr/bin/python3", "python3"].into_iter().find(|path| Path::new(path).exists()).unwrap_or("python3");
    let args = ["--pdeathsig", "KILL", python, "-c", program];
    let program = Program::new("setpriv").args(rights.iter().copied()).args(args).args([control.to_string_lossy()]);
    Ok(ground.host("A")?.spawn(&program.log_to(&ground.path("nobody.log")))?)
}

/// Asks again and again on many connections and never reads; one that does read keeps the daemon turning.
const DEAF: &str = r#"
import socket, sys, time
ask = b'{"command":"status"}\n'
end = time.time() + 8
def one():
    s = socket.socket(socket.AF_UNIX); s.settimeout(0.2); s.connect(sys.argv[1]); return s
held = []
while time.time() < end:
    try:
        s = one(); s.sendall(ask); s.recv(65536); s.close()
        if len(held) < 14: held.append(one())
    except OSError: time.sleep(0.005)
    for s in list(held):
        try: s.setblocking(False); s.send(ask * 150)
        except BlockingIOError: pass
        except OSError: held.remove(s)
"#;

fn deaf_client(options: &Options) -> Result<Row, Failure> {
    let ground = associated(options, Plan::default())?;
    let load = load::Load::start(&ground, 50_000_000)?;
    pause(Duration::from_secs(2))?;
    let (first, before) = (load.mark(), ground.usage("A"));
    pause(Duration::from_secs(4))?;
    let quiet = load.between(first, load.mark())?;
    let program = as_nobody(&ground, DEAF)?;
    pause(Duration::from_millis(500))?;
    let first = load.mark();
    pause(Duration::from_secs(4))?;
    let under = load.between(first, load.mark())?;
    let after = ground.usage("A");
    let mut harm = Vec::new();
    if after.rss > before.rss + (16 << 10) {
        harm.push(format!("{} MiB more memory", (after.rss - before.rss) >> 10));
    }
    if under.mbps < 0.9 * quiet.mbps {
        harm.push(format!("the download falls from {:.1} to {:.1} Mbit/s", quiet.mbps, under.mbps));
    }
    if ground.status("A").is_err() {
        harm.push("root gets no answer".to_owned());
    }
    drop(program);
    let mut row = verdict("deaf-client", harm, String::new());
    row.rss_kb = Some([before.rss, after.rss]);
    (row.quiet, row.under) = (Some(quiet), Some(under));
    row.kept_percent = Some(under.mbps / quiet.mbps * 100.0);
    Ok(row)
}

/// Holds as many silent connections as it gets.
const SILENT: &str = r#"
import socket, sys, time
end = time.time() + 8
held = []
while time.time() < end:
    try:
        s = socket.socket(socket.AF_UNIX); s.settimeout(0.2); s.connect(sys.argv[1]); held.append(s)
    except OSError: time.sleep(0.01)
    if len(held) > 500: time.sleep(0.05)
"#;

fn silent_clients(options: &Options) -> Result<Row, Failure> {
    let ground = associated(options, Plan::default())?;
    let program = as_nobody(&ground, SILENT)?;
    pause(Duration::from_secs(1))?;
    let mut refused = 0;
    for _ in 0..10 {
        refused += u32::from(ground.status("A").is_err());
        pause(Duration::from_millis(200))?;
    }
    drop(program);
    let harm = if refused > 0 { vec![format!("{refused} of 10 questions of root were refused")] } else { Vec::new() };
    Ok(verdict("silent-clients", harm, String::new()))
}

/// The R1 that a host gives to whoever asks in somebody's name.
fn an_r1(ground: &Ground, socket: &UdpSocket, of: &str, named: &str) -> Result<Vec<u8>, Failure> {
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut buffer = [0; 4096];
    for _ in 0..10 {
        socket.send_to(&forge::i1(ground.hit(named)?, ground.hit(of)?)?, (address(of), PORT))?;
        let Ok(length) = socket.recv(&mut buffer) else { continue };
        let datagram = buffer.get(..length).unwrap_or_default();
        if Packet::parse(datagram.get(4..).unwrap_or_default()).is_ok_and(|packet| packet.kind() == PacketKind::R1) {
            return Ok(datagram.to_vec());
        }
    }
    Err("no R1 was given".into())
}

fn stolen_r1(options: &Options) -> Result<Row, Failure> {
    let mut ground = Ground::new(&options.sinnet, Plan::default())?;
    ground.start_all()?;
    let here = SocketAddrV4::new(address("X"), PORT);
    let socket = ground.host("X")?.run(move || UdpSocket::bind(here))??;
    let r1 = an_r1(&ground, &socket, "B", "A")?;
    let to = SocketAddrV4::new(address("A"), PORT);
    // The true answer comes later than the attacker's, as from another continent.
    let (_, pid) = ground.daemon("B")?;
    let daemon = Pid::from_raw(i32::try_from(pid)?);
    kill(daemon, Signal::SIGSTOP)?;
    let flood = Flood::start(
        ground.host("X")?,
        50,
        Box::new(move |_, out| {
            out.extend_from_slice(&r1);
            (here, to)
        }),
    )?;
    load::nudge(&ground, "A", "B")?;
    pause(Duration::from_millis(300))?;
    kill(daemon, Signal::SIGCONT)?;
    let begin = now();
    let outcome = ground.associate(1);
    let took = begin.elapsed().as_secs_f64();
    flood.stop();
    let mut harm = Vec::new();
    match outcome {
        Err(_) => harm.push("no association within 15 s".to_owned()),
        Ok(()) if took > 5.0 => harm.push(format!("the association took {took:.1} s")),
        Ok(()) => {}
    }
    Ok(verdict("stolen-r1", harm, format!("{took:.1} s with 50 R1s a second of which each was first")))
}

fn amplification(options: &Options) -> Result<Row, Failure> {
    let ground = associated(options, Plan::default())?;
    let here = SocketAddrV4::new(address("X"), PORT);
    let to = SocketAddrV4::new(address("A"), PORT);
    let (socket, raw) =
        ground.host("X")?.run(move || Ok::<_, std::io::Error>((UdpSocket::bind(here)?, raw_socket()?)))??;
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    let i1 = forge::i1(ground.hit("B")?, ground.hit("A")?)?;
    let (mut packet, mut buffer) = (Vec::new(), [0; 4096]);
    let (mut sent, mut answered) = (0, 0);
    for _ in 0..50 {
        ipv4_udp(here, to, &i1, &mut packet);
        raw.send_to(&packet, &SockAddr::from(SocketAddr::V4(to)))?;
        sent += packet.len();
        pause(Duration::from_millis(20))?;
    }
    while let Ok(length) = socket.recv(&mut buffer) {
        // With headers of IPv4 and UDP.
        answered += length + 28;
    }
    let factor = answered as f64 / sent as f64;
    let harm = if factor > 3.0 { vec![format!("{factor:.1} bytes out for each byte in")] } else { Vec::new() };
    let note = format!("{sent} bytes of I1 in, {answered} bytes out");
    Ok(verdict("amplification", harm, note))
}
