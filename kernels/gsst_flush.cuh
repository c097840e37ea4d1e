// Stores of a warp's staged text to device memory.

#pragma once

#include "gsst_shared.cuh"

__device__ __forceinline__ void store_global_byte(u64 at, u32 v) {
    asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"(v) : "memory");
}

// Flushing, in two forms: the copy engine reads shared memory (16-byte multiples, one lane asks),
// or all lanes load and store. `wait_for_flush` comes before the stage is written again.
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void wait_for_flush(u32 lane) {
    if (lane == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ __forceinline__ void publish_stage() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void flush(u64 to, u32 from, u32 len, u32 lane) {
    if (lane == 0) {
        asm volatile(
            "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; "
            "cp.async.bulk.commit_group;"
            ::"l"(to), "r"(from), "r"(len) : "memory");
    }
}
#else
__device__ __forceinline__ void wait_for_flush(u32) {}
__device__ __forceinline__ void publish_stage() {}
__device__ __forceinline__ void flush(u64 to, u32 from, u32 len, u32 lane) {
    for (u32 k = lane * 16; k < len; k += 512) {
        u32 a, b, c, d;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from + k) : "memory");
        asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
                     ::"l"(to + k), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
    }
}
#endif
