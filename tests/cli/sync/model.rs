//! Random changes of a folder, and of the corpus by others. After each sync the corpus has the documents of the
//! folder, and the counts are those of a comparison of both before it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tadoc::format::path_text;
use testkit::random::Random;

use super::{Documents, names_below, stored, sync, tar, version};
use crate::harness::{Folder, new_folder};

const NUM_ROUNDS: usize = 40;
/// Names of files. Folders come before their files.
const NAMES: [&[u8]; 14] = [
    b"a.txt",
    b"b",
    b"sub/a.txt",
    b"sub/deep/er/c",
    b"n\xff.txt",
    b"n\\xFF.txt",
    b"with space\nand line",
    b"[glob]*?{a,b}",
    b"-dash",
    "e\u{301}.txt".as_bytes(),
    "\u{e9}.txt".as_bytes(),
    b"m.tar/inner",
    b"quote'\"",
    b"sub.d/a.txt/x",
];

struct Model {
    folder: Folder,
    random: Random,
}

impl Model {
    fn path(&self, name: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        self.folder.join("in").join(OsStr::from_bytes(name))
    }

    fn text(&mut self) -> Vec<u8> {
        let words = ["to", "be", "or", "not", "\u{fc}ber", "\n", "\r\n", "\0", " "];
        let num_words = *self.random.pick(&[0, 1, 3, 50, 3000]);
        let mut text = Vec::new();
        for _ in 0..num_words {
            text.extend_from_slice(self.random.pick(&words).as_bytes());
            text.push(b' ');
        }
        text
    }

    /// Writes a file, in place of what is in its way.
    fn write(&mut self, name: &[u8]) {
        let path = self.path(name);
        let top = self.folder.join("in");
        for above in path.ancestors().skip(1).take_while(|above| *above != top) {
            if above.is_file() {
                fs::remove_file(above).unwrap();
            }
        }
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = self.text();
        fs::write(path, text).unwrap();
    }

    /// Returns one of the files that are there.
    fn file(&mut self) -> Option<PathBuf> {
        let all = names_below(&self.folder.join("in"));
        if all.is_empty() { None } else { Some(self.random.pick(&all).clone()) }
    }

    fn change(&mut self) {
        let name = *self.random.pick(&NAMES);
        match (self.random.below(12), self.file()) {
            (0..4, _) | (_, None) => self.write(name),
            (4, Some(file)) => fs::remove_file(file).unwrap(),
            (5, Some(file)) => {
                let seconds = *self.random.pick(&[1_000_000_000, 1_700_000_000, 4_000_000_000]);
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
                File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
            }
            (6, Some(file)) => fs::write(file, "").unwrap(),
            // The same bytes, and others of the same length.
            (7, Some(file)) => fs::write(&file, fs::read(&file).unwrap()).unwrap(),
            (8, Some(file)) => {
                let mut bytes = fs::read(&file).unwrap();
                bytes.reverse();
                fs::write(file, bytes).unwrap();
            }
            (9, Some(file)) => {
                self.write(name);
                if file.is_file() && file != self.path(name) {
                    fs::rename(file, self.path(name)).unwrap();
                }
            }
            (10, Some(_)) => {
                self.write(b"m.tar");
                let members = ["x", "y", "sub/z", "x"].map(|name| (name, *self.random.pick(&["1", "2", ""])));
                let num_members = self.random.below(5);
                tar(&self.folder, "in/m.tar", &members[..num_members]);
            }
            (_, Some(_)) => {
                self.write(b".hidden/file");
                let _there = std::os::unix::fs::symlink("a.txt", self.path(b"link"));
            }
        }
    }

    /// Lets somebody else change the corpus.
    fn interfere(&mut self) {
        let ids = self.folder.rows("SELECT doc_id FROM documents('c') ORDER BY doc_id");
        let mut pick = || if ids.is_empty() { "0".to_owned() } else { self.random.pick(&ids).clone() };
        let one = pick();
        let other = pick();
        self.folder.write("elsewhere/foreign.txt", "foreign");
        let arguments: &[&str] = match self.random.below(6) {
            0 => &["edit", "c", "-q", "--append", &one, "!", "--insert", &format!("{other}:0"), "?"],
            1 => &["edit", "c", "-q", "--drop", &one],
            2 => &["ingest", "elsewhere", "-o", "c", "--append", "-q", "--duplicate"],
            3 => &["edit", "c", "-q", "--add", "a.txt", "elsewhere/foreign.txt", "--drop", &one],
            4 => &["optimize", "c", "-q"],
            _ => &["optimize", "c", "-q", "--clean-up", "0"],
        };
        // Some of these are impossible, and refused.
        self.folder.run(arguments);
    }

    /// Returns the documents that an ingest of the folder has.
    fn expected(&self) -> Documents {
        let _gone = fs::remove_dir_all(self.folder.join("fresh"));
        self.folder.run(&["ingest", "in", "-o", "fresh", "--append", "-q"]);
        stored(&self.folder, "fresh")
    }
}

/// Returns the counts of the differences of two sets of documents.
fn differences(before: &Documents, after: &Documents) -> [u64; 4] {
    let mut counts = [0; 4];
    let none = Vec::new();
    let paths: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for path in paths {
        let before = before.get(path).unwrap_or(&none);
        let after = after.get(path).unwrap_or(&none);
        for number in 0..before.len().max(after.len()) {
            let kind = match (before.get(number), after.get(number)) {
                (None, _) => 0,
                (Some(before), Some(after)) if before != after => 1,
                (_, None) => 2,
                _ => 3,
            };
            counts[kind] += 1;
        }
    }
    counts
}

#[test]
fn the_corpus_equals_the_folder() {
    for seed in [1, 2] {
        let folder = new_folder();
        fs::create_dir(folder.join("in")).unwrap();
        let mut model = Model { folder, random: Random(seed) };
        let mut num_refused = 0;
        let mut num_quiet = 0;
        for round in 0..NUM_ROUNDS {
            for _ in 0..model.random.below(4) {
                model.change();
            }
            if round > 0 && model.random.one_in(4) {
                model.interfere();
            }
            let before = stored(&model.folder, "c");
            let after = model.expected();
            // Two documents of one path, of which others have made one.
            let is_twice = |(path, texts): (&String, &Vec<Vec<u8>>)| texts.len() > 1 && !path.starts_with("m.tar/");
            if before.iter().any(is_twice) {
                let refused = model.folder.run(&["sync", "in", "c", "--drop-all"]);
                assert!(refused.stderr.contains("as lines and rows of a file have"), "{}", refused.stderr);
                let sql = "SELECT max(doc_id) FROM documents('c') GROUP BY path HAVING count(*) > 1";
                for id in model.folder.rows(sql) {
                    model.folder.ok(&["edit", "c", "-q", "--drop", &id]);
                }
                num_refused += 1;
            }
            let before = if before == stored(&model.folder, "c") { before } else { stored(&model.folder, "c") };
            let expected = differences(&before, &after);
            let number = (round > 0).then(|| version(&model.folder));
            let is_dry = model.random.one_in(3);
            let verbose = model.random.one_in(3);
            if is_dry {
                assert_eq!(sync(&model.folder, &["--drop-all", "-n"]), expected, "{seed} {round}");
            }
            assert_eq!(sync(&model.folder, &["--drop-all"]), expected, "{seed} {round}");
            assert!(stored(&model.folder, "c") == after, "{seed} {round}");
            if let Some(number) = number.filter(|_| expected[..3] == [0; 3]) {
                assert_eq!(version(&model.folder), number);
                num_quiet += 1;
            }
            if verbose {
                let [_, _, _, unchanged] = sync(&model.folder, &[]);
                assert_eq!(unchanged, after.values().map(|texts| texts.len() as u64).sum::<u64>());
            }
        }
        model.folder.ok(&["verify", "-q", "c"]);
        println!("seed {seed}: {num_refused} refused, {num_quiet} without a change");
    }
}

/// Names that are no UTF-8 stay apart, and those that look like their escapes.
#[test]
fn odd_names_are_documents() {
    let folder = new_folder();
    fs::create_dir(folder.join("in")).unwrap();
    let mut model = Model { folder, random: Random(3) };
    for name in NAMES {
        model.write(name);
    }
    let num_names = NAMES.len() as u64;
    assert_eq!(sync(&model.folder, &[]), [num_names, 0, 0, 0]);
    assert_eq!(sync(&model.folder, &[]), [0, 0, 0, num_names]);
    let paths: Vec<String> = stored(&model.folder, "c").into_keys().collect();
    let mut expected: Vec<String> = NAMES.iter().map(|name| path_text(name).into_owned()).collect();
    expected.sort();
    assert_eq!(paths, expected);
}
