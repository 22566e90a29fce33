//! Deterministic functions beyond + − × ÷ √, made of those.

/// The real cube root, for any finite number; to the last bit or two. The library's `cbrt` may differ between machines.
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

#[cfg(test)]
mod tests {
    use super::cbrt;

    #[test]
    fn the_cube_of_the_root_is_the_number() {
        assert_eq!(cbrt(0.0), 0.0);
        for x in [1e-12, 0.001, 0.4, 1.0, 2.0, 8.0, 27.0, 75.0, 1e6, 1e15] {
            let y = cbrt(x);
            assert!((y * y * y / x - 1.0).abs() < 1e-14, "{x} {y}");
            assert_eq!(cbrt(-x), -y);
        }
    }
}
