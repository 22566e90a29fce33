//! Deterministic functions beyond + − × ÷ √, made of those. The library's may differ between machines.

/// The real cube root, for any finite number; to the last bit or two.
pub(crate) fn cbrt(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let a = x.abs();
    // A third of the exponent is a start within 20 %; each of Newton's steps squares the error.
    let mut y = f64::from_bits(a.to_bits() / 3 + (0x2a9f_u64 << 48) + 0x7893_0000_0000);
    for _ in 0..5 {
        y = (2.0 * y + a / (y * y)) / 3.0;
    }
    if x < 0.0 { -y } else { y }
}

/// `1 − e^−x` for `x ≥ 0` (0 for any other), within 1e-14: a probability that grows with `x`.
pub(crate) fn one_minus_exp_of_minus(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return 0.0;
    }
    if x > 40.0 {
        return 1.0; // e^−40 is below the last bit.
    }
    // Taylor's series of 1 − e^−y at y = x / 2^k ≤ 1/2 ...
    let (mut y, mut doublings) = (x, 0);
    while y > 0.5 {
        y /= 2.0;
        doublings += 1;
    }
    let (mut term, mut sum) = (y, y);
    for n in 2..16 {
        term *= -y / f64::from(n);
        sum += term;
    }
    // ... and 1 − e^−2y = p (2 − p) with p = 1 − e^−y.
    for _ in 0..doublings {
        sum *= 2.0 - sum;
    }
    sum
}

/// The smallest whole number of bytes not below `bytes`. A millionth of a byte is an error of rounding, not a reason for
/// one byte more.
pub(crate) fn ceil(bytes: f64) -> f64 {
    (bytes - 1e-6).ceil()
}

#[cfg(test)]
mod tests {
    use super::{cbrt, ceil, one_minus_exp_of_minus};

    #[test]
    fn the_cube_of_the_root_is_the_number() {
        assert_eq!(cbrt(0.0), 0.0);
        for x in [1e-12, 0.001, 0.4, 1.0, 2.0, 8.0, 27.0, 75.0, 1e6, 1e15] {
            let y = cbrt(x);
            assert!((y * y * y / x - 1.0).abs() < 1e-14, "{x} {y}");
            assert_eq!(cbrt(-x), -y);
        }
    }

    #[test]
    fn the_exponential_is_that_of_the_library() {
        for x in [1e-12, 1e-3, 0.1, 0.49, 0.51, 1.0, 2.0, 7.5, 20.0, 39.9] {
            let library = -f64::exp_m1(-x);
            assert!((one_minus_exp_of_minus(x) / library - 1.0).abs() < 1e-14, "{x}");
        }
        for (x, p) in [(-1.0, 0.0), (0.0, 0.0), (f64::NAN, 0.0), (1e9, 1.0), (f64::INFINITY, 1.0)] {
            assert_eq!(one_minus_exp_of_minus(x), p);
        }
    }

    #[test]
    fn whole_bytes() {
        assert_eq!(ceil(1089.0 + 1e-10), 1089.0);
        assert_eq!(ceil(816.75), 817.0);
        assert_eq!(ceil(0.0), 0.0);
    }
}
