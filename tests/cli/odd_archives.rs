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
    let is_told =
        |line: &&str| line.starts_with("warning: ") || line.contains("stored as the bytes");
    ran.stderr.lines().filter(is_told).collect()
}

#[test]
fn tar_archives_behind_each_other_are_all_read() {
    let folder = new_folder();
    let archives = [
        tar(&[("a", b"first"), ("b", &[b'b'; 1000])]),
        tar(&[("c", b"third")]),
        tar(&[("d", b"")]),
    ];
    let padded = archives.each_ref().map(|archive| [archive.as_slice(), &[0; 7 * 512]].concat());
    let packed = archives.each_ref().map(|archive| gzip(archive));
    for (name, bytes) in
        [("x.tar", archives.concat()), ("x.tar", padded.concat()), ("x.tgz", packed.concat())]
    {
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
