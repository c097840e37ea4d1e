//! Writing: `COPY … STORED AS TADOC`, `CREATE EXTERNAL TABLE`, and statements that change living corpora.

pub(crate) mod building;
mod factory;
pub(crate) mod file_format;
pub(crate) mod living;
pub(crate) mod upload;
pub(crate) mod whole_files;

pub use factory::TadocTableFactory;
pub use file_format::TadocFormatFactory;
pub use upload::check_writable;
