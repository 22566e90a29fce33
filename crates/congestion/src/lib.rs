//! Congestion control: one engine, one rule per algorithm.
