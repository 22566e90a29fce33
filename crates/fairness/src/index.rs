//! Indices of how evenly something is shared.

/// Jain's index `(Σx)² / (n·Σx²)` of the shares `x`: 1 when all are equal, 1/n when one takes everything.
///
/// The unit of account (flow or sub-flow) is the caller's choice and belongs beside the number. `None` without shares or
/// when all of them are zero, where the index is not defined.
///
/// Source: R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC-TR-301 (1984).
pub fn jain(shares: &[f64]) -> Option<f64> {
    // Divided by the largest, so that neither tiny nor huge shares leave the range of the squares.
    let largest = shares.iter().fold(0.0_f64, |most, share| most.max(share.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return None;
    }
    let sum: f64 = shares.iter().map(|share| share / largest).sum();
    let squares: f64 = shares.iter().map(|share| (share / largest) * (share / largest)).sum();
    Some(sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::jain;
    use proptest::prelude::*;

    #[test]
    fn without_shares_there_is_no_index() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[1.0, f64::INFINITY]), None);
        assert_eq!(jain(&[1e-200, 1e-200]), Some(1.0));
    }

    proptest! {
        #[test]
        fn lies_between_one_nth_and_one_and_ignores_the_unit(
            shares in prop::collection::vec(0.001_f64..1e9, 1..50),
            unit in 1e-6_f64..1e6,
        ) {
            let index = jain(&shares).unwrap();
            prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / shares.len() as f64 - 1e-12);
            let scaled: Vec<f64> = shares.iter().map(|share| share * unit).collect();
            prop_assert!((jain(&scaled).unwrap() - index).abs() < 1e-12);
        }
    }
}
