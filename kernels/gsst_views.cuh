// Views of rows, made by the warp that decodes their text while it lies in shared memory: nobody
// reads text again. What gsst_decode.cuh adds to a tile where views are asked for.
//
//   gsst_rows_splits       which frame has the first row of each split      before decoding
//   begin_rows             at a split's start
//   make_views             behind each tile: all rows whose bytes are there
//   finish_rows            at a split's end: the row that goes on in the next one
//   gsst_rows_split_views  the views of those                                after decoding
//
// A row is made by the warp of the split that it starts in, as soon as its text, or its first 4
// bytes where it has more than 12, have been decoded: rows follow each other, so a warp makes a
// range of them, 32 at a time. The last 16 bytes of a tile stay in front of the next one, so that
// only rows over the end of a split are left for later, one at most for each.
//
// Ends of rows are unpacked here, from one frame of 128 rows at a time, whose bits were copied to
// shared memory while the one before it was worked on. What a warp knows of its rows lies in shared
// memory as well: decoding leaves no registers.
//
// Limits. On an H200 (8 bits, l_comment) DRAM is at 62 %, L1 at 74 %, issue at 58 %. Of the samples
// of warps 14 % wait for a store of views to read its registers, 6 % for bits of frames; without
// the stores it would be 1,550 GB/s, not 1,394. kernels/README.md has the variants that lost.

#pragma once

#include "gsst_run.cuh"
#include "gsst_shared.cuh"

// Where a run's rows come from and go to.
struct RowsOut {
    const u8* bytes;
    const RunFrame* frames;
    SplitRows* splits;
    uint4* views;
};

// Of a warp in shared memory, from rows_at on. ENDS: 3 words, the text before the frame, the ends
// of its rows. BITS: of the next frame, from the multiple of 16 at or before them. HEADS: the first
// half of two RunFrames, of even and odd ones. STATE: rows made, rows, first row, next frame.
// SPLIT: its number, where its text starts. RECORD: SplitRows of the next split.
constexpr u32 ENDS = 0, BITS = 528, HEADS = 672, STATE = 704, SPLIT = 720, RECORD = 736;
constexpr u32 ROWS_BYTES = 752;
// Of the thread block: where the block's rows end; its first row less 128 for each frame before.
constexpr u32 END_ROW = 16, FRAME_BASE = 20;

// 16 bytes to shared memory, not there before wait_for_copies.
__device__ __forceinline__ void copy_words(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

__device__ __forceinline__ void copy_record(const RowsOut& out, u32 rows_at, u32 split, u32 lane) {
    if (lane == 0) copy_words(rows_at + RECORD, out.splits + split);
}

// Copies the bits of `frame`, whose head and place are known, and the head of the one behind it.
__device__ __forceinline__ void copy_frame(const RowsOut& out, u32 rows_at, u32 frame, u32 at,
                                           u32 head, bool has_next, u32 lane) {
    const u32 width = head >> FRAME_WIDTH_BIT;
    if (lane * 16 < (at & 15u) + FRAME_ROWS / 8 * width && lane < 9) {
        copy_words(rows_at + BITS + lane * 16, out.bytes + (at & ~15u) + lane * 16);
    }
    if (lane == 31 && has_next) {
        copy_words(rows_at + HEADS + (frame + 1 & 1u) * 16, out.frames + frame + 1);
    }
}

// The split's record has been asked for.
__device__ __forceinline__ void begin_rows(const RowsOut& out, u32 rows_at, u32 words_at, u32 split,
                                           u32 text_at, u32 lane) {
    wait_for_copies();
    const uint4 record = load_shared_words(rows_at + RECORD);
    const u32 frame = record.x, row = frame * FRAME_ROWS + load_shared(words_at + FRAME_BASE);
    if (lane == 0) {
        store_shared(rows_at + ENDS + 12, record.y);
        const u32 head_at = rows_at + HEADS + (frame & 1u) * 16;
        store_shared_words(head_at, make_uint4(0, record.z, 0, record.w));
        store_shared_words(rows_at + STATE, make_uint4(0, 0, row, frame));
        store_shared_words(rows_at + SPLIT, make_uint4(split, text_at, 0, 0));
    }
    const bool has_next = row + FRAME_ROWS < load_shared(words_at + END_ROW);
    copy_frame(out, rows_at, frame, record.z, record.w, has_next, lane);
    __syncwarp();   // the next record comes to where this one was
}

// 4 bytes at any address; reads the two words that hold them.
__device__ __forceinline__ u32 load_bits(const u8* at) {
    const u32* words = (const u32*)((u64)at & ~3ull);
    return __funnelshift_r(words[0], words[1], ((u32)(u64)at & 3u) * 8);
}

// Unpacks the next frame, which starts behind `before` bytes of text and has the first of the
// `left` rows of its block, and asks for the one behind it. How many of its rows start before the
// split.
__device__ __forceinline__ u32 open_frame(const RowsOut& out, u32 rows_at, u32 frame, u32 before,
                                          u32 left, u32 lane) {
    const uint4 head = load_shared_words(rows_at + HEADS + (frame & 1u) * 16);
    const uint4 next = load_shared_words(rows_at + HEADS + (frame + 1 & 1u) * 16);
    const u32 width = head.w >> FRAME_WIDTH_BIT, mask = (1u << width) - 1u;
    u32 row[4];
    if (width <= 8) {
        const u32 first = (head.y & 15u) * 8 + lane * 4 * width;
        const u32 at = rows_at + BITS + (first >> 5) * 4;
        const u32 window = __funnelshift_r(load_shared(at), load_shared(at + 4), first & 31u);
#pragma unroll
        for (u32 i = 0; i < 4; i++) row[i] = window >> (i * width) & mask;
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            const u32 bit = (lane * 4 + i) * width;
            row[i] = load_bits(out.bytes + head.y + (bit >> 3)) >> (bit & 7u) & mask;
        }
    }
    __syncwarp();
    if (left > FRAME_ROWS) {
        copy_frame(out, rows_at, frame + 1, next.y, next.w, left > 2 * FRAME_ROWS, lane);
    }
    const u32 smallest = head.w & ((1u << FRAME_WIDTH_BIT) - 1u);
#pragma unroll
    for (u32 i = 0; i < 4; i++) row[i] += smallest;
    if (left < FRAME_ROWS) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) row[i] = lane * 4 + i < left ? row[i] : 0;
    }
    const u32 sum = (row[0] + row[1]) + (row[2] + row[3]);
    const u32 start = before + inclusive_scan(sum) - sum;
    const uint4 ends = make_uint4(start + row[0], start + row[0] + row[1],
                                  start + sum - row[3], start + sum);
    store_shared_words(rows_at + ENDS + 16 + lane * 16, ends);
    if (lane == 0) store_shared(rows_at + ENDS + 12, before);
    __syncwarp();
    const u32 text_at = load_shared(rows_at + SPLIT + 4);
    if (before >= text_at) return 0;
    const u32 first_two = (start < text_at) + (ends.x < text_at);
    const u32 num_before = first_two + (ends.y < text_at) + (ends.z < text_at);
    return min(__reduce_add_sync(ALL_LANES, num_before), left);
}

// The low num bits of a word, all of them from 32 on.
__device__ __forceinline__ u32 low_bits(int num) {
    u32 mask;
    asm("bmsk.clamp.b32 %0, 0, %1;" : "=r"(mask) : "r"(num));
    return mask;
}

// The view of `len` bytes at shared address `at`, of text[start..].
__device__ __forceinline__ uint4 staged_view(u32 at, u32 start, u32 len) {
    const u32 words = at & ~3u, shift = at * 8;   // funnel shifts take it modulo 32
    const u32 a = load_shared(words), b = load_shared(words + 4);
    uint4 view = make_uint4(len, __funnelshift_r(a, b, shift), 0, start);
    if (len <= 12) {
        const u32 c = load_shared(words + 8), d = load_shared(words + 12);
        const int num_bits = (int)len * 8;
        view.y &= low_bits(num_bits);
        view.z = __funnelshift_r(b, c, shift) & low_bits(max(num_bits - 32, 0));
        view.w = __funnelshift_r(c, d, shift) & low_bits(max(num_bits - 64, 0));
    }
    return view;
}

// Makes the views of all rows that can be made: text of the run is there until text_end, and
// text[i] lies at shared address text_at + i.
__device__ __forceinline__ void make_views(const RowsOut& out, u32 rows_at, u32 words_at,
                                           u32 text_at, u32 text_end, u32 lane) {
    const uint4 state = load_shared_words(rows_at + STATE);
    u32 made = state.x, num = state.y, row = state.z, frame = state.w;
    while (true) {
        if (made == num) {
            const u32 left = load_shared(words_at + END_ROW) - (row + num);
            if (left == 0) break;
            wait_for_copies();
            const u32 before = load_shared(rows_at + ENDS + 12 + num * 4);
            row += num;
            num = min(left, FRAME_ROWS);
            made = open_frame(out, rows_at, frame, before, left, lane);
            frame++;
        }
        const u32 i = made + lane;
        const u32 at = rows_at + ENDS + 12 + min(i, FRAME_ROWS - 1) * 4;
        const u32 start = load_shared(at), len = load_shared(at + 4) - start;
        const bool is_ready = i < num && start + (len > 12 ? 4 : len) <= text_end;
        const u32 num_ready = __popc(__ballot_sync(ALL_LANES, is_ready));
        if (is_ready) out.views[row + i] = staged_view(text_at + start, start, len);
        made += num_ready;
        if (made < num && num_ready < 32) break;
    }
    __syncwarp();
    if (lane == 0) store_shared_words(rows_at + STATE, make_uint4(made, num, row, frame));
}

// Leaves the row that goes on behind text_end, the split's end.
__device__ __forceinline__ void finish_rows(const RowsOut& out, u32 rows_at, u32 text_end,
                                            u32 lane) {
    __syncwarp();
    if (lane != 0) return;
    const uint4 state = load_shared_words(rows_at + STATE);
    const u32 split = load_shared(rows_at + SPLIT);
    const u32 at = rows_at + ENDS + 12 + min(state.x, FRAME_ROWS - 1) * 4;
    const u32 start = load_shared(at), end = load_shared(at + 4);
    const bool is_left = state.x < state.y && start < text_end;
    const u32 row = is_left ? state.z + state.x : SplitRows::NO_ROW;
    *(uint4*)(out.splits + split) = make_uint4(row, start, end, 0);
}
