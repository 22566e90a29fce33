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
    use crate::vector::vector;

    #[test]
    fn ncr_1() {
        let (input, output) = vector("ncr.1");
        let flight = input["flight"].as_u64().unwrap() / input["mss"].as_u64().unwrap();
        // The vector's note: it is compared with a count of duplicates after rounding up.
        let careful = output["careful"].as_f64().unwrap().ceil();
        assert_eq!(f64::from(DupThresh::Careful.threshold(flight)), careful);
    }

    /// Of the three ways of the paper, the one that goes by steps.
    #[test]
    fn blanton_1() {
        let (input, output) = vector("blanton.1");
        let mut adaptive = DupThresh::Increment { now: input["dupthresh"].as_u64().unwrap() as u32 };
        adaptive.on_spurious();
        assert_eq!(u64::from(adaptive.threshold(1000)), output["inc_by_1"].as_u64().unwrap());
    }

    #[test]
    fn thresholds() {
        assert_eq!(DupThresh::Fixed(3).threshold(1000), 3);
        let mut adaptive = DupThresh::Increment { now: 3 };
        for _ in 0..10 {
            adaptive.on_spurious();
        }
        assert_eq!(adaptive.threshold(100), 13);
        assert_eq!(adaptive.threshold(10), 9);
        assert_eq!(adaptive.threshold(2), 3);
    }
}
