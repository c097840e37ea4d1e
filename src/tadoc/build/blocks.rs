//! Construction of encoded segments from blocks of text, several at a time.
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
//! Segments are returned in the order of their blocks. They do not depend on how many blocks are
//! built at a time.
//!
//! All blocks share the current threads. A third of a block's time is serial steps, during which
//! the threads work on other blocks, and the last block has all of them. The serial steps run on a
//! thread of the block that belongs to no pool, so that they never wait for the work of another
//! block. A place of a block is free when its grammar is complete. Its coding is mostly serial and
//! needs a fifth of the memory.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::build::options::{BuilderKind, IngestOptions};
use crate::error::Result;
use crate::format::{EncodedSegment, SegmentContents};
use crate::grammar::{RoundsOptions, build_rounds, build_sequitur};
use crate::segment::Paths;
use crate::text::{TokenizedBlock, tokenize_block};

/// Greatest number of blocks that may be built at a time.
pub const MAX_BLOCKS_AT_ONCE: u16 = 64;

/// Default number of threads for each block, and default limit of blocks.
const THREADS_PER_BLOCK: usize = 4;
const MAX_USUAL_BLOCKS: usize = 4;

/// Returns the default number of blocks that are built at a time on this machine.
pub fn usual_blocks_at_once() -> usize {
    (rayon::current_num_threads() / THREADS_PER_BLOCK).clamp(1, MAX_USUAL_BLOCKS)
}

/// Documents that become one segment.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) text: Vec<u8>,
    pub(super) doc_ends: Vec<usize>,
    pub(super) paths: Paths,
    /// True if the first document continues the last one of the previous block.
    pub(super) continues: bool,
}

/// Converter from blocks to segments.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) options: IngestOptions,
}

/// A segment under construction, and the time it took so far.
#[derive(Debug)]
pub(super) struct Made<T> {
    pub(super) segment: T,
    pub(super) tokenizing: Duration,
    pub(super) grammar: Duration,
}

impl Maker {
    /// Builds the tokens and the grammar of `block` in the current thread pool.
    pub(super) fn parts(&self, block: Block) -> Result<Made<SegmentContents>> {
        let started = Instant::now();
        let Block { text, doc_ends, paths, continues } = block;
        let len_bytes = text.len() as u64;
        let tokenized = tokenize_block(self.options.profile, &text, &doc_ends)?;
        // Free the text before the grammar is built.
        drop(text);
        let tokenizing = started.elapsed();

        let started = Instant::now();
        let TokenizedBlock { dictionary, tokens, doc_offsets, num_word_tokens } = tokenized;
        let (num_tokens, num_terminals) = (tokens.len() as u64, dictionary.len());
        let grammar = match self.options.builder {
            BuilderKind::Rounds => {
                let IngestOptions { dedup, effort, .. } = self.options;
                let options = RoundsOptions { dedup, effort };
                build_rounds(tokens, &doc_offsets, num_terminals, &options)?
            }
            BuilderKind::Sequitur => build_sequitur(&tokens, &doc_offsets, num_terminals)?,
        };
        let grammar_took = started.elapsed();
        let segment = SegmentContents {
            dictionary,
            grammar,
            paths,
            continues,
            num_tokens,
            num_word_tokens,
            len_bytes,
        };
        Ok(Made { segment, tokenizing, grammar: grammar_took })
    }

    /// Builds and encodes `block`. Frees its place when the grammar is complete.
    fn encoded(&self, block: Block, place: Place) -> Result<Made<EncodedSegment>> {
        let made = self.parts(block);
        drop(place);
        let Made { segment, tokenizing, grammar } = made?;
        Ok(Made {
            segment: EncodedSegment::new(&segment, self.options.layout)?,
            tokenizing,
            grammar,
        })
    }
}

/// Places of blocks whose tokens or grammar are under construction.
#[derive(Debug, Default)]
struct Places {
    num_taken: Mutex<usize>,
    is_freed: Condvar,
}

/// A place that is taken until this value is dropped.
struct Place(Arc<Places>);

impl Places {
    /// Waits until fewer than `max_taken` places are taken and takes one.
    fn take(self: &Arc<Self>, max_taken: usize) -> Place {
        let num_taken = self.num_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.is_freed.wait_while(num_taken, |num_taken| *num_taken >= max_taken);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        Place(Arc::clone(self))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.num_taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.is_freed.notify_one();
    }
}

/// Number of places for each block that may be coded or wait to be written.
const PLACES_PER_CODED: usize = 2;

/// Blocks that are not written yet, oldest first.
#[derive(Debug)]
pub(super) struct BlocksAtOnce {
    begun: VecDeque<JoinHandle<Result<Made<EncodedSegment>>>>,
    max_blocks: usize,
    places: Arc<Places>,
}

impl BlocksAtOnce {
    /// Creates a queue in which `max_blocks` blocks, at least 2, are built at a time.
    pub(super) fn new(max_blocks: usize) -> Self {
        Self { begun: VecDeque::new(), max_blocks, places: Arc::default() }
    }

    /// Returns true if the oldest block should be taken before the next one begins: it can be had
    /// without waiting, or too many blocks are there.
    pub(super) fn is_due(&self) -> bool {
        self.begun.front().is_some_and(JoinHandle::is_finished)
            || self.begun.len() >= self.max_blocks + self.max_blocks / PLACES_PER_CODED
    }

    /// Starts to build `block`, after waiting for a free place.
    pub(super) fn begin(&mut self, block: Block, maker: Maker) {
        let place = self.places.take(self.max_blocks);
        self.begun.push_back(std::thread::spawn(move || maker.encoded(block, place)));
    }

    /// Waits for the oldest block. Returns `None` if there is none.
    pub(super) fn take_oldest(&mut self) -> Option<Result<Made<EncodedSegment>>> {
        let oldest = self.begun.pop_front()?;
        Some(oldest.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}
