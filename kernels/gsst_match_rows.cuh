// Rows of GSST blocks that match a predicate: their numbers, offsets and text, without decoding the
// others. What the steps of gsst_match.cu share: the data, and how a warp reads rows.
//
//   blocks     as stored (src/gsst/layout.rs): codes, packed numbers of codes, packed lengths of
//              text, validity
//   frames     where each frame of 128 rows lies, and the code that every 16th of its rows starts
//              with: made by the host, or by gsst_places.cu from what the checks found
//   units      1 to 8 frames of one block, what one warp takes at a time
//
// Inputs are blocks that are valid: gsst::Block has found that, or gsst_check.cu. Where it has found
// a fault, the error word tells, and nothing is done; for other bytes the kernels may read and write
// anywhere.

#pragma once

#include "gsst_codes.cuh"
#include "gsst_match_frame.cuh"

// One block of a launch; the same struct is in src/cuda/gsst_match/rows.rs.
struct MatchBlock {
    u64 at;            // of its bytes in `bytes`, a multiple of 16
    u32 num_rows;      // at least 1
    u32 first_row;     // number of its first row among the rows of all blocks
    u32 first_frame;   // its first frame in `frames`
    u32 first_unit;    // its first unit among those of blocks of its width
    u32 first_slot;    // its first unit among those of all blocks
    u32 unit_frames;   // 1 to 8
    u32 validity_at;   // of its validity behind `at`, 0: no row is null
    u32 table;         // number of its table among those of its width
};

constexpr u32 HEADER_BYTES = 64;
// Byte of the header with flags, and the flag of a block without escapes.
constexpr u32 FLAGS_AT = 14, NO_ESCAPES = 1;
constexpr u32 FRAME_ROWS = 128;
constexpr u32 MAX_UNIT_FRAMES = 8;
// One of so many rows matches, or more: gsst_match_dense.cu writes them.
constexpr u32 DENSE_SHARE = 4;

// Whether a check has found a fault. error: the error word, or none where nothing was left to check.
__device__ __forceinline__ bool has_fault(const u64* error) { return error && *error != ~0ull; }

// Whether decoding everything and dropping what does not match takes less time than decoding row by row.
// totals: rows and bytes of text that match.
__device__ __forceinline__ bool is_dense(const u64* totals, u32 num_rows) {
    return totals[0] * DENSE_SHARE >= num_rows;
}

// Four consecutive numbers of a frame, those of rows 4 * lane to 4 * lane + 3.
struct Four {
    u32 value[4];

    __device__ __forceinline__ u32 sum() const {
        return (value[0] + value[1]) + (value[2] + value[3]);
    }
};

// Packed numbers, from the byte where their differences start.
struct Packed {
    const u32* words;
    u32 bit, width, smallest;

    __device__ __forceinline__ Packed(const u8* block, u32 at, u32 form) {
        const u64 address = (u64)(block + at);
        words = (const u32*)(address & ~3ull);
        bit = ((u32)address & 3u) * 8u;
        width = form >> FORM_WIDTH_BIT;
        smallest = form & ((1u << FORM_WIDTH_BIT) - 1u);
    }
    __device__ __forceinline__ u32 mask() const { return (1u << width) - 1u; }

    // 32 bits from that of number `idx` on.
    __device__ __forceinline__ u32 bits_from(u32 idx) const {
        const u32 from = bit + idx * width;
        return __funnelshift_r(words[from >> 5], words[(from >> 5) + 1], from);
    }
    __device__ __forceinline__ u32 number(u32 idx) const {
        return smallest + (bits_from(idx) & mask());
    }
    // Numbers first to first + 3; those from num_rows on are 0.
    __device__ __forceinline__ Four four(u32 first, u32 num_rows) const {
        Four four;
        if (width <= 8) {
            const u32 bits = bits_from(first);
#pragma unroll
            for (u32 j = 0; j < 4; j++) four.value[j] = smallest + (bits >> (j * width) & mask());
        } else {
#pragma unroll
            for (u32 j = 0; j < 4; j++) four.value[j] = number(first + j);
        }
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            if (first + j >= num_rows) four.value[j] = 0;
        }
        return four;
    }
};

__device__ __forceinline__ Packed counts_of(const u8* block, const MatchFrame& frame) {
    return Packed(block, frame.counts_at, frame.counts_form);
}

__device__ __forceinline__ Packed lengths_of(const u8* block, const MatchFrame& frame) {
    return Packed(block, frame.lengths_at, frame.lengths_form);
}

// The block that unit `unit` belongs to.
__device__ __forceinline__ u32 block_of_unit(const MatchBlock* blocks, u32 num_blocks, u32 unit) {
    u32 b = 0;
    for (u32 above = num_blocks; above - b > 1;) {
        const u32 middle = (b + above) >> 1;
        if (blocks[middle].first_unit <= unit) b = middle; else above = middle;
    }
    return b;
}

__device__ __forceinline__ u32 num_frames_of(const MatchBlock& block) {
    return (block.num_rows + FRAME_ROWS - 1) / FRAME_ROWS;
}

__device__ __forceinline__ u32 num_units_of(const MatchBlock& block) {
    return (num_frames_of(block) + block.unit_frames - 1) / block.unit_frames;
}

// The frames of one unit.
struct Unit {
    u32 first, end;   // frames of the block

    __device__ __forceinline__ Unit(const MatchBlock& block, u32 unit_idx) {
        first = unit_idx * block.unit_frames;
        end = min(first + block.unit_frames, num_frames_of(block));
    }
};

// Rows of frame `frame` of a block.
__device__ __forceinline__ u32 num_rows_of(const MatchBlock& block, u32 frame) {
    return min(FRAME_ROWS, block.num_rows - frame * FRAME_ROWS);
}
