//! Tests of the optimization of living corpora. Every document stays the same, with any edits
//! before and meanwhile.
//!
//! Random commits and optimizations run against plain texts (`testkit::living`). Blocks and sizes
//! are so small that segments are copied, parts are kept, and documents are cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::executor::block_on;
use object_store::memory::InMemory;
use tadoc::Error;
use tadoc::analytics::word_count;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, EditBatch, EditMode};
use tadoc::format::OpenLimits;
use tadoc::segment::Corpus;
use tadoc::text::TokenizerProfile;
use tadoc_store::{Change, CommitKind, LivingStore, ObjectPrefix, OptimizeOptions, Part, Version};
use testkit::living::{self, Texts, any_layout, batch, eager};
use testkit::random::Random;

const WORDS: [&str; 8] = ["to", "be", "or", "not", "that", "is", "the", "question"];

async fn create() -> LivingStore {
    let prefix = ObjectPrefix::new(Arc::new(InMemory::new()), "c".into());
    LivingStore::create(prefix, TokenizerProfile::default(), eager()).await.unwrap()
}

fn text(random: &mut Random, max_words: usize) -> Vec<u8> {
    let words: Vec<&str> = (0..random.below(max_words)).map(|_| *random.pick(&WORDS)).collect();
    words.join(" ").into_bytes()
}

/// Returns options with blocks of `block_bytes`, under which files of fewer than `small_file_bytes`
/// are small.
fn options(block_bytes: usize, small_file_bytes: u64) -> OptimizeOptions {
    let layout = any_layout(block_bytes as u64 + small_file_bytes);
    let ingest = IngestOptions { block_bytes, layout, ..IngestOptions::default() };
    OptimizeOptions { ingest, small_file_bytes, max_run_bytes: 4000, ..Default::default() }
}

async fn append_file(store: &LivingStore, texts: Vec<Vec<u8>>, block_bytes: usize) -> Version {
    let written = store
        .write_part(move |out| {
            let layout = any_layout(texts.iter().map(Vec::len).sum::<usize>() as u64);
            let options = IngestOptions { block_bytes, layout, ..IngestOptions::default() };
            let mut builder = CorpusBuilder::new(out, options)?;
            for (idx, text) in texts.iter().enumerate() {
                builder.push_document(&format!("file {idx}"), text)?;
            }
            Ok(builder.finish(None)?.1.footer)
        })
        .await
        .unwrap();
    let base = store.latest().await.unwrap();
    store.commit(&base, &Change::append(CommitKind::Append, &[written])).await.unwrap()
}

/// Returns a random batch that is valid for `texts`.
fn random_edits(random: &mut Random, texts: &Texts) -> EditBatch {
    let mut lens: Vec<Option<u64>> = texts.iter().map(|text| text.as_ref().map(|text| text.len() as u64)).collect();
    let mut edits = Vec::new();
    for _ in 0..1 + random.below(4) {
        let there: Vec<usize> = (0..lens.len()).filter(|&id| lens[id].is_some()).collect();
        let kind = if there.is_empty() { 0 } else { random.below(12) };
        if kind < 2 {
            let content = text(random, 30);
            lens.push(Some(content.len() as u64));
            edits.push(Edit::AddDocument { path: format!("added {}", lens.len() - 1), content });
            continue;
        }
        let id = *random.pick(&there);
        let doc_id = id as u64;
        let len = lens[id].unwrap();
        let offset_bytes = random.below(len as usize + 1) as u64;
        edits.push(match kind {
            2 => {
                lens[id] = None;
                Edit::DropDocument { doc_id }
            }
            3 => {
                let content = text(random, 60);
                lens[id] = Some(content.len() as u64);
                Edit::ReplaceDocument { doc_id, content }
            }
            4..7 => {
                let len_bytes = random.below(20.min(len - offset_bytes) as usize + 1) as u64;
                lens[id] = Some(len - len_bytes);
                Edit::DeleteText { doc_id, offset_bytes, len_bytes }
            }
            7..9 => {
                let text = text(random, 6);
                lens[id] = Some(len + text.len() as u64);
                Edit::AppendText { doc_id, text }
            }
            _ => {
                let text = text(random, 6);
                lens[id] = Some(len + text.len() as u64);
                Edit::InsertText { doc_id, offset_bytes, text }
            }
        });
    }
    batch(edits)
}

/// Returns texts and paths of all documents, and the words of the corpus with their counts.
async fn all(store: &LivingStore) -> (Texts, Vec<Option<String>>, Vec<(String, u64)>) {
    let latest = store.latest().await.unwrap();
    let corpus = store.corpus(&latest, &OpenLimits::default()).await.unwrap();
    let ids = || 0..corpus.num_docs();
    let text = |id| (!corpus.is_dropped(id)).then(|| corpus.extract(id, 0, u64::MAX).unwrap());
    let texts = ids().map(text).collect();
    let paths = ids().map(|id| corpus.path(id).map(str::to_owned)).collect();
    let counts = word_count(&corpus.snapshot().unwrap()).unwrap();
    let words = (0..counts.len()).map(|i| (counts.word(i).to_owned(), counts.count(i)));
    // Words that only dropped texts have may still be in the dictionary.
    let mut words: Vec<(String, u64)> = words.filter(|(_, count)| *count > 0).collect();
    words.sort();
    (texts, paths, words)
}

fn files_of(version: &Version) -> Vec<String> {
    version.parts.iter().filter_map(Part::file_name).collect()
}

#[test]
fn random_corpora_are_what_they_were() {
    let mut num_optimized = 0;
    let mut num_kept = 0;
    for seed in 0..10 {
        let mut random = Random(seed);
        block_on(async {
            let store = create().await;
            let mut expected = Texts::new();
            for _ in 0..12 {
                match random.below(4) {
                    0 => {
                        let max_words = *random.pick(&[5, 100, 600]);
                        let texts: Vec<Vec<u8>> = (0..random.below(6)).map(|_| text(&mut random, max_words)).collect();
                        expected.extend(texts.iter().cloned().map(Some));
                        append_file(&store, texts, 16 << random.below(7)).await;
                    }
                    1 => {
                        let base = store.latest().await.unwrap();
                        let before = all(&store).await;
                        assert_eq!(before.0, expected, "seed {seed}");
                        let options = options(16 << random.below(7), random.below(3000) as u64);
                        let Some(version) = store.optimize(&options).await.unwrap() else {
                            continue;
                        };
                        assert!(version.edit_versions().is_empty(), "{version:?}");
                        assert_eq!(all(&store).await, before, "seed {seed}");
                        let kept = files_of(&version);
                        num_kept += files_of(&base).iter().filter(|f| kept.contains(f)).count();
                        num_optimized += 1;
                    }
                    _ => {
                        let base = store.latest().await.unwrap();
                        let edits = random_edits(&mut random, &expected);
                        store.commit(&base, &Change::edit(CommitKind::Edit, &edits)).await.unwrap();
                        expected = living::after(&expected, &living::Step::Edit(edits.edits));
                    }
                }
            }
            if random.below(2) == 0 {
                store.clean_up(Duration::ZERO, false).await.unwrap();
                assert_eq!(all(&store).await.0, expected);
            }
        });
    }
    assert!(num_optimized > 12 && num_kept > 2, "{num_optimized} {num_kept}");
}

#[test]
fn batch_offsets_survive() {
    block_on(async {
        let store = create().await;
        append_file(&store, vec![b"0123456789".to_vec(), b"abc".to_vec()], 100).await;
        let insert =
            |offset_bytes, text: &str| Edit::InsertText { doc_id: 1, offset_bytes, text: text.as_bytes().to_vec() };
        let edits = vec![insert(1, "x"), insert(2, "y"), insert(1, "z")];
        let edits = EditBatch { mode: EditMode::InBatch, edits };
        let base = store.latest().await.unwrap();
        store.commit(&base, &Change::edit(CommitKind::Edit, &edits)).await.unwrap();
        append_file(&store, vec![b"later".to_vec()], 100).await;
        store.optimize(&options(100, 1)).await.unwrap().unwrap();
        assert_eq!(all(&store).await.0[1].as_deref(), Some(b"axzbyc".as_slice()));
    });
}

#[test]
fn large_files_that_nothing_touched_stay_and_large_segments_are_copied() {
    block_on(async {
        let store = create().await;
        let long = |word: &str| format!("{word} ").repeat(100).into_bytes();
        append_file(&store, vec![long("one")], 512).await;
        append_file(&store, vec![long("two"), long("three"), long("four")], 512).await;
        let base = store.latest().await.unwrap();
        let edit = batch(vec![living::append(2, "!")]);
        store.commit(&base, &Change::edit(CommitKind::Edit, &edit)).await.unwrap();
        let before = all(&store).await;
        let optimized = store.optimize(&options(512, 1)).await.unwrap().unwrap();
        assert_eq!(files_of(&optimized)[0], files_of(&base)[0]);
        assert_ne!(files_of(&optimized)[1], files_of(&base)[1]);
        assert_eq!(all(&store).await, before);
        // The edits are too small a share to optimize.
        store.commit(&optimized, &Change::edit(CommitKind::Edit, &edit)).await.unwrap();
        let rarely = OptimizeOptions { recompress_ratio: 0.9, ..options(512, 1) };
        assert_eq!(store.optimize(&rarely).await.unwrap(), None);
    });
}

#[test]
fn what_is_due_is_recompressed_and_nothing_else() {
    let prefix = ObjectPrefix::new(Arc::new(InMemory::new()), "c".into());
    block_on(async {
        let store = LivingStore::create(prefix, TokenizerProfile::default(), eager()).await.unwrap();
        append_file(&store, vec![b"to be ".repeat(100)], 1 << 20).await;
        let edited = async |text: Vec<u8>| {
            let base = store.latest().await.unwrap();
            let edit = batch(vec![Edit::AppendText { doc_id: 0, text }]);
            store.commit(&base, &Change::edit(CommitKind::Edit, &edit)).await.unwrap()
        };
        let max_run_bytes = 1 << 30;
        let with_ratio =
            |recompress_ratio| OptimizeOptions { recompress_ratio, max_run_bytes, ..options(1 << 20, 1 << 20) };
        let due = async |version: &Version, ratio: f64| {
            let done = store.recompress_if_due(version, &with_ratio(ratio)).await.unwrap();
            done.map(|version| version.number)
        };
        let mut random = Random(1);
        let mut bytes = |num: usize| (0..num).map(|_| random.number() as u8).collect();
        // The share of the edits is large, but they have few bytes.
        assert_eq!(due(&edited(bytes(10_000)).await, 0.2).await, None);
        let large = edited(bytes(2 << 20)).await;
        assert_eq!(due(&large, 0.0).await, None);
        assert_eq!(due(&large, 1.0).await, None);
        assert_eq!(due(&large, 0.2).await, Some(5));
        // One file is large.
        for number in 6..69 {
            let version = append_file(&store, vec![b"x".to_vec()], 1 << 20).await;
            assert_eq!((version.number, due(&version, 0.2).await), (number, None));
        }
        let version = append_file(&store, vec![b"x".to_vec()], 1 << 20).await;
        assert_eq!((version.parts.len(), due(&version, 0.2).await), (65, Some(70)));
        assert_eq!(store.num_docs(&version).await.unwrap(), 65);
    });
}

#[test]
fn many_commits_that_add_documents_become_one_file() {
    block_on(async {
        let store = create().await;
        let mut random = Random(1);
        let large = (0..4 << 20).map(|_| random.number() as u8).collect();
        append_file(&store, vec![large, b"to be".to_vec()], 1 << 23).await;
        // The share of edits is always too small.
        let options = OptimizeOptions { recompress_ratio: 0.999, ..options(1 << 23, 100) };
        let committed = async |edit: Edit| {
            let base = store.latest().await.unwrap();
            let change = Change::edit(CommitKind::Insert, &batch(vec![edit]));
            let version = store.commit(&base, &change).await.unwrap();
            store.recompress_if_due(&version, &options).await.unwrap()
        };
        let added = |number: usize| Edit::AddDocument { path: number.to_string(), content: WORDS[number % 8].into() };
        for number in 1..512 {
            assert_eq!(committed(added(number)).await, None, "{number}");
        }
        let optimized = committed(added(512)).await.unwrap();
        assert_eq!((optimized.parts.len(), optimized.num_doc_ids()), (2, 514));
        assert!(optimized.edit_versions().is_empty());
        // One edit touches the large file, which would be rebuilt too.
        let appended = Edit::AppendText { doc_id: 1, text: b" or".to_vec() };
        assert_eq!(committed(appended).await, None);
        for number in 1..513 {
            assert_eq!(committed(added(number)).await, None, "{number}");
        }
        let latest = store.latest().await.unwrap();
        assert_eq!((latest.parts.len(), store.num_docs(&latest).await.unwrap()), (514, 1026));
    });
}

#[test]
fn user_columns_are_never_lost_silently() {
    block_on(async {
        let store = create().await;
        let written = store.write_part(|out| {
            let mut builder = CorpusBuilder::new(out, IngestOptions::default())?;
            builder.push_document("a", b"text")?;
            builder.push_document("b", b"text")?;
            Ok(builder.finish(Some(b"columns".to_vec()))?.1.footer)
        });
        let written = written.await.unwrap();
        let base = store.latest().await.unwrap();
        let base = store.commit(&base, &Change::append(CommitKind::Append, &[written])).await.unwrap();
        let edits = batch(vec![living::add("c"), Edit::DropDocument { doc_id: 1 }]);
        store.commit(&base, &Change::edit(CommitKind::Edit, &edits)).await.unwrap();
        let refused = store.optimize(&OptimizeOptions::default()).await.unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument { name: "merge_columns", .. }));
        assert_eq!(store.latest().await.unwrap().number, 3);
        let merge = Arc::new(|parts: &[tadoc_store::ColumnsOfPart], set: &[Edit], dropped: &[std::ops::Range<u64>]| {
            let described =
                parts.iter().map(|part| format!("{} {:?}", part.num_docs, part.parquet.as_deref().unwrap_or_default()));
            let described = described.collect::<Vec<_>>().join("|");
            Ok(Some(format!("{described} {set:?} {dropped:?}").into_bytes()))
        });
        let options = OptimizeOptions { merge_columns: Some(merge), ..OptimizeOptions::default() };
        let version = store.optimize(&options).await.unwrap().unwrap();
        assert_eq!(version.dropped.as_slice(), std::slice::from_ref(&(1..2)));
        let (footer, _) = store.read_part(&version.parts[0], &OpenLimits::default()).await.unwrap();
        let expected = format!("2 {:?}|1 [] [] [1..2]", b"columns");
        assert_eq!(footer.columns.unwrap().len, expected.len() as u64);
    });
}

#[test]
fn writers_and_other_optimizations_go_on() {
    let store = block_on(async {
        let store = create().await;
        append_file(&store, vec![b"to be".to_vec()], 100).await;
        store
    });
    let is_written = AtomicBool::new(false);
    let write = || {
        for i in 0..30 {
            let version = store.update(async |_| {
                let edits = batch(vec![living::append(0, "x"), living::add(&format!("{i}"))]);
                Ok(Change::edit(CommitKind::Edit, &edits))
            });
            block_on(version).unwrap();
        }
        is_written.store(true, Ordering::Release);
    };
    let optimize = || {
        let mut num_optimized = 0;
        loop {
            let is_last = is_written.load(Ordering::Acquire);
            match block_on(store.optimize(&options(100, 1000))) {
                Ok(version) => num_optimized += usize::from(version.is_some()),
                Err(Error::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            if is_last {
                return num_optimized;
            }
        }
    };
    let num_optimized: usize = std::thread::scope(|scope| {
        let optimizing = [scope.spawn(optimize), scope.spawn(optimize)];
        write();
        optimizing.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert!(num_optimized > 0);
    let (texts, ..) = block_on(all(&store));
    assert_eq!(texts[0].as_deref(), Some(format!("to be{}", "x".repeat(30)).as_bytes()));
    let added: Vec<Vec<u8>> = texts[1..].iter().flatten().cloned().collect();
    let expected: Vec<Vec<u8>> = (0..30).map(|i| format!("{i}").into_bytes()).collect();
    assert_eq!(added, expected);
}

#[test]
fn workers_of_rayon_may_optimize() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let corpus: Corpus = pool.install(|| {
        block_on(async {
            let store = create().await;
            append_file(&store, vec![b"to be or not to be ".repeat(300)], 100).await;
            append_file(&store, vec![b"that".to_vec()], 100).await;
            let options = OptimizeOptions { max_run_bytes: 1 << 20, ..options(200, 1 << 20) };
            let version = store.optimize(&options).await.unwrap().unwrap();
            let corpus = store.corpus(&version, &OpenLimits::default()).await.unwrap();
            corpus.snapshot().unwrap()
        })
    });
    assert_eq!(corpus.num_docs(), 2);
}
