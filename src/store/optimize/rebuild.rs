//! The rebuilding of a run of parts as one new file.
//!
//! ```text
//! files ─┬─ large segments that no edit touched ────────────────────────────▶ copied ─┐
//!        └─ assemble with the edits ─▶ documents, one by one ─▶ builder ──────────────┴▶ part file
//! columns of the parts, and the edits that set columns ─▶ merge_columns ──────────────▶
//! ```
//!
//! If a document spans several segments, either all of them are copied or none.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::plan::{Restricted, push_range};
use super::{ColumnsOfPart, OptimizeOptions};
use crate::assemble::assemble;
use crate::part_file::{PartWriter, WrittenPart};
use crate::retry::{on_computing_thread, retrying};
use crate::store::LivingStore;
use crate::version::Part;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, LivingCorpus};
use tadoc::error::{Error, Result};
use tadoc::format::{FileFooter, SegmentContents, SegmentMeta, read_columns};
use tadoc::segment::{Corpus, Segment};

/// A run as one file.
pub(super) struct Rebuilt {
    /// Part for the new file.
    pub(super) part: Part,
    /// Ids of its dropped documents.
    pub(super) dropped: Vec<Range<u64>>,
}

impl LivingStore {
    /// Writes the documents of `restricted` to a new file.
    pub(super) async fn rebuild(&self, restricted: Restricted, options: &OptimizeOptions) -> Result<Rebuilt> {
        let (mut files, mut columns) = (Vec::new(), Vec::new());
        for part in &restricted.version.parts {
            let num_docs = part.num_docs();
            let mut parquet = None;
            if matches!(part, Part::File { .. }) {
                let (footer, corpus) = self.read_part(part, &options.limits).await?;
                parquet = self.columns_for(part, &footer).await?;
                files.push((footer, corpus));
            }
            let file = part.file_name().map(|name| self.name_for(&name)).unwrap_or_default();
            columns.push(ColumnsOfPart { file, num_docs, parquet });
        }
        let edits = restricted.edits.iter().flat_map(|edits| &edits.batch.edits);
        let set: Vec<Edit> = edits.filter(|edit| edit.sets_columns()).cloned().collect();
        let first_layout = files.iter().flat_map(|(footer, _)| &footer.segments).map(SegmentMeta::layout).next();
        let layout = first_layout.filter(|_| options.keep_layout).unwrap_or(options.ingest.layout);
        let ingest = IngestOptions { profile: self.profile(), layout, ..options.ingest };
        let copies = !options.rebuild_grammars;
        let run = move || Documents::new(restricted, files, ingest, copies);
        let run = on_computing_thread(run).await??;
        let mut dropped = Vec::new();
        for doc_id in run.living.dropped_docs() {
            push_range(&mut dropped, doc_id..doc_id + 1);
        }
        let merged = self.merged_columns(&columns, &set, &dropped, options)?;
        let WrittenPart { part, .. } = self.write_part(move |out| run.write(out, ingest, merged)).await?;
        Ok(Rebuilt { part, dropped })
    }

    /// Returns the Parquet file inside the file of `part`.
    async fn columns_for(&self, part: &Part, footer: &FileFooter) -> Result<Option<Bytes>> {
        let (Some(section), Part::File { len_bytes, .. }) = (&footer.columns, part) else {
            return Ok(None);
        };
        let name = part.file_name().unwrap_or_default();
        let get = retrying(self.options().retry, || self.storage().get(&name, *len_bytes)).await;
        let file = self.name_for(&name);
        let bytes = get.map_err(|error| error.into_error(format!("reading {file}")))?;
        let range = section.offset as usize..(section.offset + section.len) as usize;
        let stored = bytes.get(range).unwrap_or_default();
        read_columns(&file, section, stored).map(Some)
    }

    fn merged_columns(
        &self,
        columns: &[ColumnsOfPart],
        set: &[Edit],
        dropped: &[Range<u64>],
        options: &OptimizeOptions,
    ) -> Result<Option<Vec<u8>>> {
        if set.is_empty() && columns.iter().all(|part| part.parquet.is_none()) {
            return Ok(None);
        }
        match &options.merge_columns {
            Some(merge) => merge(columns, set, dropped),
            None => Err(Error::InvalidArgument {
                name: "merge_columns",
                got: "nothing, and there are user columns".into(),
                allowed: "what joins them; or use `tadoc optimize`".into(),
            }),
        }
    }
}

/// Documents of a run, and its segments that may be copied.
struct Documents {
    living: LivingCorpus,
    groups: Vec<Group>,
}

/// A run of documents that are written together.
struct Group {
    doc_ids: Range<u64>,
    /// Segments that are copied with these documents. Empty if the documents are built anew.
    copied: Vec<(Arc<Segment>, SegmentMeta)>,
}

impl Documents {
    /// Creates the run of `restricted`. Segments are copied only if `copies` is true.
    fn new(
        restricted: Restricted,
        files: Vec<(FileFooter, Corpus)>,
        ingest: IngestOptions,
        copies: bool,
    ) -> Result<Self> {
        let Restricted { version, edits } = restricted;
        let named = edits.iter().flat_map(|edits| &edits.batch.edits);
        let named = named.filter(|edit| !edit.sets_columns());
        let mut touched: Vec<u64> = named.filter_map(|edit| edit.doc_id()).collect();
        touched.sort_unstable();
        let mut groups = Vec::new();
        let mut next = 0;
        let mut unread = files.iter();
        for part in &version.parts {
            let doc_ids = next..next + part.num_docs();
            next = doc_ids.end;
            let file = if part.file_name().is_some() { unread.next() } else { None };
            match file.and_then(|(footer, corpus)| groups_for(footer, corpus, doc_ids.start)) {
                Some(of_file) => groups.extend(of_file),
                None => groups.push(Group { doc_ids, copied: Vec::new() }),
            }
        }
        for group in &mut groups {
            let len_bytes: u64 = group.copied.iter().map(|(_, meta)| meta.len_bytes).sum();
            let is_large = copies && len_bytes >= ingest.block_bytes as u64 / 2;
            let first = touched.partition_point(|doc_id| *doc_id < group.doc_ids.start);
            if !is_large || touched.get(first).is_some_and(|id| group.doc_ids.contains(id)) {
                group.copied.clear();
            }
        }
        let files = files.into_iter().map(|(_, corpus)| corpus).collect();
        Ok(Self { living: assemble(&version, files, &edits)?, groups })
    }

    fn write(self, out: &mut PartWriter, ingest: IngestOptions, columns: Option<Vec<u8>>) -> Result<FileFooter> {
        let Self { living, groups } = self;
        let mut builder = CorpusBuilder::new(out, ingest)?;
        let mut text = Vec::new();
        for Group { doc_ids, copied } in groups {
            if copied.is_empty() {
                for doc_id in doc_ids {
                    text.clear();
                    if !living.is_dropped(doc_id) {
                        living.extract_into(doc_id, 0, u64::MAX, u64::MAX, &mut text)?;
                    }
                    builder.push_document(living.path(doc_id).unwrap_or_default(), &text)?;
                }
            }
            for (segment, meta) in copied {
                builder.push_segment(&SegmentContents::from_segment(&segment, &meta))?;
            }
        }
        Ok(builder.finish(columns)?.1.footer)
    }
}

/// Returns the segments of a file, grouped if they share a document. Returns `None` if their
/// documents are not those of the file.
fn groups_for(footer: &FileFooter, corpus: &Corpus, first_id: u64) -> Option<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for (segment, meta) in corpus.segments().iter().zip(&footer.segments) {
        let copy = (Arc::clone(segment), meta.clone());
        let num_docs = segment.dag.grammar().num_docs() as u64;
        match groups.last_mut() {
            Some(last) if segment.continues => {
                last.doc_ids.end += num_docs.saturating_sub(1);
                last.copied.push(copy);
            }
            last => {
                let start = last.map_or(first_id, |last| last.doc_ids.end);
                groups.push(Group { doc_ids: start..start + num_docs, copied: vec![copy] });
            }
        }
    }
    let end = groups.last().map_or(first_id, |last| last.doc_ids.end);
    (end == first_id + corpus.num_docs()).then_some(groups)
}
