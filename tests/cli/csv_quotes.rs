//! Quotation marks of CSV files in `tadoc sql`: rows are those of the file, or there is an error. No row is missing
//! without a word.

use crate::harness::{Folder, gzip, new_folder};

/// A value that takes the rows behind it.
const OPEN: &str = "a,b\n1,x\n2,\"open\n3,y\n4,z\n";
/// The message about it, behind the name of the file.
const NOT_CLOSED: &str = "no valid CSV: the quotation mark on line 3 opens a value that is not closed; close it; where \
                          quotation marks are text, declare a table with another one: CREATE EXTERNAL TABLE … STORED AS \
                          CSV LOCATION '…' OPTIONS ('format.quote' '|')";

/// Returns the message of the statement, which must fail.
fn refused(folder: &Folder, statements: &[&str]) -> String {
    let commands = statements.iter().flat_map(|statement| ["-c", statement]);
    let ran = folder.run(&["sql", "-q"].into_iter().chain(commands).collect::<Vec<_>>());
    assert_eq!(ran.status, 1, "{statements:?}: {:?}", ran.stdout);
    ran.stderr
}

#[test]
fn a_mark_that_is_not_closed_hides_no_rows() {
    let folder = new_folder();
    folder.write("open.csv", OPEN);
    folder.write("open.tsv", OPEN.replace(',', "\t"));
    folder.write("open.csv.gz", gzip(OPEN.as_bytes()));
    for file in ["open.csv", "open.tsv", "open.csv.gz"] {
        for sql in [format!("SELECT * FROM '{file}'"), format!("SELECT count(*) FROM '{file}' WHERE a > 0")] {
            let message = refused(&folder, &[&sql]);
            let expected = if file.ends_with("tsv") { NOT_CLOSED.replace("CSV", "TSV") } else { NOT_CLOSED.to_owned() };
            assert!(message.contains(&format!("{file}: {expected}")), "{sql}: {message}");
        }
    }
    // The way out that it names.
    let create = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'open.csv' OPTIONS ('format.quote' '|')";
    let rows = folder.ok(&["sql", "-q", "--format", "csv", "-c", create, "-c", "SELECT a, length(b) AS n FROM t"]);
    assert_eq!(rows, "a,n\n1,1\n2,5\n3,1\n4,1\n");
}

#[test]
fn a_mark_that_is_closed_by_one_of_another_row_hides_no_rows() {
    let folder = new_folder();
    folder.write("swapped.csv", "a,b\n1,\"open\n2,x\n3,\"y\" z\n4,z\n");
    let message = refused(&folder, &["SELECT count(*) FROM 'swapped.csv'"]);
    let expected = "swapped.csv: no valid CSV: the quotation mark on line 2 opens a value of several lines, and text \
                    follows the mark that closes it on line 4; close it";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn marks_between_tabs_that_are_text_hide_no_rows() {
    let folder = new_folder();
    let behind =
        "text follows the quotation mark that closes a value on line 2; close it; where quotation marks are text";
    let rows = "the quotation marks on lines 2 and 4 enclose lines that have as many tabs as rows; where quotation marks \
                are text, declare a table with another one: CREATE EXTERNAL TABLE … STORED AS TSV LOCATION '…' OPTIONS \
                ('format.quote' '|')";
    let hello = "id\ttext\n2\t\"Hello, he said\n3\tplain\n4\tlast one\"\n5\tend\n";
    for (name, text, expected) in [("a.tsv", "id\ttext\n1\t\"Swing it\" said Ann\n", behind), ("b.tsv", hello, rows)] {
        folder.write(name, text);
        let message = refused(&folder, &[&format!("SELECT count(*) FROM '{name}'")]);
        assert!(message.contains(&format!("{name}: no valid TSV: {expected}")), "{message}");
    }
    // The way out that it names.
    let create = "CREATE EXTERNAL TABLE t STORED AS TSV LOCATION 'b.tsv' OPTIONS ('format.quote' '|')";
    let rows =
        folder.ok(&["sql", "-q", "--format", "csv", "-c", create, "-c", "SELECT count(*) AS n, max(text) AS m FROM t"]);
    assert_eq!(rows, "n,m\n4,plain\n");
    // Rows that this program writes come back.
    folder.ok(&["sql", "-q", "-c", "COPY (SELECT 1 AS a, E'say \"hi\"\\nx\\ty\\tz' AS b) TO 'c.tsv'"]);
    assert_eq!(folder.rows("SELECT length(b) FROM 'c.tsv'"), ["14"]);
}

#[test]
fn values_with_marks_and_lines_are_read() {
    let folder = new_folder();
    let cells =
        ["\"two\nlines\"", "in \"the\" middle", "5\" pipe", "\"say \"\"hi\"\"\"", "\"x\" y", "\"\"", "\"a\n\" "];
    let rows = cells.iter().enumerate().map(|(idx, cell)| format!("{idx},{cell}\n")).collect::<String>();
    folder.write("marks.csv", format!("a,b\n{rows}"));
    let sql = "SELECT count(*), sum(a), sum(length(b)) FROM 'marks.csv'";
    assert_eq!(folder.rows(sql), ["7,21,45"]);
    folder.write("none.csv", "a,b\n");
    assert_eq!(folder.rows("SELECT count(*) FROM 'none.csv'"), ["0"]);
}

/// DataFusion reads parts of large files side by side. A value of several lines may lie on the border of two.
#[test]
fn a_large_file_with_values_of_several_lines_has_all_rows() {
    let folder = new_folder();
    let rows = (0..2000).map(|idx| format!("{idx},\"line\n{idx},\n,end\"\n")).collect::<String>();
    folder.write("large.csv", format!("a,b\n{rows}"));
    let parts =
        ["SET datafusion.execution.target_partitions = 8", "SET datafusion.optimizer.repartition_file_min_size = 1"];
    let count = "SELECT count(*), count(b), sum(a) FROM 'large.csv'";
    let run = |last: &[&str]| {
        let statements = parts.iter().chain(last).flat_map(|statement| ["-c", statement]);
        folder.run(&["sql", "-q", "--format", "csv"].into_iter().chain(statements).collect::<Vec<_>>())
    };
    assert!(run(&[count]).ok().ends_with("2000,2000,1999000\n"));
    // Where a person asks for parts, there are all rows or an error that names the way back.
    let in_parts = run(&["SET datafusion.catalog.newlines_in_values = false", count]);
    assert_eq!(in_parts.status, 1, "{:?}", in_parts.stdout);
    assert!(in_parts.stderr.contains("SET datafusion.catalog.newlines_in_values = true"), "{}", in_parts.stderr);
}
