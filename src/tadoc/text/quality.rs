//! Measures of the quality of a text, by which makers of training data keep or drop documents.
//!
//! ```text
//! text        "Go home. Go home. Now!\n- more\n\nGo home. Go home. Now!"
//! words       Go home. Go home. Now! - more Go home. Go home. Now!      between white space
//! lines       Go home. Go home. Now! │ - more │ Go home. Go home. Now!  those with words
//! paragraphs  Go home. … - more │ Go home. Go home. Now!                between blank lines
//! 5-grams     the last five words have stood there before: 18 of 53 characters
//! ```
//!
//! The measures are those of the rules of three pipelines:
//!
//! - Rae and others, "Scaling Language Models" (Gopher), arXiv 2112.11446, appendix A.1.1: numbers of
//!   words, word length, symbols, bullets, ellipses, alphabetic words, stop words, and all repetitions
//! - Raffel and others (C4), JMLR 21, 2020, section 2.2: lines that end in punctuation
//! - Penedo and others (FineWeb), arXiv 2406.17557, section 3.6: short lines, characters of repeated lines
//!
//! The papers leave open what a word is, and how repeated n-grams that overlap count. Here words are
//! parts between white space. A text is read from its first word on: an n-gram that stood before is
//! counted, and reading goes on behind it. So no character counts twice.
//!
//! # N-grams
//!
//! ```text
//! words      a  b  c  a  b  d      2-grams  ab bc ca ab bd     those that repeat: ab
//! numbers    0  1  -  0  1  -               0  -  -  0  -      3-grams: none, and no longer ones
//! ```
//!
//! Each n-gram that repeats has a number, which is that of the pair of (n-1)-grams that it consists
//! of. An n-gram repeats only if both of them do. So most texts are done after a few lengths, and
//! nothing is compared by hash alone. O(bytes) for a text that repeats little, O(bytes + 10 * words)
//! at most, and about 70 bytes of memory for each word.

use std::collections::{HashMap, HashSet};

/// Number of an n-gram that occurs once.
const ONCE: u32 = u32::MAX;
/// Lengths of which the most frequent n-gram counts.
const TOP_LENS: std::ops::RangeInclusive<usize> = 2..=4;
/// Lengths of which all repeated n-grams count.
const REPEATED_LENS: std::ops::RangeInclusive<usize> = 5..=10;
/// Characters of a short line.
const SHORT_LINE_CHARS: usize = 30;
/// Words of which English texts have two or more.
const STOP_WORDS: [&str; 8] = ["the", "be", "to", "of", "and", "that", "have", "with"];
/// Bytes of a word that may be one of these, with signs around it.
const MAX_STOP_WORD_BYTES: usize = 16;
/// Characters that end a sentence or a quotation.
const TERMINAL: &[char] = &['.', '!', '?', '"', '\'', '”', '’', '»', '…', '。', '！', '？', '」', '؟', '۔', '।'];
/// Characters that begin an item of a list.
const BULLETS: &[char] = &['•', '‣', '◦', '-', '*'];

/// Measures of a text. Shares are 0 to 1, and `None` where there is nothing to divide by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextQuality {
    /// Characters (Unicode scalar values).
    pub num_chars: u64,
    /// Words: parts between white space.
    pub num_words: u64,
    /// Lines with words.
    pub num_lines: u64,
    /// Different words of `the be to of and that have with`, in any case.
    pub num_stop_words: u64,
    /// Characters of a word, on average.
    pub mean_word_chars: Option<f64>,
    /// Characters that are no letters, of those that are no white space.
    pub non_alphabetic_chars: Option<f64>,
    /// Words with a letter, of all words.
    pub alphabetic_words: Option<f64>,
    /// Hash signs or ellipses, whichever are more, for each word. It can exceed 1.
    pub symbols_per_word: Option<f64>,
    /// Lines that begin with a bullet (`• ‣ ◦ - *`).
    pub bullet_lines: Option<f64>,
    /// Lines that end with an ellipsis.
    pub ellipsis_lines: Option<f64>,
    /// Lines whose last character ends a sentence or a quotation.
    pub punctuated_lines: Option<f64>,
    /// Lines of at most 30 characters.
    pub short_lines: Option<f64>,
    /// Lines that stood before, of all lines.
    pub repeated_lines: Option<f64>,
    /// Characters of these lines, of all characters.
    pub repeated_line_chars: Option<f64>,
    /// Paragraphs that stood before, of all paragraphs.
    pub repeated_paragraphs: Option<f64>,
    /// Characters of these paragraphs, of all characters.
    pub repeated_paragraph_chars: Option<f64>,
    /// Characters of the most frequent n-gram, for n of 2, 3 and 4, of all characters. It is 0 if none
    /// occurs twice, and 1 at most where occurrences overlap.
    pub top_ngram_chars: [Option<f64>; 3],
    /// Characters of words in n-grams that stood before, for n from 5 to 10, of all characters.
    pub repeated_ngram_chars: [Option<f64>; 6],
}

impl TextQuality {
    /// Measures `text`.
    ///
    /// ```
    /// use tadoc::text::TextQuality;
    ///
    /// let text = "Go home. Go home. Now!\n- more\n\nGo home. Go home. Now!";
    /// let quality = TextQuality::measure(text);
    /// assert_eq!((quality.num_words, quality.num_lines), (12, 3));
    /// assert_eq!(quality.repeated_lines, Some(1.0 / 3.0));
    /// assert_eq!(quality.repeated_ngram_chars[0], Some(18.0 / 53.0));
    /// ```
    pub fn measure(text: &str) -> Self {
        let mut quality = Self::default();
        quality.count_chars(text);
        let words: Vec<&str> = text.split_whitespace().collect();
        quality.count_words(text, &words);
        quality.count_lines(text);
        quality.count_paragraphs(text);
        quality.count_ngrams(&words);
        quality
    }

    fn count_chars(&mut self, text: &str) {
        let mut num_visible = 0;
        let mut num_letters = 0;
        for character in text.chars() {
            self.num_chars += 1;
            num_visible += u64::from(!character.is_whitespace());
            num_letters += u64::from(character.is_alphabetic());
        }
        self.non_alphabetic_chars = share(num_visible - num_letters, num_visible);
    }

    fn count_words(&mut self, text: &str, words: &[&str]) {
        self.num_words = words.len() as u64;
        let num_word_chars: u64 = words.iter().map(|word| num_chars(word)).sum();
        let num_alphabetic = words.iter().filter(|word| word.chars().any(char::is_alphabetic)).count();
        let num_hashes = text.matches('#').count();
        let num_ellipses = text.matches("...").count() + text.matches('…').count();
        self.mean_word_chars = share(num_word_chars, self.num_words);
        self.alphabetic_words = share(num_alphabetic as u64, self.num_words);
        self.symbols_per_word = share(num_hashes.max(num_ellipses) as u64, self.num_words);
        let mut have_stood = [false; STOP_WORDS.len()];
        for word in words.iter().filter(|word| word.len() <= MAX_STOP_WORD_BYTES) {
            let bare = word.trim_matches(|character: char| !character.is_alphabetic());
            if let Some(at) = STOP_WORDS.iter().position(|stop_word| bare.eq_ignore_ascii_case(stop_word)) {
                have_stood[at] = true;
            }
        }
        self.num_stop_words = have_stood.iter().filter(|&&has_stood| has_stood).count() as u64;
    }

    fn count_lines(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let num_lines = lines.len() as u64;
        let share_of =
            |is_one: &dyn Fn(&str) -> bool| share(lines.iter().filter(|line| is_one(line)).count() as u64, num_lines);
        self.num_lines = num_lines;
        self.bullet_lines = share_of(&|line| line.starts_with(BULLETS));
        self.ellipsis_lines = share_of(&|line| line.ends_with("...") || line.ends_with('…'));
        self.punctuated_lines = share_of(&|line| line.ends_with(TERMINAL));
        self.short_lines = share_of(&|line| line.chars().count() <= SHORT_LINE_CHARS);
        let (num_repeated, num_repeated_chars) = repeated(&lines);
        self.repeated_lines = share(num_repeated, num_lines);
        self.repeated_line_chars = share(num_repeated_chars, self.num_chars);
    }

    fn count_paragraphs(&mut self, text: &str) {
        let paragraphs = paragraphs(text);
        let (num_repeated, num_repeated_chars) = repeated(&paragraphs);
        self.repeated_paragraphs = share(num_repeated, paragraphs.len() as u64);
        self.repeated_paragraph_chars = share(num_repeated_chars, self.num_chars);
    }

    fn count_ngrams(&mut self, words: &[&str]) {
        self.top_ngram_chars = [share(0, self.num_chars); 3];
        self.repeated_ngram_chars = [share(0, self.num_chars); 6];
        let mut num_chars_before = vec![0];
        for word in words {
            let num_before = num_chars_before[num_chars_before.len() - 1];
            num_chars_before.push(num_before + num_chars(word));
        }
        let mut grams = Grams::from_words(words);
        while grams.repeat() && grams.len < *REPEATED_LENS.end() {
            grams = grams.longer();
            if TOP_LENS.contains(&grams.len) {
                let num_top = grams.num_top_chars(&num_chars_before).min(self.num_chars);
                self.top_ngram_chars[grams.len - TOP_LENS.start()] = share(num_top, self.num_chars);
            }
            if REPEATED_LENS.contains(&grams.len) {
                let num_repeated = grams.num_repeated_chars(&num_chars_before);
                self.repeated_ngram_chars[grams.len - REPEATED_LENS.start()] = share(num_repeated, self.num_chars);
            }
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    if whole == 0 { None } else { Some(part as f64 / whole as f64) }
}

fn num_chars(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Returns the parts of `text` between blank lines, without white space at their ends.
fn paragraphs(text: &str) -> Vec<&str> {
    let mut paragraphs = Vec::new();
    let mut start = 0;
    let mut end = 0;
    for line in text.split_inclusive('\n').chain(["\n"]) {
        if line.trim().is_empty() {
            paragraphs.push(text[start..end].trim());
            start = (end + line.len()).min(text.len());
        }
        end = (end + line.len()).min(text.len());
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// Returns the number of `parts` that stood before, and of their characters.
fn repeated(parts: &[&str]) -> (u64, u64) {
    let mut seen = HashSet::with_capacity(parts.len());
    let mut num_repeated = 0;
    let mut num_repeated_chars = 0;
    for &part in parts {
        if !seen.insert(part) {
            num_repeated += 1;
            num_repeated_chars += num_chars(part);
        }
    }
    (num_repeated, num_repeated_chars)
}

/// The n-grams of one length.
struct Grams {
    /// Number of words of an n-gram.
    len: usize,
    /// Number of the n-gram at each word; [`ONCE`] for those that do not repeat.
    numbers: Vec<u32>,
    /// Occurrences of each number.
    counts: Vec<u32>,
}

impl Grams {
    /// Returns the words as n-grams of length 1.
    fn from_words(words: &[&str]) -> Self {
        Self::new(1, words.iter().map(|&word| Some(word)))
    }

    /// Returns the n-grams that are one word longer.
    fn longer(&self) -> Self {
        let pairs = self.numbers.windows(2).map(|pair| {
            let repeats = !pair.contains(&ONCE);
            repeats.then(|| (pair[0], pair[1]))
        });
        Self::new(self.len + 1, pairs)
    }

    /// Numbers the n-grams. Those that are `None` occur once.
    fn new<K: std::hash::Hash + Eq>(len: usize, keys: impl Iterator<Item = Option<K>>) -> Self {
        let mut known = HashMap::new();
        let mut counts: Vec<u32> = Vec::new();
        let mut numbers = Vec::new();
        for key in keys {
            let Some(key) = key else {
                numbers.push(ONCE);
                continue;
            };
            let number = *known.entry(key).or_insert(counts.len() as u32);
            if number as usize == counts.len() {
                counts.push(0);
            }
            counts[number as usize] += 1;
            numbers.push(number);
        }
        for number in numbers.iter_mut().filter(|number| **number != ONCE) {
            if counts[*number as usize] == 1 {
                *number = ONCE;
            }
        }
        Self { len, numbers, counts }
    }

    /// Returns true if an n-gram occurs more than once.
    fn repeat(&self) -> bool {
        self.numbers.iter().any(|&number| number != ONCE)
    }

    /// Returns the characters of all occurrences of the most frequent n-gram, with a blank between words. Of several
    /// the longest counts.
    fn num_top_chars(&self, num_chars_before: &[u64]) -> u64 {
        let repeating = self.numbers.iter().enumerate().filter(|(_, number)| **number != ONCE);
        let sizes = repeating.map(|(start, &number)| {
            let num_blanks = self.len as u64 - 1;
            let num_chars = num_chars_before[start + self.len] - num_chars_before[start] + num_blanks;
            (u64::from(self.counts[number as usize]), num_chars)
        });
        sizes.max().map_or(0, |(count, num_chars)| count * num_chars)
    }

    /// Returns the characters of words in n-grams that stood before.
    fn num_repeated_chars(&self, num_chars_before: &[u64]) -> u64 {
        let mut have_stood = vec![false; self.counts.len()];
        let mut num_repeated_chars = 0;
        let mut start = 0;
        while start < self.numbers.len() {
            let number = self.numbers[start];
            if number != ONCE && have_stood[number as usize] {
                num_repeated_chars += num_chars_before[start + self.len] - num_chars_before[start];
                start += self.len;
                continue;
            }
            if number != ONCE {
                have_stood[number as usize] = true;
            }
            start += 1;
        }
        num_repeated_chars
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Evaluates the definitions of repeated n-grams on texts of n-grams.
    fn slow_ngrams(words: &[&str], len: usize, num_chars: u64) -> (u64, u64) {
        let grams: Vec<String> = words.windows(len).map(|gram| gram.join(" ")).collect();
        let count = |gram: &String| grams.iter().filter(|other| *other == gram).count();
        let counts = grams.iter().map(|gram| (count(gram), gram.chars().count()));
        let top = counts.filter(|(count, _)| *count > 1).max().unwrap_or((0, 0));
        let mut seen = HashSet::new();
        let mut repeated = 0;
        let mut start = 0;
        while start < grams.len() {
            if seen.insert(grams[start].clone()) {
                start += 1;
            } else {
                repeated += grams[start].chars().filter(|character| *character != ' ').count() as u64;
                start += len;
            }
        }
        (((top.0 * top.1) as u64).min(num_chars), repeated)
    }

    /// Counts repeated parts by comparing each with all before it.
    fn slow_repeated(parts: &[String]) -> (u64, u64) {
        let repeated = |at: &usize| parts[..*at].contains(&parts[*at]);
        let repeated: Vec<usize> = (0..parts.len()).filter(repeated).collect();
        let num_chars = repeated.iter().map(|&at| parts[at].chars().count() as u64).sum();
        (repeated.len() as u64, num_chars)
    }

    /// Returns the paragraphs, which an empty line ends, from the lines without white space at their ends.
    fn slow_paragraphs(text: &str) -> Vec<String> {
        let mut paragraphs = vec![String::new()];
        for line in text.split('\n') {
            let last = paragraphs.len() - 1;
            if line.trim().is_empty() {
                paragraphs.push(String::new());
            } else {
                paragraphs[last].push_str(line);
                paragraphs[last].push('\n');
            }
        }
        let trimmed = paragraphs.iter().map(|paragraph| paragraph.trim().to_owned());
        trimmed.filter(|paragraph| !paragraph.is_empty()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn repetitions_are_those_of_comparing_all(
            parts in prop::collection::vec(
                prop::sample::select(vec!["a", "b", "é", "the", "is.", "\n", "\n", " \n", "\r\n", "\u{a0}", "  ", "-", "日本"]),
                0..120,
            ),
            joint in prop::sample::select(vec!["", " "]),
        ) {
            let text = parts.join(joint);
            let quality = TextQuality::measure(&text);
            let words: Vec<&str> = text.split_whitespace().collect();
            let num_chars = text.chars().count() as u64;
            for len in 2..=10 {
                let (top, repeated) = slow_ngrams(&words, len, num_chars);
                if len <= 4 {
                    prop_assert_eq!(quality.top_ngram_chars[len - 2], share(top, num_chars));
                } else {
                    prop_assert_eq!(quality.repeated_ngram_chars[len - 5], share(repeated, num_chars));
                }
            }
            let lines: Vec<String> = text.split('\n').map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
            let (num_repeated, num_repeated_chars) = slow_repeated(&lines);
            prop_assert_eq!(quality.num_lines, lines.len() as u64);
            prop_assert_eq!(quality.repeated_lines, share(num_repeated, lines.len() as u64));
            prop_assert_eq!(quality.repeated_line_chars, share(num_repeated_chars, num_chars));
            let paragraphs = slow_paragraphs(&text);
            let (num_repeated, num_repeated_chars) = slow_repeated(&paragraphs);
            prop_assert_eq!(quality.repeated_paragraphs, share(num_repeated, paragraphs.len() as u64));
            prop_assert_eq!(quality.repeated_paragraph_chars, share(num_repeated_chars, num_chars));
        }

        #[test]
        fn shares_of_any_text_are_shares(text in any::<String>()) {
            let quality = TextQuality::measure(&text);
            let shares = [quality.non_alphabetic_chars, quality.alphabetic_words, quality.punctuated_lines, quality.short_lines];
            let all = shares.iter().chain(&quality.top_ngram_chars).chain(&quality.repeated_ngram_chars).flatten();
            for share in all {
                prop_assert!((0.0..=1.0).contains(share), "{}", share);
            }
            prop_assert_eq!(quality.num_chars == 0, quality.repeated_line_chars.is_none());
            prop_assert_eq!(quality.num_words == 0, quality.mean_word_chars.is_none());
        }
    }

    #[test]
    fn lines_and_words_are_measured_as_defined() {
        let quality = TextQuality::measure(
            "# The list, of all\n • one...\n - two…\r\n\n* \"three\"\nWITH more # and 17 words than thirty letters\n",
        );
        assert_eq!((quality.num_words, quality.num_lines, quality.num_stop_words), (20, 5, 4));
        assert_eq!((quality.bullet_lines, quality.ellipsis_lines), (Some(0.6), Some(0.4)));
        assert_eq!((quality.punctuated_lines, quality.short_lines), (Some(0.6), Some(0.8)));
        assert_eq!(quality.symbols_per_word, Some(2.0 / 20.0));
        assert_eq!(quality.alphabetic_words, Some(14.0 / 20.0));
        let letters = TextQuality::measure("ab1 c,");
        assert_eq!((letters.mean_word_chars, letters.non_alphabetic_chars), (Some(2.5), Some(0.4)));
        let empty = TextQuality::measure(" \n");
        assert_eq!((empty.num_chars, empty.mean_word_chars, empty.repeated_lines), (2, None, None));
        assert_eq!((empty.repeated_line_chars, TextQuality::measure("").repeated_line_chars), (Some(0.0), None));
    }

    #[test]
    fn a_word_a_million_times_takes_no_square() {
        let quality = TextQuality::measure(&"a ".repeat(1_000_000));
        assert_eq!(quality.top_ngram_chars[0], Some(1.0));
        assert!(quality.repeated_ngram_chars[0].unwrap() > 0.49);
    }
}
