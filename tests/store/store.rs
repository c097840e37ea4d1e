//! Tests of living corpora as they are stored: acknowledged changes stay, and stay complete, under
//! any fault.
//!
//! The faults are a loss of power at every step (`disk`), calls that fail, racing writers, readers
//! beside a writer in every order (`interleavings`), object stores with faults (`faults`), and
//! manipulated versions. Plain texts hold the expected state (`testkit::living`).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::executor::block_on;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tadoc::Error;
use tadoc::format::OpenLimits;
use tadoc::text::TokenizerProfile;
use tadoc_store::{
    Change, CommitKind, LivingStore, LocalFolder, ObjectPrefix, OptimizeOptions, Part, Storage, StoreOptions, Version,
    decode_manifest, encode_manifest,
};
use testkit::living::{self, Ledger, Step, Texts, add, append, batch, eager, optimization, run, texts, workload};
use testkit::random::Random;

use crate::disk::SimulatedDisk;
use crate::faults::{Fault, FaultyStore};

const ROOT: &str = "/disk/corpora/c";

fn folder(disk: &SimulatedDisk) -> LocalFolder<SimulatedDisk> {
    LocalFolder::on_disk(ROOT, disk.clone())
}

fn prefix(store: Arc<dyn ObjectStore>) -> ObjectPrefix {
    ObjectPrefix::new(store, "corpora/c".into())
}

async fn create(storage: impl Storage) -> LivingStore {
    LivingStore::create(storage, TokenizerProfile::default(), eager()).await.unwrap()
}

fn edit(batch: tadoc::edits::EditBatch) -> Change {
    Change::edit(CommitKind::Edit, &batch)
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_power_goes_off() {
    let calm = SimulatedDisk::new();
    block_on(Ledger::default().write(folder(&calm), &workload())).unwrap();
    assert!(calm.num_steps() > 70, "{}", calm.num_steps());
    for step in 0..calm.num_steps() {
        let disk = SimulatedDisk::new();
        disk.stop_at(step, step as u64 * 7919);
        let mut ledger = Ledger::default();
        let written = block_on(ledger.write(folder(&disk), &workload()));
        assert!(disk.is_off());
        // The last steps only clean up, so the answer may have come before them.
        assert!(written.is_err() || step + 4 > calm.num_steps(), "step {step}");
        for seed in 0..6 {
            let disk = disk.after_crash(seed);
            if let Err(error) = block_on(ledger.check(folder(&disk))) {
                panic!("step {step}, seed {seed}: {error}\n{:#?}", disk.names());
            }
        }
    }
}

#[test]
fn a_call_that_fails_once_leaves_the_old_version_or_the_new_one() {
    let calm = SimulatedDisk::new();
    block_on(Ledger::default().write(folder(&calm), &workload())).unwrap();
    let mut num_reported = 0;
    for call in 0..calm.num_calls() {
        let disk = SimulatedDisk::new();
        disk.fail_at(call);
        let mut ledger = Ledger::default();
        match block_on(ledger.write(folder(&disk), &workload())) {
            Ok(()) => {}
            Err(Error::Io { .. } | Error::External { .. } | Error::UnknownCommit { .. }) => {
                num_reported += 1;
            }
            Err(other) => panic!("call {call}: {other:?}"),
        }
        block_on(ledger.check(folder(&disk))).unwrap();
    }
    // Most calls report their failure. The others only clean up.
    assert!(num_reported * 10 > calm.num_calls() * 8, "{num_reported} of {}", calm.num_calls());
}

#[test]
fn a_small_commit_is_one_file_and_two_syncs() {
    let disk = SimulatedDisk::new();
    block_on(async {
        let store = create(folder(&disk)).await;
        run(&store, &Step::Append(vec!["a", "b"])).await.unwrap();
        let base = store.latest().await.unwrap();
        let before = disk.names().len();
        let num_syncs = disk.num_syncs();
        let edits = (0..1000).map(|i| append(i % 2, "sixty-four bytes of text")).collect();
        store.commit(&base, &edit(batch(edits))).await.unwrap();
        assert_eq!((disk.names().len(), disk.num_syncs()), (before + 1, num_syncs + 2));
    });
}

#[test]
fn bytes_of_edits_are_those_of_a_listing_and_listed_once() {
    let bucket = FaultyStore::new(&Arc::new(InMemory::new()), Fault::Denied, 0, 0);
    let place = || prefix(Arc::new(bucket.clone()));
    let open = || async { LivingStore::open(place(), StoreOptions::default()).await.unwrap() };
    block_on(async {
        let store = create(place()).await;
        let other = open().await;
        run(&store, &Step::Append(vec!["a", "b"])).await.unwrap();
        for round in 0..40 {
            let writer = if round % 7 == 3 { &other } else { &store };
            let base = writer.latest().await.unwrap();
            writer.commit(&base, &edit(batch(vec![append(0, "more")]))).await.unwrap();
            if round % 10 == 9 {
                store.optimize(&OptimizeOptions::default()).await.unwrap().unwrap();
            }
            let version = store.latest().await.unwrap();
            let listed = open().await.edit_bytes(&version).await.unwrap();
            assert_eq!(store.edit_bytes(&version).await.unwrap(), listed, "{round}");
            assert_eq!(other.edit_bytes(&version).await.unwrap(), listed, "{round}");
        }
        let base = store.latest().await.unwrap();
        let version = store.commit(&base, &edit(batch(vec![append(1, "last")]))).await.unwrap();
        let num_calls = bucket.num_calls();
        assert!(store.edit_bytes(&version).await.unwrap() > 0);
        assert_eq!(bucket.num_calls(), num_calls);
        other.edit_bytes(&version).await.unwrap();
        assert_eq!(bucket.num_calls(), num_calls + 1);
    });
}

#[test]
fn what_is_refused_says_why() {
    let disk = SimulatedDisk::new();
    block_on(async {
        let missing = LivingStore::open(folder(&disk), eager()).await.unwrap_err();
        assert!(matches!(missing, Error::Missing { .. }), "{missing}");
        assert!(missing.to_string().contains("create one"), "{missing}");
        let store = create(folder(&disk)).await;
        let again = LivingStore::create(folder(&disk), TokenizerProfile::default(), eager()).await;
        assert!(matches!(again.unwrap_err(), Error::InvalidArgument { name: "place", .. }));
        let none = store.version(9).await.unwrap_err();
        assert!(none.to_string().contains("versions 1 to 1"), "{none}");

        // The cases are another tokenizer, and a part that is not a file.
        let other = LivingStore::create(
            LocalFolder::on_disk("/disk/other", disk.clone()),
            TokenizerProfile::Whitespace,
            eager(),
        );
        let other = other.await.unwrap();
        let refused = living::write_texts(&other, vec![None]).await.unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument { name: "tokenizer", .. }));
        let names = disk.names();
        assert!(!names.iter().any(|name| name.starts_with("/disk/other/segments")), "{names:?}");

        // The cases are a missing file, and a file with other content.
        run(&store, &Step::Append(vec!["here"])).await.unwrap();
        let version = store.latest().await.unwrap();
        let name = version.parts[0].file_name().unwrap();
        disk.damage(&format!("{ROOT}/{name}"));
        let damaged = store.read_part(&version.parts[0], &OpenLimits::default()).await;
        assert!(matches!(damaged.unwrap_err(), Error::Checksum { .. }));
        folder(&disk).remove("segments", &[name]).await.unwrap();
        let gone = store.read_part(&version.parts[0], &OpenLimits::default()).await.unwrap_err();
        assert!(matches!(gone, Error::Missing { .. }), "{gone}");
        assert!(matches!(store.version(2).await.unwrap_err(), Error::Missing { .. }));

        // The parts cover other ids than the version has.
        let wrong = Change::optimize(&version, Vec::new(), Vec::new());
        let wrong = store.commit(&version, &wrong).await.unwrap_err();
        assert!(matches!(wrong, Error::InvalidArgument { name: "parts", .. }), "{wrong}");

        // The cases are a version under another version's name, and a damaged version.
        let bytes = folder(&disk).get(&version_file(2), 1 << 20).await.unwrap();
        folder(&disk).put_if_absent(&version_file(3), bytes).await.unwrap();
        let renamed = store.latest().await.unwrap_err();
        assert!(matches!(renamed, Error::Format { section: "version", .. }), "{renamed}");
        disk.damage(&format!("{ROOT}/{}", version_file(3)));
        assert!(matches!(store.latest().await.unwrap_err(), Error::Checksum { .. }));

        // The version is longer than the limit.
        let options = StoreOptions { max_version_bytes: 50, ..eager() };
        let small = LivingStore::create(prefix(Arc::new(InMemory::new())), store.profile(), options);
        assert!(matches!(small.await.unwrap_err(), Error::Capacity { limit: 50, .. }));
    });
}

fn version_file(number: u64) -> String {
    format!("versions/{number:020}.tadoc-version")
}

/// Returns two places: a real folder, and an object store.
fn places() -> (tempfile::TempDir, Vec<Arc<dyn Fn() -> LivingStore + Send + Sync>>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("deep/er");
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    block_on(async {
        create(LocalFolder::new(&root)).await;
        create(prefix(Arc::clone(&objects))).await;
    });
    let on_disk = move || block_on(LivingStore::open(LocalFolder::new(&root), eager())).unwrap();
    let in_store = move || block_on(LivingStore::open(prefix(Arc::clone(&objects)), eager())).unwrap();
    (dir, vec![Arc::new(on_disk), Arc::new(in_store)])
}

#[test]
fn of_two_writers_one_wins_and_the_other_tries_again() {
    let (_dir, places) = places();
    for open in places {
        block_on(run(&open(), &Step::Append(vec!["x"]))).unwrap();
        let base = block_on(open().latest()).unwrap();
        // Of two edits of the same version, one succeeds.
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..2)
                .map(|_| {
                    let open = Arc::clone(&open);
                    let base = &base;
                    scope.spawn(move || block_on(open().commit(base, &edit(batch(vec![append(0, "!")])))))
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 1));
        let lost = lost.into_iter().next().unwrap().unwrap_err();
        assert!(matches!(lost, Error::Conflict { version: 3, .. }), "{lost}");

        // All changes succeed if they are made through a closure, or if ids do not matter.
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let open = Arc::clone(&open);
                scope.spawn(move || {
                    let store = open();
                    for _ in 0..5 {
                        let change = async |latest: Version| {
                            assert_eq!(latest.profile, TokenizerProfile::default());
                            Ok(edit(batch(vec![append(0, &writer.to_string())])))
                        };
                        block_on(store.update(change)).unwrap();
                        let base = block_on(store.latest()).unwrap();
                        block_on(store.commit(&base, &edit(batch(vec![add("new")])))).unwrap();
                    }
                });
            }
        });
        let store = open();
        let latest = block_on(store.latest()).unwrap();
        assert_eq!(latest.number, 3 + 40);
        let found = block_on(texts(&store, &latest)).unwrap();
        assert_eq!(found.len(), 1 + 20);
        let mut digits = found[0].clone().unwrap();
        digits.sort_unstable();
        assert_eq!(digits, b"!00000111112222233333x");
        let history = block_on(store.history()).unwrap();
        let ids: BTreeSet<_> = history.iter().map(|version| version.commit_id).collect();
        assert_eq!(ids.len(), 43);
        assert!(history.windows(2).all(|w| w[1].parent_id == w[0].commit_id));
        assert!(history.windows(2).all(|w| w[1].time_us >= w[0].time_us));
    }
}

#[test]
fn readers_beside_a_writer_see_whole_versions() {
    let (_dir, places) = places();
    for open in places {
        let expected: Mutex<Vec<Texts>> = Mutex::new(vec![Texts::new()]);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let store = open();
                    let mut last = 0;
                    while !is_done.load(Ordering::Relaxed) {
                        let version = block_on(store.latest()).unwrap();
                        let found = block_on(texts(&store, &version)).unwrap();
                        let all = expected.lock().unwrap();
                        assert_eq!(found, all[version.number as usize - 1], "{version:?}");
                        assert!(version.number >= last);
                        last = version.number;
                    }
                });
            }
            let store = open();
            for i in 0..24 {
                let step = living::round(i);
                // The expected state is known before the version exists.
                let next = living::after(expected.lock().unwrap().last().unwrap(), &step);
                expected.lock().unwrap().push(next);
                block_on(run(&store, &step)).unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn an_optimization_succeeds_beside_appends_and_edits_and_fails_after_another() {
    block_on(async {
        let store = create(prefix(Arc::new(InMemory::new()))).await;
        run(&store, &Step::Append(vec!["a", "b", "c"])).await.unwrap();
        run(&store, &Step::Edit(vec![append(1, " more"), add("d")])).await.unwrap();
        let base = store.latest().await.unwrap();
        let first = optimization(&store, &base).await.unwrap();
        let second = optimization(&store, &base).await.unwrap();
        run(&store, &Step::Append(vec!["e"])).await.unwrap();
        run(&store, &Step::Edit(vec![append(1, " and more"), append(4, "!")])).await.unwrap();
        run(&store, &Step::Edit(vec![add("f")])).await.unwrap();
        let before = texts(&store, &store.latest().await.unwrap()).await.unwrap();
        let version = store.commit(&base, &first).await.unwrap();
        assert_eq!((version.number, version.edits_since, version.parts.len()), (7, 4, 3));
        assert_eq!(texts(&store, &version).await.unwrap(), before);
        let conflict = store.commit(&base, &second).await.unwrap_err();
        assert!(matches!(conflict, Error::Conflict { version: 7, .. }), "{conflict}");

        // Old versions stay as they were until a clean-up removes their files.
        assert_eq!(texts(&store, &store.version(2).await.unwrap()).await.unwrap().len(), 3);
        let week = Duration::from_secs(7 * 86_400);
        assert_eq!(store.clean_up(week, false).await.unwrap().removed, []);
        let planned = store.clean_up(Duration::ZERO, true).await.unwrap();
        assert_eq!(store.history().await.unwrap().len(), 7);
        let done = store.clean_up(Duration::ZERO, false).await.unwrap();
        assert_eq!((&done, done.oldest_version), (&planned, 7));
        // The removed files are versions 1 to 3, their parts, and the part of the optimization that
        // lost.
        assert_eq!(done.removed.len(), 5, "{done:?}");
        assert!(done.len_bytes() > 500);
        assert_eq!(texts(&store, &version).await.unwrap(), before);
        let gone = store.version(5).await.unwrap_err();
        assert!(gone.to_string().contains("versions 4 to 7"), "{gone}");
    });
}

#[test]
fn a_writer_that_slept_through_a_clean_up_does_not_commit_into_the_past() {
    block_on(async {
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let store = create(prefix(Arc::clone(&memory))).await;
        run(&store, &Step::Append(vec!["a"])).await.unwrap();
        let asleep = store.latest().await.unwrap();
        for _ in 0..4 {
            run(&store, &Step::Append(vec!["b"])).await.unwrap();
        }
        store.clean_up(Duration::ZERO, false).await.unwrap();
        let stale = store.commit(&asleep, &edit(batch(vec![append(0, "!")]))).await.unwrap_err();
        assert!(matches!(stale, Error::Conflict { version: 3, .. }), "{stale}");
        assert_eq!(store.history().await.unwrap().len(), 1);
        let moved = store.commit(&asleep, &edit(batch(vec![add("!")]))).await.unwrap();
        assert_eq!((moved.number, moved.num_doc_ids()), (7, 6));
        // The same holds for the version right before the latest.
        let before = moved;
        run(&store, &Step::Append(vec!["c"])).await.unwrap();
        run(&store, &Step::Append(vec!["d"])).await.unwrap();
        let file = prefix(memory);
        file.remove("versions", &[version_file(7), version_file(8)]).await.unwrap();
        let stale = store.commit(&before, &edit(batch(vec![append(0, "!")]))).await.unwrap_err();
        assert!(matches!(stale, Error::Conflict { version: 8, .. }), "{stale}");
    });
}

#[test]
fn segment_files_are_removed_together_and_versions_one_by_one() {
    let bucket = FaultyStore::new(&Arc::new(InMemory::new()), Fault::Denied, 0, 0);
    let storage = ObjectPrefix::new(Arc::new(bucket.clone()), "c".into());
    block_on(async {
        for (folder, num_calls) in [("segments", 1), ("versions", 9)] {
            let names: Vec<String> = (0..9).map(|i| format!("{folder}/{i}")).collect();
            // The last name does not exist.
            for name in &names[..8] {
                storage.put_if_absent(name, "x".into()).await.unwrap();
            }
            let before = bucket.num_calls();
            storage.remove(folder, &names).await.unwrap();
            assert_eq!(bucket.num_calls() - before, num_calls, "{folder}");
            assert_eq!(storage.list(folder, None).await.unwrap(), []);
        }
    });
}

#[test]
fn bad_days_of_an_object_store_are_ridden_out() {
    let calm = FaultyStore::new(&Arc::new(InMemory::new()), Fault::Denied, 0, 0);
    block_on(Ledger::default().write(prefix(Arc::new(calm.clone())), &workload())).unwrap();
    let kinds = [Fault::Conflict, Fault::Precondition, Fault::Unavailable, Fault::LostAnswer];
    for fault in kinds {
        for from in 0..calm.num_calls() {
            for num in [1, 3] {
                let memory = Arc::new(InMemory::new());
                let faulty = FaultyStore::new(&memory, fault, from, from + num);
                let mut ledger = Ledger::default();
                let written = block_on(ledger.write(prefix(Arc::new(faulty)), &workload()));
                // A segment file is sent once. If that fails, nothing happened.
                if let Err(error) = &written {
                    assert!(matches!(error, Error::External { .. }), "{fault:?} {from}: {error}");
                    assert!(error.to_string().contains("segments/"), "{fault:?} {from}: {error}");
                    ledger.in_flight = None;
                }
                block_on(ledger.check(prefix(memory))).unwrap();
            }
        }
    }
}

#[test]
fn a_store_that_fails_for_good_is_reported() {
    let calm = FaultyStore::new(&Arc::new(InMemory::new()), Fault::Denied, 0, 0);
    block_on(Ledger::default().write(prefix(Arc::new(calm.clone())), &workload())).unwrap();
    let mut num_unknown = 0;
    for fault in [Fault::Denied, Fault::Unavailable, Fault::LostAnswer, Fault::Conflict] {
        for from in 0..calm.num_calls() {
            let memory = Arc::new(InMemory::new());
            let faulty = FaultyStore::new(&memory, fault, from, usize::MAX);
            let mut ledger = Ledger::default();
            match block_on(ledger.write(prefix(Arc::new(faulty)), &workload())).unwrap_err() {
                Error::UnknownCommit { commit_id, .. } => {
                    num_unknown += 1;
                    let opened = LivingStore::open(prefix(Arc::clone(&memory) as _), eager());
                    let history = block_on(async { opened.await?.history().await });
                    let history = history.unwrap_or_default();
                    let is_there = history.iter().any(|v| v.commit_id.to_string() == commit_id);
                    let newest = history.last().map_or(0, |version| version.number);
                    assert_eq!(is_there, newest > ledger.acknowledged.len() as u64);
                }
                Error::External { .. } => {}
                other => panic!("{fault:?} {from}: {other:?}"),
            }
            block_on(ledger.check(prefix(memory))).unwrap();
        }
    }
    assert!(num_unknown > 10);
}

#[test]
fn large_files_come_back_from_an_upload_in_parts() {
    block_on(async {
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let store = create(prefix(Arc::clone(&memory))).await;
        let mut random = Random(1);
        let text: Vec<u8> = (0..12 << 20).map(|_| random.number() as u8).collect();
        let written = living::write_texts(&store, vec![Some(text.clone())]).await.unwrap();
        let Part::File { len_bytes, .. } = written.part else { panic!("{written:?}") };
        assert!(len_bytes > 9 << 20, "{len_bytes}");
        let base = store.latest().await.unwrap();
        let change = Change::append(CommitKind::Append, &[written]);
        let version = store.commit(&base, &change).await.unwrap();
        assert_eq!(version.counts.text_bytes, 12 << 20);
        assert!(texts(&store, &version).await.unwrap() == [Some(text)]);

        // A file whose writer gives up does not show.
        let gives_up = store
            .write_part(|out| {
                std::io::Write::write_all(out, &vec![1; 20 << 20]).unwrap();
                Err(Error::Cancelled)
            })
            .await;
        assert!(matches!(gives_up, Err(Error::Cancelled)));
        let files = prefix(memory).list("segments", None).await.unwrap();
        assert_eq!(files.len(), 1);
    });
}

#[test]
fn the_futures_can_be_sent() {
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    block_on(is_send(async {
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let store = create(prefix(memory)).await;
        run(&store, &Step::Append(vec!["a"])).await.unwrap();
        let change = |_: Version| async { Ok(edit(batch(vec![add("b")]))) };
        let version = store.update(change).await.unwrap();
        store.clean_up(Duration::ZERO, false).await.unwrap();
        assert_eq!(store.history().await.unwrap(), [version]);
    }));
}

/// Returns the bytes of every version of a history, with their content.
fn manifests() -> Vec<Vec<u8>> {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let storage = prefix(memory);
    block_on(async {
        let store = create(storage.clone()).await;
        for step in workload().iter().filter(|step| !matches!(step, Step::CleanUp)) {
            run(&store, step).await.unwrap();
        }
        let mut bytes = Vec::new();
        for number in 1..=store.latest().await.unwrap().number {
            bytes.push(storage.get(&version_file(number), 1 << 20).await.unwrap().to_vec());
        }
        bytes
    })
}

#[test]
fn tampered_versions_are_errors_or_versions() {
    let samples = manifests();
    let mut random = Random(17);
    let mut num_versions = 0;
    let mut num_errors = 0;
    for case in 0..20_000 {
        let mut bytes = random.pick(&samples).clone();
        for _ in 0..1 + random.below(3) {
            let range = random.range(bytes.len());
            match random.below(5) {
                0 => bytes[range.start] ^= 1 << random.below(8),
                1 => bytes[range.start] = random.lie(u64::from(bytes[range.start])) as u8,
                2 => drop(bytes.drain(range)),
                3 => bytes.truncate(range.start.max(1)),
                _ => {
                    let other = random.pick(&samples).clone();
                    let piece = random.range(other.len());
                    drop(bytes.splice(range, other[piece].iter().copied()));
                }
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        let is_repaired = random.one_in(2) && bytes.len() > 4;
        if is_repaired {
            let end = bytes.len() - 4;
            let crc32c = crc32c::crc32c(&bytes[..end]);
            bytes[end..].copy_from_slice(&crc32c.to_le_bytes());
        }
        match decode_manifest("f", &bytes, 1 << 20) {
            Ok((version, edits)) => {
                num_versions += 1;
                let again = encode_manifest(&version, edits.as_deref()).unwrap();
                let (version_again, edits_again) = decode_manifest("f", &again, 1 << 20).unwrap();
                assert_eq!((version_again, edits_again), (version, edits), "case {case}");
                assert!(is_repaired || samples.contains(&bytes), "case {case}");
            }
            Err(
                Error::Format { section: "version", .. }
                | Error::Checksum { .. }
                | Error::Version { .. }
                | Error::Capacity { .. },
            ) => num_errors += 1,
            Err(other) => panic!("case {case}: {other:?}"),
        }
    }
    assert!(num_versions > 1_000 && num_errors > 10_000, "{num_versions}, {num_errors}");
}

#[test]
fn every_flipped_bit_and_every_shorter_version_is_found() {
    for sample in manifests() {
        for bit in 0..8 * sample.len() {
            let mut bytes = sample.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_manifest("f", &bytes, 1 << 20).is_err(), "bit {bit}");
        }
        for len in 0..sample.len() {
            assert!(decode_manifest("f", &sample[..len], 1 << 20).is_err(), "{len} bytes");
        }
    }
}

#[test]
fn later_formats_are_told_from_damage() {
    let sample = manifests().remove(0);
    for (at, byte, got) in [(8, 2, "version format 2"), (16, 4, "required feature 2")] {
        let mut bytes = sample.clone();
        bytes[at] = byte;
        let end = bytes.len() - 4;
        let crc32c = crc32c::crc32c(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc32c.to_le_bytes());
        let error = decode_manifest("f", &bytes, 1 << 20).unwrap_err();
        assert!(matches!(&error, Error::Version { got: g, .. } if g == got), "{error}");
    }
    let long = batch(vec![append(0, &"x".repeat(5_000))]);
    let edits = tadoc::edits::encode_batch(&long);
    let (version, _) = decode_manifest("f", &sample, 0).unwrap();
    let bytes = encode_manifest(&version, Some(&edits)).unwrap();
    assert!(bytes.len() < 400, "{}", bytes.len());
    let error = decode_manifest("f", &bytes, 4_000).unwrap_err();
    assert!(matches!(error, Error::Capacity { limit: 4_000, .. }), "{error}");
    assert_eq!(decode_manifest("f", &bytes, 6_000).unwrap().1.as_deref(), Some(&edits[..]));
}
