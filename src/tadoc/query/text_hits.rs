//! Hits of a query in a text that is in no corpus: the text is cut into words and read once.
//!
//! The rules are those of a search in a corpus. Cost: O(words * patterns of the query). Memory is
//! that of the words and hits of the text.

use std::ops::Range;

use crate::text::{TokenizerProfile, for_each_token};

use crate::query::hit::Hit;
use crate::query::language::{Leaf, Place, Query, WordPattern};
use crate::query::windows::{Rule, Windows};

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
    let items: Vec<Vec<usize>> =
        query.items().iter().map(|item| occurrences(item, &words)).collect();
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
    let (mut words, mut start) = (Vec::new(), 0);
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
    let is_match = |window: &[PlacedWord<'_>]| {
        window.iter().zip(item).all(|((word, _), pattern)| pattern.matches(word))
    };
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
    let bytes = |item: usize, first: usize| {
        words[first].1.start..words[first + query.items()[item].len() - 1].1.end
    };
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
        let hit = Hit {
            doc_id: 0,
            byte_offset: range.start as u64,
            byte_len: range.len() as u64,
            word_index: first as u64,
        };
        windows.push(part, hit, true, &mut note);
    }
    windows.finish(&mut note);
    found
}
