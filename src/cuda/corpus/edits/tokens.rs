//! Splices: converts changes of bytes to replacements of whole tokens.
//!
//! ```text
//! text       … the power loss of …       insert "wer ro" at 6
//! window       [the po|wer loss]         read on the device, 48 bytes to each side, or more
//! splice        [the power rower] loss   from the last cut before the change to the first after
//! ```
//!
//! The text between two cuts ([`tadoc::text::last_cut`]) is tokenized independently. So splices remove whole tokens and
//! insert whole tokens. Changes with fewer than two bytes between their cuts become one splice. Tokens are looked up in
//! the dictionary; new ones get ids after all terminals. All cores work on the documents. O(bytes of windows and
//! texts), and log words for each token.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::GpuError;
use tadoc::ids::DocId;
use tadoc::text::{TokenizerProfile, first_cut, for_each_token, last_cut};

use super::plan::{Change, NewDocument};
use super::text::{BaseText, Terminal};
use crate::corpus::text::{PassageQuery, Passages};

/// Bytes on each side of a change in the first search for a cut, and the growth factor of the next
/// window.
const WINDOW_BYTES: u64 = 48;
const WINDOW_GROWTH: u64 = 9;
/// Documents per task.
const MIN_DOCUMENTS: usize = 16;
/// Mark on the numbers of terminals that only one task knows.
const IS_NEW: u32 = 1 << 31;

/// The insertions into documents, in the form that `corpus_edits` takes.
#[derive(Debug, Default)]
pub(super) struct Splices {
    pub(super) docs: Vec<u32>,
    pub(super) doc_lens: Vec<u64>,
    pub(super) starts: Vec<u32>,
    pub(super) froms: Vec<u64>,
    pub(super) tos: Vec<u64>,
    pub(super) token_starts: Vec<u32>,
    pub(super) tokens: Vec<u32>,
    /// Terminals that the text does not have, in the order of their ids.
    pub(super) new_terminals: Vec<Terminal>,
}

/// The windows of a change: the bytes before its start and those after its end.
#[derive(Debug, Clone, Copy, Default)]
struct Windows {
    /// Round of reading in which both cuts were found, and the place in that round.
    round: usize,
    place: usize,
    /// Bytes from the cut to the change, and from the change to the cut.
    num_before: u64,
    num_behind: u64,
}

/// A change whose cuts are still to be found.
struct Pending {
    change: usize,
    doc: DocId,
    doc_len: u64,
    start: u64,
    end: u64,
}

impl Splices {
    /// Builds the splices for `documents` of `text`.
    ///
    /// # Errors
    ///
    /// The errors of reading passages.
    pub(super) fn new(
        text: &impl BaseText,
        profile: TokenizerProfile,
        documents: &[NewDocument],
    ) -> Result<Self, GpuError> {
        let (windows, rounds) = read_windows(text, profile, documents)?;
        let mut first_changes = Vec::with_capacity(documents.len());
        let mut num_changes = 0;
        for document in documents {
            first_changes.push(num_changes);
            num_changes += document.changes.len();
        }
        let [empty, blank] = [&b""[..], b" "].map(|bytes| text.terminal_id(false, bytes));
        let parts: Vec<Writer<'_, _>> = documents
            .par_chunks(MIN_DOCUMENTS)
            .zip(first_changes.par_chunks(MIN_DOCUMENTS))
            .map(|(documents, firsts)| {
                let mut writer = Writer::new(text, profile);
                for (document, &first) in documents.iter().zip(firsts) {
                    writer.add(document, &windows[first..], &rounds);
                }
                writer
            })
            .collect();
        let mut splices = Self::default();
        let mut numbers = Numbers { first: text.num_terminals(), new: FxHashMap::default() };
        // Tokens that kernels insert next to cuts.
        for (is_there, bytes) in [(empty, &b""[..]), (blank, b" ")] {
            let id = is_there.unwrap_or_else(|| splices.number(&mut numbers, false, bytes));
            splices.tokens.push(id);
        }
        splices.token_starts.push(splices.tokens.len() as u32);
        splices.starts.push(0);
        for part in parts {
            splices.append(&mut numbers, part);
        }
        splices.docs = documents.iter().map(|document| document.doc.into()).collect();
        splices.doc_lens = documents.iter().map(|document| document.len_bytes).collect();
        Ok(splices)
    }

    /// Returns the id of a terminal that the text does not have.
    fn number(&mut self, numbers: &mut Numbers, is_word: bool, bytes: &[u8]) -> u32 {
        let next = numbers.first + self.new_terminals.len() as u32;
        let key = (is_word, Box::from(bytes));
        *numbers.new.entry(key).or_insert_with_key(|key| {
            self.new_terminals.push(key.clone());
            next
        })
    }

    fn append(&mut self, numbers: &mut Numbers, part: Writer<'_, impl BaseText>) {
        let new: Vec<u32> =
            part.new_terminals.iter().map(|(is_word, bytes)| self.number(numbers, *is_word, bytes)).collect();
        let first = self.tokens.len() as u32;
        let id = |token: &u32| match token & IS_NEW {
            0 => *token,
            _ => new[(token & !IS_NEW) as usize],
        };
        self.tokens.extend(part.tokens.iter().map(id));
        self.token_starts.extend(part.token_ends.iter().map(|end| first + end));
        let first = self.froms.len() as u32;
        self.starts.extend(part.ends.iter().map(|end| first + end));
        self.froms.extend(part.froms);
        self.tos.extend(part.tos);
    }
}

/// Ids of terminals that the text does not have.
struct Numbers {
    first: u32,
    new: FxHashMap<Terminal, u32>,
}

/// Reads around all changes until there is a cut on both sides or the document ends.
fn read_windows(
    text: &impl BaseText,
    profile: TokenizerProfile,
    documents: &[NewDocument],
) -> Result<(Vec<Windows>, Vec<Passages>), GpuError> {
    let mut pending = Vec::new();
    for document in documents {
        let doc_len = text.doc_len_bytes(document.doc)?;
        for &Change { start, end, .. } in &document.changes {
            let change = pending.len();
            pending.push(Pending { change, doc: document.doc, doc_len, start, end });
        }
    }
    let mut windows = vec![Windows::default(); pending.len()];
    let mut rounds = Vec::new();
    let mut window = WINDOW_BYTES;
    while !pending.is_empty() {
        let query = |at: &Pending| {
            let first = at.start.saturating_sub(window);
            let before = PassageQuery { doc: at.doc, offset: first, len_bytes: at.start - first };
            let behind = PassageQuery { doc: at.doc, offset: at.end, len_bytes: window };
            [before, behind]
        };
        let queries: Vec<PassageQuery> = pending.iter().flat_map(query).collect();
        let seen = text.read(&queries)?;
        let round = rounds.len();
        let look = |(place, at): (usize, &Pending)| {
            let before = seen.get(2 * place);
            let behind = seen.get(2 * place + 1);
            let is_start_seen = before.len() as u64 == at.start;
            let is_end_seen = behind.len() as u64 == at.doc_len - at.end;
            let from = last_cut(profile, before).or(is_start_seen.then_some(0))?;
            let to = first_cut(profile, behind).or(is_end_seen.then_some(behind.len()))?;
            let num_before = (before.len() - from) as u64;
            Some(Windows { round, place: 2 * place, num_before, num_behind: to as u64 })
        };
        let looked: Vec<Option<Windows>> =
            pending.par_iter().enumerate().map(|(place, at)| look((place, at))).collect();
        let mut left = Vec::new();
        for (at, looked) in pending.into_iter().zip(looked) {
            match looked {
                Some(found) => windows[at.change] = found,
                None => left.push(at),
            }
        }
        pending = left;
        rounds.push(seen);
        window = window.saturating_mul(WINDOW_GROWTH);
    }
    Ok((windows, rounds))
}

/// The splices of some documents.
struct Writer<'a, T> {
    text: &'a T,
    profile: TokenizerProfile,
    /// Number of splices up to the end of each document.
    ends: Vec<u32>,
    froms: Vec<u64>,
    tos: Vec<u64>,
    /// Number of tokens up to the end of each splice.
    token_ends: Vec<u32>,
    tokens: Vec<u32>,
    new_terminals: Vec<Terminal>,
    /// Ids that were looked up, of separators and of words.
    ids: [FxHashMap<Box<[u8]>, u32>; 2],
    /// Text of a splice.
    bytes: Vec<u8>,
}

impl<'a, T: BaseText> Writer<'a, T> {
    fn new(text: &'a T, profile: TokenizerProfile) -> Self {
        Self {
            text,
            profile,
            ends: Vec::new(),
            froms: Vec::new(),
            tos: Vec::new(),
            token_ends: Vec::new(),
            tokens: Vec::new(),
            new_terminals: Vec::new(),
            ids: Default::default(),
            bytes: Vec::new(),
        }
    }

    /// Adds the splices of `document`. The first of `windows` belongs to its first change.
    fn add(&mut self, document: &NewDocument, windows: &[Windows], rounds: &[Passages]) {
        let mut at = 0;
        while let Some(change) = document.changes.get(at) {
            let own = windows[at];
            let from = change.start - own.num_before;
            let before = rounds[own.round].get(own.place);
            self.bytes.clear();
            self.bytes.extend_from_slice(&before[before.len() - own.num_before as usize..]);
            self.bytes.extend_from_slice(&change.text);
            let mut last = change;
            let mut own = own;
            at += 1;
            // Joins changes whose cuts are too close.
            while let Some(next) = document.changes.get(at)
                && next.start - windows[at].num_before < last.end + own.num_behind + 2
            {
                let next_own = windows[at];
                let behind = rounds[own.round].get(own.place + 1);
                let before = rounds[next_own.round].get(next_own.place);
                let between = next.start - last.end;
                // The second window shows the bytes that the first one does not reach.
                let from_first = between.min(behind.len() as u64);
                self.bytes.extend_from_slice(&behind[..from_first as usize]);
                let from_second = (between - from_first) as usize;
                self.bytes.extend_from_slice(&before[before.len() - from_second..]);
                self.bytes.extend_from_slice(&next.text);
                (last, own) = (next, next_own);
                at += 1;
            }
            let behind = rounds[own.round].get(own.place + 1);
            self.bytes.extend_from_slice(&behind[..own.num_behind as usize]);
            self.froms.push(from);
            self.tos.push(last.end + own.num_behind);
            self.add_tokens();
        }
        self.ends.push(self.froms.len() as u32);
    }

    /// Adds the tokens of the text of a splice. A single blank between two words is implied, but
    /// not at the ends of the text.
    fn add_tokens(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut after_word = false;
        let mut has_blank = false;
        for_each_token(self.profile, &bytes, |token| {
            if token.bytes == b" " && !token.is_word && !has_blank {
                has_blank = true;
                return;
            }
            let meets_word = after_word && token.is_word;
            if std::mem::take(&mut has_blank) != meets_word {
                self.push(false, if meets_word { b"" } else { b" " });
            }
            self.push(token.is_word, token.bytes);
            after_word = token.is_word;
        });
        if has_blank {
            self.push(false, b" ");
        }
        self.token_ends.push(self.tokens.len() as u32);
        self.bytes = bytes;
    }

    fn push(&mut self, is_word: bool, bytes: &[u8]) {
        let known = self.ids[usize::from(is_word)].get(bytes).copied();
        let id = known.unwrap_or_else(|| {
            let id = self.text.terminal_id(is_word, bytes).unwrap_or_else(|| {
                self.new_terminals.push((is_word, bytes.into()));
                IS_NEW | (self.new_terminals.len() - 1) as u32
            });
            self.ids[usize::from(is_word)].insert(bytes.into(), id);
            id
        });
        self.tokens.push(id);
    }
}

/// Tests of splices of texts in host memory: the text they make, and its words.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::corpus::edits::plan::{BatchPlan, OperationRef};
    use tadoc::edits::{Edit, EditMode};

    /// Documents in host memory, with a small dictionary.
    pub(in crate::corpus) struct HostText {
        pub(in crate::corpus) docs: Vec<Vec<u8>>,
        terminals: Vec<Terminal>,
    }

    impl HostText {
        pub(in crate::corpus) fn new(docs: Vec<Vec<u8>>) -> Self {
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

    /// Returns the text of document `doc` after `splices`, and its words: the old ones that stay,
    /// and the new ones.
    fn written(text: &HostText, profile: TokenizerProfile, splices: &Splices, doc: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
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
            let from = splices.froms[splice] as usize;
            let to = splices.tos[splice] as usize;
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
        const TEXTS: [&str; 9] = ["power", "wer lo", " ", ", ", "X", "  power  ", "\u{65e5}\u{672c}", "a b", ""];
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
            for profile in TokenizerProfile::ALL {
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
}
