//! Files that appear whole or not at all, and what to tell a person when they cannot.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Why results could not be stored, or stored results not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory could not be written.
    #[error("{}", sentence(.path, .source))]
    Write {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of an earlier run is not what it should be.
    #[error("{}: {what}. Remove it and start again: what is missing is run again, the rest is kept", .path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The directory holds something else.
    #[error("{}: {what}", .path.display())]
    Foreign {
        /// Which directory.
        path: PathBuf,
        /// What it holds, and what to do.
        what: String,
    },
}

impl StoreError {
    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn foreign(path: &Path, what: impl Into<String>) -> Self {
        Self::Foreign { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn broken(path: &Path, what: impl Into<String>) -> Self {
        Self::Broken { path: path.to_owned(), what: what.into() }
    }
}

fn sentence(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("{path}: the disk is full. Make room and start again: only missing runs are run")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!("{path}: writing here is not allowed ({error}). Take another directory")
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            format!("{path}: a file is where a directory should be. Take another directory")
        }
        _ => format!("{path}: cannot be written: {error}"),
    }
}

/// Creates `path` and what is missing above it.
pub(crate) fn directory(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(|error| StoreError::write(path, error))
}

/// Writes `path` by `content` under another name, then renames: whoever looks sees the whole file or the one before.
pub(crate) fn write_whole(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<(), StoreError> {
    let file = Unfinished::beside(path)?;
    file.write(content)?;
    file.finish()
}

/// A file that has not got its name yet; without [`Unfinished::finish`] it vanishes.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    file: tempfile::NamedTempFile,
}

impl Unfinished {
    /// A file that will be called `path`, in the same directory under a hidden name.
    pub(crate) fn beside(path: &Path) -> Result<Self, StoreError> {
        let parent = path.parent().unwrap_or_else(|| Path::new("."));
        // Readable as the umask says, like any other file, not only by its owner.
        let file = tempfile::Builder::new()
            .prefix(".unfinished-")
            .suffix(".tmp")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(parent)
            .map_err(|error| StoreError::write(path, error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// The file itself, to write to.
    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Adds `content`.
    pub(crate) fn write(
        &self,
        content: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let mut writer = BufWriter::new(self.file());
        content(&mut writer).and_then(|()| writer.flush()).map_err(|error| StoreError::write(&self.path, error))
    }

    /// Makes sure that the content has reached the disk, and gives the file its name.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let Self { path, file } = self;
        file.as_file().sync_all().map_err(|error| StoreError::write(&path, error))?;
        file.persist(&path).map(drop).map_err(|error| StoreError::write(&path, error.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_fails_leaves_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result");
        write_whole(&path, |file| file.write_all(b"first")).unwrap();
        let failure = write_whole(&path, |file| {
            file.write_all(b"sec")?;
            Err(io::Error::from(ErrorKind::StorageFull))
        });
        assert!(failure.unwrap_err().to_string().contains("the disk is full"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    /// /dev/full is the kernel's own full disk.
    #[test]
    fn a_full_disk_is_recognised() {
        let error = File::options().write(true).open("/dev/full").unwrap().write_all(b"x").unwrap_err();
        let told = StoreError::write(Path::new("out/summary.parquet"), error).to_string();
        assert!(told.starts_with("out/summary.parquet: the disk is full."), "{told}");
    }
}
