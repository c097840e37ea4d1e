//! Masks the variable parts of a line.
//!
//! ```text
//! line     [   12.5] usb 1-1.2: new device, id=0x1D6B, May  4 10:02:11
//! words        ── ─  ─── ─ ─ ─  ─── ──────  ── ──────  ─── ─  ── ── ──
//! masked   [<*>] usb <*>: new device, id=<*>, <*> <*> <*>
//! ```
//!
//! A *word* here is a run of ASCII letters, ASCII digits, `_` and characters beyond ASCII, whatever
//! the profile of the corpus is. These words are variable, and no others:
//!
//! - words with a digit, and words of 8 or more hexadecimal digits
//! - words of hexadecimal digits beside a variable word, with only `:` and `-` between: groups of
//!   UUIDs, of hardware addresses and of IPv6 addresses
//! - short English names of months and days (`Jan`, `Mon`) in front of a variable word
//!
//! A variable word becomes [`PLACEHOLDER`]. Variable words with only `. : , - + /` between are one,
//! so an IP address, a time, a version and a UUID are one placeholder each. A sign in front of a
//! variable word is part of it, unless it stands behind a word. Runs of ASCII white space become one
//! blank and vanish at the ends of the line, and between `[` or `(` and a digit, where loggers pad
//! numbers. O(bytes).

/// Text of a variable part.
pub(super) const PLACEHOLDER: &str = "<*>";

/// Hexadecimal digits of a word that is variable without a digit below 10.
const MIN_HEX_LEN: usize = 8;

/// Short names of months and days.
const NAMES: [&str; 19] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon",
    "Tue", "Wed", "Thu", "Fri", "Sat", "Sun",
];

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const UNDERSCORE: u8 = 4;
const WORD: u8 = LETTER | DIGIT | UNDERSCORE;
const HEX: u8 = 8;
const BLANK: u8 = 16;
/// Bytes between variable words that are one.
const JOINER: u8 = 32;
/// Bytes between a word of hexadecimal digits and a variable word.
const LINK: u8 = 64;

/// Classes of each byte, as bits.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let at = byte as u8;
        classes[byte] = match at {
            b'0'..=b'9' => DIGIT | HEX,
            b'a'..=b'f' | b'A'..=b'F' => LETTER | HEX,
            b'_' => UNDERSCORE,
            b':' | b'-' => JOINER | LINK,
            b'.' | b',' | b'+' | b'/' => JOINER,
            _ if at.is_ascii_alphabetic() || !at.is_ascii() => LETTER,
            _ if at.is_ascii_whitespace() => BLANK,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

fn class(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// Returns true if `text` has a letter. Placeholders have none.
pub(super) fn has_letter(text: &str) -> bool {
    text.bytes().any(|byte| class(byte) & LETTER != 0)
}

/// Word of a line.
#[derive(Debug, Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    is_variable: bool,
    /// True if all its bytes are hexadecimal digits.
    is_hex: bool,
}

/// Masks lines, with memory that it uses again.
#[derive(Debug, Default)]
pub(super) struct Masker {
    words: Vec<Word>,
}

impl Masker {
    /// Writes the masked form of `line` to `output`, which it clears first. The form of a line of
    /// white space is empty.
    pub fn mask(&mut self, line: &str, output: &mut String) {
        output.clear();
        self.find_words(line.as_bytes());
        self.spread(line);
        let mut behind = 0;
        for (at, word) in self.words.iter().enumerate() {
            let gap = &line[behind..word.start];
            behind = word.end;
            if !word.is_variable {
                push_gap(gap, output);
                output.push_str(&line[word.start..word.end]);
                continue;
            }
            let follows_variable = at > 0 && self.words[at - 1].is_variable;
            if follows_variable && all(gap, JOINER) {
                continue;
            }
            push_gap(gap_before_variable(gap, at == 0, &line[word.start..]), output);
            output.push_str(PLACEHOLDER);
        }
        push_gap(&line[behind..], output);
        output.truncate(output.trim_ascii_end().len());
    }

    fn find_words(&mut self, line: &[u8]) {
        self.words.clear();
        let mut at = 0;
        while let Some(&byte) = line.get(at) {
            if class(byte) & WORD == 0 {
                at += 1;
                continue;
            }
            let start = at;
            let (mut any, mut every) = (0, u8::MAX);
            while let Some(class) = line.get(at).map(|&b| class(b)).filter(|c| c & WORD != 0) {
                (any, every) = (any | class, every & class);
                at += 1;
            }
            let is_hex = every & HEX != 0;
            let is_variable = any & DIGIT != 0 || is_hex && at - start >= MIN_HEX_LEN;
            self.words.push(Word { start, end: at, is_variable, is_hex });
        }
    }

    /// Marks the words that are variable because of the word beside them. A name needs the word
    /// behind it, so the pass from the end comes last.
    fn spread(&mut self, line: &str) {
        if !self.words.iter().any(|word| word.is_variable) {
            return;
        }
        let is_linked = |first: Word, second: Word| all(&line[first.end..second.start], LINK);
        for at in 1..self.words.len() {
            let (before, word) = (self.words[at - 1], self.words[at]);
            self.words[at].is_variable |=
                before.is_variable && word.is_hex && is_linked(before, word);
        }
        for at in (1..self.words.len()).rev() {
            let (word, behind) = (self.words[at - 1], self.words[at]);
            self.words[at - 1].is_variable |= behind.is_variable
                && (word.is_hex && is_linked(word, behind)
                    || NAMES.contains(&&line[word.start..word.end]));
        }
    }
}

/// Returns true if all bytes of `text` have one of the `classes`.
fn all(text: &str, classes: u8) -> bool {
    text.bytes().all(|byte| class(byte) & classes != 0)
}

/// Returns `gap` without the sign of the variable word behind it, or without the blanks that pad it.
/// `rest` begins with the word.
fn gap_before_variable<'a>(gap: &'a str, is_first: bool, rest: &str) -> &'a str {
    let unsigned = gap.strip_suffix(['+', '-']).filter(|before| is_first || !before.is_empty());
    if let Some(unsigned) = unsigned {
        return unsigned;
    }
    let trimmed = gap.trim_ascii_end();
    let is_padded = trimmed.ends_with(['[', '(']) && rest.starts_with(|c: char| c.is_ascii_digit());
    if is_padded { trimmed } else { gap }
}

/// Appends `gap`, with one blank for each run of white space but one at the start of the output.
fn push_gap(gap: &str, output: &mut String) {
    if gap == " " {
        if !output.is_empty() {
            output.push(' ');
        }
        return;
    }
    for byte in gap.bytes() {
        match class(byte) & BLANK {
            0 => output.push(char::from(byte)),
            _ if output.is_empty() || output.ends_with(' ') => {}
            _ => output.push(' '),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_parts_are_masked() {
        let mut masker = Masker::default();
        let mut masked = String::new();
        for (line, expected) in [
            ("", ""),
            (" \t ", ""),
            ("  plain   text\r", "plain text"),
            ("[    0.000000] Linux version 4.19.0-21-amd64", "[<*>] Linux version <*>"),
            ("[12345.678] x", "[<*>] x"),
            ("[ OK ] Reached (  5%)", "[ OK ] Reached (<*>%)"),
            (
                "Jan  2 03:04:05 host sshd[1]: from 10.0.0.1/24",
                "<*> <*> <*> host sshd[<*>]: from <*>",
            ),
            ("Thu May 12 10:00:00 2017 May not", "<*> <*> <*> <*> <*> May not"),
            ("17/May/2015:10:05:03 +0000", "<*> <*>"),
            ("id 550e8400-e29b-41d4-dead-beefbeefbeef", "id <*>"),
            ("mac aa:bb:cc:00:dd:ee dead beef", "mac <*> dead beef"),
            ("cafebabe facade fe80::1 ::1", "<*> facade <*> ::<*>"),
            ("x=-5 -5 x-5 --5 5-5", "x=<*> <*> x-<*> -<*> <*>"),
            ("eth0: réseau2, /dev/sda1 50%", "<*>: <*>, /dev/<*> <*>%"),
        ] {
            masker.mask(line, &mut masked);
            assert_eq!(masked, expected, "{line}");
        }
    }
}
