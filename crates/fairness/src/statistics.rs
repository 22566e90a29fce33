//! Statistics of simulation runs (`ALGORITHMS.md` §11): one value per run, never samples pooled inside a run.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean, spread and 95 % confidence interval of one value per independent run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Number of runs.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (n − 1); `None` for a single run.
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval, `t(0.975, n−1)·sd/√n`; `None` for a single run.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The estimate from `values`, one per run; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let n = values.len();
        let sd = standard_deviation(values);
        let half_width = sd.map(|sd| student_t(0.975, n - 1) * sd / (n as f64).sqrt());
        Some(Self { n, mean, sd, half_width })
    }
}

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation with n − 1 in the denominator, in two passes; `None` for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Quantile `p` of Student's t with `degrees` degrees of freedom; NaN for `degrees` = 0 or `p` outside (0, 1).
pub fn student_t(p: f64, degrees: usize) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return f64::NAN;
    }
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

/// Quantile `p` in [0, 1] of `sorted` (ascending), linear between the two nearest ranks (type 7 of Hyndman and Fan 1996,
/// the default of NumPy and R); `None` without values. `p` outside the range is taken as its nearest end.
pub fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = p.clamp(0.0, 1.0) * last as f64;
    let below = (rank.floor() as usize).min(last);
    let low = *sorted.get(below)?;
    let high = *sorted.get((below + 1).min(last))?;
    Some(low + (high - low) * (rank - below as f64))
}

/// The warm-up of `series` by MSER with batches of `batch` values (White 1997; MSER-5 with `batch` = 5): how many values
/// to leave out so that the standard error of the rest is least. Looks at the first half only; 0 for a series shorter
/// than two batches.
pub fn mser(series: &[f64], batch: usize) -> usize {
    let batch = batch.max(1);
    let means: Vec<f64> = series.chunks_exact(batch).filter_map(mean).collect();
    let mut best = (f64::INFINITY, 0);
    for cut in 0..means.len() / 2 {
        let Some(rest) = means.get(cut..) else { break };
        let n = rest.len() as f64;
        let centre = rest.iter().sum::<f64>() / n;
        let error = rest.iter().map(|value| (value - centre) * (value - centre)).sum::<f64>() / (n * n);
        // A margin above rounding, so that of equal cuts the earliest wins on every machine.
        if error < best.0 - 1e-15 {
            best = (error, cut);
        }
    }
    best.1 * batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_has_a_mean_and_no_interval() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[3.0]), Some(Estimate { n: 1, mean: 3.0, sd: None, half_width: None }));
    }

    #[test]
    fn quantiles_as_numpy_gives_them() {
        // numpy.quantile([1, 2, 4, 8], [0, .25, .5, .95, 1])
        let values = [1.0, 2.0, 4.0, 8.0];
        for (p, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 3.0), (0.95, 7.4), (1.0, 8.0)] {
            assert!((quantile(&values, p).unwrap() - expected).abs() < 1e-12, "{p}");
        }
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
    }

    #[test]
    fn student_t_of_nothing_is_not_a_number() {
        assert!(student_t(0.975, 0).is_nan());
        assert!(student_t(1.5, 4).is_nan());
    }

    #[test]
    fn a_series_without_warm_up_keeps_all() {
        assert_eq!(mser(&[], 5), 0);
        assert_eq!(mser(&[1.0; 9], 5), 0);
        assert_eq!(mser(&[1.0; 200], 5), 0);
    }
}
