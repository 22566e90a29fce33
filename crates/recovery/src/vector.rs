//! The check vectors of the algorithms, computed by an independent program, for tests.

use serde_json::Value;

/// Input and output of the vector `id`.
pub(crate) fn vector(id: &str) -> (Value, Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/algorithms/vectors.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let vector = all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id).unwrap();
    (vector["input"].clone(), vector["output"].clone())
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}
