//! Transport endpoints of the laboratory: TCP, UDP.
