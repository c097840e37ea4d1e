//! Builds corpora from documents: profiles and builders to try, and files in memory.

use tadoc::Corpus;
use tadoc::build::{BuilderKind, CorpusBuilder, IngestOptions};
use tadoc::format::{OpenLimits, SegmentLayout};
use tadoc::text::TokenizerProfile;

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
