//! `tadoc grep`: writes the lines of documents that match a regular expression, as ripgrep does.
//!
//! ```text
//! location ─▶ corpora ─▶ documents that may match ─▶ tasks ─▶ lines as text ─▶ output
//!             (chains)                               (cores)  (printer)        in order
//! ```
//!
//! A line has the number that it has in the text of its path: documents of one path are its lines and records,
//! in order. So the output is that of ripgrep on the files from which the corpus was made.
//!
//! Only the segments and documents that may match are opened and decoded. Memory is that of as many
//! segments as there are cores, and of the text of their tasks. A document that is longer than
//! 16 MiB is written while it is searched. If a path comes back in a later segment after another one, memory is
//! that of all segments that may match.

mod chains;
mod printer;
mod search;

use std::ffi::OsString;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use tadoc::query::{GrepOptions, LineExpression, LinePattern, SearchOptions, is_any_case_by_smart_case};
use tadoc_session::{BlockingResolver, Failure, Outcome};

use self::printer::{Format, Printer, Statistics, Style};
use self::search::{Asked, Search};

/// Write the lines of documents that match a regular expression
///
/// The lines are those that ripgrep finds in the files from which the corpus was made: line by line, on bytes, in
/// the syntax of Rust's regex crate. Documents that cannot match are not decoded.
///
/// Documents with one path (lines, records and rows of a file) are one text again, in their order, each followed by
/// a line end. Numbers of lines, lines around a line, -c, -l and -m are those of this text. Lines that an ingest
/// left out or changed are not known: the number is the place among the lines that are stored.
#[derive(Args)]
#[command(
    disable_version_flag = true,
    override_usage = "tadoc grep [OPTIONS] PATTERN CORPUS...\n       \
                      tadoc grep [OPTIONS] -e PATTERN CORPUS...",
    after_long_help = "Examples:\n  \
    tadoc grep 'power (loss|failure)' notes.tadoc\n  \
    tadoc grep -i -C 2 error logs/                 with two lines around each\n  \
    tadoc grep -l deadlock notes.tadoc logs.tadoc  paths only\n  \
    tadoc grep -o 'https?://[^ ]+' notes.tadoc     the matches only\n  \
    tadoc grep -F -e '-C' notes.tadoc              a text that begins with -\n  \
    tadoc grep -S -e error -e 'fail(ed|ure)' logs/ several expressions, in any case\n\n\
    Exit status:\n  \
    0    there is a line\n  \
    1    there is none\n  \
    2    failed: one line on standard error says what, where, and the way out"
)]
pub struct Arguments {
    /// The regular expression, unless -e gives it, then the corpora: files, living corpora, or folders
    /// or globs of files; paths or URLs
    #[arg(value_name = "CORPUS", required_unless_present = "patterns")]
    operands: Vec<OsString>,

    /// The regular expression, if it begins with -, or one of several (may be given several times). A
    /// line is written if one of them matches. All other arguments are corpora
    #[arg(short = 'e', long = "regexp", value_name = "PATTERN", allow_hyphen_values = true)]
    patterns: Vec<String>,

    /// Match upper and lower case alike. Of -i, -s and -S the last one counts
    #[arg(short, long, overrides_with_all = ["case_sensitive", "smart_case"])]
    ignore_case: bool,

    /// Tell upper and lower case apart (the default)
    #[arg(short = 's', long, overrides_with_all = ["ignore_case", "smart_case"])]
    case_sensitive: bool,

    /// Match upper and lower case alike, unless a pattern has an upper-case letter
    #[arg(short = 'S', long, overrides_with_all = ["ignore_case", "case_sensitive"])]
    smart_case: bool,

    /// Take each pattern as text, not as a regular expression
    #[arg(short = 'F', long)]
    fixed_strings: bool,

    /// Match whole words only
    #[arg(short, long)]
    word_regexp: bool,

    /// Match whole lines only
    #[arg(short = 'x', long)]
    line_regexp: bool,

    /// Write the lines that do not match
    #[arg(short = 'v', long)]
    invert_match: bool,

    /// Write only the paths that have a line
    #[arg(short = 'l', long, conflicts_with = "count")]
    files_with_matches: bool,

    /// Write only the number of lines of each path that has some; with -o, of matches
    #[arg(short, long)]
    count: bool,

    /// Write only the matches, each on a line of its own
    #[arg(short, long)]
    only_matching: bool,

    /// Write nothing, and end at the first line. The exit status tells if there is one
    #[arg(short, long)]
    quiet: bool,

    /// Stop in each path after so many lines
    #[arg(short, long, value_name = "N")]
    max_count: Option<u64>,

    /// Write so many lines after each line
    #[arg(short = 'A', long, value_name = "N")]
    after_context: Option<usize>,

    /// Write so many lines before each line
    #[arg(short = 'B', long, value_name = "N")]
    before_context: Option<usize>,

    /// Write so many lines before and after each line
    #[arg(short = 'C', long, value_name = "N")]
    context: Option<usize>,

    /// Write line numbers (the default)
    #[arg(short = 'n', long, overrides_with = "no_line_number")]
    line_number: bool,

    /// Write no line numbers
    #[arg(short = 'N', long)]
    no_line_number: bool,

    /// Write the path of its document in front of each line (the default)
    #[arg(short = 'H', long, overrides_with = "no_filename")]
    with_filename: bool,

    /// Write no paths, but with -l
    #[arg(short = 'I', long, overrides_with = "with_filename")]
    no_filename: bool,

    /// Write JSON, one object on a line, like `rg --json`. Lines have no line ends, and documents that
    /// cannot match are no searches
    #[arg(long, conflicts_with_all = ["count", "files_with_matches"])]
    json: bool,

    /// When to write in colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,

    /// For living corpora: search this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

/// Condition for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal.
    Auto,
    Always,
    Never,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if search(arguments).map_err(Failure::for_search)? { Ok(()) } else { Err(Failure::nothing_found()) }
}

/// Returns true if there is a line.
fn search(arguments: &Arguments) -> Outcome<bool> {
    let begun_at = Instant::now();
    let (sources, locations) = arguments.patterns_and_locations()?;
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
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
    let pattern = LinePattern::any_of(&sources, &expression)?;
    let style = arguments.style();
    let mut output = Output::new(&style, arguments.quiet);
    let resolver = BlockingResolver::new()?;
    let mut statistics = Statistics::default();
    for location in &locations {
        let prefix = match locations.len() {
            1 => String::new(),
            _ => format!("{}/", location.to_string_lossy().trim_end_matches('/')),
        };
        let mut search = Search {
            asked: Asked { pattern: &pattern, style: &style, options: arguments.options(), prefix },
            printer: Printer::new(&style, &pattern),
            output: &mut output,
            begun: None,
            is_open: false,
            is_last_searched: false,
            searched: Statistics::default(),
        };
        let flow = search.location(&resolver, location, arguments.version)?;
        statistics += search.statistics();
        if flow.is_break() {
            break;
        }
    }
    let summary = (style.format == Format::Json).then(|| statistics.summary(begun_at.elapsed()));
    output.finish(summary)
}

impl Arguments {
    fn patterns_and_locations(&self) -> Outcome<(Vec<String>, Vec<PathBuf>)> {
        let (patterns, locations) = match self.operands.split_first() {
            Some((pattern, locations)) if self.patterns.is_empty() => {
                let pattern = pattern
                    .to_str()
                    .ok_or_else(|| Failure::usage(r"the pattern is no UTF-8; write other bytes as (?-u:\xFF)"))?;
                (vec![pattern.to_owned()], locations)
            }
            _ => (self.patterns.clone(), &self.operands[..]),
        };
        if locations.is_empty() {
            Err(Failure::usage("no corpus is given; usage: tadoc grep PATTERN CORPUS…"))
        } else {
            Ok((patterns, locations.iter().map(PathBuf::from).collect()))
        }
    }

    fn options(&self) -> GrepOptions<'static> {
        let is_short = self.count || self.files_with_matches || self.quiet;
        let around = if is_short { Some(0) } else { self.context };
        let of = |side: Option<usize>| if is_short { 0 } else { side.or(around).unwrap_or(0) };
        let max_lines = (self.files_with_matches || self.quiet).then_some(1);
        let max_lines = [max_lines, self.max_count].into_iter().flatten().min();
        GrepOptions {
            search: SearchOptions { max_hits: u64::MAX, ..SearchOptions::default() },
            before: of(self.before_context),
            after: if self.count && self.max_count.is_some() {
                // Lines behind the last one are counted if they match.
                self.after_context.or(self.context).unwrap_or(0)
            } else {
                of(self.after_context)
            },
            max_lines_per_doc: max_lines.unwrap_or(u64::MAX),
            ..GrepOptions::default()
        }
    }

    fn style(&self) -> Style {
        let is_terminal = io::stdout().is_terminal();
        let is_dumb = || {
            let has_no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            has_no_color || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
        };
        let options = self.options();
        Style {
            format: match () {
                () if self.json => Format::Json,
                () if self.files_with_matches => Format::Paths,
                () if self.count => Format::Counts,
                () if is_terminal && !self.no_filename => Format::Headings,
                () => Format::Lines,
            },
            is_colored: match self.color {
                When::Always => true,
                When::Never => false,
                When::Auto => is_terminal && !is_dumb(),
            },
            is_terminal,
            has_numbers: !self.no_line_number,
            has_paths: !self.no_filename,
            has_context: options.before > 0 || options.after > 0,
            is_inverted: self.invert_match,
            is_of_matches: self.only_matching,
            max_lines: options.max_lines_per_doc,
        }
    }
}

/// Standard output.
struct Output {
    out: io::BufWriter<StdoutLock<'static>>,
    /// Text between documents. Each begins with it, and it is left out in front of the first.
    separator: &'static str,
    is_empty: bool,
    /// If true, nothing is written, and the first text is enough.
    is_quiet: bool,
}

impl Output {
    fn new(style: &Style, is_quiet: bool) -> Self {
        let (out, separator) = (io::BufWriter::new(io::stdout().lock()), style.separator());
        Self { out, separator, is_empty: true, is_quiet }
    }

    /// Returns true if more text changes nothing.
    fn is_complete(&self) -> bool {
        self.is_quiet && !self.is_empty
    }

    fn write(&mut self, text: &[u8]) -> Outcome {
        let text = if self.is_empty { text.strip_prefix(self.separator.as_bytes()).unwrap_or(text) } else { text };
        self.is_empty &= text.is_empty();
        if self.is_quiet {
            return Ok(());
        }
        Ok(self.out.write_all(text)?)
    }

    /// Writes what is left, and `summary`. Returns true if there was any text before.
    fn finish(mut self, summary: Option<String>) -> Outcome<bool> {
        if let Some(summary) = summary.filter(|_| !self.is_quiet) {
            self.out.write_all(summary.as_bytes())?;
        }
        self.out.flush()?;
        Ok(!self.is_empty)
    }
}
