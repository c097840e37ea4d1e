//! `tadoc plot`.

use super::harness::Folder;

fn svg(folder: &Folder, sql: &str) -> String {
    let svg = folder.ok(&["plot", sql, "--title", "a & b"]);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("<title>a &amp; b</title>"), "{svg}");
    svg
}

#[test]
fn texts_give_bars() {
    let folder = Folder::new();
    let one = "SELECT * FROM (VALUES ('x', 1), ('y', 4), (NULL, 2)) AS t(word, count)";
    let one = svg(&folder, one);
    // The page, and a bar for each row.
    assert_eq!(one.matches("<rect").count(), 1 + 3, "{one}");
    assert!(one.contains(">x</text>") && one.contains(">count</text>"), "{one}");
    let named = "VALUES ('x', 'old', 1), ('x', 'new', 2), ('y', 'new', 3)";
    let named = svg(&folder, named);
    // Two marks for the names.
    assert_eq!(named.matches("<rect").count(), 1 + 2 + 3, "{named}");
    assert_eq!(named.matches(">x</text>").count(), 1, "{named}");
}

#[test]
fn numbers_and_dates_give_lines() {
    let folder = Folder::new();
    let years = svg(&folder, "VALUES (1992, 7.5, 1), (1990, 2.5, 3), (1991, NULL, 2)");
    assert!(years.contains(">1991</text>"), "{years}");
    let is_curve = |line: &&str| line.contains(r#"stroke-width="2.5""#);
    let curves: Vec<&str> = years.lines().filter(is_curve).collect();
    // Three values, and two of three.
    let num_lines: Vec<usize> = curves.iter().map(|curve| curve.matches('L').count()).collect();
    assert_eq!(num_lines, [2, 1], "{years}");
    let dates = "CREATE TABLE t AS VALUES (DATE '2026-01-31', 'a', 1), (DATE '2026-03-01', 'a', 2), \
                 (NULL, 'a', 3); SELECT * FROM t";
    let dates = svg(&folder, dates);
    assert!(dates.contains(">2026-01-31</text>"), "{dates}");
    assert!(dates.contains("1 rows without column1 are left out"), "{dates}");
}

#[test]
fn a_file_is_written_where_one_is_named() {
    let folder = Folder::new();
    folder.write("a.txt", "to be or not to be");
    folder.ok(&["ingest", "a.txt", "-o", "a.tadoc"]);
    let sql = "SELECT word, count FROM word_count('a.tadoc') ORDER BY count DESC, word LIMIT 2";
    assert_eq!(folder.ok(&["plot", sql, "-o", "words.svg"]), "");
    let svg = std::fs::read_to_string(folder.join("words.svg")).unwrap();
    assert!(svg.contains("<title>count by word</title>"), "{svg}");
    assert!(svg.contains(">be</text>") && !svg.contains(">or</text>"), "{svg}");
}

#[test]
fn rows_that_cannot_be_drawn_say_why() {
    let folder = Folder::new();
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
