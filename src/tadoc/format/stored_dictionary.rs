//! A dictionary as it is stored, which can be searched before it is decoded.
//!
//! Dictionaries of the layout `indexed`, and large ones of the layout `small`, are stored in
//! blocks, of which a search decodes one. Searching them costs O(block), less than a millisecond; decoding
//! O(dictionary). Of large ones of the layout `indexed` any tokens are decoded alone.
//!
//! ```text
//! head ──words──▶ ranges of the file ──their bytes──▶ ids of the words
//! ```
//!
//! Dictionaries of the layout `indexed`, unless they are small, have a head. A question about exact words
//! reads the head and a group for each word. Everything that is read is checked by a checksum of its own.
//! The rest of the dictionary is neither read nor checked.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::codecs::dictionary::TokenIndex;
use crate::format::cursor::Origin;
use crate::format::framing::{OpenLimits, SectionKind, SectionMeta};
use crate::format::layout::{FileFooter, SegmentMeta};
use crate::format::reader::{
    check_range, check_words, decode_checked_dictionary, dictionary_bytes, section_bytes, section_for, segment_meta,
};
use crate::text::{Dictionary, TokenizerProfile};

/// Bytes of a dictionary, whose checksum is right.
///
/// ```
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::{FileFooter, FooterOutcome, OpenLimits, SegmentLayout, StoredDictionary};
///
/// # fn main() -> tadoc::Result<()> {
/// let options = IngestOptions { layout: SegmentLayout::INDEXED, ..IngestOptions::default() };
/// let mut builder = CorpusBuilder::new(Vec::new(), options)?;
/// builder.push_document("a.txt", b"to be or not to be")?;
/// let (file, _report) = builder.finish(None)?;
///
/// let limits = OpenLimits::default();
/// let outcome = FileFooter::parse("a.tadoc", &file, file.len() as u64, &limits)?;
/// let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
/// let range = footer.segments[0].dictionary_range();
/// let bytes = file[range.start as usize..range.end as usize].to_vec();
/// let dictionary = StoredDictionary::new("a.tadoc", &footer, 0, bytes.into())?;
/// assert_eq!(dictionary.word_id("be")?, Some(Some(0)));
/// assert_eq!(dictionary.word_id("question")?, Some(None));
/// assert_eq!(dictionary.decode(&limits)?.num_words(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StoredDictionary {
    file: String,
    profile: TokenizerProfile,
    meta: SegmentMeta,
    /// The sections with their padding.
    bytes: Bytes,
    /// `None` if only all of it can be decoded.
    index: Option<TokenIndex>,
}

impl StoredDictionary {
    /// Takes the dictionary of segment `segment_idx` of `file`. `bytes` must be exactly its
    /// [`dictionary_range`](SegmentMeta::dictionary_range). `file` is a name for error messages.
    /// The rest of the segment is not checked.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment).
    pub fn new(file: &str, footer: &FileFooter, segment_idx: usize, bytes: Bytes) -> Result<Self> {
        let meta = segment_meta(footer, segment_idx)?;
        check_range(meta.dictionary_range(), &bytes)?;
        let index = dictionary_bytes(file, meta, &bytes, meta.dictionary_range().start)?.index(meta)?;
        let file = file.to_owned();
        let profile = footer.profile;
        let meta = meta.clone();
        Ok(Self { file, profile, meta, bytes, index })
    }

    /// Returns the id of `word`, `None` inside if it is not one of its words. Returns `None` if the
    /// dictionary has to be decoded to tell.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if the block of the word is damaged.
    pub fn word_id(&self, word: &str) -> Result<Option<Option<u32>>> {
        let Some(index) = &self.index else { return Ok(None) };
        let (place, section) = self.section()?;
        index.word_id(place, section, word.as_bytes()).map(Some)
    }

    /// Returns the section, which was checked, and its place.
    fn section(&self) -> Result<(Origin<'_>, &[u8])> {
        let section = section_for(&self.file, &self.meta, SectionKind::Dictionary)?;
        let start = section.offset.saturating_sub(self.meta.dictionary_range().start) as usize;
        let bytes = self.bytes.get(start..start.saturating_add(section.len as usize)).unwrap_or_default();
        Ok((section.origin(&self.file), bytes))
    }

    /// Decodes all of it.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment).
    pub fn decode(&self, limits: &OpenLimits) -> Result<Dictionary> {
        limits.check_memory(self.meta.words_memory_bytes())?;
        let start = self.meta.dictionary_range().start;
        let bytes = dictionary_bytes(&self.file, &self.meta, &self.bytes, start)?;
        decode_checked_dictionary(&bytes, &self.meta, self.profile)
    }

    /// Returns the dictionary of the tokens `ids`, which ascend. Decodes only these, if it can.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment), and
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for an id that does not exist.
    pub fn subset(&self, ids: &[u32], limits: &OpenLimits) -> Result<Dictionary> {
        limits.check_memory(self.meta.words_memory_bytes())?;
        let Some(TokenIndex::Coded(coded)) = &self.index else { return self.decode(limits)?.subset(ids) };
        let (place, section) = self.section()?;
        let dictionary = coded.subset(place, section, ids)?;
        check_words(place, self.profile, &dictionary)?;
        Ok(dictionary)
    }

    /// Returns the number of its words.
    pub fn num_words(&self) -> u32 {
        self.meta.num_words
    }

    /// Returns the number of bytes of main memory in use.
    pub fn memory_bytes(&self) -> usize {
        let index = self.index.as_ref().map_or(0, TokenIndex::memory_bytes);
        size_of::<Self>() + self.bytes.len() + index
    }
}

/// Head of a dictionary, by which exact words are found in parts of it. Segments of the layout `indexed` have one, unless
/// their dictionaries are small.
///
/// ```
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::{DictionaryHead, FileFooter, FooterOutcome, OpenLimits};
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// let text: String = (0..10_000).map(|at| format!("word{at:05} ")).collect();
/// builder.push_document("a.txt", text.as_bytes())?;
/// let (file, _report) = builder.finish(None)?;
///
/// let limits = OpenLimits::default();
/// let outcome = FileFooter::parse("a.tadoc", &file, file.len() as u64, &limits)?;
/// let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
/// let part = |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
/// let range = footer.segments[0].head_range().expect("the dictionary is large");
/// let head = DictionaryHead::new("a.tadoc", &footer, 0, part(range))?;
///
/// let words = ["word00042", "word12345"];
/// let groups: Vec<&[u8]> = head.ranges(&words).into_iter().map(part).collect();
/// assert_eq!(head.word_ids(&words, &groups)?, [Some(42), None]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DictionaryHead {
    file: String,
    /// The section of the dictionary.
    section: SectionMeta,
    index: TokenIndex,
}

impl DictionaryHead {
    /// Takes the head of the dictionary of segment `segment_idx` of `file`. `bytes` must be exactly its
    /// [`head_range`](SegmentMeta::head_range). `file` is a name for error messages.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment), and [`Error::InvalidArgument`] for a segment
    /// whose dictionary has no head.
    pub fn new(file: &str, footer: &FileFooter, segment_idx: usize, bytes: &[u8]) -> Result<Self> {
        let meta = segment_meta(footer, segment_idx)?;
        let range = meta.head_range().ok_or_else(|| {
            let (got, allowed) = (format!("{segment_idx}, without"), "a segment with a dictionary head".into());
            Error::InvalidArgument { name: "segment_idx", got, allowed }
        })?;
        check_range(range.clone(), bytes)?;
        let head = section_for(file, meta, SectionKind::DictionaryHead)?;
        let bytes = section_bytes(file, head, bytes, range.start)?;
        let section = section_for(file, meta, SectionKind::Dictionary)?;
        let index = TokenIndex::from_head(head.origin(file), section.codec, bytes, meta, section.len)?;
        Ok(Self { file: file.to_owned(), section: section.clone(), index })
    }

    /// Returns the ranges of the file that are needed to find `words`, ascending.
    pub fn ranges(&self, words: &[impl AsRef<str>]) -> Vec<Range<u64>> {
        self.groups(words).into_iter().map(|group| self.range(group)).collect()
    }

    /// Returns the groups that can have one of `words`, ascending.
    fn groups(&self, words: &[impl AsRef<str>]) -> Vec<usize> {
        let groups = words.iter().filter_map(|word| self.index.group_of(word.as_ref().as_bytes()));
        let mut groups: Vec<usize> = groups.collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    fn range(&self, group: usize) -> Range<u64> {
        let Range { start, end } = self.index.range(group).unwrap_or(0..self.section.len);
        self.section.offset.saturating_add(start)..self.section.offset.saturating_add(end)
    }

    /// Returns the id of each of `words`, `None` for one that is not a word of the segment. `groups` are the bytes of
    /// their [`ranges`](Self::ranges).
    ///
    /// # Errors
    /// [`Error::Checksum`] and [`Error::Format`] for other bytes, [`Error::InvalidArgument`] for other
    /// numbers of them.
    pub fn word_ids(&self, words: &[impl AsRef<str>], groups: &[impl AsRef<[u8]>]) -> Result<Vec<Option<u32>>> {
        let places = self.groups(words);
        let word_id = |word: &[u8]| {
            let Some(group) = self.index.group_of(word) else { return Ok(None) };
            let read = places.binary_search(&group).ok().and_then(|at| groups.get(at));
            let bytes = read.map(AsRef::as_ref).unwrap_or_default();
            let range = self.range(group);
            check_range(range.clone(), bytes)?;
            let place = Origin { offset: range.start, ..self.section.origin(&self.file) };
            self.index.word_id_in(place, group, bytes, word)
        };
        let ids = words.iter().map(|word| word_id(word.as_ref().as_bytes())).collect();
        self.index.forget_tables();
        ids
    }

    /// Returns the number of bytes of main memory in use.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.index.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::{FooterOutcome, verify_segment};

    const WORDS: [&str; 4] = ["word00000", "word04711", "word04712x", "zebra"];

    fn file_with_a_head() -> (FileFooter, Vec<u8>) {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        let text: String = (0..10_000).map(|at| format!("word{at:05} ")).collect();
        builder.push_document("a", text.as_bytes()).unwrap();
        let (file, _) = builder.finish(None).unwrap();
        let outcome = FileFooter::parse("a", &file, file.len() as u64, &OpenLimits::default()).unwrap();
        let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
        (footer, file)
    }

    fn part(file: &[u8], range: Range<u64>) -> &[u8] {
        &file[range.start as usize..range.end as usize]
    }

    fn ids(footer: &FileFooter, file: &[u8]) -> Result<Vec<Option<u32>>> {
        let range = footer.segments[0].head_range().unwrap();
        let head = DictionaryHead::new("a", footer, 0, part(file, range))?;
        let groups: Vec<&[u8]> = head.ranges(&WORDS).into_iter().map(|range| part(file, range)).collect();
        head.word_ids(&WORDS, &groups)
    }

    #[test]
    fn other_bytes_than_asked_for_are_refused() {
        let (footer, file) = file_with_a_head();
        let range = footer.segments[0].head_range().unwrap();
        let head = DictionaryHead::new("a", &footer, 0, part(&file, range.clone())).unwrap();
        let groups: Vec<&[u8]> = head.ranges(&WORDS).into_iter().map(|range| part(&file, range)).collect();
        assert!(groups.len() > 1);
        let swapped: Vec<&[u8]> = groups.iter().rev().copied().collect();
        assert!(head.word_ids(&WORDS, &swapped).is_err());
        assert!(head.word_ids(&WORDS, &groups[1..]).is_err());
        assert!(DictionaryHead::new("a", &footer, 0, &file[..range.end as usize]).is_err());
        assert!(head.ranges(&["a"]).is_empty());
        assert_eq!(head.word_ids(&["a"], &groups[..0]).unwrap(), [None]);
    }

    /// Returns the footer with the right checksum for a changed head.
    fn resealed(footer: &FileFooter, file: &[u8]) -> FileFooter {
        let mut footer = footer.clone();
        let head = footer.segments[0].sections.iter_mut().find(|s| s.kind == SectionKind::DictionaryHead).unwrap();
        head.crc32c = crc32c::crc32c(part(file, head.offset..head.offset + head.len));
        footer
    }

    proptest! {
        #[test]
        fn changed_bytes_are_faults(at in any::<prop::sample::Index>(), bit in 0u32..8) {
            let (footer, mut file) = file_with_a_head();
            prop_assert_eq!(ids(&footer, &file).unwrap(), [Some(0), Some(4711), None, None]);
            let range = footer.segments[0].dictionary_range();
            let at = range.start as usize + at.index((range.end - range.start) as usize);
            file[at] ^= 1 << bit;
            let right = [Some(0), Some(4711), None, None];
            let is_in_head = footer.segments[0].head_range().unwrap().contains(&(at as u64));
            match ids(&footer, &file) {
                Ok(ids) => prop_assert!(!is_in_head && ids == right),
                Err(Error::Format { .. } | Error::Checksum { .. }) => {}
                Err(error) => prop_assert!(false, "{error}"),
            }
            // A head that was changed with its checksum is a fault of verification, or a right one.
            let footer = resealed(&footer, &file);
            let found = ids(&footer, &file);
            let whole = part(&file, footer.segments[0].whole_range());
            if verify_segment("a", &footer, 0, whole, &OpenLimits::default()).is_ok() {
                prop_assert_eq!(found.unwrap(), right);
            }
        }
    }
}
