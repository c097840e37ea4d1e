//! CPU or GPU for a task over a corpus, and why.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU; CPU where there is no kernel for it; an error where there is no device
//!                auto ─▶ the chooser: CPU, or GPU where one is there
//! ```
//!
//! Decided once, when the plan is made, from footers and from what lies on devices then: `EXPLAIN` shows
//! what will be done. With `auto` nobody waits for the driver, unless the task is so long that waiting is a gain; a device
//! that is closed is opened for the tasks after this one.

use std::fmt;

use datafusion::common::plan_err;
use datafusion::error::Result;

use super::answers::missing_elements;
use super::chooser::{SOME_DOCUMENTS, Work, choose, hoped};
use crate::corpora::LoadedCorpus;
use crate::gsst::{calibration, device};
use crate::options::{Device, TadocOptions};
use crate::scan::Scan;
use crate::throughput::DeviceState;
use crate::throughput::calibration::CorpusTask;
use tadoc::analytics::{SegmentShape, Traversal};
use tadoc::format::SegmentMeta;

/// What has kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// How often each word occurs.
    WordCount,
    /// The words of each document; not of all of them where `is_part`.
    TermVector { is_part: bool },
    /// The documents of each word.
    InvertedIndex { is_folded: bool },
    /// How often each sequence of so many words occurs.
    SequenceCount { num_words: usize, is_folded: bool },
    /// How often two words stand in a window of so many.
    Cooccurrence { window: usize, is_folded: bool },
    /// The documents of each sequence of so many words; not all of them where `is_part`.
    RankedInvertedIndex { num_words: usize, is_folded: bool, is_part: bool },
}

/// What becomes of rows of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// They are those of the corpus.
    None,
    /// They ascend as those of the corpus do.
    Merged,
    /// They do not.
    Sorted,
}

/// Windows of pairs have fewer words on a device, and segments fewer words and pairs.
const MAX_PAIR_WINDOW: usize = 255;
const MAX_SORTED: u64 = 1 << 31;

impl Task {
    /// What it costs; nothing that a device is worth where there is no such.
    pub(super) fn rated(self) -> Option<CorpusTask> {
        match self {
            Self::WordCount => None,
            Self::TermVector { .. } => Some(CorpusTask::Terms),
            Self::InvertedIndex { .. } => Some(CorpusTask::Index),
            Self::SequenceCount { num_words, .. } => Some(CorpusTask::Sequences(num_words)),
            Self::Cooccurrence { window, .. } => Some(CorpusTask::Pairs(window)),
            Self::RankedInvertedIndex { num_words, .. } => Some(CorpusTask::Ranked(num_words)),
        }
    }

    /// Whether only some documents are to be counted.
    pub(super) fn is_part(self) -> bool {
        matches!(
            self,
            Self::TermVector { is_part: true } | Self::RankedInvertedIndex { is_part: true, .. }
        )
    }

    /// Whether the cores read the answer off the words of documents where they keep these: unless they are told
    /// how to count.
    pub(crate) fn is_in_doc_words(self, options: &TadocOptions) -> bool {
        let is_about_words = matches!(self, Self::TermVector { .. } | Self::InvertedIndex { .. });
        is_about_words && options.traversal == Traversal::Auto
    }

    /// What becomes of rows of segments, where `is_joined` says that there are several segments.
    fn join(self, is_joined: bool) -> Join {
        let (is_sorted, is_merged) = match self {
            // Cursors and lists see to it, on the cores too.
            Self::WordCount | Self::TermVector { .. } => (false, false),
            Self::InvertedIndex { is_folded } => (is_folded, false),
            Self::SequenceCount { is_folded, .. }
            | Self::Cooccurrence { is_folded, .. }
            | Self::RankedInvertedIndex { is_folded, .. } => (is_folded, is_joined),
        };
        match (is_sorted, is_merged) {
            (true, _) => Join::Sorted,
            (false, true) => Join::Merged,
            (false, false) => Join::None,
        }
    }

    /// Why `segments` cannot be counted on a device, as far as footers say.
    fn refused<'a>(
        self,
        segments: impl Iterator<Item = &'a SegmentMeta> + Clone,
    ) -> Option<String> {
        match self {
            Self::WordCount => None,
            Self::TermVector { .. } | Self::InvertedIndex { .. } => long_text(segments),
            Self::SequenceCount { num_words, .. } => {
                cut_document(segments.clone()).or_else(|| long_sequence(segments, num_words))
            }
            Self::Cooccurrence { window, .. } => {
                cut_document(segments.clone()).or_else(|| many_pairs(segments, window))
            }
            Self::RankedInvertedIndex { num_words, .. } => cut_document(segments.clone())
                .or_else(|| long_text(segments.clone()))
                .or_else(|| long_sequence(segments, num_words)),
        }
    }
}

fn cut_document<'a>(mut segments: impl Iterator<Item = &'a SegmentMeta>) -> Option<String> {
    let is_cut = segments.any(|segment| segment.continues);
    is_cut.then(|| "a document goes on in another segment".to_owned())
}

fn long_text<'a>(mut segments: impl Iterator<Item = &'a SegmentMeta>) -> Option<String> {
    let is_long = segments.any(|segment| segment.num_word_tokens >= MAX_SORTED);
    is_long.then(|| format!("a segment has {MAX_SORTED} words or more"))
}

fn long_sequence<'a>(
    segments: impl Iterator<Item = &'a SegmentMeta>,
    num_words: usize,
) -> Option<String> {
    let most_words = segments.map(|segment| segment.num_words).max().unwrap_or(0);
    let word_bits = (u64::BITS - u64::from(most_words).saturating_sub(1).leading_zeros()).max(1);
    (num_words > (u64::BITS / word_bits) as usize)
        .then(|| format!("{num_words} words do not fit 64 bits"))
}

fn many_pairs<'a>(
    mut segments: impl Iterator<Item = &'a SegmentMeta>,
    window: usize,
) -> Option<String> {
    if window > MAX_PAIR_WINDOW {
        return Some(format!("windows of {window} words, {MAX_PAIR_WINDOW} at most"));
    }
    let of_element = (window * window.saturating_sub(1) / 2).max(1) as u64;
    let are_many = segments.any(|segment| segment.num_elements > MAX_SORTED / of_element);
    are_many.then(|| format!("a segment may have {MAX_SORTED} pairs or more"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Cpu,
    Device,
    /// A device was demanded, and there is none.
    Nowhere,
}

/// Where a scan counts, and why; the CPU unless it is placed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Placement {
    place: Place,
    reason: String,
    /// Whether a device was chosen because all documents are asked for.
    is_for_all: bool,
    /// The task, where its time says what it takes the next time.
    timed: Option<Task>,
}

impl Placement {
    fn on_cpu(reason: impl Into<String>) -> Self {
        Self { place: Place::Cpu, reason: reason.into(), ..Self::default() }
    }

    /// The same where it turns out later that some documents are enough.
    pub(crate) fn for_part(self) -> Self {
        if self.is_for_all { Self::on_cpu(SOME_DOCUMENTS) } else { self }
    }

    pub(crate) fn is_on_device(&self) -> bool {
        self.place == Place::Device
    }

    /// The task, where its time says what it takes the next time: all that it needs is there.
    pub(crate) fn timed(&self) -> Option<Task> {
        self.timed
    }

    /// That there is a device where one is demanded.
    ///
    /// # Errors
    /// A plan error that names the way out.
    pub(crate) fn check(&self) -> Result<()> {
        match self.place {
            Place::Nowhere => plan_err!("{}", self.reason),
            Place::Cpu | Place::Device => Ok(()),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            Place::Cpu => "cpu",
            Place::Device => "gpu",
            Place::Nowhere => "none",
        };
        match self.reason.as_str() {
            "" => f.write_str(place),
            reason => write!(f, "{place}: {reason}"),
        }
    }
}

/// Decides where `task` of `scan` is done; an error instead of one says why there is none. `loaded` is
/// the corpus, where it is in memory already.
pub(crate) fn place(
    scan: &Scan,
    task: std::result::Result<Task, &'static str>,
    loaded: Option<&LoadedCorpus>,
) -> Placement {
    let demanded = scan.options.device;
    let task = match (demanded, task) {
        (Device::Gpu, Err(reason)) => return Placement::on_cpu(reason),
        (_, Err(_)) => return Placement::default(),
        (Device::Cpu, Ok(_)) => return Placement::on_cpu("tadoc.device = cpu"),
        (Device::Auto | Device::Gpu, Ok(task)) => task,
    };
    let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
    if let Some(reason) = task.refused(segments) {
        return Placement::on_cpu(reason);
    }
    if demanded == Device::Auto {
        return choose_place(scan, task, loaded);
    }
    if let Some(problem) = device::problem() {
        let reason = format!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'");
        return Placement { place: Place::Nowhere, reason, ..Placement::default() };
    }
    device::open_soon();
    Placement { place: Place::Device, ..Placement::default() }
}

fn choose_place(scan: &Scan, task: Task, loaded: Option<&LoadedCorpus>) -> Placement {
    let work = work(scan, task, loaded);
    let rates = calibration().corpus_rates();
    let mut choice = choose(&work, &rates, device::state);
    if choice.is_on_device
        && let Some(problem) = device::problem()
    {
        choice = choose(&work, &rates, || DeviceState::Missing(problem));
    }
    if let Some(effort) = choice.missed {
        device::miss(effort.gain_s(), effort.startup_s, work.num_cores);
        loaded.inspect(|loaded| loaded.tasks.note_missed(task, effort.gain_s()));
    } else if let Some(effort) = hoped(&work, &rates)
        && !choice.is_on_device
        && effort.gain_s() > 0.0
        && device::state() == DeviceState::Closed
    {
        device::miss(effort.gain_s(), effort.startup_s, work.num_cores);
    }
    let timed = loaded.filter(|_| !work.are_words_kept).map(|_| task);
    if !choice.is_on_device {
        return Placement { timed, ..Placement::on_cpu(choice.reason) };
    }
    device::open_soon();
    Placement {
        place: Place::Device,
        reason: choice.reason,
        is_for_all: matches!(task, Task::TermVector { .. }),
        timed: timed.filter(|_| work.missing_elements == 0),
    }
}

fn work(scan: &Scan, task: Task, loaded: Option<&LoadedCorpus>) -> Work {
    let segments = || scan.corpora().iter().flat_map(|open| &open.footer.segments);
    let shape: SegmentShape = segments().map(SegmentShape::from).sum();
    let are_words_kept = loaded.is_some_and(|loaded| {
        let mut segments = loaded.corpus.segments().iter();
        task.is_in_doc_words(&scan.options) && segments.all(|segment| segment.dag.has_doc_words())
    });
    Work {
        task,
        shape,
        missing_elements: loaded
            .map_or(shape.num_elements, |loaded| missing_elements(task, loaded.corpus.segments())),
        join: task.join(segments().count() > 1 || scan.living().is_some()),
        known: loaded.map(|loaded| loaded.tasks.of(task)).unwrap_or_default(),
        num_cores: rayon::current_num_threads(),
        are_words_kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(num_word_tokens: u64, num_elements: u64) -> SegmentMeta {
        SegmentMeta {
            num_docs: 9,
            continues: false,
            len_bytes: 6 * num_word_tokens,
            num_tokens: num_word_tokens,
            num_word_tokens,
            dictionary_bytes: 800,
            paths_bytes: 9,
            num_words: 100,
            num_separators: 1,
            num_rules: 10,
            num_elements,
            sections: Vec::new(),
        }
    }

    #[test]
    fn what_kernels_have_no_numbers_for_is_refused() {
        let refused = |task: Task, last: SegmentMeta| {
            task.refused([segment(9000, 900), last].iter()).unwrap_or_default()
        };
        let terms = Task::TermVector { is_part: false };
        let index = Task::InvertedIndex { is_folded: false };
        let pairs = |window| Task::Cooccurrence { window, is_folded: false };
        let ranked =
            |num_words| Task::RankedInvertedIndex { num_words, is_folded: false, is_part: false };
        for task in [terms, index, pairs(5), pairs(255), ranked(9), Task::WordCount] {
            assert_eq!(refused(task, segment(MAX_SORTED - 1, 9000)), "", "{task:?}");
        }
        for task in [terms, index, ranked(3)] {
            let reason = refused(task, segment(MAX_SORTED, 9000));
            assert_eq!(reason, "a segment has 2147483648 words or more", "{task:?}");
        }
        assert_eq!(refused(ranked(10), segment(9, 9)), "10 words do not fit 64 bits");
        assert_eq!(refused(pairs(256), segment(9, 9)), "windows of 256 words, 255 at most");
        let most_elements = MAX_SORTED / 10;
        assert_eq!(refused(pairs(5), segment(9, most_elements)), "");
        let reason = refused(pairs(5), segment(9, most_elements + 1));
        assert_eq!(reason, "a segment may have 2147483648 pairs or more");
        let cut = || SegmentMeta { continues: true, ..segment(9, 9) };
        for task in [terms, index] {
            assert_eq!(refused(task, cut()), "", "{task:?}");
        }
        for task in [pairs(5), ranked(3)] {
            assert_eq!(refused(task, cut()), "a document goes on in another segment");
        }
    }

    #[test]
    fn a_device_that_was_chosen_for_all_documents_is_not_for_some() {
        let on_device = |is_for_all| Placement {
            place: Place::Device,
            reason: "estimated".to_owned(),
            is_for_all,
            timed: None,
        };
        assert_eq!(on_device(true).for_part().to_string(), "cpu: some documents are asked for");
        assert_eq!(on_device(false).for_part(), on_device(false));
        assert_eq!(Placement::default().for_part(), Placement::default());
    }
}
