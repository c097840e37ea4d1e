// Windows of n words of a segment, each with the rule that says how often it occurs.
//
//   corpus_sequences_edges        first and last n - 1 words of the rules of one level
//   corpus_sequences_edge_levels  the same of several small levels, by one thread block
//   corpus_sequences_count        how many windows begin in each element of a right-hand side and
//                                 end behind it
//   corpus_sequences_emit         these windows
//
// A window belongs to the rule where it crosses a border between two elements, and occurs as often
// as that rule (src/analytics/sequences/edges.rs). Of an element only the last n - 1 words begin such
// windows, and of what follows in its rule, or in its document, the first n - 1 words end them: tail
// and follow of t and f words have t + f - n + 1 windows.
//
// Data layout. `lens[e]` is the number of words of element e, n - 1 where it has more: `reach`. The
// words of rule r are heads[r * reach ..] in order and tails[r * reach ..] from the last one
// backwards. `owners[p]` is the rule of position p of `symbols`; in the root, the document.
// `rules` holds the rules by level, those that hold others before these; the host hands over the
// levels from the last to the first. A key is n words of `word_bits` bits, the first one highest.
//
// Mapping of work. A thread has a rule, then a position. It walks on until it has its words: 2 or 3
// elements; further where separators stand between.
#include "corpus_shared.cuh"

// The same struct is in src/gpu/corpus/sequences.rs.
struct CorpusRules {
    const u32* symbols;
    const u32* rule_offsets;
    const u32* doc_offsets;
    const u32* owners;
    const u8* lens;
    u32* heads;
    u32* tails;
    u32 num_terminals;
    u32 num_root;    // positions of the root
    u32 reach;
    u32 word_bits;
};

static __device__ void edges_of(const CorpusRules& rules, u32 rule)
{
    const u32 begin = rules.rule_offsets[rule], end = rules.rule_offsets[rule + 1];
    const u32 reach = rules.reach;
    const u32 num_words = rules.lens[rules.num_terminals + rule];
    u32* head = rules.heads + (u64)rule * reach;
    u32* tail = rules.tails + (u64)rule * reach;
    u32 found = 0;
    for (u32 at = begin; at < end && found < num_words; at++) {
        const u32 element = rules.symbols[at];
        const u32 len = rules.lens[element];
        if (element < rules.num_terminals) {
            if (len > 0) {
                head[found++] = element;
            }
            continue;
        }
        const u32* other = rules.heads + (u64)(element - rules.num_terminals) * reach;
        for (u32 i = 0; i < len && found < num_words; i++) {
            head[found++] = other[i];
        }
    }
    found = 0;
    for (u32 at = end; at > begin && found < num_words;) {
        const u32 element = rules.symbols[--at];
        const u32 len = rules.lens[element];
        if (element < rules.num_terminals) {
            if (len > 0) {
                tail[found++] = element;
            }
            continue;
        }
        const u32* other = rules.tails + (u64)(element - rules.num_terminals) * reach;
        for (u32 i = 0; i < len && found < num_words; i++) {
            tail[found++] = other[i];
        }
    }
}

extern "C" __global__ void corpus_sequences_edges(
    const CorpusRules rules, const u32* order, u32 first, u32 end)
{
    const u32 at = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (at < end) {
        edges_of(rules, order[at]);
    }
}

extern "C" __global__ void corpus_sequences_edge_levels(
    const CorpusRules rules, const u32* order, const u32* level_starts, u32 first_level,
    u32 end_level)
{
    for (u32 level = end_level; level > first_level; level--) {
        const u32 end = level_starts[level];
        for (u32 at = level_starts[level - 1] + threadIdx.x; at < end; at += blockDim.x) {
            edges_of(rules, order[at]);
        }
        __syncthreads();
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
