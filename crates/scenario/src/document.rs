//! A scenario file before it is interpreted: with what it extends, what the command line sets, and its sweep.

use std::path::Path;
use std::sync::Arc;

use text::{Diagnostic, alternatives, nearest};

use crate::{Protocol, Scenario, files};
use text::toml::{self as tree, Entry, Node, Place, Source, Table, Value};

/// How deep files may extend each other.
const DEEPEST: usize = 16;
/// Most scenarios that one sweep may expand to.
const MOST_POINTS: usize = 10_000;

/// A scenario file with everything it extends merged in.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) root: Node,
}

/// Reads a file that another names: from the name that `extends` gives, say, and the name of the file that extends, to the
/// name and the text of the base file, or a sentence that says why it cannot be read.
pub type ReadBase<'a> = dyn FnMut(&str, &str) -> Result<(String, String), String> + 'a;

/// Reads the base file `base` beside the file `extending`, for [`Document::load`].
///
/// # Errors
/// Why it cannot be read.
pub fn read_beside(base: &str, extending: &str) -> Result<(String, String), String> {
    let path = Path::new(extending).with_file_name(base);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("it cannot be read: {error}"))?;
    Ok((path.to_string_lossy().into_owned(), text))
}

/// One scenario of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// The keys that were swept and their values here, as the file writes them.
    pub values: Vec<(String, String)>,
    /// The scenario with these values.
    pub document: Document,
}

impl Document {
    /// Reads a file that extends no other.
    ///
    /// # Errors
    /// Text that is not TOML, or has `extends`.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnostic> {
        Self::load(text, name, &mut |_, _| Err("it cannot be read from here".to_owned()))
    }

    /// Reads a file and, through `read`, those it extends, and those of numbers that it names.
    ///
    /// # Errors
    /// Text that is not TOML, a file that cannot be read, files that extend each other in a circle.
    pub fn load(text: &str, name: &str, read: &mut ReadBase<'_>) -> Result<Self, Diagnostic> {
        let mut root = tree::parse(name, text)?;
        files::inline(&mut root, read)?;
        let mut layers = Vec::new();
        loop {
            let extends = match &mut root.value {
                Value::Table(table) => table.remove("extends"),
                _ => None,
            };
            let Some(Entry { node, .. }) = extends else {
                layers.push(root);
                break;
            };
            let Value::String(base) = &node.value else {
                return Err(node.place.error("`extends` names a file", Some("extends = \"base.toml\"".to_owned())));
            };
            if layers.len() >= DEEPEST {
                return Err(node.place.error("these files extend each other without end", None));
            }
            let (name, text) = read(base, &node.place.source.name)
                .map_err(|why| node.place.error(format!("cannot extend \"{base}\": {why}"), None))?;
            layers.push(root);
            root = tree::parse(&name, &text)?;
            files::inline(&mut root, read)?;
        }
        let Some(mut merged) = layers.pop() else { return Self::parse("", name) };
        while let Some(layer) = layers.pop() {
            merge(&mut merged, layer);
        }
        Ok(Self { root: merged })
    }

    /// Sets one key, as `--set key=value` does: `duration=60s`, `link.a-r1.rate=4Mbit/s`, `flow.f.congestion=cubic`,
    /// `flow.*.packet_size=1500`. Links are called by their name ("a-r1" unless the file gives one), flows by
    /// theirs, both also by their number from 1; `a-r1,r1-b` is both of these, and `*` is all. The value is TOML, or a string
    /// without quotes. A key that is swept has this one value then, and is swept no more.
    ///
    /// # Errors
    /// No `=`, a link or flow that does not exist, or a key that is swept under another name and would change again.
    pub fn set(&mut self, assignment: &str) -> Result<(), Diagnostic> {
        let source = Arc::new(Source { name: "--set".to_owned(), text: assignment.to_owned() });
        let place = |span| Place { source: Arc::clone(&source), span };
        let Some((key, value)) = assignment.split_once('=') else {
            let help = Some("--set duration=60s".to_owned());
            return Err(place(0..assignment.len()).error("an assignment is key=value", help));
        };
        let value_place = place(key.len() + 1..assignment.len());
        let parsed = tree::parse("--set", &format!("v = {value}")).ok().and_then(|node| match node.value {
            Value::Table(table) if table.entries.len() == 1 => table.entries.into_iter().next(),
            _ => None,
        });
        let value = parsed.map_or_else(|| Value::String(value.trim().to_owned()), |entry| entry.node.value);
        let mut node = relocate(Node { value, place: value_place.clone() }, &value_place);
        files::inline_at(key.trim(), &mut node, &mut read_beside)?;
        let key_place = place(0..key.len());
        self.assign(key.trim(), &key_place, &node)?;
        self.fix(key.trim(), &key_place)
    }

    /// Takes a key out of the sweep.
    fn fix(&mut self, key: &str, key_place: &Place) -> Result<(), Diagnostic> {
        let Value::Table(root) = &self.root.value else { return Ok(()) };
        let Some(sweep) = root.get("sweep") else { return Ok(()) };
        let mut axes = Vec::new();
        // What is wrong with the sweep is told by `points`.
        if flatten("", &sweep.node, &mut axes).is_err() {
            return Ok(());
        }
        let ours = self.targets(key);
        for (swept, ..) in &axes {
            let theirs = self.targets(swept);
            if swept != key && theirs.iter().any(|target| ours.contains(target)) {
                let help = format!("--set {swept}=… has one value in place of the sweep");
                return Err(key_place.error(format!("the sweep over `{swept}` would set this key again"), Some(help)));
            }
        }
        let others = axes.iter().filter(|(swept, ..)| swept != key).map(|(swept, place, values)| Entry {
            key: swept.clone(),
            key_place: (*place).clone(),
            node: Node { value: Value::Array(values.to_vec()), place: (*place).clone() },
        });
        let others = Table { entries: others.collect() };
        let Value::Table(root) = &mut self.root.value else { return Ok(()) };
        if others.entries.is_empty() {
            root.remove("sweep");
        } else if let Some(sweep) = root.get_mut("sweep") {
            sweep.node.value = Value::Table(others);
        }
        Ok(())
    }

    /// The keys that a key with lists, numbers or stars in it stands for: list, index and the rest.
    fn targets(&self, key: &str) -> Vec<(String, usize, String)> {
        let mut parts = key.splitn(3, '.');
        let (Some(list @ ("link" | "flow")), Some(which), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return vec![(String::new(), 0, key.to_owned())];
        };
        let Value::Table(root) = &self.root.value else { return Vec::new() };
        let Some(Value::Array(elements)) = root.get(list).map(|entry| &entry.node.value) else { return Vec::new() };
        let named = |index: usize, node: &Node| {
            which
                .split(',')
                .any(|which| which == "*" || which == identity(list, node, index) || which == (index + 1).to_string())
        };
        let meant = elements.iter().enumerate().filter(|(index, node)| named(*index, node));
        meant.map(|(index, _)| (list.to_owned(), index, rest.to_owned())).collect()
    }

    /// The keys that are swept, in the order of the file.
    pub fn swept(&self) -> Vec<String> {
        let Value::Table(root) = &self.root.value else { return Vec::new() };
        let mut axes = Vec::new();
        // What is wrong with the sweep is told by `points`.
        let _ = root.get("sweep").map(|sweep| flatten("", &sweep.node, &mut axes));
        axes.into_iter().map(|(key, ..)| key).collect()
    }

    /// The scenario, when nothing is swept.
    ///
    /// # Errors
    /// Whatever does not make sense in the file, and a `[sweep]`: [`Document::points`] is for these.
    pub fn scenario(&self) -> Result<Scenario, Diagnostic> {
        if let Value::Table(table) = &self.root.value
            && let Some(sweep) = table.get("sweep")
        {
            return Err(sweep.key_place.error("this file is a whole sweep, not one scenario", None));
        }
        Scenario::from_tree(&self.root)
    }

    /// Every scenario of the `[sweep]`, all combinations of its values, the last key changing fastest; the one
    /// scenario there is without a sweep.
    ///
    /// # Errors
    /// Values that are no list, keys that lead nowhere, too many combinations.
    pub fn points(&self) -> Result<Vec<Point>, Diagnostic> {
        let mut base = self.clone();
        let sweep = match &mut base.root.value {
            Value::Table(table) => table.remove("sweep"),
            _ => None,
        };
        let Some(sweep) = sweep else { return Ok(vec![Point { values: Vec::new(), document: base }]) };
        let mut axes = Vec::new();
        flatten("", &sweep.node, &mut axes)?;
        let mut points = vec![Point { values: Vec::new(), document: base }];
        for (key, key_place, values) in axes {
            if points.len().saturating_mul(values.len()) > MOST_POINTS {
                return Err(key_place.error(format!("this sweep has more than {MOST_POINTS} scenarios"), None));
            }
            let mut next = Vec::with_capacity(points.len() * values.len());
            for point in &points {
                for value in values {
                    let mut point = point.clone();
                    point.document.assign(&key, key_place, value)?;
                    point.values.push((key.clone(), crate::canonical::on_one_line(value)));
                    next.push(point);
                }
            }
            points = next;
        }
        Ok(points)
    }

    /// Makes every flow of protocol `from` one of `to`, with those of its keys that `keep` names. Returns what these flows are called
    /// in keys, as [`Document::set`] has them.
    pub fn replace_protocol(&mut self, from: Protocol, to: Protocol, keep: impl Fn(&str) -> bool) -> Vec<String> {
        let Value::Table(root) = &mut self.root.value else { return Vec::new() };
        let Some(Value::Array(flows)) = root.get_mut("flow").map(|entry| &mut entry.node.value) else {
            return Vec::new();
        };
        let mut replaced = Vec::new();
        for (index, flow) in flows.iter_mut().enumerate() {
            let name = identity("flow", flow, index);
            let Value::Table(table) = &mut flow.value else { continue };
            if table.text("protocol") != Some(from.name()) {
                continue;
            }
            table.entries.retain(|entry| keep(&entry.key));
            if let Some(protocol) = table.get_mut("protocol") {
                protocol.node.value = Value::String(to.name().to_owned());
            }
            replaced.push(name);
        }
        replaced
    }

    fn assign(&mut self, key: &str, key_place: &Place, node: &Node) -> Result<(), Diagnostic> {
        let Value::Table(root) = &mut self.root.value else { return Ok(()) };
        let parts: Vec<&str> = key.split('.').collect();
        let lists = ["link", "flow"];
        match parts.as_slice() {
            [list, which, rest @ ..] if lists.contains(list) && !rest.is_empty() => {
                let elements = match root.get_mut(list).map(|entry| &mut entry.node.value) {
                    Some(Value::Array(elements)) => elements,
                    _ => return Err(key_place.error(format!("this scenario has no {list}"), None)),
                };
                let names: Vec<String> = elements.iter().enumerate().map(|(i, node)| identity(list, node, i)).collect();
                for which in which.split(',') {
                    let mut found = false;
                    for (index, element) in elements.iter_mut().enumerate() {
                        if which == "*" || which == names[index] || which == (index + 1).to_string() {
                            put(element, rest, key_place, node)?;
                            found = true;
                        }
                    }
                    if !found {
                        let names = names.iter().map(String::as_str);
                        let help = match nearest(which, names.clone()) {
                            Some(name) => format!("did you mean {list}.{name}?"),
                            None => format!("there is {}", alternatives(names.chain(["*"]))),
                        };
                        return Err(key_place.error(format!("this scenario has no {list} \"{which}\""), Some(help)));
                    }
                }
                Ok(())
            }
            [list, ..] if lists.contains(list) => {
                let help = format!("for example {list}.*.{}", if *list == "link" { "rate" } else { "congestion" });
                Err(key_place.error(format!("which {list}, and which of its keys?"), Some(help)))
            }
            parts => put(&mut self.root, parts, key_place, node),
        }
    }
}

/// What a link or flow is called in keys.
fn identity(list: &str, node: &Node, index: usize) -> String {
    let Value::Table(table) = &node.value else { return String::new() };
    if let Some(name) = table.text("name") {
        return name.to_owned();
    }
    if list == "flow" {
        return format!("flow{}", index + 1);
    }
    let between = table.get("between").and_then(|entry| match &entry.node.value {
        Value::Array(ends) => match ends.as_slice() {
            [Node { value: Value::String(a), .. }, Node { value: Value::String(b), .. }] => Some(format!("{a}-{b}")),
            _ => None,
        },
        _ => None,
    });
    let one_way = || table.text("from").zip(table.text("to")).map(|(from, to)| format!("{from}-{to}"));
    between.or_else(one_way).unwrap_or_default()
}

fn put(node: &mut Node, path: &[&str], key_place: &Place, value: &Node) -> Result<(), Diagnostic> {
    let Value::Table(table) = &mut node.value else {
        return Err(key_place.error("this key leads into something that is no table", None));
    };
    let Some((key, rest)) = path.split_first() else { return Ok(()) };
    if rest.is_empty() {
        table.put(Entry { key: (*key).to_owned(), key_place: key_place.clone(), node: value.clone() });
        return Ok(());
    }
    if table.get(key).is_none() {
        let node = Node { value: Value::Table(Table::default()), place: key_place.clone() };
        table.put(Entry { key: (*key).to_owned(), key_place: key_place.clone(), node });
    }
    table.get_mut(key).map_or(Ok(()), |entry| put(&mut entry.node, rest, key_place, value))
}

/// A value from the command line is at the place of the assignment, not of the text it was parsed in.
fn relocate(node: Node, place: &Place) -> Node {
    let value = match node.value {
        Value::Array(nodes) => Value::Array(nodes.into_iter().map(|node| relocate(node, place)).collect()),
        Value::Table(mut table) => {
            for entry in &mut table.entries {
                entry.key_place = place.clone();
                entry.node = relocate(entry.node.clone(), place);
            }
            Value::Table(table)
        }
        other => other,
    };
    Node { value, place: place.clone() }
}

type Axis<'a> = (String, &'a Place, &'a [Node]);

/// `"link.a-r1.rate" = [..]` and `link.a-r1.rate = [..]` are the same key.
fn flatten<'a>(prefix: &str, node: &'a Node, axes: &mut Vec<Axis<'a>>) -> Result<(), Diagnostic> {
    match &node.value {
        Value::Table(table) => {
            for entry in &table.entries {
                let key = if prefix.is_empty() { entry.key.clone() } else { format!("{prefix}.{}", entry.key) };
                match &entry.node.value {
                    Value::Array(values) if !values.is_empty() => axes.push((key, &entry.key_place, values)),
                    _ => flatten(&key, &entry.node, axes)?,
                }
            }
            Ok(())
        }
        _ => Err(node.place.error("a sweep goes over a list of values", Some("for example [1, 2, 4]".to_owned()))),
    }
}

/// Puts `over` on top of `base`: tables key by key, links and flows by their names, everything else as a whole.
fn merge(base: &mut Node, over: Node) {
    let Node { value, place } = over;
    match (&mut base.value, value) {
        (Value::Table(under), Value::Table(over)) => {
            for entry in over.entries {
                let known = under.get_mut(&entry.key);
                match known {
                    Some(known) if matches!(entry.key.as_str(), "link" | "flow") => merge_list(known, entry),
                    Some(known) => {
                        known.key_place = entry.key_place;
                        merge(&mut known.node, entry.node);
                    }
                    None => under.entries.push(entry),
                }
            }
        }
        (_, value) => base.value = value,
    }
    base.place = place;
}

fn merge_list(base: &mut Entry, over: Entry) {
    let list = over.key.clone();
    let (Value::Array(under), Value::Array(elements)) = (&mut base.node.value, over.node.value.clone()) else {
        *base = over;
        return;
    };
    let names: Vec<String> = under.iter().enumerate().map(|(index, node)| identity(&list, node, index)).collect();
    for (index, element) in elements.into_iter().enumerate() {
        let name = identity(&list, &element, index);
        match names.iter().position(|known| *known == name) {
            Some(at) => merge(&mut under[at], element),
            None => under.push(element),
        }
    }
}
