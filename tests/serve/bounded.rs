//! Statements that ask for far more memory or time than a server gives: a table of them.
//!
//! ```text
//! peak of resident memory   at most 1.25 * --memory-limit and 64 MiB
//! time                      at most 2 * --timeout and a second
//! answer                    right, or an error that names a limit
//! afterwards                another client has its answer, and nothing runs on
//! ```
//!
//! All clients ask one server. The system forgets the peak of its memory before each statement. Code beyond 32 MiB
//! is not counted, as the binary may be built without optimizations. A part of the table runs by default.
//! `TADOC_LIMIT_STATEMENTS=all cargo test --test serve bounded -- --nocapture` runs all of it and
//! prints what each statement takes.

use std::fs;
use std::time::{Duration, Instant};

use crate::server::{Server, corpora};

const LIMIT_MIB: u64 = 256;
const TIMEOUT: Duration = Duration::from_secs(4);
/// Most time of a statement beyond twice the time-out.
const SLACK: Duration = Duration::from_secs(1);
/// Most time of a short statement of another client, and of the end of what was given up.
const SOON: Duration = Duration::from_secs(4);

/// A statement and its only right answer, as JSON.
struct Case(&'static str, &'static str);

/// Statements that run by default: one of each kind.
const FEW: &[Case] = &[
    Case("SELECT cardinality(array_distinct(range(0, 60000000)))", "60000000"),
    Case("SELECT length(concat(T30, T30, T30, T30, T30))", "150000000"),
    Case("SELECT length(reverse(T30)) + length(upper(T30))", "60000000"),
    Case(
        "SELECT sum(length(extract_text('long', value % 2, 0, 9223372036854775807))) FROM range(0, 4000)",
        "12000000000",
    ),
    Case("SELECT sum(length(t)) FROM (SELECT repeat('x', 900000) AS t FROM range(0, 100000))", "90000000000"),
    Case(
        "SELECT sum(length(s['a'])) FROM (SELECT named_struct('a', T900K, 'b', value) AS s FROM range(0, 20000))",
        "18000000000",
    ),
    Case("SELECT sum(length(CASE WHEN value > 0 THEN T900K ELSE T30 END)) FROM range(0, 20000)", "18029100000"),
    Case(
        "SELECT sum(length(a.t)) FROM (SELECT repeat('x', 500000 + value) AS t FROM range(0, 2)) a CROSS JOIN range(0, 100000) b",
        "100000100000",
    ),
    Case(
        "SELECT sum(length(t)) FROM (SELECT unnest(range(0, 3000000)) AS n, concat('y', T900K) AS t)",
        "2700003000000",
    ),
    Case("SELECT length(string_agg(concat('word', value), ',')) FROM range(0, 30000000)", "378888889"),
];

/// Statements of the whole table beside those.
const MORE: &[Case] = &[
    // After its time-out, a sort keeps threads for some seconds, and other clients wait.
    Case(
        "SELECT count(*) FROM (SELECT value, row_number() OVER (ORDER BY md5(concat('', value))) AS n FROM range(0, 20000000)) WHERE n > 0",
        "20000000",
    ),
    // Functions of texts.
    Case("SELECT cardinality(tokenize(T30))", "10000000"),
    Case("SELECT length(translate(T30, 'ab', 'xyz'))", "30000000"),
    Case("SELECT length(encode(T30, 'hex'))", "60000000"),
    Case("SELECT length(encode(T30, 'base64'))", "40000000"),
    Case("SELECT length(arrow_cast(decode(encode(T30, 'hex'), 'hex'), 'Utf8'))", "30000000"),
    Case("SELECT matches(T30, 'NEAR(ab ab, 5)')", "true"),
    Case("SELECT length(highlight(T30, 'ab'))", "100000000"),
    Case("SELECT length(snippet(T30, 'ab', '<', '>', '…', 1000)) > 0", "true"),
    Case("SELECT length(lpad('x', 300000000, 'ab')) + length(rpad('x', 300000000))", "600000000"),
    Case("SELECT length(replace(T30, 'a', T900K))", "9000020000000"),
    Case("SELECT length(regexp_replace(T30, 'a', 'xyzxyzxyz', 'g'))", "110000000"),
    Case("SELECT length(regexp_replace(T900K, '.', T900K, 'g')) > 0", "true"),
    Case("SELECT cardinality(regexp_match(T30, '(a)(b)( .*)'))", "3"),
    Case("SELECT cardinality(string_to_array(T30, ' '))", "10000001"),
    Case("SELECT length(array_to_string(range(0, 8000000), T900K)) > 0", "true"),
    Case("SELECT length(split_part(T30, 'x', 1)) + length(substr(T30, 2)) + length(btrim(T30))", "89999998"),
    Case("SELECT length(initcap(T30)) + length(lower(T30))", "60000000"),
    Case("SELECT length(md5(T30)) + length(encode(digest(T30, 'sha512'), 'hex'))", "160"),
    Case("SELECT length(chr(65)) + length(to_hex(255)) + length(T30)", "30000003"),
    Case("SELECT length(T30 || T30 || T30 || T30 || T30 || T30)", "180000000"),
    Case("SELECT length(concat_ws(T900K, T30, T30, T30, T30))", "122700000"),
    Case("SELECT sum(length(upper(t))) FROM (SELECT concat(T900K, value) AS t FROM range(0, 10000))", "9000038890"),
    Case("SELECT count(*) FROM range(0, 100000) WHERE length(concat(T900K, value)) > 5", "100000"),
    Case("SELECT levenshtein(T30, concat(T30, 'x'))", "1"),
    Case(
        "SELECT count(to_timestamp(concat('2026-01-0', value % 9 + 1), T900K, '%Y-%m-%d')) FROM range(0, 20000)",
        "20000",
    ),
    Case("SELECT strpos(T30, 'x') + ascii(T30) + bit_length(T900K)", "7200097"),
    Case("SELECT overlay(T30 PLACING T30 FROM 3 FOR 2) IS NULL", "false"),
    Case("SELECT cardinality(map(range(0, 4000000), range(0, 4000000)))", "4000000"),
    // Functions of lists and structs.
    Case("SELECT cardinality(array_concat(R5, R5, R5, R5))", "20000000"),
    Case("SELECT cardinality(array_repeat(array_repeat(array_repeat(1, 1000), 1000), 1000))", "1000"),
    Case("SELECT cardinality(array_sort(R5)) + cardinality(array_reverse(R5))", "10000000"),
    Case("SELECT cardinality(flatten(array_repeat(range(0, 1000), 20000)))", "20000000"),
    Case("SELECT cardinality(array_union(R5, R5)) + cardinality(array_intersect(R5, R5))", "10000000"),
    Case("SELECT cardinality(array_except(R5, R5))", "0"),
    Case("SELECT sum(cardinality(make_array(T900K, T900K, concat('', value)))) FROM range(0, 20000)", "60000"),
    Case("SELECT sum(length(struct(T900K, value)['c0'])) FROM range(0, 20000)", "18000000000"),
    Case("SELECT cardinality(array_append(R5, 1)) + cardinality(array_remove_all(R5, 3))", "9999999"),
    Case("SELECT sum(cardinality(generate_series(0, value * 1000))) FROM range(0, 5000)", "12497505000"),
    Case(
        "SELECT cardinality(generate_series(TIMESTAMP '1970-01-01', TIMESTAMP '2026-01-01', INTERVAL '1 second')) > 0",
        "true",
    ),
    // Casts and operators.
    Case("SELECT length(CAST(R5 AS text))", "43888890"),
    Case("SELECT length(arrow_cast(T30, 'LargeUtf8')) + length(arrow_cast(T30, 'Utf8'))", "60000000"),
    Case("SELECT cardinality(arrow_cast(range(0, 10000000), 'List(Utf8)'))", "10000000"),
    Case("SELECT length(encode(CAST(T30 AS bytea), 'hex'))", "60000000"),
    Case(
        "SELECT sum(length(encode(CAST(t AS bytea), 'hex'))) FROM (SELECT concat(T900K, value) AS t FROM range(0, 10000))",
        "18000077780",
    ),
    Case("SELECT CAST(repeat('1', 100000000) AS decimal) IS NULL", "false"),
    Case("SELECT length(coalesce(NULL, T30)) + length(nullif(T30, 'x')) + length(greatest(T30, 'a'))", "90000000"),
    Case("SELECT count(*) FROM range(0, 20000) WHERE concat(T900K, value) LIKE '%b 19%'", "1111"),
    // Aggregates, windows, sets.
    Case("SELECT cardinality(array_agg(concat('word', value))) FROM range(0, 30000000)", "30000000"),
    Case(
        "SELECT sum(length(s)) FROM (SELECT string_agg(T900K, ',') AS s FROM range(0, 100000) GROUP BY value % 7)",
        "90000099993",
    ),
    Case("SELECT count(*) FROM (SELECT DISTINCT concat('word', value) FROM range(0, 30000000))", "30000000"),
    Case(
        "SELECT count(*) FROM (SELECT concat('w', value) FROM range(0, 10000000) UNION SELECT concat('v', value) FROM range(0, 10000000))",
        "20000000",
    ),
    Case(
        "SELECT max(t) IS NULL FROM (SELECT first_value(concat(T900K, value)) OVER (ORDER BY value) AS t FROM range(0, 10000))",
        "false",
    ),
    Case(
        "SELECT count(l) FROM (SELECT lag(concat(repeat('x', 10000), value), 7) OVER (ORDER BY value) AS l FROM range(0, 100000))",
        "99993",
    ),
    Case(
        "SELECT count(*) FROM (SELECT a.value, b.value FROM range(0, 10000) a CROSS JOIN range(0, 10000) b ORDER BY a.value * b.value DESC)",
        "100000000",
    ),
    Case(
        "SELECT count(DISTINCT a.value * 100000 + b.value) FROM range(0, 100000) a, range(0, 100000) b",
        "10000000000",
    ),
    Case("SELECT median(a.value + b.value) FROM range(0, 10000) a, range(0, 10000) b", "9999"),
    Case("SELECT count(*) FROM range(0, 9000000000000000000)", "9000000000000000000"),
    Case(
        "WITH RECURSIVE r AS (SELECT 1 AS n, repeat('x', 1000) AS t UNION ALL SELECT n + 1, t || t FROM r WHERE n < 40) SELECT max(length(t)) FROM r",
        "549755813888000",
    ),
    Case("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r", "0"),
    Case(
        "WITH t AS (SELECT concat(T900K, value) AS t FROM range(0, 5000)) SELECT count(*) FROM t a JOIN t b ON a.t = b.t",
        "5000",
    ),
    Case("SELECT count(*) FROM range(0, 30000000) a JOIN range(0, 30000000) b ON a.value = b.value", "30000000"),
    Case("SELECT count(*) FROM range(0, 1000000) a JOIN range(0, 1000000) b ON a.value < b.value", "499999500000"),
    Case(
        "SELECT sum(length(t)) FROM (SELECT value, T900K AS t FROM range(0, 100000) ORDER BY value % 7)",
        "90000000000",
    ),
    // Table functions.
    Case("SELECT sum(length(\"left\")) > 0 FROM kwic('lines', 'says', width => 100000)", "true"),
    Case("SELECT count(*) >= 0 FROM sequence_count('lines', n => 1000)", "true"),
    Case("SELECT count(*) >= 0 FROM collocates('lines', 'says', \"left\" => 1000, \"right\" => 1000)", "true"),
    Case(
        "SELECT sum(length(extract_text('lines', a.doc_id, 0, 9223372036854775807))) > 0 FROM lines a, lines b",
        "true",
    ),
    Case("SELECT sum(cardinality(search_word('lines', a.doc_id, 'line'))) > 0 FROM lines a, lines b", "true"),
    Case("SELECT count(*) FROM lines a, lines b WHERE matches(concat(a.text, b.text), 'line AND nothing')", "0"),
    // Rows of the answer.
    Case("SELECT count(d) FROM (SELECT T900K AS a, concat('x', T900K) AS d FROM range(0, 20000) LIMIT 100)", "100"),
    Case("SELECT cardinality(split_part(T30, ' ', 5) || array_repeat('x', 5))", "6"),
    Case("SELECT sum(length(t)) FROM (SELECT repeat('x', 20000) AS t FROM range(0, 100000))", "2000000000"),
    Case("SELECT length(t) FROM (SELECT concat(T900K, value) AS t FROM range(0, 10000) LIMIT 1)", "900001"),
];

/// Statements that a server refuses, and the last line of their answer in CSV.
const OF_COMMAND: &[Case] = &[
    Case("COPY (SELECT value, concat(T900K, value) AS t FROM range(0, 5000)) TO 'x.csv'", "5000"),
    Case("COPY (SELECT value, concat(repeat('x', 20000), value) AS t FROM range(0, 20000)) TO 'x.parquet'", "20000"),
    Case("CREATE VIEW v AS SELECT T900K AS t FROM range(0, 20000); SELECT sum(length(t)) FROM v", "18000000000"),
    Case("CREATE TABLE t AS SELECT concat(T900K, value) AS t FROM range(0, 5000); SELECT count(*) FROM t", "5000"),
    Case("SELECT cardinality(array_transform(range(0, 20000000), x -> concat('a', x)))", "20000000"),
    Case("SELECT cardinality(array_filter(range(0, 20000000), x -> x % 2 = 0))", "10000000"),
    Case("SELECT cardinality(array_transform(range(0, 3000), x -> repeat('x', 100000)))", "3000"),
    Case("PREPARE p AS SELECT length(repeat($1, $2)); EXECUTE p('ab', 400000000)", "800000000"),
    Case(
        "PREPARE p AS SELECT sum(length(concat($1, T900K, value))) FROM range(0, 10000); EXECUTE p('a')",
        "9000048890",
    ),
];

/// The dialect of functions with lambdas.
const LAMBDAS: &str = "SET datafusion.sql_parser.dialect = 'DuckDB'";

/// Returns the statement with texts and lists in the place of their names.
fn written(sql: &str) -> String {
    sql.replace("T900K", "repeat('ab ', 300000)")
        .replace("T30", "repeat('ab ', 10000000)")
        .replace("R5", "range(0, 5000000)")
}

/// Returns true if an error says which limit holds.
fn names_limit(error: &str) -> bool {
    ["limit", "--timeout", "--statement-memory", "max_output_bytes", "at most"].iter().any(|name| error.contains(name))
}

fn is_whole() -> bool {
    std::env::var("TADOC_LIMIT_STATEMENTS").is_ok_and(|value| value == "all")
}

/// Returns a number of `/proc/PID/status` in MiB.
fn status_mib(server: &Server, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}

/// Starts a server of the corpora of all tests, and of one with two long documents.
fn started() -> Server {
    let folder = corpora();
    for (name, word) in [("one", "ab0 "), ("two", "ab1 ")] {
        folder.write(&format!("long/{name}.txt"), word.repeat(750_000));
    }
    folder.ok(&["ingest", "long", "-o", "long.tadoc"]);
    let limit = format!("{LIMIT_MIB}MiB");
    let timeout = format!("{}s", TIMEOUT.as_secs());
    let arguments = ["long.tadoc", "--memory-limit", &limit, "--timeout", &timeout];
    Server::start_in(folder, &arguments, &[])
}

/// Asks `case`; returns what is wrong with the outcome.
fn faults(server: &Server, case: &Case) -> Vec<String> {
    let &Case(sql, right) = case;
    // What was given up before ends. The system forgets the peak.
    let given_up = Instant::now();
    while status_mib(server, "RssAnon:") > LIMIT_MIB / 2 && given_up.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::write(format!("/proc/{}/clear_refs", server.id()), "5").unwrap();
    let started = Instant::now();
    let answer = server.query(&written(sql));
    let time = started.elapsed();
    let mut faults = Vec::new();
    let outcome = match answer.status {
        200 => {
            let json = answer.json();
            let value = json["rows"][0][0].to_string();
            value.trim_matches('"').replace("null", "").replace(".0", "")
        }
        _ => answer.body.clone(),
    };
    let is_right = match answer.status {
        200 => outcome == right,
        _ => names_limit(&outcome),
    };
    if !is_right {
        faults.push(format!("status {}, {outcome}", answer.status));
    }
    if time > 2 * TIMEOUT + SLACK {
        faults.push(format!("took {time:.1?}"));
    }
    let asked = Instant::now();
    // Memory of what has just ended may not be back yet.
    while server.query("SELECT 1").status == 503 && asked.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
    }
    if asked.elapsed() > SOON {
        faults.push(format!("another client waited {:.1?}", asked.elapsed()));
    }
    while server.metric("tadoc_statements") > 0.5 && asked.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
    }
    let code_mib = status_mib(server, "RssFile:").saturating_sub(32);
    let peak_mib = status_mib(server, "VmHWM:") - code_mib;
    if peak_mib > LIMIT_MIB * 5 / 4 + 64 {
        faults.push(format!("peak {peak_mib} MiB"));
    }
    let begin: String = outcome.chars().take(90).collect();
    println!("{peak_mib:5} MiB {time:6.1?} {sql}: {begin}");
    faults
}

#[test]
fn statements_keep_their_limits() {
    let cases: Vec<&Case> = if is_whole() { FEW.iter().chain(MORE).collect() } else { FEW.iter().collect() };
    let mut server = started();
    let mut wrong = Vec::new();
    for case in cases {
        let faults = faults(&server, case);
        if !faults.is_empty() {
            wrong.push(format!("{}: {}", case.0, faults.join("; ")));
            server = started();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn statements_of_the_command_keep_their_limit() {
    let cases = if is_whole() { OF_COMMAND } else { &OF_COMMAND[..2] };
    let folder = corpora();
    let limit = format!("{LIMIT_MIB}MiB");
    let mut wrong = Vec::new();
    for &Case(sql, right) in cases {
        let script = written(sql);
        let arguments = ["sql", "--quiet", "--format", "csv", "--memory-limit", &limit, "-c", LAMBDAS, "-c", &script];
        let (ran, peak_kib) = folder.run_measured(&arguments);
        let answer = String::from_utf8(ran.stdout).unwrap();
        let peak_mib = peak_kib >> 10;
        let is_right = match ran.status {
            0 => answer.lines().last() == Some(right),
            _ => names_limit(&ran.stderr),
        };
        println!("{peak_mib:5} MiB {sql}: {}{}", answer.trim(), ran.stderr.trim());
        if !is_right || peak_mib > LIMIT_MIB * 5 / 4 + 64 {
            wrong.push(format!("{sql}: peak {peak_mib} MiB, {answer}{}", ran.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
