//! Parts of a version: the segment files that they are, and the assembly of parts and edits to a corpus.
//!
//! ```text
//! write(PartWriter) on a thread ─▶ chunks (4 in flight) ─▶ Storage::put_stream
//! ```
//!
//! A file that no version names belongs to nobody. Its writer holds it until the commit. If the commit fails or the
//! writer is killed, the next commit removes the file. On storages without holds (object stores) a clean-up removes it.
//! Readers of single ranges find the file by [`Part::file_name`]. Its sections have checksums of their own.
//!
//! # Assembly
//!
//! ```text
//! parts   [ file A ][ file B ][ edits of 9 ][ file C ]     edits  8, 9, 11
//! order    A, B as the base | edits 8, 9 | then C | edits 11
//! ```
//!
//! Edits name documents that existed at their commit. So the edits up to those of a part are applied before the files
//! behind that part are added, and added documents get the ids of their part. If only some documents are requested,
//! edits of other documents are left out, because the edits of one document never depend on those of another. Parts
//! without requested documents are left out too.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, Write};
use std::ops::Range;

use bytes::Bytes;
use futures::channel::mpsc::{Sender, channel};
use futures::{FutureExt, SinkExt, StreamExt, TryStreamExt};
use tadoc::edits::{Edit, EditBatch, LivingCorpus};
use tadoc::error::{Error, Result};
use tadoc::format::{FileFooter, OpenLimits};
use tadoc::segment::Corpus;

use crate::storage::{CommitId, StorageError, on_computing_thread, retrying, segment_name};
use crate::store::{LivingStore, VersionEdits};
use crate::version::{Part, Version};

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
            let len_bytes = writer.len_bytes;
            let crc32c = writer.crc32c;
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
        let limits = limits.clone();
        let profile = self.profile();
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
        let file = file.into();
        let section = "file";
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

/// Largest number of files that are read at a time.
const FILES_AT_ONCE: usize = 4;

/// Assembles the corpus of `version` from its `files` (one for each part that is a file, in order)
/// and its `edits` (of [`Version::edit_versions`]). Segments are shared, not copied.
///
/// # Errors
/// [`Error::InvalidArgument`] if files or edits are not those of the version, and those of
/// [`LivingCorpus::apply`] if edits do not apply.
pub fn assemble<E: Borrow<VersionEdits>>(version: &Version, files: Vec<Corpus>, edits: &[E]) -> Result<LivingCorpus> {
    let edits = edits.iter().map(<E as Borrow<VersionEdits>>::borrow);
    Assembly { version, files: files.into(), edits: edits.collect(), asked: None }.put_together()
}

/// Assembles the corpus as [`assemble`] does, for readers that read no other documents than
/// `doc_ids`. Edits of other documents are not made. Parts without any of `doc_ids` are left out,
/// so `files` are those of the other parts only. Documents that are left out can neither be read
/// nor edited. Time O(edits), and the time of the edits of `doc_ids`.
///
/// # Errors
/// The errors of [`assemble`].
pub fn assemble_documents<E: Borrow<VersionEdits>>(
    version: &Version,
    files: Vec<Corpus>,
    edits: &[E],
    doc_ids: &BTreeSet<u64>,
) -> Result<LivingCorpus> {
    // Ids that the edits of each version add. Parts that are left out are included, so that none of
    // their documents are added.
    let added: HashMap<u64, Range<u64>> = version
        .part_ids()
        .filter_map(|(part, ids)| match part {
            Part::Edits { version, .. } => Some((*version, ids)),
            Part::File { .. } => None,
        })
        .collect();
    let edits = edits.iter().map(<E as Borrow<VersionEdits>>::borrow).filter_map(|edits| {
        let added = added.get(&edits.version).cloned().unwrap_or_default();
        let batch = edits_for(&edits.batch, added, doc_ids);
        (!batch.edits.is_empty()).then_some(VersionEdits { version: edits.version, batch })
    });
    let edits: Vec<VersionEdits> = edits.collect();
    let edits = edits.iter().collect();
    Assembly { version, files: files.into(), edits, asked: Some(doc_ids) }.put_together()
}

/// Inputs for the assembly of a version.
struct Assembly<'a> {
    version: &'a Version,
    files: VecDeque<Corpus>,
    edits: VecDeque<&'a VersionEdits>,
    /// Requested documents. Parts without any of them are left out.
    asked: Option<&'a BTreeSet<u64>>,
}

impl Assembly<'_> {
    fn put_together(mut self) -> Result<LivingCorpus> {
        let version = self.version;
        let mut living = LivingCorpus::new(Corpus::new(version.profile, Vec::new()));
        // Dropped ids lie in the leading files only. The ids of all later parts are younger than
        // the optimization that dropped them.
        let num_files = version.parts.iter().take_while(|part| part.file_name().is_some()).count();
        for (part_idx, (part, ids)) in version.part_ids().enumerate() {
            if part_idx == num_files {
                mark_dropped(version, &mut living)?;
            }
            let is_absent = self.asked.is_some_and(|asked| asked.range(ids).next().is_none());
            match part {
                Part::File { num_docs, .. } if is_absent => living.append_absent(*num_docs),
                Part::File { num_docs, .. } => {
                    let found = self.files.pop_front().filter(|file| file.num_docs() == *num_docs);
                    let file = found.ok_or_else(|| misfit(version, "files", part))?;
                    living.append_base(&file)?;
                }
                Part::Edits { version: number, num_docs } => {
                    let first_added = living.num_docs();
                    while let Some(next) = self.edits.pop_front_if(|next| next.version <= *number) {
                        living.apply(&next.batch)?;
                    }
                    if is_absent {
                        living.append_absent(*num_docs);
                    }
                    if living.num_docs() - first_added != *num_docs {
                        return Err(misfit(version, "edits", part));
                    }
                }
            }
        }
        if num_files == version.parts.len() {
            mark_dropped(version, &mut living)?;
        }
        for edits in self.edits {
            living.apply(&edits.batch)?;
        }
        Ok(living)
    }
}

/// Returns the edits of `batch` on documents of `doc_ids`. Documents that it adds get the ids
/// `added`. If some of these are in `doc_ids`, the other added documents are kept too, with their
/// paths and empty.
fn edits_for(batch: &EditBatch, added: Range<u64>, doc_ids: &BTreeSet<u64>) -> EditBatch {
    let adds_any = doc_ids.range(added.clone()).next().is_some();
    let mut next_id = added.start;
    let edits = batch.edits.iter().filter_map(|edit| match edit {
        Edit::AddDocument { path, .. } => {
            let is_asked = doc_ids.contains(&next_id);
            next_id += 1;
            let empty = || Edit::AddDocument { path: path.clone(), content: Vec::new() };
            adds_any.then(|| if is_asked { edit.clone() } else { empty() })
        }
        edit => edit.doc_id().filter(|id| doc_ids.contains(id)).map(|_| edit.clone()),
    });
    EditBatch { mode: batch.mode, edits: edits.collect() }
}

fn mark_dropped(version: &Version, living: &mut LivingCorpus) -> Result<()> {
    version.dropped.iter().try_for_each(|doc_ids| living.mark_dropped(doc_ids.clone()))
}

fn misfit(version: &Version, name: &'static str, part: &Part) -> Error {
    Error::InvalidArgument {
        name,
        got: format!("others than those of {part:?}"),
        allowed: format!("the {name} of version {}", version.number),
    }
}

impl LivingStore {
    /// Reads and assembles the whole corpus of `version` in memory.
    ///
    /// # Errors
    /// The errors of [`LivingStore::read_part`], [`LivingStore::edits`] and [`assemble`].
    pub async fn corpus(&self, version: &Version, limits: &OpenLimits) -> Result<LivingCorpus> {
        let parts = version.parts.iter().filter(|part| part.file_name().is_some());
        let parts: Vec<Part> = parts.cloned().collect();
        let read = |part: Part| async move { self.read_part(&part, limits).await }.boxed();
        let read = futures::stream::iter(parts).map(read);
        let files: Vec<_> = read.buffered(FILES_AT_ONCE).try_collect().await?;
        let edits = self.edits(version.edit_versions()).await?;
        let version = version.clone();
        on_computing_thread(move || {
            let files = files.into_iter().map(|(_, corpus)| corpus).collect();
            assemble(&version, files, &edits)
        })
        .await?
    }
}

#[cfg(test)]
mod tests {
    use tadoc::edits::EditMode;
    use tadoc::text::TokenizerProfile;

    use crate::{Change, CommitKind, ObjectPrefix, StoreOptions};

    use super::*;

    fn insert(doc_id: u64, offset_bytes: u64, text: &str) -> Edit {
        Edit::InsertText { doc_id, offset_bytes, text: text.into() }
    }

    fn add(path: &str, content: &str) -> Edit {
        Edit::AddDocument { path: path.into(), content: content.into() }
    }

    #[test]
    fn documents_do_not_need_the_edits_of_others() {
        let delete = |doc_id, offset_bytes| Edit::DeleteText { doc_id, offset_bytes, len_bytes: 2 };
        let batches = [
            (EditMode::InSequence, vec![add("a", "to be"), add("b", "or not"), insert(0, 2, "!")]),
            (EditMode::InBatch, vec![insert(1, 0, "x"), insert(0, 5, "y"), delete(1, 0), delete(0, 0)]),
            (EditMode::InBatch, vec![add("c", "that"), insert(1, 3, " is"), insert(1, 0, "so ")]),
            (EditMode::InSequence, vec![Edit::DropDocument { doc_id: 0 }, delete(1, 1), insert(2, 4, "s")]),
        ];
        let prefix = ObjectPrefix::new(std::sync::Arc::new(object_store::memory::InMemory::new()), "c".into());
        futures::executor::block_on(async {
            let made = LivingStore::create(prefix, TokenizerProfile::default(), StoreOptions::default());
            let store = made.await.unwrap();
            for (mode, edits) in batches {
                let base = store.latest().await.unwrap();
                let batch = EditBatch { mode, edits };
                store.commit(&base, &Change::edit(CommitKind::Edit, &batch)).await.unwrap();
            }
            let version = store.latest().await.unwrap();
            let edits = store.edits(version.edit_versions()).await.unwrap();
            let all = assemble(&version, Vec::new(), &edits).unwrap();
            for doc_ids in [vec![], vec![1], vec![2], vec![1, 2], vec![0, 1, 2]] {
                let asked: BTreeSet<u64> = doc_ids.iter().copied().collect();
                let some = assemble_documents(&version, Vec::new(), &edits, &asked).unwrap();
                for doc_id in 0..3 {
                    if asked.contains(&doc_id) {
                        assert_eq!(some.path(doc_id), all.path(doc_id));
                    }
                    if asked.contains(&doc_id) && doc_id > 0 {
                        let text = |living: &LivingCorpus| living.extract(doc_id, 0, 99).unwrap();
                        assert_eq!(text(&some), text(&all), "{doc_id} of {doc_ids:?}");
                    }
                }
                assert_eq!(some.is_dropped(0), asked.contains(&0));
                // Document 2 is the only one of its part.
                if !asked.contains(&2) {
                    let absent = [some.len_bytes(2).map(|_| ()), some.snapshot().map(|_| ())];
                    for error in absent.map(Result::unwrap_err) {
                        assert!(error.to_string().contains("was left out"), "{error}");
                    }
                    let refused =
                        some.clone().apply(&EditBatch { edits: vec![insert(2, 0, "x")], ..EditBatch::default() });
                    assert!(refused.unwrap_err().to_string().contains("was left out"));
                    assert_eq!((some.path(2), some.num_docs()), (None, 3));
                }
            }
        });
    }
}
