//! The Sinnet daemon: TUN, sockets, timers, names, control.

pub mod config;
pub mod control;
pub mod device;
pub mod dns;
pub mod keylog;
pub mod keys;
pub mod links;
pub mod names;
pub mod netlink;
pub mod privileges;
pub mod time;
