//! The laboratory in real time: a scenario file becomes network namespaces, emulated links, real daemons and real programs.

mod error;
mod namespace;
mod privilege;

pub use error::LabError;
pub use namespace::{Namespace, Program};
pub use privilege::become_root;
