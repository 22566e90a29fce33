//! What a laboratory measured.

use std::path::PathBuf;

use serde::Serialize;

/// The result of one scenario. Rates are goodput: bytes of the file, over the time from its first byte to its last, in Mbit/s; those of single
/// paths and of all together are measured the same way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub name: String,
    /// Each path alone, through Sinnet.
    pub single_mbps: Vec<f64>,
    /// The sum of these.
    pub sum_mbps: f64,
    /// All paths together.
    pub together_mbps: f64,
    /// `together_mbps` over `sum_mbps`.
    pub ratio: f64,
    /// Whether every file arrived as it was.
    pub sha256_equal: bool,
    /// Whether links changed while all paths were used together, so that `ratio` compares with links that were there all the time.
    pub disturbed: bool,
    /// How late the emulator was at worst for 99 of 100 packets, in microseconds.
    pub emulator_late_p99_us: u64,
    /// Where captures, key log and daemons' logs are; absent when they were not kept.
    pub directory: Option<PathBuf>,
    /// One capture per path.
    pub captures: Vec<PathBuf>,
    /// The keys of the ESP packets in the captures.
    pub esp_keylog: Option<PathBuf>,
}
