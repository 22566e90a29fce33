//! Rules from outside.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::rule::WindowRule;

/// A rule that is not of this crate: see [`Rule::custom`](crate::Rule::custom).
pub struct Custom {
    name: &'static str,
    rule: Box<dyn CustomRule>,
}

/// A [`WindowRule`] that can be cloned behind a pointer. Every rule that is `Clone`, `Debug`, `Send` and `Sync` is one.
pub trait CustomRule: WindowRule + fmt::Debug + Send + Sync {
    /// A copy.
    fn boxed(&self) -> Box<dyn CustomRule>;
}

impl<R: WindowRule + Clone + fmt::Debug + Send + Sync + 'static> CustomRule for R {
    fn boxed(&self) -> Box<dyn CustomRule> {
        Box::new(self.clone())
    }
}

impl Custom {
    pub(crate) fn new(name: &'static str, rule: impl CustomRule + 'static) -> Self {
        Self { name, rule: Box::new(rule) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

impl Clone for Custom {
    fn clone(&self) -> Self {
        Self { name: self.name, rule: (*self.rule).boxed() }
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

impl Deref for Custom {
    type Target = dyn CustomRule;

    fn deref(&self) -> &Self::Target {
        &*self.rule
    }
}

impl DerefMut for Custom {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.rule
    }
}
