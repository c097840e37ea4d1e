//! The patterns of `-e` and `-f`, in the order in which they are given.
//!
//! The first of several expressions that match at one place counts, so their order matters. A file of `-f` has a
//! pattern on each line. Limits: those of a pattern, for all of them together.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::builder::ArgAction;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use tadoc_session::{Failure, Outcome};

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
