//! The sending of rows as parcels to the machines that add them up.
//!
//! Rows are packed by the threads that count them, and sent while others are still counted. The words
//! that they use follow ([`tadoc::analytics::ParcelPacker`]).

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{BinaryArray, Int64Array};
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::Count;

use crate::errors::{core_error, datafusion_error};
use crate::planning::parcels::{MACHINE, PARCEL, Parcels, ROWS};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{Packed, ParcelPacker, Vocabulary, for_each_in_order};

/// Number of rows that one thread packs at a time.
const ROWS_AT_ONCE: usize = 1 << 12;

/// Sender of the rows of a scan to parcels.
pub(super) struct ParcelSender {
    packer: ParcelPacker,
    names: Vec<i64>,
    machine: i64,
    reservation: MemoryReservation,
    bytes_packed: Count,
}

impl ParcelSender {
    /// Builds the sender of rows of words of `vocabulary`, which is [that of the run](Execution::vocabulary).
    ///
    /// # Errors
    /// An error if memory is short, and an internal error if the scan has no parcels.
    pub(super) fn new(run: &Execution, vocabulary: &Arc<Vocabulary>) -> Result<Self> {
        let parcels = run.scan.parcels.as_ref();
        let parcels = parcels.ok_or_else(|| internal_datafusion_err!("a scan without parcels"))?;
        let names = parcels.names()?;
        let num_parcels = names.len() as u32;
        let packer = if run.common.get().is_some() {
            let num_words = run.scan.function.merged_words().unwrap_or(1);
            ParcelPacker::with_common_numbers(Arc::clone(vocabulary), num_parcels, num_words)
        } else {
            ParcelPacker::new(Arc::clone(vocabulary), num_parcels)
        };
        let reservation = run.reservation("Parcels");
        reservation.try_grow(packer.memory_bytes())?;
        let bytes_packed = run.counter("bytes_packed");
        Ok(Self { packer, names, machine: parcels.machine(), reservation, bytes_packed })
    }

    /// Returns the packer of rows.
    pub(super) fn packer(&self) -> &ParcelPacker {
        &self.packer
    }

    /// Sends `chunks`, while the task holds `held_bytes`. Returns false if the task should stop.
    pub(super) fn send(&self, run: &mut Execution, chunks: &[Packed], held_bytes: usize) -> Result<bool> {
        self.reservation.try_resize(held_bytes.saturating_add(self.packer.memory_bytes()))?;
        let len_bytes = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        self.bytes_packed.add(len_bytes);
        run.send(chunks.len(), |column| match column {
            PARCEL => Ok(Arc::new(Int64Array::from_iter_values(chunks.iter().map(|c| self.names[c.parcel as usize])))),
            MACHINE => Ok(Arc::new(Int64Array::from_value(self.machine, chunks.len()))),
            ROWS => Ok(Arc::new(BinaryArray::from_iter_values(chunks.iter().map(|chunk| &chunk.bytes)))),
            other => no_column(other),
        })
    }

    /// Packs `num_rows` rows range by range, in parallel, and sends them while the task holds `held_bytes`. Returns
    /// false if the task should stop.
    pub(super) fn send_ranges(
        &self,
        run: &mut Execution,
        num_rows: usize,
        held_bytes: usize,
        pack: impl Fn(Range<usize>) -> Vec<Packed> + Send + Sync,
    ) -> Result<bool> {
        let pack = |at: usize| pack(at * ROWS_AT_ONCE..num_rows.min((at + 1) * ROWS_AT_ONCE));
        let send = |chunks: Vec<Packed>| self.send(run, &chunks, held_bytes).map_err(core_error);
        for_each_in_order(num_rows.div_ceil(ROWS_AT_ONCE), pack, send).map_err(datafusion_error)
    }

    /// Sends the words of all rows, after the rows.
    pub(super) fn send_words(&self, run: &mut Execution) -> Result<()> {
        let batch_size = run.output.batch_size();
        let mut words = self.packer.words().peekable();
        while words.peek().is_some() && !run.output.is_done() {
            let chunks: Vec<Packed> = words.by_ref().take(batch_size).collect();
            self.send(run, &chunks, 0)?;
        }
        Ok(())
    }
}

/// Map from the documents of a scan to those of the whole corpus.
pub(super) struct ParcelIds {
    /// First document of each file in the scan, and in the whole corpus.
    files: Vec<(u64, u64)>,
}

impl ParcelIds {
    /// Builds the map of the documents of `scan`, which packs its rows to `parcels`.
    pub(super) fn new(scan: &ScanSpec, parcels: &Parcels) -> Self {
        let mut start = 0;
        let mut files = Vec::new();
        for (open, &first_doc_id) in scan.corpora().iter().zip(&parcels.first_doc_ids) {
            files.push((start, first_doc_id));
            start += open.footer.num_docs();
        }
        Self { files }
    }

    /// Returns the documents `ids`, which ascend, in the whole corpus.
    pub(super) fn in_corpus(&self, ids: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
        let mut file = 0;
        ids.map(move |id| {
            while self.files.get(file + 1).is_some_and(|&(start, _)| start <= id) {
                file += 1;
            }
            let (start, first_doc_id) = self.files.get(file).copied().unwrap_or_default();
            first_doc_id + (id - start)
        })
    }
}
