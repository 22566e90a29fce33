//! The Sinnet daemon: TUN, sockets, timers, names, control.

pub mod control;
pub mod device;
pub mod dns;
pub mod keylog;
pub mod netlink;
pub mod privileges;
pub mod time;
