//! Parallel updates of the counts of pair ids, without atomics.
//!
//! Each of a few owners has a range of the ids and reads all lists. Reading is cheap. Atomics on the
//! counts of frequent pairs are expensive: one costs 18 cycles alone and a cache miss between two
//! threads.

use rayon::prelude::*;

use super::pair_join::PairId;

/// Greatest number of owners. More would read the lists more often than they share the changes.
const MAX_OWNERS: usize = 6;

/// Returns the number of ids that each owner of `num_ids` ids has.
pub(super) fn ids_per_owner(num_ids: usize) -> usize {
    num_ids.div_ceil(rayon::current_num_threads().min(MAX_OWNERS)).max(1)
}

/// Calls `change` with the count of each id in `lists`, once for each time that it is listed. Ids
/// without a count are skipped.
pub(super) fn for_each_count<T: Sync>(
    counts: &mut [u32],
    lists: &[impl AsRef<[T]> + Sync],
    id_of: impl Fn(&T) -> PairId + Sync,
    change: impl Fn(&mut u32) + Sync,
) {
    let ids_per_owner = ids_per_owner(counts.len());
    counts.par_chunks_mut(ids_per_owner).enumerate().for_each(|(owner, counts)| {
        let first_id = owner * ids_per_owner;
        for item in lists.iter().flat_map(|list| list.as_ref()) {
            if let Some(count) = counts.get_mut((id_of(item) as usize).wrapping_sub(first_id)) {
                change(count);
            }
        }
    });
}
