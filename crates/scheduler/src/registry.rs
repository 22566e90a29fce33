//! The names of the schedulers. A new one is its file, and a line in the list at the end.

use std::str::FromStr;

use clock::Instant;

use crate::*;

/// One line a scheduler: its name in scenario files, its type, and what it is.
macro_rules! registry {
    ($($name:literal => $scheduler:ident, $about:literal;)*) => {
        /// Any scheduler: an enumeration, so that the choice costs a predictable jump.
        #[derive(Clone, Debug)]
        pub enum Scheduler {
            $(#[doc = $about] $scheduler($scheduler),)*
        }

        impl Scheduler {
            /// The names of all schedulers, as scenario files write them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The scheduler's name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$scheduler(_) => $name,)* }
            }

            /// What the scheduler is, in a line.
            pub fn about(&self) -> &'static str {
                match self { $(Self::$scheduler(_) => $about,)* }
            }
        }

        impl FromStr for Scheduler {
            type Err = UnknownScheduler;

            fn from_str(name: &str) -> Result<Self, UnknownScheduler> {
                match name {
                    $($name => Ok(Self::$scheduler($scheduler::default())),)*
                    _ => Err(UnknownScheduler { name: name.to_owned() }),
                }
            }
        }

        impl PathScheduler for Scheduler {
            #[inline]
            fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision {
                match self { $(Self::$scheduler(scheduler) => scheduler.select(packet, paths, now),)* }
            }
            fn on_window_limited(&mut self, now: Instant) {
                match self { $(Self::$scheduler(scheduler) => scheduler.on_window_limited(now),)* }
            }
            fn is_redundant(&self) -> bool {
                match self { $(Self::$scheduler(scheduler) => scheduler.is_redundant(),)* }
            }
            fn wants_forecast(&self) -> bool {
                match self { $(Self::$scheduler(scheduler) => scheduler.wants_forecast(),)* }
            }
        }
    };
}

/// A name that no scheduler has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scheduler is called {name:?}; there are {}", Scheduler::NAMES.join(", "))]
pub struct UnknownScheduler {
    /// The name asked for.
    pub name: String,
}

registry! {
    "lowest-rtt" => LowestRtt, "The open path of the least round-trip time, as MPTCP of Linux.";
    "round-robin" => RoundRobin, "One packet on each open path in turn.";
    "weighted" => Weighted, "Round robin by the rates of the paths.";
    "redundant" => Redundant, "Every packet on every path.";
    "fastest-path-first" => FastestPathFirst, "The path on which the packet arrives earliest, by delay and rate.";
    "blest" => Blest, "Lowest round-trip time, but no slow path that would block the receiver's window.";
    "ecf" => Ecf, "Lowest round-trip time, but no slow path that would finish after the fast one.";
    "sttf" => Sttf, "The shortest transfer time, in rounds with growing windows.";
    "otias" => Otias, "Out of order so as to arrive in order.";
    "daps" => Daps, "Places in the order of their arrival, laid out ahead.";
    "cheapest-path-first" => CheapestPathFirst, "The first path, and what does not fit on the next.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_is_what_its_text_says() {
        for name in Scheduler::NAMES {
            let scheduler = name.parse::<Scheduler>().unwrap();
            assert_eq!(scheduler.name(), *name);
            assert!(!scheduler.about().is_empty());
        }
        let error = "rr".parse::<Scheduler>().unwrap_err().to_string();
        assert!(error.starts_with("no scheduler is called \"rr\"; there are lowest-rtt, round-robin, "), "{error}");
    }
}
