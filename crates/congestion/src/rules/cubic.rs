//! CUBIC: RFC 9438 §4. In packets inside, as the RFC has it.

use clock::{Duration, Instant};

use crate::group::{Group, Path};
use crate::math::cbrt;
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, WindowRule};

pub(super) const REFERENCE: Reference = Reference {
    name: "cubic",
    increase: "(clamp(W(t+RTT), w, 1.5w) − w)/w per packet, W(t) = 0.4·(t−K)³ + W_max, K = ∛((W_max − w_epoch)/0.4); as Reno does \
               where Reno has more; before the first loss 1/20 at least",
    decrease: "0.7·F",
    source: "RFC 9438 §4.1 to §4.8",
    section: ("3.3", "33-cubic-rfc-9438-4-r"),
    tunables: &[],
};

/// RFC 9438 §5: the scaling constant.
const C: f64 = 0.4;
/// RFC 9438 §4.6: the multiplicative decrease.
const BETA: f64 = 0.7;
/// RFC 5681 §3.1: Reno's.
const HALF: f64 = 0.5;

/// Where less than this part of the longest queue stands at a loss, none has overflowed: somebody keeps it short (RFC 7567).
const OVERFLOWS: f64 = 0.5;

/// RFC 9438 §4.3: the additive increase that is as aggressive as Reno's where a loss leaves this part of the window.
fn alpha(part: f64) -> f64 {
    3.0 * (1.0 - part) / (1.0 + part)
}

/// Packets acknowledged for each that the window grows by at least, before the first loss.
const UNTOLD: f64 = 20.0;

/// A window that is not this part of what the rule has made of it was set by somebody else.
const OWN: std::ops::Range<f64> = 0.99..1.01;

/// The window is a cubic function of the time since the last loss.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    /// See [`Cubic::or_reno`].
    or_reno: bool,
    paths: Vec<State>,
}

impl Cubic {
    /// The same for a tunnel's paths. Where Reno would have more it is Reno, at losses of full queues as well: it halves the window then, unless
    /// the link would be empty by that, and grows as RFC 9438 §4.3 has it for such a decrease: by a packet in a round trip after a half. And what it
    /// reduces is the window, however much of it was in use.
    pub(super) fn or_reno() -> Self {
        Self { or_reno: true, ..Self::default() }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The window before the last reduction, or what fast convergence made of it; packets.
    w_max: f64,
    /// The window right before the last reduction; packets.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// Since when the window has not been used.
    unused: Option<Instant>,
    /// After a timeout K is 0 (RFC 9438 §4.8).
    after_timeout: bool,
    /// What the last reduction left of the window, if that was Reno's.
    reno: Option<f64>,
    /// For undo.
    saved: (f64, f64, Option<f64>),
}

/// From the first increase after a reduction to the next reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Of the last increase.
    at: Instant,
    /// The seconds after which the curve is at `w_max`.
    k: f64,
    /// What Reno has; packets.
    w_reno: f64,
    /// The same two of a CUBIC that made the last reduction, if that was Reno's.
    k_est: f64,
    w_est: f64,
    /// That CUBIC follows its curve.
    is_on_curve: bool,
    /// The window as the rule has made it; packets.
    own: f64,
}

impl State {
    /// RFC 9438 §4.2: the window on the curve that after `k` seconds is at `w_max`.
    fn curve(&self, t: f64, k: f64) -> f64 {
        C * (t - k) * (t - k) * (t - k) + self.w_max
    }

    /// The epoch that begins now with a window of `w` packets.
    fn begins(&mut self, w: f64, now: Instant) -> Epoch {
        if std::mem::take(&mut self.after_timeout) {
            self.w_max = w; // RFC 9438 §4.8
        }
        // RFC 9438 §4.2; with no loss yet, or the window already above the last plateau, the epoch starts there.
        self.w_max = self.w_max.max(w);
        let w_est = if self.reno.is_some() { w.max(BETA * self.cwnd_prior).min(self.w_max) } else { w };
        let k = |w: f64| cbrt((self.w_max - w) / C);
        Epoch { start: now, at: now, k: k(w), k_est: k(w_est), w_reno: w, w_est, is_on_curve: false, own: w }
    }
}

impl WindowRule for Cubic {
    fn path_added(&mut self, _path: usize) {
        self.paths.push(State::default());
    }

    fn path_changed(&mut self, path: usize) {
        self.paths[path] = State::default();
    }

    fn unit_changed(&mut self, path: usize, ratio: f64) {
        let State { w_max, cwnd_prior, saved, epoch, .. } = &mut self.paths[path];
        for packets in [w_max, cwnd_prior, &mut saved.0, &mut saved.1] {
            *packets *= ratio;
        }
        // RFC 9438 §4.2: a curve that is `ratio` times as high takes the cube root of that times as long. The epoch stays where it is on it.
        if let Some(Epoch { start, at, k, k_est, w_reno, w_est, own, .. }) = epoch {
            [w_reno, w_est, own].into_iter().for_each(|packets| *packets *= ratio);
            let longer = cbrt(ratio);
            [k, k_est].into_iter().for_each(|time| *time *= longer);
            *start = *at - (*at - *start).mul_f64(longer);
        }
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let (state, now) = (&mut self.paths[path], group.now);
        let path = group.path(path);
        let (w, segments) = (path.packets(), acked / path.unit);
        let is_own = |epoch: &Epoch| OWN.contains(&(w / epoch.own));
        let mut epoch = state.epoch.filter(is_own).unwrap_or_else(|| state.begins(w, now));
        // RFC 9438 §5.8: time in which the window was not used does not count. It is used if it is full once in a round trip.
        let unused = state.unused.take().map_or(Duration::ZERO, |since| now.saturating_since(since));
        let unused = if unused > path.srtt { unused } else { Duration::ZERO };
        epoch.start = (epoch.start + unused).min(now);
        let t = now.saturating_since(epoch.start).as_secs_f64();
        // RFC 9438 §4.3: once Reno would be where the window was, it grows as Reno does.
        let alpha = |part| if epoch.w_est >= state.cwnd_prior { 1.0 } else { alpha(part) };
        let (reno, est) = (alpha(state.reno.unwrap_or(BETA)), alpha(BETA));
        epoch.w_est += est * segments / w;
        epoch.w_reno += reno * segments / w;
        epoch.is_on_curve = state.curve(t, epoch.k_est) >= epoch.w_est;
        let packets = if state.curve(t, epoch.k) < epoch.w_reno {
            (epoch.w_reno - w).max(0.0)
        } else {
            // RFC 9438 §4.4: towards where the curve will be one round trip from now, by half at most.
            let target = state.curve(t + path.srtt.as_secs_f64(), epoch.k).clamp(w, 1.5 * w);
            (target - w) / w * segments
        };
        // The curve is flat where it starts, whatever the path could carry. Linux grows by a twentieth of what is acknowledged
        // at least until the first loss has told (`bictcp_update` in net/ipv4/tcp_cubic.c); RFC 9438 has nothing for it.
        let least = if state.cwnd_prior == 0.0 && !self.or_reno { segments / UNTOLD } else { 0.0 };
        let packets = packets.max(least);
        (epoch.own, epoch.at) = (epoch.own + packets, now);
        state.epoch = Some(epoch);
        packets * path.unit
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        let state = &mut self.paths[path];
        let path = group.path(path);
        let w = path.packets();
        state.saved = (state.w_max, state.cwnd_prior, state.reno);
        // RFC 9438 §4.7: a flow that loses below its last plateau leaves room for others.
        state.w_max = if w < state.w_max { w * (1.0 + BETA) / 2.0 } else { w };
        state.cwnd_prior = w;
        (state.after_timeout, state.unused) = (cause == Cause::Timeout, None);
        let is_on_curve = state.epoch.take().is_some_and(|epoch| epoch.is_on_curve);
        let is_doubtful = self.or_reno && path.loss_is_doubtful;
        if is_doubtful {
            // Then it does not tell how much the path carries, and what is lost at smaller windows will tell whose losses they are.
            state.w_max = 0.0;
        }
        let is_reno = self.or_reno && !is_on_curve && overflows(path);
        state.reno = if is_doubtful { Some(HALF) } else { is_reno.then(|| without_queue(path)) };
        let of = if self.or_reno { path.cwnd } else { path.flight };
        Backoff::to(state.reno.unwrap_or(BETA) * of, 2.0 * path.unit)
    }

    fn limited(&mut self, path: usize, group: Group<'_>, _acked: f64) {
        self.paths[path].unused.get_or_insert(group.now);
    }

    fn borne(&mut self, path: usize, group: Group<'_>) {
        let state = &mut self.paths[path];
        if group.path(path).packets() >= state.w_max {
            // Beyond what is known to be carried the curve would grow ever faster.
            state.epoch = None;
        }
    }

    fn undone(&mut self, path: usize, _group: Group<'_>) {
        let state = &mut self.paths[path];
        (state.w_max, state.cwnd_prior, state.reno) = state.saved;
        state.epoch = None;
        state.after_timeout = false;
    }
}

/// Whether the queue is about as long as it has ever been. A queue that drops before it is full does so at random, and beside the CUBICs
/// that share it a Reno has less, though RFC 9438 §4.3 makes them equal where losses come at the same window each time.
fn overflows(path: &Path) -> bool {
    let queue = |rtt: Duration| rtt.saturating_sub(path.base_rtt);
    queue(path.srtt) >= queue(path.top_rtt).mul_f64(OVERFLOWS)
}

/// What a loss leaves of the window: what the link holds without the queue, so that it is not empty, between Reno's half and CUBIC's 0.7.
/// (H-TCP, Leith and Shorten 2004, divides the same two times.)
fn without_queue(path: &Path) -> f64 {
    let (base, top) = (path.base_rtt.as_secs_f64(), path.top_rtt.as_secs_f64());
    if top > 0.0 { (base / top).clamp(HALF, BETA) } else { HALF }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{number, vector};

    fn path(packets: f64) -> Path {
        let srtt = Duration::from_millis(100);
        Path { flight: packets, srtt, base_rtt: srtt, top_rtt: srtt, ..Path::new(packets, packets, 1.0) }
    }

    /// An epoch goes on where the unit changes, before the plateau and after it, where one that begins would be flat.
    #[test]
    fn a_unit_that_changes_and_changes_back_leaves_the_curve_as_it_was() {
        let step = |rule: &mut Cubic, path: &mut Path, tenths: u64| {
            let now = Instant::ZERO + Duration::from_millis(100 * tenths);
            let more = rule.increase(0, Group { paths: std::slice::from_ref(path), now }, path.cwnd);
            path.cwnd += more;
        };
        // RFC 9438 §4.2: from 70 to 100 packets it takes ∛(30 / 0.4) = 4.2 s.
        for changed_after in [20, 60] {
            let windows = [false, true].map(|changes| {
                let (mut rule, mut path) = (Cubic::default(), path(100.0));
                rule.path_added(0);
                rule.decrease(0, Group { paths: std::slice::from_ref(&path), now: Instant::ZERO }, Cause::Loss);
                path.cwnd = 70.0;
                (0..changed_after).for_each(|tenths| step(&mut rule, &mut path, tenths));
                for ratio in if changes { [1.25, 0.8] } else { [1.0, 1.0] } {
                    rule.unit_changed(0, ratio);
                    path.unit /= ratio;
                }
                (changed_after..80).for_each(|tenths| step(&mut rule, &mut path, tenths));
                path.cwnd
            });
            assert!(windows[0] > 110.0 && (windows[0] - windows[1]).abs() < 1e-3, "{windows:?}");
        }
    }

    /// The vectors whose inner values the engine does not show.
    #[test]
    fn the_plateau_and_the_first_step_are_those_of_the_vectors() {
        let (input, output) = vector("cubic.1");
        let k = cbrt((number(&input["w_max"]) - number(&input["cwnd_epoch"])) / C);
        assert!((k - number(&output["K"])).abs() < 1e-9);
        assert!((alpha(BETA) - number(&output["alpha_reno"])).abs() < 1e-9);
        let (input, output) = vector("cubic.2");
        let (cwnd, w_max) = (number(&input["cwnd"]), number(&input["w_max"]));
        let mut rule = Cubic::default();
        rule.path_added(0);
        let (start, w_est) = (Instant::ZERO, number(&input["w_est"]));
        let epoch = Epoch { start, at: start, k, k_est: k, w_reno: w_est, w_est, is_on_curve: false, own: cwnd };
        rule.paths[0] = State { w_max, cwnd_prior: w_max, epoch: Some(epoch), ..State::default() };
        let now = Instant::ZERO + Duration::from_secs_f64(number(&input["t"]));
        let paths = [path(cwnd)];
        let more = rule.increase(0, Group { paths: &paths, now }, 1.0);
        assert!((cwnd + more - number(&output["cwnd"])).abs() < 1e-9, "{more}");
        assert!((rule.paths[0].epoch.unwrap().w_est - number(&output["w_est"])).abs() < 1e-9);
    }
}
