//! The Host Identity Protocol v2 without I/O: identities, base exchange, associations, ESP security associations.
