//! Whether a device is worth it for a batch of questions: two estimates, a margin, and what came before.
//!
//! ```text
//! cores    questions and bytes, in the time of these cores
//! device   a batch for each segment + questions + bytes       with everything open and resident
//! once     startup + elements * prepare                       unless open; unless resident
//! ```
//!
//! A batch alone hardly ever pays for a copy that all batches of a statement profit from, and nobody knows
//! how many there will be. So what the device would have saved is added up, and the copy is made when
//! that is as much as it costs: a statement never takes twice as long as the better of both ways
//! (the ski-rental rule, Karlin et al., Algorithmica 1988).

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
    pub(super) is_device_open: bool,
}

/// Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Estimate {
    cores: f64,
    device: f64,
    once: f64,
}

/// Whether the device is to be used, and why; `saved_s` is what it would have saved before.
pub(super) fn choose(work: &Work, rates: &BatchRates, saved_s: &mut f64) -> (bool, &'static str) {
    let Estimate { cores, device, once } = estimate(work, rates);
    let saves = rates.margin * cores - device;
    if saves < 0.0 {
        return (false, "estimated to take less time than on a device");
    }
    if *saved_s + saves >= once {
        *saved_s = 0.0;
        return (true, "estimated to take less time than on the cores");
    }
    *saved_s += saves;
    match work.is_device_open {
        true => (false, "not yet worth a copy of the corpus on a device"),
        false => (false, "not yet worth opening a device"),
    }
}

fn estimate(work: &Work, rates: &BatchRates) -> Estimate {
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
    let startup = if work.is_device_open { 0.0 } else { rates.startup_s };
    Estimate {
        cores: one_core * of_cores,
        device: work.num_segments.max(1) as f64 * rates.device_batch_s
            + questions * rates.device_question_s
            + answers,
        once: startup + work.missing_elements as f64 * rates.prepare_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 bytes each of a text of 128 MiB, as many words of small documents.
    fn passages(num_questions: u64) -> Work {
        Work {
            asked: Asked::Passages { len_bytes: 64 * num_questions },
            num_questions,
            num_segments: 1,
            text_bytes: 128 << 20,
            missing_elements: 0,
            num_cores: 16,
            is_device_open: true,
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
        choose(work, rates, &mut 0.0).0
    }

    #[test]
    fn few_questions_stay_on_the_cores() {
        let rates = BatchRates::default();
        for num_questions in [0, 1, 10, 100] {
            for work in [passages(num_questions), words(num_questions)] {
                let mut saved_s = 0.0;
                let (is_chosen, reason) = choose(&work, &rates, &mut saved_s);
                assert!(!is_chosen && saved_s == 0.0, "{num_questions}");
                assert_eq!(reason, "estimated to take less time than on a device");
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
    fn a_copy_is_made_when_it_would_have_paid() {
        let rates = BatchRates::default();
        let cold = Work { missing_elements: 10_000_000, ..words(8192) };
        let Estimate { cores, device, once } = estimate(&cold, &rates);
        let saves = rates.margin * cores - device;
        assert!(saves > 0.0 && saves < once);
        let (mut saved_s, mut lost) = (0.0, 0.0);
        let chosen_at = (1..1000).find(|_| {
            let (is_chosen, reason) = choose(&cold, &rates, &mut saved_s);
            if !is_chosen {
                assert_eq!(reason, "not yet worth a copy of the corpus on a device");
                lost += saves;
            }
            is_chosen
        });
        assert_eq!(chosen_at, Some((once / saves).ceil() as usize));
        // No more was lost than the copy costs, and the next copy is not paid by the same batches.
        assert!(lost <= once && saved_s == 0.0);
        let closed = Work { is_device_open: false, ..cold };
        assert_eq!(choose(&closed, &rates, &mut 0.0).1, "not yet worth opening a device");
    }

    #[test]
    fn larger_texts_take_cores_longer() {
        let rates = BatchRates::default();
        let seconds = |text_bytes| estimate(&Work { text_bytes, ..passages(10_000) }, &rates).cores;
        assert_eq!(seconds(0), seconds(4 << 20));
        let ratio = seconds(1 << 30) / seconds(64 << 20);
        assert!((1.9..2.0).contains(&ratio), "{ratio}");
    }
}
