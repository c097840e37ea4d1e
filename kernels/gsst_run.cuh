// A run: GSST blocks of one column in device memory, whose rows lie one behind the other. What
// gsst_check.cu and gsst_rows.cu share; src/cuda/gsst_run.rs makes these structs.
//
//   blocks   B0          B1       B2           as stored, from multiples of 16 on
//   rows     0 … n0      … n1     …            numbered through the run, 128 of a block per frame
//   text     t0 ……       t1 …     t2 ……        of the run, without gaps
//
// Lengths of rows are packed in frames (src/gsst/packed_lengths.rs); where the bits of each one start,
// how wide they are, and the smallest number, is found by the host, which made sure that frames end
// inside their section.

#pragma once

#include "gsst_codes.cuh"

struct RunBlock {
    u64 bytes_at;      // of the block in `bytes`
    u64 text_at;       // of its text in the text of the run
    u32 validity_at;   // of its validity in the block, 0: no row is null
    u32 first_row;
    u32 num_rows;
    u32 first_frame;
    u32 num_codes;
    u32 text_len;
    u32 has_lengths;   // whether it has lengths of texts
    u32 table;         // number of its table among those of its width; bit 31: codes of 12 bits
};

struct alignas(16) RunFrame {
    u32 counts_at;      // of the bits of the numbers of codes in `bytes`
    u32 lengths_at;     // of the bits of the lengths of texts, where the block has them
    u32 counts_head;    // smallest number, and from FRAME_WIDTH_BIT on the bits of a difference
    u32 lengths_head;
    u32 block;
    u32 first_row;      // of the run
    u32 num_rows;       // 128, or fewer at the end of a block
    u32 reserved;
};

// What a split's rows start with, written by gsst_rows_splits; decoding leaves the row over its end.
struct alignas(16) SplitRows {
    u32 frame;          // that has the first row of the split; or the row, NO_ROW: none
    u32 before;         // text before the frame                or where the row starts
    u32 lengths_at;     // of the frame                         or where it ends
    u32 lengths_head;

    static constexpr u32 NO_ROW = 0xffffffffu;
};

constexpr u32 FRAME_WIDTH_BIT = 26;
constexpr u32 FRAME_ROWS = 128;
// What is wrong with a run; src/cuda/block_check.rs has the same numbers.
constexpr u32 CHECK_CODE_COUNTS = 1;     // numbers of codes do not sum up to that of the block
constexpr u32 CHECK_TEXT_LENGTHS = 2;    // lengths of texts do not sum up to that of the block
constexpr u32 CHECK_EMPTY_ROW = 3;       // a row without codes has text
constexpr u32 CHECK_NULL_ROW = 4;        // a null row has codes
constexpr u32 CHECK_CODE = 5;            // a code has no symbol
constexpr u32 CHECK_SPLIT_TEXT = 6;      // a split's text has another length than its word says
constexpr u32 CHECK_SPLIT_TILES = 7;     // the bits of a split's tiles are not those of its escapes
constexpr u32 CHECK_SPLIT_LITERAL = 8;   // an escape at a split's end has no literal, or the reverse
constexpr u32 CHECK_ROW_IN_ESCAPE = 9;   // a row ends inside an escape
constexpr u32 CHECK_ROW_TEXT = 10;       // a row's length of text is not that of its codes
constexpr u32 CHECK_UTF8 = 11;           // the text is not UTF-8
constexpr u32 CHECK_ROW_IN_CHARACTER = 12;   // a row starts inside a character

// In place of a block's number: the fault is one of the run's text, whose bytes are all right.
constexpr u32 NO_BLOCK = 0xfffffffeu;

// Keeps the fault of the lowest block, check and place: answers do not depend on scheduling.
__device__ __forceinline__ void report(u64* error, u32 block, u32 check, u32 place) {
    atomicMin(error, (u64)block << 32 | (u64)check << 26 | min(place, (1u << 26) - 1));
}
