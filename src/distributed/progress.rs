//! The progress of the scans of a task, and the choice of workers that are too slow.
//!
//! ```text
//! coordinator   task, its work ─▶ Tasks            worker   header ─▶ Scans of the task
//!               question, every second ══════════▶          scans that run, time with, time without
//!               one worker scans, the others have long ended ─▶ it is slow: the statement goes on without it
//!               one worker scans, this process would long have scanned all ─▶ the same
//! ```
//!
//! The coordinator sees no rows of a task that other workers read. So it asks all workers about the tasks with scans of
//! corpora, until the first row of the statement has come. Tasks of one stage have shares of one scan, so a task is as
//! long as its share is large. A worker is slow if most tasks of its stage have ended, and its own takes
//! [`SLOWNESS`] times what these took for the same work, and [`LEAST_WAIT`] more. What it did is lost, and the others
//! have their segments open.
//!
//! If no two others are left, as of two workers, the statement would go on in this process, with all of its work,
//! and perhaps with nothing open. So a worker is also slow if it takes [`SLOWNESS_ALONE`] times as long as this process
//! would for that: by the time that the others took for their parts, and at least by the planner's rates. While no
//! worker has ended, nothing is known.
//!
//! Times are measured by each worker alone, so clocks need not agree. A worker that does not answer is as its last
//! answer says. Rows that wait for a slow connection are not seen.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use datafusion_distributed::TaskKey;
use futures::future::{BoxFuture, join_all};
use http_body_util::{BodyExt, Limited};
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderMap, Request, Response, StatusCode};
use tonic::server::NamedService;
use tower::ServiceExt;
use url::Url;

use crate::connections::{Connections, check_version};
use crate::tasks::Work;

/// Header of the plan of a task, and of a question about it: the name of the task.
pub(super) const TASK_HEADER: &str = "x-tadoc-task";
/// Name of the service of workers, and path of its questions.
const SERVICE: &str = "tadoc.Progress";
const SCANS_PATH: &str = "/tadoc.Progress/Scans";
/// Most bytes of the name of a task, and of an answer.
const MAX_BYTES: usize = 100;

/// Time between two questions, and the longest time of an answer.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Times of others for the same work, from which on a worker is slow.
const SLOWNESS: f64 = 1.5;
/// The same of the time that this process would take for all work. It may have fewer cores than the workers.
const SLOWNESS_ALONE: f64 = 3.0;
/// Time that a worker has in any case after the others.
const LEAST_WAIT: Duration = Duration::from_secs(2);

/// The scans of a task on a worker.
#[derive(Debug, Default)]
pub(super) struct Scans(Mutex<Times>);

#[derive(Debug, Default, Clone, Copy)]
struct Times {
    num_running: usize,
    first_began: Option<Instant>,
    last_ended: Option<Instant>,
}

/// A scan that runs until this is dropped.
#[derive(Debug)]
pub(super) struct RunningScan(Arc<Scans>);

/// State of the scans of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    is_running: bool,
    /// Time from the begin of the first scan to the end of the last one, or to now.
    worked: Duration,
    /// Time since the last scan has ended.
    idle: Duration,
}

impl Scans {
    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a scan begins.
    pub(super) fn begin(self: &Arc<Self>) -> RunningScan {
        let mut times = self.times();
        times.num_running += 1;
        times.first_began.get_or_insert_with(Instant::now);
        RunningScan(Arc::clone(self))
    }

    /// Returns the state, or `None` if no scan has begun.
    fn progress(&self) -> Option<Progress> {
        let times = *self.times();
        let began = times.first_began?;
        let is_running = times.num_running > 0;
        let ended = times.last_ended.filter(|_| !is_running).unwrap_or_else(Instant::now);
        let worked = ended.saturating_duration_since(began);
        Some(Progress { is_running, worked, idle: ended.elapsed() })
    }
}

impl Drop for RunningScan {
    fn drop(&mut self) {
        let mut times = self.0.times();
        times.num_running -= 1;
        times.last_ended = Some(Instant::now());
    }
}

impl Progress {
    /// Returns the state as the text of an answer: 1 or 0, and milliseconds.
    fn text(self) -> String {
        format!("{} {} {}", u8::from(self.is_running), self.worked.as_millis(), self.idle.as_millis())
    }

    /// Reads the text of an answer.
    fn from_text(text: &str) -> Option<Self> {
        let numbers: Vec<u32> = text.split(' ').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let [is_running @ (0 | 1), worked, idle] = numbers[..] else { return None };
        let [worked, idle] = [worked, idle].map(|ms| Duration::from_millis(ms.into()));
        Some(Self { is_running: is_running == 1, worked, idle })
    }
}

/// The scans of all tasks of a worker, by the names of the tasks. A clone shares them.
#[derive(Debug, Clone, Default)]
pub(super) struct AllScans(Arc<Mutex<HashMap<String, Weak<Scans>>>>);

impl AllScans {
    /// Returns the scans of the task that `headers` name, which live as long as the task keeps them.
    pub(super) fn for_task(&self, headers: &HeaderMap) -> Option<Arc<Scans>> {
        let name = task_name(headers)?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scans) = all.get(name).and_then(Weak::upgrade) {
            return Some(scans);
        }
        all.retain(|_, scans| scans.strong_count() > 0);
        let scans = Arc::default();
        all.insert(name.to_owned(), Arc::downgrade(&scans));
        Some(scans)
    }

    fn progress(&self, headers: &HeaderMap) -> Option<Progress> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(task_name(headers)?)?.upgrade()?.progress()
    }
}

/// Returns the name of the task of a request.
fn task_name(headers: &HeaderMap) -> Option<&str> {
    headers.get(TASK_HEADER)?.to_str().ok().filter(|name| name.len() <= MAX_BYTES)
}

/// The service that says how far tasks are.
#[derive(Debug, Clone)]
pub(super) struct ProgressService(pub(super) AllScans);

impl NamedService for ProgressService {
    const NAME: &'static str = SERVICE;
}

impl Service<Request<Body>> for ProgressService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_known = check_version(request.headers()).is_ok() && request.uri().path() == SCANS_PATH;
        let progress = self.0.progress(request.headers()).filter(|_| is_known);
        let (status, text) = match progress {
            Some(progress) => (StatusCode::OK, progress.text()),
            None => (StatusCode::NOT_FOUND, String::new()),
        };
        let mut response = Response::new(Body::new(text.map_err(|never| match never {})));
        *response.status_mut() = status;
        Box::pin(async move { Ok(response) })
    }
}

/// Tasks with scans of corpora of one attempt of a statement.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<Vec<Task>>);

/// A task of a worker.
#[derive(Debug, Clone)]
struct Task {
    key: TaskKey,
    url: Url,
    /// Estimated work of its scans.
    work: Work,
    /// The last answer.
    progress: Option<Progress>,
}

impl Tasks {
    /// Notes that the worker at `url` gets a task with this `work`, and returns the name of the task.
    pub(super) fn add(&self, key: TaskKey, url: &Url, work: Work) -> String {
        let task = Task { key, url: url.clone(), work, progress: None };
        let name = task.name();
        self.all().push(task);
        name
    }

    fn all(&self) -> MutexGuard<'_, Vec<Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until workers are slow, and returns each with a reason. At least two workers are not slow then, or this
    /// process, which has so many partitions, is faster alone.
    pub(super) async fn slow_workers(&self, connections: &Connections, num_partitions: usize) -> Vec<(Url, String)> {
        loop {
            sleep(ASK_EVERY).await;
            let tasks = self.all().clone();
            let answers = join_all(tasks.iter().map(|task| task.ask(connections))).await;
            let mut tasks = self.all();
            for (task, answer) in tasks.iter_mut().zip(answers) {
                task.progress = answer.or(task.progress);
            }
            let slow = slow_of(&tasks, num_partitions);
            if !slow.is_empty() {
                return slow;
            }
        }
    }
}

impl Task {
    fn name(&self) -> String {
        let TaskKey { query_id, stage_id, task_number } = self.key;
        format!("{query_id}/{stage_id}/{task_number}")
    }

    /// Asks the worker how far the task is.
    async fn ask(&self, connections: &Connections) -> Option<Progress> {
        let asking = async {
            let channel = connections.channel(&self.url).await.ok()?;
            let request = Request::post(SCANS_PATH).header(TASK_HEADER, self.name()).body(Body::empty()).ok()?;
            let response = channel.oneshot(request).await.ok()?;
            if response.status() != StatusCode::OK {
                return None;
            }
            let body = Limited::new(response.into_body(), MAX_BYTES).collect().await.ok()?;
            Progress::from_text(std::str::from_utf8(&body.to_bytes()).ok()?)
        };
        timeout(ASK_EVERY, asking).await.ok().flatten()
    }
}

/// Returns the workers of slow tasks, each with a reason, if at least two others are left, or if this process, which
/// has so many partitions, is faster alone.
fn slow_of(tasks: &[Task], num_partitions: usize) -> Vec<(Url, String)> {
    let slow = slow_in_stages(tasks, |pace| pace.slower_than_most());
    let mut left: Vec<&Url> = tasks.iter().map(|task| &task.url).collect();
    left.sort_unstable();
    left.dedup();
    left.retain(|url| slow.iter().all(|(other, _)| other != *url));
    if !slow.is_empty() && left.len() >= 2 {
        return slow;
    }
    let all_ns = tasks.iter().map(|task| task.work.closed_ns).fold(0, u64::saturating_add);
    slow_in_stages(tasks, |pace| pace.slower_than_alone(all_ns, num_partitions))
}

/// Returns the workers that `slow` finds in each stage, once each.
fn slow_in_stages(tasks: &[Task], slow: impl Fn(&Pace<'_>) -> Vec<(Url, String)>) -> Vec<(Url, String)> {
    let mut all: Vec<(Url, String)> = Vec::new();
    let mut stages: Vec<usize> = tasks.iter().map(|task| task.key.stage_id).collect();
    stages.sort_unstable();
    stages.dedup();
    for stage in stages {
        let in_stage = tasks.iter().filter(|task| task.key.stage_id == stage);
        let Some(pace) = Pace::from_tasks(in_stage) else { continue };
        for found in slow(&pace) {
            if all.iter().all(|(url, _)| *url != found.0) {
                all.push(found);
            }
        }
    }
    all
}

/// The tasks of a stage that still run, and the times of those that have ended.
struct Pace<'a> {
    running: Vec<&'a Task>,
    num_ended: usize,
    /// Seconds for a nanosecond of work, of the slowest one.
    seconds_for_ns: f64,
    /// Time since they began, of the one that has ended last.
    passed: Duration,
}

impl<'a> Pace<'a> {
    /// Returns the pace of the tasks of a stage; `None` if none has ended.
    fn from_tasks(tasks: impl Iterator<Item = &'a Task>) -> Option<Self> {
        let progress = tasks.filter_map(|task| Some((task, task.progress?)));
        let (running, ended): (Vec<_>, Vec<_>) = progress.partition(|(_, progress)| progress.is_running);
        let time_for_work =
            |(task, progress): &(&Task, Progress)| progress.worked.as_secs_f64() / task.work.open_ns.max(1) as f64;
        Some(Self {
            running: running.into_iter().map(|(task, _)| task).collect(),
            num_ended: ended.len(),
            seconds_for_ns: ended.iter().map(time_for_work).fold(0.0, f64::max),
            passed: ended.iter().map(|(_, progress)| progress.worked + progress.idle).min()?,
        })
    }

    /// Returns true if a task that should take the `expected` time takes so many times as long.
    fn is_exceeded(&self, expected: Duration, times: f64) -> bool {
        self.passed > expected.mul_f64(times).max(expected + LEAST_WAIT)
    }

    /// Returns the workers that are slower than the others, if most tasks have ended.
    fn slower_than_most(&self) -> Vec<(Url, String)> {
        let slow = self.running.iter().filter_map(|task| {
            let expected = Duration::from_secs_f64(self.seconds_for_ns * task.work.open_ns as f64);
            let passed = self.passed;
            let reason = format!("its scans take more than {passed:.1?}, and those of the others took {expected:.1?}");
            self.is_exceeded(expected, SLOWNESS).then(|| (task.url.clone(), reason))
        });
        if self.running.len() < self.num_ended { slow.collect() } else { Vec::new() }
    }

    /// Returns the workers that are slower than this process with so many partitions would be with all the work, which
    /// has so many nanoseconds.
    fn slower_than_alone(&self, all_ns: u64, num_partitions: usize) -> Vec<(Url, String)> {
        let by_rates = all_ns as f64 / 1e9 / num_partitions.max(1) as f64;
        let alone = Duration::from_secs_f64(by_rates.max(self.seconds_for_ns * all_ns as f64));
        if !self.is_exceeded(alone, SLOWNESS_ALONE) {
            return Vec::new();
        }
        let passed = self.passed;
        let reason = format!("its scans take more than {passed:.1?}, and this process needs {alone:.1?} for all");
        self.running.iter().map(|task| (task.url.clone(), reason.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The work of a task, and the last answer: `is_running`, `worked` and `idle` in seconds.
    type State = (u64, Option<(bool, u64, u64)>);

    /// Returns tasks of one stage in these states.
    fn tasks(states: &[State]) -> Vec<Task> {
        let task = |(at, &(work_ns, state)): (usize, &State)| Task {
            key: TaskKey { query_id: Default::default(), stage_id: 1, task_number: at },
            url: format!("http://w{at}:1").parse().unwrap(),
            work: Work { open_ns: work_ns, closed_ns: 2 * work_ns },
            progress: state.map(|(is_running, worked, idle)| Progress {
                is_running,
                worked: Duration::from_secs(worked),
                idle: Duration::from_secs(idle),
            }),
        };
        states.iter().enumerate().map(task).collect()
    }

    fn slow(states: &[State]) -> Vec<String> {
        slow_of(&tasks(states), 1).into_iter().map(|(url, _)| url.to_string()).collect()
    }

    #[test]
    fn a_worker_is_slow_long_after_the_others_have_ended() {
        let running = Some((true, 60, 0));
        let ended = |idle: u64| Some((false, 20, idle));
        assert!(slow(&[(5, ended(10)), (5, ended(10)), (5, running)]).is_empty());
        assert_eq!(slow(&[(5, ended(11)), (5, ended(11)), (5, running)]), ["http://w2:1/"]);
        // One has just ended.
        assert!(slow(&[(5, ended(11)), (5, ended(2)), (5, running)]).is_empty());
        // Its share is three times as large.
        assert!(slow(&[(5, ended(40)), (5, ended(40)), (15, running)]).is_empty());
        assert_eq!(slow(&[(5, ended(71)), (5, ended(71)), (15, running)]), ["http://w2:1/"]);
        // Short tasks have two seconds in any case.
        let short = |idle: u64| Some((false, 1, idle));
        assert!(slow(&[(5, short(2)), (5, short(2)), (5, running)]).is_empty());
        assert_eq!(slow(&[(5, short(3)), (5, short(3)), (5, running)]), ["http://w2:1/"]);
    }

    #[test]
    fn no_worker_is_slow_while_nothing_is_known_of_the_others() {
        let running = Some((true, 600, 0));
        let ended = Some((false, 1, 599));
        for states in [
            vec![],
            vec![(5, running)],
            vec![(5, running), (5, running)],
            vec![(5, ended), (5, ended), (5, None)],
            vec![(5, ended), (5, ended), (5, ended)],
        ] {
            assert!(slow(&states).is_empty(), "{states:?}");
        }
        let two_of_five = [(5, ended), (5, running), (5, ended), (5, running), (5, ended)];
        assert_eq!(slow(&two_of_five), ["http://w1:1/", "http://w3:1/"]);
    }

    #[test]
    fn a_worker_of_two_is_slow_long_after_this_process_would_have_done_all() {
        let running = Some((true, 600, 0));
        let ended = |idle: u64| Some((false, 10, idle));
        // With nothing open, ten units of work are forty seconds.
        assert!(slow(&[(5, ended(110)), (5, running)]).is_empty());
        assert_eq!(slow(&[(5, ended(111)), (5, running)]), ["http://w1:1/"]);
        // The other one has a tenth of the work.
        assert!(slow(&[(1, ended(650)), (10, running)]).is_empty());
        assert_eq!(slow(&[(1, ended(651)), (10, running)]), ["http://w1:1/"]);
        // All that still run are slow, so the statement goes on in this process.
        let all = [(5, ended(171)), (5, running), (5, running)];
        assert_eq!(slow(&all), ["http://w1:1/", "http://w2:1/"]);
        // By the planner's rates this process needs forty seconds with one partition, and ten with four.
        let large = tasks(&[(10_000_000_000, Some((false, 1, 49))), (10_000_000_000, running)]);
        assert!(slow_of(&large, 1).is_empty());
        assert_eq!(slow_of(&large, 4).len(), 1);
    }

    #[test]
    fn stages_are_compared_alone() {
        let mut all = tasks(&[(5, Some((false, 1, 99))), (5, Some((false, 1, 99))), (5, Some((true, 90, 0)))]);
        assert_eq!(slow_of(&all, 1).len(), 1);
        // The long task is the only one of another stage.
        all[2].key.stage_id = 2;
        assert!(slow_of(&all, 1).is_empty());
    }

    #[test]
    fn scans_are_counted_until_they_are_dropped() {
        let all = AllScans::default();
        let mut headers = HeaderMap::new();
        assert!(all.for_task(&headers).is_none());
        headers.insert(TASK_HEADER, "a/1/0".parse().unwrap());
        let scans = all.for_task(&headers).unwrap();
        assert_eq!(all.progress(&headers), None);
        let running = [scans.begin(), all.for_task(&headers).unwrap().begin()];
        let [one, other] = running;
        drop(one);
        assert!(all.progress(&headers).unwrap().is_running);
        drop(other);
        assert!(!all.progress(&headers).unwrap().is_running);
        drop(scans);
        assert_eq!(all.progress(&headers), None);
        headers.insert(TASK_HEADER, "b/1/0".parse().unwrap());
        let other = all.for_task(&headers).unwrap();
        assert_eq!(all.0.lock().unwrap().len(), 1, "{other:?}");
    }

    #[test]
    fn answers_are_read_as_they_are_written() {
        let progress = Progress { is_running: true, worked: Duration::from_millis(1234), idle: Duration::ZERO };
        assert_eq!(progress.text(), "1 1234 0");
        assert_eq!(Progress::from_text(&progress.text()), Some(progress));
        for text in ["", "1 2", "2 1 1", "1 -1 0", "1 1 1 1", "1 99999999999 0", "1  1 0"] {
            assert_eq!(Progress::from_text(text), None, "{text}");
        }
    }
}
