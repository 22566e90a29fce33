//! The control socket: a Unix socket that takes one JSON object a line and answers with one.
//!
//! ```text
//! {"command":"status"}    {"ready":true,"device":"sinnet0", …}       for every user of the machine
//! {"command":"down"}      {"ok":true}                                for the daemon's user and root
//! anything else           {"error":"a sentence"}
//! ```

use std::fs::Permissions;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::PollFlags;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where the control socket of a daemon without other wishes is.
pub const DEFAULT_PATH: &str = "/run/sinnet/sinnet0.sock";

/// A request is one word; more is an accident.
const LONGEST_REQUEST: usize = 4096;
/// More programs than that do not ask at once.
const MOST_CONNECTIONS: usize = 16;
/// A daemon answers within a turn of its loop.
const PATIENCE: Duration = Duration::from_secs(5);

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

/// The state of the daemon whose control socket is `path`, as it tells it.
///
/// # Errors
/// Where none answers.
pub fn status(path: &Path) -> Result<Value, ControlError> {
    ask(path, Request::Status)
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
    let mut reader = BufReader::new(stream);
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

/// The daemon's end. The socket's file disappears with it.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Control {
    /// Listens at `path`, whose directory is created if need be.
    ///
    /// # Errors
    /// Where another daemon listens there, or the directory is not ours.
    pub fn listen(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)?;
        }
        match UnixStream::connect(path) {
            Ok(_) => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another Sinnet is running there"));
            }
            // What a daemon left that was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        // Anyone may ask; who may command is decided by the user behind the connection.
        std::fs::set_permissions(path, Permissions::from_mode(0o666))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path: path.to_owned(), connections: Vec::new() })
    }

    /// What to poll for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let listener = (self.listener.as_fd(), PollFlags::IN);
        let connections = self.connections.iter().map(|connection| {
            let flags = if connection.answer.is_empty() { PollFlags::IN } else { PollFlags::OUT };
            (connection.stream.as_fd(), flags)
        });
        std::iter::once(listener).chain(connections)
    }

    /// Accepts, reads and writes as far as that goes without waiting. `answer` is asked for each request and returns one
    /// JSON object.
    pub fn turn(&mut self, mut answer: impl FnMut(Request) -> Value) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.connections.len() < MOST_CONNECTIONS && stream.set_nonblocking(true).is_ok() {
                self.connections.push(Connection { stream, request: Vec::new(), answer: Vec::new() });
            }
        }
        self.connections.retain_mut(|connection| connection.turn(&mut answer));
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Connection {
    /// False once the other end has gone or talks nonsense.
    fn turn(&mut self, answer: &mut impl FnMut(Request) -> Value) -> bool {
        let mut chunk = [0; 512];
        let open = loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => break false,
                Ok(length) => self.request.extend_from_slice(chunk.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
            if self.request.len() > LONGEST_REQUEST {
                return false;
            }
        };
        while let Some(end) = self.request.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.request.drain(..=end).collect();
            let value = match serde_json::from_slice(&line) {
                Ok(Request::Down) if !self.may_command() => {
                    json!({"error": "only root and the daemon's own user may end it: try sudo"})
                }
                Ok(request) => answer(request),
                Err(error) => json!({"error": format!("that is no request: {error}")}),
            };
            self.answer.extend_from_slice(format!("{value}\n").as_bytes());
        }
        self.write() && (open || !self.answer.is_empty())
    }

    fn write(&mut self) -> bool {
        while !self.answer.is_empty() {
            match self.stream.write(&self.answer) {
                Ok(0) => return false,
                Ok(length) => {
                    self.answer.drain(..length);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn may_command(&self) -> bool {
        let own = rustix::process::getuid();
        rustix::net::sockopt::socket_peercred(&self.stream).is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon that serves until it is told to end; returns how often it was asked for its state.
    fn serve(path: &Path) -> std::thread::JoinHandle<u32> {
        let mut control = Control::listen(path).expect("listens");
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
                control.turn(|request| match request {
                    Request::Status => {
                        asked += 1;
                        json!({"ready": true, "long": "x".repeat(1 << 20)})
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
        assert!(matches!(Control::listen(&path), Err(error) if error.kind() == io::ErrorKind::AddrInUse));
        for _ in 0..3 {
            let answer = status(&path).expect("an answer");
            assert_eq!(answer["ready"], true);
            assert_eq!(answer["long"].as_str().map(str::len), Some(1 << 20));
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
        assert!(Control::listen(&path).is_ok());
    }
}
