//! Tests of `tadoc ingest --keep-going`: what is whole is stored as ever, what is damaged is stored up to
//! there, and each damaged input has one warning.

use crate::archives::{tar, zip};
use crate::harness::{Folder, Ran, gzip, new_folder, zstd};

fn ingest(folder: &Folder, arguments: &[&str]) -> Ran {
    let ran = folder.run(&[&["ingest", "--keep-going", "--quiet", "--force", "-o", "c.tadoc"], arguments].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran
}

/// Returns text that compresses badly, so that a half of its stream has about a half of it.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if state >> 61 == 0 { b'\n' } else { b'a' + (state >> 40) as u8 % 26 }
    };
    (0..len).map(next).collect()
}

fn half(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() / 2]
}

#[test]
fn damaged_files_are_stored_up_to_the_damage() {
    let folder = new_folder();
    let text = noise(1 << 20);
    let members: [(&str, &[u8]); 3] = [("1", b"first"), ("2", &text), ("3", b"third")];
    let mut bad_member = zip(&members);
    // The byte lies in the second member, so that its checksum does not match.
    bad_member[100_000] ^= 0x55;
    folder.write("in/a.txt", "whole");
    folder.write("in/b.gz", half(&gzip(&text)));
    folder.write("in/c.zst", half(&zstd(&text)));
    folder.write("in/d.tar.gz", half(&gzip(&tar(&members))));
    folder.write("in/e.zip", bad_member);
    folder.write("in/f.zip", half(&zip(&members)));
    folder.write("in/g.tar", tar(&[("deep.zip", half(&zip(&members))), ("after", b"deep")]));
    folder.write("in/z.txt", "whole too");

    let refused = folder.run(&["ingest", "in", "-o", "c.tadoc"]);
    assert_eq!((refused.status, folder.path().join("c.tadoc").exists()), (1, false));
    let ran = ingest(&folder, &["in"]);
    let of_cut_zips = ["f.zip", "f.zip/2", "g.tar/deep.zip", "g.tar/deep.zip/2"];
    for damaged in [&["b.gz", "c.zst", "d.tar.gz", "e.zip/2"], &of_cut_zips[..]].concat() {
        let warning = format!("warning: in/{damaged}: ");
        let num = ran.stderr.lines().filter(|line| line.starts_with(&warning)).count();
        assert_eq!(num, 1, "{damaged}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.lines().count(), 8, "{}", ran.stderr);
    let listed = folder.ok(&["ls", "c.tadoc"]);
    let paths: Vec<&str> = listed.lines().collect();
    let expected = [
        "a.txt",
        "b.gz",
        "c.zst",
        "d.tar.gz/1",
        "d.tar.gz/2",
        "e.zip/1",
        "e.zip/2",
        "e.zip/3",
        "f.zip/1",
        "f.zip/2",
        "g.tar/deep.zip/1",
        "g.tar/deep.zip/2",
        "g.tar/after",
        "z.txt",
    ];
    assert_eq!(paths, expected);
    for (path, bytes) in [("a.txt", "whole"), ("e.zip/3", "third"), ("g.tar/after", "deep")] {
        assert_eq!(folder.cat("c.tadoc", path), bytes.as_bytes(), "{path}");
    }
    assert_eq!(folder.cat("c.tadoc", "f.zip/1"), b"first");
    for path in ["b.gz", "c.zst", "d.tar.gz/2", "f.zip/2", "g.tar/deep.zip/2"] {
        let stored = folder.cat("c.tadoc", path);
        assert!(stored.len() > 1 << 17 && text.starts_with(&stored), "{path}");
    }
    let lines = ingest(&folder, &["in/b.gz", "in/z.txt", "--documents", "lines", "--timestamp", "auto"]);
    assert!(lines.stderr.contains("in/b.gz: the gzip stream is cut"), "{}", lines.stderr);
    let last = "SELECT path, text FROM d ORDER BY doc_id DESC LIMIT 1";
    assert_eq!(folder.table_rows("c.tadoc", last), ["in/z.txt,whole too"]);
}

#[test]
fn members_of_cut_zip_files_are_stored() {
    let folder = new_folder();
    let text = noise(3000);
    let whole = zip(&[("1", b"first"), ("in/2", &text), ("3", b"third"), ("4", b"")]);
    let all = ["1", "in/2", "3", "4"];
    // The end of the file states the place of the list.
    let place = whole[whole.len() - 6..].first_chunk().unwrap();
    let list = u32::from_le_bytes(*place) as usize;
    // Cuts behind the members, in their list, and in its end.
    for cut in [list, list + 1, list + 100, whole.len() - 1] {
        folder.write("cut.zip", &whole[..cut]);
        let ran = ingest(&folder, &["cut.zip"]);
        let warning = "warning: cut.zip: the zip file is cut or damaged; ";
        assert!(ran.stderr.starts_with(warning), "{cut}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{cut}: {}", ran.stderr);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]).lines().collect::<Vec<_>>(), all, "{cut}");
        assert_eq!(folder.cat("c.tadoc", "in/2"), text, "{cut}");
    }
    ingest(&folder, &["cut.zip", "--glob", "[14]"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "1\n4\n");
    // Any other cut stores the members before it, and what it leaves of the next one.
    for cut in (30..list).step_by(97) {
        folder.write("cut.zip", &whole[..cut]);
        folder.write("whole.txt", "whole");
        ingest(&folder, &["cut.zip", "whole.txt"]);
        let listed = folder.ok(&["ls", "c.tadoc"]);
        let of_zip = listed.strip_suffix("whole.txt\n").unwrap();
        let expected = all.map(|path| format!("cut.zip/{path}\n")).concat();
        assert!(expected.starts_with(of_zip), "{cut}: {listed}");
    }
    // A member whose length stands behind it ends the file.
    let mut streamed = whole[..list].to_vec();
    let second = streamed[4..].windows(4).position(|bytes| bytes == b"PK\x03\x04").unwrap() + 4;
    streamed[second + 6] |= 1 << 3;
    folder.write("cut.zip", streamed);
    ingest(&folder, &["cut.zip"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "1\n");
}

#[test]
fn inputs_that_exceed_a_limit_are_left_out() {
    let folder = new_folder();
    let names: Vec<String> = (0..30).map(|n| format!("in/{n:02}.tar")).collect();
    for name in &names {
        folder.write(name, tar(&[("x.tar", &tar(&[("deep", b"deep")])), ("y", b"flat")]));
    }
    let ran = ingest(&folder, &["in", "--max-depth", "1"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]).lines().count(), 30);
    assert!(ran.stderr.contains("pass a larger --max-depth"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: 10 more inputs with such faults"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 21, "{}", ran.stderr);
}

#[test]
fn lines_that_are_no_objects_are_left_out() {
    let folder = new_folder();
    folder.write("a.jsonl", "{\"t\":\"one\",\"n\":1}\n{\"t\":\n\n[1]\n{\"t\":\"two\",\"n\":2}\n{\"t\":\"cut");
    folder.write("b.jsonl", "{\"t\":\"three\",\"n\":3}\n");
    let ran = ingest(&folder, &["a.jsonl", "b.jsonl", "--documents", "jsonl:t"]);
    assert!(ran.stderr.contains("warning: a.jsonl: line 2: no JSON object"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: 3 rows left out"), "{}", ran.stderr);
    let rows = folder.table_rows("c.tadoc", "SELECT text, n FROM d ORDER BY n");
    assert_eq!(rows, ["one,1", "two,2", "three,3"]);
    let cut = "[{\"t\":\"one\"},\n{\"t\":\"two\"},\n{\"t";
    folder.write("array.json", cut);
    ingest(&folder, &["array.json", "--documents", "jsonl:t"]);
    assert_eq!(folder.rows("SELECT text FROM documents('c.tadoc') ORDER BY doc_id"), ["one", "two"]);
    // So are rows that do not fit, and files without any that does.
    folder.write("missing.jsonl", "{\"t\":\"one\"}\n{\"n\":2}\n{\"t\":\"12345678901234567890\"}\n");
    folder.write("other.jsonl", "{\"u\":1}\n");
    let options = ["--documents", "jsonl:t", "--max-row-size", "24"];
    let ran = ingest(&folder, &[&["missing.jsonl", "other.jsonl", "b.jsonl"], &options[..]].concat());
    assert!(ran.stderr.contains("warning: missing.jsonl: line 3 is larger than 24 bytes"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: other.jsonl: from line 1: there is no field `t`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: 2 rows left out"), "{}", ran.stderr);
    assert_eq!(folder.rows("SELECT text FROM documents('c.tadoc') ORDER BY doc_id"), ["one", "three"]);
}

#[test]
fn rows_of_every_format_are_left_out() {
    let folder = new_folder();
    let texts = || folder.rows("SELECT text FROM documents('c.tadoc') ORDER BY doc_id");
    for (format, ending) in [("PARQUET", "parquet"), ("ARROW", "arrow")] {
        let name = format!("a.{ending}");
        let copy = format!(
            "COPY (SELECT t FROM (VALUES ('one'), (NULL), ('three'), ('longer than eight')) AS v(t)) TO '{name}' \
             STORED AS {format}"
        );
        folder.ok(&["sql", "-q", "-c", &copy]);
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        folder.write("cut", half(&bytes));
        let documents = format!("{ending}:t");
        let ran = ingest(&folder, &["cut", &name, "--documents", &documents, "--max-row-size", "8"]);
        let expected = [
            "warning: cut: ".to_owned(),
            format!("warning: {name}: row 2: `t` is missing or null"),
            "warning: 2 rows left out".to_owned(),
        ];
        let warnings: Vec<&str> = ran.stderr.lines().collect();
        let are_told = expected.iter().zip(&warnings).all(|(expected, warning)| warning.starts_with(expected));
        assert!(warnings.len() == 3 && are_told, "{}", ran.stderr);
        assert_eq!(texts(), ["one", "three"], "{format}");
    }
    let record = |len: usize, body: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://name.invalid/{body}\r\nContent-Length: {len}\r\n\r\n\
             {body}\r\n\r\n"
        )
    };
    let crawl = [record(3, "one"), record(2, "cut"), "WARC/1.0\r\nno type\r\n\r\n".into(), record(99, "end")];
    folder.write("a.warc", crawl.concat());
    let ran = ingest(&folder, &["a.warc", "--documents", "warc"]);
    assert!(ran.stderr.starts_with("warning: a.warc: record 3: expected a line WARC/1.0"), "{}", ran.stderr);
    assert_eq!(
        folder.table_rows("c.tadoc", "SELECT text, type FROM d ORDER BY doc_id LIMIT 2"),
        ["one,resource", "cu,resource"]
    );
    assert_eq!(
        folder.ok(&["ls", "c.tadoc"]),
        "http://name.invalid/one\nhttp://name.invalid/cut\nhttp://name.invalid/end\n"
    );
    let mail = |text: &str| format!("From a@x Mon May  6 07:08:09 2024\nSubject: s\n\n{text}\n\n");
    folder.write("a.mbox", [mail("one"), mail(&"too long ".repeat(20)), mail("three")].concat());
    let options = ["--documents", "mbox", "--html", "text", "--max-row-size", "100"];
    let ran = ingest(&folder, &[&["a.mbox"], &options[..]].concat());
    assert!(ran.stderr.starts_with("warning: a.mbox: message 2 is larger than 100 bytes"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: 1 row left out"), "{}", ran.stderr);
    assert_eq!(folder.table_rows("c.tadoc", "SELECT subject FROM d"), ["s", "s"]);
}

#[test]
fn any_damage_leaves_the_rest_whole() {
    let folder = new_folder();
    let text = noise(3000);
    let members: [(&str, &[u8]); 3] = [("1", b"first"), ("2", &text), ("3", b"")];
    let packed = [gzip(&text), zstd(&text), gzip(&tar(&members)), tar(&members), zip(&members), gzip(&zip(&members))];
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for (format, bytes) in packed.iter().enumerate() {
        for number in 0..40 {
            let mut damaged = bytes.clone();
            for _ in 0..=random(3) {
                let at = random(damaged.len());
                damaged[at] = random(256) as u8;
            }
            if random(3) == 0 {
                damaged.truncate(random(damaged.len()));
            }
            folder.write(&format!("in/{format}-{number:02}"), damaged);
        }
    }
    folder.write("in/z", "whole");
    ingest(&folder, &["in"]);
    assert_eq!(folder.cat("c.tadoc", "z"), b"whole");
    folder.ok(&["verify", "c.tadoc"]);
}
