//! What a running daemon cannot do any more, because it never needs to: touch files that are not its own (Landlock) and make
//! other system calls than those that its loop is made of (seccomp). Both are for the day on which somebody makes it run code of
//! his. `landlock` and `seccompiler` are kept by the authors of Landlock and of Firecracker, and need no `unsafe` of ours.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// The files that the daemon touches while it runs. What it has open stays open.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Directories out of which it may remove files: that of the control socket.
    pub remove: Vec<PathBuf>,
    /// Files, or directories of files, that it may read: the configuration.
    pub read: Vec<PathBuf>,
    /// TCP ports to which it may connect: those of name servers.
    pub connect: Vec<u16>,
}

/// The last interface of Landlock whose rights we know; older kernels know less.
const LANDLOCK: ABI = ABI::V6;

/// Keeps this thread from all files but `files`, from TCP connections of its own but those, and from other processes. False where the
/// kernel cannot.
///
/// # Errors
/// What the kernel says.
pub fn files(files: &Files) -> io::Result<bool> {
    let failed = |error: landlock::RulesetError| io::Error::other(error);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .map_err(failed)?;
    for directory in &files.remove {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory.as_path() };
        let directory = PathFd::new(directory).map_err(io::Error::other)?;
        rules = rules.add_rule(PathBeneath::new(directory, AccessFs::RemoveFile)).map_err(failed)?;
    }
    for path in &files.read {
        // One that is gone meanwhile cannot be read again, which is told when it is tried.
        let Ok(path) = PathFd::new(path) else { continue };
        rules = rules.add_rule(PathBeneath::new(path, AccessFs::ReadFile)).map_err(failed)?;
    }
    for port in &files.connect {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(failed)?;
    }
    let status = rules.restrict_self().map_err(failed)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Leaves this thread the system calls of the loop; another one fails with EPERM, which is an error like any other. Returns how
/// many are left.
///
/// # Errors
/// Where the kernel has no seccomp, or the processor is one for which no filter can be made.
pub fn system_calls() -> io::Result<usize> {
    let (count, program) = filter()?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)?;
    Ok(count)
}

fn filter() -> io::Result<(usize, BpfProgram)> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    // Sockets towards the network and the kernel's routes, nothing else.
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].into_iter().map(|family| {
        let value = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
    });
    let families = families.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    let rules = allowed().into_iter().map(|call| (call, Vec::new())).chain([(libc::SYS_socket, families)]);
    let rules: std::collections::BTreeMap<_, _> = rules.collect();
    let count = rules.len();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch).map_err(io::Error::other)?;
    Ok((count, filter.try_into().map_err(io::Error::other)?))
}

/// What the loop is made of.
fn allowed() -> Vec<i64> {
    let waiting = [libc::SYS_ppoll, libc::SYS_restart_syscall, libc::SYS_clock_gettime, libc::SYS_clock_nanosleep];
    let sockets = [
        libc::SYS_accept4,
        libc::SYS_bind,
        libc::SYS_connect,
        libc::SYS_getpeername,
        libc::SYS_getsockname,
        libc::SYS_getsockopt,
        libc::SYS_recvfrom,
        libc::SYS_recvmmsg,
        libc::SYS_recvmsg,
        libc::SYS_sendmmsg,
        libc::SYS_sendmsg,
        libc::SYS_sendto,
        libc::SYS_setsockopt,
        libc::SYS_shutdown,
    ];
    // Landlock says which files.
    let files = [
        libc::SYS_close,
        libc::SYS_dup,
        libc::SYS_fcntl,
        libc::SYS_fdatasync,
        libc::SYS_fstat,
        libc::SYS_fsync,
        libc::SYS_ftruncate,
        libc::SYS_ioctl,
        libc::SYS_lseek,
        libc::SYS_newfstatat,
        libc::SYS_openat,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_renameat2,
        libc::SYS_statx,
        libc::SYS_unlinkat,
        libc::SYS_write,
        libc::SYS_writev,
    ];
    let memory = [
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_madvise,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
    ];
    let process = [
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_getegid,
        libc::SYS_geteuid,
        libc::SYS_getgid,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_getuid,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        libc::SYS_sigaltstack,
        // abort(3), and std::thread::sleep has none of its own.
        libc::SYS_tgkill,
    ];
    let mut all = [&waiting[..], &sockets, &files, &memory, &process].concat();
    // What newer processors have no number for.
    #[cfg(target_arch = "x86_64")]
    all.extend([libc::SYS_lstat, libc::SYS_open, libc::SYS_poll, libc::SYS_rename, libc::SYS_stat, libc::SYS_unlink]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_program_or_takes_a_privilege_is_not_among_them() {
        let never = [
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_setuid,
            libc::SYS_setresuid,
            libc::SYS_mount,
            libc::SYS_bpf,
            libc::SYS_init_module,
            libc::SYS_io_uring_setup,
            libc::SYS_fchmod,
            libc::SYS_fchown,
            libc::SYS_kill,
            libc::SYS_prctl,
        ];
        assert!(allowed().iter().all(|call| !never.contains(call)));
        assert!(filter().is_ok(), "this processor is one of those");
    }
}
