//! The Python package `sinnet`, as far as it is Rust: campaigns, tables, and what calls Python's controllers and schedulers.
//! `lib/sinnet` is what people import.

mod campaign;
mod errors;
mod papers;
mod plugins;
mod tables;

use pyo3::prelude::*;

/// What `import sinnet` is made of.
#[pymodule(gil_used = true)]
fn _sinnet(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let origin = ::campaign::Origin::here();
    module.add("__version__", &origin.version)?;
    module.add("program", &origin.program)?;
    module.add("SinnetError", py.get_type::<errors::SinnetError>())?;
    module.add("ScenarioError", py.get_type::<errors::ScenarioError>())?;
    module.add("StoreError", py.get_type::<errors::StoreError>())?;
    module.add("ControllerError", py.get_type::<errors::ControllerError>())?;
    module.add_class::<campaign::Campaign>()?;
    module.add_class::<campaign::Report>()?;
    module.add_class::<tables::Table>()?;
    module.add_class::<plugins::Path>()?;
    module.add_class::<plugins::Ack>()?;
    module.add_class::<plugins::Loss>()?;
    module.add_class::<plugins::Round>()?;
    module.add_class::<plugins::Window>()?;
    module.add_class::<plugins::PathView>()?;
    module.add_class::<plugins::Packet>()?;
    module.add_function(wrap_pyfunction!(campaign::to_toml, module)?)?;
    module.add_function(wrap_pyfunction!(campaign::assigned, module)?)?;
    module.add_function(wrap_pyfunction!(campaign::table_of_files, module)?)?;
    module.add_function(wrap_pyfunction!(campaign::swept, module)?)?;
    module.add_function(wrap_pyfunction!(campaign::nanoseconds, module)?)?;
    module.add_function(wrap_pyfunction!(campaign::estimate, module)?)?;
    module.add_function(wrap_pyfunction!(papers::list, module)?)?;
    module.add_function(wrap_pyfunction!(papers::run, module)?)?;
    Ok(())
}
