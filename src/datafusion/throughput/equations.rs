//! The equations of Vonk, "GSST" (TU Delft, 2024), chapter 3, for one link and one decoder.
//!
//! [`predict`](super::model::predict) gives the same results if all other stages take no time. A
//! test compares them.

/// Returns the text per second if all of it is transferred before it is decoded (equation 3.4).
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

/// Returns the text per second if each block is decoded while the next one is transferred.
///
/// This is the lower of equations 3.5 and 3.6 (appendix A.3).
pub fn overlapped_gb_per_s(ratio: f64, link_gb_per_s: f64, decode_gb_per_s: f64, num_blocks: u64) -> f64 {
    let (transfer, decode) = (1.0 / (ratio * link_gb_per_s), 1.0 / decode_gb_per_s);
    let num_blocks = num_blocks.max(1) as f64;
    (transfer + decode / num_blocks).max(decode + transfer / num_blocks).recip()
}

/// Returns the link speed at which two codecs, given as (ratio, decode GB/s), are equally fast.
///
/// All text is transferred before it is decoded. Below this speed, the codec with the better ratio
/// is faster. Returns `None` if one codec is faster at every speed.
pub fn crossing_gb_per_s(a: (f64, f64), b: (f64, f64)) -> Option<f64> {
    let link_gb_per_s = (1.0 / a.0 - 1.0 / b.0) / (1.0 / b.1 - 1.0 / a.1);
    (link_gb_per_s > 0.0 && link_gb_per_s.is_finite()).then_some(link_gb_per_s)
}
