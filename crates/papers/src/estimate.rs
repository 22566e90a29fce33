//! A measured number with its 95 % interval.

use fairness::statistics::{Estimate, student_t};

/// A number over independent runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean over the runs; for a spread the mean over its members.
    pub mean: f64,
    /// Lower end of the 95 % interval; the least member of a spread.
    pub low: f64,
    /// Upper end of the 95 % interval; the greatest member of a spread.
    pub high: f64,
    /// Independent runs that it comes from; of a spread, runs per member.
    pub seeds: usize,
    /// True: a spread over several settings, of which every member has to be accepted, not only the mean.
    pub spread: bool,
}

impl Measured {
    /// Mean and Student's interval of `values`, one per run (`ALGORITHMS.md` §11.3); `None` without any. A single run has
    /// an interval of no width.
    pub fn of(values: &[f64]) -> Option<Self> {
        let Estimate { n, mean, half_width, .. } = Estimate::of(values)?;
        let half = half_width.unwrap_or(0.0);
        Some(Self { mean, low: mean - half, high: mean + half, seeds: n, spread: false })
    }

    /// The ratio of the means of two quantities of the same runs, with Fieller's interval (E. C. Fieller, "Some problems
    /// in interval estimation", J. R. Stat. Soc. B 16, 1954). `None` without runs, where the lengths differ, or where the
    /// divisor is not clearly apart from zero.
    pub fn ratio(over: &[f64], under: &[f64]) -> Option<Self> {
        let n = over.len();
        if n == 0 || n != under.len() {
            return None;
        }
        let count = n as f64;
        let (a, b) = (over.iter().sum::<f64>() / count, under.iter().sum::<f64>() / count);
        let mean = a / b;
        if n == 1 {
            return mean.is_finite().then_some(Self { mean, low: mean, high: mean, seeds: 1, spread: false });
        }
        let moment = |x: &[f64], mx: f64, y: &[f64], my: f64| {
            x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / (count - 1.0) / count
        };
        let t = student_t(0.975, n - 1);
        let (vaa, vbb, vab) = (moment(over, a, over, a), moment(under, b, under, b), moment(over, a, under, b));
        // (a − r·b)² = t²·(vaa − 2r·vab + r²·vbb), solved for r.
        let square = b * b - t * t * vbb;
        let linear = a * b - t * t * vab;
        let constant = a * a - t * t * vaa;
        let root = linear * linear - square * constant;
        if !(square > 0.0 && root >= 0.0) {
            return None;
        }
        let (low, high) = ((linear - root.sqrt()) / square, (linear + root.sqrt()) / square);
        Some(Self { mean, low, high, seeds: n, spread: false })
    }

    /// The members' means as one row: their mean, the least and the greatest. `None` without members.
    pub fn spread(members: &[Self]) -> Option<Self> {
        let mean = members.iter().map(|member| member.mean).sum::<f64>() / members.len() as f64;
        let low = members.iter().map(|member| member.mean).fold(f64::INFINITY, f64::min);
        let high = members.iter().map(|member| member.mean).fold(f64::NEG_INFINITY, f64::max);
        let seeds = members.iter().map(|member| member.seeds).min()?;
        Some(Self { mean, low, high, seeds, spread: true })
    }

    /// Whether it is reproduced: the mean lies in `accept`, or all members of a spread do.
    pub fn accepted(&self, accept: [f64; 2]) -> bool {
        let [least, greatest] = accept;
        let (low, high) = if self.spread { (self.low, self.high) } else { (self.mean, self.mean) };
        least <= low && high <= greatest
    }
}

/// R² of the least-squares line through the points `(x, y)`; `None` for fewer than three points or all x alike.
pub fn r_squared(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
    let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    (xx > 0.0 && yy > 0.0).then(|| xy * xy / (xx * yy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // 1, 2, 3: mean 2, sd 1, t(0.975, 2) = 4.302653.
        let measured = Measured::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((measured.high - (2.0 + 4.302_653 / 3.0_f64.sqrt())).abs() < 1e-6);
        assert_eq!((measured.mean, measured.seeds), (2.0, 3));
        assert_eq!(Measured::of(&[]), None);
    }

    /// Fieller's condition: for r at an end of the interval, a t test of a − r·b against zero is at its edge.
    #[test]
    fn the_ends_of_a_ratio_are_at_the_edge_of_a_t_test() {
        let (over, under) = ([3.9, 4.1, 3.7, 4.0, 3.6], [3.6, 3.4, 3.9, 3.5, 3.8]);
        let measured = Measured::ratio(&over, &under).unwrap();
        assert!((measured.mean - 19.3 / 18.2).abs() < 1e-12);
        for end in [measured.low, measured.high] {
            let differences: Vec<f64> = over.iter().zip(&under).map(|(a, b)| a - end * b).collect();
            let test = Measured::of(&differences).unwrap();
            assert!(test.low.abs().min(test.high.abs()) < 1e-9, "{end}");
        }
        assert!(measured.low < measured.mean && measured.mean < measured.high);
        assert_eq!(Measured::ratio(&over, &[0.1, -0.1, 0.2, -0.2, 0.0]), None);
        assert_eq!(Measured::ratio(&over, &[1.0]), None);
    }

    #[test]
    fn of_a_spread_every_member_counts() {
        let member = |mean| Measured { mean, low: mean, high: mean, seeds: 25, spread: false };
        let spread = Measured::spread(&[member(0.9), member(1.2)]).unwrap();
        assert!(!spread.accepted([1.0, 1.1]) && spread.accepted([0.9, 1.2]));
        assert!(member(1.05).accepted([1.0, 1.1]));
    }

    #[test]
    fn linearity() {
        // Anscombe's first data set: R² = 0.6665.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        assert!((r_squared(&points).unwrap() - 0.6665).abs() < 1e-4);
        assert_eq!(r_squared(&[(1.0, 1.0), (2.0, 2.0)]), None);
    }
}
