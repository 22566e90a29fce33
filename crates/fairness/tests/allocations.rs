//! What max-min and proportional fairness promise, on random networks: feasibility, and the conditions that define them.

use fairness::{Network, NetworkError};
use proptest::prelude::*;

/// Links with capacities, routes over them.
fn networks() -> impl Strategy<Value = (Vec<f64>, Vec<Vec<usize>>)> {
    (1_usize..6).prop_flat_map(|links| {
        let capacities = prop::collection::vec(0.5_f64..100.0, links);
        let routes = prop::collection::vec(prop::collection::vec(0..links, 1..=links), 1..8);
        (capacities, routes)
    })
}

fn loads(capacities: &[f64], routes: &[Vec<usize>], rates: &[f64]) -> Vec<f64> {
    let mut loads = vec![0.0; capacities.len()];
    for (route, rate) in routes.iter().zip(rates) {
        for (link, load) in loads.iter_mut().enumerate() {
            if route.contains(&link) {
                *load += rate;
            }
        }
    }
    loads
}

proptest! {
    /// The bottleneck characterisation (Bertsekas and Gallager, proposition 6.2): each route crosses a full link on which
    /// no other route has more per weight.
    #[test]
    fn each_max_min_rate_has_a_bottleneck(
        (capacities, routes) in networks(),
        seed in prop::collection::vec(0.2_f64..5.0, 8),
    ) {
        let weights = &seed[..routes.len()];
        let rates = Network::new(&capacities, &routes).unwrap().max_min(weights).unwrap();
        let loads = loads(&capacities, &routes, &rates);
        for (link, load) in loads.iter().enumerate() {
            prop_assert!(*load <= capacities[link] * (1.0 + 1e-9));
        }
        for (k, route) in routes.iter().enumerate() {
            let has_bottleneck = route.iter().any(|&link| {
                loads[link] >= capacities[link] * (1.0 - 1e-9)
                    && routes.iter().enumerate().filter(|(_, other)| other.contains(&link))
                        .all(|(j, _)| rates[j] / weights[j] <= rates[k] / weights[k] * (1.0 + 1e-9))
            });
            prop_assert!(has_bottleneck, "route {k} of {rates:?}");
        }
    }

    /// Kelly's definition: against any other feasible allocation the weighted sum of proportional changes is not positive.
    /// It suffices to try the vertices of the direction: here every max-min allocation of random weights.
    #[test]
    fn no_allocation_is_proportionally_better(
        (capacities, routes) in networks(),
        owner_seed in prop::collection::vec(0_usize..3, 8),
        others in prop::collection::vec(prop::collection::vec(0.01_f64..10.0, 8), 8),
        flow_weights in prop::collection::vec(0.3_f64..3.0, 3),
    ) {
        let owners = &owner_seed[..routes.len()];
        let network = Network::new(&capacities, &routes).unwrap();
        let rates = network.proportional(owners, &flow_weights).unwrap();
        for (link, load) in loads(&capacities, &routes, &rates).iter().enumerate() {
            prop_assert!(*load <= capacities[link] * (1.0 + 1e-9));
        }
        let totals = |rates: &[f64]| {
            let mut totals = [0.0; 3];
            for (owner, rate) in owners.iter().zip(rates) {
                totals[*owner] += rate;
            }
            totals
        };
        let best = totals(&rates);
        for weights in others {
            let other = totals(&network.max_min(&weights[..routes.len()]).unwrap());
            let change: f64 = (0..3).filter(|&flow| owners.contains(&flow))
                .map(|flow| flow_weights[flow] * (other[flow] - best[flow]) / best[flow])
                .sum();
            prop_assert!(change <= 1e-6, "{change}: {other:?} instead of {best:?}");
        }
    }
}

/// Parking lot of n links: the long flow gets 1/(n+1) of each link, the others the rest.
#[test]
fn the_parking_lot_has_a_closed_form() {
    for n in 1..12 {
        let mut routes = vec![(0..n).collect::<Vec<_>>()];
        routes.extend((0..n).map(|link| vec![link]));
        let network = Network::new(&vec![7.0; n], &routes).unwrap();
        let owners: Vec<usize> = (0..=n).collect();
        let rates = network.proportional(&owners, &vec![1.0; n + 1]).unwrap();
        let long = 7.0 / (n as f64 + 1.0);
        assert!((rates[0] - long).abs() < 1e-8, "{n}: {rates:?}");
        assert!(rates[1..].iter().all(|rate| (rate - (7.0 - long)).abs() < 1e-8), "{n}: {rates:?}");
    }
}

#[test]
fn a_dead_link_gives_nothing_and_disturbs_nobody() {
    let network = Network::new(&[0.0, 6.0], &[vec![0], vec![0, 1], vec![1]]).unwrap();
    assert_eq!(network.max_min(&[1.0; 3]).unwrap(), vec![0.0, 0.0, 6.0]);
    let rates = network.proportional(&[0, 1, 1], &[1.0, 1.0]).unwrap();
    assert_eq!(&rates[..2], &[0.0, 0.0]);
    assert!((rates[2] - 6.0).abs() < 1e-8);
}

#[test]
fn nonsense_is_refused() {
    let refused = |capacities: &[f64], routes: &[Vec<usize>]| Network::new(capacities, routes).unwrap_err();
    assert_eq!(refused(&[-1.0], &[vec![0]]), NetworkError::Capacity { link: 0, capacity: -1.0 });
    assert!(matches!(refused(&[f64::NAN], &[]), NetworkError::Capacity { link: 0, .. }));
    assert_eq!(refused(&[1.0], &[vec![]]), NetworkError::EmptyRoute { route: 0 });
    assert_eq!(refused(&[1.0], &[vec![1]]), NetworkError::UnknownLink { route: 0, link: 1, links: 1 });
    let network = Network::new(&[1.0], &[vec![0]]).unwrap();
    assert!(network.max_min(&[]).is_err());
    assert!(network.max_min(&[0.0]).is_err());
    assert!(network.proportional(&[1], &[1.0]).is_err());
    assert!(network.proportional(&[], &[1.0]).is_err());
}
