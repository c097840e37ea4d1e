//! Years of the lines of one input whose times state none.
//!
//! ```text
//! lines     Nov 30   Dec 31 | Jan  1   Jun  5 | Feb  2     the input was last changed in March 2024
//! years     2022     2022     2023     2023     2024      from the end to the start
//! ```
//!
//! The last time lies in the last year in which it can be. Lines of a log ascend. So a time that would be more than
//! [`MAX_BACK`] behind the next one lies in the year before. Lines may still be out of order by less than that, as in
//! logs that were joined in another order. O(lines); the lines of an input are held until it ends, up to [`MAX_HELD`].

use chrono::NaiveDateTime;

use super::short::Short;
use super::shown::{MAX_BACK, Shown};

/// Number of times that are held at most. Those of a longer input are settled without the ones behind them.
pub const MAX_HELD: usize = 1 << 20;

/// Time of a line.
#[derive(Debug, Clone, Copy)]
pub enum LineTime {
    /// Microseconds since 1970, or none.
    Known(Option<i64>),
    /// A time without a year, and the last time that it can mean.
    Yearless(Shown, NaiveDateTime),
    /// A time with a date of two digits, and the last time that it can mean.
    Short(Short, NaiveDateTime),
}

impl LineTime {
    /// Returns true if other lines tell the time.
    pub fn needs_others(&self) -> bool {
        !matches!(self, Self::Known(_))
    }

    /// Returns the date of two digits, and the last time that it can mean.
    pub fn short(&self) -> Option<(Short, NaiveDateTime)> {
        match self {
            Self::Short(short, latest) => Some((*short, *latest)),
            _ => None,
        }
    }
}

/// The next time without a year, and the last one that it could mean.
#[derive(Clone, Copy)]
struct Behind {
    local: NaiveDateTime,
    latest: NaiveDateTime,
}

impl Behind {
    /// Returns the last time that a line before it can mean.
    fn limit(self) -> NaiveDateTime {
        self.local.checked_add_signed(MAX_BACK).map_or(self.latest, |limit| limit.min(self.latest))
    }
}

/// Returns the times of successive lines. `in_last_year` returns the last time up to a limit that a line can
/// mean, by its clock, `micros` the instant of a time, and `for_short` that of a date of two digits. Lines
/// that can mean other last times, as those of another stream of gzip, tell nothing of each other.
pub fn settled(
    times: &[LineTime],
    in_last_year: impl Fn(&Shown, NaiveDateTime) -> Option<NaiveDateTime>,
    micros: impl Fn(&Shown, NaiveDateTime) -> Option<i64>,
    for_short: impl Fn(&Short) -> Option<i64>,
) -> Vec<Option<i64>> {
    let mut behind: Option<Behind> = None;
    let mut found = Vec::with_capacity(times.len());
    for time in times.iter().rev() {
        found.push(match time {
            LineTime::Known(micros) => *micros,
            LineTime::Short(short, _) => for_short(short),
            LineTime::Yearless(shown, latest) => {
                let limit = behind.filter(|behind| behind.latest == *latest).map_or(*latest, Behind::limit);
                let local = in_last_year(shown, limit);
                if let Some(local) = local {
                    behind = Some(Behind { local, latest: *latest });
                }
                local.and_then(|local| micros(shown, local))
            }
        });
    }
    found.reverse();
    found
}
