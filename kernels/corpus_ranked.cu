// For each sequence of n words the documents that hold it, those that repeat it most first.
//
//   corpus_ranked_flags    1 where a window of n words of one document begins
//   corpus_ranked_keys     these windows, each with its document
//   corpus_ranked_heads    1 where another window or another document begins, and where another window
//                          does
//   corpus_ranked_rows     each window of each document once, and each window once
//   corpus_ranked_max      the largest count
//   corpus_ranked_ranks    what rows are sorted by: sequence, then count, the largest first
//   corpus_ranked_counts   documents and counts of rows in this order
//
// Data layout. `words` and `docs` are the text as corpus_terms writes it. A key is n words of `word_bits`
// bits, the first one highest. Windows are sorted by key, so that documents stay in order; rows as well.
//
// Mapping of work. A thread has a word of the text, a window, a row. Thread blocks of 256.
//
// Limits. Memory: windows are written out in full.
#include "corpus_shared.cuh"

extern "C" __global__ void corpus_ranked_flags(const u32* docs, u32 len_words, u32 n, u32* flags)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < len_words) {
        flags[at] = len_words - at >= n && docs[at + n - 1] == docs[at];
    }
}

// `places` are the sums of the flags before.
extern "C" __global__ void corpus_ranked_keys(
    const u32* words, const u32* docs, u32 len_words, u32 n, u32 word_bits, const u32* places,
    u64* keys, u32* key_docs)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len_words || places[at + 1] == places[at]) {
        return;
    }
    u64 key = words[at];
    for (u32 i = 1; i < n; i++) {
        key = key << word_bits | words[at + i];
    }
    keys[places[at]] = key;
    key_docs[places[at]] = docs[at];
}

extern "C" __global__ void corpus_ranked_heads(
    const u64* keys, const u32* docs, u32 num_keys, u32* row_heads, u32* sequence_heads)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_keys) {
        const bool is_other = at == 0 || keys[at] != keys[at - 1];
        sequence_heads[at] = is_other;
        row_heads[at] = is_other || docs[at] != docs[at - 1];
    }
}

// `rows` and `sequences` are the sums of the heads before.
extern "C" __global__ void corpus_ranked_rows(
    const u64* keys, const u32* docs, u32 num_keys, const u32* rows, const u32* sequences,
    u32* row_docs, u32* row_starts, u32* row_sequences, u64* sequence_keys, u32* sequence_starts)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at > num_keys) {
        return;
    }
    const u32 row = rows[at], sequence = sequences[at];
    if (at == num_keys) {
        row_starts[row] = num_keys;
        sequence_starts[sequence] = row;
        return;
    }
    if (rows[at + 1] != row) {
        row_docs[row] = docs[at];
        row_starts[row] = at;
        row_sequences[row] = sequences[at + 1] - 1;
    }
    if (sequences[at + 1] != sequence) {
        sequence_keys[sequence] = keys[at];
        sequence_starts[sequence] = row;
    }
}

extern "C" __global__ void corpus_ranked_max(const u32* row_starts, u32 num_rows, u32* max_count)
{
    __shared__ u32 counts[256];
    u32 largest = 0;
    for (u32 row = blockIdx.x * blockDim.x + threadIdx.x; row < num_rows;
         row += gridDim.x * blockDim.x) {
        const u32 count = row_starts[row + 1] - row_starts[row];
        largest = largest < count ? count : largest;
    }
    counts[threadIdx.x] = largest;
    __syncthreads();
    for (u32 distance = blockDim.x / 2; distance > 0; distance /= 2) {
        if (threadIdx.x < distance && counts[threadIdx.x] < counts[threadIdx.x + distance]) {
            counts[threadIdx.x] = counts[threadIdx.x + distance];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        atomicMax(max_count, counts[0]);
    }
}

extern "C" __global__ void corpus_ranked_ranks(
    const u32* row_starts, const u32* row_sequences, u32 num_rows, u32 max_count, u32 count_bits,
    u64* ranks)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < num_rows) {
        const u32 count = row_starts[row + 1] - row_starts[row];
        ranks[row] = (u64)row_sequences[row] << count_bits | (max_count - count);
    }
}

extern "C" __global__ void corpus_ranked_counts(
    const u32* order, u32 num_rows, const u32* row_docs, const u32* row_starts, u32* docs, u32* counts)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_rows) {
        const u32 row = order[at];
        docs[at] = row_docs[row];
        counts[at] = row_starts[row + 1] - row_starts[row];
    }
}
