// GSST blocks of 8-bit codes -> text, with or without escapes.
//
// gsst_decode.cuh has the data layout, the mapping of work and the limits, gsst_symbols.cuh the width.

#include "gsst_decode.cuh"

GSST_DECODE(gsst_decode_8bit, Eight)
