// The inverse grammar: for each element where it stands on right-hand sides, and in which rules.
//
//   corpus_inverse_owners    the rule of each position; in the root, the document
//   corpus_inverse_parents   the rules of positions that were sorted by their element
//
// Data layout. Positions are those of `symbols`, the root's first. Sorting them by element, equal ones
// in order, gives what src/tadoc/dag/inverse.rs gives: for each element its positions, ascending.
//
// Mapping of work. A thread has a position.
//
// Limits. Binary search among rules or documents for each position; parents are read at random places.
#include "corpus_shared.cuh"

// The last of `num_ranges` ranges that begins at `position` or before.
static __device__ __forceinline__ u32 range_of(
    const u32* offsets, u32 first, u32 num_ranges, u32 position)
{
    u32 low = first;
    for (u32 high = num_ranges; high - low > 1;) {
        const u32 middle = low + (high - low) / 2;
        if (offsets[middle] <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

extern "C" __global__ void corpus_inverse_owners(
    const u32* rule_offsets, const u32* doc_offsets, u32 num_rules, u32 num_docs, u32 num_root,
    u32 num_positions, u32* owners)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= num_positions) {
        return;
    }
    owners[position] = position < num_root ? range_of(doc_offsets, 0, num_docs, position)
                                           : range_of(rule_offsets, 1, num_rules, position);
}

extern "C" __global__ void corpus_inverse_parents(
    const u32* positions, const u32* owners, u32 num_root, u32 num_positions, u32* parents)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_positions) {
        const u32 position = positions[at];
        parents[at] = position < num_root ? 0 : owners[position];
    }
}
