//! The interface for crates that send scans to other machines. Versions of this crate may change it at any time.
//!
//! ```text
//! TadocExec, RunsExec, …  ─ facts ─▶ message ══▶ message ─ facts ─▶ the same nodes on another machine
//! TadocTable ─ ResolvedTable ─▶ message ══▶ message ─ ResolvedTable ─▶ the same table on another machine
//! ```
//!
//! The messages are those of the other crate. Here are the parts that it takes apart and puts together again. All
//! engines share them: `datafusion-tadoc-distributed` has the messages, for its own workers and for Ballista.
//!
//! ```
//! use datafusion_tadoc::travel::Texts;
//!
//! let texts = Texts::from_rows([("first", "to be")].into_iter());
//! assert_eq!(texts.iter().next(), Some(("to be", "first".to_owned())));
//! ```

pub use crate::corpora::living::{FoundCorpus, Narrowed, open_view};
pub use crate::corpora::location::{SourceFile, object_store, store_of};
pub use crate::corpora::{CorpusCache, OpenFile, Source};
pub use crate::errors::{datafusion_error, shown};
pub use crate::functions::{AtWorker, CorpusFunction, bound_again, with_condition};
pub use crate::gsst::{ColumnFacts, FileFacts, PlannedFiles, gsst_format, gsst_options};
pub use crate::outer_joins::NullableRowsExec;
pub use crate::parquet_files::{NameParquetFiles, parquet_format, parquet_options};
pub use crate::plan_methods::{leaf_methods, one_input_methods, same_rows_methods};
pub use crate::planning::filter::{Filters, Stage};
pub use crate::planning::function::BoundFunction;
pub use crate::planning::long_rows::BatchRowsExec;
pub use crate::planning::parcels::Parcels;
pub use crate::planning::portions::{
    JoinedLists, MergedRowsExec, PlannedRows, PortionFacts, PortionsExec, Run, RunsExec,
};
pub use crate::planning::resolved::ResolvedTable;
pub use crate::planning::table::ResolvedLocation;
pub use crate::planning::{BatchRows, ScanSpec, Texts};
pub use crate::write::living::{SegmentTarget, WriteSegmentsExec};
