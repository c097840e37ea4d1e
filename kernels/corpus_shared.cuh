// What kernels over the grammar of a segment share. src/cuda/corpus/mod.rs draws the arrays.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

constexpr u32 ALL_LANES = 0xffffffffu;
