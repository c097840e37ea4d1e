//! Stretches of words that hold all parts of a NEAR list or of a phrase with gaps.
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

use super::Hit;

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
struct Place {
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
    nearest: Vec<Option<Place>>,
    /// Occurrences that start at the current word.
    here: Vec<(usize, Place)>,
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
        self.here.push((part, Place { hit, num_words: self.lens[part], is_own }));
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

    fn near(&mut self, here: &[(usize, Place)], max_between: u64) -> Option<Stretch> {
        let start_word = here.first()?.1.hit.word_index;
        here.iter().for_each(|&(part, place)| self.nearest[part] = Some(place));
        let places = || self.nearest.iter().flatten();
        if places().count() < self.nearest.len() {
            return None;
        }
        let end = |place: &Place| place.hit.word_index + place.num_words;
        let first_end = places().map(end).min()?;
        if first_end.saturating_add(max_between) < start_word {
            return None;
        }
        let first = places().min_by_key(|place| place.hit.word_index)?;
        let end_byte = places().map(|place| place.hit.byte_offset + place.hit.byte_len).max()?;
        let hit = Hit { byte_len: end_byte - first.hit.byte_offset, ..first.hit };
        Some(Stretch { hit, is_own: first.is_own, end_word: places().map(end).max()? })
    }

    fn gapped(&mut self, here: &mut [(usize, Place)], max_between: u64) -> Option<Stretch> {
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
