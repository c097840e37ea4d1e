//! Writing besides living corpora: `COPY … STORED AS TADOC` and `CREATE EXTERNAL TABLE`.

pub(crate) mod building;
mod factory;
mod file_format;
pub(crate) mod sink;
pub(crate) mod upload;
pub(crate) mod whole_files;

pub use factory::TadocTableFactory;
pub use file_format::TadocFormatFactory;
pub use upload::check_writable;
