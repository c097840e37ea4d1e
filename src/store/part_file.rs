//! Segment files: written before the commit that names them, read and checked as a whole.
//!
//! ```text
//! write(PartWriter) on a thread ─▶ chunks (4 in flight) ─▶ Storage::put_stream
//! ```
//!
//! A file that no version names belongs to nobody. Its writer holds it until the commit. If the
//! commit fails or the writer is killed, the next commit removes the file. On storages without
//! holds (object stores) a clean-up removes it. Readers of single ranges find the file by
//! [`Part::file_name`]. Its sections have checksums of their own.

use std::io::{self, Write};

use bytes::Bytes;
use futures::channel::mpsc::{Sender, channel};
use futures::{SinkExt, StreamExt};

use super::names::{CommitId, segment_name};
use super::storage::StorageError;
use super::store::LivingStore;
use super::version::Part;
use crate::retry::{on_computing_thread, retrying};
use tadoc::error::{Error, Result};
use tadoc::format::{FileFooter, OpenLimits};
use tadoc::segment::Corpus;

/// Number of bytes passed to the storage at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Largest number of chunks in flight between writer and storage.
const MAX_CHUNKS: usize = 4;

/// A segment file that is stored but not yet named by a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenPart {
    /// Part for a version that names the file.
    pub part: Part,
    /// Length of the texts of the file.
    pub text_bytes: u64,
}

/// Writer of the bytes of a segment file. Writing blocks while the storage is behind.
#[derive(Debug)]
pub struct PartWriter {
    chunks: Sender<Result<Bytes>>,
    buffer: Vec<u8>,
    len_bytes: u64,
    crc32c: u32,
    /// True after the storage has refused more bytes.
    is_refused: bool,
}

impl PartWriter {
    fn send(&mut self, chunk: Result<Bytes>) -> io::Result<()> {
        futures::executor::block_on(self.chunks.send(chunk)).map_err(|_| {
            self.is_refused = true;
            io::Error::new(io::ErrorKind::BrokenPipe, "the storage took no more")
        })
    }

    fn send_buffer(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.buffer);
        self.crc32c = crc32c::crc32c_append(self.crc32c, &chunk);
        self.len_bytes += chunk.len() as u64;
        self.send(Ok(chunk.into()))
    }
}

impl Write for PartWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.send_buffer()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LivingStore {
    /// Writes a segment file. `write` is called on a thread of its own with the writer of the
    /// bytes. It returns the footer that it wrote (of [`CorpusBuilder::finish`] or
    /// [`CorpusWriter::finish`]). The documents are in the corpus after a commit of
    /// [`Change::append`].
    ///
    /// [`Change::append`]: super::Change::append
    /// [`CorpusBuilder::finish`]: tadoc::build::CorpusBuilder::finish
    /// [`CorpusWriter::finish`]: tadoc::format::CorpusWriter::finish
    ///
    /// # Errors
    /// The errors of `write`, [`Error::Io`] and [`Error::External`] from the storage, and
    /// [`Error::InvalidArgument`] if the file has another tokenizer profile than the corpus.
    pub async fn write_part(
        &self,
        write: impl FnOnce(&mut PartWriter) -> Result<FileFooter> + Send + 'static,
    ) -> Result<WrittenPart> {
        self.write_file(write, true).await
    }

    /// Variant of [`write_part`](Self::write_part) for a commit that another process makes. The end
    /// of this process does not remove the file: only [`clean_up`](Self::clean_up) does, if no
    /// version names it.
    ///
    /// # Errors
    /// As [`write_part`](Self::write_part).
    pub async fn write_part_for_another(
        &self,
        write: impl FnOnce(&mut PartWriter) -> Result<FileFooter> + Send + 'static,
    ) -> Result<WrittenPart> {
        self.write_file(write, false).await
    }

    /// Writes a segment file. If `commits_here` is true, the file is removed if this process ends
    /// before its commit.
    async fn write_file(
        &self,
        write: impl FnOnce(&mut PartWriter) -> Result<FileFooter> + Send + 'static,
        commits_here: bool,
    ) -> Result<WrittenPart> {
        let id = CommitId::random()?;
        let name = segment_name(id);
        let (chunks, receiver) = channel(MAX_CHUNKS);
        let buffer = Vec::new();
        let mut writer = PartWriter { chunks, buffer, len_bytes: 0, crc32c: 0, is_refused: false };
        let profile = self.profile();
        let writing = on_computing_thread(move || {
            let written = write(&mut writer).and_then(|footer| {
                check_profile(&footer, profile)?;
                writer.send_buffer().map_err(|e| Error::io("writing a segment file", e))?;
                Ok(footer)
            });
            if written.is_err() && !writer.is_refused {
                // The file must not become visible. If the storage has ended, it shows no file.
                let _told = writer.send(Err(Error::Cancelled));
            }
            let (len_bytes, crc32c) = (writer.len_bytes, writer.crc32c);
            (written.map(|footer| (footer, len_bytes, crc32c)), writer.is_refused)
        });
        let hold = if commits_here { self.storage().hold(&name).await } else { None };
        let putting = self.storage().put_stream(&name, receiver.boxed());
        let (written, put) = futures::join!(writing, putting);
        let put = put.map_err(|e| e.into_error(format!("writing {}", self.name_for(&name))));
        let written = written.and_then(|(written, is_refused)| {
            if is_refused { put.and(written) } else { written.and_then(|written| put.map(|()| written)) }
        });
        self.abandoned.keep_or_remove(self.storage(), hold, written.is_ok()).await;
        let (footer, len_bytes, crc32c) = written?;
        let num_docs = footer.num_docs();
        let text_bytes = footer.segments.iter().map(|segment| segment.len_bytes);
        let text_bytes = text_bytes.fold(0, u64::saturating_add);
        Ok(WrittenPart { part: Part::File { id, len_bytes, crc32c, num_docs }, text_bytes })
    }

    /// Reads the whole file of `part` and checks every byte of it.
    ///
    /// # Errors
    /// [`Error::Missing`] if the file does not exist. [`Error::Format`] and [`Error::Checksum`] if
    /// it is not the file that the version names. [`Error::InvalidArgument`] if the part is not a
    /// file. And those of [`Corpus::from_bytes`].
    pub async fn read_part(&self, part: &Part, limits: &OpenLimits) -> Result<(FileFooter, Corpus)> {
        let Part::File { id, len_bytes, num_docs, .. } = *part else {
            return Err(Error::InvalidArgument {
                name: "part",
                got: format!("{part:?}"),
                allowed: "a part that is a file".into(),
            });
        };
        let name = segment_name(id);
        let get = retrying(self.options().retry, || self.storage().get(&name, len_bytes)).await;
        let bytes = get.map_err(|error| match error {
            StorageError::NotFound => Error::Missing {
                location: self.location(),
                what: format!("file {name}"),
                existing: "a clean-up took it away with old versions, or it is lost; read the \
                           latest version, or restore it from a copy"
                    .into(),
            },
            error => error.into_error(format!("reading {}", self.name_for(&name))),
        })?;
        let file = self.name_for(&name);
        part.check_bytes(&file, &bytes)?;
        let (limits, profile) = (limits.clone(), self.profile());
        on_computing_thread(move || {
            let (footer, corpus) = Corpus::from_bytes(&file, &bytes, &limits)?;
            check_profile(&footer, profile)?;
            if footer.num_docs() == num_docs {
                Ok((footer, corpus))
            } else {
                let got = footer.num_docs();
                Err(fault(&file, format!("expected {num_docs} documents, got {got}")))
            }
        })
        .await?
    }
}

impl Part {
    /// Checks that `bytes`, read from `file`, are those of the part. A part that is not a file
    /// passes.
    ///
    /// # Errors
    /// [`Error::Format`] if their number differs, and [`Error::Checksum`] if their content differs.
    pub fn check_bytes(&self, file: &str, bytes: &[u8]) -> Result<()> {
        let Self::File { len_bytes, crc32c: expected, .. } = *self else { return Ok(()) };
        if bytes.len() as u64 != len_bytes {
            let got = bytes.len();
            return Err(fault(file, format!("expected {len_bytes} bytes, got {got}")));
        }
        let got = crc32c::crc32c(bytes);
        let (file, section) = (file.into(), "file");
        if got == expected { Ok(()) } else { Err(Error::Checksum { file, section, offset: 0, expected, got }) }
    }
}

fn fault(file: &str, reason: String) -> Error {
    Error::Format { file: file.into(), section: "file", offset: 0, reason }
}

fn check_profile(footer: &FileFooter, profile: tadoc::text::TokenizerProfile) -> Result<()> {
    if footer.profile == profile {
        Ok(())
    } else {
        Err(Error::InvalidArgument {
            name: "tokenizer",
            got: footer.profile.to_string(),
            allowed: format!("{profile}, which the corpus was created with"),
        })
    }
}
