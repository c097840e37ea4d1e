//! CPU or GPU for the batches of one call in a statement, and what came of it.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU; an error where there is no device
//!                auto ─▶ the chooser, batch by batch: CPU, or GPU where one is open by then
//! ```
//!
//! Nothing is known of a batch before it comes, so this is decided while the statement runs. Batches come
//! from several threads; what is remembered is what any of them saw last.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time,
};

use super::answers::{Devices, Terms, missing_elements};
use super::chooser::{Asked, Work, estimate};
use crate::access::{ExtractQuery, OffsetLists, WordPlan};
use crate::corpus::{Corpus, Segment};
use crate::ingestion::calibration::BatchRates;
use crate::ingestion::{Decision, DeviceState, Hindrance, decide};
use crate::sql::gsst::{calibration, device};
use crate::sql::options::{Device, TadocOptions};
use crate::sql::table::LoadedTable;

/// See the module's description.
#[derive(Debug)]
pub(in crate::sql) struct Batches {
    state: Mutex<State>,
    devices: Devices,
    metrics: ExecutionPlanMetricsSet,
    on_device: Count,
    questions: Count,
    uploaded: Count,
    fallbacks: Count,
    time: Time,
}

#[derive(Debug, Default)]
struct State {
    /// Read with the first batch that is chosen for.
    rates: Option<BatchRates>,
    /// What devices would have saved so far.
    saved_s: f64,
    /// Why no device is asked any more: there is none, or it failed.
    problem: Option<String>,
    /// Why the last batch that the CPU answered was not for a device.
    reason: Option<String>,
}

impl Default for Batches {
    fn default() -> Self {
        let metrics = ExecutionPlanMetricsSet::new();
        let counter = |name: &'static str| MetricBuilder::new(&metrics).counter(name, 0);
        Self {
            state: Mutex::default(),
            devices: Devices::default(),
            on_device: counter("device_batches"),
            questions: counter("device_questions"),
            uploaded: counter("device_upload_bytes"),
            fallbacks: counter("device_fallbacks"),
            time: MetricBuilder::new(&metrics).subset_time("time_on_device", 0),
            metrics,
        }
    }
}

impl Batches {
    /// The bytes of the passages of `queries`, which are there and end at `ends`; `None`: the CPU reads.
    ///
    /// # Errors
    /// Where a device is demanded, and there is none.
    pub(in crate::sql) fn passages(
        &self,
        table: &LoadedTable,
        queries: &[ExtractQuery],
        ends: &[usize],
    ) -> Result<Option<Vec<u8>>> {
        let corpus = &table.corpus.corpus;
        let len_bytes = ends.last().copied().unwrap_or(0) as u64;
        let asked = || Asked::Passages { len_bytes };
        self.answer(table, queries.len(), asked, |devices, terms| {
            devices.passages(terms, corpus, queries, ends)
        })
    }

    /// How often words occur in documents, as `plan` has them; `None`: the CPU counts.
    ///
    /// # Errors
    /// As [`passages`](Self::passages).
    pub(in crate::sql) fn counts(
        &self,
        table: &LoadedTable,
        plan: &WordPlan<'_>,
    ) -> Result<Option<Vec<u64>>> {
        let corpus = &table.corpus.corpus;
        let asked = || Asked::Words {
            effort_bytes: plan.effort_bytes(),
            read_bytes: plan.text_bytes(),
            num_places: 0,
        };
        self.answer(table, plan.num_parts(), asked, |devices, terms| {
            devices.counts(terms, corpus, plan)
        })
    }

    /// Where words begin in documents, `tadoc.max_hits` places at most; `None`: the CPU looks for them.
    ///
    /// # Errors
    /// As [`passages`](Self::passages).
    pub(in crate::sql) fn lists(
        &self,
        table: &LoadedTable,
        plan: &WordPlan<'_>,
    ) -> Result<Option<OffsetLists>> {
        let (corpus, max_hits) = (&table.corpus.corpus, table.options.max_hits);
        let asked = || Asked::Words {
            effort_bytes: plan.effort_bytes(),
            read_bytes: plan.text_bytes(),
            num_places: plan.expected_places(),
        };
        self.answer(table, plan.num_parts(), asked, |devices, terms| {
            devices.lists(terms, corpus, plan, max_hits)
        })
    }

    /// What devices did.
    pub(super) fn metrics(&self) -> MetricsSet {
        self.metrics.clone_inner()
    }

    fn answer<T>(
        &self,
        table: &LoadedTable,
        num_questions: usize,
        asked: impl FnOnce() -> Asked,
        ask: impl FnOnce(&Devices, Terms<'_>) -> std::result::Result<T, String>,
    ) -> Result<Option<T>> {
        let (corpus, options) = (&table.corpus.corpus, &table.options);
        let work = || work(corpus, num_questions, asked());
        if num_questions == 0 || !self.is_on_device(options, work)? {
            return Ok(None);
        }
        let terms = Terms { max_bytes: options.gpu_memory_bytes, uploaded: &self.uploaded };
        let timer = self.time.timer();
        let answer = ask(&self.devices, terms);
        timer.done();
        Ok(self.noted(answer, num_questions))
    }

    /// Whether a batch is for a device.
    fn is_on_device(&self, options: &TadocOptions, work: impl FnOnce() -> Work) -> Result<bool> {
        if options.device == Device::Cpu {
            return Ok(self.stays("tadoc.device = cpu"));
        }
        if self.lock().problem.is_some() {
            return Ok(false);
        }
        if options.device == Device::Auto {
            return Ok(self.is_worth_a_device(&work(), device::state));
        }
        match device::problem() {
            None => Ok(true),
            Some(problem) => {
                plan_err!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'")
            }
        }
    }

    /// Decides whether a batch goes to a device in this `state`; notes the time that is missed where it does not.
    fn is_worth_a_device(&self, work: &Work, state: impl FnOnce() -> DeviceState) -> bool {
        let mut state_of_batches = self.lock();
        let rates = *state_of_batches.rates.get_or_insert_with(|| calibration().batch_rates());
        let work = Work { saved_s: state_of_batches.saved_s, ..*work };
        let effort = estimate(&work, &rates);
        let hindrance = match decide(&effort, state) {
            Decision::Device => {
                state_of_batches.saved_s = 0.0;
                return true;
            }
            Decision::Cores(Hindrance::Missing(problem)) => {
                state_of_batches.problem = Some(problem);
                return false;
            }
            Decision::Cores(hindrance) => hindrance,
        };
        if hindrance != Hindrance::Slower {
            state_of_batches.saved_s += effort.gain_s();
            device::miss(effort.gain_s(), effort.startup_s, work.num_cores);
        }
        drop(state_of_batches);
        self.stays(&hindrance.to_string())
    }

    /// Notes what devices answered to so many questions.
    fn noted<T>(&self, answer: std::result::Result<T, String>, num_questions: usize) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.on_device.add(1);
                self.questions.add(num_questions);
                Some(answer)
            }
            Err(problem) => {
                tracing::warn!(%problem, "answering on the CPU");
                self.fallbacks.add(1);
                self.lock().problem = Some(problem);
                None
            }
        }
    }

    /// The CPU answers.
    fn stays(&self, reason: &str) -> bool {
        let mut state = self.lock();
        if state.reason.as_deref() != Some(reason) {
            state.reason = Some(reason.to_owned());
        }
        false
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Batches {
    /// Where batches were answered so far, and why; nothing where none has come.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let reason = state.problem.as_ref().or(state.reason.as_ref());
        match (self.on_device.value() > 0, reason) {
            (false, None) => Ok(()),
            (true, None) => f.write_str("gpu"),
            (false, Some(reason)) => write!(f, "cpu: {reason}"),
            (true, Some(reason)) => write!(f, "gpu and cpu: {reason}"),
        }
    }
}

/// What a batch of questions to all of `corpus` is.
fn work(corpus: &Corpus, num_questions: usize, asked: Asked) -> Work {
    let segments = corpus.segments();
    let text = |segment: &Arc<Segment>| segment.dag.len_bytes(segment.dag.num_terminals());
    Work {
        asked,
        num_questions: num_questions as u64,
        num_segments: segments.len().min(num_questions) as u64,
        text_bytes: segments.iter().map(text).fold(0, u64::saturating_add),
        missing_elements: missing_elements(segments.iter()),
        num_cores: rayon::current_num_threads(),
        saved_s: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So much that no device is too far away.
    fn much() -> Work {
        Work {
            asked: Asked::Words { effort_bytes: 1 << 50, read_bytes: 1, num_places: 0 },
            num_questions: 1 << 20,
            num_segments: 1,
            text_bytes: 1,
            missing_elements: 1,
            num_cores: 1,
            saved_s: 0.0,
        }
    }

    fn options(device: Device) -> TadocOptions {
        TadocOptions { device, ..TadocOptions::default() }
    }

    #[test]
    fn small_batches_and_the_setting_keep_the_cpu() {
        let batches = Batches::default();
        assert_eq!(batches.to_string(), "");
        assert!(!batches.is_on_device(&options(Device::Cpu), || unreachable!()).unwrap());
        assert_eq!(batches.to_string(), "cpu: tadoc.device = cpu");
        let little = Work { num_questions: 10, asked: Asked::Passages { len_bytes: 9 }, ..much() };
        assert!(!batches.is_on_device(&options(Device::Auto), || little).unwrap());
        assert_eq!(batches.to_string(), "cpu: estimated to take less time than on a device");
    }

    #[test]
    fn a_device_is_used_or_missed() {
        let (demanded, chosen) = (Batches::default(), Batches::default());
        let on_demand = demanded.is_on_device(&options(Device::Gpu), much);
        let by_choice = chosen.is_on_device(&options(Device::Auto), much).unwrap();
        match device::problem() {
            None => assert!(on_demand.unwrap() && by_choice),
            Some(problem) => {
                let error = on_demand.unwrap_err().to_string();
                assert!(error.contains(&format!("tadoc.device = gpu: {problem}; SET")), "{error}");
                assert!(!by_choice);
                assert_eq!(chosen.to_string(), format!("cpu: {problem}"));
            }
        }
    }

    /// A copy of the corpus is made when it would have paid, and not paid twice.
    #[test]
    fn batches_after_one_another_pay_for_a_copy() {
        let batches = Batches::default();
        let asked = Asked::Words { effort_bytes: 1 << 27, read_bytes: 1 << 20, num_places: 0 };
        let cold = Work { asked, num_questions: 8192, missing_elements: 20_000_000, ..much() };
        let effort = estimate(&cold, &BatchRates::default());
        let num_before = (effort.copies_s / effort.gain_s()).ceil() as usize - 1;
        assert!((1..100).contains(&num_before), "{effort:?}");
        batches.lock().rates = Some(BatchRates::default());
        for _of_two_copies in 0..2 {
            for _ in 0..num_before {
                assert!(!batches.is_worth_a_device(&cold, || DeviceState::Open));
                assert!(batches.to_string().ends_with("on a device that lacks the corpus"));
            }
            assert!(batches.is_worth_a_device(&cold, || DeviceState::Open));
        }
        let none = || DeviceState::Missing("no driver".to_owned());
        assert!(!batches.is_worth_a_device(&cold, none));
        assert_eq!(batches.to_string(), "cpu: no driver");
    }

    #[test]
    fn after_a_fault_the_cpu_answers_the_rest() {
        let batches = Batches::default();
        assert_eq!(batches.noted(Ok(7), 100), Some(7));
        assert_eq!(batches.to_string(), "gpu");
        assert_eq!(batches.noted::<u8>(Err("device 0 is lost".to_owned()), 100), None);
        assert_eq!(batches.to_string(), "gpu and cpu: device 0 is lost");
        for device in [Device::Gpu, Device::Auto] {
            assert!(!batches.is_on_device(&options(device), || unreachable!()).unwrap());
        }
        let metric = |name| batches.metrics().sum_by_name(name).unwrap().as_usize();
        let names = ["device_batches", "device_questions", "device_fallbacks"];
        assert_eq!(names.map(metric), [1, 100, 1]);
    }
}
