//! Text files that people write: TOML in which every key and value knows where it stands, quantities with their units, and
//! errors that say where, what is wrong and what would be right. Scenario files and the daemon's configuration are read by it.
//!
//! ```
//! let file = text::toml::parse("link.toml", "rate = \"8Mbit\"").unwrap();
//! let link = text::Reader::new("a link", &file).unwrap();
//! let error = link.need("rate", "rate = \"1Gbit/s\"", text::reader::rate).unwrap_err();
//! assert_eq!((error.line(), error.column()), (1, 8));
//! assert!(error.to_string().contains("Mbit/s"), "{error}");
//! ```

mod diagnostic;
pub mod reader;
pub mod toml;
pub mod units;

pub use diagnostic::{Diagnostic, alternatives, did_you_mean, nearest};
pub use reader::Reader;
