//! The writer of a GSST column in a row group: stretches become blocks, and blocks become a run.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, BooleanBufferBuilder};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::error::{Error, Result};

use super::index::{BlockRun, GsstColumn, StoredBlock};
use super::statistics::TextStatistics;
use crate::arrow::{BlockEncoder, rows};
use crate::layout::MAX_BLOCK_TEXT_BYTES;
use crate::write::BlockOptions;

/// Writer of a GSST column in the current row group.
pub(super) struct ColumnWriter {
    pub(super) column: GsstColumn,
    encoder: BlockEncoder,
    pending: Vec<ArrayRef>,
    pending_text_bytes: usize,
    pub(super) run: Vec<u8>,
    blocks: Vec<StoredBlock>,
    validity: BooleanBufferBuilder,
}

impl ColumnWriter {
    pub(super) fn new(column: GsstColumn, options: BlockOptions) -> Self {
        Self {
            column,
            encoder: BlockEncoder::new(options),
            pending: Vec::new(),
            pending_text_bytes: 0,
            run: Vec::new(),
            blocks: Vec::new(),
            validity: BooleanBufferBuilder::new(0),
        }
    }

    /// Returns the memory of pending text and finished blocks, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pending_text_bytes + self.run.capacity()
    }

    /// Returns how many of the first rows still fit into the block: at least one if nothing is
    /// pending.
    pub(super) fn num_rows_that_fit(&self, array: &dyn Array) -> Result<usize> {
        let mut text_bytes = self.pending_text_bytes;
        let fits = |row: &&Option<&[u8]>| {
            text_bytes += row.map_or(0, <[u8]>::len);
            text_bytes <= MAX_BLOCK_TEXT_BYTES
        };
        let rows = rows(array)?;
        let num_rows = rows.iter().take_while(fits).count();
        match rows.get(num_rows).copied().flatten() {
            Some(row) if row.len() > MAX_BLOCK_TEXT_BYTES => Err(Error::Capacity {
                what: "a value of a GSST column",
                requested: row.len() as u64,
                limit: MAX_BLOCK_TEXT_BYTES as u64,
                knob: "the number of ordinary columns",
            }),
            _ => Ok(num_rows),
        }
    }

    /// Adds rows that fit into the stretch.
    pub(super) fn push(&mut self, array: &ArrayRef) -> Result<()> {
        self.pending_text_bytes +=
            rows(array)?.iter().flatten().map(|row| row.len()).sum::<usize>();
        self.pending.push(array.clone());
        Ok(())
    }

    pub(super) fn finish_stretch(&mut self) -> Result<()> {
        let mut stretch = Vec::new();
        for array in &self.pending {
            stretch.append(&mut rows(array)?);
        }
        let statistics = TextStatistics::from_rows(&stretch, self.column.text_type.is_utf8());
        let mut len_bytes = 0;
        if statistics.num_nulls < statistics.num_rows {
            let block = self.encoder.encode_rows(&stretch)?;
            len_bytes = block.len();
            self.run.extend_from_slice(&block);
        }
        stretch.iter().for_each(|row| self.validity.append(row.is_some()));
        self.blocks.push(StoredBlock { len_bytes, statistics });
        self.pending.clear();
        self.pending_text_bytes = 0;
        Ok(())
    }

    /// Returns the run, the row that carries it, and the array for Parquet.
    pub(super) fn finish_row_group(&mut self) -> Result<(BlockRun, usize, ArrayRef)> {
        let run = BlockRun { start: 0, blocks: std::mem::take(&mut self.blocks) };
        let nulls = NullBuffer::new(self.validity.finish());
        let carrier_row = nulls.valid_indices().next().unwrap_or(0);
        let bytes = std::mem::take(&mut self.run);
        let too_long = |_| Error::Capacity {
            what: "blocks of a GSST column in a row group",
            requested: bytes.len() as u64,
            limit: i32::MAX as u64,
            knob: "the number of row groups",
        };
        let end = i32::try_from(bytes.len()).map_err(too_long)?;
        let mut offsets = vec![end; nulls.len() + 1];
        offsets[..=carrier_row].fill(0);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let array = BinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls)
            .map_err(|error| Error::external("writing a GSST column", error))?;
        Ok((run, carrier_row, Arc::new(array)))
    }
}
