//! The host's own resolver, made to ask us as long as we run, where the configuration says so.
//!
//! - systemd-resolved is told by `resolvectl` and forgets it with the device: nothing is left to be put back.
//! - `/etc/resolv.conf` is replaced whole, and what was there is kept beside it. The daemon has no right to put it back when it
//!   ends, so a process that has nothing else to do waits for that end, whatever it is, and does ([`guard`]). Should that one be
//!   killed, too, `sinnet clean` or the next start does. NetworkManager is told to leave the file alone for that time.

use std::io::{self, Read as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wire::Lsi;

use crate::config::{Config, HostResolver};

/// The arguments with which this program is called to be the [`guard`].
const GUARD: [&str; 2] = ["clean", "--after-daemon"];
/// How our file begins.
const MARK: &str = "# Sinnet's, as long as it runs; what was here before is in ";
/// NetworkManager.conf(5)
const LEAVE_IT: &str =
    "# Sinnet's, as long as it runs: /etc/resolv.conf is not to be written.\n[main]\nrc-manager=unmanaged\n";

/// The files.
#[derive(Clone, Debug)]
struct Files {
    /// The resolver's.
    conf: PathBuf,
    /// What it was before.
    kept: PathBuf,
    /// What NetworkManager reads.
    manager: PathBuf,
}

impl Files {
    fn of(etc: &Path) -> Self {
        Self {
            conf: etc.join("resolv.conf"),
            kept: etc.join("resolv.conf.before-sinnet"),
            manager: etc.join("NetworkManager/conf.d/90-sinnet.conf"),
        }
    }

    fn is_ours(&self) -> bool {
        std::fs::read_to_string(&self.conf).is_ok_and(|text| text.starts_with(MARK))
    }

    /// Puts our file in the place of what is there, which is kept.
    fn set(&self, server: Lsi) -> io::Result<()> {
        let before = std::fs::read_to_string(&self.conf).unwrap_or_default();
        if !self.is_ours() {
            self.keep()?;
        }
        let keeps =
            |line: &&str| ["search", "domain", "options"].contains(&line.split_whitespace().next().unwrap_or(""));
        let rest: String = before.lines().filter(keeps).map(|line| format!("{line}\n")).collect();
        let text = format!("{MARK}{}\nnameserver {server}\n{rest}", self.kept.display());
        self.replace(&self.conf, |new| std::fs::write(new, text))?;
        if let Some(directory) = self.manager.parent().filter(|directory| directory.is_dir()) {
            tracing::debug!(directory = %directory.display(), "NetworkManager is told to leave resolv.conf alone");
            std::fs::write(&self.manager, LEAVE_IT)?;
            reload_manager();
        }
        Ok(())
    }

    /// A copy, or another link to where a link leads. Where there is nothing an empty file says so.
    fn keep(&self) -> io::Result<()> {
        self.replace(&self.kept, |new| match std::fs::read_link(&self.conf) {
            Ok(target) => symlink(target, new),
            Err(_) if self.conf.exists() => std::fs::copy(&self.conf, new).map(|_| ()),
            Err(_) => std::fs::write(new, ""),
        })
    }

    /// Makes a file beside another and moves it there, so that nobody ever sees a part of it.
    fn replace(&self, path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let new = path.with_file_name(".resolv.conf.sinnet");
        let _ = std::fs::remove_file(&new);
        let result = make(&new).and_then(|()| std::fs::rename(&new, path));
        if result.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        result
    }

    /// Puts back what was there; false where nothing is to be put back. What somebody else has written meanwhile stays.
    fn restore(&self) -> io::Result<bool> {
        if std::fs::read_to_string(&self.manager).is_ok_and(|text| text == LEAVE_IT) {
            std::fs::remove_file(&self.manager)?;
            reload_manager();
        }
        if self.kept.symlink_metadata().is_err() {
            return Ok(false);
        }
        if self.is_ours() {
            std::fs::rename(&self.kept, &self.conf)?;
        } else {
            std::fs::remove_file(&self.kept)?;
        }
        Ok(true)
    }
}

/// It reads its configuration again, if it runs.
fn reload_manager() {
    let told = Command::new("nmcli").args(["general", "reload"]).stdin(Stdio::null()).output();
    if let Err(error) = told {
        tracing::debug!(%error, "NetworkManager is not told");
    }
}

/// As long as it lives the host asks us; then what was before is put back.
#[derive(Debug)]
pub(crate) struct Set {
    /// It waits for the end of its standard input, which nobody but us has the other end of.
    _guard: Option<Child>,
}

/// Makes the host ask us at `server`, if that is wanted. What it asks now is to be answered by us already.
///
/// # Errors
/// A sentence with a remedy.
pub(crate) fn set(config: &Config, server: Lsi) -> Result<Set, String> {
    match config.dns.resolver {
        HostResolver::Leave => Ok(Set { _guard: None }),
        HostResolver::SystemdResolved => tell_resolved(&config.device, server).map(|()| Set { _guard: None }),
        HostResolver::ResolvConf => {
            let files = Files::of(Path::new("/etc"));
            let failed = |what: &str, error: io::Error| {
                format!(
                    "{what}: {error}; this needs root, and a file of its own rather than one that a container's manager has put \
                     there; resolver = \"leave\" in [dns] leaves it alone"
                )
            };
            let guard = start_guard().map_err(|error| failed("nobody could put /etc/resolv.conf back", error))?;
            files.set(server).map_err(|error| failed("/etc/resolv.conf cannot be replaced", error))?;
            Ok(Set { _guard: Some(guard) })
        }
    }
}

/// `sinnet clean` and the guard: what was before is put back.
///
/// # Errors
/// What the system says.
pub fn restore() -> io::Result<bool> {
    Files::of(Path::new("/etc")).restore()
}

/// Waits until the daemon has gone, however, and puts the host's resolver back.
///
/// # Errors
/// What the system says.
pub fn guard() -> io::Result<()> {
    // Whoever ends the daemon and all its processes ends us by that.
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    rustix::thread::set_no_new_privs(true)?;
    // The files are root's; nothing else of root is needed.
    for set in [caps::CapSet::Ambient, caps::CapSet::Inheritable, caps::CapSet::Effective, caps::CapSet::Permitted] {
        let _ = caps::clear(None, set);
    }
    let mut bytes = [0; 64];
    loop {
        match io::stdin().read(&mut bytes) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    restore().map(|_| ())
}

fn start_guard() -> io::Result<Child> {
    // Of a process group of its own, so that a terminal's Ctrl-C is the daemon's alone.
    let mut command = Command::new("/proc/self/exe");
    command.args(GUARD).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn()
}

/// resolvectl(1): all names of all domains over the device, whose settings end with it.
fn tell_resolved(device: &str, server: Lsi) -> Result<(), String> {
    let server = server.to_string();
    for arguments in [["dns", device, &server], ["domain", device, "~."], ["default-route", device, "yes"]] {
        let output = Command::new("resolvectl").args(arguments).stdin(Stdio::null()).output();
        let why = match output {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        return Err(format!(
            "systemd-resolved cannot be told to ask us: `resolvectl {}`: {why}; is it running, and is this root? resolver = \
             \"leave\" in [dns] leaves it alone",
            arguments.join(" ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Lsi = Lsi([198, 18, 0, 1]);

    fn files() -> (tempfile::TempDir, Files) {
        let etc = tempfile::tempdir().expect("a directory");
        let files = Files::of(etc.path());
        (etc, files)
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).expect("text")
    }

    #[test]
    fn a_file_is_replaced_and_put_back_also_after_a_second_start() {
        let (etc, files) = files();
        let before = "# by hand\nnameserver 192.0.2.53\nsearch example.org\noptions edns0\n";
        std::fs::write(&files.conf, before).expect("written");
        for _ in 0..2 {
            // The second time after a crash.
            files.set(SERVER).expect("set");
            let lines = read(&files.conf);
            let lines: Vec<_> = lines.lines().skip(1).collect();
            assert_eq!(lines, ["nameserver 198.18.0.1", "search example.org", "options edns0"]);
        }
        assert!(files.restore().expect("restored"));
        assert_eq!(read(&files.conf), before);
        assert!(!files.restore().expect("nothing to do"));
        assert_eq!(std::fs::read_dir(etc.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn a_link_is_a_link_again() {
        let (etc, files) = files();
        std::fs::write(etc.path().join("stub"), "nameserver 127.0.0.53\n").expect("written");
        symlink("stub", &files.conf).expect("a link");
        files.set(SERVER).expect("set");
        assert_eq!(read(&etc.path().join("stub")), "nameserver 127.0.0.53\n", "what is linked to is another's");
        files.restore().expect("restored");
        assert_eq!(std::fs::read_link(&files.conf).expect("a link"), Path::new("stub"));
    }

    #[test]
    fn what_somebody_else_has_written_meanwhile_stays() {
        let (_etc, files) = files();
        std::fs::write(&files.conf, "nameserver 192.0.2.53\n").expect("written");
        files.set(SERVER).expect("set");
        std::fs::write(&files.conf, "nameserver 192.0.2.99\n").expect("written");
        assert!(files.restore().expect("restored"));
        assert_eq!(read(&files.conf), "nameserver 192.0.2.99\n");
        assert!(!files.kept.exists());
    }

    #[test]
    fn network_manager_is_told_for_that_time_only() {
        let (_etc, files) = files();
        std::fs::create_dir_all(files.manager.parent().expect("a directory")).expect("made");
        std::fs::write(&files.conf, "nameserver 192.0.2.53\n").expect("written");
        files.set(SERVER).expect("set");
        assert_eq!(read(&files.manager), LEAVE_IT);
        files.restore().expect("restored");
        assert!(!files.manager.exists());
    }
}
