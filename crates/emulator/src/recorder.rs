//! Captures are written by a thread of their own: a disk makes its writers wait, and packets must not wait with them.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

use crate::Capture;
use crate::network::{Delivery, RouteId};

/// A file that takes what some routes deliver.
pub struct Recording {
    /// The routes whose deliveries are written, usually the two directions of a path.
    pub routes: Vec<RouteId>,
    /// The pcap file, created or replaced.
    pub file: PathBuf,
}

/// The thread that writes.
pub(crate) struct Recorder {
    packets: Option<Sender<Delivery>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Recorder {
    /// Creates the files. `epoch` is the time of day at the network's instant zero.
    pub(crate) fn start(recordings: &[Recording], epoch: SystemTime) -> io::Result<Self> {
        if recordings.is_empty() {
            return Ok(Self { packets: None, thread: None });
        }
        let open = |recording: &Recording| Ok((recording.routes.clone(), Capture::create(&recording.file, epoch)?));
        let captures = recordings.iter().map(open).collect::<io::Result<Vec<_>>>()?;
        let (packets, queue) = channel();
        let thread = std::thread::Builder::new().name("captures".into()).spawn(move || write(captures, queue))?;
        Ok(Self { packets: Some(packets), thread: Some(thread) })
    }

    /// Writes a packet soon. What goes wrong is told at the end.
    pub(crate) fn record(&self, delivery: Delivery) {
        if let Some(packets) = &self.packets {
            // The thread ends early when a file cannot be written: `finish` tells of it.
            let _ = packets.send(delivery);
        }
    }

    /// Completes the files.
    pub(crate) fn finish(self) -> io::Result<()> {
        drop(self.packets);
        match self.thread.map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the thread that writes captures panicked")),
            None => Ok(()),
        }
    }
}

fn write(mut captures: Vec<(Vec<RouteId>, Capture)>, queue: Receiver<Delivery>) -> io::Result<()> {
    for delivery in queue {
        for (_, capture) in captures.iter_mut().filter(|(routes, _)| routes.contains(&delivery.route)) {
            capture.record(delivery.at, &delivery.packet)?;
        }
    }
    captures.into_iter().try_for_each(|(_, capture)| capture.finish())
}
