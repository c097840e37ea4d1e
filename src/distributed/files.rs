//! Files of a scan that travels: what is said of them, and how a worker finds them again.
//!
//! A file is the one that was planned if it has the same length and version. The version is the e-tag
//! of its store, or the time of its last change. The number of a local file (inode) does not count, so
//! that machines may mount a shared folder, or have copies with the same times. Files of living corpora
//! are written once and have their checksum as e-tag, so no request goes to the store for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use tokio::sync::OnceCell;
use url::{Position, Url};

use crate::message::{FileMessage, RangeMessage};
use crate::{TravelError, refused};
use datafusion_tadoc::mask_secrets;
use datafusion_tadoc::travel::{CorpusCache, OpenFile, PlannedFiles, SourceFile, store_of};
use tadoc::format::OpenLimits;

/// Beginning of the e-tags of files of living corpora.
const OF_SEGMENT: &str = "crc32c-";
/// Number of files that are looked up in parallel.
const FILES_AT_ONCE: usize = 16;

/// Returns the message of a file with its footer.
///
/// # Errors
/// An error if the URL of the file has a user.
pub(super) fn message_of_open(open: &OpenFile) -> Result<FileMessage> {
    let segments = open.segments();
    let segments = segments.map(|range| RangeMessage { start: range.start as u64, end: range.end as u64 });
    Ok(FileMessage { segments, ..message_of(&open.file)? })
}

/// Returns the message of a file.
///
/// # Errors
/// An error if the URL of the file has a user.
pub(super) fn message_of(file: &SourceFile) -> Result<FileMessage> {
    let message = message_of_parts(file.path.clone(), &file.store_url, &file.meta)?;
    Ok(FileMessage { on_disk: file.path_on_disk(), ..message })
}

/// Returns the message of a file that its store reads.
///
/// # Errors
/// An error if the URL of the store has a user.
pub(super) fn message_of_parts(shown: String, store_url: &ObjectStoreUrl, meta: &ObjectMeta) -> Result<FileMessage> {
    check_no_user(store_url.as_ref(), &shown)?;
    Ok(FileMessage {
        shown,
        store_url: store_url.as_str().to_owned(),
        path: meta.location.to_string(),
        len_bytes: meta.size,
        e_tag: meta.e_tag.clone(),
        modified_us: meta.last_modified.timestamp_micros(),
        segments: None,
        on_disk: None,
    })
}

/// Checks that `url` has no credentials.
///
/// # Errors
/// An error that says how to give them to the workers.
pub(super) fn check_no_user(url: &Url, shown: &str) -> Result<()> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(());
    }
    let shown = mask_secrets(shown);
    let way_out = "leave them out and give them to each worker by its environment";
    Err(TravelError::Stays(format!("{shown} has credentials in its URL; {way_out}")).into())
}

/// Files that were found, so that runs of one file ask its store once.
#[derive(Debug, Default)]
pub(super) struct Found(Mutex<HashMap<String, Arc<OnceCell<SourceFile>>>>);

impl Found {
    /// Returns the file of `message`.
    ///
    /// # Errors
    /// The errors of [`find`].
    async fn find(&self, runtime: &RuntimeEnv, message: &FileMessage) -> Result<SourceFile> {
        let FileMessage { store_url, path, len_bytes, e_tag, .. } = message;
        let key = format!("{store_url} {path} {len_bytes} {e_tag:?} {}", message.modified_us);
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(key).or_default())
        };
        cell.get_or_try_init(|| find(runtime, message)).await.cloned()
    }

    /// Returns the files of `messages`.
    ///
    /// # Errors
    /// The errors of [`find`].
    pub(super) async fn find_all(&self, runtime: &RuntimeEnv, messages: &[FileMessage]) -> Result<Vec<SourceFile>> {
        // Boxed: the compiler cannot prove that futures of borrowed messages are `Send`.
        let finds: Vec<_> = messages.iter().map(|message| self.find(runtime, message).boxed()).collect();
        stream::iter(finds).buffered(FILES_AT_ONCE).try_collect().await
    }

    /// Opens the files of `messages` with their footers, restricted to the segments that are meant.
    ///
    /// # Errors
    /// The errors of [`find`] and of footers; an error if a file has no such segments.
    pub(super) async fn open(
        &self,
        cache: &CorpusCache,
        runtime: &Arc<RuntimeEnv>,
        limits: &OpenLimits,
        messages: &[FileMessage],
    ) -> Result<Vec<OpenFile>> {
        let files = self.find_all(runtime, messages).await?;
        let opened = cache.open(runtime, limits, files).await?;
        opened.into_iter().zip(messages).map(|(open, message)| restrict(open, message)).collect()
    }
}

/// Files of a scan of columns that was planned on another machine. Each is looked up once, when it is
/// opened first.
#[derive(Debug)]
pub(super) struct NamedFiles {
    files: HashMap<String, FileMessage>,
    found: Found,
}

impl NamedFiles {
    /// Makes the files of `messages`.
    pub(super) fn new(messages: &[FileMessage]) -> Self {
        let named = |message: &FileMessage| (message.path.clone(), message.clone());
        Self { files: messages.iter().map(named).collect(), found: Found::default() }
    }
}

#[async_trait]
impl PlannedFiles for NamedFiles {
    async fn find(&self, runtime: &RuntimeEnv, location: &Path) -> Result<ObjectMeta> {
        let Some(message) = self.files.get(location.as_ref()) else {
            return refused(format!("{location} is not among the files of the scan"));
        };
        Ok(self.found.find(runtime, message).boxed().await?.meta)
    }
}

/// Returns the file of `message`, as it is now.
///
/// # Errors
/// The errors of the store and of safe mode; an error if the file is not the one that was planned.
async fn find(runtime: &RuntimeEnv, message: &FileMessage) -> Result<SourceFile> {
    let mut file = named(runtime, message)?;
    if file.meta.e_tag.as_ref().is_some_and(|tag| tag.starts_with(OF_SEGMENT)) {
        return Ok(file);
    }
    let store = store_of(runtime, &file)?;
    let found = store.head(&file.meta.location).await;
    let found = found.map_err(|error| DataFusionError::from(error).context(message.shown.clone()))?;
    if !is_planned(message, &found) {
        let was = message.len_bytes;
        let is = found.size;
        let what = if was == is { "it was changed".to_owned() } else { format!("it had {was} bytes, it has {is}") };
        let what = format!("{}: not the file that was planned, {what}", message.shown);
        return Err(TravelError::Changed(what).into());
    }
    file.meta = ObjectMeta { location: file.meta.location, ..found };
    Ok(file)
}

/// Returns the file that `message` names, without looking at it.
fn named(runtime: &RuntimeEnv, message: &FileMessage) -> Result<SourceFile> {
    let Ok(url) = Url::parse(&message.store_url) else {
        return refused(format!("expected the URL of a store, got {:?}", message.store_url));
    };
    check_no_user(&url, &message.shown)?;
    let Ok(location) = Path::parse(&message.path) else {
        return refused(format!("expected a path, got {:?}", message.path));
    };
    let store_url = ObjectStoreUrl::parse(&url[..Position::BeforePath])?;
    let modified = u64::try_from(message.modified_us).unwrap_or_default();
    let modified = UNIX_EPOCH.checked_add(Duration::from_micros(modified)).unwrap_or(UNIX_EPOCH);
    let meta = ObjectMeta {
        location,
        last_modified: modified.into(),
        size: message.len_bytes,
        e_tag: message.e_tag.clone(),
        version: None,
    };
    SourceFile::named(runtime, mask_secrets(&message.shown), store_url, meta, message.on_disk.as_deref())
}

/// Returns true if `found` is the version of the file that was planned.
fn is_planned(planned: &FileMessage, found: &ObjectMeta) -> bool {
    let is_local = planned.store_url.starts_with("file:");
    let same_version = match (&planned.e_tag, &found.e_tag) {
        (Some(one), Some(other)) if is_local => without_number(one) == without_number(other),
        (Some(one), Some(other)) => one == other,
        _ => planned.modified_us == found.last_modified.timestamp_micros(),
    };
    planned.len_bytes == found.size && same_version
}

/// Returns the e-tag of a local file without the number of the file.
fn without_number(tag: &str) -> &str {
    tag.split_once('-').map_or(tag, |(_, rest)| rest)
}

fn restrict(open: OpenFile, message: &FileMessage) -> Result<OpenFile> {
    let Some(range) = &message.segments else { return Ok(open) };
    let segments = &open.footer.segments;
    let num_segments = segments.len() as u64;
    let is_whole = |at: u64| segments.get(at as usize).is_none_or(|segment| !segment.continues);
    let is_run = range.start < range.end
        && range.end <= num_segments
        && (range.start == 0 || is_whole(range.start))
        && is_whole(range.end);
    if !is_run {
        let start = range.start;
        let end = range.end;
        return refused(format!(
            "{}: expected a run of its {num_segments} segments, got {start} to {end}",
            message.shown
        ));
    }
    let start = range.start as usize;
    let end = range.end as usize;
    let first_doc = open.portion(0..start, 0).footer.num_docs();
    Ok(open.portion(start..end, first_doc))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(store_url: &str, e_tag: Option<&str>) -> FileMessage {
        FileMessage {
            store_url: store_url.into(),
            len_bytes: 9,
            e_tag: e_tag.map(str::to_owned),
            modified_us: 7,
            ..FileMessage::default()
        }
    }

    fn found(size: u64, e_tag: Option<&str>, modified_us: u64) -> ObjectMeta {
        ObjectMeta {
            location: Path::default(),
            last_modified: (UNIX_EPOCH + Duration::from_micros(modified_us)).into(),
            size,
            e_tag: e_tag.map(str::to_owned),
            version: None,
        }
    }

    #[test]
    fn the_number_of_a_local_file_does_not_count() {
        let local = planned("file:///", Some("1f-7-9"));
        assert!(is_planned(&local, &found(9, Some("2a-7-9"), 7)));
        assert!(!is_planned(&local, &found(9, Some("1f-8-9"), 8)));
        assert!(!is_planned(&local, &found(8, Some("1f-7-8"), 7)));
        let remote = planned("s3://b/", Some("1f-7-9"));
        assert!(is_planned(&remote, &found(9, Some("1f-7-9"), 0)));
        assert!(!is_planned(&remote, &found(9, Some("2a-7-9"), 7)));
        let web = planned("https://h/", None);
        assert!(is_planned(&web, &found(9, None, 7)) && !is_planned(&web, &found(9, None, 8)));
    }

    #[tokio::test]
    async fn credentials_stay() {
        let runtime = RuntimeEnv::default();
        let message = planned("https://me:secret@h/", None);
        let error = find(&runtime, &message).await.unwrap_err();
        assert!(matches!(TravelError::from_error(&error), Some(TravelError::Stays(_))), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
