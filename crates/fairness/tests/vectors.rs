//! The check vectors of the algorithm notes, §10 and §11.

use fairness::metrics::friendliness;
use fairness::statistics::{Estimate, mser, student_t};
use fairness::{Network, jain};
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

fn routes(value: &Value) -> Vec<Vec<usize>> {
    value.as_array().unwrap().iter().map(indices).collect()
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1e-12), "{found} instead of {expected}");
    }
}

#[test]
fn jain_1() {
    let vector = vector("jain.1");
    let found: Vec<f64> =
        vector["input"]["x"].as_array().unwrap().iter().map(|shares| jain(&floats(shares)).unwrap()).collect();
    assert_close(&found, &floats(&vector["output"]["J"]), 1e-9);
}

#[test]
fn mhip_ff() {
    let vector = vector("mhip.ff");
    let rates = vector["input"]["T"].as_array().unwrap().iter().map(floats);
    let found: Vec<f64> = rates.map(|rates| friendliness(rates[0], rates[1]).unwrap()).collect();
    // Printed with four digits.
    assert_close(&found, &floats(&vector["output"]["FF"]), 1e-4);
    assert_eq!(friendliness(1.0, 0.0), None);
}

#[test]
fn maxmin_1() {
    let vector = vector("maxmin.1");
    let routes = routes(&vector["input"]["routes"]);
    let network = Network::new(&floats(&vector["input"]["capacity"]), &routes).unwrap();
    let rates = network.max_min(&vec![1.0; routes.len()]).unwrap();
    assert_close(&rates, &floats(&vector["output"]["rates"]), 1e-9);
}

#[test]
fn pf_1() {
    let vector = vector("pf.1");
    let routes = routes(&vector["input"]["routes"]);
    let network = Network::new(&floats(&vector["input"]["capacity"]), &routes).unwrap();
    let rates = network.proportional(&[0, 1, 2], &[1.0; 3]).unwrap();
    assert_close(&rates, &floats(&vector["output"]["rates"]), 1e-9);
}

#[test]
fn pf_2() {
    let vector = vector("pf.2");
    let routes = routes(&vector["input"]["subroutes"]);
    let owners = indices(&vector["input"]["owner"]);
    let network = Network::new(&floats(&vector["input"]["capacity"]), &routes).unwrap();
    let rates = network.proportional(&owners, &[1.0; 2]).unwrap();
    let mut totals = [0.0; 2];
    for (owner, rate) in owners.iter().zip(rates) {
        totals[*owner] += rate;
    }
    assert_close(&totals, &floats(&vector["output"]["flow_totals"]), 1e-9);
}

#[test]
fn stat_t() {
    let vector = vector("stat.t");
    let p = vector["input"]["p"].as_f64().unwrap();
    let found: Vec<f64> = indices(&vector["input"]["df"]).into_iter().map(|df| student_t(p, df)).collect();
    // The vector gives six decimals.
    assert_close(&found, &floats(&vector["output"]["t"]), 5e-7);
}

#[test]
fn stat_ci() {
    let vector = vector("stat.ci");
    let estimate = Estimate::of(&floats(&vector["input"]["x"])).unwrap();
    let output = &vector["output"];
    let expected: Vec<f64> = ["mean", "sd", "half_width"].iter().map(|key| output[key].as_f64().unwrap()).collect();
    // The vector's t has six decimals.
    assert_close(&[estimate.mean, estimate.sd.unwrap(), estimate.half_width.unwrap()], &expected, 5e-7);
}

#[test]
fn stat_mser5() {
    let vector = vector("stat.mser5");
    let series: Vec<f64> =
        (0..200).map(|k| 10.0 * (-f64::from(k) / 8.0).exp() + if k % 2 == 1 { 0.3 } else { -0.3 }).collect();
    assert_eq!(mser(&series, 5) as u64, vector["output"]["truncate"].as_u64().unwrap());
}
