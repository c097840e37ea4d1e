// Windows of n words of a segment, each with the rule that says how often it occurs.
//
//   corpus_sequences_terminals    how many words each terminal has
//   corpus_sequences_edges        first and last n - 1 words of all rules
//   corpus_sequences_count        how many windows begin in each element of a right-hand side and
//                                 end behind it
//   corpus_sequences_emit         these windows
//   corpus_sequences_count_pairs  how many pairs of words, of which n - 1 words or fewer behind the
//   corpus_sequences_emit_pairs   first is the second, begin in each element and end behind it; these
//
// A window belongs to the rule where it crosses a border between two elements, and occurs as often
// as that rule (src/tadoc/analytics/sequences/edges.rs). Of an element only the last n - 1 words begin such
// windows, and of what follows in its rule, or in its document, the first n - 1 words end them: tail
// and follow of t and f words have t + f - n + 1 windows.
//
// Data layout. `lens[e]` is the number of words of element e, n - 1 where it has more: `reach`. The
// words of rule r are heads[r * reach ..] in order and tails[r * reach ..] from the last one
// backwards. `owners[p]` is the rule of position p of `symbols`; in the root, the document. A key is n
// words of `word_bits` bits, the first one highest; of a pair, the smaller one.
//
// Mapping of work. A thread has a rule, then a position. It walks on until it has its words: 2 or 3
// elements; further where separators stand between. Rules wait for the edges of those they hold
// (corpus_tickets.cuh), which begin as NO_WORD and NO_LEN. Of a pair the first word is one of the
// t <= reach last words of the element, a words before its end, the second one the b-th behind it:
// a + b <= reach + 1.
#include "corpus_shared.cuh"
#include "corpus_tickets.cuh"

constexpr u32 NO_WORD = 0xffffffffu;
constexpr u32 NO_LEN = 0xff;

// The same struct is in src/cuda/corpus/launch.rs.
struct CorpusRules {
    const u32* symbols;
    const u32* rule_offsets;
    const u32* doc_offsets;
    const u32* owners;
    u8* lens;
    u32* heads;
    u32* tails;
    u32 num_terminals;
    u32 num_root;    // positions of the root
    u32 reach;
    u32 word_bits;
};

extern "C" __global__ void corpus_sequences_terminals(u8* lens, u32 num_words, u32 num_terminals)
{
    const u32 terminal = blockIdx.x * blockDim.x + threadIdx.x;
    if (terminal < num_terminals) {
        lens[terminal] = terminal < num_words;
    }
}

// Appends the words that `element` begins with, or ends with, to `edge`, until there are `reach`; false
// where they are not known yet.
static __device__ __forceinline__ bool append_words(
    const CorpusRules& rules, u32 element, const volatile u32* edges, volatile u32* edge, u32& found)
{
    const u32 len = ((const volatile u8*)rules.lens)[element];
    if (len == NO_LEN) {
        return false;
    }
    if (element < rules.num_terminals) {
        if (len > 0) {
            edge[found++] = element;
        }
        return true;
    }
    const volatile u32* other = edges + (u64)(element - rules.num_terminals) * rules.reach;
    for (u32 i = 0; i < len && found < rules.reach; i++) {
        const u32 word = other[i];
        if (word == NO_WORD) {
            return false;
        }
        edge[found++] = word;
    }
    return true;
}

// Writes the edges of a rule and how many words they have; false where it has to be asked again.
static __device__ bool write_edges(const CorpusRules& rules, u32 rule)
{
    const u32 begin = rules.rule_offsets[rule], end = rules.rule_offsets[rule + 1];
    const u32 reach = rules.reach;
    volatile u32* head = rules.heads + (u64)rule * reach;
    volatile u32* tail = rules.tails + (u64)rule * reach;
    u32 num_first = 0, num_last = 0;
    for (u32 at = begin; at < end && num_first < reach; at++) {
        if (!append_words(rules, rules.symbols[at], rules.heads, head, num_first)) {
            return false;
        }
    }
    for (u32 at = end; at > begin && num_last < num_first;) {
        if (!append_words(rules, rules.symbols[--at], rules.tails, tail, num_last)) {
            return false;
        }
    }
    ((volatile u8*)rules.lens)[rules.num_terminals + rule] = (u8)num_first;
    return true;
}

// All rules but the root, from the last to the first.
extern "C" __global__ void corpus_sequences_edges(const CorpusRules rules, u32 num_rules, u32* tickets)
{
    __shared__ u32 ticket;
    const u32 from_last = take_ticket(tickets, &ticket) * blockDim.x + threadIdx.x;
    bool is_open = from_last + 1 < num_rules;
    Patience patience(tickets);
    while (__any_sync(ALL_LANES, is_open)) {
        const bool is_done = is_open && write_edges(rules, num_rules - 1 - from_last);
        is_open = is_open && !is_done;
        if (!patience.lasts(__any_sync(ALL_LANES, is_done))) {
            return;
        }
    }
}

static __device__ __forceinline__ u32 end_around(const CorpusRules& rules, u32 position)
{
    const u32 owner = rules.owners[position];
    return position < rules.num_root ? rules.doc_offsets[owner + 1] : rules.rule_offsets[owner + 1];
}

extern "C" __global__ void corpus_sequences_count(
    const CorpusRules rules, u32 num_positions, u32* counts)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= num_positions) {
        return;
    }
    const u32 num_before = rules.lens[rules.symbols[position]];
    u32 num_after = 0;
    if (num_before > 0) {
        const u32 end = end_around(rules, position);
        for (u32 at = position + 1; at < end && num_after < rules.reach; at++) {
            num_after += rules.lens[rules.symbols[at]];
        }
        num_after = num_after < rules.reach ? num_after : rules.reach;
    }
    const u32 num_words = num_before + num_after;
    counts[position] = num_words > rules.reach ? num_words - rules.reach : 0;
}

extern "C" __global__ void corpus_sequences_emit(
    const CorpusRules rules, u32 num_positions, const u32* first_windows, u64* keys, u32* owners)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= num_positions) {
        return;
    }
    u32 window = first_windows[position];
    const u32 end_window = first_windows[position + 1];
    if (window == end_window) {
        return;
    }
    const u32 reach = rules.reach, word_bits = rules.word_bits;
    const u32 key_bits = (reach + 1) * word_bits;
    const u64 mask = key_bits < 64 ? (1ull << key_bits) - 1 : ~0ull;
    const u32 owner = position < rules.num_root ? 0 : rules.owners[position];
    const u32 end = end_around(rules, position);
    u64 key = 0;
    u32 num_words = 0;
    for (u32 at = position; at < end && window < end_window; at++) {
        const u32 element = rules.symbols[at];
        const u32 len = rules.lens[element];
        const bool is_word = element < rules.num_terminals;
        const u64 edge = is_word ? 0 : (u64)(element - rules.num_terminals) * reach;
        const bool is_first = at == position;
        for (u32 i = 0; i < len && window < end_window; i++) {
            const u32 word = is_word ? element
                : is_first ? rules.tails[edge + len - 1 - i] : rules.heads[edge + i];
            key = (key << word_bits | word) & mask;
            num_words++;
            if (num_words > reach) {
                keys[window] = key;
                owners[window] = owner;
                window++;
            }
        }
    }
}

extern "C" __global__ void corpus_sequences_count_pairs(
    const CorpusRules rules, u32 num_positions, u32* counts)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= num_positions) {
        return;
    }
    const u32 reach = rules.reach;
    const u32 num_before = rules.lens[rules.symbols[position]];
    u32 num_after = 0;
    if (num_before > 0) {
        const u32 end = end_around(rules, position);
        for (u32 at = position + 1; at < end && num_after < reach; at++) {
            num_after += rules.lens[rules.symbols[at]];
        }
    }
    u32 num_pairs = 0;
    for (u32 before = 1; before <= num_before; before++) {
        const u32 max_after = reach + 1 - before;
        num_pairs += num_after < max_after ? num_after : max_after;
    }
    counts[position] = num_pairs;
}

extern "C" __global__ void corpus_sequences_emit_pairs(
    const CorpusRules rules, u32 num_positions, const u32* first_pairs, u64* keys, u32* owners)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= num_positions) {
        return;
    }
    u32 pair = first_pairs[position];
    if (pair == first_pairs[position + 1]) {
        return;
    }
    const u32 reach = rules.reach, num_terminals = rules.num_terminals;
    const u32 owner = position < rules.num_root ? 0 : rules.owners[position];
    const u32 end = end_around(rules, position);
    const u32 first_element = rules.symbols[position];
    const u32 num_before = rules.lens[first_element];
    const u32* tail = rules.tails + (u64)(first_element - num_terminals) * reach;
    u32 num_after = 0;
    for (u32 at = position + 1; at < end && num_after < reach; at++) {
        const u32 element = rules.symbols[at];
        const u32 len = rules.lens[element];
        const u32* head = rules.heads + (u64)(element - num_terminals) * reach;
        for (u32 i = 0; i < len && num_after < reach; i++) {
            const u32 word = element < num_terminals ? element : head[i];
            num_after++;
            for (u32 before = 1; before <= num_before && before + num_after <= reach + 1; before++) {
                const u32 other = first_element < num_terminals ? first_element : tail[before - 1];
                const u64 less = word < other ? word : other, more = word < other ? other : word;
                keys[pair] = less << rules.word_bits | more;
                owners[pair] = owner;
                pair++;
            }
        }
    }
}
