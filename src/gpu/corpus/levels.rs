//! Rules by level: those that hold a rule lie in levels before its own.
//!
//! Levels are gathered to steps. A large level is a launch of its own, with threads for all of it;
//! small ones that follow each other are one launch of one thread block, which costs less than a
//! launch for each.

use crate::dag::Dag;
use crate::gpu::error::GpuError;

use super::check_limit;

/// Deeper grammars are refused: a level costs a microsecond or more.
pub(super) const MAX_LEVELS: usize = 1 << 16;

/// What one launch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// All of one large level.
    Level(u32),
    /// Levels from the first to before the last, one after the other.
    Levels(u32, u32),
}

/// The rules of a grammar, root first.
#[derive(Debug)]
pub(super) struct RuleLevels {
    /// Rule indexes by level.
    pub(super) order: Vec<u32>,
    /// Where each level begins in `order`, and the end of the last one.
    pub(super) starts: Vec<u32>,
}

impl RuleLevels {
    /// By the longest way from the root; O(G).
    pub(super) fn new(dag: &Dag) -> Result<Self, GpuError> {
        let grammar = dag.grammar();
        let mut levels = vec![0u32; grammar.num_rules()];
        let mut num_levels = 1;
        for rule_idx in 0..grammar.num_rules() {
            let next = levels[rule_idx] + 1;
            num_levels = num_levels.max(next as usize);
            for child in grammar.rule(rule_idx).iter().filter_map(|&element| dag.rule_of(element)) {
                levels[child] = levels[child].max(next);
            }
        }
        check_limit("levels of a grammar", num_levels, MAX_LEVELS)?;
        let mut starts = vec![0u32; num_levels + 1];
        levels.iter().for_each(|&level| starts[level as usize + 1] += 1);
        (0..num_levels).for_each(|level| starts[level + 1] += starts[level]);
        let (mut next, mut order) = (starts.clone(), vec![0; levels.len()]);
        for (rule_idx, &level) in levels.iter().enumerate() {
            order[next[level as usize] as usize] = rule_idx as u32;
            next[level as usize] += 1;
        }
        Ok(Self { order, starts })
    }
}

/// Steps over levels that begin at `starts`; those of up to `max_small` are small.
pub(super) fn steps(starts: &[u32], max_small: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    for (level, ends) in (0u32..).zip(starts.windows(2)) {
        let is_small = ends[1] - ends[0] <= max_small;
        match steps.last_mut() {
            Some(Step::Levels(_, end)) if is_small && *end == level => *end += 1,
            _ if is_small => steps.push(Step::Levels(level, level + 1)),
            _ => steps.push(Step::Level(level)),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_levels_that_follow_each_other_are_one_step() {
        let expected = [Step::Levels(0, 2), Step::Level(2), Step::Level(3), Step::Levels(4, 5)];
        assert_eq!(steps(&[0, 1, 3, 10, 20, 22], 2), expected);
        assert_eq!(steps(&[0], 2), []);
    }
}
