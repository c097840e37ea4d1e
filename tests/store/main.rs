//! Living corpora as they are stored, and as they are recompressed.
//!
//! `store`: what was acknowledged stays. `interleavings`: whatever the order. `optimize`: and whatever is compressed
//! anew. `disk`, `faults`: storages on bad days.

#![allow(clippy::unwrap_used, clippy::panic)]

mod disk;
mod faults;
mod interleavings;
mod optimize;
mod store;
