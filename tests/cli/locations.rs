//! Tests of every command at every kind of location. A command works, or says in one line why not.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{Folder, Ran, gzip, new_folder};
use testkit::command::{BUCKET, http_server, s3_server};

/// Content of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A corpus file.
    File,
    /// Two corpus files with the same documents.
    Files,
    /// A living corpus with the documents of the file.
    Living,
}

/// Two documents as a file, as a folder of two files, and as a living corpus. Folders do not exist
/// over HTTP.
struct Scene {
    folder: Folder,
    port: u16,
    /// Prefix of this scene in the S3 server.
    prefix: String,
    /// Locations with a corpus.
    locations: Vec<(String, Holds)>,
}

impl Scene {
    fn new() -> Self {
        let folder = new_folder();
        folder.write("in/a.txt", "to be or not to be");
        folder.write("in/b.txt", "that is the question");
        folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
        folder.ok(&["ingest", "in", "-o", "notes", "--append"]);
        folder.write("files/1.tadoc", std::fs::read(folder.join("c.tadoc")).unwrap());
        folder.write("files/sub/2.tadoc", std::fs::read(folder.join("c.tadoc")).unwrap());
        let port = http_server(&folder, &["c.tadoc"]);
        let here = folder.path().canonicalize().unwrap().display().to_string();
        let mut locations = vec![
            ("c.tadoc".to_owned(), Holds::File),
            (format!("file://{here}/c.tadoc"), Holds::File),
            (format!("http://127.0.0.1:{port}/c.tadoc"), Holds::File),
            ("files".to_owned(), Holds::Files),
            (format!("file://{here}/files/"), Holds::Files),
            ("files/**/*.tadoc".to_owned(), Holds::Files),
            ("notes".to_owned(), Holds::Living),
            (format!("file://{here}/notes"), Holds::Living),
        ];
        static NUM_SCENES: AtomicUsize = AtomicUsize::new(0);
        let number = NUM_SCENES.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("s3://{BUCKET}/scenes/{number}");
        let scene = Self { folder, port, prefix, locations: Vec::new() };
        if s3_server().is_some() {
            for name in ["c.tadoc", "files/1.tadoc", "files/sub/2.tadoc"] {
                scene.run(&["ingest", "in", "-o", &scene.at(name)]).ok();
            }
            scene.run(&["ingest", "in", "-o", &scene.at("notes"), "--append"]).ok();
            locations.push((scene.at("c.tadoc"), Holds::File));
            locations.push((scene.at("files"), Holds::Files));
            locations.push((scene.at("files/*.tadoc"), Holds::File));
            locations.push((scene.at("notes"), Holds::Living));
        }
        Self { locations, ..scene }
    }

    /// Returns a URL in the S3 server.
    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(with_store(self.folder.command(arguments)).output().unwrap())
    }
}

/// Returns `command` with the address and the keys of the S3 server, if there is one.
pub fn with_store(mut command: Command) -> Command {
    // Keys are set in any case: without them clients ask an address of the cloud for keys.
    command.envs([
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "anybody"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]);
    if let Some(server) = s3_server() {
        command.env("AWS_ENDPOINT", format!("http://{}", server.address));
    }
    command
}

#[test]
fn commands_that_read_take_every_location() {
    let scene = Scene::new();
    for (location, holds) in &scene.locations {
        let ok = |arguments: &[&str]| {
            let ran = scene.run(arguments);
            assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{location}: {arguments:?}");
            String::from_utf8(ran.stdout).unwrap()
        };
        let num_files = if *holds == Holds::Files { 2 } else { 1 };
        let info = ok(&["info", location]);
        assert_eq!(info.matches("documents        2\n").count(), num_files, "{location}: {info}");
        assert_eq!(info.matches("text bytes       38 bytes").count(), num_files, "{location}: {info}");
        let json = ok(&["info", "--json", location]);
        assert_eq!(json.lines().count(), num_files, "{location}: {json}");
        assert!(json.lines().all(|line| line.contains("\"documents\":2,")), "{location}: {json}");

        assert_eq!(ok(&["cat", location, "--doc-id", "1"]), "that is the question", "{location}");
        let a = "to be or not to be";
        let all = if *holds == Holds::Files { format!("{a}\n{a}\n") } else { a.to_owned() };
        assert_eq!(ok(&["cat", location, "a.txt"]), all, "{location}");

        let found = ok(&["grep", "or [no]*t", location]);
        let line = "a.txt:1:to be or not to be";
        if *holds == Holds::Files {
            // Each line begins with its file.
            let lines: BTreeSet<&str> = found.lines().collect();
            let is_named = |found: &&str| found.strip_suffix(line).is_some_and(|file| file.ends_with(".tadoc/"));
            assert!(lines.len() == num_files && lines.iter().all(is_named), "{location}: {found}");
        } else {
            assert_eq!(found, format!("{line}\n"), "{location}");
        }

        let report = ok(&["verify", location]);
        assert!(report.contains("2 documents") && report.contains(" ok\n"), "{location}: {report}");
        assert_eq!(report.matches("2 documents").count(), num_files, "{location}: {report}");
        assert_eq!(ok(&["verify", "--quiet", location]), "", "{location}");

        let sql = format!("SELECT count(*) AS n FROM documents('{location}') WHERE text LIKE '%be'");
        let rows = ok(&["sql", "-q", "--format", "csv", "-c", &sql]);
        assert_eq!(rows, format!("n\n{num_files}\n"), "{location}");
    }
}

#[test]
fn versions_are_those_of_living_corpora() {
    let scene = Scene::new();
    for (location, holds) in &scene.locations {
        for arguments in [
            ["info", "--version", "2", location].as_slice(),
            &["cat", "--version", "2", location, "a.txt"],
            &["verify", "--version", "2", location],
        ] {
            let ran = scene.run(arguments);
            if *holds == Holds::Living {
                assert_eq!(ran.status, 0, "{arguments:?}: {}", ran.stderr);
                continue;
            }
            let text = String::from_utf8(ran.stdout).unwrap() + &ran.stderr;
            let why = format!("{location} is no living corpus and has no versions; leave out --version\n");
            assert!(ran.status == 1 && text.contains(&why), "{arguments:?}: {text}");
        }
    }
}

#[test]
fn commands_that_change_take_living_corpora_only() {
    let scene = Scene::new();
    for (location, holds) in &scene.locations {
        let edit = ["edit", location, "--append", "0", "!", "--dry-run"];
        for arguments in [
            ["history", location].as_slice(),
            &["optimize", "--dry-run", "--clean-up", "0", location],
            &["clean-up", "--dry-run", location],
            &edit,
        ] {
            let ran = scene.run(arguments);
            if *holds == Holds::Living {
                assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{arguments:?}");
                assert!(!ran.stdout.is_empty(), "{arguments:?}");
                continue;
            }
            assert_eq!((ran.status, ran.stderr.lines().count()), (1, 1), "{arguments:?}");
            assert!(ran.stderr.contains("begins a living corpus"), "{}", ran.stderr);
            assert!(ran.stdout.is_empty(), "{arguments:?}");
        }
    }
    let (location, _) = &scene.locations[7];
    assert!(location.starts_with("file://"), "{location}");
    let told = scene.run(&["edit", location, "--append", "0", "!"]).ok();
    assert!(told.ends_with("/notes: version 3: 1 append\n"), "{told}");
    assert_eq!(scene.folder.cat("notes", "a.txt"), b"to be or not to be!");
}

#[test]
fn what_is_not_there_is_said_in_one_line() {
    let scene = Scene::new();
    let here = scene.folder.path().canonicalize().unwrap().display().to_string();
    let mut locations = vec![
        "no.tadoc".to_owned(),
        "no/such/folder".to_owned(),
        "no/*.tadoc".to_owned(),
        "in".to_owned(),
        format!("file://{here}/no.tadoc"),
        format!("http://127.0.0.1:{}/no.tadoc", scene.port),
        format!("http://127.0.0.1:{}/notes", scene.port),
        format!("http://127.0.0.1:{}/forbidden/c.tadoc", scene.port),
        "ftp://127.0.0.1/c.tadoc".to_owned(),
        "hdfs://host/c.tadoc".to_owned(),
        "s3://".to_owned(),
        "http://127.0.0.1:99999/c.tadoc".to_owned(),
        format!("../{}/no.tadoc", scene.folder.path().file_name().unwrap().to_str().unwrap()),
    ];
    if s3_server().is_some() {
        locations.push(scene.at("no.tadoc"));
        locations.push(scene.at("no/such/prefix"));
        locations.push("s3://no-such-bucket/c.tadoc".to_owned());
    }
    for location in &locations {
        for arguments in [
            ["info", location].as_slice(),
            &["cat", location, "a.txt"],
            &["history", location],
            &["optimize", location],
            &["clean-up", location],
            &["edit", location, "--append", "0", "!"],
            &["sql", "-q", "-c", &format!("SELECT * FROM word_count('{location}')")],
        ] {
            let ran = scene.run(arguments);
            assert_eq!((ran.status, ran.stderr.lines().count()), (1, 1), "{arguments:?}");
            let scheme = location.split("://").next().unwrap();
            let no_store = format!("no object store for {scheme}://…");
            let names_it = ran.stderr.contains(location) || ran.stderr.contains(&no_store);
            assert!(ran.stderr.starts_with("error: ") && names_it, "{arguments:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("damaged"), "{arguments:?}: {}", ran.stderr);
        }
        let ran = scene.run(&["verify", location, "c.tadoc"]);
        let report = String::from_utf8(ran.stdout).unwrap();
        assert!(report.contains("\n  not checked: "), "{location}: {report}");
        assert_eq!(
            ran.stderr, "error: 1 of 2 files could not be read, which says nothing about damage\n",
            "{location}"
        );
    }
}

#[test]
fn names_that_no_file_can_have_are_refused() {
    let folder = new_folder();
    for name in ["a\0b.tadoc", "\0", "file:///a%00b.tadoc", "file://elsewhere/c.tadoc", "file://", "http://"] {
        let sql = format!("SELECT * FROM word_count('{name}')");
        let ran = folder.run_with_input(&["sql", "-q"], sql.as_bytes());
        assert_eq!((ran.status, ran.stderr.lines().count()), (1, 1), "{name:?}: {}", ran.stderr);
        if !name.contains('\0') {
            let ran = folder.run(&["info", name]);
            assert_eq!((ran.status, ran.stderr.lines().count()), (1, 1), "{name:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_from_damage() {
    let scene = Scene::new();
    // The server states the length of the file, but returns none of its bytes.
    let kept = format!("http://127.0.0.1:{}/kept/c.tadoc", scene.port);
    let ran = scene.run(&["verify", &kept]);
    let report = String::from_utf8(ran.stdout).unwrap();
    assert!(report.contains("\n  not checked: ") && report.contains("403"), "{report}");
    assert!(!report.to_lowercase().contains("damaged"), "{report}");

    let mut bytes = std::fs::read(scene.folder.join("c.tadoc")).unwrap();
    // Its dictionary.
    bytes[260] ^= 1;
    scene.folder.write("bad.tadoc", &bytes);
    scene.folder.write("text.tadoc", "no corpus at all");
    let ran = scene.run(&["verify", &kept, "bad.tadoc", "c.tadoc", "text.tadoc"]);
    let report = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(report.matches("  damaged: ").count(), 2, "{report}");
    assert_eq!(
        ran.stderr,
        "error: 2 of 4 files failed the check; restore from a copy or ingest again; 1 of 4 files could \
         not be read, which says nothing about damage\n"
    );
    if s3_server().is_some() {
        let port = http_server(&scene.folder, &["bad.tadoc"]);
        let ran = scene.run(&["verify", &format!("http://127.0.0.1:{port}/bad.tadoc")]);
        let report = String::from_utf8(ran.stdout).unwrap();
        assert!(report.contains("DAMAGED") && report.contains("  damaged: "), "{report}");
    }
}

#[test]
fn a_redirect_within_reach_is_followed() {
    let scene = Scene::new();
    let url = format!("http://127.0.0.1:{}/moved/c.tadoc", scene.port);
    assert_eq!(scene.run(&["cat", &url, "a.txt"]).ok(), "to be or not to be");
    let round = format!("http://127.0.0.1:{}/round/c.tadoc", scene.port);
    let ran = scene.run(&["cat", &round, "a.txt"]);
    assert_eq!((ran.status, ran.stderr.lines().count()), (1, 1), "{}", ran.stderr);
}

#[test]
fn corpora_are_written_to_object_stores() {
    let scene = Scene::new();
    for location in ["http://127.0.0.1:1/c.tadoc", "https://127.0.0.1:1/c.tadoc"] {
        scene.run(&["ingest", "in", "-o", location]).fails(&format!(
            "{location}: corpora are read over HTTP, not written; name a file, or an object \
             such as s3://bucket/notes.tadoc"
        ));
    }
    let here = scene.folder.path().canonicalize().unwrap().display().to_string();
    scene.run(&["ingest", "in", "-o", &format!("file://{here}/d.tadoc")]).ok();
    assert_eq!(scene.folder.cat("d.tadoc", "a.txt"), b"to be or not to be");
    if s3_server().is_none() {
        return;
    }
    let url = scene.at("written/c.tadoc");
    let cat = || scene.run(&["cat", &url, "a.txt"]);
    scene.folder.write("bad.gz", [0x1f, 0x8b, 8, 0, 1, 2, 3]);
    assert_eq!(scene.run(&["ingest", "bad.gz", "-o", &url]).status, 1);
    assert_eq!(cat().status, 1);
    scene.run(&["ingest", "in", "-o", &url]).ok();
    assert_eq!(cat().ok(), "to be or not to be");
    scene.folder.write("new/a.txt", "something else");
    scene.run(&["ingest", "new", "-o", &url]).fails(&format!("{url} exists; choose another name or pass --force"));
    assert_eq!(cat().ok(), "to be or not to be");
    assert_eq!(scene.run(&["ingest", "bad.gz", "-o", &url, "--force"]).status, 1);
    assert_eq!(cat().ok(), "to be or not to be");
    scene.run(&["ingest", "new", "-o", &url, "--force"]).ok();
    assert_eq!(cat().ok(), "something else");
    let prefix = scene.at("written/notes");
    scene.run(&["ingest", "in", "-o", &prefix]).fails(&format!(
        "{prefix}: expected a name that ends with .tadoc, such as {prefix}/notes.tadoc; --append adds \
         to a living corpus"
    ));
}

#[test]
fn documents_come_from_urls() {
    let scene = Scene::new();
    let folder = &scene.folder;
    let here = scene.folder.path().canonicalize().unwrap();
    let here = here.display();
    let paths = |corpus: &str, arguments: &[&str]| {
        let all = [&["ingest", "-q", "--force", "-o", corpus], arguments].concat();
        let ran = scene.run(&all);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{all:?}");
        let sql = format!("SELECT path, md5(content) FROM documents('{corpus}') ORDER BY path");
        let text = scene.run(&["sql", "-q", "--format", "csv", "-c", &sql]).ok();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let local = paths("local.tadoc", &["in"]);
    assert_eq!(paths("d.tadoc", &[&format!("file://{here}/in/")]), local);
    let only_b = paths("d.tadoc", &[&format!("file://{here}/in"), "--glob", "b*"]);
    assert_eq!(only_b, local[1..]);

    folder.write("rows.jsonl", "{\"body\":\"row one\",\"n\":1}\n{\"body\":\"row two\",\"n\":2}\n");
    folder.write("rows.jsonl.gz", gzip(&std::fs::read(folder.join("rows.jsonl")).unwrap()));
    folder.write("rows.json", std::fs::read(folder.join("rows.jsonl")).unwrap());
    let copy = "COPY (SELECT * FROM 'rows.json') TO 'rows.parquet'";
    folder.ok(&["sql", "-q", "-c", copy]);
    let port = http_server(folder, &["rows.jsonl", "rows.jsonl.gz", "rows.parquet"]);
    for (name, kind) in
        [("rows.jsonl", "jsonl:body"), ("rows.jsonl.gz", "jsonl:body"), ("rows.parquet", "parquet:body")]
    {
        let url = format!("http://127.0.0.1:{port}/{name}");
        scene.run(&["ingest", &url, "--documents", kind, "-o", "d.tadoc", "--force"]).ok();
        let rows = folder.table_rows("d.tadoc", "SELECT path, text, n FROM d ORDER BY doc_id");
        assert_eq!(rows, [format!("{url},row one,1"), format!("{url},row two,2")]);
    }
    // Files of stores are requested ahead, and stay in order.
    let names: Vec<String> = (0..40).map(|n| format!("{n:02}.txt")).collect();
    names.iter().for_each(|name| folder.write(name, name.repeat(9)));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let together = http_server(folder, &names);
    let url = |name: &&str| format!("http://127.0.0.1:{together}/together/{name}");
    let urls: Vec<String> = names.iter().map(url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    scene.run(&[&["ingest", "-q", "--force", "-o", "d.tadoc"], &urls[..]].concat()).ok();
    let rows = folder.table_rows("d.tadoc", "SELECT path, text FROM d ORDER BY doc_id");
    let expected = urls.iter().zip(&names).map(|(url, name)| format!("{url},{}", name.repeat(9)));
    assert!(rows.iter().cloned().eq(expected), "{rows:?}");

    let missing = format!("http://127.0.0.1:{port}/no.txt");
    let ran = scene.run(&["ingest", &missing, "-o", "none.tadoc"]);
    assert_eq!((ran.status, ran.stderr.lines().count()), (1, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains(&missing) && !folder.join("none.tadoc").exists());

    if s3_server().is_none() {
        return;
    }
    // A corpus of the corpora: their bytes are documents like any others.
    let at = |name: &str| scene.at(name);
    let names = |rows: Vec<String>| -> Vec<String> {
        rows.iter().map(|row| row.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(paths("d.tadoc", &[&at("files")])), ["1.tadoc", "sub/2.tadoc"]);
    let several = paths("d.tadoc", &[&at("files/"), "in"]);
    assert_eq!(names(several), ["files/1.tadoc", "files/sub/2.tadoc", "in/a.txt", "in/b.txt"]);
    assert_eq!(names(paths("d.tadoc", &[&at("files/**/2*")])), [at("files/sub/2.tadoc")]);
    // The output file is not read as an input.
    let whole = at("files/3.tadoc");
    for _ in 0..2 {
        assert_eq!(names(paths(&whole, &[&at("files")])), ["1.tadoc", "sub/2.tadoc"]);
    }
}
