// The words of all documents, and what sorting them gives: which word occurs in which document, and how
// often.
//
//   corpus_terms_lens      the words of each position of right-hand sides
//   corpus_terms_words     the text, written out: each word and its document
//   corpus_terms_heads     1 where another word or another document begins
//   corpus_terms_rows      each word of each document once, and where it begins among the sorted ones
//   corpus_terms_counts    the counts of rows, in an order that is given
//   corpus_terms_scores    counts times the weight of the word
//
// Data layout. The grammar as corpus_extract has it; `starts[p]` are the words of all positions before
// p, modulo 2^32, which says the right thing inside a rule: no rule has more words than the text, and
// that has fewer than 2^31. The root is the first rule, so its documents begin at `starts` themselves.
//
// Mapping of work. corpus_terms_words: a thread has 16 words in a row. It looks up their document,
// descends to the first one by binary search in `starts`, rule by rule, and reads on. The 16 innermost
// rules it is in are kept; should it come back to one that was forgotten, or to another document, it
// descends again. The others have a thread for each number they write.
//
// Limits. The waiting for one load after the other on the way down. Text is written out in full, so
// nothing is won from what documents share.
#include "corpus_shared.cuh"

constexpr u32 STACK_LEN = 16;
constexpr u32 THREAD_WORDS = 16;

extern "C" __global__ void corpus_terms_lens(
    const u32* symbols, const u32* lens, u32 num_positions, u32* position_lens)
{
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position < num_positions) {
        position_lens[position] = lens[symbols[position]];
    }
}

extern "C" __global__ void corpus_terms_words(
    const u32* symbols, const u32* rule_offsets, const u32* doc_offsets, const u32* starts,
    u32 num_terminals, u32 num_words, u32 num_docs, u32 len_words, u32* words, u32* docs)
{
    u32 to = (blockIdx.x * blockDim.x + threadIdx.x) * THREAD_WORDS;
    if (to >= len_words) {
        return;
    }
    const u32 end = len_words - to < THREAD_WORDS ? len_words : to + THREAD_WORDS;
    u32 doc = 0;
    u32 ats[STACK_LEN], ends[STACK_LEN];
    while (to < end) {
        // The last document that starts here or before: it has words.
        for (u32 high = num_docs; high - doc > 1;) {
            const u32 middle = doc + (high - doc) / 2;
            if (starts[doc_offsets[middle]] <= to) {
                doc = middle;
            } else {
                high = middle;
            }
        }
        const u32 words_end = starts[doc_offsets[doc + 1]];
        const u32 doc_end = words_end < end ? words_end : end;
        u32 num_kept = 0, top = 0;
        // Down to word `to`: positions [at, rule_end) come behind it in its rule.
        u32 low = doc_offsets[doc], rule_end = doc_offsets[doc + 1];
        u32 offset = to - starts[low];
        u32 at = low;
        for (;;) {
            const u32 base = starts[low];
            u32 high = rule_end;
            while (high - low > 1) {
                const u32 middle = low + (high - low) / 2;
                if (starts[middle] - base <= offset) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            offset -= starts[low] - base;
            at = low;
            const u32 element = symbols[low];
            if (element < num_terminals) {
                break;
            }
            if (low + 1 < rule_end) {
                ats[top % STACK_LEN] = low + 1;
                ends[top % STACK_LEN] = rule_end;
                top++;
                num_kept = num_kept < STACK_LEN ? num_kept + 1 : STACK_LEN;
            }
            low = rule_offsets[element - num_terminals];
            rule_end = rule_offsets[element - num_terminals + 1];
        }
        // On from there, to the end or to a rule that was forgotten.
        while (to < doc_end) {
            if (at == rule_end) {
                if (num_kept == 0) {
                    break;
                }
                top--;
                num_kept--;
                at = ats[top % STACK_LEN];
                rule_end = ends[top % STACK_LEN];
                continue;
            }
            const u32 element = symbols[at++];
            if (element < num_words) {
                words[to] = element;
                docs[to] = doc;
                to++;
            } else if (element >= num_terminals) {
                if (at < rule_end) {
                    ats[top % STACK_LEN] = at;
                    ends[top % STACK_LEN] = rule_end;
                    top++;
                    num_kept = num_kept < STACK_LEN ? num_kept + 1 : STACK_LEN;
                }
                at = rule_offsets[element - num_terminals];
                rule_end = rule_offsets[element - num_terminals + 1];
            }
        }
    }
}

extern "C" __global__ void corpus_terms_heads(
    const u32* words, const u32* docs, u32 len_words, u32* heads)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < len_words) {
        heads[at] = at == 0 || words[at] != words[at - 1] || docs[at] != docs[at - 1];
    }
}

// `rows` are the sums of the heads before.
extern "C" __global__ void corpus_terms_rows(
    const u32* words, const u32* docs, u32 len_words, const u32* rows, u32* row_words, u32* row_docs,
    u32* row_starts)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < len_words && rows[at + 1] != rows[at]) {
        row_words[rows[at]] = words[at];
        row_docs[rows[at]] = docs[at];
        row_starts[rows[at]] = at;
    }
    if (at == len_words) {
        row_starts[rows[len_words]] = len_words;
    }
}

extern "C" __global__ void corpus_terms_counts(
    const u32* order, u32 num_rows, const u32* row_words, const u32* row_starts, u32* words,
    u32* counts)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_rows) {
        const u32 row = order[at];
        words[at] = row_words[row];
        counts[at] = row_starts[row + 1] - row_starts[row];
    }
}

extern "C" __global__ void corpus_terms_scores(
    const u32* words, const u32* counts, u32 num_rows, const double* weights, double* scores)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_rows) {
        scores[at] = (double)counts[at] * weights[words[at]];
    }
}
