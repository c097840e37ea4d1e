// Step 2 of gsst_match.cu: which rows match.
//
// A warp takes a unit. With a filter it first runs over the unit's codes, 16 consecutive ones per
// lane, whatever rows they are of, and marks where the literal may be. Wherever it is, one code
// covers its byte `anchor`, chosen by the host, and ends 1 to 8 bytes behind it:
//
//   entry of a code   bits 0..8     bit i: its symbol agrees with the literal, where it ends i + 1
//                                   bytes behind the anchor, and the literal goes on
//                     bits 16..24   bit i: it agrees where it starts there
//                     bits 15, 31   always set; the literal may end in it, or the code is an escape
//   marked            lower half of the code before AND upper half of this one
//
// So a row that matches has a marked code. The marks are bits in shared memory, one per code; in
// units of more than 16,384 codes one bit stands for several groups of 16, so neighbours may be
// tested in vain.
//
// Where there are few marks, each lane takes one, looks for its row among the 16 rows behind the last
// start that is stored, and runs the automaton over it. Else, and without a filter, the warp unpacks
// the numbers of codes, frame by frame, four rows per lane, and sums them up to where rows start.
// Rows with a mark (without a filter: those whose first code does not decide) go to a queue in shared
// memory; when it has 32 of them, each lane runs the automaton over one.

#pragma once
#include "gsst_match.cuh"

constexpr u32 MASK_WARPS = 16;
constexpr u32 MARK_BITS = 9216;
constexpr u32 QUEUE_ROWS = 160;   // 31 that wait and those of a frame
constexpr u32 MAX_FEW = 128;      // marks or rows of a unit that are taken one by one
constexpr u32 ANY_PREFIX = 0x8000u;
constexpr u32 ANY_CERTAIN = 0x4000u;
constexpr int CERTAIN_ENDS = 6;         // of the 8 places where a code may end behind the anchor
constexpr u32 POSSIBLE = 0x80ff80ffu;   // the bits of an entry that make no code certain
constexpr u32 CERTAIN_BITS = 0x7f007f00u;

// What a warp keeps in shared memory.
struct __align__(16) MaskSpace {
    u32 marks[MARK_BITS / 32 + TILE_CODES / 32];   // whole tiles
    u32 certain[MARK_BITS / 32 + TILE_CODES / 32];   // set in tiles that have marks
    u32 rows[32];             // one bit per row of the unit
    union {
        uint2 queue[QUEUE_ROWS];  // x: start, y: number of codes; from bit 24, 25: row of the unit
        u16 places[MAX_FEW];      // of the first marks, where they are few
    };
};

// What all units of a launch share. States from first_final on are final: the answer is theirs
// whatever follows. In shared memory: flags, by state, whether a text that ends in it matches.
struct Automaton {
    const u8* next;       // of the block: by state and code the next state
    const u8* literals;   // by state and byte the next state
    const u8* flags;
    u32 num_states, first_final;
};

// The lane's entries of 16 codes.
template <class Width, int I>
__device__ __forceinline__ void entries_from(const u32 (&c)[Width::WORDS], u32 copy,
                                             u32 (&entries)[LANE_CODES]) {
    if constexpr (I < LANE_CODES) {
        static_assert(FILTER_AT == 1024, "the immediate of the load");
        asm("ld.shared.u32 %0, [%1+1024];"
            : "=r"(entries[I]) : "r"(Width::template entry_at<I>(c, copy)));
        entries_from<Width, I + 1>(c, copy, entries);
    }
}

// Both halves of x, or 1 where they are more.
__device__ __forceinline__ u32 at_most_1(u32 x) {
#if __CUDA_ARCH__ >= 900
    u32 y;
    asm("min.u16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(0x00010001u));
    return y;
#else
    return (x & 0xffffu ? 1u : 0u) | (x >> 16 ? 0x10000u : 0u);
#endif
}

// Bit i for code i of the lane's 16, where one of its 16 bits in `both` is set.
__device__ __forceinline__ u32 bits_of(const u32 (&both)[LANE_CODES / 2], u32 mask) {
    u32 sum = 0;   // bits 2i of both halves: codes 2i and 2i + 1
#pragma unroll
    for (int i = 0; i < LANE_CODES / 2; i++) sum += at_most_1(both[i] & mask) << 2 * i;
    return (sum & 0x5555u) | (sum >> 15 & 0xaaaau);
}

// Marks of the lane's 16 codes, and which of them are certain, bit i for code i.
struct Marks {
    u32 found, certain;
};

// before: entry of the code before the lane's. Two codes at a time: in most tiles no code is marked.
__device__ __forceinline__ Marks marks_of(const u32 (&entries)[LANE_CODES], u32 before,
                                          bool wants_certain) {
    u32 both[LANE_CODES / 2], any = 0;
#pragma unroll
    for (int i = 0; i < LANE_CODES / 2; i++) {
        const u32 last = i == 0 ? before : entries[i == 0 ? 0 : 2 * i - 1];
        const u32 lower = __byte_perm(last, entries[2 * i], 0x5410);
        const u32 upper = __byte_perm(entries[2 * i], entries[2 * i + 1], 0x7632);
        both[i] = lower & upper;
        any |= both[i];
    }
    if (!__any_sync(ALL_LANES, any)) return {0, 0};
    const u32 found = bits_of(both, ALL_LANES);
    return {found, wants_certain ? bits_of(both, CERTAIN_BITS) : 0};
}

// Codes of a unit: base is a multiple of 16, begin the first one, end behind the last one.
struct Range {
    u32 base, begin, end;
};

// Adds the places of marks of a tile behind `num` others, as long as there is room; returns the sum.
__device__ __forceinline__ u32 add_places(u32 found, u32 first, const Range& codes, u32 num,
                                          MaskSpace& space, u32 lane) {
    while (true) {
        const u32 code = first + __ffs(found) - 1;
        const bool is_inside = found && code >= codes.begin && code < codes.end;
        const u32 lanes = __ballot_sync(ALL_LANES, is_inside);
        const u32 slot = num + __popc(lanes & ((1u << lane) - 1u));
        if (is_inside && slot < MAX_FEW) space.places[slot] = (u16)(code - codes.base);
        num += __popc(lanes);
        found &= found - 1;
        if (!__any_sync(ALL_LANES, found)) return num;
    }
}

// Marks the codes of a unit; returns how many are marked, where each has a bit of its own (IS_FINE) and
// they are at most MAX_FEW. wants_certain: whether to look for certain codes.
template <class Width, bool IS_FINE>
__device__ __forceinline__ u32 mark_codes(const u8* codes, const Range& range, u32 shift,
                                          bool wants_certain, MaskSpace& space, u32 lane) {
    if (!IS_FINE) {
        for (u32 i = lane; i < MARK_BITS / 32; i += 32) space.marks[i] = 0;
        __syncwarp();
    }
    const u32 copy = Width::COPIES > 1 ? lane * 4 : 0;
    u32 first = range.base + lane * LANE_CODES, carry = ANY_PREFIX, num = 0;
    u16* to = (u16*)space.marks + lane;
    const u8* from = Width::at(codes, first);
    u32 loaded[Width::WORDS] = {};
    if (first < range.end) Width::load(loaded, from);
    for (u32 tile = range.base; tile < range.end; tile += TILE_CODES) {
        u32 c[Width::WORDS];
#pragma unroll
        for (int i = 0; i < Width::WORDS; i++) c[i] = loaded[i];
        from += Width::TILE_BYTES;
        if (first + TILE_CODES < range.end) Width::load(loaded, from);
        u32 entries[LANE_CODES];
        entries_from<Width, 0>(c, copy, entries);
        const u32 turned = __shfl_sync(ALL_LANES, entries[LANE_CODES - 1], (lane + 31) & 31);
        const Marks marks = marks_of(entries, lane ? turned : carry, wants_certain);
        const u32 found = marks.found;
        carry = turned;
        if (IS_FINE) {
            *to = (u16)found;
            if (__any_sync(ALL_LANES, found)) {
                to[2 * (space.certain - space.marks)] = (u16)marks.certain;
                if (num <= MAX_FEW) num = add_places(found, first, range, num, space, lane);
            }
            to += TILE_CODES / LANE_CODES;
        } else if (found && first < range.end) {
            const u32 bit = (first - range.base) >> shift;
            atomicOr(&space.marks[bit >> 5], 1u << (bit & 31));
        }
        first += TILE_CODES;
    }
    __syncwarp();
    return num;
}

// Whether one of `count` bits from `bit` on is set in `marks` and in `others`.
__device__ __forceinline__ bool has_mark(const u32* marks, const u32* others, u32 bit, u32 count) {
    while (true) {
        const u32 i = bit >> 5;
        const u32 bits = __funnelshift_r(marks[i] & others[i], marks[i + 1] & others[i + 1], bit);
        if (count <= 32) return bits & (ALL_LANES >> (32 - count));
        if (bits) return true;
        bit += 32;
        count -= 32;
    }
}

// Whether the row of these codes matches.
template <class Width>
__device__ __forceinline__ bool matches(const Automaton& automaton, const u8* codes, u32 start,
                                        u32 count) {
    u32 state = 0, code = Width::code_at(codes, start);
    for (u32 i = start; i < start + count; i++) {
        const u32 next_code = Width::code_at(codes, i + 1);   // in time; behind the end: unused
        if (Width::HAS_ESCAPES && code == 255) {
            state = automaton.literals[state * 256 + next_code];
            i++;
            code = Width::code_at(codes, i + 1);
        } else {
            state = automaton.next[state * Width::NUM_CODES + code];
            code = next_code;
        }
        if (state >= automaton.first_final) break;
    }
    return automaton.flags[state];
}

// Runs the automaton over the last 32 rows of the queue, or all if they are fewer.
template <class Width>
__device__ __forceinline__ void confirm(const Automaton& automaton, const u8* codes,
                                        MaskSpace& space, u32& queued, u32 lane) {
    const u32 num = min(queued, 32u);
    __syncwarp();
    if (lane < num) {
        const uint2 entry = space.queue[queued - 1 - lane];
        const u32 row = entry.x >> 24 | entry.y >> 25 << 8;
        if (matches<Width>(automaton, codes, entry.x & 0xffffffu, entry.y & 0x1ffffffu)) {
            atomicOr(&space.rows[row >> 5], 1u << (row & 31));
        }
    }
    queued -= num;
    __syncwarp();
}

// What one frame adds to the queue, and to the rows that are decided at once.
template <class Width>
__device__ __forceinline__ void add_frame(const Automaton& automaton, const u8* codes,
                                          const Four& counts, u32 start, u32 base, u32 shift,
                                          bool has_filter, bool is_exact, u32 num_rows, u32 row, u32 lane,
                                          MaskSpace& space, u32& queued) {
    u32 decided = 0, waiting = 0;
    u32 at = start;
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const u32 count = counts.value[j];
        if (count == 0) {
            if (4 * lane + j < num_rows && automaton.flags[0]) decided |= 1u << j;
        } else if (has_filter) {
            const u32 bit = (at - base) >> shift, last = (at + count - 1 - base) >> shift;
            if (!has_mark(space.marks, space.marks, bit, last - bit + 1)) {
                if (automaton.flags[0]) decided |= 1u << j;
            } else if (is_exact && count > 1 && has_mark(space.marks, space.certain, bit + 1, count - 1)) {
                if (automaton.flags[automaton.first_final]) decided |= 1u << j;
            } else {
                waiting |= 1u << j;
            }
        } else {
            const u32 code = Width::code_at(codes, at);
            u32 state = 0;
            if (!Width::HAS_ESCAPES || code != 255) state = automaton.next[code];
            if (state < automaton.first_final) waiting |= 1u << j;
            else if (automaton.flags[state]) decided |= 1u << j;
        }
        at += count;
    }
    if (decided) atomicOr(&space.rows[(row >> 5) + (lane >> 3)], decided << (lane & 7) * 4);
    if (!__any_sync(ALL_LANES, waiting)) return;
    at = start;
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const bool waits = waiting >> j & 1u;
        const u32 lanes = __ballot_sync(ALL_LANES, waits);
        if (waits) {
            const u32 slot = queued + __popc(lanes & ((1u << lane) - 1u)), of = row + 4 * lane + j;
            space.queue[slot] = make_uint2(at | of << 24, counts.value[j] | of >> 8 << 25);
        }
        queued += __popc(lanes);
        at += counts.value[j];
    }
}

// 32 bits of validity from row `row` on, a multiple of 32; all set where no row is null.
__device__ __forceinline__ u32 validity_of(const MatchBlock& block, const u8* at, u32 row) {
    if (block.validity_at == 0) return ALL_LANES;
    const u8* from = at + block.validity_at + row / 8;
    u32 bits = 0;
    for (u32 i = 0; i < 4; i++) {
        if (row + 8 * i < block.num_rows) bits |= (u32)from[i] << (8 * i);
    }
    return bits;
}

// The row of code `code` of the block, and its codes.
struct FoundRow {
    u32 row, start, count;   // row: of the frame
};

__device__ __forceinline__ FoundRow row_of_code(const u8* at, const MatchFrame& frame,
                                                u32 num_rows, u32 code) {
    u32 group = 0, start = frame.starts[0];
#pragma unroll
    for (u32 i = 1; i < 8; i++) {
        // Groups behind the last row start behind all codes.
        if (frame.starts[i] <= code) {
            group = i;
            start = frame.starts[i];
        }
    }
    const Packed counts = counts_of(at, frame);
    FoundRow found = {0, 0, 0};
#pragma unroll
    for (u32 k = 0; k < GROUP_ROWS; k += 4) {
        const u32 first = group * GROUP_ROWS + k;
        const Four four = counts.four(first, num_rows);
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            if (code - start < four.value[j]) found = {first + j, start, four.value[j]};
            start += four.value[j];
        }
    }
    return found;
}

// Runs the automaton over the rows of the marks, `total` of them, at most MAX_FEW.
template <class Width>
__device__ __forceinline__ void take_marks(const Automaton& automaton, const MatchBlock& block,
                                           const u8* at, const MatchFrame* frames, Unit unit,
                                           u32 base, u32 total, MaskSpace& space, u32 lane) {
    const u32 num_frames = unit.end - unit.first;
    const u32 first_code = lane < num_frames ? frames[unit.first + lane].starts[0] : ALL_LANES;
    for (u32 k = 0; k < total; k += 32) {
        const u32 code = base + (k + lane < total ? space.places[k + lane] : 0);
        u32 f = 0;
        for (u32 i = 1; i < num_frames; i++) f += __shfl_sync(ALL_LANES, first_code, i) <= code;
        if (k + lane >= total) continue;
        const u32 num_rows = num_rows_of(block, unit.first + f);
        const FoundRow found = row_of_code(at, frames[unit.first + f], num_rows, code);
        if (matches<Width>(automaton, at + HEADER_BYTES, found.start, found.count)) {
            const u32 row = f * FRAME_ROWS + found.row;
            atomicOr(&space.rows[row >> 5], 1u << (row & 31));
        }
    }
    __syncwarp();
}

// Runs the automaton over all rows that have a mark, or, without a filter, may match.
template <class Width>
__device__ __forceinline__ void take_rows(const Automaton& automaton, const MatchBlock& block,
                                          const u8* at, const MatchFrame* frames, Unit unit,
                                          u32 base, u32 shift, bool has_filter, bool is_exact,
                                          MaskSpace& space, u32 lane) {
    const u8* codes = at + HEADER_BYTES;
    u32 queued = 0;
    Four next_counts = counts_of(at, frames[unit.first]).four(4 * lane, num_rows_of(block, unit.first));
    for (u32 f = unit.first; f < unit.end; f++) {
        const u32 num_rows = num_rows_of(block, f), row = (f - unit.first) * FRAME_ROWS;
        const Four counts = next_counts;
        const u32 sum = counts.sum(), start = frames[f].starts[0] + inclusive_scan(sum) - sum;
        if (f + 1 < unit.end) {   // in time
            next_counts = counts_of(at, frames[f + 1]).four(4 * lane, num_rows_of(block, f + 1));
        }
        add_frame<Width>(automaton, codes, counts, start, base, shift, has_filter, is_exact, num_rows,
                         row, lane, space, queued);
        while (queued >= 32) confirm<Width>(automaton, codes, space, queued, lane);
    }
    if (queued) confirm<Width>(automaton, codes, space, queued, lane);
    __syncwarp();
}

// Sum of the lengths of text of the rows set in `word`, the lane's 32 rows of a unit; of the lane.
__device__ __forceinline__ u32 text_of_rows(const MatchBlock& block, const u8* at,
                                            const MatchFrame* frames, Unit unit, u32 word, u32 num,
                                            u32 lane) {
    u32 len = 0;
    if (num <= MAX_FEW) {
        if (word) {
            const Packed lengths = lengths_of(at, frames[unit.first + lane / 4]);
            for (u32 bits = word; bits; bits &= bits - 1) {
                len += lengths.number((lane & 3) * 32 + __ffs(bits) - 1);
            }
        }
        return len;
    }
    for (u32 k = 0; k < unit.end - unit.first; k++) {
        const u32 rows = __shfl_sync(ALL_LANES, word, 4 * k + (lane >> 3)) >> (lane & 7) * 4 & 15u;
        const u32 num_rows = num_rows_of(block, unit.first + k);
        const Four lengths = lengths_of(at, frames[unit.first + k]).four(4 * lane, num_rows);
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            if (rows >> j & 1u) len += lengths.value[j];
        }
    }
    return len;
}

// One unit: writes its bits to `mask` (of the block), returns the number of rows and their length.
// is_exact: whether a text holds the literal of the filter is the whole predicate. has_many: whether the
// warp's unit before had many marks, so that certain ones are worth the search; becomes that of this one.
// has_mask: rows that are not in `mask` already do not match.
template <class Width>
__device__ __forceinline__ uint2 mask_unit(const u8* bytes, const MatchBlock& block,
                                           const MatchFrame* frames, const Automaton& automaton,
                                           bool has_filter, bool is_exact, bool has_mask, Unit unit,
                                           bool& has_many, MaskSpace& space, u32* mask, u32 lane) {
    u32 candidates = ALL_LANES;
    if (has_mask) {
        candidates = lane < (unit.end - unit.first) * 4 ? mask[unit.first * 4 + lane] : 0;
        if (!__any_sync(ALL_LANES, candidates)) return make_uint2(0, 0);
    }
    const u8* at = bytes + block.at;
    Range range = {0, frames[unit.first].starts[0], frames[unit.end].starts[0]};
    range.base = range.begin & ~(LANE_CODES - 1);
    u32 shift = 0;
    if (range.end - range.base > MARK_BITS) {
        for (shift = 4; (range.end - range.base) >> shift >= MARK_BITS; shift++) {}
    }
    space.rows[lane] = 0;
    __syncwarp();
    bool is_few = false;
    if (has_filter && shift) {
        mark_codes<Width, false>(at + HEADER_BYTES, range, shift, false, space, lane);
    } else if (has_filter) {
        const u32 num = mark_codes<Width, true>(at + HEADER_BYTES, range, 0, is_exact && has_many, space,
                                                lane);
        has_many = num > MAX_FEW;
        // Empty rows have no marks.
        is_few = num <= MAX_FEW && !automaton.flags[0];
        if (is_few && num) {
            take_marks<Width>(automaton, block, at, frames, unit, range.base, num, space, lane);
        }
    }
    if (!is_few) {
        take_rows<Width>(automaton, block, at, frames, unit, range.base, shift, has_filter,
                         is_exact && shift == 0, space, lane);
    }
    u32 word = 0;
    if (lane < (unit.end - unit.first) * 4) {
        word = space.rows[lane] & candidates;
        if (word) word &= validity_of(block, at, unit.first * FRAME_ROWS + lane * 32);
        mask[unit.first * 4 + lane] = word;
    }
    const u32 num = __reduce_add_sync(ALL_LANES, __popc(word));
    if (num == 0) return make_uint2(0, 0);
    const u32 len = text_of_rows(block, at, frames, unit, word, num, lane);
    return make_uint2(num, __reduce_add_sync(ALL_LANES, len));
}

// Shared memory from FILTER_AT on.
template <class Width>
struct MaskShared {
    u32 filter[Width::NUM_CODES * Width::COPIES];
    u8 flags[256];
    u32 next_unit, reserved[3];
    MaskSpace warps[MASK_WARPS];
};

// Units first_unit to end_unit of `blocks`.
template <class Width>
__device__ __forceinline__ void mask_rows(const u8* bytes, const MatchBlock* blocks, u32 num_blocks,
                                          const MatchFrame* frames, const u32* filters,
                                          const u8* next, const u8* literals, const u8* flags,
                                          u32 num_states, u32 first_final, u32 has_filter,
                                          u32 is_exact, u32 has_mask, u32 first_unit, u32 end_unit, u32* mask,
                                          uint2* sums) {
    extern __shared__ __align__(16) u8 dynamic[];
    const u32 dynamic_at = shared_address(dynamic);
    if (dynamic_at > FILTER_AT) __trap();
    MaskShared<Width>& shared = *(MaskShared<Width>*)(dynamic + (FILTER_AT - dynamic_at));
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u64 num_units = end_unit - first_unit;
    u32 unit = first_unit + (u32)(num_units * blockIdx.x / gridDim.x);
    const u32 last = first_unit + (u32)(num_units * (blockIdx.x + 1) / gridDim.x);
    for (u32 i = threadIdx.x; i < 256; i += blockDim.x) shared.flags[i] = flags[i];
    if (unit >= last) return;
    for (u32 b = block_of_unit(blocks, num_blocks, unit); unit < last; b++) {
        const MatchBlock block = blocks[b];
        const u32 end = min(last, block.first_unit + num_units_of(block));
        __syncthreads();   // all warps are done with the filter before
        if (has_filter) {
            for (u32 i = threadIdx.x; i < Width::NUM_CODES * Width::COPIES; i += blockDim.x) {
                shared.filter[i] = filters[b * Width::NUM_CODES + i / Width::COPIES];
            }
        }
        if (threadIdx.x == 0) shared.next_unit = unit;
        __syncthreads();
        const Automaton automaton = {next + (u64)b * num_states * Width::NUM_CODES, literals,
                                     shared.flags, num_states, first_final};
        bool has_many = false;
        while (true) {
            u32 mine = 0;
            if (lane == 0) mine = atomicAdd(&shared.next_unit, 1);
            mine = __shfl_sync(ALL_LANES, mine, 0);
            if (mine >= end) break;
            const Unit frames_of(block, mine - block.first_unit);
            const uint2 sum = mask_unit<Width>(
                bytes, block, frames + block.first_frame, automaton, has_filter, is_exact, has_mask,
                frames_of, has_many, shared.warps[warp], mask + (u64)block.first_frame * 4, lane);
            if (lane == 0) sums[block.first_slot + mine - block.first_unit] = sum;
        }
        unit = end;
    }
}
