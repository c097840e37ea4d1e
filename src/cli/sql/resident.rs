//! The pool of `--memory-limit`: it counts what operators say, and looks at what the process has resident.
//!
//! ```text
//!                0            7/8     limit     5/4 and 16 MiB
//! counted        │ can spill ──┤         │
//!                │ others ───────────────┤
//! resident       │ can spill ────────────┤
//!                │ others ───────────────────────┤
//! ```
//!
//! Operators count what they keep, not what they copy it to, and some (windows) count nothing. So requests are refused,
//! too, when the process has more than the limit in memory: first those of operators that have something to write
//! to disk, which do so, then all others, such as that of a scan for its next rows, which end the statement. What cannot
//! be written to disk finds an eighth of the limit that nobody else takes. A thread looks on, too, for growth behind which
//! nobody asks.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, thread};

use datafusion::common::resources_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
    TrackConsumersPool, human_readable_size,
};
use tokio::sync::oneshot::{self, Receiver};

use super::heap;

/// Consumers that a refusal names.
const NUM_NAMED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);
/// Of the limit: what can spill takes no more than all but such a part, and spills nothing shorter than half of it.
const PART_OF_OTHERS: usize = 8;
/// Resident memory beyond the limit that is no sign of anything uncounted.
const SLACK_BYTES: usize = 16 << 20;
/// Deals rows out to partitions, few at a time, and counts what several of them share several times. What it would write to
/// disk, nobody reads any more: with DataFusion 55.2 `sequence_count(…, n => 2000)` of 40 portions stands still for good.
const UNCOUNTED: &str = "RepartitionExec";
/// How often the thread looks: what is copied meanwhile is little.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// See the module's description.
#[derive(Debug)]
pub struct ResidentPool {
    counted: TrackConsumersPool<GreedyMemoryPool>,
    limit: usize,
    resident: Resident,
}

impl ResidentPool {
    /// One of `limit` bytes, for a process that does nothing yet.
    pub fn new(limit: usize) -> Arc<Self> {
        let counted = TrackConsumersPool::new(GreedyMemoryPool::new(limit), NUM_NAMED);
        Arc::new(Self { counted, limit, resident: Resident::new() })
    }

    /// Returns true for one that writes to disk when it is refused, and has something worth it.
    fn gives_way(&self, reservation: &MemoryReservation) -> bool {
        let worth_it = self.limit / PART_OF_OTHERS / 2;
        reservation.consumer().can_spill() && reservation.size() > worth_it
    }

    /// Bytes that are resident, where they are too many for one who asks.
    fn too_many(&self, gives_way: bool) -> Option<usize> {
        let most = if gives_way { self.limit } else { self.limit.saturating_add(self.limit / 4) };
        let is_too_many = |bytes: &usize| *bytes > most.saturating_add(SLACK_BYTES);
        self.resident.bytes().filter(is_too_many)?;
        heap::give_back();
        self.resident.bytes().filter(is_too_many)
    }

    fn refusal(&self, who: &str, resident: usize) -> DataFusionError {
        let [resident, limit] = [resident, self.limit].map(human_readable_size);
        resources_datafusion_err!(
            "no memory is left for {who}: the process has {resident}, its limit is {limit}"
        )
    }

    /// A statement with this limit, for which `enough` bytes are enough.
    pub fn statement(self: &Arc<Self>, enough: Option<u64>) -> Statement {
        Statement { pool: Arc::clone(self), enough }
    }

    /// Tells when the process has too much in memory, until the receiver goes.
    fn watch(self: &Arc<Self>) -> Receiver<DataFusionError> {
        let (sender, receiver) = oneshot::channel();
        let pool = Arc::clone(self);
        let look = move || {
            while !sender.is_closed() {
                if let Some(resident) = pool.too_many(false) {
                    // Where the statement has ended meanwhile nobody asks.
                    let _ = sender.send(pool.refusal("the statement", resident));
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        };
        // Without a thread there is what the pool sees.
        let _ = thread::Builder::new().name("tadoc-memory".to_owned()).spawn(look);
        receiver
    }
}

/// A statement whose memory is limited.
#[derive(Debug)]
pub struct Statement {
    pool: Arc<ResidentPool>,
    enough: Option<u64>,
}

impl Statement {
    /// Runs `rows` to their end, or until the process has too much in memory.
    ///
    /// # Errors
    /// Those of `rows`; where memory is short, with a limit that is enough.
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
        if let Some(resident) = self.too_many(gives_way) {
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

/// Memory that the process has resident, but for files that are mapped.
#[derive(Debug)]
struct Resident {
    /// Where the system says it.
    statm: Option<File>,
}

impl Resident {
    fn new() -> Self {
        Self { statm: File::open("/proc/self/statm").ok() }
    }

    /// `None` on systems that do not say it so.
    #[cfg(target_os = "linux")]
    fn bytes(&self) -> Option<usize> {
        use std::os::unix::fs::FileExt;
        let mut text = [0; 128];
        let len_bytes = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..len_bytes)?).ok()?;
        let mut pages = text.split(' ').skip(1).map_while(|number| number.parse::<usize>().ok());
        let (all, of_files) = (pages.next()?, pages.next()?);
        Some(all.saturating_sub(of_files).saturating_mul(heap::page_bytes()))
    }

    #[cfg(not(target_os = "linux"))]
    fn bytes(&self) -> Option<usize> {
        let _ = &self.statm;
        None
    }
}
