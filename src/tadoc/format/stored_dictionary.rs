//! A dictionary as it is stored, which can be searched before it is decoded.
//!
//! Dictionaries of the layouts `fast` and `indexed`, and large ones of the layout `small`, are stored in
//! blocks, of which a search decodes one. Searching them costs O(block), less than a millisecond; decoding
//! O(dictionary). Of large ones of the layout `indexed` any tokens are decoded alone.

use bytes::Bytes;

use crate::error::Result;
use crate::format::codecs::dictionary::TokenIndex;
use crate::format::framing::{OpenLimits, SectionKind};
use crate::format::layout::{FileFooter, SegmentMeta};
use crate::format::reader::{
    check_range, check_words, decode_checked_dictionary, section_bytes, section_for, segment_meta,
};
use crate::text::{Dictionary, TokenizerProfile};

/// Bytes of a dictionary, whose checksum is right.
///
/// ```
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::{FileFooter, FooterOutcome, OpenLimits, SegmentLayout, StoredDictionary};
///
/// # fn main() -> tadoc::Result<()> {
/// let options = IngestOptions { layout: SegmentLayout::Fast, ..IngestOptions::default() };
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
    /// The section with its padding.
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
        let section = section_for(file, meta, SectionKind::Dictionary)?;
        let stored = section_bytes(file, section, &bytes, section.offset)?;
        let index = TokenIndex::read(section.origin(file), section.codec, stored, meta)?;
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
        let section = section_for(&self.file, &self.meta, SectionKind::Dictionary)?;
        let bytes = &self.bytes[..section.len as usize];
        index.word_id(section.origin(&self.file), bytes, word.as_bytes()).map(Some)
    }

    /// Decodes all of it.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment).
    pub fn decode(&self, limits: &OpenLimits) -> Result<Dictionary> {
        limits.check_memory(self.meta.words_memory_bytes())?;
        let section = section_for(&self.file, &self.meta, SectionKind::Dictionary)?;
        let bytes = &self.bytes[..section.len as usize];
        decode_checked_dictionary(&self.file, section, bytes, &self.meta, self.profile)
    }

    /// Returns the dictionary of the tokens `ids`, which ascend. Decodes only these, if it can.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment), and
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for an id that does not exist.
    pub fn subset(&self, ids: &[u32], limits: &OpenLimits) -> Result<Dictionary> {
        limits.check_memory(self.meta.words_memory_bytes())?;
        let section = section_for(&self.file, &self.meta, SectionKind::Dictionary)?;
        let bytes = &self.bytes[..section.len as usize];
        let Some(TokenIndex::Coded(coded)) = &self.index else { return self.decode(limits)?.subset(ids) };
        let place = section.origin(&self.file);
        let dictionary = coded.subset(place, bytes, ids)?;
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
