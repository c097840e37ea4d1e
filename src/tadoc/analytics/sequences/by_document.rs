//! Sequences by document: the number of occurrences of each sequence of n words in each document.
//!
//! - *top-down*: weights inside the document flow from its part of the root to its rules, parents
//!   before children. The windows of all its rules are sorted together. O(windows of the rules
//!   below) for each document; nothing is kept between documents.
//! - *bottom-up*: all sequences get numbers first, and counts of 8 documents flow down at once.
//!   This is best if documents share rules.
//! - *token scan*: the document is expanded and its windows are sorted. This is best for small documents.
//!
//! The caller chooses the documents and may stop between chunks of them.

use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::doc_terms::GROUP_LEN;
use crate::analytics::lane_counts::AscendingSet;
use crate::analytics::task_limits::sort_checked;
use crate::analytics::{TaskLimits, Traversal, TraversalTask, Vocabulary};
use crate::error::{Error, Result};
use crate::ids::{DocId, RuleId};
use crate::segment::Corpus;
use crate::segment::dag::Expansion;

use super::count::{LoneSegment, check_num_words, check_parts, refused_words};
use super::counted_documents::{CountedDocuments, SegmentDocumentSequences, misshapen};
use super::edges::{Edges, Limit, chosen};
use super::entries::Sorting;
use super::key::{Keep, Key, Keyed, Packing};
use super::numbered::Numbered;
use super::walk::{TokenWalk, walk_borders};
use super::windows::{ListedWeights, NumberedWeights, PackedWindows, TextWindows, Weights};
use super::{Counted, DocumentSequenceCounts, Sink};

/// Number of parallel tasks for each thread. Several tasks even out documents of different length.
const TASKS_PER_THREAD: usize = 8;
/// Steps of a document that has no words.
const DOC_STEPS: usize = 16;

/// Counter of sequences of n words by document, in chunks of documents.
#[derive(Debug)]
pub struct DocumentSequences<'a> {
    vocabulary: Arc<Vocabulary>,
    packing: Packing,
    way: Way,
    limits: TaskLimits<'a>,
}

/// Method of counting documents.
#[derive(Debug)]
enum Way {
    Rules(Vec<Edges>),
    /// Numbers of sequences, with edges for documents that are cut over segments.
    Numbers(Vec<Edges>, Numbered),
    Tokens(TokenWalk),
    /// Counts that were made elsewhere.
    Counted(CountedDocuments),
}

/// Limits of the documents of a chunk.
#[derive(Clone, Copy)]
struct Room<'a> {
    limit: &'a Limit<'a>,
    keep: &'a Keep<u64>,
    packing: Packing,
}

impl Room<'_> {
    /// Removes rows from `first_row` on that are not kept. Returns the number of rows kept.
    fn keep_rows(&self, counted: &mut Counted, first_row: usize) -> Result<usize> {
        counted.retain_from(first_row, self.packing, self.keep);
        let num_kept = counted.counts.len() - first_row;
        self.limit.add(num_kept)?;
        Ok(num_kept)
    }
}

/// Rows of some documents, and the number of rows of each.
type RankedRange = (Counted, Vec<usize>);

impl<'a> DocumentSequences<'a> {
    /// Prepares `traversal`; [`Traversal::Auto`] uses the best one
    /// ([`choose_task_traversal`](crate::analytics::choose_task_traversal)). O(rules * n), and for
    /// bottom-up also the windows of all rules. Bottom-up is treated as top-down for sequences that
    /// do not fit 64 bits, for segments of 2^32 words, and if numbers need too much memory.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `n` = 0, [`Error::Capacity`] if the preparation needs more
    /// than the memory of `limits`, and [`Error::Cancelled`].
    pub fn new(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        check_num_words(n)?;
        let limits: TaskLimits<'a> = limits.into();
        let canceller = limits.canceller();
        let max_bytes = limits.max_memory_bytes / 2;
        let packing = Packing::new(n, vocabulary.len());
        let limit = Limit::new(limits, packing);
        let task = TraversalTask::DocumentSequences;
        let traversal = chosen(traversal, task, &vocabulary, n, &limit);
        let edges = || Edges::from_segments(&vocabulary, n - 1, max_bytes, canceller);
        let way = match traversal {
            Traversal::TokenScan => Way::Tokens(TokenWalk::new(&vocabulary, n - 1, canceller)?),
            Traversal::BottomUp if packing.is_whole() && are_narrow(&vocabulary) => {
                let edges = edges()?;
                match Numbered::new(&edges, packing, &limit) {
                    Ok(numbered) => Way::Numbers(edges, numbered),
                    Err(Error::Capacity { .. }) => Way::Rules(edges),
                    Err(error) => return Err(error),
                }
            }
            _ => Way::Rules(edges()?),
        };
        Ok(Self { vocabulary, packing, way, limits })
    }

    /// Returns the reason why [`from_segments`](Self::from_segments) cannot use the sequences of segments, or `None` if
    /// it can.
    pub fn segments_refused(vocabulary: &Vocabulary, n: usize) -> Option<String> {
        refused_words(vocabulary, n, 1)
    }

    /// Creates a counter of the documents of `vocabulary` that counts nothing: `parts` have the sequences of all
    /// documents of each segment.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the sequences [cannot be used](Self::segments_refused) or there is not one part of
    /// the right shape for each segment, and [`Error::Cancelled`].
    pub fn from_segments(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        parts: Vec<SegmentDocumentSequences>,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        let limits = limits.into();
        let refused = Self::segments_refused(&vocabulary, n).or_else(|| misshapen(&vocabulary, &parts));
        check_parts(&vocabulary, parts.len(), refused)?;
        let packing = Packing::new(n, vocabulary.len());
        let counted = CountedDocuments::new(&vocabulary, packing, parts, limits.canceller())?;
        Ok(Self { vocabulary, packing, way: Way::Counted(counted), limits })
    }

    /// Returns the traversal in use, never [`Traversal::Auto`].
    pub fn traversal(&self) -> Traversal {
        match &self.way {
            Way::Rules(_) => Traversal::TopDown,
            Way::Numbers(..) => Traversal::BottomUp,
            Way::Tokens(_) | Way::Counted(_) => Traversal::TokenScan,
        }
    }

    /// Returns the memory held between chunks in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        let edges = |edges: &[Edges]| edges.iter().map(Edges::memory_bytes).sum::<usize>();
        match &self.way {
            Way::Rules(rules) => edges(rules),
            Way::Numbers(rules, numbered) => edges(rules) + numbered.memory_bytes(),
            Way::Tokens(walk) => walk.memory_bytes(),
            Way::Counted(counted) => counted.memory_bytes(),
        }
    }

    /// Counts the documents `doc_ids`, in this order. No other document is read.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a document does not exist, [`Error::Capacity`] if the chunk needs
    /// more memory than the limit, and [`Error::Cancelled`].
    pub fn chunk(&self, doc_ids: &[u64]) -> Result<DocumentSequenceCounts> {
        self.chunk_for(doc_ids, &Keep::All)
    }

    /// Returns the packing of the sequences.
    pub(super) fn packing(&self) -> Packing {
        self.packing
    }

    /// Returns the limit of a chunk.
    pub(super) fn limit(&self) -> Limit<'a> {
        Limit::new(self.limits, self.packing)
    }

    /// Counts a [`chunk`](Self::chunk) and keeps the sequences whose beginning is kept.
    pub(super) fn chunk_for(&self, doc_ids: &[u64], keep: &Keep<u64>) -> Result<DocumentSequenceCounts> {
        let num_docs = self.vocabulary.corpus().num_docs();
        if let Some(&got) = doc_ids.iter().find(|&&doc_id| doc_id >= num_docs) {
            return Err(Error::OutOfRange { what: "doc_id", got, len: num_docs });
        }
        let room = Room { limit: &self.limit(), keep, packing: self.packing };
        let num_threads = rayon::current_num_threads();
        let num_tasks = if num_threads > 1 { num_threads * TASKS_PER_THREAD } else { 1 };
        let task_len = match &self.way {
            Way::Numbers(..) => doc_ids.len().div_ceil(num_tasks).next_multiple_of(GROUP_LEN),
            _ => doc_ids.len().div_ceil(num_tasks),
        };
        let tasks = doc_ids.par_chunks(task_len.max(1)).map(|doc_ids| match &self.way {
            Way::Rules(edges) => self.count_by_rules(edges, doc_ids, room),
            Way::Tokens(walk) => self.count_by_tokens(walk, doc_ids, room),
            Way::Numbers(edges, numbered) => self.count_by_numbers(edges, numbered, doc_ids, room),
            Way::Counted(counted) => self.take_counted(counted, doc_ids, room),
        });
        let (counted, lens): (Vec<Counted>, Vec<Vec<usize>>) = tasks.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let mut ends = vec![0];
        ends.extend(lens.iter().flatten().scan(0, |end, len| {
            *end += len;
            Some(*end)
        }));
        let counted = Counted::joined(counted);
        let (sequences, counts) = counted.into_rows(self.vocabulary.clone(), self.packing);
        Ok(DocumentSequenceCounts { doc_ids: doc_ids.to_vec(), ends, sequences, counts })
    }

    fn count_by_rules(&self, edges: &[Edges], doc_ids: &[u64], room: Room<'_>) -> Result<RankedRange> {
        let weights = ListedWeights::from_rules(edges);
        match self.packing.all_bits().saturating_add(weights.bits()) {
            0..=64 => self.count_by_packed_rules::<u64>(edges, doc_ids, room, weights),
            65..=128 => self.count_by_packed_rules::<u128>(edges, doc_ids, room, weights),
            _ => {
                let mut rules = LocalRules::new(edges);
                self.count_texts(doc_ids, room, |doc_id, sink| {
                    walk_document(edges, &self.vocabulary, doc_id, &mut rules, sink, room.limit)
                })
            }
        }
    }

    fn count_by_packed_rules<K: Key + Keyed<Key = K>>(
        &self,
        edges: &[Edges],
        doc_ids: &[u64],
        room: Room<'_>,
        weights: ListedWeights,
    ) -> Result<RankedRange> {
        let mut rules = LocalRules::new(edges);
        let mut windows = PackedWindows::<K, _>::new(self.packing, weights, Keep::All, 0);
        self.count_packed(doc_ids, room, &mut windows, |doc_id, windows| {
            windows.weights.clear();
            walk_document(edges, &self.vocabulary, doc_id, &mut rules, windows, room.limit)
        })
    }

    fn count_by_tokens(&self, walk: &TokenWalk, doc_ids: &[u64], room: Room<'_>) -> Result<RankedRange> {
        let mut expansion = Expansion::default();
        let weights = Weights::one();
        match self.packing.all_bits() {
            0..=64 => {
                let mut windows = PackedWindows::<u64, _>::new(self.packing, &weights, Keep::All, 0);
                self.count_packed(doc_ids, room, &mut windows, |doc_id, windows| {
                    walk.document(&self.vocabulary, doc_id, &mut expansion, windows, room.limit)
                })
            }
            65..=128 => {
                let mut windows = PackedWindows::<u128, _>::new(self.packing, &weights, Keep::All, 0);
                self.count_packed(doc_ids, room, &mut windows, |doc_id, windows| {
                    walk.document(&self.vocabulary, doc_id, &mut expansion, windows, room.limit)
                })
            }
            _ => self.count_texts(doc_ids, room, |doc_id, windows| {
                walk.document(&self.vocabulary, doc_id, &mut expansion, windows, room.limit)
            }),
        }
    }

    /// Counts the sequences of documents one after another; `walk` passes on their windows.
    fn count_packed<K: Key + Keyed<Key = K>, W: NumberedWeights>(
        &self,
        doc_ids: &[u64],
        room: Room<'_>,
        windows: &mut PackedWindows<K, W>,
        mut walk: impl FnMut(u64, &mut PackedWindows<K, W>) -> Result<()>,
    ) -> Result<RankedRange> {
        let mut counted = Counted::default();
        let mut lens = Vec::with_capacity(doc_ids.len());
        let mut sorting = Sorting::default();
        let canceller = room.limit.canceller();
        let mut interrupt = canceller.interrupt();
        for &doc_id in doc_ids {
            windows.keys.clear();
            walk(doc_id, windows)?;
            interrupt.pass(windows.keys.len() + DOC_STEPS)?;
            let before = counted.counts.len();
            swap(&mut windows.keys, &mut sorting.entries);
            sorting.sort(windows.weights.bits(), canceller)?;
            counted.add_keys(&sorting.entries, self.packing, &windows.weights, 1)?;
            lens.push(room.keep_rows(&mut counted, before)?);
        }
        Ok((counted, lens))
    }

    /// Counts sequences that do not fit a key, in the same way.
    fn count_texts(
        &self,
        doc_ids: &[u64],
        room: Room<'_>,
        mut walk: impl FnMut(u64, &mut TextWindows) -> Result<()>,
    ) -> Result<RankedRange> {
        let mut windows = TextWindows::new(self.packing, Keep::All);
        let mut counted = Counted::default();
        let mut lens = Vec::with_capacity(doc_ids.len());
        let canceller = room.limit.canceller();
        let mut interrupt = canceller.interrupt();
        for &doc_id in doc_ids {
            windows.clear();
            walk(doc_id, &mut windows)?;
            interrupt.pass(windows.num_met() + DOC_STEPS)?;
            let mut entries = windows.entries(0);
            let before = counted.counts.len();
            sort_checked(&mut entries, |entry| entry.key, canceller)?;
            let words = |value: u64| windows.words(value as usize);
            let weight = |value: u64| windows.weight(value as usize);
            counted.add(&mut entries, self.packing, &words, &weight, 1, canceller)?;
            lens.push(room.keep_rows(&mut counted, before)?);
        }
        Ok((counted, lens))
    }

    fn count_by_numbers(
        &self,
        edges: &[Edges],
        numbered: &Numbered,
        doc_ids: &[u64],
        room: Room<'_>,
    ) -> Result<RankedRange> {
        let mut counted = Counted::default();
        let mut lens = Vec::with_capacity(doc_ids.len());
        let mut counts = numbered.counts();
        let canceller = room.limit.canceller();
        let mut rest = doc_ids;
        while let Some(&doc_id) = rest.first() {
            let (docs, num_docs, at) = self.group(rest);
            if num_docs == 0 {
                let (cut, cut_lens) = self.count_by_rules(edges, &[doc_id], room)?;
                counted.append(&cut);
                lens.extend(cut_lens);
            } else {
                canceller.check()?;
                numbered.count(&edges[at], at, &docs[..num_docs], &mut counts);
            }
            for lane in 0..num_docs {
                let items = counts.items(lane);
                let before = counted.counts.len();
                items.iter().for_each(|&item| counted.push_key(numbered.key(item), self.packing));
                counted.counts.extend_from_slice(counts.counts(lane));
                lens.push(room.keep_rows(&mut counted, before)?);
            }
            rest = &rest[num_docs.max(1)..];
        }
        numbered.give_back(counts);
        Ok((counted, lens))
    }

    /// Takes the rows of documents that are counted already.
    fn take_counted(&self, documents: &CountedDocuments, doc_ids: &[u64], room: Room<'_>) -> Result<RankedRange> {
        let mut counted = Counted::default();
        let mut lens = Vec::with_capacity(doc_ids.len());
        let mut interrupt = room.limit.canceller().interrupt();
        for &doc_id in doc_ids {
            let before = counted.counts.len();
            for (segment_idx, doc) in self.vocabulary.corpus().doc_parts(doc_id) {
                documents.append(segment_idx, doc, &mut counted);
            }
            interrupt.pass(counted.counts.len() - before + DOC_STEPS)?;
            lens.push(room.keep_rows(&mut counted, before)?);
        }
        Ok((counted, lens))
    }

    /// Returns the first of `doc_ids` that lie in one segment alone, their number, and the segment.
    /// The number is 0 if the first document is cut.
    fn group(&self, doc_ids: &[u64]) -> ([DocId; GROUP_LEN], usize, usize) {
        let mut docs = [DocId::FIRST; GROUP_LEN];
        let mut num_docs = 0;
        let mut segment_idx = 0;
        for &doc_id in doc_ids.iter().take(GROUP_LEN) {
            let mut parts = self.vocabulary.corpus().doc_parts(doc_id);
            match (parts.next(), parts.next()) {
                (Some((at, doc)), None) if num_docs == 0 || at == segment_idx => {
                    (docs[num_docs], segment_idx) = (doc, at);
                }
                _ => break,
            }
            num_docs += 1;
        }
        (docs, num_docs, segment_idx)
    }
}

/// Returns true if no document can have 2^32 words in a segment.
fn are_narrow(vocabulary: &Vocabulary) -> bool {
    let mut dags = vocabulary.corpus().segments().iter().map(|segment| &segment.dag);
    dags.all(|dag| dag.len_words(dag.num_terminals()) <= u64::from(u32::MAX))
}

/// Passes all windows of a document to `sink`.
fn walk_document(
    edges: &[Edges],
    vocabulary: &Vocabulary,
    doc_id: u64,
    rules: &mut LocalRules,
    sink: &mut impl Sink,
    limit: &Limit<'_>,
) -> Result<()> {
    let mut limit = limit.for_task();
    let corpus = vocabulary.corpus();
    let mut num_parts = 0;
    for (at, doc) in corpus.doc_parts(doc_id) {
        let edges = &edges[at];
        let range = edges.dag().doc_range(doc);
        sink.begin(1);
        edges.walk(range.clone(), sink, &mut limit)?;
        rules.add_children(edges, range, 1);
        while let Some((rule_id, weight)) = rules.pop() {
            let range = edges.dag().rule_range(rule_id);
            sink.begin(weight);
            edges.walk(range.clone(), sink, &mut limit)?;
            rules.add_children(edges, range, weight);
        }
        num_parts += 1;
    }
    if num_parts > 1 {
        walk_borders(edges, corpus, Some(doc_id), sink);
    }
    Ok(())
}

/// Rules of one document that are not visited yet, parents before children.
struct LocalRules {
    weights: Vec<u64>,
    waiting: AscendingSet,
}

impl LocalRules {
    fn new(edges: &[Edges]) -> Self {
        let num_rules = edges.iter().map(|edges| edges.dag().grammar().num_rules()).max();
        let num_rules = num_rules.unwrap_or(0);
        Self { weights: vec![0; num_rules], waiting: AscendingSet::new(num_rules) }
    }

    fn add_children(&mut self, edges: &Edges, positions: Range<usize>, weight: u64) {
        let dag = edges.dag();
        for &element in &dag.grammar().symbols[positions] {
            if let Some(rule_id) = dag.rule_of(element) {
                self.weights[rule_id.index()] = self.weights[rule_id.index()].wrapping_add(weight);
                self.waiting.insert(rule_id.index());
            }
        }
    }

    /// Removes the first rule and returns it with its weight.
    fn pop(&mut self) -> Option<(RuleId, u64)> {
        let rule_id = RuleId::from(self.waiting.pop()? as u32);
        Some((rule_id, std::mem::take(&mut self.weights[rule_id.index()])))
    }
}

impl SegmentDocumentSequences {
    /// Counts a segment of `corpus` on the cores, in the form of a device's answer.
    ///
    /// Answers of devices are compared with it. It takes up to 1 GiB of memory.
    ///
    /// # Errors
    /// The errors of [`DocumentSequences::new`] and [`DocumentSequences::chunk`].
    pub fn from_segment(corpus: &Corpus, segment_idx: usize, n: usize) -> Result<Self> {
        let alone = LoneSegment::new(corpus, segment_idx, n)?;
        let docs: Vec<u64> = (0..alone.corpus.num_docs()).collect();
        let way = Traversal::TokenScan;
        let counted = DocumentSequences::new(Arc::clone(&alone.vocabulary), n, way, 1 << 30)?.chunk(&docs)?;
        let rows = (0..counted.counts().len()).map(|row| alone.key(counted.sequences().words(row)));
        let rows: Vec<u64> = rows.collect();
        let mut keys = rows.clone();
        keys.sort_unstable();
        keys.dedup();
        let number = |key: &u64| keys.partition_point(|other| other < key) as u32;
        let ends = (0..docs.len()).map(|at| counted.rows_of(at).end as u32);
        Ok(Self {
            word_bits: alone.word_bits,
            offsets: std::iter::once(0).chain(ends).collect(),
            sequences: rows.iter().map(number).collect(),
            counts: counted.counts().iter().map(|&count| count as u32).collect(),
            keys,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::analytics::Fold;
    use crate::build::corpus_from_texts;

    use super::*;

    fn documents() -> Vec<String> {
        let word = |at: usize| ["be", "To", "or", "not", "to", "Be", "an"][at * at % 31 % 7];
        let text = |doc: usize| (0..doc * 7 % 40).map(|at| word(at + doc * 3)).collect::<Vec<_>>();
        (0..90).map(|doc| text(doc).join(" ")).collect()
    }

    fn parts(corpus: &Corpus, n: usize) -> Vec<SegmentDocumentSequences> {
        (0..corpus.segments().len()).map(|at| SegmentDocumentSequences::from_segment(corpus, at, n).unwrap()).collect()
    }

    /// Returns the rows of each document, as words and counts.
    fn rows(counts: &DocumentSequenceCounts) -> Vec<Vec<(Vec<u32>, u64)>> {
        let row = |row: usize| (counts.sequences().words(row).collect(), counts.counts()[row]);
        (0..counts.doc_ids().len()).map(|at| counts.rows_of(at).map(row).collect()).collect()
    }

    #[test]
    fn sequences_of_segments_are_those_of_the_corpus() {
        for block_bytes in [1 << 20, 700, 300] {
            let corpus = corpus_from_texts(block_bytes, &documents());
            assert_eq!(corpus.segments().len() == 1, block_bytes == 1 << 20);
            let all: Vec<u64> = (0..corpus.num_docs()).collect();
            for (n, fold) in [(1, Fold::NONE), (2, Fold::CASE), (3, Fold::NONE), (1, Fold::CASE)] {
                let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap().folded(&fold).unwrap());
                let words = Arc::clone(&vocabulary);
                let got = DocumentSequences::from_segments(words, n, parts(&corpus, n), 1 << 30).unwrap();
                assert_eq!(got.traversal(), Traversal::TokenScan);
                assert!(got.memory_bytes() > 0);
                for docs in [&all[..], &[40, 0, 89, 3], &[]] {
                    let words = Arc::clone(&vocabulary);
                    let expected = DocumentSequences::new(words, n, Traversal::TopDown, 1 << 30).unwrap();
                    let expected = expected.chunk(docs).unwrap();
                    assert_eq!(rows(&got.chunk(docs).unwrap()), rows(&expected), "{n}, {fold:?}");
                }
                assert!(matches!(got.chunk(&[90]), Err(Error::OutOfRange { got: 90, .. })));
            }
        }
    }

    #[test]
    fn what_is_misshapen_is_refused() {
        let corpus = corpus_from_texts(300, &documents());
        let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
        let with = |n, parts| DocumentSequences::from_segments(Arc::clone(&vocabulary), n, parts, 0);
        assert!(with(3, Vec::new()).is_err());
        let refused = with(22, parts(&corpus, 2)).unwrap_err();
        assert!(refused.to_string().contains("64 bits"), "{refused}");
        let changes: [fn(&mut SegmentDocumentSequences); 6] = [
            |part| part.offsets[0] = 1,
            |part| part.offsets.truncate(1),
            |part| part.offsets.reverse(),
            |part| part.sequences[0] = 1 << 20,
            |part| part.counts.truncate(1),
            |part| part.keys.truncate(1),
        ];
        for change in changes {
            let mut wrong = parts(&corpus, 3);
            change(&mut wrong[1]);
            let got = with(3, wrong).unwrap_err();
            assert!(got.to_string().contains("a part of segment 1"), "{got}");
        }
        assert!(with(3, parts(&corpus, 3)).is_ok());
        let cut = Vocabulary::new(&corpus_from_texts(300, &["one two three ".repeat(100)])).unwrap();
        let refused = DocumentSequences::segments_refused(&cut, 3).unwrap();
        assert_eq!(refused, "a document goes on in another segment");
    }
}
