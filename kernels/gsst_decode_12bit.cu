// GSST blocks of 12-bit codes -> text.
//
// gsst_decode.cuh has the data layout, the mapping of work and the limits, gsst_symbols.cuh the width.

#include "gsst_decode.cuh"

GSST_DECODE(gsst_decode_12bit, Twelve)
