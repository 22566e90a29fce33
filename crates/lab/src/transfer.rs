//! A file over HTTP between two hosts, with programs that know nothing of Sinnet: `python3 -m http.server` and `curl`. For
//! Multipath TCP both are small Python scripts, since a socket has to ask for it; for many downloads at once too, since thousands of
//! programs would be too many. A guest brings programs of its own.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::Rng;
use sha2::{Digest as _, Sha256};

use crate::error::Step;
use crate::guest::{Guest, Served};
use crate::interrupt::{check, pause};
use crate::{LabError, Namespace, Program, Running, kernel};

/// The name of the served file.
const FILE: &str = "file";
/// The name of a small file that is there to be asked for first.
const SMALL: &str = "ready";
const MPTCP_SERVER: &str = include_str!("mptcp_server.py");
const MPTCP_CLIENT: &str = include_str!("mptcp_client.py");
const PARALLEL_DOWNLOADS: &str = include_str!("parallel_downloads.py");

/// What a guest's server makes when it answers.
const READY: &str = "answers";

/// How files are served.
#[derive(Clone, Copy)]
pub(crate) enum Service<'a> {
    /// By HTTP over TCP.
    Http,
    /// By HTTP over Multipath TCP.
    Mptcp,
    /// To whoever connects, to thousands at once.
    ParallelDownloads,
    /// By a guest.
    Guest(&'a dyn Guest),
}

impl Service<'_> {
    /// The port that it has on every host.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Http => 8080,
            Self::Mptcp => 8081,
            Self::ParallelDownloads => 8082,
            Self::Guest(_) => 8083,
        }
    }

    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Mptcp => "mptcp",
            Self::ParallelDownloads => "parallel-downloads",
            Self::Guest(_) => "guest",
        }
    }
}

/// A server on a host. It ends with the host.
pub(crate) struct Server<'a> {
    file: PathBuf,
    size: u64,
    service: Service<'a>,
    ready: PathBuf,
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
    /// How many files arrived whole, where that is told.
    pub(crate) complete: Option<u32>,
}

impl<'a> Server<'a> {
    /// Serves `size` random bytes from `host`; files and logs go to `directory`.
    pub(crate) fn start(
        host: &Namespace,
        directory: &Path,
        size: u64,
        rng: &mut Rng,
        service: Service<'a>,
    ) -> Result<Self, LabError> {
        let served = directory.join(format!("served-by-{}-{}", host.name(), service.name()));
        fs::create_dir_all(&served).step("making a directory for the server")?;
        fs::write(served.join(SMALL), "ready\n").step("writing a small file")?;
        let file = served.join(FILE);
        write_random(&file, size, rng).step("writing random bytes")?;
        let port = service.port();
        let number = port.to_string();
        let ready = served.join(READY);
        let _ = fs::remove_file(&ready);
        let python = |arguments: &[&str]| Program::new("python3").args(arguments.iter().copied());
        let program = match service {
            Service::Guest(guest) => guest.server(&file, port, &ready),
            Service::Http => python(&["-m", "http.server", &number, "--bind", "::"]),
            Service::Mptcp => python(&["-c", MPTCP_SERVER, &number]),
            Service::ParallelDownloads => python(&["-c", PARALLEL_DOWNLOADS, "serve", &number, FILE]),
        };
        let log = served.with_extension("log");
        let program = host.spawn(&program.directory(&served).log_to(&log))?;
        let made = matches!(service, Service::Guest(_)).then(|| ready.clone());
        wait_until(host, "the server did not answer", 10, move || match &made {
            Some(ready) => ready.exists(),
            None => {
                let is_open = |address: IpAddr| TcpStream::connect((address, port)).is_ok();
                is_open(Ipv6Addr::LOCALHOST.into()) || is_open(Ipv4Addr::LOCALHOST.into())
            }
        })?;
        Ok(Self { file, size, service, ready, _program: program })
    }

    /// The congestion control that its connections have now, on this host.
    pub(crate) fn congestion(&self, host: &Namespace) -> Result<String, LabError> {
        match self.service {
            Service::Guest(guest) => Ok(guest.congestion()),
            _ => kernel::used(host, self.service.port()),
        }
    }

    /// Bytes of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Fetches the small file from `client`; `host` is a name or an address as it stands in a URL.
    pub(crate) fn fetch_small(client: &Namespace, host: &str, patience: Duration) -> Result<(), LabError> {
        let url = format!("http://{host}:{}/{SMALL}", Service::Http.port());
        let patience = patience.as_secs().to_string();
        let retry = ["--retry", "20", "--retry-delay", "1", "--retry-max-time", &patience, "--retry-connrefused"];
        client
            .output(&Program::new("curl").args(["-sS", "--fail", "--max-time", &patience]).args(retry).args([url]))
            .map(drop)
    }

    /// Begins to fetch the file from `client` into `copy`; of a crowd so many times at once, all into it.
    pub(crate) fn fetch(
        &self,
        client: &Namespace,
        host: &str,
        copy: PathBuf,
        count: u32,
        patience: Duration,
    ) -> Result<Fetch, LabError> {
        let _ = fs::remove_file(&copy);
        let (seconds, port) = (patience.as_secs().to_string(), self.service.port().to_string());
        let file = copy.to_string_lossy().into_owned();
        let program = match self.service {
            Service::Guest(guest) => {
                guest.client(&Served { host, port: self.service.port(), ready: &self.ready }, &copy, patience)
            }
            Service::Http => Program::new("curl")
                .args(["-sS", "--fail", "--no-buffer", "--max-time", &seconds])
                .args(["-w", "%{time_starttransfer} %{time_total}", "-o", &file])
                .args([format!("http://{host}:{port}/{FILE}")]),
            Service::Mptcp => Program::new("python3").args(["-c", MPTCP_CLIENT, host, &port, FILE, &file, &seconds]),
            Service::ParallelDownloads => {
                let digest = digest(&self.file, u64::MAX).step("reading the served file")?;
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                let arguments =
                    ["-c", PARALLEL_DOWNLOADS, "fetch", host, &port, &count.to_string(), &digest, &file, &seconds];
                Program::new("python3").args(arguments)
            }
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
        let complete = times.next().map(|count| count as u32);
        Ok(Fetched { seconds: last - first, complete })
    }
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
