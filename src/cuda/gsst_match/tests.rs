//! Tests that the kernel and its wrapper declare the same constants and structs.

use super::kernels::{MASK_WARPS, SCAN_THREADS, WRITE_WARPS};
use super::predicate::MAX_UNIT_FRAMES;
use super::rows::{FORM_WIDTH_BIT, FRAME_ROWS, MatchBlock, MatchFrame};
use super::run::{FRAME_GROUPS, LENGTH_BYTES, PLACES_THREADS};

#[test]
fn constants_are_those_of_the_kernel() {
    let kernel = concat!(
        include_str!("../../../kernels/gsst_match.cu"),
        include_str!("../../../kernels/gsst_match.cuh"),
        include_str!("../../../kernels/gsst_match_frame.cuh"),
        include_str!("../../../kernels/gsst_match_mask.cuh"),
        include_str!("../../../kernels/gsst_match_write.cuh"),
        include_str!("../../../kernels/gsst_places.cu"),
    );
    for line in [
        format!("constexpr u32 FRAME_ROWS = {FRAME_ROWS};"),
        format!("constexpr u32 MAX_UNIT_FRAMES = {MAX_UNIT_FRAMES};"),
        format!("constexpr u32 FORM_WIDTH_BIT = {FORM_WIDTH_BIT};"),
        format!("constexpr u32 MASK_WARPS = {MASK_WARPS};"),
        format!("constexpr u32 WRITE_WARPS = {WRITE_WARPS};"),
        format!("constexpr u32 SCAN_THREADS = {SCAN_THREADS};"),
        format!("constexpr u32 THREADS = {PLACES_THREADS};"),
        format!("constexpr u32 LENGTH_BYTES = {LENGTH_BYTES};"),
        "constexpr u32 HEADER_BYTES = 64;".to_owned(),
    ] {
        assert!(kernel.contains(&line), "{line}");
    }
    assert_eq!(gsst::layout::HEADER_BYTES, 64);
    assert!(kernel.contains("constexpr u32 GROUP_ROWS = 16;"));
    assert_eq!(FRAME_GROUPS as usize * 16, FRAME_ROWS);
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
        std::mem::offset_of!(MatchBlock, table),
    ];
    assert_eq!(offsets, [0, 8, 12, 16, 20, 24, 28, 32, 36]);
    let offsets = [
        std::mem::offset_of!(MatchFrame, counts_at),
        std::mem::offset_of!(MatchFrame, counts_form),
        std::mem::offset_of!(MatchFrame, lengths_at),
        std::mem::offset_of!(MatchFrame, lengths_form),
        std::mem::offset_of!(MatchFrame, starts),
    ];
    assert_eq!(offsets, [0, 4, 8, 12, 16]);
}
