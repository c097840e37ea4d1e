//! Tests of `tadoc sync`: after a sync the corpus has the documents of the folder, and no others.
//!
//! `model` changes folders at random and compares every document and count, `killed` ends syncs at random moments, and
//! `stores` has folders and corpora in S3.

mod killed;
mod model;
#[cfg(feature = "stores")]
mod stores;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use futures::executor::block_on;
use tadoc::format::OpenLimits;
use tadoc_store::{LivingStore, LocalFolder, StoreOptions};

use crate::harness::{Folder, gzip, new_folder};

/// Longest time to wait for a change, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Documents by path; several of one path stand side by side.
type Documents = BTreeMap<String, Vec<Vec<u8>>>;

/// Returns the documents of the corpus `name`, without those that are dropped.
fn stored(folder: &Folder, name: &str) -> Documents {
    let mut documents = Documents::new();
    block_on(async {
        let place = LocalFolder::new(folder.join(name));
        let Ok(store) = LivingStore::open(place, StoreOptions::default()).await else { return };
        let latest = store.latest().await.unwrap();
        let corpus = store.corpus(&latest, &OpenLimits::default()).await.unwrap();
        for doc_id in (0..corpus.num_docs()).filter(|&doc_id| !corpus.is_dropped(doc_id)) {
            let path = corpus.path(doc_id).unwrap().to_owned();
            documents.entry(path).or_default().push(corpus.extract(doc_id, 0, u64::MAX).unwrap());
        }
    });
    documents
}

/// Returns documents of one text each.
fn documents(all: &[(&str, &str)]) -> Documents {
    all.iter().map(|(path, text)| ((*path).to_owned(), vec![text.as_bytes().to_vec()])).collect()
}

/// Runs a sync of `in` and `c`, and returns its counts: added, changed, dropped, unchanged.
fn sync(folder: &Folder, options: &[&str]) -> [u64; 4] {
    counts(&folder.ok(&[&["sync", "in", "c", "--json"], options].concat()))
}

fn counts(json: &str) -> [u64; 4] {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    ["added", "changed", "dropped", "unchanged"].map(|name| value[name].as_u64().unwrap())
}

/// Returns the number of the latest version of `c`.
fn version(folder: &Folder) -> u64 {
    let info = folder.ok(&["info", "c", "--json"]);
    serde_json::from_str::<serde_json::Value>(&info).unwrap()["version"].as_u64().unwrap()
}

/// Returns the only file with what the last sync knew.
fn known(folder: &Folder) -> PathBuf {
    let all = names_below(&folder.join("c/versions"));
    let mut known = all.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "tadoc-known"));
    let only = known.next().unwrap();
    assert_eq!(known.next(), None);
    only
}

/// Sets the time of the last change of a file, in seconds since 1970.
fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, 7);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn documents_follow_their_files() {
    let folder = new_folder();
    folder.write("in/a.txt", "one");
    folder.write("in/sub/b.txt", "two");
    folder.write("in/empty", "");
    folder.write("in/.hidden", "x");
    let said = folder.ok(&["sync", "in", "c", "-v"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], ["added    a.txt", "added    empty", "added    sub/b.txt"]);
    assert!(lines[3].starts_with("c: version 2: 3 added, 0 changed, 0 dropped, 0 unchanged ("), "{said}");
    assert_eq!(stored(&folder, "c"), documents(&[("a.txt", "one"), ("empty", ""), ("sub/b.txt", "two")]));
    assert_eq!((sync(&folder, &[]), version(&folder)), ([0, 0, 0, 3], 2));

    folder.write("in/a.txt", "One");
    fs::rename(folder.join("in/sub/b.txt"), folder.join("in/c.txt")).unwrap();
    let would = folder.ok(&["sync", "in", "c", "--dry-run"]);
    let expected = "changed  a.txt\nadded    c.txt\ndropped  sub/b.txt\nc: would be: 1 added, 1 changed, 1 dropped, 1 \
                    unchanged (";
    assert!(would.starts_with(expected), "{would}");
    assert_eq!(version(&folder), 2);
    assert_eq!((sync(&folder, &[]), version(&folder)), ([1, 1, 1, 1], 3));
    assert_eq!(stored(&folder, "c"), documents(&[("a.txt", "One"), ("c.txt", "two"), ("empty", "")]));
    assert_eq!(folder.ok(&["sync", "in", "c", "-q"]), "");
    let kinds = folder.ok(&["history", "c"]);
    assert!(kinds.contains("update") && kinds.contains("append"), "{kinds}");
    folder.ok(&["verify", "-q", "c"]);
}

/// A dry run makes no corpus, and counts members of archives.
#[test]
fn a_dry_run_changes_nothing() {
    let folder = new_folder();
    folder.write("in/a.txt", "one");
    tar(&folder, "in/m.tar", &[("x", "1"), ("y", "2")]);
    assert_eq!(sync(&folder, &["--dry-run"]), [3, 0, 0, 0]);
    assert!(!folder.join("c").exists());
    assert_eq!(sync(&folder, &[]), [3, 0, 0, 0]);
    let before = names_below(&folder.join("c"));
    folder.write("in/b.txt", "two");
    assert_eq!(sync(&folder, &["-n"]), [1, 0, 0, 3]);
    assert_eq!(names_below(&folder.join("c")), before);
}

/// A file with another time and the same bytes is stored once.
#[test]
fn a_time_alone_stores_nothing() {
    let folder = new_folder();
    for at in 0..20 {
        folder.write(&format!("in/{at}.txt"), format!("text {at}"));
    }
    sync(&folder, &[]);
    let segments = || names_below(&folder.join("c/segments"));
    let before = segments();
    for round in 0..3 {
        for at in 0..20 {
            set_time(&folder.join(&format!("in/{at}.txt")), 1_000_000_000 + round);
        }
        assert_eq!((sync(&folder, &[]), version(&folder)), ([0, 0, 0, 20], 2));
    }
    assert_eq!(segments(), before);
    // The times are known now, so the bytes are not looked at.
    fs::write(folder.join("in/7.txt"), "TEXT 7").unwrap();
    set_time(&folder.join("in/7.txt"), 1_000_000_002);
    assert_eq!((sync(&folder, &[]), version(&folder)), ([0, 0, 0, 20], 2));
    set_time(&folder.join("in/7.txt"), 1_000_000_003);
    assert_eq!((sync(&folder, &[]), version(&folder)), ([0, 1, 0, 19], 3));
    assert_eq!(stored(&folder, "c")["7.txt"], [b"TEXT 7"]);
    // Without what the last sync knew all texts are compared.
    for damage in [b"".as_slice(), b"other bytes"] {
        fs::write(known(&folder), damage).unwrap();
        assert_eq!((sync(&folder, &[]), version(&folder)), ([0, 0, 0, 20], 3));
    }
    fs::remove_file(folder.join("in/8.txt")).unwrap();
    fs::remove_file(known(&folder)).unwrap();
    assert_eq!((sync(&folder, &[]), version(&folder)), ([0, 0, 1, 19], 4));
}

/// A file that was just written may be written again within the same tick of the clock.
#[test]
fn a_file_that_was_just_written_is_read_again() {
    let folder = new_folder();
    folder.write("in/other.txt", "other");
    for round in 0..20 {
        folder.write("in/a.txt", format!("text {round:02}"));
        sync(&folder, &[]);
        assert_eq!(stored(&folder, "c")["a.txt"], [format!("text {round:02}").as_bytes()]);
    }
}

#[test]
fn a_corpus_of_ingest_is_taken_over() {
    for (layout, optimize) in [("small", false), ("indexed", true)] {
        let folder = new_folder();
        folder.write("in/a.txt", "one");
        folder.write("in/b.txt", "two");
        folder.write("in/long.txt", "a long text of many words\n".repeat(5000));
        tar(&folder, "in/m.tar", &[("x", "1"), ("y", "2")]);
        folder.ok(&["ingest", "in", "-o", "c", "--append", "-q", "--layout", layout]);
        folder.ok(&["edit", "c", "-q", "--append", "0", " more", "--add", "other.txt", "in/a.txt"]);
        if optimize {
            folder.ok(&["optimize", "c", "-q"]);
        }
        fs::remove_file(folder.join("in/b.txt")).unwrap();
        tar(&folder, "in/m.tar", &[("x", "1"), ("y", "3"), ("z", "")]);
        let said = folder.ok(&["sync", "in", "c", "-v"]);
        let expected = "changed  a.txt\ndropped  b.txt\nchanged  m.tar/y\nadded    m.tar/z\ndropped  other.txt\n";
        assert!(said.starts_with(expected), "{said}");
        assert!(said.contains("1 added, 2 changed, 2 dropped, 2 unchanged"), "{said}");
        assert_eq!(sync(&folder, &[]), [0, 0, 0, 5]);
    }
}

/// Changes of others to the documents are undone: the folder counts.
#[test]
fn edits_of_others_are_undone() {
    let folder = new_folder();
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        folder.write(&format!("in/{name}"), name);
    }
    sync(&folder, &[]);
    for clean_up in [false, true] {
        let rows = folder.rows("SELECT doc_id FROM documents('c') ORDER BY path");
        folder.ok(&["edit", "c", "-q", "--append", &rows[0], "!", "--drop", &rows[1]]);
        folder.ok(&["edit", "c", "-q", "--insert", &format!("{}:0", rows[2]), "", "--add", "e.txt", "in/a.txt"]);
        if clean_up {
            folder.ok(&["optimize", "c", "-q", "--clean-up", "0"]);
        }
        assert_eq!(sync(&folder, &[]), [1, 1, 1, 2]);
        assert_eq!(sync(&folder, &[]), [0, 0, 0, 4]);
        let all = ["a.txt", "b.txt", "c.txt", "d.txt"].map(|name| (name, name));
        assert_eq!(stored(&folder, "c"), documents(&all));
    }
}

#[test]
fn archives_and_forms_are_those_of_ingest() {
    let folder = new_folder();
    folder.write("in/page.html", "<p>one<script>x</script><p>two");
    folder.write("in/a.gz", gzip(b"unpacked"));
    tar(&folder, "in/m.tar", &[("x.txt", "1"), ("sub/y.md", "2"), ("same", "3")]);
    let same = |options: &[&str]| {
        let [before, name] = ["c", "other"];
        let _gone = fs::remove_dir_all(folder.join(name));
        folder.ok(&[&["ingest", "in", "-o", name, "--append", "-q"], options].concat());
        assert_eq!(stored(&folder, before), stored(&folder, name), "{options:?}");
    };
    assert_eq!(sync(&folder, &[]), [5, 0, 0, 0]);
    same(&[]);
    for (options, expected) in [
        (["--html", "text"].as_slice(), [0, 1, 0, 4]),
        (&["--html", "text"], [0, 0, 0, 5]),
        (&["--no-decompress"], [1, 2, 3, 0]),
        (&["--glob", "*.md", "--glob", "*.tar"], [1, 0, 3, 0]),
        (&["--glob", "*.md", "--glob", "*.tar", "--glob", "*.gz"], [1, 0, 0, 1]),
        (&[], [3, 0, 0, 2]),
        (&["--charset", "windows-1252", "--tokenizer", "auto"], [0, 0, 0, 5]),
    ] {
        assert_eq!(sync(&folder, &[options, &["--drop-all"]].concat()), expected, "{options:?}");
        same(options);
    }
    // Two members of one name, the second of which changes, and goes.
    for (members, expected) in [
        (["m", "1", "2"].as_slice(), [2, 0, 3, 2]),
        (&["m", "1", "3"], [0, 1, 0, 3]),
        (&["m", "1"], [0, 0, 1, 3]),
        (&["m", "4", "1", "1"], [2, 1, 0, 2]),
        // Without members it is no archive to see.
        (&["m"], [1, 0, 3, 2]),
    ] {
        let members: Vec<(&str, &str)> = members[1..].iter().map(|text| ("m", *text)).collect();
        tar(&folder, "in/m.tar", &members);
        assert_eq!(sync(&folder, &[]), expected, "{members:?}");
        assert_eq!(sync(&folder, &[])[..3], [0, 0, 0], "{members:?}");
    }
}

#[test]
fn damage_is_left_out_where_it_is_asked_for() {
    let folder = new_folder();
    folder.write("in/a.txt", "one");
    let packed = gzip("text ".repeat(1000).as_bytes());
    folder.write("in/b.gz", &packed);
    tar(&folder, "in/m.tar", &[("x", "1"), ("y", &"2".repeat(2000))]);
    assert_eq!(sync(&folder, &[]), [4, 0, 0, 0]);
    folder.write("in/b.gz", &packed[..packed.len() - 9]);
    folder.write("in/m.tar", &fs::read(folder.join("in/m.tar")).unwrap()[..1800]);
    folder.fails(
        &["sync", "in", "c"],
        "in/b.gz: the gzip stream is cut or damaged (incomplete deflate stream); repair it, or pass --no-decompress to store \
         the bytes as they are, or --keep-going to store what can be read",
    );
    let keep = ["sync", "in", "c", "--keep-going"];
    let ran = folder.run(&keep);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("warning: in/b.gz: the gzip stream is cut or damaged").count(), 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("warning: in/m.tar").count(), 1, "{}", ran.stderr);
    let y = stored(&folder, "c").into_iter().find(|(path, _)| path.ends_with('y')).map(|(_, texts)| texts[0].len());
    assert!(y.is_some_and(|len| (1..2000).contains(&len)), "{y:?}");
    // A file that has nothing to be read keeps its documents.
    folder.write("in/m.tar", [b"PK\x03\x04", &[0xff; 200][..]].concat());
    for _ in 0..2 {
        let ran = folder.run(&keep);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("warning: in/m.tar: the zip file is cut or damaged"), "{}", ran.stderr);
        assert_eq!(stored(&folder, "c").len(), 4);
    }
}

/// A folder becomes a file, and a file a folder.
#[test]
fn files_and_folders_take_each_others_place() {
    let folder = new_folder();
    folder.write("in/x/y", "1");
    folder.write("in/z", "2");
    sync(&folder, &[]);
    fs::remove_dir_all(folder.join("in/x")).unwrap();
    fs::remove_file(folder.join("in/z")).unwrap();
    folder.write("in/x", "1");
    folder.write("in/z/y", "2");
    assert_eq!(sync(&folder, &["--drop-all"]), [2, 0, 2, 0]);
    assert_eq!(stored(&folder, "c"), documents(&[("x", "1"), ("z/y", "2")]));
}

#[test]
fn a_folder_that_is_away_drops_nothing() {
    let folder = new_folder();
    folder.write("in/a.txt", "one");
    folder.write("in/b.txt", "two");
    sync(&folder, &[]);
    let all = stored(&folder, "c");
    fs::rename(folder.join("in"), folder.join("away")).unwrap();
    let ran = folder.run(&["sync", "in", "c"]);
    let text = "error: in: no document was dropped, as the folder cannot be read: No such file or directory";
    assert!(ran.status == 1 && ran.stderr.starts_with(text), "{}", ran.stderr);
    fs::create_dir(folder.join("in")).unwrap();
    let way_out = "so c would lose all of them; nothing was changed: is it the right folder, and is it mounted? \
                   --drop-all drops them";
    folder.fails(&["sync", "in", "c"], &format!("in has no file of the 2 documents, {way_out}"));
    folder.write("in/new.txt", "three");
    folder.fails(&["sync", "in", "c", "-n"], &format!("in has no file of the 2 documents, {way_out}"));
    assert_eq!(stored(&folder, "c"), all);
    assert_eq!(sync(&folder, &["--drop-all"]), [1, 0, 2, 0]);
    fs::remove_file(folder.join("in/new.txt")).unwrap();
    folder.fails(&["sync", "in", "c"], &format!("in has no file of the only document, {way_out}"));
    assert_eq!(sync(&folder, &["--drop-all"]), [0, 0, 1, 0]);
    // There is nothing to lose any more.
    assert_eq!(sync(&folder, &[]), [0, 0, 0, 0]);
    folder.ok(&["sync", "in", "new"]);
    assert_eq!(stored(&folder, "new"), Documents::new());
}

#[test]
fn what_is_no_folder_of_files_is_refused() {
    let folder = new_folder();
    folder.write("in/a.log", "one\ntwo\n");
    folder.write("rows.jsonl", "{\"t\":\"a\",\"author\":\"x\"}\n");
    folder.ok(&["ingest", "in", "-o", "lines", "--append", "-q", "--documents", "lines"]);
    folder.ok(&["ingest", "rows.jsonl", "-o", "rows", "--append", "-q", "--documents", "jsonl:t"]);
    folder.ok(&["ingest", "in", "-o", "c.tadoc", "-q"]);
    let way_out = "a folder is kept in step with documents that are whole files: sync it with a new corpus, and \
                   `tadoc ingest --append`, or --follow for a log, adds to this one";
    for (corpus, text) in [
        ("lines", format!("lines: 2 documents have the path a.log, as lines and rows of a file have; {way_out}")),
        ("rows", format!("rows: its documents have columns, as rows have; {way_out}")),
        (
            "c.tadoc",
            "c.tadoc is a file and does not change; name a folder or URL for a living corpus, such as corpus/".into(),
        ),
        ("in", "in is the corpus itself; name the folder of its files".into()),
    ] {
        let ran = folder.run(&["sync", "in", corpus]);
        let is_itself = corpus == "in";
        assert_eq!(ran.status, 1, "{corpus}");
        assert!(is_itself || ran.stderr == format!("error: {text}\n"), "{corpus}: {}", ran.stderr);
    }
    folder.fails(
        &["sync", "in/a.log", "c"],
        "in/a.log is a file, and sync takes a folder; `tadoc edit CORPUS --replace ID in/a.log` changes a document",
    );
    folder.fails(&["sync", "c", "c"].map(|name| if name == "c" { "lines" } else { name }), {
        "lines is the corpus itself; name the folder of its files"
    });
    assert_eq!(folder.run(&["sync", "-", "c"]).status, 2);
    assert_eq!(folder.run(&["sync", "in", "c", "--interval", "1s"]).status, 2);
    assert!(!folder.join("c").exists());
}

/// The corpus may lie in the folder.
#[test]
fn the_corpus_is_no_file_of_the_folder() {
    let folder = new_folder();
    folder.write("a.txt", "one");
    let run = |options: &[&str]| counts(&folder.ok(&[&["sync", ".", "c", "--json"], options].concat()));
    assert_eq!(run(&[]), [1, 0, 0, 0]);
    assert_eq!(run(&[]), [0, 0, 0, 1]);
    assert_eq!(run(&["--follow-links"]), [0, 0, 0, 1]);
    folder.write("c.txt", "two");
    assert_eq!(run(&[]), [1, 0, 0, 1]);
}

#[test]
fn syncs_at_once_store_each_file_once() {
    let folder = new_folder();
    for at in 0..200 {
        folder.write(&format!("in/{at}.txt"), format!("text {at}"));
    }
    for round in 0..3 {
        for at in (0..200).step_by(7) {
            folder.write(&format!("in/{at}.txt"), format!("text {at} of round {round}"));
        }
        let _gone = fs::remove_file(folder.join(&format!("in/{round}.txt")));
        let start = || folder.command(&["sync", "in", "c", "-q"]).spawn().unwrap();
        for mut child in [start(), start(), start()] {
            assert!(child.wait().unwrap().success());
        }
        let all = stored(&folder, "c");
        assert_eq!(all.len(), names_below(&folder.join("in")).len());
        for (path, texts) in all {
            assert_eq!(texts, [fs::read(folder.join("in").join(path)).unwrap()]);
        }
    }
}

#[test]
fn a_watched_folder_is_followed() {
    let folder = new_folder();
    folder.write("in/a.txt", "one");
    let arguments = ["sync", "in", "c", "--watch", "--interval", "50ms"];
    let mut command = folder.command(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&folder, &[("a.txt", "one")]);
    folder.write("in/b.txt", "two");
    wait_for(&folder, &[("a.txt", "one"), ("b.txt", "two")]);
    folder.write("in/a.txt", "three");
    fs::remove_file(folder.join("in/b.txt")).unwrap();
    wait_for(&folder, &[("a.txt", "three")]);
    // A folder that is away is waited for.
    fs::rename(folder.join("in"), folder.join("away")).unwrap();
    sleep(Duration::from_millis(300));
    folder.write("away/c.txt", "four");
    fs::rename(folder.join("away"), folder.join("in")).unwrap();
    wait_for(&folder, &[("a.txt", "three"), ("c.txt", "four")]);
    let (is_ok, said, noted) = interrupt(child);
    assert!(is_ok, "{noted}");
    assert!(said.lines().all(|line| line.starts_with("c: version ")), "{said}");
    assert!(said.lines().count() >= 4, "{said}");
    assert_eq!(noted.matches("No such file").count(), 1, "{noted}");
}

/// A statement runs one round.
#[test]
fn statements_call_a_sync() {
    let folder = new_folder();
    folder.write("in/a.txt", "one");
    folder.write("in/b.html", "<p>two");
    folder.write("in/c.md", "three");
    let csv =
        |options: &[&str], sql: &str| folder.run(&[&["sql", "-q", "--format", "csv"], options, &["-c", sql]].concat());
    let head = "version,added,changed,dropped,unchanged\n";
    for (sql, row) in [
        ("CALL sync('in', 'c', dry_run => true)", "0,3,0,0,0\n"),
        ("call SYNC('in', 'c', dry_run => false, html => 'text')", "2,3,0,0,0\n"),
        ("CALL sync('in', 'c', html => 'text')", "2,0,0,0,3\n"),
        ("CALL sync('in', 'c', glob => '*.{txt,html}')", "3,0,1,1,1\n"),
        ("CALL sync('in', 'c', glob => '*.none', drop_all => true, recompress_ratio => 0)", "4,0,0,2,0\n"),
    ] {
        assert_eq!(csv(&[], sql).ok(), format!("{head}{row}"), "{sql}");
    }
    let usage = "CALL sync('folder/', 'corpus/', dry_run => true)";
    for (options, sql, text) in [
        ([].as_slice(), "CALL sync('in')", "CALL sync: the following required arguments were not provided:"),
        (&[], "CALL sync('in', 'c', watch => true)", "CALL sync has no option watch; as in"),
        (&[], "CALL sync('in', 'c', glub => 'x')", "CALL sync: unexpected argument '--glub' found"),
        (&[], "CALL sync('in', 1 + 1)", "expected texts, numbers, true and false, as in"),
        (&[], "CALL sync('nowhere', 'c')", "nowhere: no document was dropped, as the folder cannot be read"),
        (&[], "CALL sync('in', true)", "CALL sync: expected a folder and a corpus, as in"),
        (&[], "CALL sync('in', 'c', dry_run => 'true')", "CALL sync: unexpected value 'true' for '--dry-run' found"),
        (&[], "CALL other('in')", "there is no procedure other; there is"),
        (&["--safe", "--allow", "in", "--permit", "copy"], "CALL sync('in', 'd')", "CALL sync: safe mode reads only"),
    ] {
        let ran = csv(options, sql);
        assert!(ran.status != 0 && ran.stderr.contains(text), "{sql}: {}", ran.stderr);
        let names_a_call = !sql.contains("nowhere") && !sql.contains("'d'");
        assert_eq!(ran.stderr.contains(usage), names_a_call, "{sql}: {}", ran.stderr);
    }
    assert!(!folder.join("d").exists());
    assert_eq!(version(&folder), 4);
}

fn wait_for(folder: &Folder, expected: &[(&str, &str)]) {
    let start = Instant::now();
    while stored(folder, "c") != documents(expected) {
        assert!(start.elapsed() < PATIENCE, "{:?}", stored(folder, "c"));
        sleep(Duration::from_millis(20));
    }
}

/// Sends SIGINT, and returns true if the program succeeds, with what it said.
fn interrupt(child: Child) -> (bool, String, String) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Writes a tar archive of these members.
fn tar(folder: &Folder, name: &str, members: &[(&str, &str)]) {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    folder.write(name, builder.into_inner().unwrap());
}

/// Returns the files below `folder`.
fn names_below(folder: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { names.extend(names_below(&path)) } else { names.push(path) }
    }
    names.sort();
    names
}
