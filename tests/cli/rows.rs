//! Tests of JSON lines, CSV and Parquet: text, path and the other columns.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, StringViewArray};
use datafusion::parquet::arrow::ArrowWriter;

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
    let line = |id: usize| match id < 100 {
        true => format!("{{\"t\":\"{filler}\",\"n\":{id}}}\n"),
        false => format!("{{\"t\":\"{filler}\",\"n\":{id}.5,\"late\":\"yes\"}}\n"),
    };
    folder.write("a.jsonl", (0..200).map(line).collect::<String>());
    folder.ok(&["ingest", "a.jsonl", "--documents", "jsonl:t", "-o", "c.tadoc"]);
    let sql = "SELECT sum(n) AS n, count(late) AS late FROM d";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["19950.0,100"]);
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
    fails(
        "[{\"t\":\"a\"}",
        &["jsonl:t"],
        "a.jsonl: cannot read: expected `]` at the end of the array",
    );
    folder.write("a.jsonl", "{\"t\":\"a\"}\n{\"t\":\"b\"\n");
    let ran = folder.run(&["ingest", "a.jsonl", "-o", "c.tadoc", "--documents", "jsonl:t"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with("error: a.jsonl: line 2: no JSON object: "), "{}", ran.stderr);

    folder.write("a.jsonl", "{\"t\":\"a\",\"x\":{}}\n{\"t\":\"b\",\"x\":1}\n");
    let ran = folder.run(&["ingest", "a.jsonl", "-o", "c.tadoc", "--documents", "jsonl:t"]);
    let start = "error: a.jsonl: line 2: a field has another shape than in the lines before it";
    assert!(ran.stderr.starts_with(start), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("pass --no-columns to keep the text only\n"), "{}", ran.stderr);

    folder.write("a.jsonl", "{\"t\":\"a\",\"x\":1}\n");
    folder.write("b.jsonl", "{\"t\":\"b\",\"x\":[1]}\n");
    let inputs = ["ingest", "a.jsonl", "b.jsonl", "-o", "c.tadoc", "--documents", "jsonl:t"];
    let ran = folder.run(&inputs);
    let expected = "column `x` is Int64 first and List(Int64) later (a.jsonl, then b.jsonl); pass \
                    --no-columns to keep the text only";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn elements_of_an_array_are_rows() {
    let folder = new_folder();
    folder.write(
        "a.json",
        "\u{feff}[ {\"t\": \"one, two]\",\n \"n\": 1},\n\n {\"t\": \"b\\n\", \"n\": [2]} ]\n",
    );
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

const MAIL: &str = "path,when,from,text,size\n\
    m/1,2024-05-06,ann,\"hello, you\nsecond line\",12\n\
    m/2,2024-05-07,bob,,7\n\
    ,2024-05-08,\"\"\"c\"\"\",short,0\n";

#[test]
fn csv_columns_get_the_types_their_values_allow() {
    let folder = new_folder();
    folder.write("mail.csv", MAIL);
    let ran = folder.run(&["ingest", "mail.csv", "--documents", "csv:text", "-o", "c.tadoc"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(folder.cat("c.tadoc", "m/1"), b"hello, you\nsecond line");
    assert_eq!(folder.cat("c.tadoc", "m/2"), b"");
    assert_eq!(folder.cat("c.tadoc", "mail.csv"), b"short");
    let sql = "SELECT \"from\", date_part('day', \"when\") AS day, size + 1 AS size \
               FROM d ORDER BY size";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["\"\"\"c\"\"\",8,1", "bob,7,8", "ann,6,13"]);
}

#[test]
fn names_that_are_taken_are_changed_and_said() {
    let folder = new_folder();
    folder.write("a.tsv", "body\ttext\tbytes\nhello\tx\t9\n");
    let ran = folder.run(&["ingest", "a.tsv", "--documents", "csv:body", "-o", "c.tadoc"]);
    let notes: Vec<&str> = ran.stderr.lines().take(2).collect();
    assert_eq!(
        notes,
        [
            "note: column `text` is stored as `text_1`, as the name is taken",
            "note: column `bytes` is stored as `bytes_1`, as the name is taken",
        ]
    );
    let sql = "SELECT text, text_1, bytes, bytes_1 FROM d";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["hello,x,5,9"]);
}

#[test]
fn csv_that_does_not_fit_names_the_line() {
    let folder = new_folder();
    folder.write("mail.csv", MAIL);
    folder.fails(
        &["ingest", "mail.csv", "--documents", "csv:body", "-o", "c.tadoc"],
        "mail.csv: there is no column `body`; the columns are `path`, `when`, `from`, `text`, `size`",
    );
    folder.write("ragged.csv", "a,text\n1,x\n2\n");
    folder.fails(
        &["ingest", "ragged.csv", "--documents", "csv:text", "-o", "c.tadoc"],
        "ragged.csv: no valid CSV: incorrect number of fields for line 3, expected 2 got 1",
    );
    assert_eq!(folder.names(), ["mail.csv", "ragged.csv"]);
}

#[test]
fn csv_comes_in_dialects() {
    let folder = new_folder();
    let ingest = |name: &str, options: &[&str]| {
        folder.ok(&[&["ingest", name, "-o", "c.tadoc", "--force"], options].concat());
    };
    folder.write("a.txt", "# made by \"x\nid;text\n# more\n7;\"a;b\"\n8;c\n");
    ingest("a.txt", &["--documents", "csv:text", "--delimiter", ";", "--comment", "#"]);
    let sql = "SELECT id, text FROM d ORDER BY id";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["7,a;b", "8,c"]);
    ingest(
        "a.txt",
        &["--documents", "csv:text", "--delimiter", ";", "--comment", "#", "--no-columns"],
    );
    assert_eq!(folder.cat("c.tadoc", "a.txt"), b"a;b\nc\n");

    folder.write("b.txt", "7\ta,b\n8\tc\n");
    ingest("b.txt", &["--documents", "tsv:column_2", "--no-header"]);
    let sql = "SELECT column_1 AS id, text FROM d ORDER BY id";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["7,\"a,b\"", "8,c"]);
    ingest("b.txt", &["--documents", "csv:column_2", "--no-header", "--delimiter", "\\t"]);
    assert_eq!(folder.table_rows("c.tadoc", sql), ["7,\"a,b\"", "8,c"]);
    // SQL has the same options.
    let table = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'a.txt' OPTIONS \
                 ('format.delimiter' ';', 'format.comment' '#', 'format.has_header' 'true')";
    let sql = "SELECT id, text FROM t ORDER BY id";
    let rows = folder.ok(&["sql", "--quiet", "--format", "csv", "-c", table, "-c", sql]);
    assert_eq!(rows, "id,text\n7,a;b\n8,c\n");

    folder.fails(
        &["ingest", "b.txt", "-o", "d.tadoc", "--documents", "tsv:text"],
        "b.txt: there is no column `text`; the columns are `7`, `a,b`",
    );
    let ran = folder.run(&["ingest", "b.txt", "-o", "d.tadoc", "--no-header"]);
    let expected = "error: --delimiter, --no-header and --comment go with --documents csv:COLUMN and \
                    tsv:COLUMN\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (2, expected));
}

const HTTP: &str = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n\
    #unset_field\t-\n#path\thttp\n#open\t2024-05-06-07-08-09\n\
    #fields\tts\tuid\turi\tcode\tlong\tok\tnote\n\
    #types\ttime\tstring\tstring\tcount\tinterval\tbool\tstring\n\
    1714979289.096535\tC1\t/\"a\\x09\t200\t0.25\tT\t(empty)\n\
    1714979290.000000\t007\t-\t-\t-\tF\t-\n\
    #close\t2024-05-06-08-00-00\n";

#[test]
fn logs_of_zeek_have_names_and_types() {
    let folder = new_folder();
    folder.write("http.log", HTTP);
    for kind in ["csv:uri", "tsv:uri"] {
        folder.ok(&["ingest", "http.log", "--documents", kind, "-o", "c.tadoc", "--force"]);
        let sql = "SELECT ts, uid, text, code + 1 AS code, long, ok, note IS NULL AS n FROM d ORDER BY ts";
        assert_eq!(
            folder.table_rows("c.tadoc", sql),
            [
                "2024-05-06T07:08:09.096535Z,C1,\"/\"\"a\\x09\",201,0.25,true,false",
                "2024-05-06T07:08:10Z,007,,,,false,true",
            ]
        );
    }
    let times = ["--timestamp", "ts", "--no-columns", "--force"];
    let command = ["ingest", "http.log", "--documents", "tsv:uri", "-o", "c.tadoc"];
    folder.ok(&[command.as_slice(), &times].concat());
    let sql = "SELECT count(ts) AS n FROM d WHERE ts > '2024-05-06T07:08:09.5Z'";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["1"]);
    folder.write("bad.log", HTTP.replace("\t200\t", "\tmany\t"));
    let ran = folder.run(&["ingest", "bad.log", "--documents", "csv:uri", "-o", "d.tadoc"]);
    let start = "error: bad.log: no valid CSV: field `code` of type count: ";
    assert!(ran.status == 1 && ran.stderr.starts_with(start), "{}", ran.stderr);
}

fn write_parquet(folder: &Folder, name: &str) {
    let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("first text"), None]));
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![7, 8]));
    let paths: ArrayRef = Arc::new(StringArray::from(vec!["p/7", "p/8"]));
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("text", texts, true),
        ("id", ids, true),
        ("path", paths, true),
    ]);
    let rows = rows.unwrap();
    let file = File::create(folder.join(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_rows_are_documents() {
    let folder = new_folder();
    write_parquet(&folder, "a.parquet");
    let command = ["ingest", "a.parquet", "--documents", "parquet:text", "-o", "c.tadoc"];
    folder.fails(
        &command,
        "a.parquet: row 2: `text` is missing or null; pass --allow-missing to store such rows as \
         empty documents",
    );
    folder.ok(&[command.as_slice(), &["--allow-missing"]].concat());
    assert_eq!(folder.cat("c.tadoc", "p/7"), b"first text");
    assert_eq!(folder.cat("c.tadoc", "p/8"), b"");
    assert_eq!(folder.table_rows("c.tadoc", "SELECT sum(id) AS id FROM d"), ["15"]);

    let bytes = std::fs::read(folder.join("a.parquet")).unwrap();
    let piped = ["ingest", "-", "--documents", "parquet:path", "--no-columns", "-o", "d.tadoc"];
    let ran = folder.run_with_input(&piped, &bytes);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(folder.cat("d.tadoc", "stdin"), b"p/7\np/8\n");
}

#[test]
fn parquet_that_does_not_fit_is_named() {
    let folder = new_folder();
    write_parquet(&folder, "a.parquet");
    folder.fails(
        &["ingest", "a.parquet", "--documents", "parquet:id", "-o", "c.tadoc"],
        "a.parquet: column `id` holds Int32, not text; columns with text: `text`, `path`",
    );
    folder.write("b.parquet", "no parquet at all");
    let ran = folder.run(&["ingest", "b.parquet", "--documents", "parquet:x", "-o", "c.tadoc"]);
    assert!(ran.stderr.starts_with("error: b.parquet: no valid Parquet: "), "{}", ran.stderr);
    assert_eq!(folder.names(), ["a.parquet", "b.parquet"]);
}
