//! The function `corpus_verify` for a living corpus: checks the files of one version, its edits
//! with the values that they set, and their application.

use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};

use super::verify_file::{Row, decoded_bytes, send, verify_file};
use crate::corpora::living::FoundCorpus;
use crate::corpora::location::{SourceFile, store_of};
use crate::errors::task_error;
use crate::options::TadocOptions;
use crate::planning::Execution;
use crate::user_columns::check_tables;
use tadoc::Error;
use tadoc::read::DocumentDecoder;
use tadoc::segment::Corpus;
use tadoc_store::{Part, Version, VersionEdits, assemble};

/// Sends the rows of `version` of `found`.
pub(super) async fn verify_version(mut run: Execution, found: &FoundCorpus, version: &Version) -> Result<()> {
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
        let (path, options) = (file.path.clone(), run.scan.options.clone());
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
        let (making, limit) = (version.clone(), run.scan.options.max_output_bytes);
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
    let (file, reason) = (file.path.clone(), reason.to_string());
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
