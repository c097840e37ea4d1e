// The documents of each word, from the grammar: masks of documents flow from the root down to words.
//
//   corpus_documents_uses     how many positions of rules hold each rule
//   corpus_documents_root     the documents of what stands in the root
//   corpus_documents_rules    masks flow from rules to what stands in them
//   corpus_documents_counts   how many documents have each word
//   corpus_documents_lists    these documents, ascending
//
//   documents    0 1 2 ..            a mask has a bit for each document
//   root         R R c | R d | a     R 0b011  c 0b001  d 0b010  a 0b100
//   rule R       a b                 a 0b111  b 0b011
//
// Data layout. Several segments are one grammar (src/cuda/corpus/group.rs). `masks` has a row of `row_len`
// numbers for each element (words, the separator, rules): bit d % 32 of number d / 32 is document d of the
// segment to which the element belongs; `doc_numbers` has d for each document. The row of the separator
// stays empty. All rows are empty before. `row_len` is a power of two up to 32, or a multiple of 32.
// `waiting[r]` is the number of positions outside of the root that hold rule r and were not visited yet.
//
// Mapping of work. A warp has a rule. A lane has a number of the mask, and where the mask is shorter than
// a warp, several elements of the rule are visited at once. Rules are taken in order, and stand behind
// those that hold them (corpus_tickets.cuh), so whatever a warp waits for belongs to a warp that runs
// already. A lane without documents reads nothing: what few documents share costs few sectors. A bit is
// only written where it is missing, so words that are everywhere are written once. Counting and writing
// out, a lane has a number of the mask of a word.
//
// Limits. Each element of a rule reads the mask of what stands there: 4 bytes for 32 documents, in
// sectors of 32 bytes, and memory for a mask of each element. Else as for weights: the depth of the
// grammar, a microsecond a level. Sources: masks that flow down when all parents are done, G-TADOC
// (Zhang et al. 2021, section IV); masks of many documents at once, ours.
#include "corpus_shared.cuh"
#include "corpus_tickets.cuh"

// Elements of a rule that are visited at once, so that their masks are read together.
constexpr u32 STRIP = 8;

// Positions from `num_root` on are those of rules.
extern "C" __global__ void corpus_documents_uses(
    const u32* symbols, u32 num_root, u32 num_positions, u32 num_terminals, u32* waiting)
{
    const u32 position = num_root + blockIdx.x * blockDim.x + threadIdx.x;
    if (position < num_positions && symbols[position] >= num_terminals) {
        atomicAdd(&waiting[symbols[position] - num_terminals], 1u);
    }
}

extern "C" __global__ void corpus_documents_root(
    const u32* symbols, const u32* doc_offsets, const u32* doc_numbers, u32 num_root, u32 num_docs,
    u32 num_words, u32 num_terminals, u32 row_len, u32* masks)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= num_root) {
        return;
    }
    const u32 element = symbols[position];
    if (element >= num_words && element < num_terminals) {
        return;
    }
    // The last document that begins here or before.
    u32 low = 0;
    for (u32 high = num_docs; high - low > 1;) {
        const u32 middle = low + (high - low) / 2;
        if (doc_offsets[middle] <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const u32 doc = doc_numbers[low];
    u32* const number = &masks[(u64)element * row_len + doc / 32];
    const u32 bit = 1u << (doc % 32);
    if (!(__ldcg(number) & bit)) {
        atomicOr(number, bit);
    }
}

// Number of lanes that have a mask.
static __device__ __forceinline__ u32 width_of(u32 row_len)
{
    return row_len < 32 ? row_len : 32;
}

extern "C" __global__ void corpus_documents_rules(
    const u32* symbols, const u32* rule_offsets, u32 num_words, u32 num_terminals, u32 num_rules,
    u32 row_len, u32* tickets, u32* waiting, u32* masks)
{
    __shared__ u32 ticket;
    const u32 lane = threadIdx.x % 32, width = width_of(row_len);
    const u32 rule = 1 + (take_ticket(tickets, &ticket) * blockDim.x + threadIdx.x) / 32;
    if (rule >= num_rules) {
        return;
    }
    const u32 begin = rule_offsets[rule], end = rule_offsets[rule + 1];
    Patience patience(tickets);
    while (__any_sync(ALL_LANES, *(volatile u32*)&waiting[rule] != 0)) {
        if (!patience.lasts(false)) {
            return;
        }
    }
    __threadfence();
    const u32 step = 32 / width;
    for (u32 part = lane % width; part < row_len; part += width) {
        const u32 mine = __ldcg(&masks[(u64)(num_terminals + rule) * row_len + part]);
        for (u32 from = begin + lane / width; from < end && mine != 0; from += STRIP * step) {
            u32* numbers[STRIP];
            u32 missing[STRIP];
#pragma unroll
            for (u32 i = 0; i < STRIP; i++) {
                const u32 at = from + i * step;
                const u32 element = at < end ? symbols[at] : num_words;
                const bool is_asked = at < end && (element < num_words || element >= num_terminals);
                numbers[i] = &masks[(u64)element * row_len + part];
                missing[i] = is_asked ? mine & ~__ldcg(numbers[i]) : 0;
            }
#pragma unroll
            for (u32 i = 0; i < STRIP; i++) {
                if (missing[i] != 0) {
                    atomicOr(numbers[i], missing[i]);
                }
            }
        }
    }
    // What any lane wrote comes before what the rules below are told.
    __threadfence();
    __syncwarp();
    for (u32 at = begin + lane; at < end; at += 32) {
        if (symbols[at] >= num_terminals) {
            atomicSub(&waiting[symbols[at] - num_terminals], 1u);
        }
    }
}

extern "C" __global__ void corpus_documents_counts(
    const u32* masks, u32 num_words, u32 row_len, u32* counts)
{
    const u32 width = width_of(row_len);
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 word = thread / width;
    u32 count = 0;
    for (u32 part = thread % width; part < row_len && word < num_words; part += width) {
        count += __popc(masks[(u64)word * row_len + part]);
    }
    for (u32 distance = width / 2; distance > 0; distance /= 2) {
        count += __shfl_xor_sync(ALL_LANES, count, distance);
    }
    if (thread % width == 0 && word < num_words) {
        counts[word] = count;
    }
}

// `offsets` are the sums of the counts before.
extern "C" __global__ void corpus_documents_lists(
    const u32* masks, const u32* offsets, u32 num_words, u32 row_len, u32* docs)
{
    const u32 width = width_of(row_len);
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 word = thread / width, first = thread % width;
    u32 to = word < num_words ? offsets[word] : 0;
    for (u32 part = first; part < row_len; part += width) {
        u32 mask = word < num_words ? masks[(u64)word * row_len + part] : 0;
        const u32 count = __popc(mask);
        u32 sum = count;
        for (u32 distance = 1; distance < width; distance *= 2) {
            const u32 before = __shfl_up_sync(ALL_LANES, sum, distance, width);
            sum += first >= distance ? before : 0;
        }
        for (u32 at = to + sum - count; mask != 0; mask &= mask - 1) {
            docs[at++] = part * 32 + __ffs(mask) - 1;
        }
        to += __shfl_sync(ALL_LANES, sum, width - 1, width);
    }
}
