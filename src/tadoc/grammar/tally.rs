//! Parallel updates of the counts of pair ids, without atomics.
//!
//! Each thread owns a range of the ids and reads all lists. Reading is cheap. Atomics on the counts
//! of frequent pairs are expensive: one costs 18 cycles alone and a cache miss between two threads.

use rayon::prelude::*;

use super::pair_join::PairId;

/// Calls `change` with the count of each id in `lists`, once for each time that it is listed. Ids
/// without a count are skipped.
pub(super) fn for_each_count<T: Sync>(
    counts: &mut [u32],
    lists: &[impl AsRef<[T]> + Sync],
    id_of: impl Fn(&T) -> PairId + Sync,
    change: impl Fn(&mut u32) + Sync,
) {
    let ids_per_owner = counts.len().div_ceil(rayon::current_num_threads()).max(1);
    counts.par_chunks_mut(ids_per_owner).enumerate().for_each(|(owner, counts)| {
        let first_id = owner * ids_per_owner;
        for item in lists.iter().flat_map(|list| list.as_ref()) {
            if let Some(count) = counts.get_mut((id_of(item) as usize).wrapping_sub(first_id)) {
                change(count);
            }
        }
    });
}
