//! The door: the registry of stores of a guarded session.
//!
//! ```text
//! get_store(file://…)     ─▶ RootedFiles
//! get_store(scheme://…)   ─▶ Walled(a store of the host program, or one with a checking connector)
//! get_store(tadoc-safe:)  ─▶ an error that holds the sandbox
//! ```
//!
//! A registry is asked for the store of a server, without a path, and keeps it. So the door checks the server, and the
//! stores that it hands out check each path. The door never hands out a bare store.
//!
//! This crate has to know if an environment is guarded, also if the registry is wrapped in one that counts or caches.
//! The trait has no other question than that for a store. So the door answers the scheme `tadoc-safe` with an error
//! that holds the sandbox.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult,
};
use url::Url;

use super::Sandbox;
use super::files::RootedFiles;
use super::refusal::{Refusal, Refused};
use crate::safety::urls::{check_user, server_of};

/// Question for the sandbox of an environment.
const PROBE: &str = "tadoc-safe";

/// Answer to the question, as an error.
#[derive(Debug)]
struct Answer(Sandbox);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("safe mode has no store of this name")
    }
}

impl std::error::Error for Answer {}

/// Returns the sandbox that guards `runtime`, if any.
pub(crate) fn sandbox_of(runtime: &RuntimeEnv) -> Option<Sandbox> {
    static URL: LazyLock<Option<Url>> = LazyLock::new(|| Url::parse(&format!("{PROBE}://sandbox")).ok());
    let answer = runtime.object_store_registry.get_store(URL.as_ref()?).err()?;
    let DataFusionError::External(answer) = answer else { return None };
    answer.downcast::<Answer>().ok().map(|answer| answer.0)
}

/// Registry of the stores of a guarded session.
#[derive(Debug)]
pub(super) struct Door {
    sandbox: Sandbox,
    /// Stores by server.
    stores: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
}

impl Door {
    pub(super) fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, stores: Mutex::default() }
    }

    fn wall(&self, server: &str, store: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Walled { server: server.to_owned(), sandbox: self.sandbox.clone(), store })
    }
}

impl ObjectStoreRegistry for Door {
    /// Keeps a store of the host program. Local files keep the store that checks them.
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.insert(server_of(url), store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        match url.scheme() {
            PROBE => return Err(DataFusionError::External(Box::new(Answer(self.sandbox.clone())))),
            "file" => return Ok(Arc::new(RootedFiles::new(self.sandbox.clone()))),
            _ => {}
        }
        check_user(url)?;
        self.sandbox.prefixes.check_server(url)?;
        if url.scheme().starts_with("http") {
            self.sandbox.check_host(url)?;
        }
        let server = server_of(url);
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(&server) {
            return Ok(self.wall(&server, Arc::clone(store)));
        }
        let store = made_store(&self.sandbox, url)?;
        stores.insert(server.clone(), Arc::clone(&store));
        Ok(self.wall(&server, store))
    }
}

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure", feature = "http"))]
use super::connector::made_store;

#[cfg(not(any(feature = "s3", feature = "gcs", feature = "azure", feature = "http")))]
fn made_store(_sandbox: &Sandbox, url: &Url) -> Result<Arc<dyn ObjectStore>> {
    let scheme = url.scheme();
    datafusion::common::plan_err!(
        "no object store for {scheme}://…: register one on the session, or build datafusion-tadoc \
         with the feature for {scheme} (s3, gcs, azure or http), or tadoc with `--features full`"
    )
}

/// A store of which only allowed paths are visible.
#[derive(Debug)]
struct Walled {
    server: String,
    sandbox: Sandbox,
    store: Arc<dyn ObjectStore>,
}

impl Walled {
    fn check(&self, path: &Path) -> Result<(), Refused> {
        self.sandbox.prefixes.check_object(&self.server, path)
    }

    fn check_write(&self, path: &Path) -> Result<(), Refused> {
        self.sandbox.check_write(format!("writing {}/{path}", self.server))?;
        self.check(path)
    }
}

impl fmt::Display for Walled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Safe({})", self.server)
    }
}

#[async_trait]
impl ObjectStore for Walled {
    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.check(path)?;
        self.store.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> object_store::Result<Vec<Bytes>> {
        self.check(path)?;
        self.store.get_ranges(path, ranges).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        match self.check(prefix.unwrap_or(&Path::default())) {
            Ok(()) => self.store.list(prefix),
            Err(refused) => refused.into_stream(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.check(prefix.unwrap_or(&Path::default()))?;
        self.store.list_with_delimiter(prefix).await
    }

    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.check_write(path)?;
        self.store.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.check_write(path)?;
        self.store.put_multipart_opts(path, options).await
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        Refused::new(Refusal::Write, format!("removing files of {}", self.server)).into_stream()
    }

    async fn copy_opts(&self, _: &Path, to: &Path, _: CopyOptions) -> object_store::Result<()> {
        Err(Refused::new(Refusal::Write, format!("copying to {}/{to}", self.server)).into())
    }
}
