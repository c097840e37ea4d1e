//! `tadoc sync`: keeps a living corpus in step with a folder.
//!
//! ```text
//! folder: paths, sizes, times ─┐
//!                              ├─ round ─▶ one commit: documents added, changed and dropped
//! corpus: paths, texts ────────┘             │
//!          ▲ what the last round knew ◀──────┘
//! ```
//!
//! Each round lists the folder and compares it with what the last one has kept of each file: its size and the time of
//! its last change. Only files that differ are read, and only documents with other bytes are stored. A killed sync
//! leaves the version before it, or its own.
//!
//! `CALL sync('folder/', 'corpus/', …)` is one round from a statement. A call becomes a command line, so that
//! both refuse the same values.
//!
//! Paths and lengths of the documents of a version are read from the facts of each file, without a grammar. A digest
//! needs the text, so the segments with these documents are opened, one chain at a time. Only documents with edits
//! that no optimize has merged need the whole version.

mod folder;
mod round;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use blake3::{Hash, Hasher};
use clap::{Args, Parser};
use rayon::prelude::*;
use serde_json::json;

use self::folder::Folder;
use self::round::{Kind, Report, Round, told};
use crate::columns::Columns;
use crate::ingest::{Building, Forms, Job, Packed, When};
use crate::living::{Living, parse_share};
use crate::ls::facts_of;
use crate::output::say;
use crate::tasks::{Task, tasks_of};
use tadoc::edits::Edit;
use tadoc::format::{OpenLimits, SegmentMeta, read_segment};
use tadoc::read::{DocumentDecoder, document_len_bytes, extract};
use tadoc::{Corpus, Error};
use tadoc_documents as documents;
use tadoc_documents::display::{self, grouped, plain};
use tadoc_documents::pattern::Pattern;
use tadoc_documents::{Batch, Input, ReadOptions, Sink};
use tadoc_session::location::{check_living_location, local_path};
use tadoc_session::{
    BlockingResolver, CallArgument, CallValue, CorpusFile, Failure, Outcome, Procedure, interrupt, note,
};
use tadoc_store::{LivingStore, Part, RECOMPRESS_RATIO, StoreOptions, Version, VersionEdits};

/// Time between two looks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);

/// Keep a living corpus in step with a folder
///
/// Adds the documents of new files, stores changed ones anew, and drops those whose files are gone, all in one
/// commit. Files are those that tadoc ingest takes from a folder; members of archives are documents of their own.
/// A file with the size and time that the last sync saw is not read; another one is read, and stored only if its
/// bytes differ. A changed document gets another number.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The folder, or a URL of one in a store
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// The living corpus: a folder or URL, which is created if it does not exist. Its documents are those of
    /// tadoc ingest --append or of an earlier sync; the ones that FOLDER does not have are dropped
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Change nothing; print what would be done. New files are read, as archives have several documents
    #[arg(short = 'n', long, conflicts_with = "watch")]
    dry_run: bool,

    /// Go on until Ctrl-C: look for changes again and again, and commit those of each look
    #[arg(long)]
    watch: bool,

    /// With --watch: time between two looks, such as 500ms, 10s or 5m
    #[arg(long, requires = "watch", default_value = "2s", value_name = "AGE", value_parser = parse_interval)]
    interval: Duration,

    /// Let the corpus lose all of its documents
    ///
    /// Without this option, an empty folder, or one that has none of the documents, is an error.
    #[arg(long)]
    drop_all: bool,

    /// Take only files, and members of archives, that match this glob (may be given several times); documents
    /// of others are dropped
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new)]
    glob: Vec<Pattern>,

    #[command(flatten)]
    forms: Forms,

    /// Leave out codes of terminals, such as colours (ESC[31m): always or never [default: never]
    #[arg(long, default_value = "auto", value_name = "WHEN", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "always", hide_possible_values = true, hide_default_value = true,
          verbatim_doc_comment)]
    strip_ansi: When,

    /// Leave out what is damaged, with a warning, instead of ending with an error
    ///
    /// A compressed file that is cut, damaged or exceeds a limit is stored up to there, and so is an archive, whose
    /// documents behind the damage are dropped. A file without any document that can be read keeps those of the last
    /// sync, and is read again by the next one. An error of the disk or of a store ends the sync nevertheless.
    #[arg(long)]
    keep_going: bool,

    /// Maximum size of a page with --html text, and of a tag or text of an office file, which are held in memory
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = display::parse_size)]
    max_row_size: u64,

    #[command(flatten)]
    packed: Packed,

    #[command(flatten)]
    building: Building,

    /// Compress the corpus anew once its edits exceed this share of its bytes (and 1 MiB), or once
    /// 64 small files lie side by side; 0 means never
    #[arg(long, default_value_t = RECOMPRESS_RATIO, value_name = "SHARE", value_parser = parse_share)]
    recompress_ratio: f64,

    /// Print the path of each document that differs; --dry-run always does
    #[arg(short, long)]
    verbose: bool,

    /// Print one JSON object a round
    #[arg(long, conflicts_with_all = ["verbose", "quiet"])]
    json: bool,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  tadoc sync notes/ corpus/
  tadoc sync notes/ corpus/ --dry-run         what would be added, changed and dropped
  tadoc sync src/ corpus/ --glob '*.rs' --watch
  tadoc sync notes/ s3://bucket/corpus

A sync that is killed or fails leaves the corpus as it was, or as the folder is. With --watch a folder that is
away, or empty, is waited for.

Exit status: 0 done, 1 failed and nothing changed, 2 usage, 130 interrupted.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    arguments.building.start_threads()?;
    if !arguments.watch {
        interrupt::ask_first();
        return arguments.once().map(|_| ());
    }
    interrupt::ask_twice();
    let (folder, job) = arguments.prepared()?;
    Living::with_open_or_created(&arguments.corpus, arguments.building.tokenizer, |living| {
        arguments.round(&folder, Some(living), &job)?;
        let mut told = String::new();
        while arguments.wait() {
            match arguments.round(&folder, Some(living), &job) {
                Ok(_) => told.clear(),
                Err(_) if interrupt::is_asked() => break,
                // The folder may be away for a while, and so may a store.
                Err(failure) => {
                    let text = failure.into_text();
                    if text != told {
                        note(format!("note: {text}; trying again"));
                        told = text;
                    }
                }
            }
        }
        Ok(())
    })
}

impl Arguments {
    /// Runs one round.
    fn once(&self) -> Outcome<Report> {
        let (folder, job) = self.prepared()?;
        if self.dry_run {
            return self.round(&folder, self.open_if_there()?.as_ref(), &job);
        }
        let mut report = Report::default();
        Living::with_open_or_created(&self.corpus, self.building.tokenizer, |living| {
            report = self.round(&folder, Some(living), &job)?;
            Ok(())
        })?;
        Ok(report)
    }

    /// Returns the folder, and how its files are read.
    fn prepared(&self) -> Outcome<(Folder, Job)> {
        self.check_corpus()?;
        let folder = Folder::new(&self.folder, &self.glob, self.forms.follow_links, &self.corpus)?;
        Ok((folder, self.job()?))
    }

    /// Refuses a corpus that cannot be one.
    fn check_corpus(&self) -> Outcome {
        let shown = display::path(&self.corpus);
        match local_path(&self.corpus)? {
            Some(path) if path.is_file() => Err(Failure::new(format!(
                "{shown} is a file and does not change; name a folder or URL for a living corpus, such as corpus/"
            ))),
            _ => check_living_location(&self.corpus),
        }
    }

    fn job(&self) -> Outcome<Job> {
        let read = ReadOptions {
            max_row_bytes: self.max_row_size,
            strip_ansi: self.strip_ansi.strips_ansi(),
            keep_going: self.keep_going,
            ..ReadOptions::default()
        };
        Ok(Job {
            options: self.building.options()?,
            division: documents::Documents::Files.into(),
            read: self.packed.limit(self.forms.with(read)),
            archives: self.packed.archives(&self.glob),
            machine: self.building.machine.clone(),
            allow_empty: true,
            quiet: self.quiet || self.watch,
            heeds_interrupts: true,
            notes: Vec::new(),
            taken: None,
            filter: None,
            remote: None,
        })
    }

    /// Opens the corpus, if there is one.
    fn open_if_there(&self) -> Outcome<Option<Living>> {
        let resolver = BlockingResolver::new()?;
        let storage = resolver.inner.storage(&self.corpus)?;
        match resolver.wait(LivingStore::open(storage, StoreOptions::default())) {
            Ok(store) => Ok(Some(Living { store, resolver })),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs one round, and tells what it did.
    fn round(&self, folder: &Folder, living: Option<&Living>, job: &Job) -> Outcome<Report> {
        let start = Instant::now();
        let round =
            Round { folder, living, location: &self.corpus, job, may_drop_all: self.drop_all, is_dry: self.dry_run };
        let report = round.run()?;
        // Recompression runs even if nobody reads the output.
        let said = self.tell(&report, start.elapsed());
        if let (Some(living), Some(version), true) = (living, &report.version, report.is_committed) {
            let done = living.recompress(version, self.recompress_ratio, job.options);
            if let Some(done) = done.filter(|_| !self.quiet) {
                note(done);
            }
        }
        said.map(|()| report)
    }

    fn tell(&self, report: &Report, elapsed: Duration) -> Outcome {
        if self.quiet || self.watch && report.differences.is_empty() && !self.verbose {
            return Ok(());
        }
        let number = report.version.as_ref().map(|version| version.number);
        if self.json {
            return say(json!({
                "version": number,
                "added": report.count(Kind::Added),
                "changed": report.count(Kind::Changed),
                "dropped": report.count(Kind::Dropped),
                "unchanged": report.unchanged,
            }));
        }
        report.notes.iter().for_each(note);
        if self.verbose || self.dry_run {
            for (path, kind) in &report.differences {
                say(format_args!("{kind:<8} {}", display::plain(path)))?;
            }
        }
        let corpus = display::path(&self.corpus);
        let done = match number {
            _ if self.dry_run => "would be".to_owned(),
            Some(number) => format!("version {number}"),
            None => "no version".to_owned(),
        };
        say(format_args!("{corpus}: {done}: {} ({})", told(report), display::seconds(elapsed)))
    }

    /// Waits until the next look. Returns false if the user has interrupted.
    fn wait(&self) -> bool {
        let until = Instant::now() + self.interval;
        while !interrupt::is_asked() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            sleep(left.min(LOOK));
        }
        false
    }
}

/// Parses the time between two looks.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let millis = text.strip_suffix("ms").and_then(|number| number.parse().ok());
    millis.map_or_else(|| display::parse_age(text), |millis| Ok(Duration::from_millis(millis)))
}

/// The procedure.
pub const PROCEDURE: Procedure = Procedure { name: "sync", usage: CALL_USAGE, run: call };
const CALL_USAGE: &str = "CALL sync('folder/', 'corpus/', dry_run => true)";
/// Options of the command alone: a statement runs one round, and its answer is a row.
const OF_COMMAND: [&str; 8] = ["watch", "interval", "verbose", "json", "quiet", "threads", "blocks_at_once", "device"];

/// A call as a command line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

/// Runs one round, and returns its counts.
fn call(arguments: &[CallArgument]) -> Outcome<Vec<(&'static str, u64)>> {
    let mut options = vec!["--quiet".to_owned()];
    let mut places = vec!["--".to_owned()];
    for CallArgument { name, value } in arguments {
        match (name, value) {
            (Some(name), _) if OF_COMMAND.contains(&name.as_str()) => {
                return Err(Failure::usage(format!("CALL sync has no option {name}; as in {CALL_USAGE}")));
            }
            (Some(name), CallValue::Text(text)) => options.push(format!("{}={text}", flag(name))),
            (Some(name), CallValue::Truth(true)) => options.push(flag(name)),
            (Some(_), CallValue::Truth(false)) => {}
            (None, CallValue::Text(text)) => places.push(text.clone()),
            (None, CallValue::Truth(_)) => {
                return Err(Failure::usage(format!("CALL sync: expected a folder and a corpus, as in {CALL_USAGE}")));
            }
        }
    }
    let line = Line::try_parse_from(options.into_iter().chain(places)).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Failure::usage(format!("CALL sync: {first}; expected {CALL_USAGE}"))
    })?;
    let report = line.arguments.once()?;
    let version = report.version.as_ref().map_or(0, |version| version.number);
    Ok(vec![
        ("version", version),
        ("added", report.count(Kind::Added)),
        ("changed", report.count(Kind::Changed)),
        ("dropped", report.count(Kind::Dropped)),
        ("unchanged", report.unchanged),
    ])
}

/// Returns the flag of the option `name`.
fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// Bytes of a long document that are read at once.
const PIECE_BYTES: u64 = 16 << 20;

/// A document of a version.
#[derive(Debug)]
pub struct Document {
    pub doc_id: u64,
    pub path: Box<str>,
    /// Length of its text, if it is known without the text.
    pub len_bytes: Option<u64>,
}

/// The documents of a version that are not dropped, in order of id.
#[derive(Default)]
pub struct Documents {
    pub all: Vec<Document>,
    /// Ids of documents whose text is in edits, or is changed by them.
    edited: HashSet<u64>,
    /// True if documents have columns.
    has_columns: bool,
}

impl Documents {
    /// Reads the documents of `version` of the corpus at `location`.
    ///
    /// # Errors
    /// A file of the version cannot be read, or it is damaged.
    pub fn read(living: &Living, location: &Path, version: &Version) -> Outcome<Self> {
        let edits = match version.edit_versions() {
            none if none.is_empty() => Vec::new(),
            versions => living.wait(living.store.edits(versions))?,
        };
        let mut edited = HashSet::new();
        let mut dropped = HashSet::new();
        for edit in edits.iter().flat_map(|edits| &edits.batch.edits) {
            if let Edit::DropDocument { doc_id } = edit {
                dropped.insert(*doc_id);
            } else {
                edited.extend(edit.doc_id());
            }
        }
        let is_there = |doc_id: &u64| {
            let next = version.dropped.partition_point(|ids| ids.end <= *doc_id);
            !dropped.contains(doc_id) && !version.dropped.get(next).is_some_and(|ids| ids.contains(doc_id))
        };
        let parts: Vec<(&Part, Range<u64>)> = version.part_ids().collect();
        let read = |(part, ids): &(&Part, Range<u64>)| match part {
            Part::File { .. } => documents_of_file(living, location, part, ids.start, &is_there),
            Part::Edits { version, .. } => Ok((added(&edits, *version, ids.start, &is_there), false)),
        };
        let by_part = parts.par_iter().map(read).collect::<Outcome<Vec<_>>>()?;
        for (part, ids) in &parts {
            if matches!(part, Part::Edits { .. }) {
                edited.extend(ids.clone());
            }
        }
        let mut documents = Self { edited, has_columns: version.sets_columns, all: Vec::new() };
        for (ids_in_part, has_columns) in by_part {
            documents.all.extend(ids_in_part);
            documents.has_columns |= has_columns;
        }
        for document in documents.all.iter_mut().filter(|document| documents.edited.contains(&document.doc_id)) {
            document.len_bytes = None;
        }
        Ok(documents)
    }

    /// Refuses documents that are no whole files. `is_below` tells if a path lies in an archive.
    ///
    /// # Errors
    /// A failure that says how such a corpus grows.
    pub fn check_are_files(&self, location: &str, is_below: impl Fn(&str) -> bool) -> Outcome {
        let way_out = "a folder is kept in step with documents that are whole files: sync it with a new corpus, and \
                       `tadoc ingest --append`, or --follow for a log, adds to this one";
        if self.has_columns {
            return Err(Failure::new(format!("{location}: its documents have columns, as rows have; {way_out}")));
        }
        let mut num_of_path: HashMap<&str, u64> = HashMap::new();
        for document in &self.all {
            *num_of_path.entry(&document.path).or_default() += 1;
        }
        let shared = num_of_path.into_iter().filter(|(path, number)| *number > 1 && !is_below(path));
        match shared.max_by_key(|(path, number)| (*number, *path)) {
            None => Ok(()),
            Some((path, number)) => Err(Failure::new(format!(
                "{location}: {} documents have the path {}, as lines and rows of a file have; {way_out}",
                grouped(number),
                plain(path)
            ))),
        }
    }

    /// Returns the digests of the texts of the documents `doc_ids` of `version`.
    ///
    /// # Errors
    /// A file of the version cannot be read, or it is damaged; or the user has interrupted.
    pub fn digests(
        &self,
        living: &Living,
        location: &Path,
        version: &Version,
        doc_ids: &[u64],
    ) -> Outcome<HashMap<u64, Hash>> {
        let (edited, plain): (Vec<u64>, Vec<u64>) = doc_ids.iter().partition(|doc_id| self.edited.contains(doc_id));
        let mut digests = HashMap::new();
        for (part, ids) in version.part_ids() {
            let range = plain.partition_point(|id| *id < ids.start)..plain.partition_point(|id| *id < ids.end);
            let ids_in_part: Vec<u64> = plain[range].iter().map(|id| id - ids.start).collect();
            if ids_in_part.is_empty() {
                continue;
            }
            if let Some(file) = living.resolver.part(location, part)? {
                let from_file = digests_of_file(&file, &ids_in_part)?;
                digests.extend(from_file.into_iter().map(|(doc, digest)| (ids.start + doc, digest)));
            }
        }
        if !edited.is_empty() {
            let corpus = living.corpus(version)?;
            for doc_id in edited {
                let len_bytes = corpus.len_bytes(doc_id)?;
                let piece = |offset| Ok(corpus.extract(doc_id, offset, PIECE_BYTES)?);
                digests.insert(doc_id, digest_of_pieces(len_bytes, piece)?);
            }
        }
        Ok(digests)
    }
}

/// Returns the documents of a file that are there, and true if they have columns.
fn documents_of_file(
    living: &Living,
    location: &Path,
    part: &Part,
    first_id: u64,
    is_there: &(dyn Fn(&u64) -> bool + Sync),
) -> Outcome<(Vec<Document>, bool)> {
    let Some(file) = living.resolver.part(location, part)? else { return Ok((Vec::new(), false)) };
    let facts = facts_of(&file)?;
    let ids = (0..facts.num_docs()).filter(|doc| is_there(&(first_id + doc)));
    let document = |doc: u64| Document {
        doc_id: first_id + doc,
        path: facts.path(doc).unwrap_or_default().into(),
        len_bytes: facts.length(doc).map(|length| length.len_bytes),
    };
    Ok((ids.map(document).collect(), file.footer.columns.is_some()))
}

/// Returns the documents that version `number` added by edits and that are there.
fn added(edits: &[VersionEdits], number: u64, first_id: u64, is_there: &dyn Fn(&u64) -> bool) -> Vec<Document> {
    let version_edits = edits.iter().filter(|edits| edits.version == number);
    let paths = version_edits.flat_map(|edits| &edits.batch.edits).filter_map(|edit| match edit {
        Edit::AddDocument { path, .. } => Some(path.as_str()),
        _ => None,
    });
    let documents = (first_id..).zip(paths).filter(|(doc_id, _)| is_there(doc_id));
    documents.map(|(doc_id, path)| Document { doc_id, path: path.into(), len_bytes: None }).collect()
}

/// Returns the digests of the documents `docs` of `file`, which ascend.
fn digests_of_file(file: &CorpusFile, docs: &[u64]) -> Outcome<Vec<(u64, Hash)>> {
    let docs_of_segments = file.footer.docs_of_segments();
    let metas: Vec<_> = file.footer.segments.iter().zip(docs_of_segments).enumerate().collect();
    let mut digests = Vec::with_capacity(docs.len());
    for chain in metas.chunk_by(|_, (_, (next, _))| next.continues) {
        if interrupt::is_asked() {
            return Err(Failure::interrupted());
        }
        let [(_, (_, first)), ..] = chain else { continue };
        let [.., (_, (_, last))] = chain else { continue };
        let from_chain =
            &docs[docs.partition_point(|doc| *doc < first.start)..docs.partition_point(|doc| *doc < last.end)];
        if !from_chain.is_empty() {
            let read = |(segment_idx, (meta, _)): &(usize, (&SegmentMeta, Range<u64>))| {
                let bytes = file.read(meta.byte_range())?;
                let limits = OpenLimits::default();
                Ok(Arc::new(read_segment(&file.name, &file.footer, *segment_idx, &bytes, &limits)?))
            };
            let segments = chain.par_iter().map(read).collect::<Outcome<Vec<_>>>()?;
            let corpus = Corpus::new(file.footer.profile, segments);
            let local: Vec<u64> = from_chain.iter().map(|doc| doc - first.start).collect();
            let tasks = tasks_of(&corpus, &local)?;
            let by_task = tasks.par_iter().map(|task| digests_of_task(&corpus, task)).collect::<Outcome<Vec<_>>>()?;
            digests.extend(by_task.into_iter().flatten().map(|(doc, digest)| (first.start + doc, digest)));
        }
    }
    Ok(digests)
}

fn digests_of_task(corpus: &Corpus, task: &Task<'_>) -> Outcome<Vec<(u64, Hash)>> {
    if let (true, [doc_id]) = (task.is_long, task.docs) {
        let piece = |offset| Ok(extract(corpus, *doc_id, offset, PIECE_BYTES)?);
        return Ok(vec![(*doc_id, digest_of_pieces(document_len_bytes(corpus, *doc_id)?, piece)?)]);
    }
    let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
    let digest = |&doc_id: &u64| {
        decoder.clear();
        decoder.append_document(doc_id)?;
        Ok((doc_id, blake3::hash(decoder.bytes())))
    };
    task.docs.iter().map(digest).collect()
}

fn digest_of_pieces(len_bytes: u64, piece: impl Fn(u64) -> Outcome<Vec<u8>>) -> Outcome<Hash> {
    let mut hasher = Hasher::new();
    for offset in (0..len_bytes).step_by(PIECE_BYTES as usize) {
        if interrupt::is_asked() {
            return Err(Failure::interrupted());
        }
        hasher.update(&piece(offset)?);
    }
    Ok(hasher.finalize())
}

/// A document as its file has it now.
#[derive(Debug)]
pub struct Print {
    pub path: Arc<str>,
    pub len_bytes: u64,
    pub digest: Hash,
}

/// Reads `inputs` as `job` does, and returns the prints of their documents, in order, and the faults of
/// inputs that were left out from there on.
///
/// # Errors
/// An input cannot be read, or the user has interrupted.
pub fn prints(inputs: &[Input], job: &Job) -> Outcome<(Vec<Print>, Vec<String>)> {
    let mut prints = Prints::default();
    let mut columns = Columns::for_documents(&documents::Documents::Files);
    let read = documents::read(inputs, &job.division, job.read, &job.archives, &mut columns, &mut prints);
    if interrupt::is_asked() {
        return Err(Failure::interrupted());
    }
    Ok((prints.done, read?.faults))
}

#[derive(Default)]
struct Prints {
    done: Vec<Print>,
    /// Hasher and length of the document that goes on.
    open: Option<(Hasher, u64)>,
}

impl Sink for Prints {
    fn take(&mut self, batch: Batch) -> documents::Outcome {
        if interrupt::is_asked() {
            return Err(documents::Failure::new("interrupted"));
        }
        for (part, (path, _)) in batch.iter().zip(&batch.documents) {
            let (mut hasher, before) = self.open.take().unwrap_or_default();
            hasher.update(part.text);
            let len_bytes = before + part.text.len() as u64;
            if part.is_last {
                self.done.push(Print { path: Arc::clone(path), len_bytes, digest: hasher.finalize() });
            } else {
                self.open = Some((hasher, len_bytes));
            }
        }
        Ok(())
    }
}
