//! The division of runs of segments between workers.
//!
//! ```text
//! run ─ hash with each worker ─▶ the best worker that has room ─▶ its task
//! ```
//!
//! A run goes to the worker with the highest hash of both (rendezvous hashing), unless that worker has
//! its share of the work already. So the same segments meet the same worker again, where they are open, in other
//! statements and when a worker comes or goes. All runs of a worker are one task. Both sides of a
//! join divide their runs alone, and share the workers of the first. Files that cannot be cut, such as
//! compressed ones, are dealt whole.
//!
//! The node of the runs gets fewer tasks than there are workers, if it says that fewer are faster than all.
//!
//! A node that calls a scalar function over a corpus runs as one task, because these look the corpus up
//! where they run.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedLeafExec, RouteTasksEvent,
    RouteTasksEventResponse, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse, get_distributed_worker_resolver,
};
use url::Url;

use datafusion_tadoc::TadocExec;
use datafusion_tadoc::travel::{CorpusFunction, Run, RunsExec};

/// Part of a worker's equal share that it may have more, so that runs stay where they are.
const SLACK: u64 = 16;

/// Says how many tasks a node is worth.
pub(super) fn desired_tasks(event: DesiredTaskCountEvent<'_>) -> Option<Result<DesiredTaskCountEventResponse>> {
    match event.plan.downcast_ref::<RunsExec>() {
        Some(runs) => {
            let num_tasks = runs.runs.len().min(runs.most_workers);
            Some(Ok(DesiredTaskCountEventResponse::desired(num_tasks.max(1))))
        }
        None => match calls_corpus(event.plan) {
            Ok(true) => Some(Ok(DesiredTaskCountEventResponse::maximum(1))),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        },
    }
}

/// Returns true if `node` itself calls a scalar function over a corpus.
fn calls_corpus(node: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut is_found = false;
    node.apply_expressions(&mut |expr: &Arc<dyn PhysicalExpr>| {
        expr.apply(|part| {
            let function = part.downcast_ref::<ScalarFunctionExpr>();
            is_found |= function.is_some_and(|f| f.fun().inner().is::<CorpusFunction>());
            Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(is_found)
}

/// Divides a leaf between tasks: the runs of a scan of corpora, or the files of a scan that cannot begin
/// inside a file.
pub(super) fn divide(event: ScaleUpLeafNodeEvent<'_>) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let source = event.plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    let files = source.and_then(|source| source.downcast_ref::<FileScanConfig>());
    let tasks = match (event.plan.downcast_ref::<RunsExec>(), files) {
        (Some(runs), _) => divided_runs(&event, runs),
        (None, Some(files)) if !is_cut_anywhere(files) => Ok(divided_files(files, event.task_count)),
        _ => return None,
    };
    let leaf = tasks.and_then(|all| DistributedLeafExec::try_new(Arc::clone(event.plan), all));
    Some(leaf.map(|leaf| ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
}

fn divided_runs(event: &ScaleUpLeafNodeEvent<'_>, runs: &RunsExec) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
    let workers = workers(event.session_config, runs, event.task_count)?;
    let shares = shares(&runs.runs, &workers, event.task_count);
    let mut tasks: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(shares.len());
    for places in shares {
        let share = runs.share(&places)?;
        // The times are those of all tasks: the first one shows them.
        let share = if tasks.is_empty() { share } else { share.with_times(None) };
        tasks.push(Arc::new(share));
    }
    Ok(tasks)
}

/// Returns true if a task may read a part of a file: not of a compressed one, nor where a line of values may
/// go on. The engine cuts files without asking.
fn is_cut_anywhere(files: &FileScanConfig) -> bool {
    !files.file_compression_type.is_compressed() && files.file_source().supports_repartitioning()
}

/// Deals whole files to tasks. Each task has the partitions of `files`, in their order.
fn divided_files(files: &FileScanConfig, num_tasks: usize) -> Vec<Arc<dyn ExecutionPlan>> {
    let mut tasks = vec![files.clone(); num_tasks];
    for (task, share) in tasks.iter_mut().enumerate() {
        for (partition, group) in files.file_groups.iter().enumerate() {
            let first = (task + partition) % num_tasks;
            let dealt = group.iter().skip(first).step_by(num_tasks).cloned();
            share.file_groups[partition] = FileGroup::new(dealt.collect());
        }
    }
    tasks.into_iter().map(|share| DataSourceExec::from_data_source(share) as _).collect()
}

/// Sends the tasks of a stage with runs to the workers that [`divide`] chose.
pub(super) fn route(event: RouteTasksEvent<'_>) -> Option<Result<RouteTasksEventResponse>> {
    let mut leaf: Option<Arc<dyn ExecutionPlan>> = None;
    let found = event.plan.apply(|node| {
        let original = node.downcast_ref::<DistributedLeafExec>().map(|leaf| leaf.original());
        if let Some(original) = original.filter(|original| original.is::<RunsExec>()) {
            leaf = Some(Arc::clone(original));
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if let Err(error) = found {
        return Some(Err(error));
    }
    let leaf = leaf?;
    let runs = leaf.downcast_ref::<RunsExec>()?;
    let workers = workers(event.task_ctx.session_config(), runs, event.task_count);
    Some(workers.map(RouteTasksEventResponse::new))
}

/// Returns the workers of the tasks of a stage: those with the highest hashes with its first run, in
/// the order of the session's list.
fn workers(config: &SessionConfig, runs: &RunsExec, num_tasks: usize) -> Result<Vec<Url>> {
    let all = get_distributed_worker_resolver(config)?.get_urls()?;
    let key = runs.runs.first().map(key_of).unwrap_or_default();
    Ok(chosen(&all, &key, num_tasks))
}

fn chosen(all: &[Url], key: &str, num_tasks: usize) -> Vec<Url> {
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by_key(|&place| std::cmp::Reverse(score(key, &all[place])));
    places.truncate(num_tasks);
    places.sort_unstable();
    let chosen = places.into_iter().map(|place| all[place].clone());
    // More tasks than workers share them.
    chosen.cycle().take(if all.is_empty() { 0 } else { num_tasks }).collect()
}

/// Returns the places of the runs of each task, ascending. The task at each place is for that one of
/// `workers`.
fn shares(runs: &[Run], workers: &[Url], num_tasks: usize) -> Vec<Vec<usize>> {
    let sized: Vec<(String, u64)> = runs.iter().map(|run| (key_of(run), work_of(run))).collect();
    shares_of(&sized, workers, num_tasks)
}

fn shares_of(runs: &[(String, u64)], workers: &[Url], num_tasks: usize) -> Vec<Vec<usize>> {
    let total: u64 = runs.iter().map(|(_, work)| work).sum();
    let equal = total.div_ceil(num_tasks.max(1) as u64);
    let most = equal + equal / SLACK;
    let mut shares: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new()); num_tasks];
    for (place, (key, work)) in runs.iter().enumerate() {
        let score = |task: &usize| workers.get(*task).map(|worker| score(key, worker));
        let has_room = |task: &usize| shares[*task].0 == 0 || shares[*task].0 + work <= most;
        let best = (0..num_tasks).filter(has_room).max_by_key(score);
        let least = || (0..num_tasks).min_by_key(|&task| shares[task].0);
        let Some(task) = best.or_else(least) else { break };
        shares[task].0 += work;
        shares[task].1.push(place);
    }
    shares.into_iter().map(|(_, places)| places).collect()
}

fn key_of(run: &Run) -> String {
    run.scan.downcast_ref::<TadocExec>().map(TadocExec::files_key).unwrap_or_default()
}

fn work_of(run: &Run) -> u64 {
    Work::from_run(run).open_ns
}

/// Estimated work of scans of corpora, in nanoseconds of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Work {
    /// Work on segments that are open.
    pub(super) open_ns: u64,
    /// The same, and that of opening them.
    pub(super) closed_ns: u64,
}

impl Work {
    fn from_run(run: &Run) -> Self {
        let scan = run.scan.downcast_ref::<TadocExec>();
        let [open_ns, closed_ns] = [true, false].map(|are_open| scan.map_or(1, |scan| scan.work_ns(are_open)).max(1));
        Self { open_ns, closed_ns }
    }

    fn and(self, other: Self) -> Self {
        let open_ns = self.open_ns.saturating_add(other.open_ns);
        Self { open_ns, closed_ns: self.closed_ns.saturating_add(other.closed_ns) }
    }
}

/// Returns the work of the scans of corpora in the plan of a task, if it has any.
///
/// # Errors
/// None of this crate.
pub(super) fn work_of_task(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Work>> {
    let mut work: Option<Work> = None;
    plan.apply(|node| {
        if let Some(runs) = node.downcast_ref::<RunsExec>() {
            let all = runs.runs.iter().map(Work::from_run).chain(work);
            work = all.reduce(Work::and);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(work)
}

/// Notes in the session that a worker is asked for the runs in the plan of a task.
///
/// # Errors
/// None of this crate.
pub(super) fn note_asked(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    plan.apply(|node| {
        if let Some(runs) = node.downcast_ref::<RunsExec>() {
            runs.note_asked();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn score(key: &str, worker: &Url) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, worker.as_str()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn urls(count: usize) -> Vec<Url> {
        (0..count).map(|i| Url::parse(&format!("http://worker{i}:8815")).unwrap()).collect()
    }

    fn runs(sizes: &[u64]) -> Vec<(String, u64)> {
        sizes.iter().enumerate().map(|(i, &size)| (format!("run {i}"), size)).collect()
    }

    #[test]
    fn most_runs_stay_when_a_worker_leaves() {
        let runs = runs(&[10; 64]);
        let four = urls(4);
        let three = urls(3);
        let before = shares_of(&runs, &four, 4);
        let after = shares_of(&runs, &three, 3);
        let stayed = (0..3).map(|task| before[task].iter().filter(|place| after[task].contains(place)).count());
        let stayed: usize = stayed.sum();
        let were: usize = before[..3].iter().map(Vec::len).sum();
        assert!(stayed * 4 >= were * 3, "{stayed} of {were}");
    }

    #[test]
    fn fewer_tasks_have_the_same_workers_each_time() {
        let all = urls(5);
        let two = chosen(&all, "a corpus", 2);
        assert_eq!((two.len(), &two), (2, &chosen(&all, "a corpus", 2)));
        let keys = ["b", "c", "d", "e", "f", "g"];
        assert!(keys.iter().any(|key| chosen(&all, key, 2) != two));
        assert_eq!(chosen(&urls(2), "a", 3).len(), 3);
        assert!(chosen(&[], "a", 3).is_empty());
    }

    proptest! {
        #[test]
        fn each_run_has_one_task_and_tasks_are_alike(
            sizes in prop::collection::vec(1u64..100, 1..60),
            num_tasks in 1usize..6,
        ) {
            let shares = shares_of(&runs(&sizes), &urls(num_tasks), num_tasks);
            let mut all: Vec<usize> = shares.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..sizes.len()).collect::<Vec<_>>());
            prop_assert!(shares.iter().all(|places| places.is_sorted()));
            let total = sizes.iter().sum::<u64>();
            let largest = *sizes.iter().max().unwrap();
            let equal = total.div_ceil(num_tasks as u64);
            for places in shares {
                let load: u64 = places.iter().map(|&place| sizes[place]).sum();
                prop_assert!(load <= equal + equal / SLACK + largest);
            }
        }
    }
}
