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
//! at once 3    tokens 0  grammar 0 | coding 0                        a third of the threads each
//!              tokens 1  grammar 1 | coding 1
//!              tokens 2  grammar 2 | coding 2
//!                  tokens 3  grammar 3 | coding 3                    as soon as a grammar is complete
//! ```
//!
//! Segments are written in the order of their blocks. Another machine may build some ([`RemoteBuilder`]): texts
//! then wait in memory for its answer, and what it does not build is built here. Segments do not depend on how
//! many blocks are built at a time. Each block has a few threads of its own (`at_once`), and the last ones have all
//! threads. A place of a block is free when its grammar is complete. Its coding is mostly serial and needs a fifth of
//! the memory. In the layout `indexed` a block becomes several segments where they share little text (`pieces`).
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

mod at_once;
mod block;
mod builder;
mod pieces;

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::at_once::{Place, Places};
use self::pieces::Piece;
use crate::error::{Error, Result};
use crate::format::{EncodedSegment, SegmentContents, SegmentLayout};
use crate::grammar::{Dedup, build_rounds, build_sequitur};
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
    fn parts(&self, block: Arc<Block>) -> Result<Made<SegmentContents>> {
        let tokens = self.tokens(&block)?;
        self.with_grammar(block, tokens)
    }

    /// Returns the tokens of `block`, and the time they take.
    fn tokens(&self, block: &Block) -> Result<(TokenizedBlock, Duration)> {
        let started = Instant::now();
        let tokenized = tokenize_block(self.options.profile, &block.text, &block.doc_ends)?;
        Ok((tokenized, started.elapsed()))
    }

    /// Builds the grammar of the tokens of `block`.
    fn with_grammar(
        &self,
        block: Arc<Block>,
        (tokenized, tokenizing): (TokenizedBlock, Duration),
    ) -> Result<Made<SegmentContents>> {
        // Free the text, or this part of it, before the grammar is built.
        let len_bytes = block.text.len() as u64;
        let Block { paths, continues, .. } = Arc::unwrap_or_clone(block);

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

    /// Builds and encodes `piece` on the threads of `place`, and frees the place when the grammar is complete. Returns
    /// `None` if the piece is void.
    fn encoded(&self, piece: Piece, place: Place) -> Result<Option<Made<EncodedSegment>>> {
        match place.threads() {
            Some(threads) => threads.install(|| self.encoded_here(piece, place)),
            None => self.encoded_here(piece, place),
        }
    }

    /// Builds and encodes `piece` in the current thread pool.
    fn encoded_here(&self, piece: Piece, place: Place) -> Result<Option<Made<EncodedSegment>>> {
        let Piece { block, fate } = piece;
        if fate.is_void() {
            return Ok(None);
        }
        let tokens = self.tokens(&block)?;
        if fate.is_void() {
            return Ok(None);
        }
        let made = self.with_grammar(block, tokens);
        drop(place);
        let Made { segment, tokenizing, grammar, is_remote } = made?;
        if fate.is_void() {
            return Ok(None);
        }
        let segment = EncodedSegment::new(&segment, self.options.layout)?;
        Ok(Some(Made { segment, tokenizing, grammar, is_remote }))
    }

    /// Lets `remote` build `piece`. Builds it here, in one of `places`, if `remote` does not.
    fn encoded_by(
        &self,
        remote: &dyn RemoteBuilder,
        piece: Piece,
        places: &Arc<Places>,
    ) -> Result<Option<Made<EncodedSegment>>> {
        if piece.fate.is_void() {
            return Ok(None);
        }
        if let Some(segment) = remote.build(&piece.block, &self.options) {
            let is_remote = true;
            return Ok(Some(Made { segment, tokenizing: Duration::ZERO, grammar: Duration::ZERO, is_remote }));
        }
        let place = places.take(piece.block.text.len());
        self.encoded(piece, place)
    }
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
