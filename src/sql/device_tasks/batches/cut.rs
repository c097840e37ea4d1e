//! Questions to a corpus as questions to its segments, and their answers as those of the corpus.
//!
//! ```text
//! passages     p0 ──────────────   p1 ──── (a document that is cut)   p2 ───
//! segment 3    p0                  p1, first part
//! segment 4                        p1, second part                     p2
//! all bytes    |p0             |p1, first|p1, second|p2     |          parts know where they begin
//! ```
//!
//! Words are cut by [`WordPlan`], which asks for each word of a document once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::together::Runs;
use crate::access::{AskedWord, ExtractQuery, WordPlan};
use crate::corpus::{Corpus, Segment};
use crate::gpu::{DocWord, PassageQuery};

/// What is asked of each segment, by its address: one that is in a corpus twice is asked once.
#[derive(Debug)]
pub(super) struct BySegment<Q> {
    segments: Vec<Arc<Segment>>,
    questions: BTreeMap<usize, Vec<Q>>,
}

/// A passage, or a part of one, and where it begins among the bytes of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PassagePart {
    pub(super) query: PassageQuery,
    pub(super) start: usize,
}

impl<Q> BySegment<Q> {
    pub(super) fn none() -> Self {
        Self { segments: Vec::new(), questions: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, segment: &Arc<Segment>, question: Q) {
        let of_segment = self.questions.entry(Arc::as_ptr(segment).addr());
        of_segment
            .or_insert_with(|| {
                self.segments.push(Arc::clone(segment));
                Vec::new()
            })
            .push(question);
    }

    /// Those that something is asked of.
    pub(super) fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// What is asked of `segment`.
    pub(super) fn of(&self, segment: &Arc<Segment>) -> &[Q] {
        self.questions.get(&Arc::as_ptr(segment).addr()).map_or(&[], Vec::as_slice)
    }
}

/// The passages of `queries`, which are there and end at `ends` among the bytes of all.
pub(super) fn passages(
    corpus: &Corpus,
    queries: &[ExtractQuery],
    ends: &[usize],
) -> BySegment<PassagePart> {
    let (mut parts, mut start) = (BySegment::none(), 0);
    for (query, &end) in queries.iter().zip(ends) {
        let mut skipped = query.byte_offset;
        for (segment_idx, doc) in corpus.doc_parts(query.doc_id) {
            if start == end {
                break;
            }
            let segment = &corpus.segments()[segment_idx];
            let len = segment.dag.doc_len_bytes(doc);
            if let Some(left) = len.checked_sub(skipped).filter(|&left| left > 0) {
                let len_bytes = left.min((end - start) as u64);
                let query = PassageQuery { doc: doc as u32, offset: skipped, len_bytes };
                parts.add(segment, PassagePart { query, start });
                start += len_bytes as usize;
            }
            skipped = skipped.saturating_sub(len);
        }
        start = end;
    }
    parts
}

/// The bytes of all passages, `len_bytes`, of what segments answered.
pub(super) fn joined_passages(
    parts: &BySegment<PassagePart>,
    mut answers: Vec<Runs<u8>>,
    len_bytes: usize,
) -> Vec<u8> {
    // A segment that has all of it has one part behind the other.
    if let Some(whole) = answers.pop_if(|answer| answer.values.len() == len_bytes) {
        return whole.values;
    }
    let mut all = vec![0; len_bytes];
    for (segment, answer) in parts.segments().iter().zip(&answers) {
        for (part, bytes) in parts.of(segment).iter().zip(answer.iter()) {
            all[part.start..part.start + bytes.len()].copy_from_slice(bytes);
        }
    }
    all
}

/// What `plan` asks.
pub(super) fn words(corpus: &Corpus, plan: &WordPlan<'_>) -> BySegment<AskedWord> {
    let mut parts = BySegment::none();
    plan.asked().for_each(|asked| parts.add(&corpus.segments()[asked.segment_idx], asked));
    parts
}

/// As devices are asked.
pub(super) fn doc_word(asked: &AskedWord) -> DocWord {
    DocWord { doc: asked.doc, word: Some(asked.word) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{
        WordQuery, WordTask, count_batch, document_len_bytes, extract, extract_batch, passage_ends,
        read_passages, search_batch,
    };
    use crate::corpus::{CorpusBuilder, IngestOptions, OpenLimits};

    /// Documents of many lengths, some of them cut, in several segments of which one is there twice.
    fn corpus(block_bytes: usize) -> Corpus {
        let options = IngestOptions { block_bytes, ..IngestOptions::default() };
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        for doc in 0..40 {
            let text = format!("document {doc} says so, and ").repeat(doc * doc % 23);
            builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
        }
        let file = builder.finish(None).unwrap().0;
        let corpus = Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1;
        let again = corpus.segments().iter().find(|segment| !segment.continues).cloned();
        let segments = corpus.segments().iter().cloned().chain(again).collect();
        Corpus::new(corpus.profile(), segments)
    }

    /// The CPU in the place of a device.
    fn alone(segment: &Arc<Segment>) -> Corpus {
        Corpus::new(Default::default(), vec![Arc::clone(segment)])
    }

    fn queries(corpus: &Corpus) -> Vec<ExtractQuery> {
        let mut queries = Vec::new();
        for doc_id in 0..corpus.num_docs() {
            let len = document_len_bytes(corpus, doc_id).unwrap();
            for (byte_offset, byte_len) in
                [(0, u64::MAX), (len, 5), (len / 2, 7), (0, 0), (len / 3, 200), (0, 1)]
            {
                queries.push(ExtractQuery { doc_id, byte_offset, byte_len });
            }
        }
        queries
    }

    #[test]
    fn passages_of_segments_make_those_of_the_corpus() {
        for block_bytes in [1 << 20, 300, 64] {
            let corpus = corpus(block_bytes);
            let queries = queries(&corpus);
            let ends = passage_ends(&corpus, &queries, u64::MAX).unwrap();
            let parts = passages(&corpus, &queries, &ends);
            let of_segment = |segment: &Arc<Segment>| {
                let (corpus, mut starts, mut values) = (alone(segment), vec![0], Vec::new());
                for PassagePart { query, .. } in parts.of(segment) {
                    let doc = u64::from(query.doc);
                    let passage = extract(&corpus, doc, query.offset, query.len_bytes).unwrap();
                    assert_eq!(passage.len() as u64, query.len_bytes);
                    values.extend(passage);
                    starts.push(values.len() as u64);
                }
                Runs { starts, values }
            };
            let answers = parts.segments().iter().map(of_segment).collect();
            let len = ends.last().copied().unwrap();
            let all = joined_passages(&parts, answers, len);
            let expected = read_passages(&corpus, &queries, ends).unwrap();
            assert!(expected == extract_batch(&corpus, &queries, u64::MAX).unwrap());
            assert!(all == expected.into_parts().0, "{block_bytes}");
            let num_segments = corpus.segments().len();
            assert!(parts.segments().len() < num_segments || num_segments == 1);
        }
    }

    #[test]
    fn nothing_is_asked_for_empty_passages() {
        let corpus = corpus(300);
        let parts = passages(&corpus, &[], &[]);
        assert!(parts.segments().is_empty() && joined_passages(&parts, vec![], 0).is_empty());
        let query = ExtractQuery { doc_id: 3, byte_offset: 2, byte_len: 0 };
        assert!(passages(&corpus, &[query], &[0]).segments().is_empty());
    }

    #[test]
    fn words_of_segments_make_those_of_the_corpus() {
        for block_bytes in [1 << 20, 300, 64] {
            let corpus = corpus(block_bytes);
            let of_doc = |doc_id| {
                let word = |word| WordQuery { doc_id, word };
                ["document", "says", "nowhere", "17", "says"].map(word)
            };
            let queries: Vec<WordQuery<'_>> = (0..corpus.num_docs()).flat_map(of_doc).collect();
            let plan = WordPlan::new(&corpus, &queries, WordTask::CountFromRules).unwrap();
            let parts = words(&corpus, &plan);
            let (mut counts, mut lists) =
                (vec![0; plan.num_parts()], vec![vec![]; plan.num_parts()]);
            for segment in parts.segments() {
                let alone = alone(segment);
                for asked in parts.of(segment) {
                    let word = segment.dictionary.word(asked.word);
                    let query = [WordQuery { doc_id: doc_word(asked).doc.into(), word }];
                    counts[asked.part_idx] = count_batch(&alone, &query).unwrap()[0];
                    let list = search_batch(&alone, &query, u64::MAX).unwrap();
                    lists[asked.part_idx] = list.get(0).unwrap().to_vec();
                }
            }
            let expected = count_batch(&corpus, &queries).unwrap();
            assert!(plan.join_counts(&counts).unwrap() == expected, "{block_bytes}");
            assert!(expected.iter().sum::<u64>() > 100 && plan.effort_bytes() > 0);
            let lists: Vec<&[u64]> = lists.iter().map(Vec::as_slice).collect();
            let expected = search_batch(&corpus, &queries, u64::MAX).unwrap();
            assert!(plan.join_lists(&lists, u64::MAX).unwrap() == expected, "{block_bytes}");
            assert!(plan.join_lists(&lists, 100).is_err());
            // Of "says", which is asked twice, the device is asked once.
            let most =
                3 * parts.segments().iter().map(|s| s.dag.grammar().num_docs()).sum::<usize>();
            assert!(plan.asked().count() <= most * corpus.segments().len());
        }
    }
}
