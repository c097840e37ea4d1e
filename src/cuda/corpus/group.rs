//! Several segments on a device as one grammar, for tasks about documents.
//!
//! ```text
//! segment 0   words 0 1 2   root  3 4 | 0   rules 4: 1 2        3 is a separator
//! segment 1   words 0 1     root  3 | 2 3   rules 3: 0 1        2 is a separator
//!
//! group       words 0 1 2 | 3 4    separator 5    rules 6 (the root), 7, 8
//! symbols     5 7 | 0 | 8 | 5 8    1 2    3 4
//!             root of 0   of 1     rules
//! ```
//!
//! Words of segments differ, and so do their rules; all separators are one element. So the rows of a segment are
//! a range of the group's rows, and a kernel that knows one grammar answers for all segments in one launch. Segments
//! of 16 MiB would otherwise spend more time on launches, allocations and waits than kernels need for them.
//!
//! All cores number the elements again while they fill the pinned buffers of the copy, so it is no pass of its own.
//! Time is O(G), memory 4 bytes for each element of rules, rule and document. Source: ours.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use tadoc::segment::{Dag, Segment};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

use super::launch::{parts_to_host, send_filled, to_host};
use super::sort::{MAX_KEYS, bits_below};
use super::{GrammarArrays, check_limit};

/// Largest number of words of the text of a group of several segments. Launches cost little beside so many.
const MAX_GROUP_WORDS: u64 = 1 << 26;
/// Device memory for a word of the text and for what is made of it, at most, for words and for sequences.
const WORD_BYTES: u64 = 64;
const SEQUENCE_WORD_BYTES: u64 = 128;

/// Segments on a device. Its methods make the objects that answer tasks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DeviceGroup {
    pub(super) device: Device,
    pub(super) arrays: Arc<GrammarArrays>,
    bases: Arc<Bases>,
    pub(super) shape: GroupShape,
}

/// Sizes of the grammar of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupShape {
    pub(super) num_words: u32,
    /// All words and the separator.
    pub(super) num_terminals: u32,
    /// Rules, of which the first is the root.
    pub(super) num_rules: usize,
    pub(super) num_root: usize,
    pub(super) num_positions: usize,
    pub(super) num_docs: usize,
    /// Documents of the segment that has the most.
    pub(super) max_docs: usize,
    /// Words of the text.
    pub(super) len_words: u64,
}

/// Numbers of the group before those of each segment.
#[derive(Debug)]
struct Bases {
    segments: Vec<Arc<Segment>>,
    words: Vec<u32>,
    rules: Vec<u32>,
    root: Vec<u32>,
    /// Positions of rules other than the root.
    held: Vec<u32>,
    docs: Vec<u32>,
}

impl GroupShape {
    fn new(bases: &Bases) -> Self {
        let last = |bases: &[u32]| bases.last().copied().unwrap_or(0);
        let dags = || bases.segments.iter().map(|segment| &segment.dag);
        let num_words = last(&bases.words);
        let num_root = last(&bases.root) as usize;
        Self {
            num_words,
            num_terminals: num_words + 1,
            num_rules: 1 + last(&bases.rules) as usize,
            num_root,
            num_positions: num_root + last(&bases.held) as usize,
            num_docs: last(&bases.docs) as usize,
            max_docs: dags().map(|dag| dag.grammar().num_docs()).max().unwrap_or(0),
            len_words: dags().fold(0, |sum, dag| sum.saturating_add(dag.len_words(dag.num_terminals()))),
        }
    }

    pub(super) fn num_elements(self) -> usize {
        self.num_terminals as usize + self.num_rules
    }

    /// Positions of rules other than the root.
    pub(super) fn num_held(self) -> usize {
        self.num_positions - self.num_root
    }
}

impl Bases {
    fn new(segments: &[Arc<Segment>]) -> Self {
        let sums = |number: fn(&Dag) -> usize| {
            let mut sums = vec![0];
            let ends = segments.iter().scan(0u32, |sum, segment| {
                *sum = sum.wrapping_add(number(&segment.dag) as u32);
                Some(*sum)
            });
            sums.extend(ends);
            sums
        };
        Self {
            segments: segments.to_vec(),
            words: sums(|dag| dag.num_words() as usize),
            rules: sums(|dag| dag.grammar().num_rules() - 1),
            root: sums(|dag| dag.grammar().root().len()),
            held: sums(|dag| dag.grammar().symbols.len() - dag.grammar().root().len()),
            docs: sums(|dag| dag.grammar().num_docs()),
        }
    }
}

/// Offsets of words, and documents.
pub(super) type RowsByWord = (Vec<u32>, Vec<u32>);
/// Offsets of documents, items such as words, and counts.
pub(super) type RowsByDocument = (Vec<u32>, Vec<u32>, Vec<u32>);

/// Consecutive numbers of an array: where they begin in it, and where they come from.
struct Piece<'a> {
    start: usize,
    from: Source<'a>,
}

enum Source<'a> {
    /// Elements of a segment, which are words below the first number, separators below the second.
    Elements { symbols: &'a [u32], num_words: u32, num_terminals: u32, word_base: u32, separator: u32, rule_base: u32 },
    /// Numbers to which a base is added.
    Offsets { numbers: &'a [u32], base: u32 },
    /// Words of this many elements, which are words themselves.
    Ones(usize),
    /// Words of the rules of a segment other than the root.
    Rules(&'a Dag),
    /// A number.
    One(u32),
}

impl DeviceGroup {
    /// Returns the lengths of runs of `segments` that are groups for a device with `max_bytes` of memory. Keys of rows
    /// have `key_words` words, and they have 64 bits in groups of several segments.
    pub fn lens(segments: &[Arc<Segment>], max_bytes: u64, key_words: usize) -> Vec<usize> {
        let word_bytes = if key_words > 1 { SEQUENCE_WORD_BYTES } else { WORD_BYTES };
        let max_words = MAX_GROUP_WORDS.min(max_bytes / word_bytes);
        let is_group = |len_words: u64, num_words: usize| {
            len_words <= max_words && key_words.saturating_mul(bits_below(num_words) as usize) <= 64
        };
        let mut lens: Vec<usize> = Vec::new();
        let mut sums = (0, 0);
        for segment in segments {
            let own = (segment.dag.len_words(segment.dag.num_terminals()), segment.dag.num_words() as usize);
            sums = (own.0.saturating_add(sums.0), own.1 + sums.1);
            match lens.last_mut() {
                Some(len) if is_group(sums.0, sums.1) => *len += 1,
                _ => {
                    lens.push(1);
                    sums = own;
                }
            }
        }
        lens
    }

    /// Copies the grammars of `segments` to the device.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the grammars are too large for the device's numbers;
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn upload(device: &Device, segments: &[Arc<Segment>]) -> Result<Self, GpuError> {
        let dags = || segments.iter().map(|segment| &segment.dag);
        let num_positions = dags().map(|dag| dag.grammar().symbols.len()).sum();
        check_limit("elements of rules", num_positions, MAX_KEYS)?;
        let num_elements = dags().map(Dag::num_elements).sum();
        check_limit("words, separators and rules", num_elements, MAX_KEYS)?;
        check_limit("documents", dags().map(|dag| dag.grammar().num_docs()).sum(), MAX_KEYS)?;
        let bases = Bases::new(segments);
        let shape = GroupShape::new(&bases);
        let mut arrays = GrammarArrays {
            symbols: device.alloc_to_send("elements of rules", num_positions)?,
            rule_offsets: device.alloc_to_send("offsets of rules", shape.num_rules + 1)?,
            doc_offsets: device.alloc_to_send("offsets of documents", shape.num_docs + 1)?,
        };
        send_pieces(device, &mut arrays.symbols, &symbols(&bases, shape))?;
        send_pieces(device, &mut arrays.rule_offsets, &rule_offsets(&bases, shape))?;
        send_pieces(device, &mut arrays.doc_offsets, &doc_offsets(&bases, shape))?;
        Ok(Self { device: device.clone(), arrays: Arc::new(arrays), bases: Arc::new(bases), shape })
    }

    /// Returns the number of segments.
    pub(super) fn num_segments(&self) -> usize {
        self.bases.segments.len()
    }

    /// Returns the words of the expansion of each element, in device memory. The root has 0.
    pub(super) fn element_lens(&self) -> Result<DeviceBuffer<u32>, GpuError> {
        let shape = self.shape;
        let mut lens = self.device.alloc_to_send("words of elements", shape.num_elements())?;
        let words = Piece { start: 0, from: Source::Ones(shape.num_words as usize) };
        let separator = Piece { start: shape.num_words as usize, from: Source::One(0) };
        let root = Piece { start: shape.num_terminals as usize, from: Source::One(0) };
        let first_rule = shape.num_terminals as usize + 1;
        let rules = self.bases.segments.iter().zip(&self.bases.rules);
        let rules = rules
            .map(|(segment, &base)| Piece { start: first_rule + base as usize, from: Source::Rules(&segment.dag) });
        let pieces: Vec<Piece<'_>> = [words, separator, root].into_iter().chain(rules).collect();
        send_pieces(&self.device, &mut lens, &pieces)?;
        Ok(lens)
    }

    /// Returns the number, among those of its segment, of each document.
    pub(super) fn doc_numbers(&self) -> Result<DeviceBuffer<u32>, GpuError> {
        let mut numbers = self.device.alloc_to_send("numbers of documents", self.shape.num_docs)?;
        let docs = &self.bases.docs;
        send_filled(&self.device, &mut numbers, self.shape.num_docs, |start, to| {
            for (doc, number) in (start as u32..).zip(to) {
                let segment = docs.partition_point(|&base| base <= doc) - 1;
                *number = doc - docs[segment];
            }
        })?;
        Ok(numbers)
    }

    /// Copies the rows of each segment to the host. `docs` are numbers in the group or, if `are_local`, in their
    /// segment.
    pub(super) fn rows_by_word(
        &self,
        offsets: &DeviceBuffer<u32>,
        docs: &DeviceBuffer<u32>,
        are_local: bool,
    ) -> Result<Vec<RowsByWord>, GpuError> {
        let offsets = to_host(&self.device, offsets, self.shape.num_words as usize + 1)?;
        let (offsets, lens) = divided(&offsets, &self.bases.words);
        let bases = self.bases.docs.iter().map(|&base| if are_local { 0 } else { base });
        let parts: Vec<(usize, u32)> = lens.into_iter().zip(bases).collect();
        let docs = parts_to_host(&self.device, docs, &parts)?;
        Ok(offsets.into_iter().zip(docs).collect())
    }

    /// Returns the number of words before those of each segment, and of all.
    pub(super) fn word_bases(&self) -> &[u32] {
        &self.bases.words
    }

    /// Copies the rows of each segment to the host. Its items are counted from its number in `bases`.
    pub(super) fn rows_by_document(
        &self,
        offsets: &DeviceBuffer<u32>,
        items: &DeviceBuffer<u32>,
        counts: &DeviceBuffer<u32>,
        bases: &[u32],
    ) -> Result<Vec<RowsByDocument>, GpuError> {
        let offsets = to_host(&self.device, offsets, self.shape.num_docs + 1)?;
        let (offsets, lens) = divided(&offsets, &self.bases.docs);
        let items_parts: Vec<(usize, u32)> = lens.iter().copied().zip(bases.iter().copied()).collect();
        let counts_parts: Vec<(usize, u32)> = lens.iter().map(|&len| (len, 0)).collect();
        let items = parts_to_host(&self.device, items, &items_parts)?;
        let counts = parts_to_host(&self.device, counts, &counts_parts)?;
        let rows = offsets.into_iter().zip(items).zip(counts);
        Ok(rows.map(|((offsets, items), counts)| (offsets, items, counts)).collect())
    }
}

/// Divides `offsets` into those of each segment, whose numbers begin at `bases`. Returns them from 0 on, and the
/// number of rows of each segment.
fn divided(offsets: &[u32], bases: &[u32]) -> (Vec<Vec<u32>>, Vec<usize>) {
    let ranges = bases.par_windows(2).map(|ends| ends[0] as usize..ends[1] as usize + 1);
    let own = |range: Range<usize>| {
        let first = offsets[range.start];
        let own: Vec<u32> = offsets[range].iter().map(|offset| offset - first).collect();
        let len = own.last().map_or(0, |&len| len as usize);
        (own, len)
    };
    ranges.map(own).unzip()
}

/// Returns the roots of all segments, then their other rules.
fn symbols(bases: &Bases, shape: GroupShape) -> Vec<Piece<'_>> {
    let source = |at: usize, range: Range<usize>| {
        let dag = &bases.segments[at].dag;
        Source::Elements {
            symbols: &dag.grammar().symbols[range],
            num_words: dag.num_words(),
            num_terminals: dag.num_terminals(),
            word_base: bases.words[at],
            separator: shape.num_words,
            rule_base: shape.num_terminals + bases.rules[at],
        }
    };
    let root_len = |at: usize| bases.segments[at].dag.grammar().root().len();
    let len = |at: usize| bases.segments[at].dag.grammar().symbols.len();
    let numbers = 0..bases.segments.len();
    let roots = numbers.clone().map(|at| Piece { start: bases.root[at] as usize, from: source(at, 0..root_len(at)) });
    let rules = numbers
        .map(|at| Piece { start: shape.num_root + bases.held[at] as usize, from: source(at, root_len(at)..len(at)) });
    roots.chain(rules).collect()
}

/// Returns the start of the root, of the other rules, and the end of the last.
fn rule_offsets(bases: &Bases, shape: GroupShape) -> Vec<Piece<'_>> {
    let first = Piece { start: 0, from: Source::One(0) };
    let last = Piece { start: shape.num_rules, from: Source::One(shape.num_positions as u32) };
    let rules = bases.segments.iter().enumerate().map(|(at, segment)| {
        let grammar = segment.dag.grammar();
        let before = shape.num_root as u32 + bases.held[at];
        Piece {
            start: 1 + bases.rules[at] as usize,
            from: Source::Offsets {
                numbers: &grammar.rule_offsets[1..grammar.num_rules()],
                base: before.wrapping_sub(grammar.root().len() as u32),
            },
        }
    });
    [first].into_iter().chain(rules).chain([last]).collect()
}

/// Returns the start of each document, and the end of the last.
fn doc_offsets(bases: &Bases, shape: GroupShape) -> Vec<Piece<'_>> {
    let docs = bases.segments.iter().enumerate().map(|(at, segment)| {
        let grammar = segment.dag.grammar();
        let numbers = &grammar.doc_offsets[..grammar.num_docs()];
        Piece { start: bases.docs[at] as usize, from: Source::Offsets { numbers, base: bases.root[at] } }
    });
    let last = Piece { start: shape.num_docs, from: Source::One(shape.num_root as u32) };
    docs.chain([last]).collect()
}

/// Writes `pieces`, which follow each other, to `to`.
fn send_pieces(device: &Device, to: &mut DeviceBuffer<u32>, pieces: &[Piece<'_>]) -> Result<(), GpuError> {
    let len = pieces.iter().map(|piece| piece.from.len()).sum();
    send_filled(device, to, len, |start, numbers| write_pieces(pieces, start, numbers))?;
    device.budget().count_copied((len * size_of::<u32>()) as u64);
    Ok(())
}

/// Writes the numbers of `pieces` from index `at` on.
fn write_pieces(pieces: &[Piece<'_>], mut at: usize, mut numbers: &mut [u32]) {
    // Of several that begin there only the last is not empty.
    let mut piece = pieces.partition_point(|piece| piece.start <= at) - 1;
    while !numbers.is_empty() {
        let from = at - pieces[piece].start;
        let len = (pieces[piece].from.len() - from).min(numbers.len());
        let (now, later) = numbers.split_at_mut(len);
        pieces[piece].from.write(from, now);
        numbers = later;
        at += len;
        piece += 1;
    }
}

impl Source<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Elements { symbols, .. } => symbols.len(),
            Self::Offsets { numbers, .. } => numbers.len(),
            Self::Ones(len) => *len,
            Self::Rules(dag) => dag.grammar().num_rules() - 1,
            Self::One(_) => 1,
        }
    }

    /// Writes the numbers from index `from` on.
    fn write(&self, from: usize, to: &mut [u32]) {
        match *self {
            Self::Elements { symbols, num_words, num_terminals, word_base, separator, rule_base } => {
                for (to, &element) in to.iter_mut().zip(&symbols[from..]) {
                    *to = if element < num_words {
                        element + word_base
                    } else if element < num_terminals {
                        separator
                    } else {
                        element - num_terminals + rule_base
                    };
                }
            }
            Self::Offsets { numbers, base } => {
                to.iter_mut().zip(&numbers[from..]).for_each(|(to, number)| *to = number.wrapping_add(base));
            }
            Self::Ones(_) => to.fill(1),
            Self::Rules(dag) => {
                // The lengths fit into 32 bits, because no rule has more words than the text.
                let first = dag.num_terminals() + 1 + from as u32;
                to.iter_mut().zip(first..).for_each(|(to, element)| *to = dag.len_words(element) as u32);
            }
            Self::One(number) => to.fill(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tadoc::Corpus;
    use tadoc::build::{CorpusBuilder, IngestOptions};
    use tadoc::format::OpenLimits;

    /// Builds segments of about 2,000 bytes, and one of empty documents.
    fn segments() -> Vec<Arc<Segment>> {
        let mut builders = [2000, 1 << 20].map(|block_bytes| {
            let options = IngestOptions { block_bytes, ..IngestOptions::default() };
            CorpusBuilder::new(Vec::new(), options).unwrap()
        });
        for doc in 0..60 {
            let line = format!("the quick brown fox {} jumps over, the quick {} fox.", doc % 7, doc % 11);
            builders[0].push_document(&doc.to_string(), line.repeat(1 + doc % 4).as_bytes()).unwrap();
            builders[1].push_document(&doc.to_string(), b"").unwrap();
        }
        let segments = builders.map(|builder| {
            let (file, _) = builder.finish(None).unwrap();
            Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1.segments().to_vec()
        });
        segments.concat()
    }

    /// Returns the numbers of `pieces`, written `step` at a time.
    fn written(pieces: &[Piece<'_>], step: usize) -> Vec<u32> {
        let mut numbers = vec![0; pieces.iter().map(|piece| piece.from.len()).sum()];
        let parts = numbers.chunks_mut(step).enumerate();
        parts.for_each(|(part, numbers)| write_pieces(pieces, part * step, numbers));
        numbers
    }

    /// Returns the words that the elements at `positions` of `symbols` expand to.
    fn words_at(symbols: &[u32], rule_offsets: &[u32], shape: [u32; 2], positions: Range<u32>) -> Vec<u32> {
        let [num_words, num_terminals] = shape;
        let mut words = Vec::new();
        let mut left = vec![positions];
        while let Some(range) = left.pop() {
            let Some(element) = symbols[range.start as usize..range.end as usize].first() else { continue };
            left.push(range.start + 1..range.end);
            if let Some(rule) = element.checked_sub(num_terminals) {
                left.push(rule_offsets[rule as usize]..rule_offsets[rule as usize + 1]);
            } else if *element < num_words {
                words.push(*element);
            }
        }
        words
    }

    #[test]
    fn a_group_has_the_documents_of_its_segments() {
        let segments = segments();
        assert!(segments.len() > 3);
        let bases = Bases::new(&segments);
        let shape = GroupShape::new(&bases);
        for step in [1, 3, 1000, 1 << 20] {
            let symbols = written(&symbols(&bases, shape), step);
            let rule_offsets = written(&rule_offsets(&bases, shape), step);
            let doc_offsets = written(&doc_offsets(&bases, shape), step);
            assert_eq!(symbols.len(), shape.num_positions);
            assert_eq!((rule_offsets.len(), doc_offsets.len()), (shape.num_rules + 1, shape.num_docs + 1));
            let mut docs = doc_offsets.windows(2);
            for (at, segment) in segments.iter().enumerate() {
                let dag = &segment.dag;
                let grammar = dag.grammar();
                for own in grammar.doc_offsets.windows(2) {
                    let doc = docs.next().unwrap();
                    let kinds = [shape.num_words, shape.num_terminals];
                    let got = words_at(&symbols, &rule_offsets, kinds, doc[0]..doc[1]);
                    let kinds = [dag.num_words(), dag.num_terminals()];
                    let own = words_at(&grammar.symbols, &grammar.rule_offsets, kinds, own[0]..own[1]);
                    assert!(got.iter().map(|word| word - bases.words[at]).eq(own));
                }
            }
            assert!(docs.next().is_none());
        }
    }

    #[test]
    fn offsets_are_divided_by_segment() {
        let (offsets, lens) = divided(&[0, 2, 2, 5, 9], &[0, 1, 1, 4]);
        assert_eq!(offsets, [vec![0, 2], vec![0], vec![0, 0, 3, 7]]);
        assert_eq!(lens, [2, 0, 7]);
        assert_eq!(divided(&[0], &[0]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn groups_have_a_limited_number_of_words() {
        let segments = segments();
        for key_words in [1, 3] {
            assert_eq!(DeviceGroup::lens(&segments, u64::MAX, key_words), [segments.len()]);
            assert_eq!(DeviceGroup::lens(&segments, 0, key_words), vec![1; segments.len()]);
            assert!(DeviceGroup::lens(&[], u64::MAX, key_words).is_empty());
        }
        let words = |segments: &[Arc<Segment>]| -> u64 {
            segments.iter().map(|segment| segment.dag.len_words(segment.dag.num_terminals())).sum()
        };
        let max_words = words(&segments[..2]);
        let lens = DeviceGroup::lens(&segments, max_words * WORD_BYTES, 1);
        assert!(lens.len() > 1);
        let mut start = 0;
        for &len in &lens {
            let end = start + len;
            assert!(len == 1 || words(&segments[start..end]) <= max_words);
            assert!(end == segments.len() || words(&segments[start..=end]) > max_words);
            start = end;
        }
        assert_eq!(lens.iter().sum::<usize>(), segments.len());
    }

    #[test]
    fn keys_of_groups_have_64_bits() {
        let segments = segments();
        let most = segments.iter().map(|segment| segment.dag.num_words() as usize).max().unwrap();
        let key_words = 64 / bits_below(most) as usize;
        let lens = DeviceGroup::lens(&segments, u64::MAX, key_words);
        assert!(lens.len() > 1);
        let mut left = &segments[..];
        for len in lens {
            let (group, rest) = left.split_at(len);
            let num_words = group.iter().map(|segment| segment.dag.num_words() as usize).sum();
            assert!(key_words * bits_below(num_words) as usize <= 64);
            left = rest;
        }
        assert!(left.is_empty());
        assert_eq!(DeviceGroup::lens(&segments, u64::MAX, usize::MAX), vec![1; segments.len()]);
    }
}
