//! How many duplicate acknowledgments mean a loss.

/// The threshold of fast retransmit, as a policy against reordering.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DupThresh {
    /// So many, always: 3 in RFC 5681 §3.2.
    Fixed(u32),
    /// Raised by one with every retransmission that turned out unnecessary (E. Blanton and M. Allman, *On making TCP
    /// more robust to packet reordering*, ACM CCR 32(1), 2002), up to the window.
    Increment {
        /// The threshold now.
        now: u32,
    },
    /// RFC 4653 (TCP-NCR) §3, "careful" limited transmit: two thirds of what is outstanding.
    Careful,
}

impl DupThresh {
    /// The threshold with `flight` packets outstanding. A threshold above what is outstanding would switch fast
    /// retransmit off, so adaptive ones stay at or below nine tenths of that, and none is below 3 (but for a fixed one).
    pub fn threshold(self, flight: u64) -> u32 {
        let flight = u32::try_from(flight).unwrap_or(u32::MAX);
        let most = (f64::from(flight) * 0.9) as u32;
        match self {
            Self::Fixed(threshold) => threshold.max(1),
            Self::Increment { now } => now.min(most).max(3),
            Self::Careful => ((f64::from(flight) * 2.0 / 3.0).ceil() as u32).min(most).max(3),
        }
    }

    /// A retransmission turned out unnecessary.
    pub fn on_spurious(&mut self) {
        if let Self::Increment { now } = self {
            *now = now.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds() {
        assert_eq!(DupThresh::Fixed(3).threshold(1000), 3);
        // Vector ncr.1: 20 packets outstanding, 13.33, compared with a count after rounding up.
        assert_eq!(DupThresh::Careful.threshold(20), 14);
        let mut adaptive = DupThresh::Increment { now: 3 };
        for _ in 0..10 {
            adaptive.on_spurious();
        }
        assert_eq!(adaptive.threshold(100), 13);
        assert_eq!(adaptive.threshold(10), 9);
        assert_eq!(adaptive.threshold(2), 3);
    }
}
