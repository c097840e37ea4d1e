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
    // Three values, and two of three: dots, with a gap between them.
    let num_lines: Vec<usize> = curves.iter().map(|curve| curve.matches('L').count()).collect();
    let num_dots: Vec<usize> = curves.iter().map(|curve| curve.matches("h0").count()).collect();
    assert_eq!((num_lines, num_dots), (vec![2, 0], vec![0, 2]), "{years}");
    let dates = "CREATE TABLE t AS VALUES (DATE '2026-01-31', 'a', 1), (DATE '2026-03-01', 'a', 2), \
                 (NULL, 'a', 3); SELECT * FROM t";
    let dates = svg(&folder, dates);
    assert!(dates.contains(">2026-01-31</text>"), "{dates}");
    assert!(dates.contains("1 rows without column1 are left out"), "{dates}");
}

#[test]
fn rows_that_are_missing_are_gaps() {
    let folder = Folder::new();
    let curve = |sql: &str| {
        let svg = svg(&folder, sql);
        let mut curves = svg.lines().filter(|line| line.contains(r#"stroke-width="2.5""#));
        let curve = curves.next().unwrap().to_owned();
        (curve.matches('M').count(), curve.matches('L').count(), curve.matches("h0").count())
    };
    // 1990 to 1992, 1995, 1998 and 1999.
    let years = "VALUES (1990, 1), (1991, 2), (1992, 2), (1995, 3), (1998, 4), (1999, 5)";
    assert_eq!(curve(years), (3, 3, 1));
    // Months have 28 to 31 days; April is missing.
    let months = "SELECT * FROM (VALUES (1, 1), (2, 1), (3, 1), (5, 2), (6, 3)) AS t(month, count)";
    let dates = format!("SELECT make_date(2026, month::int, 1), count FROM ({months})");
    assert_eq!(curve(&dates), (2, 3, 0));
    // Places without a step have no gaps.
    assert_eq!(curve("VALUES (1, 1), (10, 2), (100, 3), (1000, 4)"), (1, 3, 0));
}

#[test]
fn other_pictures_are_refused() {
    let folder = Folder::new();
    let ran = folder.run(&["plot", "VALUES ('x', 1)", "-o", "words.PNG"]);
    let text = "error: words.PNG: a plot is an SVG; write -o words.svg, ";
    assert!(ran.stderr.starts_with(text) && ran.status == 2, "{}", ran.stderr);
    assert!(folder.names().is_empty());
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
fn what_is_there_is_not_overwritten() {
    let folder = Folder::new();
    folder.write("a.txt", "to be or not to be");
    folder.ok(&["ingest", "a.txt", "-o", "notes.tadoc"]);
    let before = std::fs::read(folder.join("notes.tadoc")).unwrap();
    let plot = ["plot", "VALUES ('x', 1)", "-o", "notes.tadoc"];
    folder.fails(&plot, "notes.tadoc exists; choose another name or pass --force");
    assert_eq!(std::fs::read(folder.join("notes.tadoc")).unwrap(), before);
    folder.ok(&[plot.as_slice(), &["--force"]].concat());
    assert!(std::fs::read_to_string(folder.join("notes.tadoc")).unwrap().starts_with("<svg "));
    folder.ok(&["ingest", "a.txt", "-o", "living", "--append"]);
    folder.fails(
        &["plot", "VALUES ('x', 1)", "-o", "living", "--force"],
        "living is a folder; name a file",
    );
    folder.fails(
        &["plot", "VALUES ('x', 1)", "-o", "no/x.svg"],
        "no/x.svg: the folder no does not exist; create it first",
    );
    assert_eq!(folder.names(), ["a.txt", "living", "notes.tadoc"]);
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
