//! A device that compares rows on the host, and does nothing else; and a session with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use gsst::Block;
use gsst::arrow::TextType;
use gsst::parquet::device::{
    ColumnDevice, ColumnMatcher, ColumnScanner, DeviceError, DeviceFault, DeviceResult, DistinctCounter, FrequentTexts,
    PendingRows, RowMemory,
};
use gsst::parquet::{CodePredicate, CodeTest};
use tadoc::accelerator::DeviceState;

use crate::placement::DeviceSession;
use crate::placement::fake::FakeDevices;
use crate::planning::Spreading;
use crate::session::TadocSessionStateBuilderExt;

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) is_broken: Mutex<bool>,
}

#[derive(Debug, Default)]
struct HostRows {
    counts: Mutex<HashMap<Vec<u8>, u64>>,
    num_nulls: Mutex<u64>,
}

#[derive(Debug)]
struct HostScanner;

fn refused<T>() -> DeviceResult<T> {
    let error = gsst::Error::external("a device of a test", "it does only compare");
    Err(DeviceError { fault: DeviceFault::Other, error })
}

impl ColumnDevice for Host {
    fn scanner(&self, _: usize, _: u64) -> DeviceResult<Arc<dyn ColumnScanner>> {
        if *self.is_broken.lock().unwrap() { refused() } else { Ok(Arc::new(HostScanner)) }
    }
}

impl ColumnScanner for HostScanner {
    fn decode(
        &self,
        _: Vec<Bytes>,
        _: TextType,
        _: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<ArrayRef>>> {
        refused()
    }

    fn matcher(&self, _: &[&CodePredicate]) -> DeviceResult<Box<dyn ColumnMatcher>> {
        refused()
    }

    fn distinct(&self, _: bool) -> DeviceResult<Arc<dyn DistinctCounter>> {
        Ok(Arc::<HostRows>::default())
    }
}

impl DistinctCounter for HostRows {
    fn add(
        &self,
        blocks: Vec<Bytes>,
        predicates: &[&CodePredicate],
        _: TextType,
        _: &dyn RowMemory,
    ) -> DeviceResult<()> {
        for block in blocks {
            let block = Block::open(block)?;
            let rows = block.decode_all();
            for (row, bound) in rows.offsets.windows(2).enumerate() {
                if block.is_null(row) {
                    *self.num_nulls.lock().unwrap() += u64::from(predicates.is_empty());
                } else if predicates.iter().all(|predicate| meets(predicate, &block, row)) {
                    let text = rows.text[bound[0] as usize..bound[1] as usize].to_vec();
                    *self.counts.lock().unwrap().entry(text).or_default() += 1;
                }
            }
        }
        Ok(())
    }

    fn num_rows(&self) -> u64 {
        self.counts.lock().unwrap().len() as u64
    }

    fn num_nulls(&self) -> u64 {
        *self.num_nulls.lock().unwrap()
    }

    fn most_frequent(&self, num_rows: usize, with_ties: bool, _: TextType) -> DeviceResult<Option<FrequentTexts>> {
        let counts = self.counts.lock().unwrap();
        let mut rows: Vec<(&str, u64)> =
            counts.iter().map(|(text, count)| (std::str::from_utf8(text).unwrap(), *count)).collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let last = rows.get(num_rows - 1).map_or(0, |(_, count)| *count);
        let num_rows = if with_ties { rows.partition_point(|(_, count)| *count >= last) } else { num_rows };
        // Not in the order of their counts, and one row more than needed.
        let found = rows.iter().take(num_rows + 1).rev();
        let (texts, counts): (Vec<&str>, Vec<u64>) = found.copied().unzip();
        Ok(Some(FrequentTexts { texts: Arc::new(StringViewArray::from(texts)), counts }))
    }
}

fn meets(predicate: &CodePredicate, block: &Block<Bytes>, row: usize) -> bool {
    let mask = match &predicate.test {
        CodeTest::IsIn(texts) => {
            let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
            block.rows_equal_to(&texts)
        }
        CodeTest::Like(pattern) => block.rows_like(pattern),
    };
    mask.is_set(row) != predicate.is_negated
}

/// Returns a session with the device `host`, whose plans stay here unless `may_travel`.
pub(super) fn session(host: &Arc<Host>, num_partitions: usize, may_travel: bool) -> SessionContext {
    let devices = DeviceSession::with_devices(FakeDevices::new(DeviceState::Open), Arc::clone(host) as _);
    let mut config = SessionConfig::new().with_target_partitions(num_partitions);
    config.options_mut().optimizer.repartition_file_min_size = 1;
    config.set_extension(Arc::new(devices));
    if may_travel {
        config.set_extension(Arc::new(Spreading { num_workers: 0 }));
    }
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(builder.with_tadoc().build())
}

pub(super) async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

pub(super) async fn plan(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

/// Writes files with a column `c` of texts that come in several files and row groups, with null rows and empty
/// texts, and an ordinary column `n`; and makes them the table `t`.
pub(super) async fn write_files(context: &SessionContext, folder: &str) {
    for file in 0..3 {
        let first = file * 500;
        let text = "CASE value % 7 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'text ' || (value % 1170) END";
        let rows = format!("SELECT {text} AS c, value AS n FROM range({first}, {})", first + 2000);
        let options = "OPTIONS (gsst_columns 'c', gsst_row_group_rows '700')";
        let copy = format!("COPY ({rows}) TO '{folder}/{file}.parquet' STORED AS GSST {options}");
        run(context, &copy).await.unwrap();
    }
    run(context, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{folder}/'")).await.unwrap();
}
