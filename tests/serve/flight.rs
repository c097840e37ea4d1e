//! Flight SQL: queries, parameters and facts about the server.

use std::sync::Arc;

use arrow_flight::sql::{CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTableTypes, CommandGetTables, SqlInfo};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::DataType;

use crate::server::{Client, NUM_LINES, Server, batches, fetch, rows, rows_of};

async fn refusal(client: &mut Client, sql: &str) -> String {
    batches(client, sql).await.unwrap_err()
}

#[tokio::test]
async fn rows_are_those_of_the_command() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    for sql in [
        "SELECT word, count FROM word_count('NOTES') ORDER BY count DESC, word",
        "SELECT path, \"left\", match, \"right\" FROM kwic('NOTES', '\"power loss\"')",
        "SELECT doc_id, path, text, content FROM documents('NOTES') ORDER BY doc_id",
        "SELECT word, doc_count FROM inverted_index('NOTES') ORDER BY word",
        "SELECT path, score FROM rank('NOTES', 'power AND loss', top => 3)",
        "SELECT NULL AS nothing, 1.5 AS x, DATE '2026-11-25' AS day, true AS yes",
        "SELECT * FROM documents('NOTES') WHERE false",
    ] {
        let local = server.folder.rows(&sql.replace("NOTES", "notes.tadoc"));
        let served = rows(&mut client, &sql.replace("NOTES", "notes")).await;
        assert_eq!(served.len(), local.len(), "{sql}");
        // CSV quotes some texts; compare those that it does not.
        for (served, local) in served.iter().zip(&local).filter(|(_, local)| !local.contains('"')) {
            let served = served.replace('|', ",").replace("NULL", "");
            assert_eq!(&served, local, "{sql}");
        }
    }
    let list = "SELECT right_words FROM kwic('notes', 'note', width => 3) WHERE doc_id = 0";
    assert_eq!(rows(&mut client, list).await, ["[0, power, loss]"]);
    let count = rows(&mut client, "SELECT count(*), sum(length(text)) FROM lines").await;
    let lines = server.folder.table_rows("lines.tadoc", "SELECT count(*), sum(length(text)) FROM d");
    assert_eq!(count, [lines[0].replace(',', "|")]);
    let texts = batches(&mut client, "SELECT text FROM lines").await.unwrap();
    assert_eq!(texts.iter().map(RecordBatch::num_rows).sum::<usize>() as u64, NUM_LINES);
    assert_eq!(texts[0].column(0).data_type(), &DataType::Utf8);
}

#[tokio::test]
async fn a_server_only_reads() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    for sql in [
        "CREATE TABLE t AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 'x/' OPTIONS ('tadoc.create' 'true')",
        "DROP TABLE notes",
        "INSERT INTO notes (path, text) VALUES ('a', 'b')",
        "DELETE FROM notes",
        "EXPLAIN ANALYZE DELETE FROM notes",
        "COPY (SELECT 'a' AS path, 'b' AS text) TO 'x.tadoc' STORED AS TADOC",
        "COPY (SELECT 1) TO 'x.csv'",
        "SET datafusion.execution.batch_size = 1",
        "SET tadoc.max_statement_depth = 100000",
        "PREPARE p AS SELECT 1",
        "BEGIN",
    ] {
        let text = refusal(&mut client, sql).await;
        assert!(text.contains("only read") || text.contains("nsupported"), "{sql}: {text}");
        let mut client = server.client().await;
        assert!(client.execute_update(sql.to_owned(), None).await.is_err(), "{sql}");
        assert_ne!(server.query(sql).status, 200, "{sql}");
    }
    assert_eq!(server.folder.names(), ["lines.tadoc", "lines.txt", "notes", "notes.tadoc"]);
    for sql in ["SHOW TABLES", "DESCRIBE notes", "EXPLAIN SELECT * FROM notes"] {
        assert!(!rows(&mut client, sql).await.is_empty(), "{sql}");
    }
    assert_eq!(rows(&mut client, "SELECT count(*) FROM notes").await, ["41"]);
}

/// A change is refused as such, whatever else is wrong with it.
#[tokio::test]
async fn changes_are_refused_before_their_other_faults() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    for sql in [
        "INSERT INTO notes VALUES (1, 2)",
        "INSERT INTO notes (path, text) VALUES ('a')",
        "INSERT INTO nobody VALUES (1)",
        "INSERT INTO notes (path, text) VALUES ($1, $2)",
        "WITH a AS (SELECT 1) INSERT INTO notes SELECT * FROM a",
        "EXPLAIN INSERT INTO notes VALUES (1)",
        "UPDATE nobody SET text = 'b'",
        "UPDATE notes SET nothing = $1",
        "DELETE FROM nobody WHERE x = $1",
        "TRUNCATE TABLE nobody",
        "DROP TABLE nobody",
        "CREATE VIEW v AS SELECT * FROM nobody",
        "CREATE EXTERNAL TABLE t STORED AS NOTHING LOCATION 'x'",
        "COPY (SELECT * FROM nobody) TO 'x.tadoc'",
        "SET tadoc.nothing = 1",
        "RESET tadoc.nothing",
        "ALTER TABLE notes ADD COLUMN x INT",
    ] {
        let text = refusal(&mut client, sql).await;
        assert!(text.contains("this server only reads"), "{sql}: {text}");
        let text = client.prepare(sql.to_owned(), None).await.unwrap_err().to_string();
        assert!(text.contains("this server only reads"), "{sql}: {text}");
        let text = client.execute_update(sql.to_owned(), None).await.unwrap_err().to_string();
        assert!(text.contains("this server only reads"), "{sql}: {text}");
        let refused = server.query(sql);
        assert_eq!(refused.status, 403, "{sql}");
        assert!(refused.json()["error"].as_str().unwrap().contains("this server only reads"));
    }
}

#[tokio::test]
async fn notices_come_with_the_answer() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    let sql = "SELECT path FROM search('notes', 'power or loss')";
    let notice = "the query `power or loss` asks for the word `or`, too;";
    let answer = server.query(sql).json();
    assert!(answer["notices"][0].as_str().unwrap().starts_with(notice), "{answer}");
    assert!(server.query("SELECT 1").json().get("notices").is_none());
    // The client of this crate hides headers, so the service is asked itself.
    let command = arrow_flight::sql::CommandStatementQuery { query: sql.to_owned(), transaction_id: None };
    let command = prost::Message::encode_to_vec(&arrow_flight::sql::ProstMessageExt::as_any(&command));
    let descriptor = arrow_flight::FlightDescriptor::new_cmd(command);
    let info = client.inner_mut().get_flight_info(descriptor).await.unwrap();
    let header = info.metadata().get("tadoc-notice").unwrap().to_str().unwrap();
    assert!(header.starts_with(notice), "{header}");
}

#[tokio::test]
async fn a_server_reads_its_corpora_only() {
    let folder = crate::server::corpora();
    folder.ok(&["ingest", "notes", "-o", "secret.tadoc"]);
    folder.write("secret.csv", "a,b\n1,2\n");
    let server = Server::start_in(folder, &[], &[]);
    let mut client = server.client().await;
    for sql in [
        "SELECT * FROM documents('secret.tadoc')",
        "SELECT * FROM documents('./notes/../secret.tadoc')",
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM read_text('notes/*')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM documents('http://127.0.0.1:1/x.tadoc')",
        "SELECT extract_text('secret.tadoc', 0, 0, 5)",
    ] {
        let text = refusal(&mut client, sql).await;
        assert!(!text.contains("power"), "{sql}: {text}");
    }
    assert_eq!(rows(&mut client, "SELECT count(*) FROM documents('notes.tadoc')").await, ["41"]);
    let server = Server::start_in(crate::server::corpora(), &["--allow", "notes/note00.txt"], &[]);
    let mut client = server.client().await;
    assert_eq!(rows(&mut client, "SELECT count(*) FROM documents('notes')").await, ["41"]);
}

#[tokio::test]
async fn errors_are_those_of_the_command() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    for (sql, part) in [
        ("SELEC 1", "no valid SQL"),
        ("", "there is no statement"),
        ("SELECT 1; SELECT 2", "expected one statement"),
        ("SELECT * FROM nobody", "nobody"),
        ("SELECT * FROM wordcount('notes')", "word_count"),
        ("SELECT * FROM search('notes', '\"open')", "quote"),
        ("SELECT 1/0", "ivide by zero"),
        ("SELECT $1", "$1"),
    ] {
        let text = refusal(&mut client, sql).await;
        assert!(text.contains(part), "{sql}: {text}");
        assert!(!text.contains('\n'), "{text}");
    }
    assert_eq!(rows(&mut client, "SELECT 1").await, ["1"]);
}

#[tokio::test]
async fn parameters_reach_the_arguments_of_functions() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    let texts = |texts: &[&str]| {
        let columns = texts
            .iter()
            .enumerate()
            .map(|(at, text)| (at.to_string(), Arc::new(StringArray::from(vec![*text])) as ArrayRef));
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let count = "SELECT count(*) FROM search('notes', $1) WHERE path <> $2".to_owned();
    let mut prepared = client.prepare(count, None).await.unwrap();
    assert_eq!(prepared.parameter_schema().unwrap().fields().len(), 2);
    for (query, path, expected) in
        [("\"power loss\"", "none", "40"), ("\"power loss\"", "note00.txt", "39"), ("x'y", "z", "0")]
    {
        prepared.set_parameters(texts(&[query, path])).unwrap();
        let info = prepared.execute().await.unwrap();
        let found = rows_of(&fetch(&mut client, info).await.unwrap());
        assert_eq!(found, [expected], "{query} {path}");
    }
    prepared.set_parameters(texts(&["only one"])).unwrap();
    assert!(prepared.execute().await.unwrap_err().to_string().contains("2 values"));
    let two = texts(&["a", "b"]);
    let two = datafusion::arrow::compute::concat_batches(&two.schema(), [&two, &two]).unwrap();
    prepared.set_parameters(two).unwrap();
    assert!(prepared.execute().await.unwrap_err().to_string().contains("one row"));
    prepared.close().await.unwrap();

    let sum = "SELECT doc_id + $1 AS n FROM notes WHERE doc_id = ?".to_owned();
    assert!(client.prepare(sum, None).await.unwrap().dataset_schema().is_ok());
    let typed = "SELECT doc_id FROM notes WHERE doc_id = $1".to_owned();
    let mut typed = client.prepare(typed, None).await.unwrap();
    assert_eq!(typed.parameter_schema().unwrap().field(0).data_type(), &DataType::Int64);
    assert_eq!(typed.dataset_schema().unwrap().field(0).name(), "doc_id");
    let seven: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    typed.set_parameters(RecordBatch::try_from_iter([("1", seven)]).unwrap()).unwrap();
    let info = typed.execute().await.unwrap();
    assert_eq!(rows_of(&fetch(&mut client, info).await.unwrap()), ["7"]);

    let mut plain = client.prepare("SELECT 1 AS one".to_owned(), None).await.unwrap();
    assert_eq!(plain.dataset_schema().unwrap().fields().len(), 1);
    let info = plain.execute().await.unwrap();
    assert_eq!(rows_of(&fetch(&mut client, info).await.unwrap()), ["1"]);
    let written = client.prepare("DROP TABLE notes".to_owned(), None).await;
    assert!(written.unwrap_err().to_string().contains("only reads"));
}

#[tokio::test]
async fn a_corpus_may_have_a_dot_in_its_name() {
    let folder = crate::server::corpora();
    std::fs::copy(folder.join("notes.tadoc"), folder.join("notes.v2.tadoc")).unwrap();
    let server = Server::start_in(folder, &["notes.v2.tadoc"], &[]);
    let mut client = server.client().await;
    let same = "SELECT (SELECT count(*) FROM \"notes.v2\") = (SELECT count(*) FROM notes)";
    assert_eq!(rows(&mut client, same).await, ["true"]);
}

#[tokio::test]
async fn clients_find_catalogs_tables_and_facts() {
    let server = Server::start(&["law=notes.tadoc"]);
    let mut client = server.client().await;
    let info = client.get_catalogs().await.unwrap();
    assert_eq!(rows_of(&fetch(&mut client, info).await.unwrap()), ["datafusion"]);
    let info = client.get_db_schemas(CommandGetDbSchemas::default()).await.unwrap();
    let schemas = rows_of(&fetch(&mut client, info).await.unwrap());
    assert!(schemas.contains(&"datafusion|public".to_owned()), "{schemas:?}");
    let tables = CommandGetTables {
        db_schema_filter_pattern: Some("pub%".to_owned()),
        include_schema: true,
        ..CommandGetTables::default()
    };
    let info = client.get_tables(tables).await.unwrap();
    let tables = fetch(&mut client, info).await.unwrap();
    let names: Vec<String> =
        rows_of(&tables).iter().map(|row| row.split('|').take(4).collect::<Vec<_>>().join("|")).collect();
    let expected = ["law", "lines", "notes"].map(|name| format!("datafusion|public|{name}|TABLE"));
    assert_eq!(names, expected);
    let info = client.get_table_types().await.unwrap();
    assert_eq!(rows_of(&fetch(&mut client, info).await.unwrap()), ["TABLE", "VIEW"]);
    let _ = CommandGetTableTypes {};
    let info = client.get_sql_info(vec![SqlInfo::FlightSqlServerName]).await.unwrap();
    let facts = rows_of(&fetch(&mut client, info).await.unwrap());
    assert!(facts.len() == 1 && facts[0].contains("tadoc"), "{facts:?}");
    let info = client.get_sql_info(vec![]).await.unwrap();
    assert!(fetch(&mut client, info).await.unwrap()[0].num_rows() > 10);
    let info = client.get_xdbc_type_info(Default::default()).await.unwrap();
    assert_eq!(fetch(&mut client, info).await.unwrap()[0].num_rows(), 3);
    let keys = CommandGetPrimaryKeys { table: "notes".to_owned(), ..Default::default() };
    let info = client.get_primary_keys(keys).await.unwrap();
    assert!(rows_of(&fetch(&mut client, info).await.unwrap()).is_empty());
}

#[tokio::test]
async fn long_texts_come_in_pieces() {
    let folder = crate::server::corpora();
    for n in 0..30 {
        folder.write(&format!("large/{n}.txt"), format!("{n} and more. ").repeat(40_000));
    }
    folder.ok(&["ingest", "large", "-o", "large.tadoc"]);
    let server = Server::start_in(folder, &["large.tadoc"], &[]);
    let mut client = server.client().await;
    // The client takes messages of 4 MiB; all texts have 20 MB.
    let texts = batches(&mut client, "SELECT path, text FROM large ORDER BY doc_id").await.unwrap();
    assert!(texts.len() > 4, "{}", texts.len());
    let rows = rows_of(&texts);
    assert_eq!(rows.len(), 30);
    for row in rows {
        let (path, text) = row.split_once('|').unwrap();
        let n = path.rsplit('/').next().unwrap().trim_end_matches(".txt");
        assert_eq!(text, format!("{n} and more. ").repeat(40_000), "{path}");
    }
}
