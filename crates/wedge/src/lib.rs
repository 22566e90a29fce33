//! The data plane between application packets and ESP packets on paths.
mod heartbeat;
mod pacing;
