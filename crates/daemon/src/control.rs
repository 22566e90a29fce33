//! The control socket: a Unix socket that takes one JSON object in a line, answers with one and closes the connection.
//!
//! ```text
//! {"command":"status"}    {"ready":true,"device":"sinnet0", …}       for whom [`Access`] names
//! {"command":"down"}      {"ok":true}                                for root and the daemon's user
//! anything else           {"error":"a sentence"}
//! ```

use std::fs::{self, Permissions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use clock::{Duration, Instant};
use rustix::event::PollFlags;
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::status::Status;
use crate::visitors::{Class, Limits, Step, Tally, Visitors};

/// Where the control socket of a daemon without other wishes is.
pub const DEFAULT_PATH: &str = "/run/sinnet/sinnet0.sock";

/// A request is one word; more is an accident. Root and the daemon's user have places of their own.
const LIMITS: Limits = Limits { ordinary: 12, trusted: 4, question: 1024, answers: 1 };
/// A daemon answers within a turn of its loop.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// So old may be what ordinary visitors are told.
const STALE: Duration = Duration::from_millis(100);
/// No state is longer, in bytes; who says more is no Sinnet.
const LONGEST_ANSWER: u64 = 64 << 20;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Associations, paths and counters.
    Status,
    /// Close all associations and end.
    Down,
}

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Nobody listens.
    #[error(
        "no Sinnet answers at {path}: is it running? `sinnet up -c FILE` starts it, and --control names another socket"
    )]
    NotRunning {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is not for this user.
    #[error("this user may not ask the Sinnet at {path}")]
    NotAllowed {
        /// Where it was asked.
        path: PathBuf,
    },
    /// The daemon says no.
    #[error("{0}")]
    Refused(String),
    /// Anything else.
    #[error("asking the Sinnet at {path}: {source}")]
    Io {
        /// Where it was asked.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// The state of the daemon whose control socket is `path`.
///
/// # Errors
/// Where none answers.
pub fn status(path: &Path) -> Result<Status, ControlError> {
    let answer = ask(path, Request::Status)?;
    serde_json::from_value(answer).map_err(|error| ControlError::Io { path: path.to_owned(), source: error.into() })
}

/// Ends the daemon whose control socket is `path`, and waits until it has gone.
///
/// # Errors
/// Where none answers or it refuses.
pub fn down(path: &Path) -> Result<(), ControlError> {
    ask(path, Request::Down).map(|_| ())
}

fn ask(path: &Path, request: Request) -> Result<Value, ControlError> {
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ControlError::NotRunning { path: path.to_owned() }
        }
        io::ErrorKind::PermissionDenied => ControlError::NotAllowed { path: path.to_owned() },
        _ => ControlError::Io { path: path.to_owned(), source },
    };
    let mut stream = UnixStream::connect(path).map_err(io)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(io)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(io)?;
    stream.write_all(format!("{}\n", json!(request)).as_bytes()).map_err(io)?;
    let mut reader = BufReader::new(stream.take(LONGEST_ANSWER));
    let mut line = String::new();
    reader.read_line(&mut line).map_err(io)?;
    let answer: Value = serde_json::from_str(&line).map_err(|error| io(error.into()))?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        return Err(ControlError::Refused(error.to_owned()));
    }
    if request == Request::Down {
        // The daemon closes the connection with its last step.
        let _ = reader.read_line(&mut line);
    }
    Ok(answer)
}

/// Who may ask for the state, beside root and the user as whom the daemon runs, who may also end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The user as whom the daemon runs.
    pub user: u32,
    /// The members of this group.
    pub group: u32,
    /// Every user of this machine.
    pub everyone: bool,
}

impl Access {
    /// This process's user and group.
    pub fn own() -> Self {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Self { user: user.as_raw(), group: group.as_raw(), everyone: false }
    }

    fn class(&self, user: u32) -> Class {
        if user == 0 || user == self.user { Class::Trusted } else { Class::Ordinary }
    }
}

/// The daemon's end. The socket's file disappears with it, as far as the daemon's user may remove it.
#[derive(Debug)]
pub struct Control {
    visitors: Visitors<UnixListener>,
    access: Access,
    path: PathBuf,
    /// Device and number of the socket's file: what is there at the end may be another's.
    file: Option<(u64, u64)>,
    /// What ordinary visitors were told last.
    told: Option<(Instant, Vec<u8>)>,
}

impl Control {
    /// Listens at `path`, whose directory is created if need be, in one that is there.
    ///
    /// # Errors
    /// Where another daemon listens there, where there is anything but what a killed daemon of ours left, or where the
    /// directory is not ours.
    pub fn listen(path: &Path, access: Access) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            prepare(directory, access)?;
        }
        clear(path, access)?;
        // From its first moment, nobody else may connect.
        let mask = rustix::process::umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(mask);
        let listener = bound?;
        let file = fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let own = Access::own();
        if (access.user, access.group) != (own.user, own.group) {
            chown(path, Some(access.user), Some(access.group))?;
        }
        let mode = if access.everyone { 0o666 } else { 0o660 };
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        listener.set_nonblocking(true)?;
        let visitors = Visitors::new(listener, LIMITS);
        Ok(Self { visitors, access, path: path.to_owned(), file, told: None })
    }

    /// What to poll for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.visitors.interests()
    }

    /// When [`Control::turn`] wants to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.visitors.poll_timeout()
    }

    /// What has happened to visitors.
    pub(crate) fn tally(&self) -> Tally {
        self.visitors.tally()
    }

    /// Accepts, reads and writes as far as that goes without waiting. `answer` is asked for a request and returns one JSON
    /// object.
    pub fn turn(&mut self, now: Instant, mut answer: impl FnMut(Request) -> Value) {
        let (access, told) = (self.access, &mut self.told);
        self.visitors.turn(
            now,
            |stream| access.class(user_of(stream)),
            |stream, question| {
                let Some(end) = question.iter().position(|byte| *byte == b'\n') else { return Step::More };
                let line = question.get(..end).unwrap_or_default();
                let trusted = access.class(user_of(stream)) == Class::Trusted;
                match parse(line) {
                    Err(error) => Step::Last(text(&json!({"error": error}))),
                    Ok(Request::Down) if !trusted => Step::Last(text(&json!({
                        "error": "only root and the daemon's own user may end it: try sudo"
                    }))),
                    // The connection closes with the daemon's last step.
                    Ok(Request::Down) => Step::Stay(text(&answer(Request::Down))),
                    Ok(Request::Status) if trusted => Step::Last(text(&answer(Request::Status))),
                    Ok(Request::Status) => {
                        // However many of them ask, the work is done ten times a second.
                        let recent = told.as_ref().filter(|(when, _)| now.saturating_since(*when) < STALE);
                        let bytes = recent.map_or_else(|| text(&answer(Request::Status)), |(_, bytes)| bytes.clone());
                        if recent.is_none() {
                            *told = Some((now, bytes.clone()));
                        }
                        Step::Last(bytes)
                    }
                }
            },
        );
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let there = fs::symlink_metadata(&self.path).ok().map(|file| (file.dev(), file.ino()));
        if there.is_some() && there == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The request in one line.
///
/// # Errors
/// A sentence.
pub fn parse(line: &[u8]) -> Result<Request, String> {
    serde_json::from_slice(line).map_err(|error| format!("that is no request: {error}"))
}

fn text(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// The user behind a connection; nobody where the kernel does not tell.
fn user_of(stream: &UnixStream) -> u32 {
    rustix::net::sockopt::socket_peercred(stream).map_or(u32::MAX, |peer| peer.uid.as_raw())
}

/// Makes the socket's directory, and gives it to the daemon's user where it is ours alone, so that the socket can be removed.
fn prepare(directory: &Path, access: Access) -> io::Result<()> {
    let made = !directory.exists();
    if made {
        // One level: whoever mistypes a path shall not find directories where they were none.
        fs::create_dir(directory)?;
    }
    let usual = Path::new(DEFAULT_PATH).parent() == Some(directory);
    if (made || usual) && access.user != Access::own().user {
        chown(directory, Some(access.user), None)?;
    }
    Ok(())
}

/// Removes what a daemon of ours left that was killed, and nothing else.
fn clear(path: &Path, access: Access) -> io::Result<()> {
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        there => there?,
    };
    let refuse = |why| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    if !there.file_type().is_socket() {
        return refuse("there is a file that is no socket, and it stays");
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another Sinnet is running there")),
        Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(error),
        Err(_) if ![0, Access::own().user, access.user].contains(&there.uid()) => {
            refuse("there is another user's socket, and it stays")
        }
        Err(_) => fs::remove_file(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon that serves until it is told to end; returns how often it was asked for its state.
    fn serve(path: &Path) -> std::thread::JoinHandle<u32> {
        let mut control = Control::listen(path, Access::own()).expect("listens");
        std::thread::spawn(move || {
            let (mut asked, mut ended) = (0, false);
            while !ended {
                {
                    let mut fds: Vec<_> = control
                        .interests()
                        .map(|(fd, flags)| rustix::event::PollFd::from_borrowed_fd(fd, flags))
                        .collect();
                    let patience = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
                    assert_ne!(rustix::event::poll(&mut fds, Some(&patience)).expect("polls"), 0, "nobody asked");
                }
                control.turn(Instant::ZERO, |request| match request {
                    Request::Status => {
                        asked += 1;
                        json!({"ready": true, "device": "x".repeat(1 << 20)})
                    }
                    Request::Down => {
                        ended = true;
                        json!({"ok": true})
                    }
                });
            }
            asked
        })
    }

    #[test]
    fn it_is_asked_and_ended_and_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("run/control.sock");
        let server = serve(&path);
        assert!(
            matches!(Control::listen(&path, Access::own()), Err(error) if error.kind() == io::ErrorKind::AddrInUse)
        );
        for _ in 0..3 {
            let answer = status(&path).expect("an answer");
            assert!(answer.ready);
            assert_eq!(answer.device.len(), 1 << 20);
        }
        let mut rude = UnixStream::connect(&path).expect("connects");
        rude.write_all(b"{\"command\":\"dance\"}\n").expect("writes");
        let mut line = String::new();
        BufReader::new(rude).read_line(&mut line).expect("reads");
        assert!(line.contains("unknown variant `dance`"), "{line}");
        down(&path).expect("ends");
        assert_eq!(server.join().expect("ends"), 3);
        assert!(!path.exists());
        assert!(matches!(status(&path), Err(ControlError::NotRunning { .. })));
    }

    #[test]
    fn the_socket_of_a_killed_daemon_is_no_obstacle() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        drop(UnixListener::bind(&path).expect("binds"));
        assert!(path.exists());
        assert!(Control::listen(&path, Access::own()).is_ok());
    }

    #[test]
    fn what_is_no_socket_of_ours_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let listen = |name: &str| Control::listen(&directory.path().join(name), Access::own()).map(drop);
        let file = directory.path().join("precious");
        fs::write(&file, "all I have").expect("a file");
        let socket = directory.path().join("socket");
        drop(UnixListener::bind(&socket).expect("binds"));
        std::os::unix::fs::symlink(&socket, directory.path().join("link")).expect("a link");
        fs::create_dir(directory.path().join("directory")).expect("a directory");
        for name in ["precious", "link", "directory"] {
            let error = listen(name).expect_err("is no socket");
            assert!(error.to_string().contains("no socket"), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).expect("text"), "all I have");
        assert!(socket.exists() && directory.path().join("link").is_symlink());
    }

    #[test]
    fn a_socket_that_another_daemon_made_meanwhile_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        let first = Control::listen(&path, Access::own()).expect("listens");
        fs::remove_file(&path).expect("somebody does that");
        let second = Control::listen(&path, Access::own()).expect("listens");
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn only_who_may_ask_can_connect() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        for (everyone, mode) in [(false, 0o660), (true, 0o666)] {
            let _control = Control::listen(&path, Access { everyone, ..Access::own() }).expect("listens");
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, mode);
        }
    }
}
