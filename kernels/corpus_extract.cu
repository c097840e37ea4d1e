// Passages of documents, many at once: bytes [offset, offset + length) of a document each, written
// one behind the other.
//
// Data layout. Text as in corpus_text.cuh.
//
// Mapping of work. A thread has `chunk_bytes` (a multiple of 8) of the output, from a multiple of
// that on, so that it writes whole words; it looks up whose bytes these are. It descends to its
// first byte by binary search in `starts`, rule by rule, then reads on. The 16 innermost rules it
// is in are kept; should it come back to one that was forgotten, it descends again.
//
// Limits. The waiting for one load after the other on the way down; threads with small chunks repeat
// the way down of their neighbours, out of the caches.
#include "corpus_shared.cuh"
#include "corpus_text.cuh"

constexpr u32 STACK_LEN = 16;

// Where a thread is: positions [at, end) of a rule are next, behind `skip` bytes of a token; then
// those of the rules around it, innermost last.
struct Place {
    u32 at, end;
    u32 token, skip;
    u32 num_kept, top;
    bool has_token, has_forgotten;
    u32 ats[STACK_LEN], ends[STACK_LEN];
};

static __device__ __forceinline__ void enter(Place& place, u32 at, u32 end)
{
    if (place.at < place.end) {
        place.ats[place.top % STACK_LEN] = place.at;
        place.ends[place.top % STACK_LEN] = place.end;
        place.top++;
        if (place.num_kept < STACK_LEN) {
            place.num_kept++;
        } else {
            place.has_forgotten = true;
        }
    }
    place.at = at;
    place.end = end;
}

// To byte `offset` of document `doc`, which has more.
static __device__ void descend(const CorpusText& text, u32 doc, u64 offset, Place& place)
{
    place.num_kept = place.top = 0;
    place.has_forgotten = place.has_token = false;
    u32 low = text.doc_offsets[doc], end = text.doc_offsets[doc + 1];
    place.at = place.end = 0;
    for (;;) {
        // The last position that starts at the offset or before.
        const u64 base = text.starts[low];
        u32 high = end;
        while (high - low > 1) {
            const u32 middle = low + (high - low) / 2;
            if (text.starts[middle] - base <= offset) {
                low = middle;
            } else {
                high = middle;
            }
        }
        offset -= text.starts[low] - base;
        enter(place, low + 1, end);
        if (low + 1 < end && has_blank(text, low + 1)
            && offset + 1 == text.starts[low + 1] - text.starts[low]) {
            return;    // the blank, which the next position brings along
        }
        const u32 element = text.symbols[low];
        if (element < text.num_terminals) {
            place.token = element;
            place.skip = (u32)offset;
            place.has_token = true;
            return;
        }
        low = text.rule_offsets[element - text.num_terminals];
        end = text.rule_offsets[element - text.num_terminals + 1];
    }
}

extern "C" __global__ void corpus_extract_bytes(
    const CorpusText text, const u32* query_docs, const u64* query_offsets, const u64* query_starts,
    u32 num_queries, u32 chunk_bytes, u64 num_chunks, u8* output)
{
    const u64 chunk = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (chunk >= num_chunks) {
        return;
    }
    const u64 output_len = query_starts[num_queries];
    u64 to = chunk * chunk_bytes;
    const u64 chunk_end = to + chunk_bytes < output_len ? to + chunk_bytes : output_len;
    // The last query that starts here or before: it has bytes.
    u32 query = 0;
    for (u32 high = num_queries; high - query > 1;) {
        const u32 middle = query + (high - query) / 2;
        if (query_starts[middle] <= to) {
            query = middle;
        } else {
            high = middle;
        }
    }
    u64 word = 0;
    Place place;
    while (to < chunk_end) {
        while (query_starts[query + 1] <= to) {
            query++;
        }
        const u32 doc = query_docs[query];
        // Byte 0 of the output, seen from the document; wraps.
        const u64 moved = query_offsets[query] - query_starts[query];
        const u64 query_end = query_starts[query + 1];
        const u64 end = query_end < chunk_end ? query_end : chunk_end;
        descend(text, doc, moved + to, place);
        while (to < end) {
            if (place.has_token) {
                const u32 token_end = text.token_offsets[place.token + 1];
                u32 from = text.token_offsets[place.token] + place.skip;
                for (; from < token_end && to < end; from++) {
                    word |= (u64)text.tokens[from] << (to % 8 * 8);
                    to++;
                    if (to % 8 == 0) {
                        *(u64*)(output + to - 8) = word;
                        word = 0;
                    }
                }
                place.has_token = false;
                continue;
            }
            if (place.at == place.end) {
                if (place.num_kept == 0) {
                    if (!place.has_forgotten) {
                        return;    // the passage is longer than its document: nobody asks for that
                    }
                    descend(text, doc, moved + to, place);
                    continue;
                }
                place.top--;
                place.num_kept--;
                place.at = place.ats[place.top % STACK_LEN];
                place.end = place.ends[place.top % STACK_LEN];
                continue;
            }
            const u32 position = place.at++;
            if (has_blank(text, position)) {
                word |= (u64)' ' << (to % 8 * 8);
                to++;
                if (to % 8 == 0) {
                    *(u64*)(output + to - 8) = word;
                    word = 0;
                }
            }
            const u32 element = text.symbols[position];
            if (element < text.num_terminals) {
                place.token = element;
                place.skip = 0;
                place.has_token = true;
            } else {
                const u32 rule = element - text.num_terminals;
                enter(place, text.rule_offsets[rule], text.rule_offsets[rule + 1]);
            }
        }
    }
    for (u64 at = to / 8 * 8; at < to; at++) {
        output[at] = (u8)(word >> (at % 8 * 8));
    }
}
