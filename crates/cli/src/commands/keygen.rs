//! `sinnet keygen`: a new host identity, or what is told of one that there is.

use std::path::PathBuf;

use daemon::keys::{self, Algorithm, KeyError};

use super::Failure;
use crate::output;

/// Make a host identity: a private key in a file, and the HIT that others know this host by.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file to write; only its owner can read it.
    #[arg(long, value_name = "FILE", required_unless_present = "key")]
    out: Option<PathBuf>,
    /// Make none, but tell of the identity in FILE.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "algorithm", "force"])]
    key: Option<PathBuf>,
    /// The kind of key.
    #[arg(long, value_enum, default_value = "ecdsa-p384")]
    algorithm: Kind,
    /// Replace the file if it exists. The identity in it is lost.
    #[arg(long)]
    force: bool,
    /// Print the HIP record (RFC 8005) of the host NAME, for a zone file of the DNS.
    #[arg(long, value_name = "NAME")]
    dns: Option<String>,
    /// A rendezvous server of the record; again for more of them, the best first.
    #[arg(long, value_name = "NAME", requires = "dns")]
    rvs: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    #[value(name = "ecdsa-p384")]
    EcdsaP384,
    #[value(name = "ecdsa-p256")]
    EcdsaP256,
    #[value(name = "rsa")]
    Rsa,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Before a key is made that nobody wants because a name is wrong.
    for name in arguments.dns.iter().chain(&arguments.rvs) {
        daemon::dns::parse_name(name).map_err(Failure::input)?;
    }
    let identity = match (&arguments.key, &arguments.out) {
        (Some(key), _) => keys::read(key).map_err(Failure::input)?,
        (None, Some(out)) => {
            generate(out, arguments)?;
            keys::read(out).map_err(Failure::failed)?
        }
        (None, None) => return Err(Failure::input("--out FILE says where the key goes".to_owned())),
    };
    let record = arguments.dns.as_ref().map(|name| keys::dns_record(&identity, name, &arguments.rvs));
    let (hit, record) = (identity.hit(), record.transpose().map_err(Failure::input)?);
    if arguments.json {
        let file = arguments.key.as_ref().or(arguments.out.as_ref());
        let mut told = serde_json::json!({"hit": hit.to_string(), "file": file});
        if let Some(record) = record {
            told["dns"] = record.into();
        }
        return output::result(&told.to_string());
    }
    match record {
        // In a zone file the first line is a comment.
        Some(record) => output::result(&format!("; {hit}\n{record}")),
        None => output::result(&hit.to_string()),
    }
}

fn generate(out: &std::path::Path, arguments: &Arguments) -> Result<(), Failure> {
    let algorithm = match arguments.algorithm {
        Kind::EcdsaP384 => Algorithm::EcdsaP384,
        Kind::EcdsaP256 => Algorithm::EcdsaP256,
        Kind::Rsa => Algorithm::Rsa,
    };
    let made = keys::generate(out, algorithm, arguments.force);
    made.map(|_| ()).map_err(|error| match error {
        KeyError::Exists { .. } | KeyError::Write { .. } => Failure::input(error.to_string()),
        KeyError::Generate(_) => Failure::failed(error.to_string()),
    })
}
