//! How two series go together, and which paths are compared.

/// By what part a pair of values counts less with each one that follows.
pub(crate) const FADE: f64 = 0.01;

/// Pearson's correlation of two series, in which older values count less.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Correlation {
    /// How many values there are.
    count: f64,
    /// Means of both, of their squares and of their product.
    means: (f64, f64),
    squares: (f64, f64),
    product: f64,
}

impl Correlation {
    /// The next value of each.
    pub(crate) fn count(&mut self, one: f64, other: f64) {
        self.count += 1.0;
        let means = [(&mut self.means.0, one), (&mut self.means.1, other), (&mut self.product, one * other)];
        let squares = [(&mut self.squares.0, one * one), (&mut self.squares.1, other * other)];
        for (mean, value) in means.into_iter().chain(squares) {
            *mean += weight(self.count) * (value - *mean);
        }
    }

    /// The correlation, from -1 to 1; `None` of fewer than so many values, and where one series does not vary.
    pub(crate) fn of(&self, values: f64) -> Option<f64> {
        let Self { means, squares, product, .. } = *self;
        let variances = (squares.0 - means.0 * means.0, squares.1 - means.1 * means.1);
        let size = (variances.0 * variances.1).sqrt();
        (self.count >= values && size > 0.0).then(|| (product - means.0 * means.1) / size)
    }

    /// The root mean squares of both.
    pub(crate) fn sizes(&self) -> (f64, f64) {
        (self.squares.0.sqrt(), self.squares.1.sqrt())
    }

    /// The standard deviation of what chance gives where nothing goes together.
    pub(crate) fn chance(&self) -> f64 {
        1.0 / self.count.min(1.0 / FADE).sqrt()
    }
}

/// The mean of values, in which older ones count less; zero before the first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    count: f64,
    pub(crate) value: f64,
}

impl Mean {
    /// The next value.
    pub(crate) fn count(&mut self, value: f64) {
        self.count += 1.0;
        self.value += weight(self.count) * (value - self.value);
    }
}

/// Two paths that are compared, by their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

impl Slots {
    /// The pairs that the slots from `first` to `last` add to those below `first`.
    pub(crate) fn added(first: usize, last: usize) -> impl Iterator<Item = Self> {
        (first..=last).flat_map(|high| (0..high).map(move |low| Self { low, high }))
    }

    /// Whether a path is one of the two.
    pub(crate) fn have(self, slot: usize) -> bool {
        self.low == slot || self.high == slot
    }
}

/// What the last of so many values counts in a mean in which older ones fade.
pub(crate) fn weight(count: f64) -> f64 {
    FADE.max(1.0 / count)
}
