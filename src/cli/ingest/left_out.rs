//! Documents that are read and not stored, because the corpus has them already.
//!
//! ```text
//! batch [ a | m.tar/x | m.tar/y | b ]   left out: m.tar/x  ─▶  [ a | m.tar/y | b ]
//! ```
//!
//! A document is known by its path, and by its number among the documents of this path: an archive may have two
//! members of one name.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tadoc_documents::Batch;

/// The numbers of the documents of each path that are left out.
pub type LeftOut = HashMap<Box<str>, HashSet<u32>>;

/// Documents that pass, and those that do not.
#[derive(Debug, Default)]
pub struct Filter {
    left_out: LeftOut,
    /// Number of the documents so far of each path in `left_out`.
    seen: HashMap<Box<str>, u32>,
    /// Tells of the document that goes on in the next batch if it passes.
    open: Option<bool>,
    /// Paths of the documents that passed.
    passed: Arc<Mutex<Vec<Arc<str>>>>,
}

impl Filter {
    /// Creates a filter, and returns the list of the paths of documents that will pass.
    pub fn new(left_out: LeftOut) -> (Self, Arc<Mutex<Vec<Arc<str>>>>) {
        let filter = Self { left_out, ..Self::default() };
        let passed = Arc::clone(&filter.passed);
        (filter, passed)
    }

    /// Returns `batch` without the documents that are left out.
    pub fn apply(&mut self, batch: Batch) -> Batch {
        let mut kept = Batch { read: batch.read, ..Batch::default() };
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        for (part, (path, _)) in batch.iter().zip(&batch.documents) {
            let passes = match self.open.take() {
                Some(passes) => passes,
                None => {
                    let passes = passes(&self.left_out, &mut self.seen, part.path);
                    if passes {
                        passed.push(Arc::clone(path));
                    }
                    passes
                }
            };
            if !part.is_last {
                self.open = Some(passes);
            }
            if passes {
                kept.text.extend_from_slice(part.text);
                kept.end_document(path);
                kept.goes_on = !part.is_last;
            }
        }
        kept
    }
}

/// Returns true if the next document of `path` passes.
fn passes(left_out: &LeftOut, seen: &mut HashMap<Box<str>, u32>, path: &str) -> bool {
    let Some(numbers) = left_out.get(path) else { return true };
    let number = seen.entry(path.into()).or_default();
    let passes = !numbers.contains(number);
    *number += 1;
    passes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(documents: &[(&str, &str)], goes_on: bool) -> Batch {
        let mut batch = Batch::default();
        for (path, text) in documents {
            batch.text.extend_from_slice(text.as_bytes());
            batch.end_document(&Arc::from(*path));
        }
        batch.goes_on = goes_on;
        batch
    }

    fn parts(batch: &Batch) -> Vec<(String, String, bool)> {
        let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
        batch.iter().map(|part| (part.path.to_owned(), text(part.text), part.is_last)).collect()
    }

    #[test]
    fn documents_are_left_out_by_path_and_number() {
        let left_out = LeftOut::from([("a".into(), [1].into()), ("b".into(), [0].into())]);
        let (mut filter, passed) = Filter::new(left_out);
        let first = filter.apply(batch(&[("a", "1"), ("b", "2"), ("a", "3")], true));
        assert_eq!(parts(&first), [("a".into(), "1".into(), true)]);
        let second = filter.apply(batch(&[("a", "4"), ("a", "5"), ("b", "6"), ("c", "7")], true));
        let expected = [("a", "5", true), ("b", "6", true), ("c", "7", false)];
        let expected = expected.map(|(path, text, is_last)| (path.to_owned(), text.to_owned(), is_last));
        assert_eq!(parts(&second), expected);
        let third = filter.apply(batch(&[("c", "8"), ("d", "")], false));
        assert_eq!(parts(&third), [("c".into(), "8".into(), true), ("d".into(), String::new(), true)]);
        let passed: Vec<String> = passed.lock().unwrap().iter().map(|path| path.to_string()).collect();
        assert_eq!(passed, ["a", "a", "b", "c", "d"]);
    }
}
