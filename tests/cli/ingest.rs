//! Tests of files, folders, globs, lines, standard input and compressed inputs. All come back byte
//! for byte.

use crate::harness::{gzip, new_folder, zstd};

/// Texts that are hard to store: empty text, no line end, CRLF, NUL, invalid UTF-8, touching words.
const HARD: [(&str, &[u8]); 6] = [
    ("empty.txt", b""),
    ("plain.txt", b"to be or not to be"),
    ("crlf.txt", b"one\r\ntwo\r\n\r\n"),
    ("nul.bin", b"a\0b\0\0c"),
    ("latin1.txt", b"caf\xe9 \xff\xfe \xc3"),
    ("sub/deep/unicode.md", "straße 東京 e\u{301} 👩‍👧\n".as_bytes()),
];

#[test]
fn texts_without_blanks_are_told_once() {
    let folder = new_folder();
    folder.write("a.txt", "plain");
    folder.write("zh.txt", "\u{ff}审批流程很长\n");
    folder.write("th.txt", "สวัสดีชาวโลก");
    let note = "note: texts in Chinese, Japanese, Thai or the like (zh.txt): the tokenizer word takes";
    let inputs = ["ingest", "a.txt", "zh.txt", "th.txt", "-o"];
    let ran = folder.run(&[&inputs[..], &["w.tadoc", "--tokenizer", "word"]].concat());
    assert_eq!(ran.stderr.matches(note).count(), 1, "{}", ran.stderr);
    for options in [&[][..], &["--tokenizer", "uax29"]] {
        let ran = folder.run(&[&inputs[..], &["u.tadoc", "--force"], options].concat());
        assert!(!ran.stderr.contains("Chinese"), "{}", ran.stderr);
        assert_eq!(folder.rows("SELECT count(*) FROM search('u.tadoc', '审批流程')"), ["1"]);
    }
    // A name of two characters is a word.
    folder.write("b.txt", "Tokyo is 東京 in Japan");
    let ran = folder.run(&["ingest", "b.txt", "-o", "b.tadoc", "--tokenizer", "word"]);
    assert!(!ran.stderr.contains("Chinese"), "{}", ran.stderr);
}

#[test]
fn words_are_found_by_their_spellings() {
    let folder = new_folder();
    for (name, text) in [
        ("composed.txt", "un café"),
        ("decomposed.txt", "un cafe\u{301}"),
        ("straight.txt", "I don't"),
        ("curly.txt", "I don’t"),
        ("soft.txt", "eine Zei\u{ad}tung"),
        ("hard.txt", "eine Zeitung"),
    ] {
        folder.write(&format!("in/{name}"), text);
    }
    for tokenizer in ["auto", "word", "uax29", "whitespace"] {
        let corpus = format!("{tokenizer}.tadoc");
        folder.run(&["ingest", "in", "-o", &corpus, "--tokenizer", tokenizer]);
        let found = |query: &str, fold: &str| {
            let query = query.replace('\'', "''");
            folder.rows(&format!("SELECT path FROM search('{corpus}', '{query}', fold => '{fold}') ORDER BY path"))
        };
        for fold in ["none", "case", "stem:french"] {
            for query in ["café", "cafe\u{301}"] {
                assert_eq!(found(query, fold), ["composed.txt", "decomposed.txt"], "{tokenizer} {fold} {query}");
            }
            for query in ["don't", "don’t"] {
                assert_eq!(found(query, fold), ["curly.txt", "straight.txt"], "{tokenizer} {fold} {query}");
            }
        }
        assert_eq!(found("caf?", "case"), ["composed.txt", "decomposed.txt"], "{tokenizer}");
        if tokenizer != "word" {
            assert_eq!(found("zeitung", "case"), ["hard.txt", "soft.txt"], "{tokenizer}");
        }
        let counted =
            folder.rows(&format!("SELECT count FROM word_count('{corpus}', fold => true) WHERE word = 'café'"));
        assert_eq!(counted, ["2"], "{tokenizer}");
    }
    // Corpora of both profiles are asked together.
    folder.write("zh.txt", "审批流程 café");
    std::fs::create_dir(folder.join("both")).unwrap();
    for tokenizer in ["auto", "word"] {
        let corpus = format!("both/{tokenizer}.tadoc");
        folder.run(&["ingest", "zh.txt", "in/hard.txt", "-o", &corpus, "--tokenizer", tokenizer]);
    }
    let one = |sql: &str| folder.rows(sql).concat();
    assert_eq!(one("SELECT count(*) FROM search('both', '审批')"), "1");
    assert_eq!(one("SELECT count(*) FROM search('both', 'Zeitung')"), "2");
    assert_eq!(one("SELECT count(*) FROM documents('both') WHERE text LIKE '%批流%'"), "2");
    assert_eq!(one("SELECT count(*) FROM grep('both', '程 caf')"), "2");
}

#[test]
fn a_folder_comes_back_byte_for_byte() {
    for tokenizer in ["auto", "word", "uax29", "whitespace"] {
        for builder in ["rounds", "sequitur"] {
            let folder = new_folder();
            for (name, bytes) in HARD {
                folder.write(&format!("in/{name}"), bytes);
            }
            let options = ["--tokenizer", tokenizer, "--builder", builder, "--block-size", "16"];
            let ran = folder.run(&[["ingest", "in", "-o", "c.tadoc"].as_slice(), &options].concat());
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            for (name, bytes) in HARD {
                assert_eq!(folder.cat("c.tadoc", name), bytes, "{tokenizer} {builder} {name}");
            }
            assert_eq!(folder.names(), ["c.tadoc", "in"]);
        }
    }
}

#[test]
fn the_summary_says_what_was_done() {
    let folder = new_folder();
    folder.write("in/a.txt", "tea for two\n".repeat(100));
    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc"]);
    let first = ran.stderr.lines().next().unwrap();
    assert!(first.starts_with("c.tadoc: 1 document, 1.2 kB of text in "), "{first}");
    assert!(first.contains(", G/N 0."), "{first}");
    assert!(ran.stderr.contains(", bound by "), "{}", ran.stderr);
    let ran = folder.run(&["ingest", "in", "-o", "d.tadoc", "--quiet"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
}

#[test]
fn a_file_that_is_named_twice_is_one_document() {
    let folder = new_folder();
    folder.write("docs/a.txt", "one");
    folder.write("docs/b.txt", "two");
    let paths = |arguments: &[&str]| {
        let ran = folder.run(&[&["ingest", "-o", "c.tadoc", "--force"], arguments].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        (folder.rows("SELECT path FROM documents('c.tadoc') ORDER BY doc_id"), ran.stderr)
    };
    for arguments in [["docs", "docs/a.txt"], ["docs/*.txt", "docs"], ["./docs", "docs/../docs/b.txt"]] {
        let (paths, told) = paths(&arguments);
        assert_eq!(paths, ["docs/a.txt", "docs/b.txt"], "{arguments:?}");
        assert!(told.contains("of files that were named before left out"), "{told}");
        assert!(told.contains("--duplicate stores them each time"), "{told}");
    }
    let (twice, told) = paths(&["docs/a.txt", "docs/a.txt", "--duplicate"]);
    assert_eq!(twice, ["docs/a.txt", "docs/a.txt"]);
    assert!(!told.contains("left out"), "{told}");
    // Different files of one path.
    folder.write("x/docs/a.txt", "another");
    folder.fails(
        &["ingest", "x/docs", "docs/a.txt", "-o", "d.tadoc"],
        "x/docs/a.txt and docs/a.txt would both be the document docs/a.txt; name the folder above both, ingest \
         one of them alone with --path NAME, or pass --duplicate",
    );
}

#[cfg(unix)]
#[test]
fn a_destination_is_checked_before_the_input_is_read() {
    let folder = new_folder();
    folder.write("a.txt", "text");
    std::fs::create_dir(folder.join("out")).unwrap();
    for (output, text) in [
        ("nowhere/c.tadoc", "the folder nowhere does not exist"),
        ("out", "out is a folder"),
        ("a.txt", "a.txt exists"),
    ] {
        // Nothing comes through this pipe, so an ingest that reads it does not end.
        let mut command = folder.command(&["ingest", "-", "-o", output]);
        let mut child =
            command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let waiting = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(waiting);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.contains(text), "{told}");
    }
}

#[test]
fn the_same_input_gives_the_same_file_for_any_number_of_threads() {
    let folder = new_folder();
    for idx in 0..40 {
        folder.write(&format!("in/{idx:02}.txt"), format!("line {idx} of a text\n").repeat(200));
    }
    folder.ok(&["ingest", "in", "-o", "one.tadoc", "--threads", "1"]);
    folder.ok(&["ingest", "in", "-o", "four.tadoc", "--threads", "4"]);
    let read = |name| std::fs::read(folder.join(name)).unwrap();
    assert!(read("one.tadoc") == read("four.tadoc"));
}

#[test]
fn what_is_taken_of_the_machine_does_not_change_the_file() {
    let folder = new_folder();
    for idx in 0..40 {
        folder.write(&format!("in/{idx:02}.txt"), format!("line {idx} of a text\n").repeat(200));
    }
    let file = |options: &[&str]| {
        let ingest = ["ingest", "in", "-o", "c.tadoc", "--force", "--block-size", "16KiB"];
        folder.ok(&[&ingest, options].concat());
        std::fs::read(folder.join("c.tadoc")).unwrap()
    };
    let expected = file(&["--blocks-at-once", "1", "--device", "cpu"]);
    assert!(file(&[]) == expected);
    for at_once in ["2", "4", "64"] {
        assert!(file(&["--blocks-at-once", at_once]) == expected, "{at_once}");
    }
    assert!(file(&["--device", "gpu"]) == expected);
    let refused = folder.run(&["ingest", "in", "-o", "c.tadoc", "--blocks-at-once", "65"]);
    assert!(refused.stderr.contains("65 is not in 1..=64"), "{}", refused.stderr);
    assert_eq!(refused.status, 2);
}

#[test]
fn no_device_is_used_and_that_is_said() {
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc", "--device", "gpu"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("--device gpu: the cores build all grammars"), "{}", ran.stderr);
}

#[test]
fn several_folders_stand_in_front_of_their_paths() {
    let folder = new_folder();
    folder.write("one/a.txt", "1");
    folder.write("two/a.txt", "2");
    folder.write("loose.txt", "3");
    folder.ok(&["ingest", "one", "./two/", "loose.txt", "-o", "c.tadoc"]);
    assert_eq!(folder.cat("c.tadoc", "one/a.txt"), b"1");
    assert_eq!(folder.cat("c.tadoc", "two/a.txt"), b"2");
    assert_eq!(folder.cat("c.tadoc", "loose.txt"), b"3");
}

#[test]
fn folders_of_one_name_are_told_apart() {
    let folder = new_folder();
    folder.write("a/src/x.rs", "1");
    folder.write("b/src/x.rs", "2");
    folder.ok(&["ingest", "a/src", "b/src", "-o", "c.tadoc"]);
    assert_eq!(folder.cat("c.tadoc", "b/src/x.rs"), b"2");
}

#[test]
fn hidden_files_are_read_only_when_named() {
    let folder = new_folder();
    folder.write("in/seen.txt", "1");
    folder.write("in/.git/config", "2");
    folder.write("in/.hidden", "3");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    assert!(folder.ok(&["info", "c.tadoc"]).contains("documents        1\n"));
    folder.ok(&["ingest", "in/.git", "in/.hidden", "-o", "d.tadoc"]);
    assert_eq!(folder.cat("d.tadoc", ".git/config"), b"2");
    assert_eq!(folder.cat("d.tadoc", "in/.hidden"), b"3");
}

#[test]
fn globs_choose_files() {
    let folder = new_folder();
    for name in ["docs/a.md", "docs/b.txt", "docs/deep/c.md", "docs/deep/.d.md"] {
        folder.write(name, name);
    }
    let count = |arguments: &[&str]| {
        folder.ok(&[arguments, &["-o", "c.tadoc", "--force"]].concat());
        let info = folder.ok(&["info", "--json", "c.tadoc"]);
        let count = info.split("\"documents\":").nth(1).unwrap().split(',').next().unwrap();
        count.parse::<u64>().unwrap()
    };
    assert_eq!(count(&["ingest", "docs/*.md"]), 1);
    assert_eq!(count(&["ingest", "docs/**/*.md"]), 2);
    assert_eq!(count(&["ingest", "docs/*.{md,txt}"]), 2);
    assert_eq!(count(&["ingest", "docs", "--glob", "*.md"]), 2);
    assert_eq!(count(&["ingest", "docs", "--glob", "deep/*"]), 1);
    assert_eq!(count(&["ingest", "docs", "--glob", "*.txt", "--glob", "*.md"]), 3);
}

#[test]
fn compressed_files_are_read_through() {
    let folder = new_folder();
    let text = b"the quick brown fox\n".repeat(5000);
    folder.write("in/a.txt.gz", gzip(&text));
    folder.write("in/b.txt.zst", zstd(&text));
    folder.write("in/c.txt.gz", [gzip(b"two "), gzip(b"members")].concat());
    folder.write("in/d.gz", "not compressed");
    folder.write("in/e.zst", [zstd(b"two "), zstd(b""), zstd(b"frames")].concat());
    folder.write("in/f.gz", [gzip(b""), gzip(&text), gzip(b""), gzip(b"end")].concat());
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    assert!(folder.cat("c.tadoc", "a.txt.gz") == text);
    assert!(folder.cat("c.tadoc", "b.txt.zst") == text);
    assert_eq!(folder.cat("c.tadoc", "c.txt.gz"), b"two members");
    assert_eq!(folder.cat("c.tadoc", "d.gz"), b"not compressed");
    assert_eq!(folder.cat("c.tadoc", "e.zst"), b"two frames");
    assert!(folder.cat("c.tadoc", "f.gz") == [&text[..], b"end"].concat());

    folder.ok(&["ingest", "in", "-o", "raw.tadoc", "--no-decompress"]);
    assert!(folder.cat("raw.tadoc", "a.txt.gz") == gzip(&text));
}

#[test]
fn lines_are_documents_without_their_line_ends() {
    let folder = new_folder();
    folder.write("a.log", "first\nsecond\r\n\nlast");
    folder.ok(&["ingest", "a.log", "--documents", "lines", "-o", "c.tadoc"]);
    let doc = |id: &str| folder.run(&["cat", "c.tadoc", "--doc-id", id]).stdout;
    assert_eq!(doc("0"), b"first");
    assert_eq!(doc("1"), b"second\r");
    assert_eq!(doc("2"), b"");
    assert_eq!(doc("3"), b"last");
    assert_eq!(folder.cat("c.tadoc", "a.log"), b"first\nsecond\r\n\nlast\n");
}

#[test]
fn standard_input_is_a_file_too() {
    let folder = new_folder();
    let ran = folder.run_with_input(&["ingest", "-", "-o", "c.tadoc"], b"piped \xff");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(folder.cat("c.tadoc", "stdin"), b"piped \xff");

    let lines = ["ingest", "-", "--documents", "lines", "-o", "d.tadoc"];
    let ran = folder.run_with_input(&lines, &gzip(b"one\ntwo\n"));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(folder.cat("d.tadoc", "stdin"), b"one\ntwo\n");

    let ran = folder.run_with_input(&["ingest", "-", "--documents", "lines", "-o", "e.tadoc"], b"");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(folder.ok(&["info", "e.tadoc"]).contains("documents        0\n"));
}

#[test]
fn an_output_inside_the_input_is_not_read() {
    let folder = new_folder();
    folder.write("in/a.txt", "text");
    folder.ok(&["ingest", "in", "-o", "in/c.tadoc"]);
    folder.ok(&["ingest", "in", "-o", "in/c.tadoc", "--force"]);
    assert!(folder.ok(&["info", "in/c.tadoc"]).contains("documents        1\n"));
}

#[test]
fn many_empty_documents_are_kept() {
    let folder = new_folder();
    let ran = folder
        .run_with_input(&["ingest", "-", "--documents", "lines", "-o", "c.tadoc"], "\n".repeat(100_000).as_bytes());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(folder.ok(&["info", "c.tadoc"]).contains("documents        100,000\n"));
}
