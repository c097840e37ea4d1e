//! Parcels: rows of one machine, packed as numbers for the machine that adds them up.
//!
//! ```text
//! machine 0   a b: 3   a c: 1   b a: 2     words  0 a  1 b  2 c         each has its own numbers
//! machine 1   a c: 4   b c: 5              words  0 a  1 b  2 c
//!
//! parcel 0    rows that begin with a       machine 0 ─▶ 0 1: 3  0 2: 1 ┐ merged by words
//!                                          machine 1 ─▶ 0 2: 4         ┴─▶ a b: 3   a c: 5
//! parcel 1    rows that begin with b       ...
//! ```
//!
//! A machine counts its own segments. Their vocabulary numbers the words in byte order, and rows ascend by these
//! numbers. The hash of the text of its first word says to which parcel a row belongs, so equal rows of all machines
//! meet in one parcel, and no machine asks another for its numbers. [`ParcelPacker`] writes the rows of a parcel, and
//! at last the words that they use. [`MergedParcels`] merges the words of all machines, which maps the numbers of each
//! to common ones in the same order. Then it merges the rows as numbers. Texts are made of what is left.
//!
//! Machines that keep the words of the whole corpus [number them alike](crate::analytics::Vocabulary::for_part). Then no
//! text is packed or compared, and the number of the first word says to which parcel a row belongs.
//!
//! # Layout
//!
//! A parcel is a set of chunks of about 1 KiB, in any order. Numbers are LEB128.
//!
//! ```text
//! rows    0 │ head │ words │ count [ids] │ head │ ...      head: words shared with the row before, count
//! lists   2 │ the same, and behind the count as many ids of documents: the first one, then the distances
//! ranks   3 │ the same, and behind each id the number of occurrences in the document
//! words   1 │ number │ bytes │ text │ number │ ...         numbers: the first one, then distances less 1
//! common  4 │ how many words there are                     in place of words, where all machines have the same numbers
//! keys    5 │ the layout of [`keys`]                       rows with counts, where all machines have the same numbers
//! ```
//!
//! A head is one byte: in its low half the words that the row shares with the row before it in the chunk, in
//! its high half the count. 15 says that a number with the rest follows. The first word that is not shared is
//! written as its distance to that of the row before, less 1. A sequence of three words takes 5 to 7 bytes.
//!
//! O(rows) to pack, O(rows * log machines + words * log words) to merge. A place that merges a parcel holds its
//! chunks and words. Ours; a merge of sorted runs.

mod keys;
mod packing;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::analytics::too_many_occurrences;
use crate::error::{Error, Result};
use crate::format::cursor::{Cursor, Origin};

use self::keys::{KeyWords, MergedKeys};
pub use self::packing::ParcelPacker;

/// First byte of a chunk of rows with counts.
const COUNTS: u8 = 0;
/// First byte of a chunk of words.
const WORDS: u8 = 1;
/// First byte of a chunk of rows with lists of documents.
const LISTS: u8 = 2;
/// First byte of a chunk of rows with lists of documents and their counts.
const RANKS: u8 = 3;
/// First byte of the chunk that says how many words have common numbers.
const COMMON: u8 = 4;
/// First byte of a chunk of rows with counts whose words are packed as keys.
const KEYS: u8 = 5;
/// Half of a head that says that more follows.
const MORE: u64 = 15;

/// Words of a row that are compared as one number.
const WORDS_OF_KEY: usize = 4;
/// Most rows of keys that are returned at once.
const ROWS_AT_ONCE: usize = 1 << 16;
/// Ids of documents after which no more rows are returned at once.
const MAX_IDS: usize = 1 << 21;

/// A chunk of a parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Parcel, counted from 0.
    pub parcel: u32,
    /// Bytes for [`MergedParcels`].
    pub bytes: Vec<u8>,
}

/// The rows of parcels of several machines, merged while they are read. See the module's description.
#[derive(Debug)]
pub struct MergedParcels<'a> {
    num_words: usize,
    /// True if rows have documents and their counts.
    has_ranks: bool,
    /// Number of words that all machines number alike.
    num_common: Option<usize>,
    /// Rows whose words are keys. There are no others then.
    keys: Option<MergedKeys<'a>>,
    words: Vec<&'a str>,
    sources: Vec<Source<'a>>,
    /// Sources with a row, as a heap: none comes before the one at half of its place.
    heap: Vec<usize>,
}

/// Merged rows, ascending by their words. If documents have counts, there is a row for each document of a sequence, by
/// falling count and then by id.
#[derive(Debug, Default)]
pub struct MergedRows {
    num_words: usize,
    /// Words by row and position, as places in [`MergedParcels::words`]. Empty if they are keys.
    words: Vec<u32>,
    /// Keys by row, and the words of these.
    keys: Vec<u128>,
    key_words: Option<KeyWords>,
    /// Sum of the counts of each row.
    pub counts: Vec<u64>,
    /// Rank from 1 of the document of each row, if documents have counts.
    pub ranks: Vec<u64>,
    /// Ascending ids of the documents of each row, if the parcels have lists.
    ids: Vec<u64>,
    /// End of the ids of each row.
    ends: Vec<usize>,
}

impl MergedRows {
    /// Returns the words of `row`, as places in [`MergedParcels::words`], or as numbers that all machines have.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn words_of(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        let first = row * self.num_words;
        (0..self.num_words).map(move |at| match self.key_words {
            Some(words) => words.word(self.keys[row], at),
            None => self.words[first + at],
        })
    }

    /// Returns the ids of the documents of `row`, ascending; none if the parcels have no lists.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn ids_of(&self, row: usize) -> &[u64] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.ids[start..self.ends[row]]
    }

    /// Makes a row of each of `entries`, by rank. All have the words of the last row, which begin at `first_word`.
    fn push_ranked(&mut self, first_word: usize, entries: &mut [RankedDoc]) {
        entries.sort_unstable();
        for (at, &(Reverse(count), id)) in entries.iter().enumerate() {
            if at > 0 {
                self.words.extend_from_within(first_word..first_word + self.num_words);
            }
            self.counts.push(count);
            self.ranks.push(at as u64 + 1);
            self.ids.push(id);
            self.ends.push(self.ids.len());
        }
        if entries.is_empty() {
            self.words.truncate(first_word);
        }
    }
}

/// The number of occurrences in a document, highest first, and its id.
type RankedDoc = (Reverse<u64>, u64);

/// The name of a parcel and of the machine that packed it.
type ParcelName = (i64, i64);
/// A chunk, and the name of its parcel.
pub type NamedChunk<'a> = (ParcelName, &'a [u8]);

impl<'a> MergedParcels<'a> {
    /// Reads the words of `chunks`. Rows have `num_words` words. Rows of several parcels ascend together.
    ///
    /// # Errors
    /// [`Error::Format`] if a chunk is none of such rows, or if machines have numbers of different words. The error may
    /// come later, with a row.
    pub fn new(num_words: usize, chunks: Vec<NamedChunk<'a>>) -> Result<Self> {
        let machines = machines_of(chunks)?;
        let num_common = num_common_words(&machines)?;
        let (words, numbers) = match num_common {
            Some(num_common) => (Vec::new(), machines.values().map(|_| Numbers::Common(num_common)).collect()),
            None => own_words(&machines)?,
        };
        let mut kinds: Vec<u8> = machines.values().filter_map(|machine| machine.kind).collect();
        kinds.dedup();
        if kinds.len() > 1 {
            return Err(fault(0, format!("expected rows of one kind, got {kinds:?}")));
        }
        let has_ranks = kinds == [RANKS];
        let mut merged =
            Self { num_words, has_ranks, num_common, words, keys: None, sources: Vec::new(), heap: Vec::new() };
        if kinds == [KEYS] {
            let words = num_common.and_then(|num_common| KeyWords::new(num_words, num_common));
            let expected = || fault(0, format!("expected common numbers of words for keys of {num_words} words"));
            let words = words.ok_or_else(expected)?;
            merged.keys = Some(MergedKeys::new(words, machines.into_values().map(|machine| machine.rows))?);
            return Ok(merged);
        }
        for (machine, numbers) in machines.into_values().zip(numbers) {
            merged.sources.push(Source::new(num_words, machine.rows, numbers)?);
        }
        for source in 0..merged.sources.len() {
            if merged.sources[source].advance()? {
                merged.heap.push(source);
            }
        }
        for place in (0..merged.heap.len()).rev() {
            merged.sift_down(place);
        }
        Ok(merged)
    }

    /// Returns how many words all machines number alike. `None` if the machines have numbers of their own.
    pub fn num_common_words(&self) -> Option<usize> {
        self.num_common
    }

    /// Returns the words of all rows, ascending in byte order; none if all machines number words alike.
    pub fn words(&self) -> &[&'a str] {
        &self.words
    }

    /// Returns the memory of the words and their numbers in bytes, without the chunks.
    pub fn memory_bytes(&self) -> usize {
        let numbers = self.sources.iter().map(|source| source.numbers.memory_bytes()).sum::<usize>();
        numbers + size_of_val(self.words.as_slice())
    }

    /// Returns the next rows whose sum is `least_count` or more: about `num_rows`, and none at the end only.
    ///
    /// # Errors
    /// [`Error::Format`] if a chunk is none of rows that ascend, and [`Error::Capacity`] if a sum needs more than
    /// 64 bits.
    pub fn next_rows(&mut self, num_rows: usize, least_count: u64) -> Result<MergedRows> {
        let mut rows = MergedRows { num_words: self.num_words, ..MergedRows::default() };
        if let Some(keys) = &mut self.keys {
            rows.key_words = Some(keys.words());
            let at_once = num_rows.clamp(1, ROWS_AT_ONCE);
            rows.keys.reserve(at_once);
            rows.counts.reserve(at_once);
            keys.next_rows(at_once, least_count, &mut rows.keys, &mut rows.counts)?;
            return Ok(rows);
        }
        rows.words.reserve(num_rows.min(1 << 16).saturating_mul(self.num_words.min(16)));
        let in_key = self.num_words.min(WORDS_OF_KEY);
        let mut entries = Vec::new();
        while rows.counts.len() < num_rows.max(1) && rows.ids.len() < MAX_IDS {
            let Some(&first) = self.heap.first() else { break };
            let key = self.sources[first].key;
            rows.words.extend((0..in_key).map(|at| (key >> (32 * (in_key - 1 - at))) as u32));
            let rest = rows.words.len();
            rows.words.extend_from_slice(&self.sources[first].rest);
            let start = rows.ids.len();
            entries.clear();
            let sum = self.sum_of(key, &rows.words[rest..], &mut rows.ids, &mut entries)?;
            if self.has_ranks {
                rows.push_ranked(rest - in_key, &mut entries);
                continue;
            }
            if sum < least_count {
                rows.words.truncate(rest - in_key);
                rows.ids.truncate(start);
                continue;
            }
            rows.ids[start..].sort_unstable();
            rows.counts.push(sum);
            rows.ends.push(rows.ids.len());
        }
        Ok(rows)
    }

    /// Passes the row with these words in all sources. Returns the sum of its counts, and appends its ids, or its
    /// documents and their counts.
    fn sum_of(&mut self, key: u128, rest: &[u32], ids: &mut Vec<u64>, entries: &mut Vec<RankedDoc>) -> Result<u64> {
        let mut sum = 0u64;
        while let Some(&first) = self.heap.first() {
            let source = &mut self.sources[first];
            if source.key != key || !rest.is_empty() && source.rest != rest {
                break;
            }
            sum = sum.checked_add(source.count).ok_or_else(too_many_occurrences)?;
            ids.append(&mut source.ids);
            entries.append(&mut source.entries);
            if !source.advance()? {
                self.heap.swap_remove(0);
            }
            self.sift_down(0);
        }
        Ok(sum)
    }

    /// Moves the source at `place` of the heap behind those that come before it.
    fn sift_down(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.is_before(child, least) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }

    /// Returns true if the row at place `one` of the heap comes before that at `other`.
    #[inline]
    fn is_before(&self, one: usize, other: usize) -> bool {
        let one = &self.sources[self.heap[one]];
        let other = &self.sources[self.heap[other]];
        one.key < other.key || one.key == other.key && one.rest < other.rest
    }
}

/// The chunks of one parcel of one machine.
#[derive(Debug, Default)]
struct Machine<'a> {
    words: Vec<&'a [u8]>,
    rows: Vec<&'a [u8]>,
    /// Kind of the rows, if there are any.
    kind: Option<u8>,
}

/// Returns `chunks` by parcel and machine.
fn machines_of<'a>(chunks: Vec<NamedChunk<'a>>) -> Result<BTreeMap<ParcelName, Machine<'a>>> {
    let mut machines: BTreeMap<ParcelName, Machine<'a>> = BTreeMap::new();
    for (name, chunk) in chunks {
        let machine = machines.entry(name).or_default();
        match chunk.first() {
            Some(&(WORDS | COMMON)) => machine.words.push(chunk),
            Some(&got @ (COUNTS | LISTS | RANKS | KEYS)) if *machine.kind.get_or_insert(got) == got => {
                machine.rows.push(chunk)
            }
            other => return Err(fault(0, format!("expected words or rows of one kind, got {other:?}"))),
        }
    }
    Ok(machines)
}

/// Numbers of the words of a machine.
#[derive(Debug)]
enum Numbers {
    /// Merged number of each word, plus 1; 0 if the machine has no such word.
    Own(Vec<u32>),
    /// So many words have the numbers that all machines have.
    Common(usize),
}

impl Numbers {
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Own(numbers) => 4 * numbers.len(),
            Self::Common(_) => 0,
        }
    }

    /// Returns the merged number of `word`, if the machine has it.
    #[inline]
    fn merged(&self, word: u32) -> Option<u32> {
        match self {
            Self::Own(numbers) => numbers.get(word as usize)?.checked_sub(1),
            &Self::Common(num_words) => ((word as usize) < num_words).then_some(word),
        }
    }
}

/// Rows of one parcel of one machine.
#[derive(Debug)]
struct Source<'a> {
    numbers: Numbers,
    /// Chunks of rows that are not read yet, the next one last.
    chunks: Vec<&'a [u8]>,
    rows: Cursor<'a>,
    /// Kind of the chunk.
    kind: u8,
    /// True until a row of the chunk is read.
    is_first: bool,
    /// True once a row of any chunk is read.
    has_read: bool,
    /// Last row in the numbers of the machine.
    last: Vec<u32>,
    /// First words of the last row in merged numbers, and the others.
    key: u128,
    rest: Vec<u32>,
    count: u64,
    ids: Vec<u64>,
    entries: Vec<RankedDoc>,
}

impl<'a> Source<'a> {
    fn new(num_words: usize, mut chunks: Vec<&'a [u8]>, numbers: Numbers) -> Result<Self> {
        // Chunks mostly come in order, and a stable sort is fast then.
        let mut firsts = Vec::with_capacity(chunks.len());
        for chunk in chunks.drain(..) {
            firsts.push((first_row(chunk, num_words)?, chunk));
        }
        firsts.sort_by(|one, other| other.0.cmp(&one.0));
        Ok(Self {
            numbers,
            chunks: firsts.into_iter().map(|(_, chunk)| chunk).collect(),
            rows: Cursor::new(ORIGIN, &[]),
            kind: COUNTS,
            is_first: true,
            has_read: false,
            last: vec![0; num_words],
            key: 0,
            rest: vec![0; num_words.saturating_sub(WORDS_OF_KEY)],
            count: 0,
            ids: Vec::new(),
            entries: Vec::new(),
        })
    }

    /// Reads the next row. Returns false if there is none.
    fn advance(&mut self) -> Result<bool> {
        if self.rows.remaining() == 0 {
            let Some(chunk) = self.chunks.pop() else { return Ok(false) };
            self.rows = Cursor::new(ORIGIN, chunk);
            self.kind = self.rows.u8()?;
            self.is_first = true;
        }
        self.count = read_row(&mut self.rows, self.is_first, &mut self.last)?;
        self.is_first = false;
        if self.kind != COUNTS {
            self.read_documents()?;
        }
        let in_key = self.last.len().min(WORDS_OF_KEY);
        let mut key = 0u128;
        for at in 0..in_key {
            key = key << 32 | u128::from(self.number(at)?);
        }
        // Rows that do not ascend would be merged wrongly.
        let mut is_ascending = key > self.key;
        let mut is_equal = key == self.key;
        self.key = key;
        for at in in_key..self.last.len() {
            let number = self.number(at)?;
            let before = std::mem::replace(&mut self.rest[at - in_key], number);
            is_ascending |= is_equal && number > before;
            is_equal &= number == before;
        }
        if self.has_read && !is_ascending {
            return Err(self.rows.fault("expected rows that ascend"));
        }
        self.has_read = true;
        Ok(true)
    }

    /// Returns the merged number of the word at `place` of the last row.
    #[inline]
    fn number(&self, place: usize) -> Result<u32> {
        let word = self.last[place];
        self.numbers.merged(word).ok_or_else(|| self.rows.fault(format!("expected the text of word {word}")))
    }

    /// Reads the documents of the row.
    fn read_documents(&mut self) -> Result<()> {
        self.ids.clear();
        self.entries.clear();
        let mut id = 0u64;
        for _ in 0..self.count {
            let next = id.checked_add(self.rows.varint()?);
            id = next.ok_or_else(|| self.rows.fault("expected ids of 64 bits"))?;
            if self.kind == RANKS {
                self.entries.push((Reverse(self.rows.varint()?), id));
            } else {
                self.ids.push(id);
            }
        }
        Ok(())
    }
}

const ORIGIN: Origin<'static> = Origin { file: "rows of a machine", section: "parcel", offset: 0 };

fn fault(at: usize, reason: impl Into<String>) -> Error {
    ORIGIN.fault(at, reason)
}

/// Reads a row over the one before it, `last`, and returns its count.
#[inline]
fn read_row(rows: &mut Cursor<'_>, is_first: bool, last: &mut [u32]) -> Result<u64> {
    let head = u64::from(rows.u8()?);
    let mut shared = head & MORE;
    let mut count = head >> 4;
    if shared == MORE {
        shared = shared.saturating_add(rows.varint()?);
    }
    let num_shared = usize::try_from(shared).unwrap_or(usize::MAX);
    if num_shared >= last.len() || is_first && num_shared > 0 {
        return Err(rows.fault(format!("expected fewer than {shared} words in common")));
    }
    let before = if is_first { 0 } else { u64::from(last[num_shared]) + 1 };
    let first = before.saturating_add(rows.varint()?);
    last[num_shared] = word_number(rows, first)?;
    for word in &mut last[num_shared + 1..] {
        let number = rows.varint()?;
        *word = word_number(rows, number)?;
    }
    if count == MORE {
        let more = rows.varint()?;
        count = count.checked_add(more).ok_or_else(|| rows.fault("expected a count of 64 bits"))?;
    }
    Ok(count)
}

fn word_number(rows: &Cursor<'_>, number: u64) -> Result<u32> {
    u32::try_from(number).map_err(|_| rows.fault(format!("expected the number of a word, got {number}")))
}

/// Returns the first row of a chunk.
fn first_row(chunk: &[u8], num_words: usize) -> Result<Vec<u32>> {
    let mut rows = Cursor::new(ORIGIN, chunk);
    rows.u8()?;
    let mut row = vec![0; num_words];
    read_row(&mut rows, true, &mut row)?;
    Ok(row)
}

/// Returns the number of words that all `machines` number alike, if they do.
fn num_common_words(machines: &BTreeMap<ParcelName, Machine<'_>>) -> Result<Option<usize>> {
    let mut chunks = machines.values().flat_map(|machine| &machine.words);
    if !chunks.any(|chunk| chunk.first() == Some(&COMMON)) {
        return Ok(None);
    }
    let mut all = None;
    for machine in machines.values() {
        let got = machine.words.iter().map(|chunk| common_words(chunk)).collect::<Result<Vec<_>>>()?;
        let expected = *all.get_or_insert(got.first().copied().unwrap_or_default());
        if got != [expected] {
            return Err(fault(0, format!("expected common numbers of {expected} words, got those of {got:?}")));
        }
    }
    Ok(all)
}

/// Returns the number of words that a chunk says.
fn common_words(chunk: &[u8]) -> Result<usize> {
    let mut words = Cursor::new(ORIGIN, chunk);
    match (words.u8()?, words.varint()?) {
        (COMMON, num_words) if words.remaining() == 0 => Ok(usize::try_from(num_words).unwrap_or(usize::MAX)),
        _ => Err(words.fault("expected common numbers of words")),
    }
}

/// Returns the words of `machines`, and the numbers of the words of each.
fn own_words<'a>(machines: &BTreeMap<ParcelName, Machine<'a>>) -> Result<(Vec<&'a str>, Vec<Numbers>)> {
    let mut texts = Vec::new();
    for (source, machine) in machines.values().enumerate() {
        read_words(source as u32, &machine.words, &mut texts)?;
    }
    let (words, numbers) = merged_words(texts, machines.len())?;
    Ok((words, numbers.into_iter().map(Numbers::Own).collect()))
}

/// A word of a machine. Words are compared by their first bytes, then by their text.
struct Text<'a> {
    leading: u64,
    text: &'a str,
    source: u32,
    number: u32,
}

/// Appends the words in `chunks` to `texts`.
fn read_words<'a>(source: u32, chunks: &[&'a [u8]], texts: &mut Vec<Text<'a>>) -> Result<()> {
    for chunk in chunks {
        let mut words = Cursor::new(ORIGIN, chunk);
        words.u8()?;
        let mut next = 0u64;
        while words.remaining() > 0 {
            let number = next.saturating_add(words.varint()?);
            let number = word_number(&words, number)?;
            next = u64::from(number) + 1;
            let len = words.varint()?;
            let bytes = words.take(usize::try_from(len).unwrap_or(usize::MAX))?;
            let text = std::str::from_utf8(bytes);
            let text = text.map_err(|_| words.fault("expected a word in UTF-8"))?;
            texts.push(Text { leading: leading(bytes), text, source, number });
        }
    }
    Ok(())
}

/// Merges the words of all machines. Returns them, and the merged number of each word of each machine, plus 1.
fn merged_words(mut texts: Vec<Text<'_>>, num_sources: usize) -> Result<(Vec<&str>, Vec<Vec<u32>>)> {
    // The words of each machine ascend: a stable sort merges them.
    texts.sort_by(|one, other| one.leading.cmp(&other.leading).then_with(|| one.text.cmp(other.text)));
    let mut lens = vec![0usize; num_sources];
    for text in &texts {
        let len = &mut lens[text.source as usize];
        *len = (*len).max(text.number as usize + 1);
    }
    // Zeros take no memory until they are written.
    let mut numbers: Vec<Vec<u32>> = lens.into_iter().map(|len| vec![0; len]).collect();
    let mut words: Vec<&str> = Vec::new();
    for Text { text, source, number, .. } in texts {
        if words.last() != Some(&text) {
            words.push(text);
        }
        numbers[source as usize][number as usize] = words.len() as u32;
    }
    match u32::try_from(words.len()) {
        Ok(_) => Ok((words, numbers)),
        Err(_) => Err(fault(0, format!("expected fewer than 2^32 words, got {}", words.len()))),
    }
}

/// Returns the first 8 bytes as a number with the order of the bytes.
fn leading(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = bytes.len().min(8);
    first[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(first)
}
