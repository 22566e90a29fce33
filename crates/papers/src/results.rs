//! What the cases gave, and how experiments read it.

use std::collections::BTreeMap;
use std::sync::Arc;

use campaign::PointReport;
use clock::Duration;
use scenario::{Point, Scenario};
use simulator::{FlowResult, LinkResult, RunOptions, RunResult};

/// The results of all cases that were run.
#[derive(Debug, Default)]
pub struct Results {
    cases: BTreeMap<&'static str, Points>,
    shipped: BTreeMap<&'static str, Points>,
}

type Points = Arc<Vec<(Point, PointReport)>>;

/// One point of a case's sweep with its runs.
#[derive(Clone, Copy, Debug)]
pub struct PointView<'a> {
    point: &'a Point,
    report: &'a PointReport,
}

impl Results {
    pub(crate) fn add(&mut self, case: &'static str, points: Vec<(Point, PointReport)>) {
        self.cases.insert(case, Arc::new(points));
    }

    /// With the cases of `shipped` run with the product's core in place of the papers' mHIP.
    #[must_use]
    pub fn with_shipped(self, shipped: Self) -> Self {
        Self { shipped: shipped.cases, ..self }
    }

    /// The same with the product's core in place of mHIP in `cases`; `None` unless all of these were run so.
    pub(crate) fn with_shipped_in(&self, cases: &[&'static str]) -> Option<Self> {
        let mut all = self.cases.clone();
        for case in cases {
            all.insert(case, Arc::clone(self.shipped.get(case)?));
        }
        Some(Self { cases: all, shipped: BTreeMap::new() })
    }

    /// Without `cases`, as if they had not been run.
    pub(crate) fn without(&self, cases: &[&'static str]) -> Self {
        let rest = self.cases.iter().filter(|(case, _)| !cases.contains(case));
        Self { cases: rest.map(|(case, points)| (*case, Arc::clone(points))).collect(), shipped: BTreeMap::new() }
    }

    /// The points of a case; none if it was not run.
    pub fn points(&self, case: &str) -> impl Iterator<Item = PointView<'_>> {
        self.cases
            .get(case)
            .into_iter()
            .flat_map(|points| points.iter())
            .map(|(point, report)| PointView { point, report })
    }

    /// The only point of a case without a sweep.
    pub fn point(&self, case: &str) -> Option<PointView<'_>> {
        self.points(case).next()
    }

    /// The point of a case with all these values of its sweep, as the file writes them.
    pub fn at(&self, case: &str, values: &[(&str, &str)]) -> Option<PointView<'_>> {
        self.points(case).find(|point| values.iter().all(|(key, value)| point.value(key) == Some(value)))
    }
}

impl<'a> PointView<'a> {
    /// The value of a swept key whose name ends in `key`, without quotes.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        let found = self.point.values.iter().find(|(name, _)| name.ends_with(key))?;
        Some(found.1.trim_matches('"'))
    }

    /// The number at the beginning of a swept value: 8 of "8Mbit/s".
    pub fn number(&self, key: &str) -> Option<f64> {
        let value = self.value(key)?;
        let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
        value.get(..end)?.parse().ok()
    }

    /// The runs, in the order of their seeds.
    pub fn runs(&self) -> &'a [RunResult] {
        &self.report.runs
    }

    /// A number of each run; none at all where a run has not got it.
    pub fn values(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Vec<f64> {
        self.runs().iter().map(value).collect::<Option<Vec<f64>>>().unwrap_or_default()
    }

    /// A number of the flow called `name`, in each run.
    pub fn flow(&self, name: &str, value: impl Fn(&FlowResult) -> f64) -> Vec<f64> {
        self.values(|run| run.flows.iter().find(|flow| flow.name == name).map(&value))
    }

    /// A number of one direction of a link, such as "n2-n1", in each run.
    pub fn link(&self, name: &str, value: impl Fn(&LinkResult) -> f64) -> Vec<f64> {
        self.values(|run| run.links.iter().find(|link| link.name == name).map(&value))
    }

    /// The scenario.
    pub fn scenario(&self) -> Option<Scenario> {
        self.point.document.scenario().ok()
    }

    /// The first seed's run once more, with samples of all that moves every `interval`.
    pub fn series(&self, interval: Duration) -> Option<RunResult> {
        let seed = self.runs().first()?.seed;
        simulator::run(&self.scenario()?, seed, &RunOptions::every(interval)).ok()
    }
}
