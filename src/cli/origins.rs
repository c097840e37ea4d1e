//! The files that the documents of a living corpus came from, so that another spelling of a path is the same
//! file.
//!
//! ```text
//! inputs: path, real path ─▶ rules: prefix of paths, real prefix ─▶ ranges of documents ─▶ version
//!         a.txt  /w/x/a.txt          ""            /w/x/             0..200
//! ```
//!
//! A file is known by its real path, without links, or by its URL. A path alone does not say which file it
//! is: it may be relative to a folder that was named, or to the working directory. So an append stores with its
//! commit how its paths lead to real paths. These rules are few, however many files there are, and they lie
//! beside the bookmarks, under a name that no file has. Documents without rules are known by their paths alone:
//! those of earlier builds, of `--path`, of edits and of statements.

use std::collections::BTreeMap;
use std::ops::Range;

use tadoc_documents::{Documents, Input};
use tadoc_store::{Bookmark, Version};

/// Name of the bookmark that has the rules. No name of a file has a zero byte.
const SOURCE: &str = "\0origins";
/// Most rules that a version has. Older ones are left out.
const MAX_RULES: usize = 1000;

/// Rules that lead from the paths of documents to real paths.
///
/// The longest prefix counts. A prefix is empty, it ends with `/`, or it is a whole path.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, String>);

impl Origins {
    /// Returns the rules for documents of `inputs`, whose real paths are `files`. Those without one have an
    /// empty text.
    pub fn new(inputs: &[Input], files: &[String], documents: &Documents) -> Self {
        // Rows may have paths of their own.
        let may_share = matches!(documents, Documents::Files | Documents::Lines);
        let known = || inputs.iter().zip(files).filter(|(_, file)| !file.is_empty());
        let mut rules = Self::default();
        for (input, file) in known() {
            if rules.file(&input.path).as_ref() != Some(file) {
                rules.learn(input, file, may_share);
            }
            if rules.0.len() > MAX_RULES {
                return Self::default();
            }
        }
        // A later prefix may be that of an earlier path, too.
        for (input, file) in known() {
            if rules.file(&input.path).as_ref() != Some(file) {
                rules.0.insert(input.path.clone(), file.clone());
            }
        }
        if rules.0.len() > MAX_RULES { Self::default() } else { rules }
    }

    /// Adds the shortest prefix that leads from the path of `input` to `file`.
    fn learn(&mut self, input: &Input, file: &str, may_share: bool) {
        let path = input.path.as_str();
        if input.members.is_empty() {
            // Members have no name in front, and they are no files beside the archive.
            if may_share {
                self.0.insert(String::new(), format!("{file}/"));
            }
            self.0.insert(path.to_owned(), file.to_owned());
            return;
        }
        let starts = std::iter::once(0).chain(path.match_indices('/').map(|(idx, _)| idx + 1));
        for start in starts.filter(|_| may_share) {
            let (prefix, rest) = path.split_at(start);
            let folder = file.strip_suffix(rest).filter(|folder| folder.ends_with('/'));
            if let Some(folder) = folder.filter(|_| !self.0.contains_key(prefix)) {
                self.0.insert(prefix.to_owned(), folder.to_owned());
                return;
            }
        }
        self.0.insert(path.to_owned(), file.to_owned());
    }

    /// Returns true if no path leads to a file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the real path of a document.
    pub fn file(&self, path: &str) -> Option<String> {
        if let Some(file) = self.0.get(path) {
            return Some(file.clone());
        }
        for (slash, _) in path.rmatch_indices('/') {
            for end in [slash + 1, slash] {
                if let Some(folder) = self.0.get(&path[..end]) {
                    return Some(format!("{folder}{}", &path[end..]));
                }
            }
        }
        self.0.get("").map(|folder| format!("{folder}{path}"))
    }

    /// Returns the paths that lead to `file`.
    fn paths(&self, file: &str) -> impl Iterator<Item = String> {
        let paths = self.0.iter().filter_map(move |(prefix, folder)| {
            let rest = file.strip_prefix(folder.as_str())?;
            Some(format!("{prefix}{rest}"))
        });
        paths.filter(move |path| self.file(path).as_deref() == Some(file))
    }
}

/// The rules of the documents of a version.
#[derive(Debug, Default, Clone)]
pub struct KnownOrigins(Vec<(Range<u64>, Origins)>);

impl KnownOrigins {
    /// Returns the rules that `version` has. A text that is none of ours has no rules.
    pub fn new(version: &Version) -> Self {
        let stored: Vec<(u64, u64, BTreeMap<String, String>)> =
            version.bookmark(SOURCE).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Self(stored.into_iter().map(|(start, end, rules)| (start..end, Origins(rules))).collect())
    }

    /// Returns the bookmark of `version` that has the rules now.
    pub fn place(version: &Version) -> Option<String> {
        version.bookmark(SOURCE).map(str::to_owned)
    }

    /// Adds the rules of the documents `ids`, and returns the bookmark that has them.
    pub fn with(mut self, ids: Range<u64>, rules: &Origins) -> Bookmark {
        match self.0.last_mut() {
            Some((last, same)) if last.end == ids.start && same == rules => last.end = ids.end,
            _ => self.0.push((ids, rules.clone())),
        }
        let mut num_rules: usize = self.0.iter().map(|(_, rules)| rules.0.len()).sum();
        self.0.retain(|(_, rules)| {
            let is_kept = num_rules <= MAX_RULES;
            num_rules -= if is_kept { 0 } else { rules.0.len() };
            is_kept
        });
        let stored = self.0.iter().map(|(ids, rules)| (ids.start, ids.end, &rules.0));
        let place = serde_json::json!(stored.collect::<Vec<_>>()).to_string();
        Bookmark { source: SOURCE.to_owned(), place }
    }

    /// Returns the number of the rules of document `doc_id`.
    pub fn number_for(&self, doc_id: u64) -> Option<usize> {
        let idx = self.0.partition_point(|(ids, _)| ids.end <= doc_id);
        self.0.get(idx).filter(|(ids, _)| ids.contains(&doc_id)).map(|_| idx)
    }

    /// Returns the path of a document that came from `file`. `has` tells if a path is there under the rules of
    /// a number.
    pub fn find(&self, file: &str, has: impl Fn(&str, usize) -> bool) -> Option<String> {
        self.0.iter().enumerate().find_map(|(idx, (_, rules))| rules.paths(file).find(|path| has(path, idx)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tadoc_documents::Source;

    fn inputs(all: &[(&str, &str)]) -> (Vec<Input>, Vec<String>) {
        let input = |path: &str| Input::new(Source::Stdin, path.to_owned(), 0);
        all.iter().map(|(path, file)| (input(path), (*file).to_owned())).unzip()
    }

    #[test]
    fn paths_lead_to_files_and_back() {
        for (all, num_rules) in [
            (vec![("a.txt", "/w/x/a.txt"), ("sub/b.txt", "/w/x/sub/b.txt")], 1),
            (vec![("x/a.txt", "/w/x/a.txt"), ("b.txt", "/w/b.txt")], 1),
            (vec![("/w/a.txt", "/w/a.txt"), ("/v/a.txt", "/v/a.txt")], 1),
            (vec![("../a.txt", "/v/a.txt"), ("b.txt", "/w/b.txt")], 2),
            (vec![("link", "/w/target"), ("b.txt", "/w/b.txt")], 2),
            // A folder far away that has the name of one here.
            (vec![("y/q", "/w/y/q"), ("z/r", "/v/z/r"), ("y/r", "/v/y/r")], 4),
            (vec![("s3://b/x/a", "s3://b/x/a")], 1),
        ] {
            let (inputs, files) = inputs(&all);
            let rules = Origins::new(&inputs, &files, &Documents::Files);
            assert_eq!(rules.0.len(), num_rules, "{rules:?}");
            for (path, file) in all {
                assert_eq!(rules.file(path).as_deref(), Some(file), "{rules:?}");
                assert!(rules.paths(file).any(|found| found == path), "{rules:?}");
            }
        }
    }

    /// A member is no file beside its archive, and a row may have any path.
    #[test]
    fn other_paths_are_no_files() {
        let (mut inputs, files) = inputs(&[("m.tar", "/w/m.tar")]);
        let rows = Origins::new(&inputs, &files, &Documents::Jsonl("t".into()));
        assert_eq!(rows.file("other"), None);
        let several = Origins::new(&inputs, &files, &Documents::Files);
        assert_eq!(several.file("m.tar/m/a").as_deref(), Some("/w/m.tar/m/a"));
        inputs[0].members.clear();
        let alone = Origins::new(&inputs, &files, &Documents::Files);
        assert_eq!(alone.file("m.tar").as_deref(), Some("/w/m.tar"));
        assert_eq!(alone.file("m/a").as_deref(), Some("/w/m.tar/m/a"));
        assert!(alone.paths("/w/m.tar/m/a").any(|path| path == "m/a"));
    }

    #[test]
    fn ranges_join_and_the_oldest_are_left_out() {
        let rules = |folder: String| Origins(BTreeMap::from([(String::new(), folder)]));
        let mut known = KnownOrigins::default();
        known.0.push((0..2, rules("/w/".into())));
        let joined = known.clone().with(2..5, &rules("/w/".into())).place;
        assert_eq!(joined, r#"[[0,5,{"":"/w/"}]]"#);
        for number in 1..=MAX_RULES as u64 {
            known.0.push((number * 10..number * 10 + 1, rules(format!("/{number}/"))));
        }
        let stored = known.with(5..6, &rules("/w/".into())).place;
        let stored: Vec<(u64, u64, BTreeMap<String, String>)> = serde_json::from_str(&stored).unwrap();
        assert_eq!((stored.len(), stored[0].0), (MAX_RULES, 20));
    }
}
