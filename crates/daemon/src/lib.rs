//! The Sinnet daemon: TUN, sockets, timers, names, control.

pub mod dns;
pub mod netlink;
