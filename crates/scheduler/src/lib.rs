//! Which path a packet takes.
