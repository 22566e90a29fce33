//! The loop: waits for packets, questions, signals and the next deadline, and moves what comes between the kernel and
//! [`wedge::Identities`], in batches. One thread; it decides nothing about a protocol.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use clock::{Duration, Instant};
use rand_chacha::ChaCha20Rng;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::json;
use wedge::{Identities, WedgeEvent};

use crate::control::{Control, Request};
use crate::counters::Counters;
use crate::device::{Device, Errors};
use crate::firewall::Firewall;
use crate::keylog::KeyLog;
use crate::learned::{Host, LearnedPeers};
use crate::metrics::{self, Metrics, Process};
use crate::names::Responder;
use crate::opportunistic::{Hosts, News, Strangers};
use crate::privileges::Confined;
use crate::reload::Reload;
use crate::sockets::{PathSocket, Received};
use crate::status::Status;
use crate::time::{self, Clock, STIR_AFTER};
use crate::told::Told;
use crate::uplinks::Uplinks;
use crate::visitors::Tally;
use crate::watch::Watch;
use crate::{dns, host_resolver, learned};

/// Trains of packets taken from the TUN device before the network has its turn.
const TRAINS: usize = 16;
/// How long an ending daemon waits for its peers to agree (RFC 7401 §4.4.4 would wait longer; who presses Ctrl-C does not).
const FAREWELL: Duration = Duration::from_millis(1_000);

/// Everything that runs.
pub(crate) struct Runtime {
    pub(crate) clock: Clock,
    /// When, in seconds since 1970.
    pub(crate) started: u64,
    pub(crate) random: ChaCha20Rng,
    pub(crate) wedge: Identities,
    /// None where this host is only a relay.
    pub(crate) device: Option<Device>,
    /// None where the configuration says so.
    pub(crate) firewall: Option<Firewall>,
    /// Where there is a device.
    pub(crate) watch: Option<Watch>,
    pub(crate) uplinks: Uplinks,
    pub(crate) reload: Reload,
    pub(crate) sockets: Vec<PathSocket>,
    pub(crate) responder: Option<Responder>,
    pub(crate) control: Control,
    pub(crate) metrics: Option<Metrics>,
    /// Readable once a signal asks us to end.
    pub(crate) signals: UnixStream,
    /// Readable once the terminal has gone, or somebody hopes that we read the configuration again.
    pub(crate) hangups: UnixStream,
    pub(crate) keylog: Option<KeyLog>,
    /// What was given up at the start.
    pub(crate) confined: Confined,
    /// Peers whose HITs are found out.
    pub(crate) strangers: Strangers,
    /// The host's resolver asks us as long as this is.
    pub(crate) _host_resolver: host_resolver::Set,
    /// Peers that are known by HIP records.
    pub(crate) learned: LearnedPeers,
}

/// What the loop keeps between its turns.
#[derive(Default)]
struct Buffers {
    received: Received,
    packets: Vec<Vec<u8>>,
    transmit: Vec<wedge::Transmit>,
    deliver: Vec<wedge::Packet>,
    /// The names of the peers with an association.
    associated: BTreeSet<String>,
    /// When fresh randomness was mixed in last.
    stirred: Instant,
    told: Told,
}

/// What can be done without waiting.
struct Ready {
    signals: bool,
    hangups: bool,
    firewall: bool,
    watch: bool,
    uplinks: bool,
    control: bool,
    metrics: bool,
    responder: bool,
    device: bool,
    /// In the order of [`Runtime::sockets`]: readable, writable.
    sockets: Vec<(bool, bool)>,
}

impl Runtime {
    /// Runs until a signal or a request ends it, and says good-bye to the peers.
    ///
    /// # Errors
    /// Where the kernel takes the TUN device away or cannot wait.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut buffers = Buffers::default();
        self.strangers.ask(self.clock.now(), &mut self.random, self.wedge.first(), &self.uplinks);
        let mut end: Option<Instant> = None;
        loop {
            self.flush(&mut buffers)?;
            let now = self.clock.now();
            if end.is_some_and(|end| end <= now || !self.wedge.is_leaving()) {
                tracing::info!("ended");
                return Ok(());
            }
            let ready = self.wait(now, end)?;
            self.packets(&ready, &mut buffers)?;
            if ready.firewall && self.firewall.as_mut().is_some_and(Firewall::is_gone) {
                return Err(io::Error::other(
                    "somebody has removed our packet filter, and without it strangers could speak for identities; \
                     `sinnet up` puts it up again",
                ));
            }
            if let Some(watch) = &mut self.watch {
                watch.turn(self.clock.now(), ready.watch).map_err(io::Error::other)?;
            }
            if ready.uplinks {
                let now = self.clock.now();
                self.uplinks.turn(now, &mut self.random, &mut self.wedge, &mut self.sockets);
            }
            if ready.responder {
                self.resolve(&mut buffers);
            }
            if ready.hangups && signalled(&mut self.hangups) {
                let reserved = self.learned.lsis();
                match self.reload.turn(&mut self.uplinks, &mut self.wedge, self.responder.as_mut(), reserved) {
                    Ok(told) => tracing::info!("{told}"),
                    Err(error) => tracing::warn!("SIGHUP: goes on as it is: {error}"),
                }
            }
            let mut stop = ready.signals && signalled(&mut self.signals);
            if ready.control {
                stop |= self.controlled();
            }
            if ready.metrics {
                self.tell_metrics();
            }
            if stop && end.is_none() {
                match buffers.associated.len() {
                    1 => tracing::info!("ending: closing one association"),
                    count => tracing::info!("ending: closing {count} associations"),
                }
                let now = self.clock.now();
                self.wedge.leave(now, &mut self.random);
                end = Some(now + FAREWELL);
            }
        }
    }

    /// Waits for anything to do, at most until the next deadline, to the nanosecond as far as the kernel's timers go.
    fn wait(&self, now: Instant, end: Option<Instant>) -> io::Result<Ready> {
        let blocked = self.sockets.iter().any(PathSocket::is_blocked);
        let mut fds = Vec::with_capacity(8 + self.sockets.len());
        fds.push(PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN));
        // While a socket is full, the programs wait too: their packets stay in the device's queue.
        let may_read = !blocked && end.is_none() && self.device.is_some();
        let device = if may_read { PollFlags::IN } else { PollFlags::empty() };
        // Without a device nothing is asked of what is there in its place.
        let device_fd = self.device.as_ref().map_or(self.signals.as_fd(), |device| device.as_fd());
        fds.push(PollFd::from_borrowed_fd(device_fd, device));
        fds.push(PollFd::from_borrowed_fd(self.uplinks.monitor.as_fd(), PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(self.hangups.as_fd(), PollFlags::IN));
        for socket in &self.sockets {
            let flags = if socket.is_blocked() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::from_borrowed_fd(socket.as_fd(), flags));
        }
        let responder = fds.len();
        let questions = self.responder.iter().flat_map(Responder::interests);
        fds.extend(questions.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        let control = fds.len();
        fds.extend(self.control.interests().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        let firewall = fds.len();
        fds.extend(self.firewall.iter().map(|firewall| PollFd::from_borrowed_fd(firewall.as_fd(), PollFlags::IN)));
        let watch = fds.len();
        fds.extend(self.watch.iter().map(|watch| PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN)));
        let metrics = fds.len();
        let visitors = self.metrics.iter().flat_map(Metrics::interests);
        fds.extend(visitors.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));

        let patience = [
            self.responder.as_ref().and_then(Responder::poll_timeout),
            self.control.poll_timeout(),
            self.metrics.as_ref().and_then(Metrics::poll_timeout),
        ];
        let deadline = [
            self.wedge.poll_timeout().map(|(deadline, _)| deadline),
            end,
            self.watch.as_ref().and_then(Watch::poll_timeout),
        ];
        let deadline = deadline.into_iter().chain(patience).flatten().min();
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_since(now).as_nanos();
            // Both parts fit: 584 years in seconds, and less than a second.
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as _ }
        });
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            // Without memory to wait with, the next turn is another chance (poll(2), ENOMEM).
            Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::NOMEM) => {}
            Err(error) => return Err(error.into()),
        }
        // Errors and hang-ups count as readable: reading tells what happened.
        let seen = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let readable = |fd: &PollFd<'_>| !fd.revents().difference(PollFlags::OUT).is_empty();
        let any = |range: std::ops::Range<usize>| fds.get(range).unwrap_or_default().iter().any(seen);
        let later = self.clock.now();
        let [asked, controlled, measured] = patience.map(|deadline| deadline.is_some_and(|deadline| deadline <= later));
        let path_sockets = fds.get(4..responder).unwrap_or_default();
        Ok(Ready {
            signals: any(0..1),
            device: any(1..2) && may_read,
            uplinks: any(2..3),
            hangups: any(3..4),
            sockets: path_sockets.iter().map(|fd| (readable(fd), fd.revents().contains(PollFlags::OUT))).collect(),
            responder: asked || any(responder..control),
            control: controlled || any(control..firewall),
            firewall: any(firewall..watch),
            watch: any(watch..metrics),
            metrics: measured || any(metrics..fds.len()),
        })
    }

    /// Everything that has to do with packets and deadlines.
    fn packets(&mut self, ready: &Ready, buffers: &mut Buffers) -> io::Result<()> {
        buffers.received.clear();
        for (socket, (readable, writable)) in self.sockets.iter_mut().zip(&ready.sockets) {
            if *writable {
                socket.flush();
            }
            if *readable {
                // What a socket complains about is a path's trouble, not ours.
                if let Err(error) = socket.receive(&mut buffers.received) {
                    tracing::debug!(%error, "receiving");
                }
            }
        }
        let now = self.clock.now();
        if now.saturating_since(buffers.stirred) >= STIR_AFTER {
            time::stir(&mut self.random);
            buffers.stirred = now;
        }
        if !buffers.received.is_empty() {
            self.wedge.handle_network(now, &mut self.random, &buffers.received.datagrams());
        }
        if ready.uplinks
            && let Some(device) = &mut self.device
        {
            device.follow_mtu();
        }
        if ready.device
            && let Some(device) = &mut self.device
        {
            for _ in 0..TRAINS {
                if !device.receive(&mut buffers.packets)? {
                    break;
                }
            }
            self.wedge.handle_application(now, &mut self.random, buffers.packets.drain(..));
        }
        if self.wedge.poll_timeout().is_some_and(|(deadline, _)| deadline <= now) {
            self.wedge.handle_timeout(now, &mut self.random);
        }
        Ok(())
    }

    /// Takes out of the wedge what has come of it.
    fn flush(&mut self, buffers: &mut Buffers) -> io::Result<()> {
        while let Some(event) = self.wedge.poll_event() {
            self.meet(&event);
            self.tell(event, buffers);
        }
        self.wedge.poll_transmit(self.clock.now(), &mut buffers.transmit);
        for packet in buffers.transmit.drain(..) {
            let socket = self.sockets.iter_mut().find(|socket| socket.serves(packet.route.local, packet.protocol));
            match socket {
                Some(socket) => socket.send(packet),
                None => tracing::debug!(local = %packet.route.local, "a packet for a path that is not there"),
            }
        }
        // A socket that is full waits until it is writable.
        self.sockets.iter_mut().filter(|socket| !socket.is_blocked()).for_each(PathSocket::flush);
        self.wedge.poll_deliver(&mut buffers.deliver);
        match &mut self.device {
            Some(device) => device.deliver(&mut buffers.deliver),
            // Nobody is there who could want it.
            None => {
                buffers.deliver.clear();
                Ok(())
            }
        }
    }

    /// What an event is for peers whose HITs are found out.
    fn meet(&mut self, event: &WedgeEvent) {
        let (now, own) = (self.clock.now(), self.reload.own);
        let mut hosts = Hosts {
            now,
            own,
            random: &mut self.random,
            wedge: self.wedge.first(),
            uplinks: &mut self.uplinks,
            reserved: self.learned.lsis(),
        };
        let Some(news) = self.strangers.hear(event, &mut hosts) else { return };
        match news {
            News::Known(told) => {
                tracing::info!("{told}");
                let names = self.strangers.names(&self.uplinks, own);
                if let Some(responder) = &mut self.responder {
                    responder.resolver().rename(names);
                }
            }
            News::Warning(told) => tracing::warn!("{told}"),
        }
    }

    /// Questions of programs, and what other name servers have said; until nothing of it leads to another peer.
    fn resolve(&mut self, buffers: &mut Buffers) {
        let (now, own) = (self.clock.now(), self.reload.own);
        let Some(responder) = &mut self.responder else { return };
        loop {
            let news = responder.turn(now, &mut self.random);
            let mut host =
                Host { now, own, random: &mut self.random, wedge: self.wedge.first(), uplinks: &self.uplinks };
            for hit in self.learned.turn(&mut host) {
                responder.resolver().forget(hit);
            }
            if news.is_empty() {
                return;
            }
            for news in news {
                match news {
                    dns::resolver::News::Found(found) => {
                        self.learned.introduce(&found, &mut host, responder.resolver(), &mut buffers.told);
                    }
                    dns::resolver::News::Unused(name, why) => {
                        let name = learned::told(&name);
                        if buffers.told.may(now, &format!("unused {name}"), 1).is_some() {
                            tracing::warn!("the HIP record of {name} is not used: {why}");
                        }
                    }
                }
            }
        }
    }

    fn counters(&self) -> Counters {
        let tally = |tally: Option<Tally>| tally.unwrap_or_default();
        let unsent = self.sockets.iter().map(PathSocket::lost).sum();
        let Errors { unread, undelivered } = self.device.as_ref().map(Device::errors).unwrap_or_default();
        let mut counters = Counters { unsent, unread, undelivered, ..Counters::default() };
        let metrics = tally(self.metrics.as_ref().map(Metrics::tally));
        let names = self.responder.as_ref().map(Responder::counters).unwrap_or_default();
        counters.names(names, self.learned.refused());
        counters.visitors(self.control.tally(), metrics, tally(self.responder.as_ref().map(Responder::tally)));
        counters
    }

    fn controlled(&mut self) -> bool {
        let mut stop = false;
        let (now, counters) = (self.clock.now(), self.counters());
        let (wedge, name, confined) = (&self.wedge, &self.uplinks.config.device, &self.confined);
        let learned = &self.learned;
        self.control.turn(now, |request| match request {
            Request::Status => json!(Status {
                ready: true,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                uptime_s: now.saturating_since(Instant::ZERO).as_secs_f64(),
                device: name.clone(),
                daemon: counters,
                learned: learned.status(now),
                confined: confined.clone(),
                host: wedge.status(now),
            }),
            Request::Down => {
                stop = true;
                json!({"ok": true})
            }
        });
        stop
    }

    fn tell_metrics(&mut self) {
        let (now, counters) = (self.clock.now(), self.counters());
        let (wedge, device) = (&self.wedge, &self.uplinks.config.device);
        let process = Process { started: self.started, cpu: time::cpu_seconds() };
        self.metrics.iter_mut().for_each(|metrics| {
            metrics.turn(now, || metrics::text(device, &counters, &wedge.status(now), process));
        });
    }

    fn tell(&mut self, event: WedgeEvent, buffers: &mut Buffers) {
        match &event {
            WedgeEvent::KeyLog(line) => {
                // Never to the log: the line holds keys.
                if let Some(Err(error)) = self.keylog.as_mut().map(|keylog| keylog.append(line)) {
                    tracing::warn!(%error, "the key log cannot be written and is closed");
                    self.keylog = None;
                }
                return;
            }
            // Many where a peer tells many addresses.
            WedgeEvent::Opening { .. } => return tracing::debug!("{event}"),
            WedgeEvent::Established { peer } => {
                buffers.associated.insert(peer.clone());
            }
            WedgeEvent::Closed { peer, .. } | WedgeEvent::Failed { peer, .. } => {
                buffers.associated.remove(peer);
            }
            _ => {}
        }
        let (kind, most) = kind(&event);
        let Some(hidden) = buffers.told.may(self.clock.now(), &kind, most) else { return };
        let hidden = if hidden > 0 { format!(" (and {hidden} times more since this was told)") } else { String::new() };
        match event {
            WedgeEvent::PathDead { .. }
            | WedgeEvent::PathDown { .. }
            | WedgeEvent::Failed { .. }
            | WedgeEvent::Unanswered { .. }
            | WedgeEvent::Refused { .. } => tracing::warn!("{event}{hidden}"),
            _ => tracing::info!("{event}{hidden}"),
        }
    }
}

/// What kind of news it is for the log, and how many of it may be told in a minute. What strangers cause is told once,
/// whoever they say they are; what a peer causes is news as long as it does not do it all the time.
fn kind(event: &WedgeEvent) -> (String, u32) {
    const CHANGES: u32 = 30;
    match event {
        WedgeEvent::Refused { what, .. } => (format!("refused {what:?}"), 1),
        WedgeEvent::Notified { peer, message } => (format!("notified {peer} {message}"), 1),
        WedgeEvent::Established { peer } => (format!("established {peer}"), CHANGES),
        WedgeEvent::Closed { peer, .. } => (format!("closed {peer}"), CHANGES),
        WedgeEvent::Failed { peer, .. } => (format!("failed {peer}"), CHANGES),
        WedgeEvent::Unanswered { peer, .. } => (format!("unanswered {peer}"), 1),
        WedgeEvent::PathUp { peer, .. } => (format!("up {peer}"), CHANGES),
        WedgeEvent::PathDown { peer, .. } => (format!("down {peer}"), CHANGES),
        WedgeEvent::PathDead { peer, .. } => (format!("dead {peer}"), CHANGES),
        WedgeEvent::PathAlive { peer, .. } => (format!("alive {peer}"), CHANGES),
        other => (format!("{:?}", std::mem::discriminant(other)), CHANGES),
    }
}

/// Takes what a signal has left in its stream.
fn signalled(stream: &mut UnixStream) -> bool {
    let mut bytes = [0; 16];
    stream.read(&mut bytes).is_ok_and(|length| length > 0)
}
