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

use std::ops::Range;

use crate::text::{TokenizerProfile, for_each_token};

use super::Hit;
use super::language::{Leaf, Place, Query, WordPattern};
use super::windows::{Rule, Windows};

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
pub(in crate::query) type PlacedWord<'t> = (&'t str, Range<usize>);

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
        let (start, end) = (hit.byte_range.start.max(range.start), hit.byte_range.end.min(range.end));
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

#[cfg(test)]
mod tests {
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
}
