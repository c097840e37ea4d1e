//! One round of a sync: what differs between folder and corpus, and the commit that makes them equal.
//!
//! ```text
//! files, with size and time ─┬─ as the last sync knew them ─────────────────────────────▶ unchanged
//!                            ├─ new ───────────────────────────────────────────────┐
//!                            └─ others ─▶ prints ─┬─ text of the corpus ─▶ unchanged ├▶ part ─┐
//! documents of the version ────────────▶ digests ─┴─ another text ─────────────────┤        ├▶ commit
//! documents without a file ────────────────────────────────────────────────────────┴▶ drops ─┘
//! ```
//!
//! A document belongs to the file of its path, or to the archive that its path lies below. A changed document is
//! dropped, and added with its new text, so it gets another id. The commit is made on exactly the version whose
//! documents were compared. If another commit is first, or a file goes away while it is read, the round begins again
//! with another listing. Memory is that of all paths.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tadoc::Error;
use tadoc::edits::{Edit, EditBatch};
use tadoc_documents::Input;
use tadoc_documents::display::grouped;
use tadoc_session::{Failure, Outcome, interrupt, note};
use tadoc_store::{Change, CommitKind, Version, WrittenPart};

use super::folder::{Files, Folder, Known, KnownFile, Listed};
use super::{Documents, Print, prints};
use crate::ingest::{DocumentFilter, Job, LeftOut, Shapes, Written, write};
use crate::living::Living;

/// Most times that a round begins again.
const MAX_ATTEMPTS: usize = 20;

/// One comparison of folder and corpus, which makes them equal.
pub struct Round<'a> {
    pub folder: &'a Folder,
    /// The corpus; `None` if it is not there, and nothing is written.
    pub living: Option<&'a Living>,
    /// The corpus, as the user names it.
    pub location: &'a Path,
    pub job: &'a Job,
    /// If true, the corpus may lose all of its documents.
    pub may_drop_all: bool,
    /// If true, nothing is written.
    pub is_dry: bool,
}

/// A difference between folder and corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Added,
    Changed,
    Dropped,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Dropped => "dropped",
        })
    }
}

/// The work that a round did, or would do.
#[derive(Debug, Default)]
pub struct Report {
    /// Documents that differ, by path.
    pub differences: Vec<(String, Kind)>,
    /// Number of documents that are as they were.
    pub unchanged: u64,
    /// The version after the round, if there is a corpus.
    pub version: Option<Version>,
    /// True if the round has made the version.
    pub is_committed: bool,
    /// Notes about the files.
    pub notes: Vec<String>,
}

impl Report {
    /// Returns the number of documents of one kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.differences.iter().filter(|(_, other)| *other == kind).count() as u64
    }
}

/// The documents of the corpus, and the files that they belong to.
struct Compared {
    documents: Documents,
    /// Places of the documents of each file.
    by_file: Vec<Vec<usize>>,
    /// Places of documents without a file.
    without_file: Vec<usize>,
}

/// The work to be done.
#[derive(Default)]
struct Plan {
    /// Files to read into the corpus.
    inputs: Vec<Input>,
    /// Documents of these files that stay as they are.
    left_out: LeftOut,
    /// Documents that are changed: the numbers of those of each path.
    changed: HashMap<Box<str>, HashSet<u32>>,
    /// Ids to drop, of changed documents, too.
    drops: Vec<u64>,
    differences: Vec<(String, Kind)>,
    unchanged: u64,
    /// Number of the documents of each file, as far as it is known.
    num_docs: BTreeMap<String, u64>,
}

impl Round<'_> {
    /// Makes the corpus equal to the folder.
    ///
    /// # Errors
    /// The folder or the corpus cannot be read, the corpus would lose all documents, its documents are no files, or
    /// the commit fails. The corpus is unchanged then.
    pub fn run(&self) -> Outcome<Report> {
        for num_left in (0..MAX_ATTEMPTS).rev() {
            let listed = self.folder.list()?;
            match self.attempt(&listed) {
                Ok(Some(mut report)) => {
                    report.notes.splice(..0, listed.notes);
                    return Ok(report);
                }
                Ok(None) => {}
                // A file that goes away while it is read is an error that the next listing does not have.
                Err(_) if num_left > 0 && !interrupt::is_asked() && !listed.is_still_so() => {}
                Err(failure) => return Err(failure),
            }
        }
        let corpus = self.location.display();
        let folder = self.folder.shown();
        Err(Failure::new(format!(
            "{corpus}: others commit all the time, or files of {folder} come and go; nothing was changed, try again later"
        )))
    }

    /// Tries to make the corpus equal to the files of `listed`. Returns `None` if another commit came first.
    fn attempt(&self, listed: &Files) -> Outcome<Option<Report>> {
        let version = self.living.map(|living| living.version(None)).transpose()?;
        let known = match (self.living, &version) {
            (Some(living), Some(version)) => self.known(living, version)?,
            _ => None,
        };
        let is_unchanged = |file: &Listed| {
            let known = known.as_ref().and_then(|(known, _)| known.files.get(&file.input.path));
            known.filter(|known| known.stamp.is_unchanged(file.stamp)).copied()
        };
        let settled: Vec<Option<KnownFile>> = listed.files.iter().map(is_unchanged).collect();
        if let (Some((known, _)), Some(version)) = (&known, &version)
            && known.version == version.number
            && known.files.len() == settled.len()
            && settled.iter().all(Option::is_some)
        {
            let unchanged = settled.iter().flatten().map(|file| file.num_docs).sum();
            return Ok(Some(Report { unchanged, version: Some(version.clone()), ..Report::default() }));
        }
        let compared = self.compared(listed, version.as_ref(), known.as_ref().map(|(known, _)| known))?;
        let mut plan = self.plan(listed, &settled, &compared, version.as_ref(), known.as_ref())?;
        self.check_something_stays(&plan, compared.documents.all.len())?;
        let mut report = Report { version: version.clone(), ..Report::default() };
        if let (false, Some(living), Some(version)) = (self.is_dry, self.living, version) {
            let Some(committed) = self.commit(living, &version, &mut plan, &mut report.notes)? else {
                return Ok(None);
            };
            self.keep(living, listed, &committed, &plan, known.map(|(known, _)| known))?;
            report.is_committed = committed.number != version.number;
            report.version = Some(committed);
        }
        plan.differences.sort();
        report.differences = plan.differences;
        report.unchanged = plan.unchanged;
        Ok(Some(report))
    }

    /// Returns what the last sync of this folder knew, and the documents that were changed since.
    fn known(&self, living: &Living, version: &Version) -> Outcome<Option<(Known, HashSet<u64>)>> {
        let Some(bytes) = living.wait(living.store.known())? else { return Ok(None) };
        let folder = self.folder.identity()?;
        let options = self.options();
        // What is damaged or was written by another build is not known.
        let known = Known::decode(&bytes).ok();
        let known = known.filter(|known| known.folder == folder && known.options == options);
        let Some(known) = known else { return Ok(None) };
        let changed = living.wait(living.store.changed_since(known.version, known.commit_id, version))?;
        Ok(changed.map(|changed| (known, changed)))
    }

    /// Returns the options that decide which documents a file has.
    fn options(&self) -> String {
        format!("{:?} {:?}", self.job.read, self.job.archives)
    }

    /// Reads the documents of the corpus, and finds their files.
    fn compared(&self, listed: &Files, version: Option<&Version>, known: Option<&Known>) -> Outcome<Compared> {
        let documents = match (self.living, version) {
            (Some(living), Some(version)) => Documents::read(living, self.location, version)?,
            _ => Documents::default(),
        };
        let by_path = listed.by_path();
        let is_known = |path: &str| known.is_some_and(|known| known.files.contains_key(path));
        let is_below = |path: &str| above(path).any(|path| by_path.contains_key(path) || is_known(path));
        documents.check_are_files(&self.location.display().to_string(), is_below)?;
        let mut by_file = vec![Vec::new(); listed.files.len()];
        let mut without_file = Vec::new();
        for (place, document) in documents.all.iter().enumerate() {
            let path = document.path.as_ref();
            let file = std::iter::once(path).chain(above(path)).find_map(|path| by_path.get(path));
            match file {
                Some(&file) => by_file[file].push(place),
                None => without_file.push(place),
            }
        }
        Ok(Compared { documents, by_file, without_file })
    }

    /// Decides for each document.
    fn plan(
        &self,
        listed: &Files,
        settled: &[Option<KnownFile>],
        compared: &Compared,
        version: Option<&Version>,
        known: Option<&(Known, HashSet<u64>)>,
    ) -> Outcome<Plan> {
        let mut plan = Plan::default();
        let all = &compared.documents.all;
        let is_sure = |place: &usize| {
            let doc_id = all[*place].doc_id;
            known.is_some_and(|(known, changed)| doc_id < known.num_ids && !changed.contains(&doc_id))
        };
        for &place in &compared.without_file {
            plan.drop(all[place].doc_id, &all[place].path);
        }
        let mut to_compare = Vec::new();
        for ((file, settled), places) in listed.files.iter().zip(settled).zip(&compared.by_file) {
            let is_as_known = |known: &KnownFile| known.num_docs == places.len() as u64 && places.iter().all(is_sure);
            if let Some(known) = settled.filter(is_as_known) {
                plan.unchanged += known.num_docs;
                plan.num_docs.insert(file.input.path.clone(), known.num_docs);
            } else if places.is_empty() && !self.is_dry {
                plan.inputs.push(file.input.clone());
            } else {
                to_compare.push((&file.input, places));
            }
        }
        self.compare(&to_compare, compared, version, &mut plan)?;
        Ok(plan)
    }

    /// Compares the documents that files have now with those of the corpus.
    fn compare(
        &self,
        files: &[(&Input, &Vec<usize>)],
        compared: &Compared,
        version: Option<&Version>,
        plan: &mut Plan,
    ) -> Outcome {
        if files.is_empty() {
            return Ok(());
        }
        let inputs: Vec<Input> = files.iter().map(|(input, _)| (*input).clone()).collect();
        let (prints, faults) = prints(&inputs, self.job)?;
        let prints = prints_by_input(&inputs, &prints);
        let pairs: Vec<Pairs<'_>> = files
            .iter()
            .zip(&prints)
            .map(|((_, places), prints)| Pairs::new(places, prints, &compared.documents))
            .collect();
        let mut to_digest: Vec<u64> = pairs.iter().flat_map(|pairs| pairs.to_digest()).collect();
        to_digest.sort_unstable();
        let digests = match (self.living, version) {
            (Some(living), Some(version)) => compared.documents.digests(living, self.location, version, &to_digest)?,
            _ => HashMap::new(),
        };
        for ((input, places), pairs) in files.iter().zip(&pairs) {
            // A file that cannot be read keeps its documents, and is read again by the next round.
            if self.job.read.keep_going && pairs.both.is_empty() && pairs.added.is_empty() {
                plan.unchanged += places.len() as u64;
            } else {
                self.plan_file(input, pairs, &digests, plan);
            }
        }
        // Faults of files that are read into the corpus are told then.
        let is_told = |fault: &&String| !plan.inputs.iter().any(|input| fault.starts_with(&input.shown()));
        faults.iter().filter(is_told).for_each(|fault| note(format!("warning: {fault}")));
        Ok(())
    }

    /// Adds what changes in the documents of the file `input`, which are paired in `pairs`. `digests` has those of
    /// documents of the corpus that may be equal.
    fn plan_file(&self, input: &Input, pairs: &Pairs<'_>, digests: &HashMap<u64, blake3::Hash>, plan: &mut Plan) {
        let mut left_out = LeftOut::new();
        let mut is_read = !pairs.added.is_empty();
        plan.num_docs.insert(input.path.clone(), pairs.both.len() as u64 + pairs.added.len() as u64);
        for pair in &pairs.both {
            let path = pair.print.path.as_ref();
            if pair.may_be_equal && digests.get(&pair.doc_id) == Some(&pair.print.digest) {
                plan.unchanged += 1;
                left_out.entry(path.into()).or_default().insert(pair.number);
            } else {
                is_read = true;
                plan.drops.push(pair.doc_id);
                plan.changed.entry(path.into()).or_default().insert(pair.number);
                if self.is_dry {
                    plan.differences.push((path.to_owned(), Kind::Changed));
                }
            }
        }
        if self.is_dry {
            let added = pairs.added.iter().map(|path| ((*path).to_owned(), Kind::Added));
            plan.differences.extend(added);
        }
        for (doc_id, path) in &pairs.dropped {
            plan.drop(*doc_id, path);
        }
        if is_read {
            plan.left_out.extend(left_out);
            plan.inputs.push(input.clone());
        }
    }

    /// Refuses a plan that leaves none of the documents.
    fn check_something_stays(&self, plan: &Plan, num_docs: usize) -> Outcome {
        let num_dropped = plan.differences.iter().filter(|(_, kind)| *kind == Kind::Dropped).count();
        if self.may_drop_all || num_docs == 0 || num_dropped < num_docs {
            return Ok(());
        }
        let folder = self.folder.shown();
        let corpus = self.location.display();
        Err(Failure::new(format!(
            "{folder} has no file of {}, so {corpus} would lose all of them; nothing was changed: is it the right \
             folder, and is it mounted? --drop-all drops them",
            match num_docs {
                1 => "the only document".to_owned(),
                _ => format!("the {} documents", grouped(num_docs as u64)),
            }
        )))
    }

    /// Commits what `plan` says on `base`. Returns the version, or `None` if another commit came first.
    fn commit(
        &self,
        living: &Living,
        base: &Version,
        plan: &mut Plan,
        notes: &mut Vec<String>,
    ) -> Outcome<Option<Version>> {
        let mut parts = Vec::new();
        if !plan.inputs.is_empty() {
            parts.extend(self.write(living, base, plan, notes)?);
        }
        if parts.is_empty() && plan.drops.is_empty() {
            return Ok(Some(base.clone()));
        }
        plan.drops.sort_unstable();
        let kind = match (parts.is_empty(), plan.drops.is_empty()) {
            (true, _) => CommitKind::Delete,
            (false, true) => CommitKind::Append,
            (false, false) => CommitKind::Update,
        };
        let edits = plan.drops.iter().map(|&doc_id| Edit::DropDocument { doc_id }).collect();
        let change = if plan.drops.is_empty() {
            Change::append(kind, &parts)
        } else {
            Change::edit(kind, &EditBatch { edits, ..EditBatch::default() }).with_files(&parts)
        };
        match living.wait(async { Ok(living.store.commit(base, &change.pinned()).await) })? {
            Err(Error::Conflict { .. }) => Ok(None),
            committed => Ok(Some(committed?)),
        }
    }

    /// Writes the documents of the files of `plan` as a part, without those that stay as they are. Returns `None` if
    /// there are none.
    fn write(
        &self,
        living: &Living,
        base: &Version,
        plan: &mut Plan,
        notes: &mut Vec<String>,
    ) -> Outcome<Option<WrittenPart>> {
        let (filter, passed) = DocumentFilter::new(std::mem::take(&mut plan.left_out));
        let mut job = self.job.clone();
        job.options.profile = living.store.profile();
        job.filter = Some(Arc::new(Mutex::new(filter)));
        let written = write(living, job, plan.inputs.clone(), base, &mut Shapes::default())?;
        let passed = std::mem::take(&mut *passed.lock().unwrap_or_else(PoisonError::into_inner));
        let inputs: HashSet<&str> = plan.inputs.iter().map(|input| input.path.as_str()).collect();
        let mut seen: HashMap<&str, u32> = HashMap::new();
        let mut num_new: BTreeMap<&str, u64> = inputs.iter().map(|path| (*path, 0)).collect();
        for path in &passed {
            let path = path.as_ref();
            let changed = plan.changed.get(path);
            let number = seen.entry(path).or_default();
            let is_changed = changed.is_some_and(|numbers| *number < numbers.len() as u32);
            *number += 1;
            let kind = if is_changed { Kind::Changed } else { Kind::Added };
            plan.differences.push((path.to_owned(), kind));
            let mut owners = std::iter::once(path).chain(above(path));
            let owner = owners.find(|path| num_new.contains_key(path));
            if let Some(num_docs) = owner.and_then(|owner| num_new.get_mut(owner)) {
                *num_docs += 1;
            }
        }
        for (path, num_docs) in num_new {
            // That of files with documents before was counted when they were compared.
            plan.num_docs.entry(path.to_owned()).or_insert(num_docs);
        }
        let (part, done) = match written {
            Written::Part(part, done) => (Some(part), done),
            Written::Nothing(done) => (None, done),
        };
        notes.extend_from_slice(done.notes());
        Ok(part)
    }

    /// Keeps what is known of the files for the next round.
    fn keep(&self, living: &Living, listed: &Files, version: &Version, plan: &Plan, before: Option<Known>) -> Outcome {
        // A file that could not be read has no number of documents, and is not known.
        let file = |file: &Listed| {
            let num_docs = *plan.num_docs.get(&file.input.path)?;
            Some((file.input.path.clone(), KnownFile { stamp: file.stamp, num_docs }))
        };
        let files = listed.files.iter().filter_map(file).collect();
        let known = Known::new(version, self.folder.identity()?, self.options(), files);
        if before.as_ref() == Some(&known) {
            return Ok(());
        }
        let kept = known.encode().map_err(Failure::from);
        let kept = kept.and_then(|bytes| living.wait(living.store.keep_known(version, bytes)));
        if let Err(failure) = kept {
            // The documents are stored. The next round compares their texts.
            note(format!("note: {}: sizes and times are not kept: {}", self.location.display(), failure.into_text()));
        }
        Ok(())
    }
}

impl Plan {
    fn drop(&mut self, doc_id: u64, path: &str) {
        self.drops.push(doc_id);
        self.differences.push((path.to_owned(), Kind::Dropped));
    }
}

/// A document of the corpus, and the same as its file has it now.
struct Pair<'a> {
    doc_id: u64,
    print: &'a Print,
    /// Number of the document among those of its path.
    number: u32,
    /// False if the lengths differ.
    may_be_equal: bool,
}

/// The documents of one file, before and now.
struct Pairs<'a> {
    both: Vec<Pair<'a>>,
    added: Vec<&'a str>,
    dropped: Vec<(u64, &'a str)>,
}

impl<'a> Pairs<'a> {
    /// Pairs the documents at `places` with `prints`, by path and number among those of this path.
    fn new(places: &[usize], prints: &[&'a Print], documents: &'a Documents) -> Self {
        let mut before: HashMap<&str, Vec<usize>> = HashMap::new();
        for &place in places {
            before.entry(&documents.all[place].path).or_default().push(place);
        }
        let mut pairs = Self { both: Vec::new(), added: Vec::new(), dropped: Vec::new() };
        let mut seen: HashMap<&str, u32> = HashMap::new();
        for print in prints {
            let path = print.path.as_ref();
            let number = seen.entry(path).or_default();
            match before.get(path).and_then(|places| places.get(*number as usize)) {
                Some(&place) => {
                    let document = &documents.all[place];
                    let may_be_equal = document.len_bytes.is_none_or(|len_bytes| len_bytes == print.len_bytes);
                    pairs.both.push(Pair { doc_id: document.doc_id, print, number: *number, may_be_equal });
                }
                None => pairs.added.push(path),
            }
            *number += 1;
        }
        for (path, places) in before {
            let num_now = seen.get(path).copied().unwrap_or_default() as usize;
            let gone = places.get(num_now..).unwrap_or_default();
            pairs.dropped.extend(gone.iter().map(|&place| (documents.all[place].doc_id, path)));
        }
        pairs
    }

    /// Returns the ids of the documents whose text decides.
    fn to_digest(&self) -> impl Iterator<Item = u64> {
        self.both.iter().filter(|pair| pair.may_be_equal).map(|pair| pair.doc_id)
    }
}

/// Returns the prints of each of `inputs`: those of its path, and of paths below it.
fn prints_by_input<'a>(inputs: &[Input], prints: &'a [Print]) -> Vec<Vec<&'a Print>> {
    let places = inputs.iter().enumerate().map(|(place, input)| (input.path.as_str(), place));
    let places: HashMap<&str, usize> = places.collect();
    let mut by_input = vec![Vec::new(); inputs.len()];
    for print in prints {
        let path = print.path.as_ref();
        let place = std::iter::once(path).chain(above(path)).find_map(|path| places.get(path));
        if let Some(&place) = place {
            by_input[place].push(print);
        }
    }
    by_input
}

/// Returns the paths above `path`, the longest first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(slash, _)| &path[..slash])
}

/// Formats the counts of `report`.
pub fn told(report: &Report) -> String {
    let counts = [
        (report.count(Kind::Added), "added"),
        (report.count(Kind::Changed), "changed"),
        (report.count(Kind::Dropped), "dropped"),
        (report.unchanged, "unchanged"),
    ];
    let counts = counts.map(|(count, kind)| format!("{} {kind}", grouped(count)));
    counts.join(", ")
}
