//! The documents of words as they are stored, read for some words of a segment alone.
//!
//! ```text
//! directory ──word ids──▶ ranges of the file ──their bytes──▶ documents of each word
//! ```
//!
//! A question reads the directory, O(words / 64), and the groups of its words. Everything that is
//! read is checked by a checksum of its own. The rest of the segment is neither read nor checked.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::codecs::word_lists::{EntriesLeft, ListDirectory};
use crate::format::framing::{SectionKind, SectionMeta};
use crate::format::layout::FileFooter;
use crate::format::reader::{check_lists_codec, check_range, list_directory, section_bytes, section_for, segment_meta};
use crate::segment::ListedWord;

/// Directory of the word lists of a segment. Segments of the layout `indexed` have one.
///
/// ```
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::{FileFooter, FooterOutcome, OpenLimits, SegmentLayout, StoredLists};
/// use tadoc::segment::ListedWord;
///
/// # fn main() -> tadoc::Result<()> {
/// let options = IngestOptions { layout: SegmentLayout::INDEXED, ..IngestOptions::default() };
/// let mut builder = CorpusBuilder::new(Vec::new(), options)?;
/// builder.push_document("a.txt", b"to be or not to be")?;
/// builder.push_document("b.txt", b"let it be")?;
/// let (file, _report) = builder.finish(None)?;
///
/// let limits = OpenLimits::default();
/// let outcome = FileFooter::parse("a.tadoc", &file, file.len() as u64, &limits)?;
/// let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
/// let part = |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
/// let directory = footer.segments[0].lists_range().expect("the layout has lists");
/// let lists = StoredLists::new("a.tadoc", &footer, 0, part(directory))?;
///
/// // The words are be, it, let, not, or, to.
/// let ranges = lists.ranges(&[0, 5]);
/// let groups: Vec<&[u8]> = ranges.into_iter().map(part).collect();
/// let found = lists.read(&[0, 5], &groups)?;
/// let Some(ListedWord::Counted(be)) = &found[0] else { panic!("a short list is stored") };
/// assert_eq!((&be.docs[..], &be.counts[..]), (&[0, 1][..], &[2, 1][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StoredLists {
    file: String,
    /// The section of the lists.
    section: SectionMeta,
    directory: ListDirectory,
    num_words: u32,
}

impl StoredLists {
    /// Takes the directory of segment `segment_idx` of `file`. `bytes` must be exactly its
    /// [`lists_range`](crate::format::SegmentMeta::lists_range). `file` is a name for error
    /// messages.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment), and
    /// [`Error::InvalidArgument`] for a segment without lists.
    pub fn new(file: &str, footer: &FileFooter, segment_idx: usize, bytes: &[u8]) -> Result<Self> {
        let meta = segment_meta(footer, segment_idx)?;
        let range = meta.lists_range().ok_or_else(|| {
            let (got, allowed) = (format!("{segment_idx}, without"), "a segment with word lists".into());
            Error::InvalidArgument { name: "segment_idx", got, allowed }
        })?;
        check_range(range.clone(), bytes)?;
        let directory_section = section_for(file, meta, SectionKind::ListDirectory)?;
        let directory = section_bytes(file, directory_section, bytes, range.start)?;
        let directory = list_directory(file, directory_section, directory, meta)?;
        let section = section_for(file, meta, SectionKind::WordLists)?;
        check_lists_codec(file, section)?;
        Ok(Self { file: file.to_owned(), section: section.clone(), directory, num_words: meta.num_words })
    }

    /// Returns the ranges of the file that hold the lists of `words`, which ascend: one for each
    /// group of words, ascending.
    pub fn ranges(&self, words: &[u32]) -> Vec<Range<u64>> {
        self.groups(words).map(|(group, _)| self.range(group)).collect()
    }

    fn range(&self, group: usize) -> Range<u64> {
        let Range { start, end } = self.directory.range(group);
        self.section.offset.saturating_add(start)..self.section.offset.saturating_add(end)
    }

    /// Returns the words of each group, among those that exist.
    fn groups<'w>(&self, words: &'w [u32]) -> impl Iterator<Item = (usize, &'w [u32])> {
        let end = words.partition_point(|&word| word < self.num_words);
        let by_group = words[..end].chunk_by(|&a, &b| self.directory.group_of(a) == self.directory.group_of(b));
        by_group.map(|words| (self.directory.group_of(words[0]), words))
    }

    /// Returns the documents of each of `words`, which ascend and are words of the segment; `None`
    /// for a word whose list is left out, or after 2^23 entries. `groups` are the bytes of their
    /// [`ranges`](Self::ranges).
    ///
    /// # Errors
    /// [`Error::Checksum`] and [`Error::Format`] for other bytes, [`Error::InvalidArgument`] for
    /// other numbers of them.
    pub fn read(&self, words: &[u32], groups: &[impl AsRef<[u8]>]) -> Result<Vec<Option<ListedWord>>> {
        let mut lists = Vec::with_capacity(words.len());
        let mut bytes = groups.iter();
        let mut left = EntriesLeft::default();
        for (group, words) in self.groups(words) {
            let range = self.range(group);
            let bytes = bytes.next().map(AsRef::as_ref).unwrap_or_default();
            check_range(range.clone(), bytes)?;
            let mut place = self.section.origin(&self.file);
            place.offset = range.start;
            lists.extend(self.directory.lists(place, group, bytes, words, &mut left)?);
        }
        Ok(lists)
    }

    /// Returns the number of bytes of main memory in use.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.directory.memory_bytes()
    }
}
