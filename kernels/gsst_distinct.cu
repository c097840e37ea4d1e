// Rows of a column that differ: a table with one slot for each different text.
//
//   slot    63 … 48  tag: bits of the hash of the text
//           47 … 31  chunk: a decoded run
//           30 …  0  row of the chunk
//   empty   all bits are 1
//
//   counts, if they are wanted: one number for each slot, of the rows with its bytes
//
//   gsst_distinct_insert   rows of a chunk into the table            one thread per row
//   gsst_distinct_move     slots of a table into a larger one        one thread per slot
//   gsst_distinct_bins     how many slots have counts of each size   one thread per slot
//   gsst_distinct_select   slots whose counts have some sizes        one thread per slot
//   gsst_distinct_text     text of slots that were selected          one warp per slot
//
// A bin holds the counts that have the same highest five bits behind the first one, so bins ascend with
// counts, and counts below 64 have bins of their own.
//
// Open addressing with linear probing. A slot leads to the bytes of its row, so a row is known only if
// its bytes are: tags only spare comparisons. The host keeps half of the slots empty, so every search
// ends. Text that a slot leads to was written before the kernel began, so a slot needs no more than one
// atomic word.
//
// The hash is a sum over the words of a text, so the lanes of a warp hash a long text together. Each
// thread compares its row alone: equal rows of megabytes are slow.

#include "gsst_codes.cuh"

constexpr u32 THREADS = 256;
constexpr u64 EMPTY = ~0ull;
constexpr u32 ROW_BITS = 31;
constexpr u32 TAG_BIT = 48;
constexpr u32 CHUNK_MASK = (1u << (TAG_BIT - ROW_BITS)) - 1u;
// Rows of more bytes are hashed by a warp.
constexpr u32 LONG_BYTES = 256;
constexpr u64 STEP = 0x9e3779b97f4a7c15ull;

constexpr u32 NUM_BINS = 1920;
// Counts below it have bins of their own.
constexpr u32 EXACT_COUNTS = 64;

// Rows of a run in device memory; the same structs are in src/cuda/gsst_distinct.rs.
struct DistinctChunk {
    const u8* text;
    const u32* offsets;  // of the rows in `text`, with the end of the last one
};

// A slot that was selected.
struct SelectedRow {
    u64 slot;
    u64 count;
    u64 len;
};

struct Row {
    const u8* at;
    u32 len;
};

__device__ __forceinline__ Row row_of(const DistinctChunk& chunk, u32 row) {
    const u32 start = chunk.offsets[row];
    return {chunk.text + start, chunk.offsets[row + 1] - start};
}

// Up to 8 bytes at any address, then zeros; reads the aligned words that hold these bytes.
__device__ __forceinline__ u64 load_bytes(const u8* at, u32 num_bytes) {
    const u64* words = (const u64*)((u64)at & ~7ull);
    const u32 skipped = (u32)(u64)at & 7u;
    u64 bytes = words[0] >> 8 * skipped;
    if (skipped + num_bytes > 8) bytes |= words[1] << (64 - 8 * skipped);
    return num_bytes < 8 ? bytes & ((1ull << 8 * num_bytes) - 1) : bytes;
}

__device__ __forceinline__ u64 load_word(const Row& row, u32 at) {
    return load_bytes(row.at + at, min(8u, row.len - at));
}

__device__ __forceinline__ u64 mix(u64 x) {
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
}

// Sum over the words of a text from `first` on, each `stride` words.
__device__ __forceinline__ u64 sum_of_words(const Row& row, u32 first, u32 stride) {
    u64 sum = 0;
    for (u64 at = 8ull * first; at < row.len; at += 8ull * stride) {
        sum += mix(load_word(row, (u32)at) + (at / 8 + 1) * STEP);
    }
    return sum;
}

// Hash of the row of each lane. All lanes of the warp call it; those without a row have an empty one.
__device__ __forceinline__ u64 hash_of(const Row& row, u64 hash_mask) {
    const bool is_long = row.len > LONG_BYTES;
    u64 sum = is_long ? 0 : sum_of_words(row, 0, 1);
    const u32 lane = threadIdx.x % 32;
    for (u32 rest = __ballot_sync(ALL_LANES, is_long); rest; rest &= rest - 1) {
        const u32 owner = __ffs(rest) - 1;
        const Row other = {(const u8*)__shfl_sync(ALL_LANES, (u64)row.at, owner),
                           __shfl_sync(ALL_LANES, row.len, owner)};
        u64 part = sum_of_words(other, lane, 32);
        for (u32 d = 16; d; d /= 2) part += __shfl_xor_sync(ALL_LANES, part, d);
        if (lane == owner) sum = part;
    }
    return mix(sum ^ row.len * STEP) & hash_mask;
}

__device__ __forceinline__ bool are_equal(const Row& one, const Row& other) {
    if (one.len != other.len) return false;
    for (u64 at = 0; at < one.len; at += 8) {
        if (load_word(one, (u32)at) != load_word(other, (u32)at)) return false;
    }
    return true;
}

__device__ __forceinline__ u64 load_slot(const u64* slot) { return *(const volatile u64*)slot; }

// Row that a slot leads to.
__device__ __forceinline__ Row row_in(const DistinctChunk* chunks, u64 slot) {
    return row_of(chunks[(u32)(slot >> ROW_BITS) & CHUNK_MASK], (u32)slot & ((1u << ROW_BITS) - 1));
}

// Returns the place of the slot with the bytes of `row`, which is_new says to be its own.
__device__ __forceinline__ u64 insert(u64* table, u64 table_mask, const DistinctChunk* chunks, u64 hash,
                                      u32 chunk, u32 number, const Row& row, bool& is_new) {
    const u64 tag = hash >> TAG_BIT;
    const u64 mine = tag << TAG_BIT | (u64)chunk << ROW_BITS | number;
    for (u64 at = hash & table_mask;; at = (at + 1) & table_mask) {
        u64 seen = load_slot(table + at);
        if (seen == EMPTY) seen = atomicCAS(table + at, EMPTY, mine);
        is_new = seen == EMPTY;
        if (is_new) return at;
        if (seen >> TAG_BIT == tag && are_equal(row, row_in(chunks, seen))) return at;
    }
}

// Adds the rows of a warp to the counts of their slots, rows of the same slot at once. All lanes call it.
__device__ __forceinline__ void add_to_counts(u64* counts, u64 at, bool is_there) {
    const u32 lane = threadIdx.x % 32;
    const u32 same = __match_any_sync(ALL_LANES, is_there ? at : EMPTY);
    if (is_there && lane == __ffs(same) - 1) atomicAdd(counts + at, (u64)__popc(same));
}

__device__ __forceinline__ u32 bin_of(u64 count) {
    if (count < EXACT_COUNTS) return (u32)count;
    const u32 top_bit = 63 - __clzll(count);
    return EXACT_COUNTS + (top_bit - 6) * 32 + ((u32)(count >> (top_bit - 5)) & 31u);
}

// table: of table_mask + 1 slots. counts: as many, or null. validity: one bit per row, or null. num_new:
// the number of rows that got a slot is added to it.
extern "C" __global__ void __launch_bounds__(THREADS)
gsst_distinct_insert(u64* table, u64 table_mask, u64* counts, const DistinctChunk* chunks, u32 chunk,
                     u32 num_rows, const u8* validity, u64 hash_mask, u64* num_new) {
    const u32 number = blockIdx.x * THREADS + threadIdx.x;
    const bool is_there =
        number < num_rows && (!validity || (validity[number / 8] >> number % 8 & 1u));
    const Row row = is_there ? row_of(chunks[chunk], number) : Row{nullptr, 0};
    const u64 hash = hash_of(row, hash_mask);
    bool is_new = false;
    u64 at = 0;
    if (is_there) at = insert(table, table_mask, chunks, hash, chunk, number, row, is_new);
    if (counts) add_to_counts(counts, at, is_there);
    const int of_block = __syncthreads_count(is_new);
    if (threadIdx.x == 0 && of_block) atomicAdd(num_new, (u64)of_block);
}

// from: of num_slots slots, whose rows differ. to: of to_mask + 1 slots, more than twice as many as rows.
// counts_from, counts_to: as many as slots, or null.
extern "C" __global__ void __launch_bounds__(THREADS)
gsst_distinct_move(const u64* from, u64 num_slots, const u64* counts_from, u64* to, u64 to_mask,
                   u64* counts_to, const DistinctChunk* chunks, u64 hash_mask) {
    const u64 slot = (u64)blockIdx.x * THREADS + threadIdx.x;
    const u64 seen = slot < num_slots ? from[slot] : EMPTY;
    const Row row = seen == EMPTY ? Row{nullptr, 0} : row_in(chunks, seen);
    const u64 hash = hash_of(row, hash_mask);
    if (seen == EMPTY) return;
    for (u64 at = hash & to_mask;; at = (at + 1) & to_mask) {
        if (load_slot(to + at) == EMPTY && atomicCAS(to + at, EMPTY, seen) == EMPTY) {
            if (counts_to) counts_to[at] = counts_from[slot];
            return;
        }
    }
}

// bins: NUM_BINS numbers, to which the slots with counts of each bin are added. Any grid.
extern "C" __global__ void __launch_bounds__(THREADS)
gsst_distinct_bins(const u64* counts, u64 num_slots, u64* bins) {
    __shared__ u32 of_block[NUM_BINS];
    for (u32 bin = threadIdx.x; bin < NUM_BINS; bin += THREADS) of_block[bin] = 0;
    __syncthreads();
    const u64 step = (u64)gridDim.x * THREADS;
    for (u64 slot = (u64)blockIdx.x * THREADS + threadIdx.x; slot < num_slots; slot += step) {
        const u64 count = counts[slot];
        if (count) atomicAdd(of_block + bin_of(count), 1u);
    }
    __syncthreads();
    for (u32 bin = threadIdx.x; bin < NUM_BINS; bin += THREADS) {
        if (of_block[bin]) atomicAdd(bins + bin, (u64)of_block[bin]);
    }
}

// selected: the slots with counts of the bins from first_bin to before end_bin, behind the *num_selected
// that are there, in any order. max_selected: number of all that have room; others are left out, but add
// to *num_selected.
extern "C" __global__ void __launch_bounds__(THREADS)
gsst_distinct_select(const u64* table, const u64* counts, u64 num_slots, const DistinctChunk* chunks,
                     u32 first_bin, u32 end_bin, u64 max_selected, SelectedRow* selected,
                     u64* num_selected) {
    const u64 slot = (u64)blockIdx.x * THREADS + threadIdx.x;
    const u64 count = slot < num_slots ? counts[slot] : 0;
    const u32 bin = bin_of(count);
    const bool is_wanted = count && first_bin <= bin && bin < end_bin;
    const u32 wanted = __ballot_sync(ALL_LANES, is_wanted);
    if (!wanted) return;
    const u32 lane = threadIdx.x % 32;
    u64 at = 0;
    if (lane == 0) at = atomicAdd(num_selected, (u64)__popc(wanted));
    at = __shfl_sync(ALL_LANES, at, 0) + __popc(wanted & ((1u << lane) - 1));
    if (is_wanted && at < max_selected) {
        selected[at] = {table[slot], count, row_in(chunks, table[slot]).len};
    }
}

// starts: where the text of each slot goes in `text`.
extern "C" __global__ void __launch_bounds__(THREADS)
gsst_distinct_text(const SelectedRow* selected, u64 num_selected, const DistinctChunk* chunks,
                   const u64* starts, u8* text) {
    const u64 which = ((u64)blockIdx.x * THREADS + threadIdx.x) / 32;
    if (which >= num_selected) return;
    const Row row = row_in(chunks, selected[which].slot);
    u8* to = text + starts[which];
    for (u32 at = threadIdx.x % 32; at < row.len; at += 32) to[at] = row.at[at];
}
