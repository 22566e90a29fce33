//! `sinnet keygen`: a new host identity.

use std::path::PathBuf;

use daemon::keys::{self, Algorithm, KeyError};

use super::Failure;
use crate::output;

/// Make a host identity: a private key in a file, and the HIT that others know this host by.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file to write; only its owner can read it.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The kind of key.
    #[arg(long, value_enum, default_value = "ecdsa-p384")]
    algorithm: Kind,
    /// Replace the file if it exists. The identity in it is lost.
    #[arg(long)]
    force: bool,
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
    let algorithm = match arguments.algorithm {
        Kind::EcdsaP384 => Algorithm::EcdsaP384,
        Kind::EcdsaP256 => Algorithm::EcdsaP256,
        Kind::Rsa => Algorithm::Rsa,
    };
    let hit = keys::generate(&arguments.out, algorithm, arguments.force).map_err(|error| match error {
        KeyError::Exists { .. } | KeyError::Write { .. } => Failure::input(error.to_string()),
        KeyError::Generate(_) => Failure::failed(error.to_string()),
    })?;
    if arguments.json {
        return output::result(&serde_json::json!({"hit": hit.to_string(), "file": arguments.out}).to_string());
    }
    output::result(&hit.to_string())
}
