//! The two figures of `benches/figures`: which codec wins at which link speed.
//!
//! Both draw equation 3.4 (transfer first, then decode) as figure 6.3 of the thesis does, over four
//! decades of link speed instead of 0 to 100 GB/s. A test compares the files with what this makes;
//! `UPDATE_FIGURES=1 cargo test figures` writes them.

use super::codecs::{Codec, LINEITEM_H200, THESIS_SECTION_6_3, best_at};
use super::plot::{Axis, Chart, Curve, Guide, Point};

const LINKS_GB_PER_S: (f64, f64) = (0.1, 1000.0);
const POINTS_PER_DECADE: u32 = 24;
/// Colours that also differ for the colour-blind (after Okabe and Ito), dark enough for text.
const COLORS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a86f00", "#17869e", "#7a5195", "#333333"];
const RAW: &str = "uncompressed";

/// Files below `benches/figures` and what is in them.
pub fn files() -> [(&'static str, Chart); 2] {
    [("ingestion_thesis.svg", thesis()), ("ingestion_measured.svg", measured())]
}

/// Figure 6.3 of the thesis, from its own numbers.
pub fn thesis() -> Chart {
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
pub fn measured() -> Chart {
    let [twelve, _, eight, _, ans, snappy, lz4, gdeflate, zstd] = LINEITEM_H200;
    let (twelve, eight) = (Codec { name: "GSST-12", ..twelve }, Codec { name: "GSST-8", ..eight });
    let crossing = eight.crossing_gb_per_s(&zstd).map(|link| Point {
        at: (link, eight.serial_gb_per_s(link)),
        label: format!("{link:.1}: GSST-8 passes Zstd"),
    });
    let raw = Codec { name: RAW, ratio: 1.0, decode_gb_per_s: f64::INFINITY };
    let raw_wins = raw.crossing_gb_per_s(&twelve).unwrap_or_default();
    let all = [twelve, eight, ans, snappy, lz4, gdeflate, zstd];
    let ends = [LINKS_GB_PER_S.0, LINKS_GB_PER_S.1].map(|link| best_at(&all, link));
    let winner = if ends[0] == ends[1] { ends[0].map_or("", |codec| codec.name) } else { "" };
    chart(
        "Which codec arrives first: measured on one H200",
        "Transfer, then decode; lineitem.tbl of TPC-H, 1 GiB, every stored byte counted",
        &all,
        crossing.into_iter().collect(),
        &[
            "GSST: this crate, optimal parse (kernels/README.md). Others: nvCOMP 6 on the same \
             machine and kind of text, ANS at the",
            "better of its two ratios (1.53 and 1.58).",
            &format!(
                "Best at every speed drawn: {winner}; sending the text as it is wins above \
                 {raw_wins:.0} GB/s."
            ),
        ],
    )
}

fn chart(
    title: &str,
    subtitle: &str,
    codecs: &[Codec],
    points: Vec<Point>,
    notes: &[&str],
) -> Chart {
    let mut curves: Vec<Curve> =
        codecs.iter().zip(COLORS).map(|(codec, color)| curve(codec, color)).collect();
    let raw = Codec { name: RAW, ratio: 1.0, decode_gb_per_s: f64::INFINITY };
    curves.push(Curve { label: RAW.to_owned(), is_dashed: true, ..curve(&raw, "#8a8a8a") });
    let guide = |(x, label): (f64, &str)| Guide { x, label: label.to_owned() };
    Chart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        x: Axis {
            label: "link to the device, GB/s of stored bytes".to_owned(),
            min: LINKS_GB_PER_S.0,
            max: LINKS_GB_PER_S.1,
        },
        y: Axis { label: "ingestion, GB/s of text".to_owned(), min: 0.1, max: 2000.0 },
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
    Curve { label, color, is_dashed: false, points }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_files_are_what_this_makes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/figures");
        for (name, chart) in files() {
            let path = folder.join(name);
            let svg = chart.to_svg();
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
        for (name, chart) in files() {
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
    fn one_codec_is_named_as_the_best() {
        assert!(measured().notes[2].contains("GSST-12"), "{:?}", measured().notes);
    }
}
