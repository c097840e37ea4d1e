//! The texts of short elements, one behind the other: what random access reads most.
//!
//! ```text
//! element   0     1     ..  num_terminals (root)  rule 1   rule 2  ..
//! starts    0     5     ..  none                  812      none    ..     none: more than 64 bytes
//! bytes     |power|loss |..                      |power loss of|
//! ```
//!
//! A passage of 64 bytes is some 14 tokens, and without these texts 11 rules are entered for them: 25
//! places in memory that are found one after the other. With them it is four or five elements, most
//! of the root. Measured on 100 MB of sources, one core of a shared machine: 64 bytes from
//! anywhere in 1.6 us instead of 3.4, and 0.26 instead of 0.94 where all is in cache. Texts of up to
//! 24, 48 and 128 bytes took 1.9, 1.7 and 1.5 us and 0.7, 0.9 and 1.2 of this memory: 18 MB for that
//! corpus of 112.9 MB, whose grammar and prefix sums take 63 MB.
//!
//! Each rule is put together from the texts of its elements, children before parents. O(bytes).

use super::Dag;

/// Longer expansions are not kept.
const MAX_TEXT_BYTES: u64 = 64;
/// Stands for an element without a text here.
const NONE: u32 = u32::MAX;

/// Texts of the elements of a segment that have few bytes.
#[derive(Debug)]
pub struct ShortTexts {
    starts: Vec<u32>,
    bytes: Vec<u8>,
}

impl ShortTexts {
    /// From the tokens, which lie at `offsets` of `arena` by id. Keeps nothing where all would not fit
    /// into 4 GiB.
    pub(super) fn new(dag: &Dag, arena: &[u8], offsets: &[u32]) -> Self {
        let len = len_bytes(dag);
        let mut texts = Self { starts: vec![NONE; dag.num_elements()], bytes: Vec::new() };
        if len >= u64::from(NONE) {
            return texts;
        }
        texts.bytes.reserve_exact(len as usize);
        for token in (0..dag.num_terminals()).filter(|&token| is_short(dag, token)) {
            texts.begin(token);
            let range = offsets[token as usize] as usize..offsets[token as usize + 1] as usize;
            texts.bytes.extend_from_slice(&arena[range]);
        }
        let (symbols, sums) = (&dag.grammar().symbols, dag.prefix_sums());
        // Rules refer forward, so what the last ones are made of is there first.
        for rule_idx in (1..dag.grammar().num_rules()).rev() {
            let element = dag.num_terminals() + rule_idx as u32;
            if !is_short(dag, element) {
                continue;
            }
            texts.begin(element);
            for position in dag.rule_range(rule_idx) {
                if sums.has_blank_before(position) {
                    texts.bytes.push(b' ');
                }
                let start = texts.starts[symbols[position] as usize] as usize;
                let end = start + dag.len_bytes(symbols[position]) as usize;
                texts.bytes.extend_from_within(start..end);
            }
        }
        texts
    }

    /// The text of `element` begins here.
    fn begin(&mut self, element: u32) {
        self.starts[element as usize] = self.bytes.len() as u32;
    }

    /// The text of `element`, and whatever lies behind it.
    #[inline]
    pub fn text_from(&self, element: u32) -> Option<&[u8]> {
        match self.starts[element as usize] {
            NONE => None,
            start => self.bytes.get(start as usize..),
        }
    }

    /// Main memory that the texts of `dag` take.
    pub(super) fn memory_bytes(dag: &Dag) -> usize {
        4 * dag.num_elements() + len_bytes(dag).min(u64::from(NONE)) as usize
    }
}

fn is_short(dag: &Dag, element: u32) -> bool {
    dag.len_bytes(element) <= MAX_TEXT_BYTES && element != dag.num_terminals()
}

/// Bytes of all short texts.
fn len_bytes(dag: &Dag) -> u64 {
    let elements = (0..dag.num_elements() as u32).filter(|&element| is_short(dag, element));
    elements.map(|element| dag.len_bytes(element)).sum()
}

#[cfg(test)]
mod tests {
    use crate::dag::tests::{dag_of, expanded};

    #[test]
    fn texts_are_expansions_of_rules() {
        let tokens: [&[u8]; 5] = [b"a", b"bb", &[b'x'; 65], b"", b","];
        // Words 0 to 2, separators 3 and 4, the root, rules 6 to 10.
        let rules: Vec<Vec<u32>> = vec![
            vec![6, 7, 8, 9, 2],
            vec![7, 1],
            vec![10, 3, 10],
            vec![9, 9, 9, 9, 9, 9, 9, 9],
            vec![10, 4, 10, 10],
            vec![0, 1],
        ];
        let lens: Vec<u32> = tokens.iter().map(|token| token.len() as u32).collect();
        let dag = dag_of(rules.clone(), &[0, 5], 3, &lens);
        let ends = lens.iter().scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        let offsets: Vec<u32> = [0].into_iter().chain(ends).collect();
        let texts = dag.short_texts(&tokens.concat(), &offsets);
        for element in 0..dag.num_elements() as u32 {
            // Alone in a document; another one uses the rules.
            let root = vec![element, 6, 7, 8, 9, 10];
            let root = if element == 5 { vec![6, 7, 8, 9, 10] } else { root };
            let end = root.len() as u32;
            let rules = [vec![root], rules[1..].to_vec()].concat();
            let alone = dag_of(rules, &[0, 1, end], 3, &lens);
            let text = &expanded(&alone, &tokens)[0];
            let got = texts.text_from(element).map(|text| &text[..dag.len_bytes(element) as usize]);
            let is_kept = element != 5 && text.len() <= 64;
            assert_eq!(got, is_kept.then_some(&text[..]), "{element}");
        }
        assert_eq!(
            texts.bytes.len() + 4 * texts.starts.len(),
            super::ShortTexts::memory_bytes(&dag)
        );
    }
}
