//! Fairness notions, indices and statistics.
