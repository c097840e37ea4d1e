//! Writer of the documents and the mixes as files, for stores that are not part of this program
//! (`peers/edits.py`).
//!
//! ```text
//! FOLDER/<corpus>/documents/00000007        the bytes of document 7
//! FOLDER/<corpus>/in_sequence-rare.tsv      sum <tab> of all lengths, counts and hits
//!                                           extract <tab> doc <tab> offset <tab>
//!                                           search | count <tab> doc <tab> <tab> word, hexadecimal
//!                                           insert <tab> doc <tab> offset <tab> text, hexadecimal
//!                                           append <tab> doc <tab> <tab> text, hexadecimal
//! ```

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tadoc::edits::{Edit, EditMode, Operation};

use super::{MIXES, Plain, Workload};

/// Writes the documents of a workload and its mixes below `folder`.
pub fn dump(workload: &Workload<'_>, folder: &Path) {
    let folder = folder.join(&workload.subject.name);
    let documents = folder.join("documents");
    fs::create_dir_all(&documents).unwrap();
    for (doc_id, doc) in workload.subject.docs.iter().enumerate() {
        fs::write(documents.join(format!("{doc_id:08}")), doc).unwrap();
    }
    for (words, kinds) in MIXES {
        for mode in [EditMode::InSequence, EditMode::InBatch] {
            let operations = workload.operations(mode, &kinds);
            let sum = Plain { docs: workload.subject.docs.clone() }.run(mode, &operations);
            let lines: String = operations.iter().map(line).collect();
            let file = folder.join(format!("{mode}-{words}.tsv"));
            fs::write(file, format!("sum\t{sum}\n{lines}")).unwrap();
        }
    }
}

fn line(operation: &Operation) -> String {
    match operation {
        Operation::Extract { doc_id, offset_bytes, .. } => {
            format!("extract\t{doc_id}\t{offset_bytes}\t\n")
        }
        Operation::Search { doc_id, word } => format!("search\t{doc_id}\t\t{}\n", hex(word)),
        Operation::Count { doc_id, word } => format!("count\t{doc_id}\t\t{}\n", hex(word)),
        Operation::Edit(Edit::InsertText { doc_id, offset_bytes, text }) => {
            format!("insert\t{doc_id}\t{offset_bytes}\t{}\n", hex(text))
        }
        Operation::Edit(Edit::AppendText { doc_id, text }) => {
            format!("append\t{doc_id}\t\t{}\n", hex(text))
        }
        Operation::Edit(edit) => panic!("no part of a mix: {edit:?}"),
    }
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    let mut digits = String::new();
    for byte in bytes.as_ref() {
        write!(digits, "{byte:02x}").unwrap();
    }
    digits
}
