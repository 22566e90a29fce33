//! Which path a packet takes. A scheduler sees a snapshot of the paths and decides; it changes nothing.

use std::fmt;

/// The number of a path within its association; never used twice while the association lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}
