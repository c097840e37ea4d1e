//! The checks of one corpus file: its sections, the decoding of its segments and its structure, as
//! rows of `corpus_verify`.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};
use datafusion::error::Result;

use crate::options::TadocOptions;
use crate::planning::{Execution, no_column};
use tadoc::Error;
use tadoc::format::{FileFooter, FooterOutcome, SectionMeta, SegmentMeta};
use tadoc::read::DocumentDecoder;
use tadoc::segment::Corpus;

/// Sends the rows of one file. Returns false if the function should stop.
pub(super) async fn send(run: &mut Execution, file: &str, rows: &[Row]) -> Result<bool> {
    run.send_async(rows.len(), |name| column(file, rows, name)).await
}

/// Result of one check.
pub(super) struct Row {
    pub(super) segment: Option<usize>,
    pub(super) section: &'static str,
    pub(super) offset: Option<u64>,
    pub(super) len_bytes: Option<u64>,
    pub(super) outcome: Result<(), Error>,
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
pub(super) fn decoded_bytes(path: &str, bytes: &Bytes, options: &TadocOptions) -> usize {
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

pub(super) fn verify_file(path: &str, bytes: &Bytes, options: &TadocOptions) -> Vec<Row> {
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
    let of_file = footer.columns.iter().chain(&footer.others);
    rows.extend(of_file.map(|section| section_row(path, bytes, None, section)));
    rows.push(whole("file", corpus.map(|_| ())));
    rows
}

fn section_row(path: &str, bytes: &Bytes, segment: Option<usize>, section: &SectionMeta) -> Row {
    // The checked footer guarantees that sections lie inside the file.
    let (start, len) = (section.offset as usize, section.len as usize);
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
    let (offset, len_bytes) = (Some(section.offset), Some(section.len));
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
