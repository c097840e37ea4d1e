//! Tests of containers of Azure, with azurite.

use testkit::command::{CONTAINER, azure_server};

use crate::harness::{Folder, Ran, new_folder};

fn run(folder: &Folder, arguments: &[&str]) -> Ran {
    let mut command = folder.command(arguments);
    command.envs(azure_server().unwrap().variables());
    Ran::from(command.output().unwrap())
}

#[test]
fn a_container_holds_files_and_living_corpora() {
    if azure_server().is_none() {
        return;
    }
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    folder.write("in/b.txt", "that is the question");
    let at = |name: &str| format!("az://{CONTAINER}/{name}");
    let ok = |arguments: &[&str]| run(&folder, arguments).ok();
    let rows = |sql: &str| ok(&["sql", "-q", "--format", "csv", "-c", sql]);

    for name in ["files/1.tadoc", "files/sub/2.tadoc"] {
        ok(&["ingest", "in", "-o", &at(name)]);
    }
    let count = |location: &str| rows(&format!("SELECT count FROM word_count('{location}') WHERE word = 'be'"));
    assert_eq!(count(&at("files/1.tadoc")), "count\n2\n");
    assert_eq!(count(&at("files/")), "count\n4\n");
    assert_eq!(count(&at("files/**/2.*")), "count\n2\n");
    assert!(ok(&["ls", &at("files/1.tadoc")]).contains("b.txt"));

    let notes = at("notes");
    ok(&["ingest", "in", "-o", &notes, "--append"]);
    ok(&[
        "sql",
        "-c",
        &format!(
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{notes}'; \
         DELETE FROM d WHERE path = 'a.txt'"
        ),
    ]);
    let sql = format!("SELECT path, words FROM documents('{notes}')");
    assert_eq!(rows(&sql), "path,words\nb.txt,4\n");
    let sql = format!("SELECT count(*) AS n FROM documents('{notes}', version => 2)");
    assert_eq!(rows(&sql), "n\n2\n");
}

#[test]
fn other_files_of_a_container_are_read_and_written() {
    if azure_server().is_none() {
        return;
    }
    let folder = new_folder();
    let csv = format!("az://{CONTAINER}/tables/t.csv");
    let ran = run(
        &folder,
        &[
            "sql",
            "-q",
            "-c",
            &format!(
                "COPY (SELECT 'one ' || v AS text, v AS n FROM generate_series(1, 3) AS s(v)) TO '{csv}' \
         STORED AS CSV OPTIONS ('format.has_header' 'true')"
            ),
        ],
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let folder_url = format!("az://{CONTAINER}/tables/*.csv");
    for location in [&csv, &folder_url] {
        let ingest = ["ingest", location, "--documents", "csv:text", "-o", "c.tadoc", "--force"];
        run(&folder, &ingest).ok();
        let sql = "SELECT text, n FROM d ORDER BY n";
        assert_eq!(folder.table_rows("c.tadoc", sql), ["one 1,1", "one 2,2", "one 3,3"]);
    }
}

/// Stores are told apart by what stands behind an `@`, so an account there is refused.
#[test]
fn accounts_in_urls_are_refused() {
    let folder = new_folder();
    let sql = "SELECT * FROM documents('abfss://pub@account.invalid/c.tadoc')";
    let ran = folder.run(&["sql", "-c", sql]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{}", ran.stderr);
}
