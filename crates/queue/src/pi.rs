//! The proportional-integral controller that PIE and DualPI2 have in common (Hollot, Misra, Towsley and Gong 2001).

use clock::{Duration, Instant};

/// When the controller is due, and what it saw last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pi {
    next: Instant,
    /// The waiting time at the last step, in seconds.
    pub(crate) previous: f64,
}

impl Pi {
    /// The instant of the next step, if it has come by `now`. If `is_at_rest`, nothing would change for however many steps, and
    /// those up to `now` are left out.
    pub(crate) fn due(&mut self, now: Instant, period: Duration, is_at_rest: bool) -> Option<Instant> {
        if now < self.next {
            return None;
        }
        if is_at_rest && !period.is_zero() {
            self.next += period * ((now - self.next).as_nanos() / period.as_nanos());
        }
        let at = self.next;
        self.next += period.max(Duration::from_nanos(1));
        Some(at)
    }

    /// A step: alpha · (waiting time - target) + beta · (waiting time - that of the last step), alpha and beta in Hz.
    pub(crate) fn step(&mut self, waited: f64, target: Duration, alpha: f64, beta: f64) -> f64 {
        let change = alpha * (waited - target.as_secs_f64()) + beta * (waited - self.previous);
        self.previous = waited;
        change
    }
}
