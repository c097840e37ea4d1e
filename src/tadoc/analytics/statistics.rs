//! Statistics of a corpus.

use crate::segment::{Corpus, Dag, Segment};

/// Totals over all segments. Sums stop at 2^64 - 1, which only the sums of a hostile file can
/// reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CorpusStatistics {
    /// Number of segments.
    pub num_segments: u64,
    /// Number of documents. A document that is cut over segments counts once.
    pub num_docs: u64,
    /// Bytes of text.
    pub len_bytes: u64,
    /// Number of words of the text.
    pub num_words: u64,
    /// Number of dictionary entries that are words, summed over segments.
    pub num_distinct_words: u64,
    /// Number of dictionary entries that are separators, summed over segments.
    pub num_separators: u64,
    /// N: number of tokens of the text, without implied blanks.
    pub num_tokens: u64,
    /// G: number of elements on all right-hand sides.
    pub num_elements: u64,
    /// Number of rules, including the roots.
    pub num_rules: u64,
    /// Number of steps of the longest path from a root to a rule; 0 if there are only roots.
    pub depth: u32,
    /// Memory in bytes: dictionaries, grammars, paths, and data that was derived so far.
    pub memory_bytes: u64,
}

impl CorpusStatistics {
    /// Returns G / N, the number of grammar elements for each token. A repetitive text has a low
    /// value.
    pub fn reuse(&self) -> f64 {
        self.num_elements as f64 / self.num_tokens.max(1) as f64
    }
}

/// Computes the statistics of `corpus`. O(G), because depth and tokens are counted over the rules.
/// No derived data stays in memory.
pub fn corpus_statistics(corpus: &Corpus) -> CorpusStatistics {
    let mut total = CorpusStatistics { num_docs: corpus.num_docs(), ..Default::default() };
    for segment in corpus.segments() {
        let dag = &segment.dag;
        let grammar = dag.grammar();
        let dictionary = &segment.dictionary;
        let num_separators = dictionary.len() - dictionary.num_words();
        total.num_segments += 1;
        total.len_bytes = total.len_bytes.saturating_add(len_bytes(dag));
        total.num_words = total.num_words.saturating_add(dag.len_words(dag.num_terminals()));
        total.num_distinct_words += u64::from(dictionary.num_words());
        total.num_separators += u64::from(num_separators);
        total.num_tokens = total.num_tokens.saturating_add(num_tokens(dag));
        total.num_elements += grammar.symbols.len() as u64;
        total.num_rules += grammar.num_rules() as u64;
        total.depth = total.depth.max(depth(dag));
        total.memory_bytes += memory_bytes(segment);
    }
    total
}

fn memory_bytes(segment: &Segment) -> u64 {
    let parts = [
        segment.dictionary.memory_bytes(),
        segment.dag.memory_bytes(),
        segment.kept_bytes(),
        segment.paths.memory_bytes(),
    ];
    parts.iter().map(|&bytes| bytes as u64).sum()
}

/// Returns the bytes of all documents: those of the root, without the blanks that would be implied
/// at document borders.
fn len_bytes(dag: &Dag) -> u64 {
    let root = dag.grammar().root();
    let mut starts = dag.grammar().doc_offsets.clone();
    starts.dedup();
    let is_blank = |&&start: &&u32| {
        let (start, end) = (start as usize, root.len());
        (1..end).contains(&start)
            && dag.ends_with_word(root[start - 1])
            && dag.begins_with_word(root[start])
    };
    dag.len_bytes(dag.num_terminals()) - starts.iter().filter(is_blank).count() as u64
}

/// Returns the number of tokens in the expansion of the root.
fn num_tokens(dag: &Dag) -> u64 {
    let grammar = dag.grammar();
    let mut lens = vec![0u64; grammar.num_rules()];
    for rule_id in grammar.rule_ids().rev() {
        let of = |&element: &u32| dag.rule_of(element).map_or(1, |child| lens[child.index()]);
        lens[rule_id.index()] = grammar.rule(rule_id).iter().map(of).fold(0, u64::saturating_add);
    }
    lens.first().copied().unwrap_or(0)
}

fn depth(dag: &Dag) -> u32 {
    let grammar = dag.grammar();
    let mut levels = vec![0u32; grammar.num_rules()];
    for rule_id in grammar.rule_ids() {
        let below = levels[rule_id.index()] + 1;
        for &element in grammar.rule(rule_id) {
            if let Some(child) = dag.rule_of(element) {
                levels[child.index()] = levels[child.index()].max(below);
            }
        }
    }
    levels.into_iter().max().unwrap_or(0)
}
