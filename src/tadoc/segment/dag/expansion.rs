//! Expansion of documents into arrays of words, as a text without a grammar would have them.
//!
//! ```text
//! rule    R4       R3         R2              children first, so R2 copies the texts of R3 and R4
//! text    [a b]    [c a b]    [c a b d a b]
//! ```
//!
//! Small rules are expanded once, in the order of the grammar ([`RuleTexts`]: O(G + words), at most
//! 4 words for each element). A document copies their texts and descends into larger rules, with an
//! explicit stack. It needs O(words copied + rules entered) time.
//!
//! The kind of an element (word, separator, short rule, long rule) is almost random. So words and
//! separators have texts too, and [`SHORT_COPY`] words of every short text are copied, without a
//! branch. The next text overwrites the excess. Branches would be slower.
//!
//! # Texts of elements
//!
//! Text of every short element, for reading documents from end to end.
//!
//! ```text
//! places   start:32 | length:8 | begins, ends with a word:2      one for each element
//! texts    power loss of|the|disk| ... |power loss|power loss of the disk| ...
//!          tokens, as in the dictionary |  short rules, children first
//! ```
//!
//! A document is then a copy of a text for each of its elements, with blanks between words. An
//! expansion of more than [`MAX_TEXT_BYTES`] has no text; its rule is entered instead.
//!
//! Building takes O(elements of the short rules + bytes of their texts). Memory: 8 bytes for each
//! element, and the texts.
//!
//! Measured once, by a program that is not kept, on one core of a machine with other work and 262 MB of Rust sources
//! (13 million elements, layout fast); `benches/access.rs` times decoding: all documents are decoded in 0.48 of the
//! time that the memo of [`DocumentDecoder`](crate::read::DocumentDecoder) takes, and in 0.57 without texts that are
//! loaded ahead. Building takes a fifth of the time with the memo.

use std::ops::Range;

use crate::ids::RuleId;
use crate::segment::Dag;

/// Greatest number of words of a rule that has a text.
const MAX_TEXT_WORDS: u64 = 64;
/// Greatest number of words in all texts, for each element of the grammar.
const TEXT_WORDS_PER_ELEMENT: usize = 4;
/// Length that marks a rule without a text.
const NO_TEXT: usize = u32::MAX as usize;
/// Number of words in a short text: a cache line.
const SHORT_COPY: usize = 16;
/// Greatest number of words of a document: 16 MiB, in a buffer for up to twice as many.
pub(crate) const MAX_WORDS: u64 = 1 << 22;

/// Words of small rules.
#[derive(Debug)]
pub(crate) struct RuleTexts {
    /// Start in `words` and length of each separator and rule.
    ranges: Vec<(u32, u32)>,
    /// All texts one after another, then room for a short copy.
    words: Vec<u32>,
}

impl RuleTexts {
    /// Builds the texts from children to parents.
    pub fn new(dag: &Dag) -> Self {
        let grammar = dag.grammar();
        let num_words = dag.num_words();
        let max_words = grammar.symbols.len().saturating_mul(TEXT_WORDS_PER_ELEMENT);
        let max_words = max_words.min(NO_TEXT - 1);
        let num_separators = (dag.num_terminals() - num_words) as usize;
        let mut ranges = vec![(0, 0); num_separators];
        ranges.resize(num_separators + grammar.num_rules(), (0, NO_TEXT as u32));
        let mut texts = Self { ranges, words: Vec::new() };
        let mut end = 0;
        for rule_id in grammar.rule_ids().skip(1).rev() {
            let len = dag.len_words(grammar.element_for(rule_id));
            if len > MAX_TEXT_WORDS || end + len as usize > max_words {
                continue;
            }
            if texts.write(dag, rule_id, end) {
                texts.ranges[num_separators + rule_id.index()] = (end as u32, len as u32);
                end += len as usize;
            }
        }
        texts.words.resize(end + SHORT_COPY, 0);
        texts.words.shrink_to_fit();
        texts
    }

    /// Writes the words of a rule from `end` on. Returns true if all rules in it have a text.
    fn write(&mut self, dag: &Dag, rule_id: RuleId, mut end: usize) -> bool {
        for &element in dag.grammar().rule(rule_id) {
            let (start, len) = self.range(dag.num_words(), element);
            if len == NO_TEXT {
                return false;
            }
            make_room(&mut self.words, end.max(start) + len.max(SHORT_COPY));
            match len {
                ..=SHORT_COPY => {
                    let first = first_word(self.words[start], dag.num_words(), element);
                    self.words.copy_within(start..start + SHORT_COPY, end);
                    self.words[end] = first;
                }
                _ => self.words.copy_within(start..start + len, end),
            }
            end += len;
        }
        true
    }

    /// Returns the start and length of the text of `element`. For a word the start is arbitrary.
    #[inline]
    fn range(&self, num_words: u32, element: u32) -> (usize, usize) {
        let is_word = element < num_words;
        let (start, len) = self.ranges[if is_word { 0 } else { (element - num_words) as usize }];
        if is_word { (0, 1) } else { (start as usize, len as usize) }
    }

    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        8 * self.ranges.capacity() + 4 * self.words.capacity()
    }
}

/// Returns the first word of the short text of `element`: the element if it is a word, else
/// `first`.
#[inline]
fn first_word(first: u32, num_words: u32, element: u32) -> u32 {
    if element < num_words { element } else { first }
}

/// Extends `words` to at least `len` entries.
#[inline]
fn make_room(words: &mut Vec<u32>, len: usize) {
    if words.len() < len {
        words.resize(len + len / 2, 0);
    }
}

/// Buffer for the words of one document at a time.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    words: Vec<u32>,
    stack: Vec<Range<usize>>,
}

impl Expansion {
    /// Returns the words at `positions` of one rule. It does not enter rules without words.
    pub fn expand(&mut self, dag: &Dag, texts: &RuleTexts, positions: Range<usize>) -> &[u32] {
        let symbols = &dag.grammar().symbols[..];
        let num_words = dag.num_words();
        let mut range = positions;
        let mut end = 0;
        loop {
            let Some(position) = range.next() else {
                match self.stack.pop() {
                    Some(outer) => range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            let (start, len) = texts.range(num_words, element);
            match len {
                ..=SHORT_COPY => {
                    make_room(&mut self.words, end + SHORT_COPY);
                    let text = &texts.words[start..start + SHORT_COPY];
                    let to = &mut self.words[end..end + SHORT_COPY];
                    to.copy_from_slice(text);
                    to[0] = first_word(text[0], num_words, element);
                    end += len;
                }
                NO_TEXT => {
                    if let Some(rule_id) = dag.rule_of(element).filter(|_| dag.len_words(element) > 0) {
                        let outer = std::mem::replace(&mut range, dag.rule_range(rule_id));
                        if !outer.is_empty() {
                            self.stack.push(outer);
                        }
                    }
                }
                _ => {
                    make_room(&mut self.words, end + len);
                    self.words[end..end + len].copy_from_slice(&texts.words[start..start + len]);
                    end += len;
                }
            }
        }
        &self.words[..end]
    }

    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        4 * self.words.capacity()
    }
}

/// Returns the number of words at `positions` of one rule, at most 2^64 - 1.
pub(crate) fn num_words_at(dag: &Dag, positions: Range<usize>) -> u64 {
    let lens = dag.grammar().symbols[positions].iter().map(|&element| dag.len_words(element));
    lens.fold(0, u64::saturating_add)
}

/// Greatest length of a text.
const MAX_TEXT_BYTES: u64 = 64;
/// Number of bytes that may be read behind the start of every text.
pub(crate) const ELEMENT_TEXT_SLACK: usize = 64;
const LEN_SHIFT: u32 = 32;
/// Length that marks an element without a text.
const NO_LEN: u8 = u8::MAX;
const BEGINS_WITH_WORD: u64 = 1 << 62;
const ENDS_WITH_WORD: u64 = 1 << 63;

/// Texts of the short elements of a segment.
#[derive(Debug)]
pub(crate) struct ElementTexts {
    places: Vec<Place>,
    /// Tokens, then texts of rules, then slack.
    texts: Vec<u8>,
}

/// Place of an element's text, and the edges of the element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(u64);

impl Place {
    fn new(dag: &Dag, element: u32, start: usize, len: Option<u8>) -> Self {
        let edge = |is_word, flag| if is_word { flag } else { 0 };
        Self(
            start as u64
                | u64::from(len.unwrap_or(NO_LEN)) << LEN_SHIFT
                | edge(dag.begins_with_word(element), BEGINS_WITH_WORD)
                | edge(dag.ends_with_word(element), ENDS_WITH_WORD),
        )
    }

    /// Returns the start of the text of a token or short rule.
    #[inline]
    fn start(self) -> usize {
        self.0 as u32 as usize
    }

    /// Returns the length of the text, or `None` for a long token or rule.
    #[inline]
    pub fn len_bytes(self) -> Option<usize> {
        let len = (self.0 >> LEN_SHIFT) as u8;
        (len != NO_LEN).then_some(usize::from(len))
    }

    /// Returns true if a blank is implied between `before` and this element.
    #[inline]
    pub(crate) fn has_blank_after(self, before: Self) -> bool {
        before.0 & self.0 << 1 & ENDS_WITH_WORD != 0
    }

    /// Returns the place before the first element of a rule or document: no blank follows it.
    pub(crate) fn before_first() -> Self {
        Self(0)
    }
}

impl ElementTexts {
    /// Builds the texts of `dag`. The tokens lie at `offsets` of `arena` by id. Returns `None` if
    /// they would take 4 GiB.
    pub(in crate::segment) fn new(dag: &Dag, arena: &[u8], offsets: &[u32]) -> Option<Self> {
        let grammar = dag.grammar();
        let num_bytes = arena.len() as u64 + rule_texts_bytes(dag) + ELEMENT_TEXT_SLACK as u64;
        u32::try_from(num_bytes).ok()?;
        let mut texts = Vec::with_capacity(num_bytes as usize);
        texts.extend_from_slice(arena);
        let token = |token: u32| {
            let [start, end] = [token, token + 1].map(|at| offsets[at as usize] as usize);
            Place::new(dag, token, start, short_len((end - start) as u64))
        };
        let mut places = Vec::with_capacity(dag.num_elements());
        places.extend((0..dag.num_terminals()).map(token));
        places.resize(dag.num_elements(), Place(u64::from(NO_LEN) << LEN_SHIFT));
        for rule_id in grammar.rule_ids().skip(1).rev() {
            let element = grammar.element_for(rule_id);
            let len = short_len(dag.len_bytes(element));
            places[element as usize] = Place::new(dag, element, texts.len(), len);
            if len.is_some() {
                push_text(grammar.rule(rule_id), &places, &mut texts);
            }
        }
        texts.resize(texts.len() + ELEMENT_TEXT_SLACK, 0);
        Some(Self { places, texts })
    }

    /// Returns the place of an element, which exists.
    #[inline]
    pub fn place(&self, element: u32) -> Place {
        self.places[element as usize]
    }

    /// Returns the places of up to `N` elements. The loads of their texts from memory are issued at
    /// once, so that copying does not wait for each.
    #[inline]
    pub(crate) fn places_ahead<const N: usize>(&self, elements: &[u32]) -> [Place; N] {
        let mut places = [Place::before_first(); N];
        for (place, &element) in places.iter_mut().zip(elements) {
            *place = self.places[element as usize];
        }
        let first_byte = |place: &Place| self.texts.get(place.start()).copied().unwrap_or(0);
        std::hint::black_box(places.iter().map(first_byte).fold(0, |all, byte| all ^ byte));
        places
    }

    /// Returns the bytes from the start of a token or short rule on, at least
    /// [`ELEMENT_TEXT_SLACK`].
    #[inline]
    pub(crate) fn bytes_from(&self, place: Place) -> &[u8] {
        &self.texts[place.start()..]
    }

    /// Returns the number of bytes of main memory in use.
    pub(in crate::segment) fn memory_bytes(&self) -> usize {
        size_of::<Place>() * self.places.capacity() + self.texts.capacity()
    }

    /// Returns the number of bytes of main memory that the texts of `dag` need, whose tokens have
    /// `arena_len_bytes`.
    pub(in crate::segment) fn max_memory_bytes(dag: &Dag, arena_len_bytes: usize) -> usize {
        let texts = arena_len_bytes + rule_texts_bytes(dag) as usize + ELEMENT_TEXT_SLACK;
        size_of::<Place>() * dag.num_elements() + texts
    }
}

/// Appends the text of a short rule with these `elements`, which are short and have places.
fn push_text(elements: &[u32], places: &[Place], texts: &mut Vec<u8>) {
    let mut before = Place::before_first();
    for &element in elements {
        let place = places[element as usize];
        if place.has_blank_after(before) {
            texts.push(b' ');
        }
        let len = place.len_bytes().unwrap_or(0);
        texts.extend_from_within(place.start()..place.start() + len);
        before = place;
    }
}

fn short_len(len_bytes: u64) -> Option<u8> {
    (len_bytes <= MAX_TEXT_BYTES).then_some(len_bytes as u8)
}

/// Returns the number of bytes of the texts of all short rules.
fn rule_texts_bytes(dag: &Dag) -> u64 {
    let rules = dag.grammar().rule_ids().skip(1);
    let lens = rules.map(|rule_id| dag.len_bytes(dag.grammar().element_for(rule_id)));
    lens.filter(|&len| len <= MAX_TEXT_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::dag_for;
    use super::*;

    fn slow(dag: &Dag, positions: Range<usize>) -> Vec<u32> {
        let mut pending: Vec<u32> = dag.grammar().symbols[positions].iter().rev().copied().collect();
        let mut words = Vec::new();
        while let Some(element) = pending.pop() {
            match dag.rule_of(element) {
                Some(rule_id) => pending.extend(dag.grammar().rule(rule_id).iter().rev()),
                None if element < dag.num_words() => words.push(element),
                None => {}
            }
        }
        words
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_rules(
            root in prop::collection::vec(0u32..14, 1..60),
            inner in prop::collection::vec(0u32..5, 2..20),
        ) {
            // Words 0 to 2, separators 3 and 4. Rule r is twice rule r + 1 and a separator, up to
            // 19 * 2^7 words.
            let used = root.into_iter().map(|e| if e < 5 { e } else { (e - 5) % 8 + 6 });
            let root: Vec<u32> = used.chain(6..14).collect();
            let mut rules = vec![root];
            rules.extend((7..14).map(|next| vec![next, 3, next]));
            rules.push(inner);
            let end = rules[0].len() as u32;
            let dag = dag_for(rules, &[0, end / 2, end], 3, &[1, 2, 3, 1, 1]);
            let texts = RuleTexts::new(&dag);
            let mut expansion = Expansion::default();
            for positions in [0..end as usize, 0..end as usize / 2, end as usize - 1..end as usize, 0..0] {
                let expected = slow(&dag, positions.clone());
                prop_assert_eq!(expansion.expand(&dag, &texts, positions), expected);
            }
        }
    }

    #[test]
    fn texts_have_the_blanks_inside_them() {
        // Words "a", "bb"; separators "", ",": rule 5 is "bb,a bb", rule 6 is "a bb".
        let arena = b"abb,";
        let offsets = [0, 1, 3, 3, 4];
        let rules = vec![vec![5, 6, 5], vec![1, 3, 6], vec![0, 1]];
        let dag = dag_for(rules, &[0, 3], 2, &[1, 2, 0, 1]);
        let texts = ElementTexts::new(&dag, arena, &offsets).unwrap();
        let text = |element: u32| {
            let place = texts.place(element);
            place.len_bytes().map(|len| &texts.bytes_from(place)[..len])
        };
        assert_eq!(text(4), None);
        assert_eq!([0, 1, 2, 3].map(text), [&b"a"[..], b"bb", b"", b","].map(Some));
        assert_eq!([5, 6].map(text), [&b"bb,a bb"[..], b"a bb"].map(Some));
        assert!(texts.place(6).has_blank_after(texts.place(5)));
        assert!(!texts.place(6).has_blank_after(texts.place(3)));
        assert!(!texts.place(6).has_blank_after(Place::before_first()));
        assert!(texts.memory_bytes() <= ElementTexts::max_memory_bytes(&dag, arena.len()));
    }
}
