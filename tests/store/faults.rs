//! An object store in memory with the faults of real ones.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// A fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Status 409: another put of this name is under way.
    Conflict,
    /// Status 412 although nothing is there, as after a failed put of another client.
    Precondition,
    /// Status 500, 503 or a time-out before anything happened.
    Unavailable,
    /// The call took effect, and the answer was lost.
    LostAnswer,
    /// Status 403.
    Denied,
}

/// A store whose calls from `from` to before `end` fail, counted from 0.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    inner: Arc<InMemory>,
    fault: Fault,
    from: usize,
    end: usize,
    num_calls: Arc<AtomicUsize>,
}

impl FaultyStore {
    pub fn new(inner: &Arc<InMemory>, fault: Fault, from: usize, end: usize) -> Self {
        Self { inner: Arc::clone(inner), fault, from, end, num_calls: Arc::default() }
    }

    pub fn num_calls(&self) -> usize {
        self.num_calls.load(Ordering::SeqCst)
    }

    fn fault(&self) -> Option<Fault> {
        let call = self.num_calls.fetch_add(1, Ordering::SeqCst);
        (self.from..self.end).contains(&call).then_some(self.fault)
    }

    /// Returns the failure of a call that only reads. Conditions do not apply to reads.
    fn read_fault(&self) -> Option<Error> {
        self.fault().map(|fault| match fault {
            Fault::Denied => error(fault),
            _ => error(Fault::Unavailable),
        })
    }
}

fn error(fault: Fault) -> Error {
    let path = "object".to_string();
    let source = format!("injected: {fault:?}").into();
    match fault {
        Fault::Conflict => Error::AlreadyExists { path, source },
        Fault::Precondition => Error::Precondition { path, source },
        Fault::Unavailable | Fault::LostAnswer => Error::Generic { store: "faulty", source },
        Fault::Denied => Error::PermissionDenied { path, source },
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty://store")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, o: PutOptions) -> Result<PutResult> {
        let is_conditional = o.mode == object_store::PutMode::Create;
        match self.fault() {
            Some(Fault::LostAnswer) => {
                self.inner.put_opts(at, bytes, o).await?;
                Err(error(Fault::LostAnswer))
            }
            Some(Fault::Conflict | Fault::Precondition) if !is_conditional => Err(error(Fault::Unavailable)),
            Some(fault) => Err(error(fault)),
            None => self.inner.put_opts(at, bytes, o).await,
        }
    }

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        match self.read_fault() {
            Some(error) => Err(error),
            None => self.inner.put_multipart_opts(at, options).await,
        }
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        match self.read_fault() {
            Some(error) => Err(error),
            None => self.inner.get_opts(at, options).await,
        }
    }

    fn delete_stream(&self, at: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.read_fault() {
            Some(error) => futures::stream::once(async { Err(error) }).boxed(),
            None => self.inner.delete_stream(at),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.read_fault() {
            Some(error) => futures::stream::once(async { Err(error) }).boxed(),
            None => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
