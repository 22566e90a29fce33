//! Round-trip estimation, loss detection and resequencing.
