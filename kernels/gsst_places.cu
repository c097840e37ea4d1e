// Where the rows of a checked run lie, as gsst_match.cu takes it: what src/cuda/gsst_match/rows.rs does
// on the host for blocks that were validated there.
//
// One thread per group of 16 rows: it finds the code they start with in the ends that the checks of
// gsst_rows.cu and gsst_check.cu left behind. Frames come as many as in the run, one more behind each
// block, which says where its codes end. Where a block has no lengths of texts, the thread writes
// those of its rows, 3 bytes each, to `lengths`.

#include "gsst_run.cuh"
#include "gsst_match_frame.cuh"

constexpr u32 GROUPS = FRAME_ROWS / GROUP_ROWS;
constexpr u32 LENGTH_BYTES = 3;
constexpr u32 THREADS = 256;

__device__ __forceinline__ u32 form_of(u32 head) {
    return (head & ((1u << FRAME_WIDTH_BIT) - 1u)) | head >> FRAME_WIDTH_BIT << FORM_WIDTH_BIT;
}

// code_ends: of the rows of the run, in their blocks. offsets: where their texts end in the run, behind
// a 0. lengths_at: of 3 bytes per row of the run, behind all blocks in `bytes`.
extern "C" __global__ void __launch_bounds__(THREADS)
gsst_places(u8* __restrict__ bytes, const RunBlock* __restrict__ blocks,
            const RunFrame* __restrict__ frames, u32 num_frames, const u32* __restrict__ code_ends,
            const u32* __restrict__ offsets, u64 lengths_at, MatchFrame* __restrict__ places,
            const u64* __restrict__ error) {
    const u32 thread = blockIdx.x * THREADS + threadIdx.x;
    const u32 f = thread / GROUPS, group = thread % GROUPS;
    if (f >= num_frames || *error != NO_ERROR) return;
    const RunFrame frame = frames[f];
    const RunBlock block = blocks[frame.block];
    const u32 first = frame.first_row - block.first_row + group * GROUP_ROWS;
    const u32 end = min(first + GROUP_ROWS, block.num_rows);
    // Groups behind the last row start behind all codes.
    const u32 row = min(first, block.num_rows);
    MatchFrame& place = places[f + frame.block];
    place.starts[group] = row ? code_ends[block.first_row + row - 1] : 0;
    const u64 frame_lengths_at =
        lengths_at + (u64)LENGTH_BYTES * frame.first_row - block.bytes_at;
    if (group == 0) {
        place.counts_at = frame.counts_at - (u32)block.bytes_at;
        place.counts_form = form_of(frame.counts_head);
        place.lengths_at = block.has_lengths ? frame.lengths_at - (u32)block.bytes_at
                                             : (u32)frame_lengths_at;
        place.lengths_form =
            block.has_lengths ? form_of(frame.lengths_head) : 8 * LENGTH_BYTES << FORM_WIDTH_BIT;
    }
    if (!block.has_lengths) {
        for (u32 i = first; i < end; i++) {
            const u32 of_run = block.first_row + i, len = offsets[of_run + 1] - offsets[of_run];
            u8* to = bytes + lengths_at + (u64)LENGTH_BYTES * of_run;
            for (u32 k = 0; k < LENGTH_BYTES; k++) to[k] = (u8)(len >> 8 * k);
        }
    }
    if (frame.first_row + frame.num_rows == block.first_row + block.num_rows) {
        places[f + frame.block + 1].starts[group] = block.num_codes;
    }
}
