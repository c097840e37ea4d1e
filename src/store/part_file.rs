//! Segment files: written before the commit that names them, read and checked as a whole.
//!
//! ```text
//! write(PartWriter) on a thread ─▶ chunks (4 under way) ─▶ Storage::put_stream
//! ```
//!
//! A file that no version names is nobody's. Its writer holds it until the commit; where that fails or
//! the writer is killed, the next commit removes it, or a clean-up where the storage knows no holds
//! (object stores). Whoever reads ranges only finds the file by [`Part::file_name`]; its sections have
//! checksums of their own.

use std::io::{self, Write};

use bytes::Bytes;
use futures::channel::mpsc::{Sender, channel};
use futures::{SinkExt, StreamExt};

use super::retry::retrying;
use super::storage::{StorageError, segment_name};
use super::store::LivingStore;
use super::thread::on_computing_thread;
use super::version::{CommitId, Part};
use tadoc::error::{Error, Result};
use tadoc::format::{FileFooter, OpenLimits};
use tadoc::segment::Corpus;

/// Bytes handed to the storage at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks under way between writer and storage.
const MAX_CHUNKS: usize = 4;

/// A segment file that is with the storage and that no version names yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenPart {
    /// The file, as a version will name it.
    pub part: Part,
    /// What it holds.
    pub footer: FileFooter,
}

/// Takes the bytes of a segment file. Writing blocks while the storage is behind.
#[derive(Debug)]
pub struct PartWriter {
    chunks: Sender<Result<Bytes>>,
    buffer: Vec<u8>,
    len_bytes: u64,
    crc32c: u32,
    /// The storage takes no more.
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
    /// Writes a segment file: `write` is called on a thread of its own, with where the bytes go,
    /// and hands back the footer it wrote (of [`CorpusBuilder::finish`] or [`CorpusWriter::finish`]).
    /// The documents are in the corpus once a commit of [`Change::append`] succeeded.
    ///
    /// [`Change::append`]: super::Change::append
    /// [`CorpusBuilder::finish`]: tadoc::build::CorpusBuilder::finish
    /// [`CorpusWriter::finish`]: tadoc::format::CorpusWriter::finish
    ///
    /// # Errors
    /// Those of `write`; [`Error::Io`] and [`Error::External`] from the storage;
    /// [`Error::InvalidArgument`] where the file is cut by another tokenizer than the corpus.
    pub async fn write_part(
        &self,
        write: impl FnOnce(&mut PartWriter) -> Result<FileFooter> + Send + 'static,
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
                // The file must not show; a storage that is gone by now shows none.
                let _told = writer.send(Err(Error::Cancelled));
            }
            let (len_bytes, crc32c) = (writer.len_bytes, writer.crc32c);
            (written.map(|footer| (footer, len_bytes, crc32c)), writer.is_refused)
        });
        let hold = self.storage().hold(&name).await;
        let putting = self.storage().put_stream(&name, receiver.boxed());
        let (written, put) = futures::join!(writing, putting);
        let put = put.map_err(|e| e.into_error(format!("writing {}", self.name_of(&name))));
        let written = written.and_then(|(written, is_refused)| match is_refused {
            true => put.and(written),
            false => written.and_then(|written| put.map(|()| written)),
        });
        self.keep_or_remove(hold, written.is_ok()).await;
        let (footer, len_bytes, crc32c) = written?;
        let num_docs = footer.num_docs();
        Ok(WrittenPart { part: Part::File { id, len_bytes, crc32c, num_docs }, footer })
    }

    /// Reads the whole file of `part` and checks every byte of it.
    ///
    /// # Errors
    /// [`Error::Missing`] where the file is not there, [`Error::Format`] and [`Error::Checksum`]
    /// where it is not what the version names, [`Error::InvalidArgument`] for a part that is no
    /// file, and those of [`Corpus::from_bytes`].
    pub async fn read_part(
        &self,
        part: &Part,
        limits: &OpenLimits,
    ) -> Result<(FileFooter, Corpus)> {
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
                place: self.place(),
                what: format!("file {name}"),
                existing: "a clean-up took it away with old versions, or it is lost; read the \
                           latest version, or restore it from a copy"
                    .into(),
            },
            error => error.into_error(format!("reading {}", self.name_of(&name))),
        })?;
        let file = self.name_of(&name);
        part.check_bytes(&file, &bytes)?;
        let (limits, profile) = (limits.clone(), self.profile());
        on_computing_thread(move || {
            let (footer, corpus) = Corpus::from_bytes(&file, &bytes, &limits)?;
            check_profile(&footer, profile)?;
            match footer.num_docs() == num_docs {
                true => Ok((footer, corpus)),
                false => {
                    let got = footer.num_docs();
                    Err(fault(&file, format!("expected {num_docs} documents, got {got}")))
                }
            }
        })
        .await?
    }
}

impl Part {
    /// Whether `bytes`, read from `file`, are those that it names; what is no file names none.
    ///
    /// # Errors
    /// [`Error::Format`] where they are more or fewer, [`Error::Checksum`] where they are others.
    pub fn check_bytes(&self, file: &str, bytes: &[u8]) -> Result<()> {
        let Self::File { len_bytes, crc32c: expected, .. } = *self else { return Ok(()) };
        if bytes.len() as u64 != len_bytes {
            let got = bytes.len();
            return Err(fault(file, format!("expected {len_bytes} bytes, got {got}")));
        }
        let got = crc32c::crc32c(bytes);
        let (file, section) = (file.into(), "file");
        match got == expected {
            true => Ok(()),
            false => Err(Error::Checksum { file, section, offset: 0, expected, got }),
        }
    }
}

fn fault(file: &str, reason: String) -> Error {
    Error::Format { file: file.into(), section: "file", offset: 0, reason }
}

fn check_profile(footer: &FileFooter, profile: tadoc::text::TokenizerProfile) -> Result<()> {
    match footer.profile == profile {
        true => Ok(()),
        false => Err(Error::InvalidArgument {
            name: "tokenizer",
            got: footer.profile.to_string(),
            allowed: format!("{profile}, which the corpus was created with"),
        }),
    }
}
