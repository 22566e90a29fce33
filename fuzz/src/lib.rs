//! What the fuzz targets share: a peer that may say anything with keys of its own, a host under its attack, and the
//! oracles for memory and time.

pub mod grammar;
pub mod hostile;
pub mod memory;
pub mod packets;
pub mod victim;
pub mod visitors;
