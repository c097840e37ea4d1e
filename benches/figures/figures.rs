//! The figures of `benches/figures`: which codec wins at which link speed, and what the layouts of the
//! thesis's figure 6.1 decode (`layouts`).
//!
//! The first two draw equation 3.4 (transfer first, then decode) as figure 6.3 of the thesis does, over four
//! decades of link speed instead of 0 to 100 GB/s. A test compares the files with what this makes;
//! `UPDATE_FIGURES=1 cargo test figures` writes them.

use super::codecs::{Codec, LINEITEM_H200, THESIS_SECTION_6_3, best_at};
use super::layouts::{self, LAYOUTS};
use crate::plot::{Axis, BarChart, COLORS, Curve, Group, Guide, LineChart, Point, Scale};

const LINKS_GB_PER_S: (f64, f64) = (0.1, 1000.0);
const POINTS_PER_DECADE: u32 = 24;
const RAW: &str = "uncompressed";

/// Files below `benches/figures` and what is in them.
pub fn files() -> [(&'static str, String); 3] {
    [
        ("ingestion_thesis.svg", thesis().to_svg()),
        ("ingestion_measured.svg", measured().to_svg()),
        ("layouts.svg", layouts().to_svg()),
    ]
}

/// Figure 6.3 of the thesis, from its own numbers.
pub fn thesis() -> LineChart {
    let [gsst, ans, bitcomp, zstd] = THESIS_SECTION_6_3;
    let crossing = |other: &Codec, name: &str| {
        let link = gsst.crossing_gb_per_s(other)?;
        let label = format!("{link:.1}: {name}").replace(".0:", ":");
        Some(Point { at: (link, gsst.serial_gb_per_s(link)), label })
    };
    let points = [crossing(&zstd, "GSST passes Zstd"), crossing(&ans, "ANS passes GSST")];
    chart(
        "Which codec arrives first: the thesis (A100)",
        "Transfer, then decode (Vonk 2024, equation 3.4 and figure 6.3), TPC-H text",
        &[gsst, ans, bitcomp, zstd],
        points.into_iter().flatten().collect(),
        &[
            "Ratios and GSST from section 6.2: 2.74 at 191 GB/s, ANS 1.84, Bitcomp 1.09 at 279, \
             Zstd 3.37.",
            "Decoding rates of ANS (314 GB/s) and Zstd (11.0 GB/s) are those that cross GSST at 87 \
             and 0.8 GB/s, as section 6.3",
            "says; with the percentages of section 6.2 (285 and 9.8 GB/s) the lines cross at 104 \
             and 0.70 GB/s.",
        ],
    )
}

/// The same from what was measured on one H200, all codecs on whole lines of `lineitem`.
pub fn measured() -> LineChart {
    let [twelve, _, eight, _, ans, snappy, lz4, gdeflate, zstd] = LINEITEM_H200;
    let (twelve, eight) = (Codec { name: "GSST-12", ..twelve }, Codec { name: "GSST-8", ..eight });
    let crossing = twelve.crossing_gb_per_s(&gdeflate).map(|link| Point {
        at: (link, twelve.serial_gb_per_s(link)),
        label: format!("{link:.1}: GSST-12 passes GDeflate"),
    });
    let raw = Codec { name: RAW, ratio: 1.0, decode_gb_per_s: f64::INFINITY };
    let raw_wins = raw.crossing_gb_per_s(&twelve).unwrap_or_default();
    let all = [twelve, eight, ans, snappy, lz4, gdeflate, zstd];
    let [slowest, fastest] = [LINKS_GB_PER_S.0, LINKS_GB_PER_S.1]
        .map(|link| best_at(&all, link).map_or("", |codec| codec.name));
    chart(
        "Which codec arrives first: measured on one H200",
        "Transfer, then decode; lineitem.tbl of TPC-H, 1.4 GiB, every stored byte counted",
        &all,
        crossing.into_iter().collect(),
        &[
            "GSST: this crate, optimal parse. Others: nvCOMP 6.0.0.12, the same bytes in the same run \
             (kernels/README.md), GDeflate at",
            "level 4, chunks of 64 KiB, ANS of 256.",
            &format!(
                "Best behind the slowest links: {slowest}; behind the fastest drawn: {fastest}; \
                 sending the text as it is wins above {raw_wins:.0} GB/s."
            ),
        ],
    )
}

/// Figure 6.1 of the thesis from what its text says, and the same layouts on one H200.
pub fn layouts() -> BarChart {
    let group = |layout: &layouts::Layout| Group {
        label: layout.name.to_owned(),
        values: [layout.thesis_gb_per_s, layout.gb_per_s].into(),
    };
    BarChart {
        title: "Decode layouts of GSST: the thesis's figure 6.1, and the same on one H200".to_owned(),
        subtitle: "8-bit codes, comments of TPC-H lineitem, blocks and splits of the best size each"
            .to_owned(),
        axis: logarithmic("GB/s of text, in device memory", (1.0, 10_000.0)),
        series: [("thesis, A100".to_owned(), COLORS[1]), ("here, H200".to_owned(), COLORS[0])].into(),
        groups: LAYOUTS.iter().map(group).collect(),
        notes: [
            "Thesis: from the factors its section 6.1 gives, back from 191 GB/s; its text is dbgen's, \
             10 GB. Here: cargo bench",
            "--bench gsst_layouts (kernels/README.md). The memory of an H200 is three times as fast \
             as that of an A100; the rest is layout.",
        ]
        .map(str::to_owned)
        .into(),
    }
}

fn chart(
    title: &str,
    subtitle: &str,
    codecs: &[Codec],
    points: Vec<Point>,
    notes: &[&str],
) -> LineChart {
    let mut curves: Vec<Curve> =
        codecs.iter().zip(COLORS).map(|(codec, color)| curve(codec, color)).collect();
    let raw = Codec { name: RAW, ratio: 1.0, decode_gb_per_s: f64::INFINITY };
    curves.push(Curve { label: RAW.to_owned(), is_dashed: true, ..curve(&raw, "#8a8a8a") });
    let guide = |(x, label): (f64, &str)| Guide { x, label: label.to_owned() };
    LineChart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        x: logarithmic("link to the device, GB/s of stored bytes", LINKS_GB_PER_S),
        y: logarithmic("ingestion, GB/s of text", (0.1, 2000.0)),
        legend: "codec (ratio at GB/s decoded)".to_owned(),
        curves,
        points,
        guides: [
            (1.25, "10 GbE"),
            (6.5, "NVMe 4"),
            (26.0, "PCIe 4"),
            (55.0, "PCIe 5"),
            (450.0, "NVLink-C2C"),
        ]
        .map(guide)
        .into(),
        notes: notes.iter().map(|note| (*note).to_owned()).collect(),
    }
}

fn logarithmic(label: &str, (min, max): (f64, f64)) -> Axis {
    Axis { label: label.to_owned(), min, max, scale: Scale::Logarithmic }
}

fn curve(codec: &Codec, color: &'static str) -> Curve {
    let (low, high) = LINKS_GB_PER_S;
    let num_points = POINTS_PER_DECADE * (high / low).log10().round() as u32;
    let link = |i: u32| low * (high / low).powf(f64::from(i) / f64::from(num_points));
    let points = (0..=num_points).map(|i| (link(i), codec.serial_gb_per_s(link(i)))).collect();
    let label = if codec.decode_gb_per_s.is_finite() {
        format!("{} ({:.2} at {:.0})", codec.name, codec.ratio, codec.decode_gb_per_s)
    } else {
        codec.name.to_owned()
    };
    Curve { label, color, is_dashed: false, points, breaks: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_files_are_what_this_makes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/figures");
        for (name, svg) in files() {
            let path = folder.join(name);
            if std::env::var_os("UPDATE_FIGURES").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &svg).unwrap();
            }
            let stored = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
            assert!(stored == svg, "{name} is stale: UPDATE_FIGURES=1 cargo test figures");
        }
    }

    #[test]
    fn every_point_lies_inside_the_plot() {
        for chart in [thesis(), measured()] {
            let name = &chart.title;
            for curve in &chart.curves {
                let (x, y) = (&chart.x, &chart.y);
                let is_inside = |at: &(f64, f64)| {
                    (x.min * 0.999..=x.max * 1.001).contains(&at.0)
                        && (y.min * 0.999..=y.max).contains(&at.1)
                };
                assert!(curve.points.iter().all(is_inside), "{name}: {}", curve.label);
            }
            assert!(!chart.points.is_empty(), "{name} has no crossing");
        }
    }

    #[test]
    fn the_best_codecs_are_named() {
        let expected = "slowest links: nvCOMP GDeflate; behind the fastest drawn: GSST-12;";
        assert!(measured().notes[2].contains(expected), "{:?}", measured().notes);
    }
}
