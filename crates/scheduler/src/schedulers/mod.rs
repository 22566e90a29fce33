//! The schedulers and their names. A new one is its file, its module here, and a line in the list at the end.

mod blest;
mod cheapest;
mod daps;
mod ecf;
mod fastest_path_first;
mod lowest_rtt;
mod otias;
mod redundant;
mod round_robin;
mod sttf;
mod weighted;

pub use blest::Blest;
pub use cheapest::CheapestPathFirst;
pub use daps::Daps;
pub use ecf::Ecf;
pub use fastest_path_first::FastestPathFirst;
pub use lowest_rtt::LowestRtt;
pub use otias::Otias;
pub use redundant::Redundant;
pub use round_robin::RoundRobin;
pub use sttf::Sttf;
pub use weighted::Weighted;

use std::str::FromStr;

use clock::Instant;

use crate::custom::{Custom, CustomScheduler};
use crate::{Decision, Needs, PacketMeta, PathScheduler, PathView, Reference};

/// One line a scheduler: its name in scenario files, its type, what it is, and where its file says how it chooses.
macro_rules! registry {
    ($($name:literal => $scheduler:ident, $about:literal, $reference:path;)*) => {
        /// What each scheduler's file tells of it, in the order of [`Scheduler::NAMES`].
        pub(crate) const REFERENCE: &[Reference] = &[$($reference),*];

        /// Any scheduler: an enumeration, so that the choice costs a predictable jump.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Scheduler {
            $(#[doc = $about] $scheduler($scheduler),)*
            /// From outside of this crate.
            Custom(Custom),
        }

        impl Scheduler {
            /// The names of all schedulers, as scenario files write them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The scheduler's name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$scheduler(_) => $name,)* Self::Custom(scheduler) => scheduler.name() }
            }

            /// What the scheduler is, in a line.
            pub fn about(&self) -> &'static str {
                match self { $(Self::$scheduler(_) => $about,)* Self::Custom(_) => "From outside." }
            }

            /// A scheduler from outside of this crate, for whoever takes a [`Scheduler`]. No text names it.
            pub fn custom(name: &'static str, scheduler: impl CustomScheduler + 'static) -> Self {
                Self::Custom(Custom::new(name, scheduler))
            }
        }

        impl FromStr for Scheduler {
            type Err = UnfitScheduler;

            fn from_str(name: &str) -> Result<Self, UnfitScheduler> {
                match name {
                    $($name => Ok(Self::$scheduler($scheduler::default())),)*
                    _ => Err(UnfitScheduler::Unknown { name: name.to_owned() }),
                }
            }
        }

        impl PathScheduler for Scheduler {
            #[inline]
            fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision {
                match self { $(Self::$scheduler(scheduler) => scheduler.select(packet, paths, now),)* Self::Custom(scheduler) => scheduler.select(packet, paths, now) }
            }
            fn on_window_limited(&mut self, now: Instant) {
                match self { $(Self::$scheduler(scheduler) => scheduler.on_window_limited(now),)* Self::Custom(scheduler) => scheduler.on_window_limited(now) }
            }
            fn needs(&self) -> Needs {
                match self { $(Self::$scheduler(scheduler) => scheduler.needs(),)* Self::Custom(scheduler) => scheduler.needs() }
            }
        }
    };
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::FastestPathFirst(FastestPathFirst::default())
    }
}

impl Scheduler {
    /// The scheduler of this name for an owner that `has` so much for it.
    ///
    /// # Errors
    /// There is none of this name, or it needs more.
    pub fn fitting(name: &str, has: Needs) -> Result<Self, UnfitScheduler> {
        name.parse::<Self>()?.check(has)
    }

    /// The scheduler itself, where its owner has enough for it.
    ///
    /// # Errors
    /// [`UnfitScheduler::Lacks`].
    pub fn check(self, has: Needs) -> Result<Self, UnfitScheduler> {
        match self.needs().beyond(has) {
            None => Ok(self),
            Some(lacks) => Err(UnfitScheduler::Lacks { name: self.name(), lacks }),
        }
    }

    /// The names of those that an owner has enough for.
    pub fn fitting_names(has: Needs) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().copied().filter(move |name| Self::fitting(name, has).is_ok())
    }
}

/// A name that stands for no scheduler, or for none that its owner can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitScheduler {
    /// No scheduler is called so.
    #[error("no scheduler is called \"{name}\"")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// It needs what there is not.
    #[error("\"{name}\" needs {lacks}, which there are not here")]
    Lacks {
        /// The scheduler.
        name: &'static str,
        /// What it needs.
        lacks: &'static str,
    },
}

registry! {
    "lowest-rtt" => LowestRtt, "The open path of the least round-trip time, as MPTCP of Linux.", lowest_rtt::REFERENCE;
    "round-robin" => RoundRobin, "One packet on each open path in turn.", round_robin::REFERENCE;
    "weighted" => Weighted, "Round robin by the rates of the paths.", weighted::REFERENCE;
    "redundant" => Redundant, "Every packet on every path.", redundant::REFERENCE;
    "fastest-path-first" => FastestPathFirst, "The path on which the packet arrives earliest, by delay and rate.", fastest_path_first::REFERENCE;
    "blest" => Blest, "Lowest round-trip time, but no slow path that would block the receiver's window.", blest::REFERENCE;
    "ecf" => Ecf, "Lowest round-trip time, but no slow path that would finish after the fast one.", ecf::REFERENCE;
    "sttf" => Sttf, "The shortest transfer time, in rounds with growing windows.", sttf::REFERENCE;
    "otias" => Otias, "Out of order so as to arrive in order.", otias::REFERENCE;
    "daps" => Daps, "Places in the order of their arrival, laid out ahead.", daps::REFERENCE;
    "cheapest-path-first" => CheapestPathFirst, "The first path, and what does not fit on the next.", cheapest::REFERENCE;
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
        assert_eq!(error, "no scheduler is called \"rr\"");
        assert_eq!(Scheduler::default().name(), "fastest-path-first");
    }

    #[test]
    fn an_owner_refuses_what_it_has_not_enough_for() {
        let fit = |has| Scheduler::fitting_names(has).collect::<Vec<_>>();
        assert_eq!(fit(Needs::ALL), Scheduler::NAMES);
        assert_eq!(fit(Needs::NOTHING), ["lowest-rtt", "round-robin", "weighted", "cheapest-path-first"]);
        let has = Needs { queues: false, ..Needs::ALL };
        let error = Scheduler::fitting("otias", has).unwrap_err().to_string();
        assert_eq!(error, "\"otias\" needs queues of single paths, which there are not here");
    }
}
