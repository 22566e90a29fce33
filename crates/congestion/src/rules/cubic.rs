//! CUBIC: RFC 9438 §4. In packets inside, as the RFC has it.

use clock::Instant;
use smallvec::SmallVec;

use crate::group::Group;
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
/// RFC 9438 §4.3: additive increase that is as aggressive as Reno's at a decrease of `BETA`.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Packets acknowledged for each that the window grows by at least, before the first loss.
const UNTOLD: f64 = 20.0;

/// The window is a cubic function of the time since the last loss.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    paths: SmallVec<[State; 1]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The window before the last reduction, or what fast convergence made of it; packets.
    w_max: f64,
    /// The window right before the last reduction; packets.
    cwnd_prior: f64,
    /// What Reno would have; packets.
    w_est: f64,
    /// Start of the epoch and K, in seconds; `None` until the first increase after a loss.
    epoch: Option<(Instant, f64)>,
    /// After a timeout K is 0 (RFC 9438 §4.8).
    after_timeout: bool,
    /// For undo.
    saved: (f64, f64),
}

impl WindowRule for Cubic {
    fn path_added(&mut self, _path: usize) {
        self.paths.push(State::default());
    }

    fn unit_changed(&mut self, path: usize, ratio: f64) {
        let State { w_max, cwnd_prior, saved, epoch, .. } = &mut self.paths[path];
        for packets in [w_max, cwnd_prior, &mut saved.0, &mut saved.1] {
            *packets *= ratio;
        }
        *epoch = None;
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let (state, now) = (&mut self.paths[path], group.now);
        let path = group.path(path);
        let w = path.packets();
        let (start, k) = *state.epoch.get_or_insert_with(|| {
            if state.after_timeout {
                state.w_max = w; // RFC 9438 §4.8
                state.after_timeout = false;
            }
            // RFC 9438 §4.2; with no loss yet, or the window already above the last plateau, the epoch starts there.
            state.w_max = state.w_max.max(w);
            state.w_est = w;
            (now, cbrt((state.w_max - w) / C))
        });
        let segments = acked / path.unit;
        // RFC 9438 §4.3: once Reno would be where the window was, it grows as Reno does.
        let alpha = if state.w_est >= state.cwnd_prior { 1.0 } else { ALPHA };
        state.w_est += alpha * segments / w;
        let t = now.saturating_since(start).as_secs_f64();
        let cubic = |t: f64| C * (t - k) * (t - k) * (t - k) + state.w_max;
        let packets = if cubic(t) < state.w_est {
            (state.w_est - w).max(0.0)
        } else {
            // RFC 9438 §4.4: towards where the curve will be one round trip from now, by half at most.
            let target = cubic(t + path.srtt.as_secs_f64()).clamp(w, 1.5 * w);
            (target - w) / w * segments
        };
        // The curve is flat where it starts, whatever the path could carry. Linux grows by a twentieth of what is acknowledged
        // at least until the first loss has told (`bictcp_update` in net/ipv4/tcp_cubic.c); RFC 9438 has nothing for it.
        let least = if state.cwnd_prior == 0.0 { segments / UNTOLD } else { 0.0 };
        packets.max(least) * path.unit
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        let state = &mut self.paths[path];
        let path = group.path(path);
        let w = path.packets();
        state.saved = (state.w_max, state.cwnd_prior);
        // RFC 9438 §4.7: a flow that loses below its last plateau leaves room for others.
        state.w_max = if w < state.w_max { w * (1.0 + BETA) / 2.0 } else { w };
        state.cwnd_prior = w;
        state.epoch = None;
        state.after_timeout = cause == Cause::Timeout;
        Backoff::to(BETA * path.flight, 2.0 * path.mss)
    }

    fn limited(&mut self, path: usize, _group: Group<'_>, _acked: f64) {
        // RFC 9438 §5.8: time in which the window was not used does not count.
        self.paths[path].epoch = None;
    }

    fn undone(&mut self, path: usize, _group: Group<'_>) {
        let state = &mut self.paths[path];
        (state.w_max, state.cwnd_prior) = state.saved;
        state.epoch = None;
        state.after_timeout = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Path;
    use crate::vector::{number, vector};
    use clock::Duration;

    fn path(packets: f64) -> Path {
        let srtt = Duration::from_millis(100);
        Path { flight: packets, srtt, base_rtt: srtt, top_rtt: srtt, ..Path::new(packets, packets, 1.0) }
    }

    /// The vectors whose inner values the engine does not show.
    #[test]
    fn the_plateau_and_the_first_step_are_those_of_the_vectors() {
        let (input, output) = vector("cubic.1");
        let k = cbrt((number(&input["w_max"]) - number(&input["cwnd_epoch"])) / C);
        assert!((k - number(&output["K"])).abs() < 1e-9);
        assert!((ALPHA - number(&output["alpha_reno"])).abs() < 1e-9);
        let (input, output) = vector("cubic.2");
        let (cwnd, w_max) = (number(&input["cwnd"]), number(&input["w_max"]));
        let mut rule = Cubic::default();
        rule.path_added(0);
        rule.paths[0].w_max = w_max;
        rule.paths[0].cwnd_prior = w_max;
        rule.paths[0].w_est = number(&input["w_est"]);
        rule.paths[0].epoch = Some((Instant::ZERO, k));
        let now = Instant::ZERO + Duration::from_secs_f64(number(&input["t"]));
        let paths = [path(cwnd)];
        let more = rule.increase(0, Group { paths: &paths, now }, 1.0);
        assert!((cwnd + more - number(&output["cwnd"])).abs() < 1e-9, "{more}");
        assert!((rule.paths[0].w_est - number(&output["w_est"])).abs() < 1e-9);
    }
}
