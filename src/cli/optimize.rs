//! `tadoc optimize`: compresses a living corpus anew, and removes old files on demand. It also writes
//! a corpus file in another layout, or with another effort.

use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use datafusion_tadoc::user_columns::merge_columns;
use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::{
    CorpusWriter, EncodedSegment, OpenLimits, SegmentContents, SegmentLayout, SegmentMeta, read_columns, read_segment,
};
use tadoc::grammar::Effort;
use tadoc::read::{DocumentDecoder, document_len_bytes, extract};
use tadoc_documents::display::{bytes, parse_age, parse_size, percent, plural};
use tadoc_session::{BlockingResolver, Corpora, CorpusFile, Failure, Outcome, StoredFile};
use tadoc_store::{CleanUp, OptimizeOptions, OptimizePlan, Part, PartRun, Version};

use crate::living::Living;
use crate::output::{Output, say};
use crate::tasks::{for_each_chain, path_of};
use crate::versions::told;

/// Number of bytes of a long document that are decoded at once.
const PIECE_BYTES: u64 = 64 << 20;

/// Compress a living corpus anew, or write a corpus in another layout or with another effort
///
/// Rebuilds files with edited documents, added documents, and small files that lie side by side.
/// Large files without edits stay as they are. Every document keeps its number, path, text and
/// columns. Readers and writers continue meanwhile. Old versions stay readable until --clean-up
/// removes their files.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The corpus: a folder or URL; with --layout and --effort also a corpus file
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Write everything in this layout: indexed, small or fast (see tadoc ingest)
    ///
    /// The grammars of large segments stay as they are, so this takes little time. A corpus file is
    /// replaced by the new one when that is complete.
    #[arg(long, value_name = "NAME")]
    layout: Option<SegmentLayout>,

    /// Build all grammars anew with this effort: fast, balanced or small (see tadoc ingest)
    ///
    /// This takes as long as the ingest did, without its reading. A corpus keeps its layout unless
    /// --layout is given, and a corpus file is replaced by the new one when that is complete.
    #[arg(long, value_name = "NAME")]
    effort: Option<Effort>,

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

const EXAMPLES: &str = "\
Examples:
  tadoc optimize notes/ --dry-run             what would be rebuilt
  tadoc optimize notes/ --clean-up 7d         versions of the last 7 days can still be read
  tadoc optimize s3://bucket/notes
  tadoc optimize notes.tadoc --layout small   the same corpus, as an archive
  tadoc optimize notes.tadoc --effort small   the same corpus, smaller

Interrupted or killed, the corpus is at its old version or at the new one.

Exit status: 0 done or nothing to do, 1 failed, 2 usage, 130 interrupted.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if let Some(file) = file_to_rewrite(arguments)? {
        return rewrite(&file, arguments);
    }
    let living = Living::open(&arguments.corpus)?;
    let ingest = IngestOptions {
        layout: arguments.layout.unwrap_or_default(),
        effort: arguments.effort.unwrap_or_default(),
        block_bytes: arguments.block_bytes(),
        ..IngestOptions::default()
    };
    let merge_columns = Some(Arc::new(merge_columns) as _);
    let options = OptimizeOptions {
        ingest,
        merge_columns,
        rebuild_all: arguments.is_rewrite(),
        rebuild_grammars: arguments.effort.is_some(),
        keep_layout: arguments.layout.is_none(),
        ..OptimizeOptions::default()
    };
    // Unneeded files are removed first, as the new files may need their space. The latest version
    // is not affected.
    let mut cleaned = clean_up(&living, arguments)?;
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
            if let Some(CleanUp { removed, oldest_version }) = clean_up(&living, arguments)? {
                let before = cleaned.get_or_insert_default();
                before.removed.extend(removed);
                before.oldest_version = oldest_version;
            }
        }
    }
    lines.extend(cleaned.map(|cleaned| told(&living, &cleaned, arguments.dry_run)));
    if arguments.quiet { Ok(()) } else { lines.iter().try_for_each(say) }
}

impl Arguments {
    /// Returns true if everything is written anew.
    fn is_rewrite(&self) -> bool {
        self.layout.is_some() || self.effort.is_some()
    }

    fn block_bytes(&self) -> usize {
        usize::try_from(self.block_size).unwrap_or(usize::MAX).max(1)
    }

    /// Names the layout and the effort that are asked for.
    fn asked(&self) -> String {
        let layout = self.layout.map(|layout| format!("layout {layout}"));
        let effort = self.effort.map(|effort| format!("effort {effort}"));
        layout.into_iter().chain(effort).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the file if the corpus is a file that is to be written anew.
fn file_to_rewrite(arguments: &Arguments) -> Outcome<Option<CorpusFile>> {
    if !arguments.is_rewrite() {
        return Ok(None);
    }
    match BlockingResolver::new()?.corpora(&arguments.corpus, None)? {
        Corpora::Living(_) => Ok(None),
        Corpora::Files(files) => match <[StoredFile; 1]>::try_from(files) {
            Ok([file]) => Ok(Some(file.open()?)),
            Err(files) => Err(Failure::new(format!(
                "{}: expected one corpus file, got {}; name one at a time",
                arguments.corpus.display(),
                files.len()
            ))),
        },
    }
}

/// Replaces `file` by the same corpus in the layout and with the effort of `arguments`.
fn rewrite(file: &CorpusFile, arguments: &Arguments) -> Outcome {
    let (name, asked) = (&file.name, arguments.asked());
    if arguments.dry_run {
        return say(format!("{name}: would be written with {asked}"));
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
    let out = match (arguments.effort, arguments.layout) {
        (Some(effort), layout) => {
            let of_file = file.footer.segments.first().map(SegmentMeta::layout);
            let options = IngestOptions {
                profile: file.footer.profile,
                layout: layout.or(of_file).unwrap_or_default(),
                effort,
                block_bytes: arguments.block_bytes(),
                ..IngestOptions::default()
            };
            build_anew(file, out, options, columns)?
        }
        (None, layout) => convert(file, out, layout.unwrap_or_default(), columns)?,
    };
    let out = out.into_inner().map_err(|error| Failure::with_cause(format!("{name}: cannot write"), error.error()))?;
    out.persist()?;
    if arguments.quiet {
        return Ok(());
    }
    let Some(written) = file_to_rewrite(arguments)? else { return Ok(()) };
    say(format!(
        "{name}: {asked}, {} before, {} after ({})",
        bytes(file.len_bytes),
        bytes(written.len_bytes),
        percent(written.len_bytes, file.len_bytes),
    ))
}

/// Writes the grammars of `file` in `layout`, one segment at a time.
fn convert<W: Write>(file: &CorpusFile, out: W, layout: SegmentLayout, columns: Option<Vec<u8>>) -> Outcome<W> {
    let (name, footer) = (&file.name, &file.footer);
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

/// Builds the documents of `file` anew, a few segments at a time.
fn build_anew<W: Write>(file: &CorpusFile, out: W, options: IngestOptions, columns: Option<Vec<u8>>) -> Outcome<W> {
    let mut builder = CorpusBuilder::new(out, options)?;
    let visited = for_each_chain(file, None, &mut |corpus| {
        let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
        for doc_id in 0..corpus.num_docs() {
            push(&mut builder, corpus, &mut decoder, doc_id)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    debug_assert!(visited.is_continue());
    Ok(builder.finish(columns)?.0)
}

/// Adds a document to `builder`, a long one piece by piece.
fn push<W: Write>(
    builder: &mut CorpusBuilder<W>,
    corpus: &Corpus,
    decoder: &mut DocumentDecoder,
    doc_id: u64,
) -> Outcome {
    let (path, len_bytes) = (path_of(corpus, doc_id), document_len_bytes(corpus, doc_id)?);
    if len_bytes <= PIECE_BYTES {
        decoder.clear();
        decoder.append_document(doc_id)?;
        return Ok(builder.push_document(path, decoder.bytes())?);
    }
    for offset in (0..len_bytes).step_by(PIECE_BYTES as usize) {
        let is_last = len_bytes - offset <= PIECE_BYTES;
        let piece = extract(corpus, doc_id, offset, PIECE_BYTES)?;
        builder.push_part(path, &piece, is_last)?;
    }
    Ok(())
}

/// Runs the clean-up if it was requested.
fn clean_up(living: &Living, arguments: &Arguments) -> Outcome<Option<CleanUp>> {
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
        let (first, end) = (run.doc_ids.start, run.doc_ids.end);
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
    let (old, new) = (before.file_bytes + before.edit_bytes, after.file_bytes + after.edit_bytes);
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
