//! Prefix sums of bytes and words over all right-hand sides.
//!
//! ```text
//! symbols   |............|............|............|.....      blocks of BLOCK_LEN positions
//! block     bytes, words before it | 12 x (blank:1, bytes:18, words:13) from the block's start
//! ```
//!
//! A block is one cache line, so the start of any element costs one cache miss. Climbing the inverse grammar and random
//! extraction spend most of their time on this. A sample every 16 positions would take 1 byte for each element instead
//! of 5.3, and 15 look-ups at random positions. `benches/access.rs` measures this.
//!
//! The sums run over the whole `symbols` array, across rule borders, and wrap. Only differences inside one rule (or one
//! document of the root) are used. They are exact because every expansion is less than 2^64 bytes. A blank implied
//! between two neighbours belongs to neither: the *start* of a position lies behind the blank before it. There is no
//! blank at the start of a rule or a document.

use std::ops::Range;

use crate::grammar::Grammar;
use crate::ids::{DocId, WordId};
use crate::segment::DocumentLength;

use super::lens::Len;
use super::{Dag, RootHints, map_chunks};

/// Number of positions in a block. With 16 bytes of sums and 4 bytes for each position it fills a
/// cache line.
const BLOCK_LEN: usize = 12;
/// Bits of a packed start. The lowest bit is set if a blank is implied before the position. Then
/// follow bytes, then words. 262,142 bytes and 8,190 words fit. Blocks of longer expansions are
/// rare, and their starts are computed by addition.
const BYTES_BITS: u32 = 18;
const WORDS_SHIFT: u32 = 1 + BYTES_BITS;
const MAX_BYTES: u64 = (1 << BYTES_BITS) - 2;
const MAX_WORDS: u64 = (1 << (32 - WORDS_SHIFT)) - 2;
/// Bits of the positions of a block.
const BLOCK_BITS: u64 = (1 << BLOCK_LEN) - 1;
/// Mark of a start that does not fit.
const TOO_LARGE: u32 = u32::MAX;
/// Number of root positions that share a hint to their document.
const HINT_LEN: usize = 32;
/// Number of blocks of the root that share a hint.
const BLOCKS_PER_HINT: usize = 4;
/// Number of blocks that a thread processes at a time.
const CHUNK_BLOCKS: usize = 8192;
/// Number of positions in them, which fill whole words of the bitmap.
const CHUNK_LEN: usize = CHUNK_BLOCKS * BLOCK_LEN;
const _: () = assert!(CHUNK_LEN.is_multiple_of(64));

/// Unit of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Bytes, including implied blanks.
    Bytes = 0,
    /// Words.
    Words = 1,
}

/// Start of each position of `symbols`, in bytes and in words.
#[derive(Debug)]
pub struct PrefixSums {
    blocks: Vec<Block>,
    /// Bitmap with one bit for each position, set if a blank is implied before it.
    blanks: Vec<u64>,
    /// Document of every `HINT_LEN`-th root position.
    doc_hints: Vec<DocId>,
    /// Start of each document.
    doc_starts: Vec<[u64; 2]>,
    root_hints: RootHints,
}

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Block {
    sums: [u64; 2],
    packed: [u32; BLOCK_LEN],
}

impl PrefixSums {
    /// Sums up the lengths of all right-hand sides of `dag`, O(G) on all cores.
    pub fn new(dag: &Dag) -> Self {
        let num_positions = dag.grammar.symbols.len();
        let mut blocks = vec![Block { sums: [0; 2], packed: [0; BLOCK_LEN] }; num_positions / BLOCK_LEN + 1];
        let mut blanks = vec![0u64; num_positions / 64 + 1];
        // Each chunk sums from 0. Then the sums before each chunk are added.
        let chunks = blocks.chunks_mut(CHUNK_BLOCKS).zip(blanks.chunks_mut(CHUNK_LEN / 64));
        let mut chunks: Vec<_> = chunks.collect();
        let totals = map_chunks(&mut chunks, 1, |chunk, slices| {
            let first = chunk * CHUNK_LEN;
            let totals = slices.iter_mut().map(|(blocks, blanks)| fill(dag, first, blocks, blanks));
            totals.fold([0; 2], added)
        });
        let bases: Vec<[u64; 2]> = totals
            .iter()
            .scan([0u64; 2], |sums, total| {
                let base = *sums;
                *sums = added(*sums, *total);
                Some(base)
            })
            .collect();
        map_chunks(&mut blocks, CHUNK_BLOCKS, |chunk, blocks| {
            blocks.iter_mut().for_each(|block| block.sums = added(block.sums, bases[chunk]));
        });
        let root_hints = RootHints::new([].into_iter(), 0, BLOCKS_PER_HINT);
        let doc_starts = Vec::new();
        let doc_hints = doc_hints(dag);
        let mut sums = Self { blocks, blanks, doc_hints, doc_starts, root_hints };
        let starts = dag.grammar.doc_offsets.iter();
        sums.doc_starts = starts.map(|&start| sums.starts(dag, start as usize)).collect();
        let root_len = dag.grammar.root().len();
        let root_blocks = &sums.blocks[..root_len / BLOCK_LEN + 1];
        let starts = root_blocks.iter().map(|block| block.sums[0]);
        sums.root_hints = RootHints::new(starts, sums.start(dag, Measure::Bytes, root_len), BLOCKS_PER_HINT);
        sums
    }

    /// Returns true if a blank is implied before `position` (never at the start of a rule or
    /// document). It reads a bitmap, which is best for consecutive positions.
    #[inline]
    pub fn has_blank_before(&self, position: usize) -> bool {
        bit(&self.blanks, position) != 0
    }

    /// Returns the start of the expansion at `position`, behind the blank before it. It is the sum
    /// of `measure` from the start of `symbols`, wrapping.
    #[inline]
    pub fn start(&self, dag: &Dag, measure: Measure, position: usize) -> u64 {
        self.starts(dag, position)[measure as usize]
    }

    /// Returns the [`start`](Self::start) in bytes and in words.
    #[inline]
    pub fn starts(&self, dag: &Dag, position: usize) -> [u64; 2] {
        let block = &self.blocks[position / BLOCK_LEN];
        match block.packed[position % BLOCK_LEN] {
            TOO_LARGE => self.starts_added_up(dag, position),
            packed => added(block.sums, unpacked(packed)),
        }
    }

    /// Returns the [`starts`](Self::starts) of the first position of document `doc`. Consecutive
    /// documents are neighbours in memory.
    #[inline]
    pub(crate) fn doc_starts(&self, doc: DocId) -> [u64; 2] {
        self.doc_starts[doc.index()]
    }

    /// Returns the number of bytes of document `doc`.
    #[inline]
    pub fn doc_len_bytes(&self, doc: DocId) -> u64 {
        self.doc_starts[doc.index() + 1][0].wrapping_sub(self.doc_starts[doc.index()][0])
    }

    /// Returns the length of document `doc`.
    #[inline]
    pub fn doc_length(&self, doc: DocId) -> DocumentLength {
        let [start, end] = [doc.index(), doc.index() + 1].map(|at| self.doc_starts[at]);
        let [len_bytes, num_words] = [0, 1].map(|column| end[column].wrapping_sub(start[column]));
        DocumentLength { len_bytes, num_words }
    }

    /// Returns the number of bytes of the expansion at `position`, and true if a blank is implied
    /// before it. It reads the same cache line as for the start.
    #[inline]
    pub(crate) fn len_bytes_at(&self, dag: &Dag, position: usize) -> (u64, bool) {
        let [start, end] = [position, position + 1].map(|position| {
            let block = &self.blocks[position / BLOCK_LEN];
            match block.packed[position % BLOCK_LEN] {
                TOO_LARGE => (self.starts_added_up(dag, position)[0], bit(&self.blanks, position)),
                packed => (block.sums[0].wrapping_add(unpacked(packed)[0]), u64::from(packed & 1)),
            }
        });
        (end.0.wrapping_sub(end.1).wrapping_sub(start.0), start.1 != 0)
    }

    #[cold]
    fn starts_added_up(&self, dag: &Dag, position: usize) -> [u64; 2] {
        let first = position / BLOCK_LEN * BLOCK_LEN;
        (first..position)
            .fold(self.blocks[position / BLOCK_LEN].sums, |sums, p| added(sums, shares(dag, &self.blanks, p)))
    }

    /// Returns the sum of `measure` over `range`, which lies in one rule. A sum of bytes is exact
    /// only if the range ends with the rule or with a document. Otherwise a blank before its end is
    /// counted too.
    #[inline]
    pub fn between(&self, dag: &Dag, measure: Measure, range: Range<usize>) -> u64 {
        self.start(dag, measure, range.end).wrapping_sub(self.start(dag, measure, range.start))
    }

    /// Returns the last position in `range` (one rule, or one document of the root) that starts at
    /// or before `offset`, counted from the start of the range, and the start of this position.
    /// With bytes, `offset` can be the blank behind that position's expansion. It needs O(log(range
    /// / 12) + 12) time, less if elements have similar lengths. `offset` must be less than the sum
    /// over `range`.
    pub fn locate(&self, dag: &Dag, measure: Measure, range: Range<usize>, offset: u64) -> (usize, u64) {
        let column = measure as usize;
        let base = self.start(dag, measure, range.start);
        let first_block = range.start / BLOCK_LEN + 1;
        let end_block = (range.end / BLOCK_LEN + 1).min(self.blocks.len()).max(first_block);
        let blocks = &self.blocks[first_block..end_block];
        let guess = match blocks.len() {
            // The total is worth its cost only if it saves several steps.
            0..8 => blocks.len() / 2,
            num_blocks => {
                let total = self.between(dag, measure, range.clone());
                (offset as f64 / total as f64 * num_blocks as f64) as usize
            }
        };
        let skipped = partition_point_near(blocks, guess, |block| block.sums[column].wrapping_sub(base) <= offset);
        self.locate_in_block(dag, measure, range, base, offset, first_block + skipped - 1)
    }

    /// Works like [`locate`](Self::locate) with bytes, in document `doc`, which must be longer than
    /// `offset`. The document's position in the root is known, so it is not searched.
    pub(crate) fn locate_in_document(&self, dag: &Dag, doc: DocId, offset: u64) -> (usize, u64) {
        let base = self.doc_starts[doc.index()][0];
        let at = base + offset;
        let (mut block, last) = self.root_hints.window(at);
        let mut num_blocks = last + 1 - block;
        // Computed without branches, because half of the predictions would be wrong.
        while num_blocks > 1 {
            let half = num_blocks / 2;
            let is_before = self.blocks[block + half].sums[0] <= at;
            block += if is_before { half } else { 0 };
            num_blocks -= half;
        }
        self.locate_in_block(dag, Measure::Bytes, dag.doc_range(doc), base, offset, block)
    }

    /// Completes [`locate`](Self::locate): returns the last position of `block` that starts at or
    /// before `offset` from `base`, the start of `range`.
    #[inline]
    fn locate_in_block(
        &self,
        dag: &Dag,
        measure: Measure,
        range: Range<usize>,
        base: u64,
        offset: u64,
        block: usize,
    ) -> (usize, u64) {
        let first = block * BLOCK_LEN;
        let mut found = (range.start, 0);
        for position in first.max(range.start)..range.end.min(first + BLOCK_LEN) {
            let start = self.start(dag, measure, position).wrapping_sub(base);
            if start > offset {
                break;
            }
            found = (position, start);
        }
        found
    }

    /// Returns the document whose root range contains `root_position`. Empty documents contain no
    /// position.
    #[inline]
    pub(crate) fn doc_at(&self, dag: &Dag, root_position: usize) -> DocId {
        let hint = root_position / HINT_LEN;
        let first = self.doc_hints[hint].index();
        let last = self.doc_hints[hint + 1].index();
        let starts = &dag.grammar.doc_offsets[first..=last];
        let num_begun = starts.partition_point(|&start| start as usize <= root_position);
        DocId::from_index(first + num_begun - 1)
    }

    pub(in crate::segment) fn memory_bytes(&self) -> usize {
        size_of::<Block>() * self.blocks.len()
            + 8 * self.blanks.len()
            + 4 * self.doc_hints.len()
            + 16 * self.doc_starts.len()
            + self.root_hints.memory_bytes()
    }
}

/// Fills `blocks` and the bitmap `blanks`, which begin at position `first`, with sums from there.
/// Returns the total of blanks and expansions. The edge of each element is carried to the next, so
/// there is one load for each.
fn fill(dag: &Dag, first: usize, blocks: &mut [Block], blanks: &mut [u64]) -> [u64; 2] {
    mark_starts(&dag.grammar, first, blanks);
    let symbols = &dag.grammar.symbols[..];
    let mut before = first.checked_sub(1).map_or_else(Len::default, |before| dag.lens.for_element(symbols[before]));
    let mut sums = [0u64; 2];
    for (block, at) in blocks.iter_mut().zip((0..).step_by(BLOCK_LEN)) {
        let elements = &symbols[first + at..];
        let elements = &elements[..elements.len().min(BLOCK_LEN)];
        // Starts of rules and documents come in the bitmap, blanks replace them.
        let starts = bits_at(blanks, at);
        let mut since = [0u64; 2];
        let mut block_blanks = 0;
        for (i, (slot, &element)) in block.packed.iter_mut().zip(elements).enumerate() {
            let len = dag.lens.for_element(element);
            let blank = len.blank_after(before) & !starts >> i;
            block_blanks |= blank << i;
            match i {
                0 => sums[0] = sums[0].wrapping_add(blank),
                _ => since[0] = since[0].wrapping_add(blank),
            }
            *slot = packed(since, blank);
            since = added(since, [len.bytes, len.words]);
            before = len;
        }
        block.packed[elements.len()..].fill(packed(since, 0));
        block.sums = sums;
        sums = added(sums, since);
        flip_bits_at(blanks, at, (starts ^ block_blanks) & BLOCK_BITS);
    }
    sums
}

/// Sets the bit of each rule and each document that starts in `bits`, a bitmap from position
/// `first` on.
fn mark_starts(grammar: &Grammar, first: usize, bits: &mut [u64]) {
    let end = first + 64 * bits.len();
    for offsets in [&grammar.rule_offsets, &grammar.doc_offsets] {
        let num_before = offsets.partition_point(|&start| (start as usize) < first);
        let starts = offsets[num_before..].iter().map(|&start| start as usize);
        for start in starts.take_while(|&start| start < end) {
            bits[(start - first) / 64] |= 1 << (start % 64);
        }
    }
}

/// Returns the bits from `position` on, at least those of a block.
#[inline]
fn bits_at(bits: &[u64], position: usize) -> u64 {
    let low = bits[position / 64] >> (position % 64);
    let high = bits.get(position / 64 + 1).map_or(0, |&high| high << 1 << (63 - position % 64));
    low | high
}

/// Flips the bits of `flipped`, counted from `position` on.
#[inline]
fn flip_bits_at(bits: &mut [u64], position: usize, flipped: u64) {
    bits[position / 64] ^= flipped << (position % 64);
    if let Some(high) = bits.get_mut(position / 64 + 1) {
        *high ^= flipped >> 1 >> (63 - position % 64);
    }
}

/// Returns the distance from the start of `position` to the start of the next one.
#[inline]
fn shares(dag: &Dag, blanks: &[u64], position: usize) -> [u64; 2] {
    let element = dag.grammar.symbols[position];
    [dag.len_bytes(element).wrapping_add(bit(blanks, position + 1)), dag.len_words(element)]
}

#[inline]
fn added(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])]
}

#[inline]
fn packed([bytes, words]: [u64; 2], blank: u64) -> u32 {
    if bytes > MAX_BYTES || words > MAX_WORDS {
        return TOO_LARGE;
    }
    blank as u32 | (bytes as u32) << 1 | (words as u32) << WORDS_SHIFT
}

#[inline]
fn unpacked(packed: u32) -> [u64; 2] {
    [u64::from(packed >> 1 & ((1 << BYTES_BITS) - 1)), u64::from(packed >> WORDS_SHIFT)]
}

/// Works like `partition_point`, but first tests `guess`, then doubles the distance at each step.
/// Text is regular enough that documents of thousands of blocks need about four steps.
fn partition_point_near<T>(items: &[T], guess: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let guess = guess.min(items.len());
    let mut low = 0;
    let mut high = items.len();
    let mut distance = 1;
    if items.get(guess).is_some_and(&is_before) {
        low = guess + 1;
        while low + distance < high {
            if !is_before(&items[low + distance]) {
                high = low + distance;
                break;
            }
            low += distance + 1;
            distance *= 2;
        }
    } else {
        high = guess;
        while low + distance < high {
            if is_before(&items[high - distance]) {
                low = high - distance + 1;
                break;
            }
            high -= distance;
            distance *= 2;
        }
    }
    low + items[low..high].partition_point(is_before)
}

#[inline]
fn bit(bits: &[u64], position: usize) -> u64 {
    bits[position / 64] >> (position % 64) & 1
}

/// Returns the document of every `HINT_LEN`-th root position, then the id after the last document.
fn doc_hints(dag: &Dag) -> Vec<DocId> {
    let offsets = &dag.grammar.doc_offsets;
    let root_len = offsets.last().copied().unwrap_or(0) as usize;
    let mut hints = Vec::with_capacity(root_len / HINT_LEN + 2);
    let mut doc = 0;
    for root_position in (0..root_len).step_by(HINT_LEN) {
        while offsets[doc + 1] as usize <= root_position {
            doc += 1;
        }
        hints.push(DocId::from_index(doc));
    }
    hints.push(DocId::from_index(offsets.len() - 1));
    hints
}

/// A word of a right-hand side: its id and its range in the expansion of the rule or document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordSpan {
    pub word: WordId,
    pub byte_offset: u64,
    pub byte_len: u64,
}

impl PrefixSums {
    /// Returns the word with index `word_idx` among the words of `range` (one rule, or one document
    /// of the root), which must have that many words. O(depth * log rule length).
    pub(crate) fn word_span(&self, dag: &Dag, mut range: Range<usize>, mut word_idx: u64) -> WordSpan {
        let mut byte_offset = 0;
        loop {
            let (position, before) = self.locate(dag, Measure::Words, range.clone(), word_idx);
            word_idx -= before;
            byte_offset += self.between(dag, Measure::Bytes, range.start..position);
            let element = dag.grammar().symbols[position];
            match dag.rule_of(element) {
                Some(rule_id) => range = dag.rule_range(rule_id),
                None => {
                    let word = element.into();
                    let byte_len = dag.len_bytes(element);
                    return WordSpan { word, byte_offset, byte_len };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayon::prelude::*;

    use crate::segment::{Paths, Segment};
    use crate::text::Dictionary;

    use super::super::tests::{dag_for, expanded};
    use super::*;

    /// Creates a graph with long expansions (packed starts that do not fit), short ones, and
    /// several documents.
    fn doubling_dag() -> Dag {
        // Words 0 "a", 1 "bb"; separators 2 "", 3 ","; rules 5 to 26 double the next one.
        let mut rules = vec![vec![5, 0, 5, 3, 1, 0, 1, 3, 3, 0, 6, 0, 2, 1, 7, 6, 6, 0, 1, 3, 5]];
        rules.extend((5..27).map(|element| vec![element + 1, element + 1]));
        rules.push(vec![0, 3]);
        dag_for(rules, &[0, 2, 2, 9, 21], 2, &[1, 2, 0, 1])
    }

    /// Checks `sums` position by position, each from the two elements beside it.
    fn check(dag: &Dag, sums: &PrefixSums) {
        let Grammar { rule_offsets, symbols, doc_offsets, .. } = dag.grammar();
        let begins = |position: &u32| {
            rule_offsets.binary_search(position).is_ok() || doc_offsets.binary_search(position).is_ok()
        };
        let mut starts = Vec::new();
        let mut at = [0u64; 2];
        for (position, &element) in symbols.iter().enumerate() {
            let has_blank = !begins(&(position as u32))
                && dag.ends_with_word(symbols[position - 1])
                && dag.begins_with_word(element);
            at[0] = at[0].wrapping_add(has_blank.into());
            assert_eq!(sums.has_blank_before(position), has_blank, "{position}");
            assert_eq!(sums.starts(dag, position), at, "{position}");
            let len = (dag.len_bytes(element), has_blank);
            assert_eq!(sums.len_bytes_at(dag, position), len, "{position}");
            starts.push(at);
            at = added(at, [dag.len_bytes(element), dag.len_words(element)]);
        }
        assert!(!sums.has_blank_before(symbols.len()));
        assert_eq!(sums.starts(dag, symbols.len()), at);
        starts.push(at);
        for doc in dag.grammar().docs() {
            let range = dag.doc_range(doc);
            assert_eq!(sums.doc_starts(doc), starts[range.start]);
            let [bytes, words] =
                [0, 1].map(|measure| starts[range.end][measure].wrapping_sub(starts[range.start][measure]));
            let length = sums.doc_length(doc);
            assert_eq!((length.len_bytes, length.num_words), (bytes, words));
            assert_eq!(dag.doc_length(doc), length);
            range.for_each(|position| assert_eq!(sums.doc_at(dag, position), doc));
        }
    }

    #[test]
    fn starts_are_sums_of_lengths_and_blanks() {
        let dag = doubling_dag();
        let sums = PrefixSums::new(&dag);
        assert!(sums.blocks.iter().any(|block| block.packed.contains(&TOO_LARGE)));
        check(&dag, &sums);
    }

    #[test]
    fn chunks_join_without_a_seam() {
        // Words 0 and 1, separators 2 and 3, rules 5 and 6. Documents begin at the second chunk,
        // inside it, and at the end; rules begin at the third and at the end of the third.
        let is_random = |at: usize, parts: usize| (at * at % 1_009).is_multiple_of(parts);
        let element = |at: usize| match (is_random(at, 5), is_random(at, 3)) {
            (true, _) => 3,
            (_, true) => 5 + at as u32 % 2,
            _ => at as u32 % 2,
        };
        let root = (0..2 * CHUNK_LEN).map(element).collect();
        let long = (0..CHUNK_LEN).map(|at| element(at) % 5 % 2).collect();
        let docs = [0, CHUNK_LEN, CHUNK_LEN + 77, 2 * CHUNK_LEN, 2 * CHUNK_LEN];
        let dag = dag_for(vec![root, long, vec![0, 3]], &docs.map(|at| at as u32), 2, &[1, 2, 0, 1]);
        let sums = PrefixSums::new(&dag);
        assert_eq!(sums.blanks.len() * 64 / CHUNK_LEN, 3);
        assert!(sums.has_blank_before(3 * CHUNK_LEN - 1) && !sums.has_blank_before(3 * CHUNK_LEN));
        check(&dag, &sums);
    }

    proptest! {
        #[test]
        fn random_grammars_have_the_sums_of_a_walk(
            root in prop::collection::vec(0u32..18, 0..200),
            inner in prop::collection::vec(prop::collection::vec(0u32..18, 0..6), 0..14),
            last in prop::collection::vec(0u32..3, 14),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            // Words 0 and 1, separators 2 "," and 3 "", rules from 5 on. Each inner rule is used by
            // the root, uses only later rules, and ends with a terminal that has bytes.
            let num_rules = inner.len() as u32;
            let allowed = |element: u32, first: u32| match num_rules.saturating_sub(first) {
                _ if element < 4 => element,
                0 => element % 4,
                num_later => 5 + first + (element - 4) % num_later,
            };
            let root = root.into_iter().map(|element| allowed(element, 0));
            let mut rules: Vec<Vec<u32>> = vec![root.chain(5..5 + num_rules).collect()];
            for ((first, rule), last) in (1..).zip(inner).zip(last) {
                let rule = rule.into_iter().map(|element| allowed(element, first));
                rules.push(rule.chain([last]).collect());
            }
            let root_len = rules[0].len();
            let cuts = cuts.into_iter().map(|cut| cut.index(root_len + 1));
            let mut docs: Vec<u32> = [0, root_len].into_iter().chain(cuts).map(|at| at as u32).collect();
            docs.sort_unstable();
            let dag = dag_for(rules, &docs, 2, &[1, 2, 1, 0]);
            check(&dag, &PrefixSums::new(&dag));
        }
    }

    #[test]
    fn locate_finds_what_a_walk_finds() {
        let dag = doubling_dag();
        let sums = PrefixSums::new(&dag);
        for doc in [0, 2, 3].map(DocId::from) {
            let range = dag.doc_range(doc);
            for measure in [Measure::Bytes, Measure::Words] {
                let total = sums.between(&dag, measure, range.clone());
                let base = sums.start(&dag, measure, range.start);
                let offsets = (0..total.min(40)).chain((0..40).map(|i| total * i / 40));
                for offset in offsets {
                    let slow = range
                        .clone()
                        .map(|p| (p, sums.start(&dag, measure, p) - base))
                        .rfind(|&(_, start)| start <= offset);
                    assert_eq!(Some(sums.locate(&dag, measure, range.clone(), offset)), slow);
                    if measure == Measure::Bytes {
                        assert_eq!(Some(sums.locate_in_document(&dag, doc, offset)), slow);
                    }
                }
            }
        }
    }

    #[test]
    fn tasks_that_ask_first_do_not_wait_for_themselves() {
        let len = 20 * CHUNK_BLOCKS * BLOCK_LEN;
        let root: Vec<u32> = (0..len as u32).map(|at| at % 2).collect();
        for _ in 0..4 {
            let dag = dag_for(vec![root.clone()], &[0, len as u32], 1, &[3, 1]);
            let words = Dictionary::from_parts(1, vec![0, 3, 4], (&b"abc,"[..]).into()).unwrap();
            let segment = Segment::new(words, dag, Paths::default(), false);
            let starts = |at| segment.prefix_sums_or_derive().starts(&segment.dag, at);
            let starts = (0..64).into_par_iter().map(starts);
            let starts: Vec<_> = starts.collect();
            assert!((0..64).all(|at| starts[at] == [2 * at as u64 + at as u64 % 2, (at as u64).div_ceil(2)]));
        }
    }

    #[test]
    fn any_guess_finds_the_partition_point() {
        for len in 0..40 {
            let items: Vec<usize> = (0..len).collect();
            for (point, guess) in (0..=len).flat_map(|p| (0..len + 2).map(move |g| (p, g))) {
                assert_eq!(partition_point_near(&items, guess, |&item| item < point), point);
            }
        }
    }

    #[test]
    fn lengths_agree_with_the_expansion() {
        let dag = dag_for(vec![vec![5, 0, 6, 6, 3, 0, 5], vec![0, 6], vec![1, 2, 0]], &[0, 1, 4, 7], 2, &[1, 2, 0, 1]);
        let texts = expanded(&dag, &[b"a", b"bb", b"", b","]);
        let sums = PrefixSums::new(&dag);
        for (doc, text) in dag.grammar().docs().zip(texts) {
            assert_eq!(sums.doc_len_bytes(doc), text.len() as u64, "{text:?}");
        }
    }
}
