//! Synonyms: a table of words that count as other words.
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

use std::collections::{BTreeMap, btree_map};

use super::Fold;
use crate::error::{Error, Result};

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
