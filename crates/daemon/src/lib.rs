//! The Sinnet daemon: TUN, sockets, timers, names, control.
