//! `tadoc ingest`: text in, one compressed corpus out.
//!
//! ```text
//! reader thread: inputs ─▶ documents ─▶ batches ──bounded channel──▶ CorpusBuilder ─▶ Output
//!                                      (columns stay with the reader and are stored last)
//! ```

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use datafusion_tadoc::corpus::{BuilderKind, CorpusBuilder, IngestOptions, IngestReport};
use datafusion_tadoc::text::TokenizerProfile;

use crate::columns::StoredColumns;
use crate::display;
use crate::documents::{self, BATCH_BYTES, Batch, Documents, ReadOptions, Sink};
use crate::failure::{Failure, Outcome};
use crate::inputs::{self, Filter, Input};
use crate::output::Output;
use crate::pattern::Pattern;
use crate::progress::Progress;

/// Batches that may wait between reader and builder.
const WAITING_BATCHES: usize = 4;

/// Compress text into a corpus
///
/// Reads files, folders (with everything below, hidden files left out), globs, or standard input
/// (`-`). Files compressed with gzip or zstd are read through. Any bytes will do: they come back
/// exactly.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Files, folders, globs (quote them), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// The corpus to write, such as notes.tadoc
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// From folders, take only files that match this glob (may be given several times)
    ///
    /// A pattern without a slash is matched against file names, one with a slash against the path
    /// inside the folder. `*` and `?` stay inside one component, `**` does not; `{a,b}` and `[abc]`
    /// work as in a shell.
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new)]
    glob: Vec<Pattern>,

    /// What one document is: files, lines, jsonl:FIELD, csv:COLUMN or parquet:COLUMN
    ///
    /// files: a whole file; its path is relative to the folder given, with the folder's name in
    /// front when several paths are given.
    /// lines: a line, without its line end (\n is not part of the document, \r is); its path is the
    /// file's.
    /// jsonl, csv, parquet: a row. The column named after the colon is the text, a column called
    /// `path` is the path, all others become columns of the table (CREATE EXTERNAL TABLE t STORED
    /// AS TADOC LOCATION 'FILE').
    #[arg(long, default_value = "files", value_name = "KIND", verbatim_doc_comment)]
    documents: Documents,

    /// How text is cut into words: word (runs of letters, digits and _), uax29 or whitespace
    #[arg(long, default_value_t, value_name = "NAME")]
    tokenizer: TokenizerProfile,

    /// How the grammar is built: rounds (fast, parallel) or sequitur (the published baseline)
    #[arg(long, default_value = "rounds", value_name = "NAME")]
    builder: BuilderKind,

    /// Text that is compressed together; memory grows with it
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = display::parse_size)]
    block_size: u64,

    /// Threads to compute with (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Rows whose text is missing or null become empty documents instead of an error
    #[arg(long)]
    allow_missing: bool,

    /// Write a corpus even if there is not one document (always so for standard input)
    #[arg(long)]
    allow_empty: bool,

    /// Of rows, keep only text and path
    #[arg(long)]
    no_columns: bool,

    /// Store gzip and zstd files as they are
    #[arg(long)]
    no_decompress: bool,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  tadoc ingest notes/ -o notes.tadoc
  tadoc ingest src docs --glob '*.rs' --glob '*.md' -o source.tadoc
  tadoc ingest 'logs/**/*.log.gz' --documents lines -o logs.tadoc
  tadoc ingest tickets.jsonl --documents jsonl:body -o tickets.tadoc
  tadoc ingest mail.parquet --documents parquet:text -o mail.tadoc --force
  journalctl | tadoc ingest - --documents lines -o journal.tadoc

The output appears under its name when it is complete and on disk; on an error or Ctrl-C nothing is
left behind.

Exit status: 0 done, 1 failed, 2 usage, 130 interrupted.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if let Some(num_threads) = arguments.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads.into()).build_global();
        pool.map_err(|error| Failure::with_cause("starting threads", &error))?;
    }
    let job = Job {
        options: arguments.options(),
        documents: arguments.documents.clone(),
        read: ReadOptions {
            decompress: !arguments.no_decompress,
            allow_missing: arguments.allow_missing,
            keep_columns: !arguments.no_columns,
        },
        allow_empty: arguments.allow_empty || arguments.paths.iter().any(|path| is_stdin(path)),
        quiet: arguments.quiet,
    };
    let filter = Filter { patterns: arguments.glob.clone(), skip: Some(arguments.output.clone()) };
    let output = Output::create(&arguments.output, arguments.force)?;
    let inputs = inputs::collect(&arguments.paths, &filter)?;
    let summary = job.run(&inputs, output, &arguments.output)?;
    if !arguments.quiet {
        eprintln!("{summary}");
    }
    Ok(())
}

impl Arguments {
    fn options(&self) -> IngestOptions {
        IngestOptions {
            profile: self.tokenizer,
            builder: self.builder,
            block_bytes: usize::try_from(self.block_size).unwrap_or(usize::MAX),
            ..IngestOptions::default()
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// One ingest, however it was asked for.
pub struct Job {
    /// For the library.
    pub options: IngestOptions,
    /// What one document is.
    pub documents: Documents,
    /// How inputs are read.
    pub read: ReadOptions,
    /// A corpus without documents is written.
    pub allow_empty: bool,
    /// Nothing is shown.
    pub quiet: bool,
}

impl Job {
    /// Reads `inputs`, writes `output` and gives it its name. Returns what was done, in words.
    pub fn run(&self, inputs: &[Input], output: Output, path: &Path) -> Outcome<String> {
        let start = Instant::now();
        let total_bytes = inputs.iter().map(|input| input.len_bytes).sum();
        let is_sized = inputs.iter().all(|input| input.len_bytes > 0);
        let progress = Progress::new(if is_sized { total_bytes } else { 0 }, self.quiet);
        let builder = CorpusBuilder::new(BufWriter::new(output), self.options)?;
        let (sender, receiver) = sync_channel(WAITING_BATCHES);
        let (built, columns) = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut sender = Sender(sender);
                documents::read(inputs, &self.documents, self.read, &mut sender)
            });
            let built = build(builder, receiver, progress);
            (built, reader.join())
        });
        let columns = columns.map_err(|_| Failure::new("the reader thread broke down"))?;
        // Where both sides failed, the builder's failure is the cause: the reader only lost its taker.
        let at_output = |failure: Failure| failure.within(path.display());
        let (built, columns) = (built.map_err(at_output)?, columns?);
        if built.num_docs == 0 && !self.allow_empty {
            return Err(Failure::new(
                "the inputs hold no document; pass --allow-empty to write an empty corpus",
            ));
        }
        let (parquet, notes) = match columns {
            Some(StoredColumns { parquet, notes }) => (Some(parquet), notes),
            None => (None, Vec::new()),
        };
        let (writer, report) =
            built.builder.finish(parquet).map_err(|error| at_output(error.into()))?;
        let output = writer.into_inner().map_err(|error| {
            Failure::with_cause(format!("{}: cannot write", path.display()), error.error())
        })?;
        output.persist()?;
        let timing = Timing { elapsed: start.elapsed(), waited: built.waited };
        Ok(summary(path, &report, &timing, &notes))
    }
}

/// A builder that has taken all documents.
struct Built {
    builder: CorpusBuilder<BufWriter<Output>>,
    num_docs: u64,
    /// Time in which the builder had nothing to do.
    waited: Duration,
}

fn build(
    mut builder: CorpusBuilder<BufWriter<Output>>,
    batches: Receiver<Batch>,
    mut progress: Progress,
) -> Outcome<Built> {
    let mut num_docs = 0;
    let mut waited = Duration::ZERO;
    loop {
        let asked = Instant::now();
        let Ok(batch) = batches.recv() else { break };
        waited += asked.elapsed();
        for (path, text) in batch.iter() {
            builder.push_document(path, text)?;
        }
        num_docs += batch.documents.len() as u64;
        progress.advance(batch.read_bytes, num_docs);
    }
    Ok(Built { builder, num_docs, waited })
}

struct Sender(SyncSender<Batch>);

impl Sink for Sender {
    fn take(&mut self, batch: Batch) -> Outcome {
        debug_assert!(batch.documents.len() <= 1 || batch.text.len() < 2 * BATCH_BYTES);
        self.0.send(batch).map_err(|_| Failure::new("the builder has stopped"))
    }
}

struct Timing {
    elapsed: Duration,
    waited: Duration,
}

/// What was done, in two lines: sizes, then times.
fn summary(path: &Path, report: &IngestReport, timing: &Timing, notes: &[String]) -> String {
    let footer = &report.footer;
    let (text_bytes, file_bytes) = (footer.len_bytes(), report.file_len_bytes);
    let reuse = match footer.num_tokens() {
        0 => String::new(),
        tokens => format!(", G/N {:.3}", footer.num_elements() as f64 / tokens as f64),
    };
    let bound = match timing.waited * 2 > timing.elapsed {
        true => "reading",
        false => "building",
    };
    let mut lines: Vec<String> = notes.iter().map(|note| format!("note: {note}")).collect();
    lines.push(format!(
        "{}: {}, {} of text in {} ({}){reuse}",
        path.display(),
        display::plural(footer.num_docs(), "document"),
        display::bytes(text_bytes),
        display::bytes(file_bytes),
        display::percent(file_bytes, text_bytes),
    ));
    lines.push(format!(
        "{}, {}, bound by {bound}: waiting for input {}, tokens {}, grammar {}, writing {}",
        display::seconds(timing.elapsed),
        display::rate(text_bytes, timing.elapsed),
        display::seconds(timing.waited),
        display::seconds(report.tokenizing),
        display::seconds(report.grammar),
        display::seconds(report.writing),
    ));
    lines.join("\n")
}
