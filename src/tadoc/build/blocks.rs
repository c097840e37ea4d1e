//! Construction of encoded segments from blocks of text, several at a time.
//!
//! ```text
//! at once 1    tokens 0  grammar 0 | tokens 1  grammar 1 | ...       all threads
//!                                  | coding 0            | coding 1  two threads
//! at once 3    tokens 0  grammar 0  coding 0 | tokens 3 ...          a third of the threads each
//!              tokens 1  grammar 1  coding 1 | tokens 4 ...
//!              tokens 2  grammar 2  coding 2 | tokens 5 ...
//! ```
//!
//! Segments are returned in the order of their blocks. They do not depend on how many blocks are
//! built at a time. Each place has its own thread pool, so that no block waits while its thread
//! works on another block.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::build::options::{BuilderKind, IngestOptions};
use crate::error::Result;
use crate::format::{EncodedSegment, SegmentContents};
use crate::grammar::{RoundsEngine, RoundsOptions, build_rounds_by, build_sequitur};
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
    pub(super) engine: Option<Arc<dyn RoundsEngine>>,
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
                let engine = self.engine.as_deref();
                build_rounds_by(engine, tokens, &doc_offsets, num_terminals, &options)?
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

    fn encoded(&self, block: Block) -> Result<Made<EncodedSegment>> {
        let Made { segment, tokenizing, grammar } = self.parts(block)?;
        Ok(Made {
            segment: EncodedSegment::new(&segment, self.options.layout)?,
            tokenizing,
            grammar,
        })
    }
}

/// Blocks that are under construction, oldest first.
#[derive(Debug)]
pub(super) struct BlocksAtOnce {
    building: VecDeque<JoinHandle<Result<Made<EncodedSegment>>>>,
    max_blocks: usize,
    /// Thread pool of each place, `None` if its threads could not be created.
    pools: Vec<Option<Arc<ThreadPool>>>,
    num_begun: usize,
}

impl BlocksAtOnce {
    /// Creates a queue for `max_blocks` blocks, at least 2. Each place gets its share of the
    /// machine's threads.
    pub(super) fn new(max_blocks: usize) -> Self {
        Self { building: VecDeque::new(), max_blocks, pools: Vec::new(), num_begun: 0 }
    }

    /// Returns true if the oldest block must be taken before the next one begins.
    pub(super) fn is_full(&self) -> bool {
        self.building.len() >= self.max_blocks
    }

    /// Starts to build `block`. The queue must not be full.
    pub(super) fn begin(&mut self, block: Block, maker: Maker) {
        let pool = self.next_pool();
        self.building.push_back(std::thread::spawn(move || match pool {
            Some(pool) => pool.install(|| maker.encoded(block)),
            None => maker.encoded(block),
        }));
    }

    /// Waits for the oldest block. Returns `None` if no block is under construction.
    pub(super) fn take_oldest(&mut self) -> Option<Result<Made<EncodedSegment>>> {
        let building = self.building.pop_front()?;
        Some(building.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Returns the pool of the next place in turn. The block of that place has been taken.
    fn next_pool(&mut self) -> Option<Arc<ThreadPool>> {
        let place = self.num_begun % self.max_blocks;
        self.num_begun += 1;
        if place == self.pools.len() {
            let num_threads = (rayon::current_num_threads() / self.max_blocks).max(1);
            let pool = ThreadPoolBuilder::new().num_threads(num_threads).build();
            self.pools.push(pool.ok().map(Arc::new));
        }
        self.pools[place].clone()
    }
}
