//! A file over HTTP between two hosts, with programs that know nothing of Sinnet: `python3 -m http.server` and `curl`. For
//! Multipath TCP both are small Python scripts, since a socket has to ask for it.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::Rng;
use sha2::{Digest as _, Sha256};

use crate::error::Step;
use crate::interrupt::{check, pause};
use crate::{LabError, Namespace, Program, Running};

/// The port that files are served on, and that for Multipath TCP.
const PORTS: [u16; 2] = [8080, 8081];
/// The name of the served file.
const FILE: &str = "file";
/// The name of a small file that is there to be asked for first.
const SMALL: &str = "ready";
const MPTCP_SERVER: &str = include_str!("mptcp_server.py");
const MPTCP_CLIENT: &str = include_str!("mptcp_client.py");

/// A web server on a host. It ends with the host.
pub(crate) struct Server {
    file: PathBuf,
    mptcp: bool,
    _program: Running,
}

/// A download under way.
pub(crate) struct Fetch {
    copy: PathBuf,
    program: Running,
}

/// What a finished download tells.
pub(crate) struct Fetched {
    /// From the first byte to the last, in seconds.
    pub(crate) seconds: f64,
}

impl Server {
    /// Serves `size` random bytes from `host`; files and logs go to `directory`.
    pub(crate) fn start(
        host: &Namespace,
        directory: &Path,
        size: u64,
        rng: &mut Rng,
        mptcp: bool,
    ) -> Result<Self, LabError> {
        let served = directory.join(format!("served-by-{}{}", host.name(), if mptcp { "-mptcp" } else { "" }));
        fs::create_dir_all(&served).step("making a directory for the server")?;
        fs::write(served.join(SMALL), "ready\n").step("writing a small file")?;
        let file = served.join(FILE);
        write_random(&file, size, rng).step("writing random bytes")?;
        let port = port(mptcp);
        let arguments = match mptcp {
            false => vec!["-m".to_owned(), "http.server".into(), port.to_string(), "--bind".into(), "::".into()],
            true => vec!["-c".to_owned(), MPTCP_SERVER.into(), port.to_string()],
        };
        let log = served.with_extension("log");
        let program = host.spawn(&Program::new("python3").args(arguments).directory(&served).log_to(&log))?;
        wait_until(host, "the web server did not answer", 10, move || {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).is_ok() || TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        Ok(Self { file, mptcp, _program: program })
    }

    /// The port it serves on.
    pub(crate) fn port(&self) -> u16 {
        port(self.mptcp)
    }

    /// Fetches the small file from `client`; `host` is a name or an address as it stands in a URL.
    pub(crate) fn fetch_small(client: &Namespace, host: &str, patience: Duration) -> Result<(), LabError> {
        let url = format!("http://{host}:{}/{SMALL}", port(false));
        let patience = patience.as_secs().to_string();
        let retry = ["--retry", "20", "--retry-delay", "1", "--retry-max-time", &patience, "--retry-connrefused"];
        client
            .output(&Program::new("curl").args(["-sS", "--fail", "--max-time", &patience]).args(retry).args([url]))
            .map(drop)
    }

    /// Begins to fetch the file from `client` into `copy`.
    pub(crate) fn fetch(
        &self,
        client: &Namespace,
        host: &str,
        copy: PathBuf,
        patience: Duration,
    ) -> Result<Fetch, LabError> {
        let _ = fs::remove_file(&copy);
        let (seconds, port) = (patience.as_secs().to_string(), port(self.mptcp));
        let file = copy.to_string_lossy().into_owned();
        let program = match self.mptcp {
            false => Program::new("curl")
                .args(["-sS", "--fail", "--no-buffer", "--max-time", &seconds])
                .args(["-w", "%{time_starttransfer} %{time_total}", "-o", &file])
                .args([format!("http://{host}:{port}/{FILE}")]),
            true => Program::new("python3").args(["-c", MPTCP_CLIENT, host, &port.to_string(), FILE, &file, &seconds]),
        };
        Ok(Fetch { copy, program: client.spawn(&program)? })
    }

    /// Whether `copy` is the file, or the beginning of it if `prefix`.
    pub(crate) fn is_copied(&self, copy: &Path, prefix: bool) -> Result<bool, LabError> {
        let length = fs::metadata(copy).step("reading the fetched file")?.len();
        let served = fs::metadata(&self.file).step("reading the served file")?.len();
        if length > served || length < served && !prefix {
            return Ok(false);
        }
        let digest = |file| digest(file, length).step("comparing the files");
        Ok(digest(&self.file)? == digest(copy)?)
    }
}

impl Fetch {
    /// Bytes that have arrived.
    pub(crate) fn arrived(&self) -> u64 {
        fs::metadata(&self.copy).map_or(0, |metadata| metadata.len())
    }

    /// Whether it has come to its end, good or bad.
    pub(crate) fn has_ended(&mut self) -> Result<bool, LabError> {
        self.program.has_ended().step("waiting for the client")
    }

    /// Where the bytes go.
    pub(crate) fn copy(&self) -> &Path {
        &self.copy
    }

    /// Waits for the end, and asks the client about it.
    pub(crate) fn finish(self, size: u64) -> Result<Fetched, LabError> {
        // The terminal interrupts the client too, and our own notice of it is the better one.
        check()?;
        let arrived = self.arrived();
        let output = self.program.output().step("waiting for the client")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let message = format!("{said} ({arrived} of {size} bytes arrived)");
            return Err(LabError::Program { program: "the client of the download".into(), message });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut times = text.split_whitespace().filter_map(|time| time.parse::<f64>().ok());
        let (Some(first), Some(last)) = (times.next(), times.next()) else {
            let message = format!("it answered '{text}'");
            return Err(LabError::Program { program: "the client of the download".into(), message });
        };
        Ok(Fetched { seconds: last - first })
    }
}

fn port(mptcp: bool) -> u16 {
    if mptcp { PORTS[1] } else { PORTS[0] }
}

/// Asks on `host` until `holds` says yes.
pub(crate) fn wait_until(
    host: &Namespace,
    what: &str,
    seconds: u64,
    holds: impl Fn() -> bool + Send + Clone + 'static,
) -> Result<(), LabError> {
    let step = Duration::from_millis(20);
    for _ in 0..seconds * 50 {
        if host.run(holds.clone())? {
            return Ok(());
        }
        pause(step)?;
    }
    Err(LabError::Timeout { what: format!("{what} on host {}", host.name()), seconds })
}

fn write_random(file: &Path, size: u64, rng: &mut Rng) -> io::Result<()> {
    let mut writer = io::BufWriter::new(fs::File::create(file)?);
    let mut block = vec![0; 64 * 1024];
    let mut left = size;
    while left > 0 {
        rng.fill(&mut block);
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        writer.write_all(block.get(..part).unwrap_or_default())?;
        left -= part as u64;
    }
    writer.flush()
}

/// SHA-256 of the first `length` bytes.
fn digest(file: &Path, length: u64) -> io::Result<Vec<u8>> {
    let mut hash = Sha256::new();
    let mut file = fs::File::open(file)?.take(length);
    let mut block = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut block)?;
        if length == 0 {
            return Ok(hash.finalize().to_vec());
        }
        hash.update(block.get(..length).unwrap_or_default());
    }
}
