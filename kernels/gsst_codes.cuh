// What kernels that read the codes of GSST blocks share: the structs of a launch, the bits of a
// split's word, and which codes are literals. src/gsst/layout.rs has the layout.

#pragma once

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

// One block of a launch; the same struct is in src/cuda/gsst_decode.rs.
struct GsstBlock {
    u64 codes_at;      // of its codes in `bytes`, a multiple of 16
    u64 text_at;       // of its text in `out`
    u32 splits_at;     // of its words of splits behind its codes, a multiple of 4
    u32 num_codes;     // at least 1
    u32 first_split;   // number of its first split in the launch
    u32 split_log2;    // 9 to 12
};

constexpr u32 TILE_CODES = 512;
constexpr u32 LANE_CODES = 16;
constexpr u32 SPLIT_TEXT_AT = 0x007fffffu;
constexpr u32 SPLIT_LITERAL_BIT = 23;
constexpr u32 SPLIT_TILES_BIT = 24;
constexpr u32 ALL_LANES = 0xffffffffu;
// What the error word of a run holds as long as nothing is wrong with it.
constexpr u64 NO_ERROR = ~0ull;

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

// Which of a lane's 16 codes of 8 bits are 255, bit i for code i. num_valid: codes of the lane, may
// be negative or over 16.
__device__ __forceinline__ u32 find_255(const u32 (&c)[4], int num_valid) {
    u32 is_255 = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const u32 x = ((c[k] & 0x7f7f7f7fu) + 0x01010101u) & c[k] & 0x80808080u;
        is_255 |= (((x >> 7) * 0x10204080u) >> 28) << (4 * k);
    }
    num_valid = num_valid < 0 ? 0 : (num_valid > 16 ? 16 : num_valid);
    return is_255 & ((1u << num_valid) - 1u);
}

// Which of a lane's codes are literals, given which are 255. starts_with_literal: of the tile;
// becomes that of the next one, if this one is full.
__device__ __forceinline__ u32 find_literals(u32 is_255, int num_valid, u32 lane,
                                             u32& starts_with_literal) {
    // Whether the code behind the lane is a literal, if its first one is none, or is one. In
    // runs of 255 every second one is an escape; a carry through the run tells where it ends.
    const u32 rest = is_255 & ~1u;
    u32 out0 = ((is_255 & ~0x5555u & ~(is_255 << 1)) + is_255) >> 16 & 1u;
    u32 out1 = ((rest & ~0x5555u & ~((rest << 1) | 1u)) + rest) >> 16 & 1u;
    if (num_valid < 16) out0 = out1 = 0;
    const u32 from0 = __ballot_sync(ALL_LANES, out0), from1 = __ballot_sync(ALL_LANES, out1);
    u32 chain = from0;
    if (from0 != from1) {   // a lane full of 255s
        u32 state = starts_with_literal;
        chain = 0;
        for (int k = 0; k < 32; k++) {
            state = ((state ? from1 : from0) >> k) & 1u;
            chain |= state << k;
        }
    }
    const u32 first = lane ? (chain >> (lane - 1)) & 1u : starts_with_literal;
    starts_with_literal = chain >> 31;
    const u32 starts = is_255 & ~first, follows = (starts << 1) | first;
    const u32 odd_runs = (starts & ~0x5555u & ~follows) + starts;
    return (0x5555u ^ (odd_runs << 1)) & follows;
}
