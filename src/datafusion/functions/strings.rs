//! Arrow arrays of decoded text and of numbers. Valid text is not copied.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BinaryViewArray, Int64Array, ListArray, StringViewArray, StringViewBuilder, make_view,
};
use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::Field;
use datafusion::error::{DataFusionError, Result};

use tadoc::analytics::Fold;

/// Builds an array of `texts`.
pub(super) fn views<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringViewBuilder::with_capacity(texts.len());
    texts.for_each(|text| builder.append_value(text));
    Arc::new(builder.finish())
}

/// Texts that lie one after another in one buffer.
pub(super) struct Texts {
    buffer: Buffer,
    views: ScalarBuffer<u128>,
    ends: Vec<usize>,
}

impl Texts {
    /// Cuts `bytes` at `ends`, which ascend to its length.
    ///
    /// # Errors
    /// An error if `bytes` is longer than a view can address.
    pub(super) fn new(bytes: Vec<u8>, ends: Vec<usize>) -> Result<Self> {
        if i32::try_from(bytes.len()).is_err() {
            let len = bytes.len();
            let what = format!("one batch of text has {len} bytes, Arrow's views address 2^31 - 1");
            return Err(DataFusionError::ResourcesExhausted(what));
        }
        let view = |i: usize| {
            let start = i.checked_sub(1).map_or(0, |before| ends[before]);
            make_view(&bytes[start..ends[i]], 0, start as u32)
        };
        let views = (0..ends.len()).map(view).collect::<Vec<_>>().into();
        Ok(Self { buffer: Buffer::from_vec(bytes), views, ends })
    }

    /// Returns the exact bytes.
    pub(super) fn content(&self) -> Result<BinaryViewArray> {
        Ok(BinaryViewArray::try_new(self.views.clone(), vec![self.buffer.clone()], None)?)
    }

    /// Returns the texts, with U+FFFD for invalid bytes. Valid texts are views of the buffer.
    pub(super) fn text(&self) -> Result<StringViewArray> {
        // The constructor checks every text once. Texts are checked one by one only if one is
        // invalid.
        match StringViewArray::try_new(self.views.clone(), vec![self.buffer.clone()], None) {
            Ok(array) => Ok(array),
            Err(_) => self.lossy_text(),
        }
    }

    fn lossy_text(&self) -> Result<StringViewArray> {
        let mut builder = StringViewBuilder::with_capacity(self.ends.len());
        let block = builder.append_block(self.buffer.clone());
        let mut start = 0;
        for &end in &self.ends {
            let bytes = &self.buffer[start..end];
            match String::from_utf8_lossy(bytes) {
                std::borrow::Cow::Borrowed(_) => {
                    builder.try_append_view(block, start as u32, (end - start) as u32)?;
                }
                std::borrow::Cow::Owned(text) => builder.try_append_value(text)?,
            }
            start = end;
        }
        Ok(builder.finish())
    }
}

/// Returns the argument `fold` for EXPLAIN, if it is not the default.
pub(super) fn shown_fold(fold: &Fold) -> Option<(&'static str, String)> {
    (*fold != Fold::NONE).then(|| ("fold", fold.to_string()))
}

/// Builds an `Int64` column of counts.
///
/// # Errors
/// An error if a count exceeds 2^63 - 1.
pub(super) fn int64(values: impl Iterator<Item = u64>) -> Result<ArrayRef> {
    Ok(Arc::new(Int64Array::from(signed(values)?)))
}

/// Builds a column of lists of numbers. The lists end at `ends` of `values`.
///
/// # Errors
/// The errors of [`int64`] and [`lists`].
pub(super) fn int64_lists(values: impl Iterator<Item = u64>, ends: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    lists(signed(values)?, ends)
}

/// Builds a column of lists that end at `ends` of `values`.
///
/// # Errors
/// An error if there are more than 2^31 - 1 values.
pub(super) fn lists(values: Vec<i64>, ends: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    Ok(Arc::new(list_array(Arc::new(Int64Array::from(values)), ends, None)?))
}

/// Builds a column of lists that end at `ends` of `values`. A list that `nulls` marks is NULL.
///
/// # Errors
/// An error if there are more than 2^31 - 1 values.
pub(super) fn list_array(
    values: ArrayRef,
    ends: impl Iterator<Item = usize>,
    nulls: Option<NullBuffer>,
) -> Result<ListArray> {
    let offset = |end| {
        i32::try_from(end).map_err(|_| DataFusionError::ResourcesExhausted("lists of more than 2^31 - 1 values".into()))
    };
    let offsets: Vec<i32> = std::iter::once(0).chain(ends).map(offset).collect::<Result<_>>()?;
    let field = Arc::new(Field::new("item", values.data_type().clone(), false));
    Ok(ListArray::try_new(field, OffsetBuffer::new(offsets.into()), values, nulls)?)
}

fn signed(values: impl Iterator<Item = u64>) -> Result<Vec<i64>> {
    // All values are tested together. A test for each value would prevent vectorization of the
    // loop.
    let signed: Vec<i64> = values.map(u64::cast_signed).collect();
    if signed.iter().fold(0, |all, value| all | value) < 0 {
        let what = "a count does not fit into Int64, 2^63 - 1 at most";
        return Err(DataFusionError::ResourcesExhausted(what.into()));
    }
    Ok(signed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_texts_are_replaced_and_their_neighbours_kept() {
        let texts = Texts::new(b"plain\xff\xfe bad, longer than a view".to_vec(), vec![5, 5, 29, 31]);
        let texts = texts.unwrap();
        let text = texts.text().unwrap();
        assert_eq!((text.value(0), text.value(1)), ("plain", ""));
        assert_eq!(text.value(2), "\u{FFFD}\u{FFFD} bad, longer than a vi");
        assert_eq!(texts.content().unwrap().value(2), b"\xff\xfe bad, longer than a vi");
        assert_eq!(text.len(), 4);
    }

    #[test]
    fn a_character_cut_by_a_border_is_invalid_on_both_sides() {
        let texts = Texts::new("é".as_bytes().to_vec(), vec![1, 2]).unwrap();
        let text = texts.text().unwrap();
        assert_eq!((text.value(0), text.value(1)), ("\u{FFFD}", "\u{FFFD}"));
    }

    #[test]
    fn counts_past_int64_are_refused() {
        assert!(int64([1 << 63].into_iter()).is_err());
    }
}
