//! The options of `tadoc grep`: those of ripgrep by name, by what they change, and by which of two counts.
//!
//! ```text
//! -l, -L, -c, --count-matches, --json     the last one counts; --files counts more than any of them
//! -U, -r, --crlf, -M, --passthru, --trim  lines are written by ripgrep's own printer (whole_texts)
//! -a, -z, --hidden, -j, --mmap, …         change nothing: all documents of a corpus are searched, as text
//! -e, -f                                  patterns, in the order in which they are given
//! ```
//!
//! The first of several expressions that match at one place counts, so their order matters. A file of `-f` has a
//! pattern on each line. Limits: those of a pattern, for all of them together.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use clap::builder::ArgAction;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum, value_parser};
use tadoc::query::{GrepOptions, SearchOptions};
use tadoc_session::{Failure, Outcome};

use super::printer::{Format, Style};
use super::selection::PathFilters;

/// Headings of the help.
const SEARCH: &str = "Search";
const OUTPUT: &str = "Output";
const MODES: &str = "Instead of lines (the last one counts)";

/// Write the lines of documents that match a regular expression
///
/// The lines are those that ripgrep finds in the files from which the corpus was made: line by line, on bytes, in
/// the syntax of Rust's regex crate. Documents that cannot match are not decoded.
///
/// Documents with one path (lines, records and rows of a file) are one text again, in their order, each followed by
/// a line end. Numbers of lines, lines around a line, -c, -l and -m are those of this text. Lines that an ingest
/// left out or changed are not known: the number is the place among the lines that are stored.
///
/// Options have the names and the effect of ripgrep's. All documents are searched, as text, so -a, -u, -z, --hidden,
/// --no-ignore (and --no-ignore-dot and so on), --no-config, -j, --mmap, --line-buffered, --no-messages and -R are
/// taken and change nothing.
#[derive(Args)]
#[command(
    disable_version_flag = true,
    args_override_self = true,
    override_usage = "tadoc grep [OPTIONS] PATTERN CORPUS...\n       \
                      tadoc grep [OPTIONS] -e PATTERN CORPUS...\n       \
                      tadoc grep [OPTIONS] -f PATTERNFILE CORPUS...\n       \
                      tadoc grep [OPTIONS] --files CORPUS...",
    after_long_help = "Examples:\n  \
    tadoc grep 'power (loss|failure)' notes.tadoc\n  \
    tadoc grep -i -C 2 error logs/                 with two lines around each\n  \
    tadoc grep -l deadlock notes.tadoc logs.tadoc  paths only\n  \
    tadoc grep -o 'https?://[^ ]+' notes.tadoc     the matches only\n  \
    tadoc grep -F -e '-C' notes.tadoc              a text that begins with -\n  \
    tadoc grep -S -e error -e 'fail(ed|ure)' logs/ several expressions, in any case\n  \
    tadoc grep -t py -g '!tests/' 'def \\w+' src.tadoc  Python files that are no tests\n  \
    tadoc grep -U 'begin\\n.*end' notes.tadoc       over two lines\n\n\
    Exit status:\n  \
    0    there is a line\n  \
    1    there is none\n  \
    2    failed: one line on standard error says what, where, and the way out"
)]
pub struct Arguments {
    /// The regular expression, unless -e or -f gives it, then the corpora: files, living corpora, or folders
    /// or globs of files; paths or URLs
    #[arg(value_name = "CORPUS", required_unless_present_any = ["patterns", "pattern_files", "files", "type_list"])]
    operands: Vec<OsString>,

    #[command(flatten)]
    pub sources: PatternSources,

    /// For living corpora: search this version
    #[arg(long, value_name = "N", help_heading = HEADING)]
    pub version: Option<u64>,

    /// Match upper and lower case alike. Of -i, -s and -S the last one counts
    #[arg(short, long, overrides_with_all = ["case_sensitive", "smart_case"], help_heading = SEARCH)]
    pub ignore_case: bool,

    /// Tell upper and lower case apart (the default)
    #[arg(short = 's', long, overrides_with_all = ["ignore_case", "smart_case"], help_heading = SEARCH)]
    case_sensitive: bool,

    /// Match upper and lower case alike, unless a pattern has an upper-case letter
    #[arg(short = 'S', long, overrides_with_all = ["ignore_case", "case_sensitive"], help_heading = SEARCH)]
    pub smart_case: bool,

    /// Take each pattern as text, not as a regular expression
    #[arg(short = 'F', long, help_heading = SEARCH)]
    pub fixed_strings: bool,

    /// Match whole words only. Of -w and -x the last one counts
    #[arg(short, long, overrides_with = "line_regexp", help_heading = SEARCH)]
    pub word_regexp: bool,

    /// Match whole lines only
    #[arg(short = 'x', long, overrides_with = "word_regexp", help_heading = SEARCH)]
    pub line_regexp: bool,

    /// Write the lines that do not match
    #[arg(short = 'v', long, help_heading = SEARCH)]
    pub invert_match: bool,

    /// Stop in each path after so many lines
    #[arg(short, long, value_name = "N", help_heading = SEARCH)]
    pub max_count: Option<u64>,

    /// Match over several lines. Each text is in memory as a whole
    #[arg(short = 'U', long, help_heading = SEARCH)]
    pub multiline: bool,

    /// With -U: let . match line ends, too
    #[arg(long, help_heading = SEARCH)]
    pub multiline_dotall: bool,

    /// Take \r\n as a line end, as \n
    #[arg(long, help_heading = SEARCH)]
    pub crlf: bool,

    #[command(flatten)]
    pub filters: PathFilters,

    /// Write so many lines after each line
    #[arg(short = 'A', long, value_name = "N", overrides_with = "passthru", help_heading = OUTPUT)]
    after_context: Option<usize>,

    /// Write so many lines before each line
    #[arg(short = 'B', long, value_name = "N", overrides_with = "passthru", help_heading = OUTPUT)]
    before_context: Option<usize>,

    /// Write so many lines before and after each line
    #[arg(short = 'C', long, value_name = "N", overrides_with = "passthru", help_heading = OUTPUT)]
    context: Option<usize>,

    /// Write all lines, also those that do not match
    #[arg(
        long,
        alias = "passthrough",
        overrides_with_all = ["after_context", "before_context", "context"],
        help_heading = OUTPUT
    )]
    pub passthru: bool,

    /// Write only the matches, each on a line of its own
    #[arg(short, long, help_heading = OUTPUT)]
    pub only_matching: bool,

    /// Write this text in place of each match; $1 and $name stand for groups
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, help_heading = OUTPUT)]
    pub replace: Option<String>,

    /// Write line numbers (the default)
    #[arg(short = 'n', long, overrides_with = "no_line_number", help_heading = OUTPUT)]
    line_number: bool,

    /// Write no line numbers
    #[arg(short = 'N', long, overrides_with = "line_number", help_heading = OUTPUT)]
    no_line_number: bool,

    /// Write the number of the first byte of the first match of each line, from 1
    #[arg(long, overrides_with = "no_column", help_heading = OUTPUT)]
    column: bool,

    /// Write no such numbers
    #[arg(long, overrides_with = "column", hide = true)]
    no_column: bool,

    /// Write the number of bytes before each line; with -o, before each match
    #[arg(short = 'b', long, help_heading = OUTPUT)]
    byte_offset: bool,

    /// Write each match with its line, number and column, as editors read it
    #[arg(long, help_heading = OUTPUT)]
    vimgrep: bool,

    /// Leave out the text of lines that are longer, in bytes
    #[arg(short = 'M', long, value_name = "N", help_heading = OUTPUT)]
    pub max_columns: Option<u64>,

    /// With -M: write the beginning of such lines
    #[arg(long, help_heading = OUTPUT)]
    pub max_columns_preview: bool,

    /// Leave out white space at the beginning of lines
    #[arg(long, help_heading = OUTPUT)]
    pub trim: bool,

    /// Write the path of its document in front of each line (the default)
    #[arg(short = 'H', long, overrides_with = "no_filename", help_heading = OUTPUT)]
    with_filename: bool,

    /// Write no paths, but with -l
    #[arg(short = 'I', long, overrides_with = "with_filename", help_heading = OUTPUT)]
    no_filename: bool,

    /// Write each path above its lines (the default on a terminal)
    #[arg(long, overrides_with = "no_heading", help_heading = OUTPUT)]
    heading: bool,

    /// Write the path in front of each line (the default elsewhere)
    #[arg(long, overrides_with = "heading", help_heading = OUTPUT)]
    no_heading: bool,

    /// Write a zero byte behind each path
    #[arg(short = '0', long, help_heading = OUTPUT)]
    null: bool,

    /// When to write in colour
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = OUTPUT)]
    color: When,

    /// As --color=always --heading --line-number
    #[arg(short, long, overrides_with_all = ["no_heading", "no_line_number", "color"], help_heading = OUTPUT)]
    pretty: bool,

    /// Write nothing, and end at the first line. The exit status tells if there is one
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,

    /// Write only the paths that have a line
    #[arg(
        short = 'l',
        long,
        overrides_with_all = ["files_without_match", "count", "count_matches", "json"],
        help_heading = MODES
    )]
    files_with_matches: bool,

    /// Write only the paths that have no line. (-L as in GNU grep; -L of ripgrep follows links)
    #[arg(
        short = 'L',
        long,
        overrides_with_all = ["files_with_matches", "count", "count_matches", "json"],
        help_heading = MODES
    )]
    pub files_without_match: bool,

    /// Write only the number of lines of each path that has some; with -o, of matches
    #[arg(
        short,
        long,
        overrides_with_all = ["files_with_matches", "files_without_match", "count_matches", "json"],
        help_heading = MODES
    )]
    count: bool,

    /// Write only the number of matches of each path that has some
    #[arg(
        long,
        overrides_with_all = ["files_with_matches", "files_without_match", "count", "json"],
        help_heading = MODES
    )]
    count_matches: bool,

    /// With -c or --count-matches: also the paths that have none
    #[arg(long, help_heading = MODES)]
    include_zero: bool,

    /// Write JSON, one object on a line, like `rg --json`. Lines have no line ends, but with -U and -r, and documents
    /// that cannot match are no searches
    #[arg(
        long,
        overrides_with_all = ["files_with_matches", "files_without_match", "count", "count_matches"],
        help_heading = MODES
    )]
    json: bool,

    /// Write the paths of the documents that would be searched, without a search. No pattern is given
    #[arg(long, help_heading = MODES)]
    pub files: bool,

    /// Write the types that -t knows, with their globs
    #[arg(long, help_heading = MODES)]
    pub type_list: bool,

    #[command(flatten)]
    without_effect: WithoutEffect,

    #[arg(short = 'P', long, hide = true)]
    pcre2: bool,
}

/// Options of ripgrep about files that a walk leaves out, and about threads and buffers, and -R of GNU grep. A corpus
/// has the documents that an ingest chose.
#[derive(Args)]
struct WithoutEffect {
    #[arg(short = 'j', long, hide = true)]
    threads: Option<u32>,
    #[arg(long, hide = true)]
    mmap: bool,
    #[arg(long, hide = true)]
    no_mmap: bool,
    #[arg(long, hide = true)]
    line_buffered: bool,
    #[arg(long, hide = true)]
    block_buffered: bool,
    #[arg(long, hide = true)]
    no_messages: bool,
    #[arg(short = 'R', long, hide = true)]
    dereference_recursive: bool,
    #[arg(long, hide = true)]
    one_file_system: bool,
    #[arg(short = 'a', long, hide = true)]
    text: bool,
    #[arg(short = 'z', long, hide = true)]
    search_zip: bool,
    #[arg(short = '.', long, hide = true)]
    hidden: bool,
    #[arg(short = 'u', long, hide = true, action = clap::ArgAction::Count)]
    unrestricted: u8,
    #[arg(long, hide = true)]
    no_ignore: bool,
    #[arg(long, hide = true)]
    no_ignore_dot: bool,
    #[arg(long, hide = true)]
    no_ignore_exclude: bool,
    #[arg(long, hide = true)]
    no_ignore_files: bool,
    #[arg(long, hide = true)]
    no_ignore_global: bool,
    #[arg(long, hide = true)]
    no_ignore_parent: bool,
    #[arg(long, hide = true)]
    no_ignore_vcs: bool,
    #[arg(long, hide = true)]
    no_config: bool,
}

/// Condition for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal.
    Auto,
    Always,
    Never,
}

impl Arguments {
    /// Returns the patterns without those that come again, and the locations of the corpora.
    ///
    /// # Errors
    /// A file of patterns cannot be read, or no pattern or no corpus is given.
    pub fn patterns_and_locations(&self) -> Outcome<(Vec<String>, Vec<PathBuf>)> {
        if self.pcre2 {
            return Err(Failure::usage(
                "-P: there is no PCRE2 here, and so no look-around and no references to groups; leave -P out for the \
                 expressions of ripgrep, and take -o with -r '$1' for a part of a match",
            ));
        }
        let (patterns, locations) = match self.operands.split_first() {
            _ if self.files => (vec![], &self.operands[..]),
            Some((pattern, locations)) if self.sources.is_empty() => (vec![text_of(pattern)?], locations),
            _ => (self.sources.read()?, &self.operands[..]),
        };
        if locations.is_empty() {
            Err(Failure::usage(match &self.replace {
                Some(text) => format!(
                    "no corpus is given; -r replaces matches, here by {text:?}, as in ripgrep; usage: tadoc grep \
                     PATTERN CORPUS…"
                ),
                None => "no corpus is given; usage: tadoc grep PATTERN CORPUS…".to_owned(),
            }))
        } else {
            Ok((patterns, locations.iter().map(PathBuf::from).collect()))
        }
    }

    /// Returns true if ripgrep's own printer writes the output.
    pub fn needs_whole_texts(&self) -> bool {
        let is_short = matches!(self.format(), Format::Paths | Format::Counts) || self.quiet;
        let is_cut = self.max_columns.is_some_and(|most| most > 0) || self.trim;
        // JSON has the lines as they are.
        let changes_lines = self.replace.is_some() || !self.json && (self.passthru || is_cut);
        self.multiline || self.crlf || changes_lines && !is_short
    }

    /// Returns true if the output has nothing of the lines but their number, or if there is one.
    pub fn shows_only_counts(&self) -> bool {
        match self.format() {
            _ if self.quiet => false,
            Format::Paths => true,
            Format::Counts => !self.only_matching && !self.count_matches && self.max_count.is_none(),
            Format::Lines | Format::Headings | Format::Json => false,
        }
    }

    /// Returns true if the output has the text of all lines, and nothing of the texts without a line.
    pub fn shows_all_lines(&self) -> bool {
        let has_lines = matches!(self.format(), Format::Lines | Format::Headings);
        has_lines && !self.quiet && self.max_count.is_none()
    }

    /// Returns true if the output has the paths without a line, too, or only these.
    pub fn shows_others(&self) -> bool {
        self.files_without_match || self.include_zero && self.format() == Format::Counts && !self.quiet
    }

    fn has_heading(&self) -> bool {
        let is_default = self.pretty || io::stdout().is_terminal();
        !self.vimgrep && (self.heading || is_default && !self.no_heading)
    }

    fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else if self.files_with_matches || self.files_without_match {
            Format::Paths
        } else if self.count || self.count_matches {
            Format::Counts
        } else if self.has_heading() {
            Format::Headings
        } else {
            Format::Lines
        }
    }

    /// Returns the limits of the search, and the lines around lines.
    pub fn options(&self) -> GrepOptions<'static> {
        let is_count = self.count || self.count_matches;
        let is_list = self.files_with_matches || self.files_without_match;
        let is_short = is_count || is_list || self.quiet;
        let (before, after) = self.context();
        // Lines behind the last one are counted if they match.
        let needs_after = !is_short || is_count && self.max_count.is_some();
        let max_lines = (is_list || self.quiet).then_some(1);
        let max_lines = [max_lines, self.max_count].into_iter().flatten().min();
        GrepOptions {
            search: SearchOptions { max_hits: u64::MAX, ..SearchOptions::default() },
            before: if is_short { 0 } else { before },
            after: if needs_after { after } else { 0 },
            max_lines_per_doc: max_lines.unwrap_or(u64::MAX),
            ..GrepOptions::default()
        }
    }

    /// Returns the form of the output.
    pub fn style(&self) -> Style {
        let is_terminal = io::stdout().is_terminal();
        let options = self.options();
        Style {
            format: self.format(),
            is_colored: match self.color {
                When::Always => true,
                When::Never => false,
                When::Auto => self.pretty || is_terminal && !is_dumb(),
            },
            is_terminal,
            has_numbers: !self.no_line_number,
            has_paths: !self.no_filename,
            has_crlf: self.crlf && !self.files,
            path_end: self.null.then_some(0),
            has_columns: self.column || self.vimgrep && !self.no_column,
            has_offsets: self.byte_offset,
            is_once_per_match: self.vimgrep,
            has_context: options.before > 0 || options.after > 0,
            is_inverted: self.invert_match,
            is_of_matches: self.only_matching || self.count_matches,
            max_lines: options.max_lines_per_doc,
        }
    }

    /// Returns the numbers of lines before and after each line.
    pub fn context(&self) -> (usize, usize) {
        (self.before_context.or(self.context).unwrap_or(0), self.after_context.or(self.context).unwrap_or(0))
    }
}

/// Returns true if a terminal shows no colours.
fn is_dumb() -> bool {
    let has_no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    has_no_color || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn text_of(pattern: &OsStr) -> Outcome<String> {
    let text = pattern.to_str();
    let text = text.ok_or_else(|| Failure::usage(r"the pattern is no UTF-8; write other bytes as (?-u:\xFF)"))?;
    Ok(text.to_owned())
}

/// Heading of these options in the help.
pub const HEADING: &str = "Input";

/// A pattern, or a file of patterns.
#[derive(Debug, Clone)]
enum Source {
    Pattern(String),
    File(PathBuf),
}

/// The patterns that the options give.
#[derive(Debug, Clone, Default)]
pub struct PatternSources {
    sources: Vec<Source>,
}

impl PatternSources {
    /// Returns true if the first operand is the pattern.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns the patterns in order, without those that come again.
    ///
    /// # Errors
    /// A file cannot be read, or it is no UTF-8.
    pub fn read(&self) -> Outcome<Vec<String>> {
        let mut patterns = Vec::new();
        let mut is_read = false;
        for source in &self.sources {
            match source {
                Source::Pattern(pattern) => patterns.push(pattern.clone()),
                Source::File(path) if path == Path::new("-") => {
                    if is_read {
                        return Err(Failure::usage("-f - is given twice; standard input is read once"));
                    }
                    is_read = true;
                    read_patterns("standard input", io::stdin().lock(), &mut patterns)?;
                }
                Source::File(path) => {
                    let name = path.display().to_string();
                    let file = File::open(path).map_err(|error| Failure::with_cause(&name, &error))?;
                    read_patterns(&name, BufReader::new(file), &mut patterns)?;
                }
            }
        }
        let mut seen = HashSet::new();
        patterns.retain(|pattern| seen.insert(pattern.clone()));
        Ok(patterns)
    }
}

/// Adds the patterns of a file.
fn read_patterns(name: &str, file: impl BufRead, patterns: &mut Vec<String>) -> Outcome {
    for (number, line) in file.split(b'\n').enumerate() {
        let mut line = line.map_err(|error| Failure::with_cause(name, &error))?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let pattern = String::from_utf8(line).map_err(|_| {
            let place = format!("{name}: the pattern on line {}", number + 1);
            Failure::usage(format!(r"{place} is no UTF-8; write other bytes as (?-u:\xFF)"))
        })?;
        patterns.push(pattern);
    }
    Ok(())
}

impl FromArgMatches for PatternSources {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let patterns = matches.get_many::<String>("patterns").unwrap_or_default().cloned().map(Source::Pattern);
        let files = matches.get_many::<PathBuf>("pattern_files").unwrap_or_default().cloned().map(Source::File);
        let pattern_places = matches.indices_of("patterns").unwrap_or_default();
        let file_places = matches.indices_of("pattern_files").unwrap_or_default();
        let mut placed: Vec<(usize, Source)> = pattern_places.zip(patterns).collect();
        placed.extend(file_places.zip(files));
        placed.sort_by_key(|(place, _)| *place);
        Ok(Self { sources: placed.into_iter().map(|(_, source)| source).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for PatternSources {
    fn augment_args(command: Command) -> Command {
        let patterns = Arg::new("patterns")
            .short('e')
            .long("regexp")
            .value_name("PATTERN")
            .allow_hyphen_values(true)
            .action(ArgAction::Append)
            .help_heading(HEADING)
            .help(
                "The regular expression, if it begins with -, or one of several (may be given several times). A line \
                 is written if one of them matches. All other arguments are corpora",
            );
        let files = Arg::new("pattern_files")
            .short('f')
            .long("file")
            .value_name("PATTERNFILE")
            .value_parser(value_parser!(PathBuf))
            .action(ArgAction::Append)
            .help_heading(HEADING)
            .help("Take the patterns from the lines of this file; - is standard input");
        command.arg(patterns).arg(files)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
