//! A device, the one stream through which this library submits work to it, and its kernels.
//!
//! Opening a device retains its primary context, which it shares with other users of CUDA in the
//! process. Each allocation is compared with the free device memory first.
//!
//! # Kernels
//!
//! They are embedded as machine code and PTX; `kernels/build.py` makes all three.
//!
//! ```text
//! compute capability 8.x  <stem>.sm_80.cubin      loads in a millisecond
//! compute capability 9.x  <stem>.sm_90.cubin      likewise; a warp copies by the copy engine
//! newer                   <stem>.compute_90.ptx   the driver compiles it once and keeps it on disk
//! ```
//!
//! If a driver rejects the machine code of 9.x, it gets the PTX.

#![allow(unsafe_code, reason = "two calls of the driver that have no safe form")]

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUfunction_attribute_enum as FunctionAttribute};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, DeviceRepr, DriverError, ValidAsZeroBits};
use cudarc::nvrtc::Ptx;

use crate::error::{self, GpuError};
use crate::memory::{self, DeviceBuffer, HostBuffer, MemoryBudget};

/// Oldest supported driver, as the version that the driver reports: CUDA 12.2, which is driver 535.
/// The embedded PTX needs it.
const MIN_DRIVER_VERSION: i32 = 12020;

/// Returns true if the driver's library can be loaded. The first call tries to load it. Loading
/// starts nothing, so it is much faster than asking the driver for devices.
pub fn has_driver() -> bool {
    static HAS_DRIVER: LazyLock<bool> = LazyLock::new(|| {
        // SAFETY: loads the driver's library; the driver is responsible for its initializers.
        unsafe { sys::is_culib_present() }
    });
    *HAS_DRIVER
}

/// Returns the number of devices that the driver sees; at least one.
///
/// # Errors
///
/// [`GpuError::NoDriver`], [`GpuError::OldDriver`], [`GpuError::NoDevice`] or
/// [`GpuError::Driver`].
pub fn num_devices() -> Result<usize, GpuError> {
    if !has_driver() {
        return Err(GpuError::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the call needs no initialization and writes one number to a valid address.
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    status.result().map_err(GpuError::driver("asking for the driver's version"))?;
    if version < MIN_DRIVER_VERSION {
        let text = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
        let got = text(version);
        let expected = text(MIN_DRIVER_VERSION);
        return Err(GpuError::OldDriver { got, expected });
    }
    let count = CudaContext::device_count().map_err(GpuError::driver("counting devices"))?;
    match usize::try_from(count) {
        Ok(0) | Err(_) => Err(GpuError::NoDevice),
        Ok(num_devices) => Ok(num_devices),
    }
}

/// Two pinned buffers of a copy to the host. One is filled while the other is read.
pub(super) type Staging = [HostBuffer; 2];

/// An open device. Clones share the device and the stream.
#[derive(Debug, Clone)]
pub struct Device {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    name: String,
    capability: (i32, i32),
    shares_host_memory: bool,
    budget: Arc<MemoryBudget>,
    modules: Arc<Mutex<HashMap<&'static str, Arc<CudaModule>>>>,
    staging: Arc<Mutex<Vec<Staging>>>,
}

impl Device {
    /// Opens device number `ordinal`.
    ///
    /// # Errors
    ///
    /// The errors of [`num_devices`]; [`GpuError::NoSuchDevice`]; [`GpuError::Lost`] if the device
    /// failed earlier in this process; [`GpuError::Driver`] if the driver refuses a context or a
    /// stream.
    pub fn open(ordinal: usize) -> Result<Self, GpuError> {
        error::check(ordinal)?;
        let num_devices = num_devices()?;
        if ordinal >= num_devices {
            return Err(GpuError::NoSuchDevice { got: ordinal, num_devices });
        }
        let opening = GpuError::driver("opening the device");
        let context = CudaContext::new(ordinal).map_err(&opening)?;
        let stream = context.new_stream().map_err(&opening)?;
        let name = context.name().map_err(&opening)?;
        let capability = context.compute_capability().map_err(&opening)?;
        let integrated = Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED;
        let shares_host_memory = context.attribute(integrated).map_err(&opening)? != 0;
        let budget = Arc::new(MemoryBudget::new(u64::MAX));
        Ok(Self {
            context,
            stream,
            name,
            capability,
            shares_host_memory,
            budget,
            modules: Arc::default(),
            staging: Arc::default(),
        })
    }

    /// Returns true if the device works in the host's memory, so that copies gain nothing. This
    /// holds for integrated devices. Their memory is managed: the host reads and writes it in
    /// place.
    pub(crate) fn shares_host_memory(&self) -> bool {
        self.shares_host_memory
    }

    /// Returns the same device, treated as if it shared the host's memory. Correct on any device,
    /// but slow on one behind a bus.
    #[must_use]
    pub fn sharing_host_memory(self) -> Self {
        Self { shares_host_memory: true, ..self }
    }

    /// Returns the same device with a new budget: its allocations from now on take at most
    /// `max_bytes` together.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        Self { budget: Arc::new(MemoryBudget::new(max_bytes)), ..self }
    }

    /// Checks that the device had no fault that makes all later calls fail.
    ///
    /// # Errors
    ///
    /// [`GpuError::Lost`].
    pub fn check(&self) -> Result<(), GpuError> {
        error::check(self.ordinal())
    }

    /// Returns the ordinal of the device.
    pub fn ordinal(&self) -> usize {
        self.context.ordinal()
    }

    /// Returns the device memory that this device and its clones hold, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.budget.used_bytes()
    }

    /// Returns the largest amount of device memory that they held at any time, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.budget.peak_bytes()
    }

    /// Returns the amount of corpus data copied to the device so far, in bytes.
    pub fn copied_bytes(&self) -> u64 {
        self.budget.copied_bytes()
    }

    /// Returns the name of the device, such as `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the compute capability of the device, such as (9, 0).
    pub fn compute_capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Returns the free device memory, in bytes.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn free_bytes(&self) -> Result<u64, GpuError> {
        let asking = self.fault("asking for free device memory");
        self.context.mem_get_info().map(|(free, _)| free as u64).map_err(asking)
    }

    /// Waits until all work submitted to the device is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the submitted work.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.stream.synchronize().map_err(self.fault("waiting for the device"))
    }

    /// Measures by the device's clock the time that the work submitted by `work` takes.
    ///
    /// # Errors
    ///
    /// The errors of `work`, and [`GpuError::Driver`].
    pub fn time(&self, work: impl FnOnce() -> Result<(), GpuError>) -> Result<Duration, GpuError> {
        let timing = self.fault("timing");
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let start = self.stream.record_event(flags).map_err(&timing)?;
        work()?;
        let end = self.stream.record_event(flags).map_err(&timing)?;
        let ms = start.elapsed_ms(&end).map_err(&timing)?;
        Ok(Duration::from_secs_f64(f64::from(ms) / 1000.0))
    }

    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    pub(super) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Returns the loaded modules, by the name of their source file.
    fn modules(&self) -> MutexGuard<'_, HashMap<&'static str, Arc<CudaModule>>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pairs of pinned buffers that are kept for copies to the host.
    pub(super) fn staging(&self) -> MutexGuard<'_, Vec<Staging>> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a function for `map_err` that turns an error of the driver into a [`GpuError`].
    /// `what` names the operation that failed. After a fault that makes all later calls fail, this
    /// process does not use the device again.
    pub(super) fn fault(&self, what: &'static str) -> impl Fn(DriverError) -> GpuError + use<> {
        error::fault(self.ordinal(), what)
    }

    /// Returns an attribute of the device; 0 if the value is negative.
    pub(super) fn attribute(&self, attribute: Attribute) -> Result<u32, GpuError> {
        let asking = self.fault("asking for an attribute of the device");
        let value = self.context.attribute(attribute).map_err(asking)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Allocates device memory for `len` values, all 0. The budget counts it until it is dropped.
    /// Allocates at least one value, because the driver refuses empty allocations.
    pub(super) fn alloc<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        what: &'static str,
        len: usize,
    ) -> Result<DeviceBuffer<T>, GpuError> {
        let mut buffer = self.alloc_to_send(what, len)?;
        if buffer.is_managed() {
            memory::give_to_device(&mut buffer, &self.stream).map_err(self.fault(what))?;
            self.stream.memset_zeros(&mut buffer).map_err(self.fault(what))?;
        }
        Ok(buffer)
    }

    /// Allocates like [`alloc`](Self::alloc), for a buffer that is filled by [`send`](Self::send)
    /// before any other use.
    pub(super) fn alloc_to_send<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        what: &'static str,
        len: usize,
    ) -> Result<DeviceBuffer<T>, GpuError> {
        let len = len.max(1);
        let requested_bytes = len as u64 * size_of::<T>() as u64;
        let lease = self.budget.take(what, requested_bytes)?;
        let refused = |available_bytes| GpuError::OutOfMemory { what, requested_bytes, available_bytes };
        let taken = if self.shares_host_memory {
            // Such memory can be larger than what is free, and is then slow.
            let available_bytes = self.free_bytes()?;
            if requested_bytes > available_bytes {
                return Err(refused(available_bytes));
            }
            memory::take(&self.stream, len).map(|slice| DeviceBuffer::managed(slice, lease))
        } else {
            self.stream.alloc_zeros(len).map(|slice| DeviceBuffer::new(slice, lease))
        };
        taken.map_err(|error| match self.fault(what)(error) {
            GpuError::OutOfMemory { .. } => refused(self.free_bytes().unwrap_or(0)),
            other => other,
        })
    }

    /// Writes `values` to a buffer of [`alloc_to_send`](Self::alloc_to_send). Enqueues the copy on
    /// `stream`, or copies directly if the host reaches the buffer.
    pub(super) fn send<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        what: &'static str,
        values: &[T],
        stream: &Arc<CudaStream>,
        to: &mut DeviceBuffer<T>,
    ) -> Result<(), GpuError> {
        let sent = if to.is_managed() {
            memory::write(to, values, &self.stream);
            memory::give_to_device(to, &self.stream)
        } else {
            stream.memcpy_htod(values, to)
        };
        sent.map_err(self.fault(what))
    }

    /// Allocates device memory with a copy of `values`. The budget counts it until it is dropped.
    pub(super) fn copy_for<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        what: &'static str,
        values: &[T],
    ) -> Result<DeviceBuffer<T>, GpuError> {
        let mut copy = self.alloc_to_send(what, values.len())?;
        self.send(what, values, &self.stream, &mut copy)?;
        self.budget.count_copied(size_of_val(values) as u64);
        Ok(copy)
    }
}

/// A source file of kernels, compiled for each kind of device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    name: &'static str,
    sm_80: &'static [u8],
    sm_90: &'static [u8],
    compute_90: &'static str,
}

/// Embeds the files that `kernels/build.py` made from `kernels/<stem>.cu`.
macro_rules! source {
    ($stem:literal) => {
        Source {
            name: $stem,
            sm_80: include_bytes!(concat!("../../kernels/compiled/", $stem, ".sm_80.cubin")),
            sm_90: include_bytes!(concat!("../../kernels/compiled/", $stem, ".sm_90.cubin")),
            compute_90: include_str!(concat!("../../kernels/compiled/", $stem, ".compute_90.ptx")),
        }
    };
}

pub(super) const CORPUS_DOCUMENTS: Source = source!("corpus_documents");
#[cfg(feature = "edits")]
pub(super) const CORPUS_EDITS: Source = source!("corpus_edits");
pub(super) const CORPUS_EXTRACT: Source = source!("corpus_extract");
pub(super) const CORPUS_INDEX: Source = source!("corpus_index");
pub(super) const CORPUS_INVERSE: Source = source!("corpus_inverse");
pub(super) const CORPUS_RANKED: Source = source!("corpus_ranked");
pub(super) const CORPUS_SEARCH: Source = source!("corpus_search");
pub(super) const CORPUS_SEQUENCES: Source = source!("corpus_sequences");
pub(super) const CORPUS_SORT: Source = source!("corpus_sort");
pub(super) const CORPUS_TERMS: Source = source!("corpus_terms");
pub(super) const CORPUS_WEIGHTS: Source = source!("corpus_weights");
pub(super) const GSST_CHECK: Source = source!("gsst_check");
pub(super) const GSST_DECODE_8BIT: Source = source!("gsst_decode_8bit");
pub(super) const GSST_DECODE_12BIT: Source = source!("gsst_decode_12bit");
pub(super) const GSST_DISTINCT: Source = source!("gsst_distinct");
pub(super) const GSST_MATCH: Source = source!("gsst_match");
pub(super) const GSST_MATCH_DENSE: Source = source!("gsst_match_dense");
pub(super) const GSST_PLACES: Source = source!("gsst_places");
pub(super) const GSST_ROWS: Source = source!("gsst_rows");

/// The kernels of a file, loaded onto a device.
#[derive(Debug, Clone)]
pub(super) struct Module {
    module: Arc<CudaModule>,
    /// Ordinal of the device.
    ordinal: usize,
}

impl Module {
    /// Loads `source` in the form that fits the device. A device and its clones load each source
    /// once.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] below compute capability 8.0, [`GpuError::Driver`].
    pub(super) fn load(device: &Device, source: Source) -> Result<Self, GpuError> {
        if let Some(module) = device.modules().get(source.name) {
            return Ok(Self { module: Arc::clone(module), ordinal: device.ordinal() });
        }
        let (major, minor) = device.compute_capability();
        let load = |code| device.context().load_module(code);
        let machine_code = |code: &[u8]| load(Ptx::from_binary(code.to_vec()));
        let ptx = || load(Ptx::from_src(source.compute_90));
        let module = match major {
            ..8 => {
                return Err(GpuError::Unsupported {
                    device: device.name().to_owned(),
                    kernel: source.name,
                    reason: format!("compute capability {major}.{minor}, it needs 8.0"),
                });
            }
            8 => machine_code(source.sm_80),
            9 => machine_code(source.sm_90).or_else(|_| ptx()),
            _ => ptx(),
        };
        let module = module.map_err(device.fault("loading a kernel"))?;
        device.modules().insert(source.name, Arc::clone(&module));
        Ok(Self { module, ordinal: device.ordinal() })
    }

    /// Returns the kernel of this name.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub(super) fn kernel(&self, name: &'static str) -> Result<CudaFunction, GpuError> {
        self.module.load_function(name).map_err(error::fault(self.ordinal, name))
    }
}

/// Returns the number of thread blocks of `function` that run on the device at the same time.
/// Allows each of them `shared_bytes` of shared memory.
///
/// # Errors
///
/// [`GpuError::Unsupported`], naming `kernel`, if not one thread block fits; [`GpuError::Driver`].
pub(super) fn max_grid(
    device: &Device,
    function: &CudaFunction,
    kernel: &'static str,
    threads: u32,
    shared_bytes: u32,
) -> Result<u32, GpuError> {
    let setting_up = device.fault("setting up a kernel");
    let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function.set_attribute(attribute, shared_bytes as i32).map_err(&setting_up)?;
    let blocks_per_processor = function
        .occupancy_max_active_blocks_per_multiprocessor(threads, shared_bytes as usize, None)
        .map_err(&setting_up)?;
    let processors = device.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    if blocks_per_processor == 0 || processors == 0 {
        return Err(unsupported(device, kernel, "not one thread block fits".to_owned()));
    }
    Ok(processors * blocks_per_processor)
}

/// Builds the error for a feature that `device` lacks for `kernel`.
pub(super) fn unsupported(device: &Device, kernel: &'static str, reason: String) -> GpuError {
    GpuError::Unsupported { device: device.name().to_owned(), kernel, reason }
}
