//! Packets outside of the tunnel that claim an identity, or should have been inside it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use lab::Namespace;

use crate::clockwork::pause;
use crate::ground::{Ground, Plan};
use crate::report::{Outcome, Row};
use crate::tap::Tap;
use crate::{Attack, Failure, Options, load};

/// The attacks.
pub(crate) const CLEAR: [Attack; 7] = [
    Attack { name: "clear-hit", told: "cleartext in the peer's name, by HIT", run: clear_hit },
    Attack { name: "clear-lsi", told: "cleartext in the peer's name, by LSI", run: clear_lsi },
    Attack { name: "clear-forwarded", told: "cleartext in the victim's own name, through it", run: clear_forwarded },
    Attack { name: "leak-killed", told: "what leaves in clear once the daemon is killed", run: leak_killed },
    Attack { name: "leak-down", told: "what leaves in clear once the device was down", run: leak_down },
    Attack { name: "leak-second", told: "what leaves in clear once a second daemon has ended", run: leak_second },
    Attack { name: "public-addresses", told: "public addresses that the tunnel takes", run: public_addresses },
];

/// A and B with an association.
pub(crate) fn associated(options: &Options, plan: Plan) -> Result<Ground, Failure> {
    let mut ground = Ground::new(&options.sinnet, plan)?;
    ground.start_all()?;
    ground.associate(1)?;
    Ok(ground)
}

/// A host's own LSI, as its daemon tells it.
pub(crate) fn lsi(ground: &Ground, host: &str) -> Result<Ipv4Addr, Failure> {
    let status = ground.status(host)?;
    Ok(status["lsi"].as_str().ok_or("the daemon tells no LSI")?.parse()?)
}

/// The peer's LSI, as A's daemon tells it.
pub(crate) fn peer_lsi(ground: &Ground) -> Result<Ipv4Addr, Failure> {
    let status = ground.status("A")?;
    Ok(status["peers"][0]["lsi"].as_str().ok_or("the daemon tells no LSI of its peer")?.parse()?)
}

/// A row of an attack that either did harm or did not.
pub(crate) fn verdict(name: &str, harm: Vec<String>, note: String) -> Row {
    Row { attack: name.to_owned(), outcome: Outcome::of(harm), note, ..Row::default() }
}

fn receiver(host: &Namespace, at: IpAddr) -> Result<UdpSocket, Failure> {
    let socket = host.run(move || UdpSocket::bind((at, 6000)))??;
    socket.set_read_timeout(Some(Duration::from_millis(700)))?;
    Ok(socket)
}

/// Whether a datagram from `from` reaches `receiver`. What programs of the tunnel's end send is no news.
fn believed(attacker: &Namespace, from: IpAddr, receiver: &UdpSocket) -> Result<bool, Failure> {
    let to: SocketAddr = receiver.local_addr()?;
    attacker.run(move || {
        let socket = UdpSocket::bind((from, 0))?;
        for _ in 0..3 {
            // A host that answers with a refusal has taken it at least.
            let _ = socket.send_to(b"believe me", to);
        }
        Ok::<(), std::io::Error>(())
    })??;
    let mut buffer = [0; 100];
    Ok(receiver.recv(&mut buffer).is_ok_and(|length| buffer.get(..length) == Some(b"believe me")))
}

fn clear_hit(options: &Options) -> Result<Row, Failure> {
    let ground = associated(options, Plan::default())?;
    let (a, b) = (ground.hit_address("A")?, ground.hit_address("B")?);
    let attacker = ground.host("X")?;
    attacker.ip(&[format!("addr add {b}/128 dev eth0 nodad"), format!("route add {a}/128 via fd77:0::1 dev eth0")])?;
    let socket = receiver(ground.host("A")?, a.into())?;
    let harm = believed(attacker, b.into(), &socket)?.then(|| "a program believed it".to_owned());
    Ok(verdict("clear-hit", harm.into_iter().collect(), String::new()))
}

fn clear_lsi(options: &Options) -> Result<Row, Failure> {
    let ground = associated(options, Plan::default())?;
    let (a, b) = (lsi(&ground, "A")?, peer_lsi(&ground)?);
    let attacker = ground.host("X")?;
    attacker.ip(&[format!("addr add {b}/32 dev lo"), format!("route add {a}/32 via 10.77.0.1 dev eth0")])?;
    let socket = receiver(ground.host("A")?, a.into())?;
    let mut harm = Vec::new();
    for filter in ["0", "1", "2"] {
        ground.host("A")?.run(move || {
            ["all", "eth0"]
                .iter()
                .try_for_each(|name| fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), filter))
        })??;
        if believed(attacker, b.into(), &socket)? {
            harm.push(format!("a program believed it with rp_filter {filter}"));
        }
    }
    Ok(verdict("clear-lsi", harm, String::new()))
}

fn clear_forwarded(options: &Options) -> Result<Row, Failure> {
    let ground = associated(options, Plan::default())?;
    let (a, b) = (ground.hit_address("A")?, ground.hit_address("B")?);
    let attacker = ground.host("X")?;
    ground.host("A")?.run(|| {
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")
    })??;
    attacker.ip(&[format!("addr add {a}/128 dev eth0 nodad"), format!("route add {b}/128 via fd77:0::1 dev eth0")])?;
    let socket = receiver(ground.host("B")?, b.into())?;
    let harm = believed(attacker, a.into(), &socket)?.then(|| "the peer's program believed it".to_owned());
    Ok(verdict("clear-forwarded", harm.into_iter().collect(), String::new()))
}

/// What A's programs send to B for a second, and what of it is seen on the Ethernet in clear.
struct Leak {
    tap: Tap,
    to: [IpAddr; 2],
}

impl Leak {
    fn watch(ground: &Ground) -> Result<Self, Failure> {
        let lsis = [lsi(ground, "A")?, peer_lsi(ground)?];
        let to = [IpAddr::V6(ground.hit_address("B")?), IpAddr::V4(lsis[1])];
        Ok(Self { tap: Tap::start(&ground.switch, &lsis)?, to })
    }

    fn send(&self, ground: &Ground, times: u32) -> Result<(), Failure> {
        for _ in 0..times {
            for to in self.to {
                ground.host("A")?.run(move || {
                    // A refusal by the kernel is what should happen.
                    let any: SocketAddr = if to.is_ipv4() { "0.0.0.0:0".parse()? } else { "[::]:0".parse()? };
                    let _ = UdpSocket::bind(any).and_then(|socket| socket.send_to(b"secret", (to, 9)));
                    Ok::<(), std::net::AddrParseError>(())
                })??;
            }
            pause(Duration::from_millis(100))?;
        }
        Ok(())
    }

    fn harm(self) -> Vec<String> {
        let clear = self.tap.stop().clear;
        clear.into_iter().map(|one| format!("in clear: {one}")).collect()
    }
}

fn leak_killed(options: &Options) -> Result<Row, Failure> {
    let mut ground = associated(options, Plan::default())?;
    let leak = Leak::watch(&ground)?;
    ground.kill("A");
    leak.send(&ground, 10)?;
    Ok(verdict("leak-killed", leak.harm(), String::new()))
}

fn leak_down(options: &Options) -> Result<Row, Failure> {
    let mut ground = associated(options, Plan::default())?;
    let leak = Leak::watch(&ground)?;
    let device = ground.status("A")?["device"].as_str().unwrap_or("sinnet0").to_owned();
    ground.host("A")?.ip(&[format!("link set {device} down")])?;
    leak.send(&ground, 3)?;
    // The daemon may have removed it, or ended.
    let _ = ground.host("A")?.ip(&[format!("link set {device} up")]);
    leak.send(&ground, 10)?;
    let mut harm = leak.harm();
    let ended = ground.ended("A");
    let works = load::reaches(&ground, "A", "B", Duration::from_secs(5))?;
    let note = match (ended, works) {
        (_, true) => "the tunnel works again",
        (true, false) => "the daemon has ended",
        (false, false) => {
            harm.push("the daemon lives and nothing passes".to_owned());
            ""
        }
    };
    Ok(verdict("leak-down", harm, note.to_owned()))
}

fn leak_second(options: &Options) -> Result<Row, Failure> {
    let ground = associated(options, Plan::default())?;
    let leak = Leak::watch(&ground)?;
    ground.host("A")?.ip(&["addr add 10.77.0.31/24 dev eth0".to_owned()])?;
    let text = format!(
        "identity = \"M.pem\"\nname = \"m.hip\"\ncontrol = \"{}\"\n[dns]\nenabled = false\n[tun]\nname = \"sinnet1\"\n\
         [[path]]\nname = \"p0\"\naddress = \"10.77.0.31\"\n\
         [[peer]]\nname = \"b.hip\"\nhit = \"{}\"\nlocators = [\"10.77.0.2\"]\n",
        ground.path("second.sock").display(),
        ground.hit("B")?
    );
    let file = ground.path("second.toml");
    fs::write(&file, text)?;
    let second = run_second(&ground, &options.sinnet, &file)?;
    pause(Duration::from_secs(2))?;
    leak.send(&ground, 3)?;
    let started = ground.path("second.sock").exists();
    drop(second);
    leak.send(&ground, 10)?;
    let mut harm = leak.harm();
    if !load::reaches(&ground, "A", "B", Duration::from_secs(5))? {
        harm.push("the first daemon's peer is not reached any more".to_owned());
    }
    let note = if started { "the second one had started" } else { "the second one did not start" };
    Ok(verdict("leak-second", harm, note.to_owned()))
}

fn run_second(ground: &Ground, sinnet: &Path, file: &Path) -> Result<lab::Running, Failure> {
    let program = lab::Program::new(sinnet.to_string_lossy())
        .args(["up".to_owned(), "-c".to_owned(), file.to_string_lossy().into_owned()])
        .log_to(&ground.path("second.log"));
    Ok(ground.host("A")?.spawn(&program)?)
}

fn public_addresses(options: &Options) -> Result<Row, Failure> {
    let ground = associated(options, Plan::default())?;
    let device = ground.status("A")?["device"].as_str().unwrap_or("sinnet0").to_owned();
    let mut harm = Vec::new();
    // Well-known resolvers and web hosts, two of them in 1.0.0.0/8 (APNIC).
    for address in ["1.1.1.1", "1.0.0.1", "8.8.8.8", "9.9.9.9", "2606:4700:4700::1111"] {
        let route = lab::Program::new("ip").args(["route", "get", address]);
        if ground.host("A")?.output(&route).is_ok_and(|told| told.contains(&format!("dev {device}"))) {
            harm.push(format!("{address} goes into the tunnel"));
        }
    }
    Ok(verdict("public-addresses", harm, String::new()))
}
