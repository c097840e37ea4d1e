//! Requests files of stores before the reader comes to them, so that many small files do not wait for
//! one another.
//!
//! ```text
//! inputs     a  b  c  d … z  …        a is being read
//! requests   a  b  c  d … z           MAX_REQUESTS of them; the next begins when a is done
//! ```
//!
//! Inputs are read in their order, and so the first error in this order is the one that is reported.
//! Each request holds about [`AHEAD_BYTES`](crate::resolver::AHEAD_BYTES) of its file in memory.

use std::collections::VecDeque;
use std::io::Read;
use std::slice::Iter;

use crate::inputs::{Input, Source};

/// Number of files that are requested at the same time.
const MAX_REQUESTS: usize = 32;

/// Inputs with readers of those that lie in stores.
pub struct Ahead<'a> {
    requested: VecDeque<(&'a Input, Option<Box<dyn Read>>)>,
    inputs: Iter<'a, Input>,
}

impl<'a> Ahead<'a> {
    pub fn new(inputs: &'a [Input]) -> Self {
        Self { requested: VecDeque::new(), inputs: inputs.iter() }
    }
}

impl<'a> Iterator for Ahead<'a> {
    /// An input, and its reader if it lies in a store.
    type Item = (&'a Input, Option<Box<dyn Read>>);

    fn next(&mut self) -> Option<Self::Item> {
        let free = MAX_REQUESTS - self.requested.len();
        self.requested.extend(self.inputs.by_ref().take(free).map(|input| (input, request(input))));
        self.requested.pop_front()
    }
}

fn request(input: &Input) -> Option<Box<dyn Read>> {
    match &input.source {
        Source::Stored(stored) => Some(Box::new(stored.reader())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_keep_their_order() {
        let text = |n: u32| Source::Text(n.to_string().into_bytes().into());
        let inputs: Vec<Input> = (0..100).map(|n| Input::new(text(n), n.to_string(), 0)).collect();
        assert!(Ahead::new(&inputs).map(|(input, _)| input).eq(&inputs));
    }
}
