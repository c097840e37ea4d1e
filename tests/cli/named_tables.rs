//! Tests of tables that arguments name, of locations in quotes, and of several corpora in one search, in the words of a
//! user: a log, a library of letters, and two days with the same paths.

use crate::harness::{Folder, new_folder};

/// Writes a log with times, and letters with authors.
fn folder_with_columns() -> Folder {
    let folder = new_folder();
    folder.write(
        "app.log",
        "2026-01-01T10:00:00Z started\n2026-01-01T10:20:00Z error: disk\n2026-01-01T11:00:00Z error: net\n",
    );
    folder.ok(&["ingest", "app.log", "-o", "app.tadoc", "--documents", "lines", "--timestamp", "auto"]);
    folder.write(
        "letters.jsonl",
        "{\"body\":\"the storm came\",\"author\":\"Sand\",\"year\":1840}\n\
         {\"body\":\"no storm at all\",\"author\":\"Balzac\",\"year\":1835}\n\
         {\"body\":\"a calm day\",\"author\":\"Balzac\",\"year\":1851}\n",
    );
    folder.ok(&["ingest", "letters.jsonl", "-o", "letters.tadoc", "--documents", "jsonl:body"]);
    folder
}

fn csv(folder: &Folder, arguments: &[&str], sql: &str) -> String {
    let rest = ["-q", "--format", "csv", "-c", sql];
    folder.ok(&[&["sql"], arguments, &rest[..]].concat())
}

#[test]
fn a_file_in_quotes_and_a_named_table_have_times_and_columns() {
    let folder = folder_with_columns();
    let hours = "SELECT date_part('hour', ts) AS hour, count(*) AS lines FROM @ GROUP BY 1 ORDER BY 1";
    for (arguments, table) in [
        (&[][..], "'app.tadoc'"),
        (&["--table", "app.tadoc"], "app"),
        (&["--table", "days=app.tadoc"], "days"),
        (&["-t", "letters.tadoc", "-t", "days=app.tadoc"], "days"),
    ] {
        assert_eq!(csv(&folder, arguments, &hours.replace('@', table)), "hour,lines\n10,2\n11,1\n");
    }
    let joined = "SELECT author, year, \"match\" FROM kwic('l', 'storm') JOIN l USING (doc_id) ORDER BY year";
    let rows = csv(&folder, &["--table", "l=letters.tadoc"], joined);
    assert_eq!(rows, "author,year,match\nBalzac,1835,storm\nSand,1840,storm\n");
    // A name with capitals, and one with a dot.
    assert_eq!(csv(&folder, &["--table", "My.L=letters.tadoc"], "SELECT count(*) AS n FROM \"My.L\""), "n\n3\n");
    let years = "SELECT year, count(*) FROM l GROUP BY 1";
    let svg = folder.ok(&["plot", "--table", "l=letters.tadoc", years]);
    assert!(svg.contains(">\n1840\n</text>"), "{svg}");
    let svg = folder.ok(&["plot", "SELECT ts, count(*) FROM 'app.tadoc' GROUP BY 1"]);
    assert!(svg.starts_with("<svg "), "{svg}");
}

#[test]
fn named_tables_are_folders_globs_and_files_of_rows() {
    let folder = folder_with_columns();
    folder.write("names.csv", "author,born\nSand,1804\nBalzac,1799\n");
    folder.ok(&["sql", "-c", "COPY (SELECT 'Sand' AS author, 1804 AS born) TO 'names.parquet'"]);
    for file in ["n=names.csv", "n=names.parquet"] {
        let born = "SELECT born FROM n WHERE author = 'Sand'";
        assert_eq!(csv(&folder, &["--table", file], born), "born\n1804\n", "{file}");
    }
    let files = "SELECT corpus, count(*) AS n FROM all_of GROUP BY 1 ORDER BY 1";
    let rows = csv(&folder, &["--table", "all_of=*.tadoc"], files);
    assert_eq!(rows, "corpus,n\napp.tadoc,3\nletters.tadoc,3\n");
    for (arguments, text) in [
        (&["--table", "*.tadoc"][..], "*.tadoc gives no name for a table: write NAME=*.tadoc"),
        (&["--table", "x=none.tadoc"], "none.tadoc"),
        (&["--table", "app.tadoc", "--table", "app=letters.tadoc"], "another corpus is the table app already"),
    ] {
        let ran = folder.run(&[&["sql", "-c", "SELECT 1"], arguments].concat());
        assert!(ran.status != 0 && ran.stderr.contains(text), "{}", ran.stderr);
    }
}

#[test]
fn a_named_table_may_be_read_in_safe_mode_and_nothing_beside_it() {
    let folder = folder_with_columns();
    let safe = ["--safe", "--table", "l=letters.tadoc"];
    assert_eq!(csv(&folder, &safe, "SELECT count(*) AS n FROM l"), "n\n3\n");
    for sql in ["SELECT * FROM 'app.tadoc'", "CREATE EXTERNAL TABLE x STORED AS TADOC LOCATION 'letters.tadoc'"] {
        let ran = folder.run(&[&["sql"], &safe[..], &["-c", sql]].concat());
        assert!(ran.status == 1 && ran.stderr.contains("safe mode"), "{sql}: {}", ran.stderr);
    }
}

#[test]
fn columns_stay_when_documents_go() {
    let folder = folder_with_columns();
    let ran = folder.run(&["sql", "-c", "DELETE FROM 'letters.tadoc' WHERE year > 1850"]);
    // The error says how to come to a corpus that can change. What it says keeps all columns.
    let (_, hint) = ran.stderr.split_once("make one with ").unwrap();
    let (create, copy) = hint.trim_end().split_once(" and COPY ").unwrap();
    let (copy, _) = copy.split_once(", which").unwrap();
    let copy = format!("COPY {copy}");
    folder.ok(&["sql", "-c", create, "-c", &copy]);
    for (delete, left) in [
        ("DELETE FROM 'folder/' WHERE author = 'Sand'", "author,year\nBalzac,1835\nBalzac,1851\n"),
        ("DELETE FROM './folder' WHERE year > 1850", "author,year\nBalzac,1835\n"),
    ] {
        folder.ok(&["sql", "-c", delete]);
        assert_eq!(csv(&folder, &[], "SELECT author, year FROM 'folder/' ORDER BY year"), left);
    }
    folder.ok(&["sql", "--table", "l=folder/", "-c", "DELETE FROM l WHERE year < 1900"]);
    assert_eq!(csv(&folder, &[], "SELECT count(*) AS n FROM 'folder/'"), "n\n0\n");
    assert_eq!(csv(&folder, &[], "SELECT count(*) AS n FROM 'folder/$history'"), "n\n5\n");
}

#[test]
fn hints_say_where_columns_are() {
    let folder = folder_with_columns();
    for (sql, text) in [
        ("SELECT author FROM documents('letters.tadoc')", "FROM 'notes.tadoc' instead of"),
        ("SELECT author FROM kwic('letters.tadoc', 'storm')", "JOIN 'notes.tadoc' AS d USING (doc_id)"),
        ("SELECT path FROM kwic('letters.tadoc', 'storm') JOIN 'letters.tadoc' USING (doc_id)", "USING (doc_id, path)"),
    ] {
        let ran = folder.run(&["sql", "-c", sql]);
        assert!(ran.status == 1 && ran.stderr.contains(text), "{}", ran.stderr);
    }
    let both = "SELECT path, author FROM kwic('letters.tadoc', 'calm') JOIN 'letters.tadoc' USING (doc_id, path)";
    assert_eq!(csv(&folder, &[], both), "path,author\nletters.jsonl,Balzac\n");
}

/// Two days have files of the same names. A line says which day it is of, however the days are named.
#[test]
fn lines_of_several_corpora_have_their_corpus_in_front() {
    let folder = new_folder();
    std::fs::create_dir(folder.join("days")).unwrap();
    for (day, text) in [("mon", "error: disk\nfine\n"), ("tue", "fine\nfine\nerror: net\n")] {
        folder.write("logs/app.log", text);
        folder.ok(&["ingest", "logs", "-o", &format!("days/{day}.tadoc")]);
    }
    let one = folder.ok(&["grep", "-n", "error", "days/mon.tadoc"]);
    assert_eq!(one, "app.log:1:error: disk\n");
    let both = "days/mon.tadoc/app.log:1:error: disk\ndays/tue.tadoc/app.log:3:error: net\n";
    for locations in [&["days"][..], &["days/"], &["days/*.tadoc"], &["days/mon.tadoc", "days/tue.tadoc"]] {
        assert_eq!(folder.ok(&[&["grep", "-n", "error"], locations].concat()), both, "{locations:?}");
        let counts = folder.ok(&[&["grep", "-c", "fine"], locations].concat());
        assert_eq!(counts, "days/mon.tadoc/app.log:1\ndays/tue.tadoc/app.log:2\n");
        let files = folder.ok(&[&["grep", "-l", "disk"], locations].concat());
        assert_eq!(files, "days/mon.tadoc/app.log\n");
        let others = folder.ok(&[&["grep", "-L", "disk"], locations].concat());
        assert_eq!(others, "days/tue.tadoc/app.log\n");
        let paths = folder.ok(&[&["grep", "--files"], locations].concat());
        assert_eq!(paths, "days/mon.tadoc/app.log\ndays/tue.tadoc/app.log\n");
        let whole = folder.ok(&[&["grep", "-Un", "fine\\nerror"], locations].concat());
        assert_eq!(whole, "days/tue.tadoc/app.log:2:fine\ndays/tue.tadoc/app.log:3:error: net\n");
    }
}
