//! SIGKILL of either side in the middle of a download, again and again.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::clear::{associated, peer_lsi, verdict};
use crate::clockwork::{doze, now, pause};
use crate::ground::{Ground, Plan};
use crate::report::Row;
use crate::{Attack, Failure, Options, load};

/// The attacks.
pub(crate) const RESTARTS: [Attack; 4] = [
    Attack {
        name: "restart",
        told: "SIGKILL again and again, each side in turn, download by HIT",
        run: |o| restart(o, "restart"),
    },
    Attack { name: "restart-lsi", told: "the same, download by LSI", run: |o| restart(o, "restart-lsi") },
    Attack {
        name: "restart-nat",
        told: "the server killed, which does not know where its client is",
        run: |o| restart(o, "restart-nat"),
    },
    Attack {
        name: "restart-upload",
        told: "the server killed while only the client sends",
        run: |o| restart(o, "restart-upload"),
    },
];

/// What it is limited to, bit/s.
const RATE: f64 = 20e6;

/// A transfer with a known content, and the hashes of both ends.
pub(crate) struct Transfer {
    end: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    sender: JoinHandle<([u8; 32], u64)>,
    receiver: JoinHandle<([u8; 32], u64)>,
}

impl Transfer {
    /// From one end of a connection to the other, at `rate` bit/s (0: as fast as it goes), until it is ended.
    pub(crate) fn start(from: TcpStream, to: TcpStream, rate: f64) -> Self {
        let (end, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let ended = Arc::clone(&end);
        let sender = std::thread::spawn(move || send(from, rate, &ended));
        let count = Arc::clone(&received);
        let receiver = std::thread::spawn(move || receive(to, &count));
        Self { end, received, sender, receiver }
    }

    /// Bytes received so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Ends it, and says whether everything arrived as it was.
    pub(crate) fn finish(self) -> Result<bool, Failure> {
        self.end.store(true, Ordering::Relaxed);
        let sent = self.sender.join().map_err(|_| "the sender failed")?;
        let received = self.receiver.join().map_err(|_| "the receiver failed")?;
        Ok(sent == received && sent.1 > 0)
    }
}

fn send(mut stream: TcpStream, rate: f64, end: &AtomicBool) -> ([u8; 32], u64) {
    let _ = stream.set_write_timeout(Some(Duration::from_secs(30)));
    let (mut hash, mut sent) = (Sha256::new(), 0_u64);
    let mut chunk = vec![0; 16 << 10];
    let begin = now();
    while !end.load(Ordering::Relaxed) {
        if rate > 0.0 && sent as f64 * 8.0 > begin.elapsed().as_secs_f64() * rate {
            doze(Duration::from_millis(5));
            continue;
        }
        // Content of which no two pieces are alike.
        for (index, word) in chunk.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&(sent + index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        }
        if stream.write_all(&chunk).is_err() {
            break;
        }
        hash.update(&chunk);
        sent += chunk.len() as u64;
    }
    // The other end hears of the end when it has everything.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    (hash.finalize().into(), sent)
}

fn receive(mut stream: TcpStream, count: &AtomicU64) -> ([u8; 32], u64) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 17];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        hash.update(buffer.get(..length).unwrap_or_default());
        count.fetch_add(length as u64, Ordering::Relaxed);
    }
    (hash.finalize().into(), count.load(Ordering::Relaxed))
}

/// A connection from A to B: the client's end and the server's.
pub(crate) fn connection(ground: &Ground, to: IpAddr) -> Result<(TcpStream, TcpStream), Failure> {
    let listener = load::listen(ground.host("B")?, 7200)?;
    let client = load::connect(ground.host("A")?, to, 7200)?;
    Ok((client, listener.accept()?.0))
}

fn restart(options: &Options, name: &str) -> Result<Row, Failure> {
    let plan = Plan { client_only_knows: name == "restart-nat", ..Plan::default() };
    let mut ground = associated(options, plan)?;
    let to = if name == "restart-lsi" { peer_lsi(&ground)?.into() } else { ground.hit_address("B")?.into() };
    let (client, server) = connection(&ground, to)?;
    let transfer = match name {
        "restart-upload" => Transfer::start(client, server, RATE),
        _ => Transfer::start(server, client, RATE),
    };
    pause(Duration::from_secs(1))?;
    let mut took = Vec::new();
    let mut harm = Vec::new();
    for number in 0..options.restarts {
        let side = if matches!(name, "restart-nat" | "restart-upload") || number % 2 == 1 { "B" } else { "A" };
        match again(&mut ground, &transfer, side)? {
            Some(time) => {
                if time.as_secs_f64() > options.patience {
                    tell_logs(&ground, &format!("restart {number}, of {side}, took {:.2} s", time.as_secs_f64()));
                }
                took.push(time.as_secs_f64());
            }
            None => {
                harm.push(format!("restart {number}, of {side}: nothing for 20 s"));
                tell_logs(&ground, "the logs of both");
                break;
            }
        }
        pause(Duration::from_millis(700))?;
    }
    took.sort_by(f64::total_cmp);
    let late = took.iter().filter(|time| **time > options.patience).count();
    if late > 0 {
        harm.push(format!("{late} of {} took more than {} s", took.len(), options.patience));
    }
    if harm.iter().any(|text| text.contains("nothing")) {
        // The ends give up only after long.
        let note = format!("{} restarts went well", took.len());
        return Ok(verdict(name, harm, note));
    }
    let bytes = transfer.bytes();
    if !transfer.finish()? {
        harm.push("what arrived is not what was sent".to_owned());
    }
    let (median, longest) = (took.get(took.len() / 2).copied().unwrap_or(0.0), took.last().copied().unwrap_or(0.0));
    let note = format!("{} restarts, {median:.2} s in the middle, {longest:.2} s at most; {bytes} bytes", took.len());
    Ok(verdict(name, harm, note))
}

/// The last lines of both daemons' logs.
fn tell_logs(ground: &Ground, what: &str) {
    let last = |host| {
        let log = ground.log(host);
        let lines: Vec<&str> = log.lines().collect();
        lines.get(lines.len().saturating_sub(40)..).unwrap_or_default().join("\n")
    };
    crate::tell(&format!("{what}\nA:\n{}\nB:\n{}", last("A"), last("B")));
}

/// Kills one side, starts it again at once, and says how long after that the transfer went on.
fn again(ground: &mut Ground, transfer: &Transfer, side: &'static str) -> Result<Option<Duration>, Failure> {
    ground.kill(side);
    // What was under way in the kernels has arrived.
    pause(Duration::from_millis(150))?;
    ground.launch(side)?;
    let (begin, before) = (now(), transfer.bytes());
    while begin.elapsed() < Duration::from_secs(20) {
        if transfer.bytes() > before {
            return Ok(Some(begin.elapsed()));
        }
        pause(Duration::from_millis(10))?;
    }
    Ok(None)
}
