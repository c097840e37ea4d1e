//! A block of documents, which becomes one segment here or on another machine.
//!
//! ```text
//! here         block ─▶ tokens ─▶ grammar ─▶ sections ──────────────────────────────┐
//! elsewhere    block ─▶ RemoteBuilder ══▶ Block::build ─▶ a file of one segment ══▶ │ Block::take_segment
//!                          │ none                                                   ▼
//!                          └─▶ here                                               writer
//! ```
//!
//! A segment depends on its block and on the options, and on nothing else: not on the blocks beside it, on threads or
//! on the machine. So a file is the same, byte for byte, wherever its segments are built. What travels back is a corpus
//! file of this one segment, whose checksums and counts are those of any file. [`Block::take_segment`] refuses a file
//! that another program wrote, or that has other documents by their numbers and lengths. It does not decode the text: a
//! builder elsewhere is trusted with the text, and not with memory or with the program that reads its answer.

use std::sync::Arc;

use bytes::Bytes;

use super::{IngestOptions, Maker};
use crate::error::{Error, Result};
use crate::format::{CorpusWriter, EncodedSegment, FileFooter, FooterOutcome, OpenLimits, WRITER};
use crate::segment::Paths;

/// Builder of segments outside of this process.
pub trait RemoteBuilder: std::fmt::Debug + Send + Sync {
    /// Returns the number of blocks that may be there at a time, at least 1.
    fn num_places(&self) -> usize;

    /// Returns the number of blocks of the greatest size that may be there at a time. Their texts stay in memory until
    /// the segments are there.
    fn num_whole_blocks(&self) -> usize;

    /// Builds the segment of `block`. Returns `None` if it must be built here. Called from many threads at a time.
    fn build(&self, block: &Arc<Block>, options: &IngestOptions) -> Option<EncodedSegment>;
}

/// Documents that become one segment.
///
/// ```
/// use tadoc::build::{Block, IngestOptions};
/// use tadoc::segment::Paths;
///
/// let mut paths = Paths::default();
/// paths.push("a.txt");
/// paths.push("empty.txt");
/// let block = Block::new(b"to be or not".to_vec(), vec![12, 12], paths)?;
/// let options = IngestOptions::default();
/// let file = block.clone().build(&options)?;
/// block.take_segment("memory", &options, &file)?;
/// # Ok::<(), tadoc::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// May be a part of the text of a larger block, which it then keeps in memory.
    pub(super) text: Bytes,
    pub(super) doc_ends: Vec<usize>,
    pub(super) paths: Paths,
    /// True if the first document continues the last one of the previous block.
    pub(super) continues: bool,
}

impl Block {
    /// Makes a block of documents that end at `doc_ends` of `text`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless the ends ascend to the end of the text and each document has a path.
    pub fn new(text: Vec<u8>, doc_ends: Vec<usize>, paths: Paths) -> Result<Self> {
        let last = doc_ends.last().copied().unwrap_or_default();
        if !doc_ends.is_sorted() || last != text.len() {
            let allowed = format!("ends that ascend to {}", text.len());
            return Err(Error::InvalidArgument { name: "doc_ends", got: format!("{last} at the end"), allowed });
        }
        if paths.len() != doc_ends.len() {
            let got = paths.len().to_string();
            let allowed = doc_ends.len().to_string();
            return Err(Error::InvalidArgument { name: "paths", got, allowed });
        }
        Ok(Self { text: text.into(), doc_ends, paths, continues: false })
    }

    /// Returns the texts of all documents, one behind the other.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the end of each document in the text.
    pub fn doc_ends(&self) -> &[usize] {
        &self.doc_ends
    }

    /// Returns the paths, one for each document.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Builds the segment and returns it as a corpus file of its own. Of `options`, the size of blocks does not matter.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the block is too large to be indexed.
    pub fn build(self, options: &IngestOptions) -> Result<Vec<u8>> {
        let maker = Maker { options: *options };
        // The first segment of a file continues nothing. `take_segment` knows what this one continues.
        let made = maker.parts(Arc::new(Self { continues: false, ..self }))?;
        let segment = EncodedSegment::new(&made.segment, options.layout)?;
        drop(made);
        let mut writer = CorpusWriter::new(Vec::new(), options.profile, &options.builder.to_string())?;
        writer.write_segment(segment)?;
        Ok(writer.finish(None)?.0)
    }

    /// Takes the segment of this block out of `file`, which [`build`](Self::build) returned elsewhere. `name` is the
    /// name of the file in errors. Takes O(file).
    ///
    /// # Errors
    /// [`Error::Format`] or [`Error::Checksum`] if the file is damaged or has other documents, [`Error::Version`] if
    /// another program wrote it.
    pub fn take_segment(&self, name: &str, options: &IngestOptions, file: &[u8]) -> Result<EncodedSegment> {
        let outcome = FileFooter::parse(name, file, file.len() as u64, &OpenLimits::default())?;
        let FooterOutcome::Footer(footer) = outcome else {
            return Err(Error::Format {
                file: name.into(),
                section: "footer",
                offset: 0,
                reason: "expected the whole footer in the file".into(),
            });
        };
        check_same(name, "writer", WRITER, &footer.writer)?;
        check_same(name, "builder", options.builder.as_str(), &footer.builder)?;
        check_same(name, "tokenizer", options.profile, footer.profile)?;
        let unicode = |(major, minor, patch): (u8, u8, u8)| format!("Unicode {major}.{minor}.{patch}");
        let expected = options.profile.unicode_version();
        check_same(name, "version of Unicode", unicode(expected), unicode(footer.unicode_version))?;
        let mut segment = EncodedSegment::from_file(name, &footer, file)?;
        for (what, expected, got) in [
            ("documents", self.doc_ends.len(), segment.meta().num_docs),
            ("bytes of text", self.text.len(), segment.meta().len_bytes),
            ("bytes of paths", self.paths.len_bytes(), segment.meta().paths_bytes),
        ] {
            if expected as u64 != got {
                let reason = format!("expected a segment with {expected} {what}, got {got}");
                return Err(Error::Format { file: name.into(), section: "footer", offset: 0, reason });
            }
        }
        segment.set_continues(self.continues);
        Ok(segment)
    }
}

/// Refuses a file whose `what` is another than this build would write.
fn check_same<T: ToString>(file: &str, what: &str, expected: T, got: impl ToString) -> Result<()> {
    let expected = expected.to_string();
    let got = got.to_string();
    if expected == got {
        return Ok(());
    }
    Err(Error::Version { file: file.into(), expected: format!("the {what} {expected}"), got })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::build::{BuilderKind, CorpusBuilder, IngestReport};
    use crate::format::SegmentLayout;
    use crate::text::TokenizerProfile;

    /// A builder that builds in this process, and refuses every block whose number `builds` does not take.
    #[derive(Debug)]
    struct Other {
        num_places: usize,
        num_asked: AtomicUsize,
        takes_every: usize,
    }

    impl Other {
        fn new(num_places: usize, takes_every: usize) -> Arc<Self> {
            Arc::new(Self { num_places, num_asked: AtomicUsize::new(0), takes_every })
        }
    }

    impl RemoteBuilder for Other {
        fn num_places(&self) -> usize {
            self.num_places
        }

        fn num_whole_blocks(&self) -> usize {
            self.num_places
        }

        fn build(&self, block: &Arc<Block>, options: &IngestOptions) -> Option<EncodedSegment> {
            let number = self.num_asked.fetch_add(1, Ordering::Relaxed);
            if !number.is_multiple_of(self.takes_every) {
                return None;
            }
            let file = Block::clone(block).build(options).unwrap();
            Some(block.take_segment("other", options, &file).unwrap())
        }
    }

    fn file(options: IngestOptions, docs: &[Vec<u8>], remote: Option<Arc<Other>>) -> (Vec<u8>, IngestReport) {
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        if let Some(remote) = remote {
            builder = builder.with_remote(remote);
        }
        for (number, doc) in docs.iter().enumerate() {
            builder.push_document(&format!("{number}.txt"), doc).unwrap();
        }
        builder.finish(Some(b"columns".to_vec())).unwrap()
    }

    #[test]
    fn segments_from_elsewhere_give_the_same_file() {
        let docs: Vec<Vec<u8>> =
            (0..40).map(|doc| format!("to be or not to be {doc} ").repeat(doc % 20).into_bytes()).collect();
        for layout in [SegmentLayout::Small, SegmentLayout::INDEXED] {
            for builder in [BuilderKind::Rounds, BuilderKind::Sequitur] {
                for profile in TokenizerProfile::ALL {
                    let options = IngestOptions { block_bytes: 200, layout, builder, profile, ..Default::default() };
                    let (expected, report) = file(options, &docs, None);
                    assert_eq!(report.num_remote, 0);
                    for (num_places, takes_every) in [(1, 1), (3, 1), (8, 1), (3, 3)] {
                        let (got, report) = file(options, &docs, Some(Other::new(num_places, takes_every)));
                        assert!(got == expected, "{num_places} {takes_every} {layout} {builder} {profile}");
                        let num_segments = report.footer.segments.len();
                        assert!(num_segments > 20);
                        assert_eq!(report.num_remote, num_segments.div_ceil(takes_every) as u64);
                    }
                }
            }
        }
    }

    #[test]
    fn segments_of_other_blocks_and_builders_are_refused() {
        let block = |texts: &[&str], path: &str| {
            let mut text = Vec::new();
            let mut ends = Vec::new();
            let mut paths = Paths::default();
            for part in texts {
                text.extend(part.as_bytes());
                ends.push(text.len());
                paths.push(path);
            }
            Block::new(text, ends, paths).unwrap()
        };
        let options = IngestOptions::default();
        let own = block(&["to be", " or not"], "a");
        let file = own.clone().build(&options).unwrap();
        own.take_segment("x", &options, &file).unwrap();
        for other in
            [block(&["to be or not"], "aa"), block(&["to be", " or no"], "a"), block(&["to be", " or not"], "b1")]
        {
            let error = other.take_segment("x", &options, &file).unwrap_err();
            assert!(matches!(error, Error::Format { .. }), "{error}");
        }
        for options in [
            IngestOptions { builder: BuilderKind::Sequitur, ..options },
            IngestOptions { profile: TokenizerProfile::Whitespace, ..options },
        ] {
            let error = own.take_segment("x", &options, &file).unwrap_err();
            assert!(matches!(error, Error::Version { .. }), "{error}");
        }
        // Files that are no answer: of two segments, with columns, of none.
        let docs = [b"to be".to_vec(), b"to be".to_vec()];
        for block_bytes in [5, 100] {
            let (file, _) = super::tests::file(IngestOptions { block_bytes, ..options }, &docs, None);
            assert!(matches!(own.take_segment("x", &options, &file), Err(Error::Format { .. })));
        }
        let empty = CorpusBuilder::new(Vec::new(), options).unwrap().finish(None).unwrap().0;
        assert!(matches!(own.take_segment("x", &options, &empty), Err(Error::Format { .. })));
        assert!(Block::new(b"abc".to_vec(), vec![2], Paths::default()).is_err());
        assert!(Block::new(b"abc".to_vec(), vec![3, 2, 3], Paths::default()).is_err());
        assert!(Block::new(b"abc".to_vec(), vec![3], Paths::default()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn damage_is_found(at: usize, flip in 1u8.., cut: Option<usize>) {
            let mut paths = Paths::default();
            paths.push("a");
            let block = Block::new(b"to be or not to be".to_vec(), vec![18], paths).unwrap();
            let options = IngestOptions::default();
            let mut file = block.clone().build(&options).unwrap();
            let at = at % file.len();
            file[at] ^= flip;
            if let Some(cut) = cut {
                file.truncate(cut % file.len());
            }
            prop_assert!(block.take_segment("x", &options, &file).is_err());
        }
    }
}
