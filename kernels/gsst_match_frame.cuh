// A frame of 128 rows as the kernels of gsst_match.cu take it; src/cuda/gsst_match/rows.rs has the same
// struct.

#pragma once

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

// Behind the last frame of a block follows one that only has starts.
// A form is the smallest number and, from bit 27 on, the bits of a difference, 0 to 24.
struct __align__(16) MatchFrame {
    u32 counts_at;      // of the packed numbers of codes behind MatchBlock.at
    u32 counts_form;
    u32 lengths_at;     // the same for lengths of text
    u32 lengths_form;
    u32 starts[8];      // code of the block that rows 0, 16, … 112 start with
};

constexpr u32 GROUP_ROWS = 16;
constexpr u32 FORM_WIDTH_BIT = 27;
