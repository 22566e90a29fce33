//! What goes to the terminal: results to the standard output, everything else to the standard error.

use std::io::{self, Write as _};

use crate::commands::Failure;

/// Writes a result. A reader that has gone, as in `sinnet status | head -1`, is no failure.
///
/// # Errors
/// Where the standard output is full or closed.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("writing the result: {error}")))
        }
        _ => Ok(()),
    }
}

/// Tells why there is no result.
pub(crate) fn error(text: &str) {
    // Where even that fails there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "sinnet: {text}");
}
