//! Tests of names that are not text, links, loops, pipes, devices, and folders without files.

#![cfg(unix)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::harness::{Folder, Ran, gzip, new_folder};

/// Names on disk that lossy text or careless escaping confuses, and their paths.
const NAMES: [(&[u8], &str); 7] = [
    (b"n\xff.txt", r"n\xFF.txt"),
    (b"n\xfe.txt", r"n\xFE.txt"),
    (br"n\xFF.txt", r"n\x5CxFF.txt"),
    ("n\u{fffd}.txt".as_bytes(), "n\u{fffd}.txt"),
    (b"n\x80\\x80", r"n\x80\x5Cx80"),
    (br"back\slash\xff", r"back\slash\xff"),
    (b"sub\xe9/tab\there\x1b[31m", "sub\\xE9/tab\there\u{1b}[31m"),
];

/// Returns a folder `in` with a file for each of [`NAMES`]. Each file contains its own name.
fn named_files() -> Folder {
    let folder = new_folder();
    for (name, _) in NAMES {
        let path = folder.join("in").join(OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    folder
}

/// Checks that every name gives its document, by the bytes of the name and by the path.
fn expect_all(folder: &Folder, corpus: &str) {
    for (name, path) in NAMES {
        let mut by_name = folder.command(&["cat", corpus]);
        let by_name = Ran::from(by_name.arg(OsStr::from_bytes(name)).output().unwrap());
        if !NAMES.iter().any(|(_, other)| other.as_bytes() == name && *other != path) {
            assert_eq!((by_name.status, by_name.stdout.as_slice()), (0, name), "{path}");
        }
        assert_eq!(folder.cat(corpus, path), name, "{path}");
    }
}

#[test]
fn files_whose_names_are_no_utf8_stay_apart() {
    let folder = named_files();
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    let count = "SELECT count(*), count(DISTINCT path) FROM documents('c.tadoc')";
    assert_eq!(folder.rows(count), ["7,7"]);
    expect_all(&folder, "c.tadoc");
    let by_path = r"SELECT text FROM documents('c.tadoc') WHERE path = 'n\x5CxFF.txt'";
    assert_eq!(folder.rows(by_path), [r"n\xFF.txt"]);

    folder.ok(&["ingest", "in/n*", "-o", "glob.tadoc"]);
    let count = "SELECT count(DISTINCT path) FROM documents('glob.tadoc')";
    assert_eq!(folder.rows(count), ["5"]);
}

#[test]
fn a_living_corpus_keeps_such_names_through_its_versions() {
    let folder = named_files();
    folder.ok(&["ingest", "in", "-o", "c", "--append"]);
    expect_all(&folder, "c");
    let mut add = folder.command(&["edit", "c", "--add"]);
    let added = OsStr::from_bytes(b"added\xff");
    let added = add.arg(added).arg(folder.join("in").join(OsStr::from_bytes(b"n\xff.txt"))).output();
    Ran::from(added.unwrap()).ok();
    folder.ok(&["edit", "c", "--append", "0", ""]);
    expect_all(&folder, "c");
    folder.ok(&["optimize", "c"]);
    expect_all(&folder, "c");
    assert_eq!(folder.cat("c", r"added\xFF"), b"n\xff.txt");
    let sql = [
        "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'c/'",
        r"UPDATE d SET text = 'changed' WHERE path = 'n\xFE.txt'",
        r"DELETE FROM d WHERE path = 'added\xFF'",
    ];
    folder.ok(&["sql", "--quiet", "-c", sql[0], "-c", sql[1], "-c", sql[2]]);
    assert_eq!(folder.cat("c", r"n\xFE.txt"), b"changed");
    assert_eq!(folder.rows("SELECT count(*) FROM documents('c/')"), ["7"]);
}

#[test]
fn paths_are_shown_without_control_characters() {
    let folder = named_files();
    folder.write("in/no\u{1b}[31m.jsonl", "no json\n");
    let ran = folder.run(&["ingest", "in/no\u{1b}[31m.jsonl", "--documents", "jsonl:x", "-o", "c.tadoc"]);
    assert!(ran.stderr.starts_with(r"error: in/no\u{1b}[31m.jsonl: line 1: "), "{}", ran.stderr);

    folder.ok(&["ingest", "in", "-o", "red\u{1b}[31m.tadoc"]);
    let ran = folder.run(&["ingest", "in", "-o", "red\u{1b}[31m.tadoc", "--force"]);
    let report = ran.stderr.lines().find(|line| line.starts_with(r"red\u{1b}[31m.tadoc: 8 documents"));
    assert!(report.is_some() && !ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    for command in ["info", "verify"] {
        let text = folder.ok(&[command, "red\u{1b}[31m.tadoc"]);
        assert!(text.contains(r"red\u{1b}[31m.tadoc") && !text.contains('\u{1b}'), "{text}");
    }
    let ran = folder.run(&["cat", "red\u{1b}[31m.tadoc", "tab\there\u{1b}[31"]);
    assert!(ran.stderr.contains(r"`sub\xE9/tab\there\u{1b}[31m`"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{1b}'));
}

#[test]
fn links_in_folders_are_counted_and_followed_on_demand() {
    let folder = new_folder();
    folder.write("real/a.txt", "text");
    folder.write("in/b.txt", "more");
    symlink(folder.join("real"), folder.join("in/link")).unwrap();
    symlink(folder.join("in"), folder.join("in/loop")).unwrap();
    symlink("b.txt", folder.join("in/same.txt")).unwrap();
    symlink(folder.join("nowhere"), folder.join("in/broken")).unwrap();
    let documents = |corpus: &str| folder.rows(&format!("SELECT path FROM documents('{corpus}') ORDER BY path"));

    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc"]);
    let note = "note: 4 symbolic links skipped; --follow-links reads what they point to\n";
    assert!(ran.stderr.starts_with(note), "{}", ran.stderr);
    assert_eq!(documents("c.tadoc"), ["b.txt"]);

    let ran = folder.run(&["ingest", "in", "-o", "d.tadoc", "--follow-links"]);
    let note = "note: 1 symbolic link cannot be followed: in/broken\n";
    assert!(ran.stderr.starts_with(note), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("note:").count(), 1, "{}", ran.stderr);
    assert_eq!(documents("d.tadoc"), ["b.txt", "link/a.txt", "same.txt"]);

    // A link that is named on the command line is followed.
    folder.ok(&["ingest", "in/link", "in/same.txt", "-o", "e.tadoc"]);
    assert_eq!(documents("e.tadoc"), ["in/same.txt", "link/a.txt"]);

    let ran = folder.run(&["ingest", "in/*.txt", "-o", "living", "--append"]);
    assert!(ran.stderr.starts_with("note: 4 symbolic links skipped; "), "{}", ran.stderr);
    assert_eq!(documents("living"), ["in/b.txt"]);

    std::fs::remove_file(folder.join("in/b.txt")).unwrap();
    folder.fails(
        &["ingest", "in", "-o", "f.tadoc"],
        "in: no file in it or below it (none is hidden); 4 symbolic links skipped; --follow-links \
         reads what they point to; name a folder with files, or pass --allow-empty for a corpus without \
         documents",
    );
}

#[test]
fn a_folder_without_files_is_a_corpus_on_demand() {
    let folder = new_folder();
    std::fs::create_dir(folder.join("in")).unwrap();
    folder.fails(
        &["ingest", "in", "-o", "c.tadoc"],
        "in: no file in it or below it (none is hidden); name a folder with files, or pass \
         --allow-empty for a corpus without documents",
    );
    for (inputs, corpus) in [("in", "c.tadoc"), ("in/*.txt", "d.tadoc")] {
        folder.ok(&["ingest", inputs, "-o", corpus, "--allow-empty"]);
        assert_eq!(folder.rows(&format!("SELECT count(*) FROM documents('{corpus}')")), ["0"]);
        folder.ok(&["verify", corpus]);
    }
    let ran = folder.run(&["ingest", "in", "-o", "living", "--append", "--allow-empty"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing to add"), "{}", ran.stderr);
}

#[test]
fn pipes_are_read_and_devices_refused() {
    let folder = new_folder();
    let mkfifo = || Command::new("mkfifo").arg(folder.join("in/pipe")).status().unwrap();
    folder.write("in/a.txt", "text");
    assert!(mkfifo().success());
    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc"]);
    let note = "note: 1 special file (pipe, socket, device) skipped; name one to read it\n";
    assert!(ran.stderr.starts_with(note), "{}", ran.stderr);

    let pipe = folder.join("in/pipe");
    let writer = std::thread::spawn(move || std::fs::write(pipe, "through a pipe").unwrap());
    folder.ok(&["ingest", "in/pipe", "-o", "d.tadoc"]);
    writer.join().unwrap();
    assert_eq!(folder.cat("d.tadoc", "in/pipe"), b"through a pipe");

    folder.fails(
        &["ingest", "/dev/zero", "-o", "e.tadoc"],
        "/dev/zero is a device, which may never end; pass a part of it, such as head -c 1000000 \
         /dev/zero | tadoc ingest -",
    );
    folder.ok(&["ingest", "/dev/null", "-o", "e.tadoc"]);
    assert_eq!(folder.cat("e.tadoc", "/dev/null"), b"");
}

#[cfg(target_os = "linux")]
#[test]
fn files_of_no_length_are_read_to_their_end() {
    let folder = new_folder();
    let version = std::fs::read("/proc/version").unwrap();
    folder.ok(&["ingest", "/proc/version", "-o", "c.tadoc"]);
    assert!(!version.is_empty() && folder.cat("c.tadoc", "/proc/version") == version);
}

#[test]
fn sql_reads_files_of_any_name() {
    let folder = named_files();
    folder.write("in/draft#1", "left out by stores");
    symlink(folder.join("in"), folder.join("in/loop")).unwrap();
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    let joined = "SELECT count(*) FROM read_text('in/**') AS r JOIN documents('c.tadoc') AS d \
                  ON r.path = concat('in/', d.path) AND r.content = d.content";
    assert_eq!(folder.rows(joined), ["8"]);
    for from in ["read_text('in')", "read_text('in/**')", "read_lines('in/*')"] {
        let expected = if from.ends_with("*')") && from.contains("lines") { "7" } else { "8" };
        let count = format!("SELECT count(DISTINCT path) FROM {from}");
        assert_eq!(folder.rows(&count), [expected], "{from}");
    }
    // A path from the output names its file.
    for (name, path) in NAMES {
        let bytes = format!("SELECT bytes FROM read_text('in/{path}')");
        assert_eq!(folder.rows(&bytes), [name.len().to_string()], "{path}");
    }
    // Corpora with such names work too, alone and beside such files.
    for corpus in [b"in/tab\t.tadoc".as_slice(), b"in/\xff.tadoc", b"in/plain.tadoc"] {
        std::fs::copy(folder.join("c.tadoc"), folder.join("").join(OsStr::from_bytes(corpus))).unwrap();
    }
    assert_eq!(folder.rows("SELECT count(*) FROM documents('in/')"), ["24"]);
    assert_eq!(folder.rows("SELECT count(*) FROM documents('in/tab\t.tadoc')"), ["8"]);
    assert_eq!(folder.rows(r"SELECT count(*) FROM word_count('in/\xFF.tadoc') WHERE word = 'n'"), ["1"]);
    assert_eq!(folder.rows("SELECT count(*) FROM corpus_verify('in/') WHERE status <> 'ok'"), ["0"]);
    for command in ["info", "verify", "cat"] {
        let mut command = folder.command(&[command]);
        command.arg(folder.path().join(OsStr::from_bytes(b"in/\xff.tadoc")));
        if command.get_args().any(|argument| argument == "cat") {
            command.arg("draft#1");
        }
        assert_eq!(Ran::from(command.output().unwrap()).status, 0, "{command:?}");
    }
    // A living corpus in a folder with such a name works too.
    folder.ok(&["ingest", "c.tadoc", "-o", "li\tving#1", "--append"]);
    assert_eq!(folder.rows("SELECT count(*) FROM documents('li\tving#1/')"), ["1"]);
}

#[test]
fn a_column_that_is_nested_too_deep_names_the_way_out() {
    let folder = new_folder();
    let nested = |depth: usize| {
        let open = r#"{"a":"#.repeat(depth - 1);
        let close = "}".repeat(depth - 1);
        format!("{{\"text\":\"t\",\"deep\":{open}1{close}}}\n")
    };
    let ingest = ["ingest", "deep.jsonl", "--documents", "jsonl:text", "-o", "c.tadoc", "--force"];
    folder.write("deep.jsonl", nested(50));
    folder.ok(&ingest);
    assert_eq!(folder.table_rows("c.tadoc", "SELECT count(*) FROM d WHERE deep IS NOT NULL"), ["1"]);
    folder.write("deep.jsonl", nested(100));
    folder.fails(
        &ingest,
        "column `deep` is nested 100 levels deep, 50 at most can be stored; pass --no-columns to keep \
         the text only",
    );
    folder.ok(&[ingest.as_slice(), &["--no-columns"]].concat());
}

#[test]
fn an_output_that_names_a_folder_says_what_to_type() {
    let folder = new_folder();
    folder.write("in/a.txt", "text");
    folder.fails(
        &["ingest", "in", "-o", "out/"],
        "out/ names a folder, and a folder is a living corpus; pass --append to begin one there, or name a \
         file, such as -o out/in.tadoc",
    );
    assert_eq!(folder.names(), ["in"]);
    folder.write("file", "text");
    folder.fails(
        &["ingest", "in", "-o", "file/"],
        "file/ names a folder, and file is a file; name another file, or pass -o file --force",
    );
    folder.fails(
        &["ingest", "in", "-o", "file/", "--append"],
        "file is a file; --append adds to a folder or URL that holds a living corpus",
    );
    folder.ok(&["ingest", "in", "-o", "out/", "--append"]);
    assert_eq!(folder.cat("out/", "a.txt"), b"text");
    for arguments in [&["ingest", "in", "-o", "-"][..], &["ingest", "in", "-o", "-", "--append"]] {
        folder.fails(
            arguments,
            "-o -: a corpus is not written to standard output; name a file, such as -o in.tadoc, or -o ./- \
             for one of that name",
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn sql_reads_what_has_no_length_and_refuses_devices() {
    let folder = new_folder();
    let version = std::fs::read("/proc/version").unwrap();
    let rows = folder.rows("SELECT bytes FROM read_text('/proc/version')");
    assert_eq!(rows, [version.len().to_string()]);
    let ran = folder.run(&["sql", "-c", "SELECT * FROM read_text('/dev/zero')"]);
    assert!(ran.status == 1 && ran.stderr.contains("it is a device, which may never end"), "{}", ran.stderr);
}

#[test]
fn packed_files_that_are_stored_as_such_are_told() {
    let folder = new_folder();
    let packed = b"7z\xbc\xaf\x27\x1c\0\x04";
    folder.write("in/a.7z", packed);
    folder.write("in/b", packed);
    folder.write("in/c.Z.gz", gzip(b"\x1f\x9d\x90abc"));
    folder.write("in/d.7z", "text that is called so");
    folder.write("in/e.lzma", b"]\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0");
    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc"]);
    let warnings: Vec<&str> = ran.stderr.lines().take_while(|line| line.starts_with("warning: ")).collect();
    let expected = [
        "warning: 2 files packed as 7z stored as the bytes, which nobody can search (in/a.7z); \
         unpack first (7z x FILE), or pass --no-decompress if the bytes are meant",
        "warning: 1 file packed as compress (.Z) stored as the bytes, which nobody can search \
         (in/c.Z.gz); unpack first (gzip -dc FILE | tadoc ingest -), or pass --no-decompress if the bytes \
         are meant",
        "warning: 1 file packed as lzma stored as the bytes, which nobody can search (in/e.lzma); unpack \
         first (xz -dc FILE | tadoc ingest -), or pass --no-decompress if the bytes are meant",
    ];
    assert_eq!(warnings, expected, "{}", ran.stderr);
    assert!(folder.cat("c.tadoc", "a.7z") == packed);

    let raw = folder.run(&["ingest", "in", "-o", "raw.tadoc", "--no-decompress"]);
    assert!(!raw.stderr.contains("warning"), "{}", raw.stderr);
    let lines = ["ingest", "in/a.7z", "--documents", "lines", "-o", "lines.tadoc"];
    assert!(folder.run(&lines).stderr.starts_with("warning: 1 file packed as 7z "));
    let quiet = folder.run(&["ingest", "in", "-o", "d.tadoc", "--quiet"]);
    assert_eq!((quiet.status, quiet.stderr.as_str()), (0, ""));
}

#[test]
fn texts_in_other_character_sets_are_stored_in_utf_8_if_asked() {
    let folder = new_folder();
    let utf16: Vec<u8> = "\u{feff}één\r\ntwee\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    folder.write("in/a.txt", &utf16);
    folder.write("in/b.txt.gz", gzip(&utf16));
    folder.write("in/c.txt", "trois");
    folder.write("latin.csv", b"t,n\ncaf\xe9,1\n");
    folder.write("latin.jsonl", b"{\"t\":\"caf\xe9\"}\n");

    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc"]);
    let warning = "warning: 2 files in UTF-16 stored as the bytes, which nobody can search (in/a.txt); pass \
                   --charset auto to store the text, or --charset keep if the bytes are meant";
    assert_eq!(ran.stderr.lines().next(), Some(warning));
    assert_eq!(folder.cat("c.tadoc", "a.txt"), utf16);
    let kept = folder.run(&["ingest", "in", "--force", "-o", "c.tadoc", "--charset", "keep"]);
    assert!(!kept.stderr.contains("warning"), "{}", kept.stderr);

    let ran = folder.run(&["ingest", "in", "--force", "-o", "c.tadoc", "--charset", "auto"]);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    for (path, text) in [("a.txt", "één\r\ntwee\r\n"), ("b.txt.gz", "één\r\ntwee\r\n"), ("c.txt", "trois")] {
        assert_eq!(folder.cat("c.tadoc", path), text.as_bytes(), "{path}");
    }
    folder.ok(&[
        "ingest",
        "in/a.txt",
        "--quiet",
        "--force",
        "-o",
        "c.tadoc",
        "--charset",
        "auto",
        "--documents",
        "lines",
    ]);
    assert_eq!(folder.rows("SELECT length(text) FROM documents('c.tadoc') ORDER BY doc_id"), ["4", "5"]);
    for (input, documents) in [("latin.csv", "csv:t"), ("latin.jsonl", "jsonl:t")] {
        folder.ok(&[
            "ingest",
            input,
            "--quiet",
            "--force",
            "-o",
            "c.tadoc",
            "--charset",
            "latin1",
            "--documents",
            documents,
        ]);
        assert_eq!(folder.rows("SELECT text FROM documents('c.tadoc')"), ["café"], "{input}");
    }
    folder
        .write("wide.jsonl", "\u{feff}{\"t\":\"x\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    folder.fails(
        &["ingest", "wide.jsonl", "--documents", "jsonl:t", "-o", "d.tadoc"],
        "wide.jsonl: line 1: no JSON object: expected value at column 1; it looks like UTF-16: name its character set \
         with --charset (auto with a byte order mark)",
    );
    let unknown = folder.run(&["ingest", "in", "--force", "-o", "c.tadoc", "--charset", "klingon"]);
    assert!(unknown.status == 2 && unknown.stderr.contains("windows-1252"), "{}", unknown.stderr);
}

/// A log in Latin-1, whose words nobody finds whole.
#[test]
fn texts_that_are_no_utf_8_are_told() {
    let folder = new_folder();
    folder.write("old.log", [&b"plain\n".repeat(90_000)[..], b"caf\xe9\n"].concat());
    folder.write("new.log", "café\n");
    let note = "note: 1 file with bytes that are no UTF-8 stored as they are, so that words end there (old.log); name \
                the character set of the text (--charset windows-1252), or pass --charset keep if the bytes are meant";
    let stderr = |options: &[&str]| {
        let command = ["ingest", "old.log", "new.log", "--force", "-o", "c.tadoc"];
        folder.run(&[command.as_slice(), options].concat()).stderr
    };
    let kinds: [&[&str]; 4] =
        [&[], &["--documents", "lines"], &["--documents", "lines", "--timestamp", "auto"], &["--charset", "auto"]];
    for options in kinds {
        let stderr = stderr(options);
        assert!(stderr.lines().any(|line| line == note), "{options:?}: {stderr}");
    }
    for charset in ["keep", "windows-1252"] {
        let stderr = stderr(&["--charset", charset]);
        assert!(!stderr.contains("no UTF-8"), "{charset}: {stderr}");
    }
}

#[cfg(unix)]
#[test]
fn globs_read_only_the_folders_that_they_name() {
    use std::os::unix::fs::PermissionsExt;
    let folder = new_folder();
    for path in ["in/a.txt", "in/one/x.log", "in/one/deep/y.log", "in/locked/x.log"] {
        folder.write(path, path);
    }
    let lock = |mode: u32| {
        let locked = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.join("in/locked"), locked).unwrap();
    };
    lock(0);
    // The administrator may read it all the same.
    let is_locked = std::fs::read_dir(folder.join("in/locked")).is_err();
    for (glob, paths) in [("in/*.txt", "in/a.txt"), ("in/o*/*.log", "in/one/x.log")] {
        let sql = format!("SELECT path FROM read_text('{glob}')");
        assert_eq!(folder.rows(&sql), [paths]);
        folder.ok(&["ingest", glob, "-o", "c.tadoc", "--force"]);
        assert_eq!(folder.rows("SELECT path FROM documents('c.tadoc')"), [paths]);
        let safe = ["sql", "--safe", "--allow", "in", "--permit", "read-text", "--format", "csv"];
        let ran = folder.run(&[&safe[..], &["-q", "-c", &sql]].concat());
        assert_eq!(ran.stdout, format!("path\n{paths}\n").as_bytes(), "{}", ran.stderr);
    }
    for glob in ["in/*/x.log", "in/**/x.log"] {
        let ran = folder.run(&["sql", "-c", &format!("SELECT path FROM read_text('{glob}')")]);
        assert!(!is_locked || ran.stderr.contains("locked"), "{}", ran.stderr);
        let ran = folder.run(&["ingest", glob, "-o", "d.tadoc", "--force"]);
        assert!(!is_locked || ran.stderr.contains("locked"), "{}", ran.stderr);
    }
    lock(0o755);
    let rows = folder.rows("SELECT path FROM read_text('in/*/x.log') ORDER BY path");
    assert_eq!(rows, ["in/locked/x.log", "in/one/x.log"]);
    // A living corpus is no folder of files, also where the glob leaves its versions out.
    folder.ok(&["ingest", "in/a.txt", "-o", "corpora/notes", "--append"]);
    let ran = folder.run(&["sql", "-c", "SELECT * FROM word_count('corpora/*/segments/*.tadoc')"]);
    assert!(ran.stderr.contains("is a living corpus"), "{}", ran.stderr);
}
