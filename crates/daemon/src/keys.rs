//! Host identities as files: PEM, readable by their owner only, written whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

pub use hip::identity::Algorithm;
use hip::identity::{HostIdentity, PublicIdentity};
use wire::Hit;

use crate::dns::parse_name;
use crate::dns::record::HipRecord;

/// Why no key was made.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file is there already; whoever overwrites it loses the identity in it.
    #[error("{path} exists, and the identity in it would be lost: choose another file, or --force")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("writing {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No key came out.
    #[error("making the key: {0}")]
    Generate(String),
}

/// The public half of the host identity in a file.
///
/// # Errors
/// A sentence: the file cannot be read, or is no key.
pub fn read(path: &Path) -> Result<PublicIdentity, String> {
    let pem = fs::read_to_string(path).map(zeroize::Zeroizing::new);
    let pem = pem.map_err(|error| format!("the host identity {} cannot be read: {error}", path.display()))?;
    let identity = HostIdentity::from_pem(&pem);
    identity
        .map(|identity| identity.public().clone())
        .map_err(|error| format!("{} is no host identity: {error}", path.display()))
}

/// The line of a zone file that tells a host's identity and its rendezvous servers (RFC 8005 §6).
///
/// # Errors
/// A sentence that says which name is none.
pub fn dns_record(identity: &PublicIdentity, name: &str, servers: &[String]) -> Result<String, String> {
    let name = parse_name(name)?;
    let servers = servers.iter().map(|server| parse_name(server)).collect::<Result<_, _>>()?;
    let record = HipRecord::of(identity, servers).ok_or("the DNS has no number for this kind of key")?;
    Ok(format!("{name} IN {record}"))
}

/// Makes a host identity, writes it to `path` with mode 0600, and returns its HIT. An existing file is replaced only with
/// `force`.
///
/// # Errors
/// Where the file exists or cannot be written.
pub fn generate(path: &Path, algorithm: Algorithm, force: bool) -> Result<Hit, KeyError> {
    // Before the work, because an RSA key takes a while; what counts is the check while writing.
    if !force && path.exists() {
        return Err(KeyError::Exists { path: path.to_owned() });
    }
    let mut random = crate::time::random().map_err(|error| KeyError::Generate(error.to_string()))?;
    let identity =
        HostIdentity::generate(algorithm, &mut random).map_err(|error| KeyError::Generate(error.to_string()))?;
    write(path, identity.to_pem().as_bytes(), force).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
        _ => KeyError::Write { path: path.to_owned(), source },
    })?;
    Ok(identity.hit())
}

/// Writes a file beside the final one and moves it there, so that no reader ever sees a part of it.
fn write(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "this names no file"))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let result = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        // A link fails where the name is taken; renaming would replace.
        if force { fs::rename(&temporary, path) } else { fs::hard_link(&temporary, path) }
    })();
    let _ = fs::remove_file(&temporary);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_is_private_and_not_overwritten_unless_forced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.pem");
        let first = generate(&path, Algorithm::EcdsaP256, false).expect("a key");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert!(matches!(generate(&path, Algorithm::EcdsaP256, false), Err(KeyError::Exists { .. })));
        let kept = HostIdentity::from_pem(&fs::read_to_string(&path).expect("text")).expect("a key");
        assert_eq!(kept.hit(), first);
        let second = generate(&path, Algorithm::EcdsaP256, true).expect("a key");
        assert_eq!(read(&path).map(|identity| identity.hit()), Ok(second));
        assert_ne!(first, second);
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1, "nothing else is left");
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_with_the_path() {
        let error = generate(Path::new("/nonexistent/a.pem"), Algorithm::EcdsaP256, false).expect_err("no directory");
        assert!(error.to_string().starts_with("writing /nonexistent/a.pem: "), "{error}");
    }
}
