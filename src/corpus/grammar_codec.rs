//! The grammar section: the root depth first, each rule written out where it is first used.
//!
//! ```text
//! root  a R7 b R7 c │ R7 = d R3 │ R3 = e e          a NEW(2) d NEW(2) e e b 1 c
//! ```

use super::cursor::{Cursor, Place, pack, push_varint};
use super::format::SegmentMeta;
use crate::error::{Error, Result};
use crate::grammar::Grammar;

/// Number of the coding in the footer.
pub(super) const CODEC: u16 = 0;
const DOC_END: u64 = 0;
const NEW_RULE: u64 = 1;
const FIRST_ELEMENT: u64 = 2;
const UNSEEN: u32 = u32::MAX;

/// The section's bytes for `grammar`, which is valid.
pub(super) fn encode(grammar: &Grammar) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    let mut numbers = vec![UNSEEN; grammar.num_rules()];
    let mut num_rules = 0;
    let mut doc_ends = grammar.doc_offsets[1..].iter().peekable();
    let mut open = vec![(0usize, grammar.rule_offsets[0])];
    while let Some(&mut (rule_idx, ref mut position)) = open.last_mut() {
        if rule_idx == 0 {
            while doc_ends.next_if(|&&end| end == *position).is_some() {
                push_varint(&mut raw, DOC_END);
            }
        }
        if *position == grammar.rule_offsets[rule_idx + 1] {
            numbers[rule_idx] = num_rules;
            num_rules += 1;
            open.pop();
            continue;
        }
        let element = grammar.symbols[*position as usize];
        *position += 1;
        let Some(child) = element.checked_sub(grammar.num_terminals) else {
            push_varint(&mut raw, FIRST_ELEMENT + u64::from(element));
            continue;
        };
        let child = child as usize;
        match numbers[child] {
            UNSEEN => {
                push_varint(&mut raw, NEW_RULE);
                push_varint(&mut raw, grammar.rule(child).len() as u64);
                open.push((child, grammar.rule_offsets[child]));
            }
            number => {
                let id = u64::from(grammar.num_terminals) + u64::from(number);
                push_varint(&mut raw, FIRST_ELEMENT + id);
            }
        }
    }
    let mut out = Vec::new();
    pack(&mut out, &raw, 9)?;
    Ok(out)
}

/// The grammar of the segment `meta` from its section.
pub(super) fn decode(place: Place<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Grammar> {
    let num_terminals = meta.num_words + meta.num_separators;
    let (num_rules, num_elements) = (meta.num_rules, meta.num_elements as usize);
    let last_rule = num_rules - 1;
    let mut cursor = Cursor::new(place, bytes);
    let max_len = num_elements.saturating_mul(12).saturating_add(meta.num_docs as usize);
    let raw = cursor.unpack(max_len)?;
    cursor.clone().finish()?;
    let mut raw = Cursor::new(place, &raw);
    let fault = || cursor.fault("expected rules that fit the declared counts");
    let mut symbols = vec![0u32; num_elements];
    let mut rule_offsets = vec![0u32; num_rules as usize + 1];
    let mut doc_offsets = vec![0u32];
    let (mut num_closed, mut end) = (0u32, num_elements);
    let mut pending: Vec<u32> = Vec::new();
    // (first element in `pending`, elements still to come)
    let mut open: Vec<(usize, usize)> = Vec::new();
    rule_offsets[num_rules as usize] = num_elements as u32;
    loop {
        if let Some(&(start, 0)) = open.last() {
            let body = &pending[start..];
            if num_closed == last_rule || body.len() > end {
                return Err(fault());
            }
            end -= body.len();
            symbols[end..end + body.len()].copy_from_slice(body);
            pending.truncate(start);
            rule_offsets[(last_rule - num_closed) as usize] = end as u32;
            pending.push(num_terminals + last_rule - num_closed);
            num_closed += 1;
            open.pop();
            if let Some((_, left)) = open.last_mut() {
                *left -= 1;
            }
            continue;
        }
        if open.is_empty() && raw.remaining() == 0 {
            break;
        }
        match raw.varint()? {
            DOC_END if open.is_empty() && (doc_offsets.len() as u64) <= meta.num_docs => {
                doc_offsets.push(pending.len() as u32);
            }
            NEW_RULE => {
                let len = raw.varint()? as usize;
                if len == 0 || len > num_elements || open.len() >= num_rules as usize {
                    return Err(fault());
                }
                open.push((pending.len(), len));
            }
            value => {
                let Some(id) = value.checked_sub(FIRST_ELEMENT) else { return Err(fault()) };
                let element = match id.checked_sub(u64::from(num_terminals)) {
                    None => id as u32,
                    Some(number) if number < u64::from(num_closed) => {
                        num_terminals + last_rule - number as u32
                    }
                    Some(_) => return Err(fault()),
                };
                if pending.len() >= num_elements {
                    return Err(fault());
                }
                pending.push(element);
                if let Some((_, left)) = open.last_mut() {
                    *left -= 1;
                }
            }
        }
    }
    if num_closed != last_rule
        || pending.len() != end
        || doc_offsets.len() as u64 != meta.num_docs + 1
    {
        return Err(fault());
    }
    symbols[..end].copy_from_slice(&pending);
    Ok(Grammar { num_terminals, rule_offsets, symbols, doc_offsets })
}

/// Tokens of the text, and how many of them are words, or `None` past 2^64.
pub(super) fn count_tokens(grammar: &Grammar, num_words: u32) -> Option<(u64, u64)> {
    let mut counts = vec![(0u64, 0u64); grammar.num_rules()];
    for rule_idx in (0..grammar.num_rules()).rev() {
        let (mut tokens, mut words) = (0u64, 0u64);
        for &element in grammar.rule(rule_idx) {
            let (t, w) = match element.checked_sub(grammar.num_terminals) {
                Some(child) => counts[child as usize],
                None => (1, u64::from(element < num_words)),
            };
            tokens = tokens.checked_add(t)?;
            words += w;
        }
        counts[rule_idx] = (tokens, words);
    }
    counts.first().copied()
}

/// The error of a writer that is handed a grammar of more elements than fit.
pub(super) fn mismatch(name: &'static str, got: u64, allowed: u64) -> Error {
    Error::InvalidArgument { name, got: got.to_string(), allowed: allowed.to_string() }
}
