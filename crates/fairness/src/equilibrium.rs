//! What the equations of LIA and of Reno come to where queues drop by RED: rates at which every window grows as fast as it
//! is cut.
//!
//! A window of `w` packets is halved at each drop, a part `p` of its packets, and grows by `a` packets for each that is
//! acknowledged: `a = w·p/2`. For Reno `a = 1/w`, so that a flow sends `√(2/p)/RTT`. For LIA (RFC 6356 §3) it is
//! `max(w/RTT²)/(Σ w/RTT)²` on all paths. RED's part of drops and its average queue, hence the round trip, follow from each
//! other (S. Floyd, V. Jacobson, *Random early detection gateways for congestion avoidance*, IEEE/ACM ToN 1(4), 1993, §7:
//! gaps between drops are uniform, and `1/(2·p_b)` packets long on average).

/// A link with RED that its flows keep busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    /// Packets per second, above 0.
    pub rate: f64,
    /// Seconds of a round trip while nothing waits.
    pub round_trip: f64,
    /// Average queue in packets below which nothing is dropped.
    pub min: f64,
    /// Average queue in packets at which the probability of a drop is `probability`; above `min`.
    pub max: f64,
    /// RED's probability at `max`, before it is spread; above 0.
    pub probability: f64,
}

impl Bottleneck {
    /// The round trip in seconds while a part `drops` of all packets is dropped.
    fn round_trip_at(&self, drops: f64) -> f64 {
        let waiting = self.min + (self.max - self.min) * drops / (2.0 * self.probability);
        self.round_trip + (waiting + 1.0) / self.rate
    }
}

/// Rates in packets per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equilibrium {
    /// Of the flow of two paths, on the link that it has alone.
    pub own: f64,
    /// Of the same flow on the link that it shares.
    pub shared: f64,
    /// Of the flow of one path beside it.
    pub single: f64,
}

/// A flow with LIA has the link `own` alone and shares the link `shared` with a flow with Reno, which is scenario 3 of
/// M. Becke and others, *On the fairness of transport protocols in a multi-path environment*, IEEE ICC 2012.
///
/// Once `shared` is the better path, the one of the larger `w/RTT²`, both flows get the same: LIA wants what one flow would
/// get on the best path. With the same round trip everywhere that is where `shared` has three times the rate of `own`; a
/// longer queue on `own` makes it less.
pub fn lia_beside_reno(own: &Bottleneck, shared: &Bottleneck) -> Equilibrium {
    let of = |own_drops: f64, shared_drops: f64| {
        let (own_trip, shared_trip) = (own.round_trip_at(own_drops), shared.round_trip_at(shared_drops));
        // w·p is the same on both paths, k: w = k/p, and k = 2a.
        let best = (1.0 / (own_drops * own_trip.powi(2))).max(1.0 / (shared_drops * shared_trip.powi(2)));
        let sum = 1.0 / (own_drops * own_trip) + 1.0 / (shared_drops * shared_trip);
        let k = (2.0 * best).sqrt() / sum;
        Equilibrium {
            own: k / (own_drops * own_trip),
            shared: k / (shared_drops * shared_trip),
            single: (2.0 / shared_drops).sqrt() / shared_trip,
        }
    };
    // The more a link drops, the less crosses it.
    let shared_drops = |own_drops: f64| {
        falling_to_zero(|drops| {
            let rates = of(own_drops, drops);
            rates.shared + rates.single - shared.rate
        })
    };
    let own_drops = falling_to_zero(|drops| of(drops, shared_drops(drops)).own - own.rate);
    of(own_drops, shared_drops(own_drops))
}

/// Where a function that falls is 0, between 1e-8 and 0.1, by halving the interval of the logarithms.
fn falling_to_zero(function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1e-8_f64.ln(), 0.1_f64.ln());
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if function(middle.exp()) > 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(mbps: f64, min: f64) -> Bottleneck {
        Bottleneck { rate: mbps * 1e6 / 12_000.0, round_trip: 0.02, min, max: 90.0, probability: 0.1 }
    }

    #[test]
    fn links_are_full_and_lia_gets_what_its_best_path_would_give_to_one_flow() {
        for beta in [20.0, 40.0, 60.0, 100.0] {
            let (own, shared) = (link(20.0, 30.0), link(beta, 30.0));
            let rates = lia_beside_reno(&own, &shared);
            assert!((rates.own / own.rate - 1.0).abs() < 1e-6, "{rates:?}");
            assert!(((rates.shared + rates.single) / shared.rate - 1.0).abs() < 1e-6, "{rates:?}");
            let both = rates.own + rates.shared;
            assert!(both > rates.single * (1.0 - 1e-6), "{rates:?}");
            assert_eq!(beta > 50.0, both < rates.single * (1.0 + 1e-6), "{rates:?}");
        }
    }

    /// Without queues all round trips are the same, and so are the flows from 3 · 20 Mbit/s on.
    #[test]
    fn without_queues_the_flows_are_equal_from_three_times_the_rate_on() {
        let near = |mbps| Bottleneck { min: 0.0, max: 1e-6, ..link(mbps, 0.0) };
        for (beta, equal) in [(57.0, false), (63.0, true)] {
            let rates = lia_beside_reno(&near(20.0), &near(beta));
            assert_eq!((rates.own + rates.shared) / rates.single < 1.0 + 1e-3, equal, "{beta}: {rates:?}");
        }
    }
}
