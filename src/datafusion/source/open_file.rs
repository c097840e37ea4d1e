//! A corpus file whose footer is known, or a portion of its segments.

use std::ops::Range;
use std::sync::Arc;

use crate::source::location::SourceFile;
use tadoc::format::FileFooter;

/// A file and its footer.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    pub(crate) file: SourceFile,
    pub(crate) footer: Arc<FileFooter>,
    /// Where it stands for a part of the segments, the only ones in the footer.
    pub(crate) portion: Option<Portion>,
}

impl OpenFile {
    /// What tells its segments from those of other files, versions and portions.
    pub(crate) fn key(&self) -> String {
        self.file.version_key() + &self.portion.as_ref().map(Portion::suffix).unwrap_or_default()
    }
}

/// Which segments of its file an [`OpenFile`] stands for, whose footer has no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Portion {
    segments: Range<usize>,
    /// Their documents, counted from the first of the file.
    pub(crate) docs: Range<u64>,
    /// Documents of the file.
    pub(crate) num_docs_of_file: u64,
}

impl Portion {
    /// Tells it from the others of its file.
    pub(crate) fn suffix(&self) -> String {
        format!(", segments {} to {}", self.segments.start, self.segments.end)
    }
}

impl OpenFile {
    /// The file as if it had only these segments, whose first document is `first_doc`.
    pub(crate) fn portion(&self, segments: Range<usize>, first_doc: u64) -> Self {
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

    /// Appends the segments of `next`, which follow on those of this portion.
    pub(crate) fn join(&mut self, next: Self) {
        let (Some(portion), Some(behind)) = (&mut self.portion, next.portion) else { return };
        (portion.segments.end, portion.docs.end) = (behind.segments.end, behind.docs.end);
        Arc::make_mut(&mut self.footer).segments.extend_from_slice(&next.footer.segments);
    }
}

/// Where rows of user columns come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowSource<'a> {
    /// The documents of a file.
    File(&'a OpenFile),
    /// So many documents that came without columns.
    Nulls(u64),
}

impl RowSource<'_> {
    /// Number of its rows.
    pub(crate) fn num_docs(&self) -> u64 {
        match self {
            Self::File(open) => open.footer.num_docs(),
            Self::Nulls(num_docs) => *num_docs,
        }
    }
}
