//! The function `corpus_verify(corpus)`: checks every checksum and every structure, and decodes every document.
//!
//! A damaged file is a result, not an error: its rows say what is wrong. The rows of a file are its sections in order,
//! `decode` for each segment, and `file` for the checks of the whole file (header, padding, footer). The status
//! `refused` means that a limit stopped the check; the detail names the limit. Whole files are read, one at a time.
//!
//! For a living corpus, the rows are those of the version's files, each with a row `part` that says if it is the file
//! that the version names. A row `edits` follows for each version with edits. If all checks succeed, the last row is
//! `apply`: the edits are applied, and every document of the result is decoded.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectStoreExt;

use crate::corpora::Source;
use crate::corpora::living::FoundCorpus;
use crate::corpora::location::{SourceFile, store_of};
use crate::errors::task_error;
use crate::options::TadocOptions;
use crate::planning::function::{Definition, Reads, TableFunction};
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, no_column};
use crate::user_columns::check_tables;
use tadoc::Error;
use tadoc::format::{FileFooter, FooterOutcome, SectionMeta, SegmentMeta};
use tadoc::read::DocumentDecoder;
use tadoc::segment::Corpus;
use tadoc_store::{Part, Version, VersionEdits, assemble};

/// The function `corpus_verify` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "corpus_verify",
        arguments: &[signature::CORPUS, signature::VERSION],
        columns: &[
            signature::text("file", "the file"),
            signature::integer("segment", "number of the segment inside the file; NULL for parts of the file itself")
                .nullable(),
            signature::text("section", "the section, or decode for the whole segment"),
            signature::integer("offset", "where the section begins in the file").nullable(),
            signature::integer("bytes", "stored bytes of the section; decoded bytes for decode").nullable(),
            signature::text("status", "ok or damaged"),
            signature::text("detail", "what is wrong, NULL where nothing is").nullable(),
        ],
        summary: "checks every checksum and decodes every document",
    },
    bind: |_, _| Arc::new(CorpusVerify),
};

#[derive(Debug)]
struct CorpusVerify;

impl TableFunction for CorpusVerify {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn reads(&self) -> Reads {
        Reads::UncheckedCorpora
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let scan = Arc::clone(&run.scan);
            if let Source::Unchecked(found, version) = &scan.source {
                return verify_version(run, found, version).await;
            }
            let reservation = run.reservation("Verify");
            for file in scan.files() {
                let bytes = read_file(&run, file, &reservation).await?;
                let path = file.path.clone();
                let options = scan.options.clone();
                let verify = move || verify_file(&path, &bytes, &options);
                let rows = tokio::task::spawn_blocking(verify).await.map_err(task_error)?;
                if !send(&mut run, &file.path, &rows).await? {
                    break;
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// Reads all bytes of `file`. Reserves memory for them and for the decoded segments.
async fn read_file(run: &Execution, file: &SourceFile, reservation: &MemoryReservation) -> Result<Bytes> {
    reservation.try_resize(file.meta.size as usize)?;
    let store = store_of(&run.runtime, file)?;
    let bytes = store.get(&file.meta.location).await?.bytes().await?;
    run.counter("bytes_read").add(bytes.len());
    let decoded = decoded_bytes(&file.path, &bytes, &run.scan.options);
    reservation.try_resize(bytes.len() + decoded)?;
    Ok(bytes)
}

/// Sends the rows of one file. Returns false if the function should stop.
async fn send(run: &mut Execution, file: &str, rows: &[Row]) -> Result<bool> {
    run.send_async(rows.len(), |name| column(file, rows, name)).await
}

/// Result of one check.
struct Row {
    segment: Option<usize>,
    section: &'static str,
    offset: Option<u64>,
    len_bytes: Option<u64>,
    outcome: Result<(), Error>,
}

fn column(file: &str, rows: &[Row], name: &str) -> datafusion::error::Result<ArrayRef> {
    let integers = |of: &dyn Fn(&Row) -> Option<u64>| -> ArrayRef {
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| of(row).map(|value| value as i64))))
    };
    let texts =
        |of: &dyn Fn(&Row) -> Option<String>| -> ArrayRef { Arc::new(StringViewArray::from_iter(rows.iter().map(of))) };
    Ok(match name {
        "file" => texts(&|_| Some(file.to_string())),
        "segment" => integers(&|row| row.segment.map(|segment| segment as u64)),
        "section" => texts(&|row| Some(row.section.to_string())),
        "offset" => integers(&|row| row.offset),
        "bytes" => integers(&|row| row.len_bytes),
        "status" => texts(&|row| Some(status(&row.outcome).to_string())),
        "detail" => texts(&|row| row.outcome.as_ref().err().map(Error::to_string)),
        other => return no_column(other),
    })
}

fn status(outcome: &Result<(), Error>) -> &'static str {
    match outcome {
        Ok(()) => "ok",
        Err(Error::Capacity { .. }) => "refused",
        Err(_) => "damaged",
    }
}

/// Returns the memory that the decoded file takes, or 0 if its footer cannot be read. Each thread
/// decodes one segment at a time.
fn decoded_bytes(path: &str, bytes: &Bytes, options: &TadocOptions) -> usize {
    let footer = footer(path, bytes, options);
    let segments = || footer.iter().flat_map(|footer| &footer.segments);
    let decoded = |segment: &SegmentMeta| segment.memory_bytes() - segment.decoding_bytes();
    let decoded = segments().map(|segment| decoded(segment).min(options.max_memory_bytes));
    let decoded = decoded.fold(0, u64::saturating_add);
    let num_decoding = segments().count().min(rayon::current_num_threads()) as u64;
    let decoding = segments().map(SegmentMeta::decoding_bytes).max().unwrap_or(0);
    num_decoding.saturating_mul(decoding).saturating_add(decoded) as usize
}

fn footer(path: &str, bytes: &Bytes, options: &TadocOptions) -> Result<FileFooter, Error> {
    match FileFooter::parse(path, bytes, bytes.len() as u64, &options.open_limits())? {
        FooterOutcome::Footer(footer) => Ok(footer),
        FooterOutcome::NeedsTail(len) => Err(Error::Format {
            file: path.to_string(),
            section: "footer",
            offset: bytes.len() as u64,
            reason: format!("expected a footer inside the file, it asks for {len} bytes"),
        }),
    }
}

fn verify_file(path: &str, bytes: &Bytes, options: &TadocOptions) -> Vec<Row> {
    let whole = |section, outcome| Row {
        segment: None,
        section,
        offset: Some(0),
        len_bytes: Some(bytes.len() as u64),
        outcome,
    };
    let footer = match footer(path, bytes, options) {
        Ok(footer) => footer,
        Err(error) => return vec![whole("footer", Err(error))],
    };
    let corpus = Corpus::from_bytes(path, bytes, &options.open_limits());
    let mut rows = Vec::new();
    for (segment_idx, segment) in footer.segments.iter().enumerate() {
        let sections = segment.sections.iter();
        rows.extend(sections.map(|section| section_row(path, bytes, Some(segment_idx), section)));
        if let Ok((_, corpus)) = &corpus {
            rows.push(decode_row(path, corpus, segment_idx, segment, options));
        }
    }
    let file_sections = footer.columns.iter().chain(&footer.others);
    rows.extend(file_sections.map(|section| section_row(path, bytes, None, section)));
    rows.push(whole("file", corpus.map(|_| ())));
    rows
}

fn section_row(path: &str, bytes: &Bytes, segment: Option<usize>, section: &SectionMeta) -> Row {
    // The checked footer guarantees that sections lie inside the file.
    let start = section.offset as usize;
    let len = section.len as usize;
    let stored = bytes.get(start..start.saturating_add(len)).unwrap_or_default();
    let got = crc32c::crc32c(stored);
    let outcome = if got == section.crc32c {
        Ok(())
    } else {
        Err(Error::Checksum {
            file: path.to_string(),
            section: section.kind.name(),
            offset: section.offset,
            expected: section.crc32c,
            got,
        })
    };
    let offset = Some(section.offset);
    let len_bytes = Some(section.len);
    Row { segment, section: section.kind.name(), offset, len_bytes, outcome }
}

/// Decodes every document of a segment.
fn decode_row(path: &str, corpus: &Corpus, segment_idx: usize, meta: &SegmentMeta, options: &TadocOptions) -> Row {
    let segment = Arc::clone(&corpus.segments()[segment_idx]);
    let alone = Corpus::new(corpus.profile(), vec![segment]);
    let mut decoder = DocumentDecoder::new(alone.clone(), options.max_output_bytes);
    let mut decode = || -> Result<u64, Error> {
        let mut len_bytes = 0u64;
        for doc_id in 0..alone.num_docs() {
            decoder.append_document(doc_id)?;
            len_bytes += decoder.bytes().len() as u64;
            decoder.clear();
        }
        Ok(len_bytes)
    };
    let outcome = decode().and_then(|len_bytes| {
        if len_bytes == meta.len_bytes {
            Ok(())
        } else {
            Err(Error::Format {
                file: path.to_string(),
                section: "grammar",
                offset: meta.byte_range().start,
                reason: format!("expected {} bytes of text, got {len_bytes}", meta.len_bytes),
            })
        }
    });
    let len_bytes = Some(meta.len_bytes);
    Row { segment: Some(segment_idx), section: "decode", offset: None, len_bytes, outcome }
}

/// Sends the rows of `version` of `found`.
async fn verify_version(mut run: Execution, found: &FoundCorpus, version: &Version) -> Result<()> {
    let reservation = run.reservation("Verify");
    let mut files: Vec<Corpus> = Vec::new();
    let mut is_well = true;
    for part in &version.parts {
        let Some(file) = found.location.file(part) else { continue };
        reservation.try_grow(file.meta.size as usize)?;
        let bytes = read_part(&run, &file).await?;
        // All files stay decoded, because edits are applied to all of them.
        let decoded = bytes.as_ref().map(|bytes| decoded_bytes(&file.path, bytes, &run.scan.options));
        reservation.try_grow(decoded.unwrap_or_default())?;
        let path = file.path.clone();
        let options = run.scan.options.clone();
        let part = part.clone();
        let verify = move || verify_part(&path, bytes, &part, &options);
        let (rows, corpus) = tokio::task::spawn_blocking(verify).await.map_err(task_error)?;
        is_well &= rows.iter().all(|row| row.outcome.is_ok());
        files.extend(corpus);
        if !send(&mut run, &file.path, &rows).await? {
            return Ok(());
        }
    }
    let mut edits: Vec<VersionEdits> = Vec::new();
    for number in version.edit_versions() {
        let read = found.store.edits(number..=number).await;
        let outcome = match read {
            Ok(read) if read.is_empty() => continue,
            Ok(read) => {
                let limit = run.scan.options.max_memory_bytes;
                let all = read.iter().map(|edits| check_tables(&edits.batch.edits, limit));
                let checked = all.collect::<Result<(), Error>>();
                edits.extend(read);
                checked
            }
            Err(error) => Err(error),
        };
        is_well &= outcome.is_ok();
        let file = format!("{} version {number}", found.store.location());
        let row = Row { segment: None, section: "edits", offset: None, len_bytes: None, outcome };
        if !send(&mut run, &file, &[row]).await? {
            return Ok(());
        }
    }
    if is_well {
        let making = version.clone();
        let limit = run.scan.options.max_output_bytes;
        let apply = move || apply(&making, files, &edits, limit);
        let row = tokio::task::spawn_blocking(apply).await.map_err(task_error)?;
        let file = format!("{} version {}", found.store.location(), version.number);
        send(&mut run, &file, &[row]).await?;
    }
    Ok(())
}

/// Reads the bytes of a file. Returns a fault if the file does not exist.
async fn read_part(run: &Execution, file: &SourceFile) -> Result<Result<Bytes, Error>> {
    let store = store_of(&run.runtime, file)?;
    let read = match store.get_opts(&file.meta.location, Default::default()).await {
        Ok(object) => object.bytes().await,
        Err(error) => Err(error),
    };
    match read {
        Ok(bytes) => {
            run.counter("bytes_read").add(bytes.len());
            Ok(Ok(bytes))
        }
        Err(object_store::Error::NotFound { .. }) => Ok(Err(fault(file, "there is no such file"))),
        Err(error) => Err(DataFusionError::from(error).context(file.path.clone())),
    }
}

fn fault(file: &SourceFile, reason: &str) -> Error {
    let file = file.path.clone();
    let reason = reason.to_string();
    Error::Format { file, section: "file", offset: 0, reason }
}

/// Returns the rows of a file, and its corpus if it can be read.
fn verify_part(
    path: &str,
    bytes: Result<Bytes, Error>,
    part: &Part,
    options: &TadocOptions,
) -> (Vec<Row>, Option<Corpus>) {
    let row = |outcome| Row { segment: None, section: "part", offset: Some(0), len_bytes: None, outcome };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return (vec![row(Err(error))], None),
    };
    let mut rows = verify_file(path, &bytes, options);
    let corpus = Corpus::from_bytes(path, &bytes, &options.open_limits()).ok();
    let corpus = corpus.map(|(_, corpus)| corpus);
    rows.push(Row { len_bytes: Some(bytes.len() as u64), ..row(part.check_bytes(path, &bytes)) });
    (rows, corpus)
}

/// Applies the edits, and decodes every document of the result.
fn apply(version: &Version, files: Vec<Corpus>, edits: &[VersionEdits], limit_bytes: u64) -> Row {
    let make = || -> Result<u64, Error> {
        let corpus = assemble(version, files, edits)?.snapshot()?;
        let num_docs = corpus.num_docs();
        let mut decoder = DocumentDecoder::new(corpus, limit_bytes);
        let mut len_bytes = 0;
        for doc_id in 0..num_docs {
            decoder.append_document(doc_id)?;
            len_bytes += decoder.bytes().len() as u64;
            decoder.clear();
        }
        Ok(len_bytes)
    };
    let (len_bytes, outcome) = match make() {
        Ok(len_bytes) => (Some(len_bytes), Ok(())),
        Err(error) => (None, Err(error)),
    };
    Row { segment: None, section: "apply", offset: None, len_bytes, outcome }
}
