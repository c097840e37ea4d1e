//! Tests of `tadoc sql`: statements, scripts, formats and failures.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::{Folder, gzip, new_folder};

fn corpus() -> Folder {
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    folder.write("in/b.txt", "to do");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    folder
}

#[test]
fn corpora_are_asked_by_path() {
    let folder = corpus();
    let sql = "SELECT word, count FROM word_count('c.tadoc') ORDER BY count DESC, word LIMIT 3";
    assert_eq!(folder.rows(sql), ["to,3", "be,2", "do,1"]);
}

#[test]
fn parameters_of_prepared_statements_reach_table_functions() {
    let folder = corpus();
    let prepare = "PREPARE s AS SELECT path, count FROM term_count('c.tadoc', $1) WHERE count >= $2; ";
    let run = |rest: &str| folder.run(&["sql", "-q", "--format", "csv", "-c", &format!("{prepare}{rest}")]);
    assert_eq!(run("EXECUTE s('to', 1)").ok(), "path,count\na.txt,2\nb.txt,1\n");
    let twice = run("EXECUTE s('to', 2); EXECUTE s('do', 1)").ok();
    assert_eq!(twice, "path,count\na.txt,2\npath,count\nb.txt,1\n");
    for (rest, text) in [
        ("EXECUTE s('to')", "EXECUTE s: expected 2 values, one for each parameter, got 1"),
        ("EXECUTE s('to AND', 1)", "term_count: query"),
        ("DEALLOCATE s; EXECUTE s('to', 1)", "Prepared statement 's' does not exist"),
        (prepare, "s is prepared already; DEALLOCATE s first"),
    ] {
        let ran = run(rest);
        assert_eq!(ran.status, 1, "{rest}: {}", ran.stderr);
        assert!(ran.stderr.contains(text), "{rest}: {}", ran.stderr);
    }
    // Others are DataFusion's own.
    let own = "PREPARE t AS SELECT $1 + 1 AS n; EXECUTE t(41); DEALLOCATE t";
    assert!(folder.ok(&["sql", "-q", "--format", "csv", "-c", own]).starts_with("n\n42\n"));
}

#[test]
fn text_files_are_tables_by_their_names() {
    let folder = corpus();
    let rows = "{\"path\": \"a.txt\", \"stars\": 3}\n{\"path\": \"b.txt\", \"stars\": 5}\n";
    for name in ["x.jsonl", "x.ndjson", "x.json"] {
        folder.write(name, rows);
        let joined =
            format!("SELECT d.path, x.stars FROM documents('c.tadoc') d JOIN '{name}' x ON d.path = x.path ORDER BY 1");
        assert_eq!(folder.rows(&joined), ["a.txt,3", "b.txt,5"], "{name}");
    }
    folder.write("x.jsonl.gz", gzip(rows.as_bytes()));
    assert_eq!(folder.rows("SELECT sum(stars) FROM 'x.jsonl.gz'"), ["8"]);
    folder.write("x.tsv", "path\tnote\na.txt\tone, two\n");
    assert_eq!(folder.rows("SELECT note FROM 'x.tsv'"), ["\"one, two\""]);
    let table = "CREATE EXTERNAL TABLE t STORED AS TSV LOCATION 'x.tsv'; SELECT path FROM t";
    assert_eq!(folder.ok(&["sql", "-q", "--format", "csv", "-c", table]), "path\na.txt\n");
    folder.ok(&["sql", "-q", "-c", "COPY (SELECT 1 AS n) TO 'y.jsonl'"]);
    assert_eq!(folder.rows("SELECT n FROM 'y.jsonl'"), ["1"]);
}

#[test]
fn several_commands_share_a_session() {
    let folder = corpus();
    let text = folder.ok(&[
        "sql",
        "--quiet",
        "--format",
        "csv",
        "-c",
        "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'c.tadoc'",
        "-c",
        "CREATE VIEW v AS SELECT path FROM d WHERE text LIKE '%not%'; SELECT * FROM v",
    ]);
    assert_eq!(text, "path\na.txt\n");
}

#[test]
fn formats() {
    let folder = new_folder();
    let run = |format, sql| folder.ok(&["sql", "-q", "--format", format, "-c", sql]);
    let sql = "SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL ORDER BY a";
    let table = "+---+------+\n| a | b    |\n+---+------+\n| 1 | x    |\n| 2 | NULL |\n+---+------+\n";
    assert_eq!(run("table", sql), table);
    assert_eq!(run("automatic", sql), table);
    assert_eq!(run("csv", sql), "a,b\n1,x\n2,\n");
    assert_eq!(run("tsv", sql), "a\tb\n1\tx\n2\t\n");
    assert_eq!(run("json", sql), "[{\"a\":1,\"b\":\"x\"},{\"a\":2,\"b\":null}]\n");
    assert_eq!(run("ndjson", sql), "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":null}\n");

    let none = "SELECT 1 AS a WHERE false";
    assert_eq!(run("table", none), "+---+\n| a |\n+---+\n+---+\n");
    assert_eq!(run("csv", none), "a\n");
    let lists = "SELECT [1, NULL] AS a, ['x \"y\"'] AS b, CAST(NULL AS INT[]) AS c";
    assert_eq!(run("csv", lists), "a,b,c\n\"[1,null]\",\"[\"\"x \\\"\"y\\\"\"\"\"]\",\n");
    let none_of_lists = format!("{lists} WHERE false");
    assert_eq!(run("csv", &none_of_lists), "a,b,c\n");
    assert_eq!(run("json", none), "[]\n");
    // JSON has no NaN and no infinity.
    let numbers = "SELECT 'NaN'::DOUBLE AS a, '-Infinity'::DOUBLE AS b, {'c': NULL} AS s";
    assert_eq!(run("ndjson", numbers), "{\"a\":null,\"b\":null,\"s\":{\"c\":null}}\n");
    assert_eq!(run("csv", numbers), "a,b,s\nNaN,-inf,\"{\"\"c\"\":null}\"\n");
    assert_eq!(run("ndjson", none), "");
    assert_eq!(run("table", "SET datafusion.execution.batch_size = 100"), "");
}

#[test]
fn tables_are_cut_and_other_formats_are_complete() {
    let folder = new_folder();
    let sql = "SELECT value FROM generate_series(1, 50000)";
    let csv = folder.ok(&["sql", "--format", "csv", "-c", sql]);
    assert_eq!(csv.lines().count(), 50_001);
    let ran = folder.run(&["sql", "-c", sql]);
    assert!(ran.stderr.starts_with("50,000 rows, 40 shown (--maxrows inf shows all), "));
    assert_eq!(ran.ok().lines().count(), 44);
    let all = folder.ok(&["sql", "--maxrows", "inf", "-c", sql]);
    assert_eq!(all.lines().count(), 50_004);
}

#[test]
fn cells_of_tables_have_one_line_of_bounded_width() {
    let folder = new_folder();
    let sql = "SELECT repeat('to be\n', 100000) AS text, X'0A0B' AS bytes, repeat('é', 121) AS longer, \
               repeat('é', 120) AS whole";
    let run = |arguments: &[&str]| folder.ok(&[&["sql", "-q"], arguments, &["-c", sql]].concat());
    let table = run(&[]);
    assert_eq!(table.lines().count(), 5);
    let cells: Vec<&str> = table.lines().nth(3).unwrap().split('|').map(str::trim).collect();
    let first: String = "to be\\n".repeat(18).chars().take(120).collect();
    assert_eq!(cells[1], format!("{first} … 599.9 kB"));
    assert_eq!(cells[2], "0a0b");
    assert_eq!(cells[3], format!("{} … 2 bytes", "é".repeat(120)));
    assert_eq!(cells[4], "é".repeat(120));
    let narrow = run(&["--maxwidth", "2"]);
    assert!(narrow.lines().all(|line| line.len() < 100), "{narrow}");
    assert!(run(&["--maxwidth", "inf"]).contains(&"é".repeat(121)));
    let exact = format!("text\n\"{}\"\n", "to be\n".repeat(100_000));
    let texts = "SELECT repeat('to be\n', 100000) AS text";
    assert_eq!(folder.ok(&["sql", "--format", "csv", "-q", "-c", texts]), exact);
    for width in ["0", "-1", "many"] {
        let ran = folder.run(&["sql", "--maxwidth", width, "-c", sql]);
        assert_eq!(ran.status, 2, "{}", ran.stderr);
    }
}

#[test]
fn json_has_one_value_for_each_name() {
    let folder = new_folder();
    let sql = "SELECT x.a, y.a FROM (SELECT 1 AS a) x, (SELECT 2 AS a) y";
    for format in ["json", "ndjson"] {
        let named = "JSON has one value for each name, and two columns are named a; name them with AS, or \
                     write csv";
        folder.fails(&["sql", "--format", format, "-c", sql], named);
    }
    assert_eq!(folder.ok(&["sql", "-q", "--format", "csv", "-c", sql]), "a,a\n1,2\n");
}

#[test]
fn scripts_come_from_files_and_standard_input() {
    let folder = new_folder();
    let script = "#!/usr/bin/env -S tadoc sql -f\n-- a comment; with a semicolon\n\
                  SELECT ';' AS a;\n;;\nSELECT 2 AS b -- the end";
    folder.write("x.sql", script);
    let expected = "a\n;\nb\n2\n";
    assert_eq!(folder.ok(&["sql", "-q", "--format", "csv", "-f", "x.sql"]), expected);
    let piped = ["sql", "-q", "--format", "csv"];
    assert_eq!(folder.run_with_input(&piped, script.as_bytes()).ok(), expected);
    let named = ["sql", "-q", "--format", "csv", "-c", "SELECT 0 AS z", "-f", "-"];
    let both = folder.run_with_input(&named, script.as_bytes()).ok();
    assert_eq!(both, format!("z\n0\n{expected}"));
    folder.fails(&["sql", "-f", "nowhere.sql"], "nowhere.sql: No such file or directory (os error 2)");
}

#[test]
fn options_of_datafusion_cli_work() {
    let folder = new_folder();
    folder.write("data/x.csv", "a\n7\n");
    folder.write("data/x.sql", "SELECT a FROM 'x.csv'");
    let options = ["sql", "-q", "--format", "csv", "-p", "data", "-m", "1GiB"];
    assert_eq!(folder.ok(&[&options[..], &["-f", "x.sql"]].concat()), "a\n7\n");
    let nowhere = ["sql", "-p", "nowhere", "-c", "SELECT 1"];
    folder.fails(&nowhere, "nowhere: No such file or directory (os error 2)");
}

#[test]
fn commands_of_the_prompt_run_as_arguments() {
    let folder = new_folder();
    let described = folder.ok(&["sql", "-q", "-c", r"\h kwic"]);
    assert!(described.starts_with("kwic(corpus, query,") && described.contains("columns:"), "{described}");
    let options = ["sql", "-q", "-c", r"\pset format csv", "-c", "CREATE TABLE t AS SELECT 7 AS a", "-c", r"\d t"];
    let told = folder.ok(&[&options[..], &["-c", "SELECT a FROM t", "-c", r"\q", "-c", "SELECT 8"]].concat());
    assert!(told.contains(",t,a,Int64,") && told.ends_with("a\n7\n"), "{told}");
    folder.fails(&["sql", "-c", r"\nothing"], r"there is no command \nothing; \? lists them");
}

/// Runs `tadoc sql` with `options` at a terminal, which `script` of util-linux plays, and leaves it.
#[cfg(target_os = "linux")]
fn at_prompt(folder: &Folder, options: &str) -> Option<String> {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let program = folder.command(&[]).get_program().display().to_string();
    let mut command = Command::new("script");
    let script = command.args(["-qec", &format!("{program} sql -q {options}"), "/dev/null"]);
    let script = script.current_dir(folder.path()).env("HOME", folder.path());
    let script = script.env("TERM", "dumb").stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut running) = script.spawn() else {
        println!("skipped: there is no command `script`");
        return None;
    };
    running.stdin.take().unwrap().write_all(b"\\q\n").unwrap();
    let output = running.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn the_prompt_begins_with_the_statements_of_a_file() {
    let folder = new_folder();
    folder.write(".datafusionrc", "SELECT 40 + 2 AS usual; SELECT nothing");
    folder.write("my.rc", "SELECT 1230 + 4 AS mine");
    let Some(usual) = at_prompt(&folder, "") else { return };
    assert!(usual.contains("| 42 ") && usual.contains("No field named nothing"), "{usual}");
    let mine = at_prompt(&folder, "--rc my.rc").unwrap();
    assert!(mine.contains("| 1234 ") && !mine.contains("usual"), "{mine}");
    let none = at_prompt(&folder, "--rc nowhere.rc").unwrap();
    assert!(none.contains("nowhere.rc: No such file"), "{none}");
}

#[test]
fn the_first_failing_statement_ends_the_run() {
    let folder = new_folder();
    let ran = folder.run(&[
        "sql",
        "-q",
        "--format",
        "csv",
        "-c",
        "SELECT 1 AS a; SELECT nope; SELECT 2 AS b",
        "-c",
        "SELECT 3 AS c",
    ]);
    assert_eq!(ran.stdout, b"a\n1\n");
    assert_eq!(ran.status, 1);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("nope"), "{}", ran.stderr);

    let ran = folder.run(&["sql", "-q", "--format", "csv", "-c", "SELECT 1 AS a; SELEC 2"]);
    assert_eq!((ran.stdout.as_slice(), ran.status), (b"a\n1\n".as_slice(), 1));
    assert_eq!(ran.stderr, "error: no valid SQL: Expected: an SQL statement, found: SELEC at Line: 1, Column: 16\n");
}

#[test]
fn a_missing_corpus_is_one_clear_line() {
    let folder = new_folder();
    let ran = folder.run(&["sql", "-c", "SELECT * FROM word_count('nowhere.tadoc')"]);
    assert_eq!(ran.status, 1);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("nowhere.tadoc"), "{}", ran.stderr);
}

#[test]
fn a_memory_limit_is_kept() {
    let folder = new_folder();
    let sql = "SELECT a.value FROM generate_series(1, 3000000) a ORDER BY a.value * -1";
    let ran = folder.run(&[
        "sql",
        "--memory-limit",
        "1MiB",
        "-c",
        "SET datafusion.runtime.max_temp_directory_size = '1K'",
        "-c",
        sql,
    ]);
    assert_eq!(ran.status, 1);
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_query_that_never_yields() {
    let folder = new_folder();
    let sql = "SELECT sum(a.value * b.value) FROM generate_series(1, 10000000) a, \
               generate_series(1, 10000000) b";
    let mut command = folder.command(&["sql", "-c", sql]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_secs(1));
    let mut kill = Command::new("kill");
    assert!(kill.args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let asked = Instant::now();
    while child.try_wait().unwrap().is_none() && asked.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(20));
    }
    // This kill has an effect only if the interrupt had none.
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
}

#[test]
fn copies_replace_a_corpus_only_when_told() {
    let folder = corpus();
    let copy = "COPY (SELECT 'new' AS text) TO 'c.tadoc'";
    folder.fails(
        &["sql", "-c", copy],
        "COPY: c.tadoc exists; choose another name, or replace it with OPTIONS ('tadoc.overwrite' 'true')",
    );
    assert_eq!(folder.rows("SELECT count(*) FROM documents('c.tadoc')"), ["2"]);
    folder.ok(&["sql", "-q", "-c", &format!("{copy} OPTIONS ('tadoc.overwrite' 'true')")]);
    assert_eq!(folder.rows("SELECT text FROM documents('c.tadoc')"), ["new"]);
    folder.ok(&["sql", "-q", "-c", "SET tadoc.overwrite = true", "-c", copy]);
    folder.ok(&["sql", "-q", "-c", "COPY (SELECT 'x' AS text) TO 'new.tadoc'"]);
}

#[test]
fn a_null_text_is_refused_everywhere() {
    let folder = new_folder();
    folder.write("a.txt", "to be");
    folder.ok(&["ingest", "a.txt", "-o", "living/", "--append"]);
    let table = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'living/'";
    let nulls = "SELECT 'p' AS path, CASE WHEN value > 1 THEN 'x' END AS text FROM generate_series(1, 3)";
    let many = nulls.replace("(1, 3)", "(1, 200)");
    let statements = [
        format!("COPY ({nulls}) TO 'c.tadoc'"),
        format!("INSERT INTO d (path, text) {nulls}"),
        format!("INSERT INTO d (path, text) {many}"),
        "INSERT INTO d (path, text) VALUES ('p', 'x'), ('q', NULL)".to_owned(),
        "INSERT INTO d (path, content) SELECT 'p', NULL".to_owned(),
        "INSERT INTO d (path) SELECT 'p'".to_owned(),
    ];
    for sql in statements {
        let ran = folder.run(&["sql", "-q", "-c", table, "-c", &sql]);
        assert_eq!(ran.status, 1, "{sql}");
        let way_out = "the text of 1 row(s) is NULL; store them as empty documents with coalesce(text, '')";
        assert!(ran.stderr.contains(way_out), "{sql}: {}", ran.stderr);
    }
    assert!(!folder.join("c.tadoc").exists());
    assert_eq!(folder.table_rows("living/", "SELECT count(*) FROM d"), ["1"]);
    let coalesced = "INSERT INTO d (path, text) SELECT 'p', coalesce(NULL, '')";
    folder.ok(&["sql", "-q", "-c", table, "-c", coalesced]);
}

#[test]
fn errors_name_the_way_out() {
    let folder = corpus();
    folder.write("a.jsonl", "{\"text\": \"x\", \"ts\": 1}\n");
    folder.ok(&["ingest", "a.jsonl", "-o", "t.tadoc"]);
    let cases = [
        ("SELECT ts FROM documents('t.tadoc')", "FROM 'notes.tadoc' instead of FROM documents('notes.tadoc')"),
        ("SELECT d.ts FROM documents('t.tadoc') AS d", "FROM 'notes.tadoc' instead of FROM documents("),
        ("SELECT extract('c.tadoc', 0, 0, 2)", "or extract_text(corpus, doc_id, byte_offset, byte_len)"),
        ("SELECT Word_Count('c.tadoc')", "'; word_count is a table function: write SELECT … FROM word_count(…)"),
        (
            "SELECT * FROM Matches('a', 'b')",
            "Matches is no table function, it answers for each row: write SELECT matches(text, query, ",
        ),
        ("SELECT * FROM upper('a')", "it answers for each row: write SELECT upper(str) FROM …"),
        ("SELECT * FROM sum(1)", "it answers for each row: write SELECT sum(expression) FROM …"),
        (
            "CREATE EXTERNAL TABLE d STORED AS TADC LOCATION 'c.tadoc'",
            "did you mean TADOC? STORED AS takes TADOC, GSST, PARQUET, CSV, TSV, JSON, JSONL, NDJSON, ARROW",
        ),
        ("COPY (SELECT 'a' AS text) TO 'd.tadc'", "did you mean TADOC?"),
        (
            "COPY (SELECT 'a' AS text, INTERVAL '1 day' AS gap) TO 'd.tadoc' STORED AS TADOC",
            "column gap is Interval(MonthDayNano), which no file can hold (",
        ),
        ("SELECT * FROM extract('c.tadoc', 0, 100000, 1)", "is behind the end of "),
    ];
    for (sql, way_out) in cases {
        let ran = folder.run(&["sql", "-c", sql]);
        assert!(ran.stderr.contains(way_out), "{sql}: {}", ran.stderr);
    }
    let living = ["ingest", "in", "-o", "living/", "--append"];
    folder.ok(&living);
    let table = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'living/'";
    let ran = folder.run(&["sql", "-c", table, "-c", "UPDATE d SET words = 1"]);
    assert!(ran.status == 1 && !ran.stderr.contains("tadoc_"), "{}", ran.stderr);
}

#[test]
fn operators_in_small_letters_are_noticed() {
    let folder = new_folder();
    folder.write("in/a.txt", "my heart and my soul");
    folder.write("in/b.txt", "heart or soul");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    let told = |sql: &str| folder.run(&["sql", "-q", "-c", sql]).stderr;
    let notice = "note: the query `heart or soul` asks for the word `or`, too; write OR for the operator, or \
                  \"or\" in quotes for the word\n";
    for call in [
        "* FROM search('c.tadoc', 'heart or soul')",
        "* FROM term_count('c.tadoc', 'heart or soul')",
        "* FROM kwic('c.tadoc', 'heart or soul')",
        "* FROM rank('c.tadoc', 'heart or soul', fold => true)",
        "* FROM collocates('c.tadoc', 'heart or soul')",
        "* FROM dispersion('c.tadoc', 'heart or soul')",
        "matches(text, 'heart or soul') FROM documents('c.tadoc')",
        "highlight(text, 'heart or soul') FROM documents('c.tadoc')",
        "snippet(text, query => 'heart or soul') FROM documents('c.tadoc')",
        "path FROM documents('c.tadoc') WHERE doc_id IN (SELECT doc_id FROM search('c.tadoc', 'heart or soul'))",
    ] {
        assert_eq!(told(&format!("SELECT {call}")), notice, "{call}");
        assert_eq!(told(&format!("EXPLAIN SELECT {call}")), notice, "{call}");
    }
    let prepared = "PREPARE p AS SELECT * FROM search('c.tadoc', $1); EXECUTE p('heart or soul')";
    assert_eq!(told(prepared), notice);
    for meant in ["heart OR soul", "heart \"or\" soul", "\"heart or soul\"", "or heart"] {
        assert_eq!(told(&format!("SELECT * FROM search('c.tadoc', '{meant}')")), "", "{meant}");
    }
    let plot = ["plot", "--dispersion", "c.tadoc", "heart or soul", "-o", "x.svg"];
    assert!(folder.run(&plot).stderr.contains(notice));
}

#[test]
fn a_table_is_made_beside_a_folder_of_its_name() {
    let folder = new_folder();
    folder.write("m/x.csv", "a\n5\n");
    for statement in [
        "CREATE TABLE IF NOT EXISTS m AS SELECT 1 AS b",
        "CREATE TABLE m AS SELECT 1 AS b",
        "CREATE OR REPLACE TABLE m AS SELECT 1 AS b",
        "CREATE VIEW m AS SELECT 1 AS b",
        "CREATE TABLE IF NOT EXISTS m (b INT); INSERT INTO m VALUES (1)",
        "CREATE TABLE m AS SELECT 1 AS b; CREATE TABLE IF NOT EXISTS m AS SELECT 2 AS b",
    ] {
        let ran = folder.ok(&["sql", "-q", "--format", "csv", "-c", &format!("{statement}; SELECT b FROM m")]);
        assert!(ran.ends_with("b\n1\n"), "{statement}: {ran}");
    }
    let twice = "CREATE TABLE m AS SELECT 1 AS b; CREATE TABLE m AS SELECT 2 AS b";
    folder.fails(&["sql", "-q", "-c", twice], "Table 'm' already exists");
    folder.fails(&["sql", "-q", "-c", "CREATE TABLE \"m/x.csv\" AS SELECT 1"], "Table 'm/x.csv' already exists");
}

#[test]
fn files_of_json_have_exact_numbers_and_all_fields() {
    let folder = new_folder();
    folder.write("x.jsonl", "{\"id\": 18446744073709551615}\n{\"id\": 3}\n");
    assert_eq!(folder.rows("SELECT id FROM 'x.jsonl'"), ["18446744073709551615", "3"]);
    folder.write("y.json", "{\"x\": 0.5, \"t\": \"a\"}\n{\"x\": 9007199254740993, \"t\": \"b\"}\n");
    let ran = folder.run(&["sql", "-q", "-c", "SELECT x FROM 'y.json'"]);
    assert!(ran.stderr.contains("`9007199254740993` has more digits than that keeps"), "{}", ran.stderr);
    assert_eq!(folder.rows("SELECT t FROM 'y.json'"), ["a", "b"]);
    folder.write("z.jsonl", "{\"a\": 1, \"b\": 2}\n".repeat(1000) + "{\"a\": 1, \"c\": 2}\n");
    let ran = folder.run(&["sql", "-q", "-c", "SELECT * FROM 'z.jsonl'"]);
    assert!(ran.stderr.contains("z.jsonl: column 'c' missing from schema"), "{}", ran.stderr);
    assert_eq!(folder.rows("SELECT sum(a) FROM 'z.jsonl'"), ["1001"]);
}

#[test]
fn a_column_has_one_zero() {
    let folder = new_folder();
    folder.write("x.jsonl", "{\"t\": \"a\", \"x\": -0.0}\n{\"t\": \"b\", \"x\": 0.0}\n{\"t\": \"c\", \"x\": 1.5}\n");
    folder.ok(&["ingest", "x.jsonl", "--documents", "jsonl:t", "-o", "x.tadoc"]);
    folder.ok(&["ingest", "x.jsonl", "--documents", "lines", "-o", "lines.tadoc"]);
    let copy = "COPY (SELECT doc_id, text, x FROM 'x.tadoc') TO 'x.parquet' STORED AS GSST";
    folder.ok(&["sql", "-q", "-c", copy]);
    for (condition, expected) in [
        ("@ IN (0.0, 3, 4, 5, 6)", "a b"),
        ("@ IN (-0.0, 3)", "a b"),
        ("@ NOT IN (-0.0, 3, 4, 5, 6)", "c"),
        ("@ IN (SELECT 0.0::DOUBLE)", "a b"),
        ("@ IN (SELECT -0.0::DOUBLE)", "a b"),
        ("@ NOT IN (SELECT -0.0::DOUBLE)", "c"),
        ("@ IN (doc_id::DOUBLE, 3, 4, 5, 6)", "a"),
    ] {
        for (table, field) in [("x.tadoc", "x"), ("x.parquet", "x"), ("lines.tadoc", "json_get_float(text, 'x')")] {
            let condition = condition.replace('@', field);
            let sql = format!("SELECT substr('abc', doc_id + 1, 1) FROM '{table}' WHERE {condition} ORDER BY doc_id");
            assert_eq!(folder.rows(&sql).join(" "), expected, "{condition}");
        }
    }
}

#[test]
fn a_name_that_is_no_table_and_no_file_is_explained() {
    let folder = new_folder();
    folder.write("in/notes.txt", "text");
    folder.ok(&["ingest", "in", "-o", "notes.tadoc"]);
    for (sql, text) in [
        (
            "SELECT * FROM note.tadoc",
            "there is no table note.tadoc, and no file of this name; did you mean notes.tadoc?",
        ),
        (
            "SELECT * FROM notes.tadoc",
            "there is no table notes.tadoc; for the file of this name write 'notes.tadoc' in quotes",
        ),
        (
            "CREATE TABLE letters AS SELECT 1; DELETE FROM leters",
            "there is no table leters, and no file of this name; did you mean letters?",
        ),
        (
            "CREATE TABLE letters AS SELECT 1; SELECT * FROM zebras",
            "there is no table zebras, and no file of this name; the tables are letters",
        ),
    ] {
        folder.fails(&["sql", "-q", "-c", sql], text);
    }
    let ran = folder.run(&["sql", "-c", "SELECT * FROM word_count('note.tadoc')"]);
    assert!(ran.stderr.contains("no table of that name; did you mean notes.tadoc?"), "{}", ran.stderr);
    let ran = folder.run(&["sql", "-c", "SELECT * FROM 'in/notes.txt'"]);
    assert!(ran.stderr.contains("read_text('in/notes.txt') reads plain files"), "{}", ran.stderr);
    // Safe mode tells nothing about files.
    let ran = folder.run(&["sql", "--safe", "--allow", "in", "-c", "SELECT * FROM note.tadoc"]);
    assert!(!ran.stderr.contains("notes.tadoc"), "{}", ran.stderr);
}
