//! The key log: the ESP security associations in the format that Wireshark loads (`esp_sa`). Off unless asked for, because
//! whoever has the file reads the traffic.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// An open key log.
#[derive(Debug)]
pub struct KeyLog {
    file: File,
}

impl KeyLog {
    /// Opens `path` to append to it; only its owner can read it, also if it was there before.
    ///
    /// # Errors
    /// Where the file cannot be created or is not ours.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(Self { file })
    }

    /// Appends a line, whole.
    ///
    /// # Errors
    /// Where the disk is full.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        // One write, so that two daemons can share a file.
        self.file.write_all(format!("{}\n", line.trim_end()).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_reads_it_and_lines_add_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("esp_sa");
        std::fs::write(&path, "").expect("a file");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("permissions");
        KeyLog::open(&path).expect("opens").append("one\n").expect("appends");
        KeyLog::open(&path).expect("opens").append("two").expect("appends");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }
}
