//! The prompt of `tadoc sql`.
//!
//! rustyline reads the lines, datafusion-cli runs the commands that begin with a backslash, and
//! statements run as in scripts. After an error, the prompt continues. The history is kept in
//! `.history`, with secrets masked.

use std::borrow::Cow;
use std::path::Path;

use datafusion::config::Dialect;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use datafusion_cli::command::{Command, OutputFormat};
use datafusion_cli::helper::CliHelper;
use datafusion_tadoc::mask_secrets;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};

use super::{Session, read_script};
use crate::failure::{Failure, Outcome};

/// File of the lines of earlier sessions, in the working directory.
const HISTORY: &str = ".history";
const PROMPT: &str = "> ";

/// The next action of the prompt.
#[derive(PartialEq, Eq)]
enum Next {
    Ask,
    Leave,
}

impl Session {
    /// Reads and answers lines until the user leaves.
    pub async fn answer_lines(mut self) -> Outcome {
        let mut editor = Editor::<Lines, DefaultHistory>::new().map_err(ended)?;
        editor.set_helper(Some(Lines::new()));
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
        if self.sandbox.is_some() && command.contains(';') {
            // Commands of datafusion-cli run statements that contain their words.
            return Err(Failure::new("commands have no semicolon in safe mode"));
        }
        let words: Vec<&str> = command.split_whitespace().collect();
        let unknown = || Failure::new(format!("there is no command \\{command}; \\? lists them"));
        match words.join(" ").parse::<Command>().map_err(|()| unknown())? {
            Command::Quit => return Ok(Next::Leave),
            Command::Include(Some(path)) => {
                if let Some(sandbox) = &self.sandbox {
                    sandbox.check_location(&path)?;
                }
                let script = read_script(Path::new(&path))?;
                self.run_script(&script, false).await?;
            }
            Command::OutputFormat(Some(format)) => {
                let format = format.parse::<OutputFormat>().map_err(|()| unknown())?;
                format.execute(&mut self.options)?;
            }
            Command::OutputFormat(None) => println!("{:?}", self.options.format),
            command => command.execute(&self.context, &mut self.options).await?,
        }
        Ok(Next::Ask)
    }
}

fn ended(error: ReadlineError) -> Failure {
    Failure::with_cause("the prompt ended", &error)
}

/// The helper of datafusion-cli with another test for complete lines. That of datafusion-cli parses
/// the text with a recursive function of unbounded depth.
struct Lines(CliHelper);

impl Lines {
    fn new() -> Self {
        Self(CliHelper::new(&Dialect::Generic, false))
    }
}

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
        self.0.reset_hint();
        Ok(match is_complete(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Completer for Lines {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        self.0.complete(line, position, context)
    }
}

impl Hinter for Lines {
    type Hint = String;

    fn hint(&self, line: &str, position: usize, context: &Context<'_>) -> Option<String> {
        self.0.hint(line, position, context)
    }
}

impl Highlighter for Lines {
    fn highlight<'l>(&self, line: &'l str, position: usize) -> Cow<'l, str> {
        self.0.highlight(line, position)
    }

    fn highlight_char(&self, line: &str, position: usize, kind: CmdKind) -> bool {
        self.0.highlight_char(line, position, kind)
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        self.0.highlight_hint(hint)
    }
}

impl Helper for Lines {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_a_semicolon_outside_of_quotes() {
        for text in
            ["SELECT 1;", "\\q", "SELECT 'a;b';\n", &format!("SELECT 1{};", "+1".repeat(100_000))]
        {
            assert!(is_complete(text));
        }
        for text in ["SELECT 1", "", "SELECT 'a;", "SELECT 1; -- x;", "SELECT \"a;"] {
            assert!(!is_complete(text), "{text}");
        }
    }
}
