//! Corpus files whose footers are known, and portions of their segments.

use std::ops::Range;
use std::sync::Arc;

use crate::corpora::location::SourceFile;
use tadoc::format::FileFooter;

/// A file and its footer.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// The file.
    pub file: SourceFile,
    /// Its footer.
    pub footer: Arc<FileFooter>,
    /// Portion of the segments, if this is not the whole file. The footer then lists only these
    /// segments.
    pub(crate) portion: Option<Portion>,
}

impl OpenFile {
    /// Returns a key that distinguishes its segments from those of other files, versions and
    /// portions.
    pub(crate) fn key(&self) -> String {
        self.file.version_key() + &self.portion.as_ref().map(Portion::suffix).unwrap_or_default()
    }

    /// Returns the segments that it contains, if these are not all of the file.
    pub fn segments(&self) -> Option<Range<usize>> {
        self.portion.as_ref().map(|portion| portion.segments.clone())
    }
}

/// Segments of a file that an [`OpenFile`] contains. Its footer lists no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Portion {
    segments: Range<usize>,
    /// Documents of these segments, counted from the first document of the file.
    pub(crate) docs: Range<u64>,
    /// Number of documents in the file.
    pub(crate) num_docs_of_file: u64,
}

impl Portion {
    /// Returns a suffix that distinguishes it from other portions of its file.
    pub(crate) fn suffix(&self) -> String {
        format!(", segments {} to {}", self.segments.start, self.segments.end)
    }
}

impl OpenFile {
    /// Returns the file restricted to these segments. Their first document is `first_doc`.
    pub fn portion(&self, segments: Range<usize>, first_doc: u64) -> Self {
        let whole = &self.footer;
        let footer = FileFooter {
            profile: whole.profile,
            unicode_version: whole.unicode_version,
            writer: whole.writer.clone(),
            builder: whole.builder.clone(),
            segments: whole.segments[segments.clone()].to_vec(),
            columns: whole.columns.clone(),
            others: Vec::new(),
        };
        let docs = first_doc..first_doc + footer.num_docs();
        let portion = Portion { segments, docs, num_docs_of_file: whole.num_docs() };
        Self { file: self.file.clone(), footer: Arc::new(footer), portion: Some(portion) }
    }

    /// Appends the segments of `next`, which follow those of this portion.
    pub(crate) fn join(&mut self, next: Self) {
        let (Some(portion), Some(behind)) = (&mut self.portion, next.portion) else { return };
        (portion.segments.end, portion.docs.end) = (behind.segments.end, behind.docs.end);
        Arc::make_mut(&mut self.footer).segments.extend_from_slice(&next.footer.segments);
    }
}

/// Source of rows of user columns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowSource<'a> {
    /// The documents of a file.
    File(&'a OpenFile),
    /// A number of documents without user columns.
    Nulls(u64),
}

impl RowSource<'_> {
    /// Returns the number of rows.
    pub(crate) fn num_docs(&self) -> u64 {
        match self {
            Self::File(open) => open.footer.num_docs(),
            Self::Nulls(num_docs) => *num_docs,
        }
    }
}
