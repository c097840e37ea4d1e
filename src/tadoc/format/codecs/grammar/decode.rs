//! Decoder of the grammar section.

use crate::error::{Error, Result};
use crate::format::codecs::grammar::recency::{Entry, Recency};
use crate::format::codecs::grammar::{
    DOC_END, FIRST_DISTANCES, History, NEW_RULE, NUM_SYMBOLS, PREDICTED, RULE_LEN,
    UNSEEN_SEPARATOR, UNSEEN_WORD, begins_with_separator, list_of, new_models, rules, symbol_of,
};
use crate::format::cursor::Origin;
use crate::format::entropy::{Decoder, Distribution, MAX_SYMBOLS_PER_BYTE};
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

/// Decodes the grammar of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`] if the section does not contain exactly the grammar that `meta` declares.
pub(in crate::format) fn decode(
    place: Origin<'_>,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<Grammar> {
    let max_elements = (bytes.len() as u64).saturating_mul(MAX_SYMBOLS_PER_BYTE);
    if meta.num_elements > max_elements || meta.num_docs > max_elements {
        let (num_elements, num_bytes) = (meta.num_elements.max(meta.num_docs), bytes.len());
        let reason = format!("expected fewer than {num_elements} elements in {num_bytes} bytes");
        return Err(place.fault(0, reason));
    }
    let mut decoder = GrammarDecoder::new(place, bytes, meta)?;
    while decoder.rules.doc_offsets.len() as u64 <= meta.num_docs {
        decoder.event()?;
    }
    decoder.decoder.finish()?;
    decoder.rules.finish().ok_or_else(|| misfit(place))
}

fn misfit(place: Origin<'_>) -> Error {
    place.fault(0, "expected events that fit one another and the declared counts")
}

struct GrammarDecoder<'a> {
    place: Origin<'a>,
    decoder: Decoder<'a>,
    models: Vec<Distribution<NUM_SYMBOLS>>,
    history: History,
    /// Elements of each symbol.
    recency: Vec<Recency>,
    unseen: [Vec<u32>; 2],
    rules: Rules,
}

impl<'a> GrammarDecoder<'a> {
    fn new(place: Origin<'a>, bytes: &'a [u8], meta: &SegmentMeta) -> Result<Self> {
        let num_terminals = meta.num_words + meta.num_separators;
        Ok(Self {
            place,
            decoder: Decoder::new(place, bytes)?,
            models: new_models(),
            history: History::new(num_terminals as usize + meta.num_rules as usize),
            recency: (0..NUM_SYMBOLS).map(|_| Recency::default()).collect(),
            unseen: [(0..meta.num_words).collect(), (meta.num_words..num_terminals).collect()],
            rules: Rules::new(num_terminals, meta.num_rules, meta.num_elements as usize),
        })
    }

    #[inline]
    fn event(&mut self) -> Result<()> {
        let symbol = self.decoder.symbol(&mut self.models[self.history.context()]);
        let fits = match symbol {
            UNSEEN_WORD | UNSEEN_SEPARATOR => self.unseen_token(symbol - UNSEEN_WORD),
            NEW_RULE => {
                let len = self.decoder.number(&mut self.models[RULE_LEN]);
                self.history.note_new_rule();
                self.rules.open_rule(len)
            }
            DOC_END => {
                self.history.note_doc_end();
                self.rules.end_document()
            }
            PREDICTED => self.predicted_element(),
            _ => self.seen_element(symbol),
        };
        fits.ok_or_else(|| misfit(self.place))
    }

    #[inline]
    fn unseen_token(&mut self, list: usize) -> Option<()> {
        let unseen = &mut self.unseen[list];
        if unseen.is_empty() {
            return None;
        }
        let index = self.decoder.uniform(unseen.len() as u32);
        let element = unseen.swap_remove(index as usize);
        self.push(list, Entry { element, num_uses: 1 });
        self.history.note_element(element, list, true);
        self.element(element, list)
    }

    #[inline]
    fn predicted_element(&mut self) -> Option<()> {
        let (element, list) = self.history.prediction.next()?;
        self.history.note_element(element, list, false);
        self.element(element, list)
    }

    #[inline]
    fn seen_element(&mut self, symbol: usize) -> Option<()> {
        let distance = self.decoder.number(&mut self.models[FIRST_DISTANCES + symbol]);
        let entry = self.recency[symbol].take(distance as usize)?;
        let list = list_of(symbol);
        self.push(list, entry.used_again());
        self.history.note_element(entry.element, list, false);
        self.element(entry.element, list)
    }

    /// Appends `entry` of `list` to the elements with the same symbol.
    #[inline]
    fn push(&mut self, list: usize, entry: Entry) {
        self.recency[symbol_of(list, entry.num_uses)].push(entry);
    }

    /// Appends an element of `list` and closes the rules that it completes.
    #[inline]
    fn element(&mut self, element: u32, list: usize) -> Option<()> {
        self.rules.push(element, begins_with_separator(list))?;
        while let Some(closed) = self.rules.close_complete()? {
            let list = rules(closed.begins_with_separator, self.history.ends_with_separator);
            self.push(list, Entry { element: closed.element, num_uses: 1 });
        }
        Some(())
    }
}

/// Rules under construction. Complete rules fill `symbols` from the back, so that the last
/// completed rule has the lowest number. The others are on one stack, with the root's elements at
/// the bottom.
struct Rules {
    num_terminals: u32,
    num_closed: u32,
    rule_offsets: Vec<u32>,
    symbols: Vec<u32>,
    /// Number of elements at the front of `symbols` that are still free.
    num_free: usize,
    /// Sum of the lengths of all rules so far.
    num_promised: usize,
    pending: Vec<u32>,
    open: Vec<OpenRule>,
    doc_offsets: Vec<u32>,
}

/// A rule whose elements are being read.
struct OpenRule {
    /// Index of its first element in `pending`.
    start: u32,
    /// Twice the number of remaining elements, plus one if the rule begins with a separator.
    left: u32,
}

struct ClosedRule {
    element: u32,
    begins_with_separator: bool,
}

impl Rules {
    fn new(num_terminals: u32, num_rules: u32, num_elements: usize) -> Self {
        let mut rule_offsets = vec![0; num_rules as usize + 1];
        rule_offsets[num_rules as usize] = num_elements as u32;
        Self {
            num_terminals,
            num_closed: 0,
            rule_offsets,
            symbols: vec![0; num_elements],
            num_free: num_elements,
            num_promised: 0,
            // Allocated at full size at the start, so that it never moves.
            pending: Vec::with_capacity(num_elements),
            open: Vec::new(),
            doc_offsets: vec![0],
        }
    }

    /// Returns the index of the rule that is completed next. 0 is the root.
    fn next_rule_idx(&self) -> usize {
        self.rule_offsets.len() - 2 - self.num_closed as usize
    }

    /// Begins a rule of `len` elements.
    #[inline]
    fn open_rule(&mut self, len: u32) -> Option<()> {
        self.num_promised = self.num_promised.checked_add(len as usize)?;
        let fits = len > 0
            && self.num_promised <= self.symbols.len()
            && self.open.len() < self.next_rule_idx();
        let left = len.checked_mul(2)?;
        fits.then(|| self.open.push(OpenRule { start: self.pending.len() as u32, left }))
    }

    #[inline]
    fn end_document(&mut self) -> Option<()> {
        self.open.is_empty().then(|| self.doc_offsets.push(self.pending.len() as u32))
    }

    /// Appends an element to the rule opened last, or to the root.
    #[inline]
    fn push(&mut self, element: u32, begins_with_separator: bool) -> Option<()> {
        let index = self.pending.len();
        if index >= self.num_free {
            return None;
        }
        self.pending.push(element);
        if let Some(open) = self.open.last_mut() {
            open.left -= 2;
            if open.start as usize == index {
                open.left |= u32::from(begins_with_separator);
            }
        }
        Some(())
    }

    /// Closes the rule opened last if it is complete, and replaces its elements by its id.
    #[inline]
    fn close_complete(&mut self) -> Option<Option<ClosedRule>> {
        let Some(&OpenRule { start, left: left @ 0..=1 }) = self.open.last() else {
            return Some(None);
        };
        self.open.pop();
        let rule_idx = self.next_rule_idx();
        let body = &self.pending[start as usize..];
        let first = self.num_free - body.len();
        self.symbols[first..self.num_free].copy_from_slice(body);
        self.rule_offsets[rule_idx] = first as u32;
        self.num_free = first;
        self.num_closed += 1;
        self.pending.truncate(start as usize);
        let element = self.num_terminals + rule_idx as u32;
        let begins_with_separator = left == 1;
        self.push(element, begins_with_separator)?;
        Some(Some(ClosedRule { element, begins_with_separator }))
    }

    /// Returns the grammar if it has all declared elements. The pending elements are the root.
    fn finish(mut self) -> Option<Grammar> {
        let is_whole = self.open.is_empty()
            && self.next_rule_idx() == 0
            && self.pending.len() == self.num_free;
        if !is_whole {
            return None;
        }
        self.symbols[..self.num_free].copy_from_slice(&self.pending);
        Some(Grammar {
            num_terminals: self.num_terminals,
            rule_offsets: self.rule_offsets,
            symbols: self.symbols,
            doc_offsets: self.doc_offsets,
        })
    }
}
