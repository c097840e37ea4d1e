//! Series as bars or lines.

use datafusion_tadoc::plot::{Axis, BarChart, COLORS, Curve, Group, LineChart, Scale};

use super::series::{AllSeries, Series};
use crate::failure::{Failure, Outcome};

/// More would not be told apart.
const MAX_GROUPS: usize = 100;
const MAX_LABEL_CHARS: usize = 32;
const MAX_SUBTITLE_CHARS: usize = 130;
/// Dates that are named along the axis.
const MAX_NAMED: usize = 6;

/// The picture. `sql` stands below its title.
pub fn svg_of(all: &AllSeries, title: Option<&str>, sql: &str) -> Outcome<String> {
    if all.series.len() > COLORS.len() {
        return Err(Failure::new(format!(
            "the query gives {} series, a plot has at most {}; say WHERE which of them",
            all.series.len(),
            COLORS.len()
        )));
    }
    let values =
        || all.series.iter().flat_map(|series| series.values.iter().map(|(_, value)| *value));
    if values().next().is_none() {
        return Err(Failure::new("the query gives no value to draw"));
    }
    let title = match title {
        Some(title) => title.to_owned(),
        None if all.value_name.is_empty() => format!("by {}", all.key_name),
        None => format!("{} by {}", all.value_name, all.key_name),
    };
    let subtitle = cut(&sql.split_whitespace().collect::<Vec<_>>().join(" "), MAX_SUBTITLE_CHARS);
    let axis = Axis::of(&all.value_name, values(), true);
    match &all.places {
        Some(places) => Ok(lines(all, places, axis, title, subtitle).to_svg()),
        None if values().any(|value| value < 0.0) => Err(Failure::new(
            "bars of text begin at 0, and the query gives values below; put a column of numbers first",
        )),
        None => Ok(bars(all, axis, title, subtitle)?.to_svg()),
    }
}

fn bars(all: &AllSeries, axis: Axis, title: String, subtitle: String) -> Outcome<BarChart> {
    let mut groups: Vec<(&str, Group)> = Vec::new();
    for (series_idx, series) in all.series.iter().enumerate() {
        for &(row, value) in &series.values {
            let label = all.labels[row].as_str();
            let is_free = |(name, group): &(&str, Group)| {
                *name == label && group.values[series_idx].is_none()
            };
            let found = groups.iter().position(is_free);
            let group_idx = found.unwrap_or_else(|| {
                let values = vec![None; all.series.len()];
                groups.push((label, Group { label: cut(label, MAX_LABEL_CHARS), values }));
                groups.len() - 1
            });
            groups[group_idx].1.values[series_idx] = Some(value);
        }
        if groups.len() > MAX_GROUPS {
            return Err(Failure::new(format!(
                "the query gives more than {MAX_GROUPS} texts in its first column; LIMIT what is to be drawn"
            )));
        }
    }
    let name = |(series, color): (&Series, _)| (cut(&series.name, MAX_LABEL_CHARS), color);
    Ok(BarChart {
        title,
        subtitle,
        axis,
        // The axis says what a single one is.
        series: match all.series.as_slice() {
            [_] => vec![(String::new(), COLORS[0])],
            several => several.iter().zip(COLORS).map(name).collect(),
        },
        groups: groups.into_iter().map(|(_, group)| group).collect(),
        notes: Vec::new(),
    })
}

fn lines(
    all: &AllSeries,
    places: &[Option<f64>],
    y: Axis,
    title: String,
    subtitle: String,
) -> LineChart {
    let curve = |(series, color): (&Series, _)| {
        let point = |&(row, value): &(usize, f64)| Some((places[row]?, value));
        let mut points: Vec<(f64, f64)> = series.values.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Curve { label: cut(&series.name, MAX_LABEL_CHARS), color, is_dashed: false, points }
    };
    let mut x = Axis::of(&all.key_name, places.iter().copied().flatten(), false);
    if !all.is_numeric {
        let mut named: Vec<(f64, String)> = places
            .iter()
            .zip(&all.labels)
            .filter_map(|(at, name)| Some(((*at)?, date(name))))
            .collect();
        named.sort_by(|a, b| a.0.total_cmp(&b.0));
        named.dedup_by(|a, b| a.0 == b.0);
        if let [first, .., last] = named.as_slice() {
            (x.min, x.max) = (first.0, last.0);
        }
        let every = named.len().div_ceil(MAX_NAMED).max(1);
        x.scale = Scale::Named(named.into_iter().step_by(every).collect());
    }
    let missing = places.iter().filter(|place| place.is_none()).count();
    let notes =
        (missing > 0).then(|| format!("{missing} rows without {} are left out", all.key_name));
    LineChart {
        title,
        subtitle,
        x,
        y,
        legend: String::new(),
        curves: all.series.iter().zip(COLORS).map(curve).collect(),
        points: Vec::new(),
        guides: Vec::new(),
        notes: notes.into_iter().collect(),
    }
}

/// A date without a time of day that says nothing.
fn date(name: &str) -> String {
    name.trim_end_matches('Z').trim_end_matches("T00:00:00").to_owned()
}

/// `text` with at most `max_chars` characters.
fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
