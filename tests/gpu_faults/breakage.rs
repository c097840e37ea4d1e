//! Real faults of a device, made outside the library in the context that both share.

#![allow(unsafe_code, reason = "kernels that do wrong, and all memory of a device")]

use std::sync::Arc;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, result, sys};
use cudarc::nvrtc::Ptx;

/// A fault on the device.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// A store to an address without memory.
    IllegalAddress,
    /// A trap of the kernel.
    Trap,
}

const KERNELS: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 at) {
    .reg .u64 %at;
    ld.param.u64 %at, [at];
    st.global.u32 [%at], 1;
    ret;
}
.visible .entry give_up(.param .u64 at) {
    trap;
}
";

/// Breaks the context of device `ordinal` for the rest of the process.
pub fn break_device(ordinal: usize, fault: Fault) {
    let context = CudaContext::new(ordinal).unwrap();
    let module = context.load_module(Ptx::from_src(KERNELS)).unwrap();
    let kernel = module.load_function(match fault {
        Fault::IllegalAddress => "store",
        Fault::Trap => "give_up",
    });
    let kernel = kernel.unwrap();
    let stream = context.new_stream().unwrap();
    let nowhere = 16_u64;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&nowhere);
    let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: the argument has the kernel's type. It points to no memory, and the device must find
    // that.
    unsafe { launch.launch(config) }.unwrap();
    stream.synchronize().unwrap_err();
}

/// All memory of a device, until it is dropped.
pub struct Taken {
    context: Arc<CudaContext>,
    parts: Vec<sys::CUdeviceptr>,
}

/// Takes all memory that device 0 has left, in parts of decreasing size.
pub fn fill_device() -> Taken {
    let context = CudaContext::new(0).unwrap();
    let mut taken = Taken { context, parts: Vec::new() };
    let mut len_bytes = 64 << 30;
    while len_bytes >= 4096 {
        // SAFETY: the context is current on this thread since it was made.
        match unsafe { result::malloc_sync(len_bytes) } {
            Ok(at) => taken.parts.push(at),
            Err(_) => len_bytes /= 2,
        }
    }
    taken
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.context.bind_to_thread().unwrap();
        for at in self.parts.drain(..) {
            // SAFETY: `fill_device` took this memory, this frees it once, and nothing uses it.
            unsafe { result::free_sync(at) }.unwrap();
        }
    }
}
