//! Maximal repeats, from the sorted suffixes.
//!
//! ```text
//! suffixes in order   b c d x     symbols shared with the one before
//!                     b c d y     3     ┐ b c d: an interval of 2     ┐ b c: of 3
//!                     b c z       2     ┘                             ┘
//! ```
//!
//! Suffixes with the same beginning are an interval of the order. An interval with a longer common beginning than its
//! surroundings is a repeat that cannot be extended to the right (Abouelhoda, Kurtz, Ohlebusch, 2004). If the symbols
//! before its suffixes differ, it cannot be extended to the left either. One pass with a stack, O(suffixes).
//!
//! # Chains
//!
//! Names that always stand together are replaced by one symbol.
//!
//! ```text
//! names      0 1 2 3 .  5 1 2 3 .  5 1 4      1 2 3 is no chain: 4 may follow 1; 2 3 is one
//! symbols    0 1 2   |  5 1 2   |  5 1 4 |    the start of each is kept, too
//! ```
//!
//! Assume that b follows every a, and that a stands before every b. Then no maximal repeat begins with b or ends with
//! a, so every maximal repeat consists of whole chains. (The same step makes unitigs of the graph of k-mers in genome
//! assembly.) A run of names ends in [`END`]. The words before and behind a run occur too seldom to be part of a
//! phrase; like a border, they differ from everything. O(names), 8 bytes for each name.
//!
//! # Suffixes
//!
//! Suffixes with the same first symbols form a group. Each round sorts the suffixes of a group by the group of the text
//! behind these symbols, which doubles the sorted length (Larsson, Sadakane, "Faster suffix sorting", 2007). Groups of
//! one suffix are finished. Common prefixes are then computed in the order of the text (Kasai, Lee, Arimura, Arikawa,
//! Park, 2001). O(symbols * log² symbols), nearly linear if few groups are large; 20 bytes for each symbol.
//!
//! # Periodic phrases
//!
//! ```text
//! text      x a b c a b c a b c y        a run of period 3
//! dropped     a b c a b c                its own shift by 3; so is every phrase of 6 words or more inside
//! kept        a b c                      3 times
//! ```
//!
//! A line that is written a thousand times in a row makes a thousand maximal repeats: the line two
//! times, three times, and so on. A phrase is dropped if it equals itself shifted by a *period* of at
//! most half its words. Periods up to [`MAX_PERIOD`] words are looked for.
//!
//! The least period of the first 2 * [`MAX_PERIOD`] words is found with the failure function of Knuth, Morris and Pratt
//! (1977). By the theorem of Fine and Wilf (1965) no other period can be that of the whole phrase. The run around it is
//! then read once, for all phrases inside. O(512) for each phrase, and O(words) for each period in all.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::analytics::task_limits::sort_checked;
use crate::error::{Canceller, Interrupt, Result};

use super::{BORDER, NONE};

/// A maximal repeat, which is a row of the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phrase {
    /// Position of one occurrence in the text.
    pub start: u32,
    pub num_words: u32,
    pub count: u32,
}

/// Interval of the order whose end is not known yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: usize,
    /// Number of symbols that all suffixes have in common.
    len: u32,
    /// Symbol before all suffixes, or [`END`] if these differ.
    before: u32,
}

/// A text whose suffixes are in order.
pub(super) struct Search<'a> {
    pub text: &'a [u32],
    pub chains: &'a Chains,
    pub suffixes: &'a Suffixes,
    pub canceller: Canceller<'a>,
}

impl Search<'_> {
    /// Returns the maximal repeats of the chains that occur `min_count` times or more and do not
    /// repeat themselves, in the order of rows. Names of the chains have `name_words` words of the
    /// text.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn maximal_repeats(&self, name_words: usize, min_count: usize) -> Result<Vec<Phrase>> {
        let chains = self.chains;
        let order = self.suffixes.order();
        let mut phrases = Vec::new();
        let mut runs = Runs::new(self.text, self.canceller);
        self.for_each_maximal(|open, end| {
            let first = order[open.start] as usize;
            let start = chains.start(first);
            let num_names = chains.start(first + open.len as usize) - start;
            let num_words = num_names + (name_words - 1) as u32;
            let count = end - open.start;
            if count >= min_count && !runs.is_periodic(start as usize, num_words as usize)? {
                // For ties: the place in the order puts a phrase before the phrases that begin with
                // it.
                phrases.push(Phrase { start: open.start as u32, num_words, count: count as u32 });
            }
            Ok(())
        })?;
        let place = |phrase: &Phrase| {
            let cover = u64::from(phrase.num_words) * u64::from(phrase.count);
            (Reverse(cover), phrase.start, phrase.num_words)
        };
        sort_checked(&mut phrases, place, self.canceller)?;
        for phrase in &mut phrases {
            phrase.start = chains.start(order[phrase.start as usize] as usize);
        }
        Ok(phrases)
    }

    /// Calls `f` with each interval that has different symbols before it, and with the interval's
    /// end.
    fn for_each_maximal(&self, mut f: impl FnMut(Open, usize) -> Result<()>) -> Result<()> {
        let order = self.suffixes.order();
        let mut interrupt = self.canceller.interrupt();
        let mut stack: Vec<Open> = Vec::new();
        for (index, &at) in order.iter().enumerate() {
            interrupt.check()?;
            let end = index + 1;
            let common = if end < order.len() { self.suffixes.common(end) } else { 0 };
            // First the suffix alone, then the intervals that end with it, from the inside to the
            // outside.
            let before = self.chains.before(at as usize);
            let mut part = Open { start: index, len: u32::MAX, before };
            while let Some(top) = stack.pop_if(|top| top.len > common) {
                part = joined(top, part);
                if part.before == END {
                    f(part, end)?;
                }
            }
            match stack.last_mut().filter(|top| top.len == common) {
                Some(top) => *top = joined(*top, part),
                None if common > 0 => stack.push(Open { len: common, ..part }),
                None => {}
            }
        }
        Ok(())
    }
}

/// Adds `part`, the last part of `outer`, to `outer`.
fn joined(outer: Open, part: Open) -> Open {
    let before = if outer.before == part.before { outer.before } else { END };
    Open { before, ..outer }
}

/// Symbol behind a run of names.
pub(super) const END: u32 = NONE;
/// Mark of a name without a neighbour yet. It is no name, because n positions have at most n / 2
/// distinct names.
const UNSEEN: u32 = NONE - 1;

/// Text as a sequence of chains.
#[derive(Debug)]
pub(super) struct Chains {
    symbols: Vec<u32>,
    starts: Vec<u32>,
}

impl Chains {
    /// Joins `names`, of which `num_names` are distinct, to chains.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn new(names: &[u32], num_names: usize, canceller: Canceller<'_>) -> Result<Self> {
        let neighbours = Neighbours::new(names, num_names, canceller)?;
        let mut interrupt = canceller.interrupt();
        let mut chains = Self { symbols: Vec::new(), starts: Vec::new() };
        let mut last = NONE;
        for (position, &name) in names.iter().chain([&NONE]).enumerate() {
            interrupt.check()?;
            let goes_on = neighbours.are_one(last, name);
            if !goes_on && (last != NONE || name != NONE) {
                chains.symbols.push(name);
                chains.starts.push(position as u32);
            }
            last = name;
        }
        Ok(chains)
    }

    /// Returns the chains as their first names, with [`END`] behind each run. These names have the
    /// same order as their words.
    pub fn symbols(&self) -> &[u32] {
        &self.symbols
    }

    /// Returns the start of the chain at `index` in the text, or the position behind a run.
    pub fn start(&self, index: usize) -> u32 {
        self.starts[index]
    }

    /// Returns the symbol before the chain at `index`, or [`END`] if that differs from everything.
    pub fn before(&self, index: usize) -> u32 {
        index.checked_sub(1).map_or(END, |before| self.symbols[before])
    }
}

/// Names before and behind each name, or [`NONE`] if they are not always the same.
struct Neighbours {
    before: Vec<u32>,
    behind: Vec<u32>,
}

impl Neighbours {
    fn new(names: &[u32], num_names: usize, canceller: Canceller<'_>) -> Result<Self> {
        let mut interrupt = canceller.interrupt();
        let mut found = Self { before: vec![UNSEEN; num_names], behind: vec![UNSEEN; num_names] };
        let mut last = NONE;
        for &name in names.iter().chain([&NONE]) {
            interrupt.check()?;
            note(&mut found.behind, last, name);
            note(&mut found.before, name, last);
            last = name;
        }
        Ok(found)
    }

    /// Returns true if `name` follows every `last`, and `last` stands before every `name`.
    fn are_one(&self, last: u32, name: u32) -> bool {
        last != NONE && name != NONE && self.behind[last as usize] == name && self.before[name as usize] == last
    }
}

fn note(neighbours: &mut [u32], of: u32, neighbour: u32) {
    if let Some(slot) = neighbours.get_mut(of as usize) {
        let is_same = *slot == UNSEEN || *slot == neighbour;
        *slot = if is_same { neighbour } else { NONE };
    }
}

/// Suffixes of a text that ends in [`END`]. Each [`END`] differs from every other one.
#[derive(Debug)]
pub(super) struct Suffixes {
    order: Vec<u32>,
    common: Vec<u32>,
}

impl Suffixes {
    /// Sorts the suffixes of `symbols`. A suffix precedes the longer ones that begin with it.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn new(symbols: &[u32], canceller: Canceller<'_>) -> Result<Self> {
        let mut sorting = Sorting::new(symbols, canceller)?;
        let mut depth = 1;
        while !sorting.open.is_empty() {
            sorting.deepen(depth)?;
            depth *= 2;
        }
        let interrupt = &mut sorting.interrupt;
        let common = common_prefixes(symbols, &sorting.order, &sorting.ranks, interrupt)?;
        Ok(Self { order: sorting.order, common })
    }

    /// Returns the start of each suffix, in sorted order.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns the number of symbols that the suffix at `index` of the order shares with the suffix
    /// before it.
    pub fn common(&self, index: usize) -> u32 {
        self.common[index]
    }
}

/// Suffixes in groups, while they are sorted.
struct Sorting<'a> {
    order: Vec<u32>,
    /// Start of the group in the order, by position.
    ranks: Vec<u32>,
    /// Groups of more than one suffix.
    open: Vec<Range<usize>>,
    /// Rank and position of the members of one group.
    keys: Vec<u64>,
    canceller: Canceller<'a>,
    interrupt: Interrupt<'a>,
}

impl<'a> Sorting<'a> {
    /// Groups the suffixes by their first symbol. Ends come first, each in its own group.
    fn new(symbols: &[u32], canceller: Canceller<'a>) -> Result<Self> {
        let len = symbols.len();
        let num_ends = symbols.iter().filter(|&&symbol| symbol == END).count();
        let mut sorting = Self {
            order: vec![0; len],
            ranks: vec![0; len],
            open: Vec::new(),
            keys: Vec::with_capacity(len),
            canceller,
            interrupt: canceller.interrupt(),
        };
        let positions = || (0u32..).zip(symbols);
        let ends = positions().filter(|(_, symbol)| **symbol == END);
        for ((position, _), rank) in ends.zip(0..) {
            sorting.interrupt.check()?;
            sorting.order[rank as usize] = position;
            sorting.ranks[position as usize] = rank;
        }
        let others = positions().filter(|(_, symbol)| **symbol != END);
        sorting.keys.extend(others.map(|(position, &symbol)| key(symbol, position)));
        sorting.split(num_ends..len)?;
        Ok(sorting)
    }

    /// Sorts each open group by the text behind the first `depth` symbols, which its members have
    /// in common.
    fn deepen(&mut self, depth: usize) -> Result<()> {
        for group in std::mem::take(&mut self.open) {
            self.interrupt.pass(group.len())?;
            let members = self.order[group.clone()].iter();
            // The common prefix of a group of several suffixes contains no end, so text follows it.
            let ranks = &self.ranks;
            self.keys.clear();
            self.keys.extend(members.map(|&at| key(ranks[at as usize + depth], at)));
            self.split(group)?;
        }
        Ok(())
    }

    /// Splits `group`, whose members are in `keys`, into groups of equal rank. Ranks may have
    /// become finer during the round. That does no harm, because finer ranks have the order of the
    /// suffixes, too.
    fn split(&mut self, group: Range<usize>) -> Result<()> {
        sort_checked(&mut self.keys, |&key| key, self.canceller)?;
        let mut start = group.start;
        for same in self.keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            self.interrupt.pass(same.len())?;
            let end = start + same.len();
            for (slot, &key) in self.order[start..end].iter_mut().zip(same) {
                *slot = key as u32;
                self.ranks[key as u32 as usize] = start as u32;
            }
            if same.len() > 1 {
                self.open.push(start..end);
            }
            start = end;
        }
        Ok(())
    }
}

fn key(rank: u32, position: u32) -> u64 {
    u64::from(rank) << 32 | u64::from(position)
}

fn common_prefixes(symbols: &[u32], order: &[u32], ranks: &[u32], interrupt: &mut Interrupt<'_>) -> Result<Vec<u32>> {
    let mut common = vec![0; order.len()];
    let mut len = 0;
    for (at, &rank) in ranks.iter().enumerate() {
        interrupt.check()?;
        let Some(before) = (rank as usize).checked_sub(1) else {
            len = 0;
            continue;
        };
        let other = order[before] as usize;
        while symbols[at + len] != END && symbols[at + len] == symbols[other + len] {
            interrupt.check()?;
            len += 1;
        }
        common[rank as usize] = len as u32;
        len = len.saturating_sub(1);
    }
    Ok(common)
}

/// Largest period that is looked for, in words.
pub(super) const MAX_PERIOD: usize = 256;

/// Runs of a text that were read.
#[derive(Debug)]
pub(super) struct Runs<'t> {
    text: &'t [u32],
    /// Ends of runs, by period and start.
    ends: BTreeMap<(usize, usize), usize>,
    /// For each prefix of the phrase, the length of its longest proper border.
    borders: Vec<usize>,
    interrupt: Interrupt<'t>,
}

impl<'t> Runs<'t> {
    /// Creates the runs of `text`. None is read yet.
    pub fn new(text: &'t [u32], canceller: Canceller<'t>) -> Self {
        let interrupt = canceller.interrupt();
        Self { text, ends: BTreeMap::new(), borders: Vec::new(), interrupt }
    }

    /// Returns true if the `num_words` words from position `start` are their own shift by a period
    /// of at most half of them.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn is_periodic(&mut self, start: usize, num_words: usize) -> Result<bool> {
        let prefix = &self.text[start..start + num_words.min(2 * MAX_PERIOD)];
        self.interrupt.pass(prefix.len())?;
        Ok(match least_period(prefix, &mut self.borders) {
            Some(period) => self.end_of_run(start, period)? >= start + num_words,
            None => false,
        })
    }

    /// Returns the end of the run that has two periods at `start`.
    fn end_of_run(&mut self, start: usize, period: usize) -> Result<usize> {
        let before = self.ends.range((period, 0)..=(period, start)).next_back();
        // Two runs of one period share less than it. So one that has two periods here is this one.
        if let Some((_, &end)) = before.filter(|&(_, &end)| end >= start + 2 * period) {
            return Ok(end);
        }
        let text = self.text;
        let is_shift = |at: usize| text[at] == text[at - period] && text[at] != BORDER;
        let mut end = start + 2 * period;
        while end < text.len() && is_shift(end) {
            self.interrupt.check()?;
            end += 1;
        }
        let is_shift = |at: usize| text[at] == text[at + period] && text[at] != BORDER;
        let mut first = start;
        while first > 0 && is_shift(first - 1) {
            self.interrupt.check()?;
            first -= 1;
        }
        self.ends.insert((period, first), end);
        Ok(end)
    }
}

/// Returns the least period of `words` if it is at most half their number.
fn least_period(words: &[u32], borders: &mut Vec<usize>) -> Option<usize> {
    borders.clear();
    borders.push(0);
    for at in 1..words.len() {
        let mut border = borders[at - 1];
        while border > 0 && words[border] != words[at] {
            border = borders[border - 1];
        }
        borders.push(border + usize::from(words[border] == words[at]));
    }
    let period = words.len() - borders.last()?;
    (2 * period <= words.len()).then_some(period)
}
