//! Documents for tests: texts that once failed, random ones and real ones, and corpora of them in memory.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use tadoc::Corpus;
use tadoc::build::{BuilderKind, CorpusBuilder, IngestOptions};
use tadoc::format::{OpenLimits, SegmentLayout};
use tadoc::text::TokenizerProfile;

use crate::root;

/// Path and bytes of a document.
pub type Document = (String, Vec<u8>);

pub const PROFILES: [TokenizerProfile; 4] = TokenizerProfile::ALL;

pub const BUILDERS: [BuilderKind; 2] = [BuilderKind::Rounds, BuilderKind::Sequitur];

/// Returns default options with these values. A block of a few bytes cuts documents and gives many
/// segments. So that tests of all profiles and builders cover all layouts, words of Unicode are stored
/// in the indexed one without lists and grammars of Sequitur in the usual one.
pub fn options(profile: TokenizerProfile, builder: BuilderKind, block_bytes: usize) -> IngestOptions {
    let layout = match (profile, builder) {
        (_, BuilderKind::Sequitur) => SegmentLayout::INDEXED,
        (TokenizerProfile::Uax29, _) => SegmentLayout::Indexed { max_lists_percent: 0 },
        _ => SegmentLayout::Small,
    };
    IngestOptions { profile, builder, block_bytes, layout, ..IngestOptions::default() }
}

/// Turns texts into documents named by their numbers.
pub fn numbered(texts: impl IntoIterator<Item = Vec<u8>>) -> Vec<Document> {
    texts.into_iter().enumerate().map(|(i, text)| (format!("doc/{i}.txt"), text)).collect()
}

/// Returns the bytes of the `.tadoc` file of `documents`.
pub fn compress(documents: &[Document], options: &IngestOptions) -> Vec<u8> {
    let mut builder = CorpusBuilder::new(Vec::new(), *options).unwrap();
    for (path, text) in documents {
        builder.push_document(path, text).unwrap();
    }
    builder.finish(None).unwrap().0
}

/// Opens the corpus in a `.tadoc` file and checks it against its footer.
pub fn open(file: &[u8]) -> Corpus {
    let (footer, corpus) = Corpus::from_bytes("test.tadoc", file, &OpenLimits::default()).unwrap();
    assert_eq!(footer.num_docs(), corpus.num_docs());
    assert_eq!(footer.profile, corpus.profile());
    corpus
}

/// Builds the corpus of `documents`, through the bytes of a file.
pub fn corpus_of(documents: &[Document], options: &IngestOptions) -> Corpus {
    open(&compress(documents, options))
}

/// Returns the path of a document.
pub fn path_of(corpus: &Corpus, doc_id: u64) -> &str {
    let (segment_idx, doc) = corpus.doc_parts(doc_id).next().unwrap();
    corpus.segments()[segment_idx].paths.get(doc.index()).unwrap()
}

/// Pieces of random texts: words that touch and words that do not, each kind of line end, NUL,
/// invalid and truncated UTF-8, joiners, digits with points, and scripts without blanks.
const PIECES: &[&[u8]] = &[
    b"a",
    b"b",
    b"the",
    b"The",
    b"cat",
    b"_x1",
    b"42",
    b"3.14",
    b"can't",
    b"e-mail",
    b"x_y",
    "é".as_bytes(),
    "e\u{301}".as_bytes(),
    "naïve".as_bytes(),
    "日本語".as_bytes(),
    "カタカナ".as_bytes(),
    "ภาษา".as_bytes(),
    "שלום".as_bytes(),
    "١٢".as_bytes(),
    "a\u{200d}b".as_bytes(),
    "👩\u{200d}🚀".as_bytes(),
    "🇩🇪🇫🇷".as_bytes(),
    "ⓐ".as_bytes(),
    b" ",
    b" ",
    b" ",
    b" ",
    b"  ",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b", ",
    b". ",
    b"/",
    b"::",
    b"\"",
    "\u{a0}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{fffd}".as_bytes(),
    "\u{feff}".as_bytes(),
    b"\0",
    b"\xff",
    b"\xe2\x82",
    b"\xf0\x9f",
    b"\xc3",
    b"\x80",
    b"\xed\xa0\x80",
];

/// Returns tiny documents that every suite tries first.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = PIECES.iter().map(|piece| piece.to_vec()).collect();
    let texts: &[&[u8]] = &[
        b"",
        b"",
        b"one",
        b"one one",
        b"one one one one",
        b"a b a b a b a b",
        b"a a a a a a a a a",
        b"ab ab ab cd ab ab ab cd",
        b"all these words are distinct here",
        b" ",
        b"   ",
        b" leading",
        b"trailing ",
        b"two  blanks",
        b"line\nline\nline\n",
        b"line\r\nline\r\n",
        b"\0\0\0",
        b"a\0b",
        b"\xff\xfe\x00\x01",
        b"caf\xc3\xa9 caf\xc3\xa9",
        b"caf\xc3",
        b"\xa9 caf",
        b"...",
        b"a.b.c.d",
        b"a,b,a,b,a,b",
        b"x=1;x=1;x=1;",
    ];
    seeds.extend(texts.iter().map(|text| text.to_vec()));
    seeds
}

/// Generates random texts with repetition: a few phrases of [`PIECES`], repeated many times.
pub fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let phrase = prop::collection::vec(select(PIECES), 1..12).prop_map(|pieces| pieces.concat());
    let phrases = prop::collection::vec(phrase, 1..6);
    (phrases, prop::collection::vec(any::<Index>(), 0..40))
        .prop_map(|(phrases, order)| order.iter().flat_map(|index| index.get(&phrases).iter().copied()).collect())
}

/// Generates documents: a random text cut at random places, so that borders lie anywhere, and
/// noise.
pub fn any_texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let cuts = prop::collection::vec(any::<Index>(), 0..12);
    let noise = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..3);
    (any_text(), cuts, noise).prop_map(|(text, cuts, noise)| {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| text[cut[0]..cut[1]].to_vec()).chain(noise).collect()
    })
}

/// Generates block sizes: from sizes that cut every document to one that cuts nothing.
pub fn any_block_bytes() -> impl Strategy<Value = usize> {
    select(&[1usize, 7, 40, 200, 1 << 20][..])
}

/// Returns `len` bytes without blanks and line ends, and almost without repetition.
pub fn unbroken(len: usize) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.";
    let mut state = 42u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        DIGITS[(state >> 58) as usize]
    };
    (0..len).map(next).collect()
}

/// Reads the files below a folder, in path order. Returns none if the folder does not exist.
pub fn documents_below(folder: &Path) -> Vec<Document> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        (name, fs::read(&path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

/// Reads the sources of the core: real text that is always available. Those of the workspace would
/// take minutes.
pub fn own_sources() -> Vec<Document> {
    documents_below(&root().join("src/tadoc"))
}

/// Reads the corpora of the project's machines, each with its name.
///
/// `TADOC_CORPORA` names the folder. Without it, or if the folder does not exist, the function
/// prints a note and returns no corpora.
pub fn real_corpora() -> Vec<(String, Vec<Document>)> {
    let Some(folder) = std::env::var_os("TADOC_CORPORA") else {
        println!("skipped: TADOC_CORPORA names no folder of corpora");
        return Vec::new();
    };
    let folder = root().join(folder);
    let Ok(entries) = fs::read_dir(&folder) else {
        println!("skipped: TADOC_CORPORA names {}, which cannot be read", folder.display());
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let read = |at: PathBuf| (at.file_name().unwrap().to_string_lossy().into_owned(), documents_below(&at));
    folders.into_iter().filter(|at| at.is_dir()).map(read).collect()
}
