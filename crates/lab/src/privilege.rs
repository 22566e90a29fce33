//! The right to make network namespaces: as root, or as 'root' of a user namespace of our own.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::LabError;
use crate::plan::{Kind, Plan};

/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, as bits (capabilities(7)).
const NEEDED: u64 = 1 << 12 | 1 << 21;

/// Makes sure that this process may create namespaces: nothing to do for root; anyone else becomes root of a new user namespace
/// (user_namespaces(7)), which changes nothing outside of it. Must be called before the process has a second thread.
///
/// # Errors
/// [`LabError::Forbidden`] where unprivileged user namespaces are switched off, with the setting that allows them.
pub fn become_root() -> Result<(), LabError> {
    if effective_capabilities() & NEEDED == NEEDED {
        return open_tun();
    }
    let (user, group) = (geteuid(), getegid());
    forbidden("making a user namespace", unshare(CloneFlags::CLONE_NEWUSER))?;
    // Without the right to change groups a user may map its own group only, user_namespaces(7).
    forbidden("mapping the group", fs::write("/proc/self/setgroups", "deny"))?;
    forbidden("mapping the group", fs::write("/proc/self/gid_map", format!("0 {group} 1")))?;
    forbidden("mapping the user", fs::write("/proc/self/uid_map", format!("0 {user} 1")))?;
    forbidden("making a network namespace", unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS))?;
    open_tun()
}

fn open_tun() -> Result<(), LabError> {
    forbidden("opening /dev/net/tun", fs::File::options().read(true).write(true).open("/dev/net/tun")).map(drop)
}

/// The programs that a laboratory runs, and the Debian packages they are in.
const PROGRAMS: [(&str, &str); 4] =
    [("ip", "iproute2"), ("setpriv", "util-linux"), ("python3", "python3"), ("curl", "curl")];
/// And for echo requests.
const PING: (&str, &str) = ("ping", "iputils-ping");

/// Finds the programs that a plan needs.
///
/// # Errors
/// [`LabError::MissingProgram`] names the first that is not installed.
pub(crate) fn check_programs(plan: &Plan) -> Result<(), LabError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |program: &str| std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    let pings = plan.flows.iter().any(|flow| matches!(flow.kind, Kind::Ping { .. }));
    match PROGRAMS.iter().chain(pings.then_some(&PING)).find(|(program, _)| !found(program)) {
        Some((program, package)) => Err(LabError::MissingProgram { program, package }),
        None => Ok(()),
    }
}

fn forbidden<T, E: Into<io::Error>>(step: &'static str, result: Result<T, E>) -> Result<T, LabError> {
    result.map_err(|error| LabError::Forbidden {
        step,
        cause: error.into(),
        remedy: "Run it as root, or allow user namespaces: 'sysctl kernel.apparmor_restrict_unprivileged_userns=0' on Ubuntu, \
                 'sysctl kernel.unprivileged_userns_clone=1' on older Debian, 'chmod 666 /dev/net/tun' where that device is closed",
    })
}

fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}
