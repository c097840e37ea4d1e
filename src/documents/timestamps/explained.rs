//! Forms of the timestamps of lines, as a table for people.
//!
//! ```text
//! form         lines  share  example
//! year first   1,204  98.3 %  2024-05-06 07:08:09,123 INFO up  ->  2024-05-06T07:08:09.123Z
//! no time         21   1.7 %  at java.lang.Thread.run
//! ```

use chrono::{DateTime, SecondsFormat, Utc};

/// Number of characters of a line that an example shows.
const MAX_SHOWN_CHARS: usize = 60;

/// Counts of lines by the form of their time, in the order in which they appear.
#[derive(Debug, Clone, Default)]
pub struct Explained {
    forms: Vec<FormLines>,
}

/// Lines of one form.
#[derive(Debug, Clone)]
struct FormLines {
    /// Name of the form; none for lines without a time.
    form: Option<String>,
    num_lines: u64,
    /// The first line, and its time.
    example: (String, Option<i64>),
}

impl Explained {
    /// Counts `line`, whose time has `form`.
    pub fn add(&mut self, form: Option<&str>, line: &[u8], micros: Option<i64>) {
        match self.forms.iter_mut().find(|known| known.form.as_deref() == form) {
            Some(known) => known.num_lines += 1,
            None => {
                let text = String::from_utf8_lossy(line);
                let shown: String = text.chars().take(MAX_SHOWN_CHARS).map(visible).collect();
                let form = form.map(str::to_owned);
                self.forms.push(FormLines { form, num_lines: 1, example: (shown, micros) });
            }
        }
    }

    /// Returns the table, the most frequent form first, in lines.
    pub fn table(&self) -> Vec<String> {
        let total: u64 = self.forms.iter().map(|form| form.num_lines).sum();
        let mut forms: Vec<&FormLines> = self.forms.iter().collect();
        forms.sort_by_key(|form| (form.form.is_none(), std::cmp::Reverse(form.num_lines)));
        let header = format!("{:<28} {:>12} {:>7}  example", "form", "lines", "share");
        let row = |form: &&FormLines| {
            let share = 100.0 * form.num_lines as f64 / total as f64;
            let (line, micros) = &form.example;
            let time = micros.and_then(DateTime::<Utc>::from_timestamp_micros);
            let time = time.map(|time| format!("  ->  {}", time.to_rfc3339_opts(SecondsFormat::AutoSi, true)));
            let (name, num_lines) = (form.form.as_deref().unwrap_or("no time"), form.num_lines);
            format!("{name:<28} {num_lines:>12} {share:>5.1} %  {line}{}", time.unwrap_or_default())
        };
        std::iter::once(header).chain(forms.iter().map(row)).collect()
    }
}

/// Returns `c`, or a replacement of a character that terminals obey.
fn visible(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}
