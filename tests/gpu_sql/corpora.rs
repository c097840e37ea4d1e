//! Helpers for corpora: files, a living table, metrics of plans, and a lock for the devices.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use tadoc::build::{CorpusBuilder, IngestOptions};
use testkit::random::Random;
use tokio::sync::Mutex;

/// A lock on the devices and the data on them, for one test at a time.
pub static DEVICES: Mutex<()> = Mutex::const_new(());

/// Returns random texts of up to `max_len` bytes, with a few words that recur.
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

/// Writes a corpus with blocks of this size to `folder` and returns its location.
pub fn write_corpus(folder: &Path, name: &str, block_bytes: usize, documents: &[Vec<u8>]) -> String {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in documents.iter().enumerate() {
        builder.push_document(&doc.to_string(), text).unwrap();
    }
    let path = folder.join(format!("{name}.tadoc"));
    fs::write(&path, builder.finish(None).unwrap().0).unwrap();
    path.display().to_string()
}

/// Returns statements that create the empty living table `d` in `folder`, which keeps its edits
/// beside its segments.
pub fn create_living(folder: &Path) -> [String; 2] {
    let location = folder.join("living").display().to_string();
    let create = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION";
    [
        "SET tadoc.recompress_ratio = '1'".to_owned(),
        format!("{create} '{location}/' OPTIONS ('create' 'true', 'block_bytes' '8192')"),
    ]
}

/// Returns statements that fill the table with the documents of `source`, then edit, drop, add and
/// replace some of them. Afterwards the first edited document begins with `inserted`.
pub fn living_statements(source: &str, inserted: &str) -> [String; 5] {
    [
        format!("INSERT INTO d (path, text) SELECT path, text FROM documents('{source}')"),
        format!("INSERT INTO \"d$edits\" (doc_id, pos, text) VALUES (3, 0, '{inserted}'), (4, NULL, ' x y')"),
        "DELETE FROM d WHERE doc_id IN (5, 6, 40)".to_owned(),
        "INSERT INTO d (path, text) VALUES ('new', 'furiously regular furiously regular')".to_owned(),
        "UPDATE d SET text = upper(text) WHERE doc_id = 20".to_owned(),
    ]
}

/// Returns the sum of a metric over all nodes of `plan`.
pub fn sum_of(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let below: usize = plan.children().into_iter().map(|child| sum_of(child, name)).sum();
    own.map_or(0, |sum| sum.as_usize()) + below
}
