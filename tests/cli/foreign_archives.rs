//! Tests of archives that were joined, wrapped or written by old programs, and of binary files: all of their
//! bytes are read, or a note says that they are not.

use crate::archives::{tar, zip};
use crate::harness::{Folder, Ran, gzip, new_folder};

fn ingest(folder: &Folder, arguments: &[&str]) -> Ran {
    let ran = folder.run(&[&["ingest", "--force", "-o", "c.tadoc"], arguments].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran
}

/// Returns the warnings and notes, but for the report.
fn told(ran: &Ran) -> Vec<&str> {
    let is_told = |line: &&str| line.starts_with("warning: ") || line.contains("stored as the bytes");
    ran.stderr.lines().filter(is_told).collect()
}

#[test]
fn tar_archives_behind_each_other_are_all_read() {
    let folder = new_folder();
    let archives = [tar(&[("a", b"first"), ("b", &[b'b'; 1000])]), tar(&[("c", b"third")]), tar(&[("d", b"")])];
    let padded = archives.each_ref().map(|archive| [archive.as_slice(), &[0; 7 * 512]].concat());
    let packed = archives.each_ref().map(|archive| gzip(archive));
    for (name, bytes) in [("x.tar", archives.concat()), ("x.tar", padded.concat()), ("x.tgz", packed.concat())] {
        folder.write(name, &bytes);
        let ran = ingest(&folder, &[name]);
        assert_eq!(told(&ran), Vec::<&str>::new());
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), "a\nb\nc\nd\n", "{name}");
        assert_eq!(folder.cat("c.tadoc", "b"), [b'b'; 1000]);
        assert_eq!(folder.cat("c.tadoc", "c"), b"third");
    }
    for rest in [&b"more text"[..], &[b'x'; 3000], &zip(&[("z", b"zip")])] {
        folder.write("x.tar", [&archives[0], rest].concat());
        let ran = ingest(&folder, &["x.tar"]);
        let text = "warning: x.tar: bytes behind the end of the tar archive are left out; ";
        assert!(told(&ran).len() == 1 && told(&ran)[0].starts_with(text), "{}", ran.stderr);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), "a\nb\n");
    }
}

#[test]
fn binary_files_of_all_kinds_are_said() {
    let folder = new_folder();
    let script = [b"#!/bin/sh\n".to_vec(), b"# a line of the script\n".repeat(200)].concat();
    let noise: Vec<u8> = {
        let random = &mut testkit::random::Random(3);
        (0..3000).map(|_| 1 + random.below(255) as u8).collect()
    };
    let utf32: Vec<u8> = "\u{feff}text".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let zlib = [b"x\x9c", &noise[..]].concat();
    for (name, bytes, options) in [
        ("makeself.run", [&script, &gzip(&tar(&[("a", b"text")]))[..]].concat(), &[][..]),
        ("makeself.run", [&script, &noise[..]].concat(), &["--documents", "lines"]),
        ("short.sh", [b"#!/bin/sh\nexit\n", &noise[..]].concat(), &[]),
        ("x.zz", zlib, &[]),
        ("x.br", noise.clone(), &[]),
        ("x.pdf", b"\r\n%PDF-1.4\nwords\n".to_vec(), &[]),
        ("u32.txt", utf32.clone(), &["--charset", "auto"]),
        ("u32.txt", utf32.clone(), &[]),
        ("u32.html", utf32.clone(), &["--html", "text"]),
    ] {
        folder.write(name, &bytes);
        folder.write("outer.tar", tar(&[(name, &bytes)]));
        for input in [name, "outer.tar"] {
            let ran = ingest(&folder, &[&[input], options].concat());
            assert_eq!(told(&ran).len(), 1, "{name}: {}", ran.stderr);
            if options.is_empty() {
                assert!(folder.cat("c.tadoc", name) == bytes, "{name}");
            }
        }
        let ran = ingest(&folder, &["--no-decompress", name]);
        assert_eq!(told(&ran), Vec::<&str>::new(), "{name}");
    }
    for (name, bytes) in [
        ("a.sh", script.clone()),
        ("latin.txt", b"caf\xe9, na\xefve, \x93quoted\x94\n".repeat(50)),
        ("sjis.txt", b"\x93\xfa\x96{\x8c\xea\n".repeat(50)),
        ("hive.txt", b"a\x01b\x02c\n".repeat(50)),
        ("pdf.txt", b"A file begins with\n%PDF-1.4\n".to_vec()),
    ] {
        folder.write(name, &bytes);
        let ran = ingest(&folder, &[name]);
        assert_eq!(told(&ran), Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn zip_files_behind_long_scripts_are_read_anywhere() {
    let folder = new_folder();
    let script = [b"#!/bin/sh\n".to_vec(), b"# padding\n".repeat(300)].concat();
    let packed = [&script[..], &zip(&[("a.txt", b"in zip")])].concat();
    folder.write("s.run.gz", gzip(&packed));
    folder.write("s.tar", tar(&[("s.run", &packed)]));
    for (input, path) in [("s.run.gz", "a.txt"), ("s.tar", "s.run/a.txt")] {
        ingest(&folder, &[input]);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), format!("{path}\n"), "{input}");
        assert_eq!(folder.cat("c.tadoc", path), b"in zip");
    }
}

/// Returns a zip file with the members `a.txt` and `b.txt`. The first has a field with another name, of another
/// time: its sum is not that of the name.
fn zip_with_stale_name() -> Vec<u8> {
    use std::io::{Cursor, Write};
    use zip::write::{ExtendedFileOptions, FileOptions, SimpleFileOptions};

    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let mut options = FileOptions::<ExtendedFileOptions>::default();
    let field: Box<[u8]> = Box::from(&b"\x01\0\0\0\0old"[..]);
    options.add_extra_data(0x7075, field, true).unwrap();
    writer.start_file("a.txt", options).unwrap();
    writer.write_all(b"hello").unwrap();
    writer.start_file("b.txt", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"second").unwrap();
    writer.finish().unwrap().into_inner()
}

#[test]
fn names_of_an_earlier_time_in_zip_files_are_ignored() {
    let folder = new_folder();
    for prefix in [&b""[..], b"#!/bin/sh\n"] {
        folder.write("x.zip", [prefix, &zip_with_stale_name()].concat());
        let ran = ingest(&folder, &["x.zip"]);
        assert_eq!(told(&ran), Vec::<&str>::new());
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), "a.txt\nb.txt\n");
        assert_eq!(folder.cat("c.tadoc", "a.txt"), b"hello");
    }
}

#[test]
fn zip_files_behind_each_other_are_said() {
    let folder = new_folder();
    folder.write("x.zip", [zip(&[("a", b"first")]), zip(&[("b", b"second")])].concat());
    let ran = ingest(&folder, &["x.zip"]);
    assert!(ran.stderr.contains("another zip file stands in front of this one"), "{}", ran.stderr);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "b\n");
}

#[test]
fn members_whose_sum_is_wrong_are_damaged() {
    let folder = new_folder();
    // The fault of a short one is found while its first bytes are looked at.
    let texts: [(&[u8], &str); 2] = [(b"a text of some length that is stored", "a\nb\n"), (b"short", "b\n")];
    for (text, stored) in texts {
        let mut bytes = zip(&[("a", text), ("b", b"whole")]);
        // The sums of the first member, in front of it and in the list.
        for (magic, offset) in [(b"PK\x03\x04", 14), (b"PK\x01\x02", 16)] {
            let place = bytes.windows(4).position(|window| window == magic).unwrap();
            bytes[place + offset] ^= 1;
        }
        folder.write("x.zip", bytes);
        let ran = folder.run(&["ingest", "-o", "d.tadoc", "x.zip"]);
        assert_eq!(ran.status, 1);
        let fault = "x.zip/a: the member of the zip file is cut or damaged";
        assert!(ran.stderr.contains(fault) && ran.stderr.contains("--keep-going"), "{}", ran.stderr);
        let ran = ingest(&folder, &["x.zip", "--keep-going"]);
        assert!(ran.stderr.contains(&format!("warning: {fault}")), "{}", ran.stderr);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), stored);
    }
}

#[test]
fn paths_that_no_document_can_have_are_faults_of_their_members() {
    let folder = new_folder();
    let mut builder = tar::Builder::new(Vec::new());
    for path in ["a", &("p/".repeat(40_000) + "x.txt"), "c"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        builder.append_data(&mut header, path, &b"text"[..]).unwrap();
    }
    folder.write("x.tar", builder.into_inner().unwrap());
    let ran = folder.run(&["ingest", "-o", "c.tadoc", "x.tar"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("has 80005 bytes, and documents have paths of"), "{}", ran.stderr);
    ingest(&folder, &["x.tar", "--keep-going"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "a\nc\n");
}

#[test]
fn members_of_the_same_name_are_counted() {
    let folder = new_folder();
    folder.write("x.tar", tar(&[("a", b"old"), ("b", b"other"), ("a", b"new")]));
    let ran = ingest(&folder, &["x.tar"]);
    let text = "of tar archives with the name of an earlier one (tar -r)";
    assert!(ran.stderr.contains("1 member") && ran.stderr.contains(text), "{}", ran.stderr);
    let restored = folder.run(&["restore", "c.tadoc", "-o", "out"]);
    let told = "; 1 file of several documents each";
    assert!(restored.status == 0 && restored.stderr.contains(told), "{}", restored.stderr);
}

/// Packs files and hard links, which have the name of their member behind `=`.
fn tar_with_links(members: &[&str]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for member in members {
        let (name, text) = member.split_once([':', '=']).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        if member.contains('=') {
            header.set_entry_type(tar::EntryType::Link);
            header.set_size(0);
            builder.append_link(&mut header, name, text).unwrap();
        } else {
            header.set_size(text.len() as u64);
            builder.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
    }
    builder.into_inner().unwrap()
}

#[test]
fn hard_links_have_the_text_of_their_members() {
    let folder = new_folder();
    let long = "n".repeat(150);
    let archive = tar_with_links(&[
        "a:first",
        "b=a",
        "./c=a",
        ".hidden:second",
        "d=.hidden",
        "a:third",
        "e=b",
        "f=a",
        ".g=a",
        "none=gone",
        "late=z",
        "z:last",
        &format!("{long}:long"),
        &format!("h={long}"),
    ]);
    let expected = [("b", "first"), ("c", "first"), ("d", "second"), ("e", "first"), ("f", "third"), ("h", "long")];
    for (name, bytes) in [("x.tar", archive.clone()), ("x.tgz", gzip(&archive))] {
        folder.write(name, bytes);
        let ran = ingest(&folder, &[name]);
        let left_out = "warning: 2 hard links of tar archives left out: ";
        assert!(told(&ran).iter().any(|told| told.starts_with(left_out)), "{}", ran.stderr);
        for (path, text) in expected {
            assert_eq!(folder.cat("c.tadoc", path), text.as_bytes(), "{name}: {path}");
        }
        assert_eq!(folder.rows("SELECT count(*), count(DISTINCT path) FROM 'c.tadoc'"), ["10,9"], "{name}");
    }
    let ran = ingest(&folder, &["x.tar", "--glob", "[de]"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "d\ne\n", "{}", ran.stderr);
    // Such an archive is read once.
    folder.write("outer.tar", tar(&[("x.tar", &archive)]));
    let ran = ingest(&folder, &["outer.tar"]);
    assert!(ran.stderr.contains("warning: 9 hard links of tar archives left out"), "{}", ran.stderr);
    assert_eq!(folder.cat("c.tadoc", "x.tar/z"), b"last");
}
