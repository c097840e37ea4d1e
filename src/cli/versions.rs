//! `tadoc history`, `tadoc clean-up` and `tadoc optimize`: the versions of a living corpus, oldest first, the files
//! that only old ones need, and a corpus that is compressed anew. `optimize` also writes a corpus file in another
//! layout. The first two write nothing, so they work on a full disk.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use datafusion_tadoc::user_columns::merge_columns;
use tadoc::build::IngestOptions;
use tadoc::format::{
    CorpusWriter, EncodedSegment, OpenLimits, SegmentContents, SegmentLayout, read_columns, read_segment,
};
use tadoc_documents::display::{bytes, grouped, parse_age, parse_size, percent, plural, time};
use tadoc_session::{BlockingResolver, Corpora, CorpusFile, Failure, Outcome, StoredFile};
use tadoc_store::{CleanUp as Cleaned, OptimizeOptions, OptimizePlan, Part, PartRun, Version};

use crate::info::json_string;
use crate::living::Living;
use crate::output::{Output, say};

/// List the versions of a living corpus
///
/// Lists every version that is kept, oldest first: the time of its commit (UTC), the kind of
/// change, and the id of the commit. To read an old version: tadoc cat CORPUS --version N PATH.
#[derive(Args)]
pub struct History {
    /// The corpus: a folder or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Write a JSON array instead
    #[arg(long)]
    json: bool,
}

const HEADER: [&str; 8] = ["version", "time", "kind", "added", "dropped", "edits", "bytes", "commit"];
/// True for columns of words, which are aligned left. Columns of numbers are aligned right.
const WORDS: [bool; 8] = [false, true, true, false, false, false, false, true];

/// Runs `tadoc history`.
pub fn history(arguments: &History) -> Outcome {
    let living = Living::open(&arguments.corpus)?;
    let versions = living.wait(living.store.history())?;
    let text = if arguments.json {
        let versions: Vec<String> = versions.iter().map(json).collect();
        format!("[{}]\n", versions.join(",\n "))
    } else {
        table(versions.iter().map(row).collect())
    };
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

fn row(version: &Version) -> [String; 8] {
    let counts = version.counts;
    [
        version.number.to_string(),
        time(version.time_us),
        version.kind.to_string(),
        grouped(counts.docs_added),
        grouped(counts.docs_dropped),
        grouped(counts.edits),
        grouped(counts.text_bytes),
        version.commit_id.to_string(),
    ]
}

fn table(mut rows: Vec<[String; 8]>) -> String {
    rows.insert(0, HEADER.map(str::to_owned));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).zip(WORDS).map(|((cell, &width), is_word)| {
            if is_word { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn json(version: &Version) -> String {
    let counts = version.counts;
    format!(
        "{{\"version\":{},\"time\":{},\"time_us\":{},\"kind\":{},\"docs_added\":{},\
         \"docs_dropped\":{},\"edits\":{},\"text_bytes\":{},\"commit_id\":{},\"parent_id\":{},\
         \"writer\":{}}}",
        version.number,
        json_string(&time(version.time_us)),
        version.time_us,
        json_string(version.kind.as_str()),
        counts.docs_added,
        counts.docs_dropped,
        counts.edits,
        counts.text_bytes,
        json_string(&version.commit_id.to_string()),
        json_string(&version.parent_id.to_string()),
        json_string(&version.writer),
    )
}

/// Remove old files of a living corpus
///
/// Keeps the files of the latest version and of every version that was the latest within AGE, and
/// removes all others. Older versions can then no longer be read. Files that interrupted writers
/// left are removed too. The command writes nothing, so it works on a full disk.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CleanUp {
    /// The corpus: a folder or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Keep versions of the last AGE (90s, 30m, 12h, 7d, 0) readable
    ///
    /// The age protects readers of old versions and writers that are about to commit. With 0 there
    /// must be none of either.
    #[arg(long, default_value = "7d", value_name = "AGE", value_parser = parse_age)]
    age: Duration,

    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  tadoc clean-up notes/                       versions of the last 7 days can still be read
  tadoc clean-up notes/ --age 0 --dry-run     what only old versions need
  tadoc clean-up s3://bucket/notes --age 12h

Exit status: 0 done or nothing to do, 1 failed, 2 usage, 130 interrupted.";

/// Runs `tadoc clean-up`.
pub fn clean_up(arguments: &CleanUp) -> Outcome {
    let living = Living::open(&arguments.corpus)?;
    let cleaned = living.wait(living.store.clean_up(arguments.age, arguments.dry_run))?;
    if arguments.quiet { Ok(()) } else { say(told(&living, &cleaned, arguments.dry_run)) }
}

/// Formats what a clean-up removed, or would remove.
pub fn told(living: &Living, cleaned: &Cleaned, dry_run: bool) -> String {
    let verb = if dry_run { "would remove" } else { "removed" };
    let files = plural(cleaned.removed.len() as u64, "file");
    let size = bytes(cleaned.len_bytes());
    let oldest = cleaned.oldest_version;
    format!("{}: {verb} {files}, {size}; versions from {oldest} on are kept", living.store.location())
}

/// Compress a living corpus anew, or write a corpus in another layout
///
/// Rebuilds files with edited documents, added documents, and small files that lie side by side.
/// Large files without edits stay as they are. Every document keeps its number, path, text and
/// columns. Readers and writers continue meanwhile. Old versions stay readable until --clean-up
/// removes their files.
#[derive(Args)]
#[command(after_long_help = OPTIMIZE_EXAMPLES)]
pub struct Optimize {
    /// The corpus: a folder or URL; with --layout also a corpus file
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Write everything in this layout: indexed or small (see tadoc ingest)
    ///
    /// The grammars of large segments stay as they are, so this takes little time. A corpus file is
    /// replaced by the new one when that is complete.
    #[arg(long, value_name = "NAME")]
    layout: Option<SegmentLayout>,

    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// Remove files that no version of the last AGE (90s, 30m, 12h, 7d, 0) needs, before and after
    ///
    /// The age protects readers of old versions and writers that are about to commit. With 0 there
    /// must be none of either. If the disk is too full even then, use tadoc clean-up, which writes
    /// nothing.
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    clean_up: Option<Duration>,

    /// Amount of text that is compressed together; memory grows with it
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = parse_size)]
    block_size: u64,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,
}

const OPTIMIZE_EXAMPLES: &str = "\
Examples:
  tadoc optimize notes/ --dry-run             what would be rebuilt
  tadoc optimize notes/ --clean-up 7d         versions of the last 7 days can still be read
  tadoc optimize s3://bucket/notes
  tadoc optimize notes.tadoc --layout small   the same corpus, as an archive

Interrupted or killed, the corpus is at its old version or at the new one.

Exit status: 0 done or nothing to do, 1 failed, 2 usage, 130 interrupted.";

/// Runs `tadoc optimize`.
pub fn optimize(arguments: &Optimize) -> Outcome {
    if let Some((file, layout)) = file_to_rewrite(arguments)? {
        return rewrite(&file, layout, arguments);
    }
    let living = Living::open(&arguments.corpus)?;
    let ingest = IngestOptions {
        layout: arguments.layout.unwrap_or_default(),
        block_bytes: usize::try_from(arguments.block_size).unwrap_or(usize::MAX).max(1),
        ..IngestOptions::default()
    };
    let merge_columns = Some(Arc::new(merge_columns) as _);
    let options = OptimizeOptions {
        ingest,
        merge_columns,
        rebuild_all: arguments.layout.is_some(),
        keep_layout: arguments.layout.is_none(),
        ..OptimizeOptions::default()
    };
    // Unneeded files are removed first, as the new files may need their space. The latest version
    // is not affected.
    let mut cleaned = removed(&living, arguments)?;
    let base = living.version(None)?;
    let plan = living.wait(living.store.optimize_plan(&base, &options))?;
    let mut lines = Vec::new();
    match (plan.is_worth_it(), arguments.dry_run) {
        (false, _) => {
            let location = living.store.location();
            lines.push(format!("{location}: version {}: nothing to do", base.number));
        }
        (true, true) => lines.extend(planned(&plan)),
        (true, false) => {
            lines.push(rebuild(&living, &plan, &options)?);
            // Then the files that the rebuild made obsolete.
            if let Some(Cleaned { removed, oldest_version }) = removed(&living, arguments)? {
                let before = cleaned.get_or_insert_default();
                before.removed.extend(removed);
                before.oldest_version = oldest_version;
            }
        }
    }
    lines.extend(cleaned.map(|cleaned| told(&living, &cleaned, arguments.dry_run)));
    if arguments.quiet { Ok(()) } else { lines.iter().try_for_each(say) }
}

/// Returns the file and its new layout if the corpus is a file that is to be written anew.
fn file_to_rewrite(arguments: &Optimize) -> Outcome<Option<(CorpusFile, SegmentLayout)>> {
    let Some(layout) = arguments.layout else { return Ok(None) };
    match BlockingResolver::new()?.corpora(&arguments.corpus, None)? {
        Corpora::Living(_) => Ok(None),
        Corpora::Files(files) => match <[StoredFile; 1]>::try_from(files) {
            Ok([file]) => Ok(Some((file.open()?, layout))),
            Err(files) => Err(Failure::new(format!(
                "{}: expected one corpus file, got {}; name one at a time",
                arguments.corpus.display(),
                files.len()
            ))),
        },
    }
}

/// Replaces `file` by the same corpus in `layout`.
fn rewrite(file: &CorpusFile, layout: SegmentLayout, arguments: &Optimize) -> Outcome {
    let name = &file.name;
    if arguments.dry_run {
        return say(format!("{name}: would be written with layout {layout}"));
    }
    // A folder or a glob with one file means that file.
    let target =
        if arguments.corpus.to_string_lossy() == *name { arguments.corpus.clone() } else { PathBuf::from(name) };
    let out = BufWriter::new(Output::create(&target, true)?);
    let columns = file.footer.columns.as_ref().map(|section| {
        let bytes = file.read(section.offset..section.offset.saturating_add(section.len))?;
        Outcome::Ok(read_columns(name, section, &bytes)?)
    });
    let columns = columns.transpose()?.map(Vec::from);
    let out = convert(file, out, layout, columns)?;
    let out = out.into_inner().map_err(|error| Failure::with_cause(format!("{name}: cannot write"), error.error()))?;
    out.persist()?;
    if arguments.quiet {
        return Ok(());
    }
    let Some((written, _)) = file_to_rewrite(arguments)? else { return Ok(()) };
    say(format!(
        "{name}: layout {layout}, {} before, {} after ({})",
        bytes(file.len_bytes),
        bytes(written.len_bytes),
        percent(written.len_bytes, file.len_bytes),
    ))
}

/// Writes the grammars of `file` in `layout`, one segment at a time.
fn convert<W: Write>(file: &CorpusFile, out: W, layout: SegmentLayout, columns: Option<Vec<u8>>) -> Outcome<W> {
    let name = &file.name;
    let footer = &file.footer;
    let limits = OpenLimits::default();
    let mut writer = CorpusWriter::new(out, footer.profile, &footer.builder)?;
    for (segment_idx, meta) in footer.segments.iter().enumerate() {
        let bytes = file.read(meta.byte_range())?;
        let segment = read_segment(name, footer, segment_idx, &bytes, &limits)?;
        let contents = SegmentContents::from_segment(&segment, meta);
        writer.write_segment(EncodedSegment::new(&contents, layout)?)?;
    }
    Ok(writer.finish(columns.as_deref())?.0)
}

/// Runs the clean-up if it was requested.
fn removed(living: &Living, arguments: &Optimize) -> Outcome<Option<Cleaned>> {
    let clean_up = |age| living.wait(living.store.clean_up(age, arguments.dry_run));
    arguments.clean_up.map(clean_up).transpose()
}

/// Carries out `plan` and returns a summary.
fn rebuild(living: &Living, plan: &OptimizePlan, options: &OptimizeOptions) -> Outcome<String> {
    let version = living.wait(living.store.optimize(options))?;
    // Another process may have optimized the corpus in the meantime.
    let version = version.map_or_else(|| living.version(None), Ok)?;
    done(living, plan, &version, options)
}

/// Returns the parts of the base version that `plan` rebuilds.
fn rebuilt(plan: &OptimizePlan) -> impl Iterator<Item = (&PartRun, &[Part])> {
    let runs = plan.runs().iter().filter(|run| run.is_rebuilt);
    runs.map(|run| (run, &plan.base().parts[run.parts.clone()]))
}

/// Formats the steps of `plan` for a dry run.
fn planned(plan: &OptimizePlan) -> Vec<String> {
    let mut lines =
        vec![format!("{} in {} would be built in", plural(plan.num_edits(), "edit"), bytes(plan.edit_bytes))];
    for (run, parts) in rebuilt(plan) {
        let first = run.doc_ids.start;
        let end = run.doc_ids.end;
        lines.push(format!("would become one file, documents {first} to {end}:"));
        lines.extend(parts.iter().map(|part| match part {
            Part::File { len_bytes, .. } => {
                format!("  {}, {}", part.file_name().unwrap_or_default(), bytes(*len_bytes))
            }
            Part::Edits { version, num_docs } => {
                format!("  {} added by version {version}", plural(*num_docs, "document"))
            }
        }));
    }
    lines
}

fn done(living: &Living, before: &OptimizePlan, version: &Version, options: &OptimizeOptions) -> Outcome<String> {
    let after = living.wait(living.store.optimize_plan(version, options))?;
    let old = before.file_bytes + before.edit_bytes;
    let new = after.file_bytes + after.edit_bytes;
    Ok(format!(
        "{}: version {}: {} and {} rebuilt as {}, {} before, {} after ({})",
        living.store.location(),
        version.number,
        plural(rebuilt(before).map(|(_, parts)| parts.len() as u64).sum(), "part"),
        plural(before.num_edits(), "edit"),
        plural(rebuilt(before).count() as u64, "file"),
        bytes(old),
        bytes(new),
        percent(new, old),
    ))
}
