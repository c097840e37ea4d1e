//! Prefix codes of the elements in a stream, each in the context of the element before it, and the units at
//! which a reader enters the stream: runs of whole documents, or parts of long ones.
//!
//! ```text
//! symbols    each is a group of elements, which may also end a rule; its code is followed by the
//!            place in the group, in plain bits
//! rows       one for each group before, and one for the begin of a rule
//! contexts   rows with similar elements behind them; each context has a code of its own
//!
//! codes      number of contexts u8 | context of each row, 4 bits | code lengths of each context,
//!            4 bits for each symbol
//! ```
//!
//! The writer joins rows, two that lose least at a time, until [`MAX_CONTEXTS`] are left and more would save less than
//! their code lengths take. Four contexts save three quarters of the bits that one for each row saves. Their tables fit
//! into the first cache (2^[`MAX_CODE_LEN`] entries of 8 bytes for each).

use std::ops::Range;

use crate::error::Result;
use crate::format::cursor::{Cursor, push_varint};
use crate::format::entropy::prefix_code::{BitWriter, Class, Stream, code_lens, codes};

const MAX_CODE_LEN: u8 = 10;
const MAX_CONTEXTS: usize = 4;
/// Bit of an element that is the last one of its rule.
pub(super) const ENDS: u32 = 1 << 31;
/// The same bit in an entry of a table.
const ENTRY_ENDS: u16 = 1 << 15;
/// Number of entries of all contexts.
const NUM_ENTRIES: usize = MAX_CONTEXTS << MAX_CODE_LEN;
/// Unit of estimated bits, and its log2.
pub(super) const BIT: i64 = 1 << BIT_SHIFT;
const BIT_SHIFT: u32 = 8;

/// A group of elements in a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    pub class: Class,
    /// True if the element is the last one of its rule.
    pub ends: bool,
    /// Row of the element behind it.
    pub row_behind: usize,
}

/// The symbols of a stream.
#[derive(Debug)]
pub(super) struct Alphabet {
    pub symbols: Vec<Symbol>,
    pub num_rows: usize,
    /// Row of the first element.
    pub first_row: usize,
}

impl Alphabet {
    /// Returns the symbols of a stream in which `classes` stand without ends. The first element has
    /// the row of the last class.
    pub fn without_ends(classes: &[Class]) -> Self {
        let symbols = classes.iter().enumerate().map(|(row, &class)| Symbol { class, ends: false, row_behind: row });
        Self { symbols: symbols.collect(), num_rows: classes.len(), first_row: classes.len() - 1 }
    }

    /// Returns the symbols of a stream of rules: symbol `2 c` is class `c`, and the next one is
    /// class `c` at the end of a rule.
    pub fn with_ends(classes: &[Class]) -> Self {
        let first_row = classes.len();
        let both = |(row, &class): (usize, &Class)| {
            let inside = Symbol { class, ends: false, row_behind: row };
            [inside, Symbol { class, ends: true, row_behind: first_row }]
        };
        let symbols = classes.iter().enumerate().flat_map(both).collect();
        Self { symbols, num_rows: first_row + 1, first_row }
    }
}

/// A symbol of a stream, and the place of its element in the group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub symbol: u8,
    pub place: u32,
}

/// A place in a stream where reading can begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entrance {
    pub bit: u64,
    pub context: u8,
}

/// Appends the codes of `events` to `out`. Returns the bytes of the stream, and the entrances before
/// the events at `wanted`, which ascend and may include the end.
pub(super) fn encode_stream(
    out: &mut Vec<u8>,
    alphabet: &Alphabet,
    events: &[Event],
    wanted: &[usize],
) -> (Vec<u8>, Vec<Entrance>) {
    let (context_of_row, counts) = contexts(alphabet, events);
    out.push(counts.len() as u8);
    push_nibbles(out, context_of_row.iter().copied());
    let lens: Vec<Vec<u8>> = counts.iter().map(|counts| code_lens(counts, MAX_CODE_LEN)).collect();
    lens.iter().for_each(|lens| push_nibbles(out, lens.iter().copied()));
    let mut writer = StreamWriter::new(alphabet, &context_of_row, &lens);
    let mut entrances = Vec::with_capacity(wanted.len());
    let mut written = 0;
    for &place in wanted {
        writer.write(&events[written..place]);
        entrances.push(writer.entrance());
        written = place;
    }
    writer.write(&events[written..]);
    (writer.bits.finish(), entrances)
}

/// Code of a symbol in a context.
#[derive(Clone, Copy)]
struct Step {
    code: u32,
    code_len: u8,
    /// Length of the code and of the place.
    len: u8,
    /// Context of the next symbol, as the first of its steps.
    behind: u16,
}

/// Writer of the events of a stream.
struct StreamWriter {
    num_symbols: usize,
    /// The codes of all symbols, one context after the other.
    steps: Vec<Step>,
    /// First step of the context.
    first_step: usize,
    bits: BitWriter,
}

impl StreamWriter {
    fn new(alphabet: &Alphabet, context_of_row: &[u8], lens: &[Vec<u8>]) -> Self {
        let num_symbols = alphabet.symbols.len();
        let first_step_for = |row: usize| num_symbols * context_of_row.get(row).map_or(0, |&context| context.into());
        let mut steps = Vec::with_capacity(num_symbols * lens.len());
        for lens in lens {
            for ((symbol, &code_len), code) in alphabet.symbols.iter().zip(lens).zip(codes(lens)) {
                let behind = first_step_for(symbol.row_behind) as u16;
                steps.push(Step { code, code_len, len: code_len + symbol.class.width, behind });
            }
        }
        Self { num_symbols, steps, first_step: first_step_for(alphabet.first_row), bits: BitWriter::default() }
    }

    fn write(&mut self, events: &[Event]) {
        for event in events {
            let step = self.steps[self.first_step + usize::from(event.symbol)];
            self.bits.push(u64::from(step.code) | u64::from(event.place) << step.code_len, step.len);
            self.first_step = usize::from(step.behind);
        }
    }

    fn entrance(&self) -> Entrance {
        Entrance { bit: self.bits.position(), context: (self.first_step / self.num_symbols) as u8 }
    }
}

fn push_nibbles(out: &mut Vec<u8>, nibbles: impl ExactSizeIterator<Item = u8>) {
    let nibbles: Vec<u8> = nibbles.collect();
    out.extend(nibbles.chunks(2).map(|pair| pair[0] | pair.get(1).map_or(0, |&nibble| nibble << 4)));
}

/// Returns the context of each row, and the number of events of each symbol in each context.
fn contexts(alphabet: &Alphabet, events: &[Event]) -> (Vec<u8>, Vec<Vec<u64>>) {
    let num_symbols = alphabet.symbols.len();
    let mut counts = vec![0u64; num_symbols * alphabet.num_rows];
    let row_starts: Vec<usize> = alphabet.symbols.iter().map(|symbol| num_symbols * symbol.row_behind).collect();
    let mut row_start = num_symbols * alphabet.first_row;
    for event in events {
        counts[row_start + usize::from(event.symbol)] += 1;
        row_start = row_starts[usize::from(event.symbol)];
    }
    let used = counts.chunks(num_symbols).enumerate().filter(|(_, row)| row.iter().any(|&count| count > 0));
    let mut joined: Vec<Context> = used.map(|(row, counts)| Context::new(vec![row], counts.to_vec())).collect();
    let code_bits = 4 * BIT * alphabet.symbols.len() as i64;
    let mut losses: Vec<Vec<i64>> = Vec::new();
    for (at, context) in joined.iter().enumerate() {
        losses.push(joined[..at].iter().map(|other| context.loss_with(other)).collect());
    }
    while joined.len() > 1 {
        let pairs =
            losses.iter().enumerate().flat_map(|(b, of_b)| of_b.iter().enumerate().map(move |(a, &loss)| (loss, a, b)));
        let Some((loss, a, b)) = pairs.min() else { break };
        if joined.len() <= MAX_CONTEXTS && loss >= code_bits {
            break;
        }
        let taken = joined.remove(b);
        losses.remove(b);
        for of_later in &mut losses[b..] {
            of_later.remove(b);
        }
        joined[a].join(taken);
        for other in 0..joined.len() {
            let loss = if other == a { continue } else { joined[a].loss_with(&joined[other]) };
            losses[a.max(other)][a.min(other)] = loss;
        }
    }
    let mut context_of_row = vec![0; alphabet.num_rows];
    for (context, joined) in (0..).zip(&joined) {
        joined.rows.iter().for_each(|&row| context_of_row[row] = context);
    }
    (context_of_row, joined.into_iter().map(|context| context.counts).collect())
}

/// Rows that share a code.
struct Context {
    rows: Vec<usize>,
    counts: Vec<u64>,
    /// Estimated length of all codes.
    len: i64,
}

impl Context {
    fn new(rows: Vec<usize>, counts: Vec<u64>) -> Self {
        let len = estimated_len(counts.iter().copied());
        Self { rows, counts, len }
    }

    /// Returns by how much the codes of both are longer if they share one.
    fn loss_with(&self, other: &Self) -> i64 {
        estimated_len(self.counts.iter().zip(&other.counts).map(|(a, b)| a + b)) - self.len - other.len
    }

    fn join(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.len = estimated_len(self.counts.iter().copied());
    }
}

/// Returns the length of codes of these counts in parts of a bit. Integers alone, so that files do
/// not depend on the machine.
fn estimated_len(counts: impl Iterator<Item = u64>) -> i64 {
    let (sum, logs) = counts.fold((0u64, 0i64), |(sum, logs), count| (sum + count, logs + count as i64 * log2(count)));
    sum as i64 * log2(sum) - logs
}

/// Returns log2 of `number` in parts of a bit, with the fraction as on a line.
pub(super) fn log2(number: u64) -> i64 {
    let Some(whole) = number.checked_ilog2() else { return 0 };
    let fraction = (u128::from(number) << BIT_SHIFT >> whole) as i64 - BIT;
    i64::from(whole) * BIT + fraction
}

/// Group of an element, found by the next bits of a stream and the context.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    start: u32,
    code_len: u8,
    /// Length of the code and of the place.
    len: u8,
    /// First entry of the next element's context, and [`ENTRY_ENDS`].
    behind: u16,
}

/// The codes of a stream.
#[derive(Debug)]
pub(super) struct Codes {
    entries: Box<[Entry; NUM_ENTRIES]>,
    num_contexts: u8,
    first_context: u8,
}

impl Codes {
    /// Reads the codes of `alphabet`.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `cursor` is not at such codes.
    pub fn read(cursor: &mut Cursor<'_>, alphabet: &Alphabet) -> Result<Self> {
        let at = cursor.clone();
        let num_contexts = cursor.u8()?;
        let context_of_row = read_nibbles(cursor, alphabet.num_rows)?;
        let is_context = |context: &u8| *context < num_contexts.max(1);
        if usize::from(num_contexts) > MAX_CONTEXTS || !context_of_row.iter().all(is_context) {
            return Err(at.fault(format!("expected at most {MAX_CONTEXTS} contexts, got {num_contexts}")));
        }
        let mut entries = Box::new([Entry::default(); NUM_ENTRIES]);
        for table in entries.chunks_mut(1 << MAX_CODE_LEN).take(num_contexts.into()) {
            let lens = read_nibbles(cursor, alphabet.symbols.len())?;
            fill(table, alphabet, &lens, &context_of_row)
                .ok_or_else(|| at.fault("expected lengths of a complete prefix code"))?;
        }
        Ok(Self { entries, num_contexts, first_context: context_of_row[alphabet.first_row] })
    }

    /// Returns true if there is no code, so that the stream must be empty.
    pub fn is_empty(&self) -> bool {
        self.num_contexts == 0
    }

    /// Returns the context of the first element of a rule.
    pub fn first_context(&self) -> u8 {
        self.first_context
    }

    /// Returns true if `context` exists.
    pub fn has_context(&self, context: u8) -> bool {
        context < self.num_contexts.max(1)
    }
}

fn read_nibbles(cursor: &mut Cursor<'_>, len: usize) -> Result<Vec<u8>> {
    let bytes = cursor.take(len.div_ceil(2))?;
    let mut nibbles: Vec<u8> = bytes.iter().flat_map(|pair| [pair & 15, pair >> 4]).collect();
    nibbles.truncate(len);
    Ok(nibbles)
}

/// Fills the `table` of one context. Returns `None` if the lengths are not those of a complete code.
/// A code of one symbol takes one bit.
fn fill(table: &mut [Entry], alphabet: &Alphabet, lens: &[u8], context_of_row: &[u8]) -> Option<()> {
    let num_used = lens.iter().filter(|&&len| len > 0).count();
    let sum: usize = lens.iter().map(|&len| if len == 0 { 0 } else { table.len() >> len }).sum();
    let is_complete = sum == table.len() || num_used == 1;
    if !is_complete || lens.iter().any(|&len| len > MAX_CODE_LEN) {
        return None;
    }
    for ((symbol, &len), code) in alphabet.symbols.iter().zip(lens).zip(codes(lens)) {
        let Class { start, width } = symbol.class;
        let first_entry = u16::from(context_of_row[symbol.row_behind]) << MAX_CODE_LEN;
        let behind = if symbol.ends { first_entry | ENTRY_ENDS } else { first_entry };
        let entry = Entry { start, code_len: len, len: len + width, behind };
        let step = if num_used == 1 { 1 } else { 1 << len };
        if len > 0 {
            table.iter_mut().skip(code as usize).step_by(step).for_each(|to| *to = entry);
        }
    }
    Some(())
}

/// Reader of a stream from an entrance on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    stream: Stream<'a>,
    /// Place of the context's first entry.
    first_entry: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], entrance: Entrance) -> Self {
        let position = usize::try_from(entrance.bit).unwrap_or(usize::MAX);
        Self { stream: Stream { bytes, position }, first_entry: usize::from(entrance.context) << MAX_CODE_LEN }
    }

    /// Reads an element. Returns its place among those of all groups, and [`ENDS`] or 0. Bits behind
    /// the end are zero. `codes` must not be empty.
    #[inline(always)]
    pub fn next(&mut self, codes: &Codes) -> (u32, u32) {
        let bits = self.stream.bits();
        let in_context = bits as usize & ((1 << MAX_CODE_LEN) - 1);
        let entry = codes.entries[(self.first_entry | in_context) % NUM_ENTRIES];
        self.stream.position += usize::from(entry.len);
        self.first_entry = usize::from(entry.behind & !ENTRY_ENDS);
        let place = (bits >> entry.code_len) as u32 & ((1 << (entry.len - entry.code_len)) - 1);
        (entry.start + place, u32::from(entry.behind & ENTRY_ENDS) << 16)
    }

    /// Returns where it is.
    pub fn entrance(&self) -> Entrance {
        Entrance { bit: self.position(), context: (self.first_entry >> MAX_CODE_LEN) as u8 }
    }

    /// Returns the place of the next bit.
    pub fn position(&self) -> u64 {
        self.stream.position as u64
    }
}

/// Bits of a unit that say where its first document and its first code are.
const CONTINUES: u64 = 1 << 2;
const CONTEXT: u64 = CONTINUES - 1;
const FLAGS_LEN: u32 = 3;

/// A run of whole documents, or a part of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Documents of which it has a part, by their ids in the segment. They may be empty.
    pub docs: Range<u32>,
    /// True if its first document begins in a unit before.
    pub continues: bool,
    /// Its elements in the root.
    pub root: Range<u32>,
    /// Bit of the root's stream at which its elements begin.
    pub bit: u64,
    /// Rules that are used first in it, by their numbers in the segment.
    pub rules: Range<u32>,
}

/// Sums over all units before one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    /// Documents that began.
    pub num_docs: u32,
    pub root_len: u32,
    pub num_rules: u32,
    pub entrance: Entrance,
    pub continues: bool,
}

/// The units of a segment, in the order of its text.
#[derive(Debug)]
pub struct Units {
    /// Start of each unit, and the end of the last one.
    starts: Vec<Start>,
}

impl Units {
    pub(super) fn new(starts: Vec<Start>) -> Self {
        Self { starts }
    }

    /// Appends the list of units to `out`.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        push_varint(out, self.len() as u64);
        for ends in self.starts.windows(2) {
            let [start, end] = [ends[0], ends[1]];
            let flags = u64::from(start.entrance.context) | if start.continues { CONTINUES } else { 0 };
            push_varint(out, u64::from(end.root_len - start.root_len));
            push_varint(out, u64::from(end.num_docs - start.num_docs) << FLAGS_LEN | flags);
            push_varint(out, u64::from(end.num_rules - start.num_rules));
            push_varint(out, end.entrance.bit - start.entrance.bit);
        }
    }

    /// Reads what [`push`](Self::push) writes.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let at = cursor.clone();
        let num_units = cursor.varint()?;
        let mut starts = vec![Start::default()];
        let mut end = Start::default();
        for _ in 0..num_units {
            let [root_len, docs, num_rules, num_bits] =
                [cursor.varint()?, cursor.varint()?, cursor.varint()?, cursor.varint()?];
            if let Some(start) = starts.last_mut() {
                start.continues = docs & CONTINUES != 0;
                start.entrance.context = (docs & CONTEXT) as u8;
            }
            let next = end.and(root_len, docs >> FLAGS_LEN, num_rules, num_bits);
            end = next.ok_or_else(|| at.fault("expected units of less than 2^32 elements"))?;
            starts.push(end);
        }
        Ok(Self { starts })
    }

    /// Returns the sums over all units.
    pub(super) fn total(&self) -> Start {
        self.starts[self.len()]
    }

    /// Returns true if `codes` have the contexts in which units begin.
    pub(super) fn contexts_exist_in(&self, codes: &Codes) -> bool {
        self.starts.iter().all(|start| codes.has_context(start.entrance.context))
    }

    /// Returns where unit `unit_idx` begins, or where the last one ends.
    pub(super) fn entrance(&self, unit_idx: usize) -> Entrance {
        self.starts[unit_idx].entrance
    }

    /// Returns the number of elements and marks before unit `unit_idx`.
    pub(super) fn symbols_before(&self, unit_idx: usize) -> u64 {
        self.starts[unit_idx].num_symbols()
    }

    /// Returns the number of documents that begin before unit `unit_idx`.
    pub(super) fn docs_before(&self, unit_idx: usize) -> usize {
        self.starts[unit_idx].num_docs as usize
    }

    /// Returns true if unit `unit_idx` begins inside a document.
    pub(super) fn continues(&self, unit_idx: usize) -> bool {
        self.starts[unit_idx].continues
    }

    /// Returns the rules that are used first in a run of units.
    pub(super) fn rules(&self, run: &Range<usize>) -> Range<u32> {
        let all_rules = self.total().num_rules + 1;
        all_rules - self.starts[run.end].num_rules..all_rules - self.starts[run.start].num_rules
    }

    /// Returns the last unit, or the end, before which there are at most `num_symbols` elements and
    /// marks.
    pub(super) fn unit_at_symbol(&self, num_symbols: u64) -> usize {
        self.starts.partition_point(|start| start.num_symbols() <= num_symbols).saturating_sub(1)
    }

    /// Returns the number of units.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns unit `unit_idx`, if it exists.
    pub fn get(&self, unit_idx: usize) -> Option<Unit> {
        let [start, end] = *self.starts.get(unit_idx..)?.first_chunk()?;
        Some(Unit {
            docs: start.first_doc()..end.num_docs,
            continues: start.continues,
            root: start.root_len..end.root_len,
            bit: start.entrance.bit,
            rules: self.rules(&(unit_idx..unit_idx + 1)),
        })
    }

    /// Returns the units that have a part of document `doc`, which counts from the first document of
    /// the segment.
    pub fn for_doc(&self, doc: u32) -> Range<usize> {
        let first = self.starts[1..].partition_point(|end| end.num_docs <= doc);
        let end = self.starts[..self.len()].partition_point(|start| start.first_doc() <= doc);
        first..end.max(first)
    }
}

impl Start {
    fn num_symbols(self) -> u64 {
        u64::from(self.root_len) + u64::from(self.num_docs)
    }

    fn first_doc(self) -> u32 {
        self.num_docs.saturating_sub(u32::from(self.continues))
    }

    /// Returns the start behind a unit with these numbers.
    fn and(self, root_len: u64, num_docs: u64, num_rules: u64, num_bits: u64) -> Option<Self> {
        let sum = |sum: u32, more: u64| u32::try_from(more).ok().and_then(|more| sum.checked_add(more));
        Some(Self {
            num_docs: sum(self.num_docs, num_docs)?,
            root_len: sum(self.root_len, root_len)?,
            num_rules: sum(self.num_rules, num_rules)?,
            entrance: Entrance { bit: self.entrance.bit.checked_add(num_bits)?, context: 0 },
            continues: false,
        })
    }
}
