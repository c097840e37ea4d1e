//! Parts of a fold that need tables: base letters of words, and synonyms.
//!
//! # Accents
//!
//! Letters lose accents, strokes and hooks, and words the underscores around them.
//!
//! ```text
//! _château_ ──NFKD──▶ _cha^teau_ ──no marks──▶ _chateau_ ──base letters──▶ … ──NFC──▶ chateau
//! ```
//!
//! The word is decomposed (NFKD, which also makes `ﬁ` of ligatures and `5` of `⁵`), its nonspacing marks (general
//! category Mn) and any blanks that decompositions have are dropped, letters of [`LETTERS`] are replaced, and the rest
//! is composed again (NFC), so that Hangul stays syllables. Underscores at both ends are dropped last: they are part of
//! words (`\w`), and mark emphasis in plain text. A word of which nothing would be left, such as `__`, stays as it is.
//!
//! In scripts where marks are no accents, more words meet: vowel signs of India are dropped with
//! the other marks, `й` is `и`, and kana lose their voicing.
//!
//! # Synonyms
//!
//! A table of words that count as other words.
//!
//! ```text
//! word         meaning                         car, cars, automobile and Auto count as auto
//! car          automobile                      with case, because rows follow each other
//! cars         car
//! automobile   Auto
//! ```
//!
//! Words and meanings are folded first, by the other parts of the fold, so that a row serves all
//! words that they join. A meaning that has a meaning itself is followed. In a circle all words
//! count as the least of them. O(rows log rows) to build, O(log rows) a word.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, btree_map};
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, Result};
use crate::text::unspaced::bits_for;

use super::Fold;

/// Base letters, each with letters that have no decomposition.
///
/// Source: the letters of U+0080 to U+024F whose Unicode name is `LATIN … LETTER X WITH …`, the
/// letters `Æ Ð Þ ß Œ Ŋ ĸ ı ȷ Ɖ Ƕ Ʉ Ȣ Ɋ` as in the table of Lucene's ASCIIFoldingFilter, and the
/// other case of each of these, wherever it is.
const LETTERS: &[(&str, &str)] = &[
    ("A", "Ⱥ"),
    ("a", "ⱥ"),
    ("AE", "Æ"),
    ("ae", "æ"),
    ("B", "ƁƂɃ"),
    ("b", "ƀƃɓ"),
    ("C", "ƇȻ"),
    ("c", "ƈȼ"),
    ("D", "ÐĐƉƊƋ"),
    ("d", "ðđƌȡɖɗ"),
    ("E", "Ɇ"),
    ("e", "ɇ"),
    ("F", "Ƒ"),
    ("f", "ƒ"),
    ("G", "ƓǤ"),
    ("g", "ǥɠ"),
    ("H", "Ħ"),
    ("h", "ħ"),
    ("HV", "Ƕ"),
    ("hv", "ƕ"),
    ("I", "Ɨ"),
    ("i", "ıɨ"),
    ("J", "Ɉ"),
    ("j", "ȷɉ"),
    ("K", "Ƙ"),
    ("k", "ƙ"),
    ("L", "ŁȽ"),
    ("l", "łƚȴ"),
    ("N", "ŊƝȠ"),
    ("n", "ŋƞȵɲ"),
    ("O", "ØƟ"),
    ("o", "øɵ"),
    ("OE", "Œ"),
    ("oe", "œ"),
    ("OU", "Ȣ"),
    ("ou", "ȣ"),
    ("P", "Ƥ"),
    ("p", "ƥ"),
    ("Q", "Ɋ"),
    ("q", "ĸɋ"),
    ("R", "Ɍ"),
    ("r", "ɍ"),
    ("S", "Ȿ"),
    ("s", "ȿ"),
    ("SS", "ẞ"),
    ("ss", "ß"),
    ("T", "ŦƬƮȾ"),
    ("t", "ŧƫƭȶʈⱦ"),
    ("TH", "Þ"),
    ("th", "þ"),
    ("U", "Ʉ"),
    ("u", "ʉ"),
    ("V", "Ʋ"),
    ("v", "ʋ"),
    ("Y", "ƳɎ"),
    ("y", "ƴɏ"),
    ("Z", "ƵȤⱿ"),
    ("z", "ƶȥɀ"),
];

static BASES: LazyLock<HashMap<char, &'static str>> =
    LazyLock::new(|| LETTERS.iter().flat_map(|&(base, letters)| letters.chars().map(move |c| (c, base))).collect());

/// A bit for each character: 1 if it is a nonspacing mark.
static MARKS: LazyLock<Vec<u64>> = LazyLock::new(|| bits_for(r"\p{Mn}"));

/// Returns `word` in base letters.
pub(super) fn base(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(without_underscores(word));
    }
    let letters = base_letters(word);
    match trimmed(&letters) {
        "" => Cow::Borrowed(word),
        rest if rest.len() == letters.len() => Cow::Owned(letters),
        rest => Cow::Owned(rest.to_owned()),
    }
}

/// Returns `word` with its accents, in the form that stemmers expect: composed (NFKC), without the
/// underscores around it.
pub(super) fn composed(word: &str) -> Cow<'_, str> {
    let rest = without_underscores(word);
    if rest.is_ascii() { Cow::Borrowed(rest) } else { Cow::Owned(rest.nfkc().collect()) }
}

/// Returns `text` in base letters. Its underscores stay, and nothing may be left.
pub(super) fn base_letters(text: &str) -> String {
    let mut letters = String::with_capacity(text.len());
    for character in text.nfkd().filter(|c| !is_mark(*c) && !c.is_whitespace()) {
        match BASES.get(&character) {
            Some(base) => letters.push_str(base),
            None => letters.push(character),
        }
    }
    if letters.is_ascii() { letters } else { letters.nfc().collect() }
}

fn is_mark(character: char) -> bool {
    let place = character as usize;
    MARKS.get(place / 64).is_some_and(|bits| bits >> (place % 64) & 1 == 1)
}

fn trimmed(word: &str) -> &str {
    word.trim_matches('_')
}

/// Returns `word` without the underscores around it, or as it is if nothing else is in it.
pub(super) fn without_underscores(word: &str) -> &str {
    kept(word, trimmed(word))
}

/// Returns `rest` of `word`, or `word` if nothing is left of it.
fn kept<'w>(word: &'w str, rest: &'w str) -> &'w str {
    if rest.is_empty() { word } else { rest }
}

/// Returns `word` in base letters without the way for ASCII.
#[cfg(test)]
pub(super) fn plainly(word: &str) -> String {
    let letters = base_letters(word);
    kept(word, trimmed(&letters)).to_owned()
}

/// Words and their meanings, both folded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Synonyms {
    name: String,
    meanings: BTreeMap<Box<str>, Box<str>>,
}

impl Synonyms {
    /// Builds the synonyms of rows of a word and its meaning, as `fold` folds them. The `name` is
    /// for messages and plans.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a word or a meaning is empty or more than one word, or if a
    /// word has two meanings.
    ///
    /// ```
    /// use tadoc::text::{Fold, Synonyms};
    ///
    /// let synonyms = Synonyms::new("cars", &Fold::CASE, [("Car", "auto"), ("cars", "car")])?;
    /// let fold = Fold::CASE.with_synonyms(synonyms);
    /// assert_eq!((fold.text("CARS"), fold.text("Bus")), ("auto".into(), "bus".into()));
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn new<W: AsRef<str>>(name: &str, fold: &Fold, rows: impl IntoIterator<Item = (W, W)>) -> Result<Self> {
        let mut direct = BTreeMap::new();
        for (word, meaning) in rows {
            for text in [&word, &meaning] {
                refuse_other_than_a_word(name, text.as_ref())?;
            }
            let folded = |text: &W| Box::<str>::from(fold.text(text.as_ref()));
            match direct.entry(folded(&word)) {
                btree_map::Entry::Vacant(vacant) => drop(vacant.insert(folded(&meaning))),
                btree_map::Entry::Occupied(known) => {
                    refuse_second(name, word.as_ref(), (known.get(), &folded(&meaning)))?;
                }
            }
        }
        Ok(Self { name: name.to_owned(), meanings: followed(&direct) })
    }

    /// Returns the name of the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the words that have a meaning, and their meanings, both folded. [`new`](Self::new)
    /// makes the same synonyms of them again.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        self.meanings.iter().map(|(word, meaning)| (&**word, &**meaning))
    }

    /// Returns the text that a folded word counts as, if it has a meaning.
    pub(super) fn meaning(&self, folded: &str) -> Option<&str> {
        self.meanings.get(folded).map(|meaning| &**meaning)
    }
}

fn refuse_other_than_a_word(name: &str, text: &str) -> Result<()> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(refused(name, &format!("'{}'", shortened(text)), "one word in each column"));
    }
    Ok(())
}

fn refuse_second(name: &str, word: &str, (one, other): (&str, &str)) -> Result<()> {
    if one == other {
        return Ok(());
    }
    let got = [word, one, other].map(shortened);
    let got = format!("'{}' with the meanings '{}' and '{}'", got[0], got[1], got[2]);
    Err(refused(name, &got, "one meaning for each word after the other folds"))
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(32).map_or(text, |(end, _)| &text[..end])
}

fn refused(name: &str, got: &str, allowed: &str) -> Error {
    let got = format!("{got} in the synonyms of {name}");
    Error::InvalidArgument { name: "fold", got, allowed: allowed.to_owned() }
}

/// Follows each meaning to its end, or to the least word of a circle.
fn followed(direct: &BTreeMap<Box<str>, Box<str>>) -> BTreeMap<Box<str>, Box<str>> {
    let mut ends: BTreeMap<Box<str>, Box<str>> = BTreeMap::new();
    for word in direct.keys() {
        let mut path: Vec<&Box<str>> = Vec::new();
        let mut at_path: BTreeMap<&str, usize> = BTreeMap::new();
        let mut at = word;
        let end = loop {
            if let Some(end) = ends.get(at) {
                break end.clone();
            }
            if let Some(&begin) = at_path.get(&**at) {
                break path[begin..].iter().min().map_or_else(|| at.clone(), |&least| least.clone());
            }
            let Some(next) = direct.get(at) else {
                break at.clone();
            };
            at_path.insert(at, path.len());
            path.push(at);
            at = next;
        };
        ends.extend(path.into_iter().map(|word| (word.clone(), end.clone())));
    }
    ends
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_lose_accents_strokes_and_underscores() {
        for (word, text) in [
            ("tea", "tea"),
            ("_château_", "chateau"),
            ("cha\u{302}teau", "chateau"),
            ("ÀÉÎÕÜ", "AEIOU"),
            ("Straße", "Strasse"),
            ("STRAẞE", "STRASSE"),
            ("søster", "soster"),
            ("Ǿ", "O"),
            ("ǣon", "aeon"),
            ("Łódź", "Lodz"),
            ("Þór", "THor"),
            ("ﬁn", "fin"),
            ("x⁵", "x5"),
            ("ＡＢ＿", "AB"),
            ("Việt", "Viet"),
            ("ἄνθρωπος", "ανθρωπος"),
            ("ёй", "еи"),
            ("한국어", "한국어"),
            ("中文", "中文"),
            ("مَدْرَسَة", "مدرسة"),
            ("snake_case", "snake_case"),
            ("__init__", "init"),
            ("__", "__"),
            ("\u{301}", "\u{301}"),
            ("¨", "¨"),
            ("", ""),
        ] {
            assert_eq!(base(word), text, "{word}");
        }
    }

    #[test]
    fn letters_of_the_table_have_no_decomposition_and_stand_once() {
        assert!(is_mark('\u{301}') && !is_mark('a') && !is_mark('\u{93e}'));
        let letters: Vec<char> = LETTERS.iter().flat_map(|(_, letters)| letters.chars()).collect();
        assert_eq!(letters.len(), BASES.len());
        assert!(letters.iter().all(|&letter| std::iter::once(letter).nfkd().eq([letter])));
    }

    #[test]
    fn words_are_composed_for_stemmers() {
        assert_eq!(composed("_cha\u{302}teau_"), "château");
        assert_eq!(composed("__tea"), "tea");
        assert_eq!(composed("__"), "__");
    }

    fn fold(name: &str, rows: &[(&str, &str)]) -> Fold {
        let plain: Fold = name.parse().unwrap();
        let synonyms = Synonyms::new("t", &plain, rows.iter().copied()).unwrap();
        plain.with_synonyms(synonyms)
    }

    #[test]
    fn rows_follow_each_other() {
        let cars = fold("none", &[("car", "auto"), ("cars", "car"), ("auto", "Auto")]);
        for word in ["car", "cars", "auto", "Auto"] {
            assert_eq!(cars.text(word), "Auto");
        }
        assert_eq!(cars.text("Car"), "Car");
        let circle = fold("none", &[("c", "b"), ("b", "a"), ("a", "b"), ("d", "c"), ("e", "e")]);
        assert_eq!(["a", "b", "c", "d", "e"].map(|word| circle.text(word).into_owned()), ["a", "a", "a", "a", "e"]);
    }

    #[test]
    fn other_folds_come_first() {
        let houses = fold("accents,stem:german", &[("Gebäude", "Häuser")]);
        for word in ["gebäude", "Gebaude", "Haus", "Hauses"] {
            assert_eq!(houses.text(word), houses.text("haus"), "{word}");
        }
        assert_eq!(houses.to_string(), "accents,stem:german,synonyms:t");
        assert_eq!(fold("none", &[]).to_string(), "synonyms:t");
        assert_eq!(houses.plain().to_string(), "case,accents");
    }

    #[test]
    fn rows_that_are_no_synonyms_are_refused() {
        for (rows, expected) in [
            (&[("New York", "NYC")][..], "fold: got 'New York' in the synonyms of t, expected one word"),
            (&[("NYC", "")], "got '' in the synonyms of t"),
            (
                &[("bank", "shore"), ("Bank", "money")],
                "got 'Bank' with the meanings 'shore' and 'money' in the synonyms of t, expected one meaning",
            ),
        ] {
            let fault = Synonyms::new("t", &Fold::CASE, rows.iter().copied()).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
        assert!(Synonyms::new("t", &Fold::CASE, [("a", "B"), ("A", "b")]).is_ok());
        assert!(Synonyms::new("t", &Fold::NONE, [("a", "B"), ("A", "b")]).is_ok());
    }

    #[test]
    fn long_chains_take_one_step_a_row() {
        let rows: Vec<(String, String)> = (0..100_000).map(|i| (format!("{i:06}"), format!("{:06}", i + 1))).collect();
        let synonyms = Synonyms::new("t", &Fold::NONE, rows).unwrap();
        assert_eq!(Fold::NONE.with_synonyms(synonyms).text("000000"), "100000");
    }

    /// Takes one step after the other until a word repeats.
    fn plainly(direct: &BTreeMap<String, String>, word: &str) -> String {
        let mut path = vec![word];
        while let Some(next) = direct.get(path[path.len() - 1]) {
            if let Some(begin) = path.iter().position(|word| word == next) {
                return path[begin..].iter().min().unwrap().to_string();
            }
            path.push(next);
        }
        path[path.len() - 1].to_owned()
    }

    proptest! {
        #[test]
        fn meanings_are_those_of_single_steps(
            direct in prop::collection::btree_map("[a-h]", "[a-l]", 0..8), word in "[a-l]",
        ) {
            let synonyms = Synonyms::new("t", &Fold::NONE, &direct).unwrap();
            let fold = Fold::NONE.with_synonyms(synonyms);
            prop_assert_eq!(fold.text(&word), plainly(&direct, &word));
            let once = fold.text(&word).into_owned();
            prop_assert_eq!(fold.text(&once), once.clone());
        }
    }
}
