//! Jobs on all cores, results in the order of the jobs.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// What became of a list of jobs.
#[derive(Debug)]
pub struct Outcome<T, E> {
    /// One result per job, in the order of the jobs; `None` for those that were not run to the end.
    pub results: Vec<Option<T>>,
    /// The error of the first job, in the order of the jobs, that failed.
    pub error: Option<E>,
    /// True if `stop` ended it early.
    pub stopped: bool,
}

/// Something for the caller of [`for_each`] to look at.
#[derive(Clone, Copy, Debug)]
pub enum Tick {
    /// One more job has its result.
    Finished,
    /// A while has passed.
    Time,
}

/// How often the caller's thread is called when nothing is finished.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs `job(0)` … `job(count - 1)` on `threads` threads; calls `look` on the caller's thread after each success, and every
/// now and then.
///
/// Once `stop` is set, or a job has failed, no further job is begun; those under way are finished and kept. A job that wants
/// to end early on `stop` returns `Ok(None)`.
pub fn for_each<T: Send, E: Send>(
    count: usize,
    threads: NonZeroUsize,
    stop: &AtomicBool,
    job: impl Fn(usize) -> Result<Option<T>, E> + Sync,
    mut look: impl FnMut(Tick),
) -> Outcome<T, E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let mut results: Vec<Option<T>> = Vec::new();
    results.resize_with(count, || None);
    let mut first_error: Option<(usize, E)> = None;
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.get().min(count) {
            let (sender, next, failed, job) = (sender.clone(), &next, &failed, &job);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let result = job(index);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    if sender.send((index, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            let (index, result) = match receiver.recv_timeout(PATIENCE) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    look(Tick::Time);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            match result {
                Ok(Some(value)) => {
                    look(Tick::Finished);
                    if let Some(slot) = results.get_mut(index) {
                        *slot = Some(value);
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    if first_error.as_ref().is_none_or(|(first, _)| index < *first) {
                        first_error = Some((index, error));
                    }
                }
            }
        }
    });
    let stopped = stop.load(Ordering::Relaxed) && results.iter().any(Option::is_none);
    Outcome { results, error: first_error.map(|(_, error)| error), stopped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn results_are_in_the_order_of_the_jobs_with_any_number_of_threads() {
        for count in [1, 2, 7, 64] {
            let mut seen = 0;
            let outcome = for_each(
                20,
                threads(count),
                &AtomicBool::new(false),
                |i| Ok::<_, ()>(Some(i * i)),
                |tick| {
                    seen += usize::from(matches!(tick, Tick::Finished));
                },
            );
            assert_eq!(outcome.results, (0..20).map(|i| Some(i * i)).collect::<Vec<_>>());
            assert_eq!(seen, 20);
            assert!(outcome.error.is_none() && !outcome.stopped);
        }
    }

    #[test]
    fn a_stop_keeps_what_is_finished() {
        let stop = AtomicBool::new(false);
        let outcome = for_each(
            100,
            threads(1),
            &stop,
            |i| Ok::<_, ()>(Some(i)),
            |tick| {
                if matches!(tick, Tick::Finished) {
                    stop.store(true, Ordering::Relaxed);
                }
            },
        );
        assert!(outcome.stopped || outcome.results.iter().all(Option::is_some));
        assert_eq!(outcome.results.first(), Some(&Some(0)));
    }

    #[test]
    fn the_first_error_is_told_and_nothing_new_begins() {
        let job = |i| if i == 1 { Err("one") } else { Ok(Some(i)) };
        let outcome = for_each(1000, threads(1), &AtomicBool::new(false), job, |_| {});
        assert_eq!(outcome.error, Some("one"));
        assert_eq!(outcome.results.iter().flatten().count(), 1);
    }

    #[test]
    fn no_jobs_are_no_trouble() {
        let outcome = for_each(0, threads(4), &AtomicBool::new(true), |_| Ok::<Option<()>, ()>(None), |_| {});
        assert!(outcome.results.is_empty() && !outcome.stopped);
    }
}
