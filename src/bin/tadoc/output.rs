//! The output file: written beside its final name, synced, then renamed.
//!
//! A reader sees the old file or the whole new one. Errors and Ctrl-C leave nothing behind; only
//! `kill -9` and power loss can leave the temporary file, whose name starts with a dot.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::living::is_living;

/// An output file that does not exist under its name yet.
pub struct Output {
    file: NamedTempFile,
    path: PathBuf,
    replace: bool,
}

impl Output {
    /// Starts a file that will be called `path`.
    ///
    /// # Errors
    /// `path` is a folder or a device, exists and `replace` is false, or its folder cannot be
    /// written to.
    pub fn create(path: &Path, replace: bool) -> Outcome<Self> {
        check_target(path, replace)?;
        // What a link points to is replaced, not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = target.as_path();
        let folder = folder_of(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = builder(&format!(".{name}.")).tempfile_in(folder).map_err(|error| {
            Failure::with_cause(format!("{}: cannot write", path.display()), &error)
        })?;
        interrupt::protect(file.path());
        Ok(Self { file, path: path.to_owned(), replace })
    }

    /// Makes the bytes durable and gives the file its name.
    pub fn persist(self) -> Outcome {
        let Self { file, path, replace } = self;
        let failed = |error: io::Error| {
            Failure::with_cause(format!("{}: cannot write", path.display()), &error)
        };
        file.as_file().sync_all().map_err(failed)?;
        interrupt::finish(|| match replace {
            true => file.persist(&path),
            false => file.persist_noclobber(&path),
        })
        .map_err(|error| failed(error.error))?;
        // Without this the new name may be lost with the power. Not every file system lets a
        // folder be synced, and the file itself is complete: so a refusal is no failure.
        let _ = File::open(folder_of(&path)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not `self.file.write`, whose errors name the temporary file.
        self.file.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file().flush()
    }
}

/// Refuses targets that can be seen to be wrong before any work is done.
fn check_target(path: &Path, replace: bool) -> Outcome {
    let shown = path.display();
    if is_living(path) {
        return Err(Failure::new(format!(
            "{shown} is a place of living corpora; pass --append to add to it"
        )));
    }
    if path.is_dir() {
        let example = path.join("corpus.tadoc");
        let example = example.display();
        return Err(Failure::new(format!(
            "{shown} is a folder; name a file, such as -o {example}"
        )));
    }
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Failure::new(format!("{shown} is no ordinary file; name a new file")));
    }
    if path.symlink_metadata().is_ok() && !replace {
        return Err(Failure::new(format!("{shown} exists; choose another name or pass --force")));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(Failure::new(format!(
            "{shown}: the folder {folder} does not exist; create it first"
        )));
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Temporary files are private by default; an output gets the permissions of any other new file.
#[cfg(unix)]
fn builder(prefix: &str) -> tempfile::Builder<'_, 'static> {
    use std::os::unix::fs::PermissionsExt;
    let mut builder = tempfile::Builder::new();
    builder.permissions(std::fs::Permissions::from_mode(0o666)).prefix(prefix).suffix(".part");
    builder
}

#[cfg(not(unix))]
fn builder(prefix: &str) -> tempfile::Builder<'_, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(".part");
    builder
}
