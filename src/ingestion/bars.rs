//! Bar charts with a logarithmic axis, as SVG.
//!
//! ```text
//! title, subtitle, colours of the series
//! label of a group ┌──────────────┬ value
//!                  └─────────┬ value
//! label of the next ───┬ value
//! axis, notes
//! ```
//!
//! The same chart gives the same bytes, as in [`plot`](super::plot). Left out: values below the axis.

use std::fmt::{self, Write};

use super::plot::{Axis, FAINT, FONT, INK, NOTE_HEIGHT, XMLNS, escaped, line, number, text};

const WIDTH: f64 = 1000.0;
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
    /// Names and colours of the bars of a group, in their order.
    pub series: Vec<(&'static str, &'static str)>,
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
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut svg);
        svg
    }

    fn write(&self, svg: &mut String) -> fmt::Result {
        let num_bars = |group: &Group| group.values.iter().flatten().count() as f64;
        let heights = self.groups.iter().map(|group| num_bars(group) * BAR_HEIGHT + GROUP_GAP);
        let bottom = TOP + GROUP_GAP + heights.sum::<f64>();
        let height = bottom + 62.0 + NOTE_HEIGHT * self.notes.len() as f64;
        writeln!(
            svg,
            r#"<svg xmlns="{XMLNS}" viewBox="0 0 {WIDTH} {height}" {FONT} fill="{INK}">"#
        )?;
        writeln!(svg, "<title>{}</title>", escaped(&self.title))?;
        writeln!(svg, r##"<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>"##)?;
        text(svg, (40.0, 32.0), r#"font-size="19" font-weight="bold""#, &self.title)?;
        text(svg, (40.0, 53.0), &format!(r#"fill="{FAINT}""#), &self.subtitle)?;
        for (i, (name, color)) in self.series.iter().enumerate() {
            let x = LEFT + 150.0 * i as f64;
            bar(svg, (x, TOP - 23.0), 12.0, color)?;
            text(svg, (x + 18.0, TOP - 11.5), "", name)?;
        }
        self.write_axis(svg, bottom)?;
        let mut y = TOP + GROUP_GAP;
        for group in &self.groups {
            let bars = num_bars(group) * BAR_HEIGHT;
            let middle = (LEFT - 10.0, y + bars / 2.0 + 4.5);
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
        for (i, note) in self.notes.iter().enumerate() {
            let y = bottom + 66.0 + NOTE_HEIGHT * i as f64;
            text(svg, (40.0, y), &format!(r#"font-size="12" fill="{FAINT}""#), note)?;
        }
        writeln!(svg, "</svg>")
    }

    fn x_at(&self, value: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * self.axis.part(value)
    }

    fn write_axis(&self, svg: &mut String, bottom: f64) -> fmt::Result {
        for (value, is_power) in self.axis.ticks() {
            let x = self.x_at(value);
            line(svg, (x, TOP), (x, bottom), if is_power { "#c8c8c8" } else { "#efefef" })?;
            if is_power {
                text(svg, (x, bottom + 20.0), r#"text-anchor="middle""#, &number(value))?;
            }
        }
        let middle = ((LEFT + RIGHT) / 2.0, bottom + 42.0);
        text(svg, middle, r#"text-anchor="middle""#, &self.axis.label)
    }
}

fn bar(svg: &mut String, (x, y): (f64, f64), width: f64, color: &str) -> fmt::Result {
    let height = BAR_HEIGHT - 2.0;
    writeln!(
        svg,
        r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}" fill="{color}"/>"#
    )
}

/// With one digit behind the point below 10.
fn shown(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { number(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values_on_the_axis() {
        let chart = BarChart {
            title: "a & b".to_owned(),
            subtitle: String::new(),
            axis: Axis { label: String::new(), min: 1.0, max: 100.0 },
            series: vec![("one", "#000001"), ("two", "#000002")],
            groups: vec![Group { label: "g".to_owned(), values: vec![None, Some(10.0)] }],
            notes: Vec::new(),
        };
        let svg = chart.to_svg();
        assert!(svg.contains("<title>a &amp; b</title>"));
        let half = format!(r##"width="{:.1}" height="13" fill="#000002""##, (RIGHT - LEFT) / 2.0);
        assert_eq!(svg.matches(&half).count(), 1, "{svg}");
        // Of the other series only the mark beside its name.
        assert_eq!(svg.matches("#000001").count(), 1, "{svg}");
        assert_eq!([1.234, 9.96, 1234.0].map(shown), ["1.2", "10.0", "1,234"]);
    }
}
