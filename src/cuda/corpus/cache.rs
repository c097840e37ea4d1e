//! What stays of segments on a device between queries.
//!
//! ```text
//! (segment, part, number) ──▶ its grammar, its weights, its sequences of n words, …   used last, last
//! ```
//!
//! What is worked with is taken out and put back, so whatever is evicted is in use by nobody. The
//! budget of the device is the bound: an allocation that it refuses is tried again without what was
//! used longest ago, until nothing is left to evict, so a corpus larger than the budget goes through
//! the device segment by segment. From the first eviction on, whoever says which segment is next ([`CorpusCopies::expect`]) has its
//! grammar copied while the one before is worked on; where memory is short that is given up last. Little comes of it
//! (`benches/gpu_segments.rs`, H200, 17 segments of 32 MiB, memory for half of them: 0.96 to 1.11 times as fast, and 0.83 to
//! 0.98 for word_count, which has no work to hide a copy behind), and where all fit nothing (0.95 to 1.05).
//!
//! A segment is known by its address, which its copy holds on to; whoever loaded it says when it is not
//! needed any more ([`CorpusCopies::forget`]). O(kept) for each call.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::mem::replace;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;

use crate::device::Device;
use crate::error::GpuError;
use tadoc::segment::Segment;

use super::DeviceCorpus;
use super::coming::Coming;

/// Values by key, that used longest ago first.
#[derive(Debug)]
struct LeastRecentlyUsed<K, V> {
    kept: VecDeque<(K, V)>,
}

impl<K, V> Default for LeastRecentlyUsed<K, V> {
    fn default() -> Self {
        Self { kept: VecDeque::new() }
    }
}

impl<K: PartialEq, V> LeastRecentlyUsed<K, V> {
    fn take(&mut self, key: &K) -> Option<V> {
        let at = self.kept.iter().position(|(kept, _)| kept == key)?;
        self.kept.remove(at).map(|(_, value)| value)
    }

    /// Keeps `value`, which was used last, instead of another one of this key.
    fn put(&mut self, key: K, value: V) {
        self.take(&key);
        self.kept.push_back((key, value));
    }

    fn evict(&mut self) -> Option<V> {
        self.kept.pop_front().map(|(_, value)| value)
    }

    /// The same, of those that are not in use.
    fn evict_but(&mut self, is_used: impl Fn(&K) -> bool) -> Option<V> {
        let at = self.kept.iter().position(|(key, _)| !is_used(key))?;
        self.kept.remove(at).map(|(_, value)| value)
    }

    fn contains(&self, is_wanted: impl Fn(&K) -> bool) -> bool {
        self.kept.iter().any(|(key, _)| is_wanted(key))
    }

    fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.kept.retain(|(key, _)| is_kept(key));
    }

    /// What `work` answers; where `is_full` says of an error that there is no room, again with one
    /// value less, until none is left.
    fn retried<T, E>(
        &mut self,
        is_full: impl Fn(&E) -> bool,
        mut work: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        loop {
            match work() {
                Err(error) if is_full(&error) && self.evict().is_some() => {}
                answer => return answer,
            }
        }
    }
}

/// A part of a segment: what is made of it, and the number it is made for, such as n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyKey {
    segment: usize,
    part: TypeId,
    number: u64,
}

impl CopyKey {
    /// That of part `P` of `segment` for `number`.
    pub fn of<P: Any>(segment: &Arc<Segment>, number: u64) -> Self {
        Self { segment: Arc::as_ptr(segment).addr(), part: TypeId::of::<P>(), number }
    }
}

/// Copies of segments on one device, and what was made of them there.
#[derive(Debug)]
pub struct CorpusCopies {
    device: Device,
    kept: LeastRecentlyUsed<CopyKey, Box<dyn Any + Send>>,
    prepare_time: Duration,
    ahead_bytes: u64,
    /// Whether there was too little memory for everything.
    is_short: bool,
    /// The segment that is worked on after this one, until its grammar is on its way.
    next: Option<Arc<Segment>>,
    coming: Option<Coming>,
    /// What copies it.
    stream: Option<Arc<CudaStream>>,
}

impl CorpusCopies {
    /// None yet.
    pub fn new(device: Device) -> Self {
        let (kept, prepare_time, ahead_bytes) = (LeastRecentlyUsed::default(), Duration::ZERO, 0);
        let (is_short, next, coming, stream) = (false, None, None, None);
        Self { device, kept, prepare_time, ahead_bytes, is_short, next, coming, stream }
    }

    /// Says which segment is worked on after the one that is asked for now: where memory is short its grammar is copied
    /// meanwhile, unless something of it is there. Work does not fail for it.
    pub fn expect(&mut self, next: Option<&Arc<Segment>>) {
        self.next = next.cloned();
    }

    /// How long uploading and making what was not there has taken so far.
    pub fn prepare_time(&self) -> Duration {
        self.prepare_time
    }

    /// Of what was copied so far, grammars that came while another segment was worked on, in bytes. None before
    /// memory was short.
    pub fn ahead_bytes(&self) -> u64 {
        self.ahead_bytes
    }

    /// The device they lie on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Lets everything on the device take at most `max_bytes` from now on; what is above goes.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn set_max_bytes(&mut self, max_bytes: u64) -> Result<(), GpuError> {
        self.device.budget().set_max_bytes(max_bytes);
        let mut is_evicted = false;
        while self.device.used_bytes() > max_bytes
            && (self.kept.evict().is_some() || self.give_up_coming())
        {
            is_evicted = true;
        }
        if is_evicted { self.device.synchronize() } else { Ok(()) }
    }

    /// What there is.
    pub fn keys(&self) -> Vec<CopyKey> {
        self.kept.kept.iter().map(|(key, _)| *key).collect()
    }

    /// Part `P` of `segment` for `number`, made by `make` where it is not there. It is the caller's until
    /// it is [`put`](Self::put) back.
    ///
    /// # Errors
    ///
    /// Those of [`DeviceCorpus::upload`] and of `make`.
    pub fn take<P: Any + Send>(
        &mut self,
        segment: &Arc<Segment>,
        number: u64,
        make: impl Fn(&DeviceCorpus) -> Result<P, GpuError>,
    ) -> Result<P, GpuError> {
        let kept = self.kept.take(&CopyKey::of::<P>(segment, number));
        if let Some(part) = kept.and_then(|kept| kept.downcast::<P>().ok()) {
            self.begin_next(segment);
            return Ok(*part);
        }
        let start = Instant::now();
        let corpus = self.corpus(segment)?;
        self.begin_next(segment);
        let made = self.retried(|| make(&corpus))?;
        self.device.synchronize()?;
        self.prepare_time += start.elapsed();
        Ok(made)
    }

    /// Keeps `part`, which [`take`](Self::take) gave away or which is new.
    pub fn put<P: Any + Send>(&mut self, segment: &Arc<Segment>, number: u64, part: P) {
        self.kept.put(CopyKey::of::<P>(segment, number), Box::new(part));
    }

    /// What `work` answers, which is done again with less kept here where the device has too little
    /// memory for it.
    ///
    /// # Errors
    ///
    /// Those of `work`, and [`GpuError::Driver`].
    pub fn retried<T>(
        &mut self,
        mut work: impl FnMut() -> Result<T, GpuError>,
    ) -> Result<T, GpuError> {
        let mut is_again = false;
        loop {
            let (device, is_short) = (&self.device, &mut self.is_short);
            let answer = self.kept.retried(is_full, || {
                if replace(&mut is_again, true) {
                    *is_short = true;
                    // Memory is given back when the work before that is done.
                    device.synchronize()?;
                }
                work()
            });
            match answer {
                Err(error) if is_full(&error) && self.give_up_coming() => {}
                answer => return answer,
            }
        }
    }

    /// Gives up what there is of the segments at these addresses.
    pub fn forget(&mut self, addresses: &[usize]) {
        self.kept.retain(|key| !addresses.contains(&key.segment));
        let is_forgotten = |coming: &Coming| addresses.contains(&coming.key().segment);
        if self.coming.as_ref().is_some_and(is_forgotten) {
            self.give_up_coming();
        }
    }

    /// Gives up everything.
    pub fn clear(&mut self) {
        self.kept = LeastRecentlyUsed::default();
        self.give_up_coming();
    }

    fn corpus(&mut self, segment: &Arc<Segment>) -> Result<DeviceCorpus, GpuError> {
        let key = CopyKey::of::<DeviceCorpus>(segment, 0);
        let kept = self.kept.take(&key).and_then(|kept| kept.downcast::<DeviceCorpus>().ok());
        let corpus = match kept {
            Some(corpus) => *corpus,
            None => match self.come(&key) {
                Some(corpus) => corpus,
                None => {
                    let device = self.device.clone();
                    self.retried(|| DeviceCorpus::upload(&device, segment))?
                }
            },
        };
        self.kept.put(key, Box::new(corpus.clone()));
        Ok(corpus)
    }

    /// The grammar of this key once it is there, if it is on its way.
    fn come(&mut self, key: &CopyKey) -> Option<DeviceCorpus> {
        let corpus = self.coming.take_if(|coming| coming.key() == key)?.wait()?;
        self.ahead_bytes += corpus.count_copied();
        Some(corpus)
    }

    /// Gives up the grammar that is on its way; whether there was one.
    fn give_up_coming(&mut self) -> bool {
        self.coming.take().map(Coming::wait).is_some()
    }

    /// Has the grammar of the next segment copied, unless something of it is there, in the place of what
    /// was used longest ago, but not of `current`.
    fn begin_next(&mut self, current: &Arc<Segment>) {
        let Some(next) = self.next.take().filter(|_| self.is_short) else { return };
        let [current, address] = [current, &next].map(|segment| Arc::as_ptr(segment).addr());
        let is_next = |key: &CopyKey| key.segment == address;
        let is_coming = self.coming.as_ref().is_some_and(|coming| is_next(coming.key()));
        if is_coming || self.kept.contains(is_next) {
            return;
        }
        // One that nobody asked for.
        self.give_up_coming();
        // What fails here is done, and fails, when the segment is asked for.
        self.coming = self.coming(current, &next).ok();
    }

    fn coming(&mut self, current: usize, next: &Arc<Segment>) -> Result<Coming, GpuError> {
        let opening = self.device.fault("opening a stream");
        let stream = match &self.stream {
            Some(stream) => stream.clone(),
            None => self.device.context().new_stream().map_err(opening)?,
        };
        self.stream = Some(stream.clone());
        loop {
            match Coming::begin(&self.device, &stream, next) {
                Err(error)
                    if is_full(&error)
                        && self.kept.evict_but(|key| key.segment == current).is_some() =>
                {
                    self.device.synchronize()?;
                }
                begun => return begun,
            }
        }
    }
}

/// Whether it says that there is no room.
fn is_full(error: &GpuError) -> bool {
    matches!(error, GpuError::OutOfMemory { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(values: &[u32]) -> LeastRecentlyUsed<u32, u32> {
        let mut kept = LeastRecentlyUsed::default();
        values.iter().for_each(|&value| kept.put(value, value * 10));
        kept
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut all = kept(&[1, 2, 3]);
        let one = all.take(&1).unwrap();
        assert!(!all.contains(|key| *key == 1));
        all.put(1, one);
        all.put(2, 21);
        let order: Vec<_> = std::iter::from_fn(|| all.evict()).collect();
        assert_eq!(order, [30, 10, 21]);
    }

    #[test]
    fn what_is_in_use_is_passed_over() {
        let mut all = kept(&[1, 2, 3]);
        assert_eq!(all.evict_but(|key| *key < 2), Some(20));
        assert_eq!(all.evict_but(|key| *key != 1), Some(10));
        assert_eq!(all.evict_but(|key| *key == 3), None);
        assert!(all.contains(|key| *key == 3));
    }

    #[test]
    fn what_is_taken_out_is_not_evicted() {
        let mut all = kept(&[1, 2]);
        let one = all.take(&1);
        assert_eq!((all.evict(), all.evict()), (Some(20), None));
        assert_eq!(one, Some(10));
        assert_eq!(all.take(&1), None);
    }

    #[test]
    fn work_is_tried_again_while_there_is_something_to_evict() {
        // A memory of 100 in which each value kept takes 30.
        let needing = |all: &mut LeastRecentlyUsed<u32, u32>, needed: usize| {
            let before = all.kept.len();
            let mut num_tries = 0;
            all.retried(
                |error| *error == "full",
                || {
                    num_tries += 1;
                    let used = 30 * (before + 1 - num_tries);
                    if used + needed > 100 { Err("full") } else { Ok(num_tries) }
                },
            )
        };
        assert_eq!(needing(&mut kept(&[1, 2, 3]), 10), Ok(1));
        let mut all = kept(&[1, 2, 3]);
        assert_eq!(needing(&mut all, 50), Ok(3));
        assert!(
            all.contains(|key| *key == 3)
                && !all.contains(|key| *key == 1)
                && !all.contains(|key| *key == 2)
        );
        assert_eq!(needing(&mut all, 101), Err("full"));
        assert!(all.kept.is_empty());
    }

    #[test]
    fn other_errors_evict_nothing() {
        let mut all = kept(&[1, 2]);
        let failed: Result<(), _> = all.retried(|error| *error == "full", || Err("lost"));
        assert_eq!((failed, all.kept.len()), (Err("lost"), 2));
        all.retain(|&key| key != 1);
        assert!(!all.contains(|key| *key == 1) && all.contains(|key| *key == 2));
    }
}
