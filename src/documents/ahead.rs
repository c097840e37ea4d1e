//! Requests files of stores before the reader comes to them, so that many small files do not wait for
//! one another.
//!
//! ```text
//! inputs     a  b  c  d … z  …        a is being read
//! requests   a  b  c  d … z           the next begins when a is done
//! ```
//!
//! Inputs are read in their order, and so the first error in this order is the one that is reported.
//!
//! The number of requests at a time begins with [`MIN_REQUESTS`]. It grows by a quarter whenever the reader
//! has to wait, up to [`MAX_REQUESTS`]. An answer that takes longer than [`SLOW`] halves it, down to the
//! least: the store may have refused requests because there were too many, and those are repeated after
//! a time. Together the requests hold at most [`MAX_BYTES`] of their files in memory, but for a chunk of
//! each.

use std::collections::VecDeque;
use std::io::Read;
use std::iter::Peekable;
use std::slice::Iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::inputs::{Input, Source, StoredBytes};

/// Number of files that are requested at the same time, at first and at least.
const MIN_REQUESTS: usize = 32;
/// Largest number of files that are requested at the same time.
const MAX_REQUESTS: usize = 256;
/// Most bytes of files that are in memory before anybody asks for them.
const MAX_BYTES: u64 = 32 << 20;
/// Most bytes of one of these files.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Time of an answer that shows that a store has too much to do.
const SLOW: Duration = Duration::from_secs(1);

/// Inputs with readers of those that lie in stores.
pub struct Ahead<'a> {
    requested: VecDeque<Requested<'a>>,
    /// Bytes that the requests hold at most.
    held_bytes: u64,
    inputs: Peekable<Iter<'a, Input>>,
    window: Arc<Window>,
}

struct Requested<'a> {
    input: &'a Input,
    reader: Option<Box<dyn StoredBytes>>,
    held_bytes: u64,
}

impl<'a> Ahead<'a> {
    pub fn new(inputs: &'a [Input]) -> Self {
        let inputs = inputs.iter().peekable();
        Self { requested: VecDeque::new(), held_bytes: 0, inputs, window: Arc::default() }
    }

    /// Requests files while there is room, at least one.
    fn request(&mut self) {
        while let Some(&input) = self.inputs.peek() {
            let held_bytes = held_bytes(input);
            let has_room = self.requested.len() < self.window.len() && self.held_bytes + held_bytes <= MAX_BYTES;
            if !has_room && !self.requested.is_empty() {
                break;
            }
            self.inputs.next();
            self.held_bytes += held_bytes;
            let reader = match &input.source {
                Source::Stored(stored) => {
                    let window = Arc::clone(&self.window);
                    Some(stored.reader(held_bytes, Box::new(move |took| window.answered(took))))
                }
                _ => None,
            };
            self.requested.push_back(Requested { input, reader, held_bytes });
        }
    }
}

impl<'a> Iterator for Ahead<'a> {
    /// An input, and its reader if it lies in a store.
    type Item = (&'a Input, Option<Box<dyn Read>>);

    fn next(&mut self) -> Option<Self::Item> {
        self.request();
        let Requested { input, reader, held_bytes } = self.requested.pop_front()?;
        self.held_bytes -= held_bytes;
        if reader.as_ref().is_some_and(|reader| !reader.has_answer()) {
            self.window.widen();
            self.request();
        }
        Some((input, reader.map(|reader| reader as Box<dyn Read>)))
    }
}

/// Returns the bytes of `input` that its request holds at most.
fn held_bytes(input: &Input) -> u64 {
    match (&input.source, input.len_bytes) {
        (Source::Stored(_), 0) => MAX_FILE_BYTES,
        (Source::Stored(_), len_bytes) => len_bytes.min(MAX_FILE_BYTES),
        _ => 0,
    }
}

/// Number of requests at a time.
struct Window(AtomicUsize);

impl Default for Window {
    fn default() -> Self {
        Self(AtomicUsize::new(MIN_REQUESTS))
    }
}

impl Window {
    fn len(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn widen(&self) {
        self.change(|len| (len + len / 4).min(MAX_REQUESTS));
    }

    fn answered(&self, took: Duration) {
        if took > SLOW {
            self.change(|len| (len / 2).max(MIN_REQUESTS));
        }
    }

    fn change(&self, new: impl Fn(usize) -> usize) {
        // Both sides of the result are the length before, which nobody needs.
        let _before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |len| Some(new(len)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_keep_their_order() {
        let text = |n: u32| {
            let bytes = n.to_string().into_bytes().into();
            Source::Text { bytes, lines_before: 0 }
        };
        let inputs: Vec<Input> = (0..1000).map(|n| Input::new(text(n), n.to_string(), 0)).collect();
        let paths = Ahead::new(&inputs).map(|(input, _)| &input.path);
        assert!(paths.eq(inputs.iter().map(|input| &input.path)));
    }

    #[test]
    fn requests_grow_with_waiting_and_shrink_with_slow_answers() {
        let window = Window::default();
        let mut lens = vec![];
        for _ in 0..12 {
            window.widen();
            lens.push(window.len());
        }
        assert!(lens.is_sorted() && lens[0] == 40 && lens[11] == MAX_REQUESTS, "{lens:?}");
        window.answered(Duration::from_millis(20));
        assert_eq!(window.len(), MAX_REQUESTS);
        window.answered(Duration::from_secs(2));
        assert_eq!(window.len(), MAX_REQUESTS / 2);
        (0..9).for_each(|_| window.answered(Duration::from_secs(2)));
        assert_eq!(window.len(), MIN_REQUESTS);
    }
}
