//! The paths that a living corpus has already, so that an ingest stores no document twice; and the files that
//! its documents came from ([`Origins`]), so that another spelling of a path is the same file.
//!
//! ```text
//! files of the version ─▶ facts of documents (no grammar) ─┐
//! edits of the version ─▶ documents added and dropped ─────┴▶ paths ─▶ inputs, before they are read
//!                                                                   └▶ documents: members, rows
//!
//! inputs: path, real path ─▶ rules: prefix of paths, real prefix ─▶ ranges of documents ─▶ version
//!         a.txt  /w/x/a.txt          ""            /w/x/             0..200
//! ```
//!
//! A path names one document, or all lines and rows of one file. A file whose path is there, or that is there
//! under another spelling of its path, is refused before it is read. Members of archives, and rows with paths
//! of their own, are refused as they come. What comes through a pipe as lines or rows has no identity, so it
//! is never refused. Memory is that of all paths.
//!
//! A file is known by its real path, without links, or by its URL. A path alone does not say which file it
//! is: it may be relative to a folder that was named, or to the working directory. So an append stores with
//! its commit how its paths lead to real paths. These rules are few, however many files there are, and they
//! lie beside the bookmarks, under a name that no file has. Documents without rules are known by their paths
//! alone: those of earlier builds, of `--path`, of edits and of statements.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;
use tadoc::edits::Edit;
use tadoc_documents::display::{grouped, plain, plural};
use tadoc_documents::{Documents, Input, Source};
use tadoc_session::{Failure, Outcome};
use tadoc_store::{Bookmark, Part, Version, VersionEdits};

use crate::inputs::path_of;
use crate::living::Living;
use crate::ls::facts_of;

/// The paths of the documents of one version.
#[derive(Debug, Default)]
pub struct TakenPaths {
    location: String,
    paths: Paths,
    /// Rules that lead from paths to files, of the version and of what is added.
    known: KnownOrigins,
    added: Origins,
    /// Real paths of followed files, and the names of their bookmarks.
    followed: HashMap<String, String>,
    /// Paths of pipes, which may come again.
    of_pipes: HashSet<String>,
    /// True if documents are whole files.
    are_files: bool,
}

impl TakenPaths {
    /// Reads the paths of `version` of the corpus at `location`, of which `leaving` are about to be dropped.
    ///
    /// # Errors
    /// A file of the version cannot be read, or it is damaged.
    pub fn read(
        living: &Living,
        location: &Path,
        version: &Version,
        documents: &Documents,
        leaving: &HashSet<u64>,
    ) -> Outcome<Self> {
        let are_files = *documents == Documents::Files;
        Self::for_version(living, location, version, are_files, leaving)
    }

    fn for_version(
        living: &Living,
        location: &Path,
        version: &Version,
        are_files: bool,
        leaving: &HashSet<u64>,
    ) -> Outcome<Self> {
        let known = KnownOrigins::new(version);
        Ok(Self {
            location: living.store.location(),
            paths: all_paths(living, location, version, leaving, &known)?,
            known,
            added: Origins::default(),
            followed: followed(version),
            of_pipes: HashSet::new(),
            are_files,
        })
    }

    /// Refuses `inputs` whose paths or `files` are there already, and lets pipes of lines and rows pass. `added`
    /// has the rules of what is added.
    ///
    /// # Errors
    /// A failure that names the number of these inputs and the first of them.
    pub fn check(&mut self, inputs: &[Input], files: &[String], added: &Origins) -> Outcome {
        self.added = added.clone();
        if !self.are_files {
            let pipes = inputs.iter().filter(|input| is_pipe(&input.source));
            self.of_pipes = pipes.map(|input| input.path.clone()).collect();
        }
        let no_files = std::iter::repeat("");
        let all_files = files.iter().map(String::as_str).chain(no_files);
        let there = inputs.iter().zip(all_files);
        let mut there = there.filter_map(|(input, file)| self.find(&input.path, Some(file)));
        let Some(first) = there.next() else { return Ok(()) };
        let num_there = 1 + there.count();
        let all = plural(inputs.len() as u64, "file");
        let are = if num_there == 1 { "is" } else { "are" };
        let refusal = self.refusal(&match inputs.len() {
            1 => format!("{first} is there already"),
            _ => {
                format!("{} of {all} {are} there already, first {first}", grouped(num_there as u64))
            }
        });
        Err(refusal.within(&self.location))
    }

    /// Refuses a document whose path is there already.
    ///
    /// # Errors
    /// A failure that names it.
    pub fn check_document(&self, path: &str) -> Outcome {
        let file = self.added.file(path);
        match self.find(path, file.as_deref()) {
            Some(there) => Err(self.refusal(&format!("a document {there} is there already"))),
            None => Ok(()),
        }
    }

    /// Refuses a new part, of which documents came into `version` meanwhile.
    ///
    /// # Errors
    /// A failure that names one of them, or a file cannot be read.
    pub fn check_part(&self, living: &Living, location: &Path, version: &Version, part: &Part) -> Outcome {
        let now = Self {
            added: self.added.clone(),
            of_pipes: self.of_pipes.clone(),
            ..Self::for_version(living, location, version, self.are_files, &HashSet::new())?
        };
        let new = paths_of_file(living, location, part, &|_| false, &|_| None)?;
        new.keys().try_for_each(|path| now.check_document(path))
    }

    /// Returns true if a document has this path.
    pub fn has(&self, path: &str) -> bool {
        self.paths.contains_key(path) && !self.of_pipes.contains(path)
    }

    /// Returns the path of a document that came from `file`, under any name.
    pub fn find_file(&self, file: &str) -> Option<String> {
        let has = |path: &str, number| self.paths.get(path) == Some(&Some(number));
        if let Some(path) = self.known.find(file, has) {
            return Some(path);
        }
        // Lines of a followed file have its name or the end of it.
        let source = self.followed.get(file)?;
        let starts = std::iter::once(0).chain(source.match_indices('/').map(|(idx, _)| idx + 1));
        let mut names = starts.map(|start| &source[start..]);
        names.find(|name| self.paths.contains_key(*name)).map(str::to_owned)
    }

    /// Returns the name of the document that has `path` or came from `file`, for messages.
    fn find(&self, path: &str, file: Option<&str>) -> Option<String> {
        if self.has(path) {
            return Some(plain(path).into_owned());
        }
        let other = self.find_file(file.filter(|file| !file.is_empty())?)?;
        Some(format!("{} (as {})", plain(path), plain(&other)))
    }

    fn refusal(&self, what: &str) -> Failure {
        let location = &self.location;
        let way_out = if self.are_files {
            format!(
                "`tadoc edit {location} --replace ID FILE` changes a document, --path NAME stores a file under \
                 another path, and --duplicate stores all once more"
            )
        } else {
            "--follow goes on where it stopped in a log, --path NAME stores a file under another path, and \
                 --duplicate stores all once more"
                .to_owned()
        };
        Failure::new(format!("{what}; nothing was added: {way_out}"))
    }
}

/// Paths of documents, each with the number of the rules that lead to its file.
type Paths = HashMap<Box<str>, Option<usize>>;

/// Returns the real paths of the files that are followed, with the names of their bookmarks.
fn followed(version: &Version) -> HashMap<String, String> {
    let sources = version.bookmarks.iter().map(|bookmark| &bookmark.source);
    let paths = sources.filter(|source| Path::new(source).is_absolute());
    let real = paths.filter_map(|source| {
        let file = fs::canonicalize(source.as_str()).ok()?;
        Some((path_of(&file), source.clone()))
    });
    real.collect()
}

/// Returns the paths of the documents of a version without those that are `leaving`.
fn all_paths(
    living: &Living,
    location: &Path,
    version: &Version,
    leaving: &HashSet<u64>,
    known: &KnownOrigins,
) -> Outcome<Paths> {
    let edits = match version.edit_versions() {
        none if none.is_empty() => Vec::new(),
        versions => living.wait(living.store.edits(versions))?,
    };
    let all_edits = edits.iter().flat_map(|edits| &edits.batch.edits);
    let dropped = all_edits.filter_map(|edit| match edit {
        Edit::DropDocument { doc_id } => Some(*doc_id),
        _ => None,
    });
    let dropped: HashSet<u64> = dropped.collect();
    let is_dropped = |doc_id: u64| {
        dropped.contains(&doc_id)
            || leaving.contains(&doc_id)
            || version.dropped.iter().any(|ids| ids.contains(&doc_id))
    };
    let parts: Vec<_> = version.part_ids().collect();
    let read_part = |(part, ids): &(&Part, std::ops::Range<u64>)| {
        let is_dropped = |doc: u64| is_dropped(ids.start + doc);
        match part {
            Part::File { .. } => {
                let number_for = |doc: u64| known.number_for(ids.start + doc);
                paths_of_file(living, location, part, &is_dropped, &number_for)
            }
            Part::Edits { version, .. } => Ok(added_paths(&edits, *version, &is_dropped)),
        }
    };
    let by_part = parts.par_iter().map(read_part).collect::<Outcome<Vec<Paths>>>()?;
    let paths = by_part.into_iter().reduce(|mut all, more| {
        all.extend(more);
        all
    });
    Ok(paths.unwrap_or_default())
}

/// Returns the paths of the documents of a file that are not dropped.
fn paths_of_file(
    living: &Living,
    location: &Path,
    part: &Part,
    is_dropped: &dyn Fn(u64) -> bool,
    number_for: &dyn Fn(u64) -> Option<usize>,
) -> Outcome<Paths> {
    let mut paths = Paths::new();
    let Some(file) = living.resolver.part(location, part)? else { return Ok(paths) };
    let facts = facts_of(&file)?;
    let mut last = None;
    for doc in (0..facts.num_docs()).filter(|&doc| !is_dropped(doc)) {
        // Lines of one file have one path.
        let path = facts.path(doc);
        if let Some(path) = path.filter(|_| path != last) {
            paths.insert(path.into(), number_for(doc));
        }
        last = path;
    }
    Ok(paths)
}

/// Returns the paths of the documents that version `number` added by edits and that are not dropped.
fn added_paths(edits: &[VersionEdits], number: u64, is_dropped: &dyn Fn(u64) -> bool) -> Paths {
    let version_edits = edits.iter().filter(|edits| edits.version == number);
    let all = version_edits.flat_map(|edits| &edits.batch.edits);
    let added = all.filter_map(|edit| match edit {
        Edit::AddDocument { path, .. } => Some(path.as_str()),
        _ => None,
    });
    (0..).zip(added).filter(|(doc, _)| !is_dropped(*doc)).map(|(_, path)| (path.into(), None)).collect()
}

/// Returns true for standard input and named pipes, whose bytes never come again.
fn is_pipe(source: &Source) -> bool {
    match source {
        Source::Stdin => true,
        Source::File(path) => path.metadata().is_ok_and(|metadata| !metadata.is_file()),
        Source::Stored(_) | Source::Text { .. } | Source::Member(_) => false,
    }
}

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

    /// Returns the path of a document that came from `file`. `has` tells if a path is there under the rules
    /// of a number.
    pub fn find(&self, file: &str, has: impl Fn(&str, usize) -> bool) -> Option<String> {
        self.0.iter().enumerate().find_map(|(idx, (_, rules))| rules.paths(file).find(|path| has(path, idx)))
    }
}

#[cfg(test)]
mod tests {
    use tadoc_documents::Source;

    use super::*;

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
