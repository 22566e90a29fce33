//! Datagrams of a call, or echo requests, watched: which arrived, and how long they took.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Sent so late, a datagram may still be under way when the scenario is over: it does not count.
const LAST: Duration = Duration::from_secs(1);

/// What was sent and what arrived. All times count from the same moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datagrams {
    /// By number, when it was sent.
    sent: Vec<Duration>,
    /// Number and time of what arrived, in the order of arrival; of an echo, the answer.
    arrived: Vec<(u64, Duration)>,
    /// Bytes of each.
    bytes: u32,
}

/// What became of datagrams.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DatagramReport {
    /// How many were sent.
    pub sent: u64,
    /// How many of them never arrived; of echo requests, how many never were answered.
    pub lost: u64,
    /// How many arrived after younger ones.
    pub reordered: u64,
    /// The interarrival jitter of RFC 3550 §6.4.1, an average that forgets, in milliseconds.
    pub jitter_ms: Quantiles,
    /// The time from program to program, of echo requests there and back.
    pub delay_ms: Quantiles,
}

/// Of many times, in milliseconds, those that so many did not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half of them.
    pub median: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
    /// All of them.
    pub longest: f64,
}

impl fmt::Display for DatagramReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantiles { median, p95, longest, .. } = self.delay_ms;
        write!(
            f,
            "{} of {} lost, jitter {:.1} ms, at worst {:.1}; delay {median:.1} ms, 95 % within {p95:.1}, all within {longest:.1}",
            self.lost, self.sent, self.jitter_ms.median, self.jitter_ms.longest
        )
    }
}

impl Quantiles {
    /// Of these, in seconds.
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self::new(|part| {
            let place = (part * times.len() as f64).ceil() as usize;
            times.get(place.saturating_sub(1)).copied().unwrap_or_default()
        })
    }

    /// From what tells the time in seconds that a part, 0 to 1, does not exceed.
    pub(crate) fn new(quantile: impl Fn(f64) -> f64) -> Self {
        let [median, p95, p99, longest] = [0.5, 0.95, 0.99, 1.0].map(|part| (quantile(part) * 1e5).round() / 100.0);
        Self { median, p95, p99, longest }
    }
}

impl Datagrams {
    /// None yet, of so many bytes each.
    pub(crate) fn new(bytes: u32) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// The next number was sent.
    pub(crate) fn send(&mut self, at: Duration) -> u64 {
        self.sent.push(at);
        self.sent.len() as u64 - 1
    }

    /// A number has arrived.
    pub(crate) fn arrive(&mut self, number: u64, at: Duration) {
        self.arrived.push((number, at));
    }

    /// Bytes that arrived between two moments.
    pub(crate) fn bytes_between(&self, from: Duration, to: Duration) -> u64 {
        self.arrived.iter().filter(|(_, at)| (from..to).contains(at)).count() as u64 * u64::from(self.bytes)
    }

    /// The longest time between two moments in which nothing arrived.
    pub(crate) fn stall(&self, from: Duration, to: Duration) -> Duration {
        let between = self.arrived.iter().map(|(_, at)| *at).filter(|at| (from..to).contains(at));
        let (longest, last) = between
            .chain([to])
            .fold((Duration::ZERO, from), |(longest, last), at| (longest.max(at.saturating_sub(last)), at));
        longest.max(to.saturating_sub(last))
    }

    /// What became of those sent between two moments; the last second is left out, since what is sent then is under way.
    pub(crate) fn report(&self, from: Duration, to: Duration) -> DatagramReport {
        let counts = |number: u64| {
            let sent = usize::try_from(number).ok().and_then(|number| self.sent.get(number));
            sent.copied().filter(|sent| (from..to.saturating_sub(LAST)).contains(sent))
        };
        let mut delays: Vec<f64> = Vec::new();
        let mut seen = vec![false; self.sent.len()];
        let (mut reordered, mut highest) = (0, None);
        let (mut jitter, mut before): (f64, Option<f64>) = (0.0, None);
        let mut jitters: Vec<f64> = Vec::new();
        for (number, at) in &self.arrived {
            let (Some(sent), Some(seen)) =
                (counts(*number), usize::try_from(*number).ok().and_then(|n| seen.get_mut(n)))
            else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            reordered += u64::from(highest.is_some_and(|highest| *number < highest));
            highest = highest.max(Some(*number));
            let delay = at.saturating_sub(sent).as_secs_f64();
            if let Some(before) = before.replace(delay) {
                // RFC 3550 §6.4.1: J(i) = J(i-1) + (|D(i-1,i)| - J(i-1))/16
                jitter += ((delay - before).abs() - jitter) / 16.0;
                jitters.push(jitter);
            }
            delays.push(delay);
        }
        let sent = (0..self.sent.len() as u64).filter(|number| counts(*number).is_some()).count() as u64;
        DatagramReport {
            sent,
            lost: sent - delays.len() as u64,
            reordered,
            jitter_ms: Quantiles::of(jitters),
            delay_ms: Quantiles::of(delays),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn what_is_sent_in_time_counts_and_the_rest_does_not() {
        let mut call = Datagrams::new(100);
        let numbers: Vec<u64> = (0..400).map(|number| call.send(ms(10 * number))).collect();
        // Each takes 20 ms, every tenth 36 ms more, so that it comes after the next three; number 200 is lost.
        let mut arrivals: Vec<(Duration, u64)> = Vec::new();
        for number in numbers.into_iter().filter(|number| *number != 200) {
            arrivals.push((ms(10 * number + 20 + if number % 10 == 5 { 36 } else { 0 }), number));
        }
        arrivals.sort_unstable();
        arrivals.iter().for_each(|(at, number)| call.arrive(*number, *at));
        call.arrive(100, ms(3999));
        let report = call.report(ms(1000), ms(4000));
        // Numbers 100 to 299.
        assert_eq!((report.sent, report.lost, report.reordered), (200, 1, 20));
        let delays = report.delay_ms;
        assert_eq!((delays.median, delays.p95, delays.longest), (20.0, 56.0, 56.0));
        // In ten packets the delay changes twice by 36 ms: the estimate goes about their mean, 7.2 ms.
        assert!((4.0..7.3).contains(&report.jitter_ms.median), "{report:?}");
        assert!((7.2..13.0).contains(&report.jitter_ms.longest), "{report:?}");
        assert_eq!(call.stall(ms(1000), ms(3000)), ms(20));
        assert_eq!(call.bytes_between(ms(1000), ms(2000)), 100 * 100);
        assert_eq!(Datagrams::new(1).report(ms(0), ms(9)), DatagramReport::default());
    }

    #[test]
    fn a_steady_call_has_no_jitter() {
        let mut call = Datagrams::new(100);
        for number in 0..1000 {
            call.send(ms(10 * number));
            call.arrive(number, ms(10 * number + 30));
        }
        let report = call.report(ms(0), ms(5000));
        assert_eq!((report.sent, report.lost, report.reordered, report.jitter_ms.longest), (400, 0, 0, 0.0));
    }
}
