// The decode layouts of the thesis's figure 6.1, over the 8-bit codes of GSST blocks: what
// gsst_decode is measured against (benches/gsst_layouts.rs). No part of the library.
//
//   gsst_layouts_blocks_bytes   one thread per block; codes and text byte by byte
//   gsst_layouts_blocks_words   the same; 16 codes per load, text in aligned words of 8 bytes
//   gsst_layouts_splits_bytes   one thread per split; codes and text byte by byte
//   gsst_layouts_splits_shared  the same, with the table in shared memory
//   gsst_layouts_splits_words   the same; 16 codes per load, text in aligned words
//   gsst_layouts_transposed     the same; the 16 codes that 32 splits load together lie together
//
// Data layout. Blocks as in gsst_codes.cuh: codes, then a word per split. Tables of 256 words per
// block, as gsst_decode has them. Transposed codes: of every 32 splits first the first 16 codes of
// each, then the next 16, and so on; the last 32 splits are filled up with codes that nobody reads.
//
// Mapping of work. Blocks: thread t of the grid has block t. Splits: blockIdx.x is the block,
// thread t of the thread blocks with blockIdx.y = 0, 1, … its split t; a thread block copies the
// table to shared memory, one copy, if it uses it there.
//
// Limits. Threads are as many as blocks or splits, and those of a warp write to 32 places far from
// each other: a store of a warp is 32 sectors. Both are what gsst_decode avoids: there a warp has a
// split, whatever the number of blocks, and writes whole lines.

#include "gsst_codes.cuh"

constexpr u32 TABLE_WORDS = 256;
constexpr u32 CHUNK_CODES = 16;
constexpr u32 GROUP_SPLITS = 32;
constexpr u32 ESCAPE = 255;

// Text leaves byte by byte.
struct ByteStores {
    u8* to;

    __device__ explicit ByteStores(u8* at) : to(at) {}
    __device__ __forceinline__ void put(u64 symbol, u32 len) {
        for (u32 k = 0; k < len; k++) to[k] = (u8)(symbol >> (8 * k));
        to += len;
    }
    __device__ __forceinline__ void finish() {}
};

// Text leaves in words of 8 bytes; the first and the last word of a thread, whose other bytes are
// its neighbours', byte by byte.
struct WordStores {
    u8* to;      // where `word` goes, a multiple of 8
    u64 word;
    u32 fill;    // bytes in `word`, below 8
    u32 skip;    // of them, those that are the neighbour's

    __device__ explicit WordStores(u8* at) : to(at - ((u64)at & 7)), word(0) {
        fill = skip = (u32)((u64)at & 7);
    }
    __device__ __forceinline__ void put_bytes(u32 end) {
        for (u32 k = skip; k < end; k++) to[k] = (u8)(word >> (8 * k));
        skip = 0;
    }
    __device__ __forceinline__ void put(u64 symbol, u32 len) {
        word |= symbol << (8 * fill);
        fill += len;
        if (fill < 8) return;
        if (skip) put_bytes(8);
        else *(u64*)to = word;
        to += 8;
        fill -= 8;
        word = fill ? symbol >> (8 * (len - fill)) : 0;
    }
    __device__ __forceinline__ void finish() { put_bytes(fill); }
};

// One symbol, or nothing for an escape.
template <class Stores>
__device__ __forceinline__ void decode_code(u32 code, const u64* table, bool& is_literal,
                                            Stores& stores) {
    if (is_literal) {
        is_literal = false;
        stores.put(code, 1);
    } else if (code == ESCAPE) {
        is_literal = true;
    } else {
        const u64 symbol = table[code];
        const u32 len = min((u32)(symbol >> 56), 8u);
        stores.put(len < 8 ? symbol & 0x00ffffffffffffffull : symbol, len);
    }
}

__device__ __forceinline__ void decode_bytes(const u8* codes, u32 num_codes, const u64* table,
                                             bool is_literal, u8* text) {
    ByteStores stores(text);
    for (u32 i = 0; i < num_codes; i++) decode_code(codes[i], table, is_literal, stores);
}

// STRIDE: bytes from 16 codes to the next 16.
template <u32 STRIDE>
__device__ __forceinline__ void decode_words(const u8* codes, u32 num_codes, const u64* table,
                                             bool is_literal, u8* text) {
    WordStores stores(text);
    for (u32 start = 0; start < num_codes; start += CHUNK_CODES, codes += STRIDE) {
        const ulonglong2 chunk = *(const ulonglong2*)codes;
        const u32 num = min(num_codes - start, CHUNK_CODES);
        u64 left = chunk.x;
        for (u32 i = 0; i < num; i++) {
            if (i == CHUNK_CODES / 2) left = chunk.y;
            decode_code((u32)left & 255u, table, is_literal, stores);
            left >>= 8;
        }
    }
    stores.finish();
}

template <bool IN_WORDS>
__device__ __forceinline__ void decode_block(const u8* bytes, const u64* tables,
                                             const GsstBlock* blocks, u32 num_blocks, u8* out) {
    const u32 b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= num_blocks) return;
    const GsstBlock block = blocks[b];
    const u8* codes = bytes + block.codes_at;
    const u64* table = tables + (u64)b * TABLE_WORDS;
    u8* text = out + block.text_at;
    if (IN_WORDS) decode_words<CHUNK_CODES>(codes, block.num_codes, table, false, text);
    else decode_bytes(codes, block.num_codes, table, false, text);
}

template <bool IN_SHARED, bool IN_WORDS, bool IS_TRANSPOSED>
__device__ __forceinline__ void decode_split(const u8* bytes, const u64* tables,
                                             const GsstBlock* blocks, u8* out) {
    const GsstBlock block = blocks[blockIdx.x];
    const u64* table = tables + (u64)blockIdx.x * TABLE_WORDS;
    __shared__ u64 copy[IN_SHARED ? TABLE_WORDS : 1];
    if (IN_SHARED) {
        for (u32 i = threadIdx.x; i < TABLE_WORDS; i += blockDim.x) copy[i] = table[i];
        __syncthreads();
        table = copy;
    }
    const u32 split = blockIdx.y * blockDim.x + threadIdx.x;
    const u32 start = split << block.split_log2;
    if (start >= block.num_codes) return;
    const u32 num_codes = min(block.num_codes - start, 1u << block.split_log2);
    const u32 word = ((const u32*)(bytes + block.codes_at + block.splits_at))[split];
    const bool is_literal = word >> SPLIT_LITERAL_BIT & 1u;
    u8* text = out + block.text_at + (word & SPLIT_TEXT_AT);
    const u8* codes = bytes + block.codes_at;
    if (IS_TRANSPOSED) {
        codes += ((u64)(split / GROUP_SPLITS * GROUP_SPLITS) << block.split_log2)
            + split % GROUP_SPLITS * CHUNK_CODES;
        decode_words<GROUP_SPLITS * CHUNK_CODES>(codes, num_codes, table, is_literal, text);
    } else if (IN_WORDS) {
        decode_words<CHUNK_CODES>(codes + start, num_codes, table, is_literal, text);
    } else {
        decode_bytes(codes + start, num_codes, table, is_literal, text);
    }
}

#define GSST_LAYOUT(name, call)                                                                    \
    extern "C" __global__ void name(const u8* __restrict__ bytes, const u64* __restrict__ tables,  \
                                    const GsstBlock* __restrict__ blocks, u32 num_blocks,          \
                                    u8* __restrict__ out) {                                        \
        call;                                                                                      \
    }

GSST_LAYOUT(gsst_layouts_blocks_bytes, decode_block<false>(bytes, tables, blocks, num_blocks, out))
GSST_LAYOUT(gsst_layouts_blocks_words, decode_block<true>(bytes, tables, blocks, num_blocks, out))
GSST_LAYOUT(gsst_layouts_splits_bytes, (decode_split<false, false, false>(bytes, tables, blocks, out)))
GSST_LAYOUT(gsst_layouts_splits_shared, (decode_split<true, false, false>(bytes, tables, blocks, out)))
GSST_LAYOUT(gsst_layouts_splits_words, (decode_split<true, true, false>(bytes, tables, blocks, out)))
GSST_LAYOUT(gsst_layouts_transposed, (decode_split<true, true, true>(bytes, tables, blocks, out)))
