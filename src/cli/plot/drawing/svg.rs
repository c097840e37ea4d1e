//! What both kinds of charts are drawn with.

use std::fmt::{self, Write};

pub(super) const WIDTH: f64 = 1000.0;
pub(super) const INK: &str = "#222222";
pub(super) const FAINT: &str = "#6b6b6b";
const NOTE_HEIGHT: f64 = 17.0;
const FONT: &str = r#"font-family="Helvetica, Arial, sans-serif" font-size="13""#;

/// The words around a drawing: their left edge, and where the drawing ends.
pub(super) struct Frame<'c> {
    pub(super) left: f64,
    pub(super) bottom: f64,
    pub(super) title: &'c str,
    pub(super) subtitle: &'c str,
    pub(super) notes: &'c [String],
}

impl Frame<'_> {
    /// A whole document with `draw` between title and notes.
    pub(super) fn to_svg(&self, draw: impl FnOnce(&mut String) -> fmt::Result) -> String {
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut svg, draw);
        svg
    }

    fn write(
        &self,
        svg: &mut String,
        draw: impl FnOnce(&mut String) -> fmt::Result,
    ) -> fmt::Result {
        let &Self { left, bottom, title, subtitle, notes } = self;
        let height = bottom + 62.0 + NOTE_HEIGHT * notes.len() as f64;
        writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT} fill="{INK}">"#
        )?;
        writeln!(svg, "<title>{}</title>", escaped(title))?;
        writeln!(svg, r##"<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>"##)?;
        text(svg, (left, 32.0), r#"font-size="19" font-weight="bold""#, title)?;
        text(svg, (left, 53.0), &format!(r#"fill="{FAINT}""#), subtitle)?;
        draw(svg)?;
        for (i, note) in notes.iter().enumerate() {
            let y = bottom + 66.0 + NOTE_HEIGHT * i as f64;
            text(svg, (left, y), &format!(r#"font-size="12" fill="{FAINT}""#), note)?;
        }
        writeln!(svg, "</svg>")
    }
}

pub(super) fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), color: &str) -> fmt::Result {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(svg, r#"<path d="M{x1:.1} {y1:.1} L{x2:.1} {y2:.1}" stroke="{color}"/>"#)
}

pub(super) fn text(svg: &mut String, at: (f64, f64), style: &str, text: &str) -> fmt::Result {
    writeln!(svg, r#"<text x="{:.1}" y="{:.1}" {style}>{}</text>"#, at.0, at.1, escaped(text))
}

/// Text as it may stand in a document: markup escaped, characters that XML does not have replaced.
pub(super) fn escaped(text: &str) -> String {
    let is_barred = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    let text = text.replace(is_barred, "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A rounded number with its thousands apart: `1,000`.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", &*digits), |digits| ("-", digits));
    let mut grouped = sign.to_owned();
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
    fn text_is_readable_whatever_it_says() {
        assert_eq!(escaped("a < b & c"), "a &lt; b &amp; c");
        assert_eq!(escaped("a\0\u{ffff}"), "a\u{fffd}\u{fffd}");
        assert_eq!([1.0, 1e3, 1e7, -1234.0].map(grouped), ["1", "1,000", "10,000,000", "-1,234"]);
    }
}
