//! Adds documents to a living corpus: a part, and one commit.
//!
//! Before the commit it checks that the columns of new documents fit those of the corpus ([`Shapes`]). A table needs
//! one type for each column. Numbers and texts have a common type; a value and a list have none, so a table of such
//! parts, and `tadoc optimize`, would fail after the commit. Documents without columns fit always, and nothing is read
//! for them. Otherwise the columns of each part are read once, O(parts).

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::Schema;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion_tadoc::contain_panics;
use datafusion_tadoc::user_columns::join_schemas;
use tadoc::Error;
use tadoc::format::read_columns;
use tadoc_documents::Input;
use tadoc_session::{CorpusFile, Failure, Outcome, interrupt, note};
use tadoc_store::{Bookmark, Change, CommitKind, PartWriter, Version, WrittenPart};

use super::job::{Done, Job};
use crate::inputs::Found;
use crate::living::Living;
use crate::taken::{KnownOrigins, Origins, TakenPaths};

/// A bookmark that a commit moves.
pub struct Moved {
    /// Place of the bookmark before the commit, if it exists.
    pub before: Option<String>,
    /// Bookmark behind the inputs.
    pub after: Bookmark,
}

/// Options of added documents.
pub struct Appending<'a> {
    /// The corpus, as the user names it.
    pub location: &'a Path,
    /// Share of edits above which the corpus is compressed anew.
    pub recompress_ratio: f64,
    /// If true, documents are added whose path is there already.
    pub may_duplicate: bool,
}

/// Adds the documents of `found` to the living corpus in one commit, and prints a summary.
pub fn append(mut job: Job, living: &Living, found: Found, how: &Appending<'_>) -> Outcome {
    let quiet = job.quiet;
    let say = |text: String| {
        if !quiet {
            note(text);
        }
    };
    let Found { inputs, files, .. } = found;
    let name = living.store.location();
    job.options.profile = living.store.profile();
    let base = living.version(None)?;
    let ingest = job.options;
    let origins = Origins::new(&inputs, &files, &job.division.documents);
    if !how.may_duplicate {
        let documents = &job.division.documents;
        let leaving = HashSet::new();
        let mut taken = TakenPaths::read(living, how.location, &base, documents, &leaving)?;
        taken.check(&inputs, &files, &origins)?;
        job.taken = Some(Arc::new(taken));
    }
    let taken = job.taken.clone();
    let (part, done) = match write(living, job, inputs, &base, &mut Shapes::default())? {
        Written::Nothing(done) => {
            say(format!("{name}: nothing to add\n{}", done.times()));
            return Ok(());
        }
        Written::Part(part, done) => (part, done),
    };
    let checked = base.number;
    let version = living.update(base, |latest| {
        if let Some(taken) = taken.as_ref().filter(|_| latest.number != checked) {
            taken.check_part(living, how.location, latest, &part.part)?;
        }
        let change = Change::append(CommitKind::Append, std::slice::from_ref(&part));
        if origins.is_empty() {
            return Ok(change);
        }
        let start = latest.num_doc_ids();
        let ids = start..start.saturating_add(part.part.num_docs());
        let after = KnownOrigins::new(latest).with(ids, &origins);
        Ok(change.with_bookmark(KnownOrigins::place(latest), after))
    })?;
    say(done.summary(&format!("{name}: version {}", version.number)));
    if let Some(done) = living.recompress(&version, how.recompress_ratio, ingest) {
        say(done);
    }
    Ok(())
}

/// Adds the documents of `inputs` in one commit, which moves a bookmark, too. Returns `None` if there are no
/// documents. `shapes` is kept between commits.
///
/// # Errors
/// An input cannot be read, the part cannot be written, its columns do not fit those of `base`, or another
/// commit has moved the bookmark.
pub fn add(
    living: &Living,
    job: Job,
    inputs: Vec<Input>,
    base: &Version,
    shapes: &mut Shapes,
    moved: Option<Moved>,
) -> Outcome<Option<(Version, Done)>> {
    let (part, done) = match write(living, job, inputs, base, shapes)? {
        Written::Nothing(_) => return Ok(None),
        Written::Part(part, done) => (part, done),
    };
    let change = Change::append(CommitKind::Append, &[part]);
    let change = match moved {
        Some(Moved { before, after }) => change.with_bookmark(before, after),
        None => change,
    };
    let version = living.wait(living.store.commit(base, &change))?;
    Ok(Some((version, done)))
}

/// A part that no version has yet.
pub enum Written {
    /// The inputs have no documents.
    Nothing(Done),
    /// The part, and the facts of its file.
    Part(WrittenPart, Done),
}

/// Writes the documents of `inputs` as a part.
///
/// # Errors
/// An input cannot be read, the part cannot be written, or its columns do not fit those of `base`.
pub fn write(living: &Living, job: Job, inputs: Vec<Input>, base: &Version, shapes: &mut Shapes) -> Outcome<Written> {
    let outcome = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&outcome);
    let file = living.store.location();
    let heeds_interrupts = job.heeds_interrupts;
    let write = move |out: &mut PartWriter| {
        let written = job.write(&inputs, out, &file).map(|(_, done)| done);
        let footer = match &written {
            Ok(done) if done.report.footer.num_docs() > 0 => Ok(done.report.footer.clone()),
            // Any error ends the file. The real reason is in `kept`.
            _ => Err(Error::Cancelled),
        };
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
        footer
    };
    let written = living.store.write_part(write);
    let written = living.wait(async { Ok(written.await) })?;
    let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (part, done) = match (written, outcome) {
        (Ok(part), Some(Ok(done))) => (part, done),
        (Err(Error::Cancelled), Some(Ok(done))) => return Ok(Written::Nothing(done)),
        (Err(Error::Cancelled), Some(Err(failure))) => return Err(failure),
        (Err(error), _) => return Err(error.into()),
        (Ok(_), _) => return Err(Failure::new("the builder broke down")),
    };
    if let Some(schema) = &done.schema {
        shapes.check(living, base, schema)?;
    }
    if heeds_interrupts && interrupt::is_asked() {
        return Err(Failure::interrupted());
    }
    Ok(Written::Part(part, done))
}

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
            let file = if is_new { living.resolver.part(Path::new(&location), part)? } else { None };
            if let Some(columns) = file.map(|file| schema_of(&file)).transpose()?.flatten() {
                // Parts that do not fit each other are the fault of an earlier program.
                self.joined = join_schemas(&self.joined, &columns).unwrap_or_else(|_| self.joined.clone());
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
    let reader = contain_panics(&what, read)?.map_err(|error| Failure::with_cause(&what, &error))?;
    Ok(Some(reader.schema().as_ref().clone()))
}
