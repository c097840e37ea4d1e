// Numbers pairs of neighbours on the device: the ids that src/tadoc/grammar/pair_join.rs gives.
//
//   grammar_pairs_heads    of sorted pairs, where a pair begins; where its second one stands
//   grammar_pairs_seconds  how many second ones stand in each word of the sequence
//   grammar_pairs_passes   how many pairs belong to each pass
//   grammar_pairs_groups   where each pair's group begins; the repeated ones in the order of their
//                          second places, with their shards
//   grammar_pairs_number   ids and counts of the repeated pairs
//   grammar_pairs_answer   the ids to where the pairs stand
//   grammar_pairs_largest  the largest count
//
//   sorted pairs   aaa  bb  c  dddd     stable, so places ascend in each group
//   second places   7   90     12       a, d, b: ids in each shard, by a stable sort by shard
//
// A pair seen once gets no id. The CPU numbers pairs when it sees them again, shard by shard (by the
// hash), and pass by pass where there are many: so ids ascend by pass, shard, second place.
//
// Mapping of work. A thread has a sorted pair, a warp a word of the mask of heads.
#include "corpus_shared.cuh"

constexpr u32 NO_ID = 0xffffffffu;
// Bits of the number of a shard.
constexpr u32 SHARD_BITS = 11;
constexpr u32 MAX_PASSES = 256;

static __device__ __forceinline__ u32 bits_below(u32 lane)
{
    return (1u << lane) - 1;
}

// Keys have the left symbol above `symbol_bits` bits of the right one, pairs 32 bits of each.
static __device__ __forceinline__ u64 pair_of(u64 key, u32 symbol_bits)
{
    return key >> symbol_bits << 32 | (key & ((1ull << symbol_bits) - 1));
}

static __device__ __forceinline__ u64 hash_of(u64 pair)
{
    const u64 mixed = (pair ^ pair >> 29) * 0x9e3779b97f4a7c15ull;
    return (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull;
}

static __device__ __forceinline__ u32 pass_of(u64 pair, u32 num_passes)
{
    return (u32)((pair * 0x2545f4914f6cdd1dull >> 32) * num_passes >> 32);
}

extern "C" __global__ void grammar_pairs_heads(
    const u64* keys, const u32* positions, u32 num_keys, u32* heads, u32* sums, u32* seconds)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool is_head = false;
    if (at < num_keys) {
        const u64 key = keys[at];
        is_head = at == 0 || keys[at - 1] != key;
        if (!is_head && (at == 1 || keys[at - 2] != key)) {
            const u32 position = positions[at];
            atomicOr(&seconds[position / 32], 1u << position % 32);
        }
    }
    const u32 all = __ballot_sync(ALL_LANES, is_head);
    if (lane == 0 && at < num_keys) {
        heads[at / 32] = all;
        sums[at / 32] = __popc(all);
    }
}

extern "C" __global__ void grammar_pairs_seconds(const u32* seconds, u32 num_words, u32* sums)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < num_words) {
        sums[word] = __popc(seconds[word]);
    }
}

extern "C" __global__ void grammar_pairs_passes(
    const u64* keys, u32 num_keys, u32 symbol_bits, u32 num_passes, u32* counts)
{
    __shared__ u32 shared[MAX_PASSES];
    shared[threadIdx.x] = 0;
    __syncthreads();
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_keys) {
        atomicAdd(&shared[pass_of(pair_of(keys[at], symbol_bits), num_passes)], 1u);
    }
    __syncthreads();
    if (threadIdx.x < num_passes && shared[threadIdx.x] != 0) {
        atomicAdd(&counts[threadIdx.x], shared[threadIdx.x]);
    }
}

// `masks` has the number of shards of each pass, less 1.
extern "C" __global__ void grammar_pairs_groups(
    const u64* keys, const u32* positions, u32 num_keys, u32 symbol_bits, const u32* heads,
    const u32* head_sums, const u32* seconds, const u32* second_sums, u32 num_passes,
    const u32* masks, u32* starts, u32* ids, u32* shards, u32* groups)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (at >= num_keys) {
        return;
    }
    const u32 own = heads[at / 32];
    const bool is_head = own >> lane & 1;
    const u32 group = head_sums[at / 32] + __popc(own & bits_below(lane)) - !is_head;
    if (is_head) {
        starts[group] = at;
        ids[group] = NO_ID;
    }
    if (at + 1 == num_keys) {
        starts[group + 1] = num_keys;
    }
    if (!is_head && (at == 1 || keys[at - 2] != keys[at])) {
        const u32 position = positions[at], word = position / 32;
        const u32 number = second_sums[word] + __popc(seconds[word] & bits_below(position % 32));
        const u64 pair = pair_of(keys[at], symbol_bits);
        const u32 pass = pass_of(pair, num_passes);
        shards[number] = pass << SHARD_BITS | ((u32)(hash_of(pair) >> 48) & masks[pass]);
        groups[number] = group;
    }
}

extern "C" __global__ void grammar_pairs_number(
    const u32* groups, u32 num_new, u32 first_id, const u64* keys, u32 symbol_bits, const u32* starts,
    u64* pairs, u32* counts, u32* uses, u32* rule_of_pair, u32* ids)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= num_new) {
        return;
    }
    const u32 group = groups[at], id = first_id + at, start = starts[group];
    pairs[id] = pair_of(keys[start], symbol_bits);
    counts[id] = starts[group + 1] - start;
    uses[id] = 0;
    rule_of_pair[id] = 0;
    ids[group] = id;
}

extern "C" __global__ void grammar_pairs_answer(
    const u32* positions, u32 num_keys, const u32* heads, const u32* head_sums, const u32* ids,
    u32* pair_ids)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (at < num_keys) {
        const u32 group = head_sums[at / 32] + __popc(heads[at / 32] << (31 - lane)) - 1;
        pair_ids[positions[at]] = ids[group];
    }
}

extern "C" __global__ void grammar_pairs_largest(const u32* counts, u32 num_counts, u32* largest)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    u32 count = at < num_counts ? counts[at] : 0;
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        count = max(count, __shfl_down_sync(ALL_LANES, count, distance));
    }
    if (threadIdx.x % 32 == 0 && count != 0) {
        atomicMax(largest, count);
    }
}
