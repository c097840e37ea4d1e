//! Guesses the types of CSV columns.
//!
//! A column gets a type only if every value can be written back exactly (`007` stays a text, and so
//! does a number with more digits than an `i64` holds). Time is linear in the number of cells. A
//! type that one value rules out is not tried again.

use std::collections::HashMap;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, TimeUnit};

/// The types that are still possible for each column.
#[derive(Default)]
pub struct Guesses(HashMap<String, Guess>);

impl Guesses {
    /// Tests all values of `batch`.
    pub fn observe(&mut self, batch: &RecordBatch) {
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            // A column of timestamps has its type already.
            let Some(values) = column.as_string_opt::<i32>() else { continue };
            let guess = self.0.entry(field.name().clone()).or_default();
            values.iter().flatten().for_each(|value| guess.observe(value));
        }
    }

    /// Returns the narrowest type that holds all values of `column`.
    pub fn of(&self, column: &str) -> Option<DataType> {
        self.0.get(column).map(Guess::data_type)
    }
}

#[derive(Clone, Copy)]
struct Guess {
    is_seen: bool,
    boolean: bool,
    integer: bool,
    float: bool,
    date: bool,
    timestamp: bool,
}

impl Default for Guess {
    fn default() -> Self {
        Self {
            is_seen: false,
            boolean: true,
            integer: true,
            float: true,
            date: true,
            timestamp: true,
        }
    }
}

impl Guess {
    fn observe(&mut self, value: &str) {
        self.is_seen = true;
        self.boolean = self.boolean && matches!(value, "true" | "false");
        self.integer = self.integer && is_integer(value);
        self.float = self.float && is_float(value);
        self.date = self.date && is_date(value);
        self.timestamp = self.timestamp && is_timestamp(value);
    }

    fn data_type(&self) -> DataType {
        match self {
            Self { is_seen: false, .. } => DataType::Utf8,
            Self { boolean: true, .. } => DataType::Boolean,
            Self { integer: true, .. } => DataType::Int64,
            Self { float: true, .. } => DataType::Float64,
            Self { date: true, .. } => DataType::Date32,
            Self { timestamp: true, .. } => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => DataType::Utf8,
        }
    }
}

fn is_integer(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|number| number.to_string() == value)
}

/// Returns true for a decimal number of at most 15 digits, which an `f64` keeps exactly.
fn is_float(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_plain = all_digits(whole) && all_digits(fraction);
    let leads_with_zero = whole.len() > 1 && whole.starts_with('0');
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    is_plain
        && !leads_with_zero
        && whole.len() + fraction.len() <= 15
        && all_digits(exponent)
        && value.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Returns true for `YYYY-MM-DD` with a day that exists.
fn is_date(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let number = |text: &str, len: usize| match text.len() == len {
        true if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse::<u32>().ok(),
        _ => None,
    };
    match (number(year, 4), number(month, 2), number(day, 2)) {
        (Some(year), Some(month), Some(day)) => (1..=days_of(year, month)).contains(&day),
        _ => false,
    }
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    }
}

/// Returns true for a date, `T` or a blank, `HH:MM:SS`, and up to six digits of a second. Time
/// zones are not allowed.
fn is_timestamp(value: &str) -> bool {
    let Some((date, time)) = value.split_once(['T', ' ']) else { return false };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let below = |text: &str, limit: u32| {
        text.len() == 2
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse::<u32>().is_ok_and(|number| number < limit)
    };
    is_date(date)
        && below(hour, 24)
        && below(minute, 60)
        && below(second, 60)
        && (1..=6).contains(&fraction.len())
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, StringArray};
    use datafusion::arrow::compute::{CastOptions, cast_with_options};

    use super::*;

    fn guess(values: &[&str]) -> DataType {
        let mut guess = Guess::default();
        values.iter().for_each(|value| guess.observe(value));
        // The cast to the guessed type must accept every value.
        let column: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(&column, &guess.data_type(), &options).unwrap();
        guess.data_type()
    }

    #[test]
    fn types_are_guessed_when_every_value_fits() {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(guess(&["true", "false"]), DataType::Boolean);
        assert_eq!(guess(&["1", "-2", "9223372036854775807"]), DataType::Int64);
        assert_eq!(guess(&["1", "2.5", "-1e-3"]), DataType::Float64);
        assert_eq!(guess(&["2024-02-29", "1970-01-01"]), DataType::Date32);
        assert_eq!(guess(&["2024-02-29T23:59:59", "2024-01-01 00:00:00.123456"]), timestamp);
    }

    #[test]
    fn doubtful_values_stay_texts() {
        let cases = [
            "",
            "007",
            "+1",
            "1_000",
            "9223372036854775808",
            "1.",
            ".5",
            "00.5",
            "NaN",
            "inf",
            "0.1234567890123456",
            "2023-02-29",
            "2024-1-1",
            "24:00:00",
            "2024-01-01T24:00:00",
            "2024-01-01T00:00:00Z",
            "2024-01-01T00:00:00.1234567",
            "TRUE",
            "1e999",
        ];
        for value in cases {
            assert_eq!(guess(&[value]), DataType::Utf8, "{value}");
        }
        assert_eq!(guess(&["1", "x"]), DataType::Utf8);
        assert_eq!(guess(&[]), DataType::Utf8);
    }
}
