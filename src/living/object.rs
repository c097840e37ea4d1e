//! A prefix of an object store as a storage.
//!
//! A version is put with `PutMode::Create`; stores that cannot (S3 with `conditional_put` disabled)
//! refuse, and so does the first commit. What they answer to it, as `object_store` 0.13 tells it:
//!
//! | answer | as | then |
//! | --- | --- | --- |
//! | 412, 304, or 409 (another is being put) | `Exists` | read it: ours, another's, or none |
//! | 500, 503, time-out, broken connection | `Transient` | the same bytes again |
//! | 401, 403, 501, names it cannot have | `Permanent` | report |

use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, UploadPart,
};

use super::local::too_large;
use super::storage::{ByteStream, Storage, StorageError, StorageResult, StoredFile};

/// Bytes of a part of an upload; objects up to this size are put at once.
const PART_BYTES: usize = 8 << 20;
/// Parts of an upload under way at the same time.
const MAX_PARTS: usize = 4;

/// A prefix of an object store. Of the local disk, [`LocalFolder`](super::LocalFolder) is durable;
/// `object_store`'s is not.
#[derive(Debug, Clone)]
pub struct ObjectPrefix {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    place: String,
}

impl ObjectPrefix {
    /// What lies below `prefix` in `store`.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        let place = format!("{store}/{prefix}");
        Self { store, prefix, place }
    }

    /// The same, called `place` in messages: the URL that the user wrote.
    pub fn with_place(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.parts().chain(Path::from(name).parts()).collect()
    }

    fn stored(&self, meta: ObjectMeta) -> Option<StoredFile> {
        let mut rest = meta.location.prefix_match(&self.prefix)?;
        let (folder, file, end) = (rest.next()?, rest.next()?, rest.next());
        let name = format!("{}/{}", folder.as_ref(), file.as_ref());
        end.is_none().then(|| StoredFile {
            name,
            len_bytes: meta.size,
            modified: meta.last_modified.into(),
        })
    }
}

fn failed(error: Error) -> StorageError {
    match error {
        Error::NotFound { .. } => StorageError::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            StorageError::Exists
        }
        Error::Generic { .. } | Error::JoinError { .. } => StorageError::Transient(error.into()),
        error => StorageError::Permanent(error.into()),
    }
}

#[async_trait]
impl Storage for ObjectPrefix {
    fn place(&self) -> String {
        self.place.clone()
    }

    async fn prepare(&self) -> StorageResult<()> {
        Ok(())
    }

    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> StorageResult<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.store.put_opts(&self.path(name), bytes.into(), options).await;
        put.map(|_| ()).map_err(failed)
    }

    async fn put_stream(&self, name: &str, mut chunks: ByteStream) -> StorageResult<()> {
        let path = self.path(name);
        let mut buffer = BytesMut::new();
        let mut upload = None;
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(chunk) => buffer.extend_from_slice(&chunk),
                Err(error) => {
                    abort(upload).await;
                    return Err(StorageError::Permanent(error.into()));
                }
            }
            while buffer.len() > PART_BYTES {
                let mut parts = match upload.take() {
                    Some(parts) => parts,
                    None => Upload::new(self.store.put_multipart(&path).await.map_err(failed)?),
                };
                let part = buffer.split_to(PART_BYTES).freeze();
                let put = parts.put(part.into()).await;
                upload = Some(parts);
                if let Err(error) = put {
                    abort(upload).await;
                    return Err(failed(error));
                }
            }
        }
        let rest = PutPayload::from(buffer.freeze());
        let Some(mut parts) = upload else {
            return self.store.put(&path, rest).await.map(|_| ()).map_err(failed);
        };
        let done = parts.finish(rest).await;
        if let Err(error) = done {
            abort(Some(parts)).await;
            return Err(failed(error));
        }
        Ok(())
    }

    async fn get(&self, name: &str, max_bytes: u64) -> StorageResult<Bytes> {
        let object = self.store.get(&self.path(name)).await.map_err(failed)?;
        match object.meta.size > max_bytes {
            true => Err(too_large(max_bytes)),
            false => object.bytes().await.map_err(failed),
        }
    }

    async fn exists(&self, name: &str) -> StorageResult<bool> {
        match self.store.head(&self.path(name)).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    async fn list(&self, folder: &str, after: Option<&str>) -> StorageResult<Vec<StoredFile>> {
        let prefix = self.path(folder);
        let listing = match after {
            Some(after) => self.store.list_with_offset(Some(&prefix), &self.path(after)),
            None => self.store.list(Some(&prefix)),
        };
        let files: Vec<ObjectMeta> = listing.try_collect().await.map_err(failed)?;
        Ok(files.into_iter().filter_map(|meta| self.stored(meta)).collect())
    }

    async fn remove(&self, _folder: &str, names: &[String]) -> StorageResult<()> {
        for name in names {
            match self.store.delete(&self.path(name)).await {
                Err(Error::NotFound { .. }) | Ok(()) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }
}

/// An upload in parts.
struct Upload {
    parts: Box<dyn MultipartUpload>,
    under_way: FuturesUnordered<UploadPart>,
}

impl Upload {
    fn new(parts: Box<dyn MultipartUpload>) -> Self {
        Self { parts, under_way: FuturesUnordered::new() }
    }

    async fn put(&mut self, part: PutPayload) -> Result<(), Error> {
        if self.under_way.len() >= MAX_PARTS {
            self.under_way.try_next().await?;
        }
        self.under_way.push(self.parts.put_part(part));
        Ok(())
    }

    async fn finish(&mut self, rest: PutPayload) -> Result<(), Error> {
        self.put(rest).await?;
        while self.under_way.try_next().await?.is_some() {}
        self.parts.complete().await.map(|_| ())
    }
}

async fn abort(upload: Option<Upload>) {
    if let Some(Upload { mut parts, under_way }) = upload {
        drop(under_way);
        // A store that cannot abort shows nothing either way.
        let _aborted = parts.abort().await;
    }
}
