//! Ctrl-C ends a laboratory as a failure does: programs, hosts and files go before we do.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::LabError;
use crate::error::Step;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on an interrupt is noticed at the next [`pause`]; a second one ends the process at once.
pub(crate) fn listen() -> Result<(), LabError> {
    if INTERRUPTED.get().is_some() {
        return Ok(());
    }
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order the first signal does not meet the condition yet.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(flag)).step("listening for signals")?;
        signal_hook::flag::register(signal, Arc::clone(flag)).step("listening for signals")?;
    }
    Ok(())
}

/// Whether somebody wants an end.
pub(crate) fn check() -> Result<(), LabError> {
    let interrupted = INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed));
    if interrupted { Err(LabError::Interrupted) } else { Ok(()) }
}

/// The only place of the laboratory that waits by the clock.
///
/// # Errors
/// When somebody wants an end.
pub(crate) fn pause(time: Duration) -> Result<(), LabError> {
    #[expect(clippy::disallowed_methods, reason = "a laboratory happens in real time")]
    std::thread::sleep(time);
    check()
}
