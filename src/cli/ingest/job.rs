//! One ingest: a thread reads inputs, and a builder makes a corpus file of their documents.
//!
//! ```text
//! reader thread: inputs ─▶ documents ─▶ batches ──bounded channel──▶ CorpusBuilder ─▶ bytes
//!                                      (columns stay with the reader
//!                                       and are stored last)
//!
//! batch [ a | m.tar/x | m.tar/y | b ]   left out: m.tar/x  ─▶  [ a | m.tar/y | b ]
//! ```
//!
//! The number of blocks that are built side by side is an option for the machine, and so are workers that build them.
//! The written file does not depend on either. A progress bar shows on a terminal after two seconds of work.
//!
//! Documents that the corpus has already are read and not stored ([`DocumentFilter`]). A document is known by
//! its path, and by its number among the documents of this path: an archive may have two members of one name.

use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use datafusion::arrow::datatypes::SchemaRef;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tadoc::build::{
    CorpusBuilder, IngestOptions, IngestReport, MAX_BLOCKS_AT_ONCE, RemoteBuilder, usual_blocks_at_once,
};
use tadoc::error::contain_panics;
use tadoc_documents as documents;
use tadoc_documents::{ArchiveOptions, Batch, Counts, Division, Input, Read, ReadOptions, Sink, display};
use tadoc_session::{Failure, Outcome, STACK_BYTES, interrupt, note};

use crate::columns::{Columns, StoredColumns};
use crate::output::Output;
use crate::taken::TakenPaths;

/// Maximum number of batches that wait between reader and builder.
const WAITING_BATCHES: usize = 4;
/// Bytes of each batch that are looked at for scripts without blanks.
const SAMPLE_BYTES: usize = 64 << 10;
/// Characters in a row of a script without blanks, which are several words.
const UNSPACED_CHARS: usize = 4;
/// Time after which a builder without input checks for an interrupt.
const LOOK_UP: Duration = Duration::from_millis(100);

/// One ingest, from any subcommand.
#[derive(Clone)]
pub struct Job {
    /// Options of the library.
    pub options: IngestOptions,
    /// The division of inputs into documents.
    pub division: Division,
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
    /// If true, Ctrl-C ends the ingest.
    pub heeds_interrupts: bool,
    /// Notes that the summary repeats.
    pub notes: Vec<String>,
    /// Paths that no document may have.
    pub taken: Option<Arc<TakenPaths>>,
    /// Documents that are read and not stored.
    pub filter: Option<Arc<Mutex<DocumentFilter>>>,
    /// Workers that build segments.
    pub remote: Option<Arc<dyn RemoteBuilder>>,
}

impl Job {
    /// Reads `inputs`, writes `output` and makes it visible. Returns a summary in words.
    pub fn run(&self, inputs: &[Input], output: Output, path: &Path) -> Outcome<String> {
        let (writer, done) = self.write(inputs, BufWriter::new(output), &display::path(path))?;
        let output = writer
            .into_inner()
            .map_err(|error| Failure::with_cause(format!("{}: cannot write", display::path(path)), error.error()))?;
        output.persist()?;
        Ok(done.summary(&display::path(path)))
    }

    /// Reads `inputs` and writes a corpus file to `out`. Messages call it `name`.
    pub fn write<W: Write>(&self, inputs: &[Input], out: W, name: &str) -> Outcome<(W, Done)> {
        let start = Instant::now();
        let total_bytes = inputs.iter().map(|input| input.len_bytes).sum();
        let is_sized = inputs.iter().all(|input| input.len_bytes > 0);
        let progress = Progress::new(if is_sized { total_bytes } else { 0 }, self.quiet);
        let mut builder = self.machine.equip(CorpusBuilder::new(out, self.options)?);
        if let Some(remote) = &self.remote {
            builder = builder.with_remote(Arc::clone(remote));
        }
        let (sender, receiver) = sync_channel(WAITING_BATCHES);
        let inputs = inputs.to_vec();
        let division = self.division.clone();
        let read = self.read;
        let archives = self.archives.clone();
        let filter = self.filter.clone();
        // If the builder fails, the reader is not joined, as it may wait for input that never
        // comes.
        let reading = move || -> Outcome<(Read, Option<StoredColumns>)> {
            let mut columns = Columns::for_documents(&division.documents);
            let sink = &mut Sender { batches: sender, filter };
            let read = documents::read(&inputs, &division, read, &archives, &mut columns, sink)?;
            Ok((read, contain_panics("storing columns", || columns.into_parquet())??))
        };
        // Values of documents may be deep.
        let reader = thread::Builder::new().stack_size(STACK_BYTES).spawn(reading);
        let reader = reader.map_err(|error| Failure::with_cause("starting a thread", &error))?;
        let at_output = |failure: Failure| failure.within(name);
        let built = self.build(builder, receiver, progress).map_err(at_output)?;
        let (read, columns) = reader.join().map_err(|_| Failure::new("the reader thread broke down"))??;
        for fault in read.faults {
            note(format!("warning: {}", Failure::new(fault).into_text()));
        }
        if built.num_docs == 0 && !self.allow_empty {
            return Err(Failure::new("the inputs hold no document; pass --allow-empty to write an empty corpus"));
        }
        let mut notes: Vec<String> = self.notes.iter().map(|note| format!("note: {note}")).collect();
        notes.extend(read.warnings.iter().map(|warning| format!("warning: {warning}")));
        notes.extend(read.notes.iter().map(|note| format!("note: {note}")));
        notes.extend(built.unspaced.map(|path| {
            format!(
                "note: texts in Chinese, Japanese, Thai or the like ({}): the tokenizer {} takes what stands between \
                 blanks for one word, so their words are not found; --tokenizer auto cuts them",
                display::plain(&path),
                self.options.profile
            )
        }));
        let (parquet, schema) = columns
            .map(|StoredColumns { parquet, schema, notes: of_columns }| {
                notes.extend(of_columns.iter().map(|note| format!("note: {note}")));
                (parquet, schema)
            })
            .unzip();
        let (out, report) = built.builder.finish(parquet).map_err(|error| at_output(error.into()))?;
        let read_bytes = built.read_bytes;
        let waited = built.waited;
        Ok((out, Done { report, schema, notes, start, read_bytes, waited }))
    }

    fn build<W: Write>(
        &self,
        mut builder: CorpusBuilder<W>,
        batches: Receiver<Batch>,
        mut progress: Progress,
    ) -> Outcome<Built<W>> {
        let mut num_docs = 0;
        let mut read = Counts::default();
        let mut waited = Duration::ZERO;
        let mut last_path = String::new();
        let mut unspaced = None;
        loop {
            let asked = Instant::now();
            let batch = batches.recv_timeout(LOOK_UP);
            waited += asked.elapsed();
            if self.heeds_interrupts && interrupt::is_asked() {
                return Err(Failure::interrupted());
            }
            let batch = match batch {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if unspaced.is_none() && !self.options.profile.words_can_touch() {
                unspaced = unspaced_path(&batch);
            }
            for part in batch.iter() {
                // Lines of one file have one path.
                if let Some(taken) = self.taken.as_ref().filter(|_| part.path != last_path) {
                    taken.check_document(part.path)?;
                    part.path.clone_into(&mut last_path);
                }
                builder.push_part(part.path, part.text, part.is_last)?;
                num_docs += u64::from(part.is_last);
            }
            read += batch.read;
            progress.advance(batch.read.disk_bytes, num_docs);
        }
        Ok(Built { builder, num_docs, unspaced, read_bytes: read.text_bytes, waited })
    }
}

/// Returns the path of the document at the first words of `batch` without blanks between them, if it begins with such
/// texts.
fn unspaced_path(batch: &Batch) -> Option<String> {
    let sample = batch.text.get(..SAMPLE_BYTES).unwrap_or(&batch.text);
    if sample.is_ascii() {
        return None;
    }
    let mut len = 0;
    let mut num_in_row = 0;
    for chunk in sample.utf8_chunks() {
        for character in chunk.valid().chars() {
            num_in_row = if is_unspaced(character) { num_in_row + 1 } else { 0 };
            len += character.len_utf8();
            if num_in_row == UNSPACED_CHARS {
                let document = batch.documents.iter().find(|(_, end)| *end >= len);
                return document.map(|(path, _)| path.to_string());
            }
        }
        num_in_row = if chunk.invalid().is_empty() { num_in_row } else { 0 };
        len += chunk.invalid().len();
    }
    None
}

/// Returns true for characters of scripts that put no blanks between words: Thai, Lao, Burmese, Khmer, kana and
/// ideographs.
fn is_unspaced(character: char) -> bool {
    matches!(
        character,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// A builder that has taken all documents.
struct Built<W: Write> {
    builder: CorpusBuilder<W>,
    num_docs: u64,
    /// Path of a text without blanks between words, if the tokenizer needs them.
    unspaced: Option<String>,
    /// Bytes of the inputs, after decompression.
    read_bytes: u64,
    /// Time that the builder spent waiting for input.
    waited: Duration,
}

struct Sender {
    batches: SyncSender<Batch>,
    filter: Option<Arc<Mutex<DocumentFilter>>>,
}

impl Sink for Sender {
    fn take(&mut self, batch: Batch) -> documents::Outcome {
        let batch = match &self.filter {
            Some(filter) => filter.lock().unwrap_or_else(PoisonError::into_inner).apply(batch),
            None => batch,
        };
        let sent = self.batches.send(batch);
        sent.map_err(|_| documents::Failure::new("the builder has stopped"))
    }
}

/// A corpus file that was written.
pub struct Done {
    /// Sizes of the file, and times.
    pub report: IngestReport,
    /// User columns, if there are any.
    pub schema: Option<SchemaRef>,
    notes: Vec<String>,
    start: Instant,
    /// Bytes of the inputs, after decompression.
    read_bytes: u64,
    /// Time that the builder spent waiting for input.
    waited: Duration,
}

impl Done {
    /// Returns the notes and warnings about the inputs.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Formats the result: notes, the sizes of the corpus `name`, then the times.
    pub fn summary(&self, name: &str) -> String {
        let mut lines = self.notes.clone();
        lines.push(self.sizes(name));
        lines.push(self.times());
        lines.join("\n")
    }

    /// Formats the sizes of the corpus `name`.
    ///
    /// Ratio and rate refer to all bytes read. For rows, these are more than the bytes of the text.
    pub fn sizes(&self, name: &str) -> String {
        let footer = &self.report.footer;
        let text_bytes = footer.len_bytes();
        let file_bytes = self.report.file_len_bytes;
        let read = if self.read_bytes == text_bytes {
            String::new()
        } else {
            format!(" from {} read,", display::bytes(self.read_bytes))
        };
        let reuse = match footer.num_tokens() {
            0 => String::new(),
            tokens => format!(", G/N {:.3}", footer.num_elements() as f64 / tokens as f64),
        };
        format!(
            "{name}: {}, {} of text{read} in {} ({}){reuse}",
            display::plural(footer.num_docs(), "document"),
            display::bytes(text_bytes),
            display::bytes(file_bytes),
            display::percent(file_bytes, self.read_bytes),
        )
    }

    /// Formats the times.
    pub fn times(&self) -> String {
        let elapsed = self.start.elapsed();
        let bound = if self.waited * 2 > elapsed { "reading" } else { "building" };
        let by_workers = match self.report.num_remote {
            0 => String::new(),
            num => format!(
                ", {num} of {} by workers",
                display::plural(self.report.footer.segments.len() as u64, "segment")
            ),
        };
        format!(
            "{}, {}, bound by {bound}: waiting for input {}, tokens {}, grammar {}, writing {}{by_workers}",
            display::seconds(elapsed),
            display::rate(self.read_bytes, elapsed),
            display::seconds(self.waited),
            display::seconds(self.report.tokenizing),
            display::seconds(self.report.grammar),
            display::seconds(self.report.writing),
        )
    }
}

/// The device that scripts for earlier versions name. All grammars are built on the cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceChoice {
    Auto,
    Cpu,
    Gpu,
}

/// Ingest options for the machine.
#[derive(Debug, Clone, Default, Args)]
pub struct Machine {
    /// Blocks that are built side by side; memory grows with their number [default: one per 4
    /// cores, at most 4]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_BLOCKS_AT_ONCE)))]
    blocks_at_once: Option<u16>,

    /// Is accepted, and changes nothing: the cores build all grammars
    #[arg(long, hide = true, value_name = "WHERE")]
    device: Option<DeviceChoice>,
}

impl Machine {
    /// Applies the options to `builder`.
    pub fn equip<W: Write>(&self, builder: CorpusBuilder<W>) -> CorpusBuilder<W> {
        if self.device == Some(DeviceChoice::Gpu) {
            note("--device gpu: the cores build all grammars; no device is used");
        }
        let at_once = self.blocks_at_once.map_or_else(usual_blocks_at_once, usize::from);
        builder.with_blocks_at_once(at_once)
    }
}

/// Time without a bar, as short work does not need one.
const SHOW_AFTER: Duration = Duration::from_secs(2);

const WITH_TOTAL: &str = "{bar:32} {decimal_bytes}/{decimal_total_bytes} \
                          {decimal_bytes_per_sec}, {eta} left {msg}";
const WITHOUT_TOTAL: &str = "{spinner} {decimal_bytes} {decimal_bytes_per_sec} {msg}";

/// A bar over the bytes of the inputs, counted as stored on disk.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    is_wanted: bool,
}

impl Progress {
    /// Creates a bar that ends at `total_bytes`. If that is 0, the bar only counts.
    pub fn new(total_bytes: u64, quiet: bool) -> Self {
        let bar = match total_bytes {
            0 => ProgressBar::no_length(),
            total => ProgressBar::new(total),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = if total_bytes == 0 { WITHOUT_TOTAL } else { WITH_TOTAL };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, start: Instant::now(), is_wanted: !quiet && stderr().is_terminal() }
    }

    /// Advances the bar by `read_bytes` and shows `num_docs`, the number of documents so far.
    pub fn advance(&mut self, read_bytes: u64, num_docs: u64) {
        self.bar.inc(read_bytes);
        if self.is_wanted && self.start.elapsed() >= SHOW_AFTER {
            self.is_wanted = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            // Building a block may take seconds; the clock continues meanwhile.
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
        self.bar.set_message(tadoc_documents::display::plural(num_docs, "document"));
    }

    /// Removes the bar from the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The numbers of the documents of each path that are left out.
pub type LeftOut = HashMap<Box<str>, HashSet<u32>>;

/// Documents that pass, and those that do not.
#[derive(Debug, Default)]
pub struct DocumentFilter {
    left_out: LeftOut,
    /// Number of the documents so far of each path in `left_out`.
    seen: HashMap<Box<str>, u32>,
    /// Tells of the document that goes on in the next batch if it passes.
    open: Option<bool>,
    /// Paths of the documents that passed.
    passed: Arc<Mutex<Vec<Arc<str>>>>,
}

impl DocumentFilter {
    /// Creates a filter, and returns the list of the paths of documents that will pass.
    pub fn new(left_out: LeftOut) -> (Self, Arc<Mutex<Vec<Arc<str>>>>) {
        let filter = Self { left_out, ..Self::default() };
        let passed = Arc::clone(&filter.passed);
        (filter, passed)
    }

    /// Returns `batch` without the documents that are left out.
    pub fn apply(&mut self, batch: Batch) -> Batch {
        let mut kept = Batch { read: batch.read, ..Batch::default() };
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        for (part, (path, _)) in batch.iter().zip(&batch.documents) {
            let passes = match self.open.take() {
                Some(passes) => passes,
                None => {
                    let passes = passes(&self.left_out, &mut self.seen, part.path);
                    if passes {
                        passed.push(Arc::clone(path));
                    }
                    passes
                }
            };
            if !part.is_last {
                self.open = Some(passes);
            }
            if passes {
                kept.text.extend_from_slice(part.text);
                kept.end_document(path);
                kept.goes_on = !part.is_last;
            }
        }
        kept
    }
}

/// Returns true if the next document of `path` passes.
fn passes(left_out: &LeftOut, seen: &mut HashMap<Box<str>, u32>, path: &str) -> bool {
    let Some(numbers) = left_out.get(path) else { return true };
    let number = seen.entry(path.into()).or_default();
    let passes = !numbers.contains(number);
    *number += 1;
    passes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(documents: &[(&str, &str)], goes_on: bool) -> Batch {
        let mut batch = Batch::default();
        for (path, text) in documents {
            batch.text.extend_from_slice(text.as_bytes());
            batch.end_document(&Arc::from(*path));
        }
        batch.goes_on = goes_on;
        batch
    }

    fn parts(batch: &Batch) -> Vec<(String, String, bool)> {
        let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
        batch.iter().map(|part| (part.path.to_owned(), text(part.text), part.is_last)).collect()
    }

    #[test]
    fn documents_are_left_out_by_path_and_number() {
        let left_out = LeftOut::from([("a".into(), [1].into()), ("b".into(), [0].into())]);
        let (mut filter, passed) = DocumentFilter::new(left_out);
        let first = filter.apply(batch(&[("a", "1"), ("b", "2"), ("a", "3")], true));
        assert_eq!(parts(&first), [("a".into(), "1".into(), true)]);
        let second = filter.apply(batch(&[("a", "4"), ("a", "5"), ("b", "6"), ("c", "7")], true));
        let expected = [("a", "5", true), ("b", "6", true), ("c", "7", false)];
        let expected = expected.map(|(path, text, is_last)| (path.to_owned(), text.to_owned(), is_last));
        assert_eq!(parts(&second), expected);
        let third = filter.apply(batch(&[("c", "8"), ("d", "")], false));
        assert_eq!(parts(&third), [("c".into(), "8".into(), true), ("d".into(), String::new(), true)]);
        let passed: Vec<String> = passed.lock().unwrap().iter().map(|path| path.to_string()).collect();
        assert_eq!(passed, ["a", "a", "b", "c", "d"]);
    }
}
