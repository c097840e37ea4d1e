//! The times of a batch of questions on the cores and on a device, for `ingestion::decide`.
//!
//! ```text
//! cores    questions and bytes, in the time of these cores
//! device   a batch for each segment + questions + bytes       with everything open and resident
//! copies   elements * prepare                                 unless resident
//! ```
//!
//! A batch alone hardly ever pays for a copy that all batches of a statement profit from, and nobody knows
//! how many there will be. So what the device would have saved is added up.

use crate::ingestion::Effort;
use crate::ingestion::calibration::{BatchRates, PROBE_TEXT_BYTES};

/// Questions that one task of the cores answers.
const QUESTIONS_OF_A_CORE: u64 = 512;
/// How passages take longer in larger texts: the fourth root (benches/README.md: 0.84, 1.6, 2.7 µs at
/// 10 MB, 100 MB, 1 GB).
const SIZE_EXPONENT: f64 = 0.25;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    /// Passages of so many bytes together.
    Passages { len_bytes: u64 },
    /// Words of documents.
    Words {
        /// Text that one core could read meanwhile.
        effort_bytes: u64,
        /// Text of the documents.
        read_bytes: u64,
        /// Places that come back.
        num_places: u64,
    },
}

/// A batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) asked: Asked,
    pub(super) num_questions: u64,
    /// Those that are asked.
    pub(super) num_segments: u64,
    /// Text of them.
    pub(super) text_bytes: u64,
    /// Elements of those that no device has the text of.
    pub(super) missing_elements: u64,
    pub(super) num_cores: usize,
    /// Seconds that the device would have saved with batches before.
    pub(super) saved_s: f64,
}

/// Estimates the times of a batch.
pub(super) fn estimate(work: &Work, rates: &BatchRates) -> Effort {
    let questions = work.num_questions as f64;
    let of_cores = rates.of_cores(
        work.num_cores.min(work.num_questions.div_ceil(QUESTIONS_OF_A_CORE).max(1) as usize),
    );
    let (one_core, answers) = match work.asked {
        Asked::Passages { len_bytes } => {
            let size = (work.text_bytes as f64 / PROBE_TEXT_BYTES).max(1.0).powf(SIZE_EXPONENT);
            let bytes = len_bytes as f64;
            let one_core = questions * rates.passage_s * size + bytes * rates.passage_byte_s;
            (one_core, bytes * rates.device_passage_byte_s)
        }
        Asked::Words { effort_bytes, read_bytes, num_places } => (
            effort_bytes as f64 * rates.word_byte_s,
            read_bytes as f64 * rates.device_word_byte_s + num_places as f64 * rates.device_place_s,
        ),
    };
    Effort {
        cores_s: one_core * of_cores,
        device_s: work.num_segments.max(1) as f64 * rates.device_batch_s
            + questions * rates.device_question_s
            + answers,
        copies_s: work.missing_elements as f64 * rates.prepare_s,
        saved_s: work.saved_s,
        startup_s: rates.startup_s,
        margin: rates.margin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingestion::{Decision, DeviceState, Hindrance, decide};

    /// 64 bytes each of a text of 128 MiB, as many words of small documents.
    fn passages(num_questions: u64) -> Work {
        Work {
            asked: Asked::Passages { len_bytes: 64 * num_questions },
            num_questions,
            num_segments: 1,
            text_bytes: 128 << 20,
            missing_elements: 0,
            num_cores: 16,
            saved_s: 0.0,
        }
    }

    fn words(num_questions: u64) -> Work {
        let asked = Asked::Words {
            effort_bytes: 10_000 * num_questions,
            read_bytes: (2000 * num_questions).min(128 << 20),
            num_places: 0,
        };
        Work { asked, ..passages(num_questions) }
    }

    fn is_chosen(work: &Work, rates: &BatchRates) -> bool {
        decide(&estimate(work, rates), || DeviceState::Open) == Decision::Device
    }

    #[test]
    fn few_questions_stay_on_the_cores() {
        let rates = BatchRates::default();
        for num_questions in [0, 1, 10, 100] {
            for work in [passages(num_questions), words(num_questions)] {
                let decision = decide(&estimate(&work, &rates), || DeviceState::Open);
                assert_eq!(decision, Decision::Cores(Hindrance::Slower), "{num_questions}");
            }
        }
        assert!(is_chosen(&words(100_000), &rates) && is_chosen(&words(8192), &rates));
    }

    #[test]
    fn more_cores_segments_and_places_speak_for_the_cores() {
        let rates = BatchRates::default();
        let work = words(8192);
        assert!(is_chosen(&work, &rates));
        assert!(!is_chosen(&Work { num_segments: 100, ..work }, &rates));
        assert!(!is_chosen(&Work { num_cores: 1 << 20, ..words(1 << 20) }, &rates));
        let Asked::Words { effort_bytes, read_bytes, .. } = work.asked else { unreachable!() };
        let asked = Asked::Words { effort_bytes, read_bytes, num_places: 10_000_000 };
        assert!(!is_chosen(&Work { asked, ..work }, &rates));
        let one_core = Work { num_cores: 1, ..passages(8192) };
        assert!(is_chosen(&one_core, &rates));
        // Long passages are copied as fast as they are expanded.
        let asked = Asked::Passages { len_bytes: 8192 * 100_000 };
        assert!(!is_chosen(&Work { asked, ..one_core }, &rates));
    }

    #[test]
    fn larger_texts_take_cores_longer() {
        let rates = BatchRates::default();
        let seconds =
            |text_bytes| estimate(&Work { text_bytes, ..passages(10_000) }, &rates).cores_s;
        assert_eq!(seconds(0), seconds(4 << 20));
        let ratio = seconds(1 << 30) / seconds(64 << 20);
        assert!((1.9..2.0).contains(&ratio), "{ratio}");
    }
}
