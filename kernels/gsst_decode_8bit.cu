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
};

GSST_DECODE(gsst_decode_8bit, Eight)
