//! How documents become a corpus: profiles and builders to try, files in memory.

use tadoc::Corpus;
use tadoc::build::{BuilderKind, CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;
use tadoc::text::TokenizerProfile;

/// Path and bytes of a document.
pub type Document = (String, Vec<u8>);

pub const PROFILES: [TokenizerProfile; 3] =
    [TokenizerProfile::Word, TokenizerProfile::Uax29, TokenizerProfile::Whitespace];

pub const BUILDERS: [BuilderKind; 2] = [BuilderKind::Rounds, BuilderKind::Sequitur];

/// Defaults but for what is given; a block of a few bytes cuts documents and makes many segments.
pub fn options(
    profile: TokenizerProfile,
    builder: BuilderKind,
    block_bytes: usize,
) -> IngestOptions {
    IngestOptions { profile, builder, block_bytes, ..IngestOptions::default() }
}

/// Documents named by their number.
pub fn numbered(texts: impl IntoIterator<Item = Vec<u8>>) -> Vec<Document> {
    texts.into_iter().enumerate().map(|(i, text)| (format!("doc/{i}.txt"), text)).collect()
}

/// The bytes of the `.tadoc` file of `documents`.
pub fn compress(documents: &[Document], options: &IngestOptions) -> Vec<u8> {
    let mut builder = CorpusBuilder::new(Vec::new(), *options).unwrap();
    for (path, text) in documents {
        builder.push_document(path, text).unwrap();
    }
    builder.finish(None).unwrap().0
}

/// The corpus in a `.tadoc` file, checked against its own footer.
pub fn open(file: &[u8]) -> Corpus {
    let (footer, corpus) = Corpus::from_bytes("test.tadoc", file, &OpenLimits::default()).unwrap();
    assert_eq!(footer.num_docs(), corpus.num_docs());
    assert_eq!(footer.profile, corpus.profile());
    corpus
}

/// Documents in, corpus out, through the bytes of a file.
pub fn corpus_of(documents: &[Document], options: &IngestOptions) -> Corpus {
    open(&compress(documents, options))
}

/// Path of a document.
pub fn path_of(corpus: &Corpus, doc_id: u64) -> &str {
    let (segment_idx, doc) = corpus.doc_parts(doc_id).next().unwrap();
    corpus.segments()[segment_idx].paths.get(doc).unwrap()
}
