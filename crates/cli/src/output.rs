//! What goes to the terminal: results to the standard output, everything else to the standard error.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::commands::Failure;

/// Writes a result. A reader that has gone, as in `sinnet status | head -1`, is no failure.
///
/// # Errors
/// Where the standard output is full or closed.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    watched(text).map(|_| ())
}

/// As [`result`], and says whether there is still a reader.
///
/// # Errors
/// Where the standard output is full or closed.
pub(crate) fn watched(text: &str) -> Result<bool, Failure> {
    write(|out| out.write_all(text.as_bytes()))
}

/// Writes a result as JSON on one line, piece by piece, as [`result`] does.
///
/// # Errors
/// Where the standard output is full or closed.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    write(|out| serde_json::to_writer(out, value).map_err(io::Error::from)).map(|_| ())
}

fn write(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match content(&mut out).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("writing the result: {error}"))),
    }
}

/// Tells why there is no result.
pub(crate) fn error(text: &str) {
    // Where even that fails there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "sinnet: {text}");
}
