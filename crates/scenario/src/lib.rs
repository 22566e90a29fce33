//! Scenario files: one format, one parser, for virtual and for real time.
