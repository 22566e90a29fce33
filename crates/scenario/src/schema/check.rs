//! Are the keys of a file known, do they stand where they belong, and does an engine honour them?

use text::{Diagnostic, alternatives, reader};

use super::{Engine, Key, Table, Variant, Variants};
use text::toml::{self as tree, Entry, Node, Value};

/// Refuses every key of `node`, a table of the kind `table` with all that is in it, that `engine` does not honour there;
/// without an engine, every key that none does.
pub(crate) fn check(node: &Node, table: Table, engine: Option<Engine>) -> Result<(), Diagnostic> {
    let Value::Table(found) = &node.value else { return Ok(()) };
    let variant = Variant::of_table(table, found);
    for entry in &found.entries {
        let names = || table.keys().map(|key| key.name);
        let key = table.key(&entry.key).ok_or_else(|| reader::unknown(entry, table.what(), names()))?;
        if let Some(variant) = variant.filter(|variant| !key.honoured_by(engine).has(*variant)) {
            return Err(refusal(entry, key, variant, engine, found));
        }
        if let Some(inner) = key.value.table() {
            match &entry.node.value {
                Value::Array(nodes) => nodes.iter().try_for_each(|node| check(node, inner, engine))?,
                _ => check(&entry.node, inner, engine)?,
            }
        }
    }
    Ok(())
}

/// The key is not for this variant, or not for this engine.
fn refusal(entry: &Entry, key: &Key, variant: Variant, engine: Option<Engine>, found: &tree::Table) -> Diagnostic {
    let name = key.name;
    let of = if variant == Variant::Plain { String::new() } else { format!(" of {}", variant.name()) };
    let others = Engine::ALL.into_iter().filter(|engine| key.honoured_by(Some(*engine)).has(variant));
    let others: Vec<String> = others.map(|engine| format!("`{}`", engine.command())).collect();
    let others = alternatives(others.iter().map(String::as_str));
    let elsewhere = || alternatives(key.honoured_by(None).names());
    let Some(engine) = engine else {
        let message = format!("`{name}` is not for {}", variant.name());
        return entry.key_place.error(message, Some(format!("it is for {}", elsewhere())));
    };
    let command = engine.command();
    if key.table == Table::Flow && (name == "protocol" || name == "inside") {
        let place = found.get("protocol").map_or(&entry.node.place, |entry| &entry.node.place);
        let help = match variant {
            Variant::Mhip1 | Variant::Mhip23 => {
                "the shipped multipath HIP is protocol = \"sinnet\"; \"mhip\" is that of the papers, for `sinnet sim`"
                    .to_owned()
            }
            _ => format!("{} has it; here there is {}", others, alternatives(key.honoured_by(Some(engine)).names())),
        };
        return place.error(format!("`{command}` has no {}", variant.name()), Some(help));
    }
    let message = format!("`{command}` does not honour `{name}`{of}");
    let here = key.honoured_by(Some(engine));
    let help = match others.is_empty() || here != Variants::NONE {
        false => format!("leave it out; {others} honours it"),
        true if others.is_empty() => format!("leave it out; it acts on {}", elsewhere()),
        true => format!("leave it out: here it acts on {}; {others} honours it", alternatives(here.names())),
    };
    entry.key_place.error(message, Some(help))
}
