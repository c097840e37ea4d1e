//! The output of commands: files and objects that become visible when they are complete, and
//! messages to the user.
//!
//! ```text
//! path, file://  a file beside its final name ─▶ sync ─▶ rename
//! s3://, gs://   parts of an upload ─▶ complete           (see `upload`)
//! ```
//!
//! A reader sees either the old file or the whole new one. Errors and Ctrl-C leave nothing behind.
//! A temporary file that `kill -9` leaves is removed by the next output in the same folder
//! ([`StagedFile`]).

mod upload;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tadoc_session::location::{is_living_folder, local_path};
use tadoc_session::{Failure, Outcome, interrupt};
use tadoc_store::staging::StagedFile;

use self::upload::Upload;

/// Writes a line to standard output.
///
/// # Errors
/// Standard output cannot be written. If its reader has gone, the [`Failure`] is silent.
pub fn say(line: impl Display) -> Outcome {
    Ok(writeln!(io::stdout().lock(), "{line}")?)
}

/// Writes the file `path` in one step; see [`Output`].
///
/// # Errors
/// The errors of [`Output::create`], or the file cannot be written. `path` is unchanged then.
pub fn write_file(path: &Path, bytes: &[u8], replace: bool) -> Outcome {
    let mut output = LocalFile::create(path, replace)?;
    output.write_all(bytes).map_err(|error| {
        Failure::with_cause(format!("{}: cannot write", path.display()), &error)
    })?;
    output.persist()
}

/// An output that is not yet visible under its name.
pub enum Output {
    /// A file on the local disk.
    File(LocalFile),
    /// An object in an object store.
    Object(Upload),
}

impl Output {
    /// Starts a corpus with the final name `path`, a path or URL.
    ///
    /// # Errors
    /// `path` is a folder or a device, it exists and `replace` is false, or it cannot be written.
    pub fn create(path: &Path, replace: bool) -> Outcome<Self> {
        let Some(local) = local_path(path)? else {
            return Ok(Self::Object(Upload::create(path, replace)?));
        };
        check_corpus(&local)?;
        Ok(Self::File(LocalFile::create(&local, replace)?))
    }

    /// Makes the bytes durable and gives the output its final name.
    ///
    /// # Errors
    /// The output cannot be completed. The old file, if any, is then unchanged.
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

/// A file on the local disk that is not yet visible under its name.
pub struct LocalFile {
    file: StagedFile,
    path: PathBuf,
    replace: bool,
}

impl LocalFile {
    fn create(path: &Path, replace: bool) -> Outcome<Self> {
        check_name(path, replace)?;
        // For a symbolic link, the target is replaced and not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = target.as_path();
        let failed = |error: io::Error| {
            Failure::with_cause(format!("{}: cannot write", path.display()), &error)
        };
        let file = interrupt::protect(|| StagedFile::create(path)).map_err(failed)?;
        file.probe().map_err(failed)?;
        Ok(Self { file, path: path.to_owned(), replace })
    }

    fn persist(self) -> Outcome {
        let Self { file, path, replace } = self;
        let failed = |error: io::Error| {
            Failure::with_cause(format!("{}: cannot write", path.display()), &error)
        };
        file.file().sync_all().map_err(failed)?;
        interrupt::finish(|| file.complete(replace)).map_err(failed)?;
        // Without this sync a power failure may lose the new name. Some file systems refuse to sync
        // a folder. The file itself is complete, so a refusal is not a failure.
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

/// Checks that the name of a corpus file is not a folder.
fn check_corpus(path: &Path) -> Outcome {
    let shown = path.display();
    if is_living_folder(path) {
        return Err(Failure::new(format!(
            "{shown} is a place of living corpora; pass --append to add to it"
        )));
    }
    let folder = folder_of(path);
    if is_living_folder(folder) {
        let folder = folder.display();
        return Err(Failure::new(format!(
            "{shown} lies in the living corpus {folder}, whose readers would not see the file; pass -o \
             {folder} --append to add to it"
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

/// Checks that an output can be written, before any work is done for it.
///
/// # Errors
/// `path` is a folder or a device, it exists and `replace` is false, its folder does not exist or cannot be
/// written, or the disk is full.
pub fn check_file(path: &Path, replace: bool) -> Outcome {
    LocalFile::create(path, replace).map(|_not_needed| ())
}

/// Checks the name of an output.
fn check_name(path: &Path, replace: bool) -> Outcome {
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
