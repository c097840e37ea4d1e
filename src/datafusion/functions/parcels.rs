//! The sending of rows as parcels to the machines that add them up.
//!
//! Rows are packed by the threads that count them, and sent while others are still counted. The words
//! that they use follow ([`tadoc::analytics::ParcelPacker`]).

use std::sync::Arc;

use datafusion::arrow::array::{BinaryArray, Int64Array};
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::Count;

use crate::planning::parcels::{MACHINE, PARCEL, ROWS};
use crate::planning::{Execution, no_column};
use tadoc::analytics::{Packed, ParcelPacker, Vocabulary};

/// Sender of the rows of a scan to parcels.
pub(super) struct ParcelSender {
    packer: ParcelPacker,
    names: Vec<i64>,
    machine: i64,
    reservation: MemoryReservation,
    bytes_packed: Count,
}

impl ParcelSender {
    /// Builds the sender of rows of words of `vocabulary`.
    ///
    /// # Errors
    /// An error if memory is short, and an internal error if the scan has no parcels.
    pub(super) fn new(run: &Execution, vocabulary: &Arc<Vocabulary>) -> Result<Self> {
        let parcels = run.scan.parcels.as_ref();
        let parcels = parcels.ok_or_else(|| internal_datafusion_err!("a scan without parcels"))?;
        let names = parcels.names()?;
        let packer = ParcelPacker::new(Arc::clone(vocabulary), names.len() as u32);
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
