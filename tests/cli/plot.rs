//! Tests of `tadoc plot`.

use crate::harness::{Folder, new_folder};

fn svg(folder: &Folder, sql: &str) -> String {
    let svg = folder.ok(&["plot", sql, "--title", "a & b"]);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("<title>a &amp; b</title>"), "{svg}");
    svg
}

/// Returns the number of times that a text stands in a picture.
fn num_texts(svg: &str, text: &str) -> usize {
    svg.matches(&format!(">\n{text}\n</text>")).count()
}

/// Returns the number of lines and dots of a colour, the number of steps of the lines, and the
/// number of dots.
fn curve(svg: &str, color: &str) -> (usize, usize, usize) {
    let stroke = format!(r#"stroke="{color}" stroke-width="5""#);
    let fill = format!(r#"fill="{color}""#);
    let lines: Vec<&str> = svg.lines().filter(|line| line.contains(&stroke)).collect();
    let num_dots = svg.lines().filter(|line| line.starts_with("<circle") && line.contains(&fill));
    // Each point contains one comma.
    let num_steps = lines.iter().map(|line| line.matches(',').count() - 1).sum();
    let num_dots = num_dots.count();
    (lines.len() + num_dots, num_steps, num_dots)
}

const FIRST: &str = "#0072B2";
const SECOND: &str = "#D55E00";

#[test]
fn the_same_rows_give_the_same_bytes_and_nothing_else_is_loaded() {
    let folder = new_folder();
    for sql in ["VALUES ('x', 'old', 1.5), ('y', 'new', 3)", "VALUES (1, 'a', 2), (2, 'a', 0.1)"] {
        let once = svg(&folder, sql);
        assert_eq!(once, svg(&folder, sql));
        let names_space = once.matches("http").count() == 1 && once.contains("www.w3.org/2000/svg");
        assert!(names_space && !once.contains("href") && !once.contains("<script"), "{once}");
    }
}

#[test]
fn texts_give_bars() {
    let folder = new_folder();
    let one = "SELECT * FROM (VALUES ('x', 1), ('y', 4), (NULL, 2)) AS t(word, count)";
    let one = svg(&folder, one);
    // The rectangles are the page and a bar for each row.
    assert_eq!(one.matches("<rect").count(), 1 + 3, "{one}");
    assert!(num_texts(&one, "x") == 1 && num_texts(&one, "count") == 1, "{one}");
    let named = "VALUES ('x', 'old', 1), ('x', 'new', 2), ('y', 'new', 3)";
    let named = svg(&folder, named);
    // The names have two marks.
    assert_eq!(named.matches("<rect").count(), 1 + 2 + 3, "{named}");
    assert_eq!(num_texts(&named, "x"), 1, "{named}");
}

#[test]
fn numbers_and_dates_give_lines() {
    let folder = new_folder();
    let years = svg(&folder, "VALUES (1992, 7.5, 1), (1990, 2.5, 3), (1991, NULL, 2)");
    assert_eq!(num_texts(&years, "1991"), 1, "{years}");
    // The first series has two of three values: dots with a gap between them. The second has all
    // three.
    assert_eq!([FIRST, SECOND].map(|color| curve(&years, color)), [(2, 0, 2), (1, 2, 0)], "{years}");
    assert_eq!((years.matches("<circle").count(), years.matches(r#"width="5""#).count()), (2, 1));
    let dates = "CREATE TABLE t AS VALUES (DATE '2026-01-31', 'a', 1), (DATE '2026-03-01', 'a', 2), \
                 (NULL, 'a', 3); SELECT * FROM t";
    let dates = svg(&folder, dates);
    assert!(num_texts(&dates, "2026-01-31") == 1, "{dates}");
    assert!(dates.contains("1 rows without column1 are left out"), "{dates}");
}

#[test]
fn rows_that_are_missing_are_gaps() {
    let folder = new_folder();
    let curve = |sql: &str| curve(&svg(&folder, sql), FIRST);
    // The lines are 1990 to 1992, 1995 (a dot), and 1998 to 1999.
    let years = "VALUES (1990, 1), (1991, 2), (1992, 2), (1995, 3), (1998, 4), (1999, 5)";
    assert_eq!(curve(years), (3, 3, 1));
    // Months have 28 to 31 days; April is missing.
    let months = "SELECT * FROM (VALUES (1, 1), (2, 1), (3, 1), (5, 2), (6, 3)) AS t(month, count)";
    let dates = format!("SELECT make_date(2026, month::int, 1), count FROM ({months})");
    assert_eq!(curve(&dates), (2, 3, 0));
    // Places without a constant step have no gaps.
    assert_eq!(curve("VALUES (1, 1), (10, 2), (100, 3), (1000, 4)"), (1, 3, 0));
}

#[test]
fn other_pictures_are_refused() {
    let folder = new_folder();
    let ran = folder.run(&["plot", "VALUES ('x', 1)", "-o", "words.PNG"]);
    let text = "error: words.PNG: a plot is an SVG; write -o words.svg, ";
    assert!(ran.stderr.starts_with(text) && ran.status == 2, "{}", ran.stderr);
    assert!(folder.names().is_empty());
}

#[test]
fn a_file_is_written_where_one_is_named() {
    let folder = new_folder();
    folder.write("a.txt", "to be or not to be");
    folder.ok(&["ingest", "a.txt", "-o", "a.tadoc"]);
    let sql = "SELECT word, count FROM word_count('a.tadoc') ORDER BY count DESC, word LIMIT 2";
    assert_eq!(folder.ok(&["plot", sql, "-o", "words.svg"]), "");
    let svg = std::fs::read_to_string(folder.join("words.svg")).unwrap();
    assert!(svg.contains("<title>count by word</title>"), "{svg}");
    assert!(num_texts(&svg, "be") == 1 && num_texts(&svg, "or") == 0, "{svg}");
}

#[test]
fn what_is_there_is_not_overwritten() {
    let folder = new_folder();
    folder.write("a.txt", "to be or not to be");
    folder.ok(&["ingest", "a.txt", "-o", "notes.tadoc"]);
    let before = std::fs::read(folder.join("notes.tadoc")).unwrap();
    let plot = ["plot", "VALUES ('x', 1)", "-o", "notes.tadoc"];
    folder.fails(&plot, "notes.tadoc exists; choose another name or pass --force");
    assert_eq!(std::fs::read(folder.join("notes.tadoc")).unwrap(), before);
    folder.ok(&[plot.as_slice(), &["--force"]].concat());
    assert!(std::fs::read_to_string(folder.join("notes.tadoc")).unwrap().starts_with("<svg "));
    folder.ok(&["ingest", "a.txt", "-o", "living", "--append"]);
    folder.fails(&["plot", "VALUES ('x', 1)", "-o", "living", "--force"], "living is a folder; name a file");
    folder.fails(
        &["plot", "VALUES ('x', 1)", "-o", "no/x.svg"],
        "no/x.svg: the folder no does not exist; create it first",
    );
    assert_eq!(folder.names(), ["a.txt", "living", "notes.tadoc"]);
}

#[test]
fn rows_that_cannot_be_drawn_say_why() {
    let folder = new_folder();
    let fails = |sql: &str, text: &str| {
        let ran = folder.run(&["plot", sql]);
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(text), "{}", ran.stderr);
        assert!(ran.status != 0 && ran.stdout.is_empty(), "{sql}");
    };
    fails("SELECT 'a' AS word", "the query gives (word Utf8)");
    fails("VALUES ('a', 'b')", "needs a column of texts, numbers or dates");
    fails("VALUES (true, 1)", "(column1 Boolean, column2 Int64)");
    fails("VALUES ('a', -1)", "bars of text begin at 0");
    fails("SELECT 'a', 1 WHERE false", "no value to draw");
    fails("SELECT 1, value::text AS name, value FROM range(9)", "9 series, a plot has at most 8");
    fails("SELECT value::text AS name, value FROM range(101)", "more than 100 texts");
    fails("SELECT value, value AS count FROM range(100001)", "more than 100,000 rows");
    fails("SELEC 1", "no valid SQL");
    fails(";", "there is no statement");
}

#[test]
fn queries_give_rows_of_marks() {
    let folder = new_folder();
    folder.write("notes/a.txt", "to be or not to be");
    folder.write("notes/b.txt", "that is the question");
    folder.ok(&["ingest", "notes", "-o", "notes.tadoc"]);
    let svg = folder.ok(&["plot", "--dispersion", "notes.tadoc", "to", "be OR question", "where"]);
    assert!(svg.contains("<title>Places in notes.tadoc</title>"), "{svg}");
    for text in ["10 words, 2 documents", "to (2)", "be OR question (3)", "where (0)"] {
        assert_eq!(num_texts(&svg, text), 1, "{text} {svg}");
    }
    let marks = |color: &str| svg.matches(&format!(r#"stroke="{color}" stroke-width="2""#)).count();
    assert_eq!((marks(FIRST), marks(SECOND)), (2, 3), "{svg}");
    // Many matches share a mark.
    folder.write("long.txt", "to be ".repeat(5_000));
    folder.ok(&["ingest", "long.txt", "-o", "long.tadoc"]);
    let svg = folder.ok(&["plot", "--dispersion", "long.tadoc", "to", "--title", "all"]);
    assert_eq!(svg.matches(r#"stroke-width="2""#).count(), 700);
    assert_eq!(num_texts(&svg, "to (5,000)"), 1);
}

#[test]
fn rows_of_marks_follow_a_living_corpus() {
    let folder = new_folder();
    for name in ["a", "b", "c"] {
        folder.write(&format!("{name}.txt"), "to be");
    }
    folder.ok(&["ingest", "a.txt", "b.txt", "c.txt", "-o", "living", "--append"]);
    folder.ok(&[
        "sql",
        "-c",
        "CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 'living/'; DELETE FROM t WHERE path = 'b.txt'",
    ]);
    let svg = folder.ok(&["plot", "--dispersion", "living", "be"]);
    assert_eq!(num_texts(&svg, "4 words, 2 documents"), 1, "{svg}");
    assert_eq!(num_texts(&svg, "be (2)"), 1, "{svg}");
}

#[test]
fn rows_of_marks_say_what_is_wrong() {
    let folder = new_folder();
    folder.write("a.txt", "to be");
    folder.ok(&["ingest", "a.txt", "-o", "a.tadoc"]);
    let refused = |arguments: &[&str], text: &str| {
        let ran = folder.run(arguments);
        assert!(ran.status == 2 && ran.stderr.contains(text), "{}", ran.stderr);
    };
    refused(&["plot", "SELECT 1, 2", "SELECT 3, 4"], "a plot takes one argument of SQL; put ;");
    let ran = folder.run(&["plot", "--dispersion", "a.tadoc", "OR"]);
    assert!(ran.status == 1 && ran.stderr.contains("OR with nothing before it"), "{}", ran.stderr);
    let many: Vec<&str> = ["plot", "--dispersion", "a.tadoc"].into_iter().chain(["be"; 41]).collect();
    refused(&many, "got 41 queries, and a plot has at most 40 rows");
    let ran = folder.run(&["plot", "--dispersion", "no.tadoc", "be"]);
    assert!(ran.status == 1 && ran.stderr.contains("no.tadoc"), "{}", ran.stderr);
}
