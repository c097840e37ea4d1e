//! Statistics of a block's text: number of nulls, length, smallest and largest value.
//!
//! Bounds are decoded values, in the order of bytes (for UTF-8 the order of code points). Long ones
//! are cut to 64 bytes. A prefix is a lower bound as it is. It is an upper bound after its last
//! character, or byte, is replaced by the next one. Such bounds are marked as not exact.

/// Largest length of a bound, in bytes.
pub(super) const MAX_BOUND_BYTES: usize = 64;

/// A lower or upper bound of the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Bytes of the bound, which are UTF-8 if the column is.
    pub bytes: Vec<u8>,
    /// True if the bound is one of the values.
    pub is_exact: bool,
}

/// Statistics of the text of some rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextStatistics {
    /// Number of rows, nulls included.
    pub num_rows: usize,
    /// Number of rows that are null.
    pub num_nulls: usize,
    /// Length of the text of all rows, in bytes.
    pub text_len_bytes: u64,
    /// Lower bound of the values. `None` if all rows are null.
    pub min: Option<Bound>,
    /// Upper bound of the values. `None` if all rows are null or no short value is above them.
    pub max: Option<Bound>,
}

impl TextStatistics {
    /// Computes the statistics of `rows` (`None` is null).
    pub(super) fn from_rows(rows: &[Option<&[u8]>], is_utf8: bool) -> Self {
        let values = || rows.iter().flatten().copied();
        Self {
            num_rows: rows.len(),
            num_nulls: rows.len() - values().count(),
            text_len_bytes: values().map(|value| value.len() as u64).sum(),
            min: values().min().map(|min| lower_bound(min, is_utf8)),
            max: values().max().and_then(|max| upper_bound(max, is_utf8)),
        }
    }

    /// Returns the statistics of the rows of both.
    pub fn merge(&self, other: &Self) -> Self {
        let has_values = |one: &Self| one.num_nulls < one.num_rows;
        let (min, max) = match (has_values(self), has_values(other)) {
            (true, true) => {
                let both = |one: &Option<Bound>, two: &Option<Bound>| one.clone().zip(two.clone());
                let smaller =
                    |(one, two): (Bound, Bound)| if two.bytes < one.bytes { two } else { one };
                let larger =
                    |(one, two): (Bound, Bound)| if two.bytes > one.bytes { two } else { one };
                (both(&self.min, &other.min).map(smaller), both(&self.max, &other.max).map(larger))
            }
            (false, true) => (other.min.clone(), other.max.clone()),
            _ => (self.min.clone(), self.max.clone()),
        };
        Self {
            num_rows: self.num_rows + other.num_rows,
            num_nulls: self.num_nulls + other.num_nulls,
            text_len_bytes: self.text_len_bytes.saturating_add(other.text_len_bytes),
            min,
            max,
        }
    }

    /// Returns true if a row may have this text. If false, no row has it.
    pub fn may_be(&self, text: &[u8]) -> bool {
        self.num_nulls < self.num_rows
            && self.min.as_ref().is_none_or(|min| &min.bytes[..] <= text)
            && self.max.as_ref().is_none_or(|max| &max.bytes[..] >= text)
    }
}

fn lower_bound(value: &[u8], is_utf8: bool) -> Bound {
    let bytes = prefix(value, is_utf8);
    Bound { bytes: bytes.to_vec(), is_exact: bytes.len() == value.len() }
}

fn upper_bound(value: &[u8], is_utf8: bool) -> Option<Bound> {
    let bytes = prefix(value, is_utf8);
    if bytes.len() == value.len() {
        return Some(Bound { bytes: bytes.to_vec(), is_exact: true });
    }
    let next = if is_utf8 { next_text(bytes) } else { next_bytes(bytes) };
    next.map(|bytes| Bound { bytes, is_exact: false })
}

/// Returns at most [`MAX_BOUND_BYTES`] of `value`, as whole characters if `is_utf8`.
fn prefix(value: &[u8], is_utf8: bool) -> &[u8] {
    if value.len() <= MAX_BOUND_BYTES {
        return value;
    }
    let is_continuation = |at: &usize| is_utf8 && value[*at] & 0xc0 == 0x80;
    let len_bytes = (1..=MAX_BOUND_BYTES).rev().find(|at| !is_continuation(at));
    &value[..len_bytes.unwrap_or(0)]
}

/// Returns the smallest bytes above all that start with `bytes`, or `None` if all are 0xff.
fn next_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let last = bytes.iter().rposition(|byte| *byte < 0xff)?;
    let mut next = bytes[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// Returns a text above all that start with `bytes`, or `None` if there is none. The last character
/// that has a successor of the same length is replaced by it, and the rest is cut off.
fn next_text(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let next_of = |character: char| {
        let next = (u32::from(character) + 1..=0xe000).chain(u32::from(character) + 1..);
        next.take(2049).find_map(char::from_u32)
    };
    text.char_indices().rev().find_map(|(at, character)| {
        let next = next_of(character)?;
        let fits = next.len_utf8() == character.len_utf8();
        fits.then(|| [&bytes[..at], next.encode_utf8(&mut [0; 4]).as_bytes()].concat())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(values: &[Option<&[u8]>], is_utf8: bool) {
        let statistics = TextStatistics::from_rows(values, is_utf8);
        for value in values.iter().flatten() {
            assert!(statistics.may_be(value));
        }
        for bound in statistics.min.iter().chain(&statistics.max) {
            assert!(bound.bytes.len() <= MAX_BOUND_BYTES);
            assert!(!is_utf8 || std::str::from_utf8(&bound.bytes).is_ok());
            assert!(!bound.is_exact || values.contains(&Some(&bound.bytes)));
        }
        let (one, two) = values.split_at(values.len() / 2);
        let merged =
            TextStatistics::from_rows(one, is_utf8).merge(&TextStatistics::from_rows(two, is_utf8));
        assert_eq!((merged.num_rows, merged.num_nulls), (values.len(), statistics.num_nulls));
        assert!(values.iter().flatten().all(|value| merged.may_be(value)));
    }

    proptest! {
        #[test]
        fn bounds_hold(texts in proptest::collection::vec(
            prop_oneof![
                1 => Just(None),
                3 => "\\PC{0,80}".prop_map(Some),
                1 => "a{60,64}[ÿ\u{7f}\u{7ff}\u{d7ff}\u{ffff}\u{10ffff}]{1,3}b*".prop_map(Some),
                1 => "\u{10ffff}{14,20}".prop_map(Some),
            ],
            0..8,
        )) {
            let values: Vec<_> =
                texts.iter().map(|text| text.as_ref().map(|text| text.as_bytes())).collect();
            check(&values, true);
            check(&values, false);
        }
    }

    #[test]
    fn bounds_of_long_values() {
        let long = ["a".repeat(63), "ÿ".repeat(3)].concat();
        let rows = [Some(long.as_bytes())];
        let statistics = TextStatistics::from_rows(&rows, true);
        let (min, max) = (statistics.min.unwrap(), statistics.max.unwrap());
        assert_eq!(min, Bound { bytes: b"a".repeat(63), is_exact: false });
        assert_eq!(max.bytes, [b"a".repeat(62), b"b".to_vec()].concat());
        let high = [0xff; 70];
        assert_eq!(TextStatistics::from_rows(&[Some(&high)], false).max, None);
        assert_eq!(next_text("a\u{d7ff}".as_bytes()).unwrap(), "a\u{e000}".as_bytes());
        let nothing = TextStatistics::from_rows(&[None], true);
        assert!(nothing.min.is_none() && !nothing.may_be(b""));
    }
}
