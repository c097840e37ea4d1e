//! Times whose meaning the lines of an input tell: without a year, or with dates of three numbers.
//!
//! ```text
//! 30/05/24 INFO  31/05/24 INFO  01/06/24 INFO     file of June 2024
//! 2030-05-24     2031-05-24     2001-06-24        year first: in the future
//! 2024-05-30     2024-05-31     2024-06-01        day first
//!
//! 05/06/2024     12/06/2024     13/06/2024        day first: there is no month 13
//!
//! lines     Nov 30   Dec 31 | Jan  1   Jun  5 | Feb  2     the input was last changed in March 2024
//! years     2022     2022     2023     2023     2024      from the end to the start
//! ```
//!
//! An order of numbers of two digits is possible if it reads each line, as a day up to the last change of the input. It
//! is meant if lines go forth and back by much less in it than in any other. The logs of Hadoop and Spark have the year
//! first. So that is meant, too, if nothing speaks against it: another order with smaller steps, or the only
//! one that is close to the last change. Of dates of other programs, the last change alone does not tell the order.
//! Otherwise no time is found.
//!
//! A year of four digits is the last number. Then only the calendar tells the order, and else the way in which the
//! date is written: the day is first where points stand, as no language of the CLDR has it otherwise, and the month is
//! first beside AM or PM.
//!
//! The last time without a year lies in the last year in which it can be. Lines of a log ascend. So a time
//! that would be more than [`MAX_BACK`] behind the next one lies in the year before. Lines may still be out
//! of order by less than that, as in logs that were joined in another order.
//!
//! O(lines); the lines of an input are held until it ends, up to [`MAX_HELD`].

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

use super::zones::Zone;

/// Orders of year, month and day, the usual one first.
const ORDERS: [Order; 3] = [Order::Year, Order::Day, Order::Month];
/// Number of days by which steps may be longer than in another order: months differ by so much.
const MAX_LONGER: i64 = 7;

/// Order of the three numbers of a date, by the first one. The year is the first or the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Year,
    Day,
    Month,
}

/// Way in which a date of three numbers is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Two digits each in the logs of Hadoop, Spark and MySQL, which have the year first.
    Program,
    /// Two digits each.
    Digits,
    /// A year of four digits behind points.
    Points,
    /// A year of four digits, and AM or PM behind the time.
    Halves,
    /// Another year of four digits.
    Signs,
}

const STYLES: [Style; 5] = [Style::Program, Style::Digits, Style::Points, Style::Halves, Style::Signs];

impl Style {
    /// Returns true if the year has four digits and is the last number.
    pub fn has_whole_year(self) -> bool {
        matches!(self, Self::Points | Self::Halves | Self::Signs)
    }

    /// Returns the order that is meant if nothing speaks against it.
    fn usual(self) -> Option<Order> {
        match self {
            Self::Program => Some(Order::Year),
            Self::Points => Some(Order::Day),
            Self::Halves => Some(Order::Month),
            Self::Digits | Self::Signs => None,
        }
    }
}

/// A date of three numbers, and a time.
#[derive(Debug, Clone, Copy)]
pub struct Short {
    pub style: Style,
    pub numbers: [u32; 3],
    pub time: Option<NaiveTime>,
    pub zone: Option<Zone>,
}

impl Short {
    /// Returns what it means in `order`. Two digits from 69 are of the last century, as POSIX has it. Returns none if
    /// the year stands elsewhere.
    pub fn shown(&self, order: Order) -> Option<Shown> {
        let [first, second, third] = self.numbers;
        let (year, month, day) = match order {
            Order::Year => (first, second, third),
            Order::Day => (third, second, first),
            Order::Month => (third, first, second),
        };
        let year = i32::try_from(year).ok()?;
        let has_whole_year = self.style.has_whole_year();
        if has_whole_year && order == Order::Year {
            return None;
        }
        let century = if has_whole_year {
            0
        } else if year < 69 {
            2000
        } else {
            1900
        };
        let year = century + year;
        Some(Shown { year: Some(year), month, day, time: self.time, zone: self.zone })
    }

    /// Returns the day that it means in `order`, if it is up to `latest`.
    fn day(&self, order: Order, latest: NaiveDateTime) -> Option<NaiveDate> {
        let Shown { year, month, day, time, .. } = self.shown(order)?;
        let day = NaiveDate::from_ymd_opt(year?, month, day)?;
        (day.and_time(time.unwrap_or_default()) <= latest).then_some(day)
    }
}

/// The days of lines in one order.
#[derive(Debug, Clone, Copy)]
struct Reading {
    order: Order,
    /// True if it reads all lines.
    is_possible: bool,
    last: Option<NaiveDate>,
    /// Largest number of days between lines that follow each other.
    max_step: i64,
    /// True if the last line is close to the last change of the input.
    is_recent: bool,
}

impl Reading {
    fn new(order: Order) -> Self {
        Self { order, is_possible: true, last: None, max_step: 0, is_recent: false }
    }

    /// Takes the day of the next line, if the order reads it.
    fn add(&mut self, day: Option<NaiveDate>, latest: NaiveDateTime) {
        let Some(day) = day else {
            self.is_possible = false;
            return;
        };
        let step = self.last.map_or(0, |last| (day - last).num_days().abs());
        self.max_step = self.max_step.max(step);
        self.last = Some(day);
        self.is_recent = latest.date() - day <= MAX_BACK;
    }

    /// Returns true if steps are much smaller than in `other`.
    fn is_better(&self, other: &Self) -> bool {
        self.max_step + MAX_BACK.num_days() < other.max_step
    }

    /// Returns true unless something speaks for `other`.
    fn is_as_good(&self, other: &Self) -> bool {
        self.max_step <= other.max_step + MAX_LONGER && (self.is_recent || !other.is_recent)
    }
}

/// Orders of the dates of one input, as far as they are told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Orders([Option<Order>; STYLES.len()]);

impl Orders {
    /// Returns the orders that one date tells.
    pub fn from_date(date: (Short, NaiveDateTime), now: NaiveDateTime) -> Self {
        let mut orders = Self::default();
        orders.learn(std::iter::once(date), now);
        orders
    }

    /// Takes up successive dates, each with the last time that it can mean. Orders that are known stay.
    pub fn learn(&mut self, dates: impl Iterator<Item = (Short, NaiveDateTime)> + Clone, now: NaiveDateTime) {
        for (style, known) in STYLES.into_iter().zip(&mut self.0) {
            let dates = dates.clone().filter(|(short, _)| short.style == style);
            *known = known.or_else(|| order(style, dates, now));
        }
    }

    /// Returns what `short` means, if its order is known.
    pub fn shown(&self, short: &Short) -> Option<Shown> {
        let known = STYLES.iter().zip(self.0).find(|(style, _)| **style == short.style);
        // `12/12/2024` is the same day in both orders.
        let is_clear = short.style.has_whole_year() && short.numbers[0] == short.numbers[1];
        let order = known?.1.or_else(|| is_clear.then_some(Order::Day));
        short.shown(order?)
    }
}

/// Returns the order of successive dates of one style. Lines in no order tell nothing.
fn order(
    style: Style,
    dates: impl Iterator<Item = (Short, NaiveDateTime)> + Clone,
    now: NaiveDateTime,
) -> Option<Order> {
    if style.has_whole_year() {
        return order_by_calendar(style, dates.map(|(short, _)| short));
    }
    let order = order_by_steps(style, dates.clone(), now);
    if style == Style::Program {
        return order;
    }
    // The time of a file is not enough to tell the order where nothing is known of the program.
    let without_limit = dates.map(|(short, _)| (short, NaiveDateTime::MAX));
    order.filter(|order| order_by_steps(style, without_limit, now) == Some(*order))
}

/// Returns the only order in which all dates are days, or the usual one of both.
fn order_by_calendar(style: Style, dates: impl Iterator<Item = Short>) -> Option<Order> {
    let mut can_be_day = true;
    let mut can_be_month = true;
    let mut is_empty = true;
    for short in dates {
        let is_day = short.day(Order::Day, NaiveDateTime::MAX).is_some();
        let is_month = short.day(Order::Month, NaiveDateTime::MAX).is_some();
        if is_day || is_month {
            (can_be_day, can_be_month, is_empty) = (can_be_day && is_day, can_be_month && is_month, false);
        }
    }
    match (can_be_day, can_be_month) {
        _ if is_empty => None,
        (true, true) => style.usual(),
        (true, false) => Some(Order::Day),
        (false, true) => Some(Order::Month),
        (false, false) => None,
    }
}

/// Returns the order of successive dates of two digits. Those that are in no order up to the last time that they can
/// mean are up to `now`: files from archives may have been changed in 1970.
fn order_by_steps(
    style: Style,
    dates: impl Iterator<Item = (Short, NaiveDateTime)>,
    now: NaiveDateTime,
) -> Option<Order> {
    let mut readings = ORDERS.map(Reading::new);
    let mut is_empty = true;
    for (short, latest) in dates {
        let days_until = |limit: NaiveDateTime| ORDERS.map(|order| short.day(order, limit));
        let mut days = days_until(latest);
        if days == [None; 3] {
            days = days_until(now);
        }
        if days == [None; 3] {
            continue;
        }
        is_empty = false;
        for (reading, day) in readings.iter_mut().zip(days) {
            reading.add(day, latest);
        }
    }
    let others = |reading: &Reading| {
        let order = reading.order;
        readings.iter().filter(move |other| other.is_possible && other.order != order)
    };
    let is_clear = |reading: &&Reading| others(reading).all(|other| reading.is_better(other));
    let is_usual = |reading: &&Reading| {
        style.usual() == Some(reading.order) && others(reading).all(|other| reading.is_as_good(other))
    };
    let mut possible = readings.iter().filter(|reading| reading.is_possible && !is_empty);
    possible.find(|reading| is_clear(reading) || is_usual(reading)).map(|reading| reading.order)
}

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

/// Number of times that are held at most. Those of a longer input are settled without the ones behind them.
pub const MAX_HELD: usize = 1 << 20;

/// Time of a line.
#[derive(Debug, Clone, Copy)]
pub enum LineTime {
    /// Microseconds since 1970, or none.
    Known(Option<i64>),
    /// A time without a year, and the last time that it can mean.
    Yearless(Shown, NaiveDateTime),
    /// A time with a date of three numbers, and the last time that it can mean.
    Short(Short, NaiveDateTime),
}

impl LineTime {
    /// Returns true if other lines tell the time.
    pub fn needs_others(&self) -> bool {
        !matches!(self, Self::Known(_))
    }

    /// Returns the date of three numbers, and the last time that it can mean.
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
/// mean, by its clock, `micros` the instant of a time, and `for_short` that of a date of three numbers. Lines
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

#[cfg(test)]
mod tests {
    use super::*;

    fn order_in(style: Style, lines: &[&str], latest: &str) -> Option<Order> {
        let latest = format!("{latest}T00:00:00").parse().unwrap();
        let now = "2026-01-01T00:00:00".parse().unwrap();
        let short = |line: &&str| {
            let numbers: Vec<u32> = line.split('/').map(|number| number.parse().unwrap()).collect();
            let time = NaiveTime::from_hms_opt(7, 8, 9);
            (Short { style, numbers: numbers.try_into().unwrap(), time, zone: None }, latest)
        };
        order(style, lines.iter().map(short), now)
    }

    #[test]
    fn lines_tell_the_order_of_their_dates() {
        use Order::{Day, Month, Year};
        let cases: [(&[&str], &str, Option<Order>); 22] = [
            // Logs of Spark and Hadoop, also as copies of another time.
            (&["17/06/09"], "2024-06-01", Some(Year)),
            (&["17/06/09"], "2017-06-10", Some(Year)),
            (&["17/06/09", "17/06/10", "17/07/01"], "2024-06-01", Some(Year)),
            (&["17/06/09"], "1970-01-02", Some(Year)),
            (&["08/11/09", "08/11/10", "08/11/11"], "2024-06-01", Some(Year)),
            (&["16/12/31", "17/12/31"], "2024-06-01", Some(Year)),
            (&["16/02/09", "16/03/09"], "2024-06-01", Some(Year)),
            (&["99/05/06"], "2024-06-01", Some(Year)),
            // A line that no order reads.
            (&["17/06/09", "99/99/99", "17/06/10"], "2024-06-01", Some(Year)),
            // Year first is in the future, or jumps.
            (&["30/05/24", "31/05/24", "01/06/24"], "2024-06-02", Some(Day)),
            (&["12/06/24", "13/06/24"], "2025-06-02", Some(Day)),
            (&["05/30/24", "05/31/24", "06/01/24"], "2024-06-02", Some(Month)),
            (&["31/12/98", "01/01/99"], "2024-06-02", Some(Day)),
            // Other orders are as likely.
            (&["05/06/24"], "2024-06-06", None),
            (&["05/06/24", "05/07/24"], "2025-06-06", None),
            (&["05/06/24", "05/07/24"], "2024-07-06", None),
            (&["01/06/24", "02/06/24"], "2025-06-02", None),
            (&["25/06/24"], "2024-06-26", Some(Day)),
            (&["10/06/12"], "2012-06-11", None),
            // None is possible.
            (&["50/05/06"], "2024-06-06", None),
            (&["99/99/99"], "2024-06-06", None),
            (&[], "2024-06-06", None),
        ];
        for (lines, latest, expected) in cases {
            assert_eq!(order_in(Style::Program, lines, latest), expected, "{lines:?} {latest}");
            // Without a program that has the year first.
            let other = order_in(Style::Digits, lines, latest);
            assert!(other == expected || other.is_none(), "{lines:?} {latest} {other:?}");
        }
    }

    #[test]
    fn the_calendar_tells_the_order_before_a_whole_year() {
        use Order::{Day, Month};
        use Style::{Halves, Points, Signs};
        let cases: [(Style, &[&str], Option<Order>); 13] = [
            (Points, &["06/05/2024"], Some(Day)),
            (Points, &["05/06/2024", "05/13/2024"], Some(Month)),
            (Points, &["13/05/2024", "05/13/2024"], None),
            (Halves, &["05/06/2024"], Some(Month)),
            (Halves, &["05/06/2024", "13/06/2024"], Some(Day)),
            (Signs, &["05/06/2024"], None),
            (Signs, &["05/06/2024", "13/06/2024"], Some(Day)),
            (Signs, &["06/13/2024", "05/06/2024"], Some(Month)),
            (Signs, &["06/13/2024", "13/06/2024"], None),
            // Days of the future, and one that does not exist.
            (Signs, &["13/06/2124"], Some(Day)),
            (Signs, &["29/02/2023", "99/99/2024", "06/13/2024"], Some(Month)),
            (Signs, &["29/02/2023"], None),
            (Signs, &[], None),
        ];
        for (style, lines, expected) in cases {
            assert_eq!(order_in(style, lines, "2024-06-01"), expected, "{style:?} {lines:?}");
        }
    }
}
