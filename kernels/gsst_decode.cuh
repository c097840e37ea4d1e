// GSST blocks -> text: many blocks with as many symbol tables in one launch, for any grid. What
// gsst_decode_8bit.cu and gsst_decode_12bit.cu share; gsst_symbols.cuh has the struct of each width
// (`Width` below).
//
// Reads the codes and the words of splits where they lie in the block's bytes (src/gsst/layout.rs):
//
//   codes, from a multiple of 16 on, without gaps
//   splits, one word for every 512 to 4,096 codes
//     bits 0..23    where its text starts in the text of the block
//     bit  23       it starts with a literal whose escape is in the split before
//     bits 24..32   bit k: tile k of the split holds an escape or a literal
//   tables, made by the host: 256 or 4,096 words per block, symbol bytes from the low byte on; the
//     top byte is the length where that is 1 to 7, and at least 8 in symbols of 8 bytes
//
// Mapping of work. A thread block owns a contiguous run of splits, its warps claim them one by one.
// A warp decodes a split in tiles of 512 codes, 16 consecutive ones per lane, loaded one tile ahead
// (over the end of the split, too).
//
//   1. fetch   8 bits: 16 copies of the table in shared memory, one per pair of banks, in rows of
//              256 bytes per code, so one PRMT makes the address (code in byte 1, copy in byte 0)
//              and a gather takes 2 wavefronts, never more. The upper half of a row holds the code
//              as a literal: an escaped byte is the same gather with bit 7 set.
//              12 bits: one copy (32 KiB); code * 8 comes out of the packed words by a funnel shift
//              and an AND.
//   2. place   lengths are summed per lane, one warp scan per tile gives every lane its position.
//   3. pack    T holds the last 4 bytes of output, whatever the alignment. For each code
//                word at the position     T|symbol shifted by the position; PRMT.F4E takes the
//                                         negated position as it is: no shift amount, no mask
//                word behind it           the same of the symbol's 8 bytes
//                T                        the last 4 bytes of T|symbol
//              Words are stored to shared memory, aligned. Bytes behind a symbol's end are never
//              part of a word that stays, so nothing is masked.
//   4. meet    lanes that share a word: the later one starts with T = 0, the earlier one's T is
//              ORed in. A lane yields at least 8 bytes per full tile, also with escapes.
//   5. flush   whole 16-byte chunks leave by one bulk copy (compute capability 9.0 on) or by
//              16-byte stores; the last 15 bytes or less move to the front. Only the two ends of a
//              split are stored by bytes, so neighbours never write each other's.
//   6. views   where they are asked for: gsst_views.cuh.
//
// Limits. On an H200 (8 bits, l_comment) L1/shared memory is at 87 %, L2 at 78 %, DRAM at 64 % and
// issue at 61 %: wavefronts of shared memory lead. kernels/README.md has the measured rates and the
// variants that lost. Inputs are validated blocks (gsst::Block, or those that gsst_check found no
// fault with); for other bytes the kernel may read and write anywhere.

#pragma once

#include "gsst_flush.cuh"
#include "gsst_symbols.cuh"
#include "gsst_views.cuh"

// Behind the table: the number of the next split, 1, 8, and for views END_ROW and FRAME_BASE.
constexpr u32 SHARED_WORDS_BYTES = 32;
// Per warp: 16 bytes of slack in front, up to 15 bytes of the tile before, 512 symbols of 8 bytes.
constexpr u32 STAGE_BYTES = 16 + 16 + 8 * TILE_CODES;
template <bool VIEWS> constexpr u32 WARP_BYTES = STAGE_BYTES + (VIEWS ? ROWS_BYTES : 0);
constexpr u32 MAX_WARPS = 10;

// Where a warp stands in the text of its split.
struct Stage {
    u32 at;      // shared address of its buffer
    u64 to;      // global address of the buffer's first byte, a multiple of 16
    u32 fill;    // bytes in the buffer
    u32 skip;    // of them, those that belong to the split before
    u32 carry;   // in lane 0: the last 4 bytes
    u32 tail;    // in the first lanes: the words from TAIL on
};

// The words kept for the next tile: those with its fill, and for views the 16 bytes before.
template <bool VIEWS> constexpr u32 TAIL_WORDS = VIEWS ? 8 : 4;
template <bool VIEWS> constexpr u32 TAIL = VIEWS ? 16 : 0;   // bytes before the fill's chunk

template <bool VIEWS>
__device__ __forceinline__ void store_tail(const Stage& stage, u32 lane) {
    if (lane < TAIL_WORDS<VIEWS>) store_shared(stage.at - TAIL<VIEWS> + 4 * lane, stage.tail);
}

// The last tile of a block, with less than 512 codes: byte by byte. Where its text ends.
template <class Width, bool VIEWS>
__device__ __noinline__ u32 decode_short_tile(const u8* codes, u32 lane, u32 copy, u32 literals,
                                               int left, Stage stage) {
    const int before = left - (int)(lane * LANE_CODES);
    const int num_valid = before < 0 ? 0 : (before > 16 ? 16 : before);
    u32 total = 0;
    for (int i = 0; i < num_valid; i++) {
        u32 hi;
        const u32 at = Width::symbol_of(codes, i, copy | ((literals >> i) & 1) << 7);
        asm("ld.shared.u32 %0, [%1+1028];" : "=r"(hi) : "r"(at));
        total += min(hi >> 24, 8u);
    }
    const u32 scanned = inclusive_scan(total);
    const u32 end = stage.fill + __shfl_sync(ALL_LANES, scanned, 31);
    u32 at = stage.at + stage.fill + scanned - total;
    store_tail<VIEWS>(stage, lane);
    __syncwarp();
    if (lane == 0 && stage.fill) {
        const u32 word = forward4(stage.carry, 0u, 0u - stage.fill);
        store_shared(stage.at + ((stage.fill - 1) & ~3u), word);
    }
    __syncwarp();
    for (int i = 0; i < num_valid; i++) {
        u32 lo, hi;
        const u32 from = Width::symbol_of(codes, i, copy | ((literals >> i) & 1) << 7);
        asm("ld.shared.v2.u32 {%0, %1}, [%2+1024];" : "=r"(lo), "=r"(hi) : "r"(from));
        const u32 len = min(hi >> 24, 8u);
        for (u32 k = 0; k < len; k++) {
            store_shared_byte(at + k, (k < 4 ? lo >> (8 * k) : hi >> (8 * (k - 4))) & 255u);
        }
        at += len;
    }
    __syncwarp();
    for (u32 k = stage.skip + lane; k < end; k += 32) {
        store_global_byte(stage.to + k, load_shared_byte(stage.at + k));
    }
    __syncwarp();
    return end;
}

// A full tile: pack, meet, flush. is_edge: the first or the last tile of its split. Where its text
// ends in the stage.
template <bool EARLY, bool VIEWS>
__device__ __forceinline__ u32 decode_tile(const Symbols& symbols, u32 lane, bool is_edge,
                                           bool is_last, u32 one, u32 eight, Stage& stage) {
    const u32 lane_end = stage.fill + inclusive_scan(symbols.total);
    const u32 end = __shfl_sync(ALL_LANES, lane_end, 31);
    wait_for_flush(lane);
    __syncwarp();
    store_tail<VIEWS>(stage, lane);
    __syncwarp();
    const u32 q0 = 0u - (stage.at + lane_end - symbols.total), q1 = 0u - (stage.at + lane_end);
    u32 T = lane == 0 ? stage.carry : 0u;
    symbols.pack<EARLY>(q0, T, one, eight);
    const u32 before = __shfl_sync(ALL_LANES, T, (lane + 31) & 31);
    stage.carry = before;
    if (lane) {
        asm volatile("red.shared.or.b32 [%0], %1;" ::"r"(~q0 & ~3u), "r"(forward4(before, 0u, q0))
                     : "memory");
    }
    if (lane == 31) store_shared(~q1 & ~3u, forward4(T, 0u, q1));
    publish_stage();
    __syncwarp();
    const u32 whole = end & ~15u;
    if (__builtin_expect(is_edge, 0)) {
        u32 from = 0;
        if (stage.skip) {
            if (lane >= stage.skip && lane < 16) {
                store_global_byte(stage.to + lane, load_shared_byte(stage.at + lane));
            }
            from = 16;
            stage.skip = 0;
        }
        flush(stage.to + from, stage.at + from, whole - from, lane);
        if (is_last && whole + lane < end) {
            store_global_byte(stage.to + whole + lane, load_shared_byte(stage.at + whole + lane));
        }
    } else {
        flush(stage.to, stage.at, whole, lane);
    }
    return end;
}

// Goes on to the next tile, behind one that ended at `end`.
template <bool VIEWS>
__device__ __forceinline__ void advance(Stage& stage, u32 end, u32 lane) {
    const u32 whole = end & ~15u;
    const u32 tail_at = stage.at + whole - TAIL<VIEWS>;
    stage.tail = load_shared(tail_at + 4 * (lane & (TAIL_WORDS<VIEWS> - 1)));
    stage.to += whole;
    stage.fill = end - whole;
}

// Splits of one block from `split` on, until none is left below `end`.
template <class Width, bool VIEWS>
__device__ __forceinline__ void decode_splits(const u8* __restrict__ bytes, const GsstBlock& block,
                                              u32 split, u32 end, u64 out, u32 stage_at, u32 one,
                                              u32 eight, const RowsOut& rows) {
    const u32 rows_at = stage_at + STAGE_BYTES - 16;
    const u32 lane = threadIdx.x & 31, copy = Width::copy_of(lane);
    const u32 next_split_at = TABLE_AT + Width::TABLE_BYTES;
    const u8* codes = bytes + block.codes_at + lane * Width::LANE_BYTES;
    const u32* words = (const u32*)(bytes + block.codes_at + block.splits_at) - block.first_split;
    const u32 split_codes = 1u << block.split_log2;
    u32 word = words[split], at = (split - block.first_split) << block.split_log2;
    u32 loaded[Width::WORDS];
    Width::load(loaded, codes + at / TILE_CODES * Width::TILE_BYTES);
    if (VIEWS) copy_record(rows, rows_at, split, lane);
    while (true) {
        const u64 to = block.text_at + (word & SPLIT_TEXT_AT);
        if (VIEWS) begin_rows(rows, rows_at, next_split_at, split, (u32)to, lane);
        const u32 fill = (u32)to & 15u;
        Stage stage = {stage_at, out + (to - fill), fill, fill, 0, 0};
        u32 starts_with_literal = (word >> SPLIT_LITERAL_BIT) & 1u;
        u32 tiles = word >> SPLIT_TILES_BIT, next = 0, next_word = 0, text_end = 0;
        int left = (int)min(split_codes, block.num_codes - at);
        bool is_edge = true;
        while (true) {
            u32 c[Width::WORDS];
#pragma unroll
            for (int i = 0; i < Width::WORDS; i++) c[i] = loaded[i];
            const u8* current = codes + at / TILE_CODES * Width::TILE_BYTES;
            if (left > TILE_CODES) {
                at += TILE_CODES;
                Width::load(loaded, codes + at / TILE_CODES * Width::TILE_BYTES);
            } else {   // claim the next split, load its first tile
                if (lane == 0) {
                    asm volatile("atom.shared.add.u32 %0, [%1], 1;"
                                 : "=r"(next) : "r"(next_split_at) : "memory");
                }
                next = __shfl_sync(ALL_LANES, next, 0);
                is_edge = true;
                if (next < end) {
                    next_word = words[next];
                    at = (next - block.first_split) << block.split_log2;
                    Width::load(loaded, codes + at / TILE_CODES * Width::TILE_BYTES);
                    if (VIEWS) copy_record(rows, rows_at, next, lane);
                }
            }
            Symbols symbols;
            const bool has_escapes = Width::HAS_ESCAPES && tiles & 1u, is_last = left <= TILE_CODES;
            if (__builtin_expect(!has_escapes && left >= TILE_CODES, 1)) {
                symbols.fetch<Width, false>(c, copy, 0);
                text_end = decode_tile<true, VIEWS>(symbols, lane, is_edge, is_last, one, eight,
                                                    stage);
            } else {
                u32 literals = 0;
                if constexpr (Width::HAS_ESCAPES) {
                    const int num_valid = left - (int)(lane * LANE_CODES);
                    literals = find_literals(find_255(c, num_valid), num_valid, lane,
                                             starts_with_literal);
                }
                if (left < TILE_CODES) {
                    wait_for_flush(lane);
                    __syncwarp();
                    text_end = decode_short_tile<Width, VIEWS>(current, lane, copy, literals, left,
                                                               stage);
                } else if constexpr (Width::HAS_ESCAPES) {
                    symbols.fetch<Width, true>(c, copy, literals);
                    text_end = decode_tile<false, VIEWS>(symbols, lane, is_edge, is_last, one,
                                                         eight, stage);
                }
            }
            if (VIEWS) {
                const u32 text = (u32)(stage.to - out);
                make_views(rows, rows_at, next_split_at, stage.at - text, text + text_end, lane);
            }
            is_edge = false;
            left -= TILE_CODES;
            if (left <= 0) break;
            advance<VIEWS>(stage, text_end, lane);
            tiles >>= 1;
        }
        if (VIEWS) finish_rows(rows, rows_at, (u32)(stage.to - out) + text_end, lane);
        if (next >= end) break;
        if (VIEWS) split = next;
        word = next_word;
    }
}

// run_blocks, block_idxs, rows: only where views are made.
template <class Width, bool VIEWS>
__device__ __forceinline__ void decode(const u8* __restrict__ bytes, const u64* __restrict__ tables,
                                       const GsstBlock* __restrict__ blocks, u32 num_blocks,
                                       u32 num_splits, u8* __restrict__ out,
                                       const u64* __restrict__ error,
                                       const RunBlock* __restrict__ run_blocks,
                                       const u32* __restrict__ block_idxs, const RowsOut& rows) {
    if (*error != NO_ERROR) return;
    extern __shared__ __align__(16) u8 dynamic[];
    if ((u32)__cvta_generic_to_shared(dynamic) > TABLE_AT) __trap();
    const u32 warp = threadIdx.x >> 5, num_warps = blockDim.x >> 5;
    const u32 words_at = TABLE_AT + Width::TABLE_BYTES;
    const u32 stage_at = words_at + SHARED_WORDS_BYTES + warp * WARP_BYTES<VIEWS> + 16;
    const u64 to = (u64)__cvta_generic_to_global(out);
    u32 split = (u32)((u64)num_splits * blockIdx.x / gridDim.x);
    const u32 last = (u32)((u64)num_splits * (blockIdx.x + 1) / gridDim.x);
    u32 b = 0;   // the block of `split`
    for (u32 above = num_blocks; above - b > 1;) {
        const u32 middle = (b + above) >> 1;
        if (blocks[middle].first_split <= split) b = middle; else above = middle;
    }
    while (split < last) {
        const GsstBlock block = blocks[b];
        const u32 num = ((block.num_codes - 1) >> block.split_log2) + 1;
        const u32 end = min(last, block.first_split + num);
        __syncthreads();   // all warps are done with the table before
        Width::fill(tables + (u64)b * Width::TABLE_WORDS);
        if (threadIdx.x == 0) {
            store_shared(words_at, split + num_warps);
            store_shared(words_at + 4, 1);
            store_shared(words_at + 8, 8);
            if (VIEWS) {
                const RunBlock run = run_blocks[block_idxs[b]];
                store_shared(words_at + END_ROW, run.first_row + run.num_rows);
                store_shared(words_at + FRAME_BASE, run.first_row - run.first_frame * FRAME_ROWS);
            }
        }
        __syncthreads();
        const u32 one = load_shared(words_at + 4), eight = load_shared(words_at + 8);
        if (split + warp < end) {
            decode_splits<Width, VIEWS>(bytes, block, split + warp, end, to, stage_at, one, eight,
                                        rows);
        }
        split = end;
        b++;
    }
    wait_for_flush(threadIdx.x & 31);
}

// Entry points of a width: text alone, and with the views of rows.
// Shared memory: TABLE_AT minus gsst_decode_base, table, SHARED_WORDS_BYTES, WARP_BYTES per warp.
// bytes: 1 KiB behind the last block can be read. out: a multiple of 16. error: nothing is done
// where it is not NO_ERROR, since gsst_check found bytes that may not be decoded.
#define GSST_DECODE(name, Width)                                                                   \
    extern "C" __global__ void __launch_bounds__(MAX_WARPS * 32, 2)                                \
    name(const u8* __restrict__ bytes, const u64* __restrict__ tables,                             \
         const GsstBlock* __restrict__ blocks, u32 num_blocks, u32 num_splits,                     \
         u8* __restrict__ out, const u64* __restrict__ error) {                                    \
        decode<Width, false>(bytes, tables, blocks, num_blocks, num_splits, out, error, nullptr,   \
                             nullptr, RowsOut());                                                  \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(MAX_WARPS * 32, 2)                                \
    name##_views(const u8* __restrict__ bytes, const u64* __restrict__ tables,                     \
                 const GsstBlock* __restrict__ blocks, u32 num_blocks, u32 num_splits,             \
                 u8* __restrict__ out, const u64* __restrict__ error,                              \
                 const RunBlock* __restrict__ run_blocks, const u32* __restrict__ block_idxs,      \
                 const RunFrame* __restrict__ frames, SplitRows* __restrict__ split_rows,          \
                 uint4* __restrict__ views) {                                                      \
        const RowsOut rows = {bytes, frames, split_rows, views};                                   \
        decode<Width, true>(bytes, tables, blocks, num_blocks, num_splits, out, error, run_blocks, \
                            block_idxs, rows);                                                     \
    }

// Where dynamic shared memory starts.
extern "C" __global__ void gsst_decode_base(u32* __restrict__ base) {
    extern __shared__ __align__(16) u8 dynamic[];
    *base = (u32)__cvta_generic_to_shared(dynamic);
}
