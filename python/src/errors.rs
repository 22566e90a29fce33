//! What is raised.

use ::campaign::CampaignError;
use ::papers::PapersError;
use pyo3::prelude::*;
use pyo3::{create_exception, exceptions::PyException};
use text::Diagnostic;

create_exception!(sinnet, SinnetError, PyException, "What this package raises.");
create_exception!(
    sinnet,
    ScenarioError,
    SinnetError,
    "A scenario makes no sense. `str` is what the command line prints; `line`, `column`, `message`, `help` and `source` are its parts."
);
create_exception!(sinnet, StoreError, SinnetError, "Results cannot be stored, or stored ones not be used.");
create_exception!(
    sinnet,
    ControllerError,
    SinnetError,
    "A controller or scheduler in Python failed: `seed` and `time_s` say where, `__cause__` is what it raised."
);

pub(crate) fn scenario(py: Python<'_>, error: &Diagnostic) -> PyErr {
    let raised = ScenarioError::new_err(error.to_string());
    let value = raised.value(py);
    let parts = || {
        value.setattr("line", error.line())?;
        value.setattr("column", error.column())?;
        value.setattr("message", error.message())?;
        value.setattr("help", error.help())?;
        value.setattr("source", error.source_name())
    };
    match parts() {
        Ok(()) => raised,
        Err(other) => other,
    }
}

pub(crate) fn campaign(py: Python<'_>, error: &CampaignError) -> PyErr {
    match error {
        CampaignError::Scenario(diagnostic) => scenario(py, diagnostic),
        CampaignError::Store(error) => StoreError::new_err(error.to_string()),
        other => SinnetError::new_err(other.to_string()),
    }
}

pub(crate) fn papers(py: Python<'_>, error: &PapersError) -> PyErr {
    match error {
        PapersError::Campaign(error) => campaign(py, error),
        PapersError::Scenario(diagnostic) => scenario(py, diagnostic),
        other => SinnetError::new_err(other.to_string()),
    }
}
