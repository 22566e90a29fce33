//! Queue disciplines: what waits, what goes next, what is dropped or marked.
//!
//! [`codel::CoDel`] is the algorithm alone, without packets: the queue of a link and the send buffer of a host both hold one.

pub mod codel;
