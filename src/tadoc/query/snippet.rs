//! Texts with the hits of a query marked, whole or their best part.
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

use crate::text::TokenizerProfile;

use crate::query::language::Query;
use crate::query::text_hits::{TextHit, text_hits, words};

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
pub fn highlight(
    query: &Query,
    profile: TokenizerProfile,
    text: &str,
    open: &str,
    close: &str,
) -> String {
    highlight_hits(text, &text_hits(query, profile, text.as_bytes()), open, close)
}

/// Returns `text` with `open` before each of its `hits` and `close` after it. The answer has at most
/// both for each hit beside the text.
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
pub fn snippet(
    query: &Query,
    profile: TokenizerProfile,
    text: &str,
    options: &SnippetOptions<'_>,
) -> String {
    let words: Vec<Range<usize>> =
        words(profile, text.as_bytes()).into_iter().map(|(_, range)| range).collect();
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
    let (mut num_inside, mut num_different) = (vec![0usize; num_leaves], 0);
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
    let (mut at, mut until) = (range.start, None::<usize>);
    let slice = |range: Range<usize>| text.get(range).unwrap_or_default();
    for hit in hits {
        let (start, end) =
            (hit.byte_range.start.max(range.start), hit.byte_range.end.min(range.end));
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
        assert_eq!(
            part("c", text, 5),
            "..a [b], c. a b..".replace("[b]", "b").replace("c.", "[c].")
        );
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
