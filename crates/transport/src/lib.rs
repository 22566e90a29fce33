//! Transport endpoints of the laboratory, without I/O: packets and time go in, packets and deadlines come out.
//!
//! A connection is a [`TcpSender`] and a [`TcpReceiver`] on two hosts; [`Sender`] and [`Receiver`] are those of any
//! protocol. Packets are [`Packet`]s, small plain values that
//! count positions in packets, as simulators do; selective acknowledgments lie beside them in a [`BlockPool`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use clock::{Duration, Instant, Rng};
//! use transport::{BlockPool, TcpConfig, TcpReceiver, TcpSender};
//!
//! let config = Arc::new(TcpConfig { data: Some(200_000), ..TcpConfig::default() });
//! let mut sender = TcpSender::new(Arc::clone(&config), Rng::from_seed(1));
//! let (mut receiver, mut pool) = (TcpReceiver::new(&config), BlockPool::default());
//! let (mut now, mut round_trips) = (Instant::ZERO, 0);
//! sender.start(now);
//! while !sender.is_complete() {
//!     // A network that loses nothing and takes 20 ms each way.
//!     let window: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(now)).collect();
//!     now += Duration::from_millis(20);
//!     window.iter().for_each(|packet| receiver.handle_input(now, packet));
//!     let answers: Vec<_> = std::iter::from_fn(|| receiver.poll_transmit(&mut pool)).collect();
//!     now += Duration::from_millis(20);
//!     answers.iter().for_each(|answer| sender.handle_input(now, answer, pool.take(answer.blocks).as_slice()));
//!     round_trips += 1;
//! }
//! assert_eq!(receiver.delivered(), 200_000_u64.div_ceil(config.mss().into()));
//! assert!(round_trips < 12, "slow start doubles the window: {round_trips}");
//! ```

mod config;
mod echo;
mod endpoint;
pub mod mhip;
pub mod mptcp;
mod packet;
mod rates;
mod receiver;
mod resent;
pub mod sctp;
mod selective;
mod sender;
mod subflow;
mod timer;
mod udp;

pub use config::{Details, Recovery, TcpConfig, UndoBy};
pub use echo::{EchoConfig, EchoSink, EchoSource};
pub use endpoint::{FlowConfig, Receiver, Sender};
pub use packet::{BlockPool, Blocks, Flags, NO_BLOCKS, Packet, expand};
pub use receiver::{ReceiverStatistics, TcpReceiver};
pub use sender::{SenderCounters, TcpSender, TimerKind};
pub use timer::TimerConfig;
pub use udp::{Pauses, UdpConfig, UdpSink, UdpSource};
