//! Line charts, as SVG.
//!
//! ```text
//! title, subtitle
//! ┌─ guides: labelled lines at some x ──┐
//! │ curves                              │─ label of each curve, moved apart
//! │ points: labelled dots               │
//! └─ ticks of both axes ────────────────┘
//! x label, notes
//! ```
//!
//! Left out: more than one column of labels.

use std::fmt::{self, Write};

use super::axis::Axis;
use super::svg::{FAINT, Frame, INK, line, text};

const PLOT: Area = Area { left: 76.0, right: 740.0, top: 96.0, bottom: 520.0 };
const LABEL_GAP: f64 = 17.0;

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
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
    /// Indices of points to which no line leads from the one before, ascending.
    pub breaks: Vec<usize>,
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

impl LineChart {
    /// The chart as an SVG document.
    pub fn to_svg(&self) -> String {
        let Self { title, subtitle, notes, .. } = self;
        let frame = Frame { left: PLOT.left, bottom: PLOT.bottom, title, subtitle, notes };
        frame.to_svg(|svg| {
            self.write_grid(svg)?;
            self.write_guides(svg)?;
            for curve in self.curves.iter().rev() {
                self.write_curve(svg, curve)?;
            }
            self.write_labels(svg)?;
            self.write_points(svg)
        })
    }

    fn x_at(&self, x: f64) -> f64 {
        PLOT.left + (PLOT.right - PLOT.left) * self.x.part(x)
    }

    fn y_at(&self, y: f64) -> f64 {
        PLOT.bottom - (PLOT.bottom - PLOT.top) * self.y.part(y)
    }

    fn write_grid(&self, svg: &mut String) -> fmt::Result {
        let color = |label: &Option<_>| if label.is_some() { "#c8c8c8" } else { "#efefef" };
        let Area { left, right, top, bottom } = PLOT;
        for tick in self.x.ticks() {
            let x = self.x_at(tick.value);
            line(svg, (x, top), (x, bottom), color(&tick.label))?;
            if let Some(label) = tick.label {
                text(svg, (x, bottom + 20.0), r#"text-anchor="middle""#, &label)?;
            }
        }
        for tick in self.y.ticks() {
            let y = self.y_at(tick.value);
            line(svg, (left, y), (right, y), color(&tick.label))?;
            if let Some(label) = tick.label {
                text(svg, (left - 8.0, y + 4.5), r#"text-anchor="end""#, &label)?;
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
        let begins = |i: usize| i == 0 || curve.breaks.binary_search(&i).is_ok();
        let mut path = String::new();
        for (i, &(x, y)) in curve.points.iter().enumerate() {
            let command = if begins(i) { 'M' } else { 'L' };
            write!(path, "{command}{:.1} {:.1}", self.x_at(x), self.y_at(y))?;
            if begins(i) && (i + 1 == curve.points.len() || begins(i + 1)) {
                // A dot: the ends of lines are round.
                path.push_str("h0");
            }
        }
        let dashes = if curve.is_dashed { r#" stroke-dasharray="6 4""# } else { "" };
        let width = if curve.is_dashed { 1.5 } else { 2.5 };
        writeln!(
            svg,
            r#"<path d="{path}" fill="none" stroke="{}" stroke-width="{width}" stroke-linecap="round"{dashes}/>"#,
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
}
