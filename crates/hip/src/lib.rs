//! The Host Identity Protocol v2 without I/O: identities, base exchange, associations, ESP security associations.
//!
//! [`Host`] takes packets and time, and gives packets, [`Event`]s and its next deadline. Two of them associate in four packets
//! (RFC 7401 §4.1):
//!
//! ```
//! use clock::Instant;
//! use hip::identity::{Algorithm, HostIdentity};
//! use hip::{Event, Host, HostConfig, Peer, Route};
//! use rand_chacha::ChaCha20Rng;
//! use rand_core::SeedableRng;
//!
//! // In earnest the random numbers are the operating system's.
//! let mut rng = ChaCha20Rng::seed_from_u64(1);
//! let places: [std::net::SocketAddr; 2] = ["192.0.2.1:10500".parse()?, "192.0.2.2:10500".parse()?];
//! let mut hosts = Vec::new();
//! for place in places {
//!     let identity = HostIdentity::generate(Algorithm::EcdsaP256, &mut rng)?;
//!     let mut config = HostConfig::new(vec![place]);
//!     config.puzzle_difficulty = 1;
//!     hosts.push(Host::new(identity, config, &mut rng)?);
//! }
//! let hits = [hosts[0].hit(), hosts[1].hit()];
//! for side in 0..2 {
//!     hosts[side].add_peer(Instant::ZERO, Peer::new(hits[1 - side], vec![places[1 - side]]));
//! }
//!
//! hosts[0].connect(Instant::ZERO, &mut rng, hits[1])?;
//! let (mut now, mut packets) = (Instant::ZERO, 0);
//! for turn in 0..20 {
//!     let from = turn % 2;
//!     while let Some(sent) = hosts[from].poll_transmit() {
//!         packets += 1;
//!         let route = Route { local: sent.route.remote, remote: sent.route.local };
//!         hosts[1 - from].handle_packet(now, &mut rng, route, &sent.bytes);
//!     }
//!     // A puzzle is solved a little at a time.
//!     for host in &mut hosts {
//!         if let Some((at, _)) = host.poll_timeout().filter(|(at, _)| *at <= now + clock::Duration::from_millis(1)) {
//!             now = now.max(at);
//!             host.handle_timeout(now, &mut rng);
//!         }
//!     }
//! }
//! for host in &mut hosts {
//!     let events = std::iter::from_fn(|| host.poll_event()).collect::<Vec<_>>();
//!     assert!(events.iter().any(|event| matches!(event, Event::Established { .. })), "after {packets} packets");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod carrying;
mod checks;
mod closing;
mod config;
mod costs;
mod difficulty;
mod dns_key;
mod event;
mod exchange;
mod guests;
mod hint;
mod host;
mod inquiry;
mod locators;
mod moving;
mod notice;
mod opening;
mod r1;
mod rate;
mod rebinding;
mod refused;
mod registration;
mod rekey;
mod relay;
mod rendezvous;
mod responder;
mod route;
mod session;
mod update;

pub use association::{AssociationView, State};
pub use config::{HostConfig, Peer, Registrar, SpiClass};
pub use costs::Costs;
pub use event::{Control, Counters, Event, TimerKind};
pub use guests::Guests;
pub use host::{ConnectError, Host, HostError};
pub use notice::Notice;
pub use refused::Refused;
pub use route::{Route, UDP_PORT};
pub use scheduler::PathId;
