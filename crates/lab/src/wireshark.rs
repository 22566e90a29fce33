//! A directory of settings with which Wireshark reads the captures at once: the key log where it looks for it, and decryption on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::error::Step;
use crate::report::Report;

/// Where the settings of a scenario are, within its directory.
const DIRECTORY: &str = "wireshark";

/// The key log's place: Wireshark reads its ESP keys from a file of this name beside its preferences.
pub(crate) fn keylog_file(directory: &Path) -> PathBuf {
    directory.join(DIRECTORY).join("esp_sa")
}

/// Makes the directory of settings, without the keys of an earlier run.
pub(crate) fn prepare(directory: &Path) -> Result<(), LabError> {
    let settings = directory.join(DIRECTORY);
    fs::create_dir_all(&settings).step("making a directory for Wireshark")?;
    // The daemons append.
    let _ = fs::remove_file(keylog_file(directory));
    let preferences = "esp.enable_encryption_decode: TRUE\nesp.enable_authentication_check: TRUE\n";
    fs::write(settings.join("preferences"), preferences).step("writing Wireshark's preferences")?;
    fs::write(settings.join("init.lua"), include_str!("wireshark.lua")).step("writing Wireshark's script")
}

/// How to look into the captures.
pub(crate) fn advice(report: &Report) -> String {
    let (Some(directory), [capture, ..]) = (&report.directory, report.captures.as_slice()) else {
        return String::new();
    };
    format!(
        "To look inside:  WIRESHARK_CONFIG_DIR={settings} wireshark {capture}\n\
         (tshark -r works the same way. The keys are in {settings}/esp_sa; in a Wireshark with settings of your own they belong to \
         Preferences > Protocols > ESP, as its 'ESP SAs', with 'Attempt to detect/decode encrypted ESP payloads'; 'Decode As' makes UDP port \
         10500 'udpencap' to see ESP and 'hip' to see HIP)",
        settings = directory.join(DIRECTORY).display(),
        capture = capture.display()
    )
}
