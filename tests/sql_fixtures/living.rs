//! A small living corpus with a commit of each kind.
//!
//! ```text
//! version  commit                                    ids
//! 1        create
//! 2        append a.txt, b.txt, c.txt, with authors  0 1 2
//! 3        edit texts of 0 and 1, add d.txt          0 1 2 3
//! 4        append e.txt                              0 1 2 3 4
//! 5        drop c.txt                                0 1 . 3 4
//! 6        replace e.txt                             0 1 . 3 4
//! ```

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use futures::executor::block_on;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, EditBatch};
use tadoc::text::TokenizerProfile;
use tadoc_store::{Change, CommitKind, LivingStore, LocalFolder, StoreOptions, WrittenPart};

/// Begins a living corpus at `path`.
pub fn create(path: &Path) -> LivingStore {
    let folder = LocalFolder::new(path);
    let made = LivingStore::create(folder, TokenizerProfile::Word, StoreOptions::default());
    block_on(made).unwrap()
}

/// Writes a segment file of `documents`, with the user column `author` where there are authors.
pub fn write_part(
    store: &LivingStore,
    documents: &[(&str, &[u8])],
    authors: Option<&[&str]>,
) -> WrittenPart {
    let documents: Vec<(String, Vec<u8>)> =
        documents.iter().map(|(path, text)| (path.to_string(), text.to_vec())).collect();
    let columns = authors.map(authors_column);
    block_on(store.write_part(move |out| {
        let mut builder = CorpusBuilder::new(out, IngestOptions::default())?;
        for (path, text) in &documents {
            builder.push_document(path, text)?;
        }
        Ok(builder.finish(columns)?.1.footer)
    }))
    .unwrap()
}

fn authors_column(authors: &[&str]) -> Vec<u8> {
    let column: ArrayRef = Arc::new(StringArray::from(authors.to_vec()));
    let batch = RecordBatch::try_from_iter([("author", column)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// Makes `change` on the latest version.
pub fn commit(store: &LivingStore, change: &Change) {
    let base = block_on(store.latest()).unwrap();
    block_on(store.commit(&base, change)).unwrap();
}

/// Makes `edits` on the latest version.
pub fn edit(store: &LivingStore, kind: CommitKind, edits: Vec<Edit>) {
    commit(store, &Change::edit(kind, &EditBatch { edits, ..EditBatch::default() }));
}

/// Writes the corpus of this module's description at `path`.
pub fn write_notes(path: &Path) {
    let store = create(path);
    let first: [(&str, &[u8]); 3] = [
        ("a.txt", b"to be or not to be"),
        ("b.txt", b"that is the question"),
        ("c.txt", b"whether tis nobler"),
    ];
    let part = write_part(&store, &first, Some(&["ann", "bob", "cy"]));
    commit(&store, &Change::append(CommitKind::Append, &[part]));
    let edits = vec![
        Edit::AppendText { doc_id: 0, text: b", that".to_vec() },
        Edit::InsertText { doc_id: 1, offset_bytes: 0, text: b"and ".to_vec() },
        Edit::DeleteText { doc_id: 1, offset_bytes: 8, len_bytes: 3 },
        Edit::AddDocument { path: "d.txt".into(), content: b"in the mind to suffer".to_vec() },
    ];
    edit(&store, CommitKind::Edit, edits);
    let part = write_part(&store, &[("e.txt", b"the slings and arrows")], None);
    commit(&store, &Change::append(CommitKind::Append, &[part]));
    edit(&store, CommitKind::Delete, vec![Edit::DropDocument { doc_id: 2 }]);
    let content = b"of outrageous fortune, or to be".to_vec();
    edit(&store, CommitKind::Update, vec![Edit::ReplaceDocument { doc_id: 4, content }]);
}
