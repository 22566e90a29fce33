//! The key log: the ESP security associations in the format that Wireshark loads (`esp_sa`). Off unless asked for, because
//! whoever has the file reads the traffic.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// An open key log.
#[derive(Debug)]
pub struct KeyLog {
    file: File,
}

impl KeyLog {
    /// Opens `path` to append to it. A new file is its owner's only; one that was there must be a file of ours that others
    /// cannot read, and is left as it is.
    ///
    /// # Errors
    /// Where the file cannot be created, or is not such a one; the sentence says what to do.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Not through a link that somebody else may have put there, and not waiting for the other end of a pipe.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags.cast_signed())
            .open(path)
            .map_err(|error| match rustix::io::Errno::from_io_error(&error) {
                Some(rustix::io::Errno::LOOP) => refused("it is a link: name the file itself"),
                _ => error,
            })?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(refused("it is no regular file: name a new one"));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(refused("it belongs to another user, who would read the keys: name a new one"));
        }
        if found.mode() & 0o077 != 0 {
            return Err(refused("others can read it: `chmod 600` it, or name a new one"));
        }
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

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_the_owner_reads_it_and_lines_add_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("esp_sa");
        KeyLog::open(&path).expect("opens").append("one\n").expect("appends");
        KeyLog::open(&path).expect("opens").append("two").expect("appends");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_not_a_private_file_of_ours_is_refused_and_left_as_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, mode| {
            let path = directory.path().join(name);
            std::fs::write(&path, "before").expect("a file");
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("permissions");
            path
        };
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o7777;
        let why = |path: &Path| KeyLog::open(path).expect_err("is refused").to_string();
        let open = file("open", 0o644);
        assert!(why(&open).contains("chmod 600"), "{}", why(&open));
        assert_eq!((mode(&open), std::fs::read_to_string(&open).expect("text")), (0o644, "before".to_owned()));
        let private = file("private", 0o600);
        assert!(KeyLog::open(&private).is_ok());
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&private, &link).expect("a link");
        assert!(why(&link).contains("a link"), "{}", why(&link));
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("a pipe");
        assert!(KeyLog::open(&pipe).is_err());
        // A device is left as it was, for everybody else on the machine.
        let before = mode(Path::new("/dev/null"));
        assert!(why(Path::new("/dev/null")).contains("no regular file"));
        assert_eq!(mode(Path::new("/dev/null")), before);
        if rustix::process::geteuid().is_root() && nix::unistd::chown(&private, Some(65534.into()), None).is_ok() {
            assert!(why(&private).contains("another user"), "{}", why(&private));
        }
    }
}
