//! Tests of JSON: rows from objects, their columns, and what is odd in them.

use crate::harness::{Folder, gzip, new_folder};

const TICKETS: &str = r#"{"body":"printer is on fire","id":1,"path":"t/1","tags":["hw","urgent"]}

{"body":"cannot log in","id":2,"path":"t/2","score":0.5}
{"body":"grüße \"quoted\"\n","id":3,"tags":[]}
"#;

#[test]
fn json_lines_keep_their_fields() {
    let folder = new_folder();
    folder.write("tickets.jsonl", TICKETS);
    folder.ok(&["ingest", "tickets.jsonl", "--documents", "jsonl:body", "-o", "c.tadoc"]);
    assert_eq!(folder.cat("c.tadoc", "t/1"), b"printer is on fire");
    assert_eq!(folder.cat("c.tadoc", "tickets.jsonl"), "grüße \"quoted\"\n".as_bytes());
    let sql = "SELECT path, id, score, tags[1] AS tag FROM d ORDER BY id";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["t/1,1,,hw", "t/2,2,0.5,", "tickets.jsonl,3,,"]);
}

#[test]
fn json_lines_may_be_piped_and_compressed() {
    let folder = new_folder();
    let ran = folder.run_with_input(
        &["ingest", "-", "--documents", "jsonl:body", "--no-columns", "-o", "c.tadoc"],
        &gzip(TICKETS.as_bytes()),
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(folder.cat("c.tadoc", "t/2"), b"cannot log in");
    assert!(folder.ok(&["info", "c.tadoc"]).contains("columns bytes    0 bytes\n"));
}

#[test]
fn json_types_of_many_chunks_are_joined() {
    let folder = new_folder();
    let filler = "x".repeat(1 << 16);
    let line = |id: usize| {
        if id < 100 {
            format!("{{\"t\":\"{filler}\",\"n\":{id}}}\n")
        } else {
            format!("{{\"t\":\"{filler}\",\"n\":{id}.5,\"late\":\"yes\"}}\n")
        }
    };
    folder.write("a.jsonl", (0..200).map(line).collect::<String>());
    folder.ok(&["ingest", "a.jsonl", "--documents", "jsonl:t", "-o", "c.tadoc"]);
    let sql = "SELECT sum(n) AS n, count(late) AS late FROM d";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["19950.0,100"]);
}

#[test]
fn json_numbers_keep_their_digits() {
    let folder = new_folder();
    let lines = r#"{"t":"a","big":1,"float":0.25,"mixed":9007199254740993}
{"t":"b 12345678901234567890","big":12345678901234567890,"float":0.1234567890123456789,"mixed":0.5}
{"t":"c","big":-123456789012345678901234567890123456789012345,"float":1152921504606846976}
"#;
    folder.write("a.jsonl", lines);
    folder.ok(&["ingest", "a.jsonl", "--documents", "jsonl:t", "-o", "c.tadoc"]);
    let sql = "SELECT big, float + 0 AS float, mixed FROM d ORDER BY doc_id";
    assert_eq!(
        folder.table_rows("c.tadoc", sql),
        [
            "1,0.25,9007199254740993",
            "12345678901234567890,0.12345678901234568,0.5",
            "-123456789012345678901234567890123456789012345,1.152921504606847e18,"
        ]
    );
}

/// A number beside texts is the text that the file has, wherever the first text comes; also in structures and lists.
#[test]
fn json_numbers_beside_texts_come_back_as_they_were() {
    let folder = new_folder();
    let numbers = "{\"t\":\"a\",\"v\":1.10,\"o\":{\"n\":1e5},\"l\":[2.50,1],\"f\":1.10,\"i\":9007199254740993}\n\
                   {\"t\":\"b\",\"v\":3,\"o\":{\"n\":9007199254740993},\"l\":[],\"f\":2.5,\"i\":1}\n";
    let texts = "{\"t\":\"c\",\"v\":\"x\",\"o\":{\"n\":\"y\"},\"l\":[\"z\",7.0],\"f\":12.50,\"i\":0.5}\n\
                 {\"t\":\"d\",\"v\":1.10,\"o\":{\"n\":1e5},\"l\":[2.50,1],\"f\":1e2,\"i\":2.0}\n";
    // More than one chunk lies between.
    let filler = format!("{{\"t\":\"{}\"}}\n", "word ".repeat(1 << 20));
    let sql =
        "SELECT v, o['n'] AS n, array_to_string(l, ' ') AS l, f + 0 AS f, i FROM d WHERE i IS NOT NULL ORDER BY text";
    let rows = |name: &str| folder.table_rows(name, sql);
    let ingest = |paths: &[&str], name: &str| {
        folder.ok(&[&["ingest", "-q", "--documents", "jsonl:t", "-o", name], paths].concat());
    };
    let expected = [
        "1.10,1e5,2.50 1,1.1,9007199254740993",
        "3,9007199254740993,,2.5,1",
        "x,y,z 7.0,12.5,0.5",
        "1.10,1e5,2.50 1,100.0,2.0",
    ];
    folder.write("numbers.jsonl", numbers);
    folder.write("texts.jsonl", texts);
    folder.write("all.jsonl", format!("{numbers}{filler}{texts}"));
    folder.write("again.jsonl", format!("{texts}{filler}{numbers}"));
    ingest(&["numbers.jsonl", "texts.jsonl"], "two.tadoc");
    ingest(&["texts.jsonl", "numbers.jsonl"], "turned.tadoc");
    ingest(&["all.jsonl"], "all.tadoc");
    ingest(&["again.jsonl"], "again.tadoc");
    for name in ["two.tadoc", "turned.tadoc", "all.tadoc", "again.tadoc"] {
        assert_eq!(rows(name), expected, "{name}");
    }
    // Without texts they are numbers, but for whole ones that a float rounds.
    ingest(&["numbers.jsonl"], "numbers.tadoc");
    let sql = "SELECT v * 2 AS v, o['n'] AS n, l[1] * 2 AS l FROM d ORDER BY text";
    assert_eq!(folder.table_rows("numbers.tadoc", sql), ["2.2,1e5,5.0", "6.0,9007199254740993,"]);
    // Times are read from floats as before.
    folder.write("times.jsonl", "{\"t\":\"a\",\"at\":1714979289.50}\n{\"t\":\"b\",\"at\":1714979289}\n");
    let times = ["ingest", "times.jsonl", "--documents", "jsonl:t", "--timestamp", "at", "-q"];
    folder.ok(&[&times[..], &["-o", "times.tadoc"]].concat());
    let sql = "SELECT CAST(ts AS VARCHAR) AS ts FROM d ORDER BY ts";
    assert_eq!(folder.table_rows("times.tadoc", sql), ["2024-05-06T07:08:09.500Z", "2024-05-06T07:08:09Z"]);
}

#[test]
fn json_that_does_not_fit_names_the_line() {
    let folder = new_folder();
    let fails = |lines: &str, options: &[&str], text: &str| {
        folder.write("a.jsonl", lines);
        let command = ["ingest", "a.jsonl", "-o", "c.tadoc", "--documents"];
        folder.fails(&[&command, options].concat(), text);
        assert_eq!(folder.names(), ["a.jsonl"]);
    };
    fails(
        TICKETS,
        &["jsonl:text"],
        "a.jsonl: from line 1: there is no field `text`; the fields are `body`, `id`, `path`, `tags`, \
         `score`",
    );
    fails(
        TICKETS,
        &["jsonl:id"],
        "from line 1: a.jsonl: column `id` holds Int64, not text; columns with text: `body`, `path`",
    );
    fails(
        "{\"t\":\"a\"}\n\n{\"u\":1}\n",
        &["jsonl:t"],
        "a.jsonl: line 3: `t` is missing or null; pass --allow-missing to store such rows as empty \
         documents",
    );
    fails(
        "[[{\"t\":\"a\"}]]",
        &["jsonl:t"],
        "a.jsonl: element 1: expected a JSON object, found an array; `jq -c '.[]'` turns arrays into lines",
    );
    fails(
        "[{\"t\":\"a\"},\n{\"t\":\n7}]",
        &["jsonl:u"],
        "a.jsonl: from element 1: there is no field `u`; the fields are `t`",
    );
    fails("[{\"t\":\"a\"}", &["jsonl:t"], "a.jsonl: cannot read: expected `]` at the end of the array");
    folder.write("a.jsonl", "{\"t\":\"a\"}\n{\"t\":\"b\"\n");
    let ran = folder.run(&["ingest", "a.jsonl", "-o", "c.tadoc", "--documents", "jsonl:t"]);
    assert_eq!(ran.status, 1);
    let expected = "error: a.jsonl: line 2: no JSON object: EOF while parsing an object at column 8; pass \
                    --keep-going to leave it out\n";
    assert_eq!(ran.stderr, expected);

    folder.write("a.jsonl", "{\"t\":\"a\",\"x\":{}}\n{\"t\":\"b\",\"x\":1}\n");
    let ingest = ["ingest", "a.jsonl", "-o", "c.tadoc", "--quiet", "--documents", "jsonl:t"];
    folder.ok(&[&ingest[..], &["--no-columns"]].concat());
    assert_eq!(folder.rows("SELECT text FROM documents('c.tadoc') ORDER BY doc_id"), ["a", "b"]);
}

/// Returns the rows of `sql` in a corpus of `bytes`, read as JSON with the text in `field`.
fn rows_of_json(folder: &Folder, bytes: impl AsRef<[u8]>, field: &str, sql: &str) -> Vec<String> {
    folder.write("a.json", bytes);
    let documents = format!("jsonl:{field}");
    folder.ok(&["ingest", "-q", "a.json", "--documents", &documents, "-o", "c.tadoc", "--force"]);
    folder.table_rows("c.tadoc", sql)
}

#[test]
fn objects_of_json_follow_each_other() {
    let folder = new_folder();
    let sql = "SELECT n, text FROM d ORDER BY n";
    for objects in [
        "{\"t\":\"a\",\"n\":1}{\"t\":\"b\",\"n\":2} {\"t\":\"c\",\"n\":3}",
        "{\n  \"t\": \"a\",\n  \"n\": 1\n}\n{\n  \"t\": \"b\", \"n\": 2\n}\r\n{\"t\":\r\n\"c\",\"n\":3}\r\n",
        "\u{1e}{\"t\":\"a\",\"n\":1}\n\u{1e}{\"t\":\"b\",\"n\":2}\n\u{1e}{\"t\":\"c\",\"n\":3}\n",
        "\u{feff}{\"t\":\"a\",\"n\":1},\n{\"t\":\"b\",\"n\":2},\n{\"t\":\"c\",\"n\":3}\n",
    ] {
        assert_eq!(rows_of_json(&folder, objects, "t", sql), ["1,a", "2,b", "3,c"], "{objects}");
    }
    folder.write("a.json", "{\"t\":\"a\"}\n{\n \"t\": \"b\",\n \"n\" 2}\n");
    folder.fails(
        &["ingest", "a.json", "--documents", "jsonl:t", "-o", "d.tadoc"],
        "a.json: line 2: no JSON object: expected `:` at column 6 of line 4; pass --keep-going to leave it out",
    );
    folder.write("a.json", "{\"t\":\"a\"}\n{\n \"t\": \"bcdefghij\"}\n");
    folder.fails(
        &["ingest", "a.json", "--documents", "jsonl:t", "--max-row-size", "12", "-o", "d.tadoc"],
        "a.json: line 2 is larger than 12 bytes; a row is held in memory as a whole: pass a larger --max-row-size",
    );
}

#[test]
fn odd_values_of_json_lose_no_row() {
    let folder = new_folder();
    let odd = b"{\"t\":\"a\",\"x\":0.5}\n{\"t\":\"b\",\"x\":NaN}\n{\"t\":\"c \\ud83d\",\"x\":-Infinity}\n\
                {\"t\":\"d \xff.\"}\n{\"t\":\"e \\ud83d\\ude00\",\"y\":\"\\ud800\"}\n";
    let sql = "SELECT text, x, y FROM d ORDER BY doc_id";
    let expected = ["a,0.5,", "b,,", "c \u{fffd},,", "d \u{fffd}.,,", "e \u{1f600},,\u{fffd}"];
    assert_eq!(rows_of_json(&folder, odd, "t", sql), expected);
    let ran = folder.run(&["ingest", "a.json", "--documents", "jsonl:t", "-o", "c.tadoc", "--force"]);
    assert!(ran.stderr.contains("note: 3 rows with NaN, Infinity or half a character"), "{}", ran.stderr);
    assert!(ran.stderr.contains("(a.json, line 2)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: 1 file with bytes that mean nothing in utf-8"), "{}", ran.stderr);
    folder.ok(&["ingest", "-q", "a.json", "--documents", "jsonl:t", "--no-columns", "-o", "c.tadoc", "--force"]);
    assert_eq!(folder.cat("c.tadoc", "a.json"), "a\nb\nc \u{fffd}\nd \u{fffd}.\ne \u{1f600}\n".as_bytes());
    // As journald writes what is no text.
    let journal = "{\"t\":\"a\",\"n\":[104]}\n{\"t\":[72,105,255],\"n\":[]}\n{\"t\":[\"x\",{\"y\" : 1}]}\n";
    rows_of_json(&folder, journal, "t", "SELECT 1");
    assert_eq!(folder.cat("c.tadoc", "a.json"), b"a\nHi\xff\n[\"x\",{\"y\" : 1}]\n");
    assert_eq!(rows_of_json(&folder, "{\"t\":[72,105]}", "t", "SELECT text FROM d"), ["Hi"]);
}

#[test]
fn fields_with_several_shapes_are_texts() {
    let folder = new_folder();
    let first = "{\"t\":\"a\",\"x\":{\"y\": [1.10, null]},\"o\":{\"p\":1}}\n";
    let others = "{\"t\":\"b\",\"x\":1.10,\"o\":{\"p\":[2.50]}}\n{\"t\":\"c\",\"x\":\"z\"}\n";
    let sql = "SELECT x, o['p'] AS p FROM d ORDER BY text";
    let expected = ["\"{\"\"y\"\":[1.10,null]}\",1", "1.10,[2.50]", "z,"];
    assert_eq!(rows_of_json(&folder, format!("{first}{others}"), "t", sql), expected);
    // In chunks and files of their own, too.
    let filler = format!("{{\"t\":\"{}\"}}\n", "word ".repeat(1 << 20));
    folder.write("b.jsonl", first);
    folder.write("c.jsonl", format!("{filler}{others}"));
    folder.write("d.jsonl", format!("{others}{filler}{first}"));
    let sql = "SELECT x, o['p'] AS p FROM d WHERE x IS NOT NULL ORDER BY text";
    for inputs in [&["b.jsonl", "c.jsonl"][..], &["d.jsonl"]] {
        let ingest = ["ingest", "-q", "--documents", "jsonl:t", "-o", "c.tadoc", "--force"];
        folder.ok(&[&ingest[..], inputs].concat());
        assert_eq!(folder.table_rows("c.tadoc", sql), expected, "{inputs:?}");
    }
}

#[test]
fn text_and_time_may_stand_inside_objects() {
    let folder = new_folder();
    let rows = "{\"n\":1,\"m\":{\"c\":\"one\",\"role\":\"x\",\"at\":1714979289.5}}\n\
                {\"n\":2,\"m\":{\"c\":[72,105],\"role\":\"y\",\"at\":1714979289}}\n{\"n\":3,\"m.c\":\"no\"}\n";
    folder.write("a.jsonl", rows);
    let ingest = ["ingest", "-q", "a.jsonl", "-o", "c.tadoc", "--force", "--documents"];
    folder.ok(&[&ingest[..], &["jsonl:m.c", "--allow-missing"]].concat());
    assert_eq!(folder.table_rows("c.tadoc", "SELECT n, text FROM d ORDER BY n"), ["1,", "2,", "3,no"]);
    folder.write("a.jsonl", &rows[..rows.find("{\"n\":3").unwrap()]);
    folder.ok(&[&ingest[..], &["jsonl:m.c", "--timestamp", "m.at"]].concat());
    let sql = "SELECT n, text, m['role'] AS role, CAST(ts AS VARCHAR) AS ts FROM d ORDER BY n";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["1,one,x,2024-05-06T07:08:09.500Z", "2,Hi,y,2024-05-06T07:08:09Z"]);
    folder.ok(&[&ingest[..], &["jsonl:m.c", "--no-columns", "--timestamp", "m.at"]].concat());
    assert_eq!(folder.cat("c.tadoc", "a.jsonl"), b"one\nHi\n");
    folder.fails(
        &[&ingest[..], &["jsonl:m.d"]].concat(),
        "a.jsonl: from line 1: there is no field `d` in `m`; the fields there are `at`, `c`, `role`",
    );
    folder.fails(
        &[&ingest[..], &["jsonl:m.at"]].concat(),
        "from line 1: a.jsonl: column `m.at` holds Float64, not text; columns with text: none",
    );
}

#[test]
fn parts_of_docker_are_joined() {
    let folder = new_folder();
    let row = |log: &str, stream: &str, time: u32| {
        format!("{{\"log\":\"{log}\",\"stream\":\"{stream}\",\"time\":\"2024-05-06T07:08:0{time}Z\"}}\n")
    };
    let part = "word ".repeat(1 << 19);
    let rows =
        [row("one ", "stdout", 1), row("err\\n", "stderr", 2), row(&part, "stdout", 3), row("two\\n", "stdout", 4)];
    let sql = "SELECT stream, replace(right(text, 5), chr(10), '|') AS text, length(text) AS n FROM d ORDER BY time";
    let expected = [format!("stdout, two|,{}", part.len() + 8), "stderr,err|,4".to_owned()];
    assert_eq!(rows_of_json(&folder, rows.concat(), "log", sql), expected);
    let open = [row("a", "stdout", 1), row("b", "stdout", 2), "{\"log\":\"c\"}".to_owned()];
    let sql = "SELECT text FROM d ORDER BY doc_id";
    assert_eq!(rows_of_json(&folder, open.concat(), "log", sql), ["ab", "c"]);
}

#[test]
fn elements_of_an_array_are_rows() {
    let folder = new_folder();
    folder.write("a.json", "\u{feff}[ {\"t\": \"one, two]\",\n \"n\": 1},\n\n {\"t\": \"b\\n\", \"n\": [2]} ]\n");
    folder.ok(&["ingest", "a.json", "--documents", "jsonl:t", "--no-columns", "-o", "c.tadoc"]);
    assert_eq!(folder.cat("c.tadoc", "a.json"), b"one, two]\nb\n\n");
}

#[test]
fn rows_without_text_may_be_allowed() {
    let folder = new_folder();
    folder.write("a.jsonl", "{\"t\":\"a\"}\n{\"t\":null}\n{\"u\":1}\n");
    let command = ["ingest", "a.jsonl", "--documents", "jsonl:t", "-o", "c.tadoc"];
    folder.ok(&[command.as_slice(), &["--allow-missing"]].concat());
    assert_eq!(folder.cat("c.tadoc", "a.jsonl"), b"a\n\n\n");
}

#[test]
fn statements_read_json_behind_a_byte_order_mark() {
    let folder = new_folder();
    for (name, rows) in [("a.jsonl", "{\"n\":1}\r\n{\"n\":2}\r\n"), ("a.ndjson", "{\"n\":1}\n{\"n\":2}")] {
        for mark in ["", "\u{feff}"] {
            folder.write(name, format!("{mark}{rows}"));
            assert_eq!(folder.rows(&format!("SELECT n FROM '{name}' ORDER BY n")), ["1", "2"], "{name}");
            let table = format!("CREATE EXTERNAL TABLE t (n DECIMAL(5, 2)) STORED AS JSONL LOCATION '{name}'");
            let sum = folder.ok(&["sql", "-q", "--format", "csv", "-c", &table, "-c", "SELECT sum(n) AS n FROM t"]);
            assert_eq!(sum, "n\n3.00\n", "{name}");
        }
    }
    // Parts of a large file are read at the same time.
    let rows: String = (0..20_000).map(|n| format!("{{\"n\":{n},\"text\":\"{}\"}}\n", "word ".repeat(30))).collect();
    folder.write("b.jsonl", format!("\u{feff}{rows}"));
    assert_eq!(folder.rows("SELECT sum(n), count(*) FROM 'b.jsonl'"), ["199990000,20000"]);
}
