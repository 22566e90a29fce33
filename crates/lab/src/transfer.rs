//! A file over HTTP between two hosts, with programs that know nothing of Sinnet: `python3 -m http.server` and `curl`.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::Rng;
use sha2::{Digest as _, Sha256};

use crate::error::Step;
use crate::interrupt::{check, pause};
use crate::progress::Progress;
use crate::{LabError, Namespace, Program, Running};

/// The port that files are served on.
pub(crate) const PORT: u16 = 8080;
/// The name of the served file.
const FILE: &str = "file";
/// The name of a small file that is there to be asked for first.
const SMALL: &str = "ready";

/// A web server on a host. It ends with the host.
pub(crate) struct Server {
    file: PathBuf,
    size: u64,
    _program: Running,
}

/// What a transfer gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transfer {
    /// Bytes of the file over the time from its first byte to its last, in Mbit/s.
    pub(crate) mbps: f64,
    /// From the first byte to the last, in seconds.
    pub(crate) seconds: f64,
    /// Whether the file arrived as it was.
    pub(crate) sha256_equal: bool,
}

impl Server {
    /// Serves `size` random bytes from `host`; files and logs go to `directory`.
    pub(crate) fn start(host: &Namespace, directory: &Path, size: u64, rng: &mut Rng) -> Result<Self, LabError> {
        let served = directory.join("served");
        fs::create_dir_all(&served).step("making a directory for the server")?;
        fs::write(served.join(SMALL), "ready\n").step("writing a small file")?;
        let file = served.join(FILE);
        write_random(&file, size, rng).step("writing random bytes")?;
        let program = Program::new("python3").args(["-m", "http.server", &PORT.to_string(), "--bind", "::"]);
        let program = host.spawn(&program.directory(&served).log_to(&directory.join("http.server.log")))?;
        wait_until(host, "the web server did not answer", 10, || {
            TcpStream::connect((Ipv6Addr::LOCALHOST, PORT)).is_ok()
        })?;
        Ok(Self { file, size, _program: program })
    }

    /// Fetches the small file from `client`; `host` is a name or an address as it stands in a URL.
    pub(crate) fn fetch_small(client: &Namespace, host: &str, patience: Duration) -> Result<(), LabError> {
        let url = format!("http://{host}:{PORT}/{SMALL}");
        let patience = patience.as_secs().to_string();
        let retry = ["--retry", "20", "--retry-delay", "1", "--retry-max-time", &patience, "--retry-connrefused"];
        client
            .output(&Program::new("curl").args(["-sS", "--fail", "--max-time", &patience]).args(retry).args([url]))
            .map(drop)
    }

    /// Fetches the file from `client` and compares it.
    pub(crate) fn fetch(
        &self,
        client: &Namespace,
        host: &str,
        directory: &Path,
        patience: Duration,
        progress: &Progress,
    ) -> Result<Transfer, LabError> {
        let copy = directory.join("fetched");
        let _ = fs::remove_file(&copy);
        let url = format!("http://{host}:{PORT}/{FILE}");
        let program = Program::new("curl")
            .args(["-sS", "--fail", "--max-time", &patience.as_secs().to_string()])
            .args(["-w", "%{time_starttransfer} %{time_total}", "-o", &copy.to_string_lossy()])
            .args([url]);
        let mut child = client.spawn(&program)?;
        while !child.has_ended().step("waiting for curl")? {
            progress.at(fs::metadata(&copy).map_or(0, |metadata| metadata.len()));
            pause(Duration::from_millis(50))?;
        }
        // The terminal interrupts curl too, and our own notice of it is the better one.
        check()?;
        let output = child.output().step("waiting for curl")?;
        if !output.status.success() {
            let arrived = fs::metadata(&copy).map_or(0, |metadata| metadata.len());
            let message = format!(
                "{} ({arrived} of {} bytes arrived)",
                String::from_utf8_lossy(&output.stderr).trim(),
                self.size
            );
            return Err(LabError::Program { program: format!("curl on host {}", client.name()), message });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut times = text.split_whitespace().filter_map(|time| time.parse::<f64>().ok());
        let (Some(first), Some(last)) = (times.next(), times.next()) else {
            return Err(LabError::Program { program: "curl".into(), message: format!("it answered '{text}'") });
        };
        let seconds = last - first;
        let sha256_equal =
            digest(&self.file).step("reading the served file")? == digest(&copy).step("reading the fetched file")?;
        Ok(Transfer { mbps: self.size as f64 * 8.0 / seconds / 1e6, seconds, sha256_equal })
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

fn digest(file: &Path) -> io::Result<Vec<u8>> {
    let mut hash = Sha256::new();
    let mut file = fs::File::open(file)?;
    let mut block = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut block)?;
        if length == 0 {
            return Ok(hash.finalize().to_vec());
        }
        hash.update(block.get(..length).unwrap_or_default());
    }
}
