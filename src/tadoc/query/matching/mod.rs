//! From the patterns of a query to occurrences in documents.
//!
//! A *place* is a position of an element on a right-hand side, as the inverse grammar lists it. A
//! *match* is an item of a query that is complete in one rule or in one document of the root. One
//! match stands for many occurrences if its rule occurs often.
//!
//! There are several ways to the occurrences of a word. [`Way`] has the table of them and of the choice
//! between them. For a small document and a frequent word a *scan*, a walk over the tokens of the document,
//! is faster than a climb from every place in the segment: O(tokens of the document), without an index. If
//! the segment keeps the words of documents, rules that are known not to contain the word are skipped.
//!
//! Reading order: `sets` of words, documents and rules, `occurrences` (answers for one segment, and phrases as
//! matches inside rules), `match_paths` (from matches to hits, in order, and counts only), `climb` (rare
//! words, and tokens around an occurrence), `sweep` (first questions of a segment), `candidates` (documents
//! that a predicate on the text has to read, and segments that a question has to open), `word_condition`
//! (what word lists say about the documents of a question).
//!
//! A query is [resolved](ResolvedQuery) to word ids when a segment is first asked for an item, once for each item. A
//! search that ends early never reads the other dictionaries.
//!
//! ```text
//! segment s    ... | doc 8 | doc 9, first part |
//! segment s+1              | doc 9, second part | doc 10 | ...      continues
//! ```
//!
//! Offsets in a later part of a document that was cut are increased by the lengths of the parts before it. A phrase may
//! begin in one part and end in a later one. Only the few words beside a cut are read, and only the parts that hold
//! them.

pub(in crate::query) mod candidates;
pub(in crate::query) mod climb;
pub(in crate::query) mod match_paths;
pub(in crate::query) mod occurrences;
pub(in crate::query) mod sets;
pub(in crate::query) mod sweep;
pub(in crate::query) mod word_condition;

use std::cell::OnceCell;
use std::collections::VecDeque;

use Way::{Climb, DocCounts, DocsWith, KeptWords, MatchPaths, Resolve, Scan, Search, Weights};

use crate::error::{Canceller, Interrupt, Result};
use crate::ids::DocId;
use crate::query::language::pattern::WordPattern;
use crate::query::language::query::Query;
use crate::read::too_long;
use crate::segment::{Corpus, DocWords, Len, Segment};

use occurrences::Item;
use sets::WordSet;

pub use candidates::{
    SegmentWords, TextPattern, candidate_docs, candidate_documents, documents_for_demands, may_match,
    segments_for_query, segments_for_texts,
};
pub(crate) use climb::{climb, kept_count};
pub use sets::DocSet;
pub use sweep::count_in_grammar;
pub use word_condition::WordCondition;

/// Bytes of text that are scanned in the time of one place gathered.
pub(in crate::query) const BYTES_PER_POSITION: u64 = 16;
/// The same if rules without the word are skipped, because the segment keeps words.
const SKIPPED_BYTES_PER_POSITION: u64 = 4 * BYTES_PER_POSITION;
/// Cost of reading a document of a batch beside its text, in bytes of text.
pub(in crate::query) const DOC_BYTES: u64 = 512;
/// Number of occurrences above which a batch does not climb from a word path by path.
const MAX_RARE_WEIGHT: u64 = 256;
/// Most places of one climb in a batch: in a grammar of long chains a word has more places than
/// occurrences.
const MAX_BATCH_POSITIONS: usize = 2048;
/// Most places of a climb in a living corpus before another way is taken, in about the time that
/// the other way takes before it begins.
const MAX_LIVING_POSITIONS: usize = 128;
/// The same if the segments keep words: reading such a document takes less than half as long.
const MAX_KEPT_LIVING_POSITIONS: usize = MAX_LIVING_POSITIONS / 4;
/// Number of places that are always followed to list documents.
const MIN_LISTED_POSITIONS: u64 = 4096;
/// Bytes of text that are decoded and compared in the time of one step of listing documents.
const DECODED_BYTES_PER_POSITION: u64 = 8;

/// A way to the occurrences of an item, in the order in which ways are tried.
///
/// The first questions of a segment, `Total` and `Search`, are answered without any of these, by a
/// [sweep], as long as there is no inverse grammar. A sweep counts all occurrences,
/// and gives the places of an item that has few. After a few questions the arrays of the other ways
/// pay.
///
/// P estimates the places of an item: the occurrences of its rarest word in the segment, at most G.
/// [`Question::way`] returns the first way that applies. "Keeps words" means that the segment keeps
/// the words of its documents ([`DocWords`]). It does so once the other
/// ways have read a quarter of its words. The kept words answer a count; for hits they only tell
/// that there are none.
///
/// ```text
/// way            question     chosen                                  cost
/// Weights        Total        count of one pattern in all documents   O(words of the pattern)
/// KeptWords      Living       one word in one document of a living    O(log words of a document)
///                             corpus; the segment keeps words         for each document
///                Search       search for one word; the segment keeps
///                             words; a filter of at most P documents
///                BatchDoc     batch; the segment keeps words
/// Scan           Search       search with a filter whose documents    O(tokens of the documents),
///                             have at most 16 P bytes (64 P for one   if the segment keeps
///                             pattern if the segment keeps words)     words, rules without the
///                BatchDoc     batch, if the climbs of all words asked word are skipped
///                             of a document cost more than its bytes
///                             + 512; a place costs 16 bytes, shared
///                             by the queries of the word
///                Docs         documents of a predicate, if no list
/// Climb          BatchDoc,    rest of a batch: one climb from a word  the climb, once for all
///                BatchWord    for all documents asked, path by path   documents that ask for the
///                             up to 256 occurrences and 2,048 places  word
///                Living       one word in one document of a living    1.1 to 1.6 places for each
///                             corpus, up to 128 places (32 if the     occurrence in the segment
///                             segment keeps words)
/// Search         BatchWord,   words of more occurrences or places:    that of the search
///                Living       a search with these documents as the
///                             filter
/// Resolve        Total        count of a phrase in all documents;     O(G * words) at most, from
///                             other items of several words do it      the places of the rarest
///                             before the next two ways
/// DocCounts      Search       counts by document, if no way above     O(places of the matches and
///                             applies                                 of the rules above them)
/// MatchPaths     Search       hits, if no way above applies           gather and sort: O(places),
///                             (entries: the sorted places)            at most G entries; walk: two
///                                                                     additions a step
/// DocsWith       Docs         documents of a predicate on the text,   O(places of the tokens and
///                             for up to 4,096 places or if 8 bytes a  of the rules above them),
///                             place are fewer than those left to read at most O(G)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Look up the occurrences in the whole segment (`occurrences`).
    Weights,
    /// Look up the words of documents (`kept_count`, `occurrences`, `batch/plan`).
    KeptWords,
    /// Read the documents (`scan`).
    Scan,
    /// Climb path by path (`climb`), through at most so many places.
    Climb {
        /// Number of places after which the next way is taken.
        max_positions: usize,
    },
    /// Ask a search, which chooses for each segment (`occurrences`).
    Search,
    /// Find the matches inside rules (`phrase`) and add up the weights of the rules.
    Resolve,
    /// Pass counts from rules to documents (`match_paths`).
    DocCounts,
    /// Gather and sort the places, then walk from documents to matches (`match_paths`).
    MatchPaths,
    /// List the documents above the places (`match_paths`, `candidates`).
    DocsWith,
}

/// Answer that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// The number of occurrences in each document.
    Counts,
    /// The offsets of the occurrences.
    Hits,
}

/// Form of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One word.
    Word,
    /// One pattern, which several words match.
    Pattern,
    /// Several patterns in a row.
    Phrase,
}

/// A question about occurrences, with all that the choice of a way depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// The number of occurrences of an item in all documents of a segment.
    Total { form: Form },
    /// The occurrences of an item in `num_docs` documents of a segment, or in all of them.
    Search { want: Want, form: Form, num_positions: u64, num_docs: Option<u64>, keeps_words: bool },
    /// All words that a batch asks of one document. Their climbs cost as much as reading
    /// `climb_bytes` of text.
    BatchDoc { climb_bytes: u64, keeps_words: bool },
    /// One word that a batch asks of several documents of a segment.
    BatchWord { num_occurrences: u64 },
    /// One word in one document of a living corpus.
    Living { keeps_words: bool },
    /// The documents that contain one of several tokens with `num_positions`. Without the list
    /// `bytes_left` of text have to be read.
    Docs { num_positions: u64, bytes_left: u64 },
}

impl Question {
    /// Returns the first way that applies, of those behind `after`, which did not answer. The
    /// documents asked have `doc_bytes`. This is the table of [`Way`].
    pub fn way(&self, after: Option<Way>, doc_bytes: impl IntoIterator<Item = u64>) -> Way {
        let is_tried = |way: Way| after.is_some_and(|after| way <= after);
        match *self {
            Self::Total { form: Form::Phrase } => Resolve,
            Self::Total { .. } => Weights,
            Self::Search { want, form, num_positions, num_docs, keeps_words } => {
                let is_word_kept = keeps_words && form == Form::Word && !is_tried(KeptWords);
                if is_word_kept && num_docs.is_some_and(|num_docs| num_docs <= num_positions) {
                    return KeptWords;
                }
                let bytes_per_position = match form {
                    Form::Word | Form::Pattern if keeps_words => SKIPPED_BYTES_PER_POSITION,
                    _ => BYTES_PER_POSITION,
                };
                let max_bytes = num_positions.saturating_mul(bytes_per_position);
                match want {
                    _ if num_docs.is_some() && is_sum_within(doc_bytes, max_bytes) => Scan,
                    Want::Counts => DocCounts,
                    Want::Hits => MatchPaths,
                }
            }
            Self::BatchDoc { keeps_words: true, .. } if !is_tried(KeptWords) => KeptWords,
            Self::BatchDoc { climb_bytes, .. } => {
                let max_bytes = climb_bytes.checked_sub(DOC_BYTES + 1);
                if max_bytes.is_some_and(|max_bytes| is_sum_within(doc_bytes, max_bytes)) {
                    Scan
                } else {
                    Climb { max_positions: MAX_BATCH_POSITIONS }
                }
            }
            Self::BatchWord { num_occurrences } => {
                let climb = Climb { max_positions: MAX_BATCH_POSITIONS };
                let is_rare = num_occurrences <= MAX_RARE_WEIGHT;
                if is_rare && !is_tried(climb) { climb } else { Search }
            }
            Self::Living { keeps_words: true } if !is_tried(KeptWords) => KeptWords,
            Self::Living { keeps_words } => {
                let max_positions = if keeps_words { MAX_KEPT_LIVING_POSITIONS } else { MAX_LIVING_POSITIONS };
                let climb = Climb { max_positions };
                if is_tried(climb) { Search } else { climb }
            }
            Self::Docs { num_positions, bytes_left } => {
                let is_listed = num_positions <= MIN_LISTED_POSITIONS
                    || num_positions.saturating_mul(DECODED_BYTES_PER_POSITION) <= bytes_left;
                if is_listed { DocsWith } else { Scan }
            }
        }
    }
}

/// Returns true if `lens` add up to at most `max`. Stops where they exceed it.
fn is_sum_within(lens: impl IntoIterator<Item = u64>, max: u64) -> bool {
    lens.into_iter().try_fold(max, u64::checked_sub).is_some()
}

/// Number of bits of a filter that tells most tokens from the words searched for.
const SEEN_BITS: usize = 1024;

/// An occurrence inside a document (or part): its first byte, its length and its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Found {
    pub byte_offset: u64,
    pub byte_len: u64,
    pub word_idx: u64,
}

/// Calls `found` with each occurrence of the consecutive `words`, one of each set, in document
/// `doc`, in ascending order.
pub(in crate::query) fn scan_doc(
    segment: &Segment,
    doc: DocId,
    words: &[WordSet],
    interrupt: &mut Interrupt<'_>,
    mut found: impl FnMut(Found),
) -> Result<()> {
    let Some((last_word, before)) = words.split_last() else { return Ok(()) };
    // The last words read, with their offsets, which may begin an occurrence.
    let mut recent: VecDeque<(u32, u64)> = VecDeque::with_capacity(before.len() + 1);
    let mut word_idx = 0;
    // For a phrase all words have to be visited.
    let mask = if before.is_empty() { DocWords::mask(last_word.ids()) } else { u64::MAX };
    for_each_token_in(segment, doc, mask, interrupt, |met| {
        let (token, byte_offset) = match met {
            Met::Token(token, byte_offset) => (token, byte_offset),
            Met::Words(num_words) => {
                word_idx += num_words;
                return;
            }
        };
        if token >= segment.dag.num_words() {
            return;
        }
        let is_match = last_word.contains(token)
            && recent.len() == before.len()
            && recent.iter().zip(before).all(|(&(word, _), set)| set.contains(word));
        if is_match {
            let start = recent.front().map_or(byte_offset, |&(_, start)| start);
            found(Found {
                byte_offset: start,
                byte_len: byte_offset + segment.dag.len_bytes(token) - start,
                word_idx: word_idx - before.len() as u64,
            });
        }
        word_idx += 1;
        recent.push_back((token, byte_offset));
        if recent.len() > before.len() {
            recent.pop_front();
        }
    })
}

/// Calls `found` with each occurrence of one of `words` in document `doc`, in ascending order of
/// the offset. The arguments are the index in `words`, which ascend, and the byte offset.
pub(in crate::query) fn scan_doc_words(
    segment: &Segment,
    doc: DocId,
    words: &[u32],
    interrupt: &mut Interrupt<'_>,
    mut found: impl FnMut(usize, u64),
) -> Result<()> {
    // Nearly all tokens are none of the words, and one bit tells most of them.
    let mut seen = [0u64; SEEN_BITS / 64];
    for &word in words {
        let bit = word as usize % SEEN_BITS;
        seen[bit / 64] |= 1 << (bit % 64);
    }
    let mask = DocWords::mask(words.iter().copied());
    for_each_token_in(segment, doc, mask, interrupt, |met| {
        let Met::Token(token, byte_offset) = met else { return };
        let bit = token as usize % SEEN_BITS;
        if seen[bit / 64] >> (bit % 64) & 1 != 0
            && let Ok(idx) = words.binary_search(&token)
        {
            found(idx, byte_offset);
        }
    })
}

/// An item of a document's content.
enum Met {
    /// A token and its byte offset.
    Token(u32, u64),
    /// A number of words, none of which is searched for.
    Words(u64),
}

/// Calls `visit` with the content of document `doc`. Words in `mask` are visited as tokens.
fn for_each_token_in(
    segment: &Segment,
    doc: DocId,
    mask: u64,
    interrupt: &mut Interrupt<'_>,
    mut visit: impl FnMut(Met),
) -> Result<()> {
    let doc_words = segment.doc_words_or_derive_if_worth();
    let dag = &segment.dag;
    let symbols = &dag.grammar().symbols;
    let mut range = dag.doc_range(doc);
    let mut stack = Vec::new();
    let mut byte_offset = 0;
    let mut before = Len::default();
    loop {
        let Some(position) = range.next() else {
            match stack.pop() {
                Some(outer) => range = outer,
                None => return Ok(()),
            }
            continue;
        };
        let element = symbols[position];
        let is_skipped = match dag.rule_of(element) {
            None => false,
            Some(rule_id) if doc_words.is_some_and(|it| it.has_none_of(mask, rule_id)) => true,
            Some(rule_id) => {
                // A blank before the rule lies before its first token.
                interrupt.check()?;
                let outer = std::mem::replace(&mut range, dag.rule_range(rule_id));
                if !outer.is_empty() {
                    stack.push(outer);
                }
                continue;
            }
        };
        let len = dag.len(element);
        byte_offset += len.blank_after(before);
        visit(if is_skipped { Met::Words(len.words) } else { Met::Token(element, byte_offset) });
        byte_offset += len.bytes;
        before = len;
    }
}

/// A query and its words in a corpus; V / 8 bytes for each pattern and segment at most.
#[derive(Debug)]
pub(in crate::query) struct ResolvedQuery<'a> {
    corpus: &'a Corpus,
    query: &'a Query,
    canceller: Canceller<'a>,
    /// Sets by segment, then item; `None` if a word of the item is not in the segment.
    sets: Vec<OnceCell<Option<Vec<WordSet>>>>,
}

impl<'a> ResolvedQuery<'a> {
    pub fn new(corpus: &'a Corpus, query: &'a Query, canceller: Canceller<'a>) -> Self {
        let num_sets = corpus.segments().len() * query.items().len();
        Self { corpus, query, canceller, sets: vec![OnceCell::new(); num_sets] }
    }

    pub fn corpus(&self) -> &'a Corpus {
        self.corpus
    }

    /// Returns the number of documents of a segment, including a continued part.
    pub fn num_docs(&self, segment_idx: usize) -> usize {
        self.corpus.segments()[segment_idx].dag.grammar().num_docs()
    }

    pub fn query(&self) -> &'a Query {
        self.query
    }

    fn num_items(&self) -> usize {
        self.query.items().len()
    }

    /// Returns item `item_idx` in segment `segment_idx`; `None` if it cannot occur there.
    pub fn item(&self, segment_idx: usize, item_idx: usize) -> Option<Item<'_>> {
        let segment = &self.corpus.segments()[segment_idx];
        let find = || -> Option<Vec<WordSet>> {
            let patterns = self.query.items()[item_idx].iter();
            let sets = patterns.map(|pattern| pattern.find(&segment.dictionary));
            sets.map(|set| (!set.is_empty()).then_some(set)).collect()
        };
        let words = self.sets[segment_idx * self.num_items() + item_idx].get_or_init(find);
        words.as_ref().map(|words| Item::new(segment, words, self.canceller))
    }

    /// Returns the matches of item `item_idx` that begin in segment `segment_idx` and end in a
    /// later one.
    pub fn matches_across(&self, segment_idx: usize, item_idx: usize) -> Result<Vec<CutMatch>> {
        matches_across(self.corpus, segment_idx, &self.query.items()[item_idx])
    }
}

/// Number of bytes and words of a document before one of its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::query) struct PartStart {
    pub bytes: u64,
    pub words: u64,
}

impl PartStart {
    /// Returns the start of the next part, where this part is document `doc` of `segment`.
    fn after(self, segment: &Segment, doc: DocId) -> Result<Self> {
        let length = segment.doc_length_or_derive(doc);
        let bytes = self.bytes.checked_add(length.len_bytes).ok_or_else(too_long)?;
        let words = self.words.checked_add(length.num_words).ok_or_else(too_long)?;
        Ok(Self { bytes, words })
    }
}

/// Returns the start of the first document of segment `segment_idx`. It is not 0 if that document
/// began in an earlier segment. Sums up to the end of that document in this segment fit into 64
/// bits.
pub(in crate::query) fn part_start(corpus: &Corpus, segment_idx: usize) -> Result<PartStart> {
    let doc_id = corpus.first_doc_id(segment_idx);
    let mut start = PartStart::default();
    let mut end = PartStart::default();
    for (idx, doc) in corpus.doc_parts(doc_id).take_while(|&(idx, _)| idx <= segment_idx) {
        start = end;
        end = start.after(&corpus.segments()[idx], doc)?;
    }
    Ok(start)
}

/// A phrase that begins in one part of a document and ends in a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct CutMatch {
    pub byte_offset: u64,
    pub byte_len: u64,
    pub word_idx: u64,
}

/// A word beside a cut, with its offsets in the whole document.
struct WordBesideCut<'a> {
    text: &'a str,
    start: u64,
    end: u64,
}

/// Returns the last document of segment `segment_idx` if it continues in a later segment.
pub(in crate::query) fn doc_cut_after(corpus: &Corpus, segment_idx: usize) -> Option<DocId> {
    let last = corpus.segments()[segment_idx].dag.grammar().docs().next_back()?;
    let mut parts = corpus.doc_parts(corpus.doc_id(segment_idx, last));
    parts.any(|(idx, _)| idx > segment_idx).then_some(last)
}

/// Returns the matches of the phrase `words` that begin in the last document of segment
/// `segment_idx` and end in a later part of it, in ascending order. Offsets and word indexes count
/// from the start of the document.
pub(in crate::query) fn matches_across(
    corpus: &Corpus,
    segment_idx: usize,
    words: &[WordPattern],
) -> Result<Vec<CutMatch>> {
    let Some(cut_doc) = doc_cut_after(corpus, segment_idx).filter(|_| words.len() > 1) else {
        return Ok(Vec::new());
    };
    let doc_id = corpus.doc_id(segment_idx, cut_doc);
    let reach = words.len() as u64 - 1;
    let mut beside: Vec<WordBesideCut<'_>> = Vec::new();
    let mut first_word_idx = 0;
    let mut num_before_cut = 0;
    let mut start = PartStart::default();
    for (idx, doc) in corpus.doc_parts(doc_id).skip_while(|&(idx, _)| idx < segment_idx) {
        let segment = &corpus.segments()[idx];
        let num_words = segment.doc_length_or_derive(doc).num_words;
        let taken = if idx == segment_idx {
            // Only the first document of a segment can have earlier parts.
            start = if doc == DocId::FIRST { part_start(corpus, idx)? } else { start };
            num_words.saturating_sub(reach)..num_words
        } else {
            match (num_before_cut + words.len() - 1).saturating_sub(beside.len()) as u64 {
                0 => break,
                missing => 0..num_words.min(missing),
            }
        };
        if idx == segment_idx {
            first_word_idx = start.words + taken.start;
            num_before_cut = (taken.end - taken.start) as usize;
        }
        beside.extend(taken.map(|word_idx| {
            let sums = segment.prefix_sums_or_derive();
            let span = sums.word_span(&segment.dag, segment.dag.doc_range(doc), word_idx);
            let at = start.bytes + span.byte_offset;
            let text = segment.dictionary.word(span.word);
            WordBesideCut { text, start: at, end: at + span.byte_len }
        }));
        start = start.after(segment, doc)?;
    }
    let windows = beside.windows(words.len()).take(num_before_cut).enumerate();
    let matches =
        windows.filter(|(_, window)| window.iter().zip(words).all(|(placed, word)| word.matches(placed.text)));
    let placed = matches.map(|(at, window)| CutMatch {
        byte_offset: window[0].start,
        byte_len: window[words.len() - 1].end - window[0].start,
        word_idx: first_word_idx + at as u64,
    });
    Ok(placed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH_CLIMB: Way = Climb { max_positions: 2048 };

    /// Returns the way of a search for an item with 10 places in documents of `doc_bytes`.
    fn searched(want: Want, form: Form, keeps_words: bool, doc_bytes: &[u64]) -> Way {
        let num_docs = Some(doc_bytes.len() as u64);
        let question = Question::Search { want, form, num_positions: 10, num_docs, keeps_words };
        question.way(None, doc_bytes.iter().copied())
    }

    #[test]
    fn totals_are_looked_up_except_those_of_phrases() {
        let way = |form| Question::Total { form }.way(None, []);
        assert_eq!([Form::Word, Form::Pattern, Form::Phrase].map(way), [Weights, Weights, Resolve]);
    }

    #[test]
    fn kept_words_answer_first_where_there_are_few_documents() {
        for want in [Want::Counts, Want::Hits] {
            assert_eq!(searched(want, Form::Word, true, &[1; 10]), KeptWords);
            assert_eq!(searched(want, Form::Word, true, &[1; 11]), Scan);
            assert_eq!(searched(want, Form::Word, false, &[1; 10]), Scan);
            assert_eq!(searched(want, Form::Pattern, true, &[1; 10]), Scan);
        }
    }

    #[test]
    fn searches_scan_up_to_a_number_of_bytes_for_each_place() {
        for (form, keeps_words, max) in [
            (Form::Word, false, 160),
            (Form::Pattern, false, 160),
            (Form::Pattern, true, 640),
            (Form::Phrase, false, 160),
            (Form::Phrase, true, 160),
        ] {
            assert_eq!(searched(Want::Hits, form, keeps_words, &[max - 9, 9]), Scan);
            assert_eq!(searched(Want::Hits, form, keeps_words, &[max - 9, 10]), MatchPaths);
            assert_eq!(searched(Want::Counts, form, keeps_words, &[max - 9, 10]), DocCounts);
        }
    }

    #[test]
    fn searches_without_a_filter_follow_all_places() {
        for (want, expected) in [(Want::Counts, DocCounts), (Want::Hits, MatchPaths)] {
            for (form, keeps_words) in [(Form::Word, true), (Form::Phrase, false)] {
                let num_positions = u64::MAX;
                let num_docs = None;
                let question = Question::Search { want, form, num_positions, num_docs, keeps_words };
                assert_eq!(question.way(None, []), expected);
            }
        }
    }

    #[test]
    fn a_search_goes_on_behind_the_kept_words() {
        let want = Want::Hits;
        let form = Form::Word;
        let num_docs = Some(1);
        let question = Question::Search { want, form, num_positions: 10, num_docs, keeps_words: true };
        assert_eq!(question.way(Some(KeptWords), [640]), Scan);
        assert_eq!(question.way(Some(KeptWords), [641]), MatchPaths);
    }

    #[test]
    fn batches_read_documents_that_are_cheaper_than_the_climbs() {
        let question = |climb_bytes, keeps_words| Question::BatchDoc { climb_bytes, keeps_words };
        assert_eq!(question(0, true).way(None, [9]), KeptWords);
        for keeps_words in [false, true] {
            let way = |bytes| question(bytes, keeps_words).way(Some(KeptWords), [100]);
            assert_eq!([0, 612, 613].map(way), [BATCH_CLIMB, BATCH_CLIMB, Scan]);
        }
    }

    #[test]
    fn batches_climb_from_rare_words_once() {
        let way = |num_occurrences, after| Question::BatchWord { num_occurrences }.way(after, []);
        assert_eq!(way(256, None), BATCH_CLIMB);
        assert_eq!(way(257, None), Search);
        assert_eq!(way(256, Some(BATCH_CLIMB)), Search);
    }

    #[test]
    fn living_corpora_look_up_then_climb_then_search() {
        for (keeps_words, max_positions) in [(false, 128), (true, 32)] {
            let question = Question::Living { keeps_words };
            let first = if keeps_words { KeptWords } else { Climb { max_positions } };
            assert_eq!(question.way(None, []), first);
            assert_eq!(question.way(Some(KeptWords), []), Climb { max_positions });
            assert_eq!(question.way(Some(Climb { max_positions }), []), Search);
        }
    }

    #[test]
    fn documents_are_listed_where_reading_them_takes_longer() {
        let way = |num_positions, bytes_left| Question::Docs { num_positions, bytes_left }.way(None, []);
        assert_eq!([way(4096, 0), way(4097, 0)], [DocsWith, Scan]);
        assert_eq!([way(5000, 40_000), way(5000, 39_999)], [DocsWith, Scan]);
    }
}
