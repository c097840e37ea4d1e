//! The stored bytes of a file, of which ranges are read: heads of dictionaries and grammars, groups of words, lists.
//!
//! ```text
//! words ─▶ head, directory of lists ─▶ ranges of their groups ─▶ ids ─▶ ranges of their lists
//! ```

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::Result;
use futures::FutureExt;
use object_store::ObjectStore;

use crate::corpora::cache::FILES_AT_ONCE;
use crate::corpora::loaded::{LoadContext, WordIds};
use crate::corpora::location::{read_range, store_of};
use crate::corpora::open_file::{OpenFile, decoded, in_order};
use crate::errors::datafusion_error;
use tadoc::format::{DictionaryHead, GrammarHead, SegmentMeta, StoredLists};

/// Length of a file that is read with one request, because another request takes longer than to
/// read all of it.
pub(super) const SMALL_FILE_BYTES: u64 = 256 << 10;
/// Least number of segments of which grammars or documents are read at a time, so that decoders need not wait for a
/// store.
pub(super) const READ_AT_ONCE: usize = 8;

/// Returns the number of bytes of `range`.
pub(super) fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// The stored bytes of a file, in ranges that are read when they are needed.
pub(super) struct StoredFile<'a> {
    context: &'a LoadContext,
    store: Arc<dyn ObjectStore>,
    pub(super) open: &'a OpenFile,
    /// Number of segments that are decoded in parallel.
    pub(super) at_once: usize,
    /// All segments, if the file is small and they were read.
    all: Option<(Range<u64>, Bytes)>,
}

impl<'a> StoredFile<'a> {
    pub(super) fn new(context: &'a LoadContext, open: &'a OpenFile, at_once: usize) -> Result<Self> {
        let store = store_of(&context.runtime, &open.file)?;
        Ok(Self { context, store, open, at_once, all: None })
    }

    /// Reads all segments if they are small.
    pub(super) async fn read_if_small(&mut self) -> Result<()> {
        let ranges = || self.open.footer.segments.iter().map(SegmentMeta::byte_range);
        let start = ranges().map(|r| r.start).min();
        let end = ranges().map(|r| r.end).max();
        let all = start.unwrap_or_default()..end.unwrap_or_default();
        if len(&all) <= SMALL_FILE_BYTES {
            let bytes = self.read(all.clone()).await?;
            self.all = Some((all, bytes));
        }
        Ok(())
    }

    /// Returns the ids of `words` in the segment at `place`, whose dictionary has a head. Reads what is not `known`.
    pub(super) async fn find_ids(
        &self,
        place: usize,
        known: Option<WordIds>,
        mut words: Vec<String>,
    ) -> Result<WordIds> {
        let known = match known {
            Some(known) => known,
            None => self.read_head(place).await?,
        };
        words.retain(|word| known.id(word).is_none());
        if words.is_empty() {
            return Ok(known);
        }
        let groups = self.read_each(known.head.ranges(&words)).await?;
        let find = move || -> tadoc::Result<WordIds> {
            let ids = known.head.word_ids(&words, &groups)?;
            Ok(known.with(words.into_iter().zip(ids)))
        };
        decoded(find).await
    }

    async fn read_head(&self, place: usize) -> Result<WordIds> {
        let meta = &self.open.footer.segments[place];
        let head = meta.head_range().unwrap_or_default();
        let parts = self.read_each([head].into_iter().chain(meta.lists_range()).collect()).await?;
        let mut parts = parts.into_iter();
        let head = parts.next().unwrap_or_default();
        let head = DictionaryHead::new(&self.open.file.path, &self.open.footer, place, &head);
        Ok(WordIds::new(head.map_err(datafusion_error)?, parts.next()))
    }

    /// Reads the lists of the words `ids`, which ascend, of the segment at `place`, whose directory is at `range` and
    /// perhaps there already.
    pub(super) async fn read_lists(
        &self,
        place: usize,
        range: Range<u64>,
        directory: Option<Bytes>,
        ids: &[u32],
    ) -> Result<(StoredLists, Vec<Bytes>)> {
        let directory = match directory {
            Some(directory) => directory,
            None => self.read(range).await?,
        };
        let path = &self.open.file.path;
        let footer = &self.open.footer;
        let lists = StoredLists::new(path, footer, place, &directory).map_err(datafusion_error)?;
        let groups = self.read_each(lists.ranges(ids)).await?;
        Ok((lists, groups))
    }

    /// Reads the head of the grammar of the segment at `place`, by which its units are found, if there is one.
    pub(super) async fn read_grammar_head(&self, place: usize) -> Result<Option<GrammarHead>> {
        let Some(range) = self.open.footer.segments[place].grammar_head_range() else { return Ok(None) };
        let bytes = self.read(range).await?;
        let head = GrammarHead::new(&self.open.file.path, &self.open.footer, place, &bytes);
        head.map(Some).map_err(datafusion_error)
    }

    pub(super) async fn read_each(&self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        in_order(ranges.into_iter().map(|range| self.read(range).boxed()), FILES_AT_ONCE).await
    }

    pub(super) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let within = self.all.as_ref().and_then(|(all, bytes)| {
            let from = range.start.checked_sub(all.start)? as usize;
            let to = from + len(&range) as usize;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        });
        if let Some(bytes) = within {
            return Ok(bytes);
        }
        let bytes = read_range(self.store.as_ref(), &self.open.file, range).await?;
        self.context.bytes_read.add(bytes.len());
        Ok(bytes)
    }
}
