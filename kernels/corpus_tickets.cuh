// Rules that wait for rules, in one launch.
//
// Thread blocks take numbers in the order in which they begin to run. Where a thread waits only for what
// threads of its own or of lower numbers write, something always goes on, whatever the size of the grid
// and of the device (Liu, Li, Hogg, Duff, Vinter 2016: triangular systems without barriers).
//
// What is waited for is one number that a store writes as a whole, and that has a value which means
// "not yet", so nothing has to be ordered. It is read and written past the L1 cache (volatile).
//
// tickets[0] is the next number, tickets[1] says that a warp gave up: a grammar so deep that it waited
// for about a second. All are 0 before a launch.

static __device__ __forceinline__ u32 take_ticket(u32* tickets, u32* shared)
{
    if (threadIdx.x == 0) {
        *shared = atomicAdd(tickets, 1u);
    }
    __syncthreads();
    return *shared;
}

// How long a warp still waits.
struct Patience {
    static constexpr u32 MAX_POLLS = 1 << 20;
    static constexpr u32 LOOK_POLLS = 1 << 8;
    volatile u32* has_given_up;
    u32 num_polls = 0;

    __device__ __forceinline__ explicit Patience(u32* tickets) : has_given_up(tickets + 1) {}

    // To be asked by the whole warp after each look at what it waits for.
    __device__ __forceinline__ bool lasts(bool has_gone_on)
    {
        if (has_gone_on) {
            num_polls = 0;
            return true;
        }
        __nanosleep(100);
        num_polls++;
        if (num_polls == MAX_POLLS) {
            *has_given_up = 1;
            return false;
        }
        // By vote: lanes might read it at different times.
        return num_polls % LOOK_POLLS != 0 || !__any_sync(ALL_LANES, *has_given_up != 0);
    }
};
