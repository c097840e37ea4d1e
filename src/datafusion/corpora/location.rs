//! Locations: from the text that a user writes to files in an object store.
//!
//! ```text
//! c.tadoc            a file below the working directory
//! corpora, corpora/  a folder: its .tadoc files, sub-folders too, in order of path
//! notes/             a living corpus, where the folder holds versions
//! logs/2026-*.tadoc  a glob: * and ? stay inside a path segment, ** crosses, [a-z] is a class
//! s3://b/c.tadoc     a URL, with the same three forms; the store is made on demand
//! ```
//!
//! Locations are resolved when a table is scanned, never during logical planning. If a file or folder has a name with
//! glob characters, that file takes precedence over the glob. Only folders that a glob can match in are read. Below the
//! prefix of an object store all files are listed, but for a glob of one segment. Local files may have any name
//! (`local_files`). A store that the session does not know is built from the URL and the environment of the process
//! (including credentials), and registered. Schemes other than `file` and `memory` require the features `s3`, `gcs`,
//! `azure` and `http` of this crate.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Component, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::{exec_err, plan_datafusion_err, plan_err};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::TryStreamExt;
#[cfg(feature = "http")]
use object_store::ClientOptions;
#[cfg(feature = "http")]
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{GetOptions, GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

use crate::corpora::glob::{Glob, split_glob};
use crate::corpora::local_files::{self, DiskFile, FoundFile, VERSION_EXTENSION, VERSIONS, disk_path};
use crate::errors::{did_you_mean, files_beside, mask_secrets, task_error};
use crate::safety::{Refused, check_container, check_read_text, sandbox_of, store_path};

/// Extension of corpus files, including the dot.
pub(crate) const CORPUS_EXTENSION: &str = ".tadoc";

/// A file that a location resolves to.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Path as shown to the user: the location, or the folder of the location and the path below
    /// it.
    pub path: String,
    /// Store of the file.
    pub store_url: ObjectStoreUrl,
    /// Path in the store, length and version.
    pub meta: ObjectMeta,
    /// Store of the file if that store cannot read it.
    pub(crate) on_disk: Option<DiskFile>,
}

impl SourceFile {
    /// Names a file that another process found, without looking at it. `on_disk` is what
    /// [`path_on_disk`](Self::path_on_disk) returned there.
    ///
    /// # Errors
    /// The errors of safe mode.
    pub fn named(
        runtime: &RuntimeEnv,
        path: String,
        store_url: ObjectStoreUrl,
        meta: ObjectMeta,
        on_disk: Option<&str>,
    ) -> Result<Self> {
        let sandbox = sandbox_of(runtime);
        if let Some(sandbox) = &sandbox {
            sandbox.check_location(&format!("{}{}", store_url.as_str(), meta.location))?;
        }
        // In safe mode only stores that check locations read files.
        let on_disk = on_disk.filter(|_| sandbox.is_none());
        let on_disk = on_disk.and_then(|path| DiskFile::from_path(disk_path(path)));
        Ok(Self { path, store_url, meta, on_disk })
    }

    /// Returns the path on disk, if the store of local files cannot read it.
    pub fn path_on_disk(&self) -> Option<String> {
        self.on_disk.as_ref().map(DiskFile::shown)
    }

    /// Returns the key of this version of the file. Files with equal keys have equal bytes.
    pub(crate) fn version_key(&self) -> String {
        let version = match &self.meta.e_tag {
            Some(tag) => tag.clone(),
            None => self.meta.last_modified.timestamp_micros().to_string(),
        };
        let url: &str = self.store_url.as_str();
        format!("{url}{}#{}#{version}", self.meta.location, self.meta.size)
    }
}

/// Kind of files that a location must resolve to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Corpora. A folder stands for its `.tadoc` files. The location may have been meant as the
    /// name of a table.
    Corpora,
    /// Corpora, where a location can only name files.
    CorpusFiles,
    /// Any files. A folder stands for all files in it that are not hidden.
    Files,
}

impl Wanted {
    fn accepts(self, relative: &str) -> bool {
        match self {
            Self::Corpora | Self::CorpusFiles => relative.ends_with(CORPUS_EXTENSION),
            Self::Files => !relative.split('/').any(|part| part.starts_with('.')),
        }
    }
}

/// Returns the files of `location`, at least one, in order of path.
///
/// # Errors
/// A plan error that lists what was tried.
pub(crate) async fn resolve_files(runtime: &RuntimeEnv, location: &str, wanted: Wanted) -> Result<Vec<SourceFile>> {
    let parsed = ParsedLocation::parse_in(runtime, location)?;
    if wanted == Wanted::Files {
        check_read_text(runtime)?;
    }
    let location = &*mask_secrets(location);
    let (mut found, is_file) = match &parsed.disk {
        Some(path) => found_on_disk(path, parsed.glob.as_ref())
            .await
            .map_err(|error| plan_datafusion_err!("{location}: cannot look it up in the file system: {error}"))?,
        None => found_in_store(runtime, &parsed, location).await?,
    };
    if is_file && let Some(file) = found.pop() {
        return Ok(vec![parsed.file(location.to_string(), file)]);
    }
    found.sort_unstable_by(|a, b| a.relative.cmp(&b.relative));
    let num_below = found.len();
    let names: Vec<String> = found.iter().map(|file| file.relative.clone()).collect();
    let living = LivingRoots::among(&names);
    let mut files = Vec::new();
    for (file, relative) in found.into_iter().zip(&names) {
        let accepted = match &parsed.glob {
            Some(glob) => glob.is_match(relative),
            None => wanted.accepts(relative),
        };
        if let Some(root) = living.root_of(relative)
            && accepted
            && wanted != Wanted::Files
        {
            let root = parsed.display(root);
            return plan_err!(
                "{location}: {} is a living corpus; query it by that name, not with other files",
                root.trim_end_matches('/')
            );
        }
        if accepted {
            files.push(parsed.file(parsed.display(relative), file));
        }
    }
    if files.is_empty() {
        // A guarded session tells nothing about files beside those that it may read.
        let beside = sandbox_of(runtime).is_none().then(|| files_beside(location));
        let similar = beside.and_then(|files| did_you_mean(location, files));
        return Err(nothing_found(location, &parsed, wanted, num_below, similar));
    }
    Ok(files)
}

/// Checks that a guarded session may read at `location`.
///
/// # Errors
/// A refusal; a plan error if `location` is not a location.
pub(crate) fn check_location(runtime: &RuntimeEnv, location: &str) -> Result<()> {
    match sandbox_of(runtime) {
        Some(_) => ParsedLocation::parse_in(runtime, location).map(drop),
        None => Ok(()),
    }
}

/// Returns the file at `path` and true, or the files below it and false. Only folders that `glob` can
/// match in are read.
async fn found_on_disk(path: &std::path::Path, glob: Option<&Glob>) -> io::Result<(Vec<FoundFile>, bool)> {
    if glob.is_none()
        && let Some(file) = local_files::find(path.to_owned()).await?
    {
        return Ok((vec![file], true));
    }
    Ok((local_files::list(path.to_owned(), glob.cloned()).await?, false))
}

/// Returns the file at `parsed` in its store and true, or the files below it and false.
async fn found_in_store(
    runtime: &RuntimeEnv,
    parsed: &ParsedLocation,
    location: &str,
) -> Result<(Vec<FoundFile>, bool)> {
    let store = object_store(runtime, &parsed.url)?;
    let explain = |error: object_store::Error| match Refused::from_error(&error) {
        Some(refused) => refused.clone().into(),
        None => {
            let store = parsed.store_name();
            plan_datafusion_err!("{location}: cannot look it up in {store}: {error}")
        }
    };
    let file = |meta: ObjectMeta| {
        let relative = parsed.relative(&meta.location).to_string();
        FoundFile { relative, meta, on_disk: None }
    };
    if parsed.glob.is_none() && !parsed.path.as_ref().is_empty() {
        match store.head(&parsed.path).await {
            Ok(meta) => return Ok((vec![file(meta)], true)),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(explain(error)),
        }
    }
    let is_local = parsed.url.scheme() == "file";
    let listed = match &parsed.glob {
        Some(glob) if glob.is_flat() || is_local && !glob.is_deep() => {
            listed_by_folder(store.as_ref(), parsed, glob).await
        }
        _ => store.list(folder_of(&parsed.path)).try_collect().await,
    };
    let found: Vec<ObjectMeta> = listed.map_err(|error| {
        if parsed.is_on_web() && Refused::from_error(&error).is_none() {
            plan_datafusion_err!(
                "{location}: the server has no such file, and lists no folders ({error}); name a file \
                 that is there"
            )
        } else {
            explain(error)
        }
    })?;
    Ok((found.into_iter().map(file).collect(), false))
}

/// Lists the folders below `parsed` that `glob` can match in, one by one.
async fn listed_by_folder(
    store: &dyn ObjectStore,
    parsed: &ParsedLocation,
    glob: &Glob,
) -> object_store::Result<Vec<ObjectMeta>> {
    let mut listed = store.list_with_delimiter(folder_of(&parsed.path)).await?;
    let mut files = std::mem::take(&mut listed.objects);
    let mut folders = listed.common_prefixes;
    while let Some(folder) = folders.pop() {
        let is_entered = glob.enters(parsed.relative(&folder));
        let may_be_living = folder.filename() == Some(VERSIONS);
        if !is_entered && !may_be_living {
            continue;
        }
        match store.list_with_delimiter(Some(&folder)).await {
            Ok(listed) => {
                files.extend(listed.objects);
                folders.extend(listed.common_prefixes);
            }
            // The folder was removed meanwhile, or nothing in it can match.
            Err(object_store::Error::NotFound { .. }) => {}
            Err(_) if !is_entered => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// Returns `path` as a prefix of listings; `None` for the root of a store.
fn folder_of(path: &Path) -> Option<&Path> {
    Some(path).filter(|path| !path.as_ref().is_empty())
}

/// Returns the store behind `url`. Creates and registers it if the session does not know it. The
/// registry of a guarded session makes its stores itself.
///
/// # Errors
/// The errors of [`made_store`]; a store that safe mode refuses.
pub fn object_store(runtime: &RuntimeEnv, url: &Url) -> Result<Arc<dyn ObjectStore>> {
    match runtime.object_store_registry.get_store(url) {
        Ok(store) => return Ok(store),
        Err(error) if sandbox_of(runtime).is_some() => return Err(error),
        Err(_) => {}
    }
    let store = made_store(url)?;
    runtime.register_object_store(url, Arc::clone(&store));
    Ok(store)
}

/// Makes the store behind `url`, with settings and credentials of the environment of the process.
///
/// # Errors
/// A plan error that names the feature for the scheme, or the form of a URL of Azure.
pub fn made_store(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    check_container(url)?;
    let store = match url.scheme() {
        "http" | "https" => web_store(url),
        _ => {
            // Configuration keys of the stores are environment variables in lower case; others are
            // ignored.
            let environment = std::env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
            object_store::parse_url_opts(url, environment).map(|(store, _)| store)
        }
    };
    store.map(Arc::from).map_err(|error| {
        let scheme = url.scheme();
        plan_datafusion_err!(
            "no object store for {scheme}://…: {error}; register one on the session, or build \
             datafusion-tadoc with the feature for {scheme} (s3, gcs, azure or http), or tadoc with `--features full`"
        )
    })
}

/// Makes the store of a web server. Buckets behind `https://` are read as any web server is, without
/// credentials.
#[cfg(feature = "http")]
fn web_store(url: &Url) -> object_store::Result<Box<dyn ObjectStore>> {
    // A URL with http:// explicitly allows plain connections.
    let options = ClientOptions::new().with_allow_http(url.scheme() == "http");
    let server = &url[..url::Position::BeforePath];
    let builder = HttpBuilder::new().with_url(server).with_client_options(options);
    Ok(Box::new(builder.build()?))
}

#[cfg(not(feature = "http"))]
fn web_store(url: &Url) -> object_store::Result<Box<dyn ObjectStore>> {
    object_store::parse_url(url).map(|(store, _)| store)
}

/// Returns the store of a resolved file.
///
/// # Errors
/// The errors of [`object_store()`].
pub fn store_of(runtime: &RuntimeEnv, file: &SourceFile) -> Result<Arc<dyn ObjectStore>> {
    match &file.on_disk {
        Some(on_disk) => Ok(Arc::new(on_disk.clone())),
        None => object_store(runtime, file.store_url.as_ref()),
    }
}

/// Reads a range of bytes of a file.
///
/// # Errors
/// The errors of the store, and an execution error if the file has become shorter: a store may then
/// give fewer bytes. All of them name the file.
pub(crate) async fn read_range(store: &dyn ObjectStore, file: &SourceFile, range: Range<u64>) -> Result<Bytes> {
    if range.is_empty() {
        // Some stores refuse empty ranges.
        return Ok(Bytes::new());
    }
    let failed = |error| DataFusionError::from(error).context(file.path.clone());
    let options = GetOptions { range: Some(range.clone().into()), ..GetOptions::default() };
    let result = store.get_opts(&file.meta.location, options).await.map_err(failed)?;
    let bytes = match result.payload {
        GetResultPayload::File(local, _) => {
            let found = result.range;
            let read = move || read_local(local, found);
            let read = tokio::task::spawn_blocking(read).await.map_err(task_error)?;
            read.map_err(|error| DataFusionError::from(error).context(file.path.clone()))?
        }
        GetResultPayload::Stream(_) => result.bytes().await.map_err(failed)?,
    };
    if bytes.len() as u64 != range.end - range.start {
        return exec_err!(
            "{}: expected bytes {} to {}, got {}; the file was cut while it was open, so write it anew",
            file.path,
            range.start,
            range.end,
            bytes.len()
        );
    }
    Ok(bytes)
}

/// Reads a range of a local file, or as much of it as there is. The memory for it is not filled before.
fn read_local(mut file: File, range: Range<u64>) -> io::Result<Bytes> {
    let len_bytes = range.end - range.start;
    let mut bytes = Vec::with_capacity(usize::try_from(len_bytes).unwrap_or(0));
    file.seek(SeekFrom::Start(range.start))?;
    file.take(len_bytes).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// A parsed location.
#[derive(Debug, Clone)]
pub(crate) struct ParsedLocation {
    /// Scheme and authority.
    pub(crate) url: Url,
    /// File, folder or prefix inside the store, without the part from the first glob segment on.
    pub(crate) path: Path,
    /// Path on the local disk, if the location is on it.
    pub(crate) disk: Option<PathBuf>,
    /// Pattern for the rest of a path.
    pub(crate) glob: Option<Glob>,
    /// Text that the user wrote before the part that a listing adds, including the last slash.
    shown_prefix: String,
}

impl ParsedLocation {
    /// Parses `location`. In a guarded session it is checked, and local files are those of the
    /// session's store.
    pub(crate) fn parse_in(runtime: &RuntimeEnv, location: &str) -> Result<Self> {
        let Some(sandbox) = sandbox_of(runtime) else { return Self::parse(location) };
        if location.contains("://") {
            // A glob in it leads to nothing above.
            sandbox.check_location(location)?;
        } else {
            // Before anything is said about the files there. A name may also look like a glob.
            let base = split_glob(location).map_or(location, |(base, _)| base);
            let base = disk_path(if base.is_empty() { "." } else { base });
            let whole = sandbox.check_disk(&disk_path(location), location);
            whole.or_else(|_| sandbox.check_disk(&base, location))?;
        }
        let mut parsed = Self::parse(location)?;
        match parsed.disk.take() {
            Some(path) => sandbox.check_disk(&path, location)?,
            None => sandbox.check_url(&parsed.url)?,
        }
        Ok(parsed)
    }

    fn parse(location: &str) -> Result<Self> {
        let is_url = location.contains("://");
        let is_literal = !is_url && disk_path(location).exists();
        let split = if is_literal { None } else { split_glob(location) };
        let (base, glob) = match split {
            Some((base, pattern)) => (base, Some(Glob::parse(pattern)?)),
            None => (location, None),
        };
        let (url, path, disk) = if is_url { parse_url(base)? } else { parse_local(base)? };
        let slash = if base.is_empty() || base.ends_with('/') { "" } else { "/" };
        Ok(Self { url, path, disk, glob, shown_prefix: format!("{base}{slash}") })
    }

    /// Builds a file of this location's store.
    pub(crate) fn file(&self, path: String, found: FoundFile) -> SourceFile {
        let store = &self.url[url::Position::BeforeScheme..url::Position::BeforePath];
        // The parts of a parsed URL always parse again.
        let store_url = ObjectStoreUrl::parse(store).unwrap_or_else(|_| ObjectStoreUrl::local_filesystem());
        let path = mask_secrets(&path);
        SourceFile { path, store_url, meta: found.meta, on_disk: found.on_disk }
    }

    /// Returns the part of `location` below this location.
    fn relative<'a>(&self, location: &'a Path) -> &'a str {
        let rest = location.as_ref().strip_prefix(self.path.as_ref());
        rest.unwrap_or(location.as_ref()).trim_start_matches('/')
    }

    /// Returns the path `relative` below this location, as shown to the user.
    pub(crate) fn display(&self, relative: &str) -> String {
        format!("{}{relative}", self.shown_prefix)
    }

    /// Returns true if it is behind `http://` or `https://`. Most such servers cannot list files.
    pub(crate) fn is_on_web(&self) -> bool {
        matches!(self.url.scheme(), "http" | "https")
    }

    fn store_name(&self) -> String {
        match self.url.scheme() {
            "file" => "the file system".into(),
            _ => self.url[url::Position::BeforeScheme..url::Position::BeforePath].to_string(),
        }
    }
}

/// Roots of the living corpora among the files of a listing.
struct LivingRoots<'a>(BTreeSet<&'a str>);

impl<'a> LivingRoots<'a> {
    /// Finds the roots among the files `names`, whose parts are separated by `/`.
    fn among(names: &'a [String]) -> Self {
        let root = |name: &'a String| {
            let (folder, _) = name.rsplit_once('/').filter(|_| name.ends_with(VERSION_EXTENSION))?;
            without_last(folder, VERSIONS)
        };
        Self(names.iter().filter_map(root).collect())
    }

    /// Returns the root of the corpus that contains the segment file `name`.
    fn root_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (folder, _) = name.rsplit_once('/')?;
        without_last(folder, "segments").filter(|root| self.0.contains(root))
    }
}

/// Returns `folder` without its last part, if that is `last`.
fn without_last<'a>(folder: &'a str, last: &str) -> Option<&'a str> {
    let above = folder.strip_suffix(last)?;
    if above.is_empty() { Some(above) } else { above.strip_suffix('/') }
}

fn nothing_found(
    location: &str,
    parsed: &ParsedLocation,
    wanted: Wanted,
    num_below: usize,
    similar: Option<String>,
) -> DataFusionError {
    let tried = match parsed.url.scheme() {
        "file" => format!("/{}", parsed.path),
        _ => format!("{}/{}", parsed.store_name(), parsed.path),
    };
    let (kind, nor_table) = match wanted {
        Wanted::Corpora => (".tadoc file", ", and no table of that name"),
        Wanted::CorpusFiles => (".tadoc file", ""),
        Wanted::Files => ("file that is not hidden", ""),
    };
    if parsed.glob.is_some() {
        return plan_datafusion_err!(
            "{location}: nothing matches; files in the folders of the glob below {tried}: {num_below}"
        );
    }
    if num_below > 0 {
        return plan_datafusion_err!("{location}: the folder {tried} holds no {kind}; other files: {num_below}");
    }
    let similar = similar.map_or_else(String::new, |similar| format!("; {similar}"));
    plan_datafusion_err!("{location}: there is no file and no folder {tried}{nor_table}{similar}")
}

fn parse_url(text: &str) -> Result<(Url, Path, Option<PathBuf>)> {
    let shown = mask_secrets(text);
    let url = Url::parse(text).map_err(|e| plan_datafusion_err!("{shown}: not a URL: {e}"))?;
    if url.scheme() == "file"
        && let Ok(disk) = url.to_file_path()
    {
        return Ok((url, store_path(&disk), Some(disk)));
    }
    let path = Path::from_url_path(url.path())
        .map_err(|e| plan_datafusion_err!("{shown}: not a path of an object store: {e}"))?;
    Ok((url, path, None))
}

fn parse_local(text: &str) -> Result<(Url, Path, Option<PathBuf>)> {
    let local = disk_path(if text.is_empty() { "." } else { text });
    let absolute = std::fs::canonicalize(&local)
        .or_else(|_| std::path::absolute(&local).map(|path| without_dots(&path)))
        .map_err(|e| plan_datafusion_err!("{text}: not a path: {e}"))?;
    let local: Url = AsRef::<Url>::as_ref(&ObjectStoreUrl::local_filesystem()).clone();
    Ok((local, store_path(&absolute), Some(absolute)))
}

/// Resolves `.` and `..` by name, for paths that do not exist.
fn without_dots(path: &std::path::Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_belong_to_the_versions_beside_them() {
        let names = ["versions/1.tadoc-version", "a/b/versions/1.tadoc-version", "c/versions/x"];
        let names = names.map(String::from);
        let roots = LivingRoots::among(&names);
        assert_eq!(roots.root_of("segments/1.tadoc"), Some(""));
        assert_eq!(roots.root_of("a/b/segments/1.tadoc"), Some("a/b"));
        for loose in ["1.tadoc", "a/b/1.tadoc", "a/segments/1.tadoc", "a/b/xsegments/1.tadoc"] {
            assert_eq!(roots.root_of(loose), None, "{loose}");
        }
    }

    #[test]
    fn relative_locations_are_made_absolute_by_name() {
        let parsed = ParsedLocation::parse("no/../such/x.tadoc").unwrap();
        let absolute = std::path::absolute("such/x.tadoc").unwrap();
        assert_eq!(parsed.path, Path::from_absolute_path(absolute).unwrap());
    }
}
