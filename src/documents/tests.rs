//! Tests of the kinds of documents, of left-out readers and of batches.

use super::*;

#[test]
fn kinds_are_read_and_written() {
    for kind in "files lines jsonl:text csv:a,b tsv:a parquet:x:y arrow:t avro:t warc mbox".split(' ') {
        assert_eq!(kind.parse::<Documents>().unwrap().to_string(), kind);
    }
    for bad in ["", "file", "jsonl", "csv:", "tsv", "arrow", "avro", "warc:x", "files:x"] {
        assert!(bad.parse::<Documents>().is_err(), "{bad}");
    }
}

#[cfg(not(all(feature = "mail", feature = "office", feature = "warc")))]
#[test]
fn readers_that_are_left_out_name_their_features() {
    let kind = |bytes: &'static [u8], documents: Documents| {
        let source = Source::Text { bytes: bytes.into(), lines_before: 0 };
        let inputs = [Input::new(source, "a.zip".to_owned(), 0)];
        let (division, options) = (documents.into(), ReadOptions::default());
        let (archives, mut texts) = (ArchiveOptions::default(), Joined::default());
        let columns = &mut columns::NoColumns;
        let read = read(&inputs, &division, options, &archives, columns, &mut texts);
        read.map(|_| ()).unwrap_err().kind()
    };
    #[cfg(not(feature = "mail"))]
    assert_eq!(kind(b"From a", Documents::Mbox), FailureKind::LeftOut { feature: "mail" });
    #[cfg(not(feature = "warc"))]
    assert_eq!(kind(b"WARC/1.0", Documents::Warc), FailureKind::LeftOut { feature: "warc" });
    #[cfg(not(feature = "office"))]
    assert_eq!(kind(b"PK\x03\x04", Documents::Files), FailureKind::LeftOut { feature: "office" });
}

#[test]
fn documents_of_a_batch_tile_its_text() {
    let mut batch = Batch::default();
    for text in ["one", "", "two"] {
        batch.text.extend_from_slice(text.as_bytes());
        batch.end_document(&"p".into());
    }
    let texts = |batch: &Batch| -> Vec<(Vec<u8>, bool)> {
        batch.iter().map(|part| (part.text.to_vec(), part.is_last)).collect()
    };
    let expected = |last| [(b"one".to_vec(), true), (Vec::new(), true), (b"two".to_vec(), last)];
    assert_eq!(texts(&batch), expected(true));
    batch.goes_on = true;
    assert_eq!(texts(&batch), expected(false));
}

/// A sink that joins the parts of documents again.
#[derive(Default)]
struct Joined {
    docs: Vec<Vec<u8>>,
    is_open: bool,
    num_batches: usize,
}

impl Sink for Joined {
    fn take(&mut self, batch: Batch) -> Outcome {
        assert!(batch.text.len() <= BATCH_BYTES);
        self.num_batches += 1;
        for part in batch.iter() {
            match self.docs.last_mut().filter(|_| self.is_open) {
                Some(doc) => doc.extend_from_slice(part.text),
                None => self.docs.push(part.text.to_vec()),
            }
            self.is_open = !part.is_last;
        }
        Ok(())
    }
}

#[test]
fn long_documents_are_divided() {
    let docs: Vec<Vec<u8>> = [3, BATCH_BYTES - 3, 0, 2 * BATCH_BYTES, 5 * BATCH_BYTES + 1, 7]
        .iter()
        .enumerate()
        .map(|(idx, &len)| vec![idx as u8; len])
        .collect();
    let mut joined = Joined::default();
    let mut gather = Gather::new(&mut joined, &Faults::default());
    docs.iter().for_each(|doc| gather.push(&"p".into(), doc).unwrap());
    gather.flush().unwrap();
    assert!(joined.docs == docs && !joined.is_open && joined.num_batches >= 9);
}
