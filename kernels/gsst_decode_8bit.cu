// GSST blocks of 8-bit codes -> text, with or without escapes (255: the next byte is a literal).
//
// gsst_decode.cuh has the data layout, the mapping of work and the limits. Here: 16 copies of the
// table, one per pair of banks, in rows of 256 bytes per code; the upper half of a row holds the
// code as a literal. One PRMT makes an address, a gather takes 2 wavefronts, never more.

#include "gsst_decode.cuh"

struct Eight {
    static constexpr bool HAS_ESCAPES = true;
    static constexpr u32 TABLE_WORDS = 256, TABLE_BYTES = 65536;
    static constexpr u32 TILE_BYTES = TILE_CODES, LANE_BYTES = LANE_CODES, WORDS = 4;

    static __device__ __forceinline__ void load(u32 (&c)[WORDS], const u8* from) {
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3]) : "l"(from));
    }
    // Where lane's copy starts in a row.
    static __device__ __forceinline__ u32 copy_of(u32 lane) { return (lane & 15) * 8; }
    template <int I>
    static __device__ __forceinline__ u32 symbol_at(const u32 (&c)[WORDS], u32 copy) {
        return __byte_perm(c[I >> 2], copy, 0x5504 | ((I & 3) << 4));
    }
    static __device__ __forceinline__ u32 symbol_of(const u8* codes, u32 i, u32 copy) {
        return codes[i] * 256u + copy;
    }
    static __device__ __forceinline__ void fill(const u64* table) {
        for (u32 i = threadIdx.x; i < 4096; i += blockDim.x) {
            const u32 code = i >> 4, pair = i & 15;
            const u64 y = pair < 8 ? table[code] : (u64)code | 1ull << 56;
            const u32 lo = (u32)y, hi = (u32)(y >> 32);
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %1, %2};"
                         ::"r"(TABLE_AT + i * 16), "r"(lo), "r"(hi) : "memory");
        }
    }
    // Which of the lane's codes are literals, bit i for code i. starts_with_literal: of the tile;
    // becomes that of the next one. num_valid: codes of the lane, may be negative or over 16.
    static __device__ __forceinline__ u32 find_literals(const u32 (&c)[4], int num_valid, u32 lane,
                                                        u32& starts_with_literal) {
        u32 is_255 = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const u32 x = ((c[k] & 0x7f7f7f7fu) + 0x01010101u) & c[k] & 0x80808080u;
            is_255 |= (((x >> 7) * 0x10204080u) >> 28) << (4 * k);
        }
        num_valid = num_valid < 0 ? 0 : (num_valid > 16 ? 16 : num_valid);
        is_255 &= (1u << num_valid) - 1u;
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
};

GSST_DECODE(gsst_decode_8bit, Eight)
