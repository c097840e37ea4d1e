//! `tadoc grep`: writes the lines of documents that match a regular expression, as ripgrep does.
//!
//! ```text
//! location ─▶ corpora ─▶ documents that may match ─▶ tasks ─▶ lines as text ─▶ output
//!             (chains)   (paths, words)              (cores)  (printer)        in order
//!                                              └──▶ whole texts ─▶ ripgrep's printer ─▶ output
//! ```
//!
//! A line has the number that it has in the text of its path: documents of one path are its lines and records,
//! in order. So the output is that of ripgrep on the files from which the corpus was made.
//!
//! Of several corpora, each path has the location of its corpus in front.
//!
//! Only the segments and documents that may match are opened and decoded. With `-c` and `-l` lines are counted on the
//! grammar and nothing is decoded, and so are those of a phrase, to leave out documents without a line. Memory is that
//! of as many segments as there are cores, and of the text of their tasks. A document that is longer than 16 MiB is
//! written while it is searched. If a path comes back in a later segment after another one, memory is that of all
//! segments that may match.
//!
//! For `--files`, and for documents without a line, [`Paths`] has each path once, in order of its first document. No
//! grammar is read. Memory: O(paths).

mod arguments;
mod chains;
mod printer;
mod search;
mod selection;
mod whole_texts;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, StdoutLock, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use tadoc::Corpus;
use tadoc::format::check_header;
use tadoc::query::{
    LineExpression, LinePattern, MatchingLineCounter, PathTexts, TextPattern, is_any_case_by_smart_case,
};
use tadoc_session::{BlockingResolver, Corpora, CorpusFile, Failure, Outcome, StoredFile};

use self::chains::Counter;
use self::printer::{Format, Printer, Statistics, Style};
use self::search::{Asked, Search};
use self::selection::{Selection, type_list};
use self::whole_texts::{Engine, WholeSearch};
use crate::living::Living;
use crate::ls::Listing;

pub use self::arguments::Arguments;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.type_list && !arguments.files {
        return Ok(io::stdout().write_all(type_list().as_bytes())?);
    }
    if search(arguments).map_err(Failure::for_search)? { Ok(()) } else { Err(Failure::nothing_found()) }
}

/// Returns true if there is a line.
fn search(arguments: &Arguments) -> Outcome<bool> {
    let begun_at = Instant::now();
    let (sources, locations) = arguments.patterns_and_locations()?;
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let style = arguments.style();
    let selection = arguments.filters.selection()?;
    let command = Command { arguments, style: &style, selection: selection.as_ref() };
    let is_any_case = if arguments.smart_case {
        is_any_case_by_smart_case(&sources, arguments.fixed_strings)
    } else {
        arguments.ignore_case
    };
    let expression = LineExpression {
        source: "",
        is_any_case,
        is_literal: arguments.fixed_strings,
        is_word: arguments.word_regexp,
        is_line: arguments.line_regexp,
        is_inverted: arguments.invert_match,
    };
    let way = command.way(&sources, &expression)?;
    let mut output = Output::new(&style, arguments.quiet);
    let resolver = BlockingResolver::new()?;
    let mut statistics = Statistics::default();
    'locations: for location in &locations {
        let explain = |failure| explained(failure, location);
        let corpora = resolver.corpora(location, arguments.version).map_err(explain)?;
        for (name, corpora) in divided(location, corpora, locations.len()) {
            let prefix = name.map_or_else(String::new, |name| format!("{}/", name.trim_end_matches('/')));
            let place = Place { resolver: &resolver, corpora, prefix: &prefix };
            let flow = command.place(&way, place, &mut output, &mut statistics);
            if flow.map_err(explain)?.is_break() {
                break 'locations;
            }
        }
    }
    let shows_summary = style.format == Format::Json && !matches!(way, Way::None);
    output.finish(shows_summary.then(|| statistics.summary(begun_at.elapsed())))
}

/// Divides `corpora`, those at one of `num_locations` locations, into those whose paths are searched together, each
/// with the name in front of its paths. If there are several files, each has its own name: equal paths in them are
/// different texts.
fn divided(location: &Path, corpora: Corpora, num_locations: usize) -> Vec<(Option<String>, Corpora)> {
    match corpora {
        Corpora::Files(files) if files.len() > 1 => {
            let named = |file: StoredFile| (Some(file.file.name().to_owned()), Corpora::Files(vec![file]));
            files.into_iter().map(named).collect()
        }
        corpora => {
            let name = (num_locations > 1).then(|| location.to_string_lossy().into_owned());
            vec![(name, corpora)]
        }
    }
}

/// The way in which the lines are found.
enum Way<'a> {
    /// No line is: only paths are asked for, or nothing can match.
    None,
    Lines(LinePattern),
    WholeTexts(Box<Engine<'a>>),
}

/// Corpora whose paths are searched together.
struct Place<'a> {
    resolver: &'a BlockingResolver,
    corpora: Corpora,
    /// Text in front of each path.
    prefix: &'a str,
}

/// The command with its options.
struct Command<'a> {
    arguments: &'a Arguments,
    style: &'a Style,
    selection: Option<&'a Selection>,
}

impl<'a> Command<'a> {
    fn way(&self, sources: &[&str], expression: &LineExpression<'_>) -> Outcome<Way<'a>> {
        let has_no_line = sources.is_empty() && !expression.is_inverted || self.arguments.max_count == Some(0);
        if self.arguments.files || has_no_line {
            Ok(Way::None)
        } else if self.arguments.needs_whole_texts() {
            Ok(Way::WholeTexts(Box::new(Engine::new(self.arguments, self.style, sources, expression)?)))
        } else {
            Ok(Way::Lines(LinePattern::any_of(sources, expression)?))
        }
    }

    /// Writes what is asked for of a place. Breaks when the output needs no more.
    fn place(
        &self,
        way: &Way<'a>,
        place: Place<'_>,
        output: &mut Output,
        statistics: &mut Statistics,
    ) -> Outcome<ControlFlow<()>> {
        let arguments = self.arguments;
        let style = self.style;
        let selection = self.selection;
        let version = arguments.version;
        let found = arguments.shows_others().then(HashMap::new);
        let (flow, found) = match way {
            Way::None if !arguments.files => return Ok(ControlFlow::Continue(())),
            Way::None => (ControlFlow::Continue(()), Some(HashMap::new())),
            Way::Lines(pattern) => {
                let prefix = place.prefix.to_owned();
                let suffices = arguments.shows_only_counts();
                let is_worth = suffices || arguments.shows_all_lines() && is_phrase(pattern.demands());
                let lines = is_worth.then(|| MatchingLineCounter::new(pattern)).flatten();
                let counter = lines.map(|lines| Counter::new(lines, suffices));
                let options = arguments.options();
                let asked = Asked { pattern, style, options, selection, prefix, counter: counter.as_ref() };
                let mut printer = Printer::new(style, pattern);
                printer.found = found;
                let mut search = Search::new(asked, printer, output);
                let flow = search.corpora(place.resolver, place.corpora.clone(), version)?;
                *statistics += search.statistics();
                (flow, search.into_found())
            }
            Way::WholeTexts(engine) => {
                let nothing = Statistics::default();
                let prefix = place.prefix;
                let mut search =
                    WholeSearch { engine, selection, prefix, output: &mut *output, found, statistics: nothing };
                let flow = search.corpora(place.resolver, place.corpora.clone(), version)?;
                *statistics += search.statistics;
                (flow, search.found)
            }
        };
        let Some(found) = found else { return Ok(flow) };
        let paths = Paths::read(place.resolver, place.corpora, version, selection, place.prefix)?;
        paths.write(style, arguments.files, &found, output)?;
        Ok(if output.is_complete() { ControlFlow::Break(()) } else { flow })
    }
}

/// Returns true if each line has one of several texts of two words or more. Documents often have these words apart.
fn is_phrase(demands: &[Vec<TextPattern>]) -> bool {
    let num_words = |text: &String| text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count();
    let has_phrase = |pattern: &TextPattern| pattern.fragments.iter().any(|text| num_words(text) > 1);
    demands.iter().any(|patterns| patterns.iter().all(has_phrase))
}

/// A search through corpora. Each call breaks when the output needs no more.
pub trait CorpusSearch {
    /// Writes the lines of a corpus that is all there is.
    ///
    /// # Errors
    /// The corpus is damaged, or the output cannot be written.
    fn whole_corpus(&mut self, corpus: &Corpus, texts: PathTexts) -> Outcome<ControlFlow<()>>;

    /// Writes the lines of a file.
    ///
    /// # Errors
    /// As [`corpora`](Self::corpora).
    fn file(&mut self, file: &CorpusFile) -> Outcome<ControlFlow<()>>;

    /// Writes the lines of `corpora`.
    ///
    /// # Errors
    /// They cannot be read, or they are damaged.
    fn corpora(
        &mut self,
        resolver: &BlockingResolver,
        corpora: Corpora,
        version: Option<u64>,
    ) -> Outcome<ControlFlow<()>> {
        match corpora {
            Corpora::Living(store) => {
                let living = Living { store, resolver: resolver.clone() };
                let living = living.corpus(&living.version(version)?)?;
                let corpus = living.snapshot()?;
                let texts = PathTexts::without(&corpus, &|doc_id| living.is_dropped(doc_id));
                self.whole_corpus(&corpus, texts)
            }
            Corpora::Files(files) => {
                for file in files {
                    if self.file(&file.open()?)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

/// The paths of a corpus.
pub struct Paths<'a> {
    listing: Listing,
    selection: Option<&'a Selection>,
    /// Text in front of each path.
    prefix: &'a str,
}

impl<'a> Paths<'a> {
    /// Reads the paths of `corpora`.
    ///
    /// # Errors
    /// They cannot be read, or they are damaged.
    pub fn read(
        resolver: &BlockingResolver,
        corpora: Corpora,
        version: Option<u64>,
        selection: Option<&'a Selection>,
        prefix: &'a str,
    ) -> Outcome<Self> {
        Ok(Self { listing: Listing::from_corpora(resolver, corpora, version)?, selection, prefix })
    }

    /// Writes the paths of texts without a line, all paths if `is_listing`, or counts of all texts. The output for
    /// those that have a line is `found`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(
        &self,
        style: &Style,
        is_listing: bool,
        found: &HashMap<String, Vec<u8>>,
        output: &mut Output,
    ) -> Outcome {
        let shows_counts = style.format == Format::Counts && !is_listing;
        let mut seen: HashSet<Box<str>> = HashSet::new();
        self.listing.for_each(&mut |document| {
            let is_left_out = self.selection.is_some_and(|selection| !selection.chooses(document.path));
            if seen.contains(document.path) || is_left_out || output.is_complete() {
                return Ok(());
            }
            seen.insert(document.path.into());
            let path = style.shown(&format!("{}{}", self.prefix, document.path));
            let mut text = Vec::new();
            match found.get(&path) {
                Some(counted) if shows_counts => output.write(counted, true),
                Some(_) => Ok(()),
                None if shows_counts => {
                    style.push_count(&mut text, &path, 0);
                    output.write(&text, false)
                }
                None => {
                    style.push_path_alone(&mut text, &path);
                    output.write(&text, true)
                }
            }
        })
    }
}

/// Standard output.
pub struct Output {
    out: io::BufWriter<StdoutLock<'static>>,
    /// Text between documents. Each begins with it, and it is left out in front of the first.
    separator: &'static str,
    is_empty: bool,
    has_line: bool,
    /// If true, nothing is written, and the first line is enough.
    is_quiet: bool,
}

impl Output {
    pub fn new(style: &Style, is_quiet: bool) -> Self {
        let out = io::BufWriter::new(io::stdout().lock());
        let separator = style.separator();
        Self { out, separator, is_empty: true, has_line: false, is_quiet }
    }

    /// Returns true if more text changes nothing.
    pub fn is_complete(&self) -> bool {
        self.is_quiet && self.has_line
    }

    /// Writes `text`, which has a line that was looked for if `has_line` is true.
    pub fn write(&mut self, text: &[u8], has_line: bool) -> Outcome {
        let text = if self.is_empty { text.strip_prefix(self.separator.as_bytes()).unwrap_or(text) } else { text };
        self.is_empty &= text.is_empty();
        self.has_line |= has_line;
        if self.is_quiet {
            return Ok(());
        }
        Ok(self.out.write_all(text)?)
    }

    /// Writes what is left, and `summary`. Returns true if there was a line.
    pub fn finish(mut self, summary: Option<String>) -> Outcome<bool> {
        if let Some(summary) = summary.filter(|_| !self.is_quiet) {
            self.out.write_all(summary.as_bytes())?;
        }
        self.out.flush()?;
        Ok(self.has_line)
    }
}

/// Bytes at the beginning of a corpus file.
const HEADER_BYTES: u64 = 64;

/// Returns `failure` to search `location`, which says more if there are plain files.
pub fn explained(failure: Failure, location: &Path) -> Failure {
    let name = location.display();
    let corpus = match location.file_name() {
        Some(_) => format!("{}.tadoc", name.to_string().trim_end_matches('/')),
        None => "corpus.tadoc".to_owned(),
    };
    if failure.is_damage() && is_plain_file(location) {
        return Failure::new(format!(
            "{name} is no corpus; `tadoc ingest {name} -o {corpus}` makes one of it, and `rg` searches the file itself"
        ));
    }
    let ways =
        format!("`tadoc ingest {name} -o {corpus}` makes a corpus of them, and `rg` searches the files themselves");
    failure.with_way_out("holds no .tadoc file", ways)
}

/// Returns true if the file at `path` does not begin as a corpus.
fn is_plain_file(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut head));
    read.is_ok() && check_header(&path.display().to_string(), &head).is_err()
}
