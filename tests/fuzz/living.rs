//! Fuzz targets for versions of living corpora and their edit records. A mutant is refused, or
//! gives a value that is equal after it is written and read once more.

use std::sync::LazyLock;

use bytes::Bytes;
use tadoc::edits::{Edit, EditBatch, EditMode, decode_batch, encode_batch};
use tadoc::text::TokenizerProfile;
use tadoc_store::{Bookmark, CommitCounts, CommitId, CommitKind, Part, Version, decode_manifest, encode_manifest};
use testkit::malformed::mutations::changed_bytes;
use testkit::random::Random;

use super::target::{Input, Verdict, part_input};

/// Limit for the edits of a version in bytes.
const MAX_EDITS_BYTES: u64 = 1 << 20;
const CRC_BYTES: usize = 4;

/// Returns batches with every kind of edit.
fn batches() -> Vec<EditBatch> {
    let table = Bytes::from_static(b"PAR1 and so on");
    let edits = vec![
        Edit::InsertText { doc_id: 0, offset_bytes: 300, text: b"to be".to_vec() },
        Edit::AppendText { doc_id: 1 << 40, text: b"\xff\0".to_vec() },
        Edit::DeleteText { doc_id: 2, offset_bytes: 7, len_bytes: 1 << 20 },
        Edit::AddDocument { path: "é/a.txt".into(), content: b"or not to be ".repeat(30) },
        Edit::DropDocument { doc_id: 4 },
        Edit::ReplaceDocument { doc_id: 5, content: Vec::new() },
        Edit::SetColumns { doc_id: 6, row: 0, table: table.clone() },
        Edit::SetColumns { doc_id: 7, row: 300, table: Bytes::from_static(b"another") },
        Edit::SetColumns { doc_id: 1 << 40, row: 1, table },
    ];
    let one_each = edits.iter().map(|edit| vec![edit.clone()]);
    let all = one_each.chain([edits.clone(), Vec::new()]);
    let modes = [EditMode::InSequence, EditMode::InBatch].into_iter().cycle();
    modes.zip(all).map(|(mode, edits)| EditBatch { mode, edits }).collect()
}

fn records() -> &'static [Vec<u8>] {
    static RECORDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| batches().iter().map(encode_batch).collect());
    &RECORDS
}

/// Returns versions with every kind of part, without their checksums.
fn manifests() -> &'static [Vec<u8>] {
    static MANIFESTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let id = |byte| CommitId::from_bytes([byte; 16]);
        let first = Version {
            number: 1,
            commit_id: id(1),
            parent_id: id(0),
            time_us: 1_700_000_000_000_000,
            kind: CommitKind::Create,
            counts: CommitCounts::default(),
            writer: "fuzz".into(),
            profile: TokenizerProfile::default(),
            parts: Vec::new(),
            dropped: Vec::new(),
            edits_since: 2,
            sets_columns: false,
            bookmarks: Vec::new(),
        };
        let file = |byte, num_docs| Part::File { id: id(byte), len_bytes: 900, crc32c: 7, num_docs };
        let bookmark = |source: &str, place: &str| Bookmark { source: source.to_owned(), place: place.to_owned() };
        let later = Version {
            number: 9,
            kind: CommitKind::Edit,
            profile: TokenizerProfile::Uax29,
            parts: vec![file(3, 4), file(4, 300), Part::Edits { version: 9, num_docs: 2 }],
            dropped: vec![1..2, 5..300],
            edits_since: 8,
            sets_columns: true,
            bookmarks: vec![bookmark("a.log", "1 2 3"), bookmark("b.log", "")],
            ..first.clone()
        };
        let of = |version, edits| {
            let mut bytes = encode_manifest(version, edits).unwrap();
            bytes.truncate(bytes.len() - CRC_BYTES);
            bytes
        };
        let bytes = |edits: &'static Vec<u8>| of(&later, Some(edits));
        [of(&first, None), of(&later, None)].into_iter().chain(records().iter().map(bytes)).collect()
    });
    &MANIFESTS
}

/// Returns the bytes of `input`, or one of `samples` after up to three changes.
pub fn changed(input: &Input<'_>, samples: &[Vec<u8>]) -> Vec<u8> {
    match *input {
        Input::Part { bytes, .. } => bytes.to_vec(),
        Input::Number(number) => {
            let mut random = Random(number);
            let mut bytes = random.pick(samples).clone();
            for _ in 0..1 + random.below(3) {
                if !bytes.is_empty() {
                    let other = random.pick(samples);
                    bytes = changed_bytes(&mut random, &bytes, other);
                }
            }
            bytes
        }
    }
}

pub fn seeds_of(samples: &[Vec<u8>]) -> Vec<Vec<u8>> {
    samples.iter().map(|bytes| part_input(0, bytes)).collect()
}

pub fn manifest_seeds() -> Vec<Vec<u8>> {
    seeds_of(manifests())
}

pub fn manifest(input: &Input<'_>) -> Verdict {
    let mut bytes = changed(input, manifests());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    let (version, edits) = match decode_manifest("mutant", &bytes, MAX_EDITS_BYTES) {
        Ok(decoded) => decoded,
        Err(error) => return Verdict::from_error(&error),
    };
    let again = encode_manifest(&version, edits.as_deref()).unwrap();
    let decoded = decode_manifest("again", &again, MAX_EDITS_BYTES).unwrap();
    assert_eq!(decoded, (version, edits.clone()));
    if let Some(edits) = edits {
        check_record(&edits);
    }
    Verdict::Answered
}

pub fn edits_seeds() -> Vec<Vec<u8>> {
    seeds_of(records())
}

pub fn edits(input: &Input<'_>) -> Verdict {
    check_record(&changed(input, records()))
}

fn check_record(bytes: &[u8]) -> Verdict {
    match decode_batch("mutant", bytes) {
        Err(error) => Verdict::from_error(&error),
        Ok(batch) => {
            let again = encode_batch(&batch);
            assert!(again.len() <= bytes.len(), "numbers are written as short as can be");
            assert_eq!(decode_batch("again", &again).unwrap(), batch);
            Verdict::Answered
        }
    }
}
