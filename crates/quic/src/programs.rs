//! The two programs of a download between kernels: quinn with its sockets, as others have it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::{Endpoint, EndpointConfig, Incoming, TokioRuntime, VarInt};

use crate::Congestion;
use crate::tls::{self, NAME};

/// What a socket may hold that is not read yet, in bytes, which Linux doubles: browsers ask for more, and get this much unless the system
/// was configured otherwise.
const UNREAD: usize = 212_992;
/// What the server writes at once, in bytes.
const BLOCK: usize = 64 * 1024;

/// Serve a file to whoever connects, until it is killed.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The file.
    pub file: PathBuf,
    /// The port of UDP.
    #[arg(long)]
    pub port: u16,
    /// Once it answers, its certificate is in this file.
    #[arg(long, value_name = "FILE")]
    pub certificate: PathBuf,
    /// The congestion control: cubic, newreno or bbr.
    #[arg(long, default_value = "cubic")]
    pub congestion: Congestion,
}

/// Fetch the file of such a server.
#[derive(Debug, clap::Args)]
pub struct Fetch {
    /// A name or an address.
    pub host: String,
    /// Where what has arrived is written as it comes.
    pub copy: PathBuf,
    /// The port of UDP.
    #[arg(long)]
    pub port: u16,
    /// The server's certificate.
    #[arg(long, value_name = "FILE")]
    pub certificate: PathBuf,
    /// It fails after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub patience: u64,
    /// The congestion control: cubic, newreno or bbr.
    #[arg(long, default_value = "cubic")]
    pub congestion: Congestion,
}

/// When something came, in seconds after the program began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The first byte.
    pub first: f64,
    /// The last byte.
    pub last: f64,
}

impl Serve {
    /// Serves until the program is killed.
    ///
    /// # Errors
    /// Why it cannot, as a sentence.
    pub fn run(&self) -> Result<(), String> {
        runtime()?.block_on(async {
            let (config, certificate) = tls::server(self.congestion)?;
            let endpoint = endpoint((Ipv6Addr::UNSPECIFIED, self.port).into(), Some(config))?;
            // Who sees the file finds all of it there.
            let part = self.certificate.with_extension("part");
            let written = std::fs::write(&part, certificate).and_then(|()| std::fs::rename(&part, &self.certificate));
            written.map_err(|error| on(&self.certificate, &error))?;
            while let Some(incoming) = endpoint.accept().await {
                let file = self.file.clone();
                tokio::spawn(async move {
                    if let Err(error) = answer(incoming, &file).await {
                        // Where even that fails there is nobody to tell.
                        let _ = writeln!(std::io::stderr().lock(), "quic: {error}");
                    }
                });
            }
            Ok(())
        })
    }
}

/// Sends the file on each stream that the client opens.
async fn answer(incoming: Incoming, file: &Path) -> Result<(), String> {
    let connection = incoming.await.map_err(|error| format!("no connection: {error}"))?;
    // A client that has what it wants closes.
    while let Ok((mut stream, _)) = connection.accept_bi().await {
        let mut file = File::open(file).map_err(|error| on(file, &error))?;
        let mut block = vec![0; BLOCK];
        loop {
            // It was written a moment ago: nothing waits for a disk here.
            let length = file.read(&mut block).map_err(|error| format!("reading the file: {error}"))?;
            let Some(bytes) = block.get(..length).filter(|bytes| !bytes.is_empty()) else { break };
            stream.write_all(bytes).await.map_err(|error| format!("sending: {error}"))?;
        }
        // It is closed already only where the client no longer wants it.
        let _ = stream.finish();
    }
    Ok(())
}

impl Fetch {
    /// Fetches the file.
    ///
    /// # Errors
    /// Why not all of it has come, as a sentence.
    pub fn run(&self) -> Result<Times, String> {
        let patience = Duration::from_secs(self.patience);
        runtime()?.block_on(async {
            let fetched = tokio::time::timeout(patience, self.fetch()).await;
            fetched.map_err(|_| format!("after {} s the file has not come to its end", self.patience))?
        })
    }

    async fn fetch(&self) -> Result<Times, String> {
        let began = begun();
        let server = address(&self.host, self.port)?;
        let own: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let certificate = std::fs::read(&self.certificate).map_err(|error| on(&self.certificate, &error))?;
        let config = tls::client(self.congestion, certificate.into())?;
        let endpoint = endpoint(own, None)?;
        let connecting = endpoint.connect_with(config, server, NAME).map_err(|error| format!("connecting: {error}"))?;
        let connection = connecting.await.map_err(|error| format!("connecting to {server}: {error}"))?;
        let (mut asking, mut stream) = connection.open_bi().await.map_err(|error| format!("asking: {error}"))?;
        asking.write_all(b"file").await.map_err(|error| format!("asking: {error}"))?;
        // It was opened a moment ago.
        let _ = asking.finish();
        let mut copy = File::create(&self.copy).map_err(|error| on(&self.copy, &error))?;
        let mut first = None;
        while let Some(chunk) =
            stream.read_chunk(usize::MAX, true).await.map_err(|error| format!("receiving: {error}"))?
        {
            first.get_or_insert_with(|| began.elapsed());
            copy.write_all(&chunk.bytes).map_err(|error| on(&self.copy, &error))?;
        }
        let last = began.elapsed();
        connection.close(VarInt::from_u32(0), b"");
        endpoint.wait_idle().await;
        Ok(Times { first: first.unwrap_or(last).as_secs_f64(), last: last.as_secs_f64() })
    }
}

#[expect(clippy::disallowed_methods, reason = "a program in real time")]
fn begun() -> Instant {
    Instant::now()
}

fn endpoint(own: SocketAddr, server: Option<quinn::ServerConfig>) -> Result<Endpoint, String> {
    let failed = |error: std::io::Error| format!("the socket {own} of UDP cannot be had: {error}");
    let socket = UdpSocket::bind(own).map_err(failed)?;
    // Programs have to live with less, too.
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(UNREAD);
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime)).map_err(failed)
}

fn address(host: &str, port: u16) -> Result<SocketAddr, String> {
    let found = (host, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?.next();
    found.ok_or_else(|| format!("{host} has no address"))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().map_err(|error| format!("starting: {error}"))
}

fn on(file: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", file.display())
}
