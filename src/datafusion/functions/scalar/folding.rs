//! A sign that a statement is planned, for functions that fold no large constants then.
//!
//! A plan would hold a large constant for as long as it lives, and planning cannot be stopped. So [`fold_little`]
//! plans with a small limit for each call: a larger constant is computed when the statement runs.

use std::cell::Cell;

thread_local! {
    static IS_FOLDING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `plan`, which plans a statement, without folding large constants.
///
/// ```
/// assert_eq!(datafusion_tadoc::fold_little(|| 7), 7);
/// ```
pub fn fold_little<T>(plan: impl FnOnce() -> T) -> T {
    /// Sets the flag back, also after a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_FOLDING.set(self.0);
        }
    }
    let _before = Before(IS_FOLDING.replace(true));
    plan()
}

/// Returns true while [`fold_little`] runs.
pub(super) fn is_folding() -> bool {
    IS_FOLDING.get()
}
