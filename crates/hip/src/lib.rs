//! The Host Identity Protocol v2 without I/O: identities, base exchange, associations, ESP security associations.

pub mod cipher;
pub mod dh;
pub mod esp;
pub mod identity;
pub mod keymat;
pub mod orchid;
pub mod puzzle;
pub mod rhash;
