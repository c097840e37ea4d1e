//! Bar charts and line charts as SVG, drawn with plotters.
//!
//! ```text
//! title, subtitle                           Page
//! bars, or lines with names at their ends   Bars, draw_lines; numbers lie on an Axis or a Scale
//! rows of marks                             Strips
//! notes                                     Page
//! ```
//!
//! The same chart gives the same bytes. The file has no scripts, fonts or links. plotters rounds all positions to whole
//! units, so a unit is half a pixel. `benches/figures.rs` uses this file, too.

use std::io;
use std::ops::Range;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{BoldPoints, KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Result of drawing.
pub type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<io::Error>>;
/// A part of a page.
pub type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
/// The area between two scales.
pub type Plot<'a, 's, X, Y> = ChartContext<'a, SVGBackend<'s>, Cartesian2d<X, Y>>;

/// A scale along one side of a plot. It maps numbers to positions, and marks and names some of
/// them.
pub trait Scale: Ranged<ValueType = f64> + ValueFormatter<f64> {}
impl<T: Ranged<ValueType = f64> + ValueFormatter<f64>> Scale for T {}

/// Colours that colour-blind readers can distinguish (after Okabe and Ito), dark enough for text.
pub const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(168, 111, 0),
    RGBColor(23, 134, 158),
    RGBColor(122, 81, 149),
    RGBColor(51, 51, 51),
];
pub const INK: RGBColor = RGBColor(34, 34, 34);
pub const FAINT: RGBColor = RGBColor(107, 107, 107);

const WIDTH: u32 = 2000;
const HEAD: u32 = 140;
const LEFT: i32 = 40;
/// Space below a plot for the names of its marks and its scale.
const FOOT: u32 = 100;
/// Height of a line of text.
const LINE: i32 = 34;
/// Height of a line chart.
pub const LINES_HEIGHT: u32 = 960;
/// Height of a bar with the space below it.
const ROW: f64 = 30.0;
/// Height of a row of marks.
const STRIP: u32 = 60;
/// Space above a group of bars, in rows.
const GAP: f64 = 0.8;
const LEGEND_COLUMNS: usize = 4;

/// Returns a text style. `side` is the side of the text that lies at its position.
pub fn text(size: f64, color: RGBColor, side: HPos) -> TextStyle<'static> {
    // plotters divides the size by this factor.
    let font = FontDesc::new(FontFamily::SansSerif, size * 1.24, FontStyle::Normal);
    TextStyle { font, color: color.to_backend_color(), pos: Pos::new(side, VPos::Center) }
}

/// The frame of a chart: title, notes and size.
pub struct Page<'p> {
    pub title: &'p str,
    pub subtitle: &'p str,
    /// Height of the chart.
    pub height: u32,
    /// Notes below the chart, one per line.
    pub notes: &'p [String],
}

impl Page<'_> {
    /// Returns a whole SVG document. `draw` draws the chart between title and notes.
    pub fn to_svg(&self, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Drawn<String> {
        let height = HEAD + self.height + LINE as u32 * (self.notes.len() as u32 + 1);
        let mut svg = String::new();
        let page = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        page.fill(&WHITE)?;
        let mut bold = text(38.0, INK, HPos::Left);
        bold.font = bold.font.style(FontStyle::Bold);
        page.draw_text(self.title, &bold, (LEFT, 52))?;
        page.draw_text(self.subtitle, &text(25.0, FAINT, HPos::Left), (LEFT, 98))?;
        let (above, notes) = page.split_vertically(HEAD + self.height);
        draw(&above.split_vertically(HEAD).1)?;
        for (note, y) in self.notes.iter().zip((LINE..).step_by(LINE as usize)) {
            notes.draw_text(note, &text(24.0, FAINT, HPos::Left), (LEFT, y))?;
        }
        page.present()?;
        drop((page, above, notes));
        // This replaces the first line, which sets a width in pixels and has no title.
        let body = svg.split_once('\n').map_or("", |(_, body)| body);
        let title = self.title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let head = format!(r#"xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}""#);
        let svg = format!("<svg {head}>\n<title>{title}</title>\n{body}");
        // XML does not allow all characters.
        let is_barred = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}');
        Ok(svg.replace(is_barred, "\u{fffd}"))
    }
}

/// A linear scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub min: f64,
    pub max: f64,
    /// Marked numbers and their names.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Creates an axis for all of `values`, with both ends on ticks.
    ///
    /// It starts at 0 if `is_from_zero`. Ticks are whole numbers if all values are.
    pub fn from_values(values: impl IntoIterator<Item = f64>, is_from_zero: bool) -> Self {
        let start = if is_from_zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        let widen = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let least_step = if values.iter().all(|value| value.fract() == 0.0) { 1.0 } else { 0.0 };
        let (low, high) = values.into_iter().fold(start, widen);
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        // The limits keep the difference of both ends finite.
        let low = low.max(f64::MIN / 8.0);
        let high = high.min(f64::MAX / 8.0);
        let high = if low < high { high } else { low + low.abs().max(1.0) };
        let step = round_step(((high - low) / 8.0).max(least_step));
        let first = (low / step).floor();
        let last = (high / step).ceil();
        let tick = |i: u32| (first + f64::from(i)) * step;
        let ticks = (0..=(last - first) as u32).map(|i| (tick(i), named(tick(i), step)));
        Self { min: first * step, max: last * step, ticks: ticks.collect() }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        let part = (value - self.min) / (self.max - self.min);
        start + (f64::from(end - start) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let ticks = self.ticks.iter().filter(|_| !hint.weight().allow_light_points());
        ticks.map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.min..self.max
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|(at, _)| at == value);
        tick.map(|(_, name)| name.clone()).unwrap_or_default()
    }
}

/// Returns the smallest number that is not less than `least`, of 1, 2 and 5 times powers of ten.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let fits = |multiple: &f64| multiple * power >= least * (1.0 - 1e-9);
    [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * power
}

/// Formats a number with as many digits as `step` needs. Thousands are separated from 10,000 on, as
/// 1990 may be a year.
fn named(value: f64, step: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 1e-4 && step < 1e-6 => format!("{value:.2e}"),
        _ if step < 1.0 => format!("{value:.*}", (-step.log10()).ceil().min(12.0) as usize),
        size if size < 1e4 => format!("{value:.0}"),
        _ => grouped(value),
    }
}

/// Formats the number at a bar, as a whole number or with at least two digits.
fn shown(value: f64) -> String {
    let is_whole = value.fract() == 0.0 || value >= 10.0;
    if is_whole { grouped(value) } else { named(value, 10_f64.powf(value.log10().floor() - 1.0)) }
}

/// Formats a rounded number with separated thousands: `1,000`.
pub fn grouped(value: f64) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:.2e}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut grouped = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Configures the grid of a plot and the texts along its sides.
fn mesh<'a, 'b, 's, X: Scale, Y: Scale>(
    plot: &'b mut Plot<'a, 's, X, Y>,
    x_name: &str,
) -> MeshStyle<'a, 'b, X, Y, SVGBackend<'s>> {
    let mut mesh = plot.configure_mesh();
    mesh.x_desc(x_name).label_style(text(25.0, INK, HPos::Center)).set_all_tick_mark_size(8);
    mesh.axis_style(FAINT).bold_line_style(RGBColor(200, 200, 200));
    mesh.light_line_style(RGBColor(239, 239, 239));
    mesh
}

/// A line of a line chart.
pub struct Curve {
    /// Name, which is drawn to the right of the line's end.
    pub name: String,
    pub color: RGBColor,
    /// Runs of joined points, by ascending place. A run of one point is drawn as a dot.
    pub runs: Vec<Vec<(f64, f64)>>,
}

/// Draws curves between two scales with names. The first curve lies on top.
pub fn draw_lines<'s, X: Scale, Y: Scale>(
    area: &Area<'s>,
    (x_name, x): (&str, X),
    (y_name, y): (&str, Y),
    curves: &[Curve],
) -> Drawn<Plot<'static, 's, X, Y>> {
    // Width of a digit, approximately.
    let width = |value: &f64| 15 * y.format_ext(value).len();
    let widest = y.key_points(BoldPoints(0)).iter().map(width).max();
    let mut builder = ChartBuilder::on(area);
    builder.margin_top(40).margin_left(LEFT).margin_right(520);
    builder.x_label_area_size(FOOT).y_label_area_size(60 + widest.unwrap_or_default() as u32);
    let mut plot = builder.build_cartesian_2d(x, y)?;
    mesh(&mut plot, x_name).y_desc(y_name).draw()?;
    for curve in curves.iter().rev() {
        for run in &curve.runs {
            let inner = plot.plotting_area();
            match run.as_slice() {
                [dot] => inner.draw(&Circle::new(*dot, 5, curve.color.filled()))?,
                run => inner.draw(&PathElement::new(run, curve.color.stroke_width(5)))?,
            }
        }
    }
    let (_, top) = area.get_base_pixel();
    let end = |curve: &'_ Curve| Some(plot.backend_coord(curve.runs.last()?.last()?).1 - top);
    let mut ends: Vec<_> = curves.iter().filter_map(|curve| Some((end(curve)?, curve))).collect();
    ends.sort_by_key(|(y, _)| *y);
    let right = plot.plotting_area().get_x_axis_pixel_range().end;
    let bottom = plot.plotting_area().get_y_axis_pixel_range().end - top;
    let places = moved_apart(ends.iter().map(|(y, _)| *y), bottom);
    for ((end, Curve { name, color, .. }), y) in ends.into_iter().zip(places) {
        area.draw(&PathElement::new([(right + 4, end), (right + 28, y)], color))?;
        area.draw_text(name, &text(25.0, *color, HPos::Left), (right + 36, y))?;
    }
    Ok(plot)
}

/// Moves ascending positions of text lines apart and keeps their order.
///
/// Each position is at least one line below the previous one, and none is below `bottom`.
fn moved_apart(wanted: impl Iterator<Item = i32>, bottom: i32) -> Vec<i32> {
    let below = |free: &mut i32, y: i32| {
        let place = y.max(*free);
        *free = place + LINE;
        Some(place)
    };
    let mut places: Vec<i32> = wanted.scan(i32::MIN, below).collect();
    let mut free = bottom;
    for place in places.iter_mut().rev() {
        *place = free.min(*place);
        free = *place - LINE;
    }
    places
}

/// Bars that start at the lower end of their scale.
pub struct Bars {
    /// Names and colours of the bars of a group, in order. Those without a name are not in the
    /// legend.
    pub series: Vec<(String, RGBColor)>,
    /// Groups from top to bottom.
    pub groups: Vec<Group>,
}

/// Bars that belong together.
pub struct Group {
    /// Label, which is drawn to the left of the group.
    pub label: String,
    /// Values, one per series. `None` has no bar.
    pub values: Vec<Option<f64>>,
}

impl Bars {
    /// Height of the chart.
    pub fn height(&self) -> u32 {
        let num_bars: usize = self.groups.iter().map(Group::num_bars).sum();
        let num_rows = num_bars as f64 + GAP * (self.groups.len() + 1) as f64;
        // One more unit, as both ends of the range take a unit.
        self.legend_height() + (ROW * num_rows).round() as u32 + 1 + FOOT
    }

    fn legend(&self) -> impl Iterator<Item = &(String, RGBColor)> {
        self.series.iter().filter(|(name, _)| !name.is_empty())
    }

    fn legend_height(&self) -> u32 {
        self.legend().count().div_ceil(LEGEND_COLUMNS) as u32 * LINE as u32
    }

    /// Draws the bars on a scale with a name.
    pub fn draw<X: Scale>(&self, area: &Area<'_>, (x_name, x): (&str, X)) -> Drawn {
        let (legend, area) = area.split_vertically(self.legend_height());
        for (i, (name, color)) in self.legend().enumerate() {
            let row = (i / LEGEND_COLUMNS) as i32;
            let column = (i % LEGEND_COLUMNS) as i32;
            let x = LEFT + 480 * column;
            let y = LINE * row;
            legend.draw(&Rectangle::new([(x, y), (x + 26, y + 26)], color.filled()))?;
            legend.draw_text(name, &text(25.0, INK, HPos::Left), (x + 38, y + 13))?;
        }
        let mut ticks = Vec::new();
        let mut bars = Vec::new();
        let mut y = GAP;
        for group in &self.groups {
            ticks.push((y + group.num_bars() as f64 / 2.0, group.label.clone()));
            for (value, (_, color)) in group.values.iter().zip(&self.series) {
                let Some(value) = *value else { continue };
                bars.push((y, value, color));
                y += 1.0;
            }
            y += GAP;
        }
        let from = x.range().start;
        let y = Axis { min: y, max: 0.0, ticks };
        let mut builder = ChartBuilder::on(&area);
        builder.margin_left(LEFT).margin_right(200).x_label_area_size(FOOT).y_label_area_size(460);
        let mut plot = builder.build_cartesian_2d(x, y)?;
        mesh(&mut plot, x_name).disable_y_mesh().draw()?;
        for (y, value, color) in bars {
            let corners = [(from, y), (value, y + 0.87)];
            plot.plotting_area().draw(&Rectangle::new(corners, color.filled()))?;
            let number = Text::new(shown(value), (12, 0), text(24.0, INK, HPos::Left));
            plot.plotting_area().draw(&(EmptyElement::at((value, y + 0.45)) + number))?;
        }
        Ok(())
    }
}

/// Rows of marks over one scale.
pub struct Strips {
    /// Rows from top to bottom: a label, and the places of its marks.
    pub rows: Vec<(String, Vec<f64>)>,
    /// Places of faint lines through all rows.
    pub borders: Vec<f64>,
}

impl Strips {
    /// Height of the chart.
    pub fn height(&self) -> u32 {
        STRIP * self.rows.len() as u32 + 1 + FOOT
    }

    /// Draws the rows on a scale with a name.
    pub fn draw<X: Scale>(&self, area: &Area<'_>, (x_name, x): (&str, X)) -> Drawn {
        let num_rows = self.rows.len() as f64;
        let tick = |(row, (label, _)): (usize, &(String, _))| (row as f64 + 0.5, label.clone());
        let ticks = self.rows.iter().enumerate().map(tick).collect();
        let y = Axis { min: num_rows, max: 0.0, ticks };
        let mut builder = ChartBuilder::on(area);
        builder.margin_left(LEFT).margin_right(60).x_label_area_size(FOOT).y_label_area_size(460);
        let mut plot = builder.build_cartesian_2d(x, y)?;
        mesh(&mut plot, x_name).disable_mesh().draw()?;
        let inner = plot.plotting_area();
        for &place in &self.borders {
            inner.draw(&PathElement::new([(place, 0.0), (place, num_rows)], RGBColor(225, 225, 225)))?;
        }
        for ((row, (_, places)), color) in self.rows.iter().enumerate().zip(COLORS.iter().cycle()) {
            let ends = [0.15, 0.85].map(|part| row as f64 + part);
            for &place in places {
                let mark = [(place, ends[0]), (place, ends[1])];
                inner.draw(&PathElement::new(mark, color.stroke_width(2)))?;
            }
        }
        Ok(())
    }
}

impl Group {
    fn num_bars(&self) -> usize {
        self.values.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn axes_end_on_ticks() {
        let axis = Axis::from_values([3.0, 1234.0], true);
        assert_eq!((axis.min, axis.max), (0.0, 1400.0));
        assert_eq!(names(&axis), ["0", "200", "400", "600", "800", "1000", "1200", "1400"]);
        assert_eq!(names(&Axis::from_values([1991.0, 1993.0], false)), ["1991", "1992", "1993"]);
        assert_eq!(names(&Axis::from_values([0.5, 0.72], false)).last(), Some(&"0.75"));
        assert_eq!(names(&Axis::from_values([-30_000.0], true))[0], "-30,000");
        assert_eq!(names(&Axis::from_values([1e-9, 3e-9], false))[..2], ["1.00e-9", "1.50e-9"]);
        assert_eq!([0.0, 700.0, 1400.0].map(|value| axis.map(&value, (10, 110))), [10, 60, 110]);
    }

    #[test]
    fn odd_values_have_an_axis() {
        let most = [f64::MAX, f64::MIN];
        for values in [&[] as &[f64], &[0.0], &[f64::NAN, 7.0], &most, &[1e-300], &[1e300]] {
            for is_from_zero in [true, false] {
                let axis = Axis::from_values(values.iter().copied(), is_from_zero);
                assert!(axis.min < axis.max && (axis.max - axis.min).is_finite(), "{axis:?}");
                assert!((2..=17).contains(&axis.ticks.len()), "{axis:?}");
            }
        }
    }

    #[test]
    fn numbers_are_readable() {
        let numbers = [0.0042, 1.234, 3.0, 9.96, 1234.0, 1e7, 1e300].map(shown);
        assert_eq!(numbers, ["0.0042", "1.2", "3", "10.0", "1,234", "10,000,000", "1.00e300"]);
        assert_eq!(grouped(-1234.0), "-1,234");
    }

    #[test]
    fn names_keep_their_order_and_distance() {
        let places = |wanted: &[i32]| moved_apart(wanted.iter().copied(), 200);
        assert_eq!(places(&[10, 100]), [10, 100]);
        assert_eq!(places(&[0, 1, 100, 101]), [0, 34, 100, 134]);
        assert_eq!(places(&[150, 200, 200]), [132, 166, 200]);
        assert!(places(&[]).is_empty());
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_text_is_escaped() {
        let series = [("one", COLORS[0]), ("two", COLORS[1])];
        let series = series.map(|(name, color)| (name.to_owned(), color)).into();
        let groups = vec![Group { label: "a\0<b".to_owned(), values: vec![None, Some(10.0)] }];
        let bars = Bars { series, groups };
        let page = Page { title: "a & b", subtitle: "", height: bars.height(), notes: &[] };
        let svg = page.to_svg(|area| bars.draw(area, ("", Axis::from_values([20.0], true)))).unwrap();
        assert!(svg.contains("<title>a &amp; b</title>"), "{svg}");
        assert!(svg.contains("\na\u{fffd}&lt;b\n"), "{svg}");
        // Half of the distance between 500 and 1799.
        let bar = r##"width="650" height="26" opacity="1" fill="#D55E00""##;
        assert_eq!(svg.matches(bar).count(), 1, "{svg}");
        // The first series has only its mark in the legend.
        assert_eq!(svg.matches("#0072B2").count(), 1, "{svg}");
    }
}
