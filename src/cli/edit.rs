//! `tadoc edit`: changes documents of a living corpus, all edits in one commit or none.
//!
//! Edits come from flags and from JSON lines, in the order of the command line. Before the commit,
//! they are tried on the current documents, so that an impossible edit is refused by name. If
//! another commit comes first, they are tried again.

mod flags;
mod lines;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use tadoc::build::IngestOptions;
use tadoc::edits::{Edit, EditBatch, EditMode, LivingCorpus};
use tadoc_documents::Documents;
use tadoc_documents::display::{plain, plural};
use tadoc_session::{Failure, Outcome};
use tadoc_store::{Change, CommitKind, RECOMPRESS_RATIO, Version};

use self::flags::Flags;
use crate::living::{Living, parse_share};
use crate::output::say;
use crate::taken::TakenPaths;

/// Change documents of a living corpus
///
/// Edits are made in the order of the command line, all of them in one commit or none. ID is the
/// number of a document (SELECT doc_id, path FROM documents('CORPUS')). OFFSET and LENGTH count
/// bytes. A document keeps its number forever, and the number of a dropped document is not used
/// again.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The corpus: a folder or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    #[command(flatten)]
    flags: Flags,

    /// Text that offsets refer to: in_sequence (the text after the previous edit) or in_batch (the
    /// text before all edits)
    #[arg(long, default_value_t, value_name = "MODE", verbatim_doc_comment)]
    mode: EditMode,

    /// Change nothing if there has been a commit since version N
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,

    /// Only check if the edits can be made
    #[arg(long)]
    dry_run: bool,

    /// Add documents also if their path is in the corpus already
    #[arg(long)]
    duplicate: bool,

    /// Compress the corpus anew once its edits exceed this share of its bytes (and 1 MiB), or once
    /// 64 small files lie side by side; 0 means never
    #[arg(long, default_value_t = RECOMPRESS_RATIO, value_name = "SHARE", value_parser = parse_share)]
    recompress_ratio: f64,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  tadoc edit notes/ --append 7 ' and one more thing'
  tadoc edit notes/ --insert 7:120 'not ' --delete 3:0:5
  tadoc edit notes/ --add todo/friday.md friday.md --replace 7 new.md --drop 3
  tadoc edit notes/ --from edits.jsonl --mode in_batch
  jq -c '…' changes.json | tadoc edit notes/ --from -

JSON lines, one edit each (`file` names a file instead of `text`):
  {\"op\":\"append\",\"doc_id\":7,\"text\":\" and one more thing\"}
  {\"op\":\"insert\",\"doc_id\":7,\"pos\":120,\"text\":\"not \"}
  {\"op\":\"delete\",\"doc_id\":3,\"pos\":0,\"len\":5}
  {\"op\":\"add\",\"path\":\"todo/friday.md\",\"text\":\"buy milk\"}
  {\"op\":\"replace\",\"doc_id\":7,\"file\":\"new.md\"}
  {\"op\":\"drop\",\"doc_id\":3}

Exit status: 0 done, 1 failed and nothing changed, 2 usage, 130 interrupted.";

/// An edit and its source in the arguments.
pub struct Asked {
    /// The edit.
    edit: Edit,
    /// Source of the edit, such as `--drop` or `edits.jsonl: line 3`.
    place: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let asked = arguments.flags.edits()?;
    if asked.is_empty() {
        return Err(Failure::usage(
            "no edits; pass --append, --insert, --delete, --add, --replace, --drop or --from",
        ));
    }
    let (edits, places): (Vec<Edit>, Vec<String>) =
        asked.into_iter().map(|asked| (asked.edit, asked.place)).unzip();
    let batch = EditBatch { mode: arguments.mode, edits };
    let living = Living::open(&arguments.corpus)?;
    let latest = living.version(None)?;
    if arguments.dry_run {
        let version = latest;
        check(&living, arguments, &version, &batch, &places)?;
        if !arguments.quiet {
            let (shown, told) = (shown(arguments), told(&batch));
            say(format_args!("{shown}: version {}: would be made: {told}", version.number))?;
        }
        return Ok(());
    }
    let version = living.update(latest, |latest| {
        check(&living, arguments, latest, &batch, &places)?;
        Ok(Change::edit(CommitKind::Edit, &batch))
    })?;
    // Recompression runs even if nobody reads the output.
    let said = if arguments.quiet { Ok(()) } else { say_committed(arguments, &batch, &version) };
    let ratio = arguments.recompress_ratio;
    let done = living.recompress(&version, ratio, IngestOptions::default());
    said?;
    done.filter(|_| !arguments.quiet).map_or(Ok(()), say)
}

/// Refuses edits that cannot be made on `latest`, or that may not.
fn check(
    living: &Living,
    arguments: &Arguments,
    latest: &Version,
    batch: &EditBatch,
    places: &[String],
) -> Outcome {
    check_version(living, latest, arguments.if_version)?;
    if !arguments.duplicate {
        check_added(living, &arguments.corpus, latest, &batch.edits, places)?;
    }
    // Edits that only add documents can always be made.
    if batch.edits.iter().all(|edit| edit.doc_id().is_none()) {
        return Ok(());
    }
    try_edits(living.corpus(latest)?, batch, places)
}

/// Refuses to add a document whose path is there already, unless the edits drop the one that has it.
fn check_added(
    living: &Living,
    location: &Path,
    version: &Version,
    edits: &[Edit],
    places: &[String],
) -> Outcome {
    let added = edits.iter().zip(places).filter_map(|(edit, place)| match edit {
        Edit::AddDocument { path, .. } => Some((path.as_str(), place)),
        _ => None,
    });
    let added: Vec<(&str, &String)> = added.collect();
    if added.is_empty() {
        return Ok(());
    }
    let leaving = edits.iter().filter_map(|edit| match edit {
        Edit::DropDocument { doc_id } => Some(*doc_id),
        _ => None,
    });
    let leaving = leaving.collect();
    let taken = TakenPaths::read(living, location, version, &Documents::Files, &leaving)?;
    let mut seen = HashSet::new();
    for (path, place) in added {
        if taken.has(path) || !seen.insert(path) {
            return Err(Failure::new(format!(
                "{place}: a document {} is there already, and nothing changed; --replace ID FILE gives it other \
                 bytes, and --duplicate adds a second one of this path",
                plain(path)
            )));
        }
    }
    Ok(())
}

fn say_committed(arguments: &Arguments, batch: &EditBatch, version: &Version) -> Outcome {
    let (shown, told) = (shown(arguments), told(batch));
    say(format_args!("{shown}: version {}: {told}", version.number))?;
    added(version, batch)
        .try_for_each(|(doc_id, path)| say(format_args!("document {doc_id} is {path}")))
}

fn shown(arguments: &Arguments) -> std::path::Display<'_> {
    arguments.corpus.display()
}

fn check_version(living: &Living, latest: &Version, expected: Option<u64>) -> Outcome {
    match expected {
        Some(expected) if expected != latest.number => Err(Failure::new(format!(
            "{}: expected version {expected}, it is at version {} ({}); look at it and try again",
            living.store.location(),
            latest.number,
            latest.kind
        ))),
        _ => Ok(()),
    }
}

/// Tries the edits in memory. An error names the first edit that cannot be made.
fn try_edits(corpus: LivingCorpus, batch: &EditBatch, places: &[String]) -> Outcome {
    let try_first = |num_edits: usize| {
        let edits = batch.edits[..num_edits].to_vec();
        corpus.clone().apply(&EditBatch { mode: batch.mode, edits })
    };
    let Err(error) = try_first(batch.edits.len()) else { return Ok(()) };
    let (mut num_good, mut num_bad) = (0, batch.edits.len());
    while num_good + 1 < num_bad {
        let middle = num_good.midpoint(num_bad);
        match try_first(middle) {
            Ok(_) => num_good = middle,
            Err(_) => num_bad = middle,
        }
    }
    let error = try_first(num_bad).err().unwrap_or(error);
    Err(Failure::from(error).within(&places[num_bad - 1]))
}

/// Formats the number of edits of each kind.
fn told(batch: &EditBatch) -> String {
    const KINDS: [&str; 7] = ["insert", "append", "delete", "add", "drop", "replace", "set"];
    let kind_of = |edit: &Edit| match edit {
        Edit::InsertText { .. } => 0,
        Edit::AppendText { .. } => 1,
        Edit::DeleteText { .. } => 2,
        Edit::AddDocument { .. } => 3,
        Edit::DropDocument { .. } => 4,
        Edit::ReplaceDocument { .. } => 5,
        Edit::SetColumns { .. } => 6,
    };
    let counted = (0..KINDS.len()).filter_map(|kind| {
        let num_edits = batch.edits.iter().filter(|edit| kind_of(edit) == kind).count() as u64;
        (num_edits > 0).then(|| plural(num_edits, KINDS[kind]))
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// Returns the numbers and paths of the added documents.
fn added<'a>(version: &Version, batch: &'a EditBatch) -> impl Iterator<Item = (u64, &'a str)> {
    let paths = batch.edits.iter().filter_map(|edit| match edit {
        Edit::AddDocument { path, .. } => Some(path.as_str()),
        _ => None,
    });
    let paths: Vec<&str> = paths.collect();
    (version.num_doc_ids() - paths.len() as u64..).zip(paths)
}

/// Reads the bytes of a file that an edit names.
fn read(file: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(file).map_err(|error| Failure::with_cause(file.display(), &error))
}
