// Lengths of expansions, and where the expansion at each position starts.
//
//   corpus_index_terminals   bytes and infos of words and separators
//   corpus_index_rules       those of all rules but the root
//   corpus_index_shares      what each position adds to the bytes before the next, and its blank
//   corpus_index_starts      bytes before each position, its own blank included
//
// Data layout. `bytes[e]` is the length of element e, implied blanks inside included; for a rule, 0 is
// not known yet, since none expands to nothing. `infos[e]` is its number of words << 3, 4, 2 where it ends
// with a word, 1 where it begins with one; 0 is not known yet. A blank is implied between an element that
// ends with a word and one that begins with one, in the same rule, and in the root in the same document
// (src/tadoc/dag/mod.rs). `blanks` has a bit for each position: a blank is implied before it.
//
// Mapping of work. A thread has a rule, from the last to the first, and waits for those that it holds
// (corpus_tickets.cuh); a rule of more than 64 elements is added up by its warp, 32 at a time. Then a
// thread has a position.
//
// Limits. As corpus_weights: the depth of the grammar, and reading at random places. Texts of less than
// 2^61 words.
#include "corpus_shared.cuh"
#include "corpus_tickets.cuh"

constexpr u32 LONG_RULE = 64;
constexpr u64 BEGINS_WITH_WORD = 1;
constexpr u64 ENDS_WITH_WORD = 2;
constexpr u64 IS_KNOWN = 4;
constexpr u32 WORDS_SHIFT = 3;

struct Lengths {
    const u32* symbols;
    u32 num_terminals;
    volatile u64* bytes;
    volatile u64* infos;

    // Adds what stands at `at` of a rule that begins at `begin`; false where it is not known yet. What
    // stands before it is known.
    __device__ __forceinline__ bool add(u32 at, u32 begin, u64& num_bytes, u64& num_words) const
    {
        const u32 element = symbols[at];
        const u64 info = infos[element], len = bytes[element];
        if (info == 0 || (len == 0 && element >= num_terminals)) {
            return false;
        }
        const u64 before = at > begin ? infos[symbols[at - 1]] : IS_KNOWN;
        const bool has_blank = (before & ENDS_WITH_WORD) && (info & BEGINS_WITH_WORD);
        num_bytes += len + (has_blank ? 1 : 0);
        num_words += info >> WORDS_SHIFT;
        return before != 0;
    }
};

extern "C" __global__ void corpus_index_terminals(
    const u32* token_offsets, u32 num_words, u32 num_terminals, u64* bytes, u64* infos)
{
    const u32 terminal = blockIdx.x * blockDim.x + threadIdx.x;
    if (terminal < num_terminals) {
        const u64 edges = BEGINS_WITH_WORD | ENDS_WITH_WORD;
        bytes[terminal] = token_offsets[terminal + 1] - token_offsets[terminal];
        infos[terminal] = terminal < num_words ? 1 << WORDS_SHIFT | IS_KNOWN | edges : IS_KNOWN;
    }
}

extern "C" __global__ void corpus_index_rules(
    const u32* symbols, const u32* rule_offsets, u32 num_terminals, u32 num_rules, u32* tickets,
    u64* bytes, u64* infos)
{
    __shared__ u32 ticket;
    const Lengths lengths{symbols, num_terminals, bytes, infos};
    const u32 lane = threadIdx.x % 32;
    const u32 from_last = take_ticket(tickets, &ticket) * blockDim.x + threadIdx.x;
    bool is_open = from_last + 1 < num_rules;
    const u32 rule = is_open ? num_rules - 1 - from_last : 0;
    const u32 begin = rule_offsets[rule], end = rule_offsets[rule + 1];
    const bool is_long = is_open && end - begin > LONG_RULE;
    u32 at = begin;
    u64 num_bytes = 0, num_words = 0;
    Patience patience(tickets);
    while (__any_sync(ALL_LANES, is_open)) {
        if (is_open && !is_long) {
            for (; at < end; at++) {
                u64 more_bytes = 0, more_words = 0;
                if (!lengths.add(at, begin, more_bytes, more_words)) {
                    break;
                }
                num_bytes += more_bytes;
                num_words += more_words;
            }
        }
        for (u32 left = __ballot_sync(ALL_LANES, is_open && is_long); left; left &= left - 1) {
            const u32 asking = __ffs(left) - 1;
            const u32 rule_begin = __shfl_sync(ALL_LANES, begin, asking);
            const u32 rule_end = __shfl_sync(ALL_LANES, end, asking);
            u32 from = __shfl_sync(ALL_LANES, at, asking);
            u64 part_bytes = 0, part_words = 0;
            while (from < rule_end) {
                u64 more_bytes = 0, more_words = 0;
                const bool is_known = rule_end - from <= lane
                    || lengths.add(from + lane, rule_begin, more_bytes, more_words);
                if (!__all_sync(ALL_LANES, is_known)) {
                    break;
                }
                part_bytes += more_bytes;
                part_words += more_words;
                from = rule_end - from > 32 ? from + 32 : rule_end;
            }
            for (u32 distance = 16; distance > 0; distance /= 2) {
                part_bytes += __shfl_xor_sync(ALL_LANES, part_bytes, distance);
                part_words += __shfl_xor_sync(ALL_LANES, part_words, distance);
            }
            if (lane == asking) {
                num_bytes += part_bytes;
                num_words += part_words;
                at = from;
            }
        }
        const bool is_done = is_open && at == end;
        if (is_done) {
            const u64 edges = (lengths.infos[symbols[begin]] & BEGINS_WITH_WORD)
                | (lengths.infos[symbols[end - 1]] & ENDS_WITH_WORD);
            lengths.infos[num_terminals + rule] = num_words << WORDS_SHIFT | IS_KNOWN | edges;
            lengths.bytes[num_terminals + rule] = num_bytes;
            is_open = false;
        }
        if (!patience.lasts(__any_sync(ALL_LANES, is_done))) {
            return;
        }
    }
}

// A warp writes 32 bits.
extern "C" __global__ void corpus_index_shares(
    const u32* symbols, const u32* owners, u32 num_root, u32 num_positions, const u64* bytes,
    const u64* infos, u64* shares, u32* blanks)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    bool has_blank = false;
    if (position < num_positions) {
        const u32 element = symbols[position];
        const bool is_first = position == 0 || position == num_root
            || owners[position] != owners[position - 1];
        has_blank = !is_first && (infos[symbols[position - 1]] & ENDS_WITH_WORD)
            && (infos[element] & BEGINS_WITH_WORD);
        shares[position] = bytes[element] + (has_blank ? 1 : 0);
    }
    const u32 bits = __ballot_sync(ALL_LANES, has_blank);
    if (threadIdx.x % 32 == 0 && position <= num_positions) {
        blanks[position / 32] = bits;
    }
}

// `starts` are the sums of the shares before.
extern "C" __global__ void corpus_index_starts(const u32* blanks, u32 num_positions, u64* starts)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position < num_positions) {
        starts[position] += blanks[position / 32] >> (position % 32) & 1;
    }
}
