//! Line charts with logarithmic axes, as SVG.
//!
//! ```text
//! title, subtitle
//! ┌─ guides: labelled lines at some x ──┐
//! │ curves                              │─ label of each curve, moved apart
//! │ points: labelled dots               │
//! └─ decades, with lines at 2 to 9 ─────┘
//! x label, notes
//! ```
//!
//! The same chart gives the same bytes: coordinates have one digit behind the point. There are no
//! scripts, fonts or links in the file. Left out: linear axes, more than one column of labels.

use std::fmt::{self, Write};

const WIDTH: f64 = 1000.0;
const PLOT: Area = Area { left: 76.0, right: 740.0, top: 96.0, bottom: 520.0 };
pub(super) const NOTE_HEIGHT: f64 = 17.0;
const LABEL_GAP: f64 = 17.0;
pub(super) const XMLNS: &str = "http://www.w3.org/2000/svg";
pub(super) const FONT: &str = r#"font-family="Helvetica, Arial, sans-serif" font-size="13""#;
pub(super) const INK: &str = "#222222";
pub(super) const FAINT: &str = "#6b6b6b";

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// First line.
    pub title: String,
    /// Second line.
    pub subtitle: String,
    /// What lies along the bottom.
    pub x: Axis,
    /// What lies along the left side.
    pub y: Axis,
    /// What the labels of curves say, above them.
    pub legend: String,
    /// What is drawn, the first one on top.
    pub curves: Vec<Curve>,
    /// Dots on top of all curves.
    pub points: Vec<Point>,
    /// Vertical lines.
    pub guides: Vec<Guide>,
    /// Lines of text below.
    pub notes: Vec<String>,
}

/// A logarithmic axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Its lower end, above 0.
    pub min: f64,
    /// Its upper end, above its lower one.
    pub max: f64,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Stands at its right end.
    pub label: String,
    /// Such as `#0072b2`.
    pub color: &'static str,
    /// Whether it is dashed, and thin.
    pub is_dashed: bool,
    /// By ascending x.
    pub points: Vec<(f64, f64)>,
}

/// A dot with a label on its upper left.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Where.
    pub at: (f64, f64),
    /// What.
    pub label: String,
}

/// A vertical line with a label above the plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Guide {
    /// Where.
    pub x: f64,
    /// What.
    pub label: String,
}

/// A rectangle on the page.
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Axis {
    /// Where `value` lies: 0 at the lower end, 1 at the upper.
    pub(super) fn part(&self, value: f64) -> f64 {
        (value / self.min).log10() / (self.max / self.min).log10()
    }

    /// Multiples 1 to 9 of the powers of ten on the axis, and whether each is a power.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, bool)> {
        let decades = self.min.log10().floor() as i32..=self.max.log10().ceil() as i32;
        let values =
            decades.flat_map(|decade| (1..10).map(move |i| (f64::from(i), decade, i == 1)));
        let (low, high) = (self.min * (1.0 - 1e-9), self.max * (1.0 + 1e-9));
        values
            .map(|(multiple, decade, is_power)| (multiple * 10_f64.powi(decade), is_power))
            .filter(move |(value, _)| (low..=high).contains(value))
    }
}

impl Chart {
    /// The chart as an SVG document.
    pub fn to_svg(&self) -> String {
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut svg);
        svg
    }

    fn write(&self, svg: &mut String) -> fmt::Result {
        let height = PLOT.bottom + 62.0 + NOTE_HEIGHT * self.notes.len() as f64;
        writeln!(
            svg,
            r#"<svg xmlns="{XMLNS}" viewBox="0 0 {WIDTH} {height}" {FONT} fill="{INK}">"#
        )?;
        writeln!(svg, "<title>{}</title>", escaped(&self.title))?;
        writeln!(svg, r##"<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>"##)?;
        text(svg, (PLOT.left, 32.0), r#"font-size="19" font-weight="bold""#, &self.title)?;
        text(svg, (PLOT.left, 53.0), &format!(r#"fill="{FAINT}""#), &self.subtitle)?;
        self.write_grid(svg)?;
        self.write_guides(svg)?;
        for curve in self.curves.iter().rev() {
            self.write_curve(svg, curve)?;
        }
        self.write_labels(svg)?;
        self.write_points(svg)?;
        for (i, note) in self.notes.iter().enumerate() {
            let y = PLOT.bottom + 66.0 + NOTE_HEIGHT * i as f64;
            text(svg, (PLOT.left, y), &format!(r#"font-size="12" fill="{FAINT}""#), note)?;
        }
        writeln!(svg, "</svg>")
    }

    fn x_at(&self, x: f64) -> f64 {
        PLOT.left + (PLOT.right - PLOT.left) * self.x.part(x)
    }

    fn y_at(&self, y: f64) -> f64 {
        PLOT.bottom - (PLOT.bottom - PLOT.top) * self.y.part(y)
    }

    fn write_grid(&self, svg: &mut String) -> fmt::Result {
        let color = |is_power| if is_power { "#c8c8c8" } else { "#efefef" };
        let Area { left, right, top, bottom } = PLOT;
        for (value, is_power) in self.x.ticks() {
            let x = self.x_at(value);
            line(svg, (x, top), (x, bottom), color(is_power))?;
            if is_power {
                text(svg, (x, bottom + 20.0), r#"text-anchor="middle""#, &number(value))?;
            }
        }
        for (value, is_power) in self.y.ticks() {
            let y = self.y_at(value);
            line(svg, (left, y), (right, y), color(is_power))?;
            if is_power {
                text(svg, (left - 8.0, y + 4.5), r#"text-anchor="end""#, &number(value))?;
            }
        }
        writeln!(
            svg,
            r#"<rect x="{left}" y="{top}" width="{}" height="{}" fill="none" stroke="{FAINT}"/>"#,
            right - left,
            bottom - top
        )?;
        let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
        text(svg, (x, bottom + 42.0), r#"text-anchor="middle""#, &self.x.label)?;
        let turned = format!(r#"text-anchor="middle" transform="rotate(-90 22 {y})""#);
        text(svg, (22.0, y), &turned, &self.y.label)
    }

    fn write_guides(&self, svg: &mut String) -> fmt::Result {
        for guide in &self.guides {
            let x = self.x_at(guide.x);
            writeln!(
                svg,
                r##"<path d="M{x:.1} {} V{}" stroke="#9a9a9a" stroke-dasharray="2 4"/>"##,
                PLOT.top - 4.0,
                PLOT.bottom
            )?;
            let style = format!(r#"text-anchor="middle" font-size="11" fill="{FAINT}""#);
            text(svg, (x, PLOT.top - 9.0), &style, &guide.label)?;
        }
        Ok(())
    }

    fn write_curve(&self, svg: &mut String, curve: &Curve) -> fmt::Result {
        let mut path = String::new();
        for (i, &(x, y)) in curve.points.iter().enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            write!(path, "{command}{:.1} {:.1}", self.x_at(x), self.y_at(y))?;
        }
        let dashes = if curve.is_dashed { r#" stroke-dasharray="6 4""# } else { "" };
        let width = if curve.is_dashed { 1.5 } else { 2.5 };
        writeln!(
            svg,
            r#"<path d="{path}" fill="none" stroke="{}" stroke-width="{width}"{dashes}/>"#,
            curve.color
        )
    }

    /// The label of each curve right of its end, with a line to it.
    fn write_labels(&self, svg: &mut String) -> fmt::Result {
        let end = |curve: &Curve| curve.points.last().map(|&(_, y)| self.y_at(y));
        let mut labels: Vec<(f64, &Curve)> =
            self.curves.iter().filter_map(|curve| Some((end(curve)?, curve))).collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let style = format!(r#"font-size="11" fill="{FAINT}""#);
        text(svg, (PLOT.right + 18.0, PLOT.top - 9.0), &style, &self.legend)?;
        let places = moved_apart(&labels.iter().map(|(y, _)| *y).collect::<Vec<_>>());
        for ((end, curve), y) in labels.into_iter().zip(places) {
            writeln!(
                svg,
                r#"<path d="M{:.1} {end:.1} L{:.1} {y:.1}" stroke="{}" fill="none"/>"#,
                PLOT.right + 1.0,
                PLOT.right + 14.0,
                curve.color
            )?;
            let style = format!(r#"fill="{}""#, curve.color);
            text(svg, (PLOT.right + 18.0, y + 4.5), &style, &curve.label)?;
        }
        Ok(())
    }

    fn write_points(&self, svg: &mut String) -> fmt::Result {
        for Point { at, label } in &self.points {
            let (x, y) = (self.x_at(at.0), self.y_at(at.1));
            writeln!(
                svg,
                r##"<circle cx="{x:.1}" cy="{y:.1}" r="5" fill="#ffffff" stroke="{INK}"/>"##
            )?;
            // Twice, the first time as a white edge: not all readers know `paint-order`.
            let place = (x - 9.0, y - 11.0);
            for edge in [r##" stroke="#ffffff" stroke-width="4""##, ""] {
                text(svg, place, &format!(r#"text-anchor="end" font-size="12"{edge}"#), label)?;
            }
        }
        Ok(())
    }
}

/// Places at least [`LABEL_GAP`] apart, in the same order, from ascending ones: each group of
/// neighbours that would touch is centred on where they wanted to be.
fn moved_apart(wanted: &[f64]) -> Vec<f64> {
    // Groups of (first place, members); a group that touches the one before joins it.
    let mut groups: Vec<(f64, Vec<f64>)> = Vec::new();
    for &y in wanted {
        groups.push((y, vec![y]));
        while let [.., before, last] = &mut groups[..]
            && before.0 + LABEL_GAP * before.1.len() as f64 > last.0
        {
            before.1.append(&mut last.1);
            let num_members = before.1.len() as f64;
            let middle = before.1.iter().sum::<f64>() / num_members;
            before.0 = middle - LABEL_GAP * (num_members - 1.0) / 2.0;
            groups.pop();
        }
    }
    let places = |(first, members): (f64, Vec<f64>)| {
        (0..members.len()).map(move |i| first + LABEL_GAP * i as f64)
    };
    groups.into_iter().flat_map(places).collect()
}

pub(super) fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), color: &str) -> fmt::Result {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(svg, r#"<path d="M{x1:.1} {y1:.1} L{x2:.1} {y2:.1}" stroke="{color}"/>"#)
}

pub(super) fn text(svg: &mut String, at: (f64, f64), style: &str, text: &str) -> fmt::Result {
    writeln!(svg, r#"<text x="{:.1}" y="{:.1}" {style}>{}</text>"#, at.0, at.1, escaped(text))
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `0.1`, `1`, `1,000`: a power of ten.
pub(super) fn number(value: f64) -> String {
    if value < 1.0 {
        return format!("{value}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_order_and_distance() {
        assert_eq!(moved_apart(&[10.0, 100.0]), [10.0, 100.0]);
        assert_eq!(moved_apart(&[100.0, 100.0]), [91.5, 108.5]);
        assert_eq!(moved_apart(&[]), [0.0; 0]);
        let wanted = [0.0, 1.0, 2.0, 30.0, 31.0, 200.0];
        let places = moved_apart(&wanted);
        assert!(places.is_sorted_by(|a, b| b - a > LABEL_GAP - 1e-9), "{places:?}");
    }

    #[test]
    fn ticks_are_on_the_axis() {
        let axis = Axis { label: String::new(), min: 0.5, max: 20.0 };
        let ticks: Vec<_> = axis.ticks().collect();
        assert_eq!(ticks.first().map(|tick| tick.1), Some(false));
        let powers: Vec<_> = ticks.iter().filter(|tick| tick.1).map(|tick| tick.0).collect();
        assert_eq!(powers, [1.0, 10.0]);
        assert_eq!(ticks.len(), 5 + 9 + 2);
        assert_eq!((axis.part(0.5), axis.part(20.0)), (0.0, 1.0));
    }

    #[test]
    fn numbers_and_text_are_readable() {
        assert_eq!([0.1, 1.0, 1e3, 1e7].map(number), ["0.1", "1", "1,000", "10,000,000"]);
        assert_eq!(escaped("a < b & c"), "a &lt; b &amp; c");
    }
}
