//! Tables `"d$history"`, `"d$segments"` and `"d$edits"` of a living table `d`.
//!
//! | table | one row for each | scope |
//! | --- | --- | --- |
//! | history | version, in order of number | all versions that are kept, up to the statement's |
//! | segments | part: a file, or the documents added by edits of a version | the version of `d` |
//! | edits | edit that is not part of a segment file yet | the version of `d` |
//!
//! Edits are shown as they were committed: `pos` refers to the text at that time, by the `mode` of
//! the version.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::future::ready;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};

use crate::corpora::living::{FoundCorpus, LivingView, Reading};
use crate::errors::datafusion_error;
use crate::planning::table::TadocTable;
use crate::write::living::columns::{edit_rows, edit_schema, history_rows, history_schema, part_rows, part_schema};

/// Tables of a living corpus beside its documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LivingTableKind {
    History,
    Segments,
    Edits,
}

impl LivingTableKind {
    const ALL: [Self; 3] = [Self::History, Self::Segments, Self::Edits];

    fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Segments => "segments",
            Self::Edits => "edits",
        }
    }

    /// Splits a name into the table of the documents and the kind of table.
    pub(super) fn from_name(name: &str) -> Option<(&str, Self)> {
        let (documents, kind) = name.rsplit_once('$')?;
        Self::ALL.into_iter().find(|k| k.as_str() == kind).map(|kind| (documents, kind))
    }
}

impl fmt::Display for LivingTableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A table beside the documents of a living corpus; see the module's description.
#[derive(Debug)]
pub(crate) struct LivingTable {
    kind: LivingTableKind,
    /// Name of the table of the documents.
    name: String,
    documents: Arc<TadocTable>,
    schema: SchemaRef,
}

impl LivingTable {
    pub(super) fn new(kind: LivingTableKind, name: &str, documents: Arc<TadocTable>) -> Self {
        let schema = match kind {
            LivingTableKind::History => history_schema(),
            LivingTableKind::Segments => part_schema(),
            LivingTableKind::Edits => edit_schema(),
        };
        Self { kind, name: name.to_string(), documents, schema }
    }

    /// Returns this table, reading the versions of `reading`.
    pub(super) fn with_reading(&self, reading: &Arc<Reading>) -> Self {
        let documents = self.documents.as_ref().clone().with_reading(Some(reading));
        Self::new(self.kind, &self.name, Arc::new(documents))
    }

    /// Returns the table of the documents if this is the table of their edits.
    pub(super) fn edited_documents(&self) -> Option<&Arc<TadocTable>> {
        (self.kind == LivingTableKind::Edits).then_some(&self.documents)
    }

    /// Returns the error for documents that are not a living corpus.
    fn not_living(&self) -> DataFusionError {
        let (name, kind) = (&self.name, self.kind);
        plan_datafusion_err!(
            "{name}${kind}: {name} is a table of .tadoc files, which never change; expected one of a \
             living corpus, a folder with versions"
        )
    }

    async fn rows(&self, session: &dyn Session) -> Result<Rows> {
        Ok(match self.kind {
            LivingTableKind::History => {
                let found = self.documents.living(session).await?;
                Rows::History(Arc::new(found.ok_or_else(|| self.not_living())?))
            }
            kind => {
                let view = self.documents.living_view(session).await?;
                let view = view.ok_or_else(|| self.not_living())?;
                if kind == LivingTableKind::Edits { Rows::Edits(view) } else { Rows::Segments(view) }
            }
        })
    }
}

#[async_trait]
impl TableProvider for LivingTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = LivingRows { schema: self.schema(), rows: self.rows(session).await? };
        let schema = self.schema();
        let rows: Arc<dyn PartitionStream> = Arc::new(rows);
        let exec = StreamingTableExec::try_new(schema, vec![rows], projection, [], false, limit)?;
        Ok(Arc::new(exec))
    }
}

/// Source of the rows of a table.
#[derive(Debug, Clone)]
enum Rows {
    History(Arc<FoundCorpus>),
    Segments(Arc<LivingView>),
    Edits(Arc<LivingView>),
}

/// Partition of a scan. A scan has only one.
#[derive(Debug)]
struct LivingRows {
    schema: SchemaRef,
    rows: Rows,
}

impl PartitionStream for LivingRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let batches: BoxStream<'static, Result<RecordBatch>> = match self.rows.clone() {
            Rows::History(found) => async move {
                let mut versions = found.store.history().await.map_err(datafusion_error)?;
                versions.retain(|version| version.number <= found.latest.number);
                history_rows(&schema, &versions)
            }
            .into_stream()
            .boxed(),
            Rows::Segments(view) => stream::once(ready(part_rows(&schema, &view))).boxed(),
            Rows::Edits(view) => {
                stream::iter(0..view.edits.len()).map(move |i| edit_rows(&schema, &view.edits[i])).boxed()
            }
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_at_the_last_dollar() {
        assert_eq!(LivingTableKind::from_name("d$history"), Some(("d", LivingTableKind::History)));
        assert_eq!(LivingTableKind::from_name("a$b$edits"), Some(("a$b", LivingTableKind::Edits)));
        for other in ["d", "d$", "d$files", "history", "d$History"] {
            assert_eq!(LivingTableKind::from_name(other), None, "{other}");
        }
    }
}
