//! From a block of text to a coded segment, and several of them at once.
//!
//! ```text
//! at once 1    tokens 0  grammar 0 | tokens 1  grammar 1 | ...       all threads
//!                                  | coding 0            | coding 1  two threads
//! at once 3    tokens 0  grammar 0  coding 0 | tokens 3 ...          a third of the threads each
//!              tokens 1  grammar 1  coding 1 | tokens 4 ...
//!              tokens 2  grammar 2  coding 2 | tokens 5 ...
//! ```
//!
//! Segments come back in the order of their blocks and do not depend on how many are built at once.
//! Each place has a pool of its own, so that none waits while its thread does another's work.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::build::builder::{BuilderKind, IngestOptions};
use crate::error::Result;
use crate::format::{EncodedSegment, SegmentParts};
use crate::grammar::{RoundsEngine, RoundsOptions, build_rounds_by, build_sequitur};
use crate::segment::Paths;
use crate::text::{TokenizedBlock, tokenize_block};

/// Most blocks that may be asked for.
pub const MAX_BLOCKS_AT_ONCE: u16 = 64;

/// Threads for each block, unless chosen otherwise, and most blocks then.
const THREADS_PER_BLOCK: usize = 4;
const MAX_USUAL_BLOCKS: usize = 4;

/// How many blocks are built at once on this machine, unless chosen otherwise.
pub fn usual_blocks_at_once() -> usize {
    (rayon::current_num_threads() / THREADS_PER_BLOCK).clamp(1, MAX_USUAL_BLOCKS)
}

/// Documents that become one segment.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) text: Vec<u8>,
    pub(super) doc_ends: Vec<usize>,
    pub(super) paths: Paths,
    /// Whether the first document is the rest of the last one of the block before.
    pub(super) continues: bool,
}

/// What makes segments of blocks.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) options: IngestOptions,
    pub(super) engine: Option<Arc<dyn RoundsEngine>>,
}

/// A block's segment in the making, and what it took so far.
#[derive(Debug)]
pub(super) struct Made<T> {
    pub(super) segment: T,
    pub(super) tokenizing: Duration,
    pub(super) grammar: Duration,
}

impl Maker {
    /// Tokens and grammar of `block`, by the current pool.
    pub(super) fn parts(&self, block: Block) -> Result<Made<SegmentParts>> {
        let started = Instant::now();
        let Block { text, doc_ends, paths, continues } = block;
        let len_bytes = text.len() as u64;
        let tokenized = tokenize_block(self.options.profile, &text, &doc_ends)?;
        // The text is not needed any more; give its memory to the builder.
        drop(text);
        let tokenizing = started.elapsed();

        let started = Instant::now();
        let TokenizedBlock { dictionary, tokens, doc_offsets, num_word_tokens } = tokenized;
        let (num_tokens, num_terminals) = (tokens.len() as u64, dictionary.len());
        let grammar = match self.options.builder {
            BuilderKind::Rounds => {
                let options = RoundsOptions { dedup: self.options.dedup };
                let engine = self.engine.as_deref();
                build_rounds_by(engine, tokens, &doc_offsets, num_terminals, &options)?
            }
            BuilderKind::Sequitur => build_sequitur(&tokens, &doc_offsets, num_terminals)?,
        };
        let grammar_took = started.elapsed();
        let segment = SegmentParts {
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
        Ok(Made { segment: EncodedSegment::new(&segment)?, tokenizing, grammar })
    }
}

/// Blocks that are being built, oldest first.
#[derive(Debug)]
pub(super) struct BlocksAtOnce {
    building: VecDeque<JoinHandle<Result<Made<EncodedSegment>>>>,
    max_blocks: usize,
    /// A pool for each place; none where threads could not be had.
    pools: Vec<Option<Arc<ThreadPool>>>,
    num_begun: usize,
}

impl BlocksAtOnce {
    /// Room for `max_blocks`, at least 2: each has its share of the threads of this machine.
    pub(super) fn new(max_blocks: usize) -> Self {
        Self { building: VecDeque::new(), max_blocks, pools: Vec::new(), num_begun: 0 }
    }

    /// Whether the oldest block has to be taken out before the next one.
    pub(super) fn is_full(&self) -> bool {
        self.building.len() >= self.max_blocks
    }

    /// Begins to build `block`. There is room.
    pub(super) fn begin(&mut self, block: Block, maker: Maker) {
        let pool = self.next_pool();
        self.building.push_back(std::thread::spawn(move || match pool {
            Some(pool) => pool.install(|| maker.encoded(block)),
            None => maker.encoded(block),
        }));
    }

    /// Waits for the oldest block; nothing where there is none.
    pub(super) fn take_oldest(&mut self) -> Option<Result<Made<EncodedSegment>>> {
        let building = self.building.pop_front()?;
        Some(building.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// The pool of the next place in turn, whose block was taken out.
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
