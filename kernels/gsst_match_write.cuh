// Step 5 of gsst_match.cu: row numbers, offsets and text of the rows that match.
//
// A warp takes a run of units and knows from the sums before them where their rows and text go. The
// rows that match go to a ring in shared memory; 32 of them at a time are taken, one per lane. A
// lane finds its row's codes by summing up at most 15 numbers of codes, and its length alone; a scan
// of the lengths gives the offsets. Then each lane decodes its row into shared memory, and the text
// leaves in 16-byte chunks. Where it is too long for that, the warp decodes row by row, a code per
// lane.

#pragma once
#include "gsst_match.cuh"

constexpr u32 WRITE_WARPS = 8;
constexpr u32 STAGE_BYTES = 2048;
constexpr u32 RUN_UNITS = 2;
constexpr u32 RING_ROWS = 2048;   // 31 that wait and those of a unit, and a power of two

// What a warp keeps in shared memory.
struct __align__(16) WriteSpace {
    u32 stage[STAGE_BYTES / 4];
    u16 rows[RING_ROWS];   // of the run
};

template <class Width>
struct WriteShared {
    u64 symbols[Width::NUM_CODES];
    u32 next_unit, reserved[3];
    WriteSpace warps[WRITE_WARPS];
};

// Bytes of a symbol and how many they are; those behind the end are 0.
struct SymbolBytes {
    u32 lo, hi, len;

    __device__ __forceinline__ explicit SymbolBytes(u64 packed) {
        lo = (u32)packed;
        hi = (u32)(packed >> 32);
        len = min(hi >> 24, 8u);
        if (len < 8) hi &= 0xffffffu;
    }
    __device__ __forceinline__ static SymbolBytes literal(u32 byte) {
        return SymbolBytes((u64)byte | 1ull << 56);
    }
};

// Text of one row, by one lane, to byte `at` of the stage. Writes whole words; bytes of the row before
// in the first of them as 0. Returns the word the row ends in, 0 where it ends between two words, and
// where that is.
struct Tail {
    u32 word, at;
};

template <class Width>
__device__ __forceinline__ Tail stage_row(const u64* symbols, const u8* codes, u32 start, u32 count,
                                          u32 stage_at, u32 at) {
    u32 low = 0, code = Width::code_at(codes, start);
    for (u32 i = start; i < start + count; i++) {
        u32 next_code = Width::code_at(codes, i + 1);   // in time; behind the end: unused
        SymbolBytes symbol(symbols[code]);
        if (Width::HAS_ESCAPES && code == 255) {
            symbol = SymbolBytes::literal(next_code);
            i++;
            next_code = Width::code_at(codes, i + 1);
        }
        const u32 bit = (at & 3) * 8, to = stage_at + (at & ~3u), end = (at & 3) + symbol.len;
        const u32 first = low | symbol.lo << bit;
        const u32 second = __funnelshift_l(symbol.lo, symbol.hi, bit);
        const u32 third = __funnelshift_l(symbol.hi, 0, bit);
        asm volatile("{ .reg .pred p, q; setp.ge.u32 p, %0, 4; setp.ge.u32 q, %0, 8; "
                     "@p st.shared.u32 [%1], %2; @q st.shared.u32 [%1+4], %3; }"
                     ::"r"(end), "r"(to), "r"(first), "r"(second) : "memory");
        low = end >= 8 ? third : (end >= 4 ? second : first);
        at += symbol.len;
        code = next_code;
    }
    return {at & 3 ? low : 0, at / 4};
}

// Which of 32 codes are literals; is_255: which are 255. starts_with_literal: of these codes,
// becomes that of the next 32. (A carry through a run of 255s tells where it ends.)
__device__ __forceinline__ u32 find_literals(u32 is_255, u32& starts_with_literal) {
    const u32 starts = is_255 & ~starts_with_literal, follows = starts << 1 | starts_with_literal;
    const u32 odd_starts = starts & ~0x55555555u & ~follows;
    const u32 runs = odd_starts + starts;
    starts_with_literal = runs < starts;
    return (0x55555555u ^ runs << 1) & follows;
}

// Text of one row, by all lanes, a code each.
template <class Width>
__device__ __forceinline__ void write_row(const u64* symbols, const u8* codes, u32 start, u32 count,
                                          u8* to, u32 lane) {
    u32 starts_with_literal = 0;
    for (u32 k = 0; k < count; k += 32) {
        const bool is_code = k + lane < count;
        const u32 code = is_code ? Width::code_at(codes, start + k + lane) : 0;
        SymbolBytes symbol(symbols[code]);
        if (Width::HAS_ESCAPES) {
            const u32 is_255 = __ballot_sync(ALL_LANES, is_code && code == 255);
            const u32 literals = find_literals(is_255, starts_with_literal);
            if (literals >> lane & 1u) symbol = SymbolBytes::literal(code);
            else if (code == 255) symbol.len = 0;
        }
        const u32 len = is_code ? symbol.len : 0, scanned = inclusive_scan(len);
        u8* at = to + scanned - len;
        for (u32 i = 0; i < len; i++) at[i] = (u8)((i < 4 ? symbol.lo : symbol.hi) >> (i & 3) * 8);
        to += __shfl_sync(ALL_LANES, scanned, 31);
    }
}

// Where a warp writes next.
struct Output {
    u32* rows;
    u32* offsets;
    u8* text;        // all text, none where only numbers and offsets are wanted
    u64 text_at;     // in it
};

// The next `num` rows of the ring, from `head` on: first_row: row of the block that the run starts
// with.
template <class Width>
__device__ __forceinline__ void write_batch(const u64* symbols, const u8* at,
                                            const MatchBlock& block, const MatchFrame* frames,
                                            WriteSpace& space, u32 head, u32 num, u32 first_row,
                                            Output& out, u32 lane) {
    const u8* codes = at + HEADER_BYTES;
    u32 start = 0, count = 0, len = 0, row = 0;
    if (lane < num) {
        row = first_row + space.rows[(head + lane) & (RING_ROWS - 1)];
        const u32 f = row / FRAME_ROWS, of_frame = row % FRAME_ROWS;
        const MatchFrame& frame = frames[f];
        const Packed counts = counts_of(at, frame);
        const u32 first = of_frame & ~(GROUP_ROWS - 1);
        start = frame.starts[of_frame / GROUP_ROWS];
#pragma unroll
        for (u32 k = 0; k < GROUP_ROWS; k += 4) {
            const Four four = counts.four(first + k, of_frame);   // 0 from this row on
            start += four.sum();
        }
        count = counts.number(of_frame);
        len = lengths_of(at, frame).number(of_frame);
    }
    const u32 scanned = inclusive_scan(len), from = scanned - len;
    const u32 total = __shfl_sync(ALL_LANES, scanned, 31);
    u8* to = out.text + out.text_at;
    if (lane < num) {
        out.rows[lane] = block.first_row + row;
        out.offsets[lane] = (u32)out.text_at + from;
    }
    out.rows += num;
    out.offsets += num;
    out.text_at += total;
    if (!out.text) return;
    const u32 skip = (u32)(u64)to & 15u;
    if (skip + total > STAGE_BYTES) {
        for (u32 k = 0; k < num; k++) {
            write_row<Width>(symbols, codes, __shfl_sync(ALL_LANES, start, k),
                             __shfl_sync(ALL_LANES, count, k),
                             to + __shfl_sync(ALL_LANES, from, k), lane);
        }
        return;
    }
    for (u32 k = lane * 4; k < (skip + total + 3) / 4; k += 128) {
        *(uint4*)(space.stage + k) = make_uint4(0, 0, 0, 0);
    }
    __syncwarp();
    Tail tail = {0, 0};
    if (count) {
        const u32 stage_at = shared_address(space.stage);
        tail = stage_row<Width>(symbols, codes, start, count, stage_at, skip + from);
    }
    __syncwarp();
    if (tail.word) atomicOr(&space.stage[tail.at], tail.word);
    __syncwarp();
    u8* chunks = to - skip;
    const u8* staged = (const u8*)space.stage;
    const u32 whole_from = skip ? 16 : 0, whole_to = (skip + total) & ~15u;
    if (lane >= skip && lane < min(whole_from, skip + total)) chunks[lane] = staged[lane];
    for (u32 k = whole_from + lane * 16; k < whole_to; k += 512) {
        *(uint4*)(chunks + k) = *(const uint4*)(staged + k);
    }
    const u32 rest = max(whole_from, whole_to) + lane;
    if (rest < skip + total) chunks[rest] = staged[rest];
    __syncwarp();
}

// Units first to end of a block, at most RUN_UNITS.
template <class Width>
__device__ __forceinline__ void write_run(const u64* symbols, const u8* bytes,
                                          const MatchBlock& block, const MatchFrame* frames,
                                          u32 first, u32 end, const u32* mask,
                                          WriteSpace& space, Output out, u32 lane) {
    const u8* at = bytes + block.at;
    const u32 first_row = first * block.unit_frames * FRAME_ROWS;
    u32 head = 0, queued = 0;
    u32 words[RUN_UNITS];
#pragma unroll
    for (u32 i = 0; i < RUN_UNITS; i++) {
        words[i] = 0;
        if (first + i < end) {
            const Unit unit(block, first + i);
            if (lane < (unit.end - unit.first) * 4) words[i] = mask[unit.first * 4 + lane];
        }
    }
#pragma unroll
    for (u32 i = 0; i < RUN_UNITS; i++) {
        const u32 u = first + i, word = words[i], num = __popc(word);
        if (__any_sync(ALL_LANES, word)) {
            u32 to = inclusive_scan(num);
            const u32 total = __shfl_sync(ALL_LANES, to, 31);
            to += head + queued - num;
            const u32 row = u * block.unit_frames * FRAME_ROWS - first_row + lane * 32;
            for (u32 bits = word; bits; bits &= bits - 1, to++) {
                space.rows[to & (RING_ROWS - 1)] = (u16)(row + __ffs(bits) - 1);
            }
            queued += total;
            __syncwarp();
        }
        while (queued >= 32 || (queued && u + 1 >= end)) {
            const u32 num = min(queued, 32u);
            write_batch<Width>(symbols, at, block, frames, space, head, num, first_row, out, lane);
            head += num;
            queued -= num;
        }
        __syncwarp();
    }
}

// All units of `blocks`. totals: rows and bytes of text that match; where one of them is more than
// its capacity, nothing is written.
template <class Width>
__device__ __forceinline__ void write_rows(const u8* bytes, const MatchBlock* blocks, u32 num_blocks,
                                           const MatchFrame* frames, const u64* tables,
                                           u32 num_units, const u32* mask,
                                           const u32* rows_before, const u64* text_before,
                                           const u64* totals, u64 max_rows, u64 max_text, u32 num_rows,
                                           u32* rows, u32* offsets, u8* text) {
    extern __shared__ __align__(16) u8 dynamic[];
    WriteShared<Width>& shared = *(WriteShared<Width>*)dynamic;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (totals[0] > max_rows || totals[1] > max_text || is_dense(totals, num_rows)) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) offsets[totals[0]] = (u32)totals[1];
    u32 unit = (u32)((u64)num_units * blockIdx.x / gridDim.x);
    const u32 last = (u32)((u64)num_units * (blockIdx.x + 1) / gridDim.x);
    if (unit >= last) return;
    for (u32 b = block_of_unit(blocks, num_blocks, unit); unit < last; b++) {
        const MatchBlock block = blocks[b];
        const u32 end = min(last, block.first_unit + num_units_of(block));
        __syncthreads();   // all warps are done with the table before
        for (u32 i = threadIdx.x; i < Width::NUM_CODES; i += blockDim.x) {
            shared.symbols[i] = tables[(u64)block.table * Width::NUM_CODES + i];
        }
        if (threadIdx.x == 0) shared.next_unit = unit;
        __syncthreads();
        while (true) {
            u32 mine = 0;
            if (lane == 0) mine = atomicAdd(&shared.next_unit, RUN_UNITS);
            mine = __shfl_sync(ALL_LANES, mine, 0);
            if (mine >= end) break;
            const u32 run_end = min(end, mine + RUN_UNITS);
            const u32 slot = block.first_slot + mine - block.first_unit;
            const u32 before = rows_before[slot];
            const Output out = {rows + before, offsets + before, text, text_before[slot]};
            write_run<Width>(shared.symbols, bytes, block, frames + block.first_frame,
                             mine - block.first_unit, run_end - block.first_unit,
                             mask + (u64)block.first_frame * 4,
                             shared.warps[warp], out, lane);
        }
        unit = end;
    }
}
