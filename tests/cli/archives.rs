//! Tests of archives and compressed files as inputs: bytes out are bytes in, and hostile ones give an
//! error that names the way out.

use std::io::{Cursor, Write};

use crate::harness::{Folder, gzip, new_folder, zstd};

/// Packs files as tar.
pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // `append_data` refuses paths such as ../x.
        let name = &mut header.as_mut_bytes()[..100];
        name[..path.len().min(100)].copy_from_slice(&path.as_bytes()[..path.len().min(100)]);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Packs files as zip.
pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    zip_by(zip::CompressionMethod::Deflated, files)
}

fn zip_by(method: zip::CompressionMethod, files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (path, bytes) in files {
        writer.start_file(*path, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn ingest(folder: &Folder, arguments: &[&str]) {
    folder.ok(&[&["ingest", "--quiet", "--force", "-o", "c.tadoc"], arguments].concat());
}

/// Ingests, and expects exit status 1 and an error with `text`.
fn refused(folder: &Folder, arguments: &[&str], text: &str) {
    let ran = folder.run(&[&["ingest", "--force", "-o", "c.tadoc"], arguments].concat());
    assert_eq!(ran.status, 1, "{arguments:?}");
    assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
}

const FILES: [(&str, &[u8]); 4] =
    [("src/main.rs", b"fn main() {}\n"), ("docs/a.md", b"read me"), ("empty", b""), ("bytes", b"\xff\xfe\0\n")];

#[test]
fn every_codec_is_read_through() {
    let folder = new_folder();
    let text = b"the quick brown fox\n".repeat(50_000);
    let twice = |packed: fn(&[u8]) -> Vec<u8>| [packed(&text), packed(b"end")].concat();
    folder.write("in/a.bz2", twice(bzip2));
    folder.write("in/b.xz", twice(xz));
    folder.write("in/c.lz4", twice(lz4));
    folder.write("in/d.bz2", bzip2(b""));
    folder.write("in/e", "BZh9 is how bzip2 begins");
    // Tapes end with zeros.
    folder.write("in/f.gz", [&twice(gzip)[..], &[0; 1000]].concat());
    ingest(&folder, &["in"]);
    for name in ["a.bz2", "b.xz", "c.lz4", "f.gz"] {
        assert!(folder.cat("c.tadoc", name) == [&text[..], b"end"].concat(), "{name}");
    }
    assert_eq!(folder.cat("c.tadoc", "d.bz2"), b"");
    assert_eq!(folder.cat("c.tadoc", "e"), b"BZh9 is how bzip2 begins");
    ingest(&folder, &["in/a.bz2", "--documents", "lines"]);
    assert_eq!(folder.ok(&["ls", "--json", "c.tadoc"]).lines().count(), 50_001);
}

#[test]
fn members_are_documents() {
    let folder = new_folder();
    let packed = [
        ("a.tar", tar(&FILES)),
        ("a.tar.gz", gzip(&tar(&FILES))),
        ("a.tar.zst", zstd(&tar(&FILES))),
        ("a.tar.bz2", bzip2(&tar(&FILES))),
        ("a.tar.xz", xz(&tar(&FILES))),
        ("a.zip", zip(&FILES)),
        ("bzip2.zip", zip_by(zip::CompressionMethod::Bzip2, &FILES)),
        ("zstd.zip", zip_by(zip::CompressionMethod::Zstd, &FILES)),
        ("a.whl", zip(&FILES)),
        ("a.zip.gz", gzip(&zip(&FILES))),
    ];
    for (name, bytes) in &packed {
        folder.write(name, bytes);
        ingest(&folder, &[name]);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), "src/main.rs\ndocs/a.md\nempty\nbytes\n", "{name}");
        for (path, bytes) in FILES {
            assert_eq!(folder.cat("c.tadoc", path), bytes, "{name}");
        }
        let ran = folder.run_with_input(&["ingest", "-q", "-", "-o", "d.tadoc", "--force"], bytes);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{name}");
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), folder.ok(&["ls", "d.tadoc"]), "{name}");
        ingest(&folder, &[name, "--glob", "*.md"]);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), "docs/a.md\n", "{name}");
        ingest(&folder, &[name, "--no-decompress"]);
        assert!(folder.cat("c.tadoc", name) == *bytes, "{name}");
    }
}

#[test]
fn members_stand_behind_the_path_of_their_archive() {
    let folder = new_folder();
    folder.write("in/x/a.zip", zip(&[("one", b"1"), ("two", b"2")]));
    folder.write("in/b.tar", tar(&[("./three", b"3"), (".git/config", b"hidden")]));
    folder.write("in/c.txt", "plain");
    ingest(&folder, &["in"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "b.tar/three\nc.txt\nx/a.zip/one\nx/a.zip/two\n");
    ingest(&folder, &["in/b.tar", "in/x/a.zip"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "in/b.tar/three\nin/x/a.zip/one\nin/x/a.zip/two\n");
    // A name that reads as an escape comes back.
    folder.write("escape.zip", zip(&[("\\xFF", b"literal")]));
    ingest(&folder, &["escape.zip"]);
    folder.ok(&["restore", "c.tadoc", "-o", "out"]);
    assert_eq!(std::fs::read(folder.join("out/\\xFF")).unwrap(), b"literal");
    // A name that occurs twice is two documents.
    folder.write("twice.tar", tar(&[("a", b"1"), ("a", b"2")]));
    ingest(&folder, &["twice.tar"]);
    assert_eq!(folder.cat("c.tadoc", "a"), b"1\n2\n");
}

#[test]
fn members_that_are_left_out_are_counted() {
    let folder = new_folder();
    let mut twice = zip(&[("a/one", b"1"), ("b/one", b"2"), ("c", b"3"), (".d", b"4")]);
    // The writer refuses names that occur twice. They stand before the member and in the list.
    for _ in 0..2 {
        let at = twice.windows(5).position(|bytes| bytes == b"b/one").unwrap();
        twice[at] = b'a';
    }
    folder.write("in/twice.zip", twice);
    folder.write("in/hidden.tar", tar(&[("x", b"5"), (".git/config", b"6"), (".y", b"7")]));
    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc"]);
    let warnings: Vec<&str> = ran.stderr.lines().take_while(|line| line.starts_with("warning: ")).collect();
    let expected = [
        "warning: 3 hidden members of archives left out",
        "warning: 1 member of zip files left out: a later one has the same name",
    ];
    assert_eq!((ran.status, warnings.as_slice()), (0, expected.as_slice()), "{}", ran.stderr);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "hidden.tar/x\ntwice.zip/a/one\ntwice.zip/c\n");
    assert_eq!(folder.cat("c.tadoc", "twice.zip/a/one"), b"2");
    // Members that are not asked for are not counted.
    let ran = folder.run(&["ingest", "in/hidden.tar", "--glob", "x", "--force", "-o", "c.tadoc"]);
    assert!(ran.status == 0 && !ran.stderr.contains("warning"), "{}", ran.stderr);
}

#[test]
fn rows_of_members() {
    let folder = new_folder();
    let files: [(&str, &[u8]); 2] =
        [("a.jsonl", b"{\"body\":\"one\",\"n\":1}\n"), ("b.jsonl", b"{\"body\":\"two\",\"n\":2}\n")];
    folder.write("rows.tar.gz", gzip(&tar(&files)));
    ingest(&folder, &["rows.tar.gz", "--documents", "jsonl:body"]);
    assert_eq!(folder.cat("c.tadoc", "b.jsonl"), b"two");
    folder.write("rows.zip", zip(&[("a.csv", b"body,n\none,1\n"), ("b.csv.gz", &gzip(b"body,n\ntwo,2\n"))]));
    ingest(&folder, &["rows.zip", "--documents", "csv:body"]);
    assert_eq!(folder.cat("c.tadoc", "b.csv.gz"), b"two");
    refused(&folder, &["rows.zip", "--documents", "csv:text"], "rows.zip/a.csv: there is no column `text`");
    // A packed member, and an archive in an archive.
    let inner = zip(&[("deep.txt.gz", &gzip(b"deep"))]);
    folder.write("outer.tar", tar(&[("inner.jar", &inner)]));
    ingest(&folder, &["outer.tar"]);
    assert_eq!(folder.cat("c.tadoc", "inner.jar/deep.txt.gz"), b"deep");
}

/// The decoder of lz4 takes a file that ends between two blocks for whole.
#[test]
fn every_cut_of_lz4_is_noticed() {
    let folder = new_folder();
    let text: Vec<u8> = (0..30_000u32).flat_map(|n| format!("line {}\n", n * 7 % 9973).into_bytes()).collect();
    let frame = |checksum: bool| {
        let info = lz4_flex::frame::FrameInfo::new()
            .block_size(lz4_flex::frame::BlockSize::Max64KB)
            .content_checksum(checksum);
        let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&text).unwrap();
        encoder.finish().unwrap()
    };
    let ingest = ["ingest", "x.lz4", "-q", "--force", "-o", "c.tadoc"];
    for checksum in [false, true] {
        let bytes = frame(checksum);
        // The header, and the places of all blocks: a length before each.
        let mut cuts = vec![7];
        while let Some(len) = bytes.get(cuts[cuts.len() - 1]..).and_then(|rest| rest.first_chunk()) {
            let len = (u32::from_le_bytes(*len) & 0x7fff_ffff) as usize;
            if len == 0 {
                break;
            }
            cuts.push(cuts[cuts.len() - 1] + 4 + len);
        }
        assert!(cuts.len() > 4, "{cuts:?}");
        let near = cuts.iter().flat_map(|&cut| [cut - 1, cut, cut + 1, cut + 3]);
        for cut in near.chain(bytes.len() - 8..bytes.len()).filter(|&cut| cut < bytes.len()) {
            folder.write("x.lz4", &bytes[..cut]);
            let ran = folder.run(&ingest);
            assert_eq!(ran.status, 1, "{cut} of {}: {}", bytes.len(), ran.stderr);
            assert!(ran.stderr.contains("the lz4 stream is cut or damaged"), "{}", ran.stderr);
        }
        folder.write("x.lz4", [bytes.clone(), frame(!checksum)].concat());
        folder.ok(&ingest);
        assert_eq!(folder.cat("c.tadoc", "x.lz4"), text.repeat(2));
    }
}

#[test]
fn damaged_archives_are_refused() {
    let folder = new_folder();
    let text = b"some text that repeats, some text that repeats\n".repeat(2000);
    let files: [(&str, &[u8]); 2] = [("a", &text), ("b", &text)];
    for (name, bytes, at) in [
        ("cut.tar", tar(&files), 150_000),
        ("cut.tar.gz", gzip(&tar(&files)), 500),
        ("cut.zip", zip(&files), 500),
        ("cut.bz2", bzip2(&text), 100),
        ("cut.xz", xz(&text), 100),
        ("cut.lz4", lz4(&text), 500),
    ] {
        folder.write(name, &bytes[..at.min(bytes.len() / 2 + 40)]);
        refused(&folder, &[name], &format!("error: {name}"));
        assert!(!folder.join("c.tadoc").exists());
        // Any other byte gives an error or a corpus, and never anything else.
        for at in (0..bytes.len()).step_by(bytes.len() / 25 + 1) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x55;
            folder.write("flipped", &bytes);
            let ran = folder.run(&["ingest", "flipped", "-q", "--force", "-o", "flipped.tadoc"]);
            assert!(matches!(ran.status, 0 | 1), "{name} at {at}: {}", ran.stderr);
            assert!(ran.stderr.lines().all(|line| line.starts_with("error: ") || line.starts_with("warning: ")));
        }
    }
}

/// A decoder checks the bytes behind the tar archive only if it is read to its end.
#[test]
fn the_end_of_the_stream_around_a_tar_is_checked() {
    let folder = new_folder();
    // So many zeros that decoders pause before the end of the stream.
    let archive = [tar(&[("a", b"first"), ("b", b"second")]), vec![0; 300_000]].concat();
    let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
    zstd.include_checksum(true).unwrap();
    zstd.write_all(&archive).unwrap();
    let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
    let mut lz4 = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    lz4.write_all(&archive).unwrap();
    // Each with a place in its checksum, from the end.
    let packed = [
        ("x.tar.gz", "gzip", gzip(&archive), 8),
        ("x.tar.bz2", "bzip2", bzip2(&archive), 3),
        ("x.tar.xz", "xz", xz(&archive), 12),
        ("x.tar.zst", "zstd", zstd.finish().unwrap(), 1),
        ("x.tar.lz4", "lz4", lz4.finish().unwrap(), 1),
    ];
    for (name, codec, bytes, at) in packed {
        let mut flipped = bytes.clone();
        flipped[bytes.len() - at] ^= 0x55;
        let cuts = [1, 3].map(|len| bytes[..bytes.len() - len].to_vec());
        for damaged in cuts.iter().chain([&flipped]) {
            folder.write(name, damaged);
            let text = format!("{name}: the {codec} stream is cut or damaged (");
            refused(&folder, &[name], &format!("error: {text}"));
            let ran = folder.run(&["ingest", name, "-q", "--keep-going", "--force", "-o", "d.tadoc"]);
            assert_eq!((ran.status, ran.stderr.lines().count()), (0, 1), "{}", ran.stderr);
            assert!(ran.stderr.starts_with(&format!("warning: {text}")), "{}", ran.stderr);
            assert_eq!(folder.ok(&["ls", "d.tadoc"]), "a\nb\n", "{name}");
        }
        folder.write(name, &bytes);
        let ran = folder.run(&["ingest", name, "-q", "--force", "-o", "c.tadoc"]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{name}");
    }
    // Bytes behind the end mark that decode are no damage, and a member that is a tar has a checksum, too.
    folder.write("behind.tar.gz", gzip(&[&archive[..], &[7; 100_000]].concat()));
    ingest(&folder, &["behind.tar.gz"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), "a\nb\n");
    let mut outer = zip(&[("in.tar", &archive)]);
    let list = outer.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    // The checksums in the header of the member and in the list.
    for at in [14, list + 16] {
        outer[at] ^= 0x55;
    }
    folder.write("outer.zip", &outer);
    refused(&folder, &["outer.zip"], "error: outer.zip/in.tar: the tar archive is cut or damaged");
}

/// GNU tar takes such an archive, too.
#[test]
fn a_tar_without_an_end_mark_has_a_warning() {
    let folder = new_folder();
    let whole = tar(&[("a", b"first"), ("b", b"second")]);
    let with_and_without: [&[&str]; 2] = [&[], &["--keep-going"]];
    // Each member has two blocks, and the mark has two.
    for (blocks, members) in [(2, "a\n"), (4, "a\nb\n")] {
        let cut = &whole[..blocks * 512];
        for (name, bytes) in [("x.tar", cut.to_vec()), ("x.tar.gz", gzip(cut))] {
            folder.write(name, bytes);
            for options in with_and_without {
                let ingest = ["ingest", name, "-q", "--force", "-o", "c.tadoc"];
                let ran = folder.run(&[&ingest[..], options].concat());
                let text = format!("warning: {name}: the tar archive has no mark at its end; ");
                assert_eq!((ran.status, ran.stderr.lines().count()), (0, 1), "{}", ran.stderr);
                assert!(ran.stderr.starts_with(&text), "{}", ran.stderr);
                assert_eq!(folder.ok(&["ls", "c.tadoc"]), members, "{name}");
            }
        }
    }
    // One block of the mark is enough.
    folder.write("x.tar", &whole[..5 * 512]);
    let ran = folder.run(&["ingest", "x.tar", "-q", "--force", "-o", "c.tadoc"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
}

#[test]
fn bombs_are_refused() {
    let folder = new_folder();
    let zeros = vec![0; 200 << 20];
    folder.write("bomb.zip", zip(&[("zeros", &zeros)]));
    refused(&folder, &["bomb.zip"], "pass a larger --max-expansion");
    folder.write("bomb.tar.bz2", bzip2(&tar(&[("zeros", &zeros)])));
    refused(&folder, &["bomb.tar.bz2"], "bomb.tar.bz2/zeros: the packed stream gives more than 1000 times its bytes");
    // A member that is not wanted is decompressed, too.
    folder.write("skip.tar.bz2", bzip2(&tar(&[("zeros", &zeros), ("end", b"")])));
    let text = "skip.tar.bz2: the bzip2 stream gives more than 1000 times its bytes";
    refused(&folder, &["skip.tar.bz2", "--glob", "end"], text);
    // Each layer stays within the ratio, and all together exceed the size.
    let mut packed = zip(&[("text", &zeros[..1 << 20])]);
    for _ in 0..3 {
        let members: Vec<(String, &[u8])> = (0..8).map(|i| (format!("{i}.zip"), &packed[..])).collect();
        let members: Vec<(&str, &[u8])> = members.iter().map(|(n, b)| (n.as_str(), *b)).collect();
        packed = zip(&members);
    }
    folder.write("nested.zip", &packed);
    refused(&folder, &["nested.zip", "--max-expanded-size", "100MiB"], "pass a larger --max-expanded-size");
    refused(&folder, &["nested.zip", "--max-depth", "3"], "archives lie more than 3 deep in each other");
    refused(&folder, &["nested.zip", "--max-members", "99"], "archives have more than 99 members");
}

#[test]
fn encrypted_members_are_refused() {
    let folder = new_folder();
    // The flag of encryption, in the header of the member and in the directory at the end.
    let mut bytes = zip(&[("secret", b"text")]);
    bytes[6] |= 1;
    let directory = bytes.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    bytes[directory + 8] |= 1;
    folder.write("secret.zip", &bytes);
    refused(&folder, &["secret.zip"], "the zip file is encrypted; unpack it with its password first");
}

#[test]
fn names_of_members_do_not_leave_the_folder_of_a_restore() {
    let folder = new_folder();
    folder.write("out.tar", tar(&[("../../evil", b"x"), ("/etc/evil", b"y")]));
    ingest(&folder, &["out.tar"]);
    let ran = folder.run(&["restore", "c.tadoc", "-o", "out"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("`../../evil` would lie outside the folder"), "{}", ran.stderr);
    folder.ok(&["restore", "-q", "c.tadoc", "/etc/*", "-o", "out"]);
    assert_eq!(std::fs::read(folder.join("out/etc/evil")).unwrap(), b"y");
}

#[test]
fn many_members() {
    let folder = new_folder();
    let names: Vec<String> = (0..20_000).map(|number| format!("d{}/{number}", number % 100)).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), n.as_bytes())).collect();
    for (name, bytes) in [("many.tar", tar(&files)), ("many.zip", zip(&files))] {
        folder.write(name, bytes);
        ingest(&folder, &[name]);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]).lines().count(), 20_000);
        assert_eq!(folder.cat("c.tadoc", "d99/19999"), b"d99/19999");
    }
}

/// A frame that decoders skip.
fn skippable(first: u8, bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap();
    [&[first, 0x2a, 0x4d, 0x18], &len.to_le_bytes()[..], bytes].concat()
}

#[test]
fn skippable_frames_stand_before_and_between_frames() {
    let folder = new_folder();
    let skips = [skippable(0x50, b"\x01\0\0\0"), skippable(0x5f, &[7; 300_000])].concat();
    let text = b"the quick brown fox\n".repeat(30_000);
    let mut names = Vec::new();
    for (name, pack) in [("zst", zstd as fn(&[u8]) -> Vec<u8>), ("lz4", lz4)] {
        let parts = [&skips[..], &pack(&text), &skips, &pack(b"end"), &skippable(0x5e, b"")];
        let packed = parts.concat();
        let file = format!("x.{name}");
        folder.write(&format!("in/{file}"), &packed);
        folder.write(&format!("in/in-{file}.tar"), tar(&[("a.log", &packed)]));
        names.extend([file.clone(), format!("in-{file}.tar/a.log")]);
        folder.write("cut", &packed[..packed.len() - 9]);
        refused(&folder, &["cut"], "stream is cut or damaged");
    }
    folder.write("in/none.zst", &skips);
    ingest(&folder, &["in"]);
    for name in names {
        assert!(folder.cat("c.tadoc", &name) == [&text[..], b"end"].concat(), "{name}");
    }
    assert_eq!(folder.cat("c.tadoc", "none.zst"), b"");
    // Others than frames behind them, and those that are cut, are bytes. A note says so.
    for bytes in [[&skips[..], b"text"].concat(), skips[..20_000].to_vec(), skips[..6].to_vec()] {
        folder.write("x", &bytes);
        let ran = folder.run(&["ingest", "x", "--force", "-o", "c.tadoc"]);
        assert!(ran.stderr.contains("note: 1 binary file stored"), "{}", ran.stderr);
        assert!(folder.cat("c.tadoc", "x") == bytes);
    }
}

#[test]
fn frames_of_zstd_have_the_dictionary_before_them() {
    let folder = new_folder();
    let samples: Vec<Vec<u8>> =
        (0..500).map(|n| format!("GET /page/{n}/of/{} HTTP/1.1\r\n", n % 7).into_bytes()).collect();
    let dictionary = zstd::dict::from_samples(&samples, 4096).unwrap();
    let pack = |text: &[u8]| {
        let mut encoder = zstd::Encoder::with_dictionary(Vec::new(), 3, &dictionary).unwrap();
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let frames: Vec<u8> = samples.iter().flat_map(|sample| pack(sample)).collect();
    for held in [dictionary.clone(), zstd(&dictionary)] {
        folder.write("x.zst", [skippable(0x5d, &held), frames.clone()].concat());
        ingest(&folder, &["x.zst"]);
        assert!(folder.cat("c.tadoc", "x.zst") == samples.concat());
    }
    folder.write("x.zst", &frames);
    refused(&folder, &["x.zst"], "needs a dictionary that it does not begin with; decompress it");
}

#[test]
fn tar_archives_of_unix_v7_have_no_magic() {
    let folder = new_folder();
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in [("d/", &b""[..]), ("d/a.txt", b"first"), ("b.txt", &[b'b'; 2000])] {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_mode(0o644);
        header.set_uid(1000);
        header.set_gid(1000);
        header.set_mtime(1_700_000_000);
        header.set_size(bytes.len() as u64);
        header.as_mut_bytes()[156] = 0;
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    }
    let packed = builder.into_inner().unwrap();
    for (name, bytes) in [("old.tar", packed.clone()), ("old.tar.gz", gzip(&packed))] {
        folder.write(name, bytes);
        ingest(&folder, &[name]);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), "d/a.txt\nb.txt\n");
        assert_eq!(folder.cat("c.tadoc", "b.txt"), [b'b'; 2000]);
    }
}

#[test]
fn zip_files_behind_programs_are_opened() {
    let folder = new_folder();
    let packed = zip(&FILES);
    let mut with_comment = packed.clone();
    let len = with_comment.len();
    with_comment[len - 2..].copy_from_slice(&300u16.to_le_bytes());
    with_comment.extend([b'c'; 300]);
    let script = b"#!/bin/sh\nexec unzip $0\n".as_slice();
    let program = [b"MZ".as_slice(), &[0x90; 100_000]].concat();
    let cases: [(&str, &[u8], &[u8]); 5] = [
        ("run", script, &packed),
        ("setup.exe", &program, &packed),
        ("elf", b"\x7fELF\x02\x01", &with_comment),
        ("x.zip", b"any text before", &packed),
        ("parts.zip", b"PK00", &packed),
    ];
    for (name, before, packed) in cases {
        let bytes = [before, packed].concat();
        folder.write(name, &bytes);
        folder.write("outer.tar", tar(&[("in.zip", &bytes)]));
        ingest(&folder, &[name]);
        let members = "src/main.rs\ndocs/a.md\nempty\nbytes\n";
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), members, "{name}");
        for (path, bytes) in FILES {
            assert_eq!(folder.cat("c.tadoc", path), bytes, "{name}");
        }
        ingest(&folder, &["outer.tar"]);
        assert_eq!(folder.cat("c.tadoc", "in.zip/docs/a.md"), b"read me", "{name}");
    }
    // Others are bytes, also those with the end of a list and no list.
    let end = &packed[packed.len() - 22..];
    for bytes in [script.to_vec(), [script, end].concat(), [&program[..], b"PK\x05\x06"].concat()] {
        for (name, stored) in [("run", "run"), ("x.zip", "x.zip")] {
            folder.write(name, &bytes);
            folder.write("outer.tar", tar(&[(name, &bytes)]));
            for input in [name, "outer.tar"] {
                ingest(&folder, &[input]);
                assert!(folder.cat("c.tadoc", stored) == bytes, "{name}");
            }
        }
    }
}

#[test]
fn names_in_zip_files_are_utf8_without_the_flag() {
    let folder = new_folder();
    let names = ["Résumé.txt", "東京.txt", "plain.txt"];
    let mut packed = zip(&names.map(|name| (name, name.as_bytes())));
    // The flag is in the header of each member and in the list.
    for (magic, at) in [(b"PK\x03\x04", 7), (b"PK\x01\x02", 9)] {
        let starts: Vec<usize> = (0..packed.len() - 4).filter(|&start| packed[start..].starts_with(magic)).collect();
        assert_eq!(starts.len(), 3);
        starts.iter().for_each(|start| packed[start + at] &= !(1 << 3));
    }
    folder.write("x.zip", &packed);
    ingest(&folder, &["x.zip"]);
    assert_eq!(folder.ok(&["ls", "c.tadoc"]), names.map(|name| format!("{name}\n")).concat());
    // Other bytes of Unix stay, as in tar. The name stands before the member and in the list.
    for _ in 0..2 {
        let at = packed.windows(5).position(|bytes| bytes == b"plain").unwrap();
        packed[at] = 0x82;
    }
    folder.write("x.zip", &packed);
    ingest(&folder, &["x.zip"]);
    assert_eq!(folder.cat("c.tadoc", "\\x82lain.txt"), b"plain.txt");
    // Those of other systems, which the list tells, are in code page 437: 0x82 is é.
    let starts: Vec<usize> =
        (0..packed.len() - 4).filter(|&start| packed[start..].starts_with(b"PK\x01\x02")).collect();
    starts.iter().for_each(|start| packed[start + 5] = 0);
    folder.write("x.zip", &packed);
    ingest(&folder, &["x.zip"]);
    assert_eq!(folder.cat("c.tadoc", "élain.txt"), b"plain.txt");
}

/// A sparse member by pax, with `attributes` and `data`.
fn sparse_tar(attributes: &[(&str, &str)], data: &[u8]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let attributes = attributes.iter().map(|(key, value)| (*key, value.as_bytes()));
    builder.append_pax_extensions(attributes).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, "GNUSparseFile.1/s", data).unwrap();
    header.set_size(3);
    builder.append_data(&mut header, "behind.txt", &b"end"[..]).unwrap();
    builder.into_inner().unwrap()
}

#[test]
fn sparse_members_of_pax_have_their_name_and_holes() {
    let folder = new_folder();
    let expected = [&[0; 1000][..], b"one", &[0; 5000], b"two", &[0; 94]].concat();
    let size = "6100";
    let name = ("GNU.sparse.name", "s.txt");
    let map = |text: &str| {
        let mut map = text.as_bytes().to_vec();
        map.resize(text.len().next_multiple_of(512), 0);
        [&map[..], b"onetwo"].concat()
    };
    let newest = [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), name, ("GNU.sparse.realsize", size)];
    let oldest = [
        ("GNU.sparse.size", size),
        ("GNU.sparse.numblocks", "2"),
        ("GNU.sparse.offset", "1000"),
        ("GNU.sparse.numbytes", "3"),
        ("GNU.sparse.offset", "6003"),
        ("GNU.sparse.numbytes", "3"),
    ];
    let middle = |map| [("GNU.sparse.size", size), name, ("GNU.sparse.map", map)];
    let zeros = "0\n".repeat(600);
    let long = format!("302\n{zeros}1000\n3\n6003\n3\n");
    for (path, bytes) in [
        ("GNUSparseFile.1/s", sparse_tar(&oldest, b"onetwo")),
        ("s.txt", sparse_tar(&middle("1000,3,6003,3"), b"onetwo")),
        ("s.txt", sparse_tar(&newest, &map("3\n1000\n3\n6003\n3\n6100\n0\n"))),
        ("s.txt", sparse_tar(&newest, &map(&long))),
    ] {
        folder.write("x.tar", &bytes);
        ingest(&folder, &["x.tar"]);
        assert_eq!(folder.ok(&["ls", "c.tadoc"]), format!("{path}\nbehind.txt\n"));
        assert!(folder.cat("c.tadoc", path) == expected, "{path}");
        assert_eq!(folder.cat("c.tadoc", "behind.txt"), b"end");
    }
    for text in ["1000,3,900,3", "1000,3", "1000,3,9000,3", "1000,x", "1,3,18446744073709551615,3"] {
        folder.write("x.tar", sparse_tar(&middle(text), b"onetwo"));
        refused(&folder, &["x.tar"], "error: x.tar: the tar archive is cut or damaged");
    }
    for text in ["9999999999\n1\n1\n", "-1\n", "\n", "18446744073709551615\n1\n", "x"] {
        folder.write("x.tar", sparse_tar(&newest, &map(text)));
        refused(&folder, &["x.tar"], "error: x.tar: the tar archive is cut or damaged");
    }
    // Holes are within the limits of expansion.
    let bomb = [("GNU.sparse.size", "9000000000000000000"), name, ("GNU.sparse.map", "0,6")];
    folder.write("x.tar", sparse_tar(&bomb, b"onetwo"));
    refused(&folder, &["x.tar"], "pass a larger --max-expansion");
}

#[test]
fn misnamed_and_binary_files_are_said_once() {
    let folder = new_folder();
    folder.write("in/a.gz", "no gzip");
    folder.write("in/b.zip", "no zip");
    folder.write("in/c.tgz", gzip(b"no tar"));
    folder.write("in/d.pdf", "%PDF-1.7\nwords");
    folder.write("in/e.bin", [&[b'x'; 400][..], b"\0"].concat());
    folder.write("in/f.txt", [&[b'x'; 600][..], b"\0"].concat());
    folder.write("in/g.tar", tar(&[("h.png", b"\x89PNG\r\n\x1a\n"), ("i.txt", b"text")]));
    folder.write("in/j.txt.gz", gzip(b"text"));
    let notes = |options: &[&str]| {
        let ran = folder.run(&[&["ingest", "in", "--force", "-o", "c.tadoc"], options].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let of_bytes = |line: &&str| line.contains("stored as the bytes");
        ran.stderr.lines().filter(of_bytes).map(str::to_owned).collect::<Vec<_>>()
    };
    let said = notes(&[]);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].starts_with(
            "note: 3 files named as packed, but not packed in a known way, stored as the bytes (in/a.gz); "
        ),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("note: 1 PDF file stored as the bytes, whose words are no text (in/d.pdf); "),
        "{said:?}"
    );
    assert!(
        said[2].starts_with("note: 2 binary files stored as the bytes, whose words are no text (in/e.bin); "),
        "{said:?}"
    );
    assert_eq!(folder.cat("c.tadoc", "d.pdf"), b"%PDF-1.7\nwords");
    assert_eq!(folder.cat("c.tadoc", "c.tgz"), b"no tar");
    let silent: [&[&str]; 3] = [&["--quiet"], &["--no-decompress"], &["--charset", "keep"]];
    for options in silent {
        assert_eq!(notes(options), Vec::<String>::new(), "{options:?}");
    }
}
