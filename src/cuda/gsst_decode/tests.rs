//! Tests that the kernel and its wrapper declare the same constants and structs.

use super::*;

#[test]
fn constants_are_those_of_the_kernel() {
    let kernel = concat!(
        include_str!("../../../kernels/gsst_codes.cuh"),
        include_str!("../../../kernels/gsst_decode.cuh"),
        include_str!("../../../kernels/gsst_views.cuh"),
        include_str!("../../../kernels/gsst_decode_8bit.cu"),
        include_str!("../../../kernels/gsst_decode_12bit.cu"),
    );
    for line in [
        format!("constexpr u32 TABLE_AT = {TABLE_AT};"),
        format!("constexpr u32 SHARED_WORDS_BYTES = {SHARED_WORDS_BYTES};"),
        format!("constexpr u32 MAX_WARPS = {MAX_WARPS};"),
        format!("constexpr u32 ROWS_BYTES = {ROWS_BYTES};"),
        "constexpr u32 STAGE_BYTES = 16 + 16 + 8 * TILE_CODES;".to_owned(),
        "constexpr u32 TILE_CODES = 512;".to_owned(),
        "TABLE_WORDS = 256, TABLE_BYTES = 65536;".to_owned(),
        "TABLE_WORDS = 4096, TABLE_BYTES = 32768;".to_owned(),
    ] {
        assert!(kernel.contains(&line), "{line}");
    }
    assert_eq!(STAGE_BYTES, 16 + 16 + 8 * 512);
}

#[test]
fn fields_are_those_of_the_kernel() {
    let offsets = [
        std::mem::offset_of!(GsstBlock, codes_at),
        std::mem::offset_of!(GsstBlock, text_at),
        std::mem::offset_of!(GsstBlock, splits_at),
        std::mem::offset_of!(GsstBlock, num_codes),
        std::mem::offset_of!(GsstBlock, first_split),
        std::mem::offset_of!(GsstBlock, split_log2),
    ];
    assert_eq!(offsets, [0, 8, 16, 20, 24, 28]);
}
