//! Documents as runs of pieces of text, the structure for random access.
//!
//! ```text
//! texts    | power loss of the disk was noted by ...      bytes that pieces refer to
//! pieces   |0,22|7,4|64,19|ref 0|12,9| ..                 start, length; "ref": long rule or token
//! runs     document 0      document 1  ..  rule of ref 0  ..
//! blocks   sum of lengths before it | 12 starts | 12 lengths        one cache line
//! hints    approximate block for each part of the root
//! ```
//!
//! In this module a piece is a range of `texts`, and a run is a sequence of pieces. A passage of 64 bytes has about 14
//! tokens. Reading it from the rules takes 25 memory accesses, each of which depends on the one before. Here it takes a
//! hint, one or two blocks and the texts of three pieces. The texts depend only on the block, so the chain is three
//! loads long instead of twelve. A text is stored where it first occurs, with the blank before it. So pieces that were
//! neighbours there are one piece (up to 255 bytes) wherever they occur together again.
//!
//! Rules of up to [`MAX_TEXT_BYTES`] are texts. A longer rule is inlined into the runs that contain
//! it if it has few pieces. Otherwise it has a run of its own. The runs have at most a quarter more
//! pieces than the grammar has elements. If references alone exceed this, no runs are built, and
//! passages are read from the rules. Building takes O(pieces + bytes of the texts).
//!
//! The runs need less memory than grammar and prefix sums, and reads from random positions take less than half of the
//! time. Texts of 32 bytes need more memory and time, texts of 127 gain little.

use crate::ids::RuleId;
use crate::segment::Dag;
use crate::segment::dag::RootHints;
use crate::segment::dag::prefix::PrefixSums;

/// Greatest length of a short text. Longer expansions consist of pieces.
const MAX_TEXT_BYTES: u64 = 64;
/// Greatest number of pieces of a rule that is inlined. The second and the third value are tried if
/// the previous one makes too many pieces.
const MAX_INLINED: [u8; 3] = [32, 8, 0];
/// Number of bytes that may be read behind every text.
pub(crate) const TEXT_SLACK: usize = 32;
/// Number of pieces whose texts are loaded ahead.
const PIECES_AHEAD: usize = 4;
/// Number of pieces in a block.
const BLOCK_LEN: usize = 12;
/// Kinds of elements that are not short texts. Greater values than the first give the number of
/// inlined pieces.
const INLINED: u8 = MAX_TEXT_BYTES as u8;
const REFERENCE: u8 = u8::MAX;
/// Mark of an element without a place in the texts.
const NONE: u32 = u32::MAX;
/// Flag of a place with a blank before it. All texts together are shorter than this.
const AFTER_BLANK: u32 = 1 << 31;

/// Documents of a segment as runs of pieces.
#[derive(Debug)]
pub(crate) struct TextRuns {
    blocks: Vec<Block>,
    texts: Vec<u8>,
    references: Vec<Reference>,
    root: TextRun,
    hints: RootHints,
}

/// A cache line of pieces.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Block {
    /// Bytes of all pieces before the block, wrapping.
    sum: u32,
    starts: [u32; BLOCK_LEN],
    lens: [u8; BLOCK_LEN],
}

/// A sequence of consecutive pieces.
#[derive(Debug, Clone, Copy)]
struct TextRun {
    first: u32,
    end: u32,
    /// Bytes of all pieces before the run, wrapping.
    sum: u32,
}

/// A rule or token that is too long for a piece.
#[derive(Debug, Clone, Copy)]
struct Reference {
    len_bytes: u32,
    source: Source,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// Start of the token in the arena.
    Token(u32),
    Run(TextRun),
}

/// Pieces that are still to be read, and the number of bytes to skip in the first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor {
    next: u32,
    end: u32,
    skipped: u32,
}

/// Next content at a [`Cursor`].
#[derive(Debug)]
pub(crate) enum Next<'a> {
    /// Text and the number of its bytes to use. The bytes behind them belong to other texts.
    Text(&'a [u8], usize),
    /// Pieces to read before those that follow the cursor.
    Inner(Cursor),
    /// End of the run.
    End,
}

impl TextRuns {
    /// Builds the runs of `dag`, whose prefix sums are `sums`. The tokens lie at `offsets` of
    /// `arena` by id. Returns `None` if the runs would be much larger than the grammar, or if an
    /// expansion has 4 GiB.
    pub(in crate::segment) fn new(dag: &Dag, sums: &PrefixSums, arena: &[u8], offsets: &[u32]) -> Option<Self> {
        let root_bytes = sums.starts(dag, dag.grammar().root().len())[0];
        let plan = MAX_INLINED.iter().find_map(|&most| Plan::new(dag, most))?;
        // A text is stored at most twice: as it first occurs, and with a blank before it.
        let most_texts = 2 * (short_texts_bytes(dag) + dag.num_elements() as u64) + plan.num_pieces;
        if root_bytes >= u64::from(NONE) || most_texts >= u64::from(AFTER_BLANK) {
            return None;
        }
        let mut builder = Builder::new(dag, sums, arena, offsets, plan);
        builder.push_documents();
        let root = TextRun { first: 0, end: builder.num_pieces, sum: 0 };
        let num_blocks = builder.blocks.len();
        builder.push_references()?;
        let Builder { mut blocks, mut texts, references, .. } = builder;
        texts.extend_from_slice(&[0; TEXT_SLACK]);
        texts.shrink_to_fit();
        blocks.shrink_to_fit();
        let starts = blocks[..num_blocks].iter().map(|block| u64::from(block.sum));
        let hints = RootHints::new(starts, root_bytes, 1);
        Some(Self { blocks, texts, references, root, hints })
    }

    /// Returns the pieces of the root from byte `at` on. Documents follow each other without gaps.
    /// `at` must be less than the length of the root.
    #[inline]
    pub(crate) fn root_from(&self, at: u64) -> Cursor {
        self.root_within(self.hints.window(at), at)
    }

    /// Returns the first and the last block that may contain byte `at` of the root.
    #[inline]
    pub(crate) fn root_window(&self, at: u64) -> (usize, usize) {
        self.hints.window(at)
    }

    /// Returns the same as [`root_from`](Self::root_from), given the
    /// [`root_window`](Self::root_window) of `at`.
    #[inline]
    pub(crate) fn root_within(&self, (mut block, last): (usize, usize), at: u64) -> Cursor {
        let mut num_blocks = last + 1 - block;
        // Computed without branches, because half of the predictions would be wrong.
        while num_blocks > 1 {
            let half = num_blocks / 2;
            block += if u64::from(self.blocks[block + half].sum) <= at { half } else { 0 };
            num_blocks -= half;
        }
        self.cursor_in(block, self.root, at as u32)
    }

    /// Returns a function of the first bytes of the next pieces. The call loads these bytes into
    /// the cache.
    #[inline]
    pub fn first_bytes(&self, cursor: Cursor) -> u8 {
        let block = &self.blocks[cursor.next as usize / BLOCK_LEN];
        let slot = cursor.next as usize % BLOCK_LEN;
        // For a reference this reads another text, which is harmless.
        let starts = block.starts[slot..].iter().take(PIECES_AHEAD);
        starts.fold(0, |bytes, &start| bytes ^ self.texts.get(start as usize).unwrap_or(&0))
    }

    /// Returns the next content at `cursor` and moves the cursor behind it. Long tokens are in
    /// `arena`.
    #[inline]
    pub fn next<'a>(&'a self, cursor: &mut Cursor, arena: &'a [u8]) -> Next<'a> {
        if cursor.next >= cursor.end {
            return Next::End;
        }
        let block = &self.blocks[cursor.next as usize / BLOCK_LEN];
        let slot = cursor.next as usize % BLOCK_LEN;
        let start = block.starts[slot];
        let len = block.lens[slot];
        let skipped = std::mem::take(&mut cursor.skipped);
        cursor.next += 1;
        if len > 0 {
            let text = &self.texts[(start + skipped) as usize..];
            return Next::Text(text, usize::from(len) - skipped as usize);
        }
        let reference = self.references[start as usize];
        match reference.source {
            Source::Token(start) => {
                let len = (reference.len_bytes - skipped) as usize;
                Next::Text(&arena[(start + skipped) as usize..], len)
            }
            Source::Run(run) => Next::Inner(self.run_from(run, skipped)),
        }
    }

    /// Returns the pieces of `run` from byte `at` on.
    fn run_from(&self, run: TextRun, at: u32) -> Cursor {
        if at == 0 {
            return Cursor { next: run.first, end: run.end, skipped: 0 };
        }
        let first_block = run.first as usize / BLOCK_LEN;
        let end_block = (run.end as usize).div_ceil(BLOCK_LEN);
        let others = &self.blocks[first_block + 1..end_block];
        let skipped = others.partition_point(|block| block.sum.wrapping_sub(run.sum) <= at);
        self.cursor_in(first_block + skipped, run, at)
    }

    /// Returns the pieces of `run` from byte `at` on, which lies in block `block_idx`.
    #[inline]
    fn cursor_in(&self, block_idx: usize, run: TextRun, at: u32) -> Cursor {
        let block = &self.blocks[block_idx];
        // Number of bytes from here to the position sought. It wraps in pieces before the run.
        let mut left = at.wrapping_sub(block.sum.wrapping_sub(run.sum));
        let first = block_idx * BLOCK_LEN;
        let mut slot = 0;
        while slot < BLOCK_LEN {
            let len = match block.lens[slot] {
                0 => self.reference_len(block.starts[slot]),
                len => u32::from(len),
            };
            if first + slot >= run.first as usize && left < len {
                break;
            }
            left = left.wrapping_sub(len);
            slot += 1;
        }
        Cursor { next: (first + slot) as u32, end: run.end, skipped: left }
    }

    #[cold]
    fn reference_len(&self, reference: u32) -> u32 {
        self.references.get(reference as usize).map_or(0, |reference| reference.len_bytes)
    }

    /// Returns the number of bytes of main memory in use.
    pub(in crate::segment) fn memory_bytes(&self) -> usize {
        size_of::<Block>() * self.blocks.capacity()
            + self.texts.capacity()
            + size_of::<Reference>() * self.references.capacity()
            + self.hints.memory_bytes()
    }

    /// Returns the greatest number of bytes of main memory that the runs of `dag` need in general:
    /// with a quarter more pieces than elements, and every short text stored once.
    pub(in crate::segment) fn max_memory_bytes(dag: &Dag) -> usize {
        let block_bytes = size_of::<Block>() + size_of::<u32>();
        max_pieces(dag) as usize / BLOCK_LEN * block_bytes + short_texts_bytes(dag) as usize
    }
}

/// Returns the number of bytes of all short texts, each counted once.
fn short_texts_bytes(dag: &Dag) -> u64 {
    let elements = (0..dag.num_elements() as u32).filter(|&element| is_short(dag, element));
    elements.map(|element| dag.len_bytes(element)).sum()
}

fn is_short(dag: &Dag, element: u32) -> bool {
    dag.len_bytes(element) <= MAX_TEXT_BYTES && element != dag.num_terminals()
}

/// Returns the greatest number of pieces of runs that are built.
fn max_pieces(dag: &Dag) -> u64 {
    let len = dag.grammar().symbols.len() as u64;
    (len + len / 4 + 64).min(u64::from(NONE) - 1)
}

/// Kind of each element.
struct Plan {
    /// For each element the length of a short text, or [`INLINED`] plus the number of its pieces,
    /// or [`REFERENCE`].
    kinds: Vec<u8>,
    num_pieces: u64,
}

impl Plan {
    /// Creates a plan in which rules of up to `max_inlined` pieces are inlined. Returns `None` if
    /// there would be too many pieces.
    fn new(dag: &Dag, max_inlined: u8) -> Option<Self> {
        let grammar = dag.grammar();
        let kind_of = |element| match dag.len_bytes(element) {
            len if len <= MAX_TEXT_BYTES => len as u8,
            _ => REFERENCE,
        };
        let mut kinds: Vec<u8> = (0..dag.num_elements() as u32).map(kind_of).collect();
        let root = dag.num_terminals() as usize;
        kinds[root] = REFERENCE;
        let mut num_pieces = 0;
        for rule_id in grammar.rule_ids().rev() {
            let element = grammar.element_for(rule_id) as usize;
            if kinds[element] != REFERENCE {
                continue;
            }
            // A reference may have a blank before it.
            let pieces = |&inner: &u32| match kinds[inner as usize] {
                REFERENCE => 2,
                kind => u64::from(kind.saturating_sub(INLINED).max(1)),
            };
            let inside: u64 = grammar.rule(rule_id).iter().map(pieces).sum();
            if rule_id != RuleId::ROOT && inside <= u64::from(max_inlined) {
                kinds[element] = INLINED + inside as u8;
            } else {
                num_pieces += inside;
            }
        }
        (num_pieces <= max_pieces(dag)).then_some(Self { kinds, num_pieces })
    }
}

struct Builder<'a> {
    dag: &'a Dag,
    sums: &'a PrefixSums,
    arena: &'a [u8],
    offsets: &'a [u32],
    kinds: Vec<u8>,
    blocks: Vec<Block>,
    num_pieces: u32,
    /// Bytes of all pieces, wrapping.
    sum: u32,
    texts: Vec<u8>,
    /// Place of the text of each short element, or index of the reference of a long element.
    places: Vec<u32>,
    references: Vec<Reference>,
    /// Elements of `references` in the same order: rules, and long tokens.
    referred: Vec<u32>,
    /// True if the next piece must not be joined with the one before.
    is_apart: bool,
    stack: Vec<std::ops::Range<usize>>,
}

impl<'a> Builder<'a> {
    fn new(dag: &'a Dag, sums: &'a PrefixSums, arena: &'a [u8], offsets: &'a [u32], plan: Plan) -> Self {
        Self {
            dag,
            sums,
            arena,
            offsets,
            kinds: plan.kinds,
            blocks: Vec::with_capacity(plan.num_pieces as usize / BLOCK_LEN + 1),
            num_pieces: 0,
            sum: 0,
            texts: Vec::new(),
            places: vec![NONE; dag.num_elements()],
            references: Vec::new(),
            referred: Vec::new(),
            is_apart: true,
            stack: Vec::new(),
        }
    }

    fn push_documents(&mut self) {
        for doc in self.dag.grammar().docs() {
            self.is_apart = true;
            self.push_run(self.dag.doc_range(doc));
        }
    }

    /// Appends the runs of all references. References found on the way are appended behind them.
    /// Returns `None` if one has 4 GiB.
    fn push_references(&mut self) -> Option<()> {
        let mut done = 0;
        while let Some(&element) = self.referred.get(done) {
            let len_bytes = u32::try_from(self.dag.len_bytes(element)).ok()?;
            let source = match self.dag.rule_of(element) {
                None => Source::Token(self.offsets[element as usize]),
                Some(rule_id) => {
                    let first = self.num_pieces;
                    let sum = self.sum;
                    self.is_apart = true;
                    self.push_run(self.dag.rule_range(rule_id));
                    Source::Run(TextRun { first, end: self.num_pieces, sum })
                }
            };
            self.references.push(Reference { len_bytes, source });
            done += 1;
        }
        Some(())
    }

    /// Appends the pieces of the elements at `positions`, including those of inlined rules.
    fn push_run(&mut self, positions: std::ops::Range<usize>) {
        let dag = self.dag;
        let symbols = &dag.grammar().symbols;
        let sums = self.sums;
        let mut range = positions;
        let mut has_blank = false;
        loop {
            let Some(position) = range.next() else {
                match self.stack.pop() {
                    Some(outer) => range = outer,
                    None => return,
                }
                continue;
            };
            // The blank before an inlined rule goes before its first piece.
            has_blank |= sums.has_blank_before(position);
            let element = symbols[position];
            let kind = self.kinds[element as usize];
            if kind > INLINED && kind != REFERENCE {
                if let Some(rule_id) = dag.rule_of(element) {
                    self.stack.push(std::mem::replace(&mut range, dag.rule_range(rule_id)));
                }
                continue;
            }
            let blank = std::mem::take(&mut has_blank);
            match kind {
                REFERENCE => self.push_reference(element, blank),
                len => self.push_text(element, u32::from(len), blank),
            }
        }
    }

    fn push_reference(&mut self, element: u32, blank: bool) {
        if blank {
            if self.texts.last() != Some(&b' ') {
                self.texts.push(b' ');
            }
            self.push_piece(self.texts.len() as u32 - 1, 1);
        }
        let place = &mut self.places[element as usize];
        if *place == NONE {
            *place = self.referred.len() as u32;
            self.referred.push(element);
        }
        let reference = *place;
        self.push_slot(reference, 0);
        self.sum = self.sum.wrapping_add(self.dag.len_bytes(element) as u32);
        self.is_apart = true;
    }

    fn push_text(&mut self, element: u32, len: u32, blank: bool) {
        if len == 0 && !blank {
            return;
        }
        let place = self.places[element as usize];
        if place == NONE || blank && place & AFTER_BLANK == 0 {
            if blank {
                self.texts.push(b' ');
            }
            self.put_down(element);
        }
        let start = self.places[element as usize] & !AFTER_BLANK;
        self.push_piece(start - u32::from(blank), len + u32::from(blank));
    }

    /// Returns the end of the texts as the place of an element.
    fn text_end(&self) -> u32 {
        let after_blank = if self.texts.last() == Some(&b' ') { AFTER_BLANK } else { 0 };
        self.texts.len() as u32 | after_blank
    }

    /// Appends the text of a short element, and stores the places of the element and of all
    /// elements in it.
    fn put_down(&mut self, element: u32) {
        let dag = self.dag;
        let symbols = &dag.grammar().symbols;
        let sums = self.sums;
        self.places[element as usize] = self.text_end();
        let Some(rule_id) = dag.rule_of(element) else {
            self.put_down_token(element);
            return;
        };
        let base = self.stack.len();
        let mut range = dag.rule_range(rule_id);
        loop {
            let Some(position) = range.next() else {
                if self.stack.len() == base {
                    return;
                }
                range = self.stack.pop().unwrap_or(0..0);
                continue;
            };
            let inner = symbols[position];
            if sums.has_blank_before(position) {
                self.texts.push(b' ');
            }
            let known = self.places[inner as usize];
            if known != NONE {
                let start = (known & !AFTER_BLANK) as usize;
                let end = start + usize::from(self.kinds[inner as usize]);
                self.texts.extend_from_within(start..end);
                continue;
            }
            self.places[inner as usize] = self.text_end();
            match dag.rule_of(inner) {
                None => self.put_down_token(inner),
                Some(rule_id) => {
                    self.stack.push(std::mem::replace(&mut range, dag.rule_range(rule_id)));
                }
            }
        }
    }

    fn put_down_token(&mut self, token: u32) {
        let range = self.offsets[token as usize] as usize..self.offsets[token as usize + 1] as usize;
        self.texts.extend_from_slice(&self.arena[range]);
    }

    /// Appends a piece, or extends the last one if both are adjacent in the texts.
    fn push_piece(&mut self, start: u32, len: u32) {
        if !self.is_apart
            && let Some(block) = self.blocks.last_mut()
        {
            let last = (self.num_pieces as usize - 1) % BLOCK_LEN;
            let joined = u32::from(block.lens[last]) + len;
            if block.starts[last] + u32::from(block.lens[last]) == start && joined <= 255 {
                block.lens[last] = joined as u8;
                self.sum = self.sum.wrapping_add(len);
                return;
            }
        }
        self.push_slot(start, len as u8);
        self.sum = self.sum.wrapping_add(len);
        self.is_apart = false;
    }

    /// Appends a slot. A block begins with the sum before it.
    fn push_slot(&mut self, start: u32, len: u8) {
        let slot = self.num_pieces as usize % BLOCK_LEN;
        if slot == 0 {
            let starts = [0; BLOCK_LEN];
            let lens = [0; BLOCK_LEN];
            self.blocks.push(Block { sum: self.sum, starts, lens });
        }
        if let Some(block) = self.blocks.last_mut() {
            (block.starts[slot], block.lens[slot]) = (start, len);
        }
        self.num_pieces += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{dag_for, expanded};
    use super::*;

    fn made(dag: &Dag, arena: &[u8], offsets: &[u32]) -> Option<TextRuns> {
        TextRuns::new(dag, &PrefixSums::new(dag), arena, offsets)
    }

    /// Returns up to `len` bytes of the root from `at` on.
    fn read(runs: &TextRuns, arena: &[u8], at: u64, len: usize) -> Vec<u8> {
        let mut cursor = runs.root_from(at);
        let mut outer = Vec::new();
        let mut bytes = Vec::new();
        while bytes.len() < len {
            match runs.next(&mut cursor, arena) {
                Next::Text(text, len) => bytes.extend_from_slice(&text[..len]),
                Next::Inner(inner) => outer.push(std::mem::replace(&mut cursor, inner)),
                Next::End => match outer.pop() {
                    Some(outer) => cursor = outer,
                    None => break,
                },
            }
        }
        bytes.truncate(len);
        bytes
    }

    /// Creates a token of each length, distinct where possible, and the offsets of the tokens.
    fn tokens(lens: &[u32]) -> (Vec<Vec<u8>>, Vec<u32>) {
        let token =
            |(at, &len): (usize, &u32)| (0..len).map(|byte| b'a' + ((at as u32 * 7 + byte / 2) % 26) as u8).collect();
        let tokens: Vec<Vec<u8>> = lens.iter().enumerate().map(token).collect();
        let ends = lens.iter().scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        (tokens, [0].into_iter().chain(ends).collect())
    }

    /// Checks every passage of `len` bytes of `dag` against the expansion. Returns false if there
    /// are no runs.
    fn check(dag: &Dag, tokens: &[Vec<u8>], offsets: &[u32], len: usize) -> bool {
        let arena = tokens.concat();
        let Some(runs) = made(dag, &arena, offsets) else {
            return false;
        };
        let slices: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
        let root = expanded(dag, &slices).concat();
        for at in 0..root.len() {
            let end = root.len().min(at + len);
            assert_eq!(read(&runs, &arena, at as u64, len), root[at..end], "{at}");
        }
        true
    }

    proptest! {
        #[test]
        fn passages_are_those_of_the_expansion(
            lens in prop::collection::vec(prop_oneof![4 => 1..9u32, 1 => 60..70u32, 1 => 200..300u32], 3..8),
            rules in prop::collection::vec(prop::collection::vec(any::<u16>(), 1..6), 1..12),
            root in prop::collection::vec(any::<u16>(), 1..60),
            docs in prop::collection::vec(any::<u16>(), 0..4),
            num_words in 1..3u32,
            len in 1..150usize,
        ) {
            // The last token is an empty separator.
            let lens = [lens, vec![0]].concat();
            let num_terminals = lens.len() as u32;
            let num_rules = rules.len() as u32;
            // Rules refer forward. The root contains each of them, so that all are used. The last
            // element of each rule is a word, so that no rule is empty.
            let mut all = vec![root.iter().map(|&pick| {
                let element = u32::from(pick) % (num_terminals + num_rules);
                if element < num_terminals { element } else { element + 1 }
            }).chain(num_terminals + 1..=num_terminals + num_rules).collect::<Vec<_>>()];
            for (at, rule) in (1..).zip(&rules) {
                let below = num_rules - at;
                let element = |&pick: &u16| match u32::from(pick) % (num_terminals + below) {
                    token if token < num_terminals => token,
                    inner => inner - num_terminals + num_terminals + at + 1,
                };
                all.push(rule.iter().map(element).chain([u32::from(rule[0]) % num_words]).collect());
            }
            let root_len = all[0].len() as u32;
            let mut doc_offsets: Vec<u32> = docs.iter().map(|&at| u32::from(at) % (root_len + 1)).collect();
            doc_offsets.extend([0, root_len]);
            doc_offsets.sort_unstable();
            let (tokens, offsets) = tokens(&lens);
            let dag = dag_for(all, &doc_offsets, num_words, &lens);
            // Long expansions would take too long, because every position is tested.
            prop_assume!(dag.len_bytes(num_terminals) < 20_000);
            prop_assert!(check(&dag, &tokens, &offsets, len));
        }
    }

    #[test]
    fn long_rules_are_read_wherever_they_are() {
        // Words 0, 1; separators 2 and 3, which is long. The rules have 40 and 20 pieces, so the
        // first has a run of its own and the second is inlined.
        let lens = [3, 5, 1, 300];
        let separated = |len: u32| (0..len).flat_map(|_| [0, 3, 1, 2]).collect::<Vec<u32>>();
        let rules = vec![vec![5, 0, 6, 5, 2, 6, 6, 3, 5], separated(10), separated(5)];
        let (tokens, offsets) = tokens(&lens);
        let dag = dag_for(rules, &[0, 4, 9], 2, &lens);
        let runs = made(&dag, &tokens.concat(), &offsets).unwrap();
        assert!(runs.references.iter().any(|r| matches!(r.source, Source::Run(_))));
        assert!(check(&dag, &tokens, &offsets, 700));
    }

    #[test]
    fn runs_that_would_be_too_large_are_not_made() {
        // Only references with blanks between them: twice as many pieces as elements.
        let rule = |inner: u32| vec![inner; 40];
        let dag = dag_for(vec![vec![2; 1_000], rule(0)], &[0, 1_000], 1, &[9]);
        assert!(made(&dag, b"reference", &[0, 9]).is_none());
        // 2^34 bytes from 35 rules.
        let doubled = (0..33).map(|rule| vec![rule + 2, rule + 2]).chain([vec![0, 0]]);
        let dag = dag_for(doubled.collect(), &[0, 2], 1, &[1]);
        assert!(made(&dag, b"a", &[0, 1]).is_none());
    }

    #[test]
    fn neighbours_that_meet_again_are_one_piece() {
        // "ab cd, ab cd, ..." without rules: six bytes of text, which all pieces share.
        let root: Vec<u32> = (0..300).map(|at| at % 3).collect();
        let dag = dag_for(vec![root], &[0, 300], 2, &[2, 2, 1]);
        let tokens = [b"ab".to_vec(), b"cd".to_vec(), b",".to_vec()];
        let runs = made(&dag, &tokens.concat(), &[0, 2, 4, 5]).unwrap();
        assert_eq!((runs.root.end, runs.texts.len()), (100, 6 + TEXT_SLACK));
        assert!(check(&dag, &tokens, &[0, 2, 4, 5], 64));
        assert!(runs.memory_bytes() <= TextRuns::max_memory_bytes(&dag) + 1_000);
    }
}
