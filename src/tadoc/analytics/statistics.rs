//! What a corpus is made of, in numbers.

use crate::segment::{Corpus, Dag, Segment};

/// Totals over all segments. Sums that would pass 2^64 - 1, as only a hostile file's can, stay
/// there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CorpusStatistics {
    /// Segments.
    pub num_segments: u64,
    /// Documents; one that was cut counts once.
    pub num_docs: u64,
    /// Bytes of text.
    pub len_bytes: u64,
    /// Words of the text.
    pub num_words: u64,
    /// Dictionary entries that are words, summed over segments.
    pub num_distinct_words: u64,
    /// Dictionary entries that are separators, summed over segments.
    pub num_separators: u64,
    /// N: tokens of the text, implied blanks not counted.
    pub num_tokens: u64,
    /// G: elements on all right-hand sides.
    pub num_elements: u64,
    /// Rules, the roots included.
    pub num_rules: u64,
    /// Longest path from a root to a rule, in steps; 0 where there are only roots.
    pub depth: u32,
    /// Main memory held: dictionaries, grammars, paths, and what has been derived so far.
    pub memory_bytes: u64,
}

impl CorpusStatistics {
    /// G / N: how many elements the grammar spends on a token. Low is repetitive.
    pub fn reuse(&self) -> f64 {
        self.num_elements as f64 / self.num_tokens.max(1) as f64
    }
}

/// Counts `corpus`: O(G), as depth and tokens are counted over the rules; derives nothing that
/// stays in memory.
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
        segment.paths.memory_bytes(),
    ];
    parts.iter().map(|&bytes| bytes as u64).sum()
}

/// Bytes of all documents: the root's, but for the blanks that would lie across document borders.
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

/// Tokens of the expansion of the root.
fn num_tokens(dag: &Dag) -> u64 {
    let grammar = dag.grammar();
    let mut lens = vec![0u64; grammar.num_rules()];
    for rule_idx in (0..grammar.num_rules()).rev() {
        let of = |&element: &u32| dag.rule_of(element).map_or(1, |child| lens[child]);
        lens[rule_idx] = grammar.rule(rule_idx).iter().map(of).fold(0, u64::saturating_add);
    }
    lens.first().copied().unwrap_or(0)
}

fn depth(dag: &Dag) -> u32 {
    let grammar = dag.grammar();
    let mut levels = vec![0u32; grammar.num_rules()];
    for rule_idx in 0..grammar.num_rules() {
        let below = levels[rule_idx] + 1;
        for &element in grammar.rule(rule_idx) {
            if let Some(child) = dag.rule_of(element) {
                levels[child] = levels[child].max(below);
            }
        }
    }
    levels.into_iter().max().unwrap_or(0)
}
