//! Schedulers from outside.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::PathScheduler;

/// A scheduler that is not of this crate: see [`Scheduler::custom`](crate::Scheduler::custom).
pub struct Custom {
    name: &'static str,
    scheduler: Box<dyn CustomScheduler>,
}

/// A [`PathScheduler`] that can be cloned behind a pointer. Every one that is `Clone`, `Debug`, `Send` and `Sync` is one.
pub trait CustomScheduler: PathScheduler + fmt::Debug + Send + Sync {
    /// A copy.
    fn boxed(&self) -> Box<dyn CustomScheduler>;
}

impl<S: PathScheduler + Clone + fmt::Debug + Send + Sync + 'static> CustomScheduler for S {
    fn boxed(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }
}

impl Custom {
    pub(crate) fn new(name: &'static str, scheduler: impl CustomScheduler + 'static) -> Self {
        Self { name, scheduler: Box::new(scheduler) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

impl Clone for Custom {
    fn clone(&self) -> Self {
        Self { name: self.name, scheduler: (*self.scheduler).boxed() }
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scheduler.fmt(f)
    }
}

impl Deref for Custom {
    type Target = dyn CustomScheduler;

    fn deref(&self) -> &Self::Target {
        &*self.scheduler
    }
}

impl DerefMut for Custom {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.scheduler
    }
}
