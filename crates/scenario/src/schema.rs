//! The schema of the format: one row for each key. The parser, the engines, `sinnet help scenario`, the reference
//! documentation and the JSON schema for editors all read it.

mod check;
mod json;
mod rows;
mod show;
mod types;
mod variants;

pub(crate) use check::check;
pub use json::json_schema;
pub use show::{find, help, list, markdown};
pub use types::Type;
pub(crate) use types::{UNLIMITED, names};
pub use variants::{Variant, Variants};

/// A table of a scenario file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// The top of the file.
    Scenario,
    /// `[[link]]`
    Link,
    /// `[[link.change]]`
    Change,
    /// `jitter = { … }` of a link.
    Jitter,
    /// `loss = { … }` of a link.
    Loss,
    /// `queue = { … }` of a link.
    Queue,
    /// `[[flow]]`
    Flow,
    /// `on_off = { … }` of a flow.
    OnOff,
    /// `[[node]]`
    Node,
}

impl Table {
    /// All tables, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Scenario,
        Self::Link,
        Self::Change,
        Self::Jitter,
        Self::Loss,
        Self::Queue,
        Self::Flow,
        Self::OnOff,
        Self::Node,
    ];

    /// What it is called in messages.
    pub fn what(self) -> &'static str {
        match self {
            Self::Scenario => "a scenario",
            Self::Link => "a link",
            Self::Change => "a change",
            Self::Jitter => "a jitter",
            Self::Loss => "a loss with memory",
            Self::Queue => "a queue",
            Self::Flow => "a flow",
            Self::OnOff => "an on/off source",
            Self::Node => "a node",
        }
    }

    /// How a file writes it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Scenario => "top of the file",
            Self::Link => "[[link]]",
            Self::Change => "[[link.change]]",
            Self::Jitter => "jitter = { … } of a link",
            Self::Loss => "loss = { … } of a link",
            Self::Queue => "queue = { … } of a link",
            Self::Flow => "[[flow]]",
            Self::OnOff => "on_off = { … } of a flow",
            Self::Node => "[[node]]",
        }
    }

    /// Its keys.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> + Clone {
        keys().filter(move |key| key.table == self)
    }

    /// The key called `name`.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

/// What runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `sinnet sim`, and with it `sinnet fairness` and `sinnet papers`: packets in virtual time.
    Sim,
    /// `sinnet lab --virtual`: the shipped hosts in virtual time.
    LabVirtual,
    /// `sinnet lab`: the shipped hosts, kernels and programs in real time.
    Lab,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 3] = [Self::Sim, Self::LabVirtual, Self::Lab];

    /// The command that is this engine.
    pub fn command(self) -> &'static str {
        match self {
            Self::Sim => "sinnet sim",
            Self::LabVirtual => "sinnet lab --virtual",
            Self::Lab => "sinnet lab",
        }
    }
}

/// A key of the format.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The table in which it stands.
    pub table: Table,
    /// Its name.
    pub name: &'static str,
    /// What values it takes.
    pub value: Type,
    /// What holds where the file says nothing: a value as files write it or a few words; empty where the key must be there.
    pub default: &'static str,
    /// A value other than the default, as a file writes it.
    pub example: &'static str,
    /// What it does.
    pub says: &'static str,
    /// The variants of its table on which it acts, for each of [`Engine::ALL`].
    pub honoured: [Variants; 3],
}

impl Key {
    /// The variants on which `engine` honours it; without an engine, those on which any does.
    pub fn honoured_by(&self, engine: Option<Engine>) -> Variants {
        match engine {
            Some(engine) => self.honoured[engine as usize],
            None => self.honoured.iter().fold(Variants::NONE, |all, set| all.or(*set)),
        }
    }

    /// Whether a file must have it.
    pub fn is_required(&self) -> bool {
        self.default.is_empty()
    }

    pub(crate) const fn new(
        table: Table,
        name: &'static str,
        value: Type,
        default: &'static str,
        says: &'static str,
    ) -> Self {
        Self { table, name, value, default, example: "", says, honoured: [Variants::NONE; 3] }
    }

    pub(crate) const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Honoured by every engine, wherever the table stands.
    pub(crate) const fn everywhere(self) -> Self {
        self.sim(Variants::ALL).lab(Variants::ALL)
    }

    pub(crate) const fn sim(self, of: Variants) -> Self {
        Self { honoured: [of, self.honoured[1], self.honoured[2]], ..self }
    }

    /// Honoured by the lab in virtual and in real time.
    pub(crate) const fn lab(self, of: Variants) -> Self {
        Self { honoured: [self.honoured[0], of, of], ..self }
    }

    /// Honoured by the lab in real time, where it differs.
    pub(crate) const fn real_lab(self, of: Variants) -> Self {
        Self { honoured: [self.honoured[0], self.honoured[1], of], ..self }
    }
}

/// A row for [`Table::Flow`].
pub(crate) const fn flow(name: &'static str, value: Type, default: &'static str, says: &'static str) -> Key {
    Key::new(Table::Flow, name, value, default, says)
}

/// All keys, table by table. The rows of a protocol stand beside the code that reads them.
pub fn keys() -> impl Iterator<Item = &'static Key> + Clone {
    let of_protocols =
        [crate::tcp::KEYS, crate::sinnet::KEYS, crate::mhip::KEYS, crate::mptcp::KEYS, crate::sctp::KEYS];
    [rows::TOP, rows::FLOW].into_iter().chain(of_protocols).chain([rows::REST, crate::queue::KEYS.as_slice()]).flatten()
}
