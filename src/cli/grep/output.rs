//! Standard output of a search: texts between separators, or nothing.

use std::io::{self, StdoutLock, Write};

use tadoc_session::Outcome;

use super::printer::Style;

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
        let (out, separator) = (io::BufWriter::new(io::stdout().lock()), style.separator());
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
