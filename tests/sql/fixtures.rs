//! Small corpora and files for the SQL tests, at fixed relative paths below a new folder.
//!
//! ```text
//! plays.tadoc            five documents: prose, an empty one, one with invalid UTF-8 and NUL
//! text/                  the same five documents as plain files
//! empty.tadoc            no document
//! parts.tadoc            three documents cut into many segments, one of them inside
//! shelf/{a,b}.tadoc      two corpora beside a file that is not a corpus
//! folds.tadoc            four documents whose words have accents, cases and endings, in two segments
//! mixed/{word,space}.tadoc   two tokenizers
//! damaged.tadoc          plays.tadoc with one flipped bit in its dictionary
//! short.tadoc            plays.tadoc without its second half
//! nothing/notes.md       a folder without a corpus
//! notes/                 a living corpus of six versions (`living`)
//! damaged_notes/         the same with one flipped bit in its first file
//! lines/                 line ends of all kinds, and a packed file
//! demo.tadoc             the sources of this package, as `tadoc demo` makes it of all crates
//! ```

pub mod living;
pub mod readme;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::{FileFooter, FooterOutcome, OpenLimits};
use tadoc::text::TokenizerProfile;

/// Names and texts of the documents of `plays.tadoc`, in the order of their paths.
pub const PLAYS: [(&str, &[u8]); 5] = [
    ("bytes.bin", b"caf\xc3\xa9 \xff\xfe raw\0bytes to be"),
    ("empty.txt", b""),
    ("hamlet.txt", b"To be, or not to be: that is the question."),
    ("macbeth.txt", b"Out, out, brief candle! Life's but a walking shadow."),
    ("tempest.txt", b"We are such stuff as dreams are made on; to be, or to sleep."),
];

/// Names and texts of the documents of `folds.tadoc`.
const FOLDS: [(&str, &str); 4] = [
    ("de.txt", "Die Straße, das Haus, die Häuser; eine STRASSE, Strassen"),
    ("en.txt", "Connection, connections and CONNECTED: a naïve search searched"),
    ("fr.txt", "le _château_ et Châteaux, un café mangé et mangées"),
    ("pl.txt", "Łódź lodz Søren soren Æon aeon chateau"),
];

/// Writes a corpus of `documents`.
pub fn write_corpus(path: &Path, options: IngestOptions, documents: &[(&str, &[u8])]) {
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (name, text) in documents {
        builder.push_document(name, text).unwrap();
    }
    let (bytes, _) = builder.finish(None).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Writes all fixtures below `dir`.
pub fn write_all(dir: &Path) {
    let default = IngestOptions::default;
    for folder in ["text", "shelf", "mixed", "nothing", "lines"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    write_corpus(&dir.join("plays.tadoc"), default(), &PLAYS);
    for (name, text) in PLAYS {
        fs::write(dir.join("text").join(name), text).unwrap();
    }
    write_corpus(&dir.join("empty.tadoc"), default(), &[]);
    let parts = IngestOptions { block_bytes: 32, ..default() };
    let long = "one two three four five six seven eight nine ten ".repeat(3);
    let documents: [(&str, &[u8]); 3] = [("first", b"one two"), ("long", long.as_bytes()), ("last", b"ten")];
    write_corpus(&dir.join("parts.tadoc"), parts, &documents);
    write_corpus(&dir.join("shelf/a.tadoc"), default(), &[("a", b"red green"), ("b", b"green")]);
    write_corpus(&dir.join("shelf/b.tadoc"), default(), &[("c", b"green blue")]);
    fs::write(dir.join("shelf/notes.md"), "no corpus").unwrap();
    fs::write(dir.join("nothing/notes.md"), "no corpus").unwrap();
    let folds = FOLDS.map(|(name, text)| (name, text.as_bytes()));
    let blocks = IngestOptions { block_bytes: 120, ..default() };
    write_corpus(&dir.join("folds.tadoc"), blocks, &folds);
    write_corpus(&dir.join("mixed/word.tadoc"), default(), &[("w", b"it's")]);
    let whitespace = IngestOptions { profile: TokenizerProfile::Whitespace, ..default() };
    write_corpus(&dir.join("mixed/space.tadoc"), whitespace, &[("s", b"it's")]);
    write_damaged(dir);
    write_living(dir);
    write_demo(dir);
    fs::write(dir.join("lines/crlf.txt"), "one\r\ntwo\r\n\r\nlast").unwrap();
    fs::write(dir.join("lines/invalid.txt"), b"ok\nbad \xff\n").unwrap();
    let gz = fs::File::create(dir.join("lines/packed.txt.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(gz, flate2::Compression::default());
    gz.write_all(b"packed one\npacked two\n").unwrap();
    gz.finish().unwrap();
}

fn write_living(dir: &Path) {
    living::write_notes(&dir.join("notes"));
    living::write_notes(&dir.join("damaged_notes"));
    let segments = files_below(&dir.join("damaged_notes/segments"));
    let largest = segments.iter().max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
    let mut bytes = fs::read(largest).unwrap();
    damage_dictionary(&mut bytes);
    fs::write(largest, bytes).unwrap();
}

fn write_demo(dir: &Path) {
    let root = testkit::root();
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    for file in files_below(&root.join("src")) {
        let path = file.strip_prefix(root).unwrap().display().to_string();
        builder.push_document(&path, &fs::read(&file).unwrap()).unwrap();
    }
    fs::write(dir.join("demo.tadoc"), builder.finish(None).unwrap().0).unwrap();
}

/// Returns all files below `dir`, in the order of their paths.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

fn write_damaged(dir: &Path) {
    let mut bytes = fs::read(dir.join("plays.tadoc")).unwrap();
    fs::write(dir.join("short.tadoc"), &bytes[..bytes.len() / 2]).unwrap();
    damage_dictionary(&mut bytes);
    fs::write(dir.join("damaged.tadoc"), bytes).unwrap();
}

/// Flips a bit in the dictionary of the first segment of a file.
pub fn damage_dictionary(file: &mut [u8]) {
    let footer = FileFooter::parse("a file", file, file.len() as u64, &OpenLimits::default()).unwrap();
    let FooterOutcome::Footer(footer) = footer else { panic!("the whole file was passed") };
    file[footer.segments[0].dictionary_range().start as usize + 6] ^= 1;
}

/// Returns a session with all functions and formats and with four partitions.
pub fn session() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(4).with_information_schema(true);
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(builder.with_tadoc().build())
}
