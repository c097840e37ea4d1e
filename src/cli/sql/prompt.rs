//! The prompt of `tadoc sql`.
//!
//! rustyline reads the lines. Commands begin with a backslash and are those of datafusion-cli.
//! Statements run as in scripts. After an error, the prompt continues. The history is kept in
//! `.history`, with secrets masked.

use std::path::Path;

use clap::ValueEnum;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use datafusion_tadoc::mask_secrets;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};
use tadoc_session::{Failure, Outcome};

use super::print::Format;
use super::{Console, read_script};

/// File of the lines of earlier sessions, in the working directory.
const HISTORY: &str = ".history";
const PROMPT: &str = "> ";

const COMMANDS: &str = "\
\\q                        leaves the prompt
\\?                        shows this list
\\d                        lists the tables
\\d TABLE                  lists the columns of a table
\\h                        lists the functions over corpora and texts
\\h NAME                   describes a function
\\i FILE                   runs the statements of a file
\\pset format [FORMAT]     shows or sets the format of rows: table, csv, tsv, json, ndjson
\\maxwidth [N|inf]         shows or sets the most characters of a cell
\\quiet [on|off]           shows or sets if only rows are written";

const LIST_FUNCTIONS: &str = "SELECT function, kind, summary FROM tadoc_functions()";

/// The next action of the prompt.
#[derive(PartialEq, Eq)]
enum Next {
    Ask,
    Leave,
}

impl Console {
    /// Reads and answers lines until the user leaves.
    pub async fn answer_lines(mut self) -> Outcome {
        let mut editor = Editor::<Lines, DefaultHistory>::new().map_err(ended)?;
        editor.set_helper(Some(Lines(FilenameCompleter::new())));
        // The first session of a folder has no history.
        let _ = editor.load_history(HISTORY);
        loop {
            let line = match editor.readline(PROMPT) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(ended(error)),
            };
            editor.add_history_entry(mask_secrets(line.trim_end())).map_err(ended)?;
            let answered = tokio::select! {
                answered = self.answer(&line) => answered,
                _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
            };
            match answered {
                Ok(Next::Ask) => {}
                Ok(Next::Leave) => break,
                Err(failure) => {
                    failure.report();
                }
            }
        }
        editor.save_history(HISTORY).map_err(ended)
    }

    async fn answer(&mut self, line: &str) -> Outcome<Next> {
        let Some(command) = line.trim().strip_prefix('\\') else {
            self.run_script(line, false).await?;
            return Ok(Next::Ask);
        };
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["q"] => return Ok(Next::Leave),
            ["?"] => println!("{COMMANDS}"),
            ["d"] => self.run_script("SHOW TABLES", false).await?,
            ["d", table] => self.run_script(&format!("SHOW COLUMNS FROM {table}"), false).await?,
            ["h"] => self.run_script(LIST_FUNCTIONS, false).await?,
            ["h", name] => self.run_script(&help_for(name), false).await?,
            ["i", path] => self.include(path).await?,
            ["quiet"] => println!("quiet is {}", on_or_off(self.options.quiet)),
            ["quiet", "on" | "true" | "t" | "yes" | "y"] => self.options.quiet = true,
            ["quiet", "off" | "false" | "f" | "no" | "n"] => self.options.quiet = false,
            ["maxwidth"] => println!("{}", self.max_width),
            ["maxwidth", width] => self.max_width = width.parse().map_err(Failure::new)?,
            ["pset"] | ["pset", "format"] => println!("format is {}", name(self.options.format)),
            ["pset", "format", format] => {
                self.options.format = Format::from_str(format, true).map_err(Failure::new)?;
            }
            _ => {
                let problem = format!("there is no command \\{command}; \\? lists them");
                return Err(Failure::new(problem));
            }
        }
        Ok(Next::Ask)
    }

    /// Runs the statements of the file at `path`.
    async fn include(&self, path: &str) -> Outcome {
        if let Some(sandbox) = self.session.sandbox() {
            sandbox.check_location(path)?;
        }
        let script = read_script(Path::new(path))?;
        self.run_script(&script, false).await
    }
}

/// Returns the statement that describes the functions of this name.
fn help_for(name: &str) -> String {
    let name = name.replace('\'', "''");
    format!(
        "SELECT function, summary, signature, example FROM tadoc_functions() \
         WHERE function = lower('{name}') \
         UNION ALL SELECT DISTINCT function_name, description, syntax_example, NULL \
         FROM (SHOW FUNCTIONS) WHERE function_name = lower('{name}')"
    )
}

fn on_or_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn name(format: Format) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn ended(error: ReadlineError) -> Failure {
    Failure::with_cause("the prompt ended", &error)
}

/// Helps with lines: completes names of files in quotes, and asks for more until a statement ends.
struct Lines(FilenameCompleter);

/// Returns true if `text` is a command, or ends in a semicolon outside of quotes.
fn is_complete(text: &str) -> bool {
    let text = text.trim_end();
    if text.starts_with('\\') {
        return true;
    }
    if !text.ends_with(';') {
        return false;
    }
    match Tokenizer::new(&GenericDialect, text).tokenize() {
        Ok(tokens) => tokens.last() == Some(&Token::SemiColon),
        // Other errors are reported when the statement runs.
        Err(error) => {
            let open_quote = ["Unterminated", "Expected close"];
            !open_quote.iter().any(|text| error.message.contains(text))
        }
    }
}

impl Validator for Lines {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        if is_complete(context.input()) { Ok(ValidationResult::Valid(None)) } else { Ok(ValidationResult::Incomplete) }
    }
}

impl Completer for Lines {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let is_in_quotes = !line[..position].matches('\'').count().is_multiple_of(2);
        if is_in_quotes || line.starts_with("\\i ") {
            self.0.complete(line, position, context)
        } else {
            Ok((position, Vec::new()))
        }
    }
}

impl Hinter for Lines {
    type Hint = String;
}

impl Highlighter for Lines {}

impl Helper for Lines {}

#[cfg(test)]
mod tests {
    use super::*;
    use tadoc_session::MaxWidth;

    #[tokio::test]
    async fn widths_are_set_at_the_prompt() {
        let mut session = Console::for_tables().unwrap();
        for (line, width) in [("\\maxwidth 7", "7"), ("\\maxwidth inf", "inf")] {
            assert!(session.answer(line).await.is_ok());
            assert_eq!(session.max_width.to_string(), width);
        }
        for line in ["\\maxwidth 0", "\\maxwidth -1", "\\maxwidth 1 2"] {
            assert!(session.answer(line).await.is_err(), "{line}");
            assert_eq!(session.max_width, MaxWidth::Unlimited);
        }
    }

    #[test]
    fn lines_end_with_a_semicolon_outside_of_quotes() {
        for text in ["SELECT 1;", "\\q", "SELECT 'a;b';\n", &format!("SELECT 1{};", "+1".repeat(100_000))] {
            assert!(is_complete(text));
        }
        for text in ["SELECT 1", "", "SELECT 'a;", "SELECT 1; -- x;", "SELECT \"a;"] {
            assert!(!is_complete(text), "{text}");
        }
    }
}
