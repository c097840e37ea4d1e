//! The figures of `benches/figures`: the codec that wins at each link speed, and the rates of the
//! decode layouts of the thesis's figure 6.1.
//!
//! `cargo bench --bench figures` writes the figures. With `-- --check` it writes nothing and fails
//! if a file differs from the output. Before each run it checks the values that the figures show.
//!
//! The first two figures draw equation 3.4 (transfer first, then decode) as figure 6.3 of the
//! thesis (Vonk, "GSST", TU Delft, 2024) does, but over four decades of link speed instead of 0 to
//! 100 GB/s. The drawing code is that of `tadoc plot`, with logarithmic scales.

#![allow(missing_docs)]

#[path = "../src/cli/plot/drawing.rs"]
#[allow(dead_code)]
mod drawing;

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use datafusion_tadoc::throughput::codecs::{Codec, LINEITEM_H200, THESIS_SECTION_6_3, best_at};
use drawing::{Area, Bars, COLORS, Curve, Drawn, FAINT, Group, INK, LINES_HEIGHT, Page, draw_lines, grouped, text};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const LINKS_GB_PER_S: Range<f64> = 0.1..1000.0;
const TEXT_GB_PER_S: Range<f64> = 0.1..2000.0;
const POINTS_PER_DECADE: u32 = 24;
const RAW: Codec = Codec { name: "uncompressed", ratio: 1.0, decode_gb_per_s: f64::INFINITY };

const GREY: RGBColor = RGBColor(138, 138, 138);

/// Link speeds in GB/s that the figures name.
const GUIDES: [(f64, &str); 5] =
    [(1.25, "10 GbE"), (6.5, "NVMe 4"), (26.0, "PCIe 4"), (55.0, "PCIe 5"), (450.0, "NVLink-C2C")];

fn main() -> Result<(), Box<dyn Error>> {
    check_layouts();
    let thesis = thesis();
    let measured = measured();
    thesis.check();
    measured.check();
    let expected = "slowest links: nvCOMP GDeflate; behind the fastest drawn: GSST-12;";
    assert!(measured.notes[2].contains(expected), "{:?}", measured.notes);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/figures");
    let is_check = std::env::args().any(|argument| argument == "--check");
    for (name, svg) in [
        ("ingestion_thesis.svg", thesis.to_svg()?),
        ("ingestion_measured.svg", measured.to_svg()?),
        ("layouts.svg", layouts()?),
    ] {
        let path = folder.join(name);
        if !is_check {
            std::fs::write(path, svg)?;
        } else if std::fs::read_to_string(path)?.replace("\r\n", "\n") != svg {
            return Err(format!("{name} is stale: cargo bench --bench figures").into());
        }
    }
    Ok(())
}

/// A figure of the throughput of codecs over the speed of a link.
struct Ingestion {
    title: &'static str,
    subtitle: &'static str,
    curves: Vec<Curve>,
    /// Places where lines cross, each with its meaning.
    crossings: Vec<((f64, f64), String)>,
    notes: Vec<String>,
}

/// Returns figure 6.3 of the thesis, drawn from the thesis's numbers.
fn thesis() -> Ingestion {
    let [gsst, ans, bitcomp, zstd] = THESIS_SECTION_6_3;
    let crossings = [crossing(&gsst, &zstd, "GSST passes Zstd"), crossing(&gsst, &ans, "ANS passes GSST")];
    let notes = [
        "Ratios and GSST from section 6.2: 2.74 at 191 GB/s, ANS 1.84, Bitcomp 1.09 at 279, Zstd 3.37.",
        "Decoding rates of ANS (314 GB/s) and Zstd (11.0 GB/s) are those that cross GSST at 87 and 0.8 \
         GB/s, as section 6.3",
        "says; with the percentages of section 6.2 (285 and 9.8 GB/s) the lines cross at 104 and 0.70 \
         GB/s.",
    ];
    Ingestion {
        title: "Which codec arrives first: the thesis (A100)",
        subtitle: "Transfer, then decode (Vonk 2024, equation 3.4 and figure 6.3), TPC-H text",
        curves: curves(&[gsst, ans, bitcomp, zstd]),
        crossings: crossings.into_iter().flatten().collect(),
        notes: notes.map(str::to_owned).into(),
    }
}

/// Returns the same figure from measurements on one H200, with all codecs on whole lines of
/// `lineitem`.
fn measured() -> Ingestion {
    let [twelve, _, eight, _, ans, snappy, lz4, gdeflate, zstd] = LINEITEM_H200;
    let twelve = Codec { name: "GSST-12", ..twelve };
    let eight = Codec { name: "GSST-8", ..eight };
    let raw_wins = RAW.crossing_gb_per_s(&twelve).unwrap_or_default();
    let all = [twelve, eight, ans, snappy, lz4, gdeflate, zstd];
    let [slowest, fastest] =
        [LINKS_GB_PER_S.start, LINKS_GB_PER_S.end].map(|link| best_at(&all, link).map_or("", |codec| codec.name));
    Ingestion {
        title: "Which codec arrives first: measured on one H200",
        subtitle: "Transfer, then decode; lineitem.tbl of TPC-H, 1.4 GiB, every stored byte counted",
        curves: curves(&all),
        crossings: crossing(&twelve, &gdeflate, "GSST-12 passes GDeflate").into_iter().collect(),
        notes: vec![
            "GSST: this crate, optimal parse. Others: nvCOMP 6.0.0.12, the same bytes in the same run \
             (benches/results), GDeflate at"
                .to_owned(),
            "level 4, chunks of 64 KiB, ANS of 256.".to_owned(),
            format!(
                "Best behind the slowest links: {slowest}; behind the fastest drawn: {fastest}; \
                 sending the text as it is wins above {raw_wins:.0} GB/s."
            ),
        ],
    }
}

fn crossing(codec: &Codec, other: &Codec, what: &str) -> Option<((f64, f64), String)> {
    let link = codec.crossing_gb_per_s(other)?;
    let label = format!("{link:.1}: {what}").replace(".0:", ":");
    Some(((link, codec.serial_gb_per_s(link)), label))
}

/// Returns the curves of codecs, and a grey curve of text that is not compressed.
fn curves(codecs: &[Codec]) -> Vec<Curve> {
    let named = |(codec, color): (&Codec, RGBColor)| {
        let name = format!("{} ({:.2} at {:.0})", codec.name, codec.ratio, codec.decode_gb_per_s);
        curve(codec, name, color)
    };
    let mut curves: Vec<Curve> = codecs.iter().zip(COLORS).map(named).collect();
    curves.push(curve(&RAW, RAW.name.to_owned(), GREY));
    curves
}

fn curve(codec: &Codec, name: String, color: RGBColor) -> Curve {
    let Range { start, end } = LINKS_GB_PER_S;
    let num_points = POINTS_PER_DECADE * (end / start).log10().round() as u32;
    let link = |i: u32| start * (end / start).powf(f64::from(i) / f64::from(num_points));
    let points = (0..=num_points).map(|i| (link(i), codec.serial_gb_per_s(link(i))));
    Curve { name, color, runs: vec![points.collect()] }
}

impl Ingestion {
    /// Checks that every point lies inside the plot and that lines cross.
    fn check(&self) {
        let is_on = |range: &Range<f64>, value| (range.start * 0.999..=range.end * 1.001).contains(&value);
        for curve in &self.curves {
            let is_inside = |at: &(f64, f64)| is_on(&LINKS_GB_PER_S, at.0) && is_on(&TEXT_GB_PER_S, at.1);
            assert!(curve.runs.iter().flatten().all(is_inside), "{}: {}", self.title, curve.name);
        }
        assert!(!self.crossings.is_empty(), "{} has no crossing", self.title);
    }

    fn to_svg(&self) -> Drawn<String> {
        let Self { title, subtitle, notes, .. } = self;
        Page { title, subtitle, height: LINES_HEIGHT, notes }.to_svg(|area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let x = ("link to the device, GB/s of stored bytes", Decades(LINKS_GB_PER_S));
        let y = ("ingestion, GB/s of text", Decades(TEXT_GB_PER_S));
        let plot = draw_lines(area, x, y, &self.curves)?;
        let (_, top) = area.get_base_pixel();
        let at = |at: (f64, f64)| {
            let (x, y) = plot.backend_coord(&at);
            (x, y - top)
        };
        let (right, above) = at((LINKS_GB_PER_S.end, TEXT_GB_PER_S.end));
        let legend = text(22.0, FAINT, HPos::Left);
        area.draw_text("codec (ratio at GB/s decoded)", &legend, (right + 36, above - 18))?;
        for (link, name) in GUIDES {
            let (x, bottom) = at((link, TEXT_GB_PER_S.start));
            let ends = [(x, above), (x, bottom)];
            area.draw(&PathElement::new(ends, GREY))?;
            area.draw_text(name, &text(22.0, FAINT, HPos::Center), (x, above - 18))?;
        }
        for (place, what) in &self.crossings {
            let (x, y) = at(*place);
            area.draw(&Circle::new((x, y), 9, WHITE.filled()))?;
            area.draw(&Circle::new((x, y), 9, INK.stroke_width(2)))?;
            area.draw_text(what, &text(24.0, INK, HPos::Right), (x - 18, y - 26))?;
        }
        Ok(())
    }
}

/// A logarithmic scale from one positive number to another. Its powers of ten have labels.
struct Decades(Range<f64>);

impl Ranged for Decades {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        let part = (value / self.0.start).log10() / (self.0.end / self.0.start).log10();
        start + (f64::from(end - start) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let multiples = if hint.weight().allow_light_points() { 2..10 } else { 1..2 };
        let decades = self.0.start.log10().floor() as i32..=self.0.end.log10().ceil() as i32;
        let low = self.0.start * (1.0 - 1e-9);
        let high = self.0.end * (1.0 + 1e-9);
        let of_decade = |decade| multiples.clone().map(move |i| f64::from(i) * 10_f64.powi(decade));
        decades.flat_map(of_decade).filter(|value| (low..=high).contains(value)).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
}

impl ValueFormatter<f64> for Decades {
    fn format_ext(&self, value: &f64) -> String {
        if *value < 1.0 { format!("{value}") } else { grouped(*value) }
    }
}

/// A way to share out the codes of blocks among threads: its name, the GB/s of text that the
/// thesis's kernel decodes on an A100 (if there is such a kernel), and the GB/s that
/// `gsst_layouts.rs` measures on an H200. Blocks and splits have the best size for each layout.
type Layout = (&'static str, Option<f64>, f64);

// No table gives the bars of figure 6.1. Section 6.1 gives the factors from one bar to the next:
// splits are nine times as fast as blocks, shared memory is three times as fast as splits,
// alignment is nearly five times as fast again, the coalesced format is a third slower, its
// asynchronous copies gain 15 %, and tuned parameters gain 17 % over alignment. Section 6.2 gives
// the last bar, 191 GB/s.
const TUNED: f64 = 191.0;
const ALIGNED: f64 = TUNED / 1.17;
const SHARED: f64 = ALIGNED / 5.0;
const SPLITS: f64 = SHARED / 3.0;
const BLOCKS: f64 = SPLITS / 9.0;
const COALESCED: f64 = ALIGNED * 2.0 / 3.0 * 1.15;

/// Layouts in the thesis's order, with this crate's layout at the end.
const LAYOUTS: [Layout; 7] = [
    ("thread per block", Some(BLOCKS), 64.3),
    ("the same, aligned words", None, 118.6),
    ("thread per split", Some(SPLITS), 79.3),
    ("the same, shared memory", Some(SHARED), 78.9),
    ("the same, aligned words", Some(TUNED), 359.0),
    ("coalesced codes", Some(COALESCED), 359.7),
    ("warp per split, whole lines", None, 2402.8),
];

/// Checks that the factors lead back to the first bar.
fn check_layouts() {
    let thesis = LAYOUTS.map(|(_, thesis, _)| thesis.map(f64::round));
    let expected = [Some(1.0), None, Some(11.0), Some(33.0), Some(191.0), Some(125.0), None];
    assert_eq!(thesis, expected, "factors of section 6.1");
}

/// Draws figure 6.1 of the thesis from the numbers in its text, and the same layouts on one H200.
fn layouts() -> Drawn<String> {
    let group = |(name, thesis, here): Layout| Group { label: name.to_owned(), values: vec![thesis, Some(here)] };
    let series = [("thesis, A100".to_owned(), COLORS[1]), ("here, H200".to_owned(), COLORS[0])];
    let bars = Bars { series: series.into(), groups: LAYOUTS.map(group).into() };
    let notes = [
        "Thesis: from the factors its section 6.1 gives, back from 191 GB/s; its text is dbgen's, 10 GB. \
         Here: cargo bench",
        "--bench gsst_layouts (benches/results). The memory of an H200 is three times as fast as that \
         of an A100; the rest is layout.",
    ];
    let page = Page {
        title: "Decode layouts of GSST: the thesis's figure 6.1, and the same on one H200",
        subtitle: "8-bit codes, comments of TPC-H lineitem, blocks and splits of the best size each",
        height: bars.height(),
        notes: &notes.map(str::to_owned),
    };
    let scale = ("GB/s of text, in device memory", Decades(1.0..10_000.0));
    page.to_svg(|area| bars.draw(area, scale))
}
