//! Rates of stores and ratios of GSST columns, as a session observes them while it reads.
//!
//! ```text
//! reads of a store   ──┐ ┌────┐  ┌──        bytes of all reads
//!                      └─┘    └──┘     rate = ───────────────────────────────────
//!                     busy     busy           time in which at least one ran
//! ```
//!
//! Reads that run side by side share the store, so their times are not added. Short reads are not
//! counted, because opening takes most of their time. Older reads count less: after 4 GiB, the sums
//! are halved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::throughput::{ObservedStore, ObservedText};
use gsst::CodeWidth;

/// Shortest read that counts.
const MIN_READ_BYTES: u64 = 64 << 10;
/// Bytes after which older reads count half.
const MEMORY_BYTES: f64 = (4_u64 << 30) as f64;

/// Observations of a session, by the URL of the store.
#[derive(Debug, Default)]
pub(crate) struct ObservedStores(Mutex<BTreeMap<String, Sums>>);

/// Sums of the reads of a store.
#[derive(Debug, Default)]
struct Sums {
    num_running: usize,
    busy_since: Option<Instant>,
    busy: Duration,
    read_bytes: f64,
    eight: ObservedText,
    twelve: ObservedText,
}

/// A read that runs, until it is dropped. Without [`Reading::end`] it counts as one that failed.
#[derive(Debug)]
pub(crate) struct Reading {
    stores: Arc<ObservedStores>,
    url: String,
    read_bytes: u64,
}

impl ObservedStores {
    /// Notes that a read begins. Returns `None` if it is too short to count.
    pub(crate) fn begin(self: &Arc<Self>, url: &str, len_bytes: u64) -> Option<Reading> {
        if len_bytes < MIN_READ_BYTES {
            return None;
        }
        let mut stores = self.lock();
        let store = stores.entry(url.to_owned()).or_default();
        store.num_running += 1;
        store.busy_since.get_or_insert_with(Instant::now);
        Some(Reading { stores: Arc::clone(self), url: url.to_owned(), read_bytes: 0 })
    }

    /// Notes text of GSST columns that was read, and the bytes that it takes in the store.
    pub(crate) fn add_text(&self, url: &str, width: CodeWidth, text_bytes: u64, stored_bytes: u64) {
        let mut stores = self.lock();
        let store = stores.entry(url.to_owned()).or_default();
        let text = match width {
            CodeWidth::Eight => &mut store.eight,
            CodeWidth::Twelve => &mut store.twelve,
        };
        text.text_bytes = text.text_bytes.saturating_add(text_bytes);
        text.stored_bytes = text.stored_bytes.saturating_add(stored_bytes);
    }

    /// Returns the rate of a store in GB per second, if reads of it were observed.
    pub(crate) fn rate_gb_per_s(&self, url: &str) -> Option<f64> {
        self.lock().get(url)?.rate_gb_per_s()
    }

    /// Returns the stores whose rate was observed, sorted by URL.
    pub(crate) fn all(&self) -> Vec<ObservedStore> {
        let stores = self.lock();
        let one = |(url, store): (&String, &Sums)| {
            let (url, gb_per_s) = (url.clone(), store.rate_gb_per_s()?);
            Some(ObservedStore { url, gb_per_s, eight: store.eight, twelve: store.twelve })
        };
        stores.iter().filter_map(one).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Sums>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    fn rate_gb_per_s(&self) -> Option<f64> {
        let seconds = self.busy.as_secs_f64();
        (self.read_bytes > 0.0 && seconds > 0.0).then(|| self.read_bytes / seconds / 1e9)
    }

    /// Notes that one of the running reads has ended after `len_bytes`.
    fn end_one(&mut self, len_bytes: u64) {
        self.num_running = self.num_running.saturating_sub(1);
        if let Some(since) = self.busy_since {
            let now = Instant::now();
            self.busy += now.duration_since(since);
            self.busy_since = (self.num_running > 0).then_some(now);
        }
        self.read_bytes += len_bytes as f64;
        if self.read_bytes > MEMORY_BYTES {
            self.read_bytes /= 2.0;
            self.busy /= 2;
        }
    }
}

impl Reading {
    /// Notes that the read has succeeded.
    pub(crate) fn end(mut self, len_bytes: u64) {
        self.read_bytes = len_bytes;
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(store) = self.stores.lock().get_mut(&self.url) {
            store.end_one(self.read_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: &str = "s3://bucket/";

    #[test]
    fn the_rate_is_that_of_all_reads_together() {
        let stores = Arc::new(ObservedStores::default());
        assert_eq!(stores.rate_gb_per_s(STORE), None);
        let began = Instant::now();
        let [one, two] = [(); 2].map(|()| stores.begin(STORE, 1 << 20).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        one.end(1 << 20);
        two.end(1 << 20);
        let longest_s = began.elapsed().as_secs_f64();
        let rate = stores.rate_gb_per_s(STORE).unwrap();
        let both_gb = f64::from(2 << 20) / 1e9;
        assert!(rate >= both_gb / longest_s && rate <= both_gb / 0.02, "{rate}");
        // Time without a read does not count.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(stores.rate_gb_per_s(STORE), Some(rate));
        assert_eq!(stores.rate_gb_per_s("file:///"), None);
    }

    #[test]
    fn failed_reads_count_as_time_and_short_ones_do_not_count() {
        let stores = Arc::new(ObservedStores::default());
        assert!(stores.begin(STORE, 1000).is_none());
        drop(stores.begin(STORE, 1 << 20));
        assert_eq!(stores.rate_gb_per_s(STORE), None);
        assert_eq!(stores.lock()[STORE].num_running, 0);
        stores.begin(STORE, 1 << 20).unwrap().end(1 << 20);
        assert!(stores.rate_gb_per_s(STORE).is_some());
        assert_eq!(stores.lock()[STORE].busy_since, None);
    }

    #[test]
    fn old_reads_count_less() {
        let mut store = Sums::default();
        let slow = |store: &mut Sums, seconds| {
            store.busy += Duration::from_secs(seconds);
            store.end_one(3 << 30);
        };
        slow(&mut store, 30);
        let before = store.rate_gb_per_s().unwrap();
        for _ in 0..10 {
            slow(&mut store, 1);
        }
        let after = store.rate_gb_per_s().unwrap();
        assert!(before < 0.2 && after > 2.0, "{before} {after}");
    }

    #[test]
    fn text_is_kept_by_width() {
        let stores = Arc::new(ObservedStores::default());
        stores.begin(STORE, 1 << 20).unwrap().end(1 << 20);
        stores.add_text(STORE, CodeWidth::Twelve, 300, 100);
        stores.add_text(STORE, CodeWidth::Twelve, 300, 100);
        let [store] = &stores.all()[..] else { panic!() };
        assert_eq!(store.url, STORE);
        assert_eq!((store.eight.ratio(), store.twelve.ratio()), (None, Some(3.0)));
    }
}
