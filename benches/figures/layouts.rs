//! What the decode layouts of the thesis's figure 6.1 reach, on its A100 and on one H200.
//!
//! The figure's bars stand in no table; section 6.1 of the thesis (Vonk, 2024) gives the factors from
//! one to the next: splits nine times blocks, shared memory three times that, alignment nearly five
//! times, the coalesced format a third less, its asynchronous copies 15 % more, tuned parameters 17 %
//! above alignment, and section 6.2 the last one, 191 GB/s. The other column is what
//! `benches/gsst_layouts.rs` measures, blocks and splits of the size that suits each layout.

const TUNED: f64 = 191.0;
const ALIGNED: f64 = TUNED / 1.17;
const SHARED: f64 = ALIGNED / 5.0;
const SPLITS: f64 = SHARED / 3.0;
const BLOCKS: f64 = SPLITS / 9.0;
const COALESCED: f64 = ALIGNED * 2.0 / 3.0 * 1.15;

/// A way to share out the codes of blocks among threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// What it is.
    pub name: &'static str,
    /// Text decoded by the thesis's kernel on an A100, in GB/s, where it has one.
    pub thesis_gb_per_s: Option<f64>,
    /// Text decoded on an H200, in GB/s, at the best size of blocks and splits.
    pub gb_per_s: Option<f64>,
}

const fn layout(name: &'static str, thesis_gb_per_s: Option<f64>, gb_per_s: f64) -> Layout {
    Layout { name, thesis_gb_per_s, gb_per_s: Some(gb_per_s) }
}

/// By the thesis's order, this crate's last.
pub const LAYOUTS: [Layout; 7] = [
    layout("thread per block", Some(BLOCKS), 64.3),
    layout("the same, aligned words", None, 118.6),
    layout("thread per split", Some(SPLITS), 79.3),
    layout("the same, shared memory", Some(SHARED), 78.9),
    layout("the same, aligned words", Some(TUNED), 359.0),
    layout("coalesced codes", Some(COALESCED), 359.7),
    layout("warp per split, whole lines", None, 2402.8),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_lead_back_to_the_first_bar() {
        let thesis = LAYOUTS.map(|layout| layout.thesis_gb_per_s.map(f64::round));
        let expected = [Some(1.0), None, Some(11.0), Some(33.0), Some(191.0), Some(125.0), None];
        assert_eq!(thesis, expected);
    }
}
