//! An object store in memory that notes what is read.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// See the module's description.
#[derive(Debug, Clone)]
pub struct NotingStore {
    inner: Arc<InMemory>,
    reads: Arc<Mutex<Vec<String>>>,
}

impl NotingStore {
    pub fn new(inner: InMemory) -> Self {
        Self { inner: Arc::new(inner), reads: Arc::default() }
    }

    /// A store with the same objects, of which neither sees what happens to the other.
    pub fn fork(&self) -> Self {
        Self::new(self.inner.fork())
    }

    /// The objects that were read since this was asked last, each as often as it was.
    pub fn take_reads(&self) -> Vec<String> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }
}

impl fmt::Display for NotingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("noting://store")
    }
}

#[async_trait]
impl ObjectStore for NotingStore {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, o: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(at, bytes, o).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        if !options.head {
            self.reads.lock().unwrap().push(at.to_string());
        }
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        at: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(at)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
