//! `[[node]]`: the locators (addresses) of a node, where a file gives them.

use std::collections::BTreeMap;

use text::Diagnostic;

use crate::read::Nodes;
use crate::schema::Table;
use crate::spec::{LinkSpec, NodeIndex};
use text::reader::{self, Reader};
use text::toml::Node;

/// The locators of a node: one for all of its links, or one for each in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Which node.
    pub node: NodeIndex,
    /// Its locators; no other node has any of them.
    pub locators: Vec<String>,
}

/// Reads all `[[node]]`s.
pub(crate) fn hosts(list: &[Node], nodes: &Nodes, links: &[LinkSpec]) -> Result<Vec<HostSpec>, Diagnostic> {
    let mut owners: BTreeMap<&str, NodeIndex> = BTreeMap::new();
    let mut hosts: Vec<HostSpec> = Vec::new();
    for element in list {
        let table = Reader::new(Table::Node.what(), element)?;
        let name = table.required("name", "name = \"a\"")?;
        let node = nodes.find(&name.node)?;
        if hosts.iter().any(|host| host.node == node) {
            return Err(name.node.place.error("its locators are given already", Some("one [[node]] for each".into())));
        }
        let entry = table.required("locators", "locators = [\"10.0.0.1\"]")?;
        let list = reader::list(&entry.node, "locators = [\"10.0.0.1\", \"10.0.1.1\"]")?;
        for locator in list {
            let text = reader::text(locator, "\"10.0.0.1\"")?;
            // Becke and others, ICC 2012, definition III.1: uniqueness of locators.
            if let Some(owner) = owners.insert(text, node) {
                let owner = nodes.names.get(owner).map_or("", String::as_str);
                let message = format!("the locator \"{text}\" belongs to \"{owner}\" already");
                return Err(locator.place.error(message, Some("a locator is of one node only, and there once".into())));
            }
        }
        let degree = links.iter().filter(|link| link.from == node || link.to == node).count();
        if list.len() != 1 && list.len() != degree {
            let message = format!("{} locators for {degree} links", list.len());
            let help = "one locator for all links of the node, or one for each in their order".to_owned();
            return Err(entry.node.place.error(message, Some(help)));
        }
        let locators = list.iter().map(|locator| reader::text(locator, "\"10.0.0.1\"").map(str::to_owned));
        hosts.push(HostSpec { node, locators: locators.collect::<Result<_, _>>()? });
    }
    Ok(hosts)
}
