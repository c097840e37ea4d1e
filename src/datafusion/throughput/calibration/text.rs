//! Generated text for the measurements: rows of made-up words, the same on every machine.
//!
//! There are 1,500 words of one to four syllables. Early words are more frequent. A row has a few
//! words and a number. The ratios are near those of comment columns. Other text can have other
//! rates, because rates depend on the ratio. So the ratio is kept with the rates.

/// Word that the measured predicates look for. It is in 2 % of the rows, and no made-up word
/// contains it.
pub(super) const NEEDLE: &str = "zygote";
const NEEDLE_PERCENT: usize = 2;
const NUM_WORDS: usize = 1500;
const SYLLABLES: [&str; 40] = [
    "a", "al", "an", "ba", "be", "con", "da", "de", "di", "en", "er", "es", "fi", "ga", "ing",
    "in", "ki", "la", "le", "li", "ly", "ma", "men", "mo", "na", "ne", "on", "or", "pa", "per",
    "po", "ra", "re", "ro", "sa", "si", "sto", "ta", "ti", "un",
];

/// Returns rows with `len_bytes` of text or a little more.
pub(super) fn rows(len_bytes: usize) -> Vec<Vec<u8>> {
    rows_of(0, len_bytes)
}

/// Returns rows with `len_bytes` of text or a little more, for the text with number `number`.
///
/// Texts with different numbers have different rows of the same words.
pub(super) fn rows_of(number: u64, len_bytes: usize) -> Vec<Vec<u8>> {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let words: Vec<String> = (0..NUM_WORDS).map(|_| word(&mut numbers)).collect();
    numbers.0 ^= number << 32;
    let (mut rows, mut total_bytes) = (Vec::new(), 0);
    while total_bytes < len_bytes {
        let mut row = Vec::new();
        for _ in 0..3 + numbers.below(7) {
            // The smallest of three numbers makes early words more frequent.
            let rank = (0..3).map(|_| numbers.below(NUM_WORDS)).min().unwrap_or(0);
            row.extend_from_slice(words[rank].as_bytes());
            row.push(b' ');
        }
        match numbers.below(100) {
            percent if percent < NEEDLE_PERCENT => row.extend_from_slice(NEEDLE.as_bytes()),
            _ => row.extend_from_slice(numbers.below(1000).to_string().as_bytes()),
        }
        total_bytes += row.len();
        rows.push(row);
    }
    rows
}

fn word(numbers: &mut Numbers) -> String {
    (0..1 + numbers.below(4)).map(|_| SYLLABLES[numbers.below(SYLLABLES.len())]).collect()
}

/// A generator of random numbers: Marsaglia's xorshift with a multiplication.
///
/// It gives the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    /// Returns a number below `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        (high % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_long_enough_the_same_each_time_and_holds_the_needle() {
        let text = rows(100_000);
        let num_bytes: usize = text.iter().map(Vec::len).sum();
        assert!((100_000..100_200).contains(&num_bytes));
        assert_eq!(text, rows(100_000));
        let has_needle = |row: &&Vec<u8>| row.ends_with(NEEDLE.as_bytes());
        let part = text.iter().filter(has_needle).count() as f64 / text.len() as f64;
        assert!((0.01..0.03).contains(&part), "{part}");
        assert_eq!(rows(0), Vec::<Vec<u8>>::new());
        let others = rows_of(1, 1000);
        assert!(others == rows_of(1, 1000) && others != rows(1000));
    }
}
