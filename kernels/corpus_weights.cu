// How often each element of a segment occurs: weights flow from rules to what stands in them, and
// each element adds up those of the rules that hold it.
//
//   corpus_weights_rules       the weights of all rules
//   corpus_weights_places      the weight of the rule of each place of a terminal
//   corpus_weights_terminals   the weights of words and separators
//
// Data layout. The inverse grammar of corpus_inverse: `offsets` by element, `parents` by place. A weight
// of 0 is one that is not known yet: every rule is used, so none is 0 in the end.
//
// Mapping of work. A thread has a rule. Thread blocks take rules in the order in which they begin to
// run (tickets.cuh), and rules stand behind those that hold them, so whatever a thread waits for
// belongs to a thread that runs already. A rule with more than 64 places is added up by its warp, 128
// places at a time. Words that are everywhere are no different from others: the weights of all places
// are scanned, and a terminal's weight is the difference of two sums.
//
// Limits. A weight is read as soon as it is written, half a microsecond later: the depth of the grammar
// times that. Else reading weights at random places. Sums wrap as the CPU's do: weights of elements
// with bytes are below 2^64 (src/tadoc/dag/mod.rs).
#include "corpus_shared.cuh"
#include "corpus_tickets.cuh"

constexpr u32 LONG_ROW = 64;
constexpr u32 STRIP_PARTS = 4;

// Adds up places [from, to) in strips, until one has a weight that is not known. All lanes have the same
// numbers; returns where it came to, and adds to the sum of the lane that asked.
static __device__ __forceinline__ u32 add_strips(
    const u32* parents, u32 from, u32 to, const volatile u64* weights, bool is_asking, u64& sum)
{
    const u32 lane = threadIdx.x % 32;
    u64 part = 0;
    while (from < to) {
        u64 strip = 0;
        bool is_known = true;
#pragma unroll
        for (u32 i = 0; i < STRIP_PARTS; i++) {
            const u32 at = from + i * 32 + lane;
            if (at < to) {
                const u64 weight = weights[parents[at]];
                is_known = is_known && weight != 0;
                strip += weight;
            }
        }
        if (!__all_sync(ALL_LANES, is_known)) {
            break;
        }
        part += strip;
        from = to - from > STRIP_PARTS * 32 ? from + STRIP_PARTS * 32 : to;
    }
    for (u32 distance = 16; distance > 0; distance /= 2) {
        part += __shfl_xor_sync(ALL_LANES, part, distance);
    }
    sum += is_asking ? part : 0;
    return from;
}

// `offsets` are those of rules.
extern "C" __global__ void corpus_weights_rules(
    const u32* offsets, const u32* parents, u32 num_rules, u32* tickets, u64* rule_weights)
{
    __shared__ u32 ticket;
    volatile u64* weights = rule_weights;
    const u32 lane = threadIdx.x % 32;
    const u32 rule = take_ticket(tickets, &ticket) * blockDim.x + threadIdx.x;
    bool is_open = rule < num_rules;
    u32 at = is_open ? offsets[rule] : 0;
    const u32 end = is_open ? offsets[rule + 1] : 0;
    const bool is_long = end - at > LONG_ROW;
    // The root occurs once.
    u64 sum = rule == 0 ? 1 : 0;
    Patience patience(tickets);
    while (__any_sync(ALL_LANES, is_open)) {
        if (is_open && !is_long) {
            for (; at < end; at++) {
                const u64 weight = weights[parents[at]];
                if (weight == 0) {
                    break;
                }
                sum += weight;
            }
        }
        for (u32 left = __ballot_sync(ALL_LANES, is_open && is_long); left; left &= left - 1) {
            const u32 asking = __ffs(left) - 1;
            const u32 from = __shfl_sync(ALL_LANES, at, asking);
            const u32 to = __shfl_sync(ALL_LANES, end, asking);
            const u32 reached = add_strips(parents, from, to, weights, lane == asking, sum);
            at = lane == asking ? reached : at;
        }
        const bool is_done = is_open && at == end;
        if (is_done) {
            weights[rule] = sum;
            is_open = false;
        }
        if (!patience.lasts(__any_sync(ALL_LANES, is_done))) {
            return;
        }
    }
}

extern "C" __global__ void corpus_weights_places(
    const u32* parents, u32 num_places, const u64* rule_weights, u64* place_weights)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_places) {
        place_weights[at] = rule_weights[parents[at]];
    }
}

// `sums` are those of the weights of places before.
extern "C" __global__ void corpus_weights_terminals(
    const u32* offsets, const u64* sums, u32 num_terminals, u64* weights)
{
    const u32 terminal = blockIdx.x * blockDim.x + threadIdx.x;
    if (terminal < num_terminals) {
        weights[terminal] = sums[offsets[terminal + 1]] - sums[offsets[terminal]];
    }
}
