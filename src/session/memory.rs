//! The memory pool of `--memory-limit`. It counts the bytes that operators report and checks the
//! resident memory of the process.
//!
//! ```text
//!                0            7/8     limit     5/4 and 16 MiB
//! counted        │ can spill ──┤         │
//!                │ others ───────────────┤
//! resident       │ can spill ────────────┤
//!                │ others ───────────────────────┤
//! ```
//!
//! Operators count the memory that they keep, but not their copies of it, and some (windows) count nothing. So the pool
//! also refuses requests when the process has too much resident memory. It first refuses operators that have data to
//! spill; they write it to disk. Beyond 5/4 of the limit it refuses all operators, for example a scan that asks for its
//! next rows, and the statement fails. An eighth of the limit is reserved for operators that cannot spill. A thread
//! also watches the resident memory, because it can grow without any request.
//!
//! The C library keeps freed memory for later, in one heap per few threads, and raises its threshold for separate
//! mappings over time. Nobody else can use that memory, so under a limit it goes back to the system.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, thread};

use datafusion::common::resources_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, TrackConsumersPool,
    human_readable_size,
};
use datafusion_tadoc::is_memory_of_calls;
use tokio::sync::oneshot::{self, Receiver};

/// Number of consumers that a refusal names.
const NUM_NAMED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);
/// Reciprocal of the share of the limit that is reserved for consumers that cannot spill. A
/// consumer does not spill less than half of that share.
const PART_OF_OTHERS: usize = 8;
/// Bytes of resident memory beyond the limit that are tolerated.
const SLACK_BYTES: usize = 16 << 20;
/// Name of the operator whose memory is not counted. It deals few rows at a time to partitions, and
/// counts rows several times if partitions share them. It must not spill: with DataFusion 55.2,
/// nobody reads the spilled rows any more, and `sequence_count(…, n => 2000)` of 40 portions hangs
/// forever.
const UNCOUNTED: &str = "RepartitionExec";
/// Time between two checks by the thread. Operators copy little within this time.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Most heaps that the C library makes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MOST_HEAPS: libc::c_int = 2;
/// Reciprocal of the share of the limit that a piece of memory has which goes back to the system when it is freed. The
/// system clears the pages of such pieces each time, so those of batches of rows should stay.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const PART_OF_LONG: u64 = 1 << 10;
/// Least and most bytes of such a piece. The C library takes no more.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LONG_BYTES: [u64; 2] = [256 << 10, 32 << 20];

/// The memory pool of `--memory-limit`; see the module docs.
#[derive(Debug)]
pub struct ResidentPool {
    counted: TrackConsumersPool<GreedyMemoryPool>,
    limit: usize,
    resident: Resident,
}

impl ResidentPool {
    /// Creates a pool of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        let counted = TrackConsumersPool::new(GreedyMemoryPool::new(limit), NUM_NAMED);
        Arc::new(Self { counted, limit, resident: Resident::new() })
    }

    /// Returns true if the consumer spills when it is refused, and has enough bytes to spill.
    fn gives_way(&self, reservation: &MemoryReservation) -> bool {
        let worth_it = self.limit / PART_OF_OTHERS / 2;
        reservation.consumer().can_spill() && reservation.size() > worth_it
    }

    /// Returns the resident bytes of the process if they are too many for a request, else `None`. `more` are
    /// bytes that are not taken yet; who asks for them first has no slack.
    fn too_many(&self, gives_way: bool, more: usize) -> Option<usize> {
        let most = if gives_way { self.limit } else { self.limit.saturating_add(self.limit / 4) };
        let slack = if more == 0 { SLACK_BYTES } else { 0 };
        let most = most.saturating_add(slack);
        let is_too_many = |bytes: &usize| bytes.saturating_add(more) > most;
        self.resident.bytes().filter(is_too_many)?;
        give_back();
        self.resident.bytes().filter(is_too_many)
    }

    fn refusal(&self, who: &str, resident: usize) -> DataFusionError {
        let [resident, limit] = [resident, self.limit].map(human_readable_size);
        resources_datafusion_err!("no memory is left for {who}: the process has {resident}, its limit is {limit}")
    }

    /// Creates a statement under this limit. `enough` is the number of bytes that suffices for it.
    pub fn statement(self: &Arc<Self>, enough: Option<u64>) -> Statement {
        Statement { pool: Arc::clone(self), enough }
    }

    /// Starts a thread that sends an error if the process has too much resident memory. The thread
    /// ends when the receiver is dropped.
    fn watch(self: &Arc<Self>) -> Receiver<DataFusionError> {
        let (sender, receiver) = oneshot::channel();
        let pool = Arc::clone(self);
        let look = move || {
            while !sender.is_closed() {
                if let Some(resident) = pool.too_many(false, 0) {
                    // The receiver is gone if the statement has ended.
                    let _ = sender.send(pool.refusal("the statement", resident));
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        };
        // If no thread can be started, only requests to the pool are checked.
        let _ = thread::Builder::new().name("tadoc-memory".to_owned()).spawn(look);
        receiver
    }
}

/// A statement with limited memory.
#[derive(Debug)]
pub struct Statement {
    pool: Arc<ResidentPool>,
    enough: Option<u64>,
}

impl Statement {
    /// Runs `rows` to completion, or until the process has too much resident memory.
    ///
    /// # Errors
    /// The error of `rows`. If memory is exhausted, the text names a sufficient limit, if it is
    /// known.
    pub async fn run<T>(&self, rows: impl Future<Output = Result<T>>) -> Result<T> {
        let outcome = tokio::select! {
            outcome = rows => outcome,
            Ok(error) = self.pool.watch() => Err(error),
        };
        outcome.map_err(|error| self.with_enough(error))
    }

    fn with_enough(&self, error: DataFusionError) -> DataFusionError {
        let root = error.find_root();
        let DataFusionError::ResourcesExhausted(text) = root else { return error };
        match self.enough.filter(|&enough| enough > self.pool.limit as u64) {
            Some(enough) if !text.contains("--memory-limit") => {
                let enough = enough.div_ceil(1 << 20);
                DataFusionError::ResourcesExhausted(format!(
                    "{text}; a larger limit is enough (--memory-limit {enough}MiB)"
                ))
            }
            _ => error,
        }
    }
}

impl fmt::Display for ResidentPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.counted)
    }
}

impl MemoryPool for ResidentPool {
    fn name(&self) -> &str {
        "resident"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.counted.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.counted.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        if !is_uncounted(reservation) {
            self.counted.grow(reservation, additional);
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        if !is_uncounted(reservation) {
            self.counted.shrink(reservation, shrink);
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if is_uncounted(reservation) {
            return Ok(());
        }
        let name = reservation.consumer().name();
        let gives_way = self.gives_way(reservation);
        let for_others = self.limit / PART_OF_OTHERS;
        if gives_way && self.reserved().saturating_add(additional) > self.limit - for_others {
            return Err(resources_datafusion_err!(
                "{name} asks for {}, which is left to what cannot spill",
                human_readable_size(additional)
            ));
        }
        // Operators ask for what they have taken already, calls of functions before they take it.
        let more = if is_memory_of_calls(name) { additional } else { 0 };
        if let Some(resident) = self.too_many(gives_way, more) {
            return Err(self.refusal(name, resident));
        }
        self.counted.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.counted.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

fn is_uncounted(reservation: &MemoryReservation) -> bool {
    reservation.consumer().name().starts_with(UNCOUNTED)
}

/// Resident memory of the process, without mapped files.
#[derive(Debug)]
struct Resident {
    /// The system's file with the numbers, if there is one.
    statm: Option<File>,
}

impl Resident {
    fn new() -> Self {
        Self { statm: File::open("/proc/self/statm").ok() }
    }

    /// Returns the resident bytes, or `None` if the system does not report them.
    #[cfg(target_os = "linux")]
    fn bytes(&self) -> Option<usize> {
        use std::os::unix::fs::FileExt;
        let mut text = [0; 128];
        let len_bytes = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..len_bytes)?).ok()?;
        let mut pages = text.split(' ').skip(1).map_while(|number| number.parse::<usize>().ok());
        let all = pages.next()?;
        let file_pages = pages.next()?;
        Some(all.saturating_sub(file_pages).saturating_mul(page_bytes()))
    }

    #[cfg(not(target_os = "linux"))]
    fn bytes(&self) -> Option<usize> {
        let _ = &self.statm;
        None
    }
}

/// Configures the allocator for a process of at most `limit` bytes to return freed memory: pieces that are long beside
/// the limit at once, the rest when [`give_back`] is called.
#[allow(unsafe_code, reason = "a call of the C library that has no safe form")]
pub fn keep_little(limit: u64) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let [least, most] = LONG_BYTES;
        let long_bytes = (limit / PART_OF_LONG).clamp(least, most) as libc::c_int;
        // SAFETY: the calls only set three numbers of the allocator.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, MOST_HEAPS);
            libc::mallopt(libc::M_MMAP_THRESHOLD, long_bytes);
            libc::mallopt(libc::M_TRIM_THRESHOLD, long_bytes);
        }
    }
}

/// Returns freed memory that the allocator keeps for later to the system.
#[allow(unsafe_code, reason = "a call of the C library that has no safe form")]
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call only touches free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the number of bytes of a memory page.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a call of the C library that has no safe form")]
fn page_bytes() -> usize {
    // SAFETY: the call only returns a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}
