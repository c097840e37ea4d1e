// GSST blocks and a mask of their rows -> numbers, offsets and text of the rows in the mask, where they
// are many. Step 5 of gsst_match.cu in another form: gsst_match_write_* decodes row by row, this kernel
// decodes everything and drops what is not wanted.
//
// A warp takes a unit, frame by frame and tile by tile:
//
//   rows    four per lane: where their codes start, their lengths of text, their bits of the mask. Two
//           scans give where their numbers, offsets and text go
//   flips   a bit of shared memory for each code of the tile, set where a row starts whose bit of the mask
//           differs from that of the row before. The parity of the bits up to a code tells whether it is
//           kept
//   fetch, place, pack   as gsst_decode.cuh does, but a code that is not kept has a length of 0. So the
//           kept text is packed without gaps
//   meet    a lane may have no byte at all, and many lanes may share a word. So each lane ORs its last
//           word into shared memory
//   flush   whole 16-byte chunks; the ends of a unit by bytes
//
// A tile without kept codes is skipped. A row starts behind a whole code, so an escape never reaches over
// the codes that are dropped, and these count as no escapes.
//
// Inputs, and limits: gsst_match_rows.cuh. A launch returns at once where gsst_match_write_* is the one
// to write (`is_dense`).

#include "gsst_flush.cuh"
#include "gsst_match_rows.cuh"
#include "gsst_symbols.cuh"

constexpr u32 DENSE_WARPS = 10;
// Per warp: 16 bytes of slack in front, up to 15 bytes of the tile before, 512 symbols of 8 bytes, and
// the flips.
constexpr u32 FLIP_BYTES = TILE_CODES / 8;
constexpr u32 STAGE_BYTES = 16 + 16 + 8 * TILE_CODES;
constexpr u32 WARP_BYTES = STAGE_BYTES + FLIP_BYTES;
// Behind the table: the number of the next unit, 1, 8, and nothing.
constexpr u32 SHARED_WORDS_BYTES = 16;

// Where a warp writes.
struct DenseOutput {
    u32* rows;
    u32* offsets;
    u8* text;      // all text, none where only numbers and offsets are wanted
    u64 text_at;   // of the next row, in it
};

// A frame of a unit: four rows per lane.
struct FrameRows {
    u32 starts[4];   // of their codes
    u32 flips;       // bit j: row j is kept and the one before is not, or the other way round
    u32 end;         // of the codes of the frame
};

// Reads frame `f` of a block and writes numbers and offsets of its kept rows. was_kept: of the row before
// the frame; becomes that of its last row.
__device__ __forceinline__ FrameRows read_frame(const u8* at, const MatchBlock& block,
                                                const MatchFrame* frames, u32 f, const u32* mask,
                                                u32& was_kept, DenseOutput& out, u32 lane) {
    const u32 num_rows = num_rows_of(block, f);
    const Four counts = counts_of(at, frames[f]).four(4 * lane, num_rows);
    const Four lengths = lengths_of(at, frames[f]).four(4 * lane, num_rows);
    const u32 kept = mask[4 * f + (lane >> 3)] >> (lane & 7) * 4 & 15u;
    FrameRows frame;
    const u32 num_codes = counts.sum();
    u32 start = frames[f].starts[0] + inclusive_scan(num_codes) - num_codes;
    u32 num = __popc(kept), len = 0;
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        frame.starts[j] = start;
        start += counts.value[j];
        if (kept >> j & 1u) len += lengths.value[j];
    }
    frame.end = __shfl_sync(ALL_LANES, start, 31);
    const u32 last = __shfl_up_sync(ALL_LANES, kept >> 3, 1);
    frame.flips = kept ^ ((kept << 1 | (lane ? last : was_kept)) & 15u);
    was_kept = __shfl_sync(ALL_LANES, kept >> 3, 31);
    const u32 rows_to = inclusive_scan(num), text_to = inclusive_scan(len);
    u32 slot = rows_to - num;
    u32 offset = (u32)out.text_at + text_to - len;
    const u32 row = block.first_row + f * FRAME_ROWS + 4 * lane;
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        if (kept >> j & 1u) {
            out.rows[slot] = row + j;
            out.offsets[slot] = offset;
            slot++;
            offset += lengths.value[j];
        }
    }
    const u32 total = __shfl_sync(ALL_LANES, rows_to, 31);
    out.rows += total;
    out.offsets += total;
    out.text_at += __shfl_sync(ALL_LANES, text_to, 31);
    return frame;
}

// Sets the flips of the rows of a frame that start in the tile from code `tile` on.
__device__ __forceinline__ void set_flips(const FrameRows& frame, u32 tile, u32 flips_at) {
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const u32 code = frame.starts[j] - tile;
        if ((frame.flips >> j & 1u) && code < TILE_CODES) {
            asm volatile("red.shared.xor.b32 [%0], %1;"
                         ::"r"(flips_at + (code >> 5) * 4), "r"(1u << (code & 31)) : "memory");
        }
    }
}

// Which of the lane's 16 codes are kept. is_kept: of the codes before the tile; becomes that of its last
// one.
__device__ __forceinline__ u32 kept_codes(u32 flips_at, u32& is_kept, u32 lane) {
    u32 kept;
    asm volatile("ld.shared.u16 %0, [%1];" : "=r"(kept) : "r"(flips_at + 2 * lane) : "memory");
    kept ^= kept << 1;
    kept ^= kept << 2;
    kept ^= kept << 4;
    kept ^= kept << 8;
    const u32 odd = __ballot_sync(ALL_LANES, kept >> 15 & 1u);
    const u32 before = (__popc(odd & ((1u << lane) - 1u)) + is_kept) & 1u;
    is_kept = (__popc(odd) + is_kept) & 1u;
    return (kept ^ (0u - before)) & 0xffffu;
}

// Where a warp stands in the text of its unit.
struct Stage {
    u32 at;      // shared address of its buffer
    u64 to;      // global address of the buffer's first byte, a multiple of 16
    u32 fill;    // bytes in the buffer
    u32 skip;    // of them, those of the unit before
    u32 carry;   // the word with the last of them
    u32 tail;    // in the first lanes: the words of the buffer
};

// The word with the byte before address `end`.
__device__ __forceinline__ u32 last_word(u32 end) { return (end - 1) & ~3u; }

// Packs the kept codes of a tile behind the buffer's bytes. Returns where the text ends.
// is_whole: each code is kept and has a byte.
__device__ __forceinline__ u32 pack_tile(Symbols& symbols, u32 kept, bool is_whole, Stage& stage, u32 one,
                                         u32 eight, u32 lane) {
    u32 total = symbols.total;
    if (!is_whole) {
        total = 0;
#pragma unroll
        for (int i = 0; i < LANE_CODES; i++) {
            if (!(kept >> i & 1u)) symbols.len[i] = 0;
            total += symbols.len[i];
        }
    }
    const u32 lane_end = stage.fill + inclusive_scan(total);
    const u32 end = __shfl_sync(ALL_LANES, lane_end, 31);
    if (end == stage.fill) return end;
    wait_for_flush(lane);
    __syncwarp();
    if (lane < 4) store_shared(stage.at + 4 * lane, stage.tail);
    __syncwarp();
    u32 T = 0;
    const u32 q = 0u - (stage.at + lane_end - total);
    if (is_whole) symbols.pack<true>(q, T, one, eight);
    else symbols.pack<false>(q, T, one, eight);
    // No lane stores the word that the text ends in.
    if (lane == 31) store_shared(last_word(stage.at + end), 0);
    __syncwarp();
    if (total) {
        const u32 to = stage.at + lane_end;
        asm volatile("red.shared.or.b32 [%0], %1;" ::"r"(last_word(to)), "r"(forward4(T, 0u, 0u - to))
                     : "memory");
    }
    if (lane == 0 && stage.fill) {
        asm volatile("red.shared.or.b32 [%0], %1;"
                     ::"r"(last_word(stage.at + stage.fill)), "r"(stage.carry) : "memory");
    }
    publish_stage();
    __syncwarp();
    stage.carry = load_shared(last_word(stage.at + end));
    return end;
}

// Writes the whole chunks of the buffer, which holds `end` bytes, and keeps the rest.
__device__ __forceinline__ void flush_chunks(Stage& stage, u32 end, u32 lane) {
    const u32 whole = end & ~15u;
    stage.fill = end - whole;
    if (whole) {
        u32 from = 0;
        if (stage.skip) {
            if (lane >= stage.skip && lane < 16) {
                store_global_byte(stage.to + lane, load_shared_byte(stage.at + lane));
            }
            from = 16;
            stage.skip = 0;
        }
        if (from < whole) flush(stage.to + from, stage.at + from, whole - from, lane);
        stage.to += whole;
    }
    stage.tail = load_shared(stage.at + whole + 4 * (lane & 3u));
}

// Writes the bytes that are left in the buffer.
__device__ __forceinline__ void flush_rest(const Stage& stage, u32 lane) {
    wait_for_flush(lane);
    __syncwarp();
    if (lane < 4) store_shared(stage.at + 4 * lane, stage.tail);
    __syncwarp();
    if (lane >= stage.skip && lane < stage.fill) {
        store_global_byte(stage.to + lane, load_shared_byte(stage.at + lane));
    }
    __syncwarp();
}

// Reads the symbols of a tile. Returns whether it has no escapes and no literals.
template <class Width>
__device__ __forceinline__ bool fetch_kept(const u32 (&c)[Width::WORDS], u32 kept, u32 copy, u32 lane,
                                           u32& starts_with_literal, Symbols& symbols) {
    if constexpr (Width::HAS_ESCAPES) {
        const u32 is_255 = find_255(c, LANE_CODES) & kept;
        if (__any_sync(ALL_LANES, is_255) || starts_with_literal) {
            const u32 literals = find_literals(is_255, LANE_CODES, lane, starts_with_literal);
            symbols.fetch<Width, true>(c, copy, literals);
            return false;
        }
    }
    symbols.fetch<Width, false>(c, copy, 0);
    return true;
}

// The kept rows of one unit.
template <class Width>
__device__ __forceinline__ void write_unit(const u8* at, const MatchBlock& block,
                                           const MatchFrame* frames, Unit unit, const u32* mask,
                                           DenseOutput out, u32 stage_at, u32 one, u32 eight, u32 lane) {
    const u32 flips_at = stage_at - 16 + STAGE_BYTES, copy = Width::copy_of(lane);
    u64 to = (u64)__cvta_generic_to_global(out.text) + out.text_at;
    const u32 fill = (u32)to & 15u;
    Stage stage = {stage_at, to - fill, fill, fill, 0, 0};
    u32 was_kept = 0, is_kept = 0, starts_with_literal = 0;
    u32 f = unit.first;
    FrameRows frame = read_frame(at, block, frames, f, mask, was_kept, out, lane);
    const u32 end_code = out.text ? frames[unit.end].starts[0] : 0;
    const u8* codes = at + HEADER_BYTES + lane * Width::LANE_BYTES;
    u32 tile = frames[unit.first].starts[0] & ~(LANE_CODES - 1);
    codes += tile / LANE_CODES * Width::LANE_BYTES;
    u32 loaded[Width::WORDS] = {};
    if (tile < end_code) Width::load(loaded, codes);
    for (; tile < end_code; tile += TILE_CODES) {
        u32 c[Width::WORDS];
#pragma unroll
        for (int i = 0; i < Width::WORDS; i++) c[i] = loaded[i];
        codes += Width::TILE_BYTES;
        if (tile + TILE_CODES < end_code) Width::load(loaded, codes);
        if (lane < FLIP_BYTES / 4) store_shared(flips_at + 4 * lane, 0);
        __syncwarp();
        set_flips(frame, tile, flips_at);
        while (frame.end < tile + TILE_CODES && f + 1 < unit.end) {
            f++;
            frame = read_frame(at, block, frames, f, mask, was_kept, out, lane);
            set_flips(frame, tile, flips_at);
        }
        __syncwarp();
        u32 kept = kept_codes(flips_at, is_kept, lane);
        // The codes behind the unit are those of other rows.
        const int left = (int)(end_code - tile) - (int)(lane * LANE_CODES);
        if (left < (int)LANE_CODES) kept &= left < 0 ? 0 : (1u << left) - 1u;
        if (!__any_sync(ALL_LANES, kept)) {
            starts_with_literal = 0;
            continue;
        }
        Symbols symbols;
        const bool is_plain = fetch_kept<Width>(c, kept, copy, lane, starts_with_literal, symbols);
        const bool is_whole = is_plain && __all_sync(ALL_LANES, kept == 0xffffu);
        const u32 end = pack_tile(symbols, kept, is_whole, stage, one, eight, lane);
        if (end != stage.fill) flush_chunks(stage, end, lane);
    }
    while (f + 1 < unit.end) {
        f++;
        read_frame(at, block, frames, f, mask, was_kept, out, lane);
    }
    flush_rest(stage, lane);
}

// All units of `blocks`. totals: rows and bytes of text that match; where one of them is more than its
// capacity, nothing is written.
template <class Width>
__device__ __forceinline__ void write_dense(const u8* bytes, const MatchBlock* blocks, u32 num_blocks,
                                            const MatchFrame* frames, const u64* tables, u32 num_units,
                                            const u32* mask, const u32* rows_before,
                                            const u64* text_before, u32* rows, u32* offsets, u8* text) {
    extern __shared__ __align__(16) u8 dynamic[];
    if ((u32)__cvta_generic_to_shared(dynamic) > TABLE_AT) __trap();
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 words_at = TABLE_AT + Width::TABLE_BYTES;
    const u32 stage_at = words_at + SHARED_WORDS_BYTES + warp * WARP_BYTES + 16;
    u32 unit = (u32)((u64)num_units * blockIdx.x / gridDim.x);
    const u32 last = (u32)((u64)num_units * (blockIdx.x + 1) / gridDim.x);
    if (unit >= last) return;
    for (u32 b = block_of_unit(blocks, num_blocks, unit); unit < last; b++) {
        const MatchBlock block = blocks[b];
        const u32 end = min(last, block.first_unit + num_units_of(block));
        __syncthreads();   // all warps are done with the table before
        Width::fill(tables + (u64)block.table * Width::TABLE_WORDS);
        if (threadIdx.x == 0) {
            store_shared(words_at, unit);
            store_shared(words_at + 4, 1);
            store_shared(words_at + 8, 8);
        }
        __syncthreads();
        const u32 one = load_shared(words_at + 4), eight = load_shared(words_at + 8);
        const u8* at = bytes + block.at;
        while (true) {
            u32 mine = 0;
            if (lane == 0) {
                asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(mine) : "r"(words_at) : "memory");
            }
            mine = __shfl_sync(ALL_LANES, mine, 0);
            if (mine >= end) break;
            const u32 slot = block.first_slot + mine - block.first_unit, before = rows_before[slot];
            const DenseOutput out = {rows + before, offsets + before, text, text_before[slot]};
            write_unit<Width>(at, block, frames + block.first_frame, Unit(block, mine - block.first_unit),
                              mask + (u64)block.first_frame * 4, out, stage_at, one, eight, lane);
        }
        unit = end;
    }
}

#define GSST_MATCH_DENSE(width, Width)                                                             \
    extern "C" __global__ void __launch_bounds__(DENSE_WARPS * 32, 2)                              \
    gsst_match_dense_##width(const u8* __restrict__ bytes, const MatchBlock* __restrict__ blocks,  \
                             u32 num_blocks, const MatchFrame* __restrict__ frames,                \
                             const u64* __restrict__ tables, u32 num_units,                        \
                             const u32* __restrict__ mask,                                         \
                             const u32* __restrict__ rows_before,                                  \
                             const u64* __restrict__ text_before, const u64* __restrict__ totals,  \
                             u64 max_rows, u64 max_text, u32 num_rows, u32* __restrict__ rows,     \
                             u32* __restrict__ offsets, u8* __restrict__ text,                     \
                             const u64* __restrict__ error) {                                      \
        if (has_fault(error)) return;                                                              \
        if (totals[0] > max_rows || totals[1] > max_text || !is_dense(totals, num_rows)) return;   \
        if (blockIdx.x == 0 && threadIdx.x == 0) offsets[totals[0]] = (u32)totals[1];              \
        write_dense<Width>(bytes, blocks, num_blocks, frames, tables, num_units, mask,             \
                           rows_before, text_before, rows, offsets, text);                         \
    }

GSST_MATCH_DENSE(8bit, Eight)
GSST_MATCH_DENSE(12bit, Twelve)

// Shared memory of each width, for the host.
extern "C" __global__ void gsst_match_dense_sizes(u32* __restrict__ sizes) {
    constexpr u32 BEHIND_TABLE = SHARED_WORDS_BYTES + DENSE_WARPS * WARP_BYTES;
    sizes[0] = TABLE_AT + Eight::TABLE_BYTES + BEHIND_TABLE;
    sizes[1] = TABLE_AT + Twelve::TABLE_BYTES + BEHIND_TABLE;
}
