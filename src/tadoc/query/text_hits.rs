//! Hits of a query in a text that is in no corpus: the text is cut into words and read once.
//!
//! The rules are those of a search in a corpus. Cost: O(words * patterns of the query). Memory is
//! that of the words and hits of the text.
//!
//! # Snippets
//!
//! ```text
//! highlight   Power was [lost]; during the [storm] it came back.
//! snippet     … was [lost]; during the [storm] it …                6 words
//! ```
//!
//! Overlapping hits are marked together, as SQLite's FTS5 does (sections 5.1.2 and 5.1.3 of its
//! documentation). The best part has the most different leaves of the query, then the most hits,
//! then comes first; its hits stand in the middle.
//!
//! # Windows
//!
//! Stretches of words that hold all parts of a NEAR list or of a phrase with gaps, in a text or in a corpus.
//!
//! ```text
//! words       a  x  b  b  y  a            NEAR(a b, 1)
//! word        0  1  2  3  4  5
//! at word 2   a0 … b2     one word between          a hit
//! at word 3   a0 … b3     contains a0 … b2          no hit
//! at word 5   b3 … a5     one word between          a hit
//! ```
//!
//! Occurrences come in order. At each word where one starts, the nearest occurrence of each other
//! part that starts there or before belongs to it. Starts and ends of these stretches never move
//! back, so a stretch contains another one only if both start or both end at the same word, and
//! only neighbours have to be compared. Memory is that of one occurrence for each part.

use std::ops::Range;

use crate::text::{TokenizerProfile, for_each_token};

use super::Hit;
use super::language::{Leaf, Place, Query, WordPattern};

/// A hit of a query in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextHit {
    /// Index of the leaf among [`Query::leaves`].
    pub leaf: usize,
    /// Bytes from the start of the first word to the end of the last.
    pub byte_range: Range<usize>,
    /// Index of the first word.
    pub word_index: usize,
}

/// Returns the hits of `query` in `text`, by offset; none if the text does not meet the condition.
///
/// ```
/// use tadoc::query::{Query, text_hits};
/// use tadoc::text::TokenizerProfile;
///
/// let query = Query::parse(TokenizerProfile::Word, "NEAR(power storm, 3) NOT drill")?;
/// let hits = text_hits(&query, TokenizerProfile::Word, b"power was lost: a storm, a second storm");
/// assert_eq!(hits[0].byte_range, 0..23);
/// assert_eq!(hits.len(), 1);
/// # Ok::<(), tadoc::Error>(())
/// ```
pub fn text_hits(query: &Query, profile: TokenizerProfile, text: &[u8]) -> Vec<TextHit> {
    let words = words(profile, text);
    let items: Vec<Vec<usize>> = query.items().iter().map(|item| occurrences(item, &words)).collect();
    let hits_of = |leaf: &Leaf| leaf_hits(query, leaf, &items, &words, text);
    let by_leaf: Vec<Vec<(usize, Range<usize>)>> = query.leaves().iter().map(hits_of).collect();
    let mut is_there = |leaf: usize| !by_leaf[leaf].is_empty();
    if !query.root().holds(&mut is_there) {
        return Vec::new();
    }
    let mut is_hit = vec![false; by_leaf.len()];
    query.root().for_each_hit_leaf(&mut is_there, &mut |leaf| is_hit[leaf] = true);
    let leaves = by_leaf.into_iter().enumerate().filter(|&(leaf, _)| is_hit[leaf]);
    let mut hits: Vec<TextHit> = leaves
        .flat_map(|(leaf, hits)| {
            let hit = move |(word_index, byte_range)| TextHit { leaf, byte_range, word_index };
            hits.into_iter().map(hit)
        })
        .collect();
    hits.sort_by_key(|hit| (hit.byte_range.start, hit.byte_range.end));
    hits
}

/// A word of a text, with its bytes.
type PlacedWord<'t> = (&'t str, Range<usize>);

/// Returns the words of `text`.
pub(in crate::query) fn words(profile: TokenizerProfile, text: &[u8]) -> Vec<PlacedWord<'_>> {
    let mut words = Vec::new();
    let mut start = 0;
    for_each_token(profile, text, |token| {
        let range = start..start + token.bytes.len();
        start = range.end;
        // A word is valid UTF-8.
        if let Ok(word) = std::str::from_utf8(&text[range.clone()])
            && token.is_word
        {
            words.push((word, range));
        }
    });
    words
}

/// Returns the indexes of the first words of the occurrences of `item`.
fn occurrences(item: &[WordPattern], words: &[PlacedWord<'_>]) -> Vec<usize> {
    let windows = words.windows(item.len()).enumerate();
    let is_match =
        |window: &[PlacedWord<'_>]| window.iter().zip(item).all(|((word, _), pattern)| pattern.matches(word));
    windows.filter(|(_, window)| is_match(window)).map(|(at, _)| at).collect()
}

/// Returns true if the surroundings of the words from `first` on are those of `place`.
fn fits(words: &[PlacedWord<'_>], first: usize, text: &[u8], place: &Place) -> bool {
    if place.is_first && first > 0 {
        return false;
    }
    let [before, between @ .., behind] = &place.gaps[..] else { return true };
    let item = &words[first..words.len().min(first + between.len() + 1)];
    let (Some(start), Some(end)) = (item.first(), item.last()) else { return false };
    let found = item.windows(2).map(|pair| &text[pair[0].1.end..pair[1].1.start]);
    text[..start.1.start].ends_with(before.as_bytes())
        && text[end.1.end..].starts_with(behind.as_bytes())
        && found.eq(between.iter().map(String::as_bytes))
}

/// Returns the hits of a leaf, each with the index of its first word and its bytes.
fn leaf_hits(
    query: &Query,
    leaf: &Leaf,
    items: &[Vec<usize>],
    words: &[PlacedWord<'_>],
    text: &[u8],
) -> Vec<(usize, Range<usize>)> {
    let bytes = |item: usize, first: usize| words[first].1.start..words[first + query.items()[item].len() - 1].1.end;
    let rule = match leaf {
        Leaf::Phrase(item) => {
            return items[*item].iter().map(|&first| (first, bytes(*item, first))).collect();
        }
        Leaf::Placed { item, place } => {
            let is_fitting = |&first: &usize| fits(words, first, text, place);
            let fitting = items[*item].iter().copied().filter(is_fitting);
            return fitting.map(|first| (first, bytes(*item, first))).collect();
        }
        Leaf::Near { max_between, .. } => Rule::Near(*max_between),
        Leaf::Gapped { max_between, .. } => Rule::Gapped(*max_between),
    };
    let lens = leaf.items().iter().map(|&item| query.items()[item].len() as u64).collect();
    let mut places: Vec<(usize, usize)> = leaf
        .items()
        .iter()
        .enumerate()
        .flat_map(|(part, &item)| items[item].iter().map(move |&first| (first, part)))
        .filter(|&(first, part)| fits(words, first, text, leaf.place(part)))
        .collect();
    places.sort_unstable();
    let mut found = Vec::new();
    let mut note = |hit: Hit| {
        let start = hit.byte_offset as usize;
        found.push((hit.word_index as usize, start..start + hit.byte_len as usize));
    };
    let mut windows = Windows::new(rule, lens);
    for (first, part) in places {
        let range = bytes(leaf.items()[part], first);
        let hit =
            Hit { doc_id: 0, byte_offset: range.start as u64, byte_len: range.len() as u64, word_index: first as u64 };
        windows.push(part, hit, true, &mut note);
    }
    windows.finish(&mut note);
    found
}

/// Marks and length of a [`snippet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnippetOptions<'a> {
    /// Text before each hit.
    pub open: &'a str,
    /// Text after each hit.
    pub close: &'a str,
    /// Text in place of what is left out before and after the part.
    pub ellipsis: &'a str,
    /// Most words of the part, 1 or more.
    pub max_words: usize,
}

impl Default for SnippetOptions<'_> {
    fn default() -> Self {
        Self { open: "<b>", close: "</b>", ellipsis: "…", max_words: 16 }
    }
}

/// Returns `text` with `open` before each hit of `query` and `close` after it.
///
/// ```
/// use tadoc::query::{Query, highlight};
/// use tadoc::text::TokenizerProfile;
///
/// let query = Query::parse(TokenizerProfile::Word, "lost OR storm")?;
/// let marked = highlight(&query, TokenizerProfile::Word, "lost in a storm", "[", "]");
/// assert_eq!(marked, "[lost] in a [storm]");
/// # Ok::<(), tadoc::Error>(())
/// ```
pub fn highlight(query: &Query, profile: TokenizerProfile, text: &str, open: &str, close: &str) -> String {
    highlight_hits(text, &text_hits(query, profile, text.as_bytes()), open, close)
}

/// Returns `text` with `open` before each of its `hits` and `close` after it. The answer has at
/// most both for each hit beside the text.
pub fn highlight_hits(text: &str, hits: &[TextHit], open: &str, close: &str) -> String {
    marked(text, 0..text.len(), hits, open, close)
}

/// Returns the part of `text` with the best hits of `query`, marked. Without hits it is the
/// beginning of the text.
///
/// ```
/// use tadoc::query::{Query, SnippetOptions, snippet};
/// use tadoc::text::TokenizerProfile;
///
/// let query = Query::parse(TokenizerProfile::Word, "storm")?;
/// let options = SnippetOptions { open: "[", close: "]", max_words: 3, ..Default::default() };
/// let part = snippet(&query, TokenizerProfile::Word, "lost in a storm, at night", &options);
/// assert_eq!(part, "…a [storm], at…");
/// # Ok::<(), tadoc::Error>(())
/// ```
pub fn snippet(query: &Query, profile: TokenizerProfile, text: &str, options: &SnippetOptions<'_>) -> String {
    let words: Vec<Range<usize>> = words(profile, text.as_bytes()).into_iter().map(|(_, range)| range).collect();
    let hits = text_hits(query, profile, text.as_bytes());
    let part = best_part(&hits, &words, options.max_words.max(1));
    let start = if part.start == 0 { 0 } else { words[part.start].start };
    let end = if part.end == words.len() { text.len() } else { words[part.end - 1].end };
    let before = if part.start > 0 { options.ellipsis } else { "" };
    let after = if part.end < words.len() { options.ellipsis } else { "" };
    let inside = marked(text, start..end, &hits, options.open, options.close);
    format!("{before}{inside}{after}")
}

/// Returns the words of the best part, which are `max_words` if the text has as many.
fn best_part(hits: &[TextHit], words: &[Range<usize>], max_words: usize) -> Range<usize> {
    let end_word = |hit: &TextHit| words.partition_point(|word| word.start < hit.byte_range.end);
    let ends: Vec<usize> = hits.iter().map(end_word).collect();
    // Number of hits of each leaf that lie in the part that begins with hit `first`.
    let num_leaves = hits.iter().map(|hit| hit.leaf + 1).max().unwrap_or(0);
    let mut num_inside = vec![0usize; num_leaves];
    let mut num_different = 0;
    let mut best: Option<((usize, usize), Range<usize>)> = None;
    let mut next = 0;
    for first in 0..hits.len() {
        let start = hits[first].word_index;
        while next < hits.len() && (next == first || ends[next] <= start + max_words) {
            num_different += usize::from(num_inside[hits[next].leaf] == 0);
            num_inside[hits[next].leaf] += 1;
            next += 1;
        }
        let score = (num_different, next - first);
        if best.as_ref().is_none_or(|(least, _)| score > *least) {
            best = Some((score, start..ends[next - 1]));
        }
        num_inside[hits[first].leaf] -= 1;
        num_different -= usize::from(num_inside[hits[first].leaf] == 0);
    }
    let hits = best.map_or(0..0, |(_, hits)| hits);
    let spare = max_words.saturating_sub(hits.len());
    let start = hits.start.saturating_sub(spare / 2).min(words.len().saturating_sub(max_words));
    start..words.len().min(start + max_words)
}

/// Returns the bytes `range` of `text` with the parts of `hits` in it marked. Ends of `range` are
/// ends of words or of the text.
fn marked(text: &str, range: Range<usize>, hits: &[TextHit], open: &str, close: &str) -> String {
    let mut out = String::with_capacity(range.len());
    let mut at = range.start;
    let mut until = None::<usize>;
    let slice = |range: Range<usize>| text.get(range).unwrap_or_default();
    for hit in hits {
        let start = hit.byte_range.start.max(range.start);
        let end = hit.byte_range.end.min(range.end);
        if start >= end {
            continue;
        }
        match until {
            Some(open_until) if start < open_until => until = Some(open_until.max(end)),
            _ => {
                if let Some(until) = until {
                    out.push_str(slice(at..until));
                    out.push_str(close);
                    at = until;
                }
                out.push_str(slice(at..start));
                out.push_str(open);
                (at, until) = (start, Some(end));
            }
        }
    }
    if let Some(until) = until {
        out.push_str(slice(at..until));
        out.push_str(close);
        at = until;
    }
    out.push_str(slice(at..range.end));
    out
}

/// Rule that the parts of a stretch follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum Rule {
    /// Any order. Between the end of the part that ends first and the start of the part that starts
    /// last are at most so many words; parts may overlap. Words of the other parts count if they
    /// lie there. So counts SQLite's FTS5 (`fts5ExprNearIsMatch`), also with phrases of several
    /// words.
    Near(u64),
    /// The given order of parts of one word each, with at most so many other words among them.
    Gapped(u64),
}

/// An occurrence of a part.
#[derive(Debug, Clone, Copy)]
struct PartHit {
    hit: Hit,
    num_words: u64,
    /// True if it begins in the segments whose hits are wanted.
    is_own: bool,
}

/// A stretch that meets the rule, from the start of its first part to the end of its last.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    hit: Hit,
    is_own: bool,
    end_word: u64,
}

/// Finds the stretches of one document after the other.
#[derive(Debug)]
pub(in crate::query) struct Windows {
    rule: Rule,
    /// Number of words of each part.
    lens: Vec<u64>,
    /// Nearest occurrence of each part so far in the document. For [`Rule::Gapped`], the start of
    /// the nearest stretch of the parts up to this one.
    nearest: Vec<Option<PartHit>>,
    /// Occurrences that start at the current word.
    here: Vec<(usize, PartHit)>,
    /// Last stretch that was found. A later one may replace it.
    pending: Option<Stretch>,
}

impl Windows {
    /// Creates the search for parts of `lens` words, two or more.
    pub fn new(rule: Rule, lens: Vec<u64>) -> Self {
        let nearest = vec![None; lens.len()];
        Self { rule, lens, nearest, here: Vec::new(), pending: None }
    }

    /// Returns the number of words behind the start of an own occurrence from which on no
    /// occurrence can change the stretches of it.
    pub fn reach_words(&self) -> u64 {
        let (Rule::Near(max_between) | Rule::Gapped(max_between)) = self.rule;
        let longest = self.lens.iter().copied().max().unwrap_or(0);
        let longest = longest.saturating_mul(2).max(self.lens.len() as u64);
        longest.saturating_add(max_between)
    }

    /// Adds the next occurrence, which is one of part `part`, and passes stretches that are
    /// complete to `found`. `is_own` is true if it begins in the segments whose hits are wanted.
    pub fn push(&mut self, part: usize, hit: Hit, is_own: bool, found: &mut dyn FnMut(Hit)) {
        if let Some((_, place)) = self.here.first()
            && (place.hit.doc_id, place.hit.word_index) != (hit.doc_id, hit.word_index)
        {
            let is_same_doc = place.hit.doc_id == hit.doc_id;
            self.take_here(found);
            if !is_same_doc {
                self.end_document(found);
            }
        }
        self.here.push((part, PartHit { hit, num_words: self.lens[part], is_own }));
    }

    /// Passes the stretches that are left to `found`, after the last occurrence.
    pub fn finish(&mut self, found: &mut dyn FnMut(Hit)) {
        self.take_here(found);
        self.end_document(found);
    }

    fn end_document(&mut self, found: &mut dyn FnMut(Hit)) {
        self.nearest.fill(None);
        self.hand_on(None, found);
    }

    /// Passes the pending stretch on and replaces it.
    fn hand_on(&mut self, next: Option<Stretch>, found: &mut dyn FnMut(Hit)) {
        let pending = std::mem::replace(&mut self.pending, next);
        pending.filter(|stretch| stretch.is_own).into_iter().for_each(|stretch| found(stretch.hit));
    }

    /// Finds the stretch that ends with the occurrences at the current word.
    fn take_here(&mut self, found: &mut dyn FnMut(Hit)) {
        let mut here = std::mem::take(&mut self.here);
        let stretch = match self.rule {
            Rule::Near(max_between) => self.near(&here, max_between),
            Rule::Gapped(max_between) => self.gapped(&mut here, max_between),
        };
        here.clear();
        self.here = here;
        let Some(next) = stretch else { return };
        match self.pending {
            Some(pending) if pending.hit.word_index == next.hit.word_index => {}
            Some(pending) if pending.end_word == next.end_word => self.pending = Some(next),
            _ => self.hand_on(Some(next), found),
        }
    }

    fn near(&mut self, here: &[(usize, PartHit)], max_between: u64) -> Option<Stretch> {
        let start_word = here.first()?.1.hit.word_index;
        here.iter().for_each(|&(part, place)| self.nearest[part] = Some(place));
        let places = || self.nearest.iter().flatten();
        if places().count() < self.nearest.len() {
            return None;
        }
        let end = |place: &PartHit| place.hit.word_index + place.num_words;
        let first_end = places().map(end).min()?;
        if first_end.saturating_add(max_between) < start_word {
            return None;
        }
        let first = places().min_by_key(|place| place.hit.word_index)?;
        let end_byte = places().map(|place| place.hit.byte_offset + place.hit.byte_len).max()?;
        let hit = Hit { byte_len: end_byte - first.hit.byte_offset, ..first.hit };
        Some(Stretch { hit, is_own: first.is_own, end_word: places().map(end).max()? })
    }

    fn gapped(&mut self, here: &mut [(usize, PartHit)], max_between: u64) -> Option<Stretch> {
        // A word is one part of a stretch only, so later parts look at earlier ones before these
        // move on.
        here.sort_unstable_by_key(|&(part, _)| std::cmp::Reverse(part));
        let last_part = self.nearest.len() - 1;
        let mut stretch = None;
        for &(part, place) in here.iter() {
            let start = match part {
                0 => Some(place),
                _ => self.nearest[part - 1],
            };
            if let Some(start) = start.filter(|_| part == last_part) {
                let num_words = place.hit.word_index - start.hit.word_index + 1;
                let end_byte = place.hit.byte_offset + place.hit.byte_len;
                let hit = Hit { byte_len: end_byte - start.hit.byte_offset, ..start.hit };
                let end_word = place.hit.word_index + 1;
                stretch = (num_words - self.nearest.len() as u64 <= max_between).then_some(Stretch {
                    hit,
                    is_own: start.is_own,
                    end_word,
                });
            }
            self.nearest[part] = start.or(self.nearest[part]);
        }
        stretch
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(query: &str, text: &str, max_words: usize) -> String {
        let query = Query::parse(TokenizerProfile::Word, query).unwrap();
        let options = SnippetOptions { open: "[", close: "]", ellipsis: "..", max_words };
        snippet(&query, TokenizerProfile::Word, text, &options)
    }

    #[test]
    fn the_best_part_is_shown() {
        let text = "a a a b, c. a b b";
        assert_eq!(part("a OR b OR c", text, 3), "..[a] [b], [c]..");
        assert_eq!(part("b", text, 2), "..[b] [b]");
        assert_eq!(part("\"a a\"", text, 4), "[a a a] b..");
        assert_eq!(part("\"a a a\"", text, 2), "[a a]..");
        assert_eq!(part("x", text, 2), "a a..");
        assert_eq!(part("c", text, 5), "..a [b], c. a b..".replace("[b]", "b").replace("c.", "[c]."));
        assert_eq!(part("c", text, 50), "a a a b, [c]. a b b");
        assert_eq!(part("x", "", 2), "");
        assert_eq!(part("x", " - ", 2), " - ");
        assert_eq!(part("b NOT c", text, 50), text);
    }

    #[test]
    fn overlapping_hits_are_marked_together() {
        let query = Query::parse(TokenizerProfile::Word, "\"a b\" OR \"b c\" OR e").unwrap();
        let marked = highlight(&query, TokenizerProfile::Word, "a b c d é e", "<", ">");
        assert_eq!(marked, "<a b c> d é <e>");
    }

    /// Returns the first and last word of each hit, by the definition: for each occurrence the
    /// nearest ones before it, without stretches that contain others.
    fn slow(rule: Rule, parts: &[Vec<u64>], lens: &[u64]) -> Vec<(u64, u64)> {
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        match rule {
            Rule::Near(max_between) => {
                for &last in parts.iter().flatten() {
                    let nearest: Option<Vec<(u64, u64)>> = parts
                        .iter()
                        .zip(lens)
                        .map(|(part, len)| {
                            let start = part.iter().copied().filter(|&at| at <= last).max()?;
                            Some((start, start + len))
                        })
                        .collect();
                    let Some(nearest) = nearest else { continue };
                    let first_end = nearest.iter().map(|&(_, end)| end).min().unwrap();
                    if last <= first_end + max_between {
                        let start = nearest.iter().map(|&(start, _)| start).min().unwrap();
                        let end = nearest.iter().map(|&(_, end)| end).max().unwrap();
                        stretches.push((start, end));
                    }
                }
            }
            Rule::Gapped(max_between) => {
                let mut chains: Vec<(u64, u64)> = parts[0].iter().map(|&at| (at, at)).collect();
                for part in &parts[1..] {
                    let longer = |&(start, last): &(u64, u64)| {
                        part.iter().filter(move |&&at| at > last).map(move |&at| (start, at))
                    };
                    chains = chains.iter().flat_map(longer).collect();
                }
                let num_words = parts.len() as u64;
                chains.retain(|&(start, last)| last + 1 - start - num_words <= max_between);
                stretches.extend(chains.iter().map(|&(start, last)| (start, last + 1)));
            }
        }
        stretches.sort_unstable();
        stretches.dedup();
        let contains = |a: &(u64, u64), b: &(u64, u64)| a != b && a.0 <= b.0 && b.1 <= a.1;
        let all = stretches.clone();
        stretches.retain(|stretch| !all.iter().any(|other| contains(stretch, other)));
        stretches
    }

    /// Returns true if some choice of an occurrence of each part is near, as FTS5 defines it: from
    /// the end of each to the start of the last are at most `max_between` words.
    fn is_near_in_fts5(max_between: u64, parts: &[Vec<u64>], lens: &[u64]) -> bool {
        let mut choices: Vec<Vec<(u64, u64)>> = vec![Vec::new()];
        for (part, len) in parts.iter().zip(lens) {
            let with = |choice: &Vec<(u64, u64)>| {
                let longer = |&at: &u64| [choice.clone(), vec![(at, at + len)]].concat();
                part.iter().map(longer).collect::<Vec<_>>()
            };
            choices = choices.iter().flat_map(with).collect();
        }
        choices.iter().any(|choice| {
            let last = choice.iter().map(|&(start, _)| start).max().unwrap();
            choice.iter().all(|&(_, end)| last <= end + max_between)
        })
    }

    /// Returns the hits of NEAR for the places of `parts` in one document.
    fn near_hits(max_between: u64, parts: &[Vec<u64>], lens: &[u64]) -> Vec<Hit> {
        let for_part =
            |(part, words): (usize, &Vec<u64>)| words.iter().map(move |&word| (word, part)).collect::<Vec<_>>();
        let mut places: Vec<(u64, usize)> = parts.iter().enumerate().flat_map(for_part).collect();
        places.sort_unstable();
        let mut windows = Windows::new(Rule::Near(max_between), lens.to_vec());
        let mut found = Vec::new();
        for (word, part) in places {
            windows.push(part, hit(word, lens[part]), true, &mut |hit| found.push(hit));
        }
        windows.finish(&mut |hit| found.push(hit));
        found
    }

    #[test]
    fn phrases_of_several_words_count_from_the_one_that_ends_first() {
        // a b c d x e: `a b c d` and `e` have one word between them, `b` and `e` have three.
        assert_eq!(near_hits(1, &[vec![0], vec![5]], &[4, 1]).len(), 1);
        assert_eq!(near_hits(0, &[vec![0], vec![5]], &[4, 1]).len(), 0);
        assert_eq!(near_hits(2, &[vec![0], vec![1], vec![5]], &[4, 1, 1]).len(), 0);
        assert_eq!(near_hits(3, &[vec![0], vec![1], vec![5]], &[4, 1, 1]).len(), 1);
        // a b c d e: the words of the phrase in the middle, `b c d`, are between `a` and `e`.
        assert_eq!(near_hits(2, &[vec![0], vec![1], vec![4]], &[1, 3, 1]).len(), 0);
        assert_eq!(near_hits(3, &[vec![0], vec![1], vec![4]], &[1, 3, 1]).len(), 1);
    }

    fn hit(word_index: u64, num_words: u64) -> Hit {
        Hit { doc_id: 0, byte_offset: 2 * word_index, byte_len: 2 * num_words - 1, word_index }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn documents_are_near_as_in_fts5(
            parts in prop::collection::vec(
                (prop::collection::btree_set(0u64..16, 0..5), 1u64..5), 2..4),
            max_between in 0u64..8,
        ) {
            let lens: Vec<u64> = parts.iter().map(|(_, len)| *len).collect();
            let parts: Vec<Vec<u64>> =
                parts.into_iter().map(|(words, _)| words.into_iter().collect()).collect();
            let found = !near_hits(max_between, &parts, &lens).is_empty();
            prop_assert_eq!(found, is_near_in_fts5(max_between, &parts, &lens));
        }

        #[test]
        fn stretches_are_those_of_the_definition(
            parts in prop::collection::vec(
                (prop::collection::btree_set(0u64..24, 0..8), 1u64..4), 2..4),
            max_between in 0u64..8,
            is_near in any::<bool>(),
        ) {
            let rule = if is_near { Rule::Near(max_between) } else { Rule::Gapped(max_between) };
            let lens: Vec<u64> = parts.iter().map(|(_, len)| if is_near { *len } else { 1 }).collect();
            let parts: Vec<Vec<u64>> =
                parts.into_iter().map(|(words, _)| words.into_iter().collect()).collect();
            let mut places: Vec<(u64, usize)> = (0..)
                .zip(&parts)
                .flat_map(|(part, words)| words.iter().map(move |&word| (word, part)))
                .collect();
            places.sort_unstable();
            let mut windows = Windows::new(rule, lens.clone());
            let mut found = Vec::new();
            let mut note = |hit: Hit| {
                found.push((hit.word_index, hit.byte_offset / 2 + hit.byte_len.div_ceil(2)));
            };
            for (word, part) in places {
                windows.push(part, hit(word, lens[part]), true, &mut note);
            }
            windows.finish(&mut note);
            prop_assert_eq!(found, slow(rule, &parts, &lens));
        }
    }
}
