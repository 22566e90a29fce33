//! Transport endpoints of the laboratory, without I/O: packets and time go in, packets and deadlines come out.
//!
//! A connection is a [`TcpSender`] and a [`TcpReceiver`] on two hosts. Packets are [`Packet`]s, small plain values that
//! count positions in packets, as simulators do; selective acknowledgments lie beside them in a [`BlockPool`].

mod config;
mod histogram;
mod packet;
mod receiver;
mod selective;
mod sender;
mod timer;

pub use config::{Details, Recovery, TcpConfig, UndoBy};
pub use histogram::Histogram;
pub use packet::{BlockPool, Blocks, Flags, NO_BLOCKS, Packet, expand};
pub use receiver::{ReceiverStatistics, TcpReceiver};
pub use sender::{SenderStatistics, TcpSender, TimerKind};
pub use timer::TimerConfig;
