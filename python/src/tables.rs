//! Tables of plain columns as Arrow's, handed out through its C data interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::campaign::Values;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, StructArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

use crate::errors::SinnetError;

/// A table of results in Arrow's memory format. polars, pandas, pyarrow and DuckDB take it as it is, without a copy.
#[pyclass(frozen, module = "sinnet")]
pub(crate) struct Table {
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

/// A column of one batch. Words are few and rows many, so that text is a number for each row.
#[derive(Clone)]
enum Column {
    Words { words: Vec<String>, keys: ScalarBuffer<i32> },
    Count(ArrayRef),
    Float(ArrayRef),
}

/// One batch of a table to be.
#[derive(Clone)]
pub(crate) struct Batch {
    rows: usize,
    columns: Vec<(String, Column)>,
}

impl Batch {
    pub(crate) fn of(table: &::campaign::Table) -> Self {
        let rows = table.rows();
        let columns = table.columns().map(|(name, values)| (name.to_owned(), column(values, rows)));
        Self { rows, columns: columns.collect() }
    }
}

fn column(values: &Values, rows: usize) -> Column {
    match values {
        Values::Text(values) => {
            let mut known: BTreeMap<&str, i32> = BTreeMap::new();
            let mut words = Vec::new();
            let keys = values.iter().take(rows).map(|value| {
                *known.entry(value).or_insert_with(|| {
                    words.push(value.clone());
                    (words.len() - 1) as i32
                })
            });
            let keys = keys.collect();
            Column::Words { words, keys }
        }
        Values::Same(value) => Column::Words { words: vec![value.clone()], keys: vec![0; rows].into() },
        Values::Count(values) => {
            Column::Count(Arc::new(UInt64Array::from_iter_values(values.iter().take(rows).copied())))
        }
        Values::SameCount(value) => Column::Count(Arc::new(UInt64Array::from_value(*value, rows))),
        Values::Float(values) => Column::Float(Arc::new(floats(values.iter().take(rows).copied().collect()))),
        Values::SameFloat(value) => Column::Float(Arc::new(floats(vec![*value; rows]))),
    }
}

/// NaN is null: nothing was measured.
fn floats(values: Vec<f64>) -> Float64Array {
    let nulls = values
        .iter()
        .any(|value| value.is_nan())
        .then(|| values.iter().map(|value| !value.is_nan()).collect::<NullBuffer>());
    Float64Array::new(values.into(), nulls)
}

impl Table {
    /// All batches have the columns of the first. All their words have one dictionary.
    pub(crate) fn of(batches: &[Batch]) -> PyResult<Self> {
        let wrong = |error: ArrowError| SinnetError::new_err(error.to_string());
        let Some(first) = batches.first() else {
            return Ok(Self { batches: Vec::new(), schema: Arc::new(Schema::empty()) });
        };
        let fields = first.columns.iter().map(|(name, column)| match column {
            Column::Words { .. } => Field::new_dictionary(name, DataType::Int32, DataType::Utf8, false),
            Column::Count(_) => Field::new(name, DataType::UInt64, false),
            Column::Float(_) => Field::new(name, DataType::Float64, true),
        });
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let dictionaries: Vec<Option<Dictionary>> =
            (0..first.columns.len()).map(|index| Dictionary::of(batches, index)).collect();
        let convert = |batch: &Batch| {
            let columns = batch.columns.iter().zip(&dictionaries);
            let arrays = columns.map(|((_, column), dictionary)| match (column, dictionary) {
                (Column::Words { words, keys }, Some(dictionary)) => dictionary.array(words, keys),
                (Column::Count(array) | Column::Float(array), _) => Ok(Arc::clone(array)),
                (Column::Words { .. }, None) => Err(ArrowError::SchemaError("columns differ".to_owned())),
            });
            let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
            let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.rows));
            RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
        };
        let batches = batches.iter().map(convert).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        Ok(Self { batches, schema })
    }

    pub(crate) fn single(table: &::campaign::Table) -> PyResult<Self> {
        Self::of(&[Batch::of(table)])
    }
}

/// The words of a column over all batches.
struct Dictionary {
    numbers: BTreeMap<String, i32>,
    words: ArrayRef,
}

impl Dictionary {
    fn of(batches: &[Batch], index: usize) -> Option<Self> {
        let mut numbers = BTreeMap::new();
        let mut all = Vec::new();
        for batch in batches {
            let Some((_, Column::Words { words, .. })) = batch.columns.get(index) else { return None };
            for word in words {
                numbers.entry(word.clone()).or_insert_with(|| {
                    all.push(word.clone());
                    (all.len() - 1) as i32
                });
            }
        }
        Some(Self { numbers, words: Arc::new(StringArray::from(all)) })
    }

    fn array(&self, words: &[String], keys: &ScalarBuffer<i32>) -> Result<ArrayRef, ArrowError> {
        let place: Vec<i32> = words.iter().map(|word| self.numbers.get(word).copied().unwrap_or(0)).collect();
        let same = place.iter().enumerate().all(|(index, place)| index as i32 == *place);
        let keys = if same {
            keys.clone()
        } else {
            keys.iter().map(|key| place.get(*key as usize).copied().unwrap_or(0)).collect()
        };
        let array = DictionaryArray::<Int32Type>::try_new(Int32Array::new(keys, None), Arc::clone(&self.words))?;
        Ok(Arc::new(array))
    }
}

#[pymethods]
impl Table {
    /// Names of the columns, from left to right.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.schema.as_ref())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let arrays = self.batches.clone().into_iter().map(|batch| Ok(Arc::new(StructArray::from(batch)) as ArrayRef));
        let field = Arc::new(Field::new_struct("", self.schema.fields().clone(), false));
        to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, field)), requested_schema)
    }

    /// A pandas DataFrame; pandas and pyarrow have to be installed.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method0("to_pandas")
    }

    /// A polars DataFrame; polars has to be installed.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.getattr("DataFrame")?.call1((slf,))
    }

    /// A pyarrow Table; pyarrow has to be installed.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.getattr("table")?.call1((slf,))
    }

    /// A dict of lists, with `None` where nothing was measured.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let all = pyo3::types::PyDict::new(py);
        for (index, field) in self.schema.fields().iter().enumerate() {
            let list = pyo3::types::PyList::empty(py);
            for batch in &self.batches {
                let Some(array) = batch.columns().get(index) else { continue };
                extend(&list, array)?;
            }
            all.set_item(field.name(), list)?;
        }
        Ok(all)
    }

    fn __repr__(&self) -> String {
        format!("<sinnet.Table of {} rows: {}>", self.__len__(), self.columns().join(", "))
    }
}

fn extend(list: &Bound<'_, pyo3::types::PyList>, array: &ArrayRef) -> PyResult<()> {
    let any = array.as_any();
    if let Some(array) = any.downcast_ref::<UInt64Array>() {
        array.iter().try_for_each(|value| list.append(value))
    } else if let Some(array) = any.downcast_ref::<Float64Array>() {
        array.iter().try_for_each(|value| list.append(value))
    } else if let Some(array) = any.downcast_ref::<DictionaryArray<Int32Type>>() {
        match array.downcast_dict::<StringArray>() {
            Some(words) => words.into_iter().try_for_each(|word| list.append(word)),
            None => Ok(()),
        }
    } else {
        Ok(())
    }
}
