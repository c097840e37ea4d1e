//! The equations of Vonk, "GSST" (TU Delft, 2024), chapter 3: a link, a decoder, nothing else.
//!
//! [`predict`](super::model::predict) gives the same where all other stages take no time; a test
//! compares them.

/// Text per second where all of it is transferred first and decoded then: equation 3.4.
///
/// ```
/// use datafusion_tadoc::throughput::model::serial_gb_per_s;
///
/// // GSST on an A100 behind a link of 22 GB/s (section 6.3).
/// assert_eq!(serial_gb_per_s(2.74, 22.0, 191.0).floor(), 45.0);
/// ```
pub fn serial_gb_per_s(ratio: f64, link_gb_per_s: f64, decode_gb_per_s: f64) -> f64 {
    (1.0 / (ratio * link_gb_per_s) + 1.0 / decode_gb_per_s).recip()
}

/// Text per second where block after block is transferred, and decoded while the next one arrives:
/// the lower of equations 3.5 and 3.6 (appendix A.3).
pub fn overlapped_gb_per_s(
    ratio: f64,
    link_gb_per_s: f64,
    decode_gb_per_s: f64,
    num_blocks: u64,
) -> f64 {
    let (transfer, decode) = (1.0 / (ratio * link_gb_per_s), 1.0 / decode_gb_per_s);
    let num_blocks = num_blocks.max(1) as f64;
    (transfer + decode / num_blocks).max(decode + transfer / num_blocks).recip()
}

/// The link speed at which two codecs, given as (ratio, decode GB/s), arrive equally fast when
/// transferred first and decoded then: below it the one with the better ratio wins. `None` where
/// one of them wins at every speed.
pub fn crossing_gb_per_s(a: (f64, f64), b: (f64, f64)) -> Option<f64> {
    let link_gb_per_s = (1.0 / a.0 - 1.0 / b.0) / (1.0 / b.1 - 1.0 / a.1);
    (link_gb_per_s > 0.0 && link_gb_per_s.is_finite()).then_some(link_gb_per_s)
}
