//! Least privilege. The daemon starts with the privileges to create a TUN device and to bind a device, a raw socket and port
//! 53. All that happens before the first packet; then it becomes a user of its own, gives up every capability, also the right
//! to ever regain one, and lets [`crate::confinement`] take what is left: files and system calls that it does not need.

use std::io;

use caps::{CapSet, Capability};
use nix::unistd::{Group, User};
use rustix::process::{DumpableBehavior, Gid, Resource, Rlimit, Uid};
use serde::{Deserialize, Serialize};

use crate::confinement;

/// Who the daemon becomes where the configuration names nobody and this user exists.
pub const USUAL_USER: &str = "sinnet";

/// The capabilities that a running daemon keeps.
pub const KEPT: [Capability; 0] = [];

/// The user and group as whom the daemon runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Their name, for people.
    pub name: String,
    /// User number.
    pub user: u32,
    /// Group number.
    pub group: u32,
}

/// What was given up, for the log and the status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// The user as whom the daemon runs.
    pub user: String,
    /// The capabilities that it keeps.
    pub capabilities: Vec<String>,
    /// How many system calls it may make; all where absent.
    pub system_calls: Option<usize>,
    /// Whether the kernel keeps it from all files but its own (Landlock).
    pub files: bool,
}

impl std::fmt::Display for Confined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "user {}, ", self.user)?;
        match self.capabilities.as_slice() {
            [] => write!(f, "no capabilities, ")?,
            kept => write!(f, "{}, ", kept.join(" "))?,
        }
        match self.system_calls {
            Some(count) => write!(f, "{count} system calls, ")?,
            None => write!(f, "all system calls, ")?,
        }
        f.write_str(if self.files { "no files but its own" } else { "the user's files" })
    }
}

/// Keeps the memory of this process, which will hold keys, out of core dumps and away from debuggers of the same user.
///
/// # Errors
/// What the kernel says.
pub fn hide_memory() -> io::Result<()> {
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Who the daemon is to run as: the `configured` user, or, started by root without any, the usual one if there is.
///
/// # Errors
/// A sentence that says what to do, where the user does not exist or cannot be become.
pub fn identity(configured: Option<&str>) -> Result<Identity, String> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let own = || {
        let name = User::from_uid(user.as_raw().into()).ok().flatten().map(|user| user.name);
        let name = name.unwrap_or_else(|| user.as_raw().to_string());
        Identity { name, user: user.as_raw(), group: group.as_raw() }
    };
    let found = match User::from_name(configured.unwrap_or(USUAL_USER)) {
        Ok(found) => found,
        Err(error) => return Err(format!("looking for the user {}: {error}", configured.unwrap_or(USUAL_USER))),
    };
    let found = found.map(|found| Identity { name: found.name, user: found.uid.as_raw(), group: found.gid.as_raw() });
    match (found, configured) {
        (Some(found), Some(_)) if found.user == user.as_raw() => Ok(own()),
        (Some(found), Some(name)) if !user.is_root() => {
            Err(format!("only root can become {name} (user {}): try sudo, or leave `user` out", found.user))
        }
        (Some(found), Some(name)) if !is_mapped(&found) => {
            Err(format!("this user namespace has no user {name}: leave `user` out"))
        }
        (None, Some(name)) => Err(format!(
            "there is no user {name}: `sudo useradd --system --no-create-home --shell /usr/sbin/nologin {name}` makes it"
        )),
        (Some(found), Some(_)) => Ok(found),
        (Some(found), None) if user.is_root() && is_mapped(&found) => Ok(found),
        (_, None) => Ok(own()),
    }
}

/// The number of a group.
///
/// # Errors
/// A sentence that says what to do.
pub fn group(name: &str) -> Result<u32, String> {
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err(format!("there is no group {name}: `sudo groupadd --system {name}` makes it")),
        Err(error) => Err(format!("looking for the group {name}: {error}")),
    }
}

/// Whether both exist in this user namespace (user_namespaces(7)).
fn is_mapped(identity: &Identity) -> bool {
    let has = |file: &str, number: u32| {
        let map = std::fs::read_to_string(file).unwrap_or_default();
        map.lines().any(|line| {
            let mut words = line.split_whitespace().map(str::parse::<u32>);
            match (words.next(), words.next(), words.next()) {
                (Some(Ok(first)), Some(_), Some(Ok(count))) => number.checked_sub(first).is_some_and(|at| at < count),
                _ => false,
            }
        })
    };
    has("/proc/self/uid_map", identity.user) && has("/proc/self/gid_map", identity.group)
}

/// Becomes `identity` and gives up all capabilities of this thread but [`KEPT`], for good; then files and system calls. The
/// daemon has one thread.
///
/// # Errors
/// Where the kernel does not allow even that. That it cannot confine files or system calls is no error, but is told.
pub fn confine(identity: &Identity, files: &confinement::Files) -> io::Result<Confined> {
    // Emptying the bounding set needs CAP_SETPCAP, which a user who holds only CAP_NET_ADMIN lacks; no_new_privs closes
    // the same door.
    let _ = caps::clear(None, CapSet::Bounding);
    rustix::thread::set_no_new_privs(true)?;
    become_user(identity)?;
    // Kernels without ambient capabilities have none to give up.
    let _ = caps::clear(None, CapSet::Ambient);
    caps::clear(None, CapSet::Inheritable).map_err(io::Error::other)?;
    for capability in caps::all() {
        for set in [CapSet::Effective, CapSet::Permitted] {
            let change = match KEPT.contains(&capability)
                && caps::has_cap(None, CapSet::Permitted, capability).is_ok_and(|has| has)
            {
                true => caps::raise(None, set, capability),
                false => caps::drop(None, set, capability),
            };
            change.map_err(io::Error::other)?;
        }
    }
    let kept = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let mut capabilities: Vec<String> = kept.iter().map(ToString::to_string).collect();
    capabilities.sort();
    // Changing users and programs may have changed it back (prctl(2), PR_SET_DUMPABLE).
    hide_memory()?;
    let files = confinement::files(files).unwrap_or_else(|error| {
        tracing::warn!("files are not confined: {error}");
        false
    });
    let system_calls = confinement::system_calls().map_err(|error| {
        tracing::warn!("system calls are not confined: {error}");
    });
    Ok(Confined { user: identity.name.clone(), capabilities, system_calls: system_calls.ok(), files })
}

fn become_user(identity: &Identity) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
    if user == rustix::process::geteuid() {
        return Ok(());
    }
    // Who stops being root loses his capabilities unless he says so; what is not kept is dropped right after.
    rustix::thread::set_keep_capabilities(true)?;
    rustix::thread::set_thread_groups(&[group])?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)?;
    rustix::thread::set_keep_capabilities(false)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confinement::Files;
    use std::io::Read as _;

    fn nobody() -> Identity {
        Identity { name: "nobody".to_owned(), user: 65534, group: 65534 }
    }

    #[test]
    fn nothing_is_left_and_the_kernel_agrees() {
        let files = Files::default();
        let own = identity(None).expect("who I am");
        let thread = std::thread::spawn(move || {
            // Open before, because opening is among what is given up.
            let mut status = std::fs::File::open("/proc/thread-self/status").expect("proc");
            let confined = confine(&own, &files).expect("giving up is always allowed");
            let mut text = String::new();
            status.read_to_string(&mut text).expect("proc");
            if KEPT.is_empty() {
                for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
                    assert!(text.contains(&format!("{set}:\t0000000000000000")), "{text}");
                }
            }
            assert!(text.contains("NoNewPrivs:\t1"), "{text}");
            let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            if confined.files {
                assert!(std::fs::read("/etc/passwd").is_err_and(denied));
                assert!(std::fs::read_dir("/").is_err_and(denied));
                assert!(std::fs::write("/tmp/sinnet", "").is_err_and(denied));
            }
            if confined.system_calls.is_some() {
                assert!(text.contains("Seccomp:\t2"), "{text}");
                assert!(std::process::Command::new("/bin/true").status().is_err_and(denied));
                assert!(std::os::unix::net::UnixDatagram::unbound().is_err_and(denied));
            }
            confined
        });
        let confined = thread.join().expect("the thread ends");
        assert!(confined.system_calls.is_some(), "every kernel that this is tested on has seccomp");
    }

    #[test]
    fn root_becomes_somebody_else_and_has_no_way_back() {
        if !rustix::process::geteuid().is_root() || !is_mapped(&nobody()) {
            return;
        }
        // All of this belongs to a thread; the others keep theirs.
        let thread = std::thread::spawn(|| {
            confine(&nobody(), &Files::default()).expect("root may");
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            assert_eq!((user.as_raw(), group.as_raw()), (65534, 65534));
            assert!(rustix::thread::set_thread_uid(Uid::ROOT).is_err());
            assert!(std::fs::read("/etc/shadow").is_err());
            assert!(caps::raise(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).is_err());
        });
        thread.join().expect("the thread ends");
    }

    #[test]
    fn who_is_not_there_is_told_with_a_remedy() {
        let error = identity(Some("no-such-user")).expect_err("is not there");
        assert!(error.contains("useradd --system"), "{error}");
        let error = group("no-such-group").expect_err("is not there");
        assert!(error.contains("groupadd --system"), "{error}");
        assert_eq!(group("root"), Ok(0));
    }
}
