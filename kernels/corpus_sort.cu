// Sorting keys with values, sums of all before, and adding up values of equal keys.
//
//   corpus_sort_histogram_{32,64}   of each tile of keys, how often each digit occurs
//   corpus_sort_scatter_{32,64}     keys and values to where their digit puts them, in order
//   corpus_sort_offsets         where each number begins among sorted keys
//   corpus_sort_tile_sums_{32,64}   the sum of each tile of numbers
//   corpus_sort_scan_sums_{32,64}   sums of these to the sums before them, and the sum of all
//   corpus_sort_scan_{32,64}    numbers to the sums before them
//   corpus_sort_heads           1 where a key begins, and the weight of each key's rule
//   corpus_sort_rows            each key once, with the sum of the weights before it
//   corpus_sort_differences     the sum of the weights of each key
//
// The sort is the usual one from the last digit of 8 bits to the first: histogram, scan, scatter
// (Satish, Harris, Garland 2009; ranks inside a warp by matching digits). Equal keys stay in order.
//
// Data layout. A tile is 4,096 keys; histograms lie by digit, then by tile, so that their scan is
// where the digit of a tile goes. For numbers a tile is 2,048.
//
// Mapping of work. A thread block of 256 has a tile. Of keys each warp has 512 in order, 32 at a
// time; of numbers each thread has 8 in a row.
//
// Limits. Each digit reads keys twice and writes them once, values once: memory; writes of a tile go
// to 256 places, of 16 keys each where digits are even.
#include "corpus_shared.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 TILE_KEYS = 4096;
constexpr u32 WARP_KEYS = TILE_KEYS / WARPS;
constexpr u32 DIGITS = 256;
constexpr u32 THREAD_NUMBERS = 8;
constexpr u32 TILE_NUMBERS = THREADS * THREAD_NUMBERS;

template <typename Key>
static __device__ void histogram(
    const Key* keys, u32 num_keys, u32 shift, u32 num_tiles, u32* histograms, u32* counts)
{
    counts[threadIdx.x] = 0;
    __syncthreads();
    const u32 first = blockIdx.x * TILE_KEYS;
    for (u32 i = threadIdx.x; i < TILE_KEYS && i < num_keys - first; i += THREADS) {
        atomicAdd(&counts[(u32)(keys[first + i] >> shift) & (DIGITS - 1)], 1u);
    }
    __syncthreads();
    histograms[threadIdx.x * num_tiles + blockIdx.x] = counts[threadIdx.x];
}

// Without `values` the value of a key is its place.
template <typename Key>
static __device__ void scatter(
    const Key* keys, const u32* values, u32 num_keys, u32 shift, u32 num_tiles,
    const u32* tile_starts, Key* sorted_keys, u32* sorted_values, u32 (*counts)[DIGITS])
{
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u32 i = 0; i < WARPS; i++) {
        counts[i][threadIdx.x] = 0;
    }
    __syncthreads();
    const u32 first = blockIdx.x * TILE_KEYS + warp * WARP_KEYS;
    u32 ranks[WARP_KEYS / 32];
    Key own[WARP_KEYS / 32];
#pragma unroll
    for (u32 i = 0; i < WARP_KEYS / 32; i++) {
        const u32 at = first + i * 32 + lane;
        const bool is_key = at < num_keys;
        own[i] = is_key ? keys[at] : 0;
        const u32 digit = is_key ? (u32)(own[i] >> shift) & (DIGITS - 1) : DIGITS;
        const u32 peers = __match_any_sync(ALL_LANES, digit);
        const u32 before = __popc(peers & ((1u << lane) - 1));
        const u32 count = is_key ? counts[warp][digit] : 0;
        ranks[i] = count + before;
        __syncwarp();
        if (is_key && before == 0) {
            counts[warp][digit] = count + __popc(peers);
        }
        __syncwarp();
    }
    __syncthreads();
    // How often each digit occurs in the warps before, and in all before this tile.
    u32 start = tile_starts[threadIdx.x * num_tiles + blockIdx.x];
    for (u32 i = 0; i < WARPS; i++) {
        const u32 count = counts[i][threadIdx.x];
        counts[i][threadIdx.x] = start;
        start += count;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < WARP_KEYS / 32; i++) {
        const u32 at = first + i * 32 + lane;
        if (at < num_keys) {
            const u32 digit = (u32)(own[i] >> shift) & (DIGITS - 1);
            const u32 target = counts[warp][digit] + ranks[i];
            sorted_keys[target] = own[i];
            sorted_values[target] = values ? values[at] : at;
        }
    }
}

extern "C" __global__ void corpus_sort_histogram_32(
    const u32* keys, u32 num_keys, u32 shift, u32 num_tiles, u32* histograms)
{
    __shared__ u32 counts[DIGITS];
    histogram(keys, num_keys, shift, num_tiles, histograms, counts);
}

extern "C" __global__ void corpus_sort_histogram_64(
    const u64* keys, u32 num_keys, u32 shift, u32 num_tiles, u32* histograms)
{
    __shared__ u32 counts[DIGITS];
    histogram(keys, num_keys, shift, num_tiles, histograms, counts);
}

extern "C" __global__ void corpus_sort_scatter_32(
    const u32* keys, const u32* values, u32 num_keys, u32 shift, u32 num_tiles,
    const u32* tile_starts, u32* sorted_keys, u32* sorted_values)
{
    __shared__ u32 counts[WARPS][DIGITS];
    scatter(
        keys, values, num_keys, shift, num_tiles, tile_starts, sorted_keys, sorted_values, counts);
}

extern "C" __global__ void corpus_sort_scatter_64(
    const u64* keys, const u32* values, u32 num_keys, u32 shift, u32 num_tiles,
    const u32* tile_starts, u64* sorted_keys, u32* sorted_values)
{
    __shared__ u32 counts[WARPS][DIGITS];
    scatter(
        keys, values, num_keys, shift, num_tiles, tile_starts, sorted_keys, sorted_values, counts);
}

// Where each number below `num_numbers` begins among ascending keys, and the number of all keys.
extern "C" __global__ void corpus_sort_offsets(
    const u32* keys, u32 num_keys, u32 num_numbers, u32* offsets)
{
    const u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number > num_numbers) {
        return;
    }
    u32 low = 0;
    for (u32 high = number < num_numbers ? num_keys : 0; low < high;) {
        const u32 middle = low + (high - low) / 2;
        if (keys[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    offsets[number] = number < num_numbers ? low : num_keys;
}

// Turns a number of each thread into the sum of those of the threads before; returns the sum of all.
template <typename T>
static __device__ T scan_block(T& number, T* shared)
{
    const T own = number;
    shared[threadIdx.x] = own;
    __syncthreads();
    for (u32 distance = 1; distance < THREADS; distance *= 2) {
        const T before = threadIdx.x >= distance ? shared[threadIdx.x - distance] : 0;
        __syncthreads();
        shared[threadIdx.x] += before;
        __syncthreads();
    }
    number = shared[threadIdx.x] - own;
    const T sum = shared[THREADS - 1];
    __syncthreads();
    return sum;
}

template <typename T>
static __device__ void tile_sum(const T* numbers, u32 num_numbers, T* sums, T* shared)
{
    const u32 first = blockIdx.x * TILE_NUMBERS;
    T sum = 0;
    for (u32 i = threadIdx.x; i < TILE_NUMBERS && i < num_numbers - first; i += THREADS) {
        sum += numbers[first + i];
    }
    const T all = scan_block(sum, shared);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = all;
    }
}

// By one thread block; sums[num_sums] becomes the sum of all.
template <typename T>
static __device__ void scan_sums(T* sums, u32 num_sums, T* shared)
{
    T before = 0;
    for (u32 first = 0; first < num_sums; first += THREADS) {
        const u32 at = first + threadIdx.x;
        T number = at < num_sums ? sums[at] : 0;
        const T all = scan_block(number, shared);
        if (at < num_sums) {
            sums[at] = before + number;
        }
        before += all;
    }
    if (threadIdx.x == 0) {
        sums[num_sums] = before;
    }
}

// numbers[num_numbers] becomes the sum of all.
template <typename T>
static __device__ void scan_tile(T* numbers, u32 num_numbers, const T* sums, T* shared)
{
    const u32 first = blockIdx.x * TILE_NUMBERS + threadIdx.x * THREAD_NUMBERS;
    T own[THREAD_NUMBERS];
    T sum = 0;
#pragma unroll
    for (u32 i = 0; i < THREAD_NUMBERS; i++) {
        own[i] = first + i < num_numbers ? numbers[first + i] : 0;
        sum += own[i];
    }
    scan_block(sum, shared);
    T before = sums[blockIdx.x] + sum;
#pragma unroll
    for (u32 i = 0; i < THREAD_NUMBERS; i++) {
        if (first + i <= num_numbers) {
            numbers[first + i] = before;
        }
        before += own[i];
    }
}

extern "C" __global__ void corpus_sort_tile_sums_32(const u32* numbers, u32 num_numbers, u32* sums)
{
    __shared__ u32 shared[THREADS];
    tile_sum(numbers, num_numbers, sums, shared);
}

extern "C" __global__ void corpus_sort_tile_sums_64(const u64* numbers, u32 num_numbers, u64* sums)
{
    __shared__ u64 shared[THREADS];
    tile_sum(numbers, num_numbers, sums, shared);
}

extern "C" __global__ void corpus_sort_scan_sums_32(u32* sums, u32 num_sums)
{
    __shared__ u32 shared[THREADS];
    scan_sums(sums, num_sums, shared);
}

extern "C" __global__ void corpus_sort_scan_sums_64(u64* sums, u32 num_sums)
{
    __shared__ u64 shared[THREADS];
    scan_sums(sums, num_sums, shared);
}

extern "C" __global__ void corpus_sort_scan_32(u32* numbers, u32 num_numbers, const u32* sums)
{
    __shared__ u32 shared[THREADS];
    scan_tile(numbers, num_numbers, sums, shared);
}

extern "C" __global__ void corpus_sort_scan_64(u64* numbers, u32 num_numbers, const u64* sums)
{
    __shared__ u64 shared[THREADS];
    scan_tile(numbers, num_numbers, sums, shared);
}

extern "C" __global__ void corpus_sort_heads(
    const u64* keys, const u32* owners, u32 num_keys, const u64* rule_weights, u32* heads,
    u64* weights)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_keys) {
        heads[at] = at == 0 || keys[at] != keys[at - 1];
        weights[at] = rule_weights[owners[at]];
    }
}

extern "C" __global__ void corpus_sort_rows(
    const u64* keys, u32 num_keys, const u32* rows, const u64* sums, u64* row_keys, u64* row_sums)
{
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < num_keys && rows[at + 1] != rows[at]) {
        row_keys[rows[at]] = keys[at];
        row_sums[rows[at]] = sums[at];
    }
    if (at == num_keys) {
        row_sums[rows[num_keys]] = sums[num_keys];
    }
}

extern "C" __global__ void corpus_sort_differences(const u64* row_sums, u32 num_rows, u64* counts)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < num_rows) {
        counts[row] = row_sums[row + 1] - row_sums[row];
    }
}
