//! The estimated times of a task over a corpus on the cores and on a device, for
//! `throughput::decide`.
//!
//! ```text
//! device   task + units * unit + rows * (row + merge or sort)
//! copies   elements * prepare: inverse grammar and copies, unless the device has them
//! cores    traversal_costs, scaled to this number of cores and this size of the grammar
//! ```
//!
//! Units are windows, pairs or words; this depends on the task. The numbers come from footers.
//! Units and rows are upper bounds that follow from the numbers of elements and words, so that no
//! device is chosen because of an optimistic guess. If the task was done on this corpus before, its
//! number of rows is known, and the measured time of a place replaces the estimate. The time for
//! the texts of rows is left out, because it is the same in both places. Rates are those that
//! `tadoc calibrate` measured, or built-in ones.
//!
//! The cores do three kinds of work in any case:
//! - Sums over words: the vocabulary has the counts.
//! - Tasks about some documents: the cores count only these, a device would count all documents.
//! - Words of documents that the segments keep: nothing has to be counted.

use crate::throughput::calibration::CorpusRates;
use crate::throughput::{Decision, DeviceState, Effort, Hindrance, decide};
use tadoc::analytics::SegmentShape;

use crate::placement::known::Known;
use crate::placement::task::{Join, Task};

/// Size of a task, with all that the estimate needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) task: Task,
    /// Sum of the shapes of all segments.
    pub(crate) shape: SegmentShape,
    /// Number of elements in segments that lack copies on the device.
    pub(crate) missing_elements: u64,
    /// Way in which rows of segments become rows of the corpus.
    pub(crate) join: Join,
    /// Rows and times of earlier runs.
    pub(crate) known: Known,
    pub(crate) num_cores: usize,
    /// True if the segments keep the answer, the words of documents.
    pub(crate) are_words_kept: bool,
}

/// Place of a task, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) is_on_device: bool,
    pub(crate) reason: String,
    /// Times of the task, if an open device with the corpus would be faster.
    pub(crate) missed: Option<Effort>,
}

impl Choice {
    fn cores(reason: impl Into<String>) -> Self {
        Self { is_on_device: false, reason: reason.into(), missed: None }
    }
}

/// Reason of the cores if only some documents are counted.
pub(crate) const SOME_DOCUMENTS: &str = "some documents are asked for";

/// Reason of the cores if the segments keep the words of documents.
pub(crate) const WORDS_KEPT: &str = "the words of documents are kept";

/// Chooses the place of a task. Asks for the `state` of the device only if a device would be
/// faster.
pub(crate) fn choose(
    work: &Work,
    rates: &CorpusRates,
    state: impl FnOnce() -> DeviceState,
) -> Choice {
    if work.task.is_part() {
        return Choice::cores(SOME_DOCUMENTS);
    }
    let effort = estimate(work, rates);
    let decision = decide(&effort, state);
    if work.are_words_kept && decision != Decision::Cores(Hindrance::Slower) {
        return Choice::cores(WORDS_KEPT);
    }
    match decision {
        Decision::Device => {
            Choice { is_on_device: true, reason: on_device(work, &effort), missed: None }
        }
        Decision::Cores(hindrance) => Choice {
            is_on_device: false,
            reason: hindrance.to_string(),
            missed: match hindrance {
                Hindrance::Closed | Hindrance::Opening | Hindrance::Copies => Some(effort),
                Hindrance::Slower | Hindrance::Missing(_) => None,
            },
        },
    }
}

/// Returns the times of a task whose number of rows is not known yet, as if it had no rows. The
/// first run takes longest, because it loads the corpus. So a device that may pay for the next runs
/// is opened during it.
pub(crate) fn hoped(work: &Work, rates: &CorpusRates) -> Option<Effort> {
    if work.task.is_part() || work.known.num_rows.is_some() {
        return None;
    }
    let known = Known { num_rows: Some(0), ..work.known };
    Some(estimate(&Work { known, missing_elements: 0, ..*work }, rates))
}

fn on_device(work: &Work, effort: &Effort) -> String {
    let resident = if work.missing_elements == 0 { ", the corpus lies on the device" } else { "" };
    let device_s = effort.device_s + effort.copies_s;
    format!(
        "estimated {device_s:.3} s instead of {:.3} s on {} cores{resident}",
        effort.cores_s, work.num_cores
    )
}

fn estimate(work: &Work, rates: &CorpusRates) -> Effort {
    let task = work.task.rated();
    let (units, of_task) = (task.num_units(work.shape), rates.for_task(task));
    let rows = work.known.num_rows.unwrap_or(units).min(units) as f64;
    let num_elements = work.shape.num_elements;
    let of_cores =
        |seconds: f64| seconds * of_task.for_cores_and_elements(work.num_cores, num_elements);
    let joined = match work.join {
        Join::None => 0.0,
        Join::Merged => rows * rates.merge_s,
        Join::Sorted => rows * rates.sort_s,
    };
    let device_s = rates.task_s
        + units as f64 * of_task.unit_s
        + rows * rates.row_s
        + joined * of_task.for_cores(work.num_cores);
    // If segments keep the words, nothing is counted. Earlier times then do not predict counting.
    let known = if work.are_words_kept { Known::default() } else { work.known };
    Effort {
        cores_s: known.cores_s.unwrap_or_else(|| of_cores(task.one_core_s(work.shape))),
        device_s: known.device_s.unwrap_or(device_s),
        copies_s: work.missing_elements as f64 * rates.prepare_s,
        saved_s: work.known.missed_s,
        startup_s: rates.startup_s,
        margin: rates.margin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::Calibration;
    use crate::throughput::calibration::{DeviceCalibration, Growth};

    const MIB: u64 = 1 << 20;

    /// Returns a task over a text of `len_bytes` bytes with one element for three words.
    fn work(len_bytes: u64, num_cores: usize) -> Work {
        let num_words = len_bytes / 6;
        let shape = SegmentShape {
            num_docs: num_words / 1000 + 1,
            num_words,
            num_elements: num_words / 3 + 1,
            len_bytes,
            vocabulary_len: 30_000,
        };
        Work {
            task: SEQUENCES,
            shape,
            missing_elements: shape.num_elements,
            join: Join::None,
            known: Known::default(),
            num_cores,
            are_words_kept: false,
        }
    }

    /// Returns the rates of fast kernels with hardly any copying.
    fn fast() -> CorpusRates {
        let mut rates = CorpusRates { prepare_s: 1e-9, row_s: 1e-12, ..CorpusRates::default() };
        rates.tasks.iter_mut().for_each(|of_task| of_task.unit_s = 2e-9);
        rates
    }

    const SEQUENCES: Task = Task::SequenceCount { num_words: 3, is_folded: false };
    /// Tasks that a device can do, in the order of their rates.
    const TASKS: [Task; 5] = [
        SEQUENCES,
        Task::TermVector { is_part: false },
        Task::InvertedIndex { is_folded: true },
        Task::Cooccurrence { window: 5, is_folded: false },
        Task::RankedInvertedIndex { num_words: 2, is_folded: true, is_part: false },
    ];

    /// Returns the place and the reason with an open device.
    fn chosen(work: &Work, rates: &CorpusRates) -> (bool, String) {
        let choice = choose(work, rates, || DeviceState::Open);
        (choice.is_on_device, choice.reason)
    }

    fn is_on_device(work: &Work, rates: &CorpusRates) -> bool {
        chosen(work, rates).0
    }

    #[test]
    fn small_corpora_and_words_stay_on_the_cores() {
        for rates in [CorpusRates::default(), fast()] {
            for len_bytes in [0, 1, 1000, 10_000] {
                for task in TASKS {
                    let work = Work { task, ..work(len_bytes, 1) };
                    let (is_chosen, reason) = chosen(&work, &rates);
                    assert!(!is_chosen, "{work:?}");
                    assert_eq!(reason, "estimated to take less time than on a device");
                }
            }
        }
    }

    #[test]
    fn some_documents_are_counted_on_the_cores() {
        for (whole, part) in [
            (Task::TermVector { is_part: false }, Task::TermVector { is_part: true }),
            (
                Task::RankedInvertedIndex { num_words: 3, is_folded: false, is_part: false },
                Task::RankedInvertedIndex { num_words: 3, is_folded: false, is_part: true },
            ),
        ] {
            let large = work(1000 * MIB, 1);
            assert!(is_on_device(&Work { task: whole, ..large }, &fast()));
            let (is_chosen, reason) = chosen(&Work { task: part, ..large }, &fast());
            assert!(!is_chosen && reason == SOME_DOCUMENTS);
        }
    }

    #[test]
    fn words_that_are_kept_need_no_device() {
        let task = Task::TermVector { is_part: false };
        let large = Work { task, ..work(1000 * MIB, 1) };
        assert!(is_on_device(&large, &fast()));
        let (is_chosen, reason) = chosen(&Work { are_words_kept: true, ..large }, &fast());
        assert!(!is_chosen && reason == WORDS_KEPT, "{reason}");
        // If a device would be slower anyway, the reason says that.
        let small = Work { task, are_words_kept: true, ..work(1000, 1) };
        let (is_chosen, reason) = chosen(&small, &fast());
        assert!(!is_chosen && reason.starts_with("estimated to take less time"), "{reason}");
    }

    /// Rates of one kind of task do not change the choice for another kind.
    #[test]
    fn each_kind_has_its_own_rates() {
        for (at, task) in TASKS.into_iter().enumerate() {
            let mut rates = fast();
            rates.tasks[at].unit_s = 1e-3;
            for other in TASKS {
                let work = Work { task: other, ..work(1000 * MIB, 1) };
                assert_eq!(is_on_device(&work, &rates), other != task, "{other:?}");
            }
        }
    }

    #[test]
    fn what_is_there_already_is_not_paid_again() {
        let rates = CorpusRates { prepare_s: 1e-6, ..fast() };
        let cold = work(200 * MIB, 4);
        let (is_chosen, reason) = chosen(&cold, &rates);
        assert!(!is_chosen && reason.ends_with("a device that lacks the corpus"), "{reason}");
        let (is_chosen, reason) = chosen(&Work { missing_elements: 0, ..cold }, &rates);
        assert!(
            is_chosen && reason.ends_with("4 cores, the corpus lies on the device"),
            "{reason}"
        );
        // The corpus is copied when the missed time is as long as copying takes.
        let effort = estimate(&cold, &rates);
        let known = Known { missed_s: effort.copies_s, ..Known::default() };
        let often = Work { known, ..cold };
        assert!(is_on_device(&often, &rates));
    }

    #[test]
    fn a_device_is_opened_for_much_work_only() {
        let closed = |len_bytes| choose(&work(len_bytes, 4), &fast(), || DeviceState::Closed);
        let little = closed(10 * MIB);
        assert!(!little.is_on_device && little.missed.is_some());
        assert!(little.reason.ends_with("a device that is to be opened first"), "{little:?}");
        assert!(closed(1000 * MIB).is_on_device);
        assert!(is_on_device(&work(10 * MIB, 4), &fast()));
        let opening = || DeviceState::Opening { elapsed_s: 0.01 };
        assert_eq!(
            choose(&work(10 * MIB, 4), &fast(), opening).reason,
            "the device is being opened"
        );
        // Work that the cores do faster adds no missed time.
        let tiny = choose(&work(1000, 4), &fast(), || unreachable!("nobody asks the driver"));
        assert_eq!(tiny.missed, None);
    }

    #[test]
    fn more_cores_and_joined_rows_speak_for_the_cores() {
        let rates = fast();
        let chosen = |num_cores| is_on_device(&work(100 * MIB, num_cores), &rates);
        assert!(chosen(1) && chosen(16) && !chosen(4096));
        let slow_join = CorpusRates { merge_s: 1e-6, sort_s: 1e-6, ..rates };
        let alone = work(100 * MIB, 16);
        assert!(is_on_device(&alone, &slow_join));
        for join in [Join::Merged, Join::Sorted] {
            let joined = Work { join, ..alone };
            assert!(!is_on_device(&joined, &slow_join));
            // Few rows are joined quickly.
            let known = Known { num_rows: Some(1000), ..Known::default() };
            assert!(is_on_device(&Work { known, ..joined }, &slow_join));
        }
    }

    /// Cores take longer if a corpus does not fit into their cache. So a device is worth it for a
    /// large grammar, and not for a small grammar of the same text.
    #[test]
    fn large_grammars_speak_for_the_device() {
        let mut rates = fast();
        let large = work(200 * MIB, 16);
        rates.tasks.iter_mut().for_each(|of_task| of_task.unit_s = 9e-9);
        assert!(!is_on_device(&large, &rates));
        let growth = |factor| Some(Growth { elements: [1e5, 1e6], factor });
        rates.tasks[0].growth = growth(4.0);
        assert!(is_on_device(&large, &rates));
        rates.tasks[0].growth = growth(0.25);
        assert!(!is_on_device(&large, &rates));
    }

    /// Measured on an H100 with 16 cores: corpora of 208 MiB, nothing on the device. Whole calls,
    /// without inverse grammar and weights, took 1/7 to 1.15 times the time of all cores.
    #[test]
    fn built_in_rates_are_cautious() {
        for num_cores in [16, 64] {
            assert!(!is_on_device(&work(208 * MIB, num_cores), &CorpusRates::default()));
        }
    }

    /// The first task over a large corpus opens the device, that over a small one does not. Once
    /// the number of rows is known, the estimate uses it.
    #[test]
    fn rows_that_are_unknown_are_hoped_to_be_few() {
        let rates = fast();
        let gain_s = |work: &Work| hoped(work, &rates).map(|effort| effort.gain_s());
        let large = work(250 * MIB, 16);
        assert!(gain_s(&large).unwrap() * 16.0 > rates.startup_s);
        assert!(gain_s(&work(MIB, 16)).unwrap() * 16.0 < rates.startup_s);
        let known = Known { num_rows: Some(1), ..Known::default() };
        assert_eq!(gain_s(&Work { known, ..large }), None);
    }

    /// Texts of three kinds, 250 MiB each, on 16 cores (benches/results/2026-11-22-h100.md). Once
    /// the numbers of rows are known, sequences, pairs and ranks go to an open H200, copies
    /// included, without a calibration. Ranks of versioned text take longer on the cores than
    /// estimated. They go to the device after that time was measured.
    #[test]
    fn known_devices_count_large_corpora() {
        let h200 = DeviceCalibration::for_known_device("NVIDIA H200");
        let rates = Calibration { device: h200, ..Calibration::default() }.corpus_rates();
        let pairs = Task::Cooccurrence { window: 5, is_folded: false };
        let ranked = Task::RankedInvertedIndex { num_words: 3, is_folded: false, is_part: false };
        // Log, versioned text, prose: words for each element, and millions of rows.
        for (words_of_an_element, rows) in
            [(4, [2.4, 6.7, 19.2]), (23, [1.5, 3.7, 36.9]), (1, [31.7, 51.1, 40.0])]
        {
            for (task, millions) in [SEQUENCES, pairs, ranked].into_iter().zip(rows) {
                let mut work = Work { task, ..work(250 * MIB, 16) };
                work.shape.num_elements = work.shape.num_words / words_of_an_element;
                work.missing_elements = work.shape.num_elements;
                work.known.num_rows = Some((millions * 1e6) as u64);
                if task == ranked && words_of_an_element == 23 {
                    assert!(!is_on_device(&work, &rates));
                    work.known.cores_s = Some(1.63);
                }
                let (is_chosen, reason) = chosen(&work, &rates);
                let effort = estimate(&work, &rates);
                assert!(is_chosen, "{words_of_an_element} {task:?}: {reason} {effort:?}");
            }
        }
    }

    /// Measured times replace wrong estimates.
    #[test]
    fn times_replace_estimates() {
        let work = work(100 * MIB, 16);
        assert!(is_on_device(&work, &fast()));
        let with = |cores_s, device_s| {
            let known = Known { cores_s, device_s, ..Known::default() };
            is_on_device(&Work { known, missing_elements: 0, ..work }, &fast())
        };
        assert!(!with(None, Some(9.0)) && with(Some(90.0), Some(9.0)));
        assert!(!with(Some(1e-3), None) && with(Some(9.0), None));
    }

    #[test]
    fn a_choice_is_never_worse_than_the_margin_by_its_own_estimate() {
        for (rates, task) in
            [CorpusRates::default(), fast()].into_iter().flat_map(|r| TASKS.map(|t| (r, t)))
        {
            for bits in 0..32 {
                for num_cores in [1, 3, 16, 128] {
                    for (state, startup_s) in
                        [(DeviceState::Open, 0.0), (DeviceState::Closed, rates.startup_s)]
                    {
                        let work = Work { task, ..work(1 << bits, num_cores) };
                        let effort = estimate(&work, &rates);
                        let whole_s = effort.device_s + startup_s + effort.copies_s;
                        let choice = choose(&work, &rates, || state);
                        assert_eq!(choice.is_on_device, whole_s <= rates.margin * effort.cores_s);
                        assert!(whole_s > 0.0 && effort.cores_s > 0.0 && rates.margin <= 0.95);
                    }
                }
            }
        }
    }
}
