//! A document as TOML again: what it extends, what the command line set and the point of a sweep worked in.

use crate::Document;
use text::toml::{Node, Value};

impl Document {
    /// The document as TOML that reads as the same scenario, whatever files and options it came from: without comments,
    /// with the keys in alphabetical order, so that equal documents give equal text.
    pub fn to_toml(&self) -> String {
        match plain(&self.root) {
            toml::Value::Table(table) => table.to_string(),
            other => other.to_string(),
        }
    }
}

/// A value of a sweep: tables and lists on one line, so that two that differ are called differently.
pub(crate) fn on_one_line(node: &Node) -> String {
    match &node.value {
        Value::Table(_) | Value::Array(_) => plain(node).to_string(),
        _ => text::reader::shown(node),
    }
}

fn plain(node: &Node) -> toml::Value {
    match &node.value {
        Value::String(text) => text.clone().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(value) => (*value).into(),
        // No key of a scenario takes a date, so that this text is refused as the date was.
        Value::Date => "a date".into(),
        Value::Array(nodes) => nodes.iter().map(plain).collect::<Vec<_>>().into(),
        Value::Table(table) => {
            let entries = table.entries.iter().map(|entry| (entry.key.clone(), plain(&entry.node)));
            toml::Value::Table(entries.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Document;

    const TEXT: &str = "
        name = \"x\" # a comment
        duration = \"20s\"
        [[link]]
        between = [\"a\", \"b\"]
        rate = \"8Mbit/s\"
        loss = { to_bad = 0.01, to_good = 0.1, loss_bad = 1.0, loss_good = 0 }
        [[flow]]
        from = \"a\"
        to = \"b\"
        protocol = \"tcp\"
        count = 3
    ";

    #[test]
    fn it_reads_as_the_same_scenario() {
        let mut document = Document::parse(TEXT, "a.toml").unwrap();
        document.set("flow.*.congestion=cubic").unwrap();
        let text = document.to_toml();
        let again = Document::parse(&text, "b.toml").unwrap();
        let (one, other) = (document.scenario().unwrap(), again.scenario().unwrap());
        assert_eq!((&one.links, &one.flows, one.duration), (&other.links, &other.flows, other.duration));
        assert_eq!(again.to_toml(), text, "a fixed point");
        assert!(!text.contains("comment"));
    }
}
