//! What random networks are drawn with.

use clock::Rng;

/// Evenly on a scale of logarithms, so that small ones are as many as large ones.
pub(crate) fn logarithmic(rng: &mut Rng, (low, high): (f64, f64)) -> f64 {
    rng.range(low.ln(), high.ln()).exp()
}
