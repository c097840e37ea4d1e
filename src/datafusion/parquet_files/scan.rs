//! Scans of Parquet files whose errors and panics name the file.
//!
//! ```text
//! Morselizer ─ plan_file(x.parquet) ─▶ MorselPlanner ─ plan ─▶ Morsel ─ into_stream ─▶ rows
//!                                        ▲    └ pending (footer, bytes of pages)
//!                                        └──────┘             each of them carries the file's name
//! ```
//!
//! The last rule of the physical optimizer puts [`NamingSource`] around the source of each scan, so
//! no later rule looks for DataFusion's own source. Plans are displayed unchanged.

use std::sync::Arc;
use std::task::Poll;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::internal_err;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::ObjectStore;

use super::{contain, contain_future};
use crate::declared_orders::check_orders;
use crate::file_scans::{passing_source_methods, with_sources};
use crate::text_files::with_exact_json;

/// Optimizer rule for plans that run here. It makes scans of Parquet files name the file in their errors, those of JSON
/// read declared decimals exactly, and those of all files keep the order that they declare.
#[derive(Debug, Default)]
pub struct NameParquetFiles;

impl PhysicalOptimizerRule for NameParquetFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let named = with_sources(plan, |source| Ok(naming(source)))?;
        check_orders(with_exact_json(named, config)?)
    }

    fn name(&self) -> &str {
        "tadoc_name_parquet_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a source that names files for `source`; `None` if it has no Parquet files, or already is such a source.
fn naming(source: &Arc<dyn FileSource>) -> Option<Arc<dyn FileSource>> {
    let is_plain = source.file_type() == "parquet" && !source.is::<NamingSource>();
    is_plain.then(|| Arc::new(NamingSource(Arc::clone(source))) as _)
}

/// Source of Parquet files in a finished plan. It supports only reading.
struct NamingSource(Arc<dyn FileSource>);

impl FileSource for NamingSource {
    fn create_file_opener(&self, _: Arc<dyn ObjectStore>, _: &FileScanConfig, _: usize) -> Result<Arc<dyn FileOpener>> {
        internal_err!("Parquet files are read in morsels")
    }

    fn create_morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let inner = self.0.create_morselizer(object_store, base_config, partition)?;
        Ok(Box::new(NamingMorselizer(inner)))
    }

    passing_source_methods!(0);

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self(self.0.with_batch_size(batch_size)))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.0.filter()
    }

    fn supports_repartitioning(&self) -> bool {
        self.0.supports_repartitioning()
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.0.reorder_files(files)
    }
}

#[derive(Debug)]
struct NamingMorselizer(Box<dyn Morselizer>);

impl Morselizer for NamingMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let name: Arc<str> = file.object_meta.location.to_string().into();
        let inner = contain(&name, || self.0.plan_file(file))?;
        Ok(NamingPlanner::boxed(inner, &name))
    }
}

/// Planner of the next steps of reading `file`.
#[derive(Debug)]
struct NamingPlanner {
    inner: Box<dyn MorselPlanner>,
    file: Arc<str>,
}

impl NamingPlanner {
    fn boxed(inner: Box<dyn MorselPlanner>, file: &Arc<str>) -> Box<dyn MorselPlanner> {
        Box::new(Self { inner, file: Arc::clone(file) })
    }
}

impl MorselPlanner for NamingPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { inner, file } = *self;
        let Some(mut plan) = contain(&file, || inner.plan())? else { return Ok(None) };
        let morsels = plan.take_morsels().into_iter();
        let morsels = morsels.map(|morsel| NamingMorsel::boxed(morsel, &file)).collect();
        let planners = plan.take_ready_planners().into_iter();
        let planners = planners.map(|planner| Self::boxed(planner, &file)).collect();
        let pending = plan.take_pending_planner();
        let mut named = MorselPlan::new().with_morsels(morsels).with_planners(planners);
        if let Some(pending) = pending {
            named.set_pending_planner(async move {
                let planner = contain_future(&file, pending).await?;
                Ok(Self::boxed(planner, &file))
            });
        }
        Ok(Some(named))
    }
}

/// Morsel of `file` whose bytes are read.
#[derive(Debug)]
struct NamingMorsel {
    inner: Box<dyn Morsel>,
    file: Arc<str>,
}

impl NamingMorsel {
    fn boxed(inner: Box<dyn Morsel>, file: &Arc<str>) -> Box<dyn Morsel> {
        Box::new(Self { inner, file: Arc::clone(file) })
    }
}

impl Morsel for NamingMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { inner, file } = *self;
        let mut rows = match contain(&file, || Ok(inner.into_stream())) {
            Ok(rows) => Some(rows),
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        stream::poll_fn(move |context| {
            let Some(stream) = &mut rows else { return Poll::Ready(None) };
            let polled = contain(&file, || match stream.poll_next_unpin(context) {
                Poll::Ready(Some(batch)) => batch.map(|batch| Poll::Ready(Some(batch))),
                Poll::Ready(None) => Ok(Poll::Ready(None)),
                Poll::Pending => Ok(Poll::Pending),
            });
            polled.map_or_else(
                |error| {
                    // After an error or a panic the stream is not polled again.
                    rows = None;
                    Poll::Ready(Some(Err(error)))
                },
                |poll| poll.map(|batch| batch.map(Ok)),
            )
        })
        .boxed()
    }
}
