//! Links in real time between real kernels.
//!
//! Each host of a laboratory is a network namespace with a TUN device ([`Port`]) per access link. A packet that a host
//! sends is read from its TUN device, travels over the [`link::Link`]s of its route, and is written to the TUN device at the
//! other end when it is due. Routers exist only in here: a [`Network`] is a list of links and a table from outer
//! addresses to links.
//!
//! [`Network`] knows nothing of real time: it is given instants, and every hop happens at the instant at which the link says it
//! happens, however late the caller comes. [`Emulator`] is the thread around it, and the only place that reads the clock.
//!
//! ```
//! use clock::{Duration, Instant, Rng};
//! use emulator::Network;
//! use link::LinkConfig;
//! use std::net::IpAddr;
//!
//! let (a, b): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
//! let mut network = Network::new();
//! let config = LinkConfig { rate: Some(8_000_000), delay: Duration::from_millis(5), ..LinkConfig::default() };
//! let link = network.add_link(config, Rng::from_seed(1));
//! network.add_route(a, b, vec![link], 4);
//! network.handle_packet(Instant::ZERO, wire::udp::packet((a, 1), (b, 2), &[0; 972]).unwrap());
//! // 1000 bytes at 8 Mbit/s take 1 ms.
//! let arrival = Instant::ZERO + Duration::from_millis(1 + 5);
//! assert_eq!(network.next_arrival(), Some(arrival));
//! let delivery = network.poll(arrival).unwrap();
//! assert_eq!((delivery.at, delivery.port), (arrival, 4));
//! ```

mod capture;
mod network;
mod outer;
mod port;
mod realtime;
mod recorder;

pub use capture::Capture;
pub use network::{Counts, Delivery, LinkId, Network, RouteId};
pub use port::Port;
pub use realtime::{Emulator, Summary};
pub use recorder::Recording;
