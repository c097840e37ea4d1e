//! Tests of the forms that a zip file may have: sizes of zip64, sizes behind the data of a member, and both; and of
//! sizes that lie. No document is another one than that of the archive.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Crc;
use flate2::write::DeflateEncoder;
use testkit::random::Random;

use crate::archives::{tar, zip};
use crate::harness::{Folder, Ran, gzip, new_folder};

/// Value of a field of 32 bits whose number stands in a field of zip64.
const ELSEWHERE: u64 = u32::MAX as u64;
/// Numbers that nothing has.
const LARGE: [u64; 5] = [u64::MAX, u64::MAX - 1, 1 << 62, 1 << 40, 0];
/// False files of a run, so that each has its own warning.
const LIES_AT_ONCE: usize = 8;
/// Id of the extra field of zip64.
const ZIP64: u16 = 1;

/// The sizes that stand behind the data of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Descriptor {
    None,
    Bare,
    Signed,
    /// With sizes of 64 bits.
    Wide,
}

/// The form of a zip file.
#[derive(Debug, Clone, Copy)]
struct Form {
    is_packed: bool,
    descriptor: Descriptor,
    /// True if the head of a member has its sizes in a field of zip64.
    is_wide_head: bool,
    /// True if the entry of the list has its sizes and its place in such a field.
    is_wide_entry: bool,
    /// True if the end of the list is one of zip64.
    is_wide_end: bool,
}

impl Form {
    fn all() -> impl Iterator<Item = Self> {
        let descriptors = [Descriptor::None, Descriptor::Bare, Descriptor::Signed, Descriptor::Wide];
        descriptors.into_iter().flat_map(|descriptor| {
            (0..16).map(move |bits| Self {
                is_packed: bits & 1 != 0,
                descriptor,
                is_wide_head: bits & 2 != 0,
                is_wide_entry: bits & 4 != 0,
                is_wide_end: bits & 8 != 0,
            })
        })
    }

    fn version(self) -> u16 {
        if self.is_wide_head || self.is_wide_entry || self.is_wide_end { 45 } else { 20 }
    }

    fn flags(self) -> u16 {
        if self.descriptor == Descriptor::None { 0 } else { 8 }
    }
}

/// Bytes that are put together field by field.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u16(&mut self, number: u64) {
        self.raw(&u16::try_from(number).unwrap().to_le_bytes());
    }

    fn u32(&mut self, number: u64) {
        self.raw(&u32::try_from(number).unwrap().to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a zip file of a form, and the places of its fields of sizes, places and numbers, each with its width.
fn zip_with_form(form: Form, files: &[(&str, &[u8])]) -> (Vec<u8>, Vec<(usize, usize)>) {
    let mut out = Bytes::default();
    let mut list = Bytes::default();
    let mut fields = Vec::new();
    let mut listed = Vec::new();
    let method = if form.is_packed { 8 } else { 0 };
    for (name, text) in files {
        let data = if form.is_packed { deflated(text) } else { text.to_vec() };
        let mut sum = Crc::new();
        sum.update(text);
        let sum = u64::from(sum.sum());
        let size = text.len() as u64;
        let packed = data.len() as u64;
        let at = out.0.len() as u64;
        let is_told = form.descriptor == Descriptor::None;
        let known = |number: u64| if is_told { number } else { 0 };
        let head = |bytes: &mut Bytes, sum, is_wide, sizes: [u64; 2]| {
            for number in [form.version(), form.flags(), method, 0, 0x21] {
                bytes.u16(number.into());
            }
            bytes.u32(sum);
            for size in sizes {
                bytes.u32(if is_wide { ELSEWHERE } else { size });
            }
            bytes.u16(name.len() as u64);
        };
        out.raw(b"PK\x03\x04");
        head(&mut out, known(sum), form.is_wide_head, [known(packed), known(size)]);
        fields.extend([(out.0.len() - 10, 4), (out.0.len() - 6, 4)]);
        out.u16(if form.is_wide_head { 20 } else { 0 });
        out.raw(name.as_bytes());
        if form.is_wide_head {
            out.u16(ZIP64.into());
            out.u16(16);
            fields.extend([(out.0.len(), 8), (out.0.len() + 8, 8)]);
            for size in [known(size), known(packed)] {
                out.u64(size);
            }
        }
        out.raw(&data);
        if form.descriptor != Descriptor::None {
            if form.descriptor != Descriptor::Bare {
                out.raw(b"PK\x07\x08");
            }
            out.u32(sum);
            let is_wide = form.descriptor == Descriptor::Wide;
            let width = if is_wide { 8 } else { 4 };
            fields.extend([(out.0.len(), width), (out.0.len() + width, width)]);
            for size in [packed, size] {
                if is_wide {
                    out.u64(size)
                } else {
                    out.u32(size)
                };
            }
        }
        list.raw(b"PK\x01\x02");
        list.u16(0x032d);
        head(&mut list, sum, form.is_wide_entry, [packed, size]);
        listed.extend([(list.0.len() - 10, 4), (list.0.len() - 6, 4)]);
        for number in [if form.is_wide_entry { 28 } else { 0 }, 0, 0, 0] {
            list.u16(number);
        }
        list.u32(0o100_644 << 16);
        listed.push((list.0.len(), 4));
        list.u32(if form.is_wide_entry { ELSEWHERE } else { at });
        list.raw(name.as_bytes());
        if form.is_wide_entry {
            list.u16(ZIP64.into());
            list.u16(24);
            listed.extend([0, 8, 16].map(|place| (list.0.len() + place, 8)));
            for number in [size, packed, at] {
                list.u64(number);
            }
        }
    }
    let list_at = out.0.len() as u64;
    let list_bytes = list.0.len() as u64;
    let num = files.len() as u64;
    fields.extend(listed.into_iter().map(|(at, width)| (out.0.len() + at, width)));
    out.raw(&list.0);
    if form.is_wide_end {
        let end_at = out.0.len() as u64;
        out.raw(b"PK\x06\x06");
        out.u64(44);
        for version in [45, 45] {
            out.u16(version);
        }
        for disk in [0, 0] {
            out.u32(disk);
        }
        fields.extend([0, 8, 16, 24].map(|place| (out.0.len() + place, 8)));
        for number in [num, num, list_bytes, list_at] {
            out.u64(number);
        }
        out.raw(b"PK\x06\x07");
        out.u32(0);
        fields.push((out.0.len(), 8));
        out.u64(end_at);
        out.u32(1);
    }
    out.raw(b"PK\x05\x06");
    for disk in [0, 0] {
        out.u16(disk);
    }
    fields.extend([(out.0.len(), 2), (out.0.len() + 2, 2), (out.0.len() + 4, 4), (out.0.len() + 8, 4)]);
    let told = |number, elsewhere| if form.is_wide_end { elsewhere } else { number };
    for num in [num, num] {
        out.u16(told(num, 0xffff));
    }
    for number in [list_bytes, list_at] {
        out.u32(told(number, ELSEWHERE));
    }
    out.u16(0);
    (out.0, fields)
}

fn texts() -> Vec<(&'static str, Vec<u8>)> {
    let long = (0..4000).map(|number| format!("line {number} of the long text\n")).collect::<String>();
    // The bytes of a descriptor and of a member in the data.
    let signs = b"PK\x07\x08 and PK\x03\x04 and PK\x01\x02 in a text\n".repeat(3);
    vec![("a.txt", b"hello".to_vec()), ("sub/long.txt", long.into()), ("none.txt", Vec::new()), ("signs.txt", signs)]
}

/// Ingests the folder `in` and returns what is said.
fn ingest(folder: &Folder) -> Ran {
    let ran = folder.run(&["ingest", "--keep-going", "--quiet", "--force", "-o", "c.tadoc", "in"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    folder.ok(&["restore", "-q", "c.tadoc", "-o", "out"]);
    ran
}

/// Returns the files below a folder, by path.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let below = files_below(&entry.path()).into_iter();
            files.extend(below.map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

#[test]
fn every_form_of_a_zip_file_is_read() {
    let folder = new_folder();
    let texts = texts();
    let files = texts.iter().map(|(name, text)| (*name, text.as_slice())).collect::<Vec<_>>();
    for (idx, form) in Form::all().enumerate() {
        let (bytes, _) = zip_with_form(form, &files);
        folder.write(&format!("in/{idx}/x.zip"), &bytes);
        folder.write(&format!("in/{idx}/x.run"), [b"#!/bin/sh\nexit 0\n", bytes.as_slice()].concat());
        folder.write(&format!("in/{idx}/gz.zip.gz"), gzip(&bytes));
        folder.write(&format!("in/{idx}/x.tar"), tar(&[("in.zip", &bytes)]));
        folder.write(&format!("in/{idx}/outer.zip"), zip(&[("in.zip", &bytes)]));
        folder.write(&format!("in/{idx}/same.zip"), zip_with_form(form, &[("in.zip", &bytes)]).0);
    }
    assert_eq!(ingest(&folder).stderr, "");
    for (idx, form) in Form::all().enumerate() {
        let documents = files_below(&folder.join(&format!("out/{idx}")));
        let archives = ["x.zip", "x.run", "gz.zip.gz", "x.tar/in.zip", "outer.zip/in.zip", "same.zip/in.zip"];
        let expected = archives
            .into_iter()
            .flat_map(|archive| texts.iter().map(move |(name, text)| (format!("{archive}/{name}"), text.clone())));
        let expected = expected.collect::<BTreeMap<_, _>>();
        assert!(documents == expected, "{form:?}: {:?}", documents.keys());
    }
}

/// Checks zip files with one false number each, at the place that is given: a file about which nothing is said is
/// whole, and of the others no document has other bytes than those of the archive, unless it is named.
fn check_lies(lies: &[(Form, usize, usize, u64)]) -> usize {
    let folder = new_folder();
    let texts = texts();
    let files = texts.iter().map(|(name, text)| (*name, text.as_slice())).collect::<Vec<_>>();
    for (idx, (form, at, width, lie)) in lies.iter().enumerate() {
        let (mut bytes, _) = zip_with_form(*form, &files);
        bytes[*at..at + width].copy_from_slice(&lie.to_le_bytes()[..*width]);
        folder.write(&format!("in/{idx}/x.zip"), &bytes);
        folder.write(&format!("in/{idx}/outer.zip"), zip(&[("x.zip", &bytes), ("behind", b"text")]));
    }
    let told = ingest(&folder).stderr;
    let mut num_told = 0;
    for (idx, (form, at, width, lie)) in lies.iter().enumerate() {
        for archive in ["x.zip", "outer.zip/x.zip"] {
            let shown = format!("{archive} {form:?}, {lie} at {at} of {width} bytes");
            let documents = files_below(&folder.join(&format!("out/{idx}/{archive}")));
            let is_told = told.contains(&format!("in/{idx}/{archive}"));
            num_told += usize::from(is_told);
            for (name, document) in &documents {
                let text = texts.iter().find(|(text, _)| text == name).map(|(_, text)| text.as_slice());
                let is_right = text.is_some_and(|text| text == document || (is_told && text.starts_with(document)));
                // A member whose sum is wrong is stored as the list has it, or read as an archive.
                let is_below =
                    |member: &str| name.starts_with(member) && told.contains(&format!("in/{idx}/{archive}/{member}: "));
                let is_right = is_right || texts.iter().any(|(member, _)| is_below(member));
                assert!(is_right, "{shown}: {name} has {} bytes\n{told}", document.len());
            }
            assert!(is_told || documents.len() == texts.len(), "{shown}: {:?}\n{told}", documents.keys());
        }
        assert_eq!(fs::read(folder.join(&format!("out/{idx}/outer.zip/behind"))).unwrap(), b"text");
    }
    num_told
}

#[test]
fn numbers_that_lie_make_no_other_documents() {
    let texts = texts();
    let files = texts.iter().map(|(name, text)| (*name, text.as_slice())).collect::<Vec<_>>();
    let random = &mut Random(11);
    let mut num_told = 0;
    for form in Form::all().step_by(3) {
        let (bytes, fields) = zip_with_form(form, &files);
        let lies = (0..LIES_AT_ONCE).map(|_| {
            let (at, width) = *random.pick(&fields);
            let mut value = [0; 8];
            value[..width].copy_from_slice(&bytes[at..at + width]);
            let value = u64::from_le_bytes(value);
            let lie = if random.one_in(2) { random.lie(value) } else { *random.pick(&LARGE) };
            (form, at, width, lie)
        });
        num_told += check_lies(&lies.collect::<Vec<_>>());
    }
    assert!(num_told > 60, "{num_told}");
}
