//! Parts of a segment that are read alone: some documents, words of the dictionary, lists of words.
//!
//! ```text
//! documents   their units of text, with the rules that these reach and the words in them
//!             (layouts without units: the whole segment); see also grammar_blocks
//! words       head ──words──▶ ranges of the file ──their bytes──▶ ids of the words
//! lists       directory ──word ids──▶ ranges of the file ──their bytes──▶ documents of each word
//! ```
//!
//! Documents take the time of the asked ones and of their neighbours in the units, besides the checksums and the paths
//! of the segment.
//!
//! Dictionaries of the layout `indexed`, and large ones of the layout `small`, are stored in blocks, of which a search
//! decodes one in less than a millisecond. Those of `indexed` have a head, unless they are small, and any tokens of
//! large ones are decoded alone. A question about exact words reads the head and a group for each word.
//!
//! A question about lists reads the directory, O(words / 64), and the groups of its words. Everything that is read of a
//! dictionary or of lists is checked by a checksum of its own. The rest is neither read nor checked.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::codec_numbers::is_stream;
use crate::format::codecs;
use crate::format::codecs::dictionary::TokenIndex;
use crate::format::codecs::grammar_stream::{GrammarStream, PartialGrammar};
use crate::format::codecs::word_lists::{EntriesLeft, ListDirectory};
use crate::format::cursor::Origin;
use crate::format::framing::{OpenLimits, SectionKind, SectionMeta};
use crate::format::layout::{FileFooter, SegmentMeta, section_for};
use crate::format::reader::{
    StoredSegment, check_lists_codec, check_range, check_words, decode_checked_dictionary, dictionary_bytes,
    list_directory, refuse_steep_rule, section_bytes, segment_meta,
};
use crate::grammar::Grammar;
use crate::segment::{Dag, ListedWord, Segment};
use crate::text::{Dictionary, TokenizerProfile};

/// Variant of [`read_segment`](crate::format::read_segment) that has the text of the documents
/// `docs`, which ascend and count from the first document of the segment. Other documents may lack
/// text; their ids and paths are those of the whole segment.
///
/// # Errors
/// Same as [`read_segment`](crate::format::read_segment).
///
/// ```
/// use tadoc::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::{FileFooter, FooterOutcome, OpenLimits, SegmentLayout, read_documents};
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
/// let range = footer.segments[0].byte_range();
/// let bytes = &file[range.start as usize..range.end as usize];
/// let segment = read_documents("a.tadoc", &footer, 0, bytes, &[1], &limits)?;
/// let corpus = Corpus::new(footer.profile, vec![segment.into()]);
/// assert_eq!((corpus.document_text(1)?, corpus.path(1)), ("let it be".into(), Some("b.txt")));
/// # Ok(())
/// # }
/// ```
pub fn read_documents(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    docs: &[u32],
    limits: &OpenLimits,
) -> Result<Segment> {
    let stored = StoredSegment::new(file, footer, segment_idx, bytes, SegmentMeta::byte_range)?;
    limits.check_memory(stored.meta.memory_bytes())?;
    stored.check_sections(|kind| !kind.is_list())?;
    match units_of(&stored, docs)? {
        Some((stream, units)) => stored.units(&stream, units, |ids| stored.tokens(ids), limits),
        None => stored.decode(),
    }
}

/// A segment of which some documents are decoded.
#[derive(Debug)]
pub struct PartialSegment {
    /// The segment, in which other documents may lack text.
    pub segment: Segment,
    /// Number of units that were decoded.
    pub num_decoded: usize,
    /// Number of all units.
    pub num_units: usize,
}

/// Variant of [`read_documents`] for a segment whose dictionary was read before. `tokens` returns the dictionary of
/// some of its tokens, which ascend, or of all. `bytes` must be exactly its [`rest_range`](SegmentMeta::rest_range).
///
/// # Errors
/// Same as [`read_segment`](crate::format::read_segment).
pub fn read_documents_with(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    tokens: impl FnOnce(Option<&[u32]>) -> Result<Dictionary>,
    docs: &[u32],
    limits: &OpenLimits,
) -> Result<PartialSegment> {
    let stored = StoredSegment::rest(file, footer, segment_idx, bytes, limits)?;
    let found = units_of(&stored, docs)?;
    let numbers = found.as_ref().map(|(stream, units)| (units.len(), stream.units().len()));
    let (num_decoded, num_units) = numbers.unwrap_or((1, 1));
    let segment = match found {
        Some((stream, units)) if num_decoded < num_units => {
            stored.units(&stream, units, |ids| tokens(Some(ids)), limits)?
        }
        _ => stored.segment(tokens(None)?, stored.grammar()?)?,
    };
    Ok(PartialSegment { segment, num_decoded, num_units })
}

/// The grammar of a segment, or of some of its units, in which words are counted.
#[derive(Debug)]
pub struct SomeGrammar {
    /// It has all documents of the segment, and those outside the units are empty. It may have rules that are not used.
    pub grammar: Grammar,
    /// Id in the segment of each terminal of the grammar, ascending, unless it has all of them.
    pub terminals: Option<Vec<u32>>,
    /// Number of units that were decoded, or 0 for the whole grammar.
    pub num_decoded: usize,
    /// Number of all units.
    pub num_units: usize,
}

/// Decodes the grammar of segment `segment_idx` of `file` alone, with `docs`, which ascend, or all documents. `bytes`
/// must be exactly its [`grammar_range`](SegmentMeta::grammar_range). `file` is a name for error messages. The rest of
/// the segment is not checked.
///
/// # Errors
/// Same as [`read_segment`](crate::format::read_segment).
pub fn read_grammar(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    docs: Option<&[u32]>,
    limits: &OpenLimits,
) -> Result<SomeGrammar> {
    let stored = StoredSegment::new(file, footer, segment_idx, bytes, SegmentMeta::grammar_range)?;
    limits.check_memory(stored.meta.memory_bytes())?;
    let found = docs.map(|docs| units_of(&stored, docs)).transpose()?.flatten();
    match found.filter(|(stream, units)| units.len() < stream.units().len()) {
        Some((stream, units)) => grammar_from_units(&stream, units, limits),
        None => Ok(SomeGrammar { grammar: stored.grammar()?, terminals: None, num_decoded: 0, num_units: 1 }),
    }
}

/// Decodes `units` of `stream` for a count.
pub(super) fn grammar_from_units(
    stream: &GrammarStream<'_>,
    units: Vec<usize>,
    limits: &OpenLimits,
) -> Result<SomeGrammar> {
    let num_decoded = units.len();
    let (grammar, terminals) = stream.decode_with_rules(units, limits)?;
    Ok(SomeGrammar { grammar, terminals, num_decoded, num_units: stream.units().len() })
}

/// Returns the grammar of `stored` and the units of the documents `docs`, or `None` for another layout.
fn units_of<'a>(stored: &StoredSegment<'a>, docs: &[u32]) -> Result<Option<(GrammarStream<'a>, Vec<usize>)>> {
    let (section, bytes) = stored.section(SectionKind::Grammar)?;
    if !is_stream(section.codec) {
        return Ok(None);
    }
    let stream = GrammarStream::open(section.origin(stored.file), section.codec, bytes, stored.meta)?;
    let units = stream.units_for(docs);
    Ok(Some((stream, units)))
}

impl StoredSegment<'_> {
    /// Returns the dictionary of the tokens `ids`, which ascend.
    fn tokens(&self, ids: &[u32]) -> Result<Dictionary> {
        let bytes = self.dictionary_bytes()?;
        let dictionary = bytes.subset(self.meta, ids)?;
        check_words(bytes.place, self.profile, &dictionary)?;
        Ok(dictionary)
    }

    /// Decodes `units` of `stream` and builds a segment of them. `tokens` returns the dictionary of some tokens.
    fn units(
        &self,
        stream: &GrammarStream<'_>,
        units: Vec<usize>,
        tokens: impl FnOnce(&[u32]) -> Result<Dictionary>,
        limits: &OpenLimits,
    ) -> Result<Segment> {
        let (_, paths) = self.section(SectionKind::Documents)?;
        segment_from_units(self.file, self.meta, stream, units, paths, tokens, limits)
    }
}

/// Decodes `units` of `stream`, the grammar of the segment `meta` of `file`, and builds a segment of them. `paths` is
/// the checked section of its documents. `tokens` returns the dictionary of some tokens.
pub(super) fn segment_from_units(
    file: &str,
    meta: &SegmentMeta,
    stream: &GrammarStream<'_>,
    units: Vec<usize>,
    paths: &[u8],
    tokens: impl FnOnce(&[u32]) -> Result<Dictionary>,
    limits: &OpenLimits,
) -> Result<Segment> {
    let place = section_for(file, meta, SectionKind::Grammar)?.origin(file);
    let PartialGrammar { grammar, terminals } = stream.decode_units(units, limits)?;
    let dictionary = tokens(&terminals)?;
    let section = section_for(file, meta, SectionKind::Documents)?;
    let paths = codecs::documents::decode(section.origin(file), section.codec, paths, meta)?;
    let (dag, steep_rule) = Dag::from_valid(grammar, dictionary.num_words(), dictionary.lengths())
        .map_err(|e| place.fault(0, e.to_string()))?;
    refuse_steep_rule(place, steep_rule)?;
    Ok(Segment::new(dictionary, dag, paths, meta.continues))
}

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

/// Head of a dictionary, by which exact words are found in parts of it. Segments of the layout `indexed` have one,
/// unless their dictionaries are small.
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
            let got = format!("{segment_idx}, without");
            let allowed = "a segment with a dictionary head".into();
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
            let got = format!("{segment_idx}, without");
            let allowed = "a segment with word lists".into();
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use crate::Corpus;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::{FooterOutcome, SegmentLayout, StoredDictionary, verify_segment};

    use super::*;

    fn file_in(layout: SegmentLayout, texts: &[String]) -> (FileFooter, Vec<u8>) {
        let options = IngestOptions { layout, ..IngestOptions::default() };
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        texts.iter().for_each(|text| builder.push_document("a", text.as_bytes()).unwrap());
        let (file, _) = builder.finish(None).unwrap();
        let outcome = FileFooter::parse("a", &file, file.len() as u64, &OpenLimits::default()).unwrap();
        let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
        (footer, file)
    }

    #[test]
    fn words_of_a_large_dictionary_are_read_alone() {
        let text = |doc: u32| {
            (0..3_000).map(|at| format!("a_word_whose_length_is_36_bytes_{:07} ", 3_000 * doc + at)).collect()
        };
        let texts: Vec<String> = (0..40).map(text).collect();
        let (footer, file) = file_in(SegmentLayout::INDEXED, &texts);
        let part = |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
        let meta = &footer.segments[0];
        let limits = OpenLimits::default();
        let words = StoredDictionary::new("a", &footer, 0, part(meta.dictionary_range()).to_vec().into()).unwrap();
        assert_eq!(words.word_id("a_word_whose_length_is_36_bytes_0011999").unwrap(), Some(Some(11_999)));
        assert_eq!(words.word_id("a_word_whose_length_is_36_bytes_0120000").unwrap(), Some(None));
        let all = words.decode(&limits).unwrap();
        assert_eq!((all.num_words(), all.word(70_000.into())), (120_000, "a_word_whose_length_is_36_bytes_0070000"));
        let mut num_read = 0;
        let tokens = |ids: Option<&[u32]>| {
            num_read = ids.unwrap().len();
            words.subset(ids.unwrap(), &limits)
        };
        let rest = part(meta.rest_range());
        let some = read_documents_with("a", &footer, 0, rest, tokens, &[3, 17], &limits).unwrap();
        assert!(some.num_decoded < some.num_units && num_read < 40_000, "{num_read}");
        let corpus = Corpus::new(footer.profile, vec![Arc::new(some.segment)]);
        let whole = read_documents("a", &footer, 0, part(meta.byte_range()), &[3, 17], &limits).unwrap();
        let other = Corpus::new(footer.profile, vec![Arc::new(whole)]);
        for doc in [3, 17] {
            assert_eq!(corpus.document_text(doc).unwrap(), texts[doc as usize]);
            assert_eq!(other.document_text(doc).unwrap(), texts[doc as usize]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn documents_have_their_text(
            seed: u32, num_docs in 1usize..40, wanted in proptest::collection::btree_set(0u32..40, 0..6),
        ) {
            let word = |at: u32| (at ^ seed).wrapping_mul(0x9E37_79B1) >> 19;
            let len = |doc: u32| [0, 9, 3_000, 9_000][(word(doc) % 4) as usize];
            let text = |doc: u32| (0..len(doc)).map(|at| format!("w{} ", word(doc * 7 + at / 3))).collect();
            let texts: Vec<String> = (0..num_docs as u32).map(text).collect();
            let wanted: Vec<u32> = wanted.into_iter().filter(|&doc| (doc as usize) < num_docs).collect();
            for layout in [SegmentLayout::INDEXED, SegmentLayout::Small] {
                let (footer, file) = file_in(layout, &texts);
                let range = footer.segments[0].byte_range();
                let bytes = &file[range.start as usize..range.end as usize];
                let segment = read_documents("a", &footer, 0, bytes, &wanted, &OpenLimits::default()).unwrap();
                let corpus = Corpus::new(footer.profile, vec![Arc::new(segment)]);
                prop_assert_eq!(corpus.num_docs(), num_docs as u64);
                for &doc in &wanted {
                    prop_assert_eq!(&corpus.document_text(doc.into()).unwrap(), &texts[doc as usize]);
                }
            }
        }
    }

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
