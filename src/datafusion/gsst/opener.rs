//! The opener of the files of a scan. It decides what is read of a file, and how.
//!
//! ```text
//! footer ─▶ filter and projection for this file ─▶ row groups that may match ─▶ file_scan
//! ```
//!
//! A row group belongs to the partition whose byte range contains its first byte. So a file may be
//! cut at any byte.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr_adapter::{PhysicalExprAdapterFactory, replace_columns_with_literals};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use object_store::ObjectMeta;
use object_store::path::Path;

use super::conditions::Conditions;
use super::counters::Counters;
use super::fetch::Objects;
use super::file_scan::{DeviceUse, FileScan};
use super::footers::{FileFacts, read_footer, read_schema};
use super::pruning::possible_row_groups;
use super::read_buffers::ReadBuffers;
use crate::options::{Device, TadocOptions};
use crate::placement::{DeviceSession, Placement};
use crate::throughput::Calibration;
use gsst::parquet::ReadOptions;

/// Settings of a scan, from its session and from the footers of its files.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub(super) options: TadocOptions,
    pub(super) devices: Arc<DeviceSession>,
    pub(super) calibration: Arc<Calibration>,
    pub(super) runtime: Arc<RuntimeEnv>,
    /// URL of the store of the files.
    pub(super) store_url: Arc<str>,
    pub(super) facts: FileFacts,
    pub(super) num_cores: usize,
    pub(super) buffers: Arc<ReadBuffers>,
    /// Files of a scan that was planned on another machine.
    pub(super) planned: Option<Arc<dyn PlannedFiles>>,
}

/// Files of a scan that was planned on another machine.
#[async_trait]
pub trait PlannedFiles: fmt::Debug + Send + Sync {
    /// Returns the length and the version of the file at `location` in the store of the scan.
    ///
    /// # Errors
    /// The errors of the store; an error if the scan has no such file, or if the file is not the one that
    /// was planned.
    async fn find(&self, runtime: &RuntimeEnv, location: &Path) -> Result<ObjectMeta>;
}

/// Opener of the files of one partition.
#[derive(Clone)]
pub(super) struct GsstOpener {
    pub(super) objects: Objects,
    pub(super) table_schema: TableSchema,
    pub(super) projection: ProjectionExprs,
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
    pub(super) batch_size: usize,
    pub(super) adapters: Arc<dyn PhysicalExprAdapterFactory>,
    pub(super) settings: Settings,
    pub(super) placement: Placement,
    pub(super) counters: Counters,
    pub(super) partition: usize,
}

impl FileOpener for GsstOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(Box::pin(async move {
            let scan = opener.plan(file).await?;
            let mut stream = RecordBatchReceiverStreamBuilder::new(scan.output_schema(), 2);
            let batches = stream.tx();
            stream.spawn(async move { scan.run(batches).await });
            Ok(stream.build().boxed())
        }))
    }
}

impl GsstOpener {
    /// Reads the footer, and decides what is read of the file, and how.
    async fn plan(self, file: PartitionedFile) -> Result<FileScan> {
        let file = self.as_planned(file).await?;
        let cache = self.settings.runtime.cache_manager.get_file_metadata_cache();
        let footer = read_footer(&self.objects.store, &file.object_meta, Some(&cache)).await?;
        let schema = read_schema(&footer);
        let (filter, projection) = self.adapted(&file, &schema)?;
        let counters = self.counters.clone();
        counters.start();

        let mut row_groups: Vec<usize> = (0..footer.num_row_groups()).collect();
        if let Some(range) = &file.range {
            let range = range.start as u64..range.end as u64;
            row_groups.retain(|i| range.contains(&footer.row_group_start(*i)));
        }
        let num_row_groups = row_groups.len();
        if let Some(filter) = &filter {
            let errors = &counters.pruning_errors;
            row_groups = possible_row_groups(&footer, &schema, filter, row_groups, errors)?;
        }
        counters.row_groups_pruned.add(num_row_groups - row_groups.len());

        let conditions = match &filter {
            Some(filter) => Conditions::new(filter, &footer, &schema)?,
            None => Conditions::default(),
        };
        let mut decoded = projection.column_indices();
        decoded.extend(conditions.rest.iter().flat_map(collect_columns).map(|c| c.index()));
        decoded.sort_unstable();
        decoded.dedup();
        let mut read = decoded.clone();
        read.extend(conditions.code_predicates.iter().map(|predicate| predicate.field_idx));
        read.extend(conditions.row_filter.iter().flat_map(|filter| filter.fields.clone()));

        let decoded_schema = Arc::new(schema.project(&decoded)?);
        let at_place = |expr| reassign_expr_columns(expr, &decoded_schema);
        let projector = projection.try_map_exprs(at_place)?.make_projector(&decoded_schema)?;
        let Conditions { row_filter, code_predicates, rest } = conditions;
        let options = &self.settings.options;
        let device =
            self.settings.devices.columns().filter(|_| self.placement.is_on_device()).map(|columns| DeviceUse {
                columns: Arc::clone(columns),
                partition: self.partition,
                max_bytes: options.gpu_memory_bytes,
                is_demanded: options.device == Device::Gpu,
            });
        let consumer = MemoryConsumer::new(format!("GsstScan[{}]", self.partition));
        Ok(FileScan {
            object: file.object_meta,
            row_groups,
            ranges_of: read,
            options: ReadOptions {
                projection: Some(decoded),
                predicates: code_predicates,
                row_filter,
                batch_rows: self.batch_size,
                text_as_views: true,
            },
            rest: rest.map(at_place).transpose()?,
            projector: Arc::new(projector),
            reservation: Arc::new(consumer.register(&self.settings.runtime.memory_pool)),
            objects: self.objects,
            store_url: Arc::clone(&self.settings.store_url),
            stores: Arc::clone(self.settings.devices.stores()),
            written_width: options.gsst_code_bits,
            footer,
            device,
            counters,
        })
    }

    /// Returns `file` as it is now, if another machine planned the scan.
    ///
    /// # Errors
    /// The errors of the store; an error if the file is not the one that was planned.
    async fn as_planned(&self, file: PartitionedFile) -> Result<PartitionedFile> {
        let Some(planned) = &self.settings.planned else { return Ok(file) };
        let location = &file.object_meta.location;
        let object_meta = planned.find(&self.settings.runtime, location).await?;
        Ok(PartitionedFile { object_meta, ..file })
    }

    /// Returns the filter and the projection on the columns of this file. Columns of the path
    /// become literals, missing columns become null, and other types are cast.
    fn adapted(
        &self,
        file: &PartitionedFile,
        schema: &SchemaRef,
    ) -> Result<(Option<Arc<dyn PhysicalExpr>>, ProjectionExprs)> {
        let names = self.table_schema.table_partition_cols().iter().map(|field| field.name().clone());
        let literals: HashMap<String, ScalarValue> = names.zip(file.partition_values.iter().cloned()).collect();
        let adapter = self.adapters.create(Arc::clone(self.table_schema.file_schema()), Arc::clone(schema))?;
        let simplifier = PhysicalExprSimplifier::new(schema);
        let adapt = |expr| {
            let expr = replace_columns_with_literals(expr, &literals)?;
            simplifier.simplify(adapter.rewrite(expr)?)
        };
        let filter = self.filter.clone().map(adapt).transpose()?;
        Ok((filter, self.projection.clone().try_map_exprs(adapt)?))
    }
}
