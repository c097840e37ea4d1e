//! Writing: `COPY … STORED AS TADOC`, `CREATE EXTERNAL TABLE`, and statements that change living corpora.

pub(crate) mod building;
mod factory;
pub(crate) mod file_format;
pub(crate) mod living;
pub(crate) mod upload;
pub(crate) mod whole_files;

use datafusion::datasource::sink::DataSink;

pub use factory::TadocTableFactory;
pub use file_format::TadocFormatFactory;
pub use upload::check_writable;

/// Returns true if nothing that `sink` writes is seen before all of it is written. Sinks of GSST columns are not known
/// here.
pub(crate) fn shows_all_or_nothing(sink: &dyn DataSink) -> bool {
    whole_files::writes_files(sink) || sink.is::<file_format::TadocSink>() || living::commits_once(sink)
}
