//! Times as clocks and calendars show them.

use chrono::{NaiveTime, TimeDelta};

use super::zones::Zone;

/// The most by which the time of a line may be behind that of the next one.
pub const MAX_BACK: TimeDelta = TimeDelta::days(92);

/// A time of clocks and calendars.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Year, if it is stated.
    pub year: Option<i32>,
    /// Month, from 1.
    pub month: u32,
    /// Day of the month, from 1.
    pub day: u32,
    /// Time of the day, if it is stated.
    pub time: Option<NaiveTime>,
    /// Zone of the clock, if it is stated.
    pub zone: Option<Zone>,
}
