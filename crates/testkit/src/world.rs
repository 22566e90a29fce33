//! How hosts and what joins them go through virtual time.

use clock::{Duration, Instant, VirtualTime};

/// Hosts and what joins them. A test says what they are; in which order things happen to them is said here: what has arrived,
/// then timers, then what the hosts have to say.
pub trait World {
    /// The time, which nobody else changes.
    fn now(&mut self) -> &mut Instant;
    /// When the next packet arrives somewhere.
    fn next_arrival(&self) -> Option<Instant>;
    /// Hosts take what has arrived by now, or the first of it: they are asked for answers before the next.
    fn deliver(&mut self);
    /// When the first timer of a host is due.
    fn next_timer(&self) -> Option<Instant>;
    /// Timers that are due by now go off.
    fn handle_timers(&mut self);
    /// Hosts say what they have to say, and their packets leave.
    fn collect(&mut self);

    /// Goes on to the next event, and lets all of it happen, where one is due by `until`: whether there was one. Where there is
    /// none, it is `until`.
    ///
    /// # Panics
    /// Where something remains due however often it is served.
    fn step(&mut self, time: &mut VirtualTime, until: Instant) -> bool {
        let next = [self.next_arrival(), self.next_timer()].into_iter().flatten().min();
        let is_due = time.advance(next, until).unwrap_or_else(|still| panic!("{still}"));
        *self.now() = time.now();
        if is_due {
            self.deliver();
            self.handle_timers();
            self.collect();
        }
        is_due
    }

    /// Goes on until `done`, no longer than `until`: whether it is done.
    ///
    /// # Panics
    /// As [`World::step`].
    fn run_until(&mut self, until: Instant, done: impl Fn(&Self) -> bool) -> bool
    where
        Self: Sized,
    {
        self.collect();
        let mut time = VirtualTime::new(*self.now());
        while !done(self) {
            if !self.step(&mut time, until) {
                return false;
            }
        }
        true
    }

    /// Goes on until `until`.
    ///
    /// # Panics
    /// As [`World::step`].
    fn run_to(&mut self, until: Instant)
    where
        Self: Sized,
    {
        self.run_until(until, |_| false);
    }

    /// Goes on for so long.
    ///
    /// # Panics
    /// As [`World::step`].
    fn run_for(&mut self, time: Duration)
    where
        Self: Sized,
    {
        let until = *self.now() + time;
        self.run_to(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two that answer each packet after a while, over a way of 10 ms, and one timer.
    #[derive(Default)]
    struct Two {
        now: Instant,
        flying: Vec<(Instant, usize)>,
        to_say: Vec<usize>,
        timer: Option<Instant>,
        story: Vec<String>,
    }

    impl World for Two {
        fn now(&mut self) -> &mut Instant {
            &mut self.now
        }
        fn next_arrival(&self) -> Option<Instant> {
            self.flying.iter().map(|(at, _)| *at).min()
        }
        fn deliver(&mut self) {
            let now = self.now;
            for (_, to) in self.flying.extract_if(.., |(at, _)| *at <= now) {
                self.story.push(format!("{} to {to}", now.as_nanos() / 1_000_000));
                self.to_say.push(1 - to);
            }
        }
        fn next_timer(&self) -> Option<Instant> {
            self.timer
        }
        fn handle_timers(&mut self) {
            if self.timer.take_if(|at| *at <= self.now).is_some() {
                self.story.push(format!("{} timer", self.now.as_nanos() / 1_000_000));
            }
        }
        fn collect(&mut self) {
            let at = self.now + Duration::from_millis(10);
            self.flying.extend(self.to_say.drain(..).map(|to| (at, to)));
        }
    }

    #[test]
    fn what_has_arrived_comes_before_timers_and_these_before_answers() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut two = Two { to_say: vec![0], timer: Some(at(20)), ..Two::default() };
        two.run_to(at(35));
        assert_eq!(two.story, ["10 to 0", "20 to 1", "20 timer", "30 to 0"]);
        assert_eq!((two.now, two.next_arrival()), (at(35), Some(at(40))));
        two.timer = Some(at(36));
        assert!(two.run_until(at(99), |two| two.timer.is_none()) && two.now == at(36), "no longer than it has to");
    }
}
