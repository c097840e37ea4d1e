//! Codec of word lists: the documents of each word of a segment, with its occurrences in each.
//!
//! ```text
//! directory  number of regions LEB128 | documents of each LEB128
//!            | used contexts, a bit each | code of each: lengths of 33 classes
//!            | of each group: bytes LEB128, crc32c u32
//! lists      group 0: words 0 .. 64 │ group 1: words 64 .. 128 │ …       each decodes alone
//! word       df or 0 if it is not listed | form of the counts
//!            | df ≥ 256: width 5 bits, bits of what follows | documents | counts
//!
//! documents  0 3 4 9      gaps 0 2 0 4               a word of more than half of the documents
//! all but    0 3 4 9      stands in all but these    has the others listed
//! counts     1 1 1 1      form 0: all are 1
//!            4 4 4 4      form 1: all are 4
//!            1 2 9 1      forms 2 to 9, by the mean: each less one
//! regions    0 2          form 10: regions in which some documents have the word, without counts
//! ```
//!
//! All numbers are in static prefix codes (`prefix_code`), with one code for each context: the numbers of a gap follow
//! the density of the list and whether the gap before it was 0, because documents with a word stand side by side. Those
//! of a count follow the form and the class of the count before it. Postings lists with parametrized codes are Moffat
//! and Turpin, "Compression and Coding Algorithms" (2002), chapter 3; the contexts here replace their parameters.
//!
//! A question reads the directory, and the groups of its words. A group is checked by its own
//! checksum. Decoding takes some nanoseconds for each document of the words of a group up to the
//! last one asked for; lists of 256 documents or more are skipped.
//!
//! A *region* is a run of documents that are decoded together: units of the grammar section. Under a budget the words
//! of few documents have lists of regions, which take half of the bits. A question about them decodes these regions,
//! and one about other words reads their lists alone. If that does not suffice, the longest lists are left out. Their
//! words stand in the directory as not listed, and questions about them read the grammar.
//!
//! Codec 1 has no regions.

mod encode;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::format::codec_numbers::LISTS_WITHOUT_REGIONS;
use crate::format::cursor::{Cursor, Origin, push_varint};
use crate::format::entropy::prefix_code::{Stream, Table, classes_by_len};
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;
use crate::segment::{Dag, DocWords, ListedWord, WordList};

pub(in crate::format) use encode::encode;

/// Number of words of a group, of which the last one may have fewer.
const GROUP_WORDS: u32 = 64;
/// Least number of documents of a list whose length is stored.
const MIN_SKIPPED_DOCS: u32 = 256;
/// Most entries of lists that one question gets. Lists that would be beyond count as left out.
const MAX_ENTRIES: usize = 1 << 23;
/// Bits that hold the width of a length.
const WIDTH_BITS: u8 = 5;
const NUM_CLASSES: usize = 33;
const LENS_BYTES: usize = NUM_CLASSES.div_ceil(2);

/// Greatest number of pairs of a document and a word of it for which lists are written, for each
/// element of the grammar, and the number that is always allowed.
const MAX_PAIRS_PER_ELEMENT: usize = 16;
const FEW_PAIRS: usize = 1 << 20;

/// Contexts of numbers, each with its code.
const DF: usize = 0;
const FORM: usize = 1;
const EQUAL_COUNT: usize = 2;
const GAPS: usize = 3;
const NUM_DENSITIES: usize = 32;
const COUNTS: usize = GAPS + 2 * NUM_DENSITIES;
const NUM_MEANS: usize = 8;
const NUM_BEFORE: usize = 4;
const REGION_GAPS: usize = COUNTS + NUM_MEANS * NUM_BEFORE;
const NUM_CONTEXTS: usize = REGION_GAPS + 2 * NUM_DENSITIES;
const USED_BYTES: usize = NUM_CONTEXTS.div_ceil(8);

const ALL_ONES: u32 = 0;
const ALL_EQUAL: u32 = 1;
const FIRST_MEAN: u32 = 2;
const REGIONS: u32 = FIRST_MEAN + NUM_MEANS as u32;

/// Runs of documents that are decoded together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::format) struct Regions {
    /// First document of each, and the end of the last.
    starts: Vec<u32>,
}

impl Regions {
    /// Returns the runs of documents of the units of `grammar`, which begin at `unit_starts` of its root.
    pub fn from_units(grammar: &Grammar, unit_starts: &[u32]) -> Self {
        let num_docs = grammar.num_docs() as u32;
        let offsets = &grammar.doc_offsets[..num_docs as usize];
        let mut starts = vec![0];
        for &unit_start in unit_starts {
            let doc = offsets.partition_point(|&offset| offset < unit_start);
            if offsets.get(doc) == Some(&unit_start) && doc > 0 {
                starts.push(doc as u32);
            }
        }
        starts.push(num_docs);
        starts.dedup();
        Self { starts }
    }

    /// Reads what [`push`](Self::push) writes, for `num_docs` documents.
    fn read(cursor: &mut Cursor<'_>, num_docs: u32) -> Result<Self> {
        let at = cursor.clone();
        let num_regions = cursor.varint()?;
        let mut starts = vec![0];
        let mut end = 0u32;
        for _ in 0..num_regions {
            let len = u32::try_from(cursor.varint()?).ok().filter(|&len| len > 0);
            let next = len.and_then(|len| end.checked_add(len)).filter(|&end| end <= num_docs);
            end = next.ok_or_else(|| at.fault("expected regions of the documents"))?;
            starts.push(end);
        }
        if end < num_docs {
            return Err(at.fault(format!("expected regions of {num_docs} documents, got {end}")));
        }
        Ok(Self { starts })
    }

    fn push(&self, out: &mut Vec<u8>) {
        push_varint(out, u64::from(self.len()));
        for ends in self.starts.windows(2) {
            push_varint(out, u64::from(ends[1] - ends[0]));
        }
    }

    fn len(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// Returns the region of each document.
    fn by_doc(&self) -> Vec<u32> {
        let regions = (0..).zip(self.starts.windows(2));
        regions.flat_map(|(region, ends)| (ends[0]..ends[1]).map(move |_| region)).collect()
    }

    fn docs(&self, region: u32) -> Range<u32> {
        self.starts[region as usize]..self.starts[region as usize + 1]
    }
}

/// Returns the regions that have some of `docs`, which ascend, by the region of each document.
fn regions_with(region_of_doc: &[u32], docs: &[u32]) -> impl Iterator<Item = u32> {
    let mut last = None;
    docs.iter().filter_map(move |&doc| {
        let region = region_of_doc[doc as usize];
        (last.replace(region) != Some(region)).then_some(region)
    })
}

/// Documents of each word of a segment, word by word.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::format) struct WordDocuments {
    num_docs: u32,
    /// Start of the entries of each word, and the end of the last.
    offsets: Vec<usize>,
    docs: Vec<u32>,
    counts: Vec<u32>,
}

impl WordDocuments {
    /// Finds the documents of the words of `dag`. Returns `None` if there are too many of them, or if a word has
    /// none: builders make no such segment, and lists have no code for it.
    pub fn from_dag(dag: &Dag) -> Option<Self> {
        let num_elements = dag.grammar().symbols.len();
        let max_pairs = num_elements.saturating_mul(MAX_PAIRS_PER_ELEMENT).max(FEW_PAIRS);
        let doc_words = DocWords::unordered(dag, max_pairs)?;
        let documents = Self::from_doc_words(&doc_words, dag.num_words());
        let has_each_word = documents.offsets.windows(2).all(|ends| ends[0] < ends[1]);
        has_each_word.then_some(documents)
    }

    /// Sorts the words of documents, which stand in any order in a document, by word. It needs O(entries) time.
    fn from_doc_words(doc_words: &DocWords, num_words: u32) -> Self {
        let num_words = num_words as usize;
        let mut offsets = vec![0usize; num_words + 1];
        let (_, words) = doc_words.lists();
        words.iter().for_each(|&word| offsets[word as usize + 1] += 1);
        for word in 0..num_words {
            offsets[word + 1] += offsets[word];
        }
        let mut next = offsets.clone();
        let mut docs = vec![0u32; words.len()];
        let mut counts = vec![0u32; words.len()];
        let mut num_docs = 0;
        for doc in doc_words.docs() {
            let (words, counts_here) = doc_words.for_doc(doc);
            for (&word, &count) in words.iter().zip(counts_here) {
                let at = &mut next[word as usize];
                (docs[*at], counts[*at]) = (u32::from(doc), count);
                *at += 1;
            }
            num_docs += 1;
        }
        Self { num_docs, offsets, docs, counts }
    }

    fn num_words(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// Returns the documents of `word` and its occurrences in each.
    fn list(&self, word: u32) -> (&[u32], &[u32]) {
        let range = self.offsets[word as usize]..self.offsets[word as usize + 1];
        (&self.docs[range.clone()], &self.counts[range])
    }
}

/// Returns the index of the class of `number`: its length in bits.
fn class_of(number: u32) -> u8 {
    (u32::BITS - number.leading_zeros()) as u8
}

/// Returns true if a word of `df` documents has the others listed.
fn lists_others(df: u32, num_docs: u32) -> bool {
    df > num_docs / 2
}

/// Context of the next gap of a list.
struct GapContext {
    /// The first one of its density.
    first: usize,
    is_beside: bool,
}

/// Returns the log2 of the mean distance of `len` of `num` numbers.
fn density(len: u32, num: u32) -> usize {
    num.checked_div(len).and_then(u32::checked_ilog2).unwrap_or(0) as usize
}

impl GapContext {
    fn for_docs(len: u32, num_docs: u32) -> Self {
        Self { first: GAPS + 2 * density(len, num_docs), is_beside: false }
    }

    fn for_regions(len: u32, num_regions: u32) -> Self {
        Self { first: REGION_GAPS + 2 * density(len, num_regions), is_beside: false }
    }

    fn index(&self) -> usize {
        self.first + usize::from(self.is_beside)
    }

    fn follow(&mut self, gap: u32) {
        self.is_beside = gap == 0;
    }
}

/// Context of the next count of a list.
struct CountContext {
    mean: usize,
    before: usize,
}

impl CountContext {
    fn new(form: u32) -> Self {
        let mean = form.saturating_sub(FIRST_MEAN) as usize;
        Self { mean, before: 0 }
    }

    fn index(&self) -> usize {
        COUNTS + NUM_BEFORE * self.mean + self.before
    }

    fn follow(&mut self, number: u32) {
        let low = self.mean.saturating_sub(1);
        self.before = usize::from(class_of(number)).saturating_sub(low).min(NUM_BEFORE - 1);
    }
}

/// A code whose table is made when it is needed.
#[derive(Debug)]
struct StoredCode {
    lens: [u8; LENS_BYTES],
    table: OnceLock<Table>,
}

/// Directory of the lists of a segment: codes, and the place and checksum of each group.
#[derive(Debug)]
pub(in crate::format) struct ListDirectory {
    num_words: u32,
    num_docs: u32,
    /// None in sections without regions.
    regions: Regions,
    codes: Vec<Option<StoredCode>>,
    /// End of each group in the section of lists, and its checksum.
    groups: Vec<(u64, u32)>,
}

impl ListDirectory {
    /// Reads the directory of the segment `meta`, whose lists take `lists_len` bytes.
    ///
    /// # Errors
    /// [`Error::Format`] if the bytes are not such a directory.
    pub fn read(place: Origin<'_>, codec: u16, bytes: &[u8], meta: &SegmentMeta, lists_len: u64) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        let num_docs = u32::try_from(meta.num_docs).map_err(|_| cursor.fault("expected fewer than 2^32 documents"))?;
        let has_regions = codec != LISTS_WITHOUT_REGIONS;
        let regions = if has_regions { Regions::read(&mut cursor, num_docs)? } else { Regions::default() };
        let num_contexts = if has_regions { NUM_CONTEXTS } else { REGION_GAPS };
        let used = cursor.take(num_contexts.div_ceil(8))?;
        let mut codes = Vec::with_capacity(num_contexts);
        for context in 0..num_contexts {
            let is_used = used[context / 8] >> (context % 8) & 1 == 1;
            codes.push(if is_used { Some(stored_code(&mut cursor)?) } else { None });
        }
        let num_groups = meta.num_words.div_ceil(GROUP_WORDS);
        // A group takes 5 bytes or more, so the bytes bound the memory.
        if num_groups as usize > cursor.remaining() / 5 {
            return Err(cursor.fault(format!("expected {num_groups} groups of words")));
        }
        let mut groups = Vec::with_capacity(num_groups as usize);
        let mut end = 0u64;
        for _ in 0..num_groups {
            end = end.saturating_add(cursor.varint()?);
            groups.push((end, cursor.u32()?));
        }
        if end != lists_len {
            return Err(cursor.fault(format!("expected lists of {lists_len} bytes, got {end}")));
        }
        cursor.finish()?;
        Ok(Self { num_words: meta.num_words, num_docs, regions, codes, groups })
    }

    /// Returns the index of the group of `word`, which must exist.
    pub fn group_of(&self, word: u32) -> usize {
        (word / GROUP_WORDS) as usize
    }

    /// Returns the number of groups.
    pub fn num_groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns the bytes of group `group` in the section of lists.
    pub fn range(&self, group: usize) -> std::ops::Range<u64> {
        let start = group.checked_sub(1).map_or(0, |before| self.groups[before].0);
        start..self.groups[group].0
    }

    /// Returns the lists of `words` of group `group`, ascending; `None` for a word that is not
    /// listed, or whose entries are more than are `left`. `bytes` are those of the group, which lies
    /// at `place`.
    ///
    /// # Errors
    /// [`Error::Checksum`] and [`Error::Format`] for other bytes.
    pub fn lists(
        &self,
        place: Origin<'_>,
        group: usize,
        bytes: &[u8],
        words: &[u32],
        left: &mut EntriesLeft,
    ) -> Result<Vec<Option<ListedWord>>> {
        place.verify(bytes, self.groups[group].1)?;
        let first = group as u32 * GROUP_WORDS;
        let end = self.num_words.min(first + GROUP_WORDS);
        let mut reader = GroupReader { directory: self, place, stream: Stream::new(bytes) };
        let mut lists = Vec::with_capacity(words.len());
        let mut wanted = words.iter().copied().peekable();
        for word in first..end {
            if wanted.peek().is_none() {
                break;
            }
            let is_wanted = wanted.next_if_eq(&word).is_some();
            let list = reader.word(is_wanted, left)?;
            if is_wanted {
                lists.push(list);
            }
        }
        Ok(lists)
    }

    /// Refuses lists that are not those of `documents`. Words may be unlisted. `bytes` are those of
    /// the section of lists, at `place`.
    ///
    /// # Errors
    /// [`Error::Checksum`] and [`Error::Format`].
    pub fn check(&self, place: Origin<'_>, bytes: &[u8], documents: &WordDocuments) -> Result<()> {
        let region_of_doc = self.regions.by_doc();
        for group in 0..self.num_groups() {
            let range = self.range(group);
            let group_bytes = &bytes[range.start as usize..range.end as usize];
            place.verify(group_bytes, self.groups[group].1)?;
            let mut reader = GroupReader { directory: self, place, stream: Stream::new(group_bytes) };
            let first = group as u32 * GROUP_WORDS;
            for word in first..self.num_words.min(first + GROUP_WORDS) {
                let Some(list) = reader.word(true, &mut EntriesLeft(usize::MAX))? else { continue };
                let (docs, counts) = documents.list(word);
                let is_right = match &list {
                    ListedWord::Counted(list) => list.docs == docs && list.counts == counts,
                    ListedWord::Near(near) => {
                        let regions: Vec<u32> = regions_with(&region_of_doc, docs).collect();
                        *near == self.near_docs(&regions)
                    }
                };
                if !is_right {
                    let reason = format!("expected the {} documents of word {word}, got others", docs.len());
                    return Err(place.fault(range.start as usize, reason));
                }
            }
            if !reader.stream.is_at_end() {
                return Err(reader.fault());
            }
        }
        Ok(())
    }

    /// Returns the documents of `regions`, which ascend.
    fn near_docs(&self, regions: &[u32]) -> Vec<u32> {
        regions.iter().flat_map(|&region| self.regions.docs(region)).collect()
    }

    /// Returns the bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let tables = self.codes.iter().flatten().filter(|code| code.table.get().is_some()).count();
        size_of_val(&self.codes[..])
            + size_of_val(&self.groups[..])
            + size_of_val(&self.regions.starts[..])
            + tables * Table::MEMORY_BYTES
    }
}

/// Number of entries that a question may still get.
#[derive(Debug)]
pub(in crate::format) struct EntriesLeft(usize);

impl Default for EntriesLeft {
    fn default() -> Self {
        Self(MAX_ENTRIES)
    }
}

impl EntriesLeft {
    /// Takes `len` entries, if so many are left.
    fn take(&mut self, len: u32) -> bool {
        let left = self.0.checked_sub(len as usize);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

fn stored_code(cursor: &mut Cursor<'_>) -> Result<StoredCode> {
    let at = cursor.clone();
    let mut lens = [0; LENS_BYTES];
    lens.copy_from_slice(cursor.take(LENS_BYTES)?);
    if Table::are_lens(&lens, NUM_CLASSES) {
        Ok(StoredCode { lens, table: OnceLock::new() })
    } else {
        Err(at.fault("expected lengths of a complete prefix code"))
    }
}

/// Reads the words of a group in order.
struct GroupReader<'a> {
    directory: &'a ListDirectory,
    place: Origin<'a>,
    stream: Stream<'a>,
}

impl GroupReader<'_> {
    fn fault(&self) -> Error {
        self.place.fault(0, "expected documents of the segment, ascending, with their counts")
    }

    fn table(&self, context: usize) -> Result<&Table> {
        let code = self.directory.codes.get(context).and_then(Option::as_ref).ok_or_else(|| self.fault())?;
        if let Some(table) = code.table.get() {
            return Ok(table);
        }
        let table = Table::read(&mut Cursor::new(self.place, &code.lens), &classes_by_len())?;
        Ok(code.table.get_or_init(|| table))
    }

    fn number(&mut self, context: usize) -> Result<u32> {
        let table = self.table(context)?;
        let mut stream = self.stream;
        let number = stream.next(table);
        self.stream = stream;
        Ok(number)
    }

    /// Reads the next word. Returns `None` if it is not listed or its entries are more than are
    /// `left`; if it is not wanted the list may be empty.
    fn word(&mut self, is_wanted: bool, left: &mut EntriesLeft) -> Result<Option<ListedWord>> {
        let df = self.number(DF)?;
        if df == 0 {
            return if self.stream.is_behind_end() { Err(self.fault()) } else { Ok(None) };
        }
        let num_docs = self.directory.num_docs;
        let form = self.number(FORM)?;
        if form == REGIONS {
            return self.near(df, is_wanted, left);
        }
        if df > num_docs || form > REGIONS {
            return Err(self.fault());
        }
        if df >= MIN_SKIPPED_DOCS {
            let width = self.stream.plain(WIDTH_BITS) as u8;
            let body_bits = self.stream.plain(width);
            let is_left_out = is_wanted && !left.take(df);
            if !is_wanted || is_left_out {
                self.stream.skip(body_bits as usize);
                let list = (!is_left_out).then(|| ListedWord::Counted(WordList::default()));
                return if self.stream.is_behind_end() { Err(self.fault()) } else { Ok(list) };
            }
        }
        let docs = if lists_others(df, num_docs) {
            let num_others = num_docs - df;
            let others = self.ascending(num_others, num_docs, GapContext::for_docs(num_others, num_docs))?;
            let mut others = others.into_iter().peekable();
            (0..num_docs).filter(|doc| others.next_if_eq(doc).is_none()).collect()
        } else {
            self.ascending(df, num_docs, GapContext::for_docs(df, num_docs))?
        };
        let counts = self.counts(df, form)?;
        let list = ListedWord::Counted(WordList { docs, counts });
        if self.stream.is_behind_end() { Err(self.fault()) } else { Ok(Some(list)) }
    }

    /// Reads the list of a word in `num_near` regions.
    fn near(&mut self, num_near: u32, is_wanted: bool, left: &mut EntriesLeft) -> Result<Option<ListedWord>> {
        let num_regions = self.directory.regions.len();
        if num_near > num_regions {
            return Err(self.fault());
        }
        let regions = self.ascending(num_near, num_regions, GapContext::for_regions(num_near, num_regions))?;
        if self.stream.is_behind_end() {
            return Err(self.fault());
        }
        if !is_wanted {
            return Ok(Some(ListedWord::Near(Vec::new())));
        }
        let num_docs = regions.iter().map(|&region| self.directory.regions.docs(region).len() as u32).sum();
        Ok(left.take(num_docs).then(|| ListedWord::Near(self.directory.near_docs(&regions))))
    }

    /// Reads `len` numbers below `end`, ascending.
    fn ascending(&mut self, len: u32, end: u32, mut context: GapContext) -> Result<Vec<u32>> {
        let mut numbers = Vec::with_capacity(len as usize);
        let mut next = 0u32;
        for _ in 0..len {
            let gap = self.number(context.index())?;
            context.follow(gap);
            let number = next.checked_add(gap).filter(|&number| number < end).ok_or_else(|| self.fault())?;
            numbers.push(number);
            next = number + 1;
        }
        Ok(numbers)
    }

    fn counts(&mut self, df: u32, form: u32) -> Result<Vec<u32>> {
        match form {
            ALL_ONES => Ok(vec![1; df as usize]),
            ALL_EQUAL => match self.number(EQUAL_COUNT)? {
                0 => Err(self.fault()),
                count => Ok(vec![count; df as usize]),
            },
            form => {
                let mut context = CountContext::new(form);
                let mut counts = Vec::with_capacity(df as usize);
                for _ in 0..df {
                    let number = self.number(context.index())?;
                    context.follow(number);
                    counts.push(number.checked_add(1).ok_or_else(|| self.fault())?);
                }
                Ok(counts)
            }
        }
    }
}
