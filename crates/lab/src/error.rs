//! What can go wrong in a laboratory, told to the person who started it.

use std::io;

use text::Diagnostic;

/// Why a laboratory could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The system does not let us make namespaces.
    #[error("this system allows no network namespaces ({step}: {cause}). {remedy}")]
    Forbidden {
        /// What was tried.
        step: &'static str,
        /// What the kernel answered.
        cause: io::Error,
        /// What the person can do.
        remedy: &'static str,
    },
    /// A step failed.
    #[error("{step}: {cause}")]
    Io {
        /// What was tried.
        step: String,
        /// What the system answered.
        cause: io::Error,
    },
    /// A program is not installed.
    #[error("the program '{program}' is missing: install it with 'apt install {package}'")]
    MissingProgram {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program ended with an error.
    #[error("{program} failed: {message}")]
    Program {
        /// What was run.
        program: String,
        /// What it said.
        message: String,
    },
    /// The scenario is wrong, or asks for something that a laboratory cannot do.
    #[error("{0}")]
    Scenario(Box<Diagnostic>),
    /// Somebody pressed Ctrl-C.
    #[error("interrupted; everything is cleaned up")]
    Interrupted,
    /// Something did not happen in time.
    #[error("{what} within {seconds} s")]
    Timeout {
        /// What was expected, as the beginning of a sentence that tells it did not happen.
        what: String,
        /// How long we waited.
        seconds: u64,
    },
}

impl From<Diagnostic> for LabError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Scenario(Box::new(diagnostic))
    }
}

/// Names the step that failed.
pub(crate) trait Step<T> {
    fn step(self, step: impl Into<String>) -> Result<T, LabError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl Into<String>) -> Result<T, LabError> {
        self.map_err(|cause| LabError::Io { step: step.into(), cause: cause.into() })
    }
}
