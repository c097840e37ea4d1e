// Sorting keys with values, sums of all before, and adding up values of equal keys.
//
//   corpus_sort_counts_{32,64}  how often each digit occurs
//   corpus_sort_step_{32,64}    keys and values to where their digit puts them, in order
//   corpus_sort_offsets         where each number begins among sorted keys
//   corpus_sort_tile_sums_{32,64}   the sum of each tile of numbers
//   corpus_sort_scan_sums_{32,64}   sums of these to the sums before them, and the sum of all
//   corpus_sort_scan_{32,64}    numbers to the sums before them
//   corpus_sort_heads           1 where a key begins, and the weight of each key's rule
//   corpus_sort_rows            each key once, with the sum of the weights before it
//   corpus_sort_differences     the sum of the weights of each key
//
// The sort goes from the last digit of up to 8 bits to the first; corpus_sort_tile.cuh draws a step.
// Equal keys stay in order.
//
// Mapping of work. Counts: any grid. A step: a thread block of 512 has a tile of 8,192 keys of 32 bits or
// 5,632 of 64, of which each warp has 512 or 352 in order. Of numbers a tile is 2,048, 8 in a row for each
// of 256 threads.
//
// Limits. A step reads and writes keys and values once, a sort reads keys once more to count: memory. Runs
// of a digit have 32 or 22 keys where digits are even, and their ends share lines with other tiles'.
#include "corpus_shared.cuh"
#include "corpus_sort_tile.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 THREAD_NUMBERS = 8;
constexpr u32 TILE_NUMBERS = THREADS * THREAD_NUMBERS;

extern "C" __global__ void corpus_sort_counts_32(
    const u32* keys, u32 num_keys, u32 first_bit, u32 end_bit, u32 step_bits, u32* counts)
{
    __shared__ u32 shared[4][DIGITS];
    count_digits(keys, num_keys, first_bit, end_bit, step_bits, counts, shared);
}

extern "C" __global__ void corpus_sort_counts_64(
    const u64* keys, u32 num_keys, u32 first_bit, u32 end_bit, u32 step_bits, u32* counts)
{
    __shared__ u32 shared[8][DIGITS];
    count_digits(keys, num_keys, first_bit, end_bit, step_bits, counts, shared);
}

extern "C" __global__ void __launch_bounds__(SORT_THREADS, SORT_BLOCKS) corpus_sort_step_32(
    const u32* keys, const u32* values, u32 num_keys, u32 shift, u32 num_bits, const u32* counts,
    u32* ticket, u32* states, u32* next_states, u32* sorted_keys, u32* sorted_values)
{
    __shared__ SortTile<u32> tile;
    const SortStep<u32> step = {keys, values, num_keys, shift, num_bits, counts,
        ticket, states, next_states, sorted_keys, sorted_values};
    sort_tile(step, tile);
}

extern "C" __global__ void __launch_bounds__(SORT_THREADS, SORT_BLOCKS) corpus_sort_step_64(
    const u64* keys, const u32* values, u32 num_keys, u32 shift, u32 num_bits, const u32* counts,
    u32* ticket, u32* states, u32* next_states, u64* sorted_keys, u32* sorted_values)
{
    __shared__ SortTile<u64> tile;
    const SortStep<u64> step = {keys, values, num_keys, shift, num_bits, counts,
        ticket, states, next_states, sorted_keys, sorted_values};
    sort_tile(step, tile);
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
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T sum = number;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const T before = __shfl_up_sync(ALL_LANES, sum, distance);
        sum += lane >= distance ? before : 0;
    }
    if (lane == 31) {
        shared[warp] = sum;
    }
    __syncthreads();
    T all = 0;
    sum -= number;
#pragma unroll
    for (u32 i = 0; i < WARPS; i++) {
        sum += i < warp ? shared[i] : 0;
        all += shared[i];
    }
    number = sum;
    __syncthreads();
    return all;
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

// Numbers of the tile from `first_of_tile` on to `before` and the sums before them, numbers[num_numbers] as
// if it were a number, too; returns the sum of the tile.
template <typename T>
static __device__ T scan_numbers(
    T* numbers, u32 num_numbers, u32 first_of_tile, T before, T* shared)
{
    const u32 first = first_of_tile + threadIdx.x * THREAD_NUMBERS;
    T own[THREAD_NUMBERS];
    T sum = 0;
#pragma unroll
    for (u32 i = 0; i < THREAD_NUMBERS; i++) {
        own[i] = first + i < num_numbers ? numbers[first + i] : 0;
        sum += own[i];
    }
    const T all = scan_block(sum, shared);
    before += sum;
#pragma unroll
    for (u32 i = 0; i < THREAD_NUMBERS; i++) {
        if (first + i <= num_numbers) {
            numbers[first + i] = before;
        }
        before += own[i];
    }
    return all;
}

// By one thread block; sums[num_sums] becomes the sum of all.
template <typename T>
static __device__ void scan_sums(T* sums, u32 num_sums, T* shared)
{
    T before = 0;
    for (u32 first = 0; first <= num_sums; first += TILE_NUMBERS) {
        before += scan_numbers(sums, num_sums, first, before, shared);
    }
}

// numbers[num_numbers] becomes the sum of all.
template <typename T>
static __device__ void scan_tile(T* numbers, u32 num_numbers, const T* sums, T* shared)
{
    scan_numbers(numbers, num_numbers, blockIdx.x * TILE_NUMBERS, sums[blockIdx.x], shared);
}

extern "C" __global__ void corpus_sort_tile_sums_32(const u32* numbers, u32 num_numbers, u32* sums)
{
    __shared__ u32 shared[WARPS];
    tile_sum(numbers, num_numbers, sums, shared);
}

extern "C" __global__ void corpus_sort_tile_sums_64(const u64* numbers, u32 num_numbers, u64* sums)
{
    __shared__ u64 shared[WARPS];
    tile_sum(numbers, num_numbers, sums, shared);
}

extern "C" __global__ void corpus_sort_scan_sums_32(u32* sums, u32 num_sums)
{
    __shared__ u32 shared[WARPS];
    scan_sums(sums, num_sums, shared);
}

extern "C" __global__ void corpus_sort_scan_sums_64(u64* sums, u32 num_sums)
{
    __shared__ u64 shared[WARPS];
    scan_sums(sums, num_sums, shared);
}

extern "C" __global__ void corpus_sort_scan_32(u32* numbers, u32 num_numbers, const u32* sums)
{
    __shared__ u32 shared[WARPS];
    scan_tile(numbers, num_numbers, sums, shared);
}

extern "C" __global__ void corpus_sort_scan_64(u64* numbers, u32 num_numbers, const u64* sums)
{
    __shared__ u64 shared[WARPS];
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
