//! Filters on text on a device: the rows of a row group that pass, and their text.
//!
//! ```text
//! predicates on one column  ─▶ one run over its blocks ─▶ rows that meet all predicates, and their
//!                                                         text if the column is projected
//! several columns           ─▶ one run for each; the reader keeps the rows that are in all results
//! ordinary columns, rest    ─▶ the CPU, for the rows that are left
//! ```
//!
//! Stretches that statistics rule out are not sent. The CPU decodes the selected rows of the other
//! GSST columns of the projection. If a device cannot test a predicate (more than 256 states), the
//! CPU tests its column: the log has the reason, and `device_fallbacks` counts it.

use bytes::Bytes;

use super::file_scan::{ColumnMatches, DeviceUse, Fetched, FileScan};
use gsst::parquet::device::{ColumnScanner, DeviceResult, PendingRows};
use gsst::parquet::{CodePredicate, StretchMatches};

/// A column that a device works on. `is_sent` is true for each stretch that was sent.
struct Waiting {
    column_idx: usize,
    is_sent: Vec<bool>,
    pending: Box<dyn PendingRows<StretchMatches>>,
}

impl FileScan {
    /// Returns, for each GSST column whose predicates a device can test, the rows that meet them.
    pub(super) fn matches_from(&self, device: &DeviceUse, fetched: &Fetched) -> DeviceResult<Vec<ColumnMatches>> {
        let scanner = device.scanner()?;
        let is_possible = self.possible_stretches(fetched.row_group_idx);
        let mut waiting = Vec::new();
        for column_idx in 0..self.footer.gsst().columns().len() {
            let predicates = self.predicates_on(column_idx);
            if !predicates.is_empty() {
                waiting.extend(self.submit(scanner.as_ref(), fetched, column_idx, &predicates, &is_possible)?);
            }
        }
        waiting.into_iter().map(|column| self.wait_for(column)).collect()
    }

    /// Sends the blocks of a column to the device. Returns `None` if the device cannot test the
    /// predicates.
    fn submit(
        &self,
        scanner: &dyn ColumnScanner,
        fetched: &Fetched,
        column_idx: usize,
        predicates: &[&CodePredicate],
        is_possible: &[bool],
    ) -> DeviceResult<Option<Waiting>> {
        let matcher = match scanner.matcher(predicates) {
            Ok(matcher) => matcher,
            Err(error) => {
                tracing::warn!(file = %self.object.location, %error, "filtering on the CPU");
                self.counters.device_fallbacks.add(1);
                return Ok(None);
            }
        };
        let column = &self.footer.gsst().columns()[column_idx];
        let is_text_wanted = self.options.projection.iter().flatten().any(|i| *i == column.field_idx);
        let blocks = fetched.blocks(&self.footer, column_idx)?.into_iter().zip(is_possible);
        let sent: Vec<Option<Bytes>> = blocks.map(|(block, is_possible)| block.filter(|_| *is_possible)).collect();
        let is_sent = sent.iter().map(Option::is_some).collect();
        let blocks = sent.into_iter().flatten().collect();
        let text_type = column.text_type.as_view();
        let pending = matcher.find(blocks, text_type, is_text_wanted, self.held())?;
        Ok(Some(Waiting { column_idx, is_sent, pending }))
    }

    fn wait_for(&self, waiting: Waiting) -> DeviceResult<ColumnMatches> {
        let mut found = waiting.pending.wait()?.into_iter();
        let nothing = || StretchMatches { rows: Vec::new(), text: None };
        let of_stretch = |&is_sent: &bool| {
            if is_sent { found.next().unwrap_or_else(nothing) } else { nothing() }
        };
        let stretches: Vec<StretchMatches> = waiting.is_sent.iter().map(of_stretch).collect();
        let num_rows = stretches.iter().map(|stretch| stretch.rows.len()).sum();
        self.counters.device_rows_matched.add(num_rows);
        Ok((waiting.column_idx, stretches))
    }

    fn predicates_on(&self, column_idx: usize) -> Vec<&CodePredicate> {
        let field_idx = self.footer.gsst().columns()[column_idx].field_idx;
        let predicates = self.options.predicates.iter();
        predicates.filter(|predicate| predicate.field_idx == field_idx).collect()
    }

    /// Returns true for each stretch of a row group that may have rows that meet all predicates.
    fn possible_stretches(&self, row_group_idx: usize) -> Vec<bool> {
        let gsst = self.footer.gsst();
        let Some(row_group) = gsst.row_groups().get(row_group_idx) else { return Vec::new() };
        let may_match = |stretch_idx: usize| {
            self.options.predicates.iter().all(|predicate| {
                let column_idx = gsst.column_of_field(predicate.field_idx);
                column_idx.is_none_or(|column_idx| {
                    let block = &row_group.runs[column_idx].blocks[stretch_idx];
                    predicate.may_match(&block.statistics)
                })
            })
        };
        (0..row_group.stretch_rows.len()).map(may_match).collect()
    }
}
