//! What the kernel and its wrapper both write down is the same.

use super::kernels::{MASK_WARPS, SCAN_THREADS, WRITE_WARPS};
use super::rows::{FORM_WIDTH_BIT, FRAME_ROWS, MAX_UNIT_FRAMES, MatchBlock, MatchFrame};

#[test]
fn constants_are_those_of_the_kernel() {
    let kernel = concat!(
        include_str!("../../../kernels/gsst_match.cu"),
        include_str!("../../../kernels/gsst_match.cuh"),
        include_str!("../../../kernels/gsst_match_mask.cuh"),
        include_str!("../../../kernels/gsst_match_write.cuh"),
    );
    for line in [
        format!("constexpr u32 FRAME_ROWS = {FRAME_ROWS};"),
        format!("constexpr u32 MAX_UNIT_FRAMES = {MAX_UNIT_FRAMES};"),
        format!("constexpr u32 FORM_WIDTH_BIT = {FORM_WIDTH_BIT};"),
        format!("constexpr u32 MASK_WARPS = {MASK_WARPS};"),
        format!("constexpr u32 WRITE_WARPS = {WRITE_WARPS};"),
        format!("constexpr u32 SCAN_THREADS = {SCAN_THREADS};"),
        "constexpr u32 HEADER_BYTES = 64;".to_owned(),
    ] {
        assert!(kernel.contains(&line), "{line}");
    }
    assert_eq!(crate::gsst::layout::HEADER_BYTES, 64);
}

#[test]
fn fields_are_those_of_the_kernel() {
    let offsets = [
        std::mem::offset_of!(MatchBlock, at),
        std::mem::offset_of!(MatchBlock, num_rows),
        std::mem::offset_of!(MatchBlock, first_row),
        std::mem::offset_of!(MatchBlock, first_frame),
        std::mem::offset_of!(MatchBlock, first_unit),
        std::mem::offset_of!(MatchBlock, first_slot),
        std::mem::offset_of!(MatchBlock, unit_frames),
        std::mem::offset_of!(MatchBlock, validity_at),
    ];
    assert_eq!(offsets, [0, 8, 12, 16, 20, 24, 28, 32]);
    let offsets = [
        std::mem::offset_of!(MatchFrame, counts_at),
        std::mem::offset_of!(MatchFrame, counts_form),
        std::mem::offset_of!(MatchFrame, lengths_at),
        std::mem::offset_of!(MatchFrame, lengths_form),
        std::mem::offset_of!(MatchFrame, starts),
    ];
    assert_eq!(offsets, [0, 4, 8, 12, 16]);
}
