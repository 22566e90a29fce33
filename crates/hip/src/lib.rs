//! The Host Identity Protocol v2 without I/O: identities, base exchange, associations, ESP security associations.

pub mod budget;
pub mod cipher;
mod counters;
pub mod dh;
pub mod esp;
pub mod feedback;
pub mod identity;
pub mod keymat;
pub mod orchid;
pub mod puzzle;
pub mod rhash;

mod asking;
mod association;
mod closing;
mod config;
mod costs;
mod difficulty;
mod event;
mod exchange;
mod hint;
mod host;
mod locators;
mod notice;
mod opening;
mod r1;
mod rate;
mod rebinding;
mod refused;
mod rekey;
mod responder;
mod route;
mod session;
mod update;

pub use association::{AssociationView, State};
pub use config::{HostConfig, Peer};
pub use costs::Costs;
pub use event::{Control, Counters, Event, TimerKind};
pub use host::{ConnectError, Host, HostError};
pub use notice::Notice;
pub use refused::Refused;
pub use route::{Route, UDP_PORT};
pub use scheduler::PathId;
