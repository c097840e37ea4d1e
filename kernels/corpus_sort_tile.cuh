// Sorting keys with values by one digit, in one pass over them (Adinets, Merrill 2022: Onesweep).
//
//   keys, values  |tile 0 ...........|tile 1 ...........|..     a thread block each, by ticket
//   staged        |000|1|33|4444|...7|00|2222|5|666...77|..     in shared memory, by digit
//   sorted        |000|00|..|1|..|2222|..|33|..|4444|..         a run for each digit of each tile
//
// Where the runs of a tile begin is what tiles before it say: states[tile][digit] is 0 as long as they
// do not know, then how often the digit occurs in the tile and 1, then where it ends among all sorted
// keys and LAST_COUNT + 1. A tile adds up counts backwards until it meets such an end. Tiles are taken
// in the order of tickets, so whoever is waited for runs. The first tile takes the counts of all keys.
//
// Ranks. Each warp has OWN_KEYS * 32 keys in a row and counts of its own, so equal keys stay in order.
//
// Places behind the last key count as keys of the last digit. They come last, and nobody writes them.
#include "corpus_tickets.cuh"

constexpr u32 DIGIT_BITS = 8;
constexpr u32 DIGITS = 1 << DIGIT_BITS;
constexpr u32 SORT_THREADS = 512;
constexpr u32 SORT_WARPS = SORT_THREADS / 32;
// Thread blocks of a multiprocessor, at least.
constexpr u32 SORT_BLOCKS = 2;
// Digits that a register takes.
constexpr u32 PACKED = 4;
// Keys that a thread reads at once to count digits.
constexpr u32 COUNTED = 4;
// States that are read at once.
constexpr u32 LOOKS = 2;

// One step of a sort. Without `values` the value of a key is its place.
template <typename Key>
struct SortStep {
    const Key* keys;
    const u32* values;
    u32 num_keys;
    u32 shift;
    u32 num_bits;
    const u32* counts;
    u32* ticket;
    u32* states;
    u32* next_states;
    Key* sorted_keys;
    u32* sorted_values;

    __device__ __forceinline__ u32 digit_of(Key key) const
    {
        return (u32)(key >> shift) & ((1u << num_bits) - 1);
    }
};

template <typename Key>
struct SortTile {
    static constexpr u32 OWN_KEYS = sizeof(Key) == 8 ? 11 : 16;
    static constexpr u32 WARP_KEYS = OWN_KEYS * 32;
    static constexpr u32 KEYS = OWN_KEYS * SORT_THREADS;
    static constexpr u32 LAST_COUNT = KEYS + 1;
    union {
        u32 counts[SORT_WARPS][DIGITS];
        Key keys[KEYS];
        u32 values[KEYS];
    };
    // Where the first key of each digit goes, less its place in the tile.
    u32 targets[DIGITS];
    u32 sums[SORT_WARPS];
    u32 ticket;
};

// The lanes with the digit of this one.
static __device__ __forceinline__ u32 lanes_with(u32 digit)
{
    u32 lanes = ALL_LANES;
#pragma unroll
    for (u32 bit = 0; bit < DIGIT_BITS; bit++) {
        const bool is_set = digit >> bit & 1;
        const u32 set = __ballot_sync(ALL_LANES, is_set);
        lanes &= is_set ? set : ~set;
    }
    return lanes;
}

// The sum of the numbers of the threads before. `sums` is free again behind the next barrier.
static __device__ u32 sum_before(u32 number, u32* sums)
{
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 sum = number;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u32 before = __shfl_up_sync(ALL_LANES, sum, distance);
        sum += lane >= distance ? before : 0;
    }
    if (lane == 31) {
        sums[warp] = sum;
    }
    __syncthreads();
    sum -= number;
#pragma unroll
    for (u32 i = 0; i + 1 < SORT_WARPS; i++) {
        sum += i < warp ? sums[i] : 0;
    }
    return sum;
}

// Where keys of `digit` of the tile `number`, 1 or more, go: behind those of the tiles before.
static __device__ u32 end_of_tiles_before(
    const volatile u32* states, u32 number, u32 digit, u32 last_count)
{
    u32 sum = 0;
    for (;;) {
        u32 seen[LOOKS];
#pragma unroll
        for (u32 i = 0; i < LOOKS; i++) {
            seen[i] = i < number ? states[(number - 1 - i) * DIGITS + digit] : 0;
        }
        u32 num_known = 0;
#pragma unroll
        for (u32 i = 0; i < LOOKS; i++) {
            if (num_known == i && seen[i] != 0) {
                if (seen[i] > last_count) {
                    return sum + seen[i] - last_count - 1;
                }
                sum += seen[i] - 1;
                num_known++;
            }
        }
        number -= num_known;
    }
}

// Ranks the keys of a warp among those of their digit, which it counts in `counts`.
template <typename Key>
static __device__ void rank_keys(
    const SortStep<Key>& step, const Key (&own)[SortTile<Key>::OWN_KEYS],
    u32 (&ranks)[SortTile<Key>::OWN_KEYS], u32* counts)
{
    const u32 lanes_before = (1u << threadIdx.x % 32) - 1;
#pragma unroll
    for (u32 i = 0; i < SortTile<Key>::OWN_KEYS; i++) {
        const u32 digit = step.digit_of(own[i]);
        const u32 lanes = lanes_with(digit);
        const u32 count = counts[digit];
        ranks[i] = count + __popc(lanes & lanes_before);
        __syncwarp();
        if ((lanes & lanes_before) == 0) {
            counts[digit] = count + __popc(lanes);
        }
        __syncwarp();
    }
}

// Turns counts of warps into places in the tile, and says the counts of the tile to those behind it.
// Returns the place of a digit and its count, to the thread of the digit.
template <typename Key>
static __device__ uint2 place_digits(const SortStep<Key>& step, SortTile<Key>& tile, u32 number)
{
    const u32 digit = threadIdx.x;
    u32 count = 0;
    if (digit < DIGITS) {
        for (u32 i = 0; i < SORT_WARPS; i++) {
            count += tile.counts[i][digit];
        }
        const u32 at = number * DIGITS + digit;
        step.next_states[at] = 0;
        if (number > 0) {
            *(volatile u32*)&step.states[at] = count + 1;
        }
    }
    const u32 place = sum_before(count, tile.sums);
    if (digit < DIGITS) {
        u32 before = place;
        for (u32 i = 0; i < SORT_WARPS; i++) {
            const u32 own = tile.counts[i][digit];
            tile.counts[i][digit] = before;
            before += own;
        }
    }
    __syncthreads();
    return make_uint2(place, count);
}

// Finds where the runs of the tile go, and says where they end. To be called by all threads.
template <typename Key>
static __device__ void find_targets(
    const SortStep<Key>& step, SortTile<Key>& tile, u32 number, uint2 place_and_count)
{
    const u32 digit = threadIdx.x;
    u32 start = 0;
    if (number == 0) {
        start = sum_before(digit < DIGITS ? step.counts[digit] : 0, tile.sums);
    } else if (digit < DIGITS) {
        start = end_of_tiles_before(step.states, number, digit, SortTile<Key>::LAST_COUNT);
    }
    if (digit < DIGITS) {
        const u32 end = start + place_and_count.y;
        *(volatile u32*)&step.states[number * DIGITS + digit] = end + SortTile<Key>::LAST_COUNT + 1;
        tile.targets[digit] = start - place_and_count.x;
    }
}

template <typename Key>
static __device__ __forceinline__ void sort_tile(const SortStep<Key>& step, SortTile<Key>& tile)
{
    using Tile = SortTile<Key>;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u32 i = threadIdx.x; i < SORT_WARPS * DIGITS; i += SORT_THREADS) {
        (&tile.counts[0][0])[i] = 0;
    }
    const u32 number = take_ticket(step.ticket, &tile.ticket);
    const u32 first = number * Tile::KEYS;
    const u32 own_first = first + warp * Tile::WARP_KEYS + lane;
    const u32 num_keys = min(step.num_keys - first, Tile::KEYS);
    Key own[Tile::OWN_KEYS];
#pragma unroll
    for (u32 i = 0; i < Tile::OWN_KEYS; i++) {
        const u32 at = own_first + i * 32;
        own[i] = at < step.num_keys ? step.keys[at] : ~(Key)0;
    }
    u32 ranks[Tile::OWN_KEYS];
    rank_keys(step, own, ranks, tile.counts[warp]);
    __syncthreads();
    const uint2 place_and_count = place_digits(step, tile, number);
    // Digits are worked out again: kept, they would take the registers of the values.
    SortStep<Key> again = step;
    asm volatile("" : "+r"(again.shift));
#pragma unroll
    for (u32 i = 0; i < Tile::OWN_KEYS; i++) {
        ranks[i] += tile.counts[warp][again.digit_of(own[i])];
    }
    // The counts lie where the keys are staged.
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < Tile::OWN_KEYS; i++) {
        tile.keys[ranks[i]] = own[i];
    }
    u32 values[Tile::OWN_KEYS];
#pragma unroll
    for (u32 i = 0; i < Tile::OWN_KEYS; i++) {
        const u32 at = own_first + i * 32;
        values[i] = step.values && at < step.num_keys ? step.values[at] : at;
    }
    find_targets(step, tile, number, place_and_count);
    __syncthreads();
    u32 digits[(Tile::OWN_KEYS + PACKED - 1) / PACKED] = {};
#pragma unroll
    for (u32 i = 0; i < Tile::OWN_KEYS; i++) {
        const u32 at = i * SORT_THREADS + threadIdx.x;
        const Key key = tile.keys[at];
        const u32 digit = step.digit_of(key);
        digits[i / PACKED] |= digit << i % PACKED * (32 / PACKED);
        if (at < num_keys) {
            step.sorted_keys[tile.targets[digit] + at] = key;
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < Tile::OWN_KEYS; i++) {
        tile.values[ranks[i]] = values[i];
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < Tile::OWN_KEYS; i++) {
        const u32 at = i * SORT_THREADS + threadIdx.x;
        const u32 digit = digits[i / PACKED] >> i % PACKED * (32 / PACKED) & (DIGITS - 1);
        if (at < num_keys) {
            step.sorted_values[tile.targets[digit] + at] = tile.values[at];
        }
    }
}

// Adds how often each digit of each step occurs to `counts`, by any grid. Steps are `step_bits` wide, the
// last one ends at `end_bit`.
template <typename Key>
static __device__ void count_digits(
    const Key* keys, u32 num_keys, u32 first_bit, u32 end_bit, u32 step_bits, u32* counts,
    u32 (*shared)[DIGITS])
{
    const u32 num_steps = (end_bit - first_bit + step_bits - 1) / step_bits;
    const u32 mask = (1u << step_bits) - 1, unused_bits = 8 * sizeof(Key) - end_bit;
    u32* const all = &shared[0][0];
    for (u32 i = threadIdx.x; i < num_steps * DIGITS; i += blockDim.x) {
        all[i] = 0;
    }
    __syncthreads();
    const u32 chunk = COUNTED * blockDim.x;
    for (u32 first = blockIdx.x * chunk; first < num_keys; first += gridDim.x * chunk) {
        Key own[COUNTED];
#pragma unroll
        for (u32 j = 0; j < COUNTED; j++) {
            const u32 at = first + j * blockDim.x + threadIdx.x;
            own[j] = at < num_keys ? keys[at] << unused_bits >> unused_bits >> first_bit : 0;
        }
#pragma unroll
        for (u32 j = 0; j < COUNTED; j++) {
            if (first + j * blockDim.x + threadIdx.x >= num_keys) {
                break;
            }
            Key left = own[j];
            for (u32 i = 0; i < num_steps; i++, left >>= step_bits) {
                atomicAdd(&shared[i][(u32)left & mask], 1u);
            }
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < num_steps * DIGITS; i += blockDim.x) {
        if (all[i] != 0) {
            atomicAdd(&counts[i], all[i]);
        }
    }
}
