// A text with other documents: the rules stay, the root is written anew.
//
//   corpus_edits_edges      which elements begin and end with a word, new terminals among them
//   corpus_edits_count      of each gap, how many runs of positions it is
//   corpus_edits_runs       the same again: which positions, and how many
//   corpus_edits_symbols    the elements of all runs, and the rules, with new numbers
//   corpus_edits_offsets    where rules and documents begin
//   corpus_edits_blanks     where blanks are implied
//   corpus_edits_lens       bytes of each root position, and of the blank behind it
//   corpus_edits_starts     where positions of rules start, behind those of the root
//
// Data layout. Text as in corpus_text.cuh. Document d of the new text is document `docs[d]` of the old
// one in which splices `splice_starts[d]` to `splice_starts[d + 1]` put tokens in the place of bytes
// `froms[s]` to `tos[s]`; between them lie gaps, which stay, one more than splices in each document.
// Both ends of a splice are borders of tokens, and two bytes or more lie between splices:
//
//   old        doc 0  |  9  | 3 |    7    |  5 |        elements of the root
//   splices           ....[==]....[=]......              [=] is replaced, rules 9 and 7 are cut
//   new        x y  tokens  b 3 c  tokens  d 5           x y, b of rule 9; c, d of rule 7
//
// A gap is runs of positions of `symbols`: behind its first cut rule by rule, innermost first; what
// lies between in the rule that holds both cuts; then before its second cut, outermost first. New
// terminals get numbers behind the old ones, so those of rules grow by `num_new`. tokens[0] is the
// empty separator, tokens[1] a blank: what stands between a word and a token beside a cut.
//
// Mapping of work. A thread has a gap, walking down to both of its cuts; then an element of the new
// text, looked up among the runs. Numbers of runs and lengths are scanned in between (corpus_sort.cu).
//
// Limits. Gaps: loads one after the other on the way down. Elements: memory, 40 bytes for each.
#include "corpus_shared.cuh"
#include "corpus_text.cuh"

constexpr u8 BEGINS_WITH_WORD = 1;
constexpr u8 ENDS_WITH_WORD = 2;
constexpr u32 IS_TOKEN = 0x80000000u;

// The same struct is in src/cuda/corpus/launch.rs.
struct Splices {
    const u32* docs;
    const u32* splice_starts;
    const u64* froms;
    const u64* tos;
    const u32* token_starts;
    const u32* tokens;
    // By new number.
    const u8* edges;
    u32 num_docs;
    u32 num_gaps;
    u32 num_new;
    u32 num_old_root;
};

static __device__ __forceinline__ u32 renumbered(u32 element, u32 num_terminals, u32 num_new)
{
    return element < num_terminals ? element : element + num_new;
}

extern "C" __global__ void corpus_edits_edges(
    const u8* old_edges, const u8* new_edges, u32 num_old_terminals, u32 num_new, u32 num_elements,
    u8* edges)
{
    const u32 element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= num_elements) {
        return;
    }
    const u32 new_at = element - num_old_terminals;
    edges[element] = element < num_old_terminals ? old_edges[element]
        : new_at < num_new ? new_edges[new_at] : old_edges[element - num_new];
}

// A cut on the way down: positions [first, end) of a document or rule, position p at byte
// base + starts[p] of the document; from `next` on they lie behind the cut. It goes on inside the one
// before where that is `entered`.
struct Cut {
    u64 offset, base;
    u32 first, end, next;
    bool is_there, is_entered;
};

static __device__ void find(const CorpusText& text, Cut& cut, u32* is_misplaced)
{
    u32 low = cut.first, high = cut.end;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (cut.base + text.starts[middle] < cut.offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    cut.next = low;
    cut.is_entered = false;
    if (low > cut.first) {
        const bool has_blank_behind = low < cut.end && has_blank(text, low);
        if (cut.base + text.starts[low] - has_blank_behind > cut.offset) {
            cut.is_entered = text.symbols[low - 1] >= text.num_terminals;
            if (!cut.is_entered) {
                *is_misplaced = 1;
            }
        }
    }
}

// Into the element before the cut, which is a rule.
static __device__ void descend(const CorpusText& text, Cut& cut, u32* is_misplaced)
{
    const u64 offset = cut.base + text.starts[cut.next - 1];
    const u32 rule = text.symbols[cut.next - 1] - text.num_terminals;
    cut.first = text.rule_offsets[rule];
    cut.end = text.rule_offsets[rule + 1];
    cut.base = offset - text.starts[cut.first];
    find(text, cut, is_misplaced);
}

// A gap: its document, which of it, and the splice behind it, if there is one.
struct Gap {
    u32 splice;
    bool is_first, is_last;
    Cut from, to;
};

static __device__ Gap gap_at(
    const CorpusText& text, const Splices& splices, u32 at, u32* is_misplaced)
{
    u32 doc = 0;
    for (u32 high = splices.num_docs; high - doc > 1;) {
        const u32 middle = doc + (high - doc) / 2;
        if (splices.splice_starts[middle] + middle <= at) {
            doc = middle;
        } else {
            high = middle;
        }
    }
    Gap gap;
    gap.splice = at - doc;
    gap.is_first = gap.splice == splices.splice_starts[doc];
    gap.is_last = gap.splice == splices.splice_starts[doc + 1];
    const u32 old_doc = splices.docs[doc];
    Cut cut;
    cut.first = cut.next = text.doc_offsets[old_doc];
    cut.end = text.doc_offsets[old_doc + 1];
    cut.base = 0 - text.starts[cut.first];
    cut.offset = 0;
    cut.is_there = cut.is_entered = false;
    gap.from = gap.to = cut;
    gap.to.next = cut.end;
    if (!gap.is_first) {
        gap.from.is_there = true;
        gap.from.offset = splices.tos[gap.splice - 1];
        find(text, gap.from, is_misplaced);
    }
    if (!gap.is_last) {
        gap.to.is_there = true;
        gap.to.offset = splices.froms[gap.splice];
        find(text, gap.to, is_misplaced);
    }
    // Down to the rule in which both cuts go apart.
    while (gap.from.is_entered && gap.to.is_entered && gap.from.next == gap.to.next) {
        descend(text, gap.from, is_misplaced);
        descend(text, gap.to, is_misplaced);
    }
    return gap;
}

extern "C" __global__ void corpus_edits_count(
    const CorpusText text, const Splices splices, u32* num_runs, u32* num_inner,
    u32* is_misplaced)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= splices.num_gaps) {
        return;
    }
    Gap gap = gap_at(text, splices, at, is_misplaced);
    u32 inner = 0, outer = 0;
    for (; gap.from.is_entered; inner++) {
        descend(text, gap.from, is_misplaced);
    }
    for (; gap.to.is_entered; outer++) {
        descend(text, gap.to, is_misplaced);
    }
    // The middle, what stands behind the splice before, and what stands before the next one and it.
    num_runs[at] = inner + outer + 1 + (gap.is_first ? 0 : 1) + (gap.is_last ? 0 : 2);
    num_inner[at] = inner;
}

// What stands between two elements with or without a blank between them: the place of a token, and 0
// or 1 of it.
static __device__ __forceinline__ uint2 separator(bool meets_word, bool has_blank)
{
    return make_uint2(IS_TOKEN | (has_blank ? 1 : 0), meets_word == has_blank ? 0 : 1);
}

static __device__ __forceinline__ void put(u32* sources, u64* lens, u32 at, uint2 run)
{
    sources[at] = run.x;
    lens[at] = run.y;
}

extern "C" __global__ void corpus_edits_runs(
    const CorpusText text, const Splices splices, const u32* first_runs, const u32* num_inner,
    u32* sources, u64* lens, u32* is_misplaced)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= splices.num_gaps) {
        return;
    }
    Gap gap = gap_at(text, splices, at, is_misplaced);
    u32 run = first_runs[at];
    const u32 behind_splice = run;
    run += gap.is_first ? 0 : 1;
    const u32 middle_end = gap.to.is_entered ? gap.to.next - 1 : gap.to.next;
    const u32 middle = run + num_inner[at];
    put(sources, lens, middle, make_uint2(gap.from.next, middle_end - gap.from.next));
    for (u32 inner = num_inner[at]; gap.from.is_entered;) {
        descend(text, gap.from, is_misplaced);
        put(sources, lens, run + --inner, make_uint2(gap.from.next, gap.from.end - gap.from.next));
    }
    if (!gap.is_first) {
        const u32 token = splices.token_starts[gap.splice] - 1;
        bool meets_word = false, is_blank = false;
        if (gap.from.next < gap.from.end && splices.token_starts[gap.splice - 1] <= token) {
            const u32 element = text.symbols[gap.from.next];
            const u32 number = renumbered(element, text.num_terminals, splices.num_new);
            meets_word = splices.edges[splices.tokens[token]] & ENDS_WITH_WORD
                && splices.edges[number] & BEGINS_WITH_WORD;
            is_blank = gap.from.base + text.starts[gap.from.next] > gap.from.offset;
        }
        put(sources, lens, behind_splice, separator(meets_word, is_blank));
    }
    run = middle + 1;
    while (gap.to.is_entered) {
        descend(text, gap.to, is_misplaced);
        const u32 end = gap.to.is_entered ? gap.to.next - 1 : gap.to.next;
        put(sources, lens, run++, make_uint2(gap.to.first, end - gap.to.first));
    }
    if (!gap.is_last) {
        const u32 token = splices.token_starts[gap.splice];
        const u32 num_tokens = splices.token_starts[gap.splice + 1] - token;
        bool meets_word = false, is_blank = false;
        if (gap.to.next > gap.to.first && num_tokens > 0) {
            const u32 element = text.symbols[gap.to.next - 1];
            const u32 number = renumbered(element, text.num_terminals, splices.num_new);
            meets_word = splices.edges[number] & ENDS_WITH_WORD
                && splices.edges[splices.tokens[token]] & BEGINS_WITH_WORD;
            // Behind the element, where it is not the blank that is cut off.
            const bool has_blank_behind = gap.to.next < gap.to.end && has_blank(text, gap.to.next);
            const u64 end = gap.to.base + text.starts[gap.to.next] - has_blank_behind;
            is_blank = end < gap.to.offset;
        }
        put(sources, lens, run, separator(meets_word, is_blank));
        put(sources, lens, run + 1, make_uint2(IS_TOKEN | token, num_tokens));
    }
}

// The last of `starts[0 .. num]` that is at most `at`; the first one is.
template <typename T>
static __device__ __forceinline__ u32 last_at_most(const T* starts, u32 num, u32 at)
{
    u32 low = 0;
    for (u32 high = num; high - low > 1;) {
        const u32 middle = low + (high - low) / 2;
        if (starts[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

extern "C" __global__ void corpus_edits_symbols(
    const CorpusText text, const Splices splices, const u32* sources, const u64* run_starts,
    u32 num_runs, u32 num_symbols, u32* symbols)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= num_symbols) {
        return;
    }
    const u32 num_root = (u32)run_starts[num_runs];
    u32 source = at - num_root + splices.num_old_root;
    if (at < num_root) {
        const u32 run = last_at_most(run_starts, num_runs, at);
        source = sources[run] + (at - (u32)run_starts[run]);
    }
    symbols[at] = at < num_root && source & IS_TOKEN
        ? splices.tokens[source & ~IS_TOKEN]
        : renumbered(text.symbols[source], text.num_terminals, splices.num_new);
}

extern "C" __global__ void corpus_edits_offsets(
    const CorpusText text, const Splices splices, const u32* first_runs, const u64* run_starts,
    u32 num_runs, u32 num_rules, u32* rule_offsets, u32* doc_offsets)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 num_root = (u32)run_starts[num_runs];
    if (at <= num_rules) {
        rule_offsets[at] = at == 0 ? 0 : text.rule_offsets[at] - splices.num_old_root + num_root;
    }
    if (at < splices.num_docs) {
        doc_offsets[at] = (u32)run_starts[first_runs[splices.splice_starts[at] + at]];
    }
    if (at == splices.num_docs) {
        doc_offsets[at] = num_root;
    }
}

extern "C" __global__ void corpus_edits_blanks(
    const CorpusText text, const Splices splices, const u32* symbols, const u32* doc_offsets,
    u32 num_symbols, u32* blanks)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word > num_symbols / 32) {
        return;
    }
    const u32 num_root = doc_offsets[splices.num_docs];
    const u32 first = word * 32;
    const u32 end = first + 32 < num_symbols ? first + 32 : num_symbols;
    u32 bits = 0;
    u32 doc = first < num_root ? last_at_most(doc_offsets, splices.num_docs, first) : 0;
    bool ends_with_word = first > 0 && first < num_root
        && splices.edges[symbols[first - 1]] & ENDS_WITH_WORD;
    for (u32 at = first; at < end; at++) {
        bool is_blank;
        if (at < num_root) {
            while (doc < splices.num_docs && doc_offsets[doc] < at) {
                doc++;
            }
            const u8 edge = splices.edges[symbols[at]];
            is_blank = ends_with_word && edge & BEGINS_WITH_WORD && doc_offsets[doc] != at;
            ends_with_word = edge & ENDS_WITH_WORD;
        } else {
            is_blank = has_blank(text, at - num_root + splices.num_old_root);
        }
        bits |= is_blank ? 1u << (at % 32) : 0;
    }
    blanks[word] = bits;
}

extern "C" __global__ void corpus_edits_lens(
    const CorpusText text, const u32* symbols, const u32* blanks, const u32* token_offsets,
    u32 num_terminals, u32 num_root, u64* lens)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= num_root) {
        return;
    }
    const u32 element = symbols[at];
    u64 len = at + 1 < num_root ? blanks[(at + 1) / 32] >> ((at + 1) % 32) & 1 : 0;
    if (element < num_terminals) {
        len += token_offsets[element + 1] - token_offsets[element];
    } else {
        const u32 rule = element - num_terminals;
        len += text.starts[text.rule_offsets[rule + 1]] - text.starts[text.rule_offsets[rule]];
    }
    lens[at] = len;
}

extern "C" __global__ void corpus_edits_starts(
    const CorpusText text, u32 num_old_root, u32 num_root, u32 num_symbols, u64* starts)
{
    const u32 at = num_root + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (at <= num_symbols) {
        const u64 moved = starts[num_root] - text.starts[num_old_root];
        starts[at] = text.starts[at - num_root + num_old_root] + moved;
    }
}
