//! Tests of exact words of large dictionaries, of which heads and groups are read.

use std::fs;
use std::path::Path;

use datafusion::prelude::{SessionConfig, SessionContext};
use tadoc::build::IngestOptions;
use tadoc::format::SegmentLayout;
use testkit::random::Random;

use super::skipping::counter;
use super::{session_with, table};
use crate::fixtures;

const NUM_SEGMENTS: usize = 3;
const WITH_ALL_LISTS: SegmentLayout = SegmentLayout::Indexed { max_lists_percent: 100 };

/// Writes segments of `num_words` words each, which end with `suffix`. They stand in documents of 500 words, first all
/// of them and then `times` as many in random order.
fn write(path: &Path, num_words: usize, suffix: &str, times: usize, layout: SegmentLayout) -> String {
    let mut random = Random(num_words as u64);
    let word = |segment: usize, at: usize| format!("w{:07}{suffix}", (at * NUM_SEGMENTS + segment) * 7919 % 10_000_019);
    let mut documents: Vec<(String, String)> = Vec::new();
    for (segment, doc) in
        (0..NUM_SEGMENTS).flat_map(|segment| (0..(1 + times) * num_words / 500).map(move |doc| (segment, doc)))
    {
        let mut place = |at: usize| if at < num_words { 211 * at % num_words } else { random.below(num_words) };
        let words: Vec<String> = (500 * doc..500 * doc + 500).map(|at| word(segment, place(at))).collect();
        documents.push((format!("{segment}/{doc}.txt"), words.join(" ")));
    }
    let block_bytes = (documents.iter().map(|(_, text)| text.len()).sum::<usize>() / NUM_SEGMENTS) + 1;
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    fixtures::write_corpus(path, IngestOptions { block_bytes, layout, ..IngestOptions::default() }, &borrowed);
    path.display().to_string()
}

fn session() -> SessionContext {
    session_with(SessionConfig::new().with_target_partitions(1))
}

#[tokio::test]
async fn a_question_about_a_word_reads_a_small_part_of_dictionaries() {
    let dir = tempfile::tempdir().unwrap();
    // Dictionaries in blocks, and of coded tokens.
    let suffix = "_is_a_word_of_thirty_bytes_or_more";
    for (num_words, suffix, times, parts_of_file) in [(20_000, "", 5, 40), (140_000, suffix, 1, 64)] {
        let path = write(&dir.path().join(format!("{num_words}.tadoc")), num_words, suffix, times, WITH_ALL_LISTS);
        let plain = dir.path().join(format!("{num_words}.small.tadoc"));
        let plain = write(&plain, num_words, suffix, times, SegmentLayout::Small);
        let file_len = fs::metadata(&path).unwrap().len() as usize;
        let ctx = session();
        let read = async |call: &str| {
            let sql = format!("SELECT * FROM {}", call.replace('@', &path).replace('#', suffix));
            let num_read = counter(&ctx, &sql, "bytes_read").await;
            let expected =
                table(&session(), &format!("SELECT * FROM {}", call.replace('@', &plain).replace('#', suffix))).await;
            assert_eq!(table(&ctx, &sql).await, expected, "{sql}");
            num_read
        };
        let of_absent = read("search('@', 'absent')").await;
        assert!((1..file_len / parts_of_file).contains(&of_absent), "{of_absent} of {file_len}");
        let sql = format!("SELECT * FROM term_count('{path}', 'w0007919{suffix}')");
        let of_word = counter(&session(), &sql, "bytes_read").await;
        assert!((1..file_len / parts_of_file).contains(&of_word), "{of_word} of {file_len}");
        read("term_count('@', 'w0007919#')").await;
        // The heads are kept, and so are the words.
        let of_other = read("term_count('@', 'w0015838#')").await;
        assert!((1..of_word).contains(&of_other), "{of_other} after {of_word}");
        assert_eq!(read("search('@', 'absent')").await, 0);
        read("term_count('@', 'w0007919# OR w0015838# OR none')").await;
        read("search('@', 'w0007919#')").await;
        read("kwic('@', '\"w0007919# w5020646#\"', width => 2)").await;
        // A pattern needs all words, which later questions about exact ones use.
        read("term_count('@', 'w00079*')").await;
        read("term_count('@', 'w0023757#')").await;
        read("search('@', 'w0023757# OR w00079*')").await;
    }
}

#[tokio::test]
async fn damaged_heads_and_groups_are_an_error_and_not_other_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tadoc");
    let name = write(&path, 20_000, "", 0, WITH_ALL_LISTS);
    let sql = format!("SELECT * FROM term_count('{name}', 'w0007919 OR absent')");
    let right = table(&session(), &sql).await;
    let bytes = fs::read(&path).unwrap();
    let mut num_faults = 0;
    for at in (64..bytes.len()).step_by(bytes.len() / 150) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&path, damaged).unwrap();
        match super::batches(&session(), &sql).await {
            Ok(_) => assert_eq!(table(&session(), &sql).await, right, "byte {at}"),
            Err(error) => {
                num_faults += 1;
                assert!(error.to_string().contains("a.tadoc"), "{error}");
            }
        }
    }
    assert!(num_faults > 0);
}
