//! Names and texts of users in errors: suggestions for mistyped names, and the beginning of a long text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use datafusion::common::utils::datafusion_strsim::levenshtein;

/// Most similar names that an error lists.
const MAX_NAMES: usize = 3;
/// Most files of a folder that are compared with a name.
const MAX_FILES: usize = 10_000;

/// Returns the candidate closest to `name`, if it is near enough to be a typing error.
pub(crate) fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    candidates
        .map(|c| (levenshtein(&name, c), c))
        .filter(|(distance, c)| *distance <= c.len().max(name.len()) / 3 + 1 && *distance < c.len())
        .min()
        .map(|(_, c)| c)
}

/// Returns `did you mean A or B?` for the candidates that are near enough to `name`, if there are any. Folders and
/// endings that they share say nothing.
pub(crate) fn did_you_mean(name: &str, candidates: BTreeSet<String>) -> Option<String> {
    let (folder, last) = name.rfind('/').map_or(("", name), |at| name.split_at(at + 1));
    let ending = last.rfind('.').filter(|&at| at > 0).map_or("", |at| &last[at..]);
    let stem = |text: &str| {
        let text = text.strip_prefix(folder).unwrap_or(text);
        text.strip_suffix(ending).unwrap_or(text).to_owned()
    };
    let of_stems = candidates.into_iter().map(|candidate| (stem(&candidate), candidate));
    let mut of_stems: BTreeMap<String, String> = of_stems.collect();
    let mut similar = Vec::new();
    while similar.len() < MAX_NAMES
        && let Some(found) = closest(&stem(name), of_stems.keys().map(String::as_str)).map(str::to_owned)
        && let Some(candidate) = of_stems.remove(&found)
    {
        similar.push(candidate);
    }
    (!similar.is_empty()).then(|| format!("did you mean {}?", similar.join(" or ")))
}

/// Returns the names of the files and folders beside `name` on the disk, as a statement writes them. A URL
/// has none.
pub(crate) fn files_beside(name: &str) -> BTreeSet<String> {
    let folder = name.rsplit_once('/').map(|(folder, _)| folder);
    if name.contains("://") {
        return BTreeSet::new();
    }
    let listed = match folder {
        None => ".",
        Some("") => "/",
        Some(folder) => folder,
    };
    let Ok(entries) = fs::read_dir(listed) else { return BTreeSet::new() };
    let names = entries.take(MAX_FILES).flatten().map(|entry| entry.file_name().into_string());
    let visible = names.flatten().filter(|name| !name.starts_with('.'));
    match folder {
        None => visible.collect(),
        Some(folder) => visible.map(|file| format!("{folder}/{file}")).collect(),
    }
}

/// Most characters of a text that an error repeats.
const MAX_CHARS: usize = 120;

/// Returns `text`, or its beginning and `…`.
pub fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_folders_and_endings_say_nothing() {
        let among =
            |name: &str, names: &[&str]| did_you_mean(name, names.iter().map(|&name| name.to_owned()).collect());
        let files = ["a/b/notes.tadoc", "a/b/laws.tadoc", "a/b/c"];
        assert_eq!(among("a/b/nowhere.tadoc", &files), None);
        assert_eq!(among("a/b/note.tadoc", &files).unwrap(), "did you mean a/b/notes.tadoc?");
        let tables = ["ab", "abc", "abcd", "b", "zebra"];
        assert_eq!(among("abx", &tables).unwrap(), "did you mean ab or abc or abcd?");
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = || ["corpus", "fold"].into_iter();
        assert_eq!(closest("flod", names()), Some("fold"));
        assert_eq!(closest("Corpse", names()), Some("corpus"));
        assert_eq!(closest("separator", names()), None);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(MAX_CHARS);
        assert_eq!(shown(&long), long);
        assert_eq!(shown(&format!("{long}a")), format!("{long}…"));
    }
}
