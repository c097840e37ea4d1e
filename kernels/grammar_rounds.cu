// A round of the grammar builder on the device: which pairs are replaced, and the sequence after it.
//
//   grammar_rounds_slopes      which pairs are frequent enough, and which neighbours go before them
//   grammar_rounds_choose      the pairs that win, and how often each of them does
//   grammar_rounds_new_rules   1 for each pair that won twice or more and has no rule
//   grammar_rounds_make_rules  these rules
//   grammar_rounds_replaced    the winners that have a rule
//   grammar_rounds_count       how many are replaced, how many pairs are new; ended pairs counted off
//   grammar_rounds_rewrite     the sequence with rules over their pairs, and the new pairs
//   grammar_rounds_starts      where chunks begin in it
//   grammar_rounds_ends        the last element of each chunk, marked
//   grammar_rounds_fresh       all pairs of a sequence that has no ids yet, marked and counted
//   grammar_rounds_fresh_write these pairs
//
// The same as src/tadoc/grammar/chunk.rs, which says what wins. Chunks are kept, since no pair crosses their
// border, as one bit for each element.
//
//   elements    the  cat  sat |  the  cat  |      symbols; | is BARRIER
//   ids           3    -    -    3    -    -      of the pair (i, i + 1), - is NO_ID
//   candidates    1    0    0    1    0    0      masks: a bit for each element, the lowest first
//
// Who wins. On a slope every second one does, counted from its top; in a valley none where a neighbour
// does. So an element wins if it lies an even number of steps behind the last one with no neighbour
// before it that goes first, and an even number before the next one with none behind it. Both are counted
// in masks; a slope crosses few words, and chunk borders end it.
//
// Mapping of work. A thread has an element, a warp a word of each mask. Where elements go and where new
// pairs are listed is what the sums of words before say: replaced in the low half, new pairs in the high
// one.
//
// Limits. Every round reads and writes the whole sequence, 8 bytes an element both ways: memory. Counts
// are read at random places, from the second-level cache where they fit.
#include "corpus_shared.cuh"

constexpr u32 BARRIER = 0xffffffffu;
constexpr u32 NO_ID = 0xffffffffu;

// The bits of a mask around those of a warp.
struct Around {
    u32 before, own, after;

    __device__ __forceinline__ Around(const u32* mask, u32 word, u32 num_words)
        : before(word > 0 ? mask[word - 1] : 0), own(mask[word]),
          after(word + 1 < num_words ? mask[word + 1] : 0)
    {
    }

    // The bit `steps` behind that of `lane`, 31 at most either way.
    __device__ __forceinline__ bool at(u32 lane, int steps) const
    {
        const int bit = (int)lane + steps;
        return bit < 0 ? before >> (bit + 32) & 1 : bit < 32 ? own >> bit & 1 : after >> (bit - 32) & 1;
    }
};

static __device__ __forceinline__ u32 bits_below(u32 lane)
{
    return (1u << lane) - 1;
}

// 0 where the pair does not compete.
static __device__ __forceinline__ u64 priority_of(
    const u32* ids, u32 at, u32 len, const u32* counts, u32 threshold)
{
    const u32 id = at < len ? ids[at] : NO_ID;
    const u32 count = id != NO_ID ? counts[id] : 0;
    return count >= threshold ? (u64)count << 32 | id * 0x9e3779b1u : 0;
}

extern "C" __global__ void grammar_rounds_slopes(
    const u32* ids, u32 len, const u32* counts, u32 threshold, u32* candidates, u32* left_first,
    u32* right_first)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const u64 own = priority_of(ids, at, len, counts, threshold);
    u64 outside = 0;
    if (lane == 0 || lane == 31) {
        // Before the first element is none: that place is behind the end.
        outside = priority_of(ids, lane == 0 ? at - 1 : at + 1, len, counts, threshold);
    }
    u64 left = __shfl_up_sync(ALL_LANES, own, 1), right = __shfl_down_sync(ALL_LANES, own, 1);
    left = lane == 0 ? outside : left;
    right = lane == 31 ? outside : right;
    const u32 candidate = __ballot_sync(ALL_LANES, own != 0);
    const u32 lefts = __ballot_sync(ALL_LANES, own != 0 && left >= own);
    const u32 rights = __ballot_sync(ALL_LANES, own != 0 && right > own);
    if (lane == 0) {
        candidates[at / 32] = candidate;
        left_first[at / 32] = lefts;
        right_first[at / 32] = rights;
    }
}

// Bits set in a row up to that of `lane`, over words before too. The first bit of all is not set.
static __device__ __forceinline__ u32 row_before(const u32* mask, u32 word, u32 lane)
{
    const u32 own = mask[word] << (31 - lane);
    if (own != ALL_LANES << (31 - lane)) {
        return __clz(~own);
    }
    u32 len = lane + 1;
    while (mask[--word] == ALL_LANES) {
        len += 32;
    }
    return len + __clz(~mask[word]);
}

// The same from `lane` up. The last bit of all is not set.
static __device__ __forceinline__ u32 row_after(const u32* mask, u32 word, u32 lane)
{
    const u32 own = mask[word] >> lane;
    if (own != ALL_LANES >> lane) {
        return __ffs(~own) - 1;
    }
    u32 len = 32 - lane;
    while (mask[++word] == ALL_LANES) {
        len += 32;
    }
    return len + __ffs(~mask[word]) - 1;
}

// `uses` may be 0.
extern "C" __global__ void grammar_rounds_choose(
    const u32* ids, u32 len, const u32* candidates, const u32* left_first, const u32* right_first,
    u32* uses, u32* chosen)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool is_chosen = false;
    if (at < len && (candidates[at / 32] >> lane & 1)) {
        is_chosen = ((row_before(left_first, at / 32, lane) | row_after(right_first, at / 32, lane)) & 1)
            == 0;
    }
    if (is_chosen && uses) {
        atomicAdd(&uses[ids[at]], 1u);
    }
    const u32 all = __ballot_sync(ALL_LANES, is_chosen);
    if (lane == 0) {
        chosen[at / 32] = all;
    }
}

extern "C" __global__ void grammar_rounds_new_rules(
    const u32* uses, const u32* rule_of_pair, u32 num_pairs, u32* is_new)
{
    const u32 id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < num_pairs) {
        is_new[id] = uses[id] >= 2 && rule_of_pair[id] == 0;
    }
}

// `numbers` has the sums of what grammar_rounds_new_rules said.
extern "C" __global__ void grammar_rounds_make_rules(
    const u32* numbers, u32 num_pairs, u32 num_rules, u32 first_rule, const u64* pairs, u32* counts,
    u32* uses, u32* rule_of_pair, u64* rules)
{
    const u32 id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= num_pairs) {
        return;
    }
    const u32 num_uses = uses[id];
    if (num_uses == 0) {
        return;
    }
    uses[id] = 0;
    if (numbers[id + 1] != numbers[id]) {
        const u32 number = num_rules + numbers[id];
        rule_of_pair[id] = first_rule + number;
        rules[number] = pairs[id];
    }
    if (rule_of_pair[id] != 0) {
        counts[id] -= num_uses;
    }
}

extern "C" __global__ void grammar_rounds_replaced(
    const u32* ids, u32 len, const u32* chosen, const u32* rule_of_pair, u32* replaced)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const bool is_chosen = at < len && (chosen[at / 32] >> lane & 1);
    const u32 all = __ballot_sync(ALL_LANES, is_chosen && rule_of_pair[ids[at]] != 0);
    if (lane == 0) {
        replaced[at / 32] = all;
    }
}

// Without `counts` nothing is counted off.
extern "C" __global__ void grammar_rounds_count(
    const u32* symbols, const u32* ids, u32 len, const u32* replaced, const u32* ends, u32* counts,
    u32* places, u64* sums)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const u32 word = at / 32, num_words = (len + 31) / 32;
    bool is_place = false;
    u32 own = 0;
    if (word < num_words) {
        const Around rep(replaced, word, num_words), end(ends, word, num_words);
        own = rep.own;
        if (rep.at(lane, 0)) {
            is_place = !end.at(lane, 1) && symbols[at + 2] != BARRIER;
            if (counts) {
                const u32 left = at > 0 && !rep.at(lane, -2) ? ids[at - 1] : NO_ID;
                const u32 right = ids[at + 1];
                if (left != NO_ID) {
                    atomicSub(&counts[left], 1u);
                }
                if (right != NO_ID) {
                    atomicSub(&counts[right], 1u);
                }
            }
        } else if (!rep.at(lane, -1) && rep.at(lane, 1)) {
            is_place = !end.at(lane, 0) && symbols[at] != BARRIER;
        }
    }
    const u32 all = __ballot_sync(ALL_LANES, is_place);
    if (lane == 0 && word < num_words) {
        places[word] = all;
        sums[word] = (u64)__popc(all) << 32 | __popc(own);
    }
}

// The rule of a pair: of those that were learned without `rule_of_pair`.
struct RuleOf {
    const u32* rule_of_pair;
    u32 first_rule;

    __device__ __forceinline__ u32 operator()(u32 id) const
    {
        return rule_of_pair ? rule_of_pair[id] : first_rule + id;
    }
};

extern "C" __global__ void grammar_rounds_rewrite(
    const u32* symbols, const u32* ids, u32 len, const u32* replaced, const u32* places,
    const u64* sums, const u32* rule_of_pair, u32 first_rule, u32 symbol_bits, u32* new_symbols,
    u32* new_ids, u64* keys, u32* positions)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const u32 word = at / 32;
    if (at >= len) {
        return;
    }
    const Around rep(replaced, word, (len + 31) / 32);
    if (rep.at(lane, -1)) {
        return;
    }
    const RuleOf rule_of = {rule_of_pair, first_rule};
    const u64 sum = sums[word];
    const u32 to = at - (u32)sum - __popc(rep.own & bits_below(lane));
    const bool is_replaced = rep.at(lane, 0), is_next = rep.at(lane, 1);
    const u32 id = ids[at];
    const u32 symbol = is_replaced ? rule_of(id) : symbols[at];
    new_symbols[to] = symbol;
    new_ids[to] = is_replaced || is_next ? NO_ID : id;
    const u32 own_places = places[word];
    if (own_places >> lane & 1) {
        const u32 next = is_replaced ? at + 2 : at + 1;
        const bool is_rule = !is_replaced || rep.at(lane, 2);
        const u32 right = is_rule ? rule_of(ids[next]) : symbols[next];
        const u32 place = (u32)(sum >> 32) + __popc(own_places & bits_below(lane));
        keys[place] = (u64)symbol << symbol_bits | right;
        positions[place] = to;
    }
}

extern "C" __global__ void grammar_rounds_starts(
    u32* starts, u32 num_chunks, const u32* replaced, const u64* sums)
{
    const u32 chunk = blockIdx.x * blockDim.x + threadIdx.x;
    if (chunk < num_chunks) {
        const u32 start = starts[chunk], word = start / 32;
        starts[chunk] = start - (u32)sums[word] - __popc(replaced[word] & bits_below(start % 32));
    }
}

// `step` chunks are one by now. `ends` is 0 before.
extern "C" __global__ void grammar_rounds_ends(
    const u32* starts, u32 num_chunks, u32 step, u32 len, u32* ends)
{
    const u32 chunk = blockIdx.x * blockDim.x + threadIdx.x;
    if (chunk < num_chunks && chunk % step == 0) {
        const u32 last = chunk == 0 ? len - 1 : starts[chunk] - 1;
        atomicOr(&ends[last / 32], 1u << last % 32);
    }
}

extern "C" __global__ void grammar_rounds_fresh(
    const u32* symbols, u32 len, const u32* ends, u32* places, u64* sums)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const bool is_place = at < len && (ends[at / 32] >> lane & 1) == 0 && symbols[at] != BARRIER
        && symbols[at + 1] != BARRIER;
    const u32 all = __ballot_sync(ALL_LANES, is_place);
    if (lane == 0 && at < len) {
        places[at / 32] = all;
        sums[at / 32] = (u64)__popc(all) << 32;
    }
}

extern "C" __global__ void grammar_rounds_fresh_write(
    const u32* symbols, u32 len, const u32* places, const u64* sums, u32 symbol_bits, u64* keys,
    u32* positions)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const u32 own_places = at < len ? places[at / 32] : 0;
    if (own_places >> lane & 1) {
        const u32 place = (u32)(sums[at / 32] >> 32) + __popc(own_places & bits_below(lane));
        keys[place] = (u64)symbols[at] << symbol_bits | symbols[at + 1];
        positions[place] = at;
    }
}
