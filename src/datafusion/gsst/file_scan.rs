//! The scan of a file, or of a part of it, one row group after the other.
//!
//! ```text
//! row group    fetch ─▶ (device) ─▶ decode (blocking) ─▶ rest of filter ─▶ projection ─▶ batches
//! next row group        └ is fetched, and decoded on the device, at the same time
//! ```
//!
//! At most two row groups are in memory, reserved in the session's memory pool. If the pool has no room for the second,
//! it is fetched later.
//!
//! While the rows of one row group are sent, a device decodes the text of the next one, or finds the rows of it that
//! pass:
//!
//! ```text
//! predicates on one column  ─▶ one run over its blocks ─▶ rows that meet all predicates, and their
//!                                                         text if the column is projected
//! several columns           ─▶ one run for each; the reader keeps the rows that are in all results
//! ordinary columns, rest    ─▶ the CPU, for the rows that are left
//! ```
//!
//! Stretches that statistics rule out are not sent. The CPU decodes the selected rows of the other GSST columns of the
//! projection. The pool counts the memory of these rows until it is free. If the device fails, cannot test a predicate
//! (more than 256 states), or the pool has no room, the CPU does the work: the log has the reason, and
//! `device_fallbacks` counts it. If a device was demanded, a failure is an error.

use std::error::Error as StdError;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::parquet::file::reader::ChunkReader;
use datafusion::physical_expr::projection::Projector;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, Time};
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectMeta;
use tokio::sync::mpsc::Sender;

use super::fetch::{FetchedRanges, Objects};
use crate::dynamic_filters::passing;
use crate::errors::{contain_panics, datafusion_error, from_gsst, task_error};
use crate::placement::ObservedStores;
use gsst::CodeWidth;
use gsst::arrow::TextType;
use gsst::parquet::device::{
    ColumnDevice, ColumnScanner, DeviceError, DeviceFault, DeviceResult, DistinctCounter, PendingRows, RowMemory,
};
use gsst::parquet::{CodePredicate, GsstFooter, GsstParquetReader, ReadOptions, StretchMatches};

/// Metrics of a partition.
#[derive(Clone)]
pub(super) struct Counters {
    pub(super) bytes_scanned: Count,
    pub(super) row_groups_pruned: Count,
    pub(super) row_groups_read: Count,
    pub(super) rows_decoded: Count,
    text_bytes_decoded: Count,
    pub(super) device_row_groups: Count,
    pub(super) device_rows_matched: Count,
    pub(super) device_fallbacks: Count,
    pub(super) pruning_errors: Count,
    predicted_mb_per_s: Gauge,
    measured_mb_per_s: Gauge,
    started: Arc<OnceLock<Instant>>,
    pub(super) time_fetching: Time,
    pub(super) time_on_device: Time,
    pub(super) time_decoding: Time,
}

impl Counters {
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        let gauge = |name| MetricBuilder::new(metrics).gauge(name, partition);
        let time = |name| MetricBuilder::new(metrics).subset_time(name, partition);
        Self {
            bytes_scanned: counter("bytes_scanned"),
            row_groups_pruned: counter("row_groups_pruned"),
            row_groups_read: counter("row_groups_read"),
            rows_decoded: counter("rows_decoded"),
            text_bytes_decoded: counter("text_bytes_decoded"),
            device_row_groups: counter("device_row_groups"),
            device_rows_matched: counter("device_rows_matched"),
            device_fallbacks: counter("device_fallbacks"),
            predicted_mb_per_s: gauge("predicted_mb_per_s"),
            measured_mb_per_s: gauge("measured_mb_per_s"),
            started: Arc::default(),
            pruning_errors: counter("pruning_errors"),
            time_fetching: time("time_fetching"),
            time_on_device: time("time_on_device"),
            time_decoding: time("time_decoding"),
        }
    }

    /// Notes the rate that the model predicts for all partitions together.
    pub(super) fn predict(&self, rate_gb_per_s: f64) {
        self.predicted_mb_per_s.set((rate_gb_per_s * 1000.0) as usize);
    }

    /// Starts the clock of the measured rate when the first file is opened.
    pub(super) fn start(&self) {
        self.started.get_or_init(Instant::now);
    }

    /// Counts decoded text, and updates the measured rate of all text so far.
    pub(super) fn count_text(&self, len_bytes: u64) {
        self.text_bytes_decoded.add(len_bytes as usize);
        let Some(started) = self.started.get() else { return };
        let micros = started.elapsed().as_micros().max(1) as usize;
        self.measured_mb_per_s.set(self.text_bytes_decoded.value() / micros);
    }
}

/// The scan of one file, or of a part of it.
#[derive(Clone)]
pub(super) struct FileScan {
    pub(super) objects: Objects,
    pub(super) store_url: Arc<str>,
    /// Rates of stores that the session observes.
    pub(super) stores: Arc<ObservedStores>,
    /// Width of the codes of files that do not say it: that of the settings.
    pub(super) written_width: CodeWidth,
    pub(super) object: ObjectMeta,
    pub(super) footer: GsstFooter,
    pub(super) row_groups: Vec<usize>,
    /// Indexes of the fields whose bytes are fetched.
    pub(super) ranges_of: Vec<usize>,
    pub(super) options: ReadOptions,
    /// The part of the filter that needs decoded rows.
    pub(super) rest: Option<Arc<dyn PhysicalExpr>>,
    pub(super) projector: Arc<Projector>,
    /// True if the projection is one column as the file has it, and all conditions are on codes.
    pub(super) is_only_column: bool,
    pub(super) reservation: Arc<MemoryReservation>,
    pub(super) device: Option<DeviceUse>,
    pub(super) counters: Counters,
}

/// The use of a device by a scan.
#[derive(Debug, Clone)]
pub(super) struct DeviceUse {
    pub(super) columns: Arc<dyn ColumnDevice>,
    pub(super) partition: usize,
    pub(super) max_bytes: u64,
    pub(super) is_demanded: bool,
}

impl DeviceUse {
    /// Returns the scanner of this partition.
    pub(super) fn scanner(&self) -> DeviceResult<Arc<dyn ColumnScanner>> {
        self.columns.scanner(self.partition, self.max_bytes)
    }
}

/// A column that a device decodes: index, type, and the block of each stretch. A stretch of null
/// rows has no block.
type Waiting = (usize, TextType, Vec<Option<Bytes>>, Box<dyn PendingRows<ArrayRef>>);

/// The index of a GSST column, and the rows of each stretch that meet all predicates on it.
pub(super) type ColumnMatches = (usize, Vec<StretchMatches>);

/// Texts of GSST columns, and the rows that meet the predicates on GSST columns.
type DeviceAnswers = (Vec<(usize, Vec<ArrayRef>)>, Vec<ColumnMatches>);

/// Byte ranges of a row group that are to be fetched, and the reservation of their memory.
struct Wanted {
    row_group_idx: usize,
    ranges: Vec<Range<u64>>,
    held: MemoryReservation,
}

/// Bytes of a row group, and the reservation of their memory.
pub(super) struct Fetched {
    pub(super) row_group_idx: usize,
    ranges: FetchedRanges,
    /// Texts of GSST columns that a device has decoded, with an array for each stretch.
    texts: Vec<(usize, Vec<ArrayRef>)>,
    /// Rows that meet the predicates on GSST columns, as found by a device.
    matches: Vec<ColumnMatches>,
    _held: MemoryReservation,
}

impl Fetched {
    /// Returns the block of a GSST column for each stretch, or `None` if all rows of the stretch
    /// are null.
    pub(super) fn blocks(&self, footer: &GsstFooter, column_idx: usize) -> gsst::Result<Vec<Option<Bytes>>> {
        let gsst = footer.gsst();
        let num_stretches = gsst.row_groups()[self.row_group_idx].stretch_rows.len();
        let block = |stretch_idx| {
            let range = gsst.block_range(self.row_group_idx, column_idx, stretch_idx);
            let bytes = range.map(|range| self.ranges.get_bytes(range.start, (range.end - range.start) as usize));
            bytes.transpose().map_err(|error| gsst::Error::external("reading a GSST block", error))
        };
        (0..num_stretches).map(block).collect()
    }
}

impl FileScan {
    /// Returns the schema of the batches.
    pub(super) fn output_schema(&self) -> SchemaRef {
        Arc::clone(self.projector.output_schema())
    }

    /// Reads all row groups. While one is decoded, the bytes of the next one are fetched.
    pub(super) async fn run(self, batches: Sender<Result<RecordBatch>>) -> Result<()> {
        let mut row_groups = self.row_groups.clone().into_iter();
        let mut next: Option<SpawnedTask<Result<Fetched>>> = None;
        loop {
            let fetched = match next.take() {
                Some(fetching) => fetching.join().await.map_err(task_error)??,
                None => match row_groups.next() {
                    Some(row_group_idx) => {
                        let wanted = self.hold(row_group_idx)?;
                        self.fetch(wanted).await?
                    }
                    None => return Ok(()),
                },
            };
            // Without room for two row groups, the next one is fetched later.
            if let Some(&row_group_idx) = row_groups.as_slice().first()
                && let Ok(wanted) = self.hold(row_group_idx)
            {
                row_groups.next();
                let scan = self.clone();
                next = Some(SpawnedTask::spawn(async move { scan.fetch(wanted).await }));
            }
            let scan = self.clone();
            let batches = batches.clone();
            let decoding = SpawnedTask::spawn_blocking(move || {
                let what = scan.object.location.to_string();
                contain_panics(&what, || scan.decode(fetched, &batches)).map_err(datafusion_error)
            });
            if !decoding.join().await.map_err(task_error)??? {
                return Ok(());
            }
        }
    }

    /// Counts the text of those GSST columns of a row group that are read, and updates the measured
    /// rate.
    fn count_text(&self, row_group_idx: usize) {
        let gsst = self.footer.gsst();
        let mut all_text_bytes = 0;
        for (i, column) in gsst.columns().iter().enumerate() {
            let run = gsst.row_groups().get(row_group_idx).and_then(|group| group.runs.get(i));
            let Some(run) = run.filter(|_| self.ranges_of.contains(&column.field_idx)) else {
                continue;
            };
            let block_lens = run.blocks.iter().map(|block| block.statistics.text_len_bytes);
            let text_bytes: u64 = block_lens.sum();
            let width = column.width.unwrap_or(self.written_width);
            self.stores.add_text(&self.store_url, width, text_bytes, run.len_bytes());
            all_text_bytes += text_bytes;
        }
        self.counters.count_text(all_text_bytes);
    }

    /// Reserves the memory of a row group, and returns the ranges to fetch.
    fn hold(&self, row_group_idx: usize) -> Result<Wanted> {
        let ranges = self.footer.ranges(row_group_idx, &self.ranges_of);
        let len_bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let held = self.reservation.new_empty();
        held.try_grow(usize::try_from(len_bytes).unwrap_or(usize::MAX))?;
        Ok(Wanted { row_group_idx, ranges, held })
    }

    async fn fetch(&self, wanted: Wanted) -> Result<Fetched> {
        let Wanted { row_group_idx, ranges, held } = wanted;
        let timer = self.counters.time_fetching.timer();
        let location = &self.object.location;
        let reading = self.stores.begin(&self.store_url, held.size() as u64);
        let fetched = FetchedRanges::fetch(&self.objects, location, self.object.size, &ranges).await?;
        if let Some(reading) = reading {
            reading.end(held.size() as u64);
        }
        timer.done();
        self.counters.bytes_scanned.add(held.size());
        let mut fetched =
            Fetched { row_group_idx, ranges: fetched, texts: Vec::new(), matches: Vec::new(), _held: held };
        let Some(device) = self.device.clone() else { return Ok(fetched) };
        let scan = self.clone();
        let decoding = SpawnedTask::spawn_blocking(move || {
            let _timed = scan.counters.time_on_device.timer();
            (fetched.texts, fetched.matches) = scan.answers_of_device(&device, &fetched)?;
            Ok(fetched)
        });
        decoding.join().await.map_err(task_error)?
    }

    /// Returns a device's results for a row group: the rows that pass, or the text of the projected
    /// GSST columns. They are empty if the CPU does the work.
    fn answers_of_device(&self, device: &DeviceUse, fetched: &Fetched) -> Result<DeviceAnswers> {
        match self.ask_device(device, fetched) {
            Ok(answers) => {
                let is_used = !answers.0.is_empty() || !answers.1.is_empty();
                self.counters.device_row_groups.add(usize::from(is_used));
                Ok(answers)
            }
            Err(error) if device.is_demanded => Err(self.device_error(error)),
            Err(error) => {
                tracing::warn!(file = %self.object.location, %error, "decoding on the CPU");
                self.counters.device_fallbacks.add(1);
                Ok(DeviceAnswers::default())
            }
        }
    }

    fn ask_device(&self, device: &DeviceUse, fetched: &Fetched) -> DeviceResult<DeviceAnswers> {
        let matches = if self.options.predicates.is_empty() { Vec::new() } else { self.matches_from(device, fetched)? };
        // If the device cannot test the filter, most rows that it decodes would be thrown away.
        let is_for_cpu = !self.options.predicates.is_empty() && !device.is_demanded;
        if matches.is_empty() && !is_for_cpu {
            Ok((self.texts_from(device, fetched)?, matches))
        } else {
            Ok((Vec::new(), matches))
        }
    }

    fn texts_from(&self, device: &DeviceUse, fetched: &Fetched) -> DeviceResult<Vec<(usize, Vec<ArrayRef>)>> {
        let gsst = self.footer.gsst();
        let fields = self.options.projection.iter().flatten();
        let columns: Vec<usize> = fields.filter_map(|field| gsst.column_of_field(*field)).collect();
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let scanner = device.scanner()?;
        let mut pending = Vec::new();
        for column_idx in columns {
            let text_type = gsst.columns()[column_idx].text_type.as_view();
            let blocks = fetched.blocks(&self.footer, column_idx)?;
            let present = blocks.iter().flatten().cloned().collect();
            let run = scanner.decode(present, text_type, self.held())?;
            pending.push((column_idx, text_type, blocks, run));
        }
        let stretch_rows = &gsst.row_groups()[fetched.row_group_idx].stretch_rows;
        let texts = |(column_idx, text_type, blocks, pending): Waiting| {
            let mut decoded = pending.wait()?.into_iter();
            let arrays = blocks.iter().zip(stretch_rows).map(|(block, num_rows)| {
                let nulls = || new_null_array(&text_type.data_type(), *num_rows);
                block.as_ref().and_then(|_| decoded.next()).unwrap_or_else(nulls)
            });
            Ok((column_idx, arrays.collect()))
        };
        pending.into_iter().map(texts).collect()
    }

    /// Returns an empty reservation in the session's pool for a run.
    pub(super) fn held(&self) -> Box<Reserved> {
        Box::new(Reserved(self.reservation.new_empty()))
    }

    /// Returns `error` with the name of the file.
    fn in_file(&self, error: tadoc::Error) -> DataFusionError {
        datafusion_error(error).context(format!("reading {}", self.object.location))
    }

    /// Returns `error` of a device with the name of the file, and what the user can do.
    fn device_error(&self, error: DeviceError) -> DataFusionError {
        let file = &self.object.location;
        device_error(error, |error| error.context(format!("reading {file}")))
    }

    /// Decodes a row group and sends its rows. Returns false if the reader has left.
    fn decode(&self, fetched: Fetched, batches: &Sender<Result<RecordBatch>>) -> Result<bool> {
        self.counters.row_groups_read.add(1);
        let in_file = |error| self.in_file(from_gsst(error));
        let mut timer = self.counters.time_decoding.timer();
        let reader = GsstParquetReader::with_footer(fetched.ranges, self.footer.clone());
        let row_group_idx = fetched.row_group_idx;
        let mut rows = reader.read_row_group(row_group_idx, &self.options).map_err(in_file)?;
        for (column_idx, stretches) in fetched.texts {
            rows.set_text(column_idx, stretches).map_err(in_file)?;
        }
        for (column_idx, stretches) in fetched.matches {
            rows.set_matches(column_idx, stretches).map_err(in_file)?;
        }
        self.count_text(row_group_idx);
        for batch in rows {
            let batch = batch.map_err(in_file)?;
            self.counters.rows_decoded.add(batch.num_rows());
            let batch = match &self.rest {
                Some(rest) => filter_record_batch(&batch, &passing(rest, &batch)?)?,
                None => batch,
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let batch = self.projector.project_batch(&batch)?;
            timer.stop();
            if batches.blocking_send(Ok(batch)).is_err() {
                return Ok(false);
            }
            timer.restart();
        }
        Ok(true)
    }
}

impl FileScan {
    /// Returns the index of the GSST column that is all that is read and tested. `None` if the scan reads something
    /// else.
    pub(super) fn only_column(&self) -> Option<usize> {
        let [field_idx] = self.options.projection.as_deref()? else { return None };
        let is_tested_alone = self.options.predicates.iter().all(|predicate| predicate.field_idx == *field_idx);
        self.footer.gsst().column_of_field(*field_idx).filter(|_| self.is_only_column && is_tested_alone)
    }

    /// Adds the rows of a GSST column that meet the predicates to `counter`. While a row group is added, the next one
    /// is fetched. Returns the number of null rows that are in no block, or 0 if there are predicates.
    pub(super) async fn add_rows(self, column_idx: usize, counter: &Arc<dyn DistinctCounter>) -> Result<u64> {
        // The device decodes for the counter, and not for this scan.
        let scan = Self { device: None, ..self };
        let add = |row_group_idx| {
            let scan = scan.clone();
            let counter = Arc::clone(counter);
            async move {
                let wanted = scan.hold(row_group_idx)?;
                let fetched = scan.fetch(wanted).await?;
                let adding = SpawnedTask::spawn_blocking(move || scan.add_row_group(&fetched, column_idx, &*counter));
                adding.join().await.map_err(task_error)?
            }
        };
        let row_groups = futures::stream::iter(scan.row_groups.clone());
        row_groups.map(add).buffer_unordered(2).try_fold(0, async |sum, added| Ok(sum + added)).await
    }

    fn add_row_group(&self, fetched: &Fetched, column_idx: usize, counter: &dyn DistinctCounter) -> Result<u64> {
        let _timed = self.counters.time_on_device.timer();
        let in_file = |error| self.device_error(error);
        let blocks = fetched.blocks(&self.footer, column_idx).map_err(|error| in_file(error.into()))?;
        let text_type = self.footer.gsst().columns()[column_idx].text_type.as_view();
        let predicates = self.predicates_on(column_idx);
        let stretch_rows = &self.footer.gsst().row_groups()[fetched.row_group_idx].stretch_rows;
        let without_block = blocks.iter().zip(stretch_rows).filter(|(block, _)| block.is_none());
        let num_absent: usize = without_block.map(|(_, num_rows)| num_rows).sum();
        let is_possible = self.possible_stretches(fetched.row_group_idx);
        let present = blocks.into_iter().zip(is_possible).filter(|(_, is_possible)| *is_possible);
        let present = present.filter_map(|(block, _)| block).collect();
        counter.add(present, &predicates, text_type, self.held().as_ref()).map_err(in_file)?;
        self.counters.row_groups_read.add(1);
        self.counters.device_row_groups.add(1);
        self.count_text(fetched.row_group_idx);
        Ok(if predicates.is_empty() { num_absent as u64 } else { 0 })
    }
}

/// A column that a device works on. `is_sent` is true for each stretch that was sent.
struct WaitingMatches {
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
    ) -> DeviceResult<Option<WaitingMatches>> {
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
        Ok(Some(WaitingMatches { column_idx, is_sent, pending }))
    }

    fn wait_for(&self, waiting: WaitingMatches) -> DeviceResult<ColumnMatches> {
        let mut found = waiting.pending.wait()?.into_iter();
        let nothing = || StretchMatches { rows: Vec::new(), text: None };
        let matches_in = |&is_sent: &bool| {
            if is_sent { found.next().unwrap_or_else(nothing) } else { nothing() }
        };
        let stretches: Vec<StretchMatches> = waiting.is_sent.iter().map(matches_in).collect();
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

/// Reservation of the memory of a run in the session's pool.
pub(super) struct Reserved(pub(super) MemoryReservation);

impl RowMemory for Reserved {
    fn try_resize(&self, len_bytes: usize) -> Result<(), Box<dyn StdError + Send + Sync>> {
        Ok(self.0.try_resize(len_bytes)?)
    }
}

/// Returns `error` of a device, with what `place` adds and what the user can do.
pub(super) fn device_error(error: DeviceError, place: impl Fn(DataFusionError) -> DataFusionError) -> DataFusionError {
    let help = way_out(&error);
    let error = place(datafusion_error(from_gsst(error.error)));
    match help {
        Some(help) => error.context(help),
        None => error,
    }
}

/// Returns advice for the user if a device that is demanded fails, or `None` for damaged blocks.
fn way_out(error: &DeviceError) -> Option<&'static str> {
    match error.fault {
        DeviceFault::Data => None,
        DeviceFault::DeviceMemory => Some(
            "tadoc.device = gpu; raise tadoc.gpu_memory_bytes, make row groups smaller \
             (gsst_row_group_rows), or SET tadoc.device = 'auto' to let the CPU decode what does not fit",
        ),
        DeviceFault::HostMemory => Some(
            "tadoc.device = gpu; raise the session's memory limit, make row groups smaller \
             (gsst_row_group_rows), or SET tadoc.device = 'auto'",
        ),
        DeviceFault::Lost => Some(
            "tadoc.device = gpu; the device can be used again in a new process; \
             SET tadoc.device = 'auto' to let the CPU decode until then",
        ),
        DeviceFault::Other => {
            Some("tadoc.device = gpu; SET tadoc.device = 'auto' to let the CPU decode what a device cannot")
        }
    }
}
