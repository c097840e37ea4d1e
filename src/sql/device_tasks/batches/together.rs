//! Batches that wait for devices go there together.
//!
//! ```text
//! thread 1   asks, leads ── its questions ─────────────▶ answers
//! thread 2      asks, waits ...... leads ── questions of 2, 3 and 4 ──▶ answers, each its own
//! thread 3        asks, waits ........................................▶ answers
//! thread 4          asks, waits ......................................▶ answers
//! ```
//!
//! Batches of a statement come from as many threads as it has partitions, some thousand rows each, and a
//! device does more for many questions than for few: it reads a document once, and begins once. So whoever
//! finds the devices free asks for all who wait (flat combining, Hendler et al., SPAA 2010). Questions that
//! fail together are asked one batch after the other: together they may need more memory than there is.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::take;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cut::BySegment;

/// Answers of a segment, in the order of its questions.
pub(super) trait Answers: Sized {
    /// Those of the first so many questions, of the next, and so on.
    fn split(self, counts: &[usize]) -> Vec<Self>;
}

impl Answers for Vec<u64> {
    fn split(self, counts: &[usize]) -> Vec<Self> {
        let mut rest = self.into_iter();
        counts.iter().map(|&count| rest.by_ref().take(count).collect()).collect()
    }
}

/// Answers of several values each: where each starts and the last ends, and all values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Runs<T> {
    pub(super) starts: Vec<u64>,
    pub(super) values: Vec<T>,
}

impl<T> Runs<T> {
    /// The values of each question.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[T]> {
        let ranges = self.starts.windows(2);
        ranges.map(|range| &self.values[range[0] as usize..range[1] as usize])
    }
}

impl<T: Clone> Answers for Runs<T> {
    fn split(self, counts: &[usize]) -> Vec<Self> {
        let mut first = 0;
        let part = |&count: &usize| {
            let starts = &self.starts[first..=first + count];
            first += count;
            let (from, to) = (starts[0], starts[count]);
            let values = self.values[from as usize..to as usize].to_vec();
            Self { starts: starts.iter().map(|start| start - from).collect(), values }
        };
        counts.iter().map(part).collect()
    }
}

/// What a batch asks of segments, and what each of them answers.
pub(super) type Answered<Q, A> = (BySegment<Q>, Vec<A>);

/// A batch that waits.
struct Waiting<Q, A> {
    parts: BySegment<Q>,
    answer: Sender<Result<Answered<Q, A>, String>>,
}

/// Those that wait; see the module's description.
pub(super) struct Queue<Q, A> {
    waiting: Mutex<Vec<Waiting<Q, A>>>,
    leader: Mutex<()>,
}

impl<Q, A> Default for Queue<Q, A> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), leader: Mutex::default() }
    }
}

impl<Q, A> fmt::Debug for Queue<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue of {}", lock(&self.waiting).len())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<Q: Clone, A: Answers> Queue<Q, A> {
    /// What `ask` answers to `parts` for each segment, with those of others or alone.
    pub(super) fn ask(
        &self,
        parts: BySegment<Q>,
        ask: impl Fn(&BySegment<Q>) -> Result<Vec<A>, String>,
    ) -> Result<Answered<Q, A>, String> {
        let (answer, answered) = channel();
        lock(&self.waiting).push(Waiting { parts, answer });
        let leader = lock(&self.leader);
        if let Ok(answer) = answered.try_recv() {
            return answer;
        }
        answer_all(take(&mut *lock(&self.waiting)), ask);
        drop(leader);
        // Empty where the thread broke that took the questions along.
        answered.try_recv().unwrap_or_else(|_| Err("asking a device broke".to_owned()))
    }
}

fn answer_all<Q: Clone, A: Answers>(
    all: Vec<Waiting<Q, A>>,
    ask: impl Fn(&BySegment<Q>) -> Result<Vec<A>, String>,
) {
    let together = match &all[..] {
        [] | [_] => None,
        several => answer_together(several, &ask),
    };
    let answers = match together {
        Some(answers) => answers.into_iter().map(Ok).collect(),
        None => all.iter().map(|one| ask(&one.parts)).collect::<Vec<_>>(),
    };
    for (one, answer) in all.into_iter().zip(answers) {
        // Whoever asked waits.
        let _ = one.answer.send(answer.map(|answers| (one.parts, answers)));
    }
}

/// The answers to each; `None` where they cannot be had together.
fn answer_together<Q: Clone, A: Answers>(
    all: &[Waiting<Q, A>],
    ask: impl Fn(&BySegment<Q>) -> Result<Vec<A>, String>,
) -> Option<Vec<Vec<A>>> {
    let mut merged = BySegment::none();
    for one in all {
        for segment in one.parts.segments() {
            one.parts.of(segment).iter().for_each(|part| merged.add(segment, part.clone()));
        }
    }
    let answers = ask(&merged).ok()?;
    let mut of_segments: BTreeMap<usize, Vec<Option<A>>> = BTreeMap::new();
    for (segment, answers) in merged.segments().iter().zip(answers) {
        let counts: Vec<usize> = all.iter().map(|one| one.parts.of(segment).len()).collect();
        let split = answers.split(&counts).into_iter().map(Some).collect();
        of_segments.insert(Arc::as_ptr(segment).addr(), split);
    }
    let of_one = |(at, one): (usize, &Waiting<Q, A>)| {
        let segments = one.parts.segments().iter();
        segments.map(|of| of_segments.get_mut(&Arc::as_ptr(of).addr())?[at].take()).collect()
    };
    all.iter().enumerate().map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::corpus::{Corpus, CorpusBuilder, IngestOptions, OpenLimits, Segment};

    fn segments(number: usize) -> Vec<Arc<Segment>> {
        let segment = |_| {
            let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
            builder.push_document("a", b"a").unwrap();
            let file = builder.finish(None).unwrap().0;
            let corpus = Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1;
            corpus.segments()[0].clone()
        };
        (0..number).map(segment).collect()
    }

    fn parts(segments: &[Arc<Segment>], questions: &[(usize, u64)]) -> BySegment<u64> {
        let mut parts = BySegment::none();
        questions.iter().for_each(|&(segment, question)| parts.add(&segments[segment], question));
        parts
    }

    /// Each question is answered by so many times itself.
    fn repeated(parts: &BySegment<u64>) -> Vec<Runs<u64>> {
        let of_segment = |segment: &Arc<Segment>| {
            let mut runs = Runs { starts: vec![0], values: vec![] };
            for &question in parts.of(segment) {
                runs.values.extend((0..question).map(|_| question));
                runs.starts.push(runs.values.len() as u64);
            }
            runs
        };
        parts.segments().iter().map(of_segment).collect()
    }

    const QUESTIONS: [&[(usize, u64)]; 5] =
        [&[(0, 3), (1, 0), (0, 1)], &[(2, 4)], &[], &[(1, 2), (0, 5), (2, 0)], &[(1, 7), (1, 7)]];

    #[test]
    fn answers_given_together_are_those_given_alone() {
        let segments = segments(3);
        let (mut all, mut answers) = (Vec::new(), Vec::new());
        for questions in QUESTIONS {
            let (answer, answered) = channel();
            all.push(Waiting { parts: parts(&segments, questions), answer });
            answers.push(answered);
        }
        let num_asked = AtomicUsize::new(0);
        answer_all(all, |parts| {
            num_asked.fetch_add(1, Ordering::Relaxed);
            Ok(repeated(parts))
        });
        assert_eq!(num_asked.into_inner(), 1);
        for (questions, answered) in QUESTIONS.iter().zip(answers) {
            let (of, answer) = answered.try_recv().unwrap().unwrap();
            assert_eq!(answer, repeated(&parts(&segments, questions)));
            assert_eq!(answer, repeated(&of));
        }
        assert_eq!(vec![1, 2, 3u64].split(&[1, 0, 2]), [vec![1], vec![], vec![2, 3]]);
    }

    #[test]
    fn what_fails_together_is_asked_one_by_one() {
        let segments = segments(3);
        let (mut all, mut answers) = (Vec::new(), Vec::new());
        for questions in QUESTIONS {
            let (answer, answered) = channel();
            all.push(Waiting { parts: parts(&segments, questions), answer });
            answers.push(answered);
        }
        // Room for two questions of a segment, and none for a 7.
        answer_all(all, |parts: &BySegment<u64>| {
            let of = |segment| parts.of(segment);
            let is_full = parts.segments().iter().any(|at| of(at).len() > 2 || of(at).contains(&7));
            if is_full { Err("full".to_owned()) } else { Ok(repeated(parts)) }
        });
        let outcomes = answers.iter().map(|answered| answered.try_recv().unwrap().is_ok());
        assert_eq!(outcomes.collect::<Vec<_>>(), [true, true, true, true, false]);
    }

    #[test]
    fn threads_get_their_own_answers() {
        let (segments, queue) = (segments(3), Queue::default());
        let (start, num_questions) = (Barrier::new(4), AtomicUsize::new(0));
        thread::scope(|scope| {
            for thread in 0..4 {
                let (segments, queue, start) = (&segments, &queue, &start);
                let num_questions = &num_questions;
                scope.spawn(move || {
                    start.wait();
                    for round in 0..50 {
                        let questions = [(thread % 3, round), (round as usize % 3, thread as u64)];
                        let ask = |parts: &BySegment<u64>| {
                            let of = |segment| parts.of(segment).len();
                            let number = parts.segments().iter().map(of).sum();
                            num_questions.fetch_add(number, Ordering::Relaxed);
                            Ok(repeated(parts))
                        };
                        let (_, answer) = queue.ask(parts(segments, &questions), ask).unwrap();
                        assert_eq!(answer, repeated(&parts(segments, &questions)));
                    }
                });
            }
        });
        assert_eq!(num_questions.into_inner(), 4 * 50 * 2);
        // A thread that breaks takes nobody along.
        let broken = thread::scope(|scope| {
            let broken = || {
                let ask = |_: &BySegment<u64>| -> Result<_, String> { panic!("broken") };
                queue.ask(parts(&segments, &[(0, 1)]), ask).is_ok()
            };
            scope.spawn(broken).join()
        });
        assert!(broken.is_err());
        let (_, answer) = queue
            .ask(parts(&segments, &[(0, 1)]), |parts: &BySegment<u64>| Ok(repeated(parts)))
            .unwrap();
        assert_eq!(answer[0].values, [1]);
    }
}
