// The symbols of a warp's tile of codes: from the table in shared memory to whole words of text. What
// gsst_decode.cuh and gsst_match_dense.cu share.
//
// A lane takes 16 consecutive codes. gsst_decode.cuh has the layout of tables and the steps *fetch* and
// *pack*, which are here. A width of codes is a struct with its table, its loads and the addresses of its
// symbols.

#pragma once

#include "gsst_shared.cuh"

// Shared address of the table: a constant, because it is an immediate of the loads. Dynamic shared memory
// starts there or before it, so a launch asks for up to this much more.
constexpr u32 TABLE_AT = 1024;

// Bytes c & 3 to (c & 3) + 3 of b:a.
__device__ __forceinline__ u32 forward4(u32 a, u32 b, u32 c) {
    u32 d;
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

// Codes of 8 bits, with or without escapes (255: the next byte is a literal): 16 copies of the table, one
// per pair of banks, in rows of 256 bytes per code; the upper half of a row holds the code as a literal.
// One PRMT makes an address, a gather takes 2 wavefronts, never more.
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

// Codes of 12 bits, two in three bytes; escapes do not exist. One copy of the table (32 KiB); a lane's 16
// codes are 24 bytes, code * 8 comes out of them by a shift (a funnel shift where it lies in two words)
// and an AND.
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

// The symbols of a lane's 16 codes; codes whose bit in `literals` is set stand for themselves.
struct Symbols {
    u32 lo[LANE_CODES], hi[LANE_CODES], len[LANE_CODES];
    u32 total;   // sum of len

    template <class Width, bool ESCAPES, int I>
    __device__ __forceinline__ void fetch_from(const u32 (&c)[Width::WORDS], u32 copy,
                                               u32 literals) {
        if constexpr (I < LANE_CODES) {
            const u32 row = ESCAPES ? copy | ((literals >> I) & 1) << 7 : copy;
            asm("ld.shared.v2.u32 {%0, %1}, [%2+1024];"
                : "=r"(lo[I]), "=r"(hi[I]) : "r"(Width::template symbol_at<I>(c, row)));
            len[I] = min(hi[I] >> 24, 8u);
            fetch_from<Width, ESCAPES, I + 1>(c, copy, literals);
        }
    }
    template <class Width, bool ESCAPES>
    __device__ __forceinline__ void fetch(const u32 (&c)[Width::WORDS], u32 copy, u32 literals) {
        static_assert(TABLE_AT == 1024, "the immediate of the load");
        fetch_from<Width, ESCAPES, 0>(c, copy, literals);
        total = 0;
#pragma unroll
        for (int i = 0; i < LANE_CODES; i++) total += len[i];
    }
    // Writes the symbols to the stage; q is the negated shared address of the first byte, T the
    // last 4 bytes before it, and after it.
    // EARLY (every code has a byte): the first codes store their words without a test, since later
    // ones overwrite what was not complete: 10 % fewer instructions, some more wavefronts.
    // one = 1 and eight = 8 are opaque to the compiler: it then multiplies, on an idle pipe,
    // instead of shifting on the busy one.
    template <bool EARLY>
    __device__ __forceinline__ void pack(u32 q, u32& T, u32 one, u32 eight) const {
        u32 at = ~q & ~3u;
#pragma unroll
        for (int i = 0; i < LANE_CODES; i++) {
            const u32 next_q = q - len[i], next_at = ~next_q & ~3u;
            const u32 first = forward4(T, lo[i], q), second = forward4(lo[i], hi[i], q);
            if (EARLY && i <= 12) {
                store_shared(at, first);
            } else {
                asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, %1; @p st.shared.u32 [%0], %2; }"
                             ::"r"(at), "r"(next_at), "r"(first) : "memory");
            }
            if (EARLY && i <= 11) {
                asm volatile("{ .reg .pred p; setp.ge.u32 p, %1, 4; @p st.shared.u32 [%0+4], %2; }"
                             ::"r"(at), "r"(len[i]), "r"(second) : "memory");
            } else {
                asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, %3; @p st.shared.u32 [%0+4], %2; }"
                             ::"r"(at), "r"(next_at), "r"(second), "r"(at * one + 4) : "memory");
            }
            T = len[i] >= 4 ? __funnelshift_rc(lo[i], hi[i], len[i] * eight - 32)
                            : forward4(T, lo[i], len[i]);
            q = next_q;
            at = next_at;
        }
    }
};
