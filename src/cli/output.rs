//! What commands write: files and objects that show when they are complete, and lines for the user.
//!
//! ```text
//! path, file://  a file beside its final name ─▶ sync ─▶ rename
//! s3://, gs://   parts of an upload ─▶ complete           (see `upload`)
//! ```
//!
//! A reader sees the old file or the whole new one. Errors and Ctrl-C leave nothing behind; what
//! `kill -9` leaves, the next output in that folder removes ([`StagedFile`]).

mod upload;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tadoc_store::staging::StagedFile;

use self::upload::Upload;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::living::is_living_folder;
use crate::places::local_path;

/// Writes a line to standard output.
///
/// # Errors
/// Nobody reads it any more, which is no error of the command.
pub fn say(line: impl Display) -> Outcome {
    Ok(writeln!(io::stdout().lock(), "{line}")?)
}

/// Writes a line to standard error, if there is someone who reads it.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes the file `path` in one step; see [`Output`].
///
/// # Errors
/// As [`Output::create`]; the file cannot be written, and then is not there.
pub fn write_file(path: &Path, bytes: &[u8], replace: bool) -> Outcome {
    let mut output = LocalFile::create(path, replace)?;
    output.write_all(bytes).map_err(|error| {
        Failure::with_cause(format!("{}: cannot write", path.display()), &error)
    })?;
    output.persist()
}

/// An output that does not exist under its name yet.
pub enum Output {
    /// On the local disk.
    File(LocalFile),
    /// In an object store.
    Object(Upload),
}

impl Output {
    /// Starts a corpus that will be called `path`, a path or URL.
    ///
    /// # Errors
    /// `path` is a folder or a device, exists and `replace` is false, or cannot be written to.
    pub fn create(path: &Path, replace: bool) -> Outcome<Self> {
        let Some(local) = local_path(path)? else {
            return Ok(Self::Object(Upload::create(path, replace)?));
        };
        check_corpus(&local)?;
        Ok(Self::File(LocalFile::create(&local, replace)?))
    }

    /// Makes the bytes durable and gives the output its name.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub fn persist(self) -> Outcome {
        match self {
            Self::File(file) => file.persist(),
            Self::Object(upload) => upload.persist(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Object(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Object(upload) => upload.flush(),
        }
    }
}

/// A file of the local disk that does not exist under its name yet.
pub struct LocalFile {
    file: StagedFile,
    path: PathBuf,
    replace: bool,
}

impl LocalFile {
    fn create(path: &Path, replace: bool) -> Outcome<Self> {
        check_file(path, replace)?;
        // What a link points to is replaced, not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = target.as_path();
        let file = interrupt::protect(|| StagedFile::create(path)).map_err(|error| {
            Failure::with_cause(format!("{}: cannot write", path.display()), &error)
        })?;
        Ok(Self { file, path: path.to_owned(), replace })
    }

    fn persist(self) -> Outcome {
        let Self { file, path, replace } = self;
        let failed = |error: io::Error| {
            Failure::with_cause(format!("{}: cannot write", path.display()), &error)
        };
        file.file().sync_all().map_err(failed)?;
        interrupt::finish(|| file.complete(replace)).map_err(failed)?;
        // Without this the new name may be lost with the power. Not every file system lets a
        // folder be synced, and the file itself is complete: so a refusal is no failure.
        let _ = File::open(folder_of(&path)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Write for LocalFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Refuses folders as the name of a corpus file.
fn check_corpus(path: &Path) -> Outcome {
    let shown = path.display();
    if is_living_folder(path) {
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
    Ok(())
}

/// Refuses files that can be seen to be wrong before any work is done.
///
/// # Errors
/// `path` is a folder or a device, exists and `replace` is false, or its folder is not there.
pub fn check_file(path: &Path, replace: bool) -> Outcome {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::new(format!("{shown} is a folder; name a file")));
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
