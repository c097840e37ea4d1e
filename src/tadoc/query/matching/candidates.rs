//! Candidates of a predicate on the text: documents that it may select.
//!
//! `text = …`, `LIKE`, `contains`, `starts_with` and `grep` all need some literal *fragments* to occur. Tokens are
//! maximal runs of one class of characters (profiles `word` and `whitespace`), or runs and single characters whose
//! borders do not depend on the text around them (`auto`). So a fragment says which tokens a document must have:
//!
//! ```text
//! fragment    er, the quick b
//! runs        |er|, |the| |quick| |b|
//! tokens      a word that ends in "er"; the separator ", "; the words "the" and "quick"; a word
//!             that begins with "b". The blanks between words are implied and say nothing.
//! ```
//!
//! The dictionary is searched for such tokens. The inverse grammar then lists the documents above
//! them, and each rule is visited once. The result is a superset: order and adjacency are not
//! checked. The caller decodes the candidates and applies the predicate to their text. Cost:
//! O(dictionary bytes) for runs at the edge of a fragment, plus O(G) at worst for each run.
//!
//! Nothing is excluded where a token need not be a whole run: profile `uax29`, dictionaries with tokens so long that
//! runs were split, documents cut at a block border (always candidates), fragments with an invisible mark that joins
//! letters on both sides, and fragments with U+FFFD, which also represents bytes that are not UTF-8. A fragment without
//! U+FFFD that occurs in the text with replacements also occurs in the bytes.
//!
//! # Segments that are needed
//!
//! They are chosen by their dictionaries, and for phrases by their rules.
//!
//! ```text
//! segments        | a b | a | b c | a | a .. | .. | .. b |      .. a document that was cut
//! "a b" needs     |  x  |   |     |   |   x  |  x |   x  |
//! ```
//!
//! Segments that share a document form a *chain*, mostly of one segment. A document lies in one chain, so a chain is
//! needed only if the query can hold with the patterns that match a word in it. In a longer chain the segments with a
//! match are needed, and with each all other segments of its documents: offsets count from the start of a document, and
//! contexts leave the segment. Positions between two matches in one document are therefore complete.

use crate::error::Result;
use crate::query::language::pattern::WordPattern;
use crate::query::language::query::Query;
use crate::segment::{Corpus, Segment};
use crate::text::{Dictionary, MAX_TOKEN_BYTES, TokenizerProfile, for_each_token, is_invisible};

use super::match_paths::docs_with;
use super::sets::{AnyCaseFinder, DocSet, filtered, tokens_containing, tokens_containing_any_case};
use super::{Question, Way, doc_cut_after};

/// Least length of a token that a split run leaves: words are cut at a character boundary.
const MIN_SPLIT_TOKEN_BYTES: usize = MAX_TOKEN_BYTES - 3;

/// A condition on a text: literal fragments that occur in it in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextPattern {
    /// The fragments; an empty fragment has no effect.
    pub fragments: Vec<String>,
    /// Length of the text if it is known, as for `=`. Only set for a literal without U+FFFD.
    pub exact_len_bytes: Option<u64>,
    /// If true, upper and lower case count as equal, by Unicode's simple case folding.
    pub is_any_case: bool,
}

impl TextPattern {
    /// Creates the pattern of texts that contain `fragments` in order.
    pub fn from_fragments(fragments: Vec<String>) -> Self {
        Self { fragments, ..Self::default() }
    }

    /// Creates the pattern of the text `literal`.
    pub fn equals(literal: &str) -> Self {
        let exact_len_bytes = (!has_replacement(literal)).then_some(literal.len() as u64);
        Self { exact_len_bytes, ..Self::contains(literal) }
    }

    /// Creates the pattern of texts that contain `literal`.
    pub fn contains(literal: &str) -> Self {
        Self::from_fragments(vec![literal.to_owned()])
    }

    /// Creates the pattern of texts that contain `literal` in any case.
    pub(crate) fn contains_in_any_case(literal: &str) -> Self {
        Self { is_any_case: true, ..Self::contains(literal) }
    }

    /// Creates the pattern of texts that start with `literal`.
    pub fn starts_with(literal: &str) -> Self {
        Self::contains(literal)
    }

    /// Creates the pattern of texts that are like `pattern` in SQL, with upper and lower case
    /// distinguished. `escape` (the backslash by default) makes `%` and `_` literal. Its effect
    /// before other characters differs between engines, so a fragment ends there.
    pub fn like(pattern: &str, escape: Option<char>) -> Self {
        let mut fragments = vec![String::new()];
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let literal = match character {
                '%' | '_' => None,
                _ if Some(character) == escape => characters.next().filter(|next| matches!(next, '%' | '_')),
                '\\' => None,
                _ => Some(character),
            };
            match (literal, fragments.last_mut()) {
                (Some(literal), Some(fragment)) => fragment.push(literal),
                _ => fragments.push(String::new()),
            }
        }
        fragments.retain(|fragment| !fragment.is_empty());
        Self::from_fragments(fragments)
    }

    /// Returns true if a text of the words and separators of `dictionary` may match.
    pub(in crate::query) fn may_match(&self, profile: TokenizerProfile, dictionary: &Dictionary) -> bool {
        let mut runs = runs_from(profile, self).into_iter();
        !runs_are_tokens(profile, dictionary) || runs.all(|run| !run.tokens(dictionary).is_empty())
    }
}

/// Returns the ids of the documents of `corpus` whose text may match `pattern`, in ascending order;
/// `None` if no document can be excluded. Segments that are absent have no such documents.
pub fn candidate_documents(corpus: &Corpus, pattern: &TextPattern) -> Option<Vec<u64>> {
    let mut ids: Vec<u64> = Vec::new();
    let segments = corpus.segments().iter().enumerate();
    for (segment_idx, segment) in segments.filter(|(_, segment)| !segment.is_absent()) {
        let is_cut = doc_cut_after(corpus, segment_idx).is_some();
        let docs = candidates(segment, corpus.profile(), pattern, is_cut)
            .unwrap_or_else(|| DocSet::all(segment.dag.grammar().num_docs()));
        let is_listed = |doc_id: &u64| ids.last().is_none_or(|last| last < doc_id);
        let new: Vec<u64> = docs.iter().map(|doc| corpus.doc_id(segment_idx, doc)).filter(is_listed).collect();
        ids.extend(new);
    }
    ((ids.len() as u64) < corpus.num_docs()).then_some(ids)
}

/// Returns the ids of the documents of `corpus` whose text may match, for each entry of `demands`,
/// one of its patterns, in ascending order; `None` if no document can be excluded.
pub fn documents_for_demands(corpus: &Corpus, demands: &[Vec<TextPattern>]) -> Option<Vec<u64>> {
    let mut all: Option<Vec<u64>> = None;
    for patterns in demands {
        let found: Option<Vec<Vec<u64>>> =
            patterns.iter().map(|pattern| candidate_documents(corpus, pattern)).collect();
        let Some(found) = found else { continue };
        let mut any = found.concat();
        any.sort_unstable();
        any.dedup();
        if let Some(all) = &all {
            any.retain(|id| all.binary_search(id).is_ok());
        }
        all = Some(any);
    }
    all
}

/// Returns the documents of `segment` whose text may match `pattern`; `None` if no document can be
/// excluded. The last document is always included, because the segment does
/// not know if it continues in the next one.
pub fn candidate_docs(segment: &Segment, profile: TokenizerProfile, pattern: &TextPattern) -> Option<DocSet> {
    candidates(segment, profile, pattern, true)
}

fn candidates(
    segment: &Segment,
    profile: TokenizerProfile,
    pattern: &TextPattern,
    is_last_cut: bool,
) -> Option<DocSet> {
    let grammar = segment.dag.grammar();
    let num_docs = grammar.num_docs();
    let mut docs = DocSet::all(num_docs);
    if let Some(len) = pattern.exact_len_bytes {
        docs = DocSet::none(num_docs);
        let sums = segment.prefix_sums_or_derive();
        docs.extend(grammar.docs().filter(|&doc| sums.doc_len_bytes(doc) == len));
    }
    if runs_are_tokens(profile, &segment.dictionary) {
        keep_docs_with(&mut docs, segment, &runs_from(profile, pattern));
    }
    docs.extend(grammar.docs().next().filter(|_| segment.continues));
    docs.extend(grammar.docs().next_back().filter(|_| is_last_cut));
    (docs.len() < num_docs).then_some(docs)
}

/// Returns tokens of `segment` of which a line has one if, for each entry of `demands`, it has one
/// of its patterns: those of the entry with the fewest places on right-hand sides, and the number of these. A token
/// that a block border cuts is not among them. Returns `None` if no entry says which tokens a line has.
pub(in crate::query) fn tokens_of_demands(
    segment: &Segment,
    profile: TokenizerProfile,
    demands: &[Vec<TextPattern>],
) -> Option<(u64, Vec<u32>)> {
    if !runs_are_tokens(profile, &segment.dictionary) {
        return None;
    }
    let rarest = |pattern: &TextPattern| {
        let runs = runs_from(profile, pattern).into_iter();
        runs.map(|run| costed_tokens(segment, &run)).min()
    };
    let for_entry = |patterns: &Vec<TextPattern>| {
        let found = patterns.iter().map(rarest).collect::<Option<Vec<(u64, Vec<u32>)>>>()?;
        let num_places: u64 = found.iter().map(|(num_places, _)| num_places).sum();
        Some((num_places, found.into_iter().flat_map(|(_, tokens)| tokens).collect::<Vec<u32>>()))
    };
    demands.iter().filter_map(for_entry).min()
}

/// Returns the tokens of `segment` that can contain `run`, and the number of their places.
fn costed_tokens(segment: &Segment, run: &ClassRun) -> (u64, Vec<u32>) {
    let tokens = run.tokens(&segment.dictionary);
    (segment.num_places(&tokens), tokens)
}

/// Returns the words of `dictionary` that a text which matches `pattern` has: for each entry, one of its words.
pub(super) fn words_of_text(
    pattern: &TextPattern,
    profile: TokenizerProfile,
    dictionary: &Dictionary,
) -> Vec<Vec<u32>> {
    if !runs_are_tokens(profile, dictionary) {
        return Vec::new();
    }
    let words = runs_from(profile, pattern).into_iter().filter(|run| run.is_word);
    words.map(|run| run.tokens(dictionary)).collect()
}

/// Returns true if each run of one class of characters is a token.
fn runs_are_tokens(profile: TokenizerProfile, dictionary: &Dictionary) -> bool {
    profile != TokenizerProfile::Uax29 && dictionary.max_token_len() < MIN_SPLIT_TOKEN_BYTES
}

/// Intersects `docs` with the documents of each run, cheapest first. Stops when listing the
/// documents of a run is likely to cost more than reading the documents that are left.
fn keep_docs_with(docs: &mut DocSet, segment: &Segment, runs: &[ClassRun]) {
    let len_bytes: u64 = segment.dag.len_bytes(segment.dag.num_terminals());
    let mut costs: Vec<_> = runs.iter().map(|run| costed_tokens(segment, run)).collect();
    costs.sort_unstable();
    for (num_positions, tokens) in costs {
        let share = docs.len() as f64 / docs.num_docs().max(1) as f64;
        let bytes_left = (len_bytes as f64 * share) as u64;
        let question = Question::Docs { num_positions, bytes_left };
        if question.way(None, []) != Way::DocsWith {
            return;
        }
        docs.intersect(&docs_with(segment, tokens));
    }
}

/// A run of one class of characters in a fragment, and its position in a token.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClassRun {
    bytes: Vec<u8>,
    is_word: bool,
    /// Flags: the token may have more bytes before the run, after the run.
    is_open: (bool, bool),
    is_any_case: bool,
}

/// Returns the distinct runs of all fragments, without those that exclude nothing.
fn runs_from(profile: TokenizerProfile, pattern: &TextPattern) -> Vec<ClassRun> {
    let mut runs: Vec<ClassRun> = Vec::new();
    let says_tokens = |fragment: &&String| !has_replacement(fragment) && !fragment.contains(is_invisible);
    for fragment in pattern.fragments.iter().filter(says_tokens) {
        let is_whole = pattern.exact_len_bytes == Some(fragment.len() as u64);
        let mut from_fragment = Vec::new();
        for_each_token(profile, fragment.as_bytes(), |token| {
            let bytes = token.bytes.to_vec();
            // Separators have one case.
            let is_word = token.is_word;
            let is_open = (false, false);
            let is_any_case = pattern.is_any_case && is_word;
            from_fragment.push(ClassRun { bytes, is_word, is_open, is_any_case });
        });
        if let (false, Some(first)) = (is_whole, from_fragment.first_mut()) {
            first.is_open.0 = true;
        }
        if let (false, Some(last)) = (is_whole, from_fragment.last_mut()) {
            last.is_open.1 = true;
        }
        open_where_words_touch(&mut from_fragment);
        // One blank may be an implied one, which is no token.
        let says_something = |run: &ClassRun| run.is_word || run.bytes != b" ";
        for run in from_fragment.into_iter().filter(says_something) {
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
    }
    runs
}

/// Opens runs where a word touches another. In a corpus of `word`, which can be asked together with one of `auto`, both
/// are parts of one token.
fn open_where_words_touch(runs: &mut [ClassRun]) {
    for at in 1..runs.len() {
        if runs[at - 1].is_word && runs[at].is_word {
            runs[at - 1].is_open.1 = true;
            runs[at].is_open.0 = true;
        }
    }
}

impl ClassRun {
    /// Returns the ids of the tokens that can contain this run.
    fn tokens(&self, dictionary: &Dictionary) -> Vec<u32> {
        let ids = if self.is_word { 0..dictionary.num_words() } else { dictionary.num_words()..dictionary.len() };
        if self.is_any_case {
            let text = std::str::from_utf8(&self.bytes).ok();
            return match text.and_then(AnyCaseFinder::new) {
                Some(finder) => tokens_containing_any_case(dictionary, ids, &finder, self.is_open),
                None => ids.collect(),
            };
        }
        match (self.is_open, self.is_word) {
            ((false, false), true) => dictionary.word_id(&self.bytes).map(u32::from).into_iter().collect(),
            ((false, false), false) => dictionary.separator_id(&self.bytes).into_iter().collect(),
            ((false, true), true) => dictionary.words_with_prefix(&self.bytes).collect(),
            ((false, true), false) => filtered(ids, |id| dictionary.get(id).starts_with(&self.bytes)),
            ((true, false), _) => filtered(ids, |id| dictionary.get(id).ends_with(&self.bytes)),
            ((true, true), _) => tokens_containing(dictionary, ids, &self.bytes),
        }
    }
}

fn has_replacement(text: &str) -> bool {
    text.contains(char::REPLACEMENT_CHARACTER)
}

/// Words and size of a segment that is perhaps not opened.
#[derive(Debug, Clone, Copy)]
pub struct SegmentWords<'a> {
    /// Words and separators.
    pub dictionary: &'a Dictionary,
    /// Number of documents, including a continued part.
    pub num_docs: u64,
    /// True if the first document continues the last one of the previous segment.
    pub continues: bool,
}

/// Returns true for each of the successive `segments` without which the occurrences of `query`, or
/// their contexts, would be incomplete.
pub fn segments_for_query(query: &Query, segments: &[SegmentWords<'_>]) -> Vec<bool> {
    let mut is_needed = Vec::with_capacity(segments.len());
    for chain in segments.chunk_by(|_, next| next.continues) {
        if let [only] = chain {
            // The first missing word decides.
            let is_there = |pattern: &WordPattern| !pattern.find(only.dictionary).is_empty();
            is_needed.push(can_hold(query, &mut |item| query.items()[item].iter().all(is_there)));
            continue;
        }
        let patterns = || query.items().iter().flatten();
        let found: Vec<Vec<bool>> =
            chain.iter().map(|segment| patterns().map(|p| !p.find(segment.dictionary).is_empty()).collect()).collect();
        let first_patterns: Vec<usize> =
            query.items().iter().scan(0, |next, item| Some(std::mem::replace(next, *next + item.len()))).collect();
        let mut is_found = |item: usize| {
            let first = first_patterns[item];
            let mut patterns = first..first + query.items()[item].len();
            patterns.all(|pattern| found.iter().any(|found| found[pattern]))
        };
        let matches: Vec<bool> = found.iter().map(|found| found.contains(&true)).collect();
        if can_hold(query, &mut is_found) {
            is_needed.extend(with_whole_documents(chain, &matches))
        } else {
            is_needed.extend(vec![false; chain.len()])
        }
    }
    is_needed
}

/// Returns true if a document of a segment without parts of cut documents can match `query`.
/// `is_there` returns true if the segment has a word, and `None` if that is not known.
///
/// # Errors
/// The errors of `is_there`.
pub fn may_match(query: &Query, mut is_there: impl FnMut(&str) -> Result<Option<bool>>) -> Result<bool> {
    let mut failed = Ok(());
    let mut may_word_be_there = |word: &String| match is_there(word) {
        Ok(is_there) => is_there.unwrap_or(true),
        Err(error) => {
            failed = Err(error);
            true
        }
    };
    let mut is_word_there =
        |pattern: &WordPattern| pattern.as_spellings().is_none_or(|words| words.iter().any(&mut may_word_be_there));
    let may_match = can_hold(query, &mut |item| query.items()[item].iter().all(&mut is_word_there));
    failed.map(|()| may_match)
}

/// Returns true if a document can meet the condition of `query` where at most the items that
/// `is_there` returns true for occur.
fn can_hold(query: &Query, is_there: &mut dyn FnMut(usize) -> bool) -> bool {
    query.root().can_hold(&mut |leaf| query.leaves()[leaf].items().iter().all(|&i| is_there(i)))
}

/// Returns true for each of the successive `segments` of a corpus of `profile` that may have a
/// document whose text matches, for each entry of `demands`, one of its patterns. A fragment may
/// cross a cut, so all segments of documents that were cut are needed.
pub fn segments_for_texts(
    demands: &[Vec<TextPattern>],
    profile: TokenizerProfile,
    segments: &[SegmentWords<'_>],
) -> Vec<bool> {
    let may_match = |dictionary| {
        let mut demands = demands.iter();
        demands.all(|patterns| patterns.iter().any(|pattern| pattern.may_match(profile, dictionary)))
    };
    let chains = segments.chunk_by(|_, next| next.continues);
    let needed = chains.flat_map(|chain| {
        let is_needed = chain.len() > 1 || chain.iter().any(|s| may_match(s.dictionary));
        vec![is_needed; chain.len()]
    });
    needed.collect()
}

/// Returns true for each segment of `chain` that `matches`, or shares a document with one that
/// does.
fn with_whole_documents(chain: &[SegmentWords<'_>], matches: &[bool]) -> Vec<bool> {
    let mut is_needed = matches.to_vec();
    // The open document comes from a segment that matches.
    let mut is_open = false;
    for (idx, segment) in chain.iter().enumerate() {
        is_needed[idx] |= is_open;
        is_open = matches[idx] || is_open && segment.num_docs <= 1;
    }
    is_open = false;
    for (idx, segment) in chain.iter().enumerate().rev() {
        is_needed[idx] |= is_open;
        is_open = matches[idx] || is_open && segment.num_docs <= 1;
    }
    is_needed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn like_patterns_become_fragments() {
        let cases: [(&str, Option<char>, &[&str]); 9] = [
            ("%power loss%", None, &["power loss"]),
            ("a_b%c", None, &["a", "b", "c"]),
            ("%", None, &[]),
            ("", None, &[]),
            ("100!%%", Some('!'), &["100%"]),
            ("100\\%%", Some('\\'), &["100%"]),
            ("a\\%b", None, &["a", "b"]),
            ("a!bc", Some('!'), &["a", "c"]),
            ("a\\\\b", Some('\\'), &["a", "b"]),
        ];
        for (pattern, escape, fragments) in cases {
            assert_eq!(TextPattern::like(pattern, escape).fragments, fragments, "{pattern}");
        }
    }

    #[test]
    fn runs_are_open_at_the_edges_of_a_fragment_only() {
        let runs = |pattern: &TextPattern| -> Vec<(String, (bool, bool))> {
            let runs = runs_from(TokenizerProfile::Word, pattern);
            let text = |run: ClassRun| (String::from_utf8(run.bytes).unwrap(), run.is_open);
            runs.into_iter().map(text).collect()
        };
        let run = |text: &str, open| (text.to_owned(), open);
        assert_eq!(
            runs(&TextPattern::contains("er, the quick b")),
            [
                run("er", (true, false)),
                run(", ", (false, false)),
                run("the", (false, false)),
                run("quick", (false, false)),
                run("b", (false, true))
            ]
        );
        assert_eq!(runs(&TextPattern::contains(" ")), []);
        assert_eq!(runs(&TextPattern::contains("b\u{FFFD}")), []);
        assert_eq!(runs(&TextPattern::contains("b")), [run("b", (true, true))]);
        assert_eq!(runs(&TextPattern::equals("b")), [run("b", (false, false))]);
    }

    proptest! {
        #[test]
        fn dictionary_search_agrees_with_a_loop(
            tokens in prop::collection::btree_set("[ab]{1,5}", 0..40),
            needle in "[ab]{1,4}",
        ) {
            let mut offsets = vec![0];
            let mut bytes = Vec::new();
            for token in &tokens {
                bytes.extend_from_slice(token.as_bytes());
                offsets.push(bytes.len() as u32);
            }
            let num_words = tokens.len() as u32;
            let dictionary = Dictionary::from_parts(num_words, offsets, bytes.into()).unwrap();
            for is_open in [(true, true), (true, false), (false, true), (false, false)] {
                let bytes = needle.clone().into_bytes();
                let run = ClassRun { bytes, is_word: true, is_open, is_any_case: false };
                let fits = |token: &str| match is_open {
                    (true, true) => token.contains(&needle),
                    (true, false) => token.ends_with(&needle),
                    (false, true) => token.starts_with(&needle),
                    (false, false) => token == needle,
                };
                let slow: Vec<u32> = (0..num_words)
                    .zip(&tokens)
                    .filter_map(|(id, token)| fits(token).then_some(id))
                    .collect();
                prop_assert_eq!(run.tokens(&dictionary), slow.clone());
                // The alphabet of the dictionary has one case.
                let bytes = needle.to_uppercase().into_bytes();
                let run = ClassRun { bytes, is_word: true, is_open, is_any_case: true };
                prop_assert_eq!(run.tokens(&dictionary), slow);
            }
        }
    }
}
