//! Whether a device is worth it for a task over a corpus: two estimates and a margin.
//!
//! ```text
//! device   startup + task + elements * prepare + units * unit + rows * (row + merge or sort)
//!          └ unless open    └ inverse grammar and copies, unless they lie there already
//! cores    what traversal_costs says, in the time of these cores for a grammar of this size
//! ```
//!
//! Units are windows, pairs or words, as the task has them. Numbers come from footers: units and rows are
//! taken to be as many as elements and words allow, which no device is chosen by hope for, unless the task
//! was done before on this corpus: then its rows are known. What both do with rows, making their texts, is
//! left out. Rates are those
//! that `tadoc calibrate` measured, or built-in ones. Sums over words need no device: the vocabulary has
//! counted them. Nor do some documents: the cores count these alone, a device all of them. Nor do words of
//! documents that the cores keep: nothing is counted then.

use crate::analytics::SegmentShape;
use crate::ingestion::calibration::{CorpusRates, CorpusTask};

use super::placement::{Join, Task};

/// What a task is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) task: Task,
    /// All segments.
    pub(super) shape: SegmentShape,
    /// Elements of segments that the device has nothing of.
    pub(super) missing_elements: u64,
    /// What becomes of rows of segments.
    pub(super) join: Join,
    /// Rows of the answer, where they are known.
    pub(super) num_rows: Option<u64>,
    pub(super) num_cores: usize,
    pub(super) is_device_open: bool,
    /// Whether the cores have what is asked for: words of documents.
    pub(super) are_words_kept: bool,
}

/// Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Estimate {
    cores: f64,
    /// With everything open and resident.
    device: f64,
    startup: f64,
    prepare: f64,
}

/// Where only these are counted, which the cores can.
pub(super) const SOME_DOCUMENTS: &str = "some documents are asked for";

/// Where words of documents are asked for that are there.
pub(super) const WORDS_KEPT: &str = "the words of documents are kept";

/// Whether the device is to be used, and why.
pub(super) fn choose(work: &Work, rates: &CorpusRates) -> (bool, String) {
    let Some(task) = work.task.rated() else {
        return (false, "the vocabulary has counted words".to_owned());
    };
    if work.task.is_part() {
        return (false, SOME_DOCUMENTS.to_owned());
    }
    let Estimate { cores, device, startup, prepare } = estimate(work, task, rates);
    let is_worth = |seconds: f64| seconds <= rates.margin * cores;
    let less = "estimated to take less time than";
    if is_worth(device + startup + prepare) {
        if work.are_words_kept {
            return (false, WORDS_KEPT.to_owned());
        }
        let resident =
            if work.missing_elements == 0 { ", the corpus lies on the device" } else { "" };
        return (true, format!("{less} on {} cores{resident}", work.num_cores));
    }
    let and = match (is_worth(device), is_worth(device + prepare)) {
        (false, _) => "",
        (true, true) => " that is to be opened first",
        (true, false) => " that lacks the corpus",
    };
    (false, format!("{less} on a device{and}"))
}

fn estimate(work: &Work, task: CorpusTask, rates: &CorpusRates) -> Estimate {
    let (units, of_task) = (task.num_units(work.shape), rates.of(task));
    let rows = work.num_rows.unwrap_or(units).min(units) as f64;
    let num_elements = work.shape.num_elements;
    let of_cores =
        |seconds: f64| seconds * of_task.of_cores_and_elements(work.num_cores, num_elements);
    let joined = match work.join {
        Join::None => 0.0,
        Join::Merged => rows * rates.merge_s,
        Join::Sorted => rows * rates.sort_s,
    };
    Estimate {
        cores: of_cores(task.one_core_s(work.shape)),
        device: rates.task_s
            + units as f64 * of_task.unit_s
            + rows * rates.row_s
            + joined * of_task.of_cores(work.num_cores),
        startup: if work.is_device_open { 0.0 } else { rates.startup_s },
        prepare: work.missing_elements as f64 * rates.prepare_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingestion::calibration::Growth;

    const MIB: u64 = 1 << 20;

    /// Text of so many bytes that a grammar makes a third of.
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
            num_rows: None,
            num_cores,
            is_device_open: true,
            are_words_kept: false,
        }
    }

    /// As fast as kernels are where nothing is copied.
    fn fast() -> CorpusRates {
        let mut rates = CorpusRates { prepare_s: 1e-9, row_s: 1e-12, ..CorpusRates::default() };
        rates.tasks.iter_mut().for_each(|of_task| of_task.unit_s = 2e-9);
        rates
    }

    const SEQUENCES: Task = Task::SequenceCount { num_words: 3, is_folded: false };
    /// Tasks that may be done on a device, with what rates they have.
    const TASKS: [Task; 5] = [
        SEQUENCES,
        Task::TermVector { is_part: false },
        Task::InvertedIndex { is_folded: true },
        Task::Cooccurrence { window: 5, is_folded: false },
        Task::RankedInvertedIndex { num_words: 2, is_folded: true, is_part: false },
    ];

    fn is_on_device(work: &Work, rates: &CorpusRates) -> bool {
        choose(work, rates).0
    }

    #[test]
    fn small_corpora_and_words_stay_on_the_cores() {
        for rates in [CorpusRates::default(), fast()] {
            for len_bytes in [0, 1, 1000, 10_000] {
                for task in TASKS {
                    let work = Work { task, ..work(len_bytes, 1) };
                    let (is_chosen, reason) = choose(&work, &rates);
                    assert!(!is_chosen, "{work:?}");
                    assert_eq!(reason, "estimated to take less time than on a device");
                }
            }
            let words = Work { task: Task::WordCount, ..work(MIB << 20, 1) };
            assert!(!is_on_device(&words, &rates));
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
            let (is_chosen, reason) = choose(&Work { task: part, ..large }, &fast());
            assert!(!is_chosen && reason == SOME_DOCUMENTS);
        }
    }

    #[test]
    fn words_that_are_kept_need_no_device() {
        let task = Task::TermVector { is_part: false };
        let large = Work { task, ..work(1000 * MIB, 1) };
        assert!(is_on_device(&large, &fast()));
        let (is_chosen, reason) = choose(&Work { are_words_kept: true, ..large }, &fast());
        assert!(!is_chosen && reason == WORDS_KEPT, "{reason}");
        // Where a device were not worth it anyway, that is said.
        let small = Work { task, are_words_kept: true, ..work(1000, 1) };
        let (is_chosen, reason) = choose(&small, &fast());
        assert!(!is_chosen && reason.starts_with("estimated to take less time"), "{reason}");
    }

    /// Rates of one kind of task say nothing of another.
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
        let (is_chosen, reason) = choose(&cold, &rates);
        assert!(!is_chosen && reason.ends_with("a device that lacks the corpus"), "{reason}");
        let (is_chosen, reason) = choose(&Work { missing_elements: 0, ..cold }, &rates);
        assert!(
            is_chosen && reason.ends_with("4 cores, the corpus lies on the device"),
            "{reason}"
        );
    }

    #[test]
    fn a_device_is_opened_for_much_work_only() {
        let closed = |len_bytes| Work { is_device_open: false, ..work(len_bytes, 4) };
        let (is_chosen, reason) = choose(&closed(10 * MIB), &fast());
        assert!(!is_chosen && reason.ends_with("a device that is to be opened first"), "{reason}");
        assert!(is_on_device(&closed(1000 * MIB), &fast()));
        assert!(is_on_device(&work(10 * MIB, 4), &fast()));
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
            // Few rows are joined soon.
            assert!(is_on_device(&Work { num_rows: Some(1000), ..joined }, &slow_join));
        }
    }

    /// Cores whose cache a corpus does not fit take longer, so that a device is worth it that is not for
    /// the same text where the grammar is small.
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

    /// The table of kernels/README.md: an H100 with 16 cores, 208 MiB each, nothing resident. Whole
    /// calls took 1.0 to 7 times less and 1.15 times more than all cores, without inverse grammar
    /// and weights.
    #[test]
    fn built_in_rates_are_cautious() {
        for num_cores in [16, 64] {
            assert!(!is_on_device(&work(208 * MIB, num_cores), &CorpusRates::default()));
        }
    }

    #[test]
    fn a_choice_is_never_worse_than_the_margin_by_its_own_estimate() {
        for (rates, task) in
            [CorpusRates::default(), fast()].into_iter().flat_map(|r| TASKS.map(|t| (r, t)))
        {
            for bits in 0..32 {
                for num_cores in [1, 3, 16, 128] {
                    for is_device_open in [true, false] {
                        let work = Work { task, is_device_open, ..work(1 << bits, num_cores) };
                        let Estimate { cores, device, startup, prepare } =
                            estimate(&work, task.rated().unwrap(), &rates);
                        let whole = device + startup + prepare;
                        assert_eq!(is_on_device(&work, &rates), whole <= rates.margin * cores);
                        assert!(whole > 0.0 && cores > 0.0 && rates.margin <= 0.95);
                    }
                }
            }
        }
    }
}
