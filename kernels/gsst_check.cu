// Whether the codes of GSST blocks are what the rest of their bytes says: what gsst::Block::open
// finds out on the CPU, for blocks whose checksum, header, table and frames the host looked at.
//
// One warp per split, in tiles of 512 codes, 16 per lane. Lengths of symbols come from a table of
// one byte per code in shared memory, 0 where there is no symbol.
//
//   codes    have a symbol; the split's text is as long as its word and the next one say; the bits
//            of tiles are those of escapes and literals; an escape at the end of a split is one the
//            next split knows of, and no escape is the last code
//   rows     their ends (gsst_rows_offsets) lie on codes and not inside an escape, and their texts
//            are as long as the codes before them: a tile's prefix sums lie in shared memory, and the
//            warp looks up the rows that end in it. Where a block has no lengths of texts, the
//            ends of rows are written instead
//
// Reads only inside of the blocks, 1 KiB behind the last one, and code_ends; whatever the codes are,
// tables are indexed by a code, and prefix sums by a place that was compared with the tile.
// Not made for speed: on its way to the device a byte of text takes ten times as long.

#include "gsst_run.cuh"

constexpr u32 WARPS = 8;
// Prefix sums: two per word, 16 per lane, one word more per lane so that lanes use other banks.
constexpr u32 LANE_WORDS = LANE_CODES / 2 + 1;
constexpr u32 PREFIX_WORDS = 32 * LANE_WORDS + 1;
// In a prefix sum: the code behind it is a literal. Sums of a tile are 4,096 at most.
constexpr u32 LITERAL = 0x8000u;

struct Eight {
    static constexpr bool HAS_ESCAPES = true;
    static constexpr u32 NUM_CODES = 256, TILE_BYTES = 512, WORDS = 4;
    static __device__ __forceinline__ u32 code(const u32 (&c)[WORDS], int i) {
        return c[i >> 2] >> (8 * (i & 3)) & 255u;
    }
};

struct Twelve {
    static constexpr bool HAS_ESCAPES = false;
    static constexpr u32 NUM_CODES = 4096, TILE_BYTES = 768, WORDS = 6;
    static __device__ __forceinline__ u32 code(const u32 (&c)[WORDS], int i) {
        const int word = 12 * i / 32, bit = 12 * i % 32;
        return __funnelshift_r(c[word], c[word + 1 < (int)WORDS ? word + 1 : word], bit) & 4095u;
    }
};

// The first of `num` ends, which ascend, that is above `at`.
__device__ u32 first_above(const u32* __restrict__ ends, u32 num, u32 at, u32 lane) {
    u32 first = 0;
    while (num > 0) {
        const u32 step = (num + 31) / 32, last = min(num, (lane + 1) * step) - 1;
        // Not the number of lanes: ends nobody checked may not ascend, and must not lead outside.
        const u32 below = __ffs(~__ballot_sync(ALL_LANES, ends[first + last] <= at)) - 1;
        if (below == ~0u) return first + num;
        first += below * step;
        num = min(step, num - below * step) - 1;
    }
    return first;
}

// Rows whose codes end in a tile of `num` codes that starts at `start`, `text` bytes of the block
// before it. row: the first that was not looked at yet.
__device__ void check_rows(const RunBlock& block, u32 block_idx, const u32* __restrict__ code_ends,
                           u32* __restrict__ offsets, const u32* prefix, u32 start, u32 num,
                           u32 text, u32 lane, u32& row, u64* error) {
    while (true) {
        const u32 i = row + lane;
        const u32 end = i < block.num_rows ? code_ends[block.first_row + i] : ~0u;
        const bool is_here = end <= start + num;
        if (is_here) {
            const u32 k = min(end - start, num);   // also where ends do not ascend
            const u32 entry = prefix[k / LANE_CODES * LANE_WORDS + k % LANE_CODES / 2] >> (k % 2 * 16);
            const u32 expected = (u32)block.text_at + text + (entry & (LITERAL - 1));
            if (entry & LITERAL) report(error, block_idx, CHECK_ROW_IN_ESCAPE, i);
            u32* offset = offsets + block.first_row + i + 1;
            if (!block.has_lengths) {
                *offset = expected;
            } else if (*offset != expected) {
                report(error, block_idx, CHECK_ROW_TEXT, i);
            }
        }
        const u32 num_here = __popc(__ballot_sync(ALL_LANES, is_here));
        row += num_here;
        if (num_here < 32) return;
    }
}

template <class Width>
__device__ void check_split(const u8* __restrict__ bytes, const GsstBlock& codes_of,
                            const RunBlock& block, u32 block_idx, u32 split, const u8* lens,
                            u32* prefix, const u32* __restrict__ code_ends,
                            u32* __restrict__ offsets, u64* error) {
    const u32 lane = threadIdx.x & 31;
    const u32* words = (const u32*)(bytes + codes_of.codes_at + codes_of.splits_at);
    const u32 num_splits = ((codes_of.num_codes - 1) >> codes_of.split_log2) + 1;
    const u32 word = words[split], next = split + 1 < num_splits ? words[split + 1] : block.text_len;
    const u32 text_end = split + 1 < num_splits ? next & SPLIT_TEXT_AT : next;
    const u32 next_literal = split + 1 < num_splits ? (next >> SPLIT_LITERAL_BIT) & 1u : 0;
    u32 at = split << codes_of.split_log2, text = word & SPLIT_TEXT_AT;
    const u32 end = min(codes_of.num_codes, at + (1u << codes_of.split_log2));
    u32 tiles = word >> SPLIT_TILES_BIT, literal = (word >> SPLIT_LITERAL_BIT) & 1u;
    const u32* ends = code_ends + block.first_row;
    u32 row = split == 0 ? 0 : first_above(ends, block.num_rows, at, lane);
    u32 bad = 0;   // the first fault
    for (; at < end; at += TILE_CODES, tiles >>= 1) {
        const u32 num = min(TILE_CODES, end - at);
        const int mine = (int)num - (int)(lane * LANE_CODES);
        const u8* from = bytes + codes_of.codes_at + at / TILE_CODES * Width::TILE_BYTES
                         + lane * (Width::TILE_BYTES / 32);
        u32 c[Width::WORDS];
#pragma unroll
        for (u32 i = 0; i < Width::WORDS / 2; i++) {
            const uint2 pair = ((const uint2*)from)[i];
            c[2 * i] = pair.x;
            c[2 * i + 1] = pair.y;
        }
        u32 literals = 0, escapes = 0;
        if constexpr (Width::HAS_ESCAPES) {
            const u32 is_255 = find_255(c, mine), before = literal;
            literals = find_literals(is_255, mine, lane, literal);
            escapes = is_255 & ~literals;
            const u32 last = (num - 1) / LANE_CODES;
            literal = __shfl_sync(ALL_LANES, escapes, last) >> ((num - 1) % LANE_CODES) & 1u;
            const bool has_escapes = __any_sync(ALL_LANES, is_255 != 0) || before;
            if (has_escapes != (tiles & 1u) && !bad) bad = CHECK_SPLIT_TILES;
        }
        u32 sum = 0, before[LANE_CODES];
        bool is_unknown = false;
#pragma unroll
        for (int i = 0; i < LANE_CODES; i++) {
            before[i] = sum | (literals >> i & 1u ? LITERAL : 0);
            u32 len = lens[Width::code(c, i)];
            if (Width::HAS_ESCAPES) len = literals >> i & 1u ? 1 : len;
            is_unknown |= i < mine && len == 0 && !(escapes >> i & 1u);
            sum += i < mine ? len : 0;
        }
        if (__any_sync(ALL_LANES, is_unknown) && !bad) bad = CHECK_CODE;
        const u32 scanned = inclusive_scan(sum), start = scanned - sum;
        const u32 total = __shfl_sync(ALL_LANES, scanned, 31);
#pragma unroll
        for (u32 i = 0; i < LANE_CODES / 2; i++) {
            prefix[lane * LANE_WORDS + i] = (before[2 * i] + start) | (before[2 * i + 1] + start) << 16;
        }
        __syncwarp();
        // What stands where the tile ends: behind a short tile's codes, or behind all lanes.
        if (lane == 0) {
            u16* last = (u16*)&prefix[num / LANE_CODES * LANE_WORDS] + num % LANE_CODES;
            *last = (u16)(total | (literal ? LITERAL : 0));
        }
        __syncwarp();
        check_rows(block, block_idx, code_ends, offsets, prefix, at, num, text, lane, row, error);
        text += total;
        __syncwarp();
    }
    if (!bad && tiles) bad = CHECK_SPLIT_TILES;
    if (!bad && literal != next_literal) bad = CHECK_SPLIT_LITERAL;
    if (!bad && text != text_end) bad = CHECK_SPLIT_TEXT;
    if (bad && lane == 0) report(error, block_idx, bad, split);
}

// Length of the text of a packed symbol, 0 where there is none.
__device__ __forceinline__ u8 length_of(u64 symbol) { return (u8)min((u32)(symbol >> 56), 8u); }

// block_idxs: for each of `places`, the number of its block in the run. offsets: written where
// blocks have no lengths of texts, else compared.
template <class Width>
__device__ __forceinline__ void check(const u8* __restrict__ bytes, const u64* __restrict__ tables,
                                      const GsstBlock* __restrict__ places,
                                      const u32* __restrict__ block_idxs, u32 num_places,
                                      u32 num_splits, const RunBlock* __restrict__ blocks,
                                      const u32* __restrict__ code_ends, u32* __restrict__ offsets,
                                      u64* __restrict__ error) {
    __shared__ u8 lens[Width::NUM_CODES];
    __shared__ u32 prefixes[WARPS][PREFIX_WORDS];
    const u32 warp = threadIdx.x >> 5;
    u32 split = (u32)((u64)num_splits * blockIdx.x / gridDim.x);
    const u32 last = (u32)((u64)num_splits * (blockIdx.x + 1) / gridDim.x);
    u32 b = 0;   // the block of `split`
    for (u32 above = num_places; above - b > 1;) {
        const u32 middle = (b + above) >> 1;
        if (places[middle].first_split <= split) b = middle; else above = middle;
    }
    while (split < last) {
        const GsstBlock codes_of = places[b];
        const u32 block_idx = block_idxs[b];
        const RunBlock block = blocks[block_idx];
        const u32 num = ((codes_of.num_codes - 1) >> codes_of.split_log2) + 1;
        const u32 end = min(last, codes_of.first_split + num);
        __syncthreads();
        for (u32 i = threadIdx.x; i < Width::NUM_CODES; i += blockDim.x) {
            lens[i] = length_of(tables[(u64)b * Width::NUM_CODES + i]);
        }
        __syncthreads();
        for (u32 s = split + warp; s < end; s += WARPS) {
            check_split<Width>(bytes, codes_of, block, block_idx, s - codes_of.first_split, lens,
                               prefixes[warp], code_ends, offsets, error);
        }
        split = end;
        b++;
    }
}

#define GSST_CHECK(name, Width)                                                                    \
    extern "C" __global__ void __launch_bounds__(WARPS * 32)                                       \
    name(const u8* __restrict__ bytes, const u64* __restrict__ tables,                             \
         const GsstBlock* __restrict__ places, const u32* __restrict__ block_idxs,                 \
         u32 num_places, u32 num_splits, const RunBlock* __restrict__ blocks,                      \
         const u32* __restrict__ code_ends, u32* __restrict__ offsets, u64* __restrict__ error) {  \
        check<Width>(bytes, tables, places, block_idxs, num_places, num_splits, blocks, code_ends, \
                     offsets, error);                                                              \
    }

GSST_CHECK(gsst_check_8bit, Eight)
GSST_CHECK(gsst_check_12bit, Twelve)
