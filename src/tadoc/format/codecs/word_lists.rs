//! Codec of word lists: the documents of each word of a segment, with its occurrences in each.
//!
//! ```text
//! directory  used contexts, a bit each | code of each: lengths of 33 classes
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
//! ```
//!
//! All numbers are in static prefix codes (`prefix_code`), with one code for each context: the
//! numbers of a gap follow the density of the list and whether the gap before it was 0, because
//! documents with a word stand side by side. Those of a count follow the form and the class of the
//! count before it. Postings lists with parametrized codes are Moffat and Turpin, "Compression and
//! Coding Algorithms" (2002), chapter 3; the contexts here replace their parameters.
//!
//! A question reads the directory, and the groups of its words. A group is checked by its own
//! checksum. Decoding takes some nanoseconds for each document of the words of a group up to the
//! last one asked for; lists of 256 documents or more are skipped.
//!
//! Under a budget the longest lists are left out. Their words stand in the directory as not listed,
//! and questions about them read the grammar.

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::format::cursor::{Cursor, Origin, push_varint};
use crate::format::entropy::prefix_code::{BitWriter, Class, Code, Stream, Table, classes_by_len};
use crate::format::layout::SegmentMeta;
use crate::segment::{Dag, DocWords, WordList};

/// Number of the codec of both sections in the footer.
pub(in crate::format) const CODEC: u16 = 1;

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
const NUM_CONTEXTS: usize = COUNTS + NUM_MEANS * NUM_BEFORE;
const USED_BYTES: usize = NUM_CONTEXTS.div_ceil(8);

const ALL_ONES: u32 = 0;
const ALL_EQUAL: u32 = 1;
const FIRST_MEAN: u32 = 2;

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
    /// Finds the documents of the words of `dag`. Returns `None` if there are too many of them.
    pub fn from_dag(dag: &Dag) -> Option<Self> {
        let num_elements = dag.grammar().symbols.len();
        let max_pairs = num_elements.saturating_mul(MAX_PAIRS_PER_ELEMENT).max(FEW_PAIRS);
        let doc_words = DocWords::with_max_pairs(dag, max_pairs)?;
        Some(Self::from_doc_words(&doc_words, dag.num_words()))
    }

    /// Sorts the words of documents by word. It needs O(entries) time.
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

/// Receiver of numbers in their contexts.
trait Sink {
    fn put(&mut self, context: usize, number: u32);
}

/// Counts the classes of the numbers of each context.
struct ClassCounts(Vec<[u64; NUM_CLASSES]>);

impl Sink for ClassCounts {
    fn put(&mut self, context: usize, number: u32) {
        self.0[context][usize::from(class_of(number))] += 1;
    }
}

/// Adds up the bits of numbers.
struct BitCount<'a> {
    codes: &'a [Code<'a>],
    num_bits: u64,
}

impl Sink for BitCount<'_> {
    fn put(&mut self, context: usize, number: u32) {
        self.num_bits += self.codes[context].num_bits(class_of(number));
    }
}

/// Writes numbers.
struct Writer<'a> {
    codes: &'a [Code<'a>],
    classes: &'a [Class],
    bits: BitWriter,
}

impl Sink for Writer<'_> {
    #[inline]
    fn put(&mut self, context: usize, number: u32) {
        let class_idx = class_of(number);
        let place = number - self.classes[usize::from(class_idx)].start;
        self.codes[context].push(&mut self.bits, class_idx, place);
    }
}

/// Returns the index of the class of `number`: its length in bits.
fn class_of(number: u32) -> u8 {
    (u32::BITS - number.leading_zeros()) as u8
}

/// Returns the bytes of the directory and of the lists of `documents`. If the lists take more than
/// `max_bytes`, the longest are left out.
pub(in crate::format) fn encode(documents: &WordDocuments, max_bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let classes = classes_by_len();
    let mut counted = ClassCounts(vec![[0; NUM_CLASSES]; NUM_CONTEXTS]);
    for word in 0..documents.num_words() {
        put_head(&mut counted, documents, word);
        put_body(&mut counted, documents, word);
    }
    // A word that is not listed has the number 0.
    counted.0[DF][0] += 1;
    let codes: Vec<Code<'_>> = counted.0.iter().map(|counts| Code::for_counts(&classes, counts)).collect();
    let mut directory = vec![0; USED_BYTES];
    for (context, counts) in counted.0.iter().enumerate() {
        if counts.iter().any(|&count| count > 0) {
            directory[context / 8] |= 1 << (context % 8);
            codes[context].push_lens(&mut directory);
        }
    }
    let listed = listed_words(documents, &codes, max_bytes);
    let mut lists = Vec::new();
    for first in (0..documents.num_words()).step_by(GROUP_WORDS as usize) {
        let mut writer = Writer { codes: &codes, classes: &classes, bits: BitWriter::default() };
        for word in first..documents.num_words().min(first + GROUP_WORDS) {
            if let Some(body_bits) = listed[word as usize] {
                put_word(&mut writer, documents, word, body_bits);
            } else {
                writer.put(DF, 0);
            }
        }
        let group = writer.bits.finish();
        push_varint(&mut directory, group.len() as u64);
        directory.extend(crc32c::crc32c(&group).to_le_bytes());
        lists.extend(group);
    }
    (directory, lists)
}

/// Returns the bits of the body of each word, or `None` for words that are left out.
fn listed_words(documents: &WordDocuments, codes: &[Code<'_>], max_bytes: usize) -> Vec<Option<u64>> {
    let body_bits = |word: u32| {
        let mut count = BitCount { codes, num_bits: 0 };
        put_body(&mut count, documents, word);
        count.num_bits
    };
    let body_bits: Vec<u64> = (0..documents.num_words()).map(body_bits).collect();
    let mut num_bits: u64 = body_bits.iter().sum();
    let max_bits = 8 * max_bytes as u64;
    let mut listed: Vec<Option<u64>> = body_bits.iter().copied().map(Some).collect();
    if num_bits <= max_bits {
        return listed;
    }
    let mut longest: Vec<usize> = (0..body_bits.len()).collect();
    longest.sort_by_key(|&word| std::cmp::Reverse(body_bits[word]));
    for word in longest {
        if num_bits <= max_bits {
            break;
        }
        num_bits -= body_bits[word];
        listed[word] = None;
    }
    listed
}

/// Writes a word whose body has `body_bits` bits.
fn put_word(writer: &mut Writer<'_>, documents: &WordDocuments, word: u32, body_bits: u64) {
    put_head(writer, documents, word);
    if documents.list(word).0.len() as u32 >= MIN_SKIPPED_DOCS {
        let width = (u64::BITS - body_bits.leading_zeros()) as u8;
        writer.bits.push(u32::from(width), WIDTH_BITS);
        writer.bits.push(body_bits as u32, width);
    }
    put_body(writer, documents, word);
}

fn put_head(sink: &mut impl Sink, documents: &WordDocuments, word: u32) {
    let (docs, counts) = documents.list(word);
    sink.put(DF, docs.len() as u32);
    sink.put(FORM, form_of(counts));
}

/// Returns the form of the counts of a word.
fn form_of(counts: &[u32]) -> u32 {
    let first = counts.first().copied().unwrap_or(1);
    if counts.iter().all(|&count| count == first) {
        return if first == 1 { ALL_ONES } else { ALL_EQUAL };
    }
    let sum: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    // Twice the mean, so that means between 1 and 2 have forms of their own.
    let mean = (2 * sum / counts.len() as u64).ilog2();
    FIRST_MEAN + (mean - 1).min(NUM_MEANS as u32 - 1)
}

fn put_body(sink: &mut impl Sink, documents: &WordDocuments, word: u32) {
    let (docs, counts) = documents.list(word);
    let num_docs = documents.num_docs;
    if lists_others(docs.len() as u32, num_docs) {
        let mut present = docs.iter().copied().peekable();
        let others = (0..num_docs).filter(|doc| present.next_if_eq(doc).is_none());
        put_ascending(sink, others, num_docs - docs.len() as u32, num_docs);
    } else {
        put_ascending(sink, docs.iter().copied(), docs.len() as u32, num_docs);
    }
    match form_of(counts) {
        ALL_ONES => {}
        ALL_EQUAL => sink.put(EQUAL_COUNT, counts.first().copied().unwrap_or(1)),
        form => {
            let mut context = CountContext::new(form);
            for &count in counts {
                sink.put(context.index(), count - 1);
                context.follow(count - 1);
            }
        }
    }
}

/// Returns true if a word of `df` documents has the others listed.
fn lists_others(df: u32, num_docs: u32) -> bool {
    df > num_docs / 2
}

fn put_ascending(sink: &mut impl Sink, docs: impl Iterator<Item = u32>, len: u32, num_docs: u32) {
    let mut context = GapContext::new(len, num_docs);
    let mut next = 0;
    for doc in docs {
        sink.put(context.index(), doc - next);
        context.follow(doc - next);
        next = doc + 1;
    }
}

/// Context of the next gap of a list.
struct GapContext {
    density: usize,
    is_beside: bool,
}

impl GapContext {
    fn new(len: u32, num_docs: u32) -> Self {
        let density = num_docs.checked_div(len).and_then(u32::checked_ilog2).unwrap_or(0);
        Self { density: density as usize, is_beside: false }
    }

    fn index(&self) -> usize {
        GAPS + 2 * self.density + usize::from(self.is_beside)
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
    codes: Vec<Option<StoredCode>>,
    /// End of each group in the section of lists, and its checksum.
    groups: Vec<(u64, u32)>,
}

impl ListDirectory {
    /// Reads the directory of the segment `meta`, whose lists take `lists_len` bytes.
    ///
    /// # Errors
    /// [`Error::Format`] if the bytes are not such a directory.
    pub fn read(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta, lists_len: u64) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        let num_docs = u32::try_from(meta.num_docs).map_err(|_| cursor.fault("expected fewer than 2^32 documents"))?;
        let used = cursor.take(USED_BYTES)?;
        let mut codes = Vec::with_capacity(NUM_CONTEXTS);
        for context in 0..NUM_CONTEXTS {
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
        Ok(Self { num_words: meta.num_words, num_docs, codes, groups })
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
    ) -> Result<Vec<Option<WordList>>> {
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
        for group in 0..self.num_groups() {
            let range = self.range(group);
            let group_bytes = &bytes[range.start as usize..range.end as usize];
            place.verify(group_bytes, self.groups[group].1)?;
            let mut reader = GroupReader { directory: self, place, stream: Stream::new(group_bytes) };
            let first = group as u32 * GROUP_WORDS;
            for word in first..self.num_words.min(first + GROUP_WORDS) {
                let Some(list) = reader.word(true, &mut EntriesLeft(usize::MAX))? else { continue };
                let (docs, counts) = documents.list(word);
                if list.docs != docs || list.counts != counts {
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

    /// Returns the bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let tables = self.codes.iter().flatten().filter(|code| code.table.get().is_some()).count();
        size_of_val(&self.codes[..]) + size_of_val(&self.groups[..]) + tables * Table::MEMORY_BYTES
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
    fn word(&mut self, is_wanted: bool, left: &mut EntriesLeft) -> Result<Option<WordList>> {
        let df = self.number(DF)?;
        if df == 0 {
            return if self.stream.is_behind_end() { Err(self.fault()) } else { Ok(None) };
        }
        let num_docs = self.directory.num_docs;
        let form = self.number(FORM)?;
        if df > num_docs || form >= FIRST_MEAN + NUM_MEANS as u32 {
            return Err(self.fault());
        }
        if df >= MIN_SKIPPED_DOCS {
            let width = self.stream.plain(WIDTH_BITS) as u8;
            let body_bits = self.stream.plain(width);
            let is_left_out = is_wanted && !left.take(df);
            if !is_wanted || is_left_out {
                self.stream.skip(body_bits as usize);
                let list = (!is_left_out).then(WordList::default);
                return if self.stream.is_behind_end() { Err(self.fault()) } else { Ok(list) };
            }
        }
        let docs = if lists_others(df, num_docs) {
            let others = self.ascending(num_docs - df)?;
            let mut others = others.into_iter().peekable();
            (0..num_docs).filter(|doc| others.next_if_eq(doc).is_none()).collect()
        } else {
            self.ascending(df)?
        };
        let counts = self.counts(df, form)?;
        if self.stream.is_behind_end() { Err(self.fault()) } else { Ok(Some(WordList { docs, counts })) }
    }

    fn ascending(&mut self, len: u32) -> Result<Vec<u32>> {
        let num_docs = self.directory.num_docs;
        let mut context = GapContext::new(len, num_docs);
        let mut docs = Vec::with_capacity(len as usize);
        let mut next = 0u32;
        for _ in 0..len {
            let gap = self.number(context.index())?;
            context.follow(gap);
            let doc = next.checked_add(gap).filter(|&doc| doc < num_docs).ok_or_else(|| self.fault())?;
            docs.push(doc);
            next = doc + 1;
        }
        Ok(docs)
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

#[cfg(test)]
mod tests;
