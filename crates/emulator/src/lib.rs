//! Links in real time between real kernels.
//!
//! Each host of a laboratory is a network namespace with a TUN device ([`Port`]) per access link. A packet that a host
//! sends is read from its TUN device, travels over the [`link::Link`]s of its route, and is written to the TUN device at the
//! other end when it is due. Routers exist only in here: a [`Network`] is a list of links and a table from outer
//! addresses to links.
//!
//! [`Network`] knows nothing of real time: it is given instants, and every hop happens at the instant at which the link says it
//! happens, however late the caller comes. [`Emulator`] is the thread around it, and the only place that reads the clock.

mod capture;
mod histogram;
mod network;
mod outer;
mod port;
mod realtime;
mod recorder;

pub use capture::Capture;
pub use histogram::Histogram;
pub use network::{Counts, Delivery, LinkId, Network, RouteId};
pub use port::Port;
pub use realtime::{Emulator, Summary};
pub use recorder::Recording;
