//! The experiments of the papers: published beside measured, and the report.
//!
//! `published` reads what the papers print. A [`Laboratory`] runs the cases (a scenario file of `scenarios/papers` with
//! settings and a sweep) that experiments need, through `campaign`, and again with Sinnet as it ships in place of the papers'
//! mHIP; [`evaluate`] turns the results into rows; [`report()`]
//! writes the HTML page. No result is kept here: everything is measured when it is asked for, or read from the store of an
//! earlier run of the same program.

mod case;
mod draw;
mod estimate;
mod experiment;
mod experiments;
mod figure;
pub mod friendliness;
mod laboratory;
mod published;
mod reasons;
mod report;
mod results;
mod row;

use campaign::CampaignError;

pub use case::{Case, case};
pub use estimate::{Measured, r_squared};
pub use experiment::{Experiment, Ships, all, find};
pub use figure::{Figure, Series, Style};
pub use laboratory::{Laboratory, Progress, Settings};
pub use published::{Printed, Published, Quantity, published};
pub use reasons::{Column, Reason, differences, reason, reasons};
pub use report::report;
pub use results::{PointView, Results};
pub use row::{Evaluation, Row, Shipped, evaluate, table};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum PapersError {
    /// A file that is part of the program is broken.
    #[error("a file inside the program is broken: {0}")]
    Asset(String),
    /// No such experiment.
    #[error("no experiment is called \"{id}\"; {help}")]
    Unknown {
        /// What was asked for.
        id: String,
        /// What there is.
        help: String,
    },
    /// A scenario cannot be run, or results not be stored.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A scenario makes no sense.
    #[error(transparent)]
    Scenario(#[from] text::Diagnostic),
}
