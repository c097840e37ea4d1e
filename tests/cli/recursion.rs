//! Tests of statements that are long chains or deep nests, and of deep values that libraries read: an answer or an
//! error, never a signal.

use crate::harness::new_folder;

const LIMIT: &str = "raise tadoc.max_statement_depth to allow it";

/// Returns statements of about `depth` levels, each nested in its own way.
fn deep_statements(depth: usize) -> Vec<String> {
    let chain = |first: &str, part: &str| format!("SELECT {first}{}", part.repeat(depth));
    let ctes: String = (1..depth).map(|i| format!(", c{i} AS (SELECT x + 1 AS x FROM c{})", i - 1)).collect();
    let relations: String = (1..depth).map(|i| format!(", (VALUES (1)) t{i}(x{i})")).collect();
    vec![
        chain("1", "+1"),
        chain("''", "||'a'"),
        chain("1", "::int"),
        chain("1 ", "IS NULL "),
        chain("1 FROM generate_series(1, 2) WHERE value = 1", " OR value = 2"),
        chain("1 FROM generate_series(1, 2) WHERE value = 1", " AND value <> 2"),
        chain("1", " UNION ALL SELECT 1"),
        chain("1", " EXCEPT SELECT 2"),
        format!("SELECT count(*) FROM (VALUES (1)) t0(x0){relations}"),
        format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth)),
        format!("SELECT {}1{}", "abs(".repeat(depth), ")".repeat(depth)),
        format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(depth), " END".repeat(depth)),
        format!("SELECT {}1{}", "(SELECT ".repeat(depth), ")".repeat(depth)),
        format!("WITH c0 AS (SELECT 1 AS x){ctes} SELECT * FROM c{}", depth - 1),
    ]
}

#[test]
fn what_is_too_deep_is_refused() {
    let folder = new_folder();
    for depth in [3_000, 30_000] {
        for sql in deep_statements(depth) {
            folder.write("deep.sql", &sql);
            let ran = folder.run(&["sql", "-q", "-f", "deep.sql"]);
            let start = sql.get(..60).unwrap_or(&sql);
            assert_eq!(ran.status, 1, "{start}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1, "{start}");
            assert!(ran.stderr.contains(LIMIT), "{start}: {}", ran.stderr);
        }
    }
    let million = format!("SELECT 1 AS a; SELECT 1{}; SELECT 2", "+1".repeat(1_000_000));
    folder.write("deep.sql", million);
    let ran = folder.run(&["sql", "-q", "--format", "csv", "-f", "deep.sql"]);
    assert_eq!((ran.status, ran.stdout.as_slice()), (1, b"a\n1\n".as_slice()));
    assert!(ran.stderr.contains(LIMIT), "{}", ran.stderr);
}

#[test]
fn what_is_less_deep_is_answered() {
    let folder = new_folder();
    for sql in deep_statements(30) {
        folder.write("deep.sql", &sql);
        let ran = folder.run(&["sql", "-q", "-f", "deep.sql"]);
        let is_nested = sql.contains("((") || sql.contains("abs(") || sql.contains("CASE") || sql.contains("(SELECT (");
        let is_answer = ran.status == 0;
        assert!(is_answer || is_nested && ran.stderr.contains("nested too deeply"), "{}", ran.stderr);
    }
    // A main thread has 8 MB of stack, and 400 of these operators overflowed it.
    folder.write("deep.sql", format!("SELECT 1{}", "+1".repeat(400)));
    folder.ok(&["sql", "-q", "-f", "deep.sql"]);
    folder.write("flat.sql", format!("SELECT 1 IN ({}1)", "2, ".repeat(20_000)));
    folder.ok(&["sql", "-q", "-f", "flat.sql"]);
}

/// Values that a library reads by recursion, each with a part of the error or of the answer.
#[test]
fn texts_of_parquet_files_are_no_declared_decimals() {
    let folder = new_folder();
    let write = |value: &str, name: &str| {
        let copy = format!("COPY (SELECT {value} AS a, 7 AS n) TO '{name}' STORED AS PARQUET");
        folder.ok(&["sql", "-q", "-c", &copy]);
    };
    write("repeat('1', 20000)", "text.parquet");
    write("['1', '2']", "list.parquet");
    write("1.5::DECIMAL(5, 1)", "number.parquet");
    let rows = |file: &str, kind: &str| {
        let sql = format!(
            "CREATE EXTERNAL TABLE t (a {kind}, n BIGINT) STORED AS PARQUET LOCATION '{file}.parquet'; \
             SELECT a, n FROM t"
        );
        folder.run(&["sql", "-q", "--format", "csv", "-c", &sql])
    };
    for (file, kind) in [("text", "DECIMAL(38, 2)"), ("list", "DECIMAL(9, 2)[]")] {
        let ran = rows(file, kind);
        assert_eq!(ran.status, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("column a is a text in the file"), "{}", ran.stderr);
    }
    assert_eq!(rows("number", "DECIMAL(9, 2)").ok(), "a,n\n1.50,7\n");
    assert_eq!(rows("list", "VARCHAR[]").ok(), "a,n\n\"[\"\"1\"\",\"\"2\"\"]\",7\n");
}

#[test]
fn deep_values_are_bounded_before_they_are_read() {
    let folder = new_folder();
    let nest = |open: &str, middle: &str, close: &str, depth: usize| {
        format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
    };
    folder.write("a.txt", "be");
    folder.ok(&["ingest", "a.txt", "-o", "a.tadoc", "-q"]);
    let deep = 200_000;
    let kind = nest("List(", "Int8", ")", deep);
    for (sql, expected) in [
        (format!("SELECT arrow_cast(1, '{kind}')"), "expected at most 64"),
        (format!("SELECT arrow_try_cast(1, '{kind}')"), "expected at most 64"),
        (format!("SELECT regexp_like('a', '{}')", nest("(", "a", ")", deep)), "regex"),
        (format!("SELECT * FROM search('a.tadoc', '{}')", nest("(", "a", ")", deep)), "at most 256 deep"),
        (format!("SELECT * FROM documents('{}')", "*".repeat(deep)), "expected at most 4096"),
        (format!("SELECT * FROM documents('{}')", "[!".repeat(deep)), "expected at most 4096"),
        (format!("SELECT CAST(concat('{}', 'x') AS DECIMAL)", "1".repeat(deep)), "is no decimal"),
        (
            format!("SELECT * FROM range(CAST('{}' AS DECIMAL))", "1".repeat(deep)),
            "range: got an argument that casts a text to a decimal",
        ),
        (
            "SELECT * FROM generate_series(1, repeat('1', 20000000)::DECIMAL)".to_owned(),
            "generate_series: got an argument that casts a text to a decimal",
        ),
        (
            "PREPARE p AS SELECT $1; EXECUTE p(CAST(repeat('1', 20000000) AS DECIMAL))".to_owned(),
            "value 1 casts a text to a decimal",
        ),
        (
            "PREPARE p(DECIMAL(9, 2)) AS SELECT $1; EXECUTE P(repeat('1', 20000000))".to_owned(),
            "value 1 casts a text to a decimal",
        ),
        (
            format!("PREPARE p(INT, NUMERIC) AS SELECT $1, $2; EXECUTE p(1, '{}')", "1".repeat(deep)),
            "value 2 casts a text to a decimal",
        ),
    ] {
        folder.write("deep.sql", &sql);
        let ran = folder.run(&["sql", "-q", "-f", "deep.sql"]);
        let start = sql.get(..60).unwrap_or(&sql);
        assert_eq!(ran.status, 1, "{start}: {}", ran.stderr.get(..300).unwrap_or(&ran.stderr));
        assert!(ran.stderr.contains(expected), "{start}: {}", ran.stderr.get(..300).unwrap_or(&ran.stderr));
    }
    folder.write("deep.html", nest("<div>", "word", "</div>", deep));
    folder.ok(&["ingest", "deep.html", "-o", "html.tadoc", "-q", "--html", "text"]);
    assert_eq!(folder.rows("SELECT word, count FROM word_count('html.tadoc')"), ["word,1"]);
    for (name, documents, text) in [
        ("deep.jsonl", "jsonl:text", format!("{{\"text\":\"a\",\"v\":{}}}\n", nest("[", "", "]", deep))),
        ("deep.json", "jsonl:text", nest("[", "", "]", deep)),
    ] {
        folder.write(name, text);
        let ran = folder.run(&["ingest", name, "-o", "x.tadoc", "-q", "--documents", documents]);
        assert_eq!((ran.status, ran.stderr.lines().count()), (1, 1), "{name}: {}", ran.stderr);
    }
}
