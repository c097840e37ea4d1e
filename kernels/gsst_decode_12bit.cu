// GSST blocks of 12-bit codes -> text. Two codes lie in three bytes and are unpacked here; escapes
// do not exist.
//
// gsst_decode.cuh has the data layout, the mapping of work and the limits. Here: one copy of the
// table (32 KiB); a lane's 16 codes are 24 bytes, code * 8 comes out of them by a shift (a funnel
// shift where it lies in two words) and an AND.

#include "gsst_decode.cuh"

struct Twelve {
    static constexpr bool HAS_ESCAPES = false;
    static constexpr u32 TABLE_WORDS = 4096, TABLE_BYTES = 32768;
    static constexpr u32 TILE_BYTES = TILE_CODES / 2 * 3, LANE_BYTES = LANE_CODES / 2 * 3;
    static constexpr u32 WORDS = 6;

    static __device__ __forceinline__ void load(u32 (&c)[WORDS], const u8* from) {
#pragma unroll
        for (int i = 0; i < 3; i++) {
            asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];"
                         : "=r"(c[2 * i]), "=r"(c[2 * i + 1]) : "l"(from + 8 * i));
        }
    }
    static __device__ __forceinline__ u32 copy_of(u32) { return 0; }
    template <int I>
    static __device__ __forceinline__ u32 symbol_at(const u32 (&c)[WORDS], u32) {
        constexpr int word = 12 * I / 32, bit = 12 * I % 32;   // bit is a multiple of 4
        constexpr u32 mask = 0x7ff8;
        if (bit == 0) return c[word] << 3 & mask;
        if (bit <= 20) return c[word] >> ((bit + 29) & 31) & mask;
        return __funnelshift_r(c[word], c[word + 1 < WORDS ? word + 1 : word], bit - 3) & mask;
    }
    static __device__ __forceinline__ u32 symbol_of(const u8* codes, u32 i, u32) {
        const u8* at = codes + i / 2 * 3 + i % 2;
        return ((at[0] | at[1] << 8) >> (i % 2 * 4) & 0xfff) * 8u;
    }
    static __device__ __forceinline__ void fill(const u64* table) {
        for (u32 i = threadIdx.x; i < 4096; i += blockDim.x) {
            const u64 y = table[i];
            asm volatile("st.shared.v2.u32 [%0], {%1, %2};"
                         ::"r"(TABLE_AT + i * 8), "r"((u32)y), "r"((u32)(y >> 32)) : "memory");
        }
    }
};

GSST_DECODE(gsst_decode_12bit, Twelve)
