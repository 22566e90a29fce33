//! Figures: data for the charts of the report.

use serde::Serialize;

/// One chart.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Which figure of the paper it is, and what to look at.
    pub caption: String,
    /// Name of the horizontal axis with its unit.
    pub x: String,
    /// Name of the vertical axis with its unit.
    pub y: String,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// One line, or points, or bars.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Positions.
    pub points: Vec<(f64, f64)>,
    /// Ends of the 95 % intervals of the points, where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A line through the points.
    Line,
    /// A broken line, for what is expected or printed.
    Dashed,
    /// A line that jumps.
    Step,
    /// Points by themselves.
    Points,
    /// Bars.
    Bars,
}

impl Figure {
    /// A figure without series.
    pub fn new(title: impl Into<String>, caption: impl Into<String>, x: &str, y: &str) -> Self {
        Self { title: title.into(), caption: caption.into(), x: x.to_owned(), y: y.to_owned(), series: Vec::new() }
    }

    /// With one more series; one without points is left out.
    pub fn with(mut self, name: impl Into<String>, style: Style, points: Vec<(f64, f64)>) -> Self {
        if !points.is_empty() {
            self.series.push(Series { name: name.into(), style, points, intervals: Vec::new() });
        }
        self
    }

    /// With one more series of measured points, each with its interval.
    pub fn measured(mut self, name: impl Into<String>, points: &[(f64, crate::Measured)]) -> Self {
        if !points.is_empty() {
            self.series.push(Series {
                name: name.into(),
                style: Style::Line,
                points: points.iter().map(|(x, measured)| (*x, measured.mean)).collect(),
                intervals: points.iter().map(|(_, measured)| (measured.low, measured.high)).collect(),
            });
        }
        self
    }
}
