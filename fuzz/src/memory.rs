//! The oracle for memory: bytes on the heap, counted by the allocator and not by the code under test.

use cap::Cap;
use std::alloc::System;

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes on the heap now.
pub fn held() -> usize {
    HEAP.allocated()
}

/// Where a count begins.
#[derive(Clone, Copy, Debug)]
pub struct Watch(usize);

impl Watch {
    /// Counts from here.
    #[allow(clippy::new_without_default, reason = "a beginning is said, not implied")]
    pub fn new() -> Self {
        Self(held())
    }

    /// Bytes more than at the beginning.
    pub fn grown(self) -> usize {
        held().saturating_sub(self.0)
    }

    /// Panics where more than `bound` bytes are held, with what they are held for.
    pub fn assert_below(self, bound: usize, what: &str) {
        let grown = self.grown();
        assert!(grown <= bound, "{what} holds {grown} bytes, more than {bound}");
    }
}
