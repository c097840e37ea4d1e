//! Tests of splices of texts in host memory: the text they make, and its words.

use super::super::edits_plan::{BatchPlan, OperationRef};
use super::*;
use tadoc::edits::{Edit, EditMode};

/// Documents in host memory, with a small dictionary.
pub(in super::super) struct HostText {
    pub(in super::super) docs: Vec<Vec<u8>>,
    terminals: Vec<Terminal>,
}

impl HostText {
    pub(in super::super) fn new(docs: Vec<Vec<u8>>) -> Self {
        Self { docs, terminals: vec![(true, (*b"power").into()), (false, (*b", ").into())] }
    }
}

impl BaseText for HostText {
    fn num_docs(&self) -> usize {
        self.docs.len()
    }

    fn doc_len_bytes(&self, doc: DocId) -> Result<u64, GpuError> {
        let what = "document";
        let got = doc.into();
        let expected = self.docs.len() as u64;
        let doc = self.docs.get(doc.index());
        doc.map(|doc| doc.len() as u64).ok_or(GpuError::Mismatch { what, got, expected })
    }

    fn read(&self, queries: &[PassageQuery]) -> Result<Passages, GpuError> {
        let passage = |query: &PassageQuery| {
            let doc = &self.docs[query.doc.index()];
            let end = query.offset.saturating_add(query.len_bytes).min(doc.len() as u64);
            &doc[query.offset as usize..end as usize]
        };
        Ok(Passages::joined(queries.iter().map(passage)))
    }

    fn terminal_id(&self, is_word: bool, bytes: &[u8]) -> Option<u32> {
        let at = self.terminals.iter().position(|own| own.0 == is_word && *own.1 == *bytes);
        at.map(|at| at as u32)
    }

    fn num_terminals(&self) -> u32 {
        self.terminals.len() as u32
    }
}

fn tokens(profile: TokenizerProfile, text: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut tokens = Vec::new();
    for_each_token(profile, text, |token| tokens.push((token.is_word, token.bytes.to_vec())));
    tokens
}

fn words(profile: TokenizerProfile, text: &[u8]) -> Vec<Vec<u8>> {
    let words = tokens(profile, text).into_iter().filter(|token| token.0);
    words.map(|(_, bytes)| bytes).collect()
}

/// Returns the text of document `doc` after `splices`, and its words: the old ones that stay, and
/// the new ones.
fn written(
    text: &HostText,
    profile: TokenizerProfile,
    splices: &Splices,
    doc: usize,
) -> (Vec<u8>, Vec<Vec<u8>>) {
    let old = &text.docs[splices.docs[doc] as usize];
    let terminal = |id: u32| match (id as usize).checked_sub(text.terminals.len()) {
        None => &text.terminals[id as usize],
        Some(new) => &splices.new_terminals[new],
    };
    let mut new = Vec::new();
    let mut new_words = Vec::new();
    let mut at = 0;
    let range = splices.starts[doc] as usize..splices.starts[doc + 1] as usize;
    for splice in range.clone() {
        let (from, to) = (splices.froms[splice] as usize, splices.tos[splice] as usize);
        assert!(from <= to && (splice == range.start || from >= at + 2));
        for border in [from, to] {
            // Checks that splices remove whole tokens.
            let apart = [tokens(profile, &old[..border]), tokens(profile, &old[border..])];
            assert_eq!(apart.concat(), tokens(profile, old));
        }
        new.extend_from_slice(&old[at..from]);
        new_words.extend(words(profile, &old[at..from]));
        let ids = splices.token_starts[splice] as usize..splices.token_starts[splice + 1] as usize;
        let mut after_word = false;
        for &id in &splices.tokens[ids] {
            let (is_word, bytes) = terminal(id);
            if after_word && *is_word {
                new.push(b' ');
            }
            new.extend_from_slice(bytes);
            after_word = *is_word;
            new_words.extend(is_word.then(|| bytes.to_vec()));
        }
        at = to;
    }
    new.extend_from_slice(&old[at..]);
    new_words.extend(words(profile, &old[at..]));
    (new, new_words)
}

#[test]
fn splices_put_whole_tokens_in_the_place_of_whole_tokens() {
    const TEXTS: [&str; 9] =
        ["power", "wer lo", " ", ", ", "X", "  power  ", "\u{65e5}\u{672c}", "a b", ""];
    let blob = "x".repeat(700);
    for seed in 0..100u64 {
        let mut state = seed;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        let mut docs: Vec<Vec<u8>> = Vec::new();
        for _ in 0..3 {
            let num_parts = below(40);
            let part = |_| if below(60) == 0 { &blob } else { TEXTS[below(9) as usize] };
            docs.push((0..num_parts).map(part).collect::<String>().into_bytes());
        }
        let text = HostText::new(docs);
        let mut edits = Vec::new();
        for _ in 0..below(12) {
            let doc_id = below(3);
            let len = text.docs[doc_id as usize].len() as u64;
            let offset_bytes = below(len + 1);
            let new = TEXTS[below(9) as usize].as_bytes().to_vec();
            edits.push(match below(6) {
                0 => {
                    let len_bytes = below(len - offset_bytes + 1);
                    Edit::DeleteText { doc_id, offset_bytes, len_bytes }
                }
                1 => Edit::AppendText { doc_id, text: new },
                _ => Edit::InsertText { doc_id, offset_bytes, text: new },
            });
        }
        let refs = edits.iter().map(OperationRef::Edit);
        let plan = BatchPlan::new(&text, EditMode::InBatch, refs).unwrap();
        for profile in
            [TokenizerProfile::Word, TokenizerProfile::Uax29, TokenizerProfile::Whitespace]
        {
            let splices = Splices::new(&text, profile, &plan.last).unwrap();
            for (doc, document) in plan.last.iter().enumerate() {
                let mut new = Vec::new();
                let mut at = 0;
                for change in &document.changes {
                    new.extend_from_slice(&text.docs[doc][at..change.start as usize]);
                    new.extend_from_slice(&change.text);
                    at = change.end as usize;
                }
                new.extend_from_slice(&text.docs[doc][at..]);
                let (got, got_words) = written(&text, profile, &splices, doc);
                assert_eq!(got, new);
                assert_eq!(got_words, words(profile, &new));
            }
        }
    }
}
