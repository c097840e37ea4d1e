//! From the patterns of a query to occurrences in documents.
//!
//! A *place* is a position of an element on a right-hand side, as the inverse grammar lists it. A
//! *match* is an item of a query that is complete in one rule or in one document of the root. One
//! match stands for many occurrences if its rule occurs often.
//!
//! # Ways to the occurrences of a word
//!
//! P estimates the places of an item: the occurrences of its rarest word in the segment, at most G.
//! The first way that applies is taken. "Keeps words" means that the segment keeps the words of its
//! documents ([`DocWords`](crate::segment::DocWords)). It does so once the other ways have read a
//! quarter of its words. The kept words answer a count; for hits they only tell that there are
//! none.
//!
//! ```text
//! way            file         chosen                                  cost
//! weights        occurrences  count of one pattern in all documents   O(words of the pattern)
//! kept_count     kept_count   one word in one document of a living    O(log words of a document)
//!                             corpus; the segment keeps words         for each document
//!                occurrences  search for one word; the segment keeps
//!                             words; a filter of at most P documents
//!                batch/plan   batch; the segment keeps words
//! scan           scan,        search with a filter whose documents    O(tokens of the documents),
//!                occurrences  have at most 16 P bytes (64 P for one   1 to 3 ns a token; if the
//!                             pattern if the segment keeps words)     segment keeps words, rules
//!                batch/plan   batch, if the climbs of all words asked without the word are skipped
//!                             of a document cost more than its bytes
//!                             + 512; a place costs 16 bytes, shared
//!                             by the queries of the word
//! batch climb    batch/words  rest of a batch: one climb from a word  the climb, once for all
//!                             for all documents asked; path by path   documents that ask for the
//!                             up to 256 occurrences and 2,048 places, word
//!                             else as a search with these documents
//!                             as the filter
//! climb          climb,       one word in one document of a living    1.1 to 1.6 places for each
//!                base_words   corpus, up to 128 places (32 if the     occurrence in the segment,
//!                             segment keeps words), else as a search  10 to 50 ns a place
//! phrase resolve phrase       item of several words that is not       O(G * words) at most, from
//!                             scanned; before the next two ways, or   the places of the rarest
//!                             alone for a count in all documents
//! doc_counts     doc_counts   counts by document, if no way above     O(places of the matches and
//!                             applies                                 of the rules above them)
//! places, walk   places       hits, if no way above applies           gather and sort: O(places),
//!                             (entries: the sorted places)            at most G entries; walk: two
//!                                                                     additions a step
//! docs_with      doc_counts,  documents of a predicate on the text,   O(places of the tokens and
//!                candidates   for up to 4,096 places or if 8 bytes a  of the rules above them),
//!                             place are fewer than those left to read at most O(G)
//! ```
//!
//! Reading order: `resolved` (a query as `word_set`s of each dictionary, found by
//! `dictionary_search`), `occurrences` (answers for one segment), `phrase` (matches inside rules),
//! `places` and `rule_set` (from matches to hits, in order), `doc_counts`, `doc_set` and
//! `rule_numbers` (counts only), `climb` (rare words), `scan` (small documents), `kept_count`
//! (segments that keep the words of documents), `cut` (documents that were cut at a block border),
//! `neighbours` (tokens around an occurrence), `candidates` (documents that a predicate on the text
//! has to read).

pub(in crate::query) mod candidates;
pub(in crate::query) mod climb;
pub(in crate::query) mod cut;
pub(in crate::query) mod dictionary_search;
pub(in crate::query) mod doc_counts;
pub(in crate::query) mod doc_set;
pub(in crate::query) mod kept_count;
pub(in crate::query) mod neighbours;
pub(in crate::query) mod occurrences;
pub(in crate::query) mod phrase;
pub(in crate::query) mod places;
pub(in crate::query) mod resolved;
pub(in crate::query) mod rule_numbers;
pub(in crate::query) mod rule_set;
pub(in crate::query) mod scan;
pub(in crate::query) mod word_set;

pub use candidates::{TextPattern, candidate_docs, candidate_documents};
pub use doc_set::DocSet;

pub(crate) use climb::climb;
pub(crate) use kept_count::kept_count;
