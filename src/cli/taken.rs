//! The paths that a living corpus has already, so that an ingest stores no document twice.
//!
//! ```text
//! files of the version ─▶ facts of documents (no grammar) ─┐
//! edits of the version ─▶ documents added and dropped ─────┴▶ paths ─▶ inputs, before they are read
//!                                                                   └▶ documents: members, rows
//! ```
//!
//! A path names one document, or all lines and rows of one file. A file whose path is there, or that is there under
//! another spelling of its path ([`origins`](crate::origins)), is refused before it is read. Members of archives,
//! and rows with paths of their own, are refused as they come. What comes through a pipe as lines or rows has no
//! identity, so it is never refused. Memory is that of all paths.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use rayon::prelude::*;
use tadoc::edits::Edit;
use tadoc_documents::display::{grouped, plain, plural};
use tadoc_documents::{Documents, Input, Source};
use tadoc_session::{Failure, Outcome};
use tadoc_store::{Part, Version, VersionEdits};

use crate::inputs::path_of;
use crate::listing::facts_of;
use crate::living::Living;
use crate::origins::{KnownOrigins, Origins};

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
    of_files: bool,
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
        let of_files = *documents == Documents::Files;
        Self::for_version(living, location, version, of_files, leaving)
    }

    fn for_version(
        living: &Living,
        location: &Path,
        version: &Version,
        of_files: bool,
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
            of_files,
        })
    }

    /// Refuses `inputs` whose paths or `files` are there already, and lets pipes of lines and rows pass. `added`
    /// has the rules of what is added.
    ///
    /// # Errors
    /// A failure that names the number of these inputs and the first of them.
    pub fn check(&mut self, inputs: &[Input], files: &[String], added: &Origins) -> Outcome {
        self.added = added.clone();
        if !self.of_files {
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
            ..Self::for_version(living, location, version, self.of_files, &HashSet::new())?
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
        let way_out = if self.of_files {
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
    let of_part = |(part, ids): &(&Part, std::ops::Range<u64>)| {
        let is_dropped = |doc: u64| is_dropped(ids.start + doc);
        match part {
            Part::File { .. } => {
                let number_for = |doc: u64| known.number_for(ids.start + doc);
                paths_of_file(living, location, part, &is_dropped, &number_for)
            }
            Part::Edits { version, .. } => Ok(added_paths(&edits, *version, &is_dropped)),
        }
    };
    let of_parts = parts.par_iter().map(of_part).collect::<Outcome<Vec<Paths>>>()?;
    let paths = of_parts.into_iter().reduce(|mut all, more| {
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
    let of_version = edits.iter().filter(|edits| edits.version == number);
    let all = of_version.flat_map(|edits| &edits.batch.edits);
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
