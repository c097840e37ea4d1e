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
//! Measured once, by a program that is not kept, on one core of a machine with other work and 262 MB of
//! Rust sources (13 million elements, layout fast); `benches/access.rs` times decoding: all documents
//! are decoded in 0.48 of the time that the memo of [`DocumentDecoder`](crate::read::DocumentDecoder)
//! takes, and in 0.57 without texts that are loaded ahead. Building takes a fifth of the time with the
//! memo.

use crate::segment::Dag;

/// Greatest length of a text.
const MAX_TEXT_BYTES: u64 = 64;
/// Number of bytes that may be read behind the start of every text.
pub const ELEMENT_TEXT_SLACK: usize = 64;
const LEN_SHIFT: u32 = 32;
/// Length that marks an element without a text.
const NO_TEXT: u8 = u8::MAX;
const BEGINS_WITH_WORD: u64 = 1 << 62;
const ENDS_WITH_WORD: u64 = 1 << 63;

/// Texts of the short elements of a segment.
#[derive(Debug)]
pub struct ElementTexts {
    places: Vec<Place>,
    /// Tokens, then texts of rules, then slack.
    texts: Vec<u8>,
}

/// Place of an element's text, and the edges of the element.
#[derive(Debug, Clone, Copy)]
pub struct Place(u64);

impl Place {
    fn new(dag: &Dag, element: u32, start: usize, len: Option<u8>) -> Self {
        let edge = |is_word, flag| if is_word { flag } else { 0 };
        Self(
            start as u64
                | u64::from(len.unwrap_or(NO_TEXT)) << LEN_SHIFT
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
        (len != NO_TEXT).then_some(usize::from(len))
    }

    /// Returns true if a blank is implied between `before` and this element.
    #[inline]
    pub fn has_blank_after(self, before: Self) -> bool {
        before.0 & self.0 << 1 & ENDS_WITH_WORD != 0
    }

    /// Returns the place before the first element of a rule or document: no blank follows it.
    pub fn before_first() -> Self {
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
        places.resize(dag.num_elements(), Place(u64::from(NO_TEXT) << LEN_SHIFT));
        for rule_id in grammar.rule_ids().skip(1).rev() {
            let element = grammar.element_of(rule_id);
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
    pub fn places_ahead<const N: usize>(&self, elements: &[u32]) -> [Place; N] {
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
    pub fn bytes_from(&self, place: Place) -> &[u8] {
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
    let lens = rules.map(|rule_id| dag.len_bytes(dag.grammar().element_of(rule_id)));
    lens.filter(|&len| len <= MAX_TEXT_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::dag::tests::dag_of;

    #[test]
    fn texts_have_the_blanks_inside_them() {
        // Words "a", "bb"; separators "", ",": rule 5 is "bb,a bb", rule 6 is "a bb".
        let (arena, offsets) = (b"abb,", [0, 1, 3, 3, 4]);
        let rules = vec![vec![5, 6, 5], vec![1, 3, 6], vec![0, 1]];
        let dag = dag_of(rules, &[0, 3], 2, &[1, 2, 0, 1]);
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
