//! `COPY` and `INSERT` to files of DataFusion's own formats: the files become visible when the statement has
//! succeeded, all of them or none.
//!
//! ```text
//! WholeFilesExec         completes the uploads after the last row, or aborts them
//!   DataSinkExec         writes to WaitingStore: an upload that it completes waits
//!     …
//! ```
//!
//! DataFusion's writers of CSV, JSON, Parquet and Arrow files end a file in the same way when the rows end and when
//! the query fails. So a failed statement would put a valid, shorter file in the place of an old one. The sinks of
//! `STORED AS TADOC` and `STORED AS GSST` wait by themselves. Folders that such a statement has created on the local
//! disk are removed.
//!
//! If the store fails while uploads are completed, the files before that are visible.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::parquet::ParquetSink;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::TryStreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, UploadPart,
};
use tokio::runtime::Handle;
use url::Url;

use super::upload::{NewFolders, Staged};
use crate::plan_methods::passing_methods;
use crate::planning::long_rows::context_with;

/// Bytes of small files of a statement that wait in memory. Further ones wait as uploads.
const MAX_BYTES_IN_MEMORY: usize = 16 << 20;

/// Name of DataFusion's sink of Arrow files, which is private.
const ARROW_SINK: &str = "ArrowFileSink";

/// Optimizer rule that makes the files of a statement visible after its last row.
#[derive(Debug, Default)]
pub(crate) struct WholeFiles;

impl PhysicalOptimizerRule for WholeFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let wait = |node: Arc<dyn ExecutionPlan>| {
            if node.downcast_ref::<DataSinkExec>().is_some_and(|exec| writes_files(exec.sink())) {
                return Ok(Transformed::yes(Arc::new(WholeFilesExec { input: node }) as _));
            }
            Ok(Transformed::no(node))
        };
        plan.transform_up(wait).data()
    }

    fn name(&self) -> &str {
        "tadoc_whole_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns true if `sink` is one of DataFusion's sinks of files.
pub(super) fn writes_files(sink: &dyn DataSink) -> bool {
    let is_known = sink.is::<CsvSink>() || sink.is::<JsonSink>() || sink.is::<ParquetSink>();
    is_known || format!("{sink:?}").starts_with(ARROW_SINK)
}

/// Plan node that lets the files of its input, a sink, become visible.
#[derive(Debug)]
struct WholeFilesExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for WholeFilesExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "WholeFilesExec"),
        }
    }
}

impl ExecutionPlan for WholeFilesExec {
    passing_methods!("WholeFilesExec", |_node, input| Ok(Self { input }));

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let objects = Arc::new(Objects::default());
        let context = with_waiting_stores(&context, &objects);
        let rows = self.input.execute(partition, context)?;
        let schema = rows.schema();
        let outcome = async move {
            // The answer of a sink is the number of its rows.
            let written = rows.try_collect::<Vec<_>>().await;
            let ended = objects.take().end(written.is_ok()).await;
            let batches = written?;
            ended.map(|()| stream::iter(batches.into_iter().map(Ok)))
        };
        let rows = stream::once(outcome).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Returns `context` with stores whose uploads wait in `objects`.
fn with_waiting_stores(context: &TaskContext, objects: &Arc<Objects>) -> Arc<TaskContext> {
    let runtime = context.runtime_env();
    let registry = WaitingStores { registry: Arc::clone(&runtime.object_store_registry), objects: Arc::clone(objects) };
    let runtime = RuntimeEnv { object_store_registry: Arc::new(registry), ..runtime.as_ref().clone() };
    context_with(context, context.session_config().clone(), Arc::new(runtime))
}

/// An object that is not visible yet.
#[derive(Debug)]
enum Object {
    /// A small object in memory.
    Small { store: Arc<dyn ObjectStore>, path: Path, payload: PutPayload, options: PutOptions },
    /// An upload whose parts are stored.
    Upload(Staged),
}

impl Object {
    async fn complete(self) -> Result<()> {
        match self {
            Self::Small { store, path, payload, options } => {
                store.put_opts(&path, payload, options).await?;
                Ok(())
            }
            Self::Upload(upload) => upload.complete().await,
        }
    }

    async fn abort(self) {
        if let Self::Upload(upload) = self {
            upload.abort().await;
        }
    }
}

/// The objects of a statement. If they are dropped before they are completed, they are discarded.
#[derive(Debug, Default)]
struct Objects(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Objects that the sink has written whole.
    whole: Vec<Object>,
    /// Uploads that the sink has given up.
    given_up: Vec<Object>,
    bytes_in_memory: usize,
    folders: NewFolders,
}

impl Objects {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `num_bytes` of the memory for small objects, if so much is left.
    fn take_memory(&self, num_bytes: usize) -> bool {
        let mut state = self.state();
        let has_room = state.bytes_in_memory + num_bytes <= MAX_BYTES_IN_MEMORY;
        if has_room {
            state.bytes_in_memory += num_bytes;
        }
        has_room
    }

    fn take(&self) -> State {
        std::mem::take(&mut *self.state())
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let state = self.take();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(state.end(false));
        }
    }
}

impl State {
    /// Makes the objects visible, if the sink has `succeeded`, and discards the others.
    async fn end(self, succeeded: bool) -> Result<()> {
        let Self { whole, given_up, folders, .. } = self;
        let mut completed = Ok(());
        for object in whole {
            if succeeded && completed.is_ok() {
                completed = object.complete().await;
            } else {
                object.abort().await;
            }
        }
        for object in given_up {
            object.abort().await;
        }
        // Behind the files in them.
        drop(folders);
        completed
    }
}

/// The stores of a session, whose uploads wait.
#[derive(Debug)]
struct WaitingStores {
    registry: Arc<dyn ObjectStoreRegistry>,
    objects: Arc<Objects>,
}

impl ObjectStoreRegistry for WaitingStores {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.registry.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.registry.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let store = self.registry.get_store(url)?;
        Ok(Arc::new(WaitingStore { store, objects: Arc::clone(&self.objects) }))
    }
}

/// A store whose new objects wait.
#[derive(Debug)]
struct WaitingStore {
    store: Arc<dyn ObjectStore>,
    objects: Arc<Objects>,
}

/// Shows the store itself, by whose name local files are known.
impl fmt::Display for WaitingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// The answer to an upload that waits.
const WAITS: PutResult = PutResult { e_tag: None, version: None };

#[async_trait]
impl ObjectStore for WaitingStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.objects.state().folders.create_for(self.store.as_ref(), path);
        let num_bytes = payload.content_length();
        if options.mode != PutMode::Overwrite || self.objects.take_memory(num_bytes) {
            let store = Arc::clone(&self.store);
            let path = path.clone();
            let object = Object::Small { store, path, payload, options };
            self.objects.state().whole.push(object);
            return Ok(WAITS);
        }
        let mut upload = self.put_multipart_opts(path, PutMultipartOptions::default()).await?;
        upload.put_part(payload).await?;
        upload.complete().await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.objects.state().folders.create_for(self.store.as_ref(), path);
        let upload = self.store.put_multipart_opts(path, options).await?;
        let objects = Arc::clone(&self.objects);
        Ok(Box::new(WaitingUpload { upload: Some(upload), objects }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.store.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> object_store::Result<Vec<Bytes>> {
        self.store.get_ranges(path, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.store.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}

/// An upload that waits when its sink completes it.
#[derive(Debug)]
struct WaitingUpload {
    /// The upload, until it is completed or aborted.
    upload: Option<Box<dyn MultipartUpload>>,
    objects: Arc<Objects>,
}

fn ended() -> object_store::Error {
    object_store::Error::Generic { store: "WaitingUpload", source: "the upload has ended".into() }
}

#[async_trait]
impl MultipartUpload for WaitingUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match &mut self.upload {
            Some(upload) => upload.put_part(data),
            None => Box::pin(std::future::ready(Err(ended()))),
        }
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let upload = self.upload.take().ok_or_else(ended)?;
        self.objects.state().whole.push(Object::Upload(Staged::from_upload(upload)));
        Ok(WAITS)
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        let mut upload = self.upload.take().ok_or_else(ended)?;
        upload.abort().await
    }
}

impl Drop for WaitingUpload {
    fn drop(&mut self) {
        let given_up = self.upload.take().map(Staged::from_upload);
        self.objects.state().given_up.extend(given_up.map(Object::Upload));
    }
}
