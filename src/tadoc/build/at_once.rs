//! Texts that are built side by side, each on threads of its own.
//!
//! ```text
//! in line      places                          done
//! 7 6 5    ─▶  4 │ tokens ─▶ grammar │  ─▶  3 coding ─▶ written in order: 2 1
//!              ▲   threads of its own
//!              └ a place is free when a grammar is complete
//! ```
//!
//! A text is a block or a piece of one. Texts take places in the order in which they line up. So the reader goes on
//! while all places are taken, and a free place has its next text at once.
//!
//! All threads in one pool would share every text: each thread has a table of words for each text then, every count is
//! divided over them, and what one thread wrote is read by another. So a text has a pool of a few threads, by its part
//! of the bytes that may be there. The last texts of a file share all threads, so that none is idle.
//!
//! A piece may begin before its block is complete, and then become void ([`Fate`]). Nothing of it is written.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::pieces::{Fate, Piece};
use super::{IngestOptions, Made, Maker, RemoteBuilder};
use crate::error::Result;
use crate::format::{EncodedSegment, SegmentLayout};

/// A number of texts and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Texts {
    num: usize,
    len_bytes: usize,
}

impl Texts {
    fn add(&mut self, len_bytes: usize) {
        self.num += 1;
        self.len_bytes += len_bytes;
    }

    fn remove(&mut self, len_bytes: usize) {
        self.num -= 1;
        self.len_bytes -= len_bytes;
    }
}

/// Places of texts whose tokens or grammar are under construction.
#[derive(Debug)]
pub(super) struct Places {
    state: Mutex<State>,
    is_changed: Condvar,
    /// Most texts, and most bytes of several texts.
    most: Texts,
}

#[derive(Debug, Default)]
struct State {
    taken: Texts,
    in_line: Texts,
    /// Number of texts that have lined up so far.
    num_seen: usize,
    /// True if no text comes behind those that have lined up.
    is_end: bool,
}

/// Turn of a text that is in line.
struct Turn {
    places: Arc<Places>,
    number: usize,
    len_bytes: usize,
}

/// Place of a text that is taken until this value is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    len_bytes: usize,
    /// Number of threads of its own, or `None` if it shares all threads.
    num_threads: Option<usize>,
}

impl Places {
    fn new(most: Texts) -> Self {
        Self { state: Mutex::default(), is_changed: Condvar::new(), most }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.is_changed.wait_while(self.state(), condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a text in line.
    fn line_up(self: &Arc<Self>, len_bytes: usize) -> Turn {
        let mut state = self.state();
        let number = state.num_seen;
        state.num_seen += 1;
        state.in_line.add(len_bytes);
        Turn { places: Arc::clone(self), number, len_bytes }
    }

    /// Waits for a place of a text of `len_bytes` and takes it.
    pub(super) fn take(self: &Arc<Self>, len_bytes: usize) -> Place {
        self.line_up(len_bytes).take()
    }

    /// Waits until the texts in line have at most `len_bytes`.
    fn wait_for_line(&self, len_bytes: usize) {
        drop(self.wait_while(|state| state.in_line.len_bytes > len_bytes));
    }

    /// Returns the number of threads of its own that a text has which leaves the line, or `None` for all threads.
    fn num_threads(&self, state: &State, len_bytes: usize) -> Option<usize> {
        let is_among_last = state.is_end && state.in_line.num < self.most.num;
        if is_among_last {
            return None;
        }
        let num_all = rayon::current_num_threads();
        let by_bytes = num_all.saturating_mul(len_bytes) / self.most.len_bytes.max(1);
        let num_own = by_bytes.max(num_all / self.most.num.max(1)).max(1);
        (num_own < num_all).then_some(num_own)
    }
}

impl Turn {
    /// Waits until all texts before this one have places and there is one for this one, and takes it.
    fn take(self) -> Place {
        let Self { places, number, len_bytes } = self;
        let most = places.most;
        let must_wait = |state: &mut State| {
            let taken = state.taken;
            let has_room = taken.num < most.num && taken.len_bytes.saturating_add(len_bytes) <= most.len_bytes;
            let is_turn = state.num_seen - state.in_line.num == number;
            !is_turn || taken.num > 0 && !has_room
        };
        let mut state = places.wait_while(must_wait);
        state.in_line.remove(len_bytes);
        state.taken.add(len_bytes);
        let num_threads = places.num_threads(&state, len_bytes);
        drop(state);
        places.is_changed.notify_all();
        Place { places, len_bytes, num_threads }
    }
}

impl Place {
    /// Makes the threads of the text. Returns `None` if it shares all threads, also where no thread can be had.
    pub(super) fn threads(&self) -> Option<ThreadPool> {
        ThreadPoolBuilder::new().num_threads(self.num_threads?).build().ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.state().taken.remove(self.len_bytes);
        self.places.is_changed.notify_all();
    }
}

/// Number of places for each text that may be coded or wait to be written.
const PLACES_PER_CODED: usize = 2;
/// Number of pieces of blocks that are built in place of one block.
const PIECES_PER_BLOCK: usize = 2;
/// Part of a block that may be in line.
const LINE_PART: usize = 4;

/// Blocks and pieces of blocks that are not written yet, oldest first.
#[derive(Debug)]
pub(super) struct BlocksAtOnce {
    begun: VecDeque<Begun>,
    /// Places of the texts that are built here.
    places: Arc<Places>,
    remote: Option<Remote>,
    /// Most bytes of texts in line while more text comes.
    max_line_bytes: usize,
}

/// A text that is in line or under construction.
#[derive(Debug)]
struct Begun {
    fate: Arc<Fate>,
    /// The segment, or `None` if the text is void.
    building: JoinHandle<Result<Option<Made<EncodedSegment>>>>,
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
    pub(super) fn new(
        max_blocks: usize,
        options: &IngestOptions,
        remote: Option<&Arc<dyn RemoteBuilder>>,
    ) -> Option<Self> {
        let per_block = if options.layout == SegmentLayout::Small { 1 } else { PIECES_PER_BLOCK };
        let num = max_blocks.saturating_mul(per_block);
        let most = Texts { num, len_bytes: options.block_bytes.saturating_mul(max_blocks) };
        let remote = remote.map(|builder| {
            let len_bytes = options.block_bytes.saturating_mul(builder.num_whole_blocks().max(1));
            let most = Texts { num: builder.num_places().max(1), len_bytes };
            Remote { builder: Arc::clone(builder), places: Arc::new(Places::new(most)) }
        });
        let is_one = num <= 1 && remote.is_none();
        let places = Arc::new(Places::new(most));
        let max_line_bytes = options.block_bytes / LINE_PART;
        (!is_one).then(|| Self { begun: VecDeque::new(), places, remote, max_line_bytes })
    }

    /// Returns true if the oldest text should be taken before the next one begins: it can be had
    /// without waiting, or too many texts are there.
    pub(super) fn is_due(&self) -> bool {
        let places = self.remote.as_ref().map_or(&self.places, |remote| &remote.places);
        let most = places.most.num;
        let in_line = places.state().in_line.num;
        self.begun.front().is_some_and(|oldest| {
            let is_waited_for = self.begun.len() >= most + most / PLACES_PER_CODED + in_line;
            !oldest.fate.is_open() && (oldest.building.is_finished() || is_waited_for)
        })
    }

    /// Puts `piece` in line for a place in which it is built. Waits while many texts are there.
    pub(super) fn begin(&mut self, piece: Piece, maker: Maker) {
        let fate = Arc::clone(&piece.fate);
        let len_bytes = piece.block.text.len();
        let here = Arc::clone(&self.places);
        let building = if let Some(remote) = self.remote.clone() {
            let place = remote.places.take(len_bytes);
            std::thread::spawn(move || {
                let made = maker.encoded_by(remote.builder.as_ref(), piece, &here);
                drop(place);
                made
            })
        } else {
            let turn = here.line_up(len_bytes);
            let building = std::thread::spawn(move || maker.encoded(piece, turn.take()));
            here.wait_for_line(self.max_line_bytes);
            building
        };
        self.begun.push_back(Begun { fate, building });
    }

    /// Says that no text comes behind those that have begun and the next block.
    pub(super) fn end(&mut self) {
        self.places.state().is_end = true;
    }

    /// Waits for the oldest text that is not void. Returns `None` if there is none.
    pub(super) fn take_oldest(&mut self) -> Option<Result<Made<EncodedSegment>>> {
        while let Some(oldest) = self.begun.pop_front() {
            let made = oldest.building.join().unwrap_or_else(|panic| resume_unwind(panic));
            if let Some(made) = made.transpose().filter(|_| !oldest.fate.is_void()) {
                return Some(made);
            }
        }
        None
    }
}

impl Drop for BlocksAtOnce {
    /// Stops what nobody takes any more.
    fn drop(&mut self) {
        self.begun.iter().for_each(|begun| begun.fate.void());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_text_waits_until_there_is_room() {
        let places = Arc::new(Places::new(Texts { num: 3, len_bytes: 10 }));
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
        assert_eq!(places.state().taken, Texts { num: 2, len_bytes: 10 });
    }

    #[test]
    fn texts_take_places_in_the_order_of_the_line() {
        let places = Arc::new(Places::new(Texts { num: 1, len_bytes: 100 }));
        let first = places.take(1);
        let (sender, taken) = std::sync::mpsc::channel();
        let turns: Vec<Turn> = (0..8).map(|_| places.line_up(1)).collect();
        // The threads begin in another order.
        let threads = turns.into_iter().rev().map(|turn| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let number = turn.number;
                let place = turn.take();
                sender.send(number).unwrap();
                drop(place);
            })
        });
        let threads: Vec<_> = threads.collect();
        drop((first, sender));
        assert_eq!(taken.iter().collect::<Vec<_>>(), (1..9).collect::<Vec<_>>());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        places.wait_for_line(0);
        assert_eq!(places.state().taken, Texts::default());
    }

    #[test]
    fn the_last_texts_share_all_threads() {
        let pool = ThreadPoolBuilder::new().num_threads(16).build().unwrap();
        let places = Places::new(Texts { num: 8, len_bytes: 512 });
        let own = |state: &State, len_bytes| pool.install(|| places.num_threads(state, len_bytes));
        let mut state = State::default();
        assert_eq!(own(&state, 16), Some(2));
        assert_eq!(own(&state, 128), Some(4));
        assert_eq!(own(&state, 512), None);
        state.is_end = true;
        state.in_line = Texts { num: 8, len_bytes: 128 };
        assert_eq!(own(&state, 16), Some(2));
        state.in_line = Texts { num: 7, len_bytes: 112 };
        assert_eq!(own(&state, 16), None);
    }
}
