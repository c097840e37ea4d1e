//! Character sets that did not decode a text: U+FFFD stands for some bytes, or the bytes stay as they are
//! because nobody knows the name. The user gets one note for each character set.

use std::collections::BTreeMap;

use crate::display;
use crate::inputs::Input;
use crate::tally::Tally;

/// Most character sets that are named. The names come from the inputs.
const MAX_NAMED: usize = 20;
/// Longest part of a name that is shown.
const MAX_NAME_CHARS: usize = 40;

/// The files so far whose texts were not decoded whole.
#[derive(Debug, Default)]
pub struct Undecoded {
    /// By the character set.
    damaged: BTreeMap<String, Files>,
    /// By the name that nobody knows.
    unknown: BTreeMap<String, Files>,
}

/// A number of files, each counted once.
#[derive(Debug, Default)]
struct Files {
    tally: Tally,
    latest: String,
}

impl Undecoded {
    /// Counts `input`, in which U+FFFD stands for bytes that mean nothing in `charset`.
    pub fn add_damaged(&mut self, charset: &str, input: &Input) {
        add(&mut self.damaged, charset, input);
    }

    /// Counts `input`, which has bytes in `charset`, a name that nobody knows.
    pub fn add_unknown(&mut self, charset: &str, input: &Input) {
        add(&mut self.unknown, charset, input);
    }

    /// Returns a note for each character set.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let damaged = self.damaged.iter().filter_map(|(charset, files)| {
            let (count, first) = files.tally.first()?;
            Some(format!(
                "{} with bytes that mean nothing in {charset}, for which U+FFFD stands ({first}); if that is the \
                 wrong character set, correct its name, or convert first (iconv); --charset keep and --html keep \
                 store the bytes",
                display::plural(count, "file"),
            ))
        });
        let unknown = self.unknown.iter().filter_map(|(charset, files)| {
            let (count, first) = files.tally.first()?;
            Some(format!(
                "{} with texts in {charset}, a character set that is not known, stored as the bytes ({first}); \
                 correct its name, or convert first (iconv -f {charset} -t utf-8)",
                display::plural(count, "file"),
            ))
        });
        damaged.chain(unknown)
    }
}

fn add(charsets: &mut BTreeMap<String, Files>, charset: &str, input: &Input) {
    let shown = input.shown();
    let named =
        display::plain(&charset.to_ascii_lowercase()).chars().take(MAX_NAME_CHARS).collect();
    let is_full = charsets.len() >= MAX_NAMED && !charsets.contains_key(&named);
    let name = if is_full { "other character sets".to_owned() } else { named };
    let files = charsets.entry(name).or_default();
    if files.latest != shown {
        files.tally.add(1, || shown.clone());
        files.latest = shown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Source;

    #[test]
    fn files_count_once_for_each_character_set() {
        let input = |path: &str| Input::new(Source::Member(path.to_owned()), path.to_owned(), 0);
        let mut undecoded = Undecoded::default();
        for path in ["a", "a", "b"] {
            undecoded.add_damaged("UTF-8", &input(path));
        }
        undecoded.add_unknown("x-none", &input("c"));
        let notes: Vec<String> = undecoded.notes().collect();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("2 files with bytes that mean nothing in utf-8"), "{notes:?}");
        assert!(notes[0].contains("(a)"), "{notes:?}");
        assert!(notes[1].starts_with("1 file with texts in x-none, "), "{notes:?}");
        for idx in 0..1000 {
            undecoded.add_unknown(&format!("x-{idx}"), &input("d"));
        }
        assert_eq!(undecoded.notes().count(), MAX_NAMED + 2);
    }
}
