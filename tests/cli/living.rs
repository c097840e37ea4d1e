//! Tests of living corpora on the command line: documents are added, edited, optimized, and read at
//! any version.

use crate::harness::{Folder, new_folder};

/// Returns a living corpus of two documents, at version 2.
pub fn notes() -> Folder {
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    folder.write("in/b.txt", "that is the question");
    let ran = folder.run(&["ingest", "in", "-o", "notes", "--append"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let first = ran.stderr.lines().next().unwrap();
    assert!(first.starts_with("notes: version 2: 2 documents, 38 bytes of text in "), "{first}");
    folder
}

fn text(folder: &Folder, doc_id: &str) -> String {
    folder.ok(&["cat", "notes", "--doc-id", doc_id])
}

#[test]
fn columns_of_another_shape_are_not_added() {
    let folder = new_folder();
    let append = |row: &str, options: &[&str]| {
        folder.write("row.jsonl", row);
        let ingest = ["ingest", "row.jsonl", "-o", "d", "--append", "--documents", "jsonl:t"];
        folder.run(&[&ingest[..], &["--duplicate"], options].concat())
    };
    assert_eq!(append("{\"t\":\"a\",\"n\":1}", &[]).status, 0);
    let refused = append("{\"t\":\"b\",\"n\":[1]}", &[]);
    assert_eq!(refused.status, 1);
    let reason = "column `n` is Int64 first and List(Int64) later";
    assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    assert_eq!(append("{\"t\":\"c\",\"n\":[1]}", &["--no-columns"]).status, 0);
    // Numbers and texts have a common type.
    assert_eq!(append("{\"t\":\"d\",\"n\":\"x\"}", &[]).status, 0);
    let rows = folder.table_rows("d", "SELECT text, n FROM d ORDER BY doc_id");
    assert_eq!(rows, ["a,1", "c,", "d,x"]);
    folder.ok(&["optimize", "d"]);
}

/// Numbers with other numbers of decimals, or more digits than a type has, stay as they came.
#[test]
fn appended_numbers_come_back_as_they_were() {
    for (first, second) in
        [("1.9", "1.10"), ("1", "1.10"), ("1.10", "1.100"), ("12345678901234567890123456789012345.10", "1.5")]
    {
        let folder = new_folder();
        for value in [first, second] {
            let name = format!("{value}.csv");
            folder.write(&name, format!("text,v\nt,{value}\n"));
            folder.ok(&["ingest", "-q", &name, "-o", "n", "--append", "--documents", "csv:text"]);
        }
        let table = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'n'";
        let sql = "SELECT v FROM d ORDER BY doc_id";
        let csv = folder.ok(&["sql", "-q", "--format", "csv", "-c", table, "-c", sql]);
        assert_eq!(csv, format!("v\n{first}\n{second}\n"));
        folder.ok(&["optimize", "n", "-q"]);
        let csv = folder.ok(&["sql", "-q", "--format", "csv", "-c", table, "-c", sql]);
        assert_eq!(csv, format!("v\n{first}\n{second}\n"));
    }
}

/// What was appended first does not decide which types later rows may have.
#[test]
fn appended_columns_may_have_other_types() {
    let folder = new_folder();
    for (rows, expected) in [
        ("{\"body\":\"a\",\"v\":1}\n", vec!["1"]),
        ("{\"body\":\"b\",\"v\":1.5}\n", vec!["1.0", "1.5"]),
        ("{\"body\":\"c\",\"v\":\"x\"}\n", vec!["1", "1.5", "x"]),
    ] {
        folder.write("rows.jsonl", rows);
        let ingest = ["ingest", "rows.jsonl", "--documents", "jsonl:body", "-o", "rows", "--append"];
        folder.ok(&[&ingest[..], &["--duplicate"]].concat());
        assert_eq!(folder.table_rows("rows", "SELECT v FROM d ORDER BY doc_id"), expected);
    }
    folder.ok(&["optimize", "rows"]);
    assert_eq!(folder.table_rows("rows", "SELECT v FROM d ORDER BY doc_id"), ["1", "1.5", "x"]);
}

/// A glob or a folder with one file means that file.
#[test]
fn a_living_corpus_keeps_its_layout() {
    let folder = new_folder();
    folder.write("a.txt", "to be or not to be");
    folder.ok(&["ingest", "a.txt", "-o", "d", "--append", "--layout", "indexed", "-q"]);
    folder.ok(&["edit", "d", "--append", "0", " more"]);
    folder.ok(&["optimize", "d"]);
    assert!(folder.ok(&["info", "d"]).contains("layout           indexed"));
    folder.ok(&["optimize", "d", "--layout", "small"]);
    assert!(folder.ok(&["info", "d"]).contains("layout           small"));
}

#[test]
fn a_glob_is_optimized_as_its_file() {
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    std::fs::create_dir(folder.join("corpora")).unwrap();
    folder.ok(&["ingest", "in", "-o", "corpora/a.tadoc"]);
    for location in ["corpora/*.tadoc", "corpora"] {
        folder.ok(&["optimize", location, "--layout", "indexed"]);
        assert!(folder.ok(&["info", "corpora/a.tadoc"]).contains("indexed"));
        assert_eq!(std::fs::read_dir(folder.join("corpora")).unwrap().count(), 1);
        folder.ok(&["optimize", "corpora/a.tadoc", "--layout", "small"]);
    }
}

#[test]
fn documents_are_added_to_what_is_there() {
    let folder = notes();
    folder.write("more/c.txt", "a third");
    folder.ok(&["ingest", "more", "-o", "notes/", "--append", "--quiet"]);
    assert_eq!(folder.cat("notes", "a.txt"), b"to be or not to be");
    assert_eq!(folder.cat("notes", "c.txt"), b"a third");
    let ran = folder.run_with_input(&["ingest", "-", "--documents", "lines", "-o", "notes", "--append"], b"one\ntwo\n");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(text(&folder, "4"), "two");
    // Files below the corpus itself are not ingested as text.
    folder.ok(&["ingest", ".", "-o", "notes", "--append", "--duplicate"]);
    let info = folder.ok(&["info", "notes"]);
    for line in ["version          5\n", "documents        8\n", "parts            4\n"] {
        assert!(info.contains(line), "{info}");
    }
    assert!(info.contains("text bytes       "), "{info}");
    folder.fails(&["ingest", "in", "-o", "notes"], "notes is a place of living corpora; pass --append to add to it");
    folder.fails(
        &["ingest", "in", "-o", "notes/c.tadoc"],
        "notes/c.tadoc lies in the living corpus notes, whose readers would not see the file; pass -o notes \
         --append to add to it",
    );
}

#[test]
fn appending_is_refused_with_reasons() {
    let folder = notes();
    let append =
        |place: &str, option: &[&str]| folder.run(&[&["ingest", "in", "--append", "-o", place], option].concat());
    append("notes", &["--tokenizer", "uax29"])
        .fails("notes: --tokenizer uax29, but the corpus was created with auto; leave it out");
    append("in", &[]).fails("in holds other files, such as a.txt; name a new folder for the living corpus");
    folder.write("c.tadoc", "x");
    append("c.tadoc", &[]).fails("c.tadoc is a file; --append adds to a folder or URL that holds a living corpus");
    assert_eq!(append("notes", &["--force"]).status, 2);
    folder.write("none.txt", "");
    let empty = ["ingest", "none.txt", "--documents", "lines", "-o", "notes", "--append"];
    folder.fails(&empty, "the inputs hold no document; pass --allow-empty to write an empty corpus");
    let ran = folder.run(&[empty.as_slice(), &["--allow-empty"]].concat());
    assert!(ran.stderr.starts_with("notes: nothing to add\n"), "{}", ran.stderr);
    folder.write("bad.jsonl", "{\"body\":\"x\"}\n{\"body\":\n");
    let bad = ["ingest", "bad.jsonl", "--documents", "jsonl:body", "-o", "notes", "--append"];
    assert_eq!(folder.run(&bad).status, 1);
    assert_eq!(std::fs::read_dir(folder.join("notes/segments")).unwrap().count(), 1);
    assert_eq!(folder.ok(&["history", "notes"]).lines().count(), 3);
    for name in ["uax29", "whitespace"] {
        folder.ok(&["ingest", "in", "-o", name, "--append", "--tokenizer", name]);
        folder.ok(&["ingest", "in", "-o", name, "--append", "--duplicate"]);
        assert!(folder.ok(&["info", name]).contains(&format!("tokenizer        {name}\n")));
    }
}

#[test]
fn rows_that_are_copied_are_one_version() {
    let folder = notes();
    let files = |below: &str| {
        let entries = std::fs::read_dir(folder.join(below)).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let folders = files("notes");
    let segments = files("notes/segments");
    // Text that is larger than edits may be, with and without a column of its own.
    let rows = "SELECT 'copy/' || i AS path, repeat('to be ' || i || ' ', 500) AS text";
    let copy = |columns: &str, place: &str| {
        let rows = format!("{rows}{columns} FROM (SELECT unnest(range(0, 100)) AS i)");
        folder.run(&["sql", "-q", "-c", &format!("COPY ({rows}) TO '{place}' STORED AS TADOC")])
    };
    copy("", "notes/").ok();
    copy(", i AS number", "notes").ok();
    copy("", &folder.join("notes").display().to_string()).ok();
    assert_eq!(folder.ok(&["history", "notes"]).lines().count(), 1 + 2 + 3);
    assert_eq!(folder.rows("SELECT count(*), max(doc_id) FROM documents('notes')"), ["302,301"]);
    assert_eq!(folder.rows("SELECT count FROM word_count('notes') WHERE word = '99'"), ["1500"]);
    let sum = folder.table_rows("notes", "SELECT sum(number), count(number) FROM d");
    assert_eq!(sum, ["4950,100"]);
    assert_eq!(files("notes"), folders, "stray files");
    assert_eq!(files("notes/segments").len(), segments.len() + 3);
    // A statement that fails late leaves nothing.
    let failed = copy(", CAST(CASE i WHEN 99 THEN 'x' ELSE '1' END AS INT) AS number", "notes/");
    assert_eq!(failed.status, 1, "{}", failed.stderr);
    assert_eq!(folder.ok(&["history", "notes"]).lines().count(), 1 + 2 + 3);
    assert_eq!(files("notes"), folders);
    assert_eq!(files("notes/segments").len(), segments.len() + 3);
    folder.ok(&["verify", "notes"]);
    // The folder still takes documents, and other folders still take files.
    folder.ok(&["ingest", "in", "-o", "notes", "--append", "--duplicate"]);
    copy("", "plain/").ok();
    assert_eq!(files("plain").len(), 1);
}

#[test]
fn all_edits_of_a_command_line_are_one_commit() {
    let folder = notes();
    folder.write("new.md", "bytes \u{fffd} of a file\n");
    let told = folder.ok(&[
        "edit",
        "notes",
        "--append",
        "0",
        " --",
        "--insert",
        "0:0",
        "-- ",
        "--delete",
        "1:0:5",
        "--add",
        "todo/new.md",
        "new.md",
        "--append",
        "2",
        "more",
    ]);
    assert_eq!(told, "notes: version 3: 1 insert, 2 appends, 1 delete, 1 add\ndocument 2 is todo/new.md\n");
    assert_eq!(text(&folder, "0"), "-- to be or not to be --");
    assert_eq!(text(&folder, "1"), "is the question");
    assert_eq!(folder.cat("notes", "todo/new.md"), "bytes \u{fffd} of a file\nmore".as_bytes());
    folder.ok(&["edit", "notes", "--replace", "1", "new.md", "--drop", "0", "--if-version", "3"]);
    folder.fails(&["cat", "notes", "a.txt"], "there is no document `a.txt`; the nearest are `b.txt`, `todo/new.md`");
    assert_eq!(text(&folder, "1"), "bytes \u{fffd} of a file\n");
    // Every version can still be read.
    let cat = |version| folder.ok(&["cat", "notes", "--version", version, "--doc-id", "0"]);
    assert_eq!((cat("2").as_str(), cat("3").len()), ("to be or not to be", 24));
    folder.fails(
        &["edit", "notes", "--drop", "1", "--if-version", "3"],
        "notes: expected version 3, it is at version 4 (edit); look at it and try again",
    );
    folder.fails(
        &["cat", "notes", "--doc-id", "0"],
        "doc_id: got 0, a document that was dropped, expected the id of a document that is there (a \
         new document gets a new id)",
    );
}

#[test]
fn edits_come_from_json_lines_too() {
    let folder = notes();
    let edits = concat!(
        "{\"op\":\"insert\",\"doc_id\":0,\"pos\":2,\"text\":\" sure\"}\n\n",
        "{\"op\":\"delete\",\"doc_id\":0,\"pos\":2,\"len\":3}\n",
        "{\"op\":\"add\",\"path\":\"c\",\"text\":\"é\\n\"}\n",
    );
    let ran = folder.run_with_input(
        &["edit", "notes", "--mode", "in_batch", "--from", "-", "--append", "1", "?"],
        edits.as_bytes(),
    );
    let told = "notes: version 3: 1 insert, 1 append, 1 delete, 1 add\ndocument 2 is c\n";
    assert_eq!(ran.ok(), told);
    assert_eq!(text(&folder, "0"), "to sure or not to be");
    assert_eq!(text(&folder, "1"), "that is the question?");
    assert_eq!(text(&folder, "2"), "é\n");
    folder.write("edits.jsonl", "{\"op\":\"drop\",\"doc_id\":0}\n{\"op\":\"drop\",\"id\":1}\n");
    folder.fails(&["edit", "notes", "--from", "edits.jsonl"], "edits.jsonl: line 2: field `id`: expected op, doc_id");
    let edits = "{\"op\":\"drop\",\"doc_id\":1}\n{\"op\":\"append\",\"doc_id\":9,\"text\":\"\"}\n";
    folder.write("edits.jsonl", edits);
    for mode in ["in_sequence", "in_batch"] {
        folder.fails(
            &["edit", "notes", "--mode", mode, "--from", "edits.jsonl", "--drop", "0"],
            "edits.jsonl: line 2: doc_id 9 is out of range, there are 3",
        );
    }
    folder.fails(
        &["edit", "notes", "--insert", "0:99", "x", "--dry-run"],
        "--insert: offset_bytes 99 is behind the end of document 0, which has 20 bytes",
    );
    let told = folder.ok(&["edit", "notes", "--drop", "0", "--dry-run"]);
    assert_eq!(told, "notes: version 3: would be made: 1 drop\n");
    for wrong in [&["edit", "notes"] as &[&str], &["edit", "notes", "--drop", "x"]] {
        assert_eq!(folder.run(wrong).status, 2);
    }
    folder.ok(&["verify", "notes"]);
}

#[test]
fn what_is_due_is_compressed_anew() {
    let folder = notes();
    let mut state = 1u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:08x} ", state >> 32)
    };
    folder.write("large.txt", (0..300_000).map(|_| number()).collect::<String>());
    let replace = ["edit", "notes", "--replace", "0", "large.txt"];
    let never = [&replace[..], &["--recompress-ratio", "0"]].concat();
    assert_eq!(folder.ok(&never), "notes: version 3: 1 replace\n");
    let told = "notes: version 4: 1 replace\nnotes: version 5: compressed anew\n";
    assert_eq!(folder.ok(&replace), told);
    assert_eq!(folder.ok(&["edit", "notes", "--drop", "1"]), "notes: version 6: 1 drop\n");
    let verified = folder.ok(&["verify", "notes"]);
    assert!(verified.starts_with("notes: version 6, 1 document, 1 part\n"), "{verified}");
    // The edits are a large share of the corpus; the documents that are added are not.
    folder.ok(&never);
    let ran = folder.run(&["ingest", "in", "-o", "notes", "--append", "--duplicate"]);
    assert!(ran.stderr.ends_with("\nnotes: version 9: compressed anew\n"), "{}", ran.stderr);
    assert_eq!(folder.run(&["ingest", "in", "-o", "c.tadoc", "--recompress-ratio", "1"]).status, 2);
    let wrong = ["edit", "notes", "--drop", "0", "--recompress-ratio", "2"];
    assert_eq!(folder.run(&wrong).status, 2);
}

#[test]
fn optimizing_keeps_documents_and_history_tells_it() {
    let folder = notes();
    folder.write("rows.jsonl", "{\"body\":\"row one\",\"n\":1}\n{\"body\":\"row two\",\"n\":2}\n");
    folder.ok(&["ingest", "rows.jsonl", "--documents", "jsonl:body", "-o", "notes", "--append"]);
    folder.ok(&["edit", "notes", "--append", "2", " longer", "--drop", "1", "--drop", "3"]);
    folder.write("c.txt", "late");
    folder.ok(&["edit", "notes", "--add", "c.txt", "c.txt"]);
    let planned = folder.ok(&["optimize", "notes", "--dry-run", "--clean-up", "0"]);
    assert!(planned.contains("would become one file, documents 0 to 5:\n"), "{planned}");
    let done = folder.ok(&["optimize", "notes"]);
    assert!(done.starts_with("notes: version 6: 3 parts and 4 edits rebuilt as 1 file, "), "{done}");
    assert_eq!(folder.ok(&["optimize", "notes"]), "notes: version 6: nothing to do\n");
    assert_eq!(text(&folder, "2"), "row one longer");
    assert_eq!(folder.cat("notes", "c.txt"), b"late");
    assert_eq!(folder.run(&["cat", "notes", "--doc-id", "3"]).status, 1);
    // The new file has the columns of the rows, but not those of dropped documents.
    let segments = std::fs::read_dir(folder.join("notes/segments")).unwrap();
    let newest = segments.map(|entry| entry.unwrap()).max_by_key(|entry| entry.metadata().unwrap().modified().unwrap());
    let newest = format!("notes/segments/{}", newest.unwrap().file_name().to_str().unwrap());
    let rows = folder.table_rows(&newest, "SELECT n, path FROM d ORDER BY doc_id");
    assert_eq!(rows, [",a.txt", ",b.txt", "1,rows.jsonl", ",rows.jsonl", ",c.txt"]);

    let history = folder.ok(&["history", "notes"]);
    let lines: Vec<Vec<&str>> = history.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["version", "time", "kind"]);
    let kinds: Vec<&str> = lines[1..].iter().map(|line| line[3]).collect();
    assert_eq!(kinds, ["create", "append", "append", "edit", "edit", "optimize"]);
    assert_eq!(lines[4][4..8], ["0", "2", "3", "7"]);
    folder.write("h.json", folder.ok(&["history", "notes", "--json"]));
    let json = std::fs::read_to_string(folder.join("h.json")).unwrap();
    assert!(json.starts_with("[{\"version\":1,") && json.ends_with("}]\n"), "{json}");

    let cleaned = folder.ok(&["optimize", "notes", "--clean-up", "0"]);
    assert!(cleaned.contains("notes: removed 7 files, "), "{cleaned}");
    assert!(cleaned.contains("versions from 6 on are kept"), "{cleaned}");
    assert_eq!(std::fs::read_dir(folder.join("notes/segments")).unwrap().count(), 1);
    let gone = folder.run(&["cat", "notes", "--version", "4", "--doc-id", "0"]);
    assert!(gone.stderr.contains("there is no version 4; versions 6 to 6 are there"), "{}", gone.stderr);
    let report = folder.ok(&["verify", "notes"]);
    assert!(report.starts_with("notes: version 6, 3 documents, 1 part\n"), "{report}");
    assert_eq!(text(&folder, "0"), "to be or not to be");
}

#[test]
fn damage_is_found_and_places_without_a_corpus_are_named() {
    let folder = notes();
    let segments = std::fs::read_dir(folder.join("notes/segments")).unwrap();
    let segment = segments.map(|entry| entry.unwrap().path()).next().unwrap();
    let good = std::fs::read(&segment).unwrap();
    for at in (0..good.len()).step_by(61) {
        let mut bad = good.clone();
        bad[at] ^= 4;
        std::fs::write(&segment, &bad).unwrap();
        let ran = folder.run(&["verify", "notes"]);
        assert_eq!(ran.status, 1, "byte {at} of {}", good.len());
        assert!(String::from_utf8(ran.stdout).unwrap().contains("  damaged: notes/segments/"));
    }
    std::fs::remove_file(&segment).unwrap();
    let report = folder.run(&["verify", "notes"]).stdout;
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("DAMAGED\n  damaged: notes: there is no file segments/"), "{report}");
    folder.fails(
        &["edit", "in", "--drop", "0"],
        "in holds no living corpus; `tadoc ingest PATH -o FOLDER --append` begins a living corpus",
    );
    folder.fails(
        &["history", "in/a.txt"],
        "in/a.txt is a file and does not change; `tadoc ingest PATH -o FOLDER --append` begins a \
         living corpus",
    );
    folder.fails(
        &["optimize", "nowhere"],
        "nowhere does not exist; `tadoc ingest PATH -o FOLDER --append` begins a living corpus",
    );
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    folder.fails(
        &["cat", "c.tadoc", "--version", "1", "a.txt"],
        "c.tadoc is no living corpus and has no versions; leave out --version",
    );
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_no_part() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let folder = notes();
    let mut command = folder.command(&["ingest", "-", "--documents", "lines", "-o", "notes", "--append"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Standard input stays open, so the reader waits for more.
    child.stdin.as_mut().unwrap().write_all(b"a line\n").unwrap();
    let names = || std::fs::read_dir(folder.join("notes/segments")).unwrap().count();
    while names() < 2 {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
    assert_eq!(names(), 1);
    assert_eq!(folder.ok(&["history", "notes"]).lines().count(), 3);
}

#[test]
fn layouts_change_both_ways_and_the_text_stays() {
    let folder = notes();
    folder.ok(&["ingest", "in", "-o", "indexed.tadoc", "--layout", "indexed", "--quiet"]);
    folder.ok(&["ingest", "in", "-o", "small.tadoc", "--layout", "small", "--quiet"]);
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let indexed = read("indexed.tadoc");
    let small = read("small.tadoc");
    assert_ne!(indexed, small);
    let planned = folder.ok(&["optimize", "indexed.tadoc", "--layout", "small", "--dry-run"]);
    assert_eq!(planned, "indexed.tadoc: would be written with layout small\n");
    assert_eq!(read("indexed.tadoc"), indexed);
    let done = folder.ok(&["optimize", "indexed.tadoc", "--layout", "small"]);
    assert!(done.starts_with("indexed.tadoc: layout small, "), "{done}");
    folder.ok(&["optimize", "small.tadoc", "--layout", "indexed", "--quiet"]);
    assert_eq!((read("indexed.tadoc"), read("small.tadoc")), (small, indexed));

    let done = folder.ok(&["optimize", "notes", "--layout", "indexed"]);
    assert!(done.starts_with("notes: version 3: 1 part and 0 edits rebuilt as 1 file, "), "{done}");
    let segments = folder.join("notes/segments");
    let newest = std::fs::read_dir(segments).unwrap().map(|entry| entry.unwrap());
    let newest = newest.max_by_key(|entry| entry.metadata().unwrap().modified().unwrap());
    let newest = format!("notes/segments/{}", newest.unwrap().file_name().to_str().unwrap());
    for name in ["small.tadoc", &newest] {
        assert!(folder.ok(&["info", name]).contains("layout           indexed\n"), "{name}");
    }
    // Statements write in the layout of the session, and of one statement.
    let rows = "COPY (SELECT path, text FROM documents('indexed.tadoc')) TO";
    for (set, name, options, layout) in [
        ("indexed", "set.tadoc", "", "indexed"),
        ("small", "option.tadoc", "OPTIONS ('tadoc.layout' 'indexed')", "indexed"),
        ("small", "usual.tadoc", "", "small"),
    ] {
        let copy = format!("{rows} '{name}' STORED AS TADOC {options}");
        let set = format!("SET tadoc.layout = '{set}'");
        folder.ok(&["sql", "-q", "-c", &set, "-c", &copy]);
        assert!(folder.ok(&["info", name]).contains(&format!("layout           {layout}\n")), "{name}");
        assert_eq!(folder.cat(name, "b.txt"), b"that is the question");
    }
    // User columns stay, and a document that blocks cut is whole.
    folder.write("rows.jsonl", "{\"t\":\"to be\",\"n\":1}\n{\"t\":\"or not\",\"n\":2}\n");
    folder.ok(&["ingest", "rows.jsonl", "--documents", "jsonl:t", "-o", "rows.tadoc", "--quiet"]);
    folder.ok(&["optimize", "rows.tadoc", "--layout", "small", "--quiet"]);
    assert_eq!(folder.table_rows("rows.tadoc", "SELECT n, text FROM d"), ["1,to be", "2,or not"]);
    let long = (0..3_000u32).map(|i| format!("w{} ", i.wrapping_mul(2_654_435_761) >> 23)).collect::<String>();
    folder.write("long.txt", &long);
    folder.ok(&["ingest", "long.txt", "-o", "cut.tadoc", "--block-size", "2000", "--layout", "indexed", "--quiet"]);
    folder.ok(&["optimize", "cut.tadoc", "--layout", "indexed", "--quiet"]);
    assert_eq!(folder.cat("cut.tadoc", "long.txt"), long.as_bytes());
    // The layout of a living corpus is that of its files together.
    let layout = |name: &str| {
        let info = folder.ok(&["info", name]);
        let line = info.lines().find(|line| line.starts_with("layout ")).unwrap().to_owned();
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(layout("notes"), "indexed");
    folder.write("more.txt", "to be or not to be");
    folder.ok(&["ingest", "more.txt", "-o", "notes", "--append", "--layout", "small", "--quiet"]);
    assert_eq!(layout("notes"), "mixed");
    let sql = "SELECT value FROM corpus_info('notes') WHERE name = 'layout'";
    assert_eq!(folder.ok(&["sql", "-q", "--format", "csv", "-c", sql]), "value\nmixed\n");
    let json = folder.ok(&["info", "notes", "--json"]);
    assert!(json.contains("\"layout\":\"mixed\""), "{json}");
    for name in ["small.tadoc", "notes"] {
        assert_eq!(folder.cat(name, "a.txt"), b"to be or not to be");
        folder.ok(&["verify", name, "--quiet"]);
    }
    let told = folder.run(&["ingest", "in", "-o", "told.tadoc", "--effort", "small", "--quiet"]);
    assert_eq!((told.status, told.stderr.contains("--effort changes nothing")), (0, true), "{}", told.stderr);
    for name in ["tiny", "fast"] {
        let refused = folder.run(&["ingest", "in", "-o", "x.tadoc", "--layout", name]);
        let expected = format!("got {name}, expected small, indexed or indexed:PERCENT");
        assert_eq!((refused.status, refused.stderr.contains(&expected)), (2, true), "{}", refused.stderr);
    }
}
