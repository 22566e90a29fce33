//! The thread that moves packets at the right instant.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::SystemTime;

use clock::{Duration, Histogram, Instant};
use link::ChangeKind;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId as ReadClock, clock_gettime};

use crate::Port;
use crate::network::{Counts, LinkId, Network, RouteId};
use crate::recorder::{Recorder, Recording};

/// A running [`Network`] between [`Port`]s. It stops when it is dropped.
pub struct Emulator {
    stop: Arc<AtomicBool>,
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<io::Result<Summary>>>,
}

/// What an emulator did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// What happened to the packets.
    pub counts: Counts,
    /// How late packets were handed to their hosts, against the instants that the links named, in nanoseconds.
    pub lateness: Histogram,
    /// By route, how long packets were under way since [`Emulator::restart_transits`], in nanoseconds.
    pub transits: Vec<Histogram>,
    /// Packets that a host had no room for, or whose device was down.
    pub refused: u64,
    /// Whether the thread ran with real-time priority.
    pub real_time_priority: bool,
}

/// What the emulator's thread and its owner tell each other.
#[derive(Default)]
struct Shared {
    counts: Counts,
    /// By route.
    delivered_bytes: Vec<u64>,
    /// Changes asked for, counted from the moment they are taken up.
    changes: Vec<(Duration, LinkId, ChangeKind)>,
    restart_transits: bool,
}

/// How long the thread sleeps at most: the time until it notices what its owner wants.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// How long the thread sleeps at least, unless a host sends something: packets that arrive within that time are handed over
/// together, as a network card would with its interrupts. Without it, one thread of the highest priority would take a
/// processor for itself from a few hundred Mbit/s on.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
/// Packets read from one port before the others have their turn, and deliveries before reading again.
const BATCH: usize = 64;
/// Largest packet that a TUN device without offloads hands over.
const LARGEST_PACKET: usize = 65_535;
/// The priority asked for: above every ordinary thread, below the kernel's own.
const PRIORITY: u8 = 10;

impl Emulator {
    /// Starts to move packets between `ports`; a route's port is an index into them. The instants of `network` count from
    /// now. The thread asks for real-time priority and does without where that is not allowed.
    ///
    /// # Errors
    /// When a recording cannot be created, or the system gives no timer or thread.
    pub fn start(network: Network, ports: Vec<Port>, recordings: &[Recording]) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "a capture tells the time of day")]
        let (origin, epoch) = (monotonic()?, SystemTime::now());
        let recorder = Recorder::start(recordings, epoch)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Mutex::new(Shared::default()));
        let engine = Engine {
            origin,
            network,
            ports,
            recorder,
            timer,
            stop: Arc::clone(&stop),
            shared: Arc::clone(&shared),
            summary: Summary::default(),
            buffer: vec![0; LARGEST_PACKET],
        };
        let thread = std::thread::Builder::new().name("emulator".into()).spawn(move || engine.run())?;
        Ok(Self { stop, shared, thread: Some(thread) })
    }

    /// What happened to the packets until a moment ago.
    pub fn counts(&self) -> Counts {
        self.shared.lock().map(|shared| shared.counts).unwrap_or_default()
    }

    /// Bytes of the packets that a route delivered until a moment ago.
    pub fn delivered_bytes(&self, route: RouteId) -> u64 {
        self.shared.lock().ok().and_then(|shared| shared.delivered_bytes.get(route.0).copied()).unwrap_or_default()
    }

    /// Changes links from now on: each change after a delay, to within 10 ms. This is for changes that count from the
    /// start of a measurement; those of a [`link::LinkConfig`] count from the start of the emulator.
    pub fn schedule(&self, changes: impl IntoIterator<Item = (Duration, LinkId, ChangeKind)>) {
        if let Ok(mut shared) = self.shared.lock() {
            shared.changes.extend(changes);
        }
    }

    /// Counts anew how long packets are under way, within 10 ms.
    pub fn restart_transits(&self) {
        if let Ok(mut shared) = self.shared.lock() {
            shared.restart_transits = true;
        }
    }

    /// Stops, completes the captures and closes the ports.
    ///
    /// # Errors
    /// The first failure of the thread: a capture that could not be written, a port that broke.
    pub fn stop(mut self) -> io::Result<Summary> {
        self.join()
    }

    fn join(&mut self) -> io::Result<Summary> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the emulator's thread panicked")),
            None => Ok(Summary::default()),
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if self.thread.is_some()
            && let Err(error) = self.join()
        {
            tracing::warn!(%error, "the emulator ended with an error");
        }
    }
}

struct Engine {
    /// The system's monotonic clock at the network's instant zero, in nanoseconds.
    origin: u64,
    network: Network,
    ports: Vec<Port>,
    recorder: Recorder,
    timer: TimerFd,
    stop: Arc<AtomicBool>,
    shared: Arc<Mutex<Shared>>,
    summary: Summary,
    buffer: Vec<u8>,
}

impl Engine {
    fn run(mut self) -> io::Result<Summary> {
        self.summary.real_time_priority = ask_for_priority();
        while !self.stop.load(Ordering::Relaxed) {
            let ready = self.wait()?;
            self.deliver()?;
            for port in ready {
                self.receive(port)?;
            }
            self.deliver()?;
            self.exchange()?;
        }
        self.summary.counts = self.network.counts();
        self.summary.transits = self.network.transits().cloned().collect();
        self.recorder.finish()?;
        Ok(self.summary)
    }

    fn exchange(&mut self) -> io::Result<()> {
        let now = self.now()?;
        // Whoever holds the lock is about to release it; the next turn is soon enough.
        if let Ok(mut shared) = self.shared.try_lock() {
            shared.counts = self.network.counts();
            shared.delivered_bytes.clear();
            shared.delivered_bytes.extend(self.network.delivered_bytes());
            if std::mem::take(&mut shared.restart_transits) {
                self.network.restart_transits();
            }
            for (after, link, what) in shared.changes.drain(..) {
                self.network.schedule(now + after, link, what);
            }
        }
        Ok(())
    }

    /// Waits for a packet or a deadline; the ports that have packets.
    fn wait(&self) -> io::Result<Vec<usize>> {
        let now = self.now()?;
        let limit = now + LONGEST_SLEEP;
        let deadline = self.network.next_arrival().map_or(limit, |at| at.clamp(now + SHORTEST_SLEEP, limit));
        let at = self.origin.saturating_add(deadline.as_nanos());
        let at = TimeSpec::new(seconds(at / NANOS), seconds(at % NANOS));
        self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        let mut descriptors: Vec<PollFd<'_>> =
            self.ports.iter().map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN)).collect();
        descriptors.push(PollFd::new(self.timer.as_fd(), PollFlags::POLLIN));
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let readable = |descriptor: &PollFd<'_>| descriptor.any().unwrap_or(false);
        Ok(descriptors
            .iter()
            .take(self.ports.len())
            .enumerate()
            .filter(|(_, descriptor)| readable(descriptor))
            .map(|(port, _)| port)
            .collect())
    }

    fn receive(&mut self, port: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(device) = self.ports.get(port) else { return Ok(()) };
            let length = match device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let packet = self.buffer.get(..length).unwrap_or_default().to_vec();
            let now = self.now()?;
            // Hops that are due come first, so that queues see packets in the order of time.
            self.deliver_until(now)?;
            self.network.handle_packet(now, packet);
        }
        Ok(())
    }

    fn deliver(&mut self) -> io::Result<()> {
        let now = self.now()?;
        self.deliver_until(now)
    }

    fn deliver_until(&mut self, now: Instant) -> io::Result<()> {
        while let Some(delivery) = self.network.poll(now) {
            let Some(port) = self.ports.get(delivery.port) else { continue };
            if let Err(error) = port.write(&delivery.packet) {
                tracing::debug!(%error, port = delivery.port, "a host did not take a packet");
                self.summary.refused += 1;
                continue;
            }
            let late = self.now()?.saturating_since(delivery.at);
            self.summary.lateness.record(late.as_nanos());
            self.recorder.record(delivery);
        }
        Ok(())
    }

    fn now(&self) -> io::Result<Instant> {
        Ok(Instant::from_nanos(monotonic()?.saturating_sub(self.origin)))
    }
}

const NANOS: u64 = 1_000_000_000;

/// The only reading of the clock: the monotonic clock of the kernel, which the timer uses too, in nanoseconds.
fn monotonic() -> io::Result<u64> {
    let time = clock_gettime(ReadClock::CLOCK_MONOTONIC)?;
    Ok(u64::try_from(time.tv_sec()).unwrap_or(0) * NANOS + u64::try_from(time.tv_nsec()).unwrap_or(0))
}

fn seconds(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A real-time thread is woken at its deadline even when programs occupy every processor.
fn ask_for_priority() -> bool {
    use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy};
    let Ok(value) = ThreadPriorityValue::try_from(PRIORITY) else { return false };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let thread = thread_priority::unix::thread_native_id();
    match thread_priority::unix::set_thread_priority_and_policy(thread, ThreadPriority::Crossplatform(value), policy) {
        Ok(()) => true,
        Err(error) => {
            tracing::debug!(?error, "no real-time priority: packets may be later on a busy machine");
            false
        }
    }
}
