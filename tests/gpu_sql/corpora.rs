//! Corpora to ask: files, a living table, what plans counted, and turns.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use tadoc::build::{CorpusBuilder, IngestOptions};
use testkit::device::Random;
use tokio::sync::Mutex;

/// The devices and what is kept there, for one test at a time.
pub static DEVICES: Mutex<()> = Mutex::const_new(());

/// Random texts of up to so many bytes and a few words that recur.
pub fn documents(seed: u64, num_docs: usize, max_len: usize) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    let mut text = |doc: usize| {
        let len = random.below(max_len);
        let mut text = random.words(len);
        text.extend_from_slice(format!(" Only {} here", doc % 90).as_bytes());
        text
    };
    (0..num_docs).map(&mut text).collect()
}

/// Writes a corpus of blocks of so many bytes to `folder`; where it is.
pub fn write_corpus(
    folder: &Path,
    name: &str,
    block_bytes: usize,
    documents: &[Vec<u8>],
) -> String {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in documents.iter().enumerate() {
        builder.push_document(&doc.to_string(), text).unwrap();
    }
    let path = folder.join(format!("{name}.tadoc"));
    fs::write(&path, builder.finish(None).unwrap().0).unwrap();
    path.display().to_string()
}

/// What makes the living table `d` in `folder`, empty, which keeps its edits beside its segments.
pub fn create_living(folder: &Path) -> [String; 2] {
    let location = folder.join("living").display().to_string();
    let create = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION";
    [
        "SET tadoc.recompress_ratio = '1'".to_owned(),
        format!("{create} '{location}/' OPTIONS ('create' 'true', 'block_bytes' '8192')"),
    ]
}

/// What fills it with the documents of `source`, and edits, drops, adds and replaces some of them; the first
/// that is edited begins with `inserted` then.
pub fn living_statements(source: &str, inserted: &str) -> [String; 5] {
    [
        format!("INSERT INTO d (path, text) SELECT path, text FROM documents('{source}')"),
        format!(
            "INSERT INTO \"d$edits\" (doc_id, pos, text) VALUES (3, 0, '{inserted}'), (4, NULL, ' x y')"
        ),
        "DELETE FROM d WHERE doc_id IN (5, 6, 40)".to_owned(),
        "INSERT INTO d (path, text) VALUES ('new', 'furiously regular furiously regular')"
            .to_owned(),
        "UPDATE d SET text = upper(text) WHERE doc_id = 20".to_owned(),
    ]
}

/// A metric of all nodes of `plan`.
pub fn sum_of(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let below: usize = plan.children().into_iter().map(|child| sum_of(child, name)).sum();
    own.map_or(0, |sum| sum.as_usize()) + below
}
