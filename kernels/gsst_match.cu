// GSST blocks and a predicate -> the rows that match: numbers, 32-bit offsets, text.
//
//   1. tables  per block, from its symbols and the automaton over bytes: the automaton over codes
//              and the filter's entries                                          (tables of a query)
//   2. mask    one bit per row, rows and bytes of text per unit of up to 1,024 rows  (_mask.cuh)
//   3. sum     of every 1,024 units
//   4. scan    sums of the units before each
//   5. write   numbers, offsets and text of the rows that match                     (_write.cuh)
//
// Nothing is counted by atomics in device memory and nothing waits for another thread block, so any
// grid gives the same answer.

#include "gsst_match_mask.cuh"
#include "gsst_match_write.cuh"

// Whether a symbol that starts at byte `at` of the literal, or before it, agrees with it as far as
// both reach.
__device__ __forceinline__ bool agrees(const u8* symbol, u32 len, int at, const u8* literal,
                                       int num_bytes) {
    for (int i = at < 0 ? -at : 0; i < (int)len && at + i < num_bytes; i++) {
        if (symbol[i] != literal[at + i]) return false;
    }
    return true;
}

// Entry of one code in the filter for `literal`, of at least 1 byte; see gsst_match_mask.cuh.
__device__ __forceinline__ u32 filter_entry(const u8* symbol, u32 len, const u8* literal,
                                            int num_bytes, int anchor) {
    u32 entry = ANY_PREFIX | ANY_CERTAIN;
    for (int i = 0; i < 8; i++) {
        const int end = anchor + 1 + i, begin = end - (int)len;
        if (i < (int)len && agrees(symbol, len, begin, literal, num_bytes)) {
            if (end < num_bytes) {
                entry |= 1u << i;
                if (begin <= 0 && i < CERTAIN_ENDS) entry |= 1u << (8 + i);
            } else {
                entry |= ANY_PREFIX << 16;
                if (begin <= 0) entry |= ANY_CERTAIN << 16;
            }
        }
        if (end < num_bytes && agrees(symbol, len, end, literal, num_bytes)) {
            entry |= 1u << (16 + i);
            if (end + (int)len >= num_bytes && i < CERTAIN_ENDS) entry |= 1u << (24 + i);
        }
    }
    return entry;
}

// One thread per code, state (grid y) and block (grid z).
// tables: of all blocks of the width. blocks: those that the tables are made for, in `bytes`.
// automaton: 256 bytes per state; those from first_final on are final.
// next: num_states x NUM_CODES bytes per block; filters: NUM_CODES words per block, where num_bytes
// is not 0.
template <class Width>
__device__ __forceinline__ void make_tables(const u8* bytes, const u64* tables,
                                            const MatchBlock* blocks,
                                            const u8* automaton, u32 num_states, u32 first_final,
                                            const u8* literal, u32 num_bytes, u32 anchor, u8* next,
                                            u32* filters) {
    const u32 code = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y, b = blockIdx.z;
    const MatchBlock& block = blocks[b];
    const SymbolBytes symbol(tables[(u64)block.table * Width::NUM_CODES + code]);
    u8 text[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) text[i] = (u8)((i < 4 ? symbol.lo : symbol.hi) >> (i & 3) * 8);
    u32 state = first;
    for (u32 i = 0; i < symbol.len && state < first_final; i++) {
        state = automaton[state * 256 + text[i]];
    }
    next[((u64)b * num_states + first) * Width::NUM_CODES + code] = (u8)state;
    if (first == 0 && num_bytes) {
        const bool is_escape = Width::HAS_ESCAPES && code == 255;
        // Beside an escape a code is a literal: nothing is certain.
        const bool is_exact = bytes[block.at + FLAGS_AT] & NO_ESCAPES;
        const u32 entry = filter_entry(text, symbol.len, literal, num_bytes, anchor);
        filters[(u64)b * Width::NUM_CODES + code] =
            is_escape ? POSSIBLE : (is_exact ? entry : entry & POSSIBLE);
    }
}

#define GSST_MATCH(width, Width)                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                              \
    gsst_match_tables_##width(const u8* __restrict__ bytes, const u64* __restrict__ tables,        \
                              const MatchBlock* __restrict__ blocks,                               \
                              const u8* __restrict__ automaton, u32 num_states, u32 first_final,   \
                              const u8* __restrict__ literal, u32 num_bytes, u32 anchor,           \
                              u8* __restrict__ next, u32* __restrict__ filters) {                  \
        make_tables<Width>(bytes, tables, blocks, automaton, num_states, first_final, literal,     \
                           num_bytes, anchor, next, filters);                                      \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(MASK_WARPS * 32, 2)                               \
    gsst_match_mask_##width(const u8* __restrict__ bytes, const MatchBlock* __restrict__ blocks,   \
                            u32 num_blocks, const MatchFrame* __restrict__ frames,                 \
                            const u32* __restrict__ filters, const u8* __restrict__ next,          \
                            const u8* __restrict__ literals, const u8* __restrict__ flags,         \
                            u32 num_states, u32 first_final, u32 has_filter, u32 is_exact,         \
                            u32 has_mask,                                                          \
                            u32 first_unit, u32 end_unit, u32* __restrict__ mask,                  \
                            uint2* __restrict__ sums, const u64* __restrict__ error) {             \
        if (has_fault(error)) return;                                                              \
        mask_rows<Width>(bytes, blocks, num_blocks, frames, filters, next, literals, flags,        \
                         num_states, first_final, has_filter, is_exact, has_mask, first_unit,      \
                         end_unit, mask, sums);                                                    \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(WRITE_WARPS * 32, 4)                              \
    gsst_match_write_##width(const u8* __restrict__ bytes, const MatchBlock* __restrict__ blocks,  \
                             u32 num_blocks, const MatchFrame* __restrict__ frames,                \
                             const u64* __restrict__ tables, u32 num_units,                        \
                             const u32* __restrict__ mask,                                         \
                             const u32* __restrict__ rows_before,                                  \
                             const u64* __restrict__ text_before, const u64* __restrict__ totals,  \
                             u64 max_rows, u64 max_text, u32 num_rows, u32* __restrict__ rows,     \
                             u32* __restrict__ offsets, u8* __restrict__ text,                     \
                             const u64* __restrict__ error) {                                      \
        if (has_fault(error)) return;                                                              \
        write_rows<Width>(bytes, blocks, num_blocks, frames, tables, num_units, mask,              \
                          rows_before, text_before, totals, max_rows, max_text, num_rows, rows,    \
                          offsets, text);                                                          \
    }

GSST_MATCH(8bit, Eight)
GSST_MATCH(12bit, Twelve)

constexpr u32 SCAN_THREADS = 1024;

// Sum of two words over the thread block, for all threads. of_warps: 32 values.
__device__ __forceinline__ ulonglong2 sum_of_threads(u64 rows, u64 text, ulonglong2* of_warps) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (u32 d = 16; d; d >>= 1) {
        rows += __shfl_xor_sync(ALL_LANES, rows, d);
        text += __shfl_xor_sync(ALL_LANES, text, d);
    }
    __syncthreads();   // all have read what was there before
    if (lane == 0) of_warps[warp] = make_ulonglong2(rows, text);
    __syncthreads();
    ulonglong2 sum = of_warps[lane];
#pragma unroll
    for (u32 d = 16; d; d >>= 1) {
        sum.x += __shfl_xor_sync(ALL_LANES, sum.x, d);
        sum.y += __shfl_xor_sync(ALL_LANES, sum.y, d);
    }
    return sum;
}

// Sums of each SCAN_THREADS units: one thread block each.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
gsst_match_sum(const uint2* __restrict__ sums, u32 num_units, ulonglong2* __restrict__ tile_sums) {
    __shared__ ulonglong2 of_warps[32];
    const u32 unit = blockIdx.x * SCAN_THREADS + threadIdx.x;
    const uint2 mine = unit < num_units ? sums[unit] : make_uint2(0, 0);
    const ulonglong2 sum = sum_of_threads(mine.x, mine.y, of_warps);
    if (threadIdx.x == 0) tile_sums[blockIdx.x] = sum;
}

// Sums of all units before each, and of all (totals: rows, bytes); the same grid.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
gsst_match_scan(const uint2* __restrict__ sums, u32 num_units,
                const ulonglong2* __restrict__ tile_sums, u32* __restrict__ rows_before,
                u64* __restrict__ text_before, u64* __restrict__ totals) {
    __shared__ ulonglong2 of_warps[32];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u64 rows = 0, text = 0;
    for (u32 tile = threadIdx.x; tile < blockIdx.x; tile += SCAN_THREADS) {
        rows += tile_sums[tile].x;
        text += tile_sums[tile].y;
    }
    const ulonglong2 before = sum_of_threads(rows, text, of_warps);
    const u32 unit = blockIdx.x * SCAN_THREADS + threadIdx.x;
    const uint2 mine = unit < num_units ? sums[unit] : make_uint2(0, 0);
    rows = mine.x;
    text = mine.y;
#pragma unroll
    for (u32 d = 1; d < 32; d <<= 1) {
        const u64 other_rows = __shfl_up_sync(ALL_LANES, rows, d);
        const u64 other_text = __shfl_up_sync(ALL_LANES, text, d);
        if (lane >= d) {
            rows += other_rows;
            text += other_text;
        }
    }
    __syncthreads();   // all have read what was there before
    if (lane == 31) of_warps[warp] = make_ulonglong2(rows, text);
    __syncthreads();
    const ulonglong2 other = lane < warp ? of_warps[lane] : make_ulonglong2(0, 0);
    u64 warp_rows = other.x, warp_text = other.y;
#pragma unroll
    for (u32 d = 16; d; d >>= 1) {
        warp_rows += __shfl_xor_sync(ALL_LANES, warp_rows, d);
        warp_text += __shfl_xor_sync(ALL_LANES, warp_text, d);
    }
    rows += before.x + warp_rows;
    text += before.y + warp_text;
    if (unit < num_units) {
        rows_before[unit] = (u32)(rows - mine.x);
        text_before[unit] = text - mine.y;
    }
    if (unit + 1 == num_units) {
        totals[0] = rows;
        totals[1] = text;
    }
}

// What the host has to know of the structs here: sizes in shared memory.
extern "C" __global__ void gsst_match_sizes(u32* __restrict__ sizes) {
    sizes[0] = FILTER_AT + sizeof(MaskShared<Eight>);
    sizes[1] = FILTER_AT + sizeof(MaskShared<Twelve>);
    sizes[2] = sizeof(WriteShared<Eight>);
    sizes[3] = sizeof(WriteShared<Twelve>);
    sizes[4] = sizeof(MatchBlock);
    sizes[5] = sizeof(MatchFrame);
}
