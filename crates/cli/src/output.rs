//! What goes to the terminal: results to the standard output, everything else to the standard error.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::commands::Failure;

/// Writes a result. A reader that has gone, as in `sinnet status | head -1`, is no failure.
///
/// # Errors
/// Where the standard output is full or closed.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    write(|out| out.write_all(text.as_bytes()))
}

/// Writes a result as JSON on one line, piece by piece, as [`result`] does.
///
/// # Errors
/// Where the standard output is full or closed.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    write(|out| serde_json::to_writer(out, value).map_err(io::Error::from))
}

fn write(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match content(&mut out).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
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
