//! Virtual time: event queue, topology, measurement.
