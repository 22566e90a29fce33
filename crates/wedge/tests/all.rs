//! All integration tests in one program, so that they are linked once and wait side by side.

mod any_input;
mod common;
mod ecn;
mod fair;
mod feedback;
mod forged;
mod guests;
mod hostile_peer;
mod identities;
mod labels;
mod mobility;
mod model;
mod native_esp;
mod path_mtu;
mod paths;
mod policies;
mod schedulers;
mod snoop;
mod strangers;
mod stream;
mod two_hosts;
