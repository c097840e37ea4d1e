//! Suggestions for mistyped names.

use datafusion::common::utils::datafusion_strsim::levenshtein;

/// Returns the candidate closest to `name`, if it is near enough to be a typing error.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    candidates
        .map(|c| (levenshtein(&name, c), c))
        .filter(|(distance, c)| *distance <= c.len().max(name.len()) / 3 + 1 && *distance < c.len())
        .min()
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = || ["corpus", "fold"].into_iter();
        assert_eq!(closest("flod", names()), Some("fold"));
        assert_eq!(closest("Corpse", names()), Some("corpus"));
        assert_eq!(closest("separator", names()), None);
    }
}
