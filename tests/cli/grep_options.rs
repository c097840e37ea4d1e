//! Tests of the options of `tadoc grep` that ripgrep has. Each expected text is what ripgrep 15.2 writes for the files.

use crate::grep::found;
use crate::harness::{Folder, new_folder};

/// Returns a folder with a corpus of files, and one of the lines of the files.
fn corpus() -> Folder {
    let folder = new_folder();
    folder.write("in/README.md", "The main page\r\nend of main\r\n");
    folder.write("in/src/app.py", "def main():\n    return main2(1)\n");
    folder.write("in/src/lib.rs", "fn main() {\n    call(main, 1);\n}\n");
    folder.write("in/tests/test_app.py", "main()\n");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    folder.ok(&["ingest", "in", "-o", "lines.tadoc", "--documents", "lines", "--block-size", "1KiB"]);
    folder
}

/// Runs `tadoc grep` on the files, and expects nothing.
fn nothing(folder: &Folder, arguments: &[&str]) {
    let ran = folder.run(&[&["grep"], arguments, &["c.tadoc"]].concat());
    assert_eq!((ran.status, ran.stdout.as_slice(), ran.stderr.as_str()), (1, &b""[..], ""), "{arguments:?}");
}

#[track_caller]
fn assert_found(folder: &Folder, arguments: &[&str], expected: &str) {
    assert_eq!(found(folder, &[arguments, &["c.tadoc"]].concat()), expected, "{arguments:?}");
}

#[track_caller]
fn assert_fails(folder: &Folder, arguments: &[&str], text: &str) {
    let ran = folder.run(&[&["grep"], arguments].concat());
    assert_eq!(ran.status, 2, "{arguments:?}");
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(text), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn globs_choose_documents_by_path() {
    let folder = corpus();
    let python = "src/app.py\ntests/test_app.py\n";
    assert_found(&folder, &["-l", "main", "-g", "*.py"], python);
    assert_found(&folder, &["-l", "main", "-g", "!*.py"], "README.md\nsrc/lib.rs\n");
    assert_found(&folder, &["-l", "main", "-g", "src/**"], "src/app.py\nsrc/lib.rs\n");
    assert_found(&folder, &["-l", "main", "-g", "!src"], "README.md\ntests/test_app.py\n");
    assert_found(&folder, &["-l", "main", "-g", "/*.md"], "README.md\n");
    assert_found(&folder, &["-l", "main", "-g", "*.{md,rs}"], "README.md\nsrc/lib.rs\n");
    // The last one that matches counts.
    assert_found(&folder, &["-l", "main", "-g", "*.py", "-g", "!test_*"], "src/app.py\n");
    assert_found(&folder, &["-l", "main", "-g", "!*.py", "-g", "test_*"], "tests/test_app.py\n");
    assert_found(&folder, &["-l", "main", "--iglob", "readme*"], "README.md\n");
    // A folder is not the files in it.
    nothing(&folder, &["main", "-g", "src"]);
    nothing(&folder, &["main", "-g", "readme*"]);
    assert_eq!(found(&folder, &["main", "-g", "*.rs", "lines.tadoc"]).lines().count(), 2);
    assert_fails(&folder, &["a", "-g", "[", "c.tadoc"], "unclosed character class");
    assert_fails(&folder, &["a", "-g", &"{a,".repeat(2000), "c.tadoc"], "expected at most 4096");
}

#[test]
fn types_choose_documents_by_name() {
    let folder = corpus();
    assert_found(&folder, &["-l", "main", "-t", "py"], "src/app.py\ntests/test_app.py\n");
    assert_found(&folder, &["-l", "main", "-tpy", "-trust"], "src/app.py\nsrc/lib.rs\ntests/test_app.py\n");
    assert_found(&folder, &["-l", "main", "-T", "py"], "README.md\nsrc/lib.rs\n");
    // Of types that exclude each other the last one counts, and a glob counts more than a type.
    assert_found(&folder, &["-l", "main", "-T", "py", "-t", "py"], "src/app.py\ntests/test_app.py\n");
    nothing(&folder, &["-l", "main", "-t", "py", "-T", "py"]);
    assert_found(&folder, &["-l", "main", "-t", "py", "-g", "*.md"], "README.md\n");
    assert_fails(&folder, &["a", "-t", "pyton", "c.tadoc"], "unrecognized file type: pyton");
    assert_fails(&folder, &["a", "-t", "pyton", "c.tadoc"], "--type-list");
    let types = found(&folder, &["--type-list"]);
    assert!(types.lines().any(|line| line == "py: *.py, *.pyi"), "{types}");
}

#[test]
fn paths_are_listed_without_a_search() {
    let folder = corpus();
    let all = "README.md\nsrc/app.py\nsrc/lib.rs\ntests/test_app.py\n";
    assert_found(&folder, &["--files"], all);
    assert_eq!(found(&folder, &["--files", "lines.tadoc"]), all);
    assert_found(&folder, &["--files", "-g", "!*.py", "-0"], "README.md\0src/lib.rs\0");
    // It counts more than any mode of a search.
    assert_found(&folder, &["--files", "-c", "-trust"], "src/lib.rs\n");
    assert_found(&folder, &["--files", "-q"], "");
    nothing(&folder, &["--files", "-g", "*.c"]);
    let paths = found(&folder, &["--files", "-tmd", "c.tadoc", "lines.tadoc"]);
    assert_eq!(paths, "c.tadoc/README.md\nlines.tadoc/README.md\n");
}

#[test]
fn paths_without_a_line() {
    let folder = corpus();
    let others = "README.md\nsrc/lib.rs\ntests/test_app.py\n";
    for corpus in ["c.tadoc", "lines.tadoc"] {
        assert_eq!(found(&folder, &["-L", "main2", corpus]), others);
        assert_eq!(found(&folder, &["--files-without-match", "-U", r"main2\(", corpus]), others);
        assert_eq!(found(&folder, &["-L", "main2", "-g", "*.{md,py}", corpus]), "README.md\ntests/test_app.py\n");
        let counts = "README.md:0\nsrc/app.py:2\nsrc/lib.rs:2\ntests/test_app.py:1\n";
        assert_eq!(found(&folder, &["-c", "--include-zero", r"main\w?[(,]", corpus]), counts);
        assert_eq!(found(&folder, &["-c", "--include-zero", "-U", r"main\w?[(,]", corpus]), counts);
    }
    nothing(&folder, &["-L", "main"]);
    assert_found(&folder, &["-qL", "main2"], "");
    // All paths are written, and there is no line.
    let ran = folder.run(&["grep", "-c", "--include-zero", "-tmd", "fn", "c.tadoc"]);
    assert_eq!((ran.status, ran.stdout.as_slice()), (1, &b"README.md:0\n"[..]));
}

#[test]
fn the_last_mode_counts() {
    let folder = corpus();
    assert_found(&folder, &["-l", "-c", "fn"], "src/lib.rs:1\n");
    assert_found(&folder, &["-c", "-l", "fn"], "src/lib.rs\n");
    assert_found(
        &folder,
        &["-l", "--count-matches", "main"],
        "README.md:2\nsrc/app.py:2\nsrc/lib.rs:2\ntests/test_app.py:1\n",
    );
    assert_found(
        &folder,
        &["-l", "-L", "-c", "--count-matches", "a"],
        "README.md:3\nsrc/app.py:2\nsrc/lib.rs:3\ntests/test_app.py:1\n",
    );
    assert_found(&folder, &["--json", "-L", "main2", "-tpy"], "tests/test_app.py\n");
    assert_found(&folder, &["-x", "-w", "call"], "src/lib.rs:2:    call(main, 1);\n");
    nothing(&folder, &["-w", "-x", "call"]);
    // Options may come again.
    assert_found(&folder, &["-m", "1", "-m", "2", "-c", "-c", "main", "-tpy"], "src/app.py:2\ntests/test_app.py:1\n");
    nothing(&folder, &["-m", "0", "-L", "main2"]);
}

#[test]
fn patterns_are_read_from_files() {
    let folder = corpus();
    folder.write("patterns", "page$\r\ncall\npage$\n");
    folder.write("empty", "");
    assert_found(&folder, &["-f", "patterns"], "src/lib.rs:2:    call(main, 1);\n");
    assert_found(
        &folder,
        &["-f", "patterns", "-e", "def"],
        "src/app.py:1:def main():\nsrc/lib.rs:2:    call(main, 1);\n",
    );
    // The first of several that match at a place counts.
    assert_found(&folder, &["-o", "-e", "call.m", "-f", "patterns"], "src/lib.rs:2:call(m\n");
    assert_found(&folder, &["-o", "-f", "patterns", "-e", "call.m"], "src/lib.rs:2:call\n");
    nothing(&folder, &["-f", "empty"]);
    nothing(&folder, &["-L", "-f", "empty"]);
    assert_found(&folder, &["-c", "-v", "-f", "empty", "-tmd"], "README.md:2\n");
    let ran = folder.run_with_input(&["grep", "-f", "-", "c.tadoc"], b"}\n\\{");
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "src/lib.rs:1:fn main() {\nsrc/lib.rs:3:}\n");
    assert_fails(&folder, &["-f", "nowhere", "c.tadoc"], "nowhere: ");
    folder.write("bytes", b"a\n\xff\n");
    assert_fails(&folder, &["-f", "bytes", "c.tadoc"], "line 2 is no UTF-8");
    // More patterns than fit in one expression.
    let many: String = (0..5000).map(|number| format!("word{number}\n")).collect();
    folder.write("many", many + "page\n");
    assert_found(&folder, &["-c", "-F", "-f", "many"], "README.md:1\n");
}

#[test]
fn places_of_lines_are_columns_and_bytes() {
    let folder = corpus();
    for corpus in ["c.tadoc", "lines.tadoc"] {
        let found = |arguments: &[&str]| found(&folder, &[arguments, &["-g", "*.{py,rs}", corpus]].concat());
        let columns = "src/app.py:1:5:def main():\nsrc/app.py:2:12:    return main2(1)\n\
                       src/lib.rs:1:4:fn main() {\nsrc/lib.rs:2:10:    call(main, 1);\ntests/test_app.py:1:1:main()\n";
        assert_eq!(found(&["--column", "main"]), columns);
        let bytes = "src/app.py:1:0:def main():\nsrc/app.py:2:12:    return main2(1)\n\
                     src/lib.rs:1:0:fn main() {\nsrc/lib.rs:2:12:    call(main, 1);\ntests/test_app.py:1:0:main()\n";
        assert_eq!(found(&["-b", "main"]), bytes);
        assert_eq!(found(&["-b", "-o", "-N", "main,"]), "src/lib.rs:21:main,\n");
        let matches = "src/lib.rs:2:5:    call(main, 1);\nsrc/lib.rs:2:10:    call(main, 1);\n";
        assert_eq!(found(&["--vimgrep", "call|main,"]), matches);
        assert_eq!(
            found(&["--column", "-C1", "call"]),
            "src/lib.rs-1-fn main() {\nsrc/lib.rs:2:5:    call(main, 1);\nsrc/lib.rs-3-}\n"
        );
        assert_eq!(found(&["--trim", "call"]), "src/lib.rs:2:call(main, 1);\n");
    }
    let colored = "\x1b[0m\x1b[35mREADME.md\x1b[0m:\x1b[0m\x1b[32m1\x1b[0m:\x1b[0m5\x1b[0m:\
                   The \x1b[0m\x1b[1m\x1b[31mX\x1b[0m page\r\n";
    assert_found(&folder, &["--color", "always", "--column", "-r", "X", "main", "-m1", "-tmd"], colored);
}

#[test]
fn long_lines_are_left_out() {
    let folder = corpus();
    let short = "src/app.py:1:def main():\nsrc/app.py:2:[Omitted long matching line]\ntests/test_app.py:1:main()\n";
    assert_found(&folder, &["-M", "15", "main", "-tpy"], short);
    let begun = "src/app.py:2:    return main [... omitted end of long line]\n";
    assert_found(&folder, &["-M15", "--max-columns-preview", "main2"], begun);
    assert_found(&folder, &["-M0", "main2"], "src/app.py:2:    return main2(1)\n");
}

#[test]
fn matches_are_replaced_in_the_output() {
    let folder = corpus();
    for corpus in ["c.tadoc", "lines.tadoc"] {
        let found = |arguments: &[&str]| found(&folder, &[arguments, &[corpus]].concat());
        let replaced = "src/app.py:2:    return <2>(1)\nsrc/lib.rs:2:    call(<,> 1);\n";
        assert_eq!(found(&["-r", "<$1>", "main(2|,)"]), replaced);
        assert_eq!(found(&["-o", "-r", "$name!", "(?P<name>call)"]), "src/lib.rs:2:call!\n");
        assert_eq!(found(&["-r", "-", "-c", "call"]), "src/lib.rs:1\n");
    }
}

#[test]
fn line_ends_of_two_bytes() {
    let folder = corpus();
    nothing(&folder, &["page$"]);
    assert_found(&folder, &["--crlf", "page$"], "README.md:1:The main page\r\n");
    assert_found(&folder, &["--crlf", "-x", "-o", "end.*"], "README.md:2:end of main\r\n");
}

#[test]
fn matches_over_several_lines() {
    let folder = corpus();
    for corpus in ["c.tadoc", "lines.tadoc"] {
        let found = |arguments: &[&str]| found(&folder, &[&["-U"], arguments, &[corpus]].concat());
        assert_eq!(found(&[r"\{\n.*call"]), "src/lib.rs:1:fn main() {\nsrc/lib.rs:2:    call(main, 1);\n");
        assert_eq!(found(&["--vimgrep", r"\{\n.*call"]), "src/lib.rs:1:11:fn main() {\n");
        assert_eq!(found(&["-c", "--multiline-dotall", "main.*[}]"]), "src/lib.rs:1\n");
        assert_eq!(found(&["-l", r"main\(\)\s*\{\s+call"]), "src/lib.rs\n");
        assert_eq!(
            found(&["-r", "|", r"\(\):?( \{)?\n", "-g!*test*", "-A1"]),
            "src/app.py:1:def main|\nsrc/app.py-2-    return main2(1)\n--\n\
             src/lib.rs:1:fn main|\nsrc/lib.rs-2-    call(main, 1);\n"
        );
    }
    // A line alone with its path is a file as it stands, without a line end.
    assert_found(&folder, &["-U", r"^main\(\)\n"], "tests/test_app.py:1:main()\n");
    assert_eq!(folder.run(&["grep", "-U", r"^main\(\)\n", "lines.tadoc"]).status, 1);
    let ran = folder.run(&["grep", "-U", "--json", r"\{\n", "c.tadoc"]);
    let text = String::from_utf8(ran.stdout).unwrap();
    let types: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = types.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["begin", "match", "end", "summary"]);
    // Without -U no pattern crosses a line end.
    assert_fails(&folder, &[r"\{\n", "c.tadoc"], "a line end is never inside a line");
    assert_fails(&folder, &["-U", "(", "c.tadoc"], "character 1");
}

/// A text that goes on from segment to segment is one text.
#[test]
fn texts_of_several_segments_are_whole() {
    let folder = new_folder();
    let line = |number: u32| format!("line {number} {}\n", if number % 50 == 49 { "begin" } else { "end" });
    folder.write("a.log", (0..400).map(line).collect::<String>());
    folder.ok(&["ingest", "--documents", "lines", "a.log", "-o", "c.tadoc", "--block-size", "1KiB"]);
    let expected: String = (1..8).map(|number| number * 50).map(|end| format!("a.log:{end}:1-{end}\n")).collect();
    let joined = found(&folder, &["-U", "-o", "-r", "1-$1", r"begin\nline (\d+) end", "c.tadoc"]);
    assert_eq!(joined.lines().count(), 7, "{joined}");
    assert_eq!(joined, expected);
    let last = found(&folder, &["-b", "--column", "line 349", "c.tadoc"]);
    let offset: usize = (0..349).map(|number| line(number).len()).sum();
    assert_eq!(last, format!("a.log:350:1:{offset}:line 349 begin\n"));
}

#[test]
fn all_lines_are_written() {
    let folder = corpus();
    let lines = "src/lib.rs:1:fn main() {\nsrc/lib.rs-2-    call(main, 1);\nsrc/lib.rs-3-}\n";
    assert_found(&folder, &["--passthru", "fn", "-trust"], lines);
    let ran = folder.run(&["grep", "--passthru", "fn", "-tmd", "c.tadoc"]);
    assert_eq!(
        (ran.status, ran.stdout.as_slice()),
        (1, &b"README.md-1-The main page\r\nREADME.md-2-end of main\r\n"[..])
    );
}

#[test]
fn paths_stand_above_lines_or_before_a_zero_byte() {
    let folder = corpus();
    let headings = "src/app.py\n1:def main():\n2:    return main2(1)\n\ntests/test_app.py\n1:main()\n";
    assert_found(&folder, &["--heading", "main", "-tpy"], headings);
    assert_found(&folder, &["--heading", "--column", "call"], "src/lib.rs\n2:5:    call(main, 1);\n");
    assert_found(&folder, &["--heading", "-I", "main", "-tpy"], "1:def main():\n2:    return main2(1)\n\n1:main()\n");
    assert_found(&folder, &["--heading", "--no-heading", "call"], "src/lib.rs:2:    call(main, 1);\n");
    assert_found(&folder, &["-0", "call"], "src/lib.rs\x002:    call(main, 1);\n");
    assert_found(&folder, &["-0", "-l", "main", "-tpy"], "src/app.py\0tests/test_app.py\0");
    assert_found(&folder, &["-0", "-c", "call"], "src/lib.rs\x001\n");
    let pretty = found(&folder, &["-p", "call", "c.tadoc"]);
    assert!(pretty.starts_with("\x1b[0m\x1b[35msrc/lib.rs\x1b[0m\n\x1b[0m\x1b[32m2\x1b[0m:"), "{pretty:?}");
}

/// A corpus has no hidden, ignored, packed or binary documents: all are searched.
#[test]
fn options_about_files_that_are_left_out_change_nothing() {
    let folder = corpus();
    let same =
        ["-a", "-z", "-u", "--text", "--search-zip", "-.", "--hidden", "--no-ignore", "--no-ignore-vcs", "--no-config"];
    assert_found(&folder, &[&same[..], &["call"]].concat(), "src/lib.rs:2:    call(main, 1);\n");
    let about_the_machine = ["-j", "4", "--threads=1", "--mmap", "--no-mmap", "--line-buffered", "--no-messages", "-R"];
    assert_found(&folder, &[&about_the_machine[..], &["call"]].concat(), "src/lib.rs:2:    call(main, 1);\n");
}

#[test]
fn habits_of_other_greps_are_told_the_way_out() {
    let folder = corpus();
    // GNU grep searches folders with -r; it and ripgrep have PCRE with -P.
    assert_fails(&folder, &["-r", "call", "c.tadoc"], "no corpus is given; -r replaces matches, here by \"call\"");
    assert_fails(&folder, &["-P", r"call(?=\()", "c.tadoc"], "-P: there is no PCRE2 here");
}

#[test]
fn errors_about_plain_files_name_the_ways_out() {
    let folder = corpus();
    for arguments in
        [["main", "in/README.md"].as_slice(), &["-U", "main", "in/README.md"], &["--files", "in/README.md"]]
    {
        assert_fails(
            &folder,
            arguments,
            "in/README.md is no corpus; `tadoc ingest in/README.md -o in/README.md.tadoc`",
        );
        assert_fails(&folder, arguments, "`rg` searches the file itself");
    }
    assert_fails(&folder, &["main", "in/"], "`tadoc ingest in/ -o in.tadoc` makes a corpus of them, and `rg`");
    // A corpus that is damaged is none of them.
    let mut bytes = std::fs::read(folder.join("c.tadoc")).unwrap();
    bytes.truncate(200);
    folder.write("cut.tadoc", bytes);
    let ran = folder.run(&["grep", "main", "cut.tadoc"]);
    assert!(ran.status == 2 && !ran.stderr.contains("rg"), "{}", ran.stderr);
}

/// Segments without a chosen path are not read.
#[test]
fn documents_of_other_paths_are_not_decoded() {
    let folder = new_folder();
    let text =
        |name: &str| (0..3000).map(|number| format!("{name}{} needle\n", number * 7919 % 3001)).collect::<String>();
    folder.write("in/a.txt", text("left"));
    folder.write("in/b.txt", text("right"));
    folder.ok(&["ingest", "in", "-o", "c.tadoc", "--block-size", "16KiB"]);
    let bytes = std::fs::read(folder.join("c.tadoc")).unwrap();
    let mut num_passed = 0;
    for percent in [60, 70, 80, 90] {
        let mut damaged = bytes.clone();
        damaged[bytes.len() * percent / 100] ^= 1;
        folder.write("damaged.tadoc", damaged);
        let all = folder.run(&["grep", "-c", "needle", "damaged.tadoc"]);
        for options in [&["-g", "a.*"][..], &["-g", "a.*", "-U"]] {
            let chosen = folder.run(&[&["grep", "-c", "needle", "damaged.tadoc"], options].concat());
            let is_passed = all.status == 2 && chosen.status == 0;
            assert!(!is_passed || chosen.stdout == b"a.txt:3000\n");
            num_passed += usize::from(is_passed);
        }
    }
    assert!(num_passed >= 4, "{num_passed}");
}
