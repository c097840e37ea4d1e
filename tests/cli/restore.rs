//! Tests of `ls` and `restore`: the files that were ingested come back, byte for byte, and none lies
//! outside the folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use testkit::random::Random;

use crate::harness::{Folder, new_folder};

/// Returns the bytes of all files below `folder`, by path.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                let bytes = fs::read(&path).unwrap();
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
            }
        }
    }
    files
}

/// Runs `tadoc`, and expects exit status 1 and an error with `text`.
fn fails(folder: &Folder, arguments: &[&str], text: &str) {
    let ran = folder.run(arguments);
    assert_eq!(ran.status, 1, "{arguments:?}");
    assert!(ran.stderr.contains(text), "{}", ran.stderr);
}

fn small() -> Folder {
    let folder = new_folder();
    folder.write("in/a.txt", "to be\n");
    folder.write("in/b/c.md", "or not to be");
    folder.write("in/b/empty", "");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    folder
}

#[test]
fn what_was_ingested_comes_back() {
    let folder = new_folder();
    let mut random = Random(7);
    let words = ["alpha", "beta ", "\n", "γάμμα", "\r\n", "\u{0}", ", "];
    for number in 0..300 {
        let text: String = (0..random.below(400)).map(|_| words[random.below(7)]).collect();
        folder.write(&format!("in/{}/{}/{number}.txt", number % 3, number % 11), text);
    }
    folder.write("in/bytes", [0xff, 0xfe, 0, b'\n', 0x80].repeat(1000));
    // Longer than a task, and than what is decoded at once.
    folder.write("in/long", "The same line again and again.\n".repeat(700_000));
    for layout in ["indexed", "small"] {
        let ingest = ["ingest", "in", "-o", "c.tadoc", "--layout", layout, "--block-size", "1MiB"];
        folder.ok(&[&ingest[..], &["--force"]].concat());
        let ran = folder.run(&["restore", "c.tadoc", "-o", layout]);
        assert_eq!((ran.status, ran.stdout.as_slice()), (0, &b""[..]), "{}", ran.stderr);
        assert!(ran.stderr.contains("302 files, "), "{}", ran.stderr);
        assert!(files_below(&folder.join("in")) == files_below(&folder.join(layout)));
        let paths = folder.ok(&["ls", "c.tadoc"]);
        let text = |path| fs::read(folder.join("in").join(path)).unwrap();
        let texts: Vec<Vec<u8>> = paths.lines().map(text).collect();
        assert!(folder.run(&["cat", "c.tadoc", "--all"]).stdout == texts.concat());
    }
}

#[test]
fn all_documents_are_written_one_after_the_other() {
    let folder = small();
    folder.write("lines.txt", "x\n\nlast");
    folder.ok(&["ingest", "lines.txt", "in/a.txt", "-o", "l.tadoc", "--documents", "lines"]);
    // Documents of one path have a line end behind each.
    assert_eq!(folder.ok(&["cat", "l.tadoc", "--all"]), "x\n\nlast\nto be");
    folder.ok(&["ingest", "in", "-o", "living", "--append"]);
    folder.ok(&["edit", "living", "--drop", "1"]);
    assert_eq!(folder.ok(&["cat", "living", "--all"]), "to be\n");
    assert_eq!(folder.ok(&["cat", "living", "--all", "--version", "2"]), "to be\nor not to be");
    let both = folder.run(&["cat", "c.tadoc", "--all", "a.txt"]);
    assert_eq!(both.status, 2);
}

#[cfg(unix)]
#[test]
fn names_of_any_bytes_come_back() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = small();
    let name = OsStr::from_bytes(b"caf\xe9 \\x5C\n.txt");
    fs::write(folder.join("in").join(name), "x").unwrap();
    folder.ok(&["ingest", "in", "-o", "names.tadoc"]);
    folder.ok(&["restore", "-q", "names.tadoc", "-o", "out"]);
    assert!(files_below(&folder.join("in")) == files_below(&folder.join("out")));
}

#[test]
fn globs_choose_documents() {
    let folder = small();
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "a.txt\nb/c.md\nb/empty\n");
    assert_eq!(folder.ok(&["ls", "c.tadoc", "*.md", "a.txt"]), "a.txt\nb/c.md\n");
    assert_eq!(folder.ok(&["ls", "-0", "c.tadoc", "b/**"]), "b/c.md\0b/empty\0");
    let json = "{\"bytes\":6,\"doc_id\":0,\"path\":\"a.txt\"}\n";
    assert_eq!(folder.ok(&["ls", "--json", "c.tadoc", "a*"]), json);
    fails(&folder, &["ls", "c.tadoc", "b"], "c.tadoc: no document matches `b`; a glob such as");
    fails(&folder, &["restore", "c.tadoc", "*.rs", "-o", "out"], "no document matches `*.rs`");
    assert!(!folder.join("out").exists());
    folder.ok(&["restore", "-q", "c.tadoc", "*.md", "-o", "out"]);
    assert_eq!(files_below(&folder.join("out")).len(), 1);
    // Ids count on from file to file.
    folder.ok(&["ingest", "in/b", "-o", "d.tadoc"]);
    let all = folder.ok(&["ls", "--json", "[cd].tadoc"]);
    let last = all.lines().last().unwrap();
    assert_eq!((all.lines().count(), last), (5, "{\"bytes\":0,\"doc_id\":4,\"path\":\"empty\"}"));
    folder.ok(&["restore", "-q", "[cd].tadoc", "-o", "both"]);
    assert_eq!(files_below(&folder.join("both")).len(), 5);
}

#[test]
fn documents_of_one_path_become_one_file() {
    let folder = new_folder();
    let text: String = (0..5000).map(|number| format!("line {number} of a file\n")).collect();
    folder.write("app.log", &text);
    folder.write("other.log", "alone\n");
    let ingest = ["ingest", "app.log", "other.log", "--documents", "lines", "-o", "lines.tadoc"];
    folder.ok(&[&ingest[..], &["--block-size", "64KiB"]].concat());
    assert_eq!(folder.ok(&["ls", "lines.tadoc"]), "app.log\nother.log\n");
    assert_eq!(folder.ok(&["ls", "--json", "lines.tadoc"]).lines().count(), 5001);
    folder.ok(&["restore", "-q", "lines.tadoc", "-o", "out"]);
    assert_eq!(fs::read_to_string(folder.join("out/app.log")).unwrap(), text);
    // A single document is written as it is.
    assert_eq!(fs::read_to_string(folder.join("out/other.log")).unwrap(), "alone");
}

#[test]
fn documents_of_several_corpora_are_not_joined() {
    let folder = new_folder();
    for name in ["a", "b"] {
        folder.write("note.txt", format!("{name}\nof two\n"));
        let ingest = ["ingest", "note.txt", "-o"];
        folder.ok(&[&ingest[..], &[&format!("files-{name}.tadoc")]].concat());
        let lines = format!("lines-{name}.tadoc");
        folder.ok(&[&ingest[..], &[&lines, "--documents", "lines"]].concat());
    }
    fails(
        &folder,
        &["restore", "files-*.tadoc", "-o", "out"],
        "document `note.txt` is in several of these corpora; name one of them; nothing was written",
    );
    folder.ok(&["restore", "-q", "lines-*.tadoc", "-o", "out"]);
    let joined = fs::read_to_string(folder.join("out/note.txt")).unwrap();
    assert_eq!(joined, "a\nof two\nb\nof two\n");
}

#[test]
fn versions_of_living_corpora() {
    let folder = small();
    folder.ok(&["ingest", "in", "-o", "living", "--append"]);
    folder.ok(&["edit", "living", "--append", "0", "or not"]);
    folder.ok(&["edit", "living", "--drop", "2"]);
    assert_eq!(folder.ok(&["ls", "living"]), "a.txt\nb/c.md\n");
    folder.ok(&["restore", "-q", "living", "-o", "out"]);
    let files = files_below(&folder.join("out"));
    assert_eq!(files.len(), 2);
    assert_eq!(files[Path::new("a.txt")], b"to be\nor not");
    let versions = folder.ok(&["history", "living"]).lines().count();
    assert!(versions >= 3);
    folder.ok(&["restore", "-q", "living", "--version", "2", "-o", "then"]);
    assert!(files_below(&folder.join("in")) == files_below(&folder.join("then")));
}

#[test]
fn files_that_exist_stay() {
    let folder = small();
    folder.write("out/b/c.md", "mine");
    fails(
        &folder,
        &["restore", "c.tadoc", "-o", "out"],
        "1 file already exists, such as b/c.md; nothing was written; --force replaces them",
    );
    assert_eq!(files_below(&folder.join("out")).len(), 1);
    folder.ok(&["restore", "-q", "c.tadoc", "-o", "out", "--force"]);
    assert!(files_below(&folder.join("in")) == files_below(&folder.join("out")));
    folder.write("file", "");
    fails(&folder, &["restore", "c.tadoc", "-o", "file"], "file: ");
}

#[test]
fn names_that_no_folder_can_have_are_found_before_the_first_file_is_written() {
    let folder = new_folder();
    for (paths, reason) in [
        (["a", "a/b"].map(str::to_owned), "document `a/b` lies below `a`, which is a document, too"),
        (["a".to_owned(), "x".repeat(256)], "has a name of more than 255 bytes"),
    ] {
        let rows = paths.map(|path| format!("('{path}', 'text')")).join(", ");
        let copy = format!(
            "COPY (SELECT * FROM (VALUES {rows}) AS t(path, text)) TO 'c.tadoc' STORED AS TADOC OPTIONS \
             ('tadoc.overwrite' 'true')"
        );
        folder.ok(&["sql", "-q", "-c", &copy]);
        fails(&folder, &["restore", "c.tadoc", "-o", "out"], reason);
        assert!(!folder.join("out/a").exists());
    }
}

#[test]
fn no_file_lies_outside_the_folder() {
    let folder = small();
    for (path, reason) in [
        ("../x", "document `../x` would lie outside the folder; nothing was written"),
        ("b/../../x", "would lie outside the folder"),
        ("/", "has no name of a file"),
        (".", "has no name of a file"),
        ("./a", "`./a` is the same file as `a`"),
    ] {
        let rows = format!("VALUES ('a', 'one'), ('{path}', 'two')");
        let copy = format!("COPY (SELECT column1 AS path, column2 AS text FROM ({rows})) TO 'bad.tadoc'");
        fs::remove_file(folder.join("bad.tadoc")).ok();
        folder.ok(&["sql", "-q", "-c", &copy]);
        fails(&folder, &["restore", "bad.tadoc", "-o", "out"], reason);
        assert!(!folder.join("out").exists() && !folder.join("x").exists(), "{path}");
    }
    // An absolute path lies below the folder, too.
    let copy = "COPY (SELECT '/etc/x' AS path, 'text' AS text) TO 'root.tadoc'";
    folder.ok(&["sql", "-q", "-c", copy]);
    folder.ok(&["restore", "-q", "root.tadoc", "-o", "out"]);
    assert_eq!(fs::read(folder.join("out/etc/x")).unwrap(), b"text");
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out() {
    use std::os::unix::fs::symlink;

    let folder = small();
    fs::create_dir_all(folder.join("out")).unwrap();
    fs::create_dir_all(folder.join("elsewhere")).unwrap();
    symlink(folder.join("elsewhere"), folder.join("out/b")).unwrap();
    let ran = folder.run(&["restore", "c.tadoc", "-o", "out", "--force"]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(files_below(&folder.join("elsewhere")).is_empty());
    // A link in place of a file is replaced, not followed.
    folder.write("target", "mine");
    fs::remove_file(folder.join("out/b")).unwrap();
    symlink(folder.join("target"), folder.join("out/a.txt")).ok();
    folder.ok(&["restore", "-q", "c.tadoc", "-o", "out", "--force"]);
    assert_eq!(fs::read(folder.join("target")).unwrap(), b"mine");
    assert!(files_below(&folder.join("in")) == files_below(&folder.join("out")));
}
