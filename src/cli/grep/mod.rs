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
//! grammar and nothing is decoded, and so are those of a phrase, to leave out documents without a line. Memory is that of as many
//! segments as there are cores, and of the text of their tasks. A document that is longer than
//! 16 MiB is written while it is searched. If a path comes back in a later segment after another one, memory is
//! that of all segments that may match.

mod arguments;
mod chains;
mod locations;
mod open_chain;
mod output;
mod paths;
mod patterns;
mod plain_files;
mod printer;
mod search;
mod selection;
mod whole_texts;

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use tadoc::query::{LineExpression, LinePattern, MatchingLineCounter, TextPattern, is_any_case_by_smart_case};
use tadoc_session::{BlockingResolver, Corpora, Failure, Outcome, StoredFile};

pub use self::arguments::Arguments;
use self::locations::CorpusSearch;
use self::open_chain::Counter;
use self::output::Output;
use self::paths::Paths;
use self::printer::{Format, Printer, Statistics, Style};
use self::search::{Asked, Search};
use self::selection::{Selection, type_list};
use self::whole_texts::{Engine, WholeSearch};

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
        let explained = |failure| plain_files::explained(failure, location);
        let corpora = resolver.corpora(location, arguments.version).map_err(explained)?;
        for (name, corpora) in divided(location, corpora, locations.len()) {
            let prefix = name.map_or_else(String::new, |name| format!("{}/", name.trim_end_matches('/')));
            let place = Place { resolver: &resolver, corpora, prefix: &prefix };
            let flow = command.place(&way, place, &mut output, &mut statistics);
            if flow.map_err(explained)?.is_break() {
                break 'locations;
            }
        }
    }
    let shows_summary = style.format == Format::Json && !matches!(way, Way::None);
    output.finish(shows_summary.then(|| statistics.summary(begun_at.elapsed())))
}

/// Divides `corpora`, those at one of `num_locations` locations, into those whose paths are searched together, each with
/// the name in front of its paths. If there are several files, each has its own name: equal paths in them are different
/// texts.
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
        let (arguments, style, selection) = (self.arguments, self.style, self.selection);
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
