//! Rows of a GSST column that were found elsewhere, such as on a device.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;

use crate::error::{Error, Result};

/// Rows of a stretch that meet all predicates on a GSST column.
#[derive(Debug, Clone)]
pub struct StretchMatches {
    /// Numbers of the rows in the stretch, ascending.
    pub rows: Vec<u32>,
    /// Text of the rows, if the batches contain the column.
    pub text: Option<ArrayRef>,
}

impl StretchMatches {
    /// Returns true if the rows ascend and exist, and the text has their number and type
    /// `text_type`.
    pub(super) fn is_of(&self, num_rows: usize, text_type: &DataType) -> bool {
        let is_theirs =
            |text: &ArrayRef| text.len() == self.rows.len() && text.data_type() == text_type;
        self.rows.is_sorted_by(|one, next| one < next)
            && self.rows.last().is_none_or(|last| (*last as usize) < num_rows)
            && self.text.as_ref().is_none_or(is_theirs)
    }

    /// Returns the text of `rows`, which must all be among the rows found.
    pub(super) fn text_of(&self, rows: &[u32]) -> Result<Option<ArrayRef>> {
        let Some(text) = &self.text else { return Ok(None) };
        if rows.len() == self.rows.len() {
            return Ok(Some(text.clone()));
        }
        let mut places = Vec::with_capacity(rows.len());
        let mut at = 0;
        for row in rows {
            at += self.rows[at..].iter().take_while(|candidate| *candidate < row).count();
            places.push(at as u32);
        }
        let taken = take(text, &UInt32Array::from(places), None);
        taken.map(Some).map_err(|error| Error::external("choosing rows", error))
    }
}

/// Returns the rows that are in both lists, which must ascend.
pub(super) fn in_both(mut rows: Vec<u32>, others: &[u32]) -> Vec<u32> {
    let mut others = others.iter().peekable();
    rows.retain(|row| {
        while others.next_if(|other| *other < row).is_some() {}
        others.next_if(|other| *other == row).is_some()
    });
    rows
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn lists_meet() {
        assert_eq!(in_both(vec![1, 3, 4, 9], &[0, 3, 5, 9, 10]), [3, 9]);
        assert_eq!(in_both(vec![1, 2], &[]), [] as [u32; 0]);
        assert_eq!(in_both(Vec::new(), &[1]), [] as [u32; 0]);
    }

    #[test]
    fn texts_are_those_of_their_rows() {
        let text: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "c"]));
        let matches = StretchMatches { rows: vec![2, 5, 7], text: Some(text.clone()) };
        let expected: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "c"]));
        assert_eq!(&matches.text_of(&[2, 7]).unwrap().unwrap(), &expected);
        assert_eq!(&matches.text_of(&[2, 5, 7]).unwrap().unwrap(), &text);
        assert_eq!(matches.text_of(&[]).unwrap().unwrap().len(), 0);
        assert!(matches.is_of(8, &DataType::Utf8View));
        assert!(!matches.is_of(7, &DataType::Utf8View));
        assert!(!matches.is_of(8, &DataType::Utf8));
        let no_text = |rows| StretchMatches { rows, text: None };
        assert!(no_text(vec![0, 1]).text_of(&[0]).unwrap().is_none());
        assert!(!no_text(vec![1, 1]).is_of(2, &DataType::Utf8));
    }
}
