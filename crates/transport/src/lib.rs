//! Transport endpoints of the laboratory, without I/O: packets and time go in, packets and deadlines come out.
//!
//! A connection is a [`TcpSender`] and a [`TcpReceiver`] on two hosts; [`Sender`] and [`Receiver`] are those of any
//! protocol. Packets are [`Packet`]s, small plain values that
//! count positions in packets, as simulators do; selective acknowledgments lie beside them in a [`BlockPool`].

mod config;
mod endpoint;
mod histogram;
pub mod mhip;
pub mod mptcp;
mod packet;
mod receiver;
pub mod sctp;
mod selective;
mod sender;
mod subflow;
mod timer;
mod udp;

pub use config::{Details, Recovery, TcpConfig, UndoBy};
pub use endpoint::{FlowConfig, Receiver, Sender};
pub use histogram::Histogram;
pub use packet::{BlockPool, Blocks, Flags, NO_BLOCKS, Packet, expand};
pub use receiver::{ReceiverStatistics, TcpReceiver};
pub use sender::{SenderCounters, TcpSender, TimerKind};
pub use timer::TimerConfig;
pub use udp::{Pauses, UdpConfig, UdpSink, UdpSource};
