// Words in documents, many queries at once: how often, and where.
//
//   corpus_search_filters   of each document that is asked about, which words are asked for
//   corpus_search_count     how many of those words begin in each chunk of these documents
//   corpus_search_emit      the same again: which, and where
//   corpus_search_lists     of each query, how many were found, and where its list begins
//   corpus_search_offsets   the lists in the order of the queries
//   corpus_search_weights   how often words occur in all documents
//
// Each document that is asked about is read once, whatever number of queries share it; nobody writes
// where another writes. What is found is counted, scanned, written in the order of the text and sorted
// by query (corpus_sort.cu keeps the order of equal keys), so lists ascend.
//
// Data layout. Text as in corpus_text.cuh. `keys` are the queries, document above word, ascending;
// queries of document `docs[i]` are `key_ranges[2 i]` to `key_ranges[2 i + 1]`. A filter has 1,024 bits
// for the words of a document; `chunk_starts[i]` chunks of `chunk_bytes` bytes belong to documents
// before it. What is found is a number of 64 bits: the first query of its key, above 36 bits of offset.
//
// Mapping of work. A thread has the words that begin in a chunk: it descends to its first byte, then
// reads on, rule by rule. A word costs its symbol and a word of the filter; those that pass are looked
// up among the queries of the document. The 16 innermost rules are kept as in corpus_extract.cu.
//
// Limits. Loads that wait for each other: the way down once a chunk, three for each rule.
#include "corpus_shared.cuh"
#include "corpus_text.cuh"

constexpr u32 STACK_LEN = 16;
constexpr u32 FILTER_WORDS = 32;
// More queries of a document would fill its filter.
constexpr u32 MAX_FILTERED = 512;
constexpr u32 OFFSET_BITS = 36;
// Longer ranges are cut at the end of the chunk, shorter ones read to their end.
constexpr u32 MAX_UNCUT = 32;

static __device__ __forceinline__ u32 filter_bit(u32 word)
{
    return word * 2654435761u >> 22;
}

// How many of `keys` are below `key`.
static __device__ __forceinline__ u32 num_below(const u64* keys, u32 first, u32 end, u64 key)
{
    while (first < end) {
        const u32 middle = first + (end - first) / 2;
        if (keys[middle] < key) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

extern "C" __global__ void corpus_search_filters(
    const u64* keys, u32 num_keys, u32 word_bits, const u32* docs, u32 num_docs, u32* key_ranges,
    u32* filters)
{
    const u32 doc = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (doc >= num_docs) {
        return;
    }
    const u32 first = num_below(keys, 0, num_keys, (u64)docs[doc] << word_bits);
    const u32 end = num_below(keys, first, num_keys, ((u64)docs[doc] + 1) << word_bits);
    u32 bits = end - first > MAX_FILTERED ? ~0u : 0;
    for (u32 at = first; at < end && end - first <= MAX_FILTERED; at++) {
        const u32 bit = filter_bit((u32)(keys[at] & ((1ull << word_bits) - 1)));
        bits |= bit / 32 == lane ? 1u << (bit % 32) : 0;
    }
    filters[doc * FILTER_WORDS + lane] = bits;
    if (lane < 2) {
        key_ranges[2 * doc + lane] = lane == 0 ? first : end;
    }
}

// Positions [at, end) are next, position p at byte base + starts[p] of the document; then those of the
// rules around, innermost last.
struct Place {
    u32 at, end;
    u64 base;
    u32 num_kept, top;
    bool has_forgotten;
    u32 ats[STACK_LEN], ends[STACK_LEN];
    u64 bases[STACK_LEN];
};

// The first position of a range from `at` on that starts at byte `offset` or behind it.
static __device__ __forceinline__ u32 first_from(
    const CorpusText& text, u32 at, u32 end, u64 base, u64 offset)
{
    while (at < end) {
        const u32 middle = at + (end - at) / 2;
        if (base + text.starts[middle] < offset) {
            at = middle + 1;
        } else {
            end = middle;
        }
    }
    return at;
}

// Enters [at, end); what starts at byte `to` or behind it may be left out.
static __device__ __forceinline__ void enter(
    const CorpusText& text, Place& place, u32 at, u32 end, u64 base, u64 to)
{
    if (place.at < place.end) {
        const u32 slot = place.top % STACK_LEN;
        place.ats[slot] = place.at;
        place.ends[slot] = place.end;
        place.bases[slot] = place.base;
        place.top++;
        if (place.num_kept < STACK_LEN) {
            place.num_kept++;
        } else {
            place.has_forgotten = true;
        }
    }
    place.at = at;
    place.base = base;
    place.end = end - at > MAX_UNCUT ? first_from(text, at, end, base, to) : end;
}

// To the first position that starts at byte `from` of document `doc` or behind it.
static __device__ void descend(const CorpusText& text, u32 doc, u64 from, u64 to, Place& place)
{
    place.num_kept = place.top = 0;
    place.has_forgotten = false;
    place.at = place.end = 0;
    u32 first = text.doc_offsets[doc], end = text.doc_offsets[doc + 1];
    u64 base = 0 - text.starts[first];
    for (;;) {
        const u32 next = first_from(text, first, end, base, from);
        // What starts before may reach in; it is a rule then, or a token that began earlier.
        const u32 before = next - 1;
        const u32 element = next > first ? text.symbols[before] : 0;
        const bool is_entered = next > first && element >= text.num_terminals
            && (next == end || base + text.starts[next] != from);
        enter(text, place, next, end, base, to);
        if (!is_entered) {
            return;
        }
        const u64 offset = base + text.starts[before];
        first = text.rule_offsets[element - text.num_terminals];
        end = text.rule_offsets[element - text.num_terminals + 1];
        base = offset - text.starts[first];
    }
}

// A thread's chunk, and the queries of its document.
struct Chunk {
    u32 doc;
    u64 from, to;
    u32 first_key, end_key;
    const u32* filter;
};

static __device__ __forceinline__ Chunk chunk_of(
    const CorpusText& text, u64 chunk, const u32* docs, u32 num_docs, const u64* chunk_starts,
    u32 chunk_bytes, const u32* key_ranges, const u32* filters)
{
    u32 place = 0;
    for (u32 high = num_docs; high - place > 1;) {
        const u32 middle = place + (high - place) / 2;
        if (chunk_starts[middle] <= chunk) {
            place = middle;
        } else {
            high = middle;
        }
    }
    Chunk own;
    own.doc = docs[place];
    own.from = (chunk - chunk_starts[place]) * chunk_bytes;
    own.to = own.from + chunk_bytes;
    own.first_key = key_ranges[2 * place];
    own.end_key = key_ranges[2 * place + 1];
    own.filter = filters + (u64)place * FILTER_WORDS;
    return own;
}

// Calls `found` with the first query of the key, and the offset, of each word of a chunk that is asked
// for.
template <typename Found>
static __device__ __forceinline__ void read(
    const CorpusText& text, const Chunk& chunk, const u64* keys, u32 word_bits, Found found)
{
    const u64 doc_key = (u64)chunk.doc << word_bits;
    Place place;
    descend(text, chunk.doc, chunk.from, chunk.to, place);
    for (;;) {
        if (place.at == place.end) {
            if (place.num_kept == 0) {
                if (!place.has_forgotten) {
                    return;
                }
                // Ends of ranges that were cut lie behind the chunk.
                const u64 reached = place.base + text.starts[place.end];
                if (reached >= chunk.to) {
                    return;
                }
                descend(text, chunk.doc, reached, chunk.to, place);
                continue;
            }
            place.top--;
            place.num_kept--;
            const u32 slot = place.top % STACK_LEN;
            place.at = place.ats[slot];
            place.end = place.ends[slot];
            place.base = place.bases[slot];
            continue;
        }
        const u32 position = place.at++;
        const u32 element = text.symbols[position];
        if (element < text.num_terminals) {
            const u32 bit = filter_bit(element);
            if (chunk.filter[bit / 32] >> (bit % 32) & 1) {
                const u64 key = doc_key | element;
                const u32 first = num_below(keys, chunk.first_key, chunk.end_key, key);
                if (first < chunk.end_key && keys[first] == key) {
                    const u64 offset = place.base + text.starts[position];
                    if (offset >= chunk.to) {
                        return;
                    }
                    found(first, offset);
                }
            }
            continue;
        }
        const u64 offset = place.base + text.starts[position];
        if (offset >= chunk.to) {
            return;
        }
        const u32 rule = element - text.num_terminals;
        const u32 first = text.rule_offsets[rule];
        const u64 base = offset - text.starts[first];
        enter(text, place, first, text.rule_offsets[rule + 1], base, chunk.to);
    }
}

extern "C" __global__ void corpus_search_count(
    const CorpusText text, const u64* keys, u32 word_bits, const u32* docs, u32 num_docs,
    const u64* chunk_starts, u32 chunk_bytes, const u32* key_ranges, const u32* filters,
    u32 num_chunks, u64* counts)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= num_chunks) {
        return;
    }
    const Chunk chunk =
        chunk_of(text, at, docs, num_docs, chunk_starts, chunk_bytes, key_ranges, filters);
    u64 count = 0;
    read(text, chunk, keys, word_bits, [&](u32, u64) { count++; });
    counts[at] = count;
}

extern "C" __global__ void corpus_search_emit(
    const CorpusText text, const u64* keys, u32 word_bits, const u32* docs, u32 num_docs,
    const u64* chunk_starts, u32 chunk_bytes, const u32* key_ranges, const u32* filters,
    u32 num_chunks, const u64* places, u64* found, u32* found_queries)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= num_chunks) {
        return;
    }
    const Chunk chunk =
        chunk_of(text, at, docs, num_docs, chunk_starts, chunk_bytes, key_ranges, filters);
    u64 place = places[at];
    read(text, chunk, keys, word_bits, [&](u32 query, u64 offset) {
        found[place] = (u64)query << OFFSET_BITS | offset;
        found_queries[place] = query;
        place++;
    });
}

extern "C" __global__ void corpus_search_lists(
    const u64* keys, const u32* queries, u32 num_keys, const u64* found, u32 num_found, u64* lens,
    u32* list_starts)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= num_keys) {
        return;
    }
    const u64 first = num_below(keys, 0, at, keys[at]);
    const u32 start = num_below(found, 0, num_found, first << OFFSET_BITS);
    const u32 end = num_below(found, start, num_found, (first + 1) << OFFSET_BITS);
    lens[queries[at]] = end - start;
    list_starts[queries[at]] = start;
}

extern "C" __global__ void corpus_search_offsets(
    const u64* found, const u32* list_starts, const u64* starts, u32 num_queries, u64 num_offsets,
    u64* offsets)
{
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= num_offsets) {
        return;
    }
    // The last query whose list begins here or before: it has one.
    u32 query = 0;
    for (u32 high = num_queries; high - query > 1;) {
        const u32 middle = query + (high - query) / 2;
        if (starts[middle] <= at) {
            query = middle;
        } else {
            high = middle;
        }
    }
    const u64 place = list_starts[query] + (at - starts[query]);
    offsets[at] = found[place] & ((1ull << OFFSET_BITS) - 1);
}

extern "C" __global__ void corpus_search_weights(
    const u64* weights, const u32* words, u32 num_words, u64* counts)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_words) {
        counts[at] = weights[words[at]];
    }
}
