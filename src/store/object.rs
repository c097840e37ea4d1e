//! A storage in a prefix of an object store.
//!
//! A version is put with `PutMode::Create`. Stores that do not support it (S3 with `conditional_put` disabled) refuse,
//! so the first commit fails. `object_store` 0.13 reports the answers as follows:
//!
//! | answer | reported as | reaction |
//! | --- | --- | --- |
//! | 412, 304, or 409 (another is being put) | `Exists` | read it: ours, another's, or none |
//! | 500, 503, 429, time-out, broken connection | `Transient` | put the same bytes again |
//! | 401, 403, 501, other 3xx and 4xx, invalid names | `Permanent` | report |
//!
//! Names of segment files are unique. So if a whole file of that name exists, it was written,
//! whatever the store answered. Listings do not show the parts of unfinished uploads. Stores remove
//! them by their own rule (S3: AbortIncompleteMultipartUpload).

use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UploadPart,
};

use crate::local::too_large;
use crate::storage::{ByteStream, RetryPolicy, SEGMENTS, Storage, StorageError, StorageResult, StoredFile, retrying};

/// Length of a part of an upload, in bytes. Objects up to this size are put at once.
const PART_BYTES: usize = 8 << 20;
/// Largest number of parts of an upload that are in flight.
const MAX_PARTS: usize = 4;

/// A prefix of an object store. For the local disk, use [`LocalFolder`](super::LocalFolder), which
/// is durable, instead of `object_store`'s local file system, which is not.
#[derive(Debug, Clone)]
pub struct ObjectPrefix {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    location: String,
}

impl ObjectPrefix {
    /// Creates the storage below `prefix` in `store`.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        let location = format!("{store}/{prefix}");
        Self { store, prefix, location }
    }

    /// Sets the name of the location in messages: the URL that the user wrote.
    pub fn with_location(mut self, location: impl Into<String>) -> Self {
        self.location = location.into();
        self
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.parts().chain(Path::from(name).parts()).collect()
    }

    /// Returns true if the file at `path`, which only we write, exists with its full length.
    async fn is_written(&self, path: &Path, len_bytes: u64) -> bool {
        self.store.head(path).await.is_ok_and(|meta| meta.size == len_bytes)
    }

    async fn begin_upload(&self, path: &Path) -> StorageResult<Upload> {
        let begin = || async { self.store.put_multipart(path).await.map_err(failed) };
        retrying(RetryPolicy::default(), begin).await.map(Upload::new)
    }

    /// Removes objects in any order, many per request if the store supports it (S3: 1,000).
    async fn remove_all(&self, paths: Vec<Path>) -> StorageResult<()> {
        let paths = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut removed = self.store.delete_stream(paths);
        while let Some(outcome) = removed.next().await {
            match outcome {
                Err(Error::NotFound { .. }) | Ok(_) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    fn stored(&self, meta: ObjectMeta) -> Option<StoredFile> {
        let mut rest = meta.location.prefix_match(&self.prefix)?;
        let folder = rest.next()?;
        let file = rest.next()?;
        let end = rest.next();
        let name = format!("{}/{}", folder.as_ref(), file.as_ref());
        end.is_none().then(|| StoredFile { name, len_bytes: meta.size, modified: meta.last_modified.into() })
    }
}

fn failed(error: Error) -> StorageError {
    match error {
        Error::NotFound { .. } => StorageError::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => StorageError::Exists,
        Error::Generic { .. } if is_refused(&error.to_string()) => StorageError::Permanent(error.into()),
        Error::Generic { .. } | Error::JoinError { .. } => StorageError::Transient(error.into()),
        error => StorageError::Permanent(error.into()),
    }
}

/// Converts an error in a case where `NotFound` means that the folder, or the bucket, does not
/// exist.
fn failed_in_folder(error: Error) -> StorageError {
    match error {
        Error::NotFound { .. } => StorageError::Permanent(error.into()),
        error => failed(error),
    }
}

/// Returns true if `message` is of an answer that would be the same the next time, such as a wrong
/// region or an expired token. `object_store` reports these only in words. An answer that is not
/// recognized causes a retry, which costs time.
fn is_refused(message: &str) -> bool {
    let status = message.split("non-2xx status code: ").nth(1).and_then(|rest| rest.get(..3));
    let status = status.and_then(|status| status.parse().ok());
    let may_pass = matches!(status, Some(408 | 425 | 429)) || message.contains("RequestTimeout");
    let is_refusal = status.is_some_and(|status: u16| (300..500).contains(&status));
    is_refusal && !may_pass || message.contains("redirect without LOCATION")
}

#[async_trait]
impl Storage for ObjectPrefix {
    fn location(&self) -> String {
        self.location.clone()
    }

    async fn prepare(&self) -> StorageResult<()> {
        Ok(())
    }

    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> StorageResult<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.store.put_opts(&self.path(name), bytes.into(), options).await;
        put.map(|_| ()).map_err(failed_in_folder)
    }

    async fn put_stream(&self, name: &str, mut chunks: ByteStream) -> StorageResult<()> {
        let path = self.path(name);
        let mut buffer = BytesMut::new();
        let mut len_bytes = 0;
        let mut upload = None;
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(chunk) => {
                    len_bytes += chunk.len() as u64;
                    buffer.extend_from_slice(&chunk);
                }
                Err(error) => {
                    abort(upload).await;
                    return Err(StorageError::Permanent(error.into()));
                }
            }
            while buffer.len() > PART_BYTES {
                let mut parts = match upload.take() {
                    Some(parts) => parts,
                    None => self.begin_upload(&path).await?,
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
            return match self.store.put(&path, rest).await {
                Err(error) if !self.is_written(&path, len_bytes).await => Err(failed_in_folder(error)),
                // Either the put succeeded, or only its answer was lost.
                _ => Ok(()),
            };
        };
        match parts.finish(rest).await {
            Err(error) if !self.is_written(&path, len_bytes).await => {
                abort(Some(parts)).await;
                Err(failed_in_folder(error))
            }
            _ => Ok(()),
        }
    }

    async fn get(&self, name: &str, max_bytes: u64) -> StorageResult<Bytes> {
        let object = self.store.get(&self.path(name)).await.map_err(failed)?;
        if object.meta.size > max_bytes { Err(too_large(max_bytes)) } else { object.bytes().await.map_err(failed) }
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
        let files: Vec<ObjectMeta> = listing.try_collect().await.map_err(failed_in_folder)?;
        Ok(files.into_iter().filter_map(|meta| self.stored(meta)).collect())
    }

    async fn remove(&self, folder: &str, names: &[String]) -> StorageResult<()> {
        let paths = names.iter().map(|name| self.path(name)).collect();
        if folder == SEGMENTS {
            return self.remove_all(paths).await;
        }
        for path in paths {
            self.remove_all(vec![path]).await?;
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
        // If a store cannot abort, the unfinished upload stays invisible all the same.
        let _aborted = parts.abort().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_be_refused_again_is_told_from_what_may_pass() {
        let for_s3 = |status: &str| {
            let source = format!(
                "Error performing PUT http://s3/b/versions/2 in 1ms - Server returned non-2xx \
                 status code: {status}: <Error><Code>Some</Code></Error>"
            );
            failed(Error::Generic { store: "S3", source: source.into() })
        };
        for refused in ["400 Bad Request", "416 Range", "301 Moved Permanently"] {
            assert!(matches!(for_s3(refused), StorageError::Permanent(_)), "{refused}");
        }
        for passes in ["500 Internal Server Error", "503 Slow Down", "429 Too Many Requests"] {
            assert!(matches!(for_s3(passes), StorageError::Transient(_)), "{passes}");
        }
        assert!(!is_refused("non-2xx status code: 400 Bad Request: RequestTimeout"));
        assert!(!is_refused("connection reset by peer"));
        assert!(!is_refused("non-2xx status code: "));
    }
}
