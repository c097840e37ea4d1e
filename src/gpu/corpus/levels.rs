//! Levels gathered to steps. A large level is a launch of its own, with threads for all of it; small
//! ones that follow each other are one launch of one thread block, which costs less than a launch for
//! each.

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
