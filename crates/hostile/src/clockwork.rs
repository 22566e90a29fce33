//! The only place that reads the clock and waits.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Failure;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on an interrupt is an error of the next [`pause`]; a second one ends the process at once.
pub(crate) fn listen() -> Result<(), Failure> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(flag))?;
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(())
}

/// Real time.
#[expect(clippy::disallowed_methods, reason = "attacks happen in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits.
///
/// # Errors
/// When somebody wants an end.
pub(crate) fn pause(time: Duration) -> Result<(), Failure> {
    doze(time);
    if INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        return Err("interrupted; everything is cleaned up".into());
    }
    Ok(())
}

/// Waits, in a thread that somebody else ends.
#[expect(clippy::disallowed_methods, reason = "attacks happen in real time")]
pub(crate) fn doze(time: Duration) {
    std::thread::sleep(time);
}
