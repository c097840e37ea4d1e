// How often each element of a segment occurs: weights flow from rules to what stands in them, and
// each element adds up those of the rules that hold it.
//
//   corpus_weights_level    all rows of one level, a warp for 32 of them
//   corpus_weights_levels   several small levels one after the other, by one thread block
//
// Data layout. A row is the sum of one slot: a number, its occurrences in the root (which has
// weight 1), and slots of rules, one for each time a rule holds the element. Slots are the element
// ids, then partial sums: rows of more than 64 slots are cut into pieces with slots of their own. A
// row reads slots of levels before its own only. Rows of a level lie by length, longest first, in
// chunks of 32 whose slots are interleaved, filled up with a slot that stays 0:
//
//   chunk_starts   [0          96     ...]        in `entries`
//   entries        |a0 b0 c0 .. |a1 b1 c1 .. |a2 b2 - ..|      rows a, b, c, ..
//   row_slots      [a b c .. | ..]      NO_SLOT where a chunk has fewer than 32 rows
//   row_bases      [3 0 1 .. | ..]
//
// Mapping of work. A thread has a row; what the 32 of a warp read at once lies together, and their
// rows are of about the same length. Nothing is added atomically, so a sum depends on no order.
//
// Limits. Slots are read at random places: 8 bytes each, from the L2 cache where `weights` fits it.
// Sums wrap as the CPU's do: weights of elements with bytes are below 2^64 (src/dag/mod.rs).
#include "corpus_shared.cuh"

constexpr u32 NO_SLOT = 0xffffffffu;

static __device__ __forceinline__ void add_up(
    const u32* chunk_starts, const u32* entries, const u32* row_slots, const u32* row_bases,
    u32 chunk, u32 lane, u64* weights)
{
    const u32 end = chunk_starts[chunk + 1];
    const u32 row = chunk * 32 + lane;
    u64 sum = row_bases[row];
    u32 at = chunk_starts[chunk] + lane;
    for (; at + 96 < end; at += 128) {
        const u32 a = entries[at], b = entries[at + 32], c = entries[at + 64], d = entries[at + 96];
        sum += weights[a] + weights[b] + weights[c] + weights[d];
    }
    for (; at < end; at += 32) {
        sum += weights[entries[at]];
    }
    const u32 slot = row_slots[row];
    if (slot != NO_SLOT) {
        weights[slot] = sum;
    }
}

extern "C" __global__ void corpus_weights_level(
    const u32* chunk_starts, const u32* entries, const u32* row_slots, const u32* row_bases,
    u32 first_chunk, u32 end_chunk, u64* weights)
{
    const u32 chunk = first_chunk + (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (chunk < end_chunk) {
        add_up(chunk_starts, entries, row_slots, row_bases, chunk, threadIdx.x % 32, weights);
    }
}

extern "C" __global__ void corpus_weights_levels(
    const u32* chunk_starts, const u32* entries, const u32* row_slots, const u32* row_bases,
    const u32* level_chunks, u32 first_level, u32 end_level, u64* weights)
{
    for (u32 level = first_level; level < end_level; level++) {
        const u32 end_chunk = level_chunks[level + 1];
        u32 chunk = level_chunks[level] + threadIdx.x / 32;
        for (; chunk < end_chunk; chunk += blockDim.x / 32) {
            add_up(chunk_starts, entries, row_slots, row_bases, chunk, threadIdx.x % 32, weights);
        }
        __syncthreads();
    }
}
