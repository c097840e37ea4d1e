// Packed lengths of a run's rows -> offsets, or string views as Arrow has them.
//
//   gsst_rows_sum        the sum of each frame                  one warp per 4 frames
//   gsst_rows_scan       what lies before each frame            one thread block per block
//   gsst_rows_offsets    where each row ends                    one warp per 4 frames
//   gsst_rows_splits     where the rows of each split start     one thread per split
//   gsst_rows_split_views  views of rows over a split's end     one thread per split
//   gsst_rows_views      the view of each row, from lengths     one warp per 2 frames
//   gsst_views           the view of each row, from offsets     one thread per row
//   gsst_utf8            whether the text is UTF-8              one thread per 16 bytes
//   gsst_utf8_rows       whether rows start at characters       one thread per row
//
// View, 16 bytes: length; up to 12 bytes of text themselves, or the first 4, the number of the
// buffer (0) and where the text starts.
//
// A lane owns 4 consecutive rows of a frame: one window of 32 bits has their 4 lengths where those
// have at most 8 bits, and one scan per frame is enough. Loads of 4 frames are on their way at the
// same time: what limits is how long they take. Lengths and sums saturate, so that lengths nobody
// checked cannot wrap around to a sum that looks right; no address is made from them before
// gsst_rows_scan compared the sums with the header, and *error was looked at.

#include "gsst_run.cuh"

constexpr u32 LANE_ROWS = FRAME_ROWS / 32;
// More than any sum of a block that is right; 128 of it fit into 32 bits.
constexpr u32 TOO_MUCH = (1u << 24) + 1;
constexpr u32 WARPS = 8;
// Frames of a warp.
constexpr u32 WARP_FRAMES = 4;
// The same, where views are made of them.
constexpr u32 VIEW_FRAMES = 2;

__device__ __forceinline__ u32 add(u32 a, u32 b) { return min(a + b, TOO_MUCH); }

// 4 bytes at any address; reads the two words that hold them.
__device__ __forceinline__ u32 load4(const u8* at) {
    const u32* words = (const u32*)((u64)at & ~3ull);
    return __funnelshift_r(words[0], words[1], ((u32)(u64)at & 3u) * 8);
}

// 8 bytes at any address; reads the three words that hold them.
__device__ __forceinline__ u64 load8(const u8* at) {
    const u32* words = (const u32*)((u64)at & ~3ull);
    const u32 shift = ((u32)(u64)at & 3u) * 8, b = words[1];
    return (u64)__funnelshift_r(b, words[2], shift) << 32 | __funnelshift_r(words[0], b, shift);
}

// What a lane needs of a frame: loaded first, unpacked later. Where differences have at most 8 bits,
// the lane's 4 are one window of 32 bits.
struct FrameBits {
    u32 window, head;
    const u8* at;

    __device__ __forceinline__ FrameBits() {}
    __device__ __forceinline__ void load(const u8* bits, u32 frame_head, u32 lane) {
        head = frame_head;
        at = bits;
        const u32 width = head >> FRAME_WIDTH_BIT;
        const u32 first = ((u32)(u64)bits & 3u) * 8 + lane * LANE_ROWS * (width <= 8 ? width : 0);
        const u32* words = (const u32*)((u64)bits & ~3ull) + (first >> 5);
        window = __funnelshift_r(words[0], words[1], first & 31u);
    }
    // The lane's differences; those from num_rows on are 0.
    __device__ __forceinline__ void unpack(u32 num_rows, u32 lane, u32 (&row)[LANE_ROWS]) const {
        const u32 width = head >> FRAME_WIDTH_BIT, mask = (1u << width) - 1u;
        if (width <= 8) {
#pragma unroll
            for (u32 i = 0; i < LANE_ROWS; i++) row[i] = window >> (i * width) & mask;
        } else {
#pragma unroll
            for (u32 i = 0; i < LANE_ROWS; i++) {
                const u32 bit = (lane * LANE_ROWS + i) * width;
                row[i] = load4(at + (bit >> 3)) >> (bit & 7u) & mask;
            }
        }
        if (num_rows < FRAME_ROWS) {
#pragma unroll
            for (u32 i = 0; i < LANE_ROWS; i++) {
                row[i] = lane * LANE_ROWS + i < num_rows ? row[i] : 0;
            }
        }
    }
    __device__ __forceinline__ u32 smallest() const {
        return head & ((1u << FRAME_WIDTH_BIT) - 1u);
    }
    // The lane's rows, those from num_rows on 0.
    __device__ __forceinline__ void rows(u32 num_rows, u32 lane, u32 (&row)[LANE_ROWS]) const {
        unpack(num_rows, lane, row);
        const u32 rest = smallest();
#pragma unroll
        for (u32 i = 0; i < LANE_ROWS; i++) {
            const u32 sum = row[i] + rest;
            row[i] = lane * LANE_ROWS + i < num_rows ? sum : 0;
        }
        if (head >> FRAME_WIDTH_BIT <= 8) return;   // 128 of them fit into 32 bits
#pragma unroll
        for (u32 i = 0; i < LANE_ROWS; i++) row[i] = min(row[i], TOO_MUCH);
    }
    // The sum of all rows, from the differences of all lanes: below 2^32, as smallest() is 2^24 at
    // most, and differences are below 2^24.
    __device__ __forceinline__ u32 sum(u32 num_rows, const u32 (&row)[LANE_ROWS]) const {
        const u32 differences = (row[0] + row[1]) + (row[2] + row[3]);
        return min(__reduce_add_sync(ALL_LANES, differences), TOO_MUCH) + smallest() * num_rows;
    }
};

__device__ __forceinline__ u32 sum_of(const u32 (&row)[LANE_ROWS]) {
    return (row[0] + row[1]) + (row[2] + row[3]);
}

// Where the lane's rows end, `before` what lies before the frame.
__device__ __forceinline__ void ends_of(const u32 (&row)[LANE_ROWS], u32 before,
                                        u32 (&ends)[LANE_ROWS]) {
    const u32 sum = sum_of(row);
    u32 end = before + inclusive_scan(sum) - sum;
#pragma unroll
    for (u32 i = 0; i < LANE_ROWS; i++) ends[i] = end += row[i];
}

__device__ __forceinline__ u32 saturating_scan(u32 x, u32 lane) {
#pragma unroll
    for (u32 d = 1; d < 32; d <<= 1) {
        const u32 before = __shfl_up_sync(ALL_LANES, x, d);
        if (lane >= d) x = add(x, before);
    }
    return x;
}

// What a frame's rows tell without their codes.
__device__ void check_frame(const u8* __restrict__ bytes, const RunBlock& block,
                            const RunFrame& frame, u32 lane, const u32 (&counts)[LANE_ROWS],
                            const u32 (&lengths)[LANE_ROWS], u64* error) {
    const u32 row = frame.first_row - block.first_row + lane * LANE_ROWS;
    u32 valid = 15;   // 4 rows are half a byte
    if (block.validity_at && lane * LANE_ROWS < frame.num_rows) {
        valid = bytes[block.bytes_at + block.validity_at + row / 8] >> (row % 8);
    }
#pragma unroll
    for (u32 i = 0; i < LANE_ROWS; i++) {
        if (counts[i] && !(valid >> i & 1u)) report(error, frame.block, CHECK_NULL_ROW, row + i);
        if (lengths[i] && !counts[i]) report(error, frame.block, CHECK_EMPTY_ROW, row + i);
    }
}

// sums: num_frames of texts, and with IS_CHECK as many of codes behind them. Frames of blocks without
// lengths of texts have those of a frame of zeros.
template <bool IS_CHECK>
__device__ __forceinline__ void rows_sum(const u8* __restrict__ bytes,
                                         const RunBlock* __restrict__ blocks,
                                         const RunFrame* __restrict__ frames, u32 num_frames,
                                         u32* __restrict__ sums, u64* __restrict__ error) {
    const u32 lane = threadIdx.x & 31;
    const u32 first = (blockIdx.x * WARPS + (threadIdx.x >> 5)) * WARP_FRAMES;
    if (first >= num_frames) return;
    FrameBits texts[WARP_FRAMES], codes[WARP_FRAMES];
    RunFrame mine[WARP_FRAMES];
#pragma unroll
    for (u32 k = 0; k < WARP_FRAMES; k++) mine[k] = frames[min(first + k, num_frames - 1)];
#pragma unroll
    for (u32 k = 0; k < WARP_FRAMES; k++) {
        texts[k].load(bytes + mine[k].lengths_at, mine[k].lengths_head, lane);
        if (IS_CHECK) codes[k].load(bytes + mine[k].counts_at, mine[k].counts_head, lane);
    }
#pragma unroll
    for (u32 k = 0; k < WARP_FRAMES; k++) {
        if (first + k >= num_frames) return;
        u32 lengths[LANE_ROWS], counts[LANE_ROWS];
        texts[k].unpack(mine[k].num_rows, lane, lengths);
        const u32 text = texts[k].sum(mine[k].num_rows, lengths);
        if (lane == 0) sums[first + k] = min(text, TOO_MUCH);
        if (IS_CHECK) {
            codes[k].unpack(mine[k].num_rows, lane, counts);
            const u32 sum = codes[k].sum(mine[k].num_rows, counts);
            if (lane == 0) sums[num_frames + first + k] = min(sum, TOO_MUCH);
            texts[k].rows(mine[k].num_rows, lane, lengths);
            codes[k].rows(mine[k].num_rows, lane, counts);
            check_frame(bytes, blocks[mine[k].block], mine[k], lane, counts, lengths, error);
        }
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
gsst_rows_sum(const u8* __restrict__ bytes, const RunBlock* __restrict__ blocks,
              const RunFrame* __restrict__ frames, u32 num_frames, u32* __restrict__ sums,
              u64* __restrict__ error) {
    rows_sum<false>(bytes, blocks, frames, num_frames, sums, error);
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
gsst_rows_sum_checked(const u8* __restrict__ bytes, const RunBlock* __restrict__ blocks,
                      const RunFrame* __restrict__ frames, u32 num_frames, u32* __restrict__ sums,
                      u64* __restrict__ error) {
    rows_sum<true>(bytes, blocks, frames, num_frames, sums, error);
}

// Replaces sums by what lies before each frame: bytes of the run's text (blockIdx.y = 0), codes of
// the block (blockIdx.y = 1). One thread block of 1,024 per block.
extern "C" __global__ void __launch_bounds__(1024)
gsst_rows_scan(const RunBlock* __restrict__ blocks, u32 num_frames, u32* __restrict__ sums,
               u64* __restrict__ error) {
    __shared__ u32 warp_sums[32];
    const RunBlock block = blocks[blockIdx.x];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, is_codes = blockIdx.y;
    const u32 num = (block.num_rows + FRAME_ROWS - 1) / FRAME_ROWS;
    u32* at = sums + (u64)is_codes * num_frames + block.first_frame;
    const u32 base = is_codes ? 0 : (u32)block.text_at;
    u32 before = 0;
    for (u32 start = 0; start < num; start += 1024) {
        const u32 i = start + threadIdx.x;
        const u32 sum = i < num ? at[i] : 0;
        const u32 in_warp = saturating_scan(sum, lane);
        if (lane == 31) warp_sums[warp] = in_warp;
        __syncthreads();
        const u32 all_warps = saturating_scan(warp_sums[lane], lane);
        const u32 warps_before = __shfl_sync(ALL_LANES, all_warps, (warp + 31) & 31);
        const u32 ahead = __shfl_up_sync(ALL_LANES, in_warp, 1);
        const u32 exclusive = add(warp ? warps_before : 0, lane ? ahead : 0);
        if (i < num) at[i] = base + add(before, exclusive);
        before = add(before, __shfl_sync(ALL_LANES, all_warps, 31));
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        if (!is_codes && block.has_lengths && before != block.text_len) {
            report(error, blockIdx.x, CHECK_TEXT_LENGTHS, 0);
        }
        if (is_codes && before != block.num_codes) report(error, blockIdx.x, CHECK_CODE_COUNTS, 0);
    }
}

// offsets: a number per row and one more, the first 0; those of blocks without lengths of texts are
// filled by gsst_check. code_ends: with IS_CHECK one per row, counted from its block's first code.
template <bool IS_CHECK>
__device__ __forceinline__ void rows_offsets(const u8* __restrict__ bytes,
                                             const RunFrame* __restrict__ frames, u32 num_frames,
                                             const u32* __restrict__ sums,
                                             u32* __restrict__ offsets,
                                             u32* __restrict__ code_ends) {
    __shared__ uint4 staged[WARPS][FRAME_ROWS / 4];
    const u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const u32 first = (blockIdx.x * WARPS + warp) * WARP_FRAMES;
    if (blockIdx.x == 0 && threadIdx.x == 0) offsets[0] = 0;
    if (first >= num_frames) return;
    FrameBits texts[WARP_FRAMES], codes[WARP_FRAMES];
    RunFrame mine[WARP_FRAMES];
    u32 text_before[WARP_FRAMES], codes_before[WARP_FRAMES];
#pragma unroll
    for (u32 k = 0; k < WARP_FRAMES; k++) {
        const u32 at = min(first + k, num_frames - 1);
        mine[k] = frames[at];
        text_before[k] = sums[at];
        if (IS_CHECK) codes_before[k] = sums[num_frames + at];
    }
#pragma unroll
    for (u32 k = 0; k < WARP_FRAMES; k++) {
        texts[k].load(bytes + mine[k].lengths_at, mine[k].lengths_head, lane);
        if (IS_CHECK) codes[k].load(bytes + mine[k].counts_at, mine[k].counts_head, lane);
    }
    // Through shared memory: lanes own 4 rows each, and store side by side.
    auto store = [&](const FrameBits& bits, u32 num_rows, u32 before, u32* to) {
        u32 row[LANE_ROWS], ends[LANE_ROWS];
        bits.rows(num_rows, lane, row);
        ends_of(row, before, ends);
        __syncwarp();
        staged[warp][lane] = make_uint4(ends[0], ends[1], ends[2], ends[3]);
        __syncwarp();
        const u32* from = (const u32*)staged[warp] + lane;
        to += lane;
        if (num_rows == FRAME_ROWS) {
#pragma unroll
            for (u32 k = 0; k < LANE_ROWS; k++) to[32 * k] = from[32 * k];
        } else {
            for (u32 i = lane; i < num_rows; i += 32, to += 32, from += 32) *to = *from;
        }
    };
#pragma unroll
    for (u32 k = 0; k < WARP_FRAMES; k++) {
        if (first + k >= num_frames) return;
        const u32 row = mine[k].first_row;
        store(texts[k], mine[k].num_rows, text_before[k], offsets + row + 1);
        if (IS_CHECK) store(codes[k], mine[k].num_rows, codes_before[k], code_ends + row);
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
gsst_rows_offsets(const u8* __restrict__ bytes, const RunFrame* __restrict__ frames, u32 num_frames,
                  const u32* __restrict__ sums, u32* __restrict__ offsets,
                  u32* __restrict__ code_ends) {
    rows_offsets<false>(bytes, frames, num_frames, sums, offsets, code_ends);
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
gsst_rows_offsets_checked(const u8* __restrict__ bytes, const RunFrame* __restrict__ frames,
                          u32 num_frames, const u32* __restrict__ sums, u32* __restrict__ offsets,
                          u32* __restrict__ code_ends) {
    rows_offsets<true>(bytes, frames, num_frames, sums, offsets, code_ends);
}

// The view of text[start..end].
__device__ __forceinline__ uint4 view_of(const u8* __restrict__ text, u32 start, u32 end) {
    const u32 len = end - start;
    if (len == 0) return make_uint4(0, 0, 0, 0);
    const u8* at = text + start;
    const u32* words = (const u32*)((u64)at & ~3ull);
    const u32 skip = (u32)(u64)at & 3u, shift = skip * 8;
    // The words that hold the bytes, and no others: what is behind the text is not ours.
    const u32 num_words = (skip + min(len, len > 12 ? 4u : 12u) + 3) / 4;
    const u32 a = words[0], b = num_words > 1 ? words[1] : 0;
    const u32 first = __funnelshift_r(a, b, shift);
    if (len > 12) return make_uint4(len, first, 0, start);
    const u32 c = num_words > 2 ? words[2] : 0, d = num_words > 3 ? words[3] : 0;
    const u32 second = __funnelshift_r(b, c, shift), third = __funnelshift_r(c, d, shift);
    const u32 keep = ~0u >> (32 - 8 * (((len - 1) & 3u) + 1));   // of the last word with bytes
    return make_uint4(len, len <= 4 ? first & keep : first,
                      len <= 4 ? 0 : (len <= 8 ? second & keep : second),
                      len <= 8 ? 0 : third & keep);
}

// The views of frames whose blocks all have lengths of texts, where rows are too short for decoding
// to make them (gsst_views.cuh). text: a multiple of 4, decoded. Bound by device memory: all of the
// text is read again for 4 bytes of each row.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
gsst_rows_views(const u8* __restrict__ bytes, const RunFrame* __restrict__ frames, u32 num_frames,
                const u32* __restrict__ sums, const u8* __restrict__ text,
                uint4* __restrict__ views) {
    __shared__ uint4 staged[WARPS][FRAME_ROWS / 4 + 1];
    const u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const u32 first = (blockIdx.x * WARPS + warp) * VIEW_FRAMES;
    if (first >= num_frames) return;
    FrameBits texts[VIEW_FRAMES];
    RunFrame mine[VIEW_FRAMES];
    u32 before[VIEW_FRAMES];
#pragma unroll
    for (u32 k = 0; k < VIEW_FRAMES; k++) {
        const u32 at = min(first + k, num_frames - 1);
        mine[k] = frames[at];
        before[k] = sums[at];
    }
#pragma unroll
    for (u32 k = 0; k < VIEW_FRAMES; k++) {
        texts[k].load(bytes + mine[k].lengths_at, mine[k].lengths_head, lane);
    }
#pragma unroll
    for (u32 k = 0; k < VIEW_FRAMES; k++) {
        if (first + k >= num_frames) return;
        u32 row[LANE_ROWS], ends[LANE_ROWS];
        texts[k].rows(mine[k].num_rows, lane, row);
        ends_of(row, before[k], ends);
        __syncwarp();
        u32* const own = (u32*)staged[warp];
        if (lane == 0) own[3] = before[k];
        staged[warp][lane + 1] = make_uint4(ends[0], ends[1], ends[2], ends[3]);
        __syncwarp();
#pragma unroll
        for (u32 j = 0; j < LANE_ROWS; j++) {
            const u32 i = lane + 32 * j;
            if (i < mine[k].num_rows) {
                views[mine[k].first_row + i] = view_of(text, own[i + 3], own[i + 4]);
            }
        }
    }
}

// Where the rows of each split of a width start, for a kernel that makes views of what it decodes
// (gsst_views.cuh). All blocks have lengths of texts. sums: what lies before each frame.
extern "C" __global__ void __launch_bounds__(256)
gsst_rows_splits(const u8* __restrict__ bytes, const GsstBlock* __restrict__ places, u32 num_places,
                 u32 num_splits, const RunBlock* __restrict__ blocks,
                 const u32* __restrict__ block_idxs, const RunFrame* __restrict__ frames,
                 const u32* __restrict__ sums, SplitRows* __restrict__ splits) {
    const u32 split = blockIdx.x * 256 + threadIdx.x;
    if (split >= num_splits) return;
    u32 b = 0;
    for (u32 above = num_places; above - b > 1;) {
        const u32 middle = (b + above) >> 1;
        if (places[middle].first_split <= split) b = middle; else above = middle;
    }
    const GsstBlock place = places[b];
    const RunBlock block = blocks[block_idxs[b]];
    const u32* words = (const u32*)(bytes + place.codes_at + place.splits_at);
    const u32 text_at = (u32)place.text_at + (words[split - place.first_split] & SPLIT_TEXT_AT);
    // The last frame that starts before the split: all rows from its start on are there or behind.
    u32 frame = block.first_frame;
    for (u32 above = frame + (block.num_rows + FRAME_ROWS - 1) / FRAME_ROWS; above - frame > 1;) {
        const u32 middle = (frame + above) >> 1;
        if (sums[middle] < text_at) frame = middle; else above = middle;
    }
    const RunFrame mine = frames[frame];
    splits[split] = {frame, sums[frame], mine.lengths_at, mine.lengths_head};
}

// The view of the row that decoding left at each split's end.
extern "C" __global__ void __launch_bounds__(256)
gsst_rows_split_views(const SplitRows* __restrict__ splits, u32 num_splits,
                      const u8* __restrict__ text, uint4* __restrict__ views) {
    const u32 split = blockIdx.x * 256 + threadIdx.x;
    if (split >= num_splits) return;
    const uint4 row = *(const uint4*)(splits + split);
    if (row.x != SplitRows::NO_ROW) views[row.x] = view_of(text, row.y, row.z);
}

// The views of any rows whose offsets are known.
extern "C" __global__ void __launch_bounds__(256)
gsst_views(const u8* __restrict__ text, const u32* __restrict__ offsets, u32 num_rows,
           uint4* __restrict__ views, const u64* __restrict__ error) {
    if (*error != NO_ERROR) return;
    const u32 row = blockIdx.x * 256 + threadIdx.x;
    if (row < num_rows) views[row] = view_of(text, offsets[row], offsets[row + 1]);
}

// Which bytes of a word have bit 7 and bit 6 as 10: they go on with a character.
__device__ __forceinline__ bool is_continuation(u32 byte) { return (byte & 0xc0u) == 0x80u; }

// Whether a character of UTF-8 starts at text[at], and all of it is there.
__device__ bool is_character(const u8* __restrict__ text, u64 at, u64 len) {
    const u32 lead = text[at];
    if (lead < 0x80) return true;
    const u32 num = lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3
                    : lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
    if (num == 0 || at + num > len) return false;
    for (u32 k = 1; k < num; k++) {
        if (!is_continuation(text[at + k])) return false;
    }
    const u32 second = text[at + 1];
    return !(lead == 0xe0 && second < 0xa0) && !(lead == 0xed && second >= 0xa0)   // surrogates
           && !(lead == 0xf0 && second < 0x90) && !(lead == 0xf4 && second >= 0x90);
}

// text: multiple of 16. Every byte that goes on with a character has to be reached from a first
// byte at most 3 before it, and every first byte's character has to be right: two tests a thread
// can make for its own 16 bytes. ASCII ends after one load.
extern "C" __global__ void __launch_bounds__(256)
gsst_utf8(const u8* __restrict__ text, u64 len, u64* __restrict__ error) {
    if (*error >> 32 < NO_BLOCK) return;
    const u64 start = ((u64)blockIdx.x * 256 + threadIdx.x) * 16;
    if (start >= len) return;
    const u64 end = min(start + 16, len);
    if (end - start == 16) {
        const uint4 words = *(const uint4*)(text + start);
        if (((words.x | words.y | words.z | words.w) & 0x80808080u) == 0) return;
    }
    bool is_right = true;
    for (u64 at = start; at < end; at++) {
        const u32 byte = text[at];
        if (byte < 0x80) continue;
        if (!is_continuation(byte)) {
            is_right &= is_character(text, at, len);
            continue;
        }
        u32 back = 1;
        while (back < 4 && back <= at && is_continuation(text[at - back])) back++;
        if (back == 4 || back > at) {
            is_right = false;
            continue;
        }
        const u32 lead = text[at - back];
        is_right &= lead >= 0xc0 && back < (lead < 0xe0 ? 2u : lead < 0xf0 ? 3u : 4u);
    }
    if (!is_right) report(error, NO_BLOCK, CHECK_UTF8, (u32)(start >> 6));
}

// first_byte of every row that has one; offsets of the run.
extern "C" __global__ void __launch_bounds__(256)
gsst_utf8_rows(const u8* __restrict__ text, const u32* __restrict__ offsets, u32 num_rows,
               u64* __restrict__ error) {
    if (*error != NO_ERROR) return;
    const u32 row = blockIdx.x * 256 + threadIdx.x;
    if (row >= num_rows) return;
    const u32 start = offsets[row];
    if (start < offsets[row + 1] && is_continuation(text[start])) {
        report(error, NO_BLOCK, CHECK_ROW_IN_CHARACTER, row);
    }
}
