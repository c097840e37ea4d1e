//! Scan of a document for occurrences, by a walk over its tokens.
//!
//! For a small document and a frequent word this is faster than a climb from every place in the
//! segment: O(tokens of the document), 1 to 3 ns each, without an index. If the segment keeps the
//! words of documents, rules that are known not to contain the word are skipped.

use std::collections::VecDeque;

use crate::error::Result;
use crate::ids::DocId;
use crate::segment::{DocWords, Len, Segment};

use crate::interrupt::Interrupt;
use crate::query::matching::word_set::WordSet;

/// Number of bits of a filter that tells most tokens from the words searched for.
const SEEN_BITS: usize = 1024;

/// An occurrence inside a document (or part): its first byte, its length and its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Found {
    pub byte_offset: u64,
    pub byte_len: u64,
    pub word_idx: u64,
}

/// Calls `found` with each occurrence of the consecutive `words`, one of each set, in document
/// `doc`, in ascending order.
pub(in crate::query) fn scan_doc(
    segment: &Segment,
    doc: DocId,
    words: &[WordSet],
    interrupt: &mut Interrupt<'_>,
    mut found: impl FnMut(Found),
) -> Result<()> {
    let Some((last_word, before)) = words.split_last() else { return Ok(()) };
    // The last words read, with their offsets, which may begin an occurrence.
    let mut recent: VecDeque<(u32, u64)> = VecDeque::with_capacity(before.len() + 1);
    let mut word_idx = 0;
    // For a phrase all words have to be visited.
    let mask = if before.is_empty() { DocWords::mask(last_word.ids()) } else { u64::MAX };
    for_each_token_of(segment, doc, mask, interrupt, |met| {
        let (token, byte_offset) = match met {
            Met::Token(token, byte_offset) => (token, byte_offset),
            Met::Words(num_words) => {
                word_idx += num_words;
                return;
            }
        };
        if token >= segment.dag.num_words() {
            return;
        }
        let is_match = last_word.contains(token)
            && recent.len() == before.len()
            && recent.iter().zip(before).all(|(&(word, _), set)| set.contains(word));
        if is_match {
            let start = recent.front().map_or(byte_offset, |&(_, start)| start);
            found(Found {
                byte_offset: start,
                byte_len: byte_offset + segment.dag.len_bytes(token) - start,
                word_idx: word_idx - before.len() as u64,
            });
        }
        word_idx += 1;
        recent.push_back((token, byte_offset));
        if recent.len() > before.len() {
            recent.pop_front();
        }
    })
}

/// Calls `found` with each occurrence of one of `words` in document `doc`, in ascending order of
/// the offset. The arguments are the index in `words`, which ascend, and the byte offset.
pub(in crate::query) fn scan_doc_words(
    segment: &Segment,
    doc: DocId,
    words: &[u32],
    interrupt: &mut Interrupt<'_>,
    mut found: impl FnMut(usize, u64),
) -> Result<()> {
    // Nearly all tokens are none of the words, and one bit tells most of them.
    let mut seen = [0u64; SEEN_BITS / 64];
    for &word in words {
        let bit = word as usize % SEEN_BITS;
        seen[bit / 64] |= 1 << (bit % 64);
    }
    let mask = DocWords::mask(words.iter().copied());
    for_each_token_of(segment, doc, mask, interrupt, |met| {
        let Met::Token(token, byte_offset) = met else { return };
        let bit = token as usize % SEEN_BITS;
        if seen[bit / 64] >> (bit % 64) & 1 != 0
            && let Ok(idx) = words.binary_search(&token)
        {
            found(idx, byte_offset);
        }
    })
}

/// An item of a document's content.
enum Met {
    /// A token and its byte offset.
    Token(u32, u64),
    /// A number of words, none of which is searched for.
    Words(u64),
}

/// Calls `visit` with the content of document `doc`. Words in `mask` are visited as tokens.
fn for_each_token_of(
    segment: &Segment,
    doc: DocId,
    mask: u64,
    interrupt: &mut Interrupt<'_>,
    mut visit: impl FnMut(Met),
) -> Result<()> {
    let doc_words = segment.doc_words_or_derive_if_worth();
    let dag = &segment.dag;
    let symbols = &dag.grammar().symbols;
    let mut range = dag.doc_range(doc);
    let mut stack = Vec::new();
    let (mut byte_offset, mut before) = (0, Len::default());
    loop {
        let Some(position) = range.next() else {
            match stack.pop() {
                Some(outer) => range = outer,
                None => return Ok(()),
            }
            continue;
        };
        let element = symbols[position];
        let is_skipped = match dag.rule_of(element) {
            None => false,
            Some(rule_id) if doc_words.is_some_and(|it| it.has_none_of(mask, rule_id)) => true,
            Some(rule_id) => {
                // A blank before the rule lies before its first token.
                interrupt.check()?;
                let outer = std::mem::replace(&mut range, dag.rule_range(rule_id));
                if !outer.is_empty() {
                    stack.push(outer);
                }
                continue;
            }
        };
        let len = dag.len(element);
        byte_offset += len.blank_after(before);
        visit(if is_skipped { Met::Words(len.words) } else { Met::Token(element, byte_offset) });
        byte_offset += len.bytes;
        before = len;
    }
}
