//! `tadoc ingest`: compresses text into one corpus, or adds documents to a living corpus.
//!
//! ```text
//! reader thread: inputs ─▶ documents ─▶ batches ──bounded channel──▶ CorpusBuilder ─▶ Output
//!                                      (columns stay with the reader      │
//!                                       and are stored last)              └ --append ─▶ a part of
//!                                                                     a living corpus, one commit
//! ```

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use tadoc::Error;
use tadoc::build::{BuilderKind, CorpusBuilder, IngestOptions, IngestReport};
use tadoc::format::SegmentLayout;
use tadoc::text::TokenizerProfile;
use tadoc_store::{Change, CommitKind, PartWriter, RECOMPRESS_RATIO};

use crate::columns::StoredColumns;
use crate::documents::{
    self, ArchiveOptions, Batch, Counts, Documents, ExpansionLimits, ReadOptions, Sink,
};
use crate::failure::{Failure, Outcome};
use crate::inputs::{self, Filter, Input};
use crate::living::{Living, parse_share};
use crate::location::{check_living_location, is_living_folder, local_path};
use crate::machine::Machine;
use crate::output::{Output, note};
use crate::pattern::Pattern;
use crate::progress::Progress;
use crate::{display, interrupt};

/// Maximum number of batches that wait between reader and builder.
const WAITING_BATCHES: usize = 4;
/// Time after which a builder without input checks for an interrupt.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Compress text into a corpus
///
/// Reads files, folders (recursively, without hidden files and symbolic links), globs, or standard
/// input (`-`), on this machine and behind URLs (s3://, gs://, http://). Files compressed with gzip
/// or zstd are decompressed. Any bytes are accepted, and they are returned exactly.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Files, folders, globs (in quotes), URLs of these, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// The corpus to write, such as notes.tadoc or s3://bucket/notes.tadoc; with --append a folder
    /// or URL, such as notes/
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Add the documents to the living corpus at FILE, which is created if it does not exist
    ///
    /// A living corpus is a folder, or a URL of an object store, whose documents can be added and
    /// edited (tadoc edit). All documents of an ingest appear at once, in one new version.
    #[arg(long, conflicts_with = "force")]
    append: bool,

    /// With --append: compress the corpus anew once its edits exceed this share of its bytes (and
    /// 1 MiB), or once 64 small files lie side by side; 0 means never
    #[arg(long, requires = "append", default_value_t = RECOMPRESS_RATIO, value_name = "SHARE",
          value_parser = parse_share)]
    recompress_ratio: f64,

    /// From folders and archives, take only files that match this glob (may be given several times)
    ///
    /// A pattern without a slash is matched against file names. A pattern with a slash is matched
    /// against the path inside the folder. `*` and `?` stay inside one component, `**` does not;
    /// `{a,b}` and `[abc]` work as in a shell.
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new)]
    glob: Vec<Pattern>,

    /// The unit that becomes one document: files, lines, jsonl:FIELD, csv:COLUMN or parquet:COLUMN
    ///
    /// files: a whole file; its path is relative to the given folder. If several paths are given,
    /// the folder's name stands in front.
    /// lines: a line without its line end (\n is not part of the document, \r is); its path is the
    /// path of the file.
    /// jsonl, csv, parquet: a row; for jsonl also an element of an array. The column named after the
    /// colon is the text, a column called `path` is the path, all others become columns of the table
    /// (CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 'FILE').
    #[arg(long, default_value = "files", value_name = "KIND", verbatim_doc_comment)]
    documents: Documents,

    /// Tokenizer that finds words: word (runs of letters, digits and _), uax29 or whitespace
    /// [default: word, or that of the living corpus]
    #[arg(long, value_name = "NAME", verbatim_doc_comment)]
    tokenizer: Option<TokenizerProfile>,

    /// Builder of the grammar: rounds (fast, parallel) or sequitur (the published baseline)
    #[arg(long, default_value = "rounds", value_name = "NAME")]
    builder: BuilderKind,

    /// Layout of the file: small, or fast (opens faster, 1.1 to 1.7 times as large)
    #[arg(long, default_value = "small", value_name = "NAME")]
    layout: SegmentLayout,

    /// Amount of text that is compressed together; memory grows with it. A statement decodes a block
    /// whole: with --layout fast, blocks of 16MiB open several times faster. They cost 1 % of size,
    /// or half as much again for revisions that lie more than a block apart
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = display::parse_size)]
    block_size: u64,

    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    #[command(flatten)]
    machine: Machine,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Store rows whose text is missing or null as empty documents, instead of an error
    #[arg(long)]
    allow_missing: bool,

    /// Write a corpus even without any file or document (always so for standard input)
    #[arg(long)]
    allow_empty: bool,

    /// Follow symbolic links inside folders
    ///
    /// Without this option, links inside folders are skipped and counted: a folder gives only its
    /// own contents. A link that is named on the command line is always followed. A link back to a
    /// folder on the current path is not followed.
    #[arg(long)]
    follow_links: bool,

    /// Keep only text and path of rows
    #[arg(long)]
    no_columns: bool,

    /// Maximum size of a row of JSON lines, CSV or Parquet, which is held in memory; files and
    /// lines may have any length
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = display::parse_size)]
    max_row_size: u64,

    /// Store compressed files and archives as they are
    ///
    /// Without this option, files compressed by gzip, zstd, bzip2, xz, lzip or lz4 are decompressed, and
    /// members of tar and zip archives (.tar.gz, .jar, .whl, .epub, .docx and so on) become documents of
    /// their own. Files packed by compress, 7z and rar are stored packed, with a warning.
    #[arg(long)]
    no_decompress: bool,

    /// Maximum number of archives that lie in each other
    #[arg(long, default_value_t = ArchiveOptions::MAX_DEPTH, value_name = "N")]
    max_depth: u32,

    /// Maximum number of members of an archive, with those of archives in it
    #[arg(long, default_value_t = ArchiveOptions::MAX_MEMBERS, value_name = "N")]
    max_members: u64,

    /// Maximum number of bytes that one byte of a compressed file may expand to; the first 64 MiB
    /// are always allowed
    #[arg(long, default_value_t = ExpansionLimits::DEFAULT.max_ratio, value_name = "RATIO",
          value_parser = clap::value_parser!(u64).range(1..))]
    max_expansion: u64,

    /// Maximum total size that a compressed file or an archive may expand to
    #[arg(long, default_value = "256GiB", value_name = "SIZE", value_parser = display::parse_size)]
    max_expanded_size: u64,

    /// Maximum memory for the window of a zstd, xz or lzip file (zstd --long=31 takes 2GiB)
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = display::parse_size)]
    max_window: u64,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  tadoc ingest notes/ -o notes.tadoc
  tadoc ingest src docs --glob '*.rs' --glob '*.md' -o source.tadoc
  tadoc ingest 'logs/**/*.log.gz' --documents lines -o logs.tadoc
  tadoc ingest linux-6.1.tar.xz --glob '*.[ch]' -o linux.tadoc     members become documents
  tadoc ingest tickets.jsonl --documents jsonl:body -o tickets.tadoc
  tadoc ingest s3://bucket/mail --glob '*.eml' -o s3://bucket/mail.tadoc
  tadoc ingest mail.parquet --documents parquet:text -o mail.tadoc --force
  journalctl | tadoc ingest - --documents lines -o journal.tadoc
  tadoc ingest today/ -o notes/ --append      adds to the living corpus in the folder notes

The output appears under its name when it is complete and on disk; on an error or Ctrl-C nothing is
left behind, and what a kill leaves, the next ingest there removes. A living corpus is at its old version
or at the new one.

Exit status: 0 done, 1 failed, 2 usage, 130 interrupted.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if let Some(num_threads) = arguments.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads.into()).build_global();
        pool.map_err(|error| Failure::with_cause("starting threads", &error))?;
    }
    let mut job = arguments.job();
    let filter = arguments.filter();
    let summary = match arguments.append {
        true => {
            check_living_location(&arguments.output)?;
            let found = inputs::collect(&arguments.paths, &filter)?;
            job.notes = found.skipped.notes();
            return append(job, found.inputs, arguments);
        }
        false => {
            refuse_folder(&arguments.output, &arguments.paths)?;
            let output = Output::create(&arguments.output, arguments.force)?;
            let found = inputs::collect(&arguments.paths, &filter)?;
            job.notes = found.skipped.notes();
            job.run(&found.inputs, output, &arguments.output)?
        }
    };
    if !arguments.quiet {
        note(summary);
    }
    Ok(())
}

/// Refuses an output that is a folder or names one. Living corpora are checked later.
fn refuse_folder(output: &Path, inputs: &[PathBuf]) -> Outcome {
    let shown = display::path(output);
    if !(shown.ends_with('/') || output.is_dir()) || is_living_folder(output) {
        return Ok(());
    }
    let example = display::path(&output.join(corpus_name(inputs)));
    Err(Failure::new(if output.is_dir() {
        format!(
            "{shown} is a folder; name a file, such as -o {example}, or pass --append with a new or \
             empty folder for a living corpus"
        )
    } else if let file = shown.trim_end_matches('/')
        && Path::new(file).is_file()
    {
        format!(
            "{shown} names a folder, and {file} is a file; name another file, or pass -o {file} --force"
        )
    } else {
        format!(
            "{shown} names a folder, and a folder is a living corpus; pass --append to begin one \
             there, or name a file, such as -o {example}"
        )
    }))
}

/// Returns a file name for a corpus of `inputs`: that of the only input, if it has a plain one.
fn corpus_name(inputs: &[PathBuf]) -> String {
    let stem = match inputs {
        [input] => input.file_stem().and_then(|stem| stem.to_str()),
        _ => None,
    };
    let is_plain = |stem: &&str| !stem.contains(['*', '?', '[', '{']) && *stem != "-";
    format!("{}.tadoc", stem.filter(is_plain).unwrap_or("corpus"))
}

impl Arguments {
    fn job(&self) -> Job {
        Job {
            options: self.options(),
            documents: self.documents.clone(),
            read: ReadOptions {
                decompress: !self.no_decompress,
                expansion: ExpansionLimits {
                    max_ratio: self.max_expansion,
                    max_bytes: self.max_expanded_size,
                    max_window_bytes: self.max_window,
                },
                max_row_bytes: self.max_row_size,
                allow_missing: self.allow_missing,
                keep_columns: !self.no_columns,
            },
            archives: ArchiveOptions {
                is_opened: !self.no_decompress,
                globs: self.glob.clone(),
                max_depth: self.max_depth,
                max_members: self.max_members,
            },
            machine: self.machine.clone(),
            allow_empty: self.allow_empty || self.paths.iter().any(|path| is_stdin(path)),
            quiet: self.quiet,
            notes: Vec::new(),
        }
    }

    fn filter(&self) -> Filter {
        Filter {
            patterns: self.glob.clone(),
            skip: match local_path(&self.output) {
                Ok(Some(path)) => path.canonicalize().ok(),
                _ => Some(self.output.clone()),
            },
            follow_links: self.follow_links,
            may_be_empty: self.allow_empty,
        }
    }

    fn options(&self) -> IngestOptions {
        IngestOptions {
            profile: self.tokenizer.unwrap_or_default(),
            builder: self.builder,
            layout: self.layout,
            block_bytes: usize::try_from(self.block_size).unwrap_or(usize::MAX),
            ..IngestOptions::default()
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// One ingest, from any subcommand.
pub struct Job {
    /// Options of the library.
    pub options: IngestOptions,
    /// The unit that becomes one document.
    pub documents: Documents,
    /// Options for reading inputs.
    pub read: ReadOptions,
    /// Options for archives among the inputs.
    pub archives: ArchiveOptions,
    /// Options for the machine.
    pub machine: Machine,
    /// If true, a corpus without documents is written.
    pub allow_empty: bool,
    /// If true, nothing is printed.
    pub quiet: bool,
    /// Notes that the summary repeats.
    pub notes: Vec<String>,
}

impl Job {
    /// Reads `inputs`, writes `output` and makes it visible. Returns a summary in words.
    pub fn run(&self, inputs: &[Input], output: Output, path: &Path) -> Outcome<String> {
        let (writer, done) = self.write(inputs, BufWriter::new(output), &display::path(path))?;
        let output = writer.into_inner().map_err(|error| {
            Failure::with_cause(format!("{}: cannot write", display::path(path)), error.error())
        })?;
        output.persist()?;
        Ok(done.summary(&display::path(path)))
    }

    /// Reads `inputs` and writes a corpus file to `out`. Messages call it `name`.
    fn write<W: Write>(&self, inputs: &[Input], out: W, name: &str) -> Outcome<(W, Done)> {
        let start = Instant::now();
        let total_bytes = inputs.iter().map(|input| input.len_bytes).sum();
        let is_sized = inputs.iter().all(|input| input.len_bytes > 0);
        let progress = Progress::new(if is_sized { total_bytes } else { 0 }, self.quiet);
        let builder = self.machine.equip(CorpusBuilder::new(out, self.options)?)?;
        let (sender, receiver) = sync_channel(WAITING_BATCHES);
        let (inputs, documents, read) = (inputs.to_vec(), self.documents.clone(), self.read);
        let archives = self.archives.clone();
        // If the builder fails, the reader is not joined, as it may wait for input that never
        // comes.
        let reader = thread::spawn(move || {
            documents::read(&inputs, &documents, read, &archives, &mut Sender(sender))
        });
        let at_output = |failure: Failure| failure.within(name);
        let built = build(builder, receiver, progress).map_err(at_output)?;
        let read = reader.join().map_err(|_| Failure::new("the reader thread broke down"))??;
        if built.num_docs == 0 && !self.allow_empty {
            return Err(Failure::new(
                "the inputs hold no document; pass --allow-empty to write an empty corpus",
            ));
        }
        let mut notes: Vec<String> =
            self.notes.iter().map(|note| format!("note: {note}")).collect();
        notes.extend(read.warnings.iter().map(|warning| format!("warning: {warning}")));
        let parquet = read.columns.map(|StoredColumns { parquet, notes: of_columns }| {
            notes.extend(of_columns.iter().map(|note| format!("note: {note}")));
            parquet
        });
        let (out, report) =
            built.builder.finish(parquet).map_err(|error| at_output(error.into()))?;
        let (read_bytes, waited) = (built.read_bytes, built.waited);
        Ok((out, Done { report, notes, start, read_bytes, waited }))
    }
}

/// Adds the documents of `inputs` to the living corpus in one commit, and prints a summary.
fn append(mut job: Job, inputs: Vec<Input>, arguments: &Arguments) -> Outcome {
    interrupt::ask_first();
    let living = Living::open_or_create(&arguments.output, arguments.tokenizer)?;
    let say = |text: String| {
        if !arguments.quiet {
            note(text);
        }
    };
    let name = living.store.location();
    job.options.profile = living.store.profile();
    let (base, ingest) = (living.version(None)?, job.options);
    let outcome = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&outcome);
    let file = name.clone();
    let write = move |out: &mut PartWriter| {
        let written = job.write(&inputs, out, &file).map(|(_, done)| done);
        let footer = match &written {
            Ok(done) if done.report.footer.num_docs() > 0 => Ok(done.report.footer.clone()),
            // Any error ends the file. The real reason is in `kept`.
            _ => Err(Error::Cancelled),
        };
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
        footer
    };
    let written = living.store.write_part(write);
    let written = living.wait(async { Ok(written.await) })?;
    let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (part, done) = match (written, outcome) {
        (Ok(part), Some(Ok(done))) => (part, done),
        (Err(Error::Cancelled), Some(Ok(done))) => {
            say(format!("{name}: nothing to add\n{}", done.times()));
            return Ok(());
        }
        (Err(Error::Cancelled), Some(Err(failure))) => return Err(failure),
        (Err(error), _) => return Err(error.into()),
        (Ok(_), _) => return Err(Failure::new("the builder broke down")),
    };
    if interrupt::is_asked() {
        return Err(Failure::interrupted());
    }
    let change = Change::append(CommitKind::Append, &[part]);
    let version = living.wait(living.store.commit(&base, &change))?;
    say(done.summary(&format!("{name}: version {}", version.number)));
    if let Some(done) = living.recompress(&version, arguments.recompress_ratio, ingest) {
        say(done);
    }
    Ok(())
}

/// A builder that has taken all documents.
struct Built<W: Write> {
    builder: CorpusBuilder<W>,
    num_docs: u64,
    /// Bytes of the inputs, after decompression.
    read_bytes: u64,
    /// Time that the builder spent waiting for input.
    waited: Duration,
}

fn build<W: Write>(
    mut builder: CorpusBuilder<W>,
    batches: Receiver<Batch>,
    mut progress: Progress,
) -> Outcome<Built<W>> {
    let mut num_docs = 0;
    let mut read = Counts::default();
    let mut waited = Duration::ZERO;
    loop {
        let asked = Instant::now();
        let batch = batches.recv_timeout(LOOK_UP);
        waited += asked.elapsed();
        if interrupt::is_asked() {
            return Err(Failure::interrupted());
        }
        let batch = match batch {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        for part in batch.iter() {
            builder.push_part(part.path, part.text, part.is_last)?;
            num_docs += u64::from(part.is_last);
        }
        read += batch.read;
        progress.advance(batch.read.disk_bytes, num_docs);
    }
    Ok(Built { builder, num_docs, read_bytes: read.text_bytes, waited })
}

struct Sender(SyncSender<Batch>);

impl Sink for Sender {
    fn take(&mut self, batch: Batch) -> Outcome {
        self.0.send(batch).map_err(|_| Failure::new("the builder has stopped"))
    }
}

/// A corpus file that was written.
struct Done {
    report: IngestReport,
    notes: Vec<String>,
    start: Instant,
    /// Bytes of the inputs, after decompression.
    read_bytes: u64,
    /// Time that the builder spent waiting for input.
    waited: Duration,
}

impl Done {
    /// Formats the result in two lines: the sizes of the corpus `name`, then the times.
    ///
    /// Ratio and rate refer to all bytes read. For rows, these are more than the bytes of the text.
    fn summary(&self, name: &str) -> String {
        let footer = &self.report.footer;
        let (text_bytes, file_bytes) = (footer.len_bytes(), self.report.file_len_bytes);
        let read = match self.read_bytes == text_bytes {
            true => String::new(),
            false => format!(" from {} read,", display::bytes(self.read_bytes)),
        };
        let reuse = match footer.num_tokens() {
            0 => String::new(),
            tokens => format!(", G/N {:.3}", footer.num_elements() as f64 / tokens as f64),
        };
        let mut lines = self.notes.clone();
        lines.push(format!(
            "{name}: {}, {} of text{read} in {} ({}){reuse}",
            display::plural(footer.num_docs(), "document"),
            display::bytes(text_bytes),
            display::bytes(file_bytes),
            display::percent(file_bytes, self.read_bytes),
        ));
        lines.push(self.times());
        lines.join("\n")
    }

    fn times(&self) -> String {
        let elapsed = self.start.elapsed();
        let bound = match self.waited * 2 > elapsed {
            true => "reading",
            false => "building",
        };
        format!(
            "{}, {}, bound by {bound}: waiting for input {}, tokens {}, grammar {}, writing {}",
            display::seconds(elapsed),
            display::rate(self.read_bytes, elapsed),
            display::seconds(self.waited),
            display::seconds(self.report.tokenizing),
            display::seconds(self.report.grammar),
            display::seconds(self.report.writing),
        )
    }
}
