//! Calls and echo requests in real time. A call is UDP between two sockets of ours on the hosts; echo requests are the program `ping`'s.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::datagrams::Datagrams;
use crate::error::Step;
use crate::interrupt::pause;
use crate::plan::Kind;
use crate::watch::Stopwatch;
use crate::{LabError, Namespace, Program, Running};

/// The port of the first flow's call; the others follow.
const PORT: u16 = 5004;
/// The headers of IPv6 and UDP, in bytes.
const HEADERS: usize = 48;
/// How long a receiver waits before it looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(20);
/// Bytes of an echo that `ping` sends, with its header.
const ECHO: u32 = 104;

/// A call or echo requests under way. It ends when it is dropped.
pub(crate) struct Probe {
    stop: Arc<AtomicBool>,
    arrived: Arc<AtomicU64>,
    work: Work,
}

enum Work {
    ConstantBitRate { sender: JoinHandle<Datagrams>, receiver: JoinHandle<Vec<(u64, Duration)>> },
    Ping { begun: Duration, clock: Stopwatch, log: PathBuf, program: Running },
}

/// Who talks to whom.
pub(crate) struct Ends<'a> {
    pub(crate) from: &'a Namespace,
    pub(crate) to: &'a Namespace,
    pub(crate) address: Ipv6Addr,
}

impl Probe {
    /// Starts what flow number `flow` does, unless it is a download. All times are those of `clock`.
    pub(crate) fn start(
        kind: Kind,
        flow: usize,
        ends: &Ends<'_>,
        clock: Stopwatch,
        scratch: &Path,
    ) -> Result<Option<Self>, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let arrived = Arc::new(AtomicU64::new(0));
        let work = match kind {
            Kind::Download | Kind::ParallelDownloads(_) => return Ok(None),
            Kind::ConstantBitRate { bytes, interval } => {
                let port = PORT.saturating_add(u16::try_from(flow).unwrap_or(u16::MAX));
                let socket = |host: &Namespace, port| {
                    host.run(move || UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)))?.step("opening a socket")
                };
                let (from, to) = (socket(ends.from, 0)?, socket(ends.to, port)?);
                from.connect((IpAddr::V6(ends.address), port)).step("connecting a socket")?;
                to.set_read_timeout(Some(PATIENCE)).step("setting up a socket")?;
                let interval = Duration::from_nanos(interval.as_nanos());
                let [ended, stopped] = [Arc::clone(&stop), Arc::clone(&stop)];
                let count = Arc::clone(&arrived);
                Work::ConstantBitRate {
                    sender: thread(move || send(&from, bytes, interval, clock, &ended))?,
                    receiver: thread(move || receive(&to, clock, &stopped, &count))?,
                }
            }
            Kind::Ping { interval } => {
                let log = scratch.join(format!("ping{flow}.log"));
                let interval = interval.as_secs_f64().to_string();
                let address = ends.address.to_string();
                let program = Program::new("ping").args(["-n", "-O", "-i", &interval, &address]).log_to(&log);
                Work::Ping { begun: clock.elapsed(), clock, program: ends.from.spawn(&program)?, log }
            }
        };
        Ok(Some(Self { stop, arrived, work }))
    }

    /// Bytes of a call that have arrived, without headers.
    pub(crate) fn arrived_bytes(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Ends it, and tells all that happened.
    pub(crate) fn finish(self) -> Result<Datagrams, LabError> {
        self.stop.store(true, Ordering::Relaxed);
        let lost = |_| std::io::Error::other("its thread panicked");
        match self.work {
            Work::ConstantBitRate { sender, receiver } => {
                let mut datagrams = sender.join().map_err(lost).step("ending a call")?;
                let arrived = receiver.join().map_err(lost).step("ending a call")?;
                arrived.into_iter().for_each(|(number, at)| datagrams.arrive(number, at));
                Ok(datagrams)
            }
            Work::Ping { begun, clock, log, program } => {
                let ended = clock.elapsed();
                drop(program);
                let text = fs::read_to_string(log).step("reading what ping wrote")?;
                echoes(&text, begun, ended)
                    .ok_or_else(|| LabError::Program { program: "ping".to_owned(), message: text })
            }
        }
    }
}

fn thread<R: Send + 'static>(job: impl FnOnce() -> R + Send + 'static) -> Result<JoinHandle<R>, LabError> {
    std::thread::Builder::new().name("call".to_owned()).spawn(job).step("starting a thread")
}

/// Sends a number in each interval until `stop`. Who wakes up late sends at once what is due.
fn send(socket: &UdpSocket, bytes: u32, interval: Duration, clock: Stopwatch, stop: &AtomicBool) -> Datagrams {
    let mut datagrams = Datagrams::new(bytes);
    let mut packet = vec![0; (bytes as usize).saturating_sub(HEADERS)];
    let mut next = clock.elapsed();
    while !stop.load(Ordering::Relaxed) {
        let now = clock.elapsed();
        if now < next {
            if pause(next - now).is_err() {
                break;
            }
            continue;
        }
        next += interval;
        let number = datagrams.send(now);
        if let Some(start) = packet.first_chunk_mut() {
            *start = number.to_be_bytes();
        }
        // What the system does not take is lost, as any other.
        let _ = socket.send(&packet);
    }
    datagrams
}

/// Notes numbers until `stop`.
fn receive(socket: &UdpSocket, clock: Stopwatch, stop: &AtomicBool, count: &AtomicU64) -> Vec<(u64, Duration)> {
    let mut arrived = Vec::new();
    let mut packet = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        // An error is usually that nothing has come for a while.
        if let Ok(length) = socket.recv(&mut packet) {
            let number = packet.get(..length).and_then(|packet| packet.first_chunk());
            arrived.extend(number.map(|number| (u64::from_be_bytes(*number), clock.elapsed())));
            count.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
    arrived
}

/// What `ping` says, in the form of iputils; `None` when it is something else. It does not say when requests were
/// sent, but that is at even intervals.
fn echoes(text: &str, begun: Duration, ended: Duration) -> Option<Datagrams> {
    let number = |line: &str| line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse::<u32>().ok();
    let time = |line: &str| line.split(" time=").nth(1)?.split(' ').next()?.parse::<f64>().ok();
    let count = text.lines().filter_map(number).max()?;
    let interval = (ended.checked_sub(begun)?) / count;
    let mut datagrams = Datagrams::new(ECHO);
    let sent = |number: u32| begun + interval * (number - 1);
    for number in 1..=count {
        datagrams.send(sent(number));
    }
    for (number, time) in text.lines().filter_map(|line| Some((number(line)?, time(line)?))) {
        let time = Duration::try_from_secs_f64(time / 1000.0).ok()?;
        datagrams.arrive(u64::from(number.checked_sub(1)?), sent(number) + time);
    }
    Some(datagrams)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ping_says_is_read() {
        // As iputils 20221126 writes it.
        let text = "PING 2001:20::1(2001:20::1) 56 data bytes\n\
            64 bytes from 2001:20::1: icmp_seq=1 ttl=64 time=61.5 ms\n\
            no answer yet for icmp_seq=2\n\
            64 bytes from 2001:20::1: icmp_seq=3 ttl=64 time=70.5 ms\n\
            64 bytes from 2001:20::1: icmp_seq=3 ttl=64 time=99.0 ms (DUP!)\n\
            no answer yet for icmp_seq=4\n";
        let seconds = Duration::from_secs;
        let report = echoes(text, seconds(10), seconds(12)).expect("lines of ping").report(seconds(0), seconds(20));
        assert_eq!((report.sent, report.lost), (4, 2));
        assert_eq!((report.delay_ms.median, report.delay_ms.longest), (61.5, 70.5));
        assert!(echoes("ping: connect: Network is unreachable\n", seconds(0), seconds(1)).is_none());
    }
}
