//! Builder of corpus files: documents in, file out, in bounded memory.
//!
//! ```text
//! documents ─▶ builder (cuts) ─▶ blocks (pieces, tokens, grammar; several at once) ─▶ writer ─▶ file
//! ```
//!
//! A document may be longer than a block. It then continues in the next segment. In the layout `indexed`
//! a block is divided into smaller segments where they share little text.
//!
//! ```
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//!
//! # fn main() -> tadoc::Result<()> {
//! let options = IngestOptions { block_bytes: 16, ..IngestOptions::default() };
//! let mut builder = CorpusBuilder::new(Vec::new(), options)?;
//! builder.push_document("a.txt", b"to be or not")?;
//! builder.push_document("b.txt", b"to be")?;
//! let (file, report) = builder.finish(None)?;
//! assert_eq!(report.footer.segments.len(), 2);
//! assert_eq!(report.file_len_bytes, file.len() as u64);
//! # Ok(())
//! # }
//! ```
//!
//! # Blocks
//!
//! Segments are made of blocks of text, several at a time.
//!
//! ```text
//! at once 1    tokens 0  grammar 0 | tokens 1  grammar 1 | ...       all threads
//!                                  | coding 0            | coding 1  two threads
//! at once 3    tokens 0  grammar 0 | coding 0                        all threads, shared
//!              tokens 1  grammar 1 | coding 1
//!              tokens 2  grammar 2 | coding 2
//!                  tokens 3  grammar 3 | coding 3                    as soon as a grammar is complete
//! ```
//!
//! Segments are returned in the order of their blocks. Another machine may build some ([`RemoteBuilder`]): texts
//! then wait in memory for its answer, and what it does not build is built here. Segments do not depend on how
//! many blocks are built at a time. All blocks share the current threads. A third of a block's time is serial steps,
//! during which the threads work on other blocks, and the last block has all of them. The serial steps run on a
//! thread of the block that belongs to no pool, so that they never wait for the work of another block. A place of
//! a block is free when its grammar is complete. Its coding is mostly serial and needs a fifth of the memory.
//!
//! # Pieces
//!
//! ```text
//! block     │ doc doc doc │ doc doc │ doc doc doc │     pieces of up to 16 MiB, whole documents each
//! lines       a b c a       d e       f a g             a is repeated in another piece: few bytes are
//! segments  │      1      │    2    │      3      │     … one segment for each piece
//!
//! lines       a b c         a b d     a b d e           versions of a text: most bytes are
//! segments  │                  1                  │     … one segment for the block
//! ```
//!
//! With smaller segments a statement that looks for a word or for a document opens less text, on more
//! threads. But what two of them share is stored twice. So the lines of the block are hashed, in one
//! pass, and the bytes of lines that stand in an earlier piece are added up, of one hash in eight. A
//! line that repeats one of the same piece costs nothing. The block is divided if the shared bytes are
//! few. Ends of sentences end a line, too, for text with long lines.
//!
//! Sources of crates share about 1 % and become a little smaller. Many versions of a source tree
//! share 80 % and would become five times as large.
//!
//! # Cuts
//!
//! A document longer than a block is cut between two tokens, so that both parts yield the same tokens as
//! the whole text.
//!
//! ```text
//! document  ─────────────────┬─────────────┬╌╌╌╌╌╌╌╌
//!           limit / 2        │ limit       │ limit + 4 tokens: end of the first window
//!                            └ cut
//! ```
//!
//! The cut depends only on the text up to the end of the window, not on the text behind it. So a document that arrives
//! in parts is cut at the same place as the whole document. The search reads O(limit) bytes.

mod block;
mod builder;

use std::collections::VecDeque;
use std::hash::Hasher;
use std::ops::Range;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHasher};

use crate::error::{Error, Result};
use crate::format::{EncodedSegment, SegmentContents, SegmentLayout};
use crate::grammar::{Dedup, build_rounds, build_sequitur};
use crate::segment::Paths;
use crate::text::{MAX_TOKEN_BYTES, TokenizedBlock, TokenizerProfile, for_each_token, tokenize_block};

pub use block::{Block, RemoteBuilder};
pub use builder::{CorpusBuilder, IngestReport, MAX_PATH_BYTES};

/// Default size of a block's text.
pub const DEFAULT_BLOCK_BYTES: usize = 128 << 20;

/// Algorithm that builds the grammar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuilderKind {
    /// The parallel builder that works in rounds (the default).
    #[default]
    Rounds,
    /// Sequitur, the builder of the TADOC papers. It is serial and several times slower.
    Sequitur,
}

impl BuilderKind {
    /// Returns the name used in files, options and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rounds => "rounds",
            Self::Sequitur => "sequitur",
        }
    }
}

impl std::fmt::Display for BuilderKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BuilderKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "rounds" => Ok(Self::Rounds),
            "sequitur" => Ok(Self::Sequitur),
            _ => {
                Err(Error::InvalidArgument { name: "builder", got: name.into(), allowed: "rounds or sequitur".into() })
            }
        }
    }
}

/// Settings of a [`CorpusBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestOptions {
    /// Rule by which words are found.
    pub profile: TokenizerProfile,
    /// Algorithm that builds the grammar.
    pub builder: BuilderKind,
    /// Bytes of text in one segment, at least 1. Memory use is proportional to it.
    pub block_bytes: usize,
    /// Choice of whether the rounds builder shares repeated passages first.
    pub dedup: Dedup,
    /// Codecs of the segments.
    pub layout: SegmentLayout,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            profile: TokenizerProfile::default(),
            builder: BuilderKind::default(),
            block_bytes: DEFAULT_BLOCK_BYTES,
            dedup: Dedup::default(),
            layout: SegmentLayout::default(),
        }
    }
}

/// Builds a corpus of `texts` in blocks of `block_bytes`. The path of each document is its number.
#[cfg(test)]
pub(crate) fn corpus_from_texts(block_bytes: usize, texts: &[String]) -> crate::Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in texts.iter().enumerate() {
        builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    crate::Corpus::from_bytes("memory", &file, &crate::format::OpenLimits::default()).unwrap().1
}

/// Greatest number of blocks that may be built at a time.
pub const MAX_BLOCKS_AT_ONCE: u16 = 64;

/// Default number of threads for each block, and default limit of blocks.
const THREADS_PER_BLOCK: usize = 4;
const MAX_USUAL_BLOCKS: usize = 4;

/// Returns the default number of blocks that are built at a time on this machine.
pub fn usual_blocks_at_once() -> usize {
    (rayon::current_num_threads() / THREADS_PER_BLOCK).clamp(1, MAX_USUAL_BLOCKS)
}

/// Converter from blocks to segments.
#[derive(Debug, Clone)]
struct Maker {
    options: IngestOptions,
}

/// A segment under construction, and the time it took so far.
#[derive(Debug)]
struct Made<T> {
    segment: T,
    tokenizing: Duration,
    grammar: Duration,
    /// True if it was built elsewhere, in no time of this process.
    is_remote: bool,
}

impl Maker {
    /// Builds the tokens and the grammar of `block` in the current thread pool.
    fn parts(&self, block: Block) -> Result<Made<SegmentContents>> {
        let started = Instant::now();
        let Block { text, doc_ends, paths, continues } = block;
        let len_bytes = text.len() as u64;
        let tokenized = tokenize_block(self.options.profile, &text, &doc_ends)?;
        // Free the text, or this part of it, before the grammar is built.
        drop(text);
        let tokenizing = started.elapsed();

        let started = Instant::now();
        let TokenizedBlock { dictionary, tokens, doc_offsets, num_word_tokens } = tokenized;
        let num_tokens = tokens.len() as u64;
        let num_terminals = dictionary.len();
        let grammar = match self.options.builder {
            BuilderKind::Rounds => build_rounds(tokens, &doc_offsets, num_terminals, self.options.dedup)?,
            BuilderKind::Sequitur => build_sequitur(&tokens, &doc_offsets, num_terminals)?,
        };
        let grammar_took = started.elapsed();
        let segment = SegmentContents { dictionary, grammar, paths, continues, num_tokens, num_word_tokens, len_bytes };
        Ok(Made { segment, tokenizing, grammar: grammar_took, is_remote: false })
    }

    /// Builds and encodes `block`. Frees its place when the grammar is complete.
    fn encoded(&self, block: Block, place: Place) -> Result<Made<EncodedSegment>> {
        let made = self.parts(block);
        drop(place);
        let Made { segment, tokenizing, grammar, is_remote } = made?;
        Ok(Made { segment: EncodedSegment::new(&segment, self.options.layout)?, tokenizing, grammar, is_remote })
    }

    /// Lets `remote` build `block`. Builds it here, in one of `places`, if `remote` does not.
    fn encoded_by(
        &self,
        remote: &dyn RemoteBuilder,
        block: Block,
        places: &Arc<Places>,
    ) -> Result<Made<EncodedSegment>> {
        let block = Arc::new(block);
        if let Some(segment) = remote.build(&block, &self.options) {
            return Ok(Made { segment, tokenizing: Duration::ZERO, grammar: Duration::ZERO, is_remote: true });
        }
        let place = places.take(block.text.len());
        self.encoded(Arc::unwrap_or_clone(block), place)
    }
}

/// Texts whose tokens or grammar are under construction.
#[derive(Debug)]
struct Places {
    taken: Mutex<Taken>,
    is_freed: Condvar,
    /// Most texts, and most bytes of several texts.
    most: Taken,
}

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    num_texts: usize,
    len_bytes: usize,
}

/// Place of a text that is taken until this value is dropped.
struct Place {
    places: Arc<Places>,
    len_bytes: usize,
}

impl Places {
    fn new(most: Taken) -> Self {
        Self { taken: Mutex::default(), is_freed: Condvar::new(), most }
    }

    /// Waits until there is a place for a text of `len_bytes` and takes it.
    fn take(self: &Arc<Self>, len_bytes: usize) -> Place {
        let is_full = |taken: &mut Taken| {
            let has_room = taken.num_texts < self.most.num_texts
                && taken.len_bytes.saturating_add(len_bytes) <= self.most.len_bytes;
            taken.num_texts > 0 && !has_room
        };
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = self.is_freed.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner);
        taken.num_texts += 1;
        taken.len_bytes += len_bytes;
        Place { places: Arc::clone(self), len_bytes }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.num_texts -= 1;
        taken.len_bytes -= self.len_bytes;
        self.places.is_freed.notify_one();
    }
}

/// Number of places for each text that may be coded or wait to be written.
const PLACES_PER_CODED: usize = 2;
/// Number of pieces of blocks that are built in place of one block.
const PIECES_PER_BLOCK: usize = 2;

/// Blocks and pieces of blocks that are not written yet, oldest first.
#[derive(Debug)]
struct BlocksAtOnce {
    begun: VecDeque<JoinHandle<Result<Made<EncodedSegment>>>>,
    /// Places of the texts that are built here.
    places: Arc<Places>,
    remote: Option<Remote>,
}

/// A builder elsewhere, and the places of the texts that it has.
#[derive(Debug, Clone)]
struct Remote {
    builder: Arc<dyn RemoteBuilder>,
    places: Arc<Places>,
}

impl BlocksAtOnce {
    /// Creates a queue in which `max_blocks` blocks are built at a time, or twice as many pieces of blocks that have at
    /// most as many bytes, beside those that are built by `remote`. Returns `None` if that is one block.
    fn new(max_blocks: usize, options: &IngestOptions, remote: Option<&Arc<dyn RemoteBuilder>>) -> Option<Self> {
        let per_block = if options.layout == SegmentLayout::Small { 1 } else { PIECES_PER_BLOCK };
        let num_texts = max_blocks.saturating_mul(per_block);
        let most = Taken { num_texts, len_bytes: options.block_bytes.saturating_mul(max_blocks) };
        let remote = remote.map(|builder| {
            let len_bytes = options.block_bytes.saturating_mul(builder.num_whole_blocks().max(1));
            let most = Taken { num_texts: builder.num_places().max(1), len_bytes };
            Remote { builder: Arc::clone(builder), places: Arc::new(Places::new(most)) }
        });
        let is_one = num_texts <= 1 && remote.is_none();
        (!is_one).then(|| Self { begun: VecDeque::new(), places: Arc::new(Places::new(most)), remote })
    }

    /// Returns true if the oldest text should be taken before the next one begins: it can be had
    /// without waiting, or too many texts are there.
    fn is_due(&self) -> bool {
        let places = self.remote.as_ref().map_or(&self.places, |remote| &remote.places);
        let num_texts = places.most.num_texts;
        self.begun.front().is_some_and(JoinHandle::is_finished)
            || self.begun.len() >= num_texts + num_texts / PLACES_PER_CODED
    }

    /// Starts to build `block`, after waiting for a free place.
    fn begin(&mut self, block: Block, maker: Maker) {
        let Some(remote) = self.remote.clone() else {
            let place = self.places.take(block.text.len());
            self.begun.push_back(std::thread::spawn(move || maker.encoded(block, place)));
            return;
        };
        let place = remote.places.take(block.text.len());
        let here = Arc::clone(&self.places);
        let build = move || {
            let made = maker.encoded_by(remote.builder.as_ref(), block, &here);
            drop(place);
            made
        };
        self.begun.push_back(std::thread::spawn(build));
    }

    /// Waits for the oldest text. Returns `None` if there is none.
    fn take_oldest(&mut self) -> Option<Result<Made<EncodedSegment>>> {
        let oldest = self.begun.pop_front()?;
        Some(oldest.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

/// Greatest size of the text of a piece, unless one document is larger.
const PIECE_BYTES: usize = 16 << 20;
/// Shorter lines are repeated everywhere and cost little.
const MIN_LINE_BYTES: usize = 24;
/// Part of the text of a block that its pieces may share.
const SHARED_PART: usize = 32;
/// Bits that are zero in the hash of a line that is counted. The others would take as long as the
/// tokens.
const SAMPLED_BITS: u32 = 3;

/// Divides `block` into pieces of at most `piece_bytes` of text, larger ones where a document is.
/// Returns the whole block if the pieces share much text.
fn pieces(block: Block, piece_bytes: usize) -> Pieces {
    let mut ends = piece_ends(&block.doc_ends, piece_bytes);
    if ends.len() > 1 && shares_much(&block, &ends) {
        ends = vec![block.doc_ends.len()];
    }
    Pieces { block, ends: ends.into_iter(), docs: 0..0 }
}

/// Pieces of a block, in order.
struct Pieces {
    block: Block,
    /// End of each piece as a number of documents.
    ends: std::vec::IntoIter<usize>,
    /// Documents of the last piece.
    docs: Range<usize>,
}

impl Iterator for Pieces {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let end = self.ends.next()?;
        if self.docs.end == 0 && self.ends.len() == 0 {
            return Some(std::mem::take(&mut self.block));
        }
        self.docs = self.docs.end..end;
        let Block { text, doc_ends, paths, continues } = &self.block;
        let bytes = bytes_of(doc_ends, &self.docs);
        let mut from_piece = Paths::default();
        self.docs.clone().for_each(|doc| from_piece.push(paths.get(doc).unwrap_or_default()));
        Some(Block {
            text: text.slice(bytes.clone()),
            doc_ends: doc_ends[self.docs.clone()].iter().map(|end| end - bytes.start).collect(),
            paths: from_piece,
            continues: *continues && self.docs.start == 0,
        })
    }
}

/// Returns the end of each piece as a number of documents.
fn piece_ends(doc_ends: &[usize], piece_bytes: usize) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    let mut before = 0;
    for (doc, &end) in doc_ends.iter().enumerate() {
        if end - start > piece_bytes && before > start {
            ends.push(doc);
            start = before;
        }
        before = end;
    }
    ends.push(doc_ends.len());
    ends
}

/// Returns the text of the documents `docs`.
fn bytes_of(doc_ends: &[usize], docs: &Range<usize>) -> Range<usize> {
    let end_of = |num_docs: usize| num_docs.checked_sub(1).map_or(0, |doc| doc_ends[doc]);
    end_of(docs.start)..end_of(docs.end)
}

/// Returns true if many bytes of the pieces are lines that stand in an earlier piece. Stops when it
/// is sure.
fn shares_much(block: &Block, ends: &[usize]) -> bool {
    let Block { text, doc_ends, .. } = block;
    let max_shared = (text.len() / SHARED_PART) >> SAMPLED_BITS;
    let mut piece_of_line: FxHashMap<u64, u32> = FxHashMap::default();
    let mut shared = 0;
    let mut start = 0;
    for (piece, &end) in (0..).zip(ends) {
        for line in lines(&text[bytes_of(doc_ends, &(start..end))]) {
            let mut hasher = FxHasher::default();
            hasher.write(line);
            let hash = hasher.finish();
            if hash >> (u64::BITS - SAMPLED_BITS) == 0 {
                // The first piece with a line pays for it, and each other piece pays once.
                let last = piece_of_line.insert(hash, piece);
                shared += if last.is_some_and(|last| last != piece) { line.len() } else { 0 };
            }
        }
        if shared > max_shared {
            return true;
        }
        start = end;
    }
    false
}

/// Returns the longer lines of `text`. A full stop ends a line, too.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr::memchr2_iter(b'\n', b'.', text).chain([text.len()]);
    let lines = ends.map(move |end| {
        let line = &text[start.min(end)..end];
        start = end + 1;
        line
    });
    lines.filter(|line| line.len() >= MIN_LINE_BYTES)
}

/// Size of the first window behind the limit, in tokens of the greatest length. This makes the
/// token ends before the limit certain.
const TOKENS_BEHIND: usize = 4;

/// Result of [`find_cut`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Position at which the text can be cut, neither its start nor its end.
    At(usize),
    /// The text is one token and stays whole.
    Nowhere,
    /// Number of bytes that the caller must provide first, unless the document is shorter.
    Unseen(usize),
}

/// Finds the place at which to cut `text` near `limit`, which is less than its length. `is_end` is
/// true if the document ends with `text`.
fn find_cut(profile: TokenizerProfile, text: &[u8], limit: usize, is_end: bool) -> Cut {
    // An ASCII word byte before ASCII white space is a token border in every profile. Nearly every
    // text has such a border near the limit.
    let is_border = |i: &usize| text[*i].is_ascii_whitespace() && text[*i - 1].is_ascii_alphanumeric();
    if let Some(border) = (limit / 2 + 1..=limit).rev().find(is_border) {
        return Cut::At(border);
    }
    let mut window = limit.saturating_add(limit.min(TOKENS_BEHIND * MAX_TOKEN_BYTES));
    loop {
        let visible = &text[..window.min(text.len())];
        let is_all = visible.len() == text.len();
        if is_all && !is_end {
            return Cut::Unseen(window.saturating_add(1));
        }
        match last_token_end(profile, visible, limit, is_all) {
            Some(border) => return Cut::At(border),
            None if is_all => return Cut::Nowhere,
            None => window = window.saturating_mul(2),
        }
    }
}

/// Returns the last token end at or before `limit`, or the first one after it.
///
/// If `is_whole` is false, `visible` continues. Its end may cut a character, and the text behind it
/// may join the last tokens (`can.` + `t` in UAX #29). So a border counts only if two more token
/// ends follow it.
fn last_token_end(profile: TokenizerProfile, visible: &[u8], limit: usize, is_whole: bool) -> Option<usize> {
    let num_unsure = if is_whole { 1 } else { 3 };
    let mut end = 0;
    let mut best = None;
    let mut unsure = VecDeque::with_capacity(num_unsure + 1);
    for_each_token(profile, visible, |token| {
        end += token.bytes.len();
        unsure.push_back(end);
        if unsure.len() > num_unsure
            && let Some(sure) = unsure.pop_front()
            && (sure <= limit || best.is_none())
        {
            best = Some(sure);
        }
    });
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block_from(docs: &[Vec<u8>], continues: bool) -> Block {
        let mut block = Block { text: docs.concat().into(), continues, ..Block::default() };
        let mut end = 0;
        for (doc_id, doc) in docs.iter().enumerate() {
            end += doc.len();
            block.doc_ends.push(end);
            block.paths.push(&doc_id.to_string());
        }
        block
    }

    #[test]
    fn a_text_waits_until_there_is_room() {
        let most = Taken { num_texts: 3, len_bytes: 10 };
        let places = Arc::new(Places::new(most));
        // A text that is larger than the room is alone.
        let large = places.take(20);
        let (sender, taken) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn({
            let places = Arc::clone(&places);
            move || [5, 5].map(|len_bytes| sender.send((len_bytes, places.take(len_bytes))).unwrap())
        });
        assert!(taken.recv_timeout(Duration::from_millis(50)).is_err());
        drop(large);
        let small: Vec<_> = taken.iter().collect();
        waiting.join().unwrap();
        assert_eq!(small.len(), 2);
        let taken = *places.taken.lock().unwrap();
        assert_eq!((taken.num_texts, taken.len_bytes), (2, 10));
    }

    proptest! {
        #[test]
        fn pieces_are_the_block(
            docs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            piece_bytes in 0usize..90,
            continues in any::<bool>(),
        ) {
            let mut together = Block::default();
            let mut text = Vec::new();
            let pieces: Vec<Block> = pieces(block_from(&docs, continues), piece_bytes).collect();
            for (idx, piece) in pieces.iter().enumerate() {
                prop_assert_eq!(piece.continues, continues && idx == 0);
                prop_assert_eq!(piece.paths.len(), piece.doc_ends.len());
                let is_within = piece.text.len() <= piece_bytes;
                let is_one_doc = piece.doc_ends.iter().filter(|&&end| end > 0).count() == 1;
                prop_assert!(is_within || is_one_doc || pieces.len() == 1);
                let before = text.len();
                text.extend(&piece.text);
                together.doc_ends.extend(piece.doc_ends.iter().map(|end| end + before));
                (0..piece.paths.len()).for_each(|doc| together.paths.push(piece.paths.get(doc).unwrap()));
            }
            let expected = block_from(&docs, continues);
            prop_assert_eq!(text, expected.text);
            prop_assert_eq!(together.doc_ends, expected.doc_ends);
            prop_assert_eq!(together.paths, expected.paths);
        }
    }

    /// Makes documents of lines; each line has the number that `number` returns for its place.
    fn documents(num_docs: usize, number: impl Fn(usize, usize) -> usize) -> Vec<Vec<u8>> {
        let line = |doc, at| format!("line number {:04} of this document\n", number(doc, at));
        let doc = |doc| (0..50).map(|at| line(doc, at)).collect::<String>().into_bytes();
        (0..num_docs).map(doc).collect()
    }

    fn num_pieces(docs: &[Vec<u8>]) -> usize {
        pieces(block_from(docs, false), 2 * docs[0].len()).count()
    }

    #[test]
    fn versions_of_a_text_stay_together_and_other_texts_are_divided() {
        assert_eq!(num_pieces(&documents(8, |doc, at| doc * 50 + at)), 4);
        assert_eq!(num_pieces(&documents(8, |doc, at| doc + at)), 1);
        // Repeats within a piece do not count.
        assert_eq!(num_pieces(&documents(8, |doc, at| doc / 2 * 50 + at)), 4);
        assert_eq!(num_pieces(&documents(1, |_, at| at)), 1);
    }

    fn tokens(profile: TokenizerProfile, text: &[u8]) -> Vec<Vec<u8>> {
        let mut tokens = Vec::new();
        for_each_token(profile, text, |token| tokens.push(token.bytes.to_vec()));
        tokens
    }

    proptest! {
        #[test]
        fn a_cut_leaves_the_tokens_as_they_were(
            text in prop_oneof!["[a-c ._é\n]{2,60}", "[a ]{2,40}", "[\u{1F1E6}-\u{1F1E8}a' ]{2,20}"],
            limit in 1usize..30,
        ) {
            let text = text.as_bytes();
            prop_assume!(limit < text.len());
            for profile in TokenizerProfile::ALL {
                let Cut::At(cut) = find_cut(profile, text, limit, true) else { continue };
                prop_assert!(cut > 0 && cut < text.len());
                let mut parts = tokens(profile, &text[..cut]);
                parts.extend(tokens(profile, &text[cut..]));
                prop_assert_eq!(parts, tokens(profile, text));
                for seen in limit + 1..text.len() {
                    match find_cut(profile, &text[..seen], limit, false) {
                        Cut::At(early) => prop_assert_eq!(early, cut),
                        Cut::Unseen(asked) => prop_assert!(asked > seen),
                        Cut::Nowhere => prop_assert!(false, "the document goes on"),
                    }
                }
            }
        }
    }

    #[test]
    fn one_token_is_not_cut() {
        for (text, is_end, expected) in [
            (&b"aaaa"[..], true, Cut::Nowhere),
            (b"aaaa", false, Cut::Unseen(5)),
            (b"aaaaaaa", false, Cut::Unseen(9)),
            (b"aaa aaa", true, Cut::At(3)),
            (b"a aaaaa", false, Cut::Unseen(9)),
            (b"aa aaaaa", false, Cut::At(2)),
        ] {
            assert_eq!(find_cut(TokenizerProfile::Word, text, 2, is_end), expected, "{text:?}");
        }
    }
}
