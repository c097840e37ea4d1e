//! Tests of CSV, Parquet and Arrow IPC: text, path and the other columns.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, StringViewArray};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;

use crate::harness::{Folder, gzip, new_folder};

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
    folder.write("ragged.csv", "a,text\n1,x\n2\n3,y,z\n4,y\n");
    folder.fails(
        &["ingest", "ragged.csv", "--documents", "csv:text", "-o", "c.tadoc"],
        "ragged.csv: no valid CSV: line 4 has 3 cells, but there are 2 columns; pass --keep-going to leave such rows out",
    );
    assert_eq!(folder.names(), ["mail.csv", "ragged.csv"]);
    let ingest = ["ingest", "ragged.csv", "--documents", "csv:text", "-q", "--force", "-o", "c.tadoc"];
    let left_out = |options: &[&str], num_rows: &str| {
        let ran = folder.run(&[&ingest[..], &["--keep-going"], options].concat());
        let expected = format!(
            "warning: ragged.csv: no valid CSV: line 4 has 3 cells, but there are 2 columns\n\
             warning: {num_rows} left out\n"
        );
        assert_eq!((ran.status, ran.stderr), (0, expected));
        folder.table_rows("c.tadoc", "SELECT a, text FROM d ORDER BY a")
    };
    // A row without the cell of the text is a fault, as in JSON.
    assert_eq!(left_out(&[], "2 rows"), ["1,x", "4,y"]);
    assert_eq!(left_out(&["--allow-missing"], "1 row"), ["1,x", "2,", "4,y"]);
    folder.write("ragged.csv", "a,text\n1,\n2\n\x1a");
    folder.fails(
        &ingest,
        "ragged.csv: row 2: `text` is missing or null; pass --allow-missing to store such rows as empty documents",
    );
    folder.write("ragged.csv", "text,a\n,1\nx\r\n\x1a");
    folder.ok(&ingest);
    assert_eq!(folder.table_rows("c.tadoc", "SELECT a, text FROM d ORDER BY doc_id"), ["1,", ",x"]);
}

#[test]
fn csv_may_have_lines_before_its_header() {
    let folder = new_folder();
    let rows = |csv: &str, options: &[&str]| {
        folder.write("a.csv", csv);
        let ingest = ["ingest", "-q", "a.csv", "--documents", "csv:text", "-o", "c.tadoc", "--force"];
        folder.ok(&[&ingest[..], options].concat());
        folder.table_rows("c.tadoc", "SELECT id, text FROM d ORDER BY id")
    };
    let expected = ["1,a", "2,b"];
    for mark in ["", "\u{feff}"] {
        assert_eq!(rows(&format!("{mark}id,text\n1,a\n2,b\n"), &[]), expected);
        assert_eq!(rows(&format!("{mark}sep=;\r\nid;text\r\n1;a\r\n2;b\r\n"), &[]), expected);
        assert_eq!(rows(&format!("{mark}SEP=|\nid;text\n1;a\n2;b\n"), &["--delimiter", ";"]), expected);
        let report = format!("{mark}Report of \"May\n\nid,text\n1,a\n2,b\n");
        assert_eq!(rows(&report, &["--skip-rows", "2"]), expected);
    }
    folder.write("a.csv", "sep=;\nid;text\n1;a\n2;\"b\n;\n");
    folder.fails(
        &["ingest", "a.csv", "--documents", "csv:text", "-o", "d.tadoc"],
        "a.csv: no valid CSV: the quote that is opened on line 4 is not closed to the end; close it, or pass --quote \
         none where quotation marks are text",
    );
    folder.write("a.csv", "\n\nid,text\n1,a,b\n");
    folder.fails(
        &["ingest", "a.csv", "--documents", "csv:text", "--skip-rows", "2", "-o", "d.tadoc"],
        "a.csv: no valid CSV: line 4 has 3 cells, but there are 2 columns; pass --keep-going to leave such rows out",
    );
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
    ingest("a.txt", &["--documents", "csv:text", "--delimiter", ";", "--comment", "#", "--no-columns"]);
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
    let expected = "error: --delimiter, --quote, --no-header, --comment and --skip-rows go with --documents \
                    csv:COLUMN and tsv:COLUMN\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (2, expected));
}

#[test]
fn quotation_marks_of_tsv_are_text() {
    let folder = new_folder();
    let tsv = "id\ttext\n1\t\"Swing it\" said Ann\n2\t\"Hello, he said\n3\tplain\n4\tlast one\"\n5\tend\n";
    folder.write("s.tsv", tsv);
    folder.write("s.txt", tsv);
    folder.write("s.csv", tsv.replace('\t', ";"));
    let rows = |name: &str, options: &[&str]| {
        folder.ok(&[&["ingest", name, "-o", "c.tadoc", "--force"], options].concat());
        folder.table_rows("c.tadoc", "SELECT id, text FROM d ORDER BY id")
    };
    let expected =
        ["1,\"\"\"Swing it\"\" said Ann\"", "2,\"\"\"Hello, he said\"", "3,plain", "4,\"last one\"\"\"", "5,end"];
    assert_eq!(rows("s.tsv", &["--documents", "tsv:text"]), expected);
    assert_eq!(rows("s.tsv", &["--documents", "csv:text"]), expected);
    assert_eq!(rows("s.txt", &["--documents", "csv:text", "--delimiter", "\\t"]), expected);
    let csv = ["--documents", "csv:text", "--delimiter", ";", "--quote"];
    assert_eq!(rows("s.csv", &[&csv[..], &["none"]].concat()), expected);

    folder.write("q.tsv", "id\ttext\n1\t'a\tb'\n");
    assert_eq!(rows("q.tsv", &["--documents", "tsv:text", "--quote", "'"]), ["1,a\tb"]);
    let ran = folder.run(&["ingest", "q.tsv", "--documents", "tsv:text", "-o", "d.tadoc"]);
    let expected = "error: q.tsv: no valid CSV: line 2 has 3 cells, but there are 2 columns; pass --keep-going";
    assert!(ran.status == 1 && ran.stderr.starts_with(expected), "{}", ran.stderr);
    assert!(ran.stderr.contains("--quote"), "{}", ran.stderr);
    folder.write("latin.tsv", b"id\ttext\n1\tx\n2\t\xffx\n".as_slice());
    folder.fails(
        &["ingest", "latin.tsv", "--documents", "tsv:text", "-o", "d.tadoc"],
        "latin.tsv: no valid CSV: line 3 has the byte 0xFF, which no text in UTF-8 has; name its character \
         set with --charset",
    );
}

#[test]
fn odd_quotes_of_csv_are_told() {
    let folder = new_folder();
    folder.write("open.csv", "id,text\n1,\"a\nb\"\n2,\"never closed\n3,x\n4,y\n");
    folder.fails(
        &["ingest", "open.csv", "--documents", "csv:text", "-o", "c.tadoc"],
        "open.csv: no valid CSV: the quote that is opened on line 4 is not closed to the end; close it, or \
         pass --quote none where quotation marks are text",
    );
    folder.write("odd.csv", "id,text\n1,\"a\" b\n2,c\n3,\"d\"e\n");
    let ran = folder.run(&["ingest", "odd.csv", "--documents", "csv:text", "-o", "c.tadoc"]);
    let expected = "note: 2 cells with text behind the closing quote lost the quotes (odd.csv, line 2); where \
                    quotation marks are text, pass --quote none\n";
    assert!(ran.status == 0 && ran.stderr.starts_with(expected), "{}", ran.stderr);
    let command = ["ingest", "odd.csv", "--documents", "csv:text", "-o", "d.tadoc", "--quote"];
    for (options, error) in [
        (["xy"].as_slice(), "expected one ASCII character"),
        (&["'", "--delimiter", "'"], "--quote is the character of --delimiter or --comment"),
    ] {
        let ran = folder.run(&[&command[..], options].concat());
        assert!(ran.status == 2 && ran.stderr.contains(error), "{}", ran.stderr);
    }
}

#[test]
fn cells_of_csv_come_back_as_they_were() {
    let folder = new_folder();
    let csv = "text,version,code,price,ratio,at\n\
               a,1.9,12E4,1.10,0.5,2024-05-06 07:08:09\n\
               b,1.10,34E5,12.50,0.25,2024-05-07 07:08:09\n\
               c,2.0,56E1,3.00,-1.0,2024-05-08 07:08:09\n";
    folder.write("v.csv", csv);
    folder.ok(&["ingest", "v.csv", "--documents", "csv:text", "-o", "c.tadoc"]);
    let sql = "SELECT text, version, code, price, ratio, at FROM d ORDER BY text";
    let expected: Vec<&str> = csv.lines().skip(1).collect();
    assert_eq!(folder.table_rows("c.tadoc", sql), expected);
    let sql = "SELECT sum(price) AS price, sum(ratio) AS ratio FROM d WHERE price < 12.6";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["16.60,-0.25"]);
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
    let rows =
        RecordBatch::try_from_iter_with_nullable([("text", texts, true), ("id", ids, true), ("path", paths, true)]);
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

/// A header that another program wrote says what to pass.
#[test]
fn a_header_of_one_column_names_the_way_out() {
    let folder = new_folder();
    let only = "there is no column `text`; the only column is";
    let charset = "no valid CSV: the first row is no UTF-8; name its character set with --charset (auto for UTF-16 \
                   with a byte order mark)";
    for (name, text, reason) in [
        (
            "a.csv",
            &b"id;text\n1;one\n"[..],
            format!("{only} `id;text`; pass --delimiter ';' if it separates its cells"),
        ),
        ("b.csv", b"id\ttext\n", format!("{only} `id\\ttext`; pass --delimiter '\\t' if tabs separate its cells")),
        ("c.tsv", b"id|text\n1|one\n", format!("{only} `id|text`; pass --delimiter '|' if it separates its cells")),
        ("d.csv", b"# by hand\n", format!("{only} `# by hand`; pass --comment '#' if this line is none of the table")),
        ("e.csv", b"\xff\xfei\0d\0,\0t\0\n\0", charset.to_owned()),
        ("f.csv", b"Gr\xf6\xdfe,text\n1,one\n", charset.to_owned()),
    ] {
        folder.write(name, text);
        let kind = if name.ends_with(".tsv") { "tsv:text" } else { "csv:text" };
        folder.fails(&["ingest", name, "--documents", kind, "-o", "x.tadoc"], &format!("{name}: {reason}"));
    }
    folder.ok(&["ingest", "f.csv", "--documents", "csv:text", "--charset", "windows-1252", "-o", "f.tadoc"]);
    assert_eq!(folder.table_rows("f.tadoc", "SELECT \"Größe\" FROM d"), ["1"]);
}

#[test]
fn rows_of_gsst_columns_are_documents() {
    let folder = new_folder();
    let copy = "COPY (SELECT n AS id, 'p/' || n AS path, 'text of ' || n AS text \
                FROM (SELECT unnest(range(0, 3000)) AS n) ORDER BY n) TO 'a.parquet' \
                STORED AS GSST OPTIONS (gsst_row_group_rows '1100')";
    folder.ok(&["sql", "-q", "-c", copy]);
    folder.ok(&["ingest", "a.parquet", "--documents", "parquet:text", "-o", "c.tadoc"]);
    assert_eq!(folder.cat("c.tadoc", "p/2999"), b"text of 2999");
    assert_eq!(folder.table_rows("c.tadoc", "SELECT sum(id) AS id FROM d"), ["4498500"]);
    folder.fails(
        &["ingest", "a.parquet", "--documents", "parquet:id", "-o", "d.tadoc"],
        "a.parquet: column `id` holds Int64, not text; columns with text: `path`, `text`",
    );
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

fn arrow_rows(first: i32, num_rows: i32) -> RecordBatch {
    let ids = first..first + num_rows;
    let texts: ArrayRef = Arc::new(StringArray::from_iter(
        ids.clone().map(|id| (id != 3).then(|| format!("row {id} says the same words again"))),
    ));
    let paths: ArrayRef = Arc::new(StringViewArray::from_iter_values(ids.clone().map(|id| format!("p/{id}"))));
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(ids.clone()));
    let kinds = ids.map(|id| if id % 2 == 0 { "even" } else { "odd" });
    let kinds: ArrayRef = Arc::new(kinds.collect::<DictionaryArray<Int32Type>>());
    let columns = [("body", texts), ("path", paths), ("n", numbers), ("kind", kinds)];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// Returns the rows 0 to 1,504 as a stream or a file.
fn arrow_bytes(is_file: bool, compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let batches = [arrow_rows(0, 5), arrow_rows(5, 0), arrow_rows(5, 1_500)];
    let schema = batches[0].schema();
    let mut bytes = Vec::new();
    if is_file {
        // The dictionaries of a file may not be replaced.
        let mut writer = FileWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches[..1].iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
    bytes
}

#[test]
fn arrow_streams_and_files_keep_their_columns() {
    let folder = new_folder();
    let command = ["ingest", "x.arrow", "--documents", "arrow:body", "-o", "c.tadoc", "--force"];
    let command = [&command[..], &["--allow-missing"]].concat();
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for (is_file, num_rows) in [(false, 1_505), (true, 5)] {
            let bytes = arrow_bytes(is_file, compression);
            for bytes in [bytes.clone(), gzip(&bytes)] {
                folder.write("x.arrow", bytes);
                folder.ok(&command);
                let sql = "SELECT count(*) AS rows, sum(n) AS n, count(DISTINCT kind) AS kinds FROM d";
                let sum = num_rows * (num_rows - 1) / 2;
                assert_eq!(folder.table_rows("c.tadoc", sql), [format!("{num_rows},{sum},2")]);
                assert_eq!(folder.cat("c.tadoc", "p/2"), b"row 2 says the same words again");
                assert_eq!(folder.cat("c.tadoc", "p/3"), b"");
                let sql = "SELECT kind FROM d WHERE path = 'p/4'";
                assert_eq!(folder.table_rows("c.tadoc", sql), ["even"]);
            }
        }
    }
    // A pipe, without the end of the stream.
    let bytes = arrow_bytes(false, None);
    let piped = ["ingest", "-", "--documents", "arrow:body", "-o", "p.tadoc", "--no-columns", "--allow-missing"];
    let ran = folder.run_with_input(&piped, &bytes[..bytes.len() - 8]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(folder.cat("p.tadoc", "p/1504"), b"row 1504 says the same words again");
}

/// Runs a command that fails with an error that has `text`.
#[track_caller]
fn refused(folder: &Folder, arguments: &[&str], text: &str) {
    let ran = folder.run(arguments);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(text), "{}", ran.stderr);
}

#[test]
fn damaged_arrow_is_refused_with_a_reason() {
    let folder = new_folder();
    let command = ["ingest", "x.arrow", "-o", "c.tadoc", "--documents"];
    let fails = |bytes: &[u8], options: &[&str], text: &str| {
        folder.write("x.arrow", bytes);
        refused(&folder, &[&command[..], options].concat(), text);
        assert_eq!(folder.names(), ["x.arrow"]);
    };
    let stream = arrow_bytes(false, Some(CompressionType::ZSTD));
    fails(&stream, &["arrow:body"], "x.arrow: row 4: `body` is missing or null; pass --allow-missing");
    fails(&stream, &["arrow:text"], "there is no column `text`; the columns are `body`, `path`, `n`, `kind`");
    fails(&stream, &["arrow:n"], "column `n` holds Int32, not text");
    fails(b"", &["arrow:body"], "x.arrow: no valid Arrow IPC: there is no schema");
    fails(b"FEA1....", &["arrow:body"], "x.arrow: this is version 1 of Feather");
    fails(b"to be or not to be", &["arrow:body"], "x.arrow: cannot read");
    // Every cut and every changed byte gives an error or rows, and no panic.
    let options = ["arrow:body", "--allow-missing", "--force", "--quiet"];
    for at in (0..stream.len()).step_by(stream.len() / 40) {
        folder.write("x.arrow", &stream[..at]);
        let ran = folder.run(&[&command[..], &options].concat());
        assert!(ran.status <= 1 && !ran.stderr.contains("panicked"), "cut at {at}: {}", ran.stderr);
        let mut changed = stream.clone();
        changed[at] ^= 0x55;
        folder.write("x.arrow", changed);
        let ran = folder.run(&[&command[..], &options].concat());
        assert!(ran.status <= 1 && !ran.stderr.contains("panicked"), "byte {at}: {}", ran.stderr);
    }
}

#[test]
fn arrow_expands_within_limits() {
    let folder = new_folder();
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(["a".repeat(80 << 20)]));
    let batch = RecordBatch::try_from_iter([("body", texts)]).unwrap();
    let zstd = Some(CompressionType::ZSTD);
    let options = IpcWriteOptions::default().try_with_compression(zstd).unwrap();
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    folder.write("x.arrow", bytes);
    let command = ["ingest", "x.arrow", "--documents", "arrow:body", "-o", "c.tadoc"];
    refused(&folder, &command, "pass a larger --max-expansion");
    let large = [&command[..], &["--max-expansion", "100000"]].concat();
    refused(&folder, &[&large[..], &["--max-row-size", "1MiB"]].concat(), "x.arrow: row 1 is larger than");
    folder.ok(&large);
    assert_eq!(folder.cat("c.tadoc", "x.arrow").len(), 80 << 20);
}
