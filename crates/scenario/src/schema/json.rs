//! The schema as JSON schema, for editors.

use serde_json::{Map, Value, json};

use super::{Key, Table, Variants};
use crate::spec::Protocol;

/// The JSON schema (draft 2020-12) of a scenario file. A file that extends another need not have what the other has.
pub fn json_schema() -> Value {
    let mut tables: Map<String, Value> =
        Table::ALL.iter().map(|table| (format!("{table:?}"), object(*table))).collect();
    tables.insert("Sweep".to_owned(), sweep());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sinnet scenario",
        "$ref": "#/$defs/Scenario",
        "if": { "not": { "required": ["extends"] } },
        "then": {
            "required": required(Table::Scenario),
            "properties": {
                "flow": { "items": { "required": required(Table::Flow) } },
                "link": { "items": { "anyOf": [{ "required": ["between"] }, { "required": ["from", "to"] }] } },
            },
        },
        "$defs": tables,
    })
}

fn object(table: Table) -> Value {
    let properties: Map<String, Value> = table.keys().map(|key| (key.name.to_owned(), property(key))).collect();
    let mut object = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if let Value::Object(fields) = &mut object {
        match table {
            Table::Flow => {
                let protocols =
                    Protocol::NAMES.map(|(name, protocol)| of_protocol(name, Variants::of_protocol(protocol)));
                fields.insert("allOf".to_owned(), json!(protocols));
            }
            // Lists are not merged with those of a file that is extended.
            Table::Change | Table::Node => {
                fields.insert("required".to_owned(), json!(required(table)));
            }
            _ => {}
        }
    }
    object
}

fn property(key: &Key) -> Value {
    let mut value = key.value.json();
    if let Value::Object(fields) = &mut value {
        fields.insert("description".to_owned(), json!(key.says));
    }
    value
}

/// The keys that every table of the kind must have, whatever its variant.
fn required(table: Table) -> Vec<&'static str> {
    let whole = if table == Table::Flow { Variants::OF_SIM.or(Variants::OF_LAB) } else { Variants::ALL };
    let of_all = |key: &&Key| key.is_required() && key.honoured_by(None).has_all(whole);
    table.keys().filter(of_all).map(|key| key.name).collect()
}

/// A flow of this protocol has no keys but these.
fn of_protocol(name: &str, variants: Variants) -> Value {
    let keys = Table::Flow.keys().filter(|key| key.honoured_by(None).has_any(variants));
    let names: Vec<&str> = keys.map(|key| key.name).collect();
    json!({
        "if": { "properties": { "protocol": { "const": name } }, "required": ["protocol"] },
        "then": { "propertyNames": { "enum": names } },
    })
}

/// Lists of values, at keys that are dotted or lead through tables.
fn sweep() -> Value {
    let deeper = json!({ "$ref": "#/$defs/Sweep" });
    json!({ "type": "object", "additionalProperties": { "anyOf": [{ "type": "array", "minItems": 1 }, deeper] } })
}
