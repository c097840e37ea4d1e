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
constexpr u32 FRAME_ROWS = 128;
constexpr u32 MAX_UNIT_FRAMES = 8;
constexpr u32 ALL_LANES = 0xffffffffu;
constexpr u32 TILE_CODES = 512;
constexpr u32 LANE_CODES = 16;

// Shared address of the filter: a constant, because it is an immediate of the loads. Dynamic shared
// memory starts there or before it, and so has up to this much more than what is put there.
constexpr u32 FILTER_AT = 1024;

__device__ __forceinline__ u32 shared_address(const void* at) {
    return (u32)__cvta_generic_to_shared(at);
}

// Whether a check has found a fault. error: the error word, or none where nothing was left to check.
__device__ __forceinline__ bool has_fault(const u64* error) { return error && *error != ~0ull; }

// Sum of x over this lane and those before it.
__device__ __forceinline__ u32 inclusive_scan(u32 x) {
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        asm volatile(
            "{ .reg .pred p; .reg .u32 t; "
            "shfl.sync.up.b32 t|p, %0, %1, 0, -1; @p add.u32 %0, %0, t; }"
            : "+r"(x)
            : "r"(d));
    }
    return x;
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

// Codes of one byte; 255 says that the next byte is a literal.
struct Eight {
    static constexpr bool HAS_ESCAPES = true;
    static constexpr u32 NUM_CODES = 256;
    static constexpr u32 WORDS = 4;
    // Copies of the filter in shared memory: one per bank.
    static constexpr u32 COPIES = 32;

    static __device__ __forceinline__ const u8* at(const u8* codes, u32 code_idx) {
        return codes + code_idx;
    }
    static constexpr u32 TILE_BYTES = TILE_CODES;
    static __device__ __forceinline__ u32 code_at(const u8* codes, u32 code_idx) {
        return codes[code_idx];
    }
    static __device__ __forceinline__ void load(u32 (&c)[WORDS], const u8* from) {
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3]) : "l"(from));
    }
    // Where the filter's entry of code i is, behind FILTER_AT, in the copy of this lane.
    template <int I>
    static __device__ __forceinline__ u32 entry_at(const u32 (&c)[WORDS], u32 copy) {
        constexpr int bit = 8 * (I & 3);
        const u32 word = c[I >> 2];
        return ((bit < 7 ? word << (7 - bit) : word >> (bit - 7)) & 0x7f80u) | copy;
    }
};

// Codes of 12 bits, two in three bytes; there are no escapes.
struct Twelve {
    static constexpr bool HAS_ESCAPES = false;
    static constexpr u32 NUM_CODES = 4096;
    static constexpr u32 WORDS = 6;
    static constexpr u32 COPIES = 1;

    // code_idx: even.
    static __device__ __forceinline__ const u8* at(const u8* codes, u32 code_idx) {
        return codes + code_idx / 2 * 3;
    }
    static constexpr u32 TILE_BYTES = TILE_CODES / 2 * 3;
    static __device__ __forceinline__ u32 code_at(const u8* codes, u32 code_idx) {
        const u8* from = codes + code_idx / 2 * 3 + code_idx % 2;
        return (from[0] | from[1] << 8) >> (code_idx % 2 * 4) & 0xfff;
    }
    static __device__ __forceinline__ void load(u32 (&c)[WORDS], const u8* from) {
#pragma unroll
        for (int i = 0; i < 3; i++) {
            asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                         : "=r"(c[2 * i]), "=r"(c[2 * i + 1]) : "l"(from + 8 * i));
        }
    }
    template <int I>
    static __device__ __forceinline__ u32 entry_at(const u32 (&c)[WORDS], u32) {
        constexpr int word = 12 * I / 32, bit = 12 * I % 32;   // bit is a multiple of 4
        constexpr u32 mask = 0x3ffc;
        if (bit == 0) return c[word] << 2 & mask;
        if (bit <= 20) return c[word] >> ((bit + 30) & 31) & mask;
        return __funnelshift_r(c[word], c[word + 1 < WORDS ? word + 1 : word], bit - 2) & mask;
    }
};

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
