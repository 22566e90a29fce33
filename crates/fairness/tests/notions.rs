//! The notions of fairness: the scenarios of Becke and others (ICC 2012), the check vectors, and what defines each notion on
//! random networks.

use fairness::metrics::{self, Account};
use fairness::{
    Allocation, Network, NetworkError, Notion, Topology, TopologyError, line, planes, scenario_1, scenario_2,
    scenario_3,
};
use proptest::prelude::*;
use serde_json::Value;

fn vector(id: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("../../../vectors/algorithms/vectors.json")).unwrap();
    all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id).unwrap().clone()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}

fn expect(notion: Notion, (network, owners): (Network, Vec<usize>)) -> Allocation {
    notion.allocate(&network, &owners, &vec![None; owners.len()]).unwrap()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 2e-5 * expected.abs().max(1.0), "{found} instead of {expected}");
    }
}

fn rates(value: &Value) -> Vec<f64> {
    ["B00", "B01", "B10"].iter().map(|name| value[name].as_f64().unwrap()).collect()
}

#[test]
fn fair_s1() {
    let vector = vector("fair.s1");
    let alpha = vector["input"]["alpha"].as_f64().unwrap();
    let both = [vector["output"]["B0"].as_f64().unwrap(), vector["output"]["B1"].as_f64().unwrap()];
    for notion in Notion::ALL {
        assert_near(&expect(notion, scenario_1(alpha).unwrap()).flows, &both);
    }
}

#[test]
fn fair_s2() {
    let vector = vector("fair.s2");
    let alpha = vector["input"]["alpha"].as_f64().unwrap();
    for (notion, key) in
        [(Notion::LinkSubflow, "link_subflow"), (Notion::LinkFlow, "link_flow"), (Notion::NetworkFlow, "network_flow")]
    {
        assert_near(&expect(notion, scenario_2(alpha).unwrap()).subflows, &rates(&vector["output"][key]));
    }
}

#[test]
fn fair_s3_over_alpha_and_beta() {
    let vector_a = vector("fair.s3");
    let beta = vector_a["input"]["beta"].as_f64().unwrap();
    let alphas = floats(&vector_a["input"]["alpha"]);
    for (notion, key) in [(Notion::LinkFlow, "link"), (Notion::NetworkFlow, "network")] {
        let line = line(notion, &alphas, |alpha| scenario_3(alpha, beta)).unwrap();
        for ((_, point), expected) in line.iter().zip(vector_a["output"][key].as_array().unwrap()) {
            assert_near(&point.subflows, &rates(expected));
        }
    }
    let vector_b = vector("fair.s3b");
    let alpha = vector_b["input"]["alpha"].as_f64().unwrap();
    let betas = floats(&vector_b["input"]["beta"]);
    let line = line(Notion::NetworkFlow, &betas, |beta| scenario_3(alpha, beta)).unwrap();
    for ((_, point), expected) in line.iter().zip(vector_b["output"]["network"].as_array().unwrap()) {
        assert_near(&point.subflows, &rates(expected));
    }
}

#[test]
fn netfair_1() {
    let vector = vector("netfair.1");
    let routes: Vec<_> = vector["input"]["subroutes"].as_array().unwrap().iter().map(indices).collect();
    let network = Network::new(&floats(&vector["input"]["capacity"]), &routes).unwrap();
    let found = expect(Notion::NetworkFlow, (network, indices(&vector["input"]["owner"])));
    assert_near(&found.flows, &floats(&vector["output"]["flow_totals"]));
}

/// All flows can use all paths: the paper's own definition, the sum of the paths' bandwidths by the number of flows.
#[test]
fn netfair_2() {
    let vector = vector("netfair.2");
    let bandwidths = floats(&vector["input"]["path_bw"]);
    let flows = vector["input"]["n_flows"].as_u64().unwrap() as usize;
    let names: Vec<String> = (0..bandwidths.len()).map(|path| path.to_string()).collect();
    let nodes = [
        ("s".to_owned(), names.iter().map(|name| format!("s{name}")).collect()),
        ("d".to_owned(), names.iter().map(|name| format!("d{name}")).collect::<Vec<_>>()),
    ];
    let links: Vec<_> =
        names.iter().zip(&bandwidths).map(|(name, rate)| (format!("s{name}"), format!("d{name}"), *rate)).collect();
    let topology = Topology::new(&nodes, &links).unwrap();
    let paths = topology.paths("s", "d").unwrap();
    assert_eq!(paths.len(), bandwidths.len());
    let per_flow = vector["output"]["per_flow"].as_f64().unwrap();
    assert_eq!(topology.total(&paths) / flows as f64, per_flow);
    let found = expect(Notion::NetworkFlow, topology.network(&vec![paths; flows]).unwrap());
    assert_near(&found.flows, &vec![per_flow; flows]);
}

#[test]
fn fair_allocations_lie_on_their_planes() {
    let (network, owners) = scenario_2(60.0).unwrap();
    // §V-B: B00 + B01 = B10, and for sub-flows all equal.
    assert_eq!(planes(&network, &owners, Notion::LinkFlow).unwrap()[0].normal, [1.0, 1.0, -1.0]);
    assert_eq!(planes(&network, &owners, Notion::LinkSubflow).unwrap().len(), 3);
    let (network, owners) = scenario_3(2.0, 4.0).unwrap();
    // §V-C: parallel to the axis of B00; for the network, B00 + B01 = B10.
    assert_eq!(planes(&network, &owners, Notion::LinkFlow).unwrap()[0].normal, [0.0, 1.0, -1.0]);
    assert_eq!(planes(&network, &owners, Notion::NetworkFlow).unwrap()[0].normal, [1.0, 1.0, -1.0]);
    for notion in [Notion::LinkSubflow, Notion::LinkFlow, Notion::NetworkFlow] {
        for case in [scenario_1(10.0), scenario_2(60.0), scenario_3(2.0, 4.0)] {
            let (network, owners) = case.unwrap();
            let fair = expect(notion, (network.clone(), owners.clone()));
            for plane in planes(&network, &owners, notion).unwrap() {
                assert!(plane.distance(&fair.subflows).abs() < 1e-4, "{notion:?}: {plane:?} {fair:?}");
            }
        }
    }
}

#[test]
fn what_is_no_network_is_told() {
    let nodes = [("a", vec!["x", "y"]), ("b", vec!["y"])];
    let error = Topology::new(&nodes, &[]).unwrap_err();
    assert_eq!(error.to_string(), "the locator \"y\" belongs to \"a\" and to \"b\"; a locator is of one node only");
    let nodes = [("a", vec!["x"]), ("b", vec!["y"])];
    assert!(matches!(
        Topology::new(&nodes, &[("x", "z", 1.0)]).unwrap_err(),
        TopologyError::UnknownLocator { locator } if locator == "z"
    ));
    assert!(matches!(
        Topology::new(&nodes, &[("x", "y", 1.0), ("x", "y", 2.0)]).unwrap_err(),
        TopologyError::SameLink { .. }
    ));
    let network = Network::new(&[10.0], &[vec![0], vec![0]]).unwrap();
    let error = Notion::LinkFlow.allocate(&network, &[0, 1], &[Some(11.0), None]).unwrap_err();
    assert!(matches!(error, NetworkError::Infeasible { link: 0, .. }), "{error}");
    let rest = Notion::NetworkFlow.allocate(&network, &[0, 1], &[Some(4.0), None]).unwrap();
    assert_near(&rest.flows, &[4.0, 6.0]);
}

#[test]
fn all_loop_free_paths_are_found() {
    // A square with both diagonals, every link both ways: from corner to corner 1 + 2 + 2 paths.
    let nodes: Vec<(&str, Vec<&str>)> = ["a", "b", "c", "d"].iter().map(|name| (*name, vec![*name])).collect();
    let mut links = Vec::new();
    for from in ["a", "b", "c", "d"] {
        for to in ["a", "b", "c", "d"] {
            if from != to {
                links.push((from, to, if (from, to) == ("a", "b") { 3.0 } else { 5.0 }));
            }
        }
    }
    let topology = Topology::new(&nodes, &links).unwrap();
    let paths = topology.paths("a", "d").unwrap();
    let names: Vec<String> = paths.iter().map(|path| topology.names(path).concat()).collect();
    assert_eq!(names, ["ad", "abd", "acd", "abcd", "acbd"]);
    let bandwidths: Vec<f64> = paths.iter().map(|path| topology.bandwidth(path)).collect();
    assert_eq!(bandwidths, [5.0, 3.0, 5.0, 3.0, 5.0]);
    assert_eq!(topology.path(&["a", "b", "d"]).unwrap(), paths[1]);
    assert!(topology.path(&["a", "a"]).is_err());
}

#[test]
fn goals_and_shares() {
    let goals = metrics::goals(&[6.0, 2.0], &[5.0, 4.0], &[0.01, 0.02], 0.05);
    assert!(goals.improves_throughput && !goals.does_no_harm);
    assert_eq!(goals.balances_congestion, Some(true));
    let goals = metrics::goals(&[2.0, 6.0], &[5.0, 7.0], &[0.01, 0.02], 0.05);
    assert!(goals.improves_throughput && goals.does_no_harm);
    assert_eq!(goals.balances_congestion, Some(false));
    assert!(metrics::is_tcp_fair(2.0, 10.0, 4, 0.0) && !metrics::is_tcp_fair(2.1, 10.0, 4, 0.0));
    assert!(metrics::is_tcp_compatible(4.0, 4.0, 0.05) && !metrics::is_tcp_compatible(4.3, 4.0, 0.05));
    assert!(metrics::is_tcp_equal_share(1.1, 0.2, 0.05) && !metrics::is_tcp_equal_share(1.1, 0.05, 0.05));
    let measured = Allocation::of(vec![20.0, 20.0, 20.0], &[0, 0, 1]);
    assert_eq!(Account::Subflow.jain(&measured), Some(1.0));
    assert!((Account::Flow.jain(&measured).unwrap() - 0.9).abs() < 1e-12);
    let expected = expect(Notion::LinkFlow, scenario_2(60.0).unwrap());
    let off = metrics::deviation(&measured, &expected, 60.0).unwrap();
    assert_near(&off.flows, &[10.0 / 60.0, -10.0 / 60.0]);
}

/// Links, routes, owners, weights.
fn networks() -> impl Strategy<Value = (Vec<f64>, Vec<Vec<usize>>, Vec<usize>, Vec<f64>)> {
    (1_usize..6).prop_flat_map(|links| {
        let capacities = prop::collection::vec(0.5_f64..100.0, links);
        let routes = prop::collection::vec(prop::collection::vec(0..links, 1..=links), 1..8);
        (capacities, routes).prop_flat_map(|(capacities, routes)| {
            let owners = prop::collection::vec(0_usize..4, routes.len());
            let weights = prop::collection::vec(0.05_f64..5.0, routes.len());
            (Just(capacities), Just(routes), owners, weights)
        })
    })
}

fn sorted_totals(rates: &[f64], owners: &[usize]) -> Vec<f64> {
    let totals = Allocation::of(rates.to_vec(), owners).flows;
    let mut present: Vec<f64> =
        (0..totals.len()).filter(|flow| owners.contains(flow)).map(|flow| totals[flow]).collect();
    present.sort_by(f64::total_cmp);
    present
}

proptest! {
    /// Feasible; and any other feasible allocation (here max-min fair ones of random weights) is not larger in the
    /// lexicographic order of sorted totals, which is what defines it.
    #[test]
    fn no_totals_are_larger((capacities, routes, owners, weights) in networks()) {
        let largest = capacities.iter().fold(0.0_f64, |most, capacity| most.max(*capacity));
        let network = Network::new(&capacities, &routes).unwrap();
        let rates = network.max_min_totals(&owners).unwrap();
        for (link, capacity) in capacities.iter().enumerate() {
            let load: f64 = routes.iter().zip(&rates).filter(|(route, _)| route.contains(&link)).map(|(_, rate)| rate).sum();
            prop_assert!(load <= capacity + 1e-5 * largest);
        }
        let ours = sorted_totals(&rates, &owners);
        let theirs = sorted_totals(&network.max_min(&weights).unwrap(), &owners);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            prop_assert!(*theirs <= ours + 1e-4 * largest, "{theirs} instead of {ours}");
            if *ours > theirs + 1e-4 * largest {
                break;
            }
        }
    }

    /// Where every flow has one route, progressive filling is a second implementation.
    #[test]
    fn with_one_route_each_it_is_max_min((capacities, routes, _, _) in networks()) {
        let network = Network::new(&capacities, &routes).unwrap();
        let owners: Vec<usize> = (0..routes.len()).collect();
        let largest = capacities.iter().fold(0.0_f64, |most, capacity| most.max(*capacity));
        let by_filling = network.max_min(&vec![1.0; routes.len()]).unwrap();
        let by_programs = network.max_min_totals(&owners).unwrap();
        for (ours, theirs) in by_programs.iter().zip(&by_filling) {
            prop_assert!((ours - theirs).abs() <= 1e-4 * largest, "{by_programs:?} {by_filling:?}");
        }
        for notion in Notion::ALL {
            prop_assert!(notion.allocate(&network, &owners, &vec![None; owners.len()]).is_ok());
        }
    }
}
