// What the mask and the sparse write of gsst_match.cu share: where single codes lie, and the address of
// the filter.

#pragma once

#include "gsst_match_rows.cuh"

// Shared address of the filter: a constant, because it is an immediate of the loads. Dynamic shared
// memory starts there or before it, and so has up to this much more than what is put there.
constexpr u32 FILTER_AT = 1024;

__device__ __forceinline__ u32 shared_address(const void* at) {
    return (u32)__cvta_generic_to_shared(at);
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
