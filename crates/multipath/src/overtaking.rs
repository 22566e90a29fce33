//! What waits on a path that carries far less all at once goes past itself on another: a program whose window is full has nothing to
//! send until it has arrived, and the other paths stand idle. (Multipath TCP's opportunistic retransmission, C. Raiciu and others,
//! *How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP*, NSDI 2012, for one cause.)

use crate::path::SenderPath;
use crate::sender::{Feedback, Sender};
use clock::{Duration, Instant};
use scheduler::PathScheduler;

/// What would arrive sooner elsewhere by less than this stays where it is.
const WORTH: Duration = Duration::from_millis(30);

impl<P> Sender<P> {
    /// Queues to be sent again what a path whose rate has fallen will deliver later than the quickest of the others could. Only
    /// while nothing else waits, so it takes no room from anybody.
    pub(crate) fn overtake(&mut self, now: Instant) {
        let fell = |path: &SenderPath<P>| path.control.as_ref().is_some_and(|control| control.sent.has_fallen());
        if self.feedback != Feedback::Reports || !self.paths.iter().any(fell) || self.waits() {
            return;
        }
        // Other schedulers are what their papers say, and policies say which paths packets may take.
        if !self.scheduler.needs().arrivals || !self.policies.is_empty() {
            return;
        }
        let Self { paths, windows, .. } = self;
        let others = paths.iter().filter(|path| path.state.is_usable() && !fell(path) && path.pacer.clear_at() <= now);
        let quickest = others.filter_map(|path| {
            let control = path.control.as_ref()?;
            let delay = control.delay(control.sent.rtt().srtt()?);
            let room = windows.window(control.slot) as usize;
            Some((delay, control.sent.full_rate(), room.saturating_sub(control.sent.in_flight())))
        });
        let Some((delay, rate, mut room)) = quickest.min() else { return };
        let mut overtaken = Vec::new();
        for control in paths.iter_mut().filter_map(|path| path.control.as_mut()) {
            let late = control.sent.overtaken(now, (delay + WORTH, rate), room);
            room = room.saturating_sub(late.iter().map(|packet| packet.wire).sum());
            overtaken.extend(late);
        }
        self.rescue(overtaken);
    }
}
