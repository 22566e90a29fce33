//! A host of the laboratory: an anonymous network and mount namespace, held by a thread.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::LabError;
use crate::error::Step;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace and a mount namespace without names. They last as long as the thread in here and the programs it started;
/// those programs are killed by the kernel when the thread ends, however it ends.
pub struct Namespace {
    name: String,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    /// A new host with its loopback device up and nothing else.
    ///
    /// # Errors
    /// When the process may not make namespaces ([`crate::become_root`] comes first) or the program `ip` fails.
    pub fn create(name: &str) -> Result<Self, LabError> {
        let (jobs, queue) = channel::<Job>();
        let (ready, created) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("host {name}"))
            .spawn(move || {
                let result = isolate();
                let failed = result.is_err();
                // The creator waits for this and for nothing else, so it is there.
                let _ = ready.send(result);
                if !failed {
                    for job in queue {
                        job();
                    }
                }
            })
            .step("starting a thread")?;
        created
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("the thread of the host ended")))
            .step(format!("making the namespaces of host {name}"))?;
        let namespace = Self { name: name.to_owned(), jobs: Some(jobs), thread: Some(thread) };
        namespace.ip(&["link set lo up".to_owned()])?;
        Ok(namespace)
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does something inside the namespaces: sockets, devices and programs made by `job` belong to this host.
    ///
    /// # Errors
    /// When `job` panicked earlier or now.
    pub fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> Result<R, LabError> {
        let (give, take) = channel();
        let lost = || io::Error::other("the thread of the host has ended");
        let job: Job = Box::new(move || {
            let _ = give.send(job());
        });
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job));
        let result = match sent {
            Some(Ok(())) => take.recv().map_err(|_| lost()),
            _ => Err(lost()),
        };
        result.step(format!("working on host {}", self.name))
    }

    /// Starts a program on this host. It is killed when the result or this host is dropped, or when our process ends.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn(&self, program: &Program) -> Result<Running, LabError> {
        let mut command = program.command();
        let child =
            self.run(move || command.spawn())?.step(format!("starting {} on host {}", program.name(), self.name))?;
        Ok(Running { child: Some(child) })
    }

    /// Runs a program on this host to its end.
    ///
    /// # Errors
    /// When it cannot be started or ends with an error, with what it wrote to standard error.
    pub fn output(&self, program: &Program) -> Result<String, LabError> {
        let output = self.spawn(program)?.output().step(format!("waiting for {}", program.name()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = format!("{} ({})", String::from_utf8_lossy(&output.stderr).trim(), output.status);
        Err(LabError::Program { program: format!("{} on host {}", program.name(), self.name), message })
    }

    /// Gives lines to the program `ip` (its batch mode).
    ///
    /// # Errors
    /// As [`Namespace::output`].
    pub fn ip(&self, lines: &[String]) -> Result<(), LabError> {
        for line in lines {
            self.output(&Program::new("ip").args(line.split_whitespace()))?;
        }
        Ok(())
    }

    /// From now on the programs of this host ask `resolver` for names, and nobody else.
    ///
    /// # Errors
    /// When the files cannot be written, or `/etc/resolv.conf` does not exist.
    pub fn resolve_names_at(&self, resolver: std::net::IpAddr, directory: &Path) -> Result<(), LabError> {
        let resolv = directory.join(format!("{}.resolv.conf", self.name));
        let switch = directory.join(format!("{}.nsswitch.conf", self.name));
        fs::write(&resolv, format!("nameserver {resolver}\noptions timeout:1 attempts:5\n"))
            .step("writing resolv.conf")?;
        // A local resolver reached by a socket file (systemd's, nscd) would answer for the machine and not for this host.
        fs::write(&switch, "passwd: files\ngroup: files\nhosts: files dns\n").step("writing nsswitch.conf")?;
        self.run(move || {
            bind(&resolv, Path::new("/etc/resolv.conf"))?;
            if Path::new("/etc/nsswitch.conf").exists() {
                bind(&switch, Path::new("/etc/nsswitch.conf"))?;
            }
            if Path::new("/run/nscd").exists() {
                mount(Some("tmpfs"), "/run/nscd", Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
            }
            Ok::<(), nix::Error>(())
        })?
        .step(format!("giving host {} its own /etc/resolv.conf", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The thread ends with its queue, and the programs that it started are killed with it.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A program that runs. It is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    /// Absent once it has been waited for.
    child: Option<Child>,
}

impl Running {
    /// The number of its process; none once it has been waited for.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        self.child.as_mut().map_or(Ok(true), |child| Ok(child.try_wait()?.is_some()))
    }

    /// Waits for its end; what it wrote, unless that went to a file.
    ///
    /// # Errors
    /// When its output cannot be read.
    pub fn output(mut self) -> io::Result<Output> {
        self.child.take().map_or_else(|| Err(io::Error::other("it was waited for already")), Child::wait_with_output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program to be run on a host: like [`Command`], but it dies with the laboratory.
#[derive(Clone, Debug)]
pub struct Program {
    name: String,
    args: Vec<String>,
    directory: Option<PathBuf>,
    output: Option<PathBuf>,
}

impl Program {
    /// A program, by name or path.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), args: Vec::new(), directory: None, output: None }
    }

    /// More arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The directory that it runs in.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Standard output and standard error go to this file, which is replaced; without it they are kept for [`Namespace::output`].
    #[must_use]
    pub fn log_to(mut self, file: &Path) -> Self {
        self.output = Some(file.to_owned());
        self
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn command(&self) -> Command {
        // prctl(PR_SET_PDEATHSIG) must happen in the child; this program of util-linux does it without unsafe code of ours.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.name).args(&self.args).stdin(Stdio::null());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let log = self.output.as_ref().and_then(|file| fs::File::create(file).ok());
        match log.and_then(|file| Some((file.try_clone().ok()?, file))) {
            Some((out, err)) => command.stdout(out).stderr(err),
            None => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
        };
        command
    }
}

/// Takes the calling thread into new namespaces.
fn isolate() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)?;
    // Mounts made in here stay in here, mount_namespaces(7).
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    // Packets may come in on another device than answers go out on. Where /proc is read-only the default has to do.
    for setting in ["all", "default"] {
        let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{setting}/rp_filter"), "0");
    }
    Ok(())
}

fn bind(source: &Path, target: &Path) -> nix::Result<()> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
}
