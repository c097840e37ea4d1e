//! Names of files beside ids of documents: the column `corpus` of functions over several files.
//!
//! ```text
//! kwic('logs/*.tadoc', …)     doc_id, path, left, match, right, …    and corpus
//! near_duplicates('*.tadoc')  doc_id_a, path_a, doc_id_b, …          and corpus_a, corpus_b
//!
//! TadocExec ─ doc_id ─▶ ProjectionExec: file_of_document(doc_id, ends, names) AS corpus
//! ```
//!
//! Ids count through the documents of all files in order. So the ends of the files say which one has a document. The
//! functions themselves know nothing of these columns, and a statement that asks for none of them has the plan of a
//! single file. A name takes O(log files).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{DFSchema, exec_err, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarUDF, Volatility, create_udf, ident, lit};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion::scalar::ScalarValue;

use crate::corpora::Source;

/// The column with ids of documents, whose name is part of the names of others.
const DOC_ID: &str = "doc_id";
/// The column with the file of each document.
const CORPUS: &str = "corpus";

/// A column with the file of each document of a column of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileColumn {
    /// Position of the column of ids.
    ids: usize,
    field: FieldRef,
}

impl FileColumn {
    /// Returns the columns with files for those of `columns` that have ids of documents.
    pub(crate) fn all(columns: &Schema) -> Vec<Self> {
        let fields = columns.fields().iter().enumerate();
        let ids = fields.filter(|(_, field)| field.data_type() == &DataType::Int64 && field.name().contains(DOC_ID));
        let named = ids.map(|(ids, field)| (ids, field.name().replace(DOC_ID, CORPUS)));
        let new = named.filter(|(_, name)| columns.index_of(name).is_err());
        new.map(|(ids, name)| Self { ids, field: Arc::new(Field::new(name, DataType::Utf8View, true)) }).collect()
    }

    /// Returns `columns` with the fields of `added` behind them.
    pub(super) fn behind(columns: &SchemaRef, added: &[Self]) -> SchemaRef {
        if added.is_empty() {
            return Arc::clone(columns);
        }
        let fields = added.iter().map(|column| Arc::clone(&column.field));
        let fields = columns.fields().iter().cloned().chain(fields);
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), columns.metadata().clone()))
    }
}

/// The columns of a scan, as positions in those of its function with files behind them.
#[derive(Debug)]
pub(super) struct WantedColumns<'a> {
    added: &'a [FileColumn],
    num_own: usize,
    positions: Vec<usize>,
    /// Positions that the function returns: its own, and the ids of the files.
    pub(super) own: Vec<usize>,
}

impl<'a> WantedColumns<'a> {
    /// Divides `positions` for a function with `num_own` columns, and `added` behind them.
    pub(super) fn new(positions: Vec<usize>, num_own: usize, added: &'a [FileColumn]) -> Self {
        let mut own: Vec<usize> = positions.iter().copied().filter(|&position| position < num_own).collect();
        for &position in positions.iter().filter(|&&position| position >= num_own) {
            let ids = added.get(position - num_own).map(|column| column.ids);
            own.extend(ids.filter(|ids| !own.contains(ids)));
        }
        Self { added, num_own, positions, own }
    }

    /// Adds the names of the files of `source` to the rows of `plan`, which has the columns `own`.
    ///
    /// # Errors
    /// The errors of planning.
    pub(super) fn over(
        &self,
        session: &dyn Session,
        source: &Source,
        plan: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.positions.iter().all(|&position| position < self.num_own) {
            return Ok(plan);
        }
        let schema = plan.schema();
        let columns = DFSchema::try_from(Arc::clone(&schema))?;
        let mut exprs: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::new();
        for &position in &self.positions {
            let (expr, name) = if position < self.num_own {
                let name = schema.field(self.place_of(position)?).name();
                (ident(name), name.clone())
            } else {
                let column = &self.added[position - self.num_own];
                let ids = schema.field(self.place_of(column.ids)?).name();
                (file_of(ident(ids), source)?, column.field.name().clone())
            };
            exprs.push((session.create_physical_expr(expr, &columns)?, name));
        }
        Ok(Arc::new(ProjectionExec::try_new(exprs, plan)?))
    }

    /// Returns the place of the column at `position` among `own`.
    fn place_of(&self, position: usize) -> Result<usize> {
        let place = self.own.iter().position(|&own| own == position);
        place.ok_or_else(|| internal_datafusion_err!("the scan has no column {position}"))
    }
}

/// Returns the call that finds the file of the document `id`.
fn file_of(id: Expr, source: &Source) -> Result<Expr> {
    let mut end = 0u64;
    let mut ends = Vec::new();
    let mut names = Vec::new();
    for open in source.corpora() {
        end = end.saturating_add(open.footer.num_docs());
        ends.push(i64::try_from(end).unwrap_or(i64::MAX));
        names.push(open.file.path.as_str());
    }
    let constants: [ArrayRef; 2] = [Arc::new(Int64Array::from(ends)), Arc::new(StringArray::from(names))];
    let [ends, names] = constants.map(|array| lit(SingleRowListArrayBuilder::new(array).build_list_scalar()));
    Ok(function().call(vec![id, ends, names]))
}

/// Returns the function that the plan calls. It has the ends of the files and their names as constants, so it travels
/// with the plan.
pub(crate) fn function() -> ScalarUDF {
    let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
    let arguments = vec![DataType::Int64, list(DataType::Int64), list(DataType::Utf8)];
    create_udf("file_of_document", arguments, DataType::Utf8View, Volatility::Immutable, Arc::new(files))
}

fn files(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let [ids, ColumnarValue::Scalar(ScalarValue::List(ends)), ColumnarValue::Scalar(ScalarValue::List(names))] =
        arguments
    else {
        return exec_err!("file_of_document: expected ids, and constant lists of ends and of names");
    };
    let ids = ids.to_array(1)?;
    let ends = ends.value(0);
    let names = cast(&names.value(0), &DataType::Utf8View)?;
    let ends = ends.as_primitive::<Int64Type>().values();
    let num_names = names.len();
    let place = |id: i64| {
        let place = ends.partition_point(|&end| end <= id);
        if place < num_names { u32::try_from(place).ok() } else { None }
    };
    let places: UInt32Array = ids.as_primitive::<Int64Type>().iter().map(|id| place(id?)).collect();
    // All rows share the bytes of the names.
    Ok(ColumnarValue::Array(take(&names, &places, None)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::find_signature;

    fn names_for(function: &str) -> Vec<String> {
        let columns = find_signature(function).unwrap().schema();
        FileColumn::all(&columns).iter().map(|column| column.field.name().clone()).collect()
    }

    #[test]
    fn each_column_of_ids_has_one_of_files() {
        assert_eq!(names_for("kwic"), ["corpus"]);
        assert_eq!(names_for("near_duplicates"), ["corpus_a", "corpus_b"]);
        assert_eq!(names_for("log_templates"), ["corpus", "first_corpus", "last_corpus"]);
        assert_eq!(names_for("word_count"), [""; 0]);
    }

    #[test]
    fn documents_belong_to_the_file_before_whose_end_they_lie() {
        let list = |array: ArrayRef| {
            let ScalarValue::List(list) = SingleRowListArrayBuilder::new(array).build_list_scalar() else {
                panic!("a list")
            };
            ColumnarValue::Scalar(ScalarValue::List(list))
        };
        // The second file is empty.
        let ends = list(Arc::new(Int64Array::from(vec![2, 2, 5])));
        let names = list(Arc::new(StringArray::from(vec!["a", "b", "c"])));
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), Some(1), Some(2), Some(4), Some(5), None]));
        let ColumnarValue::Array(found) = files(&[ColumnarValue::Array(ids), ends, names]).unwrap() else {
            panic!("an array")
        };
        let found: Vec<Option<&str>> = found.as_string_view().iter().collect();
        assert_eq!(found, [Some("a"), Some("a"), Some("c"), Some("c"), None, None]);
    }
}
