//! Bar charts, as SVG.
//!
//! ```text
//! title, subtitle, colours of the series
//! label of a group ┌──────────────┬ value
//!                  └─────────┬ value
//! label of the next ───┬ value
//! axis, notes
//! ```
//!
//! Left out: values below the axis.

use std::fmt::{self, Write};

use super::axis::Axis;
use super::svg::{Frame, grouped, line, text};

const MARGIN: f64 = 40.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 900.0;
const TOP: f64 = 92.0;
const BAR_HEIGHT: f64 = 15.0;
const GROUP_GAP: f64 = 13.0;

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    /// First line.
    pub title: String,
    /// Second line.
    pub subtitle: String,
    /// What the length of a bar says.
    pub axis: Axis,
    /// Names and colours of the bars of a group, in their order; one without a name has no mark in the head.
    pub series: Vec<(String, &'static str)>,
    /// From top to bottom.
    pub groups: Vec<Group>,
    /// Lines of text below.
    pub notes: Vec<String>,
}

/// Bars that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Stands left of them.
    pub label: String,
    /// One for each series; `None` has no bar.
    pub values: Vec<Option<f64>>,
}

impl BarChart {
    /// The chart as an SVG document.
    pub fn to_svg(&self) -> String {
        let heights = self.groups.iter().map(|group| num_bars(group) * BAR_HEIGHT + GROUP_GAP);
        let bottom = TOP + GROUP_GAP + heights.sum::<f64>();
        let Self { title, subtitle, notes, .. } = self;
        let frame = Frame { left: MARGIN, bottom, title, subtitle, notes };
        frame.to_svg(|svg| {
            let named = self.series.iter().filter(|(name, _)| !name.is_empty());
            for (i, (name, color)) in named.enumerate() {
                let x = LEFT + 150.0 * i as f64;
                bar(svg, (x, TOP - 23.0), 12.0, color)?;
                text(svg, (x + 18.0, TOP - 11.5), "", name)?;
            }
            self.write_axis(svg, bottom)?;
            self.write_groups(svg)
        })
    }

    fn write_groups(&self, svg: &mut String) -> fmt::Result {
        let mut y = TOP + GROUP_GAP;
        for group in &self.groups {
            let middle = (LEFT - 10.0, y + num_bars(group) * BAR_HEIGHT / 2.0 + 4.5);
            text(svg, middle, r#"text-anchor="end""#, &group.label)?;
            for (value, (_, color)) in group.values.iter().zip(&self.series) {
                if let Some(value) = value {
                    let end = self.x_at(*value);
                    bar(svg, (LEFT, y), end - LEFT, color)?;
                    let at = (end + 6.0, y + BAR_HEIGHT - 4.0);
                    text(svg, at, r#"font-size="12""#, &shown(*value))?;
                    y += BAR_HEIGHT;
                }
            }
            y += GROUP_GAP;
        }
        Ok(())
    }

    fn x_at(&self, value: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * self.axis.part(value)
    }

    fn write_axis(&self, svg: &mut String, bottom: f64) -> fmt::Result {
        for tick in self.axis.ticks() {
            let x = self.x_at(tick.value);
            let color = if tick.label.is_some() { "#c8c8c8" } else { "#efefef" };
            line(svg, (x, TOP), (x, bottom), color)?;
            if let Some(label) = tick.label {
                text(svg, (x, bottom + 20.0), r#"text-anchor="middle""#, &label)?;
            }
        }
        let middle = ((LEFT + RIGHT) / 2.0, bottom + 42.0);
        text(svg, middle, r#"text-anchor="middle""#, &self.axis.label)
    }
}

fn num_bars(group: &Group) -> f64 {
    group.values.iter().flatten().count() as f64
}

fn bar(svg: &mut String, (x, y): (f64, f64), width: f64, color: &str) -> fmt::Result {
    let height = BAR_HEIGHT - 2.0;
    writeln!(
        svg,
        r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}" fill="{color}"/>"#
    )
}

/// With one digit behind the point below 10, where it says something.
fn shown(value: f64) -> String {
    if value < 10.0 && value.fract() != 0.0 { format!("{value:.1}") } else { grouped(value) }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values_on_the_axis() {
        let chart = BarChart {
            title: "a & b".to_owned(),
            subtitle: String::new(),
            axis: Axis { label: String::new(), min: 1.0, max: 100.0, scale: Scale::Logarithmic },
            series: vec![("one".to_owned(), "#000001"), ("two".to_owned(), "#000002")],
            groups: vec![Group { label: "g".to_owned(), values: vec![None, Some(10.0)] }],
            notes: Vec::new(),
        };
        let svg = chart.to_svg();
        assert!(svg.contains("<title>a &amp; b</title>"));
        let half = format!(r##"width="{:.1}" height="13" fill="#000002""##, (RIGHT - LEFT) / 2.0);
        assert_eq!(svg.matches(&half).count(), 1, "{svg}");
        // Of the other series only the mark beside its name.
        assert_eq!(svg.matches("#000001").count(), 1, "{svg}");
        assert_eq!([1.234, 3.0, 9.96, 1234.0].map(shown), ["1.2", "3", "10.0", "1,234"]);
    }
}
