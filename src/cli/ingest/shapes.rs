//! Check that the columns of new documents fit those of a living corpus, before a commit.
//!
//! A table needs one type for each column. Numbers and texts have a common type; a value and a list
//! have none, so a table of such parts, and `tadoc optimize`, would fail after the commit. Documents
//! without columns fit always, and nothing is read for them. Otherwise the columns of each part are read
//! once, O(parts).

use std::collections::HashSet;
use std::path::Path;

use datafusion::arrow::datatypes::Schema;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion_tadoc::contain_panics;
use datafusion_tadoc::user_columns::join_schemas;
use tadoc::format::read_columns;
use tadoc_session::{CorpusFile, Failure, Outcome};
use tadoc_store::Version;

use crate::living::Living;

/// Columns of the parts that were read so far.
pub struct Shapes {
    joined: Schema,
    known: HashSet<String>,
}

impl Default for Shapes {
    fn default() -> Self {
        Self { joined: Schema::empty(), known: HashSet::new() }
    }
}

impl Shapes {
    /// Checks that the columns `added` fit those of `version`.
    ///
    /// # Errors
    /// A column has no common type, or a part cannot be read.
    pub fn check(&mut self, living: &Living, version: &Version, added: &Schema) -> Outcome {
        let location = living.store.location();
        for part in &version.parts {
            let is_new = part.file_name().is_some_and(|name| self.known.insert(name));
            let file =
                if is_new { living.resolver.part(Path::new(&location), part)? } else { None };
            if let Some(columns) = file.map(|file| schema_of(&file)).transpose()?.flatten() {
                // Parts that do not fit each other are the fault of an earlier program.
                self.joined =
                    join_schemas(&self.joined, &columns).unwrap_or_else(|_| self.joined.clone());
            }
        }
        match join_schemas(&self.joined, added) {
            Ok(_) => Ok(()),
            Err(reason) => Err(Failure::new(format!(
                "{location}: {reason}: the documents there have another shape; pass --no-columns to keep the \
                 text only"
            ))),
        }
    }
}

/// Returns the columns of a file, if it has any.
fn schema_of(file: &CorpusFile) -> Outcome<Option<Schema>> {
    let Some(section) = &file.footer.columns else { return Ok(None) };
    let bytes = file.read(section.offset..section.offset.saturating_add(section.len))?;
    let parquet = read_columns(&file.name, section, &bytes)?;
    let what = format!("{}: section columns", file.name);
    let read = || ParquetRecordBatchReaderBuilder::try_new(parquet);
    let reader =
        contain_panics(&what, read)?.map_err(|error| Failure::with_cause(&what, &error))?;
    Ok(Some(reader.schema().as_ref().clone()))
}
