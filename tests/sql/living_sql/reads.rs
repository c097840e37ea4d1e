//! An object store in memory that records reads.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};

/// An object store in memory that records which objects are read.
#[derive(Debug, Clone)]
pub struct NotingStore {
    inner: Arc<InMemory>,
    reads: Arc<Mutex<Vec<String>>>,
    /// Rounds that are over: a read that begins after the end of one is in the next one.
    rounds: Arc<Mutex<usize>>,
    latency: Duration,
}

impl NotingStore {
    pub fn new(inner: InMemory) -> Self {
        Self { inner: Arc::new(inner), reads: Arc::default(), rounds: Arc::default(), latency: Duration::ZERO }
    }

    /// Returns the store with reads that take `latency`.
    pub fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Returns the number of rounds of reads since the last call, each of which waited for the one before.
    pub fn take_rounds(&self) -> usize {
        std::mem::take(&mut self.rounds.lock().unwrap())
    }

    /// Returns a store with the same objects. Later changes of either do not show in the other.
    pub fn fork(&self) -> Self {
        Self::new(self.inner.fork())
    }

    /// Returns the objects that were read since the last call, once for each read.
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

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        if !options.head {
            self.reads.lock().unwrap().push(at.to_string());
        }
        let round = *self.rounds.lock().unwrap() + 1;
        tokio::time::sleep(self.latency).await;
        let read = self.inner.get_opts(at, options).await;
        let mut rounds = self.rounds.lock().unwrap();
        *rounds = round.max(*rounds);
        read
    }

    fn delete_stream(&self, at: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
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
