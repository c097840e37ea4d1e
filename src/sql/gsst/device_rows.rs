//! Rows that a device decoded, as Arrow arrays of views over the memory they were copied to.
//!
//! The device has checked what Arrow would check again, row by row: views point into the text, and
//! where UTF-8 is asked for, the text is and rows start at its characters (`kernels/gsst_rows.cu`).
//! Checking it again on the host takes longer than the device takes for everything. `tests` and
//! `tests/gpu_parity.rs` compare such arrays with checked ones of the CPU's rows.

#![allow(unsafe_code, reason = "arrays of rows that were checked on the device")]

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, BinaryViewArray, StringViewArray};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use datafusion::execution::memory_pool::MemoryReservation;

use crate::error::{Error, Result};
use crate::gpu::{HostBuffer, ScannedRows};
use crate::gsst::arrow::TextType;

/// Memory that Arrow holds, and that the session's memory pool knows of.
struct Held {
    buffer: Arc<HostBuffer>,
    _reservation: MemoryReservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// The rows of each block of a run; the last array of them gives back `held`.
///
/// # Errors
///
/// [`Error::InvalidArgument`] where the rows have no views.
pub(super) fn stretch_arrays(
    rows: ScannedRows,
    text_type: TextType,
    held: MemoryReservation,
) -> Result<Vec<ArrayRef>> {
    if rows.views().is_none() {
        return Err(Error::InvalidArgument {
            name: "rows of a device",
            got: "offsets".to_owned(),
            allowed: "views".to_owned(),
        });
    }
    let held = Held { buffer: Arc::clone(rows.buffer()), _reservation: held };
    let all = Buffer::from(Bytes::from_owner(held));
    let part = |range: std::ops::Range<usize>| all.slice_with_length(range.start, range.len());
    let (text, views) = (part(rows.text_range()), part(rows.rows_range()));
    let views: ScalarBuffer<u128> = ScalarBuffer::new(views, 0, rows.num_rows());
    let validity = rows.validity().map(|bits| Buffer::from(bits.to_vec()));
    let mut start = 0;
    let stretch = |num_rows: &usize| {
        let (from, num_rows) = (start, *num_rows);
        start += num_rows;
        let views = views.slice(from, num_rows);
        let nulls = validity
            .as_ref()
            .map(|bits| NullBuffer::new(BooleanBuffer::new(bits.clone(), from, num_rows)));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        array(views, text.clone(), nulls, text_type)
    };
    Ok(rows.block_rows().iter().map(stretch).collect())
}

fn array(
    views: ScalarBuffer<u128>,
    text: Buffer,
    nulls: Option<NullBuffer>,
    text_type: TextType,
) -> ArrayRef {
    if text_type.is_utf8() {
        // SAFETY: the rows were decoded with `must_be_utf8`, so the device has found the text to be
        // UTF-8 and all rows to start at characters; it made the views from its own offsets.
        Arc::new(unsafe { StringViewArray::new_unchecked(views, vec![text], nulls) })
    } else {
        // SAFETY: the device made the views from its own offsets.
        Arc::new(unsafe { BinaryViewArray::new_unchecked(views, vec![text], nulls) })
    }
}
