//! Leaves from lists: corpora that have only the words and phrases of a query, each as often as in the documents.
//!
//! ```text
//! dictionaries ─▶ ids of the words ─▶ their lists ─▶ numbers of leaves ─────────────────┐
//!                                          └▶ grammar of some documents, or all of it ──┤
//! paths and lengths of the documents ───────────────────────────────────────────────────┴▶ counted segments
//! ```
//!
//! Files of the layout `indexed` have a list of documents for each word. A query about documents and numbers
//! reads the lists of its words, so it costs what its answer costs. Such a corpus answers this query alone and is
//! not kept. The dictionaries and the facts about documents are kept, as for other statements.
//!
//! Lists do not tell all. Under a budget those of few documents have no numbers and the longest ones are left out,
//! and they never tell which words follow each other. Then the grammar alone is counted, with the units of the
//! documents that may have a leaf: without the words, which take most of the time of opening a segment. If statements
//! come back to a segment, it is opened, and kept as by any search. A phrase in a document that was cut needs the text,
//! so such files are searched as others are.

use std::sync::Arc;

use datafusion::error::Result;
use futures::FutureExt;
use futures::future::try_join;

use crate::corpora::cache::FILES_AT_ONCE;
use crate::corpora::loaded::{AbsentWords, LoadContext, LoadedCorpus, LoadedFile, exact_words};
use crate::corpora::loading::{consumer_of, files_at_once, segments_at_once};
use crate::corpora::memory::{counting_bytes, positions_memory, text_memory};
use crate::corpora::open_file::{Sections, decoded, in_order};
use crate::corpora::skipping::Sought;
use crate::corpora::stored_file::{READ_AT_ONCE, StoredFile};
use crate::corpora::{CorpusCache, Source};
use crate::errors::datafusion_error;
use tadoc::Corpus;
use tadoc::format::{FileFooter, SomeGrammar, read_grammar};
use tadoc::query::{LeafCounts, LeafWords, Query, leaf_list, leaf_segment};
use tadoc::segment::{ListedWord, Segment, SegmentFacts, WordList};

/// Most words of a segment whose lists are read.
const MAX_WORDS: usize = 4096;

/// A corpus that answers one question about numbers of the leaves of a query.
pub(crate) struct CountedCorpus {
    /// It answers the query of [leaf words](Query::with_leaf_words).
    pub(crate) corpus: Arc<LoadedCorpus>,
    pub(crate) tally: Tally,
}

/// Work that counting took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Segments that have a leaf and were not opened.
    pub(crate) num_listed: usize,
    /// Units that were decoded.
    pub(crate) num_units: usize,
    /// Segments whose grammar was decoded alone.
    pub(crate) num_grammars: usize,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.num_listed += other.num_listed;
        self.num_units += other.num_units;
        self.num_grammars += other.num_grammars;
    }
}

/// Words of the leaves of a query in the segments of a file.
struct WordsOfFile<'a> {
    stored: StoredFile<'a>,
    /// The file with its dictionaries.
    file: Arc<LoadedFile>,
    /// Words of each segment, or `None` for one that is open.
    by_segment: Vec<Option<LeafWords>>,
}

impl Source {
    /// Returns true if the numbers of the leaves of `query` in documents are found segment by segment, most of them
    /// by lists.
    pub(crate) fn counts_leaves(&self, query: &Query) -> bool {
        let segments = || self.corpora().iter().flat_map(|open| &open.footer.segments);
        let stands_alone = query.is_of_words() || query.is_of_phrases() && !segments().any(|meta| meta.continues);
        stands_alone && segments().any(|meta| meta.lists_range().is_some()) && self.has_document_facts()
    }
}

impl CorpusCache {
    /// Returns a corpus for questions about the numbers of the leaves of the query that is `sought` in the documents of
    /// `source`. Returns `None` if the corpus is loaded, or [cannot be counted](Source::counts_leaves).
    pub(crate) async fn load_counted(
        &self,
        context: &LoadContext,
        source: &Source,
        sought: &Sought,
    ) -> Result<Option<CountedCorpus>> {
        let query = sought.query.as_ref().filter(|query| source.counts_leaves(query));
        let Some(query) = query.filter(|_| self.loaded(source).is_none()) else { return Ok(None) };
        let keys = Sections::All.keys(source);
        let query = Arc::new(query.clone().any_leaf());
        let any_leaf = Sought { query: Some(Query::clone(&query)), is_of_lists: true, ..Sought::default() };
        let sought = Arc::new(any_leaf);
        let at_once = segments_at_once(context, source);
        let stored: Vec<_> = source.corpora().iter().map(|open| StoredFile::new(context, open, at_once)).collect();
        let find = |stored| self.find_words(context, stored, &keys, &query, &sought).boxed();
        let found = in_order(stored.into_iter().collect::<Result<Vec<_>>>()?.into_iter().map(find), FILES_AT_ONCE);
        let found: Vec<WordsOfFile<'_>> = found.await?;
        let with_facts = found.iter().map(|words| counted_segments(&words.stored.open.footer, &words.by_segment));
        let with_facts: Vec<Vec<bool>> = with_facts.collect();
        let places = (0..found.len()).filter(|&place| with_facts[place].contains(&true)).collect::<Vec<_>>();
        let files_at_once = files_at_once(source.corpora().iter(), at_once);
        let counts = found.iter().map(|words| {
            let WordsOfFile { stored, file, by_segment } = words;
            let counting = Counting { cache: self, context, stored, file, query: &query, keep: &keys };
            async move { counting.count_segments(by_segment).await }.boxed()
        });
        let counts = in_order(counts.collect::<Vec<_>>(), files_at_once);
        let (facts, counts) = try_join(self.load_facts(context, source, Some(&places)), counts).await?;
        let mut files = Vec::with_capacity(found.len());
        let mut tally = Tally::default();
        for (place, (lists, of_file)) in counts.into_iter().enumerate() {
            tally.add(of_file);
            let with_facts = with_facts[place].iter().enumerate();
            let facts = with_facts.map(|(at, has_facts)| facts.segment(place, at).filter(|_| *has_facts).cloned());
            files.push(self.counted_file(context, &found[place], lists, facts.collect(), &keys).await?);
        }
        let corpus = Arc::new(LoadedCorpus::new(context, source.profile(), files));
        Ok(Some(CountedCorpus { corpus, tally }))
    }

    /// Returns the words of `query` in each segment of the file `stored`. The dictionaries are kept.
    async fn find_words<'a>(
        &self,
        context: &LoadContext,
        mut stored: StoredFile<'a>,
        keep: &[String],
        query: &Arc<Query>,
        sought: &Arc<Sought>,
    ) -> Result<WordsOfFile<'a>> {
        let key = stored.open.key();
        let opening = Arc::clone(&self.lock().slot(&key).opening);
        let _turn = opening.lock().await;
        let mut file = self.known_or_reserved(context, &stored, keep)?;
        let exact = exact_words(query);
        let is_unknown = |words: &AbsentWords| match words {
            AbsentWords::Unread => true,
            AbsentWords::Stored { .. } => !query.is_exact(),
            AbsentWords::Searched { ids, .. } => !query.is_exact() || exact.iter().any(|word| ids.id(word).is_none()),
            AbsentWords::Decoded(_) => false,
        };
        let unknown = file.unopened.iter().filter(|(_, absent)| is_unknown(&absent.words));
        let unknown: Vec<usize> = unknown.map(|(&place, _)| place).collect();
        if !unknown.is_empty() {
            stored.read_if_small().await?;
            let read = self.open_dictionaries(context, &stored, &file, unknown, keep, sought);
            file = Arc::new(read.await?);
            file = self.lock().slot(&key).keep(file);
        }
        let query = Arc::clone(query);
        let known = Arc::clone(&file);
        let find = move || (0..known.segments.len()).map(|place| words_in(&known, place, &query)).collect();
        let by_segment = decoded(find).await?;
        Ok(WordsOfFile { stored, file, by_segment })
    }

    /// Returns the file of `words` whose segments have leaves as `lists` say, and the `facts` about their documents
    /// unless these have none.
    async fn counted_file(
        &self,
        context: &LoadContext,
        words: &WordsOfFile<'_>,
        lists: Vec<Vec<WordList>>,
        facts: Vec<Option<SegmentFacts>>,
        keep: &[String],
    ) -> Result<Arc<LoadedFile>> {
        let footer = Arc::clone(&words.stored.open.footer);
        let make = move || -> tadoc::Result<Vec<Arc<Segment>>> {
            let mut segments = Vec::with_capacity(lists.len());
            for ((lists, facts), meta) in lists.into_iter().zip(facts).zip(&footer.segments) {
                let segment = match facts {
                    Some(facts) => leaf_segment(lists, facts)?,
                    None => Segment::absent(meta.num_docs as usize, meta.continues)?,
                };
                segment.keep_no_copies();
                segments.push(Arc::new(segment));
            }
            Ok(segments)
        };
        let segments = decoded(make).await?;
        let held_bytes = text_memory(&segments) + positions_memory(&segments);
        let reservation = self.reserve(context, consumer_of(words.stored.open), held_bytes, keep)?;
        let devices = Arc::clone(&context.devices);
        let shared = vec![Arc::clone(&words.file)];
        Ok(Arc::new(LoadedFile::new(segments, reservation, devices, shared)))
    }
}

/// Returns true for each segment that has a part of a document with one of its `words`. A document that was cut may
/// have its path and most of its length in segments without them.
fn counted_segments(footer: &FileFooter, words: &[Option<LeafWords>]) -> Vec<bool> {
    let segments: Vec<_> = footer.segments.iter().zip(words).collect();
    let chains = segments.chunk_by(|_, (next, _)| next.continues);
    let has_words = |words: &Option<LeafWords>| words.as_ref().is_none_or(|words| !words.are_absent());
    let are_counted = chains.flat_map(|chain| {
        let is_counted = chain.iter().any(|(_, words)| has_words(words));
        chain.iter().map(move |_| is_counted)
    });
    are_counted.collect()
}

/// Returns the words of `query` in the segment of `file` at `place`, or `None` if it is open.
fn words_in(file: &LoadedFile, place: usize, query: &Query) -> tadoc::Result<Option<LeafWords>> {
    let Some(absent) = file.unopened.get(&place) else { return Ok(None) };
    let words = match &absent.words {
        AbsentWords::Decoded(dictionary) => return Ok(Some(LeafWords::from_dictionary(query, dictionary))),
        AbsentWords::Stored { dictionary, .. } => {
            LeafWords::from_exact(query, |word| Ok(dictionary.word_id(word)?.flatten()))?
        }
        AbsentWords::Searched { ids, .. } => LeafWords::from_exact(query, |word| Ok(ids.id(word).flatten()))?,
        AbsentWords::Unread => None,
    };
    // A dictionary is decoded unless the query is exact or has no word in it.
    Ok(Some(words.unwrap_or_else(|| LeafWords::none(query))))
}

/// Numbers of the leaves of a query in a segment.
enum Leaves {
    /// All of them.
    Counted(Vec<WordList>),
    /// Some of them. The others are read.
    Some(LeafWords, Vec<LeafCounts>),
    /// The segment is open, or is worth opening.
    Open,
}

/// A file of which the leaves of a query are counted.
struct Counting<'a> {
    cache: &'a CorpusCache,
    context: &'a LoadContext,
    stored: &'a StoredFile<'a>,
    /// The file with its dictionaries.
    file: &'a Arc<LoadedFile>,
    query: &'a Arc<Query>,
    /// Keys of the cache that stay.
    keep: &'a [String],
}

impl Counting<'_> {
    /// Returns the documents of each leaf in each segment, whose `words` are there, and the work that it took.
    async fn count_segments(&self, words: &[Option<LeafWords>]) -> Result<(Vec<Vec<WordList>>, Tally)> {
        let listed = words.iter().enumerate().map(|(place, words)| self.count_by_lists(place, words.as_ref()).boxed());
        let mut leaves: Vec<Leaves> = in_order(listed.collect::<Vec<_>>(), FILES_AT_ONCE).await?;
        let mut tally = self.read_others(&mut leaves).await?;
        let open = leaves.iter().enumerate().filter(|(_, leaves)| !matches!(leaves, Leaves::Counted(_)));
        let open: Vec<usize> = open.map(|(place, _)| place).collect();
        let file = self.cache.open_places(self.context, self.stored, open.clone(), self.keep).await?;
        let counts = leaves.into_iter().zip(&file.segments).map(|(leaves, segment)| async {
            match leaves {
                Leaves::Counted(lists) => Ok(lists),
                Leaves::Some(..) | Leaves::Open => self.count_segment(Arc::clone(segment)).await,
            }
        });
        let counts: Vec<_> = counts.map(FutureExt::boxed).collect();
        let counts: Vec<Vec<WordList>> = in_order(counts, self.stored.at_once).await?;
        let has_leaf = |&place: &usize| counts[place].iter().any(|list| !list.docs.is_empty());
        let not_opened = (0..counts.len()).filter(|place| open.binary_search(place).is_err());
        tally.num_listed = not_opened.filter(has_leaf).count();
        Ok((counts, tally))
    }

    /// Counts the leaves in the segment at `place` as far as lists tell their numbers.
    async fn count_by_lists(&self, place: usize, words: Option<&LeafWords>) -> Result<Leaves> {
        let Some(words) = words else { return Ok(Leaves::Open) };
        let ids = words.ids();
        let range = self.stored.open.footer.segments[place].lists_range().filter(|_| ids.len() <= MAX_WORDS);
        let found: Vec<Option<ListedWord>> = match range.filter(|_| !ids.is_empty()) {
            Some(range) => {
                let directory = self.file.unopened.get(&place).and_then(|absent| absent.words.directory());
                let (lists, groups) = self.stored.read_lists(place, range, directory, &ids).await?;
                lists.read(&ids, &groups).map_err(datafusion_error)?
            }
            None => vec![None; ids.len()],
        };
        let counts = words.counts(&|word| found[ids.binary_search(&word).ok()?].as_ref());
        let known = counts.iter().map(|counts| match counts {
            LeafCounts::Known(list) => Some(list.clone()),
            LeafCounts::InDocs(_) | LeafCounts::Anywhere => None,
        });
        if let Some(known) = known.collect() {
            return Ok(Leaves::Counted(known));
        }
        let are_many = self.file.unopened.get(&place).is_some_and(|absent| absent.units.are_many());
        Ok(if are_many { Leaves::Open } else { Leaves::Some(words.clone(), counts) })
    }

    /// Reads what lists do not tell, and returns the work that it took. Segments with phrases that are too long for it
    /// are left as they are.
    async fn read_others(&self, leaves: &mut [Leaves]) -> Result<Tally> {
        let mut reads = Vec::new();
        let mut metas = Vec::new();
        for (place, leaves) in leaves.iter_mut().enumerate() {
            if let Leaves::Some(words, counts) = leaves {
                reads.push(self.read_segment(place, words.clone(), std::mem::take(counts)).boxed());
                metas.push(&self.stored.open.footer.segments[place]);
            }
        }
        let decoded_at_once = self.stored.at_once.min(reads.len());
        let read_at_once = READ_AT_ONCE.max(decoded_at_once);
        let reservation = self.file.held.reservation.new_empty();
        let most_bytes = counting_bytes(&metas, decoded_at_once, read_at_once);
        self.cache.resize(&reservation, most_bytes as usize, self.keep)?;
        let mut tally = Tally::default();
        for read in in_order(reads, read_at_once).await? {
            let ReadLeaves { place, lists, num_units } = read;
            tally.num_units += num_units;
            tally.num_grammars += usize::from(num_units == 0);
            if let Some(lists) = lists {
                leaves[place] = Leaves::Counted(lists);
            }
        }
        Ok(tally)
    }

    /// Reads the leaves of the segment at `place` that are not known by `counts`: in the grammar without its words, of
    /// the units of some documents or of all.
    async fn read_segment(&self, place: usize, words: LeafWords, counts: Vec<LeafCounts>) -> Result<ReadLeaves> {
        let absent = self.file.unopened.get(&place).cloned().unwrap_or_default();
        let docs = docs_with(&counts);
        let limits = self.context.options.open_limits();
        let head = match &docs {
            Some(_) => self.stored.read_grammar_head(place).await?,
            None => None,
        };
        let units = match head.zip(docs.as_ref()) {
            Some((head, docs)) => head.units(docs, &limits).map_err(datafusion_error)?,
            None => None,
        };
        let range = self.stored.open.footer.segments[place].grammar_range();
        let ranges = units.as_ref().map_or_else(|| vec![range], |units| units.ranges().to_vec());
        let parts = self.stored.read_each(ranges).await?;
        let path = self.stored.open.file.path.clone();
        let footer = Arc::clone(&self.stored.open.footer);
        let count = move || -> tadoc::Result<_> {
            let part = match units {
                Some(units) => units.read_grammar(&parts, &limits)?,
                None => {
                    let bytes = parts.first().map_or(&[][..], AsRef::as_ref);
                    read_grammar(&path, &footer, place, bytes, docs.as_deref(), &limits)?
                }
            };
            let lists = count_in(&part, &words, counts, footer.segments[place].num_words);
            Ok((lists, part.num_decoded, part.num_units))
        };
        let (lists, num_units, num_all) = decoded(count).await?;
        absent.units.note(if num_units == 0 { num_all } else { num_units }, num_all);
        Ok(ReadLeaves { place, lists, num_units })
    }

    /// Returns the documents of each leaf in a `segment` that is open.
    async fn count_segment(&self, segment: Arc<Segment>) -> Result<Vec<WordList>> {
        let corpus = Corpus::new(self.stored.open.footer.profile, vec![segment]);
        let query = Arc::clone(self.query);
        let count = move || (0..query.leaves().len()).map(|leaf| leaf_list(&corpus, &query, leaf)).collect();
        decoded(count).await
    }
}

/// Returns the documents of each leaf, by `part` of the grammar of a segment with `num_words` words where `counts` do
/// not tell them. Returns `None` if a phrase is too long.
fn count_in(part: &SomeGrammar, words: &LeafWords, counts: Vec<LeafCounts>, num_words: u32) -> Option<Vec<WordList>> {
    let (words, num_words) = match &part.terminals {
        Some(terminals) => (words.within(terminals), terminals.partition_point(|&id| id < num_words) as u32),
        None => (words.clone(), num_words),
    };
    let lists = counts.into_iter().enumerate().map(|(leaf, counts)| match counts {
        LeafCounts::Known(list) => Some(list),
        LeafCounts::InDocs(_) | LeafCounts::Anywhere => words.count_in(leaf, &part.grammar, num_words),
    });
    lists.collect()
}

/// Leaves of a segment that was read for them.
struct ReadLeaves {
    place: usize,
    /// The documents of each leaf, or `None` if a phrase is too long.
    lists: Option<Vec<WordList>>,
    /// Number of units that were decoded, or 0 if the grammar was counted.
    num_units: usize,
}

/// Returns the documents, ascending, that may have a leaf whose numbers are not known, or `None` if all may.
fn docs_with(counts: &[LeafCounts]) -> Option<Vec<u32>> {
    let mut docs = Vec::new();
    for counts in counts {
        match counts {
            LeafCounts::Known(_) => {}
            LeafCounts::InDocs(leaf_docs) => docs.extend(leaf_docs),
            LeafCounts::Anywhere => return None,
        }
    }
    docs.sort_unstable();
    docs.dedup();
    Some(docs)
}
